/* The tables of a recording. Each is a function that fills a sheet; ANALYSES lists them in the order in which they are shown. */
#include "analysis/recording.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static double length_of(const bz_events *e, size_t i)
{
    return e->end[i] > e->start[i] ? seconds(e->end[i] - e->start[i]) : 0;
}

static double share_of(double part, double all)
{
    return all > 0 ? part / all : NAN;
}

static bz_sheet *iteration_sheet(recording_making *m)
{
    static const char TIMES[] = "quantity=per iteration|median:s|min:s|p90:s|max:s|mean:s";
    bz_summary s;
    bz_sheet *sheet = bz_sheet_new(m->arena, "iteration", "Times per iteration", TIMES);
    bz_summary_make(m->trace, m->arena, &s);
    for (int q = 0; q < BZ_QUANTITIES && m->one; q++) {
        const bz_quantity *of = &bz_quantities[q];
        if (of->count || (of->of != BZ_EVENT_KINDS && !m->trace->event[of->of].n) || !(s.of[q].max > 0))
            continue;
        bz_sheet_cell *row = bz_sheet_row(sheet);
        const double v[] = {s.of[q].p50, s.of[q].min, s.of[q].p90, s.of[q].max, s.of[q].mean};
        row[0].text = of->name;
        for (int k = 0; k < 5; k++)
            row[k + 1].number = 1e-9 * v[k];
    }
    return sheet;
}

static bz_sheet *idle_sheet(recording_making *m)
{
    static const char IDLE[] = "why=no device worked, because|times:n|time:s|share:%=of the idle time|longest:s";
    bz_sheet *sheet = bz_sheet_new(m->arena, "idle", "Why no device worked", IDLE);
    for (int r = 0; r < BZ_IDLE_REASONS && m->out->device; r++) {
        if (!m->idle.of[r].count)
            continue;
        double time = seconds(m->idle.of[r].time);
        BZ_SHEET_ADD(sheet, BZ_TEXT(bz_idle_name((bz_idle_reason)r)), BZ_NUMBER(m->idle.of[r].count), BZ_NUMBER(time),
                     BZ_NUMBER(share_of(time, m->out->idle)), BZ_NUMBER(seconds(m->idle.of[r].longest)));
    }
    bz_sheet_sort(sheet, 2);
    return sheet;
}

/* Who had the host in that time, by the waterfall of the iteration. */
static bz_sheet *host_sheet(recording_making *m)
{
    static const char HOST[] = "what=meanwhile on the host|times:n|time:s|share:%=of the idle time|example=such as";
    const bz_alignment *a = m->alignment;
    bz_sheet *sheet = bz_sheet_new(m->arena, "host", "What the host did meanwhile", HOST);
    for (int i = 0; i < a->n_causes && a->timeline && m->out->device; i++) {
        if (a->cause[i].busy)
            continue;
        BZ_SHEET_ADD(sheet, BZ_TEXT(a->cause[i].name), BZ_NUMBER(a->cause[i].count), BZ_NUMBER(a->cause[i].seconds),
                     BZ_NUMBER(share_of(a->cause[i].seconds, m->out->idle)), BZ_TEXT(a->cause[i].example));
    }
    return sheet;
}

typedef struct tally {
    double count, time, unit, silent;
} tally;

static void add_kernel(tally *t, const recording_making *m, size_t kernel)
{
    double s = length_of(&m->trace->event[BZ_EVENT_KERNEL], kernel) / m->steady;
    t->count++;
    t->time += s;
    t->unit += bz_kernel_of(m->trace, kernel)->unit ? s : 0;
    t->silent += bz_kernel_of(m->trace, kernel)->tells_unit ? 0 : s;
}

static bz_sheet *group_sheet(recording_making *m)
{
    static const char GROUPS[] =
        "group=kernels of|times:n=times per iteration|time:s=time per iteration|share:%=of kernel time"
        "|limit=limited by|units:%=on matrix units";
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL];
    bz_sheet *sheet = bz_sheet_new(m->arena, "groups", "Kernels by what they do", GROUPS);
    tally of[BZ_KERNEL_DOES] = {0};
    for (size_t i = 0; i < k->n; i++)
        if (bz_event_counts(m->trace, BZ_EVENT_KERNEL, i))
            add_kernel(&of[bz_kernel_of(m->trace, i)->does], m, i);
    for (int d = 0; d < BZ_KERNEL_DOES; d++) {
        if (!(of[d].count > 0))
            continue;
        bz_kernel_limit limit = bz_kernel_limit_of((bz_kernel_does)d);
        double told = of[d].time - of[d].silent;
        BZ_SHEET_ADD(
            sheet, BZ_TEXT(bz_kernel_does_name((bz_kernel_does)d)), BZ_NUMBER(of[d].count / m->steady),
            BZ_NUMBER(of[d].time), BZ_NUMBER(share_of(of[d].time, m->kernel_time)),
            BZ_TEXT(bz_kernel_limit_name(recording_limit(m, (bz_kernel_does)d))),
            BZ_NUMBER((limit == BZ_LIMIT_COMPUTE || of[d].unit > 0) && told > 0 ? share_of(of[d].unit, told) : NAN));
    }
    sheet->note = "Groups, limits and units are told by the kernels' names; shares on units are of the time of kernels "
                  "whose names tell.";
    bz_sheet_sort(sheet, 2);
    return sheet;
}

static bz_sheet *maker_sheet(recording_making *m)
{
    static const char MAKERS[] =
        "maker=kernels made by|times:n=times per iteration|time:s=time per iteration|share:%=of kernel time";
    enum { MOST = 48 };
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL];
    bz_sheet *sheet = bz_sheet_new(m->arena, "makers", "Kernels by who made them", MAKERS);
    const char *maker[MOST];
    tally of[MOST] = {0};
    int n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (!bz_event_counts(m->trace, BZ_EVENT_KERNEL, i))
            continue;
        const char *by = bz_kernel_of(m->trace, i)->maker;
        int at = 0;
        by = by ? by : "others";
        while (at < n && strcmp(maker[at], by) != 0)
            at++;
        if (at == n && n < MOST)
            maker[n++] = by;
        if (at < MOST)
            add_kernel(&of[at], m, i);
    }
    for (int i = 0; i < n; i++)
        BZ_SHEET_ADD(sheet, BZ_TEXT(maker[i]), BZ_NUMBER(of[i].count / m->steady), BZ_NUMBER(of[i].time),
                     BZ_NUMBER(share_of(of[i].time, m->kernel_time)));
    bz_sheet_sort(sheet, 2);
    return sheet;
}

static bz_sheet *kernel_sheet(recording_making *m)
{
    static const char KERNELS[] = "name=kernel|group=does|unit=on|times:n=times per iteration|time:s=time per iteration"
                                  "|share:%=of kernel time";
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL];
    bz_sheet *sheet = bz_sheet_new(m->arena, "kernels", "Kernels", KERNELS);
    uint32_t *full = BZ_NEW(m->arena, uint32_t, bz_strings(m->trace)); /* by the name that is shown */
    bz_top *top;
    for (size_t i = 0; i < k->n; i++)
        full[k->short_name && k->short_name[i] ? k->short_name[i] : k->name[i]] = k->name[i];
    size_t n = bz_trace_top(m->trace, m->arena, BZ_EVENT_KERNEL, &top);
    for (size_t i = 0; i < n; i++) {
        const bz_kernel *of = bz_kernel_named(m->trace, full[top[i].name]);
        double time = seconds(top[i].time) / m->steady;
        BZ_SHEET_ADD(sheet, BZ_TEXT(bz_string(m->trace, top[i].name)), BZ_TEXT(bz_kernel_does_name(of->does)),
                     BZ_TEXT(of->unit), BZ_NUMBER((double)top[i].count / m->steady), BZ_NUMBER(time),
                     BZ_NUMBER(share_of(time, m->kernel_time)));
    }
    return sheet;
}

static bz_sheet *copy_sheet(recording_making *m)
{
    static const char COPIES[] =
        "direction=copies|times:n=times per iteration|bytes:B=bytes per iteration|time:s=time per iteration"
        "|rate:B/s";
    enum { KINDS = 12 };
    const bz_events *c = &m->trace->event[BZ_EVENT_COPY];
    bz_sheet *sheet = bz_sheet_new(m->arena, "copies", "Copies by direction", COPIES);
    struct {
        double count, bytes, time, told; /* told: time of those whose bytes were recorded */
    } of[KINDS] = {0};
    size_t outside = 0, untold = 0;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t kind = c->value[i] < KINDS ? c->value[i] : 0;
        if (!bz_event_counts(m->trace, BZ_EVENT_COPY, i)) {
            outside++;
            continue;
        }
        of[kind].count++;
        of[kind].time += length_of(c, i) / m->steady;
        if (c->bytes[i] <= 0) {
            untold++;
            continue;
        }
        of[kind].bytes += (double)c->bytes[i] / m->steady;
        of[kind].told += length_of(c, i) / m->steady;
    }
    for (uint32_t d = 0; d < KINDS; d++) {
        if (!(of[d].count > 0))
            continue;
        BZ_SHEET_ADD(sheet, BZ_TEXT(bz_copy_direction(d)), BZ_NUMBER(of[d].count / m->steady),
                     BZ_NUMBER(of[d].bytes > 0 ? of[d].bytes : NAN), BZ_NUMBER(of[d].time),
                     BZ_NUMBER(share_of(of[d].bytes, of[d].told)));
    }
    if (sheet->n && outside)
        sheet->note = bz_arena_printf(m->arena, "%zu more copies lie outside of the steady iterations.", outside);
    if (sheet->n && untold)
        sheet->note = bz_arena_printf(m->arena, "%s%s%zu copies were recorded without their bytes.",
                                      outside ? sheet->note : "", outside ? " " : "", untold);
    bz_sheet_sort(sheet, 3);
    return sheet;
}

static bz_sheet *launch_sheet(recording_making *m)
{
    static const char CALLS[] =
        "name=call of the runtime|times:n=times per iteration|time:s=time per iteration|mean:s=each (mean)";
    bz_sheet *sheet = bz_sheet_new(m->arena, "launches", "Launches, waits and other calls of the runtime", CALLS);
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL], *api = &m->trace->event[BZ_EVENT_API];
    bz_top *top;
    size_t n = bz_trace_top(m->trace, m->arena, BZ_EVENT_API, &top), n_delays = 0, brief = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        BZ_SHEET_ADD(sheet, BZ_TEXT(bz_string(m->trace, top[i].name)), BZ_NUMBER((double)top[i].count / m->steady),
                     BZ_NUMBER(seconds(top[i].time) / m->steady),
                     BZ_NUMBER(seconds(top[i].time) / (double)top[i].count));
    BZ_FREED double *delay = bz_alloc(k->n + 1, sizeof *delay);
    for (size_t i = 0; i < k->n; i++) {
        if (!bz_event_counts(m->trace, BZ_EVENT_KERNEL, i))
            continue;
        all++;
        brief += length_of(k, i) < 10e-6;
        if (k->cause[i] < api->n && k->start[i] >= api->start[k->cause[i]])
            delay[n_delays++] = seconds(k->start[i] - api->start[k->cause[i]]);
    }
    if (n_delays) {
        bz_sort_numbers(delay, n_delays);
        sheet->note = bz_arena_printf(
            m->arena,
            "From its launch to its start a kernel took %s (median); %s of the kernels are shorter than 10 µs.",
            BZ_SAY_TIME(delay[n_delays / 2]), BZ_SAY_SHARE((double)brief / (double)all));
    }
    return sheet;
}

typedef struct span {
    int64_t start, end;
} span;

BZ_SORTS(by_start, span, BZ_ORDER(p->start, q->start));

static double union_of(span *v, size_t n)
{
    int64_t end = INT64_MIN;
    double sum = 0;
    qsort(v, n, sizeof *v, by_start);
    for (size_t i = 0; i < n; i++) {
        if (v[i].end <= end)
            continue;
        sum += seconds(v[i].end - (v[i].start > end ? v[i].start : end));
        end = v[i].end;
    }
    return sum;
}

/* What ran on a lane within the typical iteration, whoever asked for it. */
static size_t spans_of(const recording_making *m, bz_event_kind kind, uint32_t lane, span *out)
{
    const bz_events *e = &m->trace->event[kind];
    size_t n = 0;
    for (size_t i = 0; i < e->n && e->start[i] < m->one->end; i++)
        if (e->lane[i] == lane && e->end[i] > m->one->start)
            out[n++] = (span){e->start[i] > m->one->start ? e->start[i] : m->one->start,
                              e->end[i] < m->one->end ? e->end[i] : m->one->end};
    return n;
}

static bz_sheet *stream_sheet(recording_making *m)
{
    static const char STREAMS[] =
        "device:n|stream:n|kernels:n|copies:n=copies and fills|busy:s|share:%=of the iteration";
    bz_sheet *sheet = bz_sheet_new(m->arena, "streams", "Streams", STREAMS);
    const bz_trace *t = m->trace;
    size_t most = t->event[BZ_EVENT_KERNEL].n + t->event[BZ_EVENT_COPY].n + t->event[BZ_EVENT_MEMSET].n;
    BZ_FREED span *list = bz_alloc(most + 1, sizeof *list);
    for (uint32_t lane = 0; lane < t->n_lanes && m->one; lane++) {
        if (!t->lane[lane].device)
            continue;
        size_t kernels = spans_of(m, BZ_EVENT_KERNEL, lane, list), n = kernels;
        n += spans_of(m, BZ_EVENT_COPY, lane, list + n);
        n += spans_of(m, BZ_EVENT_MEMSET, lane, list + n);
        if (!n)
            continue;
        double busy = union_of(list, n);
        BZ_SHEET_ADD(sheet, BZ_NUMBER(t->lane[lane].device_id), BZ_NUMBER(t->lane[lane].stream), BZ_NUMBER(kernels),
                     BZ_NUMBER(n - kernels), BZ_NUMBER(busy), BZ_NUMBER(share_of(busy, m->out->span)));
    }
    bz_sheet_sort(sheet, 4);
    return sheet;
}

/* Several devices, or several recordings of ranks: none is merged with another. */
static bz_sheet *rank_sheet(recording_making *m)
{
    return bz_ranks_sheet(m->rank, m->n_ranks, m->arena);
}

static bz_sheet *named_sheet(recording_making *m, bz_event_kind kind, const char *id, const char *title,
                             const char *columns, const char *times)
{
    bool timed = bz_trace_has_lengths(m->trace); /* a log tells none */
    bz_sheet *sheet = bz_sheet_new(m->arena, id, title, bz_arena_printf(m->arena, "%s%s", columns, timed ? times : ""));
    bz_top *top;
    size_t n = bz_trace_top(m->trace, m->arena, kind, &top);
    for (size_t i = 0; i < n; i++) {
        double count = (double)top[i].count, time = top[i].time > 0 ? seconds(top[i].time) : NAN;
        const bz_sheet_cell row[] = {BZ_TEXT(bz_string(m->trace, top[i].name)),
                                     BZ_TEXT(top[i].beside ? bz_string(m->trace, top[i].beside) : NULL),
                                     BZ_NUMBER(count / m->steady), BZ_NUMBER(time / m->steady),
                                     BZ_NUMBER(time / count)};
        bz_sheet_add(sheet, row, timed ? 5 : 3);
    }
    return sheet;
}

static bz_sheet *call_sheet(recording_making *m)
{
    return named_sheet(m, BZ_EVENT_CALL, "calls", "Library calls",
                       "name=library call|variant|times:n=times per iteration",
                       "|time:s=host time per iteration|mean:s=each (mean)");
}

static bz_sheet *operator_sheet(recording_making *m)
{
    return named_sheet(m, BZ_EVENT_OP, "operators", "Operators", "name=operator|variant|times:n=times per iteration",
                       "|time:s=host time, with what it contains|mean:s=each (mean)");
}

static bz_sheet *model_sheet(recording_making *m)
{
    static const char MODELS[] = "model=model that it may be|from=known because|likeness:%=sequence alike"
                                 "|evidence=by kernels, calls or operators";
    bz_sheet *sheet = bz_sheet_new(m->arena, "models", "Models that fit the sequence: a guess", MODELS);
    for (int i = 0; i < m->out->n_fits; i++) {
        const bz_fit *f = &m->out->fit[i];
        BZ_SHEET_ADD(sheet, BZ_TEXT(f->candidate->name), BZ_TEXT(f->candidate->from), BZ_NUMBER(f->likeness),
                     BZ_TEXT(f->evidence));
    }
    return sheet;
}

void recording_sheets(recording_making *m)
{
    static bz_sheet *(*const ANALYSES[])(recording_making *) = {
        group_sheet,  idle_sheet, host_sheet, kernel_sheet,   maker_sheet, copy_sheet,     launch_sheet,
        stream_sheet, rank_sheet, call_sheet, operator_sheet, model_sheet, iteration_sheet};
    enum { N = sizeof ANALYSES / sizeof *ANALYSES };
    m->out->sheet = BZ_NEW(m->arena, const bz_sheet *, N);
    for (size_t i = 0; i < N; i++) {
        const bz_sheet *s = ANALYSES[i](m);
        if (s->n)
            m->out->sheet[m->out->n_sheets++] = s;
    }
}
