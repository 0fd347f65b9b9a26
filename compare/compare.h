/* compare: two systems, stacks, exports, profiles or reports, row by row. */
#ifndef BZ_COMPARE_H
#define BZ_COMPARE_H

#include "explain/explain.h"

/* What one side knows: of every problem and setting the cheapest variant that ran well. */
typedef struct bz_side bz_side;

/* Reads a system's records that the plan takes (NULL: all), none newer than `until` (seconds since 1970; INT64_MAX for all). */
int bz_side_read(bz_perfdb *db, const bz_system *system, int64_t until, const bz_plan *plan, bz_arena *arena,
                 bz_side **out, bz_error *err);
void bz_side_free(bz_side *side); /* NULL is fine; what lives in the arena stays */

/* B against A. The ratio of two medians lies somewhere in an interval, by the records' own; where that
 * is within 2 % of 1, they are the SAME; where it is on one side of 1, B is FASTER or SLOWER; else
 * UNDECIDED. A record without an interval is taken to be off by 2.5 %. */
typedef enum { BZ_SAME, BZ_FASTER, BZ_SLOWER, BZ_UNDECIDED } bz_verdict;
enum { BZ_VERDICTS = BZ_UNDECIDED + 1 };
const char *bz_verdict_name(bz_verdict v); /* "SAME" */

typedef struct bz_span {
    double seconds, low, high;
    bool guessed; /* the interval is */
} bz_span;

/* Of an object with a span and who took that time: members of a struct that has both. */
#define BZ_SPAN_MEMBERS(of, span, by)                                                                                  \
    BZ_MEMBER_AS(of, span.seconds, "seconds"), BZ_MEMBER_AS(of, span.low, "low"), BZ_MEMBER_AS(of, span.high, "high"), \
        BZ_MEMBER_AS(of, span.guessed, "guessed"), BZ_MEMBER_AS(of, by, "variant")

bz_verdict bz_verdict_of(const bz_span *a, const bz_span *b);

/* How well a row answers the question by itself. */
typedef enum { BZ_ANSWERS_NOT, BZ_ANSWERS_BOUND, BZ_ANSWERS_LATENCY } bz_answers;

typedef struct bz_compare_row {
    const char *what;    /* layer key, or problem */
    const char *setting; /* "2 threads, cold", and the clock; NULL where there is one in all */
    int layer;           /* of the plan; -1 where problems are compared */
    double times;
    bz_span a, b;
    const char *variant_a, *variant_b;
    bz_verdict verdict;
    bz_answers answers;
} bz_compare_row;

typedef struct bz_compare {
    const char *name_a, *name_b;
    bz_compare_row *row; /* what both sides know, by weight of the difference */
    int n, count[BZ_VERDICTS], only_a, only_b, neither, guessed;
    double total_a, total_b; /* of what both know */
} bz_compare;

/* Problem by problem; or, with a plan, layer by layer of its models in one setting, each as often as it occurs. */
void bz_compare_problems(const bz_side *a, const bz_side *b, bz_arena *arena, bz_compare *out);
void bz_compare_layers(const bz_side *a, const bz_side *b, const bz_plan *plan, const bz_setting *setting,
                       bz_arena *arena, bz_compare *out);

/* By how much the second side is slower over what both know, as a share: 0.05 is 5 %. NAN where they know nothing in common.
 * *sure: the intervals do not allow that it is as fast. */
double bz_compare_slower(const bz_compare *c, bool *sure);

/* Two profiles, or two reports: several comparisons, and what else is different. */
typedef struct bz_compare_part {
    const char *what; /* "library calls" */
    bz_compare compare;
    bz_compare_row *only[2]; /* what one side has alone: `a` of the first, `b` of the second is filled */
    int n_only[2];
} bz_compare_part;

typedef struct bz_difference {
    const char *what, *a, *b; /* NULL: that side has no such thing */
} bz_difference;

typedef struct bz_compare_set {
    const char *kind; /* "profiles", "reports" */
    const char *name_a, *name_b;
    bz_compare_part *part;
    int n_parts;
    bz_difference *difference;
    int n_differences;
} bz_compare_set;

/* The row that answers the question: the latency of profiles, the sequential bound of reports. NULL where there is none. */
const bz_compare_row *bz_compare_answer(const bz_compare_set *set);

/* Per steady iteration: the latency, library calls by problem (else by name and parameters), outermost
 * operators, kernels by name. A call's time is its kernels' where both traces have kernels. The intervals
 * are the order statistics that hold the median of the iterations in 95 of 100 cases; fewer than six
 * iterations have none and count as off by 2.5 %, or by as much as they scatter. */
int bz_compare_profiles(const bz_trace *a, const bz_trace *b, bz_arena *arena, bz_compare_set *out, bz_error *err);

/* What 'analyze --json' or 'bound --json' wrote: layers by their keys, and the totals, of models of one
 * name and batch (of the two, where each report has one). */
typedef struct bz_report_file bz_report_file;
int bz_report_read(const char *json, size_t n, const char *name, bz_arena *arena, bz_report_file **out, bz_error *err);
int bz_compare_reports(const bz_report_file *a, const bz_report_file *b, bz_arena *arena, bz_compare_set *out,
                       bz_error *err);

/* ---- sides that are files ------------------------------------------------------------------- */

/* What a side is, told by its content: a profile, a report of analyze --json, or (also where it is no file) something that has
 * records. A profile comes read, but not finished; free it with bz_trace_free. *why: why a file that may have records is no profile, else
 * without text. */
typedef enum { BZ_SIDE_RECORDS, BZ_SIDE_PROFILE, BZ_SIDE_REPORT } bz_side_kind;
bz_side_kind bz_side_kind_of(const char *name, bz_trace **trace, bz_error *why);
/* What both sides are. Fails where they are not alike; profiles are to be freed then, too. */
int bz_sides_kind(const char *const name[2], bz_trace *trace[2], bz_side_kind *kind, bz_error *err);

/* "v100:2026-11-22": the end of the day behind the last colon, which is cut off; INT64_MAX where no day stands there. */
int64_t bz_side_until(char *name);

/* Two profiles, as they were told apart (`iterations` may be NULL); or two reports, where `trace` has NULL. */
int bz_compare_files(const char *const path[2], bz_trace *const trace[2], const char *iterations, bz_arena *arena,
                     bz_compare_set *out, bz_error *err);

/* An export, read into a database of its own, which has no name from the moment on that it is open: however this ends, nothing
 * stays. Close *db, also after a failure. */
int bz_side_import(const char *path, const bz_perfdb_options *options, bz_arena *arena, bz_perfdb **db,
                   const bz_system **system, bz_error *err);

#endif
