/* Work cut into shards of about the same length. */
#include "base/sort.h"
#include "fleet/constants.h"
#include "fleet/fleet.h"

#include <math.h>
#include <stdlib.h>

typedef struct piece {
    int problem;
    double seconds;
} piece;

BZ_SORTS(longest_first, piece, BZ_THEN(BZ_ORDER(q->seconds, p->seconds), p->problem - q->problem));

static int families_of(const bz_want *want, int problem)
{
    int n = 0;
    for (int f = 0; f < BZ_PLAN_FAMILIES; f++)
        n += want->why[(size_t)problem * BZ_PLAN_FAMILIES + (size_t)f] != BZ_WANT_NOT;
    return n;
}

/* A heap of shard numbers, the shortest on top. */
static void sink(int *heap, int n, const bz_shard *shard)
{
    for (int i = 0, child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && shard[heap[child + 1]].seconds < shard[heap[child]].seconds)
            child++;
        if (shard[heap[i]].seconds <= shard[heap[child]].seconds)
            return;
        int t = heap[i];
        heap[i] = heap[child];
        heap[child] = t;
    }
}

void bz_shards_make(const bz_plan *plan, const bz_want *want, double target, int most, bz_arena *arena, bz_shards *out)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(plan, &problem), wanted = 0;
    BZ_FREED piece *list = bz_alloc((size_t)n + 1, sizeof *list);
    double total = 0;
    *out = (bz_shards){.of = BZ_NEW(arena, int, n)};
    for (int i = 0; i < n; i++) {
        out->of[i] = -1;
        if (!families_of(want, i))
            continue;
        list[wanted] = (piece){i, want->seconds[i] + SECONDS_PER_FILE};
        total += list[wanted++].seconds;
    }
    qsort(list, (size_t)wanted, sizeof *list, longest_first);
    double room = fmax(target - SECONDS_PER_SHARD, target / 4), shards = ceil(total / room);
    out->n = !wanted ? 0 : shards > most ? most : shards < 1 ? 1 : (int)shards;
    out->n = out->n > wanted ? wanted : out->n;
    out->shard = BZ_NEW(arena, bz_shard, out->n);
    int *heap = BZ_NEW(arena, int, out->n);
    for (int i = 0; i < out->n; i++) {
        heap[i] = i;
        out->shard[i].seconds = SECONDS_PER_SHARD;
    }
    for (int i = 0; i < wanted; i++) {
        bz_shard *s = &out->shard[heap[0]];
        out->of[list[i].problem] = heap[0];
        s->problems++;
        s->families += families_of(want, list[i].problem);
        s->seconds += list[i].seconds;
        sink(heap, out->n, out->shard);
    }
}
