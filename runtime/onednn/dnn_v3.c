/* Operations of oneDNN 3: the first primitive descriptor is made at once, the next ones are steps from it. */
#include "runtime/onednn/dnn.h"

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t collect(dnn_impls *out, dnnl_primitive_desc_t pd, dnnl_status_t status)
{
    if (status != dnnl_success)
        return status;
    do {
        if (dnnl_primitive_desc_clone(&out->pd[out->n], pd) != dnnl_success)
            break;
        out->n++;
    } while (out->n < DNN_MAX_IMPLS && dnnl_primitive_desc_next_impl(pd) == dnnl_success);
    dnnl_primitive_desc_destroy(pd);
    return dnnl_success;
}

#define COLLECT(create)                                                                                                \
    dnnl_primitive_desc_t pd = NULL;                                                                                   \
    dnnl_status_t status = create;                                                                                     \
    return collect(out, pd, status)

dnnl_status_t dnn_convolution(dnn_impls *out, bool transposed, dnnl_alg_kind_t alg, dnn_md x, dnn_md w, dnn_md bias,
                              dnn_md y, const dnn_window *window)
{
    if (transposed) {
        COLLECT(dnnl_deconvolution_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, x, w, bias, y,
                                                                 window->stride, window->skip, window->begin,
                                                                 window->end, out->attr));
    }
    COLLECT(dnnl_convolution_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, x, w, bias, y,
                                                           window->stride, window->skip, window->begin, window->end,
                                                           out->attr));
}

dnnl_status_t dnn_inner_product(dnn_impls *out, dnn_md x, dnn_md w, dnn_md bias, dnn_md y)
{
    COLLECT(
        dnnl_inner_product_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), x, w, bias, y, out->attr));
}

dnnl_status_t dnn_matmul(dnn_impls *out, dnn_md a, dnn_md b, dnn_md bias, dnn_md y)
{
    COLLECT(dnnl_matmul_primitive_desc_create(&pd, out->engine, a, b, bias, y, out->attr));
}

dnnl_status_t dnn_pooling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, const dnn_window *window)
{
    COLLECT(dnnl_pooling_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, x, y, window->stride,
                                                       window->kernel, window->skip, window->begin, window->end,
                                                       out->attr));
}

dnnl_status_t dnn_batchnorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT(dnnl_batch_normalization_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), x, x, epsilon,
                                                                   flags, out->attr));
}

dnnl_status_t dnn_layernorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT(dnnl_layer_normalization_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), x, x, NULL, epsilon,
                                                                   flags, out->attr));
}

dnnl_status_t dnn_groupnorm(dnn_impls *out, dnn_md x, int64_t groups, float epsilon, unsigned flags)
{
#if DNNL_VERSION_MAJOR > 3 || DNNL_VERSION_MINOR >= 3
    COLLECT(dnnl_group_normalization_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), x, x, groups,
                                                                   epsilon, flags, out->attr));
#else
    (void)out, (void)x, (void)groups, (void)epsilon, (void)flags;
    return dnnl_unimplemented;
#endif
}

dnnl_status_t dnn_softmax(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, int axis)
{
    COLLECT(dnnl_softmax_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, x, y, axis, out->attr));
}

dnnl_status_t dnn_lrn(dnn_impls *out, dnn_md x, int64_t size, float alpha, float beta, float k)
{
    COLLECT(dnnl_lrn_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), dnnl_lrn_across_channels, x, x,
                                                   size, alpha, beta, k, out->attr));
}

dnnl_status_t dnn_eltwise(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    COLLECT(
        dnnl_eltwise_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, x, x, alpha, beta, out->attr));
}

dnnl_status_t dnn_prelu(dnn_impls *out, dnn_md x, dnn_md slope)
{
    COLLECT(dnnl_prelu_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), x, slope, x, out->attr));
}

dnnl_status_t dnn_binary(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md a, dnn_md b, dnn_md y)
{
    COLLECT(dnnl_binary_primitive_desc_create(&pd, out->engine, alg, a, b, y, out->attr));
}

dnnl_status_t dnn_reduction(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, float p)
{
    COLLECT(dnnl_reduction_primitive_desc_create(&pd, out->engine, alg, x, y, p, 0, out->attr));
}

dnnl_status_t dnn_resampling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y)
{
    COLLECT(dnnl_resampling_forward_primitive_desc_create(&pd, out->engine, dnn_prop(out), alg, NULL, x, y, out->attr));
}

dnnl_status_t dnn_concat(dnn_impls *out, dnn_md y, int n, int axis, const dnn_md *x)
{
    const_dnnl_memory_desc_t list[64];
    for (int i = 0; i < n && i < 64; i++)
        list[i] = x[i];
    COLLECT(dnnl_concat_primitive_desc_create(&pd, out->engine, y, n, axis, list, out->attr));
}

dnnl_status_t dnn_reorder(dnn_impls *out, dnn_md x, dnn_md y)
{
    COLLECT(dnnl_reorder_primitive_desc_create(&pd, x, out->engine, y, out->engine, out->attr));
}

dnnl_status_t dnn_rnn(dnn_impls *out, const dnn_layer *layer, const dnn_states *s)
{
    dnnl_prop_kind_t prop = dnn_prop(out);
    if (layer->cell == DNN_LSTM) {
        COLLECT(dnnl_lstm_forward_primitive_desc_create(&pd, out->engine, prop, layer->direction, s->x, s->h, s->c,
                                                        s->w, s->r, s->peephole, NULL, s->bias, s->y, s->last,
                                                        s->last_c, 0, out->attr));
    }
    if (layer->cell == DNN_GRU) {
        COLLECT(dnnl_gru_forward_primitive_desc_create(&pd, out->engine, prop, layer->direction, s->x, s->h, s->w, s->r,
                                                       s->bias, s->y, s->last, 0, out->attr));
    }
    if (layer->cell == DNN_LBR_GRU) {
        COLLECT(dnnl_lbr_gru_forward_primitive_desc_create(&pd, out->engine, prop, layer->direction, s->x, s->h, s->w,
                                                           s->r, s->bias, s->y, s->last, 0, out->attr));
    }
    COLLECT(dnnl_vanilla_rnn_forward_primitive_desc_create(&pd, out->engine, prop, layer->activation, layer->direction,
                                                           s->x, s->h, s->w, s->r, s->bias, s->y, s->last, 0, 0, 0,
                                                           out->attr));
}

/* ---- backward passes ------------------------------------------------------------------------ */

/* Describes the forward pass, whose first descriptor `hint` the backward one takes. */
#define COLLECT_BACKWARD(forward_pass, create)                                                                         \
    dnn_impls forward = {.engine = out->engine, .attr = out->attr, .training = true};                                  \
    dnnl_primitive_desc_t pd = NULL;                                                                                   \
    dnnl_status_t status = forward_pass;                                                                               \
    const_dnnl_primitive_desc_t hint = dnn_hint(&forward);                                                             \
    if (status == dnnl_success)                                                                                        \
        status = create;                                                                                               \
    status = collect(out, pd, status);                                                                                 \
    dnn_impls_free(&forward);                                                                                          \
    return status

dnnl_status_t dnn_convolution_data(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md w, dnn_md dy,
                                   const dnn_window *window)
{
    COLLECT_BACKWARD(dnn_convolution(&forward, false, alg, dx, w, NULL, dy, window),
                     dnnl_convolution_backward_data_primitive_desc_create(&pd, out->engine, alg, dx, w, dy,
                                                                          window->stride, window->skip, window->begin,
                                                                          window->end, hint, out->attr));
}

dnnl_status_t dnn_convolution_weights(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md hint_w, dnn_md dw,
                                      dnn_md dy, const dnn_window *window)
{
    COLLECT_BACKWARD(dnn_convolution(&forward, false, alg, x, hint_w, NULL, dy, window),
                     dnnl_convolution_backward_weights_primitive_desc_create(
                         &pd, out->engine, alg, x, dw, NULL, dy, window->stride, window->skip, window->begin,
                         window->end, hint, out->attr));
}

dnnl_status_t dnn_pooling_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md dy, const dnn_window *window)
{
    COLLECT_BACKWARD(dnn_pooling(&forward, alg, dx, dy, window),
                     dnnl_pooling_backward_primitive_desc_create(&pd, out->engine, alg, dx, dy, window->stride,
                                                                 window->kernel, window->skip, window->begin,
                                                                 window->end, hint, out->attr));
}

dnnl_status_t dnn_batchnorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT_BACKWARD(dnn_batchnorm(&forward, x, epsilon, flags),
                     dnnl_batch_normalization_backward_primitive_desc_create(&pd, out->engine, dnnl_backward, x, x, x,
                                                                             epsilon, flags, hint, out->attr));
}

dnnl_status_t dnn_layernorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT_BACKWARD(dnn_layernorm(&forward, x, epsilon, flags),
                     dnnl_layer_normalization_backward_primitive_desc_create(&pd, out->engine, dnnl_backward, x, x, x,
                                                                             NULL, epsilon, flags, hint, out->attr));
}

dnnl_status_t dnn_eltwise_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    COLLECT_BACKWARD(
        dnn_eltwise(&forward, alg, x, alpha, beta),
        dnnl_eltwise_backward_primitive_desc_create(&pd, out->engine, alg, x, x, x, alpha, beta, hint, out->attr));
}

dnnl_status_t dnn_softmax_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md y, int axis)
{
    COLLECT_BACKWARD(
        dnn_softmax(&forward, alg, y, y, axis),
        dnnl_softmax_backward_primitive_desc_create(&pd, out->engine, alg, y, y, y, axis, hint, out->attr));
}

dnnl_status_t dnn_rnn_grad(dnn_impls *out, const dnn_layer *layer, const dnn_states *s, const dnn_states *g,
                           const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status;
    if (layer->cell == DNN_LSTM)
        status = dnnl_lstm_backward_primitive_desc_create(&pd, out->engine, dnnl_backward, layer->direction, s->x, s->h,
                                                          s->c, s->w, s->r, NULL, NULL, s->bias, s->y, s->last,
                                                          s->last_c, g->x, g->h, g->c, g->w, g->r, NULL, NULL, g->bias,
                                                          g->y, g->last, g->last_c, 0, hint, out->attr);
    else if (layer->cell == DNN_RNN)
        status = dnnl_vanilla_rnn_backward_primitive_desc_create(
            &pd, out->engine, dnnl_backward, layer->activation, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y,
            s->last, g->x, g->h, g->w, g->r, g->bias, g->y, g->last, 0, 0, 0, hint, out->attr);
    else
        status = (layer->cell == DNN_GRU ? dnnl_gru_backward_primitive_desc_create
                                         : dnnl_lbr_gru_backward_primitive_desc_create)(
            &pd, out->engine, dnnl_backward, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y, s->last, g->x,
            g->h, g->w, g->r, g->bias, g->y, g->last, 0, hint, out->attr);
    return collect(out, pd, status);
}

#endif
