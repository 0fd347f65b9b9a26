/* What a replay is made of. Private to runtime/replay*.c. */
#ifndef BZ_REPLAY_OPEN_H
#define BZ_REPLAY_OPEN_H

#include "runtime/backend.h"
#include "runtime/replay.h"
#include "runtime/values.h"

/* ---- what a replay can do -------------------------------------------------------------------- */

/* Memory that lives from one action to another, both included. */
typedef struct bz_lifetime {
    size_t bytes;
    int first, last;
    size_t offset; /* filled in */
} bz_lifetime;

/* Gives each its offset: in several orders, each into the smallest gap that holds it; the order with the lowest peak
 * stays. Returns the peak; *least (may be NULL) is what must live at once at the least, whatever the offsets. */
size_t bz_lifetimes_place(bz_lifetime *list, int n, size_t *least);

/* Runs a loop on row-major operands. `given` are their types, the result's last. -1 where there is no such function. */
int bz_loop_run(const bz_replay_loop *loop, void *const *operand, const bz_dtype *dtype, const int64_t *count, int n,
                int threads);
bool bz_loop_knows(const bz_replay_loop *loop);

typedef enum { BZ_ACTION_CALL, BZ_ACTION_LOOP, BZ_ACTION_CONVERT, BZ_ACTION_COPY } bz_action_kind;

typedef struct bz_action {
    bz_action_kind kind;
    int step;     /* that it is part of; n_steps: bringing outputs into row-major order */
    int value;    /* that it makes */
    double bytes; /* of the value */
    void *state;
} bz_action;

/* Makes all ready. `weights` is the file's path. */
int bz_replay_open(const bz_replay_model *model, const char *weights, const bz_run_setting *setting, bz_replay **out,
                   bz_error *err);
void bz_replay_close(bz_replay *r);

int bz_replay_actions(const bz_replay *r, const bz_action **list);
int bz_replay_action_run(bz_replay *r, int i);

typedef struct bz_replay_memory {
    size_t peak, least, weights, scratch, ends; /* of what lives between steps; ends: inputs and outputs, in peak too */
} bz_replay_memory;
bz_replay_memory bz_replay_memory_of(const bz_replay *r);

/* An input's or output's bytes in the type `given`. */
int bz_replay_set(bz_replay *r, int value, const void *bytes);
int bz_replay_get(bz_replay *r, int value, void *bytes);
size_t bz_replay_size(const bz_replay *r, int value);

/* After action `action` ran: how far its result is off from the definition in double precision, in units of the
 * tolerance. `before` was called before it. NaN: nobody defined it (our loops, conversions are compared with their
 * source). */
typedef struct bz_replay_check {
    int elements, wrong;
    double worst; /* share of the tolerance */
    int64_t at;
    double value, expected;
} bz_replay_check;
int bz_replay_check_before(bz_replay *r, int action, bz_error *err);
bool bz_replay_check_after(bz_replay *r, int action, bz_replay_check *out); /* false: not checked */

/* Seconds of each action by itself, in about as many seconds as are given, and in its order, so that all have the operands that
 * they have in the model. -1 where a library refuses. */
typedef struct bz_replay_alone {
    double hot, cold; /* all that it needs in the caches; nothing of it */
} bz_replay_alone;
int bz_replay_run_alone(bz_replay *r, double seconds, bz_replay_alone *out);

/* ---- what it is made of ---------------------------------------------------------------------- */

/* A value in one of the formats in which somebody wants it. */
typedef struct replay_copy {
    const bz_backend *backend; /* whose format it is; NULL where row-major */
    const void *format;
    int slot;
} replay_copy;

typedef struct replay_state {
    replay_copy *copy;
    int n_copies;
    int root;             /* the value whose bytes a view shows */
    int last_use;         /* of the root: step; n_steps for outputs */
    const void *constant; /* bytes in the value's type, row-major; NULL where it is computed */
    void *owned;          /* of `constant`, where it is not the weights file's */
    bool read_later;      /* an input: never written over */
} replay_state;

/* A library call, made ready. */
typedef struct replay_call {
    bz_problem problem;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS];
    int slot[BZ_PROBLEM_OPERANDS];           /* -1: not bound */
    const void *format[BZ_PROBLEM_OPERANDS]; /* in which it lies there */
    int n, residual;
    bz_job job;
    bz_variant variant;
    bz_expected *expected; /* of a check: [n_positions] */
    int64_t *position;
    int n_positions;
} replay_call;

typedef struct replay_convert {
    bz_converter *converter; /* NULL: the bytes are copied */
    const bz_backend *backend;
    int from, to; /* slots; from -1: a constant */
    const void *constant;
    size_t bytes; /* of a copy */
} replay_convert;

typedef struct replay_loop {
    const bz_replay_loop *loop;
    int n;
    int slot[4]; /* -1: a constant */
    const void *constant[4];
    bz_dtype dtype[4];
    int64_t count[4];
} replay_loop;

struct bz_replay {
    const bz_replay_model *model;
    bz_run_setting setting;
    const char *file; /* the weights, mapped */
    size_t file_size;
    replay_state *state; /* [n_values] */
    bz_action *action;
    int n_actions, cap;
    int *first; /* [n_steps + 2]: actions of a step; behind the last step those that bring outputs into order */
    bz_lifetime *slot;
    int n_slots, slot_cap;
    char *memory, *scratch;
    bz_replay_memory sizes;
};

static inline int64_t replay_count(const bz_replay_value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

static inline size_t replay_bytes(const bz_replay_value *v)
{
    return (size_t)replay_count(v) * (size_t)bz_dtype_bits(v->dtype) / 8;
}

static inline void *replay_at(const bz_replay *r, int slot)
{
    return r->memory + r->slot[slot].offset;
}

/* replay_weights.c: constants. Fills r->state[].constant of what is stored or seeded. */
int replay_load(bz_replay *r, const char *path, bz_error *err);
void replay_fill(const bz_replay_value *v, int index, bz_dtype dtype, void *out); /* seeded */
void replay_cast(const void *from, bz_dtype from_type, void *to, bz_dtype to_type, int64_t n);
/* Values of the call's operands that are constants, with what they take along. */
int replay_operands(bz_replay *r, const bz_replay_step *step, replay_call *call, bz_error *err);

#endif
