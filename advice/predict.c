/* What a step makes of a program's latency: what the profile shows of the program as it is, with the parts replaced that the
 * step changes, by records of what the library then takes by itself. Nothing here knows what the bound could be: a program
 * that leaves the choice to the library does not get the best variant.
 *
 * Whatever nobody can know before the step is taken stays an interval, and the prediction is its middle:
 *   - what the framework does itself takes, with half as many bytes, between half of its time and all of it. It computes in
 *     f32 all the same, so all is taken, with the conversions, but for new memory, which smaller tensors may be spared;
 *   - weights that have to come from memory in every iteration (records are hot) take between nothing more, where the
 *     arithmetic hides it, and what the memory takes for them. Where there are cold records, they tell. */
#include "advice/predict.h"
#include "advice/constants.h"
#include "advice/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    const bz_bound *b;
    const bz_ladder *l;
    const bz_trace *trace;
    const predict_step *step;
    const bz_picks *own, *other; /* as asked; in the step's type */
    const bz_picks *direct;      /* as asked in training: direct convolutions in blocked layouts */
    bz_arena *arena;
    prediction *out;
    double *seen;                            /* [b->n]: seconds of the calls of a layer; 0 none */
    double calls, call, call_low, call_high; /* of the library; the framework's own time around one */
    predict_reorders reorders;
    double resident; /* bytes of all weights */
} making;

/* ---- steps ---------------------------------------------------------------------------------- */

bool predict_read(const char *words, predict_step *out)
{
    static const struct {
        const char *name;
        bz_dtype dtype;
    } TYPES[] = {{"bf16", BZ_BF16}, {"f16", BZ_F16}};
    char word[64];
    *out = (predict_step){.patterns = words, .leaves = "", .only = ""};
    while (advice_word(&words, word)) {
        bool known = strchr(word, '+') != NULL;
        if (!strcmp(word, "leaves")) {
            out->leaves = words;
            return true;
        }
        if (!strcmp(word, "only")) {
            out->only = words;
            return true;
        }
        if (!strcmp(word, "library"))
            known = out->library = true;
        if (!strcmp(word, "blocked"))
            known = out->blocked = true;
        if (!strcmp(word, "pads"))
            known = out->pads = true;
        if (!strcmp(word, "constants"))
            known = out->constants = true;
        for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
            if (!strcmp(word, TYPES[i].name)) {
                out->dtype = TYPES[i].dtype;
                known = true;
            }
        if (!known)
            return false;
    }
    return true;
}

static bool has_word(const char *words, const char *wanted)
{
    char word[64];
    while (advice_word(&words, word))
        if (!strcmp(word, wanted))
            return true;
    return false;
}

/* ---- the program as it is ------------------------------------------------------------------- */

static bool is_product(const making *m, const bz_aligned *row)
{
    for (int k = 0; k < row->n_layers; k++)
        if (m->b->layer[row->layer[k]].layer->macs)
            return true;
    return false;
}

static int part_of_cause(bz_cause_kind cause)
{
    switch (cause) {
    case BZ_CAUSE_WEIGHTS_REORDERED:
    case BZ_CAUSE_ACTIVATIONS_REORDERED:
    case BZ_CAUSE_LAYOUT_CHANGED:
    case BZ_CAUSE_CONVERTED:
        return PREDICT_CONVERSIONS;
    case BZ_CAUSE_LAYERS_OUTSIDE:
        return PREDICT_LAYERS;
    case BZ_CAUSE_CONSTANTS_COMPUTED:
        return PREDICT_CONSTANTS;
    default:
        return PREDICT_REST;
    }
}

static void see(making *m)
{
    const bz_alignment *a = m->l->alignment;
    predict_part *part = m->out->part;
    double known = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        if (!row->n_layers || !(row->seconds > 0))
            continue;
        part[is_product(m, row) ? PREDICT_PRODUCTS : PREDICT_LAYERS].before += row->seconds;
        m->seen[row->layer[0]] += row->seconds;
    }
    for (int i = 0; i < a->n_causes; i++)
        part[part_of_cause(a->cause[i].kind)].before += a->cause[i].seconds;
    for (int i = 0; i < PREDICT_REST; i++)
        known += part[i].before;
    part[PREDICT_REST].before = m->l->latency - known;
}

/* Bytes that a problem reads and writes besides its weights; NAN where it has none. */
static double bytes_of(const char *text)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bz_problem p;
    bz_error err;
    double bytes = 0;
    bool weights = false;
    int n = bz_problem_parse(text, &p, &err) ? 0 : bz_problem_operands(&p, list);
    for (int i = 0; i < n; i++) {
        weights |= list[i].constant;
        bytes += list[i].constant ? 0 : (double)list[i].count * bz_dtype_bits(list[i].dtype) / 8;
    }
    return weights ? bytes : NAN;
}

/* The program's own calls with weights against their records: seen = slower × record + per_byte × bytes. The first is the
 * machine as it was then; the second is data that come from far, and results that go to memory which the system has to hand
 * out first. */
static void find_slower(making *m)
{
    const bz_regret *r = m->l->regret;
    int n = r ? r->n : 0, points = 0;
    double seen = 0, used = 0, slower;
    predict_point *more = BZ_NEW(m->arena, predict_point, n);
    for (int i = 0; i < n; i++) {
        const bz_regret_row *row = &r->row[i];
        double bytes = row->problem ? bytes_of(row->problem) : NAN;
        if (!(row->used > 0 && row->seen > 0) || isnan(bytes))
            continue;
        seen += row->calls * row->seen;
        used += row->calls * row->used;
        more[points++] = (predict_point){row->used, bytes, row->seen - row->used, row->calls};
    }
    m->out->slower = used > 0 ? seen / used : 1;
    if (!(seen > used))
        return;
    predict_fit(more, points, &slower, &m->out->per_byte);
    m->out->slower = 1 + slower;
}

/* The time between two calls that follow each other at once, as a reorder and its convolution: of all times between
 * calls the lower quartile. The others have work of the framework in them. */
static void find_call(making *m)
{
    const bz_events *c = &m->trace->event[BZ_EVENT_CALL];
    uint32_t typical = bz_typical_iteration(m->trace);
    double *gap = BZ_NEW(m->arena, double, c->n);
    int64_t last = INT64_MAX;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!bz_call_works(m->trace, i) || bz_event_iteration(m->trace, BZ_EVENT_CALL, i) != typical)
            continue;
        m->calls++;
        if (c->start[i] > last)
            gap[n++] = 1e-9 * (double)(c->start[i] - last);
        last = c->end[i];
    }
    bz_quantiles_of(gap, n); /* sorts */
    m->call_low = n ? gap[0] : 0;
    m->call = n ? gap[n / 4] : 0;
    m->call_high = n ? gap[n / 2] : 0;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void add(predict_part *p, double low, double high, double middle)
{
    p->low += low;
    p->high += high;
    p->after += middle;
}

/* Between `low` and `high`, nobody knows where. */
static void add_between(predict_part *p, double low, double high)
{
    add(p, low, high, (low + high) / 2);
}

/* What weights take longer from memory than from the cache that a record finds them in. */
static double from_memory(const making *m, double weights)
{
    const bz_peaks *peaks = m->b->peaks;
    if (!peaks || peaks->why || !peaks->n_bandwidth || !(weights > 0))
        return 0;
    double near = bz_peaks_traffic(peaks, weights), far = bz_peaks_traffic(peaks, m->resident) * weights / m->resident;
    return isfinite(near) && far > near ? far - near : 0;
}

static void add_pick(making *m, int part, const bz_pick *p, double times, bool cold)
{
    predict_part *to = &m->out->part[part];
    double slower = m->out->slower, high = p->high, middle = p->seconds, far = p->data * m->out->per_byte;
    if (cold && p->cold > 0) {
        double more = p->cold - p->seconds;
        high = fmax(high, p->cold);
        middle += more * p->weights / (p->weights + p->data);
    } else if (cold) {
        double more = from_memory(m, p->weights);
        high += more;
        middle += more / 2;
    }
    /* a library that keeps the data to itself may spare the way to memory */
    double near = m->step->library ? 0 : far;
    add(to, times * (p->low * fmin(1, slower) + near), times * (high * fmax(1, slower) + far),
        times * (middle * slower + (near + far) / 2));
}

static void add_calls(making *m, double calls)
{
    add(&m->out->part[PREDICT_REST], calls * m->call_low, calls * m->call_high, calls * m->call);
}

/* ---- groups --------------------------------------------------------------------------------- */

static int larger(const void *x, const void *y)
{
    const bz_bound_place *const *a = x, *const *b = y;
    return (*a)->n != (*b)->n ? (*b)->n - (*a)->n : (*a)->layer[0] - (*b)->layer[0];
}

/* The step's groups, the largest first: node[i] is the place that layer i of the main graph is in, or -1. */
static const bz_bound_place **find_groups(making *m, int *node, int *n)
{
    const bz_bound_fused *f = &m->b->fused;
    const bz_bound_place **list = BZ_NEW(m->arena, const bz_bound_place *, f->n_places);
    int kept = 0;
    *n = 0;
    for (int i = 0; i < m->b->dag->n; i++)
        node[i] = -1;
    for (int g = 0; g < f->n_places; g++)
        if (!f->place[g].refused && has_word(m->step->patterns, f->place[g].pattern) &&
            (!m->step->library || isfinite(m->own->place[g].seconds)))
            list[(*n)++] = &f->place[g];
    if (*n)
        qsort(list, (size_t)*n, sizeof *list, larger);
    for (int g = 0; g < *n; g++) {
        bool free = true;
        for (int k = 0; k < list[g]->n; k++)
            free &= node[list[g]->layer[k]] < 0;
        if (!free)
            continue;
        for (int k = 0; k < list[g]->n; k++)
            node[list[g]->layer[k]] = kept;
        list[kept++] = list[g];
    }
    *n = kept;
    return list;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* What new memory takes of a reorder. */
static double fresh(const making *m, double bytes)
{
    return bytes < m->reorders.fresh_from ? 0 : m->reorders.fresh * bytes;
}

/* A tensor's reorder in the step's type: as of a tensor of as many bytes, where it may be spared new memory, or of as many
 * elements; but no less than the library's code for that type takes, which may be a poorer one. */
static void add_reorder(making *m, const bz_layer *l, const bz_type *type, bool weights, double times)
{
    double bytes = bz_peaks_bytes(l, type, m->step->dtype), was = bz_peaks_bytes(l, type, BZ_UNDEFINED);
    double less = predict_reorder_time(&m->reorders, weights, bytes, m->arena);
    double more = predict_reorder_time(&m->reorders, weights, was, m->arena);
    if (!weights) {
        less -= fresh(m, bytes);
        more -= fresh(m, was) - fresh(m, bytes);
    }
    double least = bz_peaks_reorder(m->b->peaks, bytes * 8 / bz_dtype_bits(m->step->dtype), m->step->dtype);
    less = fmax(less, least);
    more = fmax(more, least);
    add_between(&m->out->part[PREDICT_CONVERSIONS], times * fmin(less, more), times * fmax(less, more));
}

/* Products by the library in another type, each with the reorders that the program has around its convolutions. */
static void change_type(making *m)
{
    predict_part *part = m->out->part;
    double ratio = (double)bz_dtype_bits(m->step->dtype) / 32, calls = 0;
    double layers = part[PREDICT_LAYERS].before;
    double spared = fmin(layers, predict_fresh(m->b, m->l->alignment, m->trace, ratio, m->arena));
    add(&part[PREDICT_LAYERS], (layers - spared) * ratio, layers, layers - spared);
    add_between(&part[PREDICT_REST], part[PREDICT_REST].before, part[PREDICT_REST].before);
    for (int i = 0; i < m->b->n; i++) {
        const bz_bound_layer *l = &m->b->layer[i];
        bool conv = bz_layer_has(l->layer, BZ_LAYER_CONVOLUTION);
        const bz_pick *p = conv ? &m->other->free[i] : &m->other->plain[i];
        if (!l->layer->macs) { /* computed in f32: what it reads and writes is converted */
            double elements = l->times * bz_peaks_bytes(l->layer, NULL, BZ_F32) / sizeof(float);
            double converted = bz_peaks_convert(m->b->peaks, elements, m->step->dtype);
            add(&part[PREDICT_LAYERS], 0, converted, converted);
            continue;
        }
        m->out->products++;
        if (!isfinite(p->seconds)) {
            add_between(&part[PREDICT_PRODUCTS], m->seen[i], m->seen[i]);
            m->out->unknown++;
            continue;
        }
        /* a reorder of the weights has just brought them near */
        add_pick(m, PREDICT_PRODUCTS, p, l->times, !conv || !m->reorders.n[1]);
        if (conv && l->layer->n_in > 1 && l->layer->n_out) {
            add_reorder(m, l->layer, &l->layer->in[0], false, l->times);
            add_reorder(m, l->layer, &l->layer->in[1], true, l->times);
            add_reorder(m, l->layer, &l->layer->out[0], false, l->times);
        }
        calls += l->times * (conv && m->reorders.n[0] ? PREDICT_REORDER_CALLS : p->calls);
    }
    if (calls > m->calls)
        add_calls(m, calls - m->calls);
}

static void add_unit(making *m, int part, const bz_pick *p, double times, double seen)
{
    if (isfinite(p->seconds)) {
        add_pick(m, part, p, times, true);
        add_calls(m, times * p->calls);
    } else {
        add_between(&m->out->part[part], seen, seen);
        m->out->unknown += part == PREDICT_PRODUCTS;
    }
    m->out->products += part == PREDICT_PRODUCTS;
}

/* x × sigmoid(x), which PyTorch's networks call as one operator: the product, and the sigmoid in *sigmoid. */
static bool is_silu(const making *m, int mul, int *sigmoid)
{
    const bz_dag *dag = m->b->dag;
    int from = dag->first[mul];
    if (strcmp(m->b->layers->layer[mul].kind, "mul") != 0 || dag->first[mul + 1] - from != 2)
        return false;
    for (int k = 0; k < 2; k++) {
        int s = dag->pred[from + k], x = dag->pred[from + 1 - k];
        *sigmoid = s;
        if (!strcmp(m->b->layers->layer[s].kind, "sigmoid") && dag->first[s + 1] - dag->first[s] == 1 &&
            dag->pred[dag->first[s]] == x)
            return true;
    }
    return false;
}

/* Layers that the step leaves to the framework, and what is done with nothing but their results until the next product. */
static bool *find_left(const making *m)
{
    const bz_dag *dag = m->b->dag;
    bool *node = BZ_NEW(m->arena, bool, dag->n);
    for (int i = 0; i < dag->n; i++) {
        const bz_layer *l = &m->b->layers->layer[i];
        int from = dag->first[i], to = dag->first[i + 1];
        node[i] = to > from && !l->macs;
        for (int k = from; k < to; k++)
            node[i] &= node[dag->pred[k]];
        node[i] |= has_word(m->step->leaves, l->kind);
        node[i] |= *m->step->only && to > from && l->class != BZ_VIEW && !has_word(m->step->only, l->kind);
    }
    for (int i = 0, sigmoid; i < dag->n && *m->step->only; i++)
        if (is_silu(m, i, &sigmoid) && !has_word(m->step->only, "silu"))
            node[i] = node[sigmoid] = true;
    return node;
}

/* Between the framework's layers and the library's every tensor is brought into the other's layout. */
static void add_borders(making *m, const bool *left)
{
    const bz_dag *dag = m->b->dag;
    for (int i = 0; i < dag->n; i++)
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++) {
            const bz_layer *from = &m->b->layers->layer[dag->pred[k]];
            if (left[i] == left[dag->pred[k]] || !from->n_out)
                continue;
            double bytes = bz_peaks_bytes(from, &from->out[0], BZ_UNDEFINED);
            double took = predict_reorder_time(&m->reorders, false, bytes, m->arena);
            add_between(&m->out->part[PREDICT_CONVERSIONS], took, took);
            add_calls(m, 1);
        }
}

/* Around what stays the framework's, the framework does what it did: its share of the rest, by its share of the layers' time. */
static void keep_rest(making *m, double left)
{
    predict_part *part = m->out->part;
    double layers = part[PREDICT_PRODUCTS].before + part[PREDICT_LAYERS].before;
    double rest = layers > 0 ? part[PREDICT_REST].before * fmin(1, left / layers) : 0;
    add_between(&part[PREDICT_REST], rest, rest);
}

static void change_library(making *m)
{
    int *node = BZ_NEW(m->arena, int, m->b->dag->n), n;
    const bz_bound_place **group = find_groups(m, node, &n);
    bool *left_node = find_left(m), *left = BZ_NEW(m->arena, bool, m->b->n);
    double seen = 0, products = 0;
    for (int g = 0; g < n; g++)
        add_unit(m, PREDICT_PRODUCTS, &m->own->place[group[g] - m->b->fused.place], 1, 0);
    for (int i = 0; i < m->b->n; i++) {
        const bz_bound_layer *l = &m->b->layer[i];
        if (node[l->node] >= 0)
            continue;
        left[i] = left_node[l->node];
        if (left[i] && l->layer->macs) {
            add_between(&m->out->part[PREDICT_PRODUCTS], m->seen[i], m->seen[i]);
            products += m->seen[i];
        } else {
            seen += left[i] ? m->seen[i] : 0;
        }
        if (!left[i])
            add_unit(m, l->layer->macs ? PREDICT_PRODUCTS : PREDICT_LAYERS, &m->own->free[i], l->times, m->seen[i]);
    }
    seen += predict_left(m->b, m->l->alignment, m->trace, left, m->arena);
    add_between(&m->out->part[PREDICT_LAYERS], seen, seen);
    keep_rest(m, products + seen);
    add_borders(m, left_node);
}

/* Are the weights what the model computes from others, such as their transpose? Nobody could prepare those ahead. */
static bool computes_weights(const making *m, const bz_layer *l)
{
    const bz_model *model = m->b->layers->model;
    return l->node && l->n_in > 1 && l->in_constant[1] && l->node->in[1] >= 0 && !model->values[l->node->in[1]].init;
}

/* In layouts of its choice the framework's own code is as much slower than the library's as it is now, in row-major order; but
 * never slower than `most`, nor than what it replaces. */
static void change_layout(making *m, int i, const bz_pick *free, double most)
{
    const bz_bound_layer *l = &m->b->layer[i];
    double seen = m->seen[i], as_now = seen / (m->own->plain[i].seconds * l->times);
    double after = fmin(free->seconds * fmax(1, as_now), most) * l->times;
    if (after < seen)
        add(&m->out->part[l->layer->macs ? PREDICT_PRODUCTS : PREDICT_LAYERS], free->low * l->times - seen, 0,
            after - seen);
}

/* Is it a padding that convolutions and pools read, and nothing else? */
static bool *find_pads(const making *m)
{
    const bz_dag *dag = m->b->dag;
    bool *pad = BZ_NEW(m->arena, bool, dag->n), *elsewhere = BZ_NEW(m->arena, bool, dag->n);
    for (int i = 0; i < dag->n && m->step->pads; i++)
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++)
            (bz_layer_has(&m->b->layers->layer[i], BZ_LAYER_WINDOW) ? pad : elsewhere)[dag->pred[k]] = true;
    for (int i = 0; i < dag->n; i++)
        pad[i] &= !elsewhere[i] && !strcmp(m->b->layers->layer[i].kind, "pad");
    return pad;
}

/* Layers that a product takes along: of those that read a second tensor, that is left to be read, one pass of three. What the
 * framework's step leaves is an operator of its own. */
static void change_groups(making *m)
{
    int *node = BZ_NEW(m->arena, int, m->b->dag->n), n;
    bool *pad = find_pads(m);
    predict_part *part = m->out->part;
    find_groups(m, node, &n);
    for (int i = 0; i < PREDICT_PARTS; i++)
        if (i != PREDICT_CONSTANTS)
            add_between(&part[i], part[i].before, part[i].before);
    for (int i = 0; i < m->b->n; i++) {
        const bz_layer *l = m->b->layer[i].layer;
        int at = m->b->layer[i].node, tensors = 0;
        m->out->products += l->macs > 0;
        /* direct code is like the library's: what it takes longer is data that come from far */
        if (m->step->blocked && bz_layer_has(l, BZ_LAYER_WINDOW))
            change_layout(m, i, &m->direct->free[i], m->direct->free[i].cold);
        else if (m->step->constants && l->macs && computes_weights(m, l))
            change_layout(m, i, &m->own->free[i], INFINITY);
        bool joined = node[at] >= 0 && !l->macs && !has_word(m->step->leaves, l->kind);
        if (!joined && !pad[at])
            continue;
        for (int k = 0; k < l->n_in; k++)
            tensors += !l->in_constant[k];
        double left = joined && tensors > 1 ? m->seen[i] / PREDICT_PASSES : 0;
        add(&part[PREDICT_LAYERS], -m->seen[i], left - m->seen[i], left - m->seen[i]);
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

static const bz_picks *find_picks(const bz_analysis *a, bz_dtype dtype, bool training)
{
    for (int i = 0; i < a->n_picks; i++)
        if (a->picks[i].dtype == dtype && a->picks[i].training == training)
            return &a->picks[i];
    return NULL;
}

bool predict(const bz_analysis *a, const bz_ladder *l, const bz_trace *trace, const predict_step *step, bz_arena *arena,
             prediction *out)
{
    making m = {.b = &a->bound, .l = l, .trace = trace, .step = step, .arena = arena, .out = out};
    *out = (prediction){0};
    if (l->on_device || !l->alignment || !l->alignment->timeline || !isfinite(l->latency))
        return false;
    bool training = l->regret && l->regret->training;
    m.own = find_picks(a, BZ_UNDEFINED, training);
    m.other = find_picks(a, step->dtype, training);
    m.direct = find_picks(a, BZ_UNDEFINED, true);
    if (!m.own || !m.other || !m.direct)
        return false;
    m.seen = BZ_NEW(arena, double, m.b->n);
    for (int i = 0; i < m.b->n; i++)
        m.resident += m.own->free[i].weights * m.b->layer[i].times;
    see(&m);
    find_slower(&m);
    find_call(&m);
    predict_reorders_find(trace, arena, &m.reorders);
    if (step->dtype)
        change_type(&m);
    else if (step->library)
        change_library(&m);
    else
        change_groups(&m);
    if (!step->constants)
        add_between(&out->part[PREDICT_CONSTANTS], out->part[PREDICT_CONSTANTS].before,
                    out->part[PREDICT_CONSTANTS].before);
    for (int i = 0; i < PREDICT_PARTS; i++) {
        const predict_part *p = &out->part[i];
        out->all.before += p->before;
        add(&out->all, p->low, p->high, p->after);
    }
    return out->products > 0 && out->unknown < out->products;
}
