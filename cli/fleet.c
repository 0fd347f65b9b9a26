/* benanza fleet …: the database kept fresh by a Slurm cluster. fleet_*.c have the subcommands. */
#include "cli/fleet.h"

#include "cli/db.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const bz_command *const SUBCOMMANDS[] = {
    &bz_command_fleet_plan,   &bz_command_fleet_submit,  &bz_command_fleet_status, &bz_command_fleet_collect,
    &bz_command_fleet_report, &bz_command_fleet_nightly, &bz_command_fleet_work};
enum { N_SUBCOMMANDS = sizeof SUBCOMMANDS / sizeof(void *) };

static int run_fleet(int argc, char **argv)
{
    return bz_subcommands_run(
        "fleet", "Keeps the database fresh: the machines of a Slurm cluster measure what is missing or old.",
        SUBCOMMANDS, N_SUBCOMMANDS, argc, argv);
}

const bz_command bz_command_fleet = {"fleet", "COMMAND [OPTIONS] ARGUMENTS",
                                     "keep the database fresh on the machines of a cluster: plan, nightly, report",
                                     run_fleet};

/* ---- what all subcommands do ---------------------------------------------------------------- */

static void clean_up(fleet_job *j)
{
    bz_perfdb_close(j->db);
    for (int i = 0; i < j->n_plans; i++) {
        bz_plan_free(j->plan[i].plan);
        free(j->plan[i].key);
        free(j->plan[i].elsewhere);
    }
    free(j->plan);
    models_free(&j->models);
    bz_list_free(&j->paths);
    bz_list_free(&j->arguments);
    bz_fleet_free(&j->fleet);
    bz_arena_free(&j->arena);
    if (j->lock >= 0)
        close(j->lock);
}

int fleet_run(fleet_job *j, const bz_option *options, int argc, char **argv,
              int (*body)(fleet_job *j, bz_buf *out, int *status, bz_error *err))
{
    bz_error err = {0};
    bz_buf out = {0};
    int status = BZ_OK, rc = bz_options_parse(j->command, options, argc, argv, &j->arguments, &err);
    j->lock = -1;
    if (!rc)
        rc = body(j, &out, &status, &err);
    if (!rc && out.len)
        rc = bz_output(NULL, &out, &err);
    if (rc < 0)
        status = bz_report(j->command, &err);
    bz_buf_free(&out);
    clean_up(j);
    return status;
}

static const char *config_path(const fleet_job *j)
{
    const char *given = j->config ? j->config : getenv("BENANZA_FLEET");
    return given && *given ? given : "fleet.json";
}

int fleet_open(fleet_job *j, bool read_only, bz_error *err)
{
    const char *path = config_path(j);
    if (bz_fleet_read(path, &j->fleet, err))
        return -1;
    if (!j->fleet.folder)
        return bz_fail(err, BZ_BAD_INPUT, "%s: names no \"folder\" that all machines see", path);
    char *whole = realpath(path, NULL);
    j->config = bz_arena_str(&j->arena, whole ? whole : path);
    free(whole);
    return bz_db_open(j->command, j->db_dir, read_only, &j->db, err) || fleet_stacks_load(j, err) ? -1 : 0;
}

/* Which backends made a system's records: the first thousands tell. */
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
    if (i == s->names.n && i < BZ_PLAN_NAMES)
        s->names.item[s->names.n++] = bz_arena_str(s->arena, r->variant.backend);
    return --s->left <= 0;
}

/* The newest stack of each slug. */
static int systems_of_database(fleet_job *j, bz_error *err)
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
    return j->fleet.n_systems ? 0
                              : bz_fail(err, BZ_USAGE,
                                        "there is neither a fleet.json nor a system in the database: name a fleet "
                                        "with --config FILE");
}

int fleet_open_any(fleet_job *j, bz_error *err)
{
    if (j->config || getenv("BENANZA_FLEET") || !access("fleet.json", F_OK))
        return fleet_open(j, true, err);
    bz_fleet_defaults(&j->fleet);
    return bz_db_open(j->command, j->db_dir, true, &j->db, err) || systems_of_database(j, err) ? -1 : 0;
}

/* The lock lies beside the database, which is on a local disk: locks are reliable there. */
int fleet_lock(fleet_job *j, bz_error *err)
{
    bz_buf path = {0};
    bz_buf_printf(&path, "%s/fleet.lock", bz_perfdb_dir(j->db));
    int rc = 0;
    j->lock = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (j->lock < 0)
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path.data, strerror(errno));
    else if (flock(j->lock, LOCK_EX | LOCK_NB))
        rc = bz_fail(err, BZ_FAILED, "%s: another night is under way: 'benanza fleet status' tells how far it is",
                     path.data);
    bz_buf_free(&path);
    return rc;
}

/* ---- files ---------------------------------------------------------------------------------- */

const char *fleet_path(fleet_job *j, const char *fmt, ...)
{
    bz_buf path = {0};
    char rest[3000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(rest, sizeof rest, fmt, args);
    va_end(args);
    bz_buf_printf(&path, "%s/%s", j->fleet.folder, rest);
    const char *copy = bz_arena_str(&j->arena, bz_buf_text(&path));
    bz_buf_free(&path);
    return copy;
}

int fleet_make_folder(const char *path, bz_error *err)
{
    if (!mkdir(path, 0777) || errno == EEXIST)
        return 0;
    return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", path, strerror(errno));
}

int fleet_stacks_load(fleet_job *j, bz_error *err)
{
    const char *path = fleet_path(j, "stacks.json");
    bz_buf text = {0};
    int rc = 0;
    if (access(path, F_OK))
        return 0;
    if (bz_whole_read(path, 4 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
        bz_fleet_stacks_parse(bz_buf_text(&text), path, &j->arena, &j->stacks, err))
        rc = -1;
    bz_buf_free(&text);
    return rc;
}

int fleet_stacks_save(fleet_job *j, bz_error *err)
{
    bz_buf text = {0};
    bz_fleet_stacks_print(&j->stacks, &text);
    int rc = bz_whole_write(fleet_path(j, "stacks.json"), &text, err);
    bz_buf_free(&text);
    return rc;
}

/* ---- nights --------------------------------------------------------------------------------- */

static int later(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static int is_night(const struct dirent *e)
{
    return bz_night_is_id(e->d_name);
}

int fleet_night_load(fleet_job *j, bz_error *err)
{
    struct dirent **list;
    bz_buf text = {0};
    const char *id = j->night_name;
    if (id && !bz_night_is_id(id))
        return bz_fail(err, BZ_USAGE, "'%s' is no night: 20261121T020000Z is", id);
    if (!id) {
        int n = scandir(j->fleet.folder, &list, is_night, later);
        for (int i = 0; i < n; i++) {
            if (!id && !access(fleet_path(j, "%s/night.json", list[i]->d_name), F_OK))
                id = bz_arena_str(&j->arena, list[i]->d_name);
            free(list[i]);
        }
        if (n >= 0)
            free(list);
    }
    if (!id)
        return bz_fail(err, BZ_BAD_INPUT, "%s: there was no night yet: 'benanza fleet nightly' makes one",
                       j->fleet.folder);
    const char *path = fleet_path(j, "%s/night.json", id);
    int rc = bz_whole_read(path, 64 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
             bz_night_parse(bz_buf_text(&text), path, &j->arena, &j->night, err);
    if (!rc && strcmp(j->night.id, id) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: is of another night: %s", path, j->night.id);
    bz_buf_free(&text);
    return rc ? -1 : 0;
}

int fleet_night_save(fleet_job *j, bz_error *err)
{
    bz_buf text = {0};
    bz_night_print(&j->night, &text);
    int rc = bz_whole_write(fleet_path(j, "%s/night.json", j->night.id), &text, err);
    bz_buf_free(&text);
    return rc;
}
