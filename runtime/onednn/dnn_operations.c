/* Operations of oneDNN. Version 2 describes one in a struct, and an iterator goes through its implementations; version 3 makes
 * the first primitive descriptor at once, and the next ones are steps from it. */
#include "runtime/onednn/dnn.h"

/* EITHER has the name in version 2, then that in version 3; IN_3 what version 3 takes besides. */
#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_primitive_desc_t description;
#define EITHER(two, three)                three
#define IN_3(...)                         __VA_ARGS__
#define DESCRIBE_BY(operation, ...)       dnnl_##operation##_primitive_desc_create(&d, out->engine, __VA_ARGS__, out->attr)
#define DESCRIBE_GRADIENT(operation, ...) DESCRIBE(operation, __VA_ARGS__, hint)

static dnnl_status_t collect(dnn_impls *out, description *first, const_dnnl_primitive_desc_t hint)
{
    (void)hint; /* the description has it */
    do {
        if (dnnl_primitive_desc_clone(&out->pd[out->n], *first) != dnnl_success)
            break;
        out->n++;
    } while (out->n < DNN_MAX_IMPLS && dnnl_primitive_desc_next_impl(*first) == dnnl_success);
    dnnl_primitive_desc_destroy(*first);
    return dnnl_success;
}
#else

typedef union description {
    dnnl_convolution_desc_t convolution; /* and deconvolution */
    dnnl_inner_product_desc_t inner_product;
    dnnl_matmul_desc_t matmul;
    dnnl_pooling_v2_desc_t pooling;
    dnnl_batch_normalization_desc_t batch_normalization;
    dnnl_layer_normalization_desc_t layer_normalization;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_lrn_desc_t lrn;
    dnnl_eltwise_desc_t eltwise;
    dnnl_prelu_desc_t prelu;
    dnnl_binary_desc_t binary;
    dnnl_reduction_desc_t reduction;
    dnnl_resampling_desc_t resampling;
    dnnl_rnn_desc_t rnn;
} description;
#define EITHER(two, three) two
#define IN_3(...)
#define DESCRIBE_BY(operation, ...)       dnnl_##operation##_desc_init((void *)&d, __VA_ARGS__)
#define DESCRIBE_GRADIENT(operation, ...) DESCRIBE(operation, __VA_ARGS__)
#define dnnl_lstm_forward_v2_desc_init    dnnl_lstm_forward_desc_init_v2
#define dnnl_lstm_backward_v2_desc_init   dnnl_lstm_backward_desc_init_v2

/* Takes over what the iterator offers until it ends or the table is full. */
static dnnl_status_t collect(dnn_impls *out, description *d, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&it, d, out->attr, out->engine, hint);
    if (status != dnnl_success)
        return status;
    do
        out->pd[out->n++] = dnnl_primitive_desc_iterator_fetch(it);
    while (out->n < DNN_MAX_IMPLS && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
    return dnnl_success;
}
#endif
#define DESCRIBE(operation, ...) DESCRIBE_BY(operation, __VA_ARGS__) /* chooses the name before it is pasted */

#define COLLECT(operation, ...)                                                                                        \
    description d = {0};                                                                                               \
    dnnl_status_t status = DESCRIBE(operation, __VA_ARGS__);                                                           \
    return status == dnnl_success ? collect(out, &d, NULL) : status

dnnl_status_t dnn_convolution(dnn_impls *out, bool transposed, dnnl_alg_kind_t alg, dnn_md x, dnn_md w, dnn_md bias,
                              dnn_md y, const dnn_window *window)
{
    if (transposed) {
        COLLECT(EITHER(dilated_deconvolution_forward, deconvolution_forward), dnn_prop(out), alg, x, w, bias, y,
                window->stride, window->skip, window->begin, window->end);
    }
    COLLECT(EITHER(dilated_convolution_forward, convolution_forward), dnn_prop(out), alg, x, w, bias, y, window->stride,
            window->skip, window->begin, window->end);
}

dnnl_status_t dnn_inner_product(dnn_impls *out, dnn_md x, dnn_md w, dnn_md bias, dnn_md y)
{
    COLLECT(inner_product_forward, dnn_prop(out), x, w, bias, y);
}

dnnl_status_t dnn_matmul(dnn_impls *out, dnn_md a, dnn_md b, dnn_md bias, dnn_md y)
{
    COLLECT(matmul, a, b, bias, y);
}

dnnl_status_t dnn_pooling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, const dnn_window *window)
{
    COLLECT(EITHER(pooling_v2_forward, pooling_forward), dnn_prop(out), alg, x, y, window->stride, window->kernel,
            window->skip, window->begin, window->end);
}

dnnl_status_t dnn_batchnorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT(batch_normalization_forward, dnn_prop(out), x, IN_3(x, ) epsilon, flags);
}

dnnl_status_t dnn_layernorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT(layer_normalization_forward, dnn_prop(out), x, IN_3(x, ) NULL, epsilon, flags);
}

dnnl_status_t dnn_groupnorm(dnn_impls *out, dnn_md x, int64_t groups, float epsilon, unsigned flags)
{
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 3)
    COLLECT(group_normalization_forward, dnn_prop(out), x, x, groups, epsilon, flags);
#else
    (void)out, (void)x, (void)groups, (void)epsilon, (void)flags;
    return dnnl_unimplemented;
#endif
}

dnnl_status_t dnn_softmax(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, int axis)
{
    COLLECT(EITHER(softmax_v2_forward, softmax_forward), dnn_prop(out), alg, x, y, axis);
}

dnnl_status_t dnn_lrn(dnn_impls *out, dnn_md x, int64_t size, float alpha, float beta, float k)
{
    COLLECT(lrn_forward, dnn_prop(out), dnnl_lrn_across_channels, x, IN_3(x, ) size, alpha, beta, k);
}

dnnl_status_t dnn_eltwise(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    COLLECT(eltwise_forward, dnn_prop(out), alg, x, IN_3(x, ) alpha, beta);
}

dnnl_status_t dnn_prelu(dnn_impls *out, dnn_md x, dnn_md slope)
{
    COLLECT(prelu_forward, dnn_prop(out), x, slope IN_3(, x));
}

dnnl_status_t dnn_binary(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md a, dnn_md b, dnn_md y)
{
    COLLECT(binary, alg, a, b, y);
}

dnnl_status_t dnn_reduction(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, float p)
{
    COLLECT(reduction, alg, x, y, p, 0);
}

dnnl_status_t dnn_resampling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y)
{
    COLLECT(resampling_forward, dnn_prop(out), alg, NULL, x, y);
}

/* The two that version 2, too, describes at once: there is one implementation then. */
static dnnl_status_t collect_made(dnn_impls *out, dnnl_primitive_desc_t pd, dnnl_status_t status)
{
#if DNNL_VERSION_MAJOR >= 3
    return status == dnnl_success ? collect(out, &pd, NULL) : status;
#else
    out->pd[0] = pd;
    out->n = status == dnnl_success;
    return status;
#endif
}

dnnl_status_t dnn_concat(dnn_impls *out, dnn_md y, int n, int axis, const dnn_md *x)
{
    EITHER(dnnl_memory_desc_t, const_dnnl_memory_desc_t) list[64];
    dnnl_primitive_desc_t pd = NULL;
    for (int i = 0; i < n && i < 64; i++)
        list[i] = EITHER(*x[i], x[i]);
    dnnl_status_t status = EITHER(dnnl_concat_primitive_desc_create(&pd, y, n, axis, list, out->attr, out->engine),
                                  dnnl_concat_primitive_desc_create(&pd, out->engine, y, n, axis, list, out->attr));
    return collect_made(out, pd, status);
}

dnnl_status_t dnn_reorder(dnn_impls *out, dnn_md x, dnn_md y)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, x, out->engine, y, out->engine, out->attr);
    return collect_made(out, pd, status);
}

dnnl_status_t dnn_rnn(dnn_impls *out, const dnn_layer *layer, const dnn_states *s)
{
    dnnl_prop_kind_t prop = dnn_prop(out);
    if (layer->cell == DNN_LSTM) {
        COLLECT(EITHER(lstm_forward_v2, lstm_forward), prop, layer->direction, s->x, s->h, s->c, s->w, s->r,
                s->peephole, IN_3(NULL, ) s->bias, s->y, s->last, s->last_c, 0);
    }
    if (layer->cell == DNN_GRU) {
        COLLECT(gru_forward, prop, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y, s->last, 0);
    }
    if (layer->cell == DNN_LBR_GRU) {
        COLLECT(lbr_gru_forward, prop, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y, s->last, 0);
    }
    COLLECT(vanilla_rnn_forward, prop, layer->activation, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y,
            s->last, 0, 0, 0);
}

/* Describes the forward pass, whose first descriptor the backward one takes as its hint; collects the latter's implementations. */
#define COLLECT_GRADIENT(forward_pass, operation, ...)                                                                 \
    dnn_impls forward = {.engine = out->engine, .attr = out->attr, .training = true};                                  \
    description d = {0};                                                                                               \
    dnnl_status_t status = forward_pass;                                                                               \
    const_dnnl_primitive_desc_t hint = dnn_hint(&forward);                                                             \
    if (status == dnnl_success)                                                                                        \
        status = DESCRIBE_GRADIENT(operation, __VA_ARGS__);                                                            \
    if (status == dnnl_success)                                                                                        \
        status = collect(out, &d, hint);                                                                               \
    dnn_impls_free(&forward);                                                                                          \
    return status

dnnl_status_t dnn_convolution_data(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md w, dnn_md dy,
                                   const dnn_window *window)
{
    COLLECT_GRADIENT(dnn_convolution(&forward, false, alg, dx, w, NULL, dy, window),
                     EITHER(dilated_convolution_backward_data, convolution_backward_data), alg, dx, w, dy,
                     window->stride, window->skip, window->begin, window->end);
}

dnnl_status_t dnn_convolution_weights(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md hint_w, dnn_md dw,
                                      dnn_md dy, const dnn_window *window)
{
    COLLECT_GRADIENT(dnn_convolution(&forward, false, alg, x, hint_w, NULL, dy, window),
                     EITHER(dilated_convolution_backward_weights, convolution_backward_weights), alg, x, dw, NULL, dy,
                     window->stride, window->skip, window->begin, window->end);
}

dnnl_status_t dnn_pooling_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md dy, const dnn_window *window)
{
    COLLECT_GRADIENT(dnn_pooling(&forward, alg, dx, dy, window), EITHER(pooling_v2_backward, pooling_backward), alg, dx,
                     dy, window->stride, window->kernel, window->skip, window->begin, window->end);
}

dnnl_status_t dnn_batchnorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT_GRADIENT(dnn_batchnorm(&forward, x, epsilon, flags), batch_normalization_backward, dnnl_backward, x,
                     IN_3(x, ) x, epsilon, flags);
}

dnnl_status_t dnn_layernorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags)
{
    COLLECT_GRADIENT(dnn_layernorm(&forward, x, epsilon, flags), layer_normalization_backward, dnnl_backward, x,
                     IN_3(x, ) x, NULL, epsilon, flags);
}

dnnl_status_t dnn_eltwise_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta)
{
    COLLECT_GRADIENT(dnn_eltwise(&forward, alg, x, alpha, beta), eltwise_backward, alg, x, IN_3(x, ) x, alpha, beta);
}

dnnl_status_t dnn_softmax_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md y, int axis)
{
    COLLECT_GRADIENT(dnn_softmax(&forward, alg, y, y, axis), EITHER(softmax_v2_backward, softmax_backward), alg, y, y,
                     y, axis);
}

dnnl_status_t dnn_rnn_grad(dnn_impls *out, const dnn_layer *layer, const dnn_states *s, const dnn_states *g,
                           const_dnnl_primitive_desc_t hint)
{
    description d = {0};
    dnnl_status_t status;
    if (layer->cell == DNN_LSTM)
        status = DESCRIBE_GRADIENT(EITHER(lstm_backward_v2, lstm_backward), dnnl_backward, layer->direction, s->x, s->h,
                                   s->c, s->w, s->r, NULL, IN_3(NULL, ) s->bias, s->y, s->last, s->last_c, g->x, g->h,
                                   g->c, g->w, g->r, NULL, IN_3(NULL, ) g->bias, g->y, g->last, g->last_c, 0);
    else if (layer->cell == DNN_RNN)
        status = DESCRIBE_GRADIENT(vanilla_rnn_backward, dnnl_backward, layer->activation, layer->direction, s->x, s->h,
                                   s->w, s->r, s->bias, s->y, s->last, g->x, g->h, g->w, g->r, g->bias, g->y, g->last,
                                   0, 0, 0);
    else if (layer->cell == DNN_GRU)
        status = DESCRIBE_GRADIENT(gru_backward, dnnl_backward, layer->direction, s->x, s->h, s->w, s->r, s->bias, s->y,
                                   s->last, g->x, g->h, g->w, g->r, g->bias, g->y, g->last, 0);
    else
        status = DESCRIBE_GRADIENT(lbr_gru_backward, dnnl_backward, layer->direction, s->x, s->h, s->w, s->r, s->bias,
                                   s->y, s->last, g->x, g->h, g->w, g->r, g->bias, g->y, g->last, 0);
    return status == dnnl_success ? collect(out, &d, hint) : status;
}
