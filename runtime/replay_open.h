/* What a replay is made of. Private to runtime/replay*.c. */
#ifndef BZ_REPLAY_OPEN_H
#define BZ_REPLAY_OPEN_H

#include "runtime/backend.h"
#include "runtime/loops/loops.h"
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

typedef enum { BZ_ACTION_CALL, BZ_ACTION_LOOP, BZ_ACTION_CONVERT, BZ_ACTION_COPY } bz_action_kind;

typedef struct bz_action {
    bz_action_kind kind;
    int step;                              /* that it is part of; n_steps: bringing outputs into row-major order */
    int stream;                            /* on which it is queued up */
    int value;                             /* that it makes */
    double bytes;                          /* of the value */
    int after[BZ_REPLAY_STREAMS], n_after; /* actions of other streams that it waits for */
    bool marked;                           /* somebody waits for it */
    void *state;
} bz_action;

/* Makes all ready. `weights` is the file's path. */
int bz_replay_open(const bz_replay_model *model, const char *weights, const bz_run_setting *setting, bz_replay **out,
                   bz_error *err);
void bz_replay_close(bz_replay *r);

int bz_replay_actions(const bz_replay *r, const bz_action **list);
/* One action, queued up; the whole of them; and whether what was queued has ended well. */
int bz_replay_action_run(bz_replay *r, int i);
int bz_replay_run(bz_replay *r);
int bz_replay_wait(bz_replay *r);

/* Overwrites all that a run makes, so that nothing of an earlier one is taken for a result of the next. */
int bz_replay_forget(bz_replay *r);
/* Brings the memory of all values, the inputs last, into the caches, as far as they go: as layers before it leave that. On a processor. */
void bz_replay_touch(bz_replay *r);

/* The whole, captured once as a graph: it must have run before. Then each launch is a run. */
int bz_replay_capture(bz_replay *r, bz_error *err);
int bz_replay_launch(bz_replay *r);

/* One run with a reading of the device's clock behind each action: seconds[i] is what action i took, start[i] when it
 * began. An action begins when the one before it on its stream has ended, and all that it waits for. 1: the device was not
 * fast enough queued up for, and waited in between. */
int bz_replay_time(bz_replay *r, double *start, double *seconds);
int bz_replay_streams(const bz_replay *r);
const char *bz_replay_device(const bz_replay *r); /* "processor", "GPU" */
bool bz_replay_throttled(const bz_replay *r);

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
 * they have in the model. NaN where nothing tells: on a device, and cold where emptying the caches takes longer, or nobody asks. -1 where a library refuses. */
typedef struct bz_replay_alone {
    double hot, cold; /* all that it needs in the caches; nothing of it */
} bz_replay_alone;
int bz_replay_run_alone(bz_replay *r, double seconds, bool cold, bz_replay_alone *out);

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
    int n, n_in, residual;                   /* inputs come first; results follow, the last of them at n - 1 */
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
    bool partial; /* other parts of the result are there already */
    void *at[4];  /* where the processor finds them: the slots, or copies in the host's memory */
    int threads;
} replay_loop;

struct bz_replay {
    const bz_replay_model *model;
    bz_run_setting setting;
    const char *file; /* the weights, mapped */
    size_t file_size;
    replay_state *state; /* [n_values] */
    bz_action *action;
    int n_actions;
    int *first; /* [n_steps + 2]: actions of a step; behind the last step those that bring outputs into order */
    bz_lifetime *slot;
    int n_slots;
    const bz_device_ops *ops;
    void *device;
    int n_streams;
    bool held; /* the queue is held back while a run is timed */
    char *memory;
    struct {
        char *scratch, *host; /* workspace of its calls; copies of what its loops work on */
        size_t scratch_size, host_size;
    } stream[BZ_REPLAY_STREAMS];
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

/* replay_device.c */
extern const bz_device_ops replay_processor;

static inline bool replay_is_source(const bz_replay_value *v) /* has a slot before anything runs */
{
    return v->source == BZ_VALUE_INPUT || v->source == BZ_VALUE_KEPT;
}

/* replay_open.c: actions, slots, and copies of values in formats. */
void *replay_add_action(bz_replay *r, bz_action_kind kind, int step, int value, size_t size);
int replay_add_slot(bz_replay *r, size_t bytes, int first);
void replay_use_slot(bz_replay *r, int slot, int action);
void replay_add_copy(bz_replay *r, int value, const bz_backend *backend, const void *format, int slot);
const replay_copy *replay_find_copy(const bz_replay *r, int value, const bz_backend *backend, const void *format);
void *replay_handle(const bz_replay *r, int step); /* of the step's stream */
/* An action that brings `from` (NULL: the constant) into the format, in the slot. */
int replay_convert_into(bz_replay *r, int step, int value, const replay_copy *from, const bz_backend *backend,
                        const void *format, int slot, bz_error *err);
/* The value in this format: as it is there, or brought there by a new action. */
int replay_need(bz_replay *r, int step, int value, const bz_backend *backend, const bz_place_wanted *wanted,
                const replay_copy **out, bz_error *err);

/* replay_call.c: the step's action, last behind those that bring its operands. */
int replay_add_call(bz_replay *r, int number, bz_error *err);
void replay_free_call(replay_call *c);
const bz_device_ops *replay_ops_of(const bz_backend *backend);

/* replay_streams.c: fills in who waits for whom, and lengthens lifetimes; nothing to do for one stream. */
void replay_order(bz_replay *r);
int replay_fork(bz_replay *r); /* all other streams behind the first; the first behind all others */
int replay_join(bz_replay *r);
int replay_await(bz_replay *r, const bz_action *a);

/* replay_place.c: memory for all slots, workspaces and loops, and where in it everything lies; gives it back, with the
 * device. */
int replay_place(bz_replay *r, bz_error *err);
void replay_unplace(bz_replay *r);

/* replay_weights.c: constants. Fills r->state[].constant of what is stored or seeded. */
int replay_load(bz_replay *r, const char *path, bz_error *err);
int replay_first(const bz_replay *r, int i, void *out, bz_error *err); /* what an input or kept value begins as */
void replay_cast(const void *from, bz_dtype from_type, void *to, bz_dtype to_type, int64_t n);
/* Values of the call's operands that are constants, with what they take along. */
int replay_operands(bz_replay *r, const bz_replay_step *step, replay_call *call, bz_error *err);

#endif
