#include "base/buf.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *bz_buf_extend(bz_buf *b, size_t n)
{
    if (b->cap - b->len <= n) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap - b->len <= n)
            cap *= 2;
        b->data = bz_realloc(b->data, cap, 1);
        b->cap = cap;
    }
    char *p = b->data + b->len;
    b->len += n;
    b->data[b->len] = 0;
    return p;
}

void bz_buf_put(bz_buf *b, const void *data, size_t n)
{
    if (n)
        memcpy(bz_buf_extend(b, n), data, n);
}

void bz_buf_puts(bz_buf *b, const char *s)
{
    bz_buf_put(b, s, strlen(s));
}

void bz_buf_putc(bz_buf *b, char c)
{
    *bz_buf_extend(b, 1) = c;
}

void bz_buf_int(bz_buf *b, int64_t v)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        *--p = '-';
    bz_buf_put(b, p, (size_t)(digits + sizeof digits - p));
}

void bz_buf_printf(bz_buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    vsnprintf(bz_buf_extend(b, (size_t)n), (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
}

/* Marks that reorder what stands around them (U+061C, U+200E, U+200F, U+202A..202E, U+2066..2069)
 * or begin a new line (U+2028, U+2029). */
static bool is_invisible(const unsigned char *s)
{
    if (s[0] == 0xd8)
        return s[1] == 0x9c;
    return s[0] == 0xe2 && ((s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
                            (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Length of the well-formed UTF-8 sequence at s, 0 where there is none. Control characters
 * (C0, DEL, C1) count as not well-formed: they are what an attacker would send. */
static int utf8_length(const unsigned char *s)
{
    if (s[0] >= 0x20 && s[0] < 0x7f)
        return 1;
    int n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((n == 2 && s[0] == 0xc2 && s[1] < 0xa0) || (n == 3 && s[0] == 0xe0 && s[1] < 0xa0) ||
        (n == 3 && s[0] == 0xed && s[1] >= 0xa0) || (n == 4 && s[0] == 0xf0 && s[1] < 0x90) ||
        (n == 4 && s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return n > 1 && is_invisible(s) ? 0 : n;
}

void bz_buf_clean(bz_buf *b, const char *s)
{
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        int n = utf8_length(p);
        if (n)
            bz_buf_put(b, p, (size_t)n);
        else
            bz_buf_printf(b, "\\x%02x", *p);
        p += n ? n : 1;
    }
}

const char *bz_buf_text(const bz_buf *b)
{
    return b->data ? b->data : "";
}

void bz_buf_clear(bz_buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = 0;
}

void bz_buf_free(bz_buf *b)
{
    free(b->data);
    *b = (bz_buf){0};
}
