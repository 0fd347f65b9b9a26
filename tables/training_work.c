/* What kernels of a training run compute, by the operators that launched them: forward, and the two gradients of each product. */
#include "tables/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Backward operators, and which of their operands have the shapes of a convolution's gradient and weights. */
static const struct {
    const char *name;
    int dy, w, parts; /* w -1: the operator around it has the weights; parts: gradients that it computes */
} BACKWARD[] = {{"convolution_backward_input$", 1, 2, 1},
                {"convolution_backward_weight$", 1, -1, 1},
                {"cudnn_convolution_backward$", 1, 2, 2},
                {"^aten::convolution_backward$", 0, 2, 2}};

static const bz_operand_seen *argument(const bz_operator *o, int k)
{
    for (int i = 0; i < o->n_in; i++)
        if (o->in[i].argument == k && o->in[i].rank > 2)
            return &o->in[i];
    return NULL;
}

static double count(const bz_operand_seen *o)
{
    double n = 1;
    for (int i = 0; i < o->rank; i++)
        n *= (double)o->dim[i];
    return n;
}

/* Each element of dy meets each weight of its channel once, in either gradient as in the forward pass. */
static double conv_flops(const bz_operand_seen *dy, const bz_operand_seen *w)
{
    return w->dim[0] > 0 ? 2 * count(dy) * count(w) / (double)w->dim[0] : NAN;
}

/* Input and weights of a forward convolution: what names its result where the recording has no strides. */
typedef struct geometry {
    int64_t dim[2 * BZ_SEEN_RANK];
} geometry;

static geometry geometry_of(const bz_operand_seen *x, const bz_operand_seen *w)
{
    geometry g = {{0}};
    for (int i = 0; i < x->rank; i++)
        g.dim[i] = x->dim[i];
    for (int i = 0; i < w->rank; i++)
        g.dim[BZ_SEEN_RANK + i] = w->dim[i];
    return g;
}

typedef struct finder {
    const bz_trace *t;
    bz_map seen; /* geometry -> index of its operations */
    double *flops;
    uint32_t n;
    bz_arena *arena;
} finder;

/* A backward operator has the result's gradient beside input and weights: so it tells what the forward one computed. */
static void note_backward(finder *f, size_t op)
{
    const bz_operator *o = bz_operator_of(f->t, op);
    bool newer = bz_name_matches("^aten::convolution_backward$", bz_string(f->t, f->t->event[BZ_EVENT_OP].name[op]));
    const bz_operand_seen *x = argument(o, newer ? 1 : 0), *dy = argument(o, newer ? 0 : 1), *w = argument(o, 2);
    if (!x || !dy || !w)
        return;
    geometry g = geometry_of(x, w);
    if (bz_map_number(&f->seen, f->arena, &g, sizeof g) == f->n)
        BZ_ADD(f->flops, f->n) = conv_flops(dy, w);
}

/* Operations of an operator, and how many kernels share them; NAN where it is none that multiplies. */
static double operator_flops(const finder *f, size_t op, int *parts)
{
    const bz_events *e = &f->t->event[BZ_EVENT_OP];
    const char *name = bz_string(f->t, e->name[op]);
    const bz_operator *o = bz_operator_of(f->t, op);
    layer_work w;
    *parts = 1;
    for (size_t i = 0; i < sizeof BACKWARD / sizeof *BACKWARD; i++) {
        if (!bz_name_matches(BACKWARD[i].name, name))
            continue;
        uint32_t around = e->op[op];
        const bz_operand_seen *dy = argument(o, BACKWARD[i].dy),
                              *weights = BACKWARD[i].w >= 0 ? argument(o, BACKWARD[i].w)
                                         : around < op      ? argument(bz_operator_of(f->t, around), 2)
                                                            : NULL;
        *parts = BACKWARD[i].parts;
        return dy && weights ? *parts * conv_flops(dy, weights) : NAN;
    }
    if (layer_work_of(f->t, op, &w))
        return w.flops;
    const bz_operand_seen *x = argument(o, 0), *weights = argument(o, 1);
    if (!strstr(name, "conv") || !x || !weights)
        return NAN;
    geometry g = geometry_of(x, weights);
    uint32_t k = bz_map_get(&f->seen, &g, sizeof g);
    return k == BZ_MAP_NONE ? NAN : f->flops[k];
}

/* The batch is the first extent of what most convolutions read; of other operators it may be samples times words. */
static double find_batch(const bz_trace *t)
{
    enum { MOST = 4096 };
    BZ_FREED int64_t *of = bz_zeroed(MOST, sizeof *of);
    int best = 0;
    for (size_t i = 0; i < t->event[BZ_EVENT_OP].n; i++) {
        const bz_operator *o = bz_operator_of(t, i);
        const char *name = bz_string(t, t->event[BZ_EVENT_OP].name[i]);
        const bz_operand_seen *x = strstr(name, "conv") ? argument(o, 0) : NULL;
        if (x && x->dim[0] > 0 && x->dim[0] < MOST && ++of[x->dim[0]] > of[best])
            best = (int)x->dim[0];
    }
    return best ? (double)best : (double)NAN;
}

/* Of the first operand, in whatever number that is multiplied. */
static int bytes_of(const bz_trace *t, size_t op)
{
    const bz_operator *o = bz_operator_of(t, op);
    int bytes = o->n_in ? (int)bz_dtype_bits(o->in[0].dtype) / 8 : 0;
    return bytes ? bytes : 4;
}

double *training_flops(const bz_tables *m, double **at_peak, double *batch)
{
    const bz_trace *t = m->t;
    const bz_events *op = &t->event[BZ_EVENT_OP], *k = &t->event[BZ_EVENT_KERNEL];
    BZ_SCOPED(bz_arena) arena = {0};
    finder f = {.t = t, .arena = &arena};
    const bz_gpu gpu = layer_gpu(t);
    *at_peak = NULL;
    *batch = NAN;
    if (!op->n)
        return NULL;
    double *flops = bz_alloc(k->n + 1, sizeof *flops), *of_op = bz_alloc(op->n + 1, sizeof *of_op);
    BZ_FREED uint32_t *longest = bz_alloc(2 * op->n + 2, sizeof *longest);
    BZ_FREED int *parts = bz_alloc(op->n + 1, sizeof *parts);
    for (size_t i = 0; i < op->n; i++)
        if (bz_name_matches("convolution_backward$", bz_string(t, op->name[i])))
            note_backward(&f, i);
    for (size_t i = 0; i < op->n; i++) {
        of_op[i] = operator_flops(&f, i, &parts[i]);
        longest[2 * i] = longest[2 * i + 1] = BZ_NONE;
    }
    for (size_t i = 0; i < k->n; i++) {
        uint32_t o = tables_op(m, BZ_EVENT_KERNEL, i);
        o = o < op->n ? o : BZ_NONE;
        flops[i] = NAN;
        while (o != BZ_NONE && isnan(of_op[o])) /* the innermost that tells */
            o = op->op[o] < o ? op->op[o] : BZ_NONE;
        for (int p = 0; o != BZ_NONE && p < 2; p++) {
            uint32_t had = longest[2 * o + (uint32_t)p];
            if (had != BZ_NONE && k->end[i] - k->start[i] <= k->end[had] - k->start[had])
                continue;
            if (!p)
                longest[2 * o + 1] = had;
            longest[2 * o + (uint32_t)p] = (uint32_t)i;
            break;
        }
    }
    *at_peak = bz_alloc(k->n + 1, sizeof **at_peak);
    for (size_t i = 0; i < k->n; i++)
        (*at_peak)[i] = NAN;
    for (size_t i = 0; i < op->n; i++)
        for (int p = 0; p < parts[i]; p++) {
            uint32_t of = longest[2 * i + (size_t)p];
            if (of == BZ_NONE)
                continue;
            const bz_kernel *is = bz_kernel_of(t, of);
            const char *type = bz_kernel_limit_of(is->does) == BZ_LIMIT_COMPUTE ? is->type : NULL;
            flops[of] = of_op[i] / (parts[i] == 2 && longest[2 * i + 1] != BZ_NONE ? 2 : 1);
            (*at_peak)[of] = flops[of] / layer_peak(&gpu, type, bytes_of(t, i));
        }
    *batch = find_batch(t);
    bz_map_free(&f.seen);
    free(f.flops);
    free(of_op);
    return flops;
}
