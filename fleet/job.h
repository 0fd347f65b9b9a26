/* A night, step by step, and what the steps share.
 *
 *   bz_fleet_job j = {.config = NULL, .max_age = -1};
 *   bz_fleet_open(&j, false, &err);           fleet.json and the database
 *   bz_fleet_load(&j, &models, &err);         models and plans for each kind of machine
 *   bz_fleet_want(&j, false, &err);           what the database lacks of them
 *   bz_fleet_nightly(&j, …)                   or submit, collect and report by themselves
 *   bz_fleet_end(&j);
 *
 * The steps print nothing: what is worth a warning goes to job.warn. */
#ifndef BZ_FLEET_JOB_H
#define BZ_FLEET_JOB_H

#include "fleet/fleet.h"

/* A plan, shared by all kinds of machines that have the same measured on them. */
typedef struct bz_fleet_plan {
    char *key;
    const char *device; /* the backend with a device of its own; NULL: all run on the processor */
    bz_plan *plan;
    float *elsewhere; /* see bz_want_options */
} bz_fleet_plan;

typedef struct bz_fleet_job {
    const char *config, *db_dir, *night_name;   /* as given, or NULL; config becomes absolute */
    int64_t max_age;                            /* days; -1: as the file says */
    void (*warn)(void *user, const char *text); /* NULL: nobody listens */
    void *user;

    bz_fleet fleet;
    bz_perfdb *db;
    bz_arena arena;
    bz_fleet_names paths; /* of the models, each as often as there are batches */
    bz_models models;
    bz_fleet_names model_paths; /* absolute, each once */
    bz_fleet_plan *plan;
    int n_plans;
    int *plan_of;      /* [n_systems] */
    bz_want *want;     /* [n_systems] */
    const char **note; /* [n_systems]: why nothing is planned, or NULL */
    bz_fleet_stacks stacks;
    bz_night night;
    bz_merged merged;
    int lock; /* its file + 1; 0: not held */
} bz_fleet_job;

/* Reads fleet.json and opens the database. */
int bz_fleet_open(bz_fleet_job *j, bool read_only, bz_error *err);
/* The same where there may be no fleet.json: the systems that the database knows are the fleet then. */
int bz_fleet_open_any(bz_fleet_job *j, bz_error *err);
void bz_fleet_end(bz_fleet_job *j);

/* Loads the models given, or those of fleet.json, and plans them for every kind of machine. */
int bz_fleet_load(bz_fleet_job *j, const bz_fleet_names *models, bz_error *err);
/* What is wanted of them on each. `missing`: only what is not known at all, not what is doubtful. */
int bz_fleet_want(bz_fleet_job *j, bool missing, bz_error *err);
void bz_fleet_plan_text(const bz_fleet_job *j, bz_buf *out);
void bz_fleet_plan_json(const bz_fleet_job *j, bz_buf *out);

/* All that comes before jobs: one night at a time, and the one before is over. `probe`: the machines are asked what they are. */
int bz_fleet_prepare(bz_fleet_job *j, const bz_fleet_names *models, bool probe, bz_error *err);
/* Changes nothing where nothing is wanted. */
int bz_fleet_submit(bz_fleet_job *j, int round, int64_t now, bz_error *err);
/* The night named, or the newest. */
int bz_fleet_night_load(bz_fleet_job *j, bz_error *err);
int bz_fleet_collect(bz_fleet_job *j, bz_error *err);
/* A tolerance below 0: how far it is, without looking at records. */
int bz_fleet_report_make(bz_fleet_job *j, double tolerance, bz_fleet_report *out, bz_error *err);

/* All of it. Where nothing was wanted there is no night: j->night.id is NULL, and *report empty. */
int bz_fleet_nightly(bz_fleet_job *j, const bz_fleet_names *models, bz_fleet_report *report, bz_error *err);

/* On a node: measures the shard in the folder. `scratch` may be NULL. *stopped_by: the signal that ended it, or 0. */
int bz_fleet_work(const char *folder, const char *scratch, void (*warn)(void *user, const char *text), void *user,
                  int *stopped_by, bz_error *err);
/* On a node: writes to the file what this machine is, or of it the device of a backend (NULL: none). */
int bz_fleet_tell(const char *file, const char *backend, bz_error *err);

#endif
