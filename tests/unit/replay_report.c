/* What a replay says about its plan and its times: sums, reasons, the first line, and the trace, each against its definition. */
#include "replay/table.h"
#include "tests/unit/chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

/* The choice counted on one conversion of 1 µs. The program, made ready, has three of 90 µs in sequence: no other number is told. */
static void test_conversions(void **state)
{
    (void)state;
    bz_replay_action action[] = {
        {.step = 0, .kind = BZ_REPLAY_CONVERT, .seconds = 3e-5, .hot = 2e-5, .flushed = 4e-5},
        {.step = 0, .kind = BZ_REPLAY_CALL, .seconds = 1e-3, .hot = 1e-3, .flushed = 1e-3},
        {.step = 0, .kind = BZ_REPLAY_COPY, .seconds = 1e-5, .hot = NAN, .flushed = NAN},
        {.step = -1, .kind = BZ_REPLAY_CONVERT, .seconds = 5e-5, .hot = 4e-5, .flushed = 6e-5},
    };
    bz_replay_result result = {.action = action, .n = 4, .median = 2e-3, .low = 2e-3, .high = 2e-3, .min = 2e-3};
    bz_replay_plan plan = {.model = "m.onnx", .system = "", .conversions = 1e-6, .n_conversions = 2};
    const bz_replay_report planned = {.plan = &plan}, run = {.plan = &plan, .result = &result};
    bz_buf out = {0};
    bz_replay_print(&planned, &out);
    assert_non_null(strstr(bz_buf_text(&out), "; 2 conversions between layouts foreseen, 1.00 µs: '--time-limit 0' "
                                              "builds the program and counts\n"));
    bz_buf_clear(&out);
    bz_replay_print_json(&planned, &out);
    assert_null(strstr(bz_buf_text(&out), "conversions\""));
    assert_non_null(strstr(bz_buf_text(&out), "\"foreseen\": 2"));
    bz_buf_clear(&out);
    bz_replay_print(&run, &out);
    const char *told = strstr(bz_buf_text(&out), "conversion");
    assert_non_null(strstr(bz_buf_text(&out), ", 3 conversions 90.0 µs,"));
    assert_ptr_equal(told - 2, strstr(bz_buf_text(&out), "3 conversions 90.0 µs,"));
    bz_buf_clear(&out);
    bz_replay_print_json(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "\"n_conversions\": 3"));
    bz_buf_free(&out);
}

/* Run once: conversions are counted, and no time is told of what nobody measured. */
static void test_once(void **state)
{
    (void)state;
    bz_replay_action action[] = {
        {.step = 0, .kind = BZ_REPLAY_CALL, .seconds = NAN, .hot = NAN, .flushed = NAN},
        {.step = 0, .kind = BZ_REPLAY_CONVERT, .seconds = NAN, .hot = NAN, .flushed = NAN},
        {.step = -1, .kind = BZ_REPLAY_COPY, .seconds = NAN, .hot = NAN, .flushed = NAN},
    };
    bz_replay_result result = {.action = action, .n = 3, .median = NAN, .low = NAN, .high = NAN, .min = NAN};
    bz_replay_plan plan = {.model = "m.onnx", .system = "", .seconds = 4e-3};
    const bz_replay_report run = {.plan = &plan, .result = &result};
    bz_buf out = {0};
    bz_replay_print(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "built: 1 call, 2 conversions, 0 loops of our own\n"));
    assert_null(strstr(bz_buf_text(&out), "in sequence"));
    bz_buf_clear(&out);
    bz_replay_print_json(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "\"n_conversions\": 2,"));
    assert_non_null(strstr(bz_buf_text(&out), "\"calls\": null,"));
    assert_non_null(strstr(bz_buf_text(&out), "\"conversions\": null,"));
    bz_buf_free(&out);
}

enum { UNITS = 5, OF_UNIT = 3, STEPS = UNITS * OF_UNIT, ACTIONS = 60 };

typedef struct {
    bz_replay_unit unit[UNITS];
    bz_replay_step step[STEPS];
    bz_replay_choice choice[STEPS];
    bz_replay_action action[ACTIONS];
    double cold[STEPS];
    bz_bound bound;
    bz_replay_plan plan;
    bz_replay_result result;
    bz_replay_report report;
} sample;

static double seconds_of(unsigned most)
{
    return 1e-6 * chance(most);
}

static bool one_in(unsigned n)
{
    return !chance(n);
}

/* Units with calls and without, with records and without, whose actions are or are not measured by themselves. Only calls' units have calls. */
static void draw_sample(sample *s)
{
    bool alone = one_in(2);
    *s = (sample){0};
    for (int u = 0; u < UNITS; u++) {
        bool calls = !one_in(4);
        s->unit[u] = (bz_replay_unit){.name = "layer",
                                      .kind = "conv",
                                      .first = u * OF_UNIT,
                                      .n_steps = (int)chance(OF_UNIT + 1),
                                      .bound = one_in(5) ? (double)NAN : seconds_of(50)};
        for (int i = u * OF_UNIT; i < (u + 1) * OF_UNIT; i++) {
            s->step[i] = (bz_replay_step){.name = "step", .kind = calls ? BZ_STEP_CALL : BZ_STEP_LOOP};
            s->choice[i].n = calls ? 2 : 0;
            s->choice[i].taken = 1;
            s->choice[i].option[1] =
                (bz_replay_option){.seconds = 1e-6 + seconds_of(40),
                                   .launch = seconds_of(3),
                                   .provenance = one_in(8) ? BZ_PROVENANCE_MODELLED : BZ_PROVENANCE_MEASURED};
            s->cold[i] = seconds_of(90);
        }
    }
    int n = 0;
    for (int u = 0; u < UNITS; u++)
        for (int k = 0; s->unit[u].n_steps && k < 6; k++) {
            int step = u * OF_UNIT + (int)chance((unsigned)s->unit[u].n_steps);
            bz_replay_kind kind = (bz_replay_kind)chance(4);
            if (kind == BZ_REPLAY_CALL && !s->choice[step].n)
                kind = BZ_REPLAY_LOOP;
            s->action[n++] = (bz_replay_action){.kind = kind,
                                                .step = step,
                                                .seconds = one_in(9) ? (double)NAN : seconds_of(60),
                                                .hot = alone ? seconds_of(50) : (double)NAN,
                                                .flushed = alone ? seconds_of(80) : (double)NAN};
        }
    for (int k = (int)chance(3); k--;)
        s->action[n++] = (bz_replay_action){
            .kind = one_in(2) ? BZ_REPLAY_CONVERT : BZ_REPLAY_COPY, .step = -1, .seconds = seconds_of(30)};
    s->bound = (bz_bound){.sequential = 1e-6 + seconds_of(300)};
    s->plan = (bz_replay_plan){.model = "m.onnx",
                               .system = "",
                               .unit = s->unit,
                               .n_units = UNITS,
                               .step = s->step,
                               .choice = s->choice,
                               .n_steps = STEPS};
    s->result = (bz_replay_result){.action = s->action, .n = n, .median = 1e-6 + seconds_of(900)};
    s->report = (bz_replay_report){
        .plan = &s->plan, .result = &s->result, .bound = &s->bound, .cold = one_in(2) ? s->cold : NULL};
}

/* What actions of one kind took for a unit; of all units and the outputs where there is none. */
static double took(const sample *s, const bz_replay_unit *u, bool calls, bool loops, bool conversions)
{
    double sum = 0;
    for (int i = 0; i < s->result.n; i++) {
        const bz_replay_action *a = &s->action[i];
        bool of_kind = a->kind == BZ_REPLAY_CALL ? calls : a->kind == BZ_REPLAY_LOOP ? loops : conversions;
        bool of_unit = !u || (a->step >= u->first && a->step < u->first + u->n_steps);
        sum += of_kind && of_unit && isfinite(a->seconds) ? a->seconds : 0;
    }
    return sum;
}

static void same_time(double a, double b)
{
    if (isnan(a) != isnan(b) || fabs(a - b) > 1e-12)
        fail_msg("%g is not %g", a, b);
}

/* Every second over the bound has one cause: of each unit, and of the whole. */
static void test_every_second_has_a_cause(void **state)
{
    (void)state;
    static sample s;
    for (int round = 0; round < 2000; round++) {
        table t;
        double all = 0, bounds = 0, choices = 0;
        draw_sample(&s);
        table_make(&s.report, &t);
        assert_int_equal(t.n, UNITS);
        for (int u = 0; u < UNITS; u++) {
            const row *w = &t.row[u];
            double of_unit = 0, bound = isfinite(s.unit[u].bound) ? s.unit[u].bound : 0;
            assert_ptr_equal(w->unit, &s.unit[u]);
            same_time(w->calls, took(&s, w->unit, true, false, false));
            same_time(w->loops, took(&s, w->unit, false, true, false));
            same_time(w->conversions, took(&s, w->unit, false, false, true));
            same_time(row_total(w), took(&s, w->unit, true, true, true));
            for (int e = 0; e < N_EXCESS; e++)
                of_unit += w->excess[e];
            same_time(of_unit, row_total(w) - bound);
            same_time(w->excess[EXCESS_CONVERSION], w->conversions);
            bounds += bound;
            choices += w->excess[EXCESS_CHOICE];
        }
        same_time(t.calls, took(&s, NULL, true, false, false));
        same_time(t.loops, took(&s, NULL, false, true, false));
        same_time(t.conversions, took(&s, NULL, false, false, true));
        same_time(t.excess[EXCESS_CONVERSION], t.conversions);
        same_time(t.excess[EXCESS_BETWEEN], s.result.median - took(&s, NULL, true, true, true));
        same_time(t.excess[EXCESS_CHOICE], choices + bounds - s.bound.sequential);
        for (int e = 0; e < N_EXCESS; e++)
            all += t.excess[e];
        same_time(all, s.result.median - s.bound.sequential);
        bz_arena_free(&t.arena);
    }
}

/* What the plan knows of a unit's calls: their records, cold or not, and launches; no sum where one has no record. */
static void test_records_of_units(void **state)
{
    (void)state;
    static sample s;
    for (int round = 0; round < 1000; round++) {
        table t;
        draw_sample(&s);
        table_make(&s.report, &t);
        for (int u = 0; u < UNITS; u++) {
            double record = 0, cold = 0, launch = 0;
            bool guessed = false, calls = false, loops = false;
            for (int i = s.unit[u].first; i < s.unit[u].first + s.unit[u].n_steps; i++) {
                loops |= s.step[i].kind == BZ_STEP_LOOP;
                if (!s.choice[i].n)
                    continue;
                calls = true;
                guessed |= s.choice[i].option[1].provenance == BZ_PROVENANCE_MODELLED;
                record += s.choice[i].option[1].seconds;
                launch += s.choice[i].option[1].launch;
                cold += s.cold[i];
            }
            same_time(t.row[u].record, guessed ? (double)NAN : record);
            same_time(t.row[u].launch, launch);
            same_time(t.row[u].cold, s.report.cold ? cold : (double)NAN);
            assert_true(t.row[u].modelled == guessed && t.row[u].calls_run == calls && t.row[u].loop_runs == loops);
            assert_true(guessed == !strcmp(row_reason(&t, &t.row[u]), "no record"));
        }
        bz_arena_free(&t.arena);
    }
}

/* A unit of one call that is over its bound for one cause alone is told with that cause. */
static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        double bound, record, cold, hot, call, loop, conversion, launch;
        const char *reason;
    } ROWS[] = {
        {1e-4, 1e-4, NAN, 1e-4, 1e-4, 0, 0, 0, ""},
        {1e-4, 1e-4, NAN, 1e-4, 1.04e-4, 0, 0, 0, ""},
        {1e-4, 1e-4, NAN, 1e-4, 1.06e-4, 0, 0, 0, "cold operands"},
        {1e-4, 1e-4, NAN, 0.9e-4, 0.94e-4, 0, 0, 0, "faster than its record"},
        {1e-4, 1e-4, NAN, 1e-4, 1e-4, 0, 5e-5, 0, "layout conversion"},
        {1e-4, 1e-4, NAN, 1e-4, 1e-4, 5e-5, 0, 0, "a loop of our own"},
        {1e-4, 2e-4, NAN, 2e-4, 2e-4, 0, 0, 0, "dearer than the bound's choice"},
        {1e-4, NAN, NAN, 2e-4, 2e-4, 0, 0, 0, "no record"},
        {1e-5, 1e-5, NAN, 2e-5, 2e-5, 0, 0, 0, "slower than its record, though hot"},
        {1e-5, 1e-5, NAN, 2e-5, 2e-5, 0, 0, 8e-6, "launch"},
        {1e-5, 1e-5, NAN, 2e-5, 2e-5, 0, 0, 6e-6, "slower than its record, though hot"},
        {1e-5, 1e-5, 1e-5, NAN, 2e-5, 0, 0, 0, "slower than its record"},
        {1e-5, 1e-5, 1.9e-5, NAN, 2e-5, 0, 0, 0, "cold operands"},
        {1e-4, 1e-4, NAN, 1.2e-4, 1.2e-4, 0, 0, 0, "clock or neighbours: all calls alike"},
        {NAN, 1e-4, NAN, 1e-4, 1.2e-4, 0, 0, 0, "cold operands"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bz_replay_unit unit = {.name = "l", .kind = "conv", .n_steps = 1, .bound = ROWS[i].bound};
        bz_replay_step step = {.name = "l", .kind = BZ_STEP_CALL};
        bz_replay_choice choice = {.n = 1};
        bool known = isfinite(ROWS[i].record);
        choice.option[0] = (bz_replay_option){.seconds = known ? ROWS[i].record : 1e-4,
                                              .launch = ROWS[i].launch,
                                              .provenance = known ? BZ_PROVENANCE_MEASURED : BZ_PROVENANCE_MODELLED};
        double cold = ROWS[i].cold;
        bz_replay_action action[] = {
            {.kind = BZ_REPLAY_CALL, .seconds = ROWS[i].call, .hot = ROWS[i].hot, .flushed = NAN},
            {.kind = BZ_REPLAY_LOOP, .seconds = ROWS[i].loop},
            {.kind = BZ_REPLAY_CONVERT, .seconds = ROWS[i].conversion}};
        bz_replay_plan plan = {
            .model = "m", .system = "", .unit = &unit, .n_units = 1, .step = &step, .choice = &choice, .n_steps = 1};
        bz_replay_result result = {.action = action, .n = 3, .median = 1e-3};
        table t;
        table_make(&(bz_replay_report){.plan = &plan, .result = &result, .cold = isfinite(cold) ? &cold : NULL}, &t);
        if (strcmp(row_reason(&t, t.row), ROWS[i].reason) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, row_reason(&t, t.row), ROWS[i].reason);
        bz_arena_free(&t.arena);
    }
}

static void headline_is(const bz_replay_report *r, const char *expected)
{
    bz_buf out = {0};
    bz_replay_print(r, &out);
    *strchr(out.data, '\n') = 0;
    assert_string_equal(out.data, expected);
    bz_buf_free(&out);
}

/* Whatever a headline says, it says in which setting; a bound is told where there is one, and a ratio where that is possible. */
static void test_headlines(void **state)
{
    (void)state;
    static const char *const SETTING[] = {"(1 thread)", "(2 threads, f16)", "(1 stream)",
                                          "(3 streams, as one graph, bf16)"};
    bz_bound fused = {.fused = {.wanted = true, .sequential = 1e-3}, .sequential = 9},
             ends = {.sequential = 1e-3, .coverage = {.unpriced = 1}}, partial = {.sequential = 1e-3, .partial = true},
             slow = {.sequential = 4e-3};
    const struct {
        const bz_bound *bound;
        const char *told;
    } BOUNDS[] = {{NULL, ""},
                  {&fused, "; the fused bound is 1.00 ms: 2 × as long"},
                  {&ends, "; the bound is ≥ 1.00 ms: 2 × as long"},
                  {&partial, "; the bound is not known, because too many layers have no record"},
                  {&slow, ", less than the bound: this bound is wrong, it is 4.00 ms"}};
    for (int k = 0; k < 4; k++) {
        bz_replay_plan plan = {.model = "m.onnx",
                               .system = k % 2 ? "box@onednn3" : "",
                               .dtype = k == 1   ? BZ_F16
                                        : k == 3 ? BZ_BF16
                                                 : BZ_UNDEFINED,
                               .device = k > 1 ? "cudnn" : NULL,
                               .streams = k > 1 ? 2 * k - 3 : 5,
                               .setting = {.threads = k > 1 ? 7 : k + 1}};
        bz_replay_result once = {.graph = k == 3, .median = NAN},
                         measured = {.graph = k == 3, .median = 2e-3, .low = 2e-3, .high = 2e-3, .min = 2e-3};
        char text[300];
        if (k != 3) {
            snprintf(text, sizeof text, "m.onnx: planned, not run %s", SETTING[k]);
            headline_is(&(bz_replay_report){.plan = &plan}, text);
        }
        snprintf(text, sizeof text, "m.onnx: ran once, not measured %s", SETTING[k]);
        headline_is(&(bz_replay_report){.plan = &plan, .result = &once}, text);
        for (size_t i = 0; i < sizeof BOUNDS / sizeof *BOUNDS; i++) {
            snprintf(text, sizeof text, "m.onnx: one run took 2.00 ms on %s %s%s",
                     k % 2 ? "box@onednn3" : "this machine", SETTING[k], BOUNDS[i].told);
            headline_is(&(bz_replay_report){.plan = &plan, .result = &measured, .bound = BOUNDS[i].bound}, text);
        }
    }
}

/* Each pass is an iteration. Its actions follow each other, or begin when they did; each is an operator with its call. */
static void test_traces(void **state)
{
    (void)state;
    enum { N = 4, MOST = 5 };
    bz_replay_step step[N] = {
        {.name = "a", .kind = BZ_STEP_LOOP}, {.name = "b", .kind = BZ_STEP_LOOP}, {.name = "c", .kind = BZ_STEP_LOOP}};
    for (int round = 0; round < 60; round++) {
        bz_error err;
        double pass[MOST * N], start[MOST * N];
        int passes = 1 + round % MOST, streams = 1 + (int)chance(3);
        bz_replay_action action[N];
        for (int i = 0; i < N; i++)
            action[i] = (bz_replay_action){.kind = i < 3 ? BZ_REPLAY_LOOP : BZ_REPLAY_COPY,
                                           .step = i < 3 ? i : -1,
                                           .stream = (int)chance((unsigned)streams)};
        for (int i = 0; i < passes * N; i++) {
            pass[i] = 1e-6 * (1 + chance(50));
            start[i] = 1e-6 * chance(100);
        }
        bz_replay_plan plan = {
            .model = "m.onnx", .step = step, .n_steps = 3, .streams = streams, .setting = {.threads = 1}};
        bz_replay_result result = {.action = action,
                                   .n = N,
                                   .pass = pass,
                                   .start = round % 2 ? start : NULL,
                                   .n_passes = passes,
                                   .median = 1e-3};
        bz_trace *t = bz_replay_trace(&(bz_replay_report){.plan = &plan, .result = &result}, &err);
        assert_non_null(t);
        assert_int_equal(t->n_iterations, passes);
        assert_int_equal(t->event[BZ_EVENT_OP].n, passes * N);
        assert_int_equal(t->event[BZ_EVENT_CALL].n, passes * N);
        int64_t before = -1;
        for (int k = 0; k < passes; k++) {
            double last = 0, end = 0, at;
            const bz_iteration *it = &t->iteration[k];
            assert_true(it->start > before);
            for (int i = 0; i < N; i++) {
                bool found = false;
                at = round % 2 ? start[k * N + i] : last;
                last = at + pass[k * N + i];
                end = last > end ? last : end;
                for (size_t e = 0; e < t->event[BZ_EVENT_OP].n; e++) {
                    const bz_events *op = &t->event[BZ_EVENT_OP];
                    found |= llabs(op->start[e] - it->start - llround(1e9 * at)) <= N &&
                             llabs(op->end[e] - it->start - llround(1e9 * last)) <= N &&
                             !strcmp(bz_string(t, op->name[e]), i < 3 ? step[i].name : "outputs");
                }
                assert_true(found);
            }
            assert_true(llabs(it->end - it->start - llround(1e9 * end)) <= N);
            before = it->end;
        }
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_once),
                                       cmocka_unit_test(test_every_second_has_a_cause),
                                       cmocka_unit_test(test_records_of_units),
                                       cmocka_unit_test(test_reasons),
                                       cmocka_unit_test(test_headlines),
                                       cmocka_unit_test(test_traces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
