/* The passes between reading and asking. */
#include "base/beside.h"
#include "profile/columns.h"
#include "profile/trace.h"

/* Of devices' work alone, and not asked for before iterations are known. */
static void *find_busy(void *trace)
{
    bz_trace_find_busy(trace);
    return NULL;
}

int bz_trace_finish(bz_trace *t, const bz_finish_options *options, bz_error *err)
{
    if (options && bz_iterations_check(options->iterations, err))
        return -1;
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        if (t->event[k].n >= BZ_NONE)
            return bz_fail(err, BZ_BAD_INPUT, "the trace has over four billion %s events: profile a shorter run",
                           bz_event_kind_name((bz_event_kind)k));
        bz_events_trim(&t->event[k], (bz_event_kind)k);
        bz_events_sort(&t->event[k], (bz_event_kind)k, NULL);
    }
    bz_trace_name_kernels(t);
    bz_trace_merge_logs(t);
    t->private->concluded = t->n_coverage;
    bz_trace_link(t);
    bz_beside busy = bz_beside_start(t->event[BZ_EVENT_KERNEL].n, find_busy, t);
    bz_error lacks = {0};
    int rc = bz_trace_find_iterations(t, options ? options->iterations : NULL, &lacks);
    bz_beside_end(&busy);
    bz_trace_find_phases(t);
    bz_trace_find_lag(t);
    bz_trace_end_with_work(t);
    bz_trace_tell_pages(t);
    t->private->concluded_end = t->n_coverage;
    if (rc && !options->recorded)
        return bz_fail(err, lacks.code, "%s: %s", t->n_sources ? bz_string(t, t->source[0].path) : "the recording",
                       lacks.text);
    return 0;
}
