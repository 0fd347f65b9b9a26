/* All that an analysis says of the small recordings of tests/cases, with and without the model and the records of a system, as text, JSON, CSV, and of
 * the recording as it is also a page's data and a graph; and of recordings a number beside it. report_neighbours.txt has a hash for each (seen.h). */
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NUMBERS = 14 };

/* Whose records count: nobody's; those of tests/cases/analyze; those that come with the program, of what examples/ was recorded on. */
typedef enum { NOBODY, MADE, REFERENCE, SYSTEMS } whose;

static struct {
    bz_perfdb *db[SYSTEMS];
    const bz_system *system[SYSTEMS];
    bz_patterns *patterns;
} world;

static const struct {
    const char *recording, *model; /* NULL: what it did takes the place of one */
    whose records;
} ROWS[] = {
    {"../../examples/before.bz", "../../models/resnet18.onnx", REFERENCE},
    {"../../examples/after.bz", "../../models/resnet18.onnx", REFERENCE},
    {"../../examples/before.bz ", "../../models/squeezenet1_1.onnx", REFERENCE}, /* the wrong one */
    {"../../examples/after.bz ", NULL, REFERENCE},
    {"analyze-profile/slow.log", "analyze/branches.onnx", MADE},
    {"analyze-profile/fast.log", NULL, MADE},
    {"analyze-profile/other.log", "analyze/branches.onnx", MADE},
    {"analyze-threads-told/two.log", NULL, MADE},
    {"analyze-equal-layers/steps.log", "analyze-equal-layers/blocks.onnx", MADE},
    {"analyze-log-alone/activations.log", "analyze-log-alone/blocks.onnx", MADE},
    {"analyze-log-alone/equal.log", NULL, MADE},
    {"analyze-written-out/once.log", "gen-fuse/fused.onnx", MADE},
    {"analyze-written-out-kernels/trace.json", "gen-fuse/fused.onnx", MADE},
    {"analyze-written-out-operators/trace.json", "gen-fuse/fused.onnx", MADE},
    {"analyze-spared/trace.json", "analyze-spared/spared.onnx", MADE},
    {"analyze-group-norm/trace.json", "analyze-group-norm/model.onnx", MADE},
    {"analyze-gaps-small/long.log", NULL, MADE},
    {"analyze-iterations-rest/gelu.log", NULL, MADE},
    {"analyze-unlogged/unet.log", "analyze-unlogged/unet.onnx", MADE},
    {"analyze-operators/trace.json", NULL, MADE},
    {"analyze-rebuilt-gpu/run.log", NULL, NOBODY},
    {"analyze-optimizer-step/trace.json", NULL, NOBODY},
    {"analyze-allocates/run.json", NULL, NOBODY},
    {"analyze-alone/run.json", NULL, NOBODY},
    {"analyze-compiled/trace.json", NULL, NOBODY},
    {"analyze-cut/run.json", NULL, NOBODY},
    {"analyze-decode/trace.json", NULL, NOBODY},
    {"analyze-loads/trace.json", NULL, NOBODY},
    {"analyze-recording/run.json", NULL, NOBODY},
    {"analyze-tf32/run.json", NULL, NOBODY},
    {"analyze-wait-for-all/run.json", NULL, NOBODY},
    {"profile-ascend/trace_view.json", NULL, NOBODY},
    {"profile-devices/run.json", NULL, NOBODY},
    {"profile-rpd/run.json", NULL, NOBODY},
    {"profile-mkl/run.log", NULL, NOBODY},
    {"profile-tokens/tokens.log", NULL, NOBODY},
    {"profile-tables/run.json", NULL, NOBODY},
    {"profile-tables-memory/run.json", NULL, NOBODY},
    {"program-1", NULL, MADE},
    {"program-3", NULL, MADE},
    {"program-5", NULL, MADE},
    {"program-7", NULL, MADE},
    {"program-9", NULL, MADE},
    {"program-11", NULL, MADE},
    {"program-13", NULL, MADE},
    {"program-15", NULL, MADE},
    {"program-17", NULL, MADE},
    {"program-19", NULL, MADE},
    {"program-21", NULL, MADE},
    {"program-23", NULL, MADE},
    {"whatif/steps.json", NULL, NOBODY},
    {"whatif-one/one.json", NULL, NOBODY},
    {"whatif-operators/trace.json", NULL, NOBODY},
    {"whatif-unrecorded/slowed.json", NULL, NOBODY},
};

typedef struct row {
    bz_models models;
    whose records;
    bool has, whole; /* whole: also as a page */
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
        bz_recording_refit(t, r->models.layers[0]);
    }
    bz_trace_leave_disturbed(t);
    if (!r->has && bz_analyze(&q, &arena, &found, &err)) /* by itself */
        bz_buf_printf(&s->text, "%s\n", err.text);
    q.db = world.db[r->records];
    q.system = &world.system[r->records];
    q.n_systems = 1;
    for (int way = 0; q.db && way < (r->records == REFERENCE ? 4 : 1);
         way++) { /* in other types, from cold caches, unfused */
        q.options.dtype = way == 1 ? BZ_BF16 : BZ_UNDEFINED;
        q.setting.cache = way == 2 ? BZ_CACHE_COLD : BZ_CACHE_HOT;
        q.options.patterns = way < 3 ? world.patterns : NULL;
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
    char file[100];
    snprintf(file, sizeof file, "%.*s", (int)strcspn(name, " "), name); /* a blank tells rows of one recording apart */
    near_recordings(file, NUMBERS, 0, s, say, &r);
    if (r.has)
        bz_models_free(&r.models);
}

static void open_records(whose w, const char *folder, const char *file, const char *system)
{
    bz_error err;
    bz_perfdb_import_report imported = {0};
    if (bz_perfdb_open(&world.db[w], folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_import(world.db[w], file, NULL, &imported, &err) ||
        bz_perfdb_known(world.db[w], system, &world.system[w], &err))
        fail_msg("%s", err.text);
}

int main(int argc, char **argv)
{
    enum { N = sizeof ROWS / sizeof *ROWS };
    const char *names[N];
    char folder[SYSTEMS][64], path[100];
    bz_error err;
    for (int i = 0; i < N; i++)
        names[i] = ROWS[i].recording;
    for (int w = MADE; w < SYSTEMS; w++)
        if (!mkdtemp(strcpy(folder[w], "/tmp/benanza-test-XXXXXX")))
            return 1;
    if (chdir(BENANZA_SOURCE "/tests/cases") || bz_patterns_parse(bz_patterns_text, "patterns", &world.patterns, &err))
        return 1;
    open_records(MADE, folder[MADE], "analyze/records.jsonl", "testbox@onednn2.6.3");
    open_records(REFERENCE, folder[REFERENCE], "../../perfdb/reference/epyc-9xx5.jsonl.zst", "epyc-9xx5");
    int wrong = seen_main(argc, argv, names, N, say_row, BENANZA_SOURCE "/tests/unit/report_neighbours.txt");
    bz_patterns_free(world.patterns);
    for (int w = MADE; w < SYSTEMS; w++) {
        bz_perfdb_close(world.db[w]);
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/%s", folder[w], i ? "lock.mdb" : "data.mdb");
            unlink(path);
        }
        rmdir(folder[w]);
    }
    return wrong;
}
