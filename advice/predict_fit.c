/* Two unknowns that fit points best: by least absolute deviations, so that single points far off do not count. */
#include "advice/constants.h"
#include "advice/predict.h"

#include <math.h>
#include <stdlib.h>

static int heavier(const void *x, const void *y)
{
    const predict_point *a = x, *b = y;
    double s = a->times * a->seconds, t = b->times * b->seconds;
    return (s < t) - (s > t);
}

typedef struct fit {
    const predict_point *p;
    int n;
    double per_x, per_y, off; /* the best so far */
} fit;

static void consider(fit *f, double per_x, double per_y)
{
    double off = 0;
    if (!(per_x >= 0 && per_y >= 0 && isfinite(per_x + per_y)))
        return;
    for (int i = 0; i < f->n && off < f->off; i++)
        off += f->p[i].times * fabs(f->p[i].seconds - per_x * f->p[i].x - per_y * f->p[i].y);
    if (off < f->off)
        f->per_x = per_x, f->per_y = per_y, f->off = off;
}

/* Such a fit goes through two of the points, or through one with one of the unknowns 0. */
void predict_fit(predict_point *p, int n, double *per_x, double *per_y)
{
    if (n > 1)
        qsort(p, (size_t)n, sizeof *p, heavier);
    fit f = {.p = p, .n = n < PREDICT_FIT_POINTS ? n : PREDICT_FIT_POINTS, .off = INFINITY};
    for (int i = 0; i < f.n; i++)
        consider(&f, p[i].seconds / p[i].x, 0);
    for (int i = 0; i < f.n; i++)
        consider(&f, 0, p[i].seconds / p[i].y);
    for (int i = 0; i < f.n; i++)
        for (int k = 0; k < i; k++) {
            double area = p[i].x * p[k].y - p[k].x * p[i].y;
            consider(&f, (p[i].seconds * p[k].y - p[k].seconds * p[i].y) / area,
                     (p[i].x * p[k].seconds - p[k].x * p[i].seconds) / area);
        }
    *per_x = f.per_x;
    *per_y = f.per_y;
}
