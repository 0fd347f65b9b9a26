#include "base/buf.h"

#include "base/arena.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bz_buf_grow(bz_buf *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->len <= n)
        cap *= 2;
    b->data = bz_realloc(b->data, cap, 1);
    b->cap = cap;
}

void bz_buf_int(bz_buf *b, int64_t v)
{
    if (v >= 0 && v < 10) { /* most of a key */
        bz_buf_putc(b, (char)('0' + v));
        return;
    }
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    size_t n = v < 0 ? 2 : 1;
    for (uint64_t rest = u; rest >= 10; rest /= 10)
        n++;
    char *first = bz_buf_extend(b, n), *p = first + n; /* into its place: a copy right behind the writes stalls */
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        *first = '-';
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

void bz_buf_clean(bz_buf *b, const char *s)
{
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        uint32_t c;
        int n = utf8_read(p, &c);
        if (n && !is_unsafe(c))
            bz_buf_put(b, p, (size_t)n);
        for (int i = 0; n == 0 ? i < 1 : is_unsafe(c) && i < n; i++)
            bz_buf_printf(b, "\\x%02x", p[i]);
        p += n ? n : 1;
    }
}

/* By the format `one`, which has one conversion: its letter is the last. */
static void say_one(bz_buf *b, const char *one, size_t n, va_list *args)
{
    if (one[n - 1] == 's')
        bz_buf_clean(b, va_arg(*args, const char *));
    else if (one[n - 1] == '%')
        bz_buf_putc(b, '%');
    else if (one[n - 1] == 'f' || one[n - 1] == 'g')
        bz_buf_printf(b, one, va_arg(*args, double));
    else if (one[n - 2] == 'l')
        bz_buf_printf(b, one, va_arg(*args, long long));
    else if (one[n - 2] == 'z')
        bz_buf_printf(b, one, va_arg(*args, size_t));
    else
        bz_buf_printf(b, one, va_arg(*args, int)); /* or unsigned */
}

void bz_buf_say(bz_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    while (*fmt) {
        char one[16];
        size_t plain = strcspn(fmt, "%"), n = 1;
        bz_buf_put(b, fmt, plain);
        fmt += plain;
        if (!*fmt)
            break;
        n += strspn(fmt + n, "-+ #.0123456789lz") + 1;
        memcpy(one, fmt, n);
        one[n] = 0;
        say_one(b, one, n, &args);
        fmt += n;
    }
    va_end(args);
}

void bz_buf_html(bz_buf *b, const char *s)
{
    static const char SPECIAL[] = "&<>\"'", *const SPELLED[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    BZ_SCOPED(bz_buf) clean = {0};
    bz_buf_clean(&clean, s);
    for (const char *p = bz_buf_text(&clean); *p; p++) {
        const char *at = strchr(SPECIAL, *p);
        if (at)
            bz_buf_puts(b, SPELLED[at - SPECIAL]);
        else
            bz_buf_putc(b, *p);
    }
}

void bz_buf_html_lines(bz_buf *b, const char *s)
{
    BZ_SCOPED(bz_buf) line = {0};
    for (const char *p = s; *p;) {
        size_t n = strcspn(p, "\n");
        bz_buf_clear(&line);
        bz_buf_put(&line, p, n);
        bz_buf_html(b, bz_buf_text(&line));
        bz_buf_putc(b, '\n');
        p += n + (p[n] == '\n');
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

char *bz_buf_keep(bz_buf *b, bz_arena *arena)
{
    char *text = bz_arena_str(arena, bz_buf_text(b));
    bz_buf_free(b);
    return text;
}

void bz_buf_word(bz_buf *out, const char *text)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@+";
    if (*text && !text[strspn(text, PLAIN)]) {
        bz_buf_puts(out, text);
        return;
    }
    bz_buf_putc(out, '\'');
    for (; *text; text++)
        bz_buf_printf(out, *text == '\'' ? "'\\%c'" : "%c", *text);
    bz_buf_putc(out, '\'');
}
