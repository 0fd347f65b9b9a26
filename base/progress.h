/* Progress: one line on stderr that says how far we are, redrawn in place. Silent where stderr is
 * not a terminal, and for the first half second, so that quick work shows nothing. */
#ifndef BZ_PROGRESS_H
#define BZ_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bz_progress {
    const char *what;
    int64_t total;
    double started, drawn; /* seconds on the monotonic clock */
    bool shown, terminal;
} bz_progress;

bz_progress bz_progress_start(const char *what, int64_t total);
void bz_progress_at(bz_progress *p, int64_t done, const char *item);
void bz_progress_end(bz_progress *p); /* wipes the line */

double bz_now(void); /* seconds, monotonic */

#endif
