/* Functions that exporters write out in many layers. Private to generator/. */
#ifndef BZ_GENERATOR_WRITTEN_H
#define BZ_GENERATOR_WRITTEN_H

#include "generator/generator.h"

typedef enum { WRITTEN_ACTIVATION, WRITTEN_LAYERNORM, WRITTEN_RMSNORM, WRITTEN_GROUPNORM } written_kind;

typedef struct written {
    written_kind kind;
    bz_fn fn; /* of an activation */
    float alpha, beta;
    int axis;    /* normalizations: over the dimensions from here on; by groups of channels: how many groups */
    float added; /* what keeps the root from zero */
    bz_value_id scale, shift;
} written;

/* The function of x that these layers compute together; the last one makes the result. It is found
 * by computing it: however a GELU is written, it is one if it has the values of one, and with other
 * constants it is none. False where it is no function that a problem has, or where a constant is not
 * to be had. */
bool written_identify(bz_lowered *lowered, const int *layer, int n, bz_value_id x, written *out);

/* A constant's only element; false where it has several or is not to be had. `before` is a layer that
 * stands behind the one that computes it. */
bool written_scalar(const bz_layers *layers, bz_value_id v, int before, double *out);

#endif
