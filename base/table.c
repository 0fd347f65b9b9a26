#include "base/table.h"

#include "base/units.h"

#include <limits.h>
#include <math.h>
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
    bool says[MAX_COLUMNS]; /* a cell of it is more than "" or "-" */
    cell *cells;            /* row after row */
    size_t n;
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

/* Whether a number goes on from the column in front of this one. */
static bool is_in_number(const char *s, int column)
{
    bool before = false;
    for (int at = 0; *s; s++) {
        bool digit = *s >= '0' && *s <= '9';
        int width = character_width((const unsigned char *)s);
        if (width && at >= column)
            return before && digit;
        before = digit;
        at += width;
    }
    return false;
}

void bz_text_fit(bz_buf *out, const char *s, int width)
{
    int all = bz_text_width(s), head = width / 2, tail = all - (width - 1 - head), at = 0;
    bool cut = false, behind = false;
    if (all <= width) {
        bz_buf_puts(out, s);
        return;
    }
    for (int least = head / 2; head > least && (is_in_number(s, head) || is_in_number(s, tail)); head--)
        tail--;
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
    BZ_SCOPED(bz_buf) clean = {0};
    bz_buf_clean(&clean, text);
    return bz_arena_strn(arena, bz_buf_text(&clean), clean.len);
}

void bz_table_columns(bz_table *t, const char *titles)
{
    while (*titles) {
        size_t n = strcspn(titles, "|");
        bool right = *titles == '>';
        bz_table_column(t, bz_arena_strn(t->arena, titles + right, n - right), right ? BZ_RIGHT : BZ_LEFT);
        titles += n + (titles[n] == '|');
    }
}

bz_table *bz_table_of(bz_arena *arena, const char *titles)
{
    bz_table *t = bz_table_new(arena);
    bz_table_columns(t, titles);
    return t;
}

void bz_table_cell(bz_table *t, const char *text, const char *plain)
{
    BZ_ARENA_ROOM(t->arena, t->cells, t->n);
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
    t->says[column] |= *text && strcmp(text, "-") != 0;
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

static const char *digits_of(const bz_shown *c, double v, char out[32])
{
    snprintf(out, 32, c->as == BZ_SHOWN_FIXED ? "%.*f" : "%.*g", (int)c->count, v);
    return out;
}

void bz_table_row(bz_table *t, const bz_shown *shown, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bz_shown *c = &shown[i];
        double v = c->number + 0.0; /* no -0 */
        bz_unit_text text;
        char plain[32];
        snprintf(plain, sizeof plain, "%.9g", v);
        if (c->as == BZ_SHOWN_INT)
            bz_table_int(t, c->count);
        else if (c->as == BZ_SHOWN_COUNT)
            bz_table_count(t, c->count);
        else if (c->as == BZ_SHOWN_TEXT && c->text)
            bz_table_cell(t, c->text, NULL);
        else if (c->as == BZ_SHOWN_TEXT || !isfinite(v))
            bz_table_cell(t, "-", "");
        else
            bz_table_cell(t,
                          c->as == BZ_SHOWN_TIME    ? bz_units_time(text, v)
                          : c->as == BZ_SHOWN_BYTES ? bz_units_bytes(text, v)
                          : c->as == BZ_SHOWN_SHARE ? bz_units_percent(text, v)
                          : c->as == BZ_SHOWN_LARGE ? bz_units_count(text, v)
                                                    : digits_of(c, v, (char[32]){0}),
                          plain);
    }
}

int bz_table_rows(const bz_table *t)
{
    return t->n_columns ? (int)(t->n / (size_t)t->n_columns) : 0;
}

/* How a table is printed on this screen. */
typedef struct {
    int width[MAX_COLUMNS]; /* 0: the column is left out */
    int last;               /* the last one that is not */
    bool left_out;
} layout;

static void put_padded(bz_buf *out, const bz_table *t, const layout *l, int column, const char *text, bz_style style)
{
    if (!l->width[column])
        return;
    int gap = l->width[column] - bz_text_width(text);
    bool last = column == l->last;
    for (int i = 0; i < gap && t->align[column] == BZ_RIGHT; i++)
        bz_buf_putc(out, ' ');
    bz_style_begin(out, style);
    bz_text_fit(out, text, l->width[column]);
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

/* Columns of the screen that the table takes where texts are at most `text` wide. Numbers stay whole: a shortened one would
 * be another number. */
static int table_width(const bz_table *t, const layout *l, int text)
{
    int all = -2;
    for (int c = 0; c < t->n_columns; c++)
        if (l->width[c])
            all += 2 + (t->align[c] == BZ_LEFT && l->width[c] > text ? text : l->width[c]);
    return all;
}

/* Whether of all texts that are left only this one tells some row from the row above it. */
static bool tells_apart(const bz_table *t, const layout *l, int column)
{
    size_t n = (size_t)t->n_columns;
    for (size_t row = n; row + n <= t->n; row += n) {
        bool same = true;
        for (size_t c = 0; c < n; c++)
            if (l->width[c] && t->align[c] == BZ_LEFT)
                same = same && !strcmp(t->cells[row + c].text, t->cells[row - n + c].text) == ((int)c != column);
        if (same)
            return true;
    }
    return false;
}

/* Leaves columns out until texts that keep READABLE columns fit: from the right, first those that say nothing, then texts,
 * then numbers, then the texts without which rows are alike; the first column never. */
static void leave_out(const bz_table *t, int columns, layout *l)
{
    enum { READABLE = 20, EMPTY = 0, TEXTS, NUMBERS, ALL };
    for (int what = EMPTY; what <= ALL; what++)
        for (int c = t->n_columns - 1; c > 0 && table_width(t, l, READABLE) > columns; c--)
            if (l->width[c] && (what == ALL || !t->says[c] ||
                                (t->align[c] == BZ_RIGHT ? what == NUMBERS : what == TEXTS && !tells_apart(t, l, c)))) {
                l->width[c] = 0;
                l->left_out = true;
            }
}

static layout fit_columns(const bz_table *t, int columns)
{
    enum { LEAST = 12 };
    layout l = {0};
    for (int c = 0; c < t->n_columns; c++)
        l.width[c] = t->width[c] ? t->width[c] : 1;
    if (columns)
        leave_out(t, columns, &l);
    for (int all = table_width(t, &l, INT_MAX); columns && all > columns; all--) { /* the widest text first */
        int widest = -1;
        for (int c = 0; c < t->n_columns; c++)
            if (t->align[c] == BZ_LEFT && l.width[c] > LEAST && (widest < 0 || l.width[c] > l.width[widest]))
                widest = c;
        if (widest < 0)
            break;
        l.width[widest]--;
    }
    for (int c = 0; c < t->n_columns; c++)
        if (l.width[c])
            l.last = c;
    return l;
}

void bz_table_print(const bz_table *t, bz_buf *out)
{
    int columns = bz_screen_now().columns;
    layout l = fit_columns(t, columns);
    for (int c = 0; c < t->n_columns; c++)
        put_padded(out, t, &l, c, t->title[c], BZ_STYLE_STRONG);
    for (size_t i = 0; i < t->n; i++)
        put_padded(out, t, &l, (int)(i % (size_t)t->n_columns), t->cells[i].text, t->cells[i].style);
    if (!l.left_out)
        return;
    BZ_SCOPED(bz_buf) note = {0};
    bz_buf_puts(&note, "(--wide shows more columns:");
    for (int c = 0; c < t->n_columns; c++)
        if (!l.width[c])
            bz_buf_printf(&note, "%s %s", bz_buf_text(&note)[note.len - 1] == ':' ? "" : ",", t->title[c]);
    bz_buf_putc(&note, ')');
    bz_text_fit(out, bz_buf_text(&note), columns);
    bz_buf_putc(out, '\n');
}

void bz_table_below(const bz_table *t, bz_buf *out)
{
    if (!bz_table_rows(t))
        return;
    bz_buf_putc(out, '\n');
    bz_table_print(t, out);
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

void bz_table_html(const bz_table *t, bz_buf *out)
{
    bz_buf_puts(out, "<table><tr>");
    for (int c = 0; c < t->n_columns; c++) {
        bz_buf_puts(out, "<th>");
        bz_buf_html(out, t->title[c]);
        bz_buf_puts(out, "</th>");
    }
    for (size_t i = 0; i < t->n; i++) {
        int c = (int)(i % (size_t)t->n_columns);
        bz_style style = t->cells[i].style;
        if (!c)
            bz_buf_puts(out, style == BZ_STYLE_GOOD  ? "</tr>\n<tr class=good>"
                             : style == BZ_STYLE_BAD ? "</tr>\n<tr class=bad>"
                                                     : "</tr>\n<tr>");
        bz_buf_puts(out, t->align[c] == BZ_RIGHT ? "<td class=n>" : "<td>");
        bz_buf_html(out, t->cells[i].text);
        bz_buf_puts(out, "</td>");
    }
    bz_buf_puts(out, "</tr>\n</table>\n");
}
