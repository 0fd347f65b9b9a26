/* The cover against every choice there is, on small random graphs; and its promises on large ones. */
#include "graph/graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/resource.h>

enum { NODES = 12, GROUPS = 12 };

typedef struct {
    int n_nodes, n_groups;
    double seconds[NODES];
    int node[GROUPS][NODES];
    bz_cover_group group[GROUPS];
    bool taken[GROUPS];
} instance;

static uint64_t state_of_random = 1;

static unsigned draw(unsigned n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_random >> 33) % n;
}

/* Whole numbers add up without rounding. Some nodes cost nothing or are unpriced, some groups are
 * dearer than their nodes, some are unpriced, some are equal. */
static void make(instance *t)
{
    t->n_nodes = 1 + (int)draw(NODES);
    t->n_groups = (int)draw(GROUPS + 1);
    for (int i = 0; i < t->n_nodes; i++)
        t->seconds[i] = draw(8) ? (double)draw(20) : NAN;
    for (int g = 0; g < t->n_groups; g++) {
        int n = 0, from = (int)draw((unsigned)t->n_nodes), sparse = 1 + (int)draw(3);
        for (int i = from; i < t->n_nodes && n < 5; i++)
            if (n == 0 || !draw((unsigned)sparse))
                t->node[g][n++] = i;
        t->group[g] = (bz_cover_group){t->node[g], n, draw(10) ? (double)draw(30) : NAN};
    }
}

/* INFINITY where the choice is none: groups overlap, or one has no price. */
static double price_of(const instance *t, unsigned choice)
{
    bool covered[NODES] = {false};
    double sum = 0;
    for (int g = 0; g < t->n_groups; g++) {
        if (!(choice >> g & 1))
            continue;
        if (isnan(t->group[g].seconds))
            return INFINITY;
        sum += t->group[g].seconds;
        for (int i = 0; i < t->group[g].n; i++) {
            if (covered[t->node[g][i]])
                return INFINITY;
            covered[t->node[g][i]] = true;
        }
    }
    for (int i = 0; i < t->n_nodes; i++)
        sum += covered[i] || isnan(t->seconds[i]) ? 0 : t->seconds[i];
    return sum;
}

static void every_choice(void **state)
{
    (void)state;
    bz_arena arena = {0};
    for (int run = 0; run < 20000; run++) {
        instance t;
        unsigned chosen = 0;
        double best = INFINITY;
        make(&t);
        double found = bz_cover(t.n_nodes, t.seconds, t.n_groups, t.group, t.taken, &arena);
        for (int g = 0; g < t.n_groups; g++)
            chosen |= (unsigned)t.taken[g] << g;
        for (unsigned choice = 0; choice < 1u << t.n_groups; choice++) {
            double p = price_of(&t, choice);
            best = p < best ? p : best;
        }
        assert_true(found == best);
        assert_true(price_of(&t, chosen) == best);
        assert_true(found <= price_of(&t, 0));
    }
    bz_arena_free(&arena);
}

/* A chain where each pair of neighbours is a group: one tangle of any length, few open sets, and each takes no more than what a group reaches. */
static void long_chain(void **state)
{
    (void)state;
    enum { N = 100001 };
    static double seconds[N];
    static int node[N][2];
    static bz_cover_group group[N];
    static bool taken[N];
    bz_arena arena = {0};
    for (int i = 0; i < N; i++) {
        seconds[i] = 2;
        node[i][0] = i, node[i][1] = i + 1;
        group[i] = (bz_cover_group){node[i], 2, 3};
    }
    assert_true(bz_cover(N, seconds, N - 1, group, taken, &arena) == 2 * N - (N - 1) / 2);
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    assert_true(used.ru_maxrss < 1 << 20); /* kilobytes; a bit for each node of the chain in each set would take 4 GB */
    bz_arena_free(&arena);
}

/* Groups that all reach far ahead open more sets than are followed: still a legal choice, no dearer
 * than none, and the same one again. */
static void hard_tangle(void **state)
{
    (void)state;
    enum { N = 60, M = 200 };
    double seconds[N];
    static int node[M][3];
    static bz_cover_group group[M];
    static bool taken[M], again[M];
    bool covered[N] = {false};
    bz_arena arena = {0};
    for (int i = 0; i < N; i++)
        seconds[i] = 10;
    for (int g = 0; g < M; g++) {
        node[g][0] = (int)draw(N / 3);
        node[g][1] = N / 3 + (int)draw(N / 3);
        node[g][2] = 2 * N / 3 + (int)draw(N / 3);
        group[g] = (bz_cover_group){node[g], 3, 10 + draw(25)};
    }
    double found = bz_cover(N, seconds, M, group, taken, &arena), sum = 10 * N;
    assert_true(found < 10 * N);
    assert_true(bz_cover(N, seconds, M, group, again, &arena) == found);
    assert_memory_equal(taken, again, sizeof taken);
    for (int g = 0; g < M; g++)
        for (int i = 0; taken[g] && i < 3; i++) {
            assert_false(covered[node[g][i]]);
            covered[node[g][i]] = true;
            sum += (i ? 0 : group[g].seconds) - 10;
        }
    assert_true(sum == found);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice),
        cmocka_unit_test(long_chain),
        cmocka_unit_test(hard_tangle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
