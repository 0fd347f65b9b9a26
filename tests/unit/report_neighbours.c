/* All that an analysis says of the small recordings of tests/cases, with and without the model and the records of a system, as text, JSON, CSV, and of
 * the recording as it is also a page's data and a graph; and of recordings a number beside it. report_neighbours.txt has a hash for each (seen.h). */
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NUMBERS = 14 };

static struct {
    bz_perfdb *db;
    const bz_system *system;
    bz_patterns *patterns;
} world;

static const struct {
    const char *recording, *model; /* NULL: what it did takes the place of one */
    bool records;                  /* those of a processor */
} ROWS[] = {
    {"analyze-profile/slow.log", "analyze/branches.onnx", true},
    {"analyze-profile/fast.log", NULL, true},
    {"analyze-profile/other.log", "analyze/branches.onnx", true},
    {"analyze-threads-told/two.log", NULL, true},
    {"analyze-equal-layers/steps.log", "analyze-equal-layers/blocks.onnx", true},
    {"analyze-log-alone/activations.log", "analyze-log-alone/blocks.onnx", true},
    {"analyze-log-alone/equal.log", NULL, true},
    {"analyze-written-out/once.log", "gen-fuse/fused.onnx", true},
    {"analyze-written-out-kernels/trace.json", "gen-fuse/fused.onnx", true},
    {"analyze-written-out-operators/trace.json", "gen-fuse/fused.onnx", true},
    {"analyze-spared/trace.json", "analyze-spared/spared.onnx", true},
    {"analyze-group-norm/trace.json", "analyze-group-norm/model.onnx", true},
    {"analyze-gaps-small/long.log", NULL, true},
    {"analyze-iterations-rest/gelu.log", NULL, true},
    {"analyze-unlogged/unet.log", "analyze-unlogged/unet.onnx", true},
    {"analyze-operators/trace.json", NULL, true},
    {"analyze-rebuilt-gpu/run.log", NULL, false},
    {"analyze-optimizer-step/trace.json", NULL, false},
    {"analyze-allocates/run.json", NULL, false},
    {"analyze-alone/run.json", NULL, false},
    {"analyze-compiled/trace.json", NULL, false},
    {"analyze-cut/run.json", NULL, false},
    {"analyze-decode/trace.json", NULL, false},
    {"analyze-loads/trace.json", NULL, false},
    {"analyze-recording/run.json", NULL, false},
    {"analyze-tf32/run.json", NULL, false},
    {"analyze-wait-for-all/run.json", NULL, false},
    {"profile-ascend/trace_view.json", NULL, false},
    {"profile-devices/run.json", NULL, false},
    {"profile-rpd/run.json", NULL, false},
    {"profile-mkl/run.log", NULL, false},
    {"profile-tokens/tokens.log", NULL, false},
    {"profile-tables/run.json", NULL, false},
    {"profile-tables-memory/run.json", NULL, false},
    {"program-1", NULL, true},
    {"program-3", NULL, true},
    {"program-5", NULL, true},
    {"program-7", NULL, true},
    {"program-9", NULL, true},
    {"program-11", NULL, true},
    {"program-13", NULL, true},
    {"program-15", NULL, true},
    {"program-17", NULL, true},
    {"program-19", NULL, true},
    {"program-21", NULL, true},
    {"program-23", NULL, true},
    {"whatif/steps.json", NULL, false},
    {"whatif-one/one.json", NULL, false},
    {"whatif-operators/trace.json", NULL, false},
    {"whatif-unrecorded/slowed.json", NULL, false},
};

typedef struct row {
    bz_models models;
    bool has, records, whole; /* whole: also as a page */
} row;

/* Its data alone: scripts and pictures are of other programs' versions. */
static void say_page(const bz_findings *found, seen *s)
{
    bz_buf page = {0};
    bz_report_html(found, &page);
    const char *data = strstr(bz_buf_text(&page), "id=\"data\">");
    assert_non_null(data);
    bz_buf_put(&s->text, data, (size_t)(strstr(data, "</script>") - data));
    bz_buf_free(&page);
}

static void say_findings(const bz_findings *found, const row *r, seen *s)
{
    for (int form = BZ_FORM_TEXT; form <= BZ_FORM_CSV; form++)
        bz_report_findings(found, false, (bz_form)form, &s->text);
    for (int i = 0; i < found->n && r->whole && r->has; i++)
        bz_report_dot(&found->analysis[i], &s->text);
    if (r->whole)
        say_page(found, s);
}

static void say(bz_trace *t, seen *s, void *user)
{
    row *r = user;
    bz_arena arena = {0};
    bz_findings found = {0};
    bz_error err;
    const bz_recorded recorded = {"run", t};
    bz_request q = {.profile = &recorded,
                    .n_profiles = 1,
                    .setting = {1, BZ_CACHE_HOT, ""},
                    .parts = BZ_PARTS | (r->whole ? BZ_PART_TIMELINE : 0)};
    if (r->has) {
        q.model = r->models.name;
        q.layers = r->models.layers;
        q.n = r->models.n;
        q.options.patterns = world.patterns;
        bz_recording_refit(t, r->models.layers[0]);
    }
    bz_trace_leave_disturbed(t);
    for (int records = r->has; records <= r->records; records++) { /* by itself, then held against records */
        q.db = records ? world.db : NULL;
        q.system = &world.system;
        q.n_systems = records;
        if (bz_analyze(&q, &arena, &found, &err))
            bz_buf_printf(&s->text, "%s\n", err.text);
    }
    say_findings(&found, r, s);
    r->whole = false; /* the first is the recording as it is */
    bz_arena_free(&arena);
}

static void say_row(const char *name, seen *s)
{
    size_t i = 0;
    row r = {.whole = true};
    bz_error err;
    while (strcmp(ROWS[i].recording, name) != 0)
        i++;
    r.records = ROWS[i].records;
    if ((r.has = ROWS[i].model != NULL)) {
        if (bz_models_load(&ROWS[i].model, 1, &(bz_infer_options){.batch = 1}, &r.models, &err))
            fail_msg("%s", err.text);
    }
    near_recordings(name, NUMBERS, 0, s, say, &r);
    if (r.has)
        bz_models_free(&r.models);
}

int main(int argc, char **argv)
{
    enum { N = sizeof ROWS / sizeof *ROWS };
    const char *names[N];
    char folder[] = "/tmp/benanza-test-XXXXXX", path[64];
    bz_error err;
    bz_perfdb_import_report imported = {0};
    for (int i = 0; i < N; i++)
        names[i] = ROWS[i].recording;
    if (chdir(BENANZA_SOURCE "/tests/cases") || !mkdtemp(folder) ||
        bz_perfdb_open(&world.db, folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_import(world.db, BENANZA_SOURCE "/tests/cases/analyze/records.jsonl", NULL, &imported, &err) ||
        bz_perfdb_system(world.db, "testbox@onednn2.6.3", &world.system, &err) ||
        bz_patterns_parse(bz_patterns_text, "patterns", &world.patterns, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int wrong = seen_main(argc, argv, names, N, say_row, BENANZA_SOURCE "/tests/unit/report_neighbours.txt");
    bz_patterns_free(world.patterns);
    bz_perfdb_close(world.db);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "lock.mdb" : "data.mdb");
        unlink(path);
    }
    rmdir(folder);
    return wrong;
}
