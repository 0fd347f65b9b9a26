/* The fused bound: the cheapest cover of a model by layers and groups of layers. */
#include "cli/bound.h"

#include "generator/cover.h"

#include <math.h>
#include <stdlib.h>

static void keep_groups(bound *b, const bz_layers *layers, const bz_plan_place *place, const bz_layer_price *price,
                        const bool *taken, int n, const bz_plan_layer *items)
{
    bound_fused *f = &b->fused;
    f->unpriced = b->total.unpriced;
    f->group = bz_alloc((size_t)n + 1, sizeof *f->group);
    for (int g = 0; g < n; g++) {
        if (!taken[g])
            continue;
        f->group[f->n++] =
            (bound_group){items[place[g].group].pattern, layers->layer, place[g].layer, place[g].n, price[g]};
        f->covered += place[g].n;
        f->modelled += price[g].provenance == BZ_PROVENANCE_MODELLED;
        for (int i = 0; i < place[g].n; i++)
            f->unpriced -= isnan(b->seconds[place[g].layer[i]]) != 0;
    }
}

void bound_fuse(bound *b, int model, const bz_layers *layers, const bz_plan *plan, const bz_prices *prices)
{
    bz_arena arena = {0};
    const bz_plan_place *place;
    const bz_plan_layer *items;
    int n = bz_plan_places(plan, model, &place);
    bz_cover_group *group = BZ_NEW(&arena, bz_cover_group, n);
    bz_layer_price *price = BZ_NEW(&arena, bz_layer_price, n);
    bool *taken = BZ_NEW(&arena, bool, n);
    bz_plan_layers(plan, &items);
    b->fused = (bound_fused){.wanted = true};
    for (int g = 0; g < n; g++) {
        const bz_plan_layer *item = &items[place[g].group];
        bz_prices_layer(prices, item, &price[g]);
        group[g] = (bz_cover_group){place[g].layer, place[g].n, price[g].seconds};
        b->fused.refused += !item->lowering.n;
        b->fused.missing += item->lowering.n && !price[g].alternative && price[g].missing;
    }
    b->fused.seconds = bz_cover(layers->n, b->seconds, n, group, taken, &arena);
    keep_groups(b, layers, place, price, taken, n, items);
    bz_arena_free(&arena);
}
