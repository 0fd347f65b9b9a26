/* What bound and analyze have in common: models priced on a system, printed. Private to cli/. */
#ifndef BZ_CLI_ANALYSIS_H
#define BZ_CLI_ANALYSIS_H

#include "cli/planning.h"
#include "report/report.h"

typedef struct analyses {
    bz_request request;
    bz_patterns *patterns; /* of its options */
    bz_plan *plan;         /* of the models asked for last */
    bz_findings found;
    bool predict; /* what no record prices */
    bz_arena arena;
} analyses;

typedef struct analysis_output {
    bool json, csv, models, predict;
    const char *dot, *svg, *html;
} analysis_output;

#define ANALYSIS_OPTIONS(o)                                                                                            \
    {"predict", BZ_OPTION_FLAG, &(o).predict, NULL, "predict what no record prices, as 'benanza predict' does"},       \
        {"json", BZ_OPTION_FLAG, &(o).json, NULL, "print JSON, for programs"},                                         \
        {"csv", BZ_OPTION_FLAG, &(o).csv, NULL, "print comma-separated values: a row for each layer"},                 \
        {"models", BZ_OPTION_FLAG, &(o).models, NULL, "with --csv: a row for each model, batch size and system"},      \
        {"html", BZ_OPTION_TEXT, &(o).html, "FILE",                                                                    \
         "write a page for a browser: charts, tables, timeline and graph in one file"},                                \
        {"dot", BZ_OPTION_TEXT, &(o).dot, "FILE",                                                                      \
         "write the graph in the DOT language, with the longest path in red"},                                         \
    {                                                                                                                  \
        "svg", BZ_OPTION_TEXT, &(o).svg, "FILE", "draw the graph, with the longest path in red"                        \
    }

/* Asks for models, as the options say; the request's plan is made. It is freed with the analyses. */
int analyses_ask(analyses *a, const planning *p, const bz_models *m, bz_error *err);
int analyses_make(analyses *a, bz_perfdb *db, const bz_system *const *system, int n_systems, unsigned parts,
                  bz_error *err);
int analyses_print(analyses *a, const analysis_output *o, bz_buf *out, bz_error *err);
void analyses_free(analyses *a);

#endif
