/* What the library takes by itself: a program that leaves the choice to it gets its own pick, not the best there is. */
#include "bound/bound.h"

#include <math.h>
#include <string.h>

typedef struct known {
    bz_pick free, plain;
} known;

typedef struct making {
    const bz_bound *b;
    bz_perfdb *db;
    const bz_system *system;
    bz_dtype dtype;
    bool training;
    bz_arena *arena;
    bz_map problems, layers;
    known *of_problem, *of_layer;
    int n_problems, n_layers;
} making;

static known *add_known(making *m, known **list, int *n)
{
    BZ_ARENA_ROOM(m->arena, *list, *n);
    return &(*list)[(*n)++];
}

static int layout_rank(const char *layout, bool plain)
{
    static const char *const ORDER[2][3] = {{"any", "packed", "plain"}, {"plain", "any", "packed"}};
    int rank = 0;
    while (rank < 3 && strcmp(ORDER[plain][rank], layout) != 0)
        rank++;
    return rank;
}

int bz_pick_rank(const bz_record *r, bool training)
{
    return training && r->chosen_training ? 2 : r->chosen;
}

/* First comes the layout, then what the library would take in it; a plain BLAS only where nothing else is known. */
static bool is_better(const making *m, const bz_record *r, const bz_record *than, bool plain)
{
    if (!than)
        return true;
    bool blas = !strcmp(r->variant.backend, "cblas"), blas_than = !strcmp(than->variant.backend, "cblas");
    int rank = layout_rank(r->variant.layout, plain), rank_than = layout_rank(than->variant.layout, plain);
    if (blas != blas_than)
        return !blas;
    if (rank != rank_than)
        return rank < rank_than;
    int taken = bz_pick_rank(r, m->training), taken_than = bz_pick_rank(than, m->training);
    return taken != taken_than ? taken > taken_than : bz_record_busy(r) < bz_record_busy(than);
}

/* What was given up as hopeless may be the library's pick all the same. */
static bool may_be_picked(const making *m, const bz_record *r)
{
    return (r->status == BZ_RECORD_OK || (r->status == BZ_RECORD_DROPPED && r->provenance == BZ_PROVENANCE_MEASURED)) &&
           r->median > 0 && r->setting.threads == m->b->setting.threads;
}

static bool same_variant(const bz_variant *a, const bz_variant *b)
{
    return !strcmp(a->backend, b->backend) && !strcmp(a->algorithm, b->algorithm) && !strcmp(a->layout, b->layout) &&
           !strcmp(a->math, b->math);
}

static bz_pick pick_record(const making *m, const bz_record *r, size_t n, bool plain)
{
    const bz_record *best = NULL, *cold = NULL;
    for (size_t i = 0; i < n; i++)
        if (may_be_picked(m, &r[i]) && r[i].setting.cache == BZ_CACHE_HOT && is_better(m, &r[i], best, plain))
            best = &r[i];
    if (!best || !bz_record_is_time(best)) /* its one round is no time; and another record is not its pick's */
        return (bz_pick){.seconds = NAN, .low = NAN, .high = NAN, .cold = NAN};
    for (size_t i = 0; i < n; i++)
        if (bz_record_is_time(&r[i]) && r[i].setting.threads == m->b->setting.threads &&
            r[i].setting.cache == BZ_CACHE_COLD && same_variant(&r[i].variant, &best->variant))
            cold = &r[i];
    bool told = best->low > 0 && best->high >= best->low;
    double busy = bz_record_busy(best), share = busy / best->median;
    return (bz_pick){.seconds = busy,
                     .low = told ? best->low * share : busy,
                     .high = told ? best->high * share : busy,
                     .cold = cold ? fmax(cold->median, busy) : NAN,
                     .calls = 1,
                     .variant = best->variant.algorithm};
}

static void count_bytes(const bz_problem *p, bz_pick *pick)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    for (int i = 0; i < n; i++)
        *(list[i].constant ? &pick->weights : &pick->data) += (double)list[i].count * bz_dtype_bits(list[i].dtype) / 8;
}

static int pick_problem(making *m, const bz_problem *p, const char *text, known *out, bz_error *err)
{
    bz_record *r;
    size_t n;
    uint32_t at = bz_map_get(&m->problems, text, strlen(text));
    if (at != BZ_MAP_NONE) {
        *out = m->of_problem[at];
        return 0;
    }
    if (bz_perfdb_variants(m->db, m->system, text, m->arena, &r, &n, err))
        return -1;
    bz_map_add(&m->problems, text, strlen(text), (uint32_t)m->n_problems);
    *out = (known){pick_record(m, r, n, false), pick_record(m, r, n, true)};
    count_bytes(p, &out->free);
    count_bytes(p, &out->plain);
    *add_known(m, &m->of_problem, &m->n_problems) = *out;
    return 0;
}

static void add_pick(bz_pick *sum, const bz_pick *p)
{
    sum->seconds += p->seconds;
    sum->low += p->low;
    sum->high += p->high;
    sum->cold += p->cold;
    sum->weights += p->weights;
    sum->data += p->data;
    sum->calls += p->calls;
    sum->variant = sum->variant ? sum->variant : p->variant;
}

static int pick_alternative(making *m, const bz_alternative *a, known *out, bz_error *err)
{
    *out = (known){0};
    for (int i = 0; i < a->n; i++) {
        known one;
        if (pick_problem(m, &a->problem[i], a->text[i], &one, err))
            return -1;
        add_pick(&out->free, &one.free);
        add_pick(&out->plain, &one.plain);
    }
    return 0;
}

/* The first alternative that the records know whole: those with the fewest calls come first. */
static int pick_lowering(making *m, const bz_lowering *low, known *out, bz_error *err)
{
    *out = (known){0};
    out->free.seconds = out->plain.seconds = low->free ? 0 : NAN;
    for (int i = 0; i < low->n && !isfinite(out->free.seconds); i++)
        if (pick_alternative(m, &low->alternative[i], out, err))
            return -1;
    return 0;
}

static int pick_layer(making *m, const bz_bound_layer *l, known *out, bz_error *err)
{
    const bz_lowering *low = l->lowering;
    bz_lowering *other = NULL;
    uint32_t at = bz_map_get(&m->layers, &l->layer->hash, sizeof l->layer->hash);
    if (at != BZ_MAP_NONE) {
        *out = m->of_layer[at];
        return 0;
    }
    if (m->dtype || !low) {
        low = other = BZ_NEW(m->arena, bz_lowering, 1);
        bz_lower(l->layer, m->dtype ? m->dtype : m->b->dtype, m->arena, other);
    }
    if (pick_lowering(m, low, out, err))
        return -1;
    bz_map_add(&m->layers, &l->layer->hash, sizeof l->layer->hash, (uint32_t)m->n_layers);
    *add_known(m, &m->of_layer, &m->n_layers) = *out;
    return 0;
}

int bz_picks_make(const bz_bound *bound, bz_dtype dtype, bool training, bz_perfdb *db, const bz_system *system,
                  bz_arena *arena, bz_picks *out, bz_error *err)
{
    making m = {.b = bound, .db = db, .system = system, .dtype = dtype, .training = training, .arena = arena};
    int places = dtype ? 0 : bound->fused.n_places, rc = 0;
    known k;
    *out = (bz_picks){dtype, training, BZ_NEW(arena, bz_pick, bound->n), BZ_NEW(arena, bz_pick, bound->n),
                      BZ_NEW(arena, bz_pick, places)};
    for (int i = 0; i < bound->n && !rc; i++) {
        rc = pick_layer(&m, &bound->layer[i], &k, err);
        out->free[i] = k.free;
        out->plain[i] = k.plain;
    }
    for (int g = 0; g < places && !rc; g++) {
        const bz_alternative *a = bound->fused.place[g].price.alternative;
        out->place[g].seconds = NAN;
        if (!a)
            continue;
        rc = pick_alternative(&m, a, &k, err);
        out->place[g] = k.free;
    }
    bz_map_free(&m.problems);
    bz_map_free(&m.layers);
    return rc;
}
