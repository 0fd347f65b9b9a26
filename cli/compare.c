/* benanza compare: two systems, stacks, dates, exports, profiles or reports. */
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct compare_job {
    bz_job job;
    planning p;
    bool incomplete; /* layers of the models that a side does not know */
    const char *fail_if_slower;
    double limit,
        slower; /* limit: a share, NAN where none is asked for; slower: the second side, NAN where that is not known */
    bool sure;  /* by the intervals */
    int64_t top;
    bz_perfdb *db, *file_db[2]; /* file_db: what a side that is a file was read into */
    bz_side *side[2];
    const char *iterations;
    bz_trace *trace[2]; /* a side that is a profile */
    bz_models models;
    bz_plan *plan;
} compare_job;

static const bz_option OPTIONS[] = {
    BZ_JSON_OPTION,
    BZ_FLAG("csv", bz_job, csv, "print comma-separated values: a row for each problem or layer"),
    BZ_VALUE("fail-if-slower", compare_job, fail_if_slower, "PERCENT",
             "end with status 5 where the second is slower by more than this, for example 5%"),
    BZ_VALUE("iterations", compare_job, iterations, "NAME", "ranges of this name are the iterations of the profiles"),
    BZ_WHOLE("top", compare_job, top, "N", "show at most N rows (12)"),
    MODEL_BATCH_OPTION(compare_job, p.models),
    PLANNING_SWEEP_OPTIONS(compare_job, p),
    {0},
};

static int read_side(compare_job *c, int which, const char *name, bz_error *err)
{
    char *text = bz_arena_str(&c->job.arena, name);
    int64_t until = bz_side_until(text);
    const bz_system *system = NULL;
    bz_perfdb *db;
    if (!access(text, R_OK)) {
        const bz_perfdb_options options = {.warn = bz_db_warn, .user = (void *)&bz_command_compare};
        signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
        if (bz_side_import(text, &options, &c->job.arena, &c->file_db[which], &system, err))
            return -1;
        db = c->file_db[which];
    } else {
        if (!c->db && bz_db_open(&c->job, true, &c->db, err))
            return bz_fail_in(err, "no file '%s' is here", text);
        db = c->db;
        if (bz_perfdb_known(db, text, &system, err))
            return bz_fail_in(err, "no file '%s' is here", text);
    }
    return bz_side_read(db, system, until, c->plan, &c->job.arena, &c->side[which], err);
}

static int read_limit(compare_job *c, bz_error *err)
{
    char *end;
    c->limit = c->slower = NAN;
    if (!c->fail_if_slower)
        return 0;
    double v = strtod(c->fail_if_slower, &end);
    end += *end == '%';
    if (end == c->fail_if_slower || *end || !(v >= 0) || v > 1e6)
        return bz_fail(err, BZ_USAGE, "--fail-if-slower takes per cent, '5%%', not '%s'", c->fail_if_slower);
    c->limit = v / 100;
    return 0;
}

/* What the exit status is. */
static int judge(const void *job)
{
    const compare_job *c = job;
    if (isfinite(c->limit) && c->slower > c->limit && c->sure) {
        fprintf(stderr, "benanza compare: slower by %.1f %%, which is more than %g %%\n", 100 * c->slower,
                100 * c->limit);
        return BZ_WORSE;
    }
    if (isfinite(c->limit) && !(c->slower <= c->limit)) {
        if (isfinite(c->slower))
            bz_warn(&bz_command_compare,
                    "slower by %.1f %%, but that is not certain: the intervals overlap, or a total lacks layers",
                    100 * c->slower);
        return BZ_INCOMPLETE;
    }
    return c->incomplete ? BZ_INCOMPLETE : BZ_OK;
}

static int rows_of(const compare_job *c)
{
    return c->top > 1000000 ? 1000000 : (int)c->top;
}

/* Both sides are profiles, or both are reports. */
static int compare_files(compare_job *c, const bz_list *arguments, bz_buf *out, bz_error *err)
{
    bz_compare_set set;
    bool profiles = c->trace[0];
    if (arguments->n > 2)
        return bz_fail(err, BZ_USAGE, "models are compared on two systems: profiles and reports stand alone");
    if (bz_job_reads(&c->job, profiles ? "a comparison of recordings" : "a comparison of reports",
                     profiles ? "json csv fail-if-slower top iterations" : "json csv fail-if-slower top", err))
        return -1;
    if (bz_compare_files(arguments->item, c->trace, c->iterations, &c->job.arena, &set, err))
        return -1;
    const bz_compare_row *answer = bz_compare_answer(&set);
    c->slower = answer ? answer->b.seconds / answer->a.seconds - 1 : NAN;
    c->sure = answer && answer->verdict == BZ_SLOWER;
    bz_report_set(&set, rows_of(c), bz_form_of(c->job.json, c->job.csv), out);
    return 0;
}

static void free_sides(void *job)
{
    const compare_job *c = job;
    for (int i = 0; i < 2; i++) {
        bz_trace_free(c->trace[i]);
        bz_side_free(c->side[i]);
        bz_perfdb_close(c->file_db[i]);
    }
}

static int compare(void *job, bz_buf *out, bz_error *err)
{
    compare_job *c = job;
    const bz_list *arguments = &c->job.arguments;
    bz_list models = {.item = arguments->item + 2, .n = arguments->n - 2};
    bz_compare result;
    bz_setting setting;
    bz_arena_keep(&c->job.arena, c, free_sides);
    if (read_limit(c, err))
        return -1;
    if (arguments->n < 2)
        return bz_fail(err, BZ_USAGE, "name two systems or files: benanza compare A B [MODEL...]");
    bz_side_kind kind;
    if (bz_sides_kind(arguments->item, c->trace, &kind, err))
        return -1;
    if ((c->job.json || c->job.csv) && bz_job_reads_no(&c->job, "--json and --csv, which have all rows", "top", err))
        return -1;
    if (kind != BZ_SIDE_RECORDS)
        return compare_files(c, arguments, out, err);
    if (models.n ? bz_job_reads_no(&c->job, "a comparison of records", "iterations", err)
                 : bz_job_reads(&c->job, "a comparison without models", "json csv fail-if-slower top db", err))
        return -1;
    if (planning_setting(&c->p, &setting, err))
        return -1;
    if (models.n && (models_load(&c->job, &models, &c->p.models, &c->models, err) ||
                     planning_plan(&c->job, &c->p, &c->models, &c->plan, err)))
        return -1;
    if (read_side(c, 0, arguments->item[0], err) || read_side(c, 1, arguments->item[1], err))
        return -1;
    if (models.n) {
        bz_compare_layers(c->side[0], c->side[1], c->plan, &setting, &c->job.arena, &result);
        c->incomplete = result.only_a || result.only_b || result.neither;
    } else {
        bz_compare_problems(c->side[0], c->side[1], &c->job.arena, &result);
    }
    c->slower = bz_compare_slower(&result, &c->sure);
    result.name_a = arguments->item[0];
    result.name_b = arguments->item[1];
    bz_report_compare(&result, rows_of(c), bz_form_of(c->job.json, c->job.csv), out);
    return 0;
}

const bz_command bz_command_compare = BZ_COMMAND(
    "compare", "A B [MODEL...] [OPTIONS]", "compare two systems, library versions, dates, profiles or reports", OPTIONS,
    compare_job, compare, .usual = &(const compare_job){.top = 12, .limit = NAN}, .judge = judge);
