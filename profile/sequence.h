/* The work of one process on one device, or its library calls, or its operators, in the order of the host (bz_asked_at): in which iterations are
 * looked for. Private to profile/. */
#ifndef BZ_PROFILE_SEQUENCE_H
#define BZ_PROFILE_SEQUENCE_H

#include "profile/trace.h"

typedef struct bz_sequence {
    bz_event_kind kind;
    const bz_events *event, *api;
    const uint32_t
        *cause;    /* the call that asked for each event, a row of `api` or BZ_NONE; NULL: in the device's order */
    uint32_t *row; /* [n] */
    size_t n;
    /* [lanes] threads of calls or operators that run beside the busiest one; NULL: there are none */
    const bool *left_out;
    uint32_t beside; /* threads whose kernels or calls were left out, as another one launches or calls meanwhile */
} bz_sequence;

/* The events of a kind that one process asked one device for, or its library calls, or its operators: collect.c */
bz_sequence bz_sequence_collect(const bz_trace *t, bz_event_kind kind, bz_arena *arena);

/* [strings]: of these names most operators and calls last at least `shortest` nanoseconds. Short ones, as views, begin now within another one, now behind it, as clocks
 * are read and traces round to microseconds. Most of them, not their mean: one that was disturbed is long itself, and tells nothing of its name. */
bool *bz_long_names(const bz_trace *t, int64_t shortest, bz_arena *arena);

/* When the host asked for the event of a row. */
static inline int64_t bz_sequence_asked(const bz_sequence *s, uint32_t row)
{
    return s->cause && s->cause[row] != BZ_NONE ? s->api->start[s->cause[row]] : s->event->start[row];
}

/* When the host asked for event i of the sequence, and when it was done with that. */
static inline int64_t bz_sequence_start(const bz_sequence *s, size_t i)
{
    return bz_sequence_asked(s, s->row[i]);
}

static inline int64_t bz_sequence_end(const bz_sequence *s, size_t i)
{
    uint32_t row = s->row[i];
    return s->cause && s->cause[row] != BZ_NONE ? s->api->end[s->cause[row]] : s->event->end[row];
}

bool bz_of_log(const bz_trace *t, uint32_t lane);
bool bz_has_timeline(const bz_trace *t); /* does any file tell more than order and parameters? */
int64_t bz_median(int64_t *v, size_t n); /* sorts v; 0 of none */

void bz_trace_add_iteration(bz_trace *t, int64_t start, int64_t end);

/* Calls that are the same but for sizes that grow from one repetition to the next get one number; the others keep theirs. `exact`
 * [s->n]: numbers by first use, `count` of them. Were there such? growth.c */
bool bz_sequence_merge_growing(const bz_trace *t, const bz_sequence *s, const uint32_t *exact, uint32_t count,
                               uint32_t *merged);

/* Fills w->place. places.c */
struct bz_work;
void bz_sequence_places(const bz_trace *t, const bz_sequence *s, struct bz_work *w, bz_arena *arena);

/* Fills w->weight. weights.c */
void bz_sequence_weights(const bz_trace *t, const bz_sequence *s, struct bz_work *w, bz_arena *arena);

/* Iteration i is events first[i] … first[i + 1] - 1: adds it with its times. windows.c */
void bz_sequence_windows(bz_trace *t, const bz_sequence *s, const uint32_t *first, uint32_t n, bz_arena *arena);

/* Iterations by the names of ranges: marks.c. `pattern` may have *, and # at its end: a number follows. */
bool bz_iterations_named(bz_trace *t, const char *pattern);
/* By the names that frameworks and people give to iterations, where such ranges hold the work. */
bool bz_iterations_marked(bz_trace *t);
/* Where what was found may be layers: the only range of a name that says it is a pass, as "model_inference", if it holds nearly all work. Else what was
 * found stays. */
bool bz_iterations_single(bz_trace *t);
/* Where what was found has other numbers of a training's updates than an iteration of it: those that end with them. updates.c */
bool bz_iterations_by_updates(bz_trace *t);
/* Of marks: the last one counts as none where it holds next to nothing. */
void bz_iterations_leave_rest(bz_trace *t);

/* Phases of a language model by its library calls; false: it is none, or they do not tell. phases_calls.c */
bool bz_phases_by_calls(bz_trace *t, bz_arena *arena);

#endif
