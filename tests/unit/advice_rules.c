/* The rules of matrix units and the table of advice, on names from real recordings and on traces made by hand. */
#include "advice/rules.h"
#include "explain/units.h"
#include "tests/unit/explain_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_names(void **state)
{
    static const struct {
        const char *name, *unit;
    } CASES[] = {
        {"volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1", "Tensor Cores"},
        {"volta_h884gemm_64x64_ldg8_nn", "Tensor Cores"},
        {"turing_fp16_s1688cudnn_fp16_256x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1", "Tensor Cores"},
        {"turing_int8_i8816cudnn_int8_256x64_ldg16_relu_singleBuffer_small_nt_v1", "Tensor Cores"},
        {"ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn", "Tensor Cores"},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4>", "Tensor Cores"},
        {"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", "Tensor Cores"},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
         "Tensor Cores"},
        {"volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", NULL},
        {"volta_scudnn_128x64_relu_interior_nn_v1", NULL},
        {"volta_sgemm_128x64_nn", NULL},
        {"void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>", NULL},
        {"cgemm_32x32_tn", NULL},
        {"void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", NULL},
        {"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x8_stage3_g1_ffma_aligna4",
         NULL},
        {"onednn brgconv:avx512_core_bf16 any", "AVX512-BF16"},
        {"jit:avx512_core_amx_bf16", "AMX"},
        {"brgconv_1x1:avx512_core_vnni", "AVX512-VNNI"},
        {"jit_wino_4x3:avx512_core", NULL},
        {"jit:avx2", NULL},
        {"", NULL},
    };
    bz_arena arena = {0};
    bz_unit_rules rules;
    (void)state;
    bz_unit_rules_read(bz_units_text, &arena, &rules);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *unit = bz_unit_of_name(&rules, CASES[i].name);
        if (!unit != !CASES[i].unit || (unit && strcmp(unit, CASES[i].unit) != 0))
            fail_msg("%s: %s", CASES[i].name, unit ? unit : "no unit");
    }
    assert_string_equal(
        bz_unit_of_log(&rules, "CUDNN_TENSOR_OP_MATH", "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM"),
        "Tensor Cores");
    assert_null(bz_unit_of_log(&rules, "CUDNN_TENSOR_OP_MATH", "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM"));
    assert_null(bz_unit_of_log(&rules, "CUDNN_DEFAULT_MATH", "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM"));
    bz_arena_free(&arena);
}

/* Every line of the table is one that the program knows, and says all that it must. */
static void test_table_of_units(void **state)
{
    static const struct {
        const char *what;
        int least, most;
    } WHAT[] = {{"used", 3, BZ_UNIT_WORDS}, {"not", 2, BZ_UNIT_WORDS},      {"has", 4, 4}, {"type", 5, 5},
                {"math", 3, BZ_UNIT_WORDS}, {"algorithm", 3, BZ_UNIT_WORDS}};
    bz_arena arena = {0};
    bz_unit_rules rules;
    (void)state;
    bz_unit_rules_read(bz_units_text, &arena, &rules);
    for (int i = 0; i < rules.n; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof WHAT / sizeof *WHAT; k++)
            known |= !strcmp(rules.rule[i].word[0], WHAT[k].what) && rules.rule[i].n >= WHAT[k].least &&
                     rules.rule[i].n <= WHAT[k].most;
        if (!known)
            fail_msg("%s %s …: no such rule", rules.rule[i].word[0], rules.rule[i].word[1]);
    }
    assert_true(rules.n > 15);
    bz_arena_free(&arena);
}

static void test_why(void **state)
{
    static const struct {
        const char *isa, *gpu;
        bz_unit_product p;
        const char *unit, *why; /* NULL: it has none; could not */
    } CASES[] = {
        {NULL, "Tesla V100-SXM2-16GB", {"f32", NULL, 64, 64, 1, false}, "Tensor Cores", "computes in f32, not in f16"},
        {NULL,
         "Tesla V100-SXM2-16GB",
         {"f32", NULL, 3, 64, 1, false},
         "Tensor Cores",
         "computes in f32, not in f16; 3 input channels: no multiple of 8"},
        {NULL,
         "Tesla V100-SXM2-16GB",
         {"f16", NULL, 64, 1001, 1, false},
         "Tensor Cores",
         "1001 output channels: no multiple of 8"},
        {NULL,
         "Tesla V100-SXM2-16GB",
         {"f16", "CUDNN_DEFAULT_MATH", 64, 64, 1, false},
         "Tensor Cores",
         "math mode CUDNN_DEFAULT_MATH"},
        {NULL,
         "Tesla V100-SXM2-16GB",
         {"f16", "CUDNN_TENSOR_OP_MATH", 64, 64, 1, true},
         "Tensor Cores",
         "data in NCHW: it wants channels last"},
        {NULL, "Tesla V100-SXM2-16GB", {"f16", NULL, 1, 1, 64, false}, "Tensor Cores", NULL}, /* depthwise */
        {NULL,
         "Tesla V100-SXM2-16GB",
         {"bf16", NULL, 64, 64, 1, false},
         "Tensor Cores",
         "computes in bf16, not in f16"},
        {NULL,
         "A100-SXM4-40GB",
         {"i8", NULL, 24, 64, 1, false},
         "Tensor Cores",
         "24 input channels: no multiple of 16"},
        {NULL,
         "A100-SXM4-40GB",
         {"bf16", NULL, 64, 64, 1, false},
         "Tensor Cores",
         "the library took another implementation"},
        {NULL, "Tesla K80", {"f16", NULL, 64, 64, 1, false}, NULL, NULL},
        {"AVX2 AVX512_CORE AVX512_CORE_VNNI AVX512_CORE_BF16",
         NULL,
         {"f32", NULL, 3, 64, 1, false},
         "AVX512-BF16",
         "computes in f32, not in bf16, i8"},
        {"AVX512_CORE_BF16 AVX512_CORE_AMX_BF16",
         NULL,
         {"f32", NULL, 64, 64, 1, false},
         "AMX",
         "computes in f32, not in bf16, i8"},
        {"AVX2", NULL, {"f32", NULL, 64, 64, 1, false}, NULL, NULL},
    };
    bz_arena arena = {0};
    bz_unit_rules rules;
    (void)state;
    bz_unit_rules_read(bz_units_text, &arena, &rules);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool channels;
        bz_unit_system s = bz_unit_of_system(&rules, CASES[i].isa, CASES[i].gpu, 0);
        const char *why = bz_unit_why(&rules, &s, &CASES[i].p, &arena, &channels);
        if (!s.unit != !CASES[i].unit || (s.unit && strcmp(s.unit, CASES[i].unit) != 0))
            fail_msg("case %zu: unit %s", i, s.unit ? s.unit : "none");
        if (!why != !CASES[i].why || (why && strcmp(why, CASES[i].why) != 0))
            fail_msg("case %zu: %s", i, why ? why : "could not");
        assert_int_equal(channels, why && strstr(why, "no multiple of"));
    }
    bz_arena_free(&arena);
}

static void test_kernels(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_KERNEL, "volta_fp16_s884cudnn_fp16_128x128", 10, 400},
                                   {BZ_EVENT_KERNEL, "volta_scudnn_128x64", 500, 600}};
    bz_trace *t = trace_of(EVENTS, 2);
    bz_arena arena = {0};
    bz_units u;
    bz_bound b = {.facts = bz_system_facts_read(
                      "{\"device\":\"gpu\",\"name\":\"A GPU of tomorrow\",\"capability\":\"12.0\"}", &arena)};
    (void)state;
    bz_units_look(&b, t, NULL, NULL, &arena, &u);
    assert_string_equal(u.unit, "Tensor Cores"); /* by its capability: no table has it */
    b.facts = bz_system_facts_read("{\"gpu\":\"Tesla V100-SXM2-16GB\"}", &arena);
    bz_units_look(&b, t, NULL, NULL, &arena, &u);
    assert_true(u.n == 1 && u.used == 1 && u.could == 0);
    assert_string_equal(u.row[0].evidence, "volta_fp16_s884cudnn_fp16_128x128");
    assert_string_equal(u.unit, "Tensor Cores");
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Units are those of the typical iteration, as the alignment is: not of the first steady one, which is the longest here. */
static void test_units_of_the_typical_iteration(void **state)
{
    static const char *const KERNELS[] = {"volta_scudnn_128x64", "volta_scudnn_128x64", "volta_fp16_s884cudnn_fp16",
                                          "volta_scudnn_128x64"};
    static const int64_t LENGTHS[] = {9000, 1400, 1200, 1000};
    bz_trace *t = bz_trace_new();
    bz_arena arena = {0};
    bz_units u;
    bz_error err;
    bz_bound b = {.facts = bz_system_facts_read("{\"gpu\":\"Tesla V100-SXM2-16GB\"}", &arena)};
    (void)state;
    uint32_t source = bz_trace_source(t, "made by hand", "test"), host = bz_trace_thread(t, source, 1, 1);
    uint32_t stream = bz_trace_stream(t, source, 1, 0, 1, 1);
    for (int i = 0; i < 4; i++) {
        int64_t at = i * 10000;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + LENGTHS[i], bz_trace_text(t, "benanza_iteration"), host);
        bz_trace_add(t, BZ_EVENT_KERNEL, at + 100, at + 300, bz_trace_text(t, KERNELS[i]), stream);
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(bz_typical_iteration(t), 2);
    bz_units_look(&b, t, NULL, NULL, &arena, &u);
    assert_true(u.n == 1 && u.used == 1);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

static void test_table_of_advice(void **state)
{
    static const char *const WHAT[] = {"cause",     "kernels",   "calls", "algorithms", "fusion",
                                       "elsewhere", "parallel",  "way",   "idle",       "channels",
                                       "work",      "simulated", "anew"};
    static const char *const NAMES[] = {"PyTorch", "ONNX Runtime", "MXNet", "TensorFlow", "JAX"};
    bz_arena arena = {0};
    advice_table t;
    (void)state;
    advice_read(bz_advice_text, &arena, &t);
    assert_int_equal(t.n_frameworks, 5);
    assert_true(t.n >= 15);
    for (int i = 0; i < t.n; i++) {
        const advice_rule *r = &t.rule[i];
        const char *on = advice_line(r, "on", 0), *gain;
        if (!advice_line(r, "what", 0) || !advice_line(r, "gain", 0) ||
            (!advice_line(r, "PyTorch", 0) && !advice_line(r, "any", 0)))
            fail_msg("[%s] lacks a line", r->id);
        assert_true(!on || !strcmp(on, "device") || !strcmp(on, "cpu"));
        for (int k = 0; k < r->n; k++) /* nobody reads a second line of the same name */
            if (strcmp(r->key[k], "gain") != 0 && advice_line(r, r->key[k], 1))
                fail_msg("[%s] has two lines %s", r->id, r->key[k]);
        for (int k = 0; (gain = advice_line(r, "gain", k)); k++) {
            char word[64];
            bool known = false;
            bz_word_next(&gain, word, sizeof word);
            for (size_t w = 0; w < sizeof WHAT / sizeof *WHAT; w++)
                known |= !strcmp(word, WHAT[w]);
            if (!known)
                fail_msg("[%s] gain: %s is nothing that an analysis has", r->id, word);
        }
        for (int k = 0; k < r->n; k++) {
            bool known = !strcmp(r->key[k], "what") || !strcmp(r->key[k], "gain") || !strcmp(r->key[k], "on") ||
                         !strcmp(r->key[k], "any") || !strcmp(r->key[k], "moot");
            bz_whatif_asked asked;
            bz_error err;
            if (!strcmp(r->key[k], "device whatif") || !strcmp(r->key[k], "cpu whatif"))
                known = !strcmp(r->value[k], "remove") || !bz_whatif_parse(r->value[k], &arena, &asked, &err);
            for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++) {
                size_t name = strlen(NAMES[n]);
                bool own = !strncmp(r->key[k], NAMES[n], name), change = own && !strcmp(r->key[k] + name, " whatif");
                known |= own && (!r->key[k][name] || !strcmp(r->key[k] + name, " needs") ||
                                 !strcmp(r->key[k] + name, " moot") || !strcmp(r->key[k] + name, " unsure") ||
                                 !strcmp(r->key[k] + name, " training") || !strncmp(r->key[k] + name, " besides ", 9));
                known |= change && advice_line(r, NAMES[n], 0) && !bz_whatif_parse(r->value[k], &arena, &asked, &err);
            }
            if (!known)
                fail_msg("[%s] %s: no such line", r->id, r->key[k]);
        }
    }
    bz_arena_free(&arena);
}

static void test_framework(void **state)
{
    static const struct {
        event e;
        const char *framework;
    } CASES[] = {
        {{BZ_EVENT_OP, "aten::conv2d", 1, 2}, "PyTorch"},
        {{BZ_EVENT_KERNEL, "void at::native::vectorized_elementwise_kernel<4>", 1, 2}, "PyTorch"},
        {{BZ_EVENT_KERNEL, "void onnxruntime::cuda::_UnaryElementWise<float>", 1, 2}, "ONNX Runtime"},
        {{BZ_EVENT_KERNEL, "mxnet_generic_kernel", 1, 2}, "MXNet"},
        {{BZ_EVENT_KERNEL, "void tensorflow::functor::ShuffleInTensor3Simple", 1, 2}, "TensorFlow"},
        {{BZ_EVENT_RANGE, "EagerLocalExecute: MatMul", 1, 2}, "TensorFlow"},
        {{BZ_EVENT_RANGE, "PjitFunction(step)", 1, 2}, "JAX"},
        {{BZ_EVENT_CALL, "jit_1x1:avx2", 1, 2}, NULL},            /* oneDNN's name of an implementation */
        {{BZ_EVENT_KERNEL, "volta_sgemm_128x64_nn", 1, 2}, NULL}, /* the file's name does not count */
    };
    bz_arena arena = {0};
    advice_table table;
    (void)state;
    advice_read(bz_advice_text, &arena, &table);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_trace *t = trace_of(&CASES[i].e, 1);
        const char *found = advice_framework_of(&table, t);
        if (!found != !CASES[i].framework || (found && strcmp(found, CASES[i].framework) != 0))
            fail_msg("%s: %s", CASES[i].e.name, found ? found : "none");
        bz_trace_free(t);
    }
    static const event unknown = {BZ_EVENT_CALL, "sgemm", 1, 2}; /* many names hide no library that the capture saw */
    bz_trace *t = trace_of(&unknown, 1);
    char name[16];
    for (int i = 0; i < 30000; i++) {
        snprintf(name, sizeof name, "a=0x%x", i);
        bz_trace_text(t, name);
    }
    bz_trace_fact(t, "framework", "libtorch_cpu.so.1.13");
    assert_string_equal(advice_framework_of(&table, t), "PyTorch");
    bz_trace_free(t);
    bz_arena_free(&arena);
}

static int advise(const bz_analysis *a, bz_ladder *l, const bz_trace *t, bz_arena *arena, const bz_advice **list)
{
    int n = bz_advice_make(a, l, t, NULL, arena);
    *list = l->advice;
    return n;
}

static const bz_advice *find(const bz_advice *list, int n, const char *id)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].id, id))
            return &list[i];
    return NULL;
}

/* Kernels that pad, an idle device, algorithms with a loss, a type that gains. */
static void test_advice(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_KERNEL, "image_2d_pad_constant_kernel", 10, 50},
                                   {BZ_EVENT_KERNEL, "mxnet_generic_kernel", 60, 390},
                                   {BZ_EVENT_KERNEL, "volta_scudnn_128x64", 390, 400}};
    bz_trace *t = trace_of(EVENTS, 3);
    bz_arena arena = {0};
    double seconds = 0.0001;
    bz_dag dag = {.n = 1};
    bz_layers layers = {0};
    bz_unit_way way = {
        .name = "f16", .gain = bz_tick(1e-4), .sequential = bz_tick(2e-4), .layers = 1, .seconds = &seconds};
    bz_units units = {.way = &way, .n_ways = 1};
    bz_regret_row row = {.problem = "conv …",
                         .variant = "CUDNN_CONVOLUTION_FWD_ALGO_GEMM",
                         .best_variant = "WINOGRAD",
                         .calls = 3,
                         .used = 3e-5,
                         .best = 1e-5,
                         .loss = 6e-5};
    bz_regret regret = {.row = &row, .n = 1, .calls = 4, .known = 4, .used = 9e-5, .best = 3e-5, .loss = 6e-5};
    bz_analysis a = {.bound = {.system = "",
                               .facts = &bz_system_unknown,
                               .layers = &layers,
                               .dag = &dag,
                               .sequential = bz_tick(3e-4),
                               .path.seconds = bz_tick(3e-4)},
                     .units = &units};
    bz_ladder l;
    const bz_advice *list;
    (void)state;
    bz_ladder_make(&a.bound, t, "made up", &arena, &l);
    l.regret = &regret;
    int n = advise(&a, &l, t, &arena, &list);
    assert_string_equal(l.framework, "MXNet");
    for (int i = 1; i < n; i++)
        assert_true(list[i - 1].gain >= list[i].gain || !isfinite(list[i].gain) ||
                    (list[i].unsure && !list[i - 1].unsure));
    for (int i = 0; i < n; i++) /* what may as well be a loss says so, and stands behind what gains */
        assert_true(!list[i].unsure == !(list[i].low <= 0) &&
                    (!i || list[i].unsure || !isfinite(list[i].gain) || !list[i - 1].unsure));
    for (int i = 0; i < n; i++)
        assert_true(*list[i].what && *list[i].evidence && *list[i].step &&
                    (!isfinite(list[i].gain) || (list[i].low < list[i].gain && list[i].gain < list[i].high)));
    assert_string_equal(list[0].id, "cuda-graphs");
    const bz_advice *pad = find(list, n, "padding-inside"), *best = find(list, n, "best-algorithms");
    assert_non_null(pad);
    assert_string_equal(pad->by, "simulation"); /* 40 µs, and the 10 µs behind it in which the host does nothing else */
    assert_true(fabs(pad->gain - 50e-6) < 1e-12 && strstr(pad->step, "mx.sym.pad"));
    assert_string_equal(best->by, "estimate"); /* without records nothing can be simulated */
    assert_non_null(strstr(pad->evidence, "1 × image_2d_pad_constant_kernel"));
    assert_non_null(best);
    assert_string_equal(best->step, "MXNET_CUDNN_AUTOTUNE_DEFAULT=2");
    assert_non_null(strstr(best->evidence, "3 of 4 calls"));
    assert_null(find(list, n, "f16")); /* the model's bound would gain; this program waits for its host */
    assert_null(find(list, n, "bf16"));
    assert_null(find(list, n, "framework-overhead")); /* for processors */
    bz_cause causes[] = {
        {.kind = BZ_CAUSE_INPUT_PADDED,
         .id = "input-padded",
         .name = "inputs padded by the program",
         .busy = true,
         .count = 2,
         .seconds = bz_tick(7e-5),
         .example = "pad",
         .where = "model.py:12"},
        {.kind = BZ_CAUSE_WAITS, .id = "waits", .name = "the host waits", .count = 1, .seconds = bz_tick(1e-6)}};
    bz_alignment alignment = {.timeline = true, .cause = causes, .n_causes = 2};
    l.alignment = &alignment; /* knows better than names do */
    l.framework = NULL;
    n = advise(&a, &l, t, &arena, &list);
    pad = find(list, n, "padding-inside");
    assert_true(pad && fabs(pad->gain - 50e-6) < 1e-12 && strstr(pad->evidence, "model.py:12"));
    assert_null(find(list, n, "cuda-graphs")); /* none of the causes is it */
    assert_null(find(list, n, "synchronize")); /* too little to speak of */
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* On a processor: convolutions done by products of matrices, and layers done between the library's calls. */
static void test_elsewhere(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_CALL, "sgemm", 10, 400}};
    bz_trace *t = trace_of(EVENTS, 1);
    bz_arena arena = {0};
    bz_dag dag = {.n = 1};
    bz_layer layer = {.name = "first", .kind = "conv"};
    bz_layers layers = {.layer = &layer, .n = 1};
    bz_change call = {"call", "conv", "gemm"}, pad = {"pad", "1x1", "0x0"};
    bz_aligned rows[] = {
        {.kind = BZ_ALIGNED_CHANGED, .call = "sgemm", .change = &call, .n_changes = 1, .seconds = 4e-4, .bound = 1e-4},
        {.kind = BZ_ALIGNED_CHANGED, .call = "conv", .change = &pad, .n_changes = 1, .seconds = 9e-4, .bound = 1e-4},
        {.kind = BZ_ALIGNED_SAME, .call = "conv", .seconds = 9e-4, .bound = 1e-4},
        {.kind = BZ_ALIGNED_MISSING, .seconds = NAN, .bound = 5e-5}};
    bz_cause cause = {.kind = BZ_CAUSE_LAYERS_OUTSIDE,
                      .id = "layers-outside",
                      .name = "between library calls",
                      .count = 1,
                      .seconds = 2e-4};
    bz_alignment alignment = {.timeline = true, .row = rows, .n = 4, .cause = &cause, .n_causes = 1};
    bz_analysis a = {.bound = {.system = "",
                               .facts = &bz_system_unknown,
                               .layers = &layers,
                               .dag = &dag,
                               .sequential = 3e-4,
                               .path.seconds = 3e-4}};
    bz_ladder l;
    const bz_advice *list;
    (void)state;
    bz_ladder_make(&a.bound, t, "made up", &arena, &l);
    l.alignment = &alignment;
    int n = advise(&a, &l, t, &arena, &list);
    const bz_advice *best = find(list, n, "best-implementations");
    assert_non_null(best);
    assert_true(fabs(best->gain - (3e-4 + 1.5e-4)) < 1e-12 && best->low <= best->gain && best->gain <= best->high);
    assert_non_null(strstr(best->evidence, "1 layer is done by sgemm"));
    assert_non_null(strstr(best->evidence, "1 layer is done without the library"));
    assert_non_null(strstr(best->step, "PyTorch: ")); /* nothing tells the framework: all of them */
    assert_non_null(strstr(best->step, "ONNX Runtime: "));
    assert_null(find(list, n, "best-algorithms"));
    l.framework = "PyTorch";
    bz_cause both[] = {cause,
                       {.kind = BZ_CAUSE_WEIGHTS_REORDERED,
                        .id = "weights-reordered",
                        .name = "weights reordered",
                        .count = 1,
                        .seconds = 1e-4}};
    alignment.cause = both;
    alignment.n_causes = 2;
    n = advise(&a, &l, t, &arena, &list); /* one step does both */
    best = find(list, n, "best-implementations");
    assert_true(best && fabs(best->gain - (3e-4 + 1.5e-4 + 1e-4)) < 1e-12);
    assert_non_null(strstr(best->evidence, "weights reordered"));
    assert_null(find(list, n, "prepack-weights"));
    layer.kind = "gemm"; /* that step changes convolutions, and what is around them */
    n = advise(&a, &l, t, &arena, &list);
    assert_null(find(list, n, "best-implementations"));
    layer.kind = "conv";
    l.on_device = true; /* though no kernel was recorded */
    n = advise(&a, &l, t, &arena, &list);
    assert_null(find(list, n, "best-implementations"));
    l.on_device = false;
    n = advise(&a, &l, t, &arena, &list);
    assert_non_null(find(list, n, "best-implementations"));
    assert_null(find(list, n, "keep-heap"));
    bz_trace_fact(t, "fresh memory", "1000 pages in each second of the iterations, 250 us a page");
    n = advise(&a, &l, t, &arena, &list);
    const bz_advice *heap = find(list, n, "keep-heap");
    assert_true(heap && fabs(heap->gain - l.latency / 4 * (1 + 0.4 * 0.75)) < 1e-12 && heap->low > 0 &&
                heap->high < l.latency / 2);
    l.on_device = true;
    n = advise(&a, &l, t, &arena, &list);
    assert_null(find(list, n, "keep-heap"));
    l.on_device = false;
    alignment.timeline = false;
    n = advise(&a, &l, t, &arena, &list);
    assert_null(find(list, n, "best-implementations"));
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A recording without its model: what the framework's own step comes to is not known, but what bringing the weights there ahead gains is simulated,
 * as `benanza whatif` does. Where products, whose weights that step turns, take long, it is not. */
static void test_prepared_without_model(void **state)
{
#define WEIGHTS "f32::blocked:Acdb16a:f0"
    static const event EVENTS[] = {
        {BZ_EVENT_CALL, "reorder|src=f32::blocked:abcd:f0 dst=" WEIGHTS, 10, 210},
        {BZ_EVENT_CALL,
         "convolution|src=f32::blocked:acdb:f0 wei=" WEIGHTS
         " dst=f32::blocked:acdb:f0 problem=mb1_ic16oc16_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1",
         210, 500},
        {BZ_EVENT_CALL, "sgemm|transa=T transb=N m=1000 n=1 k=512 lda=512 ldb=512 ldc=1000", 510, 900}};
    (void)state;
    for (size_t n = 2; n <= 3; n++) {
        bz_trace *t = trace_of(EVENTS, n);
        bz_arena arena = {0};
        bz_dag dag = {.n = 1};
        bz_layer layer = {.name = "first", .kind = "conv"};
        bz_layers layers = {.layer = &layer, .n = 1};
        bz_cause cause = {.kind = BZ_CAUSE_WEIGHTS_REORDERED,
                          .id = "weights-reordered",
                          .name = "weights reordered",
                          .count = 1,
                          .seconds = 2e-4};
        bz_alignment alignment = {.timeline = true, .cause = &cause, .n_causes = 1};
        bz_analysis a = {.bound = {.system = "", .facts = &bz_system_unknown, .layers = &layers, .dag = &dag}};
        bz_whatif_shown asked = {0}; /* as long as the arena */
        bz_ladder l;
        const bz_advice *list;
        bz_ladder_make(&a.bound, t, "made up", &arena, &l);
        l.alignment = &alignment;
        l.framework = "PyTorch";
        const int n_told = advise(&a, &l, t, &arena, &list);
        const bz_advice *told = find(list, n_told, "prepack-weights");
        assert_non_null(told);
        assert_true(fabs(told->gain - 2e-4) <
                    1e-9); /* once, though a call named reorder is also one of another advice */
        assert_string_equal(told->by, n == 2 ? "simulation" : "estimate");
        assert_true(n == 2 ? !told->unsure : told->unsure != NULL);
        if (n == 2) { /* one change has one interval, whoever is asked */
            static const char *const CHANGE[] = {"prepacked-weights"};
            bz_error err;
            assert_int_equal(bz_whatif_ask(t, &(bz_whatif_question){.change = CHANGE, .n = 1}, &arena, &asked, &err),
                             0);
            const bz_whatif *w = &asked.whatif;
            assert_true(fabs(told->low - 1e-9 * (double)(w->simulated - w->prediction[0].high)) < 1e-12);
            assert_true(fabs(told->high - 1e-9 * (double)(w->simulated - w->prediction[0].low)) < 1e-12);
            assert_true(told->low < told->gain && told->gain < told->high);
        }
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Patterns gain what their records say as long as the program fuses none of their places, not even a part of one. The first three that gain are named,
 * with what was not counted. */
static void test_fusion(void **state)
{
    enum { PATTERNS = 5, PLACES = 2 * PATTERNS, NODES = 2 * PLACES };
    static const event EVENTS[] = {{BZ_EVENT_OP, "aten::batch_norm", 10, 400},
                                   {BZ_EVENT_OP, "aten::batch_norm", 500, 900}}; /* nothing was folded or compiled */
    static const char *const NAMES[PATTERNS] = {"a+b", "a+b+c", "b+c", "c+d", "d+e"};
    bz_trace *t = trace_of(EVENTS, 2);
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        bz_arena arena = {0};
        bz_layer layer[NODES];
        bz_bound_layer bound[NODES];
        bz_bound_place place[PLACES];
        bz_fusion_row row[PATTERNS];
        bz_aligned aligned[NODES / 2];
        int node[NODES], first[NODES + 1] = {0}, fused[PATTERNS] = {0}, told = 0;
        double gain = 0;
        bz_buf expected = {0};
        for (int i = 0; i < NODES; i++) {
            node[i] = i;
            layer[i] = (bz_layer){.name = "l", .kind = "add"};
            bound[i] = (bz_bound_layer){.layer = &layer[i], .node = i, .times = 1};
        }
        for (int i = 0; i < NODES / 2; i++) { /* a call does a place, or its first layer alone */
            seed = seed * 1664525 + 1013904223;
            bool is_fused = seed >> 30 == 1, doubtful = is_fused && (seed >> 20 & 3) == 1, all = seed >> 24 & 1;
            aligned[i] = (bz_aligned){.kind = is_fused ? BZ_ALIGNED_FUSED : BZ_ALIGNED_SAME,
                                      .layer = &node[2 * i],
                                      .n_layers = all ? 2 : 1,
                                      .doubtful = doubtful,
                                      .problem = "p",
                                      .seconds = 1e-5,
                                      .bound = 1e-5};
            place[i] = (bz_bound_place){.pattern = NAMES[i % PATTERNS], .layer = &node[2 * i], .n = 2};
            fused[i % PATTERNS] += is_fused && !doubtful;
        }
        for (int i = 0; i < PATTERNS; i++) {
            seed = seed * 1664525 + 1013904223;
            bool gains = seed >> 30 != 0;
            row[i] = (bz_fusion_row){.pattern = NAMES[i],
                                     .places = 2,
                                     .covered = 1 + (int)(seed >> 20 & 1),
                                     .written = 3e-4,
                                     .gain = gains ? 1e-4 * (1 + (seed >> 24 & 3)) : 0,
                                     .fused = -1};
            row[i].together = row[i].written - row[i].gain;
            bz_unit_text time;
            if (!gains)
                continue;
            gain += fused[i] ? 0 : row[i].gain;
            if (told++ >= 3)
                continue;
            bz_buf_printf(&expected, "%s%s in %d place%s, %s", told > 1 ? "; " : "", NAMES[i], row[i].covered,
                          row[i].covered == 1 ? "" : "s", bz_units_time(time, row[i].gain));
            if (fused[i])
                bz_buf_printf(&expected, " (not counted: the program fuses %d of them, or parts of them)", fused[i]);
        }
        if (told > 3)
            bz_buf_printf(&expected, "; and %d more patterns", told - 3);
        bz_dag dag = {.n = NODES, .first = first};
        bz_layers layers = {.layer = layer, .n = NODES};
        bz_fusion fusion = {.row = row, .n = PATTERNS, .sequential = 1e-3};
        bz_alignment alignment = {.timeline = true, .row = aligned, .n = NODES / 2};
        bz_analysis a = {.bound = {.system = "",
                                   .facts = &bz_system_unknown,
                                   .layers = &layers,
                                   .dag = &dag,
                                   .layer = bound,
                                   .n = NODES,
                                   .fused = {.wanted = true, .place = place, .n_places = PLACES},
                                   .sequential = 2e-3,
                                   .path.seconds = 2e-3},
                         .fusion = &fusion};
        bz_ladder l;
        const bz_advice *list;
        bz_ladder_make(&a.bound, t, "made up", &arena, &l);
        l.alignment = &alignment;
        l.framework = "JAX"; /* for which no other state counts */
        int n = advise(&a, &l, t, &arena, &list);
        const bz_advice *found = find(list, n, "fusion");
        if (!found != !told)
            fail_msg("round %d: %d patterns gain", round, told);
        if (found && !strstr(found->evidence, bz_buf_text(&expected)))
            fail_msg("round %d: '%s', not '%s'", round, found->evidence, bz_buf_text(&expected));
        if (found && (gain > 0 ? !(fabs(found->gain / gain - 1) < 1e-9) : isfinite(found->gain)))
            fail_msg("round %d: %g s, not %g", round, found->gain, gain);
        bz_buf_free(&expected);
        bz_arena_free(&arena);
    }
    bz_trace_free(t);
}

/* What is to be done besides, for models that have such a layer; not on a device. */
static void test_besides(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_OP, "Conv", 10, 400}, {BZ_EVENT_OP, "Reshape", 500, 900}};
    static const struct {
        const char *kind;
        bool device, besides;
    } CASES[] = {{"conv", false, false}, {"layernorm", false, true}, {"layernorm", true, false}};
    bz_arena arena = {0};
    bz_dag dag = {.n = 1};
    bz_cause cause = {.kind = BZ_CAUSE_CONSTANTS_COMPUTED,
                      .id = "constants-computed",
                      .name = "work on constants",
                      .count = 1,
                      .seconds = 2e-4};
    bz_alignment alignment = {.timeline = true, .cause = &cause, .n_causes = 1};
    bz_trace *t = trace_of(EVENTS, 2);
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_layer layer = {.name = "first", .kind = CASES[i].kind};
        bz_layers layers = {.layer = &layer, .n = 1};
        bz_analysis a = {.bound = {.system = "",
                                   .facts = &bz_system_unknown,
                                   .layers = &layers,
                                   .dag = &dag,
                                   .sequential = 3e-4,
                                   .path.seconds = 3e-4}};
        bz_ladder l;
        const bz_advice *list;
        bz_ladder_make(&a.bound, t, "made up", &arena, &l);
        l.alignment = &alignment;
        l.framework = "ONNX Runtime";
        l.on_device = CASES[i].device;
        int n = advise(&a, &l, t, &arena, &list);
        const bz_advice *found = find(list, n, "constants");
        assert_non_null(found);
        assert_int_equal(strstr(found->step, "SkipLayerNormFusion") != NULL, CASES[i].besides);
    }
    bz_trace_free(t);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_table_of_units),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_units_of_the_typical_iteration),
        cmocka_unit_test(test_table_of_advice),
        cmocka_unit_test(test_framework),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_prepared_without_model),
        cmocka_unit_test(test_besides),
        cmocka_unit_test(test_fusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
