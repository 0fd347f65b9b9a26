/* Fusion, other ways to compute, and all together: rules on random records, sums to the bit. */
#include "analysis/analysis.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char DETAILS[] = "{\"isa\":\"AVX AVX512_CORE AVX512_CORE_BF16\",\"measured\":{\"threads\":1,\"flops\":{"
                              "\"f32\":1e11},\"bandwidth\":[{\"bytes\":1e3,\"read\":1e9,\"copy\":1e9}]}}";
static const char SYSTEM[] = "testbox@onednn2.6.3";
static const char PATTERNS[] = "[mine]\na = conv(_, _)\nb = Relu(a)\n";

typedef struct world {
    char folder[64];
    bz_model *model;
    bz_layers *layers;
    bz_plan *plan[2]; /* f32, bf16 */
    bz_perfdb *db;
    const bz_system *system;
    bz_setting setting;
    bz_peaks peaks;
    uint64_t dice;
    bz_arena arena;
} world;

static uint32_t roll(uint64_t *dice, uint32_t n)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (uint32_t)(*dice >> 33) % n;
}

static void set_up(world *w, uint64_t seed)
{
    bz_error err = {0};
    bz_patterns *patterns = NULL;
    *w = (world){.folder = "/tmp/benanza-test-XXXXXX", .setting = {1, BZ_CACHE_HOT, ""}, .dice = seed};
    assert_non_null(mkdtemp(w->folder));
    if (bz_model_load(BENANZA_SOURCE "/tests/cases/analyze/branches.onnx", &w->model, &err) ||
        bz_layers_infer(w->model, &(bz_infer_options){.batch = 1}, &w->layers, &err) ||
        bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err) ||
        bz_patterns_parse(PATTERNS, "own", &patterns, &err) ||
        bz_perfdb_open(&w->db, w->folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_put_system(w->db, SYSTEM, DETAILS, 1, &err) || bz_perfdb_system(w->db, SYSTEM, &w->system, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        w->plan[i] = bz_plan_new(&(bz_plan_options){.patterns = patterns, .dtype = i ? BZ_BF16 : BZ_UNDEFINED});
        bz_plan_add(w->plan[i], w->layers, "branches");
    }
    bz_patterns_free(patterns);
    bz_peaks_read(bz_system_facts_read(DETAILS, &w->arena), &w->setting, &w->arena, &w->peaks);
}

static void tear_down(world *w)
{
    char command[128];
    bz_perfdb_close(w->db);
    bz_plan_free(w->plan[0]);
    bz_plan_free(w->plan[1]);
    bz_layers_free(w->layers);
    bz_model_free(w->model);
    bz_arena_free(&w->arena);
    snprintf(command, sizeof command, "rm -rf %s", w->folder);
    assert_int_equal(system(command), 0);
}

static void put(world *w, const char *problem, const char *layout, double seconds)
{
    bz_error err = {0};
    bz_record r = bz_record_blank();
    r.system = SYSTEM;
    r.problem = problem;
    r.variant = (bz_variant){"onednn", "jit:avx512_core", layout, "default"};
    r.setting = w->setting;
    r.median = seconds;
    r.low = seconds * 0.99;
    r.high = seconds * 1.02;
    r.n = 3;
    r.iterations = 30;
    r.date = 1000;
    if (bz_perfdb_put(w->db, &r, 1, NULL, &err))
        fail_msg("%s", err.text);
}

/* Records of most problems of a plan; fused ones cheap where `groups`. */
static void fill(world *w, int plan, double least, bool groups, int all_but)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(w->plan[plan], &problem);
    for (int i = 0; i < n; i++) {
        bool post = strstr(problem[i].text, "post=") != NULL;
        if (!all_but || roll(&w->dice, (uint32_t)all_but))
            put(w, problem[i].text, "plain", (post && groups ? 0.1 : 1) * least + 1e-9 * roll(&w->dice, 900000));
    }
}

static bz_bound bound(world *w, int plan)
{
    bz_error err = {0};
    bz_prices *prices;
    bz_bound b;
    if (bz_prices_load(w->plan[plan], w->db, w->system, &w->setting, &w->arena, &prices, &err))
        fail_msg("%s", err.text);
    bz_bound_input in = {.model = "branches",
                         .system = SYSTEM,
                         .facts = bz_system_facts_read(DETAILS, &w->arena),
                         .setting = w->setting,
                         .dtype = plan ? BZ_BF16 : BZ_UNDEFINED,
                         .layers = w->layers,
                         .plan = w->plan[plan],
                         .fused = true,
                         .prices = prices,
                         .peaks = &w->peaks};
    bz_bound_make(&in, &w->arena, &b);
    return b;
}

static void test_fusion(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        world w;
        bz_fusion f;
        double sum = 0;
        int own = 0, places = 0;
        set_up(&w, seed * 104729);
        fill(&w, 0, 1e-3, seed % 2, 0);
        bz_bound b = bound(&w, 0);
        bz_fusion_make(&b, NULL, 0, &w.arena, &f);
        assert_true(f.n > 1 && f.sequential >= 0);
        for (int i = 0; i < f.n; i++) {
            const bz_fusion_row *r = &f.row[i];
            sum += r->gain;
            places += r->places;
            own += !strcmp(r->pattern, "mine");
            assert_true(r->gain == r->written - r->together && (r->covered || r->gain == 0));
            assert_true(r->alone >= 0 && r->alone <= f.sequential && r->gain <= f.sequential);
            assert_true(r->covered + r->modelled + r->missing + r->refused <= r->places && r->fused == -1);
            assert_true(!i || f.row[i - 1].gain >= r->gain);
        }
        assert_true(sum == f.sequential && own == 1 && places == b.fused.n_places);
        assert_true(b.sequential - f.sequential >= b.fused.sequential); /* that takes modelled groups, too */
        assert_true(seed % 2 == 0 || f.sequential > 0);
        tear_down(&w);
    }
}

/* A group that is modelled, or without a record, gains nothing and is counted. */
static void test_fusion_by_records_only(void **state)
{
    world w;
    bz_fusion f;
    int failing = 0;
    (void)state;
    set_up(&w, 4711);
    fill(&w, 0, 1e-3, true, 0);
    bz_bound b = bound(&w, 0);
    for (int g = 0; g < b.fused.n_places; g++) {
        bz_layer_price *p = &b.fused.place[g].price;
        if (b.fused.place[g].spare)
            continue;
        if (g % 2)
            p->provenance = BZ_PROVENANCE_MODELLED;
        else
            *p = (bz_layer_price){.seconds = NAN, .missing = g % 4 ? 0 : 1, .why = "SIGSEGV while running"};
        failing += g % 4 == 2 && !b.fused.place[g].refused;
    }
    int modelled = 0, missing = 0, refused = 0, failed = 0;
    bz_fusion_make(&b, NULL, 0, &w.arena, &f);
    double spared = 0; /* no record tells that it need not run */
    for (int i = 0; i < b.dag->n; i++)
        spared += b.fused.spare[i] ? b.seconds[i] : 0;
    assert_true(spared > 0 && f.sequential == spared && f.parallel <= spared);
    for (int i = 0; i < f.n; i++) {
        modelled += f.row[i].modelled;
        missing += f.row[i].missing;
        refused += f.row[i].refused;
        failed += f.row[i].failed;
        assert_true((f.row[i].why != NULL) == (f.row[i].tried > 0) && f.row[i].tried == f.row[i].failed);
    }
    assert_int_equal(modelled + missing + refused + failed, b.fused.n_places - b.fused.spares);
    assert_int_equal(failed, failing);
    tear_down(&w);
}

/* What a profile's calls did as one is fused already. */
static void test_fused_already(void **state)
{
    world w;
    bz_fusion f;
    (void)state;
    set_up(&w, 4712);
    fill(&w, 0, 1e-3, true, 0);
    bz_bound b = bound(&w, 0);
    const bz_bound_place *place = &b.fused.place[0];
    int *layers = BZ_NEW(&w.arena, int, place->n), n = 0;
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < place->n; k++)
            if (b.layer[i].node == place->layer[k])
                layers[n++] = i;
    bz_aligned rows[2] = {{.kind = BZ_ALIGNED_SAME, .layer = layers, .n_layers = n},
                          {.kind = BZ_ALIGNED_FUSED, .layer = layers, .n_layers = n}};
    bz_alignment alone = {.row = rows, .n = 1}, fused = {.row = rows, .n = 2};
    bz_ladder ladders[3] = {{0}, {.alignment = &alone}, {.alignment = &fused}};
    for (int k = 1; k <= 3; k++) {
        int expected = k == 1 ? -1 : k - 2, found = -2;
        bz_fusion_make(&b, ladders, k, &w.arena, &f);
        for (int i = 0; i < f.n; i++)
            if (!strcmp(f.row[i].pattern, place->pattern))
                found = f.row[i].fused;
        assert_int_equal(found, expected);
    }
    tear_down(&w);
}

static void check_way(const bz_bound *b, const bz_bound *other, const bz_unit_way *way, bool layout)
{
    if (bz_bound_written(other).macs < 0.99) { /* what has records says little of the whole */
        assert_true(isnan(way->gain) && isnan(way->sequential) && isnan(way->parallel));
        assert_true(isnan(way->fused) && isnan(way->fused_parallel));
        return;
    }
    assert_true(way->gain == b->fused.sequential - way->fused);
    assert_true(way->parallel <= way->sequential && way->conversions <= way->sequential);
    assert_true(way->fused_parallel <= way->fused && way->fused <= way->sequential);
    assert_true(layout || way->sequential <= b->sequential);
    assert_true(way->modelled + way->open <= way->converted);
}

static void test_ways(void **state)
{
    int lacking = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        world w;
        bz_error err = {0};
        bz_units u;
        set_up(&w, seed * 7919);
        fill(&w, 0, 1e-3, seed % 3 == 0, 0);
        fill(&w, 1, seed % 2 ? 5e-4 : 9e-4, seed % 3 == 0, seed % 5 ? 0 : 3);
        bz_bound b = bound(&w, 0), other = bound(&w, 1);
        bz_unit_try tries[2] = {{"bf16", &other, NULL, BZ_BF16, false}, {"bf16 nhwc", &other, "nhwc", BZ_BF16, false}};
        assert_int_equal(bz_units_make(&b, tries, 2, w.db, w.system, &w.arena, &u, &err), 0);
        assert_int_equal(u.n_ways, 2);
        assert_true(!(u.way[0].gain < u.way[1].gain));
        for (int i = 0; i < 2; i++)
            check_way(&b, &other, &u.way[i], u.way[i].layout);
        lacking += isnan(u.way[0].gain);
        assert_string_equal(u.unit, "AVX512-BF16");
        int products = 0;
        for (int i = 0; i < u.n; i++) {
            products += b.layer[u.row[i].layer].layer->macs > 0;
            assert_true(u.row[i].could && !u.row[i].used && !strncmp(u.row[i].why, "computes in f32", 15));
            assert_true(u.row[i].best <= u.row[i].seconds &&
                        (u.row[i].best_way != NULL) == (u.row[i].best < u.row[i].seconds));
        }
        assert_true(products == u.n && u.could == u.n && u.n > 0);
        tear_down(&w);
    }
    assert_int_equal(lacking, 2); /* of ten, where every third problem has no record */
}

/* Where all layers gain the same, conversions are wanted at the model's inputs and outputs only; where they cost
 * more than is gained, nothing goes that way. */
static void test_conversions(void **state)
{
    world w;
    bz_error err = {0};
    bz_units u;
    (void)state;
    set_up(&w, 1);
    fill(&w, 0, 1e-3, false, 0);
    fill(&w, 1, 1e-5, false, 0);
    bz_bound b = bound(&w, 0), other = bound(&w, 1);
    bz_unit_try way = {"bf16", &other, NULL, BZ_BF16, false};
    assert_int_equal(bz_units_make(&b, &way, 1, w.db, w.system, &w.arena, &u, &err), 0);
    assert_true(u.way[0].gain > 0 && u.way[0].converted > 0 && u.way[0].converted == u.way[0].modelled);
    double before = u.way[0].sequential;
    bz_error none = {0};
    bz_problem p;
    bz_buf text = {0};
    bz_problem_parse("reorder x=1x3x32x32 dtype=f32:f32:bf16", &p, &none);
    bz_problem_print(&p, &text);
    put(&w, bz_buf_text(&text), "plain", 1e-7); /* a record of one of them is taken in the place of the model */
    bz_buf_free(&text);
    int modelled = u.way[0].modelled;
    assert_int_equal(bz_units_make(&b, &way, 1, w.db, w.system, &w.arena, &u, &err), 0);
    assert_int_equal(u.way[0].modelled, modelled - 1);
    assert_true(u.way[0].sequential < before);
    w.peaks.bandwidth[0].rate = 1; /* a byte a second */
    assert_int_equal(bz_units_make(&b, &way, 1, NULL, NULL, &w.arena, &u, &err), 0);
    assert_true(u.way[0].gain == 0 && u.way[0].converted == 0);
    w.peaks.why = "nobody measured them";
    assert_int_equal(bz_units_make(&b, &way, 1, NULL, NULL, &w.arena, &u, &err), 0);
    assert_true(u.way[0].open == u.way[0].converted && u.way[0].conversions == 0);
    tear_down(&w);
}

/* A layer may have no result, of which nothing is converted. */
static void test_no_results(void **state)
{
    world w;
    bz_error err = {0};
    bz_units before, after;
    (void)state;
    set_up(&w, 1);
    fill(&w, 0, 1e-3, false, 0);
    fill(&w, 1, 1e-5, false, 0);
    bz_bound b = bound(&w, 0), other = bound(&w, 1);
    bz_unit_try way = {"bf16", &other, NULL, BZ_BF16, false};
    assert_int_equal(bz_units_make(&b, &way, 1, w.db, w.system, &w.arena, &before, &err), 0);
    for (int i = 0; i < w.layers->n; i++) {
        bz_layer *l = &w.layers->layer[i];
        if (l->class != BZ_CONSTANT) {
            l->n_out = 0;
            l->out = NULL;
        }
    }
    assert_int_equal(bz_units_make(&b, &way, 1, w.db, w.system, &w.arena, &after, &err), 0);
    assert_true(before.way[0].converted > after.way[0].converted);
    tear_down(&w);
}

/* One layout is priced by its records alone, as far as data have space. */
static void test_views(void **state)
{
    world w;
    bz_error err = {0};
    bz_prices *prices[2];
    const bz_plan_problem *problem;
    const bz_prices_view views[2] = {{NULL, NULL}, {"nhwc", NULL}};
    (void)state;
    set_up(&w, 3);
    int n = bz_plan_problems(w.plan[0], &problem), both = 0;
    for (int i = 0; i < n; i++) {
        put(&w, problem[i].text, "plain", 1e-3);
        if (i % 2)
            put(&w, problem[i].text, "nhwc", 2e-3);
    }
    assert_int_equal(bz_prices_load_views(w.plan[0], w.db, w.system, &w.setting, views, 2, &w.arena, prices, &err), 0);
    for (int i = 0; i < n; i++) {
        const bz_problem_price *all = bz_prices_problem(prices[0], i), *one = bz_prices_problem(prices[1], i);
        assert_true(all->record->median == 1e-3);
        if (problem[i].problem->kind != BZ_PROBLEM_CONV)
            continue;
        assert_true(i % 2 ? one->record->median == 2e-3 : one->record == NULL);
        both++;
    }
    assert_true(both > 0);
    tear_down(&w);
}

static double ticks(uint64_t *dice, uint32_t most)
{
    return bz_tick(1e-9 * roll(dice, most));
}

typedef struct rungs {
    bz_bound b;
    bz_ladder l;
    bz_units u;
    bz_unit_way way[3];
    bz_regret r;
    bz_alignment a;
    bz_cause cause[4];
    bz_aligned missing;
} rungs;

static void throw_rungs(uint64_t *dice, rungs *g)
{
    *g = (rungs){0};
    double s = g->b.sequential = ticks(dice, 9000000) + bz_tick(1e-3);
    g->b.path.seconds = s - ticks(dice, 900000);
    g->b.fused.sequential = s - ticks(dice, 500000);
    g->b.fused.parallel = g->b.path.seconds - ticks(dice, 500000) + bz_tick(2e-4); /* may be above it */
    for (int i = 0; i < 3; i++) {
        double w = s - ticks(dice, 900000);
        bool f = roll(dice, 2);
        g->way[i] = (bz_unit_way){.sequential = w,
                                  .parallel = w - ticks(dice, 90000),
                                  .fused = f ? w - ticks(dice, 90000) : NAN,
                                  .fused_parallel = f ? w - ticks(dice, 190000) : NAN,
                                  .calibrated = i == 2};
    }
    g->way[2].sequential = g->way[2].parallel = 0; /* never taken */
    g->u = (bz_units){.way = g->way, .n_ways = 3};
    g->r = (bz_regret){.known = 1, .loss = 1e-9 * roll(dice, 100000) / 3};
    g->l.latency = s + bz_tick(g->r.loss);
    double asked = g->l.latency + ticks(dice, 1000000);
    g->l.latency = asked;
    for (int i = 0; i < 4; i++) {
        g->cause[i] = (bz_cause){.kind = i == 3 ? BZ_CAUSE_LAYERS_OUTSIDE : BZ_CAUSE_GAPS,
                                 .id = i == 3 ? "layers-outside" : "x",
                                 .busy = i % 2,
                                 .seconds = ticks(dice, 100000)};
        g->l.latency += g->cause[i].seconds;
    }
    g->missing = (bz_aligned){.kind = BZ_ALIGNED_MISSING, .bound = ticks(dice, 50000)};
    g->a =
        (bz_alignment){.timeline = true, .asked = asked, .cause = g->cause, .n_causes = 4, .row = &g->missing, .n = 1};
}

static void check_waterfall(const bz_waterfall *w)
{
    double rest = w->from;
    for (int i = 0; i < w->n; i++)
        rest -= w->step[i].seconds;
    assert_true(rest == w->to);
    assert_true(w->joint[0] == w->from && w->n <= BZ_WAYS + 4);
    for (int ways = 0; ways < 1 << BZ_WAYS; ways++)
        for (int k = 0; k < BZ_WAYS; k++)
            assert_true(!isfinite(w->joint[ways]) || !isfinite(w->joint[ways | 1 << k]) ||
                        w->joint[ways | 1 << k] <= w->joint[ways]);
}

/* Of what calls took longer than their records, weights from far are at most what they take more: here two layers of 8 kB each, hot 5 µs, 200 µs at 40 MB/s. */
static void add_weights(rungs *g, bz_layers *layers, bz_layer layer[2], bz_bound_layer of[2], const bz_peaks *peaks)
{
    static const bool CONSTANT[1] = {true};
    static const int64_t DIMS[1] = {2000};
    static bz_type weights = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1};
    static const bz_alternative PRICED;
    weights.dims = (bz_dim *)DIMS;
    for (int i = 0; i < 2; i++) {
        layer[i] = (bz_layer){.kind = "matmul", .bytes = 9000, .in = &weights, .in_constant = CONSTANT, .n_in = 1};
        of[i] = (bz_bound_layer){.layer = &layer[i], .node = i, .times = 1, .hardware = 1e-6};
        of[i].price = (bz_layer_price){.alternative = &PRICED, .seconds = 5e-6};
    }
    *layers = (bz_layers){.layer = layer, .n = 2};
    g->b.layers = layers;
    g->b.layer = of;
    g->b.n = 2;
    g->b.peaks = peaks;
}

static void test_waterfall(void **state)
{
    uint64_t dice = 99991;
    int outside = 0, expected = 0, from_far = 0, all_far = 0;
    const bz_peaks peaks = {.n_bandwidth = 1, .bandwidth = {{1000, 4e7, 4e7}}};
    (void)state;
    for (int round = 0; round < 2000; round++) {
        rungs g;
        bz_waterfall w;
        throw_rungs(&dice, &g);
        bool fused = round & 1, units = round & 2;
        g.l.regret = round & 4 ? &g.r : NULL;
        g.l.alignment = round & 8 ? &g.a : NULL;
        g.b.fused.wanted = fused;
        bz_layers layers;
        bz_layer layer[2];
        bz_bound_layer of[2];
        if (round & 16)
            add_weights(&g, &layers, layer, of, &peaks);
        double far = bz_bound_written(&g.b).far, longer = 0;
        assert_true(round & 16 ? far == 0 || fabs(far - 390e-6) < 1e-12 : far == 0);
        bz_waterfall_make(&g.b, &g.l, units ? &g.u : NULL, &w);
        check_waterfall(&w);
        int all = BZ_WAY_FRAMEWORK | BZ_WAY_ALGORITHMS | BZ_WAY_PARALLEL | (fused ? BZ_WAY_FUSION : 0) |
                  (units ? BZ_WAY_PRECISION : 0);
        assert_true(!isfinite(w.joint[all]) || w.to == w.joint[all]);
        assert_true(w.joint[BZ_WAY_FRAMEWORK | BZ_WAY_ALGORITHMS] == g.b.sequential);
        assert_true(isnan(w.joint[BZ_WAY_FUSION]) == !fused && isnan(w.joint[BZ_WAY_PRECISION]) == !units);
        assert_true(w.to > 0); /* what has to be calibrated is not taken */
        for (int i = 0; i < w.n;
             i++) /* the framework's own layers are a step of their own, above what the bound has for them */
            outside +=
                w.step[i].kind == BZ_RUNG_OUTSIDE && w.step[i].seconds == fmax(g.cause[3].seconds - g.missing.bound, 0);
        for (int i = 0; i < w.n; i++) {
            longer += w.step[i].kind == BZ_RUNG_SLOWER ? w.step[i].seconds : 0;
            if (w.step[i].kind != BZ_RUNG_FAR)
                continue;
            from_far++;
            all_far += fabs(w.step[i].seconds - far) < 1e-9;
            assert_true(g.l.alignment && w.step[i].seconds > 0 && w.step[i].seconds <= far + 1e-9);
        }
        for (int i = 0; i < w.n; i++) /* all of the excess, or all of what comes from far */
            assert_true(w.step[i].kind != BZ_RUNG_FAR || longer < 1e-9 || fabs(w.step[i].seconds - far) < 1e-9);
        expected += g.l.alignment && g.cause[3].seconds > g.missing.bound;
    }
    assert_true(outside == expected && expected > 100);
    assert_true(all_far > 20 && from_far > all_far);
}

/* Without times there is nothing to climb down from. */
static void test_no_times(void **state)
{
    bz_bound b = {.sequential = 1, .path.seconds = 1};
    bz_ladder l = {.latency = NAN};
    bz_waterfall w;
    (void)state;
    bz_waterfall_make(&b, &l, NULL, &w);
    assert_true(w.n == 0 && isnan(w.from) && isnan(w.joint[0]));
    assert_true(w.joint[BZ_WAY_FRAMEWORK | BZ_WAY_ALGORITHMS] == 1); /* the bound needs no profile */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fusion),        cmocka_unit_test(test_fusion_by_records_only),
        cmocka_unit_test(test_fused_already), cmocka_unit_test(test_ways),
        cmocka_unit_test(test_conversions),   cmocka_unit_test(test_no_results),
        cmocka_unit_test(test_views),         cmocka_unit_test(test_waterfall),
        cmocka_unit_test(test_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
