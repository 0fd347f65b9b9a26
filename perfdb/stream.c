#include "perfdb/stream.h"

#include "perfdb/perfdb.h"

#include "base/arena.h"
#include "base/open.h"
#include "base/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 1 << 18, GZIP_WINDOW = 15 + 16 };

typedef enum { PLAIN, ZSTD, GZIP } packing;

struct bz_source {
    const char *path;
    int fd;
    packing packing;
    bool ended;    /* of the packed bytes */
    bool in_frame; /* a packed frame has begun and not ended */
    ZSTD_DStream *zstd;
    z_stream gzip;
    char *packed;
    size_t packed_at, packed_len;
    int64_t bytes_in, bytes_out; /* packed, unpacked */
    bz_buf ready;                /* unpacked, from `at` on not yet taken */
    size_t at;
};

static int fill_packed(bz_source *s, bz_error *err)
{
    if (s->packed_at < s->packed_len || s->ended)
        return 0;
    ssize_t n;
    do
        n = read(s->fd, s->packed, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", s->path, strerror(errno));
    s->packed_at = 0;
    s->packed_len = (size_t)n;
    s->bytes_in += n;
    s->ended = n == 0;
    return 0;
}

int bz_source_open(bz_source **out, const char *path, bz_error *err)
{
    bool standard = !strcmp(path, "-");
    int fd = standard ? dup(STDIN_FILENO) : bz_open_input(path, err);
    *out = NULL;
    if (fd < 0)
        return standard ? bz_fail(err, BZ_BAD_INPUT, "standard input: cannot be opened: %s", strerror(errno)) : -1;
    bz_source *s = bz_alloc(1, sizeof *s);
    *s = (bz_source){.path = standard ? "standard input" : path, .fd = fd, .packed = bz_alloc(CHUNK, 1)};
    if (fill_packed(s, err)) {
        bz_source_close(s);
        return -1;
    }
    if (s->packed_len >= 4 && !memcmp(s->packed, "\x28\xb5\x2f\xfd", 4)) {
        s->packing = ZSTD;
        s->zstd = ZSTD_createDStream();
    } else if (s->packed_len >= 2 && !memcmp(s->packed, "\x1f\x8b", 2)) {
        s->packing = GZIP;
        inflateInit2(&s->gzip, GZIP_WINDOW);
    }
    *out = s;
    return 0;
}

void bz_source_close(bz_source *s)
{
    if (!s)
        return;
    close(s->fd);
    ZSTD_freeDStream(s->zstd);
    if (s->packing == GZIP)
        inflateEnd(&s->gzip);
    free(s->packed);
    bz_buf_free(&s->ready);
    free(s);
}

static int unpack_zstd(bz_source *s, char *out, size_t room, size_t *n, bz_error *err)
{
    ZSTD_inBuffer in = {s->packed + s->packed_at, s->packed_len - s->packed_at, 0};
    ZSTD_outBuffer to = {out, room, 0};
    size_t left = ZSTD_decompressStream(s->zstd, &to, &in);
    if (ZSTD_isError(left))
        return bz_fail(err, BZ_BAD_INPUT, "%s: damaged zstd data: %s", s->path, ZSTD_getErrorName(left));
    s->packed_at += in.pos;
    s->in_frame = left != 0;
    *n = to.pos;
    return 0;
}

/* A gzip file may be several, one after the other. */
static int unpack_gzip(bz_source *s, char *out, size_t room, size_t *n, bz_error *err)
{
    s->gzip.next_in = (Bytef *)s->packed + s->packed_at;
    s->gzip.avail_in = (uInt)(s->packed_len - s->packed_at);
    s->gzip.next_out = (Bytef *)out;
    s->gzip.avail_out = (uInt)room;
    if (!s->in_frame)
        inflateReset(&s->gzip);
    int code = inflate(&s->gzip, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return bz_fail(err, BZ_BAD_INPUT, "%s: damaged gzip data", s->path);
    s->packed_at = s->packed_len - s->gzip.avail_in;
    s->in_frame = code != Z_STREAM_END;
    *n = room - s->gzip.avail_out;
    return 0;
}

static int unpack(bz_source *s, char *out, size_t room, size_t *n, bz_error *err)
{
    *n = 0;
    while (*n == 0) {
        if (fill_packed(s, err))
            return -1;
        if (s->ended && s->packing != PLAIN && s->in_frame)
            return bz_fail(err, BZ_BAD_INPUT, "%s: ends in the middle of its packed data: it was cut", s->path);
        if (s->ended)
            return 0;
        if (s->packing == ZSTD ? unpack_zstd(s, out, room, n, err)
                               : s->packing == GZIP && unpack_gzip(s, out, room, n, err))
            return -1;
        if (s->packing == PLAIN) {
            *n = s->packed_len - s->packed_at < room ? s->packed_len - s->packed_at : room;
            memcpy(out, s->packed + s->packed_at, *n);
            s->packed_at += *n;
        }
    }
    s->bytes_out += (int64_t)*n;
    return bz_unpacks_to_bomb(s->bytes_out, s->bytes_in, s->path, err) ? -1 : 0;
}

/* One more chunk behind what is ready; *n is 0 at the end. */
static int more(bz_source *s, size_t *n, bz_error *err)
{
    if (s->at) {
        memmove(s->ready.data, s->ready.data + s->at, s->ready.len - s->at);
        s->ready.len -= s->at;
        s->at = 0;
    }
    size_t len = s->ready.len;
    char *to = bz_buf_extend(&s->ready, CHUNK);
    int rc = unpack(s, to, CHUNK, n, err);
    s->ready.len = len + (rc ? 0 : *n);
    s->ready.data[s->ready.len] = 0;
    return rc;
}

int bz_source_peek(bz_source *s, size_t want, const char **text, size_t *n, bz_error *err)
{
    for (size_t got = 1; s->ready.len - s->at < want && got;)
        if (more(s, &got, err))
            return -1;
    *text = bz_buf_text(&s->ready) + s->at;
    *n = s->ready.len - s->at;
    return 0;
}

int bz_source_read(bz_source *s, void *out, size_t room, size_t *n, bz_error *err)
{
    if (s->at == s->ready.len)
        return unpack(s, out, room, n, err);
    *n = s->ready.len - s->at < room ? s->ready.len - s->at : room;
    memcpy(out, s->ready.data + s->at, *n);
    s->at += *n;
    return 0;
}

int bz_source_line(bz_source *s, size_t limit, const char **text, size_t *len, bool *too_long, bz_error *err)
{
    size_t searched = 0, got = 1;
    *too_long = false;
    if (!s->ready.data)
        bz_buf_grow(&s->ready, 1); /* of nothing there is no place to look at */
    for (;;) {
        char *line = s->ready.data + s->at;
        size_t ready = s->ready.len - s->at;
        char *end = ready > searched ? memchr(line + searched, '\n', ready - searched) : NULL;
        if (end || (!got && ready)) {
            *len = end ? (size_t)(end - line) : ready;
            s->at += *len + (end ? 1 : 0);
            *too_long = *too_long || *len > limit;
            *text = *too_long ? "" : line;
            return 0;
        }
        if (!got) {
            *text = *too_long ? "" : NULL;
            *len = 0;
            return 0;
        }
        if (ready > limit) { /* forget it, and look for its end */
            *too_long = true;
            s->at = s->ready.len;
            ready = 0;
        }
        searched = ready;
        if (more(s, &got, err))
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
    bz_source *source;
    const char *text = "";
    size_t len;
    bool too_long;
    int rc = bz_source_open(&source, path, err), stop = 0;
    if (rc)
        return -1;
    for (size_t number = 1; !rc && text && !stop; number++) {
        rc = bz_source_line(source, LONGEST, &text, &len, &too_long, err);
        if (!rc && text && !too_long)
            stop = each(user, number, text, len);
    }
    bz_source_close(source);
    return rc;
}
