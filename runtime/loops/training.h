/* What the loops of training have in common: one problem's state, and its rows and blocks as f32. Private to runtime/loops. */
#ifndef BZ_LOOPS_TRAINING_H
#define BZ_LOOPS_TRAINING_H

#include "runtime/kind.h"
#include "runtime/loops/kernels.h"
#include "runtime/loops/loops.h"

#include <string.h>

enum { BLOCK = 4096, COLUMNS = 512, ROOMS = 4 };

typedef void part_function(bz_training *t, int64_t part, int thread);

struct bz_training {
    const bz_job *job;
    const bz_problem *problem;
    const bz_kernels *kernels;
    const bz_training_kernels *own;
    part_function *one;
    void (*begin)(bz_training *t); /* before the parts, */
    void (*end)(bz_training *t);   /* and behind them; NULL: nothing */
    int64_t parts, length;         /* length: elements of a row */
    int y;                         /* the result */
    float epsilon;
    float *room; /* [threads][ROOMS][length] */
    float *sums; /* [threads][2 · n_sums]: of a normalization's scale and shift; partial losses */
    int64_t n_sums;
    double share; /* of a label in the loss */
    bz_norm norm;
    bz_update update;
    uint32_t seed; /* dropout: another one each time */
    const bz_plain *plain;
    int copy;
};

/* ---- operands ------------------------------------------------------------------------------- */

static inline int operand_of(const bz_training *t, bz_role role, bool result)
{
    for (int i = 0; i < t->job->n_operands; i++)
        if (t->job->operand[i].role == role && t->job->operand[i].result == result)
            return i;
    return -1;
}

/* In f32, as parameters are; NULL where there is none. */
static inline float *parameter(const bz_training *t, bz_role role, bool result)
{
    int i = operand_of(t, role, result);
    return i < 0 ? NULL : bz_plain_at(t->plain, i, t->copy);
}

static inline float *room_of(const bz_training *t, int thread, int number)
{
    return t->room + ((int64_t)thread * ROOMS + number) * t->length;
}

static inline const float *from(const bz_training *t, int operand, int64_t at, int64_t n, int thread, int room)
{
    return bz_row_from(t->plain, operand, t->copy, at, n, room_of(t, thread, room));
}

static inline float *to(const bz_training *t, int operand, int64_t at, int thread, int room)
{
    return bz_row_to(t->plain, operand, t->copy, at, room_of(t, thread, room));
}

static inline void done(const bz_training *t, int operand, int64_t at, int64_t n, const float *row)
{
    bz_row_done(t->plain, operand, t->copy, at, n, row);
}

static inline int64_t pieces(int64_t all, int64_t length)
{
    return (all + length - 1) / length;
}

static inline int64_t block_of(const bz_training *t, int64_t part, int64_t *at)
{
    int64_t all = t->job->operand[t->y].count;
    *at = part * BLOCK;
    return all - *at < BLOCK ? all - *at : BLOCK;
}

static inline void open_blocks(bz_training *t)
{
    t->length = BLOCK;
    t->parts = pieces(t->job->operand[t->y].count, BLOCK);
}

static inline void clear_sums(bz_training *t)
{
    memset(t->sums, 0, (size_t)t->job->setting->threads * 2 * (size_t)t->n_sums * sizeof *t->sums);
}

static inline int64_t label_of(const bz_training *t, const void *labels, int64_t i)
{
    return t->problem->dtype_w == BZ_I32 ? ((const int32_t *)labels)[i] : ((const int64_t *)labels)[i];
}

/* A row of the table of problems. `open` sets parts and length; it clears `one` where the loops take no such problem. */
typedef struct bz_training_kind {
    bz_problem_kind kind;
    void (*open)(bz_training *t);
    part_function *one;
    void (*begin)(bz_training *t), (*end)(bz_training *t);
} bz_training_kind;

enum { BZ_TRAINING_LOSSES = 4 };
extern const bz_training_kind bz_training_losses[BZ_TRAINING_LOSSES]; /* loss.c */
enum { BZ_TRAINING_SAMPLES = 2 };
extern const bz_training_kind bz_training_samples[BZ_TRAINING_SAMPLES]; /* sample.c */

#endif
