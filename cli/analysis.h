/* What bound and analyze have in common: models priced on a system, printed. Private to cli/. */
#ifndef BZ_CLI_ANALYSIS_H
#define BZ_CLI_ANALYSIS_H

#include "cli/planning.h"
#include "report/report.h"

typedef struct analyses {
    bz_request request;
    bz_list profiles;
    const char *iterations;
    bz_trace **trace; /* of each */
    bz_plan *plan;    /* of the models asked for last */
    bz_findings found;
    struct {
        bool models, predict; /* predict: what no record prices */
        const char *dot, *svg, *html;
    } output;
} analyses;

#define ANALYSIS_OPTIONS(job, o)                                                                                       \
    BZ_FLAG("predict", job, o.predict, "predict what no record prices, as 'benanza predict' does"), BZ_JSON_OPTION,    \
        BZ_FLAG("csv", bz_job, csv, "print comma-separated values: a row for each layer"),                             \
        BZ_FLAG("models", job, o.models, "a row for each model, batch size and system", .with = "csv"),                \
        BZ_VALUE("html", job, o.html, "FILE",                                                                          \
                 "write a page for a browser: charts, tables, timeline and graph in one file"),                        \
        BZ_VALUE("dot", job, o.dot, "FILE", "write the graph in the DOT language, with the longest path in red"),      \
        BZ_VALUE("svg", job, o.svg, "FILE", "draw the graph, with the longest path in red")

#define ANALYSIS_ITERATIONS_OPTION(job, a)                                                                             \
    BZ_VALUE("iterations", job, a.iterations, "NAME",                                                                  \
             "take ranges of this name (or pattern, as step*) for the iterations; a number: look for so many",         \
             .with = "profile")

/* Reads the recordings that are named: the request's from now on. */
int analyses_read(bz_job *job, analyses *a, bz_error *err);
/* The records that count are those of as many threads as the recordings tell, where nobody named a number (0). */
int64_t analyses_threads(const analyses *a, int64_t named);
/* Asks for models, as the options say; the request's plan is made. All that is made is there until the call ends. */
int analyses_ask(bz_job *job, analyses *a, const planning *p, const bz_models *m, bz_error *err);
int analyses_make(bz_job *job, analyses *a, bz_perfdb *db, const bz_system *const *system, int n_systems,
                  unsigned parts, bz_error *err);
int analyses_print(bz_job *job, analyses *a, bz_buf *out, bz_error *err);

#endif
