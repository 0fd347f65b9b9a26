/* The tables of advice: what would help, and what a program does already. Private to advice/. */
#ifndef BZ_ADVICE_RULES_H
#define BZ_ADVICE_RULES_H

#include "advice/advice.h"
#include "whatif/whatif.h"

enum { ADVICE_LINES = 24 };

/* An entry of advice.txt or state.txt: its lines, "gain" -> "cause waits". Lines that go on are joined by '\n'. */
typedef struct advice_rule {
    const char *id;
    const char *key[ADVICE_LINES], *value[ADVICE_LINES];
    int n;
} advice_rule;

typedef struct advice_framework {
    const char *name, *words; /* words: with blanks between */
} advice_framework;

typedef struct advice_table {
    advice_rule *rule;
    advice_framework *framework;
    advice_rule device; /* words of its recordings, and its own words: "CUDA=NPU" */
    int n, n_frameworks;
} advice_table;

extern const char bz_advice_text[], bz_state_text[];
void advice_read(const char *text, bz_arena *arena, advice_table *out);
const char *advice_line(const advice_rule *rule, const char *key, int nth); /* NULL where there is none */

const char *advice_framework_of(const advice_table *table, const bz_trace *trace);
/* "FROM=TO …" of the device that the trace shows; NULL where it has none. */
const char *advice_words_of(const advice_table *table, const bz_trace *trace);

/* ---- states --------------------------------------------------------------------------------- */

/* What the program of a profile does already, by the evidence of the profile: all states of state.txt, in its order. `flow`: its
 * typical iteration, with no tasks where nothing has a time. */
int advice_states(const bz_bound *b, const bz_ladder *l, const bz_trace *trace, const bz_flow *flow, bz_arena *arena,
                  const bz_state **out);

/* The states named in `words`: one that holds makes an advice moot and is returned. *open: nothing tells of any of them. */
const bz_state *advice_moot(const bz_state *state, int n, const char *words, bool *open);

/* ---- findings ------------------------------------------------------------------------------- */

/* What the latency is above the bound by: steps of the waterfall, and causes of the alignment. */
typedef struct advice_item {
    const char *name;
    double seconds, above; /* above: of a cause, what it adds to the step that it is a part of */
    bz_rung_kind step;     /* itself, or the one that it is a part of */
    const bz_cause *cause; /* NULL: it is a step */
    bool found;            /* by the rule that is looked at now */
    const char *id;        /* of the advice for it; NULL: none yet */
    const char *why;       /* no advice: what the program does already, by what evidence; NULL */
} advice_item;

/* Of the typical iteration. The flow is to be freed. */
typedef struct advice_simulation {
    bz_flow flow;
    bz_whatif whatif; /* points to the flow and the model */
    bz_whatif_model model;
    bool usable; /* it repeats what was recorded */
} advice_simulation;

typedef struct advice_making {
    const bz_analysis *a;
    const bz_bound *b;
    const bz_ladder *l;
    const bz_trace *trace;
    bz_arena *arena;
    double iterations,
        records;   /* how far off a time is, as a share: by the iterations' spread, by the records' intervals */
    double noise;  /* how far the latency of one process is from that of the next, as a share */
    double slower; /* how much longer the program's calls take than their records */
    int64_t steady;
    const bz_state *state;
    int n_states;
    advice_item *item;
    int n_items;
    int found;         /* the line "gain" that found something */
    const char *words; /* of the line that is looked at */
    const char *swaps; /* the device's words for others, "CUDA=NPU"; NULL */
    bz_buf evidence;
    advice_simulation simulation;
} advice_making;

/* What a line of the table found: a gain and how far it may be off. */
typedef struct advice_finding {
    bool holds;
    double gain, half;
    bool alone;     /* nothing takes the place of what goes */
    bool priced;    /* by records: grows with what the program's calls take longer */
    bool assumed;   /* the model's bound has it: whether the program does it already, a state must tell */
    bool simulated; /* the simulation alone tells the gain: none, where the change does not apply */
} advice_finding;

/* A rule may have several lines "gain: …": the first that finds something counts. Marks the items that it would make smaller. */
advice_finding advice_find(advice_making *m, const advice_rule *rule);
void advice_mark(advice_making *m, bz_rung_kind step);

/* ---- simulation ----------------------------------------------------------------------------- */

void advice_simulation_make(const bz_analysis *analysis, const bz_ladder *ladder, const bz_trace *trace,
                            const bz_whatif_records *records, bz_arena *arena, advice_simulation *s);

/* The gain by the change that the line "whatif" names, with what it assumes as further evidence, and the steps of the waterfall that get
 * smaller. False where it does not apply to this recording. */
bool advice_simulate(advice_making *m, const advice_rule *rule, const char *line, bz_advice *out);
/* Would that line turn the weights of matrix products, and do these take so much of the recording that nobody knows what it comes to? */
bool advice_turns_products(const advice_making *m, const char *line);

/* ---- items ---------------------------------------------------------------------------------- */

void advice_items(advice_making *m);
/* Each item over 5 % of the latency with its advice of the sorted list, or with the sentence that none is known. */
int advice_answers(const advice_making *m, const bz_advice *list, int n, const bz_answer **out);

#endif
