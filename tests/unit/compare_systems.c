/* Profiles and reports held against each other. */
#include "compare/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t dice_state;

static int64_t dice(int64_t n)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((dice_state >> 33) % (uint64_t)n);
}

typedef struct call {
    const char *name;
    int64_t length; /* ns, scattered by up to 1 % */
    int times;
} call;

/* A run of `iterations`, each with the calls one after the other and an operator around each. */
static bz_trace *run_of(const call *calls, int n, int iterations, uint64_t seed)
{
    bz_trace *t = bz_trace_new();
    bz_error err = {0};
    uint32_t source = bz_trace_source(t, "made.up", "test"), lane = bz_trace_thread(t, source, 1, 7);
    uint32_t range = bz_trace_text(t, "step");
    int64_t at = 1000000;
    dice_state = seed;
    for (int i = 0; i < iterations; i++) {
        int64_t begin = at;
        for (int k = 0; k < n; k++)
            for (int m = 0; m < calls[k].times; m++) {
                int64_t length = calls[k].length + dice(calls[k].length / 100);
                bz_trace_add(t, BZ_EVENT_OP, at, at + length + 20, bz_trace_text(t, "aten::op"), lane);
                size_t c =
                    bz_trace_add(t, BZ_EVENT_CALL, at + 10, at + 10 + length, bz_trace_text(t, calls[k].name), lane);
                t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
                at += length + 30;
            }
        bz_trace_add(t, BZ_EVENT_RANGE, begin, at, range, lane);
        at += 500;
    }
    bz_trace_fact(t, "threads", seed % 2 ? "1" : "2");
    if (bz_trace_finish(t, &(bz_finish_options){.iterations = "step"}, &err))
        fail_msg("%s", err.text);
    return t;
}

static const bz_compare_row *row_of(const bz_compare_part *p, const char *what)
{
    for (int i = 0; i < p->compare.n; i++)
        if (!strncmp(p->compare.row[i].what, what, strlen(what)))
            return &p->compare.row[i];
    fail_msg("no row %s", what);
    return NULL;
}

static const bz_compare_part *part_of(const bz_compare_set *s, const char *what)
{
    for (int i = 0; i < s->n_parts; i++)
        if (!strcmp(s->part[i].what, what))
            return &s->part[i];
    fail_msg("no part %s", what);
    return NULL;
}

static void profiles_by_call(void **state)
{
    static const call FIRST[] = {
        {"same", 100000, 2}, {"slower", 100000, 1}, {"faster", 100000, 1}, {"more", 5000, 2}, {"gone", 7000, 1}};
    static const call SECOND[] = {
        {"same", 100000, 2}, {"slower", 130000, 1}, {"faster", 80000, 1}, {"more", 5000, 4}, {"new", 9000, 3}};
    bz_trace *a = run_of(FIRST, 5, 40, 1), *b = run_of(SECOND, 5, 40, 2);
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    (void)state;
    assert_int_equal(bz_compare_profiles(a, b, &arena, &set, &err), 0);
    const bz_compare_part *calls = part_of(&set, "library calls");
    assert_int_equal(row_of(calls, "same")->verdict, BZ_SAME);
    assert_int_equal(row_of(calls, "slower")->verdict, BZ_SLOWER);
    assert_int_equal(row_of(calls, "faster")->verdict, BZ_FASTER);
    assert_true(row_of(calls, "same")->times == 2);
    const bz_compare_row *more = row_of(calls, "more");
    assert_int_equal(more->verdict, BZ_SLOWER);
    assert_string_equal(more->setting, "2 -> 4 times");
    assert_int_equal(calls->n_only[0], 1);
    assert_string_equal(calls->only[0][0].what, "gone ");
    assert_int_equal(calls->n_only[1], 1);
    assert_true(calls->only[1][0].times > 2.99 && calls->only[1][0].times < 3.01);
    for (int i = 0; i < calls->compare.n; i++) {
        const bz_span *s = &calls->compare.row[i].a;
        assert_true(!s->guessed && s->low <= s->seconds && s->seconds <= s->high);
    }
    assert_int_equal(set.n_differences, 1);
    assert_string_equal(set.difference[0].what, "threads");
    assert_int_equal(part_of(&set, "operators")->compare.n, 1);
    row_of(part_of(&set, "iteration"), "latency");
    bz_arena_free(&arena);
    bz_trace_free(a);
    bz_trace_free(b);
}

static void few_iterations_decide_nothing_close(void **state)
{
    static const call FIRST[] = {{"x", 100000, 1}}, SECOND[] = {{"x", 103000, 1}};
    bz_trace *a = run_of(FIRST, 1, 3, 1), *b = run_of(SECOND, 1, 3, 1);
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    (void)state;
    assert_int_equal(bz_compare_profiles(a, b, &arena, &set, &err), 0);
    const bz_compare_row *x = row_of(part_of(&set, "library calls"), "x");
    assert_true(x->a.guessed);
    assert_int_equal(x->verdict, BZ_UNDECIDED);
    bz_arena_free(&arena);
    bz_trace_free(a);
    bz_trace_free(b);
}

/* The interval holds the true median about as often as it says: 95 of 100, here at least 90. */
static void intervals_hold_the_median(void **state)
{
    static const call CALL[] = {{"x", 100000, 1}};
    int held = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        bz_trace *a = run_of(CALL, 1, 20, seed * 977 + 1), *b = run_of(CALL, 1, 20, 5);
        bz_arena arena = {0};
        bz_error err = {0};
        bz_compare_set set;
        assert_int_equal(bz_compare_profiles(a, b, &arena, &set, &err), 0);
        const bz_span *s = &row_of(part_of(&set, "library calls"), "x")->a;
        held += s->low <= 100499.5e-9 && 100499.5e-9 <= s->high;
        bz_arena_free(&arena);
        bz_trace_free(a);
        bz_trace_free(b);
    }
    assert_true(held >= 180);
}

static void a_profile_without_iterations_is_refused(void **state)
{
    bz_trace *a = bz_trace_new(), *b = bz_trace_new();
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    (void)state;
    assert_int_equal(bz_compare_profiles(a, b, &arena, &set, &err), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    bz_arena_free(&arena);
    bz_trace_free(a);
    bz_trace_free(b);
}

enum { KEYS = 6, LIBRARY = KEYS, LATENCY, SUMS, MOST_ITERATIONS = 40 };
static const char *const CALLS[KEYS] = {"a", "b", "c", "d", "e", "f"};

/* What each key took in each steady iteration, in ns, and how often it was called there; then all calls, and the whole iteration. */
typedef struct {
    int iterations, times[KEYS];
    double sum[SUMS][MOST_ITERATIONS];
} drawn;

static bz_trace *draw_run(drawn *d)
{
    bz_trace *t = bz_trace_new();
    bz_error err = {0};
    uint32_t source = bz_trace_source(t, "made.up", "test"), lane = bz_trace_thread(t, source, 1, 7);
    int64_t at = 1000000;
    *d = (drawn){.iterations = 1 + (int)dice(MOST_ITERATIONS)};
    for (int k = 0; k < KEYS; k++)
        d->times[k] = (int)dice(4);
    d->times[0] += !d->times[0]; /* an iteration has something in it */
    for (int i = 0; i < d->iterations; i++) {
        int64_t begin = at;
        for (int k = 0; k < KEYS; k++)
            for (int m = 0; m < d->times[k]; m++) {
                int64_t length = 1000 * (1 + dice(5)) * (k + 1);
                size_t c = bz_trace_add(t, BZ_EVENT_CALL, at, at + length, bz_trace_text(t, CALLS[k]), lane);
                t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
                d->sum[k][i] += (double)length;
                d->sum[LIBRARY][i] += (double)length;
                at += length + 30;
            }
        bz_trace_add(t, BZ_EVENT_RANGE, begin, at, bz_trace_text(t, "step"), lane);
        d->sum[LATENCY][i] = (double)(at - begin);
        at += 500;
    }
    if (bz_trace_finish(t, &(bz_finish_options){.iterations = "step"}, &err))
        fail_msg("%s", err.text);
    int n = 0;
    for (int i = 0; i < d->iterations; i++) {
        for (int k = 0; k < SUMS; k++)
            d->sum[k][n] = d->sum[k][i];
        n += bz_iteration_is_steady(t, (uint32_t)i);
    }
    assert_true(n > 0);
    d->iterations = n;
    return t;
}

static int by_length(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* Of fair coins as many as iterations at most k show heads in 2.5 of 100 cases: as many values are left out on each side. */
static bz_span expected_span(const drawn *d, int key, int share)
{
    double v[MOST_ITERATIONS], sum = 0, ways = 1;
    int n = d->iterations, k = -1;
    for (int i = 0; i < n; i++)
        v[i] = d->sum[key][i] / share * 1e-9;
    qsort(v, (size_t)n, sizeof *v, by_length);
    double median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    for (int i = 0; i < n; ways *= (double)(n - i) / (i + 1), i++) {
        sum += ways;
        if (sum / (double)(1LL << n) > 0.025)
            break;
        k = i;
    }
    if (k >= 0)
        return (bz_span){median, v[k], v[n - 1 - k], false};
    return (bz_span){median, v[0] < 0.975 * median ? v[0] : 0.975 * median,
                     v[n - 1] > 1.025 * median ? v[n - 1] : 1.025 * median, true};
}

static void same_span(const bz_span *got, const bz_span *e)
{
    double off = 1e-9 * e->seconds; /* times are kept in steps of less than that */
    assert_true(got->guessed == e->guessed);
    assert_true(got->seconds < e->seconds + 1e-12 + off && got->seconds > e->seconds - 1e-12 - off);
    assert_true(got->low < e->low + off && got->low > e->low - off && got->high < e->high + off &&
                got->high > e->high - off);
}

static double weight(const bz_compare_row *r, int which)
{
    return r->times * (which ? r->b.seconds : r->a.seconds);
}

static void random_profiles(void **state)
{
    (void)state;
    dice_state = 77;
    for (int i = 0; i < 150; i++) {
        static drawn d[2];
        bz_trace *t[2] = {draw_run(&d[0]), draw_run(&d[1])};
        bz_arena arena = {0};
        bz_error err = {0};
        bz_compare_set set;
        char setting[60];
        int both = 0, only[2] = {0};
        assert_int_equal(bz_compare_profiles(t[0], t[1], &arena, &set, &err), 0);
        const bz_compare_part *part = part_of(&set, "library calls");
        for (int k = 0; k < KEYS; k++) {
            int m = d[0].times[k], n = d[1].times[k], which = !m;
            if (!m && !n)
                continue;
            if (m && n) {
                const bz_compare_row *row = row_of(part, CALLS[k]);
                bool equal = m == n;
                bz_span a = expected_span(&d[0], k, equal ? m : 1), b = expected_span(&d[1], k, equal ? m : 1);
                both++;
                same_span(&row->a, &a);
                same_span(&row->b, &b);
                assert_int_equal(row->verdict, bz_verdict_of(&row->a, &row->b));
                assert_true(row->times == (equal ? m : 1));
                snprintf(setting, sizeof setting, "%d -> %d times", m, n);
                if (equal)
                    assert_null(row->setting);
                else
                    assert_string_equal(row->setting, setting);
                continue;
            }
            bz_span e = expected_span(&d[which], k, m + n);
            const bz_compare_row *row = part->only[which];
            while (row < part->only[which] + part->n_only[which] && strncmp(row->what, CALLS[k], 1) != 0)
                row++;
            assert_true(row < part->only[which] + part->n_only[which] && row->times == m + n);
            same_span(which ? &row->b : &row->a, &e);
            only[which]++;
        }
        assert_int_equal(part->compare.n, both);
        for (int k = LIBRARY; k <= LATENCY; k++) {
            const bz_compare_row *row =
                row_of(part_of(&set, "iteration"), k == LATENCY ? "latency" : "in library calls");
            bz_span a = expected_span(&d[0], k, 1), b = expected_span(&d[1], k, 1);
            same_span(&row->a, &a);
            same_span(&row->b, &b);
        }
        for (int w = 0; w < 2; w++) {
            assert_true(part->n_only[w] == only[w] && (w ? part->compare.only_b : part->compare.only_a) == only[w]);
            for (int k = 1; k < only[w]; k++)
                assert_true(weight(&part->only[w][k - 1], w) >= weight(&part->only[w][k], w));
        }
        bz_arena_free(&arena);
        bz_trace_free(t[0]);
        bz_trace_free(t[1]);
    }
}

#define REPORT(models) "{\"record\":\"analysis\",\"v\":1,\"models\":[" models "]}"
#define MODEL(name, batch, total, layers)                                                                              \
    "{\"model\":\"" name "\",\"system\":\"s\",\"batch\":" batch ",\"sequential\":" total ",\"layers\":[" layers "]}"
#define LAYER(key, seconds, low, high)                                                                                 \
    "{\"key\":\"" key "\",\"seconds\":" seconds ",\"low\":" low ",\"high\":" high ",\"times\":1,\"variant\":\"v\"}"

static bz_report_file *read_report(const char *text, bz_arena *arena)
{
    bz_report_file *file;
    bz_error err = {0};
    if (bz_report_read(text, strlen(text), "report", arena, &file, &err))
        fail_msg("%s", err.text);
    return file;
}

/* One model in common and 200 that only the second has: each is a difference, and the layers in common stay what they are. */
static void reports_of_many_models(void **state)
{
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    bz_buf text = {0};
    (void)state;
    bz_report_file *a = read_report(REPORT(MODEL("m.onnx", "1", "2", LAYER("a", "2", "1.99", "2.01"))), &arena);
    bz_buf_puts(&text, "{\"record\":\"analysis\",\"v\":1,\"models\":[" MODEL("m.onnx", "1", "2",
                                                                             LAYER("a", "1", "0.99", "1.01")));
    for (int i = 0; i < 200; i++)
        bz_buf_printf(&text, "," MODEL("new%d.onnx", "1", "2", LAYER("a", "1", "1", "1")), i);
    bz_buf_puts(&text, "]}");
    bz_report_file *b = read_report(bz_buf_text(&text), &arena);
    assert_int_equal(bz_compare_reports(a, b, &arena, &set, &err), 0);
    assert_int_equal(set.n_parts, 2);
    assert_int_equal(row_of(&set.part[0], "sequential")->verdict, BZ_SAME);
    assert_int_equal(row_of(&set.part[1], "a")->verdict, BZ_FASTER);
    assert_int_equal(set.n_differences, 200);
    for (int i = 0; i < 200; i++) {
        char name[24];
        snprintf(name, sizeof name, "new%d.onnx", i);
        assert_string_equal(set.difference[i].what, "models");
        assert_null(set.difference[i].a);
        assert_string_equal(set.difference[i].b, name);
    }
    bz_buf_free(&text);
    bz_arena_free(&arena);
}

static void reports_by_layer(void **state)
{
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    (void)state;
    bz_report_file *a =
        read_report(REPORT(MODEL("d/m.onnx", "1", "3",
                                 LAYER("a", "1", "0.99", "1.01") "," LAYER("a", "1", "0.99", "1.01") "," LAYER(
                                     "b", "1", "null", "null") "," LAYER("gone", "1", "1", "1"))),
                    &arena);
    bz_report_file *b = read_report(REPORT(MODEL("m.onnx", "1", "2",
                                                 LAYER("a", "0.5", "0.49", "0.51") "," LAYER(
                                                     "b", "1.01", "null", "null") "," LAYER("new", "2", "2", "2"))),
                                    &arena);
    assert_int_equal(bz_compare_reports(a, b, &arena, &set, &err), 0);
    assert_int_equal(set.n_parts, 2);
    assert_int_equal(row_of(&set.part[0], "sequential")->verdict, BZ_FASTER);
    const bz_compare_row *row = row_of(&set.part[1], "a");
    assert_int_equal(row->verdict, BZ_FASTER);
    assert_true(row->times == 2);
    assert_int_equal(row_of(&set.part[1], "b")->verdict, BZ_UNDECIDED);
    assert_true(row_of(&set.part[1], "b")->a.guessed);
    assert_string_equal(set.part[1].only[0][0].what, "gone");
    assert_string_equal(set.part[1].only[1][0].what, "new");
    assert_string_equal(set.difference[0].what, "model");
    bz_arena_free(&arena);
}

static void reports_of_many_models_match_by_name_and_batch(void **state)
{
    bz_arena arena = {0};
    bz_error err = {0};
    bz_compare_set set;
    (void)state;
    bz_report_file *a = read_report(
        REPORT(MODEL("m", "1", "1", LAYER("a", "1", "1", "1")) "," MODEL("m", "2", "1", LAYER("b", "1", "1", "1"))),
        &arena);
    bz_report_file *b = read_report(
        REPORT(MODEL("m", "2", "1", LAYER("b", "1", "1", "1")) "," MODEL("n", "1", "1", LAYER("a", "1", "1", "1"))),
        &arena);
    assert_int_equal(bz_compare_reports(a, b, &arena, &set, &err), 0);
    assert_int_equal(set.n_parts, 2);
    assert_int_equal(row_of(&set.part[1], "b")->verdict, BZ_SAME);
    assert_int_equal(set.n_differences, 2);
    assert_string_equal(set.difference[1].b, "n");
    bz_arena_free(&arena);
}

static void what_is_no_report_is_refused(void **state)
{
    static const char *const BAD[] = {"",
                                      "{",
                                      "[]",
                                      "{\"record\":\"comparison\",\"models\":[]}",
                                      "{\"record\":\"analysis\",\"v\":2,\"models\":[]}",
                                      "{\"record\":\"analysis\",\"v\":1}",
                                      REPORT("7"),
                                      REPORT("{\"model\":\"m\"}")};
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        bz_arena arena = {0};
        bz_error err = {0};
        bz_report_file *file;
        assert_int_equal(bz_report_read(BAD[i], strlen(BAD[i]), "x.json", &arena, &file, &err), -1);
        assert_int_equal(err.code, BZ_BAD_INPUT);
        assert_non_null(strstr(err.text, "x.json"));
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_by_call),
        cmocka_unit_test(few_iterations_decide_nothing_close),
        cmocka_unit_test(intervals_hold_the_median),
        cmocka_unit_test(a_profile_without_iterations_is_refused),
        cmocka_unit_test(random_profiles),
        cmocka_unit_test(reports_by_layer),
        cmocka_unit_test(reports_of_many_models),
        cmocka_unit_test(reports_of_many_models_match_by_name_and_batch),
        cmocka_unit_test(what_is_no_report_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
