/* Two profiles: what their steady iterations have in common, sort by sort of event. */
#include "base/sort.h"
#include "compare/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 512 }; /* that are looked at: more make the intervals no better than the machine is */

/* Events of one name. */
typedef struct group {
    const char *key, *variant;
    double *seconds; /* [iterations]: of all its events in it */
    double count;
} group;

typedef struct side {
    const bz_trace *trace;
    bz_arena *arena;
    int *number; /* [trace iterations]: among the steady ones; -1 for others */
    int iterations, n;
    group *item;
    bz_map map;
    double *device; /* [calls]: seconds of its work; NULL where calls are timed by themselves */
} side;

static void find_steady(side *s)
{
    const bz_trace *t = s->trace;
    s->number = BZ_NEW(s->arena, int, t->n_iterations);
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        bool steady = bz_iteration_is_steady(t, i) && s->iterations < ITERATIONS;
        s->number[i] = steady ? s->iterations++ : -1;
    }
}

static group *find_group(side *s, const char *key)
{
    uint32_t at = bz_map_number(&s->map, s->arena, key, strlen(key));
    if (at == (uint32_t)s->n)
        BZ_ADD(s->item, s->n) = (group){
            .key = bz_arena_str(s->arena, key), .variant = "", .seconds = BZ_NEW(s->arena, double, s->iterations)};
    return &s->item[at];
}

/* The problem where it is known, else what the library was told. False: no work of its own. */
static bool call_key(const side *s, size_t i, bz_buf *key)
{
    const bz_events *c = &s->trace->event[BZ_EVENT_CALL];
    if (!bz_call_works(s->trace, i) || c->flags[i] & BZ_CALL_FAILED)
        return false;
    const char *problem = bz_call_of(s->trace, i)->text;
    if (problem)
        bz_buf_puts(key, problem);
    else
        bz_buf_printf(key, "%s %s", bz_string(s->trace, c->name[i]), bz_string(s->trace, c->detail[i]));
    return true;
}

static bool event_key(const side *s, bz_event_kind kind, size_t i, bz_buf *key)
{
    const bz_events *e = &s->trace->event[kind];
    bz_buf_clear(key);
    if (kind == BZ_EVENT_CALL)
        return call_key(s, i, key);
    if (kind == BZ_EVENT_OP && e->op[i] != BZ_NONE) /* the operator around it counts */
        return false;
    uint32_t name = kind == BZ_EVENT_KERNEL && e->short_name[i] ? e->short_name[i] : e->name[i];
    bz_buf_puts(key, bz_string(s->trace, name));
    return true;
}

static void gather(side *s, bz_event_kind kind)
{
    const bz_events *e = &s->trace->event[kind];
    BZ_SCOPED(bz_buf) key = {0};
    s->n = 0;
    bz_map_free(&s->map);
    for (size_t i = 0; i < e->n; i++) {
        uint32_t at = bz_event_iteration(s->trace, kind, i);
        if (at == BZ_NONE || s->number[at] < 0 || !event_key(s, kind, i, &key))
            continue;
        group *g = find_group(s, bz_buf_text(&key));
        bool device = kind == BZ_EVENT_CALL && s->device;
        g->seconds[s->number[at]] += device ? s->device[i] : (double)(e->end[i] - e->start[i]) * 1e-9;
        g->count++;
        if (e->variant && e->variant[i])
            g->variant = bz_string(s->trace, e->variant[i]);
    }
    for (int i = 0; i < s->n; i++)
        s->item[i].count /= s->iterations;
}

/* P(at most k of n fair coins) <= 2.5 %: between the (k+1)st values from both ends lies the median, in 95
 * of 100 cases. Sorts. */
static bz_span span_of(double *v, int n)
{
    double p = pow(0.5, n), cumulated = p;
    int k = 0;
    bz_sort_numbers(v, (size_t)n);
    double median = (v[(n - 1) / 2] + v[n / 2]) / 2;
    if (p > 0.025)
        return (bz_span){.seconds = bz_tick(median),
                         .low = fmin(v[0], median * (1 - BZ_COMPARE_GUESS)),
                         .high = fmax(v[n - 1], median * (1 + BZ_COMPARE_GUESS)),
                         .guessed = true};
    while (k < n) {
        p *= (double)(n - k) / (k + 1);
        if (cumulated + p > 0.025)
            break;
        cumulated += p;
        k++;
    }
    return (bz_span){.seconds = bz_tick(median), .low = v[k], .high = v[n - 1 - k]};
}

static bz_span group_span(const side *s, const group *g, double share)
{
    double *v = BZ_NEW(s->arena, double, s->iterations);
    for (int i = 0; i < s->iterations; i++)
        v[i] = g->seconds[i] / share;
    return span_of(v, s->iterations);
}

static void add_only(bz_compare_part *part, int which, const side *s, const group *g)
{
    bz_compare_row *row = &part->only[which][part->n_only[which]++];
    bz_span span = group_span(s, g, g->count), none = {NAN, NAN, NAN, false};
    *row = (bz_compare_row){.what = g->key,
                            .times = g->count,
                            .variant_a = g->variant,
                            .variant_b = g->variant,
                            .a = which ? none : span,
                            .b = which ? span : none};
}

/* Where both make as many calls, one is compared with one; else all of an iteration with all. */
static void add_both(bz_compare_part *part, const side *a, const group *g, const side *b, const group *h)
{
    bool equal = fabs(g->count - h->count) < 1e-9;
    bz_compare_row row = {
        .what = g->key, .times = equal ? g->count : 1, .variant_a = g->variant, .variant_b = h->variant};
    if (!equal)
        row.setting = bz_arena_printf(a->arena, "%.4g -> %.4g times", g->count, h->count);
    row.a = group_span(a, g, row.times);
    row.b = group_span(b, h, row.times);
    if (row.a.seconds > 0 && row.b.seconds > 0)
        bz_compare_add(&part->compare, &row);
    else
        part->compare.neither++; /* not timed */
}

static int by_weight(const void *x, const void *y)
{
    const bz_compare_row *a = x, *b = y;
    double s = a->times * fmax(a->a.seconds, a->b.seconds), t = b->times * fmax(b->a.seconds, b->b.seconds);
    return BZ_THEN(BZ_ORDER(t, s), strcmp(a->what, b->what));
}

static void compare_kind(side *a, side *b, bz_event_kind kind, const char *what, bz_compare_set *out)
{
    bz_compare_part *part = &out->part[out->n_parts];
    gather(a, kind);
    gather(b, kind);
    if (!a->n && !b->n)
        return;
    *part = (bz_compare_part){.what = what,
                              .compare = {.row = BZ_NEW(a->arena, bz_compare_row, a->n)},
                              .only = {BZ_NEW(a->arena, bz_compare_row, a->n), BZ_NEW(a->arena, bz_compare_row, b->n)}};
    for (int i = 0; i < a->n; i++) {
        uint32_t at = bz_map_get(&b->map, a->item[i].key, strlen(a->item[i].key));
        if (at == BZ_MAP_NONE)
            add_only(part, 0, a, &a->item[i]);
        else
            add_both(part, a, &a->item[i], b, &b->item[at]);
    }
    for (int i = 0; i < b->n; i++)
        if (bz_map_get(&a->map, b->item[i].key, strlen(b->item[i].key)) == BZ_MAP_NONE)
            add_only(part, 1, b, &b->item[i]);
    for (int w = 0; w < 2; w++)
        BZ_QSORT(part->only[w], part->n_only[w], by_weight);
    part->compare.only_a = part->n_only[0];
    part->compare.only_b = part->n_only[1];
    bz_compare_sort(&part->compare);
    out->n_parts++;
}

/* Seconds, of the run that tells them best. */
static bz_span figures_span(const side *s, bz_figure figure)
{
    double *v;
    size_t n = bz_trace_figures(s->trace, figure, s->arena, &v);
    n = n < ITERATIONS ? n : ITERATIONS;
    for (size_t i = 0; i < n; i++)
        v[i] *= 1e-9;
    return span_of(v, (int)n);
}

static bz_span iterations_span(const side *s, bool latency)
{
    double *v = BZ_NEW(s->arena, double, s->iterations);
    if (s->trace->n_levels && (latency || !s->device))
        return figures_span(s, latency ? BZ_FIGURE_LATENCY : BZ_FIGURE_LIBRARY);
    for (uint32_t i = 0; i < s->trace->n_iterations; i++) {
        bz_iteration_stats m;
        if (s->number[i] < 0)
            continue;
        bz_iteration_measure(s->trace, i, &m);
        v[s->number[i]] = 1e-9 * (double)(latency ? m.latency : s->device ? m.device_busy : m.library);
    }
    return span_of(v, s->iterations);
}

static void compare_iterations(const side *a, const side *b, bz_compare_set *out)
{
    bz_compare_part *part = &out->part[out->n_parts++];
    *part = (bz_compare_part){.what = "iteration", .compare = {.row = BZ_NEW(a->arena, bz_compare_row, 2)}};
    for (int k = 0; k < 2; k++) {
        bz_compare_row row = {.what = !k          ? "latency"
                                      : a->device ? "device busy"
                                                  : "in library calls",
                              .times = 1,
                              .answers = !k ? BZ_ANSWERS_LATENCY : BZ_ANSWERS_NOT,
                              .variant_a = "",
                              .variant_b = "",
                              .a = iterations_span(a, !k),
                              .b = iterations_span(b, !k)};
        if (row.a.seconds > 0 && row.b.seconds > 0)
            bz_compare_add(&part->compare, &row);
    }
}

static void add_difference(bz_compare_set *out, const char *what, const char *a, const char *b)
{
    out->difference[out->n_differences++] = (bz_difference){what, a, b};
}

static void compare_facts(const side *a, const side *b, bz_compare_set *out)
{
    const bz_trace *of[] = {a->trace, b->trace};
    out->difference = BZ_NEW(a->arena, bz_difference, of[0]->n_facts + of[1]->n_facts + 1);
    for (int w = 0; w < 2; w++)
        for (uint32_t i = 0; i < of[w]->n_facts; i++) {
            const char *key = bz_string(of[w], of[w]->fact[i].key), *x = bz_trace_told(of[0], key),
                       *y = bz_trace_told(of[1], key);
            /* told already, or a measurement of the capture, which differs every time */
            bool skip = (w && x) || !strcmp(key, "capture overhead");
            for (int k = 0; k < out->n_differences; k++)
                skip |= !strcmp(key, out->difference[k].what);
            if (!skip && (!x || !y || strcmp(x, y) != 0))
                add_difference(out, key, x, y);
        }
    if (a->iterations != b->iterations)
        add_difference(out, "steady iterations", bz_arena_printf(a->arena, "%d", a->iterations),
                       bz_arena_printf(a->arena, "%d", b->iterations));
}

int bz_compare_profiles(const bz_trace *a, const bz_trace *b, bz_arena *arena, bz_compare_set *out, bz_error *err)
{
    static const struct {
        bz_event_kind kind;
        const char *what;
    } KINDS[] = {{BZ_EVENT_CALL, "library calls"}, {BZ_EVENT_OP, "operators"}, {BZ_EVENT_KERNEL, "kernels"}};
    side x = {.trace = a, .arena = arena}, y = {.trace = b, .arena = arena};
    *out = (bz_compare_set){.kind = "profiles", .part = BZ_NEW(arena, bz_compare_part, 4)};
    find_steady(&x);
    find_steady(&y);
    if (!x.iterations || !y.iterations)
        return bz_fail(err, BZ_BAD_INPUT,
                       "no iteration was found in the %s profile: mark them, or name their range with --iterations",
                       x.iterations ? "second" : "first");
    if (a->event[BZ_EVENT_KERNEL].n && b->event[BZ_EVENT_KERNEL].n) {
        x.device = bz_call_seconds(x.trace, x.arena);
        y.device = bz_call_seconds(y.trace, y.arena);
    }
    compare_iterations(&x, &y, out);
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
        compare_kind(&x, &y, KINDS[k].kind, KINDS[k].what, out);
    compare_facts(&x, &y, out);
    side *sides[] = {&x, &y};
    for (int w = 0; w < 2; w++) {
        bz_map_free(&sides[w]->map);
        free(sides[w]->item);
    }
    return 0;
}
