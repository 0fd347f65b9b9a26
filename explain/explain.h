/* explain: a bound held against what a recording saw, and where the time went.
 *
 *   bz_rebuild          layers from a recording's calls, where there is no model
 *   bz_regret_make      the variants that its calls used against the best known ones
 *   bz_align_make       the calls that the layers need against those that it has, and who took the rest of the time
 *   bz_fusion_make      what fusion patterns gain
 *   bz_units_*          what matrix units would gain, and which calls used them
 *   bz_waterfall_make   from what was measured down to the bound, step by step
 *   bz_timeline_make    one iteration, to be drawn
 *   bz_ladder_make      bound <= device-busy <= measured */
#ifndef BZ_EXPLAIN_H
#define BZ_EXPLAIN_H

#include "base/sheet.h"
#include "bound/bound.h"
#include "profile/profile.h"

/* What to do about it: made by the room advice. */
typedef struct bz_advice bz_advice;
typedef struct bz_state bz_state;
typedef struct bz_answer bz_answer;
typedef struct bz_whatif_shown bz_whatif_shown; /* by the room whatif */

/* ---- layers of a recording ------------------------------------------------------------------ */

void bz_rebuild(const bz_trace *trace, bz_arena *arena, bz_rebuilt *out);

/* ---- algorithms ----------------------------------------------------------------------------- */

/* Calls of one problem by one variant. Times are seconds of one call. */
typedef struct bz_regret_row {
    const char *problem, *variant; /* variant: as the library spells it */
    int padded;   /* > 0: the program padded the input by so much itself; the problem is that with the padding */
    double calls; /* per steady iteration */
    double seen;  /* what it took in the profile, median; NAN where that has no times */
    double used, best, chosen; /* by the records: its variant, the best one, the library's own pick; NAN unknown */
    const char *best_variant, *chosen_variant;
    double loss; /* calls × (used, or seen where that is less, - best); 0 where used or best is not known */
} bz_regret_row;

typedef struct bz_regret {
    bz_regret_row *row; /* greatest loss first */
    int n;
    double calls, known; /* per steady iteration: calls that are problems; those whose variant and best are known */
    double used, best, chosen, loss; /* sums over the known ones; chosen: as good as the pick is known, else used */
    double faster; /* problems that the profile solved faster than the best record: calls × (best - seen) */
    bool training; /* most was asked for as in training: programs that only infer do so, too */
} bz_regret;

/* "WINOGRAD" of CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD; what is spelled another way stays as it is. */
const char *bz_variant_name(const char *variant);

/* Is the variant that a recording names the algorithm of a record? CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD is "cudnn algo 6 WINOGRAD"
 * there; oneDNN's names are the same. */
bool bz_variant_used(const char *used, const char *algorithm);

int bz_regret_make(const bz_trace *trace, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                   bz_arena *arena, bz_regret *out, bz_error *err);

/* ---- deviations ----------------------------------------------------------------------------- */

/* What the layers ask for, beside what a profile's typical iteration did: a sequence alignment. */
typedef enum {
    BZ_ALIGNED_SAME,    /* the call that the layer needs */
    BZ_ALIGNED_CHANGED, /* the same kind of call with other parameters */
    BZ_ALIGNED_FUSED,   /* one call that did several layers */
    BZ_ALIGNED_SPLIT,   /* one of several calls that did one layer */
    BZ_ALIGNED_MISSING, /* a layer that no call did */
    BZ_ALIGNED_SPARED,  /* a layer that no call did, and that need not run */
    BZ_ALIGNED_EXTRA,   /* a call that no layer asks for */
} bz_aligned_kind;
enum { BZ_ALIGNED_KINDS = BZ_ALIGNED_EXTRA + 1 };
const char *bz_aligned_name(bz_aligned_kind kind); /* "changed" */

typedef struct bz_change {
    const char *parameter, *expected, *found; /* "pad", "1x1x1x1", "0x0x0x0" */
} bz_change;

typedef struct bz_aligned {
    bz_aligned_kind kind;
    bool
        doubtful; /* fused, by a bias that may as well be the first layer's own: whether the second one is in it is not told */
    bool moved;       /* in another order than the model has it */
    const int *layer; /* [n_layers]: into the bound's layers; none for what is extra */
    int n_layers;
    size_t at;                            /* call of the trace; SIZE_MAX for what is missing, and of an operator */
    uint32_t op;                          /* operator of the trace; BZ_NONE for what is none */
    const char *call, *problem, *variant; /* function, problem and algorithm; NULL where not known */
    const char *where;                    /* the program's line that asked for it; NULL without back-traces */
    const bz_change *change;
    int n_changes;
    double seconds; /* of the call; NAN without a timeline */
    double bound;   /* of its layers; NAN where one is unpriced, or there are none */
} bz_aligned;

/* Time that no layer asks for. */
const char *bz_cause_id(bz_cause_kind cause);   /* "input-padded"; NULL for an operator, which has its own */
const char *bz_cause_name(bz_cause_kind cause); /* "inputs padded by the program" */
typedef struct bz_cause {
    bz_cause_kind kind;
    const char *name;    /* for people */
    const char *id;      /* for programs */
    bool busy;           /* the device, or on a CPU the library, was busy with it; else it is time between */
    double count;        /* per iteration */
    double seconds;      /* per iteration */
    const char *example; /* a call, kernel or operator; NULL */
    const char *where;   /* the program's line that most of it comes from; NULL */
} bz_cause;

/* A call that took less than the records of its layers allow. */
typedef struct bz_faster {
    const bz_aligned *row;
    double lowest;   /* of its layers: by the records' intervals, and fused where there is such a record */
    const char *why; /* how that can be */
} bz_faster;

typedef struct bz_alignment {
    bool timeline;      /* else there are no times: calls are compared only */
    int expected, made; /* calls of the layers; calls of the iteration that compute */
    int count[BZ_ALIGNED_KINDS], moved;
    bz_aligned *row; /* in the order of the program, what is missing where the model has it */
    int n;
    double asked; /* seconds of the calls that layers ask for: with the causes it is the iteration's latency, exactly */
    bz_cause *cause; /* greatest first */
    int n_causes;
    const bz_faster *faster; /* by what they are faster, greatest first */
    int n_faster;
    const uint32_t *constant; /* operators that compute on constants alone */
    int n_constants;
    const uint32_t *normalized; /* operators whose batch normalization the model has in its weights */
    int n_normalized;
} bz_alignment;

/* What the bound has for layers that no call did. */
double bz_alignment_missing(const bz_alignment *a);

/* `trace` is finished; `bound` has its plan still. Of the trace's typical iteration. */
void bz_align_make(const bz_bound *bound, const bz_trace *trace, bz_arena *arena, bz_alignment *out);

/* ---- fusion --------------------------------------------------------------------------------- */

/* A fusion pattern by measured records: what its places cost as written and fused. */
typedef struct bz_fusion_row {
    const char *pattern;
    bool spare;          /* its places are layers that need not run */
    int places, covered; /* in the model; of the cheapest cover */
    int modelled, missing, refused,
        failed;                     /* places that gain nothing: modelled; without a record; no fewer calls; failed */
    int tried;                      /* of the refused and failed ones those that the records tell of; */
    const char *why;                /* the reason of the first; NULL */
    int fused;                      /* that a profile's program fused already; -1 where nobody looked */
    double written, together, gain; /* seconds of the covered places; gain: written - together */
    double alone, alone_parallel;   /* gain of the model's bounds if this were the only pattern */
} bz_fusion_row;

typedef struct bz_fusion {
    bz_fusion_row *row; /* greatest gain first */
    int n;
    double sequential, parallel; /* gain of all together; the gains of the rows are the first, exactly */
} bz_fusion;

/* ---- matrix units --------------------------------------------------------------------------- */

/* Rules are in units.txt: names of kernels and implementations, what units multiply, what they want. */

/* A way to compute with matrix units: Tensor Cores, AMX. */
typedef struct bz_unit_way {
    const char *name;             /* "bf16", "tf32", "f16 nhwc" */
    bool layout;                  /* all data stay in one layout: told for comparison, however dear it is */
    bool calibrated;              /* other numbers: somebody has to choose scales first */
    double sequential, parallel;  /* the model's bounds that way, each layer at its cheaper type, conversions counted */
    double fused, fused_parallel; /* with groups too; NAN where none were planned */
    double conversions;           /* seconds of them, within */
    int converted, modelled, open; /* conversions; of which modelled by their bytes; without any price */
    double gain;                   /* of the bound's goal: as asked - this way; NAN where too little is priced */
    int layers;                    /* that gain */
    int unknown;                   /* without a record that way: as they were */
    double *seconds;               /* [bound->dag->n]: of each layer of the main graph that way; NAN unknown */
} bz_unit_way;

typedef struct bz_unit_row {
    int layer;                  /* into the bound's layers, or -1 */
    const char *call;           /* of the profile: a call, or a kernel that no recorded call launched; NULL */
    bool used, could, channels; /* channels: their number is a reason why not */
    const char *evidence;       /* what tells that it was used: a kernel's or an implementation's name; NULL */
    const char *why;      /* why it was not, where it could: "computes in f32", "3 channels: no multiple of 8"; NULL */
    double seconds, best; /* as asked for; by the best way; NAN unknown */
    const char *best_way; /* NULL where none is better */
} bz_unit_row;

typedef struct bz_units {
    const char *unit; /* "Tensor Cores", "AMX", "AVX512-BF16"; NULL: the system has none */
    bz_unit_row *row;
    int n, used, could;     /* layers, or calls: that used them; that could and did not */
    const bz_unit_way *way; /* greatest gain first */
    int n_ways;
} bz_units;

/* The same model priced another way. */
typedef struct bz_unit_try {
    const char *name;
    const bz_bound *bound; /* of the same layers and patterns */
    const char *layout;    /* that data have throughout: "plain", "nhwc"; NULL: each as it likes */
    bz_dtype dtype;        /* that they have between layers then; BZ_UNDEFINED: as asked */
    bool calibrated;
} bz_unit_try;

/* Conversions between layers that go different ways are priced by records of reorders, else modelled by their bytes. */
int bz_units_make(const bz_bound *bound, const bz_unit_try *tries, int n, bz_perfdb *db, const bz_system *system,
                  bz_arena *arena, bz_units *out, bz_error *err);

/* What a profile used, in its typical iteration, which the alignment is of. The ways are those of the model; `model` and `alignment` may be NULL. */
void bz_units_look(const bz_bound *bound, const bz_trace *trace, const bz_alignment *alignment, const bz_units *model,
                   bz_arena *arena, bz_units *out);

/* ---- jointly -------------------------------------------------------------------------------- */

/* Ways to become faster that go together: bits. */
enum {
    BZ_WAY_FRAMEWORK = 1, /* nothing but the calls that layers ask for */
    BZ_WAY_ALGORITHMS = 2,
    BZ_WAY_FUSION = 4,
    BZ_WAY_PRECISION = 8,
    BZ_WAY_PARALLEL = 16,
    BZ_WAYS = 5
};

typedef enum {
    BZ_RUNG_BETWEEN,    /* the time between calls; without an alignment all of these six */
    BZ_RUNG_EXTRA,      /* work that belongs to no layer */
    BZ_RUNG_ALGORITHMS, /* what the best variants would save */
    BZ_RUNG_FAR, /* weights that the caches do not keep until the next iteration, where calls took longer than their records */
    BZ_RUNG_SLOWER,  /* calls that took longer than their records, for another reason */
    BZ_RUNG_OUTSIDE, /* layers that no call did, and took longer than their records */
    BZ_RUNG_FUSION,
    BZ_RUNG_PRECISION,
    BZ_RUNG_PARALLEL,
    BZ_RUNGS,
} bz_rung_kind;

typedef struct bz_step {
    bz_rung_kind kind;
    const char *name;
    double seconds; /* that it saves; below 0 it is no saving but a contradiction: the next rung is above this one */
} bz_step;

/* From what was measured down to the bound: from - the steps = to, exactly. */
typedef struct bz_waterfall {
    double from, to;
    bz_step step[BZ_RUNGS];
    int n;
    double joint[1 << BZ_WAYS]; /* latency with each combination; [0] is `from`; NAN where not known */
} bz_waterfall;

/* ---- timeline ------------------------------------------------------------------------------- */

/* One iteration of a profile, to be looked at: its typical one. */
typedef struct bz_timeline_row {
    const char *name; /* "thread 17: library calls", "stream 7: kernels" */
    bz_event_kind kind;
    int depth; /* how many levels of events within events are kept */
} bz_timeline_row;

typedef struct bz_timeline_event {
    int row, name, depth;  /* name: into `name` */
    int64_t start, length; /* nanoseconds since the iteration's start */
} bz_timeline_event;

typedef struct bz_timeline {
    int64_t length; /* nanoseconds */
    bz_timeline_row *row;
    int n_rows;
    const char **name;
    int n_names;
    bz_timeline_event *event; /* by row and start */
    int n, left_out;          /* left out: the shortest of more than BZ_TIMELINE_EVENTS */
} bz_timeline;
enum { BZ_TIMELINE_EVENTS = 8000 };

/* NULL where the trace has no steady iteration or nothing lies in it. */
const bz_timeline *bz_timeline_make(const bz_trace *trace, bz_arena *arena);

/* ---- ladder --------------------------------------------------------------------------------- */

/* A bound held against one profile: bound <= device-busy <= measured. Times are those of the typical
 * iteration, seconds. On a CPU the library calls are the work: `busy` is their union then. Where the profile was recorded
 * in levels, the latency is that of the run that was recorded least; `recorded` has what recording made of it. */
typedef struct bz_ladder {
    const char *profile;
    int iterations;       /* steady ones */
    bool device;          /* kernels were recorded */
    bool on_device;       /* it ran on one, whether or not that was recorded */
    double busy, latency; /* NAN where the profile has no timeline */
    double recorded;      /* latency of the iteration that all the rest is of */
    const char *run;      /* that the latency is of, "program alone"; NULL: of that iteration */
    bz_goal goal;         /* that it is held against. Where too little of it is priced, or it is above the latency
                                   * and so no bound, or the recording is foreign, all that follows but `idle` is NAN */
    double idle, excess,
        overlap;    /* latency - busy, busy - goal, goal - the parallel one: with the parallel one they are
                                   * the latency, exactly; below 0 where a rung is above the next */
    double ratio;   /* goal / latency */
    double speedup; /* latency / goal */
    double speedup_parallel;
    double hidden; /* between calls, where layers may have run that the goal has not; 0: little, or a model is known */
    double with_framework, without; /* simulated: the iteration with every layer at the goal's price; without the
                                     * framework's own time it is one graph's bound. NAN: no model's layers on a processor */
    const char *defect;      /* the goal is above what was measured: which, and the layers to suspect; else NULL */
    bool open;               /* what is taken for an iteration may be a part of one, or several */
    bool truncated;          /* a file of the recording is cut off; a warning says what was read */
    bool calls_alone;        /* the latency is that of the library calls: the log tells no time between them */
    const char *foreign;     /* the recording is not of this model, or of other sizes: what tells so; else NULL */
    const char *ran_on;      /* a processor or GPU, where the bound is for another one; else NULL */
    const char *framework;   /* that ran it: "PyTorch"; NULL where nothing tells */
    const char *slowed;      /* by its recorder (bz_recorder_slows); NULL: not so that it matters */
    const bz_regret *regret; /* this and the next: NULL where nobody asked */
    const bz_alignment *alignment;
    const bz_units *units;
    const bz_waterfall *waterfall;
    const bz_timeline *timeline;   /* NULL where nobody asked */
    const bz_whatif_shown *whatif; /* likewise; and where no graph can be made of it */
    const bz_advice *advice;       /* greatest gain first */
    int n_advices;
    const bz_state *state;
    int n_states;
    const bz_answer *answer; /* greatest first */
    int n_answers;
    const char **warning; /* settings that do not match; what does not hold */
    int n_warnings;
} bz_ladder;

/* Whether the recording and the bound are of the same work on the same machine. Prices, gains and losses by the bound's records are
 * told of such a recording alone. */
bool bz_ladder_compares(const bz_ladder *l);
/* Whether there is a speed-up: they compare, enough is priced, and the bound is not above what was measured. */
bool bz_ladder_holds(const bz_ladder *l);

/* What a recorder adds to an iteration that keeps a device busy, where that was measured and is much: PyTorch's profiler. */
typedef struct bz_recorder_cost {
    double least, most; /* µs of an operator, or of a call of the device's runtime */
    int operators, calls;
    bool matters; /* together it may come to a share of the iteration that changes what is said of it */
} bz_recorder_cost;
bool bz_recorder_is_pytorch(const bz_trace *t);
bz_recorder_cost bz_recorder_adds(const bz_trace *t, uint32_t iteration);
/* What PyTorch's profiler adds to an iteration whose device waits for its host, in a sentence that goes on behind "was"; NULL: nothing that would change
 * what is said of it. */
const char *bz_recorder_slows(const bz_trace *t, uint32_t iteration, const bz_iteration_stats *s, bz_arena *arena);

/* `trace` is finished. */
void bz_ladder_make(const bz_bound *bound, const bz_trace *trace, const char *profile, bz_arena *arena, bz_ladder *out);
/* Notes what its alignment leaves hidden. */
void bz_ladder_hide(const bz_bound *bound, bz_ladder *ladder);

/* Fusion of a bound whose plan has groups. Groups that are modelled gain nothing here, while the fused bound, which
 * is a lower one, takes them. The ladders (n may be 0) tell what programs fused already. */
void bz_fusion_make(const bz_bound *bound, const bz_ladder *ladder, int n, bz_arena *arena, bz_fusion *out);

/* Precision is the best way in floating point, each combination by its own best. `units` may be NULL, as may the ladder's
 * regret and alignment: what they would tell apart is one step then. Where the profile has no times there are no steps; where
 * too little is priced there is no combination either. */
void bz_waterfall_make(const bz_bound *bound, const bz_ladder *ladder, const bz_units *units, bz_waterfall *out);

/* ---- all together --------------------------------------------------------------------------- */

enum { BZ_SHEETS = 8 };

/* What is printed of one model on one system. */
typedef struct bz_analysis {
    bz_bound bound;
    const bz_fusion *fusion; /* NULL where no groups were planned */
    const bz_units *units;   /* of the model alone: what lower precision would gain; NULL where nobody asked */
    bz_ladder *ladder;
    int n_ladders;
    const bz_picks *picks; /* for predictions of what a program gains; NULL where nobody asked */
    int n_picks;
    const bz_prices *prices; /* what it was priced by */
    const bz_sheet
        *sheet[BZ_SHEETS]; /* tables of analyses that are no more than a table; one without rows is left out */
    int n_sheets;
    int lacking; /* of its plan on its system: problems without a record that a benchmark could measure; 0 where all is priced */
    int unoffered; /* and unpriced layers that no benchmark of the backends named measures */
} bz_analysis;

#endif
