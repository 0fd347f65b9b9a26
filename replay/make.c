/* A model as units (layers and groups) and their steps. */
#include "replay/bind.h"

#include "replay/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    const bz_replay_input *in;
    binder b;
    const bz_plan_layer *item;
    bz_buf refused, left;
    int n_refused, n_sized;
} maker;

/* By the records; else a guess that is only good for comparing: what must be moved and computed. */
static double price(const maker *m, const bz_alternative *a)
{
    double seconds = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_record *r = m->in->prices ? bz_prices_call(m->in->prices, a, i)->record : NULL;
        seconds += r ? r->median : replay_guess(&a->problem[i]);
    }
    return seconds;
}

/* There are records of one of its problems in this setting, and none is good; or no library, of the device or of the
 * processor, has such a call. */
static bool is_hopeless(const maker *m, const bz_alternative *a)
{
    for (int i = 0; i < a->n; i++) {
        const bz_plan_problem *p = m->in->device ? bz_plan_find_problem(m->in->plan, a->text[i]) : NULL;
        if (m->in->device ? !p || !p->n_families : !replay_runs_here(&a->problem[i]))
            return true;
    }
    for (int i = 0; i < a->n && m->in->prices; i++) {
        const bz_problem_price *p = bz_prices_call(m->in->prices, a, i);
        if (p->n_records && !p->record)
            return true;
    }
    return false;
}

/* Tries the alternatives, the cheapest first. */
static int bind_cheapest(maker *m, const bz_lowering *low, const bz_layer *l, const bz_plan_place *place)
{
    bool tried[16] = {false};
    bind_mark before = {m->b.plan->n_steps, m->b.plan->n_values};
    bz_error why;
    m->b.unmade = false;
    m->b.l = l;
    bz_fail(&why, BZ_INCOMPLETE, "%s (%s): %s", l->name, l->kind, low->why ? low->why : "no variant runs it");
    for (int round = 0; round < low->n && round < 16; round++) {
        int best = -1;
        for (int a = 0; a < low->n && a < 16; a++)
            if (!tried[a] && (best < 0 || price(m, &low->alternative[a]) < price(m, &low->alternative[best])))
                best = a;
        tried[best] = true;
        const bz_alternative *a = &low->alternative[best];
        if (is_hopeless(m, a))
            continue;
        m->b.unmade = false;
        if (!(place ? bind_call_group(&m->b, place, a) : bind_call_layer(&m->b, l, a)))
            return 0;
        why = m->b.err;
        bind_take_back(&m->b, before);
    }
    m->b.err = why;
    return -1;
}

/* What the layers that are left out would read is given out: the last one's numbers come behind the model's outputs. */
static void leave_out(maker *m, const bz_layer *l)
{
    bz_replay_plan *p = m->b.plan;
    p->n_left++;
    if (m->b.sized && m->n_sized++ < 4)
        bz_buf_printf(&m->left, "%s%s", m->left.len ? "; " : "", m->b.err.text);
    for (int k = 0; k < l->n_in; k++) {
        int v = l->node->in[k] < 0 ? -1 : m->b.number[l->node->in[k]];
        if (v >= 0 && !l->in_constant[k] && p->value[v].source == BZ_VALUE_COMPUTED && !p->value[v].output)
            p->value[v].output = m->b.layers->model->graph->n_outputs + v + 1;
    }
}

/* Layers that only lack the result of a refused one are not worth a word. */
static void refuse(maker *m, const bz_layer *l)
{
    bool waits = false;
    for (int k = 0; m->b.plan->n_left && bz_node_reads(l->node, k) != BZ_READS_END; k++)
        waits |= bind_waits(&m->b, bz_node_reads(l->node, k));
    if (m->in->part && (m->b.sized || waits)) {
        leave_out(m, l);
        return;
    }
    if (m->n_refused && m->b.unmade)
        return;
    if (m->n_refused++ < 4)
        bz_buf_printf(&m->refused, "%s%s", m->refused.len ? "; " : "", m->b.err.text);
}

/* Only our loops have a copy that replaces them on devices. Such a loop takes as a step as long as it takes as a call; those of training are
 * calls alone. */
static bool is_loop(const bz_lowering *low)
{
    const bz_alternative *last = low->n ? &low->alternative[low->n - 1] : NULL;
    return last && last->modelled && last->fallback && !bind_is_training(&low->alternative[0].problem[0]);
}

static bool has_call(const bz_lowering *low)
{
    for (int i = 0; i < low->n; i++)
        if (!low->alternative[i].modelled)
            return true;
    return false;
}

static int bind_layer(maker *m, const bz_layer *l)
{
    bind_mark before = {m->b.plan->n_steps, m->b.plan->n_values};
    m->b.unmade = false;
    m->b.l = l;
    if (l->class == BZ_VIEW || l->n_bodies)
        return l->n_bodies ? bind_no(&m->b, "bodies are not replayed") : bind_loops(&m->b, l);
    const bz_plan_layer *item = bz_plan_find(m->in->plan, l);
    if (!item || item->lowering.free)
        return bind_loops(&m->b, l);
    if (is_loop(&item->lowering)) {
        if (!bind_loops(&m->b, l))
            return 0;
        bind_take_back(&m->b, before);
    }
    if (!bind_cheapest(m, &item->lowering, l, NULL))
        return 0;
    const bz_error first = m->b.err;
    const bool unmade = m->b.unmade;
    bind_take_back(&m->b, before);
    if (!bind_loops(&m->b, l))
        return 0;
    m->b.unmade |= unmade; /* a loop would do, but for what it waits for: the layer itself stands in nobody's way */
    if (has_call(&item->lowering) || !bind_has_loop(l)) /* else there is but a loop, and it said what it lacks */
        m->b.err = first;
    return -1;
}

static void begin_unit(maker *m, const int *layer, int n, const char *pattern)
{
    bz_replay_plan *p = m->b.plan;
    const bz_layer *last = &m->b.layers->layer[layer[n - 1]];
    m->b.unit = p->n_units;
    m->b.name = last->name;
    p->unit[p->n_units++] = (bz_replay_unit){layer, n, pattern, last->name, last->kind, p->n_steps, 0, (double)NAN};
}

static double bound_of(const maker *m, const bz_plan_layer *item)
{
    bz_layer_price p;
    if (!m->in->prices || !item)
        return NAN;
    bz_prices_layer(m->in->prices, item, &p);
    return p.seconds;
}

/* [layers]: nothing reads what it makes. */
static bool *find_unread(maker *m, const bz_plan_place *place, int n)
{
    bool *unread = BZ_NEW(m->b.arena, bool, m->b.layers->n + 1);
    for (int g = 0; g < n; g++)
        unread[place[g].layer[0]] |= place[g].spare == BZ_UNREAD;
    return unread;
}

/* The groups that are taken: false where one of them cannot be bound, which is then never tried again. */
static bool *choose_groups(maker *m, const bz_plan_place *place, int n, const bool *unread)
{
    const bz_layers *layers = m->b.layers;
    double *seconds = BZ_NEW(m->b.arena, double, layers->n);
    bz_cover_group *group = BZ_NEW(m->b.arena, bz_cover_group, n);
    bool *taken = BZ_NEW(m->b.arena, bool, n);
    for (int i = 0; i < layers->n; i++) {
        const bz_plan_layer *item = bz_plan_find(m->in->plan, &layers->layer[i]);
        bool runs = layers->layer[i].class != BZ_VIEW && layers->layer[i].class != BZ_CONSTANT && !unread[i];
        bool costs = item && runs, call = false;
        seconds[i] = costs ? INFINITY : 0;
        for (int a = 0; costs && a < item->lowering.n; a++) {
            seconds[i] = fmin(seconds[i], price(m, &item->lowering.alternative[a]));
            call |= !item->lowering.alternative[a].modelled;
        }
        seconds[i] = isfinite(seconds[i]) ? seconds[i] : 0;
        if (costs && !call && layers->layer[i].n_out && bz_type_elements(&layers->layer[i].out[0]) > 0)
            seconds[i] += LOOP_ELEMENT * (double)bz_type_elements(&layers->layer[i].out[0]);
    }
    for (int g = 0; g < n; g++) {
        bool whole = !place[g].spare && !place[g].past; /* a replay runs what lies in between */
        const bz_lowering *low = whole ? &m->item[place[g].group].lowering : NULL;
        double best = NAN;
        for (int a = 0; low && a < low->n; a++)
            if (!low->alternative[a].modelled && !is_hopeless(m, &low->alternative[a]))
                best = fmin(best, price(m, &low->alternative[a]));
        group[g] = (bz_cover_group){place[g].layer, place[g].n, best};
    }
    bz_cover(layers->n, seconds, n, group, taken, m->b.arena);
    return taken;
}

static void add_layer(maker *m, const int *index)
{
    bz_replay_plan *p = m->b.plan;
    const bz_layer *l = &m->b.layers->layer[*index];
    const bind_mark before = {p->n_steps, p->n_values};
    begin_unit(m, index, 1, NULL);
    p->unit[p->n_units - 1].bound = bound_of(m, bz_plan_find(m->in->plan, l));
    m->b.sized = false;
    if (bind_layer(m, l)) {
        bind_take_back(&m->b, before);
        refuse(m, l);
    }
    p->unit[p->n_units - 1].n_steps = p->n_steps - p->unit[p->n_units - 1].first;
}

/* A group at the place of its last layer; where it cannot be bound, its layers one by one. */
static void add_group(maker *m, const bz_plan_place *place)
{
    bz_replay_plan *p = m->b.plan;
    const bz_layers *layers = m->b.layers;
    const bz_plan_layer *item = &m->item[place->group];
    const bz_match match = {.pattern = item->pattern, .layer = place->layer, .n = place->n, .shared = place->shared};
    const bz_layer *last = &layers->layer[place->layer[place->n - 1]];
    bind_mark before = {p->n_steps, p->n_values};
    bz_lowering low;
    bz_lower_group(bz_plan_lowered(m->in->plan, m->in->number), &match, m->b.arena, &low);
    begin_unit(m, place->layer, place->n, item->pattern);
    p->unit[p->n_units - 1].bound = bound_of(m, item);
    if (!bind_cheapest(m, &low, last, place)) {
        p->unit[p->n_units - 1].n_steps = p->n_steps - before.n_steps;
        return;
    }
    bind_take_back(&m->b, before);
    p->n_units--;
    for (int i = 0; i < place->n; i++)
        if (layers->layer[place->layer[i]].class != BZ_CONSTANT)
            add_layer(m, place->layer + i);
}

static void add_units(maker *m)
{
    bz_replay_plan *p = m->b.plan;
    const bz_layers *layers = m->b.layers;
    const bz_plan_place *place = NULL;
    int n = m->in->fuse ? bz_plan_places(m->in->plan, m->in->number, &place) : 0;
    const bool *unread = find_unread(m, place, n), *taken = n ? choose_groups(m, place, n, unread) : NULL;
    int *group = BZ_NEW(m->b.arena, int, layers->n + 1); /* number + 1 of the group that has the layer */
    for (int g = 0; g < n; g++)
        for (int i = 0; taken[g] && i < place[g].n; i++)
            group[place[g].layer[i]] = g + 1;
    int *index = BZ_NEW(m->b.arena, int, layers->n + 1);
    p->unit = BZ_NEW(m->b.arena, bz_replay_unit, layers->n + 1);
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        index[i] = i;
        const bz_plan_place *own = group[i] ? &place[group[i] - 1] : NULL;
        if (own && own->layer[own->n - 1] == i)
            add_group(m, own);
        if (!own && l->class != BZ_CONSTANT && l->n_out && !unread[i])
            add_layer(m, &index[i]);
    }
}

/* Calls of quantized layers have powers of two in place of the file's scales, and no zero points. */
static int count_rescaled(const bz_layers *layers)
{
    int n = 0;
    for (int i = 0; i < layers->n; i++) {
        const char *op = layers->layer[i].node->op;
        bool scales = !strncmp(op, "QLinear", 7) || !strcmp(op, "QGemm") || strstr(op, "QuantizeLinear") ||
                      strstr(op, "DequantizeLinear");
        n += scales && layers->layer[i].class != BZ_CONSTANT;
    }
    return n;
}

static int make(maker *m, bz_error *err)
{
    bz_replay_plan *p = m->b.plan;
    if (bind_add_inputs(&m->b, m->in->rate)) {
        *err = m->b.err;
        return -1;
    }
    add_units(m);
    if (m->n_refused)
        return bz_fail(err, BZ_INCOMPLETE, "%s: %d layer%s cannot be executed: %s%s", m->in->model, m->n_refused,
                       m->n_refused == 1 ? "" : "s", bz_buf_text(&m->refused), m->n_refused > 4 ? "; …" : "");
    bz_buf_puts(&m->left, m->n_sized > 4 ? "; …" : "");
    p->left = p->n_left ? bz_buf_keep(&m->left, m->b.arena) : NULL;
    if (p->n_left && !p->n_steps)
        return bz_fail(err, BZ_INCOMPLETE, "%s: nothing is left to be executed: %s", m->in->model, p->left);
    if (bind_add_outputs(&m->b, m->in->gradients) || bind_next(&m->b)) {
        *err = m->b.err;
        return bz_fail_in(err, "%s", m->in->model);
    }
    p->rescaled = count_rescaled(m->in->layers);
    return replay_choose(p, m->in, err);
}

/* A program of so many layers is 100 MB of C; no compiler that we know gets through it, and the plan alone takes gigabytes. */
enum { MOST_LAYERS = 200000 };

int bz_replay_make(const bz_replay_input *in, bz_replay_plan **out, bz_error *err)
{
    *out = NULL;
    if (in->layers->n > MOST_LAYERS)
        return bz_fail(err, BZ_USAGE,
                       "%s: a replay of %d layers is too long to be compiled: at most %d can be replayed", in->model,
                       in->layers->n, MOST_LAYERS);
    bz_replay_plan *p = bz_zeroed(1, sizeof *p);
    maker m = {.in = in, .b = {.plan = p, .layers = in->layers, .dtype = in->dtype, .arena = &p->arena}};
    p->model = bz_arena_str(&p->arena, in->model);
    p->dtype = in->dtype;
    p->setting = in->setting;
    p->device = in->device;
    p->system = in->system ? in->system->name : "";
    p->layers = in->layers;
    bz_plan_layers(in->plan, &m.item);
    int n = in->layers->model->n_values, rc = 0;
    m.b.number = BZ_NEW(&p->arena, int, n + 1);
    m.b.producer = BZ_NEW(&p->arena, const bz_layer *, n + 1);
    for (int i = 0; i < n; i++)
        m.b.number[i] = -1;
    for (int i = 0; i < in->layers->n; i++)
        for (int k = 0; k < in->layers->layer[i].n_out; k++)
            if (in->layers->layer[i].node->out[k] >= 0)
                m.b.producer[in->layers->layer[i].node->out[k]] = &in->layers->layer[i];
    bool half = in->dtype == BZ_BF16 || (in->dtype == BZ_F16 && in->device);
    if (in->dtype && in->dtype != BZ_F32 && !half)
        rc = bz_fail(err, BZ_USAGE, "models are replayed in f32 and bf16, on a GPU in f16 too, not in %s",
                     bz_dtype_name(in->dtype));
    rc = rc || make(&m, err) ? -1 : 0;
    if (!rc)
        bz_replay_schedule(p, 1);
    bz_buf_free(&m.refused);
    bz_buf_free(&m.left);
    if (rc)
        bz_replay_free(p);
    else
        *out = p;
    return rc;
}

void bz_replay_free(bz_replay_plan *p)
{
    if (!p)
        return;
    bz_arena_free(&p->arena);
    free(p);
}
