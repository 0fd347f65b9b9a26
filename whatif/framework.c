/* What a framework takes between library calls, and on how many threads these run. */
#include "whatif/layers.h"
#include "whatif/records.h"

#include <math.h>

/* Nobody knows which part of a longer time a program is spared: at the dear end it keeps all. */
int bz_whatif_framework(bz_flow *flow, bz_whatif_asked *asked)
{
    bz_layer_map map;
    bz_tally gaps = {0};
    if (!bz_layer_map_make(flow, asked, &map))
        return 0;
    bool *layers = BZ_NEW(asked->arena, bool, map.n_tasks + 1);
    for (int i = 0; i < map.n; i++)
        if (map.place[i].task == BZ_NONE && map.place[i].behind != BZ_NONE)
            layers[map.place[i].behind] = true;
    bool inside = false; /* between two tasks with layers that nobody recorded */
    for (uint32_t i = flow->main == BZ_NONE ? BZ_NONE : flow->lane[flow->main].first; i != BZ_NONE;
         i = flow->task[i].next) {
        bz_task *t = &flow->task[i];
        if (i < map.n_tasks && map.works[i])
            inside = layers[i];
        if (inside || t->kind != BZ_TASK_CALL || t->gap <= map.call[1])
            continue;
        int64_t was = t->gap;
        t->gap = asked->side != 2 ? map.call[asked->side] : was;
        bz_tally_add(&gaps, was, t->gap);
    }
    if (!gaps.n)
        return bz_whatif_because(
            asked, "no time between two calls is longer than that of calls that follow each other at once");
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "the recording's own calls that follow each other at once",
                     "%d times between calls, without layers in them, become as short as those: %s become %s; nobody "
                     "knows how much of it a program is spared",
                     gaps.n, BZ_SAY_TALLY(gaps));
    return gaps.n;
}

typedef struct {
    const bz_whatif_asked *now;
    bz_whatif_asked then;
    int priced;
} pricing;

/* Records with as many threads by those with the recording's. */
static int by_threads(void *user, const bz_priced_call *call, double *factor)
{
    pricing *of = user;
    double was, is;
    if (bz_whatif_price(of->now, call->problem, NULL, NULL, &was) ||
        bz_whatif_price(&of->then, call->problem, NULL, NULL, &is))
        return -1;
    if (isfinite(was) && isfinite(is) && was > 0) {
        *factor = is / was;
        of->priced++;
    }
    return 0;
}

int bz_whatif_threads(bz_flow *flow, bz_whatif_asked *asked)
{
    bz_call_factors calls;
    if (!asked->records)
        return bz_whatif_without_records(asked);
    bz_whatif_records others = *asked->records;
    pricing of = {asked, *asked, 0};
    others.setting.threads = (int)bz_whatif_number(asked, "n");
    of.then.records = &others;
    if (bz_whatif_factors(flow, asked, by_threads, &of, &calls))
        return -1;
    bz_whatif_scale_calls(flow, asked, calls.factor);
    if (!of.priced)
        return bz_whatif_because(asked,
                                 "none of %d calls whose problem is known has records with %d threads and with %d",
                                 calls.calls, asked->records->setting.threads, others.setting.threads);
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                     "%d of %d calls have records with %d threads and with %d; the others take what they took",
                     of.priced, calls.calls, asked->records->setting.threads, others.setting.threads);
    return of.priced;
}
