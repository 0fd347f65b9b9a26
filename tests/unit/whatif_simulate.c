/* Published and computed vectors of the simulation, by hand-made graphs. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

/* A thread of launches and a wait, a stream of as many kernels; times in units of 1000 ns. */
static void make(bz_flow *f, int n, const int64_t *launch, const int64_t *gap, const int64_t *kernel, int64_t wait)
{
    *f = (bz_flow){.main = 0};
    uint32_t host = bz_flow_add_lane(f, "cpu", false, false), stream = bz_flow_add_lane(f, "gpu", true, false),
             last = BZ_NONE;
    for (int i = 0; i < n; i++) {
        uint32_t l = bz_flow_add(f, BZ_TASK_HOST, "launch", host, 1000 * launch[i], 1000 * gap[i]);
        last = bz_flow_add(f, BZ_TASK_KERNEL, "kernel", stream, 1000 * kernel[i], 0);
        bz_flow_depend(f, l, last, BZ_DEPENDS_LAUNCH, 1000 * launch[i]);
    }
    uint32_t s = bz_flow_add(f, BZ_TASK_SYNC, "sync", host, 1000 * wait, 0);
    bz_flow_depend(f, last, s, BZ_DEPENDS_SYNC, 0);
}

static void check(const bz_flow *f, const int64_t *starts, int64_t total)
{
    bz_arena arena = {0};
    bz_simulated s;
    bz_error err;
    int n = 0;
    if (bz_flow_simulate(f, &arena, &s, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->task[i].kind != BZ_TASK_HOST)
            assert_int_equal(s.start[i], starts[n++]);
    assert_int_equal(s.total, total);
    bz_flow_split split;
    bz_flow_split_make(f, &s, &split);
    assert_int_equal(split.host + split.device + split.both + split.neither, total);
    bz_critical critical;
    bz_flow_critical(f, &s, &arena, &critical);
    assert_int_equal(critical.time, total);
    bz_arena_free(&arena);
}

static void first_vector(void **state)
{
    (void)state;
    bz_flow f;
    make(&f, 2, (int64_t[]){2, 2}, (int64_t[]){1, 1}, (int64_t[]){10, 5}, 1);
    check(&f, (int64_t[]){2000, 12000, 17000}, 18000);
    f.literal = true;
    check(&f, (int64_t[]){3000, 13000, 18000}, 19000);
    bz_flow_set(&f, 1, 10000 / 3);
    bz_flow_set(&f, 3, 5000 / 2);
    check(&f, (int64_t[]){3000, 6333, 8833}, 9833);
    f.literal = false;
    check(&f, (int64_t[]){2000, 5333, 7833}, 8833);
    bz_flow_free(&f);
}

static void second_vector(void **state)
{
    (void)state;
    bz_flow f;
    make(&f, 3, (int64_t[]){5, 5, 5}, (int64_t[]){2, 1, 0}, (int64_t[]){20, 10, 3}, 2);
    check(&f, (int64_t[]){5000, 25000, 35000, 38000}, 40000);
    f.literal = true;
    check(&f, (int64_t[]){7000, 27000, 37000, 40000}, 42000);
    bz_flow_set(&f, 1, 20000 / 3);
    bz_flow_set(&f, 3, 5000);
    bz_flow_set(&f, 5, 1500);
    check(&f, (int64_t[]){7000, 13666, 18666, 20166}, 22166);
    for (uint32_t i = 1; i < 6; i += 2)
        bz_flow_set(&f, i, 100);
    check(&f, (int64_t[]){7000, 13000, 18000, 18100}, 20100);
    bz_flow_free(&f);
}

/* Of several that wait for a channel the greatest priority goes first, else the one that came first. */
static void channels(void **state)
{
    (void)state;
    bz_flow f = {.main = BZ_NONE};
    uint32_t host = bz_flow_add_lane(&f, "host", false, false), link = bz_flow_add_lane(&f, "link", false, true),
             push[3];
    for (int i = 0; i < 3; i++) {
        uint32_t t = bz_flow_add(&f, BZ_TASK_CALL, "layer", host, 100, 0);
        push[i] = bz_flow_add(&f, BZ_TASK_COMMUNICATION, "push", link, 1000, 0);
        bz_flow_depend(&f, t, push[i], BZ_DEPENDS_COMMUNICATION, 0);
    }
    bz_arena arena = {0};
    bz_simulated s;
    bz_error err;
    assert_int_equal(bz_flow_simulate(&f, &arena, &s, &err), 0);
    assert_int_equal(s.start[push[0]], 100);
    assert_int_equal(s.start[push[1]], 1100);
    assert_int_equal(s.start[push[2]], 2100);
    f.task[push[2]].priority = 1;
    assert_int_equal(bz_flow_simulate(&f, &arena, &s, &err), 0);
    assert_int_equal(s.start[push[2]], 1100);
    assert_int_equal(s.start[push[1]], 2100);
    assert_int_equal(s.because[push[1]], push[2]);
    bz_arena_free(&arena);
    bz_flow_free(&f);
}

static void circles(void **state)
{
    (void)state;
    bz_flow f;
    bz_arena arena = {0};
    bz_simulated s;
    bz_error err;
    make(&f, 2, (int64_t[]){2, 2}, (int64_t[]){1, 1}, (int64_t[]){10, 5}, 1);
    bz_flow_depend(&f, 4, 0, BZ_DEPENDS_SYNC, 0);
    assert_int_equal(bz_flow_simulate(&f, &arena, &s, &err), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    assert_non_null(strstr(err.text, "circle"));
    bz_arena_free(&arena);
    bz_flow_free(&f);
}

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void make_random(bz_flow *f, uint32_t n)
{
    *f = (bz_flow){.main = 0};
    for (uint32_t l = 0; l < 4; l++)
        bz_flow_add_lane(f, "lane", l > 1, false);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lane = draw(4);
        bz_flow_add(f, lane > 1 ? BZ_TASK_KERNEL : BZ_TASK_HOST, "task", lane, draw(1000), draw(50));
        for (uint32_t k = draw(3); i && k; k--)
            bz_flow_depend(f, draw(i), i, BZ_DEPENDS_STREAM, draw(20));
    }
}

static int64_t time_of(const bz_flow *f)
{
    bz_arena arena = {0};
    bz_simulated s;
    bz_error err;
    if (bz_flow_simulate(f, &arena, &s, &err))
        fail_msg("%s", err.text);
    for (uint32_t e = 0; e < f->n_edges; e++) { /* nobody starts before what he waits for has ended */
        const bz_flow_edge *edge = &f->edge[e];
        if (!f->task[edge->from].removed && !f->task[edge->to].removed)
            assert_true(s.start[edge->to] >= s.start[edge->from] + f->task[edge->from].duration + edge->lag);
    }
    int64_t total = s.total;
    bz_flow_split split;
    bz_flow_split_make(f, &s, &split);
    assert_int_equal(split.host + split.device + split.both + split.neither, total);
    bz_critical critical;
    bz_flow_critical(f, &s, &arena, &critical);
    assert_int_equal(critical.time, total);
    bz_arena_free(&arena);
    return total;
}

/* Longest path by relaxing all edges until nothing moves. */
static int64_t brute(const bz_flow *f)
{
    int64_t *start = bz_zeroed(f->n + 1, sizeof *start), total = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < f->n; i++) {
            const bz_task *t = &f->task[i];
            int64_t behind = start[i] + t->duration + t->gap;
            if (!t->removed && t->next != BZ_NONE && behind > start[t->next]) {
                start[t->next] = behind;
                moved = true;
            }
        }
        for (uint32_t e = 0; e < f->n_edges; e++) {
            const bz_flow_edge *edge = &f->edge[e];
            int64_t end = start[edge->from] + f->task[edge->from].duration + edge->lag;
            if (!f->task[edge->from].removed && !f->task[edge->to].removed && end > start[edge->to]) {
                start[edge->to] = end;
                moved = true;
            }
        }
    }
    for (uint32_t i = 0; i < f->n; i++)
        if (!f->task[i].removed && start[i] + f->task[i].duration > total)
            total = start[i] + f->task[i].duration;
    free(start);
    return total;
}

/* Tasks that come to one channel at random times, of random priorities: whenever it is free it takes, of those that have come, the one of the
 * greatest priority, of these the one that came first, and of these the one of the smallest number. */
static void busy_channels(void **state)
{
    (void)state;
    enum { MOST = 150 };
    for (seed = 1; seed < 60; seed++) {
        bz_flow f = {.main = BZ_NONE};
        bool done[MOST] = {false};
        uint32_t n = 2 + draw(MOST - 1), link = bz_flow_add_lane(&f, "link", false, true), to[MOST];
        int64_t came[MOST], free_at = 0;
        for (uint32_t i = 0; i < n; i++) {
            came[i] = draw(n * 10) * 10;
            uint32_t from =
                bz_flow_add(&f, BZ_TASK_CALL, "work", bz_flow_add_lane(&f, "host", false, false), came[i], 0);
            to[i] = bz_flow_add(&f, BZ_TASK_COMMUNICATION, "push", link, draw(200), draw(20));
            f.task[to[i]].priority = (int32_t)draw(3);
            bz_flow_depend(&f, from, to[i], BZ_DEPENDS_COMMUNICATION, 0);
        }
        bz_arena arena = {0};
        bz_simulated s;
        bz_error err;
        assert_int_equal(bz_flow_simulate(&f, &arena, &s, &err), 0);
        for (uint32_t k = 0; k < n; k++) {
            int64_t now = INT64_MAX;
            uint32_t best = BZ_NONE;
            for (uint32_t i = 0; i < n; i++)
                now = !done[i] && came[i] < now ? came[i] : now;
            now = now < free_at ? free_at : now;
            for (uint32_t i = 0; i < n; i++)
                if (!done[i] && came[i] <= now &&
                    (best == BZ_NONE || f.task[to[i]].priority > f.task[to[best]].priority ||
                     (f.task[to[i]].priority == f.task[to[best]].priority && came[i] < came[best])))
                    best = i;
            assert_int_equal(s.start[to[best]], now);
            done[best] = true;
            free_at = now + f.task[to[best]].duration + f.task[to[best]].gap;
        }
        bz_arena_free(&arena);
        bz_flow_free(&f);
    }
}

static void properties(void **state)
{
    (void)state;
    for (seed = 1; seed < 400000000; seed += 1000003) {
        bz_flow f, g = {0};
        make_random(&f, 2 + draw(60));
        int64_t before = time_of(&f);
        assert_int_equal(before, brute(&f));
        bz_flow_copy(&f, &g);
        for (uint32_t i = 0; i < g.n; i++)
            bz_flow_scale(&g, i, 1);
        assert_int_equal(time_of(&g), before);
        uint32_t at = draw(g.n), inserted = bz_flow_insert(&g, BZ_TASK_HOST, "more", at, BZ_BEHIND, 500, 10);
        assert_true(time_of(&g) >= before);
        bz_flow_remove(&g, inserted, false);
        assert_int_equal(time_of(&g), before);
        for (int k = 0; k < 5; k++) { /* less work and fewer tasks are never slower where the order is fixed */
            uint32_t task = draw(g.n);
            int64_t now = time_of(&g);
            if (g.task[task].removed)
                continue;
            if (k & 1)
                bz_flow_scale(&g, task, 0.5);
            else
                bz_flow_remove(&g, task, draw(2));
            int64_t then = time_of(&g);
            assert_true(then <= now);
            assert_int_equal(then, brute(&g));
        }
        bz_flow_free(&g);
        bz_flow_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_vector), cmocka_unit_test(second_vector), cmocka_unit_test(channels),
        cmocka_unit_test(circles),      cmocka_unit_test(properties),    cmocka_unit_test(busy_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
