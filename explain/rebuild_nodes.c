/* Operators as nodes: a row for each that is known, with what makes nodes of it. */
#include "explain/rebuild.h"

#include <stdio.h>
#include <string.h>

enum { SPATIAL = REBUILD_SPATIAL, RANK = BZ_SEEN_RANK };
typedef rebuild_making making;
typedef rebuild_window window;

/* A tensor with sizes; NULL where the argument is none. */
static const bz_operand_seen *tensor(const making *m, int argument)
{
    for (int i = 0; i < m->o->n_in; i++)
        if (m->o->in[i].argument == argument && m->o->in[i].rank > 0) {
            for (int a = 0; a < m->o->in[i].rank; a++)
                if (m->o->in[i].dim[a] < 1)
                    return NULL;
            return &m->o->in[i];
        }
    return NULL;
}

static bz_dtype type_of(const bz_operand_seen *v)
{
    return v->dtype ? v->dtype : BZ_F32;
}

/* The name of one more value of the model. */
static const char *new_value(making *m)
{
    return bz_arena_printf(m->arena, "v%d", m->n_values++);
}

static const char *input_of(making *m, bz_dtype dtype, const bz_operand_seen *v)
{
    const char *name = new_value(m);
    bz_draft_input(&m->draft, name, dtype, v->rank, v->dim);
    return name;
}

static const char *input(making *m, const bz_operand_seen *v)
{
    return input_of(m, type_of(v), v);
}

static const char *constant(making *m, bz_dtype dtype, int rank, const int64_t *dims, const void *data, size_t size)
{
    const char *name = new_value(m);
    bz_draft_tensor(&m->draft, name, dtype, rank, dims, data, size);
    return name;
}

/* A constant of unknown values. */
static const char *weights(making *m, const bz_operand_seen *v)
{
    return v ? constant(m, type_of(v), v->rank, v->dim, "", 0) : NULL;
}

/* A node, whose attributes come next. */
static void put(making *m, const char *op, const char *const *in, int n_in)
{
    char name[64];
    const char *result = new_value(m);
    snprintf(name, sizeof name, "%.40s_%d", m->base, m->n_made);
    bz_draft_node(&m->draft, op, "", name, in, n_in, &result, 1);
    bz_draft_output(&m->draft, result, BZ_UNDEFINED, 0, NULL);
    BZ_ARENA_ADD(m->arena, m->made_by, m->n_made) = (uint32_t)m->op;
}

/* The numbers of an argument by axis: one stands for all. False: they were not recorded. */
static bool by_axis(const making *m, int argument, int n, int64_t *v)
{
    int told = bz_operator_ints(m->o, argument, v, n);
    for (int i = 1; i < n && told == 1; i++)
        v[i] = v[0];
    return told == 1 || told == n;
}

static void put_window(making *m, const window *w, int n)
{
    bz_draft_attr_ints(&m->draft, "strides", w->stride, n);
    bz_draft_attr_ints(&m->draft, "pads", w->pad, 2 * n);
    bz_draft_attr_ints(&m->draft, "dilations", w->dilation, n);
}

/* conv2d(x, w, bias, stride, padding, dilation, groups), convolution(x, w, bias, stride, padding, dilation, transposed, …) */
static bool make_conv(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0), *w = tensor(m, 1), *b = tensor(m, 2);
    window v = {0};
    int64_t transposed = 0;
    if (!x || !w || x->rank != w->rank || x->rank < 3 || x->rank > 2 + SPATIAL || x->dim[1] % w->dim[1] ||
        (strstr(m->base, "convolution") && bz_operator_ints(m->o, 6, &transposed, 1) == 1 && transposed))
        return false;
    int n = x->rank - 2;
    int64_t group = x->dim[1] / w->dim[1];
    if (w->dim[0] % group)
        return false;
    memcpy(v.kernel, w->dim + 2, sizeof v.kernel);
    if (by_axis(m, 3, n, v.stride) && by_axis(m, 4, n, v.pad) && by_axis(m, 5, n, v.dilation))
        memcpy(v.pad + n, v.pad, (size_t)n * sizeof *v.pad);
    else if (!rebuild_result(m, x, w->dim[0], &v))
        rebuild_guess_window(m, n, &v);
    for (int a = 0; a < n; a++)
        if (v.stride[a] < 1 || v.dilation[a] < 1 || v.pad[a] < 0 ||
            x->dim[2 + a] + v.pad[a] + v.pad[n + a] < (v.kernel[a] - 1) * v.dilation[a] + 1)
            return false;
    put(m, op, (const char *[]){input(m, x), weights(m, w), weights(m, b)}, b ? 3 : 2);
    put_window(m, &v, n);
    bz_draft_attr_int(&m->draft, "group", group);
    return true;
}

/* conv_transpose2d(x, w, bias, stride, padding, more of the result, groups, dilation) */
static bool make_deconv(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0), *w = tensor(m, 1), *b = tensor(m, 2);
    window v = {.turned = true};
    int64_t group = 1, more[SPATIAL] = {0};
    if (!x || !w || x->rank != w->rank || x->rank < 3 || x->rank > 2 + SPATIAL || x->dim[1] != w->dim[0])
        return false;
    int n = x->rank - 2;
    if (bz_operator_ints(m->o, 6, &group, 1) != 1)
        group = b && b->rank == 1 && b->dim[0] % w->dim[1] == 0 ? b->dim[0] / w->dim[1] : 1;
    if (group < 1 || x->dim[1] % group || w->dim[1] > INT64_MAX / group)
        return false;
    memcpy(v.kernel, w->dim + 2, sizeof v.kernel);
    const int64_t *y = NULL;
    if (by_axis(m, 3, n, v.stride) && by_axis(m, 4, n, v.pad) && by_axis(m, 5, n, more) && by_axis(m, 7, n, v.dilation))
        memcpy(v.pad + n, v.pad, (size_t)n * sizeof *v.pad);
    else if (!(y = rebuild_result(m, x, group * w->dim[1], &v)))
        rebuild_guess_window(m, n, &v);
    for (int a = 0; a < n; a++) {
        if (v.stride[a] < 1 || v.dilation[a] < 1 || v.pad[a] < 0 || x->dim[2 + a] > INT64_MAX / 4 / v.stride[a] ||
            v.kernel[a] > INT64_MAX / 4 / v.dilation[a])
            return false;
        int64_t made = (x->dim[2 + a] - 1) * v.stride[a] + (v.kernel[a] - 1) * v.dilation[a] + 1;
        if (v.pad[a] >= made || v.pad[n + a] >= made - v.pad[a] || more[a] < 0)
            return false;
        more[a] = y ? y[2 + a] - (made - v.pad[a] - v.pad[n + a]) : more[a];
    }
    put(m, op, (const char *[]){input(m, x), weights(m, w), weights(m, b)}, b ? 3 : 2);
    put_window(m, &v, n);
    bz_draft_attr_int(&m->draft, "group", group);
    bz_draft_attr_ints(&m->draft, "output_padding", more, n);
    return true;
}

/* max_pool2d(x, kernel, stride, padding, dilation, ceil), avg_pool2d(x, kernel, stride, padding, …) */
static bool make_pool(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    window v = {.dilation = {1, 1, 1}};
    int64_t up = 0;
    if (!x || x->rank < 3 || x->rank > 2 + SPATIAL)
        return false;
    int n = x->rank - 2;
    if (by_axis(m, 1, n, v.kernel)) {
        if (!by_axis(m, 2, n, v.stride))
            memcpy(v.stride, v.kernel, sizeof v.stride);
        by_axis(m, 3, n, v.pad);
        memcpy(v.pad + n, v.pad, (size_t)n * sizeof *v.pad);
        bz_operator_ints(m->o, !strcmp(op, "MaxPool") ? 5 : 4, &up, 1);
    } else if (!rebuild_guess_kernel(m, x, &v)) {
        return false;
    }
    for (int a = 0; a < n; a++)
        if (v.kernel[a] < 1 || v.stride[a] < 1 || v.pad[a] < 0 || v.pad[a] >= v.kernel[a] ||
            x->dim[2 + a] + 2 * v.pad[a] < v.kernel[a])
            return false;
    put(m, op, (const char *[]){input(m, x)}, 1);
    put_window(m, &v, n);
    bz_draft_attr_ints(&m->draft, "kernel_shape", v.kernel, n);
    bz_draft_attr_int(&m->draft, "ceil_mode", up);
    return true;
}

/* adaptive_avg_pool2d(x, size): to one value for each channel, or by windows of equal size. */
static bool make_adaptive(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    window v = {.dilation = {1, 1, 1}};
    int64_t size[SPATIAL];
    bool one = true, same = true;
    if (!x || x->rank < 3 || x->rank > 2 + SPATIAL)
        return false;
    int n = x->rank - 2;
    if (!by_axis(m, 1, n, size)) {
        const int64_t *y = rebuild_result(m, x, x->dim[1], NULL);
        for (int a = 0; a < n; a++)
            size[a] = y ? y[2 + a] : 1; /* a flattened result: the usual case */
    }
    for (int a = 0; a < n; a++) {
        one &= size[a] == 1;
        same &= size[a] == x->dim[2 + a];
        if (size[a] < 1 || x->dim[2 + a] % size[a])
            return false;
        v.kernel[a] = v.stride[a] = x->dim[2 + a] / size[a];
    }
    bool max = !strcmp(op, "MaxPool");
    if (same && !one)
        return true;
    put(m, !one ? op : max ? "GlobalMaxPool" : "GlobalAveragePool", (const char *[]){input(m, x)}, 1);
    if (!one) {
        put_window(m, &v, n);
        bz_draft_attr_ints(&m->draft, "kernel_shape", v.kernel, n);
    }
    return true;
}

static bool make_linear(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0), *w = tensor(m, 1), *b = tensor(m, 2);
    bz_operand_seen turned, y;
    if (!x || !w || w->rank != 2 || x->dim[x->rank - 1] != w->dim[1])
        return false;
    if (x->rank == 2) {
        put(m, op, (const char *[]){input(m, x), weights(m, w), weights(m, b)}, b ? 3 : 2);
        bz_draft_attr_int(&m->draft, "transB", 1);
        return true;
    }
    turned = *w;
    turned.dim[0] = w->dim[1];
    turned.dim[1] = w->dim[0];
    put(m, "MatMul", (const char *[]){input(m, x), weights(m, &turned)}, 2);
    y = *x;
    y.dim[y.rank - 1] = w->dim[0];
    if (b)
        put(m, "Add", (const char *[]){input(m, &y), weights(m, b)}, 2);
    return true;
}

/* addmm(c, a, b) */
static bool make_addmm(making *m, const char *op)
{
    const bz_operand_seen *c = tensor(m, 0), *a = tensor(m, 1), *b = tensor(m, 2);
    if (!a || !b || a->rank != 2 || b->rank != 2 || a->dim[1] != b->dim[0] ||
        (c && (c->rank > 2 || (c->dim[c->rank - 1] != b->dim[1] && c->dim[c->rank - 1] != 1))))
        return false;
    put(m, op, (const char *[]){input(m, a), weights(m, b), weights(m, c)}, c ? 3 : 2);
    return true;
}

/* ONNX Runtime's Gemm(a, b, c): whether b is turned round is told by its sizes. */
static bool make_gemm(making *m, const char *op)
{
    const bz_operand_seen *a = tensor(m, 0), *b = tensor(m, 1), *c = tensor(m, 2);
    int64_t turned;
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return false;
    bool made = m->o->n_out && m->o->out[0].rank == 2;
    turned = a->dim[1] != b->dim[0] || (made && m->o->out[0].dim[1] != b->dim[1]);
    if (a->dim[1] != b->dim[turned])
        return false;
    put(m, op, (const char *[]){input(m, a), weights(m, b), weights(m, c)}, c ? 3 : 2);
    bz_draft_attr_int(&m->draft, "transB", turned);
    return true;
}

static bool fits_broadcast(const bz_operand_seen *a, const bz_operand_seen *b, int skip)
{
    for (int i = 1 + skip; i <= a->rank && i <= b->rank; i++) {
        int64_t x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static bool put_product(making *m, const bz_operand_seen *a, const bz_operand_seen *b)
{
    if (!a || !b || a->dim[a->rank - 1] != b->dim[b->rank > 1 ? b->rank - 2 : 0] || !fits_broadcast(a, b, 2))
        return false;
    put(m, "MatMul", (const char *[]){input(m, a), m->o->n_out && b->rank == 2 ? weights(m, b) : input(m, b)}, 2);
    return true;
}

static bool make_matmul(making *m, const char *op)
{
    (void)op;
    return put_product(m, tensor(m, 0), tensor(m, 1));
}

static bool make_baddbmm(making *m, const char *op)
{
    (void)op;
    return put_product(m, tensor(m, 1), tensor(m, 2));
}

/* softmax(q kᵀ) v, as models are written. Heads that share keys are multiplied with them one by one. */
static bool make_attention(making *m, const char *op)
{
    const bz_operand_seen *q = tensor(m, 0), *k = tensor(m, 1), *v = tensor(m, 2);
    int r = q ? q->rank : 0;
    (void)op;
    if (!q || !k || !v || r < 3 || k->rank != r || v->rank != r || q->dim[r - 1] != k->dim[r - 1] ||
        k->dim[r - 2] != v->dim[r - 2])
        return false;
    bz_operand_seen turned = *q, scores = *q, values = *q;
    turned.dim[r - 2] = k->dim[r - 1];
    turned.dim[r - 1] = scores.dim[r - 1] = values.dim[r - 2] = k->dim[r - 2];
    values.dim[r - 1] = v->dim[r - 1];
    put_product(m, q, &turned);
    put(m, "Softmax", (const char *[]){input(m, &scores)}, 1);
    put_product(m, &scores, &values);
    return true;
}

static bool make_batchnorm(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    if (!x || x->rank < 2)
        return false;
    bz_operand_seen c = {.rank = 1, .dtype = x->dtype, .dim = {x->dim[1]}};
    const char *in[] = {input(m, x), weights(m, &c), weights(m, &c), weights(m, &c), weights(m, &c)};
    put(m, op, in, !strcmp(op, "BatchNormalization") ? 5 : 3);
    return true;
}

/* layer_norm(x, sizes, weight, bias); ONNX Runtime's has no sizes. */
static bool make_layernorm(making *m, const char *op)
{
    int first = m->o->n_out ? 1 : 2;
    const bz_operand_seen *x = tensor(m, 0), *w = tensor(m, first), *b = tensor(m, first + 1);
    int64_t sizes[RANK], axis;
    if (!x)
        return false;
    int n = w ? w->rank : bz_operator_ints(m->o, 1, sizes, RANK);
    axis = x->rank - (n > 0 && n <= x->rank ? n : 1);
    bz_operand_seen normalized = {.rank = x->rank - (int)axis, .dtype = x->dtype};
    memcpy(normalized.dim, x->dim + axis, (size_t)normalized.rank * sizeof *normalized.dim);
    put(m, op, (const char *[]){input(m, x), weights(m, &normalized), weights(m, &normalized)}, b ? 3 : 2);
    bz_draft_attr_int(&m->draft, "axis", axis);
    return true;
}

/* group_norm(x, groups, weight, bias) */
static bool make_groupnorm(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    int64_t groups = 32; /* the usual number, where it was not recorded */
    if (!x || x->rank < 3)
        return false;
    bz_operator_ints(m->o, 1, &groups, 1);
    if (groups < 1 || x->dim[1] % groups)
        return false;
    bz_operand_seen g = {.rank = 1, .dtype = x->dtype, .dim = {groups}};
    put(m, op, (const char *[]){input(m, x), weights(m, &g), weights(m, &g)}, 3);
    bz_draft_attr_int(&m->draft, "num_groups", groups);
    return true;
}

static bool make_softmax(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    int64_t axis = -1;
    if (!x)
        return false;
    if (bz_operator_ints(m->o, 1, &axis, 1) != 1 || axis < -x->rank || axis >= x->rank)
        axis = -1;
    put(m, op, (const char *[]){input(m, x)}, 1);
    bz_draft_attr_int(&m->draft, "axis", axis);
    return true;
}

static bool make_unary(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    if (!x)
        return false;
    const char *in[] = {input(m, x), NULL, NULL};
    bool bounds = !strcmp(op, "Clip"); /* those of ReLU6: other ones cost the same */
    if (bounds && type_of(x) == BZ_F32) {
        in[1] = constant(m, BZ_F32, 0, NULL, &(float){0}, sizeof(float));
        in[2] = constant(m, BZ_F32, 0, NULL, &(float){6}, sizeof(float));
    }
    put(m, op, in, bounds ? 3 : 1);
    return true;
}

/* x · sigmoid(x) */
static bool make_silu(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    if (!x)
        return false;
    put(m, "Sigmoid", (const char *[]){input(m, x)}, 1);
    put(m, op, (const char *[]){input(m, x), input(m, x)}, 2);
    return true;
}

static bool make_binary(making *m, const char *op)
{
    const bz_operand_seen *a = tensor(m, 0), *b = tensor(m, 1);
    if (!a || (b && !fits_broadcast(a, b, 0)))
        return false;
    bz_operand_seen scalar = {.dtype = type_of(a)}, other = b ? *b : scalar;
    other.dtype = type_of(a); /* PyTorch converts by itself */
    put(m, op, (const char *[]){input(m, a), b ? input(m, &other) : weights(m, &scalar)}, 2);
    return true;
}

/* mean(x, sizes): where these were not recorded, over the height and width of an image, else over the last one. */
static bool make_mean(making *m, const char *op)
{
    const bz_operand_seen *x = tensor(m, 0);
    int64_t axes[RANK], keep = 0;
    if (!x)
        return false;
    int n = bz_operator_ints(m->o, 1, axes, RANK);
    if (n < 1) {
        n = x->rank == 4 ? 2 : 1;
        for (int i = 0; i < n; i++)
            axes[i] = x->rank - n + i;
    }
    for (int i = 0; i < n; i++) {
        axes[i] += axes[i] < 0 ? x->rank : 0;
        for (int k = 0; k < i; k++)
            if (axes[k] == axes[i])
                return false;
        if (axes[i] < 0 || axes[i] >= x->rank)
            return false;
    }
    put(m, op, (const char *[]){input(m, x), constant(m, BZ_I64, 1, &(int64_t){n}, axes, (size_t)n * sizeof *axes)}, 2);
    bz_draft_attr_int(&m->draft, "keepdims", keep);
    return true;
}

static bool make_embedding(making *m, const char *op)
{
    const bz_operand_seen *table = tensor(m, 0), *at = tensor(m, 1);
    if (!table || !at || table->rank != 2)
        return false;
    put(m, op, (const char *[]){weights(m, table), input_of(m, BZ_I64, at)}, 2);
    return true;
}

/* cat([a, b, …], axis): along the one in which they differ, where it was not recorded. */
static bool make_concat(making *m, const char *op)
{
    enum { PARTS = 64 };
    const char *in[PARTS];
    int n = 0;
    const bz_operand_seen *first = NULL;
    int64_t axis = -1, told;
    bool list = !m->o->n_out; /* ONNX Runtime's parts are arguments */
    for (int i = 0; i < m->o->n_in; i++) {
        const bz_operand_seen *v = &m->o->in[i];
        if (v->rank < 1 || (list && v->argument))
            continue;
        first = first ? first : v;
        if (v->rank != first->rank || n == PARTS)
            return false;
        for (int a = 0; a < v->rank; a++) {
            if (v->dim[a] < 1 || (v->dim[a] != first->dim[a] && axis >= 0 && axis != a))
                return false;
            axis = v->dim[a] != first->dim[a] ? a : axis;
        }
        n++;
    }
    if (n < 2)
        return false;
    if (axis < 0)
        axis = list && bz_operator_ints(m->o, 1, &told, 1) == 1 && told >= -first->rank && told < first->rank
                   ? (told + first->rank) % first->rank
                   : (first->rank > 1);
    n = 0;
    for (int i = 0; i < m->o->n_in; i++)
        if (m->o->in[i].rank > 0 && !(list && m->o->in[i].argument)) {
            bz_operand_seen v = m->o->in[i];
            v.dtype = first->dtype;
            in[n++] = input(m, &v);
        }
    put(m, op, in, n);
    bz_draft_attr_int(&m->draft, "axis", axis);
    return true;
}

/* copy_(to, from): to another type, or else into another order, which is what programs copy for. */
static bool make_copy(making *m, const char *op)
{
    const bz_operand_seen *to = tensor(m, 0), *from = tensor(m, 1);
    int64_t perm[RANK], dtype;
    if (!to)
        return false;
    if (from && from->dtype && to->dtype && from->dtype != to->dtype) {
        dtype = (int64_t)to->dtype;
        put(m, "Cast", (const char *[]){input(m, from)}, 1);
        bz_draft_attr_int(&m->draft, "to", dtype);
        return true;
    }
    if (to->rank < 2)
        return true;
    for (int i = 0; i < to->rank; i++)
        perm[i] = i;
    perm[to->rank - 1] = to->rank - 2;
    perm[to->rank - 2] = to->rank - 1;
    put(m, op, (const char *[]){input(m, to)}, 1);
    bz_draft_attr_ints(&m->draft, "perm", perm, to->rank);
    return true;
}

static const struct {
    const char *names; /* as `base` has them, with blanks around */
    const char *op;
    bool (*make)(making *m, const char *op);
} OPERATORS[] = {
    {" conv1d conv2d conv3d convolution _convolution cudnn_convolution mkldnn_convolution Conv FusedConv ", "Conv",
     make_conv},
    {" conv_transpose1d conv_transpose2d conv_transpose3d ", "ConvTranspose", make_deconv},
    {" linear ", "Gemm", make_linear},
    {" addmm ", "Gemm", make_addmm},
    {" Gemm FusedGemm ", "Gemm", make_gemm},
    {" mm bmm matmul mv dot MatMul FusedMatMul ", "MatMul", make_matmul},
    {" baddbmm addbmm ", "MatMul", make_baddbmm},
    {" scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention ", "",
     make_attention},
    {" batch_norm native_batch_norm cudnn_batch_norm BatchNormalization ", "BatchNormalization", make_batchnorm},
    {" instance_norm InstanceNormalization ", "InstanceNormalization", make_batchnorm},
    {" layer_norm native_layer_norm LayerNormalization ", "LayerNormalization", make_layernorm},
    {" group_norm native_group_norm ", "GroupNormalization", make_groupnorm},
    {" softmax _softmax Softmax ", "Softmax", make_softmax},
    {" log_softmax _log_softmax LogSoftmax ", "LogSoftmax", make_softmax},
    {" embedding ", "Gather", make_embedding},
    {" max_pool1d max_pool2d max_pool3d MaxPool ", "MaxPool", make_pool},
    {" avg_pool1d avg_pool2d avg_pool3d AveragePool ", "AveragePool", make_pool},
    {" adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d GlobalAveragePool ", "AveragePool", make_adaptive},
    {" adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d GlobalMaxPool ", "MaxPool", make_adaptive},
    {" mean ", "ReduceMean", make_mean},
    {" relu Relu ", "Relu", make_unary},
    {" hardtanh relu6 clamp clamp_min Clip ", "Clip", make_unary},
    {" sigmoid Sigmoid ", "Sigmoid", make_unary},
    {" tanh Tanh ", "Tanh", make_unary},
    {" gelu Gelu ", "Gelu", make_unary},
    {" hardswish HardSwish ", "HardSwish", make_unary},
    {" hardsigmoid HardSigmoid ", "HardSigmoid", make_unary},
    {" leaky_relu LeakyRelu ", "LeakyRelu", make_unary},
    {" elu Elu ", "Elu", make_unary},
    {" mish ", "Mish", make_unary},
    {" softplus ", "Softplus", make_unary},
    {" exp Exp ", "Exp", make_unary},
    {" log Log ", "Log", make_unary},
    {" sqrt Sqrt ", "Sqrt", make_unary},
    {" abs Abs ", "Abs", make_unary},
    {" neg Neg ", "Neg", make_unary},
    {" erf Erf ", "Erf", make_unary},
    {" sin cos ", "Sin", make_unary},
    {" rsqrt reciprocal ", "Reciprocal", make_unary},
    {" silu ", "Mul", make_silu},
    {" add Add ", "Add", make_binary},
    {" sub rsub Sub ", "Sub", make_binary},
    {" mul Mul ", "Mul", make_binary},
    {" div Div ", "Div", make_binary},
    {" pow Pow ", "Pow", make_binary},
    {" maximum ", "Max", make_binary},
    {" minimum ", "Min", make_binary},
    {" cat concat Concat ", "Concat", make_concat},
    {" copy ", "Transpose", make_copy},
};

/* What moves no data, or what no layer is. */
static const char QUIET[] =
    " view _unsafe_view reshape _reshape_alias permute transpose t numpy_T movedim expand expand_as broadcast_to "
    "as_strided slice select narrow chunk split split_with_sizes unbind unsqueeze squeeze flatten unflatten detach "
    "alias empty empty_like empty_strided new_empty zeros ones full zeros_like ones_like fill zero resize set to "
    "type_as contiguous dropout item is_nonzero _local_scalar_dense size lift_fresh resolve_conj resolve_neg "
    "result_type can_cast arange scalar_tensor Reshape Flatten Squeeze Unsqueeze Identity Shape Cast ReorderInput "
    "ReorderOutput ";

bool rebuild_operator(making *m)
{
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        if (bz_has_word(OPERATORS[i].names, m->base))
            return OPERATORS[i].make(m, OPERATORS[i].op);
    return false;
}

bool rebuild_is_quiet(const char *base)
{
    return bz_has_word(QUIET, base);
}
