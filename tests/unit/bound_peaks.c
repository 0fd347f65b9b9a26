/* Peaks, and ticks of the clock that bounds are counted in. */
#include "bound/bound.h"
#include "chance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char DETAILS[] = "{\"measured\":{\"threads\":1,\"flops\":{\"f32\":1e11},\"bandwidth\":[{\"bytes\":1e3,"
                              "\"read\":1e9,\"copy\":1e9}]}}";

static void test_ticks(void **state)
{
    (void)state;
    for (int t = 0; t < 10000; t++) {
        double x = 1e-9 * t * 199999, y = bz_tick(x);
        assert_true(fabs(x - y) <= ldexp(1, -45) && y == bz_tick(y));
    }
    assert_true(isnan(bz_tick(NAN)) && bz_tick(0) == 0);
}

static bz_peaks peaks_of(const char *measured, bz_arena *arena)
{
    bz_peaks peaks;
    const char *details =
        bz_arena_printf(arena, "{\"measured\":{\"threads\":1,\"flops\":{\"f32\":1e11},%s}}", measured);
    bz_peaks_read(bz_system_facts_read(details, arena), &(bz_setting){1, BZ_CACHE_HOT, ""}, arena, &peaks);
    assert_null(peaks.why);
    return peaks;
}

/* A small buffer that seems slower than a larger one was measured in a slow phase: who moves 4 MB at a rate moves 64 kB of them
 * at that rate. Concats of that size were "faster than the hardware" then. */
static void test_slow_phase(void **state)
{
    (void)state;
    bz_arena arena = {0};
#define BUFFER(bytes, read) "{\"bytes\":" #bytes ",\"read\":" #read ",\"copy\":1e9,\"copy_cold\":1e9}"
    bz_peaks steady =
        peaks_of("\"bandwidth\":[" BUFFER(8192, 9e10) "," BUFFER(65536, 8e10) "," BUFFER(4194304, 4e10) "]", &arena);
    assert_true(bz_peaks_traffic(&steady, 65536) == 65536 / 8e10 &&
                bz_peaks_traffic(&steady, 4194304) == 4194304 / 4e10);
    assert_false(steady.busy);
    bz_peaks slow = peaks_of(
        "\"busy\":true,\"bandwidth\":[" BUFFER(8192, 9e10) "," BUFFER(65536, 1e10) "," BUFFER(4194304, 4e10) "]",
        &arena);
    assert_true(slow.busy && bz_peaks_traffic(&slow, 65536) == 65536 / 4e10);
    assert_true(bz_peaks_traffic(&slow, 8192) == 8192 / 9e10 && bz_peaks_traffic(&slow, 1e9) == 1e9 / 4e10);
    bz_arena_free(&arena);
}

/* Elements are moved and made another type at the rate of theirs; where nobody measured that, in no time. Buffers may come in any order. */
static void test_moves(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_peaks p = peaks_of("\"reorder\":{\"f16\":2e9,\"f32\":1e9},\"convert\":{\"f16\":4e9},\"bandwidth\":[" BUFFER(
                              4194304, 4e10) "," BUFFER(8192, 9e10) "," BUFFER(65536, 8e10) "]",
                          &arena);
    static const struct {
        bz_dtype dtype;
        double reorder, convert;
    } CASES[] = {{BZ_F32, 1e-9, 0}, {BZ_F16, 0.5e-9, 0.25e-9}, {BZ_BF16, 0, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_true(fabs(bz_peaks_reorder(&p, 3, CASES[i].dtype) - 3 * CASES[i].reorder) < 1e-15);
        assert_true(fabs(bz_peaks_convert(&p, 3, CASES[i].dtype) - 3 * CASES[i].convert) < 1e-15);
        assert_true(bz_peaks_reorder(NULL, 3, CASES[i].dtype) == 0 && bz_peaks_convert(NULL, 3, CASES[i].dtype) == 0);
    }
    static const double BYTES[] = {1, 8192, 65535, 65536, 4194303, 4194304, 1e12},
                        RATE[] = {9e10, 9e10, 9e10, 8e10, 8e10, 4e10, 4e10};
    for (int i = 0; i < 7; i++)
        assert_true(bz_peaks_traffic(&p, BYTES[i]) == BYTES[i] / RATE[i]);
    bz_arena_free(&arena);
}

/* A record's interval and 2.5 % for the peaks: within them nothing is contradicted. */
static void test_contradiction(void **state)
{
    (void)state;
    const bz_alternative way = {0};
    bz_bound_layer l = {.hardware = 1, .price = {.seconds = 0.99, .low = 0.98, .high = 1, .alternative = &way}};
    assert_false(bz_bound_contradicts(&l));
    l.price.seconds = 0.95, l.price.high = 0.98;
    assert_false(bz_bound_contradicts(&l));
    l.price.high = 0.97;
    assert_true(bz_bound_contradicts(&l));
    l.price.alternative = NULL;
    assert_false(bz_bound_contradicts(&l));
    l = (bz_bound_layer){.hardware = NAN, .price = {.seconds = 0.5, .high = 0.6, .alternative = &way}};
    assert_false(bz_bound_contradicts(&l));
}

/* 99 % of the multiplications and 95 % of the time, and not less. */
static void test_enough(void **state)
{
    (void)state;
    assert_true(bz_goal_enough(0.99, 0.95) && bz_goal_enough(1, 1));
    assert_false(bz_goal_enough(nextafter(0.99, 0), 1) || bz_goal_enough(1, nextafter(0.95, 0)) ||
                 bz_goal_enough(NAN, 1));
}

/* Shares by their definition, over random bounds: a layer counts as often as it runs, and as priced where it has a price, or, in the fused
 * bound, where a group stands for it. Without peaks bytes stand for the time. */
/* Weights come from where all of them lie, at the rate of the smallest buffer that holds them, or of the largest. A layer, or a group, whose price is
 * less takes that long. A look-up moves less than its table. */
static void test_weights_from_far(void **state)
{
    (void)state;
    enum { LAYERS = 5 };
    static const bz_alternative PRICED;
    static const bool CONSTANT[2] = {false, true};
    bz_peaks peaks = {.n_bandwidth = 2, .bandwidth = {{4000, 40, 200}, {8000, 8, 100}}};
    int told = 0, untold = 0;
    for (int trial = 0; trial < 500; trial++) {
        bz_layer layer[LAYERS] = {0};
        bz_bound_layer of[LAYERS] = {0};
        bz_layers layers = {.layer = layer, .n = LAYERS};
        bz_type in[LAYERS][2];
        int64_t dims[LAYERS];
        int grouped[] = {1, 3};
        bz_bound_group group = {.layer = grouped, .n = 2, .price.seconds = 1 + chance(30)};
        bool cold = !chance(8), wanted = !chance(2);
        bz_bound b = {.layers = &layers,
                      .layer = of,
                      .n = LAYERS,
                      .peaks = &peaks,
                      .sequential = 1 + chance(400),
                      .setting.cache = cold ? BZ_CACHE_COLD : BZ_CACHE_HOT,
                      .fused = {.wanted = wanted, .group = &group, .n = 1, .sequential = 1 + chance(400)}};
        double bytes[LAYERS], all = 0, more = 0;
        peaks.why = chance(10) ? NULL : "not measured";
        for (int i = 0; i < LAYERS; i++) {
            int64_t moved = chance(6) ? 10000 : 1 + chance(400);
            dims[i] = 1 + chance(500);
            in[i][0] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32};
            in[i][1] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = &dims[i]};
            layer[i] = (bz_layer){.kind = "matmul", .bytes = moved, .in = in[i], .in_constant = CONSTANT, .n_in = 2};
            of[i] = (bz_bound_layer){.layer = &layer[i], .node = i, .times = 1 + chance(2), .hardware = NAN};
            of[i].price.alternative = chance(8) ? &PRICED : NULL;
            of[i].price.seconds = chance(30);
            bytes[i] = fmin(4 * (double)dims[i], (double)moved);
            all += bytes[i];
        }
        double rate = all <= 4000 ? 200 : 100;
        for (int i = 0; i < LAYERS; i++)
            if (of[i].price.alternative && !(wanted && (i == 1 || i == 3)))
                more += fmax(0, bytes[i] / rate - of[i].times * of[i].price.seconds);
        more += wanted ? fmax(0, (bytes[1] + bytes[3]) / rate - group.price.seconds) : 0;
        bz_goal g = bz_bound_goal(&b);
        bool counts = !cold && !peaks.why && more > 0.05 * g.sequential;
        assert_true(fabs(g.far - (counts ? more : 0)) < 1e-9 && g.weights == (counts ? all : 0));
        told += counts;
        untold += !counts;
    }
    assert_true(told > 100 && untold > 100);
}

static void test_shares(void **state)
{
    (void)state;
    enum { LAYERS = 7 };
    static const bz_alternative PRICED;
    const bz_type x = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32};
    for (int trial = 0; trial < 200; trial++) {
        bz_layer layer[LAYERS] = {0};
        bz_bound_layer of[LAYERS] = {0};
        bz_layers layers = {.layer = layer, .n = LAYERS};
        int grouped[] = {(int)chance(LAYERS), (int)chance(LAYERS)};
        bz_bound_group group = {.layer = grouped, .n = 2};
        bool peaks = chance(3) != 0, half = !chance(2), wanted = !chance(2);
        bz_bound b = {.layers = &layers,
                      .layer = of,
                      .n = LAYERS,
                      .dtype = half ? BZ_F16 : BZ_UNDEFINED,
                      .partial = !chance(4),
                      .sequential = 7,
                      .coverage = {.layers = 9, .unpriced = 2},
                      .fused = {.wanted = wanted, .group = &group, .n = 1, .sequential = 5, .unpriced = 1}};
        double all[2] = {0}, priced[2][2] = {{0}};
        for (int i = 0; i < LAYERS; i++) {
            layer[i] = (bz_layer){.macs = chance(1000), .bytes = 1 + chance(1000), .kind = "conv", .in = &x, .n_in = 1};
            of[i] = (bz_bound_layer){.layer = &layer[i],
                                     .node = i,
                                     .times = 1 + chance(3),
                                     .hardware = peaks ? (double)(1 + chance(50)) : (double)NAN};
            of[i].price.alternative = chance(8) ? &PRICED : NULL;
            double macs = of[i].times * (double)layer[i].macs,
                   time = of[i].times * (peaks ? of[i].hardware : (double)layer[i].bytes * (half ? .5 : 1));
            all[0] += macs;
            all[1] += time;
            for (int fused = 0; fused < 2; fused++)
                if (of[i].price.alternative || (fused && (i == grouped[0] || i == grouped[1])))
                    priced[fused][0] += macs, priced[fused][1] += time;
        }
        for (int fused = 0; fused < 2; fused++) {
            bz_goal g = fused ? bz_bound_goal(&b) : bz_bound_written(&b);
            bool groups = fused && wanted;
            double macs = all[0] > 0 ? priced[groups][0] / all[0] : 1, time = priced[groups][1] / all[1];
            assert_true(fabs(g.macs - macs) < 1e-12 && fabs(g.time - time) < 1e-12);
            assert_int_equal(g.enough, macs >= .99 && time >= .95 && !b.partial);
            assert_int_equal(g.products, macs >= .99);
            assert_int_equal(g.modelled, peaks);
            assert_true(g.sequential == (groups ? 5 : 7) && g.unpriced == (groups ? 1 : 2) && g.layers == 9);
        }
    }
}

static void read_peaks(const char *details, const bz_setting *setting, bz_arena *arena, bz_peaks *out)
{
    bz_peaks_read(bz_system_facts_read(details, arena), setting, arena, out);
}

static void test_roofline(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_peaks p;
    bool memory;
    bz_setting one = {1, BZ_CACHE_HOT, ""}, two = {2, BZ_CACHE_HOT, ""}, cold = {1, BZ_CACHE_COLD, ""};
    bz_layer layer = {.kind = "gemm", .flops = 2000000000, .bytes = 1000000000, .priced = true};
    read_peaks("{\"gpu\":\"Tesla V100-SXM2-16GB\"}", &one, &arena, &p);
    assert_string_equal(p.source, "data sheet");
    assert_true(fabs(bz_peaks_roofline(&p, &layer, BZ_UNDEFINED, &memory) - 1e9 / 900e9) < 1e-9 && memory);
    layer.bytes = 1000; /* lies in the cache, whose rate nobody knows */
    assert_true(fabs(bz_peaks_roofline(&p, &layer, BZ_UNDEFINED, &memory) - 2e9 / 15.7e12) < 1e-9 && !memory);
    read_peaks("{\"gpu\":\"NVIDIA B200\"}", &one, &arena, &p); /* 4 bits in half of the time of 8 */
    assert_true(fabs(bz_peaks_roofline(&p, &layer, BZ_F4E2M1, &memory) - 2e9 / 9000e12) < 1e-9);
    layer.priced = false;
    assert_true(isnan(bz_peaks_roofline(&p, &layer, BZ_UNDEFINED, &memory)));
    read_peaks("{\"gpu\":\"nobody knows\"}", &one, &arena, &p);
    assert_non_null(strstr(p.why, "no data sheet of 'nobody knows'"));
    /* a device of this machine, as benanza itself writes it: its own cache, its own clock */
    read_peaks(
        "{\"device\":\"gpu\",\"name\":\"NVIDIA H200\",\"capability\":\"9.0\",\"l2\":62914560,\"bandwidth\":4.8e12}",
        &one, &arena, &p);
    assert_null(p.why);
    assert_true(p.bandwidth[1].bytes == 62914560 && p.bandwidth[1].rate == 4.8e12);
    double own = p.flops[0].rate;
    assert_true(p.flops[0].dtype == BZ_F32 && own > 50e12 && own < 100e12);
    const bz_system_facts *facts = bz_system_facts_read("{\"device\":\"gpu\",\"name\":\"NVIDIA H200\"}", &arena);
    bz_peaks_read(facts, &one, &arena, &p);
    bz_peaks_allow(facts, &one, "tf32", &p); /* Tensor Cores multiply f32 then */
    assert_true(p.flops[0].dtype == BZ_F32 && fabs(p.flops[0].rate / 495e12 - 1) < 1e-9);
    bz_peaks_allow(facts, &one, "f64", &p); /* slower: f32's own rate stays */
    assert_true(fabs(p.flops[0].rate / 495e12 - 1) < 1e-9);
    facts = bz_system_facts_read("{\"measured\":{\"threads\":1,\"flops\":{\"f32\":1e11,\"bf16\":3e11}}}", &arena);
    bz_peaks_read(facts, &one, &arena, &p);
    bz_peaks_allow(facts, &one, "bf16", &p); /* as it was measured */
    assert_true(fabs(p.flops[0].rate / 3e11 - 1) < 1e-9);
    read_peaks("{\"device\":\"gpu\",\"name\":\"NVIDIA H200\",\"clock\":1e10}", &one, &arena, &p);
    assert_true(p.flops[0].rate > 2 * own);
    read_peaks(DETAILS, &two, &arena, &p);
    assert_non_null(strstr(p.why, "measured with 1 thread, not 2: 'benanza system --measure --threads 2'"));
    read_peaks(DETAILS, &cold, &arena, &p);
    assert_null(p.why);
    bz_arena_free(&arena);
}

/* The products of a kernel of r with a padding and a step that meet one of `size` elements: one by one. */
static double brute_inside(int n, int size, int r, int step, int pad, int far)
{
    int met = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < r; k++)
            met += i * step - pad + k * far >= 0 && i * step - pad + k * far < size;
    return (double)met / (n * r);
}

/* How many of `size` elements some product reads. */
static int brute_met(int n, int size, int r, int step, int pad, int far)
{
    int met = 0;
    for (int at = 0; at < size; at++) {
        bool read = false;
        for (int i = 0; i < n * r; i++)
            read |= i / r * step - pad + i % r * far == at;
        met += read;
    }
    return met;
}

/* Libraries leave out what meets padding, and Winograd's algorithm three of four products: neither may be faster than the
 * hardware. Rows and columns have different sizes, steps and paddings. */
static void test_least_products(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        int x[2], r, step[2], pad[2], far, y[2];
        double winograd;
    } CASES[] = {
        {"conv", {14, 28}, 3, {2, 2}, {1, 1}, 1, {7, 14}, 1},      {"conv", {9, 5}, 5, {2, 3}, {2, 0}, 1, {5, 1}, 1},
        {"conv", {12, 12}, 3, {1, 1}, {0, 1}, 1, {10, 12}, 0.5},   {"conv", {7, 9}, 3, {1, 2}, {4, 4}, 4, {7, 5}, 1},
        {"conv", {2, 2}, 3, {1, 1}, {1, 1}, 1, {2, 2}, 0.5},       {"deconv", {4, 6}, 4, {2, 2}, {1, 1}, 1, {8, 12}, 1},
        {"deconv", {12, 12}, 3, {1, 1}, {0, 1}, 1, {14, 12}, 0.5}, {"pool", {14, 14}, 3, {2, 2}, {1, 1}, 1, {7, 7}, 1},
        {"conv", {2, 14}, 3, {3, 2}, {1, 1}, 1, {1, 7}, 1},        {"conv", {4, 6}, 1, {2, 2}, {1, 1}, 1, {3, 4}, 1},
        {"conv", {12, 9}, 3, {1, 1}, {0, 0}, 1, {10, 7}, 0.5},     {"conv", {12, 9}, 3, {2, 2}, {0, 0}, 1, {7, 4}, 1},
    };
    bz_peaks p = {.n_flops = 1, .flops = {{BZ_F32, 1e9}}},
             one = {.n_flops = 1, .flops = {{BZ_F32, 1e30}}, .n_bandwidth = 1, .bandwidth = {{0, 1, 1}}};
    int stepped = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t stride[2] = {CASES[i].step[0], CASES[i].step[1]}, dilation[2] = {CASES[i].far, CASES[i].far};
        int64_t pad[4] = {CASES[i].pad[0], CASES[i].pad[1], CASES[i].pad[0], CASES[i].pad[1]};
        bz_param params[] = {{"stride", NULL, stride, 2}, {"pad", NULL, pad, 4}, {"dilation", NULL, dilation, 2}};
        bz_dim x[] = {1, 8, CASES[i].x[0], CASES[i].x[1]}, w[] = {8, 8, CASES[i].r, CASES[i].r},
               y[] = {1, 8, CASES[i].y[0], CASES[i].y[1]};
        bz_type in[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = x},
                        {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = w}},
                out = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = y};
        bz_layer layer = {.kind = CASES[i].kind,
                          .in = in,
                          .n_in = 2,
                          .out = &out,
                          .n_out = 1,
                          .flops = 1000000000,
                          .params = params,
                          .n_params = 3};
        double share = 1;
        bool deconv = !strcmp(layer.kind, "deconv");
        for (int a = 0; a < 2 && strcmp(layer.kind, "pool") != 0; a++) {
            int n = deconv ? CASES[i].x[a] : CASES[i].y[a], size = deconv ? CASES[i].y[a] : CASES[i].x[a];
            share *= fmin(CASES[i].winograd,
                          brute_inside(n, size, CASES[i].r, CASES[i].step[a], CASES[i].pad[a], CASES[i].far));
        }
        assert_true(fabs(bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) - share) < 1e-9);
        assert_true(share <= 1 && (share < 1) == (strcmp(layer.kind, "pool") != 0));
        bool plain = !CASES[i].pad[0] && !CASES[i].pad[1] && CASES[i].far == 1;
        for (int n = CASES[i].step[0] == 1 ? 0 : 1; n < 3 && plain; n++) { /* a layer without them has these */
            layer.n_params = n;
            assert_true(fabs(bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) - share) < 1e-9);
        }
        layer.n_params = 3;
        if (strcmp(layer.kind, "conv") != 0)
            continue;
        int read = 4 * 8, others = 4 * (8 * 8 * CASES[i].r * CASES[i].r + 8 * CASES[i].y[0] * CASES[i].y[1]);
        for (int a = 0; a < 2; a++)
            read *=
                brute_met(CASES[i].y[a], CASES[i].x[a], CASES[i].r, CASES[i].step[a], CASES[i].pad[a], CASES[i].far);
        bool memory;
        layer.bytes = 4 * 8 * CASES[i].x[0] * CASES[i].x[1] + others;
        layer.priced = true;
        double traffic = bz_peaks_roofline(&one, &layer, BZ_UNDEFINED, &memory);
        assert_true(memory && traffic <= read + others);
        assert_true(CASES[i].far > 1 || traffic >= read + others);
        stepped += traffic < (double)layer.bytes;
        bz_type y_w[] = {out, in[1]}, x_y[] = {in[0], out}; /* gradients have the same products */
        layer.kind = "conv_data", layer.in = y_w, layer.out = &in[0];
        assert_true(fabs(bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) - share) < 1e-9);
        layer.kind = "conv_weights", layer.in = x_y, layer.out = &in[1];
        assert_true(fabs(bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) - share) < 1e-9);
    }
    assert_true(stepped > 1);
}

/* Of causal attention half of the scores are seen, and one diagonal; of a window of 3 over 5 keys all but 3 of the 15 that are
 * counted; behind a past of 4, all of the first 5 keys. A projection is done whole. */
static void test_attention(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, kv, keys, projected;
        double share;
    } CASES[] = {{5, 5, 0, 0, 15.0 / 25}, {5, 3, 5, 0, 12.0 / 15}, {5, 9, 0, 0, 35.0 / 45},
                 {1, 9, 0, 0, 1},         {1, 3, 9, 0, 1},         {5, 5, 0, 1, (15.0 + 25) / 50}};
    bz_peaks p = {.n_flops = 1, .flops = {{BZ_F32, 1}}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_dim dims[] = {2, CASES[i].rows, 32}, kv = CASES[i].kv, keys = CASES[i].keys, size = 32, causal = 1;
        bz_type in[2], out = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 3, .dims = dims};
        in[0] = in[1] = out;
        bz_param params[] = {{.name = "kv", .v = &kv, .n = 1},
                             {.name = "qk", .v = &size, .n = 1},
                             {.name = "v", .v = &size, .n = 1},
                             {.name = "causal", .v = &causal, .n = 1},
                             {.name = "keys", .v = &keys, .n = keys ? 1 : 0}};
        bz_layer layer = {.kind = "attention",
                          .in = in,
                          .n_in = 2,
                          .out = &out,
                          .n_out = 1,
                          .params = params,
                          .n_params = keys ? 5 : 4,
                          .priced = true,
                          .flops = 1000,
                          .macs = 2 * CASES[i].rows * kv * 64 * (1 + CASES[i].projected)};
        assert_true(fabs(bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) - 1000 * CASES[i].share) < 1e-9);
    }
}

/* ONNX's attention has heads between, or not; ONNX Runtime's with groups of heads is causal even where it does not say so. By counting: query i
 * of as many as there are keys sees the first i + 1. What does not fit is counted whole. */
static void test_attention_forms(void **state)
{
    (void)state;
    static const struct {
        bool runtime, groups;
        int causal; /* -1: it is not said */
        int rank, k_rank;
        int64_t rows, keys;
        int n_in, n_out;
        bool part;
    } CASES[] = {{false, false, 1, 4, 4, 6, 6, 3, 1, true},  {false, false, 1, 3, 3, 6, 6, 3, 1, true},
                 {false, false, 0, 4, 4, 6, 6, 3, 1, false}, {false, false, -1, 4, 4, 6, 6, 3, 1, false},
                 {false, false, 1, 4, 3, 6, 6, 3, 1, false}, {false, false, 1, 4, 4, 5, 6, 3, 1, false},
                 {false, false, 1, 4, 4, 6, 5, 3, 1, false}, {false, false, 1, 2, 2, 6, 6, 3, 1, false},
                 {false, false, 1, 4, 4, 6, 6, 1, 1, false}, {false, false, 1, 4, 4, 6, 6, 3, 0, false},
                 {false, false, 1, 4, 4, 0, 0, 3, 1, false}, {false, false, 1, 4, 4, 1, 1, 2, 1, true},
                 {false, true, -1, 4, 4, 6, 6, 3, 1, false}, {true, false, 1, 3, 3, 6, 6, 3, 1, true},
                 {true, false, -1, 3, 3, 6, 6, 3, 1, false}, {true, true, -1, 3, 3, 6, 6, 3, 1, true},
                 {true, true, 0, 3, 3, 6, 6, 3, 1, false},   {true, false, 1, 3, 2, 6, 6, 3, 1, true},
                 {true, false, 1, 3, 3, 7, 6, 3, 1, false},  {true, false, 1, 3, 3, 1, 0, 3, 1, false}};
    bz_peaks p = {.n_flops = 1, .flops = {{BZ_F32, 1}}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t rows = CASES[i].rows, keys = CASES[i].keys, seen = 0, size = 8, causal = CASES[i].causal, heads = 2;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < keys; k++)
                seen += k <= r + keys - rows;
        bz_dim q[] = {2, 3, rows, size}, k[] = {2, 3, keys, size}, flat[] = {2, rows, size};
        bz_type in[3] = {
            {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = CASES[i].rank, .dims = q + 4 - CASES[i].rank}};
        in[1] = in[2] = (bz_type){
            .kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = CASES[i].k_rank, .dims = k + 4 - CASES[i].k_rank};
        bz_type out = in[0];
        if (CASES[i].runtime)
            out.dims = flat;
        bz_param params[5], runtime[] = {{.name = "kv", .v = &keys, .n = 1},
                                         {.name = "qk", .v = &size, .n = 1},
                                         {.name = "v", .v = &size, .n = 1}};
        int n = 0;
        for (int j = 0; j < 3 && CASES[i].runtime; j++)
            params[n++] = runtime[j];
        if (causal >= 0)
            params[n++] = (bz_param){.name = "causal", .v = &causal, .n = 1};
        if (CASES[i].groups)
            params[n++] = (bz_param){.name = "kv_heads", .v = &heads, .n = 1};
        bz_layer layer = {.kind = "attention",
                          .in = in,
                          .n_in = CASES[i].n_in,
                          .out = &out,
                          .n_out = CASES[i].n_out,
                          .params = params,
                          .n_params = n,
                          .priced = true,
                          .flops = 1000,
                          .macs = 2 * rows * keys * 2 * size};
        double share = CASES[i].part ? (double)seen / (double)(rows * keys) : 1,
               found = bz_peaks_arithmetic(&p, &layer, BZ_UNDEFINED) / 1000;
        if (fabs(found - share) > 1e-9)
            fail_msg("case %zu: %g of the products, not %g", i, found, share);
    }
}

/* An optimizer's step writes where it has read: 12 kB of weights, gradients and moments lie in a cache of 16 kB, and it takes no less than to read them. */
static void test_in_place(void **state)
{
    (void)state;
    bz_dim dims[] = {1000};
    bz_type in[3], out[2];
    bool memory;
    for (int i = 0; i < 3; i++)
        in[i] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = dims};
    memcpy(out, in, sizeof out);
    bz_peaks p = {.n_flops = 1, .flops = {{BZ_F32, 1e18}}, .n_bandwidth = 2, .bandwidth = {{0, 4e9}, {16000, 1e9}}};
    bz_layer layer = {.kind = "momentum", .in = in, .n_in = 3, .out = out, .n_out = 2, .bytes = 20000, .priced = true};
    assert_true(fabs(bz_peaks_roofline(&p, &layer, BZ_UNDEFINED, &memory) - 3e-6) < 1e-12 && memory);
    layer.kind = "add";
    assert_true(fabs(bz_peaks_roofline(&p, &layer, BZ_UNDEFINED, &memory) - 20e-6) < 1e-12);
}

/* Peaks belong to a thread count: a new measurement takes the place of the last one with as many, and no other's. */
static void test_peaks_by_threads(void **state)
{
    (void)state;
    static const char FOUR[] =
        "{\"cores\":8,\"measured\":{\"threads\":4,\"flops\":{\"f32\":3e11},\"bandwidth\":[{\"bytes\":1e3,"
        "\"read\":2e9,\"copy\":2e9}]}}";
    static const char AGAIN[] =
        "{\"cores\":9,\"measured\":{\"threads\":4,\"flops\":{\"f32\":5e11},\"bandwidth\":[{\"bytes\":1e3,"
        "\"read\":2e9,\"copy\":2e9}]}}";
    bz_arena arena = {0};
    bz_setting one = {1, BZ_CACHE_HOT, ""}, two = {2, BZ_CACHE_HOT, ""}, four = {4, BZ_CACHE_HOT, ""};
    bz_peaks p;
    assert_null(bz_system_join("{}", FOUR, &arena));
    assert_null(bz_system_join(FOUR, AGAIN, &arena));
    assert_null(bz_system_join(DETAILS, "{\"cores\":1}", &arena));
    assert_null(bz_system_join("not JSON", FOUR, &arena));
    const char *both = bz_system_join(DETAILS, FOUR, &arena);
    assert_non_null(both);
    both = bz_system_join(both, AGAIN, &arena);
    assert_non_null(both);
    const bz_system_facts *facts = bz_system_facts_read(both, &arena);
    assert_int_equal(facts->n_measured, 2);
    assert_true(facts->measured[0].threads == 1 && facts->measured[1].threads == 4);
    assert_true(bz_system_measured(facts, 4) == &facts->measured[1] && !bz_system_measured(facts, 2));
    assert_non_null(strstr(both, "\"cores\":9"));
    read_peaks(both, &one, &arena, &p);
    assert_true(!p.why && p.n_flops == 1 && p.flops[0].rate == 1e11);
    read_peaks(both, &four, &arena, &p);
    assert_true(!p.why && p.n_flops == 1 && p.flops[0].rate == 5e11);
    read_peaks(both, &two, &arena, &p);
    assert_non_null(strstr(p.why, "measured with 1, 4 threads, not 2"));
    read_peaks("{\"measured\":[]}", &one, &arena, &p);
    assert_non_null(strstr(p.why, "nobody measured"));
    bz_arena_free(&arena);
}

/* A type that no unit makes faster goes as f32, of those that every card computes somehow; and none else. */
static void test_types_of_a_sheet(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_peaks p;
    bz_layer layer = {.kind = "gemm", .flops = 1000000000, .priced = true};
    read_peaks("{\"gpu\":\"Tesla P4\"}", &(bz_setting){1, BZ_CACHE_HOT, ""}, &arena, &p);
    assert_null(p.why);
    static const struct {
        bz_dtype dtype;
        double rate;
    } CASES[] = {{BZ_F32, 5.5e12}, {BZ_F16, 5.5e12}, {BZ_BF16, 5.5e12}, {BZ_F64, 0.17e12}, {BZ_I8, 22e12}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_true(fabs(bz_peaks_arithmetic(&p, &layer, CASES[i].dtype) - 1e9 / CASES[i].rate) < 1e-9);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_slow_phase),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_enough),
        cmocka_unit_test(test_weights_from_far),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_contradiction),
        cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_types_of_a_sheet),
        cmocka_unit_test(test_least_products),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_forms),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_peaks_by_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
