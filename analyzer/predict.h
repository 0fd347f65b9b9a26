/* What a step makes of a program's latency. Private to analyzer/. */
#ifndef BZ_ANALYZER_PREDICT_H
#define BZ_ANALYZER_PREDICT_H

#include "analyzer/analyzer.h"

/* What a step changes, as advice.txt tells: "library conv+batchnorm", "bf16". */
typedef struct predict_step {
    bool library;         /* the library does all layers, in its own layouts, with weights prepared ahead */
    bool blocked;         /* convolutions run in blocked layouts, by code of the framework's own */
    bz_dtype dtype;       /* products are calls of the library in this type; BZ_UNDEFINED: as they were */
    const char *patterns; /* with blanks between: groups of layers that become one call or operator */
} predict_step;

bool predict_read(const char *words, predict_step *out); /* false where a word is none of them */

enum { PREDICT_PRODUCTS, PREDICT_LAYERS, PREDICT_CONVERSIONS, PREDICT_REST, PREDICT_PARTS };

/* Seconds of an iteration. */
typedef struct predict_part {
    double before, after, low, high; /* low to high: after */
} predict_part;

typedef struct prediction {
    predict_part part[PREDICT_PARTS]; /* products, other layers, conversions of layout and type, what is left */
    predict_part all;
    int products, unknown; /* unknown: products without a record, as they were */
    double slower;         /* the program's calls against their records: by so much */
    double per_byte;       /* and so many seconds more for each byte that they read and write */
} prediction;

/* From what the profile shows and records tell. False where either is not there. */
bool predict(const bz_analysis *a, const bz_ladder *l, const bz_trace *trace, const predict_step *step, bz_arena *arena,
             prediction *out);

/* ---- least squares --------------------------------------------------------------------------- */

/* seconds = per_x × x + per_y × y; sums over what is added, each so many times. */
typedef struct predict_fit {
    double xx, xy, yy, xs, ys;
} predict_fit;

void predict_fit_add(predict_fit *f, double x, double y, double seconds, double times);
bool predict_fit_solve(const predict_fit *f, double *per_x, double *per_y); /* false where x and y go together */

/* ---- layers outside the library -------------------------------------------------------------- */

/* Of the time that such layers take, the share that goes with the bytes that they move, 0 to 1. NAN where nothing tells. */
double predict_by_byte(const bz_bound *b, const bz_alignment *a, const bz_trace *t);

/* ---- reorders ------------------------------------------------------------------------------- */

typedef struct predict_reorder {
    double bytes, seconds;
} predict_reorder;

/* Of steady iterations: [0] of data, [1] of weights; by bytes. */
typedef struct predict_reorders {
    predict_reorder *list[2];
    int n[2];
} predict_reorders;

void predict_reorders_find(const bz_trace *trace, bz_arena *arena, predict_reorders *out);

/* What one of so many bytes takes in this program; 0 where it makes none. */
double predict_reorder_time(const predict_reorders *r, bool weights, double bytes, bz_arena *arena);

#endif
