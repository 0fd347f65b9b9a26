/* The analyses of XSP: model, layers, types of layers, kernels. */
#include "base/sort.h"
#include "tables/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The shapes of an operator: of its outputs where they are told, else of its inputs. */
static const char *shapes(bz_tables *m, size_t op)
{
    const bz_events *e = &m->t->event[BZ_EVENT_OP];
    static const char *const NAMES[] = {"outputs=", "inputs="};
    const char *detail = e->detail[op] ? bz_string(m->t, e->detail[op]) : "";
    for (int k = 0; k < 2; k++) {
        const char *p = strstr(detail, NAMES[k]);
        if (p)
            return bz_arena_strn(m->arena, p + strlen(NAMES[k]), strcspn(p + strlen(NAMES[k]), " "));
    }
    return NULL;
}

static int64_t layer_time(const layers *l, uint32_t i)
{
    const bz_events *op = &l->m->t->event[BZ_EVENT_OP];
    return op->end[l->layer[i].op] - op->start[l->layer[i].op];
}

static const char *layer_name(const layers *l, uint32_t i)
{
    return bz_string(l->m->t, l->m->t->event[BZ_EVENT_OP].name[l->layer[i].op]);
}

/* Beginning, middle, end: three parts with as many layers. */
static int stage(const layers *l, uint32_t i)
{
    return (int)((uint64_t)i * 3 / l->n);
}

static const char *const STAGES[] = {"beginning", "middle", "end"};

void fill_layers(bz_tables *m, bz_sheet *s)
{
    layers l;
    layers_find(m, &l);
    for (uint32_t i = 0; i < l.n; i++)
        BZ_SHEET_ADD(s, BZ_NUMBER(i), BZ_TEXT(layer_name(&l, i)), BZ_TEXT(shapes(m, l.layer[i].op)),
                     BZ_TEXT(STAGES[stage(&l, i)]), BZ_NUMBER(tables_seconds(layer_time(&l, i))),
                     BZ_NUMBER(l.memory ? (double)l.layer[i].memory : NAN));
    layers_free(&l);
}

/* Memory-bound is what does fewer operations per byte than the GPU could. */
static const char *limit(const layers *l, const layer_work *w)
{
    double peak = layer_peak(&l->gpu, NULL, w->bytes);
    if (isnan(w->flops) || isnan(peak) || !(l->gpu.bandwidth > 0))
        return NULL;
    return w->flops / (w->reads + w->writes) < peak / l->gpu.bandwidth ? "memory" : "arithmetic";
}

static double rate(const layer_work *w, int64_t time)
{
    return time > 0 ? w->flops / tables_seconds(time) : NAN;
}

void fill_layer_kernels(bz_tables *m, bz_sheet *s)
{
    layers l;
    bool behind = false;
    layers_find(m, &l);
    for (uint32_t i = 0; i < l.n; i++) {
        const layer *y = &l.layer[i];
        int64_t time = layer_time(&l, i);
        bool within = y->kernel_time <= time;
        behind = behind || !within;
        if (y->kernels)
            BZ_SHEET_ADD(
                s, BZ_NUMBER(i), BZ_TEXT(layer_name(&l, i)), BZ_NUMBER(tables_seconds(time)), BZ_NUMBER(y->kernels),
                BZ_NUMBER(tables_seconds(y->kernel_time)),
                BZ_NUMBER(within ? tables_seconds(time - y->kernel_time) : NAN),
                BZ_NUMBER(within ? tables_share((double)y->kernel_time, (double)time) : NAN), BZ_NUMBER(y->work.flops),
                BZ_NUMBER(y->work.reads), BZ_NUMBER(y->work.writes),
                BZ_NUMBER(y->work.flops / (y->work.reads + y->work.writes)), BZ_NUMBER(rate(&y->work, y->kernel_time)),
                BZ_NUMBER(y->kernel_time ? y->occupancy / (double)y->kernel_time : NAN), BZ_TEXT(limit(&l, &y->work)));
    }
    if (behind)
        s->note = "Where kernels take longer than the layer itself, the host does not wait for them: a recording with "
                  "CUDA_LAUNCH_BLOCKING=1 tells what a layer takes besides its kernels.";
    layers_free(&l);
}

typedef struct type_sums {
    int64_t count, time, memory;
} type_sums;

void fill_layer_types(bz_tables *m, bz_sheet *s)
{
    layers l;
    layers_find(m, &l);
    type_sums *of = bz_zeroed((size_t)bz_strings(m->t) + 1, sizeof *of), all = {0};
    const uint32_t *name = m->t->event[BZ_EVENT_OP].name;
    for (uint32_t i = 0; i < l.n; i++) {
        type_sums *t = &of[name[l.layer[i].op]];
        t->count++;
        t->time += layer_time(&l, i);
        t->memory += l.layer[i].memory;
        all.count++;
        all.time += layer_time(&l, i);
        all.memory += l.layer[i].memory;
    }
    for (uint32_t k = 0; k < bz_strings(m->t); k++)
        if (of[k].count)
            BZ_SHEET_ADD(s, BZ_TEXT(bz_string(m->t, k)), BZ_NUMBER(of[k].count),
                         BZ_NUMBER(tables_share((double)of[k].count, (double)all.count)),
                         BZ_NUMBER(tables_seconds(of[k].time)),
                         BZ_NUMBER(tables_share((double)of[k].time, (double)all.time)),
                         BZ_NUMBER(l.memory ? (double)of[k].memory : NAN),
                         BZ_NUMBER(l.memory ? tables_share((double)of[k].memory, (double)all.memory) : NAN));
    bz_sheet_sort(s, 3);
    free(of);
    layers_free(&l);
}

void fill_stages(bz_tables *m, bz_sheet *s)
{
    layers l;
    struct {
        int64_t count, time, memory, kernel_time;
        double flops;
    } of[3] = {0};
    layers_find(m, &l);
    for (uint32_t i = 0; i < l.n; i++) {
        int k = stage(&l, i);
        of[k].count++;
        of[k].time += layer_time(&l, i);
        of[k].memory += l.layer[i].memory;
        of[k].kernel_time += l.layer[i].kernel_time;
        of[k].flops += isnan(l.layer[i].work.flops) ? 0 : l.layer[i].work.flops;
    }
    for (int k = 0; k < 3 && l.n >= 3; k++)
        BZ_SHEET_ADD(s, BZ_TEXT(STAGES[k]), BZ_NUMBER(of[k].count), BZ_NUMBER(tables_seconds(of[k].time)),
                     BZ_NUMBER(tables_seconds(of[k].kernel_time)), BZ_NUMBER(l.memory ? (double)of[k].memory : NAN),
                     BZ_NUMBER(of[k].flops > 0 ? of[k].flops : NAN));
    layers_free(&l);
}

/* Kernels of layers; where no operators were recorded, those of the typical iteration, or all. */
static bool kernel_in_scope(const layers *l, uint32_t typical, size_t i)
{
    return l->n ? layers_of_kernel(l, i) != BZ_NONE : layers_have(l->m, typical, BZ_EVENT_KERNEL, i);
}

void fill_kernel_list(bz_tables *m, bz_sheet *s)
{
    enum { MOST = 20000 };
    const bz_events *k = &m->t->event[BZ_EVENT_KERNEL];
    uint32_t typical = bz_typical_iteration(m->t);
    size_t all = 0;
    layers l;
    layers_find(m, &l);
    for (size_t i = 0; i < k->n; i++) {
        if (!kernel_in_scope(&l, typical, i) || all++ >= MOST)
            continue;
        int64_t time = k->end[i] - k->start[i];
        uint32_t of = layers_of_kernel(&l, i);
        const layer_work told_of = layers_work(&l, i), *w = &told_of;
        BZ_SHEET_ADD(s, BZ_TEXT(tables_shown(m, BZ_EVENT_KERNEL, k->name[i])),
                     BZ_NUMBER(of != BZ_NONE ? (double)of : NAN), BZ_TEXT(of != BZ_NONE ? layer_name(&l, of) : NULL),
                     BZ_NUMBER(tables_seconds(time)), BZ_NUMBER(w->flops), BZ_NUMBER(w->reads), BZ_NUMBER(w->writes),
                     BZ_NUMBER(layer_occupancy(k, i)), BZ_NUMBER(w->flops / (w->reads + w->writes)),
                     BZ_NUMBER(rate(w, time)), BZ_TEXT(limit(&l, w)));
    }
    if (all > MOST)
        s->note = bz_arena_printf(m->arena, "There are %zu kernels; these are the first %d.", all, MOST);
    layers_free(&l);
}

typedef struct kernel_sums {
    int64_t count, time, work_time; /* of kernels whose work is known */
    double occupancy;
    layer_work work;
} kernel_sums;

static void add_sums(kernel_sums *to, const bz_events *k, size_t i, layer_work w)
{
    int64_t time = k->end[i] - k->start[i];
    to->count++;
    to->time += time;
    to->occupancy += layer_occupancy(k, i) * (double)time;
    to->work_time += isnan(w.flops) ? 0 : time;
    to->work.flops += isnan(w.flops) ? 0 : w.flops;
    to->work.reads += isnan(w.flops) ? 0 : w.reads;
    to->work.writes += isnan(w.flops) ? 0 : w.writes;
    to->work.bytes = w.bytes > to->work.bytes ? w.bytes : to->work.bytes;
}

static layer_work told(const kernel_sums *k)
{
    return k->work.flops > 0 ? k->work : NOT_TOLD;
}

void fill_kernel_names(bz_tables *m, bz_sheet *s)
{
    const bz_events *k = &m->t->event[BZ_EVENT_KERNEL];
    uint32_t typical = bz_typical_iteration(m->t);
    BZ_FREED kernel_sums *of = bz_zeroed((size_t)bz_strings(m->t) + 1, sizeof *of);
    double latency = typical != BZ_NONE && m->from == INT64_MIN ? (double)bz_iteration_latency(m->t, typical) : NAN;
    layers l;
    layers_find(m, &l);
    for (size_t i = 0; i < k->n; i++)
        if (kernel_in_scope(&l, typical, i))
            add_sums(&of[k->name[i]], k, i, layers_work(&l, i));
    for (uint32_t n = 0; n < bz_strings(m->t); n++) {
        layer_work w = told(&of[n]);
        if (of[n].count)
            BZ_SHEET_ADD(s, BZ_TEXT(tables_shown(m, BZ_EVENT_KERNEL, n)), BZ_NUMBER(of[n].count),
                         BZ_NUMBER(tables_seconds(of[n].time)),
                         BZ_NUMBER(latency > 0 ? (double)of[n].time / latency : NAN), BZ_NUMBER(w.flops),
                         BZ_NUMBER(w.reads), BZ_NUMBER(w.writes),
                         BZ_NUMBER(of[n].time ? of[n].occupancy / (double)of[n].time : NAN),
                         BZ_NUMBER(w.flops / (w.reads + w.writes)), BZ_NUMBER(rate(&w, of[n].work_time)),
                         BZ_TEXT(limit(&l, &w)), BZ_TEXT(bz_string(m->t, n)));
    }
    bz_sheet_sort(s, 2);
    layers_free(&l);
}

/* XSP's mean: without the fifth that is smallest and the fifth that is greatest. */
static double trimmed_mean(double *v, size_t n)
{
    size_t cut = n / 5;
    double sum = 0;
    bz_sort_numbers(v, n);
    for (size_t i = cut; i < n - cut; i++)
        sum += v[i];
    return sum / (double)(n - 2 * cut);
}

void fill_model(bz_tables *m, bz_sheet *s)
{
    double *v;
    size_t n = bz_trace_figures(m->t, BZ_FIGURE_LATENCY, m->arena, &v);
    const bz_events *k = &m->t->event[BZ_EVENT_KERNEL];
    uint32_t typical = bz_typical_iteration(m->t);
    kernel_sums all = {0};
    layers l;
    if (!n || typical == BZ_NONE)
        return;
    double mean = trimmed_mean(v, n) / 1e9, latency = tables_seconds(bz_iteration_latency(m->t, typical));
    layers_find(m, &l);
    for (size_t i = 0; i < k->n; i++)
        if (bz_event_iteration(m->t, BZ_EVENT_KERNEL, i) == typical)
            add_sums(&all, k, i, layers_work(&l, i));
    layer_work w = told(&all);
    BZ_SHEET_ADD(s, BZ_NUMBER(n), BZ_NUMBER(mean), BZ_NUMBER(mean > 0 ? 1 / mean : NAN), BZ_NUMBER(latency),
                 BZ_NUMBER(tables_seconds(all.time)), BZ_NUMBER(latency > 0 ? tables_seconds(all.time) / latency : NAN),
                 BZ_NUMBER(w.flops), BZ_NUMBER(w.reads), BZ_NUMBER(w.writes),
                 BZ_NUMBER(all.time ? all.occupancy / (double)all.time : NAN),
                 BZ_NUMBER(w.flops / (w.reads + w.writes)), BZ_NUMBER(rate(&w, all.work_time)), BZ_TEXT(limit(&l, &w)));
    layers_free(&l);
}
