/* What the public header says, by what the rooms have. */
#include "library/benanza.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct benanza_db {
    bz_perfdb *db;
};

struct benanza_analysis {
    bz_models models;
    bz_patterns *patterns;
    bz_trace *trace;
    bz_recorded recorded;
    bz_findings found;
    bz_arena arena;
    bz_buf text, json;
};

static void tell(benanza_error *error, const bz_error *err)
{
    if (!error)
        return;
    error->status = (int)err->code;
    snprintf(error->text, sizeof error->text, "%s", err->text);
}

benanza_db *benanza_open(const char *folder, benanza_error *error)
{
    bz_error err = {0};
    benanza_db *out = bz_zeroed(1, sizeof *out);
    BZ_FREED char *where = bz_perfdb_where(folder);
    int rc = bz_perfdb_open(&out->db, where, &(bz_perfdb_options){.read_only = true}, &err);
    if (!rc)
        return out;
    tell(error, &err);
    free(out);
    return NULL;
}

void benanza_close(benanza_db *db)
{
    if (db)
        bz_perfdb_close(db->db);
    free(db);
}

/* The one that is named, or the only one that there is. */
static int find_system(bz_perfdb *db, const char *name, const bz_system **out, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_system **list;
    size_t n;
    if (name)
        return bz_perfdb_known(db, name, out, err);
    int rc = bz_perfdb_systems(db, &arena, &list, &n, err);
    if (!rc && n != 1)
        rc = bz_fail(err, BZ_USAGE, "%s: the database has %zu systems: name one", bz_perfdb_dir(db), n);
    if (!rc)
        *out = list[0];
    return rc;
}

static int read_recording(benanza_analysis *a, const char *path, bz_error *err)
{
    a->trace = bz_trace_new();
    a->recorded = (bz_recorded){bz_arena_str(&a->arena, bz_file_name(path)), a->trace};
    if (bz_profile_read(a->trace, path, err) || bz_trace_finish(a->trace, &(bz_finish_options){0}, err))
        return -1;
    bz_trace_leave_disturbed(a->trace);
    return 0;
}

static int analyze(benanza_analysis *a, bz_perfdb *db, const benanza_request *r, bz_error *err)
{
    const bz_system *system;
    const char *model = r->model ? bz_arena_str(&a->arena, r->model) : NULL;
    bz_request request = {.model = &model,
                          .db = db,
                          .system = &system,
                          .n_systems = 1,
                          .setting = {r->threads > 0 ? r->threads : 1, r->cold ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""},
                          .profile = &a->recorded,
                          .n_profiles = r->recording != NULL,
                          .parts = BZ_PARTS};
    if (!model)
        return bz_fail(err, BZ_USAGE, "the request names no model");
    if (find_system(db, r->system, &system, err) || bz_plan_dtype(r->dtype, &request.options.dtype, err) ||
        (r->recording && read_recording(a, r->recording, err)) ||
        bz_models_load(&model, 1, &(bz_infer_options){.batch = r->batch > 0 ? r->batch : 0}, &a->models, err) ||
        (r->fuse && bz_patterns_load(NULL, &a->patterns, err)))
        return -1;
    request.options.patterns = a->patterns;
    request.layers = a->models.layers;
    request.n = a->models.n;
    return bz_analyze(&request, &a->arena, &a->found, err);
}

benanza_analysis *benanza_analyze(benanza_db *db, const benanza_request *request, benanza_error *error)
{
    bz_error err = {0};
    benanza_analysis *a = bz_zeroed(1, sizeof *a);
    if (!analyze(a, db->db, request, &err))
        return a;
    tell(error, &err);
    benanza_free(a);
    return NULL;
}

void benanza_free(benanza_analysis *a)
{
    if (!a)
        return;
    bz_arena_free(&a->arena);
    bz_patterns_free(a->patterns);
    bz_trace_free(a->trace);
    bz_models_free(&a->models);
    bz_buf_free(&a->text);
    bz_buf_free(&a->json);
    free(a);
}

double benanza_number(const benanza_analysis *a, const char *name)
{
    const bz_analysis *item = a->found.analysis;
    const bz_bound *b = &item->bound;
    const bz_goal goal = bz_bound_goal(b);
    const struct {
        const char *name;
        double value;
    } NUMBERS[] = {{"sequential", b->sequential},
                   {"parallel", b->path.seconds},
                   {"fused", b->fused.wanted ? b->fused.sequential : NAN},
                   {"hardware", goal.hardware},
                   {"goal", goal.enough ? goal.sequential : NAN},
                   {"priced_macs", goal.macs},
                   {"layers", goal.layers},
                   {"unpriced", goal.unpriced},
                   {"measured", item->n_ladders ? item->ladder->latency : NAN},
                   {"speedup", item->n_ladders ? item->ladder->speedup : NAN}};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (!strcmp(NUMBERS[i].name, name))
            return NUMBERS[i].value;
    return NAN;
}

const char *benanza_text(benanza_analysis *a)
{
    if (!a->text.len)
        bz_report_text(a->found.analysis, &a->text);
    return bz_buf_text(&a->text);
}

const char *benanza_json(benanza_analysis *a)
{
    if (!a->json.len)
        bz_report_json(&a->found, &a->json);
    return bz_buf_text(&a->json);
}
