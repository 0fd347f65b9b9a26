/* Passes that make a flow; private to the room. */
#ifndef BZ_WHATIF_BUILD_H
#define BZ_WHATIF_BUILD_H

#include "whatif/whatif.h"

typedef struct bz_build_record {
    uint32_t source, correlation, api;
} bz_build_record;

typedef struct bz_build {
    const bz_trace *trace;
    bz_flow *flow;
    bz_iteration span;       /* times of the recording; BZ_NONE: all of it */
    uint32_t *of_api;        /* [api rows]: the task that the call became or lies in; BZ_NONE */
    uint32_t *of_event[3];   /* kernels, copies, memsets: the task of each row; BZ_NONE */
    int64_t *arrived;        /* [tasks], once all are there: when the host came to a sync; else `at` */
    uint32_t *lane_of;       /* [trace lanes]: lane of the flow; BZ_NONE */
    bz_build_record *record; /* calls that record an event, by their correlation; where a wait names one */
    size_t n_records;
    bool timeline; /* some file tells more than order and parameters */
    bool device;   /* some device worked in the iteration */
    int64_t
        idle_lag; /* from a launch's start to its kernel's, where nothing else held the kernel: median; -1 unknown */
} bz_build;

bool bz_build_member(const bz_build *b, bz_event_kind kind, size_t row);
uint32_t bz_build_task(bz_build *b, bz_task_kind kind, bz_event_kind event_kind, size_t row, int64_t start,
                       int64_t end);

void bz_build_host(bz_build *b);   /* build_host.c: calls on threads, in order; gaps */
void bz_build_device(bz_build *b); /* build_device.c: work on streams, launches, what each waited for */
void bz_build_events(bz_build *b); /* build_events.c: streams that wait for other streams */
void bz_build_waits(bz_build *b);  /* build_waits.c: who waits for the device, hand-overs between threads */
void bz_build_phases(bz_build *b); /* phases.c: operators, layers, phases */

int bz_build_waiting(const char *api); /* does such a call wait for a device? */
int bz_build_range(const char *name);  /* is such an operator a range around what Python does? */

/* The event that a wait, a row of sync, is for: its stream, a lane of the flow (BZ_NONE: without work in this iteration), and when
 * it was recorded. False where the recording does not say. */
bool bz_build_event(const bz_build *b, size_t sync, uint32_t *lane, int64_t *at);
void bz_build_records(bz_build *b); /* first */

static inline int64_t bz_build_end(const bz_task *t) /* in the recording */
{
    return bz_flow_sum(t->at, t->duration);
}
int64_t bz_build_launched(const bz_flow *f, uint32_t task); /* when the host asked for it */
int64_t bz_build_median(int64_t *values, size_t n);         /* sorts; 0 of none */

#endif
