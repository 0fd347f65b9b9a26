/* Prices: a copy that stands in for a layer counts only where no library call for it can run. */
#include "chance.h"
#include "generator/generator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char RMSNORM[] = "rmsnorm x=2x8 axis=1 dtype=f32", COPY[] = "copy read=64 write=64 dtype=u8";
static const bz_setting SETTING = {1, BZ_CACHE_HOT, ""};
static bz_perfdb *db;
static int64_t date = 1;
static const char *meta = "";

/* A newer record of one variant; above 0 s it ran. */
static void put_variant(const char *system, const char *problem, const char *algorithm, double seconds)
{
    bz_error err = {0};
    bool ok = seconds > 0;
    bz_record r = {
        .system = system,
        .problem = problem,
        .variant = {.backend = "cudnn", .algorithm = ok ? algorithm : "", .layout = "plain", .math = "default"},
        .setting = SETTING,
        .status = ok ? BZ_RECORD_OK : BZ_RECORD_UNSUPPORTED,
        .reason = ok ? "" : "not here",
        .checked = "ok",
        .meta = meta,
        .median = seconds,
        .q25 = seconds,
        .q75 = seconds,
        .min = seconds,
        .max = seconds,
        .low = seconds,
        .high = seconds,
        .n = ok ? 10 : 0,
        .iterations = ok ? 10 : 0,
        .variants = ok ? 1 : 0,
        .timing = BZ_TIMING_DEVICE,
        .provenance = BZ_PROVENANCE_MEASURED,
        .date = date++,
    };
    if (bz_perfdb_put(db, &r, 1, NULL, &err))
        fail_msg("%s", err.text);
}

static void put(const char *system, const char *problem, double seconds)
{
    put_variant(system, problem, "a", seconds);
}

/* Of the layer, or of the last of its alternatives as if a fusion pattern had found it. */
static bz_layer_price price_of(bz_layer *layer, const char *system, const char *backend, bool as_group)
{
    bz_layers layers = {.layer = layer, .n = 1};
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.backend = {backend}, .n_backends = backend ? 1 : 0});
    const bz_plan_layer *item;
    const bz_system *found;
    bz_layer_price p;
    bz_prices *prices;
    bz_arena arena = {0};
    bz_error err = {0};
    bz_plan_add(plan, &layers, "m.onnx");
    assert_int_equal(bz_plan_layers(plan, &item), 1);
    assert_int_equal(bz_perfdb_system(db, system, &found, &err), 0);
    assert_non_null(found);
    assert_int_equal(bz_prices_load(plan, db, found, &SETTING, &arena, &prices, &err), 0);
    bz_plan_layer group = *item;
    group.pattern = "p";
    group.lowering.alternative += group.lowering.n - 1;
    group.lowering.n = 1;
    group.problem += group.n_problems - 1;
    group.n_problems = 1;
    bz_prices_layer(prices, as_group ? &group : item, &p);
    bool any = p.alternative;
    p.alternative = NULL; /* goes with the plan */
    p.why = any ? "priced" : "unpriced";
    bz_arena_free(&arena);
    bz_plan_free(plan);
    return p;
}

static bz_layer_price price(const char *system, const char *backend)
{
    const bz_type x[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 2, .dims = (const bz_dim[]){2, 8}}};
    const bz_node node = {.name = "", .op = "", .domain = ""};
    const bool constant[1] = {false};
    bz_layer layer = {.name = "l",
                      .node = &node,
                      .kind = "rmsnorm",
                      .class = BZ_COMPUTE,
                      .n_in = 1,
                      .n_out = 1,
                      .in = x,
                      .out = x,
                      .in_constant = constant,
                      .key = "rmsnorm",
                      .bytes = 128,
                      .priced = true};
    return price_of(&layer, system, backend, false);
}

static void open_db(char *folder)
{
    char path[64];
    bz_error err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/db", folder);
    assert_int_equal(bz_perfdb_open(&db, path, &(bz_perfdb_options){0}, &err), 0);
}

static void close_db(const char *folder)
{
    char command[64];
    bz_perfdb_close(db);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* The time between events has the pauses between kernels in it: a bound from that could exceed what a program is busy with. */
static void kernels_price_small_layers(void **state)
{
    char folder[] = "/tmp/benanza_price_XXXXXX";
    (void)state;
    open_db(folder);
    meta = "{\"sm_clock\":1.8e9,\"kernel_time\":1.5,\"n_kernels\":1}";
    put("gpu@1", RMSNORM, 2);
    bz_layer_price p = price("gpu@1", "cudnn");
    assert_true(p.seconds == 1.5 && p.low == 1.5 && p.high == 1.5);
    meta =
        "{\"kernel_time\":1.25}"; /* as a CUDA graph: its launch takes longer than the call, and is not in the bound */
    put_variant("gpu@1", RMSNORM, "a+cudagraph", 3);
    assert_true(price("gpu@1", "cudnn").seconds == 1.25);
    meta =
        ""; /* the same where no profiler looked: the graph that is launched fastest is no bound of another's kernels */
    put_variant("gpu@1", RMSNORM, "a+cudagraph", 3);
    assert_true(price("gpu@1", "cudnn").seconds == 1.5);
    meta = "{\"kernel_time\":2.5}"; /* CUPTI's times are no exact ones either: the lower is the bound */
    put("gpu@1", RMSNORM, 2);
    p = price("gpu@1", "cudnn");
    assert_true(p.seconds == 2);
    meta = "{\"kernels\":[{\"name\":\"\\\"kernel_time\\\":1\"}]}"; /* a name is no member */
    put("gpu@1", RMSNORM, 2);
    p = price("gpu@1", "cudnn");
    assert_true(p.seconds == 2);
    meta = "";
    close_db(folder);
}

/* Which of these may be more than what the device was busy with. */
static void says_where_pauses_are_in_it(void **state)
{
    (void)state;
    bz_record r = {.timing = BZ_TIMING_DEVICE, .median = 2, .meta = ""};
    assert_true(bz_record_has_floor(&r, true) && !bz_record_has_floor(&r, false));
    r.meta = "{\"kernel_time\":1.5}";
    assert_false(bz_record_has_floor(&r, true));
    r.timing = BZ_TIMING_EVENT_PAIR;
    assert_true(bz_record_has_floor(&r, true) && bz_record_has_floor(&r, false));
}

static void copy_stands_in(void **state)
{
    char folder[] = "/tmp/benanza_price_XXXXXX";
    (void)state;
    open_db(folder);

    /* the processor: a loop of ours runs it, and is missed */
    put("cpu@1", COPY, 2);
    bz_layer_price p = price("cpu@1", NULL);
    assert_string_equal(p.why, "priced");
    assert_true(p.seconds == 2 && p.provenance == BZ_PROVENANCE_MODELLED && p.missing == 1);
    put("cpu@1", RMSNORM, 3);
    p = price("cpu@1", NULL);
    assert_true(p.seconds == 3 && p.provenance == BZ_PROVENANCE_MEASURED && !p.missing);

    /* a device: nobody knows yet whether the call runs */
    put("gpu@1", COPY, 2);
    p = price("gpu@1", "cudnn");
    assert_true(p.seconds == 2 && p.provenance == BZ_PROVENANCE_MODELLED && p.missing == 1);

    /* it was refused */
    put("gpu@1", RMSNORM, 0);
    p = price("gpu@1", "cudnn");
    assert_string_equal(p.why, "priced");
    assert_true(p.seconds == 2 && p.provenance == BZ_PROVENANCE_MODELLED && !p.missing);

    /* it runs, and counts though the copy is cheaper */
    put("gpu@1", RMSNORM, 3);
    p = price("gpu@1", "cudnn");
    assert_string_equal(p.why, "priced");
    assert_true(p.seconds == 3 && p.provenance == BZ_PROVENANCE_MEASURED && !p.missing);

    close_db(folder);
}

/* An implementation by the definition prices nothing where another one ran, even if it was faster: not a problem, and not
 * a layer that other calls can compute. Alone it prices, and the price says so. */
static void definition_comes_last(void **state)
{
    char folder[] = "/tmp/benanza_price_XXXXXX";
    (void)state;
    open_db(folder);
    put_variant("cpu@1", RMSNORM, "ref:any", 4);
    bz_layer_price p = price("cpu@1", NULL);
    assert_true(p.seconds == 4 && p.reference);
    put_variant("cpu@1", RMSNORM, "loops avx512", 5);
    p = price("cpu@1", NULL);
    assert_true(p.seconds == 5 && !p.reference);
    put_variant("cpu@1", RMSNORM, "gemm_ref", 1);
    put_variant("cpu@1", RMSNORM, "jit:avx2", 6);
    p = price("cpu@1", NULL);
    assert_true(p.seconds == 5 && !p.reference);
    close_db(folder);
}

/* Attention in one call: no backend of the processor has it, and nobody there misses it. */
static void nobody_misses_it(void **state)
{
    static const char ATTENTION[] = "attention q=1x2x4x8 k=1x2x4x8 v=1x2x4x8 dtype=f32";
    static const bz_dim SHAPE[] = {1, 2, 4, 8};
    char folder[] = "/tmp/benanza_price_XXXXXX";
    const bz_type x[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = SHAPE},
                         {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = SHAPE},
                         {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = SHAPE}};
    const bz_node node = {.name = "", .op = "", .domain = ""};
    const bool constant[3] = {false};
    bz_layer layer = {.name = "l",
                      .node = &node,
                      .kind = "attention",
                      .class = BZ_COMPUTE,
                      .n_in = 3,
                      .n_out = 1,
                      .in = x,
                      .out = x,
                      .in_constant = constant,
                      .key = "attention",
                      .macs = 2 * 4 * 4 * 16,
                      .bytes = 1024,
                      .priced = true};
    (void)state;
    open_db(folder);
    static const char *const STEPS[] = {"matmul a=2x4x8 b=2x8x4 constant=0 dtype=f32",
                                        "softmax x=2x4x4 axis=2 dtype=f32",
                                        "matmul a=2x4x4 b=2x4x8 constant=0 dtype=f32"};
    put("cpu@1", STEPS[0], 1);
    bz_layer_price p = price_of(&layer, "cpu@1", NULL, false);
    assert_string_equal(p.why, "unpriced");
    assert_int_equal(p.missing, 2);
    p = price_of(&layer, "cpu@1", NULL, true);
    assert_string_equal(p.why, "unpriced");
    assert_int_equal(p.missing, 0);
    put("cpu@1", STEPS[1], 1);
    put("cpu@1", STEPS[2], 1);
    p = price_of(&layer, "cpu@1", NULL, false);
    assert_string_equal(p.why, "priced");
    assert_true(p.seconds == 3 && !p.missing);

    for (int i = 0; i < 3; i++)
        put("gpu@1", STEPS[i], 1);
    p = price_of(&layer, "gpu@1", "cudnn", false);
    assert_true(p.seconds == 3 && p.missing == 1);
    put("gpu@1", ATTENTION, 2);
    p = price_of(&layer, "gpu@1", "cudnn", false);
    assert_true(p.seconds == 2 && !p.missing);
    p = price_of(&layer, "gpu@1", NULL, true); /* records count, whichever backends the plan names */
    assert_true(p.seconds == 2 && !p.missing);
    put("cpu@2", STEPS[0], 1);
    put("cpu@2", STEPS[1], 1);
    put("cpu@2", STEPS[2], 1);
    put_variant("cpu@2", ATTENTION, "ref:any", 2);
    p = price_of(&layer, "cpu@2", "cudnn", false);
    assert_true(p.seconds == 3 && !p.reference);
    close_db(folder);
}

/* Padding that differs between the ends: in the convolution, or a pad and a convolution, whose times add up. On the processor
 * libraries take any padding: nobody misses a pad. */
static void pads_have_a_price(void **state)
{
    static const char WHOLE[] = "conv x=1x2x6x6 w=2x2x3x3 stride=2x2 pad=0x0x1x1 dilation=1x1 group=1 dtype=f32",
                      BORDER[] = "pad x=1x2x6x6 pad=0x0x1x1 dtype=f32",
                      INNER[] = "conv x=1x2x7x7 w=2x2x3x3 stride=2x2 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32";
    const bz_type in[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = (const bz_dim[]){1, 2, 6, 6}},
                          {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = (const bz_dim[]){2, 2, 3, 3}}},
                  out[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = (const bz_dim[]){1, 2, 3, 3}}};
    const bz_param params[] = {{.name = "stride", .v = (const int64_t[]){2, 2}, .n = 2},
                               {.name = "pad", .v = (const int64_t[]){0, 0, 1, 1}, .n = 4},
                               {.name = "dilation", .v = (const int64_t[]){1, 1}, .n = 2}};
    char folder[] = "/tmp/benanza_price_XXXXXX";
    const bz_node node = {.name = "", .op = "", .domain = ""};
    const bool constant[2] = {false, true};
    bz_layer layer = {.name = "l",
                      .node = &node,
                      .kind = "conv",
                      .class = BZ_COMPUTE,
                      .n_in = 2,
                      .n_out = 1,
                      .in = in,
                      .out = out,
                      .in_constant = constant,
                      .params = params,
                      .n_params = 3,
                      .key = "conv",
                      .macs = 2 * 3 * 3 * 18,
                      .bytes = 504,
                      .priced = true};
    (void)state;
    open_db(folder);
    put("cpu", WHOLE, 5);
    bz_layer_price p = price_of(&layer, "cpu", NULL, false);
    assert_true(p.seconds == 5 && !p.missing);

    put("gpu", BORDER, 1);
    p = price_of(&layer, "gpu", "cudnn", false);
    assert_string_equal(p.why, "unpriced"); /* a pad alone is no convolution */
    assert_int_equal(p.missing, 2);
    put("gpu", INNER, 3);
    p = price_of(&layer, "gpu", "cudnn", false);
    assert_true(p.seconds == 4 && p.missing == 1 && p.provenance == BZ_PROVENANCE_MEASURED);
    put("gpu", WHOLE, 5);
    p = price_of(&layer, "gpu", "cudnn", false);
    assert_true(p.seconds == 4 && !p.missing);
    put("gpu", WHOLE, 2); /* an engine that takes the padding itself */
    p = price_of(&layer, "gpu", "cudnn", false);
    assert_true(p.seconds == 2);

    /* what is run: on the processor neither the pad nor what would come behind it */
    static const char *const BACKENDS[] = {NULL, "cudnn"};
    for (int i = 0; i < 2; i++) {
        bz_layers layers = {.layer = &layer, .n = 1};
        bz_plan *plan = bz_plan_new(&(bz_plan_options){.backend = {BACKENDS[i]}, .n_backends = i});
        const bz_plan_problem *problem;
        bz_plan_add(plan, &layers, "m.onnx");
        assert_int_equal(bz_plan_problems(plan, &problem), 3);
        assert_string_equal(problem[1].text, BORDER);
        assert_int_equal(problem[1].n_families, i ? 2 : 0);
        assert_int_equal(problem[2].n_families > 0, i);
        assert_int_equal(bz_plan_wanted(plan, NULL), i ? 3 : 1);
        bz_plan_free(plan);
    }
    close_db(folder);
}

enum { CALLS = 3, VARIANTS = 5 };
static const char *const CALL[CALLS] = {"gemm m=2 n=4 k=8 batch=1 transa=0 transb=0 post=bias dtype=f32",
                                        "gemm m=2 n=4 k=8 batch=1 transa=0 transb=0 dtype=f32",
                                        "binary fn=add a=2x4 b=1x4 dtype=f32"};

/* What a layer costs: seconds, where they may lie, launches, and marks. 0: nothing. */
typedef struct {
    double seconds, low, high, launch;
    bool noisy, reference;
    bz_record_provenance provenance;
} cost;

static bz_record random_record(int call, int variant)
{
    static const char *const ALGORITHMS[VARIANTS] = {"a", "b", "c", "ref:any", "sum_ref:any"};
    static const bz_record_status STATUS[] = {BZ_RECORD_OK,          BZ_RECORD_OK,      BZ_RECORD_OK,
                                              BZ_RECORD_UNSUPPORTED, BZ_RECORD_CRASHED, BZ_RECORD_DROPPED};
    bz_record r = bz_record_blank();
    r.problem = CALL[call];
    r.variant = (bz_variant){"cudnn", ALGORITHMS[variant], "plain", "default"};
    r.setting = SETTING;
    r.status = STATUS[chance(6)];
    r.reason = r.status == BZ_RECORD_OK ? "" : "not here";
    r.provenance = chance(2) ? BZ_PROVENANCE_MEASURED : BZ_PROVENANCE_IMPORTED;
    r.median = r.min = r.max = r.q25 = r.q75 = 1 + chance(64) + variant / 8.0 + call / 64.0; /* no two alike */
    r.low = chance(3) ? r.median - .25 : 0;
    r.high = r.low > 0 ? r.median + .5 : 0;
    r.launch = chance(2) ? (double)chance(4) : NAN;
    r.noisy = !chance(3);
    r.n = r.iterations = 10;
    r.date = date++;
    return r;
}

/* The fastest that ran; by the definition only where nothing else did. NULL: none. */
static const bz_record *cheapest_record(const bz_record *r, const bool *there)
{
    const bz_record *best = NULL;
    for (int pass = 0; pass < 2 && !best; pass++)
        for (int v = 0; v < VARIANTS; v++)
            if (there[v] && r[v].status == BZ_RECORD_OK && (v >= 3) == pass && (!best || r[v].median < best->median))
                best = &r[v];
    return best;
}

static cost sum_of(const bz_record *const *of, int from, int to)
{
    cost sum = {0};
    for (int k = from; k < to; k++) {
        if (!of[k])
            return (cost){0};
        sum.seconds += of[k]->median;
        sum.low += of[k]->low > 0 ? of[k]->low : of[k]->median * .975; /* generator.h: 2.5 % off */
        sum.high += of[k]->low > 0 ? of[k]->high : of[k]->median * 1.025;
        sum.launch += isnan(of[k]->launch) ? 0 : of[k]->launch;
        sum.noisy |= of[k]->noisy;
        sum.reference |= strstr(of[k]->variant.algorithm, "ref") != NULL;
        sum.provenance = of[k]->provenance > sum.provenance ? of[k]->provenance : sum.provenance;
    }
    return sum;
}

/* A product with its bias, in one call or in two, by random records: the cheaper way, each call by its fastest record. */
static void price_is_the_cheapest_way(void **state)
{
    (void)state;
    char folder[] = "/tmp/benanza_price_XXXXXX", system[16];
    const bz_type in[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 2, .dims = (const bz_dim[]){2, 8}},
                          {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 2, .dims = (const bz_dim[]){8, 4}},
                          {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = (const bz_dim[]){4}}},
                  out[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 2, .dims = (const bz_dim[]){2, 4}}};
    const bz_node node = {.name = "", .op = "", .domain = ""};
    const bool constant[3] = {false, true, true};
    bz_layer layer = {.name = "l",
                      .node = &node,
                      .kind = "gemm",
                      .class = BZ_COMPUTE,
                      .n_in = 3,
                      .n_out = 1,
                      .in = in,
                      .out = out,
                      .in_constant = constant,
                      .key = "gemm",
                      .macs = 64,
                      .bytes = 256,
                      .priced = true};
    open_db(folder);
    int priced = 0;
    for (int trial = 0; trial < 60; trial++) {
        bz_record r[CALLS][VARIANTS];
        bool there[CALLS][VARIANTS];
        const bz_record *best[CALLS];
        bz_error err = {0};
        int records = 0;
        snprintf(system, sizeof system, "s%d", trial);
        for (int c = 0; c < CALLS; c++) {
            for (int v = 0; v < VARIANTS; v++) {
                r[c][v] = random_record(c, v);
                r[c][v].system = system;
                there[c][v] = !chance(2);
                records += there[c][v];
                assert_int_equal(there[c][v] ? bz_perfdb_put(db, &r[c][v], 1, NULL, &err) : 0, 0);
            }
            best[c] = cheapest_record(r[c], there[c]);
        }
        if (!records)
            continue;
        cost one = sum_of(best, 0, 1), two = sum_of(best, 1, 3), *want = &one;
        if (one.seconds == 0 ||
            (two.seconds > 0 && (one.reference != two.reference ? one.reference : two.seconds < one.seconds)))
            want = &two;
        bz_layer_price p = price_of(&layer, system, NULL, false);
        assert_string_equal(p.why, want->seconds > 0 ? "priced" : "unpriced");
        if (want->seconds == 0)
            continue;
        if (p.seconds != want->seconds || p.launch != want->launch)
            fail_msg("%g s, launches %g, not %g and %g; in one call %g, in two %g", p.seconds, p.launch, want->seconds,
                     want->launch, one.seconds, two.seconds);
        assert_true(fabs(p.low - want->low) < 1e-9 && fabs(p.high - want->high) < 1e-9);
        assert_true(p.noisy == want->noisy && p.reference == want->reference && p.provenance == want->provenance);
        priced++;
    }
    assert_in_range(priced, 30, 60);
    close_db(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copy_stands_in),
                                       cmocka_unit_test(kernels_price_small_layers),
                                       cmocka_unit_test(says_where_pauses_are_in_it),
                                       cmocka_unit_test(pads_have_a_price),
                                       cmocka_unit_test(definition_comes_last),
                                       cmocka_unit_test(nobody_misses_it),
                                       cmocka_unit_test(price_is_the_cheapest_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
