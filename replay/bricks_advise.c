/* Which system for a model, and which model for a system, by the records of sequences, and what systems cost. */
#include "base/sort.h"
#include "replay/replay.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct advised {
    const char *model, *system, *how;
    double seconds, dollars; /* for 1000 runs; NAN */
    int number;              /* of the model */
} advised;

typedef struct advising {
    const bz_brick_replays *r;
    bz_bricks *b;
    const bz_brick_rules *rules;
    const struct bz_price_list *prices;
    bz_arena *arena;
    advised *row;
    int n;
} advising;

/* The fastest plan measured in the setting; NAN. */
static int find_time(advising *a, const bz_system *system, const char *key, double *out, bz_error *err)
{
    bz_record *record;
    size_t n;
    *out = NAN;
    if (bz_perfdb_variants(a->r->db, system, bz_brick_problem(key, a->arena), a->arena, &record, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (record[i].status == BZ_RECORD_OK && bz_setting_same(&record[i].setting, &a->r->setting))
            *out = fmin(*out, record[i].median);
    return 0;
}

static int add_system(advising *a, const bz_system *system, bz_error *err)
{
    bz_bricks *b = a->b;
    for (int i = 0; i < b->n; i++)
        if (find_time(a, system, b->brick[i].key, &b->brick[i].seconds, err))
            return -1;
    for (int m = 0; m < b->n_models; m++) {
        double whole, built = bz_bricks_build(b, m, a->rules);
        if (find_time(a, system, b->model[m].key, &whole, err))
            return -1;
        double seconds = isfinite(whole) ? whole : built;
        int known = 0;
        for (int i = 0; i < b->model[m].n; i++)
            known += isfinite(b->brick[b->model[m].brick[i]].seconds);
        if (!known && !isfinite(seconds))
            continue;
        BZ_ARENA_ADD(a->arena, a->row, a->n) = (advised){
            b->model[m].name,
            system->name,
            isfinite(whole)   ? "measured"
            : isfinite(built) ? "by its sequences"
                              : bz_arena_printf(a->arena, "%d of %d sequences measured", known, b->model[m].n),
            seconds,
            bz_price_of(a->prices, system->name) / 3600 * seconds * 1000,
            m};
    }
    return 0;
}

static int compare_times(const advised *x, const advised *y)
{
    if (isnan(x->seconds) || isnan(y->seconds))
        return isnan(x->seconds) - isnan(y->seconds);
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

BZ_SORTS(by_model, advised, BZ_THEN(p->number - q->number, compare_times(p, q)));
BZ_SORTS(by_time, advised, compare_times(p, q));

int bz_bricks_advise(const bz_brick_replays *r, const char *system, const struct bz_price_list *prices, bz_bricks *b,
                     const bz_brick_rules *rules, bz_arena *arena, const bz_sheet **out, bz_error *err)
{
    static const char COLUMNS[] = "model|system|time:s|dollars=$ for 1000 runs|how";
    advising a = {.r = r, .b = b, .rules = rules, .prices = prices, .arena = arena};
    const bz_system **list, *given = NULL;
    size_t n;
    int rc = bz_perfdb_known(r->db, system, &given, err) || bz_perfdb_systems(r->db, arena, &list, &n, err) ? -1 : 0;
    for (size_t i = 0; !rc && i < n; i++)
        if (!given || !strcmp(given->name, list[i]->name))
            rc = add_system(&a, list[i], err);
    if (a.n)
        qsort(a.row, (size_t)a.n, sizeof *a.row, given ? by_time : by_model);
    bz_sheet *s = bz_sheet_new(
        arena, "advice",
        given ? "Models on this system, the fastest first" : "Systems for each model, the fastest first", COLUMNS);
    for (int i = 0; i < a.n; i++)
        BZ_SHEET_ADD(s, BZ_TEXT(a.row[i].model), BZ_TEXT(bz_arena_str(arena, a.row[i].system)),
                     BZ_NUMBER(a.row[i].seconds),
                     BZ_TEXT(isfinite(a.row[i].dollars) ? bz_arena_printf(arena, "%.4g", a.row[i].dollars) : NULL),
                     BZ_TEXT(a.row[i].how));
    *out = s;
    return rc;
}
