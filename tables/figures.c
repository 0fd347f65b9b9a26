/* Values by key and their figures. */
#include "base/sort.h"
#include "tables/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The number at that place of all, in their order. */
static double number_at(const uint64_t *count, int64_t least, uint64_t place)
{
    size_t i = 0;
    while (place >= count[i])
        place -= count[i++];
    return (double)(least + (int64_t)i);
}

/* As bz_quantile. */
static double quantile_of_counts(const uint64_t *count, int64_t least, uint64_t all, double q)
{
    double at = q * (double)(all - 1);
    uint64_t i = (uint64_t)at;
    double low = number_at(count, least, i);
    return i + 1 < all ? low + (at - (double)i) * (number_at(count, least, i + 1) - low) : low;
}

figures figures_of_counts(const uint64_t *count, size_t n, int64_t least)
{
    figures f = {0};
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        f.count += (int64_t)count[i];
        f.sum += (double)count[i] * (double)(least + (int64_t)i);
    }
    uint64_t all = (uint64_t)f.count;
    if (!all)
        return f;
    f.mean = f.sum / (double)all;
    for (size_t i = 0; i < n; i++) /* one by one, which rounds as figures_of does */
        for (uint64_t k = 0; k < count[i]; k++) {
            double off = (double)(least + (int64_t)i) - f.mean;
            squares += off * off;
        }
    f.deviation = all > 1 ? sqrt(squares / (double)(all - 1)) : 0;
    f.min = number_at(count, least, 0);
    f.quarter = quantile_of_counts(count, least, all, 0.25);
    f.median = quantile_of_counts(count, least, all, 0.5);
    f.three_quarters = quantile_of_counts(count, least, all, 0.75);
    f.max = number_at(count, least, all - 1);
    return f;
}

void groups_begin(groups *g, bz_arena *arena)
{
    *g = (groups){.arena = arena};
}

void groups_add(groups *g, uint64_t key, double value)
{
    uint32_t at = bz_map_number(&g->map, g->arena, &key, sizeof key);
    if (at == g->n)
        BZ_ADD(g->key, g->n) = key;
    if (g->n_values == g->cap_values) {
        g->cap_values = g->cap_values ? g->cap_values + g->cap_values / 2 : 1024;
        g->of = bz_realloc(g->of, g->cap_values, sizeof *g->of);
        g->value = bz_realloc(g->value, g->cap_values, sizeof *g->value);
    }
    g->of[g->n_values] = at;
    g->value[g->n_values++] = value;
}

BZ_SORTS(by_sum, figures, BZ_THEN(BZ_ORDER(q->sum, p->sum), BZ_ORDER(p->key, q->key)));

/* Brings the values of each group together: `first` [n + 1], where each begins. What is not in its place changes with what is there. */
static void sort_by_group(groups *g, const size_t *first)
{
    BZ_FREED size_t *next = bz_alloc((size_t)g->n + 1, sizeof *next);
    memcpy(next, first, ((size_t)g->n + 1) * sizeof *next);
    for (uint32_t k = 0; k < g->n; k++)
        while (next[k] < first[k + 1]) {
            size_t from = next[k], to = next[g->of[from]]++;
            double value = g->value[to];
            uint32_t of = g->of[to];
            g->value[to] = g->value[from];
            g->of[to] = g->of[from];
            g->value[from] = value;
            g->of[from] = of;
        }
}

figures *groups_end(groups *g, uint32_t *n)
{
    BZ_FREED size_t *first = bz_zeroed((size_t)g->n + 1, sizeof *first);
    figures *list = BZ_NEW(g->arena, figures, (size_t)g->n + 1);
    for (size_t i = 0; i < g->n_values; i++)
        first[g->of[i] + 1]++;
    for (uint32_t k = 1; k <= g->n; k++)
        first[k] += first[k - 1];
    sort_by_group(g, first);
    for (uint32_t k = 0; k < g->n; k++) {
        list[k] = figures_of(g->value + first[k], first[k + 1] - first[k]);
        list[k].key = g->key[k];
    }
    *n = g->n;
    BZ_QSORT(list, g->n, by_sum);
    free(g->key);
    free(g->of);
    free(g->value);
    bz_map_free(&g->map);
    return list;
}
