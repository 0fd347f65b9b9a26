/* The register of operator families. */
#include "modelproc/op.h"

#include <string.h>

static const op_table *const FAMILIES[] = {
    &ops_elementwise, &ops_shape, &ops_index,  &ops_reduce,    &ops_matmul,   &ops_conv,    &ops_norm,
    &ops_rnn,         &ops_quant, &ops_vision, &ops_signal,    &ops_sequence, &ops_control, &ops_random,
    &ops_loss,        &ops_text,  &ops_ml,     &ops_microsoft, &ops_training,
};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };

static const op *row(uint32_t at)
{
    return &FAMILIES[at >> 16]->rows[at & 0xffff];
}

/* Keys of the default domain are plain names; others are "domain.Name". */
void op_index_build(bz_map *index, bz_arena *arena)
{
    for (uint32_t f = 0; f < N_FAMILIES; f++) {
        for (int i = 0; i < FAMILIES[f]->n; i++) {
            const op *o = &FAMILIES[f]->rows[i];
            const char *key = o->domain ? bz_arena_printf(arena, "%s.%s", o->domain, o->name) : o->name;
            bz_map_add(index, key, strlen(key), f << 16 | (uint32_t)i);
        }
    }
}

const op *op_find(const bz_map *index, const char *domain, const char *name)
{
    uint32_t at;
    if (!*domain) {
        at = bz_map_get(index, name, strlen(name));
    } else {
        bz_buf key = {0};
        bz_buf_puts(&key, domain);
        bz_buf_putc(&key, '.');
        bz_buf_puts(&key, name);
        at = bz_map_get(index, key.data, key.len);
        bz_buf_free(&key);
    }
    return at == BZ_MAP_NONE ? NULL : row(at);
}
