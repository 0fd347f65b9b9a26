#include "runtime/quiet.h"

#include "base/progress.h"
#include "runtime/constants.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHAIN = 131072, PRODUCTS = 12288 };

/* Integer work in which each step waits for the one before, then eight independent chains of floating-point work: the
 * first tells the clock, the second whether another thread uses the same core's units. About 150 µs. */
static double work(void)
{
    uint64_t x = 1;
    double a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    double start = bz_now();
    for (int i = 0; i < CHAIN; i++) {
        x = x * 3 + 1;
        __asm__ volatile("" : "+r"(x));
    }
    for (int i = 0; i < PRODUCTS; i++)
        for (int k = 0; k < 8; k++)
            a[k] = a[k] * 0.999999 + 1e-7;
    for (int k = 0; k < 8; k++)
        __asm__ volatile("" : : "m"(a[k]));
    return bz_now() - start;
}

double bz_yardstick(void)
{
    double best = INFINITY;
    for (int i = 0; i < 3; i++)
        best = fmin(best, work());
    return best;
}

static void pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

void bz_quiet_begin(bz_quiet *q, double limit, double yardstick, int threads)
{
    const char *given = getenv("BENANZA_WAIT");
    char *end;
    double v = given ? strtod(given, &end) : -1;
    bool usable = given && end != given && !*end && v >= 0 && v <= 1e6;
    q->limit = limit >= 0 ? limit : usable ? v : WAIT;
    q->threads = threads > 0 ? threads : 1;
    q->yardstick = yardstick > 0 ? yardstick : INFINITY;
    for (int i = 0; i < 8; i++)
        q->yardstick = fmin(q->yardstick, bz_yardstick());
    bz_load_read("", &q->before);
}

/* Kernel threads run for a moment now and then: only who is there at each of some looks counts. */
static bool is_crowded(int threads, bz_load *l)
{
    bz_load_read("", l);
    for (int i = 1; i < LOOKS && !bz_load_has_room(l, threads); i++) {
        bz_load again;
        pause_for(0.002);
        bz_load_read("", &again);
        if (again.runnable < l->runnable)
            l->runnable = again.runnable;
    }
    return !bz_load_has_room(l, threads);
}

bool bz_quiet_look(bz_quiet *q, char why[160])
{
    bz_load now;
    bool crowded = is_crowded(q->threads, &now);
    double stolen = bz_load_stolen(&q->before, &now), yardstick = bz_yardstick();
    q->before = now;
    q->yardstick = fmin(q->yardstick, yardstick);
    if (crowded)
        snprintf(why, 160, "%d other task%s want%s its %d processor%s", now.runnable, now.runnable == 1 ? "" : "s",
                 now.runnable == 1 ? "s" : "", now.processors, now.processors == 1 ? "" : "s");
    else if (stolen > STOLEN)
        snprintf(why, 160, "the hypervisor gives %.0f %% of its time to other machines", 100 * stolen);
    else if (yardstick > SLOW_PHASE * q->yardstick)
        snprintf(why, 160, "it computes %.0f %% slower than at its best", 100 * (yardstick / q->yardstick - 1));
    else
        return false;
    return true;
}

bool bz_quiet_wait(bz_quiet *q, char why[160])
{
    double begin = bz_now(), before = q->waited;
    bool told = false, busy;
    while ((busy = bz_quiet_look(q, why)) && q->waited - before < q->limit && q->waited < 2 * q->limit) {
        if (!told && q->tell)
            q->tell(q->context, why);
        told = true;
        pause_for(WAIT_STEP);
        q->waited = before + (bz_now() - begin);
    }
    return busy;
}
