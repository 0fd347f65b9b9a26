/* Wave scaling (Yu, Gao, Golikov, Pekhimenko: Habitat, USENIX ATC 2021): a kernel's blocks run in waves; a wave takes as long as the
 * memory or the clock makes it, mixed by gamma. */
#include "predict/predict.h"

#include <math.h>

/* Equation 3: intensity and ridge in operations per byte. 1: the memory decides alone; 0.5 at the ridge; towards 0 the clock does. */
double bz_wave_gamma(double intensity, double ridge)
{
    return intensity < ridge ? 1 - 0.5 * intensity / ridge : 0.5 * ridge / intensity;
}

double bz_wave_scale(bz_wave_variant variant, const bz_wave_machine *o, const bz_wave_machine *d, double blocks,
                     double gamma)
{
    double bandwidth = o->bandwidth / d->bandwidth, clock = o->clock / d->clock, wave = o->wave / d->wave;
    if (variant == BZ_WAVE_EXACT) /* equation 1 */
        return ceil(blocks / d->wave) / ceil(blocks / o->wave) * pow(bandwidth / wave, gamma) * pow(clock, 1 - gamma);
    if (variant == BZ_WAVE_PAPER) /* equation 2: many waves */
        return pow(bandwidth, gamma) * pow(wave * clock, 1 - gamma);
    /* The published program: multiprocessors instead of waves; blocks that all run at once do not scale with the memory. */
    if (blocks < o->wave && blocks < d->wave)
        return pow(clock * ceil(blocks / d->multiprocessors) / ceil(blocks / o->multiprocessors), 1 - gamma);
    return pow(bandwidth, gamma) * pow(clock * o->multiprocessors / d->multiprocessors, 1 - gamma);
}
