/* Two sequences of work: what the typical iteration of a recording computed, and what the layers of a model do. Only convolutions,
 * products, pools, softmaxes and recurrent layers count: what else there is (element-wise work, normalization) is fused and folded by
 * programs as they like, and says nothing. */
#include "explain/align.h"
#include "explain/constants.h"

#include <stdlib.h>
#include <string.h>

static const char *const NAMES[BZ_WORK_SORTS] = {"convolutions", "matrix products", "pools", "softmaxes",
                                                 "recurrent layers"};

static bz_align_sort sort_of(int v)
{
    return v == BZ_WORK_CONV_OR_PRODUCT ? BZ_WORK_CONV : (bz_align_sort)v;
}

/* `parameters`: NULL where they are not known. */
static void add_known(bz_align_work *s, int v, const char *parameters)
{
    if (s->n == LONGEST_SEQUENCE)
        return;
    BZ_ROOM(s->again, s->n);
    BZ_ROOM(s->symbol, s->n);
    s->again[s->n] = s->n && s->symbol[s->n - 1] == v && s->last && parameters && !strcmp(s->last, parameters);
    s->symbol[s->n++] = (unsigned char)v;
    s->last = parameters;
    s->count[sort_of(v)]++;
    s->told += parameters != NULL;
}

static void add(bz_align_work *s, bz_align_sort v)
{
    add_known(s, (int)v, NULL);
}

/* Kinds of layers, as models and as the rules of alignments have them. A kind that is not here says nothing. */
static const struct {
    const char *kinds;
    bz_align_sort sort;
} KINDS[] = {
    {"conv deconv convtranspose", BZ_WORK_CONV},
    {"product gemm matmul", BZ_WORK_PRODUCT},
    {"pool maxpool avgpool globalavgpool globalmaxpool", BZ_WORK_POOL},
    {"softmax", BZ_WORK_SOFTMAX},
    {"lstm gru rnn", BZ_WORK_RECURRENT},
};

static int symbol_of_kind(const char *kind)
{
    char first[32];
    if (!kind || !bz_word_next(&kind, first, sizeof first)) /* "product bias": what comes behind it comes with it */
        return -1;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (bz_has_word(KINDS[i].kinds, first))
            return (int)KINDS[i].sort;
    return -1;
}

static void add_attention(bz_align_work *s)
{
    add(s, BZ_WORK_PRODUCT);
    add(s, BZ_WORK_SOFTMAX);
    add(s, BZ_WORK_PRODUCT);
}

/* A convolution may launch several kernels: what prepares it, products in the middle, the result at last. */
static void add_kernel(bz_align_work *s, const bz_kernel *k, bz_kernel_part *state)
{
    switch (k->does) {
    case BZ_KERNEL_CONV_PART:
        *state = k->begins ? k->begins : *state;
        return;
    case BZ_KERNEL_CONV_DEPTHWISE:
    case BZ_KERNEL_CONV:
        add(s, BZ_WORK_CONV);
        break;
    case BZ_KERNEL_PRODUCT:
    case BZ_KERNEL_VECTOR_PRODUCT:
        if (*state == BZ_KERNEL_TRANSFORMS)
            return; /* the convolution is counted by the kernel that ends it */
        add(s, *state == BZ_KERNEL_UNFOLDS ? BZ_WORK_CONV : BZ_WORK_PRODUCT);
        break;
    case BZ_KERNEL_ATTENTION:
        add_attention(s);
        break;
    case BZ_KERNEL_RNN:
        add(s, BZ_WORK_RECURRENT);
        break;
    case BZ_KERNEL_SOFTMAX:
        add(s, BZ_WORK_SOFTMAX);
        break;
    case BZ_KERNEL_POOL:
        add(s, BZ_WORK_POOL);
        break;
    default:
        return;
    }
    *state = BZ_KERNEL_ALONE;
}

/* Autograd's operators are around it. */
static bool in_backward(const bz_trace *t, uint32_t op)
{
    enum { DEEPEST = 256 };
    const bz_events *o = &t->event[BZ_EVENT_OP];
    for (int i = 0; op < o->n && i < DEEPEST; i++, op = o->op[op])
        if (strstr(bz_string(t, o->name[op]), "ackward"))
            return true;
    return false;
}

static bool call_backward(const bz_trace *t, size_t call)
{
    char prop[32];
    return strstr(bz_string(t, t->event[BZ_EVENT_CALL].name[call]), "Backward") ||
           (bz_call_parameter(t, call, "prop", prop, sizeof prop) && !strncmp(prop, "backward", 8));
}

static bool is_backward(const bz_trace *t, const bz_align_step *step)
{
    if (step->kind == BZ_ALIGN_CALL)
        return call_backward(t, step->at) || in_backward(t, t->event[BZ_EVENT_CALL].op[step->at]);
    if (step->kind == BZ_ALIGN_OPERATOR)
        return in_backward(t, (uint32_t)step->at);
    bz_kernel_does does = bz_kernel_of(t, step->at)->does;
    return does == BZ_KERNEL_CONV_BACKWARD || does == BZ_KERNEL_OPTIMIZER ||
           in_backward(t, t->event[BZ_EVENT_KERNEL].op[step->at]);
}

static void add_step(bz_align_work *s, const bz_trace *t, const bz_align_step *step, bz_kernel_part *state)
{
    if (is_backward(t, step)) {
        s->backward_name = s->backward++ ? s->backward_name : step->name;
        return;
    }
    if (step->kind == BZ_ALIGN_KERNEL) {
        add_kernel(s, bz_kernel_of(t, step->at), state);
        return;
    }
    const char *kind =
        step->kind == BZ_ALIGN_CALL ? bz_align_call_rule(step->name).kind : bz_align_operator_rule(step->name).kind;
    int v = symbol_of_kind(kind);
    s->relu += kind && !strcmp(kind, "relu");
    s->by_layer &= v < 0 || !strncmp(step->name, "aten::", strlen("aten::"));
    if (v >= 0)
        add_known(s, v, step->text);
    else if (strstr(step->name, "attention") || strstr(step->name, "Attention"))
        add_attention(s);
}

/* Of all kernels, those that library calls launched as well. */
static void count_kernels(bz_align_work *s, const bz_align_steps *steps)
{
    const bz_trace *t = steps->trace;
    for (size_t i = 0; i < t->event[BZ_EVENT_KERNEL].n; i++) {
        const bz_kernel *k = bz_kernel_of(t, i);
        if (!bz_align_in(steps, BZ_EVENT_KERNEL, i))
            continue;
        s->unknown += k->does == BZ_KERNEL_OTHER;
        s->depthwise += k->does == BZ_KERNEL_CONV_DEPTHWISE;
        s->winograd += k->does == BZ_KERNEL_CONV && k->algorithm && strstr(k->algorithm, "WINOGRAD");
    }
}

void bz_align_work_take(const bz_trace *t, bz_arena *arena, bz_align_work *s)
{
    bz_align_words words;
    bz_align_steps steps;
    bz_kernel_part state = BZ_KERNEL_ALONE;
    *s = (bz_align_work){0};
    bz_align_words_begin(&words, arena);
    bz_align_steps_take(&steps, t, NULL, &words, arena);
    s->by_layer = steps.operators;
    for (int i = 0; i < steps.n; i++)
        add_step(s, t, &steps.step[i], &state);
    count_kernels(s, &steps);
    bz_align_steps_free(&steps);
    bz_align_words_end(&words);
}

void bz_align_work_add(bz_align_work *s, const bz_layer *layer)
{
    s->relu += !strcmp(layer->kind, "relu");
    int v = layer->class == BZ_COMPUTE || layer->class == BZ_MEMORY ? symbol_of_kind(layer->kind) : -1;
    if (v >= 0)
        add_known(s, v == BZ_WORK_CONV && bz_align_unlogged(layer) ? BZ_WORK_CONV_OR_PRODUCT : v, layer->key);
    else if (layer->macs && !layer->n_bodies && strstr(layer->kind, "attention"))
        add_attention(s);
    else if (layer->macs && !layer->n_bodies)
        add(s, strstr(layer->kind, "conv") ? BZ_WORK_CONV : BZ_WORK_PRODUCT);
}

void bz_align_work_free(bz_align_work *s)
{
    free(s->symbol);
    free(s->again);
}

static void fold(bz_align_work *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (s->again[i])
            s->count[sort_of(s->symbol[i])]--;
        else
            s->symbol[n++] = s->symbol[i];
    if (n)
        memset(s->again, 0, (size_t)n * sizeof *s->again);
    s->n = n;
}

void bz_align_work_fold(bz_align_work *model, bz_align_work *ran)
{
    if (!ran->told || ran->told < TYPED_LEAST * ran->n)
        return;
    fold(model);
    fold(ran);
}

void bz_align_work_convs(bz_align_work *s)
{
    for (int i = 0; i < s->n; i++)
        s->symbol[i] = (unsigned char)sort_of(s->symbol[i]);
}

void bz_align_work_leave_out(bz_align_work *s, const bz_align_work *other)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        bz_align_sort sort = sort_of(s->symbol[i]);
        bool either = s->symbol[i] == BZ_WORK_CONV_OR_PRODUCT && other->count[BZ_WORK_PRODUCT];
        s->again[n] = s->again[i];
        s->symbol[n] = s->symbol[i];
        n += other->count[sort] || either;
        s->count[sort] -= !other->count[sort] && !either;
    }
    s->n = n;
}

static bool same_symbol(int a, int b)
{
    return a == b || (a == BZ_WORK_CONV_OR_PRODUCT && (b == BZ_WORK_CONV || b == BZ_WORK_PRODUCT)) ||
           (b == BZ_WORK_CONV_OR_PRODUCT && (a == BZ_WORK_CONV || a == BZ_WORK_PRODUCT));
}

/* Length of the longest common subsequence. row[j]: of what was seen of a, and the first j of b. */
int bz_align_work_common(const bz_align_work *a, const bz_align_work *b)
{
    BZ_FREED int *row = bz_zeroed((size_t)b->n + 1, sizeof *row);
    for (int i = 0; i < a->n; i++) {
        int diagonal = 0; /* row[j - 1] before this i */
        for (int j = 1; j <= b->n; j++) {
            int above = row[j];
            row[j] = same_symbol(a->symbol[i], b->symbol[j - 1]) ? diagonal + 1
                     : row[j - 1] > above                        ? row[j - 1]
                                                                 : above;
            diagonal = above;
        }
    }
    return row[b->n];
}

const char *bz_align_work_evidence(const bz_align_work *model, const bz_align_work *ran, int alike, bz_arena *arena)
{
    bz_buf text = {0};
    for (int v = 0; v < BZ_WORK_SORTS; v++)
        if (model->count[v] || ran->count[v])
            bz_buf_printf(&text, "%s%s %d / %d", text.len ? ", " : "recorded / in the model: ", NAMES[v], ran->count[v],
                          model->count[v]);
    if (alike == model->n && alike == ran->n)
        bz_buf_puts(&text, "; all in the model's order");
    else
        bz_buf_printf(&text, "; %d of the model's %d were found in its order", alike, model->n);
    return bz_buf_keep(&text, arena);
}
