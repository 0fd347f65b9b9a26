/* Sequences of layers as replays: what stands between convolutions in its model runs in the layout that these leave. */
#include "replay/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bz_error err;

/* The layout of a sequence's one call. */
static const char *layout_of(const bz_bricks *b, int brick, bool within)
{
    static char layout[16];
    bz_buf file = {0};
    bz_model *model = NULL;
    bz_layers *layers = NULL;
    bz_replay_plan *replay = NULL;
    bz_plan_options options = {0};
    const char *name = "sequence";
    assert_int_equal(bz_bricks_save(b, brick, &file, &err), 0);
    assert_int_equal(bz_model_parse(file.data, file.len, "sequence", &model, &err), 0);
    assert_int_equal(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err), 0);
    bz_plan *plan = bz_plan_of(&options, &layers, &name, 1);
    bz_replay_input in = {
        .model = name, .layers = layers, .plan = plan, .setting = {1, BZ_CACHE_HOT, ""}, .within = within};
    if (bz_replay_make(&in, &replay, &err))
        fail_msg("%s", err.text);
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
        assert_string_equal(layout_of(&b, i, true), which == 2 ? "packed" : which ? "nhwc" : "any");
        if (!which) /* with rows before and behind it converting there and back does not pay */
            assert_string_equal(layout_of(&b, i, false), "plain");
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    bz_bricks_free(&b);
    bz_models_free(&models);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
