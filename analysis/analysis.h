/* analysis: all that is known of a recording by itself, and many models side by side. */
#ifndef BZ_ANALYSIS_H
#define BZ_ANALYSIS_H

#include "advice/advice.h"
#include "base/sheet.h"

/* ---- recordings ----------------------------------------------------------------------------- */

/* A model that a recording may be of. */
typedef struct bz_candidate {
    const char *name, *from; /* from: "given", "bundled", "analysed before" */
    const bz_layers *layers;
} bz_candidate;

/* How well a candidate's layers fit the sequence of what the typical iteration computed. */
typedef struct bz_fit {
    const bz_candidate *candidate;
    double likeness;      /* 0 … 1: twice what both have in this order, over what both have */
    bool equal;           /* to the best one */
    const char *evidence; /* "recorded / in the model: convolutions 53 / 53, pools 2 / 2; …" */
} bz_fit;

/* All that a recording tells without a model and without the parameters of its calls. Times are those of the typical
 * iteration; where none was found, of the whole recording. */
typedef struct bz_recording {
    const char *profile;
    const char *answer; /* a sentence */
    const char **fact;  /* sentences: how the iterations were found, what the kernels are, which model it may be */
    int n_facts;
    const char **warning; /* what is missing in it, or does not fit */
    int n_warnings;
    const char *found; /* how the iterations were found: "detected"; NULL: there are none */
    int iterations, warm_up;
    bool rebuilt;            /* set by who analyzes its calls as layers, too: the advice stands there */
    bool device;             /* kernels are on record; else `busy` is that of library calls, else of operators */
    double span, busy, idle; /* seconds; NAN where nothing has a time. busy + idle = span */
    const bz_sheet **sheet;
    int n_sheets;
    const bz_fit *fit; /* most alike first: those that fit; none where no candidate does */
    int n_fits, candidates;
    const bz_analysis *analysis; /* of no layers, with one ladder: its timeline, and the advice that needs no model */
} bz_recording;

typedef struct bz_recording_input {
    const bz_trace *trace; /* finished */
    const char *profile;
    const bz_candidate *candidate;
    int n_candidates;
    bool timeline; /* wanted */
} bz_recording_input;

void bz_recording_make(const bz_recording_input *in, bz_arena *arena, bz_recording *out);

/* ---- evaluation ----------------------------------------------------------------------------- */

/* Many analyses: models, batches, systems, side by side. Ratios are speed-ups, above 1 where there is
 * something to gain, NAN where it is not known, and where too little of the bound is priced. The bound is the goal of each:
 * the fused one where groups were planned. */
typedef enum {
    BZ_RATIO_MEASURED,   /* measured / bound */
    BZ_RATIO_ALGORITHMS, /* measured / measured with the best variants */
    BZ_RATIO_FUSION,     /* bound as written / fused bound */
    BZ_RATIO_UNITS,      /* bound / with matrix units in the best way */
    BZ_RATIO_PARALLEL,   /* bound / parallel bound */
    BZ_RATIO_JOINT,      /* measured / the lowest that any combination reaches */
} bz_ratio;
enum { BZ_RATIOS = BZ_RATIO_JOINT + 1 };
const char *bz_ratio_name(bz_ratio ratio); /* "algorithms" */

typedef struct bz_evaluation_model {
    const char *path, *task; /* task: by the file's name; NULL where that tells nothing */
    int layers, unique;      /* unique: of the layers that are not constant */
    double macs;
    int first; /* analysis of it */
} bz_evaluation_model;

typedef struct bz_evaluation_row {
    int model; /* into `model` */
    bz_goal goal;
    double measured; /* of its first profile with a timeline; NAN */
    double ratio[BZ_RATIOS];
} bz_evaluation_row;

/* A batch and system: geometric means over its models. */
typedef struct bz_evaluation_group {
    const char *system;
    int64_t batch;
    int rows, models;           /* analyses; models of which enough is priced for a mean */
    double sequential;          /* of their bounds */
    double by_batch, by_system; /* time per item against the first batch, time against the first system; NAN */
    int by_batch_known, by_system_known;
    double ratio[BZ_RATIOS];
    int known[BZ_RATIOS]; /* of how many */
} bz_evaluation_group;

/* What a library computes at the lowest price, over all analyses. */
typedef struct bz_evaluation_library {
    const char *name; /* "onednn"; "memory": modelled; "unpriced" */
    int layers;
    double macs, seconds;
} bz_evaluation_library;

typedef struct bz_evaluation {
    bz_evaluation_model *model;
    int n_models;
    bz_evaluation_row *row; /* one per analysis */
    int n;
    bz_evaluation_group *group; /* in the order met */
    int n_groups;
    bz_evaluation_library *library; /* most time first */
    int n_libraries;
    int64_t layers, unique; /* over all models together */
    double mean[BZ_RATIOS]; /* geometric, over those known */
    int known[BZ_RATIOS];
} bz_evaluation;

void bz_evaluation_make(const bz_analysis *analysis, int n, bz_arena *arena, bz_evaluation *out);

/* ---- findings ------------------------------------------------------------------------------- */

/* All that one command found: recordings by themselves, models on systems. */
typedef struct bz_findings {
    const bz_analysis *analysis;
    int n;
    const bz_evaluation *evaluation; /* NULL: none was asked for */
    const bz_recording *recording;
    int n_recordings;
} bz_findings;

#endif
