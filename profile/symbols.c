/* What a sequence is read into: dense numbers for symbols, pauses in four bytes each, and what the host did, counted. */
#include "base/sort.h"
#include "profile/cuts.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t SPREAD = 0x9e3779b97f4a7c15u;

/* Where a symbol's number stands, or would stand, in a table of which at least half is free. */
static uint32_t *slot_of(const bz_numbers *x, uint64_t symbol)
{
    uint64_t h = symbol * SPREAD;
    size_t at = (size_t)(h ^ h >> 32);
    while (x->slot[at & (x->cap - 1)] != UINT32_MAX && x->known[x->slot[at & (x->cap - 1)]] != symbol)
        at++;
    return &x->slot[at & (x->cap - 1)];
}

static void grow_numbers(bz_numbers *x)
{
    x->cap = x->cap ? 4 * x->cap : 1024;
    x->slot = bz_realloc(x->slot, x->cap, sizeof *x->slot);
    x->known = bz_realloc(x->known, x->cap, sizeof *x->known);
    memset(x->slot, 0xff, x->cap * sizeof *x->slot);
    for (uint32_t id = 0; id < x->n; id++)
        *slot_of(x, x->known[id]) = id;
}

/* A map of its own: it is asked once per event, and nearly always for one of a few. */
uint32_t bz_numbers_add(bz_numbers *x, uint64_t symbol)
{
    if (x->n >= x->cap / 2)
        grow_numbers(x);
    uint32_t *slot = slot_of(x, symbol);
    if (*slot == UINT32_MAX) {
        x->known[x->n] = symbol;
        *slot = x->n++;
    }
    return *slot;
}

void bz_numbers_free(bz_numbers *x)
{
    free(x->known);
    free(x->slot);
    *x = (bz_numbers){0};
}

uint32_t bz_number_symbols(const uint64_t *symbol, size_t n, uint32_t *dense)
{
    BZ_SCOPED(bz_numbers) x = {0};
    for (size_t i = 0; i < n; i++)
        dense[i] = bz_numbers_add(&x, symbol[i]);
    return x.n;
}

/* The number of a symbol with what stands `width` behind it, and twice and three times as far: as numbers above 0, 0 behind the end. */
static uint32_t number_of_run(bz_numbers *x, const uint32_t *gram, size_t n, size_t i, size_t width)
{
    uint64_t hash = 0;
    for (size_t k = 0; k < 4; k++)
        hash = (hash ^ (i + k * width < n ? gram[i + k * width] + UINT64_C(1) : 0)) * SPREAD;
    return bz_numbers_add(x, hash);
}

/* How many symbols from i on are those from an earlier place on. */
static size_t same_as_before(const uint32_t *symbol, size_t n, size_t before, size_t i)
{
    enum { AT_ONCE = 64 };
    size_t k = 0;
    while (i + k + AT_ONCE <= n && !memcmp(symbol + before + k, symbol + i + k, AT_ONCE * sizeof *symbol))
        k += AT_ONCE;
    while (i + k < n && symbol[before + k] == symbol[i + k])
        k++;
    return k;
}

/* Copies what stands from an earlier place on; where it reaches into what it makes, that is repeated. */
static void repeat(uint32_t *gram, size_t before, size_t i, size_t n)
{
    for (size_t k = 0, part; k < n; k += part) {
        part = n - k < i - before ? n - k : i - before;
        memcpy(gram + i + k, gram + before + k, part * sizeof *gram);
    }
}

uint32_t bz_widen_symbols(uint32_t *gram, const uint32_t *finest, size_t n, size_t width)
{
    enum { PLACES = 1 << 12, TRIED_EACH = 64 };
    struct {
        uint32_t part[4], number, at;
    } *known = bz_alloc(PLACES, sizeof *known), *last; /* the last run that began with each symbol mostly comes again */
    BZ_SCOPED(bz_numbers) x = {0};
    size_t whole = n > 3 * width ? n - 3 * width : 0, next = 0; /* next: where repetitions are looked for again */
    memset(known, 0xff, PLACES * sizeof *known);                /* no symbol has that number */
    for (size_t i = 0; i < whole; i++) {
        uint32_t a = gram[i], b = gram[i + width], c = gram[i + 2 * width], d = gram[i + 3 * width];
        last = &known[a % PLACES];
        if (((a ^ last->part[0]) | (b ^ last->part[1]) | (c ^ last->part[2]) | (d ^ last->part[3])) != 0) {
            last->part[0] = a;
            last->part[1] = b;
            last->part[2] = c;
            last->part[3] = d;
            last->number = number_of_run(&x, gram, n, i, width);
        } else if (i >= next) {
            size_t same = same_as_before(finest, n, last->at, i), end = i + same;
            next = end + TRIED_EACH;
            if (same > 4 * width) { /* the last ones have something else behind them */
                end = end - 4 * width < whole ? end - 4 * width : whole;
                repeat(gram, last->at, i, end - i);
                i = end - 1;
                continue;
            }
        }
        last->at = (uint32_t)i;
        gram[i] = last->number;
    }
    for (size_t i = whole; i < n; i++)
        gram[i] = number_of_run(&x, gram, n, i, width);
    free(known);
    return x.n;
}

int64_t bz_work_long_pause(const bz_work *w, size_t i)
{
    size_t low = 0, high = w->n_long;
    BZ_FIND_FIRST(low, high, middle, w->long_pause[middle].at < i);
    return w->long_pause[low].time;
}

void bz_work_add_long_pause(bz_work *w, size_t i, int64_t time, bz_arena *arena)
{
    w->pause[i] = UINT32_MAX;
    BZ_ARENA_ADD(arena, w->long_pause, w->n_long) = (bz_long_pause){(uint32_t)i, time};
}

void bz_work_count(const bz_work *w, const uint32_t *count[BZ_DO_COUNTED], bz_arena *scratch)
{
    const bool any[BZ_DO_COUNTED] = {[BZ_DO_INPUT] = w->fed,
                                     [BZ_DO_RESULT] = w->anywhere & BZ_BETWEEN_RESULT,
                                     [BZ_DO_WAIT] = w->anywhere & BZ_BETWEEN_WAIT,
                                     [BZ_DO_UPDATE] = bz_work_any(w, BZ_DOES_OPTIMIZE)};
    for (bz_doing what = BZ_DO_INPUT; what < BZ_DO_COUNTED; what++) {
        if (!any[what])
            continue;
        uint32_t *n = BZ_NEW(scratch, uint32_t, w->n + 2);
        for (size_t i = 0; i <= w->n; i++)
            n[i + 1] = n[i] + bz_work_does_at(w, what, i);
        count[what] = n;
    }
}
