/* Numbers for people: three significant digits and the unit that fits. */
#ifndef BZ_UNITS_H
#define BZ_UNITS_H

#include <stdint.h>

/* Each formats into `out` and returns it. */
typedef char bz_unit_text[24];
const char *bz_units_time(bz_unit_text out, double seconds);  /* 14.3 µs */
const char *bz_units_bytes(bz_unit_text out, double bytes);   /* 3.85 MB (powers of 1000) */
int bz_units_parse_bytes(const char *text, double *bytes);    /* "16GB", "512 MB", "1000"; -1: no size */
int bz_units_parse_time(const char *text, double *seconds);   /* "60s", "5min", "1h" or "60", above 0; -1: no time */
const char *bz_units_count(bz_unit_text out, double n);       /* 118 M; whole numbers below 10,000 stay */
const char *bz_units_percent(bz_unit_text out, double share); /* 0.269 -> 26.9 % */
const char *bz_units_date(char out[32], int64_t date);        /* 2026-09-21 14:00, in UTC; "" for 0 */

/* The same as an operand, in memory that lasts until the block ends: bz_buf_printf(out, "in %s", BZ_SAY_TIME(seconds)); */
#define BZ_SAY_TIME(seconds) bz_units_time((bz_unit_text){0}, (seconds))
#define BZ_SAY_NS(ns)        bz_units_time((bz_unit_text){0}, 1e-9 * (double)(ns))
#define BZ_SAY_BYTES(bytes)  bz_units_bytes((bz_unit_text){0}, (bytes))
#define BZ_SAY_COUNT(n)      bz_units_count((bz_unit_text){0}, (n))
#define BZ_SAY_SHARE(share)  bz_units_percent((bz_unit_text){0}, (share))
#define BZ_PLURAL(n)         ((n) == 1 ? "" : "s") /* "%d layer%s" */

#define BZ_IS_OR_ARE(n) ((n) == 1 ? " is" : "s are") /* "%d layer%s priced" */

#endif
