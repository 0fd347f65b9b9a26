/* report: analyses for people, as JSON, CSV, DOT and HTML. */
#ifndef BZ_REPORT_H
#define BZ_REPORT_H

#include "analysis/analysis.h"
#include "bench/bench.h"
#include "bricks/bricks.h"
#include "compare/compare.h"
#include "predict/evaluate.h"
#include "tables/tables.h"
#include "transfer/transfer.h"
#include "whatif/whatif.h"

typedef enum { BZ_FORM_TEXT, BZ_FORM_JSON, BZ_FORM_CSV } bz_form;

static inline bz_form bz_form_of(bool json, bool csv)
{
    return json ? BZ_FORM_JSON : csv ? BZ_FORM_CSV : BZ_FORM_TEXT;
}

/* Each appends to `out`. The JSON and the CSV are described in docs/formats.md. Where an evaluation may
 * be NULL, it is left out. */
void bz_report_evaluation_text(const bz_analysis *analysis, const bz_evaluation *e, bz_buf *out);
void bz_report_evaluation_csv(const bz_analysis *analysis, const bz_evaluation *e, bz_buf *out); /* a row each */
void bz_report_evaluation_json(const bz_analysis *analysis, const bz_evaluation *e, bz_json *j); /* an object */
void bz_report_text(const bz_analysis *analysis, bz_buf *out);
void bz_report_sweep(const bz_analysis *analysis, int n, bz_buf *out); /* a row each: models, batches, systems */
void bz_report_json(const bz_findings *r, bz_buf *out);
void bz_report_csv(const bz_analysis *analysis, int n, bz_buf *out);
/* All of it. The CSV has a row for each layer, or for each of the `models`. */
void bz_report_findings(const bz_findings *r, bool models, bz_form form, bz_buf *out);

/* The graph in the DOT language with the critical path in red. */
void bz_report_dot(const bz_analysis *analysis, bz_buf *out);

/* One page that needs nothing else: opened from a disk, sent by mail. What stands in models and profiles
 * is data in it, and neither markup nor script. */
void bz_report_html(const bz_findings *r, bz_buf *out);
/* The same page of a document that --json prints, "predict" or "predict-errors"; `text`: the same for those who read without scripts. */
void bz_report_document_page(const char *title, const char *json, const char *text, bz_buf *out);

/* The graph for that page, as HTML: a picture, or for big graphs a picture of parts and one of each part
 * that is opened. At most *budget nodes are drawn; what was drawn is taken off it. */
void bz_report_graph(const bz_analysis *analysis, int number, int *budget, bz_buf *out);

/* The text has at most so many rows. */
void bz_report_compare(const bz_compare *c, int rows, bz_form form, bz_buf *out);
void bz_report_set(const bz_compare_set *s, int rows, bz_form form, bz_buf *out);

/* Its text: the answer, the facts, the advice, the tables. */
void bz_report_recording_text(const bz_recording *r, bz_buf *out);

/* The layers of models, or each unique one of all of them once: tables, JSON or CSV. */
typedef struct bz_layers_view {
    bool json, csv;
    bool fold;                   /* without those that do not depend on the model's inputs */
    const bz_patterns *patterns; /* also where they fit; NULL: without */
    bool phases;                 /* some models are iterations of training */
} bz_layers_view;
struct bz_training;
void bz_report_training(const struct bz_training *t, bz_buf *out);     /* its phases, and the memory that it needs */
void bz_report_training_json(const struct bz_training *t, bz_json *j); /* a member "training" */
/* Which batch fits into memory, by the number of parts of which only the borders are kept. */
struct bz_memory_fit;
typedef struct bz_fit_report {
    const char *model, *text; /* text: of the memory */
    double memory;            /* bytes */
    const struct bz_memory_fit *row;
    int n;
    const char *why; /* there is no largest batch */
} bz_fit_report;
void bz_report_training_fit(const bz_fit_report *f, bool json, bz_buf *out);
void bz_report_layers_sizes(bz_layers *const *layers, int n, bool fold,
                            bz_buf *out); /* a row each: what changes with sizes */
void bz_report_layers(bz_layers *const *layers, int n, const bz_layers_view *s, bz_buf *out);
void bz_report_unique_layers(bz_layers *const *layers, int n, const bz_layers_view *s, bz_buf *out);

/* The systems that a database in the folder `dir` knows; records of it, in the order of bz_perfdb_pick. */
void bz_report_database(const char *dir, const bz_stock *list, size_t n, bz_form form, bz_buf *out);
void bz_report_records(const char *dir, const bz_record *list, size_t n, bz_form form, bz_buf *out);

/* The machine at hand, and the systems that a database knows. */
typedef struct bz_systems {
    const bz_line *here; /* its processor, and its GPU where there is one */
    int n_here;
    const bz_system_facts *facts; /* of the processor, as the database knows it; NULL: it does not */
    const char *where;            /* the database's folder */
    bool database;                /* it is there */
    const bz_stock *stock;
    size_t n;
} bz_systems;
void bz_report_systems_text(const bz_systems *s, bz_buf *out); /* goes on behind bz_bench_text */
void bz_report_systems_json(const bz_systems *s, bz_buf *out);

/* What an iteration would take after a change; `all`: everything that applies was tried, or a sweep. The answer is a sentence or
 * two; the text begins with it. The list tells the transformations that there are. */
void bz_report_whatif_answer(const bz_whatif *w, bool all, bz_buf *out);
void bz_report_whatif_text(const bz_whatif *w, bool all, bz_buf *out);
void bz_report_whatif_json(const bz_whatif *w, bz_buf *out);
void bz_report_whatif_list(bz_buf *out);
void bz_report_whatif_list_json(bz_buf *out);
/* A page with both time lines, or with the first one where nothing was changed. */
void bz_report_whatif_page(const bz_whatif_shown *shown, const char *recording, bool all, bz_buf *out);

/* What models take on machines without records, and how far off such predictions are. */
typedef struct bz_price {
    const char *machine;
    double dollars; /* an hour */
} bz_price;
typedef struct bz_price_list {
    bz_price *price;
    int n;
} bz_price_list;
/* From a file of lines with a system's name and the price of an hour on it. */
int bz_price_list_read(const char *path, bz_arena *arena, bz_price_list *out, bz_error *err);
/* The iteration of a recording on other systems: one prediction for each, named after it. `from`: what it was recorded on. */
void bz_report_moved(const bz_whatif *w, const char *from, const bz_price_list *prices, bz_form form, bz_buf *out);
/* Dollars of an hour on a system, also by what stands before its @; NAN: no price. */
double bz_price_of(const bz_price_list *prices, const char *machine);
void bz_report_forecasts(const bz_forecast *f, int n, const bz_price_list *prices, bz_form form, bz_buf *out);
/* Either rounds of judgements, or forecasts. */
typedef struct bz_predictions {
    const bz_judgement *round; /* NULL: forecasts */
    const bz_forecast *forecast;
    const bz_price_list *prices;
    int n;
} bz_predictions;
void bz_report_predictions(const bz_predictions *p, bz_form form, bz_buf *out);
void bz_report_predictions_page(const bz_predictions *p, bz_buf *out);

/* Benchmarks that were written into a folder; what became of those that ran. */
typedef struct bz_gen_report {
    const char *folder;
    bool chosen;    /* those that tell most */
    double seconds; /* that measuring them should take; NAN: nobody asked */
} bz_gen_report;
void bz_report_gen(const bz_plan *plan, const bz_gen_report *g, bool json, bz_buf *out);
void bz_report_run(const bz_bench *run, bool json, bz_buf *out);

/* What a check of a database found; what came out of a damaged one; what went in from `from`, as an object or a line. */
void bz_report_check(const bz_perfdb_check_report *r, const char *dir, bool json, bz_buf *out);
void bz_report_salvage(const bz_perfdb_salvage_report *r, bz_buf *out);
void bz_report_import_text(const char *from, const bz_perfdb_import_report *r, bz_buf *out);
void bz_report_import_json(const char *from, const bz_perfdb_import_report *r, bz_json *j);

/* What is wrong with a machine for measuring. */
void bz_report_doctor_text(const bz_doctor *d, bz_buf *out);
void bz_report_doctor_json(const bz_doctor *d, bz_buf *out);

/* The tables of a recording: one with its first `top` rows, or the first ones of all that are telling; which there are. The JSON
 * has all rows, and where `kind` is NULL all tables that have some. */
void bz_report_tables_text(bz_tables *m, const bz_table_kind *kind, int top, bz_buf *out);
void bz_report_tables_overview(bz_tables *m, int top, bz_buf *out);
void bz_report_tables_json(bz_tables *m, const bz_table_kind *kind, const char *file, bz_buf *out);
void bz_report_tables_csv(bz_tables *m, const bz_table_kind *kind, bz_buf *out);
void bz_report_tables_names(bz_buf *out);
void bz_report_tables_names_json(bz_buf *out);

/* Models as sequences of layers; `why` [b->n]: why one is no file or has no time, NULL where it is and has. */
typedef struct bz_bricks_report {
    const bz_bricks *b;
    const char *const *why; /* [b->n]: NULL, or why a sequence has no file or no time */
    const double *hot;      /* [b->n]: its calls each by itself, with operands in the caches; NAN. NULL: of none */
    const bz_brick_rules *rules;
    const bz_sheet *advice; /* what people want to read where it is asked for; NULL */
} bz_bricks_report;
void bz_report_bricks_text(const bz_bricks_report *r, bz_buf *out);
void bz_report_bricks_json(const bz_bricks_report *r, bz_buf *out);

/* What moving data costs: the lines, or each point, or what `bytes` take where these are given (else 0). What they make of it
 * lives in the arena. */
void bz_report_transfers_text(const bz_transfers *t, bool points, double bytes, bz_arena *arena, bz_buf *out);
void bz_report_transfers_json(const bz_transfers *t, double bytes, bz_arena *arena, bz_buf *out);
void bz_report_transfers_page(const bz_transfers *t, bool points, double bytes, bz_arena *arena, bz_buf *out);

#endif
