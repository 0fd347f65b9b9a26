/* Appends a line for every unique convolution, pooling and pad of the models, batch 1. Models that cannot be lowered are
 * named on stderr. */
#ifndef BZ_TESTS_CUDA_MODELS_H
#define BZ_TESTS_CUDA_MODELS_H

#include "base/buf.h"

void problems_of(char **paths, int n, bz_buf *lines);

#endif
