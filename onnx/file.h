/* The file behind a model. Private to onnx/. */
#ifndef BZ_ONNX_FILE_H
#define BZ_ONNX_FILE_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Bytes in the file. */
typedef struct slice {
    const uint8_t *data; /* NULL: not there */
    size_t size;
} slice;

enum { RECENT = 64 };

typedef struct {
    slice bytes;
    bz_attr attr;
} recent_attr;

typedef struct bz_model_file {
    wire_bytes bytes;     /* its structure */
    uint64_t size;        /* of the file */
    bool owned;           /* bytes are the model's, not the caller's */
    const char *path;     /* NULL: not from a file */
    int folder;           /* descriptor of the folder that external data is looked up in, or -1 until there is any */
    const char *external; /* the last external file that was asked for: many tensors lie in one */
    int external_fd;      /* its descriptor, or -2 */
    int values_cap, symbols_cap;
    bz_map symbols; /* named dimensions */
    bz_map words;   /* operator types, domains, attribute names -> word[] */
    const char **word;
    int words_cap;
    bz_str recent[RECENT];            /* words that were met last, found without the map */
    recent_attr recent_attrs[RECENT]; /* the same of attributes that hold no graphs */
    slice *functions;                 /* FunctionProtos */
    int n_functions;
    bz_map function_names; /* "domain\0name\0overload" -> index */
} bz_model_file;

/* Opens a regular file and reads its structure. An empty file, a folder, or what is plainly something else
 * is refused by name. `path` is kept. */
int file_open(const char *path, bz_model_file *file, bz_error *err);
void file_close(bz_model_file *file);

/* Opens external data below the model's folder, without following any link. Returns a descriptor, which
 * stays the file's; -1 with err filled when the path leaves the folder, -2 when the file is just not
 * there. Equal paths are the same pointer. */
int file_external(bz_model_file *file, const char *path, bz_error *err);

#endif
