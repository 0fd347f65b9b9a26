/* Plans for each kind of machine, and what the database lacks of them. */
#include "fleet/steps.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Paths of fleet.json are relative to its folder, and may be patterns. */
static int expand(bz_fleet_job *j, const bz_fleet_names *given, bool of_config, bz_fleet_names *out, bz_error *err)
{
    const char *slash = of_config ? strrchr(j->config, '/') : NULL;
    for (int i = 0; i < given->n; i++) {
        glob_t found = {0};
        const char *path = given->item[i];
        if (slash && path[0] != '/')
            path = bz_arena_printf(&j->arena, "%.*s/%s", (int)(slash - j->config), j->config, path);
        int rc = of_config ? glob(path, 0, NULL, &found) : GLOB_NOMATCH;
        for (size_t k = 0; !rc && k < found.gl_pathc; k++)
            bz_fleet_names_add(out, bz_arena_str(&j->arena, found.gl_pathv[k]), &j->arena);
        globfree(&found);
        if (rc && of_config)
            return bz_fail(err, BZ_BAD_INPUT, "%s: there is no model '%s'", j->config, path);
        if (!of_config)
            bz_fleet_names_add(out, path, &j->arena);
    }
    return 0;
}

static void keep_paths(bz_fleet_job *j, const bz_fleet_names *paths)
{
    j->model_paths = (bz_fleet_names){BZ_NEW(&j->arena, const char *, paths->n), 0};
    for (int i = 0; i < paths->n; i++) {
        BZ_FREED char *whole = realpath(paths->item[i], NULL);
        j->model_paths.item[j->model_paths.n++] = bz_arena_str(&j->arena, whole ? whole : paths->item[i]);
    }
}

/* Every model at every batch; the name that the plan knows it by tells the batch. */
static int load_models(bz_fleet_job *j, const bz_fleet_names *paths, bz_error *err)
{
    int n = j->fleet.n_batches ? j->fleet.n_batches : 1;
    bz_infer_options options = {.n_binds = j->fleet.dims.n};
    options.sizes_in =
        bz_arena_printf(&j->arena, "in %s --dim is \"dims\": [\"NAME=SIZE\"], and --batch is \"batches\": [SIZE]",
                        j->config ? bz_file_name(j->config) : "fleet.json");
    if (bz_binds_parse(j->fleet.dims.item, j->fleet.dims.n, &j->arena, &options.binds, err))
        return -1;
    for (int b = 0; b < n; b++) {
        int first = j->models.n;
        options.batch = j->fleet.n_batches ? (int64_t)j->fleet.batch[b] : 0;
        int rc = bz_models_load(paths->item, paths->n, &options, &j->models, err);
        for (int i = first; i < j->models.n; i++)
            for (int k = 0; k < j->models.layers[i]->n_warnings; k++)
                bz_fleet_warn(j, "%s: %s", paths->item[i - first], j->models.layers[i]->warnings[k]);
        if (rc)
            return -1;
        for (int i = 0; i < paths->n; i++)
            bz_fleet_names_add(&j->paths,
                               n == 1 ? paths->item[i]
                                      : bz_arena_printf(&j->arena, "%s batch %d", paths->item[i], (int)options.batch),
                               &j->arena);
    }
    return 0;
}

static void put_names(bz_buf *key, const bz_fleet_names *names)
{
    for (int i = 0; i < names->n; i++)
        bz_buf_printf(key, "%s ", names->item[i]);
    bz_buf_putc(key, '|');
}

static int make_plan(bz_fleet_job *j, const bz_fleet_system *s, bz_fleet_plan *out, bz_error *err)
{
    bz_plan_options o = {0};
    bz_patterns *patterns = NULL;
    if (bz_plan_dtype(s->dtype, &o.dtype, err) ||
        bz_plan_option(&o, BZ_PLAN_BACKENDS, s->backends.item, s->backends.n, err) ||
        bz_plan_option(&o, BZ_PLAN_LAYOUTS, s->layouts.item, s->layouts.n, err) ||
        bz_plan_option(&o, BZ_PLAN_MATHS, s->maths.item, s->maths.n, err) ||
        (s->fuse && bz_patterns_load(NULL, &patterns, err)))
        return -1;
    o.patterns = patterns;
    out->device = bz_plan_device(&o);
    out->plan = bz_plan_of(&o, j->models.layers, j->paths.item, j->models.n);
    bz_patterns_free(patterns);
    return 0;
}

static int plan_one(bz_fleet_job *j, int kind, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    bz_buf key = {0};
    bz_buf_printf(&key, "%s|%d|%g|%g|%s|", s->dtype ? s->dtype : "", s->fuse, s->threads, s->time_limit,
                  s->cache ? s->cache : "");
    put_names(&key, &s->backends);
    put_names(&key, &s->layouts);
    put_names(&key, &s->maths);
    int i = 0;
    while (i < j->n_plans && strcmp(j->plan[i].key, bz_buf_text(&key)) != 0)
        i++;
    j->plan_of[kind] = i;
    if (i < j->n_plans) {
        bz_buf_free(&key);
        return 0;
    }
    bz_fleet_plan *p = &j->plan[j->n_plans++];
    *p = (bz_fleet_plan){.key = key.data};
    if (make_plan(j, s, p, err))
        return bz_fail_in(err, "system %s", s->name);
    const bz_plan_problem *problem;
    p->elsewhere = bz_zeroed((size_t)bz_plan_problems(p->plan, &problem) * BZ_PLAN_FAMILIES, sizeof *p->elsewhere);
    return 0;
}

int bz_fleet_load(bz_fleet_job *j, const bz_fleet_names *models, bz_error *err)
{
    bz_fleet_names paths = {0};
    bool of_config = !models || !models->n;
    if (of_config && !j->config)
        return bz_fail(err, BZ_USAGE,
                       "name a model: benanza fleet plan MODEL..., because there is no fleet.json that names any");
    int rc = expand(j, of_config ? &j->fleet.models : models, of_config, &paths, err), n = j->fleet.n_systems;
    if (!rc && !paths.n)
        rc = bz_fail(err, BZ_USAGE, "name models, or have fleet.json name them: \"models\": [\"/models/*.onnx\"]");
    if (!rc)
        keep_paths(j, &paths);
    rc = rc || load_models(j, &paths, err);
    j->plan = bz_zeroed((size_t)n, sizeof *j->plan);
    j->plan_of = BZ_NEW(&j->arena, int, n);
    j->want = BZ_NEW(&j->arena, bz_want, n);
    j->note = BZ_NEW(&j->arena, const char *, n);
    for (int i = 0; i < n && !rc; i++) {
        const char *cache = j->fleet.system[i].cache;
        rc = cache && strcmp(cache, "hot") != 0 && strcmp(cache, "cold") != 0
                 ? bz_fail(err, BZ_USAGE, "--cache takes hot or cold, not '%s'", cache)
                 : plan_one(j, i, err);
    }
    return rc ? -1 : 0;
}

bz_setting bz_fleet_setting(const bz_fleet_system *s)
{
    return (bz_setting){s->threads > 0 ? (int)s->threads : 1,
                        s->cache && !strcmp(s->cache, "cold") ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""};
}

const bz_fleet_plan *bz_fleet_plan_of(const bz_fleet_job *j, int kind)
{
    return &j->plan[j->plan_of[kind]];
}

bz_shards bz_fleet_shards(const bz_fleet_job *j, int kind, bz_arena *arena)
{
    bz_shards shards;
    bz_shards_make(bz_fleet_plan_of(j, kind)->plan, &j->want[kind], 60 * j->fleet.shard_minutes,
                   (int)j->fleet.system[kind].shards, arena, &shards);
    return shards;
}

static const char *slug_of(bz_fleet_job *j, const bz_fleet_system *s, const char *system)
{
    size_t n = strcspn(system, "@");
    return n ? bz_arena_strn(&j->arena, system, n) : s->slug ? s->slug : s->name;
}

int bz_fleet_want_one(bz_fleet_job *j, int kind, bool missing, const bz_system *system, bz_want *out, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, s->name);
    double days = j->max_age >= 0 ? (double)j->max_age : j->fleet.max_age;
    const bz_want_options options = {.setting = bz_fleet_setting(s),
                                     .now = (int64_t)time(NULL),
                                     .max_age = (int64_t)(days * 86400),
                                     .retries = missing ? 0 : (int)j->fleet.retries,
                                     .time_limit = s->time_limit,
                                     .pace = stack ? stack->pace : 0,
                                     .elsewhere = bz_fleet_plan_of(j, kind)->elsewhere};
    const char *name = stack && *stack->system ? stack->system : system ? system->name : "";
    return bz_want_make(bz_fleet_plan_of(j, kind)->plan, j->db, system, slug_of(j, s, name), &options, &j->arena, out,
                        err);
}

/* Two kinds of machines may turn out to be one system: once is enough. */
static const char *same_as(const bz_fleet_job *j, int kind, const char *system)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    for (int i = 0; i < kind && *system; i++) {
        const bz_fleet_system *t = &j->fleet.system[i];
        const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, t->name);
        bz_setting a = bz_fleet_setting(s), b = bz_fleet_setting(t);
        if (stack && !strcmp(stack->system, system) && j->plan_of[i] == j->plan_of[kind] && a.threads == b.threads &&
            a.cache == b.cache)
            return t->name;
    }
    return NULL;
}

int bz_fleet_want(bz_fleet_job *j, bool missing, bz_error *err)
{
    for (int i = 0; i < j->fleet.n_systems; i++) {
        const bz_fleet_system *s = &j->fleet.system[i];
        const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, s->name);
        const char *name = stack && *stack->system ? stack->system : NULL, *twin = same_as(j, i, name ? name : "");
        const bz_system *system;
        if (bz_perfdb_system(j->db,
                             name      ? name
                             : s->slug ? s->slug
                                       : s->name,
                             &system, err) ||
            bz_fleet_want_one(j, i, missing, system, &j->want[i], err))
            return -1;
        j->note[i] = twin ? bz_arena_printf(&j->arena, "the same system as %s, which measures it", twin) : NULL;
        if (twin) {
            bz_want *w = &j->want[i];
            w->count[BZ_WANT_NOT] = 0;
            memset(w->count, 0, sizeof w->count);
            memset(w->why, 0, (size_t)w->n * BZ_PLAN_FAMILIES);
            w->problems = 0;
            w->total = 0;
        }
    }
    return 0;
}
