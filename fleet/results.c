/* What a night brought: shards, attempts, records held against those before. */
#include "fleet/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct making {
    bz_fleet_job *j;
    bz_fleet_report *out;
    const bz_queued *queued;
    int n_queued;
} making;

static void warn(making *m, const char *text)
{
    bz_fleet_names_add(&m->out->warning, text, &m->j->arena);
}

static const bz_queued *queued_shard(const making *m, const bz_night_system *s, const bz_night_shard *h)
{
    for (int i = 0; i < s->n_jobs; i++)
        for (int k = 0; s->job[i].round == h->round && k < m->n_queued; k++)
            if (m->queued[k].job == s->job[i].id && m->queued[k].task == h->index)
                return &m->queued[k];
    return NULL;
}

/* What became of a shard: the best of its attempts, else what Slurm knows. */
static void count_shard(making *m, const bz_fleet_attempts *a, const bz_night_system *s, int shard, bz_night_result *x)
{
    bool done = false, failed = false, any = false;
    for (int i = 0; i < a->n; i++) {
        if (a->attempt[i].shard != shard)
            continue;
        any = true;
        done |= a->attempt[i].state == BZ_ATTEMPT_DONE;
        failed = a->attempt[i].state == BZ_ATTEMPT_FAILED; /* of the last one */
    }
    const bz_queued *q = done ? NULL : queued_shard(m, s, &s->shard[shard]);
    x->estimate += s->shard[shard].estimate;
    if (done)
        x->done++;
    else if (q && (!strcmp(q->state, "R") || !strcmp(q->state, "CG")))
        x->running++;
    else if (q)
        x->waiting++;
    else if (any && failed)
        x->failed++;
    else
        x->died++;
}

static void look_at_attempt(making *m, const bz_night_system *s, const bz_attempt *a, bz_night_result *x)
{
    bz_arena *arena = &m->j->arena;
    x->records += a->records;
    x->bad_records += a->failed;
    x->seconds += a->seconds;
    if (a->state == BZ_ATTEMPT_FAILED)
        warn(m, bz_arena_printf(arena, "%s, attempt %s on %s: %s", s->name, a->id, a->node, a->reason));
    if (llabs(a->skew) > 120)
        warn(m, bz_arena_printf(arena, "%s: the clock of %s is %lld s %s; dates were corrected", s->name, a->node,
                                (long long)llabs(a->skew), a->skew > 0 ? "ahead" : "behind"));
    if (*a->system && *s->system && strcmp(a->system, s->system) != 0) {
        if (!x->moved++)
            warn(m, bz_arena_printf(arena, "%s: planned for %s, ran on %s (%s); recorded under what ran", s->name,
                                    s->system, a->system, a->node));
    }
    if (*a->program && strcmp(a->program, BENANZA_VERSION) != 0)
        warn(m,
             bz_arena_printf(arena, "%s: %s runs benanza %s, this is " BENANZA_VERSION, s->name, a->node, a->program));
}

typedef struct failures {
    making *m;
    const char *kind;
    int64_t since;
} failures;

enum { FAILURES = 20 };

static int see_failure(void *user, const bz_record *r)
{
    failures *f = user;
    bz_fleet_report *out = f->m->out;
    bz_arena *arena = &f->m->j->arena;
    if (r->date < f->since || !bz_record_failed(r))
        return 0;
    if (out->n_failures == FAILURES) {
        out->more_failures++;
        return 0;
    }
    out->failure[out->n_failures++] = (bz_failure){
        f->kind,
        bz_arena_printf(arena, "%s, %s %s %s", r->problem, r->variant.backend, r->variant.algorithm, r->variant.layout),
        bz_arena_printf(arena, "%s: %s", bz_record_status_name(r->status), r->reason)};
    return 0;
}

static int compare(making *m, int kind, const bz_system *now, bz_night_result *x, bz_error *err)
{
    bz_fleet_job *j = m->j;
    const bz_night_system *s = x->planned;
    bool moved = *s->system && strcmp(s->system, now->name) != 0;
    const char *name = moved ? s->system : s->before;
    int64_t until = moved || !s->until ? INT64_MAX : s->until;
    const bz_setting setting = bz_fleet_setting(&j->fleet.system[kind]);
    const bz_system *before = NULL;
    const bz_plan *plan = bz_fleet_plan_of(j, kind)->plan;
    bz_side *a = NULL, *b = NULL;
    if (*name && bz_perfdb_system(j->db, name, &before, err))
        return -1;
    if (!before)
        return 0;
    int rc = bz_side_read(j->db, before, until, plan, &j->arena, &a, err) ||
             bz_side_read(j->db, now, INT64_MAX, plan, &j->arena, &b, err);
    if (!rc) {
        x->before = before == now ? "itself before tonight" : before->name;
        bz_changes_add(s->name, a, b, plan, &setting, &j->arena, m->out, x);
    }
    bz_side_free(a);
    bz_side_free(b);
    return rc ? -1 : 0;
}

/* What the plan still lacks; noise does not count. */
static int count_left(making *m, int kind, const bz_system *now, bz_night_result *x, bz_error *err)
{
    static const bz_want_why LACKS[] = {BZ_WANT_NEW, BZ_WANT_STACK, BZ_WANT_PART, BZ_WANT_OLD};
    bz_want want;
    if (!x->wanted)
        return 0;
    if (bz_fleet_want_one(m->j, kind, true, now, &want, err))
        return -1;
    for (size_t i = 0; i < sizeof LACKS / sizeof *LACKS; i++)
        x->left += want.count[LACKS[i]];
    m->out->left += x->left;
    return 0;
}

static int kind_of(const bz_fleet_job *j, const char *name)
{
    for (int i = 0; i < j->fleet.n_systems; i++)
        if (!strcmp(j->fleet.system[i].name, name))
            return i;
    return -1;
}

static int make_records(making *m, int kind, bz_night_result *x, bz_error *err)
{
    bz_fleet_job *j = m->j;
    const bz_system *now = NULL;
    if (*x->system && bz_perfdb_system(j->db, x->system, &now, err))
        return -1;
    if (count_left(m, kind, now, x, err))
        return -1;
    if (!now || !x->attempts)
        return 0;
    failures f = {m, x->planned->name, j->night.begin};
    return compare(m, kind, now, x, err) ||
                   bz_perfdb_scan(j->db, &(bz_perfdb_filter){.system = now}, see_failure, &f, err)
               ? -1
               : 0;
}

static int make_kind(making *m, const bz_night_system *s, bool records, bz_night_result *x, bz_error *err)
{
    bz_fleet_job *j = m->j;
    bz_fleet_attempts a;
    const bz_attempt *newest = NULL;
    int kind = kind_of(j, s->name);
    bz_fleet_attempts_load(j, s, &a);
    *x = (bz_night_result){.planned = s, .system = s->system, .before = "", .shards = s->n_shards, .attempts = a.n};
    for (int w = BZ_WANT_NOT + 1; w < BZ_WANTS; w++)
        x->wanted += s->families[w];
    for (int i = 0; i < s->n_shards; i++)
        count_shard(m, &a, s, i, x);
    for (int i = 0; i < a.n; i++) {
        const bz_attempt *is = &a.attempt[i];
        look_at_attempt(m, s, is, x);
        if (*is->system && (!newest || is->begin - is->skew >= newest->begin - newest->skew))
            newest = is;
    }
    x->system = newest ? newest->system : s->system;
    if (*s->note && x->wanted)
        warn(m, bz_arena_printf(&j->arena, "%s: not submitted: %s", s->name, s->note));
    bz_deviations_add(s->name, a.attempt, a.n, j->fleet.deviation, &j->arena, m->out);
    if (!records)
        return 0;
    if (kind < 0) {
        warn(m, bz_arena_printf(&j->arena, "%s: is no longer in %s", s->name, j->config));
        return 0;
    }
    return make_records(m, kind, x, err);
}

static void load_merged(making *m)
{
    bz_fleet_job *j = m->j;
    const char *path = bz_fleet_path(j, "%s/merge.json", j->night.id);
    BZ_SCOPED(bz_buf) text = {0};
    bz_error ignored;
    if (!access(path, F_OK) && (bz_whole_read(path, 1 << 22, BZ_FLEET_TOO_LONG, &text, &ignored) ||
                                bz_merged_parse(bz_buf_text(&text), path, &j->arena, &j->merged, &ignored)))
        warn(m, bz_arena_str(&j->arena, ignored.text));
    for (int i = 0; i < j->merged.note.n; i++)
        warn(m, j->merged.note.item[i]);
}

int bz_fleet_report_make(bz_fleet_job *j, double tolerance, bz_fleet_report *out, bz_error *err)
{
    making m = {.j = j, .out = out};
    bz_error no_slurm;
    *out = (bz_fleet_report){.night = &j->night,
                             .result = BZ_NEW(&j->arena, bz_night_result, j->night.n_systems),
                             .failure = BZ_NEW(&j->arena, bz_failure, FAILURES),
                             .tolerance = tolerance};
    if (bz_fleet_queue(j, &m.queued, &m.n_queued, &no_slurm)) {
        m.n_queued = 0;
        warn(&m, bz_arena_str(&j->arena, no_slurm.text));
    }
    load_merged(&m);
    for (int i = 0; i < j->night.n_systems; i++)
        if (make_kind(&m, &j->night.system[i], tolerance >= 0, &out->result[i], err))
            return -1;
    bz_changes_sort(out);
    return 0;
}
