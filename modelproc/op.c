/* The register of operator families. */
#include "modelproc/op.h"

#include <string.h>

static const op_table *const FAMILIES[] = {
    &ops_elementwise, &ops_shape, &ops_index,  &ops_reduce,    &ops_matmul,   &ops_conv,    &ops_norm,
    &ops_rnn,         &ops_quant, &ops_vision, &ops_signal,    &ops_sequence, &ops_control, &ops_random,
    &ops_loss,        &ops_text,  &ops_ml,     &ops_microsoft, &ops_training,
};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };

static bool names(const op *o, const char *domain, const char *name)
{
    return !strcmp(o->name, name) && !strcmp(o->domain ? o->domain : "", domain);
}

static const op *search(const char *domain, const char *name)
{
    for (int f = 0; f < N_FAMILIES; f++)
        for (int i = 0; i < FAMILIES[f]->n; i++)
            if (names(&FAMILIES[f]->rows[i], domain, name))
                return &FAMILIES[f]->rows[i];
    return NULL;
}

/* A model uses a handful of operators: each is searched for once and then remembered. Operators of
 * one name in two domains take turns in their place. */
const op *op_find(op_memo *memo, const char *domain, const char *name)
{
    size_t n = strlen(name);
    uint32_t k = bz_map_get(&memo->index, name, n);
    if (k != BZ_MAP_NONE && names(memo->row[k], domain, name))
        return memo->row[k];
    const op *o = search(domain, name);
    if (!o || (k == BZ_MAP_NONE && memo->n == MAX_MEMO))
        return o;
    if (k == BZ_MAP_NONE)
        bz_map_add(&memo->index, o->name, n, (uint32_t)(k = (uint32_t)memo->n++));
    memo->row[k] = o;
    return o;
}
