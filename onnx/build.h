/* From the messages of a file to graphs. Private to onnx/.
 *
 * Texts and lists of numbers stay where protobuf-c put them, in the model's arena. A text ends with its first zero
 * byte. Of a field that may stand once and stands twice, the last counts; messages are merged. */
#ifndef BZ_ONNX_BUILD_H
#define BZ_ONNX_BUILD_H

#include "onnx/file.h"

/* A graph under construction, or an outer one that it may read from. */
typedef struct scope {
    struct scope *outer;
    bz_map names;        /* value name -> id */
    bz_value_id first;   /* its own values are first .. first + names: inputs, initializers, */
    bz_value_id results; /* and from here on what its nodes make */
    uint32_t next[2];    /* of its initializers and its results: the one behind the one read last */
    bz_value_id *captures;
    int n_captures;
} scope;

typedef struct builder {
    bz_model *model;
    bz_arena *arena; /* the model's */
    bz_error *err;
    const bz_opset *opsets;
    int n_opsets;
    const bz_node *call;                 /* whose attributes stand in for references; NULL outside functions */
    const Onnx__FunctionProto *function; /* whose body is built */
    int depth;
} builder;

/* A field that is not there reads as an empty text. */
static inline const char *text_of(const char *field)
{
    return field ? field : "";
}

/* The default operator set has two names. */
static inline const char *domain_of(const char *field)
{
    return field && strcmp(field, "ai.onnx") != 0 ? field : "";
}

/* decode.c; all return 0, or -1 with err filled */
int decode_type(builder *b, const Onnx__TypeProto *p, const bz_type **t);
int decode_tensor(builder *b, const Onnx__TensorProto *p, bz_tensor *t);             /* into a zeroed one */
int decode_sparse(builder *b, const Onnx__SparseTensorProto *p, bz_tensor *t);       /* the same */
int decode_attr(builder *b, scope *s, ProtobufCBinaryData bytes, bz_attr *a);        /* 1: left out */
void decode_opsets(builder *b, size_t n, Onnx__OperatorSetIdProto *const *imported); /* of a model or function */

/* graph.c */
bz_graph *build_graph(builder *b, scope *outer, const Onnx__GraphProto *p);
int add_function(builder *b, const Onnx__FunctionProto *p, uint32_t index);

#endif
