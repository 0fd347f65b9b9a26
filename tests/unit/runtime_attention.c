/* Attention by its definition in one go is what a product, a mask, a softmax and another product make of the same
 * values, each by its own definition. */
#include "runtime/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A problem with its values; those that are given go in, the others are as they always are. */
typedef struct {
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS];
    int n;
} subject;

static void set_up(subject *s, const char *text)
{
    bz_error err;
    *s = (subject){0};
    if (bz_problem_parse(text, &s->p, &err))
        fail_msg("%s: %s", text, err.text);
    s->n = bz_problem_operands(&s->p, s->operand);
    for (int i = 0; i < s->n; i++) {
        s->value[i] = malloc((size_t)s->operand[i].count * sizeof(float));
        assert_non_null(s->value[i]);
        bz_values_fill(&s->p, &s->operand[i], i, s->value[i]);
    }
}

static void tear_down(subject *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->value[i]);
}

/* The result, in the place of its operand's values. */
static const float *compute(subject *s)
{
    const bz_operand *y = &s->operand[s->n - 1];
    bz_reference r = bz_reference_of(&s->p, s->n, s->operand, (const float *const *)s->value);
    assert_true(bz_reference_exists(&s->p));
    for (int64_t i = 0; i < y->count; i++)
        s->value[s->n - 1][i] = (float)bz_reference_at(&r, i).value;
    bz_reference_free(&r);
    return s->value[s->n - 1];
}

enum { BATCH = 2, HEADS = 6, KV = 2, SIZE = 16, WIDTH = 3 };

/* Keys of every head that queries have, turned: [BATCH, HEADS, SIZE, keys]. */
static void turn_keys(const float *k, int keys, float *out)
{
    for (int h = 0; h < BATCH * HEADS; h++)
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < keys; j++) {
                int own = h / HEADS * KV + h % HEADS / (HEADS / KV);
                out[(h * SIZE + i) * keys + j] = k[(own * keys + j) * SIZE + i];
            }
}

static void spread_values(const float *v, int keys, float *out)
{
    for (int h = 0; h < BATCH * HEADS; h++) {
        int own = h / HEADS * KV + h % HEADS / (HEADS / KV);
        memcpy(out + h * keys * WIDTH, v + own * keys * WIDTH, (size_t)(keys * WIDTH) * sizeof *v);
    }
}

/* `row` and `keys` of the mask: 1 where it is broadcast; it has one head for all. `window`: keys that a query sees, 0: all. */
static void compare_window(int rows, int keys, const char *mask, bool causal, int window)
{
    char text[200];
    subject whole, scores, rest, last;
    snprintf(text, sizeof text, "attention q=2x6x%dx16 k=2x2x%dx16 v=2x2x%dx3%s causal=%d window=%d dtype=f32", rows,
             keys, keys, mask, causal, window);
    set_up(&whole, text);
    snprintf(text, sizeof text, "matmul a=2x6x%dx16 b=2x6x16x%d post=linear:0.25:0 dtype=f32", rows, keys);
    set_up(&scores, text);
    snprintf(text, sizeof text, "softmax x=2x6x%dx%d axis=3 dtype=f32", rows, keys);
    set_up(&rest, text);
    snprintf(text, sizeof text, "matmul a=2x6x%dx%d b=2x6x%dx3 dtype=f32", rows, keys, keys);
    set_up(&last, text);
    memcpy(scores.value[0], whole.value[0], (size_t)whole.operand[0].count * sizeof(float));
    turn_keys(whole.value[1], keys, scores.value[1]);
    const float *s = compute(&scores), *m = *mask ? whole.value[3] : NULL;
    const int64_t *d = whole.p.attention.mask;
    for (int h = 0; h < BATCH * HEADS; h++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < keys; j++) {
                int64_t b = m && d[0] > 1 ? h / HEADS : 0, r = m && d[2] > 1 ? i : 0, at = (h * rows + i) * keys + j;
                rest.value[0][at] = s[at] + (m ? m[(b * d[2] + r) * d[3] + j] : 0);
                int own = i + keys - rows; /* queries stand at the end of the keys */
                if ((causal && j > own) || (window && j <= own - window))
                    rest.value[0][at] = -INFINITY;
            }
    memcpy(last.value[0], compute(&rest), (size_t)rest.operand[0].count * sizeof(float));
    spread_values(whole.value[2], keys, last.value[1]);
    const float *expected = compute(&last), *found = compute(&whole);
    assert_int_equal(whole.operand[whole.n - 1].count, last.operand[last.n - 1].count);
    for (int64_t i = 0; i < last.operand[last.n - 1].count; i++)
        if (!(fabs((double)found[i] - (double)expected[i]) <= 1e-5))
            fail_msg("%d rows, %d keys,%s: element %d is %g, not %g", rows, keys, mask, (int)i, (double)found[i],
                     (double)expected[i]);
    tear_down(&whole);
    tear_down(&scores);
    tear_down(&rest);
    tear_down(&last);
}

static void compare(int rows, int keys, const char *mask, bool causal)
{
    compare_window(rows, keys, mask, causal, 0);
}

static void test_composed(void **unused)
{
    (void)unused;
    compare(5, 7, "", false);
    compare(1, 9, "", false);
    compare(5, 5, "", true);
    compare(5, 7, " mask=2x1x5x7", false);
    compare(5, 7, " mask=1x1x1x7", false);
    compare(6, 6, " mask=2x1x1x6", true);
    compare(3, 8, "", true);
    compare(1, 8, "", true);
    for (int window = 1; window < 7; window++) {
        compare_window(7, 7, window % 2 ? "" : " mask=2x1x7x7", true, window);
        compare_window(window % 3 + 1, 7, "", true, window);
    }
}

/* Both problems make the same result of the same values. */
static void expect_same(subject *one, subject *other)
{
    const float *a = compute(one), *b = compute(other);
    assert_int_equal(one->operand[one->n - 1].count, other->operand[other->n - 1].count);
    for (int64_t i = 0; i < one->operand[one->n - 1].count; i++)
        assert_true(fabs((double)a[i] - (double)b[i]) <= 1e-6);
    tear_down(one);
    tear_down(other);
}

/* Sequences one behind the other are tokens that a mask hides from those of others. */
static void test_lengths(void **unused)
{
    static const int SEQUENCE[9] = {0, 0, 0, 1, 2, 2, 2, 2, 2};
    (void)unused;
    for (int causal = 0; causal < 2; causal++) {
        subject ragged, masked;
        set_up(&ragged, causal ? "attention q=1x4x9x8 k=1x2x9x8 v=1x2x9x3 causal=1 lengths=3x1x5 dtype=f32"
                               : "attention q=1x4x9x8 k=1x2x9x8 v=1x2x9x3 lengths=3x1x5 dtype=f32");
        set_up(&masked, causal ? "attention q=1x4x9x8 k=1x2x9x8 v=1x2x9x3 mask=1x1x9x9 causal=1 dtype=f32"
                               : "attention q=1x4x9x8 k=1x2x9x8 v=1x2x9x3 mask=1x1x9x9 dtype=f32");
        assert_true(bz_problem_flops(&ragged.p) == 4 * (causal ? 6 + 1 + 15 : 9 + 1 + 25) * (2 * (8 + 3) + 5));
        for (int i = 0; i < 81; i++)
            masked.value[3][i] = SEQUENCE[i / 9] == SEQUENCE[i % 9] ? 0 : -INFINITY;
        expect_same(&ragged, &masked);
    }
}

/* A sink is one key more, of no value, whose score a mask tells: its product is 0. */
static void test_sink(void **unused)
{
    (void)unused;
    subject sunk, wide;
    set_up(&sunk, "attention q=1x3x4x8 k=1x1x6x8 v=1x1x6x2 sink=1 dtype=f32");
    set_up(&wide, "attention q=1x3x4x8 k=1x1x7x8 v=1x1x7x2 mask=1x3x1x7 dtype=f32");
    sunk.value[3][2] = 50; /* larger than any score */
    memcpy(wide.value[0], sunk.value[0], 3 * 4 * 8 * sizeof(float));
    for (int i = 0; i < 2; i++) {
        int width = i ? 2 : 8;
        memset(wide.value[i + 1], 0, (size_t)(7 * width) * sizeof(float));
        memcpy(wide.value[i + 1], sunk.value[i + 1], (size_t)(6 * width) * sizeof(float));
    }
    for (int i = 0; i < 21; i++)
        wide.value[3][i] = i % 7 == 6 ? sunk.value[3][i / 7] : 0;
    expect_same(&sunk, &wide);
}

/* What can be told without computing. */
static void test_obvious(void **unused)
{
    (void)unused;
    subject s;
    set_up(&s, "attention q=1x1x4x8 k=1x1x4x8 v=1x1x4x2 causal=1 dtype=f32");
    memset(s.value[0], 0,
           (size_t)s.operand[0].count * sizeof(float)); /* all scores are equal: means of the values seen */
    for (int i = 0; i < 8; i++)
        s.value[2][i] = (float)(i % 2 ? 1 : i / 2);
    const float *y = compute(&s);
    for (int i = 0; i < 4; i++) {
        assert_float_equal(y[2 * i], (float)i / 2, 1e-6);
        assert_float_equal(y[2 * i + 1], 1, 1e-6);
    }
    tear_down(&s);
    /* a key that the mask prefers is the only one that counts */
    set_up(&s, "attention q=1x2x1x8 k=1x1x3x8 v=1x1x3x1 mask=1x2x1x3 dtype=f32");
    for (int i = 0; i < 6; i++)
        s.value[3][i] = i == 1 || i == 5 ? 0 : -1e6F;
    y = compute(&s);
    assert_float_equal(y[0], s.value[2][1], 1e-6);
    assert_float_equal(y[1], s.value[2][2], 1e-6);
    tear_down(&s);
}

/* Capped, all scores are at most the cap: of two values, that whose key is nearer counts e^(2 cap) times as much at most. A high cap
 * changes nothing. */
static void test_capped(void **unused)
{
    (void)unused;
    subject plain, high, low;
    set_up(&plain, "attention q=2x4x3x8 k=2x2x7x8 v=2x2x7x5 causal=1 dtype=f32");
    set_up(&high, "attention q=2x4x3x8 k=2x2x7x8 v=2x2x7x5 causal=1 softcap=30000 dtype=f32");
    const float *a = compute(&plain), *b = compute(&high);
    for (int64_t i = 0; i < plain.operand[plain.n - 1].count; i++)
        assert_true(fabs((double)a[i] - (double)b[i]) < 1e-5);
    tear_down(&plain);
    tear_down(&high);
    set_up(&low, "attention q=1x1x1x1 k=1x1x2x1 v=1x1x2x1 softcap=2 dtype=f32");
    low.value[0][0] = 3, low.value[1][0] = 1, low.value[1][1] = -4, low.value[2][0] = 0, low.value[2][1] = 1;
    double one = exp(2 * tanh(1.5)), other = exp(2 * tanh(-6.0));
    assert_true(fabs((double)compute(&low)[0] - other / (one + other)) < 1e-6);
    assert_true(bz_problem_flops(&low.p) == 2 * (2 * 2 + 8));
    tear_down(&low);
}

static void test_cost(void **unused)
{
    (void)unused;
    bz_problem p;
    bz_error err;
    bz_operand list[BZ_PROBLEM_OPERANDS];
    assert_int_equal(
        bz_problem_parse("attention q=2x6x10x16 k=2x2x20x16 v=2x2x20x3 mask=1x1x10x20 dtype=f16", &p, &err), 0);
    assert_int_equal(bz_problem_operands(&p, list), 5);
    assert_int_equal(list[4].count, 2 * 6 * 10 * 3);
    assert_true(bz_problem_flops(&p) == 2 * 6 * 10 * 20 * (2 * (16 + 3) + 5));
    assert_true(bz_problem_bytes(&p) == 2 * (2 * 6 * 10 * 16 + 2 * 2 * 20 * (16 + 3) + 10 * 20 + 2 * 6 * 10 * 3));
    assert_int_equal(bz_problem_parse("attention q=1x1x3x4 k=1x1x3x4 v=1x1x3x4 causal=1 dtype=f16", &p, &err), 0);
    assert_true(bz_problem_flops(&p) == (1 + 2 + 3) * (2 * 8 + 5)); /* scores that are seen */
    for (int which = 0; which < 81; which++) { /* of nine keys: so many queries, and a window or none */
        char text[200];
        int rows = which / 9 + 1, window = which % 9;
        double seen = 0;
        for (int i = 10 - rows; i <= 9; i++)
            seen += window && window < i ? window : i;
        snprintf(text, sizeof text, "attention q=2x6x%dx4 k=2x2x9x4 v=2x2x9x4 causal=1 window=%d dtype=f16", rows,
                 window);
        assert_int_equal(bz_problem_parse(text, &p, &err), 0);
        assert_true(fabs(bz_problem_flops(&p) - 2 * 6 * seen * (2 * 8 + 5)) < 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_composed), cmocka_unit_test(test_lengths), cmocka_unit_test(test_sink),
        cmocka_unit_test(test_obvious),  cmocka_unit_test(test_capped),  cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
