/* Order, successors and modules against their definitions, on random small graphs. */
#include "graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 12 };

typedef struct graph {
    int n, first[MOST + 1], pred[MOST * MOST];
    bool edge[MOST + 1][MOST + 1]; /* from, to; node n is the end, where all lead that nobody reads */
} graph;

static uint64_t state_of_dice = 88172645463325252u;

static unsigned dice(unsigned n)
{
    state_of_dice = state_of_dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_dice >> 33) % n;
}

/* ordered: edges lead from smaller numbers to greater ones */
static void random_graph(graph *g, bool ordered)
{
    int edges = 0;
    unsigned density = 5 + dice(50);
    *g = (graph){.n = 1 + (int)dice(MOST)};
    for (int i = 0; i < g->n; i++) {
        for (int p = 0; p < (ordered ? i : g->n); p++)
            if (dice(100) < (ordered ? density : density / 4)) {
                g->edge[p][i] = true;
                g->pred[edges++] = p;
            }
        g->first[i + 1] = edges;
    }
    for (int i = 0; i < g->n; i++) {
        bool read = false;
        for (int j = 0; j < g->n; j++)
            read |= g->edge[i][j];
        g->edge[i][g->n] = !read;
    }
}

/* Does a way lead from a to b that is not by `without`? */
static bool leads(const graph *g, int a, int b, int without)
{
    bool seen[MOST + 1] = {false};
    int stack[MOST + 1], n = 0;
    stack[n++] = a;
    while (n) {
        int i = stack[--n];
        for (int j = 0; j <= g->n && i < g->n; j++)
            if (g->edge[i][j] && j != without && !seen[j])
                seen[j] = true, stack[n++] = j;
    }
    return seen[b];
}

static void test_order(void **state)
{
    (void)state;
    int circles = 0;
    for (int round = 0; round < 5000; round++) {
        graph g;
        int order[MOST], at[MOST], n_seen = 0;
        random_graph(&g, round % 2);
        int circle = bz_dag_order(g.n, g.first, g.pred, order);
        bool any = false;
        for (int i = 0; i < g.n; i++)
            any |= leads(&g, i, i, -1);
        assert_true(any == (circle >= 0));
        circles += any;
        if (any) {
            assert_true(leads(&g, circle, circle, -1));
            continue;
        }
        for (int k = 0; k < g.n; k++) {
            assert_in_range(order[k], 0, g.n - 1);
            at[order[k]] = k;
            n_seen |= 1 << order[k];
            assert_true(!(round % 2) || order[k] == k);
        }
        assert_int_equal(n_seen, (1 << g.n) - 1);
        for (int i = 0; i < g.n; i++)
            for (int p = g.first[i]; p < g.first[i + 1]; p++)
                assert_true(at[g.pred[p]] < at[i]);
    }
    assert_true(circles > 500 && circles < 4500);
}

static void test_successors(void **state)
{
    (void)state;
    for (int round = 0; round < 1000; round++) {
        graph g;
        bz_arena arena = {0};
        random_graph(&g, true);
        bz_dag dag = {.n = g.n, .first = g.first, .pred = g.pred};
        bz_edges next = bz_dag_successors(&dag, &arena);
        for (int i = 0, e = 0; i < g.n; i++) {
            assert_int_equal(next.first[i], e);
            for (int j = 0; j < g.n; j++)
                if (g.edge[i][j])
                    assert_int_equal(next.to[e++], j);
            assert_int_equal(next.first[i + 1], e);
        }
        bz_arena_free(&arena);
    }
}

/* Work on the longest way from behind the fork to node i, itself included; 0: no way leads there. */
static int depth(const graph *g, const unsigned char *role, int fork, int i)
{
    int most = 0;
    bool behind = fork >= 0 && g->edge[fork][i], first = true;
    for (int p = 0; p < i; p++) {
        if (!g->edge[p][i])
            continue;
        first = false;
        int d = p > fork && role[p] != BZ_NODE_AHEAD ? depth(g, role, fork, p) : 0;
        most = d > most ? d : most;
    }
    behind |= most > 0 || (fork < 0 && first);
    return behind ? (most ? most : 1) + (role[i] == BZ_NODE_WORK) : 0;
}

/* Does it stand behind the fork; behind none (-1): it waits for nothing, and does not run ahead? */
static bool begins(const graph *g, const unsigned char *role, int fork, int i)
{
    return fork < 0 ? g->first[i] == g->first[i + 1] && role[i] != BZ_NODE_AHEAD : g->edge[fork][i];
}

/* Does every way from the fork (-1: from all that waits for nothing) to the end pass x? */
static bool passes(const graph *g, const unsigned char *role, int fork, int x)
{
    bool all = true;
    for (int i = 0; i < g->n; i++)
        if (fork < 0 ? begins(g, role, fork, i) : i == fork)
            all &= i == x || !leads(g, i, g->n, x);
    return all;
}

/* What runs ahead waits for nothing but what runs ahead, too. */
static void random_roles(const graph *g, unsigned char *role)
{
    unsigned ahead = dice(4);
    for (int i = 0; i < g->n; i++) {
        bool can = dice(4) < ahead;
        for (int p = g->first[i]; p < g->first[i + 1]; p++)
            can &= role[g->pred[p]] == BZ_NODE_AHEAD;
        role[i] = can ? BZ_NODE_AHEAD : dice(5) ? BZ_NODE_WORK : BZ_NODE_WAY;
    }
}

/* A module's join is the first node that all ways from its fork pass, and its width counts work at one depth. */
static void test_modules(void **state)
{
    (void)state;
    int found = 0;
    for (int round = 0; round < 5000; round++) {
        graph g;
        unsigned char role[MOST];
        bz_arena arena = {0};
        bool joined[MOST + 1] = {false};
        random_graph(&g, true);
        random_roles(&g, role);
        bz_dag dag = {.n = g.n, .first = g.first, .pred = g.pred};
        bz_dag_find_modules(&dag, role, &arena);
        int m = 0;
        for (int fork = -1; fork < g.n; fork++) {
            int ways = 0, join = g.n, width = 0, at_depth[MOST + 2] = {0};
            for (int j = 0; j < g.n; j++)
                ways += begins(&g, role, fork, j);
            for (int x = g.n - 1; x > fork; x--)
                join = passes(&g, role, fork, x) ? x : join;
            for (int i = fork + 1; i < join; i++) {
                int d = depth(&g, role, fork, i);
                if (d && role[i] == BZ_NODE_WORK && ++at_depth[d - 1] > width)
                    width = at_depth[d - 1];
            }
            if (ways < 2 || width < 2 || joined[join])
                continue;
            joined[join] = true;
            found++;
            assert_true(m < dag.n_modules);
            assert_int_equal(dag.modules[m].begin, fork + 1);
            assert_int_equal(dag.modules[m].end, join);
            assert_int_equal(dag.modules[m++].width, width);
        }
        assert_int_equal(m, dag.n_modules);
        bz_arena_free(&arena);
    }
    assert_true(found > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_successors),
        cmocka_unit_test(test_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
