/* advice: what to change in a program, and what it would gain. Rules are in advice.txt, what programs do already in state.txt. */
#ifndef BZ_ADVICE_H
#define BZ_ADVICE_H

#include "explain/explain.h"
#include "whatif/whatif.h"

struct bz_advice {
    const char *id;       /* "channels-last" */
    const char *what;     /* a sentence */
    const char *evidence; /* likewise */
    const char *step;     /* a line or two of code, or an environment variable */
    const char *by;       /* where the gain is from: "simulation" of the changed recording, or "estimate" */
    bool predicted;       /* gain of this program, by what it did and the library's picks; else what the bound gains */
    double gain, low, high; /* seconds per iteration; NAN: not known */
    double of;              /* iteration that the gain is of: as recorded, or without a recorder that made it slower */
    const char *unsure;     /* why nobody knows whether it gains or loses; NULL: it gains, or how much is not known */
};

/* What a program does already, or does not: states are in state.txt. */
struct bz_state {
    const char *id;       /* "prepared" */
    const char *what;     /* of the program: "prepares its weights …" */
    const char *evidence; /* what in the profile tells; NULL where nothing does */
    bool known, holds;
};

/* Something that makes up over 5 % of the latency, and what to do about it. */
struct bz_answer {
    const char *item; /* a step of the waterfall, or a cause */
    const char *step; /* of the waterfall: the item, or what it is a part of; NULL: there is no waterfall */
    double seconds;
    const char *advice; /* the id of one; NULL: none is known */
    const char *why;    /* a sentence: why none is known; NULL where one is */
};

/* What to change in the program of a profile: Gains are each by itself: they do not
 * add up. low and high say how far records' intervals and iterations leave it open, and at least by as
 * much as one process differs from the next; where a program's calls take longer than their records, high is that much more. `records`
 * (may be NULL) are of the system that the recording is held against. An advice whose change the room whatif knows gains what the
 * changed recording does; other gains are estimates. Those whose interval has a loss in it come behind those that gain for sure, and
 * a gain that nobody knows is NAN, and last. What the program does already, by the
 * profile, is not advised; where nothing tells, the advice says "if", and promises nothing by the model's bound. Fills the ladder's
 * advice, states and answers, and its framework where the profile tells. Returns how many. */
int bz_advice_make(const bz_analysis *analysis, bz_ladder *ladder, const bz_trace *trace,
                   const bz_whatif_records *records, bz_arena *arena);

#endif
