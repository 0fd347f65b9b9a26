/* Matrix units: who used them, who could, and what they would gain. */
#include "explain/units.h"

#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    const bz_bound *b;
    const bz_trace *trace;
    bz_arena *arena;
    bz_units *u;
    bz_unit_rules rules;
    bz_unit_system system;
    bz_map names; /* by pointer: names are shared */
    const char **unit;
    int n_names;
} making;

/* The device that the profile ran on; else the one that the records are from. */
static void find_system(making *m)
{
    const char *ran = m->trace ? bz_trace_told(m->trace, "gpu") : NULL;
    const bz_system_facts *facts = m->b->facts;
    m->system = bz_unit_of_system(&m->rules, facts->isa,
                                  ran          ? ran
                                  : facts->gpu ? facts->name
                                               : NULL,
                                  ran && strcmp(ran, facts->name) != 0 ? 0 : facts->capability);
    m->u->unit = m->system.unit;
}

static const char *unit_name(making *m, const char *name)
{
    uint32_t at = bz_map_number(&m->names, m->arena, &name, sizeof name);
    if (at == (uint32_t)m->n_names)
        BZ_ARENA_ADD(m->arena, m->unit, m->n_names) = bz_unit_of_name(&m->rules, name);
    return m->unit[at];
}

static void begin(making *m)
{
    *m->u = (bz_units){0};
    bz_unit_rules_read(bz_units_text, m->arena, &m->rules);
    find_system(m);
}

static bz_unit_row *add_row(making *m, int layer, const char *call)
{
    BZ_ARENA_ROOM(m->arena, m->u->row, m->u->n);
    bz_unit_row *row = &m->u->row[m->u->n++];
    *row = (bz_unit_row){.layer = layer, .call = call, .seconds = NAN, .best = NAN};
    return row;
}

static void settle(making *m, bz_unit_row *row, const char *evidence, const char *why, bool channels)
{
    row->used = evidence != NULL;
    row->evidence = evidence;
    row->why = row->used ? NULL : why;
    row->channels = row->why && channels;
    row->could = row->used || row->why;
    m->u->used += row->used;
    m->u->could += row->could && !row->used;
}

static int64_t dim(const bz_type *t, int from_end)
{
    int i = from_end < 0 ? -1 - from_end : t->rank - from_end;
    return t->kind == BZ_TYPE_TENSOR && i >= 0 && i < t->rank ? t->dims[i] : 0;
}

/* What a layer multiplies: weights [out, in, …] of convolutions, matrices of products, gates of recurrent ones. */
static bz_unit_product product_of(const making *m, const bz_layer *l)
{
    const bz_param *group = bz_layer_param(l, "group"), *trans = bz_layer_param(l, "transB");
    bz_dtype own = l->n_in ? l->in[0].dtype : BZ_UNDEFINED;
    bool real = own == BZ_F32 || own == BZ_F16 || own == BZ_BF16 || own == BZ_F64;
    bz_unit_product p = {.dtype = bz_dtype_name(m->b->dtype && real ? m->b->dtype : own), .group = 1};
    const bz_type *w = l->n_in > 1 ? &l->in[1] : NULL;
    if (!w)
        return p;
    p.group = group && group->n ? group->v[0] : 1;
    if (bz_layer_has(l, BZ_LAYER_CONVOLUTION)) {
        p.in = dim(w, -2);
        p.out = p.group > 0 ? dim(w, -1) / p.group : 0;
    } else if (!strcmp(l->kind, "gemm") || !strcmp(l->kind, "matmul")) {
        bool turned = trans && trans->n && trans->v[0];
        p.in = dim(w, turned ? 1 : 2);
        p.out = dim(w, turned ? 2 : 1);
    }
    return p;
}

/* The best way of a layer of the main graph, conversions left out. */
static void find_best(making *m, const bz_units *ways, bz_unit_row *row)
{
    const bz_bound_layer *l = &m->b->layer[row->layer];
    row->seconds = row->best = l->price.alternative ? l->price.seconds * l->times : NAN;
    for (int i = 0; ways && i < ways->n_ways; i++) {
        double s = ways->way[i].seconds[l->node];
        if (!ways->way[i].layout && l->layer == &m->b->layers->layer[l->node] && s < row->best) {
            row->best = s;
            row->best_way = ways->way[i].name;
        }
    }
}

/* What rules look at, besides the variant: equal layers have equal answers. */
typedef struct alike {
    bz_hash hash;
    const char *variant;
    uintptr_t dtype;
} alike;

static void add_layers(making *m)
{
    BZ_SCOPED(bz_map) known = {0};
    for (int i = 0; i < m->b->n; i++) {
        const bz_bound_layer *l = &m->b->layer[i];
        if (!l->layer->macs)
            continue;
        alike *key = BZ_NEW(m->arena, alike, 1);
        *key = (alike){l->layer->hash, l->variant, l->layer->n_in ? l->layer->in[0].dtype : 0};
        uint32_t first = bz_map_add(&known, key, sizeof *key, (uint32_t)m->u->n);
        bz_unit_row *row = add_row(m, i, NULL);
        if (first + 1 < (uint32_t)m->u->n) {
            settle(m, row, m->u->row[first].evidence, m->u->row[first].why, m->u->row[first].channels);
        } else {
            bz_unit_product p = product_of(m, l->layer);
            bool used = l->variant && unit_name(m, l->variant), channels;
            const char *why = bz_unit_why(&m->rules, &m->system, &p, m->arena, &channels);
            settle(m, row, used ? l->variant : NULL, why, channels);
        }
        find_best(m, m->u, row);
    }
}

static int more_gain(const void *x, const void *y)
{
    const bz_unit_way *a = x, *b = y;
    double first = isfinite(a->gain) ? a->gain : -INFINITY, second = isfinite(b->gain) ? b->gain : -INFINITY;
    return first > second ? -1 : first < second ? 1 : strcmp(a->name, b->name);
}

int bz_units_make(const bz_bound *bound, const bz_unit_try *tries, int n, bz_perfdb *db, const bz_system *system,
                  bz_arena *arena, bz_units *out, bz_error *err)
{
    making m = {.b = bound, .arena = arena, .u = out};
    begin(&m);
    bz_unit_way *way = BZ_NEW(arena, bz_unit_way, n);
    for (int i = 0; i < n; i++)
        if (bz_unit_way_make(bound, &tries[i], db, system, arena, &way[i], err))
            return -1;
    BZ_QSORT(way, n, more_gain);
    out->way = way;
    out->n_ways = n;
    add_layers(&m);
    bz_map_free(&m.names);
    return 0;
}

static bz_unit_product product_of_call(const bz_call *call)
{
    const bz_problem *p = call->problem;
    bz_unit_product out = {.dtype = bz_dtype_name(p->dtype), .group = 1, .math = call->math, .packed = call->x.packed};
    if (p->kind == BZ_PROBLEM_CONV) {
        out.group = p->conv.group;
        out.in = p->conv.w[1];
        out.out = p->conv.w[0] / (out.group > 0 ? out.group : 1);
    } else if (p->kind == BZ_PROBLEM_GEMM) {
        out.in = p->gemm.k;
        out.out = p->gemm.n;
    }
    return out;
}

/* [calls]: a kernel that the call launched and that ran on a unit; NULL. Kernels of no recorded call are rows. */
static const char **find_kernels(making *m, uint32_t iteration)
{
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL], *c = &m->trace->event[BZ_EVENT_CALL];
    const char **by = BZ_NEW(m->arena, const char *, c->n);
    for (size_t i = 0; i < k->n; i++) {
        const char *name = bz_string(m->trace, k->name[i]);
        bool inside = bz_event_iteration(m->trace, BZ_EVENT_KERNEL, i) == iteration;
        if (!inside || !unit_name(m, name))
            continue;
        const char *shown = k->short_name && k->short_name[i] ? bz_string(m->trace, k->short_name[i]) : name;
        if (k->call && k->call[i] < c->n)
            by[bz_call_outermost(m->trace, k->call[i])] = shown;
        else
            settle(m, add_row(m, -1, shown), shown, NULL, false);
    }
    return by;
}

static const char *evidence_of(making *m, size_t call, const char *kernel, const bz_unit_product *p)
{
    const char *variant = bz_string(m->trace, m->trace->event[BZ_EVENT_CALL].variant[call]);
    bool seen = m->trace->event[BZ_EVENT_KERNEL].n > 0;
    if (kernel)
        return kernel;
    if (*variant && unit_name(m, variant))
        return variant;
    return !seen && p->math && bz_unit_multiple(&m->rules, &m->system, p->dtype) &&
                   bz_unit_of_log(&m->rules, p->math, variant)
               ? bz_arena_printf(m->arena, "%s, %s", p->math, variant)
               : NULL;
}

static const int *find_layers(const making *m, const bz_alignment *a)
{
    size_t n = m->trace->event[BZ_EVENT_CALL].n;
    int *layer = BZ_NEW(m->arena, int, n);
    for (int i = 0; a && i < a->n; i++)
        for (int k = 0; k < a->row[i].n_layers && a->row[i].at < n; k++)
            if (m->b->layer[a->row[i].layer[k]].layer->macs && !layer[a->row[i].at])
                layer[a->row[i].at] = a->row[i].layer[k] + 1;
    return layer;
}

void bz_units_look(const bz_bound *bound, const bz_trace *trace, const bz_alignment *alignment, const bz_units *model,
                   bz_arena *arena, bz_units *out)
{
    making m = {.b = bound, .trace = trace, .arena = arena, .u = out};
    const bz_events *c = &trace->event[BZ_EVENT_CALL];
    uint32_t iteration = bz_typical_iteration(trace);
    begin(&m);
    out->way = model ? model->way : NULL;
    out->n_ways = model ? model->n_ways : 0;
    const char **kernel = find_kernels(&m, iteration);
    const int *layer = find_layers(&m, alignment);
    for (size_t i = 0; i < c->n && iteration != BZ_NONE; i++) {
        if (!bz_call_works(trace, i) || bz_event_iteration(trace, BZ_EVENT_CALL, i) != iteration)
            continue;
        const bz_call *call = bz_call_of(trace, i);
        const bz_problem *p = call->problem;
        bool product = p && (p->kind == BZ_PROBLEM_CONV || p->kind == BZ_PROBLEM_GEMM);
        if (!product && !kernel[i] && (p || !layer[i])) /* a layer's other calls add its bias */
            continue;
        bz_unit_row *row = add_row(&m, layer[i] - 1, bz_string(trace, c->name[i]));
        bz_unit_product what = product           ? product_of_call(call)
                               : row->layer >= 0 ? product_of(&m, bound->layer[row->layer].layer)
                                                 : (bz_unit_product){.dtype = "?"};
        const char *evidence = evidence_of(&m, i, kernel[i], &what);
        bool channels = false;
        const char *why = product || row->layer >= 0 ? bz_unit_why(&m.rules, &m.system, &what, arena, &channels) : NULL;
        settle(&m, row, evidence, why, channels);
        if (row->layer >= 0)
            find_best(&m, model, row);
    }
    bz_map_free(&m.names);
}
