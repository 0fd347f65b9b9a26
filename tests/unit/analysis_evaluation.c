/* Many analyses side by side: every number against one worked out by hand. */
#include "analysis/analysis.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 4 };
static const bz_alternative ALTERNATIVE = {.n = 0};

typedef struct made {
    bz_model model;
    bz_layer layer[LAYERS];
    bz_layers layers;
    bz_bound_layer row[LAYERS];
    bz_ladder ladder;
    bz_regret regret;
} made;

/* Four layers, the last two equal and the last one unpriced where `whole` is false; times in ms. */
static bz_analysis analysis(made *m, const char *model, const char *system, int64_t batch, double sequential,
                            bool whole)
{
    static const char *const KEYS[LAYERS] = {"a", "b", "c", "c"}, *const VARIANTS[LAYERS] = {"onednn x", "cblas_sgemm",
                                                                                             "onednn y", "memory copy"};
    *m = (made){.layers = {.model = &m->model, .layer = m->layer, .n = LAYERS, .batch = batch}};
    for (int i = 0; i < LAYERS; i++) {
        m->layer[i] = (bz_layer){.key = KEYS[i], .hash = bz_hash_bytes(KEYS[i], 1), .kind = "conv", .macs = 100};
        m->row[i] = (bz_bound_layer){
            .layer = &m->layer[i],
            .times = 1,
            .variant = VARIANTS[i],
            .price = {.seconds = sequential * 1e-3 / LAYERS, .alternative = whole || i < 3 ? &ALTERNATIVE : NULL}};
    }
    bz_analysis a = {.bound = {.model = model,
                               .system = system,
                               .layers = &m->layers,
                               .layer = m->row,
                               .n = LAYERS,
                               .sequential = sequential * 1e-3,
                               .hardware = NAN,
                               .path = {.seconds = sequential * 0.5e-3},
                               .coverage = {.layers = LAYERS, .unpriced = !whole, .macs = 400}}};
    return a;
}

static void hold_against(bz_analysis *a, made *m, double latency, double loss)
{
    m->regret = (bz_regret){.known = 1, .loss = loss * 1e-3};
    m->ladder = (bz_ladder){.profile = "p", .latency = latency * 1e-3, .regret = &m->regret};
    a->ladder = &m->ladder;
    a->n_ladders = 1;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9 * fabs(b);
}

static void means_are_geometric(void **state)
{
    made m[4];
    bz_arena arena = {0};
    bz_evaluation e;
    (void)state;
    bz_analysis a[] = {
        analysis(&m[0], "d/resnet50.onnx", "s", 1, 4, true), analysis(&m[1], "unheard_of.onnx", "s", 1, 9, true),
        analysis(&m[2], "d/resnet50.onnx", "s", 4, 8, true), analysis(&m[3], "unheard_of.onnx", "s", 4, 9, false)};
    hold_against(&a[0], &m[0], 8, 4);
    hold_against(&a[1], &m[1], 72, 0);
    bz_evaluation_make(a, 4, &arena, &e);
    assert_int_equal(e.n_models, 2);
    assert_string_equal(e.model[0].task, "image classification");
    assert_null(e.model[1].task);
    assert_int_equal(e.model[0].layers, 4);
    assert_int_equal(e.model[0].unique, 3);
    assert_int_equal(e.layers, 8);
    assert_int_equal(e.unique, 3);
    assert_true(near(e.row[0].ratio[BZ_RATIO_MEASURED], 2));
    assert_true(near(e.row[1].ratio[BZ_RATIO_MEASURED], 8));
    assert_true(near(e.mean[BZ_RATIO_MEASURED], 4));
    assert_int_equal(e.known[BZ_RATIO_MEASURED], 2);
    assert_true(near(e.mean[BZ_RATIO_ALGORITHMS], sqrt(2.0)));
    assert_int_equal(e.known[BZ_RATIO_FUSION], 0);
    assert_true(isnan(e.mean[BZ_RATIO_FUSION]));
    /* a lower end makes no ratio */
    assert_true(isnan(e.row[3].ratio[BZ_RATIO_PARALLEL]));
    assert_int_equal(e.known[BZ_RATIO_PARALLEL], 3);
    assert_int_equal(e.n_groups, 2);
    assert_int_equal(e.group[0].models, 2);
    assert_true(near(e.group[0].sequential, 6e-3));
    assert_true(near(e.group[0].by_batch, 1));
    assert_int_equal(e.group[1].models, 1);
    assert_true(near(e.group[1].by_batch, 0.5)); /* 8 ms for 4 against 4 ms for 1 */
    bz_arena_free(&arena);
}

static void systems_against_the_first(void **state)
{
    made m[2];
    bz_arena arena = {0};
    bz_evaluation e;
    (void)state;
    bz_analysis a[] = {analysis(&m[0], "m", "slow", 1, 4, true), analysis(&m[1], "m", "fast", 1, 1, true)};
    bz_evaluation_make(a, 2, &arena, &e);
    assert_true(near(e.group[0].by_system, 1));
    assert_true(near(e.group[1].by_system, 0.25));
    bz_arena_free(&arena);
}

static void libraries_by_what_is_cheapest(void **state)
{
    made m[2];
    bz_arena arena = {0};
    bz_evaluation e;
    (void)state;
    bz_analysis a[] = {analysis(&m[0], "m", "s", 1, 4, true), analysis(&m[1], "n", "s", 1, 4, false)};
    bz_evaluation_make(a, 2, &arena, &e);
    assert_int_equal(e.n_libraries, 4);
    assert_string_equal(e.library[0].name, "onednn");
    assert_int_equal(e.library[0].layers, 4);
    assert_true(near(e.library[0].seconds, 4e-3));
    assert_string_equal(e.library[1].name, "cblas");
    assert_string_equal(e.library[2].name, "memory");
    assert_int_equal(e.library[2].layers, 1);
    assert_string_equal(e.library[3].name, "unpriced");
    assert_true(e.library[3].macs == 100);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(means_are_geometric),
                                       cmocka_unit_test(systems_against_the_first),
                                       cmocka_unit_test(libraries_by_what_is_cheapest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
