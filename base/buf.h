/* A byte string that grows. A zeroed bz_buf is an empty one; `data` is always zero-terminated
 * once something was put. Numbers are formatted by hand: keys are built by the hundred thousand. */
#ifndef BZ_BUF_H
#define BZ_BUF_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct bz_buf {
    char *data;
    size_t len, cap;
} bz_buf;

void bz_buf_grow(bz_buf *b, size_t n); /* room for n bytes more */

/* `n` writable bytes at the end, counted as part of the string already. */
static inline char *bz_buf_extend(bz_buf *b, size_t n)
{
    if (b->cap - b->len <= n)
        bz_buf_grow(b, n);
    char *p = b->data + b->len;
    b->len += n;
    b->data[b->len] = 0;
    return p;
}

static inline void bz_buf_put(bz_buf *b, const void *data, size_t n)
{
    if (n)
        memcpy(bz_buf_extend(b, n), data, n);
}

static inline void bz_buf_puts(bz_buf *b, const char *s)
{
    bz_buf_put(b, s, strlen(s));
}

static inline void bz_buf_putc(bz_buf *b, char c)
{
    *bz_buf_extend(b, 1) = c;
}

void bz_buf_int(bz_buf *b, int64_t v);
void bz_buf_printf(bz_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As puts, but bytes that a terminal would act on come out as \xNN. Valid UTF-8 passes. */
void bz_buf_clean(bz_buf *b, const char *s);
/* As printf, and each %s comes out as by clean: names and paths are a stranger's. Takes %s, %d, %u, %lld, %zu, %f and %g alone. */
void bz_buf_say(bz_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As clean, for HTML: in an element or in a quoted attribute. */
void bz_buf_html(bz_buf *b, const char *s);
void bz_buf_html_lines(bz_buf *b, const char *s); /* line ends stay, and there is one behind the last */

/* "" while nothing was put, so that it can always be printed. */
const char *bz_buf_text(const bz_buf *b);

void bz_buf_clear(bz_buf *b); /* empties, keeps the memory */
void bz_buf_free(bz_buf *b);

/* Its text, kept in the arena; the buffer is freed. */
char *bz_buf_keep(bz_buf *b, bz_arena *arena);
/* As one word for a shell, in quotes where it has to be. */
void bz_buf_word(bz_buf *out, const char *text);

#endif
