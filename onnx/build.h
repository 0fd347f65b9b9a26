/* From unpacked protobuf messages to graphs. Private to onnx/. */
#ifndef BZ_ONNX_BUILD_H
#define BZ_ONNX_BUILD_H

#include "onnx/file.h"

#include <onnx.pb-c.h>

/* A graph under construction, or an outer one that it may read from. */
typedef struct scope {
    struct scope *outer;
    bz_map names;      /* value name -> id */
    bz_value_id first; /* its own values are first .. first + names */
    bz_value_id *captures;
    int n_captures, captures_cap;
} scope;

typedef struct builder {
    bz_model *model;
    bz_arena *arena; /* the model's */
    bz_error *err;
    const bz_opset *opsets;
    int n_opsets;
    const bz_node *call;            /* whose attributes stand in for references; NULL outside functions */
    const function_proto *function; /* whose body is built */
    int depth;
} builder;

/* convert.c */
const bz_type *convert_type(builder *b, const Onnx__TypeProto *p);
int convert_tensor(builder *b, const Onnx__TensorProto *p, bz_tensor *t);
int convert_sparse(builder *b, const Onnx__SparseTensorProto *p, bz_tensor *t);
int convert_attr(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a); /* 1: left out */
const bz_opset *convert_opsets(builder *b, Onnx__OperatorSetIdProto **p, size_t n);

/* A length-delimited field that our schema does not know; NULL where absent. Repeated: the k-th. */
const uint8_t *unknown_field(const ProtobufCMessage *m, unsigned number, int k, size_t *size);
Onnx__AttributeProto *unpack_attribute(builder *b, const uint8_t *data, size_t size);
ProtobufCAllocator arena_allocator(bz_arena *arena);

/* graph.c */
bz_graph *build_graph(builder *b, scope *outer, const Onnx__GraphProto *p);

#endif
