/* Lowering: a row for each kind of layer says which function turns it into problems. */
#include "generator/lower.h"

#include <stdlib.h>

static const lower_row *const ROWS[] = {lower_product_rows,     lower_experts_rows, lower_attention_rows,
                                        lower_elementwise_rows, lower_layer_rows,   lower_move_rows,
                                        lower_training_rows,    lower_sample_rows};

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

bool lower_has_result(const lowering *l, int k)
{
    return k < l->layer->n_out && l->layer->node->n_out > k && l->layer->node->out[k] >= 0;
}

const bz_type *lower_channels(const lowering *l, const bz_type *t)
{
    if (t->rank < 3 || strcmp(lower_word(l, "layout", "nchw"), "nhwc") != 0)
        return t;
    bz_dim *dims = bz_arena_dup(l->arena, t->dims, (size_t)t->rank * sizeof *dims);
    bz_type *first = bz_arena_dup(l->arena, t, sizeof *t);
    dims[1] = t->dims[t->rank - 1];
    memcpy(dims + 2, t->dims + 1, (size_t)(t->rank - 2) * sizeof *dims);
    first->dims = dims;
    return first;
}

int64_t lower_int(const lowering *l, const char *name, int64_t otherwise)
{
    return bz_layer_int(l->layer, name, otherwise);
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
    float x = strtof(p->text, &end);
    if (end == p->text || *end || !(x < 1e30f && x > -1e30f))
        return false;
    *v = x;
    return true;
}

float lower_float(const lowering *l, const char *name, float otherwise)
{
    const bz_attr *a = bz_node_attr(l->layer->node, name);
    return a && a->kind == BZ_ATTR_FLOAT ? a->f : otherwise;
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

void lower_sum(lowering *l, const bz_extent x, const bz_extent y)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_REDUCE);
    p->reduce.fn = BZ_FN_SUM;
    memcpy(p->reduce.x, x, sizeof(bz_extent));
    memcpy(p->reduce.y, y, sizeof(bz_extent));
}

bz_problem *lower_gemm_step(lowering *l, int64_t m, int64_t n, int64_t k)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_GEMM);
    p->gemm.m = m, p->gemm.n = n, p->gemm.k = k, p->gemm.batch = 1;
    return p;
}

bz_problem *lower_matrices(lowering *l, const bz_extent a, const bz_extent b)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_MATMUL);
    memcpy(p->matmul.a, a, sizeof(bz_extent));
    memcpy(p->matmul.b, b, sizeof(bz_extent));
    return p;
}

bz_problem *lower_apply(lowering *l, bz_problem_kind kind, bz_fn fn, const bz_extent x)
{
    bz_problem *p = lower_step(l, kind);
    p->activation.fn = fn;
    memcpy(p->activation.x, x, sizeof(bz_extent));
    return p;
}

void lower_combine(lowering *l, bz_fn fn, const bz_extent a, const bz_extent b)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    p->binary.fn = fn;
    memcpy(p->binary.a, a, sizeof(bz_extent));
    memcpy(p->binary.b, b, sizeof(bz_extent));
}

void lower_softmax_of(lowering *l, bz_problem_kind kind, const bz_extent x, int64_t axis)
{
    bz_problem *p = lower_step(l, kind);
    memcpy(p->softmax.x, x, sizeof(bz_extent));
    p->softmax.axis = axis;
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
    BZ_SCOPED(bz_buf) line = {0};
    for (int i = 0; i < n; i++) {
        bz_buf_clear(&line);
        bz_problem_print(&l->step[i], &line);
        text[i] = bz_arena_strn(l->arena, line.data, line.len);
    }
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

int lower_or_copy(lowering *l)
{
    if (lower_copy(l))
        return -1;
    l->alternative[l->n - 1].fallback = true;
    l->why = ONE_PASS;
    return 0;
}

int lower_done_or_copy(lowering *l)
{
    return lower_done(l) || lower_or_copy(l) ? -1 : 0;
}

static bool is_empty(const bz_layer *layer)
{
    for (int i = 0; i < layer->n_out; i++)
        if (layer->out[i].kind != BZ_TYPE_NONE && bz_type_elements(&layer->out[i]) != 0)
            return false;
    return layer->n_out > 0;
}

static int class_of(bz_dtype t)
{
    return t == BZ_F64                ? DOUBLE
           : bz_dtype_is_float(t)     ? (bz_dtype_bits(t) >= 16 ? FLOATS : 0)
           : t == BZ_I8 || t == BZ_U8 ? BYTES
           : t == BZ_BOOL             ? BOOLS
           : t == BZ_I32              ? WORDS
           : t == BZ_I64              ? LONGS
           : bz_dtype_bits(t) >= 8    ? OTHERS
                                      : 0;
}

bool lower_is_narrow(bz_dtype wanted)
{
    return wanted == BZ_F8E4M3 || wanted == BZ_F4E2M1;
}

bz_dtype lower_dtype(bz_dtype has, bz_dtype wanted)
{
    if (!bz_dtype_is_float(has) || !wanted)
        return has;
    return lower_is_narrow(wanted) ? BZ_F16 : wanted;
}

static void choose_types(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_dtype has = x ? x->dtype : l->layer->n_out ? l->layer->out[0].dtype : BZ_F32;
    l->dtype = lower_dtype(has, l->wanted);
    l->quantize = bz_dtype_is_float(has) && class_of(l->dtype) == BYTES;
}

static const lower_row *find_row(const char *kind)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (const lower_row *row = ROWS[i]; row->kind; row++)
            if (!strcmp(row->kind, kind))
                return row;
    return NULL;
}

/* A layer that multiplies is never priced by its bytes alone, nor is one that walks through its attributes. */
static int lower_one(lowering *l)
{
    const bz_layer *layer = l->layer;
    bz_dtype given = l->dtype;
    const lower_row *row = find_row(layer->kind);
    if (!row || !row->lower) {
        l->why = row ? row->why : "no library call computes it";
    } else if (!((row->types | row->ours) & class_of(given))) {
        l->why = bz_arena_printf(l->arena, "no library computes it in %s", bz_dtype_name(given));
    } else {
        l->dtype = given == BZ_BOOL ? BZ_U8 : given;
        l->arg = row->arg;
        if (layer->n_out && !row->lower(l))
            return row->types & class_of(given) || l->alternative[l->n - 1].modelled ? 0 : lower_or_copy(l);
        l->dtype = given;
    }
    if (l->n)
        return 0;
    return layer->macs || (row && row->no_copy) ? lower_no(l, l->why) : lower_copy(l);
}

/* Products of 8-bit floats and of 4-bit ones have shapes that no library takes, as those of images with three channels: models keep
 * such layers in f16, which counts where nothing else runs. */
static void fall_back(lowering *l)
{
    int own = l->n;
    for (int a = 0; a < own; a++) {
        bool narrow = false;
        for (int i = 0; i < l->alternative[a].n; i++)
            narrow |= lower_is_narrow(l->alternative[a].problem[i].dtype);
        if (!narrow)
            return;
    }
    l->wanted = BZ_F16;
    choose_types(l);
    lower_one(l);
    for (int a = own; a < l->n; a++)
        l->alternative[a].fallback = true;
}

static const char *why_unpriced(const bz_layer *layer, bz_arena *arena)
{
    if (!strcmp(layer->kind, "unknown"))
        return bz_arena_printf(arena, "operator %s%s%s is not known", layer->node->domain,
                               *layer->node->domain ? "." : "", layer->node->op);
    for (int i = 0; i < layer->n_in + layer->n_out; i++)
        if (!bz_type_is_static(i < layer->n_in ? &layer->in[i] : &layer->out[i - layer->n_in]))
            return "its shapes depend on data";
    return "the model does not tell what it does inside";
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
        out->why = why_unpriced(layer, arena);
        return;
    }
    choose_types(&l);
    int failed = lower_one(&l);
    if (!failed && lower_is_narrow(dtype))
        fall_back(&l);
    out->why = l.why;
    if (failed)
        return;
    out->alternative = bz_arena_dup(arena, l.alternative, (size_t)l.n * sizeof *l.alternative);
    out->n = l.n;
}

bz_lowered *bz_lowered_new(const bz_layers *layers, bz_dtype dtype, bz_arena *arena)
{
    bz_lowered *l = BZ_NEW(arena, bz_lowered, 1);
    *l = (bz_lowered){layers, dtype, arena, BZ_NEW(arena, bz_lowering, layers->n), NULL};
    l->as_is = dtype ? BZ_NEW(arena, bz_lowering, layers->n) : l->wanted;
    return l;
}

static const bz_lowering *lower_once(const bz_lowered *l, bz_lowering *low, int layer, bz_dtype dtype)
{
    if (!low->n && !low->free && !low->why)
        bz_lower(&l->layers->layer[layer], dtype, l->arena, low);
    return low;
}

const bz_lowering *lowered_layer(bz_lowered *l, int layer)
{
    return lower_once(l, &l->wanted[layer], layer, l->dtype);
}

const bz_lowering *lowered_as_is(bz_lowered *l, int layer)
{
    return lower_once(l, &l->as_is[layer], layer, BZ_UNDEFINED);
}
