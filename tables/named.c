/* Kernels, calls and copies by name: count, sum, mean and the rest, as `nsys stats` and HTA have them. */
#include "tables/parts.h"

#include <math.h>

static void add_figures(bz_sheet *s, const char *name, const char *more, const figures *f, double all, double unit)
{
    BZ_SHEET_ADD(s, BZ_TEXT(name), BZ_TEXT(more), BZ_NUMBER(f->count), BZ_NUMBER(f->sum * unit),
                 BZ_NUMBER(tables_share(f->sum, all)), BZ_NUMBER(f->mean * unit), BZ_NUMBER(f->median * unit),
                 BZ_NUMBER(f->min * unit), BZ_NUMBER(f->max * unit), BZ_NUMBER(f->deviation * unit));
}

static double sum_of(const figures *f, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += f[i].sum;
    return sum;
}

/* Kernels by their full name: short names may be the same for different kernels. */
void fill_kernels(bz_tables *m, bz_sheet *s)
{
    const bz_events *k = &m->t->event[BZ_EVENT_KERNEL];
    groups g;
    uint32_t n;
    groups_begin(&g, m->arena);
    for (size_t i = 0; i < k->n; i++)
        if (tables_in(m, BZ_EVENT_KERNEL, i))
            groups_add(&g, k->name[i], (double)(k->end[i] - k->start[i]));
    const figures *f = groups_end(&g, &n);
    double all = sum_of(f, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t full = (uint32_t)f[i].key;
        BZ_SHEET_ADD(s, BZ_TEXT(tables_shown(m, BZ_EVENT_KERNEL, full)),
                     BZ_TEXT(bz_kernel_does_name(bz_kernel_named(m->t, full)->does)), BZ_NUMBER(f[i].count),
                     BZ_NUMBER(f[i].sum / 1e9), BZ_NUMBER(tables_share(f[i].sum, all)), BZ_NUMBER(f[i].mean / 1e9),
                     BZ_NUMBER(f[i].median / 1e9), BZ_NUMBER(f[i].min / 1e9), BZ_NUMBER(f[i].max / 1e9),
                     BZ_NUMBER(f[i].deviation / 1e9), BZ_TEXT(bz_string(m->t, full)));
    }
}

static void fill_named(bz_tables *m, bz_sheet *s, bz_event_kind kind)
{
    const bz_events *e = &m->t->event[kind];
    groups g;
    uint32_t n;
    groups_begin(&g, m->arena);
    for (size_t i = 0; i < e->n; i++)
        if (tables_in(m, kind, i) && !(e->flags && e->flags[i] & BZ_CALL_UNTIMED))
            groups_add(&g, (uint64_t)e->name[i] << 32 | (e->variant ? e->variant[i] : 0),
                       (double)(e->end[i] - e->start[i]));
    const figures *f = groups_end(&g, &n);
    double all = sum_of(f, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t variant = (uint32_t)f[i].key;
        add_figures(s, bz_string(m->t, (uint32_t)(f[i].key >> 32)), variant ? bz_string(m->t, variant) : NULL, &f[i],
                    all, 1e-9);
    }
}

void fill_api(bz_tables *m, bz_sheet *s)
{
    fill_named(m, s, BZ_EVENT_API);
}

void fill_calls(bz_tables *m, bz_sheet *s)
{
    fill_named(m, s, BZ_EVENT_CALL);
}

static void group_copies(bz_tables *m, groups *g, double (*value)(const bz_events *e, size_t i))
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_COPY, BZ_EVENT_MEMSET};
    groups_begin(g, m->arena);
    for (int k = 0; k < 2; k++) {
        const bz_events *e = &m->t->event[KINDS[k]];
        for (size_t i = 0; i < e->n; i++) {
            double v = tables_in(m, KINDS[k], i) ? value(e, i) : NAN;
            if (!isnan(v))
                groups_add(g, tables_direction(m, KINDS[k], i), v);
        }
    }
}

static double length(const bz_events *e, size_t i)
{
    return (double)(e->end[i] - e->start[i]);
}

static double size(const bz_events *e, size_t i)
{
    return e->bytes[i] > 0 ? (double)e->bytes[i] : NAN;
}

static void fill_directions(bz_tables *m, bz_sheet *s, double (*value)(const bz_events *e, size_t i), double unit)
{
    groups g;
    uint32_t n;
    group_copies(m, &g, value);
    const figures *f = groups_end(&g, &n);
    double all = sum_of(f, n);
    for (uint32_t i = 0; i < n; i++)
        add_figures(s, tables_direction_name((uint32_t)f[i].key), NULL, &f[i], all, unit);
}

void fill_copies(bz_tables *m, bz_sheet *s)
{
    fill_directions(m, s, length, 1e-9);
}

void fill_sizes(bz_tables *m, bz_sheet *s)
{
    fill_directions(m, s, size, 1);
}
