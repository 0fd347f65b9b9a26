/* Kinds that are several steps in one, by their definitions: what the steps make of the same values, each by its own definition; and
 * gradients, by finite differences of what they are gradients of. */
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

/* A problem with its values, as they always are. */
typedef struct subject {
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
        s->value[i] = calloc((size_t)s->operand[i].count, sizeof(float));
        assert_non_null(s->value[i]);
        if (!s->operand[i].result)
            bz_values_fill(&s->p, &s->operand[i], i, s->value[i]);
    }
}

static void tear_down(subject *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->value[i]);
}

static int find(const subject *s, bz_role role, bool result)
{
    int i = 0;
    while (s->operand[i].role != role || s->operand[i].result != result)
        i++;
    return i;
}

/* A result, in the place of its operand's values. */
static const float *compute(subject *s, int result)
{
    bz_reference r = bz_reference_of(&s->p, s->n, s->operand, (const float *const *)s->value);
    r.result = result;
    for (int64_t i = 0; i < s->operand[result].count; i++)
        s->value[result][i] = (float)bz_reference_at(&r, i).value;
    bz_reference_free(&r);
    return s->value[result];
}

static void near(double found, double wanted, const char *what)
{
    if (!(fabs(found - wanted) <= 1e-4 * (1 + fabs(wanted))))
        fail_msg("%s: %g, not %g", what, found, wanted);
}

static void sums_and_normalizes(void **state)
{
    static const char *const SHAPES[] = {"x=2x6x5x4 w=4x3x3x2 stride=2x1 pad=1x0x1x1 group=2",
                                         "x=3x4x7 w=5x4x3 pad=1x1"};
    (void)state;
    for (int c = 0; c < 6; c++) {
        char text[200];
        subject whole, conv;
        bool before = c / 2 != 1, behind = c / 2 != 0;
        const char *post = c == 1 ? " post=bias,relu" : "";
        snprintf(text, sizeof text, "conv_norm %s before=%d behind=%d%s dtype=f32", SHAPES[c % 2], before, behind,
                 post);
        set_up(&whole, text);
        snprintf(text, sizeof text, "conv %s%s dtype=f32", SHAPES[c % 2], post);
        set_up(&conv, text);
        if (*post)
            memcpy(conv.value[find(&conv, BZ_ROLE_BIAS, false)], whole.value[find(&whole, BZ_ROLE_BIAS, false)],
                   (size_t)conv.operand[find(&conv, BZ_ROLE_BIAS, false)].count * sizeof(float));
        const bz_operand *x = &whole.operand[0], *y = &conv.operand[conv.n - 1];
        int64_t plane = bz_extent_count(x->dim + 2), inner = bz_extent_count(y->dim + 2);
        memcpy(conv.value[1], whole.value[1], (size_t)conv.operand[1].count * sizeof(float));
        for (int64_t i = 0; i < x->count; i++) {
            int64_t channel = i / plane % x->dim[1];
            float v = whole.value[0][i];
            if (before)
                v = fmaxf(v * whole.value[find(&whole, BZ_ROLE_SCALE, false)][channel] +
                              whole.value[find(&whole, BZ_ROLE_SHIFT, false)][channel],
                          0);
            conv.value[0][i] = v;
        }
        const float *wanted = compute(&conv, conv.n - 1), *found = compute(&whole, whole.n - 1);
        for (int64_t i = 0; i < y->count; i++)
            near((double)found[i], (double)wanted[i], text);
        for (int64_t channel = 0; channel < y->dim[1] && behind; channel++) {
            double sum = 0, squares = 0;
            for (int64_t i = 0; i < y->dim[0] * inner; i++) {
                double v = (double)wanted[(i / inner * y->dim[1] + channel) * inner + i % inner];
                sum += v;
                squares += v * v;
            }
            near((double)compute(&whole, find(&whole, BZ_ROLE_M, true))[channel], sum, "sum");
            near((double)compute(&whole, find(&whole, BZ_ROLE_N, true))[channel], squares, "sum of squares");
        }
        tear_down(&whole);
        tear_down(&conv);
    }
}

/* Each group is a product of its own. */
static void multiplies_groups(void **state)
{
    static const int SIZES[] = {3, 1, 4};
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        subject whole, part;
        set_up(&whole,
               turned ? "grouped n=5 k=7 transb=1 sizes=3x1x4 dtype=f32" : "grouped n=5 k=7 sizes=3x1x4 dtype=f32");
        assert_int_equal(whole.operand[whole.n - 1].count, 8 * 5);
        const float *found = compute(&whole, whole.n - 1);
        for (int g = 0, row = 0; g < 3; row += SIZES[g++]) {
            char text[100];
            snprintf(text, sizeof text, "gemm m=%d n=5 k=7 transb=%d dtype=f32", SIZES[g], turned);
            set_up(&part, text);
            memcpy(part.value[0], whole.value[0] + row * 7, (size_t)SIZES[g] * 7 * sizeof(float));
            memcpy(part.value[1], whole.value[1] + g * 35, 35 * sizeof(float));
            const float *wanted = compute(&part, part.n - 1);
            for (int i = 0; i < SIZES[g] * 5; i++)
                near((double)found[row * 5 + i], (double)wanted[i], text);
            tear_down(&part);
        }
        tear_down(&whole);
    }
}

/* Σ dy · y, with y from the forward pass. */
static double loss(subject *forward, const float *dy)
{
    const float *y = compute(forward, forward->n - 1);
    double sum = 0;
    for (int64_t i = 0; i < forward->operand[forward->n - 1].count; i++)
        sum += (double)dy[i] * (double)y[i];
    return sum;
}

/* The logarithm of the sum of each row's weights, from the scores. */
static void put_logsums(const subject *f, float *out)
{
    const int64_t *q = f->p.attention.q, *k = f->p.attention.k;
    for (int64_t row = 0; row < q[0] * q[1] * q[2]; row++) {
        int64_t batch = row / q[2] / q[1], head = row / q[2] % q[1], own = batch * k[1] + head / (q[1] / k[1]);
        double sum = 0;
        for (int64_t key = 0; key < (f->p.attention.causal ? k[2] - q[2] + row % q[2] + 1 : k[2]); key++) {
            double score = 0;
            for (int64_t i = 0; i < q[3]; i++)
                score += (double)f->value[0][row * q[3] + i] * (double)f->value[1][(own * k[2] + key) * k[3] + i];
            sum += exp(score / sqrt((double)q[3]));
        }
        out[row] = (float)log(sum);
    }
}

static void differentiates_attention(void **state)
{
    static const char *const SHAPES[] = {"q=2x4x3x5 k=2x2x6x5 v=2x2x6x4", "q=1x2x5x3 k=1x2x5x3 v=1x2x5x3 causal=1",
                                         "q=1x4x3x3 k=1x2x7x3 v=1x2x7x5 causal=1"};
    (void)state;
    for (int c = 0; c < 3; c++) {
        char text[200];
        subject f, g;
        snprintf(text, sizeof text, "attention %s dtype=f32", SHAPES[c]);
        set_up(&f, text);
        snprintf(text, sizeof text, "attention_grad %s dtype=f32", SHAPES[c]);
        set_up(&g, text);
        const float *dy = g.value[find(&g, BZ_ROLE_DY, false)];
        for (int i = 0; i < 3; i++)
            memcpy(g.value[i], f.value[i], (size_t)f.operand[i].count * sizeof(float));
        memcpy(g.value[find(&g, BZ_ROLE_O, false)], compute(&f, f.n - 1),
               (size_t)f.operand[f.n - 1].count * sizeof(float));
        put_logsums(&f, g.value[find(&g, BZ_ROLE_LOGSUM, false)]);
        const int of[] = {g.n - 1, find(&g, BZ_ROLE_B, true), find(&g, BZ_ROLE_V, true)};
        for (int i = 0; i < 3; i++) {
            const float *found = compute(&g, of[i]);
            for (int64_t at = 0; at < f.operand[i].count; at += 3) {
                const float h = 0.02f, kept = f.value[i][at];
                f.value[i][at] = kept + h;
                double more = loss(&f, dy);
                f.value[i][at] = kept - h;
                double slope = (more - loss(&f, dy)) / (2 * (double)h);
                f.value[i][at] = kept;
                if (fabs(slope - (double)found[at]) > 2e-3 * (1 + fabs(slope)))
                    fail_msg("%s: operand %d, element %d: %g, not %g", text, i, (int)at, (double)found[at], slope);
            }
        }
        tear_down(&f);
        tear_down(&g);
    }
}

/* Pages change where keys lie, not what comes of them. */
static void reads_pages_as_rows(void **state)
{
    subject rows, pages;
    (void)state;
    set_up(&rows, "attention q=1x4x3x8 k=1x2x8x8 v=1x2x8x8 dtype=f32");
    set_up(&pages, "attention q=1x4x3x8 k=1x2x8x8 v=1x2x8x8 page=4 dtype=f32");
    const float *wanted = compute(&rows, rows.n - 1), *found = compute(&pages, pages.n - 1);
    assert_memory_equal(found, wanted, (size_t)rows.operand[rows.n - 1].count * sizeof *found);
    tear_down(&rows);
    tear_down(&pages);
}

static void refuses(void **state)
{
    static const char *const BAD[] = {
        "conv_norm x=1x3x8x8 w=4x3x3x3 dtype=f16",
        "conv_norm x=1x3x8x8 w=4x2x3x3 before=1 dtype=f16",
        "conv_norm x=1x3x8x8 w=4x3x3x3 before=1 behind=1 post=relu dtype=f16",
        "grouped n=4 k=8 dtype=f32",
        "grouped n=4 k=8 sizes=0 dtype=f32",
        "grouped n=0 k=8 sizes=3 dtype=f32",
        "attention q=1x4x5x8 k=1x2x8x8 v=1x2x8x8 page=3 dtype=f16",
        "attention_grad q=1x4x7x8 k=1x2x5x8 v=1x2x5x8 causal=1 dtype=f16",
        "attention_grad q=1x4x5x8 k=1x2x7x8 v=1x2x7x8 mask=1x1x5x7 dtype=f16",
    };
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        bz_problem p;
        bz_error err;
        if (!bz_problem_parse(BAD[i], &p, &err))
            fail_msg("%s is taken", BAD[i]);
    }
}

/* Elements that are checked lie in both directions: a sequence is not computed anew for each of them. The last state is the last step's result. */
static void remembers_sequences(void **state)
{
    static const char *const KINDS[] = {"lstm", "gru", "gru lbr=1", "rnn fn=tanh"};
    (void)state;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        char text[128];
        subject s;
        snprintf(text, sizeof text, "%s seq=3 batch=2 input=5 hidden=4 dir=bidirectional training=1", KINDS[k]);
        set_up(&s, text);
        bz_reference r = bz_reference_of(&s.p, s.n, s.operand, (const float *const *)s.value);
        r.result = find(&s, BZ_ROLE_Y, true);
        double forward = bz_reference_at(&r, (2 * 2 + 0) * 8 + 1).value, back = bz_reference_at(&r, 4 + 1).value;
        const double *computed[] = {r.sequence[0], r.sequence[1]};
        for (int i = 0; i < 8; i++)
            bz_reference_at(&r, (i % 3 * 2 + 0) * 8 + i);
        assert_ptr_equal(r.sequence[0], computed[0]);
        assert_ptr_equal(r.sequence[1], computed[1]);
        r.result = find(&s, BZ_ROLE_LAST, true);
        near(bz_reference_at(&r, 1).value, forward, text);
        near(bz_reference_at(&r, (2 + 0) * 4 + 1).value, back, text);
        bz_reference_free(&r);
        tear_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_normalizes),      cmocka_unit_test(multiplies_groups),
        cmocka_unit_test(differentiates_attention), cmocka_unit_test(reads_pages_as_rows),
        cmocka_unit_test(remembers_sequences),      cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
