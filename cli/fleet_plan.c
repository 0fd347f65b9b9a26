/* benanza fleet plan: what is missing or stale, and how long it takes. */
#include "cli/fleet.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- models --------------------------------------------------------------------------------- */

/* Paths of fleet.json are relative to its folder, and may be patterns. */
static int expand(fleet_job *j, const bz_fleet_names *given, bool of_config, bz_list *out, bz_error *err)
{
    const char *slash = of_config ? strrchr(j->config, '/') : NULL;
    for (int i = 0; i < given->n; i++) {
        glob_t found = {0};
        const char *path = given->item[i];
        if (slash && path[0] != '/')
            path = bz_arena_printf(&j->arena, "%.*s/%s", (int)(slash - j->config), j->config, path);
        int rc = of_config ? glob(path, 0, NULL, &found) : GLOB_NOMATCH;
        for (size_t k = 0; !rc && k < found.gl_pathc; k++)
            bz_list_add(out, bz_arena_str(&j->arena, found.gl_pathv[k]));
        globfree(&found);
        if (rc && of_config)
            return bz_fail(err, BZ_BAD_INPUT, "%s: there is no model '%s'", j->config, path);
        if (!of_config)
            bz_list_add(out, path);
    }
    return 0;
}

static void keep_paths(fleet_job *j, const bz_list *paths)
{
    j->model_paths = (bz_fleet_names){BZ_NEW(&j->arena, const char *, paths->n), 0};
    for (int i = 0; i < paths->n; i++) {
        char *whole = realpath(paths->item[i], NULL);
        j->model_paths.item[j->model_paths.n++] = bz_arena_str(&j->arena, whole ? whole : paths->item[i]);
        free(whole);
    }
}

/* Every model at every batch; the name that the plan knows it by tells the batch. */
static int load_models(fleet_job *j, const bz_list *paths, bz_error *err)
{
    int n = j->fleet.n_batches ? j->fleet.n_batches : 1;
    loaded_models *all = &j->models;
    all->model = bz_alloc((size_t)paths->n * (size_t)n, sizeof *all->model);
    all->layers = bz_alloc((size_t)paths->n * (size_t)n, sizeof(bz_layers *));
    for (int b = 0; b < n; b++) {
        loaded_models some = {0};
        const model_settings settings = {.batch = j->fleet.n_batches ? (int64_t)j->fleet.batch[b] : 0,
                                         .dims = {j->fleet.dims.item, j->fleet.dims.n}};
        int rc = models_load(j->command, paths, &settings, &some, err);
        memcpy(all->model + all->n, some.model, (size_t)some.n * sizeof *some.model);
        memcpy(all->layers + all->n, some.layers, (size_t)some.n * sizeof(bz_layers *));
        all->n += some.n;
        free(some.model);
        free(some.layers);
        if (rc)
            return -1;
        for (int i = 0; i < paths->n; i++)
            bz_list_add(&j->paths,
                        n == 1 ? paths->item[i]
                               : bz_arena_printf(&j->arena, "%s batch %d", paths->item[i], (int)j->fleet.batch[b]));
    }
    return 0;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static void put_names(bz_buf *key, const bz_fleet_names *names)
{
    for (int i = 0; i < names->n; i++)
        bz_buf_printf(key, "%s ", names->item[i]);
    bz_buf_putc(key, '|');
}

static int plan_one(fleet_job *j, int kind, bz_error *err)
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
    fleet_plan *p = &j->plan[j->n_plans++];
    *p = (fleet_plan){.key = key.data};
    p->p = (planning){.dtype = s->dtype,
                      .backends = {s->backends.item, s->backends.n},
                      .layouts = {s->layouts.item, s->layouts.n},
                      .maths = {s->maths.item, s->maths.n},
                      .fuse = s->fuse};
    if (planning_plan(&p->p, &j->paths, &j->models, &p->plan, err))
        return bz_fail_in(err, "system %s", s->name);
    const bz_plan_problem *problem;
    p->elsewhere = bz_zeroed((size_t)bz_plan_problems(p->plan, &problem) * BZ_PLAN_FAMILIES, sizeof *p->elsewhere);
    return 0;
}

int fleet_load(fleet_job *j, const bz_fleet_names *models, bz_error *err)
{
    bz_list paths = {0};
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
    bz_list_free(&paths);
    j->plan = bz_zeroed((size_t)n, sizeof *j->plan);
    j->plan_of = BZ_NEW(&j->arena, int, n);
    j->want = BZ_NEW(&j->arena, bz_want, n);
    j->note = BZ_NEW(&j->arena, const char *, n);
    for (int i = 0; i < n && !rc; i++) {
        planning check = {.cache = j->fleet.system[i].cache};
        bz_setting setting;
        rc = planning_setting(&check, &setting, err) || plan_one(j, i, err);
    }
    return rc ? -1 : 0;
}

bz_setting fleet_setting(const bz_fleet_system *s)
{
    return (bz_setting){s->threads > 0 ? (int)s->threads : 1,
                        s->cache && !strcmp(s->cache, "cold") ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""};
}

const char *fleet_device(const fleet_job *j, int kind)
{
    return planning_device(&j->plan[j->plan_of[kind]].p);
}

/* ---- wants ---------------------------------------------------------------------------------- */

static const char *slug_of(fleet_job *j, const bz_fleet_system *s, const char *system)
{
    size_t n = strcspn(system, "@");
    return n ? bz_arena_strn(&j->arena, system, n) : s->slug ? s->slug : s->name;
}

int fleet_want_one(fleet_job *j, int kind, bool missing, const bz_system *system, bz_want *out, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, s->name);
    double days = j->max_age >= 0 ? (double)j->max_age : j->fleet.max_age;
    const bz_want_options options = {.setting = fleet_setting(s),
                                     .now = (int64_t)time(NULL),
                                     .max_age = (int64_t)(days * 86400),
                                     .retries = missing ? 0 : (int)j->fleet.retries,
                                     .time_limit = s->time_limit,
                                     .pace = stack ? stack->pace : 0,
                                     .elsewhere = j->plan[j->plan_of[kind]].elsewhere};
    const char *name = stack && *stack->system ? stack->system : system ? system->name : "";
    return bz_want_make(j->plan[j->plan_of[kind]].plan, j->db, system, slug_of(j, s, name), &options, &j->arena, out,
                        err);
}

/* Two kinds of machines may turn out to be one system: once is enough. */
static const char *same_as(const fleet_job *j, int kind, const char *system)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    for (int i = 0; i < kind && *system; i++) {
        const bz_fleet_system *t = &j->fleet.system[i];
        const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, t->name);
        bz_setting a = fleet_setting(s), b = fleet_setting(t);
        if (stack && !strcmp(stack->system, system) && j->plan_of[i] == j->plan_of[kind] && a.threads == b.threads &&
            a.cache == b.cache)
            return t->name;
    }
    return NULL;
}

int fleet_want(fleet_job *j, bool missing, bz_error *err)
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
            fleet_want_one(j, i, missing, system, &j->want[i], err))
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

/* ---- output --------------------------------------------------------------------------------- */

static int wanted_of(const bz_want *w)
{
    int n = 0;
    for (int k = BZ_WANT_NOT + 1; k < BZ_WANTS; k++)
        n += w->count[k];
    return n;
}

static bz_shards shards_of(const fleet_job *j, int kind, bz_arena *arena)
{
    bz_shards shards;
    bz_shards_make(j->plan[j->plan_of[kind]].plan, &j->want[kind], 60 * j->fleet.shard_minutes,
                   (int)j->fleet.system[kind].shards, arena, &shards);
    return shards;
}

static const char *name_of(const fleet_job *j, int kind)
{
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, j->fleet.system[kind].name);
    const bz_system *system = j->want[kind].system;
    return stack && *stack->system ? stack->system : system ? system->name : "";
}

static void print_json(const fleet_job *j, bz_arena *arena, bz_buf *out)
{
    bz_json w = bz_json_to(out, true);
    w.flat = 3;
    bz_json_document(&w, "fleet-plan", 1);
    bz_json_key_int(&w, "models", j->models.n);
    bz_json_key(&w, "systems");
    bz_json_array(&w);
    for (int i = 0; i < j->fleet.n_systems; i++) {
        const bz_want *x = &j->want[i];
        bz_shards shards = shards_of(j, i, arena);
        bz_json_object(&w);
        bz_json_key_str(&w, "name", j->fleet.system[i].name);
        bz_json_key_str(&w, "system", name_of(j, i));
        bz_json_key_str(&w, "note", j->note[i] ? j->note[i] : "");
        bz_json_key_int(&w, "problems", x->n);
        bz_json_key_int(&w, "problems_wanted", x->problems);
        for (int k = 0; k < BZ_WANTS; k++)
            bz_json_key_int(&w, bz_want_id((bz_want_why)k), x->count[k]);
        bz_json_key_num(&w, "seconds", x->total);
        bz_json_key_int(&w, "guessed", x->guessed);
        bz_json_key(&w, "shards");
        bz_json_array(&w);
        for (int k = 0; k < shards.n; k++)
            bz_json_num(&w, shards.shard[k].seconds);
        bz_json_array_end(&w);
        bz_json_object_end(&w);
    }
    bz_json_array_end(&w);
    bz_json_object_end(&w);
    bz_buf_putc(out, '\n');
}

static void print_table(const fleet_job *j, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_new(arena);
    bz_unit_text text;
    bz_table_column(t, "kind", BZ_LEFT);
    bz_table_column(t, "system", BZ_LEFT);
    for (int k = 0; k < BZ_WANTS; k++)
        bz_table_column(t, bz_want_name((bz_want_why)k), BZ_RIGHT);
    bz_table_column(t, "device time", BZ_RIGHT);
    bz_table_column(t, "shards", BZ_RIGHT);
    for (int i = 0; i < j->fleet.n_systems; i++) {
        const bz_want *x = &j->want[i];
        const char *name = name_of(j, i);
        bz_table_cell(t, j->fleet.system[i].name, NULL);
        bz_table_cell(t, *name ? name : "(never seen)", NULL);
        for (int k = 0; k < BZ_WANTS; k++)
            bz_table_int(t, x->count[k]);
        bz_table_cell(t, bz_units_time(text, x->total), NULL);
        bz_table_int(t, shards_of(j, i, arena).n);
    }
    bz_table_print(t, out);
}

void fleet_plan_print(const fleet_job *j, bz_buf *out)
{
    bz_arena arena = {0};
    bz_unit_text text;
    int wanted = 0, guessed = 0;
    double total = 0;
    for (int i = 0; i < j->fleet.n_systems; i++) {
        wanted += wanted_of(&j->want[i]);
        guessed += j->note[i] ? 0 : j->want[i].guessed;
        total += j->want[i].total;
    }
    if (j->json) {
        print_json(j, &arena, out);
        bz_arena_free(&arena);
        return;
    }
    if (!wanted)
        bz_buf_puts(out, "nothing to do: the database has all of it, and fresh\n\n");
    else
        bz_buf_printf(out, "%s of device time: %d %s of variants on %d kind%s of machines\n\n",
                      bz_units_time(text, total), wanted, wanted == 1 ? "family" : "families", j->fleet.n_systems,
                      j->fleet.n_systems == 1 ? "" : "s");
    print_table(j, &arena, out);
    for (int i = 0; i < j->fleet.n_systems; i++)
        if (j->note[i])
            bz_buf_printf(out, "%s: %s\n", j->fleet.system[i].name, j->note[i]);
    if (guessed)
        bz_buf_printf(out, "%d families were measured nowhere yet: their time is guessed\n", guessed);
    bz_arena_free(&arena);
}

static int plan(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    const bz_fleet_names given = {j->arguments.item, j->arguments.n};
    (void)status;
    if (fleet_open_any(j, err) || fleet_load(j, &given, err) || fleet_want(j, false, err))
        return -1;
    fleet_plan_print(j, out);
    return 0;
}

static int run(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_plan, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"max-age", BZ_OPTION_INT, &j.max_age, "DAYS",
         "measure again what is older than DAYS; 0: never (what the fleet's file says)"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, plan);
}

const bz_command bz_command_fleet_plan = {"fleet plan", "[MODEL...] [OPTIONS]",
                                          "say what is missing or old on each system, and how long it takes to measure",
                                          run};
