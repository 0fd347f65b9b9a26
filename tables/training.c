/* Metrics of a training run, as the TBD suite defines them: throughput in the stable phase, busy time, operations over the peak, in
 * all and by kernel, what the host does, memory; and what people observed of such runs, as checks. */
#include "tables/training.h"
#include "base/sort.h"

#include "tables/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double median_of(const double *v, uint32_t n)
{
    BZ_FREED double *sorted = bz_alloc((size_t)n + 1, sizeof *sorted);
    memcpy(sorted, v, n * sizeof *v);
    bz_quantiles q = bz_quantiles_of(sorted, n);
    return q.p50;
}

/* The first iteration of the stable phase; 0 where so few were recorded that nothing tells. Where there is no such phase the last
 * third of what the program marked counts, and its variation says what it is worth; of what was found none does: n. */
static uint32_t stable_from(const bz_trace *t, const double *seconds, uint32_t n)
{
    uint32_t w = n / 3 < WINDOW ? n / 3 : WINDOW;
    if (w < FEWEST_WINDOW)
        return 0;
    for (uint32_t i = 0; i + 3 * w <= n; i++) {
        double a = median_of(seconds + i, w), b = median_of(seconds + i + w, w), c = median_of(seconds + i + 2 * w, w);
        double most = fmax(a, fmax(b, c)), least = fmin(a, fmin(b, c)), middle = a + b + c - most - least;
        if (most - least <= SPREAD * middle && fabs(c - a) / 2 <= TREND * middle)
            return i;
    }
    return t->origin == BZ_ITERATION_DETECTED ? n : n - n / 3;
}

static void find_pace(training_run *r, double *seconds, uint32_t n)
{
    figures f = figures_of(seconds, n);
    r->step = f.median;
    r->variation = f.count > 1 ? f.deviation / f.mean : NAN;
    r->rate = 1 / f.mean;
}

/* Where the same program also ran with nothing but its marks recorded, that run tells how fast it is. */
static void find_alone(training_run *r)
{
    const bz_trace *t = r->m->t;
    uint32_t level = bz_trace_level(t, BZ_FIGURE_LATENCY);
    double *nanoseconds;
    if (!r->iterations || level == BZ_NONE || level == t->own_level)
        return;
    size_t n = bz_level_figures(&t->level[level], BZ_FIGURE_LATENCY, r->m->arena, &nanoseconds);
    for (size_t i = 0; i < n; i++)
        nanoseconds[i] *= 1e-9;
    uint32_t from = stable_from(t, nanoseconds, (uint32_t)n);
    if (from < n)
        find_pace(r, nanoseconds + from, (uint32_t)n - from);
}

/* A number that the program said of itself; NAN. */
static double told_number(const bz_trace *t, const char *key)
{
    const char *text = bz_trace_told(t, key);
    double v = text ? strtod(text, NULL) : (double)NAN;
    return v > 0 && v < 1e30 ? v : (double)NAN;
}

/* From the first stable iteration on; what is warm-up by other signs stays out, too. */
static void find_sample(training_run *r)
{
    const bz_trace *t = r->m->t;
    BZ_FREED double *seconds = bz_alloc((size_t)t->n_iterations + 1, sizeof *seconds);
    uint32_t *number = bz_alloc((size_t)t->n_iterations + 1, sizeof *number), n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i)) {
            number[n] = i;
            seconds[n++] = tables_seconds(bz_iteration_latency(t, i));
        }
    uint32_t from = stable_from(t, seconds, n);
    r->step = r->variation = r->rate = NAN;
    if (from < n) {
        r->first = number[from], r->iterations = n - from;
        r->from = bz_iteration_begin(t, number[from]);
        r->to = t->iteration[number[n - 1]].end;
        find_pace(r, seconds + from, n - from);
        r->rate = r->iterations / tables_seconds(r->to - r->from);
    }
    free(number);
    find_alone(r);
}

static bool in_sample(const training_run *r, int64_t start)
{
    return !r->iterations || (start >= r->from && start < r->to);
}

static void find_kernels(training_run *r)
{
    bz_tables *m = r->m;
    r->flops = training_flops(m, &r->at_peak, &r->batch);
    for (work w = {0}; tables_next(m, &w);)
        if (w.kind == BZ_EVENT_KERNEL && in_sample(r, w.start)) {
            BZ_ROOM(r->row, r->n);
            if (r->flops) { /* as many kernels lie before it, or more */
                r->flops[r->n] = r->flops[w.i];
                r->at_peak[r->n] = r->at_peak[w.i];
            }
            r->row[r->n++] = (uint32_t)w.i;
        }
}

static training_unit training_unit_of(const training_run *r, size_t i)
{
    const bz_trace *t = r->m->t;
    const bz_events *e = &t->event[r->label_of ? BZ_EVENT_CALL : BZ_EVENT_KERNEL];
    uint32_t row = r->row[i];
    training_unit u = {BZ_NONE,
                       0,
                       e->start[row],
                       e->end[row],
                       r->flops ? r->flops[i] : (double)NAN,
                       r->flops ? r->at_peak[i] : (double)NAN,
                       BZ_KERNEL_OTHER};
    if (r->label_of) {
        u.name = r->label_of[i];
        return u;
    }
    u.device = r->m->device[e->lane[row]];
    u.name = e->name[row];
    u.does = bz_kernel_of(t, row)->does;
    return u;
}

/* "convolution backward_data jit:avx512_core": its function, the direction where it is not the forward one, and who did it. */
static uint32_t label_of(training_run *r, size_t call)
{
    const bz_trace *t = r->m->t;
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    char prop[32];
    bool backward = bz_call_parameter(t, call, "prop", prop, sizeof prop) && !strncmp(prop, "backward", 8);
    const char *variant = bz_string(t, c->variant[call]);
    const char *text = bz_arena_printf(r->m->arena, "%s%s%s%s%s", bz_string(t, c->name[call]), backward ? " " : "",
                                       backward ? prop : "", *variant ? " " : "", variant);
    uint32_t k = bz_map_add(&r->labels, text, strlen(text), r->n_labels);
    if (k == r->n_labels)
        BZ_ADD(r->label, r->n_labels) = text;
    return k;
}

/* The library's work on a processor is the call. */
static void find_calls(training_run *r)
{
    const bz_trace *t = r->m->t;
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    double batch = NAN, peak = told_number(t, "peak operations per second");
    for (size_t i = 0; i < c->n; i++) {
        const bz_call *call = bz_call_of(t, i);
        if (!bz_call_works(t, i) || !tables_in(r->m, BZ_EVENT_CALL, i) || !in_sample(r, c->start[i]))
            continue;
        if (bz_is_full(r->n)) {
            r->row = bz_realloc(r->row, bz_room(r->n), sizeof *r->row);
            r->label_of = bz_realloc(r->label_of, bz_room(r->n), sizeof *r->label_of);
            r->flops = bz_realloc(r->flops, bz_room(r->n), sizeof *r->flops);
            r->at_peak = bz_realloc(r->at_peak, bz_room(r->n), sizeof *r->at_peak);
        }
        r->row[r->n] = (uint32_t)i;
        r->label_of[r->n] = label_of(r, i);
        r->flops[r->n] = call->problem ? bz_problem_flops(call->problem) : NAN;
        r->at_peak[r->n] = r->flops[r->n] / peak;
        r->n++;
        if (call->problem && bz_problem_has(call->problem, BZ_TRAIT_CONVOLUTION) && call->batch)
            batch = (double)call->batch;
    }
    r->batch = isnan(r->batch) ? batch : r->batch;
}

static void training_run_find(bz_tables *m, training_run *r)
{
    *r = (training_run){.m = m, .batch = NAN};
    find_sample(r);
    if (m->n_devices)
        find_kernels(r);
    else
        find_calls(r);
    double batch = told_number(m->t, "batch");
    r->batch = isnan(batch) ? r->batch : batch;
    for (size_t i = 0; i < r->n && !r->iterations; i++) {
        training_unit u = training_unit_of(r, i);
        r->from = i ? r->from : u.start;
        r->to = i && u.end < r->to ? r->to : u.end;
    }
}

static void training_run_free(training_run *r)
{
    free(r->row);
    free(r->label_of);
    free(r->flops);
    free(r->at_peak);
    free(r->label);
    bz_map_free(&r->labels);
}

/* Of a device within the sample. Units come by their start. */
typedef struct device_sums {
    int64_t busy, computing,
        known;       /* unions of all kernels, and of those that do not communicate; time of known work */
    int64_t kernels; /* sum of their times */
    double flops, at_peak;
} device_sums;

static void add_to_union(int64_t *sum, int64_t *end, int64_t from, int64_t to)
{
    from = from > *end ? from : *end;
    *sum += to > from ? to - from : 0;
    *end = to > *end ? to : *end;
}

static device_sums sums_of(const training_run *r, uint32_t device)
{
    device_sums s = {0};
    int64_t end = r->from, compute_end = r->from;
    for (size_t i = 0; i < r->n; i++) {
        const training_unit unit = training_unit_of(r, i), *u = &unit;
        int64_t to = u->end < r->to ? u->end : r->to;
        if (u->device != device)
            continue;
        s.kernels += u->end - u->start;
        add_to_union(&s.busy, &end, u->start, to);
        if (u->does != BZ_KERNEL_COMMUNICATION)
            add_to_union(&s.computing, &compute_end, u->start, to);
        if (!isnan(u->flops)) {
            s.known += u->end - u->start;
            s.flops += u->flops;
            s.at_peak += u->at_peak;
        }
    }
    return s;
}

/* How many threads of the host were in an operator, a library call or a call of the runtime, on average. */
static double host_threads(const training_run *r)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_OP, BZ_EVENT_CALL, BZ_EVENT_API};
    const bz_trace *t = r->m->t;
    int64_t *end = bz_alloc((size_t)t->n_lanes + 1, sizeof *end), sum = 0;
    size_t next[3] = {0};
    bool any = false;
    for (uint32_t i = 0; i < t->n_lanes; i++)
        end[i] = r->from;
    for (int k; (k = tables_earliest(t, KINDS, 3, next)) >= 0;) {
        const bz_events *e = &t->event[KINDS[k]];
        size_t i = next[k]++;
        if (t->lane[e->lane[i]].device || e->start[i] >= r->to || !tables_in(r->m, KINDS[k], i))
            continue;
        any = true;
        add_to_union(&sum, &end[e->lane[i]], e->start[i], e->end[i] < r->to ? e->end[i] : r->to);
    }
    free(end);
    return any && r->to > r->from ? (double)sum / (double)(r->to - r->from) : NAN;
}

/* The most that was allocated above what there was when the sample began; NAN where no allocations were recorded. */
static double most_memory(const training_run *r)
{
    const bz_events *e = &r->m->t->event[BZ_EVENT_RANGE];
    double sum = 0, most = 0;
    bool any = false;
    for (size_t i = 0; i < e->n; i++) {
        if (!e->bytes[i] || !in_sample(r, e->start[i]))
            continue;
        any = true;
        sum += (double)e->bytes[i];
        most = fmax(most, sum);
    }
    return any ? most : NAN;
}

static void add_run(const training_run *r, const char *which, bz_sheet *s)
{
    double n = r->iterations ? (double)r->iterations : (double)NAN, units = told_number(r->m->t, "units of a sample"),
           threads = host_threads(r), memory = most_memory(r);
    uint32_t devices = r->m->n_devices ? r->m->n_devices : 1;
    for (uint32_t d = 0; d < devices && r->n; d++) {
        uint32_t device = r->m->n_devices ? d : BZ_NONE;
        device_sums sum = sums_of(r, device);
        BZ_SHEET_ADD(s, BZ_TEXT(which), BZ_TEXT(r->m->n_devices ? tables_device(r->m, device) : "processor"),
                     BZ_NUMBER(n), BZ_NUMBER(r->iterations ? (double)r->first : NAN), BZ_NUMBER(r->step),
                     BZ_NUMBER(r->variation), BZ_NUMBER(r->rate), BZ_NUMBER(r->batch),
                     BZ_NUMBER(r->batch * r->rate * (isnan(units) ? 1 : units)),
                     BZ_NUMBER(tables_share((double)sum.busy, (double)(r->to - r->from))),
                     BZ_NUMBER(tables_share((double)(sum.busy - sum.computing), (double)(r->to - r->from))),
                     BZ_NUMBER(sum.flops > 0 ? sum.flops / n : NAN),
                     BZ_NUMBER(tables_share((double)sum.known, (double)sum.kernels)),
                     BZ_NUMBER(sum.flops > 0 && sum.busy ? sum.flops / tables_seconds(sum.busy) : NAN),
                     BZ_NUMBER(sum.flops > 0 && sum.busy ? sum.at_peak / tables_seconds(sum.busy) : NAN),
                     BZ_NUMBER(threads), BZ_NUMBER(told_number(r->m->t, "processors used")), BZ_NUMBER(memory));
    }
}

/* Calls `add` for the recording, and for the one that it is compared with. */
static void for_both(bz_tables *m, bz_sheet *s, void (*add)(const training_run *r, const char *which, bz_sheet *s))
{
    bz_error err;
    bz_tables *other = m->against ? bz_tables_new(m->against, NULL, NULL, m->arena, &err) : NULL;
    bz_tables *const both[] = {m, other};
    for (int i = 0; i < 2 && both[i]; i++) {
        training_run r;
        training_run_find(both[i], &r);
        add(&r, i ? "against" : "this", s);
        training_run_free(&r);
    }
}

void fill_training(bz_tables *m, bz_sheet *s)
{
    for_both(m, s, add_run);
}

typedef struct candidate {
    uint32_t name;
    bz_kernel_does does;
    double count, seconds, known, flops, at_peak;
} candidate;

BZ_SORTS(by_seconds, candidate, BZ_THEN(BZ_ORDER(q->seconds, p->seconds), BZ_ORDER(p->name, q->name)));

/* By name; the caller frees the list. */
static candidate *names_of(const training_run *r, size_t *n)
{
    uint32_t names = r->label ? r->n_labels : bz_strings(r->m->t);
    candidate *of = bz_zeroed((size_t)names + 1, sizeof *of);
    for (size_t i = 0; i < r->n; i++) {
        const training_unit unit = training_unit_of(r, i), *u = &unit;
        candidate *c = &of[u->name];
        c->name = u->name, c->does = u->does;
        c->count++;
        c->seconds += tables_seconds(u->end - u->start);
        c->known += isnan(u->flops) ? 0 : tables_seconds(u->end - u->start);
        c->flops += isnan(u->flops) ? 0 : u->flops;
        c->at_peak += isnan(u->flops) ? 0 : u->at_peak;
    }
    *n = 0;
    for (uint32_t i = 0; i < names; i++)
        if (of[i].count > 0)
            of[(*n)++] = of[i];
    qsort(of, *n, sizeof *of, by_seconds);
    return of;
}

/* Long, and below the average: what is made as fast as the average would take so much less. Work that nobody told (of functions,
 * normalizations, the optimizer) counts as none. */
static void add_candidates(const training_run *r, const char *which, bz_sheet *s)
{
    size_t n;
    BZ_FREED candidate *list = names_of(r, &n);
    double seconds = 0, flops = 0, each = r->iterations ? r->iterations : 1;
    for (size_t i = 0; i < n; i++)
        seconds += list[i].seconds, flops += list[i].flops;
    double average = seconds > 0 ? flops / seconds : 0;
    if (n && average <= 0)
        s->note = "No operator tells the shapes that it works on, so nothing tells which kernels do little: record the "
                  "shapes (PyTorch: record_shapes=True), or the operators.";
    for (size_t i = 0, found = 0; i < n && found < CANDIDATES; i++) {
        const candidate *c = &list[i];
        double rate = c->flops / c->seconds;
        if (rate >= average || c->does == BZ_KERNEL_COMMUNICATION)
            continue;
        found++;
        BZ_SHEET_ADD(s, BZ_TEXT(which),
                     BZ_TEXT(r->label ? r->label[c->name] : tables_shown(r->m, BZ_EVENT_KERNEL, c->name)),
                     BZ_TEXT(r->m->n_devices ? bz_kernel_does_name(c->does) : NULL), BZ_NUMBER(c->count / each),
                     BZ_NUMBER(c->seconds / each), BZ_NUMBER(c->seconds / seconds),
                     BZ_NUMBER(c->known > 0 ? rate : NAN), BZ_NUMBER(c->known > 0 ? c->at_peak / c->seconds : NAN));
    }
}

void fill_training_memory(bz_tables *m, bz_sheet *s)
{
    for_both(m, s, training_add_memory);
}

void fill_training_kernels(bz_tables *m, bz_sheet *s)
{
    for_both(m, s, add_candidates);
}

typedef struct seen {
    double variation, busy, exposed, norms, recurrent, rate, batch, samples; /* NAN: not told */
} seen;

static void look(const training_run *r, seen *o)
{
    double norm = 0, norm_at_peak = 0, rnn = 0, all = 0, at_peak = 0;
    device_sums sum = sums_of(r, r->m->n_devices ? 0 : BZ_NONE);
    for (size_t i = 0; i < r->n; i++) {
        const training_unit unit = training_unit_of(r, i), *u = &unit;
        double seconds = tables_seconds(u->end - u->start), known = isnan(u->flops) ? 0 : u->at_peak;
        all += seconds, at_peak += known;
        norm += u->does == BZ_KERNEL_NORM ? seconds : 0, norm_at_peak += u->does == BZ_KERNEL_NORM ? known : 0;
        rnn += u->does == BZ_KERNEL_RNN ? seconds : 0;
    }
    *o = (seen){.variation = r->variation, .batch = r->batch, .recurrent = all > 0 ? rnn / all : NAN};
    o->busy = r->to > r->from ? (double)sum.busy / (double)(r->to - r->from) : NAN;
    o->exposed = r->to > r->from ? (double)(sum.busy - sum.computing) / (double)(r->to - r->from) : NAN;
    o->norms = norm > 0 ? at_peak / all - norm_at_peak / norm : NAN;
    o->rate = r->rate;
    o->samples = o->rate * r->batch;
}

static void add_check(bz_sheet *s, const char *check, double found, bool holds, const char *limit)
{
    BZ_SHEET_ADD(s, BZ_TEXT(check),
                 BZ_TEXT(isnan(found) ? "not told"
                         : holds      ? "holds"
                                      : "does not hold"),
                 BZ_NUMBER(found), BZ_TEXT(limit));
}

/* What TBD observed of eight networks on a P4000, as questions to this run. */
void fill_training_checks(bz_tables *m, bz_sheet *s)
{
    bz_error err;
    training_run r;
    seen a, b;
    training_run_find(m, &r);
    if (r.n) {
        look(&r, &a);
        add_check(s, "iterations take equally long", a.variation, a.variation <= SPREAD,
                  "deviation of at most 5 % of their mean");
        bool recurrent = a.recurrent > RECURRENT;
        add_check(s, "the device is busy", recurrent ? NAN : a.busy, a.busy >= BUSY,
                  "at least 95 % of the time, without recurrent layers");
        add_check(s, "recurrent layers leave the device idle", recurrent ? a.busy : NAN, a.busy < BUSY,
                  "less than 95 % of the time busy");
        add_check(s, "normalizations use little of the device", a.norms, a.norms > NORMS_BELOW,
                  "20 points of the peak below the average");
        add_check(s, "communication is hidden", a.exposed, a.exposed <= EXPOSED,
                  "at most 5 % of the time nothing else runs");
    }
    bz_tables *other = r.n && m->against ? bz_tables_new(m->against, NULL, NULL, m->arena, &err) : NULL;
    training_run_free(&r);
    if (!other)
        return;
    training_run_find(other, &r);
    look(&r, &b);
    training_run_free(&r);
    double more = b.batch > a.batch ? b.samples / a.samples - 1 : b.batch < a.batch ? a.samples / b.samples - 1 : NAN;
    add_check(s, "a larger batch brings more throughput", more, more > 0, "more samples a second");
    add_check(s, "the larger batch still pays", more, more >= BATCH_PAYS, "at least 10 % more samples a second");
}
