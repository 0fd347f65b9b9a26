/* Every kind of problem runs on this machine and computes what the definition says. */
#include "runtime/runtime.h"
#include "runtime/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "problem_texts.h"

/* clang-format off */
/* Shapes that our loops go about in several ways: rows and columns, long and short ones, of all types, more than one
 * thread's share. */
static const char *const OURS[] = {
    "binary fn=div a=2x37x1031 b=2x37x1 dtype=f32",
    "binary fn=sub a=2x37x1031 b=2x37x1 dtype=f16",
    "binary fn=mul a=1x37x1 b=2x1x1031 dtype=bf16",
    "binary fn=add a=300x3 b=300x1 dtype=f32",
    "binary fn=add a=5x600 b=1x600 post=gelu_erf,add dtype=f16",
    "binary fn=eq a=40x50 b=40x50 dtype=i64:i64:u8",
    "binary fn=add a=40x50 b=1x50 dtype=i64",
    "binary fn=max a=40x50 b=1x50 dtype=i32",
    "binary fn=div a=40x50 b=40x1 dtype=f64",
    "reduce fn=mean x=3x7x1000 y=3x7x1 dtype=f16",
    "reduce fn=sum x=5x300x700 y=5x1x700 dtype=f32",
    "reduce fn=mean x=4x5x6x7 y=1x5x1x7 dtype=f32",
    "reduce fn=max x=4x5x6x7 y=4x1x6x1 dtype=f32",
    "reduce fn=min x=40x50x3 y=40x1x3 dtype=bf16",
    "reduce fn=prod x=6x20x30 y=6x1x30 dtype=f32",
    "reduce fn=l2 x=6x20x30 y=1x1x1 dtype=f32",
    "reduce fn=sumsquare x=60x700 y=1x700 dtype=f32",
    "softmax x=3x50257 axis=1 dtype=f32",
    "softmax x=30x41x1100 axis=1 dtype=f32",
    "logsoftmax x=30x41x11 axis=1 dtype=f16",
    "layernorm x=20x1500 axis=1 dtype=f32",
    "layernorm x=20x15x10 axis=1 dtype=f16",
    "rmsnorm x=20x1500 axis=1 dtype=f32",
    "lpnorm x=20x1500 p=1 dtype=f32",
    "lpnorm x=3x20x15 dtype=f16",
    "groupnorm x=2x12x50x50 group=3 dtype=f32",
    "batchnorm x=2x100 post=relu dtype=f16",
    "batchnorm x=2x10x50x50 post=relu dtype=f32",
    "prelu x=20x100 dtype=f16",
    "prelu x=2x100x3 dtype=bf16",
    "transpose x=3x65x77 perm=0x2x1 dtype=f32",
    "transpose x=40x3x64x16 perm=2x1x3x0 dtype=f16",
    "transpose x=65x40 perm=1x0 dtype=u8",
    "transpose x=64x40x2 perm=1x0x2 dtype=f64",
    "concat y=30x700 axis=1 sizes=100x600 dtype=f32",
    "reorder x=70x300 from=plain to=plain dtype=f32:f32:f16",
    "reorder x=70x300 from=plain to=plain dtype=bf16:bf16:f32",
    "reorder x=70x300 from=plain to=plain scale=16 dtype=f32:f32:i8",
    "reorder x=70x300 from=plain to=plain dtype=i64:i64:f32",
    "reorder x=70x300 from=plain to=plain dtype=f32:f32:bool",
    "reorder x=70x300 from=plain to=plain dtype=f32:f32:i32",
    "activation fn=pow alpha=1 beta=3 x=70x300 dtype=f32",
    "activation fn=pow alpha=2 beta=-1.5 x=70x300 dtype=f32",
    "activation fn=tanh x=70x300 dtype=f16",
    "pad x=1x3x100x90 pad=3x3x3x3 dtype=f32",
    "activation_grad fn=relu x=70x300 dtype=f32",
    "activation_grad fn=leaky x=70x300 dtype=f32",
    "activation_grad fn=elu x=70x300 dtype=f32",
    "activation_grad fn=clip x=70x300 dtype=f32",
    "activation_grad fn=sigmoid x=70x300 dtype=f32",
    "activation_grad fn=tanh x=70x300 dtype=f32",
    "activation_grad fn=gelu_erf x=70x300 dtype=f32",
    "activation_grad fn=gelu_tanh x=70x300 dtype=f32",
    "activation_grad fn=swish x=70x300 dtype=f32",
    "activation_grad fn=hardswish x=70x300 dtype=f32",
    "activation_grad fn=hardsigmoid x=70x300 dtype=f32",
    "activation_grad fn=mish x=70x300 dtype=f32",
    "activation_grad fn=softplus x=70x300 dtype=f32",
    "activation_grad fn=exp x=70x300 dtype=f32",
    "activation_grad fn=log x=70x300 dtype=f32",
    "activation_grad fn=sqrt x=70x300 dtype=f32",
    "activation_grad fn=abs x=70x300 dtype=f32",
    "activation_grad fn=square x=70x300 dtype=f32",
    "activation_grad fn=erf x=70x300 dtype=f32",
    "activation_grad fn=softsign x=70x300 dtype=f32",
    "activation_grad fn=sin x=70x300 dtype=f32",
    "activation_grad fn=cos x=70x300 dtype=f32",
    "activation_grad fn=linear x=70x300 dtype=f32",
    "activation_grad fn=pow x=70x300 dtype=f32",
    "activation_grad fn=relu of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=leaky of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=elu of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=clip of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=sigmoid of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=tanh of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=exp of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=sqrt of_y=1 x=7x3000 dtype=f32",
    "activation_grad fn=gelu_erf x=70x300 dtype=f16",
    "dropout x=300x700 training=1 ratio=0.1 dtype=bf16",
    "dropout x=3x700 dtype=f32",
    "dropout_grad x=300x70 dtype=f16",
    "batchnorm x=4x30x50x50 training=1 dtype=f32",
    "batchnorm x=64x300 training=1 dtype=bf16",
    "batchnorm_grad x=4x30x50x50 dtype=f32",
    "batchnorm_grad x=64x300 dtype=f16",
    "layernorm x=200x1500 axis=1 training=1 dtype=f32",
    "layernorm_grad x=200x1500 axis=1 dtype=f32",
    "layernorm_grad x=20x15x10 axis=1 dtype=f16",
    "rmsnorm x=200x1500 axis=1 training=1 dtype=bf16",
    "rmsnorm_grad x=200x150 axis=1 dtype=f32",
    "groupnorm x=20x12x50x5 group=3 training=1 dtype=f32",
    "groupnorm_grad x=20x12x50x5 group=3 dtype=f32",
    "groupnorm_grad x=2x12x50 group=12 dtype=bf16",
    "softmax_grad x=30x1100 axis=1 dtype=f32",
    "softmax_grad x=30x41x1100 axis=1 dtype=f32",
    "logsoftmax_grad x=3x50257 axis=1 dtype=f32",
    "logsoftmax_grad x=30x41x11 axis=1 dtype=f16",
    "softmax_loss x=30x1000 dtype=f32:i64:f32",
    "softmax_loss x=3x20x50x20 dtype=bf16:i64:f32",
    "softmax_loss x=30x1000 reduction=none dtype=f16:i32:f32",
    "softmax_loss_grad x=30x1000 dtype=f32:i64:f32",
    "softmax_loss_grad x=3x20x50x20 reduction=none dtype=f32:i64:bf16",
    "scatter_add x=500x70 n=2000 axis=0 dtype=f32:i64:f32",
    "scatter_add x=3x50x7 n=20 axis=1 dtype=bf16:i32:f32",
    "update rule=sgd decay=0.01 x=300x100 dtype=f32:bf16:f32",
    "update rule=momentum x=300x100 dtype=f32",
    "update rule=momentum nesterov=1 decay=0.01 x=300x100 dtype=f32",
    "update rule=adam decay=0.01 x=300x100 dtype=f32",
    "update rule=adamw decay=0.01 x=300x100 dtype=f32:f16:f32",
    "sample mode=linear outside=zeros x=2x8x30x40 at=2x1x1000x2 dtype=f32",
    "sample mode=nearest outside=edge x=2x8x30x40 at=2x1x1000x2 dtype=f32",
    "sample mode=linear outside=edge x=2x8x30x40 at=7x1x1225x2 mean=25 dtype=f32",
    "sample mode=linear outside=zeros x=2x8x30x40 at=2x2x10800x2 masked=1 dtype=f32",
    "sample_grad mode=linear outside=zeros x=2x8x30x40 at=2x1x1000x2 dtype=f32",
    "sample_grad mode=nearest outside=zeros x=2x8x30x40 at=2x1x1000x2 dtype=f32",
    "sample_grad mode=linear outside=edge x=2x8x30x40 at=7x1x1225x2 mean=25 fixed=1 dtype=f32",
    "sample_grad mode=linear outside=zeros x=2x8x30x40 at=2x2x10800x2 masked=1 dtype=f32",
};
/* clang-format on */

typedef struct tally {
    int right, wrong, crashed;
    char last[900];
    bool layout[4];
} tally;

static const char *const LAYOUTS[] = {"plain", "packed", "nhwc", "any"};

static void count(void *context, const bz_outcome *r)
{
    tally *t = context;
    t->right += r->status == BZ_STATUS_OK;
    t->crashed += r->status == BZ_STATUS_CRASHED || r->status == BZ_STATUS_TIMEOUT;
    for (int i = 0; i < 4; i++)
        t->layout[i] |= r->status == BZ_STATUS_OK && !strcmp(r->layout, LAYOUTS[i]);
    if (r->status == BZ_STATUS_FAILED) {
        t->wrong++;
        snprintf(t->last, sizeof t->last, "%s %s: %s", r->algorithm, r->layout, r->reason);
    }
    if (r->status == BZ_STATUS_OK && r->problem->kind != BZ_PROBLEM_COPY)
        assert_string_equal(r->checked, "ok");
}

static tally run_as(const char *text, bz_run_options o)
{
    bz_problem p;
    bz_error err;
    tally t = {0};
    bz_family families[12];
    int n = 0;
    if (bz_problem_parse(text, &p, &err))
        fail_msg("%s: %s", text, err.text);
    for (int i = 0; i < 4; i++)
        families[n++] = (bz_family){&p, "onednn", LAYOUTS[i], "default"};
    families[n++] = (bz_family){&p, "cblas", "plain", "default"};
    families[n++] = (bz_family){&p, "memory", "plain", "default"};
    families[n++] = (bz_family){&p, "loops", "plain", "default"};
    o.emit = count;
    o.context = &t;
    assert_int_equal(bz_run(families, n, &o, &err), 0);
    return t;
}

static tally run(const char *text, bool cold, int threads)
{
    return run_as(text, (bz_run_options){.setting = {.threads = threads, .cold = cold}, .check_only = true});
}

/* Some variant of every problem must be right, and none may crash. A library's own mistake is no failure of
 * ours, as long as it is found: version 2.6 of oneDNN has a few. Processors without bf16 and
 * builds without code for recurrent networks in integers refuse them. */
static void test_all_kinds(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof PROBLEMS / sizeof *PROBLEMS; i++) {
        tally t = run(PROBLEMS[i], false, 1);
        bool rare = strstr(PROBLEMS[i], "bf16") || strstr(PROBLEMS[i], "hidden=32 dtype=u8") ||
                    strstr(PROBLEMS[i], "dir=bidirectional dtype=u8");
        bool refused = rare && !t.wrong && !t.crashed;
        if ((!t.right && !refused) || t.crashed)
            fail_msg("%s: %d right, %d wrong, %d crashed; %s", PROBLEMS[i], t.right, t.wrong, t.crashed, t.last);
        if (t.wrong && !strstr(PROBLEMS[i], "i8") && !strstr(PROBLEMS[i], "add"))
            fail_msg("%s: %s", PROBLEMS[i], t.last);
    }
}

/* All that our loops take they get right, by one thread and by more. */
static void test_loops(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < 2 * (sizeof OURS / sizeof *OURS); i++) {
        bz_problem p;
        bz_error err;
        tally t = {0};
        if (bz_problem_parse(OURS[i / 2], &p, &err))
            fail_msg("%s: %s", OURS[i / 2], err.text);
        bz_family family = {&p, "loops", "plain", "default"};
        bz_run_options o = {.setting = {.threads = 1 + (int)(i % 2)}, .check_only = true, .emit = count, .context = &t};
        assert_int_equal(bz_run(&family, 1, &o, &err), 0);
        if (t.right != 1 || t.wrong || t.crashed)
            fail_msg("%s: %d right, %d wrong, %d crashed; %s", OURS[i / 2], t.right, t.wrong, t.crashed, t.last);
    }
}

static void test_layouts(void **unused)
{
    (void)unused;
    tally t = run("conv x=1x32x14x14 w=32x32x3x3 pad=1x1x1x1 post=bias,relu dtype=f32", false, 1);
    for (int i = 0; i < 4; i++)
        assert_true(t.layout[i]);
    t = run("gemm m=16 n=32 k=64 transb=1 post=bias dtype=f32", false, 1);
    assert_true(t.layout[0] && t.layout[1] && !t.layout[2] && t.layout[3]);
}

static void test_threads(void **unused)
{
    (void)unused;
    assert_true(run("conv x=2x32x28x28 w=64x32x3x3 pad=1x1x1x1 dtype=f32", false, 2).right > 3);
    assert_true(run("copy read=1000000 write=1000000 dtype=u8", false, 2).right == 2);
    assert_true(run("gemm m=64 n=64 k=64 dtype=f64", false, 2).right == 1);
}

static void test_cold(void **unused)
{
    (void)unused;
    assert_true(run("gemm m=256 n=256 k=256 transb=1 post=bias dtype=f32", true, 1).right > 3);
    assert_true(run("binary fn=add a=64x64 b=64x64 dtype=f32", true, 1).right >= 1);
    /* A look-up reads one row, and has the whole table: copies of that are few, and taking them out of the caches is what takes time. */
    tally t = run_as("gather x=400000x64 n=1 axis=0 dtype=f32:i64:f32",
                     (bz_run_options){.setting = {.threads = 1, .cold = true}, .time_limit = 0.001});
    if (!t.right || t.wrong || t.crashed)
        fail_msg("%d right, %d wrong, %d crashed; %s", t.right, t.wrong, t.crashed, t.last);
}

typedef struct names {
    char algorithm[64][160];
    int n, chosen, chosen_training, references;
} names;

static void keep_name(void *context, const bz_outcome *r)
{
    names *all = context;
    if (r->status == BZ_STATUS_UNSUPPORTED || all->n == 64)
        return;
    for (int i = 0; i < all->n; i++)
        assert_string_not_equal(all->algorithm[i], r->algorithm);
    snprintf(all->algorithm[all->n++], sizeof all->algorithm[0], "%s", r->algorithm);
    all->chosen += r->chosen;
    all->chosen_training += r->chosen_training;
    all->references += !strncmp(r->algorithm, "ref", 3);
}

/* A variant for each implementation, each named otherwise; one of them is the library's own choice, and one for training; its
 * reference stands for itself only. */
static void test_variants(void **unused)
{
    (void)unused;
    static const char *const TEXTS[] = {"conv x=1x32x14x14 w=32x32x3x3 pad=1x1x1x1 dtype=f32",
                                        "conv x=1x32x14x14 w=32x32x1x1 dtype=f32",
                                        "conv x=1x32x14x14 w=32x1x3x3 pad=1x1x1x1 group=32 dtype=f32",
                                        "gemm m=16 n=32 k=64 transb=1 dtype=f32",
                                        "matmul a=4x16x32 b=4x32x16 dtype=f32",
                                        "lstm seq=3 batch=2 input=32 hidden=32 dtype=f32"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        for (int k = 0; k < 4; k++) {
            bz_problem p;
            bz_error err;
            names all = {.n = 0};
            assert_int_equal(bz_problem_parse(TEXTS[i], &p, &err), 0);
            bz_family family = {&p, "onednn", LAYOUTS[k], "default"};
            bz_run_options o = {.check_only = true, .emit = keep_name, .context = &all};
            assert_int_equal(bz_run(&family, 1, &o, &err), 0);
            /* for training there is no fast recurrent one */
            bool trained = all.chosen_training == 1 || !strncmp(TEXTS[i], "lstm", 4);
            if (all.n && (all.chosen != 1 || !trained || (all.references && all.references != all.n)))
                fail_msg("%s %s: %d variants, %d chosen, %d for training, %d references", TEXTS[i], LAYOUTS[k], all.n,
                         all.chosen, all.chosen_training, all.references);
        }
}

/* What cannot be done says why. */
static void keep_reason(void *context, const bz_outcome *r)
{
    bz_outcome *out = context;
    *out = *r;
}

static void test_unsupported(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *backend, *layout, *math, *reason;
    } CASES[] = {
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f64", "onednn", "plain", "default", "no such data type"},
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f32", "cblas", "plain", "default", "matrices only"},
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f32", "onednn", "chwn", "default", "no layout 'chwn'"},
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f32", "onednn", "plain", "fuzzy", "no math mode"},
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f32", "nonesuch", "plain", "default", "not built in"},
        {"conv x=1x8x8x8 w=8x8x3x3 dtype=f32", "../evil", "plain", "default", "there is no backend"},
        {"resample mode=linear coord=align_corners x=1x5x7x7 y=1x5x3x5 dtype=f32", "onednn", "plain", "default",
         "half pixels"},
        {"gemm m=2 n=2 k=2 dtype=f32", "onednn", "nhwc", "default", "no difference"},
        {"transpose x=2x3 perm=1x0 dtype=f32", "memory", "plain", "default", "computes nothing"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_problem p;
        bz_error err;
        bz_outcome r = {0};
        assert_int_equal(bz_problem_parse(CASES[i].text, &p, &err), 0);
        bz_family family = {&p, CASES[i].backend, CASES[i].layout, CASES[i].math};
        bz_run_options o = {.check_only = true, .emit = keep_reason, .context = &r};
        assert_int_equal(bz_run(&family, 1, &o, &err), 0);
        assert_int_equal(r.status, BZ_STATUS_UNSUPPORTED);
        if (!strstr(r.reason, CASES[i].reason))
            fail_msg("%s %s: '%s' does not say '%s'", CASES[i].text, CASES[i].backend, r.reason, CASES[i].reason);
    }
}

/* oneDNN's cache of primitives takes one layout of 1x1 images for the other: it is off. */
static void test_cached_primitive(void **unused)
{
    (void)unused;
    tally t = run("conv x=1x960x1x1 w=240x960x1x1 dtype=f32", false, 1);
    assert_string_equal(t.last, "");
    assert_int_equal(t.wrong, 0);
}

/* Results of an H200 (cuDNN 9.19, cuBLAS 13.1): those whose intermediate steps are rounded are right; those that leave the function
 * out, and a convolution by Winograd's method that is off by as much as TF32 is, are not. */
static void test_tolerance(void **unused)
{
    static const struct {
        const char *problem, *math;
        bz_role role;
        int64_t element;
        double got;
        bool right;
    } SEEN[] = {
        {"gru_grad seq=8 batch=4 input=32 hidden=64 dir=forward lbr=1 dtype=f32", "default", BZ_ROLE_W, 2197,
         0.00113027, true},
        {"lstm_grad seq=8 batch=4 input=32 hidden=64 dir=bidirectional dtype=f16", "default", BZ_ROLE_W, 149,
         0.00952148, true},
        {"lstm seq=8 batch=4 input=32 hidden=64 dir=forward dtype=f32", "tf32", BZ_ROLE_Y, 558, 0.212888, true},
        {"lstm seq=8 batch=4 input=32 hidden=64 dir=forward dtype=f32", "default", BZ_ROLE_Y, 558, 0.212888, false},
        {"conv_norm x=2x64x7x7 w=64x64x3x3 pad=1x1x1x1 before=1 behind=1 dtype=bf16", "default", BZ_ROLE_Y, 4581,
         -4.28125, true},
        {"gemm m=64 n=96 k=128 transb=1 post=bias,gelu_tanh dtype=bf16", "default", BZ_ROLE_Y, 2771, 0.146484, true},
        {"gemm m=64 n=96 k=128 transb=1 post=bias dtype=bf16", "default", BZ_ROLE_Y, 3251, -0.148438, true},
        {"gemm m=64 n=96 k=128 post=relu dtype=f32", "default", BZ_ROLE_Y, 1203, -38.7961, false},
        {"conv_data x=2x16x14x14 w=32x16x3x3 stride=2x2 pad=1x1x1x1 dtype=bf16", "default", BZ_ROLE_Y, 5619, -0.015564,
         true},
        {"conv_weights x=2x16x14x14 w=32x16x3x3 stride=2x2 pad=1x1x1x1 dtype=bf16", "default", BZ_ROLE_Y, 544,
         -0.191406, true},
        {"conv x=1x16x14x14 w=16x16x5x5 pad=2x2x2x2 dtype=f32", "default", BZ_ROLE_Y, 2352, -19.6262, false},
    };
    (void)unused;
    for (size_t k = 0; k < sizeof SEEN / sizeof *SEEN; k++) {
        bz_problem p;
        bz_error err;
        bz_operand operand[BZ_PROBLEM_OPERANDS];
        float *value[BZ_PROBLEM_OPERANDS] = {NULL};
        int found = 0;
        assert_int_equal(bz_problem_parse(SEEN[k].problem, &p, &err), 0);
        int n = bz_problem_operands(&p, operand);
        for (int i = 0; i < n; i++)
            if (!operand[i].result) {
                value[i] = malloc((size_t)operand[i].count * sizeof(float) + 64);
                bz_values_fill(&p, &operand[i], i, value[i]);
            }
        for (int i = 0; i < n; i++) {
            if (!operand[i].result || operand[i].role != SEEN[k].role)
                continue;
            bz_reference r = bz_reference_of(&p, n, operand, (const float *const *)value);
            r.result = i;
            double off = bz_off(&p, bz_reference_at(&r, SEEN[k].element), SEEN[k].got, SEEN[k].math);
            if ((off <= 1) != SEEN[k].right)
                fail_msg("%s: %g of what it may be off", SEEN[k].problem, off);
            bz_reference_free(&r);
            found++;
        }
        assert_int_equal(found, 1);
        for (int i = 0; i < n; i++)
            free(value[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tolerance), cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_cached_primitive),
        cmocka_unit_test(test_loops),     cmocka_unit_test(test_layouts),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_cold),      cmocka_unit_test(test_variants),  cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
