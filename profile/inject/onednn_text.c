/* Primitives in the words of oneDNN's own log. */
#include "profile/inject/onednn.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char data[4096];
    size_t len;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->data + t->len, sizeof t->data - t->len, fmt, args);
    va_end(args);
    t->len += n < 0 ? 0 : (size_t)n < sizeof t->data - t->len ? (size_t)n : sizeof t->data - t->len - 1;
}

/* What is only known when it runs is a star. */
static void put_number(text *t, int64_t v)
{
    if (v == INT64_MIN)
        put(t, "*");
    else
        put(t, "%lld", (long long)v);
}

static void put_list(text *t, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++) {
        put(t, "%s", i ? "x" : "");
        put_number(t, v[i]);
    }
}

static void count_blocks(const bzi_tensor *m, int64_t block[BZI_RANK])
{
    for (int d = 0; d < m->rank; d++)
        block[d] = 1;
    for (int i = 0; i < m->n_blocks; i++)
        if (m->indexes[i] >= 0 && m->indexes[i] < m->rank && m->blocks[i] > 0)
            block[m->indexes[i]] *= m->blocks[i];
}

/* Whether dimension p of a tensor lies outside of q. A stride of 0 is outside of all others in version 3. */
static bool is_outer(const bzi_tensor *m, const int64_t *block, int p, int q)
{
    uint64_t shift = bzi_dnn.major == 3;
    uint64_t at_p = (uint64_t)m->strides[p] - shift, at_q = (uint64_t)m->strides[q] - shift;
    return at_p != at_q ? at_p > at_q : m->padded[p] / block[p] >= m->padded[q] / block[q];
}

/* "abcd", "Acdb16a": dimensions from the outermost in, capital where a part of them is blocked inside. */
static void put_tag(text *t, const bzi_tensor *m, const int64_t *block)
{
    int order[BZI_RANK];
    for (int d = 0; d < m->rank; d++) {
        order[d] = d;
        for (int k = d; k > 0 && !is_outer(m, block, order[k - 1], order[k]); k--) {
            int other = order[k];
            order[k] = order[k - 1];
            order[k - 1] = other;
        }
    }
    for (int i = 0; i < m->rank; i++)
        put(t, "%c", (block[order[i]] == 1 ? 'a' : 'A') + order[i]);
    for (int i = 0; i < m->n_blocks; i++)
        put(t, "%lld%c", (long long)m->blocks[i], 'a' + (int)m->indexes[i]);
}

static bool is_dense(const bzi_tensor *m, const int64_t *block)
{
    double size = 1, elements = 1, blocks = 1;
    for (int i = 0; i < m->n_blocks; i++)
        blocks *= (double)m->blocks[i];
    for (int d = 0; d < m->rank; d++) {
        int64_t steps = m->padded[d] / block[d];
        double reach = (double)steps * (double)m->strides[d];
        size = reach > size ? reach : size;
        elements *= (double)m->padded[d];
    }
    return (size == 1 && m->n_blocks ? blocks : size) == elements;
}

/* " src=f32::blocked:abcd:f0", in version 3 with the strides of what has gaps before the last colon */
static void put_tensor(text *t, const bzi_tensor *m)
{
    bool v3 = bzi_dnn.major == 3, padded = false;
    int64_t block[BZI_RANK];
    put(t, " %s=", m->name);
    if (!m->rank) {
        put(t, "%s", v3 ? "undef::undef:::" : "undef::undef::f0");
        return;
    }
    for (int d = 0; d < m->rank; d++)
        padded |= m->dims[d] != m->padded[d];
    put(t, "%s:%s%s:", bzi_dnn.type_name(m->type), padded ? "p" : "", m->moved ? "0" : "");
    if (m->form == BZI_FORM_BLOCKED) {
        count_blocks(m, block);
        put(t, "blocked:");
        put_tag(t, m, block);
        put(t, "%s", v3 ? ":" : "");
        if (v3 && !is_dense(m, block))
            put_list(t, m->strides, m->rank);
    } else {
        static const char *const FORMS[] = {"undef", "any:any", "blocked", "wino", "rnn_packed", "opaque"};
        put(t, "%s:%s", FORMS[m->form], v3 ? ":" : "");
    }
    put(t, ":f%llu", (unsigned long long)m->extra);
}

static const bzi_tensor *find(const bzi_facts *f, const char *name)
{
    for (int i = 0; i < f->n_tensors; i++)
        if (!strcmp(f->tensor[i].name, name) && f->tensor[i].rank)
            return &f->tensor[i];
    return NULL;
}

static int mask_of(const bzi_tensor *m)
{
    int mask = 0;
    for (int d = 0; d < m->rank; d++)
        mask |= m->dims[d] != 1 ? 1 << d : 0;
    return mask;
}

static void put_post(text *t, const bzi_post *p)
{
    const char *kind = bzi_dnn.kind_name(p->kind), *type = p->type ? bzi_dnn.type_name(p->type) : NULL;
    if (!strcmp(kind, "eltwise")) {
        put(t, "%s", bzi_dnn.alg_name(p->alg));
        bool scaled = p->scale < 1 || p->scale > 1, second = p->beta < 0 || p->beta > 0 || scaled;
        if (p->alpha < 0 || p->alpha > 0 || second)
            put(t, ":%g", (double)p->alpha);
        if (second)
            put(t, ":%g", (double)p->beta);
        if (scaled)
            put(t, ":%g", (double)p->scale);
    } else if (!strcmp(kind, "sum")) {
        bool more = type || p->zero;
        put(t, "sum");
        if (p->scale < 1 || p->scale > 1 || more)
            put(t, ":%g", (double)p->scale);
        if (more)
            put(t, ":%d", (int)p->zero);
        if (type)
            put(t, ":%s", type);
    } else if (!strcmp(kind, "binary")) {
        put(t, "%s", bzi_dnn.alg_name(p->alg));
        if (p->other.rank)
            put(t, ":%s:%d", bzi_dnn.type_name(p->other.type), mask_of(&p->other));
        int64_t block[BZI_RANK], many = 0;
        for (int d = 0; d < p->other.rank; d++)
            many += p->other.dims[d] != 1;
        if (p->other.form == BZI_FORM_ANY && p->other.rank)
            put(t, ":any");
        if (p->other.form == BZI_FORM_BLOCKED && many > 1) {
            count_blocks(&p->other, block);
            put(t, ":");
            put_tag(t, &p->other, block);
        }
    } else if (!strcmp(kind, "prelu")) {
        put(t, "prelu:%d", p->mask);
    } else {
        put(t, "%s", !strcmp(kind, "convolution") ? "dw" : kind);
    }
}

/* The log has spaces between them; in a parameter those are semicolons. */
static void put_attributes(text *t, const bzi_facts *f)
{
    const char *between = " attr=";
    if (f->scratchpad) {
        put(t, "%sattr-scratchpad:user", between);
        between = ";";
    }
    if (f->math && bzi_dnn.math_name) {
        put(t, "%sattr-fpmath%s:%s", between, bzi_dnn.major == 2 ? "_mode" : "", bzi_dnn.math_name(f->math));
        between = ";";
    }
    if (f->n_scales && (f->scale_mask || f->scale < 1 || f->scale > 1 || isnan(f->scale))) {
        put(t, "%sattr-oscale:%d", between, f->scale_mask);
        if (isnan(f->scale)) /* comes when it runs */
            put(t, ":*");
        else if (!f->scale_mask)
            put(t, ":%f", (double)f->scale);
        between = ";";
    }
    for (int i = 0; i < f->n_posts; i++) {
        put(t, "%s%s", i ? "+" : between, i ? "" : "attr-post-ops:");
        put_post(t, &f->post[i]);
    }
}

/* The log's letters, by bits of the version's flags. */
static void put_flags(text *t, unsigned flags)
{
    const char *letters = bzi_dnn.major == 2 ? "GSRCH" : "GCHRA";
    for (int i = 0; letters[i]; i++)
        if (flags & 1u << i)
            put(t, "%c", letters[i]);
}

/* Version 2 does not tell the axis of a concat. It is the axis along which the result is longer than its first part. */
static int axis_of(const bzi_facts *f)
{
    const bzi_tensor *x = find(f, "src"), *y = find(f, "dst");
    int axis = f->axis;
    if (axis < 0 && !strcmp(f->kind, "concat") && x && y && x->rank == y->rank)
        for (int d = 0; d < x->rank; d++)
            axis = x->dims[d] != y->dims[d] ? d : axis;
    return axis;
}

static void put_auxiliary(text *t, const bzi_facts *f)
{
    bool norm = strstr(f->kind, "normalization") != NULL;
    if (norm) {
        put(t, " aux=flags:");
        put_flags(t, f->flags);
    } else if (!strcmp(f->kind, "rnn")) {
        put(t, " aux=alg:%s", bzi_dnn.alg_name(f->cell));
        if (bzi_dnn.direction_name)
            put(t, ";direction:%s", bzi_dnn.direction_name(f->direction));
        put(t, ";activation:%s", bzi_dnn.alg_name(f->activation));
        if (bzi_dnn.major == 3)
            put(t, ";flags:%s", f->flags & 1 ? "O" : "");
    } else if (f->alg) {
        put(t, " aux=alg:%s", bzi_dnn.alg_name(f->alg));
    }
    if (!strcmp(f->kind, "eltwise"))
        put(t, ";alpha:%g;beta:%g", (double)f->alpha, (double)f->beta);
    else if (!strcmp(f->kind, "reduction"))
        put(t, ";p:%g;eps:%g", (double)f->p, (double)f->epsilon);
    else if (axis_of(f) >= 0)
        put(t, "%saxis:%d", f->alg ? ";" : " aux=", axis_of(f));
    if (!strcmp(f->kind, "shuffle"))
        put(t, ";group:%lld", (long long)f->group);
}

static void put_size(text *t, const char *what, char axis, int64_t v)
{
    put(t, "%s%c", what, axis);
    put_number(t, v);
}

/* "_ih224oh112kh7sh2dh0ph3" for each dimension of space */
static void put_windows(text *t, const bzi_facts *f, const bzi_tensor *src, const bzi_tensor *dst,
                        const int64_t *kernel)
{
    int n = src->rank - 2;
    for (int i = 0; i < n && n <= 3; i++) {
        char axis = "dhw"[3 - n + i];
        put(t, "_");
        put_size(t, "i", axis, src->dims[2 + i]);
        put_size(t, "o", axis, dst->dims[2 + i]);
        if (!kernel)
            continue;
        put_size(t, "k", axis, kernel[i]);
        put_size(t, "s", axis, f->strides ? f->strides[i] : 1);
        put_size(t, "d", axis, f->dilations ? f->dilations[i] : 0);
        put_size(t, "p", axis, f->padding ? f->padding[i] : 0);
    }
}

/* "mb1ic16ih32iw32" */
static void put_sizes(text *t, const bzi_tensor *m)
{
    if (m->rank < 2 || m->rank > 5) {
        put(t, "%s", m->rank == 1 ? "x" : "");
        put_list(t, m->dims, m->rank);
        return;
    }
    put(t, "mb%lldic%lld", (long long)m->dims[0], (long long)m->dims[1]);
    for (int d = 2; d < m->rank; d++)
        put_size(t, "i", "dhw"[5 - m->rank + d - 2], m -> dims[d]);
}

static void put_recurrent(text *t, const bzi_facts *f)
{
    const bzi_tensor *x = find(f, "src_layer"), *w = find(f, "wei_layer"), *r = find(f, "wei_iter"),
                     *y = find(f, "dst_layer");
    if (!x || !w || !r || !y || x->rank != 3 || w->rank != 5 || r->rank != 5)
        return;
    const bzi_tensor *projection = find(f, "wei_proj");
    int64_t inner = projection ? projection->dims[3] : w->dims[4];
    put(t, "l%lldt%lldmb%lldsic%lldslc%llddhc%llddic%lld", (long long)w->dims[0], (long long)x->dims[0],
        (long long)x->dims[1], (long long)r->dims[2], (long long)w->dims[2], (long long)w->dims[4], (long long)inner);
}

static void put_convolution(text *t, const bzi_facts *f, const bzi_tensor *src, const bzi_tensor *wei,
                            const bzi_tensor *dst)
{
    char groups[32] = "";
    if (wei->rank == src->rank + 1)
        snprintf(groups, sizeof groups, "g%lld", (long long)wei->dims[0]);
    put(t, "%smb%lld_ic%lldoc%lld", groups, (long long)src->dims[0], (long long)src->dims[1], (long long)dst->dims[1]);
    put_windows(t, f, src, dst, wei->dims + 2 + (*groups != 0));
}

/* Dimensions of the operands, with colons between; of most kinds the first one's only. */
static void put_shapes(text *t, const bzi_facts *f)
{
    static const char OPERANDS[] = " binary concat matmul prelu ", RESULTS[] = " reduction ", RESULTS_2[] = " matmul ";
    size_t n = strlen(f->kind);
    const char *at = strstr(OPERANDS, f->kind);
    bool operands = at && at[n] == ' ';
    bool result = strstr(RESULTS, f->kind) || (bzi_dnn.major == 2 && strstr(RESULTS_2, f->kind));
    for (int i = 0, told = 0; i < f->n_tensors; i++) {
        const bzi_tensor *m = &f->tensor[i];
        bool more = !strcmp(m->name, "dst") ? result : operands && strcmp(m->name, "bia") != 0 && *m->name != 'd';
        if (told && !more)
            continue;
        put(t, "%s", told++ ? ":" : "");
        put_list(t, m->dims, m->rank);
    }
}

static void put_problem(text *t, const bzi_facts *f)
{
    const bzi_tensor *src = find(f, "src"), *wei = find(f, "wei"), *dst = find(f, "dst");
    const bzi_tensor *first = src ? src : find(f, "data");
    bool window = strstr(f->kind, "pooling") || !strcmp(f->kind, "resampling");
    put(t, " problem=");
    if (strstr(f->kind, "convolution") && src && wei && dst && wei->rank >= src->rank) {
        put_convolution(t, f, src, wei, dst);
    } else if (window && src && dst) {
        put(t, "mb%lldic%lld", (long long)src->dims[0], (long long)src->dims[1]);
        put_windows(t, f, src, dst, f->kernel);
    } else if (!strcmp(f->kind, "inner_product") && src && dst) {
        put_sizes(t, src);
        put(t, "oc%lld", (long long)dst->dims[1]);
    } else if ((strstr(f->kind, "batch_norm") || strstr(f->kind, "group_norm")) && first) {
        if (f->group)
            put(t, "g%lld", (long long)f->group);
        put_sizes(t, first);
    } else if (!strcmp(f->kind, "lrn") && first) {
        put_sizes(t, first);
        put(t, "ls%lldbeta%g", (long long)f->local, (double)f->beta);
    } else if (!strcmp(f->kind, "rnn")) {
        put_recurrent(t, f);
    } else if (!strcmp(f->kind, "sum") && dst) {
        put_list(t, dst->dims, dst->rank);
    } else {
        put_shapes(t, f);
    }
}

uint32_t bzi_onednn_detail(const bzi_facts *f, uint64_t hash)
{
    text t = {.len = 0};
    put(&t, "engine=cpu prop=%s", f->prop ? bzi_dnn.prop_name(f->prop) : "undef");
    for (int i = 0; i < f->n_tensors; i++) {
        put_tensor(&t, &f->tensor[i]);
        bool product = !strcmp(f->kind, "matmul") || !strcmp(f->kind, "gemm");
        if (product && !strcmp(f->tensor[i].name, "bia"))
            put(&t, "_mask%d", mask_of(&f->tensor[i]));
    }
    put_attributes(&t, f);
    put_auxiliary(&t, f);
    put_problem(&t, f);
    return bzi_string(hash, t.data, t.len);
}

static uint64_t hash_list(uint64_t h, const int64_t *v, int n)
{
    return v ? bzi_hash(h, v, (size_t)n * sizeof *v) : h * 31;
}

static uint64_t hash_tensor(uint64_t h, const bzi_tensor *m)
{
    uint64_t small[] = {(uint64_t)m->rank, (uint64_t)m->type, (uint64_t)m->form, m->moved, m->extra};
    h = bzi_hash(h, small, sizeof small);
    h = hash_list(h, m->dims, m->rank);
    h = hash_list(h, m->padded, m->rank);
    h = hash_list(h, m->strides, m->rank);
    h = hash_list(h, m->blocks, m->n_blocks);
    return hash_list(h, m->indexes, m->n_blocks);
}

uint64_t bzi_onednn_hash(const bzi_facts *f)
{
    const float real[] = {f->alpha, f->beta, f->p, f->epsilon, f->scale};
    const int64_t whole[] = {f->prop, f->alg,        f->cell,       f->direction, f->activation, f->axis,
                             f->math, f->scratchpad, f->scale_mask, f->flags,     f->local,      f->group};
    uint64_t h = bzi_hash(5, f->implementation, strlen(f->implementation));
    h = bzi_hash(h, f->kind, strlen(f->kind));
    h = bzi_hash(h, real, sizeof real);
    h = bzi_hash(h, whole, sizeof whole);
    int space = f->n_tensors && f->tensor[0].rank > 2 ? f->tensor[0].rank - 2 : 0;
    h = hash_list(h, f->strides, space);
    h = hash_list(h, f->dilations, space);
    h = hash_list(h, f->padding, space);
    h = hash_list(h, f->kernel, space);
    for (int i = 0; i < f->n_tensors; i++)
        h = hash_tensor(h, &f->tensor[i]);
    for (int i = 0; i < f->n_posts; i++) {
        const bzi_post *p = &f->post[i];
        const float numbers[] = {p->scale, p->alpha, p->beta};
        const int64_t kinds[] = {p->kind, p->alg, p->type, p->mask, p->zero};
        h = bzi_hash(h, numbers, sizeof numbers);
        h = bzi_hash(h, kinds, sizeof kinds);
        h = hash_tensor(h, &p->other);
    }
    return h;
}
