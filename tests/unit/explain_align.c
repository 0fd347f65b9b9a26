/* Alignments: the sequences against brute force, whole ones on traces made up for the purpose, and that no nanosecond of
 * an iteration is lost or counted twice. */
#include "explain/align.h"
#include "explain_trace.h"

#include <math.h>
#include <stdio.h>

static uint32_t state_of_random = 1;

static uint32_t below(uint32_t n)
{
    state_of_random = state_of_random * 1664525 + 1013904223;
    return (state_of_random >> 8) % n;
}

enum { LONG = 600 };

static bz_align_atom random_atom(const bz_align_words *w)
{
    bz_align_atom a = {.kind = 10 + below(3), .id = below(5) ? 20 + below(4) : 0, .near = below(3)};
    if (!below(5))
        a.kind = below(2) ? w->bias : w->batchnorm;
    if (!below(4))
        a.also[0] = 20 + below(4);
    a.optional = a.kind == w->bias;
    a.post = !below(3);
    return a;
}

static int least(const bz_align_words *w, const bz_align_atom *a, int n, const bz_align_atom *b, int m)
{
    if (!n && !m)
        return 0;
    int best = INT32_MAX, pair = n && m ? bz_align_pair_cost(w, a, b) : -1, cost;
    if (pair >= 0)
        best = pair + least(w, a + 1, n - 1, b + 1, m - 1);
    if (n && (cost = bz_align_gap_cost(a) + least(w, a + 1, n - 1, b, m)) < best)
        best = cost;
    if (m && (cost = bz_align_gap_cost(b) + least(w, a, n, b + 1, m - 1)) < best)
        best = cost;
    return best;
}

/* What an alignment costs; fails where it is none. */
static int cost_of(const bz_align_words *w, const bz_align_atom *a, int n, const bz_align_atom *b, int m, const int *to)
{
    int cost = 0, next = 0;
    for (int j = 0; j < m; j++) {
        if (to[j] < 0) {
            cost += bz_align_gap_cost(&b[j]);
            continue;
        }
        assert_true(to[j] >= next && to[j] < n);
        for (; next < to[j]; next++)
            cost += bz_align_gap_cost(&a[next]);
        int pair = bz_align_pair_cost(w, &a[next++], &b[j]);
        assert_true(pair >= 0);
        cost += pair;
    }
    for (; next < n; next++)
        cost += bz_align_gap_cost(&a[next]);
    return cost;
}

static void test_brute_force(void **state)
{
    bz_arena arena = {0};
    bz_align_words w;
    (void)state;
    bz_align_words_begin(&w, &arena);
    for (int round = 0; round < 3000; round++) {
        bz_align_atom a[6], b[6];
        int n = (int)below(7), m = (int)below(7), to[6];
        for (int i = 0; i < n; i++)
            a[i] = random_atom(&w);
        for (int j = 0; j < m; j++)
            b[j] = random_atom(&w);
        bz_align_sequences(&w, a, n, b, m, BZ_ALIGN_CELLS, to);
        assert_int_equal(cost_of(&w, a, n, b, m, to), least(&w, a, n, b, m));
    }
    bz_align_words_end(&w);
    bz_arena_free(&arena);
}

/* The bias of a call is that of its layer, or of the first layer behind it, not one of as many numbers further on. */
static void test_whose_bias(void **state)
{
    enum { CONV, OWN_BIAS, ACT, NORM, SHIFT };
    bz_arena arena = {0};
    bz_align_words w;
    int to[3];
    (void)state;
    bz_align_words_begin(&w, &arena);
    bz_align_atom asked[] = {{.kind = 10, .id = 20, .owner = 0},
                             {.kind = w.bias, .id = 21, .optional = true, .post = true, .owner = 0},
                             {.kind = 11, .id = 22, .owner = 1},
                             {.kind = 12, .id = 23, .owner = 2},
                             {.kind = w.bias, .id = 21, .owner = 3}};
    const bz_align_atom found[] = {{.kind = 10, .id = 20}, {.kind = w.bias, .id = 21, .optional = true, .post = true}};
    const bz_align_atom apart[] = {
        {.kind = 10, .id = 20}, {.kind = 12, .id = 23}, {.kind = w.bias, .id = 21, .optional = true}};
    bz_align_sequences(&w, asked, 5, found, 2, BZ_ALIGN_CELLS, to);
    assert_true(to[0] == CONV && to[1] == OWN_BIAS);
    bz_align_sequences(&w, asked, 5, apart, 3, BZ_ALIGN_CELLS, to);
    assert_true(to[0] == CONV && to[1] == NORM && to[2] == SHIFT);
    asked[OWN_BIAS] = (bz_align_atom){.kind = w.bias, .id = 21, .owner = 1}; /* a layer of its own */
    bz_align_sequences(&w, asked, 5, found, 2, BZ_ALIGN_CELLS, to);
    assert_true(to[0] == CONV && to[1] == OWN_BIAS);
    bz_align_words_end(&w);
    bz_arena_free(&arena);
}

/* Cut into pieces, an alignment is still one, and finds what is the same around each edit. */
static void test_pieces(void **state)
{
    static bz_align_atom a[LONG], b[2 * LONG];
    static int to[2 * LONG];
    bz_arena arena = {0};
    bz_align_words w;
    (void)state;
    bz_align_words_begin(&w, &arena);
    for (int round = 0; round < 60; round++) {
        int m = 0, kept = 0, found = 0;
        uint32_t kinds = round % 2 ? 1000 : 6; /* with anchors, and without */
        for (int i = 0; i < LONG; i++) {
            uint32_t id = 20 + below(kinds);
            a[i] = (bz_align_atom){.kind = id, .id = id, .owner = i};
            uint32_t edit = below(20);
            if (edit != 0) {
                b[m] = a[i];
                b[m++].owner = i;
                kept++;
            }
            if (edit == 1)
                b[m++] = (bz_align_atom){.kind = 5, .id = 5, .owner = -2};
        }
        bz_align_sequences(&w, a, LONG, b, m, 64 * 64, to);
        cost_of(&w, a, LONG, b, m, to);
        for (int j = 0; j < m; j++)
            found += to[j] >= 0;
        if (found != kept)
            fail_msg("round %d: %d of %d found", round, found, kept);
    }
    bz_align_words_end(&w);
    bz_arena_free(&arena);
}

enum { LAYERS = 400, MICROSECOND = 1000 };

typedef struct model {
    bz_layer layer[LAYERS];
    bz_problem problem[LAYERS][2];
    const char *text[LAYERS][2];
    bz_alternative alternative[LAYERS];
    bz_lowering lowering[LAYERS];
    bz_bound_layer bound_layer[LAYERS];
    bz_layers layers;
    bz_bound bound;
} model;

/* Layers of one problem each, by their texts. */
static void make_model(model *m, const char *const *problem, int n)
{
    bz_error err = {0};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < n; i++) {
        if (bz_problem_parse(problem[i], &m->problem[i][0], &err))
            fail_msg("%s", err.text);
        m->text[i][0] = problem[i];
        m->layer[i] = (bz_layer){.index = i, .name = problem[i], .kind = "layer", .key = problem[i]};
        m->alternative[i] = (bz_alternative){.n = 1, .problem = m->problem[i], .text = m->text[i]};
        m->lowering[i] = (bz_lowering){.alternative = &m->alternative[i], .n = 1};
        m->bound_layer[i] = (bz_bound_layer){.layer = &m->layer[i],
                                             .node = i,
                                             .times = 1,
                                             .lowering = &m->lowering[i],
                                             .price = {.seconds = bz_tick(1e-6), .alternative = &m->alternative[i]}};
    }
    m->layers = (bz_layers){.layer = m->layer, .n = n};
    m->bound =
        (bz_bound){.system = "", .facts = &bz_system_unknown, .layers = &m->layers, .layer = m->bound_layer, .n = n};
}

typedef struct call {
    const char *name, *detail;
} call;

#define ONEDNN_CONV(sizes)                                                                                             \
    "src=f32::blocked:abcd:f0 wei=f32::blocked:Acdb16a:f0 bia=undef::undef::f0 dst=f32::a:f0 " sizes
#define CONV(c) ONEDNN_CONV("problem=mb1_ic8oc" #c "_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1")
#define RELU(c) "src=f32::a:f0 dst=f32::a:f0 aux=alg:eltwise_relu problem=1x" #c "x8x8"
static const char CONV_16[] = "conv x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
static const char CONV_32[] = "conv x=1x8x8x8 w=32x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
static const char CONV_BIAS[] =
    "conv x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 post=bias dtype=f32";
static const char RELU_16[] = "activation fn=relu x=1x16x8x8 dtype=f32";
static const char POOL_16[] = "pool mode=max x=1x16x8x8 kernel=2x2 stride=2x2 pad=0x0x0x0 dilation=1x1 dtype=f32";

/* Iterations of 1 ms, the calls at random times in them; the second one is as long as the typical one. */
static bz_trace *make_trace(const call *calls, int n)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    for (int64_t i = 0; i < 3; i++) {
        int64_t at = i * 2000 * MICROSECOND, end = at + 1000 * MICROSECOND + i;
        bz_trace_add(t, BZ_EVENT_RANGE, at, end, bz_trace_text(t, "benanza_iteration"), lane);
        for (int k = 0; k < n; k++) {
            int64_t slot = 1000 * MICROSECOND / n, start = at + k * slot + (int64_t)below((uint32_t)slot / 2);
            size_t c = bz_trace_add(t, BZ_EVENT_CALL, start, start + 1 + (int64_t)below((uint32_t)slot / 2),
                                    bz_trace_text(t, calls[k].name), lane);
            t->event[BZ_EVENT_CALL].detail[c] = bz_trace_text(t, calls[k].detail);
            t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* The calls that layers ask for and the causes are the latency, exactly. */
static void check_sum(const bz_bound *b, const bz_trace *t, const bz_alignment *a, bz_arena *arena)
{
    bz_ladder ladder;
    double sum = a->asked;
    bz_ladder_make(b, t, "test", arena, &ladder);
    for (int i = 0; i < a->n_causes; i++) {
        assert_true(a->cause[i].seconds >= 0);
        sum += a->cause[i].seconds;
    }
    assert_true(a->asked >= 0 && sum == ladder.latency);
    for (int i = 0; i < ladder.n_warnings; i++)
        assert_null(strstr(ladder.warning[i], "when calls began"));
    int rows = 0;
    for (int k = 0; k < BZ_ALIGNED_KINDS; k++)
        rows += a->count[k];
    assert_int_equal(rows, a->n);
}

static void align_calls(const char *const *problem, int n_layers, const call *calls, int n, bz_arena *arena,
                        bz_alignment *out)
{
    static model m;
    make_model(&m, problem, n_layers);
    bz_trace *t = make_trace(calls, n);
    bz_align_make(&m.bound, t, arena, out);
    check_sum(&m.bound, t, out, arena);
    for (int i = 0; i < out->n; i++) { /* strings of the trace go with it */
        out->row[i].call = out->row[i].call ? bz_arena_str(arena, out->row[i].call) : NULL;
        for (int k = 0; k < out->row[i].n_changes; k++)
            assert_non_null(out->row[i].change[k].found);
    }
    bz_trace_free(t);
}

static void expect(const bz_alignment *a, const char *kinds)
{
    bz_buf text = {0};
    for (int i = 0; i < a->n; i++)
        bz_buf_printf(&text, "%s%s%s", i ? " " : "", bz_aligned_name(a->row[i].kind), a->row[i].moved ? "*" : "");
    assert_string_equal(bz_buf_text(&text), kinds);
    bz_buf_free(&text);
}

static void align(const bz_bound *b, const bz_trace *t, const char *kinds, bz_arena *arena, bz_alignment *out)
{
    bz_align_make(b, t, arena, out);
    check_sum(b, t, out, arena);
    expect(out, kinds);
}

static double cause(const bz_alignment *a, const char *id)
{
    for (int i = 0; i < a->n_causes; i++)
        if (!strcmp(a->cause[i].id, id))
            return a->cause[i].count;
    return 0;
}

/* Of calls that nobody knows the lengths of, nothing is said but what they were. */
static void test_lengths(void **state)
{
    static const char *const plain[] = {CONV_16, RELU_16};
    static const call convolution = {"convolution", CONV(16)};
    static model m;
    bz_arena arena = {0};
    bz_alignment a;
    bz_ladder l;
    (void)state;
    make_model(&m, plain, 2);
    bz_trace *t = make_trace(&convolution, 1);
    bz_events *calls = &t->event[BZ_EVENT_CALL];
    bz_align_make(&m.bound, t, &arena, &a);
    bz_ladder_make(&m.bound, t, "timed", &arena, &l);
    assert_true(a.timeline && a.row[0].seconds > 0 && cause(&a, "layers-outside") > 0);
    assert_true(l.busy > 0 && !l.n_warnings);
    memcpy(calls->end, calls->start, calls->n * sizeof *calls->end);
    bz_align_make(&m.bound, t, &arena, &a);
    expect(&a, "same missing");
    assert_true(!a.timeline && isnan(a.row[0].seconds) && isnan(a.asked));
    bz_ladder_make(&m.bound, t, "begun", &arena, &l);
    assert_true(isnan(l.busy) && l.latency > 0 && l.n_warnings == 1);
    assert_non_null(strstr(l.warning[0], "when calls began"));
    bz_trace_free(t);
    bz_arena_free(&arena);
}

static void test_kinds(void **state)
{
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    const char *const plain[] = {CONV_16, RELU_16, CONV_32, POOL_16};
    const call conv16 = {"convolution", CONV(16)}, conv32 = {"convolution", CONV(32)}, relu = {"eltwise", RELU(16)};
    const call fused = {"convolution", CONV(16) " attr=attr-post-ops:eltwise_relu"};
    const call pool = {"pooling_v2", "src=f32::a:f0 dst=f32::a:f0 aux=alg:pooling_max "
                                     "problem=mb1ic16_ih8oh4kh2sh2dh0ph0_iw8ow4kw2sw2dw0pw0"};
    const call gemm = {"sgemm", "transa=N transb=N m=64 n=16 k=72"};
    const call add = {"cudnnAddTensor", "biasDesc.dataType=CUDNN_DATA_FLOAT biasDesc.dimA=[1,16,1,1] "
                                        "srcDestDesc.dataType=CUDNN_DATA_FLOAT srcDestDesc.dimA=[1,16,8,8]"};
    const call padded = {"convolution", ONEDNN_CONV("problem=mb1_ic8oc16_ih10oh8kh3sh1dh0ph0_iw10ow8kw3sw1dw0pw0")};
    const call unread = {"convolution", "problem=?"};

    align_calls(plain, 4, (const call[]){conv16, relu, conv32, pool}, 4, &arena, &a);
    expect(&a, "same same same same");
    assert_true(a.expected == 4 && a.made == 4 && !a.moved);

    align_calls(plain, 4, (const call[]){conv16, conv32, pool}, 3, &arena, &a);
    expect(&a, "same missing same same");
    assert_int_equal(a.row[1].layer[0], 1);
    assert_true(isnan(a.row[1].seconds) && a.row[1].at == SIZE_MAX && cause(&a, "layers-outside") > 0);

    align_calls(plain, 4, (const call[]){conv16, relu, relu, conv32, pool}, 5, &arena, &a);
    assert_true(a.count[BZ_ALIGNED_EXTRA] == 1 && a.count[BZ_ALIGNED_SAME] == 4 && cause(&a, "calls-extra") == 1);

    align_calls(plain, 4, (const call[]){fused, conv32, pool}, 3, &arena, &a);
    expect(&a, "fused same same");
    assert_true(a.row[0].n_layers == 2 && a.row[0].bound == 2 * bz_tick(1e-6));

    align_calls(plain, 4, (const call[]){pool, conv16, relu, conv32}, 4, &arena, &a);
    expect(&a, "same* same same same");
    assert_true(a.moved == 1 && a.row[0].layer[0] == 3);

    align_calls(plain, 4, (const call[]){padded, relu, conv32, pool}, 4, &arena, &a);
    expect(&a, "changed same same same");
    assert_int_equal(a.row[0].n_changes, 2);
    assert_string_equal(a.row[0].change[1].parameter, "pad");
    assert_string_equal(a.row[0].change[1].expected, "1x1x1x1");
    assert_string_equal(a.row[0].change[1].found, "0x0x0x0");

    align_calls(plain, 4, (const call[]){gemm, relu, conv32, pool}, 4, &arena, &a);
    expect(&a, "changed same same same");
    assert_string_equal(a.row[0].change[0].parameter, "call");

    align_calls(plain, 4, (const call[]){unread, relu, conv32, pool}, 4, &arena, &a);
    expect(&a, "same same same same"); /* as far as is known */
    assert_null(a.row[0].problem);

    const char *const bias[] = {CONV_BIAS, RELU_16};
    align_calls(bias, 2, (const call[]){conv16, add, relu}, 3, &arena, &a);
    expect(&a, "split split same");
    align_calls(bias, 2, (const call[]){conv16, relu}, 2, &arena, &a);
    expect(&a, "same same"); /* the bias may have gone elsewhere */
    bz_arena_free(&arena);
}

/* A folded batch normalization leaves a bias in the convolution. */
static void test_folded(void **state)
{
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    const char *const network[] = {CONV_16, "batchnorm x=1x16x8x8 dtype=f32", RELU_16};
    const call folded = {"convolution", "src=f32::a:f0 wei=f32::a:f0 bia=f32::a:f0 dst=f32::a:f0 "
                                        "attr=attr-post-ops:eltwise_relu "
                                        "problem=mb1_ic8oc16_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1"};
    align_calls(network, 3, &folded, 1, &arena, &a);
    expect(&a, "fused");
    assert_int_equal(a.row[0].n_layers, 3);
    bz_arena_free(&arena);
}

/* A convolution of four images as a product for each. */
static void test_repeated(void **state)
{
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    const char *const network[] = {"conv x=4x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
                                   RELU_16};
    const call gemm = {"sgemm", "transa=N transb=N m=64 n=16 k=72"};
    align_calls(network, 2, (const call[]){gemm, gemm, gemm, gemm, {"eltwise", RELU(16)}}, 5, &arena, &a);
    assert_true(!a.count[BZ_ALIGNED_EXTRA] && !a.count[BZ_ALIGNED_MISSING] && a.row[4].kind == BZ_ALIGNED_SAME);
    for (int i = 0; i < 4; i++)
        assert_true(a.row[i].n_layers == 1 && a.row[i].layer[0] == 0);
    bz_arena_free(&arena);
}

static void test_reorders(void **state)
{
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    const char *const network[] = {CONV_16};
    const call calls[] = {{"reorder", "src=f32::abcd dst=f32::aBcd problem=1x8x8x8"},
                          {"reorder", "src=f32::abcd dst=f32::blocked:Acdb16a:f0 problem=16x8x3x3"},
                          {"convolution", CONV(16)},
                          {"reorder", "src=f32::aBcd dst=f32::abcd problem=1x16x8x8"}};
    align_calls(network, 1, calls, 4, &arena, &a);
    expect(&a, "same");
    assert_true(cause(&a, "weights-reordered") == 1 && cause(&a, "activations-reordered") == 2);
    bz_arena_free(&arena);
}

/* A reorder makes weights where the next call takes weights of as many numbers in the layout that it writes. */
static void test_reordered_weights(void **state)
{
    (void)state;
#define REORDER(to, sizes) "src=f32::blocked:a:f0 dst=f32::blocked:" to ":f0 problem=" sizes
    static const char GEMM[] = "gemm m=4 n=10 k=48 dtype=f32", MATMUL[] = "matmul a=2x4x48 b=2x48x10 dtype=f32";
    static const call conv = {"convolution", CONV(16)},
                      product = {"inner_product",
                                 "src=f32::blocked:ab:f0 wei=f32::blocked:AB16b64a:f0 bia=undef::undef::f0 "
                                 "dst=f32::blocked:ab:f0 problem=mb4ic48oc10"},
                      products = {"matmul",
                                  "src=f32::blocked:abc:f0 wei=f32::blocked:aCB16b:f0 dst=f32::blocked:abc:f0 "
                                  "problem=2x4x48:2x48x10:2x4x10"};
    static const struct {
        const char *layer, *reorder;
        const call *call;
        bool weights;
    } CASES[] = {
        {CONV_16, REORDER("Acdb16a", "16x8x3x3"), &conv, true},
        {CONV_16, REORDER("Acdb8a", "16x8x3x3"), &conv, false},
        {CONV_16, REORDER("Acdb16a", "16x8x3x4"), &conv, false},
        {CONV_16, REORDER("Acdb16a", "1x8x8x8"), &conv, false},
        {GEMM, REORDER("AB16b64a", "10x48"), &product, true},
        {GEMM, REORDER("AB16b32a", "10x48"), &product, false},
        {GEMM, REORDER("AB16b64a", "4x48"), &product, false},
        {GEMM, REORDER("AB16b64a", "4x10"), &product, false},
        {MATMUL, REORDER("aCB16b", "2x48x10"), &products, false}, /* of which nobody knows that it is constant */
    };
#undef REORDER
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        bz_alignment a;
        align_calls(&CASES[i].layer, 1, (const call[]){{"reorder", CASES[i].reorder}, *CASES[i].call}, 2, &arena, &a);
        if (cause(&a, "weights-reordered") != CASES[i].weights ||
            cause(&a, "activations-reordered") == CASES[i].weights)
            fail_msg("case %zu: %g of weights, %g of activations", i, cause(&a, "weights-reordered"),
                     cause(&a, "activations-reordered"));
        bz_arena_free(&arena);
    }
}

/* However the calls are permuted, none is missing or extra. */
static void test_permutations(void **state)
{
    enum { CALLS = 12 };
    static const char *const SIZES[CALLS] = {"1", "2", "3", "4", "5", "6", "7", "8", "1", "2", "3", "4"};
    bz_arena arena = {0};
    const char *problem[CALLS];
    call calls[CALLS];
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        problem[i] = bz_arena_printf(&arena,
                                     "conv x=1x8x8x8 w=%sx8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 "
                                     "dtype=f32",
                                     SIZES[i]);
        calls[i] = (call){"convolution", bz_arena_printf(&arena,
                                                         ONEDNN_CONV("problem=mb1_ic8oc%s_ih8oh8kh3sh1dh0ph1_"
                                                                     "iw8ow8kw3sw1dw0pw1"),
                                                         SIZES[i])};
    }
    for (int round = 0; round < 40; round++) {
        bz_alignment a;
        for (int i = CALLS - 1; i > 0; i--) {
            int k = (int)below((uint32_t)i + 1);
            call swap = calls[i];
            calls[i] = calls[k];
            calls[k] = swap;
        }
        align_calls(problem, CALLS, calls, CALLS, &arena, &a);
        /* convolutions in exchange for others are changed ones: no layer is left without a call */
        assert_true(a.n == CALLS && !a.count[BZ_ALIGNED_MISSING] && !a.count[BZ_ALIGNED_EXTRA]);
    }
    bz_arena_free(&arena);
}

/* On a device: kernels of calls, of nobody, copies; the host behind each gap. */
static void test_device(void **state)
{
    static model m;
    const char *const problem[] = {CONV_16, RELU_16};
    bz_arena arena = {0};
    bz_error err = {0};
    (void)state;
    make_model(&m, problem, 2);
    for (int round = 0; round < 50; round++) {
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "made up", "test"), lane = bz_trace_thread(t, source, 1, 1);
        uint32_t stream = bz_trace_stream(t, source, 1, 0, 1, 7);
        /* PyTorch's ReLU is its clamp: of a model that has none of these it is the ReLU */
        const char *const KERNELS[] = {
            "implicit_convolve_sgemm", "image_2d_pad_constant_kernel",
            round % 3 ? "mxnet_op::mshadow_op::relu"
                      : "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
                        "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}>(int)",
            "nobody_knows"};
        for (int64_t i = 0; i < 3; i++) {
            int64_t at = i * 2000 * MICROSECOND, device = at;
            bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
            for (uint32_t k = 0; k < 4; k++) {
                int64_t host = at + k * 150 * MICROSECOND + below(50 * MICROSECOND), took = below(90 * MICROSECOND);
                uint32_t correlation = (uint32_t)(10 * i + k + 1);
                if (!k) {
                    size_t c = bz_trace_add(t, BZ_EVENT_CALL, host - 1, host + took + 1,
                                            bz_trace_text(t, "cudnnConvolutionForward"), lane);
                    t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
                }
                size_t api =
                    bz_trace_add(t, BZ_EVENT_API, host, host + took, bz_trace_text(t, "cudaLaunchKernel"), lane);
                device = (device > host ? device : host) + below(100 * MICROSECOND);
                bz_event_kind kind = k == 3 && round % 2 ? BZ_EVENT_COPY : BZ_EVENT_KERNEL;
                size_t e = bz_trace_add(t, kind, device, device + below(200 * MICROSECOND),
                                        bz_trace_text(t, KERNELS[k]), stream);
                t->event[BZ_EVENT_API].correlation[api] = t->event[kind].correlation[e] = correlation;
                device = t->event[kind].end[e];
            }
        }
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        bz_alignment a;
        bz_align_make(&m.bound, t, &arena, &a);
        check_sum(&m.bound, t, &a, &arena);
        assert_true(a.count[BZ_ALIGNED_SAME] == 2 && a.n == 2);
        assert_true(cause(&a, "input-padded") == 1 && cause(&a, round % 2 ? "copied" : "kernels-extra") <= 1);
        bz_trace_free(t);
    }
    bz_arena_free(&arena);
}

/* PyTorch's training on a device: one operator does both gradients of a convolution, by two kernels and what prepares them. */
static void test_backward(void **state)
{
    static const struct {
        const char *op, *kernel[2];
    } OPS[] = {{"aten::conv2d", {"sm80_xmma_fprop_implicit_gemm_f32f32", NULL}},
               {"aten::cudnn_batch_norm_backward", {"bn_bw_1C11_kernel_new", NULL}},
               {"aten::convolution_backward", {"dgrad_engine", "wgrad_alg0_engine"}},
               {NULL, {"threshold_kernel_impl", NULL}},
               {"aten::convolution_backward", {"wgrad_alg0_engine", NULL}}};
    static model m;
    const char *const problem[] = {
        CONV_16,
        "batchnorm_grad x=1x16x8x8 dtype=f32",
        "conv_data x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "conv_weights x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "activation_grad fn=relu x=512 of_y=0 dtype=f32",
        "conv_weights x=1x8x8x8 w=8x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"};
    bz_arena arena = {0};
    bz_error err = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, problem, 6);
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), lane = bz_trace_thread(t, source, 1, 1);
    uint32_t stream = bz_trace_stream(t, source, 1, 0, 1, 7), correlation = 0;
    for (int64_t i = 0; i < 3; i++) {
        int64_t at = i * 2000 * MICROSECOND;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
        for (size_t k = 0; k < sizeof OPS / sizeof *OPS; k++) {
            int64_t host = at + (int64_t)k * 100 * MICROSECOND;
            if (OPS[k].op)
                bz_trace_add(t, BZ_EVENT_OP, host, host + 90 * MICROSECOND, bz_trace_text(t, OPS[k].op), lane);
            for (int n = 0; n < 2 && OPS[k].kernel[n]; n++, host += 20 * MICROSECOND) {
                size_t api =
                    bz_trace_add(t, BZ_EVENT_API, host + 10, host + 20, bz_trace_text(t, "cudaLaunchKernel"), lane);
                size_t e = bz_trace_add(t, BZ_EVENT_KERNEL, host + 30, host + 10 * MICROSECOND,
                                        bz_trace_text(t, OPS[k].kernel[n]), stream);
                t->event[BZ_EVENT_API].correlation[api] = t->event[BZ_EVENT_KERNEL].correlation[e] = ++correlation;
            }
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_align_make(&m.bound, t, &arena, &a);
    check_sum(&m.bound, t, &a, &arena);
    assert_int_equal(a.count[BZ_ALIGNED_SAME], 4);
    assert_int_equal(a.count[BZ_ALIGNED_FUSED], 1);
    assert_int_equal(a.n, 5);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* What PyTorch's profiler says it takes, where the device waits for the host. */
static void test_profiler(void **state)
{
    static const struct {
        const char *format;
        int64_t busy; /* µs of an iteration of 1000 */
        const char *less;
    } CASES[] = {{"PyTorch trace", 300,
                  "the 50 operators and 0 calls of an iteration: alone the program takes up to 300 µs less"},
                 {"PyTorch trace", 800, "up to 200 µs less"},
                 {"PyTorch trace", 950, NULL},
                 {"Nsight Systems database", 300, NULL}};
    bz_error err = {0};
    (void)state;
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        bz_arena arena = {0};
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "made up", CASES[c].format), lane = bz_trace_thread(t, source, 1, 1);
        uint32_t stream = bz_trace_stream(t, source, 1, 0, 1, 7);
        for (int64_t i = 0; i < 3; i++) {
            int64_t at = i * 2000 * MICROSECOND;
            bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
            for (int k = 0; k < 50; k++)
                bz_trace_add(t, BZ_EVENT_OP, at + k * 20 * MICROSECOND, at + (k * 20 + 15) * MICROSECOND,
                             bz_trace_text(t, "aten::add"), lane);
            bz_trace_add(t, BZ_EVENT_KERNEL, at, at + CASES[c].busy * MICROSECOND, bz_trace_text(t, "kernel"), stream);
        }
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        uint32_t typical = bz_typical_iteration(t);
        bz_iteration_stats stats;
        bz_iteration_measure(t, typical, &stats);
        const char *said = bz_recorder_slows(t, typical, &stats, &arena);
        if (!said != !CASES[c].less || (said && !strstr(said, CASES[c].less)))
            fail_msg("case %zu: %s", c, said ? said : "nothing");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Operators where nothing else was recorded: the weights tell which one is missing, a bias that batch normalization was
 * folded. */
static void test_operators(void **state)
{
    static model m;
    const char *const problem[] = {CONV_16, "batchnorm x=1x16x8x8 dtype=f32", CONV_32, RELU_16};
    static const char *const NAMES[] = {"Conv", "Flatten", "Relu"};
    static const char *const DETAILS[2][3] = {
        {"inputs=[{float:[1,8,8,8]},{float:[32,8,3,3]}]", "", ""},
        {"inputs=[{float:[1,8,8,8]},{float:[16,8,3,3]},{float:[16]}] name=a", "", ""}};
    bz_arena arena = {0};
    bz_error err = {0};
    (void)state;
    make_model(&m, problem, 4);
    for (int round = 0; round < 2; round++) {
        bz_alignment a;
        bz_trace *t = bz_trace_new();
        uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
        for (int64_t i = 0; i < 3; i++) {
            int64_t at = i * 2000 * MICROSECOND;
            bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
            for (int k = 0; k < 3; k++) {
                size_t op = bz_trace_add(t, BZ_EVENT_OP, at + k * 300 * MICROSECOND, at + (k * 300 + 250) * MICROSECOND,
                                         bz_trace_text(t, NAMES[k]), lane);
                t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, DETAILS[round][k]);
            }
        }
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        align(&m.bound, t, round ? "fused missing same" : "missing missing same same", &arena, &a);
        assert_true(cause(&a, "operator Flatten") == 1);
        bz_trace_free(t);
    }
    bz_arena_free(&arena);
}

/* Three iterations of operators that say which nodes they were. */
static bz_trace *named_trace(const char *const (*op)[2], int n)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    int64_t slot = 1000 * MICROSECOND / (n > 10 ? n : 10);
    for (int64_t i = 0; i < 3; i++) {
        int64_t at = i * 2000 * MICROSECOND;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
        for (int k = 0; k < n; k++) {
            size_t e = bz_trace_add(t, BZ_EVENT_OP, at + k * slot, at + k * slot + slot / 10 * 9,
                                    bz_trace_text(t, op[k][0]), lane);
            t->event[BZ_EVENT_OP].detail[e] = bz_trace_text(t, op[k][1]);
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* Layers that nothing but their names tell apart, in another order; an operator that no rule knows; work on constants; and
 * what an optimizer makes of nodes. */
static void test_named(void **state)
{
    static model m;
    enum { A, A_RELU, B, B_RELU, WEIGHTS, SHAPE, ALL };
    static const char *const NODES[ALL] = {"/a/conv", "/a/relu", "/b/conv", "/b/relu", "/w/T", "/a/shape"};
    static const char *const KINDS[ALL] = {"conv", "relu", "conv", "relu", "transpose", "reshape"};
    static const int FIRST[] = {0, 0, 1, 1, 2, 2, 2}, PRED[] = {A, B};
    static const char *const PLAIN[][2] = {
        {"Transpose", "node=9 name=/w/T_kernel_time"}, {"Conv", "name=/b/conv_kernel_time"},
        {"Unheard", "name=/b/relu_kernel_time"},       {"Conv", "name=/a/conv_kernel_time"},
        {"Relu", "name=/a/relu_kernel_time"},          {"Reshape", "name=/a/shape_kernel_time"},
        {"Unheard", "name=/nobody/knows_kernel_time"}};
    static const char *const OPTIMIZED[][2] = {{"Conv", "name=/b/relu_out_nchwc_kernel_time"},
                                               {"FusedConv", "name=/a/conv/Fused/_kernel_time"}};
    const char *const problem[] = {CONV_16, RELU_16, CONV_16, RELU_16};
    static const int ORDER[] = {B, B_RELU, A, A_RELU};
    bz_arena arena = {0};
    bz_alignment a;
    bz_value value = {.name = "/b/relu_out"};
    bz_value_id out = 0;
    bz_node node = {.n_out = 1, .out = &out};
    bz_model file = {.values = &value, .n_values = 1};
    bz_dag dag = {.n = ALL, .first = FIRST, .pred = PRED};
    (void)state;
    make_model(&m, problem, 4);
    for (int i = 0; i < ALL; i++)
        m.layer[i].name = NODES[i], m.layer[i].kind = KINDS[i];
    m.layer[WEIGHTS].class = BZ_CONSTANT;
    m.layer[SHAPE].class = BZ_VIEW;
    m.layer[B_RELU].node = &node;
    m.layers.model = &file;
    m.layers.n = ALL;
    m.bound.dag = &dag;
    bz_trace *t = named_trace(PLAIN, 7);
    bz_align_make(&m.bound, t, &arena, &a);
    check_sum(&m.bound, t, &a, &arena);
    assert_true(a.n == 4 && a.count[BZ_ALIGNED_SAME] == 4 && a.moved == 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(a.row[i].layer[0], ORDER[i]);
    assert_true(cause(&a, "constants-computed") == 1 && cause(&a, "operator Reshape") == 1);
    assert_true(cause(&a, "operator Unheard") == 1 && cause(&a, "operators-extra") == 0);
    bz_trace_free(t);

    t = named_trace(OPTIMIZED, 2);
    bz_align_make(&m.bound, t, &arena, &a);
    check_sum(&m.bound, t, &a, &arena);
    for (int i = 0; i < a.n; i++)
        assert_int_equal(a.row[i].layer[0], a.row[i].kind == BZ_ALIGNED_FUSED  ? B
                                            : a.row[i].kind == BZ_ALIGNED_SAME ? A
                                                                               : A_RELU);
    assert_true(a.n == 3 && a.count[BZ_ALIGNED_FUSED] == 1 && a.count[BZ_ALIGNED_SAME] == 1 && a.moved == 1);
    for (int i = 0; i < a.n; i++)
        assert_true(a.row[i].kind != BZ_ALIGNED_FUSED || (a.row[i].n_layers == 2 && a.row[i].layer[1] == B_RELU));
    bz_trace_free(t);

    bz_layer inside[] = {m.layer[B], m.layer[B_RELU]}; /* in a branch nodes have names, too */
    bz_body body = {.name = "then_branch", .layers = inside, .n = 2, .trips = 1};
    m.layer[B] = (bz_layer){.name = "/if", .kind = "if", .bodies = &body, .n_bodies = 1};
    m.layer[B_RELU] = (bz_layer){.name = "/view", .kind = "identity", .class = BZ_VIEW};
    for (int i = 0; i < 2; i++)
        m.bound_layer[B + i].layer = &inside[i], m.bound_layer[B + i].node = B;
    t = named_trace(PLAIN, 7);
    bz_align_make(&m.bound, t, &arena, &a);
    check_sum(&m.bound, t, &a, &arena);
    assert_true(a.n == 4 && a.count[BZ_ALIGNED_SAME] == 4 && a.moved == 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(a.row[i].layer[0], ORDER[i]);
    bz_trace_free(t);
    for (int i = 0; i < 2; i++)
        m.layer[B + i] = inside[i], m.bound_layer[B + i].layer = &m.layer[B + i], m.bound_layer[B + i].node = B + i;

    m.layer[B].name = NODES[A]; /* a name that two nodes have says nothing */
    t = named_trace(
        (const char *const[][2]){{"Relu", "name=/a/relu_kernel_time"}, {"Conv", "name=/a/conv_kernel_time"}}, 2);
    bz_align_make(&m.bound, t, &arena, &a);
    expect(&a, "missing same same missing");
    assert_true(a.row[1].layer[0] == A_RELU && a.row[2].layer[0] == B);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* The largest of a window is not its mean; PyTorch's mean over all there is, is the pooling that the model has of it. What the model has as the bias of
 * a convolution may be the program's batch normalization. */
static void test_sorts(void **state)
{
    static model m;
    static const char *const MEAN = "pool x=1x16x4x4 kernel=4x4 stride=1x1 pad=0x0x0x0 dilation=1x1 mode=avg dtype=f32";
    const char *const pools[] = {MEAN, POOL_16, MEAN}, *const bias[] = {CONV_BIAS, RELU_16};
    static const char *const OPS[][2] = {{"aten::max_pool2d", ""},
                                         {"aten::mean", ""},
                                         {"aten::conv2d", ""},
                                         {"aten::batch_norm", ""},
                                         {"aten::relu_", ""}};
    static const struct {
        const char *kernel, *layer;
    } KERNELS[] = {
        {"void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)", "maxpool"},
        {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>(int)",
         "reduce"},
        {"void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::averpooling_func<float>, 2, "
         "false>(int)",
         "avgpool"},
        {"void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::maxpooling_func<float, 0>, 0, "
         "false>(int)",
         "maxpool"},
        {"AddV2_GPU_DT_FLOAT_DT_FLOAT_kernel", "add"},
        {"void tensorflow::BiasNHWCKernel<float>(int, float const*, float const*, float*, int)", "bias"},
        {"void tensorflow::functor::ApplyAdamKernel<float>(int, float*, float*, float*, float const*)", "update"}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    for (int round = 0; round < 2; round++) {
        make_model(&m, round ? bias : pools, round ? 2 : 3);
        bz_trace *t = named_trace(OPS + (round ? 2 : 0), round ? 3 : 2);
        align(&m.bound, t, round ? "same extra same" : "missing same same", &arena, &a);
        assert_true(cause(&a, "normalized") == round);
        bz_trace_free(t);
    }
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        bz_kernel k;
        bz_kernel_read(KERNELS[i].kernel, &k);
        assert_string_equal(k.layer, KERNELS[i].layer);
    }
    bz_arena_free(&arena);
}

/* One operator for several layers: both of a recurrent network, all updates of an optimizer, and both gradients of a convolution in either order. */
static void test_stacked(void **state)
{
    static model m;
    const char *const network[] = {
        "lstm seq=3 batch=2 input=5 hidden=6 dir=forward dtype=f32",
        "softmax x=2x6 axis=1 dtype=f32",
        "lstm seq=3 batch=2 input=6 hidden=6 dir=forward dtype=f32",
        "conv_weights x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "conv_data x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "update rule=sgd x=1152 dtype=f32",
        "update rule=sgd x=16 dtype=f32",
        "update rule=sgd x=48 dtype=f32"};
    static const char *const OPS[][2] = {{"aten::lstm", ""},
                                         {"aten::softmax", ""},
                                         {"aten::cudnn_convolution_backward", ""},
                                         {"Optimizer.zero_grad#SGD.zero_grad", ""},
                                         {"Optimizer.step#SGD.step", ""}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 8);
    bz_trace *t = named_trace(OPS, 5);
    align(&m.bound, t, "fused same fused fused", &arena, &a);
    assert_true(a.row[0].n_layers == 2 && a.row[0].layer[0] == 0 && a.row[0].layer[1] == 2);
    assert_true(a.row[2].n_layers == 2 && a.row[3].n_layers == 3 && cause(&a, "filled") == 1);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Operators of which the names alone are known: layers that are computed as another kind are theirs by the kind that they have in the model. */
static void test_own_kinds(void **state)
{
    static const char *const OPS[][2] = {{"aten::pow", ""},
                                         {"aten::rsqrt", ""},
                                         {"aten::add", ""},
                                         {"aten::scatter_add_", ""},
                                         {"aten::neg", ""},
                                         {"aten::index", ""},
                                         {"aten::native_batch_norm_backward", ""}};
    static const char *const KINDS[] = {"pow", "sqrt", "div", "add", "scatternd", "neg", "gathernd", "groupnorm_grad"};
    static model m;
    const char *const network[] = {"activation fn=square x=4x8x8x8 dtype=f32",
                                   "activation fn=sqrt x=4x8x1x1 dtype=f32",
                                   "activation fn=pow alpha=1 beta=-1 x=4x8x1x1 dtype=f32",
                                   "binary fn=add a=4x8x8x8 b=1x8x1x1 dtype=f32",
                                   "copy read=64 write=64 dtype=u8",
                                   "activation fn=linear alpha=-1 beta=0 x=4x8x8x8 dtype=f32",
                                   "copy read=64 write=64 dtype=u8",
                                   "groupnorm_grad x=2x6x3x2 group=3 dtype=f32"};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 8);
    for (int i = 0; i < 8; i++)
        m.layer[i].kind = KINDS[i];
    bz_trace *t = named_trace(OPS, 7);
    align(&m.bound, t, "same fused same same same same same", &arena, &a);
    bz_trace_free(t);
    /* a call whose operands are known is none of a layer with others */
    align_calls(
        (const char *const[]){network[3]}, 1,
        (const call[]){{"binary", "src=f32::blocked:abcd:f0 dst=f32::blocked:abcd:f0 alg:binary_add 2x4x4x4:2x4x4x4"}},
        1, &arena, &a);
    assert_int_equal(a.count[BZ_ALIGNED_SAME], 0);
    bz_arena_free(&arena);
}

/* The gradient of a recurrent operator is a node of autograd for each small operator in it, and one step: also a node whose operator was not recorded
 * by its name, between two others. What stands before and behind is not of it, though it has the same names. */
static void test_recurrent_back(void **state)
{
#define NODE(name, inner, from)                                                                                        \
    {BZ_EVENT_OP, "autograd::engine::evaluate_function: " name, from, (from) + 40},                                    \
        {BZ_EVENT_OP, name, (from) + 2, (from) + 38},                                                                  \
    {                                                                                                                  \
        BZ_EVENT_OP, inner, (from) + 4, (from) + 30                                                                    \
    }
    static const event OPS[] = {{BZ_EVENT_OP, "aten::mul", 10, 30},
                                {BZ_EVENT_OP, "aten::lstm", 40, 140},
                                {BZ_EVENT_OP, "aten::mul", 50, 60},
                                {BZ_EVENT_OP, "aten::sigmoid_", 60, 70},
                                {BZ_EVENT_OP, "aten::tanh", 70, 80},
                                {BZ_EVENT_OP, "aten::mul", 80, 90},
                                {BZ_EVENT_OP, "aten::mul", 150, 170},
                                NODE("MulBackward0", "aten::mul", 200),
                                NODE("MulBackward0", "aten::mul", 300),
                                NODE("TanhBackward0", "aten::tanh_backward", 350),
                                NODE("UnheardBackward0", "aten::mul", 400),
                                NODE("SigmoidBackward0", "aten::sigmoid_backward", 450),
                                NODE("torch::autograd::AccumulateGrad", "aten::add_", 500),
                                NODE("MulBackward0", "aten::mul", 550),
                                NODE("MulBackward0", "aten::mul", 600)};
#undef NODE
    static model m;
    static const char MUL[] = "binary fn=mul a=4x8 b=4x8 dtype=f32";
    const char *const network[] = {MUL,
                                   "lstm seq=3 batch=2 input=5 hidden=6 dir=forward training=1 dtype=f32",
                                   "lstm seq=3 batch=2 input=6 hidden=6 dir=forward training=1 dtype=f32",
                                   MUL,
                                   MUL,
                                   "lstm_grad seq=3 batch=2 input=6 hidden=6 dir=forward dtype=f32",
                                   "lstm_grad seq=3 batch=2 input=5 hidden=6 dir=forward dtype=f32",
                                   MUL};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 8);
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "same fused same same fused same", &arena, &a);
    assert_true(a.row[4].n_layers == 2 && a.row[4].layer[0] == 5 && a.row[4].layer[1] == 6);
    assert_string_equal(a.row[4].call, "aten::lstm.backward");
    assert_true(a.row[4].seconds > 199e-6 && a.row[4].seconds < 201e-6);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Around what autograd does there are nodes of its own: the gradient of a mean is one step, whatever the model has for it, and what keeps gradients
 * is no layer's. The loss of squares is four layers, and the gradients of a convolution are three where it has a bias. */
static void test_autograd(void **state)
{
    static model m;
    const char *const network[] = {
        "binary fn=sub a=4x8 b=4x8 dtype=f32",
        "binary fn=mul a=4x8 b=4x8 dtype=f32",
        "reduce fn=sum x=4x8 y=1x1 dtype=f32",
        "binary fn=mul a=1x1 b=1x1 dtype=f32",
        "binary fn=mul a=4x8 b=1x1 dtype=f32",
        "pool_grad mode=avg x=1x16x8x8 kernel=8x8 stride=1x1 pad=0x0x0x0 dilation=1x1 dtype=f32",
        "conv_data x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "conv_weights x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "reduce fn=sum x=1x16x8x8 y=1x16x1x1 dtype=f32",
        "update rule=sgd x=1152 dtype=f32"};
    static const char *const OPS[][2] = {{"aten::mse_loss", ""},
                                         {"aten::mse_loss_backward", ""},
                                         {"MeanBackward1", ""},
                                         {"aten::convolution_backward", ""},
                                         {"torch::autograd::AccumulateGrad", ""},
                                         {"Optimizer.step#SGD.step", ""}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 10);
    bz_trace *t = named_trace(OPS, 6);
    align(&m.bound, t, "fused same same fused same", &arena, &a);
    assert_true(a.row[0].n_layers == 4 && a.row[2].layer[0] == 5 && a.row[3].n_layers == 3 &&
                cause(&a, "gradients-added") == 1);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Dropout is several operators, and its gradient a product. In inference it is asked for, and does nothing. */
static void test_dropout(void **state)
{
    static model m;
    const char *const network[] = {"dropout x=32 dtype=f32", "activation fn=tanh x=32 dtype=f32",
                                   "activation_grad fn=tanh x=32 of_y=1 dtype=f32", "dropout_grad x=32 dtype=f32"};
    static const event OPS[] = {
        {BZ_EVENT_OP, "aten::dropout", 10, 20},         {BZ_EVENT_OP, "aten::dropout", 100, 200},
        {BZ_EVENT_OP, "aten::bernoulli_", 110, 120},    {BZ_EVENT_OP, "aten::div_", 130, 140},
        {BZ_EVENT_OP, "aten::mul", 150, 160},           {BZ_EVENT_OP, "aten::tanh", 300, 310},
        {BZ_EVENT_OP, "aten::tanh_backward", 400, 410}, {BZ_EVENT_OP, "aten::mul", 500, 510}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 4);
    m.layer[3].kind = "dropout_grad";
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "same same same same", &arena, &a);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A conversion or a padding is a layer's where the model has such a layer, and the program's own elsewhere; of one that does nothing nothing is said. */
static void test_own_work(void **state)
{
    static model m;
    static const char COPY[] = "copy read=64 write=64 dtype=u8";
    static const event OPS[] = {{BZ_EVENT_OP, "aten::to", 10, 20},         {BZ_EVENT_OP, "aten::to", 100, 200},
                                {BZ_EVENT_OP, "aten::_to_copy", 110, 190}, {BZ_EVENT_OP, "aten::tanh", 300, 310},
                                {BZ_EVENT_OP, "aten::to", 400, 500},       {BZ_EVENT_OP, "aten::_to_copy", 410, 490},
                                {BZ_EVENT_OP, "aten::pad", 600, 700},      {BZ_EVENT_OP, "aten::copy_", 610, 620}};
    const char *const network[] = {COPY, "activation fn=tanh x=32 dtype=f32", COPY};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 3);
    m.layer[0].kind = "cast";
    m.layer[2].kind = "pad";
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "same same same", &arena, &a);
    assert_true(cause(&a, "converted") == 2 && cause(&a, "input-padded") == 0);
    m.layer[0].kind = m.layer[2].kind = "tile";
    bz_align_make(&m.bound, t, &arena, &a);
    expect(&a, "missing same missing");
    assert_true(cause(&a, "converted") == 3 && cause(&a, "input-padded") == 1);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Layers that were made of the recording's own operators: each is done by its operator, or by the one around that, whatever else looks like it. */
static void test_made(void **state)
{
    static model m;
    const char *const network[] = {"activation fn=tanh x=32 dtype=f32", "activation fn=sigmoid x=32 dtype=f32",
                                   "activation fn=sigmoid x=32 dtype=f32"};
    static const event OPS[] = {{BZ_EVENT_OP, "aten::sigmoid", 10, 20},
                                {BZ_EVENT_OP, "aten::lstm", 100, 200},
                                {BZ_EVENT_OP, "aten::tanh", 110, 120},
                                {BZ_EVENT_OP, "aten::sigmoid", 130, 140},
                                {BZ_EVENT_OP, "aten::sigmoid", 300, 310}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 3);
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    const uint32_t first = bz_typical_iteration(t) * (uint32_t)(sizeof OPS / sizeof *OPS),
                   made_by[] = {first + 2, first + 3, first + 4};
    m.bound.made_by = made_by;
    align(&m.bound, t, "extra fused same", &arena, &a);
    assert_true(a.row[1].n_layers == 2 && a.row[2].layer[0] == 2);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A node of autograd whose formula takes other operators than the derivative does is one step. Slices are put into zeros and added, where their
 * gradients could lie side by side. */
static void test_formulas(void **state)
{
    static model m;
    const char *const network[] = {
        "binary fn=div a=4x8 b=4x8 dtype=f32", "binary fn=mul a=4x8 b=4x8 dtype=f32",
        "copy read=64 write=64 dtype=u8",      "activation_grad fn=sqrt x=32 of_y=1 dtype=f32",
        "binary fn=mul a=4x1 b=4x1 dtype=f32", "binary fn=mul a=4x8 b=4x1 dtype=f32"};
    static const event OPS[] = {{BZ_EVENT_OP, "DivBackward0", 10, 90},
                                {BZ_EVENT_OP, "aten::div", 20, 30},
                                {BZ_EVENT_OP, "aten::neg", 40, 50},
                                {BZ_EVENT_OP, "aten::div", 60, 70},
                                {BZ_EVENT_OP, "aten::slice_backward", 100, 120},
                                {BZ_EVENT_OP, "aten::slice_backward", 130, 150},
                                {BZ_EVENT_OP, "aten::add_", 160, 170},
                                {BZ_EVENT_OP, "SqrtBackward0", 200, 240},
                                {BZ_EVENT_OP, "aten::mul", 210, 220},
                                {BZ_EVENT_OP, "VarBackward0", 300, 390},
                                {BZ_EVENT_OP, "aten::mean", 310, 320},
                                {BZ_EVENT_OP, "aten::mul", 330, 340}};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 6);
    m.layer[2].kind = "concat";
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "fused split split split same fused", &arena, &a);
    assert_true(a.row[0].n_layers == 2 && a.row[5].n_layers == 2);
    bz_trace_free(t);
    const char *const written[] = {"activation fn=softplus x=32 dtype=f32", "activation fn=tanh x=32 dtype=f32",
                                   "binary fn=mul a=4x8 b=4x8 dtype=f32"};
    const char *const whole[] = {"activation fn=mish x=32 dtype=f32"};
    for (int i = 0; i < 2; i++) {
        make_model(&m, i ? whole : written, i ? 1 : 3);
        t = named_trace((const char *const[][2]){{"aten::mish", ""}}, 1);
        bz_align_make(&m.bound, t, &arena, &a);
        expect(&a, i ? "same" : "fused");
        assert_int_equal(a.row[0].n_layers, i ? 1 : 3);
        bz_trace_free(t);
    }
    bz_arena_free(&arena);
}

/* A transpose and a part of what is there are views in PyTorch: an operator for each tells so, but not for one more. What is around them makes none
 * besides. */
static void test_views(void **state)
{
    static model m;
    static const char COPY[] = "copy read=64 write=64 dtype=u8";
    static const char *const KINDS[] = {"conv", "transpose", "slice", "slice", "slice", "relu"};
    static const event OPS[] = {{BZ_EVENT_OP, "aten::conv2d", 10, 100}, {BZ_EVENT_OP, "aten::transpose", 110, 120},
                                {BZ_EVENT_OP, "aten::chunk", 130, 190}, {BZ_EVENT_OP, "aten::slice", 140, 150},
                                {BZ_EVENT_OP, "aten::slice", 160, 170}, {BZ_EVENT_OP, "aten::relu", 200, 260}};
    const char *const network[] = {CONV_16, COPY, COPY, COPY, COPY, RELU_16};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 6);
    for (int i = 0; i < 6; i++)
        m.layer[i].kind = KINDS[i];
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "same spared spared spared missing same", &arena, &a);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A transposed convolution leads back by a convolution, and PyTorch has one operator for the gradients of both sorts. On the way there a convolution is
 * none of these. */
static void test_turned_gradient(void **state)
{
    static model m;
    static const char *const OPS[][2] = {{"aten::convolution_backward", ""}};
    const char *const network[] = {
        CONV_16, "conv_weights x=1x8x8x8 w=16x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"};
    bz_arena arena = {0};
    (void)state;
    make_model(&m, network, 2);
    m.layer[0].kind = "conv";
    bz_trace *t = named_trace(OPS, 1);
    for (int back = 0; back < 2; back++) {
        bz_train_phase phase[] = {back ? BZ_TRAIN_BACKWARD : BZ_TRAIN_FORWARD, BZ_TRAIN_BACKWARD};
        bz_alignment a;
        m.layers.phase = phase;
        align(&m.bound, t, back ? "fused" : "missing same", &arena, &a);
    }
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A checkpoint's node of autograd computes layers once more, and has a way back of its own within: that is the layers' gradient. */
static void test_recomputed(void **state)
{
    static model m;
    static const event OPS[] = {
        {BZ_EVENT_OP, "aten::conv2d", 10, 100},
        {BZ_EVENT_OP, "aten::relu", 110, 200},
        {BZ_EVENT_OP, "autograd::engine::evaluate_function: CheckpointFunctionBackward", 290, 650},
        {BZ_EVENT_OP, "CheckpointFunctionBackward", 300, 600},
        {BZ_EVENT_OP, "aten::conv2d", 310, 380},
        {BZ_EVENT_OP, "aten::relu", 390, 420},
        {BZ_EVENT_OP, "ReluBackward0", 430, 500},
        {BZ_EVENT_OP, "aten::threshold_backward", 440, 490},
        {BZ_EVENT_OP, "aten::add_", 610, 640}};
    const char *const network[] = {CONV_16, RELU_16, "activation_grad fn=relu x=1024 of_y=0 dtype=f32",
                                   "binary fn=add a=1x16x8x8 b=1x16x8x8 dtype=f32"};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    make_model(&m, network, 4);
    bz_trace *t = trace_of(OPS, sizeof OPS / sizeof *OPS);
    align(&m.bound, t, "same same same same", &arena, &a);
    assert_true(cause(&a, "recomputed") == 2);
    m.layer[1].name = "relu/again"; /* the model has such layers */
    bz_align_make(&m.bound, t, &arena, &a);
    assert_true(cause(&a, "recomputed") == 0);
    bz_trace_free(t);
    /* without reentrance it is the first node that asks for an activation; in a program's own function they may be the gradient */
    for (int own = 0; own < 2; own++) {
        const event LATER[] = {{BZ_EVENT_OP, "aten::conv2d", 10, 100},
                               {BZ_EVENT_OP, "aten::relu", 110, 200},
                               {BZ_EVENT_OP, own ? "RampBackward" : "ReluBackward0", 300, 600},
                               {BZ_EVENT_OP, "aten::conv2d", 310, 380},
                               {BZ_EVENT_OP, "aten::relu", 390, 420},
                               {BZ_EVENT_OP, "aten::threshold_backward", 440, 490},
                               {BZ_EVENT_OP, "aten::add_", 610, 640}};
        m.layer[1].name = "relu";
        t = trace_of(LATER, sizeof LATER / sizeof *LATER);
        align(&m.bound, t, own ? "same same extra extra same same" : "same same same same", &arena, &a);
        assert_true(cause(&a, "recomputed") == (own ? 0 : 2));
        bz_trace_free(t);
    }
    bz_arena_free(&arena);
}

/* A training that runs its model twice for one update is held against no bound of one pass; and a program that only infers, or another network, against
 * none of a training. */
static void test_passes(void **state)
{
    static model m;
    enum { CONVS = 6, N = CONVS + 2 };
#define TWO                                                                                                            \
    {"aten::conv2d", ""},                                                                                              \
    {                                                                                                                  \
        "aten::conv2d", ""                                                                                             \
    }
    static const char *const OPS[2 * CONVS + 1][2] = {TWO, TWO, TWO, TWO, TWO, TWO, {"aten::convolution_backward", ""}};
#undef TWO
    const char *network[N];
    bz_train_phase phase[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        network[i] = i < CONVS ? CONV_16 : "update rule=sgd x=1152 dtype=f32";
        phase[i] = i < CONVS ? BZ_TRAIN_FORWARD : BZ_TRAIN_BACKWARD;
    }
    make_model(&m, network, N);
    m.layers.phase = phase;
    for (int i = 0; i < N; i++) {
        m.layer[i].kind = i < CONVS ? "conv" : "conv_grad";
        m.layer[i].class = BZ_COMPUTE;
    }
    static const struct {
        int first, n; /* of the operators */
        const char *told;
    } CASES[] = {{CONVS, CONVS + 1, NULL},
                 {0, 2 * CONVS + 1, "ran the model 2 times"},
                 {0, CONVS, "only infers"},
                 {2 * CONVS - 2, 3, "is not of this model"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        bool open;
        bz_trace *t = named_trace(OPS + CASES[i].first, CASES[i].n);
        const char *told = bz_align_foreign(&m.bound, t, &arena, &open);
        if (!CASES[i].told != !told || (told && !strstr(told, CASES[i].told)))
            fail_msg("case %zu: %s", i, told ? told : "nothing");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Products of the way back are as those of the way there where no operator tells them apart. */
static void test_passes_of_products(void **state)
{
    static model m;
    enum { PRODUCTS = 6, N = 3 * PRODUCTS, PASSES = 2 };
    static const call product = {"sgemm", "transa=N transb=N m=8 n=8 k=4"};
    const char *network[N];
    bz_train_phase phase[N];
    call calls[PASSES * N];
    (void)state;
    for (int i = 0; i < N; i++) {
        network[i] = "gemm m=8 n=8 k=4 dtype=f32";
        phase[i] = i < PRODUCTS ? BZ_TRAIN_FORWARD : BZ_TRAIN_BACKWARD;
    }
    for (int i = 0; i < PASSES * N; i++)
        calls[i] = product;
    make_model(&m, network, N);
    m.layers.phase = phase;
    for (int i = 0; i < N; i++) {
        m.layer[i].kind = "gemm";
        m.layer[i].class = BZ_COMPUTE;
    }
    m.layer[N - 1].kind = "gemm_grad"; /* tells that the model trains */
    for (int passes = 1; passes <= PASSES; passes++) {
        bz_arena arena = {0};
        bool open;
        bz_trace *t = make_trace(calls, passes * N);
        const char *told = bz_align_foreign(&m.bound, t, &arena, &open);
        if (passes == 1 ? told != NULL : !told || !strstr(told, "ran the model 2 times"))
            fail_msg("%d passes: %s", passes, told ? told : "nothing");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* Operators of a normalization that the program writes out, forward and backward: each did a part of the layer. Too few of them did none. */
static void test_written_out(void **state)
{
    static model m;
    const char *const network[] = {"matmul a=4x8 b=8x8 dtype=f32", "layernorm x=4x8 axis=1 dtype=f32",
                                   "softmax x=4x8 axis=1 dtype=f32", "layernorm_grad x=4x8 axis=1 dtype=f32",
                                   "update rule=sgd x=1152 dtype=f32"};
    static const char *const OPS[][2] = {
        {"aten::mm", ""},   {"aten::mean", ""}, {"aten::sub", ""}, {"aten::pow", ""}, {"aten::mean", ""},
        {"aten::sqrt", ""}, {"aten::div", ""},  {"aten::mul", ""}, {"aten::add", ""}, {"aten::softmax", ""},
        {"aten::sum", ""},  {"aten::mul", ""},  {"aten::sum", ""}, {"aten::div", ""}, {"Optimizer.step#SGD.step", ""}};
    static const struct {
        int first, n;
        const char *rows;
    } CASES[] = {{0, 15, "same split split split split split split split split same split split split split same"},
                 {7, 8, "extra extra missing missing same split split split split same"}};
    bz_arena arena = {0};
    (void)state;
    make_model(&m, network, 5);
    m.layer[1].kind = "layernorm", m.layer[3].kind = "layernorm_grad";
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_alignment a;
        bz_trace *t = named_trace(OPS + CASES[i].first, CASES[i].n);
        align(&m.bound, t, CASES[i].rows, &arena, &a);
        bz_trace_free(t);
    }
    bz_arena_free(&arena);
}

/* A product of many as one call for each of them, between others that are alike. */
static void test_batched(void **state)
{
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    const char *const network[] = {"matmul a=1x3x8x4 b=1x3x4x8 dtype=f32", "softmax x=1x3x8x8 axis=3 dtype=f32",
                                   "matmul a=1x3x8x8 b=1x3x8x4 dtype=f32"};
    const call scores = {"sgemm", "transa=N transb=N m=8 n=8 k=4"}, values = {"sgemm", "transa=N transb=N m=4 n=8 k=8"};
    align_calls(network, 3, (const call[]){scores, scores, scores, values, values, values}, 6, &arena, &a);
    assert_true(!a.count[BZ_ALIGNED_EXTRA] && a.count[BZ_ALIGNED_SPLIT] == 6 && a.count[BZ_ALIGNED_MISSING] == 1);
    for (int i = 0, k = 0; i < a.n; i++)
        if (a.row[i].kind == BZ_ALIGNED_SPLIT)
            assert_int_equal(a.row[i].layer[0], k++ < 3 ? 0 : 2);

    /* and of a network with more of them than are looked at together */
    enum { BLOCKS = 130, HEADS = 12, OF_BLOCK = 3 };
    static const char *deep[BLOCKS * OF_BLOCK];
    static call calls[BLOCKS * 2 * HEADS];
    const char *const block[] = {"matmul a=1x12x8x4 b=1x12x4x8 dtype=f32", "softmax x=1x12x8x8 axis=3 dtype=f32",
                                 "matmul a=1x12x8x8 b=1x12x8x4 dtype=f32"};
    for (int i = 0; i < BLOCKS * OF_BLOCK; i++)
        deep[i] = block[i % OF_BLOCK];
    for (int i = 0; i < BLOCKS * 2 * HEADS; i++)
        calls[i] = i / HEADS % 2 ? values : scores;
    align_calls(deep, BLOCKS * OF_BLOCK, calls, BLOCKS * 2 * HEADS, &arena, &a);
    assert_true(a.count[BZ_ALIGNED_SPLIT] == BLOCKS * 2 * HEADS && a.count[BZ_ALIGNED_MISSING] == BLOCKS);
    bz_arena_free(&arena);
}

/* Rows of the layer, which are all of one kind; how many. */
static int rows_of(const bz_alignment *a, int layer, bz_aligned_kind kind)
{
    int n = 0;
    for (int i = 0; i < a->n; i++)
        if (a->row[i].n_layers == 1 && a->row[i].layer[0] == layer) {
            assert_int_equal(a->row[i].kind, kind);
            n++;
        }
    return n;
}

/* Recurrent layers that a framework computes by products: of all steps at once where it can, and step by step. Of three steps, two rows, 5 values and 6
 * hidden ones, in both directions; the second one is as the first but for its operand. What is between two products of one layer is its own, too. */
static void test_recurrent(void **state)
{
    static const char *const network[] = {
        "lstm seq=3 batch=2 input=5 hidden=6 dir=bidirectional training=1 dtype=f32",
        "lstm seq=3 batch=2 input=12 hidden=6 dir=bidirectional training=1 dtype=f32",
        "gemm m=2 n=7 k=12 dtype=f32",
        "lstm_grad seq=3 batch=2 input=12 hidden=6 dir=bidirectional dtype=f32",
        "lstm_grad seq=3 batch=2 input=5 hidden=6 dir=bidirectional dtype=f32",
    };
    enum { FIRST, SECOND, HEAD, SECOND_BACK, FIRST_BACK, MOST = 80 };
    static const call in5 = {"sgemm", "transa=T transb=N m=24 n=6 k=5"},
                      in12 = {"sgemm", "transa=T transb=N m=24 n=6 k=12"},
                      step = {"sgemm", "transa=T transb=N m=24 n=2 k=6"},
                      head = {"sgemm", "transa=T transb=N m=7 n=2 k=12"},
                      back = {"sgemm", "transa=N transb=N m=6 n=2 k=24"},
                      r = {"sgemm", "transa=N transb=T m=6 n=24 k=2"},
                      dx12 = {"sgemm", "transa=N transb=N m=12 n=6 k=24"},
                      w12 = {"sgemm", "transa=N transb=T m=12 n=24 k=6"},
                      dx5 = {"sgemm", "transa=N transb=N m=5 n=6 k=24"},
                      w5 = {"sgemm", "transa=N transb=T m=5 n=24 k=6"};
    call calls[MOST];
    bz_arena arena = {0};
    bz_alignment a;
    int n = 0;
    (void)state;
    for (int layer = 0; layer < 2; layer++)
        for (int dir = 0; dir < 2; dir++) {
            calls[n++] = layer ? in12 : in5;
            for (int t = 0; t < 3; t++)
                calls[n++] = step;
        }
    calls[n++] = head;
    for (int layer = 0; layer < 2; layer++)
        for (int dir = 0; dir < 2; dir++) {
            for (int t = 0; t < 3; t++) { /* to no state before the first one */
                calls[n++] = r;
                if (t < 2)
                    calls[n++] = back;
            }
            calls[n++] = layer ? dx5 : dx12;
            calls[n++] = layer ? w5 : w12;
        }
    align_calls(network, 5, calls, n, &arena, &a);
    assert_int_equal(a.count[BZ_ALIGNED_EXTRA] + a.count[BZ_ALIGNED_MISSING], 0);
    assert_int_equal(rows_of(&a, FIRST, BZ_ALIGNED_SPLIT), 8);
    assert_int_equal(rows_of(&a, SECOND, BZ_ALIGNED_SPLIT), 8);
    assert_int_equal(rows_of(&a, HEAD, BZ_ALIGNED_SAME), 1);
    assert_int_equal(rows_of(&a, SECOND_BACK, BZ_ALIGNED_SPLIT), 14);
    assert_int_equal(rows_of(&a, FIRST_BACK, BZ_ALIGNED_SPLIT), 14);
    assert_true(cause(&a, "layers-outside") > 0);
    align_calls(network, 2, (const call[]){in5, step, step, head}, 4, &arena,
                &a); /* too few steps: another network's */
    assert_int_equal(a.count[BZ_ALIGNED_EXTRA], 4);
    bz_arena_free(&arena);
}

/* Gradients of a convolution by products, of each image, in the order of a framework that goes back. */
static void test_convolution_back(void **state)
{
    static const char *const network[] = {
        "conv_data x=3x8x8x8 w=16x8x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32",
        "conv_weights x=3x8x8x8 w=16x8x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32"};
    const call data = {"sgemm", "transa=N transb=T m=64 n=8 k=16"},
               weights = {"sgemm", "transa=T transb=N m=8 n=16 k=64"};
    bz_arena arena = {0};
    bz_alignment a;
    (void)state;
    align_calls(network, 2, (const call[]){data, data, data, weights, weights, weights}, 6, &arena, &a);
    assert_int_equal(rows_of(&a, 0, BZ_ALIGNED_SPLIT) + rows_of(&a, 1, BZ_ALIGNED_SPLIT), 6);
    assert_int_equal(a.n_faster, 0); /* a third of a layer is not held against all of it */

    static const char *const transposed[] = {"deconv x=1x8x4x4 w=8x16x2x2 stride=2x2 pad=0x0x0x0 dilation=1x1 group=1 "
                                             "post=bias dtype=f32"};
    const call unfolded = {"sgemm", "transa=N transb=T m=16 n=64 k=8"},
               ones = {"sgemm", "transa=T transb=N m=64 n=16 k=1"};
    align_calls(transposed, 1, (const call[]){unfolded, ones}, 2, &arena, &a);
    assert_int_equal(rows_of(&a, 0, BZ_ALIGNED_SPLIT), 2);
    bz_arena_free(&arena);
}

static const char *foreign_to(model *m, const call *calls, int n, bz_arena *arena)
{
    bool open;
    bz_trace *t = make_trace(calls, n);
    const char *text = bz_align_foreign(&m->bound, t, arena, &open);
    bz_trace_free(t);
    return text;
}

/* Weights tell a model, also those that a framework multiplies within a recurrent layer, and where rows and columns of a product both fit. */
static void test_foreign(void **state)
{
    static model m;
    static const char *const recurrent[] = {"lstm seq=3 batch=2 input=5 hidden=6 dir=forward dtype=f32",
                                            "gemm m=2 n=7 k=6 dtype=f32"};
    static const call steps[] = {{"sgemm", "transa=T transb=N m=24 n=6 k=5"},
                                 {"sgemm", "transa=T transb=N m=24 n=2 k=6"},
                                 {"sgemm", "transa=T transb=N m=24 n=2 k=6"},
                                 {"sgemm", "transa=T transb=N m=24 n=2 k=6"},
                                 {"sgemm", "transa=T transb=N m=7 n=2 k=6"}};
    static const char *const convolutions[] = {
        CONV_16, "conv x=1x64x16x16 w=64x64x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32",
        "conv x=1x128x4x8 w=256x128x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32"};
    static const call products[] = {{"convolution", CONV(16)},
                                    {"sgemm", "transa=N transb=N m=256 n=64 k=64"},
                                    {"sgemm", "transa=N transb=N m=32 n=256 k=128"}};
    static const bz_dim Y[][4] = {{2, 7}, {1, 16, 8, 8}, {1, 64, 16, 16}, {1, 256, 4, 8}};
    bz_type y[4];
    bz_arena arena = {0};
    (void)state;
    for (int i = 0; i < 4; i++)
        y[i] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = i ? 4 : 2, .dims = Y[i]};
    make_model(&m, recurrent, 2);
    m.layer[0].kind = "lstm";
    m.layer[0].macs = 3 * 2 * 24 * (5 + 6);
    m.layer[1].macs = 2 * 7 * 6;
    m.layer[1].out = y;
    m.layer[1].n_out = 1;
    assert_null(foreign_to(&m, steps, 5, &arena));
    m.problem[0][0].rnn.hidden = 60;
    assert_non_null(foreign_to(&m, steps, 5, &arena));

    make_model(&m, convolutions, 3);
    for (int i = 0; i < 3; i++) {
        m.layer[i].kind = "conv";
        m.layer[i].macs = i ? 1 << 20 : 16 * 8 * 9 * 64;
        m.layer[i].out = &y[1 + i];
        m.layer[i].n_out = 1;
    }
    assert_null(foreign_to(&m, products, 3, &arena));
    const call twice[] = {products[0], products[1], products[2], products[0], products[1], products[2]};
    const char *text = foreign_to(&m, twice, 6, &arena);
    assert_true(text && strstr(text, "ran the model 2 times in each iteration"));
    static const call larger[] = {
        {"convolution", ONEDNN_CONV("problem=mb2_ic8oc16_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1")},
        {"sgemm", "transa=N transb=N m=512 n=64 k=64"},
        {"sgemm", "transa=N transb=N m=64 n=256 k=128"}};
    text = foreign_to(&m, larger, 3, &arena);
    assert_true(text && strstr(text, "another batch"));
    bz_arena_free(&arena);
}

/* A framework may do all its convolutions by products, those of volumes for example: of as many columns as a kernel has elements. */
static void test_foreign_volumes(void **state)
{
    enum { N = 6 };
    static model m;
    static const bz_dim Y[] = {1, 16, 4, 8, 8};
    static const struct {
        const char *call;
        bool own;
    } CASES[] = {{"transa=N transb=N m=256 n=16 k=216", true},   /* 8 channels, 3x3x3 */
                 {"transa=N transb=N m=256 n=16 k=72", false},   /* 3x3 */
                 {"transa=N transb=N m=1024 n=16 k=216", false}, /* an image of another size */
                 {"", false}};                                   /* nobody knows what was multiplied */
    const bz_type y = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 5, .dims = Y};
    const char *network[N];
    for (int i = 0; i < N; i++)
        network[i] = "conv x=1x8x4x8x8 w=16x8x3x3x3 stride=1x1x1 pad=1x1x1x1x1x1 dilation=1x1x1 group=1 dtype=f32";
    make_model(&m, network, N);
    for (int i = 0; i < N; i++) {
        m.layer[i].kind = "conv";
        m.layer[i].macs = 256 * 16 * 216;
        m.layer[i].out = &y;
        m.layer[i].n_out = 1;
    }
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        call calls[N];
        for (int k = 0; k < N; k++)
            calls[k] = (call){"sgemm", CASES[i].call};
        const char *told = foreign_to(&m, calls, N, &arena);
        if (CASES[i].own != !told)
            fail_msg("%s: %s", CASES[i].call, told ? told : "nothing");
        bz_arena_free(&arena);
    }
}

static bz_trace *trace_of_kernels(int depthwise, int winograd)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), lane = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    for (int64_t i = 0; i < 3; i++) {
        int64_t at = i * 2000 * MICROSECOND;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000 * MICROSECOND, bz_trace_text(t, "benanza_iteration"), lane);
        for (int k = 0; k < depthwise + winograd; k++, at += 20 * MICROSECOND) {
            const char *name = k < depthwise ? "conv_depthwise2d_forward_kernel" : "volta_scudnn_winograd_128x128_relu";
            bz_trace_add(t, BZ_EVENT_KERNEL, at + 1, at + 10 * MICROSECOND, bz_trace_text(t, name), stream);
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* Kernels that convolve channel by channel are of a model with grouped convolutions. Winograd's algorithm wants kernels wider than 1 in each
 * dimension, stride 1, and more than one channel at once; each group may be a kernel. */
static void test_foreign_kernels(void **state)
{
    enum { CONVS = 3 };
    static model m;
    static const char *const PROBLEMS[CONVS] = {CONV_16, CONV_16, CONV_16};
    (void)state;
    for (int round = 0; round < 600; round++) {
        bz_dim x[CONVS][5], w[CONVS][5], bias = 16;
        int64_t strides[CONVS][3];
        bz_type in[CONVS][3];
        bz_param stride[CONVS];
        int grouped = 0, can = 0, depthwise = (int)below(3), winograd = (int)below(4);
        make_model(&m, PROBLEMS, CONVS);
        for (int i = 0; i < CONVS; i++) {
            int rank = 3 + (int)below(3);
            int64_t channels = below(2) ? 8 : 2, of_group = below(3) ? channels : below(2) ? channels / 2 : 1;
            bool wide = of_group > 1 || channels == 1, ones = below(2);
            x[i][0] = 1;
            x[i][1] = channels;
            w[i][0] = 16;
            w[i][1] = of_group;
            for (int k = 2; k < rank; k++) {
                x[i][k] = 20;
                w[i][k] = below(5) ? 3 : 1;
                strides[i][k - 2] = below(8) ? 1 : 2;
                wide &= w[i][k] == 3 && (ones || strides[i][k - 2] == 1);
            }
            stride[i] = (bz_param){.name = "stride", .v = strides[i], .n = rank - 2};
            in[i][0] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = rank, .dims = x[i]};
            in[i][1] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = rank, .dims = w[i]};
            in[i][2] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = &bias};
            bz_layer *l = &m.layer[i];
            l->kind = below(6) ? "conv" : "pool";
            l->macs = 1000;
            l->in = in[i];
            l->n_in = 2 + (int)below(2);
            l->params = &stride[i];
            l->n_params = !ones;
            if (strcmp(l->kind, "conv") != 0)
                continue;
            grouped += of_group < channels;
            can += wide ? (int)(channels / of_group) : 0;
        }
        bz_arena arena = {0};
        bool open;
        bz_trace *t = trace_of_kernels(depthwise, winograd);
        const char *text = bz_align_foreign(&m.bound, t, &arena, &open),
                   *expected = depthwise && !grouped
                                   ? bz_arena_printf(&arena, "%d of its kernels convolve each", depthwise)
                               : winograd > can ? bz_arena_printf(&arena,
                                                                  "%d of its convolutions ran by Winograd's algorithm, "
                                                                  "and %d of the model's layers can",
                                                                  winograd, can)
                                                : NULL;
        bool told = text && (strstr(text, "of its kernels convolve") || strstr(text, "Winograd"));
        if (told != (expected != NULL) || (expected && !strstr(text, expected)))
            fail_msg("round %d: '%s' instead of '%s'", round, text ? text : "", expected ? expected : "");
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorts),
        cmocka_unit_test(test_stacked),
        cmocka_unit_test(test_autograd),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_turned_gradient),
        cmocka_unit_test(test_recomputed),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_own_work),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_passes_of_products),
        cmocka_unit_test(test_written_out),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_foreign_volumes),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_recurrent_back),
        cmocka_unit_test(test_own_kinds),
        cmocka_unit_test(test_convolution_back),
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_whose_bias),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_reorders),
        cmocka_unit_test(test_reordered_weights),
        cmocka_unit_test(test_foreign_kernels),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_profiler),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_batched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
