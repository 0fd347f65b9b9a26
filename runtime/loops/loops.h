/* loops: loops of our own over row-major tensors. A replay runs them where no library call computes a layer, and the
 * backend `loops` offers them as variants of problems. Private to runtime/. */
#ifndef BZ_LOOPS_H
#define BZ_LOOPS_H

#include "runtime/plain.h"
#include "runtime/replay.h"

/* Runs a loop on row-major operands, of a copy as its strides say. `dtype` are their types, the result's last. -1 where there is no such function. */
int bz_loop_run(const bz_replay_loop *loop, void *const *operand, const bz_dtype *dtype, const int64_t *count, int n,
                int threads);
bool bz_loop_knows(const bz_replay_loop *loop);

/* Loops along an axis, as bz_loop_run calls them. */
bool bz_lanes_know(const bz_replay_loop *loop);
void bz_lanes_run(const bz_replay_loop *loop, void *const *operand, const bz_dtype *dtype, int n, int threads);

/* Problems that are worked off in parts: normalizations, softmax, reductions, casts, padding, and those that only training has. NULL where
 * the problem is none, or not in these types, and *why says that. The job outlives it. */
typedef struct bz_parts bz_parts;
bz_parts *bz_parts_open(const bz_job *job, const char **why);
void bz_parts_run(bz_parts *t, const bz_plain *plain, int copy);
void bz_parts_close(bz_parts *t); /* NULL is fine */

/* n elements of an operand as f32: where they lie, or widened into `room`. Where to write n elements, and what brings them
 * there from the room; `to` is what bz_row_to gave. */
const float *bz_row_from(const bz_plain *p, int operand, int copy, int64_t at, int64_t n, float *room);
float *bz_row_to(const bz_plain *p, int operand, int copy, int64_t at, float *room);
void bz_row_done(const bz_plain *p, int operand, int copy, int64_t at, int64_t n, const float *to);

bool bz_posts_known(const bz_problem *p); /* do all of its post-operations have a kernel? */

/* Calls `share` for each of `threads` parts of n, in as many threads where that pays: `work` elements are computed. 0 threads: as many as
 * libraries use. */
void bz_share_out(void (*share)(void *context, int64_t first, int64_t end, int thread), void *context, int64_t n,
                  int64_t work, int threads);

#endif
