/* replay: the cheapest plan of a model, as one program.
 *
 *   bz_replay_make      layers -> steps: every layer a library call, a view, or a loop of the runtime's
 *   bz_replay_choose    a variant for every call, so that calls and conversions between their layouts cost least together
 *   bz_replay_save      the plan as a file that people read and edit
 *   bz_replay_follow    the same choices again, from such a file
 *   bz_replay_schedule  the steps on several streams of a device
 *   bz_replay_generate  a folder with the program, its weights and its build file
 *   bz_replay_read      what the program reported
 *   bz_replay_print …   that, held against the bound
 *   bz_bricks_replay …  sequences of layers, each run by itself
 *
 * What a step computes and on what always comes from the model; a plan only chooses among the alternatives of the
 * lowering and among variants. So a plan that somebody wrote can be slow, or refused, but not wrong. */
#ifndef BZ_REPLAY_PLAN_H
#define BZ_REPLAY_PLAN_H

#include "base/sheet.h"
#include "bound/bound.h"
#include "bricks/bricks.h"
#include "generator/generator.h"
#include "profile/profile.h"
#include "runtime/replay.h"

/* Where the bytes of a constant are. */
typedef struct bz_replay_source {
    const bz_tensor *tensor; /* of the model */
    const bz_model *model;   /* whose it is, where that is another than the plan's */
    const double *number;    /* else: known by inference, [elements] */
} bz_replay_source;

/* A way to run a call: the cheapest variant among those that take and give tensors in this layout. */
typedef enum { BZ_LAID_PLAIN, BZ_LAID_NHWC, BZ_LAID_BLOCKED, BZ_LAID_N } bz_laid; /* labels of graph/ */
_Static_assert((int)BZ_LAID_N == BZ_LABELS, "a label for each layout");

typedef struct bz_replay_option {
    const char *backend, *algorithm, *layout, *math;
    bz_laid laid;
    double seconds, launch;
    bz_record_provenance provenance; /* modelled: no record */
} bz_replay_option;

enum { BZ_REPLAY_OPTIONS = 8 };

/* Beside each bz_replay_step. */
typedef struct bz_replay_choice {
    const char *text; /* of a call's problem */
    bz_replay_option option[BZ_REPLAY_OPTIONS];
    int n, taken;
    double conversion; /* that the choice counted on, before the step */
} bz_replay_choice;

/* A layer of the model, or the layers of a group, that run together. */
typedef struct bz_replay_unit {
    const int *layer; /* [n], of the main graph, ascending */
    int n;
    const char *pattern; /* NULL: a layer */
    const char *name;    /* of the last layer */
    const char *kind;
    int first, n_steps; /* of the plan's; none: a view of a constant, or nothing to do */
    double bound;       /* what the layers cost at the least, as in the bound: records of hot calls; NAN */
} bz_replay_unit;

typedef struct bz_replay_plan {
    const char *model;
    bz_dtype dtype;
    bz_setting setting;
    const char *system;
    bz_layers *layers;
    bz_replay_unit *unit;
    int n_units;
    bz_replay_step *step; /* steps of constants come where they are first wanted, `layer` -1 */
    bz_replay_choice *choice;
    int n_steps;
    bz_replay_value *value;
    bz_replay_source *source;
    int n_values;
    int n_left;       /* layers that are left out, as how large one result is depends on data, or they wait for it */
    const char *left; /* why, a sentence for each that does not just wait; NULL */
    int rescaled;     /* layers whose calls scale by other numbers than the file's: the outputs are not the model's */
    const char *away; /* the file of weights that is not there: they are made up; NULL */
    int loss;         /* 1 + the value of an iteration of training's loss; 0: none */
    int streams;
    int *order;         /* [n_steps]: in which the program has the steps */
    const char *device; /* the backend on whose device it runs; NULL: the processor */
    double scheduled;   /* planned: the whole, on these streams */
    double seconds;     /* planned: calls */
    /* Conversions as the choice expects them: how operands lie is decided by the libraries, when the program is built. */
    double conversions;
    int n_conversions;
    int modelled; /* calls without a record */
    int followed; /* states at most at once, while choosing; 0: from a file */
    bool beam;    /* there were more than were followed */
    bz_arena arena;
} bz_replay_plan;

typedef struct bz_replay_input {
    const char *model;
    bz_layers *layers;
    const bz_plan *plan;
    int number; /* of the model in the plan */
    bool fuse;
    bz_dtype dtype;
    bz_perfdb *db;
    const bz_system *system; /* NULL: no records */
    const bz_prices *prices; /* of the plan, there and in this setting; NULL likewise */
    bz_setting setting;
    const char *device;    /* the backend on whose device it is to run; NULL: the processor */
    const bz_peaks *peaks; /* there and in this setting, for conversions without a record; may be NULL */
    double rate;           /* of learning, where the model is an iteration of training */
    bool gradients;        /* those of its weights are outputs, too */
    bool part; /* where how large a result is depends on data, what does not wait for it is replayed; else nothing is */
    bool within; /* a piece of a model: inputs come as its calls want them, outputs stay as they leave them */
} bz_replay_input;

/* Fails with BZ_INCOMPLETE and the layers' names where some cannot be executed: nothing is left out but by `part`. The plan keeps
 * pointers into the layers. */
int bz_replay_make(const bz_replay_input *in, bz_replay_plan **out, bz_error *err);
void bz_replay_free(bz_replay_plan *p);

void bz_replay_json(const bz_replay_plan *p, bz_buf *out);
/* Takes over the choices of a plan's text. Fails where it is none, or is one of another model. */
int bz_replay_follow(bz_replay_plan *p, const char *text, size_t n, bz_error *err);

/* The calls of a sequence as the plan of the whole model has them, of which it was cut. What is another call there keeps its own choice. The
 * whole's plan must outlive the other. */
void bz_replay_follow_whole(bz_replay_plan *p, const bz_replay_plan *whole, const bz_brick *k);

int bz_replay_follow_file(bz_replay_plan *p, const char *path, bz_error *err);

/* What conversions cost. `system` may be NULL: nobody knows. */
const bz_peaks *bz_replay_peaks(bz_perfdb *db, const bz_system *system, const bz_setting *setting, bz_arena *arena);

/* The steps on so many streams: by the list schedule of the bound on k streams, with the plan's times. */
void bz_replay_schedule(bz_replay_plan *p, int streams);

/* Writes replay.c, weights.bin, CMakeLists.txt and manifest.json. */
int bz_replay_generate(const bz_replay_plan *p, const char *folder, bz_error *err);
void bz_replay_program(const bz_replay_plan *p, bz_buf *out);
/* Many plans as one program, build/replay NUMBER [OPTIONS] in the folder, or FIRST-LAST for some in turns. */
int bz_replay_generate_all(const bz_replay_plan *const *plan, int n, const char *folder, bz_error *err);

/* ---- results -------------------------------------------------------------------------------- */

typedef enum { BZ_REPLAY_CALL, BZ_REPLAY_LOOP, BZ_REPLAY_CONVERT, BZ_REPLAY_COPY } bz_replay_kind;

/* What ran between two readings of the clock. */
typedef struct bz_replay_action {
    bz_replay_kind kind;
    int step; /* of the plan; -1: bringing outputs into row-major order */
    int stream;
    double seconds;         /* median, in sequence; NAN where nothing was measured */
    double hot, flushed;    /* by itself, with all that it needs in the caches, with nothing of it; NAN: not measured */
    int elements, wrong;    /* compared with the definition; 0: not */
    double worst;           /* of their differences, in units of the tolerance */
    double value, expected; /* of the worst, where one is wrong */
} bz_replay_action;

typedef struct bz_replay_result {
    double median, low, high, min; /* of the whole, in seconds; NAN where it was not measured */
    int samples, runs;             /* runs: in each sample */
    bool throttled;
    bool graph;                                 /* captured, and launched as a whole */
    double opened;                              /* seconds of making ready: weights packed, calls prepared */
    double peak, least, ends, weights, scratch; /* bytes */
    bz_replay_action *action;
    int n;
    double *pass;  /* [n_passes][n]: seconds of the last passes' actions */
    double *start; /* [n_passes][n]: when they began, on several streams; NULL: one after the other */
    int n_passes;
    int checked, wrong; /* calls */
    double *loss;       /* [steps] of the iterations of training that ran first */
    int steps;
    bz_arena arena;
} bz_replay_result;

/* The program's report. Zeroes *out first; free its arena. */
int bz_replay_read(const bz_replay_plan *p, const char *text, size_t n, bz_replay_result *out, bz_error *err);

/* Generates, builds and runs, in a folder that goes away, unless one is named or the build fails. */
typedef struct bz_replay_run {
    const char *folder, *time_limit, *inputs, *outputs; /* NULL: none, as usual */
    int64_t steps;                                      /* of training before it is measured; 0: it is none */
    bool check, graph;
    bool write;    /* only generate */
    bz_perfdb *db; /* has built plans of its benchmarks beside it; NULL: none */
} bz_replay_run;
int bz_replay_run_here(const bz_replay_plan *p, const bz_replay_run *run, bz_replay_result *out, bz_error *err);

typedef struct bz_replay_report {
    const bz_replay_plan *plan;
    const bz_replay_result *result;
    const bz_bound *bound; /* NULL: none */
    double *cold; /* [plan->n_steps]: cold record of the variant taken; NAN where there is none. NULL: not looked for */
} bz_replay_report;

/* Seconds of the variants taken, with operands that come from memory. Lives in the plan's arena. */
int bz_replay_cold(bz_replay_plan *p, bz_perfdb *db, const bz_system *system, double **out, bz_error *err);

void bz_replay_print(const bz_replay_report *r, bz_buf *out);
void bz_replay_print_json(const bz_replay_report *r, bz_buf *out);

/* The last passes as a trace: iterations, a layer each an operator, its calls. Finished. */
bz_trace *bz_replay_trace(const bz_replay_report *r, bz_error *err);

/* ---- sequences of layers -------------------------------------------------------------------- */

typedef struct bz_brick_replays {
    bz_perfdb *db;
    const bz_system *system; /* NULL: the database knows nothing of it */
    bz_setting setting;
    bz_plan_options options; /* with patterns, plans are fused */
    bz_remeasure again;
    const char *time_limit; /* seconds of measuring; NULL: as usual */
    bool look;              /* run nothing */
    /* results */
    int measured, failed;
    double *hot; /* [b->n]: seconds of a sequence's calls, each by itself with its operands in the caches; NAN */
} bz_brick_replays;

/* Fills in what sequences and models take as replays, by records of the database; what it lacks is run first, each stored at once.
 * why[b->n]: reasons of sequences that have no time. */
int bz_bricks_replay(bz_brick_replays *r, bz_bricks *b, bz_layers *const *models, const char **why, bz_arena *arena,
                     bz_error *err);

/* A table of what each model takes on each system that has records of it or its sequences; of the system named alone, where one is. */
struct bz_price_list;
int bz_bricks_advise(const bz_brick_replays *r, const char *system, const struct bz_price_list *prices, bz_bricks *b,
                     const bz_brick_rules *rules, bz_arena *arena, const bz_sheet **out, bz_error *err);

/* The same by a command of the user's. */
typedef struct bz_brick_files {
    const char *folder;  /* a file for each sequence, and times.tsv */
    const char *command; /* "run {model}": the last word that it prints are seconds */
    bool in_turns;       /* "run {list}": a file that names some; as many words */
    const char **why;    /* [b->n]: reasons of sequences that are no files or have no time */
} bz_brick_files;
int bz_bricks_write(bz_brick_files *f, bz_bricks *b, bz_arena *arena, bz_error *err);
/* What the folder knows is not asked again. `path` [n]: the models. */
void bz_bricks_time(bz_brick_files *f, bz_bricks *b, const char *const *path, int n, bz_arena *arena,
                    void (*warn)(void *user, const char *text), void *user);

#endif
