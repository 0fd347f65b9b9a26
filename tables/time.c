/* Where the time of devices and streams went: busy and idle, compute, communication and memory, and what overlaps. */
#include "tables/parts.h"

#include "tables/constants.h"

#include <math.h>

enum { MASKS = 1 << WORK_CLASSES };

/* Of a device: how long which classes of work ran together. time[mask]: bit c is set while some work of class c runs, so
 * time[0] is idle and all together are the span from the first work's start to the last one's end. */
typedef struct device_time {
    int64_t first, at, end[WORK_CLASSES], time[MASKS];
    bool seen;
} device_time;

/* Work comes by its start, so until the next start each class runs to the latest end that it has. */
static void pass_to(device_time *d, int64_t to)
{
    while (d->at < to) {
        int64_t next = to;
        unsigned mask = 0;
        for (int c = 0; c < WORK_CLASSES; c++)
            if (d->end[c] > d->at) {
                mask |= 1u << c;
                next = d->end[c] < next ? d->end[c] : next;
            }
        d->time[mask] += next - d->at;
        d->at = next;
    }
}

static int64_t last_end(const device_time *d)
{
    int64_t last = d->end[0];
    for (int c = 1; c < WORK_CLASSES; c++)
        last = d->end[c] > last ? d->end[c] : last;
    return last;
}

static device_time *device_times(bz_tables *m)
{
    device_time *d = BZ_NEW(m->arena, device_time, (size_t)m->n_devices + 1);
    for (work w = {0}; tables_next(m, &w);) {
        device_time *of = &d[m->device[w.lane]];
        if (!of->seen) {
            of->seen = true;
            of->first = of->at = w.start;
            for (int c = 0; c < WORK_CLASSES; c++)
                of->end[c] = w.start;
        }
        pass_to(of, w.start);
        work_class class = tables_class(m, &w);
        of->end[class] = w.end > of->end[class] ? w.end : of->end[class];
    }
    for (uint32_t i = 0; i < m->n_devices; i++)
        pass_to(&d[i], last_end(&d[i]));
    return d;
}

static int64_t time_with(const device_time *d, unsigned all)
{
    int64_t sum = 0;
    for (unsigned mask = 0; mask < MASKS; mask++)
        if ((mask & all) == all)
            sum += d->time[mask];
    return sum;
}

void fill_temporal(bz_tables *m, bz_sheet *s)
{
    const device_time *d = device_times(m);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        int64_t span = d[i].at - d[i].first, idle = d[i].time[0], compute = time_with(&d[i], 1u << WORK_COMPUTE);
        if (!d[i].seen)
            continue;
        double all = (double)span;
        BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, i)), BZ_NUMBER(tables_seconds(span)),
                     BZ_NUMBER(tables_seconds(span - idle)), BZ_NUMBER(tables_seconds(idle)),
                     BZ_NUMBER(tables_seconds(compute)), BZ_NUMBER(tables_seconds(span - idle - compute)),
                     BZ_NUMBER(tables_share((double)idle, all)), BZ_NUMBER(tables_share((double)compute, all)),
                     BZ_NUMBER(tables_share((double)(span - idle - compute), all)));
    }
}

void fill_overlap(bz_tables *m, bz_sheet *s)
{
    enum { P = 1u << WORK_COMPUTE, C = 1u << WORK_COMMUNICATION, M = 1u << WORK_MEMORY };
    const device_time *d = device_times(m);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        int64_t communication = time_with(&d[i], C), both = time_with(&d[i], C | P);
        int64_t memory = time_with(&d[i], M), hidden = time_with(&d[i], M | P);
        if (!d[i].seen)
            continue;
        BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, i)), BZ_NUMBER(tables_seconds(time_with(&d[i], P))),
                     BZ_NUMBER(tables_seconds(communication)), BZ_NUMBER(tables_seconds(memory)),
                     BZ_NUMBER(tables_seconds(both)), BZ_NUMBER(tables_seconds(hidden)),
                     BZ_NUMBER(tables_seconds(time_with(&d[i], C | M))),
                     BZ_NUMBER(communication ? (double)both / (double)communication : NAN),
                     BZ_NUMBER(memory ? (double)hidden / (double)memory : NAN));
    }
}

/* Each moment belongs to one row: "compute", "compute with communication", …: HTA's types of kernels. */
void fill_types(bz_tables *m, bz_sheet *s)
{
    const device_time *d = device_times(m);
    int64_t time[MASKS] = {0}, busy = 0;
    for (uint32_t i = 0; i < m->n_devices; i++)
        for (unsigned mask = 1; mask < MASKS; mask++) {
            time[mask] += d[i].time[mask];
            busy += d[i].time[mask];
        }
    for (unsigned mask = 1; mask < MASKS; mask++) {
        if (!time[mask])
            continue;
        BZ_SCOPED(bz_buf) name = {0};
        for (int c = 0; c < WORK_CLASSES; c++)
            if (mask & 1u << c)
                bz_buf_printf(&name, "%s%s", name.len ? " with " : "", tables_class_name((work_class)c));
        BZ_SHEET_ADD(s, BZ_TEXT(bz_arena_str(m->arena, bz_buf_text(&name))), BZ_NUMBER(tables_seconds(time[mask])),
                     BZ_NUMBER(tables_share((double)time[mask], (double)busy)));
    }
    bz_sheet_sort(s, 1);
}

typedef enum { IDLE_HOST_WAIT, IDLE_KERNEL_WAIT, IDLE_OTHER } idle_cause;
enum { IDLE_CAUSES = IDLE_OTHER + 1 };

void fill_idle(bz_tables *m, bz_sheet *s)
{
    static const char *const NAMES[IDLE_CAUSES] = {"host wait", "kernel wait", "other"};
    const bz_trace *t = m->t;
    BZ_FREED int64_t *end = bz_alloc((size_t)t->n_lanes + 1, sizeof *end),
                     *sum = bz_zeroed((size_t)t->n_lanes + 1, sizeof *sum);
    groups g;
    uint32_t n;
    groups_begin(&g, m->arena);
    for (uint32_t i = 0; i < t->n_lanes; i++)
        end[i] = INT64_MIN;
    for (work w = {0}; tables_next(m, &w);) {
        if (end[w.lane] != INT64_MIN && w.start >= end[w.lane]) {
            uint32_t cause = tables_cause(m, w.kind, w.i);
            int64_t gap = w.start - end[w.lane];
            idle_cause why = cause != BZ_NONE && t->event[BZ_EVENT_API].start[cause] > end[w.lane] ? IDLE_HOST_WAIT
                             : gap < KERNEL_DELAY                                                  ? IDLE_KERNEL_WAIT
                                                                                                   : IDLE_OTHER;
            groups_add(&g, (uint64_t)w.lane * IDLE_CAUSES + why, (double)gap);
            sum[w.lane] += gap;
        }
        end[w.lane] = w.end > end[w.lane] ? w.end : end[w.lane];
    }
    const figures *f = groups_end(&g, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lane = (uint32_t)(f[i].key / IDLE_CAUSES);
        BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, m->device[lane])), BZ_TEXT(tables_stream(m, lane)),
                     BZ_TEXT(NAMES[f[i].key % IDLE_CAUSES]), BZ_NUMBER(f[i].count), BZ_NUMBER(f[i].sum / 1e9),
                     BZ_NUMBER(tables_share(f[i].sum, (double)sum[lane])), BZ_NUMBER(f[i].mean / 1e9),
                     BZ_NUMBER(f[i].median / 1e9), BZ_NUMBER(f[i].max / 1e9));
    }
}
