/* What a primitive is: its descriptor asked for everything that oneDNN's log would tell. */
#include "profile/inject/onednn.h"

#include <string.h>

/* Numbers of dnnl_query_t. These are the same in both versions, those below are version 3's. */
enum {
    KIND = 2,
    IMPLEMENTATION = 8,
    PROP = 11,
    SOURCE = 129, /* of each that of its gradient is one more */
    WEIGHTS = 131,
    RESULT = 133,
    WORKSPACE = 135,
    ARGUMENT = 255,
};
enum { POST_ARGUMENT = 16384, POST_OTHER = 2 }; /* DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE, DNNL_ARG_SRC_1 */
enum { RANK = 256, DIMS, TYPE, OFFSET, PADDED_DIMS, PADDED_OFFSETS, FORMAT, N_BLOCKS, BLOCKS, BLOCK_INDEXES };
enum {
    STRIDES = 14,
    DILATIONS,
    PADDING,
    EPSILON = 18,
    FLAGS,
    ALGORITHM,
    ALPHA,
    BETA,
    AXIS,
    LOCAL_SIZE,
    POWER = 26,
    CELL = 28,
    DIRECTION,
    ACTIVATION,
    KERNEL,
    GROUP_SIZE
};

/* Which tensors the log tells of a kind, by its names. */
enum {
    GRADIENT = 1, /* instead, where a primitive of training has no other */
    ABSENT = 2,   /* is told where it is not there, too */
    ABSENT_2 = 4, /* so does version 2 */
    EACH = 8,     /* all of its number */
    SCALED = 16,  /* where the normalization has these, by version 3's flags */
    SHIFTED = 32,
};
typedef struct {
    const char *name;
    int query, index, flags;
} told;
enum { TOLD = 9 };
static const struct {
    int major; /* 0: in both versions */
    const char *kinds;
    told told[TOLD];
} KINDS[] = {
    {0,
     " convolution deconvolution inner_product ",
     {{"src", SOURCE, 0, GRADIENT},
      {"wei", WEIGHTS, 0, GRADIENT},
      {"bia", WEIGHTS, 1, GRADIENT | ABSENT},
      {"dst", RESULT, 0, GRADIENT}}},
    {0,
     " matmul gemm ",
     {{"src", SOURCE, 0, 0}, {"wei", WEIGHTS, 0, 0}, {"bia", WEIGHTS, 1, 0}, {"dst", RESULT, 0, 0}}},
    {0,
     " eltwise lrn batch_normalization shuffle ",
     {{"data", SOURCE, 0, GRADIENT}, {"diff", SOURCE + 1, 0, ABSENT_2}}},
    {0,
     " prelu ",
     {{"data", SOURCE, 0, 0},
      {"wei", WEIGHTS, 0, 0},
      {"diff", SOURCE + 1, 0, ABSENT_2},
      {"diff_wei", WEIGHTS + 1, 0, ABSENT_2}}},
    {0,
     " pooling pooling_v2 ",
     {{"src", SOURCE, 0, GRADIENT}, {"dst", RESULT, 0, GRADIENT}, {"ws", WORKSPACE, 0, ABSENT_2}}},
    {0,
     " softmax logsoftmax softmax_v2 ",
     {{"src", SOURCE, 0, GRADIENT}, {"dst", RESULT, 0, 0}, {"diff_dst", RESULT + 1, 0, 0}}},
    {3,
     " layer_normalization ",
     {{"src", SOURCE, 0, 0},
      {"dst", RESULT, 0, GRADIENT},
      {"stats", SOURCE, 1, ABSENT},
      {"scale", WEIGHTS, 0, SCALED},
      {"shift", WEIGHTS, 0, SHIFTED},
      {"diff_src", SOURCE + 1, 0, 0}}},
    {2,
     " layer_normalization ",
     {{"data", SOURCE, 0, 0}, {"stats", SOURCE, 1, ABSENT}, {"diff", SOURCE + 1, 0, ABSENT}}},
    {0, " group_normalization ", {{"src", SOURCE, 0, 0}, {"dst", RESULT, 0, GRADIENT}, {"diff_src", SOURCE + 1, 0, 0}}},
    {0, " binary concat sum ", {{"src", SOURCE, 0, EACH}, {"dst", RESULT, 0, 0}}},
    {0, " reorder resampling reduction ", {{"src", SOURCE, 0, GRADIENT}, {"dst", RESULT, 0, GRADIENT}}},
    {0,
     " rnn ",
     {{"src_layer", SOURCE, 0, 0},
      {"src_iter", SOURCE, 1, 0},
      {"wei_layer", WEIGHTS, 0, 0},
      {"wei_iter", WEIGHTS, 1, 0},
      {"", WEIGHTS, 2, 0},
      {"", WEIGHTS, 3, 0},
      {"", WEIGHTS, 4, 0},
      {"dst_layer", RESULT, 0, 0},
      {"dst_iter", RESULT, 1, 0}}},
};

static bool tensor_of_3(const void *md, bzi_tensor *out)
{
    int form = BZI_FORM_NONE;
    int64_t offset = 0;
    const struct {
        int what;
        void *to;
    } ASKED[] = {
        {RANK, &out->rank},
        {TYPE, &out->type},
        {DIMS, (void *)&out->dims},
        {PADDED_DIMS, (void *)&out->padded},
        {FORMAT, &form},
        {OFFSET, &offset},
        {N_BLOCKS, &out->n_blocks},
        {STRIDES, (void *)&out->strides},
        {BLOCKS, (void *)&out->blocks},
        {BLOCK_INDEXES, (void *)&out->indexes},
    };
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++)
        bzi_dnn.md_query(md, ASKED[i].what, ASKED[i].to);
    out->form = form >= 0 && form <= BZI_FORM_BLOCKED ? (bzi_form)form : BZI_FORM_OTHER;
    out->moved = offset != 0;
    bool whole = out->dims && out->padded && out->rank > 0 && out->rank <= BZI_RANK;
    if (out->form == BZI_FORM_BLOCKED)
        whole = whole && out->strides && out->n_blocks >= 0 && out->n_blocks <= BZI_RANK &&
                (!out->n_blocks || (out->blocks && out->indexes));
    return whole;
}

static bool tensor_of(const void *md, bzi_tensor *out)
{
    return md && (bzi_dnn.major == 2 ? bzi_onednn2_tensor(md, out) : tensor_of_3(md, out));
}

/* False where the primitive has no such tensor. */
static bool ask_tensor(const void *pd, int query, int index, bzi_tensor *out)
{
    *out = (bzi_tensor){.name = ""};
    bool there = tensor_of(bzi_dnn.query_md(pd, query, index), out) && out->rank;
    if (!there)
        *out = (bzi_tensor){.name = ""};
    return there;
}

/* What comes behind the weights of a recurrent network is told apart by its third dimension. */
static const char *name_weights(const bzi_facts *f, const bzi_tensor *t)
{
    const bzi_tensor *layer = f->tensor;
    while (layer < f->tensor + f->n_tensors && strcmp(layer->name, "wei_layer") != 0)
        layer++;
    bool known = layer < f->tensor + f->n_tensors && layer->rank > 3 && t->rank > 2;
    int64_t gates = known ? layer->dims[3] : 0, n = known ? t->dims[2] : 0;
    bool bias = n == gates || (n == gates + 1 && gates == 3); /* a GRU that resets behind its product has one more */
    return bias ? "bias" : n == 3 ? "wei_peephole" : "wei_proj";
}

static void add_tensor(const void *pd, const told *t, bzi_facts *f)
{
    enum { USE_SCALE = 2, USE_SHIFT = 4 };
    if ((t->flags & SCALED && !(f->flags & USE_SCALE)) || (t->flags & SHIFTED && !(f->flags & USE_SHIFT)))
        return;
    for (int index = t->index; f->n_tensors < BZI_TENSORS; index++) {
        bzi_tensor *out = &f->tensor[f->n_tensors];
        bool there =
            ask_tensor(pd, t->query, index, out) || (t->flags & GRADIENT && ask_tensor(pd, t->query + 1, index, out));
        if (!there && !(t->flags & ABSENT) && !(t->flags & ABSENT_2 && bzi_dnn.major == 2))
            return;
        out->name = *t->name ? t->name : name_weights(f, out);
        f->n_tensors++;
        if (!(t->flags & EACH))
            return;
    }
}

static void add_tensors(const void *pd, bzi_facts *f)
{
    size_t n = strlen(f->kind);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *at = strstr(KINDS[i].kinds, f->kind);
        if (!at || at[-1] != ' ' || at[n] != ' ' || (KINDS[i].major && KINDS[i].major != bzi_dnn.major))
            continue;
        for (const told *t = KINDS[i].told; t < KINDS[i].told + TOLD && t->name; t++)
            add_tensor(pd, t, f);
        return;
    }
    add_tensor(pd, &(told){"src", SOURCE, 0, GRADIENT}, f);
    add_tensor(pd, &(told){"dst", RESULT, 0, GRADIENT}, f);
}

static void parameters_of_3(const void *pd, bzi_facts *f)
{
    const struct {
        int what;
        void *to;
    } ASKED[] = {
        {STRIDES, (void *)&f->strides},
        {DILATIONS, (void *)&f->dilations},
        {PADDING, (void *)&f->padding},
        {KERNEL, (void *)&f->kernel},
        {EPSILON, &f->epsilon},
        {FLAGS, &f->flags},
        {ALGORITHM, &f->alg},
        {ALPHA, &f->alpha},
        {BETA, &f->beta},
        {AXIS, &f->axis},
        {LOCAL_SIZE, &f->local},
        {POWER, &f->p},
        {CELL, &f->cell},
        {DIRECTION, &f->direction},
        {ACTIVATION, &f->activation},
        {GROUP_SIZE, &f->group},
    };
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++)
        bzi_dnn.query(pd, ASKED[i].what, 0, ASKED[i].to);
}

static void add_post(const void *pd, const void *ops, int i, bzi_facts *f)
{
    bzi_post *p = &f->post[f->n_posts++];
    const char *kind;
    *p = (bzi_post){.kind = bzi_dnn.post_kind(ops, i), .scale = 1};
    kind = bzi_dnn.kind_name(p->kind);
    if (!strcmp(kind, "eltwise") && bzi_dnn.major == 2) {
        bzi_dnn.post_eltwise2(ops, i, &p->scale, &p->alg, &p->alpha, &p->beta);
    } else if (!strcmp(kind, "eltwise")) {
        bzi_dnn.post_eltwise3(ops, i, &p->alg, &p->alpha, &p->beta);
    } else if (!strcmp(kind, "sum") && (bzi_dnn.major == 3 || bzi_dnn.post_sum2)) {
        (bzi_dnn.major == 2 ? bzi_dnn.post_sum2 : bzi_dnn.post_sum3)(ops, i, &p->scale, &p->zero, &p->type);
    } else if (!strcmp(kind, "binary") && bzi_dnn.post_binary) {
        const void *md = NULL;
        bool there = !bzi_dnn.post_binary(ops, i, &p->alg, &md) && tensor_of(md, &p->other);
        if (there && p->other.form == BZI_FORM_ANY && bzi_dnn.major == 2) /* the log has what it became */
            there = ask_tensor(pd, ARGUMENT, POST_ARGUMENT * (i + 1) | POST_OTHER, &p->other);
        if (!there)
            p->other = (bzi_tensor){0};
    } else if (!strcmp(kind, "prelu") && bzi_dnn.post_prelu) {
        bzi_dnn.post_prelu(ops, i, &p->mask);
    }
}

static void add_attributes(const void *pd, bzi_facts *f)
{
    const void *attr = NULL, *ops = NULL;
    const float *scales = NULL;
    if (bzi_dnn.get_attr(pd, &attr) || !attr)
        return;
    bzi_dnn.scratchpad(attr, &f->scratchpad);
    if (bzi_dnn.math)
        bzi_dnn.math(attr, &f->math);
    if (bzi_dnn.major == 2 && bzi_dnn.scales && !bzi_dnn.scales(attr, &f->n_scales, &f->scale_mask, &scales) && scales)
        f->scale = scales[0];
    if (bzi_dnn.post_ops(attr, &ops) || !ops)
        return;
    for (int i = 0, n = bzi_dnn.post_len(ops); i < n && i < BZI_POSTS; i++)
        add_post(pd, ops, i, f);
}

void bzi_onednn_gather(const void *pd, bzi_facts *f)
{
    int kind = 0;
    memset(f, 0, offsetof(bzi_facts, tensor));
    f->n_tensors = f->n_posts = 0;
    f->implementation = "?";
    f->axis = -1;
    f->scale = 1;
    bzi_dnn.query(pd, KIND, 0, &kind);
    bzi_dnn.query(pd, IMPLEMENTATION, 0, (void *)&f->implementation);
    bzi_dnn.query(pd, PROP, 0, &f->prop);
    f->kind = bzi_dnn.kind_name(kind);
    if (bzi_dnn.major == 2)
        bzi_onednn2_parameters(pd, f);
    else
        parameters_of_3(pd, f);
    add_tensors(pd, f);
    add_attributes(pd, f);
}
