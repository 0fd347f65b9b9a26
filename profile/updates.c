/* Iterations of a training by the updates of its weights: PyTorch tells each step of an optimizer. What a program does in one may differ
 * from the next, as in reinforcement learning, or be cut off at both ends of a short recording: then what repeats is no iteration. */
#include "profile/constants.h"
#include "profile/sequence.h"

#include <string.h>

/* The steps of optimizers on the thread that makes most of them, those that another one makes left out: rows of events. */
typedef struct {
    const bz_events *event;
    bz_event_kind kind;
    uint32_t *row;
    size_t n;
} updates;

static bool names_update(const char *name)
{
    static const char NAME[] = "Optimizer.step#";
    return !strncmp(name, NAME, sizeof NAME - 1);
}

static bool is_update(const bz_trace *t, const bz_events *e, size_t i)
{
    return !t->lane[e->lane[i]].device && names_update(bz_string(t, e->name[i]));
}

static updates find_updates(const bz_trace *t, bz_event_kind kind, bz_arena *arena)
{
    const bz_events *e = &t->event[kind];
    size_t *count = BZ_NEW(arena, size_t, t->n_lanes + 1), most = 0;
    updates u = {.event = e, .kind = kind};
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < e->n; i++)
        count[e->lane[i]] += is_update(t, e, i);
    for (uint32_t k = 1; k < t->n_lanes; k++)
        most = count[k] > count[most] ? k : most;
    u.row = BZ_NEW(arena, uint32_t, (t->n_lanes ? count[most] : 0) + 1);
    for (size_t i = 0; i < e->n; i++)
        if (e->lane[i] == most && is_update(t, e, i) && e->start[i] >= end) {
            u.row[u.n++] = (uint32_t)i;
            end = e->end[i];
        }
    return u;
}

/* What tells one optimizer from another: a number for the operators within each update, and the shapes that they read, which are those of its
 * weights; and one for the set of operators that came before on its thread. How often one of those ran may differ. */
typedef struct {
    uint64_t *weights, *before;
    bool shapes; /* are on record */
} kinds;

static uint64_t mixed(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return number ^ number >> 32;
}

static kinds kinds_of(const bz_trace *t, const updates *u, bz_arena *arena)
{
    const bz_events *op = &t->event[BZ_EVENT_OP], *e = u->event;
    kinds of = {.weights = BZ_NEW(arena, uint64_t, u->n), .before = BZ_NEW(arena, uint64_t, u->n)};
    size_t *seen = BZ_NEW(arena, size_t, bz_strings(t) + 1), k = 0; /* 1 + the last update that it stands before */
    for (size_t i = 0; i < u->n; i++)
        of.weights[i] = mixed(e->name[u->row[i]]);
    for (size_t i = 0; i < op->n && k < u->n; i++) {
        while (k < u->n && op->start[i] >= e->end[u->row[k]])
            k++;
        if (k == u->n || op->lane[i] != e->lane[u->row[k]])
            continue;
        if (op->start[i] >= e->start[u->row[k]]) {
            const char *inputs = bz_string(t, op->detail[i]);
            of.weights[k] += mixed(op->name[i] ^ bz_hash_bytes(inputs, strcspn(inputs, " ")).low);
            of.shapes |= !strncmp(inputs, "inputs=[[", 9) && inputs[9] != ']';
        } else if (seen[op->name[i]] != k + 1) {
            seen[op->name[i]] = k + 1;
            of.before[k] += mixed(op->name[i]);
        }
    }
    return of;
}

/* After how many the kinds repeat; 0: they do not. The first half is not compared: there memory is made, and gradients are put in order. */
static size_t repeat(const uint64_t *kind, size_t n)
{
    enum { MOST = 64 };
    for (size_t each = 1; 3 * each <= n && each <= MOST; each++) {
        size_t same = 0, from = n / 2 > 2 * each ? n / 2 : 2 * each;
        for (size_t i = from; i < n; i++)
            same += kind[i] == kind[i - each];
        if ((double)same >= UPDATES_ALIKE * (double)(n - from))
            return each;
    }
    return 0;
}

/* How many updates the iterations that were found have; `all`: each of them but one, as the recording may begin or end in that. */
static size_t held_by(const bz_trace *t, const updates *u, bool *all, bz_arena *arena)
{
    int64_t *count = BZ_NEW(arena, int64_t, t->n_iterations + 1), usual;
    size_t other = 0;
    for (size_t i = 0; i < u->n; i++) {
        uint32_t in = bz_event_iteration(t, u->kind, u->row[i]);
        count[in < t->n_iterations ? in : t->n_iterations]++;
    }
    usual = bz_median(count, t->n_iterations); /* sorts them */
    for (uint32_t i = 0; i < t->n_iterations; i++)
        other += count[i] != usual;
    *all = other <= (t->n_iterations > 2);
    return (size_t)usual;
}

/* One update is of one iteration, whatever repeats within it: layers do, and a network that plays before it learns. Two are of two if what is updated, and
 * what comes before, is the same, or what repeats has one each; else they are of two networks that train in turns. */
static size_t of_few(const kinds *of, size_t n, bool one_each)
{
    bool same = n == 2 && of->weights[0] == of->weights[1] && of->before[0] == of->before[1];
    return same || one_each ? 1 : n;
}

/* An iteration has one update, or as many as come until their weights repeat, as where two networks train in turns. Where nothing tells weights
 * apart, what repeats may tell it, if that many updates have the same operators before them; a validation, or one of several
 * loaders, may come as regularly. */
static bool take(bz_trace *t, const updates *u, bz_arena *arena)
{
    enum { FEW = 2 };
    const bz_events *op = &t->event[BZ_EVENT_OP];
    if (!u->n || !op->n)
        return false;
    bool all;
    kinds of = kinds_of(t, u, arena);
    size_t found = held_by(t, u, &all, arena);
    bool one_each = all && found == 1 && t->n_iterations == u->n;
    size_t each = u->n <= FEW ? of_few(&of, u->n, one_each) : repeat(of.weights, u->n);
    each = !each && all && found == 1 ? 1 : each; /* rounded times put what an update does now into it, now behind it */
    if (!each)
        return false;
    if (each == 1 && !of.shapes && found > 1 && repeat(of.before, u->n) == found)
        each = found;
    bool good = all && each == found;
    bz_trace_settle(t);
    if (!good || each > 1)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE, "an iteration of this training has %zu step%s of the optimizer%s",
                       each, each > 1 ? "s" : "",
                       good ? "" : ": what repeats in the recording has other numbers of them, and is none");
    t->by_updates = true;
    if (good)
        return false;
    t->n_iterations = 0;
    t->origin = BZ_ITERATION_RANGE;
    int64_t from = op->start[0] < u->event->start[u->row[0]] ? op->start[0] : u->event->start[u->row[0]];
    for (size_t i = each; i <= u->n; i += each) {
        bz_trace_add_iteration(t, from, u->event->end[u->row[i - 1]]);
        from = u->event->end[u->row[i - 1]];
    }
    return true;
}

bool bz_iterations_by_updates(bz_trace *t)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bool any = false, found = false;
    for (uint32_t i = 0; i < bz_strings(t) && !any; i++)
        any = names_update(bz_string(t, i));
    for (int k = 0; k < 2 && any && !found; k++) { /* older versions tell them as operators */
        updates u = find_updates(t, k ? BZ_EVENT_OP : BZ_EVENT_RANGE, &arena);
        found = take(t, &u, &arena);
    }
    return found;
}
