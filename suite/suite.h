/* suite: training runs that many people know, run one by one, recorded, and held side by side.
 *
 *   bz_suite_read     an edition: a table of runs, one of those that come with benanza or a file of the same form
 *   bz_suite_run      runs and records one of them in one batch
 *   bz_suite_report   recordings side by side, also those of other tools
 *
 * An edition is a text file. A line is a run, its cells parted by |, in the order of bz_suite_entry; batches are parted by commas, and of
 * those that the memory may lack the largest come last. Empty lines and lines that begin with # are skipped. A run is any program that
 * takes --batch N, --size ci|full, --iterations N and --threads N, marks its iterations (profile/marker/benanza.h), and may say its
 * batch as a fact; words of its command that begin with ./ lie beside the edition's file. What a run came to is its recording: nothing
 * else is stored, and every other command reads it, too. */
#ifndef BZ_SUITE_H
#define BZ_SUITE_H

#include "base/folder.h"
#include "tables/tables.h"

enum { BZ_SUITE_BATCHES = 8 };
typedef enum { BZ_SUITE_CI, BZ_SUITE_FULL, BZ_SUITE_SIZES } bz_suite_size;
const char *bz_suite_size_name(bz_suite_size size); /* "ci": of seconds */

typedef struct bz_suite_entry {
    const char *name; /* letters, digits, '-', '_' */
    const char *application, *model, *layers, *dominant, *data, *unit;
    int batch[BZ_SUITE_SIZES][BZ_SUITE_BATCHES], n_batches[BZ_SUITE_SIZES];
    const char **word; /* of the command */
    int n_words;
} bz_suite_entry;

typedef struct bz_suite {
    const char *edition; /* the file's name without what follows its last dot */
    bz_suite_entry *entry;
    int n;
} bz_suite;

/* `path` is for messages and names the edition. */
int bz_suite_parse(const char *text, const char *path, bz_arena *arena, bz_suite *out, bz_error *err);
/* A file, or an edition that comes with benanza by its name: "2017". */
int bz_suite_read(const char *name, bz_arena *arena, bz_suite *out, bz_error *err);
const bz_suite_entry *bz_suite_find(const bz_suite *suite, const char *name); /* NULL: there is none */
bz_sheet *bz_suite_list(const bz_suite *suite, bz_suite_size size, bz_arena *arena);

typedef struct bz_suite_options {
    const char *folder; /* of the recordings */
    const char *python; /* in place of the word python3; NULL */
    bz_suite_size size;
    int iterations, threads;
    double peak; /* operations per second of this machine's processor with so many threads; NAN: not known */
} bz_suite_options;

/* The recording's file. */
const char *bz_suite_path(const bz_suite *suite, const bz_suite_entry *e, const bz_suite_options *o, int batch,
                          bz_arena *arena);
/* Runs the entry three times (bz_profile_levels) and writes its recording. -1 where the program failed; *stopped is the signal that
 * ended it where somebody wanted to end everything, else 0. */
int bz_suite_run(const bz_suite *suite, const bz_suite_entry *e, const bz_suite_options *o, int batch, int *stopped,
                 bz_error *err);

/* Recordings, those of folders in the order of their names. A file that cannot be read is a row that says why. */
typedef struct bz_suite_report {
    bz_sheet *runs, *checks, *kernels;
    int failed;
} bz_suite_report;
int bz_suite_report_make(const char *const *path, int n, bz_arena *arena, bz_suite_report *out, bz_error *err);

#endif
