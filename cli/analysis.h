/* What bound and analyze have in common: models priced on a system, printed. Private to cli/. */
#ifndef BZ_CLI_ANALYSIS_H
#define BZ_CLI_ANALYSIS_H

#include "analyzer/analyzer.h"
#include "cli/planning.h"

typedef struct analyses {
    bz_analysis *item;
    int n, cap;
    bool incomplete; /* a layer of them is unpriced */
    int lacking; /* of what was added last: problems without a record that a benchmark could measure; 0 where all is priced */
    int unoffered;             /* and unpriced layers that no benchmark of the backends named measures */
    const bz_rebuilt *rebuilt; /* what analyses_add gets now; NULL: a model */
    bool bound_only;           /* no other types, layouts and math modes: no units */
    const bz_prices *prices;   /* of the last plan that was added */
    bz_arena arena;
} analyses;

typedef struct analysis_output {
    bool json, csv, models;
    const char *dot, *svg, *html;
} analysis_output;

#define ANALYSIS_OPTIONS(o)                                                                                            \
    {"json", BZ_OPTION_FLAG, &(o).json, NULL, "for programs: JSON"},                                                   \
        {"csv", BZ_OPTION_FLAG, &(o).csv, NULL, "for programs: a row per layer"},                                      \
        {"models", BZ_OPTION_FLAG, &(o).models, NULL, "with --csv: a row per model, batch and system"},                \
        {"html", BZ_OPTION_TEXT, &(o).html, "FILE",                                                                    \
         "write a page: charts, tables, timeline, graph; needs nothing else"},                                         \
        {"dot", BZ_OPTION_TEXT, &(o).dot, "FILE", "write the graph, the critical path in red, in the DOT language"},   \
    {                                                                                                                  \
        "svg", BZ_OPTION_TEXT, &(o).svg, "FILE", "draw it"                                                             \
    }

/* Prices every model of the plan on the system. Models and plan must outlive the analyses. */
int analyses_add(analyses *a, const bz_list *paths, const loaded_models *m, const bz_plan *plan, const planning *p,
                 bz_perfdb *db, const bz_system *system, bz_error *err);
/* Fusion, matrix units, waterfall and advice of a model; trace[k] is that of its ladder k. */
void analysis_answer(bz_analysis *item, bz_trace *const *trace, bz_arena *arena);
int analyses_print(analyses *a, const analysis_output *o, bz_buf *out, bz_error *err);
void analyses_free(analyses *a);

#endif
