/* What a bound sums up: an If counts its cheaper branch and lists that, wherever it stands; a copy that stands for a layer takes no less
 * than the layer's arithmetic. */
#include "bound/bound.h"
#include "tests/unit/perfdb_test.h"
#include "tests/unit/writer.h"

#define SYSTEM "epyc@onednn2.6.3"

static const bz_setting HOT = {1, BZ_CACHE_HOT, ""};

typedef struct world {
    char *folder;
    bz_perfdb *db;
    bz_model *model;
    bz_layers *layers;
    bz_plan *plan;
    bz_arena arena;
    bz_peaks peaks;
    bz_bound b;
} world;

static bz_buf a_branch(bz_buf nodes, const char *result)
{
    bz_buf out = {0};
    put_text(&out, 1, result);
    put_message(&nodes, GRAPH_OUTPUT, out);
    return nodes;
}

static bz_buf plain(const char *nodes)
{
    bz_buf g = {0};
    put_plain_nodes(&g, nodes);
    return g;
}

static void put_if(bz_buf *g, const char *result, bz_buf then, bz_buf otherwise)
{
    bz_buf node = a_node("If", result, "cond", result), attr = an_attr("then_branch", 5);
    put_message(&attr, ATTR_G, then);
    put_message(&node, NODE_ATTR, attr);
    attr = an_attr("else_branch", 5);
    put_message(&attr, ATTR_G, otherwise);
    put_message(&node, NODE_ATTR, attr);
    put_message(g, GRAPH_NODE, node);
}

/* Microseconds of functions of 4x4. */
static void make(world *w, bz_buf graph, const char *const *names, const double *us, bool brief)
{
    bz_buf bytes = a_model(8, 17, graph);
    const bz_system *system;
    bz_prices *prices;
    char path[5000];
    make_folder((void **)&w->folder);
    snprintf(path, sizeof path, "%s/m.onnx", w->folder);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(bytes.data, 1, bytes.len, f) == bytes.len && !fclose(f));
    bz_buf_free(&bytes);
    assert_ok(bz_model_load(path, &w->model, &err));
    assert_ok(bz_layers_infer(w->model, &(bz_infer_options){.batch = 1}, &w->layers, &err));
    w->plan = bz_plan_new(&(bz_plan_options){0});
    bz_plan_add(w->plan, w->layers, "m");
    assert_ok(bz_perfdb_open(&w->db, w->folder, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(w->db, SYSTEM, "{}", 1, &err));
    const bz_plan_problem *problem;
    int n = bz_plan_problems(w->plan, &problem);
    for (int i = 0; i < n; i++)
        for (int k = 0; names[k]; k++) {
            bz_record r = bz_record_blank();
            if (!strstr(problem[i].text, names[k]))
                continue;
            r.system = SYSTEM;
            r.problem = problem[i].text;
            r.variant = (bz_variant){"onednn", "a", "plain", "default"};
            r.setting = HOT;
            r.median = us[k] * 1e-6;
            r.date = 1000;
            assert_ok(bz_perfdb_put(w->db, &r, 1, NULL, &err));
        }
    assert_ok(bz_perfdb_system(w->db, SYSTEM, &system, &err));
    assert_ok(bz_prices_load(w->plan, w->db, system, &HOT, &w->arena, &prices, &err));
    bz_bound_input in = {.model = "m",
                         .system = SYSTEM,
                         .facts = bz_system_facts_read("{}", &w->arena),
                         .setting = HOT,
                         .layers = w->layers,
                         .plan = w->plan,
                         .brief = brief,
                         .prices = prices,
                         .peaks = &w->peaks};
    bz_bound_make(&in, &w->arena, &w->b);
}

static void end(world *w)
{
    bz_perfdb_close(w->db);
    bz_plan_free(w->plan);
    bz_layers_free(w->layers);
    bz_model_free(w->model);
    bz_arena_free(&w->arena);
    remove_folder((void **)&w->folder);
}

static bz_buf inputs(bz_buf nodes)
{
    put_message(&nodes, GRAPH_INPUT, a_value("x", BZ_F32, "4x4"));
    put_message(&nodes, GRAPH_INPUT, a_value("cond", BZ_BOOL, ""));
    return nodes;
}

static void lists(const bz_bound *b, const char *expected)
{
    bz_buf kinds = {0};
    for (int i = 0; i < b->n; i++)
        bz_buf_printf(&kinds, "%s%s@%d", i ? " " : "", b->layer[i].layer->kind, b->layer[i].node);
    if (!kinds.data || strcmp(kinds.data, expected) != 0)
        fail_msg("'%s', not '%s'", kinds.data ? kinds.data : "", expected);
    bz_buf_free(&kinds);
}

static const char *const NAMES[] = {"fn=relu", "fn=sigmoid", "fn=tanh", "fn=sqrt", NULL};
static const double US[] = {9, 1, 2, 4};

/* The cheaper one of each, behind a layer and before one, and one in another's dearer and cheaper branch. */
static void test_branches(void **state)
{
    (void)state;
    world w = {.peaks = {.why = "none"}};
    bz_buf g = plain("Sqrt x a"), inner = {0};
    put_if(&g, "b", a_branch(plain("Relu a t"), "t"), a_branch(plain("Sigmoid a s; Tanh s e"), "e"));
    put_plain_nodes(&g, "Sqrt b c");
    put_if(&inner, "d", a_branch(plain("Tanh c p"), "p"), a_branch(plain("Sigmoid c q"), "q"));
    put_if(&g, "y", a_branch(inner, "d"), a_branch(plain("Relu c u"), "u"));
    make(&w, inputs(g), NAMES, US, false);
    lists(&w.b, "sqrt@0 sigmoid@1 tanh@1 sqrt@2 sigmoid@3");
    assert_true(fabs(w.b.sequential - (4 + 1 + 2 + 4 + 1) * 1e-6) < 1e-12);
    assert_int_equal(w.b.coverage.branches, 3);
    assert_int_equal(w.b.coverage.measured, w.b.coverage.layers);
    end(&w);
}

/* Where only the first of equal layers is listed, that of a branch that was given up stands for nothing. */
static void test_brief(void **state)
{
    (void)state;
    world w = {.peaks = {.why = "none"}};
    bz_buf g = {0};
    put_if(&g, "b", a_branch(plain("Relu x s; Sigmoid s t"), "t"), a_branch(plain("Tanh x e"), "e"));
    put_plain_nodes(&g, "Sigmoid b c; Tanh c d; Sigmoid d y");
    make(&w, inputs(g), NAMES, US, true);
    lists(&w.b, "tanh@0 sigmoid@1");
    assert_true(fabs(w.b.sequential - (2 + 1 + 2 + 1) * 1e-6) < 1e-12);
    end(&w);
}

/* The price of four inverse hyperbolic sines by a copy of 1 us, where the peak makes so many operations per second. */
static double price_of_copy(double peak)
{
    static const char *const names[] = {"copy ", "fn=relu", NULL};
    static const double us[] = {1, 1};
    world w = {
        .peaks = {
            .n_flops = 1, .flops = {{BZ_F32, peak}}, .n_bandwidth = 1, .bandwidth = {{.bytes = 0, .rate = 1e15}}}};
    make(&w, inputs(plain("Asinh x a; Relu a y")), names, us, false);
    const bz_bound_layer *copied = &w.b.layer[0], *measured = &w.b.layer[1];
    double seconds = copied->price.seconds;
    assert_int_equal(w.b.coverage.modelled, 1);
    assert_true(copied->price.low <= seconds && seconds <= copied->price.high);
    assert_true(fabs(measured->price.seconds - 1e-6) <
                1e-12); /* a record that contradicts the peaks stays and is told */
    assert_true(fabs(w.b.sequential - seconds - 1e-6) < 1e-12);
    assert_true(fabs(fmax(1e-6, (double)copied->layer->flops / peak) - seconds) < 1e-12);
    end(&w);
    return seconds;
}

static void test_copy_and_arithmetic(void **state)
{
    (void)state;
    assert_true(fabs(price_of_copy(1e12) - 1e-6) < 1e-12);
    assert_true(fabs(price_of_copy(1e6) - 4e-6) < 1e-12);
}

/* A sum of four tensors is three additions, each with the same record. */
static void test_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"fn=add", NULL};
    static const double us[] = {2};
    world w = {.peaks = {.why = "none"}};
    bz_buf g = {0}, node = a_node("Sum", "four", "x x x x", "y");
    put_message(&g, GRAPH_NODE, node);
    make(&w, inputs(g), names, us, false);
    assert_string_equal(w.b.layer[0].variant, "3 × onednn a");
    assert_true(fabs(w.b.sequential - 3 * 2e-6) < 1e-12);
    end(&w);
}

/* Every layer counts once, in the phase that its node is in; one without a price leaves its phase without a sum. */
static void test_phases(void **state)
{
    (void)state;
    const bz_train_phase phase[] = {BZ_TRAIN_FORWARD, BZ_TRAIN_LOSS, BZ_TRAIN_LOSS, BZ_TRAIN_BACKWARD};
    bz_layers layers = {.n = 4, .phase = phase};
    bz_bound_layer list[] = {{.node = 0, .times = 3, .price.seconds = 1, .hardware = 0.5},
                             {.node = 1, .times = 1, .price.seconds = 4, .hardware = 2},
                             {.node = 2, .times = 2, .price.seconds = 8, .hardware = 4},
                             {.node = 3, .times = 1, .price.seconds = NAN, .hardware = 1}};
    bz_bound b = {.layers = &layers, .layer = list, .n = 4};
    bz_bound_phase out[BZ_TRAIN_PHASES];
    assert_int_equal(bz_bound_phases(&b, out), BZ_TRAIN_PHASES);
    assert_true(out[0].layers == 1 && out[1].layers == 2 && out[2].layers == 1);
    assert_true(out[0].sequential == 3 && out[1].sequential == 20 && isnan(out[2].sequential));
    assert_true(out[0].hardware == 1.5 && out[1].hardware == 10 && out[2].hardware == 1);
    layers.phase = NULL;
    assert_int_equal(bz_bound_phases(&b, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_branches), cmocka_unit_test(test_brief),
                                       cmocka_unit_test(test_copy_and_arithmetic), cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_phases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
