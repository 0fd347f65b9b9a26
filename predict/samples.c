/* The records of a database as a table. */
#include "base/sort.h"
#include "predict/evaluate.h"
#include "transfer/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct loading {
    bz_samples *out;
    const bz_setting *setting;
    const bz_plan_options *only;
    int machine;
} loading;

static int known_row(const bz_samples *s, const char *text)
{
    uint32_t at = bz_map_get(&s->map, text, strlen(text));
    return at == BZ_MAP_NONE ? -1 : (int)at;
}

static int row_of(bz_samples *s, const char *text)
{
    int known = known_row(s, text);
    bz_problem problem;
    if (known >= 0)
        return known;
    if (bz_problem_parse(text, &problem, NULL) || problem.kind == BZ_PROBLEM_TRANSFER) /* it tells rates, not layers */
        return -1;
    if (bz_is_full((size_t)s->n)) {
        size_t room = bz_room((size_t)s->n), row = (size_t)s->machines * sizeof(double);
        s->text = bz_realloc(s->text, room, sizeof *s->text);
        s->shape = bz_realloc(s->shape, room, sizeof *s->shape);
        s->log = bz_realloc(s->log, room, row);
        s->direct = bz_realloc(s->direct, room, row);
        s->intensity = bz_realloc(s->intensity, room, row);
        s->spent = bz_realloc(s->spent, room, row);
        s->family = bz_realloc(s->family, room, sizeof *s->family);
        s->next = bz_realloc(s->next, room, sizeof *s->next);
        s->items = bz_realloc(s->items, room, sizeof *s->items);
    }
    s->text[s->n] = bz_arena_str(&s->arena, text);
    bz_shape_of(&problem, &s->shape[s->n]);
    for (int m = 0; m < s->machines; m++) {
        size_t cell = (size_t)s->n * (size_t)s->machines + (size_t)m;
        s->log[cell] = s->direct[cell] = s->intensity[cell] = NAN;
        s->spent[cell] = 0;
    }
    bz_samples_join(s, s->n, &problem);
    bz_map_add(&s->map, s->text[s->n], strlen(s->text[s->n]), (uint32_t)s->n);
    return s->n++;
}

/* What was dropped was measured too, for a short while: where a transformed convolution won, others
 * took twice as long. */
static bool counts(const loading *l, const bz_record *r, bool dropped)
{
    return (r->status == BZ_RECORD_OK || (dropped && r->status == BZ_RECORD_DROPPED)) && r->median > 0 &&
           r->provenance != BZ_PROVENANCE_MODELLED && bz_setting_same(&r->setting, l->setting) &&
           !bz_algorithm_is_reference(r->problem, r->variant.algorithm) && bz_plan_options_take(l->only, r);
}

/* Variants that were dropped or failed took their time, too. Imported tables do not tell how often they called. */
static double spent_on(const loading *l, const bz_record *r)
{
    bool told = r->provenance == BZ_PROVENANCE_MEASURED && r->median > 0 && r->iterations > 0;
    return told && bz_setting_same(&r->setting, l->setting) ? r->median * (double)r->iterations : 0;
}

/* What libraries move is not what the definition needs: where bytes were not counted, too, they are the definition's. */
static double counted_intensity(const bz_record *r, const bz_shape *shape)
{
    bz_counts c;
    double bytes = bz_record_counts(r, &c) ? c.dram_read + c.dram_write : NAN;
    return c.flops / (isnan(bytes) ? shape->bytes : fmax(bytes, 1));
}

double bz_samples_intensity(const bz_samples *s, int problem, int machine)
{
    double counted = s->intensity ? s->intensity[(size_t)problem * (size_t)s->machines + (size_t)machine] : NAN;
    return isnan(counted) ? s->shape[problem].flops / s->shape[problem].bytes : counted;
}

/* Whether it is less than what was kept. */
static bool keep_least(const loading *l, double *of, int row, const bz_record *r)
{
    double *at = &of[(size_t)row * (size_t)l->out->machines + (size_t)l->machine], is = log(bz_record_busy(r));
    bool less = !(*at <= is); /* of NAN and a number: the number */
    *at = less ? is : *at;
    return less;
}

static int take(void *user, const bz_record *r)
{
    loading *l = user;
    bz_samples *s = l->out;
    int row = counts(l, r, false) ? row_of(s, r->problem) : -1;
    if (row >= 0 && !bz_shape_possible(&s->shape[row], &s->machine[l->machine], bz_record_busy(r)))
        return 0;
    if (row >= 0 && keep_least(l, s->log, row, r))
        s->intensity[(size_t)row * (size_t)s->machines + (size_t)l->machine] = counted_intensity(r, &s->shape[row]);
    if (row < 0)
        row = known_row(s, r->problem);
    if (row >= 0 && counts(l, r, true) && !strstr(r->variant.algorithm, "wino"))
        keep_least(l, s->direct, row, r);
    if (row >= 0)
        s->spent[(size_t)row * (size_t)s->machines + (size_t)l->machine] += spent_on(l, r);
    return 0;
}

int bz_samples_machine(const bz_samples *s, const char *name)
{
    int m = s->machines - 1;
    while (m >= 0 && strcmp(s->machine[m].name, name) != 0)
        m--;
    return m;
}

int bz_samples_of(const bz_samples *s, int machine)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += !isnan(bz_samples_log(s, i, machine));
    return n;
}

/* What a call takes at the least: the hundredth part of its records is not longer. */
static double floor_of(const bz_samples *s, int machine)
{
    double *all = bz_alloc((size_t)s->n + 1, sizeof *all), found = NAN;
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (!isnan(bz_samples_log(s, i, machine)))
            all[n++] = bz_samples_log(s, i, machine);
    bz_sort_numbers(all, (size_t)n);
    if (n)
        found = exp(all[n / 100]);
    free(all);
    return found;
}

int bz_samples_load(bz_perfdb *db, const bz_setting *setting, const bz_plan_options *only, bz_samples *out,
                    bz_error *err)
{
    const bz_plan_options all = {0};
    const bz_system **systems;
    size_t n;
    *out = (bz_samples){0};
    if (bz_perfdb_systems(db, &out->arena, &systems, &n, err))
        return -1;
    const bz_system **with = BZ_NEW(&out->arena, const bz_system *, n);
    out->machine = BZ_NEW(&out->arena, bz_machine, n);
    for (size_t i = 0; i < n && out->machines < BZ_NEIGHBOURS; i++) {
        const bz_system_facts *facts;
        if (bz_transfers_facts(db, systems[i], &out->arena, &facts, err))
            return -1;
        const char *name = bz_arena_str(&out->arena, systems[i]->name);
        if (bz_machine_of(facts, name, setting, &out->machine[out->machines], NULL) == 0)
            with[out->machines++] = systems[i];
    }
    for (int m = 0; m < out->machines; m++) {
        loading l = {out, setting, only ? only : &all, m};
        if (bz_perfdb_scan(db, &(bz_perfdb_filter){.system = with[m]}, take, &l, err))
            return -1;
    }
    for (int m = 0; m < out->machines; m++)
        out->machine[m].floor = out->machine[m].launch > 0 ? out->machine[m].launch : floor_of(out, m);
    return 0;
}

void bz_samples_free(bz_samples *s)
{
    free(s->text);
    free(s->shape);
    free(s->log);
    free(s->direct);
    free(s->intensity);
    free(s->spent);
    free(s->family);
    free(s->next);
    free(s->items);
    bz_map_free(&s->map);
    bz_map_free(&s->families);
    bz_arena_free(&s->arena);
    *s = (bz_samples){0};
}
