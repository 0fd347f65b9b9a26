/* beside: a piece of work that another thread does while its caller goes on. */
#ifndef BZ_BESIDE_H
#define BZ_BESIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct bz_beside {
    pthread_t thread;
    bool runs;
} bz_beside;

/* Begins do_it(with), which looks at so many rows: until bz_beside_end nobody else may touch what it works on, and it must not print. Signals
 * are for other threads. Where there is but one processor, no thread is to be had, or rows are too few for one, it is done when this returns. */
bz_beside bz_beside_start(size_t rows, void *(*do_it)(void *with), void *with);

/* Waits for it. */
void bz_beside_end(bz_beside *b);

#endif
