/* What a program does already is not advised, whatever recorded it; and each part of the latency is answered. */
#include "advice/rules.h"
#include "tests/unit/explain_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Every line of the table of states names evidence that there is, and every advice names states that there are. */
static void test_table_of_states(void **state)
{
    static const char *const EVIDENCE[] = {"op",      "made",    "api",      "kernel",   "call",
                                           "weights", "layers",  "apart",    "type",     "cause",
                                           "threads", "streams", "backward", "products", "lacks"};
    bz_arena arena = {0};
    advice_table states, advice;
    (void)state;
    advice_read(bz_state_text, &arena, &states);
    advice_read(bz_advice_text, &arena, &advice);
    for (int i = 0; i < states.n; i++) {
        assert_non_null(advice_line(&states.rule[i], "is", 0));
        assert_true(states.rule[i].n > 1);
        for (int k = 0; k < states.rule[i].n; k++) {
            const char *key = states.rule[i].key[k], *words = states.rule[i].value[k];
            char word[64];
            bool known = !strcmp(key, "is") || !strcmp(key, "of");
            bz_word_next(&words, word, sizeof word);
            for (size_t w = 0; w < sizeof EVIDENCE / sizeof *EVIDENCE; w++)
                known |=
                    (!strcmp(key, "tells") || !strcmp(key, "yes") || !strcmp(key, "no")) && !strcmp(word, EVIDENCE[w]);
            if (!known)
                fail_msg("[%s] %s: %s: no such evidence", states.rule[i].id, key, word);
        }
    }
    for (int i = 0; i < advice.n; i++)
        for (int k = 0; k < advice.rule[i].n; k++) {
            const char *key = advice.rule[i].key[k], *words = advice.rule[i].value[k];
            char word[64];
            while (strstr(key, "moot") && bz_word_next(&words, word, sizeof word)) {
                bool known = false;
                for (int s = 0; s < states.n; s++)
                    known |= !strcmp(states.rule[s].id, word);
                if (!known)
                    fail_msg("[%s] %s: no state %s", advice.rule[i].id, key, word);
            }
        }
    bz_arena_free(&arena);
}

#define CONV(wei) "prop=forward_inference src=f32::blocked:aBcd16b:f0 wei=" wei " problem=mb1_ic3oc32"
#define BLOCKED   "f32::blocked:ABcd16b16a:f0"

static const char *framework; /* of the program */

/* What a state is by a trace: 1 it holds, 0 it does not, -1 nothing tells. */
static int holds(const event *events, size_t n, const char *fact, const char *id)
{
    bz_trace *t = trace_of(events, n);
    bz_arena arena = {0};
    bz_dag dag = {0};
    bz_layers layers = {0};
    bz_analysis a = {.bound = {.system = "", .facts = &bz_system_unknown, .layers = &layers, .dag = &dag}};
    bz_ladder l = {.framework = framework};
    const bz_state *list;
    int answer = -2;
    if (fact)
        bz_trace_fact(t, "threads", fact);
    for (int i = 0, count = advice_states(&a.bound, &l, t, &(const bz_flow){0}, &arena, &list); i < count; i++)
        if (!strcmp(list[i].id, id)) {
            answer = list[i].known ? list[i].holds : -1;
            assert_true(!list[i].known || *list[i].evidence);
        }
    bz_trace_free(t);
    bz_arena_free(&arena);
    return answer;
}

static void test_states(void **state)
{
    static const struct {
        const char *id;
        int holds;
        event e[2];
    } CASES[] = {
        {"prepared", 1, {{BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 10, 20}, {BZ_EVENT_CALL, "sum", 30, 40}}},
        {"prepared",
         0,
         {{BZ_EVENT_CALL, "reorder|src=f32::blocked:abcd:f0 dst=" BLOCKED, 10, 20},
          {BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 30, 40}}},
        {"prepared",
         0,
         {{BZ_EVENT_CALL, "convolution|" CONV("f32::blocked:abcd:f0"), 10, 20}, {BZ_EVENT_CALL, "sum", 30, 40}}},
        {"prepared", 1, {{BZ_EVENT_OP, "forward", 10, 90}, {BZ_EVENT_OP, "aten::to_mkldnn", 30, 40}}},
        {"prepared", 0, {{BZ_EVENT_OP, "aten::conv2d", 10, 20}, {BZ_EVENT_OP, "aten::relu_", 30, 40}}},
        {"prepared", -1, {{BZ_EVENT_CALL, "sgemm", 10, 20}, {BZ_EVENT_CALL, "sgemm", 30, 40}}},
        {"trains",
         1,
         {{BZ_EVENT_OP, "autograd::engine::evaluate_function: AddmmBackward0", 10, 20},
          {BZ_EVENT_OP, "aten::mm", 30, 40}}},
        {"trains", 1, {{BZ_EVENT_CALL, "convolution|prop=backward_weights", 10, 20}, {BZ_EVENT_CALL, "sum", 30, 40}}},
        {"trains", 1, {{BZ_EVENT_KERNEL, "sm80_xmma_wgrad_implicit_gemm", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"trains", -1, {{BZ_EVENT_OP, "aten::conv2d", 10, 20}, {BZ_EVENT_OP, "aten::relu_", 30, 40}}},
        {"compiled", 1, {{BZ_EVENT_OP, "Torch-Compiled Region", 10, 20}, {BZ_EVENT_OP, "aten::conv2d", 30, 40}}},
        {"folded", 0, {{BZ_EVENT_OP, "aten::batch_norm", 10, 20}, {BZ_EVENT_OP, "aten::relu_", 30, 40}}},
        {"folded", -1, {{BZ_EVENT_OP, "aten::linear", 10, 20}, {BZ_EVENT_OP, "aten::relu_", 30, 40}}},
        {"optimized",
         1,
         {{BZ_EVENT_OP, "Conv|name=/conv1/Conv_nchwc_kernel_time", 10, 20}, {BZ_EVENT_OP, "Gemm", 30, 40}}},
        {"optimized", 1, {{BZ_EVENT_OP, "FusedConv", 10, 20}, {BZ_EVENT_OP, "Gemm", 30, 40}}},
        {"optimized", 1, {{BZ_EVENT_OP, "Gelu", 10, 20}, {BZ_EVENT_OP, "MatMul", 30, 40}}},
        {"optimized", 0, {{BZ_EVENT_OP, "Conv", 10, 20}, {BZ_EVENT_OP, "BatchNormalization", 30, 40}}},
        {"optimized", -1, {{BZ_EVENT_OP, "MatMul", 10, 20}, {BZ_EVENT_OP, "Add", 30, 40}}},
        {"bf16",
         1,
         {{BZ_EVENT_CALL, "convolution|" CONV("bf16::blocked:ABcd16b16a:f0"), 10, 20},
          {BZ_EVENT_CALL, "reorder|src=f32::blocked:abcd:f0 dst=bf16::blocked:abcd:f0", 30, 40}}},
        {"bf16", 0, {{BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 10, 20}, {BZ_EVENT_CALL, "sum", 30, 40}}},
        {"f16",
         0,
         {{BZ_EVENT_CALL, "convolution|" CONV("bf16::blocked:ABcd16b16a:f0"), 10, 20}, {BZ_EVENT_CALL, "sum", 30, 40}}},
        {"bf16", 0, {{BZ_EVENT_CALL, "sgemm", 10, 20}, {BZ_EVENT_CALL, "sgemm", 30, 40}}},
        {"bf16", 0, {{BZ_EVENT_OP, "Conv|inputs=[{float:[1,3,8,8]}]", 10, 20}, {BZ_EVENT_OP, "Gemm", 30, 40}}},
        {"bf16", -1, {{BZ_EVENT_OP, "aten::conv2d", 10, 20}, {BZ_EVENT_OP, "aten::relu_", 30, 40}}},
        {"f16", 1, {{BZ_EVENT_KERNEL, "volta_fp16_s884cudnn_fp16_128x128", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"int8", 1, {{BZ_EVENT_OP, "QLinearConv", 10, 20}, {BZ_EVENT_OP, "Reshape", 30, 40}}},
        {"f16", 1, {{BZ_EVENT_KERNEL, "nvjet_sm90_hsh_96x128_64x7", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"f16", 0, {{BZ_EVENT_KERNEL, "volta_h884gemm_64x64", 10, 20}, {BZ_EVENT_KERNEL, "volta_sgemm_64x64", 30, 40}}},
        {"int8", 1, {{BZ_EVENT_KERNEL, "turing_int8_i8816cudnn_int8", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"tf32", 0, {{BZ_EVENT_KERNEL, "volta_scudnn_128x64", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        /* PyTorch's default: convolutions in TF32, products not */
        {"tf32",
         0,
         {{BZ_EVENT_KERNEL, "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32", 10, 20},
          {BZ_EVENT_KERNEL, "ampere_sgemm_128x64_tn", 30, 90}}},
        {"tf32",
         1,
         {{BZ_EVENT_KERNEL, "cutlass_80_tensorop_s1688gemm_128x256_16x3", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"searched",
         1,
         {{BZ_EVENT_CALL, "cudnnFindConvolutionForwardAlgorithmEx", 10, 20},
          {BZ_EVENT_CALL, "cudnnConvolutionForward", 30, 40}}},
        {"searched",
         0,
         {{BZ_EVENT_CALL, "cudnnGetConvolutionForwardAlgorithm_v7", 10, 20},
          {BZ_EVENT_CALL, "cudnnConvolutionForward", 30, 40}}},
        {"graphs", 0, {{BZ_EVENT_KERNEL, "relu", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        /* other runtimes name their calls alike */
        {"graphs", 1, {{BZ_EVENT_API, "hipGraphLaunch", 10, 20}, {BZ_EVENT_API, "hipLaunchKernel", 30, 40}}},
        {"graphs", 0, {{BZ_EVENT_API, "hipExtModuleLaunchKernel", 10, 20}, {BZ_EVENT_API, "hipMemcpyAsync", 30, 40}}},
        {"no-channels", 1, {{BZ_EVENT_OP, "aten::contiguous", 10, 20}, {BZ_EVENT_OP, "aten::mm", 30, 40}}},
        {"no-channels", 0, {{BZ_EVENT_OP, "aten::contiguous", 10, 20}, {BZ_EVENT_OP, "aten::conv2d", 30, 40}}},
        {"no-channels", 0, {{BZ_EVENT_KERNEL, "volta_scudnn_128x64", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
        {"streams", 0, {{BZ_EVENT_KERNEL, "relu", 10, 20}, {BZ_EVENT_KERNEL, "relu", 30, 40}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int found = holds(CASES[i].e, 2, NULL, CASES[i].id);
        if (found != CASES[i].holds)
            fail_msg("case %zu, %s of %s: %d", i, CASES[i].id, CASES[i].e[0].name, found);
    }
    static const event GELU[] = {{BZ_EVENT_OP, "GeluBackward0", 10, 20}, {BZ_EVENT_OP, "aten::mm", 30, 40}};
    framework = "PyTorch";
    assert_int_equal(holds(GELU, 2, NULL, "optimized"), -1); /* a state of ONNX Runtime's programs */
    framework = NULL;
    assert_int_equal(holds(CASES[0].e, 2, "1", "one-thread"), 1);
    assert_int_equal(holds(CASES[0].e, 2, "2", "one-thread"), 0);
    assert_int_equal(holds(CASES[0].e, 2, NULL, "one-thread"), -1);
}

/* A convolution and its batch normalization, by a program that runs each layer, or folds one into the other; the same program
 * by three recorders. */
typedef struct program {
    event e[3];
    size_t n;
    const char *framework;
    bool folds;
} program;

static const bz_fusion_row FUSED = {.pattern = "conv+batchnorm", .places = 1, .covered = 1, .gain = 4e-4, .fused = -1};

/* What it is told to do, and whether a number stands with that. */
static const char *advice_of(const program *p, bz_arena *arena, const bz_answer **answer, int *n_answers)
{
    static const int BOTH[] = {0, 1}, FIRST[] = {0}, SECOND[] = {1}, PREDS[] = {0}, ENDS[] = {0, 0, 1};
    bz_trace *t = trace_of(p->e, p->n);
    bz_dag dag = {.n = 2, .first = (int *)ENDS, .pred = (int *)PREDS};
    bz_layer layer[] = {{.name = "conv", .kind = "conv", .macs = 9}, {.name = "norm", .kind = "batchnorm"}};
    bz_layers layers = {.layer = layer, .n = 2};
    bz_bound_layer bound[] = {{.layer = &layer[0], .node = 0, .times = 1}, {.layer = &layer[1], .node = 1, .times = 1}};
    bz_bound_place place = {.pattern = "conv+batchnorm", .layer = BOTH, .n = 2};
    bz_fusion_row row = FUSED;
    bz_fusion fusion = {.row = &row, .n = 1, .sequential = FUSED.gain};
    bz_aligned folded[] = {
        {.kind = BZ_ALIGNED_FUSED, .layer = BOTH, .n_layers = 2, .problem = "conv", .seconds = 9e-4}};
    bz_aligned alone[] = {
        {.kind = BZ_ALIGNED_SAME, .layer = FIRST, .n_layers = 1, .problem = "conv", .seconds = 5e-4, .bound = NAN},
        {.kind = BZ_ALIGNED_MISSING, .layer = SECOND, .n_layers = 1, .seconds = NAN, .bound = NAN}};
    bz_alignment alignment = {.timeline = true, .row = p->folds ? folded : alone, .n = p->folds ? 1 : 2};
    bz_waterfall waterfall = {.from = 1e-3, .to = 6e-4, .step = {{BZ_RUNG_FUSION, "fusion", 4e-4}}, .n = 1};
    bz_analysis a = {.bound = {.system = "",
                               .facts = &bz_system_unknown,
                               .layers = &layers,
                               .dag = &dag,
                               .layer = bound,
                               .n = 2,
                               .fused = {.wanted = true, .place = &place, .n_places = 1},
                               .sequential = 1e-3,
                               .path.seconds = 1e-3},
                     .fusion = &fusion};
    bz_ladder l;
    bz_buf text = {0};
    bz_ladder_make(&a.bound, t, "made up", arena, &l);
    l.alignment = &alignment;
    l.waterfall = &waterfall;
    l.framework = p->framework;
    int n = bz_advice_make(&a, &l, t, NULL, arena);
    for (int i = 0; i < n; i++) {
        const bz_advice *x = &l.advice[i];
        const char *step = strstr(x->step, "optimize_for_inference") ? "freeze"
                           : strstr(x->step, "ORT_ENABLE_ALL")       ? "optimize"
                                                                     : x->id;
        if (!text.len || !strstr(bz_buf_text(&text), step))
            bz_buf_printf(&text, "%s%s%s%s", text.len ? ", " : "", strncmp(x->what, "If ", 3) ? "" : "if ", step,
                          isfinite(x->gain) ? "" : " ?");
    }
    *answer = l.answer;
    *n_answers = l.n_answers;
    const char *copy = bz_arena_str(arena, bz_buf_text(&text));
    bz_buf_free(&text);
    bz_trace_free(t);
    return copy;
}

/* Who has taken a step is not told to take it, whatever recorded him; and each item of the ladder is answered. */
static void test_done_already(void **state)
{
    static const struct {
        program p;
        const char *advice, *why;
    } CASES[] = {
        /* PyTorch, each layer by itself: our own recording, PyTorch's profiler, the library's log */
        {{{{BZ_EVENT_CALL, "reorder|src=f32::blocked:abcd:f0 dst=" BLOCKED, 10, 20},
           {BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 30, 500}},
          2,
          "PyTorch",
          false},
         "freeze",
         NULL},
        {{{{BZ_EVENT_OP, "aten::conv2d", 10, 500}, {BZ_EVENT_OP, "aten::batch_norm", 510, 900}}, 2, "PyTorch", false},
         "freeze",
         NULL},
        {{{{BZ_EVENT_CALL, "reorder|src=f32::blocked:abcd:f0 dst=" BLOCKED, 10, 20},
           {BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 30, 500}},
          2,
          NULL,
          false},
         "freeze",
         NULL},
        /* frozen: the same three */
        {{{{BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 30, 900}}, 1, "PyTorch", true},
         "",
         "the program prepares its weights"},
        {{{{BZ_EVENT_OP, "forward", 10, 900}, {BZ_EVENT_OP, "aten::to_mkldnn", 20, 30}}, 2, "PyTorch", true},
         "",
         "the program prepares its weights"},
        {{{{BZ_EVENT_CALL, "convolution|" CONV(BLOCKED), 30, 900}}, 1, NULL, true},
         "",
         "1 of 1 layers of kind batchnorm"},
        /* ONNX Runtime: as written, optimized, and without anything that tells */
        {{{{BZ_EVENT_OP, "Conv", 10, 500}, {BZ_EVENT_OP, "BatchNormalization", 510, 900}}, 2, "ONNX Runtime", false},
         "optimize",
         NULL},
        {{{{BZ_EVENT_OP, "FusedConv", 10, 900}}, 1, "ONNX Runtime", true}, "", "that ONNX Runtime's optimizer made"},
        {{{{BZ_EVENT_OP, "Conv", 10, 900}}, 1, "ONNX Runtime", true}, "if optimize ?", NULL},
    };
    bz_arena arena = {0};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const bz_answer *answer;
        int n;
        const char *found = advice_of(&CASES[i].p, &arena, &answer, &n);
        if (strcmp(found, CASES[i].advice) != 0)
            fail_msg("case %zu: %s", i, found);
        assert_int_equal(n, 1);
        assert_string_equal(answer->item, "fusion");
        assert_true(!answer->advice == !!answer->why && !answer->why == !CASES[i].why);
        if (CASES[i].why && !strstr(answer->why, CASES[i].why))
            fail_msg("case %zu: %s", i, answer->why);
    }
    bz_arena_free(&arena);
}

/* Of each item over 5 % of the latency: its advice, or that none is known; not of what is smaller. */
static void test_answers(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_OP, "Conv", 10, 400}, {BZ_EVENT_OP, "Reshape", 500, 900}};
    bz_arena arena = {0};
    bz_dag dag = {.n = 1};
    bz_layer layer = {.name = "first", .kind = "conv"};
    bz_layers layers = {.layer = &layer, .n = 1};
    bz_cause causes[] = {
        {.kind = BZ_CAUSE_CONSTANTS_COMPUTED,
         .id = "constants-computed",
         .name = "work on constants",
         .busy = true,
         .count = 1,
         .seconds = 2e-4},
        {.kind = BZ_CAUSE_FILLED,
         .id = "filled",
         .name = "buffers filled",
         .busy = true,
         .count = 1,
         .seconds = 1.5e-4},
        {.kind = BZ_CAUSE_LAYERS_OUTSIDE, .id = "layers-outside", .name = "own", .count = 1, .seconds = 2.7e-4},
        {.kind = BZ_CAUSE_GAPS,
         .id = "gaps",
         .name = "time between calls that nothing explains",
         .count = 1,
         .seconds = 4e-5}};
    bz_aligned outside = {.kind = BZ_ALIGNED_MISSING, .bound = 2e-4};
    bz_alignment alignment = {.timeline = true, .row = &outside, .n = 1, .cause = causes, .n_causes = 4};
    bz_waterfall waterfall = {.from = 1e-3,
                              .to = 1e-4,
                              .step = {{BZ_RUNG_BETWEEN, "between", 4e-5},
                                       {BZ_RUNG_EXTRA, "extra", 3.6e-4},
                                       {BZ_RUNG_SLOWER, "slower", 2.3e-4},
                                       {BZ_RUNG_OUTSIDE, "own layers", 7e-5},
                                       {BZ_RUNG_FUSION, "fusion", -2e-4}},
                              .n = 5};
    bz_analysis a = {.bound = {.system = "",
                               .facts = &bz_system_unknown,
                               .layers = &layers,
                               .dag = &dag,
                               .sequential = 3e-4,
                               .path.seconds = 3e-4}};
    bz_trace *t = trace_of(EVENTS, 2);
    bz_ladder l;
    (void)state;
    bz_ladder_make(&a.bound, t, "made up", &arena, &l);
    l.alignment = &alignment;
    l.waterfall = &waterfall;
    l.framework = "ONNX Runtime";
    bz_advice_make(&a, &l, t, NULL, &arena);
    static const struct {
        const char *item, *step, *advice;
    } EXPECTED[] = {{"own", "own layers", "best-implementations"},
                    {"slower", "slower", NULL},
                    {"work on constants", "extra", "constants"},
                    {"buffers filled", "extra", NULL}};
    assert_int_equal(l.n_answers, 4);
    for (int i = 0; i < 4; i++) {
        const bz_answer *answer = &l.answer[i];
        assert_string_equal(answer->item, EXPECTED[i].item);
        assert_string_equal(answer->step, EXPECTED[i].step);
        if (EXPECTED[i].advice)
            assert_true(!answer->why && !strcmp(answer->advice, EXPECTED[i].advice));
        else
            assert_true(!answer->advice && strstr(answer->why, "no advice is known"));
    }
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Calls of BLAS have no word for a gradient. Column by column a layer from i to o of b rows is m=o n=b k=i with the weights turned over. */
static void test_products_back(void **state)
{
    static const struct {
        bool trains;
        const char *first, *second;
    } CASES[] = {
        {true, "transa=T transb=N m=20 n=8 k=30", "transa=N transb=T m=30 n=20 k=8"},   /* the weights' gradient */
        {false, "transa=T transb=N m=20 n=8 k=30", "transa=N transb=T m=40 n=20 k=8"},  /* of another layer's */
        {false, "transa=T transb=N m=20 n=8 k=30", "transa=N transb=N m=30 n=20 k=8"},  /* nothing is turned over */
        {false, "transa=T transb=N m=8 n=8 k=30", "transa=N transb=N m=30 n=8 k=8"},    /* attention: scores, values */
        {false, "transa=T transb=N m=30 n=8 k=30", "transa=T transb=N m=30 n=8 k=30"},  /* two layers */
        {false, "transa=N transb=N m=20 n=8 k=30", "transa=N transb=T m=30 n=20 k=8"},  /* none before it */
        {false, "transa=T transb=N m=20 n=8 k=300", "transa=N transb=T m=30 n=20 k=8"}, /* of other columns */
        {false, "transa=T transb=N m=20 n=9 k=30", "transa=N transb=T m=30 n=20 k=8"},  /* of other rows */
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char name[2][80];
        bz_flow flow;
        bz_error err;
        snprintf(name[0], sizeof name[0], "sgemm|%s", CASES[i].first);
        snprintf(name[1], sizeof name[1], "sgemm|%s", CASES[i].second);
        const event events[] = {{BZ_EVENT_CALL, name[0], 10, 20}, {BZ_EVENT_CALL, name[1], 30, 40}};
        bz_trace *t = trace_of(events, 2);
        assert_int_equal(bz_flow_make(t, bz_typical_iteration(t), &flow, &err), 0);
        if (CASES[i].trains)
            assert_string_equal(bz_flow_trains(&flow), "sgemm");
        else
            assert_null(bz_flow_trains(&flow));
        bz_flow_free(&flow);
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table_of_states), cmocka_unit_test(test_states),
                                       cmocka_unit_test(test_products_back), cmocka_unit_test(test_done_already),
                                       cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
