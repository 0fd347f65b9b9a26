/* References of gradients against finite differences of the forward pass's references: with L = Σ dy · y, the gradient by an
 * element of x is (L(x + h) - L(x - h)) / 2h. */
#include "runtime/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Operands of the gradient are the forward pass's of the same role, operands or results; X is what `x` says: its operand x,
 * its result y, or the logarithms that a loss keeps. `by` is the operand that the gradient's last result is of. */
static const struct {
    const char *gradient, *forward;
    char x; /* 'x', 'y', 'l' */
    bz_role by;
} CASES[] = {
    {"conv_data x=2x4x6x5 w=6x2x3x2 stride=2x1 pad=1x0x1x1 group=2 dtype=f32",
     "conv x=2x4x6x5 w=6x2x3x2 stride=2x1 pad=1x0x1x1 group=2 dtype=f32", 'x', BZ_ROLE_X},
    {"conv_weights x=2x4x6x5 w=6x2x3x2 stride=2x1 pad=1x0x1x1 group=2 dtype=f32",
     "conv x=2x4x6x5 w=6x2x3x2 stride=2x1 pad=1x0x1x1 group=2 dtype=f32", 'x', BZ_ROLE_W},
    {"conv_weights x=1x2x9 w=3x2x3 pad=2x2 dilation=2 dtype=f32", "conv x=1x2x9 w=3x2x3 pad=2x2 dilation=2 dtype=f32",
     'x', BZ_ROLE_W},
    {"conv_data x=1x2x5x4x3 w=2x2x2x2x2 dtype=f32", "conv x=1x2x5x4x3 w=2x2x2x2x2 dtype=f32", 'x', BZ_ROLE_X},
    {"pool_grad mode=max x=2x2x7x6 kernel=3x2 stride=2x1 pad=1x0x1x0 dtype=f32",
     "pool mode=max training=1 x=2x2x7x6 kernel=3x2 stride=2x1 pad=1x0x1x0 dtype=f32", 'x', BZ_ROLE_X},
    {"pool_grad mode=avg x=1x2x7x6 kernel=3x3 stride=2x2 pad=1x1x1x1 dtype=f32",
     "pool mode=avg x=1x2x7x6 kernel=3x3 stride=2x2 pad=1x1x1x1 dtype=f32", 'x', BZ_ROLE_X},
    {"pool_grad mode=avg_pad x=1x2x9 kernel=3 stride=1 pad=1x1 dilation=2 dtype=f32",
     "pool mode=avg_pad x=1x2x9 kernel=3 stride=1 pad=1x1 dilation=2 dtype=f32", 'x', BZ_ROLE_X},
    {"batchnorm_grad x=3x4x2x2 dtype=f32", "batchnorm x=3x4x2x2 training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"batchnorm_grad x=5x4 dtype=f32", "batchnorm x=5x4 training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"layernorm_grad x=3x4x5 axis=1 dtype=f32", "layernorm x=3x4x5 axis=1 training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"rmsnorm_grad x=4x9 axis=1 dtype=f32", "rmsnorm x=4x9 axis=1 training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"groupnorm_grad x=2x6x3x2 group=3 dtype=f32", "groupnorm x=2x6x3x2 group=3 training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"softmax_grad x=3x5x2 axis=1 dtype=f32", "softmax x=3x5x2 axis=1 dtype=f32", 'y', BZ_ROLE_X},
    {"logsoftmax_grad x=3x5 axis=1 dtype=f32", "logsoftmax x=3x5 axis=1 dtype=f32", 'y', BZ_ROLE_X},
    {"softmax_loss_grad x=4x5 dtype=f32:i64:f32", "softmax_loss x=4x5 dtype=f32:i64:f32", 'l', BZ_ROLE_X},
    {"softmax_loss_grad x=2x5x3 reduction=sum dtype=f32:i64:f32",
     "softmax_loss x=2x5x3 reduction=sum dtype=f32:i64:f32", 'l', BZ_ROLE_X},
    {"softmax_loss_grad x=2x5x3 reduction=none dtype=f32:i64:f32",
     "softmax_loss x=2x5x3 reduction=none dtype=f32:i64:f32", 'l', BZ_ROLE_X},
    {"softmax_loss_grad x=9x3 ignore=0 dtype=f32:i64:f32", "softmax_loss x=9x3 ignore=0 dtype=f32:i64:f32", 'l',
     BZ_ROLE_X},
    {"softmax_loss_grad x=2x4x3 reduction=sum ignore=3 dtype=f32:i64:f32",
     "softmax_loss x=2x4x3 reduction=sum ignore=3 dtype=f32:i64:f32", 'l', BZ_ROLE_X},
    {"lstm_grad seq=4 batch=2 input=3 hidden=4 dtype=f32", "lstm seq=4 batch=2 input=3 hidden=4 training=1 dtype=f32",
     'x', BZ_ROLE_X},
    {"lstm_grad seq=3 batch=4 input=2 hidden=3 dir=bidirectional dtype=f32",
     "lstm seq=3 batch=4 input=2 hidden=3 dir=bidirectional training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"gru_grad seq=4 batch=2 input=3 hidden=4 dir=reverse dtype=f32",
     "gru seq=4 batch=2 input=3 hidden=4 dir=reverse training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"gru_grad seq=4 batch=2 input=3 hidden=4 lbr=1 dir=bidirectional dtype=f32",
     "gru seq=4 batch=2 input=3 hidden=4 lbr=1 dir=bidirectional training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"rnn_grad seq=4 batch=2 input=3 hidden=4 dtype=f32", "rnn seq=4 batch=2 input=3 hidden=4 training=1 dtype=f32",
     'x', BZ_ROLE_X},
    {"rnn_grad seq=4 batch=1 input=3 hidden=4 fn=sigmoid dir=bidirectional dtype=f32",
     "rnn seq=4 batch=1 input=3 hidden=4 fn=sigmoid dir=bidirectional training=1 dtype=f32", 'x', BZ_ROLE_X},
    {"scatter_add x=6x3 n=9 axis=0 dtype=f32:i64:f32", "gather x=6x3 n=9 axis=0 dtype=f32:i64:f32", 'x', BZ_ROLE_X},
    {"scatter_add x=2x6x3 n=4 axis=1 dtype=f32:i64:f32", "gather x=2x6x3 n=4 axis=1 dtype=f32:i64:f32", 'x', BZ_ROLE_X},
    {"sample_grad mode=linear outside=zeros x=2x3x6x5 at=2x1x20x2 dtype=f32",
     "sample mode=linear outside=zeros x=2x3x6x5 at=2x1x20x2 dtype=f32", 'x', BZ_ROLE_X},
    {"sample_grad mode=linear outside=edge x=2x3x5x4 at=3x1x24x2 mean=4 fixed=1 dtype=f32",
     "sample mode=linear outside=edge x=2x3x5x4 at=3x1x24x2 mean=4 dtype=f32", 'x', BZ_ROLE_X},
    {"sample_grad mode=linear outside=edge x=1x2x5x4 at=1x1x24x2 dtype=f32",
     "sample mode=linear outside=edge x=1x2x5x4 at=1x1x24x2 dtype=f32", 'x', BZ_ROLE_X},
    {"sample_grad mode=linear outside=zeros x=1x4x4x5 at=1x2x18x2 masked=1 dtype=f32",
     "sample mode=linear outside=zeros x=1x4x4x5 at=1x2x18x2 masked=1 dtype=f32", 'x', BZ_ROLE_X},
    {"sample_grad mode=nearest outside=zeros x=1x2x4x5 at=1x1x18x2 dtype=f32",
     "sample mode=nearest outside=zeros x=1x2x4x5 at=1x1x18x2 dtype=f32", 'x', BZ_ROLE_X},
};

typedef struct side {
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS];
    int n;
} side;

static side open_side(const char *text)
{
    side s = {.n = 0};
    bz_error err;
    if (bz_problem_parse(text, &s.p, &err))
        fail_msg("%s: %s", text, err.text);
    s.n = bz_problem_operands(&s.p, s.operand);
    for (int i = 0; i < s.n; i++) {
        s.value[i] = calloc((size_t)s.operand[i].count, sizeof(float));
        if (!s.operand[i].result)
            bz_values_fill(&s.p, &s.operand[i], i, s.value[i]);
    }
    return s;
}

static void close_side(side *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->value[i]);
}

static int find(const side *s, bz_role role, bool result)
{
    for (int i = 0; i < s->n; i++)
        if (s->operand[i].role == role && s->operand[i].result == result)
            return i;
    return -1;
}

static double element(const side *s, int operand, int64_t i)
{
    bz_reference r = bz_reference_of(&s->p, s->n, s->operand, (const float *const *)s->value);
    r.result = operand;
    double v = bz_reference_at(&r, i).value;
    bz_reference_free(&r);
    return v;
}

static void compute(side *s)
{
    for (int k = 0; k < s->n; k++)
        for (int64_t i = 0; s->operand[k].result && i < s->operand[k].count; i++)
            s->value[k][i] = (float)element(s, k, i);
}

/* Results of the forward pass that have gradients of their own: of a recurrent layer the last states, too. */
static const bz_role GRADIENTS[][2] = {
    {BZ_ROLE_Y, BZ_ROLE_DY}, {BZ_ROLE_LAST, BZ_ROLE_DH}, {BZ_ROLE_LAST_C, BZ_ROLE_DC}};

static double loss(const side *s, const side *gradient)
{
    double sum = 0;
    for (size_t g = 0; g < sizeof GRADIENTS / sizeof *GRADIENTS; g++) {
        int y = find(s, GRADIENTS[g][0], true), dy = find(gradient, GRADIENTS[g][1], false);
        for (int64_t i = 0; y >= 0 && dy >= 0 && i < s->operand[y].count; i++)
            sum += (double)gradient->value[dy][i] * element(s, y, i);
    }
    return sum;
}

static double difference(side *forward, int operand, int64_t i, const side *gradient)
{
    float *x = &forward->value[operand][i], was = *x, above = was + 1e-3f, below = was - 1e-3f;
    *x = above;
    double high = loss(forward, gradient);
    *x = below;
    double low = loss(forward, gradient);
    *x = was;
    return (high - low) / ((double)above - (double)below);
}

static void take_operands(side *gradient, const side *forward, char x)
{
    for (int i = 0; i < gradient->n; i++) {
        const bz_operand *o = &gradient->operand[i];
        int from = (o->role == BZ_ROLE_X && x == 'y') || o->role == BZ_ROLE_O ? forward->n - 1
                   : o->role == BZ_ROLE_X && x == 'l'                         ? find(forward, BZ_ROLE_MASK, true)
                                                                              : find(forward, o->role, true);
        from = from < 0 ? find(forward, o->role, false) : from;
        if (o->result || o->role == BZ_ROLE_DY || o->role == BZ_ROLE_DH || o->role == BZ_ROLE_DC)
            continue;
        assert_true(from >= 0 && forward->operand[from].count == o->count);
        memcpy(gradient->value[i], forward->value[from], (size_t)o->count * sizeof(float));
    }
}

/* Gradients by one operand of the forward pass; by all of them where none is named. */
static void compare(size_t c, side *forward, const side *gradient, bz_role role)
{
    for (int k = 0; k < gradient->n; k++) {
        const bz_operand *o = &gradient->operand[k];
        int by = o->result ? find(forward, o->role == BZ_ROLE_Y ? CASES[c].by : o->role, false) : -1;
        for (int64_t i = 0; by >= 0 && i < o->count && (role == BZ_ROLE_OTHER || o->role == role); i++) {
            double want = difference(forward, by, i, gradient), got = element(gradient, k, i);
            if (!(fabs(got - want) <= 2e-3 * (1 + fabs(want))))
                fail_msg("%s: %s %d is %g, by differences %g", CASES[c].gradient, bz_role_name(o->role), (int)i, got,
                         want);
        }
        assert_true(!o->result || by >= 0);
    }
}

static void test_differences(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        side forward = open_side(CASES[c].forward), gradient = open_side(CASES[c].gradient);
        compute(&forward);
        take_operands(&gradient, &forward, CASES[c].x);
        compare(c, &forward, &gradient, BZ_ROLE_OTHER);
        close_side(&forward);
        close_side(&gradient);
    }
}

/* Of recurrent layers, where only one row of the batch has a gradient given, of all states, the last state or the last cell: it goes to that
 * row's first state and into the bias. */
static void test_single_rows(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        side forward = open_side(CASES[c].forward), gradient = open_side(CASES[c].gradient);
        if (bz_problem_has(&forward.p, BZ_TRAIT_RECURRENT)) {
            compute(&forward);
            take_operands(&gradient, &forward, CASES[c].x);
        }
        for (int64_t n = 0; bz_problem_has(&forward.p, BZ_TRAIT_RECURRENT) && n < 3 * forward.p.rnn.batch; n++) {
            for (int g = 0; g < 3; g++) {
                int k = find(&gradient, GRADIENTS[g][1], false);
                for (int64_t i = 0; k >= 0 && i < gradient.operand[k].count; i++) { /* the rows are dimension 1 of 3 */
                    int64_t row = i / gradient.operand[k].dim[2] % gradient.operand[k].dim[1];
                    bool given = g == n % 3 && row == n / 3;
                    gradient.value[k][i] = given ? (float)(1 + i % 3) / 2 : 0;
                }
            }
            compare(c, &forward, &gradient, BZ_ROLE_H);
            compare(c, &forward, &gradient, BZ_ROLE_BIAS);
        }
        close_side(&forward);
        close_side(&gradient);
    }
}

/* Derivatives of functions, from x and from what they gave. */
static void test_slopes(void **unused)
{
    (void)unused;
    int of_x = 0, of_y = 0;
    for (bz_fn fn = BZ_FN_NONE; fn < BZ_FN_N; fn++) {
        float alpha = 0, beta = 0;
        bz_fn_normalize(fn, &alpha, &beta);
        for (int step = 0; bz_fn_has_slope(fn) && step < 65; step++) {
            double x = -4.03 + 0.171 * step;
            if (x <= 0 && (fn == BZ_FN_LOG || fn == BZ_FN_SQRT))
                continue;
            double y = bz_fn_value(fn, x, (double)alpha, (double)beta), h = 1e-5;
            double want = (bz_fn_value(fn, x + h, (double)alpha, (double)beta) -
                           bz_fn_value(fn, x - h, (double)alpha, (double)beta)) /
                          (2 * h);
            double got = bz_fn_slope(fn, x, (double)alpha, (double)beta);
            if (fabs(got - want) > 1e-5 * (1 + fabs(want)))
                fail_msg("%s at %g: %g, by differences %g", bz_fn_name(fn), x, got, want);
            of_x++;
            if (!bz_fn_inverts(fn))
                continue;
            double again = bz_fn_slope_of_y(fn, y, (double)alpha, (double)beta);
            if (fabs(again - want) > 1e-5 * (1 + fabs(want)))
                fail_msg("%s of y %g: %g, by differences %g", bz_fn_name(fn), y, again, want);
            of_y++;
        }
        assert_true(!bz_fn_inverts(fn) || bz_fn_has_slope(fn));
    }
    assert_true(of_x > 1000 && of_y > 400);
}

/* The first step of averages that begin with zeros: Adam goes by the rate whatever the gradient's size; momentum as sgd. */
static void test_first_steps(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        double by, share; /* w - by - share · rate · w */
    } STEPS[] = {{"update rule=sgd x=5 dtype=f32", 0.5, 0},
                 {"update rule=momentum x=5 dtype=f32", 0.5, 0},
                 {"update rule=momentum nesterov=1 x=5 dtype=f32", 0.5 * 1.9, 0},
                 {"update rule=sgd decay=0.1 x=5 dtype=f32", 0.5, 0.1},
                 {"update rule=adam x=5 dtype=f32", 1, 0},
                 {"update rule=adamw decay=0.1 x=5 dtype=f32", 1, 0.1}};
    for (size_t c = 0; c < sizeof STEPS / sizeof *STEPS; c++) {
        side s = open_side(STEPS[c].text);
        for (int k = 0; k < s.n; k++)
            for (int64_t i = 0; i < s.operand[k].count; i++)
                if (s.operand[k].role == BZ_ROLE_DY)
                    s.value[k][i] = 0.5f;
                else if (s.operand[k].role == BZ_ROLE_M || s.operand[k].role == BZ_ROLE_N)
                    s.value[k][i] = 0;
                else if (s.operand[k].role == BZ_ROLE_STEP)
                    s.value[k][i] = 1;
        double rate = (double)s.value[find(&s, BZ_ROLE_RATE, false)][0];
        for (int64_t i = 0; i < 5; i++) {
            double w = (double)s.value[0][i], want = w - rate * STEPS[c].by - rate * STEPS[c].share * w;
            if (fabs(element(&s, s.n - 1, i) - want) > 1e-7)
                fail_msg("%s: %g, not %g", STEPS[c].text, element(&s, s.n - 1, i), want);
        }
        close_side(&s);
    }
}

/* Equal problems have one text. */
static void test_texts(void **unused)
{
    (void)unused;
    static const char *const TEXTS[][2] = {
        {"update x=5 rule=sgd alpha=0.5 beta=0.5 nesterov=1 dtype=f32", "update rule=sgd x=5 dtype=f32"},
        {"update x=5 rule=adam nesterov=1 dtype=f32:bf16:f32", "update rule=adam x=5 dtype=f32:bf16:f32"},
        {"pool mode=avg x=1x1x4x4 kernel=2x2 training=1 dtype=f32",
         "pool mode=avg x=1x1x4x4 kernel=2x2 stride=1x1 pad=0x0x0x0 dilation=1x1 dtype=f32"},
        {"dropout x=4 ratio=0.5 training=0 dtype=f32", "dropout x=4 dtype=f32"},
        {"activation_grad x=4 fn=elu of_y=1 dtype=f32", "activation_grad fn=elu x=4 of_y=1 alpha=1 dtype=f32"},
    };
    static const char *const BAD[] = {
        "activation_grad fn=round x=4 dtype=f32",
        "activation_grad fn=mish of_y=1 x=4 dtype=f32",
        "update rule=adam x=4 alpha=1 dtype=f32",
        "update rule=sgd x=4 dtype=f32:f32:bf16",
        "dropout x=4 ratio=1 dtype=f32",
        "softmax_loss x=4x4 dtype=f32",
        "batchnorm x=2x2 training=1 post=relu dtype=f32",
        "scatter_add x=4x4 n=3 axis=2 dtype=f32:i64:f32",
        "conv_data x=1x1x2x2 w=1x1x3x3 dtype=f32",
        "conv_weights x=1x1x9x9x9 w=1x1x1x1x1 pad=16000000x16000000x16000000x16000000x16000000x16000000 dtype=f32",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_problem p;
        bz_error err;
        bz_buf text = {0};
        if (bz_problem_parse(TEXTS[i][0], &p, &err))
            fail_msg("%s: %s", TEXTS[i][0], err.text);
        bz_problem_print(&p, &text);
        assert_string_equal(bz_buf_text(&text), TEXTS[i][1]);
        bz_buf_free(&text);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        bz_problem p;
        bz_error err;
        if (!bz_problem_parse(BAD[i], &p, &err))
            fail_msg("%s is taken", BAD[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences), cmocka_unit_test(test_single_rows), cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_first_steps), cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
