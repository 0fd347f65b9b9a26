/* Forms in which exporters write a layer out, where its parts have to be told by more than their kinds. */
#include "modelproc/modelproc.h"

#include <string.h>

/* The operand of a layer, beside what the one before it made, with a value for each channel; BZ_NO_VALUE. */
static bz_value_id by_channel(const bz_layer *l, const bz_layer *before)
{
    const bz_type *y = &l->out[0];
    for (int k = 0; k < 2 && l->n_in == 2; k++) {
        const bz_type *t = &l->in[k];
        int axis = t->kind == BZ_TYPE_TENSOR ? t->rank - y->rank + 1 : -1;
        if (l->node->in[1 - k] == before->node->out[0] && axis >= 0 && axis < t->rank && t->dims[axis] == y->dims[1] &&
            bz_type_elements(t) == y->dims[1])
            return l->node->in[k];
    }
    return BZ_NO_VALUE;
}

bool bz_groupnorm_find(const bz_layers *layers, const int *layer, int n, bz_groupnorm *out)
{
    static const char *const KINDS[] = {"reshape", "instancenorm", "reshape", "mul", "add"};
    enum { GROUPED, NORM, BACK, SCALE, SHIFT, STEPS };
    const bz_layer *l[STEPS];
    for (int i = 0; i < STEPS; i++) {
        l[i] = n == STEPS ? &layers->layer[layer[i]] : NULL;
        if (!l[i] || strcmp(l[i]->kind, KINDS[i]) != 0 || l[i]->n_out != 1 ||
            (i && i < SCALE && l[i]->node->in[0] != l[i - 1]->node->out[0]))
            return false;
    }
    const bz_type *x = &l[GROUPED]->in[0], *grouped = &l[NORM]->in[0], *y = &l[SHIFT]->out[0];
    bool fits = l[NORM]->n_in == 3 && x->rank >= 3 && y->rank == x->rank && l[BACK]->out[0].rank == x->rank &&
                grouped->rank >= 3 && grouped->dims[0] == x->dims[0] && grouped->dims[1] > 0 &&
                x->dims[1] % grouped->dims[1] == 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = y->dims[i] == x->dims[i] && l[BACK]->out[0].dims[i] == x->dims[i];
    if (!fits)
        return false;
    *out = (bz_groupnorm){l[NORM], l[GROUPED]->node->in[0], by_channel(l[SCALE], l[BACK]),
                          by_channel(l[SHIFT], l[SCALE]), grouped->dims[1]};
    return out->scale >= 0 && out->shift >= 0;
}
