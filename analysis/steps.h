/* The steps of an analysis. Private to analysis/.
 *
 *   analyze.c   the table of the steps, their order, and small ones
 *   context.c   sequences of layers that were measured as such
 *   slower.c    layers that took longer than they could
 *   ways.c      other data types, layouts and math modes
 *
 * A new step is a row in that table and a file with its function. What it finds it notes in the model's analysis or in the
 * recording's ladder; where that is a table, analyze_sheet is all that text, JSON and page need. */
#ifndef BZ_ANALYSIS_STEPS_H
#define BZ_ANALYSIS_STEPS_H

#include "analysis/analysis.h"

enum { ANALYZE_WAYS = 16 };

/* A plan and its prices: another data type, layout or math mode. */
typedef struct analyze_way {
    const char *name;
    const bz_plan *plan;
    const bz_prices *prices;
    bz_dtype dtype, data; /* of the plan; between layers. BZ_UNDEFINED: as asked */
    const char *layout;
    bool calibrated;
} analyze_way;

/* What the steps work on: the models of one plan on one system. */
typedef struct analyze_work {
    const bz_request *request;
    bz_arena *arena;
    bz_error *err;
    unsigned parts; /* wanted, or needed by these */
    unsigned made;
    const bz_plan *plan;
    const char *const *name; /* [n] */
    bz_layers *const *layers;
    const bz_rebuilt *rebuilt; /* [n]; NULL: they are models */
    const bz_system *system;
    const bz_system_facts *facts;
    const bz_peaks *peaks;
    bz_prices *prices;
    analyze_way way[ANALYZE_WAYS];
    int n_ways;
    const bz_recorded *profile; /* that all are held against; own: each against the one with its number */
    bool own;
    bz_analysis *item; /* [n], with room for their ladders */
    int n;
} analyze_work;

/* Where a step is: at a model, and at a recording that it is held against. NULL where it is a step of all models, or of a model. */
typedef struct analyze_place {
    bz_analysis *item;
    int number; /* of the model */
    bz_ladder *ladder;
    const bz_trace *trace;
    const char *profile;
} analyze_place;

typedef int analyze_step(analyze_work *w, const analyze_place *at);

/* Makes the parts that are wanted, and those that they need, but for those that are made. */
int analyze_make(analyze_work *w, unsigned wanted, bz_error *err);
void analyze_bound_input(const analyze_work *w, int number, bz_bound_input *in);

/* A table of the model's, which text, JSON and page show: a step adds rows to it. */
bz_sheet *analyze_sheet(const analyze_work *w, const analyze_place *at, const char *id, const char *title,
                        const char *columns);

/* The prices; and those of other ways, where units are wanted. */
analyze_step analyze_prices, analyze_units;
/* Tables: layers whose calls took longer than their records. */
analyze_step analyze_slower;
/* A table: what the model takes by sequences that were measured as such, where it is asked for. */
analyze_step analyze_context;

#endif
