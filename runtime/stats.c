/* Statistics of samples that are not normal: median, quantiles, and a median's interval. */
#include "base/sort.h"
#include "runtime/runtime.h"

#include <math.h>

/* The interval from the r-th smallest to the r-th largest sample misses the median with probability
 * 2 P(B < r), B binomial with n trials of one half. Returns the largest r for which that is at most 5 %,
 * 0 where even the whole range is not enough. */
static int interval_rank(int n)
{
    double below = 0, term = -n * log(2); /* log of C(n,i) / 2^n, i = 0 */
    int r = 0;
    while (r < n / 2) {
        below += exp(term);
        if (2 * below > 0.05)
            break;
        term += log((double)(n - r) / (r + 1));
        r++;
    }
    return r;
}

bz_stats bz_stats_of(double *samples, int n)
{
    bz_sort_numbers(samples, (size_t)n);
    int r = interval_rank(n);
    return (bz_stats){
        .n = n,
        .median = bz_quantile(samples, (size_t)n, 0.5),
        .q25 = bz_quantile(samples, (size_t)n, 0.25),
        .q75 = bz_quantile(samples, (size_t)n, 0.75),
        .min = samples[0],
        .max = samples[n - 1],
        .low = r ? samples[r - 1] : -INFINITY,
        .high = r ? samples[n - r] : INFINITY,
    };
}

double bz_stats_uncertainty(const bz_stats *s)
{
    return s->median > 0 ? (s->high - s->low) / 2 / s->median : INFINITY;
}

double bz_stats_spread(const bz_stats *s)
{
    return s->median > 0 ? (s->q75 - s->q25) / s->median : 0;
}

bool bz_stats_noisy(const bz_stats *s)
{
    bool few = isinf(s->low) || isinf(s->high);
    double width = few ? s->max - s->min : s->high - s->low;
    return bz_stats_spread(s) > BZ_NOISY_SPREAD || width > BZ_NOISY_SPREAD * s->median;
}
