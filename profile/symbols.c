/* What a sequence is read into: dense numbers for symbols, pauses in four bytes each, and what the host did, counted. */
#include "base/sort.h"
#include "profile/cuts.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers for symbols ---- */

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

/* A symbol, and what stands `width` behind it, and twice and three times as far: as numbers above 0, 0 behind the end. */
typedef struct {
    uint64_t part[4];
} run;

static inline run run_at(const uint32_t *gram, size_t n, size_t i, size_t width)
{
    run r;
    bool inside = i + 3 * width < n;
    for (size_t k = 0; k < 4; k++)
        r.part[k] = inside || i + k * width < n ? gram[i + k * width] + UINT64_C(1) : 0;
    return r;
}

uint32_t bz_widen_symbols(uint32_t *gram, size_t n, size_t width)
{
    enum { PLACES = 1 << 12 };
    struct {
        run run;
        uint32_t number;
    } *known = bz_zeroed(PLACES, sizeof *known),
      *last; /* the last run that began with each symbol mostly comes again */
    BZ_SCOPED(bz_numbers) x = {0};
    for (size_t i = 0; i < n; i++) {
        run r = run_at(gram, n, i, width);
        last = &known[gram[i] % PLACES];
        if (((r.part[0] ^ last->run.part[0]) | (r.part[1] ^ last->run.part[1]) | (r.part[2] ^ last->run.part[2]) |
             (r.part[3] ^ last->run.part[3])) != 0) {
            uint64_t hash = 0;
            for (int k = 0; k < 4; k++)
                hash = (hash ^ r.part[k]) * SPREAD;
            last->run = r;
            last->number = bz_numbers_add(&x, hash);
        }
        gram[i] = last->number;
    }
    free(known);
    return x.n;
}

/* ---- pauses ---- */

int64_t bz_work_long_pause(const bz_work *w, size_t i)
{
    size_t low = 0, high = w->n_long;
    BZ_FIND_FIRST(low, high, middle, w->long_pause[middle].at < i);
    return w->long_pause[low].time;
}

void bz_work_add_pause(bz_work *w, size_t i, int64_t time, bz_arena *arena)
{
    bool is_short = time >= 0 && time < UINT32_MAX;
    w->pause[i] = is_short ? (uint32_t)time : UINT32_MAX;
    if (is_short)
        return;
    BZ_ARENA_ADD(arena, w->long_pause, w->n_long) = (bz_long_pause){(uint32_t)i, time};
}

/* ---- what the host did ---- */

void bz_work_count(const bz_work *w, const uint32_t *count[BZ_DO_COUNTED], bz_arena *scratch)
{
    for (bz_doing what = BZ_DO_INPUT; what < BZ_DO_COUNTED; what++) {
        size_t any = what == BZ_DO_UPDATE && !bz_work_any(w, BZ_DOES_OPTIMIZE) ? w->n + 1 : 0;
        while (any <= w->n && !bz_work_does_at(w, what, any))
            any++;
        if (any > w->n)
            continue;
        uint32_t *n = BZ_NEW(scratch, uint32_t, w->n + 2);
        for (size_t i = 0; i <= w->n; i++)
            n[i + 1] = n[i] + bz_work_does_at(w, what, i);
        count[what] = n;
    }
}
