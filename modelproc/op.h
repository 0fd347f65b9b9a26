/* Operators: one row each, in the ops_*.c file of their family. A row says what the operator is, how
 * shapes flow through it, what it costs, and what belongs into its key. Private to modelproc/.
 *
 * A shape rule sees the call (`c`), sets the type of every output, and notes the parameters that
 * make the layer what it is (normalized: auto_pad resolved, defaults filled in). */
#ifndef BZ_OP_H
#define BZ_OP_H

#include "modelproc/modelproc.h"

typedef struct op op;
typedef struct call call;
typedef struct infer infer;

/* Values of a small tensor, in row-major order: integers and bools (elements may be symbols), or
 * reals. Exactly one of i and r is set. */
typedef struct data {
    int64_t n;
    const int64_t *i;
    const double *r;
} data;

typedef int rule(call *c);
typedef void costs(call *c);

enum {
    OP_RANKLESS = 1,    /* the rule copes with operands of unknown rank or that are no tensors */
    OP_RANDOM = 2,      /* the result is not constant although the operands are */
    OP_KEEPS = 4,       /* the result has the element type of operand 0, also where ranks are not known */
    OP_KEEPS_ALL = 16,  /* so have all its results */
    OP_KEEPS_LAST = 32, /* the result has that of the last operand */
    OP_UNPRICED = 8,    /* what it does inside is not known: never priced, whatever its shapes */
};

struct op {
    const char *name, *domain; /* domain NULL: ai.onnx */
    const char *kind;
    bz_class class;
    rule *shape;
    rule *eval;  /* computes output values when the values of all operands are known; may be NULL */
    costs *cost; /* adds to c->macs and c->flops what `flops` does not cover; may be NULL. Runs when all
                    types are static and there is a first result; what operands tell alone, shape may add */
    int flops;   /* operations per element of the larger of first operand and first result */
    int flags;
    /* What the key says of operands: a label for each, "-" for one that is a parameter and not data,
     * "..." behind the last label repeats it. Behind ">" the results that operands and parameters
     * do not determine. "x w b", "x - > y". */
    const char *labels;
    int64_t arg;            /* for rules that serve several rows */
    double (*real)(double); /* for eval of unary functions */
    int64_t (*integer)(int64_t);
};

enum { MAX_PARAMS = 16 };

struct call {
    infer *inf;
    const bz_node *node;
    const op *op;
    bz_arena *arena;
    bz_error *err;
    bz_type *in;  /* [node->n_in]; kind NONE where left out */
    bz_type *out; /* [node->n_out]; to be set by the rule */
    const data **out_data;
    int n_params;
    bool view;    /* set by the shape rule: with these parameters the result is operand 0 as it lies */
    bool failed;  /* an operand is not what the rule needs: the rule goes on, its results count for nothing */
    bool skipped; /* the shape rule did not run: no results, or an operand's rank is not known */
    int64_t macs, flops;
    int64_t bytes; /* -1: operands and results, each once */
    bz_body *bodies;
    int n_bodies;
    bz_param params[MAX_PARAMS]; /* [n_params]; the rest is not initialized, so it stands last */
};

#define QONNX "qonnx.custom_op.general"

typedef struct op_table {
    const op *rows;
    int n;
} op_table;
#define OP_TABLE(rows)                                                                                                 \
    {                                                                                                                  \
        rows, (int)(sizeof(rows) / sizeof *(rows))                                                                     \
    }

extern const op_table ops_elementwise, ops_shape, ops_constant, ops_index, ops_reduce, ops_matmul, ops_conv, ops_norm,
    ops_rnn, ops_quant, ops_vision, ops_signal, ops_sequence, ops_control, ops_random, ops_loss, ops_text, ops_ml,
    ops_microsoft, ops_microsoft_block, ops_microsoft_cache, ops_microsoft_nchwc, ops_microsoft_ordered, ops_state,
    ops_training, ops_gradient, ops_removed;

/* ---- operands ------------------------------------------------------------------------------ */

/* Operand k, or NULL when it was left out. */
static inline const bz_type *in_type(const call *c, int k)
{
    return k < c->node->n_in && c->in[k].kind != BZ_TYPE_NONE ? &c->in[k] : NULL;
}
/* Operand k, a tensor of that rank, or of any. Where it is none, the call has failed, and the rule may go on as if nothing had
 * happened: it gets a tensor of ones. The first failure of a call is the one that is told. */
const bz_type *need(call *c, int k, int rank);
static inline const bz_type *need_any(call *c, int k)
{
    return need(c, k, -1);
}
/* Likewise fails unless a and b have the same element type (unknown ones pass); returns -1 then. */
int same_dtype(call *c, const bz_type *a, const bz_type *b);

/* Values of operand k if they are known and few; else NULL. The second form wants integers and also
 * yields their number (elements may be symbols). */
const data *in_data(call *c, int k);
const int64_t *in_ints(call *c, int k, int64_t *n);
const data *tensor_data(call *c, const bz_tensor *t); /* the same of an attribute */

/* ---- attributes ---------------------------------------------------------------------------- */

int64_t attr_int(const call *c, const char *name, int64_t otherwise);
double attr_float(const call *c, const char *name, double otherwise);
const char *attr_text(const call *c, const char *name, const char *otherwise);
const int64_t *attr_ints(const call *c, const char *name, int *n); /* NULL and n = 0 where absent */
/* Axis in -rank … rank - 1 made 0 … rank - 1; fails outside. */
int fix_axis(call *c, int64_t axis, int rank, int *fixed);
/* A list of axes from operand k (if k >= 0 and it is there) or else from the attribute. Returns the
 * number, 0 where neither is given, -1 on failure, -2 where the operand's values are not known. */
int axes_of(call *c, int k, const char *attr, int rank, int *axes);

/* ---- results ------------------------------------------------------------------------------- */

/* Results may be left out. These return 0, so that a rule can end with one. */
int set_out(call *c, int k, bz_dtype dtype, int rank, const bz_dim *dims); /* copies dims */
int set_type(call *c, int k, const bz_type *t);
int set_unknown(call *c, int k, bz_dtype dtype);            /* tensor of unknown rank */
void set_ints(call *c, int k, const int64_t *v, int64_t n); /* known values of result k */
void set_reals(call *c, int k, const double *v, int64_t n);
bz_dim new_symbol(call *c);
bz_dim *new_dims(call *c, int rank);

/* For rules that take elements of operand 0 in its order: a result with as many has all of them, and nothing moves. */
void view_if_whole(call *c);

int rule_same(call *c); /* result 0 is like operand 0, further results too */
int rule_none(call *c); /* results unknown but for what the file declares */

/* ---- arithmetic on dimensions that may be symbols ------------------------------------------- */

/* Unknown when an operand is a symbol (but 0, 1 and equal symbols are understood). */
bz_dim dim_add(call *c, bz_dim a, bz_dim b);
bz_dim dim_sub(call *c, bz_dim a, bz_dim b);
bz_dim dim_mul(call *c, bz_dim a, bz_dim b);
bz_dim dim_div(call *c, bz_dim a, bz_dim b); /* floor; b must not be 0 */
/* Product of dims[from … to - 1]; fails when it exceeds what memory could hold. */
int dim_product(call *c, const bz_dim *dims, int from, int to, bz_dim *product);
/* What holds of both types: equal dimensions stay, others become symbols. */
bz_type type_join(call *c, const bz_type *a, const bz_type *b);
/* Numpy's broadcasting of two shapes; fails when they do not fit. */
int broadcast(call *c, const bz_type *a, const bz_type *b, int *rank, bz_dim *dims);

/* ---- the layer's parameters ----------------------------------------------------------------- */

void param_int(call *c, const char *name, int64_t v);
void param_ints(call *c, const char *name, const int64_t *v, int n);
void param_axes(call *c, const char *name, const int *v, int n);
void param_real(call *c, const char *name, double v); /* shortest text */
void param_text(call *c, const char *name, const char *text);

/* ---- the rest ------------------------------------------------------------------------------- */

/* "node 'name' (Op): …"; returns -1. */
int call_fail(call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Infers a body graph with these types (and values, may be NULL) for its inputs, and files its
 * layers in *body. Results are read with value_type. */
int infer_body(call *c, const bz_graph *g, const bz_type *in, const data *const *values, int n_in, bz_body *body);
const bz_type *value_type(const call *c, bz_value_id v);
const data *value_data(call *c, bz_value_id v);
bz_model *call_model(const call *c);
int64_t call_trips(const call *c); /* --trips, or 0 */

/* Elements, or -1. */
static inline int64_t elements(const bz_type *t)
{
    return t ? bz_type_elements(t) : -1;
}

typedef struct {
    const char *name, *domain;
    const op *op;
} op_memo_entry;

enum { MEMO = 256 };
typedef struct {
    op_memo_entry entry[MEMO];
} op_memo;

const op *op_find(op_memo *memo, const char *domain, const char *name); /* NULL: not known */
int op_count(const char *domain);                                       /* operators that are known */

#endif
