/* Sheets: tables that say what their columns are. An analysis fills one; text for people, JSON for programs and the page's
 * tables come from the same description.
 *
 *   bz_sheet *s = bz_sheet_new(arena, "kernels", "Kernels", "name=kernel|time:s");
 *   bz_sheet_cell *row = bz_sheet_row(s);
 *   row[0].text = "sgemm";
 *   row[1].number = 3e-6;
 */
#ifndef BZ_SHEET_H
#define BZ_SHEET_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

typedef enum {
    BZ_SHEET_TEXT,
    BZ_SHEET_DETAIL, /* a text that programs read: left out where people do */
    BZ_SHEET_COUNT,  /* a number of things; a mean may have one decimal */
    BZ_SHEET_SECONDS,
    BZ_SHEET_BYTES,
    BZ_SHEET_RATE,  /* bytes per second */
    BZ_SHEET_SHARE, /* 0 … 1 */
    BZ_SHEET_LARGE, /* a number of things, as 118 M */
} bz_sheet_type;

typedef struct bz_sheet_column {
    const char *key, *title; /* key: of the JSON's member */
    bz_sheet_type type;
} bz_sheet_column;

/* A text that is NULL and a number that is NAN are not known. Texts are not copied. */
typedef union bz_sheet_cell {
    const char *text;
    double number;
} bz_sheet_cell;

typedef struct bz_sheet {
    const char *id, *title;
    const char *note; /* a sentence below it; NULL */
    const bz_sheet_column *column;
    int n_columns, n, cap;
    bz_sheet_cell *cell; /* [n * n_columns] */
    bz_arena *arena;
} bz_sheet;

/* The sheet lives in the arena. Its columns are "KEY:UNIT=TITLE|…": the key is the title where none is given, and without a unit it is a
 * text. Units are n (a count), s, B, B/s, % (a share), M (large numbers), and - (a detail). */
bz_sheet *bz_sheet_new(bz_arena *arena, const char *id, const char *title, const char *columns);
/* What these columns are; returns how many. */
int bz_sheet_columns(const char *columns, bz_arena *arena, const bz_sheet_column **out);

/* A new row, its texts NULL and its numbers NAN; valid until the next one is added. */
bz_sheet_cell *bz_sheet_row(bz_sheet *s);

/* A new row of so many cells, which must be as many as there are columns:
 *
 *     BZ_SHEET_ADD(s, BZ_TEXT("sgemm"), BZ_NUMBER(3e-6)); */
void bz_sheet_add(bz_sheet *s, const bz_sheet_cell *cell, size_t n);
#define BZ_TEXT(t)                                                                                                     \
    {                                                                                                                  \
        .text = (t)                                                                                                    \
    }
#define BZ_NUMBER(v)                                                                                                   \
    {                                                                                                                  \
        .number = (double)(v)                                                                                          \
    }
#define BZ_SHEET_ADD(sheet, ...)                                                                                       \
    bz_sheet_add((sheet), (const bz_sheet_cell[]){__VA_ARGS__},                                                        \
                 sizeof(const bz_sheet_cell[]){__VA_ARGS__} / sizeof(bz_sheet_cell))

/* Rows in the order of a column: numbers descending, unknown ones last; texts ascending. Rows that are equal in it stay as
 * they came. */
void bz_sheet_sort(bz_sheet *s, int column);

/* The first `top` rows, and how many more there are; the note. */
void bz_sheet_text(const bz_sheet *s, int top, bz_buf *out);

/* All rows, the columns named by their keys; numbers as in the JSON. */
void bz_sheet_csv(const bz_sheet *s, bz_buf *out);

/* {"id", "title", "note", "columns": [{"key", "title", "type"}], "rows": [{KEY: value}]}, with all rows. */
void bz_sheet_json(const bz_sheet *s, bz_json *j);

#endif
