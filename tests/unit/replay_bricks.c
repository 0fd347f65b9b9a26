/* Sequences of layers as replays: what stands between convolutions in its model runs in the layout that these leave. */
#include "replay/replay.h"
#include "tests/unit/perfdb_test.h"
#include "tests/unit/programs.h"
#include "tests/unit/writer.h"

static bz_replay_plan *plan_of(const bz_plan *plan, bz_layers *layers, bool within)
{
    bz_replay_plan *replay = NULL;
    bz_replay_input in = {
        .model = "m", .layers = layers, .plan = plan, .setting = {1, BZ_CACHE_HOT, ""}, .within = within};
    if (bz_replay_make(&in, &replay, &err))
        fail_msg("%s", err.text);
    return replay;
}

static bz_plan *planned(bz_layers *layers)
{
    const char *name = "m";
    return bz_plan_of(&(bz_plan_options){0}, &layers, &name, 1);
}

/* The layout of a sequence's last call; as in its whole model where that is given. */
static const char *layout_of(const bz_bricks *b, int brick, bool within, const bz_replay_plan *whole)
{
    static char layout[16];
    bz_buf file = {0};
    bz_model *model = NULL;
    bz_layers *layers = NULL;
    assert_int_equal(bz_bricks_save(b, brick, &file, &err), 0);
    assert_int_equal(bz_model_parse(file.data, file.len, "sequence", &model, &err), 0);
    assert_int_equal(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err), 0);
    bz_plan *plan = planned(layers);
    bz_replay_plan *replay = plan_of(plan, layers, within);
    if (whole)
        bz_replay_follow_whole(replay, whole, &b->brick[brick]);
    *layout = 0;
    for (int i = 0; i < replay->n_steps; i++)
        if (replay->step[i].kind == BZ_STEP_CALL)
            snprintf(layout, sizeof layout, "%s", replay->step[i].layout);
    bz_replay_free(replay);
    bz_plan_free(plan);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_buf_free(&file);
    return layout;
}

static void test_layouts(void **state)
{
    (void)state;
    static const char PATH[] = BENANZA_SOURCE "/models/mobilenet_v2.onnx";
    const char *path = PATH;
    bz_models models = {0};
    bz_bricks b = {.most = 1};
    int seen[3] = {0};
    assert_int_equal(bz_models_load(&path, 1, &(bz_infer_options){0}, &models, &err), 0);
    bz_bricks_add(&b, models.layers[0], "mobilenet_v2");
    for (int i = 0; i < b.n; i++) {
        const bz_layer *l = &b.brick[i].layers->layer[b.brick[i].layer[0]];
        int which = !strcmp(l->kind, "batchnorm") ? 0
                    : !strcmp(l->kind, "conv")    ? 1
                    : !strcmp(l->kind, "gemm")    ? 2
                                                  : -1;
        if (which < 0 || seen[which]++)
            continue;
        assert_string_equal(layout_of(&b, i, true, NULL), which == 2 ? "packed" : which ? "nhwc" : "any");
        if (!which) /* with rows before and behind it converting there and back does not pay */
            assert_string_equal(layout_of(&b, i, false, NULL), "plain");
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    bz_bricks_free(&b);
    bz_models_free(&models);
}

/* What stands alone may lie in any way, which is rows; in its model it takes the layout that convolutions leave. */
static void test_as_in_the_model(void **state)
{
    (void)state;
    static const char PATH[] = BENANZA_SOURCE "/models/squeezenet1_1.onnx";
    const char *path = PATH;
    bz_models models = {0};
    assert_int_equal(bz_models_load(&path, 1, &(bz_infer_options){0}, &models, &err), 0);
    bz_plan *plan = planned(models.layers[0]);
    bz_replay_plan *whole = plan_of(plan, models.layers[0], false);
    for (int most = 1; most <= 3; most++) {
        bz_bricks b = {.most = most};
        int seen = 0;
        bz_bricks_add(&b, models.layers[0], "squeezenet1_1");
        for (int i = 0; i < b.n; i++) {
            const bz_brick *k = &b.brick[i];
            int last = k->layer[k->n - 1];
            for (int u = 0; u < whole->n_units; u++)
                if (whole->unit[u].layer[0] == last && whole->unit[u].n_steps) {
                    int step = whole->unit[u].first + whole->unit[u].n_steps - 1;
                    if (whole->step[step].kind == BZ_STEP_CALL)
                        assert_string_equal(layout_of(&b, i, true, whole), whole->step[step].layout);
                }
            if (!strcmp(k->layers->layer[k->layer[0]].kind, "concat") && most == 1 && !seen++) {
                assert_string_equal(layout_of(&b, i, true, NULL), "any");
                assert_string_equal(layout_of(&b, i, true, whole), "nhwc");
            }
        }
        assert_true(seen || most > 1);
        bz_bricks_free(&b);
    }
    bz_replay_free(whole);
    bz_plan_free(plan);
    bz_models_free(&models);
}

/* The same where the sequence's constants are made in other steps than the model's: a slope that its file has in another shape. */
static void test_constants_of_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *name, *dims;
    } WEIGHTS[] = {{"w", "64x64x3x3"}, {"slope", "64x1x1"}, {"v", "64x64x3x3"}};
    bz_buf g = {0};
    bz_model *model = NULL;
    bz_layers *layers = NULL;
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "1x64x56x56"));
    for (size_t i = 0; i < sizeof WEIGHTS / sizeof *WEIGHTS; i++) {
        bz_buf t = a_tensor(WEIGHTS[i].name, BZ_F32, WEIGHTS[i].dims);
        put_external(&t, "location", "nowhere.bin");
        put_int(&t, TENSOR_LOCATION, 1);
        put_message(&g, GRAPH_INIT, t);
    }
    put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, "1x64x52x52"));
    put_plain_nodes(&g, "Conv x,w c; PRelu c,slope p; Conv p,v y");
    bz_buf bytes = a_model(8, 17, g);
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "m", &model, &err), 0);
    assert_int_equal(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err), 0);
    bz_plan *plan = planned(layers);
    bz_replay_plan *whole = plan_of(plan, layers, false);
    bz_bricks b = {.most = 1};
    int seen = 0;
    bz_bricks_add(&b, layers, "m");
    for (int i = 0; i < b.n; i++)
        if (!strcmp(layers->layer[b.brick[i].layer[0]].kind, "prelu") && !seen++)
            assert_string_equal(layout_of(&b, i, true, whole), "nhwc");
    assert_int_equal(seen, 1);
    bz_bricks_free(&b);
    bz_replay_free(whole);
    bz_plan_free(plan);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_buf_free(&bytes);
}

enum { IN_TURN = 16, SYSTEM_BRICKS = 200 };

/* In place of what is built: a program that notes which replays it was to run, and says that replay n took n + 1 ms, of which 0.2 brought outputs
 * back, and 0.7 by itself. */
static void make_programs(void **state)
{
    look_here_first(state, "bin");
    write_file(state, "program",
               bz_arena_printf(
                   &texts,
                   "#!/bin/sh\necho $1 >>%s\nfor n in $(seq ${1%%-*} ${1#*-}); do s=$((n + 1))e-3; echo "
                   "'{\"record\":\"replay\",\"latency\":{\"median\":'$s',\"low\":'$s',\"high\":'$s',\"min\":'$s',"
                   "\"samples\":3,\"runs\":2},\"actions\":[{\"kind\":\"call\",\"step\":-1,\"median\":1,\"hot\":7e-4},"
                   "{\"kind\":\"convert\",\"step\":-1,\"median\":2e-4,\"hot\":9}],\"passes\":[]}'; done\n",
                   below(state, "asked")),
               true);
    write_file(state, "bin/cmake",
               bz_arena_printf(&texts, "#!/bin/sh\n[ \"$1\" = --build ] && exec cp %s \"$2/replay\"\nmkdir -p \"$4\"\n",
                               below(state, "program")),
               true);
}

/* The records of a database but for some that are left out. */
typedef struct {
    bz_perfdb *to;
    const char *const *left_out;
    int n;
} copying;

static int copy_record(void *user, const bz_record *r)
{
    const copying *c = user;
    for (int i = 0; i < c->n; i++)
        if (!strcmp(r->problem, c->left_out[i]))
            return 0;
    assert_ok(bz_perfdb_put(c->to, r, 1, NULL, &err));
    return 0;
}

static const bz_system *with_system(bz_perfdb *db)
{
    const bz_system *system;
    assert_ok(bz_perfdb_put_system(db, "epyc@onednn2.6.3", "{}", 1, &err));
    assert_ok(bz_perfdb_system(db, "epyc@onednn2.6.3", &system, &err));
    return system;
}

/* What lacks is run in one turn, in the model's order, with others of the model up to 16 in all, and with the model where that lacks. Only what
 * lacked has new times. */
static void test_turns(void **state)
{
    static const char PATH[] = BENANZA_SOURCE "/models/squeezenet1_1.onnx";
    const char *path = PATH;
    bz_models models = {0};
    bz_bricks b = {.most = 1};
    bz_arena arena = {0};
    make_programs(state);
    assert_ok(bz_models_load(&path, 1, &(bz_infer_options){0}, &models, &err));
    bz_bricks_add(&b, models.layers[0], "squeezenet1_1");
    assert_in_range(b.n, IN_TURN + 2, SYSTEM_BRICKS);
    const char **why = BZ_NEW(&arena, const char *, b.n), **left_out = BZ_NEW(&arena, const char *, b.n + 1);
    bz_perfdb *all = open_new(state, "all");
    const int LACKING[] = {b.n, 1, 3, IN_TURN - 1, IN_TURN, IN_TURN + 1};
    for (size_t i = 0; i < sizeof LACKING / sizeof *LACKING; i++) {
        int lacking = LACKING[i], first = (int)i % 3; /* those from here on */
        bool whole = i % 2 == 0;
        bz_perfdb *db = i ? open_new(state, bz_arena_printf(&arena, "db%zu", i)) : all;
        bz_brick_replays r = {.db = db, .system = with_system(db), .setting = {1, BZ_CACHE_HOT, ""}};
        for (int k = 0; k < lacking; k++)
            left_out[k] = bz_brick_problem(b.brick[(first + k) % b.n].key, &arena);
        left_out[lacking] = bz_brick_problem(b.model[0].key, &arena);
        if (i)
            assert_ok(bz_perfdb_scan(all, &(bz_perfdb_filter){0}, copy_record,
                                     &(copying){db, left_out, lacking + whole}, &err));
        unlink(below(state, "asked"));
        assert_ok(bz_bricks_replay(&r, &b, models.layers, why, &arena, &err));
        assert_true(r.measured == lacking + whole && r.failed == 0);
        int pieces = (lacking < IN_TURN ? IN_TURN : lacking) + whole, at = 0;
        assert_string_equal(read_file(state, "asked"), bz_arena_printf(&arena, "0-%d\n", pieces - 1));
        for (int k = 0; k < b.model[0].n; k++) {
            int brick = b.model[0].brick[k], from = (brick + b.n - first) % b.n;
            bool again = false;
            for (int before = 0; before < k; before++)
                again |= b.model[0].brick[before] == brick;
            if (from < lacking && !again)
                assert_true(fabs(b.brick[brick].seconds - (1e-3 * ++at - 2e-4)) < 1e-9 &&
                            fabs(r.hot[brick] - 7e-4) < 1e-9);
            assert_null(why[brick]);
        }
        assert_int_equal(at, lacking);
        if (whole)
            assert_true(fabs(b.model[0].measured - 1e-3 * pieces) < 1e-9);
        if (i)
            bz_perfdb_close(db);
    }
    bz_perfdb_close(all);
    bz_bricks_free(&b);
    bz_models_free(&models);
    bz_arena_free(&arena);
    bz_arena_free(&texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts), cmocka_unit_test(test_as_in_the_model),
                                       cmocka_unit_test(test_constants_of_its_own),
                                       cmocka_unit_test_setup_teardown(test_turns, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
