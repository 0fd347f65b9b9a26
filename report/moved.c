/* The iteration of a recording on other systems. */
#include "base/member.h"
#include "report/parts.h"

#include <math.h>

/* What is told of one system. */
typedef struct moved {
    const bz_prediction *p;
    const char *system, *because;
    double seconds, low_seconds, high_seconds, host_only, device_busy, speedup,
        throughput;                  /* NAN: nothing is predicted */
    double cost, rank, rank_by_cost; /* dollars of a million iterations; 1 is the best; NAN: no price */
} moved;

static bool is_not_predicted(const void *of)
{
    return !((const moved *)of)->p->changed;
}

/* As many as are better, and one. */
static double rank_among(const moved *r, int n, size_t at, int i)
{
    double mine = *(const double *)((const char *)&r[i] + at), rank = isnan(mine) ? NAN : 1;
    for (int k = 0; k < n; k++)
        rank += *(const double *)((const char *)&r[k] + at) < mine;
    return rank;
}

static moved tell(const bz_whatif *w, const bz_prediction *p, const bz_price_list *prices)
{
    double ns = p->changed ? 1e-9 : NAN, seconds = ns * (double)p->time;
    return (moved){.p = p,
                   .system = p->name,
                   .because = p->because ? p->because : "",
                   .seconds = seconds,
                   .low_seconds = ns * (double)p->low,
                   .high_seconds = ns * (double)p->high,
                   .host_only = ns * (double)p->split.host,
                   .device_busy = ns * (double)(p->split.device + p->split.both),
                   .speedup = p->changed ? (double)w->measured / (double)p->time : NAN,
                   .throughput = 1 / seconds,
                   .cost = seconds * bz_price_of(prices, p->name) / 3600 * 1e6};
}
static void answer(const bz_whatif *w, const moved *r, const char *from, bz_buf *out)
{
    const moved *best = NULL, *cheap = NULL;
    int predicted = 0;
    for (int i = 0; i < w->n; i++) {
        best = r[i].rank == 1 && !best ? &r[i] : best;
        cheap = r[i].rank_by_cost == 1 && !cheap ? &r[i] : cheap;
        predicted += r[i].rank > 0;
    }
    bz_buf_say(out, "The iteration that took %s on %s", BZ_SAY_NS(w->measured), from);
    if (!best) {
        bz_buf_puts(out, " cannot be predicted on any of these systems.\n");
        return;
    }
    bz_buf_say(out, " would take %s (%s to %s) on %s", BZ_SAY_TIME(best->seconds), BZ_SAY_NS(best->p->low),
               BZ_SAY_NS(best->p->high), best->p->name);
    if (predicted > 1)
        bz_buf_printf(out, ", the fastest of %d systems", predicted);
    if (cheap)
        bz_buf_say(out, "; cheapest on %s: $%.4g a million", cheap->p->name, cheap->cost);
    double host = (double)best->p->split.host / fmax((double)best->p->split.total, 1);
    bz_buf_puts(out, ".");
    if (host > 0.5 && best->p->split.total > best->p->split.host)
        bz_buf_printf(out, " The host decides: for %.0f %% of it no device works.", 100 * host);
    bz_buf_puts(out, "\n\n");
}

static bz_table *table(const moved *r, int n, bool priced, bz_arena *arena)
{
    bz_table *t =
        bz_table_of(arena, "system|>latency|>from|>to|>host only|>device busy|>times as fast|>a second|>rank");
    if (priced)
        bz_table_columns(t, ">$ a million|>rank by cost");
    for (int i = 0; i < n; i++) {
        BZ_ROW(t, BZ_SHOW(r[i].system), BZ_SHOW_TIME(r[i].seconds), BZ_SHOW_TIME(r[i].low_seconds),
               BZ_SHOW_TIME(r[i].high_seconds), BZ_SHOW_TIME(r[i].host_only), BZ_SHOW_TIME(r[i].device_busy),
               BZ_SHOW_FIXED(2, r[i].speedup), BZ_SHOW_LARGE(r[i].throughput), BZ_SHOW_FIXED(0, r[i].rank));
        if (priced)
            BZ_ROW(t, BZ_SHOW_DIGITS(4, r[i].cost), BZ_SHOW_FIXED(0, r[i].rank_by_cost));
    }
    return t;
}

/* What the fastest rests on; the others rest on the same, with other ratios. */
static void notes(const bz_whatif *w, const moved *r, bz_buf *out)
{
    bool told = false;
    for (int i = 0; i < w->n; i++) {
        const bz_prediction *p = r[i].p;
        if (!p->changed)
            bz_buf_say(out, "%s: %s\n", p->name, p->because ? p->because : "nothing is known to predict by");
        for (int k = 0; k < p->n_assumed && r[i].rank == 1 && !told; k++) {
            bz_buf_printf(out, "%-10s ", bz_assumed_name(p->assumed[k].how));
            bz_buf_say(out, "%s (%s)\n", p->assumed[k].what, p->assumed[k].from);
        }
        told |= r[i].rank == 1;
    }
    bz_buf_printf(out, "The unchanged iteration is simulated %.1f %% off what was measured.\n", 100 * w->error);
}

static const bz_member BECAUSE[] = {BZ_MEMBER(moved, because)};
static const bz_member ROW[] = {
    BZ_FIELDS(moved, system, seconds, low_seconds, high_seconds, host_only, device_busy, speedup, rank, cost,
              rank_by_cost),
    BZ_MEMBERS_WHERE(is_not_predicted, BECAUSE),
    BZ_MEMBERS_AT(moved, p, report_assumed),
};

static const bz_member TIMES[] = {
    BZ_MEMBER_SECONDS(bz_whatif, measured, "measured"),
    BZ_MEMBER_SECONDS(bz_whatif, simulated, "simulated"),
};

void bz_report_moved(const bz_whatif *w, const char *from, const bz_price_list *prices, bz_form form, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    moved *r = BZ_NEW(&arena, moved, w->n + 1);
    for (int i = 0; i < w->n; i++)
        r[i] = tell(w, &w->prediction[i], prices);
    for (int i = 0; i < w->n; i++) {
        r[i].rank = rank_among(r, w->n, offsetof(moved, seconds), i);
        r[i].rank_by_cost = rank_among(r, w->n, offsetof(moved, cost), i);
    }
    if (form == BZ_FORM_JSON) {
        bz_json j = bz_json_document_to(out, 4, "predict-profile", 1);
        bz_json_key_str(&j, "recorded_on", from);
        bz_members_json(BZ_MEMBERS(TIMES), w, &j);
        bz_members_rows("rows", BZ_MEMBERS(ROW), r, sizeof *r, w->n, &j);
        bz_json_document_end(&j);
    } else if (form == BZ_FORM_CSV) {
        bz_table_csv(table(r, w->n, prices->n > 0, &arena), out);
    } else {
        answer(w, r, from, out);
        bz_table_print(table(r, w->n, prices->n > 0, &arena), out);
        notes(w, r, out);
    }
}
