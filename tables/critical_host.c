/* Threads of the host as chains: operators and runtime calls, one in another. */
#include "base/sort.h"
#include "tables/critical.h"

#include <stdlib.h>
#include <string.h>

/* As HTA lists them, without the "cuda" and "hip" in front. */
static const struct {
    const char *name;
    uint8_t trait;
} TRAITS[] = {{"DeviceSynchronize", CRITICAL_WAITS},
              {"StreamSynchronize", CRITICAL_WAITS},
              {"EventQuery", CRITICAL_WAITS},
              {"EventSynchronize", CRITICAL_WAITS},
              {"Memcpy", CRITICAL_WAITS},
              {"MemcpyAsync", CRITICAL_WAITS | CRITICAL_LOCKS},
              {"LaunchKernel", CRITICAL_LOCKS},
              {"HostAlloc", CRITICAL_LOCKS},
              {"HostMalloc", CRITICAL_LOCKS}};

/* "cudaMemcpyAsync", "cudaMemcpyAsync_v3020", "hipMemcpyAsync" */
static uint8_t trait_of(const char *name)
{
    if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "hip", 3) != 0)
        return 0;
    name += *name == 'c' ? 4 : 3;
    for (size_t i = 0; i < sizeof TRAITS / sizeof *TRAITS; i++) {
        size_t n = strlen(TRAITS[i].name);
        if (!strncmp(name, TRAITS[i].name, n) && (!name[n] || name[n] == '_'))
            return TRAITS[i].trait;
    }
    return 0;
}

typedef struct thread {
    uint32_t open; /* 1 + the innermost event that is not over; 0: none */
    uint32_t last; /* 1 + the node before, within the outermost event; 0: none */
    uint32_t top;  /* 1 + the end of the outermost event before; 0: none */
} thread;

static uint8_t trait(const critical *c, uint32_t event)
{
    size_t i;
    bz_event_kind kind = critical_kind(c, event, &i);
    return kind == BZ_EVENT_API ? c->trait[c->m->t->event[kind].name[i]] : 0;
}

/* Between two nodes of calls that hold the lock, but from an end to a start, the line at the lock says how they follow. */
static bool in_line(const critical *c, uint32_t from, uint32_t to)
{
    return trait(c, from / 2) & trait(c, to / 2) & CRITICAL_LOCKS && !(from % 2 && !(to % 2));
}

static void chain(critical *c, thread *t, uint32_t node, bool free)
{
    uint32_t from = t->last ? t->last : t->top;
    if (from && !in_line(c, from - 1, node))
        c->before[node] = from | (free || !t->last ? CRITICAL_NONE + 1u : 0);
    t->last = node + 1;
}

static void close_event(critical *c, thread *t)
{
    uint32_t event = t->open - 1;
    chain(c, t, 2 * event + 1, trait(c, event) & CRITICAL_WAITS);
    t->open = c->around[event];
    if (!t->open) {
        t->top = t->last;
        t->last = 0;
    }
}

static int64_t end_of(const critical *c, uint32_t event)
{
    return critical_time(c, 2 * event + 1);
}

static void open_event(critical *c, thread *t, uint32_t event)
{
    int64_t start = critical_time(c, 2 * event);
    while (t->open && end_of(c, t->open - 1) <= start)
        close_event(c, t);
    c->around[event] = t->open;
    chain(c, t, 2 * event, false);
    t->open = event + 1;
    c->present[event] = true;
}

static int by_end(const void *a, const void *b, void *context)
{
    const critical *c = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return BZ_THEN(BZ_ORDER(end_of(c, i), end_of(c, j)), BZ_ORDER(i, j));
}

/* Whoever ends first had the lock first: calls that began before it ends lead to its end, and its end to the next one's. */
static void line_up(critical *c)
{
    const bz_events *api = &c->m->t->event[BZ_EVENT_API];
    BZ_FREED uint32_t *start = bz_alloc(api->n + 1, sizeof *start), *end = bz_alloc(api->n + 1, sizeof *end);
    uint32_t last = 0;
    size_t n = 0, i = 0, open = 0;
    for (size_t k = 0; k < api->n; k++)
        if (c->present[c->first[1] + k] && c->trait[api->name[k]] & CRITICAL_LOCKS)
            end[n++] = c->first[1] + (uint32_t)k;
    memcpy(start, end, n * sizeof *start);
    if (n)
        qsort_r(end, n, sizeof *end, by_end, c);
    for (size_t k = 0; k < n; k++) {
        uint32_t event = end[k], node = 2 * event + 1;
        for (; i < n && critical_time(c, 2 * start[i]) < end_of(c, event); i++) {
            start[open++] = start[i]; /* open <= i */
            last = 0;
        }
        while (open) {
            uint32_t before = start[--open];
            if (before == event)
                c->before[node] = 2 * event + 1;
            else
                critical_add(c, node, 2 * before);
        }
        if (last)
            critical_add(c, node, last - 1);
        last = node + 1;
    }
}

/* The only thread with an operator or range whose name contains the word; BZ_NONE: none or several. */
static uint32_t thread_with(const bz_tables *m, const char *word)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_OP, BZ_EVENT_RANGE};
    BZ_FREED uint8_t *known = bz_zeroed((size_t)bz_strings(m->t) + 1, 1);
    uint32_t lane = BZ_NONE;
    bool several = false;
    for (int k = 0; k < 2; k++) {
        const bz_events *e = &m->t->event[KINDS[k]];
        for (size_t i = 0; i < e->n; i++) {
            if (!known[e->name[i]])
                known[e->name[i]] = strstr(bz_string(m->t, e->name[i]), word) ? 2 : 1;
            if (known[e->name[i]] == 1 || !tables_in(m, KINDS[k], i))
                continue;
            several = several || (lane != BZ_NONE && lane != e->lane[i]);
            lane = e->lane[i];
        }
    }
    return several ? BZ_NONE : lane;
}

void critical_chain_host(critical *c)
{
    const bz_trace *t = c->m->t;
    const bz_events *op = &t->event[BZ_EVENT_OP], *api = &t->event[BZ_EVENT_API];
    BZ_FREED thread *of = bz_zeroed((size_t)t->n_lanes + 1, sizeof *of);
    uint32_t forward = thread_with(c->m, "forward"), backward = thread_with(c->m, "autograd");
    c->trait = bz_zeroed((size_t)bz_strings(t) + 1, sizeof *c->trait);
    for (size_t i = 0; i < api->n; i++)
        if (!i || api->name[i] != api->name[i - 1])
            c->trait[api->name[i]] = trait_of(bz_string(t, api->name[i]));
    for (size_t i = 0, j = 0; i < op->n || j < api->n;) {
        bool first = i < op->n && (j == api->n || op->start[i] < api->start[j] ||
                                   (op->start[i] == api->start[j] && op->end[i] >= api->end[j]));
        bz_event_kind kind = first ? BZ_EVENT_OP : BZ_EVENT_API;
        size_t at = first ? i++ : j++;
        const bz_events *e = &t->event[kind];
        uint32_t lane = e->lane[at] == backward && forward != BZ_NONE ? forward : e->lane[at];
        if (tables_in(c->m, kind, at) && e->end[at] > e->start[at])
            open_event(c, &of[lane], c->first[first ? 0 : 1] + (uint32_t)at);
    }
    for (uint32_t lane = 0; lane < t->n_lanes; lane++)
        while (of[lane].open)
            close_event(c, &of[lane]);
    line_up(c);
}
