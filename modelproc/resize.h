/* Rules of Resize and Upsample. Private to modelproc/. */
#ifndef BZ_RESIZE_H
#define BZ_RESIZE_H

#include "modelproc/op.h"

int resize_shape(call *c);   /* opset 10 on */
int upsample_shape(call *c); /* opset 1: two scales; 7: an attribute; 9: an operand */
void resize_cost(call *c);

#endif
