/* Chrome trace for Perfetto: every lane a thread, host processes first, then one process per device. */
#include "profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of processes that Linux does not hand out (its largest is 4194304); 0 is taken for the idle task. */
enum { FLUSH_AT = 1 << 20, DEVICE_PROCESS = 10000000, ITERATIONS_PROCESS = 9000000 };

typedef struct {
    const bz_trace *t;
    FILE *f;
    bz_buf text;
    bool first, bad;
    int64_t zero;
} writer;

static void flush(writer *w, size_t at)
{
    if (w->text.len <= at)
        return;
    w->bad |= fwrite(w->text.data, 1, w->text.len, w->f) != w->text.len;
    bz_buf_clear(&w->text);
}

static void quote(writer *w, const char *key, const char *value)
{
    bz_json j = bz_json_to(&w->text, false);
    bz_buf_printf(&w->text, "\"%s\":", key);
    bz_json_str(&j, value);
}

/* Microseconds since the begin of the trace, with nanoseconds behind the point. */
static void micro(writer *w, const char *key, int64_t ns)
{
    bz_buf_printf(&w->text, ",\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "", llabs((long long)ns) / 1000,
                  llabs((long long)ns) % 1000);
}

static long long process_of(const bz_lane *l)
{
    return (long long)(l->device ? DEVICE_PROCESS + l->device_id : l->process);
}

static void begin(writer *w, const char *name)
{
    bz_buf_puts(&w->text, w->first ? "\n{" : ",\n{");
    w->first = false;
    quote(w, "name", name);
}

static void place(writer *w, uint32_t lane)
{
    bz_buf_printf(&w->text, ",\"pid\":%lld,\"tid\":%u", process_of(&w->t->lane[lane]), lane + 1);
}

static void name_of(writer *w, const char *what, long long process, uint32_t track, const char *name)
{
    begin(w, what);
    bz_buf_printf(&w->text, ",\"ph\":\"M\",\"pid\":%lld,\"tid\":%u,\"args\":{", process, track);
    quote(w, "name", name);
    bz_buf_puts(&w->text, "}}");
}

static void names(writer *w)
{
    if (w->t->n_iterations) {
        name_of(w, "process_name", ITERATIONS_PROCESS, ITERATIONS_PROCESS, "iterations");
        for (uint32_t i = 0; i < 2; i++)
            name_of(w, "thread_name", ITERATIONS_PROCESS, ITERATIONS_PROCESS + i, "iterations");
    }
    for (uint32_t i = 0; i < w->t->n_lanes; i++) {
        const bz_lane *l = &w->t->lane[i];
        char name[160];
        if (l->device)
            snprintf(name, sizeof name, "stream %lld", (long long)l->stream);
        else
            snprintf(name, sizeof name, "%.100s %lld", l->name ? bz_string(w->t, l->name) : "thread",
                     (long long)l->thread);
        name_of(w, "thread_name", process_of(l), i + 1, name);
        if (l->device && w->t->event[BZ_EVENT_SYNC].n) {
            snprintf(name, sizeof name, "waits for stream %lld", (long long)l->stream);
            name_of(w, "thread_name", process_of(l), w->t->n_lanes + i + 1, name);
        }
        snprintf(name, sizeof name, l->device ? "device %lld" : "process %lld",
                 (long long)(l->device ? l->device_id : l->process));
        name_of(w, "process_name", process_of(l), i + 1, name);
    }
}

static void event(writer *w, bz_event_kind kind, size_t i)
{
    const bz_events *e = &w->t->event[kind];
    const char *name = bz_string(w->t, e->short_name && e->short_name[i] ? e->short_name[i] : e->name[i]);
    begin(w, *name ? name : bz_event_kind_name(kind));
    /* a wait is not the stream's own work, and slices of one track must not cross */
    uint32_t waits = kind == BZ_EVENT_SYNC && w->t->lane[e->lane[i]].device ? w->t->n_lanes : 0;
    bz_buf_printf(&w->text, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%lld,\"tid\":%u", bz_event_kind_name(kind),
                  process_of(&w->t->lane[e->lane[i]]), e->lane[i] + 1 + waits);
    micro(w, "ts", e->start[i] - w->zero);
    micro(w, "dur", e->end[i] - e->start[i]);
    bz_buf_puts(&w->text, ",\"args\":{");
    const char *comma = "";
    if (e->detail && e->detail[i]) {
        quote(w, "parameters", bz_string(w->t, e->detail[i]));
        comma = ",";
    }
    if (e->variant && e->variant[i]) {
        bz_buf_puts(&w->text, comma);
        quote(w, "variant", bz_string(w->t, e->variant[i]));
        comma = ",";
    }
    if (e->stack && e->stack[i]) {
        bz_buf_puts(&w->text, comma);
        quote(w, "asked for by", bz_string(w->t, bz_stack_caller(w->t, e->stack[i])));
        comma = ",";
    }
    if (e->correlation && e->correlation[i]) {
        bz_buf_printf(&w->text, "%s\"correlation\":%u", comma, e->correlation[i]);
        comma = ",";
    }
    if (e->bytes)
        bz_buf_printf(&w->text, "%s\"bytes\":%lld", comma, (long long)e->bytes[i]);
    bz_buf_puts(&w->text, "}}");
    flush(w, FLUSH_AT);
}

/* Ranges that begin in one and end in another must not be slices of a track: they are told as spans of their own. */
static void span(writer *w, size_t i)
{
    const bz_events *e = &w->t->event[BZ_EVENT_RANGE];
    for (int end = 0; end < 2; end++) {
        begin(w, e->name[i] ? bz_string(w->t, e->name[i]) : "range");
        bz_buf_printf(&w->text, ",\"cat\":\"range\",\"ph\":\"%s\",\"id\":\"range %zu\"", end ? "e" : "b", i);
        place(w, e->lane[i]);
        micro(w, "ts", (end ? e->end[i] : e->start[i]) - w->zero);
        bz_buf_puts(&w->text, "}");
    }
    flush(w, FLUSH_AT);
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
        begin(w, "launch");
        bz_buf_printf(&w->text, ",\"cat\":\"launch\",\"ph\":\"%s\",\"id\":%lld", end ? "f\",\"bp\":\"e" : "s",
                      (long long)id);
        place(w, end ? e->lane[i] : api->lane[cause]);
        micro(w, "ts", (end ? e->start[i] : api->start[cause]) - w->zero);
        bz_buf_puts(&w->text, "}");
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
        begin(w, name);
        bz_buf_printf(&w->text, ",\"cat\":\"iteration\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d", ITERATIONS_PROCESS,
                      ITERATIONS_PROCESS + second);
        end = second ? end : it->end;
        micro(w, "ts", it->start - w->zero);
        micro(w, "dur", it->end - it->start);
        bz_buf_puts(&w->text, "}");
    }
}

int bz_trace_perfetto(const bz_trace *t, const char *path, bz_error *err)
{
    writer w = {.t = t, .f = fopen(path, "w"), .first = true, .zero = INT64_MAX};
    if (!w.f)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        if (t->event[k].n && t->event[k].start[0] < w.zero)
            w.zero = t->event[k].start[0];
    bz_buf_puts(&w.text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
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
    bz_buf_puts(&w.text, "\n]}\n");
    flush(&w, 0);
    bz_buf_free(&w.text);
    w.bad |= fclose(w.f) != 0;
    if (w.bad)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    return 0;
}
