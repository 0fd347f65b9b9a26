/* stream: bytes in and out, packed or not. Private to perfdb. */
#ifndef BZ_PERFDB_STREAM_H
#define BZ_PERFDB_STREAM_H

#include "stream/stream.h"

/* "-" is standard input. NULL where it cannot be opened. */
bz_stream *bz_source_open(const char *path, bz_error *err);

/* At least `want` bytes are in the window, where the file has as many. */
int bz_source_peek(bz_stream *s, size_t want, bz_error *err);

/* The next line without its end; *text is NULL at the end of the file. A line over `limit` bytes
 * is passed over: *text is "" and *too_long true. */
int bz_source_line(bz_stream *s, size_t limit, const char **text, size_t *len, bool *too_long, bz_error *err);

typedef struct bz_sink bz_sink;

bz_sink *bz_sink_open(int fd, bool zstd);
int bz_sink_write(bz_sink *s, const void *data, size_t n, bz_error *err);
int bz_sink_close(bz_sink *s, bz_error *err); /* writes what is left; the descriptor stays open */
void bz_sink_drop(bz_sink *s);                /* without; NULL is fine */

#endif
