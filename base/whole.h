/* whole: a file that appears whole or not at all, and one that is read as a whole.
 *
 * What is written goes into a new file next to the target, under a name that nobody can have laid a link at, and takes the
 * target's place at the end. What stands behind a link is replaced, not the link. What is no regular file (a device, a pipe),
 * and the file that our own standard output goes to, is written to as it is. */
#ifndef BZ_WHOLE_H
#define BZ_WHOLE_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bz_whole {
    const char *path; /* as it was named; must live as long */
    char *target;     /* behind links */
    char *part;       /* the new file; NULL where `fd` is the target itself */
    bool nameless;    /* it gets that name at the end */
    int fd;
} bz_whole;

int bz_whole_open(bz_whole *w, const char *path, bz_error *err);
/* For libraries that want to open it themselves: `part` is there from the beginning, and stays where a kill -9 ends us. */
int bz_whole_open_named(bz_whole *w, const char *path, bz_error *err);

/* With `good`, puts the new file in its place; without, removes it, and *err stays. Returns 0 only where the file is there. */
int bz_whole_close(bz_whole *w, bool good, bz_error *err);

/* All of it in one call. */
int bz_whole_write(const char *path, const bz_buf *text, bz_error *err);

/* Writes all of it to an open file, through signals; false with errno where that fails. */
bool bz_write_all(int fd, const void *data, size_t n);

/* Appends what a small file holds. One that is longer than `limit` is the wrong one: "PATH: TOO_LONG". */
int bz_whole_read(const char *path, size_t limit, const char *too_long, bz_buf *out, bz_error *err);

/* Whether two names, which may be links, are of one file that is there. */
bool bz_same_file(const char *a, const char *b);

/* A small file that fills the memory or the disk is an attack, or no recording: those unpack to some ten times their size, and a log
 * whose lines differ in nothing but their times, of two bytes each where 200 are written, to a hundred times. Fills *err where it is true. */
bool bz_unpacks_to_bomb(int64_t unpacked, int64_t packed, const char *path, bz_error *err);

#endif
