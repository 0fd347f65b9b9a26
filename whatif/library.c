/* The library does all layers that a framework's step gives it, in layouts of its choice, with weights prepared ahead: each takes what the record
 * of the library's own pick says, groups are one call, reorders go. What stays the framework's stays as it was, and every tensor that passes
 * between both is reordered. */
#include "whatif/constants.h"
#include "whatif/records.h"
#include "whatif/ways.h"

#include <math.h>

typedef struct {
    bz_whatif_asked *asked;
    bz_flow *flow;
    bz_layer_map map;
    bz_way way;
    const bz_picks *picks;
    int *group;   /* [nodes]: place of the bound, or -1 */
    bool *left;   /* [nodes]: stays the framework's */
    bool *narrow; /* [nodes]: of the library's; its result lies in narrower blocks than others */
    bool *gone;   /* [places of the map]: another one does it */
    int products, unknown, joined, kept;
    bz_tally done, reorders, borders, turned, inside,
        normalized; /* of reorders that come what is after, of what goes what is before */
    int64_t not_known, kept_memory;
    double far, later;      /* bytes of weights of which no record tells what they take from memory; seconds by loops */
    const char *unmeasured; /* problems that no record tells, as options of 'benanza gen' */
} change;

/* Layers that the step leaves to the framework, and what reads one of their results: that passes to the library at the next product alone. */
static void find_left(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    c->left = BZ_NEW(c->asked->arena, bool, dag->n + 1);
    for (int i = 0; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        int from = dag->first[i], to = dag->first[i + 1], g = c->group[i];
        if (g >= 0 && b->fused.place[g].layer[0] != i) {
            c->left[i] = c->left[b->fused.place[g].layer[0]];
            continue;
        }
        for (int k = from; k < to && !l->macs; k++)
            c->left[i] |= c->left[dag->pred[k]];
        const char *kind = bz_layer_step_kind(l);
        c->left[i] |= bz_has_word(c->way.leaves, kind);
        c->left[i] |= *c->way.only && (to > from || l->macs) && l->class != BZ_VIEW && !bz_has_word(c->way.only, kind);
    }
    for (int i = 0, sigmoid; i < dag->n && *c->way.only; i++)
        if (bz_way_is_silu(b, i, &sigmoid) && !bz_has_word(c->way.only, "silu"))
            c->left[i] = c->left[sigmoid] = true;
}

/* Bytes that the largest layer holds at once: what it reads, of what passes between the library and the framework a copy, and its result where that
 * needs memory of its own. */
static double held_at_once(const change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    double most = 0;
    for (int i = 0, sigmoid; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        bool own = l->macs || c->left[i];
        double sum = 0;
        if (!bz_way_is_silu(b, i, &sigmoid))
            sigmoid = -1;
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++) {
            const bz_layer *from = &b->layers->layer[dag->pred[k]];
            if (dag->pred[k] == sigmoid || !from->n_out || !l->n_out)
                continue;
            own |= !bz_way_same_shape(&from->out[0], &l->out[0]);
            sum += bz_peaks_bytes(from, &from->out[0], BZ_UNDEFINED) * (c->left[i] == c->left[dag->pred[k]] ? 1 : 2);
        }
        most = fmax(most, sum + (own && l->n_out ? bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED) : 0));
    }
    return most;
}

static bool keeps_memory(const change *c)
{
    const bz_layers *layers = c->asked->model->bound->layers;
    double largest = 0;
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        for (int k = 0; k < l->n_in; k++)
            largest = fmax(largest, bz_peaks_bytes(l, &l->in[k], BZ_UNDEFINED));
        for (int k = 0; k < l->n_out; k++)
            largest = fmax(largest, bz_peaks_bytes(l, &l->out[k], BZ_UNDEFINED));
    }
    return bz_way_keeps_memory(held_at_once(c), largest);
}

/* A layer of the framework's own, in memory that is kept now. */
static void keep(change *c, const bz_layer_place *place)
{
    int64_t anew = bz_layer_anew(&c->map, place);
    c->kept++;
    if (c->map.keeps_memory && c->asked->side < 2 && anew > 0) {
        bz_layer_set(&c->map, place, place->time - anew);
        c->kept_memory = bz_flow_sum(c->kept_memory, anew);
    }
}

static bool stays(const change *c, const bz_layer_place *place)
{
    for (int k = 0; k < place->n; k++)
        if (!c->left[bz_way_layer(c->asked, place, k)->node])
            return false;
    return true;
}

/* A program that asks as for training gets another implementation of a convolution than one that infers. Where nobody noted which it gets for
 * a group, the group takes as many times what its product takes there as it does in inference. */
static const bz_pick *price_of_group(const change *c, int g)
{
    const bz_pick *own = &c->picks->place[g], *other;
    const bz_picks *inference = c->picks->training ? bz_way_picks(c->asked->model, BZ_UNDEFINED, false) : NULL;
    const bz_bound *b = c->asked->model->bound;
    if (!inference || own->seconds != (other = &inference->place[g])->seconds)
        return own;
    for (int i = 0; i < b->n; i++) {
        double by = c->picks->free[i].seconds / inference->free[i].seconds;
        if (b->layer[i].node != b->fused.place[g].layer[0] || !isfinite(by) || by <= 0)
            continue;
        bz_pick *scaled = bz_arena_dup(c->asked->arena, other, sizeof *other);
        scaled->seconds *= by;
        scaled->low *= by;
        scaled->high *= by;
        scaled->cold *= by;
        return scaled;
    }
    return own;
}

/* The group of the place, or -1; and whether another place, which has the group's first layer, does the work. */
static int group_of(const change *c, const bz_layer_place *place, bool *joined)
{
    const bz_bound *b = c->asked->model->bound;
    *joined = false;
    for (int k = 0; k < place->n; k++) {
        int node = bz_way_layer(c->asked, place, k)->node, g = c->group[node];
        if (g < 0)
            continue;
        *joined = node != b->fused.place[g].layer[0];
        for (int j = 0; j < place->n && *joined; j++)
            *joined = bz_way_layer(c->asked, place, j)->node != b->fused.place[g].layer[0];
        return g;
    }
    return -1;
}

/* What the place becomes. NULL: nobody knows. */
static const bz_pick *price_of(const change *c, const bz_layer_place *place, int group)
{
    if (group >= 0)
        return price_of_group(c, group);
    const bz_pick *pick = &c->picks->free[place->layer[0]];
    return isfinite(pick->seconds) ? pick : NULL;
}

/* What the place multiplies, and by which code; NULL: no matrices. Of an operator the model tells it, and PyTorch's call BLAS in f32. */
static const bz_problem *product_of(const change *c, const bz_layer_place *place, const char **variant)
{
    const bz_task *t = place->task == BZ_NONE ? NULL : &c->flow->task[place->task];
    const bz_call *call = t && t->event_kind == BZ_EVENT_CALL ? bz_call_of(c->asked->trace, t->event) : NULL;
    const bz_bound_layer *b = bz_way_layer(c->asked, place, 0);
    const bz_problem *problem = call ? call->problem : NULL;
    bool weights = t && t->event_kind == BZ_EVENT_OP && b->layer->n_in > 1 && b->layer->in_constant[1];
    for (int i = 0; weights && b->lowering && i < b->lowering->n; i++)
        if (!problem || problem->post[0].fn != BZ_FN_NONE) /* BLAS adds no bias */
            problem = b->lowering->alternative[i].problem;
    *variant = !call ? "sgemm" : place->row->variant ? place->row->variant : t->name; /* BLAS has one of each name */
    return problem && problem->kind == BZ_PROBLEM_GEMM ? problem : NULL;
}

/* A product of weights that the framework keeps, with the weights the other way round: as many times what it took as the records of the code that it
 * calls say. Seconds; NAN where no record tells. */
static int price_turned(change *c, const bz_layer_place *place, const bz_problem *problem, const char *variant,
                        double *out)
{
    double was, is, best;
    bz_problem turned = *problem;
    turned.gemm.transb = !turned.gemm.transb;
    if (bz_whatif_price(c->asked, problem, variant, &was, &best) ||
        bz_whatif_price(c->asked, &turned, variant, &is, &best))
        return -1;
    *out = 1e-9 * (double)place->time * is / was;
    if (!isfinite(*out)) {
        bz_arena *arena = c->asked->arena;
        const char *option = bz_arena_printf(arena, " --problem '%s'", bz_problem_text(&turned, arena));
        if (!c->unmeasured)
            c->unmeasured = option;
        else if (!strstr(c->unmeasured, option))
            c->unmeasured = bz_arena_printf(arena, "%s%s", c->unmeasured, option);
    }
    return 0;
}

static int turn_weights(change *c)
{
    for (int i = 0; i < c->map.n; i++) {
        const bz_layer_place *place = &c->map.place[i];
        const char *variant;
        const bz_problem *problem = product_of(c, place, &variant);
        double after;
        if (!stays(c, place) || !problem)
            continue;
        if (price_turned(c, place, problem, variant, &after))
            return -1;
        if (!isfinite(after)) {
            c->not_known = bz_flow_sum(c->not_known, place->time);
            continue;
        }
        bz_tally_add(&c->turned, place->time, bz_layer_ns(after));
        bz_layer_set(&c->map, place, bz_layer_ns(after));
    }
    return 0;
}

/* Between two calls of one operator, a reorder and its convolution, the framework prepares one; between two operators one ends, too. */
static int64_t between_calls(const change *c)
{
    int64_t twice = bz_flow_sum(c->map.call[1], c->map.call[1]), most = c->map.call[2];
    return c->asked->side == 0 ? c->map.call[0] : c->asked->side == 1 || most < twice ? twice : most;
}

static void change_place(change *c, int at)
{
    bz_layer_place *place = &c->map.place[at];
    bool joined, product = bz_way_is_product(c->asked, place);
    c->products += product;
    int group = group_of(c, place, &joined);
    if (stays(c, place) && !joined) { /* what another layer's weights take along goes there, too */
        keep(c, place);
        return;
    }
    const bz_pick *pick = price_of(c, place, group);
    if (!pick) {
        c->unknown += product;
        return;
    }
    if (joined) {
        bz_tally_add(&c->done, place->time, 0);
        c->joined++;
        c->gone[at] = true;
        bz_layer_set(&c->map, place, 0);
        return;
    }
    double now =
        bz_way_price(c->asked, place, pick, false) * bz_way_slower(c->asked, pick, bz_layer_slower(&c->map, place));
    if (product && !(pick->cold > 0)) {
        c->far += pick->weights;
        c->later += bz_way_again(c->asked, pick);
    }
    int64_t after = bz_layer_ns(
        fmax(bz_way_price(c->asked, place, pick, product), now)); /* both may be weights from memory: once */
    bz_tally_add(&c->done, place->time, after);
    if (place->task == BZ_NONE)
        bz_layer_set(&c->map, place, 0);
    bz_layer_call(&c->map, place, after, between_calls(c));
}

/* The innermost operator around a library's call; BZ_NONE. */
static uint32_t operator_of(const change *c, uint32_t task)
{
    const bz_trace *t = c->asked->trace;
    const bz_task *of = &c->flow->task[task];
    if (of->event_kind != BZ_EVENT_CALL || of->event >= t->event[BZ_EVENT_CALL].n)
        return BZ_NONE;
    uint32_t op = t->event[BZ_EVENT_CALL].op[of->event];
    return op < t->event[BZ_EVENT_OP].n ? op : BZ_NONE;
}

/* What the program reorders takes as long as those of the recording. */
static int64_t border_time(const bz_way_borders *b, const bz_layer *l)
{
    return bz_layer_reorder(b->map, bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED));
}

/* Convolutions whose groups fill no whole blocks, and what is done with their results until the next product. */
static void find_narrow(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    const bz_dag *dag = b->dag;
    int64_t block = bz_way_block(c->picks, b->n);
    c->narrow = BZ_NEW(c->asked->arena, bool, dag->n + 1);
    for (int i = 0; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        bool whole;
        if (!strcmp(l->kind, "conv"))
            c->narrow[i] = !c->left[i] && !bz_way_fills(l, block, &whole);
        for (int k = dag->first[i]; k < dag->first[i + 1] && !l->macs; k++)
            c->narrow[i] |= c->narrow[dag->pred[k]];
    }
}

/* The library computes element by element on tensors of one shape: a smaller operand is written out in row-major order, and brought into blocks. */
static void add_written_out(change *c)
{
    for (int i = 0; i < c->map.n; i++) {
        bz_layer_place *place = &c->map.place[i];
        const bz_layer *l = bz_way_layer(c->asked, place, 0)->layer;
        bool smaller = false;
        if (place->task == BZ_NONE || c->gone[i] || stays(c, place) || place->n != 1 || !l->n_out ||
            !bz_has_word("add sub mul div", l->kind))
            continue;
        for (int k = 0; k < l->n_in; k++)
            smaller |= !l->in_constant[k] && l->in[k].rank > 0 && !bz_way_same_shape(&l->in[k], &l->out[0]);
        for (int k = 0; k < 2 && smaller; k++) {
            int64_t time = bz_layer_reorder(&c->map, bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED));
            bz_flow_insert(c->flow, BZ_TASK_CALL, "reorder", place->task, BZ_BEFORE, time, c->map.call[c->asked->side]);
            bz_tally_add(&c->inside, 0, time);
        }
    }
}

/* A tensor of the framework's is copied into one of the library's as it lies, and that is brought into blocks. */
static void add_reorders(change *c)
{
    bz_way_borders sides = {&c->map, c->left, c->gone, BZ_BORDER_COPY, border_time, &c->borders},
                   blocks = {&c->map, c->narrow, c->gone, BZ_BORDER_EACH, border_time, &c->inside};
    bz_way_add_borders(&sides);
    bz_way_add_borders(&blocks);
    add_written_out(c);
}

static void shorten_between(change *c)
{
    for (int i = 0; i < c->map.n; i++) {
        const bz_layer_place *place = &c->map.place[i];
        if (place->task == BZ_NONE || stays(c, place))
            continue;
        bz_task *t = &c->flow->task[place->task];
        int64_t own = between_calls(c);
        uint32_t behind =
            place->task < c->map.n_tasks ? place->task : place->behind; /* inserted: it lies between tasks */
        bool ours = true;
        for (int k = i + 1; k < c->map.n && c->map.place[k].behind == behind; k++)
            ours &= !stays(c, &c->map.place[k]);
        for (; ours && t->next != BZ_NONE && c->flow->task[t->next].kind == BZ_TASK_CALL; t = &c->flow->task[t->next]) {
            if (!bz_layer_is_reorder(t)) /* those go */
                t->gap = own;
            else if (t->gap > c->map.call[c->asked->side])
                t->gap = c->map.call[c->asked->side];
            if (t->next < c->map.n_tasks && c->map.works[t->next])
                break;
        }
    }
}

/* [operators of the trace]: those that stay the framework's, with the reorders that they call. */
static bool *find_kept(const change *c)
{
    const bz_trace *t = c->asked->trace;
    bool *kept = BZ_NEW(c->asked->arena, bool, t->event[BZ_EVENT_OP].n + 1);
    for (int i = 0; i < c->map.n; i++) {
        uint32_t op = c->map.place[i].task == BZ_NONE || !stays(c, &c->map.place[i])
                          ? BZ_NONE
                          : operator_of(c, c->map.place[i].task);
        if (op != BZ_NONE)
            kept[op] = true;
    }
    return kept;
}

/* Behind it the framework may have done layers of its own, which stay. */
static void remove_task(change *c, uint32_t i, bz_tally *sum)
{
    bz_task *t = &c->flow->task[i];
    int64_t more = t->gap - c->map.call[1];
    bz_tally_add(sum, t->duration, 0);
    t->gap = more > 0 ? more : 0;
    bz_flow_remove(c->flow, i, more > 0);
}

static void remove_tasks(change *c)
{
    const bool *kept = find_kept(c);
    for (uint32_t i = 0; i < c->map.n_tasks; i++) {
        bool reorder = !c->flow->task[i].removed && bz_layer_is_reorder(&c->flow->task[i]);
        uint32_t op = reorder ? operator_of(c, i) : BZ_NONE;
        if (reorder && (op == BZ_NONE || !kept[op]))
            remove_task(c, i, &c->reorders);
    }
    for (int i = 0; i < c->map.n; i++)
        if (c->gone[i] && c->map.place[i].task != BZ_NONE)
            bz_flow_remove(c->flow, c->map.place[i].task, false);
    for (uint32_t i = 0; i < c->map.n_normalized && bz_has_word(c->way.patterns, "conv+batchnorm"); i++)
        remove_task(c, c->map.normalized[i], &c->normalized);
}

static void tell(change *c)
{
    bz_whatif_assume(
        c->asked, BZ_ASSUMED_MEASURED, "records of the library's picks",
        "layers that the library does: %s become %s, %d of them as a part of another call, by its own picks%s",
        BZ_SAY_TALLY(c->done), c->joined,
        c->unknown ? bz_arena_printf(c->asked->arena, "; %d of %d products without a record take what they took",
                                     c->unknown, c->products)
                   : "");
    if (c->later > 1e-9 * PROCESSES * (double)c->flow->measured)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "the memory's bandwidth",
                         "no record tells what %s of weights take from memory: benanza bound --cache cold measures it",
                         BZ_SAY_BYTES(c->far));
    if (c->normalized.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MEASURED, "the recording",
                         "%d batch normalizations of %s, which the model has in its weights, go", c->normalized.n,
                         BZ_SAY_NS(c->normalized.before));
    if ((double)c->kept_memory > PROCESSES * (double)c->flow->measured)
        bz_whatif_assume(
            c->asked, BZ_ASSUMED_MODELLED, "the recording's pages, by the bytes that layers write",
            "memory that is handed out anew for layers that stay, %s, is kept: an iteration holds less at once",
            BZ_SAY_NS(c->kept_memory));
    if (c->inside.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MODELLED, "the recording's reorders, by bytes",
                         "%d reorders of %s come where groups of channels fill no block, and where a smaller operand "
                         "is written out",
                         c->inside.n, BZ_SAY_NS(c->inside.after));
    if (c->turned.n)
        bz_whatif_assume(c->asked, BZ_ASSUMED_MEASURED, "records of the same code",
                         "%d products of the framework's, with their weights the other way round: %s become %s",
                         c->turned.n, BZ_SAY_TALLY(c->turned));
    if (c->not_known > (int64_t)(UNPRICED_MOST * (double)c->flow->measured))
        c->asked->unsure = bz_arena_printf(c->asked->arena,
                                           "products of %s get their weights the other way round, and no record tells "
                                           "what they take so: a number stands "
                                           "once benanza gen -o DIR%s, and benanza run DIR, have measured it",
                                           BZ_SAY_NS(c->not_known), c->unmeasured);
    bz_whatif_assume(
        c->asked, BZ_ASSUMED_MEASURED, "the recording",
        "%d reorders of %s go, %d of %s come where a tensor passes between the library and the framework, which "
        "keeps %d layers as they are",
        c->reorders.n, BZ_SAY_NS(c->reorders.before), c->borders.n, BZ_SAY_NS(c->borders.after), c->kept);
}

int bz_whatif_library(bz_flow *flow, bz_whatif_asked *asked)
{
    change c = {.asked = asked, .flow = flow};
    if (bz_way_read(asked, &c.way))
        return -1;
    if (!bz_layer_map_make(flow, asked, &c.map))
        return 0;
    c.picks = bz_way_own_picks(asked->model, BZ_UNDEFINED);
    if (!c.picks)
        return bz_whatif_because(asked, "no records tell what the library takes for the model's layers");
    c.gone = BZ_NEW(asked->arena, bool, c.map.n + 1);
    c.group = bz_way_groups(asked, &c.way, c.picks);
    find_left(&c);
    find_narrow(&c);
    c.map.keeps_memory = keeps_memory(&c);
    for (int i = 0; i < c.map.n; i++)
        change_place(&c, i);
    if (c.way.turned && asked->records && turn_weights(&c))
        return -1;
    if (c.unknown == c.products)
        return bz_whatif_because(asked, "none of %d products has a record", c.products);
    shorten_between(&c);
    add_reorders(&c);
    remove_tasks(&c);
    tell(&c);
    return c.map.n - c.kept + c.reorders.n;
}
