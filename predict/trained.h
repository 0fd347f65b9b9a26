/* trained: what was learned, as text. Private to predict/. */
#ifndef BZ_PREDICT_TRAINED_H
#define BZ_PREDICT_TRAINED_H

#include "predict/predict.h"

extern const char bz_trained_text[]; /* what ships */

#endif
