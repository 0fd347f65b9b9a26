/* Operand values: what goes in, what must come out. Private to runtime/. */
#ifndef BZ_VALUES_H
#define BZ_VALUES_H

#include "runtime/problem.h"

/* The nearest value that the data type has; integers saturate. */
float bz_round_to(bz_dtype t, double v);

/* Between float and the bytes of the data type. `n` elements; of four bits, two in a byte. */
void bz_values_encode(bz_dtype t, const float *from, void *to, int64_t n);
void bz_values_decode(bz_dtype t, const void *from, float *to, int64_t n);
/* Whether none of the elements is a NaN, by their bits: of large results decoding would take longer than making them. */
bool bz_values_are_numbers(bz_dtype t, const void *from, int64_t n);

/* Seeded normal values for an operand, none of them zero (but where half are, by the problem) or denormal, each one that the data type
 * has. What the operand is for decides about sign and size: a variance is positive, recurrent weights
 * are small enough that nothing saturates. The same operand always gets the same values. */
void bz_values_fill(const bz_problem *p, const bz_operand *o, int index, float *out);

/* What element `index` of the result must be, computed in double precision by the definition; and
 * the magnitude of what was summed up to it, which is the scale of rounding errors. */
typedef struct bz_expected {
    double value, magnitude;
    double between; /* the largest before a post-operation, which may be rounded as the result is; 0: there is none */
} bz_expected;

typedef struct bz_reference {
    const bz_problem *problem;
    int n_operands;
    const bz_operand *operand;
    const float *const *value;
    int result;                        /* the operand that is asked for, */
    int64_t index, y[BZ_PROBLEM_RANK]; /* the element of it, and its coordinates */
    double
        *sequence[2]; /* rnn: results of one row of the batch by direction, [seq + 1][hidden]; NULL: not computed yet */
    int64_t row[2];   /* which */
    float epsilon;    /* of normalizations; 0: the usual 1e-5 */
} bz_reference;

bz_reference bz_reference_of(const bz_problem *p, int n_operands, const bz_operand *operand, const float *const *value);
bz_expected bz_reference_at(bz_reference *r, int64_t index);
void bz_reference_free(bz_reference *r);
bool bz_reference_exists(const bz_problem *p); /* a copy has none: nobody defined what it moves */

/* Multiply-adds that one element costs. */
double bz_reference_cost(const bz_problem *p);

/* How far a result may be off. */
double bz_tolerance(const bz_problem *p, bz_expected e, const char *math);
/* How far it is off, 1 for that far. What chance may drop is right as 0, too. */
double bz_off(const bz_problem *p, bz_expected e, double got, const char *math);
/* Whether chance drops so many of n elements, each with this probability: all of them, or none, it does not. */
bool bz_is_chance(int64_t dropped, int64_t n, double probability);

#endif
