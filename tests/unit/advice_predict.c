/* What a step makes of a program: the arithmetic, on programs made by hand. */
#include "advice/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double MS = 1e-3;

#define GEMM(m) "gemm m=" m " n=128 k=384 batch=1 transa=0 transb=1 dtype=f32" /* m × 2,048 bytes besides its weights */

/* A convolution, normalized, added to something and clipped: as PyTorch does it, with reorders around the convolution. */
enum { CONV, NORM, ADD, LAYERS };
typedef struct program {
    bz_type type[3]; /* data, weights, result */
    bz_layer layer[LAYERS];
    bz_bound_layer of[LAYERS];
    bz_bound_place place;
    bz_layers layers;
    bz_dag dag;
    bz_peaks peaks;
    bz_aligned row[LAYERS];
    bz_cause cause[3];
    bz_alignment alignment;
    bz_regret_row call;
    bz_regret regret;
    bz_pick own[LAYERS], other[LAYERS], direct[LAYERS], together;
    bz_picks picks[3];
    bz_analysis a;
    bz_ladder l;
    bz_trace *trace;
    bz_arena arena;
} program;

/* Iterations of four calls: 1 ms for 1 MB of weights, 1 ms each for 2 MB and 4 MB of data, and a convolution. They are 10, 20 and 300 µs apart; the convolution
 * makes a call of its own. */
static bz_trace *trace_of(void)
{
    static const char *const DETAILS[] = {"src=f32::blocked:abcd:f0 dst=f32::blocked:ABcd16b16a:f0 problem=512x512x1x1",
                                          "",
                                          "src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 problem=1x32x128x128",
                                          "src=f32::blocked:aBcd16b:f0 dst=f32::blocked:abcd:f0 problem=1x64x128x128"};
    static const int64_t START[] = {0, 1010, 5030, 6330}, END[] = {1000, 5010, 6030, 7330};
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 11000000;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 10500000, bz_trace_text(t, "benanza_iteration"), host);
        for (int k = 0; k < 4; k++) {
            size_t e = bz_trace_add(t, BZ_EVENT_CALL, at + 1000 * START[k], at + 1000 * END[k],
                                    bz_trace_text(t, k == 1 ? "convolution" : "reorder"), host);
            t->event[BZ_EVENT_CALL].flags[e] = BZ_CALL_EXECUTES;
            t->event[BZ_EVENT_CALL].detail[e] = bz_trace_text(t, DETAILS[k]);
        }
        size_t inner = bz_trace_add(t, BZ_EVENT_CALL, at + 1500000, at + 1600000, bz_trace_text(t, "sgemm"), host);
        t->event[BZ_EVENT_CALL].flags[inner] = BZ_CALL_EXECUTES | BZ_CALL_NESTED;
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_pick pick(double ms, double weights, double data)
{
    return (bz_pick){ms * MS, 0.9 * ms * MS, 1.1 * ms * MS, NAN, weights, data, 1, "jit"};
}

static int make(void **state)
{
    static const char *const KINDS[] = {"conv", "batchnorm", "add"};
    static const int NODES[] = {CONV, NORM, ADD};
    static const int FIRST[] = {0, 0, 1, 2}, PRED[] = {CONV, NORM};
    static const bool CONSTANT[] = {false, false};
    static const bz_dim DIMS[][4] = {{1, 32, 128, 128}, {512, 512, 1, 1}, {1, 64, 128, 128}};
    program *p = calloc(1, sizeof *p);
    for (int i = 0; i < 3; i++)
        p->type[i] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = DIMS[i]};
    for (int i = 0; i < LAYERS; i++) {
        p->layer[i] = (bz_layer){.index = i,
                                 .name = KINDS[i],
                                 .kind = KINDS[i],
                                 .n_in = 2,
                                 .in = p->type,
                                 .n_out = 1,
                                 .out = &p->type[2],
                                 .in_constant = CONSTANT,
                                 .macs = i == CONV ? 1000 : 0};
        p->of[i] = (bz_bound_layer){.layer = &p->layer[i], .node = i, .times = 1};
        p->row[i] = (bz_aligned){.kind = i == CONV ? BZ_ALIGNED_SAME : BZ_ALIGNED_MISSING,
                                 .layer = &NODES[i],
                                 .n_layers = 1,
                                 .seconds = i == CONV ? 4 * MS : NAN,
                                 .problem = i == CONV ? "conv x=1x8x8x8" : NULL};
    }
    p->own[CONV] = pick(2, 1e6, 3e6);
    p->own[NORM] = pick(0.5, 0, 2e6);
    p->own[ADD] = pick(0.25, 0, 3e6);
    p->together = pick(1.5, 1e6, 3e6);
    p->other[CONV] = pick(1, 0.5e6, 1.5e6);
    p->direct[CONV] = pick(2.4, 1e6, 3e6);
    p->direct[NORM] = p->direct[ADD] = pick(0.5, 0, 2e6);
    p->picks[0] = (bz_picks){.free = p->own, .plain = p->own, .place = &p->together};
    p->picks[1] = (bz_picks){.dtype = BZ_BF16, .free = p->other, .plain = p->other};
    p->picks[2] = (bz_picks){.training = true, .free = p->direct, .plain = p->direct};
    p->place = (bz_bound_place){.pattern = "conv+batchnorm", .layer = NODES, .n = 2};
    p->layers = (bz_layers){.layer = p->layer, .n = LAYERS};
    p->dag = (bz_dag){.n = LAYERS, .first = FIRST, .pred = PRED};
    p->peaks.why = "nobody measured them";
    p->cause[0] = (bz_cause){.kind = BZ_CAUSE_WEIGHTS_REORDERED, .id = "weights-reordered", .seconds = 1 * MS};
    p->cause[1] = (bz_cause){.kind = BZ_CAUSE_ACTIVATIONS_REORDERED, .id = "activations-reordered", .seconds = 2 * MS};
    p->cause[2] = (bz_cause){.kind = BZ_CAUSE_LAYERS_OUTSIDE, .id = "layers-outside", .seconds = 3 * MS};
    p->alignment = (bz_alignment){.timeline = true, .row = p->row, .n = LAYERS, .cause = p->cause, .n_causes = 3};
    p->call = (bz_regret_row){.calls = 1, .seen = 4 * MS, .used = 2 * MS, .problem = GEMM("1")};
    p->regret = (bz_regret){.row = &p->call, .n = 1};
    p->a.bound = (bz_bound){.layer = p->of,
                            .n = LAYERS,
                            .layers = &p->layers,
                            .dag = &p->dag,
                            .peaks = &p->peaks,
                            .fused = {.wanted = true, .place = &p->place, .n_places = 1}};
    p->a.picks = p->picks;
    p->a.n_picks = 3;
    p->l = (bz_ladder){.latency = 10.5 * MS, .alignment = &p->alignment, .regret = &p->regret};
    p->trace = trace_of();
    *state = p;
    return 0;
}

static int drop(void **state)
{
    program *p = *state;
    bz_trace_free(p->trace);
    bz_arena_free(&p->arena);
    free(p);
    return 0;
}

static prediction of(program *p, const char *words)
{
    predict_step step;
    prediction out;
    assert_true(predict_read(words, &step));
    assert_true(predict(&p->a, &p->l, p->trace, &step, &p->arena, &out));
    assert_true(fabs(out.all.before - p->l.latency) < 1e-12);
    for (int i = 0; i < PREDICT_PARTS; i++)
        assert_true(out.part[i].low <= out.part[i].after && out.part[i].after <= out.part[i].high);
    return out;
}

static void is_ms(double seconds, double ms)
{
    if (fabs(seconds - ms * MS) > 1e-9)
        fail_msg("%g ms, not %g", seconds / MS, ms);
}

static void test_words(void **state)
{
    predict_step step;
    (void)state;
    assert_true(predict_read("library conv+batchnorm", &step) && step.library && !step.dtype);
    assert_true(predict_read("bf16", &step) && !step.library && step.dtype == BZ_BF16 && !*step.leaves);
    assert_true(predict_read("library constants leaves concat pad", &step) && step.library && step.constants);
    assert_string_equal(step.leaves, " concat pad");
    assert_false(predict_read("miracles", &step));
}

/* The library's pick for the folded convolution, twice as slow as its record as the program's own calls are; the
 * addition by its record; no reorders; a call's own time for each. */
static void test_library(void **state)
{
    prediction p = of(*state, "library conv+batchnorm");
    is_ms(p.part[PREDICT_PRODUCTS].before, 4);
    is_ms(p.part[PREDICT_PRODUCTS].after, 3);
    is_ms(p.part[PREDICT_PRODUCTS].low, 1.35);
    is_ms(p.part[PREDICT_PRODUCTS].high, 3.3);
    is_ms(p.part[PREDICT_LAYERS].before, 3);
    is_ms(p.part[PREDICT_LAYERS].after, 0.5);
    is_ms(p.part[PREDICT_CONVERSIONS].before, 3);
    is_ms(p.part[PREDICT_CONVERSIONS].after, 0);
    is_ms(p.part[PREDICT_REST].before, 0.5);
    is_ms(p.part[PREDICT_REST].after, 0.02);
    is_ms(p.all.after, 3.52);
    assert_int_equal(p.products, 1);
}

/* Without the pattern the normalization is a call of its own; what nobody measured stays as it was. */
static void test_alone(void **state)
{
    program *m = *state;
    prediction p = of(m, "library");
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
    is_ms(p.part[PREDICT_LAYERS].after, 1.5);
    m->together.seconds = NAN;
    p = of(m, "library conv+batchnorm");
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
    is_ms(p.part[PREDICT_LAYERS].after, 1.5);
}

/* Weights from memory: as far as cold records say by their share of the bytes; else between nothing and what memory takes. */
static void test_cold(void **state)
{
    program *m = *state;
    m->regret.n = 0;
    m->together.cold = 3.5 * MS;
    prediction p = of(m, "library conv+batchnorm");
    is_ms(p.part[PREDICT_PRODUCTS].after, 1.5 + 2 * 0.25);
    is_ms(p.part[PREDICT_PRODUCTS].high, 3.5);
    m->together.cold = NAN;
    m->peaks = (bz_peaks){.n_bandwidth = 2, .bandwidth = {{1e3, 4e9}, {1.5e6, 1e9}}};
    m->own[ADD].weights = 1e6; /* so that both do not fit where one does */
    p = of(m, "library conv+batchnorm");
    is_ms(p.part[PREDICT_PRODUCTS].after, 1.5 + 0.75 / 2);
    is_ms(p.part[PREDICT_PRODUCTS].high, 1.65 + 0.75);
}

/* Half as many bytes: other layers take between half of their time and all of it; reorders what those of as many bytes or
 * of as many elements took: x 0.5 to 1 ms, the weights too, y 1 ms; or what the library's code for the type takes at least. */
static void test_type(void **state)
{
    program *m = *state;
    prediction p = of(m, "bf16");
    is_ms(p.part[PREDICT_PRODUCTS].after, 2);
    is_ms(p.part[PREDICT_CONVERSIONS].low, 2);
    is_ms(p.part[PREDICT_CONVERSIONS].high, 3);
    is_ms(p.part[PREDICT_CONVERSIONS].after, 2.5);
    is_ms(p.part[PREDICT_LAYERS].low, 1.5);
    is_ms(p.part[PREDICT_LAYERS].high, 3);
    is_ms(p.part[PREDICT_REST].after, 0.5);
    m->of[CONV].times = 2; /* more calls than there were */
    p = of(m, "bf16");
    is_ms(p.part[PREDICT_REST].after, 0.5 + 4 * 0.01);
    m->of[CONV].times = 1;
    m->peaks.reorder[m->peaks.n_reorder++] = (bz_peak_rate){BZ_BF16, 262144000}; /* 2, 1 and 4 ms by the elements */
    p = of(m, "bf16");
    is_ms(p.part[PREDICT_CONVERSIONS].low, 7);
    is_ms(p.part[PREDICT_CONVERSIONS].high, 7);
    m->peaks.convert[m->peaks.n_convert++] = (bz_peak_rate){BZ_BF16, 1e9}; /* 1 ms for the million of a layer */
    m->layer[NORM].bytes = 4000000;
    p = of(m, "bf16");
    is_ms(p.part[PREDICT_LAYERS].after, 4);
    is_ms(p.part[PREDICT_LAYERS].low, 1.5);
    is_ms(p.part[PREDICT_LAYERS].high, 4);
    predict_reorders none = {0}; /* a program that keeps the library's layouts */
    is_ms(predict_reorder_time(&none, false, 1e6, &m->arena), 0);
}

/* Two calls that tell apart what is slower by the second from what is by the byte. */
static void test_slower(void **state)
{
    program *m = *state;
    bz_regret_row calls[] = {
        {.calls = 1, .used = 2 * MS, .seen = 2.4 * MS + 2048e-9 * 100, .problem = GEMM("1")},
        {.calls = 2, .used = 1 * MS, .seen = 1.2 * MS + 8192e-9 * 100, .problem = GEMM("4")},
    };
    m->regret = (bz_regret){.row = calls, .n = 2};
    m->own[CONV].data = m->together.data = 1e4;
    prediction p = of(m, "library conv+batchnorm");
    assert_true(fabs(p.slower - 1.2) < 1e-9 && fabs(p.per_byte - 1e-7) < 1e-15);
    is_ms(p.part[PREDICT_PRODUCTS].after, 1.5 * 1.2 + 1e4 * 1e-7 / 2 / MS);
    m->other[CONV].data = 5e3;
    p = of(m, "bf16");
    is_ms(p.part[PREDICT_PRODUCTS].after, 1 * 1.2 + 5e3 * 1e-7 / MS);
    calls[1].seen = 20 * MS; /* nothing is faster than its record */
    p = of(m, "bf16");
    assert_true(p.slower == 1 && p.per_byte > 0);
    calls[0].seen = 1.9 * MS;
    calls[1].seen = 0.9 * MS;
    p = of(m, "bf16"); /* but all may be */
    assert_true(fabs(p.slower - 3.7 / 4) < 1e-9 && p.per_byte == 0);
    calls[0].seen = 2.4 * MS;
    calls[1].seen = 1.2 * MS;
    calls[0].problem = calls[1].problem; /* nothing tells the two apart */
    calls[1].used = 2 * MS;
    p = of(m, "bf16");
    assert_true(p.per_byte == 0);
    calls[0].problem = calls[1].problem =
        "activation fn=relu x=1x1x16x16 dtype=f32"; /* what has no weights says nothing */
    p = of(m, "bf16");
    assert_true(p.per_byte == 0 && p.slower == 1);
}

static void test_unknown(void **state)
{
    program *m = *state;
    predict_step step;
    prediction p;
    m->other[CONV].seconds = NAN;
    assert_true(predict_read("bf16", &step));
    assert_false(predict(&m->a, &m->l, m->trace, &step, &m->arena, &p));
    m->a.n_picks = 1;
    assert_false(predict(&m->a, &m->l, m->trace, &step, &m->arena, &p));
    m->a.n_picks = 3;
    assert_true(predict_read("library", &step));
    m->l.on_device = true;
    assert_false(predict(&m->a, &m->l, m->trace, &step, &m->arena, &p));
    m->l.on_device = false;
    assert_true(predict(&m->a, &m->l, m->trace, &step, &m->arena, &p));
    m->alignment.timeline = false;
    assert_false(predict(&m->a, &m->l, m->trace, &step, &m->arena, &p));
}

/* Operators that a product takes along are gone; an addition has its second tensor left to read. */
static void test_groups(void **state)
{
    static const int ALL[] = {CONV, NORM, ADD};
    program *m = *state;
    m->row[NORM].kind = m->row[ADD].kind = BZ_ALIGNED_SAME;
    m->row[NORM].seconds = 1.2 * MS;
    m->row[ADD].seconds = 1.8 * MS;
    m->cause[2].seconds = 0;
    m->layer[NORM].n_in = 1;
    prediction p = of(m, "conv+batchnorm");
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
    is_ms(p.part[PREDICT_LAYERS].before, 3);
    is_ms(p.part[PREDICT_LAYERS].after, 1.8);
    m->place = (bz_bound_place){.pattern = "conv+batchnorm+add", .layer = ALL, .n = 3};
    p = of(m, "conv+batchnorm conv+batchnorm+add");
    is_ms(p.part[PREDICT_LAYERS].after, 0.6);
    is_ms(p.all.after, 10.5 - 2.4);
    bz_bound_place both[] = {{.pattern = "conv+batchnorm", .layer = ALL, .n = 2}, m->place};
    m->a.bound.fused.place = both;
    m->a.bound.fused.n_places = 2;
    p = of(m, "conv+batchnorm conv+batchnorm+add"); /* the larger first */
    is_ms(p.part[PREDICT_LAYERS].after, 0.6);
    both[1].refused = true;
    p = of(m, "conv+batchnorm conv+batchnorm+add");
    is_ms(p.part[PREDICT_LAYERS].after, 1.8);
    m->a.bound.fused.place = &m->place;
    m->a.bound.fused.n_places = 1;
    bz_pick plain[LAYERS] = {[CONV] = pick(3.2, 1e6, 3e6)}; /* it takes 4 ms: 1.25 times as long as the library */
    m->picks[0].plain = plain;
    p = of(m, "blocked conv+batchnorm+add");
    is_ms(p.part[PREDICT_PRODUCTS].after, 2.4 * 1.25);
    is_ms(p.part[PREDICT_PRODUCTS].low, 0.9 * 2.4);
    is_ms(p.part[PREDICT_PRODUCTS].high, 4);
    m->direct[CONV].cold = 2.7 * MS; /* no slower than with cold caches */
    p = of(m, "blocked conv+batchnorm+add");
    is_ms(p.part[PREDICT_PRODUCTS].after, 2.7);
    plain[CONV].seconds = 6 * MS; /* faster than the library: that is not held against its pick */
    p = of(m, "blocked conv+batchnorm+add");
    is_ms(p.part[PREDICT_PRODUCTS].after, 2.4);
    m->direct[CONV].seconds = m->direct[CONV].cold = 5 * MS;
    p = of(m, "blocked conv+batchnorm+add"); /* no worse */
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
}

/* Blocked layouts are for pools, too; and padding goes into what reads it, where all of that can pad. */
static void test_windows(void **state)
{
    program *m = *state;
    m->row[NORM].kind = m->row[ADD].kind = BZ_ALIGNED_SAME;
    m->row[NORM].seconds = 1.2 * MS;
    m->row[ADD].seconds = 1.8 * MS;
    m->cause[2].seconds = 0;
    m->layer[NORM].kind = "pad";
    m->layer[ADD].kind = "avgpool";
    m->own[ADD].seconds = 1.2 * MS; /* it takes 1.5 times as long */
    prediction p = of(m, "blocked");
    is_ms(p.part[PREDICT_LAYERS].after, 1.2 + 0.5 * 1.5);
    p = of(m, "pads");
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
    is_ms(p.part[PREDICT_LAYERS].after, 1.8);
    p = of(m, "blocked pads");
    is_ms(p.part[PREDICT_LAYERS].after, 0.5 * 1.5);
    m->layer[ADD].kind = "add";
    p = of(m, "pads");
    is_ms(p.part[PREDICT_LAYERS].after, 3);
    m->layer[ADD].kind = "pad"; /* which nothing reads */
    p = of(m, "pads");
    is_ms(p.part[PREDICT_LAYERS].after, 3);
}

/* Work on constants is gone, and what was computed as weights can be prepared ahead. */
static void test_constants(void **state)
{
    static const bool WEIGHTS[] = {false, true};
    static const bz_value_id IN[] = {0, 1};
    program *m = *state;
    bz_pick plain[LAYERS] = {[CONV] = pick(4, 1e6, 3e6)};
    bz_value values[2] = {{.name = "x"}, {.name = "transposed"}};
    bz_model model = {.values = values, .n_values = 2};
    bz_node node = {.name = "conv", .n_in = 2, .in = IN};
    static const char INITIALIZER;
    m->cause[0] =
        (bz_cause){.kind = BZ_CAUSE_CONSTANTS_COMPUTED, .id = "constants-computed", .count = 3, .seconds = 1 * MS};
    m->picks[0].plain = plain;
    m->own[CONV].cold = 1 * MS; /* it may be slower code, whatever the caches hold */
    m->layers.model = &model;
    m->layer[CONV].node = &node;
    m->layer[CONV].in_constant = WEIGHTS;
    prediction p = of(m, "constants");
    is_ms(p.part[PREDICT_CONSTANTS].before, 1);
    is_ms(p.part[PREDICT_CONSTANTS].after, 0);
    is_ms(p.part[PREDICT_PRODUCTS].after, 2);                       /* free, as plain takes what was seen */
    values[1].init = (const bz_tensor *)(const void *)&INITIALIZER; /* that was always prepared */
    p = of(m, "constants");
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
    p = of(m, "bf16");
    is_ms(p.part[PREDICT_CONSTANTS].after, 1);
}

/* What a step leaves to the framework takes what it took, and so does what follows it; tensors are converted on the way. */
static void test_left(void **state)
{
    program *m = *state;
    prediction p = of(m, "library leaves nothing");
    is_ms(p.part[PREDICT_LAYERS].after, 1.5);
    p = of(m, "library leaves add"); /* between calls, but where is not told: it is not known */
    is_ms(p.part[PREDICT_LAYERS].after, 1);
    is_ms(p.part[PREDICT_CONVERSIONS].after, 1); /* y, once */
    is_ms(p.part[PREDICT_REST].after, 3 * 0.01);
    m->row[NORM].kind = m->row[ADD].kind = BZ_ALIGNED_SAME;
    m->row[NORM].seconds = 1.2 * MS;
    m->row[ADD].seconds = 1.8 * MS;
    m->cause[2].seconds = 0;
    p = of(m, "library leaves batchnorm"); /* and the addition behind it */
    is_ms(p.part[PREDICT_LAYERS].after, 3);
    is_ms(p.part[PREDICT_CONVERSIONS].after, 1);
    p = of(
        m,
        "library only conv batchnorm"); /* the addition is of no kind that is named; with it stays its share of the rest */
    is_ms(p.part[PREDICT_LAYERS].after, 1 + 1.8);
    is_ms(p.part[PREDICT_CONVERSIONS].after, 1);
    is_ms(p.part[PREDICT_REST].after, 3 * 0.01 + 0.5 * 1.8 / 7);
    p = of(m, "library only batchnorm add"); /* products, too */
    is_ms(p.part[PREDICT_PRODUCTS].after, 4);
}

/* x × sigmoid(x) is one operator of the framework's: kinds that are named do not bring it to the library, but its own name does. */
static void test_silu(void **state)
{
    static const int FIRST[] = {0, 0, 1, 3}, PRED[] = {CONV, CONV, NORM};
    program *m = *state;
    m->dag.first = FIRST;
    m->dag.pred = PRED;
    m->layer[NORM].kind = "sigmoid";
    m->layer[ADD].kind = "mul";
    m->row[NORM].kind = m->row[ADD].kind = BZ_ALIGNED_SAME;
    m->row[NORM].seconds = 1.2 * MS;
    m->row[ADD].seconds = 1.8 * MS;
    m->cause[2].seconds = 0;
    is_ms(of(m, "library only conv sigmoid mul").part[PREDICT_LAYERS].after, 3);
    is_ms(of(m, "library only conv sigmoid mul silu").part[PREDICT_LAYERS].after, 1.5);
    m->layer[NORM].kind = "hardsigmoid";
    is_ms(of(m, "library only conv hardsigmoid mul").part[PREDICT_LAYERS].after, 1.5);
}

/* Reorders of a size that take many times as long by the byte: new memory, which smaller tensors are spared, and so are the
 * framework's own layers that make as large ones. */
static void test_fresh(void **state)
{
    static const struct {
        int64_t channels, us;
    } REORDERS[] = {{1, 4},  {2, 8},  {4, 16},  {4, 1},   {4, 17},
                    {6, 24}, {6, 24}, {8, 800}, {8, 832}, {8, 33}}; /* of 64 KB each */
    program *m = *state;
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    int64_t at = 0;
    for (size_t i = 0; i < sizeof REORDERS / sizeof *REORDERS; i++) {
        char text[128];
        snprintf(text, sizeof text, "src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 problem=1x%dx128x128",
                 (int)REORDERS[i].channels);
        size_t e = bz_trace_add(t, BZ_EVENT_CALL, at, at + 1000 * REORDERS[i].us, bz_trace_text(t, "reorder"), host);
        t->event[BZ_EVENT_CALL].flags[e] = BZ_CALL_EXECUTES;
        t->event[BZ_EVENT_CALL].detail[e] = bz_trace_text(t, text);
        at += 1000 * REORDERS[i].us + 5000;
    }
    bz_trace_add(t, BZ_EVENT_RANGE, 0, at, bz_trace_text(t, "benanza_iteration"), host);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    predict_reorders r;
    predict_reorders_find(t, &m->arena, &r);
    assert_true(r.fresh_from == 8 * 65536);
    assert_true(fabs(r.fresh * 65536 - (100e-6 - 4e-6)) < 1e-9); /* by the median of its size */
    bz_trace_free(t);

    predict_reorders_find(m->trace, &m->arena, &r); /* a large one here, but no slower */
    assert_true(isinf(r.fresh_from) && r.fresh == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test_setup_teardown(test_library, make, drop),
        cmocka_unit_test_setup_teardown(test_alone, make, drop),
        cmocka_unit_test_setup_teardown(test_cold, make, drop),
        cmocka_unit_test_setup_teardown(test_type, make, drop),
        cmocka_unit_test_setup_teardown(test_slower, make, drop),
        cmocka_unit_test_setup_teardown(test_constants, make, drop),
        cmocka_unit_test_setup_teardown(test_left, make, drop),
        cmocka_unit_test_setup_teardown(test_silu, make, drop),
        cmocka_unit_test_setup_teardown(test_fresh, make, drop),
        cmocka_unit_test_setup_teardown(test_unknown, make, drop),
        cmocka_unit_test_setup_teardown(test_groups, make, drop),
        cmocka_unit_test_setup_teardown(test_windows, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
