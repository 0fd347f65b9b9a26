/* Errors: library functions return 0 or -1 and fill a bz_error. Only cli/ prints and exits.
 * The text is one sentence that names the file, the place and what to do next. */
#ifndef BZ_ERROR_H
#define BZ_ERROR_H

/* Codes are the exit statuses of the program. */
typedef enum {
    BZ_OK = 0,
    BZ_FAILED = 1,     /* the machine or a library would not */
    BZ_USAGE = 2,      /* the command line is wrong */
    BZ_BAD_INPUT = 3,  /* a file is not what it should be */
    BZ_INCOMPLETE = 4, /* done, but not all of it */
    BZ_WORSE = 5,      /* done, and the result is worse than what was asked for */
} bz_code;

typedef struct bz_error {
    bz_code code;
    char text[600];
} bz_error;

/* Fills `err` (may be NULL) and returns -1, so that a failing function can end with
 * `return bz_fail(err, BZ_BAD_INPUT, "%s: …", path);`. The text is cleaned of bytes that a
 * terminal would act on, and cut where it gets too long. */
int bz_fail(bz_error *err, bz_code code, const char *fmt, ...) __attribute__((cold, format(printf, 3, 4)));

/* Puts "prefix: " before the text of an error on its way up; returns -1. */
int bz_fail_in(bz_error *err, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

#endif
