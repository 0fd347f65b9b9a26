/* Memory and loops of a replay: offsets on random lifetimes, every loop against its definition. */
#include "runtime/replay_open.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state_of_random = 1;

static unsigned draw(unsigned n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_random >> 33) % n;
}

/* What lives at once does not overlap; the peak holds all, and is near to the least: in the middle by less than a tenth, on
 * tangles that no network has by a third at most. */
static void test_lifetimes(void **unused)
{
    enum { N = 60 };
    bz_lifetime l[N];
    double worst = 1, sum = 0;
    (void)unused;
    for (int round = 0; round < 200; round++) {
        size_t least, end = 0;
        for (int i = 0; i < N; i++) {
            int first = (int)draw(N);
            l[i] = (bz_lifetime){64 * (1 + draw(100)), first, first + (int)draw(6), 0};
        }
        size_t peak = bz_lifetimes_place(l, N, &least);
        for (int i = 0; i < N; i++) {
            end = l[i].offset + l[i].bytes > end ? l[i].offset + l[i].bytes : end;
            for (int k = 0; k < i; k++) {
                bool meet = l[i].first <= l[k].last && l[k].first <= l[i].last;
                bool apart = l[i].offset + l[i].bytes <= l[k].offset || l[k].offset + l[k].bytes <= l[i].offset;
                assert_true(!meet || apart);
            }
        }
        assert_int_equal(end, peak);
        assert_true(peak >= least);
        worst = fmax(worst, (double)peak / (double)least);
        sum += (double)peak / (double)least;
    }
    assert_true(worst <= 1.34);
    assert_true(sum / 200 <= 1.1);
}

/* A chain needs no more than its two largest neighbours. */
static void test_chain(void **unused)
{
    bz_lifetime l[] = {{640, 0, 1, 0}, {128, 1, 2, 0}, {512, 2, 3, 0}, {64, 3, 4, 0}};
    size_t least;
    (void)unused;
    assert_int_equal(bz_lifetimes_place(l, 4, &least), 768);
    assert_int_equal(least, 768);
    assert_int_equal(bz_lifetimes_place(l, 0, &least), 0);
}

/* Whether action b certainly comes behind a: on the same stream, or by way of waiting. */
static bool behind[80][80];

static void find_behind(const bz_replay *r)
{
    for (int b = 0; b < r->n_actions; b++)
        for (int a = 0; a < b; a++) {
            const bz_action *x = &r->action[b];
            behind[a][b] = r->action[a].stream == x->stream;
            for (int k = 0; k < x->n_after; k++)
                behind[a][b] |= x->after[k] == a || behind[a][x->after[k]];
            for (int c = a + 1; c < b; c++)
                behind[a][b] |= behind[a][c] && r->action[c].stream == x->stream;
        }
}

static bool touches(const bz_replay *r, int action, int slot)
{
    const replay_loop *l = r->action[action].state;
    for (int i = 0; i < l->n; i++)
        if (l->slot[i] == slot)
            return true;
    return false;
}

/* On random streams every action comes behind those that made its operands, it waits for none in vain, and of two pieces
 * of memory that overlap all that touch the one come behind all that touch the other. */
static void test_streams(void **unused)
{
    enum { N = 80 };
    bz_action action[N];
    replay_loop loop[N];
    bz_lifetime slot[N + 1];
    (void)unused;
    for (int round = 0; round < 60; round++) {
        bz_replay r = {.action = action, .n_actions = N, .slot = slot, .n_slots = N + 1};
        r.n_streams = 1 + (int)draw(BZ_REPLAY_STREAMS);
        slot[N] = (bz_lifetime){256, 0, N, 0}; /* the input */
        for (int i = 0; i < N; i++) {
            loop[i] = (replay_loop){.n = 1 + (int)draw(3)};
            action[i] =
                (bz_action){.kind = BZ_ACTION_LOOP, .stream = (int)draw((unsigned)r.n_streams), .state = &loop[i]};
            slot[i] = (bz_lifetime){256 * (1 + draw(40)), i, i, 0};
            for (int k = 0; k < loop[i].n - 1; k++) {
                int from = i ? i - 1 - (int)draw(i < 9 ? (unsigned)i : 9) : N;
                loop[i].slot[k] = from;
                slot[from].last = slot[from].last > i ? slot[from].last : i;
            }
            loop[i].slot[loop[i].n - 1] = i;
        }
        replay_order(&r);
        bz_lifetimes_place(slot, N + 1, NULL);
        find_behind(&r);
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < loop[i].n - 1; k++)
                assert_true(loop[i].slot[k] == N || behind[loop[i].slot[k]][i]);
            for (int k = 0; k < action[i].n_after; k++) {
                assert_true(action[action[i].after[k]].marked);
                assert_int_not_equal(action[action[i].after[k]].stream, action[i].stream);
                for (int m = 0; m < k; m++)
                    assert_false(behind[action[i].after[k]][action[i].after[m]]);
            }
        }
        for (int a = 0; a < N; a++)
            for (int b = a + 1; b < N; b++) {
                if (slot[a].offset + slot[a].bytes <= slot[b].offset ||
                    slot[b].offset + slot[b].bytes <= slot[a].offset)
                    continue;
                for (int i = 0; i < N; i++)
                    for (int j = 0; j < N; j++)
                        assert_true(!touches(&r, i, a) || !touches(&r, j, b) || behind[i][j]);
            }
    }
}

static void run(const bz_replay_loop *l, void *a, bz_dtype ta, void *b, bz_dtype tb, void *y, bz_dtype ty,
                int64_t count)
{
    void *operand[] = {a, b, y};
    bz_dtype dtype[] = {ta, tb, ty};
    int64_t counts[] = {count, count, count};
    if (b)
        assert_int_equal(bz_loop_run(l, operand, dtype, counts, 3, 2), 0);
    else
        assert_int_equal(bz_loop_run(l, (void *[]){a, y}, (bz_dtype[]){ta, ty}, counts, 2, 2), 0);
}

static void test_copy(void **unused)
{
    float x[6] = {0, 1, 2, 3, 4, 5}, y[6];
    int64_t whole[6];
    uint16_t half[6];
    (void)unused;
    const bz_replay_loop transpose = {.kind = BZ_LOOP_COPY, .rank = 2, .dim = {3, 2}, .stride = {{1, 3}, {2, 1}}};
    run(&transpose, x, BZ_F32, NULL, BZ_F32, y, BZ_F32, 6);
    assert_memory_equal(y, ((float[]){0, 3, 1, 4, 2, 5}), sizeof y);
    const bz_replay_loop back = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {6}, .stride = {{-1}, {1}}, .from = 5};
    run(&back, x, BZ_F32, NULL, BZ_F32, whole, BZ_I64, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(whole[i], 5 - i);
    const bz_replay_loop cast = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {6}, .stride = {{1}, {1}}};
    run(&cast, x, BZ_F32, NULL, BZ_F32, half, BZ_BF16, 6);
    assert_int_equal(half[1], 0x3f80);
    x[0] = -1.75f;
    run(&cast, x, BZ_F32, NULL, BZ_F32, whole, BZ_I64, 6);
    assert_int_equal(whole[0], -1); /* towards zero */
}

static void test_index(void **unused)
{
    float x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y[8];
    int64_t index[] = {3, -4, 1, 9};
    (void)unused;
    const bz_replay_loop gather = {.kind = BZ_LOOP_GATHER,
                                   .rank = 2,
                                   .dim = {4, 2},
                                   .stride = {{0, 1}, {1, 0}},
                                   .length = 1,
                                   .extent = {4},
                                   .step = {2}};
    run(&gather, x, BZ_F32, index, BZ_I64, y, BZ_F32, 8);
    assert_memory_equal(y, ((float[]){6, 7, 0, 1, 2, 3, 0, 0}), sizeof y);
    uint8_t c[] = {1, 0};
    float one = 10;
    const bz_replay_loop where = {.kind = BZ_LOOP_SELECT, .rank = 2, .dim = {4, 2}, .stride = {{0, 1}, {2, 1}, {0, 0}}};
    assert_int_equal(bz_loop_run(&where, (void *[]){c, x, &one, y}, (bz_dtype[]){BZ_BOOL, BZ_F32, BZ_F32, BZ_F32},
                                 (int64_t[]){2, 8, 1, 8}, 4, 1),
                     0);
    assert_memory_equal(y, ((float[]){0, 10, 2, 10, 4, 10, 6, 10}), sizeof y);
}

/* Rows of two go to the places that pairs of indices name; one of them is counted from the end, one is outside. */
static void test_scatter(void **unused)
{
    float y[8] = {0}, updates[6] = {1, 2, 3, 4, 5, 6};
    int64_t index[6] = {0, 1, -1, 0, 2, 0};
    (void)unused;
    bz_replay_loop scatter = {.kind = BZ_LOOP_SCATTER,
                              .rank = 2,
                              .dim = {3, 2},
                              .stride = {{2, 0}, {2, 1}, {0, 1}},
                              .length = 2,
                              .extent = {2, 2},
                              .step = {4, 2}};
    run(&scatter, index, BZ_I64, updates, BZ_F32, y, BZ_F32, 8);
    assert_memory_equal(y, ((float[]){0, 0, 1, 2, 3, 4, 0, 0}), sizeof y);
    index[2] = 0, index[3] = 1; /* both to the same place */
    scatter.function = "add";
    run(&scatter, index, BZ_I64, updates, BZ_F32, y, BZ_F32, 8);
    assert_memory_equal(y, ((float[]){0, 0, 5, 8, 3, 4, 0, 0}), sizeof y);
}

/* The k best of a lane in the order of their numbers among equals, by sorting all of them. */
static void test_topk(void **unused)
{
    enum { MOST = 40, INNER = 19 };
    static double x[MOST * INNER];
    static int64_t y[MOST * INNER];
    (void)unused;
    for (int round = 0; round < 200; round++) {
        int n = 1 + (int)draw(MOST), k = 1 + (int)draw((unsigned)n), inner = round % 2 ? 1 : INNER;
        double sign = draw(2) ? 1 : -1;
        for (int i = 0; i < n * inner; i++)
            x[i] = draw(8);
        const bz_replay_loop loop = {
            .kind = BZ_LOOP_LANES, .function = "topk", .alpha = (float)sign, .rank = 4, .dim = {1, n, inner, k}};
        run(&loop, x, BZ_F64, NULL, BZ_F32, y, BZ_I64, k * inner);
        for (int j = 0; j < inner; j++)
            for (int i = 0; i < k; i++) {
                int64_t own = y[i * inner + j];
                int before = 0;
                for (int o = 0; o < n; o++) {
                    double d = sign * (x[o * inner + j] - x[own * inner + j]);
                    before += d > 0 || (d == 0 && o < own);
                }
                assert_int_equal(before, i);
            }
    }
}

static void test_lanes(void **unused)
{
    float x[6] = {1, 5, 3, 2, 5, -1}, y[6];
    int64_t at[3];
    (void)unused;
    bz_replay_loop l = {.kind = BZ_LOOP_LANES, .function = "argmax", .rank = 4, .dim = {2, 3, 1, 1}};
    run(&l, x, BZ_F32, NULL, BZ_F32, at, BZ_I64, 2);
    assert_memory_equal(at, ((int64_t[]){1, 1}), 2 * sizeof *at);
    l = (bz_replay_loop){.kind = BZ_LOOP_LANES, .function = "argmax", .alpha = 1, .rank = 4, .dim = {1, 2, 3, 1}};
    run(&l, x, BZ_F32, NULL, BZ_F32, at, BZ_I64, 3);
    assert_memory_equal(at, ((int64_t[]){1, 1, 0}), sizeof at);
    l = (bz_replay_loop){.kind = BZ_LOOP_LANES, .function = "cumsum", .rank = 4, .dim = {2, 3, 1, 3}};
    run(&l, x, BZ_F32, NULL, BZ_F32, y, BZ_F32, 6);
    assert_memory_equal(y, ((float[]){1, 6, 9, 2, 7, 6}), sizeof y);
    l.alpha = l.beta = 1;
    run(&l, x, BZ_F32, NULL, BZ_F32, y, BZ_F32, 6);
    assert_memory_equal(y, ((float[]){8, 3, 0, 4, -1, 0}), sizeof y);
    double taps[] = {0, 0.5, 1, 0.5, 0, 2, 2, 1}; /* 0.5 x0 + 0.5 x1, and 2 x0 + x2 */
    l = (bz_replay_loop){.kind = BZ_LOOP_LANES, .function = "taps", .rank = 4, .dim = {2, 3, 1, 2}, .length = 2};
    run(&l, x, BZ_F32, taps, BZ_F64, y, BZ_F32, 4);
    assert_memory_equal(y, ((float[]){3, 5, 3.5f, 3}), 4 * sizeof *y);
    l.function = "no such";
    assert_false(bz_loop_knows(&l));
}

static void test_functions(void **unused)
{
    float x[4] = {-1, 0.5f, 2, 3}, b[2] = {2, 4}, y[4];
    int64_t p[2] = {-7, 7}, q[1] = {2}, whole[2];
    uint8_t bits[4];
    (void)unused;
    const bz_replay_loop gelu = {.kind = BZ_LOOP_UNARY, .function = "erf", .rank = 1, .dim = {4}, .stride = {{1}}};
    run(&gelu, x, BZ_F32, NULL, BZ_F32, y, BZ_F32, 4);
    for (int i = 0; i < 4; i++)
        assert_float_equal(y[i], erff(x[i]), 1e-6);
    const bz_replay_loop sub = {
        .kind = BZ_LOOP_BINARY, .function = "sub", .rank = 2, .dim = {2, 2}, .stride = {{2, 1}, {0, 1}}};
    run(&sub, x, BZ_F32, b, BZ_F32, y, BZ_F32, 4);
    assert_memory_equal(y, ((float[]){-3, -3.5f, 0, -1}), sizeof y);
    const bz_replay_loop greater = {
        .kind = BZ_LOOP_BINARY, .function = "gt", .rank = 2, .dim = {2, 2}, .stride = {{2, 1}, {0, 1}}};
    run(&greater, x, BZ_F32, b, BZ_F32, bits, BZ_BOOL, 4);
    assert_memory_equal(bits, ((uint8_t[]){0, 0, 0, 0}), 4);
    const bz_replay_loop div = {.kind = BZ_LOOP_BINARY, .function = "div", .rank = 1, .dim = {2}, .stride = {{1}, {0}}};
    run(&div, p, BZ_I64, q, BZ_I64, whole, BZ_I64, 2);
    assert_int_equal(whole[0], -3);
    assert_int_equal(whole[1], 3);
    const bz_replay_loop none = {.kind = BZ_LOOP_UNARY, .function = "no such", .rank = 1, .dim = {4}};
    assert_false(bz_loop_knows(&none));
}

static void test_fill(void **unused)
{
    float y[7];
    int64_t whole[5], nine = 9;
    (void)unused;
    const bz_replay_loop value = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}, .value = -0.5};
    assert_int_equal(bz_loop_run(&value, (void *[]){y}, (bz_dtype[]){BZ_F32}, (int64_t[]){7}, 1, 2), 0);
    for (int i = 0; i < 7; i++)
        assert_true(y[i] == -0.5f);
    assert_int_equal(
        bz_loop_run(&value, (void *[]){&nine, whole}, (bz_dtype[]){BZ_I64, BZ_I64}, (int64_t[]){1, 5}, 2, 1), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(whole[i], 9);
}

/* A loop of random shape: what it should give, element by element. */
typedef struct example {
    bz_replay_loop l;
    bz_dtype dtype;
    int64_t count, size[3]; /* of the result, of the operands */
} example;

static float definition(const example *e, float *const *operand, int64_t i)
{
    int64_t at[3] = {e->l.from, 0, 0};
    for (int d = e->l.rank; d-- > 0; i /= e->l.dim[d])
        for (int k = 0; k < 3; k++)
            at[k] += i % e->l.dim[d] * e->l.stride[k][d];
    float a = operand[0][at[0]], b = operand[1] ? operand[1][at[1]] : 0;
    if (e->l.kind == BZ_LOOP_COPY)
        return a;
    if (e->l.kind == BZ_LOOP_SELECT)
        return a != 0 ? b : operand[2][at[2]];
    return !strcmp(e->l.function, "sub") ? a - b : !strcmp(e->l.function, "mul") ? a * b : a > b ? a : b;
}

/* Operands whole, or with dimensions over which they are one and the same; of a copy in another order. */
static example draw_example(void)
{
    static const char *const FUNCTIONS[] = {"sub", "mul", "max"};
    static const bz_loop_kind KINDS[] = {BZ_LOOP_COPY, BZ_LOOP_BINARY, BZ_LOOP_SELECT};
    static const bz_dtype TYPES[] = {BZ_F32, BZ_F32, BZ_BF16, BZ_I64};
    example e = {.l = {.kind = KINDS[draw(3)], .function = FUNCTIONS[draw(3)], .rank = 1 + (int)draw(4)},
                 .dtype = TYPES[draw(4)]};
    bool long_rows = draw(8) == 0;
    e.count = 1;
    for (int d = 0; d < e.l.rank; d++) {
        e.l.dim[d] = 1 + draw(d < e.l.rank - 1 && !long_rows ? 6 : 3);
        if (d == e.l.rank - 1)
            e.l.dim[d] = long_rows ? 20000 + draw(20000) : 1 + draw(40);
        e.count *= e.l.dim[d];
    }
    for (int k = 0; k < (e.l.kind == BZ_LOOP_SELECT ? 3 : e.l.kind == BZ_LOOP_BINARY ? 2 : 1); k++) {
        int64_t step = 1;
        unsigned turn = draw(2) ? draw((unsigned)e.l.rank) : 0;
        for (int i = e.l.rank; i-- > 0;) {
            int d = (i + (int)turn) % e.l.rank;
            e.l.stride[k][d] = draw(3) ? step : 0;
            step *= e.l.stride[k][d] ? e.l.dim[d] : 1;
        }
        e.size[k] = step;
    }
    return e;
}

static void test_shapes(void **unused)
{
    (void)unused;
    for (int round = 0; round < 400; round++) {
        example e = draw_example();
        float *value[3] = {NULL, NULL, NULL}, *y = calloc((size_t)e.count + 1, sizeof *y);
        void *operand[4];
        bz_dtype dtype[4];
        int64_t counts[4];
        int n = 0;
        for (; n < 3 && e.size[n]; n++) {
            dtype[n] = e.l.kind == BZ_LOOP_SELECT && !n ? BZ_BOOL : e.dtype;
            counts[n] = e.size[n];
            value[n] = calloc((size_t)e.size[n], sizeof **value);
            operand[n] = calloc((size_t)e.size[n], 8);
            for (int64_t i = 0; i < e.size[n]; i++)
                value[n][i] = (float)draw(dtype[n] == BZ_BOOL ? 2 : 10);
            bz_values_encode(dtype[n], value[n], operand[n], e.size[n]);
        }
        operand[n] = calloc((size_t)e.count, 8), dtype[n] = e.dtype, counts[n] = e.count;
        if (e.l.kind == BZ_LOOP_COPY) {
            int64_t step = 1;
            for (int d = e.l.rank; d-- > 0; step *= e.l.dim[d])
                e.l.stride[1][d] = step;
        }
        assert_int_equal(bz_loop_run(&e.l, operand, dtype, counts, n + 1, 1 + (int)draw(2)), 0);
        bz_values_decode(e.dtype, operand[n], y, e.count);
        for (int64_t i = 0; i < e.count; i++)
            assert_true(y[i] == definition(&e, value, i));
        for (int k = 0; k <= n; k++)
            free(operand[k]);
        for (int k = 0; k < 3; k++)
            free(value[k]);
        free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_chain), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_copy),      cmocka_unit_test(test_index), cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_topk),      cmocka_unit_test(test_lanes), cmocka_unit_test(test_functions),
        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
