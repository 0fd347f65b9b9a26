/* Curves through what was measured, and a straight line for each level of memory. */
#include "runtime/problem.h"
#include "transfer/ways.h"

#include <math.h>
#include <string.h>

typedef struct reading {
    bz_perfdb *db;
    const bz_system_facts *facts;
    bz_arena *arena;
    bz_transfers *out;
} reading;

/* `always`: it is one of those that are always measured. */
static int read_point(reading *r, const transfer_way *w, int64_t x, bool always, bz_transfer_curve *c, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_problem p;
    const char *why;
    const bz_record *best;
    transfer_text(w, x, &text);
    int rc = bz_problem_parse(bz_buf_text(&text), &p, err) ||
             transfer_fastest(r->db, r->out->system, bz_buf_text(&text), &r->out->setting, r->arena, &best, &why, err);
    if (rc)
        return -1;
    if (!best && why) {
        r->out->failed++;
        r->out->why = why;
    } else if (!best) {
        r->out->missing += always;
    } else {
        double size = transfer_size(w, x), loads = w->arrays ? 1 : (double)bz_problem_hops(&p);
        c->point[c->n++] = (bz_transfer_point){.size = size,
                                               .bytes = w->arrays ? size : 0,
                                               .seconds = best->median / loads,
                                               .packed = (double)best->workspace / size,
                                               .variant = best->variant.algorithm,
                                               .marked = bz_record_marked(best)};
    }
    return 0;
}

/* Least squares of the shares by which the line misses the points, so that small transfers count as much as large ones.
 * With u = 1 / seconds and v = bytes / seconds the line is start · u + v / rate = 1. Neither can be negative. */
static void fit_line(const bz_transfer_point *p, int n, bz_transfer_fit *out)
{
    double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0, start = 0, slope;
    for (int i = 0; i < n; i++) {
        double u = 1 / p[i].seconds, v = p[i].bytes / p[i].seconds;
        uu += u * u;
        uv += u * v;
        vv += v * v;
        u1 += u;
        v1 += v;
    }
    double determinant = uu * vv - uv * uv;
    if (n > 1 && determinant > 1e-9 * uu * vv)
        start = (u1 * vv - v1 * uv) / determinant;
    if (!(start > 0))
        start = 0;
    slope = (v1 - start * uv) / vv;
    if (!(slope > 0)) { /* more bytes take no longer */
        slope = 0;
        start = u1 / uu;
    }
    out->start = start;
    out->rate = slope > 0 ? 1 / slope : INFINITY;
    out->half = start * out->rate;
    out->furthest = n > 2 ? 0 : (double)NAN;
    for (int i = 0; i < n; i++)
        out->furthest = fmax(out->furthest, fabs(1 - (start + p[i].bytes * slope) / p[i].seconds));
    if (n <= 2)
        out->furthest = NAN;
}

static void fit_loads(const bz_transfer_point *p, int n, bz_transfer_fit *out)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[i].seconds;
    out->start = sum / n;
    out->rate = out->half = NAN;
    out->furthest = n > 2 ? 0 : (double)NAN;
    for (int i = 0; i < n && n > 2; i++)
        out->furthest = fmax(out->furthest, fabs(p[i].seconds / out->start - 1));
}

static void fit(bz_transfer_curve *c, const char *level, double from, double to)
{
    int first = 0, n = 0;
    while (first < c->n && c->point[first].size < from)
        first++;
    while (first + n < c->n && c->point[first + n].size <= to)
        n++;
    if (!n || c->n_fits == BZ_TRANSFER_FITS)
        return;
    bz_transfer_fit *f = &c->fit[c->n_fits++];
    const bz_transfer_point *p = &c->point[first];
    *f = (bz_transfer_fit){.level = level, .variant = p[n - 1].variant, .n = n, .to = to};
    f->packed = p[n - 1].packed > 0 ? p[n - 1].packed : (double)NAN;
    (p->bytes > 0 ? fit_line : fit_loads)(p, n, f);
}

static void fit_all(const reading *r, const transfer_way *w, bz_transfer_curve *c)
{
    way_level level[WAY_LEVELS_MOST];
    int n = transfer_levels(r->facts, r->out->setting.threads, level);
    bool levels = w->sizes != WAY_STEPS;
    if (!levels) {
        fit(c, "small", 0, WAY_SMALL);
        fit(c, "large", WAY_SMALL + 1, INFINITY);
    }
    for (int i = 0; i < n && levels; i++)
        fit(c, bz_arena_str(r->arena, level[i].name), level[i].from, level[i].to);
}

static int read_way(reading *r, const transfer_way *w, bz_transfer_curve *c, bz_error *err)
{
    const int threads = r->out->setting.threads;
    int64_t x[WAY_MOST_SIZES];
    int n = transfer_asked(w, r->facts, threads) ? transfer_sizes(w, r->facts, threads, x) : 0;
    *c = (bz_transfer_curve){.way = w->name, .tells = w->tells, .point = BZ_NEW(r->arena, bz_transfer_point, n)};
    for (int i = 0; i < n; i++)
        if (!(i % WAY_PARTS && x[i] == x[i - 1]) && read_point(r, w, x[i], i % WAY_PARTS == 0, c, err))
            return -1;
    fit_all(r, w, c);
    return 0;
}

int bz_transfers_read(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts, const bz_setting *setting,
                      bz_arena *arena, bz_transfers *out, bz_error *err)
{
    reading r = {db, facts, arena, out};
    int n_ways = 0;
    while (transfer_ways[n_ways].name)
        n_ways++;
    *out = (bz_transfers){.system = system, .setting = *setting, .why = ""};
    out->curve = BZ_NEW(arena, bz_transfer_curve, n_ways);
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        if (read_way(&r, w, &out->curve[out->n], err))
            return -1;
        out->points += out->curve[out->n].n;
        out->n += out->curve[out->n].n > 0;
    }
    return 0;
}

/* Where the latency is half-way from that of the last cache, the least at four times the second one and beyond, to that of memory. */
static double half_way(const bz_transfer_curve *c, double from, double most)
{
    double least = INFINITY, memory = c->n ? c->point[c->n - 1].seconds : 0;
    int i = 0;
    for (int k = 0; k < c->n; k++)
        if (c->point[k].size >= from && c->point[k].size <= most)
            least = fmin(least, c->point[k].seconds);
    if (!c->n || c->point[c->n - 1].size < 2 * most || !(memory > 1.5 * least))
        return INFINITY;
    while (c->point[i].size < from || c->point[i].seconds < (least + memory) / 2)
        i++;
    if (!i)
        return INFINITY;
    const bz_transfer_point *a = &c->point[i - 1], *b = &c->point[i];
    if (a->seconds >= (least + memory) / 2)
        return a->size;
    return a->size * pow(b->size / a->size, ((least + memory) / 2 - a->seconds) / (b->seconds - a->seconds));
}

static double steepness(const bz_transfer_point *a, const bz_transfer_point *b)
{
    return log(b->seconds / a->seconds) / log(b->size / a->size);
}

/* By how much a straight line between point i and the next can be off in the middle, as a logarithm. Where the slopes before and behind join
 * in one corner: as far as that is from the line. Where the line is steeper than both there is a jump: as far as the two slopes are from
 * it when they are drawn on to the middle. */
static double bend(const bz_transfer_curve *c, int i)
{
    const bz_transfer_point *p = &c->point[i];
    double own = steepness(p, p + 1), before = i ? steepness(p - 1, p) : own,
           behind = i + 2 < c->n ? steepness(p + 1, p + 2) : own;
    return (fabs(own - before) + fabs(own - behind)) / 4 * log(p[1].size / p[0].size);
}

/* The number of a size among those that there are; -1: it is none. */
static int number_of(const transfer_way *w, const int64_t *x, int n, double size)
{
    for (int i = 0; i < n; i++)
        if (transfer_size(w, x[i]) == size)
            return i;
    return -1;
}

/* Which of a way's sizes to measure for point i of its curve, of whose points the numbers among the sizes are `at`; -1: none. */
typedef int wanted_size(const bz_transfer_curve *c, int i, const int *at);

static int middle_of_bend(const bz_transfer_curve *c, int i, const int *at)
{
    static const double BENT = 0.08;
    bool parted = i + 1 < c->n && at[i] >= 0 && at[i + 1] >= at[i] + 2 && at[i + 1] <= at[i] + WAY_PARTS;
    return parted && bend(c, i) > BENT ? (at[i] + at[i + 1]) / 2 : -1;
}

static int disturbed(const bz_transfer_curve *c, int i, const int *at)
{
    static const double MORE = 1.05;
    for (int k = i + 1; k < c->n; k++)
        if (c->point[i].seconds > MORE * c->point[k].seconds)
            return at[i];
    return -1;
}

static int list_wanted(const bz_transfers *t, const bz_system_facts *facts, wanted_size *wanted, bz_arena *arena,
                       const char *const **out)
{
    const char **list = NULL;
    int found = 0;
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        int64_t x[WAY_MOST_SIZES];
        int at[WAY_MOST_SIZES];
        const bz_transfer_curve *c = bz_transfer_find(t, w->name);
        int n = c ? transfer_sizes(w, facts, t->setting.threads, x) : 0;
        for (int i = 0; n && i < c->n; i++)
            at[i] = number_of(w, x, n, c->point[i].size);
        for (int i = 0; n && i < c->n; i++) {
            int k = wanted(c, i, at);
            if (k >= 0 && !(k && x[k] == x[k - 1]))
                BZ_ARENA_ADD(arena, list, found) = transfer_problem(w, x[k], arena);
        }
    }
    *out = list;
    return found;
}

int bz_transfers_finer(const bz_transfers *t, const bz_system_facts *facts, bz_arena *arena, const char *const **out)
{
    return list_wanted(t, facts, middle_of_bend, arena, out);
}

int bz_transfers_disturbed(const bz_transfers *t, const bz_system_facts *facts, bz_arena *arena,
                           const char *const **out)
{
    return list_wanted(t, facts, disturbed, arena, out);
}

int bz_transfers_caches(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts, bz_arena *arena,
                        const bz_system_facts **out, bz_error *err)
{
    bz_transfers t = {.system = system, .setting = {1, BZ_CACHE_HOT, ""}, .why = ""};
    reading r = {db, facts, arena, &t};
    const transfer_way *w = transfer_ways;
    int64_t x[WAY_MOST_SIZES];
    *out = facts;
    if (facts->n_caches < 3)
        return 0;
    while (strcmp(w->name, "chase_huge") != 0)
        w++;
    int n = transfer_sizes(w, facts, 1, x), last = facts->n_caches - 1;
    bz_transfer_curve c = {.way = w->name, .point = BZ_NEW(arena, bz_transfer_point, n)};
    for (int i = 0; i < n; i += WAY_PARTS)
        if (read_point(&r, w, x[i], true, &c, err))
            return -1;
    double bytes = half_way(&c, 4 * facts->cache[last - 1].bytes, facts->cache[last].bytes) / 2;
    if (!(bytes < facts->cache[last].bytes) || bytes < facts->cache[last - 1].bytes)
        return 0;
    bz_system_facts *f = bz_arena_dup(arena, facts, sizeof *facts);
    f->cache[last].bytes = bytes;
    *out = f;
    return 0;
}

const bz_transfer_curve *bz_transfer_find(const bz_transfers *t, const char *way)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->curve[i].way, way))
            return &t->curve[i];
    return NULL;
}

const bz_transfer_fit *bz_transfer_level(const bz_transfer_curve *c, const char *level)
{
    for (int i = 0; c && i < c->n_fits; i++)
        if (!strcmp(c->fit[i].level, level))
            return &c->fit[i];
    return NULL;
}

double bz_transfer_seconds(const bz_transfer_curve *c, double size)
{
    int above = 0;
    if (!c->n || !(size >= 0))
        return NAN;
    while (above < c->n && c->point[above].size < size)
        above++;
    const bz_transfer_point *b = &c->point[above < c->n ? above : c->n - 1], *a = above ? &c->point[above - 1] : b;
    if (!above) /* far below, it is not known how much of the time is the bytes' */
        return 4 * size >= b->size || b->size <= 1 ? b->seconds : (double)NAN;
    if (above == c->n) /* a load that waits takes as long in memory of any size */
        return b->bytes > 0 ? b->seconds * size / b->size : b->seconds;
    double share = log(size / a->size) / log(b->size / a->size);
    return a->seconds * pow(b->seconds / a->seconds, share);
}

int bz_transfer_cost_of(bz_perfdb *db, const bz_system *system, const char *way, double size, bz_arena *arena,
                        bz_transfer_cost *out, bz_error *err)
{
    bz_transfers t = {.system = system, .setting = {1, BZ_CACHE_HOT, ""}, .why = ""};
    const bz_system_facts *facts = bz_system_facts_read(system ? system->details : NULL, arena);
    const transfer_way *w = transfer_ways;
    bz_transfer_curve c;
    *out = (bz_transfer_cost){0, NAN, NAN, NAN, false};
    while (w->name && strcmp(w->name, way) != 0)
        w++;
    if (!w->name)
        return bz_fail(err, BZ_USAGE, "'benanza transfer' measures no way '%s'", way);
    if (!system)
        return 0;
    if (bz_transfers_caches(db, system, facts, arena, &facts, err) ||
        read_way(&(reading){db, facts, arena, &t}, w, &c, err))
        return -1;
    out->points = c.n;
    out->seconds = bz_transfer_seconds(&c, size);
    for (int i = 0; i < c.n; i++)
        out->marked |= c.point[i].marked;
    for (int i = 0; i < c.n_fits && (!i || c.fit[i - 1].to < size); i++)
        out->start = c.fit[i].start, out->rate = c.fit[i].rate;
    return 0;
}

const bz_sheet *bz_transfers_fits(const bz_transfers *t, bz_arena *arena)
{
    static const char COLUMNS[] =
        "way|level=where|start:s|rate:B/s|half:B=half rate at|furthest:%=off by at most|packed:%=packed to"
        "|variant=fastest|points:n=sizes|tells=what it is";
    bz_sheet *s = bz_sheet_new(arena, "fits", "What it costs: start + bytes / rate", COLUMNS);
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->curve[i].n_fits; k++) {
            const bz_transfer_fit *f = &t->curve[i].fit[k];
            BZ_SHEET_ADD(s, BZ_TEXT(t->curve[i].way), BZ_TEXT(f->level), BZ_NUMBER(f->start), BZ_NUMBER(f->rate),
                         BZ_NUMBER(f->half), BZ_NUMBER(f->furthest), BZ_NUMBER(f->packed), BZ_TEXT(f->variant),
                         BZ_NUMBER(f->n), BZ_TEXT(t->curve[i].tells));
        }
    return s;
}

const bz_sheet *bz_transfers_points(const bz_transfers *t, bz_arena *arena)
{
    static const char COLUMNS[] = "way|size:B|time:s|rate:B/s|variant=fastest|mark";
    bz_sheet *s = bz_sheet_new(arena, "points", "What was measured", COLUMNS);
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->curve[i].n; k++) {
            const bz_transfer_point *p = &t->curve[i].point[k];
            BZ_SHEET_ADD(s, BZ_TEXT(t->curve[i].way), BZ_NUMBER(p->size), BZ_NUMBER(p->seconds),
                         BZ_NUMBER(p->bytes > 0 ? p->bytes / p->seconds : (double)NAN), BZ_TEXT(p->variant),
                         BZ_TEXT(p->marked ? "noisy" : ""));
        }
    return s;
}

const bz_sheet *bz_transfers_asked(const bz_transfers *t, double size, bz_arena *arena)
{
    static const char COLUMNS[] = "way|time:s|rate:B/s|tells=what it is";
    bz_sheet *s = bz_sheet_new(arena, "asked", "What so many bytes take, by the sizes measured", COLUMNS);
    for (int i = 0; i < t->n; i++) {
        double seconds = bz_transfer_seconds(&t->curve[i], size);
        BZ_SHEET_ADD(s, BZ_TEXT(t->curve[i].way), BZ_NUMBER(seconds),
                     BZ_NUMBER(t->curve[i].point->bytes > 0 ? size / seconds : (double)NAN),
                     BZ_TEXT(t->curve[i].tells));
    }
    return s;
}
