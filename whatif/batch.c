/* More items in an iteration, or fewer: calls by records of the other batch, or by a line through records of two batches; other
 * work grows with the items above the time that the shortest of its sort takes. */
#include "whatif/constants.h"
#include "whatif/layers.h"
#include "whatif/records.h"
#include "whatif/room.h"

#include <math.h>

typedef struct {
    double times, seconds;
} known_batch;

static int probe(const bz_whatif_asked *asked, const bz_problem *p, double times, known_batch *out)
{
    bz_problem other;
    *out = (known_batch){times, NAN};
    return bz_problem_batched(p, times, &other) ? bz_whatif_price(asked, &other, NULL, NULL, &out->seconds) : 0;
}

/* By the line through the two known batches nearest to it on either side, else on the one side that there is. */
static double line_through(const known_batch *b, int n, double times)
{
    int at = 0;
    if (n < 2)
        return NAN;
    while (at < n - 2 && b[at + 1].times < times)
        at++;
    double slope = (b[at + 1].seconds - b[at].seconds) / (b[at + 1].times - b[at].times),
           seconds = b[at].seconds + slope * (times - b[at].times);
    return seconds > 0 ? seconds : NAN;
}

typedef struct {
    const bz_whatif_asked *asked;
    double times;
    bz_call_factors calls;
    int priced, fitted, grown, filled;
    bool between;
    double farther; /* what larger tensors take by the byte, relative to these */
} tally;

/* Of a call: time with so many items by time as it is; 0: no records tell. */
static int factor_of(tally *sum, const bz_problem *p, double *factor)
{
    const bz_whatif_asked *asked = sum->asked;
    double times = sum->times;
    known_batch now, then, list[2 * PROBES];
    int n = 0;
    if (probe(asked, p, 1, &now) || probe(asked, p, times, &then))
        return -1;
    if (isfinite(now.seconds) && isfinite(then.seconds) && now.seconds > 0) {
        *factor = then.seconds / now.seconds;
        sum->priced++;
        return 0;
    }
    for (int k = 1 - PROBES; k < PROBES; k++) {
        if (probe(asked, p, ldexp(1, k), &list[n]))
            return -1;
        n += isfinite(list[n].seconds);
    }
    double was = isfinite(now.seconds) ? now.seconds : line_through(list, n, 1), is = line_through(list, n, times);
    if (was > 0 && is > 0) {
        *factor = is / was;
        sum->fitted++;
    }
    return 0;
}

static int find_factor(void *sum, const bz_priced_call *call, double *factor)
{
    bz_problem inside;
    if (factor_of(sum, call->problem, factor))
        return -1;
    return *factor <= 0 && bz_call_unpad(call->problem, &inside) ? factor_of(sum, &inside, factor) : 0;
}

/* What the update does, and exchanges of gradients, do not depend on the number of items. */
static bool grows(const bz_task *t)
{
    return !t->removed && t->phase != BZ_PHASE_UPDATE &&
           (bz_task_on_device((bz_task_kind)t->kind) || t->kind == BZ_TASK_CALL || t->kind == BZ_TASK_LOAD);
}

/* A product that leaves room on the device takes no longer until it is full. Of kernels that move bytes fewer blocks than fit
 * reach the memory's bandwidth, and some have as many for any number of items. NAN: nothing is known. */
static double filled(const bz_whatif_asked *asked, const bz_whatif_room *room, const bz_task *t)
{
    return bz_kernel_limit_of(bz_whatif_does(asked, t)) == BZ_LIMIT_COMPUTE
               ? bz_whatif_filled(room, asked->trace, t) / bz_whatif_number(asked, "room")
               : NAN;
}

/* Where a processor's library calls are on record and no operators, what lies between them is operators that call no library. */
static bool works_between(const bz_flow *flow, const bz_trace *t)
{
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed &&
            (flow->lane[flow->task[i].lane].device || flow->task[i].event_kind == BZ_EVENT_OP))
            return false;
    return t->event[BZ_EVENT_CALL].n > 0;
}

/* Seconds by the byte of the reorder whose size is nearest. */
static double reorder_rate(const bz_flow *flow, const bz_trace *t, double bytes)
{
    double nearest = INFINITY, rate = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        if (flow->task[i].removed || !bz_layer_is_reorder(&flow->task[i]))
            continue;
        double own = bz_call_bytes(bz_call_of(t, flow->task[i].event));
        double far = own > 0 ? fabs(log(own / bytes)) : INFINITY;
        if (far < nearest) {
            nearest = far;
            rate = (double)flow->task[i].was / own;
        }
    }
    return rate;
}

/* Larger tensors lie farther away: how many times as long by the byte 'times' as large ones take, by the recording's own reorders, which do
 * nothing but move bytes. 1 where it has none. */
static double find_farther(const bz_flow *flow, const bz_whatif_asked *asked, double times)
{
    double before = 0, after = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        if (flow->task[i].removed || !bz_layer_is_reorder(&flow->task[i]))
            continue;
        double own = bz_call_bytes(bz_call_of(asked->trace, flow->task[i].event));
        if (!(own > 0))
            continue;
        before += (double)flow->task[i].was;
        after += reorder_rate(flow, asked->trace, own * times) * own;
    }
    double by = before > 0 ? after / before : 1;
    return times > 1 ? fmax(1, by) : fmin(1, by);
}

/* The share is that of the smaller one of both batches. */
static void grow_between(bz_flow *flow, const bz_whatif_asked *asked, double times, double farther)
{
    double share = bz_whatif_number(asked, "between"),
           by = farther * (times > 1 ? 1 + share * (times - 1) : 1 / (1 + share * (1 / times - 1)));
    for (uint32_t i = 0; i < flow->n; i++) {
        bz_task *t = &flow->task[i];
        double gap = (double)t->gap * by, before = (double)t->not_before * by;
        t->gap = gap < (double)BZ_FLOW_LONGEST ? (int64_t)gap : BZ_FLOW_LONGEST;
        t->not_before = before < (double)BZ_FLOW_LONGEST ? (int64_t)before : BZ_FLOW_LONGEST;
    }
}

static void tell(bz_whatif_asked *asked, const tally *sum)
{
    double times = sum->times;
    if (sum->priced + sum->fitted)
        bz_whatif_assume(asked, sum->fitted ? BZ_ASSUMED_MODELLED : BZ_ASSUMED_MEASURED, asked->records->name,
                         "%d of %d calls have records of both batches, %d lie on a line through others: %s become %s",
                         sum->priced, sum->calls.calls, sum->fitted, BZ_SAY_TALLY(sum->calls.scaled));
    if (sum->grown)
        bz_whatif_assume_parameter(
            asked, "floor", "%d other tasks: what they take above %.3g times the shortest of their sort, times %.4g",
            sum->grown, bz_whatif_number(asked, "floor"), times);
    if (sum->filled)
        bz_whatif_assume_parameter(asked, "room", "of these, %d products grow only once their blocks fill the device",
                                   sum->filled);
    if (sum->farther != 1)
        bz_whatif_assume_parameter(asked, "caches",
                                   "%.3g of it as tensors of %.4g times the bytes do, which take %.3g times as long by "
                                   "the byte in this recording's reorders",
                                   bz_whatif_number(asked, "caches"), times, sum->farther);
    if (sum->between)
        bz_whatif_assume_parameter(asked, "between",
                                   "%.3g of what lies between the calls is operators, whose time is multiplied, too",
                                   bz_whatif_number(asked, "between"));
    else
        bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                         "launches and what the host does besides take what they took; the update, too");
    bz_whatif_assume(asked, BZ_ASSUMED_GIVEN, "asked for", "an iteration computes %.4g times as many items", times);
}

int bz_whatif_batch(bz_flow *flow, bz_whatif_asked *asked)
{
    double times = bz_whatif_number(asked, "times"), floor_of = bz_whatif_number(asked, "floor");
    size_t calls = asked->trace->event[BZ_EVENT_CALL].n;
    int64_t shortest[BZ_TASK_KINDS];
    bz_whatif_room room;
    tally sum = {.asked = asked, .times = times, .calls = {.factor = BZ_NEW(asked->arena, double, calls + 1)}};
    if (asked->records && bz_whatif_factors(flow, asked, find_factor, &sum, &sum.calls))
        return -1;
    sum.farther = find_farther(flow, asked, times);
    double farther = pow(sum.farther, bz_whatif_number(asked, "caches"));
    bz_whatif_room_make(asked->trace, asked->arena, &room);
    bz_whatif_shortest(flow, shortest);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (!grows(t) || (bz_whatif_works(flow, i) && t->call < calls && sum.calls.factor[t->call] > 0))
            continue;
        double full = filled(asked, &room, t);
        bool roomy = isfinite(full);
        bool moves = bz_layer_is_reorder(&flow->task[i]); /* bytes, and nothing else */
        bz_whatif_grow(flow, i,
                       roomy   ? fmax(1, full * times) / fmax(1, full)
                       : moves ? times * farther
                               : times,
                       floor_of * (double)shortest[t->kind]);
        sum.filled += roomy;
        sum.grown++;
    }
    bz_whatif_scale_calls(flow, asked, sum.calls.factor);
    if ((sum.between = works_between(flow, asked->trace)))
        grow_between(flow, asked, times, farther);
    if (!sum.grown && !sum.priced && !sum.fitted)
        return bz_whatif_because(asked, "nothing that works on items is on record");
    tell(asked, &sum);
    return sum.grown + sum.priced + sum.fitted;
}
