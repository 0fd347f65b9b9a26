/* elements: reads, writes and moves the elements of tensors whatever their data type is. Numbers `at`, strides and n count
 * elements. Private to runtime/loops. */
#ifndef BZ_ELEMENTS_H
#define BZ_ELEMENTS_H

#include "runtime/loops/kernels.h"

enum { BZ_ELEMENTS_BLOCK = 256 }; /* that are read or written at once, at the most */

/* At most a block of elements from number `at` on, as double precision and back. Integers lose their fraction when they
 * are written, as ONNX's Cast has it. */
void bz_elements_read(bz_dtype t, const void *from, int64_t at, int64_t stride, int64_t n, double *out);
void bz_elements_write(bz_dtype t, void *to, int64_t at, int64_t stride, int64_t n, const double *v);

/* One element. */
double bz_element_load(bz_dtype t, const void *from, int64_t i);
void bz_element_store(bz_dtype t, void *to, int64_t i, double v);

/* n elements of `size` bytes, `sx` apart, to places that are `sy` apart; or one element, n times one behind the other. */
void bz_elements_copy(const char *x, int64_t sx, char *y, int64_t sy, int64_t n, int64_t size);
void bz_elements_repeat(const char *x, char *y, int64_t n, int64_t size);

/* n elements in another type: by way of f32 where both types fit in it. */
void bz_elements_convert(const bz_kernels *kernels, bz_dtype from, const void *x, int64_t at_x, int64_t sx, bz_dtype to,
                         void *y, int64_t at_y, int64_t sy, int64_t n);

#endif
