/* Which row of a table of names a text is, by a number that its length, first and last byte make. Private to profile/. */
#ifndef BZ_PROFILE_NAMES_H
#define BZ_PROFILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BZ_NAMES_SLOTS = 128, BZ_NAMES_ROWS = 40 };

typedef struct bz_names {
    uint8_t first[BZ_NAMES_SLOTS], next[BZ_NAMES_ROWS]; /* rows + 1 */
    uint8_t length[BZ_NAMES_ROWS];
    const char *name[BZ_NAMES_ROWS];
} bz_names;

static inline size_t bz_names_slot(const char *s, size_t n)
{
    return n ? (n * 7 + (unsigned char)s[0] * 3 + (unsigned char)s[n - 1]) % BZ_NAMES_SLOTS : 0;
}

/* `name` must stay; `row` is less than BZ_NAMES_ROWS. */
static inline void bz_names_add(bz_names *m, const char *name, size_t row)
{
    uint8_t *slot = &m->first[bz_names_slot(name, strlen(name))];
    m->next[row] = *slot;
    m->length[row] = (uint8_t)strlen(name);
    m->name[row] = name;
    *slot = (uint8_t)(row + 1);
}

/* As memcmp says: names are short, and a call for each takes longer. */
static inline bool bz_names_same(const char *a, const char *b, size_t n)
{
    uint64_t x[2], y[2];
    if (n < sizeof *x || n > sizeof x)
        return n < 4 ? !n || (*a == *b && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]) : !memcmp(a, b, n);
    memcpy(x, a, sizeof *x);
    memcpy(y, b, sizeof *y);
    memcpy(x + 1, a + n - sizeof *x, sizeof *x);
    memcpy(y + 1, b + n - sizeof *y, sizeof *y);
    return x[0] == y[0] && x[1] == y[1];
}

/* 1 + the row of the name; 0: it is none of them. */
static inline uint8_t bz_names_row(const bz_names *m, const char *s, size_t n)
{
    uint8_t row = m->first[bz_names_slot(s, n)];
    while (row && (m->length[row - 1] != n || !bz_names_same(m->name[row - 1], s, n)))
        row = m->next[row - 1];
    return row;
}

#endif
