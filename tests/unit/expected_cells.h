/* What a sheet must say, cell by cell: expected numbers are summed up under the texts of their row. */
#ifndef EXPECTED_CELLS_H
#define EXPECTED_CELLS_H

#include "base/map.h"
#include "base/sheet.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CELLS = 16384, SAMPLES = 256, VALUES = 512 };

static struct {
    char row[256]; /* the texts of the row, "|" between them; behind those of an earlier one "#1", "#2" … */
    const char *column;
    char key[300]; /* both, a line each */
    double value;
} cells[CELLS];
static int n_cells;
static bz_map cell_ids; /* key -> cell */

/* What was recorded of the rows, for what is told of a sample. */
static struct sample {
    char row[256];
    double value[VALUES];
    int n;
} samples[SAMPLES];
static int n_samples;

static inline double *find_cell(const char *row, const char *column)
{
    char key[300];
    int n = snprintf(key, sizeof key, "%s\n%s", row, column);
    uint32_t at = bz_map_get(&cell_ids, key, (size_t)n);
    return at == BZ_MAP_NONE ? NULL : &cells[at].value;
}

/* Adds to what is expected there, from 0. Columns that no sheet has mark rows: those that were made, counted, seen. */
static inline void expect(const char *row, const char *column, double more)
{
    double *value = find_cell(row, column);
    if (!value) {
        assert_true(n_cells < CELLS && strlen(row) < sizeof cells->row);
        int n = snprintf(cells[n_cells].key, sizeof cells->key, "%s\n%s", row, column);
        bz_map_add(&cell_ids, cells[n_cells].key, (size_t)n, (uint32_t)n_cells);
        memmove(cells[n_cells].row, row, strlen(row) + 1); /* it may be another cell's */
        cells[n_cells].column = column;
        value = &cells[n_cells++].value;
        *value = 0;
    }
    *value += more;
}

/* column = of / all that `of` has in these rows. */
static inline void expect_share(const char *column, const char *of)
{
    double all = 0;
    for (int i = 0; i < n_cells; i++)
        all += strcmp(cells[i].column, of) ? 0 : cells[i].value;
    for (int i = 0, n = n_cells; i < n; i++)
        if (!strcmp(cells[i].column, of))
            expect(cells[i].row, column, all > 0 ? cells[i].value / all : 0);
}

/* The next row with these texts, for tables that tell the same texts several times. */
static inline const char *next_row(const char *texts)
{
    static char row[4][256];
    static int next;
    char *out = row[next++ % 4];
    snprintf(out, sizeof *row, "%s", texts);
    for (int same = 1; find_cell(out, "is a row"); same++)
        snprintf(out, sizeof *row, "%.240s#%d", texts, same);
    expect(out, "is a row", 1);
    return out;
}

/* Another name of a column. */
static inline void expect_same(const char *column, const char *as)
{
    for (int i = 0, n = n_cells; i < n; i++)
        if (!strcmp(cells[i].column, as))
            expect(cells[i].row, column, cells[i].value);
}

static inline void sample_add(const char *row, double value)
{
    int i = 0;
    while (i < n_samples && strcmp(samples[i].row, row) != 0)
        i++;
    if (i == n_samples) {
        assert_true(i < SAMPLES);
        snprintf(samples[n_samples++].row, sizeof samples->row, "%s", row);
        samples[i].n = 0;
    }
    assert_true(samples[i].n < VALUES);
    samples[i].value[samples[i].n++] = value;
}

/* The value at that place of all in their order, 0 the least, and between two of them their mean by the distance. */
static inline double sample_at(const struct sample *s, double place)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) {
        int rank = 0;
        for (int k = 0; k < s->n; k++)
            rank += s->value[k] < s->value[i] || (s->value[k] == s->value[i] && k < i);
        sum += s->value[i] * fmax(0, 1 - fabs(rank - place));
    }
    return sum;
}

/* Figures of the samples under the names that tables have, with `sum` for their sum; a value of 1 is told as `unit`. Forgets the samples. */
static inline void expect_figures(const char *sum, double unit)
{
    for (int i = 0; i < n_samples; i++) {
        const struct sample *s = &samples[i];
        double all = 0, squares = 0;
        for (int k = 0; k < s->n; k++)
            all += s->value[k];
        for (int k = 0; k < s->n; k++)
            squares += pow(s->value[k] - all / s->n, 2);
        expect(s->row, "count", s->n);
        expect(s->row, sum, all * unit);
        expect(s->row, "mean", all / s->n * unit);
        expect(s->row, "deviation", s->n > 1 ? sqrt(squares / (s->n - 1)) * unit : 0);
        expect(s->row, "min", sample_at(s, 0) * unit);
        expect(s->row, "quarter", sample_at(s, 0.25 * (s->n - 1)) * unit);
        expect(s->row, "median", sample_at(s, 0.5 * (s->n - 1)) * unit);
        expect(s->row, "three_quarters", sample_at(s, 0.75 * (s->n - 1)) * unit);
        expect(s->row, "max", sample_at(s, s->n - 1) * unit);
    }
    n_samples = 0;
}

/* Holds a sheet against all that is expected of it, and forgets that: its rows are those expected, each number is equal. */
static inline void check_cells(const bz_sheet *s)
{
    char row[256], plain[256];
    int rows = 0;
    for (int i = 0, n = n_cells; i < n; i++)
        if (!find_cell(cells[i].row, "counted")) {
            expect(cells[i].row, "counted", 1);
            rows++;
        }
    if (rows != s->n)
        fail_msg("%s: %d rows, not %d", s->id, s->n, rows);
    for (int i = 0; i < s->n; i++) {
        const bz_sheet_cell *cell = &s->cell[i * s->n_columns];
        size_t n = 0;
        *plain = 0;
        for (int k = 0; k < s->n_columns; k++)
            if (s->column[k].type == BZ_SHEET_TEXT)
                n += (size_t)snprintf(plain + n, sizeof plain - n, "%s%s", n ? "|" : "",
                                      cell[k].text ? cell[k].text : "");
        strcpy(row, plain);
        for (int same = 1; find_cell(row, "seen"); same++)
            snprintf(row, sizeof row, "%.240s#%d", plain, same);
        for (int k = 0; k < s->n_columns; k++) {
            if (s->column[k].type == BZ_SHEET_TEXT || s->column[k].type == BZ_SHEET_DETAIL)
                continue;
            const double *value = find_cell(row, s->column[k].key);
            if (!value)
                fail_msg("%s: '%s' is not expected to have a %s", s->id, row, s->column[k].key);
            if (isnan(*value) != isnan(cell[k].number) || fabs(*value - cell[k].number) > 1e-9 * (fabs(*value) + 1e-3))
                fail_msg("%s: %s of '%s' is %.12g, not %.12g", s->id, s->column[k].key, row, cell[k].number, *value);
        }
        expect(row, "seen", 1);
    }
    n_cells = 0;
    bz_map_free(&cell_ids);
}

#endif
