/* profile: what really happened in one run of a user's program.
 *
 * A trace holds everything that one or more files tell about a run: iterations, framework
 * operators, library calls with their parameters, runtime API calls, kernels, copies,
 * synchronizations, ranges. It is columnar: per kind of event one array per property, so that tens
 * of millions of events fit into memory and a loop touches only what it needs.
 *
 *     bz_trace *t = bz_trace_new();
 *     if (bz_profile_read(t, path, err) || bz_trace_finish(t, NULL, err))
 *         goto out;
 *     const bz_events *k = &t->event[BZ_EVENT_KERNEL];
 *     for (size_t i = 0; i < k->n; i++)
 *         puts(bz_string(t, k->name[i]));
 *   out:
 *     bz_trace_free(t);
 *
 * A trace is used by one thread at a time. The members of the structs below may be read by
 * everyone and are written only by readers in profile/ (and by tests that build a trace by hand).
 */
#ifndef BZ_PROFILE_H
#define BZ_PROFILE_H

#include "base/base.h"
#include "profile/kernel.h"
#include "runtime/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- events ------------------------------------------------------------------------------- */

typedef enum {
    BZ_EVENT_RANGE,    /* what a person named: NVTX, record_function, marks (start = end) */
    BZ_EVENT_OP,       /* framework operator: aten::conv2d, an ONNX node */
    BZ_EVENT_CALL,     /* library call: cuDNN, cuBLAS, oneDNN, BLAS */
    BZ_EVENT_API,      /* CUDA runtime or driver call */
    BZ_EVENT_KERNEL,   /* on the device */
    BZ_EVENT_COPY,     /* on the device */
    BZ_EVENT_MEMSET,   /* on the device */
    BZ_EVENT_SYNC,     /* a wait that the device layer reports */
    BZ_EVENT_OVERHEAD, /* time the profiler itself took */
} bz_event_kind;
enum { BZ_EVENT_KINDS = BZ_EVENT_OVERHEAD + 1 };

typedef enum {
    BZ_LIBRARY_OTHER,
    BZ_LIBRARY_CUDNN,
    BZ_LIBRARY_CUBLAS,
    BZ_LIBRARY_CUBLASLT,
    BZ_LIBRARY_ONEDNN,
    BZ_LIBRARY_BLAS
} bz_library;
enum { BZ_LIBRARIES = BZ_LIBRARY_BLAS + 1 };
const char *bz_library_name(bz_library library); /* "cudnn" */
bool bz_library_on_device(bz_library library);   /* its calls return before the work is done */

/* bits of bz_events.flags of a call */
enum {
    BZ_CALL_EXECUTES = 1, /* does work, as opposed to creating, setting, asking */
    BZ_CALL_LOGGED = 2,   /* detail comes from the library's own log */
    BZ_CALL_INFERRED = 4, /* variant was inferred from the kernels, not logged */
    BZ_CALL_FAILED = 8,   /* the library reported an error */
    BZ_CALL_UNTIMED = 16, /* the source knows when, but not how long: end = start */
    BZ_CALL_NESTED = 32,  /* made by another library call */
};

#define BZ_NONE UINT32_MAX /* no such event, lane, iteration */

/* How a kernel was launched: 0, where that is not told. */
typedef struct bz_launched {
    uint32_t grid[3], block[3], registers, shared_static, shared_dynamic;
} bz_launched;

/* The events of one kind, a column per property. A column that the kind does not have is NULL.
 * Strings are numbers for bz_string; links are indexes into the events of the named kind, or
 * BZ_NONE. After bz_trace_finish the rows are sorted by start and the links are set. */
typedef struct bz_events {
    size_t n, cap;
    int64_t *start, *end; /* nanoseconds on the clock of the trace; all kinds */
    uint32_t *name;       /* string; kernels: the full name; all kinds */
    uint32_t *lane;       /* index into bz_trace.lane: the thread or stream; all kinds */

    uint32_t *correlation; /* op, api, device kinds: what ties work to the call that asked for it; 0: none */
    uint32_t *cause;       /* device kinds: the api event that launched it */
    uint32_t *call;        /* call: the call around it; api, device kinds: the call it was made for */
    uint32_t *op;          /* op, call, api, device kinds: the innermost operator around it */
    uint32_t *flags;       /* call: BZ_CALL_… */
    uint32_t *library;     /* call: bz_library */
    uint32_t *detail; /* call: its parameters, "xDesc.dimA=[1,3,224,224] …" (addresses left out); op: its arguments */
    uint32_t *operands;   /* call: its addresses, "xData=0x7f… …" */
    uint32_t *variant;    /* call: algorithm or implementation, as the library spells it; 0 unknown */
    uint32_t *stack;      /* call, api: back-trace for bz_stack; 0 none */
    uint32_t *short_name; /* kernel: name without parameters and templates; set by bz_trace_finish but in a summary */
    uint32_t *launched;   /* kernel: for bz_kernel_launched */
    uint32_t *
        occupancy; /* kernel: 1 + the share of a multiprocessor's warps that it reached, in percent, as its profiler estimates; 0: not told */
    uint32_t *graph;  /* device kinds: CUDA graph it ran in; 0 none */
    int64_t *bytes;   /* copy, memset; range: memory that a mark says was allocated, below 0 freed */
    int64_t *address; /* range: of that memory; 0: not told */
    uint32_t *waited_record,
        *waited_stream; /* sync, by an event of a stream: correlation of the call that recorded that event,
                                                and 1 + the stream; 0: not told */
    uint32_t *value;    /* copy: direction, sync: what for, api: return value, overhead: type (CUPTI's numbers) */
} bz_events;

/* A thread of the host or a stream of a device. */
typedef struct bz_lane {
    bool device;
    uint16_t kinds;          /* bits: it was given events of a bz_event_kind */
    uint32_t source;         /* index into bz_trace.source */
    int64_t process, thread; /* ids of the operating system; device lanes: process that owns the context, or 0 */
    int64_t device_id, context, stream;
    uint32_t name; /* string, 0 unknown */
} bz_lane;

/* "stream 7", or "all streams": CUPTI's number for a wait for the whole device is the largest. */
typedef char bz_stream_text[32];
const char *bz_stream_name(const bz_lane *l, bz_stream_text out);

/* A file that was read. */
typedef struct bz_source {
    uint32_t path, format; /* strings; format: "nsys", "cudnn log" … */
    bool log;              /* a library's log: order and parameters, but no timeline */
    bool truncated;
    int64_t events;
} bz_source;

typedef enum { BZ_ITERATION_MARKED, BZ_ITERATION_RANGE, BZ_ITERATION_DETECTED } bz_iteration_origin;

/* Language models: a prompt is read at once, then each step makes one token for each sequence. */
typedef enum { BZ_STEP_WHOLE, BZ_STEP_PREFILL, BZ_STEP_DECODE } bz_step_phase;
const char *bz_step_phase_name(bz_step_phase phase); /* "prefill"; NULL of none */

/* One iteration of the program. Host events belong to it when they start within [start, end);
 * device events when the call that launched them does. */
typedef struct bz_iteration {
    int64_t start, end; /* end: last thing that belongs to it, host or device */
    bool warm_up;       /* did more than its successors, or took much longer */
    bz_step_phase phase;
    uint32_t
        tokens; /* that it looked up, of all sequences together, by the shapes of operators or the mark's name; 0: not recorded */
} bz_iteration;

/* One of the runs of bz_profile_levels: the same program, recorded so deeply. Times in nanoseconds. */
typedef struct bz_level_iteration {
    int64_t latency, library; /* as in bz_iteration_stats; library 0: no call was timed */
    bool warm_up;
} bz_level_iteration;
typedef struct bz_level {
    uint32_t name; /* string: "program alone", "with calls", "with everything" */
    int64_t wall;  /* from the program's start to its end */
    bz_level_iteration *iteration;
    uint32_t n_iterations; /* that were found in this run */
} bz_level;

/* What the trace does not cover, in sentences; and what an analysis asks for has a name. */
typedef enum { BZ_COVERAGE_NOTE, BZ_COVERAGE_MISSING, BZ_COVERAGE_BROKEN } bz_coverage_level;
typedef enum {
    BZ_LACKS_OTHER,           /* only for people: no analysis asks for it */
    BZ_LACKS_ITERATIONS_REST, /* work behind the last of so many iterations as were asked for */
    BZ_LACKS_ITERATIONS_OPEN, /* the iterations may be parts of iterations, or several of them */
    BZ_LACKS_ITERATIONS,      /* what else is told of how the iterations were found */
    BZ_LACKS_QUIET,           /* others kept the program from running */
    BZ_LACKS_UNDISTURBED,     /* some stretches took far longer than in other iterations: that time was taken out */
    BZ_LACKS_STAMPS,          /* a log without times: its calls have lengths, the time between them is unknown */
    BZ_LACKS_END,             /* a file is cut off: the text has what was read of it */
    BZ_LACKS
} bz_lack;
typedef struct bz_coverage {
    bz_coverage_level level;
    bz_lack lack;
    uint32_t source; /* index, or BZ_NONE */
    uint32_t text;   /* string */
} bz_coverage;
const char *bz_coverage_level_name(bz_coverage_level level);
const char *bz_lack_name(bz_lack lack); /* "iterations_open"; NULL of BZ_LACKS_OTHER */
bz_lack bz_lack_of(const char *name);   /* BZ_LACKS_OTHER: none of these, or NULL */

typedef struct bz_fact {
    uint32_t key, value; /* strings: "program", "gpu", "cudnn version", "capture overhead" … */
} bz_fact;

typedef struct bz_trace {
    bz_arena arena;
    bool summary; /* set before reading: columns that bz_trace_print and bz_trace_json do not ask for may stay zero */
    bz_events event[BZ_EVENT_KINDS];
    bz_lane *lane;
    uint32_t n_lanes;
    bz_source *source;
    uint32_t n_sources;
    bz_iteration *iteration;
    uint32_t n_iterations;
    bz_iteration_origin origin;   /* where the iterations come from */
    bool by_updates;              /* steps of an optimizer tell that they are iterations of a training */
    bz_level *level;              /* the shallowest first; none where the program ran once */
    uint32_t n_levels, own_level; /* own: the run that the events and iterations here are of */
    bz_coverage *coverage;
    uint32_t n_coverage;
    bz_fact *fact;
    uint32_t n_facts;
    struct bz_trace_private *private;
} bz_trace;

bz_trace *bz_trace_new(void);
void bz_trace_free(bz_trace *t); /* NULL is fine */

/* ---- reading ------------------------------------------------------------------------------ */

/* Reads a file of any known format, told by its content, and adds it to the trace. Plain, gzip and
 * zstd. Memory follows the number of events, not the size of the file. A file that ends early, lacks
 * tables or lies about its sizes is read as far as it makes sense and the rest is told in `coverage`;
 * -1 only where nothing could be read. Links are not set yet. A second thread may help, and has ended when
 * this returns. */
int bz_profile_read(bz_trace *t, const char *path, bz_error *err);

typedef struct bz_finish_options {
    /* name or pattern of the ranges that are iterations, or how many there are; NULL: known marks, else found */
    const char *iterations;
    bool recorded; /* just now, and to be kept: that it lacks these iterations is told in `coverage`, else an error */
} bz_finish_options;

/* Fails where the iterations asked for are a number that none can be, such as -1 or 0.5. */
int bz_iterations_check(const char *wanted, bz_error *err);
/* Sorts, aligns logs with timelines, sets links, finds iterations. Once, after the last read. */
int bz_trace_finish(bz_trace *t, const bz_finish_options *options, bz_error *err);
/* Both, for files that are one recording; `iterations` as in the options. */
int bz_trace_read(bz_trace *t, const char *const *path, int n, const char *iterations, bz_error *err);
bool bz_trace_is_truncated(const bz_trace *t); /* is a file of it cut off? */

/* So many iterations instead of those that were found in what repeats: those of a level that repeats so often, or as many neighbours of a
 * finer one as are needed. False, and nothing is changed, where there are none, or where somebody marked or measured iterations, or an optimizer's steps
 * tell them: a training may run its model several times for one of these. */
bool bz_trace_recount(bz_trace *t, uint32_t count);
/* The iterations are right, as what was asked for tells: whatever left that open is forgotten. */
void bz_trace_settle(bz_trace *t);

/* Takes time out of a processor's recording in which something else had the processor, by what most iterations that do the same took; its coverage
 * says how much (BZ_LACKS_UNDISTURBED). False: there is none, or too few iterations are alike to tell. */
bool bz_trace_leave_disturbed(bz_trace *t);
/* The coverage's first text of that; NULL. */
const char *bz_trace_lacks(const bz_trace *t, bz_lack lack);
/* Share of the iterations' time that the system took to hand out memory anew, by pages counted and by what one takes on that machine;
 * 0: not recorded, or none. *pages: so many in a second. */
double bz_trace_anew(const bz_trace *t, double *pages);

/* The trace as one SQLite file: tables and columns as Nsight Systems names them, BENANZA_* for the
 * rest. bz_profile_read reads it back; what it read is equal, column by column. `path` is replaced. */
int bz_trace_save(const bz_trace *t, const char *path, bz_error *err);

/* ---- capturing ---------------------------------------------------------------------------- */

typedef struct bz_capture_options {
    bool backtrace;         /* a back-trace per call, native and Python: costs some µs each */
    bool marks_only;        /* only the program's own marks: next to no overhead */
    bool host_only;         /* no CUPTI: library calls and marks */
    bool memory;            /* aligned memory that the program takes and gives back */
    bool logs;              /* switch the logs of cuDNN and cuBLAS on */
    bool nsys;              /* run the program under Nsight Systems */
    int64_t limit;          /* bytes of recording per process */
    const char *iterations; /* for bz_profile_levels, which finishes its traces: as in bz_finish_options */
} bz_capture_options;

/* Runs a program (argv ends with NULL) with our library in front of oneDNN and BLAS, and another for CUDA and NVTX to load
 * where it was built, waits, and reads what it did. All
 * processes that it starts are recorded. -1 where the program cannot be started or left no recording. A program that
 * fails or crashes is no error: `exit_status` has what a shell would tell, the coverage says what is missing. */
int bz_profile_capture(bz_trace *t, char *const argv[], const bz_capture_options *options, int *exit_status,
                       bz_error *err);

/* Runs the program three times: with everything (the device's work, back-traces), with library calls, with nothing but its
 * own marks. What is recorded slows down what lies above it, so each figure is of the shallowest run that tells it:
 * bz_trace_level. `t`, empty before, becomes the trace of the run with everything where that recorded a device, else of the
 * run with calls, with the other's back-traces; and it comes finished. */
int bz_profile_levels(bz_trace *t, char *const argv[], const bz_capture_options *options, int *exit_status,
                      bz_error *err);

/* ---- asking ------------------------------------------------------------------------------- */

const char *bz_string(const bz_trace *t, uint32_t id); /* 0 is "" */
uint32_t bz_strings(const bz_trace *t);                /* how many: ids are below */

/* Frames of a back-trace, innermost first: strings. */
int bz_stack(const bz_trace *t, uint32_t stack, const uint32_t **frames);

uint32_t bz_trace_launched(bz_trace *t, const bz_launched *launched); /* its number, for bz_events.launched */
const bz_launched *bz_kernel_launched(const bz_trace *t, size_t kernel);
/* The name that people see, of a kernel of a finished trace the short one: a string. */
uint32_t bz_event_shown(const bz_trace *t, bz_event_kind kind, size_t i);

const char *bz_event_kind_name(bz_event_kind kind); /* "kernel" */
bool bz_event_on_device(bz_event_kind kind);        /* kernel, copy, memset */
/* Does some kernel, call or operator take time? There are logs that tell when calls began, and nothing else. */
bool bz_trace_has_lengths(const bz_trace *t);

/* ---- what a library call computes --------------------------------------------------------- */

/* A tensor of a call, as far as the library told. */
typedef struct bz_call_tensor {
    const char *type; /* the parameter that has its type: "wei", "xDesc.dataType"; NULL: the call has no such tensor */
    const char *format; /* type and layout as oneDNN spells them, "f32::blocked:Acdb16a:f0": equal text, equal layout */
    bz_dtype dtype;     /* BZ_UNDEFINED: not known */
    bool blocked;       /* some dimension lies in blocks: no framework keeps weights so by itself */
    bool packed;        /* several channels, the last dimension at stride 1: NCHW */
} bz_call_tensor;

typedef enum { BZ_FOR_UNKNOWN, BZ_FOR_INFERENCE, BZ_FOR_TRAINING } bz_call_purpose;

typedef struct bz_call {
    const bz_problem *problem; /* kind, operands, parameters, type; NULL: none that is known, or not recorded */
    const char *text;          /* the problem's, in canonical form; NULL */
    bz_dtype dtype;            /* that it computes with; BZ_UNDEFINED */
    int64_t batch;             /* 0: not told */
    int64_t elements;          /* that a reorder moves; -1 */
    bz_call_tensor x, w, y;    /* input, weights, result */
    const char *math;          /* math mode, as the library spells it; NULL */
    bz_call_purpose purpose;   /* that the library was told: it may choose another variant */
} bz_call;

/* Never NULL. Calls of one name with the same parameters are read once, and are one bz_call. It lives as long as the trace. */
const bz_call *bz_call_of(const bz_trace *t, size_t call);

/* A program may pad an input by itself and convolve what it padded: the convolution with that padding inside, which has the
 * same result. How much it is, or 0. */
int bz_call_unpad(const bz_problem *from, bz_problem *to);

/* ---- what an operator reads ---------------------------------------------------------------- */

enum { BZ_SEEN_RANK = 8 };
typedef struct bz_operand_seen {
    int argument;   /* of the operator; those of a list of tensors have the same */
    bz_dtype dtype; /* BZ_UNDEFINED: not told */
    int rank;       /* 0: a scalar, or no tensor; -1: unknown */
    int64_t dim[BZ_SEEN_RANK];
} bz_operand_seen;

typedef struct bz_operator {
    const bz_operand_seen *in, *out; /* out: none where only inputs are told */
    int n_in, n_out, arguments;
    const char *values; /* of arguments that are no tensors, as text: for bz_operator_ints; NULL */
} bz_operator;

/* Never NULL; without operands where no shapes were recorded. Equal arguments are read once; lives as long as the trace. */
const bz_operator *bz_operator_of(const bz_trace *t, size_t op);
/* The integers of an argument, "[2, 2]" or "1" or "True"; how many. 0: not told, or too many, or no integers. */
int bz_operator_ints(const bz_operator *o, int argument, int64_t *v, int most);

/* ---- names -------------------------------------------------------------------------------- */

/* The one dialect of all tables of names: "x" stands anywhere in the name, "^x" at its start, "x$" at its end, "^x$" is all
 * of it, and "x*y" is x and somewhere behind it y. Blanks are letters. */
bool bz_name_matches(const char *pattern, const char *name);
bool bz_name_matches_any(const char *patterns, const char *name); /* of several, with blanks between */

/* What `ask` says of names that stay where they are, as those of a trace do: a million events have a hundred names, and each is asked of
 * once, or a few times where two share a place. */
typedef struct bz_name_answers {
    int (*ask)(const char *name);
    struct {
        const char *name; /* NULL: none yet */
        int answer;
    } known[256];
} bz_name_answers;
int bz_name_answer(bz_name_answers *a, const char *name);

/* bz_kernel_read of a kernel's full name. Each name is read once, and what it tells lives as long as the trace. `name` is a string. */
const bz_kernel *bz_kernel_of(const bz_trace *t, size_t kernel);
const bz_kernel *bz_kernel_named(const bz_trace *t, uint32_t name);

/* Where the latency of an iteration begins, which ends with it: with its first call; where its work queued behind that of the
 * iteration before, when that was done. Only iterations that were found overlap so: others are as long as their marks. */
int64_t bz_iteration_begin(const bz_trace *t, uint32_t iteration);
int64_t bz_iteration_latency(const bz_trace *t, uint32_t iteration); /* from there to its end */

/* How long before its work the host launched it, the median, where iterations are the device's own steps by when it worked: much of that work has no launch on
 * record, and the host is elsewhere by then. 0: iterations are what the host asked for. */
int64_t bz_trace_ahead(const bz_trace *t);

/* Iteration that an event belongs to, or BZ_NONE. */
uint32_t bz_event_iteration(const bz_trace *t, bz_event_kind kind, size_t i);

/* The phases of a language model. Seconds are medians. False where no phase was told. */
typedef struct bz_phases {
    uint32_t prompts, steps; /* iterations of each phase */
    uint32_t prompt_tokens;  /* of the longest prompt; 0: not recorded */
    uint32_t batch, fewest;  /* sequences of a step, at most and at least; 0: not recorded */
    double prefill, decode;
    double rate; /* tokens per second of decode: of the batch where that is known, else of each sequence */
} bz_phases;
bool bz_trace_phases(const bz_trace *t, bz_phases *out);
void bz_phases_print(const bz_phases *p, bz_buf *out); /* a sentence without its end */

/* Steady iterations are those behind the warm-up, and no prompts where a model makes tokens: where there are iterations, one of a finished trace is. The typical one
 * stands for all: of the steady ones that of median latency, of an even number the faster one of the two. BZ_NONE is no
 * iteration, so it is not steady, and it is the typical one where there are none. */
bool bz_iteration_is_steady(const bz_trace *t, uint32_t iteration);
bool bz_event_is_steady(const bz_trace *t, bz_event_kind kind, size_t i); /* it belongs to one */
bool bz_event_counts(const bz_trace *t, bz_event_kind kind, size_t i);    /* likewise; where none were found, all do */
uint32_t bz_steady_iterations(const bz_trace *t);                         /* how many */
uint32_t bz_typical_iteration(const bz_trace *t);

/* Does a launch load its kernel's code, as the first one of a kernel does? By ns of its call, of half of all launches, and from its end to its kernel's
 * start. A recording that has one iteration alone tells by that of no other one. */
bool bz_launch_loads(int64_t call, int64_t usual, int64_t queued);

/* Library calls as work: those that do something and that no other library call made. The others belong to the outermost
 * call around them. Its time is that of its kernels, copies and fills; where the trace has no kernels, that of the call. */
bool bz_call_works(const bz_trace *t, size_t call);
size_t bz_call_outermost(const bz_trace *t, size_t call);
double *bz_call_seconds(const bz_trace *t, bz_arena *arena); /* [calls]; 0 for a call that another one made */

/* ---- ranks ---------------------------------------------------------------------------------- */

typedef struct bz_rank_profile {
    const char *name;
    const bz_trace *trace; /* finished */
} bz_rank_profile;
/* Do all of them communicate, so that they are ranks of one program rather than programs? */
bool bz_are_ranks(const bz_rank_profile *profile, int n);
/* Each rank, and each device of each, by itself: step, busy, idle, compute, communication, how much of that compute overlaps, and
 * how long it waits in communication for others. Empty where there are less than two. Lives in the arena. */
bz_sheet *bz_ranks_sheet(const bz_rank_profile *profile, int n, bz_arena *arena);

/* ---- statistics --------------------------------------------------------------------------- */

/* Times in nanoseconds. */
typedef struct bz_iteration_stats {
    int64_t latency;     /* end - bz_iteration_begin */
    int64_t device_busy; /* of that, the time in which some device worked, also for other iterations: never more */
    int64_t device_begin, device_end; /* of its own kernels, copies and memsets; INT64_MIN: it has none */
    int64_t kernel_time;              /* sum of kernels: more than busy where streams overlap */
    int64_t copy_time;
    int64_t library;   /* union of library calls within the latency (host time; on a CPU that is the work itself) */
    int64_t operators; /* likewise of framework operators, where they were recorded */
    int64_t launch;    /* sum of launch calls */
    int64_t sync;      /* sum of waiting calls */
    int64_t gap; /* latency less device_busy; without work of a device less library, without calls less operators */
    int64_t kernels, copies, calls, launches, syncs;
} bz_iteration_stats;
void bz_iteration_measure(const bz_trace *t, uint32_t iteration, bz_iteration_stats *s);

/* The run that a figure is taken from: the shallowest that tells it of a steady iteration, else the one whose events the
 * trace has. BZ_NONE where the program ran once. What else there is, is of the trace's own run. */
typedef enum { BZ_FIGURE_LATENCY, BZ_FIGURE_LIBRARY } bz_figure;
uint32_t bz_trace_level(const bz_trace *t, bz_figure figure);
/* The figure of the steady iterations in that run, else in the trace: nanoseconds, in the arena. Returns how many. */
size_t bz_trace_figures(const bz_trace *t, bz_figure figure, bz_arena *arena, double **values);
size_t bz_level_figures(const bz_level *l, bz_figure figure, bz_arena *arena, double **values); /* of that run */

/* All kernels of the run together, those of warm-up and set-up included, in nanoseconds. Divided by the number of iterations
 * it is what others publish as device time per iteration; it is more than what a steady iteration takes. */
int64_t bz_trace_kernel_time(const bz_trace *t);

typedef struct bz_quantiles {
    int64_t n;
    double min, p50, p90, p99, max, mean;
} bz_quantiles;
bz_quantiles bz_quantiles_of(double *values, size_t n); /* sorts values */

/* "host to device", by the number that CUDA's tools give a copy's direction. */
const char *bz_copy_direction(uint32_t kind);

/* [n_lanes] whether a lane has events of the kinds from `first` to `last`; to be freed. */
bool *bz_trace_lanes(const bz_trace *t, bz_event_kind first, bz_event_kind last);

/* How many devices have kernels, copies or fills; of more than 64 the first 64 are told apart. */
int bz_trace_devices(const bz_trace *t);

/* The quantities of an iteration, in the order of the tables. */
typedef struct bz_quantity {
    const char *name, *json;
    size_t offset; /* in bz_iteration_stats */
    bool count;    /* else nanoseconds */
    int of;        /* bz_event_kind: told where there are such events; BZ_EVENT_KINDS: always */
} bz_quantity;
enum { BZ_QUANTITIES = 14 };
extern const bz_quantity bz_quantities[BZ_QUANTITIES];
int64_t bz_quantity_of(const bz_iteration_stats *s, int q);
uint32_t bz_quantity_run(const bz_trace *t, int q); /* the run that it is of, as bz_trace_level */

typedef struct bz_summary {
    bz_iteration_stats *each;       /* [n_iterations] */
    bz_quantiles of[BZ_QUANTITIES]; /* over the steady iterations */
    uint32_t steady;
    bool behind; /* the device works behind the host: in most steady iterations its work ends after the iteration */
    bz_quantiles
        device_step; /* from the end of one iteration's work to that of the next: what a step takes the device */
} bz_summary;
void bz_summary_make(const bz_trace *t, bz_arena *arena, bz_summary *s);

/* From the first to the last of all that it recorded. False where nothing has a time. */
bool bz_trace_span(const bz_trace *t, bz_iteration *span);

/* A trace without iterations as one: `whole` is `t` with the single iteration `span`, as above. It shares the
 * memory of `t` and is not freed. False where nothing has a time. */
bool bz_trace_whole(const bz_trace *t, bz_iteration *span, bz_trace *whole);

/* Why no device worked. Each gap belongs to the work that ends it: what came first of its launch on the host. */
typedef enum {
    BZ_IDLE_HOST,      /* its launch had not begun: the host did something else */
    BZ_IDLE_LAUNCH,    /* the launch call ran */
    BZ_IDLE_SUBMITTED, /* the launch call was over, the work had not begun, and nothing was before it */
    BZ_IDLE_QUEUED,    /* it had been launched before the gap began */
    BZ_IDLE_UNKNOWN,   /* no launch is on record, or nothing of the work that it waited for */
    BZ_IDLE_END,       /* behind the last work */
} bz_idle_reason;
enum { BZ_IDLE_REASONS = BZ_IDLE_END + 1 };
const char *bz_idle_name(bz_idle_reason reason);
typedef struct bz_idle {
    int64_t busy, idle; /* nanoseconds in which some device, in which none worked: together the span, exactly */
    int64_t before;     /* of BZ_IDLE_UNKNOWN: in which work waited that its stream did before the recording began */
    int64_t late;       /* by which the device's clock is late of the host's; 0: no later than recordings tell */
    struct {
        int64_t count, time, longest;
    } of[BZ_IDLE_REASONS]; /* together `idle` */
} bz_idle;
void bz_trace_idle(const bz_trace *t, const bz_iteration *span, bz_idle *out);

/* When no device worked though its next work was queued (BZ_IDLE_QUEUED): whatever the host did meanwhile, nothing waited for it. Ascending; the
 * caller frees `gaps`. */
typedef struct bz_gap {
    int64_t start, end;
} bz_gap;
size_t bz_trace_queued(const bz_trace *t, const bz_iteration *span, bz_gap **gaps);

/* What occurs with what, how often and how long, over the steady iterations (all events where there are none); the largest first. */
typedef struct bz_top {
    uint32_t name, beside; /* strings */
    int64_t count, time;
} bz_top;

/* Whether a range of this name is known to mark an iteration: "ProfilerStep#3". */
bool bz_is_mark(const char *name);
/* Events of a kind; beside them their variant. PyTorch 1.8 records marks of iterations as operators: these are left out. */
size_t bz_trace_top(const bz_trace *t, bz_arena *arena, bz_event_kind kind, bz_top **top);

/* Who asked for library calls, and beside them the call; none where no back-traces were recorded. Who: of each back-trace the
 * innermost frame of the program's own Python code, else of a package's, else of the program itself. */
size_t bz_trace_callers(const bz_trace *t, bz_arena *arena, bz_top **callers);
uint32_t bz_stack_caller(const bz_trace *t, uint32_t stack); /* string */

/* Idle time between consecutive library calls (on a device: between kernels), by the call before; beside that the one behind. */
size_t bz_trace_gaps(const bz_trace *t, bz_arena *arena, bz_top **gaps);

/* Both of them, of the kind that gaps are between, in one pass over its events. */
typedef struct bz_tops {
    bz_event_kind kind;
    bz_top *event, *gap;
    size_t n_events, n_gaps;
} bz_tops;
bz_tops bz_trace_tops(const bz_trace *t, bz_arena *arena);

/* ---- output ------------------------------------------------------------------------------- */

/* Summary, iterations, top calls and kernels, gaps, coverage. `top`: rows per table. */
void bz_trace_print(const bz_trace *t, int top, bz_buf *out);
void bz_trace_json(const bz_trace *t, int top, bz_buf *out);

/* Chrome trace for Perfetto. */
int bz_trace_perfetto(const bz_trace *t, const char *path, bz_error *err);

/* ---- for readers and for tests that build a trace ----------------------------------------- */

/* A new row, all zero but for start and end; fill the columns at the returned index. */
size_t bz_trace_add(bz_trace *t, bz_event_kind kind, int64_t start, int64_t end, uint32_t name, uint32_t lane);
void bz_trace_memory(bz_trace *t, int64_t at, int64_t bytes, int64_t address, uint32_t lane); /* a mark "[memory]" */
uint32_t bz_trace_intern(bz_trace *t, const char *s, size_t n);
uint32_t bz_trace_text(bz_trace *t, const char *s); /* NULL is "" */
uint32_t bz_trace_source(bz_trace *t, const char *path, const char *format);
uint32_t bz_trace_thread(bz_trace *t, uint32_t source, int64_t process, int64_t thread);
uint32_t bz_trace_stream(bz_trace *t, uint32_t source, int64_t process, int64_t device, int64_t context,
                         int64_t stream);
uint32_t bz_trace_stack(bz_trace *t, const uint32_t *frames, int n);
/* A parameter as it was written: bz_call_parameter(t, i, "convDesc.padA") copies "[0,0]" into `out`; false where the call has
 * no such parameter. What a call computes is for bz_call_of. */
bool bz_call_parameter(const bz_trace *t, size_t call, const char *name, char *out, size_t size);
void bz_trace_fact(bz_trace *t, const char *key, const char *value); /* the same key and value once */
const char *bz_trace_told(const bz_trace *t, const char *key);       /* the first value of a fact; NULL: none */
void bz_trace_cover(bz_trace *t, uint32_t source, bz_coverage_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void bz_trace_lack(bz_trace *t, uint32_t source, bz_coverage_level level, bz_lack lack, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
