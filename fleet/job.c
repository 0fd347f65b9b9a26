/* What all steps of a night stand on: the fleet's file, the database, the files of nights. */
#include "fleet/steps.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void bz_fleet_end(bz_fleet_job *j)
{
    bz_perfdb_close(j->db);
    for (int i = 0; i < j->n_plans; i++) {
        bz_plan_free(j->plan[i].plan);
        free(j->plan[i].key);
        free(j->plan[i].elsewhere);
    }
    free(j->plan);
    bz_models_free(&j->models);
    bz_fleet_free(&j->fleet);
    bz_arena_free(&j->arena);
    if (j->lock > 0)
        close(j->lock - 1);
}

void bz_fleet_warn(const bz_fleet_job *j, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    if (!j->warn)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    j->warn(j->user, text);
}

void bz_fleet_names_add(bz_fleet_names *names, const char *text, bz_arena *arena)
{
    size_t n = (size_t)names->n;
    BZ_ARENA_ROOM(arena, names->item, n);
    names->item[names->n++] = text;
}

static const char *config_path(const bz_fleet_job *j)
{
    const char *given = j->config ? j->config : getenv("BENANZA_FLEET");
    return given && *given ? given : "fleet.json";
}

static int load_stacks(bz_fleet_job *j, bz_error *err)
{
    const char *path = bz_fleet_path(j, "stacks.json");
    BZ_SCOPED(bz_buf) text = {0};
    int rc = 0;
    if (access(path, F_OK))
        return 0;
    if (bz_whole_read(path, 4 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
        bz_fleet_stacks_parse(bz_buf_text(&text), path, &j->arena, &j->stacks, err))
        rc = -1;
    return rc;
}

static int open_db(bz_fleet_job *j, bool read_only, bz_error *err)
{
    BZ_FREED char *where = bz_perfdb_where(j->db_dir);
    const bz_perfdb_options options = {.read_only = read_only, .warn = j->warn, .user = j->user};
    return bz_perfdb_open(&j->db, where, &options, err);
}

int bz_fleet_open(bz_fleet_job *j, bool read_only, bz_error *err)
{
    const char *path = config_path(j);
    if (bz_fleet_read(path, &j->fleet, err))
        return -1;
    if (!j->fleet.folder)
        return bz_fail(err, BZ_BAD_INPUT, "%s: names no \"folder\" that all machines see", path);
    BZ_FREED char *whole = realpath(path, NULL);
    j->config = bz_arena_str(&j->arena, whole ? whole : path);
    return open_db(j, read_only, err) || load_stacks(j, err) ? -1 : 0;
}

/* Which backends made a system's records: the first thousands tell. Replays and sequences of layers are records, too, which none made. */
typedef struct seen_backends {
    bz_fleet_names names;
    bz_arena *arena;
    int left;
} seen_backends;

static int see_backend(void *user, const bz_record *r)
{
    seen_backends *s = user;
    int i = 0;
    while (i < s->names.n && strcmp(s->names.item[i], r->variant.backend) != 0)
        i++;
    if (i == s->names.n && i < BZ_PLAN_NAMES && bz_backend_named(r->variant.backend))
        s->names.item[s->names.n++] = bz_arena_str(s->arena, r->variant.backend);
    return --s->left <= 0;
}

/* The newest stack of each slug. */
static int systems_of_database(bz_fleet_job *j, bz_error *err)
{
    const bz_system **list;
    size_t n;
    if (bz_perfdb_systems(j->db, &j->arena, &list, &n, err))
        return -1;
    j->fleet.system = BZ_NEW(&j->arena, bz_fleet_system, n);
    for (size_t i = 0; i < n; i++) {
        size_t slug = strcspn(list[i]->name, "@");
        if (i + 1 < n && strcspn(list[i + 1]->name, "@") == slug && !strncmp(list[i]->name, list[i + 1]->name, slug))
            continue; /* they are sorted: a newer stack follows */
        seen_backends seen = {{BZ_NEW(&j->arena, const char *, BZ_PLAN_NAMES), 0}, &j->arena, 20000};
        if (bz_perfdb_scan(j->db, &(bz_perfdb_filter){.system = list[i]}, see_backend, &seen, err))
            return -1;
        bz_fleet_system *s = &j->fleet.system[j->fleet.n_systems++];
        *s = (bz_fleet_system){
            .name = bz_arena_strn(&j->arena, list[i]->name, slug), .shards = 8, .backends = seen.names};
    }
    return j->fleet.n_systems
               ? 0
               : bz_fail(err, BZ_USAGE,
                         "there is neither a fleet.json nor a system in the database: name a fleet with --config FILE");
}

int bz_fleet_open_any(bz_fleet_job *j, bz_error *err)
{
    if (j->config || getenv("BENANZA_FLEET") || !access("fleet.json", F_OK))
        return bz_fleet_open(j, true, err);
    bz_fleet_defaults(&j->fleet);
    return open_db(j, true, err) || systems_of_database(j, err) ? -1 : 0;
}

const char *bz_fleet_path(bz_fleet_job *j, const char *fmt, ...)
{
    bz_buf path = {0};
    char rest[3000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(rest, sizeof rest, fmt, args);
    va_end(args);
    bz_buf_printf(&path, "%s/%s", j->fleet.folder, rest);
    return bz_buf_keep(&path, &j->arena);
}

int bz_fleet_make_folder(const char *path, bz_error *err)
{
    if (!mkdir(path, 0777) || errno == EEXIST)
        return 0;
    return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", path, strerror(errno));
}

int bz_fleet_stacks_save(bz_fleet_job *j, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_fleet_stacks_print(&j->stacks, &text);
    return bz_whole_write(bz_fleet_path(j, "stacks.json"), &text, err);
}

int bz_fleet_night_load(bz_fleet_job *j, bz_error *err)
{
    const char **list;
    BZ_SCOPED(bz_buf) text = {0};
    const char *id = j->night_name;
    if (id && !bz_night_is_id(id))
        return bz_fail(err, BZ_USAGE, "'%s' is no night: 20261121T020000Z is", id);
    for (int n = id ? 0 : bz_folder_list(j->fleet.folder, bz_night_is_id, &j->arena, &list); n > 0 && !id; n--)
        if (!access(bz_fleet_path(j, "%s/night.json", list[n - 1]), F_OK))
            id = list[n - 1];
    if (!id)
        return bz_fail(err, BZ_BAD_INPUT, "%s: there was no night yet: 'benanza fleet nightly' makes one",
                       j->fleet.folder);
    const char *path = bz_fleet_path(j, "%s/night.json", id);
    int rc = bz_whole_read(path, 64 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
             bz_night_parse(bz_buf_text(&text), path, &j->arena, &j->night, err);
    if (!rc && strcmp(j->night.id, id) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: is of another night: %s", path, j->night.id);
    return rc ? -1 : 0;
}

int bz_fleet_night_save(bz_fleet_job *j, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_night_print(&j->night, &text);
    return bz_whole_write(bz_fleet_path(j, "%s/night.json", j->night.id), &text, err);
}
