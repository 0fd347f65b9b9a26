/* Arena: many small allocations, one free. A model, a trace, an analysis each own one.
 * Memory comes zeroed and aligned to 16 bytes. There is no failure to check: out of memory
 * ends the process with one line, as do sizes whose product overflows. */
#ifndef BZ_ARENA_H
#define BZ_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct bz_arena_block bz_arena_block;

typedef struct bz_arena {
    bz_arena_block *block; /* newest first */
    char *next, *end;      /* free part of the newest block */
    size_t used;           /* bytes handed out */
} bz_arena;

/* A zeroed bz_arena is an empty one: `bz_arena a = {0};` */
void *bz_arena_alloc(bz_arena *a, size_t size);
void *bz_arena_array(bz_arena *a, size_t n, size_t size);
void *bz_arena_dup(bz_arena *a, const void *data, size_t size);
char *bz_arena_str(bz_arena *a, const char *s);
char *bz_arena_strn(bz_arena *a, const char *s, size_t n); /* adds the terminating zero */
char *bz_arena_printf(bz_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A grown copy of an array of `n` elements, room for `n_new`; the old one stays where it is. */
void *bz_arena_grow(bz_arena *a, const void *old, size_t n, size_t n_new, size_t size);

/* Frees everything; the arena is empty again and may be used anew. */
void bz_arena_free(bz_arena *a);

#define BZ_NEW(a, type, n) ((type *)bz_arena_array((a), (size_t)(n), sizeof(type)))

/* malloc and realloc for what an arena does not fit (arrays that grow); never return NULL. */
void *bz_alloc(size_t n, size_t size);
void *bz_realloc(void *p, size_t n, size_t size);
void *bz_zeroed(size_t n, size_t size); /* calloc: large memory costs nothing before it is used */

#endif
