/* Memory that the system hands out anew: how much of the iterations' time it takes, by counts that a capture left. */
#include "profile/reader.h"
#include "profile/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MS = 1000000, PERIOD = 10 * MS };

/* So many iterations of 10 ms, marked, the first of them warm-up, as it takes three times as long. */
static bz_trace *iterations(int n)
{
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made", "made"), lane = bz_trace_thread(t, source, 1, 1);
    for (int i = 0; i < n; i++)
        bz_trace_add(t, BZ_EVENT_RANGE, i ? (int64_t)i * PERIOD : -2 * PERIOD, (int64_t)(i + 1) * PERIOD,
                     bz_trace_text(t, "benanza_iteration"), lane);
    t->private->page_cost = 2e-6;
    return t;
}

static double share_of(bz_trace *t, double *pages)
{
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    double share = bz_trace_anew(t, pages);
    bz_trace_free(t);
    return share;
}

static void pages_of_steady_iterations_count(void **state)
{
    double pages;
    (void)state;
    bz_trace *t = iterations(20);
    for (
        int i = -20; i < 300;
        i++) /* a look each millisecond: 900 pages a millisecond before the steady iterations and behind them, 100 in them */
        bz_trace_taken(t, 7, (int64_t)i * MS,
                       i < 10     ? 900 * (i + 20)
                       : i <= 200 ? 27000 + 100 * (i - 10)
                                  : 46000 + 900 * (i - 200));
    for (int i = 0; i < 300; i++) /* another process takes less */
        bz_trace_taken(t, 8, (int64_t)i * MS, 50 * i);
    double share = share_of(t, &pages);
    assert_true(fabs(pages - 100000) < 1 && fabs(share - 0.2) < 1e-6);
}

static void what_is_not_known_is_none(void **state)
{
    double pages = 1;
    (void)state;
    assert_true(share_of(iterations(20), &pages) == 0 && pages == 0); /* nobody counted */
    bz_trace *t = iterations(20);
    bz_trace_taken(t, 7, 50 * MS, 1000); /* one look tells no rate */
    assert_true(share_of(t, &pages) == 0);
    t = iterations(20);
    for (int i = 10; i < 200; i++) /* the system handed out nothing; our own file took some */
        bz_trace_taken(t, 7, (int64_t)i * MS, 1000 - i / 10);
    assert_true(share_of(t, &pages) == 0);
    t = iterations(20);
    t->private->page_cost = 0; /* what a page takes was not measured */
    for (int i = 10; i < 200; i++)
        bz_trace_taken(t, 7, (int64_t)i * MS, 100 * i);
    assert_true(share_of(t, &pages) == 0);
    static const char *const FACTS[] = {"", "many", "-5 pages in each second of the iterations, 3 us a page",
                                        "1e300 pages in each second of the iterations, 1e300 us a page",
                                        "nan pages in each second of the iterations, 1 us a page"};
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        t = iterations(20);
        bz_trace_fact(t, "fresh memory", FACTS[i]);
        assert_true(share_of(t, &pages) == 0 && pages == 0);
    }
}

/* A page takes from a hundred nanoseconds to some microseconds; on a machine that stands still nobody knows. */
static void a_page_has_a_cost(void **state)
{
    (void)state;
    double cost = bz_page_cost();
    assert_true(cost > 1e-8 && cost < 1e-2);
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(pages_of_steady_iterations_count),
                                              cmocka_unit_test(what_is_not_known_is_none),
                                              cmocka_unit_test(a_page_has_a_cost)};
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
