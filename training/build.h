/* An iteration under construction. Private to training/.
 *
 * Rules make nodes by names of values. A forward layer's operand k is grad_x(g, k), its result grad_y(g, k), the gradient of
 * result k grad_dy(g, k). A rule gives each operand that wants one its gradient, of the operand's shape: grad_give. */
#ifndef BZ_TRAINING_BUILD_H
#define BZ_TRAINING_BUILD_H

#include "training/training.h"

#define BZ_LOSS_SCALE 65536.0 /* what PyTorch's scaler of gradients begins with */
enum { GRAD_KEPT = 4, GRAD_OPERANDS = 16 };

typedef struct build build;
typedef struct grad grad;

/* The derivative of operators. */
typedef struct derivative {
    const char *ops, *domain; /* operators of one way; domain NULL: ai.onnx */
    int (*back)(grad *g);     /* NULL: no gradient goes through it, as through Shape or Floor */
    int (*forward)(grad *g);  /* writes the layer in its training form; NULL: as it is */
    bool uses_y;              /* functions of one value: their gradient is computed from the result */
} derivative;

typedef struct derivative_table {
    const derivative *row;
    int n;
} derivative_table;
#define DERIVATIVES(rows)                                                                                              \
    {                                                                                                                  \
        rows, (int)(sizeof(rows) / sizeof *(rows))                                                                     \
    }
extern const derivative_table derivatives_elementwise, derivatives_shape, derivatives_product, derivatives_layer,
    derivatives_sample, derivatives_norm;

/* A forward layer, in functions also, in the order in which it runs. */
typedef struct step {
    const bz_layer *layer;
    const derivative *row;
    const char *kept[GRAD_KEPT]; /* what the training form makes besides, by name */
    int part;                    /* of the forward pass, where it is cut */
    struct slices *slices;       /* of a Slice: those that cut the same value into all of its parts; NULL */
} step;

/* Slices that lie side by side along an axis, and leave nothing out: together they are a Split. */
typedef struct slices {
    step **of;   /* [n] by where they begin */
    step *first; /* in the order in which they run */
    int n, axis;
} slices;

/* A gradient that is yet to be added to what is there. */
typedef struct given {
    bz_value_id to;
    const char *value;
} given;

/* A layer of a function that is written out as several. */
typedef struct written {
    const char *function; /* NULL: it is none */
    bz_value_id x;        /* the function's operand */
    bool last, by_tanh;   /* makes the result */
    /* of a normalization */
    bz_value_id scale, shift;
    int64_t axis, groups;
    double epsilon;
    /* of a variance */
    bz_value_id mean, difference;
    double factor; /* of its gradient, which is that of the result times the difference */
} written;

struct build {
    const bz_layers *from;
    const bz_training_options *options;
    bz_arena *arena;
    bz_error *err;
    int opset;
    bz_draft draft;
    bz_map names, constants; /* names in use; constants by their values -> index */
    const char **constant_name;
    int n_constants;
    bz_train_phase phase;
    bz_buf phases;     /* a byte for each node */
    const char *layer; /* whose nodes are made: begins their names */
    step *steps;
    int n_steps;
    bz_value_id *same; /* [n_values] the value that it is: through calls of functions, and shared weights */
    const char **name; /* [n_values] in the iteration, NULL until it is needed */
    const char **grad; /* [n_values] what its gradient has come to */
    char *needs;       /* [n_values] a gradient: weights, and what depends on them */
    char *trained;     /* [n_values] */
    bz_value_id
        *turned; /* [n_values] the weight that it is the transpose of, which products read as it lies; BZ_NO_VALUE */
    char *state; /* [n_values] running means and variances */
    bz_value_id *order; /* trained ones in the order of their first use */
    int n_order;
    const char **updated;     /* [n_values] name of the new value of a weight or state */
    const char **master;      /* [n_values] of a trained one: the name of the input, before it is made narrow */
    bool again;               /* forward layers are computed once more */
    bool wide;                /* loss and update are computed in the model's own type */
    const char **weight_grad; /* [n_values] the gradient of a weight as the backward pass leaves it */
    written *written;         /* [from->n] */
    given *given;             /* by the layer at hand: they are added when all of them are there */
    int n_given;
    step *late; /* the sum of a product and its bias whose bias has no gradient yet; NULL */
    const char *loss, *rate, *step;
    bz_dtype loss_type;
};

struct grad {
    build *b;
    step *s;
    const bz_layer *l;
};

/* ---- values ------------------------------------------------------------------------------------ */

bz_value_id grad_id(const build *b, bz_value_id v); /* the value that v is */
const char *grad_name(build *b, bz_value_id v);     /* "" for one that was left out */
const char *grad_fresh(build *b, const char *wanted);

static inline bool grad_has(const grad *g, int k)
{
    return k < g->l->n_in && g->l->node->in[k] >= 0;
}
const char *grad_x(grad *g, int k);
const char *grad_last(grad *g, int k); /* the same, as the last of a node's operands: NULL where it is not there */
const char *grad_y(grad *g, int k);
const char *grad_dy(grad *g, int k); /* NULL: none */
bool grad_wants(grad *g, int k);
void grad_add(build *b, bz_value_id v, const char *value);
void grad_added(
    build *b); /* gradients of several uses are added as they come, behind all of a layer's, as frameworks do */
/* These return 0, so that a rule can end with one. */
int grad_give(grad *g, int k, const char *value);
int grad_give_results(grad *g, const char **out, int n_out); /* out[k] is the gradient of operand k */
const char *grad_keep(grad *g, int slot, const char *what);  /* names a result that the forward node does not name */
static inline const bz_type *grad_type(const grad *g, int k)
{
    return &g->l->in[k];
}

/* ---- nodes ------------------------------------------------------------------------------------- */

/* One result. `op`: "Mul", "ms:GatherGrad", "own:ConvData". Operands up to NULL; "" is left out. */
const char *grad_node(build *b, const char *op, ...) __attribute__((sentinel));
void grad_nodes(build *b, const char *op, const char *const *in, int n_in, const char **out, int n_out);
#define GRAD_INT(b, name, v)     bz_draft_attr_int(&(b)->draft, name, v)
#define GRAD_INTS(b, name, v, n) bz_draft_attr_ints(&(b)->draft, name, v, n)
#define GRAD_REAL(b, name, v)    bz_draft_attr_real(&(b)->draft, name, v)
#define GRAD_TEXT(b, name, v)    bz_draft_attr_text(&(b)->draft, name, v)

/* The forward layer in its place, under its name. */
void grad_layer(const grad *g, const char *op, const char *domain, const char *const *in, int n_in,
                const char *const *out, int n_out);
/* The forward layer as it is, with results of these names (NULL: its own), `extra` of them behind. */
int grad_copy(grad *g, const char *op, const char *domain, const char *const *extra, int n_extra);
void grad_copy_attrs(grad *g, const char *without);
void grad_copy_attr(grad *g, const char *name); /* where it is there */

/* ---- constants ----------------------------------------------------------------------------------- */

const char *grad_ints(build *b, const int64_t *v, int n);
const char *grad_scalar(build *b, bz_dtype dtype, double v);
bz_dtype grad_narrow(const build *b, bz_dtype t); /* the type of activations where the model has this one */

/* ---- what many rules need -------------------------------------------------------------------------- */

const char *grad_reshape(build *b, const char *x, const bz_type *to);
const char *grad_reshape_dims(build *b, const char *x, const int64_t *dims, int n);
const char *grad_cast(build *b, const char *x, bz_dtype to);
const char *grad_scaled(build *b, const char *x, bz_dtype dtype, double factor); /* x itself where that is 1 */
const char *grad_sum_axes(build *b, const char *x, const int64_t *axes, int n, bool keep);
const char *grad_transpose(build *b, const char *x, const int64_t *perm, int n);
/* A gradient of shape `from`, for what was broadcast to that from `to`. */
const char *grad_reduce(build *b, const char *x, const bz_type *from, const bz_type *to);
const char *grad_zeros(build *b, const bz_type *like);

const int64_t *grad_param(const grad *g, const char *name, int *n); /* of the layer's key; NULL */
int64_t grad_param_int(const grad *g, const char *name, int64_t otherwise);
double grad_param_real(const grad *g, const char *name, double otherwise);
bool grad_number(const grad *g, int k, double *out);   /* of an operand that is there; false: it is not known ahead */
bool grad_is_all(const grad *g, int k, double number); /* all elements of it; false also where it is trained */
const char *grad_param_text(const grad *g, const char *name, const char *otherwise);

int grad_fail(const grad *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- the parts of an iteration, in order ------------------------------------------------------------- */

int weights_find(build *b); /* weights.c: what is trained */
const derivative *derivative_find(const bz_node *node);
void slices_find(build *b);                                   /* rules_shape.c */
void sum_late(build *b);                                      /* rules_elementwise.c: what b->late is to do yet */
int written_find(build *b);                                   /* written.c: functions that several layers write out */
const written *written_at(const build *b, const bz_layer *l); /* NULL: the layer is in none */
bool written_is_norm(const written *w);                       /* runs as one layer when it is trained */
void written_forward(grad *g, const written *w);
void written_back(grad *g, const written *w);
int forward_put(build *b, step *s); /* derive.c: the layer in its training form */
void checkpoint_cut(build *b);
int checkpoint_again(build *b, int last);
int loss_build(build *b);             /* loss.c */
void update_build(build *b);          /* update.c */
void held_find(bz_training *t);       /* held.c: what each value is for */
bool held_pools(const bz_node *node); /* its operand is kept */

#endif
