/* Command lines of the programs that measure, as tables of options. Private to runtime/. */
#ifndef BZ_RUNTIME_OPTION_H
#define BZ_RUNTIME_OPTION_H

#include "base/error.h"

#include <stddef.h>

typedef enum {
    BZ_TAKES_NOTHING, /* bool */
    BZ_TAKES_TEXT,    /* const char * */
    BZ_TAKES_NUMBER,  /* double, above 0 */
    BZ_TAKES_AMOUNT,  /* double, 0 or above */
    BZ_TAKES_OWN      /* what `set` makes of it */
} bz_option_takes;

typedef struct bz_run_option {
    const char *name;
    bz_option_takes takes;
    char letter; /* 'o' for -o; 0: none */
    size_t at;   /* where in the program's struct its value belongs */
    int (*set)(void *program, const char *value, bz_error *err);
    double unit; /* of a number: 1e9 of gigabytes; 0: 1 */
} bz_run_option; /* a table of them ends with a row of zeros */

/* Sets what a command line says, until --help, which is a row like others. Returns where the arguments begin that are no options, or -1. */
int bz_options_read(const bz_run_option *table, int argc, char **argv, void *program, bz_error *err);
/* A number that `set` reads. */
int bz_option_number(const char *name, bz_option_takes takes, const char *text, double *out, bz_error *err);

/* --device, for `set`. */
int bz_option_device(void *program, const char *text, bz_error *err);

/* Where benanza has started us, it says so: then we end when it is gone, however that came. */
void bz_end_with_parent(void);

#endif
