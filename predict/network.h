/* network: a model at a batch, as problems.
 *
 * Some graphs hold their batch as a number: a Reshape to 1x9216 before the classifier. The published times of such a graph at
 * batch 256 are of 256 times the data before that node, and of a batch of 1 behind it. So it is done here, where the graph cannot be
 * had at a batch otherwise. */
#ifndef BZ_PREDICT_NETWORK_H
#define BZ_PREDICT_NETWORK_H

#include "generator/generator.h"

typedef struct bz_network {
    bz_models models;
    bool as_file;       /* at the file's own batch: problems are scaled to `batch` */
    const bool *behind; /* [layers]: it stands behind a Reshape */
    int64_t batch;
    bz_map by_name; /* of a layer -> its number */
} bz_network;

int bz_network_load(const char *path, int64_t batch, bz_network *out, bz_error *err);
void bz_network_free(bz_network *n);

/* The text of a problem that this layer is lowered to; NULL where nobody knows how to scale it. */
const char *bz_network_text(const bz_network *net, int layer, const bz_problem *problem, bz_arena *arena);

#endif
