/* Published ways from one machine to another, to be compared with. Wave scaling is by Yu, Gao, Golikov, Pekhimenko (Habitat,
 * USENIX ATC 2021): a kernel's blocks run in waves; a wave takes as long as the memory or the clock makes it, mixed by gamma. */
#include "predict/predict.h"

#include <math.h>

static double roofline(const bz_shape *s, const bz_machine *m)
{
    return fmax(s->flops / m->f32, s->bytes / m->bandwidth);
}

/* Nobody recorded the launch: a kernel of 256 threads with few registers stands for all. */
static bz_wave_machine wave_machine(const bz_machine *m)
{
    bz_occupancy_limits limits;
    int blocks = m->gpu && bz_occupancy_limits_of(m->capability, &limits)
                     ? bz_occupancy(&limits, &(bz_launch){256, 32, 0, 0})
                     : 1;
    return (bz_wave_machine){m->bandwidth, m->clock * m->vouched, m->multiprocessors * (blocks > 0 ? blocks : 1)};
}

/* Equation 3: intensity and ridge in operations per byte. 1: the memory decides alone; 0.5 at the ridge; towards 0 the clock does. */
double bz_wave_gamma(double intensity, double ridge)
{
    return intensity < ridge ? 1 - 0.5 * intensity / ridge : 0.5 * ridge / intensity;
}

/* Equation 2: of many waves. */
double bz_wave_scale(const bz_wave_machine *o, const bz_wave_machine *d, double gamma)
{
    return pow(o->bandwidth / d->bandwidth, gamma) * pow(o->wave / d->wave * (o->clock / d->clock), 1 - gamma);
}

double bz_scaling_of(bz_scaling which, const bz_shape *s, double intensity, const bz_machine *from,
                     const bz_machine *to)
{
    bz_wave_machine a, b;
    switch (which) {
    case BZ_SCALING_PEAK:
        return from->f32 / to->f32;
    case BZ_SCALING_BANDWIDTH:
        return from->bandwidth / to->bandwidth;
    case BZ_SCALING_MULTIPROCESSORS:
        return from->multiprocessors / to->multiprocessors;
    case BZ_SCALING_ROOFLINE:
        return roofline(s, to) / roofline(s, from);
    case BZ_SCALING_WAVES:
    case BZ_SCALING_N:
        break;
    }
    a = wave_machine(from), b = wave_machine(to);
    double gamma = bz_wave_gamma(intensity, to->f32 / to->bandwidth);
    return bz_wave_scale(&a, &b, gamma);
}
