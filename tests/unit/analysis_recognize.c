/* Which model a recording may be of, where calls tell the sizes of their products. */
#include "analysis/analysis.h"
#include "analysis/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PRODUCTS = 24 };

static int recognize(const bz_trace *t, const bz_candidate *candidate, bz_arena *arena, bz_fit *fit)
{
    bz_rebuilt rebuilt;
    bz_rebuild(t, arena, &rebuilt);
    return recording_recognize(t, &rebuilt, candidate, 1, arena, fit);
}

/* A network of products alone: two in three of one size, one in three four times as large, as a transformer has them. */
static int64_t size_of(int i)
{
    return i % 3 ? 1000000 : 4000000;
}

/* Three iterations; each product takes `batch` times what the model's does, or all of them the same. */
static bz_trace *record(int64_t batch, bool equal)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "made"), 1, 1);
    for (int i = 0; i < 3 * PRODUCTS; i++) {
        char text[160];
        int64_t at = (int64_t)i * 1000 + (int64_t)(i / PRODUCTS) * 100000;
        if (i % PRODUCTS == 0)
            bz_trace_add(t, BZ_EVENT_RANGE, at, at + PRODUCTS * 1000, bz_trace_text(t, "benanza_iteration"), lane);
        int64_t rows = 10 * batch, k = (equal ? 1000000 : size_of(i % PRODUCTS)) / 1000;
        snprintf(text, sizeof text, "transa=T transb=N m=100 n=%lld k=%lld lda=%lld ldb=%lld ldc=100", (long long)rows,
                 (long long)k, (long long)k, (long long)k);
        size_t c = bz_trace_add(t, BZ_EVENT_CALL, at + 10, at + 900, bz_trace_text(t, "sgemm"), lane);
        bz_events *e = &t->event[BZ_EVENT_CALL];
        e->library[c] = BZ_LIBRARY_BLAS;
        e->flags[c] = BZ_CALL_EXECUTES;
        e->detail[c] = bz_trace_text(t, text);
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

static void sizes_tell_more_than_an_order_of_products(void **state)
{
    bz_layer *layer = bz_zeroed(PRODUCTS, sizeof *layer);
    (void)state;
    for (int i = 0; i < PRODUCTS; i++)
        layer[i] = (bz_layer){.index = i,
                              .kind = "gemm",
                              .key = size_of(i) > 1000000 ? "large" : "small",
                              .class = BZ_COMPUTE,
                              .name = "product",
                              .macs = size_of(i)};
    bz_layers layers = {.layer = layer, .n = PRODUCTS};
    bz_candidate candidate = {"made.onnx", "given", &layers};
    static const struct {
        int64_t batch;
        bool equal;
        int fits;
    } CASES[] = {{1, false, 1}, {7, false, 1}, {1, true, 0}, {16, true, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        bz_fit fit;
        bz_trace *t = record(CASES[i].batch, CASES[i].equal);
        if (recognize(t, &candidate, &arena, &fit) != CASES[i].fits)
            fail_msg("batch %lld, %s sizes: %g alike", (long long)CASES[i].batch, CASES[i].equal ? "equal" : "its own",
                     fit.likeness);
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
    free(layer);
}

/* Of the sizes that `record` makes. A framework computes pointwise convolutions by products, one for each image; and it has pools of its own, which
 * no library knows. */
static void products_may_be_convolutions(void **state)
{
    enum { LAYERS = PRODUCTS / 3 * 2 };
    bz_layer *layer = bz_zeroed(LAYERS + 1, sizeof *layer);
    const bz_dim x[] = {2, 100, 100, 50};
    (void)state;
    for (bz_dim kernel = 1; kernel <= 3; kernel += 2) {
        const bz_dim w[] = {100, 100, kernel, kernel};
        const bz_type in[] = {{.rank = 4, .dims = x}, {.rank = 4, .dims = w}};
        for (int i = 0; i < LAYERS; i++)
            layer[i] = (bz_layer){.index = i,
                                  .kind = "conv",
                                  .key = i % 2 ? "small" : "large",
                                  .class = BZ_COMPUTE,
                                  .name = "conv",
                                  .in = in,
                                  .n_in = 2,
                                  .macs = i % 2 ? 2000000 : 4000000};
        layer[LAYERS] = (bz_layer){.index = LAYERS, .kind = "maxpool", .class = BZ_COMPUTE, .name = "pool"};
        bz_layers layers = {.layer = layer, .n = LAYERS + 1};
        bz_candidate candidate = {"made.onnx", "given", &layers};
        bz_arena arena = {0};
        bz_fit fit;
        bz_trace *t = record(1, false);
        assert_int_equal(recognize(t, &candidate, &arena, &fit), kernel == 1);
        if (kernel == 1)
            assert_string_equal(fit.evidence,
                                "recorded / in the model: convolutions 0 / 16, matrix products 16 / 0; all in "
                                "the model's order");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
    free(layer);
}

/* A network of products behind a single convolution is an image's, and none of products alone. */
static void a_convolution_is_none_of_a_model_without(void **state)
{
    enum { N = 40 };
    bz_layer layer[N];
    (void)state;
    for (int i = 0; i < N; i++)
        layer[i] =
            (bz_layer){.index = i, .kind = "gemm", .key = "g", .class = BZ_COMPUTE, .name = "product", .macs = 9};
    bz_layers layers = {.layer = layer, .n = N};
    bz_candidate candidate = {"made.onnx", "given", &layers};
    for (int conv = 0; conv < 2; conv++) {
        bz_error err;
        bz_arena arena = {0};
        bz_fit fit;
        bz_trace *t = bz_trace_new();
        uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "made"), 1, 1);
        for (int i = 0; i < 3 * (N + 1); i++) {
            int64_t at = (int64_t)i * 1000;
            if (i % (N + 1) == 0)
                bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * (N + 1), bz_trace_text(t, "benanza_iteration"), lane);
            bz_trace_add(t, BZ_EVENT_OP, at + 10, at + 900,
                         bz_trace_text(t, i % (N + 1) ? "aten::addmm"
                                          : conv      ? "aten::conv2d"
                                                      : "aten::relu"),
                         lane);
        }
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(recognize(t, &candidate, &arena, &fit), !conv);
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Three iterations of pairs: an operator on such operands, and another one behind it. */
enum { PAIRS = 10 };
static bz_trace *record_pairs(const char *op, const char *operands, const char *behind)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "PyTorch trace"), 1, 1);
    for (int i = 0; i < 3 * 2 * PAIRS; i++) {
        int64_t at = (int64_t)i * 10000;
        if (i % (2 * PAIRS) == 0)
            bz_trace_add(t, BZ_EVENT_RANGE, at, at + 20000 * PAIRS, bz_trace_text(t, "benanza_iteration"), lane);
        size_t e = bz_trace_add(t, BZ_EVENT_OP, at + 10, at + 9000, bz_trace_text(t, i % 2 ? behind : op), lane);
        t->event[BZ_EVENT_OP].detail[e] = bz_trace_text(t, i % 2 ? "" : operands);
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

/* Networks of one sequence differ by the widths of their weights, by groups, and by their activations; where no sizes were recorded, what is told is
 * a guess of any width. PyTorch runs no convolution as a product of its own. */
static void weights_tell_networks_of_one_sequence(void **state)
{
    static const struct {
        const char *op, *operands, *behind;
        int fits;
        bool sized;
    } CASES[] = {{"aten::conv2d", "inputs=[[2,8,9,9],[8,8,1,1],[],[],[],[],[]]", "aten::relu", 1, true},
                 {"aten::conv2d", "inputs=[[2,16,9,9],[16,16,1,1],[],[],[],[],[]]", "aten::relu", 0, true},
                 {"aten::conv2d", "inputs=[[2,8,9,9],[8,4,1,1],[],[],[],[],[]]", "aten::relu", 0, true},
                 {"aten::conv2d", "", "aten::relu", 1, false},
                 {"aten::conv2d", "", "aten::hardtanh", 0, false},
                 {"aten::linear", "", "aten::relu", 0, false}};
    enum { N = 2 * PAIRS };
    bz_layer layer[N];
    const bz_dim x[] = {1, 8, 9, 9}, w[] = {8, 8, 1, 1};
    const bz_type in[] = {{.rank = 4, .dims = x}, {.rank = 4, .dims = w}};
    const bool constant[] = {false, true};
    (void)state;
    for (int i = 0; i < N; i += 2) {
        layer[i] = (bz_layer){.index = i,
                              .kind = "conv",
                              .key = "c",
                              .class = BZ_COMPUTE,
                              .name = "conv",
                              .in = in,
                              .in_constant = constant,
                              .n_in = 2,
                              .macs = 9};
        layer[i + 1] = (bz_layer){.index = i + 1, .kind = "relu", .key = "r", .class = BZ_COMPUTE, .name = "relu"};
    }
    bz_layers layers = {.layer = layer, .n = N};
    bz_candidate candidate = {"made.onnx", "given", &layers};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        bz_fit fit;
        bz_trace *t = record_pairs(CASES[i].op, CASES[i].operands, CASES[i].behind);
        int fits = recognize(t, &candidate, &arena, &fit);
        if (fits != CASES[i].fits || fit.sized != CASES[i].sized)
            fail_msg("case %zu: %d fit, %s sizes", i, fits, fit.sized ? "by" : "without");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Steps of a training: so many passes through five convolutions and back, and an update of their weights where `updates`. */
enum { CONVS = 5, STEPS = 9 };
static bz_trace *record_training(int passes, bool updates)
{
    static const char *const BEHIND[CONVS] = {"aten::relu", "aten::gelu", "aten::batch_norm", "aten::mul", "aten::add"};
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "PyTorch trace"), 1, 1);
    int64_t at = 0;
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < passes * 2 * CONVS; k++, at += 60000) {
            bool back = k / CONVS % 2;
            bz_trace_add(
                t, BZ_EVENT_OP, at, at + 20000,
                bz_trace_text(t, back ? "autograd::engine::evaluate_function: ConvolutionBackward0" : "aten::conv2d"),
                lane);
            if (back)
                bz_trace_add(t, BZ_EVENT_OP, at + 10, at + 19000, bz_trace_text(t, "aten::convolution_backward"), lane);
            else
                bz_trace_add(t, BZ_EVENT_OP, at + 30000, at + 50000, bz_trace_text(t, BEHIND[k % CONVS]), lane);
        }
        if (updates)
            bz_trace_add(t, BZ_EVENT_OP, at, at + 20000, bz_trace_text(t, "Optimizer.step#SGD.step"), lane);
        at += 30000;
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

/* The way back of a recording is told apart from what the model runs forward, and so is the model's; and an optimizer's steps tell iterations, however
 * often the model runs for one. */
static void a_training_is_counted_by_what_runs_forward(void **state)
{
    static const struct {
        int passes;
        bool updates;
    } CASES[] = {{1, false}, {1, true}, {2, true}};
    enum { N = 3 * CONVS };
    bz_layer layer[N];
    bz_train_phase phase[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        phase[i] = i < CONVS ? BZ_TRAIN_FORWARD : BZ_TRAIN_BACKWARD;
        layer[i] = (bz_layer){.index = i,
                              .kind = i < CONVS ? "conv" : "conv_grad",
                              .key = "c",
                              .class = BZ_COMPUTE,
                              .name = "conv",
                              .macs = 9};
    }
    bz_layers layers = {.layer = layer, .n = N, .phase = phase};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_trace *t = record_training(CASES[i].passes, CASES[i].updates);
        uint32_t before = t->n_iterations;
        assert_true(!CASES[i].updates || (before == STEPS && !bz_trace_recount(t, STEPS / 3)));
        bz_recording_refit(t, &layers);
        if (t->n_iterations != before)
            fail_msg("case %zu: %u iterations were %u", i, t->n_iterations, before);
        bz_trace_free(t);
    }
}

/* Six iterations of four blocks, each two products and ten heads, which are a layer of the model and many calls; and `last`, at the end of the fourth
 * block. That one is the typical one: others take less, or more. */
enum { BLOCKS = 4, HEADS = 10, ITERATIONS = 6, OF_BLOCK = 3 };
static const int CALLS[] = {1, 1, HEADS}, K[] = {400, 100, 10};

static void add_product(bz_trace *t, uint32_t lane, int64_t *at, int64_t took, int k)
{
    char text[160];
    snprintf(text, sizeof text, "transa=N transb=N m=100 n=100 k=%d", k);
    size_t e = bz_trace_add(t, BZ_EVENT_CALL, *at, *at + took - 100, bz_trace_text(t, "sgemm"), lane);
    t->event[BZ_EVENT_CALL].library[e] = BZ_LIBRARY_BLAS;
    t->event[BZ_EVENT_CALL].flags[e] = BZ_CALL_EXECUTES;
    t->event[BZ_EVENT_CALL].detail[e] = bz_trace_text(t, text);
    *at += took;
}

static bz_trace *record_blocks(bool last)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "made"), 1, 1);
    int64_t at = 0;
    for (int i = 0; i < ITERATIONS; i++, at += 20000)
        for (int block = 0; block < BLOCKS; block++) {
            int64_t took = block == 3 ? 1000 : block == 0 || (block == 1 && i < 3) ? 900 : 1300;
            for (int kind = 0; kind < OF_BLOCK; kind++)
                for (int c = 0; c < CALLS[kind]; c++)
                    add_product(t, lane, &at, took, K[kind]);
            if (last && block == 3)
                add_product(t, lane, &at, took, 90);
        }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_true(bz_trace_recount(t, ITERATIONS * BLOCKS));
    bz_trace_recount(t, ITERATIONS);
    assert_int_equal(t->n_iterations, ITERATIONS);
    return t;
}

/* A model of another length, that multiplies twice as much, finds no more iterations than there were; and one of this length finds them where blocks
 * were taken for iterations. */
static void heads_are_no_iterations(void **state)
{
    static const char *const KEYS[] = {"wide", "narrow", "heads"};
    enum { N = BLOCKS * OF_BLOCK };
    bz_layer layer[N + 1];
    (void)state;
    for (int last = 0; last < 2; last++)
        for (int twice = 1; twice >= 0; twice--) {
            bz_trace *t = record_blocks(last);
            for (int i = 0; i <= N; i++)
                layer[i] = (bz_layer){.index = i,
                                      .kind = "matmul",
                                      .key = i < N ? KEYS[i % 3] : "last",
                                      .class = BZ_COMPUTE,
                                      .name = "product",
                                      .macs = (int64_t)10000 * (1 + twice) * (i < N ? CALLS[i % 3] * K[i % 3] : 90)};
            bz_layers layers = {.layer = layer, .n = N + last};
            if (!twice)
                assert_true(bz_trace_recount(t, ITERATIONS * BLOCKS));
            assert_int_equal(bz_recording_refit(t, &layers), !twice);
            assert_int_equal(t->n_iterations, ITERATIONS);
            bz_trace_free(t);
        }
}

/* A recurrent layer repeats within an iteration as layers do; a model of two layers says what one is, by what it multiplies. */
static void a_short_model_tells_its_iterations(void **state)
{
    static const struct {
        int64_t macs; /* of the first layer; the second has 1000 */
        bool open;
    } CASES[] = {{8 * 100 * 100 * 40, false}, {8 * 100 * 100 * 80, true}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_layer layer[] = {{.kind = "lstm", .key = "a", .class = BZ_COMPUTE, .name = "a", .macs = CASES[i].macs},
                            {.kind = "gemm", .key = "b", .class = BZ_COMPUTE, .name = "b", .macs = 1000}};
        bz_layers layers = {.layer = layer, .n = 2};
        bz_error err;
        bz_trace *t = bz_trace_new();
        uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made", "made"), 1, 1);
        int64_t at = 0;
        for (int k = 0; k < 8 * ITERATIONS; k++, at += k % 8 ? 0 : 20000)
            add_product(t, lane, &at, 1000, 40);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_trace_recount(t, ITERATIONS);
        assert_int_equal(t->n_iterations, ITERATIONS);
        assert_non_null(bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN));
        assert_false(bz_recording_refit(t, &layers));
        assert_int_equal(bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN) != NULL, CASES[i].open);
        bz_trace_free(t);
    }
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(sizes_tell_more_than_an_order_of_products),
                                              cmocka_unit_test(products_may_be_convolutions),
                                              cmocka_unit_test(a_convolution_is_none_of_a_model_without),
                                              cmocka_unit_test(weights_tell_networks_of_one_sequence),
                                              cmocka_unit_test(a_training_is_counted_by_what_runs_forward),
                                              cmocka_unit_test(heads_are_no_iterations),
                                              cmocka_unit_test(a_short_model_tells_its_iterations)};
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
