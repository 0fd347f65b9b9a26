/* Chrome trace for Perfetto: every lane a thread, host processes first, then one process per device. */
#include "profile/profile.h"

#include "base/perfetto.h"

#include <stdio.h>
#include <stdlib.h>

/* Numbers of processes that Linux does not hand out (its largest is 4194304); 0 is taken for the idle task. */
enum { DEVICE_PROCESS = 10000000, ITERATIONS_PROCESS = 9000000 };

typedef struct {
    bz_perfetto out;
    const bz_trace *t;
    int64_t zero;
} writer;

static long long process_of(const bz_lane *l)
{
    return (long long)(l->device ? DEVICE_PROCESS + l->device_id : l->process);
}

static void names(writer *w)
{
    if (w->t->n_iterations) {
        bz_perfetto_name(&w->out, "process_name", ITERATIONS_PROCESS, ITERATIONS_PROCESS, "iterations");
        for (uint32_t i = 0; i < 2; i++)
            bz_perfetto_name(&w->out, "thread_name", ITERATIONS_PROCESS, ITERATIONS_PROCESS + i, "iterations");
    }
    for (uint32_t i = 0; i < w->t->n_lanes; i++) {
        const bz_lane *l = &w->t->lane[i];
        bz_stream_text stream;
        char name[160];
        if (l->device)
            snprintf(name, sizeof name, "%s", bz_stream_name(l, stream));
        else
            snprintf(name, sizeof name, "%.100s %lld", l->name ? bz_string(w->t, l->name) : "thread",
                     (long long)l->thread);
        bz_perfetto_name(&w->out, "thread_name", process_of(l), i + 1, name);
        if (l->device && w->t->event[BZ_EVENT_SYNC].n) {
            snprintf(name, sizeof name, "waits for %s", bz_stream_name(l, stream));
            bz_perfetto_name(&w->out, "thread_name", process_of(l), w->t->n_lanes + i + 1, name);
        }
        snprintf(name, sizeof name, l->device ? "device %lld" : "process %lld",
                 (long long)(l->device ? l->device_id : l->process));
        bz_perfetto_name(&w->out, "process_name", process_of(l), i + 1, name);
    }
}

static void event(writer *w, bz_event_kind kind, size_t i)
{
    const bz_events *e = &w->t->event[kind];
    const bz_lane *l = &w->t->lane[e->lane[i]];
    const char *name = bz_string(w->t, e->short_name && e->short_name[i] ? e->short_name[i] : e->name[i]);
    /* a wait is not the stream's own work, and slices of one track must not cross */
    uint32_t waits = kind == BZ_EVENT_SYNC && l->device ? w->t->n_lanes : 0;
    bz_perfetto_slice(&w->out, *name ? name : bz_event_kind_name(kind), bz_event_kind_name(kind), process_of(l),
                      e->lane[i] + 1 + waits, e->start[i] - w->zero, e->end[i] - e->start[i]);
    bz_perfetto_args(&w->out);
    if (e->detail && e->detail[i])
        bz_perfetto_str(&w->out, "parameters", bz_string(w->t, e->detail[i]));
    if (e->variant && e->variant[i])
        bz_perfetto_str(&w->out, "variant", bz_string(w->t, e->variant[i]));
    if (e->stack && e->stack[i])
        bz_perfetto_str(&w->out, "asked for by", bz_string(w->t, bz_stack_caller(w->t, e->stack[i])));
    if (e->correlation && e->correlation[i])
        bz_perfetto_int(&w->out, "correlation", e->correlation[i]);
    if (e->bytes)
        bz_perfetto_int(&w->out, "bytes", e->bytes[i]);
    bz_perfetto_end(&w->out);
}

/* An event at one time, of a track, between whose beginning and end something spans. */
static void mark(writer *w, uint32_t lane, int64_t time)
{
    bz_perfetto_track(&w->out, process_of(&w->t->lane[lane]), lane + 1);
    bz_perfetto_time(&w->out, "ts", time - w->zero);
    bz_perfetto_end(&w->out);
}

/* Ranges that begin in one and end in another must not be slices of a track: they are told as spans of their own. */
static void span(writer *w, size_t i)
{
    const bz_events *e = &w->t->event[BZ_EVENT_RANGE];
    for (int end = 0; end < 2; end++) {
        bz_perfetto_begin(&w->out, e->name[i] ? bz_string(w->t, e->name[i]) : "range");
        bz_buf_printf(&w->out.text, ",\"cat\":\"range\",\"ph\":\"%s\",\"id\":\"range %zu\"", end ? "e" : "b", i);
        mark(w, e->lane[i], end ? e->end[i] : e->start[i]);
    }
}

static void ranges(writer *w)
{
    enum { DEEPEST = 64 };
    const bz_events *e = &w->t->event[BZ_EVENT_RANGE];
    struct {
        int64_t end[DEEPEST]; /* of the open ones, outermost first */
        int n;
    } *open = bz_alloc(w->t->n_lanes + 1, sizeof *open);
    for (uint32_t i = 0; i < w->t->n_lanes; i++)
        open[i].n = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t l = e->lane[i];
        while (open[l].n && open[l].end[open[l].n - 1] <= e->start[i])
            open[l].n--;
        bool crosses = open[l].n && open[l].end[open[l].n - 1] < e->end[i];
        if (crosses || open[l].n == DEEPEST) {
            span(w, i);
            continue;
        }
        event(w, BZ_EVENT_RANGE, i);
        open[l].end[open[l].n++] = e->end[i];
    }
    free(open);
}

/* An arrow from a launch to what it launched. */
static void arrow(writer *w, bz_event_kind kind, size_t i, int64_t id)
{
    const bz_events *e = &w->t->event[kind], *api = &w->t->event[BZ_EVENT_API];
    uint32_t cause = e->cause[i];
    if (cause == BZ_NONE)
        return;
    for (int end = 0; end < 2; end++) {
        bz_perfetto_begin(&w->out, "launch");
        bz_buf_printf(&w->out.text, ",\"cat\":\"launch\",\"ph\":\"%s\",\"id\":%lld", end ? "f\",\"bp\":\"e" : "s",
                      (long long)id);
        mark(w, end ? e->lane[i] : api->lane[cause], end ? e->start[i] : api->start[cause]);
    }
}

static void iterations(writer *w)
{
    int64_t end =
        INT64_MIN; /* of the last one on the first track; the device's work may reach into the next iteration */
    for (uint32_t i = 0; i < w->t->n_iterations; i++) {
        const bz_iteration *it = &w->t->iteration[i];
        int second = it->start < end;
        char name[48];
        snprintf(name, sizeof name, it->warm_up ? "iteration %u (warm-up)" : "iteration %u", i);
        bz_perfetto_slice(&w->out, name, "iteration", ITERATIONS_PROCESS, ITERATIONS_PROCESS + (uint32_t)second,
                          it->start - w->zero, it->end - it->start);
        bz_perfetto_end(&w->out);
        end = second ? end : it->end;
    }
}

int bz_trace_perfetto(const bz_trace *t, const char *path, bz_error *err)
{
    writer w = {.t = t, .zero = INT64_MAX};
    if (bz_perfetto_open(&w.out, path, err))
        return -1;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        if (t->event[k].n && t->event[k].start[0] < w.zero)
            w.zero = t->event[k].start[0];
    names(&w);
    iterations(&w);
    int64_t id = 0;
    ranges(&w);
    for (int k = BZ_EVENT_RANGE + 1; k < BZ_EVENT_KINDS; k++)
        for (size_t i = 0; i < t->event[k].n; i++) {
            event(&w, (bz_event_kind)k, i);
            if (bz_event_on_device((bz_event_kind)k))
                arrow(&w, (bz_event_kind)k, i, ++id);
        }
    return bz_perfetto_close(&w.out, err);
}
