/* Runs a replay's plan here, step by step: calls by the definition of their problems, loops one element after the other. For tests
 * of what plans compute. */
#ifndef PLAN_RUN_H
#define PLAN_RUN_H

#include "replay/replay.h"
#include "runtime/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct plan_values {
    const bz_replay_plan *plan;
    float **value; /* [plan->n_values], row-major */
} plan_values;

static inline int64_t plan_count(const bz_replay_plan *p, int v)
{
    return bz_extent_count(p->value[v].dim);
}

static inline plan_values plan_values_new(const bz_replay_plan *p)
{
    plan_values all = {p, bz_zeroed((size_t)p->n_values + 1, sizeof *all.value)};
    for (int v = 0; v < p->n_values; v++)
        all.value[v] = bz_zeroed((size_t)plan_count(p, v) + 1, sizeof **all.value);
    return all;
}

/* What a stored value is: known by inference, or from the file. False where the file has no payload. */
static inline bool plan_stored(plan_values *all, int v)
{
    bz_error err;
    const bz_replay_source *from = &all->plan->source[v];
    int64_t n = plan_count(all->plan, v), *whole = bz_zeroed((size_t)n, sizeof *whole);
    double *real = bz_zeroed((size_t)n, sizeof *real);
    const bz_model *model = from->model ? from->model : all->plan->layers->model;
    bool is_real = from->tensor && (from->tensor->dtype == BZ_F32 || from->tensor->dtype == BZ_F64);
    bool known = from->number || !(is_real ? bz_tensor_reals(model, from->tensor, real, &err)
                                           : bz_tensor_ints(model, from->tensor, whole, &err));
    for (int64_t i = 0; i < n; i++)
        all->value[v][i] = (float)(from->number ? from->number[i] : is_real ? real[i] : (double)whole[i]);
    free(whole);
    free(real);
    return known;
}

static inline void plan_values_free(plan_values *all)
{
    for (int v = 0; v < all->plan->n_values; v++)
        free(all->value[v]);
    free(all->value);
}

/* The value of that name; -1: there is none. */
static inline int plan_value_named(const bz_replay_plan *p, const char *name)
{
    for (int v = 0; v < p->n_values; v++)
        if (*name && !strcmp(p->value[v].name, name))
            return v;
    return -1;
}

/* The channel of the result that an element of the weights belongs to. */
static inline int64_t plan_channel(const bz_problem *p, const bz_operand *w, int64_t i)
{
    int64_t inner = p->kind == BZ_PROBLEM_CONV     ? w->count / w->dim[0]
                    : p->kind == BZ_PROBLEM_DECONV ? bz_extent_count(w->dim + 2)
                    : p->kind == BZ_PROBLEM_GEMM   ? (p->gemm.transb ? p->gemm.k : 1)
                                                   : 1;
    int64_t n = p->kind == BZ_PROBLEM_CONV     ? w->dim[0]
                : p->kind == BZ_PROBLEM_DECONV ? w->dim[1]
                : p->kind == BZ_PROBLEM_GEMM   ? p->gemm.n
                                               : w->dim[w->rank - 1];
    return i / inner % n;
}

/* y = by · y + add, by channel, as weights and bias that do so. */
static inline void plan_fold(const plan_values *all, const bz_replay_fold *f, const bz_problem *p,
                             const bz_operand *operand, float *w, const bz_operand *bias, float *b)
{
    for (int what = 0; what < 2; what++) {
        const bz_operand *o = what ? bias : operand;
        for (int64_t i = 0; o && i < o->count; i++) {
            double v[4] = {0}, by = 1, add = 0;
            for (int k = 0; k < 4; k++) {
                int64_t channel = what ? i : plan_channel(p, operand, i);
                if (f->value[k] >= 0)
                    v[k] = all->value[f->value[k]][plan_count(all->plan, f->value[k]) == 1 ? 0 : channel];
            }
            switch (f->kind) {
            case BZ_FOLD_BATCHNORM:
                by = v[0] / sqrt(v[3] + f->factor), add = v[1] - v[2] * by;
                break;
            case BZ_FOLD_ADD:
                add = f->factor * v[0];
                break;
            case BZ_FOLD_MUL:
                by = v[0];
                break;
            case BZ_FOLD_DIV:
                by = 1 / v[0];
                break;
            case BZ_FOLD_WEIGHTS:
                by = what ? 1 : f->factor;
                break;
            case BZ_FOLD_BIAS:
                by = what ? f->factor : 1;
                break;
            }
            if (what)
                b[i] = (float)(b[i] * by + add);
            else
                w[i] = (float)(w[i] * by);
        }
    }
}

/* An operand that is left out is 0, a scale 1. */
static inline void plan_call(plan_values *all, const bz_replay_step *s)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    const float *value[BZ_PROBLEM_OPERANDS] = {NULL};
    float *room[BZ_PROBLEM_OPERANDS] = {NULL}, *made[BZ_PROBLEM_OPERANDS] = {NULL};
    int n = bz_problem_operands(s->problem, operand);
    int w = -1, bias = -1;
    for (int k = 0; k < s->n_in; k++) {
        int64_t has = s->in[k] < 0 ? 0 : plan_count(all->plan, s->in[k]);
        bool one = s->in[k] < 0 && (operand[k].role == BZ_ROLE_SCALE || operand[k].role == BZ_ROLE_VARIANCE);
        if (has > 1)
            assert_int_equal(operand[k].count, has);
        value[k] = room[k] = bz_zeroed((size_t)operand[k].count, sizeof(float));
        for (int64_t i = 0; i < operand[k].count; i++)
            room[k][i] = has ? all->value[s->in[k]][has == 1 ? 0 : i] : one;
        w = w < 0 && (operand[k].role == BZ_ROLE_W || operand[k].role == BZ_ROLE_B) ? k : w;
        bias = operand[k].role == BZ_ROLE_BIAS ? k : bias;
    }
    for (int k = 0; k < s->n_folds; k++)
        plan_fold(all, &s->fold[k], s->problem, &operand[w], room[w], bias < 0 ? NULL : &operand[bias],
                  bias < 0 ? NULL : room[bias]);
    bz_reference r = bz_reference_of(s->problem, n, operand, value);
    r.epsilon = s->epsilon;
    for (int k = s->n_in; k < n; k++) {
        made[k] = bz_zeroed((size_t)operand[k].count, sizeof(float));
        r.result = k;
        for (int64_t i = 0; i < operand[k].count; i++)
            made[k][i] = (float)bz_reference_at(&r, i).value;
    }
    bz_reference_free(&r);
    for (int k = s->n_in; k < n; k++) {
        int v = k == n - 1 ? s->out : s->more[k - s->n_in];
        if (v >= 0)
            memcpy(all->value[v], made[k], (size_t)plan_count(all->plan, v) * sizeof(float));
        free(made[k]);
    }
    for (int k = 0; k < s->n_in; k++)
        free(room[k]);
}

/* Where a tuple of indices points to; below 0: outside. */
static inline int64_t plan_place(const bz_replay_loop *l, const float *index, int64_t at)
{
    int64_t place = 0;
    for (int j = 0; j < l->length; j++) {
        int64_t k = (int64_t)index[at + j];
        k += k < 0 ? l->extent[j] : 0;
        if (k < 0 || k >= l->extent[j])
            return -1;
        place += k * l->step[j];
    }
    return place;
}

static inline double plan_function(const bz_replay_loop *l, double a, double b, bool two)
{
    bz_fn fn = l->fn ? l->fn : bz_fn_find(l->function, strlen(l->function));
    if (!two && !strcmp(l->function, "linear"))
        return l->alpha * a + l->beta;
    if (fn == BZ_FN_NONE)
        fail_msg("no function %s here", l->function);
    return two ? bz_fn_binary(fn, a, b) : bz_fn_value(fn, a, l->alpha, l->beta);
}

static inline void plan_loop(plan_values *all, const bz_replay_step *s)
{
    const bz_replay_loop *l = s->loop;
    float *y = all->value[s->out], *in[3] = {NULL};
    int64_t n = 1, count = plan_count(all->plan, s->out);
    for (int k = 0; k < s->n_in && k < 3; k++)
        in[k] = all->value[s->in[k]];
    for (int d = 0; d < l->rank; d++)
        n *= l->dim[d];
    if (l->kind == BZ_LOOP_FILL || l->kind == BZ_LOOP_UNARY)
        for (int64_t i = 0; i < count; i++)
            y[i] = l->kind == BZ_LOOP_UNARY ? (float)plan_function(l, in[0][i], 0, false)
                   : s->n_in                ? in[0][0]
                                            : (float)l->value;
    else if (l->kind == BZ_LOOP_LANES)
        fail_msg("no loop along an axis here: %s", l->function);
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t at[3] = {l->from, l->to, 0}, rest = i, place;
            for (int d = l->rank; d--; rest /= l->dim[d])
                for (int k = 0; k < 3; k++)
                    at[k] += rest % l->dim[d] * l->stride[k][d];
            if (l->kind == BZ_LOOP_COPY) {
                y[at[1]] = in[0][at[0]];
            } else if (l->kind == BZ_LOOP_SELECT) {
                y[i] = in[0][at[0]] != 0 ? in[1][at[1]] : in[2][at[2]];
            } else if (l->kind == BZ_LOOP_BINARY) {
                y[i] = (float)plan_function(l, in[0][at[0]], in[1][at[1]], true);
            } else if (l->kind == BZ_LOOP_GATHER) {
                place = plan_place(l, in[1], at[1]);
                y[i] = place < 0 ? 0 : in[0][at[0] + place];
            } else if ((place = plan_place(l, in[0], at[0])) >= 0) {
                float *to = &y[at[2] + place];
                *to = !l->function ? in[1][at[1]] : (float)plan_function(l, *to, in[1][at[1]], true);
            }
        }
}

static inline void plan_run(plan_values *all)
{
    const bz_replay_plan *p = all->plan;
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        if (s->kind == BZ_STEP_CALL)
            plan_call(all, s);
        else if (s->kind == BZ_STEP_LOOP)
            plan_loop(all, s);
        else
            memcpy(all->value[s->out], all->value[s->in[0]], (size_t)plan_count(p, s->out) * sizeof(float));
    }
}

#endif
