/* What fusion would gain, pattern by pattern: by measured records alone. */
#include "base/sort.h"
#include "bound/cover.h"
#include "explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    const bz_bound *b;
    bz_arena *arena;
    bz_fusion *f;
    int *row;            /* [places]: of its pattern */
    double *layer;       /* [dag]: as written */
    double *place, *one; /* [places]: measured seconds or NAN; the same of one pattern only */
    double *at;          /* [dag] */
    bool *taken;         /* [places] */
} making;

static int find_row(const making *m, const char *pattern)
{
    int r = 0;
    while (r < m->f->n && strcmp(m->f->row[r].pattern, pattern) != 0)
        r++;
    if (r == m->f->n)
        m->f->row[m->f->n++] = (bz_fusion_row){.pattern = pattern, .fused = -1};
    return r;
}

static void sort_places(making *m)
{
    const bz_bound_fused *fused = &m->b->fused;
    for (int g = 0; g < fused->n_places; g++) {
        const bz_bound_place *p = &fused->place[g];
        bool priced = p->price.alternative || p->spare;
        bool modelled = !p->spare && priced && p->price.provenance == BZ_PROVENANCE_MODELLED;
        bz_fusion_row *row = &m->f->row[m->row[g] = find_row(m, p->pattern)];
        row->places++;
        row->spare |= p->spare;
        row->refused += p->refused;
        row->modelled += modelled;
        row->missing += !p->refused && !priced && p->price.missing;
        row->failed += !p->refused && !priced && !p->price.missing;
        if (!priced && (p->price.refused || (!p->refused && !p->price.missing))) {
            row->why = row->why ? row->why : p->price.why;
            row->tried++;
        }
        m->place[g] = priced && !modelled ? p->price.seconds : NAN;
    }
}

/* The bounds with the places that cost place[g]. */
static double cover(making *m, const double *place, double *parallel)
{
    bz_path path;
    BZ_SCOPED(bz_arena) work = {0};
    double sum = bz_bound_cover(m->b, m->layer, place, m->taken, m->at);
    bz_schedule_parallel(m->b->dag, m->at, &work, &path);
    *parallel = path.seconds;
    return sum;
}

static void gain_together(making *m)
{
    double parallel, all = cover(m, m->place, &parallel);
    m->f->sequential = m->b->sequential - all;
    m->f->parallel = m->b->path.seconds - parallel;
    for (int g = 0; g < m->b->fused.n_places; g++) {
        const bz_bound_place *p = &m->b->fused.place[g];
        bz_fusion_row *row = &m->f->row[m->row[g]];
        if (!m->taken[g])
            continue;
        row->covered++;
        row->together += m->place[g];
        for (int i = 0; i < p->n; i++)
            row->written += isfinite(m->layer[p->layer[i]]) ? m->layer[p->layer[i]] : 0;
        row->gain = row->written - row->together;
    }
}

static void gain_alone(making *m)
{
    for (int r = 0; r < m->f->n; r++) {
        bool any = false;
        double parallel;
        for (int g = 0; g < m->b->fused.n_places; g++) {
            m->one[g] = m->row[g] == r ? m->place[g] : NAN;
            any |= isfinite(m->one[g]);
        }
        if (!any)
            continue;
        m->f->row[r].alone = m->b->sequential - cover(m, m->one, &parallel);
        m->f->row[r].alone_parallel = m->b->path.seconds - parallel;
    }
}

/* The difference of two sums that lack too much is no gain. */
static void forget_gains(bz_fusion *f)
{
    f->sequential = f->parallel = NAN;
    for (int r = 0; r < f->n; r++)
        f->row[r].gain = f->row[r].alone = f->row[r].alone_parallel = NAN;
}

/* A place is fused where one call did all of its layers that cost anything; a layer that need not run, where no call did it. */
static void look(making *m, const bz_alignment *a)
{
    int *call = BZ_NEW(m->arena, int, m->b->dag->n), *seen = BZ_NEW(m->arena, int, m->f->n);
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        bool counts = row->kind == BZ_ALIGNED_SPARED || (row->kind == BZ_ALIGNED_FUSED && !row->doubtful);
        for (int k = 0; k < row->n_layers && counts; k++)
            call[m->b->layer[row->layer[k]].node] = i + 1;
    }
    for (int g = 0; g < m->b->fused.n_places; g++) {
        const bz_bound_place *p = &m->b->fused.place[g];
        int by = 0;
        bool one = true;
        for (int i = 0; i < p->n; i++) {
            int c = call[p->layer[i]];
            bool free = m->b->seconds[p->layer[i]] <= 0 && !m->b->unpriced[p->layer[i]];
            one &= free || (c && (!by || c == by));
            by = c ? c : by;
        }
        seen[m->row[g]] += one && by;
    }
    for (int r = 0; r < m->f->n; r++)
        m->f->row[r].fused = seen[r] > m->f->row[r].fused ? seen[r] : m->f->row[r].fused;
}

BZ_SORTS(more_gain, bz_fusion_row,
         BZ_THEN(BZ_ORDER(q->gain, p->gain), BZ_THEN(BZ_ORDER(q->alone, p->alone), strcmp(p->pattern, q->pattern))));

void bz_fusion_make(const bz_bound *bound, const bz_ladder *ladder, int n, bz_arena *arena, bz_fusion *out)
{
    int places = bound->fused.n_places;
    making m = {.b = bound,
                .arena = arena,
                .f = out,
                .row = BZ_NEW(arena, int, places),
                .layer = bz_bound_seconds(bound, arena),
                .place = BZ_NEW(arena, double, places),
                .one = BZ_NEW(arena, double, places),
                .at = BZ_NEW(arena, double, bound->dag->n),
                .taken = BZ_NEW(arena, bool, places)};
    *out = (bz_fusion){.row = BZ_NEW(arena, bz_fusion_row, places)};
    sort_places(&m);
    gain_together(&m);
    gain_alone(&m);
    if (!bz_bound_goal(bound).enough || !bz_bound_written(bound).enough)
        forget_gains(out);
    for (int i = 0; i < n; i++)
        if (ladder[i].alignment)
            look(&m, ladder[i].alignment);
    BZ_QSORT(out->row, out->n, more_gain);
}
