/* bench: what the database lacks is measured on this machine, and stored.
 *
 *   bz_bench_system   what this machine is: asked of the program benanza-bench, which knows the libraries
 *   bz_bench_peaks    what it could do at best, where nobody measured that yet
 *   bz_bench_build    a generated folder is configured and built
 *   bz_bench_run      its problems that the database lacks are run; each record is stored when it arrives
 *   bz_doctor_look    what is wrong with this machine for measuring
 *
 * What measures are programs of their own, so that benanza stays light and a crash stays theirs. They wait for a quiet machine
 * and have it for themselves while they measure. All functions return 0, or -1 with *err filled. */
#ifndef BZ_BENCH_H
#define BZ_BENCH_H

#include "generator/generator.h"

/* benanza-bench: $BENANZA_BENCH, beside benanza (build tree), or in libexec (installed). */
int bz_bench_find(char *out, size_t size, bz_error *err);

/* Runs a program, looked for as a shell does, and takes what it prints; its complaints too where `complaints`.
 * 1 where it did not end well. */
int bz_bench_program(char *const *argv, bool complaints, bz_buf *out, bz_error *err);

/* Runs a program and takes what it prints; it must end well. */
int bz_bench_output(char *const *argv, bz_buf *out, bz_error *err);

/* A GPU that the database does not know is known by its data sheet: no record is of it. */
bool bz_bench_sheet(const char *name);
int bz_bench_known(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err);

/* The system that the user named, or this machine, or of it the device that a backend runs on (`backend` may be
 * NULL). It is stored if the database does not know it. */
int bz_bench_system(bz_perfdb *db, const char *given, const char *backend, const bz_system **system, bz_error *err);
/* Fails with the reason where this machine has no device for the backend. */
int bz_bench_device(const char *backend, bz_error *err);
/* What this machine is, or of it the device that a backend runs on; no database is asked. */
int bz_bench_look(const char *backend, bz_arena *arena, bz_line *line, bz_error *err);
/* The same for people, aligned lines. */
int bz_bench_text(bz_buf *out, bz_error *err);
/* Measures what the processor could do at best, some seconds, and stores it beside what was measured with other numbers
 * of threads. 0 threads: one. `wait` as in bz_bench. */
int bz_bench_measure(bz_perfdb *db, int threads, const char *wait, const bz_system **system, bz_error *err);
/* The same, where the database does not know it yet, or what it knows is to be measured again (`again` may be NULL). */
int bz_bench_peaks(bz_perfdb *db, int threads, const char *wait, const bz_remeasure *again, const bz_system **system,
                   bz_error *err);

/* Between hold and release SIGINT, SIGTERM and SIGHUP end the program that runs for us, and not us, so that there is
 * time to clean up. Release then lets the signal take its course, unless run->stopped_by
 * reports it. */
void bz_bench_hold(void);
bool bz_bench_stopped(void);
void bz_bench_release(void);

/* Configures and builds a generated folder, quietly; the log is build.log in it. */
int bz_bench_build(const char *folder, bz_error *err);
/* The backend in a built folder that has a device of its own: it lies beside the program. NULL for none. */
const char *bz_bench_folder_device(const char *folder);

typedef struct bz_bench {
    bz_perfdb *db;
    const bz_system *system; /* this machine: what it has is not run again */
    bz_setting setting;
    const char *filter, *time_limit, *metrics, *engines; /* may be NULL */
    const char *wait;          /* seconds to wait for a quiet machine before each problem; NULL: as the program likes */
    bool all;                  /* run also what the database has */
    const bz_remeasure *again; /* run also these records; NULL: none */
    /* Sees each record before it is stored, and may change it. Returns 1 to have it left out; NULL: none */
    int (*each)(void *user, bz_record *record, bz_error *err);
    void *user;
    /* results */
    int listed;           /* problems of the folder that pass the filter */
    int wanted, problems; /* to be run; finished */
    int records, failed;  /* stored; of them failed, crashed or hung */
    int busy;             /* stored and marked: others used the machine */
    int bad;              /* lines that are no records */
    int stopped_by;       /* the signal that ended it all; 0: none */
} bz_bench;

/* Runs a built folder; each record is stored when it arrives. */
int bz_bench_run(const char *folder, bz_bench *run, bz_error *err);

/* Builds a folder, and runs it on what it is for: run->system is found. */
int bz_bench_folder(const char *folder, bz_bench *run, bz_error *err);

/* As bz_bench_run for problems that belong to no layer, by their texts, in row-major order: benanza-bench runs them, so nothing is built. */
int bz_bench_texts(const char *const *text, int n, const char *backend, bz_bench *run, bz_error *err);

/* What moving data costs, with setting.threads and, where `together`, with each number of threads up to all cores. *facts: of the system;
 * afterwards its last cache is as large as loads find it. */
int bz_bench_transfers(bz_bench *run, bool together, bz_arena *arena, const bz_system_facts **facts, bz_error *err);

/* All of it for what a plan wants: generates, builds and runs in a folder that goes away, unless the build fails: then its log
 * is wanted. `peaks`: as bz_bench_peaks, too; it may find run->system anew. */
int bz_bench_plan(const bz_plan *plan, bz_bench *run, bool peaks, bz_error *err);

/* ---- doctor --------------------------------------------------------------------------------- */

typedef enum { BZ_HEALTH_GOOD, BZ_HEALTH_UNKNOWN, BZ_HEALTH_WARNING, BZ_HEALTH_BAD, BZ_HEALTHS } bz_health;

typedef struct bz_finding {
    const char *check; /* "governor" */
    bz_health health;
    char found[800];    /* what was seen */
    const char *advice; /* what it does to measuring, and what to do; NULL where all is well */
} bz_finding;

enum { BZ_DOCTOR_CHECKS = 16 };

typedef struct bz_doctor {
    bz_finding finding[BZ_DOCTOR_CHECKS];
    int count[BZ_HEALTHS];
} bz_doctor;

/* Looks at /proc and /sys below `root` ("" for this machine, where it also looks at what runs), and at the database's folder. */
void bz_doctor_look(const char *root, const char *db, bz_doctor *out);

#endif
