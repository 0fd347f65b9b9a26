/* What bound and analyze have in common: models priced on a system, printed. Private to cli/. */
#ifndef BZ_CLI_ANALYSIS_H
#define BZ_CLI_ANALYSIS_H

#include "cli/planning.h"
#include "report/report.h"

typedef struct analyses {
    bz_analysis *item;
    int n, cap;
    bool incomplete; /* a layer of them is unpriced */
    int lacking; /* of what was added last: problems without a record that a benchmark could measure; 0 where all is priced */
    int unoffered;             /* and unpriced layers that no benchmark of the backends named measures */
    const bz_rebuilt *rebuilt; /* what analyses_add gets now; NULL: a model */
    bool bound_only;           /* no other types, layouts and math modes: no units */
    const bz_prices *prices;   /* of the last plan that was added */
    bz_recording *recording;   /* what profiles without a model tell by themselves; in the arena */
    int n_recordings;
    bz_arena arena;
} analyses;

typedef struct analysis_output {
    bool json, csv, models;
    const char *dot, *svg, *html;
} analysis_output;

#define ANALYSIS_OPTIONS(o)                                                                                            \
    {"json", BZ_OPTION_FLAG, &(o).json, NULL, "print JSON, for programs"},                                             \
        {"csv", BZ_OPTION_FLAG, &(o).csv, NULL, "print comma-separated values: a row for each layer"},                 \
        {"models", BZ_OPTION_FLAG, &(o).models, NULL, "with --csv: a row for each model, batch size and system"},      \
        {"html", BZ_OPTION_TEXT, &(o).html, "FILE",                                                                    \
         "write a page for a browser: charts, tables, timeline and graph in one file"},                                \
        {"dot", BZ_OPTION_TEXT, &(o).dot, "FILE",                                                                      \
         "write the graph in the DOT language, with the longest path in red"},                                         \
    {                                                                                                                  \
        "svg", BZ_OPTION_TEXT, &(o).svg, "FILE", "draw the graph, with the longest path in red"                        \
    }

/* Prices every model of the plan on the system. Models and plan must outlive the analyses. */
int analyses_add(analyses *a, const bz_list *paths, const loaded_models *m, const bz_plan *plan, const planning *p,
                 bz_perfdb *db, const bz_system *system, bz_error *err);
/* Fusion, matrix units, waterfall and advice of a model; trace[k] is that of its ladder k. */
void analysis_answer(bz_analysis *item, bz_trace *const *trace, bz_arena *arena);
int analyses_print(analyses *a, const analysis_output *o, bz_buf *out, bz_error *err);
void analyses_free(analyses *a);

#endif
