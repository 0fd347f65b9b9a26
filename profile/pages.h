/* The pages of a SQLite file, read without libsqlite3: a whole table in the order of its rows, some columns of each.
 * It understands what exports are made of (tables with a rowid, UTF-8, numbers and texts) and nothing else: whatever
 * is out of the ordinary or contradicts itself is BZ_SCAN_ODD, and libsqlite3 is asked from there on (scan.h). */
#ifndef BZ_PROFILE_PAGES_H
#define BZ_PROFILE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bz_pages {
    int fd;                     /* read by pread alone */
    uint32_t page_size, usable; /* usable: without the bytes that are reserved at the end of each page */
    uint32_t n;                 /* whole pages */
} bz_pages;

/* False where the file is not an ordinary one. It must stay open and must not change. */
bool bz_pages_open(bz_pages *p, int fd, size_t size);

/* How many bytes the file has by its own header, of which at least 100 are given; 0: it does not tell. */
uint64_t bz_pages_claimed(const void *data, size_t size);

/* ---- rows ---- */

/* Rows come in batches: neighbours of which each column has one type, and a text as many bytes. */
enum { BZ_SCAN_BATCH = 64 };
typedef enum { BZ_VALUE_NULL, BZ_VALUE_NUMBER, BZ_VALUE_TEXT } bz_value_type;
typedef struct bz_values {
    bz_value_type type;
    bool zero, same;               /* no text, and all numbers are 0; a number that all rows have, as far as is known */
    int64_t number[BZ_SCAN_BATCH]; /* of a text: how many bytes it has; of NULL: 0 */
    const char *text[BZ_SCAN_BATCH]; /* not terminated; valid until the next batch */
} bz_values;

typedef enum { BZ_WANT_NUMBER, BZ_WANT_TEXT, BZ_WANT_EITHER } bz_want;
typedef struct bz_wanted {
    bz_want want;
    int column;       /* where it stands in the table */
    bool rowid;       /* INTEGER PRIMARY KEY: another name of the row's number */
    bool has_default; /* ALTER TABLE ADD COLUMN … DEFAULT: older rows lack the value */
} bz_wanted;

enum { BZ_SCAN_COLUMNS = 40, BZ_SCAN_DEPTH = 20, BZ_SCAN_HEADER = 64, BZ_SCAN_PLANS = 16 };
typedef enum { BZ_SCAN_ROW, BZ_SCAN_END, BZ_SCAN_ODD } bz_scan_step;

/* Where the wanted columns lie in a record. Rows mostly have one of a few headers, as small numbers take fewer bytes, so this is worked out
 * once for many of them. */
typedef struct bz_record_plan {
    uint8_t header[BZ_SCAN_HEADER];
    uint64_t word[BZ_SCAN_HEADER / 8], mask[BZ_SCAN_HEADER / 8]; /* the same, and where its bytes are all ones */
    uint32_t n_header;                                           /* 0: no plan yet */
    uint32_t needed;                                             /* bytes of the record that the columns take */
    struct {
        uint32_t end; /* of the value in the record */
        uint8_t kind, shift;
        int64_t number; /* a constant, or the length of a text */
    } field[BZ_SCAN_COLUMNS];
} bz_record_plan;

typedef struct bz_rows {
    const bz_pages *pages;
    const bz_wanted *wanted;
    int n;
    int batch;
    int64_t rowid;           /* of the last row; only once started */
    bool started, has_rowid; /* has_rowid: a column that is wanted is the row's number */
    uint64_t budget;         /* pages that may still be visited: no page belongs to two places */
    struct {
        uint8_t *page; /* of its own memory */
        const uint8_t *head;
        uint32_t next, cells;
    } path[BZ_SCAN_DEPTH]; /* the inner pages above the leaf */
    struct bz_page_window {
        uint8_t *data;
        uint32_t first, n; /* the pages that are there */
    } window, chain;       /* around the leaf; of a record that did not fit */
    uint32_t root;
    int depth;
    const uint8_t *leaf;
    uint32_t first, cell, cells; /* of the leaf: where the cell pointers begin, the next cell, how many */
    uint8_t *spill;              /* behind a few unused bytes, a record that did not fit into its page */
    size_t cap_spill;
    bz_record_plan plan[BZ_SCAN_PLANS];
    int at, oldest; /* the plan of the rows at hand; the next one that is made goes there */
} bz_rows;

/* Begins with the table's first row; `wanted` has n rows, at most BZ_SCAN_COLUMNS. ODD: not an ordinary table. */
bz_scan_step bz_rows_begin(bz_rows *r, const bz_pages *pages, uint32_t root, const bz_wanted *wanted, int n);

/* The wanted columns of the next r->batch rows, in value[0 … n). */
bz_scan_step bz_rows_next(bz_rows *r, bz_values *value);

/* How many rows the table seems to have: asked between bz_rows_begin and the first bz_rows_next. More where rows were
 * deleted; anything where the pages lie. */
uint64_t bz_rows_expected(const bz_rows *r);

void bz_rows_end(bz_rows *r);

#endif
