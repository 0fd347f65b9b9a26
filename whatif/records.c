/* Durations by records: what a call takes by the best variant, or in another type. A record says what a call took alone; the
 * recording says what it took in the program. So the recording's time is scaled by the ratio of two records, of the variant that
 * was used and of the better one, where both are known. */
#include "whatif/records.h"

#include "explain/explain.h"
#include "whatif/constants.h"

#include <math.h>
#include <stdlib.h>

static int price_text(const bz_whatif_asked *asked, const bz_system *system, const char *problem, const char *variant,
                      double *used, double *best, bz_error *err)
{
    const bz_whatif_records *from = asked->records;
    bz_arena arena = {0};
    bz_record *r;
    size_t n = 0;
    *used = *best = NAN;
    int failed = bz_perfdb_variants(from->db, system, problem, &arena, &r, &n, err);
    for (size_t i = 0; i < n && !failed; i++) {
        if (!bz_record_is_time(&r[i]) || r[i].setting.threads != from->setting.threads ||
            r[i].setting.cache != from->setting.cache)
            continue;
        double s = bz_record_busy(&r[i]);
        *best = *best <= s ? *best : s;
        if (variant && bz_variant_used(variant, r[i].variant.algorithm) && !(*used <= s))
            *used = s;
    }
    bz_arena_free(&arena);
    return failed;
}

/* A program may pad by itself and convolve what it padded; records are of the convolution with its padding. */
int bz_whatif_price_on(const bz_whatif_asked *asked, const bz_system *system, const bz_problem *problem,
                       const char *variant, double *used, double *best, bz_error *err)
{
    bz_problem inside;
    bz_buf text = {0};
    bz_problem_print(problem, &text);
    int failed = price_text(asked, system, bz_buf_text(&text), variant, used, best, err);
    if (!failed && !isfinite(*best) && bz_call_unpad(problem, &inside)) {
        bz_buf_clear(&text);
        bz_problem_print(&inside, &text);
        failed = price_text(asked, system, bz_buf_text(&text), variant, used, best, err);
    }
    bz_buf_free(&text);
    return failed;
}

int bz_whatif_price(const bz_whatif_asked *asked, const bz_problem *problem, const char *variant, double *used,
                    double *best, bz_error *err)
{
    return bz_whatif_price_on(asked, asked->records->system, problem, variant, used, best, err);
}

void bz_whatif_shortest(const bz_flow *flow, int64_t *shortest)
{
    memset(shortest, 0, BZ_TASK_KINDS * sizeof *shortest);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        int64_t *least = &shortest[t->kind];
        if (!t->removed && t->duration > 0 && (!*least || t->duration < *least))
            *least = t->duration;
    }
}

void bz_whatif_grow(bz_flow *flow, uint32_t task, double factor, double above)
{
    double t = (double)flow->task[task].duration, fixed = above < t ? above : t, grown = fixed + (t - fixed) * factor;
    bz_flow_set(flow, task, grown < (double)BZ_FLOW_LONGEST ? (int64_t)(grown + 0.5) : BZ_FLOW_LONGEST);
}

bool bz_whatif_works(const bz_flow *flow, uint32_t task)
{
    const bz_task *t = &flow->task[task];
    return !t->removed && t->call != BZ_NONE && (t->kind == BZ_TASK_KERNEL || t->kind == BZ_TASK_CALL);
}

/* Per call of the trace the time of its tasks in the flow. */
int64_t *bz_whatif_call_times(const bz_flow *flow, const bz_whatif_asked *asked)
{
    size_t n = asked->trace->event[BZ_EVENT_CALL].n;
    int64_t *time = bz_zeroed(n + 1, sizeof *time);
    for (uint32_t i = 0; i < flow->n; i++)
        if (bz_whatif_works(flow, i) && flow->task[i].call < n)
            time[flow->task[i].call] = bz_flow_sum(time[flow->task[i].call], flow->task[i].duration);
    return time;
}

void bz_whatif_scale_calls(bz_flow *flow, const bz_whatif_asked *asked, const double *factor)
{
    size_t n = asked->trace->event[BZ_EVENT_CALL].n;
    for (uint32_t i = 0; i < flow->n; i++)
        if (bz_whatif_works(flow, i) && flow->task[i].call < n && factor[flow->task[i].call] > 0)
            bz_flow_scale(flow, i, factor[flow->task[i].call]);
}

/* ---- best algorithms ------------------------------------------------------------------------ */

typedef struct {
    int calls, priced, faster;
    int64_t before, after;
} tally;

/* factor[call]: best record by the record of what was used, or by what the call took; never above 1. 0: nothing is known. */
static int find_best(const bz_whatif_asked *asked, const int64_t *time, double *factor, tally *sum, bz_error *err)
{
    const bz_trace *t = asked->trace;
    const bz_events *call = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < call->n; i++) {
        double used, best;
        const bz_call *c = time[i] ? bz_call_of(t, i) : NULL;
        if (!c || !c->problem)
            continue;
        sum->calls++;
        if (bz_whatif_price(asked, c->problem, call->variant[i] ? bz_string(t, call->variant[i]) : NULL, &used, &best,
                            err))
            return -1;
        if (!isfinite(best))
            continue;
        double took = 1e-9 * (double)time[i], reference = isfinite(used) ? used : took;
        factor[i] = best < reference && reference > 0 ? best / reference : 1;
        sum->priced++;
        sum->faster += factor[i] < FASTER;
        sum->before = bz_flow_sum(sum->before, time[i]);
        sum->after = bz_flow_sum(sum->after, (int64_t)(factor[i] * (double)time[i]));
    }
    return 0;
}

static int scale_to_best(bz_flow *flow, bz_whatif_asked *asked, tally *sum, bz_error *err)
{
    int64_t *time = bz_whatif_call_times(flow, asked);
    double *factor = bz_zeroed(asked->trace->event[BZ_EVENT_CALL].n + 1, sizeof *factor);
    int failed = find_best(asked, time, factor, sum, err);
    if (!failed)
        bz_whatif_scale_calls(flow, asked, factor);
    free(factor);
    free(time);
    return failed;
}

static void tell(bz_whatif_asked *asked, const tally *sum)
{
    bz_unit_text a, b;
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                     "%d of %d calls have records: %s of them become %s, %d get faster", sum->priced, sum->calls,
                     bz_units_time(a, 1e-9 * (double)sum->before), bz_units_time(b, 1e-9 * (double)sum->after),
                     sum->faster);
    if (sum->priced < sum->calls)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d calls without a record take what they took",
                         sum->calls - sum->priced);
}

int bz_whatif_best(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    tally sum = {0};
    if (!asked->records)
        return bz_whatif_without_records(asked);
    if (scale_to_best(flow, asked, &sum, err))
        return -1;
    if (!sum.faster)
        return bz_whatif_because(
            asked, "of %d calls whose problem is known %d have records, and none of them a faster variant", sum.calls,
            sum.priced);
    tell(asked, &sum);
    return sum.faster;
}

int bz_whatif_scale_to_best(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    tally sum = {0};
    if (scale_to_best(flow, asked, &sum, err))
        return -1;
    if (!sum.priced)
        return bz_whatif_because(asked, "none of the %d calls whose problem is known has a record", sum.calls);
    tell(asked, &sum);
    return sum.priced;
}

/* ---- what a processor need not do again ----------------------------------------------------- */

/* A reorder in front of a call that takes weights in its format made those weights. */
int bz_whatif_prepack(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    (void)err;
    const bz_trace *t = asked->trace;
    int64_t time = 0;
    int n = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *k = &flow->task[i], *next;
        if (k->removed || k->kind != BZ_TASK_CALL || k->event_kind != BZ_EVENT_CALL || strcmp(k->name, "reorder") != 0)
            continue;
        const bz_call *reorder = bz_call_of(t, k->event), *user;
        int near = 0; /* calls behind it that are looked at */
        for (uint32_t at = k->next; at != BZ_NONE && near < CALLS_TO_WEIGHTS; at = next->next, near++) {
            next = &flow->task[at];
            user = next->event_kind == BZ_EVENT_CALL && strcmp(next->name, "reorder") != 0 ? bz_call_of(t, next->event)
                                                                                           : NULL;
            if (!user || !user->problem)
                continue;
            if (reorder->y.format && user->w.format && user->w.blocked && !strcmp(reorder->y.format, user->w.format)) {
                time = bz_flow_sum(time, k->duration);
                bz_flow_remove(flow, i, false);
                n++;
            }
            break;
        }
    }
    if (!n)
        return bz_whatif_because(asked, "no weights are reordered in this recording");
    bz_unit_text text;
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d reorders of weights take %s: done once, ahead", n,
                     bz_units_time(text, 1e-9 * (double)time));
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "weights do not change between iterations",
                     "what the framework does for each goes with it");
    return n;
}
