/* cuda: what the backends on NVIDIA GPUs share. Private to runtime/cuda/ and the backends over it.
 *
 *   device.c    a device made ready, memory, errors
 *   clock.c     device time of calls: events, a queue held back, a flushed cache
 *   operands.c  operands in a data type and layout, to the device and back
 *   run.c       what a prepared variant does, whatever library its calls are of
 *   nvml.c      clocks, the driver's version, throttling
 *   identify.c  what the device is
 *   cupti.c     which kernels a call runs
 *   counters.c  what a call makes the device count
 *   replay.c    what a replay needs of the device: streams that backends share, their order, graphs
 *
 * All of it runs in the child process of a benchmark, which has one device, one stream and one problem; or in a replay,
 * which has streams that all its calls share. */
#ifndef BZ_CUDA_H
#define BZ_CUDA_H

#include "runtime/backend.h"

#include <cuda_runtime_api.h>

typedef struct bz_nvml bz_nvml;

typedef struct bz_cuda {
    int device;
    cudaStream_t stream;
    cudaEvent_t from[16], to[16];
    bool cold;
    /* The kernel that holds the queue back until all of a batch is in it; NULL where it cannot be had. */
    cudaLibrary_t library;
    cudaKernel_t hold, empty; /* `empty` does nothing */
    volatile unsigned *word;  /* host memory that the device sees: [0] go, [1] it gave up waiting */
    void *word_on_device;
    void *flush; /* twice the L2 cache */
    size_t flush_size;
    void *workspace;                                /* variants run one after the other: they share it */
    size_t workspace_size, workspace_limit, memory; /* memory: all of the device's, whoever holds it */
    bool limited;                                   /* by the setting; else by what was free when it was opened */
    void *host;                                     /* where results are looked at, which the device reaches */
    size_t host_size;
    bz_nvml *nvml;
    bool watched, throttled; /* NVML was asked in this measurement; and what it said */
    double sm_clock;         /* Hz */
    bool borrowed;           /* all of it is a replay's, but for the workspace */
} bz_cuda;

/* ---- device.c ------------------------------------------------------------------------------- */

/* The first device that CUDA_VISIBLE_DEVICES leaves, made ready. -1 with one sentence where there is none. */
int bz_cuda_open(bz_cuda *c, const bz_run_setting *setting, bz_error *err);
void bz_cuda_close(bz_cuda *c);

/* Fills err: BZ_FAILED, "what: reason". An error that leaves the device unusable for the whole process
 * ends the process instead: the parent then knows whom to blame, and goes on behind it. */
int bz_cuda_failed(bz_error *err, const char *what, cudaError_t status);

/* Waits for what a call that failed has left behind: else the next variant would report it as its own. */
void bz_cuda_settle(bz_cuda *c);

/* Memory of the device. -1 where there is not enough: nothing else is lost then. */
int bz_cuda_alloc(size_t size, void **out, bz_error *err);
void bz_cuda_free(void *memory);

/* Makes the shared workspace at least this large. -1 where it goes beyond the limit or the memory. */
int bz_cuda_workspace(bz_cuda *c, size_t size, bz_error *err);

/* From the host's memory to the device's. */
int bz_cuda_put(void *to, const void *from, size_t size, const char *what, bz_error *err);
int bz_cuda_wait(bz_cuda *c);

/* Functions of a library that is loaded where it is installed. Returns the first name that it lacks, or NULL. */
typedef struct bz_cuda_symbol {
    const char *name;
    void *to; /* a pointer to the function */
} bz_cuda_symbol;

const char *bz_cuda_symbols(void *library, const bz_cuda_symbol *symbols, size_t n);

/* Blocks of numbers along a product's depth that have a scale, a byte each: how many numbers, and the byte that is 1. Scales of
 * 8-bit floats are exponents (MXFP8), those of 4-bit floats numbers in e4m3 (NVFP4). */
typedef struct bz_cuda_blocks {
    int length, one;
} bz_cuda_blocks;

static inline bz_cuda_blocks bz_cuda_blocks_of(bz_dtype t)
{
    return t == BZ_F4E2M1 ? (bz_cuda_blocks){16, 0x38} : (bz_cuda_blocks){32, 127};
}

/* ---- clock.c -------------------------------------------------------------------------------- */

/* Starts one call on the stream; 0, or -1 where the library refuses. */
typedef int bz_cuda_call(void *context);

/* Compiles the kernel that holds the queue; without it launches are timed as they come. */
void bz_cuda_clock_open(bz_cuda *c);
void bz_cuda_clock_close(bz_cuda *c);

/* How one variant's calls are queued up; begins as zeros. */
typedef struct bz_cuda_pace {
    int64_t batch; /* calls at once; 0: as many as may be */
    bool unheld;   /* a call waits for the device itself: the queue cannot be held back */
} bz_cuda_pace;

/* Device time of n calls.
 *
 * Hot: batches of calls between two events. The queue is held back until the batch is in it, so the device
 * never waits for the host. Nothing is subtracted.
 * Cold: the L2 cache is overwritten before each call, and each call has its own pair of events: the
 * flush is not in the time, what a pair costs (bz_cuda_event_pair) is. */
int bz_cuda_measure(bz_cuda *c, bz_cuda_pace *pace, bz_cuda_call *call, void *context, int64_t n, double *seconds);

/* What bz_cuda_measure measures by: "device", or "event-pair" where each call has its own. */
const char *bz_cuda_timing(const bz_cuda *c, const bz_cuda_pace *pace);

/* Holds the queue back, if that can be had, until it is let go; and whether the device gave up waiting for that. */
cudaError_t bz_cuda_hold(bz_cuda *c);
void bz_cuda_let_go(bz_cuda *c);
bool bz_cuda_gave_up(const bz_cuda *c);

/* Whether the device was throttled in the last measurement, and its clock (Hz; left as it is where NVML does not say). */
bool bz_cuda_state(void *session, double *hz); /* of a session that begins with a bz_cuda */

/* These three are of a device that is not cold. Seconds between two events of a held queue with nothing between them; NaN where that
 * fails. */
double bz_cuda_event_pair(bz_cuda *c);

/* Seconds that the device stands still between two kernels that wait in its queue: the time from one empty kernel to the next
 * without the time that CUPTI sees in it; NaN where one of them cannot be had. */
double bz_cuda_gap(bz_cuda *c);

/* Bytes per second of a copy within the device's memory, read and written bytes; NaN where there is no room for one
 * that no cache holds. */
double bz_cuda_copy_bandwidth(bz_cuda *c);

/* ---- operands.c ----------------------------------------------------------------------------- */

/* How an operand lies in the device's memory: element (i0, i1, …) of the operand, in the dimensions of
 * the problem, lies at offset + Σ i·stride. What no element covers holds `fill`. */
typedef struct bz_cuda_layout {
    bz_dtype dtype;
    int64_t stride[BZ_PROBLEM_RANK];
    int64_t offset, elements;
    float fill;
    float factor; /* the values are multiplied by it; 0 stands for 1 */
    float root;   /* above 0: what lies there of a value is 1 / √(value + root) */
    /* Above 0: the operand's dimension `split` lies in parts of so many, whose elements are split_stride apart; its stride is from one
     * part to the next. */
    int64_t split_size, split_stride;
    int split;
} bz_cuda_layout;

typedef struct bz_cuda_operand {
    int operand;
    bz_cuda_layout layout;
    void *data;
} bz_cuda_operand;

typedef struct bz_cuda_operands {
    const bz_job *job;
    bz_cuda_operand *item;
    int n;
} bz_cuda_operands;

/* Row-major, in the operand's data type. */
bz_cuda_layout bz_cuda_plain(const bz_operand *o);
/* Dimension 1 innermost. */
bz_cuda_layout bz_cuda_channels_last(const bz_operand *o);

/* The operand in this layout; variants that want the same share it. */
int bz_cuda_operand_get(bz_cuda_operands *set, int operand, const bz_cuda_layout *layout, void **data, bz_error *err);
/* Overwrites a result with what no variant leaves behind; brings it back. */
int bz_cuda_operand_poison(bz_cuda *c, const bz_cuda_layout *layout, void *data);
/* The same of a part that lies as the layout says, in a result that holds `fill` around it. */
int bz_cuda_operand_poison_part(const bz_operand *part, const bz_cuda_layout *layout, void *data);
int bz_cuda_operand_read(bz_cuda *c, const bz_operand *o, const bz_cuda_layout *layout, const void *data, float *values,
                         bz_error *err);
/* The backend's `probe`. */
int bz_cuda_operand_probe(bz_cuda *c, const bz_operand *o, const bz_cuda_layout *layout, const void *data,
                          const int64_t *element, int n, float *values, bz_error *err);
void bz_cuda_operands_free(bz_cuda_operands *set);

/* ---- run.c ---------------------------------------------------------------------------------- */

/* A prepared variant: what v->state points to. It is the first member of a backend's own, and the context of its call. */
typedef struct bz_cuda_run {
    bz_cuda *cuda;
    bz_cuda_call *call;
    const bz_operand *result; /* and how and where it lies, in the device's memory */
    const bz_cuda_layout *layout;
    void *const *data;
    bz_cuda_pace pace;
} bz_cuda_run;

/* Ends preparing: waits for the first call. */
int bz_cuda_run_ready(bz_variant *v, bz_cuda_run *r, bz_error *err);

/* As bz_backend has them. */
int bz_cuda_run_execute(bz_variant *v, int copy);
int bz_cuda_run_wait(bz_variant *v);
int bz_cuda_run_measure(bz_variant *v, int64_t n, int first_copy, double *seconds);
int bz_cuda_run_count(bz_variant *v, const char *list, bz_counted *out, bz_error *err);
int bz_cuda_run_poison(bz_variant *v);
int bz_cuda_run_read(bz_variant *v, float *values, bz_error *err);
int bz_cuda_run_probe(bz_variant *v, const int64_t *element, int n, float *values, bz_error *err);
void bz_cuda_run_release(bz_variant *v);

/* ---- nvml.c --------------------------------------------------------------------------------- */

/* NVML is loaded where it is installed; NULL where not, and all of these then know nothing. It stays open until
 * the process ends. */
bz_nvml *bz_nvml_open(int device);
bool bz_nvml_throttled(const bz_nvml *n);
double bz_nvml_clock(const bz_nvml *n);                  /* of the multiprocessors now, Hz; 0 where it does not say */
void bz_nvml_describe(const bz_nvml *n, bz_device *out); /* clocks, driver */
int bz_nvml_lock(const bz_nvml *n, double hz, bz_error *err); /* holds the clock; 0: lets it go, whoever held it */

/* ---- identify.c ----------------------------------------------------------------------------- */

/* The whole of it. Of the stack this says the first part ("cuda13.0"); bz_device_find adds the backends' libraries. */
int bz_cuda_identify(bz_device *out, bz_error *err);
void bz_cuda_rates(bz_device *out);         /* what is measured of it */
int bz_cuda_lock(double hz, bz_error *err); /* no context is made: who holds the clock does nothing else */

/* ---- cupti.c -------------------------------------------------------------------------------- */

/* Runs a prepared variant a fixed number of times under CUPTI's eyes. -1 with a sentence that says what to do where
 * CUPTI is missing or not permitted. What is not traced is not touched: variants can be measured after it. */
int bz_cuda_trace(bz_variant *v, bz_trace *out, bz_error *err);
/* The same of a function, whose context is the device. */
int bz_cuda_trace_call(bz_cuda *c, bz_cuda_call *call, bz_trace *out, bz_error *err);

/* Functions of libcupti, which is loaded when it is asked for; -1 where there is none, or it lacks one. */
int bz_cupti_find(const bz_cuda_symbol *symbols, size_t n, bz_error *err);

/* The i-th place where libcupti may be: on the loader's path; beside the runtime, whose folder that is (with the slash; "":
 * nobody knows), as in the toolkit and in Python's wheels; where CUDA_HOME says (may be NULL); the usual place. "" where
 * there is none; false behind the last. */
bool bz_cupti_place(size_t i, const char *runtime, const char *home, char *out, size_t size);

/* Fills err with what to do about a status of CUPTI's, or with "what: CUPTI's text". Returns -1. */
int bz_cupti_failed(bz_error *err, const char *what, int status);

/* ---- counters.c ----------------------------------------------------------------------------- */

/* Counts what the list asks for (runtime/metrics.h), in a fixed number of calls of a prepared variant. -1 like bz_cuda_trace. */
int bz_cuda_count(bz_cuda *cuda, bz_variant *v, const char *list, bz_counted *out, bz_error *err);

/* ---- replay.c ------------------------------------------------------------------------------- */

/* A stream of a replay. Handles of libraries on it are made by whoever wants them first; `library` is any address that
 * tells one from the other. */
enum { BZ_CUDA_SHARED = 4 };
typedef struct bz_cuda_stream {
    bz_cuda cuda;
    struct {
        const void *library;
        void *handle;
        void (*close)(void *handle);
    } shared[BZ_CUDA_SHARED];
    int n_shared;
} bz_cuda_stream;

void *bz_cuda_shared(const bz_cuda_stream *s, const void *library); /* NULL: there is none yet */
void bz_cuda_share(bz_cuda_stream *s, const void *library, void *handle, void (*close)(void *handle));

/* What a session runs on: the stream of a replay that its job names, or a device made ready for it alone. */
int bz_cuda_open_for(bz_cuda *c, const bz_job *job, bz_error *err);

extern const bz_device_ops bz_cuda_ops;

#endif
