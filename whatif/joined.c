/* A framework's own optimizer: convolutions in blocked layouts by direct code of its own, padding by what reads it, groups as one operator, and
 * nothing computed that depends on constants alone. All else stays as it was. */
#include "whatif/ways.h"

#include <math.h>

typedef struct {
    bz_whatif_asked *asked;
    bz_flow *flow;
    bz_layer_map map;
    bz_way way;
    const bz_picks *own, *direct; /* the library's picks as asked; the same in training, which are direct code */
    int *group;
    bool *pad;
    bool *blocked; /* [nodes]: its result lies in blocks */
    bool *gone;    /* [places of the map] */
    bz_tally layouts, joined, borders, constants;
} change;

/* Is it a padding that convolutions and pools read, and nothing else? */
static void find_pads(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    bool *other = BZ_NEW(c->asked->arena, bool, dag->n + 1);
    c->pad = BZ_NEW(c->asked->arena, bool, dag->n + 1);
    for (int i = 0; i < dag->n && c->way.pads; i++)
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++)
            (bz_layer_has(&b->layers->layer[i], BZ_LAYER_WINDOW) ? c->pad : other)[dag->pred[k]] = true;
    for (int i = 0; i < dag->n; i++)
        c->pad[i] &= !other[i] && !strcmp(b->layers->layer[i].kind, "pad");
}

/* Is it a convolution over a plane whose channels fill whole blocks? */
static bool begins_blocks(const bz_layer *l, int64_t block)
{
    bool whole;
    return !strcmp(l->kind, "conv") && l->n_in > 0 && l->in[0].rank == 4 && bz_way_fills(l, block, &whole) && whole;
}

/* Does the layer work on blocks where all that it reads lies in blocks: pools, element by element, or joining whole blocks? */
static bool keeps_blocks(const bz_layer *l, int64_t block)
{
    bool pool = bz_layer_has(l, BZ_LAYER_POOL), concat = !strcmp(l->kind, "concat");
    for (int k = 0; k < l->n_in; k++)
        if (!l->in_constant[k] && l->in[k].rank == 4 &&
            !(pool || (concat ? l->in[k].dims[1] % block == 0 : l->n_out && bz_way_same_shape(&l->in[k], &l->out[0]))))
            return false;
    return l->n_out && l->out[0].rank == 4;
}

static void find_blocked(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    int64_t block = bz_way_block(c->direct, c->asked->model->bound->n);
    c->blocked = BZ_NEW(c->asked->arena, bool, dag->n + 1);
    for (int i = 0; i < dag->n && c->way.blocked; i++) {
        const bz_layer *l = &b->layers->layer[i];
        if (bz_layer_has(l, BZ_LAYER_CONVOLUTION)) {
            c->blocked[i] = begins_blocks(l, block);
            continue;
        }
        c->blocked[i] = dag->first[i + 1] > dag->first[i] && keeps_blocks(l, block);
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++)
            c->blocked[i] &= c->blocked[dag->pred[k]];
    }
}

/* No faster than the library's code for it, nor than its bytes move. */
static int64_t border_time(const bz_way_borders *b, const bz_layer *l)
{
    const bz_peaks *peaks = b->map->asked->model->bound->peaks;
    double bytes = bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED), far = peaks ? bz_peaks_traffic(peaks, 2 * bytes) : 0;
    double seconds = fmax(bz_peaks_reorder(peaks, bytes / sizeof(float), BZ_F32), isfinite(far) ? far : 0);
    return isfinite(seconds) ? bz_layer_ns(seconds) : 0;
}

/* Are the weights what the model computes from others, such as their transpose? Nobody could prepare those ahead. */
static bool computes_weights(const change *c, const bz_layer *l)
{
    const bz_model *model = c->asked->model->bound->layers->model;
    return model && l->node && l->n_in > 1 && l->in_constant[1] && l->node->in[1] >= 0 &&
           !model->values[l->node->in[1]].init;
}

/* In layouts of its choice the framework's own code takes what the library's does, and of what it takes longer than its record now, in row-major order,
 * the weights' share; but never longer than with nothing near, where that is measured, nor than what it replaces. */
static void change_layout(change *c, const bz_layer_place *place, int at, const bz_pick *to, double most)
{
    double seen = 1e-9 * (double)place->time, now = seen / (place->share * c->own->plain[at].seconds);
    double after = bz_way_price(c->asked, place, to, false) * bz_way_slower(c->asked, to, fmax(c->asked->busy, now));
    after = fmin(after, most > 0 ? place->share * most : INFINITY);
    if (c->asked->side == 2)
        after = seen;
    if (!(after < seen))
        return;
    bz_tally_add(&c->layouts, place->time, bz_layer_ns(after));
    bz_layer_set(&c->map, place, bz_layer_ns(after));
}

/* A layer that a product takes along reads and writes nothing of its own; of a second tensor the reading is left. Is its task gone? */
static bool join(change *c, const bz_layer_place *place, const bz_layer *l, bool alone)
{
    double all = bz_peaks_bytes(l, NULL, BZ_UNDEFINED), second = 0;
    int tensors = 0;
    for (int k = 0; k < l->n_in; k++)
        if (!l->in_constant[k] && tensors++)
            second += bz_peaks_bytes(l, &l->in[k], BZ_UNDEFINED);
    int64_t left = !alone && all > 0 ? (int64_t)((double)place->time * fmin(1, second / all)) : 0;
    bz_tally_add(&c->joined, place->time, left);
    bz_layer_set(&c->map, place, left);
    bool gone = place->task != BZ_NONE && !left;
    if (gone)
        bz_flow_remove(c->flow, place->task, false);
    return gone;
}

static void change_place(change *c, int i)
{
    const bz_layer_place *place = &c->map.place[i];
    const bz_bound_layer *b = bz_way_layer(c->asked, place, 0);
    const bz_layer *l = b->layer;
    int at = place->layer[0];
    if (c->blocked[b->node] && bz_layer_has(l, BZ_LAYER_WINDOW))
        change_layout(c, place, at, &c->direct->free[at], c->direct->free[at].cold);
    else if (c->way.constants && l->macs && computes_weights(c, l))
        change_layout(c, place, at, &c->own->free[at], 0);
    if (place->n == 1 &&
        (c->pad[b->node] || (c->group[b->node] >= 0 && !l->macs && !bz_has_word(c->way.leaves, l->kind))))
        c->gone[i] = join(c, place, l, c->pad[b->node]);
}

static void tell(change *c)
{
    if (c->layouts.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "records of the library's direct code",
                         "%d layers in layouts of its choice: %s become %s, as the library's do", c->layouts.n,
                         BZ_SAY_TALLY(c->layouts));
    if (c->borders.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "what 'benanza system --measure' has of reorders",
                         "%d tensors of %s pass between layers in blocks and layers whose channels fill none",
                         c->borders.n, BZ_SAY_NS(c->borders.after));
    if (c->joined.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "the recording, and the bytes of second operands",
                         "%d layers become a part of the one before them: %s become %s", c->joined.n,
                         BZ_SAY_TALLY(c->joined));
    if (c->constants.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MEASURED, "the recording",
                         "%d operators on constants take %s: done once, ahead", c->constants.n,
                         BZ_SAY_NS(c->constants.before));
}

int bz_whatif_joined(bz_flow *flow, bz_whatif_asked *asked)
{
    change c = {.asked = asked, .flow = flow};
    if (bz_way_read(asked, &c.way))
        return -1;
    if (!bz_layer_map_make(flow, asked, &c.map))
        return 0;
    c.own = bz_way_picks(asked->model, BZ_UNDEFINED, false);
    c.direct = bz_way_picks(asked->model, BZ_UNDEFINED, true);
    if (!c.own || !c.direct)
        return bz_whatif_because(asked, "no records tell what the library takes for the model's layers");
    c.group = bz_way_groups(asked, &c.way, NULL);
    c.gone = BZ_NEW(asked->arena, bool, c.map.n + 1);
    find_pads(&c);
    find_blocked(&c);
    for (int i = 0; i < c.map.n; i++)
        change_place(&c, i);
    bz_way_borders b = {&c.map, c.blocked, c.gone, BZ_BORDER_ONCE, border_time, &c.borders};
    if (c.layouts.n && c.way.blocked)
        bz_way_add_borders(&b);
    for (uint32_t i = 0; i < c.map.n_constants && c.way.constants; i++) {
        bz_tally_add(&c.constants, flow->task[c.map.constant[i]].duration, 0);
        bz_flow_remove(flow, c.map.constant[i], false);
    }
    tell(&c);
    int changed = c.layouts.n + c.joined.n + c.constants.n;
    return changed ? changed : bz_whatif_because(asked, "nothing in it would change");
}
