/* Sentences on a terminal that is narrower than they are. Tables are fitted when they are printed (base/table.c). */
#include "base/table.h"

#include <string.h>

/* Colours take no column. */
static int width_of(const char *s, size_t n)
{
    BZ_SCOPED(bz_buf) plain = {0};
    for (size_t i = 0; i < n; i++)
        if (s[i] == '\033')
            i += strcspn(s + i, "m");
        else
            bz_buf_putc(&plain, s[i]);
    return bz_text_width(bz_buf_text(&plain));
}

/* A word ends at a blank; what stands in quotes is a command that somebody may copy, and stays together. */
static size_t word_length(const char *s, size_t n)
{
    const char *quote = n && *s == '\'' ? memchr(s + 1, '\'', n - 1) : NULL;
    size_t at = quote ? (size_t)(quote - s) : 0;
    while (at < n && s[at] != ' ')
        at++;
    return at;
}

static size_t blanks(const char *s, size_t n)
{
    size_t at = 0;
    while (at < n && s[at] == ' ')
        at++;
    return at;
}

/* Where the lines behind the first begin: below the text that follows a label, as in "cpu   AMD EPYC". */
static int indent_of(const char *s, size_t n, int columns)
{
    size_t colour = n && *s == '\033' ? strcspn(s, "m") + 1 : 0; /* the end of the line above's */
    s += colour;
    n -= colour;
    size_t lead = blanks(s, n), at = lead;
    int indent = (int)lead + (n > lead + 2 && s[lead + 1] == '.' && s[lead + 2] == ' ' ? 3 : 2);
    while (at < n) {
        at += word_length(s + at, n - at);
        size_t gap = blanks(s + at, n - at);
        at += gap;
        if (gap > 1 && at < n && width_of(s, at) <= columns / 2)
            indent = width_of(s, at);
    }
    return indent;
}

/* A line that would begin behind the middle of the screen begins below the text of the line above it. */
static void wrap_line(bz_buf *out, const char *s, size_t n, int columns, const char *above)
{
    size_t lead = blanks(s, n), from = above && 2 * (int)lead > columns ? lead : 0;
    int indent = from ? indent_of(above, strcspn(above, "\n"), columns) : indent_of(s, n, columns);
    int used = from ? indent : 0;
    bz_buf_printf(out, "%*s", used, "");
    for (size_t at = from; at < n;) {
        size_t gap = blanks(s + at, n - at), word = word_length(s + at + gap, n - at - gap);
        int width = width_of(s + at + gap, word);
        if (used > indent && used + (int)gap + width > columns) {
            bz_buf_printf(out, "\n%*s", indent, "");
            used = indent;
        } else {
            bz_buf_put(out, s + at, gap);
            used += (int)gap;
        }
        bz_buf_put(out, s + at + gap, word);
        used += width;
        at += gap + word;
    }
}

void bz_text_wrap(bz_buf *out, const char *text, int columns)
{
    for (const char *above = NULL; *text;) {
        size_t n = strcspn(text, "\n");
        bool code = !strncmp(text, "   do:", 6) || blanks(text, n) == 8; /* lines to be copied into a program */
        if (columns < 20 || code || width_of(text, n) <= columns)
            bz_buf_put(out, text, n);
        else
            wrap_line(out, text, n, columns, above);
        above = text;
        text += n;
        if (*text)
            bz_buf_putc(out, *text++);
    }
}
