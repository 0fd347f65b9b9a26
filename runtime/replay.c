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

static void loop_now(void *context)
{
    const replay_loop *l = context; /* that there is such a loop was seen when it was made ready */
    bz_loop_run(l->loop, l->at, l->dtype, l->count, l->n, l->threads);
}

static size_t loop_bytes(const replay_loop *l, int i)
{
    return (size_t)l->count[i] * (size_t)bz_dtype_bits(l->dtype[i]) / 8;
}

/* On a device operands come to the host first, and the result goes back. */
static int run_loop(bz_replay *r, int stream, replay_loop *l)
{
    int y = l->n - 1, bad = 0;
    bool away = l->at[y] != replay_at(r, l->slot[y]);
    for (int i = 0; i < l->n && away; i++)
        if (l->slot[i] >= 0 && (i < y || l->partial))
            bad |= r->ops->copy(r->device, stream, l->at[i], replay_at(r, l->slot[i]), loop_bytes(l, i));
    bad |= r->ops->host(r->device, stream, loop_now, l);
    if (away)
        bad |= r->ops->copy(r->device, stream, replay_at(r, l->slot[y]), l->at[y], loop_bytes(l, y));
    return bad ? -1 : 0;
}

static int run_convert(bz_replay *r, int stream, const replay_convert *c)
{
    void *from, *to = replay_at(r, c->to);
    if (c->from >= 0)
        from = replay_at(r, c->from);
    else
        memcpy(&from, &c->constant, sizeof from);
    return c->converter ? c->backend->convert(c->converter, from, to)
                        : r->ops->copy(r->device, stream, to, from, c->bytes);
}

/* The processor's libraries may run on behind our back; on a device that is the point. */
static int run_call(bz_replay *r, replay_call *c)
{
    const bz_backend *b = c->variant.backend;
    bool waits = r->ops == &replay_processor && b->wait;
    return b->execute(&c->variant, 0) || (waits && b->wait(&c->variant)) ? -1 : 0;
}

static int run_action(bz_replay *r, const bz_action *a)
{
    return a->kind == BZ_ACTION_CALL   ? run_call(r, a->state)
           : a->kind == BZ_ACTION_LOOP ? run_loop(r, a->stream, a->state)
                                       : run_convert(r, a->stream, a->state);
}

int bz_replay_action_run(bz_replay *r, int i)
{
    const bz_action *a = &r->action[i];
    if (replay_await(r, a) || run_action(r, a))
        return -1;
    return a->marked ? r->ops->mark(r->device, a->stream, i) : 0;
}

int bz_replay_run(bz_replay *r)
{
    return replay_fork(r) || r->model->forward(r) || replay_join(r) ? -1 : 0;
}

int bz_replay_wait(bz_replay *r)
{
    return r->ops->wait(r->device);
}

/* All bits are set: NaN in every floating-point type. The first slots are those of inputs and of what is kept: they share
 * them with nobody. */
int bz_replay_forget(bz_replay *r)
{
    int first = 0, bad = 0;
    size_t most = 0;
    for (int i = 0; i < r->model->n_values; i++)
        first += replay_is_source(&r->model->value[i]);
    for (int i = first; i < r->n_slots; i++)
        most = r->slot[i].bytes > most ? r->slot[i].bytes : most;
    BZ_FREED char *spoilt = bz_alloc(most + 1, 1);
    memset(spoilt, 0xff, most);
    for (int i = first; i < r->n_slots && !bad; i++)
        bad = r->ops->copy(r->device, 0, replay_at(r, i), spoilt, r->slot[i].bytes);
    return r->ops->wait(r->device) || bad ? -1 : 0;
}

void bz_replay_touch(bz_replay *r)
{
    for (int i = r->n_slots - 1; i >= 0 && r->ops == &replay_processor; i--) {
        volatile char *at = replay_at(r, i);
        for (size_t k = 0; k < r->slot[i].bytes; k += 64)
            at[k] = at[k];
    }
}

int bz_replay_capture(bz_replay *r, bz_error *err)
{
    if (!r->ops->begin)
        return bz_fail(err, BZ_USAGE, "the %s has no graphs: --graph is for calls on a GPU", r->ops->name);
    if (r->ops->begin(r->device, err))
        return -1;
    int bad = bz_replay_run(r);
    return r->ops->end(r->device, err) ? -1 : bad ? bz_fail(err, BZ_FAILED, "a library refused to be captured") : 0;
}

int bz_replay_launch(bz_replay *r)
{
    return r->ops->launch(r->device);
}

int bz_replay_streams(const bz_replay *r)
{
    return r->n_streams;
}

const char *bz_replay_device(const bz_replay *r)
{
    return r->ops->name;
}

bool bz_replay_throttled(const bz_replay *r)
{
    return r->ops->throttled && r->ops->throttled(r->device);
}

/* Readings: 0 before everything, i + 1 behind action i. */
static int queue_timed(bz_replay *r)
{
    int bad = r->ops->read(r->device, 0, 0) || replay_fork(r);
    for (int i = 0; i < r->n_actions && !bad; i++)
        bad = bz_replay_action_run(r, i) || r->ops->read(r->device, r->action[i].stream, i + 1);
    return bad || replay_join(r) ? -1 : 0;
}

static int read_times(bz_replay *r, double *start, double *seconds)
{
    int last[BZ_REPLAY_STREAMS];
    for (int s = 0; s < r->n_streams; s++)
        last[s] = -1;
    for (int i = 0; i < r->n_actions; i++) {
        const bz_action *a = &r->action[i];
        double end, begin = last[a->stream] < 0 ? 0 : start[last[a->stream]] + seconds[last[a->stream]];
        if (r->ops->seconds(r->device, 0, i + 1, &end))
            return -1;
        for (int k = 0; k < a->n_after; k++)
            begin = fmax(begin, start[a->after[k]] + seconds[a->after[k]]);
        start[i] = begin;
        seconds[i] = fmax(end - begin, 0);
        last[a->stream] = i;
    }
    return 0;
}

int bz_replay_time(bz_replay *r, double *start, double *seconds)
{
    int late = 0;
    if (r->held && r->ops->hold && r->ops->hold(r->device))
        return -1;
    int bad = queue_timed(r);
    if (r->held && r->ops->hold)
        late = r->ops->release(r->device);
    else
        bad |= r->ops->wait(r->device);
    if (bad || late < 0)
        return -1;
    if (late) /* more than the queue holds, or a library that waits for the device */
        r->held = false;
    return late ? 1 : read_times(r, start, seconds);
}

int bz_replay_step_run(bz_replay *r, int step)
{
    for (int i = r->first[step]; i < r->first[step + 1]; i++)
        if (bz_replay_action_run(r, i))
            return -1;
    return 0;
}

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
    BZ_FREED void *cast = bz_alloc(replay_bytes(v) + 64, 1);
    replay_cast(bytes, v->given, cast, v->dtype, replay_count(v));
    return r->ops->copy(r->device, 0, at, cast, replay_bytes(v)) || r->ops->wait(r->device) ? -1 : 0;
}

int bz_replay_get(bz_replay *r, int value, void *bytes)
{
    const bz_replay_value *v = &r->model->value[value];
    const char *at = row_major(r, value);
    if (!at)
        return -1;
    BZ_FREED void *cast = bz_alloc(replay_bytes(v) + 64, 1);
    int bad = r->ops->copy(r->device, 0, cast, at, replay_bytes(v)) || r->ops->wait(r->device);
    if (!bad)
        replay_cast(cast, v->dtype, bytes, v->given, replay_count(v));
    return bad ? -1 : 0;
}

/* An operand as it lies now, as floats in row-major order. */
static float *read_operand(const bz_replay *r, const replay_call *c, int k, bz_error *err)
{
    const bz_operand *o = &c->operand[k];
    const bz_backend *backend = c->variant.backend;
    size_t size = (size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8;
    float *out = bz_alloc((size_t)o->count + 16, sizeof *out);
    char *at = replay_at(r, c->slot[k]), *host = bz_alloc(size + 64, 1), *plain = NULL;
    bz_converter *converter = NULL;
    bool bad = false;
    if (c->format[k]) {
        plain = r->ops->alloc(r->device, size + 64, false);
        bad = !plain || backend->converter(c->format[k], NULL, c->job.stream, &converter, err) ||
              backend->convert(converter, at, plain);
    }
    bad = bad || r->ops->wait(r->device) || r->ops->copy(r->device, 0, host, plain ? plain : at, size) ||
          r->ops->wait(r->device);
    if (!bad)
        bz_values_decode(o->dtype, host, out, o->count);
    if (converter)
        backend->converter_free(converter);
    if (plain)
        r->ops->free(r->device, plain, false);
    free(host);
    if (bad)
        free(out);
    return bad ? NULL : out;
}

/* Elements to look at: as many as cost a few milliseconds, spread evenly, the last one too. */
static void choose_positions(replay_call *c)
{
    const bz_operand *y = &c->operand[c->n - 1];
    double affordable = 4e6 / bz_reference_cost(&c->problem);
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
    if (r->action[action].kind != BZ_ACTION_CALL || !bz_reference_exists(&c->problem) ||
        c->problem.kind == BZ_PROBLEM_DROPOUT) /* chance decides */
        return 0;
    for (int k = 0; k < c->n_in && !rc; k++) {
        if (c->operand[k].role == BZ_ROLE_KEPT) /* no reference reads it */
            continue;
        value[k] = c->value[k];
        int from = k == c->residual ? c->n - 1 : k;
        if (value[k] || c->slot[from] < 0)
            continue;
        value[k] = read[k] = read_operand(r, c, from, err);
        rc = read[k] ? 0 : -1;
    }
    for (int k = 0; k < c->n_in && !rc; k++)
        if (!value[k] && c->operand[k].role != BZ_ROLE_KEPT)
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
    BZ_FREED float *y = read_operand(r, c, c->n - 1, &err);
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
    return out->elements > 0;
}
