/* The fused bound: the cheapest cover of a model by layers and groups of layers. */
#include "bound/cover.h"

#include <math.h>

typedef struct covering {
    const bz_bound_input *in;
    bz_bound *b;
    bz_arena *arena;
    bz_arena work; /* gone when the bound is found */
} covering;

double *bz_bound_seconds(const bz_bound *b, bz_arena *arena)
{
    double *seconds = bz_arena_dup(arena, b->seconds, (size_t)b->dag->n * sizeof *seconds);
    for (int i = 0; i < b->dag->n; i++)
        seconds[i] = b->unpriced[i] && !(seconds[i] > 0) ? NAN : seconds[i];
    return seconds;
}

double bz_bound_cover(const bz_bound *b, const double *layer, const double *place, bool *taken, double *at)
{
    const bz_bound_fused *f = &b->fused;
    bz_arena work = {0};
    bz_cover_group *group = BZ_NEW(&work, bz_cover_group, f->n_places);
    for (int g = 0; g < f->n_places; g++)
        group[g] = (bz_cover_group){f->place[g].layer, f->place[g].n, place[g]};
    double sum = bz_cover(b->dag->n, layer, f->n_places, group, taken, &work);
    bz_arena_free(&work);
    for (int i = 0; i < b->dag->n && at; i++)
        at[i] = isfinite(layer[i]) ? layer[i] : 0;
    for (int g = 0; g < f->n_places && at; g++) {
        const bz_bound_place *p = &f->place[g];
        for (int i = 0; i < p->n && taken[g]; i++)
            at[p->layer[i]] = i < p->n - 1 ? 0 : place[g];
    }
    return sum;
}

/* What layers of a group do; where there is a product, the steps around it may be folded into its weights. */
static double group_arithmetic(const covering *c, const bz_bound_place *place)
{
    double arithmetic = 0, products = 0;
    for (int i = 0; i < place->n; i++) {
        const bz_layer *l = &c->in->layers->layer[place->layer[i]];
        double work = bz_peaks_arithmetic(c->in->peaks, l, c->in->dtype);
        arithmetic += work;
        products += l->macs ? work : 0;
    }
    return products > 0 ? products : arithmetic;
}

static void price_places(const covering *c)
{
    bz_bound_fused *f = &c->b->fused;
    const bz_plan_place *place;
    const bz_plan_layer *items;
    f->n_places = bz_plan_places(c->in->plan, c->in->number, &place);
    f->place = BZ_NEW(c->arena, bz_bound_place, f->n_places);
    bz_spare *spare = BZ_NEW(c->arena, bz_spare, c->b->dag->n);
    f->spare = spare;
    bz_plan_layers(c->in->plan, &items);
    for (int g = 0; g < f->n_places; g++) {
        bz_bound_place *p = &f->place[g];
        *p = (bz_bound_place){.pattern = bz_spare_name(place[g].spare),
                              .layer = place[g].layer,
                              .n = place[g].n,
                              .spare = place[g].spare};
        if (p->spare) {
            spare[p->layer[0]] = p->spare;
            f->spares++;
            continue;
        }
        const bz_plan_layer *item = &items[place[g].group];
        p->pattern = item->pattern;
        bz_prices_layer(c->in->prices, item, &p->price);
        p->price.seconds = bz_tick(p->price.seconds);
        bz_bound_raise(c->in, group_arithmetic(c, p), &p->price);
        p->refused = !item->lowering.n || p->price.refused;
        f->refused += p->refused;
        f->missing += !p->refused && !p->price.alternative && p->price.missing;
        f->failed += !p->refused && !p->price.alternative && !p->price.missing;
    }
}

static void cover_records(covering *c)
{
    bz_bound_fused *f = &c->b->fused;
    const bz_dag *dag = c->b->dag;
    double *place = BZ_NEW(&c->work, double, f->n_places), *at = BZ_NEW(&c->work, double, dag->n);
    bool *taken = BZ_NEW(&c->work, bool, f->n_places), *covered = BZ_NEW(&c->work, bool, dag->n);
    bz_path path;
    for (int g = 0; g < f->n_places; g++)
        place[g] = f->place[g].price.seconds;
    f->sequential = bz_bound_cover(c->b, bz_bound_seconds(c->b, &c->work), place, taken, at);
    for (int g = 0; g < f->n_places; g++) {
        const bz_bound_place *p = &f->place[g];
        if (!taken[g] || p->spare)
            continue;
        BZ_ARENA_ADD(c->arena, f->group, f->n) = (bz_bound_group){p->pattern, p->layer, p->n, p->price};
        f->covered += p->n;
        f->modelled += p->price.provenance == BZ_PROVENANCE_MODELLED;
        for (int i = 0; i < p->n; i++)
            covered[p->layer[i]] = true;
    }
    for (int i = 0; i < dag->n; i++)
        f->unpriced += c->b->unpriced[i] && !covered[i] && !f->spare[i];
    bz_schedule_parallel(dag, at, &c->work, &path);
    f->parallel = path.seconds;
}

bz_spare bz_bound_spared(const bz_bound *b, const bz_bound_layer *l)
{
    return b->fused.spare && l->layer == &b->layers->layer[l->node] ? b->fused.spare[l->node] : BZ_RUNS;
}

/* How often a layer's result is read by later layers of the group. */
static int readers(const covering *c, const bz_bound_place *place, int at)
{
    const bz_dag *dag = c->b->dag;
    int n = 0;
    for (int i = at + 1; i < place->n; i++)
        for (int p = dag->first[place->layer[i]]; p < dag->first[place->layer[i] + 1]; p++)
            n += dag->pred[p] == place->layer[at];
    return n;
}

/* What a group cannot do without. What goes from layer to layer inside need not be written, nor read; nor the constants
 * of steps that a product takes along. */
static double group_roofline(const covering *c, const bz_bound_place *place)
{
    double bytes = 0;
    bz_dtype dtype = c->in->dtype;
    for (int i = 0; i < place->n; i++) {
        const bz_layer *l = &c->in->layers->layer[place->layer[i]];
        if (!l->priced)
            return NAN;
        bytes += bz_peaks_bytes(l, NULL, dtype);
        for (int k = 0; k < l->n_in && !l->macs; k++)
            bytes -= l->in_constant[k] ? bz_peaks_bytes(l, &l->in[k], dtype) : 0;
        if (i < place->n - 1)
            bytes -= (1 + readers(c, place, i)) * bz_peaks_bytes(l, &l->out[0], dtype);
    }
    return bz_tick(fmax(group_arithmetic(c, place), bz_peaks_traffic(c->in->peaks, fmax(bytes, 0))));
}

static void cover_rooflines(covering *c)
{
    bz_bound *b = c->b;
    double *seconds = BZ_NEW(&c->work, double, b->dag->n), rest = b->hardware;
    double *place = BZ_NEW(&c->work, double, b->fused.n_places);
    bool *taken = BZ_NEW(&c->work, bool, b->fused.n_places);
    for (int i = 0; i < b->n; i++)
        if (isfinite(b->layer[i].hardware)) {
            seconds[b->layer[i].node] += b->layer[i].hardware * b->layer[i].times;
            rest -= b->layer[i].hardware * b->layer[i].times;
        }
    for (int g = 0; g < b->fused.n_places; g++)
        place[g] = b->fused.place[g].spare ? 0 : group_roofline(c, &b->fused.place[g]);
    b->fused.hardware = rest + bz_bound_cover(b, seconds, place, taken, NULL);
}

void bz_bound_fuse(const bz_bound_input *in, bz_arena *arena, bz_bound *b)
{
    covering c = {in, b, arena, {0}};
    b->fused = (bz_bound_fused){.wanted = true, .hardware = NAN};
    price_places(&c);
    cover_records(&c);
    if (!in->peaks->why && !in->brief && !in->bare)
        cover_rooflines(&c);
    bz_arena_free(&c.work);
}
