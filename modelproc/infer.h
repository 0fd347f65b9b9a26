/* The engine behind bz_layers_infer. Private to modelproc/. */
#ifndef BZ_INFER_H
#define BZ_INFER_H

#include "modelproc/op.h"

enum {
    MAX_INTS = 4096, /* elements of integer tensors whose values are followed */
    MAX_REALS = 256, /* the same for reals: scales and limits, not weights */
    MAX_NESTING = 64,
    MAX_WARNINGS = 32,
    N_REALS = 16,
    N_TENSORS = 16,
};

typedef struct {
    uint64_t bits; /* of the number */
    const char *text;
} real_text;

typedef struct {
    const bz_tensor *tensor;
    const data *values; /* or &NO_DATA */
} tensor_values;

struct infer {
    bz_layers *layers;
    bz_model *model;
    bz_arena *arena;
    bz_error *err;
    const bz_infer_options *options;
    bz_dim written_batch;    /* what the file says before --batch */
    bz_value_id batch_input; /* the first input that has a batch, or BZ_NO_VALUE */
    int batch_axis;          /* where */
    bool batch_named;        /* that dimension's name says so */
    bool *by_steps;          /* [n_values]: recurrent layers take it step by step */
    bool *lengths;           /* [n_symbols]: names a dimension of an input that is not its first */
    bool rebound;            /* the command line changed a dimension: what the file declares may be stale */
    bool sizes_wrong;        /* the error names --dim or --batch */
    bz_type *types;          /* [cap] by value */
    const data **values;     /* [cap] known values; &NO_DATA: tried and not to be had */
    bz_dim *tied;            /* [n_tied] by named symbol of the file: its number, or INT64_MIN where nobody gave one */
    int n_tied;
    bool *constant;      /* [cap] */
    bz_value_id *source; /* [cap] what a function's operand is in its caller; else itself */
    int64_t *stored;     /* [cap] bytes in the file of a constant that was dequantized from them; 0: its own */
    bz_dim *reordered;   /* [n_reordered] by value: channels that com.microsoft.nchwc.ReorderOutput leaves of it */
    int n_reordered, cap;
    op_memo ops;
    real_text reals[N_REALS];
    tensor_values tensors[N_TENSORS];
    int depth;
    int64_t budget; /* nodes that may still be looked at: functions can nest without end */
    bz_buf key;
};

extern const data NO_DATA;

int bind_inputs(infer *inf); /* bind.c */

/* batch.c: where the inputs have their batch; asked when the sizes on the command line are bound, --batch not yet. */
void batch_find(infer *inf);
bool batch_is_at(const infer *inf, bz_value_id input, int axis);
const char *batch_name(const infer *inf); /* in the file; NULL: none */

/* A batch that no result has left is none: the first dimension of a vector, of an image alone, of steps of a sequence. */
void bind_find_batch(infer *inf);
/* Warns where --batch had no effect: no input has a batch, or a result still has the one that the file says. */
void bind_check_batch(infer *inf);
int declared_fill(infer *inf, const bz_node *node, bz_value_id v, bz_type *t); /* bind.c */
void layer_finish(infer *inf, call *c, bz_layer *layer);                       /* layer.c */
void infer_warn(infer *inf, const char *text);
void infer_warn_sizes(infer *inf, const char *text); /* that names --dim or --batch */

#endif
