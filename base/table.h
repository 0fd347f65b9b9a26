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
void bz_table_column(bz_table *t, const char *title, bz_align align);

/* Many at once: "layer|>time|>share"; those with a > are aligned to the right. */
void bz_table_columns(bz_table *t, const char *titles);

/* A row begins with its first cell and ends when all columns are filled. A cell has two faces:
 * text for people, and the plain value for CSV (`plain` NULL: the same text). Both are copied. */
void bz_table_cell(bz_table *t, const char *text, const char *plain);
void bz_table_int(bz_table *t, int64_t v);   /* the same digits in both */
void bz_table_count(bz_table *t, int64_t v); /* 118 M; CSV has the digits */

/* The style of the cell that was put last. */
void bz_table_style(bz_table *t, bz_style style);

int bz_table_rows(const bz_table *t);
/* Where the screen is narrower than the table, columns of text become narrower, the widest first, and texts in them lose
 * their middle: "features.denseb…conv2". Below 20 characters a text says nothing: then the last columns are left out, and a
 * line below the table names them. */
void bz_table_print(const bz_table *t, bz_buf *out);
void bz_table_csv(const bz_table *t, bz_buf *out);

/* Columns a piece of UTF-8 text takes on a terminal. */
int bz_text_width(const char *s);

/* Puts the text in at most `width` columns: where it is wider, "…" stands for its middle. */
void bz_text_fit(bz_buf *out, const char *s, int width);

#endif
