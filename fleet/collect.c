/* What the shards have done so far: merged into the database. */
#include "fleet/constants.h"
#include "fleet/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool bz_fleet_is_lines(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, ".jsonl");
}

static void load_attempt(bz_fleet_job *j, const char *folder, const char *name, int shard, bz_fleet_attempts *out)
{
    size_t stem = strlen(name) - strlen(".jsonl");
    const char *status = bz_arena_printf(&j->arena, "%s/%.*s.json", folder, (int)stem, name);
    BZ_SCOPED(bz_buf) text = {0};
    bz_error err;
    BZ_ARENA_ROOM(&j->arena, out->attempt, out->n);
    bz_attempt *a = &out->attempt[out->n++];
    if (bz_whole_read(status, 1 << 20, BZ_FLEET_TOO_LONG, &text, &err) ||
        bz_attempt_parse(bz_buf_text(&text), status, &j->arena, a, &err)) {
        *a = (bz_attempt){.node = "?", .system = "", .program = "", .state = BZ_ATTEMPT_FAILED};
        a->reason = bz_arena_str(&j->arena, err.text);
        for (int i = 0; i < BZ_YARDSTICKS; i++)
            a->yardstick[i] = NAN;
    }
    a->id = bz_arena_strn(&j->arena, name, stem);
    a->lines = bz_arena_printf(&j->arena, "%s/%s", folder, name);
    a->shard = shard;
}

static void add_note(bz_fleet_job *j, const char *text)
{
    bz_fleet_names *n = &j->merged.note;
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->item[i], text))
            return;
    if (n->n < 200)
        bz_fleet_names_add(n, text, &j->arena);
}

void bz_fleet_attempts_load(bz_fleet_job *j, const bz_night_system *s, bz_fleet_attempts *out)
{
    *out = (bz_fleet_attempts){0};
    for (int i = 0; i < s->n_shards; i++) {
        const char *folder =
            bz_fleet_path(j, "%s/%s/%d-%03d/attempts", j->night.id, s->name, s->shard[i].round, s->shard[i].index);
        const char **list;
        int n = bz_folder_list(folder, bz_fleet_is_lines, &j->arena, &list);
        if (n < 0) {
            if (errno != ENOENT) /* there nothing began */
                add_note(j, bz_arena_printf(&j->arena, "%s: cannot be opened: %s", folder + strlen(j->fleet.folder) + 1,
                                            strerror(errno)));
            continue;
        }
        for (int k = 0; k < n; k++)
            load_attempt(j, folder, list[k], i, out);
    }
}

/* A file that cannot be read costs what is in it and no more; a database that cannot be written ends it all. */
static int collect_file(bz_fleet_job *j, bz_perfdb_bulk *bulk, const char *path, bz_error *err)
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
static void learn(bz_fleet_job *j, const bz_night_system *s, const bz_fleet_attempts *a)
{
    bz_fleet_stack *stack = bz_fleet_stacks_add(&j->stacks, s->name, &j->arena);
    const bz_attempt *newest = NULL;
    double estimate = 0, seconds = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_attempt *x = &a->attempt[i];
        if (*x->system && (!newest || x->begin - x->skew > newest->begin - newest->skew))
            newest = x;
        bool alone = x->state == BZ_ATTEMPT_DONE && (i == 0 || x[-1].shard != x->shard) &&
                     (i + 1 == a->n || x[1].shard != x->shard);
        estimate += alone ? s->shard[x->shard].estimate : 0;
        seconds += alone ? x->seconds : 0;
    }
    /* An earlier night may be collected when the machines have since been asked again; clocks may differ a little. */
    bool news = newest && newest->begin - newest->skew + CLOSE_CLOCKS >= stack->seen;
    if (news && strcmp(newest->system, stack->system) != 0) {
        if (*stack->system)
            stack->before = stack->system;
        stack->system = newest->system;
        stack->seen = (int64_t)time(NULL);
    }
    if (estimate > 0 && seconds > 0)
        stack->pace = fmin(SLOWEST_PACE, fmax(FASTEST_PACE, s->pace * seconds / estimate));
}

int bz_fleet_collect(bz_fleet_job *j, bz_error *err)
{
    bz_night *n = &j->night;
    BZ_SCOPED(bz_buf) text = {0};
    j->merged = (bz_merged){0};
    bz_perfdb_bulk *bulk = bz_perfdb_bulk_new(j->db, (int64_t)time(NULL) + CLOCK_AHEAD);
    bz_perfdb_count rest = {0};
    bz_error ignored;
    int rc = 0;
    for (int i = 0; i < n->n_systems && !rc; i++) {
        bz_fleet_attempts a;
        bz_fleet_attempts_load(j, &n->system[i], &a);
        for (int k = 0; k < a.n && !rc; k++)
            if (collect_file(j, bulk, a.attempt[k].lines, err))
                rc = bz_fail_in(err, "merging %s", a.attempt[k].lines);
        if (a.n && !rc)
            learn(j, &n->system[i], &a);
    }
    if (bz_perfdb_bulk_end(bulk, &rest, rc ? &ignored : err) || rc)
        return -1;
    j->merged.added += (int64_t)(rest.added + rest.replaced);
    j->merged.known += (int64_t)rest.kept;
    bz_merged_print(&j->merged, &text);
    return bz_whole_write(bz_fleet_path(j, "%s/merge.json", n->id), &text, err) ? -1 : bz_fleet_stacks_save(j, err);
}
