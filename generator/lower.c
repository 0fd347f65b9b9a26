/* Lowering: a row for each kind of layer says which function turns it into problems. */
#include "generator/lower.h"

#include <stdlib.h>

static const struct {
    const char *kind;
    lower_function *lower;
    int arg;
} KINDS[] = {
    {"conv", lower_conv, 0},
    {"qconv", lower_qconv, 0},
    {"deconv", lower_deconv, 0},
    {"gemm", lower_gemm, 0},
    {"matmul", lower_matmul, 0},
    {"qmatmul", lower_qmatmul, 0},
    {"attention", lower_attention, 0},

    {"relu", lower_unary, BZ_FN_RELU},
    {"leakyrelu", lower_unary, BZ_FN_LEAKY},
    {"elu", lower_unary, BZ_FN_ELU},
    {"sigmoid", lower_unary, BZ_FN_SIGMOID},
    {"tanh", lower_unary, BZ_FN_TANH},
    {"swish", lower_unary, BZ_FN_SWISH},
    {"hardswish", lower_unary, BZ_FN_HARDSWISH},
    {"hardsigmoid", lower_unary, BZ_FN_HARDSIGMOID},
    {"mish", lower_unary, BZ_FN_MISH},
    {"softplus", lower_unary, BZ_FN_SOFTPLUS},
    {"exp", lower_unary, BZ_FN_EXP},
    {"log", lower_unary, BZ_FN_LOG},
    {"sqrt", lower_unary, BZ_FN_SQRT},
    {"abs", lower_unary, BZ_FN_ABS},
    {"round", lower_unary, BZ_FN_ROUND},
    {"neg", lower_unary, BZ_FN_LINEAR},
    {"reciprocal", lower_unary, BZ_FN_POW},
    {"clip", lower_clip, 0},
    {"gelu", lower_gelu, 0},
    {"prelu", lower_prelu, 0},
    {"fastgelu", lower_bias_function, BZ_FN_GELU_TANH},
    {"biasgelu", lower_bias_function, BZ_FN_GELU_ERF},

    {"add", lower_binary, BZ_FN_ADD},
    {"sub", lower_binary, BZ_FN_SUB},
    {"mul", lower_binary, BZ_FN_MUL},
    {"div", lower_binary, BZ_FN_DIV},
    {"max", lower_variadic, BZ_FN_MAX},
    {"min", lower_variadic, BZ_FN_MIN},
    {"sum", lower_variadic, BZ_FN_ADD},
    {"mean", lower_variadic, BZ_FN_MEAN},

    {"maxpool", lower_pool, BZ_POOL_MAX},
    {"avgpool", lower_pool, BZ_POOL_AVG},
    {"globalmaxpool", lower_global_pool, BZ_POOL_MAX},
    {"globalavgpool", lower_global_pool, BZ_POOL_AVG},
    {"batchnorm", lower_batchnorm, 0},
    {"layernorm", lower_layernorm, 0},
    {"skiplayernorm", lower_skip_layernorm, 0},
    {"groupnorm", lower_groupnorm, 0},
    {"instancenorm", lower_groupnorm, 1},
    {"softmax", lower_softmax, BZ_PROBLEM_SOFTMAX},
    {"logsoftmax", lower_softmax, BZ_PROBLEM_LOGSOFTMAX},
    {"lrn", lower_lrn, 0},
    {"reducesum", lower_reduce, BZ_FN_SUM},
    {"reducemean", lower_reduce, BZ_FN_MEAN},
    {"reducemax", lower_reduce, BZ_FN_MAX},
    {"reducemin", lower_reduce, BZ_FN_MIN},
    {"reduceprod", lower_reduce, BZ_FN_PROD},
    {"reducel1", lower_reduce, BZ_FN_L1},
    {"reducel2", lower_reduce, BZ_FN_L2},
    {"reducesumsquare", lower_reduce, BZ_FN_SUMSQUARE},

    {"resize", lower_resize, 0},
    {"concat", lower_concat, 0},
    {"transpose", lower_transpose, 0},
    {"cast", lower_cast, 0},
    {"quantize", lower_quantize, 1},
    {"dequantize", lower_quantize, 0},
    {"lstm", lower_rnn, BZ_PROBLEM_LSTM},
    {"gru", lower_rnn, BZ_PROBLEM_GRU},
    {"rnn", lower_rnn, BZ_PROBLEM_RNN},
};

/* ---- what the functions are made of --------------------------------------------------------- */

const bz_type *lower_in(const lowering *l, int k)
{
    return k < l->layer->n_in && l->layer->in[k].kind == BZ_TYPE_TENSOR ? &l->layer->in[k] : NULL;
}

int lower_extent(const bz_type *t, int rank, int64_t *extent)
{
    int ones = rank > t->rank ? rank - t->rank : t->rank ? 0 : 1, n = ones + t->rank;
    if (t->rank < 0 || n > BZ_PROBLEM_RANK)
        return -1;
    memset(extent, 0, sizeof(bz_extent));
    for (int i = 0; i < n; i++) {
        extent[i] = i < ones ? 1 : t->dims[i - ones];
        if (extent[i] < 1)
            return -1;
    }
    return 0;
}

int64_t lower_param(const bz_layer *layer, const char *name, int64_t otherwise)
{
    const bz_param *p = bz_layer_param(layer, name);
    return p && p->n == 1 ? p->v[0] : otherwise;
}

int64_t lower_int(const lowering *l, const char *name, int64_t otherwise)
{
    return lower_param(l->layer, name, otherwise);
}

const char *lower_word(const lowering *l, const char *name, const char *otherwise)
{
    const bz_param *p = bz_layer_param(l->layer, name);
    return p && p->text ? p->text : otherwise;
}

bool lower_real(const lowering *l, const char *name, float *v)
{
    const bz_param *p = bz_layer_param(l->layer, name);
    char *end;
    if (!p || !p->text)
        return false;
    *v = strtof(p->text, &end);
    return end != p->text && !*end && *v == *v && *v < 1e30f && *v > -1e30f;
}

int lower_ints(const lowering *l, const char *name, int64_t *v, int n)
{
    const bz_param *p = bz_layer_param(l->layer, name);
    if (!p || p->n != n)
        return -1;
    for (int i = 0; i < n; i++)
        if ((v[i] = p->v[i]) < 0)
            return -1;
    return 0;
}

int lower_no(lowering *l, const char *why)
{
    l->why = why;
    l->n_steps = 0;
    return -1;
}

bz_problem *lower_step(lowering *l, bz_problem_kind kind)
{
    bz_problem *p = &l->step[l->n_steps++];
    *p = (bz_problem){.kind = kind, .dtype = l->dtype};
    return p;
}

void lower_post(bz_problem *p, bz_fn fn, float alpha, float beta)
{
    int n = 0;
    while (p->post[n].fn)
        n++;
    p->post[n] = (bz_post){fn, alpha, beta};
}

int lower_done(lowering *l)
{
    bz_error err;
    int n = l->n_steps;
    l->n_steps = 0;
    for (int i = 0; i < n; i++)
        if (bz_problem_normalize(&l->step[i], &err))
            return lower_no(l, bz_arena_str(l->arena, err.text));
    const char **text = BZ_NEW(l->arena, const char *, n);
    bz_buf line = {0};
    for (int i = 0; i < n; i++) {
        bz_buf_clear(&line);
        bz_problem_print(&l->step[i], &line);
        text[i] = bz_arena_strn(l->arena, line.data, line.len);
    }
    bz_buf_free(&line);
    l->alternative[l->n++] =
        (bz_alternative){.n = n, .problem = bz_arena_dup(l->arena, l->step, (size_t)n * sizeof *l->step), .text = text};
    return 0;
}

/* Bytes as the layer has them; floating-point ones in the type that the user chose. */
int lower_copy(lowering *l)
{
    const bz_layer *layer = l->layer;
    int64_t write = 0, most = (int64_t)1 << 40;
    int bits = 0, chosen = 0;
    for (int i = 0; i < layer->n_out; i++) {
        int64_t n = bz_type_bytes(&layer->out[i]);
        write = n > 0 && write < most ? write + n : write;
        if (layer->out[i].kind == BZ_TYPE_TENSOR && bz_dtype_is_float(layer->out[i].dtype))
            bits = bz_dtype_bits(layer->out[i].dtype),
            chosen = bz_dtype_bits(lower_dtype(layer->out[i].dtype, l->wanted));
    }
    write = write < layer->bytes ? write : layer->bytes;
    int64_t read = layer->bytes - write;
    if (layer->bytes > most)
        return lower_no(l, "it moves too many bytes for a benchmark");
    if (bits && chosen && chosen != bits) {
        write = write * chosen / bits;
        read = read * chosen / bits;
    }
    l->n_steps = 0;
    bz_problem *p = lower_step(l, BZ_PROBLEM_COPY);
    *p = (bz_problem){.kind = BZ_PROBLEM_COPY, .copy = {.read = read, .write = write}, .dtype = BZ_U8};
    if (read + write < 1)
        p->copy.write = 1;
    if (lower_done(l))
        return -1;
    l->alternative[l->n - 1].modelled = true;
    return 0;
}

/* ---- a layer -------------------------------------------------------------------------------- */

static bool is_empty(const bz_layer *layer)
{
    for (int i = 0; i < layer->n_out; i++)
        if (layer->out[i].kind != BZ_TYPE_NONE && bz_type_elements(&layer->out[i]) != 0)
            return false;
    return layer->n_out > 0;
}

/* Types that libraries compute in. Others (i64 shapes, strings) are moved at most. */
static bool is_computable(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_F64 || t == BZ_I8 || t == BZ_U8;
}

bz_dtype lower_dtype(bz_dtype has, bz_dtype wanted)
{
    if (!bz_dtype_is_float(has) || !wanted)
        return has;
    return wanted == BZ_I8 ? BZ_U8 : wanted;
}

static void choose_types(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_dtype has = x ? x->dtype : l->layer->n_out ? l->layer->out[0].dtype : BZ_F32;
    l->dtype = lower_dtype(has, l->wanted);
    l->quantize = bz_dtype_is_float(has) && l->dtype == BZ_U8;
}

static int lower_one(lowering *l)
{
    const bz_layer *layer = l->layer;
    bool known = false;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strcmp(KINDS[i].kind, layer->kind) != 0)
            continue;
        known = true;
        if (layer->n_out && is_computable(l->dtype) && !KINDS[i].lower(l, KINDS[i].arg))
            return 0;
    }
    if (l->n)
        return 0;
    if (layer->macs)
        return known && l->why
                   ? -1
                   : lower_no(l, known ? "no library computes it in its data type" : "no benchmark for this kind");
    return lower_copy(l);
}

void bz_lower(const bz_layer *layer, bz_dtype dtype, bz_arena *arena, bz_lowering *out)
{
    bz_problem steps[MAX_STEPS];
    lowering l = {.layer = layer, .wanted = dtype, .arena = arena, .step = steps};
    *out = (bz_lowering){0};
    if (layer->class == BZ_VIEW || layer->class == BZ_CONSTANT || layer->n_bodies || is_empty(layer)) {
        out->free = true;
        return;
    }
    if (!layer->priced) {
        out->why = "its shapes depend on data";
        return;
    }
    choose_types(&l);
    if (lower_one(&l)) {
        out->why = l.why;
        return;
    }
    out->alternative = bz_arena_dup(arena, l.alternative, (size_t)l.n * sizeof *l.alternative);
    out->n = l.n;
}
