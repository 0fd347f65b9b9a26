/* What context is worth: sequences of layers that were measured as such, beside the sum of their layers by themselves. A layer by itself
 * finds its operands in the caches; in a sequence it finds what the one before left there, in the layout that one left. */
#include "analysis/steps.h"
#include "base/units.h"
#include "bricks/bricks.h"

#include <math.h>

typedef struct context {
    const analyze_work *w;
    const bz_bound *b;
    bz_bricks bricks;
    const int *layer; /* of the places */
    double *seconds;  /* [bricks.n]: in sequence; NAN */
} context;

/* The fastest plan that was measured in this setting. */
static int read_records(context *c, bz_error *err)
{
    const bz_request *r = c->w->request;
    c->seconds = BZ_NEW(c->w->arena, double, c->bricks.n);
    for (int i = 0; i < c->bricks.n; i++) {
        bz_record *record;
        size_t n;
        c->seconds[i] = NAN;
        if (c->bricks.brick[i].n < 2)
            continue;
        if (bz_perfdb_variants(r->db, c->w->system, bz_brick_problem(c->bricks.brick[i].key, c->w->arena), c->w->arena,
                               &record, &n, err))
            return -1;
        for (size_t k = 0; k < n; k++)
            if (record[k].status == BZ_RECORD_OK && bz_setting_same(&record[k].setting, &r->setting))
                c->seconds[i] = fmin(c->seconds[i], record[k].median);
    }
    return 0;
}

/* The cover with most layers in measured sequences, and of these with the fewest: taken[i] is the one that ends before place i, or -1. */
static void choose(const context *c, int *taken)
{
    const bz_brick_model *m = &c->bricks.model[0];
    int64_t *score = BZ_NEW(c->w->arena, int64_t, m->covered + 1);
    int next = 0;
    for (int i = 1; i <= m->covered; i++)
        taken[i] = -1, score[i] = -1;
    for (int i = 0; i < m->covered; i++) {
        if (score[i] > score[i + 1])
            score[i + 1] = score[i], taken[i + 1] = -1;
        for (; next < m->n && m->at[next] == i; next++) {
            int n = c->bricks.brick[m->brick[next]].n;
            int64_t would = score[i] + ((int64_t)n << 24) - 1;
            if (isfinite(c->seconds[m->brick[next]]) && would > score[i + n])
                score[i + n] = would, taken[i + n] = next;
        }
    }
}

typedef struct sums {
    double in_sequence, same, others; /* seconds: of measured sequences; of their layers by themselves; of the others */
    int layers, alone, unpriced;
} sums;

static void add_row(const context *c, bz_sheet *s, int at, int n, double took, sums *t)
{
    double alone = 0;
    int unpriced = 0;
    for (int i = at; i < at + n; i++) {
        alone += c->b->seconds[c->layer[i]];
        unpriced += c->b->unpriced[c->layer[i]];
    }
    if (!isfinite(took)) {
        t->others += alone;
        t->alone += n;
        t->unpriced += unpriced;
        return;
    }
    alone = unpriced ? (double)NAN : alone; /* a sum that lacks a layer is none */
    t->in_sequence += took;
    t->same += alone;
    t->layers += n;
    BZ_SHEET_ADD(s, BZ_TEXT(c->b->layers->layer[c->layer[at]].name), BZ_NUMBER(n), BZ_NUMBER(took), BZ_NUMBER(alone),
                 BZ_NUMBER(took / alone));
}

static void fill(const context *c, bz_sheet *s, sums *t)
{
    const bz_brick_model *m = &c->bricks.model[0];
    int *taken = BZ_NEW(c->w->arena, int, m->covered + 1), *ends = BZ_NEW(c->w->arena, int, m->covered + 1), n = 0;
    choose(c, taken);
    for (int end = m->covered; end > 0; end = taken[end] < 0 ? end - 1 : m->at[taken[end]])
        ends[n++] = end;
    for (int i = n - 1, at = 0; i >= 0; at = ends[i--])
        add_row(c, s, at, ends[i] - at, taken[ends[i]] < 0 ? NAN : c->seconds[m->brick[taken[ends[i]]]], t);
}

int analyze_context(analyze_work *w, const analyze_place *at)
{
    static const char COLUMNS[] =
        "layer=from layer|layers:n|time:s=in sequence|alone:s=each by itself|ratio:%=of these";
    const bz_request *r = w->request;
    context c = {.w = w, .b = &at->item->bound};
    sums t = {0};
    if (!r || r->in_sequence < 1 || !r->db || !w->system || w->rebuilt)
        return 0;
    c.bricks = (bz_bricks){.most = r->in_sequence, .overlap = true};
    bz_bricks_add(&c.bricks, w->layers[at->number], w->name[at->number]);
    int *layer = BZ_NEW(w->arena, int, c.b->layers->n), n = 0;
    for (int i = 0; i < c.b->layers->n; i++)
        if (c.b->layers->layer[i].class != BZ_CONSTANT)
            layer[n++] = i;
    c.layer = layer;
    int rc = read_records(&c, w->err);
    if (!rc) {
        bz_sheet *s = analyze_sheet(w, at, "in-sequence", "Sequences that were measured as such", COLUMNS);
        fill(&c, s, &t);
        s->note = t.layers
                      ? bz_arena_printf(
                            w->arena,
                            "%d of %d layers in sequences of at most %d take %s, each by itself %s; with the others "
                            "the model takes %s%s in sequence, which a program reaches and which is no lower bound",
                            t.layers, t.layers + t.alone, r->in_sequence, BZ_SAY_TIME(t.in_sequence),
                            isfinite(t.same) ? BZ_SAY_TIME(t.same) : "an unknown time", t.unpriced ? "more than " : "",
                            BZ_SAY_TIME(t.in_sequence + t.others))
                      : "no sequence of this model was measured: 'benanza bricks --replay' does";
    }
    bz_bricks_free(&c.bricks);
    return rc;
}
