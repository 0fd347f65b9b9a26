/* Results by definition, one element at a time in double precision: slow, obvious, and asked for
 * only where a sample of elements is checked. */
#include "runtime/kind.h"

#include <stdlib.h>
#include <string.h>

const float *bz_reference_values(const bz_reference *r, bz_role role)
{
    for (int i = 0; i < r->n_operands; i++)
        if (r->operand[i].role == role)
            return r->value[i];
    return NULL;
}

static const bz_operand *result(const bz_reference *r)
{
    return &r->operand[r->result];
}

bz_role bz_reference_role(const bz_reference *r)
{
    return result(r)->role;
}

void bz_unravel(int64_t index, const int64_t *dim, int rank, int64_t *at)
{
    for (int i = rank; i--; index /= dim[i])
        at[i] = index % dim[i];
}

int64_t bz_ravel(const int64_t *at, const int64_t *dim, int rank)
{
    int64_t index = 0;
    for (int i = 0; i < rank; i++)
        index = index * dim[i] + (dim[i] == 1 ? 0 : at[i]);
    return index;
}

void bz_expected_add(bz_expected *e, double term)
{
    e->value += term;
    e->magnitude += fabs(term);
}

bz_expected bz_expected_dot(const float *a, int64_t step_a, const float *b, int64_t step_b, int64_t n)
{
    bz_expected e = {0};
    for (int64_t i = 0; i < n; i++)
        bz_expected_add(&e, (double)a[i * step_a] * b[i * step_b]);
    return e;
}

/* The bias belongs to the product: it is scaled with it. What is kept is what stands in front of a function. */
static void apply_post(const bz_reference *r, bz_expected *e)
{
    const bz_problem *p = r->problem;
    double scale = bz_problem_scale(p);
    if (p->post[0].fn == BZ_FN_BIAS) {
        e->between = fabs(e->value * scale);
        bz_expected_add(e, bz_reference_values(r, BZ_ROLE_BIAS)[r->y[bz_problem_bias_axis(p, result(r)->rank)]]);
    }
    e->value *= scale;
    e->magnitude *= scale;
    for (int i = p->post[0].fn == BZ_FN_BIAS; p->post[i].fn; i++) {
        const bz_post *post = &p->post[i];
        if (post->fn == BZ_FN_KEEP && bz_reference_role(r) == BZ_ROLE_BEFORE)
            return;
        if (post->fn == BZ_FN_KEEP)
            continue;
        e->between = fmax(e->between, fabs(e->value));
        if (!bz_fn_is_binary(post->fn)) {
            e->value = bz_fn_value(post->fn, e->value, post->alpha, post->beta);
            if (post->fn == BZ_FN_LOG)
                e->magnitude = 1 + fabs(e->value);
            else if (post->fn == BZ_FN_EXP)
                e->magnitude = e->value * (1 + e->magnitude);
            else if (post->fn == BZ_FN_SQUARE)
                e->magnitude *= e->magnitude;
            else if (post->fn == BZ_FN_LINEAR)
                e->magnitude = e->magnitude * fabs((double)post->alpha) + fabs((double)post->beta);
            continue;
        }
        int other = 0;
        while (r->operand[other].role != BZ_ROLE_OTHER || r->operand[other].post != i)
            other++;
        double v = r->value[other][r->index];
        e->value = bz_fn_binary(post->fn, e->value, v);
        e->magnitude = post->fn == BZ_FN_MUL ? e->magnitude * fabs(v) : e->magnitude + fabs(v);
    }
}

bz_reference bz_reference_of(const bz_problem *p, int n_operands, const bz_operand *operand, const float *const *value)
{
    return (bz_reference){
        .problem = p, .n_operands = n_operands, .operand = operand, .value = value, .result = n_operands - 1};
}

bz_expected bz_reference_at(bz_reference *r, int64_t index)
{
    r->index = index;
    bz_unravel(index, result(r)->dim, result(r)->rank, r->y);
    bz_expected e = bz_kinds[r->problem->kind]->at(r);
    if (r->result == r->n_operands - 1 || bz_reference_role(r) == BZ_ROLE_BEFORE)
        apply_post(r, &e);
    if (!bz_dtype_is_float(result(r)->dtype))
        e.value = (double)bz_round_to(result(r)->dtype, e.value);
    return e;
}

void bz_reference_free(bz_reference *r)
{
    for (int d = 0; d < 2; d++) {
        free(r->sequence[d]);
        r->sequence[d] = NULL;
    }
}

bool bz_reference_exists(const bz_problem *p)
{
    return bz_kinds[p->kind]->at != NULL;
}

double bz_reference_cost(const bz_problem *p)
{
    const bz_kind *kind = bz_kinds[p->kind];
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    double each = bz_problem_flops(p) / (double)list[n - 1].count / (kind->depth ? 2 : 1);
    return kind->cost ? kind->cost(p) : each > 10 ? each : 10;
}

/* What a recurrent state may be off, as a part of the sum, where a product may be off by `product`. */
static double recurrent_part(bz_dtype type, double product)
{
    bool ten_bits = type == BZ_F16 || product == 0x1p-10;
    return ten_bits ? 0.05 / 8 : type == BZ_F32 && product < 0x1p-10 ? 1e-4 : 0.05;
}

/* Two roundings to the result's type (some libraries round before the last step too), plus what the sum may be off: libraries sum in single precision
 * in any order, and Winograd's transforms cost about three more bits. */
double bz_tolerance(const bz_problem *p, bz_expected e, const char *math)
{
    bz_dtype y = p->dtype_y;
    bool e4m3 = y == BZ_F8E4M3 || y == BZ_F8E4M3FNUZ;
    double unit = y == BZ_F8E5M2 || y == BZ_F8E5M2FNUZ ? 0x1p-2
                  : e4m3                               ? 0x1p-3
                  : y == BZ_BF16                       ? 0x1p-7
                  : y == BZ_F16                        ? 0x1p-9
                                                       : 0x1p-22;
    double least = e4m3 ? 0x1p-10 : 1e-7; /* below 2^-6 its numbers are 2^-9 apart */
    double sum = p->dtype == BZ_F64 && p->dtype_y == BZ_F64 ? 1e-12 : 3e-5;
    if (p->kind == BZ_PROBLEM_BINARY && bz_fn_is_comparison(p->binary.fn))
        return 0.5; /* it holds or it does not */
    if (bz_dtype_is_int(p->dtype) && bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return bz_dtype_is_int(p->dtype_y) ? 3.01 : 3.01 / 127; /* a step passes its rounding on to the next */
    if (bz_dtype_is_int(p->dtype_y))
        return p->dtype_y == BZ_I32 && bz_dtype_is_int(p->dtype) ? fabs(e.value) * 0x1p-22 + 0.5 : 1.01;
    if (!strcmp(math, "bf16"))
        sum = 0x1p-8;
    else if (!strcmp(math, "f16") || !strcmp(math, "tf32"))
        sum = 0x1p-10;
    /* states of a recurrent network are rounded at every step, gates are computed in the data's type; gradients pass all steps twice, and
     * a GPU's own tanh is within 2^-11 */
    if (bz_problem_has(p, BZ_TRAIT_RECURRENT))
        sum = (bz_problem_has(p, BZ_TRAIT_GRADIENT) ? 5 : 1) * recurrent_part(p->dtype, sum);
    else if (p->dtype == BZ_F16) /* functions are approximated by polynomials; in f16 sums are f16 too */
        sum = 0x1p-9;
    /* gradients are summed from parts that may be rounded to the data's type, as is what a fused normalization hands to the product */
    if (p->dtype == BZ_BF16 && (p->kind == BZ_PROBLEM_CONV_DATA || p->kind == BZ_PROBLEM_CONV_WEIGHTS ||
                                (p->kind == BZ_PROBLEM_CONV_NORM && p->conv.before)))
        sum = 0x1p-9;
    /* tensor cores add products of eight bits and less with less than the bits of f32 */
    if (p->dtype == BZ_F8E4M3 || p->dtype == BZ_F8E5M2 || p->dtype == BZ_F4E2M1)
        sum = p->kind != BZ_PROBLEM_ATTENTION ? 0x1p-10
              : p->dtype == BZ_F8E4M3         ? 0x1p-4
                                              : 0x1p-3; /* weights are rounded */
    /* done in two calls, what is between them is rounded before scale and shift, or before the sum, which may
     * cancel it */
    double rounded = bz_problem_has(p, BZ_TRAIT_ROUNDED_BETWEEN) ? e.magnitude : fmax(fabs(e.value), e.between);
    return unit * rounded + sum * e.magnitude + least;
}

double bz_off(const bz_problem *p, bz_expected e, double got, const char *math)
{
    bool dropped = p->kind == BZ_PROBLEM_DROPOUT && got == 0;
    return dropped ? 0 : fabs(got - e.value) / bz_tolerance(p, e, math);
}

/* Six standard deviations: once in 500 million results that are right. */
bool bz_is_chance(int64_t dropped, int64_t n, double probability)
{
    return fabs((double)dropped - probability * (double)n) <= 6 * sqrt(probability * (1 - probability) * (double)n);
}
