/* The replay's units with what their time went to. Private to replay/. */
#ifndef BZ_REPLAY_TABLE_H
#define BZ_REPLAY_TABLE_H

#include "replay/replay.h"

/* What makes a replay take longer than the bound. Signed, and together all of the difference. */
typedef enum {
    EXCESS_COLD,       /* in sequence, over the same calls with their operands in the caches */
    EXCESS_CONVERSION, /* of layouts */
    EXCESS_LOOP,       /* loops of our own, over the bound of what they do */
    EXCESS_HOT,        /* the same calls hot, over their records: where memory and code lie, clock, neighbours */
    EXCESS_RECORD,     /* where the calls cannot be told apart into hot and cold: over their records */
    EXCESS_GUESS,      /* calls without a record, over the bound of what they do */
    EXCESS_CHOICE, /* the records of what was taken, over the bound: to convert less, or as nothing else can be bound */
    EXCESS_BETWEEN, /* whole runs, over the sum of steps with a clock between them */
    N_EXCESS
} excess;

/* A unit's time in sequence, split by what it went to. */
typedef struct row {
    const bz_replay_unit *unit;
    double calls, loops, conversions; /* seconds, in sequence */
    double hot, flushed;              /* all that is run for it, each by itself: NAN where it was not measured */
    double hot_calls;
    double record, cold, launch; /* of its calls, as the plan has them; record NAN where one has none */
    double excess[N_EXCESS];
    bool loop_runs, modelled, calls_run;
    int wrong, checked;
    double worst;
} row;

typedef struct table {
    const bz_replay_report *r;
    row *row;
    int n;
    row outputs; /* bringing outputs into row-major order */
    double calls, loops, conversions;
    double hot, flushed;     /* all, each by itself */
    double excess[N_EXCESS]; /* NAN where there is no bound */
    double drift;            /* middle ratio of hot calls to their records: what hits all alike */
    int n_calls, n_loops, n_conversions;
    bz_arena arena;
} table;

void table_make(const bz_replay_report *r, table *t); /* free its arena */
double table_bound(const bz_replay_report *r);        /* NAN where there is none */
double row_total(const row *w);
const char *row_reason(const table *t, const row *w); /* "" where it takes no longer than it should */
const char *excess_name(excess e);

#endif
