#include "base/map.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct bz_map_slot {
    const void *key; /* NULL: empty */
    size_t len;
    uint32_t hash, value;
};

/* The slot of the key, or the empty one where it belongs. */
static bz_map_slot *find(const bz_map *m, const void *key, size_t len, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        bz_map_slot *s = &m->slots[i & (m->cap - 1)];
        if (!s->key || (s->hash == hash && s->len == len && (!len || !memcmp(s->key, key, len))))
            return s;
    }
}

static void resize(bz_map *m, uint32_t cap)
{
    bz_map old = *m;
    m->cap = cap;
    m->slots = bz_alloc(m->cap, sizeof *m->slots);
    memset(m->slots, 0, m->cap * sizeof *m->slots);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slots[i].key)
            *find(m, old.slots[i].key, old.slots[i].len, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

void bz_map_reserve(bz_map *m, uint32_t n)
{
    uint32_t cap = m->cap ? m->cap : 16;
    while ((uint64_t)n * 4 >= (uint64_t)cap * 3 && cap < 1u << 31)
        cap *= 2;
    if (cap > m->cap)
        resize(m, cap);
}

static bz_map_slot *place(bz_map *m, const void *key, size_t len, uint32_t value)
{
    if ((uint64_t)m->n * 4 >= (uint64_t)m->cap * 3)
        resize(m, m->cap ? m->cap * 2 : 16);
    uint32_t hash = (uint32_t)XXH3_64bits(key, len);
    bz_map_slot *s = find(m, key, len, hash);
    if (!s->key) {
        *s = (bz_map_slot){len ? key : "", len, hash, value};
        m->n++;
    }
    return s;
}

uint32_t bz_map_get(const bz_map *m, const void *key, size_t len)
{
    if (!m->n)
        return BZ_MAP_NONE;
    const bz_map_slot *s = find(m, key, len, (uint32_t)XXH3_64bits(key, len));
    return s->key ? s->value : BZ_MAP_NONE;
}

uint32_t bz_map_add(bz_map *m, const void *key, size_t len, uint32_t value)
{
    return place(m, key, len, value)->value;
}

uint32_t bz_map_number(bz_map *m, bz_arena *keys, const void *key, size_t len)
{
    uint32_t at = bz_map_get(m, key, len);
    return at != BZ_MAP_NONE ? at : bz_map_add(m, bz_arena_dup(keys, key, len), len, m->n);
}

void bz_map_set(bz_map *m, const void *key, size_t len, uint32_t value)
{
    place(m, key, len, value)->value = value;
}

void bz_map_free(bz_map *m)
{
    free(m->slots);
    *m = (bz_map){0};
}

bz_hash bz_hash_bytes(const void *data, size_t len)
{
    XXH128_hash_t h = XXH3_128bits(data, len);
    return (bz_hash){h.high64, h.low64};
}

void bz_hash_hex(bz_hash h, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high, (unsigned long long)h.low);
}
