/* Attention in other forms, and layers that carry a state from call to call: operator sets 27 and 28, the preview of
 * FlexAttention, and com.microsoft's operators of the same names and operands. */
#include "modelproc/microsoft.h"

#define PREVIEW "ai.onnx.preview"

/* x [batch, channels, length], w [channels, 1, k]; the state is the last k - 1 positions. */
static int causal_conv_shape(call *c)
{
    const bz_type *past = in_type(c, 3);
    bool other =
        past && (attr_int(c, "channels_last", 0) || attr_int(c, "state_window", 0) || attr_int(c, "ndim", 1) != 1);
    const bz_type *x = need(c, 0, other ? -1 : 3), *w = need(c, 1, other ? -1 : 3);
    same_dtype(c, x, w);
    if (other) {
        set_type(c, 0, x); /* com.microsoft: other orders and several states; the next is like the last */
        set_type(c, 1, past);
        param_text(c, "activation", attr_text(c, "activation", "none"));
        return 0;
    }
    if (!dims_fit(x->dims[1], w->dims[0]) || !dims_fit(w->dims[1], 1))
        return call_fail(c, "its input has %lld channels, its weights are %lld x %lld", (long long)x->dims[1],
                         (long long)w->dims[0], (long long)w->dims[1]);
    if (!bz_is_symbol(w->dims[2]) && w->dims[2] < 1)
        return call_fail(c, "its window is empty");
    bz_dim state[3] = {x->dims[0], dim_same(x->dims[1], w->dims[0]),
                       dim_mul(c, dim_sub(c, w->dims[2], 1), attr_int(c, "dilation", 1))};
    set_type(c, 0, x);
    param_text(c, "activation", attr_text(c, "activation", "none"));
    return set_out(c, 1, x->dtype, 3, state);
}

static void causal_conv_cost(call *c)
{
    const bz_type *w = &c->in[1];
    c->macs = bz_type_elements(&c->in[0]);
    for (int i = 2; i < w->rank; i++)
        c->macs = count_mul(c->macs, w->dims[i]);
}

typedef struct {
    bz_dim batch, length, q_heads, kv_heads, size, v_size;
} linear;

static int read_linear(call *c, linear *a)
{
    const bz_type *q = need(c, 0, 3), *k = need(c, 1, 3), *v = need(c, 2, 3);
    if (same_dtype(c, q, k) || same_dtype(c, q, v))
        return -1;
    a->q_heads = attr_int(c, "q_num_heads", 0);
    a->kv_heads = attr_int(c, "kv_num_heads", 0);
    if (a->q_heads < 1 || a->kv_heads < 1 || a->q_heads > INT32_MAX || a->kv_heads > INT32_MAX)
        return call_fail(c, "q_num_heads and kv_num_heads are needed");
    a->batch = q->dims[0];
    a->length = dim_same(q->dims[1], k->dims[1]);
    a->size = dim_div(c, q->dims[2], a->q_heads);
    a->v_size = dim_div(c, v->dims[2], a->kv_heads);
    return 0;
}

static int linear_attention_shape(call *c)
{
    linear a;
    if (read_linear(c, &a))
        return -1;
    const bz_type *past = in_type(c, 3);
    bz_dim heads = a.q_heads > a.kv_heads ? a.q_heads : a.kv_heads; /* com.microsoft: queries may be shared, too */
    bz_dim y[3] = {a.batch, a.length, dim_mul(c, heads, a.v_size)};
    bz_dim state[4] = {a.batch, a.kv_heads, a.size, a.v_size};
    set_out(c, 0, c->in[0].dtype, 3, y);
    set_out(c, 1, past ? past->dtype : c->in[0].dtype, 4, state);
    if (past && past->rank == 5) /* state_window */
        set_type(c, 1, past);
    param_int(c, "q_heads", a.q_heads);
    param_int(c, "kv_heads", a.kv_heads);
    param_text(c, "rule", attr_text(c, "update_rule", "gated_delta"));
    return 0;
}

/* For each position: the state takes k times v, and gives q times the state; a delta rule first asks it for k, too. */
static void linear_attention_cost(call *c)
{
    linear a;
    if (read_linear(c, &a))
        return;
    int64_t cell = count_mul(count_mul(a.batch, a.length), count_mul(a.size, a.v_size));
    bool delta = strstr(attr_text(c, "update_rule", "gated_delta"), "delta") != NULL;
    c->macs = count_mul(
        cell, count_add(a.q_heads > a.kv_heads ? a.q_heads : a.kv_heads, count_mul(a.kv_heads, delta ? 2 : 1)));
}

/* q, k, v [batch, heads, length, size]; graphs of its own may change scores and probabilities. */
static int flex_shape(call *c)
{
    const bz_type *q = need(c, 0, 4), *k = need(c, 1, 4), *v = need(c, 2, 4);
    same_dtype(c, q, k);
    bz_dim y[4] = {q->dims[0], q->dims[1], q->dims[2], v->dims[3]};
    param_int(c, "modified", bz_node_attr(c->node, "score_mod") || bz_node_attr(c->node, "prob_mod"));
    return set_out(c, 0, q->dtype, 4, y);
}

static void flex_cost(call *c)
{
    const bz_type *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    int64_t scores = count_mul(count_mul(q->dims[0], q->dims[1]), count_mul(q->dims[2], k->dims[2]));
    c->macs = count_add(count_mul(scores, q->dims[3]), count_mul(scores, v->dims[3]));
    c->flops = count_mul(scores, 5);
}

static const op ROWS[] = {
    {"CausalConvWithState", NULL, "causalconv", BZ_COMPUTE, causal_conv_shape, .cost = causal_conv_cost,
     .flags = OP_KEEPS, .labels = "x w b past"},
    {"CausalConvWithState", MICROSOFT, "causalconv", BZ_COMPUTE, causal_conv_shape, .cost = causal_conv_cost,
     .flags = OP_KEEPS, .labels = "x w b past"},
    {"LinearAttention", NULL, "linearattention", BZ_COMPUTE, linear_attention_shape, .cost = linear_attention_cost,
     .flags = OP_KEEPS, .labels = "q k v past decay beta"},
    {"LinearAttention", MICROSOFT, "linearattention", BZ_COMPUTE, linear_attention_shape, .cost = linear_attention_cost,
     .flags = OP_KEEPS, .labels = "q k v past decay beta"},
    {"FlexAttention", PREVIEW, "flexattention", BZ_COMPUTE, flex_shape, .cost = flex_cost, .flags = OP_KEEPS,
     .labels = "q k v"},
};

const op_table ops_state = OP_TABLE(ROWS);
