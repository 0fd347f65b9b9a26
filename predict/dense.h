/* dense: residuals over problems and machines at once, by a network of dense layers as published. Private to predict/. */
#ifndef BZ_PREDICT_DENSE_H
#define BZ_PREDICT_DENSE_H

#include "predict/predict.h"

typedef struct bz_dense bz_dense;

/* Learns from all machines for which use[machine] holds and problems for which known[problem] does (NULL: all): a network for each kind of
 * problem. The same records make the same network. */
bz_dense *bz_dense_new(const bz_samples *s, const bool *use, const bool *known, double margin);
void bz_dense_free(bz_dense *d);

/* Logarithm of the seconds of a problem on a machine with so long a floor: by the roofline where its kind had too few records. */
double bz_dense_log(const bz_dense *d, const bz_shape *s, const bz_machine *m, double floor);

#endif
