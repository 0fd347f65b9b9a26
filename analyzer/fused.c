/* The fused bound: the cheapest cover of a model by layers and groups of layers. */
#include "analyzer/bound.h"

#include "generator/cover.h"

#include <math.h>
#include <string.h>

typedef struct covering {
    const bz_bound_input *in;
    bz_bound *b;
    bz_arena *arena;
    const bz_plan_place *place;
    const bz_plan_layer *item;
    int n;
    bz_cover_group *group; /* [n] */
    bz_layer_price *price; /* [n] */
    bool *taken;           /* [n] */
} covering;

/* ---- by records ----------------------------------------------------------------------------- */

static void price_groups(covering *c)
{
    bz_bound_fused *f = &c->b->fused;
    for (int g = 0; g < c->n; g++) {
        const bz_plan_layer *item = &c->item[c->place[g].group];
        bz_prices_layer(c->in->prices, item, &c->price[g]);
        c->price[g].seconds = bz_tick(c->price[g].seconds);
        c->group[g] = (bz_cover_group){c->place[g].layer, c->place[g].n, c->price[g].seconds};
        f->refused += !item->lowering.n;
        f->missing += item->lowering.n && !c->price[g].alternative && c->price[g].missing;
    }
}

/* A group runs when all that its layers read is there: its cost stands at its last layer, which alone is
 * read from outside. */
static void keep_groups(covering *c, const bool *unpriced)
{
    bz_bound_fused *f = &c->b->fused;
    const bz_dag *dag = c->b->dag;
    double *seconds = bz_arena_dup(c->arena, c->b->seconds, (size_t)dag->n * sizeof *seconds);
    bool *covered = BZ_NEW(c->arena, bool, dag->n);
    bz_path path;
    f->group = BZ_NEW(c->arena, bz_bound_group, c->n);
    for (int g = 0; g < c->n; g++) {
        const bz_plan_place *place = &c->place[g];
        if (!c->taken[g])
            continue;
        f->group[f->n++] = (bz_bound_group){c->item[place->group].pattern, place->layer, place->n, c->price[g]};
        f->covered += place->n;
        f->modelled += c->price[g].provenance == BZ_PROVENANCE_MODELLED;
        for (int i = 0; i < place->n; i++) {
            covered[place->layer[i]] = true;
            seconds[place->layer[i]] = 0;
        }
        seconds[place->layer[place->n - 1]] = c->price[g].seconds;
    }
    for (int i = 0; i < dag->n; i++)
        f->unpriced += unpriced[i] && !covered[i];
    bz_schedule_parallel(dag, seconds, c->arena, &path);
    f->parallel = path.seconds;
}

/* ---- by rooflines --------------------------------------------------------------------------- */

/* How often a layer's result is read by later layers of the group. */
static int readers(const covering *c, const bz_plan_place *place, int at)
{
    const bz_dag *dag = c->b->dag;
    int n = 0;
    for (int i = at + 1; i < place->n; i++)
        for (int p = dag->first[place->layer[i]]; p < dag->first[place->layer[i] + 1]; p++)
            n += dag->pred[p] == place->layer[at];
    return n;
}

/* What a group cannot do without. What goes from layer to layer inside need not be written, nor read; where
 * there is a product, the steps around it, and their constants, may be folded into its weights. */
static double group_roofline(const covering *c, const bz_plan_place *place)
{
    double arithmetic = 0, products = 0, bytes = 0;
    bz_dtype dtype = c->in->dtype;
    for (int i = 0; i < place->n; i++) {
        const bz_layer *l = &c->in->layers->layer[place->layer[i]];
        double work = bz_peaks_arithmetic(c->in->peaks, l, dtype);
        if (!l->priced)
            return NAN;
        arithmetic += work;
        products += l->macs ? work : 0;
        bytes += bz_peaks_bytes(l, NULL, dtype);
        for (int k = 0; k < l->n_in && !l->macs; k++)
            bytes -= l->in_constant[k] ? bz_peaks_bytes(l, &l->in[k], dtype) : 0;
        if (i < place->n - 1)
            bytes -= (1 + readers(c, place, i)) * bz_peaks_bytes(l, &l->out[0], dtype);
    }
    return bz_tick(fmax(products > 0 ? products : arithmetic, bz_peaks_traffic(c->in->peaks, fmax(bytes, 0))));
}

static void cover_rooflines(covering *c)
{
    const bz_bound *b = c->b;
    double *seconds = BZ_NEW(c->arena, double, b->dag->n), rest = b->hardware;
    bool *taken = BZ_NEW(c->arena, bool, c->n);
    for (int i = 0; i < b->n; i++)
        if (isfinite(b->layer[i].hardware)) {
            seconds[b->layer[i].node] += b->layer[i].hardware * b->layer[i].times;
            rest -= b->layer[i].hardware * b->layer[i].times;
        }
    for (int g = 0; g < c->n; g++)
        c->group[g].seconds = group_roofline(c, &c->place[g]);
    c->b->fused.hardware = rest + bz_cover(b->dag->n, seconds, c->n, c->group, taken, c->arena);
}

void bound_fuse(const bz_bound_input *in, const bool *unpriced, bz_arena *arena, bz_bound *b)
{
    covering c = {.in = in, .b = b, .arena = arena};
    c.n = bz_plan_places(in->plan, in->number, &c.place);
    bz_plan_layers(in->plan, &c.item);
    c.group = BZ_NEW(arena, bz_cover_group, c.n);
    c.price = BZ_NEW(arena, bz_layer_price, c.n);
    c.taken = BZ_NEW(arena, bool, c.n);
    b->fused = (bz_bound_fused){.wanted = true, .hardware = NAN};
    price_groups(&c);
    double *seconds = bz_arena_dup(arena, b->seconds, (size_t)b->dag->n * sizeof *seconds);
    for (int i = 0; i < b->dag->n; i++)
        seconds[i] = unpriced[i] && !(seconds[i] > 0) ? NAN : seconds[i];
    b->fused.sequential = bz_cover(b->dag->n, seconds, c.n, c.group, c.taken, arena);
    keep_groups(&c, unpriced);
    if (!in->peaks->why)
        cover_rooflines(&c);
}
