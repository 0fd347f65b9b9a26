/* An analysis as CSV: a row per layer. */
#include "report/report.h"

#include <math.h>

static void number(bz_table *t, bz_arena *arena, double v)
{
    bz_table_cell(t, isfinite(v) ? bz_arena_printf(arena, "%.9g", v) : "", NULL);
}

static void put_row(const bz_bound *b, const bz_bound_layer *l, bz_table *t, bz_arena *arena)
{
    bool priced = l->price.alternative != NULL;
    bz_table_cell(t, b->model, NULL);
    bz_table_cell(t, b->system, NULL);
    bz_table_int(t, b->layers->batch);
    bz_table_cell(t, l->layer->name, NULL);
    number(t, arena, priced ? l->price.seconds : NAN);
    bz_table_cell(t, bz_arena_printf(arena, "%g", l->times), NULL);
    bz_table_cell(t, priced ? bz_record_provenance_name(l->price.provenance) : "unpriced", NULL);
    bz_table_cell(t, l->variant ? l->variant : "", NULL);
    number(t, arena, l->runner_up);
    bz_table_cell(t, l->runner_up_variant ? l->runner_up_variant : "", NULL);
    number(t, arena, l->hardware);
    bz_table_cell(t, !isfinite(l->hardware) ? "" : l->memory ? "memory" : "arithmetic", NULL);
    bz_table_cell(t, l->layer->key, NULL);
}

void bz_report_csv(const bz_analysis *a, int n, bz_buf *out)
{
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_columns(
        t, "model|system|batch|layer|seconds|times|provenance|variant|runner_up|runner_up_variant|hardware|limit|key");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < a[i].bound.n; k++)
            put_row(&a[i].bound, &a[i].bound.layer[k], t, &arena);
    bz_table_csv(t, out);
    bz_arena_free(&arena);
}
