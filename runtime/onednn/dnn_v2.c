/* Operations of oneDNN 2: a struct describes one, an iterator goes through its implementations. */
#include "runtime/onednn/dnn.h"

#if DNNL_VERSION_MAJOR < 3

/* Takes over what the iterator offers until it ends or the table is full. */
static dnnl_status_t collect(dnn_impls *out, const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&it, op, out->attr, out->engine, hint);
    if (status != dnnl_success)
        return status;
    do
        out->pd[out->n++] = dnnl_primitive_desc_iterator_fetch(it);
    while (out->n < DNN_MAX_IMPLS && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
    return dnnl_success;
}

/* Describes with `init`, then collects. */
#define COLLECT(init)                                                                                                  \
    dnnl_status_t status = init;                                                                                       \
    return status == dnnl_success ? collect(out, &d, NULL) : status

dnnl_status_t dnn_convolution(dnn_impls *out, bool transposed, dnnl_alg_kind_t alg, dnn_md x, dnn_md w, dnn_md bias,
                              dnn_md y, const dnn_window *window)
{
    if (transposed) {
        dnnl_deconvolution_desc_t d;
        COLLECT(dnnl_dilated_deconvolution_forward_desc_init(&d, dnn_prop(out), alg, x, w, bias, y, window->stride,
                                                             window->skip, window->begin, window->end));
    }
    dnnl_convolution_desc_t d;
    COLLECT(dnnl_dilated_convolution_forward_desc_init(&d, dnn_prop(out), alg, x, w, bias, y, window->stride,
                                                       window->skip, window->begin, window->end));
}

dnnl_status_t dnn_inner_product(dnn_impls *out, dnn_md x, dnn_md w, dnn_md bias, dnn_md y)
{
    dnnl_inner_product_desc_t d;
    COLLECT(dnnl_inner_product_forward_desc_init(&d, dnn_prop(out), x, w, bias, y));
}

dnnl_status_t dnn_matmul(dnn_impls *out, dnn_md a, dnn_md b, dnn_md bias, dnn_md y)
{
    dnnl_matmul_desc_t d;
    COLLECT(dnnl_matmul_desc_init(&d, a, b, bias, y));
}

dnnl_status_t dnn_pooling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, const dnn_window *window)
{
    dnnl_pooling_v2_desc_t d;
    COLLECT(dnnl_pooling_v2_forward_desc_init(&d, dnn_prop(out), alg, x, y, window->stride, window->kernel,
                                              window->skip, window->begin, window->end));
}

dnnl_status_t dnn_batchnorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    dnnl_batch_normalization_desc_t d;
    COLLECT(dnnl_batch_normalization_forward_desc_init(&d, dnn_prop(out), x, epsilon, flags));
}

dnnl_status_t dnn_layernorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    dnnl_layer_normalization_desc_t d;
    COLLECT(dnnl_layer_normalization_forward_desc_init(&d, dnn_prop(out), x, NULL, epsilon, flags));
}

dnnl_status_t dnn_groupnorm(dnn_impls *out, dnn_md x, int64_t groups, float epsilon, unsigned flags)
{
    (void)out, (void)x, (void)groups, (void)epsilon, (void)flags;
    return dnnl_unimplemented;
}

dnnl_status_t dnn_softmax(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, int axis)
{
    dnnl_softmax_v2_desc_t d;
    COLLECT(dnnl_softmax_v2_forward_desc_init(&d, dnn_prop(out), alg, x, y, axis));
}

dnnl_status_t dnn_lrn(dnn_impls *out, dnn_md x, int64_t size, float alpha, float beta, float k)
{
    dnnl_lrn_desc_t d;
    COLLECT(dnnl_lrn_forward_desc_init(&d, dnn_prop(out), dnnl_lrn_across_channels, x, size, alpha, beta, k));
}

dnnl_status_t dnn_eltwise(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    dnnl_eltwise_desc_t d;
    COLLECT(dnnl_eltwise_forward_desc_init(&d, dnn_prop(out), alg, x, alpha, beta));
}

dnnl_status_t dnn_prelu(dnn_impls *out, dnn_md x, dnn_md slope)
{
    dnnl_prelu_desc_t d;
    COLLECT(dnnl_prelu_forward_desc_init(&d, dnn_prop(out), x, slope));
}

dnnl_status_t dnn_binary(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md a, dnn_md b, dnn_md y)
{
    dnnl_binary_desc_t d;
    COLLECT(dnnl_binary_desc_init(&d, alg, a, b, y));
}

dnnl_status_t dnn_reduction(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, float p)
{
    dnnl_reduction_desc_t d;
    COLLECT(dnnl_reduction_desc_init(&d, alg, x, y, p, 0));
}

dnnl_status_t dnn_resampling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y)
{
    dnnl_resampling_desc_t d;
    COLLECT(dnnl_resampling_forward_desc_init(&d, dnn_prop(out), alg, NULL, x, y));
}

dnnl_status_t dnn_concat(dnn_impls *out, dnn_md y, int n, int axis, const dnn_md *x)
{
    dnnl_memory_desc_t list[64];
    for (int i = 0; i < n && i < 64; i++)
        list[i] = *x[i];
    dnnl_status_t status = dnnl_concat_primitive_desc_create(&out->pd[0], y, n, axis, list, out->attr, out->engine);
    out->n = status == dnnl_success;
    return status;
}

dnnl_status_t dnn_reorder(dnn_impls *out, dnn_md x, dnn_md y)
{
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&out->pd[0], x, out->engine, y, out->engine, out->attr);
    out->n = status == dnnl_success;
    return status;
}

dnnl_status_t dnn_rnn(dnn_impls *out, const dnn_layer *layer, const dnn_states *s)
{
    dnnl_prop_kind_t prop = dnn_prop(out);
    dnnl_rnn_desc_t d;
    if (layer->cell == DNN_LSTM) {
        COLLECT(dnnl_lstm_forward_desc_init_v2(&d, prop, layer->direction, s->x, s->h, s->c, s->w, s->r, s->peephole,
                                               s->bias, s->y, s->last, s->last_c, 0));
    }
    if (layer->cell == DNN_GRU) {
        COLLECT(
            dnnl_gru_forward_desc_init(&d, prop, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y, s->last, 0));
    }
    if (layer->cell == DNN_LBR_GRU) {
        COLLECT(dnnl_lbr_gru_forward_desc_init(&d, prop, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y,
                                               s->last, 0));
    }
    COLLECT(dnnl_vanilla_rnn_forward_desc_init(&d, prop, layer->activation, layer->direction, s->x, s->h, s->w, s->r,
                                               s->bias, s->y, s->last, 0, 0, 0));
}

/* ---- backward passes ------------------------------------------------------------------------ */

/* Describes the forward pass, then the backward one with `init`; collects the latter's implementations. */
#define COLLECT_BACKWARD(forward_pass, init)                                                                           \
    dnn_impls forward = {.engine = out->engine, .attr = out->attr, .training = true};                                  \
    dnnl_status_t status = forward_pass;                                                                               \
    if (status == dnnl_success)                                                                                        \
        status = init;                                                                                                 \
    if (status == dnnl_success)                                                                                        \
        status = collect(out, &d, dnn_hint(&forward));                                                                 \
    dnn_impls_free(&forward);                                                                                          \
    return status

dnnl_status_t dnn_convolution_data(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md w, dnn_md dy,
                                   const dnn_window *window)
{
    dnnl_convolution_desc_t d;
    COLLECT_BACKWARD(dnn_convolution(&forward, false, alg, dx, w, NULL, dy, window),
                     dnnl_dilated_convolution_backward_data_desc_init(&d, alg, dx, w, dy, window->stride, window->skip,
                                                                      window->begin, window->end));
}

dnnl_status_t dnn_convolution_weights(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md hint_w, dnn_md dw,
                                      dnn_md dy, const dnn_window *window)
{
    dnnl_convolution_desc_t d;
    COLLECT_BACKWARD(dnn_convolution(&forward, false, alg, x, hint_w, NULL, dy, window),
                     dnnl_dilated_convolution_backward_weights_desc_init(&d, alg, x, dw, NULL, dy, window->stride,
                                                                         window->skip, window->begin, window->end));
}

dnnl_status_t dnn_pooling_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md dy, const dnn_window *window)
{
    dnnl_pooling_v2_desc_t d;
    COLLECT_BACKWARD(dnn_pooling(&forward, alg, dx, dy, window),
                     dnnl_pooling_v2_backward_desc_init(&d, alg, dx, dy, window->stride, window->kernel, window->skip,
                                                        window->begin, window->end));
}

dnnl_status_t dnn_batchnorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    dnnl_batch_normalization_desc_t d;
    COLLECT_BACKWARD(dnn_batchnorm(&forward, x, epsilon, flags),
                     dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, x, x, epsilon, flags));
}

dnnl_status_t dnn_layernorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    dnnl_layer_normalization_desc_t d;
    COLLECT_BACKWARD(dnn_layernorm(&forward, x, epsilon, flags),
                     dnnl_layer_normalization_backward_desc_init(&d, dnnl_backward, x, x, NULL, epsilon, flags));
}

dnnl_status_t dnn_eltwise_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    dnnl_eltwise_desc_t d;
    COLLECT_BACKWARD(dnn_eltwise(&forward, alg, x, alpha, beta),
                     dnnl_eltwise_backward_desc_init(&d, alg, x, x, alpha, beta));
}

dnnl_status_t dnn_softmax_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md y, int axis)
{
    dnnl_softmax_v2_desc_t d;
    COLLECT_BACKWARD(dnn_softmax(&forward, alg, y, y, axis),
                     dnnl_softmax_v2_backward_desc_init(&d, alg, y, y, y, axis));
}

dnnl_status_t dnn_rnn_grad(dnn_impls *out, const dnn_layer *layer, const dnn_states *s, const dnn_states *g,
                           const_dnnl_primitive_desc_t hint)
{
    dnnl_rnn_desc_t d;
    dnnl_status_t status;
    if (layer->cell == DNN_LSTM)
        status = dnnl_lstm_backward_desc_init_v2(&d, dnnl_backward, layer->direction, s->x, s->h, s->c, s->w, s->r,
                                                 NULL, s->bias, s->y, s->last, s->last_c, g->x, g->h, g->c, g->w, g->r,
                                                 NULL, g->bias, g->y, g->last, g->last_c, 0);
    else if (layer->cell == DNN_RNN)
        status = dnnl_vanilla_rnn_backward_desc_init(&d, dnnl_backward, layer->activation, layer->direction, s->x, s->h,
                                                     s->w, s->r, s->bias, s->y, s->last, g->x, g->h, g->w, g->r,
                                                     g->bias, g->y, g->last, 0, 0, 0);
    else
        status = (layer->cell == DNN_GRU ? dnnl_gru_backward_desc_init : dnnl_lbr_gru_backward_desc_init)(
            &d, dnnl_backward, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y, s->last, g->x, g->h, g->w, g->r,
            g->bias, g->y, g->last, 0);
    return status == dnnl_success ? collect(out, &d, hint) : status;
}

#endif
