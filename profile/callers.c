/* Who asked for the library calls: of each back-trace the one frame that a person can do something about. */
#include "base/sort.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

/* How much a frame tells its reader: the program's own Python line before one of a package, that before native code
 * of the program, that before native code of a library. */
enum { LIBRARY, PROGRAM, PACKAGE, OWN };

static int worth(const char *frame)
{
    static const char *const PACKAGES[] = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "};
    if (strstr(frame, ".py:")) {
        for (size_t i = 0; i < sizeof PACKAGES / sizeof *PACKAGES; i++)
            if (strstr(frame, PACKAGES[i]))
                return PACKAGE;
        return OWN;
    }
    return strstr(frame, ".so") ? LIBRARY : PROGRAM;
}

uint32_t bz_stack_caller(const bz_trace *t, uint32_t stack)
{
    const uint32_t *frame;
    int n = bz_stack(t, stack, &frame), best = -1;
    uint32_t caller = 0;
    for (int i = 0; i < n; i++) {
        int w = worth(bz_string(t, frame[i]));
        if (w > best) {
            best = w;
            caller = frame[i];
        }
    }
    return caller;
}

static int by_names(const void *a, const void *b)
{
    const bz_caller *x = a, *y = b;
    return BZ_THEN(BZ_ORDER(x->name, y->name), BZ_ORDER(x->caller, y->caller));
}

static int by_time(const void *a, const void *b)
{
    const bz_caller *x = a, *y = b;
    return BZ_THEN(BZ_ORDER(y->time, x->time), by_names(a, b));
}

size_t bz_trace_callers(const bz_trace *t, bz_arena *arena, bz_caller **callers)
{
    const bz_events *call = &t->event[BZ_EVENT_CALL];
    uint32_t *of = bz_alloc(bz_stacks(t) + 1, sizeof *of);
    for (uint32_t i = 0; i < bz_stacks(t); i++)
        of[i] = bz_stack_caller(t, i);
    bz_caller *rows = *callers = BZ_NEW(arena, bz_caller, call->n);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < call->n; i++) {
        if (!call->stack[i] || !bz_event_counts(t, BZ_EVENT_CALL, i))
            continue;
        rows[n++] = (bz_caller){call->name[i], of[call->stack[i]], 1, call->end[i] - call->start[i]};
    }
    free(of);
    if (n)
        qsort(rows, n, sizeof *rows, by_names);
    for (size_t i = 0; i < n; i++)
        if (kept && !by_names(&rows[kept - 1], &rows[i])) {
            rows[kept - 1].count++;
            bz_time_add(&rows[kept - 1].time, rows[i].time);
        } else {
            rows[kept++] = rows[i];
        }
    if (kept)
        qsort(rows, kept, sizeof *rows, by_time);
    return kept;
}
