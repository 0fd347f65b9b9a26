/* Assigns every nanosecond of an iteration to one step or cause. Claims are made in turn, and each gets what is left: first
 * the work of the device (on a CPU: of the library), then what the host did meanwhile. The rest is not explained. */
#include "base/sort.h"
#include "explain/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct claim {
    int64_t start, end;
    int step; /* or -1 */
    bool busy;
    bz_cause_kind cause; /* where it is no step */
    const char *name;    /* of the event */
    uint32_t stack;
} claim;

typedef struct span {
    int64_t start, end;
} span;

typedef struct tally {
    bz_cause_kind cause;
    const char *id, *name, *example, *where;
    bool busy;
    int64_t time, longest, most; /* nanoseconds; of the example; of `where` */
    int count;
} tally;

typedef struct ledger {
    bz_align_steps *s;
    bz_arena *arena;
    span *free, *left; /* ascending; what was before the claims of now, and what they leave */
    int n_free, n_left;
    claim *claim;
    int n;
    tally *tally;
    int n_tallies;
    bz_map ids, places;
    int64_t *place; /* by places */
    uint32_t n_places;
} ledger;

/* An operator is a cause of its own. */
static tally *find_tally(ledger *l, bz_cause_kind cause, const char *operator, bool busy)
{
    bool own = cause == BZ_CAUSE_OPERATOR;
    const char *id = own ? bz_arena_printf(l->arena, "operator %s", operator) : bz_cause_id(cause);
    uint32_t at = bz_map_add(&l->ids, id, strlen(id), (uint32_t)l->n_tallies);
    if (at < (uint32_t)l->n_tallies)
        return &l->tally[at];
    BZ_ROOM(l->tally, l->n_tallies);
    l->tally[l->n_tallies] =
        (tally){.cause = cause, .id = id, .name = own ? id : bz_cause_name(cause), .busy = busy, .longest = -1};
    return &l->tally[l->n_tallies++];
}

/* The line that most of a cause comes from. */
static void add_place(ledger *l, tally *t, uint32_t stack, int64_t time)
{
    uint32_t caller = stack ? bz_stack_caller(l->s->trace, stack) : 0;
    if (!caller)
        return;
    uint32_t key[2] = {(uint32_t)(t - l->tally), caller}, at = bz_map_number(&l->places, l->arena, key, sizeof key);
    if (at == l->n_places)
        BZ_ADD(l->place, l->n_places) = 0;
    l->place[at] += time;
    if (l->place[at] > t->most) {
        t->most = l->place[at];
        t->where = bz_string(l->s->trace, caller);
    }
}

static void charge(ledger *l, tally *t, const char *example, uint32_t stack, int64_t time, int count)
{
    t->time += time;
    t->count += count;
    if (example && time > t->longest) {
        t->longest = time;
        t->example = example;
    }
    add_place(l, t, stack, time);
}

static void give(ledger *l, const claim *c, int64_t time)
{
    if (c->step >= 0)
        l->s->step[c->step].time += time;
    else
        charge(l, find_tally(l, c->cause, c->name, c->busy), c->name, c->stack, time, 1);
}

static void push(span **list, int *n, int64_t start, int64_t end)
{
    if (start >= end)
        return;
    BZ_ADD(*list, *n) = (span){start, end};
}

static void add_claim(ledger *l, claim c)
{
    if (c.start >= c.end || c.end <= l->s->begin || c.start >= l->s->end)
        return;
    BZ_ADD(l->claim, l->n) = c;
}

BZ_SORTS(by_start, claim,
         BZ_THEN(BZ_ORDER(p->start, q->start), BZ_THEN(BZ_ORDER(q->end, p->end), BZ_ORDER(p->step, q->step))));

/* All claims made so far get what is free; of two at once the one that began first. */
static void settle(ledger *l)
{
    int i = 0;
    BZ_QSORT(l->claim, l->n, by_start);
    l->n_left = 0;
    for (int f = 0; f < l->n_free; f++) {
        int64_t at = l->free[f].start, end = l->free[f].end;
        while (i < l->n && l->claim[i].start < end) {
            const claim *c = &l->claim[i];
            int64_t from = c->start > at ? c->start : at, to = c->end < end ? c->end : end;
            if (to > from) {
                push(&l->left, &l->n_left, at, from);
                give(l, c, to - from);
                at = to;
            }
            if (c->end > end)
                break;
            i++;
        }
        push(&l->left, &l->n_left, at, end);
    }
    span *swap = l->free;
    l->free = l->left;
    l->n_free = l->n_left;
    l->left = swap;
    l->n = 0;
}

static bz_cause_kind copy_cause(uint32_t direction)
{
    return direction == 1   ? BZ_CAUSE_COPIED_TO_DEVICE
           : direction == 2 ? BZ_CAUSE_COPIED_FROM_DEVICE
           : direction == 8 ? BZ_CAUSE_COPIED_ON_DEVICE
                            : BZ_CAUSE_COPIED;
}

static void claim_device(ledger *l, bool own)
{
    const bz_align_steps *s = l->s;
    for (int kind = BZ_EVENT_KERNEL; kind <= BZ_EVENT_MEMSET; kind++) {
        const bz_events *e = &s->trace->event[kind];
        for (size_t i = 0; i < e->n; i++) {
            if (e->end[i] <= s->begin || e->start[i] >= s->end || bz_align_in(s, (bz_event_kind)kind, i) != own)
                continue;
            uint32_t step = !own                                            ? 0
                            : e->call[i] < s->trace->event[BZ_EVENT_CALL].n ? s->of_call[e->call[i]]
                            : kind == BZ_EVENT_KERNEL                       ? s->of_kernel[i]
                                                                            : 0;
            bz_cause_kind cause = !own                      ? BZ_CAUSE_OTHER_ITERATION
                                  : kind == BZ_EVENT_MEMSET ? BZ_CAUSE_FILLED
                                  : kind == BZ_EVENT_COPY   ? copy_cause(e->value[i])
                                                            : BZ_CAUSE_KERNELS_EXTRA;
            uint32_t name = e->short_name && e->short_name[i] ? e->short_name[i] : e->name[i];
            add_claim(l, (claim){e->start[i], e->end[i], (int)step - 1, true, cause, bz_string(s->trace, name), 0});
        }
    }
    settle(l);
}

static void claim_steps(ledger *l)
{
    const bz_align_steps *s = l->s;
    const bz_events *e = &s->trace->event[s->operators ? BZ_EVENT_OP : BZ_EVENT_CALL];
    for (int i = 0; i < s->n; i++)
        add_claim(l, (claim){e->start[s->step[i].at], e->end[s->step[i].at], i, true, BZ_CAUSE_NONE, NULL, 0});
    for (size_t i = 0; s->operators && s->whole && i < e->n; i++)
        if (s->whole[i] < i)
            add_claim(l, (claim){e->start[i], e->end[i], (int)s->of_op[s->whole[i]] - 1, true, BZ_CAUSE_NONE, NULL, 0});
    settle(l);
}

static void claim_api(ledger *l, bz_cause_kind cause)
{
    const bz_trace *t = l->s->trace;
    const bz_events *e = &t->event[BZ_EVENT_API];
    for (size_t i = 0; i < e->n; i++) {
        if (e->end[i] <= l->s->begin || e->start[i] >= l->s->end)
            continue;
        const char *name = bz_string(t, e->name[i]);
        if (bz_align_api_cause(name) == cause)
            add_claim(l, (claim){e->start[i], e->end[i], -1, false, cause, name, e->stack[i]});
    }
    settle(l);
}

/* The host may wait or launch meanwhile: the device would have gone on no sooner. */
static void claim_queued(ledger *l)
{
    BZ_FREED bz_gap *gap = NULL;
    size_t n = bz_trace_queued(l->s->trace, &(bz_iteration){.start = l->s->begin, .end = l->s->end}, &gap);
    for (size_t i = 0; i < n; i++)
        add_claim(l, (claim){gap[i].start, gap[i].end, -1, false, BZ_CAUSE_QUEUED, NULL, 0});
    settle(l);
}

static void claim_library(ledger *l)
{
    const bz_align_steps *s = l->s;
    const bz_events *e = &s->trace->event[BZ_EVENT_CALL];
    for (int i = 0; i < s->n; i++)
        if (s->step[i].kind == BZ_ALIGN_CALL) {
            size_t at = s->step[i].at;
            add_claim(l, (claim){e->start[at], e->end[at], -1, false, BZ_CAUSE_LIBRARY, s->step[i].name, e->stack[at]});
        }
    settle(l);
}

/* Operators lie in one another: the innermost one counts, so the deepest come first. One that marks the iteration is no work. */
static void claim_operators(ledger *l)
{
    const bz_trace *t = l->s->trace;
    const bz_events *o = &t->event[BZ_EVENT_OP];
    int *depth = BZ_NEW(l->arena, int, o->n), deepest = 0;
    for (size_t i = 0; i < o->n; i++) {
        depth[i] = o->op[i] < i ? depth[o->op[i]] + 1 : 0;
        if (o->end[i] > l->s->begin && o->start[i] < l->s->end && depth[i] > deepest)
            deepest = depth[i];
    }
    for (int d = deepest; d >= 0; d--) {
        for (size_t i = 0; i < o->n; i++)
            if (depth[i] == d && o->end[i] > l->s->begin && o->start[i] < l->s->end) {
                const char *name = bz_string(t, o->name[i]);
                if (bz_is_mark(name))
                    continue;
                add_claim(l, (claim){o->start[i], o->end[i], -1, false, BZ_CAUSE_OPERATOR, name, 0});
            }
        settle(l);
    }
}

static void charge_rest(ledger *l, const bool *between, const char *layers)
{
    const bz_align_steps *s = l->s;
    int next = 0; /* the first step that begins behind the gap */
    for (int f = 0; f < l->n_free; f++) {
        while (next < s->n && s->step[next].start < l->free[f].end)
            next++;
        bool outside = !s->device && between[next];
        bz_cause_kind cause = outside        ? BZ_CAUSE_LAYERS_OUTSIDE
                              : !next        ? BZ_CAUSE_START
                              : next == s->n ? BZ_CAUSE_END
                                             : BZ_CAUSE_GAPS;
        const char *example = outside ? layers : NULL;
        if (!outside && next && next < s->n)
            example = bz_arena_printf(l->arena, "%s, then %s", s->step[next - 1].name, s->step[next].name);
        charge(l, find_tally(l, cause, NULL, false), example, 0, l->free[f].end - l->free[f].start, 1);
    }
}

static void charge_steps(ledger *l)
{
    static const bz_cause_kind EXTRA[] = {[BZ_ALIGN_CALL] = BZ_CAUSE_CALLS_EXTRA,
                                          [BZ_ALIGN_KERNEL] = BZ_CAUSE_KERNELS_EXTRA,
                                          [BZ_ALIGN_OPERATOR] = BZ_CAUSE_OPERATORS_EXTRA};
    for (int i = 0; i < l->s->n; i++) {
        const bz_align_step *step = &l->s->step[i];
        bz_cause_kind cause = step->cause ? step->cause : EXTRA[step->kind];
        if (!step->asked)
            charge(l, find_tally(l, cause, NULL, true), step->name, step->stack, step->time, 1);
    }
}

double bz_alignment_missing(const bz_alignment *a)
{
    double sum = 0;
    for (int i = 0; i < a->n; i++)
        sum += a->row[i].kind == BZ_ALIGNED_MISSING && isfinite(a->row[i].bound) ? a->row[i].bound : 0;
    return sum;
}

BZ_SORTS(greatest, tally, BZ_THEN(BZ_ORDER(q->time, p->time), strcmp(p->id, q->id)));

void bz_align_time(bz_align_steps *s, const bool *between, const char *layers, bz_arena *arena, bz_alignment *out)
{
    ledger l = {.s = s, .arena = arena};
    push(&l.free, &l.n_free, s->begin, s->end);
    if (s->device) {
        claim_device(&l, true);
        claim_device(&l, false);
        claim_queued(&l);
        claim_api(&l, BZ_CAUSE_WAITS);
        claim_api(&l, BZ_CAUSE_LAUNCHES);
        claim_api(&l, BZ_CAUSE_ALLOCATES);
        claim_api(&l, BZ_CAUSE_RUNTIME);
        claim_library(&l);
    } else {
        claim_steps(&l);
    }
    claim_operators(&l);
    charge_rest(&l, between, layers);
    charge_steps(&l);
    BZ_QSORT(l.tally, l.n_tallies, greatest);
    out->cause = BZ_NEW(arena, bz_cause, l.n_tallies);
    out->n_causes = l.n_tallies;
    out->asked = bz_tick(1e-9 * (double)(s->end - s->begin));
    for (int i = 0; i < l.n_tallies; i++) {
        const tally *t = &l.tally[i];
        out->cause[i] = (bz_cause){t->cause,   t->name, t->id, t->busy, t->count, bz_tick(1e-9 * (double)t->time),
                                   t->example, t->where};
        out->asked -= out->cause[i].seconds;
    }
    free(l.free);
    free(l.left);
    free(l.claim);
    free(l.tally);
    free(l.place);
    bz_map_free(&l.ids);
    bz_map_free(&l.places);
}
