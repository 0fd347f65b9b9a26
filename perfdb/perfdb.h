/* perfdb: the performance database. What is possible on a system is measured once and kept here:
 * systems, problems, and records with their history.
 *
 *   bz_perfdb *db;
 *   if (bz_perfdb_open(&db, dir, &(bz_perfdb_options){.warn = warn}, &err))
 *       …
 *   bz_perfdb_put(db, records, n, NULL, &err);
 *   bz_perfdb_variants(db, system, problem, &arena, &list, &n, &err);
 *   bz_perfdb_close(db);
 *
 * A database is a folder with an LMDB environment (data.mdb, lock.mdb). Any number of processes
 * may read and write it at once; readers never wait. One process must not open the same folder
 * twice at the same time, and must not use a handle after fork(): POSIX locks forbid both. A
 * handle belongs to one thread at a time.
 *
 * A record is named by its identity: system, problem, variant, setting. Measuring the same
 * identity again adds to its history; what readers get is the newest, unless they ask for more.
 *
 * Two records of one identity and one second are the same measurement told twice. Which telling
 * stays does not depend on the order in which they arrive: measured before imported before
 * modelled; then ok before anything else; then more samples; then the narrower interval of the
 * median; then the greater one byte by byte. So merging is idempotent, and merging A into B gives
 * what merging B into A gives.
 *
 * An entry that cannot be read (damaged, or written by a newer benanza) counts as absent: the
 * owner of the handle is warned, and the next older measurement steps in. Everything that comes
 * out of a database or a text file was checked, but may still have been written by a stranger: no
 * string holds control characters, none is safe in a shell.
 *
 * All functions return 0, or -1 with *err filled. */
#ifndef BZ_PERFDB_H
#define BZ_PERFDB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bz_perfdb bz_perfdb;

/* Records */

typedef enum {
    BZ_RECORD_OK,
    BZ_RECORD_FAILED,      /* the library said no at run time, or the result was wrong */
    BZ_RECORD_UNSUPPORTED, /* the library said beforehand that it can't */
    BZ_RECORD_CRASHED,
    BZ_RECORD_TIMEOUT,
    BZ_RECORD_DROPPED, /* given up early: hopeless, or not a latency at all */
} bz_record_status;

typedef enum {
    BZ_TIMING_DEVICE,     /* the time the device was busy */
    BZ_TIMING_EVENT_PAIR, /* two events around each call: small calls carry a launch floor of several µs */
    BZ_TIMING_CUPTI,      /* kernel time as CUPTI saw it */
    BZ_TIMING_WALL,
} bz_record_timing;

typedef enum { BZ_PROVENANCE_MEASURED, BZ_PROVENANCE_MODELLED, BZ_PROVENANCE_IMPORTED } bz_record_provenance;
typedef enum { BZ_CACHE_HOT, BZ_CACHE_COLD } bz_record_cache;

const char *bz_record_status_name(int s); /* "ok", "failed", … as in the text form: words of bz_member */
const char *bz_record_timing_name(int t);
const char *bz_record_provenance_name(int p);
const char *bz_record_cache_name(int c);

/* One way to run a problem. `algorithm` is the library's own name for the implementation. */
typedef struct bz_variant {
    const char *backend, *algorithm, *layout, *math;
} bz_variant;

typedef struct bz_setting {
    int threads;
    bz_record_cache cache;
    const char *clock; /* policy in words; "" where nobody set one */
} bz_setting;

/* The setting's text, as a problem has one: "threads=4 cache=cold clock=fixed at 2 GHz". The clock stands last and is left
 * out where nobody set one. */
void bz_setting_print(const bz_setting *s, bz_buf *out);
const char *bz_setting_clock(const bz_setting *s); /* NULL: nobody said how it is set */
bool bz_setting_same(const bz_setting *a, const bz_setting *b);

enum { BZ_RECORD_NUMBERS = 10 }; /* times and amounts */

/* Times are seconds. A number that is not known is NAN. No string is NULL in what the database
 * hands out; in what it is given, NULL means "" (clock, reason, checked, meta). */
typedef struct bz_record {
    const char *system;  /* full name: v100@cudnn7.6.3 */
    const char *problem; /* "conv x=… w=… … dtype=f32": one line, semantics wholly inside */
    bz_variant variant;
    bz_setting setting;
    bz_record_status status;
    bool chosen;          /* the library's own first pick for this problem and layout */
    bool chosen_training; /* what it picks where it is asked as for training; of no record where nobody looked */
    bool noisy, throttled;
    bool busy;          /* others used the machine meanwhile */
    const char *reason; /* for everything but ok */
    union {
        struct {
            double median, q25, q75, min, max;
            double low, high; /* 95 % interval of the median */
            double launch;    /* launch overhead, not part of the above */
            double bytes, flops;
        };
        double number[BZ_RECORD_NUMBERS]; /* all of these; NAN: not known */
    };
    int64_t n, iterations; /* samples; calls in all of them */
    int64_t workspace;     /* bytes */
    int64_t variants;      /* that its family has, this one included; 0: not known */
    const char *checked;   /* "ok", "skipped", or a sentence */
    bz_record_timing timing;
    bz_record_provenance provenance;
    int64_t date;     /* seconds since 1970 */
    const char *meta; /* a JSON object on one line as bz_json writes it, or "" */
} bz_record;

/* A record with no number known. */
bz_record bz_record_blank(void);
/* One whose strings live in the arena; `system` is the same. */
bz_record bz_record_copy(const bz_record *r, bz_arena *arena);

/* Appends what people call its variant, without the math mode: "onednn jit:avx512_core nhwc". */
void bz_record_variant(const bz_record *r, bz_buf *out);

/* Whether a record may be stored: says what is wrong with it if not. */
int bz_record_check(const bz_record *r, bz_error *err);

/* Whether it was marked while it was measured: noisy, throttled or busy. Another time its figures may well be others. */
bool bz_record_marked(const bz_record *r);

bool bz_record_failed(const bz_record *r); /* failed, crashed or hung */

/* Why it failed, as far as that decides what is done next. */
typedef enum {
    BZ_CAUSE_LASTING, /* it will fail again; or it did not fail */
    BZ_CAUSE_PASSING, /* another run may not meet it: memory that others had, machines in trouble */
    BZ_CAUSE_STOPPED, /* somebody asked the program to end: as passing, and nothing was measured */
} bz_record_cause;
bz_record_cause bz_record_cause_of(const bz_record *r);

/* Seconds that the device is busy with one call: the kernels' time where its profiler saw them ("kernel_time" in meta) and it is
 * less than the median, which on a GPU has the pauses between kernels in it (0.7 to 1 µs each). Else the median. How a call is
 * launched is not in it: a variant that is launched as a CUDA graph ("+cudagraph") is one more way to keep the device busy. */
double bz_record_busy(const bz_record *r);
/* What a GPU counted in one call, by `counted` in meta: operations, and bytes from and to its memory. NAN: not counted. False where nothing was. */
typedef struct bz_counts {
    double flops, dram_read, dram_write;
} bz_counts;
bool bz_record_counts(const bz_record *r, bz_counts *out);
/* Whether that may be some µs more than the device is busy: event pairs, or pauses in the time on a GPU (`device`). */
bool bz_record_has_floor(const bz_record *r, bool device);

/* Seconds that a fixed piece of work took before the record was made, and behind it. False where they are not recorded. */
bool bz_record_yardsticks(const bz_record *r, double seconds[2]);

/* Which records count as absent, so that they are measured again. */
typedef struct bz_remeasure {
    bool all;
    bool marked;    /* those with a mark; of dropped ones only where the machine was busy */
    int64_t before; /* those with an earlier date */
} bz_remeasure;
/* What --remeasure takes: "noisy", "all", "older-than=2026-11-22", "older-than=7d"; NULL stands for nothing. */
int bz_remeasure_parse(const char *text, bz_remeasure *out, bz_error *err);
/* Removes them from a list and returns how many stay, in their order. NULL removes nothing. */
size_t bz_records_keep(bz_record *records, size_t n, const bz_remeasure *again);

/* Whether a record tells what a call takes: it ran well, was not given up early, and is no single sample. An imported one may
 * be the mean of a run, which counts as one sample. */
bool bz_record_is_time(const bz_record *r);

bool bz_record_same_identity(const bz_record *a, const bz_record *b);

/* A family is a backend, layout and math mode. Whether r is of it, in this setting. */
bool bz_record_in_family(const bz_record *r, const bz_variant *family, const bz_setting *setting);

/* Whether all is known of a family, by the newest records of its problem: as many variants as it has, or
 * that it came to nothing. A run that was killed leaves families of which a part is known. */
bool bz_records_complete(const bz_record *records, size_t n, const bz_variant *family, const bz_setting *setting);

/* Above 0 when `a` stays and `b` goes, below 0 the other way round, 0 when they are equal. */
int bz_record_prefer(const bz_record *a, const bz_record *b);

/* The text form: one line of JSON, without the line's end. */
void bz_record_json(bz_json *j, const bz_record *r);

/* A line of text turned into a record or a system, whichever it is. Strings live in the arena.
 * `unknown` counts members that this version has no use for. */
typedef struct bz_line {
    bool is_system;
    bz_record record;
    const char *system, *details; /* is_system: full name, and a JSON object */
    int64_t date;
    size_t unknown;
    bool newer, not_json; /* why it could not be read: a newer benanza wrote it; it is no JSON */
} bz_line;
int bz_line_parse(const char *text, size_t len, bz_arena *arena, bz_line *line, bz_error *err);

/* Opening */

typedef struct bz_perfdb_options {
    bool read_only;  /* works on read-only media too; there must be a database. Else it is made */
    bool or_nothing; /* read-only where there is none: it knows nothing, and nothing is made */
    size_t map_size; /* bytes to map at first; 0 for 1 GiB. The file takes only what it holds, the map grows */
    void (*warn)(void *user, const char *text);
    void *user;
    int64_t (*file_system)(const char *path); /* statfs magic of the path's file system; NULL: the real one */
} bz_perfdb_options;

/* A network file system is refused: LMDB's locks and maps do not work there. So are files that
 * would crash LMDB: every page is looked at first. */
int bz_perfdb_open(bz_perfdb **out, const char *dir, const bz_perfdb_options *options, bz_error *err);
void bz_perfdb_close(bz_perfdb *db); /* NULL is fine */

const char *bz_perfdb_dir(const bz_perfdb *db);

/* Where the database is: `option` (may be NULL), else $BENANZA_DB, else
 * $XDG_DATA_HOME/benanza/perfdb, else ~/.local/share/benanza/perfdb; without $HOME, the home of the user's entry among
 * the users. Free the result. */
char *bz_perfdb_where(const char *option);

/* The file with the records of a machine that come with benanza. -1 with the names of those that there are. */
int bz_perfdb_reference(const char *name, char *path, size_t size, bz_error *err);

/* Systems */

typedef struct bz_system {
    uint32_t id;         /* within this database only */
    const char *name;    /* v100@cudnn7.6.3 */
    const char *details; /* a JSON object: what the machine is, its peaks */
    int64_t date;        /* of the details */
} bz_system;

/* Rates by the name of what has them: a data type, a library. */
typedef struct bz_named_rate {
    const char *name;
    double rate;
} bz_named_rate;

typedef struct bz_rates {
    const bz_named_rate *at;
    int n;
} bz_rates;

/* Bytes per second of a buffer of so many bytes; a copy counts both directions. NAN: nobody said. */
typedef struct bz_buffer_rates {
    double bytes, read, copy, copy_cold;
} bz_buffer_rates;

/* What 'benanza system --measure' found with one thread count. */
typedef struct bz_measured {
    int threads;
    bool busy; /* others used the machine meanwhile */
    bz_rates flops, reorder,
        convert;     /* per second, by data type: operations; elements brought into blocks, or converted */
    bz_rates launch; /* seconds of an empty call, by library */
    const bz_buffer_rates *buffer;
    int n_buffers;
} bz_measured;

/* The details as facts, read here and nowhere else. Imported systems name a `gpu` and no more; what benanza found itself has a
 * `device` and its `name`. Strings are "" and numbers 0 where nobody said. */
typedef struct bz_system_facts {
    const char *text; /* all details, as JSON */
    bool gpu;
    const char *device;          /* "cpu", "gpu" */
    const char *name;            /* as its maker calls it: "Tesla V100-SXM2-16GB" */
    const char *isa;             /* of a processor: "AVX2 AVX512_CORE …" */
    const char *versions;        /* of the libraries, for people */
    const char *counters;        /* "ok", or why there are none */
    const char *absent;          /* of a GPU: libraries that are missing, and why; "": none */
    double capability;           /* of a GPU: 9.0 */
    double l2, clock, bandwidth; /* of a GPU: bytes, Hz at most, bytes per second of its memory */
    const bz_measured *measured; /* as they stand there, each thread count once; at most BZ_MEASURED */
    int n_measured;
    struct {
        int level, count; /* that many of them */
        double bytes;     /* each */
    } cache[4];           /* of a processor, the smallest first */
    int n_caches;
    double yardstick; /* seconds that it takes at its best for the piece of work that tells whether it is slow; NAN */
} bz_system_facts;
enum { BZ_MEASURED = 16 };
extern const bz_system_facts bz_system_unknown;

const bz_system_facts *bz_system_facts_read(const char *details, bz_arena *arena); /* details may be NULL */
const bz_measured *bz_system_measured(const bz_system_facts *facts, int threads);  /* NULL: not with so many */
/* The details `new`, measured with one thread count, with what `old` has of others, as JSON text, fewest threads first.
 * NULL where that adds nothing. */
const char *bz_system_join(const char *old, const char *new, bz_arena *arena);
/* For people: aligned lines, as those of benanza-bench --system --text. */
void bz_measured_print(const bz_measured *measured, bz_buf *out);

/* Sorted by slug, the oldest stack of each first. Valid until the handle is closed. */
int bz_perfdb_systems(bz_perfdb *db, bz_arena *arena, const bz_system ***list, size_t *n, bz_error *err);

/* `name` in full, or a bare slug, which means its newest stack: the one whose version numbers are
 * greatest, read as numbers (cudnn7.10 is newer than cudnn7.6). *system is NULL where there is none. */
int bz_perfdb_system(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err);
/* The same for a name that the user gave: one that is not known is an error. NULL: *system is NULL. */
int bz_perfdb_known(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err);

/* A system for the time that the database is open: nothing is stored, and no record is of it. */
const bz_system *bz_perfdb_guest(bz_perfdb *db, const char *name, const char *details, int64_t date);
bool bz_perfdb_can_write(const bz_perfdb *db);

/* Adds a system or replaces what is known about it, unless the database knows something newer.
 * Putting a record adds its system too, without details. */
int bz_perfdb_put_system(bz_perfdb *db, const char *name, const char *details, int64_t date, bz_error *err);

/* The order of system names: slugs alphabetically, then stacks by version. */
int bz_system_compare(const char *a, const char *b);

/* Writing */

typedef struct bz_perfdb_count {
    size_t added;    /* were not there */
    size_t replaced; /* a lesser telling of the same measurement was */
    size_t kept;     /* the same or a better one was, and stays */
} bz_perfdb_count;

/* Stores all of them or none, and has them on disk when it returns. Adds to *count (may be NULL).
 * Not to be called from inside bz_perfdb_scan on the same handle. */
int bz_perfdb_put(bz_perfdb *db, const bz_record *records, size_t n, bz_perfdb_count *count, bz_error *err);

/* Deletes all but the newest `keep` measurements of each identity, and problems without records. */
int bz_perfdb_gc(bz_perfdb *db, size_t keep, size_t *deleted, bz_error *err);

/* Reading. Records and their strings live in the arena; system and problem strings in the handle
 * or in what was passed. */

/* The newest record of one identity; *record is NULL where there is none. */
int bz_perfdb_find(bz_perfdb *db, const bz_system *system, const char *problem, const bz_variant *variant,
                   const bz_setting *setting, bz_arena *arena, bz_record **record, bz_error *err);

/* The newest record of every variant and setting of a problem, failed ones included. */
int bz_perfdb_variants(bz_perfdb *db, const bz_system *system, const char *problem, bz_arena *arena,
                       bz_record **records, size_t *n, bz_error *err);

/* All measurements of one identity, newest first. */
int bz_perfdb_history(bz_perfdb *db, const bz_system *system, const char *problem, const bz_variant *variant,
                      const bz_setting *setting, bz_arena *arena, bz_record **records, size_t *n, bz_error *err);

typedef struct bz_perfdb_filter {
    const bz_system *system; /* NULL: all, in the order of bz_perfdb_systems */
    const char *dtype;       /* NULL: all; "f32": as behind "dtype=" in the problem */
    bool history;            /* every measurement, not only the newest */
} bz_perfdb_filter;

/* Calls `each` for every record that passes, all of one moment, in an order that depends on the
 * content only. The record is valid during the call. Ends early when `each` returns other than 0. */
int bz_perfdb_scan(bz_perfdb *db, const bz_perfdb_filter *filter, int (*each)(void *user, const bz_record *record),
                   void *user, bz_error *err);

/* What a database has of one system. */
enum { BZ_STOCK_THREADS = 16 };
typedef struct bz_stock {
    const bz_system *system;
    size_t records; /* with their history; the others count the newest of each identity */
    size_t variants, problems, ok;
    int64_t newest;
    bool from[BZ_PROVENANCE_IMPORTED + 1];
    int threads[BZ_STOCK_THREADS], n_threads; /* of the settings, fewest first; some of them where there are more */
} bz_stock;

/* Of all systems, in the order of bz_perfdb_systems. */
int bz_perfdb_stocks(bz_perfdb *db, bz_arena *arena, bz_stock **list, size_t *n, bz_error *err);

typedef struct bz_perfdb_choice {
    bz_perfdb_filter filter;
    const char *backend; /* NULL: all */
    const char *const *word;
    int n_words; /* all stand in the problem's text */
    bool failed; /* also those that are not ok */
} bz_perfdb_choice;

/* By problem, then system, the fastest first and the failed last. Their systems' names are the handle's. */
int bz_perfdb_pick(bz_perfdb *db, const bz_perfdb_choice *choice, bz_arena *arena, bz_record **list, size_t *n,
                   bz_error *err);

/* Text and other databases */

typedef struct bz_perfdb_import_report {
    size_t lines;   /* read: lines of text, or benchmarks of a Google Benchmark file */
    size_t records; /* good ones among them; repetitions of one benchmark make one record */
    size_t systems;
    size_t bad;       /* left out; the first twenty are named by a warning with their line number */
    size_t unknown;   /* members of good lines that this version has no use for */
    size_t newer;     /* of the bad ones: lines that a newer benanza wrote */
    size_t counted;   /* records that got what a benchmark under CUPTI counted, or have it */
    size_t uncounted; /* of the bad ones: such benchmarks without a record of the same call */
    bz_perfdb_count count;
} bz_perfdb_import_report;

/* Adds the content of a file ("-": standard input): JSON lines as bz_perfdb_export writes them, or
 * the Google Benchmark JSON of the original tool; plain, zstd or gzip, told by the content.
 * `system` (may be NULL) names the system of records that do not. Bad lines are counted, good ones
 * go in: that is no error. Fails when the file cannot be read or the database not be written. */
int bz_perfdb_import(bz_perfdb *db, const char *path, const char *system, bz_perfdb_import_report *report,
                     bz_error *err);

/* Calls `each` for every line of a text file, plain, zstd or gzip ("-": standard input), without its end; `number` counts from 1.
 * Lines over 64 KB are passed over. Ends early when `each` returns other than 0, which is no error. */
int bz_text_lines(const char *path, int (*each)(void *user, size_t number, const char *text, size_t len), void *user,
                  bz_error *err);

/* Many files at once, in few large transactions: storing waits for the disk, and each file has a bit of every page.
 * Records dated behind `latest` are bad: a clock was wrong, and the newest of all they would stay for as long as it
 * was ahead. What is stored so far counts in the report of the file at hand, the rest in what bz_perfdb_bulk_end adds
 * to *count. A file that cannot be read to its end leaves what was good of it. */
typedef struct bz_perfdb_bulk bz_perfdb_bulk;
bz_perfdb_bulk *bz_perfdb_bulk_new(bz_perfdb *db, int64_t latest);
int bz_perfdb_bulk_import(bz_perfdb_bulk *bulk, const char *path, bz_perfdb_import_report *report, bz_error *err);
int bz_perfdb_bulk_end(bz_perfdb_bulk *bulk, bz_perfdb_count *count, bz_error *err); /* stores the rest; frees it */

/* Writes systems, then records, one JSON object a line, with zstd if asked. Two databases with the
 * same content give the same bytes. */
int bz_perfdb_export(bz_perfdb *db, const bz_perfdb_filter *filter, int fd, bool zstd, size_t *records, bz_error *err);
/* Into a file, whole or not at all; with zstd where its name ends in .zst. */
int bz_perfdb_export_file(bz_perfdb *db, const bz_perfdb_filter *filter, const char *path, size_t *records,
                          bz_error *err);

/* Adds what another database has. */
int bz_perfdb_merge(bz_perfdb *db, bz_perfdb *from, bz_perfdb_count *count, bz_error *err);

/* Adds what a file or another database holds: a folder is another database, whoever made it; everything else is text. */
int bz_perfdb_take(bz_perfdb *db, const char *path, bz_perfdb_import_report *report, bz_error *err);

/* Care */

typedef struct bz_perfdb_check_report {
    size_t systems, problems, records;
    size_t damaged;    /* entries whose checksum or content is wrong */
    size_t newer;      /* entries that a newer benanza wrote */
    size_t orphans;    /* records whose system or problem is missing */
    size_t unused;     /* problems without a record: gc removes them; harmless */
    uint64_t bytes;    /* of the file */
    int stale_readers; /* slots of dead processes, cleared */
} bz_perfdb_check_report;

/* Reads every entry. Each defect is one warning. The pages were looked at when the database was opened. */
int bz_perfdb_check(bz_perfdb *db, bz_perfdb_check_report *report, bz_error *err);

typedef struct bz_perfdb_salvage_report {
    size_t systems, records; /* written */
    size_t pages;            /* that are damaged: what was on them is not known */
    size_t damaged, newer;   /* records whose checksum or content is wrong; that a newer benanza wrote */
    size_t nameless;         /* intact records whose problem's text is lost: nothing tells what was measured */
    size_t lost_systems;     /* of `records`: the system's name is lost, they are written as of "lost-ID" */
    bool old;                /* the list of free pages cannot be read: what was replaced or deleted may be among them */
} bz_perfdb_salvage_report;

/* Writes every intact system and record of the database in `dir`, however broken it is, in the text form. Reads the file
 * alone, without LMDB: nobody should write meanwhile. */
int bz_perfdb_salvage(const char *dir, int fd, bool zstd, bz_perfdb_salvage_report *report, bz_error *err);
int bz_perfdb_salvage_file(const char *dir, const char *path, bz_perfdb_salvage_report *report, bz_error *err);
bool bz_perfdb_salvaged_all(const bz_perfdb_salvage_report *report);

/* Rewrites the file in `dir` without free pages; no process may have it open, this one included. */
int bz_perfdb_compact(const char *dir, const bz_perfdb_options *options, uint64_t *before, uint64_t *after,
                      bz_error *err);

#endif
