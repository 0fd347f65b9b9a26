/* Sequences of layers run by the libraries, each a replay of its own, all of them one program; their times are records. Sequences of a model run in
 * turns, one run of each behind the others: so each finds the caches as it does in the model. */
#include "bench/bench.h"
#include "replay/constants.h"
#include "replay/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char USUAL_LIMIT[] = "0.2"; /* seconds of measuring, as much again for the calls by themselves */

/* A sequence or a model that is to be run. */
typedef struct piece {
    int number; /* of the sequence; behind them of the model */
    int of;     /* the model whose sequences it takes turns with, and that with them */
    bool known; /* the database has it: it takes its turn for the others' sake */
    const char *problem, *why;
    bz_model *model; /* NULL: a model of the user's */
    bz_layers *layers;
    bz_replay_plan *plan;
} piece;

typedef struct replaying {
    bz_brick_replays *r;
    bz_bricks *b;
    const char **why;
    bz_arena *arena;
    piece *piece;
    int n;
    bz_plan *plan;          /* of all pieces and their models: what they are replayed by points into it */
    bz_replay_plan **whole; /* of each model that has a piece; NULL where none can be made */
    const bz_peaks *peaks;
} replaying;

/* Sequences run in turns and in the layout of the model's other layers (`brings`), and as its plan has them: those that were once measured did not. */
static bz_variant variant_of(const replaying *w, int number)
{
    const char *name = number < w->b->n
                           ? (w->r->options.patterns ? "fused plan as in the model" : "plan as in the model")
                           : (w->r->options.patterns ? "fused plan" : "plan");
    return (bz_variant){"replay", name, "any", "default"};
}

static const char *problem_of(const replaying *w, int number)
{
    return bz_brick_problem(number < w->b->n ? w->b->brick[number].key : w->b->model[number - w->b->n].key, w->arena);
}

static void keep(replaying *w, int number, const bz_record *r)
{
    bool good = r->status == BZ_RECORD_OK;
    if (number >= w->b->n) {
        w->b->model[number - w->b->n].measured = good ? r->median : (double)NAN;
        return;
    }
    w->b->brick[number].seconds = good ? r->median : (double)NAN;
    const char *hot = good && r->meta ? strstr(r->meta, "\"hot\":") : NULL;
    w->r->hot[number] = hot ? strtod(hot + strlen("\"hot\":"), NULL) : (double)NAN;
    w->why[number] = good ? NULL : bz_arena_str(w->arena, r->reason);
}

/* True where the database lacks it. */
static int look_up(replaying *w, int number, bool *lacks, bz_error *err)
{
    const bz_variant v = variant_of(w, number);
    bz_record *r = NULL;
    *lacks = true;
    if (!w->r->system ||
        bz_perfdb_find(w->r->db, w->r->system, problem_of(w, number), &v, &w->r->setting, w->arena, &r, err))
        return w->r->system ? -1 : 0;
    if (r && bz_record_cause_of(r) == BZ_CAUSE_LASTING && bz_records_keep(r, 1, &w->r->again)) {
        keep(w, number, r);
        *lacks = false;
    }
    return 0;
}

/* Whether an action brings inputs from rows into the layout that calls want, or outputs back: the model's other layers leave and take them as they
 * are. */
static bool brings(const piece *p, const bz_replay_action *a)
{
    bool outside = a->step < 0;
    for (int k = 0; a->step >= 0 && k < p->plan->step[a->step].n_in; k++) {
        int v = p->plan->step[a->step].in[k];
        outside |= v >= 0 && p->plan->value[v].source == BZ_VALUE_INPUT;
    }
    return outside && (a->kind == BZ_REPLAY_CONVERT || a->kind == BZ_REPLAY_COPY);
}

static int put(replaying *w, const piece *p, const bz_replay_result *result, bz_record_status status,
               const char *reason, bz_error *err)
{
    bz_record r = bz_record_blank();
    double hot = 0, brought = 0;
    if (p->known)
        return 0;
    r.system = w->r->system->name;
    r.problem = p->problem;
    r.variant = variant_of(w, p->number);
    r.setting = w->r->setting;
    r.status = status;
    r.reason = reason;
    r.checked = "skipped";
    r.meta = "";
    r.timing = BZ_TIMING_WALL;
    r.date = time(NULL);
    if (status == BZ_RECORD_OK) {
        for (int i = 0; i < result->n; i++)
            if (p->number < w->b->n && brings(p, &result->action[i]))
                brought += fmax(0, result->action[i].seconds);
            else
                hot += result->action[i].hot;
        double rest = fmax(1e-9, 1 - brought / result->median);
        r.median = rest * result->median, r.low = rest * result->low, r.high = rest * result->high;
        r.min = rest * result->min;
        r.n = result->samples, r.iterations = (int64_t)result->samples * result->runs;
        r.throttled = result->throttled;
        if (hot > 0)
            r.meta = bz_arena_printf(w->arena, "{\"hot\":%.9g}", hot);
    }
    w->r->measured += status == BZ_RECORD_OK;
    w->r->failed += status != BZ_RECORD_OK;
    keep(w, p->number, &r);
    return bz_perfdb_put(w->r->db, &r, 1, NULL, err);
}

/* The sequence as a model of its own, without weights. */
static int load(replaying *w, piece *p, bz_error *err)
{
    BZ_SCOPED(bz_buf) file = {0};
    return bz_bricks_save(w->b, p->number, &file, err) ||
                   bz_model_parse(file.data, file.len, "sequence", &p->model, err) ||
                   bz_layers_infer(p->model, &(bz_infer_options){0}, &p->layers, err)
               ? -1
               : 0;
}

/* Number i of what is planned: a piece, or behind them a whole model that is none. */
static int make_plan(const replaying *w, const bz_prices *prices, int i, const char *name, bz_layers *layers,
                     bool within, bz_replay_plan **out, bz_error *err)
{
    const bz_brick_replays *r = w->r;
    const bz_replay_input in = {.model = name,
                                .layers = layers,
                                .plan = w->plan,
                                .number = i,
                                .fuse = r->options.patterns != NULL,
                                .dtype = r->options.dtype,
                                .db = r->db,
                                .system = r->system,
                                .prices = prices,
                                .within = within,
                                .setting = r->setting,
                                .peaks = w->peaks};
    return bz_replay_make(&in, out, err);
}

/* By the records of their calls, where there are any, else as the library chooses; and those of a sequence as its whole model's plan has them: a
 * concatenation alone would be in rows, and takes ten times as long there as between convolutions. What cannot be run is a record that says so. */
static int make_plans(replaying *w, bz_layers *const *models, bz_error *err)
{
    const bz_bricks *b = w->b;
    int most = w->n + b->n_models, n = w->n, kept = 0;
    bz_layers **layers = BZ_NEW(w->arena, bz_layers *, most + 1);
    const char **name = BZ_NEW(w->arena, const char *, most + 1);
    int *number = BZ_NEW(w->arena, int, b->n_models + 1); /* 1 + that of the whole model */
    bz_prices *prices;
    for (int i = 0; i < w->n; i++) {
        layers[i] = w->piece[i].layers, name[i] = w->piece[i].problem;
        if (w->piece[i].number >= b->n)
            number[w->piece[i].of] = i + 1;
    }
    for (int i = 0, m; i < w->n; i++)
        if (!number[m = w->piece[i].of]) {
            layers[n] = models[m], name[n] = b->model[m].name;
            number[m] = ++n;
        }
    w->plan = bz_plan_of(&w->r->options, layers, name, n);
    w->peaks = bz_replay_peaks(w->r->db, w->r->system, &w->r->setting, w->arena);
    w->whole = BZ_NEW(w->arena, bz_replay_plan *, b->n_models + 1);
    const char **lacks = BZ_NEW(w->arena, const char *, b->n_models + 1); /* why there is none */
    int rc = bz_prices_load(w->plan, w->r->db, w->r->system, &w->r->setting, w->arena, &prices, err);
    for (int m = 0; m < b->n_models && !rc; m++) {
        bz_error why;
        if (number[m] && make_plan(w, prices, number[m] - 1, b->model[m].name, models[m], false, &w->whole[m], &why)) {
            w->whole[m] = NULL;
            lacks[m] = bz_arena_str(w->arena, why.text);
        }
    }
    for (int i = 0; i < w->n && !rc; i++) {
        piece *p = &w->piece[i];
        bool within = p->number < b->n;
        const char *no = within ? NULL : lacks[p->of];
        bz_error why;
        if (within && make_plan(w, prices, i, "sequence", p->layers, true, &p->plan, &why))
            no = why.text;
        if (no) {
            rc = put(w, p, NULL, BZ_RECORD_UNSUPPORTED, no, err);
            continue;
        }
        if (!within)
            p->plan = w->whole[p->of];
        else if (w->whole[p->of])
            bz_replay_follow_whole(p->plan, w->whole[p->of], &b->brick[p->number]);
        w->piece[kept++] = *p;
    }
    w->n = kept; /* also behind an error: the others have no plan, or moved */
    return rc;
}

/* Pieces first … last - 1 in turns. */
static int run_pieces(replaying *w, int first, int last, const char *program, bz_error *err)
{
    char numbers[48], threads[24];
    const char *limit = w->r->time_limit ? w->r->time_limit : USUAL_LIMIT, *clock = bz_setting_clock(&w->r->setting);
    char *argv[13] = {(char *)program, numbers,           (char *)"--threads", threads,        (char *)"--time-limit",
                      (char *)limit,   (char *)"--alone", (char *)limit,       (char *)"--hot"};
    int n = 9;
    if (clock)
        argv[n++] = (char *)"--lock-clock", argv[n++] = (char *)clock;
    if (last - first > 1 && w->piece[last - 1].number >= w->b->n)
        argv[n++] = (char *)"--whole";
    BZ_SCOPED(bz_buf) text = {0};
    bz_error why;
    snprintf(numbers, sizeof numbers, "%d-%d", first, last - 1);
    snprintf(threads, sizeof threads, "%d", w->r->setting.threads);
    int bad = bz_bench_output(argv, &text, &why), rc = 0;
    char *line, *rest = (char *)bz_buf_text(&text);
    if (bz_bench_stopped())
        rc = bz_fail(err, BZ_FAILED, "stopped; %d records are stored, running again goes on behind them",
                     w->r->measured);
    for (int i = first; i < last && !rc; i++) {
        bz_replay_result result = {0};
        line = strsep(&rest, "\n");
        bool good = !bad && line && !bz_replay_read(w->piece[i].plan, line, strlen(line), &result, &why);
        if (good)
            rc = put(w, &w->piece[i], &result, BZ_RECORD_OK, "", err);
        else if (last - first == 1)
            rc = put(w, &w->piece[i], NULL, BZ_RECORD_TIMEOUT, "it crashed, or gave no sign of life for ten minutes",
                     err);
        else if (!w->piece[i].known) /* one of them ends the others: each by itself */
            rc = run_pieces(w, i, i + 1, program, err);
        bz_arena_free(&result.arena);
    }
    return rc;
}

/* Sequences of the model that the first one is of and that model, as many as fit into memory: so drift of the machine hits both alike. */
static int turn_from(const replaying *w, int first)
{
    double bytes = 0;
    int last = first;
    for (; last < w->n && w->piece[last].of == w->piece[first].of; last++) {
        bz_totals totals;
        bz_totals_make(w->piece[last].layers, true, &totals);
        bytes += sizeof(float) * (double)totals.params;
        if (last > first && bytes > TURN_BYTES)
            break;
    }
    return last;
}

static int run_all(replaying *w, bz_error *err)
{
    char folder[BZ_FOLDER_MAX], program[BZ_FOLDER_MAX + 32];
    const bz_replay_plan **plan = BZ_NEW(w->arena, const bz_replay_plan *, w->n + 1);
    for (int i = 0; i < w->n; i++)
        plan[i] = w->piece[i].plan;
    bz_bench_hold();
    int rc = bz_folder_make(folder, err);
    if (!rc) {
        snprintf(program, sizeof program, "%s/build/replay", folder);
        rc = bz_replay_generate_all(plan, w->n, folder, err);
        bool unbuilt = !rc && bz_bench_build(folder, err);
        rc = rc || unbuilt ? -1 : 0;
        bz_progress progress = bz_progress_start("running sequences", w->n);
        for (int i = 0, next; i < w->n && !rc; i = next) {
            next = turn_from(w, i);
            rc = run_pieces(w, i, next, program, err);
            bz_progress_at(&progress, next, NULL);
        }
        bz_progress_end(&progress);
        if (!unbuilt || bz_bench_stopped())
            bz_folder_remove(folder);
    }
    bz_bench_release();
    return rc ? -1 : 0;
}

static int measure(replaying *w, bz_layers *const *models, bz_error *err)
{
    int lacking = w->n, rc;
    w->n = 0;
    for (int i = 0; i < lacking; i++) {
        piece *p = &w->piece[i];
        bz_error why;
        if (p->number >= w->b->n)
            p->layers = models[p->number - w->b->n];
        else if (load(w, p, &why)) {
            if (!p->known)
                w->why[p->number] = bz_arena_str(w->arena, why.text);
            bz_layers_free(p->layers);
            bz_model_free(p->model);
            continue;
        }
        w->piece[w->n++] = *p;
    }
    int loaded = w->n;
    piece *all = bz_arena_dup(w->arena, w->piece, (size_t)loaded * sizeof *all);
    rc = (w->n && (make_plans(w, models, err) || (w->n && run_all(w, err)))) ? -1 : 0;
    for (int i = 0; i < w->n; i++)
        if (w->piece[i].number < w->b->n)
            bz_replay_free(w->piece[i].plan);
    for (int m = 0; w->whole && m < w->b->n_models; m++)
        bz_replay_free(w->whole[m]);
    bz_plan_free(w->plan);
    for (int i = 0; i < loaded; i++)
        if (all[i].model) {
            bz_layers_free(all[i].layers);
            bz_model_free(all[i].model);
        }
    return rc;
}

/* Sequences that the database lacks, each with the model that has it first. Where these are few, others of that model take turns with them. */
static void gather(replaying *w, const bool *lacks)
{
    bz_bricks *b = w->b;
    int *of = BZ_NEW(w->arena, int, b->n + 1); /* 1 + the last model with which it takes turns */
    for (int m = 0; m < b->n_models; m++) {
        const bz_brick_model *model = &b->model[m];
        int begin = w->n;
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < model->n && (!pass || (w->n > begin && w->n - begin < FEWEST_IN_TURN)); k++) {
                int i = model->brick[k];
                if (pass ? of[i] == m + 1 : of[i] || !lacks[i])
                    continue;
                of[i] = m + 1;
                w->piece[w->n++] = (piece){.number = i, .of = m, .known = pass, .problem = problem_of(w, i)};
            }
        if (lacks[b->n + m])
            w->piece[w->n++] = (piece){.number = b->n + m, .of = m, .problem = problem_of(w, b->n + m)};
    }
}

int bz_bricks_replay(bz_brick_replays *r, bz_bricks *b, bz_layers *const *models, const char **why, bz_arena *arena,
                     bz_error *err)
{
    replaying w = {.r = r, .b = b, .why = why, .arena = arena};
    int n = b->n + b->n_models;
    bool *lacks = BZ_NEW(arena, bool, n + 1);
    r->hot = BZ_NEW(arena, double, b->n + 1);
    for (int i = 0; i < b->n; i++)
        r->hot[i] = NAN;
    for (int i = 0; i < n; i++)
        if (look_up(&w, i, &lacks[i], err))
            return -1;
    w.piece = BZ_NEW(arena, piece, n + b->n_models * FEWEST_IN_TURN);
    gather(&w, lacks);
    return w.n && !r->look ? measure(&w, models, err) : 0;
}
