/* Library calls of several threads at the same time: of clients, each of which runs passes of its own, and of threads that share a pass. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS = 6, PASSES = 20, MOST = 6 };

typedef struct {
    bz_trace *t;
    uint32_t lane[MOST];
    int64_t now[MOST];
    uint32_t seed;
} program;

static uint32_t chance(program *p, uint32_t below)
{
    p->seed = p->seed * 1664525 + 1013904223;
    return (p->seed >> 16) % below;
}

static program begin(uint32_t seed)
{
    program p = {.t = bz_trace_new(), .seed = seed};
    uint32_t source = bz_trace_source(p.t, "a", "capture");
    p.t->source[source].events = 1;
    for (int i = 0; i < MOST; i++) {
        p.lane[i] = bz_trace_thread(p.t, source, 1, 1 + i);
        p.now[i] = 1000000 + 700 * i;
    }
    return p;
}

/* Takes a millisecond, give or take half of it. */
static void call(program *p, int thread, int number)
{
    char detail[80];
    snprintf(detail, sizeof detail, "transa=T transb=N m=%d n=64 k=128 ldc=16", 128 * (1 + number));
    int64_t end = p->now[thread] + 500000 + chance(p, 1000000);
    size_t i = bz_trace_add(p->t, BZ_EVENT_CALL, p->now[thread], end, bz_trace_text(p->t, "sgemm"), p->lane[thread]);
    bz_events *e = &p->t->event[BZ_EVENT_CALL];
    e->library[i] = BZ_LIBRARY_BLAS;
    e->flags[i] = BZ_CALL_EXECUTES;
    e->detail[i] = bz_trace_text(p->t, detail);
    p->now[thread] = end + 2000 + chance(p, 30000);
}

static bool says(const bz_trace *t, const char *text)
{
    for (uint32_t k = 0; k < t->n_coverage; k++)
        if (strstr(bz_string(t, t->coverage[k].text), text))
            return true;
    return false;
}

/* Calls of other clients begin in an iteration and outlast it: they make it no longer, and no more of it busy than there is. */
static uint32_t finish(program *p, bool *told)
{
    bz_error err;
    assert_int_equal(bz_trace_finish(p->t, NULL, &err), 0);
    uint32_t n = p->t->n_iterations;
    for (uint32_t i = 0; i < n; i++) {
        bz_iteration_stats s;
        bz_iteration_measure(p->t, i, &s);
        assert_true(s.gap >= 0 && s.library <= s.latency);
        assert_true(!i || p->t->iteration[i].start >= p->t->iteration[i - 1].end);
    }
    *told = says(p->t, "threads that call libraries at the same time");
    bz_trace_free(p->t);
    return n;
}

static void passes_of_one_client_are_the_iterations(void **state)
{
    (void)state;
    for (int clients = 1; clients <= MOST; clients++)
        for (uint32_t seed = 1; seed <= 10; seed++) {
            program p = begin(seed);
            bool told;
            for (int k = 0; k < clients; k++)
                for (int i = 0; i < PASSES * CALLS; i++)
                    call(&p, k, i % CALLS);
            assert_int_equal(finish(&p, &told), PASSES);
            assert_int_equal(told, clients > 1);
        }
}

/* Whichever thread is free does the next layer: none has a pass of its own. */
static void threads_that_share_a_pass_stay_together(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 10; seed++) {
        program p = begin(seed);
        bool told;
        for (int i = 0; i < PASSES; i++) {
            for (int k = 0; k < CALLS; k++)
                call(&p, p.now[0] <= p.now[1] ? 0 : 1, k);
            p.now[0] = p.now[1] = (p.now[0] > p.now[1] ? p.now[0] : p.now[1]) + 1000; /* the end of a pass */
        }
        finish(&p, &told);
        assert_false(told);
    }
}

/* A second thread goes on when the first one is done, and it waits: both are of one iteration, which is as long as both. */
static void a_way_back_on_another_thread_belongs_to_the_iteration(void **state)
{
    (void)state;
    program p = begin(1);
    bool told;
    for (int i = 0; i < PASSES; i++)
        for (int way = 0; way < 2; way++) {
            for (int k = 0; k < CALLS; k++)
                call(&p, way, CALLS * way + k);
            p.now[!way] = p.now[way];
        }
    assert_int_equal(finish(&p, &told), PASSES);
    assert_false(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_of_one_client_are_the_iterations),
        cmocka_unit_test(threads_that_share_a_pass_stay_together),
        cmocka_unit_test(a_way_back_on_another_thread_belongs_to_the_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
