/* Products in a type of 16 bits, on a processor: each takes what the ratio of two records says, of the library's own pick in that type and of
 * what the program used. The reorders around it stay, with tensors of half the bytes. What the framework does itself computes in 32 bits still and
 * converts what it reads and writes. */
#include "whatif/ways.h"

#include "training/training.h"
#include "whatif/constants.h"

#include <math.h>

typedef struct {
    bz_whatif_asked *asked;
    bz_flow *flow;
    bz_layer_map map;
    const bz_picks *picks;
    bz_dtype type;
    double ratio;      /* bytes */
    double below;      /* rate_below */
    bool brought_near; /* the program reorders around convolutions */
    bool hides;        /* its operators do, and no call of theirs is on record */
    int unknown, weights;
    bz_tally products, reorders, added, others, copies, steps; /* added: reorders */
    int64_t converting;                                        /* weights */
    double anew;     /* ns of memory that all that is written would be handed out in */
    int64_t was, is; /* of memory that is handed out anew */
} change;

static bool is_convolution(const bz_layer *l)
{
    return bz_layer_has(l, BZ_LAYER_CONVOLUTION | BZ_LAYER_CONVOLUTION_GRADIENT);
}

/* Half the bytes take half the time where memory is what limits a reorder, and as long as before where its elements do; but no less than the
 * library's code for that type takes, which may go element by element. */
static int64_t reorder_time(const change *c, int64_t was, double elements)
{
    const double share[BZ_WHATIF_SIDES] = {c->ratio, (1 + c->ratio) / 2, 1};
    double least = 1e9 * bz_peaks_reorder(c->asked->model->bound->peaks, elements, c->type);
    return (int64_t)(fmax(least, (double)was * share[c->asked->side]) + 0.5);
}

/* The library's code for convolutions of one point (jit_bf16_1x1) sums in a block in f32 as large as the result: MobileNet-v2's first one to 96 channels of
 * 112x112 takes and frees 4.8 MB, where no tensor has more than 2.4. 0: it takes none. */
static double summing(const change *c, const bz_layer *l, int at)
{
    const char *variant = at < 0 ? NULL : c->picks->free[at].variant;
    return variant && strstr(variant, "bf16_1x1") ? bz_peaks_bytes(l, &l->out[0], BZ_F32) : 0;
}

/* What a call takes longer than its record is operands that come from far: of half the bytes, half of that. Those of a convolution have just
 * been reordered, which brought them near. An operator that hides its reorders keeps them. */
static void change_product(change *c, const bz_layer_place *place)
{
    const bz_bound_layer *l = bz_way_layer(c->asked, place, 0);
    for (int k = 1; k < place->n && !l->layer->macs; k++)
        l = bz_way_layer(c->asked, place, k);
    int at = (int)(l - c->asked->model->bound->layer);
    bool conv = is_convolution(l->layer);
    const bz_pick *to = conv ? &c->picks->free[at] : &c->picks->plain[at];
    if (!isfinite(to->seconds)) {
        c->unknown++;
        bz_tally_add(&c->products, place->time, place->time);
        return;
    }
    double slower = bz_layer_slower(&c->map, place) / c->asked->busy, took = 1e-9 * (double)place->time;
    double far = slower > 1 && !(conv && c->brought_near) ? took * (1 - 1 / slower) * c->ratio : 0,
           near = slower > 1 ? 1 : slower;
    double seconds, bytes = bz_layer_hidden(&c->map, place, &seconds);
    int64_t after = bz_layer_ns(bz_way_price(c->asked, place, to, !conv) * near + far);
    if (bytes > 0)
        after = bz_flow_sum(after, reorder_time(c, bz_layer_ns(fmax(0, seconds)), bytes / sizeof(float)));
    c->anew += c->ratio * (double)bz_layer_anew(&c->map, place) + (conv ? c->map.anew * summing(c, l->layer, at) : 0);
    c->hides |= bytes > 0;
    bz_layer_set(&c->map, place, after);
    bz_tally_add(&c->products, place->time, after);
}

/* What a byte takes in the largest reorder whose block the C library has already: it hands out one above MAPPED anew each time. 0: there is none. */
static double rate_below(const bz_flow *flow, const bz_trace *trace, uint32_t n)
{
    double most = 0, rate = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bz_task *t = &flow->task[i];
        double bytes = bz_layer_is_reorder(t) ? bz_call_bytes(bz_call_of(trace, t->event)) : 0;
        if (bytes > most && bytes <= MAPPED) {
            most = bytes;
            rate = (double)t->was / bytes;
        }
    }
    return rate;
}

/* What a reorder took, without the pages that it wrote; where its block becomes one that is not handed out anew, no longer than others of that size take for
 * a byte. */
static int64_t without_mapping(const change *c, const bz_task *t, double bytes)
{
    double near = bytes > MAPPED && bytes * c->ratio <= MAPPED ? c->below * bytes : 0;
    int64_t time = near > 0 && near < (double)t->duration ? (int64_t)near : t->duration;
    return c->asked->side < 2 ? (int64_t)fmax(0, (double)time - c->map.anew * bytes) : time;
}

static void change_reorder(change *c, uint32_t task)
{
    bz_task *t = &c->flow->task[task];
    const bz_call *call = bz_call_of(c->asked->trace, t->event);
    c->anew += c->ratio * c->map.anew * bz_call_bytes(call);
    int64_t near = without_mapping(c, t, bz_call_bytes(call)),
            after = reorder_time(c, near, call->elements > 0 ? (double)call->elements : 0);
    bz_tally_add(&c->reorders, t->duration, after);
    bz_flow_set(c->flow, task, after);
}

/* Behind the last task with layers there may be a reorder of that one's result; what is more is of this one's data and weights. */
static bool reordered(const change *c, uint32_t task, bool previous)
{
    int before = 0;
    for (uint32_t i = c->flow->task[task].prev; i != BZ_NONE && !(i < c->map.n_tasks && c->map.works[i]);
         i = c->flow->task[i].prev)
        before += i < c->map.n_tasks && bz_layer_is_reorder(&c->flow->task[i]);
    return before > previous;
}

/* A framework that reorders around the library's convolutions may have others of its own, as products of matrices. In the other type they are
 * the library's, too: their data, their weights and their result are reordered. */
static bool add_reorders(change *c, const bz_layer_place *place, bool previous)
{
    const bz_layer *l = bz_way_layer(c->asked, place, 0)->layer;
    double seconds;
    if (!is_convolution(l) || place->task == BZ_NONE || l->n_in < 2 || !l->n_out ||
        bz_layer_hidden(&c->map, place, &seconds) > 0)
        return false;
    if (reordered(c, place->task, previous))
        return true;
    const bz_type *type[] = {&l->in[0], &l->in[1], &l->out[0]};
    for (int k = 0; k < 3; k++) {
        double bytes = bz_peaks_bytes(l, type[k], BZ_UNDEFINED);
        int64_t time = reorder_time(c, bz_layer_reorder(&c->map, bytes), bytes / sizeof(float));
        bz_flow_insert(c->flow, BZ_TASK_CALL, "reorder", place->task, k < 2 ? BZ_BEFORE : BZ_BEHIND, time,
                       c->map.call[c->asked->side]);
        c->anew += c->ratio * c->map.anew * bytes;
        bz_tally_add(&c->added, 0, time);
    }
    return false;
}

/* The library's code for matrix units, and what it calls brgemm, computes channels last, and leaves its result so. A framework that keeps its tensors
 * in row-major order copies that element by element: each fetches a line of its own, from the cache that holds both tensors. */
static void add_copy(change *c, const bz_layer_place *place)
{
    const bz_bound_layer *b = bz_way_layer(c->asked, place, 0);
    const bz_layer *l = b->layer;
    const bz_peaks *peaks = c->asked->model->bound->peaks;
    const char *variant = c->picks->free[place->layer[0]].variant;
    if (!is_convolution(l) || !strcmp(l->kind, "conv_weights") || place->task == BZ_NONE || !l->n_out || !variant ||
        !(strstr(variant, "amx") || strstr(variant, "brgconv")) || !peaks || peaks->why)
        return;
    double elements = bz_peaks_bytes(l, &l->out[0], BZ_F32) / sizeof(float),
           bytes = elements * bz_dtype_bits(c->type) / 8;
    int64_t time = bz_layer_ns(bz_peaks_traffic(peaks, 2 * bytes) * LINE * elements / (2 * bytes));
    bz_flow_insert(c->flow, BZ_TASK_CALL, "copy", place->task, BZ_BEHIND, time, 0);
    bz_tally_add(&c->copies, 0, time);
}

/* The products of a recurrent layer that the framework computes step by step: gates lie between them in f32 or not, so that none, one or two operators
 * convert for each. */
static void convert_steps(change *c, const bz_layer_place *place)
{
    const bz_bound_layer *b = bz_way_layer(c->asked, place, 0);
    if (place->row->kind != BZ_ALIGNED_SPLIT || place->task == BZ_NONE || !b->lowering || !b->lowering->n ||
        !bz_problem_has(b->lowering->alternative[0].problem, BZ_TRAIT_RECURRENT))
        return;
    int64_t time = bz_layer_ns(1e-6 * c->asked->side * OPERATOR_TAKES[c->asked->side]);
    bz_flow_insert(c->flow, BZ_TASK_CALL, "convert", place->task, BZ_BEHIND, time, 0);
    bz_tally_add(&c->steps, 0, time);
}

/* A program that trains keeps its weights in f32: in each iteration those of products are converted, and their gradients back, each in an operator of
 * the framework's own. Tables that are looked up stay, and vectors that no product reads. */
static void convert_weights(change *c)
{
    const bz_layers *layers = c->asked->model->bound->layers;
    uint32_t first = BZ_NONE, last = BZ_NONE;
    for (int i = 0; i < c->map.n; i++)
        if (c->map.place[i].task != BZ_NONE && bz_way_is_product(c->asked, &c->map.place[i])) {
            last = c->map.place[i].task;
            first = first == BZ_NONE ? last : first;
        }
    if (!layers->training || first == BZ_NONE)
        return;
    enum { TABLE = 1, PRODUCT = 2 };
    unsigned char *read = BZ_NEW(c->asked->arena, unsigned char, layers->model->n_values + 1);
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        for (int k = 0; k < l->node->n_in; k++)
            if (l->node->in[k] >= 0)
                read[l->node->in[k]] |= l->macs > 0 ? PRODUCT : !strcmp(l->kind, "gather") ? TABLE : 0;
    }
    double seconds = 0;
    for (int i = 0; i < layers->training->n_weights; i++) {
        const bz_weight *w = &layers->training->weight[i];
        if (w->gradient < 0 || !(read[w->value] & PRODUCT || (w->type.rank > 1 && !(read[w->value] & TABLE))))
            continue;
        seconds += 1e-6 * OPERATOR_TAKES[c->asked->side] +
                   bz_peaks_convert(c->asked->model->bound->peaks, (double)w->elements, c->type);
        c->weights++;
    }
    if (!c->weights)
        return;
    int64_t time = bz_layer_ns(seconds);
    bz_flow_insert(c->flow, BZ_TASK_CALL, "convert", first, BZ_BEFORE, time, 0);
    bz_flow_insert(c->flow, BZ_TASK_CALL, "convert", last, BZ_BEHIND, time, 0);
    c->converting = bz_flow_sum(time, time);
}

/* How often a layer that the framework does itself converts an element. Each operand and result once; a pool what each window holds; and the SiLU of PyTorch 1.13
 * the operands and results of four steps (-x, exp, 1 +, x /: aten/src/ATen/native/cpu/Activation.cpp), ten where its two layers have five. */
static double conversions(const change *c, const bz_bound_layer *b)
{
    const bz_layer *l = b->layer;
    const bz_param *window = bz_layer_param(l, "kernel");
    double all = bz_peaks_bytes(l, NULL, BZ_F32) / sizeof(float),
           result = bz_peaks_bytes(l, &l->out[0], BZ_F32) / sizeof(float);
    int sigmoid;
    if (bz_way_is_silu(c->asked->model->bound, b->node, &sigmoid))
        return all + 5 * result;
    if (!bz_layer_has(l, BZ_LAYER_POOL) || !window)
        return all;
    for (int k = 0; k < window->n && k < 3; k++)
        result *= (double)window->v[k];
    return fmax(all, result);
}

/* Half of what moves its bytes goes; what computes on each element converts it. Memory that is handed out anew is added for all layers together. */
static void change_other(change *c, const bz_layer_place *place)
{
    double convert = 0, traffic = 0, was = (double)place->time;
    const bz_peaks *peaks = c->asked->model->bound->peaks;
    for (int k = 0; k < place->n; k++) {
        const bz_layer *l = bz_way_layer(c->asked, place, k)->layer;
        double bytes = bz_peaks_bytes(l, NULL, BZ_F32);
        if (l->n_out)
            convert += 1e9 * bz_peaks_convert(peaks, conversions(c, bz_way_layer(c->asked, place, k)), c->type);
        traffic += peaks && !peaks->why ? 1e9 * bz_peaks_traffic(peaks, bytes) : 0;
    }
    double anew = (double)bz_layer_anew(&c->map, place), own = was - anew, half = fmin(own, traffic) * (1 - c->ratio),
           after = c->asked->side == 0   ? own * c->ratio
                   : c->asked->side == 1 ? own - half + convert
                                         : was + convert;
    c->anew += c->ratio * anew;
    int64_t time = bz_layer_ns(1e-9 * after);
    bz_tally_add(&c->others, place->time, time);
    bz_layer_set(&c->map, place, time);
}

static bool has_constant_tensor(const bz_layer *l)
{
    for (int k = 0; k < l->n_in; k++)
        if (l->in_constant[k] && l->in[k].rank > 0)
            return true;
    return false;
}

/* [nodes]: a layer normalization begins there, as a layer or written out. */
static bool *find_normalizations(const change *c)
{
    const bz_bound *b = c->asked->model->bound;
    bool *begins = BZ_NEW(c->asked->arena, bool, b->dag->n + 1);
    for (int i = 0; i < b->dag->n; i++)
        begins[i] = !strcmp(b->layers->layer[i].kind, "layernorm");
    for (int g = 0; g < b->fused.n_places; g++)
        if (!strcmp(b->fused.place[g].pattern, "layernorm"))
            begins[b->fused.place[g].layer[0]] = true;
    return begins;
}

/* A product's result is of the type, and so is what is computed of such alone; a second operand in f32, a weight too, makes the result f32. A
 * normalization with weights of f32 that reads the type: NULL where there is none. */
static const char *find_mixed(const change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    bool *low = BZ_NEW(c->asked->arena, bool, dag->n + 1), *normalization = find_normalizations(c);
    for (int i = 0; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        low[i] = l->macs > 0 || dag->first[i + 1] > dag->first[i];
        for (int k = dag->first[i]; k < dag->first[i + 1] && !l->macs; k++)
            low[i] &= low[dag->pred[k]];
        if (low[i] && normalization[i])
            return l->name;
        low[i] &= l->macs > 0 || !bz_has_word("add sub mul div", l->kind) || !has_constant_tensor(l);
    }
    return NULL;
}

/* Does the program take no memory anew, with tensors of the type? It holds what a layer reads, once more for a convolution, in blocks, with the weights; its
 * result, behind a convolution in blocks and in rows; and what waits for layers behind it. What computes on each element of one tensor does it in place. */
static bool keeps_memory(const change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    const double *waiting = bz_way_waiting(c->asked, c->type);
    double most = 0, largest = 0;
    int *at = BZ_NEW_NONE(c->asked->arena, int, dag->n + 1);
    for (int i = 0; i < b->n; i++)
        at[b->layer[i].node] = i;
    for (int i = 0, sigmoid; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        const bool conv = is_convolution(l), silu = bz_way_is_silu(b, i, &sigmoid);
        double reads = 0, blocks = 0, result = l->n_out ? bz_peaks_bytes(l, &l->out[0], c->type) : 0,
               f32 = l->n_out && conv ? summing(c, l, at[i]) : 0;
        for (int k = 0; k < l->n_in; k++) {
            double bytes = bz_peaks_bytes(l, &l->in[k], c->type);
            reads += l->in_constant[k] || (silu && k) ? 0 : bytes;
            blocks += conv ? bytes : 0;
            largest = fmax(largest, l->in_constant[k] && !conv ? 0 : bytes);
        }
        largest = fmax(largest, fmax(result, f32));
        bool in_place = l->class == BZ_VIEW || (!l->macs && reads == result && !has_constant_tensor(l));
        most = fmax(most, waiting[i] + reads + (in_place ? 0 : result) + blocks + (conv ? fmax(result, f32) : 0));
    }
    return bz_way_keeps_memory(most, largest);
}

/* Pages lie in few of the tasks, and nobody knows in which: all others' times are told without them, and what the changed program takes is one task. */
static void add_memory(change *c)
{
    double pages, spared;
    bz_whatif_anew(c->asked->trace, &pages, &spared);
    c->was = bz_layer_ns(1e-9 * spared * (double)c->flow->measured);
    c->is = c->asked->side == 1 && !keeps_memory(c) ? bz_layer_ns(1e-9 * fmin(c->anew, (double)c->was)) : 0;
    for (int i = 0; i < c->map.n && c->is; i++)
        if (c->map.place[i].task != BZ_NONE) {
            bz_flow_insert(c->flow, BZ_TASK_CALL, "memory", c->map.place[i].task, BZ_BEHIND, c->is, 0);
            return;
        }
}

static void tell(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const char *mixed = find_mixed(c);
    if (mixed)
        c->asked->unsure = bz_arena_printf(
            c->asked->arena, "%s would read %s with weights of f32: PyTorch 1.13 ends with an error there", mixed,
            bz_dtype_name(c->type));
    bz_whatif_assume(
        c->asked, BZ_ASSUMED_MEASURED, "records of the library's picks",
        "%d products: %s become %s, as the library's own pick in %s, and half of what other calls take longer than "
        "their records%s",
        c->products.n - c->unknown, BZ_SAY_TALLY(c->products), bz_dtype_name(c->type),
        c->unknown ? bz_arena_printf(c->asked->arena, "; %d without a record take what they took", c->unknown) : "");
    if (c->reorders.n || c->added.n)
        bz_whatif_assume(
            c->asked, BZ_ASSUMED_MODELLED, "the recording, and what 'benanza system --measure' has",
            "%d reorders move %g times the bytes, and %d come around convolutions that had none: %s become %s",
            c->reorders.n, c->ratio, c->added.n, BZ_SAY_NS(c->reorders.before),
            BZ_SAY_NS(bz_flow_sum(c->reorders.after, c->added.after)));
    if ((double)c->was > PROCESSES * (double)c->flow->measured)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "the recording's pages, by the bytes that are written",
                         "memory that is handed out anew takes %s, and then %s%s", BZ_SAY_NS(c->was), BZ_SAY_NS(c->is),
                         c->is ? "" : ": an iteration holds less at once than the C library gives back");
    if (c->copies.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "what 'benanza system --measure' has of memory",
                         "%d results that the library leaves channels last are copied into row-major order in %s",
                         c->copies.n, BZ_SAY_NS(c->copies.after));
    if (c->steps.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_GUESSED, "what a short operator of a framework takes",
                         "around %d products in steps of recurrent layers operands are converted: %s", c->steps.n,
                         BZ_SAY_NS(c->steps.after));
    if (c->weights)
        bz_whatif_assume(c->asked, BZ_ASSUMED_GUESSED,
                         "what 'benanza system --measure' has, and what an operator takes",
                         "%d weights are converted in each iteration, and their gradients back: %s", c->weights,
                         BZ_SAY_NS(c->converting));
    if (c->others.n)
        bz_whatif_assume(c->asked, b->peaks && !b->peaks->why ? BZ_ASSUMED_MODELLED : BZ_ASSUMED_GUESSED,
                         "the recording", "%d other layers compute in f32 and convert: %s become %s", c->others.n,
                         BZ_SAY_TALLY(c->others));
}

int bz_whatif_products(bz_flow *flow, bz_whatif_asked *asked)
{
    change c = {.asked = asked, .flow = flow, .type = BZ_UNDEFINED};
    const char *name = asked->text ? asked->text : "bf16";
    c.type = !strcmp(name, "bf16") ? BZ_BF16 : !strcmp(name, "f16") ? BZ_F16 : BZ_UNDEFINED;
    if (!c.type)
        return bz_fail(asked->err, BZ_USAGE, "%s: wants bf16 or f16", asked->row->name);
    if (!bz_layer_map_make(flow, asked, &c.map))
        return 0;
    c.picks = bz_way_own_picks(asked->model, c.type);
    if (!c.picks)
        return bz_whatif_because(asked, "no records tell what the library takes in %s", name);
    c.ratio = (double)bz_dtype_bits(c.type) / 32;
    c.below = rate_below(flow, asked->trace, c.map.n_tasks);
    c.map.keeps_memory = c.map.anew > 0; /* reorders are told without pages, where those are known */
    for (uint32_t i = 0; i < c.map.n_tasks; i++)
        c.brought_near |= !flow->task[i].removed && bz_layer_is_reorder(&flow->task[i]);
    for (int i = 0; i < c.map.n; i++)
        if (bz_way_is_product(asked, &c.map.place[i]) && c.map.place[i].task != BZ_NONE)
            change_product(&c, &c.map.place[i]);
        else /* a product without a call is the framework's own, too */
            change_other(&c, &c.map.place[i]);
    if (c.unknown == c.products.n)
        return bz_whatif_because(asked, "none of %d products has a record in %s", c.products.n, name);
    for (uint32_t i = 0; i < c.map.n_tasks; i++)
        if (!flow->task[i].removed && bz_layer_is_reorder(&flow->task[i]))
            change_reorder(&c, i);
    bool previous = false; /* did the last task with layers have reorders of its own? */
    for (int i = 0; i < c.map.n; i++) {
        const bz_layer_place *place = &c.map.place[i];
        convert_steps(&c, place);
        if (place->task == BZ_NONE || (i && place->layer[0] == place[-1].layer[0])) /* one of several calls: one now */
            continue;
        if (c.reorders.n || c.hides)
            previous = add_reorders(&c, place, previous);
        add_copy(&c, place);
    }
    convert_weights(&c);
    add_memory(&c);
    tell(&c);
    return c.products.n + c.reorders.n + c.added.n + c.others.n;
}
