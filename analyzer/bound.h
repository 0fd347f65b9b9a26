/* The parts of a bound. Private to analyzer/. */
#ifndef BZ_ANALYZER_BOUND_H
#define BZ_ANALYZER_BOUND_H

#include "analyzer/analyzer.h"

/* Fills b->fused of a bound that is made otherwise. unpriced[i]: layer i of the main graph, or one in its
 * bodies, has no price. */
void bound_fuse(const bz_bound_input *in, const bool *unpriced, bz_arena *arena, bz_bound *b);

#endif
