/* Tables: filled cell by cell, printed as aligned columns for people or as CSV for programs.
 * All text is cleaned, in CSV too: that is often looked at on a terminal. */
#ifndef BZ_TABLE_H
#define BZ_TABLE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/screen.h"

#include <stdint.h>

typedef enum { BZ_LEFT, BZ_RIGHT } bz_align;
typedef struct bz_table bz_table;

/* The table lives in the arena. */
bz_table *bz_table_new(bz_arena *arena);
bz_table *bz_table_of(bz_arena *arena, const char *titles); /* with columns, as bz_table_columns takes them */
void bz_table_column(bz_table *t, const char *title, bz_align align);

/* Many at once: "layer|>time|>share"; those with a > are aligned to the right. */
void bz_table_columns(bz_table *t, const char *titles);

/* A row begins with its first cell and ends when all columns are filled. A cell has two faces:
 * text for people, and the plain value for CSV (`plain` NULL: the same text). Both are copied. */
void bz_table_cell(bz_table *t, const char *text, const char *plain);
void bz_table_int(bz_table *t, int64_t v);   /* the same digits in both */
void bz_table_count(bz_table *t, int64_t v); /* 118 M; CSV has the digits */

/* Some cells, which may be a whole row:
 *
 *     BZ_ROW(t, BZ_SHOW(layer->name), BZ_SHOW_TIME(seconds), BZ_SHOW_SHARE(seconds / all));
 *
 * What is not finite, and a text that is NULL, is "-" for people and nothing in CSV, which has numbers with nine digits. */
typedef struct bz_shown {
    enum {
        BZ_SHOWN_TEXT,
        BZ_SHOWN_INT,
        BZ_SHOWN_COUNT,
        BZ_SHOWN_TIME,
        BZ_SHOWN_BYTES,
        BZ_SHOWN_SHARE,
        BZ_SHOWN_LARGE,
        BZ_SHOWN_FIXED,
        BZ_SHOWN_DIGITS
    } as;
    const char *text;
    int64_t count; /* of a number: its decimals, or its digits */
    double number;
} bz_shown;
#define BZ_SHOW(t)                 ((bz_shown){.as = BZ_SHOWN_TEXT, .text = (t)})
#define BZ_SHOW_INT(v)             ((bz_shown){.as = BZ_SHOWN_INT, .count = (v)})
#define BZ_SHOW_COUNT(v)           ((bz_shown){.as = BZ_SHOWN_COUNT, .count = (v)})
#define BZ_SHOW_TIME(v)            ((bz_shown){.as = BZ_SHOWN_TIME, .number = (v)})
#define BZ_SHOW_BYTES(v)           ((bz_shown){.as = BZ_SHOWN_BYTES, .number = (v)})
#define BZ_SHOW_SHARE(v)           ((bz_shown){.as = BZ_SHOWN_SHARE, .number = (v)})
#define BZ_SHOW_LARGE(v)           ((bz_shown){.as = BZ_SHOWN_LARGE, .number = (v)})
#define BZ_SHOW_FIXED(decimals, v) ((bz_shown){.as = BZ_SHOWN_FIXED, .count = (decimals), .number = (v)})
#define BZ_SHOW_DIGITS(n, v)       ((bz_shown){.as = BZ_SHOWN_DIGITS, .count = (n), .number = (v)}) /* as "%g" */
#define BZ_ROW(t, ...)                                                                                                 \
    bz_table_row((t), (const bz_shown[]){__VA_ARGS__}, sizeof(const bz_shown[]){__VA_ARGS__} / sizeof(bz_shown))
void bz_table_row(bz_table *t, const bz_shown *shown, size_t n);

/* The style of the cell that was put last. */
void bz_table_style(bz_table *t, bz_style style);

int bz_table_rows(const bz_table *t);
/* Where the screen is narrower than the table, columns of text become narrower, the widest first, and texts in them lose
 * their middle: "features.denseb…conv2". Below 20 characters a text says nothing: then the last columns are left out, and a
 * line below the table names them. */
void bz_table_print(const bz_table *t, bz_buf *out);
void bz_table_below(const bz_table *t, bz_buf *out); /* an empty line, and the table; nothing where it has no row */
void bz_table_csv(const bz_table *t, bz_buf *out);
/* <table>: cells of columns on the right have the class n, a row whose first cell has a style is of the class good or bad. */
void bz_table_html(const bz_table *t, bz_buf *out);

/* Columns a piece of UTF-8 text takes on a terminal. */
int bz_text_width(const char *s);

/* Puts the text in at most `width` columns: where it is wider, "…" stands for its middle. A number is not cut in two where
 * half of the head can give way: of "layer_10/mlp" the end "0/mlp" would name another layer. */
void bz_text_fit(bz_buf *out, const char *s, int width);

/* Puts lines that are wider than `columns` as several, broken between words: behind the first they begin where the text behind a
 * label does. Words in quotes stay together, and so do lines of code. */
void bz_text_wrap(bz_buf *out, const char *text, int columns);

#endif
