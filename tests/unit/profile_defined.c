/* What a trace says of its iterations, by definition: of random recordings, each figure is computed once more, moment by moment where it is time. */
#include "expected_cells.h"
#include "random_recording.h"

#include <cJSON.h>
#include <math.h>
#include <unistd.h>

/* In iteration `i` (BZ_NONE: in a steady one). */
static bool belongs(int64_t asked_at, uint32_t i)
{
    if (i != BZ_NONE)
        return in_iteration(asked_at, i);
    for (uint32_t k = 0; k < r.trace->n_iterations; k++)
        if (bz_iteration_is_steady(r.trace, k) && in_iteration(asked_at, k))
            return true;
    return false;
}

static bool works_at(int64_t tick)
{
    for (int i = 0; i < r.works; i++)
        if (r.work[i].at.start <= tick && tick < r.work[i].at.end)
            return true;
    return false;
}

static bool calls_at(int64_t tick)
{
    for (int i = 0; i < r.launches; i++)
        if (r.launch[i].call && r.launch[i].start <= tick && tick < r.launch[i].end)
            return true;
    return false;
}

static bool runs_op(int64_t tick)
{
    for (int i = 0; i < r.ops; i++)
        if (r.op[i].start <= tick && tick < r.op[i].end)
            return true;
    return false;
}

static bz_iteration_stats measured(uint32_t k)
{
    bz_iteration_stats s = {.device_begin = INT64_MIN, .device_end = INT64_MIN};
    int64_t from = r.trace->iteration[k].start / TICK, to = r.trace->iteration[k].end / TICK;
    s.latency = (to - from) * TICK;
    for (int64_t at = from; at < to; at++) {
        s.device_busy += works_at(at) * TICK;
        s.library += calls_at(at) * TICK;
        s.operators += runs_op(at) * TICK;
    }
    s.gap = s.latency - s.device_busy;
    for (int i = 0; i < r.works; i++) {
        const work_item *w = &r.work[i];
        int64_t start = w->at.start * TICK, end = w->at.end * TICK;
        if (!belongs(asked(w), k))
            continue;
        s.device_begin = s.device_begin == INT64_MIN || start < s.device_begin ? start : s.device_begin;
        s.device_end = end > s.device_end ? end : s.device_end;
        s.kernels += w->kind == BZ_EVENT_KERNEL;
        s.copies += w->kind == BZ_EVENT_COPY;
        s.kernel_time += w->kind == BZ_EVENT_KERNEL ? end - start : 0;
        s.copy_time += w->kind == BZ_EVENT_COPY ? end - start : 0;
    }
    for (int i = 0; i < r.launches; i++) {
        const span *l = &r.launch[i];
        bool waits = l->name == LAUNCH_NAMES[3], launches = !waits && l->name != LAUNCH_NAMES[1];
        if (!belongs(l->start, k))
            continue;
        s.calls += l->call != NULL;
        s.launches += launches;
        s.syncs += waits;
        s.launch += launches ? (l->end - l->start) * TICK : 0;
        s.sync += waits ? (l->end - l->start) * TICK : 0;
    }
    return s;
}

static void check_iterations(const bz_trace *t)
{
    for (uint32_t k = 0; k < t->n_iterations; k++) {
        bz_iteration_stats is, must = measured(k);
        bz_iteration_measure(t, k, &is);
        for (int q = 0; q < BZ_QUANTITIES; q++)
            if (bz_quantity_of(&is, q) != bz_quantity_of(&must, q))
                fail_msg("%s of iteration %u is %ld, not %ld", bz_quantities[q].name, k, (long)bz_quantity_of(&is, q),
                         (long)bz_quantity_of(&must, q));
        assert_int_equal(is.device_begin, must.device_begin);
        assert_int_equal(is.device_end, must.device_end);
    }
}

/* The step of a device is from the end of its work for one iteration to that for the next one; it is behind where most end after the iteration. */
static void check_summary(const bz_trace *t)
{
    bz_arena arena = {0};
    bz_summary s;
    double sum = 0, least = INFINITY;
    int64_t n = 0;
    uint32_t late = 0;
    bz_summary_make(t, &arena, &s);
    for (uint32_t k = 0; k < t->n_iterations; k++) {
        int64_t end = measured(k).device_end, before = k ? measured(k - 1).device_end : INT64_MIN;
        if (!bz_iteration_is_steady(t, k) || end == INT64_MIN)
            continue;
        late += end > t->iteration[k].end;
        if (before == INT64_MIN || end <= before)
            continue;
        n++;
        sum += (double)(end - before);
        least = fmin(least, (double)(end - before));
    }
    assert_int_equal(s.steady, bz_steady_iterations(t));
    assert_int_equal(s.behind, 2 * late > s.steady);
    assert_int_equal(s.device_step.n, n);
    assert_true(!n || (fabs(s.device_step.mean * (double)n - sum) < 1e-6 * sum && s.device_step.min == least));
    bz_arena_free(&arena);
}

/* The work that ends the gap at this moment: that which begins first, and of those the shortest; -1: none. */
static int next_work(int64_t tick, int64_t to)
{
    int next = -1;
    for (int i = 0; i < r.works; i++) {
        const span *w = &r.work[i].at, *n = &r.work[next < 0 ? 0 : next].at;
        if (w->start > tick && w->start < to &&
            (next < 0 || w->start < n->start || (w->start == n->start && w->end < n->end)))
            next = i;
    }
    return next;
}

static void check_idle(const bz_trace *t, const bz_iteration *whole)
{
    bz_idle is;
    int64_t time[BZ_IDLE_REASONS] = {0}, busy = 0, from = whole->start / TICK, to = whole->end / TICK;
    bz_trace_idle(t, whole, &is);
    if (is.late)
        return; /* by another test */
    for (int64_t at = from; at < to; at++) {
        int64_t gap = at;
        while (gap > from && !works_at(gap - 1))
            gap--;
        int next = next_work(at, to), launch = next < 0 ? -1 : r.work[next].launch;
        bz_idle_reason why = next < 0                      ? BZ_IDLE_END
                             : launch < 0                  ? BZ_IDLE_UNKNOWN
                             : r.launch[launch].end <= gap ? BZ_IDLE_QUEUED
                             : at < r.launch[launch].start ? BZ_IDLE_HOST
                             : at < r.launch[launch].end   ? BZ_IDLE_LAUNCH
                                                           : BZ_IDLE_SUBMITTED;
        time[why] += works_at(at) ? 0 : TICK;
        busy += works_at(at) ? TICK : 0;
    }
    assert_int_equal(is.busy, busy);
    for (int k = 0; k < BZ_IDLE_REASONS; k++)
        if (is.of[k].time != time[k])
            fail_msg("%s: %ld, not %ld", bz_idle_name((bz_idle_reason)k), (long)is.of[k].time, (long)time[k]);
}

/* How often, and how long, events of a kind are in steady iterations; `name` NULL: of all names. */
static void sum_up(bz_event_kind kind, const char *name, int64_t *count, int64_t *time)
{
    *count = *time = 0;
    for (int i = 0; i < r.works + r.ops + r.launches; i++) {
        const work_item *w = i < r.works ? &r.work[i] : NULL;
        const struct span *at = w ? &w->at : i < r.works + r.ops ? &r.op[i - r.works] : &r.launch[i - r.works - r.ops];
        bz_event_kind is = w ? w->kind : i < r.works + r.ops ? BZ_EVENT_OP : BZ_EVENT_API;
        const char *own = is == BZ_EVENT_API && kind == BZ_EVENT_CALL ? at->call : is == kind ? at->name : NULL;
        if (!own || (name && strcmp(own, name) != 0) || !belongs(w ? asked(w) : at->start, BZ_NONE))
            continue;
        ++*count;
        *time += (at->end - at->start) * TICK;
    }
}

static void check_top(const bz_trace *t, bz_event_kind kind)
{
    bz_arena arena = {0};
    bz_top *top;
    size_t n = bz_trace_top(t, &arena, kind, &top);
    int64_t count, time, all = 0, all_time = 0;
    for (size_t k = 0; k < n; k++) {
        sum_up(kind, bz_string(t, top[k].name), &count, &time);
        assert_int_equal(top[k].count, count);
        assert_int_equal(top[k].time, time);
        assert_true(!k || top[k - 1].time >= top[k].time);
        all += count;
        all_time += time;
    }
    sum_up(kind, NULL, &count, &time); /* no name lacks */
    assert_int_equal(all, count);
    assert_int_equal(all_time, time);
    bz_arena_free(&arena);
}

/* Between kernels of one iteration: from the one that ended last to the next one. */
static void check_gaps(const bz_trace *t)
{
    bz_arena arena = {0};
    bz_top *gap;
    size_t n = bz_trace_gaps(t, &arena, &gap);
    int64_t told = 0, idle = 0;
    for (size_t k = 0; k < n; k++)
        told += gap[k].time;
    const bz_events *e = &t->event[BZ_EVENT_KERNEL];
    for (size_t i = 1; i < e->n; i++) {
        uint32_t of = bz_event_iteration(t, BZ_EVENT_KERNEL, i), before = BZ_NONE;
        int64_t end = INT64_MIN;
        for (size_t k = 0; k < i; k++)
            if (bz_event_is_steady(t, BZ_EVENT_KERNEL, k))
                before = bz_event_iteration(t, BZ_EVENT_KERNEL, k);
        for (size_t k = i; k-- && before == of;) {
            if (!bz_event_is_steady(t, BZ_EVENT_KERNEL, k))
                continue;
            if (bz_event_iteration(t, BZ_EVENT_KERNEL, k) != of)
                break;
            end = e->end[k] > end ? e->end[k] : end;
        }
        if (bz_event_is_steady(t, BZ_EVENT_KERNEL, i) && end != INT64_MIN && e->start[i] > end)
            idle += e->start[i] - end;
    }
    assert_int_equal(told, idle);
    bz_arena_free(&arena);
}

/* By the moment, over the steady iterations: a device computes, or communicates, or both. */
static void check_devices(const bz_trace *t)
{
    bz_arena arena = {0};
    const bz_sheet *s = bz_ranks_sheet(&(bz_rank_profile){"rank7.json", t}, 1, &arena);
    int64_t time[2][4] = {{0}}, span_of_steps = 0, kernels[2] = {0}, talks[2][WORKS], n[2] = {0};
    double steps = bz_steady_iterations(t);
    for (uint32_t k = 0; k < t->n_iterations; k++) {
        int64_t from = t->iteration[k].start / TICK, to = t->iteration[k].end / TICK;
        if (!bz_iteration_is_steady(t, k))
            continue;
        span_of_steps += to - from;
        for (int64_t at = from; at < to; at++)
            for (int d = 0; d < 2; d++) {
                unsigned does = 0;
                for (int i = 0; i < r.works; i++) {
                    const work_item *w = &r.work[i];
                    if (STREAM[w->stream].device == d && w->at.start <= at && at < w->at.end)
                        does |= class_of(w) == 'c' ? 2u : 1u;
                }
                time[d][does]++;
            }
    }
    const bz_events *e = &t->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; i < e->n; i++) {
        int64_t d = t->lane[e->lane[i]].device_id;
        kernels[d]++;
        if (bz_event_is_steady(t, BZ_EVENT_KERNEL, i) && strstr(bz_string(t, e->name[i]), "nccl"))
            talks[d][n[d]++] = e->end[i] - e->start[i];
    }
    bool both = kernels[0] && kernels[1], waits = n[0] && n[0] == n[1];
    for (int d = 0; d < 2 && both; d++) {
        /* rows have no order of their own: as kernels of their devices come */
        int device = t->lane[e->lane[0]].device_id == d ? 0 : 1;
        char row[32];
        int64_t busy = time[d][1] + time[d][2] + time[d][3], talk = time[d][2] + time[d][3];
        double waited = 0;
        snprintf(row, sizeof row, device ? "rank 7#1" : "rank 7");
        for (int k = 0; k < n[d] && waits; k++)
            waited += (double)(talks[d][k] > talks[!d][k] ? talks[d][k] - talks[!d][k] : 0) / 1e9;
        expect(row, "device", d);
        expect(row, "steps", steps);
        expect(row, "step", seconds(span_of_steps) / steps);
        expect(row, "busy", seconds(busy) / steps);
        expect(row, "busy_share", (double)busy / (double)span_of_steps);
        expect(row, "idle", seconds(span_of_steps - busy) / steps);
        expect(row, "compute", seconds(time[d][1] + time[d][3]) / steps);
        expect(row, "communication", seconds(talk) / steps);
        expect(row, "overlap", talk ? (double)time[d][3] / (double)talk : NAN);
        expect(row, "wait", waits ? waited / steps : NAN);
    }
    check_cells(s);
    bz_arena_free(&arena);
}

/* Each event has the launch, the operator and the call that asked for it. */
static void check_links(const bz_trace *t)
{
    const bz_events *api = &t->event[BZ_EVENT_API], *op = &t->event[BZ_EVENT_OP], *call = &t->event[BZ_EVENT_CALL];
    for (int kind = BZ_EVENT_KERNEL; kind <= BZ_EVENT_MEMSET; kind++) {
        const bz_events *e = &t->event[kind];
        for (size_t i = 0; i < e->n; i++) {
            uint32_t launch = e->correlation[i] - 1;
            if (!e->correlation[i]) {
                assert_int_equal(e->cause[i], BZ_NONE);
                continue;
            }
            assert_int_equal(api->correlation[e->cause[i]], launch + 1);
            assert_int_equal(api->start[e->cause[i]], r.launch[launch].start * TICK);
            assert_int_equal(op->start[e->op[i]], r.op[r.launch[launch].parent].start * TICK);
            assert_string_equal(bz_string(t, op->name[e->op[i]]), r.op[r.launch[launch].parent].name);
            assert_int_equal(e->call[i] != BZ_NONE, r.launch[launch].call != NULL);
            if (r.launch[launch].call)
                assert_int_equal(call->start[e->call[i]], r.launch[launch].start * TICK);
        }
    }
    for (size_t i = 0; i < op->n; i++)
        for (int k = 0; k < r.ops; k++)
            if (op->start[i] == r.op[k].start * TICK) {
                int p = r.op[k].parent;
                assert_int_equal(op->op[i] == BZ_NONE, p < 0);
                assert_true(p < 0 || op->start[op->op[i]] == r.op[p].start * TICK);
            }
}

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* The drawing has each event as a slice of its name and length, and an arrow from each launch to its work. */
static void check_drawing(const bz_trace *t, const char *path)
{
    bz_error err;
    static char text[1 << 20];
    int64_t zero = INT64_MAX;
    int slices[BZ_EVENT_KINDS] = {0}, arrows = 0, launched = 0, iterations = 0, named = 0;
    assert_int_equal(bz_trace_perfetto(t, path, &err), 0);
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        zero = t->event[k].n && t->event[k].start[0] < zero ? t->event[k].start[0] : zero;
    cJSON *all = cJSON_Parse(text);
    const cJSON *e, *list = cJSON_IsArray(all) ? all : cJSON_GetObjectItem(all, "traceEvents");
    assert_non_null(list);
    double begins = NAN;
    cJSON_ArrayForEach(e, list)
    {
        const char *phase = cJSON_GetStringValue(cJSON_GetObjectItem(e, "ph")),
                   *name = cJSON_GetStringValue(cJSON_GetObjectItem(e, "name"));
        const char *category = cJSON_GetStringValue(cJSON_GetObjectItem(e, "cat"));
        int64_t start = llround(number_of(e, "ts") * 1000) + zero, length = llround(number_of(e, "dur") * 1000);
        named += *phase == 'M' && !strcmp(name, "thread_name");
        if (*phase == 's')
            begins = number_of(e, "id");
        if (*phase == 'f')
            arrows += number_of(e, "id") == begins;
        if (*phase != 'X')
            continue;
        iterations += !strcmp(category, "iteration");
        for (int k = 0; k < BZ_EVENT_KINDS; k++) {
            const bz_events *of = &t->event[k];
            bool found = strcmp(category, bz_event_kind_name((bz_event_kind)k)) != 0;
            slices[k] += !found;
            for (size_t i = 0; i < of->n && !found; i++)
                found =
                    of->start[i] == start && of->end[i] - of->start[i] == length &&
                    of->lane[i] + 1 == (uint32_t)number_of(e, "tid") &&
                    !strcmp(bz_string(t, of->short_name && of->short_name[i] ? of->short_name[i] : of->name[i]), name);
            if (!found)
                fail_msg("%s '%s' at %ld is not recorded", category, name, (long)start);
        }
    }
    cJSON_Delete(all);
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        assert_int_equal(slices[k], t->event[k].n);
        for (size_t i = 0; i < t->event[k].n && t->event[k].cause; i++)
            launched += t->event[k].cause[i] != BZ_NONE;
    }
    assert_int_equal(arrows, launched);
    assert_int_equal(iterations, t->n_iterations);
    assert_int_equal(named, t->n_lanes + 2);
}

static const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    if (!v)
        fail_msg("no member %s", key);
    return v;
}

static void is_near(double is, double must, const char *what)
{
    if (!(fabs(is - must) <= 1e-9 * (1 + fabs(must))))
        fail_msg("%s is %.12g, not %.12g", what, is, must);
}

/* Quantiles of the steady iterations, between the two values next to them. */
static void check_quantiles(const cJSON *o, const double *sorted, int n, const char *what)
{
    static const struct {
        const char *key;
        double part;
    } PARTS[] = {{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    is_near(number_of(o, "mean"), sum / n, what);
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
        double at = PARTS[k].part * (n - 1);
        int low = (int)at, high = low + 1 < n ? low + 1 : low;
        is_near(number_of(o, PARTS[k].key), sorted[low] + (at - low) * (sorted[high] - sorted[low]), what);
    }
}

static void check_json(const bz_trace *t)
{
    static const struct {
        const char *key;
        bz_event_kind kind;
    } TOPS[] = {{"calls", BZ_EVENT_CALL}, {"kernels", BZ_EVENT_KERNEL}, {"operators", BZ_EVENT_OP}};
    bz_buf text = {0};
    bz_trace_json(t, 1000, &text);
    cJSON *all = cJSON_Parse(bz_buf_text(&text));
    const cJSON *iterations = member(all, "iterations"), *each = member(iterations, "each"),
                *steady = member(iterations, "steady"), *row;
    int64_t kernel_time = 0, warm = 0;
    for (int i = 0; i < r.works; i++)
        kernel_time += r.work[i].kind == BZ_EVENT_KERNEL ? (r.work[i].at.end - r.work[i].at.start) * TICK : 0;
    for (uint32_t k = 0; k < t->n_iterations; k++)
        warm += t->iteration[k].warm_up;
    is_near(number_of(iterations, "count"), t->n_iterations, "count");
    is_near(number_of(iterations, "warm_up"), (double)warm, "warm_up");
    is_near(number_of(iterations, "run_kernel_time"), (double)kernel_time / 1e9, "run_kernel_time");
    assert_int_equal(cJSON_GetArraySize(each), t->n_iterations);
    for (int q = 0; q < BZ_QUANTITIES; q++) {
        const char *key = bz_quantities[q].json;
        double sorted[STEPS], unit = bz_quantities[q].count ? 1 : 1e-9;
        int n = 0;
        bool known = true;
        for (uint32_t k = 0; k < t->n_iterations; k++) {
            bz_iteration_stats s = measured(k);
            double must = (double)bz_quantity_of(&s, q) * unit;
            const cJSON *v = member(cJSON_GetArrayItem(each, (int)k), key);
            known = cJSON_IsNumber(v);
            if (known)
                is_near(v->valuedouble, must, key);
            int place = bz_iteration_is_steady(t, k) ? n++ : -1;
            for (; place > 0 && sorted[place - 1] > must; place--)
                sorted[place] = sorted[place - 1];
            if (place >= 0)
                sorted[place] = must;
        }
        if (cJSON_IsNull(member(steady, key)))
            assert_false(known);
        else
            check_quantiles(member(steady, key), sorted, n, key);
    }
    for (size_t k = 0; k < sizeof TOPS / sizeof *TOPS; k++) {
        int64_t count, time, sum = 0;
        cJSON_ArrayForEach(row, member(all, TOPS[k].key))
        {
            sum_up(TOPS[k].kind, cJSON_GetStringValue(member(row, "name")), &count, &time);
            is_near(number_of(row, "count"), (double)count, "count");
            is_near(number_of(row, "seconds"), (double)time / 1e9, "seconds");
            sum += count;
        }
        sum_up(TOPS[k].kind, NULL, &count, &time);
        assert_int_equal(sum, count);
    }
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        is_near(number_of(member(all, "events"), bz_event_kind_name((bz_event_kind)k)), (double)t->event[k].n,
                "events");
    assert_int_equal(cJSON_GetArraySize(member(all, "coverage")), t->n_coverage);
    assert_int_equal(cJSON_GetArraySize(member(all, "facts")), t->n_facts);
    cJSON_Delete(all);
    bz_buf_free(&text);
}

static void check_all(void)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_KERNEL, BZ_EVENT_OP, BZ_EVENT_API, BZ_EVENT_CALL};
    check_links(r.trace);
    check_iterations(r.trace);
    check_summary(r.trace);
    for (uint32_t i = 0; i < r.trace->n_iterations; i++)
        check_idle(r.trace, &r.trace->iteration[i]);
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
        check_top(r.trace, KINDS[k]);
    check_gaps(r.trace);
    check_devices(r.trace);
    check_json(r.trace);
}

/* As it was made, as it was saved, and as PyTorch writes it. */
static void as_recorded(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    for (int round = 0; round < 12; round++) {
        make_recording();
        check_all();
        assert_int_equal(bz_trace_save(r.trace, path, &err), 0);
        bz_trace_free(r.trace);
        r.trace = bz_trace_new();
        assert_int_equal(bz_profile_read(r.trace, path, &err), 0);
        assert_int_equal(bz_trace_finish(r.trace, NULL, &err), 0);
        check_all();
        read_as_pytorch(path);
        check_all();
        check_drawing(r.trace, path);
        bz_trace_free(r.trace);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
