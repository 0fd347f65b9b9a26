#include "modelproc/eval.h"

#include "modelproc/infer.h"

bool eval_room(call *c, int k, bool real, int64_t n, values *v)
{
    if (k >= c->node->n_out || n < 0 || n > (real ? MAX_REALS : MAX_INTS))
        return false;
    data *d = BZ_NEW(c->arena, data, 1);
    *v = (values){.n = n};
    d->n = n;
    if (real)
        d->r = v->r = BZ_NEW(c->arena, double, n);
    else
        d->i = v->i = BZ_NEW(c->arena, int64_t, n);
    c->out_data[k] = d;
    return true;
}

bool eval_strides(const bz_type *t, int64_t *strides)
{
    if (bz_type_elements(t) < 0)
        return false;
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= t->dims[i];
    }
    return true;
}

int eval_strided(call *c, int k, const data *from, int64_t base, const int64_t *strides)
{
    const bz_type *t = &c->out[k];
    values v;
    if (k >= c->node->n_out || !eval_room(c, k, from->r != NULL, bz_type_elements(t), &v))
        return 0;
    int64_t index[BZ_MAX_RANK] = {0}, at = base;
    for (int64_t n = 0; n < v.n; n++) {
        if (v.i)
            v.i[n] = from->i[at];
        else
            v.r[n] = from->r[at];
        for (int d = t->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < t->dims[d])
                break;
            at -= index[d] * strides[d];
            index[d] = 0;
        }
    }
    return 0;
}

bool eval_fits(const bz_type *operand, const bz_type *result)
{
    if (operand->rank > result->rank)
        return false;
    const bz_dim *against = result->dims + (result->rank - operand->rank);
    for (int i = 0; i < operand->rank; i++)
        if (operand->dims[i] != 1 && operand->dims[i] != against[i])
            return false;
    return true;
}

int64_t eval_broadcast_at(const bz_type *operand, const bz_type *result, int64_t linear)
{
    int64_t at = 0, step = 1;
    for (int d = result->rank - 1, o = operand->rank - 1; o >= 0; d--, o--) {
        int64_t index = linear % result->dims[d];
        linear /= result->dims[d];
        at += operand->dims[o] == 1 ? 0 : index * step;
        step *= operand->dims[o];
    }
    return at;
}

int eval_same(call *c)
{
    c->out_data[0] = in_data(c, 0);
    return 0;
}
