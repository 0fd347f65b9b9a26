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

static const int64_t *skipped(const int64_t *dilation, int rank, int64_t *out)
{
    for (int i = 0; i < rank - 2; i++)
        out[i] = dilation[i] - 1;
    return out;
}

dnnl_status_t dnn_convolution(dnn_impls *out, dnnl_engine_t e, bool transposed, dnnl_alg_kind_t alg, dnn_md x, dnn_md w,
                              dnn_md bias, dnn_md y, const int64_t *stride, const int64_t *dilation,
                              const int64_t *begin, const int64_t *end, dnnl_primitive_attr_t attr)
{
    dnnl_dims_t skip, dims;
    skipped(dilation, dnn_md_dims(x, dims), skip);
    if (transposed) {
        COLLECT(dnnl_deconvolution_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, x, w, bias, y, stride,
                                                                 skip, begin, end, attr));
    }
    COLLECT(dnnl_convolution_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, x, w, bias, y, stride, skip,
                                                           begin, end, attr));
}

dnnl_status_t dnn_inner_product(dnn_impls *out, dnnl_engine_t e, dnn_md x, dnn_md w, dnn_md bias, dnn_md y,
                                dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_inner_product_forward_primitive_desc_create(&pd, e, dnn_prop(out), x, w, bias, y, attr));
}

dnnl_status_t dnn_matmul(dnn_impls *out, dnnl_engine_t e, dnn_md a, dnn_md b, dnn_md bias, dnn_md y,
                         dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_matmul_primitive_desc_create(&pd, e, a, b, bias, y, attr));
}

dnnl_status_t dnn_pooling(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, dnn_md y,
                          const int64_t *stride, const int64_t *kernel, const int64_t *dilation, const int64_t *begin,
                          const int64_t *end, dnnl_primitive_attr_t attr)
{
    dnnl_dims_t skip, dims;
    skipped(dilation, dnn_md_dims(x, dims), skip);
    COLLECT(dnnl_pooling_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, x, y, stride, kernel, skip, begin,
                                                       end, attr));
}

dnnl_status_t dnn_batchnorm(dnn_impls *out, dnnl_engine_t e, dnn_md x, float epsilon, unsigned flags,
                            dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_batch_normalization_forward_primitive_desc_create(&pd, e, dnn_prop(out), x, x, epsilon, flags, attr));
}

dnnl_status_t dnn_layernorm(dnn_impls *out, dnnl_engine_t e, dnn_md x, float epsilon, unsigned flags,
                            dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_layer_normalization_forward_primitive_desc_create(&pd, e, dnn_prop(out), x, x, NULL, epsilon, flags,
                                                                   attr));
}

dnnl_status_t dnn_groupnorm(dnn_impls *out, dnnl_engine_t e, dnn_md x, int64_t groups, float epsilon, unsigned flags,
                            dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR > 3 || DNNL_VERSION_MINOR >= 3
    COLLECT(dnnl_group_normalization_forward_primitive_desc_create(&pd, e, dnn_prop(out), x, x, groups, epsilon, flags,
                                                                   attr));
#else
    (void)out, (void)e, (void)x, (void)groups, (void)epsilon, (void)flags, (void)attr;
    return dnnl_unimplemented;
#endif
}

dnnl_status_t dnn_softmax(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, int axis,
                          dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_softmax_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, x, y, axis, attr));
}

dnnl_status_t dnn_lrn(dnn_impls *out, dnnl_engine_t e, dnn_md x, int64_t size, float alpha, float beta, float k,
                      dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_lrn_forward_primitive_desc_create(&pd, e, dnn_prop(out), dnnl_lrn_across_channels, x, x, size, alpha,
                                                   beta, k, attr));
}

dnnl_status_t dnn_eltwise(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta,
                          dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_eltwise_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, x, x, alpha, beta, attr));
}

dnnl_status_t dnn_prelu(dnn_impls *out, dnnl_engine_t e, dnn_md x, dnn_md slope, dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_prelu_forward_primitive_desc_create(&pd, e, dnn_prop(out), x, slope, x, attr));
}

dnnl_status_t dnn_binary(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md a, dnn_md b, dnn_md y,
                         dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_binary_primitive_desc_create(&pd, e, alg, a, b, y, attr));
}

dnnl_status_t dnn_reduction(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, float p,
                            dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_reduction_primitive_desc_create(&pd, e, alg, x, y, p, 0, attr));
}

dnnl_status_t dnn_resampling(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, dnn_md y,
                             dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_resampling_forward_primitive_desc_create(&pd, e, dnn_prop(out), alg, NULL, x, y, attr));
}

dnnl_status_t dnn_concat(dnn_impls *out, dnnl_engine_t e, dnn_md y, int n, int axis, const dnn_md *x,
                         dnnl_primitive_attr_t attr)
{
    const_dnnl_memory_desc_t list[64];
    for (int i = 0; i < n && i < 64; i++)
        list[i] = x[i];
    COLLECT(dnnl_concat_primitive_desc_create(&pd, e, y, n, axis, list, attr));
}

dnnl_status_t dnn_reorder(dnn_impls *out, dnnl_engine_t e, dnn_md x, dnn_md y, dnnl_primitive_attr_t attr)
{
    COLLECT(dnnl_reorder_primitive_desc_create(&pd, x, e, y, e, attr));
}

dnnl_status_t dnn_rnn(dnn_impls *out, dnnl_engine_t e, dnn_cell cell, dnnl_alg_kind_t activation,
                      dnnl_rnn_direction_t direction, dnn_md x, dnn_md h, dnn_md c, dnn_md w, dnn_md r, dnn_md peephole,
                      dnn_md bias, dnn_md y, dnnl_primitive_attr_t attr)
{
    if (cell == DNN_LSTM) {
        COLLECT(dnnl_lstm_forward_primitive_desc_create(&pd, e, dnn_prop(out), direction, x, h, c, w, r, peephole, NULL,
                                                        bias, y, NULL, NULL, 0, attr));
    }
    if (cell == DNN_GRU) {
        COLLECT(dnnl_gru_forward_primitive_desc_create(&pd, e, dnn_prop(out), direction, x, h, w, r, bias, y, NULL, 0,
                                                       attr));
    }
    if (cell == DNN_LBR_GRU) {
        COLLECT(dnnl_lbr_gru_forward_primitive_desc_create(&pd, e, dnn_prop(out), direction, x, h, w, r, bias, y, NULL,
                                                           0, attr));
    }
    COLLECT(dnnl_vanilla_rnn_forward_primitive_desc_create(&pd, e, dnn_prop(out), activation, direction, x, h, w, r,
                                                           bias, y, NULL, 0, 0, 0, attr));
}

/* ---- backward passes ------------------------------------------------------------------------ */

/* Describes the forward pass, whose first descriptor `hint` the backward one takes. */
#define COLLECT_BACKWARD(forward_pass, create)                                                                         \
    dnn_impls forward = {.training = true};                                                                            \
    dnnl_primitive_desc_t pd = NULL;                                                                                   \
    dnnl_status_t status = forward_pass;                                                                               \
    const_dnnl_primitive_desc_t hint = dnn_hint(&forward);                                                             \
    if (status == dnnl_success)                                                                                        \
        status = create;                                                                                               \
    status = collect(out, pd, status);                                                                                 \
    dnn_impls_free(&forward);                                                                                          \
    return status

dnnl_status_t dnn_convolution_data(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md dx, dnn_md w, dnn_md dy,
                                   const int64_t *stride, const int64_t *dilation, const int64_t *begin,
                                   const int64_t *end, dnnl_primitive_attr_t attr)
{
    dnnl_dims_t skip, dims;
    skipped(dilation, dnn_md_dims(dx, dims), skip);
    COLLECT_BACKWARD(dnn_convolution(&forward, e, false, alg, dx, w, NULL, dy, stride, dilation, begin, end, attr),
                     dnnl_convolution_backward_data_primitive_desc_create(&pd, e, alg, dx, w, dy, stride, skip, begin,
                                                                          end, hint, attr));
}

dnnl_status_t dnn_convolution_weights(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, dnn_md hint_w,
                                      dnn_md dw, dnn_md dy, const int64_t *stride, const int64_t *dilation,
                                      const int64_t *begin, const int64_t *end, dnnl_primitive_attr_t attr)
{
    dnnl_dims_t skip, dims;
    skipped(dilation, dnn_md_dims(x, dims), skip);
    COLLECT_BACKWARD(dnn_convolution(&forward, e, false, alg, x, hint_w, NULL, dy, stride, dilation, begin, end, attr),
                     dnnl_convolution_backward_weights_primitive_desc_create(&pd, e, alg, x, dw, NULL, dy, stride, skip,
                                                                             begin, end, hint, attr));
}

dnnl_status_t dnn_pooling_grad(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md dx, dnn_md dy,
                               const int64_t *stride, const int64_t *kernel, const int64_t *dilation,
                               const int64_t *begin, const int64_t *end, dnnl_primitive_attr_t attr)
{
    dnnl_dims_t skip, dims;
    skipped(dilation, dnn_md_dims(dx, dims), skip);
    COLLECT_BACKWARD(
        dnn_pooling(&forward, e, alg, dx, dy, stride, kernel, dilation, begin, end, attr),
        dnnl_pooling_backward_primitive_desc_create(&pd, e, alg, dx, dy, stride, kernel, skip, begin, end, hint, attr));
}

dnnl_status_t dnn_batchnorm_grad(dnn_impls *out, dnnl_engine_t e, dnn_md x, float epsilon, unsigned flags,
                                 dnnl_primitive_attr_t attr)
{
    COLLECT_BACKWARD(dnn_batchnorm(&forward, e, x, epsilon, flags, attr),
                     dnnl_batch_normalization_backward_primitive_desc_create(&pd, e, dnnl_backward, x, x, x, epsilon,
                                                                             flags, hint, attr));
}

dnnl_status_t dnn_layernorm_grad(dnn_impls *out, dnnl_engine_t e, dnn_md x, float epsilon, unsigned flags,
                                 dnnl_primitive_attr_t attr)
{
    COLLECT_BACKWARD(dnn_layernorm(&forward, e, x, epsilon, flags, attr),
                     dnnl_layer_normalization_backward_primitive_desc_create(&pd, e, dnnl_backward, x, x, x, NULL,
                                                                             epsilon, flags, hint, attr));
}

dnnl_status_t dnn_eltwise_grad(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta,
                               dnnl_primitive_attr_t attr)
{
    COLLECT_BACKWARD(dnn_eltwise(&forward, e, alg, x, alpha, beta, attr),
                     dnnl_eltwise_backward_primitive_desc_create(&pd, e, alg, x, x, x, alpha, beta, hint, attr));
}

dnnl_status_t dnn_softmax_grad(dnn_impls *out, dnnl_engine_t e, dnnl_alg_kind_t alg, dnn_md y, int axis,
                               dnnl_primitive_attr_t attr)
{
    COLLECT_BACKWARD(dnn_softmax(&forward, e, alg, y, y, axis, attr),
                     dnnl_softmax_backward_primitive_desc_create(&pd, e, alg, y, y, y, axis, hint, attr));
}

#endif
