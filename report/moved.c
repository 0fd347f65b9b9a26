/* The iteration of a recording on other systems. */
#include "report/parts.h"

#include <math.h>
#include <stdio.h>

typedef struct moved {
    const bz_prediction *p;
    double seconds, cost; /* cost: dollars of a million iterations; NAN: no price */
    int by_time, by_cost; /* 1 is the best; 0: nothing is predicted, or no price */
} moved;

static void rank(const bz_whatif *w, const bz_price_list *prices, moved *out)
{
    for (int i = 0; i < w->n; i++) {
        const bz_prediction *p = &w->prediction[i];
        double seconds = 1e-9 * (double)p->time;
        out[i] = (moved){p, seconds, p->changed ? seconds * bz_price_of(prices, p->name) / 3600 * 1e6 : NAN, 0, 0};
    }
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < w->n; k++) {
            if (out[i].p->changed && out[k].p->changed)
                out[i].by_time += k == i || out[k].seconds < out[i].seconds;
            if (!isnan(out[i].cost) && !isnan(out[k].cost))
                out[i].by_cost += k == i || out[k].cost < out[i].cost;
        }
}

static void answer(const bz_whatif *w, const moved *r, const char *from, bz_buf *out)
{
    const moved *best = NULL, *cheap = NULL;
    bz_unit_text a, b, c, d;
    int predicted = 0;
    for (int i = 0; i < w->n; i++) {
        best = r[i].by_time == 1 && !best ? &r[i] : best;
        cheap = r[i].by_cost == 1 && !cheap ? &r[i] : cheap;
        predicted += r[i].by_time > 0;
    }
    bz_buf_printf(out, "The iteration that took %s on ", bz_units_time(a, 1e-9 * (double)w->measured));
    bz_buf_clean(out, from);
    if (!best) {
        bz_buf_puts(out, " cannot be predicted on any of these systems.\n");
        return;
    }
    bz_buf_printf(out, " would take %s (%s to %s) on ", bz_units_time(b, best->seconds),
                  bz_units_time(c, 1e-9 * (double)best->p->low), bz_units_time(d, 1e-9 * (double)best->p->high));
    bz_buf_clean(out, best->p->name);
    if (predicted > 1)
        bz_buf_printf(out, ", the fastest of %d systems", predicted);
    if (cheap) {
        bz_buf_puts(out, "; cheapest on ");
        bz_buf_clean(out, cheap->p->name);
        bz_buf_printf(out, ": $%.4g a million", cheap->cost);
    }
    double host = (double)best->p->split.host / fmax((double)best->p->split.total, 1);
    bz_buf_puts(out, ".");
    if (host > 0.5 && best->p->split.total > best->p->split.host)
        bz_buf_printf(out, " The host decides: for %.0f %% of it no device works.", 100 * host);
    bz_buf_puts(out, "\n\n");
}

static void number(bz_table *t, const char *shown, double plain)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%.9g", plain);
    bz_table_cell(t, isnan(plain) ? "-" : shown, isnan(plain) ? "" : digits);
}

static bz_table *table(const bz_whatif *w, const moved *r, bool priced, bz_arena *arena)
{
    bz_table *t =
        bz_table_of(arena, "system|>latency|>from|>to|>host only|>device busy|>times as fast|>a second|>rank");
    if (priced)
        bz_table_columns(t, ">$ a million|>rank by cost");
    for (int i = 0; i < w->n; i++) {
        const bz_prediction *p = r[i].p;
        double ns = p->changed ? 1e-9 : NAN, faster = p->changed ? (double)w->measured / (double)p->time : NAN;
        BZ_ROW(t, BZ_SHOW(p->name), BZ_SHOW_TIME(ns * (double)p->time), BZ_SHOW_TIME(ns * (double)p->low),
               BZ_SHOW_TIME(ns * (double)p->high), BZ_SHOW_TIME(ns * (double)p->split.host),
               BZ_SHOW_TIME(ns * (double)(p->split.device + p->split.both)));
        number(t, bz_arena_printf(arena, "%.2f", faster), faster);
        BZ_ROW(t, BZ_SHOW_LARGE(p->changed ? 1 / r[i].seconds : NAN));
        number(t, bz_arena_printf(arena, "%d", r[i].by_time), r[i].by_time ? (double)r[i].by_time : NAN);
        if (priced) {
            number(t, bz_arena_printf(arena, "%.4g", r[i].cost), r[i].cost);
            number(t, bz_arena_printf(arena, "%d", r[i].by_cost), r[i].by_cost ? (double)r[i].by_cost : NAN);
        }
    }
    return t;
}

/* What the fastest rests on; the others rest on the same, with other ratios. */
static void notes(const bz_whatif *w, const moved *r, bz_buf *out)
{
    bool told = false;
    for (int i = 0; i < w->n; i++) {
        const bz_prediction *p = r[i].p;
        if (!p->changed) {
            bz_buf_clean(out, p->name);
            bz_buf_printf(out, ": %s\n", p->because ? p->because : "nothing is known to predict by");
        }
        for (int k = 0; k < p->n_assumed && r[i].by_time == 1 && !told; k++) {
            bz_buf_printf(out, "%-10s ", bz_assumed_name(p->assumed[k].how));
            bz_buf_clean(out, p->assumed[k].what);
            bz_buf_puts(out, " (");
            bz_buf_clean(out, p->assumed[k].from);
            bz_buf_puts(out, ")\n");
        }
        told |= r[i].by_time == 1;
    }
    bz_buf_printf(out, "The unchanged iteration is simulated %.1f %% off what was measured.\n", 100 * w->error);
}

static void row_json(const bz_whatif *w, const moved *r, bz_json *j)
{
    const bz_prediction *p = r->p;
    double none = p->changed ? 0 : NAN;
    bz_json_object(j);
    bz_json_key_str(j, "system", p->name);
    bz_json_key_num(j, "seconds", none + r->seconds);
    bz_json_key_num(j, "low_seconds", none + 1e-9 * (double)p->low);
    bz_json_key_num(j, "high_seconds", none + 1e-9 * (double)p->high);
    bz_json_key_num(j, "host_only", none + 1e-9 * (double)p->split.host);
    bz_json_key_num(j, "device_busy", none + 1e-9 * (double)(p->split.device + p->split.both));
    bz_json_key_num(j, "speedup", none + (double)w->measured / (double)p->time);
    bz_json_key_num(j, "rank", r->by_time ? (double)r->by_time : NAN);
    bz_json_key_num(j, "cost", r->cost);
    bz_json_key_num(j, "rank_by_cost", r->by_cost ? (double)r->by_cost : NAN);
    if (!p->changed)
        bz_json_key_str(j, "because", p->because ? p->because : "");
    report_assumed_json(p, j);
    bz_json_object_end(j);
}

void bz_report_moved(const bz_whatif *w, const char *from, const bz_price_list *prices, bz_form form, bz_buf *out)
{
    bz_arena arena = {0};
    moved *r = BZ_NEW(&arena, moved, w->n + 1);
    rank(w, prices, r);
    if (form == BZ_FORM_JSON) {
        bz_json j = bz_json_document_to(out, 4, "predict-profile", 1);
        bz_json_key_str(&j, "recorded_on", from);
        bz_json_key_num(&j, "measured", 1e-9 * (double)w->measured);
        bz_json_key_num(&j, "simulated", 1e-9 * (double)w->simulated);
        bz_json_key(&j, "rows");
        bz_json_array(&j);
        for (int i = 0; i < w->n; i++)
            row_json(w, &r[i], &j);
        bz_json_array_end(&j);
        bz_json_document_end(&j);
    } else if (form == BZ_FORM_CSV) {
        bz_table_csv(table(w, r, prices->n > 0, &arena), out);
    } else {
        answer(w, r, from, out);
        bz_table_print(table(w, r, prices->n > 0, &arena), out);
        notes(w, r, out);
    }
    bz_arena_free(&arena);
}
