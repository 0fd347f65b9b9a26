/* A file read once from front to back, decompressed on the way (gzip, zstd), through a window that
 * does not grow with the file. */
#ifndef BZ_STREAM_H
#define BZ_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bz_stream {
    const char *path;
    const char *data; /* [len] unread bytes; a zero stands behind those that bz_stream_advance read */
    size_t len;
    bool end;                /* nothing comes after the window */
    bool compressed, memory; /* memory: there is no file at `path` */
    bool broken;             /* the compressed data is damaged or cut off */
    int failure;             /* errno of a read that the system refused: the rest is missing; 0 */
    bool open_line;          /* the last line that came has no end */
    int64_t passed;          /* bytes consumed, decompressed */
    int64_t packed;          /* bytes of the file that were read, where it is compressed */
    struct bz_stream_private *private;
} bz_stream;

bz_stream *bz_stream_open(const char *path, bz_error *err);
bz_stream *bz_stream_of(int fd,
                        const char *path); /* of an open file, which it closes; `path` is what sentences call it */
bz_stream *bz_stream_memory(const char *data, size_t n); /* for tests; data must outlive the stream */
void bz_stream_close(bz_stream *s);                      /* NULL is fine */

/* Drops `used` bytes from the front and reads until at least `want` are there or the file ends. */
void bz_stream_advance(bz_stream *s, size_t used, size_t want);

/* -1 where the stream ended early: the system could not read on, or the file is packed so well that it cannot be a recording. */
int bz_stream_check(const bz_stream *s, bz_error *err);
int bz_stream_check_whole(const bz_stream *s, bz_error *err); /* -1 where the compressed data is broken, too */

/* The next line without its end, and moves on. False at the end of the file. The line stays valid
 * until the next call. Lines over a megabyte come out in pieces. */
bool bz_stream_line(bz_stream *s, const char **line, size_t *n);

#endif
