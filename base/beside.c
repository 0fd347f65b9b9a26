#include "base/beside.h"

#include <sched.h>
#include <signal.h>

static bool has_processors(void)
{
    cpu_set_t set;
    return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 1;
}

bz_beside bz_beside_start(size_t rows, void *(*do_it)(void *with), void *with)
{
    enum { WORTH_A_THREAD = 10000 }; /* rows that take longer than a thread does to begin: 0.1 to 0.2 ms */
    bz_beside b = {.runs = false};
    sigset_t all, old;
    if (rows >= WORTH_A_THREAD && has_processors()) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        b.runs = !pthread_create(&b.thread, NULL, do_it, with);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (!b.runs)
        do_it(with);
    return b;
}

void bz_beside_end(bz_beside *b)
{
    if (b->runs)
        pthread_join(b->thread, NULL);
    b->runs = false;
}
