/* Arena allocation in blocks that double, so a small model touches few pages and a large one makes
 * few calls. Large blocks ask for huge pages: page faults were half the time of a large model. Memory is
 * zeroed when it is handed out: clearing whole blocks took a tenth of a small model's time. */
#include "base/arena.h"

#include "base/error.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bz_arena_block {
    bz_arena_block *older;
    size_t size;
};

/* The address sanitizer sees only the borders of blocks: there each allocation gets its own. */
#ifdef BZ_SEES_ADDRESSES
enum { FIRST_BLOCK = 0, LAST_BLOCK = 0, ALIGNMENT = 1 };
#else
enum { FIRST_BLOCK = 16 << 10, LAST_BLOCK = 64 << 20, ALIGNMENT = 16 };
#endif

/* An error like others for whoever started us, and no core dump; the keeper removes what we leave. */
_Noreturn void bz_no_memory(size_t size)
{
    fprintf(stderr, "benanza: out of memory (%zu bytes wanted)\n", size);
    _exit(BZ_FAILED);
}

static size_t product(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        bz_no_memory(SIZE_MAX);
    return total;
}

static void add_block(bz_arena *a, size_t size)
{
    size_t wanted = a->block ? a->block->size * 2 : FIRST_BLOCK;
    if (wanted > LAST_BLOCK)
        wanted = LAST_BLOCK;
    if (wanted < size)
        wanted = size;
    bz_arena_block *b = bz_alloc(1, sizeof *b + wanted);
    b->older = a->block;
    b->size = wanted;
    a->block = b;
    a->next = (char *)(b + 1);
    a->end = a->next + wanted;
}

void *bz_arena_take_more(bz_arena *a, size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        bz_no_memory(size);
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!a->block || (size_t)(a->end - a->next) < size)
        add_block(a, size);
    void *p = a->next;
    a->next += size;
    a->used += size;
    return p;
}

char *bz_arena_str(bz_arena *a, const char *s)
{
    return bz_arena_strn(a, s, strlen(s));
}

char *bz_arena_printf(bz_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *p = bz_arena_take(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return p;
}

void *bz_arena_grow(bz_arena *a, const void *old, size_t n, size_t n_new, size_t size)
{
    size_t used = product(n, size), total = product(n_new, size);
    char *p = bz_arena_take(a, total);
    if (used)
        memcpy(p, old, used);
    memset(p + used, 0, total - used);
    return p;
}

struct bz_arena_guest {
    struct bz_arena_guest *older;
    void *thing;
    void (*end)(void *thing);
};

void bz_arena_keep(bz_arena *a, void *thing, void (*end)(void *thing))
{
    struct bz_arena_guest *g = bz_arena_take(a, sizeof *g);
    *g = (struct bz_arena_guest){a->guest, thing, end};
    a->guest = g;
}

void bz_arena_free(bz_arena *a)
{
    for (const struct bz_arena_guest *g = a->guest; g; g = g->older)
        g->end(g->thing);
    for (bz_arena_block *b = a->block, *older; b; b = older) {
        older = b->older;
        free(b);
    }
    *a = (bz_arena){0};
}

void bz_keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that it takes */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

void *bz_memory_take(size_t size)
{
    return bz_realloc(NULL, 1, size);
}

void *bz_memory_change(void *p, size_t size)
{
    return bz_realloc(p, 1, size);
}

char *bz_copy(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(bz_alloc(n, 1), s, n);
}

void *bz_alloc(size_t n, size_t size)
{
    return bz_realloc(NULL, n, size);
}

void *bz_zeroed(size_t n, size_t size)
{
    size_t total = product(n, size);
    void *p = calloc(total ? total : 1, 1);
    if (!p)
        bz_no_memory(total);
    return p;
}

void *bz_realloc(void *p, size_t n, size_t size)
{
    size_t total = product(n, size);
    p = realloc(p, total ? total : 1);
    if (!p)
        bz_no_memory(total);
    return p;
}
