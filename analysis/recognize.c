/* Which model a recording may be of: the sequence of convolutions, products, pools, softmaxes and recurrent layers that the typical
 * iteration computed, held against that of each candidate's layers. What else there is (element-wise work, normalization) is
 * fused and folded by programs as they like, and says nothing. */
#include "analysis/recording.h"
#include "explain/align.h"

#include <stdlib.h>
#include <string.h>

typedef enum { CONV, PRODUCT, POOL, SOFTMAX, RECURRENT, SYMBOLS } symbol;

static const char *const NAMES[SYMBOLS] = {"convolutions", "matrix products", "pools", "softmaxes", "recurrent layers"};

enum {
    LONGEST = 8192,
    LEAST = 5
}; /* symbols: of a sequence that is looked at; of a model that can be told from others */
static const double FITS = 0.9, EQUAL = 0.002;

typedef struct sequence {
    unsigned char *symbol;
    int n, cap, count[SYMBOLS];
} sequence;

static void add(sequence *s, symbol v)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 256;
        s->symbol = bz_realloc(s->symbol, (size_t)s->cap, 1);
    }
    s->symbol[s->n++] = (unsigned char)v;
    s->count[v]++;
}

/* ---- by name -------------------------------------------------------------------------------- */

/* Kinds of layers, as models and as the rules of alignments have them. A kind that is not here says nothing. */
static const struct {
    const char *kind;
    symbol symbol;
} KINDS[] = {
    {"conv", CONV},      {"deconv", CONV},        {"convtranspose", CONV}, {"product", PRODUCT},
    {"gemm", PRODUCT},   {"matmul", PRODUCT},     {"pool", POOL},          {"maxpool", POOL},
    {"avgpool", POOL},   {"globalavgpool", POOL}, {"globalmaxpool", POOL}, {"softmax", SOFTMAX},
    {"lstm", RECURRENT}, {"gru", RECURRENT},      {"rnn", RECURRENT},
};

static int symbol_of_kind(const char *kind)
{
    for (size_t i = 0; kind && i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(KINDS[i].kind, kind))
            return (int)KINDS[i].symbol;
    return -1;
}

/* A convolution may launch several kernels: what prepares it, products in the middle, the result at last. */
static void add_kernel(sequence *s, const bz_kernel *k, bz_kernel_part *state)
{
    switch (k->does) {
    case BZ_KERNEL_CONV_PART:
        *state = k->begins ? k->begins : *state;
        return;
    case BZ_KERNEL_CONV:
    case BZ_KERNEL_CONV_DEPTHWISE:
        add(s, CONV);
        break;
    case BZ_KERNEL_PRODUCT:
    case BZ_KERNEL_VECTOR_PRODUCT:
        if (*state == BZ_KERNEL_TRANSFORMS)
            return; /* the convolution is counted by the kernel that ends it */
        add(s, *state == BZ_KERNEL_UNFOLDS ? CONV : PRODUCT);
        break;
    case BZ_KERNEL_ATTENTION:
        add(s, PRODUCT);
        add(s, SOFTMAX);
        add(s, PRODUCT);
        break;
    case BZ_KERNEL_RNN:
        add(s, RECURRENT);
        break;
    case BZ_KERNEL_SOFTMAX:
        add(s, SOFTMAX);
        break;
    case BZ_KERNEL_POOL:
        add(s, POOL);
        break;
    default:
        return;
    }
    *state = BZ_KERNEL_ALONE;
}

/* Work of a training's way back: autograd's operators are around it. */
static bool in_backward(const bz_trace *t, const bz_align_step *step)
{
    enum { DEEPEST = 256 };
    const bz_events *o = &t->event[BZ_EVENT_OP];
    uint32_t op = step->kind == BZ_ALIGN_OPERATOR ? (uint32_t)step->at
                  : step->kind == BZ_ALIGN_KERNEL ? t->event[BZ_EVENT_KERNEL].op[step->at]
                                                  : BZ_NONE;
    for (int i = 0; op < o->n && i < DEEPEST; i++, op = o->op[op])
        if (strstr(bz_string(t, o->name[op]), "ackward"))
            return true;
    return false;
}

static void add_step(sequence *s, const bz_trace *t, const bz_align_step *step, bz_kernel_part *state)
{
    if (in_backward(t, step))
        return;
    if (step->kind == BZ_ALIGN_KERNEL) {
        add_kernel(s, bz_kernel_of(t, step->at), state);
        return;
    }
    int v = symbol_of_kind(step->kind == BZ_ALIGN_CALL ? bz_align_call_rule(step->name).kind
                                                       : bz_align_operator_rule(step->name).kind);
    if (v >= 0)
        add(s, (symbol)v);
}

/* What the typical iteration did: library calls, kernels that none of them asked for, operators. */
static void take_recording(const bz_trace *t, bz_arena *arena, sequence *s)
{
    bz_align_words words;
    bz_align_steps steps;
    bz_kernel_part state = BZ_KERNEL_ALONE;
    bz_align_words_begin(&words, arena);
    bz_align_steps_take(&steps, t, NULL, &words, arena);
    for (int i = 0; i < steps.n && s->n < LONGEST; i++)
        add_step(s, t, &steps.step[i], &state);
    bz_align_steps_free(&steps);
    bz_align_words_end(&words);
}

static void take_model(const bz_layers *l, sequence *s)
{
    for (int i = 0; i < l->n && s->n < LONGEST; i++) {
        int v =
            l->layer[i].class == BZ_COMPUTE || l->layer[i].class == BZ_MEMORY ? symbol_of_kind(l->layer[i].kind) : -1;
        if (v >= 0)
            add(s, (symbol)v);
    }
}

/* ---- likeness ------------------------------------------------------------------------------- */

/* Length of the longest common subsequence. row[j]: of what was seen of a, and the first j of b. */
static int common(const sequence *a, const sequence *b)
{
    int *row = bz_zeroed((size_t)b->n + 1, sizeof *row);
    for (int i = 0; i < a->n; i++) {
        int diagonal = 0; /* row[j - 1] before this i */
        for (int j = 1; j <= b->n; j++) {
            int above = row[j];
            row[j] = a->symbol[i] == b->symbol[j - 1] ? diagonal + 1 : row[j - 1] > above ? row[j - 1] : above;
            diagonal = above;
        }
    }
    int length = row[b->n];
    free(row);
    return length;
}

/* "recorded / in the model: convolutions 53 / 53, pools 2 / 2; all in the model's order" */
static const char *evidence(const sequence *model, const sequence *ran, int alike, bz_arena *arena)
{
    bz_buf text = {0};
    for (int v = 0; v < SYMBOLS; v++)
        if (model->count[v] || ran->count[v])
            bz_buf_printf(&text, "%s%s %d / %d", text.len ? ", " : "recorded / in the model: ", NAMES[v], ran->count[v],
                          model->count[v]);
    if (alike == model->n && alike == ran->n)
        bz_buf_puts(&text, "; all in the model's order");
    else
        bz_buf_printf(&text, "; %d of the model's %d were found in its order", alike, model->n);
    const char *copy = bz_arena_str(arena, bz_buf_text(&text));
    bz_buf_free(&text);
    return copy;
}

static int most_alike(const void *a, const void *b)
{
    const bz_fit *x = a, *y = b;
    return x->likeness != y->likeness ? (x->likeness > y->likeness ? -1 : 1)
                                      : strcmp(x->candidate->name, y->candidate->name);
}

int recording_recognize(const bz_trace *trace, const bz_candidate *candidate, int n, bz_arena *arena, bz_fit *fit)
{
    sequence ran = {0};
    int fits = 0;
    if (!n)
        return 0;
    take_recording(trace, arena, &ran);
    for (int i = 0; i < n; i++) {
        sequence model = {0};
        take_model(candidate[i].layers, &model);
        int alike = model.n >= LEAST ? common(&model, &ran) : 0;
        fit[i] = (bz_fit){.candidate = &candidate[i],
                          .likeness = alike ? 2.0 * alike / (double)(model.n + ran.n) : 0,
                          .evidence = evidence(&model, &ran, alike, arena)};
        free(model.symbol);
    }
    free(ran.symbol);
    qsort(fit, (size_t)n, sizeof *fit, most_alike);
    while (fits < n && fit[fits].likeness >= FITS) {
        fit[fits].equal = fit[0].likeness - fit[fits].likeness < EQUAL;
        fits++;
    }
    return fits;
}
