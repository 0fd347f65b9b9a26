/* Finds what repeats in a sequence of library calls: the iterations of a program that was not
 * instrumented. Symbols that occur at least twice, and runs of 4, 16 and 64 symbols (a network may consist of
 * nothing but two functions), are tried as the mark of an iteration; the one whose segments resemble their
 * successors over the longest stretch wins. Segments are compared as multisets, because calls on two threads
 * may change places. */
#include "profile/constants.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint32_t *symbol; /* dense */
    size_t n;
    uint32_t n_symbols;
    const uint32_t *gram; /* number of the run of symbols that begins here: what marks are made of */
    uint32_t n_grams;
    size_t tolerance; /* one event in so many may differ between segments */
    int32_t *balance; /* [n_symbols], all zero between comparisons */
} sequence;

typedef struct {
    size_t begin, length; /* the repeating stretch: begin is its first mark, length that of one segment */
    size_t covered;       /* events in it */
    size_t mismatches;    /* by how many events its segments differ from the ones before them, in all */
    uint32_t segments;
    uint32_t mark;
} period;

/* Number of events that one segment has and the other lacks, both ways. */
static size_t difference(const sequence *s, size_t a, size_t a_n, size_t b, size_t b_n)
{
    size_t d = 0;
    if (a_n == b_n && !memcmp(s->symbol + a, s->symbol + b, a_n * sizeof *s->symbol))
        return 0; /* nearly always */
    for (size_t i = 0; i < a_n; i++)
        s->balance[s->symbol[a + i]]++;
    for (size_t i = 0; i < b_n; i++)
        s->balance[s->symbol[b + i]]--;
    for (size_t i = 0; i < a_n; i++) {
        d += (size_t)abs(s->balance[s->symbol[a + i]]);
        s->balance[s->symbol[a + i]] = 0;
    }
    for (size_t i = 0; i < b_n; i++) {
        d += (size_t)abs(s->balance[s->symbol[b + i]]);
        s->balance[s->symbol[b + i]] = 0;
    }
    return d;
}

static bool alike(const sequence *s, size_t a, size_t a_n, size_t b, size_t b_n, size_t *by)
{
    size_t longer = a_n > b_n ? a_n : b_n, shorter = a_n > b_n ? b_n : a_n;
    if (longer - shorter > longer / s->tolerance)
        return false;
    *by = difference(s, a, a_n, b, b_n);
    return *by <= longer / s->tolerance;
}

/* The longest stretch of segments between occurrences of `mark` in which each is like the one before. */
static period stretch(const sequence *s, uint32_t mark, uint32_t *at)
{
    size_t k = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->gram[i] == mark)
            at[k++] = (uint32_t)i;
    period best = {.mark = mark};
    size_t from = 0, mismatches = 0;
    for (size_t i = 1; i < k; i++) {
        /* the segment behind the last mark has no end: it is as long as the one before */
        size_t length = at[i] - at[i - 1], end = i + 1 < k ? at[i + 1] : at[i] + length, by = 0;
        bool same = end <= s->n && alike(s, at[i - 1], length, at[i], end - at[i], &by);
        mismatches += by;
        if (same && end - at[from] > best.covered) {
            best.begin = at[from];
            best.covered = end - at[from];
            best.segments = (uint32_t)(i - from + 1);
            best.length = best.covered / best.segments;
            best.mismatches = mismatches;
        }
        if (!same) {
            from = i;
            mismatches = 0;
        }
    }
    return best;
}

/* Where a symbol's number stands, or would stand, in a table of which at least half is free. */
static uint32_t *slot_of(uint32_t *slot, size_t cap, const uint64_t *known, uint64_t symbol)
{
    uint64_t h = symbol * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(h ^ h >> 32);
    while (slot[at & (cap - 1)] != BZ_NONE && known[slot[at & (cap - 1)]] != symbol)
        at++;
    return &slot[at & (cap - 1)];
}

/* Dense numbers for symbols, in order of appearance. A map of its own: it is asked once per event, and nearly always for
 * one of a few. */
static uint32_t number(const uint64_t *symbol, size_t n, uint32_t *dense)
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
        if (*s == BZ_NONE) {
            known[n_ids] = symbol[i];
            *s = n_ids++;
        }
        dense[i] = *s;
    }
    free(known);
    free(slot);
    return n_ids;
}

/* What lies before the first mark and behind the last one may be parts of iterations as well. */
static size_t reach(const period *p)
{
    return p->covered + p->length;
}

/* Marks that occur equally often find the same stretch, so only two marks of each count are tried. */
static void try_marks(const sequence *s, period *best, uint32_t *at, uint32_t *count)
{
    uint32_t tried[MARKS_TRIED], n_tried = 0;
    memset(count, 0, s->n_grams * sizeof *count);
    for (size_t i = 0; i < s->n; i++)
        count[s->gram[i]]++;
    for (uint32_t id = 0; id < s->n_grams && n_tried < MARKS_TRIED; id++) {
        int equals = 0;
        for (uint32_t i = 0; i < n_tried && count[id] >= 2; i++)
            equals += count[tried[i]] == count[id];
        if (count[id] < 2 || equals >= 2)
            continue;
        tried[n_tried++] = id;
        period p = stretch(s, id, at);
        /* About the same stretch in more segments: the other one took two iterations for one; unless the segments
         * are less alike: then they are layers, and what begins or ends an iteration lies between them. */
        bool as_long = reach(&p) + p.covered / EVENTS_PER_LENGTH >= best->covered,
             longer = p.covered > reach(best) + best->covered / EVENTS_PER_LENGTH;
        bool better = p.mismatches != best->mismatches ? p.mismatches < best->mismatches : p.segments > best->segments;
        if (p.segments >= 2 && (longer || (as_long && better)))
            *best = p;
    }
}

/* From the numbers of the runs of `width` symbols, those of four such runs in a row; the last ones are shorter. */
static uint32_t widen(uint32_t *gram, size_t n, size_t width, uint64_t *hash)
{
    for (size_t i = 0; i < n; i++) {
        hash[i] = 0;
        for (size_t k = i; k < i + 4 * width; k += width)
            hash[i] = (hash[i] ^ (k < n ? gram[k] + UINT64_C(1) : 0)) * 0x9e3779b97f4a7c15u;
    }
    return number(hash, n, gram);
}

static period best_period(sequence *s, uint64_t *hash, bz_arena *scratch)
{
    /* the hashes are done with when the marks are tried: the same memory holds positions and counts */
    uint32_t *gram = NULL, *at = (uint32_t *)hash, *count = at + s->n;
    period best = {0};
    s->gram = s->symbol;
    s->n_grams = s->n_symbols;
    for (size_t width = 1; width <= LONGEST_MARK && width <= s->n / 2; width *= 4) {
        if (width > 1) {
            if (!gram)
                s->gram = gram = bz_arena_dup(scratch, s->symbol, s->n * sizeof *gram);
            s->n_grams = widen(gram, s->n, width / 4, hash);
        }
        try_marks(s, &best, at, count);
        if (best.segments >= 2 && !best.mismatches && reach(&best) >= s->n)
            break; /* all of it, without a difference: no longer mark occurs more often */
    }
    return best;
}

/* Where in the segment an iteration begins: with the first event, if the whole sequence is made of iterations from
 * there on; else behind the longest pause, if one stands out; else where the program began. Returns how many events
 * to go on from the mark. */
static size_t begins(const sequence *s, const period *p, bz_pauses *pauses, const void *context, bz_arena *scratch)
{
    if (s->n % p->length == 0 && !difference(s, 0, p->length, p->begin, p->length))
        return (p->length - p->begin % p->length) % p->length;
    const int64_t *gap = pauses ? pauses(context, scratch) : NULL;
    int64_t most = 0, second = 0;
    size_t at = 0;
    for (size_t j = 0; gap && j < p->length; j++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < p->segments; i++) {
            size_t k = p->begin + i * p->length + j;
            if (k < s->n && k > 0)
                bz_time_add(&sum, gap[k]);
        }
        if (sum > most) {
            second = most;
            most = sum;
            at = j;
        } else if (sum > second) {
            second = sum;
        }
    }
    if (most > second + second / PAUSE_LONGER_BY)
        return at;
    /* the first event of the sequence that the segment has exactly as often as others have iterations */
    for (size_t i = 0; i < s->n && i <= p->begin; i++)
        for (size_t j = 0; j < p->length; j++)
            if (s->symbol[p->begin + j] == s->symbol[i])
                return j;
    return 0;
}

static size_t next_mark(const sequence *s, size_t from, uint32_t symbol, size_t within)
{
    for (size_t i = from; i < s->n && i < from + within; i++)
        if (s->symbol[i] == symbol)
            return i;
    return s->n;
}

/* Boundaries from the stretch outwards. Segments may differ by an event or two, so each boundary is
 * looked for near where it should be. */
static uint32_t boundaries(const sequence *s, const period *p, size_t offset, uint32_t **first, bz_arena *arena)
{
    size_t length = p->length, start = p->begin + offset;
    uint32_t symbol = s->symbol[start < s->n ? start : p->begin];
    size_t cap = s->n / (length ? length : 1) + 4, k = 0;
    size_t *at = BZ_NEW(arena, size_t, cap);
    /* backwards: warm-up has the same calls, perhaps with others between them */
    size_t first_at = start;
    while (first_at >= length - length / 4 && k + 1 < cap) {
        size_t guess = first_at >= length ? first_at - length : 0;
        size_t n = first_at - guess;
        if (difference(s, guess, n, start, start + length <= s->n ? length : s->n - start) > length * 6 / 10)
            break;
        if (s->symbol[guess] != symbol) { /* shift to the mark, at most a quarter either way */
            size_t low = guess > length / 4 ? guess - length / 4 : 0, mark = next_mark(s, low, symbol, length / 2);
            guess = mark < first_at ? mark : guess;
        }
        first_at = guess;
        k++;
        if (!guess)
            break;
    }
    /* forwards from there */
    k = 0;
    for (size_t i = first_at; i + length - length / 10 <= s->n && k + 1 < cap;) {
        size_t left = s->n - i, n = left < length ? left : length;
        if (i > start && difference(s, start, length < s->n - start ? length : s->n - start, i, n) > length / 4)
            break; /* the program went on to something else */
        at[k++] = i;
        size_t next = i + length;
        if (next < s->n && s->symbol[next] != symbol) {
            size_t low = next > length / 4 ? next - length / 4 : 0;
            low = low > i ? low : i + 1;
            size_t mark = next_mark(s, low, symbol, length / 2);
            next = mark < s->n ? mark : next;
        }
        i = next;
    }
    if (!k)
        return 0;
    size_t end = at[k - 1] + length < s->n ? at[k - 1] + length : s->n;
    *first = BZ_NEW(arena, uint32_t, k + 1);
    for (size_t i = 0; i < k; i++)
        (*first)[i] = (uint32_t)at[i];
    (*first)[k] = (uint32_t)end;
    return (uint32_t)k;
}

uint32_t bz_find_period(uint64_t *symbol, size_t n, bz_pauses *pauses, const void *context, uint32_t **first,
                        bz_arena *arena)
{
    if (n < 4 || n >= BZ_NONE)
        return 0;
    bz_arena scratch = {0};
    uint32_t *dense = BZ_NEW(&scratch, uint32_t, n);
    sequence s = {.symbol = dense, .n = n, .n_symbols = number(symbol, n, dense)};
    s.balance = BZ_NEW(&scratch, int32_t, s.n_symbols);
    uint32_t found = 0;
    s.tolerance = EVENTS_PER_DIFFERENCE;
    period p = best_period(&s, symbol, &scratch);
    if (p.covered * LEAST_COVERED < n) {
        s.tolerance = EVENTS_PER_DIFFERENCE_AGAIN;
        p = best_period(&s, symbol, &scratch);
        if (p.segments > 2)
            p.segments = 0;
    }
    if (p.segments >= 2 && p.covered * LEAST_COVERED >= n)
        found = boundaries(&s, &p, begins(&s, &p, pauses, context, &scratch), first, arena);
    bz_arena_free(&scratch);
    return found >= 2 ? found : 0;
}
