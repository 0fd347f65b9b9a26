/* whatif: the iteration as a graph of what waited for what, and what it would take after a change.
 *
 *   bz_flow_make        one iteration of a recording as tasks on lanes, with what each of them waited for
 *   bz_flow_…           the primitives that change it: select, scale, insert, remove, move, depend
 *   bz_flow_simulate    when each task starts, and when all is over
 *   bz_whatif_*         transformations by name, composed and tried; before, after, and what was assumed
 *
 *     bz_flow flow = {0};
 *     if (bz_flow_make(trace, bz_typical_iteration(trace), &flow, err))
 *         goto out;
 *     for (uint32_t i = 0; i < flow.n; i++)
 *         if (flow.task[i].kind == BZ_TASK_KERNEL)
 *             bz_flow_scale(&flow, i, 0.5);
 *     bz_simulated after;
 *     if (bz_flow_simulate(&flow, &arena, &after, err))
 *         goto out;
 *   out:
 *     bz_flow_free(&flow);
 *
 * Times are whole nanoseconds since the iteration's start, and saturate at BZ_FLOW_LONGEST: a recording that lies overflows nothing.
 *
 * How a transformation is added. It is a row in TRANSFORMATIONS (transformations.c) and a function in a file of its own,
 * whatif/NAME.c, declared in transformations.h. The row names it, says what it does and assumes, and lists its parameters; the
 * function changes the flow with the primitives below, asks for its parameters with bz_whatif_number, and says what it counted
 * on with bz_whatif_assume. It returns how many tasks it changed: 0 says that it does not apply, and bz_whatif_because why. A
 * parameter may be given as a range, "compute=2..4": the function runs for its low, middle and high value, and the answer's
 * interval comes of the three; the function sees one number. */
#ifndef BZ_WHATIF_H
#define BZ_WHATIF_H

#include "base/base.h"
#include "explain/explain.h"
#include "perfdb/perfdb.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- the graph ------------------------------------------------------------------------------ */

enum { BZ_FLOW_LANES = 1 << 20 };          /* lanes and tasks are at most so many: numbers stay 32 bit */
#define BZ_FLOW_LONGEST ((int64_t)1 << 53) /* nanoseconds: 104 days; what is longer is cut */

typedef enum {
    BZ_TASK_HOST,          /* a call of the device's runtime: launches, allocations, queries */
    BZ_TASK_CALL,          /* work on the processor: a library call, or an operator that makes none */
    BZ_TASK_KERNEL,        /* on a stream */
    BZ_TASK_COPY,          /* on a stream: copies and fills */
    BZ_TASK_SYNC,          /* the host waits for a device; its duration is what it takes behind the wait */
    BZ_TASK_COMMUNICATION, /* on a channel */
    BZ_TASK_LOAD,          /* data are loaded */
    BZ_TASK_END,           /* the end of the iteration, where nothing of the recording ends there; takes no time */
} bz_task_kind;
enum { BZ_TASK_KINDS = BZ_TASK_END + 1 };
const char *bz_task_kind_name(bz_task_kind kind); /* "kernel" */
static inline bool bz_task_on_device(bz_task_kind kind)
{
    return kind == BZ_TASK_KERNEL || kind == BZ_TASK_COPY;
}

typedef enum { BZ_PHASE_NONE, BZ_PHASE_FORWARD, BZ_PHASE_BACKWARD, BZ_PHASE_UPDATE } bz_phase;
enum { BZ_PHASES = BZ_PHASE_UPDATE + 1 };
const char *bz_phase_name(bz_phase phase); /* "forward" */

typedef enum {
    BZ_DEPENDS_HOST,          /* a host thread that hands over to another; within a thread the order says it */
    BZ_DEPENDS_STREAM,        /* an event between streams; within a stream the order says it */
    BZ_DEPENDS_LAUNCH,        /* work of a device waits for the call that launched it */
    BZ_DEPENDS_SYNC,          /* the host waits for the device */
    BZ_DEPENDS_COMMUNICATION, /* gradients to their exchange, and the exchange to who needs it */
} bz_depends;
enum { BZ_DEPENDENCIES = BZ_DEPENDS_COMMUNICATION + 1 };
const char *bz_depends_name(bz_depends kind); /* "launch" */

/* A task starts when its lane is free and all that it depends on is done. In an ordered lane (threads and streams) the
 * tasks are a list, and each waits for the one before it and for that one's gap: what the thread did that nobody recorded, or
 * what a stream needs between two kernels. On a channel the one that is ready first goes first. */
typedef struct bz_task {
    const char *name; /* as recorded; lives as long as the trace */
    int64_t duration, gap;
    int64_t was;        /* duration in the recording; of an inserted one what it was inserted with */
    int64_t at;         /* start in the recording; -1: inserted; a sync's is behind its wait */
    int64_t not_before; /* nothing in the graph explains an earlier start: other work of before the iteration */
    int64_t late;       /* it begins so long after the last that it waits for, and nothing tells why: that stays */
    int64_t bytes;      /* copied or exchanged; 0 unknown */
    uint32_t lane, prev, next; /* next and prev on the lane; BZ_NONE at its ends, and on channels */
    uint32_t in, out;          /* first edges; BZ_NONE */
    uint32_t event;            /* row among the trace's events of `event_kind`; BZ_NONE: inserted */
    uint32_t call;             /* the library call that it is or was made for, a row of the trace's; BZ_NONE */
    uint32_t layer;            /* into bz_flow.layer; BZ_NONE: none is known */
    int32_t priority;          /* on a channel, of several that are ready the greatest goes first */
    uint8_t kind, phase, event_kind;
    bool removed;
} bz_task;

/* `to` starts at the earliest `lag` behind the end of `from`. A launch is told by its start: lag is from there, because a
 * kernel may begin before the call that launched it returns; where the call takes longer or shorter than it did, so does lag. */
typedef struct bz_flow_edge {
    uint32_t from, to, next_out, next_in; /* next of the lists that start in bz_task.out and .in */
    int64_t lag;
    uint8_t kind;
    bool wraps; /* `to` is of the next iteration: only bz_flow_steady sees it */
} bz_flow_edge;

typedef struct bz_flow_lane {
    const char *name;     /* "thread 17", "stream 7", "all-reduce" */
    uint32_t first, last; /* tasks; BZ_NONE: empty, or a channel */
    uint32_t lane;        /* of the trace; BZ_NONE: made by a transformation */
    int64_t wrap;         /* from its last task to its first of the next iteration */
    bool device, channel;
} bz_flow_lane;

/* What of the recording the graph holds, counted while it was made. */
typedef struct bz_flow_counts {
    uint32_t tasks[BZ_TASK_KINDS], edges[BZ_DEPENDENCIES], handovers;
    uint32_t unlaunched;  /* device tasks whose launch is not on record */
    uint32_t early;       /* device tasks stamped before their launch */
    uint32_t backwards;   /* events of negative length: counted as taking no time */
    uint32_t overlapping; /* events that overlap one before them on the same lane: put behind it */
    bool collapsed;       /* the latter: nothing is known of what ran in them */
    int64_t unexplained;  /* ns that device tasks began later than launch, stream and events explain */
} bz_flow_counts;

typedef struct bz_flow {
    const bz_trace *trace; /* that it was made of; NULL */
    bz_arena arena;
    bz_task *task; /* this and the three below grow by BZ_ADD */
    uint32_t n;
    bz_flow_edge *edge;
    uint32_t n_edges;
    bz_flow_lane *lane;
    uint32_t n_lanes;
    const char **layer; /* names, one for each layer, call or operator instance */
    uint32_t n_layers;
    uint32_t main; /* lane of the host that ends last; BZ_NONE: no host lane */
    uint32_t iteration;
    int64_t measured; /* what the recording says that simulated means */
    int64_t offset;   /* the latency begins so long after the graph's time 0 */
    int64_t period;   /* from the iteration's start on the host to that of the next */
    bool overlaps;    /* iterations overlap: `measured` is a step, and bz_flow_steady tells it */
    int64_t launch_cost, launch_gap, launch_lag, stream_gap; /* medians of the recording, for what is inserted */
    const char
        *computes; /* what products and convolutions were made to compute in: "16 bits", "TF32"; NULL: as recorded */
    bool literal;  /* the published rule: a gap delays also what was launched before it */
    bz_flow_counts counts;
} bz_flow;

/* The graph of an iteration of a finished trace (BZ_NONE: of all that was recorded). -1 where nothing in it has a time. */
int bz_flow_make(const bz_trace *trace, uint32_t iteration, bz_flow *out, bz_error *err);
/* Changed alone; names lie with the original, which must live as long. `out` is empty, or an earlier copy: its memory is used again. */
void bz_flow_copy(const bz_flow *flow, bz_flow *out);
void bz_flow_free(bz_flow *flow);
/* The first work of a backward pass by its operator's name, or its own; NULL: there is none, it infers. */
const char *bz_flow_trains(const bz_flow *flow);
/* The innermost framework operator around a task, or around its launch; NULL. */
const char *bz_task_op(const bz_flow *flow, const bz_task *task);

/* ---- primitives ----------------------------------------------------------------------------- */

uint32_t bz_flow_add_lane(bz_flow *flow, const char *name, bool device, bool channel); /* `name` is copied */
uint32_t bz_flow_find_lane(const bz_flow *flow, const char *name);                     /* BZ_NONE */
uint32_t bz_flow_add_layer(bz_flow *flow, const char *name);                           /* `name` is not copied */

/* At the end of its lane. `name` is copied. */
uint32_t bz_flow_add(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t lane, int64_t duration, int64_t gap);
/* On the lane of `like`, whose layer and phase it takes. */
typedef enum { BZ_BEHIND, BZ_BEFORE } bz_insert;
uint32_t bz_flow_insert(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t like, bz_insert where,
                        int64_t duration, int64_t gap);
/* A call that launches the task, behind another launch, as dear as the recording's median; none where that is BZ_NONE. */
void bz_flow_launch(bz_flow *flow, const char *name, uint32_t behind, uint32_t task);
/* Work for a device behind `after` on its stream, with its launch behind that of `after`. */
uint32_t bz_flow_insert_launched(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t after, int64_t duration);

/* The edge's number; what depends on itself is no edge, BZ_NONE. */
uint32_t bz_flow_depend(bz_flow *flow, uint32_t from, uint32_t to, bz_depends kind, int64_t lag);

void bz_flow_depend_as(bz_flow *flow, uint32_t from, uint32_t to, bz_depends kind, int64_t lag, bool wraps);

/* Takes a task out: who waited for it waits for what it waited for. Its gap goes too, or stays with the task before it. */
void bz_flow_remove(bz_flow *flow, uint32_t task, bool keep_gap);
/* The same for work of a device together with the call that launched it, if that launched nothing else. */
void bz_flow_remove_launched(bz_flow *flow, uint32_t task, bool keep_gap);
/* Puts tasks into the order of the recording; what was inserted stands before it, in the order in which it came. */
void bz_flow_in_time(const bz_flow *flow, uint32_t *task, uint32_t n);
void bz_flow_move_to(bz_flow *flow, uint32_t task, uint32_t lane); /* to the end of a lane */
void bz_flow_scale(bz_flow *flow, uint32_t task, double factor);   /* its duration, at least 0 */
void bz_flow_set(bz_flow *flow, uint32_t task, int64_t duration);
uint32_t bz_flow_launch_of(const bz_flow *flow, uint32_t task); /* the task that launched it; BZ_NONE */
bool bz_flow_launches(const bz_flow *flow, uint32_t task);      /* does work of a device wait for this call? */

/* Sums that end at BZ_FLOW_LONGEST instead of overflowing. */
static inline int64_t bz_flow_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

/* ---- simulation ----------------------------------------------------------------------------- */

/* Why a task did not start earlier. */
typedef struct bz_simulated {
    int64_t total;     /* when the last task ends, less the flow's offset */
    int64_t *start;    /* [flow->n]; of a removed task -1 */
    uint32_t *because; /* [flow->n]: the task that it waited for last; BZ_NONE: it waited for none */
    uint32_t last;     /* the task that ends last; BZ_NONE where there is none */
} bz_simulated;

/* Earliest start. Of the tasks that could start now on a channel, the one of the greatest priority starts, then the one that
 * waits longest, then the one that was added first. -1 where tasks wait for each other in a circle. O((tasks + edges) log
 * tasks). */
int bz_flow_simulate(const bz_flow *flow, bz_arena *arena, bz_simulated *out, bz_error *err);

/* Three iterations behind one another: each lane goes on where it ended. *step: from the end of the second to that of the
 * third. */
int bz_flow_steady(const bz_flow *flow, int64_t *step, bz_error *err);

/* Takes out what a recorder adds to each call of the device's runtime, and to each operator. Returns the sum of what went. */
int64_t bz_flow_without_recorder(bz_flow *flow, int64_t call, int64_t op);

/* What the iteration takes: the step where iterations overlap, else the total. `one` (may be NULL) gets the single one. */
int bz_flow_time(const bz_flow *flow, bz_arena *arena, bz_simulated *one, int64_t *time, bz_error *err);

/* Every nanosecond of the total has one owner: only the host worked, only a device, both, or neither did. A host that waits
 * in a sync does not work; the gaps of a thread are its work. */
typedef struct bz_flow_split {
    int64_t total, host, device, both, neither;
} bz_flow_split;
void bz_flow_split_make(const bz_flow *flow, const bz_simulated *s, bz_flow_split *out);

/* The chain of tasks that decides the total, back from its end, summed up by layer: largest first. */
typedef struct bz_critical_row {
    const char *name; /* layer, or what kind of work it is where no layer is known */
    const char *kind; /* "kernel" … of the task, "between" for gaps, launches' latency and waits */
    uint32_t tasks;
    int64_t time;
} bz_critical_row;
typedef struct bz_critical {
    bz_critical_row *row;
    uint32_t n;
    uint32_t *task; /* [n_tasks] first to last */
    uint32_t n_tasks;
    int64_t time;                       /* of all rows: the total */
    int64_t of[BZ_TASK_KINDS], between; /* the same, by kind */
} bz_critical;
void bz_flow_critical(const bz_flow *flow, const bz_simulated *s, bz_arena *arena, bz_critical *out);

/* Chrome trace of a simulation, as PyTorch's profiler writes it: https://ui.perfetto.dev shows it, and this program reads it. */
int bz_flow_perfetto(const bz_flow *flow, const bz_simulated *s, const char *path, bz_error *err);

/* ---- transformations ------------------------------------------------------------------------ */

/* Where a number is from. */
typedef enum { BZ_ASSUMED_MEASURED, BZ_ASSUMED_MODELLED, BZ_ASSUMED_GIVEN, BZ_ASSUMED_GUESSED } bz_assumed_how;
const char *bz_assumed_name(bz_assumed_how how); /* "measured" */

typedef struct bz_assumed {
    const char *what; /* "kernels of matrix products: time divided by 3" */
    bz_assumed_how how;
    const char *from; /* the recording, a record, a table, the command line */
} bz_assumed;

/* Values of a parameter; low and high the ends of what it may be. */
typedef struct bz_whatif_parameter {
    const char *name, *help;
    double low, usual, high; /* where nothing is given */
    double least, most;      /* what may be given */
    const char *from;        /* of the usual value: where it is from, a sentence */
} bz_whatif_parameter;

enum { BZ_WHATIF_PARAMETERS = 8, BZ_WHATIF_SIDES = 3 };

/* Records by which durations are known: of one system, in one setting. */
typedef struct bz_whatif_records {
    bz_perfdb *db;
    const bz_system *system; /* NULL: the database has none such, and `device` names a GPU of the data sheets */
    bz_setting setting;
    const char *name; /* "records of v100@cudnn7.6.3" */
    const char *device;
} bz_whatif_records;

/* The model of a recording: which task did which of its layers, and what the library takes for each. Of all but the bound and the
 * alignment there may be none. */
typedef struct bz_whatif_model {
    const bz_bound *bound;
    const bz_alignment *alignment;
    const bz_regret *regret;
    const bz_picks *picks;
    int n_picks;
} bz_whatif_model;

/* A transformation with the values that it was asked with. What it finds besides its flow is here. */
typedef struct bz_whatif_asked {
    const struct bz_transformation *row;
    double value[BZ_WHATIF_PARAMETERS][BZ_WHATIF_SIDES]; /* of each parameter: low, usual, high */
    bool given[BZ_WHATIF_PARAMETERS];
    const char *text; /* path of the file, or other text, that the row wants; NULL */
    /* while it is applied: */
    int side;        /* 0 low, 1 usual, 2 high */
    bool unrecorded; /* the recorder is out of the flow already */
    const bz_trace *trace;
    const bz_whatif_records *records; /* NULL: none */
    const bz_whatif_model *model;     /* likewise */
    bz_arena *arena;
    bz_error *err;
    bz_assumed *assumed;
    int n_assumed;
    double busy; /* by which others who used the machine made the iteration longer; of recordings of layers, else 0 */
    double between;      /* bytes that it goes over between two uses of a weight; likewise */
    const char *because; /* why it does not apply */
    const char *unsure;  /* why nobody knows what it comes to, beyond its assumptions; NULL */
} bz_whatif_asked;

typedef struct bz_transformation {
    const char *name, *does, *assumes;
    int (*apply)(bz_flow *flow,
                 bz_whatif_asked *asked); /* tasks changed; 0: does not apply; -1: failed, and asked->err why */
    const char *file;                     /* what the file is that "file=PATH" names; NULL: it takes none */
    const char *key; /* it is no file, but what "KEY=TEXT" names, or "NAME=TEXT" for short; NULL: a file */
    bool ranges;     /* its numbers are ranges by themselves: it looks at the side */
    bool inference;  /* it lets weights stay what they are: not where the recording is of a training */
    bool alone;      /* `benanza whatif RECORDING` tries it by itself: it needs nothing that only a person knows */
    bz_whatif_parameter parameter[BZ_WHATIF_PARAMETERS];
} bz_transformation;

const bz_transformation *bz_transformations(int *n);

/* "amp:compute=3,memory=2"; ranges as "compute=2..4", which is low..high. */
int bz_whatif_parse(const char *text, bz_arena *arena, bz_whatif_asked *out, bz_error *err);
double bz_whatif_number(const bz_whatif_asked *asked, const char *name);
bool bz_whatif_given(const bz_whatif_asked *asked, const char *name);
void bz_whatif_assume(bz_whatif_asked *asked, bz_assumed_how how, const char *from, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for a parameter: given where it was, else guessed, from where its row says. */
void bz_whatif_assume_parameter(bz_whatif_asked *asked, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Why it cannot be tried; the second one where no system was named. They return 0. */
int bz_whatif_because(bz_whatif_asked *asked, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int bz_whatif_without_records(bz_whatif_asked *asked);

/* Runs the text of a script (docs/whatif.md has the grammar). Tasks changed; -1 where a statement is wrong, with its line. */
int bz_whatif_run_script(bz_flow *flow, const char *text, size_t length, bz_error *err);

/* ---- answers -------------------------------------------------------------------------------- */

typedef struct bz_prediction {
    const char *name; /* "amp", or "amp + cuda-graph" */
    int changed;      /* tasks; 0: does not apply, and `because` says why */
    const char *because;
    const char *unsure;                                  /* why nobody should act on its time; NULL */
    int64_t time, low, high;                             /* of the iteration, after */
    int64_t unrecorded, unrecorded_low, unrecorded_high; /* gained where nobody records; of a bz_whatif with `adds` */
    int64_t gain;                                        /* that where it differs, else as recorded */
    const bz_assumed *assumed;
    int n_assumed;
    bz_flow_split split;
    bz_critical critical;
} bz_prediction;

bool bz_prediction_guesses(const bz_prediction *p); /* does something of what it assumes rest on nobody's figures? */

typedef struct bz_whatif {
    const bz_flow *flow;
    const bz_whatif_records *records; /* may be set behind bz_whatif_begin, as may the model */
    const bz_whatif_model *model;
    int64_t measured, simulated;
    double error; /* |simulated - measured| / measured */
    double
        spread; /* of the recording's steady iterations: half the distance of the middle half, relative to the median */
    double noise;    /* bz_whatif_noise of the recording */
    uint32_t steady; /* iterations of the spread */
    /* Where that matters (bz_recorder_adds): ns that the recorder adds to an operator or call, at the most, in the middle, at the least; and what the
     * iteration takes without that. Else 0. */
    int64_t adds[BZ_WHATIF_SIDES], unrecorded[BZ_WHATIF_SIDES];
    bz_flow_split split;
    bz_critical critical;
    bz_prediction *prediction; /* in the order asked; all that apply: by gain, greatest first */
    int n;
    bz_prediction *greedy;     /* each with those before it; only where nothing was asked */
    bz_whatif_asked *together; /* [n_greedy]: what the last of these is made of */
    int n_greedy;
    int64_t actual; /* 0: not given */
} bz_whatif;

/* Half the 95 % interval of the steady iterations' median, as boxplots draw it, as a share; a tenth where there is one iteration only. `steady`
 * gets how many there are, at least 1. */
double bz_whatif_interval(const bz_trace *trace, int64_t *steady);
const int64_t *bz_whatif_steady(const bz_trace *trace, bz_arena *arena, uint32_t *n); /* their latencies, sorted */
/* How far the latency of one process is from that of the next, as a share: that interval, or what processes were measured to differ by, the larger
 * one. The changed program is another process. */
double bz_whatif_noise(const bz_trace *trace);
/* The share of the recording's time that goes to memory which the system hands out anew, and that which a program is spared that takes none: the kernel's work
 * also puts data out of the caches. pages: a second. */
double bz_whatif_anew(const bz_trace *trace, double *pages, double *spared);

/* Simulation off by more: a warning; no prediction. */
#define BZ_WHATIF_WARN   0.03
#define BZ_WHATIF_REFUSE 0.10

/* The identity: before and simulated. The flow was made of a trace. */
int bz_whatif_begin(const bz_flow *flow, bz_arena *arena, bz_whatif *out, bz_error *err);
/* All of `asked`, one after the other on the same flow: one prediction more in out->prediction. */
int bz_whatif_predict(bz_whatif_asked *asked, int n, bz_arena *arena, bz_whatif *out, bz_flow *after,
                      bz_simulated *simulated, bz_error *err);
/* Is the gain without what the recorder adds another one, or that of another iteration? And that, as a part of a sentence. */
bool bz_whatif_differs_unrecorded(const bz_whatif *w, const bz_prediction *p);
void bz_whatif_say_unrecorded(const bz_whatif *w, const bz_prediction *p, bz_buf *out);
/* All rows that apply by themselves, ordered by gain, and their greedy combination. */
int bz_whatif_try_all(bz_arena *arena, bz_whatif *out, bz_error *err);

/* Every layer at its bound, in seconds: with the framework's own time, and without. Both NAN where the model's layers are not found in a
 * processor's recording, or too little of them has a price. */
void bz_whatif_ladder(const bz_trace *trace, const bz_whatif_model *model, double *with, double *without);

/* ---- to be shown ---------------------------------------------------------------------------- */

/* A recording's typical iteration: all that was tried, and its tasks before and after all changes that gain together. */
struct bz_whatif_shown {
    const char
        *why; /* a sentence where it has too many tasks or its simulation is off: the rest is empty then; else NULL */
    bz_whatif whatif;
    bz_flow flow, changed; /* `changed`: of the greedy combination; empty where nothing gains */
    bz_simulated before, after;
};

/* NULL where no graph can be made of it. One of more than BZ_WHATIF_SHOWN tasks is not simulated, because all transformations alone and
 * together would take seconds. `records` may be NULL. It lives in the arena. */
enum { BZ_WHATIF_SHOWN = 100000 };
const bz_whatif_shown *bz_whatif_show(const bz_trace *trace, const bz_whatif_records *records, bz_arena *arena);

/* ---- a question as one call ----------------------------------------------------------------- */

typedef struct bz_whatif_question {
    const char *const *
        change; /* [n], as bz_whatif_parse takes them: together. Without any, sweep or system: all, alone and together */
    const char *const *system; /* [n_systems]: a prediction for each */
    int n, n_systems;
    const char *sweep;      /* "link:times=1,2,4": a prediction for each value, behind the changes; NULL */
    const char *actual;     /* what the changed program takes: milliseconds, or a recording; NULL */
    const char *iterations; /* of that recording */
    bool literal, force; /* literal: of the flow; force: also where the identity is off by more than BZ_WHATIF_REFUSE */
    bool shown;          /* simulate the unchanged flow to be drawn, too */
    const bz_whatif_records *records; /* may be NULL */
} bz_whatif_question;

/* What it makes ends with the arena. `changed` and `after` are of one prediction; several leave them empty. */
int bz_whatif_ask(const bz_trace *trace, const bz_whatif_question *q, bz_arena *arena, bz_whatif_shown *out,
                  bz_error *err);
/* The system that the recording is of, by its name or by what the recording tells: device, system and name of `records`, by its database. */
int bz_whatif_origin(const bz_trace *trace, const char *named, bz_whatif_records *records, bz_arena *arena,
                     bz_error *err);

#endif
