/* What holds for every graph and every cost: held against random ones, and brute force on small ones. */
#include "bound/bound.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40, EDGES = MOST * MOST };

typedef struct graph {
    bz_dag dag;
    int first[MOST + 1], pred[EDGES];
    double seconds[MOST];
} graph;

static uint64_t state_of_dice = 88172645463325252u;

static uint32_t dice(uint32_t n)
{
    state_of_dice ^= state_of_dice << 13;
    state_of_dice ^= state_of_dice >> 7;
    state_of_dice ^= state_of_dice << 17;
    return (uint32_t)(state_of_dice >> 33) % n;
}

static double random_cost(void)
{
    return dice(6) ? bz_tick(1e-9 * (1 + dice(1000000000)) / (1 + dice(1000))) : 0;
}

/* Sparse, dense, or a chain. */
static void random_graph(graph *g, int n, uint32_t density)
{
    int edges = 0;
    for (int i = 0; i < n; i++) {
        g->first[i] = edges;
        for (int p = 0; p < i; p++)
            if (density == 100 ? p == i - 1 : dice(100) < density)
                g->pred[edges++] = p;
        g->seconds[i] = random_cost();
    }
    g->first[n] = edges;
    g->dag = (bz_dag){.n = n, .first = g->first, .pred = g->pred};
}

static double longest(const graph *g)
{
    bz_arena arena = {0};
    bz_path path;
    bz_schedule_parallel(&g->dag, g->seconds, &arena, &path);
    bz_arena_free(&arena);
    return path.seconds;
}

/* Every way that ends in layer i. */
static double brute(const graph *g, int i)
{
    double most = 0;
    for (int p = g->first[i]; p < g->first[i + 1]; p++)
        most = fmax(most, brute(g, g->pred[p]));
    return most + g->seconds[i];
}

static void test_path(void **state)
{
    (void)state;
    for (int t = 0; t < 2000; t++) {
        graph g;
        bz_arena arena = {0};
        bz_path path;
        random_graph(&g, 1 + (int)dice(12), 5 + dice(60));
        bz_schedule_parallel(&g.dag, g.seconds, &arena, &path);
        double most = 0, sum = 0;
        for (int i = 0; i < g.dag.n; i++)
            most = fmax(most, brute(&g, i));
        assert_true(path.seconds == most);
        for (int k = 0; k < path.n; k++) { /* the layers told are a way, and cost what is told */
            bool follows = !k;
            sum += g.seconds[path.layer[k]];
            for (int p = g.first[path.layer[k]]; k && p < g.first[path.layer[k] + 1]; p++)
                follows |= g.pred[p] == path.layer[k - 1];
            assert_true(follows);
        }
        assert_true(sum == most);
        bz_arena_free(&arena);
    }
}

static void test_order(void **state)
{
    (void)state;
    for (int t = 0; t < 3000; t++) {
        graph g;
        bz_streams s;
        random_graph(&g, 1 + (int)dice(MOST), dice(40));
        double all = bz_schedule_sequential(g.seconds, g.dag.n), path = longest(&g);
        bz_schedule_streams(&g.dag, g.seconds, &s);
        assert_true(s.n >= 1 && s.at[0].k == 1 && s.at[0].seconds == all);
        for (int i = 0; i < s.n; i++) {
            assert_true(path <= s.at[i].seconds && s.at[i].seconds <= all);
            assert_true(!i || (s.at[i].seconds <= s.at[i - 1].seconds && s.at[i].k == 2 * s.at[i - 1].k));
        }
        /* as many streams as layers: nobody waits but for operands */
        assert_true(s.at[s.n - 1].k < g.dag.n || s.at[s.n - 1].seconds == path);
    }
}

static void test_chain(void **state)
{
    (void)state;
    for (int t = 0; t < 500; t++) {
        graph g;
        bz_streams s;
        random_graph(&g, 1 + (int)dice(MOST), 100);
        bz_schedule_streams(&g.dag, g.seconds, &s);
        assert_int_equal(s.n, 1);
        assert_true(longest(&g) == bz_schedule_sequential(g.seconds, g.dag.n));
        assert_true(longest(&g) == s.at[0].seconds);
    }
}

/* Independent layers of which the optimum is known: 3 3 2 2 2 on two streams takes 6, the list takes 7. */
static void test_streams(void **state)
{
    (void)state;
    static const int FIRST[8] = {0};
    static const double SECONDS[5] = {3, 3, 2, 2, 2};
    bz_dag dag = {.n = 5, .first = FIRST};
    bz_streams s;
    bz_schedule_streams(&dag, SECONDS, &s);
    assert_int_equal(s.n, 4);
    assert_true(s.at[0].seconds == 12 && s.at[1].seconds == 7 && s.at[2].seconds == 4 && s.at[3].seconds == 3);
}

/* A graph, found by searching, that takes a list longer on eight streams (21) than on four (20). */
static void test_anomaly(void **state)
{
    (void)state;
    static const int FIRST[] = {0, 0, 0, 0,  1,  1,  2,  3,  3,  3,  3,  3,  3,  4,  5,
                                8, 8, 9, 10, 10, 12, 14, 17, 20, 22, 23, 24, 28, 31, 32};
    static const int PRED[] = {0,  0, 1, 10, 10, 3,  10, 12, 9,  15, 4,  5,  8, 18, 7, 8,
                               19, 8, 9, 15, 14, 21, 4,  23, 15, 18, 20, 24, 3, 7,  9, 6};
    static const double SECONDS[] = {2, 4, 2, 5, 1, 3, 2, 4, 1, 4, 2, 3, 5, 3, 4,
                                     5, 1, 1, 3, 1, 1, 5, 3, 4, 1, 4, 2, 2, 2};
    bz_dag dag = {.n = 29, .first = FIRST, .pred = PRED};
    bz_streams s;
    bz_schedule_streams(&dag, SECONDS, &s);
    assert_int_equal(s.n, 5);
    assert_true(s.at[0].seconds == 80 && s.at[1].seconds == 40 && s.at[2].seconds == 20);
    assert_true(s.at[3].seconds == 20 && s.at[4].seconds == 19);
}

/* Renumbers the layers, keeping the order topological: whoever is ready may come next. */
static void permute(const graph *g, graph *out)
{
    int at[MOST], n = 0, edges = 0;
    bool placed[MOST] = {false};
    while (n < g->dag.n) {
        int i = (int)dice((uint32_t)g->dag.n);
        bool ready = !placed[i];
        for (int p = g->first[i]; p < g->first[i + 1]; p++)
            ready &= placed[g->pred[p]];
        if (!ready)
            continue;
        out->first[n] = edges;
        for (int p = g->first[i]; p < g->first[i + 1]; p++)
            out->pred[edges++] = at[g->pred[p]];
        out->seconds[n] = g->seconds[i];
        placed[i] = true;
        at[i] = n++;
    }
    out->first[n] = edges;
    out->dag = (bz_dag){.n = n, .first = out->first, .pred = out->pred};
}

static void test_permutation(void **state)
{
    (void)state;
    for (int t = 0; t < 1000; t++) {
        graph g, h;
        bz_streams a, b;
        random_graph(&g, 1 + (int)dice(MOST), 3 + dice(30));
        permute(&g, &h);
        assert_true(bz_schedule_sequential(g.seconds, g.dag.n) == bz_schedule_sequential(h.seconds, h.dag.n));
        assert_true(longest(&g) == longest(&h));
        bz_schedule_streams(&g.dag, g.seconds, &a);
        bz_schedule_streams(&h.dag, h.seconds, &b);
        assert_int_equal(a.n, b.n);
        for (int i = 0; i < a.n; i++)
            assert_true(a.at[i].seconds == b.at[i].seconds);
    }
}

static void test_monotone(void **state)
{
    (void)state;
    for (int t = 0; t < 1000; t++) {
        graph g;
        random_graph(&g, 1 + (int)dice(MOST), 3 + dice(30));
        double all = bz_schedule_sequential(g.seconds, g.dag.n), path = longest(&g);
        int i = (int)dice((uint32_t)g.dag.n);
        g.seconds[i] = bz_tick(g.seconds[i] * dice(1000) / 1000);
        assert_true(bz_schedule_sequential(g.seconds, g.dag.n) <= all);
        assert_true(longest(&g) <= path);
    }
}

/* A fork at 0, two ways 1-2 and 3, join at 4; layer 5 stands apart. */
static void test_module(void **state)
{
    (void)state;
    static const int FIRST[] = {0, 0, 1, 2, 3, 5, 5}, PRED[] = {0, 1, 0, 2, 3};
    static const double SECONDS[] = {1, 2, 3, 4, 5, 6};
    bz_dag dag = {.n = 6, .first = FIRST, .pred = PRED};
    bz_module_cost c = bz_schedule_module(&dag, SECONDS, &(bz_module){.begin = 1, .end = 4});
    assert_int_equal(c.layers, 3);
    assert_true(c.sequential == 9 && c.parallel == 5);
    c = bz_schedule_module(&dag, SECONDS, &(bz_module){.begin = 0, .end = 6}); /* the inputs are the fork */
    assert_int_equal(c.layers, 6);
    assert_true(c.sequential == 21 && c.parallel == 11);
}

static void test_ticks(void **state)
{
    (void)state;
    for (int t = 0; t < 10000; t++) {
        double x = 1e-9 * dice(2000000000), y = bz_tick(x);
        assert_true(fabs(x - y) <= ldexp(1, -45) && y == bz_tick(y));
    }
    assert_true(isnan(bz_tick(NAN)) && bz_tick(0) == 0);
}

/* The schedule that has the latency: predecessors have ended, a stream runs one layer at a time. */
static void test_list(void **unused)
{
    (void)unused;
    for (int round = 0; round < 200; round++) {
        graph g;
        double start[MOST];
        int stream[MOST], k = 1 + round % 8;
        random_graph(&g, 1 + (int)dice(MOST), dice(40));
        double latency = bz_schedule_list(&g.dag, g.seconds, k, start, stream), end = 0;
        for (int i = 0; i < g.dag.n; i++) {
            end = fmax(end, start[i] + g.seconds[i]);
            assert_true(stream[i] < k && (stream[i] >= 0) == (g.seconds[i] > 0));
            for (int p = g.dag.first[i]; p < g.dag.first[i + 1]; p++)
                assert_true(start[g.dag.pred[p]] + g.seconds[g.dag.pred[p]] <= start[i]);
            for (int j = 0; j < i; j++)
                assert_true(stream[i] < 0 || stream[i] != stream[j] || start[i] + g.seconds[i] <= start[j] ||
                            start[j] + g.seconds[j] <= start[i]);
        }
        assert_true(latency == end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),        cmocka_unit_test(test_order),    cmocka_unit_test(test_chain),
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_monotone), cmocka_unit_test(test_module),
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_ticks),    cmocka_unit_test(test_anomaly),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
