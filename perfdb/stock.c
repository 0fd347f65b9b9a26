/* What a database has: of each system how much, and records picked and put in order for people. */
#include "base/sort.h"
#include "perfdb/perfdb.h"

#include <stdlib.h>
#include <string.h>

typedef struct counting {
    bz_stock *stock;
    char *problem; /* the last one seen, as its records come in a row */
} counting;

static void count_threads(bz_stock *s, int threads)
{
    int at = s->n_threads;
    for (int i = 0; i < s->n_threads; i++)
        if (s->threads[i] == threads)
            return;
    if (at == BZ_STOCK_THREADS)
        return;
    for (s->n_threads++; at && s->threads[at - 1] > threads; at--)
        s->threads[at] = s->threads[at - 1];
    s->threads[at] = threads;
}

static int count_newest(void *user, const bz_record *r)
{
    counting *c = user;
    bz_stock *s = c->stock;
    s->variants++;
    s->ok += r->status == BZ_RECORD_OK;
    s->from[r->provenance] = true;
    count_threads(s, r->setting.threads);
    if (r->date > s->newest)
        s->newest = r->date;
    if (!c->problem || strcmp(c->problem, r->problem) != 0) {
        free(c->problem);
        c->problem = bz_copy(r->problem);
        s->problems++;
    }
    return 0;
}

static int count_record(void *user, const bz_record *r)
{
    (void)r;
    ((counting *)user)->stock->records++;
    return 0;
}

int bz_perfdb_stocks(bz_perfdb *db, bz_arena *arena, bz_stock **list, size_t *n, bz_error *err)
{
    const bz_system **system;
    if (bz_perfdb_systems(db, arena, &system, n, err))
        return -1;
    *list = BZ_NEW(arena, bz_stock, *n);
    int rc = 0;
    for (size_t i = 0; i < *n && !rc; i++) {
        counting c = {.stock = &(*list)[i]};
        bz_perfdb_filter f = {.system = c.stock->system = system[i]};
        rc = bz_perfdb_scan(db, &f, count_newest, &c, err);
        f.history = true;
        rc = rc || bz_perfdb_scan(db, &f, count_record, &c, err);
        free(c.problem);
    }
    return rc ? -1 : 0;
}

typedef struct picking {
    const bz_perfdb_choice *choice;
    bz_arena *arena;
    bz_record *list;
    size_t n;
} picking;

static int pick_record(void *user, const bz_record *r)
{
    picking *p = user;
    const bz_perfdb_choice *c = p->choice;
    if ((c->backend && strcmp(c->backend, r->variant.backend) != 0) || (!c->failed && r->status != BZ_RECORD_OK))
        return 0;
    for (int i = 0; i < c->n_words; i++)
        if (!strstr(r->problem, c->word[i]))
            return 0;
    BZ_ARENA_ADD(p->arena, p->list, p->n) = bz_record_copy(r, p->arena);
    return 0;
}

/* By problem, then system, then the fastest first; what failed comes last. */
static int by_problem_and_time(const void *a, const void *b)
{
    const bz_record *x = a, *y = b;
    int order = strcmp(x->problem, y->problem);
    if (!order)
        order = bz_system_compare(x->system, y->system);
    bool ok_x = x->status == BZ_RECORD_OK, ok_y = y->status == BZ_RECORD_OK;
    if (!order && ok_x != ok_y)
        order = ok_x ? -1 : 1;
    if (!order && ok_x && x->median != y->median)
        order = x->median < y->median ? -1 : 1;
    if (!order)
        order = strcmp(x->variant.algorithm, y->variant.algorithm);
    return order ? order : x->date > y->date ? -1 : x->date < y->date;
}

int bz_perfdb_pick(bz_perfdb *db, const bz_perfdb_choice *choice, bz_arena *arena, bz_record **list, size_t *n,
                   bz_error *err)
{
    picking p = {.choice = choice, .arena = arena};
    if (bz_perfdb_scan(db, &choice->filter, pick_record, &p, err))
        return -1;
    BZ_QSORT(p.list, p.n, by_problem_and_time);
    *list = p.list;
    *n = p.n;
    return 0;
}
