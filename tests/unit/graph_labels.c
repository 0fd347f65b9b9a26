/* The choice of labels against every choice there is, on small random graphs; on a chain; and with too many tensors. */
#include "graph/graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 7, MOST = 400 };

typedef struct {
    int n, in[MOST][2];
    int laid[MOST][BZ_LABELS];
    unsigned plain[MOST][2];
    double seconds[MOST][BZ_LABELS];
    bz_label_step step[MOST];
    bz_label_value tensor[MOST + 1];
    bool turned; /* tensor number 0 comes from outside, step i makes i + 1; turned: the other way around, from n to 0 */
    bool made[MOST + 1];
    int taken[MOST];
} graph;

static uint64_t state_of_random = 1;

static unsigned draw(unsigned n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_random >> 33) % n;
}

static int number(const graph *g, int k)
{
    return g->turned ? g->n - k : k;
}

/* A tensor that is there before step i. */
static int earlier(const graph *g, int i)
{
    int k = (int)draw((unsigned)i + 1);
    while (!g->made[number(g, k)])
        k = (int)draw((unsigned)i + 1);
    return number(g, k);
}

/* Some steps have no choice, and some make nothing. */
static void make_graph(graph *g, int n, bool chain)
{
    memset(g, 0, sizeof *g);
    g->n = n;
    for (int t = 0; t <= n; t++)
        for (int a = 0; a < BZ_LABELS; a++)
            for (int b = 0; b < BZ_LABELS; b++)
                g->tensor[t].convert[a][b] = a == b ? 0 : 1 + draw(8);
    g->turned = draw(2);
    g->tensor[0].outside = g->tensor[n].outside = g->made[number(g, 0)] = true;
    for (int i = 0; i < n; i++) {
        int options = chain || draw(9) ? 1 + (int)draw(BZ_LABELS) : 0;
        bool nothing = !chain && !draw(9) && i < n - 1;
        for (int o = 0; o < options; o++)
            g->laid[i][o] = ((o + i) % BZ_LABELS), g->seconds[i][o] = 1 + draw(12);
        for (int k = 0; k < 2; k++)
            g->plain[i][k] = draw(3) ? 0 : draw(1U << BZ_LABELS);
        g->in[i][0] = chain ? number(g, i) : earlier(g, i);
        g->in[i][1] = earlier(g, i);
        g->made[number(g, i + 1)] = !nothing;
        bool two = !chain && g->in[i][1] != g->in[i][0];
        g->step[i] = (bz_label_step){.in = g->in[i],
                                     .n_in = 1 + two,
                                     .out = nothing ? -1 : number(g, i + 1),
                                     .n = options,
                                     .label = options ? g->laid[i] : NULL,
                                     .seconds = options ? g->seconds[i] : NULL,
                                     .plain = g->plain[i]};
    }
}

/* What a choice costs: each tensor is converted once into each layout that somebody wants, from the cheapest there is. */
static double cost_of(const graph *g, const int *taken)
{
    unsigned have[MOST + 1] = {0};
    double sum = 0;
    have[number(g, 0)] = 1U << 0;
    for (int i = 0; i < g->n; i++) {
        int laid = g->laid[i][taken[i]], out = g->step[i].out; /* without a choice label 0, for nothing */
        sum += g->seconds[i][taken[i]];
        for (int k = 0; k < g->step[i].n_in; k++) {
            int t = g->in[i][k], reads = g->plain[i][k] & 1U << laid ? 0 : laid;
            double best = INFINITY;
            if (have[t] & 1U << reads)
                continue;
            for (int from = 0; from < BZ_LABELS; from++)
                best = have[t] & 1U << from ? fmin(best, g->tensor[t].convert[from][reads]) : best;
            sum += best;
            have[t] |= 1U << reads;
        }
        if (out < 0)
            continue;
        have[out] = 1U << laid;
        if (g->tensor[out].outside && laid != 0) {
            sum += g->tensor[out].convert[laid][0];
            have[out] |= 1U << 0;
        }
    }
    return sum;
}

static double try_all(const graph *g, int *taken, int at)
{
    double best = INFINITY;
    if (at == g->n)
        return cost_of(g, taken);
    for (taken[at] = 0; taken[at] < g->step[at].n || !taken[at]; taken[at]++)
        best = fmin(best, try_all(g, taken, at + 1));
    return best;
}

static graph one;

static void test_against_all(void **unused)
{
    (void)unused;
    for (int round = 0; round < 400; round++) {
        int all[STEPS], states;
        bool beam;
        make_graph(&one, 1 + (int)draw(STEPS), round % 2);
        double found = bz_labels_choose(one.step, one.n, one.tensor, one.n + 1, one.taken, &states, &beam);
        assert_false(beam);
        assert_float_equal(found, cost_of(&one, one.taken), 1e-9);
        assert_float_equal(found, try_all(&one, all, 0), 1e-9);
    }
}

/* A chain has as many states as layouts. */
static void test_chain(void **unused)
{
    int states;
    bool beam;
    (void)unused;
    make_graph(&one, MOST, true);
    double found = bz_labels_choose(one.step, one.n, one.tensor, one.n + 1, one.taken, &states, &beam);
    assert_float_equal(found, cost_of(&one, one.taken), 1e-6);
    assert_true(states <= BZ_LABELS);
}

/* More open tensors than can be followed: still what it says, and not dearer than the first options. */
static void test_many_open(void **unused)
{
    static int none[MOST];
    int states;
    bool beam;
    (void)unused;
    for (int round = 0; round < 5; round++) {
        make_graph(&one, 150, false);
        double found = bz_labels_choose(one.step, one.n, one.tensor, one.n + 1, one.taken, &states, &beam);
        assert_true(beam && states <= BZ_LABELS_WIDTH * BZ_LABELS);
        assert_float_equal(found, cost_of(&one, one.taken), 1e-6);
        assert_true(found <= cost_of(&one, none));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all), cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_many_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
