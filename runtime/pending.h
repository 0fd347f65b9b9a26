/* pending: what a program is to run. Private to runtime/. */
#ifndef BZ_PENDING_H
#define BZ_PENDING_H

#include "base/arena.h"
#include "runtime/runtime.h"

/* One problem with its families, from a generated file or from a text. */
typedef struct bz_pending_item {
    const char *text;
    const bz_family *families;
    int n;
    bool wanted; /* bz_pending_keep has found it */
    bz_known *known;
    int n_known;
} bz_pending_item;

typedef struct bz_pending {
    bz_arena arena; /* of what the items consist of */
    bz_pending_item *item;
    int n;
    const char *backend[8], *layout[8]; /* of problems given as texts; none: all of the processor's */
    int n_backends, n_layouts;
} bz_pending;

int bz_pending_add(bz_pending *p, const bz_benchmark *benchmark, bz_error *err);
int bz_pending_add_text(bz_pending *p, const char *text, bz_error *err);
int bz_pending_read(bz_pending *p, FILE *f, bz_error *err); /* a text on each line */

/* Keeps the problems whose text has this part; or is a line of the file: then what stands behind that line, indented, is
 * known. */
void bz_pending_filter(bz_pending *p, const char *part);
int bz_pending_keep(bz_pending *p, const char *path, bz_error *err);

void bz_pending_print(const bz_pending *p); /* on standard output */
void bz_pending_free(bz_pending *p);

#endif
