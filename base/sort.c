#include "base/sort.h"

#include <stdlib.h>

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void bz_sort_numbers(double *v, size_t n)
{
    if (n > 1)
        qsort(v, n, sizeof *v, by_number);
}

void bz_sort_times(int64_t *v, size_t n)
{
    if (n > 1)
        qsort(v, n, sizeof *v, by_time);
}

double bz_quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}
