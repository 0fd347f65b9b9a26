/* The variants that a profile's calls used, against the best that the database knows. */
#include "base/sort.h"
#include "explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct call_group {
    const bz_call *call; /* the first one */
    const char *variant;
    int64_t calls;
    double *seen; /* [n_seen], room for a power of two */
    int n_seen;
} call_group;

typedef struct making {
    const bz_trace *trace;
    bz_perfdb *db;
    const bz_system *system;
    const bz_setting *setting;
    bz_arena *arena;
    call_group *group;
    int n;
    int64_t steady;
    bz_map map;
    bz_buf key;
} making;

static call_group *find_group(making *m, const bz_call *call, const char *variant)
{
    bz_buf_clear(&m->key);
    bz_buf_printf(&m->key, "%s\n%s", call->text, variant);
    uint32_t at = bz_map_number(&m->map, m->arena, m->key.data, m->key.len);
    if (at == (uint32_t)m->n)
        BZ_ADD(m->group, m->n) = (call_group){.call = call, .variant = bz_arena_str(m->arena, variant)};
    return &m->group[at];
}

static void gather(making *m)
{
    const bz_trace *t = m->trace;
    const bz_events *calls = &t->event[BZ_EVENT_CALL];
    m->steady = bz_steady_iterations(t);
    const double *seconds = bz_call_seconds(t, m->arena);
    for (size_t i = 0; i < calls->n; i++) {
        if (!bz_event_is_steady(t, BZ_EVENT_CALL, i) || !bz_call_works(t, i))
            continue;
        const bz_call *call = bz_call_of(t, i);
        if (!call->problem)
            continue;
        if (!calls->variant[i] && call->problem->kind != BZ_PROBLEM_CONV)
            continue; /* where the library has no choice, or tells of none */
        call_group *g = find_group(m, call, bz_string(t, calls->variant[i]));
        g->calls++;
        if (seconds[i] > 0)
            BZ_ARENA_ADD(m->arena, g->seen, g->n_seen) = seconds[i];
    }
}

const char *bz_variant_name(const char *variant)
{
    const char *mark = strstr(variant, "_ALGO_");
    return mark ? mark + strlen("_ALGO_") : variant;
}

bool bz_variant_used(const char *used, const char *algorithm)
{
    const char *name = bz_variant_name(used), *last = name != used ? strrchr(algorithm, ' ') : NULL;
    return !strcmp(name, last ? last + 1 : algorithm);
}

static bool usable(const making *m, const bz_record *r)
{
    return bz_record_is_time(r) && r->setting.threads == m->setting->threads && r->setting.cache == m->setting->cache;
}

/* Whether the database knows the problem; then the row's times are filled. */
static int look_up(making *m, const char *problem, bool training, bz_regret_row *row, bool *known, bz_error *err)
{
    bz_record *r;
    size_t n;
    int rank = 1;
    *known = false;
    if (bz_perfdb_variants(m->db, m->system, problem, m->arena, &r, &n, err))
        return -1;
    row->used = row->best = row->chosen = NAN;
    for (size_t i = 0; i < n; i++) {
        if (!usable(m, &r[i]))
            continue;
        *known = true;
        double s = bz_tick(bz_record_busy(&r[i]));
        if (!(row->best <= s)) {
            row->best = s;
            row->best_variant = r[i].variant.algorithm;
        }
        if (bz_record_marked(&r[i])) /* what another process slowed down says nothing about what was used */
            continue;
        int taken = bz_pick_rank(&r[i], training);
        if (taken > rank || (taken == rank && !(row->chosen <= s))) {
            rank = taken;
            row->chosen = s;
            row->chosen_variant = r[i].variant.algorithm;
        }
        if (bz_variant_used(row->variant, r[i].variant.algorithm) && !(row->used <= s))
            row->used = s;
    }
    row->problem = *known ? problem : row->problem;
    return 0;
}

/* Where the call took less than the record of its variant says, no more than what it took can be lost. */
static double lost(const bz_regret_row *row)
{
    if (!isfinite(row->used) || !isfinite(row->best))
        return 0;
    double took = row->seen < row->used ? row->seen : row->used;
    return took > row->best ? row->calls * (took - row->best) : 0;
}

static int price_group(making *m, call_group *g, bz_regret_row *row, bz_error *err)
{
    bool known;
    bz_problem inside;
    bool training = g->call->purpose == BZ_FOR_TRAINING;
    *row = (bz_regret_row){.problem = g->call->text, .variant = g->variant, .seen = NAN};
    row->calls = (double)g->calls / (double)m->steady;
    if (g->n_seen)
        row->seen = bz_tick(bz_quantiles_of(g->seen, (size_t)g->n_seen).p50);
    if (look_up(m, g->call->text, training, row, &known, err))
        return -1;
    int pad = known ? 0 : bz_call_unpad(g->call->problem, &inside);
    if (pad) {
        BZ_SCOPED(bz_buf) text = {0};
        bz_problem_print(&inside, &text);
        int rc = look_up(m, bz_arena_str(m->arena, bz_buf_text(&text)), training, row, &known, err);
        if (rc)
            return -1;
        row->padded = known ? pad : 0;
    }
    row->loss = lost(row);
    return 0;
}

static int more_loss(const void *x, const void *y)
{
    const bz_regret_row *a = x, *b = y;
    double s = a->calls * (isfinite(a->seen) ? a->seen : 0), t = b->calls * (isfinite(b->seen) ? b->seen : 0);
    int order = BZ_THEN(BZ_ORDER(b->loss, a->loss), BZ_ORDER(t, s));
    order = BZ_THEN(order, strcmp(a->problem, b->problem));
    return BZ_THEN(order, strcmp(a->variant, b->variant));
}

static void sum(const making *m, bz_regret *out)
{
    double flops[3] = {0, 0, 0};
    for (int i = 0; i < m->n; i++)
        flops[m->group[i].call->purpose] += (double)m->group[i].calls * bz_problem_flops(m->group[i].call->problem);
    /* PyTorch's operators ask the library as for training, whatever they are used for; where its calls were recorded, these tell */
    out->training = flops[BZ_FOR_TRAINING] > flops[BZ_FOR_INFERENCE] || (!m->n && bz_recorder_is_pytorch(m->trace));
    for (int i = 0; i < out->n; i++) {
        const bz_regret_row *r = &out->row[i];
        out->calls += r->calls;
        if (isfinite(r->best) && r->seen < r->best)
            out->faster += r->calls * (r->best - r->seen);
        if (!isfinite(r->used) || !isfinite(r->best))
            continue;
        out->known += r->calls;
        out->used += r->calls * r->used;
        out->best += r->calls * r->best;
        out->chosen += r->calls * (isfinite(r->chosen) ? r->chosen : r->used);
        out->loss += r->loss;
    }
    BZ_QSORT(out->row, out->n, more_loss);
}

int bz_regret_make(const bz_trace *trace, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                   bz_arena *arena, bz_regret *out, bz_error *err)
{
    making m = {.trace = trace, .db = db, .system = system, .setting = setting, .arena = arena};
    int rc = 0;
    gather(&m);
    *out = (bz_regret){.row = BZ_NEW(arena, bz_regret_row, m.n), .n = m.n};
    for (int i = 0; i < m.n && !rc; i++)
        rc = price_group(&m, &m.group[i], &out->row[i], err);
    if (!rc)
        sum(&m, out);
    free(m.group);
    bz_map_free(&m.map);
    bz_buf_free(&m.key);
    return rc;
}
