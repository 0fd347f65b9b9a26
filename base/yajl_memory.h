/* Memory for yajl, which does not look whether it got any: yajl_alloc(&callbacks, &bz_yajl_memory, context). */
#ifndef BZ_YAJL_MEMORY_H
#define BZ_YAJL_MEMORY_H

#include "base/arena.h"

#include <stdlib.h>
#include <yajl/yajl_common.h>

static inline void *bz_yajl_take(void *unused, size_t size)
{
    (void)unused;
    return bz_memory_take(size);
}

static inline void *bz_yajl_change(void *unused, void *p, size_t size)
{
    (void)unused;
    return bz_memory_change(p, size);
}

static inline void bz_yajl_free(void *unused, void *p)
{
    (void)unused;
    free(p);
}

static yajl_alloc_funcs bz_yajl_memory = {bz_yajl_take, bz_yajl_change, bz_yajl_free, NULL};

#endif
