/* com.microsoft.nchwc: what ONNX Runtime's optimizer for processors makes of convolutions and pools (level "layout", also
 * in "all", which is its default). There tensors are kept in blocks of 8 or 16 channels; a number of channels that is no
 * multiple is filled up with zeros, in weights and biases too.
 *
 * The shapes here are those without the filling: [n, c, height, width]. So a layer has the key, the work and the bytes that
 * it has in the model before the optimizer, and the same records price it. How many channels are real is told by the input
 * where it decides, by ReorderOutput, which drops the filling, or else by the zeros at the end of the bias. */
#include "modelproc/geometry.h"
#include "modelproc/infer.h"
#include "modelproc/microsoft.h"
#include "modelproc/rule.h"

#define NCHWC "com.microsoft.nchwc"

enum {
    BLOCK = 16,        /* channels of the largest block; of AVX-512 */
    ALIGNED = 4,       /* the optimizer takes other convolutions only where nothing in blocks reads them */
    LONGEST = 1 << 20, /* biases above are not read */
};

/* From the results to the operands: what ReorderOutput leaves, pools and element-wise operators have, too. */
static void follow_reorders(const bz_graph *g, bz_dim *channels)
{
    for (int i = g->n_nodes; i-- > 0;) {
        const bz_node *n = &g->nodes[i];
        const bz_attr *a = strcmp(n->op, "ReorderOutput") ? NULL : bz_node_attr(n, "channels");
        bool passes = !a && strcmp(n->op, "Conv") != 0 && strcmp(n->op, "Concat") != 0 && n->n_out && n->out[0] >= 0;
        bz_dim left = a && a->kind == BZ_ATTR_INT ? a->i : passes ? channels[n->out[0]] : 0;
        for (int k = 0; k < n->n_in && left > 0; k++)
            if (n->in[k] >= 0)
                channels[n->in[k]] = left;
    }
}

/* What ReorderOutput leaves of value v; 0 where none tells. */
static bz_dim reordered_channels(call *c, bz_value_id v)
{
    infer *inf = c->inf;
    if (!inf->reordered) {
        inf->reordered = BZ_NEW(c->arena, bz_dim, inf->model->n_values);
        inf->n_reordered = inf->model->n_values;
        follow_reorders(inf->model->graph, inf->reordered);
    }
    return v >= 0 && v < inf->n_reordered ? inf->reordered[v] : 0;
}

/* `all` less the zeros at the end of the bias, where these are fewer than a block. */
static bz_dim biased_channels(call *c, bz_dim all)
{
    const bz_tensor *t = c->node->n_in > 2 && c->node->in[2] >= 0 ? c->inf->model->values[c->node->in[2]].init : NULL;
    if (!t || !bz_dtype_is_float(t->dtype) || t->n != all || all > LONGEST)
        return all;
    BZ_FREED double *bias = bz_zeroed((size_t)all + 1, sizeof *bias);
    bz_error unread = {0};
    bz_dim n = all;
    if (!bz_tensor_reals(c->inf->model, t, bias, &unread))
        while (n > 0 && bias[n - 1] == 0)
            n--;
    n = (n + ALIGNED - 1) / ALIGNED * ALIGNED;
    return n > 0 && all - n < BLOCK ? n : all;
}

static bz_dim real_channels(call *c, bz_dim all)
{
    if (bz_is_symbol(all) || all % (BLOCK / 2))
        return all;
    bz_dim told = reordered_channels(c, c->node->n_out ? c->node->out[0] : -1);
    return told > 0 && told <= all && all - told < BLOCK ? told : biased_channels(c, all);
}

static int conv(call *c)
{
    const bz_type *x = need(c, 0, 4), *w = need(c, 1, 4);
    bz_dim dims[BZ_MAX_RANK];
    same_dtype(c, x, w);
    int64_t group = attr_int(c, "group", 1);
    bz_type real = *w;
    bz_dim *of = new_dims(c, 4);
    copy_dims(of, w);
    real.dims = of;
    bool alone = group > 1 && w->dims[0] == group && w->dims[1] == 1, open = bz_is_symbol(x->dims[1]);
    if (alone && !open && x->dims[1] > 0 && group >= x->dims[1] &&
        group - x->dims[1] < BLOCK) { /* each channel by itself */
        of[0] = group = x->dims[1];
    } else {
        of[0] = real_channels(c, w->dims[0]);
        if (group == 1 && !open && !bz_is_symbol(w->dims[1]) && w->dims[1] > x->dims[1] &&
            w->dims[1] - x->dims[1] < BLOCK)
            of[1] = x->dims[1];
    }
    if (conv_grouped(c, x, &real, group, dims))
        return -1;
    if (alone && open)
        dims[1] = x->dims[1]; /* how many of the weights' channels are filling, the input would tell */
    c->in[1] = real;
    if (in_type(c, 2) && c->in[2].rank == 1) {
        c->in[2].dims = new_dims(c, 1);
        ((bz_dim *)c->in[2].dims)[0] = of[0];
    }
    set_out(c, 0, x->dtype, 4, dims);
    ms_note_activation(c);
    return 0;
}

/* [n, c, height, width] from or to [n, height, width, c], or the same in another order of its bytes. */
static int reorder(call *c)
{
    const bz_type *x = need(c, 0, 4);
    bool last = attr_int(c, "channels_last", 0) != 0, out = !strcmp(c->node->op, "ReorderOutput");
    bz_dim dims[4] = {x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
    if (out) {
        bz_dim channels = attr_int(c, "channels", 0);
        if (channels <= 0 || bz_is_symbol(channels) || (!bz_is_symbol(x->dims[1]) && channels > x->dims[1]))
            return call_fail(c, "it is to leave %lld of %lld channels", (long long)channels, (long long)x->dims[1]);
        dims[1] = channels;
    }
    if (last) {
        bz_dim a = dims[1], b = dims[2], d = dims[3];
        memcpy(dims + 1, out ? (bz_dim[]){b, d, a} : (bz_dim[]){d, a, b}, 3 * sizeof *dims);
    }
    return set_out(c, 0, x->dtype, 4, dims);
}

static int upsample(call *c)
{
    const bz_type *x = need(c, 0, 4);
    int n;
    const int64_t *scales = attr_ints(c, "scales", &n);
    if (scales && n != 4)
        return call_fail(c, "scales has %d numbers where 4 are needed", n);
    bz_dim dims[4];
    for (int i = 0; i < 4; i++) {
        if (scales && (scales[i] < 1 || scales[i] > INT32_MAX))
            return call_fail(c, "scales has the impossible value %lld", (long long)scales[i]);
        dims[i] = scales ? dim_mul(c, x->dims[i], scales[i]) : x->dims[i];
    }
    param_text(c, "mode", attr_text(c, "mode", "nearest"));
    return set_out(c, 0, x->dtype, 4, dims);
}

static const op ROWS[] = {
    {"Conv", NCHWC, "conv", BZ_COMPUTE, conv, .cost = cost_conv, .labels = "x w b z"},
    {"MaxPool", NCHWC, "maxpool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .labels = "x > y"},
    {"AveragePool", NCHWC, "avgpool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .labels = "x > y"},
    {"GlobalMaxPool", NCHWC, "globalmaxpool", BZ_COMPUTE, shape_global_pool, .flops = 1, .labels = "x"},
    {"GlobalAveragePool", NCHWC, "globalavgpool", BZ_COMPUTE, shape_global_pool, .flops = 1, .labels = "x"},
    {"ReorderInput", NCHWC, "reorder", BZ_MEMORY, reorder, .labels = "x > y"},
    {"ReorderOutput", NCHWC, "reorder", BZ_MEMORY, reorder, .labels = "x > y"},
    {"Upsample", NCHWC, "resize", BZ_MEMORY, upsample, .labels = "x > y"},
};

const op_table ops_microsoft_nchwc = OP_TABLE(ROWS);
