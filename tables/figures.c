/* Values by key and their figures. */
#include "base/sort.h"
#include "tables/parts.h"

#include <math.h>
#include <stdlib.h>

figures figures_of(double *values, size_t n)
{
    figures f = {.count = (int64_t)n};
    if (!n)
        return f;
    bz_quantiles q = bz_quantiles_of(values, n);
    for (size_t i = 0; i < n; i++)
        f.sum += values[i];
    f.mean = f.sum / (double)n;
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - f.mean) * (values[i] - f.mean);
    f.deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    f.min = q.min;
    f.quarter = bz_quantile(values, n, 0.25);
    f.median = q.p50;
    f.three_quarters = bz_quantile(values, n, 0.75);
    f.max = q.max;
    return f;
}

void groups_begin(groups *g, bz_arena *arena)
{
    *g = (groups){.arena = arena};
}

/* The map keeps the address of a key, not the key: those lie in the arena. */
void groups_add(groups *g, uint64_t key, double value)
{
    uint32_t at = bz_map_get(&g->map, &key, sizeof key);
    if (at == BZ_MAP_NONE) {
        uint64_t *kept = bz_arena_dup(g->arena, &key, sizeof key);
        at = g->n;
        bz_map_add(&g->map, kept, sizeof *kept, at);
        BZ_ROOM(g->key, g->n);
        g->key[g->n++] = key;
    }
    if (g->n_values == g->cap_values) {
        g->cap_values = g->cap_values ? g->cap_values + g->cap_values / 2 : 1024;
        g->of = bz_realloc(g->of, g->cap_values, sizeof *g->of);
        g->value = bz_realloc(g->value, g->cap_values, sizeof *g->value);
    }
    g->of[g->n_values] = at;
    g->value[g->n_values++] = value;
}

static int by_sum(const void *a, const void *b)
{
    const figures *p = a, *q = b;
    if (p->sum != q->sum)
        return p->sum < q->sum ? 1 : -1;
    return p->key < q->key ? -1 : p->key > q->key;
}

figures *groups_end(groups *g, uint32_t *n)
{
    size_t *first = bz_zeroed((size_t)g->n + 2, sizeof *first);
    double *sorted = bz_alloc(g->n_values + 1, sizeof *sorted);
    figures *list = BZ_NEW(g->arena, figures, (size_t)g->n + 1);
    for (size_t i = 0; i < g->n_values; i++)
        first[g->of[i] + 2]++;
    for (uint32_t k = 2; k < g->n + 2; k++)
        first[k] += first[k - 1];
    for (size_t i = 0; i < g->n_values; i++)
        sorted[first[g->of[i] + 1]++] = g->value[i];
    for (uint32_t k = 0; k < g->n; k++) {
        list[k] = figures_of(sorted + first[k], first[k + 1] - first[k]);
        list[k].key = g->key[k];
    }
    *n = g->n;
    if (g->n)
        qsort(list, g->n, sizeof *list, by_sum);
    free(first);
    free(sorted);
    free(g->key);
    free(g->of);
    free(g->value);
    bz_map_free(&g->map);
    return list;
}
