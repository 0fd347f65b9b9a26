/* How a bound is covered by layers and groups. For bound/ and explain/. */
#ifndef BZ_BOUND_COVER_H
#define BZ_BOUND_COVER_H

#include "bound/bound.h"

/* A copy that stands for layers does none of their arithmetic: it costs no less than that takes at the measured peak. RoiAlign
 * reads 16 pixels for an element that it writes, and a copy moves one. */
void bz_bound_raise(const bz_bound_input *in, double arithmetic, bz_layer_price *price);

/* Fills b->fused of a bound that is made otherwise. */
void bz_bound_fuse(const bz_bound_input *in, bz_arena *arena, bz_bound *b);

/* What the layers of the main graph cost one by one, NAN where one has no price. */
double *bz_bound_seconds(const bz_bound *b, bz_arena *arena);

/* The cheapest cover by layers and places: layer[i] and place[g] are what they cost, NAN where that is not known or
 * not to be used. taken[g] tells the choice. at[i] (may be NULL) is what then is spent at layer i: a group runs when
 * all that its layers read is there, so its cost stands at its last layer, which alone is read from outside. */
double bz_bound_cover(const bz_bound *b, const double *layer, const double *place, bool *taken, double *at);

#endif
