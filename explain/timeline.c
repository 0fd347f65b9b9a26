/* The iteration of a profile that is drawn. */
#include "base/sort.h"
#include "explain/explain.h"

#include <stdlib.h>

enum { DEPTH = 6 }; /* levels of operators within operators */

/* What is drawn, top to bottom. Ranges are people's names for what lies below them. */
static const struct {
    bz_event_kind kind;
    const char *what;
} KINDS[] = {{BZ_EVENT_RANGE, "ranges"}, {BZ_EVENT_OP, "operators"},   {BZ_EVENT_CALL, "library calls"},
             {BZ_EVENT_API, "CUDA API"}, {BZ_EVENT_KERNEL, "kernels"}, {BZ_EVENT_COPY, "copies"},
             {BZ_EVENT_MEMSET, "fills"}, {BZ_EVENT_SYNC, "waits"}};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

typedef struct drawing {
    const bz_trace *trace;
    bz_arena *arena;
    bz_timeline *out;
    int *name_of; /* [strings of the trace]: number of the name + 1 */
    int64_t origin;
} drawing;

static int name_number(drawing *d, uint32_t string)
{
    int *number = &d->name_of[string];
    if (!*number) {
        d->out->name[d->out->n_names++] = bz_string(d->trace, string);
        *number = d->out->n_names;
    }
    return *number - 1;
}

static const char *row_name(const drawing *d, uint32_t lane, const char *what)
{
    const bz_lane *l = &d->trace->lane[lane];
    const char *name = bz_string(d->trace, l->name);
    bz_stream_text stream;
    if (*name)
        return bz_arena_printf(d->arena, "%s: %s", name, what);
    if (l->device)
        return bz_arena_printf(d->arena, "%s: %s", bz_stream_name(l, stream), what);
    return bz_arena_printf(d->arena, "thread %lld: %s", (long long)l->thread, what);
}

/* Rows of one kind and lane. Events come by start, so what is still open when one begins is around it. */
static void add_row(drawing *d, int kind, uint32_t lane, const uint32_t *index, size_t n)
{
    const bz_events *e = &d->trace->event[KINDS[kind].kind];
    bz_timeline_row *row = &d->out->row[d->out->n_rows];
    int64_t open[DEPTH];
    int depth = 0;
    *row = (bz_timeline_row){.name = row_name(d, lane, KINDS[kind].what), .kind = KINDS[kind].kind};
    int before = d->out->n;
    for (size_t k = 0; k < n; k++) {
        size_t i = index[k];
        if (e->lane[i] != lane)
            continue;
        while (depth && open[depth - 1] <= e->start[i])
            depth--;
        if (depth == DEPTH)
            continue;
        d->out->event[d->out->n++] = (bz_timeline_event){.row = d->out->n_rows,
                                                         .name = name_number(d, e->name[i]),
                                                         .depth = depth,
                                                         .start = e->start[i] - d->origin,
                                                         .length = e->end[i] - e->start[i]};
        open[depth++] = e->end[i];
        row->depth = depth > row->depth ? depth : row->depth;
    }
    d->out->n_rows += d->out->n > before;
}

BZ_SORTS(by_length, int64_t, BZ_ORDER(*q, *p));

/* Keeps the longest, those before others of their length. */
static void thin_out(drawing *d)
{
    bz_timeline *t = d->out;
    int64_t *length = BZ_NEW(d->arena, int64_t, t->n);
    int kept = 0, equal = 0;
    if (t->n <= BZ_TIMELINE_EVENTS)
        return;
    for (int i = 0; i < t->n; i++)
        length[i] = t->event[i].length;
    qsort(length, (size_t)t->n, sizeof *length, by_length);
    int64_t least = length[BZ_TIMELINE_EVENTS - 1];
    for (int i = 0; i < BZ_TIMELINE_EVENTS; i++)
        equal += length[i] == least;
    for (int i = 0; i < t->n; i++)
        if (t->event[i].length > least || (t->event[i].length == least && equal-- > 0))
            t->event[kept++] = t->event[i];
    t->left_out = t->n - kept;
    t->n = kept;
}

const bz_timeline *bz_timeline_make(const bz_trace *trace, bz_arena *arena)
{
    BZ_SCOPED(bz_arena) scratch = {0};
    uint32_t iteration = bz_typical_iteration(trace), *index[N_KINDS];
    bz_timeline *out = BZ_NEW(arena, bz_timeline, 1);
    size_t n[N_KINDS] = {0}, total = 0;
    drawing d = {.trace = trace, .arena = arena, .out = out};
    for (int k = 0; k < N_KINDS && iteration != BZ_NONE; k++) {
        const bz_events *e = &trace->event[KINDS[k].kind];
        index[k] = BZ_NEW(&scratch, uint32_t, e->n);
        for (size_t i = 0; i < e->n; i++)
            if (bz_event_iteration(trace, KINDS[k].kind, i) == iteration && e->end[i] >= e->start[i])
                index[k][n[k]++] = (uint32_t)i;
        total += n[k];
    }
    if (total) {
        const bz_iteration *it = &trace->iteration[iteration];
        d.origin = it->start;
        d.name_of = BZ_NEW(&scratch, int, bz_strings(trace));
        out->length = it->end - it->start;
        out->row = BZ_NEW(arena, bz_timeline_row, N_KINDS * trace->n_lanes + 1);
        out->name = BZ_NEW(arena, const char *, total);
        out->event = BZ_NEW(arena, bz_timeline_event, total);
        for (int k = 0; k < N_KINDS; k++)
            for (uint32_t lane = 0; lane < trace->n_lanes && n[k]; lane++)
                add_row(&d, k, lane, index[k], n[k]);
        thin_out(&d);
    }
    return out->n ? out : NULL;
}
