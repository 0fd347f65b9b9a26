#include "perfdb/stream.h"

#include "base/arena.h"
#include "base/open.h"
#include "base/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { CHUNK = 1 << 18 };

bz_stream *bz_source_open(const char *path, bz_error *err)
{
    bool standard = !strcmp(path, "-");
    int fd = standard ? dup(STDIN_FILENO) : bz_open_input(path, err);
    if (fd < 0 && standard)
        bz_fail(err, BZ_BAD_INPUT, "standard input: cannot be opened: %s", strerror(errno));
    return fd < 0 ? NULL : bz_stream_of(fd, standard ? "standard input" : path);
}

int bz_source_peek(bz_stream *s, size_t want, bz_error *err)
{
    bz_stream_advance(s, 0, want);
    return bz_stream_check_whole(s, err);
}

int bz_source_line(bz_stream *s, size_t limit, const char **text, size_t *len, bool *too_long, bz_error *err)
{
    *too_long = false;
    for (size_t searched = 0;;) {
        const char *end = s->len > searched ? memchr(s->data + searched, '\n', s->len - searched) : NULL;
        if (end || s->end) {
            *len = end ? (size_t)(end - s->data) : s->len;
            *too_long = *too_long || *len > limit;
            *text = *too_long ? "" : end || s->len ? s->data : NULL;
            bz_stream_advance(s, *len + (end != NULL), 0);
            return 0;
        }
        if (s->len > limit) { /* forget it, and look for its end */
            *too_long = true;
            bz_stream_advance(s, s->len, 0);
        }
        searched = s->len;
        if (bz_source_peek(s, s->len + 1, err))
            return -1;
    }
}

struct bz_sink {
    int fd;
    ZSTD_CStream *zstd;
    bz_buf waiting, packed;
};

bz_sink *bz_sink_open(int fd, bool zstd)
{
    bz_sink *s = bz_alloc(1, sizeof *s);
    *s = (bz_sink){.fd = fd, .zstd = zstd ? ZSTD_createCStream() : NULL};
    if (zstd && !s->zstd) /* else it would be written as it is */
        bz_no_memory(0);
    return s;
}

static int put(int fd, const char *data, size_t n, bz_error *err)
{
    return bz_write_all(fd, data, n) ? 0 : bz_fail(err, BZ_FAILED, "the output cannot be written: %s", strerror(errno));
}

static int flush(bz_sink *s, bool last, bz_error *err)
{
    int rc = 0;
    if (!s->zstd) {
        rc = put(s->fd, bz_buf_text(&s->waiting), s->waiting.len, err);
        bz_buf_clear(&s->waiting);
        return rc;
    }
    ZSTD_inBuffer in = {bz_buf_text(&s->waiting), s->waiting.len, 0};
    for (size_t left = 1; !rc && (last ? left != 0 : in.pos < in.size);) {
        bz_buf_clear(&s->packed);
        ZSTD_outBuffer out = {bz_buf_extend(&s->packed, CHUNK), CHUNK, 0};
        left = ZSTD_compressStream2(s->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        rc = ZSTD_isError(left) ? bz_fail(err, BZ_FAILED, "zstd: %s", ZSTD_getErrorName(left))
                                : put(s->fd, out.dst, out.pos, err);
    }
    bz_buf_clear(&s->waiting);
    return rc;
}

int bz_sink_write(bz_sink *s, const void *data, size_t n, bz_error *err)
{
    bz_buf_put(&s->waiting, data, n);
    return s->waiting.len >= CHUNK ? flush(s, false, err) : 0;
}

void bz_sink_drop(bz_sink *s)
{
    if (!s)
        return;
    ZSTD_freeCStream(s->zstd);
    bz_buf_free(&s->waiting);
    bz_buf_free(&s->packed);
    free(s);
}

int bz_sink_close(bz_sink *s, bz_error *err)
{
    int rc = flush(s, true, err);
    bz_sink_drop(s);
    return rc;
}

int bz_text_lines(const char *path, int (*each)(void *user, size_t number, const char *text, size_t len), void *user,
                  bz_error *err)
{
    enum { LONGEST = 1 << 16 };
    bz_stream *source = bz_source_open(path, err);
    const char *text = "";
    size_t len;
    bool too_long;
    int rc = 0, stop = 0;
    if (!source)
        return -1;
    for (size_t number = 1; !rc && text && !stop; number++) {
        rc = bz_source_line(source, LONGEST, &text, &len, &too_long, err);
        if (!rc && text && !too_long)
            stop = each(user, number, text, len);
    }
    bz_stream_close(source);
    return rc;
}
