/* The bound of a model as written: the prices of its layers, summed up along the graph. */
#include "bound/cover.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double bz_tick(double seconds)
{
    return isfinite(seconds) ? ldexp(nearbyint(ldexp(seconds, 44)), -44) : seconds;
}

typedef struct making {
    const bz_bound_input *in;
    bz_arena *arena;
    bz_bound *b;
    int node;
    const bz_plan_layer *items; /* of the plan */
    int *priced;                /* [plan layers]: the layer of `b` that has its price already, plus one */
} making;

/* What an alternative costs with its cheapest variants, but the next best one for step `second` (-1: for
 * none). NAN where a step has no record. */
static double cost(const bz_prices *prices, const bz_alternative *a, int second)
{
    double sum = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_problem_price *p = bz_prices_call(prices, a, i);
        const bz_record *r = i == second ? p->second : p->record;
        if (!r)
            return NAN;
        sum += bz_record_busy(r);
    }
    return sum;
}

static const char *variant_of_step(const making *m, const bz_alternative *a, int i, int second)
{
    bz_buf text = {0};
    const bz_problem_price *p = bz_prices_call(m->in->prices, a, i);
    const bz_record *r = i == second ? p->second : p->record;
    bz_record_variant(r, &text);
    if (strcmp(r->variant.math, "default") != 0)
        bz_buf_printf(&text, " %s", r->variant.math);
    return bz_buf_keep(&text, m->arena);
}

/* "32 × onednn brg any + loops avx512": step by step, equal ones together. */
static const char *variant(const making *m, const bz_alternative *a, int second)
{
    bz_buf text = {0};
    for (int i = 0, end = 1; i < a->n; i = end++) {
        const char *this = variant_of_step(m, a, i, second);
        while (end < a->n && !strcmp(variant_of_step(m, a, end, second), this))
            end++;
        bz_buf_puts(&text, i ? " + " : "");
        if (end - i > 1)
            bz_buf_printf(&text, "%d × ", end - i);
        bz_buf_puts(&text, this);
    }
    return bz_buf_keep(&text, m->arena);
}

/* The next best way: another alternative, or the cheapest one with one other variant in it. */
static void find_runner_up(const making *m, const bz_lowering *low, bz_bound_layer *l)
{
    const bz_alternative *best = NULL, *first = l->price.alternative;
    int second = -1;
    double least = INFINITY;
    for (int a = 0; a < low->n; a++) {
        const bz_alternative *other = &low->alternative[a];
        for (int step = other == first ? 0 : -1; step < (other == first ? other->n : 0); step++) {
            double s = cost(m->in->prices, other, step);
            if (s < least) {
                least = s;
                best = other;
                second = step;
            }
        }
    }
    l->runner_up = best ? bz_tick(least) : NAN;
    l->runner_up_variant = best ? variant(m, best, second) : NULL;
}

void bz_bound_raise(const bz_bound_input *in, double arithmetic, bz_layer_price *p)
{
    double least = bz_tick(arithmetic);
    if (in->peaks->why || !p->alternative || !p->alternative->modelled)
        return;
    p->seconds = fmax(p->seconds, least);
    p->low = fmax(p->low, least);
    p->high = fmax(p->high, least);
}

static void price_layer(const making *m, const bz_plan_layer *item, bz_bound_layer *l)
{
    bz_prices_layer(m->in->prices, item, &l->price);
    l->price.seconds = bz_tick(l->price.seconds);
    l->price.launch = bz_tick(l->price.launch);
    bz_bound_raise(m->in, bz_peaks_arithmetic(m->in->peaks, l->layer, m->in->dtype), &l->price);
    l->lowering = &item->lowering;
    l->runner_up = NAN;
    l->hardware = bz_peaks_roofline(m->in->peaks, l->layer, m->in->dtype, &l->memory);
    const bz_alternative *a = l->price.alternative;
    if (!a)
        return;
    if (!m->in->bare)
        l->variant = variant(m, a, -1);
    for (int i = 0; i < a->n; i++) {
        const bz_record *r = bz_prices_call(m->in->prices, a, i)->record;
        l->floor |= bz_record_has_floor(r, bz_backend_is_on(r->variant.backend, true));
    }
    if (!m->in->brief && !m->in->bare)
        find_runner_up(m, &item->lowering, l);
}

typedef struct sums {
    bz_coverage_sum coverage;
    double seconds, hardware, launch;
    int above;
} sums;

/* A layer inside a loop counts once as a layer, and its work as often as it runs. */
static void add(sums *t, const sums *o, double times)
{
    bz_coverage_sum *c = &t->coverage;
    const bz_coverage_sum *d = &o->coverage;
    t->seconds += times * o->seconds;
    t->hardware += times * o->hardware;
    t->launch += times * o->launch;
    t->above += o->above;
    c->layers += d->layers, c->free += d->free, c->measured += d->measured, c->imported += d->imported;
    c->modelled += d->modelled, c->unpriced += d->unpriced, c->noisy += d->noisy, c->floor += d->floor;
    c->reference += d->reference;
    c->predicted += d->predicted, c->macs_predicted += times * d->macs_predicted;
    c->missing += d->missing, c->branches += d->branches, c->loops += d->loops, c->loops_open += d->loops_open;
    c->macs += times * d->macs, c->macs_measured += times * d->macs_measured;
    c->macs_imported += times * d->macs_imported, c->macs_modelled += times * d->macs_modelled;
    c->macs_unpriced += times * d->macs_unpriced;
}

/* The record is a median with an interval; of peaks the best sample counts, which may be as far off as the samples of a record
 * that is not yet noisy. */
int bz_bound_phases(const bz_bound *b, bz_bound_phase out[BZ_TRAIN_PHASES])
{
    if (!b->layers || !b->layers->phase)
        return 0;
    for (int p = 0; p < BZ_TRAIN_PHASES; p++)
        out[p] = (bz_bound_phase){.phase = bz_train_phase_name((bz_train_phase)p)};
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        bz_bound_phase *p = &out[b->layers->phase[l->node]];
        p->layers++;
        p->sequential += l->times * l->price.seconds;
        p->hardware += l->times * l->hardware;
    }
    return BZ_TRAIN_PHASES;
}

bool bz_bound_contradicts(const bz_bound_layer *l)
{
    return l->price.alternative && l->hardware > (1 + BZ_NOISY_SPREAD) * fmax(l->price.seconds, l->price.high);
}

static void count_layer(sums *t, const bz_bound_layer *l)
{
    bz_coverage_sum *c = &t->coverage;
    int *const layers[] = {&c->measured, &c->modelled, &c->imported}; /* as bz_record_provenance */
    double *const macs[] = {&c->macs_measured, &c->macs_modelled, &c->macs_imported};
    const bz_layer_price *p = &l->price;
    bool priced = p->alternative != NULL;
    c->macs += (double)l->layer->macs;
    c->missing += p->missing;
    ++*(!priced ? &c->unpriced : p->predicted ? &c->predicted : layers[p->provenance]);
    *(!priced ? &c->macs_unpriced : p->predicted ? &c->macs_predicted : macs[p->provenance]) += (double)l->layer->macs;
    t->hardware += isfinite(l->hardware) ? l->hardware : 0;
    if (!priced)
        return;
    t->seconds += p->seconds;
    t->launch += p->launch;
    t->above += bz_bound_contradicts(l);
    c->noisy += p->noisy;
    c->reference += p->reference;
    c->floor += l->floor;
}

static bz_bound_layer *keep(making *m)
{
    bz_bound *b = m->b;
    BZ_ROOM(b->layer, b->n);
    return &b->layer[b->n++];
}

static sums sum_graph(making *m, const bz_layer *layers, int n, double times);

static int *known_row(making *m, int row)
{
    return &m->priced[bz_plan_find(m->in->plan, m->b->layer[row].layer) - m->items];
}

/* Takes the rows from `row` on off the list, and lists the `n` ones in `rows` instead. */
static void list_again(making *m, int row, const bz_bound_layer *rows, int n)
{
    for (int i = row; i < m->b->n; i++)
        if (*known_row(m, i) > row)
            *known_row(m, i) = 0;
    m->b->n = row;
    for (int i = 0; i < n; i++) {
        *keep(m) = rows[i];
        int *known = known_row(m, m->b->n - 1);
        *known = *known ? *known : m->b->n;
    }
}

/* The cheapest branch of an If. Each branch is summed once: to sum the chosen one again is twice the work with each level of nesting,
 * 2^60 times for Ifs that are 60 deep. */
static sums sum_branches(making *m, const bz_layer *layer, double times)
{
    sums least = {.seconds = INFINITY};
    int kept = m->b->n, n = 0;
    bz_bound_layer *rows = NULL; /* of the cheapest branch so far */
    for (int k = 0; k < layer->n_bodies; k++) {
        const bz_body *body = &layer->bodies[k];
        if (!body->trips)
            continue;
        sums t = sum_graph(m, body->layers, body->n, times * (double)body->trips);
        if (t.seconds < least.seconds) {
            least = t;
            n = m->b->n - kept;
            rows = bz_realloc(rows, (size_t)n + 1, sizeof *rows);
            if (n)
                memcpy(rows, m->b->layer + kept, (size_t)n * sizeof *rows);
        }
        list_again(m, kept, NULL, 0);
    }
    list_again(m, kept, rows, n);
    free(rows);
    if (!isfinite(least.seconds))
        return (sums){0};
    least.coverage.branches++;
    return least;
}

/* Every body of a loop as often as it runs. */
static sums sum_bodies(making *m, const bz_layer *layer, double times)
{
    sums sum = {0};
    bool loop = bz_has_word("loop scan greedysearch beamsearch sampling", layer->kind), open = false;
    if (!strcmp(layer->kind, "if"))
        return sum_branches(m, layer, times);
    for (int k = 0; k < layer->n_bodies; k++) {
        const bz_body *body = &layer->bodies[k];
        open |= !body->trips_known;
        if (!body->trips)
            continue;
        sums t = sum_graph(m, body->layers, body->n, times * (double)body->trips);
        add(&sum, &t, (double)body->trips);
    }
    sum.coverage.loops += loop;
    sum.coverage.loops_open += loop && open;
    return sum;
}

static void sum_layer(making *m, const bz_layer *layer, double times, sums *t)
{
    bool nothing = layer->class == BZ_VIEW || layer->class == BZ_CONSTANT;
    const bz_plan_layer *item = nothing ? NULL : bz_plan_find(m->in->plan, layer);
    t->coverage.layers++;
    if (!item || item->lowering.free) {
        t->coverage.free++;
        return;
    }
    int *known = &m->priced[item - m->items];
    if (*known && m->in->brief) {
        count_layer(t, &m->b->layer[*known - 1]);
        return;
    }
    bz_bound_layer *l = keep(m);
    *l = *known ? m->b->layer[*known - 1] : (bz_bound_layer){0};
    l->layer = layer;
    l->node = m->node;
    l->times = times;
    if (!*known) {
        price_layer(m, item, l);
        *known = m->b->n;
    }
    count_layer(t, l);
}

static sums sum_graph(making *m, const bz_layer *layers, int n, double times)
{
    sums t = {0};
    for (int i = 0; i < n; i++) {
        if (layers[i].n_bodies) {
            sums inner = sum_bodies(m, &layers[i], times);
            add(&t, &inner, 1);
        } else {
            sum_layer(m, &layers[i], times, &t);
        }
    }
    return t;
}

/* Modules come in the order of their fork, so what encloses one stands before it. */
static void find_modules(bz_bound *b, bz_arena *arena)
{
    const bz_dag *dag = b->dag;
    b->module = BZ_NEW(arena, bz_bound_module, dag->n_modules);
    for (int i = 0; i < dag->n_modules; i++) {
        const bz_module *module = &dag->modules[i];
        bz_module_cost cost_of = bz_schedule_module(dag, b->seconds, module);
        if (!(cost_of.sequential > cost_of.parallel))
            continue;
        int within = b->n_modules - 1;
        while (within >= 0 && b->module[within].module->end < module->end)
            within = b->module[within].within;
        b->module[b->n_modules++] = (bz_bound_module){module, cost_of, within};
    }
}

/* Layers of a profile ran one after the other; what they really waited for nobody recorded. */
static const bz_dag *chain(int n, bz_arena *arena)
{
    bz_dag *dag = BZ_NEW(arena, bz_dag, 1);
    int *first = BZ_NEW(arena, int, n + 1), *pred = BZ_NEW(arena, int, n);
    for (int i = 0; i < n; i++) {
        first[i] = i ? i - 1 : 0;
        pred[i] = i;
    }
    first[n] = n ? n - 1 : 0;
    *dag = (bz_dag){.n = n, .first = first, .pred = pred};
    return dag;
}

void bz_bound_make(const bz_bound_input *in, bz_arena *arena, bz_bound *out)
{
    making m = {.in = in, .arena = arena, .b = out};
    sums all = {0};
    *out = (bz_bound){.model = in->model,

                      .system = in->system,
                      .facts = in->facts,
                      .dtype = in->dtype,
                      .setting = in->setting,
                      .layers = in->layers,
                      .dag = in->dag       ? in->dag
                             : in->rebuilt ? chain(in->layers->n, arena)
                                           : bz_dag_build(in->layers),
                      .rebuilt = in->rebuilt ? in->rebuilt->layers->n : 0,
                      .rebuilt_of = in->rebuilt ? in->rebuilt->of : "",
                      .partial = in->rebuilt && in->rebuilt->partial,
                      .made_by = in->rebuilt ? in->rebuilt->made_by : NULL,
                      .left_out = in->rebuilt ? in->rebuilt->left_out : "",
                      .peaks = in->peaks,
                      .seconds = BZ_NEW(arena, double, in->layers->n)};
    bool *unpriced = BZ_NEW(arena, bool, in->layers->n);
    out->unpriced = unpriced;
    m.priced = BZ_NEW(arena, int, bz_plan_layers(in->plan, &m.items));
    for (int i = 0; i < in->layers->n; i++) {
        m.node = i;
        sums one = sum_graph(&m, &in->layers->layer[i], 1, 1);
        out->seconds[i] = one.seconds;
        unpriced[i] = one.coverage.unpriced > 0;
        add(&all, &one, 1);
    }
    bz_bound_layer *list = BZ_NEW(arena, bz_bound_layer, out->n);
    if (out->n)
        memcpy(list, out->layer, (size_t)out->n * sizeof *list);
    free(out->layer);
    out->layer = list;
    out->coverage = all.coverage;
    out->hardware = in->peaks->why ? NAN : all.hardware;
    out->launch = all.launch;
    out->above_roofline = all.above;
    out->sequential = bz_schedule_sequential(out->seconds, in->layers->n);
    bz_schedule_parallel(out->dag, out->seconds, arena, &out->path);
    if (!in->brief && !in->bare) {
        bz_schedule_streams(out->dag, out->seconds, &out->streams);
        find_modules(out, arena);
    }
    if (in->fused)
        bz_bound_fuse(in, arena, out);
}
