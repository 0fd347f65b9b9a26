/* A layer, and what a graph of layers is told of, as text. */
#ifndef BZ_MODELPROC_SAY_H
#define BZ_MODELPROC_SAY_H

#include "modelproc/modelproc.h"

static void say_layer(const bz_model *m, const bz_layer *l, bz_buf *out)
{
    bz_buf_printf(out, "%d %s %s %s %lld %lld %lld %lld %d%d ->", l->index, l->name, l->key, bz_class_name(l->class),
                  (long long)l->macs, (long long)l->flops, (long long)l->bytes, (long long)l->params_count, l->priced,
                  l->opaque);
    for (int k = 0; k < l->n_out; k++) {
        bz_buf_printf(out, " %d ", l->out[k].kind == BZ_TYPE_TENSOR ? (int)l->out[k].dtype : 0);
        bz_type_text(m, &l->out[k], out);
    }
    for (int k = 0; k < l->n_in; k++)
        bz_buf_puts(out, l->in_constant[k] ? " constant" : l->in_setting[k] ? " setting" : " data");
    bz_buf_printf(out, " %s\n", bz_layer_step_kind(l));
    for (int b = 0; b < l->n_bodies; b++)
        for (int i = 0; i < l->bodies[b].n; i++)
            say_layer(m, &l->bodies[b].layers[i], out);
}

static void say_spares(bz_layers *l, bz_spares *spares, bz_buf *out)
{
    bz_spares_find(l, spares);
    for (int i = 0; i < spares->n; i++)
        bz_buf_printf(out, "%s %d\n", spares->match[i].pattern, spares->match[i].layer[0]);
    for (int v = 0; spares->stands && v < l->model->n_values; v++)
        if (spares->stands[v] != v)
            bz_buf_printf(out, "%d is %d\n", v, spares->stands[v]);
}

#endif
