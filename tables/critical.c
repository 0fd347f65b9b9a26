/* The graph's nodes, and the longest way through it. */
#include "tables/critical.h"
#include "base/sort.h"
#include "tables/constants.h"

#include <stdlib.h>

static const bz_event_kind KINDS[CRITICAL_KINDS] = {BZ_EVENT_OP, BZ_EVENT_API, BZ_EVENT_KERNEL, BZ_EVENT_COPY,
                                                    BZ_EVENT_MEMSET};

bz_event_kind critical_kind(const critical *c, uint32_t event, size_t *i)
{
    int k = 0;
    while (event >= c->first[k + 1])
        k++;
    *i = event - c->first[k];
    return KINDS[k];
}

int64_t critical_time(const critical *c, uint32_t node)
{
    size_t i;
    const bz_events *e = &c->m->t->event[critical_kind(c, node / 2, &i)];
    return node % 2 ? e->end[i] : e->start[i];
}

void critical_add(critical *c, uint32_t to, uint32_t from)
{
    BZ_ADD(c->edge, c->n_edges) = (critical_edge){to, from};
}

BZ_SORTS(by_to, critical_edge, BZ_THEN(BZ_ORDER(p->to, q->to), BZ_ORDER(p->from, q->from)));

static size_t edges_to(const critical *c, uint32_t node)
{
    size_t low = 0, high = c->n_edges;
    BZ_FIND_FIRST(low, high, mid, c->edge[mid].to < node);
    return low;
}

static bool on_device(const critical *c, uint32_t node)
{
    return node / 2 >= c->first[2];
}

/* The way to `node` over `from`; `free`: an edge without length. Negative lengths, of clocks that differ, are none. */
static void try_way(critical *c, uint32_t node, uint32_t from, bool free, int64_t *best, uint32_t *chosen)
{
    int64_t step = free ? 0 : critical_time(c, node) - critical_time(c, from);
    int64_t length = c->length[from] + (step > 0 ? step : 0);
    if (length > *best) {
        *best = length;
        *chosen = (from + 1) | (free ? CRITICAL_NONE + 1u : 0);
    }
}

/* Of nodes that lead here and are not known yet, the first; CRITICAL_NONE: none. A file whose clocks differ may lead in a circle:
 * what is on its way (-1) is passed over. */
static uint32_t unknown_before(const critical *c, uint32_t node)
{
    uint32_t b = c->before[node] & CRITICAL_NONE;
    if (b && !c->length[b - 1])
        return b - 1;
    for (size_t k = edges_to(c, node); k < c->n_edges && c->edge[k].to == node; k++)
        if (!c->length[c->edge[k].from])
            return c->edge[k].from;
    return CRITICAL_NONE;
}

static void settle(critical *c, uint32_t node)
{
    uint32_t b = c->before[node], chosen = 0;
    int64_t best = 0;
    size_t k = edges_to(c, node);
    bool waits_first = on_device(c, node);
    for (int turn = 0; turn < 2; turn++)
        if (waits_first == !turn) {
            for (; k < c->n_edges && c->edge[k].to == node; k++)
                if (c->length[c->edge[k].from] > 0)
                    try_way(c, node, c->edge[k].from, true, &best, &chosen);
        } else if (b && c->length[(b & CRITICAL_NONE) - 1] > 0) {
            try_way(c, node, (b & CRITICAL_NONE) - 1, b > CRITICAL_NONE, &best, &chosen);
        }
    c->before[node] = chosen;
    c->length[node] = chosen ? best : 1;
}

static void find_length(critical *c, uint32_t node, uint32_t **stack)
{
    size_t n = 0;
    if (c->length[node])
        return;
    BZ_ADD(*stack, n) = node;
    while (n) {
        uint32_t at = (*stack)[n - 1];
        c->length[at] = -1;
        uint32_t next = unknown_before(c, at);
        if (next == CRITICAL_NONE) {
            settle(c, at);
            n--;
            continue;
        }
        BZ_ADD(*stack, n) = next;
    }
}

/* Starts in the order of time, so that most of what leads to a node is known when it is asked for; then ends. */
static uint32_t find_lengths(critical *c)
{
    size_t at[CRITICAL_KINDS] = {0};
    uint32_t *stack = NULL, last = CRITICAL_NONE;
    for (int next; (next = tables_earliest(c->m->t, KINDS, CRITICAL_KINDS, at)) >= 0;) {
        uint32_t node = 2 * (c->first[next] + (uint32_t)at[next]++);
        if (c->present[node / 2])
            find_length(c, node, &stack);
    }
    for (uint32_t node = 1; node < 2 * c->first[CRITICAL_KINDS]; node += 2)
        if (c->present[node / 2]) {
            find_length(c, node, &stack);
            if (last == CRITICAL_NONE || c->length[node] > c->length[last] ||
                (c->length[node] == c->length[last] && critical_time(c, node) < critical_time(c, last)))
                last = node; /* what follows without length is not on the path */
        }
    free(stack);
    return last;
}

bool critical_find(bz_tables *m, critical *c)
{
    uint64_t events = 0;
    *c = (critical){.m = m};
    for (int k = 0; k < CRITICAL_KINDS; k++) {
        c->first[k] = (uint32_t)events;
        events += m->t->event[KINDS[k]].n;
        if (events >= CRITICAL_NONE / 2)
            return false;
    }
    c->first[CRITICAL_KINDS] = (uint32_t)events;
    uint32_t typical = bz_typical_iteration(m->t);
    if (events > LARGE && m->from == INT64_MIN && typical != BZ_NONE) {
        c->narrow = *m;
        c->narrow.from = bz_iteration_begin(m->t, typical);
        c->narrow.to = m->t->iteration[typical].end;
        c->m = &c->narrow;
    }
    c->before = bz_zeroed(2 * (size_t)events + 2, sizeof *c->before);
    c->length = bz_zeroed(2 * (size_t)events + 2, sizeof *c->length);
    c->around = bz_zeroed((size_t)c->first[2] + 1, sizeof *c->around);
    c->present = bz_zeroed((size_t)events + 1, sizeof *c->present);
    critical_chain_host(c);
    critical_chain_device(c);
    BZ_QSORT(c->edge, c->n_edges, by_to);
    uint32_t last = find_lengths(c);
    if (last == CRITICAL_NONE)
        return false;
    for (uint32_t node = last; node != CRITICAL_NONE;
         node = c->before[node] ? (c->before[node] & CRITICAL_NONE) - 1 : CRITICAL_NONE)
        c->n_path++;
    c->path = bz_alloc(c->n_path, sizeof *c->path);
    size_t n = c->n_path;
    for (uint32_t node = last; n; node = c->before[node] ? (c->before[node] & CRITICAL_NONE) - 1 : CRITICAL_NONE)
        c->path[--n] = node;
    return true;
}

void critical_end(critical *c)
{
    free(c->before);
    free(c->length);
    free(c->around);
    free(c->present);
    free(c->trait);
    free(c->edge);
    free(c->launch);
    free(c->launch_first);
    free(c->path);
}

critical_bound critical_of(const critical *c, size_t step, uint32_t *event)
{
    uint32_t from = c->path[step], to = c->path[step + 1];
    *event = to / 2;
    if (c->before[to] > CRITICAL_NONE)
        return BOUND_NOTHING;
    if (!on_device(c, to)) {
        *event = from % 2 == 0 ? from / 2 : to % 2 ? to / 2 : c->around[from / 2] ? c->around[from / 2] - 1 : from / 2;
        return BOUND_HOST;
    }
    if (to % 2) {
        static const critical_bound BOUNDS[WORK_CLASSES] = {BOUND_COMPUTE, BOUND_COMMUNICATION, BOUND_MEMORY};
        work w = {0};
        w.kind = critical_kind(c, to / 2, &w.i);
        return BOUNDS[tables_class(c->m, &w)];
    }
    *event = on_device(c, from) ? from / 2 : to / 2;
    return on_device(c, from) ? BOUND_KERNEL_DELAY : BOUND_LAUNCH_DELAY;
}
