/* Products in a type of 16 bits, on a processor: each takes what the ratio of two records says, of the library's own pick in that type and of
 * what the program used. The reorders around it stay, with tensors of half the bytes. What the framework does itself computes in 32 bits still and
 * converts what it reads and writes. */
#include "whatif/ways.h"

#include <math.h>

typedef struct {
    bz_whatif_asked *asked;
    bz_flow *flow;
    bz_layer_map map;
    const bz_picks *picks;
    bz_dtype type;
    double ratio;      /* bytes */
    bool brought_near; /* the program reorders around convolutions */
    int products, unknown, reorders, added, others;
    int64_t before[3], after[3]; /* of the three */
} change;

static void count(change *c, int part, int64_t before, int64_t after)
{
    c->before[part] = bz_flow_sum(c->before[part], before);
    c->after[part] = bz_flow_sum(c->after[part], after);
}

/* What a call takes longer than its record is operands that come from far: of half the bytes, half of that. Those of a convolution have just
 * been reordered, which brought them near. */
static void change_product(change *c, const bz_layer_place *place)
{
    const bz_bound_layer *l = bz_way_layer(c->asked, place, 0);
    for (int k = 1; k < place->n && !l->layer->macs; k++)
        l = bz_way_layer(c->asked, place, k);
    int at = (int)(l - c->asked->model->bound->layer);
    bool conv = bz_layer_has(l->layer, BZ_LAYER_CONVOLUTION);
    const bz_pick *to = conv ? &c->picks->free[at] : &c->picks->plain[at];
    c->products++;
    if (!isfinite(to->seconds)) {
        c->unknown++;
        count(c, 0, place->time, place->time);
        return;
    }
    double slower = bz_layer_slower(c->asked, &c->map, place), took = 1e-9 * (double)place->time;
    double far = slower > 1 && !(conv && c->brought_near) ? took * (1 - 1 / slower) * c->ratio : 0,
           near = slower > 1 ? 1 : slower;
    int64_t after = bz_layer_ns(bz_way_price(c->asked, to, !conv) * near + far);
    bz_layer_set(c->flow, &c->map, place, after);
    count(c, 0, place->time, after);
}

/* Half the bytes take half the time where memory is what limits a reorder, and as long as before where its elements do; but no less than the
 * library's code for that type takes, which may go element by element. */
static int64_t reorder_time(const change *c, int64_t was, double elements)
{
    const double share[BZ_WHATIF_SIDES] = {c->ratio, (1 + c->ratio) / 2, 1};
    double least = 1e9 * bz_peaks_reorder(c->asked->model->bound->peaks, elements, c->type);
    return (int64_t)(fmax(least, (double)was * share[c->asked->side]) + 0.5);
}

static void change_reorder(change *c, uint32_t task)
{
    bz_task *t = &c->flow->task[task];
    const bz_call *call = bz_call_of(c->asked->trace, t->event);
    int64_t after = reorder_time(c, t->duration, call->elements > 0 ? (double)call->elements : 0);
    count(c, 1, t->duration, after);
    bz_flow_set(c->flow, task, after);
    c->reorders++;
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
    if (!bz_layer_has(l, BZ_LAYER_CONVOLUTION) || place->task == BZ_NONE || l->n_in < 2 || !l->n_out)
        return false;
    if (reordered(c, place->task, previous))
        return true;
    const bz_type *type[] = {&l->in[0], &l->in[1], &l->out[0]};
    for (int k = 0; k < 3; k++) {
        double bytes = bz_peaks_bytes(l, type[k], BZ_UNDEFINED);
        int64_t time = reorder_time(c, bz_layer_reorder(c->flow, c->asked, &c->map, bytes), bytes / sizeof(float));
        int64_t own = c->map.call[c->asked->side];
        if (k < 2)
            bz_flow_insert_before(c->flow, BZ_TASK_CALL, "reorder", place->task, time, own);
        else
            bz_flow_insert(c->flow, BZ_TASK_CALL, "reorder", place->task, time, own);
        c->after[1] = bz_flow_sum(c->after[1], time);
        c->added++;
    }
    return false;
}

static void change_other(change *c, const bz_layer_place *place)
{
    double convert = 0, was = (double)place->time;
    for (int k = 0; k < place->n; k++) {
        const bz_layer *l = bz_way_layer(c->asked, place, k)->layer;
        convert += 1e9 * bz_peaks_convert(c->asked->model->bound->peaks,
                                          bz_peaks_bytes(l, NULL, BZ_F32) / sizeof(float), c->type);
    }
    double after = c->asked->side == 0 ? was * c->ratio : was + convert;
    count(c, 2, place->time, (int64_t)after);
    bz_layer_set(c->flow, &c->map, place, (int64_t)after);
    c->others++;
}

static void tell(change *c)
{
    const bz_bound *b = c->asked->model->bound;
    bz_unit_text x, y;
    bz_whatif_assume(
        c->asked, BZ_ASSUMED_MEASURED, "records of the library's picks",
        "%d products: %s become %s, as the library's own pick in %s, and half of what other calls take longer than "
        "their records%s",
        c->products - c->unknown, bz_units_time(x, 1e-9 * (double)c->before[0]),
        bz_units_time(y, 1e-9 * (double)c->after[0]), bz_dtype_name(c->type),
        c->unknown ? bz_arena_printf(c->asked->arena, "; %d without a record take what they took", c->unknown) : "");
    if (c->reorders)
        bz_whatif_assume(
            c->asked, BZ_ASSUMED_MODELLED, "the recording, and what 'benanza system --measure' has",
            "%d reorders move %g times the bytes, and %d come around convolutions that had none: %s become %s",
            c->reorders, c->ratio, c->added, bz_units_time(x, 1e-9 * (double)c->before[1]),
            bz_units_time(y, 1e-9 * (double)c->after[1]));
    if (c->others)
        bz_whatif_assume(c->asked, b->peaks && !b->peaks->why ? BZ_ASSUMED_MODELLED : BZ_ASSUMED_GUESSED,
                         "the recording", "%d other layers compute in f32 and convert: %s become %s", c->others,
                         bz_units_time(x, 1e-9 * (double)c->before[2]), bz_units_time(y, 1e-9 * (double)c->after[2]));
}

int bz_whatif_products(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    change c = {.asked = asked, .flow = flow, .type = BZ_UNDEFINED};
    const char *name = asked->text ? asked->text : "bf16";
    c.type = !strcmp(name, "bf16") ? BZ_BF16 : !strcmp(name, "f16") ? BZ_F16 : BZ_UNDEFINED;
    if (!c.type)
        return bz_fail(err, BZ_USAGE, "%s: wants bf16 or f16", asked->row->name);
    if (!bz_layer_map_make(flow, asked, &c.map))
        return 0;
    const bz_regret *r = asked->model->regret;
    c.picks = bz_way_picks(asked->model, c.type, r && r->training);
    if (!c.picks)
        return bz_whatif_because(asked, "no records tell what the library takes in %s", name);
    c.ratio = (double)bz_dtype_bits(c.type) / 32;
    for (uint32_t i = 0; i < c.map.n_tasks; i++)
        c.brought_near |= !flow->task[i].removed && bz_layer_is_reorder(&flow->task[i]);
    for (int i = 0; i < c.map.n; i++)
        if (bz_way_is_product(asked, &c.map.place[i]))
            change_product(&c, &c.map.place[i]);
        else
            change_other(&c, &c.map.place[i]);
    if (c.unknown == c.products)
        return bz_whatif_because(asked, "none of %d products has a record in %s", c.products, name);
    for (uint32_t i = 0; i < c.map.n_tasks; i++)
        if (!flow->task[i].removed && bz_layer_is_reorder(&flow->task[i]))
            change_reorder(&c, i);
    bool previous = false; /* did the last task with layers have reorders of its own? */
    for (int i = 0; i < c.map.n && c.reorders; i++)
        if (c.map.place[i].task != BZ_NONE)
            previous = add_reorders(&c, &c.map.place[i], previous);
    tell(&c);
    return c.products + c.reorders + c.added + c.others;
}
