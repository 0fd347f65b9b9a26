/* Progress: one line on stderr that says what is being done and how far it is, redrawn in place. It appears when a piece of
 * work has taken a second, on a terminal only, and is wiped at the end. A thread draws it, so that work which reports nothing
 * shows at least how long it takes. Pieces of work may lie within each other: the innermost is shown. */
#ifndef BZ_PROGRESS_H
#define BZ_PROGRESS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bz_progress {
    int64_t total; /* may change between calls; 0: not known */
    int level;
} bz_progress;

/* `what` is kept, not copied: "building benchmarks". */
bz_progress bz_progress_start(const char *what, int64_t total);
void bz_progress_at(bz_progress *p, int64_t done, const char *item); /* `item` may be NULL */
void bz_progress_end(bz_progress *p);                                /* wipes the line */

/* Before anybody else writes to the terminal: wipes the line. While it is held, none is drawn: a program of the user's runs, or
 * a question waits for its answer. */
void bz_progress_wipe(void);
void bz_progress_hold(bool held);

/* "benanza: WHAT 7/40, 12 s left  ITEM", in the width of the terminal, as a longer line could not be wiped: the item gives way. */
void bz_progress_line(const char *what, int64_t done, int64_t total, const char *item, double passed, int columns,
                      bz_buf *out);

double bz_now(void); /* seconds, monotonic */

#endif
