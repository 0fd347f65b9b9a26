/* What holds for every graph and every cost: held against random ones, and brute force on small ones. */
#include "graph/graph.h"

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
    return dice(6) ? 1 + dice(1000000000) / (1 + dice(1000)) : 0;
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
            sum += g.seconds[path.node[k]];
            for (int p = g.first[path.node[k]]; k && p < g.first[path.node[k] + 1]; p++)
                follows |= g.pred[p] == path.node[k - 1];
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
        g.seconds[i] = floor(g.seconds[i] * dice(1000) / 1000);
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
    assert_int_equal(c.nodes, 3);
    assert_true(c.sequential == 9 && c.parallel == 5);
    c = bz_schedule_module(&dag, SECONDS, &(bz_module){.begin = 0, .end = 6}); /* the inputs are the fork */
    assert_int_equal(c.nodes, 6);
    assert_true(c.sequential == 21 && c.parallel == 11);
}

enum { RESOURCES = 3, LANES = 3 };

typedef struct work {
    graph g;
    bz_tasks tasks;
    bz_resource resources[RESOURCES];
    int resource[MOST], lane[MOST];
    double priority[MOST];
} work;

/* Anything: some tasks bound, some on no resource, some resources in order, any policy. Few different costs, so that ends tie. */
static void random_work(work *w, int n)
{
    random_graph(&w->g, n, dice(50));
    w->tasks = (bz_tasks){.dag = &w->g.dag,
                          .seconds = w->g.seconds,
                          .resource = w->resource,
                          .lane = w->lane,
                          .resources = w->resources,
                          .n_resources = 1 + (int)dice(RESOURCES),
                          .policy = (bz_policy)dice(3),
                          .priority = w->priority};
    for (int r = 0; r < w->tasks.n_resources; r++)
        w->resources[r] = (bz_resource){1 + (int)dice(LANES), !dice(3)};
    for (int i = 0; i < n; i++) {
        int r = w->resource[i] = dice(8) ? (int)dice((uint32_t)w->tasks.n_resources) : -1;
        bool bound = r >= 0 && (w->resources[r].in_order ? w->resources[r].lanes > 1 : dice(2));
        w->lane[i] = bound ? (int)dice((uint32_t)w->resources[r].lanes) : -1;
        w->g.seconds[i] = dice(5);
        w->priority[i] = dice(4);
    }
}

static bool in_order(const work *w, int i)
{
    return w->resource[i] >= 0 && w->resources[w->resource[i]].in_order;
}

/* Must i end before j starts, by an edge or by the order of their lane? */
static bool precedes(const work *w, int i, int j)
{
    bool edge = i < j && in_order(w, i) && w->resource[i] == w->resource[j] &&
                (w->lane[i] > 0 ? w->lane[i] : 0) == (w->lane[j] > 0 ? w->lane[j] : 0);
    for (int p = w->g.first[j]; p < w->g.first[j + 1]; p++)
        edge |= w->g.pred[p] == i;
    return edge;
}

static double way_to_end(const work *w, int i)
{
    double most = 0;
    for (int j = i + 1; j < w->g.dag.n; j++)
        if (precedes(w, i, j))
            most = fmax(most, way_to_end(w, j));
    return most + w->g.seconds[i];
}

typedef struct plan {
    double start[MOST], end[MOST], ready[MOST];
    int lane[MOST];
    bool started[MOST];
} plan;

/* The lane that the task would get now; -1: none is free. */
static int free_lane(const work *w, const plan *p, int i, double now)
{
    int r = w->resource[i], best = -1, bound = w->lane[i] < 0 && in_order(w, i) ? 0 : w->lane[i];
    double most = -2;
    for (int s = 0; s < w->resources[r].lanes; s++) {
        int last = -1;
        for (int j = 0; j < w->g.dag.n; j++)
            if (p->started[j] && w->resource[j] == r && p->lane[j] == s && (last < 0 || p->end[j] > p->end[last]))
                last = j;
        bool edge = false;
        for (int k = w->g.first[i]; k < w->g.first[i + 1] && last >= 0; k++)
            edge |= w->g.pred[k] == last;
        double value = edge ? p->end[last] : -1;
        if ((last < 0 || p->end[last] <= now) && (bound < 0 || bound == s) && value > most)
            most = value, best = s;
    }
    return best;
}

/* What starts now: first what needs no lane, then by the policy. */
static int next_to_start(const work *w, plan *p, double now)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < w->g.dag.n; i++) {
        bool can = !p->started[i], lane = w->resource[i] >= 0 && w->g.seconds[i] > 0;
        for (int j = 0; j < w->g.dag.n; j++)
            can &= !precedes(w, j, i) || (p->started[j] && p->end[j] <= now);
        if (!can)
            continue;
        p->ready[i] = p->ready[i] < 0 ? now : p->ready[i];
        double key = !lane                                 ? INFINITY
                     : w->tasks.policy == BZ_LONGEST_FIRST ? way_to_end(w, i)
                     : w->tasks.policy == BZ_READY_FIRST   ? -p->ready[i]
                                                           : w->priority[i];
        if ((!lane || free_lane(w, p, i, now) >= 0) && (best < 0 || key > most))
            best = i, most = key;
    }
    return best;
}

/* The definition, moment by moment. */
static double literal(const work *w, plan *p)
{
    double now = 0;
    *p = (plan){0};
    for (int i = 0; i < w->g.dag.n; i++)
        p->ready[i] = -1;
    for (;;) {
        int i = next_to_start(w, p, now);
        if (i >= 0) {
            p->lane[i] = w->resource[i] >= 0 && w->g.seconds[i] > 0 ? free_lane(w, p, i, now) : -1;
            p->started[i] = true;
            p->start[i] = now;
            p->end[i] = now + w->g.seconds[i];
            continue;
        }
        double next = INFINITY;
        for (int j = 0; j < w->g.dag.n; j++)
            if (p->started[j] && p->end[j] > now)
                next = fmin(next, p->end[j]);
        if (!isfinite(next))
            return now;
        now = next;
    }
}

static void test_literal(void **unused)
{
    (void)unused;
    for (int round = 0; round < 4000; round++) {
        work w;
        plan p;
        double start[MOST], most = 0, sum = 0;
        int lane[MOST], n = 1 + (int)dice(14);
        random_work(&w, n);
        double latency = bz_schedule_list(&w.tasks, start, lane);
        assert_true(latency == literal(&w, &p));
        assert_true(latency == bz_schedule_list(&w.tasks, NULL, NULL));
        for (int i = 0; i < n; i++) {
            assert_true(start[i] == p.start[i] && lane[i] == p.lane[i]);
            most = fmax(most, way_to_end(&w, i));
            sum += w.g.seconds[i];
        }
        assert_true(most <= latency && latency <= sum);
    }
}

/* The best of all orders in which lists can be, which is the best schedule that there is on equal lanes. */
static double best_order(work *w, int n, int at, int order[])
{
    double best = INFINITY;
    if (at == n)
        return bz_schedule_list(&w->tasks, NULL, NULL);
    for (int k = at; k < n; k++) {
        int swap = order[at];
        order[at] = order[k], order[k] = swap;
        w->priority[order[at]] = n - at;
        best = fmin(best, best_order(w, n, at + 1, order));
        order[k] = order[at], order[at] = swap;
    }
    return best;
}

/* Longest way first is at most 2 - 1/k times the best (Graham). */
static void test_orders(void **unused)
{
    (void)unused;
    for (int round = 0; round < 150; round++) {
        work w;
        int order[] = {0, 1, 2, 3, 4, 5}, n = 1 + (int)dice(6);
        random_work(&w, n);
        w.tasks.resource = w.tasks.lane = NULL;
        w.resources[0] = (bz_resource){.lanes = 1 + (int)dice(LANES)};
        w.tasks.policy = BZ_LONGEST_FIRST;
        double list = bz_schedule_list(&w.tasks, NULL, NULL);
        w.tasks.policy = BZ_GIVEN_FIRST;
        double best = best_order(&w, n, 0, order), all = bz_schedule_sequential(w.g.seconds, n);
        assert_true(longest(&w.g) <= best && best <= list && list <= all);
        assert_true(all <= best * w.resources[0].lanes);
        assert_true(list <= best * (2 - 1.0 / w.resources[0].lanes));
    }
}

/* A host that launches, a stream in order, a link without an end: 0 → 1 → 2 on the host, each launches one on the stream. */
static void test_stream(void **unused)
{
    (void)unused;
    static const int FIRST[] = {0, 0, 1, 2, 3, 4, 5, 6}, PRED[] = {0, 0, 2, 2, 4, 5};
    static const double SECONDS[] = {1, 10, 1, 3, 1, 2, 4};
    static const int RESOURCE[] = {0, 1, 0, 1, 0, 1, -1}, LANE[] = {0, 1, 0, 1, 0, 1, -1};
    static const bz_resource RESOURCES_OF[] = {{1, true}, {2, true}};
    bz_dag dag = {.n = 7, .first = FIRST, .pred = PRED};
    bz_tasks tasks = {.dag = &dag,
                      .seconds = SECONDS,
                      .resource = RESOURCE,
                      .lane = LANE,
                      .resources = RESOURCES_OF,
                      .n_resources = 2};
    double start[7];
    int lane[7];
    assert_true(bz_schedule_list(&tasks, start, lane) == 20);
    static const double STARTS[] = {0, 1, 1, 11, 2, 14, 16};
    for (int i = 0; i < 7; i++)
        assert_true(start[i] == STARTS[i] && lane[i] == LANE[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),        cmocka_unit_test(test_order),    cmocka_unit_test(test_chain),
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_monotone), cmocka_unit_test(test_module),
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_anomaly),  cmocka_unit_test(test_literal),
        cmocka_unit_test(test_orders),      cmocka_unit_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
