/* A step that is a library call: made ready, its operands in the formats that it wants, its results given memory. */
#include "runtime/replay_open.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

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

const bz_device_ops *replay_ops_of(const bz_backend *backend)
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
    if (strcmp(replay_ops_of(backend)->name, r->ops->name) != 0)
        return bz_fail(err, BZ_INCOMPLETE, "the plan has calls for the %s and for the %s; it may have one of them",
                       r->ops->name, replay_ops_of(backend)->name);
    c->job = (bz_job){
        .problem = &c->problem,
        .setting = &r->setting,
        .n_operands = c->n,
        .operand = c->operand,
        .value = (const float *const *)c->value,
        .copies = 1,
        .placed = true,
        .stream = replay_handle(r, number),
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
    const replay_copy *copy = replay_find_copy(r, value, backend, format);
    return copy && uses == 1 && root->last_use == step && !root->read_later ? copy->slot : -1;
}

/* Results besides the last: in the memory of an operand that they replace, or in their own. What nobody asked for by name
 * has memory all the same. */
static int place_more(bz_replay *r, int number, replay_call *c, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    const bz_backend *backend = c->variant.backend;
    for (int k = c->n_in; k < c->n; k++) {
        bool last = k == c->n - 1;
        int value = last ? step->out : step->more[k - c->n_in], alias = c->operand[k].alias;
        bz_place_wanted wanted;
        if (last && alias < 0)
            break; /* place_result has it */
        if (backend->wants(&c->variant, k, &wanted, err))
            return -1;
        if (!wanted.bytes)
            continue;
        bool replaces = alias >= 0 && c->slot[alias] >= 0 &&
                        r->model->value[step->in[alias]].source != BZ_VALUE_INPUT; /* those are the caller's */
        if (replaces && r->state[r->state[step->in[alias]].root].last_use > number)
            return bz_fail(err, BZ_INCOMPLETE, "'%s' is read after it was replaced",
                           r->model->value[step->in[alias]].name);
        c->slot[k] = replaces ? c->slot[alias] : replay_add_slot(r, wanted.bytes, r->n_actions);
        c->format[k] = wanted.format;
        if (value >= 0)
            replay_add_copy(r, value, backend, wanted.format, c->slot[k]);
    }
    return 0;
}

static int place_result(bz_replay *r, int number, replay_call *c, bz_error *err)
{
    const bz_replay_step *step = &r->model->step[number];
    const bz_backend *backend = c->variant.backend;
    bz_place_wanted y;
    int slot = -1;
    if (place_more(r, number, c, err))
        return -1;
    if (c->slot[c->n - 1] >= 0)
        return 0;
    if (backend->wants(&c->variant, c->n - 1, &y, err))
        return -1;
    if (c->residual >= 0) {
        int value = step->in[c->residual];
        slot = reusable(r, number, value, backend, y.format);
        if (slot < 0) {
            const replay_copy *from = replay_find_copy(r, value, backend, y.format);
            from = from ? from : replay_find_copy(r, value, NULL, NULL);
            from = from || !r->state[value].n_copies ? from : &r->state[value].copy[0];
            replay_copy source = from ? *from : (replay_copy){0};
            slot = replay_add_slot(r, y.bytes, r->n_actions);
            if (replay_convert_into(r, number, value, from ? &source : NULL, backend, y.format, slot, err))
                return -1;
        }
    }
    if (slot < 0)
        slot = replay_add_slot(r, y.bytes, r->n_actions);
    c->slot[c->n - 1] = slot;
    c->format[c->n - 1] = y.format;
    replay_add_copy(r, step->out, backend, y.format, slot);
    return 0;
}

static int check_types(const bz_replay *r, const bz_replay_step *step, const replay_call *c, bz_error *err)
{
    if (step->n_in != c->n_in || c->n_in + step->n_more + 1 != c->n)
        return bz_fail(err, BZ_FAILED, "%s: the call has %d operands and %d results, not %d and %d", step->name,
                       c->n_in, c->n - c->n_in, step->n_in, step->n_more + 1);
    for (int i = 0; i < c->n; i++) {
        int value = i < c->n_in ? step->in[i] : i < c->n - 1 ? step->more[i - c->n_in] : step->out;
        bool constant = i < c->n - 1 && (value < 0 || r->state[value].constant);
        const bz_replay_value *v = constant ? NULL : &r->model->value[value];
        if (v &&
            (bz_dtype_bits(v->dtype) != bz_dtype_bits(c->operand[i].dtype) || replay_count(v) != c->operand[i].count))
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
    for (int i = 0; i < c->n; i++) {
        c->slot[i] = -1;
        c->n_in += !c->operand[i].result;
    }
    if (check_types(r, step, c, err) || replay_operands(r, step, c, err) || open_variant(r, number, c, err))
        return -1;
    const bz_backend *backend = c->variant.backend;
    c->residual = backend->residual ? backend->residual(&c->variant) : -1;
    for (int i = 0; i < c->n_in; i++) {
        bz_place_wanted wanted;
        const replay_copy *copy;
        if (c->value[i] && i != c->residual)
            continue;
        if (backend->wants(&c->variant, i, &wanted, err))
            return -1;
        if (!wanted.bytes)
            continue;
        if (replay_need(r, number, step->in[i], backend, &wanted, &copy, err))
            return -1;
        c->slot[i] = copy->slot;
        c->format[i] = wanted.format;
    }
    if (place_result(r, number, c, err))
        return -1;
    for (int i = 0; i < c->n; i++)
        if (c->slot[i] >= 0)
            replay_use_slot(r, c->slot[i], r->n_actions);
    size_t *scratch = &r->stream[step->stream].scratch_size, wanted = (size_t)c->variant.workspace;
    *scratch = wanted > *scratch ? wanted : *scratch;
    return 0;
}

void replay_free_call(replay_call *c)
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

int replay_add_call(bz_replay *r, int number, bz_error *err)
{
    replay_call *c = bz_zeroed(1, sizeof *c);
    if (open_call(r, number, c, err)) {
        replay_free_call(c);
        free(c);
        return bz_fail_in(err, "%s", r->model->step[number].name);
    }
    replay_call *kept = replay_add_action(r, BZ_ACTION_CALL, number, r->model->step[number].out, sizeof *kept);
    free(kept); /* its variant points into the call: that stays where it is */
    r->action[r->n_actions - 1].state = c;
    return 0;
}
