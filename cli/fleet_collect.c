/* benanza fleet collect and status: what the shards have done so far. */
#include "cli/fleet.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- attempts ------------------------------------------------------------------------------- */

static int is_lines(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 6 && !strcmp(e->d_name + n - 6, ".jsonl");
}

static void load_attempt(fleet_job *j, const char *folder, const char *name, int shard, fleet_attempts *out)
{
    size_t stem = strlen(name) - strlen(".jsonl");
    const char *status = bz_arena_printf(&j->arena, "%s/%.*s.json", folder, (int)stem, name);
    bz_attempt *a = &out->attempt[out->n];
    bz_buf text = {0};
    bz_error err;
    if (bz_whole_read(status, 1 << 20, BZ_FLEET_TOO_LONG, &text, &err) ||
        bz_attempt_parse(bz_buf_text(&text), status, &j->arena, a, &err)) {
        *a = (bz_attempt){.node = "?", .system = "", .program = "", .state = BZ_ATTEMPT_FAILED};
        a->reason = bz_arena_str(&j->arena, err.text);
        for (int i = 0; i < BZ_YARDSTICKS; i++)
            a->yardstick[i] = NAN;
    }
    a->id = bz_arena_strn(&j->arena, name, stem);
    out->lines[out->n] = bz_arena_printf(&j->arena, "%s/%s", folder, name);
    out->shard[out->n++] = shard;
    bz_buf_free(&text);
}

void fleet_attempts_load(fleet_job *j, const bz_night_system *s, fleet_attempts *out)
{
    int cap = 0;
    *out = (fleet_attempts){0};
    for (int i = 0; i < s->n_shards; i++) {
        const char *folder =
            fleet_path(j, "%s/%s/%d-%03d/attempts", j->night.id, s->name, s->shard[i].round, s->shard[i].index);
        struct dirent **list;
        int n = scandir(folder, &list, is_lines, alphasort);
        if (n < 0)
            continue;
        if (out->n + n > cap) {
            int more = 2 * (out->n + n);
            out->attempt = bz_arena_grow(&j->arena, out->attempt, (size_t)out->n, (size_t)more, sizeof *out->attempt);
            out->lines = bz_arena_grow(&j->arena, out->lines, (size_t)out->n, (size_t)more, sizeof *out->lines);
            out->shard = bz_arena_grow(&j->arena, out->shard, (size_t)out->n, (size_t)more, sizeof *out->shard);
            cap = more;
        }
        for (int k = 0; k < n; k++) {
            load_attempt(j, folder, list[k]->d_name, i, out);
            free(list[k]);
        }
        free(list);
    }
}

/* ---- collecting ----------------------------------------------------------------------------- */

/* A clock may be so far ahead of ours, or behind without being corrected: seconds. */
enum { AHEAD = 3600, CLOSE = 120 };

static void add_note(fleet_job *j, const char *text)
{
    bz_fleet_names *n = &j->merged.note;
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->item[i], text))
            return;
    if (n->n >= 200)
        return;
    n->item = bz_arena_grow(&j->arena, n->item, (size_t)n->n, (size_t)n->n + 1, sizeof *n->item);
    n->item[n->n++] = text;
}

/* A file that cannot be read costs what is in it and no more; a database that cannot be written ends it all. */
static int collect_file(fleet_job *j, bz_perfdb_bulk *bulk, const char *path, bz_error *err)
{
    bz_perfdb_import_report r;
    const char *name = path + strlen(j->fleet.folder) + 1;
    if (access(path, R_OK)) {
        add_note(j, bz_arena_printf(&j->arena, "%s: cannot be read", name));
        return 0;
    }
    if (bz_perfdb_bulk_import(bulk, path, &r, err)) {
        if (err->code != BZ_BAD_INPUT)
            return -1;
        add_note(j, bz_arena_str(&j->arena, err->text));
    }
    j->merged.files++;
    j->merged.added += (int64_t)(r.count.added + r.count.replaced);
    j->merged.known += (int64_t)r.count.kept;
    j->merged.bad += (int64_t)r.bad;
    if (r.newer)
        add_note(j, bz_arena_printf(&j->arena, "%s: %zu lines were written by a newer benanza: update this one", name,
                                    r.newer));
    if (r.bad > r.newer)
        add_note(j, bz_arena_printf(&j->arena, "%s: %zu of %zu lines cannot be used; they are measured again", name,
                                    r.bad - r.newer, r.lines));
    return 0;
}

/* What the machines really were, and how long things really took, for the next plan. */
static void learn(fleet_job *j, const bz_night_system *s, const fleet_attempts *a)
{
    bz_fleet_stack *stack = bz_fleet_stacks_add(&j->stacks, s->name, &j->arena);
    const bz_attempt *newest = NULL;
    double estimate = 0, seconds = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_attempt *x = &a->attempt[i];
        if (*x->system && (!newest || x->begin - x->skew > newest->begin - newest->skew))
            newest = x;
        bool alone = x->state == BZ_ATTEMPT_DONE && (i == 0 || a->shard[i - 1] != a->shard[i]) &&
                     (i + 1 == a->n || a->shard[i + 1] != a->shard[i]);
        estimate += alone ? s->shard[a->shard[i]].estimate : 0;
        seconds += alone ? x->seconds : 0;
    }
    /* An earlier night may be collected when the machines have since been asked again; clocks may differ a little. */
    bool news = newest && newest->begin - newest->skew + CLOSE >= stack->seen;
    if (news && strcmp(newest->system, stack->system) != 0) {
        if (*stack->system)
            stack->before = stack->system;
        stack->system = newest->system;
        stack->seen = (int64_t)time(NULL);
    }
    if (estimate > 0 && seconds > 0)
        stack->pace = fmin(10, fmax(0.1, s->pace * seconds / estimate));
}

int fleet_collect(fleet_job *j, bz_error *err)
{
    bz_night *n = &j->night;
    bz_buf text = {0};
    j->merged = (bz_merged){0};
    bz_perfdb_bulk *bulk = bz_perfdb_bulk_new(j->db, (int64_t)time(NULL) + AHEAD);
    bz_perfdb_count rest = {0};
    bz_error ignored;
    int rc = 0;
    for (int i = 0; i < n->n_systems && !rc; i++) {
        fleet_attempts a;
        fleet_attempts_load(j, &n->system[i], &a);
        for (int k = 0; k < a.n && !rc; k++)
            if (collect_file(j, bulk, a.lines[k], err))
                rc = bz_fail_in(err, "merging %s", a.lines[k]);
        if (a.n && !rc)
            learn(j, &n->system[i], &a);
    }
    if (bz_perfdb_bulk_end(bulk, &rest, rc ? &ignored : err) || rc)
        return -1;
    j->merged.added += (int64_t)(rest.added + rest.replaced);
    j->merged.known += (int64_t)rest.kept;
    bz_merged_print(&j->merged, &text);
    rc = bz_whole_write(fleet_path(j, "%s/merge.json", n->id), &text, err) || fleet_stacks_save(j, err);
    bz_buf_free(&text);
    return rc ? -1 : 0;
}

static int collect(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    if (fleet_open(j, false, err) || fleet_night_load(j, err) || fleet_collect(j, err))
        return -1;
    const bz_merged *m = &j->merged;
    *status = m->note.n ? BZ_INCOMPLETE : BZ_OK;
    if (j->json) {
        bz_merged_print(m, out);
        return 0;
    }
    bz_buf_printf(out, "night %s: %lld result files, %lld records added, %lld known already", j->night.id,
                  (long long)m->files, (long long)m->added, (long long)m->known);
    if (m->bad)
        bz_buf_printf(out, ", %lld lines left out", (long long)m->bad);
    bz_buf_putc(out, '\n');
    for (int i = 0; i < m->note.n; i++) {
        bz_buf_puts(out, "  ");
        bz_buf_clean(out, m->note.item[i]);
        bz_buf_putc(out, '\n');
    }
    return 0;
}

static int run_collect(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_collect, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"night", BZ_OPTION_TEXT, &j.night_name, "ID", "take this night (the newest)"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, collect);
}

const bz_command bz_command_fleet_collect = {
    "fleet collect", "[OPTIONS]", "merge what the shards have measured so far into the database", run_collect};

/* ---- status --------------------------------------------------------------------------------- */

static int status(fleet_job *j, bz_buf *out, int *exit_status, bz_error *err)
{
    bz_fleet_report r;
    (void)exit_status;
    if (fleet_open(j, true, err) || fleet_night_load(j, err) || fleet_report_make(j, -1, &r, err))
        return -1;
    if (j->json) {
        bz_fleet_report_json(&r, out);
        return 0;
    }
    bz_table *t = bz_table_new(&j->arena);
    static const char *const TITLES[] = {"shards", "done", "running", "waiting", "died", "failed", "records"};
    int shards = 0, done = 0;
    bz_table_column(t, "kind", BZ_LEFT);
    bz_table_column(t, "system", BZ_LEFT);
    for (size_t i = 0; i < sizeof TITLES / sizeof *TITLES; i++)
        bz_table_column(t, TITLES[i], BZ_RIGHT);
    for (int i = 0; i < j->night.n_systems; i++) {
        const bz_night_result *x = &r.result[i];
        const int counts[] = {x->shards, x->done, x->running, x->waiting, x->died, x->failed, x->records};
        shards += x->shards;
        done += x->done;
        bz_table_cell(t, x->planned->name, NULL);
        bz_table_cell(t, x->system, NULL);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            bz_table_int(t, counts[k]);
    }
    bz_buf_printf(out, "night %s: %d of %d shards are done\n\n", j->night.id, done, shards);
    bz_table_print(t, out);
    for (int i = 0; i < r.warning.n; i++) {
        bz_buf_clean(out, r.warning.item[i]);
        bz_buf_putc(out, '\n');
    }
    return 0;
}

static int run_status(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_status, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"night", BZ_OPTION_TEXT, &j.night_name, "ID", "take this night (the newest)"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, status);
}

const bz_command bz_command_fleet_status = {"fleet status", "[OPTIONS]", "say how far a night is", run_status};
