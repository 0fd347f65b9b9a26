/* An evaluation: for people, as JSON, as CSV. */
#include "base/member.h"
#include "report/report.h"

#include <math.h>

static const char *factor(double v, bz_arena *arena)
{
    return isfinite(v) ? bz_arena_printf(arena, "%.2f ×", v) : "-";
}

/* A mean says over how many of how many: "1.37 × (2 of 16)". */
static const char *mean(const char *value, int known, int n, bz_arena *arena)
{
    return known ? bz_arena_printf(arena, "%s (%d of %d)", value, known, n) : "-";
}

/* The bound's time, fused too: none where too little is priced, which would draw a sum of what happens to be known. */
static double fused_of(const bz_bound *b, const bz_goal *goal)
{
    return b->fused.wanted && goal->enough ? b->fused.sequential : NAN;
}

static double parallel_of(const bz_bound *b)
{
    return bz_bound_written(b).enough ? b->path.seconds : NAN;
}

static double sequential_of(const bz_bound *b)
{
    return bz_bound_written(b).enough ? b->sequential : NAN;
}

static void put_models(const bz_evaluation *e, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "model|task|>MACs|>layers|>unique|>share");
    for (int i = 0; i < e->n_models; i++) {
        const bz_evaluation_model *m = &e->model[i];
        BZ_ROW(t, BZ_SHOW(m->path), BZ_SHOW(m->task), BZ_SHOW_COUNT((int64_t)m->macs), BZ_SHOW_INT(m->layers),
               BZ_SHOW_INT(m->unique), BZ_SHOW_SHARE(m->layers ? (double)m->unique / m->layers : NAN));
    }
    bz_table_below(t, out);
    if (e->n_models > 1)
        bz_buf_printf(out, "together %lld layers, %lld of them unique (%s)\n", (long long)e->layers,
                      (long long)e->unique, BZ_SAY_SHARE(e->layers ? (double)e->unique / (double)e->layers : 0));
}

static void put_libraries(const bz_evaluation *e, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "computed by|>layers|>of layers|>of MACs|>of time");
    double macs = 0, seconds = 0;
    int layers = 0;
    for (int i = 0; i < e->n_libraries; i++) {
        layers += e->library[i].layers;
        macs += e->library[i].macs;
        seconds += e->library[i].seconds;
    }
    for (int i = 0; i < e->n_libraries; i++) {
        const bz_evaluation_library *l = &e->library[i];
        BZ_ROW(t, BZ_SHOW(l->name), BZ_SHOW_INT(l->layers), BZ_SHOW_SHARE((double)l->layers / layers),
               BZ_SHOW_SHARE(macs > 0 ? l->macs / macs : NAN),
               BZ_SHOW_SHARE(l->seconds > 0 ? l->seconds / seconds : NAN));
    }
    bz_table_below(t, out);
}

/* As bz_ratio. */
static const char *const GAINS[] = {"measured/bound", "algorithms", "fusion", "matrix units", "parallel", "jointly"};

static void ratio_columns(bz_table *t, const bz_evaluation *e)
{
    for (int r = 0; r < BZ_RATIOS; r++)
        if (e->known[r])
            bz_table_column(t, GAINS[r], BZ_RIGHT);
}

static void mean_cells(bz_table *t, const bz_evaluation *e, const double *ratio, const int *known, int n,
                       bz_arena *arena)
{
    for (int r = 0; r < BZ_RATIOS; r++)
        if (e->known[r])
            bz_table_cell(t, mean(factor(ratio[r], arena), known[r], n, arena), NULL);
}

static void put_ratios(const bz_analysis *a, const bz_evaluation *e, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "speed-up by|system|>batch|>measured");
    ratio_columns(t, e);
    for (int i = 0; i < e->n; i++) {
        BZ_ROW(t, BZ_SHOW(a[i].bound.model), BZ_SHOW(a[i].bound.system), BZ_SHOW_INT(a[i].bound.layers->batch),
               BZ_SHOW_TIME(e->row[i].measured));
        for (int r = 0; r < BZ_RATIOS; r++)
            if (e->known[r])
                bz_table_cell(t, factor(e->row[i].ratio[r], arena), NULL);
    }
    bz_table_cell(t, "geometric mean", NULL);
    for (int i = 0; i < 3; i++)
        bz_table_cell(t, "", NULL);
    mean_cells(t, e, e->mean, e->known, e->n, arena);
    bz_table_below(t, out);
}

static void put_groups(const bz_evaluation *e, bz_arena *arena, bz_buf *out)
{
    bz_table *t =
        bz_table_of(arena, "geometric means|>batch|>models|>bound|>per item, of first batch|>of first system");
    ratio_columns(t, e);
    for (int i = 0; i < e->n_groups && e->n_groups > 1; i++) {
        const bz_evaluation_group *g = &e->group[i];
        BZ_ROW(t, BZ_SHOW(g->system), BZ_SHOW_INT(g->batch),
               BZ_SHOW(bz_arena_printf(arena, "%d of %d", g->models, g->rows)),
               BZ_SHOW_TIME(g->models ? g->sequential : NAN),
               BZ_SHOW(mean(BZ_SAY_SHARE(g->by_batch), g->by_batch_known, g->rows, arena)),
               BZ_SHOW(mean(BZ_SAY_SHARE(g->by_system), g->by_system_known, g->rows, arena)));
        mean_cells(t, e, g->ratio, g->known, g->rows, arena);
    }
    bz_table_below(t, out);
}

void bz_report_evaluation_text(const bz_analysis *a, const bz_evaluation *e, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    put_models(e, &arena, out);
    put_libraries(e, &arena, out);
    put_ratios(a, e, &arena, out);
    put_groups(e, &arena, out);
}

static const char *const KEYS[] = {"measured", "algorithms", "fusion", "units", "parallel", "joint"};

static const bz_member MODEL[] = {
    BZ_MEMBER_AS(bz_evaluation_model, path, "model"),
    BZ_FIELDS(bz_evaluation_model, task, macs, layers, unique),
};

static const bz_member LIBRARY[] = {BZ_FIELDS(bz_evaluation_library, name, layers, macs, seconds)};

static const bz_member GROUP[] = {
    BZ_FIELDS(bz_evaluation_group, system, batch, rows, models, sequential, by_batch, by_batch_known, by_system,
              by_system_known),
};

static void json_groups(const bz_evaluation *e, bz_json *j)
{
    BZ_JSON_EACH (j, "groups", i, e->n_groups) {
        const bz_evaluation_group *g = &e->group[i];
        bz_members_json(BZ_MEMBERS(GROUP), g, j);
        BZ_JSON_NAMED(j, "ratios", num, r, BZ_RATIOS, KEYS[r], g->ratio[r]);
        BZ_JSON_NAMED(j, "known", int, r, BZ_RATIOS, KEYS[r], g->known[r]);
    }
    bz_members_rows("libraries", BZ_MEMBERS(LIBRARY), e->library, sizeof *e->library, e->n_libraries, j);
}

void bz_report_evaluation_json(const bz_analysis *a, const bz_evaluation *e, bz_json *j)
{
    bz_json_object(j);
    BZ_JSON(j, BZ_TELL("layers", e->layers), BZ_TELL("unique", e->unique));
    bz_members_rows("models", BZ_MEMBERS(MODEL), e->model, sizeof *e->model, e->n_models, j);
    BZ_JSON_EACH (j, "rows", i, e->n) {
        const bz_bound *b = &a[i].bound;
        BZ_JSON(j, BZ_TELL("model", b->model), BZ_TELL("system", b->system), BZ_TELL("batch", b->layers->batch),
                BZ_TELL("complete", (bool)(!b->coverage.unpriced)), BZ_TELL("enough", e->row[i].goal.enough),
                BZ_TELL("hardware", e->row[i].goal.hardware), BZ_TELL("fused", fused_of(b, &e->row[i].goal)),
                BZ_TELL("parallel", parallel_of(b)));
        BZ_JSON(j, BZ_TELL("sequential", sequential_of(b)), BZ_TELL("measured", e->row[i].measured));
        BZ_JSON_NAMED(j, "ratios", num, r, BZ_RATIOS, KEYS[r], e->row[i].ratio[r]);
    }
    json_groups(e, j);
    BZ_JSON_NAMED(j, "means", num, r, BZ_RATIOS, KEYS[r], e->mean[r]);
    BZ_JSON_NAMED(j, "means_known", int, r, BZ_RATIOS, KEYS[r], e->known[r]);
    bz_json_object_end(j);
}

void bz_report_evaluation_csv(const bz_analysis *a, const bz_evaluation *e, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(
        &arena, "model|task|system|batch|macs|layers|unique|unpriced|hardware|fused|parallel|sequential|"
                "measured|ratio_measured|ratio_algorithms|ratio_fusion|ratio_units|ratio_parallel|ratio_joint");
    for (int i = 0; i < e->n; i++) {
        const bz_bound *b = &a[i].bound;
        const bz_evaluation_row *r = &e->row[i];
        const bz_evaluation_model *m = &e->model[r->model];
        const double times[] = {r->goal.hardware, fused_of(b, &r->goal), parallel_of(b), sequential_of(b), r->measured};
        BZ_ROW(t, BZ_SHOW(b->model), BZ_SHOW(m->task ? m->task : ""), BZ_SHOW(b->system), BZ_SHOW_INT(b->layers->batch),
               BZ_SHOW(bz_arena_printf(&arena, "%.0f", b->coverage.macs)), BZ_SHOW_INT(m->layers),
               BZ_SHOW_INT(m->unique), BZ_SHOW_INT(b->coverage.unpriced));
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            bz_table_cell(t, isfinite(times[k]) ? bz_arena_printf(&arena, "%.9g", times[k]) : "", NULL);
        for (int k = 0; k < BZ_RATIOS; k++)
            bz_table_cell(t, isfinite(r->ratio[k]) ? bz_arena_printf(&arena, "%.6g", r->ratio[k]) : "", NULL);
    }
    bz_table_csv(t, out);
}
