/* runtime: what a generated benchmark links to.
 *
 * A generated folder holds one C file per unique layer. Such a file defines a bz_benchmark: problems
 * (runtime/problem.h) and, a line each, the families of variants in which they are to be run:
 *
 *     static const bz_problem alone = {
 *         .kind = BZ_PROBLEM_CONV,
 *         .conv = {
 *             .x = {1, 64, 56, 56}, .w = {64, 64, 3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1},
 *             .dilation = {1, 1}, .group = 1,
 *         },
 *         .dtype = BZ_F32,
 *     };
 *     static const bz_family families[] = {
 *         {&alone, "onednn", "plain", "default"},
 *         {&alone, "onednn", "any", "default"},
 *     };
 *     const bz_benchmark benchmark_conv_1f2e3d4c = {"conv_1f2e3d4c", families, 2};
 *
 * and one more file lists them: `const bz_benchmark *const bz_benchmarks[] = {&benchmark_…, NULL};`.
 * main is in this library: it reads the options (bz_options), runs each benchmark in a child
 * process, and writes one JSON line per finished variant. The same main without any benchmark, fed
 * with problem texts, is the program benanza-bench.
 *
 * A family is a backend, a layout and a math mode; the backend says which variants (algorithms) it
 * has of it on this machine. Layouts:
 *
 *     plain    row-major, NCHW; weights as the model has them
 *     packed   row-major, but constant operands are packed ahead of time as the library likes
 *     nhwc     channels last; constant operands packed ahead
 *     any      the library's own choice for everything (blocked layouts)
 *
 * Math modes: `default`; `bf16`, `f16`, `tf32`: the library may compute f32 problems in that type. */
#ifndef BZ_RUNTIME_H
#define BZ_RUNTIME_H

#include "runtime/problem.h"

#include <stdio.h>
#include <sys/types.h>

/* ---- what generated files say --------------------------------------------------------------- */

typedef struct bz_family {
    const bz_problem *problem;
    const char *backend, *layout, *math;
} bz_family;

typedef struct bz_benchmark {
    const char *name;          /* that of the file */
    const bz_family *families; /* those of one problem stand together: they compete, and are interleaved */
    int n;
} bz_benchmark;

extern const bz_benchmark *const bz_benchmarks[]; /* ends with NULL; the generated list */

/* ---- statistics ----------------------------------------------------------------------------- */

typedef struct bz_stats {
    int n;
    double median, q25, q75, min, max;
    double low, high; /* 95 % interval of the median; -inf and inf below six samples */
} bz_stats;

/* Statistics of n ≥ 1 samples in any order; sorts them. The interval is that of order statistics, so it holds
 * whatever the distribution: P(the r smallest lie above the median) follows the binomial. */
bz_stats bz_stats_of(double *samples, int n);

/* Relative half-width of the median's interval; inf while there is none. */
double bz_stats_uncertainty(const bz_stats *s);
/* Distance of the quartiles over the median. */
double bz_stats_spread(const bz_stats *s);
/* Whether the figures may well be others the next time: the quartiles, or the ends of the median's interval, are
 * further than this share of the median from each other. Below six samples their extremes are looked at. */
bool bz_stats_noisy(const bz_stats *s);
#define BZ_NOISY_SPREAD 0.025

/* ---- records -------------------------------------------------------------------------------- */

typedef enum {
    BZ_STATUS_OK,
    BZ_STATUS_FAILED,
    BZ_STATUS_UNSUPPORTED,
    BZ_STATUS_CRASHED,
    BZ_STATUS_TIMEOUT,
    BZ_STATUS_DROPPED, /* hopeless after the first round: the figures are an estimate */
} bz_status;

enum { BZ_N_COUNTERS = 5, BZ_MAX_KERNELS = 8, BZ_MAX_COUNTED = 24 };

/* A kernel as a device's profiler saw it; longer names are cut. */
typedef struct bz_kernel {
    char name[192];
    double seconds; /* median */
    int32_t grid[3], block[3], registers;
    int32_t shared; /* bytes of a block, static and dynamic */
} bz_kernel;

/* What one call of a variant runs on a device, by the device's profiler. */
typedef struct bz_trace {
    int calls;      /* that were traced; 0: none */
    int n_kernels;  /* of one call; the first BZ_MAX_KERNELS are kept */
    double seconds; /* for which at least one of them ran: median over the calls */
    bz_kernel kernel[BZ_MAX_KERNELS];
    char reason[640]; /* why there is none, where one was asked for */
    bool fatal;       /* it cost a process: nothing more is asked of the profiler */
} bz_trace;

/* What one call of a variant makes a device's counters count. */
typedef struct bz_counted {
    int calls, passes; /* rounds of which `value` is the median, calls in each round; 0: nothing was counted */
    int n;
    struct {
        char what[96]; /* a result of a group ("dram_read"), or a counter by its own name */
        double value;  /* NaN where the device did not say */
    } item[BZ_MAX_COUNTED];
    char reason[640]; /* why there is none, where one was asked for */
} bz_counted;

/* What became of one variant. No pointers but the problem: it passes through a pipe. Where a
 * whole family came to nothing, `algorithm` is empty. */
typedef struct bz_outcome {
    const bz_problem *problem;
    char backend[16], algorithm[160], layout[16], math[16];
    bz_status status;
    char reason[640];
    bz_stats stats;       /* seconds per call */
    int64_t iterations;   /* of all samples */
    double launch;        /* seconds of an empty call; NaN where not measured */
    double workspace;     /* bytes */
    int variants;         /* that the family has, this one included; 0 where the whole family came to nothing */
    bool chosen;          /* the library's own first pick for this problem and layout */
    bool chosen_training; /* what it picks where it is asked as for training */
    bool noisy, throttled;
    bool busy;           /* others used the machine: it was slow, had no processor free, or took ours away */
    double yardstick[2]; /* seconds of a fixed piece of work before and after; NaN where nothing was measured */
    int interrupted;     /* samples that were kept although another program took the processor meanwhile */
    char checked[200];   /* "ok", "skipped", or a sentence */
    bool more;           /* a record of the same follows, with what the profiler saw besides */
    double device_clock; /* Hz of a device while it measured, median; NaN where it does not say */
    char timing[12];     /* "wall", "event-pair", "device", "cupti" */
    double counter[BZ_N_COUNTERS]; /* per call, NaN where the machine has none: see bz_counter_names */
    int64_t date;                  /* unix seconds */
    bz_trace trace;
    bz_counted counted;
} bz_outcome;

extern const char *const bz_counter_names[BZ_N_COUNTERS];

/* ---- running -------------------------------------------------------------------------------- */

struct bz_backend;
struct bz_machine;

typedef struct bz_run_setting {
    int threads; /* 0: one */
    bool cold;   /* operands come from memory, not from a cache */
    const char *clock;
    double workspace;  /* bytes that a variant may have besides its operands; 0: what the device has free */
    const char *plans; /* folder in which plans that take long to build are kept for the next run; NULL: none is */
    int engines;       /* that each way of asking a library for them may bring; 0: ten, below 0: all that there are */
} bz_run_setting;

/* What is known already and not to be measured again: a variant, or a whole family. */
typedef struct bz_known {
    const char *backend, *layout, *math;
    const char *algorithm; /* NULL: all of the family */
} bz_known;

typedef struct bz_run_options {
    bz_run_setting setting;
    double sample_time;  /* seconds per sample; Google Benchmark finds the iterations for it. 0: 1 ms, on a device 2 */
    double time_limit;   /* seconds of measuring per variant. 0: 0.1 */
    double precision;    /* wanted uncertainty of the median. 0: 0.005 */
    double hang_limit;   /* seconds that one step of a variant may take before it counts as hanging. 0: 60 */
    double memory_limit; /* bytes that the child may have. 0: nine tenths of what is free */
    const struct bz_rate *launch; /* [n_launch]: what an empty call costs by backend, to be put into the records */
    int n_launch;
    bool trace;            /* besides, which kernels each variant runs */
    const char *counters;  /* besides, what it makes a device count: a list of --metrics; NULL: nothing */
    const bz_known *known; /* [n_known] */
    int n_known;
    double yardstick;  /* the shortest that this system is known to take for it; 0: not known */
    bool busy;         /* the machine is not quiet: what is measured now is marked */
    bool wall;         /* by the wall clock, whatever clock the backend has */
    char variant[160]; /* of all variants the one of this name, "-" those that libraries would choose; "": all */
    bool check_only;   /* run and check each variant once, measure nothing */
    const struct bz_backend *const *backends; /* ends with NULL; NULL: those built in */
    /* Called in the parent as soon as a variant is finished. */
    void (*emit)(void *context, const bz_outcome *record);
    void *context;
} bz_run_options;

/* Runs families of one problem (all with the same text), isolated in child processes: whatever
 * happens there, each family ends with at least one record. The caller must not have run any
 * library's code itself: threads do not survive a fork. Returns -1 only where no child can be made. */
int bz_run(const bz_family *families, int n, const bz_run_options *options, bz_error *err);

/* The same with a process that may measure many problems, one after the other: opening a GPU takes a second. It is begun
 * anew behind a crash, and for each problem that runs on the processor. Families, and what options point to, must exist
 * when the first problem is run, and stay. Begins as zeros. */
typedef struct bz_worker {
    pid_t child;            /* 0: there is none */
    int orders, records;    /* pipes to it and from it */
    struct bz_blame *blame; /* shared with it */
} bz_worker;
int bz_worker_run(bz_worker *k, const bz_family *families, int n, const bz_run_options *options, bz_error *err);
void bz_worker_close(bz_worker *k);

/* Seconds that a call of the backend takes which has nothing to do; NaN where that cannot be measured.
 * Wall clock: on a device that is what starting a call costs the program when calls follow each other. */
double bz_launch_cost(const char *backend, const bz_run_options *options);

/* Appends the record as one JSON line, with the new-line. `system` (may be NULL) is "slug@stack". */
void bz_outcome_json(const bz_outcome *record, const bz_run_setting *setting, const char *system, bz_buf *out);

/* ---- the machine ---------------------------------------------------------------------------- */

enum { BZ_MAX_CACHES = 4, BZ_MAX_RATES = 8 };

typedef struct bz_rate {
    char what[16]; /* a data type; or a backend */
    double value;
} bz_rate;

typedef struct bz_machine {
    char slug[64], stack[96]; /* "epyc-9xx4", "onednn2.6.3+openblas0.3.21" */
    char vendor[16], model_name[64];
    int family, model, stepping;
    bool virtual_machine;
    char hypervisor[16];
    int packages, cores, threads, numa_nodes;
    int n_caches;
    struct {
        int level, count;
        int64_t bytes;
    } cache[BZ_MAX_CACHES];
    char isa[256];  /* instruction sets as oneDNN sees them, then what the CPU says of those that matter */
    int64_t memory; /* bytes */
    char kernel[96];
    char versions[256]; /* "oneDNN 2.6.3, OpenBLAS 0.3.21, hwloc 2.9.0, Google Benchmark" */
    char counters[160]; /* "ok", or why there are none */
    /* measured, where asked for */
    int measured_threads; /* 0: not measured */
    bool busy;            /* others used the machine meanwhile: it can do more than was measured */
    double yardstick;     /* seconds of a fixed piece of work, the best seen */
    int n_flops, n_launch, n_reorder, n_convert;
    bz_rate flops[BZ_MAX_RATES];   /* by data type */
    bz_rate launch[BZ_MAX_RATES];  /* by backend */
    bz_rate reorder[BZ_MAX_RATES]; /* by data type: elements per second, from row-major order to blocks of channels */
    bz_rate convert[BZ_MAX_RATES]; /* by data type: elements per second, from f32 or to it */
} bz_machine;

/* A device besides the processor that backends run on: a GPU. */
typedef struct bz_device {
    char slug[64], stack[96]; /* "h200", "cuda13.0+cudnn9.19.0" */
    char name[64], driver[32];
    int major, minor; /* compute capability */
    int multiprocessors;
    int64_t memory, l2;         /* bytes */
    double clock, memory_clock; /* Hz, the highest; 0 where unknown */
    int bus;                    /* bits */
    double bandwidth;           /* bytes per second, by the table of known devices or clock and bus; 0 where unknown */
    double copied;     /* bytes per second of a copy within the memory, both directions; 0 or NaN where not measured */
    double kernel_gap; /* seconds for which it stands still between two kernels; likewise */
    double event_pair; /* seconds between two events with nothing between them; NaN where not measured */
    char absent[600];  /* of its backends those whose libraries are missing, and why */
} bz_device;

/* The backend that tells what the device is: that of this name or, where its library is missing, another one's on the same
 * device. NULL with the reason where none is there. */
const struct bz_backend *bz_device_backend(const char *name, bz_error *err);

/* The device of a backend; it is looked at in a child process. -1 with a sentence where there is none,
 * or where the backend runs on the processor. */
int bz_device_find(const struct bz_backend *backend, bz_device *out, bz_error *err);
/* The same; a process that says nothing for `patience` seconds is ended. */
int bz_device_find_within(const struct bz_backend *backend, double patience, bz_device *out, bz_error *err);
/* A process that holds the GPU's clock at so many Hz until bz_device_hold_end, or until this process and all that it started have
 * ended, in whatever way. -1 with a sentence where it may not. */
typedef struct bz_device_hold {
    pid_t child;
    int pipe;
} bz_device_hold;
int bz_device_hold_clock(double hz, bz_device_hold *out, bz_error *err);
void bz_device_hold_end(bz_device_hold *hold);

void bz_device_json(const bz_device *d, bz_buf *out);
void bz_device_print(const bz_device *d, bz_buf *out);

/* What this machine is. Runs no library's parallel code, so bz_run may follow. */
void bz_machine_identify(bz_machine *s);

/* Measures peak rates and the cost of an empty call, a few seconds in child processes. Of the options it takes
 * threads and what is known of the load. */
int bz_machine_measure(bz_machine *s, const bz_run_options *options, bz_error *err);

/* Measures reading and copying, from the caches, and copying from memory, by size: `options->emit` gets the records. Meanwhile
 * the setting in the options is that of the record. */
int bz_machine_transfers(const bz_machine *s, bz_run_options *options, bz_error *err);

/* {"v":1,"record":"system",…} on one line. */
void bz_machine_json(const bz_machine *s, bz_buf *out);

/* For people: aligned lines. */
void bz_machine_print(const bz_machine *s, bz_buf *out);

/* The slug for a processor: of its brand string where that names a product, else of the table of
 * families (a virtual machine often shows no more), else of the numbers. */
void bz_machine_slug(const char *vendor, const char *brand, int family, int model, int stepping, char out[64]);

/* ---- main ----------------------------------------------------------------------------------- */

/* What every generated program does: --help tells. Returns an exit status (bz_code). */
int bz_runtime_main(int argc, char **argv, const bz_benchmark *const *benchmarks);

#endif
