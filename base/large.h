/* Memory for large arrays of which all is used: from two megabytes on it comes in pages of so many. One page fault takes 0.1 ms then, and the
 * 512 of pages of 4 kB take 0.8 ms. Not for what a benchmark measures: programs that it stands for have pages of 4 kB. */
#ifndef BZ_LARGE_H
#define BZ_LARGE_H

#include <stddef.h>

/* As bz_alloc and bz_zeroed of arena.h; free() frees it. */
void *bz_large_alloc(size_t n, size_t size);
void *bz_large_zeroed(size_t n, size_t size);
/* As bz_realloc, of bytes of which `used` are kept. */
void *bz_large_grow(void *old, size_t used, size_t n);

#endif
