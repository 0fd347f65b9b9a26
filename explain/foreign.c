/* Is a recording of this model at all? Where the parameters of its products are known, multiplications tell, by the weights that
 * they are done with: weights stay the same when batch or sizes change. Where only names are known, the sequence of the work does. */
#include "explain/align.h"

#include "explain/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications with weights of one size. */
typedef struct share {
    int64_t weights;
    double model, seen;
    double unlogged; /* of the model's: in convolutions that may be in no log of oneDNN */
} share;

typedef struct making {
    const bz_bound *bound;
    const bz_trace *trace;
    bz_arena *arena;
    bz_map known; /* weights -> share */
    share *share;
    int n;
    double model, seen;     /* sums */
    double n_model, n_seen; /* layers that multiply */
    bool unseen[2];         /* products, convolutions: the recording cannot tell them, or their parameters */
    bool lean;              /* layers that need not run are taken to be left out by the program */
} making;

static share *share_of(making *m, int64_t weights, bool add)
{
    uint32_t at = add ? bz_map_number(&m->known, m->arena, &weights, sizeof weights)
                      : bz_map_get(&m->known, &weights, sizeof weights);
    if (at == (uint32_t)m->n)
        BZ_ARENA_ADD(m->arena, m->share, m->n) = (share){.weights = weights};
    return at == BZ_MAP_NONE ? NULL : &m->share[at];
}

/* Weights of a product: of each result as many as it has products, for each channel of the results. What is the channel of a
 * matrix nobody knows: rows and columns change places between libraries. 0: none. */
static int64_t weights_of(const bz_layer *l, int way)
{
    const bz_type *y = &l->out[0];
    int64_t results = l->n_out ? bz_type_elements(y) : 0, weights;
    if (results < 1 || y->rank < 1 || l->macs % results)
        return 0;
    int axis = bz_layer_has(l, BZ_LAYER_CONVOLUTION) ? 1 : y->rank - 1 - way;
    if (axis < 0 || axis >= y->rank)
        return 0;
    return __builtin_mul_overflow(l->macs / results, y->dims[axis], &weights) ? 0 : weights;
}

static bool is_conv(const bz_layer *l)
{
    return bz_layer_has(l, BZ_LAYER_CONVOLUTION);
}

/* Of one small image, without groups. */
static bool is_small(const bz_layer *l)
{
    bool small = l->in[0].dims[0] == 1 && l->in[1].dims[1] == l->in[0].dims[1];
    for (int k = 2; k < l->in[1].rank; k++)
        small &= l->in[1].dims[k] <= SMALL_KERNEL;
    return small && bz_type_elements(&l->in[0]) <= SMALL_IMAGE;
}

bool bz_align_unlogged(const bz_layer *l)
{
    if (!is_conv(l) || l->n_in < 2 || l->in[1].rank < 3 || l->in[0].rank != l->in[1].rank)
        return false;
    if (!strcmp(l->kind, "deconv") || is_small(l))
        return true;
    if (l->in[1].dims[1] != l->in[0].dims[1])
        return false;
    for (int k = 2; k < l->in[1].rank; k++)
        if (l->in[1].dims[k] != 1)
            return false;
    return true;
}

bool bz_align_onednn_alone(const bz_trace *t)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < c->n; i++)
        if (c->library[i] != BZ_LIBRARY_ONEDNN)
            return false;
    return c->n && !t->event[BZ_EVENT_OP].n && !t->event[BZ_EVENT_KERNEL].n;
}

/* What the log of one library lacks another one may have done. */
static void leave_out_unlogged(making *m)
{
    for (int i = 0; i < m->n && bz_align_onednn_alone(m->trace); i++) {
        share *s = &m->share[i];
        double unseen = fmin(s->unlogged, fmax(s->model - s->seen, 0));
        s->model -= unseen;
        m->model -= unseen;
    }
}

static void add_share(making *m, int64_t weights, double macs, double unlogged)
{
    share *s = share_of(m, weights, true);
    s->model += macs;
    s->unlogged += unlogged;
    m->model += macs;
}

/* A framework may compute a recurrent layer by products, of its operand and of its states: their weights are the layer's. False: it is none. */
static bool add_recurrent(making *m, const bz_bound_layer *l)
{
    const bz_problem *p = l->lowering && l->lowering->n ? l->lowering->alternative[0].problem : NULL;
    if (!p || !bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return false;
    const int64_t width = bz_rnn_gates(p->kind) * p->rnn.hidden;
    const double each = (double)l->layer->macs * l->times / (double)(p->rnn.input + p->rnn.hidden);
    add_share(m, width * p->rnn.input, each * (double)p->rnn.input, 0);
    add_share(m, width * p->rnn.hidden, each * (double)p->rnn.hidden, 0);
    return true;
}

static bool is_run(const making *m, int i)
{
    return !m->lean || !bz_bound_spared(m->bound, &m->bound->layer[i]);
}

static void add_model(making *m)
{
    for (int i = 0; i < m->bound->n; i++) {
        const bz_layer *l = m->bound->layer[i].layer;
        double macs = (double)l->macs * m->bound->layer[i].times;
        if (is_run(m, i) && l->macs && !l->n_bodies && !m->unseen[is_conv(l)] && !add_recurrent(m, &m->bound->layer[i]))
            add_share(m, weights_of(l, 0), macs, bz_align_unlogged(l) ? macs : 0);
        m->n_model += is_run(m, i) && l->macs && !l->n_bodies ? m->bound->layer[i].times : 0;
    }
}

static void add_seen(making *m, const bz_layers *layers)
{
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        share *s = NULL;
        if (!l->macs || l->n_bodies || m->unseen[is_conv(l)])
            continue;
        for (int way = 0; way < 2; way++) { /* where both fit, the one of which more is to come */
            share *fits = share_of(m, weights_of(l, way), false);
            s = !s || (fits && fits->seen * s->model < s->seen * fits->model) ? fits : s;
        }
        s = s ? s : share_of(m, weights_of(l, 0), true);
        s->seen += (double)l->macs;
        m->seen += (double)l->macs;
        m->n_seen++;
    }
}

/* What both do, if the model did `times` as much; of the larger sum. */
static double overlap(const making *m, double times)
{
    double both = 0;
    for (int i = 0; i < m->n; i++)
        both += fmin(m->share[i].model * times, m->share[i].seen);
    return both / fmax(m->model * times, m->seen);
}

/* Products that were merged or split have weights of sizes that the other side does not know; all others agree, and the sums do. */
static bool merged(const making *m)
{
    double differ = 0;
    for (int i = 0; i < m->n; i++)
        if (m->share[i].model > 0 && m->share[i].seen > 0)
            differ += fabs(m->share[i].model - m->share[i].seen);
    return differ <= SAME_SUM * m->model && fabs(m->seen - m->model) <= SAME_SUM * m->model;
}

static const char *compare_products(making *m)
{
    double best = overlap(m, 1), times = 1;
    if (best >= SAME_NETWORK || (best >= SAME_MERGED && merged(m)))
        return NULL;
    for (int i = 0; i < m->n; i++) {
        double by = m->share[i].model > 0 ? m->share[i].seen / m->share[i].model : 0, all = by > 0 ? overlap(m, by) : 0;
        if (all > best)
            best = all, times = by;
    }
    const char *seen = BZ_SAY_COUNT(m->seen), *model = BZ_SAY_COUNT(m->model);
    /* a larger batch multiplies more, and not more often */
    const double passes = m->n_model > 0 ? m->n_seen / m->n_model : 0;
    if (best >= SAME_NETWORK && passes > 1 && fmod(passes, 1) <= 0 && fabs(times - passes) <= SAME_SUM)
        return bz_arena_printf(m->arena,
                               "ran the model %.0f times in each iteration; the bound is of one: --iterations %.0f "
                               "takes each of them for an iteration",
                               passes, passes * m->trace->n_iterations);
    if (best >= SAME_MERGED && (times > 1 + SAME_SUM || times < 1 - SAME_SUM))
        return bz_arena_printf(m->arena,
                               "ran other sizes than the model has: it multiplied %s times, the model does %s, with "
                               "weights of the same sizes about %.3g times as often: another batch, other lengths or "
                               "images, or iterations that were found wrong (--iterations names them)",
                               seen, model, times);
    return bz_arena_printf(m->arena,
                           "is not of this model: it multiplied %s times, the model does %s; of the larger sum, %s is "
                           "with weights of the same sizes",
                           seen, model, BZ_SAY_SHARE(overlap(m, 1)));
}

/* Which of convolutions and products have parameters, in `layers`; the others are known by name at most. */
static bool tells(making *m, const bz_layers *layers, const bz_align_work *ran, const bz_align_work *model)
{
    int typed[2] = {0, 0};
    for (int i = 0; layers && i < layers->n; i++)
        typed[is_conv(&layers->layer[i])] += layers->layer[i].macs > 0;
    int named[2] = {ran->count[BZ_WORK_PRODUCT], ran->count[BZ_WORK_CONV]};
    for (int k = 0; k < 2; k++)
        m->unseen[k] = !typed[k] || typed[k] < TYPED_LEAST * named[k];
    bool conv = model->count[BZ_WORK_CONV] > 0;
    return !m->unseen[conv];
}

/* A framework may do its convolutions by products of a library's, as PyTorch does those of volumes: then no convolution was recorded, and the products
 * are as many as the model's convolutions and products together. */
static bool convolves_by_products(making m, const bz_layers *layers, const bz_align_work *ran)
{
    if (ran->count[BZ_WORK_CONV] || m.unseen[0])
        return false;
    m.unseen[1] = false;
    add_model(&m);
    add_seen(&m, layers);
    bool same = m.model > 0 && !compare_products(&m);
    bz_map_free(&m.known);
    return same;
}

/* cuBLAS does products for cuDNN, too: its log alone tells nothing of the layers. */
static bool products_alone(const bz_trace *t)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < c->n; i++)
        if (c->library[i] != BZ_LIBRARY_CUBLAS && c->library[i] != BZ_LIBRARY_CUBLASLT)
            return false;
    return true;
}

/* What is missing may be what kernels did whose names tell nothing. */
static bool alike(const bz_align_work *model, const bz_align_work *ran)
{
    int common = bz_align_work_common(model, ran);
    int missing = model->n - common, hidden = missing < ran->unknown ? missing : ran->unknown;
    int both = model->n + ran->n + hidden, same = 2 * (common + hidden);
    return both - same <= 1 || same >= SAME_SEQUENCE * both;
}

/* The same work, told more roughly: convolutions are products, as libraries compute the one by the other; or products in a row
 * are one, as runtimes merge those of query, key and value. */
static bz_align_work roughly(const bz_align_work *w, bool merge_rows)
{
    bz_align_work rough = *w;
    rough.symbol = bz_alloc((size_t)w->n + 1, 1);
    rough.n = 0;
    for (int i = 0; i < w->n; i++) {
        bool conv = w->symbol[i] == BZ_WORK_CONV || w->symbol[i] == BZ_WORK_CONV_OR_PRODUCT;
        bool product = w->symbol[i] == BZ_WORK_PRODUCT || (conv && !merge_rows);
        if (!merge_rows || !product || !i || w->symbol[i - 1] != BZ_WORK_PRODUCT)
            rough.symbol[rough.n++] = product ? BZ_WORK_PRODUCT : w->symbol[i];
    }
    return rough;
}

static bool alike_roughly(const bz_align_work *model, const bz_align_work *ran, bool merge_rows)
{
    bz_align_work a = roughly(model, merge_rows), b = roughly(ran, merge_rows);
    bool same = alike(&a, &b);
    free(a.symbol);
    free(b.symbol);
    return same;
}

/* Merged rows tell little of products: their number must be one that merging leaves, or bias added by a product of its own. */
static bool alike_merged(const bz_align_work *model, const bz_align_work *ran)
{
    int wanted = model->count[BZ_WORK_PRODUCT], seen = ran->count[BZ_WORK_PRODUCT];
    return seen >= SAME_MERGED * wanted && wanted >= SAME_MERGED * seen && alike_roughly(model, ran, true);
}

typedef struct sorts {
    int depthwise, wide; /* convolutions of single channels; of several, of wide kernels and stride 1 */
} sorts;

static sorts count_sorts(const bz_bound *b)
{
    sorts n = {0};
    for (int i = 0; i < b->n; i++) {
        const bz_layer *l = b->layer[i].layer;
        if (!l->macs || strcmp(l->kind, "conv") != 0 || l->n_in < 2 || l->in[0].rank < 3 ||
            l->in[1].rank != l->in[0].rank || l->in[1].dims[1] < 1 || l->in[0].dims[1] > MOST_CHANNELS)
            continue;
        const bz_param *stride = bz_layer_param(l, "stride");
        bool grouped = l->in[1].dims[1] < l->in[0].dims[1], wide = !grouped || l->in[1].dims[1] > 1;
        for (int k = 2; k < l->in[1].rank; k++)
            wide &= l->in[1].dims[k] > 1 && !(stride && k - 2 < stride->n && stride->v[k - 2] > 1);
        n.depthwise += grouped;
        n.wide += wide ? (int)(l->in[0].dims[1] / l->in[1].dims[1]) : 0; /* each group may be a kernel */
    }
    return n;
}

/* Kernels that no layer of the model can launch. */
static const char *compare_kernels(making *m, const bz_align_work *ran)
{
    sorts own = count_sorts(m->bound);
    if (ran->depthwise && !own.depthwise)
        return bz_arena_printf(
            m->arena,
            "is not of this model: %d of its kernels convolve each channel by itself, which no layer of the model does",
            ran->depthwise);
    if (ran->winograd > own.wide)
        return bz_arena_printf(m->arena,
                               "is not of this model: %d of its convolutions ran by Winograd's algorithm, and %d of "
                               "the model's layers can: it wants kernels wider than 1, at stride 1",
                               ran->winograd, own.wide);
    return NULL;
}

static const char *compare_sequences(making *m, bz_align_work *model, const bz_align_work *ran)
{
    bool device = m->trace->event[BZ_EVENT_KERNEL].n > 0;
    if (!device && !m->trace->event[BZ_EVENT_OP].n) {
        if (products_alone(m->trace))
            return NULL;
        bz_align_work_leave_out(model, ran);
    }
    bool recurrent = model->count[BZ_WORK_RECURRENT] && ran->count[BZ_WORK_RECURRENT]; /* any number of kernels each */
    if ((model->n < LEAST_SEQUENCE && ran->n < LEAST_SEQUENCE) || recurrent || alike(model, ran) ||
        alike_roughly(model, ran, false) || alike_merged(model, ran))
        return NULL;
    int common = bz_align_work_common(model, ran);
    return bz_arena_printf(m->arena, "is not of this model, by the sequence of its work: %s",
                           bz_align_work_evidence(model, ran, common, m->arena));
}

/* Bytes of the largest copy of the typical iteration in that direction. */
static int64_t largest_copy(const making *m, uint32_t direction)
{
    const bz_events *c = &m->trace->event[BZ_EVENT_COPY];
    uint32_t typical = bz_typical_iteration(m->trace);
    int64_t most = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->value[i] == direction && c->bytes[i] > most && bz_event_iteration(m->trace, BZ_EVENT_COPY, i) == typical)
            most = c->bytes[i];
    return most;
}

/* How many of this tensor were copied, whatever the type was: bits, 1 of `times[k]` for elements of 1 << k bytes. 0: no whole number. */
static void copied_times(int64_t bytes, int64_t elements, int64_t times[4])
{
    for (int k = 0; k < 4; k++)
        times[k] = elements > 0 && bytes > 0 && bytes % (elements << k) == 0 ? bytes / (elements << k) : 0;
}

static int64_t largest_value(const bz_layers *l, bool input)
{
    const bz_model *model = l->model;
    int64_t most = 0;
    int n = !model ? 0 : input ? model->graph->n_inputs : model->graph->n_outputs;
    for (int i = 0; i < n; i++) {
        const bz_type *type = &l->types[input ? model->graph->inputs[i] : model->graph->outputs[i]];
        int64_t elements = bz_type_elements(type);
        most = elements > most ? elements : most;
    }
    return most;
}

/* Inputs are copied to the device in each iteration, and results back. Both in the same number say how large the batch was. `open`: they do
 * not. */
static const char *compare_copies(making *m, bool *open)
{
    int64_t batch = m->bound->layers->batch, in[4], out[4];
    *open = false;
    if (batch < 1)
        return NULL;
    copied_times(largest_copy(m, 1), largest_value(m->bound->layers, true) / batch, in);
    copied_times(largest_copy(m, 2), largest_value(m->bound->layers, false) / batch, out);
    int64_t found = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 1; k < 4; k++) /* results are numbers of 2 bytes at least */
            if (in[i] && in[i] == out[k]) {
                if (in[i] == batch)
                    return NULL;
                found = i == 2 || !found ? in[i] : found; /* mostly they have 4 bytes */
            }
    *open = !found;
    if (!found)
        return NULL;
    return bz_arena_printf(m->arena,
                           "ran batch %lld, by the sizes of what was copied to the device and back; the model is taken "
                           "with batch %lld: --batch %lld",
                           (long long)found, (long long)batch, (long long)found);
}

/* A model that trains does what a recording's way back does, which nobody tells apart by layer. */
static bool trains(const bz_bound *b)
{
    for (int i = 0; i < b->n; i++)
        if (strstr(b->layer[i].layer->kind, "grad"))
            return true;
    return false;
}

/* A convolution's way back is what a transposed convolution does, too. */
static const char *compare_purpose(making *m, const bz_align_work *ran)
{
    int own = 0;
    for (int i = 0; i < m->bound->n; i++)
        own += !strcmp(m->bound->layer[i].layer->kind, "convtranspose") ||
               !strcmp(m->bound->layer[i].layer->kind, "deconv");
    if (ran->backward - own < LEAST_BACKWARD)
        return NULL;
    return bz_arena_printf(m->arena,
                           "is of a training: %d of its steps are of the way back or of an optimizer, as %s; the model "
                           "only infers: --train makes an iteration of training of it",
                           ran->backward, ran->backward_name);
}

/* A training that adds up the gradients of several passes runs its model so often in an iteration: 0, where it does not run it once or more. Of a
 * short model a whole number of passes tells. */
static int passes_of(const bz_align_work *model, const bz_align_work *ran)
{
    bool short_one = model->n > 1 && ran->n >= LEAST_SEQUENCE && ran->n % model->n == 0;
    int common = 0, passes = model->n >= LEAST_SEQUENCE || short_one ? (ran->n + model->n / 2) / model->n : 0;
    for (int s = 0; s < BZ_WORK_SORTS; s++)
        common += ran->count[s] < passes * model->count[s] ? ran->count[s] : passes * model->count[s];
    return 2 * common >= SAME_SEQUENCE * (ran->n + passes * model->n) ? passes : 0;
}

/* What a recording has of an iteration of training besides its way back. A product of the way back is like any other where no operator is around it. */
static bool is_seen_forward(const making *m, int layer)
{
    const bz_layers *l = m->bound->layers;
    bool told = m->trace->event[BZ_EVENT_OP].n > 0;
    return l->phase[layer] == BZ_TRAIN_FORWARD ||
           (l->phase[layer] == BZ_TRAIN_BACKWARD && !told && bz_has_word("gemm matmul", l->layer[layer].kind));
}

/* Of an iteration of training its forward pass is held against that of the recording. Where each layer was recorded as an operator, a way back is
 * there if anything trains, and another sequence is another network. */
static const char *compare_training(making *m)
{
    const bz_layers *layers = m->bound->layers;
    bz_align_work ran, model = {0};
    const char *text = NULL;
    if (!layers->phase)
        return NULL;
    bz_align_work_take(m->trace, m->arena, &ran);
    for (int i = 0; i < layers->n; i++)
        if (is_seen_forward(m, i))
            bz_align_work_add(&model, &layers->layer[i]);
    int passes = passes_of(&model, &ran);
    if (ran.by_layer && !ran.backward && ran.n >= LEAST_SEQUENCE)
        text = "is of a program that only infers: none of its steps is of a way back; the model is taken as an "
               "iteration of "
               "training: leave out --train";
    else if (passes > 1)
        text = bz_arena_printf(m->arena,
                               "ran the model %d times in each iteration, as where gradients of several passes are "
                               "added up; the bound is of one pass: --batch with the samples of all %d is that of all",
                               passes, passes);
    else if (ran.by_layer && !passes)
        text = compare_sequences(m, &model, &ran);
    bz_align_work_free(&ran);
    bz_align_work_free(&model);
    return text;
}

static const char *compare(making *m, const bz_rebuilt *rebuilt, const bz_align_work *ran, bool *batch_open)
{
    BZ_SCOPED(bz_align_work) model = {0};
    *batch_open = false;
    for (int i = 0; i < m->bound->n; i++)
        if (is_run(m, i))
            bz_align_work_add(&model, m->bound->layer[i].layer);
    const char *text = compare_purpose(m, ran);
    if (!text && tells(m, rebuilt->layers, ran, &model)) {
        add_model(m);
        add_seen(m, rebuilt->layers);
        leave_out_unlogged(m);
        text = m->model > 0 ? compare_products(m) : NULL;
    } else if (!text && !convolves_by_products(*m, rebuilt->layers, ran)) {
        text = compare_kernels(m, ran);
        text = text ? text : compare_sequences(m, &model, ran);
        text = text ? text : compare_copies(m, batch_open);
    }
    bz_map_free(&m->known);
    return text;
}

const char *bz_align_foreign(const bz_bound *bound, const bz_trace *trace, bz_arena *arena, bool *batch_open)
{
    making m = {.bound = bound, .trace = trace, .arena = arena}, lean = m;
    bz_align_work ran;
    bz_rebuilt rebuilt;
    bool open;
    *batch_open = false;
    if (trains(bound))
        return compare_training(&m);
    bz_align_work_take(trace, arena, &ran);
    bz_rebuild(trace, arena, &rebuilt);
    const char *text = compare(&m, &rebuilt, &ran, batch_open);
    lean.lean = true;
    if (text && bound->fused.spares && !compare(&lean, &rebuilt, &ran, &open)) {
        text = NULL;
        *batch_open = open;
    }
    bz_align_work_free(&ran);
    return text;
}
