/* What a framework takes between library calls, and on how many threads these run. */
#include "whatif/layers.h"
#include "whatif/records.h"

#include <math.h>
#include <stdlib.h>

/* Nobody knows which part of a longer time a program is spared: at the dear end it keeps all. */
int bz_whatif_framework(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    bz_layer_map map;
    int64_t before = 0, after = 0;
    int n = 0;
    (void)err;
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
        before = bz_flow_sum(before, t->gap);
        if (asked->side != 2)
            t->gap = map.call[asked->side];
        after = bz_flow_sum(after, t->gap);
        n++;
    }
    if (!n)
        return bz_whatif_because(
            asked, "no time between two calls is longer than that of calls that follow each other at once");
    bz_unit_text x, y;
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "the recording's own calls that follow each other at once",
                     "%d times between calls, without layers in them, become as short as those: %s become %s; nobody "
                     "knows how much of it a program is spared",
                     n, bz_units_time(x, 1e-9 * (double)before), bz_units_time(y, 1e-9 * (double)after));
    return n;
}

/* factor[call]: records with as many threads by those with the recording's. */
static int find_factors(const bz_whatif_asked *now, const bz_whatif_asked *then, const int64_t *time, double *factor,
                        int *calls, int *priced, bz_error *err)
{
    const bz_trace *t = now->trace;
    for (size_t i = 0; i < t->event[BZ_EVENT_CALL].n; i++) {
        double used, was, is;
        const bz_call *c = time[i] ? bz_call_of(t, i) : NULL;
        if (!c || !c->problem)
            continue;
        ++*calls;
        if (bz_whatif_price(now, c->problem, NULL, &used, &was, err) ||
            bz_whatif_price(then, c->problem, NULL, &used, &is, err))
            return -1;
        if (!isfinite(was) || !isfinite(is) || was <= 0)
            continue;
        factor[i] = is / was;
        ++*priced;
    }
    return 0;
}

int bz_whatif_threads(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    int calls = 0, priced = 0;
    if (!asked->records)
        return bz_whatif_without_records(asked);
    bz_whatif_records others = *asked->records;
    bz_whatif_asked then = *asked;
    others.setting.threads = (int)bz_whatif_number(asked, "n");
    then.records = &others;
    int64_t *time = bz_whatif_call_times(flow, asked);
    double *factor = bz_zeroed(asked->trace->event[BZ_EVENT_CALL].n + 1, sizeof *factor);
    int failed = find_factors(asked, &then, time, factor, &calls, &priced, err);
    if (!failed)
        bz_whatif_scale_calls(flow, asked, factor);
    free(factor);
    free(time);
    if (failed)
        return -1;
    if (!priced)
        return bz_whatif_because(asked,
                                 "none of %d calls whose problem is known has records with %d threads and with %d",
                                 calls, asked->records->setting.threads, others.setting.threads);
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                     "%d of %d calls have records with %d threads and with %d; the others take what they took", priced,
                     calls, asked->records->setting.threads, others.setting.threads);
    return priced;
}
