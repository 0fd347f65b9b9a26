#include "base/table.h"

#include "base/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 32 };

typedef struct {
    const char *text, *plain;
    bz_style style;
} cell;

struct bz_table {
    bz_arena *arena;
    int n_columns;
    const char *title[MAX_COLUMNS];
    bz_align align[MAX_COLUMNS];
    int width[MAX_COLUMNS];
    cell *cells; /* row after row */
    size_t n, cap;
};

bz_table *bz_table_new(bz_arena *arena)
{
    bz_table *t = BZ_NEW(arena, bz_table, 1);
    t->arena = arena;
    return t;
}

/* Of the character that begins here. Combining marks count 0, East Asian wide characters 2: enough for names that people
 * write. */
static int character_width(const unsigned char *p)
{
    if ((*p & 0xc0) == 0x80)
        return 0;
    bool combining = (p[0] == 0xcc || (p[0] == 0xcd && p[1] < 0xb0));
    bool wide = (p[0] >= 0xe3 && p[0] <= 0xed) || p[0] == 0xf0;
    return combining ? 0 : wide ? 2 : 1;
}

int bz_text_width(const char *s)
{
    int width = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        width += character_width(p);
    return width;
}

void bz_text_fit(bz_buf *out, const char *s, int width)
{
    int all = bz_text_width(s), head = width / 2, tail = all - (width - 1 - head), at = 0;
    bool cut = false, behind = false;
    if (all <= width) {
        bz_buf_puts(out, s);
        return;
    }
    for (size_t bytes; *s; s += bytes) {
        int w = character_width((const unsigned char *)s);
        for (bytes = 1; ((unsigned char)s[bytes] & 0xc0) == 0x80;)
            bytes++;
        behind |= at >= tail && w; /* a mark without its letter is left out, too */
        if ((!cut && at + w <= head) || behind)
            bz_buf_put(out, s, bytes);
        else if (!cut)
            bz_buf_puts(out, "…");
        cut |= at + w > head;
        at += w;
    }
}

void bz_table_column(bz_table *t, const char *title, bz_align align)
{
    if (t->n_columns == MAX_COLUMNS)
        return;
    t->title[t->n_columns] = title;
    t->align[t->n_columns] = align;
    t->width[t->n_columns++] = bz_text_width(title);
}

static char *clean_copy(bz_arena *arena, const char *text)
{
    bz_buf clean = {0};
    bz_buf_clean(&clean, text);
    char *copy = bz_arena_strn(arena, bz_buf_text(&clean), clean.len);
    bz_buf_free(&clean);
    return copy;
}

void bz_table_cell(bz_table *t, const char *text, const char *plain)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        t->cells = bz_arena_grow(t->arena, t->cells, t->n, cap, sizeof *t->cells);
        t->cap = cap;
    }
    cell *c = &t->cells[t->n];
    size_t plain_ascii = 0;
    while (text[plain_ascii] >= ' ' && text[plain_ascii] <= '~')
        plain_ascii++;
    int width = (int)plain_ascii;
    if (!text[plain_ascii]) { /* nearly all cells */
        c->text = bz_arena_strn(t->arena, text, plain_ascii);
    } else {
        c->text = clean_copy(t->arena, text);
        width = bz_text_width(c->text);
    }
    c->style = BZ_STYLE_NONE;
    c->plain = plain ? clean_copy(t->arena, plain) : c->text;
    int column = (int)(t->n++ % (size_t)t->n_columns);
    if (width > t->width[column])
        t->width[column] = width;
}

void bz_table_style(bz_table *t, bz_style style)
{
    if (t->n)
        t->cells[t->n - 1].style = style;
}

void bz_table_int(bz_table *t, int64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)v);
    bz_table_cell(t, digits, NULL);
}

void bz_table_count(bz_table *t, int64_t v)
{
    char digits[24];
    bz_unit_text text;
    snprintf(digits, sizeof digits, "%lld", (long long)v);
    bz_table_cell(t, v ? bz_units_count(text, (double)v) : "-", digits);
}

int bz_table_rows(const bz_table *t)
{
    return t->n_columns ? (int)(t->n / (size_t)t->n_columns) : 0;
}

static void put_padded(bz_buf *out, const bz_table *t, const int *width, int column, const char *text, bz_style style)
{
    int gap = width[column] - bz_text_width(text);
    bool last = column == t->n_columns - 1;
    for (int i = 0; i < gap && t->align[column] == BZ_RIGHT; i++)
        bz_buf_putc(out, ' ');
    bz_style_begin(out, style);
    bz_text_fit(out, text, width[column]);
    bz_style_end(out, style);
    for (int i = 0; i < gap && t->align[column] == BZ_LEFT && !last; i++)
        bz_buf_putc(out, ' ');
    if (!last) {
        bz_buf_puts(out, "  ");
        return;
    }
    while (out->data[out->len - 1] == ' ') /* no blanks at a line's end: people copy it */
        out->len--;
    bz_buf_putc(out, '\n');
}

/* Takes columns off the widest text until the table fits. Numbers stay whole: a shortened one would be another number. */
static void fit_columns(const bz_table *t, int columns, int width[MAX_COLUMNS])
{
    enum { LEAST = 12 };
    int all = 2 * (t->n_columns - 1);
    for (int c = 0; c < t->n_columns; c++)
        all += width[c] = t->width[c];
    for (; columns && all > columns; all--) {
        int widest = -1;
        for (int c = 0; c < t->n_columns; c++)
            if (t->align[c] == BZ_LEFT && width[c] > LEAST && (widest < 0 || width[c] > width[widest]))
                widest = c;
        if (widest < 0)
            return;
        width[widest]--;
    }
}

void bz_table_print(const bz_table *t, bz_buf *out)
{
    int width[MAX_COLUMNS];
    fit_columns(t, bz_screen_now().columns, width);
    for (int c = 0; c < t->n_columns; c++)
        put_padded(out, t, width, c, t->title[c], BZ_STYLE_STRONG);
    for (size_t i = 0; i < t->n; i++)
        put_padded(out, t, width, (int)(i % (size_t)t->n_columns), t->cells[i].text, t->cells[i].style);
}

/* What a spreadsheet would take for a formula, and run: a number is none. Tabs and line ends are no longer in a cell. */
static bool is_formula(const char *s)
{
    char *end;
    if (!*s || !strchr("=+-@", *s) || !s[1])
        return false;
    strtod(s, &end);
    return *end;
}

static void put_csv(bz_buf *out, const char *s)
{
    bool formula = is_formula(s);
    if (!formula && !strpbrk(s, ",\"\r\n")) {
        bz_buf_puts(out, s);
        return;
    }
    bz_buf_puts(out, formula ? "\"'" : "\""); /* the apostrophe makes it text */
    for (; *s; s++) {
        if (*s == '"')
            bz_buf_putc(out, '"');
        bz_buf_putc(out, *s);
    }
    bz_buf_putc(out, '"');
}

void bz_table_csv(const bz_table *t, bz_buf *out)
{
    for (int c = 0; c < t->n_columns; c++) {
        put_csv(out, t->title[c]);
        bz_buf_putc(out, c == t->n_columns - 1 ? '\n' : ',');
    }
    for (size_t i = 0; i < t->n; i++) {
        put_csv(out, t->cells[i].plain);
        bz_buf_putc(out, (int)(i % (size_t)t->n_columns) == t->n_columns - 1 ? '\n' : ',');
    }
}
