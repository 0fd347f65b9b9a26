/* What moves where keys and values are kept from step to step, and where tables are read by rows. Operands and results once,
 * as for all layers, would count a cache twice, and as long as its buffer is: a runtime appends to it in place, and reads
 * what is filled. Private to modelproc/. */
#ifndef BZ_CACHE_H
#define BZ_CACHE_H

#include "modelproc/rule.h"

typedef struct cache_use {
    int past, n; /* operands `past` … past + n - 1 are caches, results 1 … n their continuation; [..., tokens, width] */
    bz_dim keys;       /* tokens that each query looks at, with the new ones */
    bz_dim fresh;      /* new tokens of each sequence */
    int table, tables; /* operands `table` … that are read by rows; rows: how many each */
    int64_t rows;
} cache_use;

/* Sets c->bytes. Without a past operand the caches are results like others. */
void cache_bytes(call *c, const cache_use *use);

/* Operands `table` and the one behind it are read by rows: where it is open how many they have, as of tables that an If chooses, they have
 * as many as are asked for. */
void take_rows(call *c, int table, bz_dim rows);

/* x [batch, tokens, width] or [batch, heads, tokens, width]: rows that its rotation reads. */
int64_t token_rows(const bz_type *x);

#endif
