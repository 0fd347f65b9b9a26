/* analysis: bz_analyze makes all that is told of models on systems and of recordings: bounds, explanations, advice; of a
 * recording also what it tells by itself; and many models side by side. */
#ifndef BZ_ANALYSIS_H
#define BZ_ANALYSIS_H

#include "advice/advice.h"
#include "base/sheet.h"
#include "predict/predict.h"
#include "tables/tables.h"

/* ---- recordings ----------------------------------------------------------------------------- */

/* A model that a recording may be of. */
typedef struct bz_candidate {
    const char *name, *from; /* from: "given", "bundled", "analysed before" */
    const bz_layers *layers;
} bz_candidate;

typedef struct bz_candidates {
    const bz_candidate *item;
    int n;
    const char **complaint; /* [given]: why it is none; NULL where it is one */
} bz_candidates;

/* The models given, those that come with benanza, and those that were analysed before. All live in the arena. `db` is the
 * database's folder; NULL for the usual one. */
void bz_candidates_load(const char *const *given, int n_given, const char *db, bz_arena *arena, bz_candidates *out);
/* Notes models beside the database, for later. Where that cannot be written nothing is noted. */
void bz_candidates_remember(const char *const *model, int n_models, const char *db);

/* How well a candidate's layers fit the sequence of what the typical iteration computed. */
typedef struct bz_fit {
    const bz_candidate *candidate;
    double likeness; /* 0 … 1: twice what both have in this order, over what both have */
    double sizes;    /* 0 … 1: multiplications in products of equal sizes; 1 where calls tell none */
    bool sized; /* the recording tells sizes, and they are the candidate's; else networks of other widths fit as well */
    bool equal; /* to the best one */
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
    const bz_rebuilt *layers; /* those that its library calls did; NULL where they have no parameters */
    bool rebuilt;             /* these are analyzed, too: the advice stands there */
    bool truncated;           /* a file of it is cut off */
    bool device;              /* kernels are on record; else `busy` is that of library calls, else of operators */
    double span, busy, idle;  /* seconds; NAN where nothing has a time. busy + idle = span */
    const bz_sheet **sheet;
    int n_sheets;
    bz_tables *tables; /* what `profile tables` prints; NULL: no page was asked for */
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
    const bz_rank_profile
        *rank; /* all recordings, where they are of the ranks of one program; `n_ranks` 0: they are not */
    int n_ranks;
} bz_recording_input;

void bz_recording_make(const bz_recording_input *in, bz_arena *arena, bz_recording *out);

/* Equal layers repeat as steps do: takes so many iterations of a finished recording that each does the work of the model, where those that
 * were found do not and those do. Did it? The last row of the coverage says so. */
bool bz_recording_refit(bz_trace *t, const bz_layers *layers);

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

/* ---- an analysis ---------------------------------------------------------------------------- */

/* Parts of an analysis: bits. Who wants one gets those that it needs as well. */
enum {
    BZ_PART_PRICES = 1,
    BZ_PART_BOUND = 2,
    BZ_PART_UNITS = 4, /* of the model: what other types, layouts and math modes would gain */
    BZ_PART_FUSION = 8,
    BZ_PART_PICKS = 16,
    /* of each recording that it is held against */
    BZ_PART_LADDER = 32,
    BZ_PART_ALGORITHMS = 64,
    BZ_PART_ALIGNMENT = 128,
    BZ_PART_USED = 256, /* matrix units that it used */
    BZ_PART_WATERFALL = 512,
    BZ_PART_ADVICE = 1024,
    BZ_PART_TABLES = 2048,             /* analyses that are no more than a table, and that nothing rests on */
    BZ_PARTS = 2 * BZ_PART_TABLES - 1, /* all of these */
    BZ_PART_TIMELINE = 4096,           /* to be drawn */
};

typedef struct bz_recorded {
    const char *name;
    const bz_trace *trace; /* finished */
} bz_recorded;

/* What is asked: models on systems, each held against recordings. As many recordings as models, and more than one: each model
 * has its own; else all are held against all. Without models the recordings tell what they do by themselves, and the layers
 * that their library calls did take the place of models. */
typedef struct bz_request {
    const char *const *model;  /* [n]: names */
    bz_layers *const *layers;  /* [n] */
    const bz_rebuilt *rebuilt; /* [n]: of each recording what it did, in place of models; NULL: they are models */
    int n;
    bz_plan_options options;
    const bz_plan *plan; /* of these models by these options; NULL: it is made */
    bz_perfdb *db;       /* NULL, where there are no models: what the recordings tell by themselves is all */
    const bz_system *const *system;
    int n_systems;
    bz_setting setting;
    const bz_recorded *profile;
    int n_profiles;
    const bz_candidate *candidate; /* models that they may be of */
    int n_candidates;
    unsigned parts;
    int in_sequence; /* > 0: sequences of at most so many layers that were measured as such stand beside the sum */
    const bz_samples *samples; /* what no record prices is predicted by these; NULL: it stays unpriced */
} bz_request;

/* All that is found: recordings by themselves, models on systems. */
typedef struct bz_findings {
    bz_analysis *analysis; /* by system and then by model */
    int n;
    bool incomplete;                 /* one of them lacks a price */
    const bz_evaluation *evaluation; /* NULL: none was asked for */
    bz_recording *recording;
    int n_recordings;
} bz_findings;

/* A plan of what recordings did, as bz_plan_of makes one of models. */
bz_plan *bz_plan_of_rebuilt(const bz_plan_options *o, const bz_rebuilt *rebuilt, const char *const *name, int n);

/* Adds to `out` what is asked; the recordings by themselves only once. All lives in the arena; layers, traces, database and the
 * plan given must outlive it. */
int bz_analyze(const bz_request *request, bz_arena *arena, bz_findings *out, bz_error *err);

#endif
