/* training: one iteration of training as a model: forward layers in their training form, a loss, the layers of the backward pass,
 * and the update of the weights.
 *
 *   bz_training_derive    from an inference model
 *   bz_memory_predict     how much memory it needs, by class
 *
 * The result is a model like any other, written in ONNX: its layers have keys, costs and a graph. A forward operator that ONNX
 * has no gradient for becomes an operator of com.microsoft (as ONNX Runtime names it) or of benanza.training
 * (modelproc/ops_gradient.c). Weights, biases and states are inputs of that model, since they change; their new values are
 * results. So no library can prepare them ahead, and no layer is a constant because its weights are. */
#ifndef BZ_TRAINING_H
#define BZ_TRAINING_H

#include "modelproc/modelproc.h"

typedef enum { BZ_LOSS_AUTO, BZ_LOSS_CLASSES, BZ_LOSS_SQUARES } bz_loss;
typedef enum { BZ_SGD, BZ_MOMENTUM, BZ_ADAM, BZ_ADAMW, BZ_OPTIMIZERS } bz_optimizer;

int bz_optimizer_parse(const char *name, bz_optimizer *o); /* -1: none of them */
enum { BZ_OPTIMIZER_STATES = 2 };                          /* at most, tensors of a weight's shape */
int bz_optimizer_states(bz_optimizer o);

typedef struct bz_training_options {
    bz_optimizer optimizer;
    bz_loss loss; /* AUTO: by the shape of the result */
    bz_dtype
        dtype; /* UNDEFINED: as the file says; f16, bf16: work is done in this type, weights stay f32, in f16 the loss is scaled */
    bool fused; /* one update for all weights; else one for each */
    int parts; /* of the forward pass, of which all but the last are computed again for the backward pass; 0, 1: none */
} bz_training_options;

/* What a value of the iteration is, for its memory. */
typedef enum {
    BZ_HELD_INPUT,      /* the batch and its targets */
    BZ_HELD_WEIGHT,     /* weights, biases, running means: before and after the update the same memory */
    BZ_HELD_GRADIENT,   /* of weights */
    BZ_HELD_STATE,      /* of the optimizer; with a narrower type the weights in f32, too */
    BZ_HELD_ACTIVATION, /* made forward and read backward */
    BZ_HELD_REST,
    BZ_HELD_CLASSES
} bz_held;

typedef struct bz_weight {
    const char *name;
    bz_type type;
    bz_value_id value, gradient, updated; /* in the iteration's model; BZ_NO_VALUE: no gradient reaches it */
    int64_t elements;
} bz_weight;

typedef struct bz_training {
    bz_model *model;
    bz_layers *layers;   /* layers->phase says what each is for */
    const bz_held *held; /* [model->n_values] */
    const bz_weight *weight;
    int n_weights;
    bz_value_id loss;
    bz_value_id rate, step; /* inputs of the update: learning rate, and the iteration's number from 1 */
    const bz_model *from;   /* the model that `first` is of */
    const bz_tensor *const
        *first; /* [model->n_values] what an input is in the file: weights, running means. NULL: it is not there */
    const bz_value_id
        *next;          /* [model->n_values] what an input is in the next iteration: new weights, states. BZ_NO_VALUE */
    const bz_buf *file; /* the model as ONNX */
    bz_arena arena;
} bz_training;

/* `forward` is needed for this call only, its model for as long as somebody reads `first`. BZ_INCOMPLETE where an operator has no derivative: the sentence names the node. */
int bz_training_derive(const bz_layers *forward, const bz_training_options *options, bz_training **training,
                       bz_error *err);
void bz_training_free(bz_training *t);
/* Model i becomes its iteration. */
int bz_training_replace(bz_models *m, int i, const bz_training_options *options, bz_error *err);

/* ---- memory --------------------------------------------------------------------------------- */

const char *bz_held_name(bz_held h); /* "activations" */

/* Bytes that tensors take when layers run one after the other in the model's order. Views lie where their operand lies, new weights
 * and states where the old ones lay. Inside a convolution, which wants blocks of channels, its operands lie there twice; what else a library takes inside a call is not
 * in it. Recurrent layers keep what PyTorch keeps of each step on a processor, and give it back step by step; what was pooled and what Adam's step of a weight takes is as PyTorch has it. */
typedef struct bz_memory {
    int64_t peak, at_peak[BZ_HELD_CLASSES]; /* at_peak sums up to the peak */
    int64_t most[BZ_HELD_CLASSES];          /* of each class by itself, whenever that is */
    int64_t phase_peak[BZ_TRAIN_PHASES];
    int64_t kept; /* activations at the end of the forward pass */
    int peak_layer;
} bz_memory;

void bz_memory_predict(const bz_training *t, bz_memory *out);

/* What fits. Each row is asked for by its number of parts (bz_training_options). Where the batch is -1, *err says why. */
typedef struct bz_memory_fit {
    int parts;
    int64_t peak, flops, bytes; /* of the batch that is asked for */
    int64_t batch;              /* the largest whose peak fits; 0: none does; -1: the model has one batch only */
} bz_memory_fit;

int bz_training_fit(const char *path, const bz_infer_options *infer, const bz_training_options *options, int64_t memory,
                    bz_memory_fit *out, int n, bz_error *err);

/* ---- what the phases cost ------------------------------------------------------------------- */

typedef struct bz_phase_cost {
    const char *phase;
    int layers;
    int64_t macs, flops, bytes;
} bz_phase_cost;

void bz_training_costs(const bz_training *t, bz_phase_cost out[BZ_TRAIN_PHASES]);

#endif
