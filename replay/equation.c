/* Einsums: their operands are turned to lie as the product wants them, and the result back, by loops that no bound has. */
#include "replay/bind.h"

#include <string.h>

/* A loop over the tensor in the order of the call: stride[0] in it as the layer has it, stride[1] as the call has it. Returns whether they differ. */
static bool is_turned(const bz_type *t, const int *axis, bz_replay_loop *loop)
{
    int64_t own[BZ_MAX_RANK], ordered[BZ_PROBLEM_RANK];
    int last = -1;
    bool turned = false;
    bind_row_major(t, own);
    loop->rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        ordered[i] = loop->dim[i] = t->dims[axis[i]];
        loop->stride[0][i] = own[axis[i]];
        turned |= ordered[i] != 1 && axis[i] < last;
        last = ordered[i] != 1 ? axis[i] : last;
    }
    bind_row_major(&(bz_type){.kind = BZ_TYPE_TENSOR, .rank = t->rank, .dims = ordered}, loop->stride[1]);
    return turned;
}

/* Operand k as the call wants it; a constant is turned before anything runs. */
static int turned_operand(binder *b, const bz_layer *l, int k, const int *axis)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int from = bind_in(b, k);
    if (from < 0 || !is_turned(&l->in[k], axis, &loop))
        return from;
    const bool once = b->once;
    b->once = once || l->in_constant[k];
    int to = bind_new(b, bind_at(b, from)->dtype, loop.rank, loop.dim);
    bind_loop(b, &loop, &from, 1, to);
    b->once = once;
    return to;
}

static int turned_result(binder *b, int made, const bz_replay_loop *as_call, int out)
{
    bz_replay_loop loop = *as_call;
    memcpy(loop.stride[0], as_call->stride[1], sizeof loop.stride[0]);
    memcpy(loop.stride[1], as_call->stride[0], sizeof loop.stride[1]);
    return bind_loop(b, &loop, &made, 1, out);
}

int bind_einsum(binder *b, const bz_layer *l, const bz_problem *p)
{
    bz_einsum_order order;
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int in[2];
    if (!bz_lower_einsum_order(l, &order) || l->out[0].rank > BZ_PROBLEM_RANK)
        return bind_no(b, "it takes several calls");
    for (int k = 0; k < l->n_in; k++)
        in[k] = turned_operand(b, l, k, order.axis[k]);
    int out = bind_result(b, 0);
    bool turned = is_turned(&l->out[0], order.axis[2], &loop);
    int made = turned ? bind_new(b, bind_at(b, out)->dtype, loop.rank, loop.dim) : out;
    bind_call(b, p, in, l->n_in, NULL, 0, made);
    return turned ? turned_result(b, made, &loop, out) : bind_done(b);
}
