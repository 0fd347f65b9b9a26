/* Least squares in two unknowns. */
#include "analyzer/predict.h"

void predict_fit_add(predict_fit *f, double x, double y, double seconds, double times)
{
    f->xx += times * x * x, f->xy += times * x * y, f->yy += times * y * y;
    f->xs += times * x * seconds, f->ys += times * y * seconds;
}

bool predict_fit_solve(const predict_fit *f, double *per_x, double *per_y)
{
    double determinant = f->xx * f->yy - f->xy * f->xy;
    if (!(determinant > 1e-6 * f->xx * f->yy))
        return false;
    *per_x = (f->xs * f->yy - f->ys * f->xy) / determinant;
    *per_y = (f->ys * f->xx - f->xs * f->xy) / determinant;
    return true;
}
