/* What the lowering functions share. Private to generator/. */
#ifndef BZ_GENERATOR_LOWER_H
#define BZ_GENERATOR_LOWER_H

#include "generator/generator.h"

#include <string.h>

enum { MAX_ALTERNATIVES = 8, MAX_STEPS = 72 };

typedef struct lowering {
    const bz_layer *layer;
    int arg;                          /* of the row that the layer has */
    bz_dtype wanted;                  /* by the user; BZ_UNDEFINED: as the model has it */
    bz_dtype dtype, dtype_w, dtype_y; /* of the layer's first operand, weights and result after the user's choice */
    bool quantize;
    bz_arena *arena;
    bz_alternative alternative[MAX_ALTERNATIVES];
    int n;
    bz_problem *step; /* [MAX_STEPS] of the alternative under construction */
    int n_steps;
    const char *why;
} lowering;

struct bz_lowered {
    const bz_layers *layers;
    bz_dtype dtype;
    bz_arena *arena;
    bz_lowering *wanted, *as_is; /* [layers->n], zeros where nobody has asked: in `dtype`, in the model's types */
};

const bz_lowering *lowered_layer(bz_lowered *l, int layer);
const bz_lowering *lowered_as_is(bz_lowered *l, int layer);

/* A function turns a layer into alternatives: it adds steps and closes each alternative with `done`.
 * It returns -1 with l->why set where the layer cannot be expressed. */
typedef int lower_function(lowering *l);

bz_problem *lower_step(lowering *l, bz_problem_kind kind); /* zeroed but for kind and data types */
/* Steps on tensors of these shapes: x summed to y; a product; a function of x, or its gradient; a function of a and b; a softmax, or its
 * gradient. */
void lower_sum(lowering *l, const bz_extent x, const bz_extent y);
bz_problem *lower_gemm_step(lowering *l, int64_t m, int64_t n, int64_t k);
bz_problem *lower_matrices(lowering *l, const bz_extent a, const bz_extent b);
bz_problem *lower_apply(lowering *l, bz_problem_kind kind, bz_fn fn, const bz_extent x);
void lower_combine(lowering *l, bz_fn fn, const bz_extent a, const bz_extent b);
void lower_softmax_of(lowering *l, bz_problem_kind kind, const bz_extent x, int64_t axis);
void lower_post(bz_problem *p, bz_fn fn, float alpha, float beta);
int lower_done(lowering *l); /* checks the steps; -1 where one is no valid problem */
int lower_no(lowering *l, const char *why);
/* Why kinds are left to a copy that frameworks compute in one pass and no library here does. */
#define ONE_PASS "a framework does it in one pass, libraries only in several calls"

int lower_copy(lowering *l); /* a copy of the layer's bytes, modelled */
/* Adds a copy that stands in where no backend has the calls of the alternatives so far; `done_or_copy` closes one first. */
int lower_or_copy(lowering *l);
int lower_done_or_copy(lowering *l);

/* Whether the first operand has so few rows that reading the weights is all of a product's time. */
bool lower_has_few_rows(const lowering *l);

/* Behind the alternative that is a recurrent layer's call, forward: another one by products, as frameworks compute it, where there is room for so many. */
int lower_by_steps(lowering *l, bool constant);

/* Quantized products take u8 and i8 to u8, or to what the layer's result is; those of 8-bit floats make f16. */
void lower_product_types(const lowering *l, bz_problem *p);
bool lower_is_narrow(bz_dtype wanted); /* products of it lie between layers in f16 */

/* Operand k if it is there and a tensor. */
const bz_type *lower_in(const lowering *l, int k);
/* Shape of a tensor, with leading ones up to `rank`; -1 where it does not fit a problem. */
int lower_extent(const bz_type *t, int rank, int64_t *extent);
/* The tensor with its channels second, as problems have them, where the layer's lie last (`layout` nhwc). */
const bz_type *lower_channels(const lowering *l, const bz_type *t);
int64_t lower_int(const lowering *l, const char *name, int64_t otherwise);
bz_dtype lower_dtype(bz_dtype has, bz_dtype wanted); /* of an operand after the user's choice */
const char *lower_word(const lowering *l, const char *name, const char *otherwise);
bool lower_real(const lowering *l, const char *name, float *v);          /* false where absent or no number */
float lower_float(const lowering *l, const char *name, float otherwise); /* an attribute, as the file has it */
int lower_ints(const lowering *l, const char *name, int64_t *v,
               int n); /* -1 unless there are exactly n, none negative */

bool lower_has_result(const lowering *l, int k); /* the node names it: somebody may read it */

/* Fills in what the layer says of a convolution (the last step), and adds a pooling; -1 where it has no benchmark. */
int lower_conv_geometry(lowering *l, bz_problem *p, const bz_type *x, const bz_type *w);
int lower_pool_step(lowering *l, bz_problem_kind kind, bz_pool_mode mode, const bz_type *x, const bz_type *y);

/* Types that libraries compute in, and our loops. Bools are bytes of 0 and 1; strings are moved at most. */
enum {
    FLOATS = 1, /* f32, f16, bf16 */
    DOUBLE = 2,
    BYTES = 4, /* i8, u8 */
    BOOLS = 8,
    WORDS = 16,  /* i32 */
    LONGS = 32,  /* i64 */
    OTHERS = 64, /* integers of 16 bits, unsigned ones */
    NUMBERS = WORDS | LONGS | DOUBLE,
    ALL = FLOATS | BYTES | BOOLS | NUMBERS | OTHERS,
};

/* A kind of layer, with the function that turns it into problems. */
typedef struct lower_row {
    const char *kind;
    lower_function *lower; /* NULL: no library call computes it, and `why` says what stands in the way */
    int arg, types;        /* of a library */
    int ours;              /* that only loops of ours take, which devices have not: a copy stands in there */
    const char *why;
    bool no_copy; /* its work lies in neither products nor bytes: no copy stands in */
} lower_row;

/* Each at the end of its file, and ends with a row without kind. */
extern const lower_row lower_product_rows[], lower_experts_rows[], lower_attention_rows[], lower_elementwise_rows[],
    lower_layer_rows[], lower_move_rows[], lower_training_rows[], lower_sample_rows[];

/* The function that a kind of layer computes, where it has a derivative; else BZ_FN_NONE. */
bz_fn lower_function_named(const char *kind);

/* The layers as attention in one call, where together they are one: two products, between them a softmax, numbers and
 * at most one mask. -1, and nothing is said, where they are not. */
int lower_attention_group(lowering *l, const bz_layers *layers, const int *layer, int n);

#endif
