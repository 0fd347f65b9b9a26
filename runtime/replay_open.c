/* From tables to actions: every call made ready, every tensor in the format that its reader wants, memory shared. */
#include "runtime/replay_open.h"
#include "runtime/constants.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Bringing outputs into order comes behind everything, on the first stream. */
static int stream_of(const bz_replay *r, int step)
{
    return step < r->model->n_steps ? r->model->step[step].stream : 0;
}

void *replay_handle(const bz_replay *r, int step)
{
    return r->ops->stream ? r->ops->stream(r->device, stream_of(r, step)) : NULL;
}

void *replay_add_action(bz_replay *r, bz_action_kind kind, int step, int value, size_t size)
{
    BZ_ROOM(r->action, r->n_actions);
    void *state = bz_zeroed(1, size);
    r->action[r->n_actions++] = (bz_action){
        .kind = kind,
        .step = step,
        .stream = stream_of(r, step),
        .value = value,
        .bytes = (double)replay_bytes(&r->model->value[value]),
        .state = state,
    };
    return state;
}

int replay_add_slot(bz_replay *r, size_t bytes, int first)
{
    BZ_ROOM(r->slot, r->n_slots);
    size_t align = r->ops->align;
    r->slot[r->n_slots] = (bz_lifetime){(bytes + 64 + align - 1) / align * align, first, first, 0};
    return r->n_slots++;
}

void replay_use_slot(bz_replay *r, int slot, int action)
{
    if (r->slot[slot].last < action)
        r->slot[slot].last = action;
}

void replay_add_copy(bz_replay *r, int value, const bz_backend *backend, const void *format, int slot)
{
    replay_state *s = &r->state[value];
    s->copy = bz_realloc(s->copy, (size_t)s->n_copies + 1, sizeof *s->copy);
    s->copy[s->n_copies++] = (replay_copy){format ? backend : NULL, format, slot};
}

const replay_copy *replay_find_copy(const bz_replay *r, int value, const bz_backend *backend, const void *format)
{
    const replay_state *s = &r->state[value];
    for (int i = 0; i < s->n_copies; i++)
        if (format ? s->copy[i].backend == backend && backend->same(s->copy[i].format, format) : !s->copy[i].format)
            return &s->copy[i];
    return NULL;
}

static size_t row_major_bytes(const bz_replay *r, int value)
{
    return replay_bytes(&r->model->value[value]);
}

int replay_convert_into(bz_replay *r, int step, int value, const replay_copy *from, const bz_backend *backend,
                        const void *format, int slot, bz_error *err)
{
    const void *had = from ? from->format : NULL;
    if (!from && format && r->ops != &replay_processor)
        return bz_fail(err, BZ_INCOMPLETE, "'%s' is constant, and would have to be converted on the device",
                       r->model->value[value].name);
    bool copies = had == format || (had && format && backend->same(had, format));
    int source = from ? from->slot : -1;
    if (from)
        replay_use_slot(r, source, r->n_actions);
    replay_convert *c = replay_add_action(r, copies ? BZ_ACTION_COPY : BZ_ACTION_CONVERT, step, value, sizeof *c);
    *c = (replay_convert){
        .backend = from && from->backend ? from->backend : backend,
        .from = source,
        .to = slot,
        .constant = from ? NULL : r->state[value].constant,
        .bytes = format ? r->slot[slot].bytes : row_major_bytes(r, value),
    };
    replay_use_slot(r, slot, r->n_actions - 1);
    return copies ? 0 : c->backend->converter(had, format, replay_handle(r, step), &c->converter, err);
}

/* The value in this format; made out of the row-major one, or directly out of another, or by way of the row-major
 * one. */
int replay_need(bz_replay *r, int step, int value, const bz_backend *backend, const bz_place_wanted *wanted,
                const replay_copy **out, bz_error *err)
{
    *out = replay_find_copy(r, value, backend, wanted->format);
    if (*out)
        return 0;
    const replay_copy *plain = replay_find_copy(r, value, NULL, NULL), *from = plain;
    if (!from && r->state[value].n_copies)
        from = &r->state[value].copy[0];
    if (!from && !r->state[value].constant)
        return bz_fail(err, BZ_FAILED, "'%s' is read before it is made", r->model->value[value].name);
    replay_copy source = from ? *from : (replay_copy){0};
    int before = r->n_actions, slot = replay_add_slot(r, wanted->bytes, r->n_actions);
    if (replay_convert_into(r, step, value, from ? &source : NULL, backend, wanted->format, slot, err)) {
        if (r->n_actions > before)
            free(r->action[--r->n_actions].state);
        r->n_slots--;
        if (!from || plain || !wanted->format)
            return -1;
        const bz_place_wanted row_major = {.bytes = row_major_bytes(r, value)};
        if (!source.format || replay_need(r, step, value, NULL, &row_major, &plain, err))
            return -1;
        return replay_need(r, step, value, backend, wanted, out, err);
    }
    replay_add_copy(r, value, backend, wanted->format, slot);
    *out = &r->state[value].copy[r->state[value].n_copies - 1];
    return 0;
}

/* The row-major value: its slot, or -1 and the constant's bytes. */
static int need_plain(bz_replay *r, int step, int value, int *slot, const void **constant, bz_error *err)
{
    const replay_copy *copy;
    const bz_place_wanted wanted = {.bytes = row_major_bytes(r, value)};
    *slot = -1;
    *constant = r->state[value].constant;
    if (*constant)
        return 0;
    if (replay_need(r, step, value, NULL, &wanted, &copy, err))
        return -1;
    *slot = copy->slot;
    return 0;
}

static int add_loop(bz_replay *r, int number, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    replay_loop l = {.loop = step->loop, .n = step->n_in + 1, .threads = r->setting.threads};
    if (l.n > 4 || !bz_loop_knows(step->loop))
        return bz_fail(err, BZ_INCOMPLETE, "%s: there is no such loop", step->name);
    for (int i = 0; i < step->n_in; i++)
        if (need_plain(r, number, step->in[i], &l.slot[i], &l.constant[i], err))
            return -1;
    const replay_copy *own = replay_find_copy(r, step->out, NULL, NULL);
    l.partial = own != NULL;
    if (own) {
        l.slot[step->n_in] = own->slot;
    } else {
        l.slot[step->n_in] = replay_add_slot(r, row_major_bytes(r, step->out), r->n_actions);
        replay_add_copy(r, step->out, NULL, NULL, l.slot[step->n_in]);
    }
    for (int i = 0; i < l.n; i++) {
        const bz_replay_value *v = &r->model->value[i < step->n_in ? step->in[i] : step->out];
        l.dtype[i] = v->dtype;
        l.count[i] = replay_count(v);
        if (l.slot[i] >= 0)
            replay_use_slot(r, l.slot[i], r->n_actions);
    }
    replay_loop *kept = replay_add_action(r, BZ_ACTION_LOOP, number, step->out, sizeof *kept);
    *kept = l;
    return 0;
}

static int add_view(bz_replay *r, int number, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    const void *constant;
    int slot;
    if (need_plain(r, number, step->in[0], &slot, &constant, err))
        return -1;
    if (slot < 0) { /* a constant output, or a constant that is read under another shape */
        r->state[step->out].constant = constant;
        return 0;
    }
    replay_add_copy(r, step->out, NULL, NULL, slot);
    return 0;
}

/* A library's call on constants: what it gives by its definition, in double precision. */
static int call_of_constants(bz_replay *r, const bz_replay_step *step, bz_error *err)
{
    const bz_replay_value *v = &r->model->value[step->out];
    replay_call c = {.problem = *step->problem, .n_in = step->n_in};
    if (bz_problem_normalize(&c.problem, err))
        return -1;
    c.n = bz_problem_operands(&c.problem, c.operand);
    int64_t n = replay_count(v);
    if (c.n != c.n_in + 1 || c.operand[c.n - 1].count != n || !bz_reference_exists(&c.problem))
        return bz_fail(err, BZ_INCOMPLETE, "%s: its call does not fit its operands", step->name);
    if (bz_reference_cost(&c.problem) * (double)n > MOST_CONSTANT)
        return bz_fail(err, BZ_INCOMPLETE, "%s: this constant takes too long to compute: fold it into the model",
                       step->name);
    BZ_FREED float *made = bz_alloc((size_t)n + 16, sizeof *made);
    int rc = replay_operands(r, step, &c, err);
    bz_reference ref = bz_reference_of(&c.problem, c.n, c.operand, (const float *const *)c.value);
    ref.epsilon = step->epsilon;
    for (int64_t i = 0; i < n && !rc; i++)
        made[i] = (float)bz_reference_at(&ref, i).value;
    bz_reference_free(&ref);
    if (!rc)
        replay_cast(made, BZ_F32, r->state[step->out].owned, v->dtype, n);
    for (int i = 0; i < c.n_in; i++)
        free(c.value[i]);
    return rc;
}

/* A step on constants alone: it runs here. */
static int run_once(bz_replay *r, int number, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    replay_state *y = &r->state[step->out];
    void *operand[BZ_PROBLEM_OPERANDS];
    bz_dtype dtype[BZ_PROBLEM_OPERANDS];
    int64_t count[BZ_PROBLEM_OPERANDS];
    for (int i = 0; i <= step->n_in; i++) {
        int value = i < step->n_in ? step->in[i] : step->out;
        if (value < 0) /* a call's operand that was left out */
            continue;
        if (i < step->n_in && !r->state[value].constant)
            return bz_fail(err, BZ_FAILED, "%s: its operand is not constant", step->name);
        memcpy(&operand[i], &r->state[value].constant, sizeof operand[i]);
        dtype[i] = r->model->value[value].dtype;
        count[i] = replay_count(&r->model->value[value]);
    }
    if (step->kind == BZ_STEP_VIEW) {
        y->constant = operand[0];
        return 0;
    }
    if (!y->owned)
        y->owned = bz_zeroed(1, replay_bytes(&r->model->value[step->out]) + 64);
    y->constant = operand[step->n_in] = y->owned;
    if (step->kind == BZ_STEP_CALL)
        return call_of_constants(r, step, err);
    if (bz_loop_run(step->loop, operand, dtype, count, step->n_in + 1, 1))
        return bz_fail(err, BZ_INCOMPLETE, "%s: there is no such loop", step->name);
    return 0;
}

static int check_model(const bz_replay_model *m, bz_error *err)
{
    for (int i = 0; i < m->n_values; i++)
        if (m->value[i].next < 0 || m->value[i].next > m->n_values)
            return bz_fail(err, BZ_BAD_INPUT, "value %d (%s) is malformed", i, m->value[i].name);
    for (int i = 0; i < m->n_steps; i++) {
        const bz_replay_step *s = &m->step[i];
        bool good = s->out >= 0 && s->out < m->n_values && s->n_in < BZ_PROBLEM_OPERANDS;
        good = good && s->stream >= 0 && s->stream < BZ_REPLAY_STREAMS;
        good = good && s->n_more >= 0 && (!s->n_more || s->kind == BZ_STEP_CALL) &&
               s->n_in + s->n_more < BZ_PROBLEM_OPERANDS;
        for (int k = 0; good && k < s->n_more; k++)
            good = s->more[k] < m->n_values;
        good = good && (s->kind != BZ_STEP_CALL ? s->n_in < 4 : s->problem != NULL);
        good = good && (s->kind != BZ_STEP_LOOP || (s->loop && s->loop->rank > 0 && s->loop->rank <= BZ_PROBLEM_RANK));
        for (int k = 0; good && k < s->n_in; k++)
            good = s->in[k] < m->n_values && (s->in[k] >= 0 || s->kind == BZ_STEP_CALL);
        if (!good)
            return bz_fail(err, BZ_BAD_INPUT, "step %d (%s) is malformed", i, s->name);
    }
    return 0;
}

/* Until when values are wanted. A view's readers read what it shows. */
static void find_last_uses(bz_replay *r)
{
    const bz_replay_model *m = r->model;
    for (int i = 0; i < m->n_values; i++)
        r->state[i].root = i;
    for (int i = 0; i < m->n_steps; i++) {
        const bz_replay_step *s = &m->step[i];
        if (s->kind == BZ_STEP_VIEW && s->n_in)
            r->state[s->out].root = r->state[s->in[0]].root;
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k] >= 0)
                r->state[r->state[s->in[k]].root].last_use = i;
    }
    for (int i = 0; i < m->n_values; i++)
        if (m->value[i].output)
            r->state[r->state[i].root].last_use = m->n_steps;
}

/* Their slots come before all others. */
static void place_inputs(bz_replay *r)
{
    for (int i = 0; i < r->model->n_values; i++)
        if (replay_is_source(&r->model->value[i])) {
            replay_add_copy(r, i, NULL, NULL, replay_add_slot(r, row_major_bytes(r, i), 0));
            r->state[i].read_later = true;
        }
}

/* Inputs and outputs live to the end: the next run reads the ones, and whoever called the others. */
static void keep_ends(bz_replay *r)
{
    for (int i = 0; i < r->model->n_values; i++) {
        bool input = replay_is_source(&r->model->value[i]);
        const replay_copy *plain = replay_find_copy(r, i, NULL, NULL);
        if (!plain || !(input || r->model->value[i].output))
            continue;
        r->slot[plain->slot].first = input ? 0 : r->slot[plain->slot].first;
        r->slot[plain->slot].last = r->n_actions;
        r->sizes.ends += r->slot[plain->slot].bytes;
    }
}

/* New weights go where the old ones lay, unless the call that made them wrote them there. */
static int keep_next(bz_replay *r, bz_error *err)
{
    const bz_replay_model *m = r->model;
    for (int i = 0; i < m->n_values; i++) {
        const replay_copy *own = replay_find_copy(r, i, NULL, NULL);
        const void *constant;
        int slot;
        if (m->value[i].source != BZ_VALUE_KEPT || !m->value[i].next || !own)
            continue;
        int to = own->slot;
        if (need_plain(r, m->n_steps, m->value[i].next - 1, &slot, &constant, err))
            return -1;
        if (slot < 0)
            return bz_fail(err, BZ_FAILED, "'%s' becomes a constant", m->value[i].name);
        if (slot != to &&
            replay_convert_into(r, m->n_steps, m->value[i].next - 1, &(replay_copy){.slot = slot}, NULL, NULL, to, err))
            return -1;
    }
    return 0;
}

static int add_steps(bz_replay *r, bz_error *err)
{
    const bz_replay_model *m = r->model;
    place_inputs(r);
    for (int i = 0; i < m->n_steps; i++) {
        const bz_replay_step *s = &m->step[i];
        r->first[i] = r->n_actions;
        if (s->once                   ? run_once(r, i, err)
            : s->kind == BZ_STEP_CALL ? replay_add_call(r, i, err)
            : s->kind == BZ_STEP_LOOP ? add_loop(r, i, err)
                                      : add_view(r, i, err))
            return -1;
    }
    r->first[m->n_steps] = r->n_actions;
    for (int i = 0; i < m->n_values; i++) {
        const void *constant;
        int slot;
        if (m->value[i].output && need_plain(r, m->n_steps, i, &slot, &constant, err))
            return -1;
    }
    if (keep_next(r, err))
        return -1;
    r->first[m->n_steps + 1] = r->n_actions;
    keep_ends(r);
    return 0;
}

/* The device of the first call's backend; the others must have the same. */
static int open_device(bz_replay *r, bz_error *err)
{
    const bz_replay_model *m = r->model;
    const bz_backend *backend = NULL;
    r->ops = &replay_processor;
    r->n_streams = 1;
    for (int i = 0; i < m->n_steps; i++) {
        r->n_streams = m->step[i].stream >= r->n_streams ? m->step[i].stream + 1 : r->n_streams;
        if (m->step[i].kind != BZ_STEP_CALL || m->step[i].once || backend)
            continue;
        backend = bz_backend_find(NULL, m->step[i].backend, err);
        if (!backend)
            return -1;
        r->ops = replay_ops_of(backend);
    }
    r->held = true;
    return r->ops->open(&r->setting, r->n_streams, &r->device, err);
}

static int fill_inputs(bz_replay *r, bz_error *err)
{
    int bad = 0;
    for (int i = 0; i < r->model->n_values && !bad; i++) {
        const bz_replay_value *v = &r->model->value[i];
        if (!replay_is_source(v))
            continue;
        BZ_FREED void *bytes = bz_alloc(replay_bytes(v) + 64, 1);
        if (replay_first(r, i, bytes, err))
            return -1;
        bad = r->ops->copy(r->device, 0, replay_at(r, replay_find_copy(r, i, NULL, NULL)->slot), bytes,
                           replay_bytes(v)) ||
              r->ops->wait(r->device);
    }
    return bad ? bz_fail(err, BZ_FAILED, "the inputs cannot be brought to the device") : 0;
}

int bz_replay_open(const bz_replay_model *model, const char *weights, const bz_run_setting *setting, bz_replay **out,
                   bz_error *err)
{
    *out = NULL;
    if (check_model(model, err))
        return -1;
    bz_replay *r = bz_zeroed(1, sizeof *r);
    r->model = model;
    r->setting = *setting;
    r->setting.threads = setting->threads > 0 ? setting->threads : 1;
    r->state = bz_zeroed((size_t)model->n_values + 1, sizeof *r->state);
    r->first = bz_zeroed((size_t)model->n_steps + 2, sizeof *r->first);
    find_last_uses(r);
    if (open_device(r, err) || replay_load(r, weights, err) || add_steps(r, err) || replay_place(r, err) ||
        fill_inputs(r, err)) {
        bz_replay_close(r);
        return -1;
    }
    for (int i = 0; i < model->n_values; i++)
        if (r->state[i].constant)
            r->sizes.weights += replay_bytes(&model->value[i]);
    *out = r;
    return 0;
}

static void free_action(bz_action *a)
{
    if (a->kind == BZ_ACTION_CALL)
        replay_free_call(a->state);
    if (a->kind == BZ_ACTION_CONVERT) {
        replay_convert *c = a->state;
        if (c->converter)
            c->backend->converter_free(c->converter);
    }
    free(a->state);
}

void bz_replay_close(bz_replay *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n_actions; i++)
        free_action(&r->action[i]);
    for (int i = 0; i < r->model->n_values; i++) {
        free(r->state[i].copy);
        free(r->state[i].owned);
    }
    if (r->file)
        munmap((char *)r->file, r->file_size);
    replay_unplace(r);
    free(r->action);
    free(r->slot);
    free(r->first);
    free(r->state);
    free(r);
}
