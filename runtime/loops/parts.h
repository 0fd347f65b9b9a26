/* Problems that are worked off in parts, which threads share: rows, channels, columns, blocks of elements. Elements are f32 while
 * they are worked on: where they lie, or widened into the thread's room. Private to runtime/loops. */
#ifndef BZ_LOOPS_PARTS_H
#define BZ_LOOPS_PARTS_H

#include "runtime/kind.h"
#include "runtime/loops/kernels.h"
#include "runtime/loops/loops.h"

#include <string.h>

enum { BLOCK = 4096, COLUMNS = 512, ROOMS = 4 };

typedef void part_function(bz_parts *t, int64_t part, int thread);

struct bz_parts {
    const bz_job *job;
    const bz_problem *problem;
    const bz_kernels *kernels;
    const bz_training_kernels *own;
    part_function *one;
    void (*begin)(bz_parts *t); /* before the parts, */
    void (*end)(bz_parts *t);   /* and behind them; NULL: nothing */
    int64_t parts, length;      /* length: elements of a row */
    int64_t inner;              /* along an axis, by channel: elements behind it */
    int y;                      /* the result */
    float epsilon;
    float *room; /* [threads][ROOMS][length]; NULL where all is f32 */
    /* [threads][2 · n_sums]: of a normalization's scale and shift; partial losses; what a batchnorm multiplies by and adds */
    float *sums;
    int64_t n_sums;
    double share; /* of a label in the loss */
    bz_norm norm;
    bool statistics; /* are results, too */
    bz_update update;
    uint32_t seed; /* dropout: another one each time */
    const bz_plain *plain;
    int copy;
    /* reduce: dimensions of x that are kept and those that are not, neighbours made one */
    int n_kept, n_gone;
    int64_t kept[BZ_PROBLEM_RANK], kept_step[BZ_PROBLEM_RANK], gone[BZ_PROBLEM_RANK], gone_step[BZ_PROBLEM_RANK];
    int64_t count;  /* of values for each result */
    int64_t pieces; /* results in a part, or pieces of a row, or rows in a part of a pad */
    bool last_kept;
    /* pad: x and y without the dimensions that nothing is added to at the end; in elements */
    int rank;
    int64_t x[BZ_PROBLEM_RANK], padded[BZ_PROBLEM_RANK], before[BZ_PROBLEM_RANK];
};

/* ---- operands ------------------------------------------------------------------------------- */

static inline int operand_of(const bz_parts *t, bz_role role, bool result)
{
    for (int i = 0; i < t->job->n_operands; i++)
        if (t->job->operand[i].role == role && t->job->operand[i].result == result)
            return i;
    return -1;
}

/* In f32, as parameters are; NULL where there is none. */
static inline float *parameter(const bz_parts *t, bz_role role, bool result)
{
    int i = operand_of(t, role, result);
    return i < 0 ? NULL : bz_plain_at(t->plain, i, t->copy);
}

static inline float *room_of(const bz_parts *t, int thread, int number)
{
    return t->room ? t->room + ((int64_t)thread * ROOMS + number) * t->length : NULL;
}

static inline const float *from(const bz_parts *t, int operand, int64_t at, int64_t n, int thread, int room)
{
    return bz_row_from(t->plain, operand, t->copy, at, n, room_of(t, thread, room));
}

static inline float *to(const bz_parts *t, int operand, int64_t at, int thread, int room)
{
    return bz_row_to(t->plain, operand, t->copy, at, room_of(t, thread, room));
}

static inline void done(const bz_parts *t, int operand, int64_t at, int64_t n, const float *row)
{
    bz_row_done(t->plain, operand, t->copy, at, n, row);
}

static inline int64_t pieces(int64_t all, int64_t length)
{
    return (all + length - 1) / length;
}

static inline int64_t block_of(const bz_parts *t, int64_t part, int64_t *at)
{
    int64_t all = t->job->operand[t->y].count;
    *at = part * BLOCK;
    return all - *at < BLOCK ? all - *at : BLOCK;
}

static inline void open_blocks(bz_parts *t)
{
    t->length = BLOCK;
    t->parts = pieces(t->job->operand[t->y].count, BLOCK);
}

static inline void clear_sums(bz_parts *t)
{
    memset(t->sums, 0, (size_t)t->job->setting->threads * 2 * (size_t)t->n_sums * sizeof *t->sums);
}

static inline int64_t label_of(const bz_parts *t, const void *labels, int64_t i)
{
    return t->problem->dtype_w == BZ_I32 ? ((const int32_t *)labels)[i] : ((const int64_t *)labels)[i];
}

/* Parts along an axis: rows where it is the last, else some columns of it. */
static inline void open_axis(bz_parts *t, const int64_t *x, int64_t axis, part_function *row, part_function *columns)
{
    t->inner = bz_extent_count(x + axis + 1);
    t->length = t->inner == 1 ? x[axis] : COLUMNS;
    t->parts = bz_extent_count(x) / x[axis] / t->inner * pieces(t->inner, COLUMNS);
    t->one = t->inner == 1 ? row : columns;
}

/* Types that the loops of a kind take: floating-point numbers that are widened to f32; those of data alone, whatever indices and
 * masks are; all that kernels widen; any, as bytes are moved. */
typedef enum { PART_FLOATS, PART_DATA, PART_CASTS, PART_BYTES } part_types;

/* A row of the table of problems. `open` sets parts and length; it clears `one` where the loops take no such problem. */
typedef struct bz_part_kind {
    bz_problem_kind kind;
    part_types types;
    void (*open)(bz_parts *t);
    part_function *one;
    void (*begin)(bz_parts *t), (*end)(bz_parts *t);
} bz_part_kind;

/* Of rows.c, training.c, loss.c, sample.c; each ends with BZ_PROBLEM_NONE. */
extern const bz_part_kind bz_part_rows[], bz_part_training[], bz_part_losses[], bz_part_samples[];

#endif
