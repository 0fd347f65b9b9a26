/* tables: what a recording tells by itself, one table for each question.
 *
 * The tables that people know from other analyzers: Holistic Trace Analysis (HTA), `nsys stats`, and the fifteen analyses of
 * XSP. Where a table is theirs, its figures are defined as theirs are; list.c says whose it is, and what differs.
 *
 *     bz_tables *m = bz_tables_new(trace, NULL, NULL, &arena, err);
 *     for (int i = 0; i < bz_n_tables; i++)
 *         if ((sheet = bz_tables_fill(m, &bz_table_list[i]))->n)
 *             bz_sheet_text(sheet, 12, out);
 *
 * A table costs time by the number of events, at most their number times its logarithm, and memory of some ten bytes for each
 * event that it looks at; what it finds has a row for each name, stream or part of time, never one for each event. */
#ifndef BZ_TABLES_H
#define BZ_TABLES_H

#include "profile/profile.h"

typedef struct bz_tables bz_tables;

typedef struct bz_table_kind {
    const char *name, *title;
    const char *tells;   /* a sentence: what a row is, and from which events */
    const char *like;    /* whose table it is: "HTA: idle time breakdown"; NULL */
    const char *columns; /* as of a sheet */
    void (*fill)(bz_tables *m, bz_sheet *s);
    bool telling; /* short and of general interest: the overview shows its first rows */
} bz_table_kind;

extern const bz_table_kind bz_table_list[];
extern const int bz_n_tables;

/* By its name, or by the letter and number of XSP's analysis ("a13"); NULL: there is none. */
const bz_table_kind *bz_table_find(const char *name);

/* The tables of a finished trace; both outlive them. `range`, "NAME" or "NAME:K", takes of the trace what was asked for within the
 * K-th range (0 is the first, and where K is not given) whose name contains NAME; NULL takes all of it. `against` is the trace
 * that the table `difference` compares with, or NULL. NULL with an error where there is no such range. */
bz_tables *bz_tables_new(const bz_trace *t, const char *range, const bz_trace *against, bz_arena *arena, bz_error *err);

/* Without rows where the recording does not tell. */
bz_sheet *bz_tables_fill(bz_tables *m, const bz_table_kind *kind);

#endif
