/* The cheapest way to run a graph by layers and groups of layers. Knows nothing of what these are. */
#ifndef BZ_GENERATOR_COVER_H
#define BZ_GENERATOR_COVER_H

#include "base/arena.h"

#include <stdbool.h>

/* Layers ascending, each once. NAN seconds: the group cannot be used. */
typedef struct bz_cover_group {
    const int *layer;
    int n;
    double seconds;
} bz_cover_group;

/* Chooses groups that share no layer so that they and the layers that none of them covers cost least
 * together: taken[g] is set for these, and cleared for the others. Returns the sum. A layer without a
 * cost (NAN) counts 0; that something is missing is for the caller to say.
 *
 * The choice is exact, but where more than BZ_COVER_WIDTH different sets of covered layers are open at
 * once within one tangle of overlapping groups: then the cheapest so many are followed. Never dearer than
 * the layers alone. Same input, same choice. The arena holds
 * the work.
 *
 * Any choice keeps a graph acyclic if only the last layer of each group is read from outside of it and
 * all others lead to it (fusion patterns see to that): a way from group to group leaves by a last layer
 * and so goes from last layer to later last layer, and never comes back. */
enum { BZ_COVER_WIDTH = 4096 };

double bz_cover(int n_layers, const double *seconds, int n_groups, const bz_cover_group *group, bool *taken,
                bz_arena *arena);

#endif
