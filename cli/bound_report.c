/* The bound: summed up, and printed for people and for programs. */
#include "cli/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums ----------------------------------------------------------------------------------- */

static void add_total(bound_total *t, const bound_total *o, double times)
{
    t->seconds += times * o->seconds;
    t->launch += times * o->launch;
    t->macs += times * o->macs;
    t->macs_measured += times * o->macs_measured;
    t->layers += o->layers, t->free += o->free, t->measured += o->measured, t->imported += o->imported;
    t->modelled += o->modelled, t->unpriced += o->unpriced, t->noisy += o->noisy, t->missing += o->missing;
    t->branches += o->branches, t->loops += o->loops, t->loops_open += o->loops_open;
}

static void count_layer(bound_total *t, const bound_layer *l)
{
    const bz_layer_price *p = &l->price;
    bool priced = p->alternative != NULL, modelled = priced && p->provenance == BZ_PROVENANCE_MODELLED;
    t->macs += (double)l->layer->macs;
    t->missing += p->missing;
    t->unpriced += !priced;
    if (!priced)
        return;
    t->seconds += p->seconds;
    t->launch += p->launch;
    t->macs_measured += modelled ? 0 : (double)l->layer->macs;
    t->modelled += modelled;
    t->imported += p->provenance == BZ_PROVENANCE_IMPORTED;
    t->measured += p->provenance == BZ_PROVENANCE_MEASURED;
    t->noisy += p->noisy;
}

static void keep(bound *b, const bound_layer *l)
{
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 64;
        b->layer = bz_realloc(b->layer, (size_t)b->cap, sizeof *b->layer);
    }
    b->layer[b->n++] = *l;
}

static bound_total sum_graph(bound *b, const bz_layer *layers, int n, double times, const bz_plan *plan,
                             const bz_prices *prices);

/* The cheapest branch of an If; every other body as often as it runs. */
static bound_total sum_bodies(bound *b, const bz_layer *layer, double times, const bz_plan *plan,
                              const bz_prices *prices)
{
    bound_total sum = {0}, least = {.seconds = INFINITY};
    bool branches = !strcmp(layer->kind, "if");
    int kept = b->n, best = -1;
    for (int k = 0; k < layer->n_bodies; k++) {
        const bz_body *body = &layer->bodies[k];
        if (!body->trips)
            continue;
        bound_total t = sum_graph(b, body->layers, body->n, times * (double)body->trips, plan, prices);
        if (!branches)
            add_total(&sum, &t, (double)body->trips);
        else if (t.seconds < least.seconds)
            least = t, best = k;
    }
    if (best < 0) {
        bool loop = layer->n_bodies && (!strcmp(layer->kind, "loop") || !strcmp(layer->kind, "scan"));
        sum.loops += loop;
        sum.loops_open += loop && !layer->bodies[0].trips_known;
        return sum;
    }
    b->n = kept; /* only the layers of the branch that counts */
    least = sum_graph(b, layer->bodies[best].layers, layer->bodies[best].n, times, plan, prices);
    least.branches++;
    return least;
}

static bound_total sum_graph(bound *b, const bz_layer *layers, int n, double times, const bz_plan *plan,
                             const bz_prices *prices)
{
    bound_total t = {0};
    for (int i = 0; i < n; i++) {
        if (layers[i].n_bodies) {
            bound_total inner = sum_bodies(b, &layers[i], times, plan, prices);
            add_total(&t, &inner, 1);
            if (layers == b->graph)
                b->seconds[i] = inner.seconds;
            continue;
        }
        const bz_plan_layer *item =
            layers[i].class == BZ_VIEW || layers[i].class == BZ_CONSTANT ? NULL : bz_plan_find(plan, &layers[i]);
        bound_layer l = {.layer = &layers[i], .times = times};
        t.layers++;
        if (!item || item->lowering.free) {
            t.free++;
            continue;
        }
        bz_prices_layer(prices, item, &l.price);
        count_layer(&t, &l);
        keep(b, &l);
        if (layers == b->graph)
            b->seconds[i] = l.price.seconds;
    }
    return t;
}

void bound_of(const char *model, const bz_layers *layers, const bz_plan *plan, const bz_prices *prices, bound *b)
{
    *b = (bound){.model = model, .graph = layers->layer};
    b->seconds = bz_alloc((size_t)layers->n + 1, sizeof *b->seconds);
    for (int i = 0; i < layers->n; i++)
        b->seconds[i] = 0;
    b->total = sum_graph(b, layers->layer, layers->n, 1, plan, prices);
}

void bound_free(bound *b)
{
    free(b->layer);
    free(b->seconds);
    free(b->fused.group);
}

/* ---- for people ----------------------------------------------------------------------------- */

static const char *how(const bz_layer_price *p)
{
    return !p->alternative ? "unpriced" : bz_record_provenance_name(p->provenance);
}

static int slower(const void *a, const void *b)
{
    const bound_layer *const *x = a, *const *y = b;
    double s = (*x)->price.alternative ? (*x)->price.seconds * (*x)->times : 0;
    double t = (*y)->price.alternative ? (*y)->price.seconds * (*y)->times : 0;
    return s > t ? -1 : s < t ? 1 : *x < *y ? -1 : 1;
}

static void put_slowest(const bound *b, bz_buf *out)
{
    bz_arena arena = {0};
    bz_unit_text time, share;
    const bound_layer **order = BZ_NEW(&arena, const bound_layer *, b->n);
    bz_table *t = bz_table_new(&arena);
    for (int i = 0; i < b->n; i++)
        order[i] = &b->layer[i];
    qsort(order, (size_t)b->n, sizeof(void *), slower);
    bz_table_column(t, "slowest", BZ_LEFT);
    bz_table_column(t, "time", BZ_RIGHT);
    bz_table_column(t, "share", BZ_RIGHT);
    bz_table_column(t, "how", BZ_LEFT);
    bz_table_column(t, "layer", BZ_LEFT);
    for (int i = 0; i < b->n && i < 6 && order[i]->price.alternative; i++) {
        double s = order[i]->price.seconds * order[i]->times;
        bz_table_cell(t, order[i]->layer->name, NULL);
        bz_table_cell(t, bz_units_time(time, s), NULL);
        bz_table_cell(t, bz_units_percent(share, s / b->total.seconds), NULL);
        bz_table_cell(t, bz_arena_printf(&arena, "%s%s", how(&order[i]->price), order[i]->price.noisy ? ", noisy" : ""),
                      NULL);
        bz_table_cell(t, order[i]->layer->key, NULL);
    }
    if (bz_table_rows(t)) {
        bz_buf_putc(out, '\n');
        bz_table_print(t, out);
    }
    bz_arena_free(&arena);
}

static void put_unpriced(const bound *b, bz_buf *out)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        const bound_layer *l = &b->layer[i];
        if (l->price.alternative || n++ >= 10)
            continue;
        bz_buf_puts(out, "  unpriced: ");
        bz_buf_clean(out, l->layer->name);
        bz_buf_printf(out, " (%s): ", l->layer->kind);
        bz_buf_clean(out, l->price.why ? l->price.why : "?");
        bz_buf_putc(out, '\n');
    }
    if (n > 10)
        bz_buf_printf(out, "  and %d more\n", n - 10);
}

static void put_fused(const bound *b, bz_buf *out)
{
    const bound_fused *f = &b->fused;
    bz_unit_text time;
    if (!f->wanted)
        return;
    bz_buf_printf(out, "  fused %s%s: %d groups stand for %d layers", f->unpriced ? "≥ " : "",
                  bz_units_time(time, f->seconds), f->n, f->covered);
    if (f->modelled)
        bz_buf_printf(out, ", %d of them modelled", f->modelled);
    if (f->missing)
        bz_buf_printf(out, "; %d more have no record", f->missing);
    bz_buf_putc(out, '\n');
}

/* What a lower bound leaves out of graphs that run inside layers. */
static void put_bodies(const bound_total *t, bz_buf *out)
{
    if (t->branches)
        bz_buf_printf(out, "  %d If count%s the cheaper branch\n", t->branches, t->branches == 1 ? "s" : "");
    if (t->loops)
        bz_buf_printf(out, "  %d loop%s by trip count", t->loops, t->loops == 1 ? "" : "s");
    if (t->loops_open)
        bz_buf_printf(out, ", %d of them unknown: as often as --trips says, else once", t->loops_open);
    bz_buf_puts(out, t->loops ? "\n" : "");
}

void bound_text(const bound *b, const bound_head *head, bz_buf *out)
{
    const bound_total *t = &b->total;
    bz_unit_text time, launch;
    bz_buf_clean(out, b->model);
    bz_buf_printf(out, ": sequential bound as written %s%s\n", t->unpriced ? "≥ " : "",
                  bz_units_time(time, t->seconds));
    put_fused(b, out);
    bz_buf_puts(out, "  on ");
    bz_buf_clean(out, head->system);
    bz_buf_printf(out, ", %d thread%s, %s cache\n", head->setting.threads, head->setting.threads == 1 ? "" : "s",
                  bz_record_cache_name(head->setting.cache));
    bz_buf_printf(out, "  coverage: %d of %d layer%s", t->layers - t->unpriced, t->layers, t->layers == 1 ? "" : "s");
    if (t->macs > 0)
        bz_buf_printf(out, ", %.1f %% of MACs measured", 100 * t->macs_measured / t->macs);
    bz_buf_printf(out, ", %d modelled, %d unpriced (%d measured, %d imported, %d free)\n", t->modelled, t->unpriced,
                  t->measured, t->imported, t->free);
    if (head->benchmarks)
        bz_buf_printf(out, "  measured now: %d of %d problems (%.0f %% saved), %d records\n",
                      head->problems - head->known, head->problems, 100.0 * head->known / head->problems,
                      head->benchmarks);
    put_bodies(t, out);
    bz_buf_printf(out, "  launch overhead, not in the bound: %s\n", bz_units_time(launch, t->launch));
    if (t->noisy)
        bz_buf_printf(out, "  %d layer%s on records marked noisy\n", t->noisy, t->noisy == 1 ? " rests" : "s rest");
    put_unpriced(b, out);
    put_slowest(b, out);
}

/* ---- for programs --------------------------------------------------------------------------- */

static void json_layer(const bound_layer *l, bz_json *j)
{
    const bz_layer_price *p = &l->price;
    bz_json_object(j);
    bz_json_key_str(j, "name", l->layer->name);
    bz_json_key_str(j, "key", l->layer->key);
    bz_json_key_num(j, "seconds", p->alternative ? p->seconds : NAN);
    bz_json_key_num(j, "times", l->times);
    bz_json_key_str(j, "provenance", how(p));
    bz_json_key_bool(j, "noisy", p->noisy);
    if (!p->alternative)
        bz_json_key_str(j, "why", p->why);
    bz_json_key(j, "problems");
    bz_json_array(j);
    for (int i = 0; p->alternative && i < p->alternative->n; i++)
        bz_json_str(j, p->alternative->text[i]);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void json_fused(const bound_fused *f, bz_json *j)
{
    bz_json_key(j, "fused");
    bz_json_object(j);
    bz_json_key_num(j, "sequential", f->seconds);
    bz_json_key_bool(j, "complete", !f->unpriced);
    bz_json_key_int(j, "missing", f->missing);
    bz_json_key_int(j, "refused", f->refused);
    bz_json_key(j, "groups");
    bz_json_array(j);
    for (int g = 0; g < f->n; g++) {
        const bound_group *group = &f->group[g];
        bz_json_object(j);
        bz_json_key_str(j, "pattern", group->pattern);
        bz_json_key_num(j, "seconds", group->price.seconds);
        bz_json_key_str(j, "provenance", how(&group->price));
        bz_json_key(j, "layers");
        bz_json_array(j);
        for (int i = 0; i < group->n; i++)
            bz_json_str(j, group->graph[group->layer[i]].name);
        bz_json_array_end(j);
        bz_json_key(j, "problems");
        bz_json_array(j);
        for (int i = 0; i < group->price.alternative->n; i++)
            bz_json_str(j, group->price.alternative->text[i]);
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

void bound_json(const bound *b, int n, const bound_head *head, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 4;
    bz_json_array(&j);
    for (int i = 0; i < n; i++) {
        const bound_total *t = &b[i].total;
        bz_json_object(&j);
        bz_json_key_str(&j, "model", b[i].model);
        bz_json_key_str(&j, "system", head->system);
        bz_json_key_int(&j, "threads", head->setting.threads);
        bz_json_key_str(&j, "cache", bz_record_cache_name(head->setting.cache));
        bz_json_key_int(&j, "benchmarks", head->benchmarks);
        bz_json_key_int(&j, "problems", head->problems);
        bz_json_key_int(&j, "problems_known", head->known);
        bz_json_key_num(&j, "sequential", t->seconds);
        bz_json_key_bool(&j, "complete", !t->unpriced);
        bz_json_key_num(&j, "launch", t->launch);
        bz_json_key_int(&j, "n_layers", t->layers);
        bz_json_key_int(&j, "measured", t->measured);
        bz_json_key_int(&j, "imported", t->imported);
        bz_json_key_int(&j, "modelled", t->modelled);
        bz_json_key_int(&j, "unpriced", t->unpriced);
        bz_json_key_int(&j, "free", t->free);
        bz_json_key_int(&j, "noisy", t->noisy);
        bz_json_key_int(&j, "branches", t->branches);
        bz_json_key_int(&j, "loops", t->loops);
        bz_json_key_int(&j, "loops_open", t->loops_open);
        bz_json_key_num(&j, "macs_measured", t->macs > 0 ? t->macs_measured / t->macs : 1);
        if (b[i].fused.wanted)
            json_fused(&b[i].fused, &j);
        bz_json_key(&j, "layers");
        bz_json_array(&j);
        for (int k = 0; k < b[i].n; k++)
            json_layer(&b[i].layer[k], &j);
        bz_json_array_end(&j);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_buf_putc(out, '\n');
}

void bound_csv(const bound *b, int n, bz_buf *out)
{
    static const char *const TITLES[] = {"model", "layer", "seconds", "times", "provenance", "key"};
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    for (int i = 0; i < 6; i++)
        bz_table_column(t, TITLES[i], BZ_LEFT);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < b[i].n; k++) {
            const bound_layer *l = &b[i].layer[k];
            bz_table_cell(t, b[i].model, NULL);
            bz_table_cell(t, l->layer->name, NULL);
            bz_table_cell(t, l->price.alternative ? bz_arena_printf(&arena, "%.9g", l->price.seconds) : "", NULL);
            bz_table_cell(t, bz_arena_printf(&arena, "%g", l->times), NULL);
            bz_table_cell(t, how(&l->price), NULL);
            bz_table_cell(t, l->layer->key, NULL);
        }
    bz_table_csv(t, out);
    bz_arena_free(&arena);
}
