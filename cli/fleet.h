/* fleet: what the subcommands of benanza fleet share. Private to cli/fleet*.c. */
#ifndef BZ_CLI_FLEET_H
#define BZ_CLI_FLEET_H

#include "cli/planning.h"
#include "fleet/fleet.h"

/* A plan, shared by all kinds of machines that have the same measured on them. */
typedef struct fleet_plan {
    char *key;
    planning p;
    bz_plan *plan;
    float *elsewhere; /* see bz_want_options */
} fleet_plan;

typedef struct fleet_job {
    const bz_command *command;
    const char *config, *db_dir, *night_name; /* as given */
    bool json;
    int64_t max_age;              /* days; -1: as the file says */
    bool probe;                   /* submit: first ask the machines what they are */
    const char *tolerance, *html; /* report: per cent; a page */
    int64_t top;                  /* report: changes to show */
    bz_list arguments;

    bz_fleet fleet;
    bz_perfdb *db;
    bz_arena arena;
    bz_list paths; /* of the models, each as often as there are batches */
    loaded_models models;
    bz_fleet_names model_paths; /* absolute, each once */
    fleet_plan *plan;
    int n_plans;
    int *plan_of;      /* [n_systems] */
    bz_want *want;     /* [n_systems] */
    const char **note; /* [n_systems]: why nothing is planned, or NULL */
    bz_fleet_stacks stacks;
    bz_night night;
    bz_merged merged;
    int lock; /* -1: not held */
} fleet_job;

#define FLEET_OPTIONS(j)                                                                                               \
    {"config", BZ_OPTION_TEXT, &(j).config, "FILE", "the fleet's file (else $BENANZA_FLEET, else fleet.json)"},        \
        {"db", BZ_OPTION_TEXT, &(j).db_dir, "DIR",                                                                     \
         "the database's folder (else $BENANZA_DB, else $XDG_DATA_HOME/benanza/perfdb)"},                              \
    {                                                                                                                  \
        "json", BZ_OPTION_FLAG, &(j).json, NULL, "print JSON, for programs"                                            \
    }

/* Runs a subcommand: options, `body`, output, clean-up. `body` returns 0, or -1 with *err filled, and may set *status
 * to what to exit with. */
int fleet_run(fleet_job *j, const bz_option *options, int argc, char **argv,
              int (*body)(fleet_job *j, bz_buf *out, int *status, bz_error *err));

/* Reads fleet.json and opens the database. */
int fleet_open(fleet_job *j, bool read_only, bz_error *err);
/* The same where there may be no fleet.json: the systems that the database knows are the fleet then. */
int fleet_open_any(fleet_job *j, bz_error *err);
/* One night at a time: taken until the process ends. */
int fleet_lock(fleet_job *j, bz_error *err);

/* Loads the models given, or those of fleet.json, and plans them for every kind of machine. */
int fleet_load(fleet_job *j, const bz_fleet_names *models, bz_error *err);
/* What is wanted of them on each. `missing`: only what is not known at all, not what is doubtful. */
int fleet_want(fleet_job *j, bool missing, bz_error *err);
int fleet_want_one(fleet_job *j, int kind, bool missing, const bz_system *system, bz_want *out, bz_error *err);
bz_setting fleet_setting(const bz_fleet_system *s);
const char *fleet_device(const fleet_job *j, int kind);

/* Paths within the fleet's folder; they live in the arena. */
const char *fleet_path(fleet_job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int fleet_make_folder(const char *path, bz_error *err);
int fleet_stacks_load(fleet_job *j, bz_error *err);
int fleet_stacks_save(fleet_job *j, bz_error *err);
/* The night named, or the newest. */
int fleet_night_load(fleet_job *j, bz_error *err);
int fleet_night_save(fleet_job *j, bz_error *err);

/* All attempts at the shards of a system in a night, in the order of their names, with their result files. */
typedef struct fleet_attempts {
    bz_attempt *attempt;
    const char **lines; /* path of the result file */
    int *shard;         /* into the system's shards */
    int n;
} fleet_attempts;
void fleet_attempts_load(fleet_job *j, const bz_night_system *s, fleet_attempts *out);

/* Slurm. `more` are options of sbatch that differ from job to job; `path` a script that was written. */
const char *fleet_program(fleet_job *j);                               /* that jobs run */
int fleet_write_script(const char *path, bz_buf *text, bz_error *err); /* frees the text */
int fleet_sbatch(fleet_job *j, const bz_fleet_system *s, const bz_fleet_names *more, const char *path, int64_t *id,
                 bz_error *err);
int fleet_queue(fleet_job *j, const bz_queued **list, int *n, bz_error *err); /* the user's jobs that Slurm knows of */
void fleet_cancel(const int64_t *id, int n);
/* Until none of the jobs is queued. -1: the deadline (bz_now) came first. */
int fleet_wait_for(fleet_job *j, const int64_t *id, int n, double deadline);

/* The steps of a night. fleet_submit changes nothing where nothing is wanted. */
int fleet_probe(fleet_job *j, bz_error *err);
int fleet_submit(fleet_job *j, int round, int64_t now, bz_error *err);
int fleet_collect(fleet_job *j, bz_error *err);
int fleet_report_make(fleet_job *j, double tolerance, bz_fleet_report *out, bz_error *err);
void fleet_plan_print(const fleet_job *j, bz_buf *out);

extern const bz_command bz_command_fleet_plan, bz_command_fleet_submit, bz_command_fleet_status,
    bz_command_fleet_collect, bz_command_fleet_report, bz_command_fleet_nightly, bz_command_fleet_work;

#endif
