/* onnx: an ONNX file -> a model in memory, and back.
 *
 * bz_model_load reads the file's structure; weights stay on disk and are read one tensor at a time,
 * when somebody asks (bz_tensor_ints, bz_tensor_reals). Cost follows the graph, not the weights.
 * Everything a file says is checked here: after a successful load every index is in range, every
 * name is resolved, nodes stand in topological order, and no tensor has more elements than
 * INT64_MAX. Names may still hold any bytes: clean or escape them where they are printed.
 *
 * A file with weights stays open until bz_model_free. It may be replaced by another one meanwhile;
 * when somebody cuts it short, reading what is gone fails.
 *
 * All memory belongs to the model and goes with bz_model_free. */
#ifndef BZ_ONNX_H
#define BZ_ONNX_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- shapes -------------------------------------------------------------------------------- */

/* A dimension, or an element of a shape that is computed: a number, or a symbol, which stands for a
 * number that the file does not tell. Symbols live at the bottom of the range, where no number of
 * interest is; equal symbols are equal numbers. */
typedef int64_t bz_dim;
#define BZ_SYMBOL_END  (INT64_MIN / 2)
#define BZ_SYMBOL_LAST (BZ_SYMBOL_END - 1) /* no model gets to it */
static inline bool bz_is_symbol(bz_dim d)
{
    return d < BZ_SYMBOL_END;
}

enum { BZ_MAX_RANK = 64 };                 /* a tensor with more dimensions is refused */
#define BZ_MAX_DIM      ((int64_t)1 << 48) /* and so is one with a larger dimension */
#define BZ_MAX_ELEMENTS ((int64_t)1 << 55) /* or with more elements: their bits can still be counted */
/* Fails for such dimensions, and for negative ones. Those that are 0 do not make up for others: the
 * product of any of them fits. Symbols pass. */
int bz_dims_check(const bz_dim *dims, int rank, bz_error *err);

typedef enum {
    BZ_TYPE_NONE,
    BZ_TYPE_TENSOR,
    BZ_TYPE_SPARSE,
    BZ_TYPE_SEQUENCE,
    BZ_TYPE_OPTIONAL,
    BZ_TYPE_MAP
} bz_type_kind;

typedef struct bz_type {
    bz_type_kind kind;
    bz_dtype dtype;             /* tensor: element; map: key */
    int rank;                   /* -1: not known */
    const bz_dim *dims;         /* [rank] */
    const struct bz_type *elem; /* of a sequence, optional or map */
} bz_type;

/* ---- the model ----------------------------------------------------------------------------- */

typedef struct bz_str {
    const char *data; /* zero-terminated, but zeros may also occur inside */
    size_t len;
} bz_str;

typedef struct bz_tensor {
    const char *name;
    bz_dtype dtype;
    int rank;
    const int64_t *dims;                      /* [rank], all >= 0; not NULL for a scalar, either */
    int64_t n;                                /* elements */
    const struct Onnx__TensorProto *proto;    /* private: what the file says of it */
    const struct bz_tensor *values, *indices; /* of a sparse tensor; else NULL */
    const char *external; /* file that holds the payload, relative to the model's folder; else NULL */
    int64_t external_offset, external_size;
} bz_tensor;

typedef enum {
    BZ_ATTR_NONE,
    BZ_ATTR_FLOAT,
    BZ_ATTR_INT,
    BZ_ATTR_STRING,
    BZ_ATTR_TENSOR,
    BZ_ATTR_GRAPH,
    BZ_ATTR_FLOATS,
    BZ_ATTR_INTS,
    BZ_ATTR_STRINGS,
    BZ_ATTR_TENSORS,
    BZ_ATTR_GRAPHS,
    BZ_ATTR_TYPE,
} bz_attr_kind;

typedef struct bz_graph bz_graph;

typedef struct bz_attr {
    const char *name;
    bz_attr_kind kind;
    int n; /* of the lists */
    union {
        float f;
        int64_t i;
        bz_str s;
        const float *floats;
        const int64_t *ints;
        const bz_str *strings;
        const bz_tensor *tensor;
        const bz_tensor *tensors;
        bz_graph *graph;
        bz_graph **graphs;
        const bz_type *type;
    };
} bz_attr;

typedef int32_t bz_value_id; /* index into model->values */
#define BZ_NO_VALUE (-1)     /* an optional operand that was left out */

typedef struct bz_node {
    const char *name, *op, *domain; /* never NULL; name may be ""; domain "ai.onnx" is given as "" */
    int opset;                      /* version of its domain; 0 when the file imports no such domain */
    int n_in, n_out, n_attrs;
    const bz_value_id *in, *out;
    const bz_attr *attrs;
    int function; /* index of the local function it calls, or -1 */
} bz_node;

struct bz_graph {
    const char *name;
    bz_node *nodes; /* topological order: stable, the file's order where that is one */
    int n_nodes;
    int n_inputs, n_outputs, n_captures;
    bz_value_id *inputs, *outputs; /* inputs without those that are initializers with the same name */
    bz_value_id *captures;         /* values of outer graphs that nodes in here read */
};

typedef struct bz_value {
    const char *name;
    const bz_type *declared; /* what the file says of it, or NULL */
    const bz_tensor *init;   /* the constant it starts with, or NULL */
} bz_value;

typedef struct bz_opset {
    const char *domain;
    int version;
} bz_opset;

typedef struct bz_model {
    const char *path, *producer;
    int64_t ir_version;
    int opset; /* of the default domain */
    bz_graph *graph;
    bz_value *values;
    int n_values;
    const char **symbols; /* names of dimensions; symbol k is INT64_MIN + k */
    int n_symbols;
    uint64_t file_size;
    bz_arena arena;
    struct bz_model_file *file; /* private */
} bz_model;

/* Opens and checks. On failure *model is NULL. `path` is copied. */
int bz_model_load(const char *path, bz_model **model, bz_error *err);

/* The same from memory, which must outlive the model; `name` stands in for the path in messages. No
 * external data is found. */
int bz_model_parse(const void *data, size_t size, const char *name, bz_model **model, bz_error *err);

void bz_model_free(bz_model *model); /* NULL is fine */

/* The body of the local function that `call` calls, made anew with values of its own; the call's
 * attributes are put in. The graph's inputs and outputs correspond to the call's (fewer on the
 * call: the rest were left out). Adds to model->values. */
int bz_model_inline(bz_model *model, const bz_node *call, bz_graph **body, bz_error *err);

/* A new symbol without a name, for a dimension that depends on data. */
bz_dim bz_model_symbol(bz_model *model);

/* "N" for a named symbol, "?7" for others. `out` holds at least 64 bytes. */
const char *bz_symbol_text(const bz_model *model, bz_dim symbol, char *out);

const bz_attr *bz_node_attr(const bz_node *node, const char *name); /* NULL where absent */

/* What a node waits for: its operands (BZ_NO_VALUE where left out) and then what its bodies capture.
 * BZ_READS_END behind the last. */
#define BZ_READS_END INT32_MIN
bz_value_id bz_node_reads(const bz_node *node, int k);

/* ---- payloads on demand -------------------------------------------------------------------- */

/* Reads all t->n elements of an integer or bool tensor (of a real one) into out. Meant for small
 * ones: shape operands, axes, scales. Fails when the payload is missing, short, or external and not
 * to be had. */
int bz_tensor_ints(const bz_model *model, const bz_tensor *t, int64_t *out, bz_error *err);
int bz_tensor_reals(const bz_model *model, const bz_tensor *t, double *out, bz_error *err);
/* Bytes of a tensor of any type of whole bytes, as its elements lie in memory, however large it is. A sparse tensor is an error. */
int bz_tensor_bytes(const bz_model *model, const bz_tensor *t, void *out, bz_error *err);

/* Whether its payload is in a file that is not there: models are handed on without their weights. */
bool bz_tensor_is_away(const bz_model *model, const bz_tensor *t);

/* ---- from nothing -------------------------------------------------------------------------- */

/* A model with names and operators of the author's choice. A zeroed one is empty. Attributes belong to the node begun last;
 * NULL among operands and results is one that is left out. */
typedef struct bz_draft {
    bz_buf graph, node, opsets;
} bz_draft;

void bz_draft_input(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims);
/* BZ_UNDEFINED: of a type that is not told. */
void bz_draft_output(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims);
void bz_draft_tensor(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims, const void *data,
                     size_t size); /* a constant: its elements as they lie in memory */
void bz_draft_ints(bz_draft *d, const char *name, const int64_t *v, int n);
void bz_draft_node(bz_draft *d, const char *op, const char *domain, const char *name, const char *const *in, int n_in,
                   const char *const *out, int n_out);
void bz_draft_attr_int(bz_draft *d, const char *name, int64_t v);
void bz_draft_attr_ints(bz_draft *d, const char *name, const int64_t *v, int n);
void bz_draft_attr_real(bz_draft *d, const char *name, double v);
void bz_draft_attr_text(bz_draft *d, const char *name, const char *text);
/* A copy of one of `model`'s; BZ_INCOMPLETE for graphs, types, and tensors whose payload is not to be had. */
int bz_draft_attr(bz_draft *d, const bz_model *model, const bz_attr *attr, bz_error *err);
void bz_draft_opset(bz_draft *d, const char *domain, int version);
void bz_draft_end(bz_draft *d, int64_t ir_version, const char *name,
                  bz_buf *out); /* appends the file; `d` is empty then */
void bz_draft_free(bz_draft *d);

/* ---- back to a file ------------------------------------------------------------------------ */

typedef struct bz_strip_result {
    int64_t tensors, kept; /* payloads dropped, payloads small enough to keep */
    uint64_t in_bytes, out_bytes;
} bz_strip_result;

/* Writes the model at `in` without its weights: every initializer and constant of more than `keep`
 * bytes becomes an all-zero sparse tensor of the same shape and type, which is valid ONNX and takes
 * no room. (Not before operator set 11 for constants, and not strings: these are kept.) Fields that
 * are newer than our schema pass through. `out` is written whole or not at all. */
int bz_model_strip(const char *in, const char *out, uint64_t keep, bz_strip_result *result, bz_error *err);

/* Some nodes of the main graph as a model of their own, packed into `out`: with what constants they need, and nothing that tells
 * where they are from. Names are numbers, so that the same nodes of two models give the same bytes. What they read of others is its input, what
 * others read of them its output; both have the types given. Constants above `keep` bytes, and unless that is all, weights whose file is not there, are filled with one number, by the
 * operator ConstantOfShape, so that any runtime takes the file. Fails with BZ_INCOMPLETE where a node runs a graph of its own, where a type is
 * open, or where the model is older than that operator (set 9). */
typedef struct bz_slice {
    const int *node; /* [n], ascending */
    int n;
    const bz_type *types; /* [model->n_values] */
    const bool *constant; /* [model->n_values]: depends on no input of the model */
    uint64_t keep;
} bz_slice;

int bz_model_slice(bz_model *model, const bz_slice *slice, bz_buf *out, bz_error *err);

#endif
