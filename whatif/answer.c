/* Before, simulated, after. */
#include "base/sort.h"
#include "perfdb/perfdb.h"
#include "predict/predict.h"
#include "whatif/constants.h"
#include "whatif/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const int64_t *bz_whatif_steady(const bz_trace *t, bz_arena *arena, uint32_t *n)
{
    int64_t *v = BZ_NEW(arena, int64_t, t->n_iterations + 1);
    *n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i))
            v[(*n)++] = bz_iteration_latency(t, i);
    bz_sort_times(v, *n);
    return v;
}

/* Half of what the middle half of the steady iterations spans, relative to the median. */
static void find_spread(bz_arena *arena, bz_whatif *out)
{
    uint32_t n;
    const int64_t *v = bz_whatif_steady(out->flow->trace, arena, &n);
    out->steady = n;
    if (n >= 2) {
        uint32_t quarter = (n - 1) / 4, three = 3 * (n - 1) / 4;
        int64_t middle = v[(n - 1) / 2];
        out->spread = middle > 0 ? 0.5 * (double)(v[three] - v[quarter]) / (double)middle : 0;
    }
}

double bz_whatif_interval(const bz_trace *t, int64_t *steady)
{
    uint32_t n;
    BZ_SCOPED(bz_arena) arena = {0};
    const int64_t *v = bz_whatif_steady(t, &arena, &n);
    uint32_t below = n ? (n - 1) / 2 : 0, above = n / 2, quarter = n / 4, three = 3 * n / 4;
    double median = ((double)v[below] + (double)v[above]) / 2;
    double half = n >= 2 && median > 0 ? 1.57 * (double)(v[three] - v[quarter]) / sqrt(n) / median : ONE_ITERATION;
    *steady = n ? n : 1;
    return half;
}

double bz_whatif_noise(const bz_trace *t)
{
    int64_t steady;
    return fmax(PROCESSES, bz_whatif_interval(t, &steady));
}

bool bz_prediction_guesses(const bz_prediction *p)
{
    for (int k = 0; k < p->n_assumed; k++)
        if (p->assumed[k].how == BZ_ASSUMED_GUESSED)
            return true;
    return false;
}

/* What it takes without what a recorder adds to it: at the most, in the middle, at the least. Also where the device is busy all the time: a change may
 * make it wait. */
static int begin_unrecorded(bz_whatif *w, bz_arena *work, bz_error *err)
{
    const bz_recorder_cost cost = bz_recorder_adds(w->flow->trace, w->flow->iteration);
    const double adds[BZ_WHATIF_SIDES] = {cost.most, (cost.least + cost.most) / 2, cost.least};
    BZ_SCOPED(bz_flow) flow = {0};
    int failed = 0;
    for (int k = 0; k < BZ_WHATIF_SIDES && cost.matters && !failed; k++) {
        w->adds[k] = (int64_t)(1000 * adds[k]);
        bz_flow_copy(w->flow, &flow);
        bz_flow_without_recorder(&flow, w->adds[k], w->adds[k]);
        failed = bz_flow_time(&flow, work, NULL, &w->unrecorded[k], err);
    }
    return failed;
}

int bz_whatif_begin(const bz_flow *flow, bz_arena *arena, bz_whatif *out, bz_error *err)
{
    bz_simulated s;
    BZ_SCOPED(bz_arena) work = {0};
    *out = (bz_whatif){.flow = flow, .measured = flow->measured};
    int failed = bz_flow_time(flow, &work, &s, &out->simulated, err);
    if (!failed) {
        out->error = fabs((double)(out->simulated - out->measured)) / (double)out->measured;
        find_spread(&work, out);
        out->noise = bz_whatif_noise(flow->trace);
        bz_flow_split_make(flow, &s, &out->split);
        bz_flow_critical(flow, &s, arena, &out->critical);
        failed = begin_unrecorded(out, &work, err);
    }
    return failed;
}

/* The flow of `w`, without `adds` ns of its recorder, becomes `flow`; applies all, with their values of one side. Returns tasks changed, -1 where it
 * failed; *none is the first that changed nothing. */
static int apply_all(bz_flow *flow, const bz_whatif *w, bz_whatif_asked *asked, int n, int side, int64_t adds,
                     bz_arena *arena, const bz_whatif_asked **none, bz_error *err)
{
    int changed = 0;
    bz_flow_copy(w->flow, flow);
    if (adds)
        bz_flow_without_recorder(flow, adds, adds);
    for (int i = 0; i < n; i++) {
        asked[i].unrecorded = adds > 0;
        asked[i].side = side;
        asked[i].trace = w->flow->trace;
        asked[i].records = w->records;
        asked[i].model = w->model;
        asked[i].arena = arena;
        asked[i].err = err;
        asked[i].n_assumed = 0; /* what was said before went with its memory */
        asked[i].because = asked[i].unsure = NULL;
        const char *back = asked[i].row->inference ? bz_flow_trains(flow) : NULL;
        int c = back ? bz_whatif_because(&asked[i],
                                         "the recording is of a training (%s): weights change in every iteration", back)
                     : asked[i].row->apply(flow, &asked[i]);
        if (c < 0)
            return bz_fail_in(err, "%s", asked[i].row->name);
        if (!c && !*none)
            *none = &asked[i];
        changed += c;
    }
    return changed;
}

static const char *name_all(const bz_whatif_asked *asked, int n, bz_arena *arena)
{
    bz_buf text = {0};
    for (int i = 0; i < n; i++)
        bz_buf_printf(&text, "%s%s", i ? " + " : "", asked[i].row->name);
    return bz_buf_keep(&text, arena);
}

static void gather_assumed(const bz_whatif_asked *asked, int n, bz_arena *arena, bz_prediction *p)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += asked[i].n_assumed;
    bz_assumed *all = BZ_NEW(arena, bz_assumed, total + 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < asked[i].n_assumed; k++) {
            const bz_assumed *a = &asked[i].assumed[k];
            all[p->n_assumed++] = (bz_assumed){bz_arena_str(arena, a->what), a->how, bz_arena_str(arena, a->from)};
        }
    p->assumed = all;
}

/* The interval: the times of the three sides, wider by the simulation's own error, by the spread of the recording, and by how far the process that
 * has the change is from one that has not. What changes nothing is the recording itself. */
static void widen(const bz_whatif *w, int64_t least, int64_t most, bz_prediction *p)
{
    double part = w->error + w->spread + (p->changed ? w->noise : 0);
    p->low = (int64_t)((double)least * (1 - fmin(part, 1))); /* iterations may differ by more than they take */
    p->high = (int64_t)((double)most * (1 + part));
}

/* Does the answer have an interval of its own: is some number a range, or predicted? */
static bool has_range(const bz_whatif_asked *asked, int n)
{
    for (int i = 0; i < n; i++) {
        if (asked[i].row->ranges)
            return true;
        for (int k = 0; k < BZ_WHATIF_PARAMETERS && asked[i].row->parameter[k].name; k++)
            if (asked[i].value[k][0] < asked[i].value[k][2])
                return true;
    }
    return false;
}

/* What the transformations said while they ran, before their memory goes. */
static void keep_words(const bz_whatif_asked *asked, int n, const bz_whatif_asked *none, bz_arena *arena,
                       bz_prediction *p)
{
    p->because = none && none->because ? bz_arena_str(arena, none->because) : NULL;
    for (int i = 0; i < n && !p->unsure; i++)
        p->unsure = asked[i].unsure ? bz_arena_str(arena, asked[i].unsure) : NULL;
    gather_assumed(asked, n, arena, p);
}

bool bz_whatif_differs_unrecorded(const bz_whatif *w, const bz_prediction *p)
{
    const double simulated = (double)w->simulated, least = UNRECORDED_LEAST * simulated;
    return w->adds[1] && p->changed &&
           (simulated - (double)w->unrecorded[0] > least ||
            fabs(simulated - (double)(p->time + p->unrecorded)) > least);
}

/* What all of `asked` gain by their values of one side; without `adds` ns of the recorder. */
static int try_side(const bz_whatif *w, bz_whatif_asked *asked, int n, int side, int64_t adds, bz_flow *work,
                    int64_t *gain, bz_error *err)
{
    BZ_SCOPED(bz_arena) memory = {0};
    const bz_whatif_asked *none = NULL;
    int64_t time = 0;
    int failed = apply_all(work, w, asked, n, side, adds, &memory, &none, err) < 0 ||
                 bz_flow_time(work, &memory, NULL, &time, err);
    *gain = (adds ? w->unrecorded[side] : w->simulated) - time;
    return failed;
}

/* What is gained where nobody records: of the three sides, each with what the recorder may add. */
static int gain_unrecorded(bz_whatif_asked *asked, int n, const bz_whatif *w, bz_flow *work, bz_prediction *p,
                           bz_error *err)
{
    int64_t gain[BZ_WHATIF_SIDES];
    double noise = (w->error + w->spread + w->noise) * (double)w->unrecorded[1];
    for (int k = 0; k < BZ_WHATIF_SIDES; k++)
        if (try_side(w, asked, n, k, w->adds[k], work, &gain[k], err))
            return -1;
    p->unrecorded = gain[1];
    bz_sort_times(gain, BZ_WHATIF_SIDES);
    p->unrecorded_low = gain[0] - (int64_t)noise;
    p->unrecorded_high = gain[BZ_WHATIF_SIDES - 1] + (int64_t)noise;
    return 0;
}

/* The flow with the usual numbers first: where that changes nothing, or nothing is a range, it is all. `work` is memory that
 * is used again; `after`, where somebody wants it, gets the flow with the usual numbers. */
static int predict(bz_whatif_asked *asked, int n, bz_arena *arena, const bz_whatif *w, bz_flow *work, bz_flow *after,
                   bz_simulated *simulated, bz_prediction *p, bz_error *err)
{
    static const int SIDES[BZ_WHATIF_SIDES] = {1, 0, 2};
    int64_t least = INT64_MAX, most = 0;
    const bz_whatif_asked *none = NULL;
    bool range = has_range(asked, n);
    *p = (bz_prediction){.name = name_all(asked, n, arena)};
    for (int k = 0; k < BZ_WHATIF_SIDES && (!k || (range && p->changed)); k++) {
        BZ_SCOPED(bz_arena) memory = {0};
        bz_flow *flow = after && !k ? after : work;
        bz_simulated s;
        int64_t time = 0;
        int changed = apply_all(flow, w, asked, n, SIDES[k], 0, &memory, &none, err);
        bool same = !changed && !after; /* the recording's own flow, which was simulated */
        int failed = changed < 0 || (!same && bz_flow_time(flow, after && !k ? arena : &memory, &s, &time, err));
        time = same ? w->simulated : time;
        least = time < least ? time : least;
        most = time > most ? time : most;
        if (!failed && !k) {
            p->changed = changed;
            keep_words(asked, n, none, arena, p);
            p->time = time;
            p->split = w->split;
            p->critical = w->critical;
        }
        if (!failed && !k && !same) {
            bz_flow_split_make(flow, &s, &p->split);
            bz_flow_critical(flow, &s, arena, &p->critical);
            if (after)
                *simulated = s;
        }
        if (failed)
            return -1;
    }
    widen(w, least, most, p);
    if (w->adds[1] && p->changed && gain_unrecorded(asked, n, w, work, p, err))
        return -1;
    p->gain = bz_whatif_differs_unrecorded(w, p) ? p->unrecorded : w->simulated - p->time;
    return 0;
}

void bz_whatif_say_unrecorded(const bz_whatif *w, const bz_prediction *p, bz_buf *out)
{
    bz_buf_printf(out,
                  "without what the recorder adds, %.3g to %.3g µs for each operator and call, the iteration takes %s "
                  "(%s to %s), and %s less (%s to %s) with the change",
                  1e-3 * (double)w->adds[2], 1e-3 * (double)w->adds[0], BZ_SAY_NS(w->unrecorded[1]),
                  BZ_SAY_NS(w->unrecorded[0]), BZ_SAY_NS(w->unrecorded[2]), BZ_SAY_NS(p->unrecorded),
                  BZ_SAY_NS(p->unrecorded_low), BZ_SAY_NS(p->unrecorded_high));
}

int bz_whatif_predict(bz_whatif_asked *asked, int n, bz_arena *arena, bz_whatif *out, bz_flow *after,
                      bz_simulated *simulated, bz_error *err)
{
    bz_prediction p;
    BZ_SCOPED(bz_flow) work = {0};
    int failed = predict(asked, n, arena, out, &work, after, simulated, &p, err);
    if (!failed)
        BZ_ARENA_ADD(arena, out->prediction, out->n) = p;
    return failed;
}

BZ_SORTS(by_gain, bz_prediction,
         BZ_THEN(!p->changed - !q->changed, BZ_THEN(BZ_ORDER(q->gain, p->gain), strcmp(p->name, q->name))));

/* A transformation that gains something by itself, and what is tried of it behind others. */
typedef struct {
    bz_whatif_asked asked;
    bz_prediction alone;
    int64_t gain; /* with all that were chosen by now */
    bool used;
} candidate;

/* Of those left the one with which most is gained; NULL where none gains more than `now`. */
static candidate *find_best(candidate *list, int n, int64_t now)
{
    candidate *best = NULL;
    for (int i = 0; i < n; i++)
        if (!list[i].used && list[i].gain > (best ? best->gain : now))
            best = &list[i];
    return best;
}

/* Adds, as long as something gains at least TOGETHER_LEAST more, the transformation that gains most with those before it. Those are applied
 * anew each time: a flow that keeps them would be as large as the recording's. */
static int try_together(candidate *list, int n, bz_arena *arena, bz_flow *work, bz_whatif *out, bz_error *err)
{
    bz_whatif_asked *chosen = BZ_NEW(arena, bz_whatif_asked, n + 1);
    int64_t now = 0, adds = 0;
    for (int i = 0; i < n; i++)
        if (bz_whatif_differs_unrecorded(out, &list[i].alone))
            adds = out->adds[1];
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < n && k; i++) {
            chosen[k] = list[i].asked;
            if (!list[i].used && try_side(out, chosen, k + 1, 1, adds, work, &list[i].gain, err))
                return -1;
        }
        candidate *best = find_best(list, n, now);
        if (!best || (double)(best->gain - now) < TOGETHER_LEAST * (double)out->simulated)
            return 0;
        bz_prediction p = best->alone;
        chosen[k] = best->asked;
        if (k && predict(chosen, k + 1, arena, out, work, NULL, NULL, &p, err))
            return -1;
        best->used = true;
        now = best->gain;
        out->together = chosen;
        BZ_ARENA_ADD(arena, out->greedy, out->n_greedy) = p;
    }
    return 0;
}

/* All that can be tried by itself; *found of `list` change something. */
static int try_alone(bz_arena *arena, bz_flow *work, bz_whatif *out, candidate *list, int *found, bz_error *err)
{
    int n;
    const bz_transformation *rows = bz_transformations(&n);
    for (int i = 0; i < n; i++) {
        candidate *c = &list[*found];
        if (!rows[i].alone)
            continue;
        if (bz_whatif_parse(rows[i].name, arena, &c->asked, err) ||
            predict(&c->asked, 1, arena, out, work, NULL, NULL, &c->alone, err))
            return -1;
        BZ_ARENA_ADD(arena, out->prediction, out->n) = c->alone;
        c->gain = c->alone.gain;
        *found += c->alone.changed > 0;
    }
    return 0;
}

int bz_whatif_try_all(bz_arena *arena, bz_whatif *out, bz_error *err)
{
    int n, found = 0;
    BZ_SCOPED(bz_flow) work = {0};
    bz_transformations(&n);
    candidate *list = BZ_NEW(arena, candidate, n + 1);
    int failed = try_alone(arena, &work, out, list, &found, err);
    if (out->n && !failed)
        qsort(out->prediction, (size_t)out->n, sizeof *out->prediction, by_gain);
    return failed || try_together(list, found, arena, &work, out, err) ? -1 : 0;
}

static void free_shown(void *thing)
{
    bz_whatif_shown *s = thing;
    bz_flow_free(&s->flow);
    bz_flow_free(&s->changed);
}

/* Milliseconds, or a recording of the program really changed. */
static int read_actual(const bz_whatif_question *q, int64_t *out, bz_error *err)
{
    char *end;
    double ms = strtod(q->actual, &end);
    if (end != q->actual && !*end && access(q->actual, F_OK)) {
        if (!(ms > 0) || ms > 1e9)
            return bz_fail(err, BZ_USAGE, "--actual wants milliseconds above 0, or a recording");
        *out = (int64_t)(1e6 * ms);
        return 0;
    }
    if (end != q->actual && access(q->actual, F_OK))
        return bz_fail(err, BZ_USAGE, "--actual takes milliseconds, a number, or a recording, not '%s'", q->actual);
    bz_trace *t = bz_trace_new();
    BZ_SCOPED(bz_flow) flow = {0};
    int failed =
        bz_trace_read(t, &q->actual, 1, q->iterations, err) || bz_flow_make(t, bz_typical_iteration(t), &flow, err);
    *out = flow.measured;
    bz_trace_free(t);
    return failed ? -1 : 0;
}

int bz_whatif_origin(const bz_trace *t, const char *named, bz_whatif_records *records, bz_arena *arena, bz_error *err)
{
    bz_machine machine;
    records->device = named ? named : bz_trace_told(t, "gpu");
    if (!records->device || !*records->device)
        return bz_fail(err, BZ_USAGE,
                       "the recording does not say what it was recorded on: name the system with --from");
    if (bz_perfdb_system(records->db, records->device, &records->system, err))
        return -1;
    if (!records->system && bz_machine_named(records->device, arena, &machine, err))
        return bz_fail_in(err, "what the recording is of");
    records->name = bz_arena_printf(arena, "records of %s", records->system ? records->system->name : records->device);
    return 0;
}

/* "link:times=1,2,4" as "link:times=1" and so on. */
static int split(const char *sweep, bz_arena *arena, const char ***each, bz_error *err)
{
    const char *values = strchr(sweep, '=');
    int n = 0;
    if (!values || !strchr(sweep, ':') || !values[1])
        return bz_fail(err, BZ_USAGE, "--sweep wants NAME:KEY=VALUE,VALUE,...");
    for (const char *at = values + 1; *at; n++) {
        int length = (int)strcspn(at, ",");
        BZ_ARENA_ROOM(arena, *each, n);
        (*each)[n] = bz_arena_printf(arena, "%.*s=%.*s", (int)(values - sweep), sweep, length, at);
        at += length + (at[length] == ',');
    }
    return n;
}

/* Each behind the first n - 1 of `asked`. */
static int ask_each(const bz_whatif_question *q, bz_whatif_asked *asked, int n, bz_arena *arena, bz_whatif *w,
                    bz_error *err)
{
    const char **each = NULL;
    int values = q->sweep ? split(q->sweep, arena, &each, err) : q->n_systems;
    for (int i = 0; i < values; i++) {
        const char *text = q->sweep ? each[i] : bz_arena_printf(arena, "system=%s", q->system[i]);
        bz_buf name = {0};
        if (bz_whatif_parse(text, arena, &asked[n - 1], err) || bz_whatif_predict(asked, n, arena, w, NULL, NULL, err))
            return -1;
        for (int k = 0; k < n - 1; k++)
            bz_buf_printf(&name, "%s + ", asked[k].row->name);
        bz_buf_puts(&name, q->sweep ? text : q->system[i]);
        w->prediction[w->n - 1].name = bz_buf_keep(&name, arena);
    }
    return values < 0 ? -1 : 0;
}

int bz_whatif_ask(const bz_trace *trace, const bz_whatif_question *q, bz_arena *arena, bz_whatif_shown *out,
                  bz_error *err)
{
    bz_whatif *w = &out->whatif;
    bz_whatif_asked *asked = BZ_NEW(arena, bz_whatif_asked, q->n + 1);
    bz_arena_keep(arena, out, free_shown);
    if (bz_flow_make(trace, bz_typical_iteration(trace), &out->flow, err))
        return -1;
    out->flow.literal = q->literal;
    if (bz_whatif_begin(&out->flow, arena, w, err))
        return -1;
    if (w->error > BZ_WHATIF_REFUSE && !q->force)
        return bz_fail(err, BZ_INCOMPLETE,
                       "the unchanged graph is simulated %.1f %% off what was measured, above %.0f %%: no prediction "
                       "stands on that%s",
                       100 * w->error, 100 * BZ_WHATIF_REFUSE, q->n_systems ? "" : "; --force predicts all the same");
    if (q->actual && read_actual(q, &w->actual, err))
        return -1;
    w->records = q->records;
    for (int i = 0; i < q->n; i++)
        if (bz_whatif_parse(q->change[i], arena, &asked[i], err))
            return -1;
    int failed = q->sweep || q->n_systems ? ask_each(q, asked, q->n + 1, arena, w, err)
                 : q->n                   ? bz_whatif_predict(asked, q->n, arena, w, &out->changed, &out->after, err)
                                          : bz_whatif_try_all(arena, w, err);
    return failed || (q->shown && bz_flow_simulate(&out->flow, arena, &out->before, err)) ? -1 : 0;
}

const bz_whatif_shown *bz_whatif_show(const bz_trace *trace, const bz_whatif_records *records, bz_arena *arena)
{
    bz_whatif_shown *s = BZ_NEW(arena, bz_whatif_shown, 1);
    bz_whatif *w = &s->whatif;
    bz_prediction again;
    bz_error err;
    bz_arena_keep(arena, s, free_shown);
    if (bz_flow_make(trace, bz_typical_iteration(trace), &s->flow, &err))
        return NULL;
    if (s->flow.n > BZ_WHATIF_SHOWN) {
        s->why = bz_arena_printf(
            arena,
            "The iteration has %u tasks, more than the %d of which a page tries all changes: 'benanza whatif' does.",
            s->flow.n, BZ_WHATIF_SHOWN);
        return s;
    }
    if (bz_whatif_begin(&s->flow, arena, w, &err) || bz_flow_simulate(&s->flow, arena, &s->before, &err))
        return NULL;
    if (w->error > BZ_WHATIF_REFUSE) {
        s->why = bz_arena_printf(arena,
                                 "The unchanged graph is simulated %.0f %% off what was measured, above %.0f %%: no "
                                 "prediction stands on that.",
                                 100 * w->error, 100 * BZ_WHATIF_REFUSE);
        return s;
    }
    w->records = records;
    BZ_SCOPED(bz_flow) work = {0};
    int failed = bz_whatif_try_all(arena, w, &err) || (w->n_greedy && predict(w->together, w->n_greedy, arena, w, &work,
                                                                              &s->changed, &s->after, &again, &err));
    return failed ? NULL : s;
}
