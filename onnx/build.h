/* From the bytes of a file to graphs. Private to onnx/.
 *
 * Messages are read where they lie in memory, by the one wire reader that everything in
 * this room uses; nothing is unpacked first. Of a field that may stand once and stands twice, the
 * last counts; one of another wire type than it should have is passed over, as are unknown ones. */
#ifndef BZ_ONNX_BUILD_H
#define BZ_ONNX_BUILD_H

#include "onnx/file.h"
#include "onnx/wire.h"

/* Messages or texts, one after the other. */
typedef struct {
    slice *at;
    size_t n, cap;
} slices;

/* A graph under construction, or an outer one that it may read from. */
typedef struct scope {
    struct scope *outer;
    bz_map names;        /* value name, as it stands in the file -> id */
    bz_value_id first;   /* its own values are first .. first + names: inputs, initializers, */
    bz_value_id results; /* and from here on what its nodes make */
    slices defined;      /* their names */
    int32_t next[2];     /* of its initializers and its results: the one behind the one read last */
    bz_value_id *captures;
    int n_captures, captures_cap;
    slices reads, attrs; /* of all nodes: names and messages */
} scope;

typedef struct builder {
    bz_model *model;
    bz_arena *arena; /* the model's */
    bz_error *err;
    const bz_opset *opsets;
    int n_opsets;
    const bz_node *call; /* whose attributes stand in for references; NULL outside functions */
    slice function;      /* FunctionProto whose body is built */
    int depth;
} builder;

/* decode.c; all return 0, or -1 with err filled */
wire_reader read_message(const builder *b, slice m);
bool is_text(slice s, const char *text);
const char *decode_text(builder *b, slice s); /* a copy that ends with a zero */
const char *decode_word(builder *b, slice s); /* the same, shared by all that are equal: operators, domains */
int decode_type(builder *b, slice m, const bz_type **t);
int decode_tensor(builder *b, slice m, bz_tensor *t);       /* into a zeroed one */
int decode_sparse(builder *b, slice m, bz_tensor *t);       /* the same */
int decode_attr(builder *b, scope *s, slice m, bz_attr *a); /* 1: left out */
int decode_opsets(builder *b, slice m, uint32_t field);     /* those of a model or function */

/* graph.c */
bz_graph *build_graph(builder *b, scope *outer, slice m);
int add_function(builder *b, slice m); /* a FunctionProto; file->functions has room */

#endif
