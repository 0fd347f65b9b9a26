/* What the steps of a night use of each other. Private to fleet. */
#ifndef BZ_FLEET_STEPS_H
#define BZ_FLEET_STEPS_H

#include "fleet/job.h"

void bz_fleet_warn(const bz_fleet_job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int bz_fleet_want_one(bz_fleet_job *j, int kind, bool missing, const bz_system *system, bz_want *out, bz_error *err);
bz_setting bz_fleet_setting(const bz_fleet_system *s);
const bz_fleet_plan *bz_fleet_plan_of(const bz_fleet_job *j, int kind);
bz_shards bz_fleet_shards(const bz_fleet_job *j, int kind, bz_arena *arena);

/* Paths within the fleet's folder; they live in the arena. */
const char *bz_fleet_path(bz_fleet_job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int bz_fleet_make_folder(const char *path, bz_error *err);
int bz_fleet_stacks_save(bz_fleet_job *j, bz_error *err);
int bz_fleet_night_save(bz_fleet_job *j, bz_error *err);
/* To a list that was empty, or made by this. The text is kept, not copied. */
void bz_fleet_names_add(bz_fleet_names *names, const char *text, bz_arena *arena);

/* All attempts at the shards of a system in a night, in the order of their names, with their result files. */
typedef struct bz_fleet_attempts {
    bz_attempt *attempt;
    int n;
} bz_fleet_attempts;
void bz_fleet_attempts_load(bz_fleet_job *j, const bz_night_system *s, bz_fleet_attempts *out);
bool bz_fleet_is_lines(const char *name); /* for bz_folder_list: it ends in .jsonl */

/* Slurm. `more` are options of sbatch that differ from job to job; `path` a script that was written. */
const char *bz_fleet_program(bz_fleet_job *j);                            /* that jobs run */
int bz_fleet_write_script(const char *path, bz_buf *text, bz_error *err); /* frees the text */
int bz_fleet_sbatch(bz_fleet_job *j, const bz_fleet_system *s, const bz_fleet_names *more, const char *path,
                    int64_t *id, bz_error *err);
int bz_fleet_queue(bz_fleet_job *j, const bz_queued **list, int *n,
                   bz_error *err); /* the user's jobs that Slurm knows of */
void bz_fleet_cancel(const int64_t *id, int n);
/* Until none of the jobs is queued. A controller that does not answer is asked again. -1: the deadline (bz_now) came first. */
int bz_fleet_wait_for(bz_fleet_job *j, const int64_t *id, int n, double deadline);

/* Asks one machine of each kind what it is. */
int bz_fleet_probe(bz_fleet_job *j, bz_error *err);

/* Parts of reports, for people and for the page. */
bz_table *fleet_systems_table(const bz_fleet_report *r, bz_arena *arena);
void fleet_troubles_text(const bz_fleet_report *r, bz_buf *out);

#endif
