#include "modelproc/cache.h"

static int64_t add_bytes(int64_t sum, int64_t bytes)
{
    bz_count_add(&sum, bytes > 0 ? bytes : 0);
    return sum;
}

/* Of rows of a table no more than it has. */
static int64_t table_bytes(const bz_type *t, int64_t rows)
{
    int64_t all = bz_type_bytes(t), has = t->rank > 0 ? t->dims[0] : 1;
    return rows < has && has > 0 ? all / has * rows : all;
}

/* Of a cache: what was there before and is looked at, and what is new. */
static int64_t kept_bytes(const bz_type *t, const cache_use *use)
{
    int64_t length = last_dim(t, 2), all = bz_type_bytes(t);
    int64_t used = use->keys > use->fresh ? use->keys : use->fresh;
    return length > used && length > 0 ? count_mul(all / length, used) : all;
}

void cache_bytes(call *c, const cache_use *use)
{
    int64_t sum = 0;
    bool kept = use->n && in_type(c, use->past);
    for (int k = 0; k < c->node->n_in; k++) {
        if (!in_type(c, k) || (kept && k >= use->past && k < use->past + use->n))
            continue;
        bool table = use->tables && k >= use->table && k < use->table + use->tables;
        sum = add_bytes(sum, table ? table_bytes(&c->in[k], use->rows) : bz_type_bytes(&c->in[k]));
    }
    for (int k = 0; k < c->node->n_out; k++)
        if (!kept || k < 1 || k > use->n)
            sum = add_bytes(sum, bz_type_bytes(&c->out[k]));
    for (int k = 1; kept && k <= use->n && k < c->node->n_out; k++)
        sum = add_bytes(sum, kept_bytes(&c->out[k], use));
    c->bytes = sum;
}

void take_rows(call *c, int table, bz_dim rows)
{
    for (int k = table; k < table + 2; k++) {
        if (!in_type(c, k) || c->in[k].rank < 1 || !bz_is_symbol(c->in[k].dims[0]) || bz_is_symbol(rows))
            continue;
        bz_dim *dims = new_dims(c, c->in[k].rank);
        copy_dims(dims, &c->in[k]);
        dims[0] = rows;
        c->in[k].dims = dims;
    }
}

int64_t token_rows(const bz_type *x)
{
    return x->rank == 4   ? count_mul(x->dims[0], x->dims[2])
           : x->rank == 3 ? count_mul(x->dims[0], x->dims[1])
                          : INT64_MAX;
}
