/* Pauses of the host that come in turns: between equal layers it rests as long as between two launches, and behind a step it does something
 * else. Other pauses are longer than these by chance, but not in turns. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/sequence.h"

#include <math.h>
#include <stdlib.h>

BZ_SORTS(by_pause, int64_t *const, BZ_THEN(BZ_ORDER(**q, **p), BZ_ORDER(*p, *q)));

/* How many are at least as long as each pause: rank[i] of pause[i]; all of them, longest first. */
static void rank_pauses(const int64_t *pause, size_t n, uint32_t *rank, int64_t *sorted)
{
    const int64_t **list = bz_alloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = &pause[i];
    qsort(list, n, sizeof *list, by_pause);
    for (size_t i = n; i-- > 0;)
        rank[list[i] - pause] = i + 1 < n && *list[i] == *list[i + 1] ? rank[list[i + 1] - pause] : (uint32_t)i + 1;
    for (size_t i = 0; i < n; i++)
        sorted[i] = *list[i];
    free(list);
}

/* Logarithm of the number of ways to take k of n. */
static double log_ways(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* The largest rank among pieces r, r + turn, … but for piece 0, of which there are two at least; as soon as one is above `limit`, that: most
 * turns are chance, which a few of their pauses tell. */
static uint32_t worst_rank(const uint32_t *rank, size_t n, size_t turn, size_t r, uint32_t limit)
{
    size_t i = (r ? r : turn) - 1;
    uint32_t worst = rank[i] > rank[i + turn] ? rank[i] : rank[i + turn]; /* no branch that nobody can foresee */
    for (i += 2 * turn; i < n && worst <= limit; i += turn)
        worst = rank[i] > worst ? rank[i] : worst;
    return worst;
}

/* The largest rank of k pauses of n at which they may be no chance. */
static uint32_t chance_from(size_t n, size_t k, double least)
{
    return (uint32_t)((double)k + (double)(n - k + 1) * exp(least / (double)k));
}

/* Of the places, those whose pauses have no larger rank. */
static size_t keep_long(uint32_t *place, size_t n, const uint32_t *rank, uint32_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (rank[place[i]] <= limit)
            place[kept++] = place[i];
    return kept;
}

enum { AT_TURN, AT_DIVISOR, ELSEWHERE, PLACES };

/* One short pause among the long ones makes a turn unlikely, and twice that turn likely: the divisor of the turn whose other pauses are long, too, nearer
 * to those of the turn than to those elsewhere. */
static size_t finer_turn(const int64_t *pause, size_t n, size_t turn, size_t from)
{
    BZ_FREED int64_t *list = bz_alloc(n, sizeof *list);
    for (size_t d = 2; d < turn; d++) {
        int64_t median[PLACES], high = 0;
        size_t longer = 0, others = 0;
        if (turn % d)
            continue;
        for (int place = PLACES; place-- > 0;) {
            size_t k = 0;
            for (size_t i = 0; i < n; i++) {
                int of = (i + 1) % turn == from ? AT_TURN : (i + 1) % d == from % d ? AT_DIVISOR : ELSEWHERE;
                if (of == place)
                    list[k++] = pause[i];
            }
            median[place] = bz_median(list, k); /* sorts */
            high = place == ELSEWHERE && k ? list[3 * k / 4] : high;
            others = place == AT_DIVISOR ? k : others;
            for (size_t i = 0; i < k && place == AT_DIVISOR; i++)
                longer += list[i] > high;
        }
        if (others && (double)longer >= NEARLY_AS_LONG * (double)others &&
            2 * (double)median[AT_DIVISOR] >= (double)median[AT_TURN] + (double)median[ELSEWHERE])
            return d;
    }
    return turn;
}

size_t bz_turn_of_rests(const int64_t *pause, size_t n, int64_t within, size_t *from)
{
    enum { STEPS = 50000000 };
    size_t most = n / 2 < STEPS / n ? n / 2 : STEPS / n, best = 0;
    double least = -log(TURNS_BY_CHANCE), tried = log((double)most * (double)most / 2 + 1);
    uint32_t *rank = bz_alloc(n, sizeof *rank), *place = bz_alloc(n, sizeof *place), below = UINT32_MAX;
    BZ_FREED int64_t *sorted = bz_alloc(n, sizeof *sorted);
    size_t n_places = n; /* where a turn may begin: fewer and fewer, as the turn gets longer */
    rank_pauses(pause, n, rank, sorted);
    for (size_t i = 0; i < n; i++)
        place[i] = (uint32_t)i;
    for (size_t turn = 2; turn <= most; turn++) {
        const size_t pieces = n / turn;
        /* of so many pieces, or one more: with a larger rank it is chance, and no exact number is needed */
        const uint32_t limit[] = {chance_from(n, pieces, least - tried), chance_from(n, pieces + 1, least - tried)};
        if (limit[1] < below / 2)
            n_places = keep_long(place, n_places, rank, below = limit[1]);
        for (size_t i = 0; i < n_places && place[i] < turn; i++) {
            const size_t r = (place[i] + 1) % turn;
            bool more = r && r <= n % turn;
            size_t k = pieces + more;
            uint32_t worst = worst_rank(rank, n, turn, r, limit[more]);
            bool whole = !r && k > 1 && worst == k && (n + 1) % turn == 0;
            if (!whole && worst > limit[more])
                continue;
            double chance = log_ways(worst, (double)k) - log_ways((double)n, (double)k) + tried;
            int64_t other = whole && sorted[k] > within ? sorted[k] : within;
            if (whole && sorted[k - 1] / PAUSE_OUT_OF_LINE > other) /* whole steps, and no pause is nearly as long */
                chance -= tried + log(TURNS_BY_CHANCE);
            if (chance < least) {
                least = chance;
                best = turn;
                *from = r;
            }
        }
    }
    free(place);
    free(rank);
    size_t finer = best ? finer_turn(pause, n, best, *from) : 0;
    *from = finer ? *from % finer : *from;
    return finer;
}
