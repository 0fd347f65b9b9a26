/* A replay that was made ready: running it, its inputs and outputs, and checking it. */
#include "runtime/replay_open.h"
#include "runtime/values.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int bz_replay_actions(const bz_replay *r, const bz_action **list)
{
    *list = r->action;
    return r->n_actions;
}

bz_replay_memory bz_replay_memory_of(const bz_replay *r)
{
    return r->sizes;
}

/* ---- running -------------------------------------------------------------------------------- */

static int run_loop(const bz_replay *r, const replay_loop *l)
{
    void *operand[4];
    for (int i = 0; i < l->n; i++)
        if (l->slot[i] >= 0)
            operand[i] = replay_at(r, l->slot[i]);
        else
            memcpy(&operand[i], &l->constant[i], sizeof operand[i]);
    return bz_loop_run(l->loop, operand, l->dtype, l->count, l->n, r->setting.threads);
}

static int run_convert(const bz_replay *r, const replay_convert *c)
{
    void *from, *to = replay_at(r, c->to);
    if (c->from >= 0)
        from = replay_at(r, c->from);
    else
        memcpy(&from, &c->constant, sizeof from);
    if (c->converter)
        return c->backend->convert(c->converter, from, to);
    memcpy(to, from, c->bytes);
    return 0;
}

int bz_replay_action_run(bz_replay *r, int i)
{
    bz_action *a = &r->action[i];
    replay_call *c = a->state;
    if (a->kind == BZ_ACTION_LOOP)
        return run_loop(r, a->state);
    if (a->kind != BZ_ACTION_CALL)
        return run_convert(r, a->state);
    return c->variant.backend->execute(&c->variant, 0) ||
                   (c->variant.backend->wait && c->variant.backend->wait(&c->variant))
               ? -1
               : 0;
}

int bz_replay_step_run(bz_replay *r, int step)
{
    for (int i = r->first[step]; i < r->first[step + 1]; i++)
        if (bz_replay_action_run(r, i))
            return -1;
    return 0;
}

/* ---- inputs and outputs --------------------------------------------------------------------- */

/* Where the value lies in row-major order; NULL where it does not. */
static char *row_major(const bz_replay *r, int value)
{
    const replay_state *s = &r->state[value];
    char *at = NULL;
    if (s->constant)
        memcpy(&at, &s->constant, sizeof at);
    for (int i = 0; i < s->n_copies && !at; i++)
        if (!s->copy[i].format)
            at = replay_at(r, s->copy[i].slot);
    return at;
}

size_t bz_replay_size(const bz_replay *r, int value)
{
    const bz_replay_value *v = &r->model->value[value];
    return (size_t)replay_count(v) * (size_t)bz_dtype_bits(v->given) / 8;
}

int bz_replay_set(bz_replay *r, int value, const void *bytes)
{
    const bz_replay_value *v = &r->model->value[value];
    char *at = row_major(r, value);
    if (!at || v->source != BZ_VALUE_INPUT)
        return -1;
    replay_cast(bytes, v->given, at, v->dtype, replay_count(v));
    return 0;
}

int bz_replay_get(bz_replay *r, int value, void *bytes)
{
    const bz_replay_value *v = &r->model->value[value];
    const char *at = row_major(r, value);
    if (!at)
        return -1;
    replay_cast(at, v->dtype, bytes, v->given, replay_count(v));
    return 0;
}

/* ---- checking ------------------------------------------------------------------------------- */

/* An operand as it lies now, as floats in row-major order. */
static float *read_operand(const bz_replay *r, const replay_call *c, int k, bz_error *err)
{
    const bz_operand *o = &c->operand[k];
    float *out = bz_alloc((size_t)o->count + 16, sizeof *out);
    char *at = replay_at(r, c->slot[k]), *plain = NULL;
    if (c->format[k]) {
        bz_converter *converter;
        plain = bz_alloc((size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8 + 64, 1);
        int rc = c->variant.backend->converter(c->format[k], NULL, &converter, err);
        if (!rc) {
            rc = c->variant.backend->convert(converter, at, plain);
            c->variant.backend->converter_free(converter);
        }
        if (rc) {
            free(plain);
            free(out);
            return NULL;
        }
    }
    bz_values_decode(o->dtype, plain ? plain : at, out, o->count);
    free(plain);
    return out;
}

/* Elements to look at: as many as cost a few milliseconds, spread evenly, the last one too. */
static void choose_positions(replay_call *c)
{
    const bz_operand *y = &c->operand[c->n - 1];
    double affordable = 4e6 / bz_reference_cost(&c->problem, c->operand);
    int64_t n = affordable < 16 ? 16 : affordable > 1024 ? 1024 : (int64_t)affordable;
    n = n < y->count ? n : y->count;
    c->position = bz_alloc((size_t)n, sizeof *c->position);
    c->expected = bz_alloc((size_t)n, sizeof *c->expected);
    for (int64_t i = 0; i < n; i++)
        c->position[i] = n > 1 ? (int64_t)((double)i * ((double)y->count - 1) / (double)(n - 1)) : 0;
    c->n_positions = (int)n;
}

int bz_replay_check_before(bz_replay *r, int action, bz_error *err)
{
    replay_call *c = r->action[action].state;
    const float *value[BZ_PROBLEM_OPERANDS] = {NULL};
    float *read[BZ_PROBLEM_OPERANDS] = {NULL};
    int rc = 0;
    if (r->action[action].kind != BZ_ACTION_CALL || !bz_reference_exists(&c->problem))
        return 0;
    for (int k = 0; k < c->n - 1 && !rc; k++) {
        value[k] = c->value[k];
        int from = k == c->residual ? c->n - 1 : k;
        if (value[k] || c->slot[from] < 0)
            continue;
        value[k] = read[k] = read_operand(r, c, from, err);
        rc = read[k] ? 0 : -1;
    }
    for (int k = 0; k < c->n - 1 && !rc; k++)
        if (!value[k])
            rc = bz_fail(err, BZ_FAILED, "%s: an operand cannot be read", r->model->step[r->action[action].step].name);
    if (!rc) {
        if (!c->n_positions)
            choose_positions(c);
        bz_reference ref = bz_reference_of(&c->problem, c->n, c->operand, value);
        ref.epsilon = c->job.epsilon;
        for (int i = 0; i < c->n_positions; i++)
            c->expected[i] = bz_reference_at(&ref, c->position[i]);
        bz_reference_free(&ref);
    }
    for (int k = 0; k < c->n - 1; k++)
        free(read[k]);
    return rc;
}

bool bz_replay_check_after(bz_replay *r, int action, bz_replay_check *out)
{
    replay_call *c = r->action[action].state;
    bz_error err;
    *out = (bz_replay_check){0};
    if (r->action[action].kind != BZ_ACTION_CALL || !c->n_positions)
        return false;
    float *y = read_operand(r, c, c->n - 1, &err);
    for (int i = 0; y && i < c->n_positions; i++) {
        bz_expected e = c->expected[i];
        double v = (double)y[c->position[i]], off = fabs(v - e.value) / bz_tolerance(&c->problem, e, c->variant.math);
        bool same = v == e.value || (v != v && e.value != e.value);
        out->elements++;
        out->wrong += !same && !(off <= 1);
        if (!same && !(off <= out->worst)) {
            out->worst = off != off ? INFINITY : off;
            out->at = c->position[i];
            out->value = v;
            out->expected = e.value;
        }
    }
    free(y);
    return out->elements > 0;
}
