/* Durations by records: what a call takes by the best variant, or in another type. A record says what a call took alone; the
 * recording says what it took in the program. So the recording's time is scaled by the ratio of two records, of the variant that
 * was used and of the better one, where both are known. */
#include "whatif/records.h"

#include "explain/explain.h"
#include "whatif/constants.h"

#include <math.h>
#include <stdlib.h>

static int price(const bz_whatif_asked *asked, const bz_system *system, const bz_problem *problem, const char *variant,
                 double *used, double *best)
{
    const bz_whatif_records *from = asked->records;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_record *r;
    size_t n = 0;
    double ignored;
    used = used ? used : &ignored;
    *used = *best = NAN;
    int failed = bz_perfdb_variants(from->db, system, bz_problem_text(problem, &arena), &arena, &r, &n, asked->err);
    for (size_t i = 0; i < n && !failed; i++) {
        if (!bz_record_is_time(&r[i]) || r[i].setting.threads != from->setting.threads ||
            r[i].setting.cache != from->setting.cache)
            continue;
        double s = bz_record_busy(&r[i]);
        *best = *best <= s ? *best : s;
        if (variant && bz_variant_used(variant, r[i].variant.algorithm) && !(*used <= s))
            *used = s;
    }
    return failed;
}

/* A program may pad by itself and convolve what it padded; records are of the convolution with its padding. */
int bz_whatif_price_on(const bz_whatif_asked *asked, const bz_system *system, const bz_problem *problem,
                       const char *variant, double *used, double *best)
{
    bz_problem inside;
    if (price(asked, system, problem, variant, used, best))
        return -1;
    return !isfinite(*best) && bz_call_unpad(problem, &inside) ? price(asked, system, &inside, variant, used, best) : 0;
}

int bz_whatif_price(const bz_whatif_asked *asked, const bz_problem *problem, const char *variant, double *used,
                    double *best)
{
    return bz_whatif_price_on(asked, asked->records->system, problem, variant, used, best);
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

int bz_whatif_factors(const bz_flow *flow, const bz_whatif_asked *asked, bz_call_factor *of, void *user,
                      bz_call_factors *out)
{
    size_t n = asked->trace->event[BZ_EVENT_CALL].n;
    int64_t *time = BZ_NEW(asked->arena, int64_t, n + 1);
    *out = (bz_call_factors){.factor = BZ_NEW(asked->arena, double, n + 1)};
    for (uint32_t i = 0; i < flow->n; i++)
        if (bz_whatif_works(flow, i) && flow->task[i].call < n)
            time[flow->task[i].call] = bz_flow_sum(time[flow->task[i].call], flow->task[i].duration);
    for (size_t i = 0; i < n; i++) {
        const bz_call *c = time[i] ? bz_call_of(asked->trace, i) : NULL;
        if (!c || !c->problem)
            continue;
        out->calls++;
        if (of(user, &(bz_priced_call){i, c->problem, time[i]}, &out->factor[i]))
            return -1;
        if (out->factor[i] > 0)
            bz_tally_add(&out->scaled, time[i], (int64_t)(out->factor[i] * (double)time[i]));
    }
    return 0;
}

void bz_whatif_scale_calls(bz_flow *flow, const bz_whatif_asked *asked, const double *factor)
{
    size_t n = asked->trace->event[BZ_EVENT_CALL].n;
    for (uint32_t i = 0; i < flow->n; i++)
        if (bz_whatif_works(flow, i) && flow->task[i].call < n && factor[flow->task[i].call] > 0)
            bz_flow_scale(flow, i, factor[flow->task[i].call]);
}

typedef struct {
    const bz_whatif_asked *asked;
    bz_call_factors of;
    int priced, faster;
} tally;

/* Best record by the record of what was used, or by what the call took; never above 1. */
static int best_of(void *user, const bz_priced_call *call, double *factor)
{
    tally *sum = user;
    const bz_trace *t = sum->asked->trace;
    uint32_t variant = t->event[BZ_EVENT_CALL].variant[call->call];
    double used, best;
    if (bz_whatif_price(sum->asked, call->problem, variant ? bz_string(t, variant) : NULL, &used, &best))
        return -1;
    if (!isfinite(best))
        return 0;
    double took = 1e-9 * (double)call->time, reference = isfinite(used) ? used : took;
    *factor = best < reference && reference > 0 ? best / reference : 1;
    sum->priced++;
    sum->faster += *factor < FASTER;
    return 0;
}

static int scale_to_best(bz_flow *flow, bz_whatif_asked *asked, tally *sum)
{
    *sum = (tally){.asked = asked};
    if (bz_whatif_factors(flow, asked, best_of, sum, &sum->of))
        return -1;
    bz_whatif_scale_calls(flow, asked, sum->of.factor);
    return 0;
}

static void tell(bz_whatif_asked *asked, const tally *sum)
{
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                     "%d of %d calls have records: %s of them become %s, %d get faster", sum->priced, sum->of.calls,
                     BZ_SAY_TALLY(sum->of.scaled), sum->faster);
    if (sum->priced < sum->of.calls)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d calls without a record take what they took",
                         sum->of.calls - sum->priced);
}

int bz_whatif_best(bz_flow *flow, bz_whatif_asked *asked)
{
    tally sum;
    if (!asked->records)
        return bz_whatif_without_records(asked);
    if (scale_to_best(flow, asked, &sum))
        return -1;
    if (!sum.faster)
        return bz_whatif_because(
            asked, "of %d calls whose problem is known %d have records, and none of them a faster variant",
            sum.of.calls, sum.priced);
    tell(asked, &sum);
    return sum.faster;
}

int bz_whatif_scale_to_best(bz_flow *flow, bz_whatif_asked *asked)
{
    tally sum;
    if (scale_to_best(flow, asked, &sum))
        return -1;
    if (!sum.priced)
        return bz_whatif_because(asked, "none of the %d calls whose problem is known has a record", sum.of.calls);
    tell(asked, &sum);
    return sum.priced;
}

/* A reorder in front of a call that takes weights in its format made those weights. */
int bz_whatif_prepack(bz_flow *flow, bz_whatif_asked *asked)
{
    const bz_trace *t = asked->trace;
    bz_tally sum = {0};
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
                bz_tally_add(&sum, k->duration, 0);
                bz_flow_remove(flow, i, false);
            }
            break;
        }
    }
    if (!sum.n)
        return bz_whatif_because(asked, "no weights are reordered in this recording");
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d reorders of weights take %s: done once, ahead",
                     sum.n, BZ_SAY_NS(sum.before));
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "weights do not change between iterations",
                     "what the framework does for each goes with it");
    return sum.n;
}
