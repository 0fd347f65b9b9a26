/* Which events the tables are of, and what work of devices they see. */
#include "base/sort.h"
#include "tables/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t tables_cause(const bz_tables *m, bz_event_kind kind, size_t i)
{
    const bz_events *e = &m->t->event[kind];
    return e->cause && e->cause[i] < m->t->event[BZ_EVENT_API].n ? e->cause[i] : BZ_NONE;
}

int64_t tables_asked(const bz_tables *m, bz_event_kind kind, size_t i)
{
    uint32_t cause = tables_cause(m, kind, i);
    return cause != BZ_NONE ? m->t->event[BZ_EVENT_API].start[cause] : m->t->event[kind].start[i];
}

/* Files that tell order and parameters alone have no place in time. */
bool tables_in(const bz_tables *m, bz_event_kind kind, size_t i)
{
    const bz_events *e = &m->t->event[kind];
    int64_t asked = tables_asked(m, kind, i);
    return asked >= m->from && asked <= m->to && e->end[i] >= e->start[i] &&
           !m->t->source[m->t->lane[e->lane[i]].source].log;
}

int tables_earliest(const bz_trace *t, const bz_event_kind *kind, int n, const size_t *next)
{
    int first = -1;
    for (int k = 0; k < n; k++) {
        const bz_events *e = &t->event[kind[k]];
        if (next[k] < e->n && (first < 0 || e->start[next[k]] < t->event[kind[first]].start[next[first]]))
            first = k;
    }
    return first;
}

bool tables_next(const bz_tables *m, work *w)
{
    static const bz_event_kind WORK[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY, BZ_EVENT_MEMSET};
    for (int k; (k = tables_earliest(m->t, WORK, 3, w->next)) >= 0;) {
        const bz_events *e = &m->t->event[WORK[k]];
        size_t i = w->next[k]++;
        if (m->device[e->lane[i]] == BZ_NONE || !tables_in(m, WORK[k], i))
            continue;
        w->kind = WORK[k];
        w->i = i;
        w->start = e->start[i];
        w->end = e->end[i];
        w->lane = e->lane[i];
        return true;
    }
    return false;
}

/* HTA takes kernels whose names speak of copies and fills for work on the memory, too. */
work_class tables_class(bz_tables *m, const work *w)
{
    if (w->kind != BZ_EVENT_KERNEL)
        return WORK_MEMORY;
    uint32_t name = m->t->event[BZ_EVENT_KERNEL].name[w->i];
    if (!m->class[name]) {
        const char *text = bz_string(m->t, name);
        work_class class = bz_kernel_named(m->t, name)->does == BZ_KERNEL_COMMUNICATION ? WORK_COMMUNICATION
                           : strstr(text, "Memcpy") || strstr(text, "Memset")           ? WORK_MEMORY
                                                                                        : WORK_COMPUTE;
        m->class[name] = (uint8_t)(1 + class);
    }
    return (work_class)(m->class[name] - 1);
}

const char *tables_class_name(work_class class)
{
    static const char *const NAMES[WORK_CLASSES] = {"compute", "communication", "memory"};
    return NAMES[class];
}

static const char *number_of(const bz_tables *m, const bz_lane *l, int64_t number)
{
    const bz_trace *t = m->t;
    if (number < 0 && l->name)
        return bz_string(t, l->name);
    if (t->n_sources < 2)
        return bz_arena_printf(m->arena, "%lld", (long long)number);
    const char *path = bz_string(t, t->source[l->source].path), *slash = strrchr(path, '/');
    return bz_arena_printf(m->arena, "%lld of %s", (long long)number, slash ? slash + 1 : path);
}

const char *tables_device(const bz_tables *m, uint32_t device)
{
    const bz_lane *l = &m->t->lane[m->first_lane[device]];
    return number_of(m, l, l->device_id);
}

const char *tables_stream(const bz_tables *m, uint32_t lane)
{
    const bz_lane *l = &m->t->lane[lane];
    return bz_arena_printf(m->arena, "%lld", (long long)l->stream);
}

const char *tables_shown(bz_tables *m, bz_event_kind kind, uint32_t name)
{
    const bz_events *k = &m->t->event[BZ_EVENT_KERNEL];
    if (kind != BZ_EVENT_KERNEL)
        return bz_string(m->t, name);
    if (!m->short_name) {
        m->short_name = BZ_NEW(m->arena, uint32_t, (size_t)bz_strings(m->t) + 1);
        for (size_t i = 0; i < k->n; i++)
            m->short_name[k->name[i]] = bz_event_shown(m->t, BZ_EVENT_KERNEL, i);
    }
    return bz_string(m->t, m->short_name[name]);
}

bool tables_is_numbered(const char *name)
{
    const char *number = strrchr(name, '#');
    return number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1);
}

static int launches(const char *function)
{
    return bz_name_matches_any("^cudaLaunchKernel ^cuLaunchKernel ^cudaMemcpyAsync ^cudaMemsetAsync ^hipLaunchKernel "
                               "^hipExtModuleLaunchKernel ^hipMemcpyAsync ^hipMemcpyWithStream ^hipMemsetAsync "
                               "^hipModuleLaunch ^cudaLaunchCooperativeKernel$",
                               function);
}

uint32_t tables_launch(bz_tables *m, const work *w)
{
    uint32_t cause = tables_cause(m, w->kind, w->i);
    bool launched =
        cause != BZ_NONE && bz_name_answer(&m->launches, bz_string(m->t, m->t->event[BZ_EVENT_API].name[cause]));
    return launched ? cause : BZ_NONE;
}

static int by_device(const void *a, const void *b, void *context)
{
    const bz_trace *t = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const bz_lane *p = &t->lane[i], *q = &t->lane[j];
    return BZ_THEN(BZ_ORDER(p->source, q->source), BZ_THEN(BZ_ORDER(p->device_id, q->device_id), BZ_ORDER(i, j)));
}

static void find_devices(bz_tables *m)
{
    const bz_trace *t = m->t;
    uint32_t *lane = bz_alloc((size_t)t->n_lanes + 1, sizeof *lane), n = 0;
    m->device = BZ_NEW(m->arena, uint32_t, (size_t)t->n_lanes + 1);
    m->first_lane = BZ_NEW(m->arena, uint32_t, (size_t)t->n_lanes + 1);
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        m->device[i] = BZ_NONE;
        if (t->lane[i].device)
            lane[n++] = i;
    }
    if (n)
        qsort_r(lane, n, sizeof *lane, by_device, (void *)t);
    for (uint32_t k = 0; k < n; k++) {
        const bz_lane *l = &t->lane[lane[k]], *before = k ? &t->lane[lane[k - 1]] : NULL;
        if (!before || before->source != l->source || before->device_id != l->device_id)
            m->first_lane[m->n_devices++] = lane[k];
        m->device[lane[k]] = m->n_devices - 1;
    }
    free(lane);
}

/* The K-th range whose name contains the name; operators count as ranges (PyTorch's old dialect has its steps there). */
static int find_range(bz_tables *m, const char *range, bz_error *err)
{
    const char *colon = strrchr(range, ':');
    char *end = NULL, name[512];
    unsigned long which = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0, found = 0;
    int length = end && !*end ? (int)(colon - range) : (int)strlen(range);
    which = end && !*end ? which : 0;
    if ((size_t)snprintf(name, sizeof name, "%.*s", length, range) >= sizeof name || !*name)
        return bz_fail(err, BZ_USAGE, "--range takes a range's name, or NAME:K for its K-th, not '%s'", range);
    static const bz_event_kind KINDS[] = {BZ_EVENT_RANGE, BZ_EVENT_OP};
    for (int k = 0; k < 2 && !found; k++) {
        const bz_events *e = &m->t->event[KINDS[k]];
        for (size_t i = 0; i < e->n; i++)
            if (e->end[i] > e->start[i] && strstr(bz_string(m->t, e->name[i]), name) && found++ == which) {
                m->from = e->start[i];
                m->to = e->end[i];
                return 0;
            }
    }
    return found ? bz_fail(err, BZ_USAGE, "there are only %lu ranges whose name contains '%s'", found, name)
                 : bz_fail(err, BZ_USAGE, "no range has a name that contains '%s'", name);
}

bz_tables *bz_tables_new(const bz_trace *t, const char *range, const bz_trace *against, bz_arena *arena, bz_error *err)
{
    bz_tables *m = BZ_NEW(arena, bz_tables, 1);
    *m = (bz_tables){
        .t = t, .against = against, .arena = arena, .from = INT64_MIN, .to = INT64_MAX, .launches = {.ask = launches}};
    m->class = BZ_NEW(arena, uint8_t, (size_t)bz_strings(t) + 1);
    find_devices(m);
    return range && find_range(m, range, err) ? NULL : m;
}
