/* What is wanted and why, how long it takes, and how it is cut into shards. */
#include "fleet/fleet.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const bz_setting SETTING = {1, BZ_CACHE_HOT, ""};
enum { NOW = 1000000, DAY = 86400 };

static bz_model *model;
static bz_layers *layers;
static bz_plan *plan;
static const bz_plan_problem *problem;
static int n_problems, n_families;
static char folder[64];
static bz_perfdb *db;
static bz_arena arena;

static void need(int rc, const bz_error *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static int set_up(void **state)
{
    bz_error err;
    (void)state;
    const bz_plan_options options = {
        .backend = {"onednn", "cblas"}, .n_backends = 2, .layout = {"plain"}, .n_layouts = 1};
    need(bz_model_load(BENANZA_SOURCE "/models/squeezenet1_1.onnx", &model, &err) ||
             bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err),
         &err);
    plan = bz_plan_new(&options);
    bz_plan_add(plan, layers, "squeezenet1_1.onnx");
    n_problems = bz_plan_problems(plan, &problem);
    bz_plan_wanted(plan, &n_families);
    snprintf(folder, sizeof folder, "/tmp/bz-want-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    need(bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err), &err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bz_perfdb_close(db);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    bz_plan_free(plan);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_arena_free(&arena);
    return 0;
}

static bz_record record_of(const char *system, int p, int f, int64_t date)
{
    const bz_plan_family *family = &problem[p].family[f];
    const double t = 1e-5 * (1 + p % 17);
    return (bz_record){.system = system,
                       .problem = problem[p].text,
                       .variant = {family->backend, "a", family->layout, family->math},
                       .setting = SETTING,
                       .status = BZ_RECORD_OK,
                       .reason = "",
                       .checked = "ok",
                       .meta = "",
                       .median = t,
                       .low = t * 0.99,
                       .high = t * 1.01,
                       .n = 20,
                       .iterations = 3000,
                       .variants = 1,
                       .date = date};
}

static void put(bz_record r)
{
    bz_error err;
    need(bz_perfdb_put(db, &r, 1, NULL, &err), &err);
}

static void put_all(const char *system, int64_t date)
{
    for (int p = 0; p < n_problems; p++)
        for (int f = 0; f < problem[p].n_families; f++)
            put(record_of(system, p, f, date));
}

static bz_want want_of(const char *name, const char *slug, bz_want_options o)
{
    const bz_system *system = NULL;
    bz_want want = {0};
    bz_error err;
    o.setting = SETTING;
    o.now = NOW;
    need(bz_perfdb_system(db, name, &system, &err) || bz_want_make(plan, db, system, slug, &o, &arena, &want, &err),
         &err);
    return want;
}

static void reasons(void **state)
{
    (void)state;
    bz_want w = want_of("box@lib1", "box", (bz_want_options){0});
    assert_int_equal(w.count[BZ_WANT_NEW], n_families);
    assert_int_equal(w.guessed, n_families);
    assert_true(w.total > 0);

    put_all("box@lib1", NOW - 10 * DAY);
    w = want_of("box@lib1", "box", (bz_want_options){0});
    assert_int_equal(w.count[BZ_WANT_NOT], n_families);
    assert_int_equal(w.problems, 0);

    w = want_of("box@lib2", "box", (bz_want_options){0}); /* nobody has seen it: the same slug tells how long */
    assert_int_equal(w.count[BZ_WANT_STACK], n_families);
    assert_int_equal(w.guessed, 0);
    double measured = w.total;
    w = want_of("other@lib1", "other", (bz_want_options){.pace = 2}); /* another slug, too */
    assert_int_equal(w.count[BZ_WANT_NEW], n_families);
    assert_int_equal(w.guessed, 0);
    assert_true(w.total > 1.99 * measured && w.total < 2.01 * measured);

    w = want_of("box@lib1", "box", (bz_want_options){.max_age = 5 * DAY});
    assert_int_equal(w.count[BZ_WANT_OLD], n_families);
    put(record_of("box@lib1", 0, 0, NOW - DAY));
    w = want_of("box@lib1", "box", (bz_want_options){.max_age = 5 * DAY});
    assert_int_equal(w.count[BZ_WANT_OLD], n_families - 1);
}

/* As often as allowed, and then no more. */
static void doubts(void **state)
{
    (void)state;
    const bz_want_options twice = {.retries = 2}, never = {0};
    bz_record r = record_of("box@lib1", 1, 0, NOW - 100);
    r.noisy = true;
    put(r);
    assert_int_equal(want_of("box@lib1", "box", never).count[BZ_WANT_NOT], n_families);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(want_of("box@lib1", "box", twice).count[BZ_WANT_NOISY], 1);
        r.date += 1;
        put(r);
    }
    assert_int_equal(want_of("box@lib1", "box", twice).count[BZ_WANT_NOISY], 0);

    r = record_of("box@lib1", 2, 0, NOW - 50);
    r.status = BZ_RECORD_FAILED;
    r.reason = "out of memory for 3 GB of operands";
    put(r);
    assert_int_equal(want_of("box@lib1", "box", twice).count[BZ_WANT_PASSING], 1);
    r.date += 1;
    r.reason = "the result is wrong";
    put(r);
    assert_int_equal(want_of("box@lib1", "box", twice).count[BZ_WANT_PASSING], 0);

    r = record_of("box@lib1", 3, 0, NOW - 40);
    r.variants = 2;
    put(r);
    assert_int_equal(want_of("box@lib1", "box", twice).count[BZ_WANT_PART], 1);
}

static void shards(void **state)
{
    (void)state;
    bz_want w = want_of("box@lib2", "box", (bz_want_options){0});
    bz_shards s;
    double least = 1e9, most = 0;
    int problems = 0, families = 0;
    bz_shards_make(plan, &w, 0.01, 5, &arena, &s);
    assert_int_equal(s.n, 5);
    for (int i = 0; i < s.n; i++) {
        problems += s.shard[i].problems;
        families += s.shard[i].families;
        least = s.shard[i].seconds < least ? s.shard[i].seconds : least;
        most = s.shard[i].seconds > most ? s.shard[i].seconds : most;
    }
    assert_int_equal(problems, n_problems);
    assert_int_equal(families, n_families);
    assert_true(most / least < 1.1);
    for (int p = 0; p < n_problems; p++)
        assert_in_range(s.of[p], 0, 4);

    bz_shards_make(plan, &w, 1e6, 5, &arena, &s);
    assert_int_equal(s.n, 1);
    w = want_of("box@lib1", "box", (bz_want_options){0});
    bz_shards_make(plan, &w, 0.01, 5, &arena, &s);
    assert_int_equal(s.n, 1); /* what a run was killed in */
    assert_int_equal(s.shard[0].families, 1);
    memset(w.why, 0, (size_t)w.n * BZ_PLAN_FAMILIES);
    bz_shards_make(plan, &w, 0.01, 5, &arena, &s);
    assert_int_equal(s.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reasons), cmocka_unit_test(doubts), cmocka_unit_test(shards)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
