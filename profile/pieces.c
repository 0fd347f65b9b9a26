/* How alike two pieces of a sequence are. */
#include "profile/constants.h"
#include "profile/cuts.h"

#include <string.h>

/* Events that both pieces have, by a table of symbols: multisets, since calls on two threads may change places. */
size_t bz_pieces_common(const bz_work *w, int32_t *balance, const uint32_t *symbol, size_t a, size_t a_n, size_t b,
                        size_t b_n)
{
    const uint32_t *exact = w->exact;
    size_t n = 0;
    if (a_n == b_n && !memcmp(exact + a, exact + b, a_n * sizeof *exact))
        return a_n; /* nearly always */
    for (size_t i = 0; i < a_n; i++)
        balance[symbol[exact[a + i]]]++;
    for (size_t i = 0; i < b_n; i++)
        n += balance[symbol[exact[b + i]]]-- > 0;
    for (size_t i = 0; i < a_n; i++)
        balance[symbol[exact[a + i]]] = 0;
    for (size_t i = 0; i < b_n; i++)
        balance[symbol[exact[b + i]]] = 0;
    return n;
}

bool bz_pieces_same(const bz_work *w, const uint32_t *symbol, size_t a, size_t b, size_t n)
{
    size_t i = 0;
    while (i < n && symbol[w->exact[a + i]] == symbol[w->exact[b + i]])
        i++;
    return i == n;
}

/* Steps whose work varies, because sequences are longer or shorter, layers are left out, experts are chosen, or a part is done in some of them
 * alone: they begin and end with the same sorts of work, and have the same sorts between, or one has all of the other's. */
bool bz_pieces_vary(const bz_work *w, int32_t *balance, size_t a, size_t a_n, size_t b, size_t b_n)
{
    enum { ENDS = 2, TIMES = 16, LEAST = SHORTEST_PASS / 2 };
    size_t of_a = 0, more = 0, both = 0;
    if (a_n < LEAST || b_n < LEAST)
        return false;
    if (a_n / TIMES > b_n || b_n / TIMES > a_n || bz_work_sort(w, a) != bz_work_sort(w, b))
        return false;
    /* behind which a result is fetched may do a bit more in the end */
    size_t more_by = w->between[a + a_n] & w->between[b + b_n] & BZ_BETWEEN_RESULT ? ENDS : 0;
    bool ends = false;
    for (size_t k = 0; k <= more_by && !ends; k++)
        ends = bz_pieces_same(w, w->sort, a + a_n - ENDS - k, b + b_n - ENDS, ENDS) ||
               bz_pieces_same(w, w->sort, a + a_n - ENDS, b + b_n - ENDS - k, ENDS);
    if (!ends)
        return false;
    for (size_t i = 0; i < a_n; i++) {
        of_a += !balance[bz_work_sort(w, a + i)];
        balance[bz_work_sort(w, a + i)] = 1;
    }
    for (size_t i = 0; i < b_n; i++) {
        more += !balance[bz_work_sort(w, b + i)];
        both += balance[bz_work_sort(w, b + i)] == 1;
        balance[bz_work_sort(w, b + i)] = 2;
    }
    for (size_t i = 0; i < a_n; i++)
        balance[bz_work_sort(w, a + i)] = 0;
    for (size_t i = 0; i < b_n; i++)
        balance[bz_work_sort(w, b + i)] = 0;
    return 4 * both >= 3 * (of_a + more) || (both > ENDS && (both == of_a || !more));
}
