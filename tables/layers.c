/* The layers of one iteration, and the kernels that they launched. */
#include "tables/layers.h"

#include "runtime/gpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool layers_have(const bz_tables *m, uint32_t typical, bz_event_kind kind, size_t i)
{
    return tables_in(m, kind, i) &&
           (m->from != INT64_MIN || typical == BZ_NONE || bz_event_iteration(m->t, kind, i) == typical);
}

static void find_layers(layers *l)
{
    const bz_trace *t = l->m->t;
    const bz_events *op = &t->event[BZ_EVENT_OP];
    uint32_t typical = bz_typical_iteration(t);
    l->of_op = bz_alloc(op->n + 1, sizeof *l->of_op);
    for (size_t i = 0; i < op->n; i++) {
        uint32_t around = op->op[i];
        l->of_op[i] = around < i ? l->of_op[around] : BZ_NONE;
        if (l->of_op[i] != BZ_NONE || !layers_have(l->m, typical, BZ_EVENT_OP, i) || op->end[i] <= op->start[i] ||
            tables_is_numbered(bz_string(t, op->name[i])))
            continue;
        BZ_ROOM(l->layer, l->n);
        l->layer[l->n] = (layer){.op = i, .work = NOT_TOLD};
        l->of_op[i] = l->n++;
    }
}

static void add_work(layer_work *to, const layer_work *w)
{
    to->flops = isnan(to->flops) ? w->flops : to->flops + w->flops;
    to->reads = isnan(to->reads) ? w->reads : to->reads + w->reads;
    to->writes = isnan(to->writes) ? w->writes : to->writes + w->writes;
    to->bytes = w->bytes > to->bytes ? w->bytes : to->bytes;
}

/* The work of operators that compute, the outermost that tell; it is their longest kernel's. */
static void find_work(layers *l)
{
    const bz_trace *t = l->m->t;
    const bz_events *op = &t->event[BZ_EVENT_OP], *k = &t->event[BZ_EVENT_KERNEL];
    layer_work w;
    l->told = bz_alloc(op->n + 1, sizeof *l->told);
    for (size_t i = 0; i < op->n; i++) {
        uint32_t around = op->op[i];
        l->told[i] = around < i ? l->told[around] : BZ_NONE;
        if (l->told[i] != BZ_NONE || l->of_op[i] == BZ_NONE || !layer_work_of(t, i, &w))
            continue;
        BZ_ROOM(l->work, l->n_work);
        l->work[l->n_work] = (struct layer_told){w, BZ_NONE};
        l->told[i] = l->n_work++;
        add_work(&l->layer[l->of_op[i]].work, &w);
    }
    for (size_t i = 0; l->n_work && i < k->n; i++) {
        uint32_t o = tables_op(l->m, BZ_EVENT_KERNEL, i), *longest;
        if (o >= op->n || l->told[o] == BZ_NONE)
            continue;
        longest = &l->work[l->told[o]].kernel;
        if (*longest == BZ_NONE || k->end[i] - k->start[i] > k->end[*longest] - k->start[*longest])
            *longest = (uint32_t)i;
    }
}

uint32_t layers_of_kernel(const layers *l, size_t kernel)
{
    uint32_t o = tables_op(l->m, BZ_EVENT_KERNEL, kernel);
    return o < l->m->t->event[BZ_EVENT_OP].n ? l->of_op[o] : BZ_NONE;
}

layer_work layers_work(const layers *l, size_t kernel)
{
    uint32_t o = tables_op(l->m, BZ_EVENT_KERNEL, kernel),
             told = o < l->m->t->event[BZ_EVENT_OP].n ? l->told[o] : BZ_NONE;
    return told != BZ_NONE && l->work[told].kernel == kernel ? l->work[told].work : NOT_TOLD;
}

static void find_kernels(layers *l)
{
    const bz_events *k = &l->m->t->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; l->n && i < k->n; i++) {
        uint32_t at = layers_of_kernel(l, i);
        if (at == BZ_NONE)
            continue;
        layer *of = &l->layer[at];
        of->kernels++;
        of->kernel_time += k->end[i] - k->start[i];
        of->occupancy += layer_occupancy(k, i) * (double)(k->end[i] - k->start[i]);
    }
}

/* Allocations are marks on the thread of the operator that asked; freeing has bytes below 0. */
static void find_memory(layers *l)
{
    const bz_trace *t = l->m->t;
    const bz_events *r = &t->event[BZ_EVENT_RANGE], *op = &t->event[BZ_EVENT_OP];
    BZ_FREED uint32_t *at = bz_none((size_t)t->n_lanes + 1, sizeof *at);
    for (size_t i = 0, j = 0; i < r->n; i++) {
        for (; j < l->n && op->start[l->layer[j].op] <= r->start[i]; j++)
            at[op->lane[l->layer[j].op]] = (uint32_t)j;
        l->memory = l->memory || r->bytes[i];
        uint32_t of = at[r->lane[i]];
        if (r->bytes[i] > 0 && of != BZ_NONE && r->start[i] <= op->end[l->layer[of].op])
            l->layer[of].memory += r->bytes[i];
    }
}

bz_gpu layer_gpu(const bz_trace *t)
{
    const char *name = bz_trace_told(t, "gpu");
    bz_gpu gpu;
    return name && bz_gpu_find(name, &gpu) ? gpu : (bz_gpu){0};
}

double layer_peak(const bz_gpu *gpu, const char *type, int bytes)
{
    double rate = type ? bz_gpu_rate(gpu, type) : 0;
    if (!(rate > 0))
        rate = bz_gpu_rate(gpu, bytes == 8 ? "f64" : bytes == 4 ? "f32" : bytes == 2 ? "f16" : "i8");
    return rate > 0 ? rate : (double)NAN;
}

void layers_find(bz_tables *m, layers *l)
{
    *l = (layers){.m = m};
    find_layers(l);
    find_work(l);
    find_kernels(l);
    find_memory(l);
    l->gpu = layer_gpu(m->t);
}

void layers_free(layers *l)
{
    free(l->layer);
    free(l->of_op);
    free(l->told);
    free(l->work);
}
