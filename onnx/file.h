/* The file behind a model. Private to onnx/. */
#ifndef BZ_ONNX_FILE_H
#define BZ_ONNX_FILE_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Memory for messages. */
typedef struct {
    bz_arena *arena;
    size_t left; /* for the message that is unpacked now */
} unpack_memory;

enum { RECENT_BITS = 6, RECENT = 1 << RECENT_BITS };

typedef struct {
    ProtobufCBinaryData bytes;
    const Onnx__AttributeProto *attribute;
} recent_attribute;

typedef struct bz_model_file {
    wire_bytes bytes;        /* its structure */
    Onnx__ModelProto *proto; /* the same, unpacked into the model's arena */
    uint64_t size;           /* of the file */
    bool owned;              /* bytes are the model's, not the caller's */
    const char *path;        /* NULL: not from a file */
    int folder;              /* descriptor of the folder that external data is looked up in, or -1 until there is any */
    const char *external;    /* the last external file that was asked for: many tensors lie in one */
    int external_fd;         /* its descriptor, or -2 */
    unpack_memory memory;
    recent_attribute recent[RECENT]; /* those that were met last */
    bz_map symbols;                  /* named dimensions */
    bz_map function_names;           /* "domain\0name\0overload" -> index in proto->functions */
    struct slice_index *slices;      /* NULL: nobody cut the model yet */
} bz_model_file;

/* Opens a regular file and reads its structure. An empty file, a folder, or what is plainly something else
 * is refused by name. `path` is kept. */
int file_open(const char *path, bz_model_file *file, bz_error *err);
void file_close(bz_model_file *file);

void slice_index_free(struct slice_index *index); /* slice.c; NULL is fine */

/* ---- unpack.c: messages, which live as long as the arena ------------------------------------------ */

/* Unpacks file->bytes into file->proto. */
int unpack_model(bz_model_file *file, bz_arena *arena, bz_error *err);

/* An attribute of a node. Equal bytes may give the same message, which nobody may change. */
const Onnx__AttributeProto *unpack_attribute(bz_model_file *file, ProtobufCBinaryData bytes, bz_error *err);

/* One of its own, for who changes it. */
Onnx__AttributeProto *unpack_new_attribute(bz_model_file *file, ProtobufCBinaryData bytes, bz_error *err);

/* A tensor that has its payload: `t` itself, or one made in the arena of what was left out. */
int unpack_payload(const bz_model_file *file, const Onnx__TensorProto *t, bz_arena *arena,
                   const Onnx__TensorProto **payload, bz_error *err);

/* Opens external data below the model's folder, without following any link. Returns a descriptor, which
 * stays the file's; -1 with err filled when the path leaves the folder, -2 when the file is just not
 * there. */
int file_external(bz_model_file *file, const char *path, bz_error *err);

/* Packs file->proto without its weights (strip.c). The model is of no other use then. */
int strip_model(bz_model *model, uint64_t keep, bz_buf *out, bz_strip_result *result, bz_error *err);

#endif
