/* An analysis as one call: what is wanted brings along what it needs, and no more; its tables are shown. */
#include "report/parts.h"
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/drawing.h"

typedef struct world {
    char folder[64];
    bz_models models;
    bz_perfdb *db;
    const bz_system *system;
    bz_recorded recorded;
    bz_trace *trace;
    bz_arena arena;
} world;

static const char *const MODEL = BENANZA_SOURCE "/tests/cases/analyze/branches.onnx";

static bz_request set_up(world *w)
{
    bz_error err = {0};
    *w = (world){.folder = "/tmp/benanza-test-XXXXXX", .trace = bz_trace_new()};
    assert_non_null(mkdtemp(w->folder));
    if (bz_models_load(&MODEL, 1, &(bz_infer_options){.batch = 1}, &w->models, &err) ||
        bz_perfdb_open(&w->db, w->folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_put_system(w->db, "box@onednn2", "{}", 1, &err) || bz_perfdb_system(w->db, "box", &w->system, &err) ||
        bz_profile_read(w->trace, BENANZA_SOURCE "/examples/before.bz", &err) ||
        bz_trace_finish(w->trace, &(bz_finish_options){0}, &err))
        fail_msg("%s", err.text);
    w->recorded = (bz_recorded){"before.bz", w->trace};
    return (bz_request){.model = &MODEL,
                        .layers = w->models.layers,
                        .n = 1,
                        .db = w->db,
                        .system = &w->system,
                        .n_systems = 1,
                        .setting = {1, BZ_CACHE_HOT, ""},
                        .profile = &w->recorded,
                        .n_profiles = 1};
}

static void tear_down(world *w)
{
    char path[128];
    bz_arena_free(&w->arena);
    bz_trace_free(w->trace);
    bz_perfdb_close(w->db);
    bz_models_free(&w->models);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", w->folder, i ? "lock.mdb" : "data.mdb");
        unlink(path);
    }
    rmdir(w->folder);
}

static void test_parts(void **state)
{
    (void)state;
    world w;
    bz_error err = {0};
    bz_findings found = {0};
    bz_request r = set_up(&w);
    r.parts = BZ_PART_BOUND;
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    const bz_analysis *a = &found.analysis[0];
    assert_int_equal(found.n, 1);
    assert_true(found.incomplete && a->lacking > 0 && a->bound.n > 0 && a->prices);
    assert_true(!a->units && !a->fusion && !a->ladder->profile && !a->ladder->alignment);

    r.parts = BZ_PART_ADVICE; /* needs ladder and alignment, and can do without the rest */
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    a = &found.analysis[1];
    assert_int_equal(found.n, 2);
    assert_string_equal(a->ladder->profile, "before.bz");
    assert_true(a->ladder->alignment && !a->ladder->regret && !a->ladder->waterfall && !a->units && !a->picks);
    assert_true(a->ladder->n_advices > 0);

    r.parts = BZ_PARTS;
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    a = &found.analysis[2];
    assert_true(a->units && a->picks && a->ladder->regret && a->ladder->units && a->ladder->waterfall);
    assert_null(a->ladder->timeline);
    assert_int_equal(found.n_recordings, 0); /* there was a model */
    tear_down(&w);
}

static void test_recordings(void **state)
{
    (void)state;
    world w;
    bz_error err = {0};
    bz_findings found = {0};
    bz_request r = set_up(&w);
    r.n = 0;
    r.db = NULL;
    r.parts = BZ_PARTS | BZ_PART_TIMELINE;
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    assert_int_equal(found.n_recordings, 1);
    assert_int_equal(found.n, 0);
    assert_true(found.recording->layers && !found.recording->rebuilt && found.recording->analysis->ladder->timeline);
    r.db = w.db;
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    assert_int_equal(found.n_recordings, 1);
    assert_int_equal(found.n, 1);
    assert_true(found.recording->rebuilt && found.analysis->bound.rebuilt > 0);
    tear_down(&w);
}

static void test_tables(void **state)
{
    (void)state;
    static const char COLUMNS[] = "what=what it is|s:s=time";
    world w;
    bz_error err = {0};
    bz_findings found = {0};
    bz_buf text = {0}, json = {0}, page = {0};
    bz_request r = set_up(&w);
    r.parts = BZ_PART_BOUND;
    r.n_profiles = 0;
    assert_int_equal(bz_analyze(&r, &w.arena, &found, &err), 0);
    bz_sheet *full = bz_sheet_new(&w.arena, "guesses", "What may be", COLUMNS);
    bz_sheet_cell *row = bz_sheet_row(full);
    row[0].text = "a guess";
    row[1].number = 2e-3;
    found.analysis->sheet[found.analysis->n_sheets++] = bz_sheet_new(&w.arena, "nothing", "Empty", COLUMNS);
    found.analysis->sheet[found.analysis->n_sheets++] = full;
    bz_report_text(found.analysis, &text);
    bz_report_json(&found, &json);
    bz_report_html(&found, &page);
    assert_non_null(strstr(bz_buf_text(&text), "a guess     2.00 ms"));
    assert_null(strstr(bz_buf_text(&text), "what it is  time\n\n"));
    assert_non_null(strstr(bz_buf_text(&json), "\"id\": \"guesses\""));
    assert_null(strstr(bz_buf_text(&json), "\"nothing\""));
    assert_non_null(strstr(bz_buf_text(&page), "\"what\":\"a guess\",\"s\":0.002"));
    bz_buf_free(&text);
    bz_buf_free(&json);
    bz_buf_free(&page);
    tear_down(&w);
}

/* Records above what was measured are no saving: the step has another name, and no time. */
static void test_contradictions_save_nothing(void **state)
{
    bz_waterfall steps = {.from = 1e-3,
                          .to = 9e-4,
                          .n = 2,
                          .step = {{BZ_RUNG_FUSION, "fusion", 3e-4}, {BZ_RUNG_SLOWER, "slower calls", -2e-4}}};
    bz_ladder l = {.profile = "run.bz", .goal = {.enough = true}, .waterfall = &steps};
    const bz_analysis a = {.ladder = &l, .n_ladders = 1};
    bz_buf text = {0};
    (void)state;
    report_steps_text(&a, &text);
    assert_non_null(strstr(bz_buf_text(&text), "\nfusion                       300 µs       30.0 %  700 µs\n"));
    assert_non_null(strstr(bz_buf_text(&text), "\ncontradiction: slower calls       -            -  900 µs\n"));
    bz_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contradictions_save_nothing), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_recordings), cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
