/* Traces made by hand, for tests of the analyzer. */
#ifndef BZ_TEST_ANALYZER_TRACE_H
#define BZ_TEST_ANALYZER_TRACE_H

#include "explain/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct event {
    bz_event_kind kind;
    const char *name;   /* "convolution|src=f32 …": with what is told of it */
    int64_t start, end; /* µs */
} event;

/* Four iterations of 1 ms. */
static bz_trace *trace_of(const event *events, size_t n)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "mxnet/made-up", "test"), host = bz_trace_thread(t, source, 1, 1),
             device = bz_trace_stream(t, source, 1, 0, 1, 7);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 1100000;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 1000000, bz_trace_text(t, "benanza_iteration"), host);
        for (size_t k = 0; k < n; k++) {
            bool kernel = events[k].kind == BZ_EVENT_KERNEL;
            size_t e =
                bz_trace_add(t, events[k].kind, at + 1000 * events[k].start, at + 1000 * events[k].end,
                             bz_trace_intern(t, events[k].name, strcspn(events[k].name, "|")), kernel ? device : host);
            if (events[k].kind == BZ_EVENT_CALL)
                t->event[BZ_EVENT_CALL].flags[e] |= BZ_CALL_EXECUTES;
            if (strchr(events[k].name, '|'))
                t->event[events[k].kind].detail[e] = bz_trace_text(t, strchr(events[k].name, '|') + 1);
            if (kernel) {
                size_t api = bz_trace_add(t, BZ_EVENT_API, at + 1000 * events[k].start, at + 1000 * events[k].start + 9,
                                          bz_trace_text(t, "cudaLaunchKernel"), host);
                t->event[BZ_EVENT_KERNEL].short_name[e] =
                    bz_trace_intern(t, events[k].name, strcspn(events[k].name, "|"));
                t->event[BZ_EVENT_KERNEL].correlation[e] = (uint32_t)(i * 100 + (int64_t)k + 1);
                t->event[BZ_EVENT_API].correlation[api] = (uint32_t)(i * 100 + (int64_t)k + 1);
            }
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

#endif
