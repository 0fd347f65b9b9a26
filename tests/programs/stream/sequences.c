/* Layers of sequences: products, layer normalization, attention, LSTM. */
#include "loops.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(...)                                                                                                      \
    char name[256];                                                                                                    \
    snprintf(name, sizeof name, __VA_ARGS__)

/* A view of the same memory with other dimensions; strides in elements. */
static tensor *view(net *n, const tensor *of, int rank, const int64_t *dims, const int64_t *strides)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t all = {0}, steps = {0};
    memcpy(all, dims, (size_t)rank * sizeof *dims);
    memcpy(steps, strides, (size_t)rank * sizeof *strides);
    check(dnnl_memory_desc_init_by_strides(&md, rank, all, of->md.data_type, steps), "a view");
    return tensor_view(n, of, &md);
}

static tensor *transposed(net *n, const tensor *t)
{
    int rank = t->md.ndims;
    int64_t dims[DNNL_MAX_NDIMS], strides[DNNL_MAX_NDIMS];
    for (int i = 0; i < rank; i++) {
        int from = i < rank - 2 ? i : 2 * rank - 3 - i;
        dims[i] = t->md.dims[from];
        strides[i] = t->md.format_desc.blocking.strides[from];
    }
    return view(n, t, rank, dims, strides);
}

/* c = a b */
static void product(net *n, const char *what, tensor *a, tensor *b, tensor *c)
{
    dnnl_matmul_desc_t d;
    check(dnnl_matmul_desc_init(&d, &a->md, &b->md, NULL, &c->md), "a product");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, NULL);
    NAME("gemm_%s a=%s b=%s", what, shape_of(a), shape_of(b));
    primitive_call(n, pd, name, DNNL_ARG_SRC, a, DNNL_ARG_WEIGHTS, b, DNNL_ARG_DST, c, 0);
    dnnl_primitive_desc_destroy(pd);
}

/* An image as a row of numbers each: the same memory where one pixel is left, else a call that brings it in order. */
static void flat_backward(net *n, struct layer *l)
{
    tensor *to = grad_begin(n, l->x), *from = tensor_view(n, l->y->grad, &l->kept[0]->md);
    tensor_reorder(n, from, to, "reorder_transpose");
    grad_done(n, l->x, to);
}

tensor *net_flat(net *n, tensor *x)
{
    int64_t features = x->md.dims[1] * x->md.dims[2] * x->md.dims[3];
    tensor *plain = tensor_new(n, 4, x->md.dims, dnnl_abcd, n->options.type);
    tensor_reorder(n, x, plain, "reorder_transpose");
    tensor *y = view(n, plain, 2, (int64_t[]){x->md.dims[0], features}, (int64_t[]){features, 1});
    tape_add(n, flat_backward, x, y)->kept[0] = plain;
    return y;
}

static void linear_backward(net *n, struct layer *l)
{
    dnnl_inner_product_desc_t w, d;
    check(dnnl_inner_product_backward_weights_desc_init(&w, &l->x->md, &l->weights->md, &l->bias->md, &l->y->md),
          "a product's gradient");
    dnnl_primitive_desc_t pd = primitive_describe(n, &w, NULL, l->forward);
    NAME("gemm_wgrad x=%s w=%s", shape_of(l->x), shape_of(l->weights));
    primitive_call(n, pd, name, DNNL_ARG_SRC, l->x, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_DIFF_WEIGHTS,
                   l->weights->grad, DNNL_ARG_DIFF_BIAS, l->bias->grad, 0);
    dnnl_primitive_desc_destroy(pd);
    if (l->x == n->input)
        return;
    check(dnnl_inner_product_backward_data_desc_init(&d, &l->x->md, &l->weights->md, &l->y->md),
          "a product's gradient of data");
    pd = primitive_describe(n, &d, NULL, l->forward);
    tensor *to = grad_begin(n, l->x);
    snprintf(name, sizeof name, "gemm_dgrad x=%s w=%s", shape_of(l->x), shape_of(l->weights));
    primitive_call(n, pd, name, DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_WEIGHTS, l->weights, DNNL_ARG_DIFF_SRC, to, 0);
    grad_done(n, l->x, to);
    dnnl_primitive_desc_destroy(pd);
}

tensor *net_linear(net *n, tensor *x, int features)
{
    dnnl_memory_desc_t weights = described(2, (int64_t[]){features, x->md.dims[1]}, n->options.type, dnnl_ab),
                       bias = described(1, (int64_t[]){features}, n->options.type, dnnl_a);
    tensor *y = tensor_new(n, 2, (int64_t[]){x->md.dims[0], features}, dnnl_ab, n->options.type);
    struct layer *l = tape_add(n, linear_backward, x, y);
    l->weights = parameter_add(n, &weights);
    l->bias = parameter_add(n, &bias);
    dnnl_inner_product_desc_t d;
    check(dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, &x->md, &weights, &bias, &y->md),
          "a product");
    l->forward = primitive_describe(n, &d, NULL, NULL);
    NAME("gemm_linear x=%s w=%s", shape_of(x), shape_of(l->weights));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_WEIGHTS, l->weights, DNNL_ARG_BIAS, l->bias,
                   DNNL_ARG_DST, y, 0);
    return y;
}

static void layer_norm_backward(net *n, struct layer *l)
{
    dnnl_layer_normalization_desc_t d;
    check(dnnl_layer_normalization_backward_desc_init(&d, dnnl_backward, &l->x->md, &l->x->md, &l->kept[0]->md, 1e-5f,
                                                      dnnl_use_scaleshift),
          "layer normalization, backward");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, l->forward);
    tensor *to = grad_begin(n, l->x);
    NAME("layer_norm_backward %s", shape_of(l->x));
    primitive_call(n, pd, name, DNNL_ARG_SRC, l->x, DNNL_ARG_MEAN, l->kept[0], DNNL_ARG_VARIANCE, l->kept[1],
                   DNNL_ARG_DIFF_DST, l->y->grad, DNNL_ARG_SCALE_SHIFT, l->weights, DNNL_ARG_DIFF_SRC, to,
                   DNNL_ARG_DIFF_SCALE_SHIFT, l->weights->grad, 0);
    grad_done(n, l->x, to);
    dnnl_primitive_desc_destroy(pd);
}

tensor *net_layer_norm(net *n, tensor *x)
{
    tensor *y = tensor_like(n, &x->md);
    struct layer *l = tape_add(n, layer_norm_backward, x, y);
    l->kept[0] = tensor_new(n, 1, (int64_t[]){x->md.dims[0]}, dnnl_a, dnnl_f32);
    l->kept[1] = tensor_like(n, &l->kept[0]->md);
    dnnl_layer_normalization_desc_t d;
    check(dnnl_layer_normalization_forward_desc_init(&d, dnnl_forward_training, &x->md, &l->kept[0]->md, 1e-5f,
                                                     dnnl_use_scaleshift),
          "layer normalization");
    l->forward = primitive_describe(n, &d, NULL, NULL);
    l->weights = parameter_add(n, primitive_wants(l->forward, dnnl_query_weights_md));
    for (size_t i = 0; i < net_elements(l->weights) / 2; i++)
        ((float *)l->weights->data)[i] += 1;
    NAME("layer_norm_forward %s", shape_of(x));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, x, DNNL_ARG_SCALE_SHIFT, l->weights, DNNL_ARG_MEAN, l->kept[0],
                   DNNL_ARG_VARIANCE, l->kept[1], DNNL_ARG_DST, y, 0);
    return y;
}

enum { Q, K, V, P, SCORES, Q_TENSOR, K_TENSOR, V_TENSOR };

/* [tokens, features] as [batch, heads, tokens of one, features of a head]. */
static tensor *heads_of(net *n, const tensor *t, int batch, int heads)
{
    int64_t tokens = t->md.dims[0] / batch, features = t->md.dims[1], size = features / heads;
    return view(n, t, 4, (int64_t[]){batch, heads, tokens, size}, (int64_t[]){tokens * features, size, features, 1});
}

static void attention_backward(net *n, struct layer *l)
{
    int batch = (int)l->number[0], heads = (int)l->number[1];
    tensor *p = l->kept[P], *dy = heads_of(n, l->y->grad, batch, heads), *dp = tensor_like(n, &p->md),
           *ds = tensor_like(n, &p->md);
    tensor *to[3], *head[3];
    for (int i = 0; i < 3; i++) {
        to[i] = grad_begin(n, l->kept[Q_TENSOR + i]);
        head[i] = heads_of(n, to[i], batch, heads);
    }
    product(n, "attention_dv", transposed(n, p), dy, head[2]);
    product(n, "attention_dp", dy, transposed(n, l->kept[V]), dp);
    dnnl_softmax_desc_t d;
    check(dnnl_softmax_backward_desc_init(&d, &p->md, &p->md, 3), "softmax, backward");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, l->forward);
    NAME("softmax_backward %s", shape_of(p));
    primitive_call(n, pd, name, DNNL_ARG_DST, p, DNNL_ARG_DIFF_DST, dp, DNNL_ARG_DIFF_SRC, ds, 0);
    dnnl_primitive_desc_destroy(pd);
    product(n, "attention_dq", ds, l->kept[K], head[0]);
    product(n, "attention_dk", transposed(n, ds), l->kept[Q], head[1]);
    for (int i = 0; i < 3; i++)
        grad_done(n, l->kept[Q_TENSOR + i], to[i]);
}

tensor *net_attention(net *n, tensor *q, tensor *k, tensor *v, int batch, int heads)
{
    int64_t tokens = q->md.dims[0] / batch;
    tensor *y = tensor_like(n, &q->md);
    struct layer *l = tape_add(n, attention_backward, q, y);
    l->number[0] = batch;
    l->number[1] = heads;
    tensor *given[] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        l->kept[Q + i] = heads_of(n, given[i], batch, heads);
        l->kept[Q_TENSOR + i] = given[i];
    }
    l->kept[SCORES] = tensor_new(n, 4, (int64_t[]){batch, heads, tokens, tokens}, dnnl_abcd, n->options.type);
    l->kept[P] = tensor_like(n, &l->kept[SCORES]->md);
    product(n, "attention_scores", l->kept[Q], transposed(n, l->kept[K]), l->kept[SCORES]);
    dnnl_softmax_desc_t d;
    check(dnnl_softmax_forward_desc_init(&d, dnnl_forward_training, &l->kept[P]->md, 3), "softmax");
    l->forward = primitive_describe(n, &d, NULL, NULL);
    NAME("softmax_forward %s", shape_of(l->kept[P]));
    primitive_call(n, l->forward, name, DNNL_ARG_SRC, l->kept[SCORES], DNNL_ARG_DST, l->kept[P], 0);
    product(n, "attention_values", l->kept[P], l->kept[V], heads_of(n, y, batch, heads));
    return y;
}

/* kept: gates, states, gradients of both; number: steps, rows, hidden. Tensors are [steps · rows, …], time by time. */
enum { GATES, STATES, GATES_GRAD, CELLS, CELL_GRAD, PART };

static tensor *at_step(net *n, const tensor *t, int64_t step, int64_t rows)
{
    tensor all = *t;
    int64_t columns = t->md.dims[1];
    all.data = (char *)t->data + (size_t)(step * rows * columns) * dnnl_data_type_size(t->md.data_type);
    return view(n, &all, 2, (int64_t[]){rows, columns}, (int64_t[]){columns, 1});
}

/* Gates of all steps were filled with what the input makes of them; each step adds what the state before does. */
static lstm_step *pointwise(struct layer *l, int64_t step)
{
    lstm_step *s = calloc(1, sizeof *s);
    size_t rows = (size_t)l->number[1], hidden = (size_t)l->number[2], from = (size_t)step * rows * hidden,
           element = dnnl_data_type_size(l->kept[GATES]->md.data_type);
    if (!s)
        abort();
    float *cells = l->kept[CELLS]->data;
    *s = (lstm_step){.gates = (char *)l->kept[GATES]->data + 4 * from * element,
                     .state = (char *)l->kept[STATES]->data + (from + rows * hidden) * element,
                     .cell = cells + from + rows * hidden,
                     .cell_before = cells + from,
                     .state_grad = l->y->grad ? (char *)l->y->grad->data + from * element : NULL,
                     .gates_grad = (char *)l->kept[GATES_GRAD]->data + 4 * from * element,
                     .cell_grad = l->kept[CELL_GRAD]->data,
                     .rows = (int)rows,
                     .hidden = (int)hidden,
                     .half = element == 2};
    return s;
}

static void sum_into(net *n, tensor *into, tensor *part)
{
    dnnl_binary_desc_t d;
    check(dnnl_binary_desc_init(&d, dnnl_binary_add, &into->md, &part->md, &into->md), "a sum");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, NULL);
    NAME("elementwise_add %s", shape_of(into));
    primitive_call(n, pd, name, DNNL_ARG_SRC_0, into, DNNL_ARG_SRC_1, part, DNNL_ARG_DST, into, 0);
    dnnl_primitive_desc_destroy(pd);
}

static void lstm_backward(net *n, struct layer *l)
{
    int64_t steps = l->number[0], rows = l->number[1];
    tensor *part = tensor_new(n, 2, (int64_t[]){rows, l->number[2]}, dnnl_ab, n->options.type);
    net_fill(n, l->kept[CELL_GRAD]->data, net_bytes(l->kept[CELL_GRAD]));
    for (int64_t t = steps; t-- > 0;) {
        net_call(n, lstm_backward_run, pointwise(l, t), "lstm_cell_backward %lldx%lld", (long long)rows,
                 (long long)l->number[2]);
        if (!t)
            break;
        product(n, "lstm_dgrad", at_step(n, l->kept[GATES_GRAD], t, rows), transposed(n, l->weights), part);
        sum_into(n, at_step(n, l->y->grad, t - 1, rows), part);
    }
    tensor *states = view(n, l->kept[STATES], 2, (int64_t[]){steps * rows, l->number[2]}, (int64_t[]){l->number[2], 1});
    product(n, "lstm_wgrad", transposed(n, states), l->kept[GATES_GRAD], l->weights->grad);
    tensor *to = grad_begin(n, l->x);
    tensor_reorder(n, l->kept[GATES_GRAD], to, "reorder_transpose");
    grad_done(n, l->x, to);
}

tensor *net_lstm(net *n, tensor *x, int steps, int hidden)
{
    int64_t rows = x->md.dims[0] / steps, tall = x->md.dims[0];
    tensor *gates = net_linear(n, x, 4 * hidden);
    struct layer *l = tape_add(n, lstm_backward, gates, NULL);
    l->number[0] = steps;
    l->number[1] = rows;
    l->number[2] = hidden;
    dnnl_memory_desc_t weights = described(2, (int64_t[]){hidden, 4 * hidden}, n->options.type, dnnl_ab);
    l->weights = parameter_add(n, &weights);
    l->kept[GATES] = gates;
    l->kept[GATES_GRAD] = tensor_like(n, &gates->md);
    l->kept[STATES] = tensor_new(n, 2, (int64_t[]){tall + rows, hidden}, dnnl_ab, n->options.type);
    l->kept[CELLS] = tensor_new(n, 2, (int64_t[]){tall + rows, hidden}, dnnl_ab, dnnl_f32);
    l->kept[CELL_GRAD] = tensor_new(n, 2, (int64_t[]){rows, hidden}, dnnl_ab, dnnl_f32);
    l->kept[PART] = tensor_new(n, 2, (int64_t[]){rows, 4 * hidden}, dnnl_ab, n->options.type);
    tensor behind = *l->kept[STATES]; /* the first rows are the state before all steps */
    behind.data = (char *)behind.data + (size_t)(rows * hidden) * dnnl_data_type_size(n->options.type);
    l->y = view(n, &behind, 2, (int64_t[]){tall, hidden}, (int64_t[]){hidden, 1});
    for (int64_t t = 0; t < steps; t++) {
        product(n, "lstm_state", at_step(n, l->kept[STATES], t, rows), l->weights, l->kept[PART]);
        sum_into(n, at_step(n, gates, t, rows), l->kept[PART]);
        net_call(n, lstm_forward_run, pointwise(l, t), "lstm_cell_forward %lldx%lld", (long long)rows,
                 (long long)hidden);
    }
    return l->y;
}
