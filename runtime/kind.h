/* Kinds of problems. A row says everything that the runtime knows of a kind: its members, the tensors that it touches, what
 * it costs, which problems are valid, and what it computes. The rows stand in kind_*.c; what prints, reads, checks and writes
 * problems (problem*.c), counts their bytes (operand.c) and tells their results (reference.c) walks them. Private to
 * runtime/. */
#ifndef BZ_KIND_H
#define BZ_KIND_H

#include "runtime/values.h"

#include <math.h>

static inline double bz_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

typedef enum {
    BZ_FORM_END,
    BZ_FORM_EXTENT,  /* shape, ends with 0 */
    BZ_FORM_SPATIAL, /* a number for each spatial dimension */
    BZ_FORM_PADS,    /* two for each */
    BZ_FORM_PERM,    /* a number for each dimension of the first shape */
    BZ_FORM_SIZES,   /* as a shape, longer */
    BZ_FORM_INT,
    BZ_FORM_FLAG,
    BZ_FORM_REAL,
    BZ_FORM_FN,
    BZ_FORM_NAME, /* an enumeration; `names` in its order */
} bz_form;

typedef struct bz_member {
    const char *name;
    bz_form form;
    size_t at;
    double usual;             /* the value where none is given; NaN: it must be given */
    bool optional;            /* not printed where it has its usual value */
    const char *const *names; /* texts of an enumeration, ends with NULL */
    const char *prefix;       /* of its enumerators in C: BZ_POOL_ */
} bz_member;

enum { BZ_MAX_MEMBERS = 11 };

typedef struct bz_operand_list {
    bz_operand *item;
    int n;
} bz_operand_list;

/* Functions that are NULL stand for what the comment says. */
typedef struct bz_kind {
    const char *name;
    const char *field;                /* of the problem's union, where it is not the name */
    unsigned traits;                  /* bz_trait */
    bz_member member[BZ_MAX_MEMBERS]; /* shapes stand before what depends on their rank */

    /* Inputs and weights into the list, the result's shape into y. NULL: the member x, to y or else to x's shape. */
    void (*operands)(const bz_problem *p, bz_operand_list *l, int64_t *y);
    /* Numbers are in their range already; results too large are found out behind it. NULL: any shapes will do. */
    int (*check)(const bz_problem *p, bz_error *err);

    /* Operations: 2 · depth for each element of the result, or `each`, or as the function says; `list` are the operands
     * and y is the result's count. */
    double (*depth)(const bz_problem *p); /* products that are summed up in an element; NULL: none */
    double each;
    double (*flops)(const bz_problem *p, const bz_operand *list, double y);

    /* The element of the result that r tells (r->result, where there are several), by the definition. NULL: nobody defined
     * it. */
    bz_expected (*at)(bz_reference *r);
    /* A value for element `at` of the operand with indices, from a random number. */
    double (*index)(const bz_problem *p, int64_t at, uint64_t random);
    double (*cost)(const bz_problem *p); /* multiply-adds that this takes; NULL: as many as the operations tell */
} bz_kind;

#define BZ_KIND_ROW(NAME, name) extern const bz_kind bz_kind_##name;
BZ_KINDS(BZ_KIND_ROW)
#undef BZ_KIND_ROW

extern const bz_kind *const bz_kinds[BZ_PROBLEM_N_KINDS];

/* ---- members -------------------------------------------------------------------------------- */

#define BZ_AT(field) offsetof(bz_problem, field)
#define BZ_REQUIRED(n, f, field)                                                                                       \
    {                                                                                                                  \
        .name = (n), .form = BZ_FORM_##f, .at = BZ_AT(field), .usual = NAN                                             \
    }
#define BZ_USUAL(n, f, field, v)                                                                                       \
    {                                                                                                                  \
        .name = (n), .form = BZ_FORM_##f, .at = BZ_AT(field), .usual = (v)                                             \
    }
#define BZ_OPTIONAL(n, f, field, v)                                                                                    \
    {                                                                                                                  \
        .name = (n), .form = BZ_FORM_##f, .at = BZ_AT(field), .usual = (v), .optional = true                           \
    }
#define BZ_NAMED(n, field, texts, before)                                                                              \
    {                                                                                                                  \
        .name = (n), .form = BZ_FORM_NAME, .at = BZ_AT(field), .names = (texts), .prefix = (before)                    \
    }

/* A member of a problem, its type known from the table. */
#define BZ_FIELD(type, p, m)       (*(type *)((char *)(p) + (m)->at))
#define BZ_CONST_FIELD(type, p, m) (*(const type *)((const char *)(p) + (m)->at))

const int64_t *bz_member_numbers(const bz_problem *p, const bz_member *m);
int bz_member_length(const bz_problem *p, const bz_member *m); /* numbers it must have; a shape: may have */
int bz_member_given(const bz_problem *p, const bz_member *m);  /* numbers it has */
int bz_problem_rank(const bz_problem *p);                      /* of the shape that spatial members belong to */

/* ---- what the functions of a row are made of ------------------------------------------------ */

/* One for each element of the first operand. */
double bz_flops_each_input(const bz_problem *p, const bz_operand *list, double y);
bz_operand *bz_operand_add(bz_operand_list *l, bz_role role, bz_dtype dtype, int rank, const int64_t *dim);
void bz_operand_add_shape(bz_operand_list *l, bz_role role, bz_dtype dtype, const int64_t *dim);
/* Parameters of normalizations stay in single precision where the data has less, as libraries want. */
bz_dtype bz_parameter_dtype(const bz_problem *p);
int64_t bz_window_result(int64_t x, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation);

/* y is what a and b are broadcast to; whether they can be, the last `skip` dimensions left out. */
void bz_extent_broadcast(const int64_t *a, const int64_t *b, int64_t *y);
bool bz_extent_broadcasts(const int64_t *a, const int64_t *b, int skip);

/* A further result, in the memory of operand `alias` (-1: in its own). */
bz_operand *bz_operand_add_result(bz_operand_list *l, bz_role role, bz_dtype dtype, int rank, const int64_t *dim,
                                  int alias);

/* Normalizations: which elements of x share a mean, and which a scale. */
typedef struct bz_norm_part {
    int64_t start, blocks, step, length; /* elements start + b · step + i, b < blocks, i < length */
} bz_norm_part;

typedef struct bz_norm {
    const int64_t *x;
    int64_t statistics, parameters; /* how many means, how many scales */
    bool by_channel;                /* scales; else by the place in a row */
    int64_t row, plane;             /* elements with one mean, one behind the other (batchnorm: 0); of a channel */
} bz_norm;

bz_norm bz_norm_of(const bz_problem *p);
int64_t bz_norm_statistic(const bz_norm *n, int64_t index); /* of an element */
int64_t bz_norm_parameter(const bz_norm *n, int64_t index);
bz_norm_part bz_norm_with_statistic(const bz_norm *n, int64_t statistic);
bz_norm_part bz_norm_with_parameter(const bz_norm *n, int64_t parameter);
void bz_norm_add_statistics(const bz_problem *p, bz_operand_list *l, bool results);
double bz_norm_epsilon(const bz_reference *r);

/* Recurrent layers: what the forward pass of training leaves for the backward one. */
void bz_rnn_add_inputs(const bz_problem *p, bz_operand_list *l); /* x, weights, bias, first states */
void bz_rnn_add_kept(const bz_problem *p, bz_operand_list *l, bool results);
int bz_rnn_check(const bz_problem *p, bz_error *err);
/* One step of a row in direction d: state (and cell) from x. What is known of it then, each [hidden] or [gates][hidden]: the state before;
 * that what R's last gate of a gru was multiplied with, of an lstm the cell before; the gates; and of a gru with lbr what r multiplies into
 * the last gate, of an lstm first the cell's tanh. */
typedef struct bz_rnn_step {
    double *before, *reset, *by_w, *by_r;
} bz_rnn_step;
void bz_rnn_forward(const bz_reference *r, int64_t d, const double *x, bz_rnn_step s, double *state, double *cell);
extern const char *const bz_rnn_directions[];

int bz_problem_refuse(const bz_problem *p, const char *why, bz_error *err); /* -1 */
int bz_problem_check_axis(const bz_problem *p, bz_error *err);              /* of a softmax, and of its gradient */
int bz_problem_check_window(const bz_problem *p, const int64_t *x, const int64_t *kernel, const int64_t *stride,
                            const int64_t *pad, const int64_t *dilation, bz_error *err);

bz_role bz_reference_role(const bz_reference *r);                      /* of the result that is asked for */
const float *bz_reference_values(const bz_reference *r, bz_role role); /* of the first operand; NULL: there is none */
void bz_expected_add(bz_expected *e, double term);
bz_expected bz_expected_dot(const float *a, int64_t step_a, const float *b, int64_t step_b, int64_t n);

/* Index to coordinates, and back: there dimensions of 1 are broadcast. */
void bz_unravel(int64_t index, const int64_t *dim, int rank, int64_t *at);
int64_t bz_ravel(const int64_t *at, const int64_t *dim, int rank);

#endif
