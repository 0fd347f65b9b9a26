/* From tables to actions: every call made ready, every tensor in the format that its reader wants, memory shared. */
#include "runtime/replay_open.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- actions and slots ---------------------------------------------------------------------- */

/* Bringing outputs into order comes behind everything, on the first stream. */
static int stream_of(const bz_replay *r, int step)
{
    return step < r->model->n_steps ? r->model->step[step].stream : 0;
}

static void *handle_of(const bz_replay *r, int step)
{
    return r->ops->stream ? r->ops->stream(r->device, stream_of(r, step)) : NULL;
}

static void *add_action(bz_replay *r, bz_action_kind kind, int step, int value, size_t size)
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

static int add_slot(bz_replay *r, size_t bytes, int first)
{
    BZ_ROOM(r->slot, r->n_slots);
    size_t align = r->ops->align;
    r->slot[r->n_slots] = (bz_lifetime){(bytes + 64 + align - 1) / align * align, first, first, 0};
    return r->n_slots++;
}

static void use_slot(bz_replay *r, int slot, int action)
{
    if (r->slot[slot].last < action)
        r->slot[slot].last = action;
}

static void add_copy(bz_replay *r, int value, const bz_backend *backend, const void *format, int slot)
{
    replay_state *s = &r->state[value];
    s->copy = bz_realloc(s->copy, (size_t)s->n_copies + 1, sizeof *s->copy);
    s->copy[s->n_copies++] = (replay_copy){format ? backend : NULL, format, slot};
}

static const replay_copy *find_copy(const bz_replay *r, int value, const bz_backend *backend, const void *format)
{
    const replay_state *s = &r->state[value];
    for (int i = 0; i < s->n_copies; i++)
        if (format ? s->copy[i].backend == backend && backend->same(s->copy[i].format, format) : !s->copy[i].format)
            return &s->copy[i];
    return NULL;
}

/* ---- conversions ---------------------------------------------------------------------------- */

static size_t row_major_bytes(const bz_replay *r, int value)
{
    return replay_bytes(&r->model->value[value]);
}

/* An action that brings `from` (NULL: the constant) into the format, in the slot. */
static int convert_into(bz_replay *r, int step, int value, const replay_copy *from, const bz_backend *backend,
                        const void *format, int slot, bz_error *err)
{
    const void *had = from ? from->format : NULL;
    if (!from && format && r->ops != &replay_processor)
        return bz_fail(err, BZ_INCOMPLETE, "'%s' is constant, and would have to be converted on the device",
                       r->model->value[value].name);
    bool copies = had == format || (had && format && backend->same(had, format));
    int source = from ? from->slot : -1;
    if (from)
        use_slot(r, source, r->n_actions);
    replay_convert *c = add_action(r, copies ? BZ_ACTION_COPY : BZ_ACTION_CONVERT, step, value, sizeof *c);
    *c = (replay_convert){
        .backend = from && from->backend ? from->backend : backend,
        .from = source,
        .to = slot,
        .constant = from ? NULL : r->state[value].constant,
        .bytes = format ? r->slot[slot].bytes : row_major_bytes(r, value),
    };
    use_slot(r, slot, r->n_actions - 1);
    return copies ? 0 : c->backend->converter(had, format, handle_of(r, step), &c->converter, err);
}

/* The value in this format; made out of the row-major one, or directly out of another, or by way of the row-major
 * one. */
static int need(bz_replay *r, int step, int value, const bz_backend *backend, const bz_place_wanted *wanted,
                const replay_copy **out, bz_error *err)
{
    *out = find_copy(r, value, backend, wanted->format);
    if (*out)
        return 0;
    const replay_copy *plain = find_copy(r, value, NULL, NULL), *from = plain;
    if (!from && r->state[value].n_copies)
        from = &r->state[value].copy[0];
    if (!from && !r->state[value].constant)
        return bz_fail(err, BZ_FAILED, "'%s' is read before it is made", r->model->value[value].name);
    replay_copy source = from ? *from : (replay_copy){0};
    int before = r->n_actions, slot = add_slot(r, wanted->bytes, r->n_actions);
    if (convert_into(r, step, value, from ? &source : NULL, backend, wanted->format, slot, err)) {
        if (r->n_actions > before)
            free(r->action[--r->n_actions].state);
        r->n_slots--;
        if (!from || plain)
            return -1;
        const bz_place_wanted row_major = {.bytes = row_major_bytes(r, value)};
        if (!source.format || need(r, step, value, NULL, &row_major, &plain, err))
            return -1;
        return need(r, step, value, backend, wanted, out, err);
    }
    add_copy(r, value, backend, wanted->format, slot);
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
    if (need(r, step, value, NULL, &wanted, &copy, err))
        return -1;
    *slot = copy->slot;
    return 0;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* The variant of that name; or, where nobody has measured and the library is to choose, what it would take last (a more special
 * way), what it proposes behind that, and then, from the first on, all others: a plan may fail that was proposed. */
static int variant_in_turn(const bz_variant_list *list, const char *algorithm, int turn)
{
    int first = 0;
    for (int i = 0; i < list->n; i++) {
        if (*algorithm && !strcmp(list->item[i].algorithm, algorithm))
            return turn ? -1 : i;
        if (list->item[i].chosen)
            first = i;
    }
    if (*algorithm || turn >= list->n)
        return -1;
    return turn < list->n - first ? first + turn : turn - (list->n - first);
}

enum { MOST_TURNS = 16 };

/* Made ready; out->backend stays NULL where none could be. */
static int prepare_variant(const bz_backend *backend, void *session, const bz_replay_step *step, bz_variant *out,
                           bz_error *err)
{
    bz_variant_list list = {0};
    bz_error first = {0};
    int rc = backend->enumerate(session, step->layout, step->math, &list, err), found = -1;
    if (!rc)
        bz_variant_tell_apart(&list, 0);
    for (int turn = 0; !rc && turn < MOST_TURNS && (found = variant_in_turn(&list, step->algorithm, turn)) >= 0;
         turn++) {
        bz_error own = {0};
        *out = list.item[found];
        if (!backend->prepare(out, &own))
            break;
        if (!turn)
            first = own;
        found = -1;
    }
    if (!rc && found < 0) {
        *out = (bz_variant){0};
        rc = first.code ? bz_fail(err, first.code, "%s", first.text)
                        : bz_fail(err, BZ_INCOMPLETE, "%s has no variant '%s' in layout %s here: plan anew",
                                  step->backend, step->algorithm, step->layout);
    }
    free(list.item);
    return rc;
}

static const bz_device_ops *ops_of(const bz_backend *backend)
{
    return backend->ops ? backend->ops : &replay_processor;
}

static int open_variant(bz_replay *r, int number, replay_call *c, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    void *session = NULL;
    const bz_backend *backend = bz_backend_find(NULL, step->backend, err);
    if (!backend)
        return -1;
    if (!backend->wants)
        return bz_fail(err, BZ_INCOMPLETE, "the backend %s cannot be replayed yet", step->backend);
    if (strcmp(ops_of(backend)->name, r->ops->name) != 0)
        return bz_fail(err, BZ_INCOMPLETE, "the plan has calls for the %s and for the %s; it may have one of them",
                       r->ops->name, ops_of(backend)->name);
    c->job = (bz_job){
        .problem = &c->problem,
        .setting = &r->setting,
        .n_operands = c->n,
        .operand = c->operand,
        .value = (const float *const *)c->value,
        .copies = 1,
        .placed = true,
        .stream = handle_of(r, number),
        .epsilon = step->epsilon,
    };
    if (backend->open(&c->job, &session, err))
        return -1;
    if (!prepare_variant(backend, session, step, &c->variant, err))
        return 0;
    backend->close(session);
    return -1;
}

/* The slot of the residual if the result may be made in it: nobody else wants it any more. */
static int reusable(const bz_replay *r, int step, int value, const bz_backend *backend, const void *format)
{
    const bz_replay_step *s = &r->model->step[step];
    const replay_state *root = &r->state[r->state[value].root];
    int uses = 0;
    for (int i = 0; i < s->n_in; i++)
        uses += s->in[i] >= 0 && r->state[s->in[i]].root == r->state[value].root;
    const replay_copy *copy = find_copy(r, value, backend, format);
    return copy && uses == 1 && root->last_use == step && !root->read_later ? copy->slot : -1;
}

static int place_result(bz_replay *r, int number, replay_call *c, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    const bz_backend *backend = c->variant.backend;
    bz_place_wanted y;
    int slot = -1;
    if (backend->wants(&c->variant, c->n - 1, &y, err))
        return -1;
    if (c->residual >= 0) {
        int value = step->in[c->residual];
        slot = reusable(r, number, value, backend, y.format);
        if (slot < 0) {
            const replay_copy *from = find_copy(r, value, backend, y.format);
            from = from ? from : find_copy(r, value, NULL, NULL);
            from = from || !r->state[value].n_copies ? from : &r->state[value].copy[0];
            replay_copy source = from ? *from : (replay_copy){0};
            slot = add_slot(r, y.bytes, r->n_actions);
            if (convert_into(r, number, value, from ? &source : NULL, backend, y.format, slot, err))
                return -1;
        }
    }
    if (slot < 0)
        slot = add_slot(r, y.bytes, r->n_actions);
    c->slot[c->n - 1] = slot;
    c->format[c->n - 1] = y.format;
    add_copy(r, step->out, backend, y.format, slot);
    return 0;
}

static bool types_fit(const bz_replay_value *v, const bz_operand *o)
{
    return bz_dtype_bits(v->dtype) == bz_dtype_bits(o->dtype) && replay_count(v) == o->count;
}

static int check_types(const bz_replay *r, const bz_replay_step *step, const replay_call *c, bz_error *err)
{
    if (step->n_in != c->n - 1)
        return bz_fail(err, BZ_FAILED, "%s: the call has %d operands, not %d", step->name, c->n - 1, step->n_in);
    for (int i = 0; i < c->n; i++) {
        int value = i < c->n - 1 ? step->in[i] : step->out;
        bool constant = i < c->n - 1 && (value < 0 || r->state[value].constant);
        if (!constant && !types_fit(&r->model->value[value], &c->operand[i]))
            return bz_fail(err, BZ_FAILED, "%s: '%s' has another size than the call's operand", step->name,
                           r->model->value[value].name);
    }
    return 0;
}

/* The call's action is added last: what it waits for comes before it. */
static int open_call(bz_replay *r, int number, replay_call *c, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    c->problem = *step->problem;
    if (bz_problem_normalize(&c->problem, err))
        return -1;
    c->n = bz_problem_operands(&c->problem, c->operand);
    for (int i = 0; i < c->n; i++)
        c->slot[i] = -1;
    if (check_types(r, step, c, err) || replay_operands(r, step, c, err) || open_variant(r, number, c, err))
        return -1;
    const bz_backend *backend = c->variant.backend;
    c->residual = backend->residual(&c->variant);
    for (int i = 0; i < c->n - 1; i++) {
        bz_place_wanted wanted;
        const replay_copy *copy;
        if (c->value[i] && i != c->residual)
            continue;
        if (backend->wants(&c->variant, i, &wanted, err))
            return -1;
        if (!wanted.bytes)
            continue;
        if (need(r, number, step->in[i], backend, &wanted, &copy, err))
            return -1;
        c->slot[i] = copy->slot;
        c->format[i] = wanted.format;
    }
    if (place_result(r, number, c, err))
        return -1;
    for (int i = 0; i < c->n; i++)
        if (c->slot[i] >= 0)
            use_slot(r, c->slot[i], r->n_actions);
    size_t *scratch = &r->stream[step->stream].scratch_size, wanted = (size_t)c->variant.workspace;
    *scratch = wanted > *scratch ? wanted : *scratch;
    return 0;
}

static void free_call(replay_call *c)
{
    if (c->variant.backend) {
        c->variant.backend->release(&c->variant);
        c->variant.backend->close(c->variant.session);
    }
    for (int i = 0; i < BZ_PROBLEM_OPERANDS; i++)
        free(c->value[i]);
    free(c->expected);
    free(c->position);
}

static int add_call(bz_replay *r, int number, bz_error *err)
{
    replay_call *c = bz_zeroed(1, sizeof *c);
    if (open_call(r, number, c, err)) {
        free_call(c);
        free(c);
        return bz_fail_in(err, "%s", r->model->step[number].name);
    }
    replay_call *kept = add_action(r, BZ_ACTION_CALL, number, r->model->step[number].out, sizeof *kept);
    free(kept); /* the session points into the call: it stays where it is */
    r->action[r->n_actions - 1].state = c;
    return 0;
}

/* ---- loops and views ------------------------------------------------------------------------ */

static int add_loop(bz_replay *r, int number, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    replay_loop l = {.loop = step->loop, .n = step->n_in + 1, .threads = r->setting.threads};
    if (l.n > 4 || !bz_loop_knows(step->loop))
        return bz_fail(err, BZ_INCOMPLETE, "%s: there is no such loop", step->name);
    for (int i = 0; i < step->n_in; i++)
        if (need_plain(r, number, step->in[i], &l.slot[i], &l.constant[i], err))
            return -1;
    const replay_copy *own = find_copy(r, step->out, NULL, NULL);
    l.partial = own != NULL;
    if (own) {
        l.slot[step->n_in] = own->slot;
    } else {
        l.slot[step->n_in] = add_slot(r, row_major_bytes(r, step->out), r->n_actions);
        add_copy(r, step->out, NULL, NULL, l.slot[step->n_in]);
    }
    for (int i = 0; i < l.n; i++) {
        const bz_replay_value *v = &r->model->value[i < step->n_in ? step->in[i] : step->out];
        l.dtype[i] = v->dtype;
        l.count[i] = replay_count(v);
        if (l.slot[i] >= 0)
            use_slot(r, l.slot[i], r->n_actions);
    }
    replay_loop *kept = add_action(r, BZ_ACTION_LOOP, number, step->out, sizeof *kept);
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
    add_copy(r, step->out, NULL, NULL, slot);
    return 0;
}

/* A step on constants alone: it runs here. */
static int run_once(bz_replay *r, int number, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    replay_state *y = &r->state[step->out];
    void *operand[4];
    bz_dtype dtype[4];
    int64_t count[4];
    if (step->kind == BZ_STEP_CALL || step->n_in > 3)
        return bz_fail(err, BZ_INCOMPLETE, "%s: constants are not computed by library calls", step->name);
    for (int i = 0; i <= step->n_in; i++) {
        int value = i < step->n_in ? step->in[i] : step->out;
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
    if (bz_loop_run(step->loop, operand, dtype, count, step->n_in + 1, 1))
        return bz_fail(err, BZ_INCOMPLETE, "%s: there is no such loop", step->name);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int check_model(const bz_replay_model *m, bz_error *err)
{
    for (int i = 0; i < m->n_steps; i++) {
        const bz_replay_step *s = &m->step[i];
        bool good = s->out >= 0 && s->out < m->n_values && s->n_in < BZ_PROBLEM_OPERANDS;
        good = good && s->stream >= 0 && s->stream < BZ_REPLAY_STREAMS;
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
        if (r->model->value[i].source == BZ_VALUE_INPUT) {
            add_copy(r, i, NULL, NULL, add_slot(r, row_major_bytes(r, i), 0));
            r->state[i].read_later = true;
        }
}

/* Inputs and outputs live to the end: the next run reads the ones, and whoever called the others. */
static void keep_ends(bz_replay *r)
{
    for (int i = 0; i < r->model->n_values; i++) {
        bool input = r->model->value[i].source == BZ_VALUE_INPUT;
        const replay_copy *plain = find_copy(r, i, NULL, NULL);
        if (!plain || !(input || r->model->value[i].output))
            continue;
        r->slot[plain->slot].first = input ? 0 : r->slot[plain->slot].first;
        r->slot[plain->slot].last = r->n_actions;
        r->sizes.ends += r->slot[plain->slot].bytes;
    }
}

static int add_steps(bz_replay *r, bz_error *err)
{
    const bz_replay_model *m = r->model;
    place_inputs(r);
    for (int i = 0; i < m->n_steps; i++) {
        const bz_replay_step *s = &m->step[i];
        r->first[i] = r->n_actions;
        if (s->once                   ? run_once(r, i, err)
            : s->kind == BZ_STEP_CALL ? add_call(r, i, err)
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
        if (m->step[i].kind != BZ_STEP_CALL || backend)
            continue;
        backend = bz_backend_find(NULL, m->step[i].backend, err);
        if (!backend)
            return -1;
        r->ops = ops_of(backend);
    }
    r->held = true;
    return r->ops->open(&r->setting, r->n_streams, &r->device, err);
}

static int fill_inputs(bz_replay *r, bz_error *err)
{
    int bad = 0;
    for (int i = 0; i < r->model->n_values && !bad; i++) {
        const bz_replay_value *v = &r->model->value[i];
        if (v->source != BZ_VALUE_INPUT)
            continue;
        void *bytes = bz_alloc(replay_bytes(v) + 64, 1);
        replay_fill(v, i, v->dtype, bytes);
        bad = r->ops->copy(r->device, 0, replay_at(r, find_copy(r, i, NULL, NULL)->slot), bytes, replay_bytes(v)) ||
              r->ops->wait(r->device);
        free(bytes);
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
        free_call(a->state);
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
