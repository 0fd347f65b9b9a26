/* What `--metrics LIST` may name, and which of a GPU's counters make it up. Private to runtime/. */
#ifndef BZ_METRICS_H
#define BZ_METRICS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* One row of the table: weight times the counter goes into `result` of the group, and into `also`. */
typedef struct bz_metric {
    const char *group, *result, *also; /* `also` may be NULL */
    double weight;
    const char *chips; /* beginnings of chips' names as CUPTI gives them, with blanks; behind a '!' those left out */
    const char *name;
} bz_metric;

extern const bz_metric bz_metrics[]; /* ends with a group of NULL */

bool bz_metric_is_on(const bz_metric *m, const char *chip);

/* The words of a list, one after the other; its length, 0 at the end. `*list` moves behind it. */
size_t bz_metrics_word(const char **list, const char **word);

/* Whether the word is a group of the table, or could be a counter's own name: the library knows those. */
bool bz_metrics_group(const char *word, size_t n);
bool bz_metrics_name(const char *word, size_t n);

/* Looks at a list: whether any counters are asked for. BZ_USAGE where a word is neither a counter nor "kernels". */
int bz_metrics_check(const char *list, bool *counters, bz_error *err);

#endif
