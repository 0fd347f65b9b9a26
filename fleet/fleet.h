/* fleet: the database kept fresh by a cluster.
 *
 *   bz_fleet_read       fleet.json: which kinds of machines there are, and what is measured on them
 *   bz_want_*           what a database lacks of a plan, or has in a doubtful state, and how long it will take
 *   bz_shards_make      the work cut into shards of about the same length
 *   bz_night_*          what was submitted, as a file
 *   bz_attempt_*        what one run of a shard came to, as a file
 *   bz_slurm_*          batch scripts, the queue
 *   bz_deviations_add   nodes that are slower than their peers
 *   bz_fleet_report_*   a night for people, as JSON, as HTML
 *
 * A night is a folder on a file system that all machines share:
 *
 *   stacks.json                  which software each kind of machine was last seen with
 *   20261121T020000Z/night.json  what was planned and submitted
 *   20261121T020000Z/v100/       the batch scripts of a kind of machine, and the answer to "what are you?"
 *   …/merge.json, report.*       what the last merge came to, and the reports
 *   …/v100/1-000/                a shard of round 1: a generated folder, shard.json, and `attempts`
 *   …/attempts/ID.json, .jsonl   an attempt at it, and the lines that it measured
 *
 * Every attempt writes files of its own, so a machine that was thought to be dead cannot garble what its successor
 * writes. Lines are text as the database exports it; the head node imports them, as often as it likes.
 *
 * All functions return 0, or -1 with *err filled. Files are checked as they are read; what they name never becomes
 * a path or a command but by way of bz_fleet_is_name and bz_slurm_quote. */
#ifndef BZ_FLEET_H
#define BZ_FLEET_H

#include "base/whole.h"
#include "compare/compare.h"

#define BZ_FLEET_TOO_LONG "is longer than any file of this kind"

/* ---- fleet.json ----------------------------------------------------------------------------- */

typedef struct bz_fleet_names {
    const char **item;
    int n;
} bz_fleet_names;

/* A kind of machine: how to get one, and what to measure there. Texts are NULL where they were not given. */
typedef struct bz_fleet_system {
    const char *name; /* bz_fleet_is_name: a folder and part of the job's name */
    const char *partition, *gres, *constraint, *account, *qos, *nodelist;
    const char *slug;    /* of the system, for plans before anybody has seen one of them; NULL: the name */
    const char *scratch; /* folder on the node; NULL: $SLURM_TMPDIR, $TMPDIR or /tmp */
    bool shared;         /* other jobs may run on the node */
    double shards;       /* at most */
    double minutes;      /* limit of a shard; 0: by the estimate */
    double threads, time_limit;
    const char *cache, *dtype;
    bool fuse;
    bool peaks; /* measure what the processor could do at best, where nobody knows: half a minute */
    bz_fleet_names backends, layouts, maths;
    bz_fleet_names environment, values; /* variables of the shard and what they are set to */
    bz_fleet_names modules;             /* for `module load` */
    bz_fleet_names options;             /* others of sbatch, each one word */
} bz_fleet_system;

typedef struct bz_fleet {
    const char *folder;  /* of the nights */
    const char *benanza; /* the program on the nodes; NULL: where it is on this machine */
    bz_fleet_names models, dims;
    double batch[16];
    int n_batches;
    double max_age, retries, tolerance, deviation; /* days; measurements again; shares */
    double shard_minutes, rounds, hours, poll;
    bz_fleet_system merge; /* how to get the head node, for the job that merges; no name: there is none */
    bz_fleet_system *system;
    int n_systems;
    bz_arena arena;
} bz_fleet;

/* The text of a fleet.json; `path` is for messages. Free with bz_fleet_free, also after a failure. */
int bz_fleet_parse(const char *text, const char *path, bz_fleet *out, bz_error *err);
int bz_fleet_read(const char *path, bz_fleet *out, bz_error *err);
void bz_fleet_free(bz_fleet *fleet);
void bz_fleet_defaults(bz_fleet *out);

/* Letters, digits, '-', '_' and '.', not at the beginning; at most 63 of them. */
bool bz_fleet_is_name(const char *text);

/* ---- what is wanted ------------------------------------------------------------------------- */

typedef enum {
    BZ_WANT_NOT,     /* known and fresh */
    BZ_WANT_NEW,     /* never measured on any stack of this system */
    BZ_WANT_STACK,   /* measured with another driver or library only */
    BZ_WANT_PART,    /* a run was killed in it */
    BZ_WANT_OLD,     /* older than the age given */
    BZ_WANT_NOISY,   /* marked noisy or throttled, and not tried as often as allowed */
    BZ_WANT_PASSING, /* failed for a reason that may have passed, likewise */
} bz_want_why;
enum { BZ_WANTS = BZ_WANT_PASSING + 1 };
const char *bz_want_name(bz_want_why why); /* "never measured" */
const char *bz_want_id(bz_want_why why);   /* "new", for programs */

typedef struct bz_want_options {
    bz_setting setting;
    int64_t now, max_age; /* seconds; max_age 0: no limit */
    int retries;          /* how often noise and passing failures are measured again */
    double time_limit;    /* seconds of measuring per variant; 0: 0.1 */
    double pace;          /* of earlier nights: what it took over what was estimated; 0: 1 */
    /* [problems × BZ_PLAN_FAMILIES], zeroed: how long families take on stacks of other slugs, looked up once for all
     * systems that share the plan, the setting and the time limit. NULL: look every time */
    float *elsewhere;
} bz_want_options;

/* What of a plan is to be measured on one system. Lives in the arena. */
typedef struct bz_want {
    const bz_system *system; /* NULL: nothing is known of it */
    int n;                   /* problems of the plan */
    unsigned char *why;      /* [n × BZ_PLAN_FAMILIES]: bz_want_why */
    double *seconds;         /* [n]: estimate of the wanted families, 0 where there are none */
    int count[BZ_WANTS];     /* families */
    int problems;            /* with a family that is wanted */
    double total;            /* seconds */
    int guessed;             /* families of which no record tells how long they take */
} bz_want;

/* `system` is the stack that is there now; NULL where the database does not know it, then all is wanted.
 * `slug` (may be NULL) finds other stacks, whose records tell how long things take. */
int bz_want_make(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const char *slug,
                 const bz_want_options *options, bz_arena *arena, bz_want *out, bz_error *err);

/* ---- shards --------------------------------------------------------------------------------- */

typedef struct bz_shard {
    int problems, families;
    double seconds; /* estimate, building included */
} bz_shard;

typedef struct bz_shards {
    int n;
    bz_shard *shard; /* [n] */
    int *of;         /* [problems of the plan]: its shard, or -1 */
} bz_shards;

/* The longest problem first, each into the shard that is shortest so far. As many shards as give each about
 * `target` seconds, but not more than `most`, and none for nothing. */
void bz_shards_make(const bz_plan *plan, const bz_want *want, double target, int most, bz_arena *arena, bz_shards *out);

/* ---- nights --------------------------------------------------------------------------------- */

typedef struct bz_night_shard {
    int round, index; /* index within the round */
    int problems, families;
    double estimate;
} bz_night_shard;

typedef struct bz_night_job {
    int round;
    int64_t id, begin; /* Slurm's number of the array; when it was submitted */
} bz_night_job;

typedef struct bz_night_system {
    const char *name;   /* of fleet.json */
    const char *system; /* the stack that was planned for; "" where nobody knew */
    const char *before; /* the stack that the report compares with; "" for none */
    int64_t until;      /* records of `before` up to then; 0: all */
    const char *note;   /* why nothing was planned, or "" */
    int families[BZ_WANTS];
    double pace; /* that the estimates were made with */
    bz_night_job *job;
    int n_jobs;
    bz_night_shard *shard;
    int n_shards;
} bz_night_system;

typedef struct bz_night {
    const char *id, *fleet, *program; /* 20261121T020000Z; the absolute path of fleet.json; version of benanza */
    int64_t begin;
    int64_t merge_job; /* 0: none */
    bz_fleet_names models;
    bz_night_system *system;
    int n_systems;
} bz_night;

/* merge.json: what the last merge came to. */
typedef struct bz_merged {
    int64_t files, added, known, bad; /* files; records; lines */
    bz_fleet_names note;
} bz_merged;

void bz_night_print(const bz_night *night, bz_buf *out);
void bz_merged_print(const bz_merged *merged, bz_buf *out);
int bz_merged_parse(const char *text, const char *path, bz_arena *arena, bz_merged *out, bz_error *err);
int bz_night_parse(const char *text, const char *path, bz_arena *arena, bz_night *out, bz_error *err);

/* 20261121T020000Z */
void bz_night_id(int64_t date, char out[32]);
bool bz_night_is_id(const char *text);

/* stacks.json: what the kinds of machines were last seen as. */
typedef struct bz_fleet_stack {
    const char *name, *system, *before; /* kind; full name; the one before, or "" */
    int64_t seen;
    double pace;
} bz_fleet_stack;

typedef struct bz_fleet_stacks {
    bz_fleet_stack *item;
    int n;
} bz_fleet_stacks;

void bz_fleet_stacks_print(const bz_fleet_stacks *stacks, bz_buf *out);
int bz_fleet_stacks_parse(const char *text, const char *path, bz_arena *arena, bz_fleet_stacks *out, bz_error *err);
bz_fleet_stack *bz_fleet_stacks_find(const bz_fleet_stacks *stacks, const char *name); /* NULL where unknown */
bz_fleet_stack *bz_fleet_stacks_add(bz_fleet_stacks *stacks, const char *name, bz_arena *arena);

/* ---- shards on their nodes ------------------------------------------------------------------ */

/* shard.json: how the folder beside it is to be run. */
typedef struct bz_work {
    int threads;
    bool cold, peaks; /* peaks: measure what the processor could do at best, too */
    double time_limit;
    const char *device; /* backend that has one; "" for the processor */
    const char *system; /* that was planned for; "" unknown */
} bz_work;

void bz_work_print(const bz_work *work, bz_buf *out);
int bz_work_parse(const char *text, const char *path, bz_arena *arena, bz_work *out, bz_error *err);

/* The same calls on every node, so that nodes can be compared. */
typedef struct bz_yardstick {
    const char *backend, *problem;
    bool device;
} bz_yardstick;
enum { BZ_YARDSTICKS = 4 };
extern const bz_yardstick bz_yardsticks[BZ_YARDSTICKS];

typedef enum { BZ_ATTEMPT_RUNNING, BZ_ATTEMPT_DONE, BZ_ATTEMPT_FAILED } bz_attempt_state;

typedef struct bz_attempt {
    const char *id, *node, *system, *program; /* system: that it really is; "" not known yet */
    const char *reason;                       /* of a failure */
    bz_attempt_state state;
    int64_t job, begin, end; /* job: Slurm's own number of the task */
    int64_t skew;            /* seconds that the node's clock is ahead of the file server's */
    int records, failed, bad, throttled, noisy;
    double seconds;                  /* on the monotonic clock */
    double yardstick[BZ_YARDSTICKS]; /* seconds; NAN: not run */
    const char *lines;               /* path of the result file, of one that was loaded for a night */
    int shard;                       /* likewise: into the system's shards */
} bz_attempt;

void bz_attempt_print(const bz_attempt *a, bz_buf *out);
int bz_attempt_parse(const char *text, const char *path, bz_arena *arena, bz_attempt *out, bz_error *err);

/* ---- Slurm ---------------------------------------------------------------------------------- */

/* 'text', for a shell: whatever stands in it, it is one word. */
void bz_slurm_quote(bz_buf *out, const char *text);

/* The batch script of a round's array. `folder` is the system's in the night. */
void bz_slurm_script(const bz_fleet_system *s, const char *program, const char *folder, int round, bz_buf *out);
/* The one that asks a machine what it is; the answer goes into `file`. */
void bz_slurm_probe(const bz_fleet_system *s, const char *program, const char *device, const char *file, bz_buf *out);
void bz_slurm_merge(const char *program, const char *fleet, const char *db, const char *night, bz_buf *out);

/* The options of sbatch that get such a machine, each one word, behind those that are there. */
void bz_slurm_options(const bz_fleet_system *s, bz_arena *arena, bz_fleet_names *argv);

/* A line of `squeue -h -r -o "%F %K %t %N"`: array's number, task (-1: no array), state, node. */
typedef struct bz_queued {
    int64_t job;
    int task;
    char state[16], node[64];
} bz_queued;
int bz_slurm_queue(const char *text, bz_arena *arena, const bz_queued **out);
int64_t bz_slurm_job(const char *text); /* what `sbatch --parsable` printed; 0 where it is no number */

/* ---- reports -------------------------------------------------------------------------------- */

/* A node whose yardstick is longer than that of its peers, or that was throttled. */
typedef struct bz_deviation {
    const char *kind, *node, *what;
    double seconds, peers; /* NAN for throttling */
    int throttled, records;
} bz_deviation;

typedef struct bz_change_row {
    const char *kind;         /* of machine */
    const char *model, *what; /* model: NULL for a layer; what: its key; NULL for a model's bound */
    double times;
    int layers, of; /* of a model: that both stacks know, and that cost something */
    bz_span before, after;
    const char *variant_before, *variant_after;
    bz_verdict verdict;
} bz_change_row;

typedef struct bz_failure {
    const char *kind, *what, *reason;
} bz_failure;

/* One kind of machine in a night. */
typedef struct bz_night_result {
    const bz_night_system *planned;
    const char *system, *before; /* what really ran, newest stack; what it is compared with, or "" */
    int moved;                   /* attempts that ran on another stack than planned for */
    int wanted, left;            /* families: planned, and still not measured */
    int shards, done, running, waiting, died, failed;
    int attempts, records, bad_records; /* bad: failed, crashed, hung */
    double estimate, seconds;           /* of the shards; of the attempts */
    int faster, slower, same, undecided;
} bz_night_result;

typedef struct bz_fleet_report {
    const bz_night *night;
    bz_night_result *result; /* [night->n_systems] */
    bz_deviation *deviation;
    int n_deviations;
    bz_change_row *change; /* models, then layers; worst first */
    int n_changes;
    bz_failure *failure;
    int n_failures, more_failures;
    bz_fleet_names warning;
    double tolerance;
    int regressions; /* changes that are SLOWER by more than the tolerance */
    int left;        /* families planned and not measured */
} bz_fleet_report;

void bz_deviations_add(const char *kind, const bz_attempt *attempt, int n, double least, bz_arena *arena,
                       bz_fleet_report *out);

/* What changed from one side to the other: rows of layers, and of models' bounds as written. Then, once, the order. */
void bz_changes_add(const char *kind, const bz_side *before, const bz_side *after, const bz_plan *plan,
                    const bz_setting *setting, bz_arena *arena, bz_fleet_report *out, bz_night_result *counts);
void bz_changes_sort(bz_fleet_report *out);
bool bz_change_regressed(const bz_change_row *row, double tolerance);
bool bz_change_improved(const bz_change_row *row, double tolerance);

void bz_fleet_report_text(const bz_fleet_report *report, int rows, bz_buf *out);
void bz_fleet_status_text(const bz_fleet_report *report, bz_buf *out); /* how far it is */
void bz_merged_text(const bz_merged *merged, const char *night, bz_buf *out);
void bz_fleet_report_json(const bz_fleet_report *report, bz_buf *out);
void bz_fleet_report_html(const bz_fleet_report *report, int rows, bz_buf *out);

#endif
