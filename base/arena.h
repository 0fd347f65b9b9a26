/* Arena: many small allocations, one free. A model, a trace, an analysis each own one.
 * Memory comes zeroed and aligned to 16 bytes. There is no failure to check: out of memory
 * ends the process with one line, as do sizes whose product overflows. */
#ifndef BZ_ARENA_H
#define BZ_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define BZ_SEES_ADDRESSES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BZ_SEES_ADDRESSES
#endif

typedef struct bz_arena_block bz_arena_block;

typedef struct bz_arena {
    bz_arena_block *block;        /* newest first */
    char *next, *end;             /* free part of the newest block */
    size_t used;                  /* bytes handed out */
    struct bz_arena_guest *guest; /* newest first */
} bz_arena;

/* As bz_arena_take, for what does not fit into the newest block. */
void *bz_arena_take_more(bz_arena *a, size_t size);

/* As bz_arena_alloc, but not zeroed: for what is written over at once. */
static inline void *bz_arena_take(bz_arena *a, size_t size)
{
    size_t padded = (size + 15) & ~(size_t)15, room = (uintptr_t)a->end - (uintptr_t)a->next;
    if (padded - 1 >= room) /* also for nothing, and for more than there can be */
        return bz_arena_take_more(a, size);
    void *p = a->next;
    a->next += padded;
    a->used += padded;
    return p;
}

/* A zeroed bz_arena is an empty one: `bz_arena a = {0};` */
static inline void *bz_arena_alloc(bz_arena *a, size_t size)
{
    return memset(bz_arena_take(a, size), 0, size);
}

static inline void *bz_arena_array(bz_arena *a, size_t n, size_t size)
{
    size_t total;
    return bz_arena_alloc(a, __builtin_mul_overflow(n, size, &total) ? SIZE_MAX : total);
}

static inline void *bz_arena_dup(bz_arena *a, const void *data, size_t size)
{
    void *p = bz_arena_take(a, size);
    if (size)
        memcpy(p, data, size);
    return p;
}

/* Adds the terminating zero. */
static inline char *bz_arena_strn(bz_arena *a, const char *s, size_t n)
{
    char *p = bz_arena_take(a, n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *bz_arena_str(bz_arena *a, const char *s);
char *bz_arena_printf(bz_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A grown copy of an array of `n` elements, room for `n_new`; the old one stays where it is. */
void *bz_arena_grow(bz_arena *a, const void *old, size_t n, size_t n_new, size_t size);

/* Room for one more element in an array that only grows: it has 4 places, then 8, 16 and so on, so that `n`, the elements in use, tells
 * when it is full. Every element was added so, from none (list NULL). BZ_ROOM is for memory that free() frees. */
#define BZ_ARENA_ROOM(arena, list, n)                                                                                  \
    ((bz_is_full((size_t)(n))                                                                                          \
          ? (void)((list) = bz_arena_grow((arena), (list), (size_t)(n), bz_room((size_t)(n)), sizeof *(list)))         \
          : (void)0),                                                                                                  \
     BZ_OPEN_PLACE(list, n))
#define BZ_ROOM(list, n)                                                                                               \
    ((bz_is_full((size_t)(n)) ? (void)((list) = bz_realloc((list), bz_room((size_t)(n)), sizeof *(list))) : (void)0),  \
     BZ_OPEN_PLACE(list, n))

/* The address sanitizer is told that only places in use may be touched. */
#ifdef BZ_SEES_ADDRESSES
void __asan_poison_memory_region(const volatile void *from, size_t size);
void __asan_unpoison_memory_region(const volatile void *from, size_t size);
#define BZ_OPEN_PLACE(list, n)                                                                                         \
    ((bz_is_full((size_t)(n))                                                                                          \
          ? __asan_poison_memory_region((list) + (n), (bz_room((size_t)(n)) - (size_t)(n)) * sizeof *(list))           \
          : (void)0),                                                                                                  \
     __asan_unpoison_memory_region((list) + (n), sizeof *(list)))
#else
#define BZ_OPEN_PLACE(list, n) (void)0
#endif

/* The same, and one more: BZ_ADD(list, n) = value; the value does not read or change the list, as C leaves open which comes first. */
#define BZ_ARENA_ADD(arena, list, n) (*(BZ_ARENA_ROOM(arena, list, n), &(list)[(n)++]))
#define BZ_ADD(list, n)              (*(BZ_ROOM(list, n), &(list)[(n)++]))

static inline bool bz_is_full(size_t n)
{
    return !n || (n >= 4 && !(n & (n - 1)));
}

static inline size_t bz_room(size_t n)
{
    return n ? 2 * n : 4;
}

/* `end(thing)` is called when the arena is freed, before its memory goes: for what has memory of its own. */
void bz_arena_keep(bz_arena *a, void *thing, void (*end)(void *thing));
/* Such a function from one that takes its own type: BZ_ENDS(end_plan, bz_plan_free) */
#define BZ_ENDS(end, free)                                                                                             \
    static void end(void *thing)                                                                                       \
    {                                                                                                                  \
        free(thing);                                                                                                   \
    }

/* Frees everything; the arena is empty again and may be used anew. */
void bz_arena_free(bz_arena *a);

/* A local that is freed where its block ends, however it is left; for each type that has such a function:
 * BZ_SCOPED(bz_arena) a = {0}; */
#define BZ_SCOPED(type) __attribute__((cleanup(type##_free))) type

/* For programs that load one model after the other: what was freed is kept for the next one, and not
 * given back to the kernel, which takes a page fault for every 4 KB to get it again. For the whole
 * process. */
void bz_keep_memory(void);

#define BZ_NEW(a, type, n) ((type *)bz_arena_array((a), (size_t)(n), sizeof(type)))
/* Of integers that are none, all of them: -1, which is BZ_NONE of unsigned ones. */
#define BZ_NEW_NONE(a, type, n) ((type *)memset(BZ_NEW((a), type, (n)), 0xff, (size_t)(n) * sizeof(type)))

/* malloc and realloc for what an arena does not fit (arrays that grow); never return NULL. */
void *bz_alloc(size_t n, size_t size);
void *bz_realloc(void *p, size_t n, size_t size);
void *bz_zeroed(size_t n, size_t size);            /* calloc: large memory costs nothing before it is used */
static inline void *bz_none(size_t n, size_t size) /* as BZ_NEW_NONE */
{
    return memset(bz_alloc(n, size), 0xff, n * size);
}
char *bz_copy(const char *s);

/* A local pointer to such memory that is freed where its block ends: BZ_FREED char *name = bz_copy(from); */
#define BZ_FREED __attribute__((cleanup(bz_free_at)))
static inline void bz_free_at(void *pointer)
{
    void *p;
    memcpy(&p, pointer, sizeof p);
    free(p);
}

/* The same for libraries that do not look whether they got memory, or go on with half a result when they did not. free() frees it. */
void *bz_memory_take(size_t size);
void *bz_memory_change(void *p, size_t size);
/* Says so, and ends the process. */
_Noreturn void bz_no_memory(size_t size);

#endif
