/* Hash table from byte strings to 32-bit numbers (usually indexes into an array), and the hash
 * that names layers. Keys are not copied: they must live as long as the map. */
#ifndef BZ_MAP_H
#define BZ_MAP_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bz_map_slot bz_map_slot;

typedef struct bz_map {
    bz_map_slot *slots;
    uint32_t n, cap; /* cap is a power of two, at most three quarters full */
} bz_map;

#define BZ_MAP_NONE UINT32_MAX

/* A zeroed bz_map is an empty one. */
uint32_t bz_map_get(const bz_map *m, const void *key, size_t len); /* BZ_MAP_NONE where absent */

/* Adds key → value unless the key is there; returns the value that the map then holds. */
uint32_t bz_map_add(bz_map *m, const void *key, size_t len, uint32_t value);

/* The key's number among those of a map that has nothing but such: the one it has, or the next, m->n, and then its bytes are copied into the
 * arena. So the keys of an array: `at = bz_map_number(…); if (at == n) BZ_ADD(list, n) = …`. */
uint32_t bz_map_number(bz_map *m, bz_arena *keys, const void *key, size_t len);

/* Adds, or replaces the value. */
void bz_map_set(bz_map *m, const void *key, size_t len, uint32_t value);

/* Makes room for n keys in all at once. */
void bz_map_reserve(bz_map *m, uint32_t n);

void bz_map_free(bz_map *m);

typedef struct bz_hash {
    uint64_t high, low;
} bz_hash;

bz_hash bz_hash_bytes(const void *data, size_t len); /* XXH3, 128 bit */
void bz_hash_hex(bz_hash h, char out[33]);

#endif
