/* What gen and bound have in common: which benchmarks models need. Private to cli/. */
#ifndef BZ_CLI_PLANNING_H
#define BZ_CLI_PLANNING_H

#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "generator/generator.h"

typedef struct planning {
    model_settings models;
    const char *dtype, *cache, *system, *clock;
    bz_list backends, layouts, maths;
    int64_t threads;
    bool fuse;
    const char *patterns;
} planning;

/* `p`: where the planning is in the job. */
#define PLANNING_OPTIONS(job, p)                                                                                       \
    MODEL_BATCH_OPTION(job, p.models), PLANNING_SWEEP_OPTIONS(job, p), TRAINING_OPTIONS(job, p.models),                \
        PLANNING_SYSTEM_OPTION(job, p)

/* Those of one point of a sweep over batches and systems. */
#define PLANNING_SWEEP_OPTIONS(job, p)                                                                                 \
    MODEL_SHAPE_OPTIONS(job, p.models),                                                                                \
        BZ_VALUE("dtype", job, p.dtype, "TYPE",                                                                        \
                 "compute floating-point layers in this type: f32, bf16, f16 or s8 (the model's own)"),                \
        BZ_LIST("backend", job, p.backends, "NAME",                                                                    \
                "use only this backend: onednn, cblas or memory, on a GPU cudnn or cublas; may be repeated"),          \
        BZ_LIST("layout", job, p.layouts, "NAME",                                                                      \
                "use only this layout: plain, packed, nhwc or any; may be repeated"),                                  \
        BZ_FLAG("fuse", job, p.fuse,                                                                                   \
                "also take groups of layers that one call can compute, such as conv + bias + ReLU"),                   \
        BZ_VALUE("patterns", job, p.patterns, "FILE", "read more fusion patterns from FILE; implies --fuse"),          \
        BZ_LIST("math", job, p.maths, "MODE",                                                                          \
                "on a GPU, let f32 products run in this mode too: tf32 or f16; may be repeated"),                      \
        BZ_COUNT("threads", job, p.threads, "N", "use N threads (1)"),                                                 \
        BZ_CHOICE("cache", job, p.cache, "hot|cold",                                                                   \
                  "hot: the operands are in the caches when a call begins; cold: they are in memory (hot)"),           \
        PLANNING_CLOCK_OPTION(job, p.clock), BZ_DB_OPTION

/* The names of those that are no model's, for bz_job_reads. */
#define PLANNING_READS "dtype backend layout fuse patterns math threads cache lock-clock db "

#define PLANNING_CLOCK_OPTION(job, field)                                                                              \
    BZ_VALUE("lock-clock", job, field, "MHZ",                                                                          \
             "hold a GPU's clock at MHZ while measuring, which takes root's rights; what was measured so counts",      \
             .use = planning_clock)
int planning_clock(const char *name, const char *value, bz_error *err);

#define PLANNING_SYSTEM_OPTION(job, p)                                                                                 \
    BZ_VALUE("system", job, p.system, "NAME", "the system whose records count (this machine's)")

int planning_setting(const planning *p, bz_setting *setting, bz_error *err);
/* The backend named that has a device of its own; NULL where all run on the processor. */
const char *planning_device(const planning *p);
/* Whether a system is a GPU, by what is known of it. */
bool planning_is_gpu(const bz_system *system);
/* Where the system is a GPU and no backend is named, those of GPUs are meant, and are named from now on. On a processor options of GPUs fail. */
int planning_backends(bz_job *job, planning *p, const bz_system *system, bz_error *err);
void planning_backends_of_gpus(bz_job *job, planning *p); /* named besides those that are */
#define PLANNING_REMEASURE_OPTION(job, field)                                                                          \
    BZ_VALUE("remeasure", job, field, "WHICH",                                                                         \
             "measure again, although the database has them: noisy (all "                                              \
             "marked records), all, older-than=2026-11-22 or older-than=7d")

/* "1,4,16", at most so many; NULL: none. */
int planning_batches(const char *text, int64_t *out, int most, int *n, bz_error *err);

#define PLANNING_WAIT_OPTION(job, field)                                                                               \
    BZ_VALUE("wait", job, field, "S",                                                                                  \
             "wait at most S seconds for a quiet machine before a problem, twice that in all (30)",                    \
             .use = bz_option_seconds_or_none)

/* The GPU is chosen before anything asks what this machine is. */
#define PLANNING_DEVICE_OPTION                                                                                         \
    BZ_VALUE("device", bz_job, device, "N",                                                                            \
             "on a machine with several GPUs, use number N, as nvidia-smi -L or CUDA_VISIBLE_DEVICES lists them, "     \
             "from 0 on (0)",                                                                                          \
             .use = planning_choose_gpu)
int planning_choose_gpu(const char *name, const char *number, bz_error *err);

#define PLANNING_GPU " --backend cudnn --backend cublas"
bool planning_word(const char **list, char out[256]); /* the next of "a,b,c"; false behind the last */
/* Opens the database to look only: nothing is measured, so nothing is stored. Who names systems (may be NULL) wants the one that knows them,
 * unless a data sheet tells of each. */
int planning_look(bz_job *job, const char *systems, bz_perfdb **db, bz_error *err);
/* Opens the database and finds the system: the one that is named, or this machine. look: nothing will be stored, so that no database is made. */
int planning_system(bz_job *job, const planning *p, bool look, bz_perfdb **db, const bz_system **system, bz_error *err);
/* The same for plans. Both are there until the call ends. */
int planning_options(bz_job *job, const planning *p, bz_plan_options *o, bz_error *err);
int planning_plan(bz_job *job, const planning *p, const bz_models *m, bz_plan **plan, bz_error *err);
/* Says on stderr how many problems the database lacks, for whom ("" or " for the V100"), and the command that measures them,
 * there where `elsewhere` says so. */
void planning_lacks(const bz_command *command, int n, const char *whom, const char *measures, bool elsewhere);

#endif
