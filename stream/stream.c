#include "stream/stream.h"

#include "base/arena.h"
#include "base/open.h"
#include "base/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { INPUT = 1 << 16, WINDOW = 1 << 18, LONGEST_LINE = 1 << 20 };

struct bz_stream_private {
    int fd; /* -1: the window is all there is */
    char *buffer;
    size_t cap;
    enum { PLAIN, GZIP, ZSTD } packing;
    z_stream z;
    ZSTD_DStream *zstd;
    bool member_open;        /* a compressed member was begun and not finished */
    const char *wrong, *why; /* with the compressed data, where it is broken */
    unsigned char *input;
    size_t input_at, input_n;
};

/* 0 at the end, and where the system cannot read on. */
static size_t read_some(bz_stream *s, void *to, size_t n)
{
    ssize_t got;
    do
        got = read(s->private->fd, to, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        s->failure = errno;
    return got > 0 ? (size_t)got : 0;
}

static void broken(bz_stream *s, const char *wrong, const char *why)
{
    s->broken = true;
    s->private->wrong = wrong;
    s->private->why = why;
}

/* Up to n decompressed bytes; 0 at the end or where the data is damaged. */
static size_t inflate_some(bz_stream *s, char *to, size_t n)
{
    struct bz_stream_private *p = s->private;
    for (;;) {
        if (p->input_at == p->input_n) {
            p->input_at = 0;
            p->input_n = read_some(s, p->input, INPUT);
            s->packed += (int64_t)p->input_n;
            if (!p->input_n && p->member_open)
                broken(s, "ends in the middle of its packed data: it was cut", "");
            if (!p->input_n)
                return 0;
        }
        size_t made;
        if (p->packing == GZIP) {
            p->z.next_in = p->input + p->input_at;
            p->z.avail_in = (uInt)(p->input_n - p->input_at);
            p->z.next_out = (Bytef *)to;
            p->z.avail_out = (uInt)n;
            int rc = inflate(&p->z, Z_NO_FLUSH);
            p->input_at = p->input_n - p->z.avail_in;
            made = n - p->z.avail_out;
            p->member_open = rc != Z_STREAM_END;
            if (rc == Z_STREAM_END)
                inflateReset(&p->z); /* members may follow one another */
            else if (rc != Z_OK && rc != Z_BUF_ERROR)
                broken(s, "damaged gzip data", "");
        } else {
            ZSTD_inBuffer in = {p->input, p->input_n, p->input_at};
            ZSTD_outBuffer out = {to, n, 0};
            size_t rc = ZSTD_decompressStream(p->zstd, &out, &in);
            p->input_at = in.pos;
            made = out.pos;
            p->member_open = rc != 0;
            if (ZSTD_isError(rc))
                broken(s, "damaged zstd data: ", ZSTD_getErrorName(rc));
        }
        if (made || s->broken)
            return made;
    }
}

static bool is_bomb(const bz_stream *s, bz_error *err)
{
    return s->compressed && bz_unpacks_to_bomb(s->passed + (int64_t)s->len, s->packed, s->path, err);
}

void bz_stream_advance(bz_stream *s, size_t used, size_t want)
{
    struct bz_stream_private *p = s->private;
    s->data += used;
    s->len -= used;
    s->passed += (int64_t)used;
    if (s->len >= want || s->end)
        return;
    if (s->len)
        memmove(p->buffer, s->data, s->len);
    if (want > p->cap / 2) {
        p->cap = want * 2;
        p->buffer = bz_realloc(p->buffer, p->cap + 1, 1);
    }
    s->data = p->buffer;
    while (s->len < want && !s->end) {
        char *to = p->buffer + s->len;
        size_t room = p->cap - s->len;
        size_t got = p->packing == PLAIN ? read_some(s, to, room) : inflate_some(s, to, room);
        s->len += got;
        s->end = !got || s->broken || is_bomb(s, NULL);
    }
    p->buffer[s->len] = 0;
}

int bz_stream_check(const bz_stream *s, bz_error *err)
{
    if (s->failure)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", s->path, strerror(s->failure));
    return is_bomb(s, err) ? -1 : 0;
}

int bz_stream_check_whole(const bz_stream *s, bz_error *err)
{
    if (bz_stream_check(s, err))
        return -1;
    return s->broken ? bz_fail(err, BZ_BAD_INPUT, "%s: %s%s", s->path, s->private->wrong, s->private->why) : 0;
}

bz_stream *bz_stream_open(const char *path, bz_error *err)
{
    int fd = bz_open_input(path, err);
    struct stat st;
    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        close(fd);
        bz_fail(err, BZ_BAD_INPUT, "%s: is a directory: give the files in it", path);
        return NULL;
    }
    return bz_stream_of(fd, path);
}

bz_stream *bz_stream_of(int fd, const char *path)
{
    bz_stream *s = bz_alloc(1, sizeof *s);
    *s = (bz_stream){.path = path, .private = bz_alloc(1, sizeof *s->private)};
    struct bz_stream_private *p = s->private;
    *p = (struct bz_stream_private){
        .fd = fd, .cap = WINDOW, .buffer = bz_alloc(WINDOW + 1, 1), .input = bz_alloc(INPUT, 1)};
    p->input_n = read_some(s, p->input, INPUT);
    if (p->input_n >= 3 && !memcmp(p->input, "\x1f\x8b\x08", 3) && inflateInit2(&p->z, 15 + 16) == Z_OK)
        p->packing = GZIP;
    else if (p->input_n >= 4 && !memcmp(p->input, "\x28\xb5\x2f\xfd", 4) && (p->zstd = ZSTD_createDStream()))
        p->packing = ZSTD;
    s->compressed = p->packing != PLAIN;
    s->packed = (int64_t)p->input_n;
    s->data = p->buffer;
    if (p->packing == PLAIN) {
        memcpy(p->buffer, p->input, p->input_n);
        s->len = p->input_n;
    }
    return s;
}

bz_stream *bz_stream_memory(const char *data, size_t n)
{
    bz_stream *s = bz_alloc(1, sizeof *s);
    *s = (bz_stream){.path = "memory",
                     .memory = true,
                     .data = data,
                     .len = n,
                     .end = true,
                     .private = bz_alloc(1, sizeof *s->private)};
    *s->private = (struct bz_stream_private){.fd = -1};
    return s;
}

void bz_stream_close(bz_stream *s)
{
    if (!s)
        return;
    struct bz_stream_private *p = s->private;
    if (p->packing == GZIP)
        inflateEnd(&p->z);
    ZSTD_freeDStream(p->zstd);
    if (p->fd >= 0)
        close(p->fd);
    free(p->buffer);
    free(p->input);
    free(p);
    free(s);
}

bool bz_stream_line(bz_stream *s, const char **line, size_t *n)
{
    const char *newline = s->len ? memchr(s->data, '\n', s->len) : NULL;
    if (!newline && !s->end) {
        size_t want = s->len + 1;
        do {
            bz_stream_advance(s, 0, want);
            newline = s->len ? memchr(s->data, '\n', s->len) : NULL;
            want = s->len + 1;
        } while (!newline && !s->end && s->len < LONGEST_LINE);
    }
    if (!s->len)
        return false;
    *line = s->data;
    *n = newline ? (size_t)(newline - s->data) : s->len;
    s->open_line = !newline;
    size_t used = *n + (newline != NULL);
    s->data += used;
    s->len -= used;
    s->passed += (int64_t)used;
    if (*n && (*line)[*n - 1] == '\r')
        --*n;
    return true;
}
