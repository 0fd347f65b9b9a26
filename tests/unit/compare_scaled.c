/* A random recording against itself, and against one in which everything takes twice as long: each row is computed once more. */
#include "compare/compare.h"
#include "random_recording.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The same events, all times so many times as great. */
static bz_trace *scaled(const bz_trace *t, int64_t by)
{
    bz_error err;
    bz_trace *out = bz_trace_new();
    uint32_t source = bz_trace_source(out, "made-up.json", "test");
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        const bz_events *e = &t->event[k];
        for (size_t i = 0; i < e->n; i++) {
            const bz_lane *l = &t->lane[e->lane[i]];
            uint32_t lane = l->device ? bz_trace_stream(out, source, 1, l->device_id, 1, l->stream)
                                      : bz_trace_thread(out, source, 1, 1);
            size_t at = bz_trace_add(out, (bz_event_kind)k, by * e->start[i], by * e->end[i],
                                     bz_trace_text(out, bz_string(t, e->name[i])), lane);
            if (e->correlation)
                out->event[k].correlation[at] = e->correlation[i];
            if (e->flags)
                out->event[k].flags[at] = e->flags[i];
        }
    }
    bz_trace_fact(out, "gpu", "another");
    assert_int_equal(bz_trace_finish(out, &(bz_finish_options){.iterations = "step"}, &err), 0);
    return out;
}

/* How often the name occurs in a steady iteration, on average, and the median time of an iteration's. */
static void expected_row(bz_event_kind kind, const char *name, double *times, double *low, double *median, double *high)
{
    double v[STEPS];
    int n = 0, count = 0;
    for (uint32_t k = 0; k < r.trace->n_iterations; k++) {
        double sum = 0;
        if (!bz_iteration_is_steady(r.trace, k))
            continue;
        for (int i = 0; i < r.works + r.ops; i++) {
            const work_item *w = i < r.works ? &r.work[i] : NULL;
            const struct span *at = w ? &w->at : &r.op[i - r.works];
            if ((w ? w->kind : BZ_EVENT_OP) != kind || (!w && at->parent >= 0) || strcmp(at->name, name) != 0 ||
                !in_iteration(w ? asked(w) : at->start, k))
                continue;
            sum += (double)((at->end - at->start) * TICK) * 1e-9;
            count++;
        }
        int place = n++;
        for (; place && v[place - 1] > sum; place--)
            v[place] = v[place - 1];
        v[place] = sum;
    }
    *times = (double)count / n;
    *median = (v[(n - 1) / 2] + v[n / 2]) / 2 / *times;
    *low = fmin(v[0] / *times, *median * 0.975); /* fewer than six iterations */
    *high = fmax(v[n - 1] / *times, *median * 1.025);
}

static bool is_near(double is, double must)
{
    return fabs(is - must) <= 1e-6 * fabs(must);
}

static void check(const bz_compare_set *set, double by)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_CALL, BZ_EVENT_OP, BZ_EVENT_KERNEL};
    static const char *const NAMES[] = {"library calls", "operators", "kernels"};
    assert_string_equal(set->part[0].what, "iteration");
    assert_int_equal(set->part[0].compare.n, 2);
    for (int p = 0; p < set->n_parts; p++) {
        const bz_compare *c = &set->part[p].compare;
        int count[BZ_VERDICTS] = {0}, guessed = 0;
        double total = 0, weight = INFINITY;
        assert_true(c->only_a == 0 && c->only_b == 0 && set->part[p].n_only[0] == 0 && set->part[p].n_only[1] == 0);
        for (int i = 0; i < c->n; i++) {
            const bz_compare_row *row = &c->row[i];
            double times, low, median, high;
            for (size_t k = 1; k < sizeof KINDS / sizeof *KINDS; k++) {
                if (strcmp(set->part[p].what, NAMES[k]) != 0)
                    continue;
                expected_row(KINDS[k], row->what, &times, &low, &median, &high);
                if (!is_near(row->times, times) || !is_near(row->a.seconds, median) || !is_near(row->a.low, low) ||
                    !is_near(row->a.high, high))
                    fail_msg("%s: %g × %g (%g to %g), not %g × %g (%g to %g)", row->what, row->times, row->a.seconds,
                             row->a.low, row->a.high, times, median, low, high);
            }
            assert_true(is_near(row->b.seconds, by * row->a.seconds) && is_near(row->b.low, by * row->a.low) &&
                        is_near(row->b.high, by * row->a.high));
            bz_verdict must = row->a.seconds == row->b.seconds ? BZ_SAME
                              : row->b.low > row->a.high       ? BZ_SLOWER
                              : row->b.high < row->a.low       ? BZ_FASTER
                                                               : BZ_UNDECIDED;
            assert_int_equal(row->verdict, must);
            assert_true(fabs(row->b.seconds - row->a.seconds) * row->times <= weight * (1 + 1e-12));
            weight = fabs(row->b.seconds - row->a.seconds) * row->times;
            count[must]++;
            guessed += row->a.guessed || row->b.guessed;
            total += row->times * row->a.seconds;
        }
        assert_int_equal(c->guessed, guessed);
        for (int v = 0; v < BZ_VERDICTS; v++)
            assert_int_equal(c->count[v], count[v]);
        assert_true(is_near(c->total_a, total) && is_near(c->total_b, by * total));
    }
}

static void twice_as_long(void **state)
{
    (void)state;
    bz_error err;
    for (int round = 0; round < 8; round++) {
        bz_arena arena = {0};
        bz_compare_set set;
        make_recording();
        bz_trace *twice = scaled(r.trace, 2);
        assert_int_equal(bz_compare_profiles(r.trace, r.trace, &arena, &set, &err), 0);
        assert_int_equal(set.n_differences, 0);
        check(&set, 1);
        assert_int_equal(bz_compare_profiles(r.trace, twice, &arena, &set, &err), 0);
        assert_int_equal(set.n_differences, 1);
        assert_string_equal(set.difference[0].what, "gpu");
        assert_string_equal(set.difference[0].b, "another");
        check(&set, 2);
        bz_trace_free(twice);
        bz_trace_free(r.trace);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twice_as_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
