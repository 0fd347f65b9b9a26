/* Which tensors a problem touches, and what it costs: bytes and operations. */
#include "runtime/kind.h"

#include <string.h>

bz_operand *bz_operand_add(bz_operand_list *l, bz_role role, bz_dtype dtype, int rank, const int64_t *dim)
{
    bz_operand *o = &l->item[l->n++];
    *o = (bz_operand){.role = role, .dtype = dtype, .rank = rank, .count = 1, .post = -1, .alias = -1};
    for (int i = 0; i < rank; i++) {
        o->dim[i] = dim[i];
        if (__builtin_mul_overflow(o->count, dim[i], &o->count))
            o->count = INT64_MAX; /* bz_problem_normalize refuses it */
    }
    o->constant = role == BZ_ROLE_W || role == BZ_ROLE_R || role == BZ_ROLE_PEEPHOLE || role == BZ_ROLE_BIAS ||
                  role == BZ_ROLE_SCALE || role == BZ_ROLE_SHIFT || role == BZ_ROLE_MEAN || role == BZ_ROLE_VARIANCE ||
                  role == BZ_ROLE_SLOPE;
    return o;
}

const char *bz_role_name(bz_role role)
{
    static const char *const NAMES[BZ_ROLE_Y + 1] = {
        [BZ_ROLE_X] = "x",
        [BZ_ROLE_W] = "weights",
        [BZ_ROLE_R] = "recurrent weights",
        [BZ_ROLE_BIAS] = "bias",
        [BZ_ROLE_SCALE] = "scale",
        [BZ_ROLE_SHIFT] = "shift",
        [BZ_ROLE_MEAN] = "mean",
        [BZ_ROLE_VARIANCE] = "variance",
        [BZ_ROLE_H] = "h",
        [BZ_ROLE_C] = "c",
        [BZ_ROLE_MASK] = "mask",
        [BZ_ROLE_INDEX] = "index",
        [BZ_ROLE_B] = "b",
        [BZ_ROLE_V] = "v",
        [BZ_ROLE_M] = "m",
        [BZ_ROLE_N] = "n",
        [BZ_ROLE_BEFORE] = "before",
    };
    return NAMES[role] ? NAMES[role] : "";
}

void bz_operand_add_shape(bz_operand_list *l, bz_role role, bz_dtype dtype, const int64_t *dim)
{
    bz_operand_add(l, role, dtype, bz_extent_rank(dim), dim);
}

bz_operand *bz_operand_add_result(bz_operand_list *l, bz_role role, bz_dtype dtype, int rank, const int64_t *dim,
                                  int alias)
{
    bz_operand *o = bz_operand_add(l, role, dtype, rank, dim);
    o->constant = false;
    o->result = true;
    o->alias = alias;
    return o;
}

bz_dtype bz_parameter_dtype(const bz_problem *p)
{
    return p->dtype == BZ_F64 ? BZ_F64 : BZ_F32;
}

int64_t bz_window_result(int64_t x, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation)
{
    return (x + before + after - ((kernel - 1) * dilation + 1)) / stride + 1;
}

bool bz_problem_pads_evenly(const bz_problem *p)
{
    bool pool = p->kind == BZ_PROBLEM_POOL || p->kind == BZ_PROBLEM_POOL_GRAD;
    const int64_t *x = pool ? p->pool.x : p->conv.x, *kernel = pool ? p->pool.kernel : p->conv.w + 2;
    const int64_t *stride = pool ? p->pool.stride : p->conv.stride, *pad = pool ? p->pool.pad : p->conv.pad;
    const int64_t *dilation = pool ? p->pool.dilation : p->conv.dilation;
    int n = bz_extent_rank(x) - 2;
    for (int i = 0; i < n; i++) {
        int64_t k = kernel[i], s = stride[i], d = dilation[i], begin = pad[i];
        if (x[2 + i] + 2 * begin < (k - 1) * d + 1 ||
            bz_window_result(x[2 + i], k, s, begin, begin, d) != bz_window_result(x[2 + i], k, s, begin, pad[n + i], d))
            return false;
    }
    return true;
}

void bz_extent_broadcast(const int64_t *a, const int64_t *b, int64_t *y)
{
    for (int i = 0; a[i] && b[i]; i++)
        y[i] = a[i] == 1 ? b[i] : a[i];
}

/* The kind's shape of this name; NULL where it has none. */
static const int64_t *shape(const bz_problem *p, const char *name)
{
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++)
        if (m->form == BZ_FORM_EXTENT && !strcmp(m->name, name))
            return bz_member_numbers(p, m);
    return NULL;
}

static void add_inputs(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    const int64_t *x = shape(p, "x"), *to = shape(p, "y");
    if (bz_kinds[p->kind]->operands) {
        bz_kinds[p->kind]->operands(p, l, y);
        return;
    }
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, x);
    memcpy(y, to ? to : x, sizeof(bz_extent));
}

int bz_problem_bias_axis(const bz_problem *p, int rank)
{
    return bz_problem_has(p, BZ_TRAIT_CONVOLUTION) ? 1 : rank - 1;
}

int bz_problem_operands(const bz_problem *p, bz_operand *list)
{
    bz_operand_list l = {list, 0};
    bz_extent y = {0};
    add_inputs(p, &l, y);
    bool bytes = bz_problem_has(p, BZ_TRAIT_BYTES);
    int rank = bytes ? 1 : bz_extent_rank(y);
    for (int i = 0; p->post[i].fn; i++) {
        if (p->post[i].fn == BZ_FN_BIAS)
            bz_operand_add(&l, BZ_ROLE_BIAS, bz_parameter_dtype(p), 1, &y[bz_problem_bias_axis(p, rank)]);
        else if (p->post[i].fn == BZ_FN_KEEP)
            bz_operand_add_result(&l, BZ_ROLE_BEFORE, p->dtype_y, rank, y, -1);
        else if (bz_fn_is_binary(p->post[i].fn))
            bz_operand_add(&l, BZ_ROLE_OTHER, p->dtype_y, rank, y)->post = i;
    }
    bz_operand_add_result(&l, BZ_ROLE_Y, bytes ? BZ_U8 : p->dtype_y, rank, y, p->kind == BZ_PROBLEM_UPDATE ? 0 : -1);
    return l.n;
}

double bz_problem_bytes(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    double bytes = 0;
    int n = bz_problem_operands(p, list);
    if (bz_problem_has(p, BZ_TRAIT_PARTIAL))
        list[0].count = list[n - 1].count < list[0].count ? list[n - 1].count : list[0].count;
    while (n--)
        bytes += (double)list[n].count * bz_dtype_bits(list[n].dtype) / 8;
    return bytes;
}

double bz_problem_flops(const bz_problem *p)
{
    const bz_kind *kind = bz_kinds[p->kind];
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    double y = (double)list[n - 1].count;
    double flops = kind->flops ? kind->flops(p, list, y) : (kind->depth ? 2 * kind->depth(p) : kind->each) * y;
    for (int i = 0; p->post[i].fn; i++)
        flops += p->post[i].fn == BZ_FN_KEEP ? 0 : y;
    return flops;
}

double bz_problem_scale(const bz_problem *p)
{
    double n = bz_kinds[p->kind]->depth ? bz_kinds[p->kind]->depth(p) : 0;
    if (n == 0 || (p->dtype_y != BZ_I8 && p->dtype_y != BZ_U8))
        return 1;
    /* The operands spread over about 20 each: the sum by 400 √n. Wanted is a spread of about 30. */
    return exp2(-round(log2(400 * sqrt(n) / 30)));
}
