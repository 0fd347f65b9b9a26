/* Numbers for symbols: dense ones, in order of appearance. */
#include "profile/cuts.h"

#include <stdlib.h>
#include <string.h>

/* Where a symbol's number stands, or would stand, in a table of which at least half is free. */
static uint32_t *slot_of(uint32_t *slot, size_t cap, const uint64_t *known, uint64_t symbol)
{
    uint64_t h = symbol * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(h ^ h >> 32);
    while (slot[at & (cap - 1)] != UINT32_MAX && known[slot[at & (cap - 1)]] != symbol)
        at++;
    return &slot[at & (cap - 1)];
}

/* A map of its own: it is asked once per event, and nearly always for one of a few. */
uint32_t bz_number_symbols(const uint64_t *symbol, size_t n, uint32_t *dense)
{
    size_t cap = 1024;
    uint32_t n_ids = 0, *slot = bz_alloc(cap, sizeof *slot);
    uint64_t *known = bz_alloc(cap, sizeof *known);
    memset(slot, 0xff, cap * sizeof *slot);
    for (size_t i = 0; i < n; i++) {
        if (n_ids >= cap / 2) {
            cap *= 4;
            slot = bz_realloc(slot, cap, sizeof *slot);
            known = bz_realloc(known, cap, sizeof *known);
            memset(slot, 0xff, cap * sizeof *slot);
            for (uint32_t id = 0; id < n_ids; id++)
                *slot_of(slot, cap, known, known[id]) = id;
        }
        uint32_t *s = slot_of(slot, cap, known, symbol[i]);
        if (*s == UINT32_MAX) {
            known[n_ids] = symbol[i];
            *s = n_ids++;
        }
        dense[i] = *s;
    }
    free(known);
    free(slot);
    return n_ids;
}

uint32_t bz_widen_symbols(uint32_t *gram, size_t n, size_t width, uint64_t *hash)
{
    for (size_t i = 0; i < n; i++) {
        hash[i] = 0;
        for (size_t k = i; k < i + 4 * width; k += width)
            hash[i] = (hash[i] ^ (k < n ? gram[k] + UINT64_C(1) : 0)) * 0x9e3779b97f4a7c15u;
    }
    return bz_number_symbols(hash, n, gram);
}
