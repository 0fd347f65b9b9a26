/* The critical path as tables: what it is bound by, whose time it is, and its steps. */
#include "base/sort.h"
#include "tables/critical.h"

#include <stdlib.h>

static const char *bound_name(critical_bound bound)
{
    static const char *const NAMES[CRITICAL_BOUNDS] = {
        "nothing", "host", "compute", "communication", "memory", "delay between work", "launch delay"};
    return NAMES[bound];
}

static int64_t step_time(const critical *c, size_t step)
{
    int64_t time = critical_time(c, c->path[step + 1]) - critical_time(c, c->path[step]);
    return time > 0 ? time : 0;
}

void fill_critical(bz_tables *m, bz_sheet *s)
{
    critical c;
    int64_t time[CRITICAL_BOUNDS] = {0}, count[CRITICAL_BOUNDS] = {0}, all = 0;
    bool found = critical_find(m, &c);
    for (size_t i = 0; found && i + 1 < c.n_path; i++) {
        uint32_t event;
        critical_bound bound = critical_of(&c, i, &event);
        count[bound]++;
        time[bound] += bound == BOUND_NOTHING ? 0 : step_time(&c, i);
        all += bound == BOUND_NOTHING ? 0 : step_time(&c, i);
    }
    for (int b = 0; b < CRITICAL_BOUNDS; b++)
        if (time[b])
            BZ_SHEET_ADD(s, BZ_TEXT(bound_name((critical_bound)b)), BZ_NUMBER(count[b]),
                         BZ_NUMBER(tables_seconds(time[b])), BZ_NUMBER(tables_share((double)time[b], (double)all)));
    bz_sheet_sort(s, 2);
    if (s->n && c.m == &c.narrow)
        s->note = "The recording is large: this is the path of its typical iteration. --range chooses another part.";
    else if (s->n && !m->t->event[BZ_EVENT_SYNC].n && m->t->event[BZ_EVENT_KERNEL].n)
        s->note = "The recording does not tell which calls waited for devices: what the host waited for is missing "
                  "from the path.";
    critical_end(&c);
}

typedef struct named {
    int64_t on_path, all, time, delay;
    bz_event_kind kind;
    uint32_t name;
} named;

BZ_SORTS(by_time, named,
         BZ_THEN(BZ_ORDER(q->time + q->delay, p->time + p->delay),
                 BZ_THEN(BZ_ORDER(q->on_path, p->on_path),
                         BZ_THEN(BZ_ORDER(p->kind, q->kind), BZ_ORDER(p->name, q->name)))));

static named *named_of(bz_tables *m, const critical *c, bz_map *map, named **list, uint32_t *n, uint32_t event)
{
    size_t i;
    bz_event_kind kind = critical_kind(c, event, &i);
    uint32_t key[2] = {kind, m->t->event[kind].name[i]}, at = bz_map_number(map, m->arena, key, sizeof key);
    if (at == *n)
        BZ_ADD(*list, *n) = (named){.kind = kind, .name = key[1]};
    return &(*list)[at];
}

static named *path_by_name(bz_tables *m, const critical *c, uint32_t *n, int64_t *all)
{
    BZ_SCOPED(bz_map) map = {0};
    named *list = NULL;
    BZ_FREED uint8_t *seen = bz_zeroed((size_t)c->first[CRITICAL_KINDS] + 1, 1);
    for (size_t k = 0; k < c->n_path; k++) {
        uint32_t event = c->path[k] / 2;
        named_of(m, c, &map, &list, n, event)->on_path += !seen[event];
        seen[event] = 1;
        if (k + 1 == c->n_path)
            break;
        critical_bound bound = critical_of(c, k, &event);
        if (bound == BOUND_NOTHING)
            continue;
        named *of = named_of(m, c, &map, &list, n, event);
        bool delay = bound == BOUND_KERNEL_DELAY || bound == BOUND_LAUNCH_DELAY;
        *(delay ? &of->delay : &of->time) += step_time(c, k);
        *all += step_time(c, k);
    }
    for (uint32_t event = 0; event < c->first[CRITICAL_KINDS]; event++) {
        size_t i;
        bz_event_kind kind = critical_kind(c, event, &i);
        uint32_t key[2] = {kind, m->t->event[kind].name[i]}, at = bz_map_get(&map, key, sizeof key);
        if (at != BZ_MAP_NONE && tables_in(c->m, kind, i))
            list[at].all++;
    }
    return list;
}

void fill_critical_events(bz_tables *m, bz_sheet *s)
{
    critical c;
    uint32_t n = 0;
    int64_t all = 0;
    BZ_FREED named *list = critical_find(m, &c) ? path_by_name(m, &c, &n, &all) : NULL;
    BZ_QSORT(list, n, by_time);
    for (uint32_t i = 0; i < n; i++)
        BZ_SHEET_ADD(s, BZ_TEXT(tables_shown(m, list[i].kind, list[i].name)), BZ_TEXT(bz_event_kind_name(list[i].kind)),
                     BZ_NUMBER(list[i].on_path), BZ_NUMBER(list[i].all), BZ_NUMBER(tables_seconds(list[i].time)),
                     BZ_NUMBER(tables_share((double)(list[i].time + list[i].delay), (double)all)),
                     BZ_NUMBER(tables_seconds(list[i].delay)), BZ_TEXT(bz_string(m->t, list[i].name)));
    critical_end(&c);
}

void fill_critical_steps(bz_tables *m, bz_sheet *s)
{
    enum { MOST = 5000 };
    critical c;
    bool found = critical_find(m, &c);
    size_t steps = 0;
    for (size_t k = 0; found && k + 1 < c.n_path; k++) {
        uint32_t event;
        critical_bound bound = critical_of(&c, k, &event);
        if (bound == BOUND_NOTHING || !step_time(&c, k) || steps++ >= MOST)
            continue;
        size_t i;
        bz_event_kind kind = critical_kind(&c, event, &i);
        BZ_SHEET_ADD(s, BZ_NUMBER(tables_seconds(critical_time(&c, c.path[k]) - critical_time(&c, c.path[0]))),
                     BZ_NUMBER(tables_seconds(step_time(&c, k))), BZ_TEXT(bound_name(bound)),
                     BZ_TEXT(tables_shown(m, kind, m->t->event[kind].name[i])), BZ_TEXT(bz_event_kind_name(kind)));
    }
    if (steps > MOST)
        s->note = bz_arena_printf(m->arena, "The path has %zu steps; these are the first %d.", steps, MOST);
    critical_end(&c);
}
