/* benanza bricks: models as sequences of layers, each unique one a file, and what models take by what these take. */
#include "cli/db.h"
#include "cli/planning.h"
#include "replay/replay.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

enum { USUAL = 1, MOST_JOINTS = 1000 };

typedef struct bricks_job {
    bz_job job;
    planning p;
    int64_t most, cuts;
    bool replay, no_run, advise;
    bz_list rules, prices;
    const char *each, *remeasure;
    bz_brick_files files;
    bz_brick_replays replays;
    bz_price_list price_of;
    bz_bricks b;
    const bz_sheet *advice;
    bz_brick_rules rule;
    bz_models models;
} bricks_job;

static const bz_option OPTIONS[] = {
    BZ_COUNT("G|layers", bricks_job, most, "N", "at most N layers in a sequence (1)"),
    BZ_VALUE("o|output", bricks_job, files.folder, "DIR",
             "write each unique sequence into this folder as an ONNX file"),
    BZ_FLAG("weights", bricks_job, b.weights, "keep the weights in these files: they compute what the model does",
            .with = "output"),
    BZ_VALUE(
        "exec", bricks_job, files.command, "CMD",
        "run CMD for each of these files, and for the models; {model} in it is the file's name, "
        "and the last word "
        "that it prints is the time in seconds. {list} is a file that names some of them, a line each, so that they "
        "can take turns, and the last words are their times. What was measured stays in DIR/times.tsv",
        .with = "output"),
    BZ_COUNT(
        "cuts", bricks_job, cuts, "N",
        "run also N joints, each two sequences that follow each other as one file: what the two take longer is what a "
        "cut adds, and is taken off for each cut",
        .with = "exec"),
    BZ_FLAG(
        "fusions", bricks_job, b.fusions,
        "begin a sequence at each convolution and each other product, so that what runtimes fuse behind these stays "
        "together"),
    BZ_FLAG("replay", bricks_job, replay,
            "run each sequence and each model here as 'benanza replay' does, and store their times as records"),
    BZ_FLAG("no-run", bricks_job, no_run, "run nothing, use what the database has", .with = "replay"),
    BZ_FLAG("overlap", bricks_job, b.overlap,
            "use all sequences of up to N layers, which may share layers: a model takes what its cheapest cover by "
            "them takes"),
    BZ_VALUE("each", bricks_job, each, "S", "count S seconds more for each sequence (0)"),
    BZ_LIST("rule", bricks_job, rules, "KIND=FACTOR",
            "count FACTOR times as much for sequences that begin with a layer of this kind; may be repeated"),
    BZ_FLAG("advise", bricks_job, advise,
            "by the records, tell what each model takes on each system, the fastest system first; with --system, which "
            "model is fastest there"),
    BZ_LIST("price", bricks_job, prices, "SYSTEM=DOLLARS", "what an hour of this system costs; may be repeated",
            .with = "advise"),
    PLANNING_DEVICE_OPTION,
    BZ_JSON_OPTION,
    BZ_VALUE("time-limit", bricks_job, replays.time_limit, "S", "measure each for S seconds (0.2)",
             .use = bz_option_seconds),
    PLANNING_REMEASURE_OPTION(bricks_job, remeasure),
    MODEL_BATCH_OPTION(bricks_job, p.models),
    PLANNING_SWEEP_OPTIONS(bricks_job, p),
    PLANNING_SYSTEM_OPTION(bricks_job, p),
    {0},
};

/* "conv=1.1": sequences that begin with a convolution take 1.1 times as long. */
static int read_rules(bricks_job *j, bz_error *err)
{
    j->rule.each = j->each ? bz_option_number(j->each) : 0;
    if (!isfinite(j->rule.each))
        return bz_fail(err, BZ_USAGE, "--each takes seconds, not '%s'", j->each);
    for (int i = 0; i < j->rules.n; i++) {
        const char *text = j->rules.item[i], *at = strchr(text, '=');
        double factor = at && at != text ? bz_option_number(at + 1) : NAN;
        if (!(factor >= 0 && isfinite(factor)))
            return bz_fail(err, BZ_USAGE, "--rule takes KIND=FACTOR such as conv=1.1, not '%s'", text);
        if (j->rule.n_kinds == (int)(sizeof j->rule.kind / sizeof *j->rule.kind))
            return bz_fail(err, BZ_USAGE, "--rule takes up to %d kinds", j->rule.n_kinds);
        j->rule.kind[j->rule.n_kinds].kind = bz_arena_strn(&j->job.arena, text, (size_t)(at - text));
        j->rule.kind[j->rule.n_kinds++].factor = factor;
    }
    return 0;
}

/* "t4=0.35": an hour of this system costs so much. */
static int read_prices(bricks_job *j, bz_error *err)
{
    for (int i = 0; i < j->prices.n; i++) {
        const char *text = j->prices.item[i], *at = strrchr(text, '=');
        double v = at && at != text ? bz_option_number(at + 1) : NAN;
        if (!(v >= 0 && isfinite(v)))
            return bz_fail(err, BZ_USAGE, "--price takes SYSTEM=DOLLARS for an hour, not '%s'", text);
        BZ_ARENA_ADD(&j->job.arena, j->price_of.price, j->price_of.n) =
            (bz_price){bz_arena_strn(&j->job.arena, text, (size_t)(at - text)), v};
    }
    return 0;
}

#define CUT "layers output weights overlap fusions each rule json " MODEL_READS

/* Only what looks at records looks at what chooses them. */
static int check_given(const bricks_job *j, bz_error *err)
{
    if (j->advise)
        return bz_job_reads(&j->job, "--advise, which runs nothing", CUT "advise price system " PLANNING_READS, err);
    if (!j->replay)
        return bz_job_reads(&j->job, "sequences without --replay or --advise", CUT "exec cuts", err);
    return j->no_run || j->p.system
               ? bz_job_reads_no(&j->job, "records that are looked up", "device time-limit remeasure", err)
               : 0;
}

static int check(bricks_job *j, const bz_list *paths, bz_error *err)
{
    if (!paths->n)
        return bz_fail(err, BZ_USAGE, "name models: benanza bricks MODEL...");
    if (j->advise && (j->files.command || j->replay))
        return bz_fail(err, BZ_USAGE, "--advise only looks up: it goes without --exec and --replay");
    if (j->files.command && j->replay)
        return bz_fail(err, BZ_USAGE, "--exec and --replay are two ways to run the sequences: name one");
    if (j->files.command &&
        ((!strstr(j->files.command, "{model}") && !j->files.in_turns) || strpbrk(j->files.command, "\t\n")))
        return bz_fail(err, BZ_USAGE,
                       "--exec takes a command of one line with {model} or {list} where the file's name belongs");
    if (j->b.overlap && (j->b.fusions || j->cuts))
        return bz_fail(err, BZ_USAGE, "--overlap takes all sequences: it goes without --fusions and --cuts");
    return check_given(j, err) || read_prices(j, err) || read_rules(j, err) ? -1 : 0;
}

BZ_ENDS(end_bricks, bz_bricks_free)

/* The records that --replay and --advise look at. */
static int open_records(bricks_job *j, bz_error *err)
{
    bz_brick_replays *r = &j->replays;
    if (planning_setting(&j->p, &r->setting, err) || planning_options(&j->job, &j->p, &r->options, err))
        return -1;
    if (j->advise)
        return bz_db_open(&j->job, true, &r->db, err);
    r->look = j->no_run || j->p.system;
    return bz_remeasure_parse(j->remeasure, &r->again, err) ||
                   planning_system(&j->job, &j->p, r->look, &r->db, &r->system, err)
               ? -1
               : 0;
}

static int bricks(void *job, bz_buf *out, bz_error *err)
{
    bricks_job *j = job;
    bz_arena *arena = &j->job.arena;
    const bz_list *paths = &j->job.arguments;
    const bz_models *m = &j->models;
    j->p.models.as_written = true;
    j->files.in_turns = j->files.command && strstr(j->files.command, "{list}");
    if (check(j, paths, err) || models_load(&j->job, paths, &j->p.models, &j->models, err))
        return -1;
    bz_arena_keep(arena, &j->b, end_bricks);
    j->b.most = j->most ? (int)(j->most < 1 << 20 ? j->most : 1 << 20) : USUAL;
    for (int i = 0; i < m->n; i++)
        bz_bricks_add(&j->b, m->layers[i], bz_file_name(paths->item[i]));
    bz_bricks_join(&j->b, (int)(j->cuts < MOST_JOINTS ? j->cuts : MOST_JOINTS));
    j->files.why = BZ_NEW(arena, const char *, j->b.n);
    if ((j->files.folder && bz_bricks_write(&j->files, &j->b, arena, err)) ||
        ((j->replay || j->advise) && open_records(j, err)) ||
        (j->replay && bz_bricks_replay(&j->replays, &j->b, m->layers, j->files.why, arena, err)) ||
        (j->advise &&
         bz_bricks_advise(&j->replays, j->p.system, &j->price_of, &j->b, &j->rule, arena, &j->advice, err)))
        return -1;
    if (j->files.command)
        bz_bricks_time(&j->files, &j->b, paths->item, paths->n, arena, bz_db_warn, (void *)j->job.command);
    bz_bricks_price_cuts(&j->b, &j->rule.cuts);
    for (int i = 0; i < j->b.n; i++)
        j->job.status = j->files.why[i] ? BZ_INCOMPLETE : j->job.status;
    const bz_bricks_report report = {&j->b, j->files.why, j->replays.hot, &j->rule, j->advice};
    (j->job.json ? bz_report_bricks_json : bz_report_bricks_text)(&report, out);
    return 0;
}

const bz_command bz_command_bricks =
    BZ_COMMAND("bricks", "MODEL... [OPTIONS]",
               "cut models into sequences of layers that run by themselves, and tell what models take by them", OPTIONS,
               bricks_job, bricks);
