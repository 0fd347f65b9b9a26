/* Layers of images: convolution, normalization, activation, pooling; and what they share with others. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME(...)                                                                                                      \
    char name[256];                                                                                                    \
    snprintf(name, sizeof name, __VA_ARGS__)

tensor *net_image(net *n, int batch, int channels, int size)
{
    n->input = tensor_new(n, 4, (int64_t[]){(int64_t)batch * n->options.items, channels, size, size}, dnnl_abcd,
                          n->options.type);
    return n->input;
}

tensor *net_tokens(net *n, int tokens, int features)
{
    n->input = tensor_new(n, 2, (int64_t[]){tokens, features}, dnnl_ab, n->options.type);
    return n->input;
}

/* Blocks of channels that fill a vector, as the library likes them best: with others it takes reference code, a thousand times slower. */
static dnnl_format_tag_t image_tag(int64_t channels)
{
    bool wide = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    return channels % (wide ? 16 : 8) ? dnnl_abcd : wide ? dnnl_aBcd16b : dnnl_aBcd8b;
}

static dnnl_memory_desc_t any_of(const dnnl_memory_desc_t *md)
{
    return described(md->ndims, md->dims, md->data_type, dnnl_format_tag_any);
}

enum { STRIDE, PAD, RELU };

static void relu_back(net *n, tensor *y, tensor *grad, tensor *to)
{
    dnnl_eltwise_desc_t f, d;
    check(dnnl_eltwise_forward_desc_init(&f, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &y->md, 0, 0),
          "relu");
    check(dnnl_eltwise_backward_desc_init(&d, dnnl_eltwise_relu_use_dst_for_bwd, &y->md, &y->md, 0, 0),
          "relu, backward");
    dnnl_primitive_desc_t forward = primitive_describe(n, &f, NULL, NULL),
                          pd = primitive_describe(n, &d, NULL, forward);
    NAME("elementwise_relu_backward %s", shape_of(y));
    primitive_call(n, pd, name, DNNL_ARG_DST, y, DNNL_ARG_DIFF_DST, grad, DNNL_ARG_DIFF_SRC, to, 0);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(forward);
}

static void conv_backward(net *n, struct layer *l)
{
    const dnnl_dims_t strides = {l->number[STRIDE], l->number[STRIDE]}, pads = {l->number[PAD], l->number[PAD]};
    dnnl_memory_desc_t any_weights = any_of(&l->weights->md);
    if (l->number[RELU])
        relu_back(n, l->y, l->y->grad, l->y->grad);
    dnnl_convolution_desc_t w;
    check(dnnl_convolution_backward_weights_desc_init(&w, dnnl_convolution_direct, &l->x->md, &any_weights,
                                                      l->bias ? &l->bias->md : NULL, &l->y->md, strides, pads, pads),
          "a convolution's gradient");
    dnnl_primitive_desc_t pd = primitive_describe(n, &w, NULL, l->forward);
    const dnnl_memory_desc_t *wants = primitive_wants(pd, dnnl_query_diff_weights_md);
    bool same = dnnl_memory_desc_equal(wants, &l->weights->md);
    tensor *grad = same ? l->weights->grad : tensor_like(n, wants);
    NAME("conv_wgrad x=%s w=%s", shape_of(l->x), shape_of(l->weights));
    primitive_call(n, pd, name, DNNL_ARG_SRC, l->x, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_DIFF_WEIGHTS, grad,
                   DNNL_ARG_DIFF_BIAS, l->bias ? l->bias->grad : NULL, 0);
    if (!same)
        tensor_reorder(n, grad, l->weights->grad, "reorder_wgrad");
    dnnl_primitive_desc_destroy(pd);
    if (l->x == n->input)
        return;
    dnnl_convolution_desc_t d;
    check(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &l->x->md, &any_weights, &l->y->md,
                                                   strides, pads, pads),
          "a convolution's gradient of data");
    pd = primitive_describe(n, &d, NULL, l->forward);
    tensor *weights = tensor_as(n, l->weights, primitive_wants(pd, dnnl_query_weights_md)), *to = grad_begin(n, l->x);
    snprintf(name, sizeof name, "conv_dgrad x=%s w=%s", shape_of(l->x), shape_of(l->weights));
    primitive_call(n, pd, name, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_WEIGHTS, weights, DNNL_ARG_DIFF_SRC, to, 0);
    grad_done(n, l->x, to);
    dnnl_primitive_desc_destroy(pd);
}

/* `post`: with bias and ReLU in the same call. */
static tensor *conv(net *n, tensor *x, int channels, int kernel, int stride, int groups, bool bias, bool post)
{
    int64_t pad = kernel / 2, size = (x->md.dims[2] + 2 * pad - kernel) / stride + 1, in = x->md.dims[1];
    const dnnl_dims_t strides = {stride, stride}, pads = {pad, pad};
    int64_t wide[] = {groups, channels / groups, in / groups, kernel, kernel};
    dnnl_memory_desc_t any =
        described(groups > 1 ? 5 : 4, groups > 1 ? wide : (int64_t[]){channels, in, kernel, kernel}, n->options.type,
                  dnnl_format_tag_any);
    tensor *y =
               tensor_new(n, 4, (int64_t[]){x->md.dims[0], channels, size, size}, image_tag(channels), n->options.type),
           *b = NULL;
    if (bias) {
        dnnl_memory_desc_t md = described(1, (int64_t[]){channels}, n->options.type, dnnl_a);
        b = parameter_add(n, &md);
    }
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    check(dnnl_primitive_attr_create(&attr), "attributes");
    check(dnnl_post_ops_create(&ops), "post-operations");
    if (post)
        check(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0), "relu");
    check(dnnl_primitive_attr_set_post_ops(attr, ops), "post-operations");
    dnnl_convolution_desc_t d;
    check(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &x->md, &any,
                                             post && b ? &b->md : NULL, &y->md, strides, pads, pads),
          "a convolution");
    struct layer *l = tape_add(n, conv_backward, x, y);
    l->forward = primitive_describe(n, &d, attr, NULL);
    l->weights = parameter_add(n, primitive_wants(l->forward, dnnl_query_weights_md));
    l->bias = b;
    l->number[STRIDE] = stride;
    l->number[PAD] = pad;
    l->number[RELU] = post;
    NAME("conv_fprop%s x=%s w=%s", post ? "_bias_relu" : "", shape_of(x), shape_of(l->weights));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_WEIGHTS, l->weights, DNNL_ARG_BIAS, post ? b : NULL,
                   DNNL_ARG_DST, y, 0);
    check(dnnl_post_ops_destroy(ops), "post-operations");
    check(dnnl_primitive_attr_destroy(attr), "attributes");
    return y;
}

tensor *net_conv(net *n, tensor *x, int channels, int kernel, int stride, int groups)
{
    return conv(n, x, channels, kernel, stride, groups, false, false);
}

/* Three calls: convolution, bias, ReLU; or one. */
tensor *net_conv_bias_relu(net *n, tensor *x, int channels, int kernel, int stride)
{
    if (n->options.fuse)
        return conv(n, x, channels, kernel, stride, 1, true, true);
    tensor *y = conv(n, x, channels, kernel, stride, 1, true, false), *b = n->tape[n->n_tape - 1].bias;
    dnnl_memory_desc_t broad = described(4, (int64_t[]){1, channels, 1, 1}, n->options.type, image_tag(channels));
    tensor *bias = tensor_view(n, b, &broad);
    dnnl_binary_desc_t d;
    check(dnnl_binary_desc_init(&d, dnnl_binary_add, &y->md, &bias->md, &y->md), "a bias");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, NULL);
    NAME("elementwise_bias %s", shape_of(y));
    primitive_call(n, pd, name, DNNL_ARG_SRC_0, y, DNNL_ARG_SRC_1, bias, DNNL_ARG_DST, y, 0);
    dnnl_primitive_desc_destroy(pd);
    return net_relu(n, y);
}

static void activation_backward(net *n, struct layer *l)
{
    tensor *to = grad_begin(n, l->x);
    if (l->kind == dnnl_eltwise_relu_use_dst_for_bwd) {
        relu_back(n, l->y, l->y->grad, to);
    } else {
        dnnl_eltwise_desc_t d;
        check(dnnl_eltwise_backward_desc_init(&d, l->kind, &l->x->md, &l->x->md, 0, 0), "an activation, backward");
        dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, l->forward);
        NAME("elementwise_gelu_backward %s", shape_of(l->x));
        primitive_call(n, pd, name, DNNL_ARG_SRC, l->x, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_DIFF_SRC, to, 0);
        dnnl_primitive_desc_destroy(pd);
    }
    grad_done(n, l->x, to);
}

static tensor *activation(net *n, tensor *x, dnnl_alg_kind_t kind, const char *what)
{
    tensor *y = tensor_like(n, &x->md);
    dnnl_eltwise_desc_t d;
    check(dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training, kind, &x->md, 0, 0), what);
    struct layer *l = tape_add(n, activation_backward, x, y);
    l->kind = kind;
    l->forward = primitive_describe(n, &d, NULL, NULL);
    NAME("elementwise_%s %s", what, shape_of(x));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_DST, y, 0);
    return y;
}

tensor *net_relu(net *n, tensor *x)
{
    return activation(n, x, dnnl_eltwise_relu_use_dst_for_bwd, "relu");
}

tensor *net_gelu(net *n, tensor *x)
{
    return activation(n, x, dnnl_eltwise_gelu_tanh, "gelu");
}

/* Both sides get the result's gradient: the first by a copy where it has none, so that nobody writes into it. */
static void add_backward(net *n, struct layer *l)
{
    tensor *sides[] = {l->x, l->z};
    for (int i = 0; i < 2; i++) {
        tensor *to = grad_begin(n, sides[i]);
        if (to == sides[i]->grad)
            tensor_reorder(n, l->y->grad, to, "reorder_transpose");
        else
            grad_done(n, sides[i], l->y->grad);
    }
}

tensor *net_add(net *n, tensor *x, tensor *z)
{
    tensor *y = tensor_like(n, &x->md);
    dnnl_binary_desc_t d;
    check(dnnl_binary_desc_init(&d, dnnl_binary_add, &x->md, &z->md, &y->md), "a sum");
    struct layer *l = tape_add(n, add_backward, x, y);
    l->z = z;
    l->forward = primitive_describe(n, &d, NULL, NULL);
    NAME("elementwise_add %s", shape_of(x));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC_0, x, DNNL_ARG_SRC_1, z, DNNL_ARG_DST, y, 0);
    return y;
}

enum { MEAN, VARIANCE, WORKSPACE };

static void norm_backward(net *n, struct layer *l)
{
    dnnl_batch_normalization_desc_t d;
    unsigned flags = dnnl_use_scaleshift | (l->number[RELU] ? dnnl_fuse_norm_relu : 0u);
    check(dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, &l->x->md, &l->x->md, 1e-5f, flags),
          "batch normalization, backward");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, l->forward);
    tensor *to = grad_begin(n, l->x);
    NAME("batch_norm_backward%s %s", l->number[RELU] ? "_relu" : "", shape_of(l->x));
    primitive_call(n, pd, name, DNNL_ARG_SRC, l->x, DNNL_ARG_MEAN, l->kept[MEAN], DNNL_ARG_VARIANCE, l->kept[VARIANCE],
                   DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_SCALE_SHIFT, l->weights, DNNL_ARG_WORKSPACE,
                   l->kept[WORKSPACE], DNNL_ARG_DIFF_SRC, to, DNNL_ARG_DIFF_SCALE_SHIFT, l->weights->grad, 0);
    grad_done(n, l->x, to);
    dnnl_primitive_desc_destroy(pd);
}

static tensor *norm(net *n, tensor *x, bool relu)
{
    tensor *y = tensor_like(n, &x->md);
    dnnl_batch_normalization_desc_t d;
    unsigned flags = dnnl_use_scaleshift | (relu ? dnnl_fuse_norm_relu : 0u);
    check(dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_training, &x->md, 1e-5f, flags),
          "batch normalization");
    struct layer *l = tape_add(n, norm_backward, x, y);
    l->forward = primitive_describe(n, &d, NULL, NULL);
    l->number[RELU] = relu;
    l->weights = parameter_add(n, primitive_wants(l->forward, dnnl_query_weights_md));
    for (size_t i = 0; i < net_elements(l->weights) / 2; i++)
        ((float *)l->weights->data)[i] += 1;
    l->kept[MEAN] = tensor_new(n, 1, (int64_t[]){x->md.dims[1]}, dnnl_a, dnnl_f32);
    l->kept[VARIANCE] = tensor_like(n, &l->kept[MEAN]->md);
    if (relu)
        l->kept[WORKSPACE] = tensor_like(n, primitive_wants(l->forward, dnnl_query_workspace_md));
    NAME("batch_norm_forward%s %s", relu ? "_relu" : "", shape_of(x));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_SCALE_SHIFT, l->weights, DNNL_ARG_MEAN, l->kept[MEAN],
                   DNNL_ARG_VARIANCE, l->kept[VARIANCE], DNNL_ARG_WORKSPACE, l->kept[WORKSPACE], DNNL_ARG_DST, y, 0);
    return y;
}

tensor *net_norm(net *n, tensor *x)
{
    return norm(n, x, false);
}

tensor *net_norm_relu(net *n, tensor *x)
{
    return n->options.fuse_norm ? norm(n, x, true) : net_relu(n, norm(n, x, false));
}

static void pool_backward(net *n, struct layer *l)
{
    const dnnl_dims_t stride = {l->number[0], l->number[0]}, kernel = {l->number[1], l->number[1]},
                      pad = {l->number[2], l->number[2]};
    dnnl_pooling_desc_t d;
    check(dnnl_pooling_backward_desc_init(&d, l->kind, &l->x->md, &l->y->md, stride, kernel, pad, pad),
          "pooling, backward");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, l->forward);
    tensor *to = grad_begin(n, l->x);
    NAME("pooling_backward %s", shape_of(l->x));
    primitive_call(n, pd, name, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_WORKSPACE, l->kept[0], DNNL_ARG_DIFF_SRC, to,
                   0);
    grad_done(n, l->x, to);
    dnnl_primitive_desc_destroy(pd);
}

tensor *net_pool(net *n, tensor *x, bool max, int kernel, int stride, int pad)
{
    int64_t size = (x->md.dims[2] + 2 * pad - kernel) / stride + 1;
    const dnnl_dims_t strides = {stride, stride}, kernels = {kernel, kernel}, pads = {pad, pad};
    tensor *y = tensor_new(n, 4, (int64_t[]){x->md.dims[0], x->md.dims[1], size, size}, image_tag(x->md.dims[1]),
                           n->options.type);
    dnnl_pooling_desc_t d;
    struct layer *l = tape_add(n, pool_backward, x, y);
    l->kind = max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    l->number[0] = stride;
    l->number[1] = kernel;
    l->number[2] = pad;
    check(dnnl_pooling_forward_desc_init(&d, dnnl_forward_training, l->kind, &x->md, &y->md, strides, kernels, pads,
                                         pads),
          "pooling");
    l->forward = primitive_describe(n, &d, NULL, NULL);
    const dnnl_memory_desc_t *workspace = primitive_wants(l->forward, dnnl_query_workspace_md);
    l->kept[0] = max && dnnl_memory_desc_get_size(workspace) ? tensor_like(n, workspace) : NULL;
    NAME("pooling_forward %s", shape_of(x));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_WORKSPACE, l->kept[0], DNNL_ARG_DST, y, 0);
    return y;
}
