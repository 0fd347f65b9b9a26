/* What a valid problem is. */
#include "runtime/kind.h"

int bz_problem_refuse(const bz_problem *p, const char *why, bz_error *err)
{
    return bz_fail(err, BZ_BAD_INPUT, "problem: %s: %s", bz_kinds[p->kind]->name, why);
}

/* Sizes bounded so that no product of them can overflow, nor ask for absurd amounts of memory. */
static int check_numbers(const bz_problem *p, bz_error *err)
{
    const int64_t most = (int64_t)1 << 40;
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++) {
        if (m->form == BZ_FORM_FLAG || m->form == BZ_FORM_REAL || m->form == BZ_FORM_FN || m->form == BZ_FORM_NAME)
            continue;
        const int64_t *v = bz_member_numbers(p, m);
        int64_t product = 1;
        for (int i = 0; i < bz_member_given(p, m); i++) {
            int64_t limit = m->form == BZ_FORM_EXTENT || bz_problem_has(p, BZ_TRAIT_BYTES) ? most : (int64_t)1 << 24;
            if (v[i] < 0 || v[i] > limit)
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is out of range", bz_kinds[p->kind]->name,
                               m->name);
            if (m->form == BZ_FORM_EXTENT && (__builtin_mul_overflow(product, v[i], &product) || product > most))
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is too large", bz_kinds[p->kind]->name, m->name);
        }
        if (m->form == BZ_FORM_EXTENT && !m->optional && !bz_member_given(p, m))
            return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' has no dimensions", bz_kinds[p->kind]->name, m->name);
    }
    return 0;
}

int bz_problem_check_window(const bz_problem *p, const int64_t *x, const int64_t *kernel, const int64_t *stride,
                            const int64_t *pad, const int64_t *dilation, bz_error *err)
{
    int n = bz_extent_rank(x) - 2;
    if (n < 1 || n > BZ_PROBLEM_SPATIAL)
        return bz_problem_refuse(p, "x has a batch, channels and one to three spatial dimensions", err);
    for (int i = 0; i < n; i++) {
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
            return bz_problem_refuse(p, "kernel, stride and dilation are at least 1", err);
        if (kernel[i] > 1 << 24 || x[2 + i] > 1 << 24)
            return bz_problem_refuse(p, "a spatial dimension is too large", err);
        if (p->kind == BZ_PROBLEM_DECONV)
            continue;
        if (x[2 + i] + pad[i] + pad[n + i] < (kernel[i] - 1) * dilation[i] + 1)
            return bz_problem_refuse(p, "the kernel is larger than the padded input", err);
    }
    return 0;
}

bool bz_extent_broadcasts(const int64_t *a, const int64_t *b, int skip)
{
    for (int i = bz_extent_rank(a) - 1 - skip, j = bz_extent_rank(b) - 1 - skip; i >= 0 && j >= 0; i--, j--)
        if (a[i] != b[j] && a[i] != 1 && b[j] != 1)
            return false;
    return true;
}

/* Results that do not fit in the bound that check_numbers set for inputs: broadcasts, deconvolutions. */
static int check_result(const bz_problem *p, bz_error *err)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    if (list[n - 1].count > (int64_t)1 << 40)
        return bz_problem_refuse(p, "the result is too large", err);
    for (int i = 0; i < n; i++) /* of a gradient: what the forward pass gave */
        if (list[i].count > (int64_t)1 << 40)
            return bz_problem_refuse(p, "an operand is too large", err);
    return 0;
}

static int check_post(const bz_problem *p, int i, bz_error *err)
{
    const bz_post *post = &p->post[i];
    if (!bz_problem_has(p, BZ_TRAIT_POST))
        return bz_problem_refuse(p, "takes no post-operations", err);
    if (!bz_fn_is_post(post->fn))
        return bz_problem_refuse(p, "a function that is no post-operation", err);
    if (post->fn == BZ_FN_BIAS && (i || !bz_problem_has(p, BZ_TRAIT_PRODUCT)))
        return bz_problem_refuse(p, "a bias comes first, and only after a product", err);
    if (post->fn == BZ_FN_KEEP && !bz_fn_is_activation(post[1].fn))
        return bz_problem_refuse(p, "what is kept is what a function of one value takes", err);
    if (post->fn == BZ_FN_KEEP && (!bz_dtype_is_float(p->dtype_y) || bz_dtype_bits(p->dtype_y) < 16))
        return bz_problem_refuse(p, "what is kept are floats of 16 bits and more", err);
    for (int k = 0; k < i; k++)
        if (post->fn == BZ_FN_KEEP && p->post[k].fn == BZ_FN_KEEP)
            return bz_problem_refuse(p, "one result is kept", err);
    if (!isfinite(post->alpha) || !isfinite(post->beta))
        return bz_problem_refuse(p, "a post-operation's parameter is not finite", err);
    return 0;
}

/* Members that change nothing have their usual value, so that equal problems have one text. */
static void leave_out_unused(bz_problem *p)
{
    if (p->kind == BZ_PROBLEM_POOL && p->pool.mode != BZ_POOL_MAX)
        p->pool.training = false;
    if (p->kind != BZ_PROBLEM_UPDATE)
        return;
    p->update.nesterov &= p->update.rule == BZ_RULE_MOMENTUM;
    p->update.alpha = p->update.rule == BZ_RULE_SGD ? 0.9f : p->update.alpha;
    p->update.beta = p->update.rule < BZ_RULE_ADAM ? 0.999f : p->update.beta;
}

int bz_problem_normalize(bz_problem *p, bz_error *err)
{
    if (p->kind <= BZ_PROBLEM_NONE || p->kind >= BZ_PROBLEM_N_KINDS)
        return bz_fail(err, BZ_BAD_INPUT, "problem: no kind");
    if (p->dtype == BZ_F4E2M1 ? p->kind != BZ_PROBLEM_GEMM : !p->dtype || bz_dtype_bits(p->dtype) < 8)
        return bz_problem_refuse(p, "the data type has no elements of whole bytes", err);
    p->dtype_w = p->dtype_w ? p->dtype_w : p->dtype;
    p->dtype_y = p->dtype_y ? p->dtype_y : p->dtype;
    if (!bz_dtype_bits(p->dtype_w) || !bz_dtype_bits(p->dtype_y))
        return bz_problem_refuse(p, "its weights or results are no numbers", err);
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++) {
        if (m->form == BZ_FORM_NAME) {
            unsigned n = 0;
            while (m->names[n])
                n++;
            if (BZ_CONST_FIELD(unsigned, p, m) >= n)
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is out of range", bz_kinds[p->kind]->name,
                               m->name);
        }
        bool all = m->form == BZ_FORM_SPATIAL || m->form == BZ_FORM_INT; /* a 0 among these stands for the usual 1 */
        for (int i = 0; all && m->usual == 1 && i < bz_member_length(p, m) && i < BZ_PROBLEM_SPATIAL; i++)
            if (!bz_member_numbers(p, m)[i])
                ((int64_t *)(void *)((char *)p + m->at))[i] = 1;
        if (m->form == BZ_FORM_REAL && m->usual != 0 && !isnan(m->usual) && BZ_CONST_FIELD(float, p, m) == 0)
            BZ_FIELD(float, p, m) = (float)m->usual;
        if (m->form == BZ_FORM_REAL && !isfinite(BZ_CONST_FIELD(float, p, m)))
            return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is not finite", bz_kinds[p->kind]->name, m->name);
        if (m->form == BZ_FORM_FN && !isnan(m->usual) && !BZ_CONST_FIELD(bz_fn, p, m))
            BZ_FIELD(bz_fn, p, m) = (bz_fn)m->usual;
    }
    if (p->kind == BZ_PROBLEM_ACTIVATION || p->kind == BZ_PROBLEM_ACTIVATION_GRAD)
        bz_fn_normalize(p->activation.fn, &p->activation.alpha, &p->activation.beta);
    leave_out_unused(p);
    for (int i = 0; i < BZ_PROBLEM_POST && p->post[i].fn; i++) {
        if (check_post(p, i, err))
            return -1;
        bz_fn_normalize(p->post[i].fn, &p->post[i].alpha, &p->post[i].beta);
    }
    if (check_numbers(p, err) || (bz_kinds[p->kind]->check && bz_kinds[p->kind]->check(p, err)))
        return -1;
    return check_result(p, err);
}
