/* Where the pieces of a cut begin: at the host's longest rest, or as early as they are alike. */
#include "profile/constants.h"
#include "profile/cuts.h"

/* The place in the typical piece before which the host rests longest, if that stands out: how far behind its mark. */
static uint32_t longest_rest(const bz_work *w, const bz_cut *c)
{
    int64_t most = 0, second = 0;
    uint32_t at = 0;
    for (uint32_t k = 0; k < c->length; k++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < c->n; i++)
            if (c->first[i] + k < c->end && c->first[i] + k > 0 &&
                __builtin_add_overflow(sum, bz_work_pause(w, c->first[i] + k), &sum))
                sum = INT64_MAX;
        if (sum > most) {
            second = most;
            most = sum;
            at = k;
        } else if (sum > second) {
            second = sum;
        }
    }
    return most / (PAUSE_LONGER_BY + 1) > second / PAUSE_LONGER_BY ? at : 0;
}

void bz_cut_begins(const bz_work *w, bz_cut *c, bz_arena *arena)
{
    if (c->origin != BZ_CUT_SYMBOLS || c->n < 2 || !w->pause || (!c->first[0] && c->end == w->n))
        return;
    uint32_t shift = longest_rest(w, c), n = 0;
    if (!shift)
        return;
    uint32_t *first = BZ_NEW(arena, uint32_t, (size_t)c->n + 2), before = c->length - shift;
    if (c->first[0] >= before) { /* what was the end of a piece is now the beginning of one that is there in full */
        bool same = true;
        for (uint32_t i = 0; i < before; i++)
            same &= bz_work_name(w, c->first[0] - before + i) == bz_work_name(w, c->first[c->typical] + shift + i);
        if (same)
            first[n++] = c->first[0] - before;
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (c->first[i] + shift + c->length - c->length / 10 <= w->n)
            first[n++] = c->first[i] + shift;
    if (n < c->n)
        return;
    uint64_t end = (uint64_t)first[n - 1] + c->length;
    c->first = first;
    c->n = n;
    c->end = first[n] = end < w->n ? (uint32_t)end : (uint32_t)w->n;
    c->typical = c->typical < n ? c->typical : n - 1;
}

void bz_cut_move_back(const bz_work *w, bz_cut *c, bz_arena *arena)
{
    uint32_t from = c->first[0], length = c->first[1] - from, back = 0, n = 0;
    while (length && back < from &&
           bz_work_name(w, from - 1 - back) == bz_work_name(w, from + length - 1 - back % length))
        back++;
    if (!back)
        return;
    uint32_t more = back / length, shift = back % length, end = c->end - shift;
    uint32_t *first = BZ_NEW(arena, uint32_t, (size_t)c->n + more + 2);
    for (; n < more; n++)
        first[n] = from - back + n * length;
    for (uint32_t i = 0; i < c->n; i++)
        first[n++] = c->first[i] - shift;
    c->typical += more;
    if (shift && w->n - end >= length - length / 10) { /* what came behind the last one makes it whole */
        first[n++] = end;
        end = w->n - end < length ? (uint32_t)w->n : end + length;
    }
    c->first = first;
    c->n = n;
    c->end = first[n] = end;
}
