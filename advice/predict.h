/* What a step makes of a program's latency. Private to advice/. */
#ifndef BZ_ADVICE_PREDICT_H
#define BZ_ADVICE_PREDICT_H

#include "advice/advice.h"

/* What a step changes, as advice.txt tells: "library conv+batchnorm leaves concat", "bf16". */
typedef struct predict_step {
    bool library;         /* the library does all layers, in its own layouts, with weights prepared ahead */
    bool blocked;         /* convolutions and pools run in blocked layouts, by direct code of the framework's own */
    bool pads;            /* padding is done by what reads it, where that is a convolution or pool */
    bool constants;       /* what depends on constants alone is no longer computed */
    bz_dtype dtype;       /* products are calls of the library in this type; BZ_UNDEFINED: as they were */
    const char *patterns; /* with blanks between: groups of layers that become one call or operator */
    const char *leaves;   /* likewise: kinds of layers that stay the framework's; "" */
    const char *only;     /* likewise: all other kinds do; "": it is not said */
} predict_step;

bool predict_read(const char *words, predict_step *out); /* false where a word is none of them */

enum {
    PREDICT_PRODUCTS,
    PREDICT_LAYERS, /* other ones */
    PREDICT_CONVERSIONS,
    PREDICT_CONSTANTS,
    PREDICT_REST,
    PREDICT_PARTS
};

/* Seconds of an iteration. */
typedef struct predict_part {
    double before, after, low, high; /* low to high: after */
} predict_part;

typedef struct prediction {
    predict_part part[PREDICT_PARTS];
    predict_part all;
    int products, unknown; /* unknown: products without a record, as they were */
    double slower;         /* the program's calls against their records: by so much */
    double per_byte;       /* and so many seconds more for each byte that they read and write */
} prediction;

/* From what the profile shows and records tell. False where either is not there. */
bool predict(const bz_analysis *a, const bz_ladder *l, const bz_trace *trace, const predict_step *step, bz_arena *arena,
             prediction *out);

/* ---- fit ------------------------------------------------------------------------------------- */

/* So many times it took so many seconds for x of the one and y of the other. */
typedef struct predict_point {
    double x, y, seconds, times;
} predict_point;

/* seconds = per_x × x + per_y × y, neither of them below 0; both 0 where nothing is given. Sorts. */
void predict_fit(predict_point *p, int n, double *per_x, double *per_y);

/* ---- layers outside the library -------------------------------------------------------------- */

/* Seconds of those of the framework's own layers that `left` marks, [b->n], by the stretches between calls that they are
 * done in: what such a stretch takes longer than others of as many layers and bytes. */
double predict_left(const bz_bound *b, const bz_alignment *a, const bz_trace *t, const bool *left, bz_arena *arena);

/* Some stretches take more than twice as long as most of the same layers do by their bytes: their results lie in memory that
 * the system hands out anew. Returns the seconds of this that tensors of `smaller` times the bytes save: all of them where the
 * largest tensor is then smaller than any that had such memory, else between their share and all. */
double predict_fresh(const bz_bound *b, const bz_alignment *a, const bz_trace *t, double smaller, bz_arena *arena);

/* ---- reorders ------------------------------------------------------------------------------- */

typedef struct predict_reorder {
    double bytes, seconds;
} predict_reorder;

/* Reorders of steady iterations, by bytes: [0] of data, [1] of weights. Tensors of `fresh_from` bytes and more lie in memory that
 * the system hands out in every iteration, page by page, which takes `fresh` seconds for each byte; INFINITY and 0: there are none. */
typedef struct predict_reorders {
    predict_reorder *list[2];
    int n[2];
    double fresh_from, fresh;
} predict_reorders;

void predict_reorders_find(const bz_trace *trace, bz_arena *arena, predict_reorders *out);

/* What one of so many bytes takes in this program; 0 where it makes none. */
double predict_reorder_time(const predict_reorders *r, bool weights, double bytes, bz_arena *arena);

#endif
