/* Programs that run for us. What asks us to end is passed on to the one that runs, so that there is time to clean up.
 * Private to bench/. */
#ifndef BZ_BENCH_CHILD_H
#define BZ_BENCH_CHILD_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { BZ_CHILD_SIGNALS = 3 };

/* Between the two, the signals that end programs end the one that runs, and not us. */
void bz_child_catch(struct sigaction old[BZ_CHILD_SIGNALS]);
void bz_child_uncatch(const struct sigaction old[BZ_CHILD_SIGNALS]);

/* A file of ours, and its number in the program. */
typedef struct bz_child_file {
    int ours, its;
} bz_child_file;

/* Starts a program, looked for as a shell does; the end that we are asked for is its end first. Programs that start others (a
 * build) get a group, so that all of them go; a terminal's Ctrl-C then reaches them through us alone. */
int bz_child_start(pid_t *child, char *const *argv, bool group, const bz_child_file *file, int n_files, bz_error *err);
int bz_child_wait(pid_t child); /* its status, as waitpid tells */

/* The signal that we alone were to end by, after which nobody else is told; 0 where there was none. */
int bz_child_stopped(void);

#endif
