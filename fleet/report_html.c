/* A night as a page that can be mailed: one file, no scripts, nothing loaded from elsewhere. */
#include "fleet/fleet.h"

static void put(bz_buf *out, const char *text)
{
    bz_buf clean = {0};
    bz_buf_clean(&clean, text);
    for (const char *p = bz_buf_text(&clean); *p; p++)
        switch (*p) {
        case '&':
            bz_buf_puts(out, "&amp;");
            break;
        case '<':
            bz_buf_puts(out, "&lt;");
            break;
        case '>':
            bz_buf_puts(out, "&gt;");
            break;
        case '"':
            bz_buf_puts(out, "&quot;");
            break;
        case '\'':
            bz_buf_puts(out, "&#39;");
            break;
        default:
            bz_buf_putc(out, *p);
        }
    bz_buf_free(&clean);
}

static void cell(bz_buf *out, const char *text)
{
    bz_buf_puts(out, "<td>");
    put(out, text);
    bz_buf_puts(out, "</td>");
}

static void number(bz_buf *out, int v)
{
    bz_buf_printf(out, "<td class=n>%d</td>", v);
}

static void head(bz_buf *out, const char *title, const char *const *columns)
{
    bz_buf_printf(out, "<h2>%s</h2>\n<table><tr>", title);
    for (; *columns; columns++)
        bz_buf_printf(out, "<th>%s</th>", *columns);
    bz_buf_puts(out, "</tr>\n");
}

static void put_systems(const bz_fleet_report *r, bz_buf *out)
{
    static const char *const COLUMNS[] = {"kind",   "system",  "wanted",  "left",     "shards", "done",
                                          "died",   "records", "failed",  "estimate", "took",   "faster",
                                          "slower", "same",    "against", NULL};
    head(out, "Systems", COLUMNS);
    for (int i = 0; i < r->night->n_systems; i++) {
        const bz_night_result *x = &r->result[i];
        bz_unit_text t;
        bz_buf_puts(out, x->left ? "<tr class=bad>" : "<tr>");
        cell(out, x->planned->name);
        cell(out, x->system);
        const int counts[] = {x->wanted, x->left, x->shards, x->done, x->died + x->failed, x->records, x->bad_records};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            number(out, counts[k]);
        cell(out, bz_units_time(t, x->estimate));
        cell(out, bz_units_time(t, x->seconds));
        number(out, x->faster);
        number(out, x->slower);
        number(out, x->same);
        cell(out, x->before);
        bz_buf_puts(out, "</tr>\n");
    }
    bz_buf_puts(out, "</table>\n");
}

static void verdict_row(bz_buf *out, const bz_change_row *c, double tolerance)
{
    bz_unit_text t;
    bz_buf_puts(out, bz_change_regressed(c, tolerance)  ? "<tr class=bad>"
                     : bz_change_improved(c, tolerance) ? "<tr class=good>"
                                                        : "<tr>");
    cell(out, bz_verdict_name(c->verdict));
    cell(out, c->kind);
    cell(out, bz_units_time(t, c->before.seconds));
    cell(out, bz_units_time(t, c->after.seconds));
    bz_buf_printf(out, "<td class=n>%.3f</td>", c->after.seconds / c->before.seconds);
}

/* All of them: that nothing changed is news, too. */
static void put_models(const bz_fleet_report *r, bz_buf *out)
{
    static const char *const COLUMNS[] = {"verdict", "kind", "before", "after", "ratio", "bound of", "layers", NULL};
    int shown = 0;
    for (int i = 0; i < r->n_changes; i++) {
        const bz_change_row *c = &r->change[i];
        if (!c->model)
            continue;
        if (!shown++)
            head(out, "Models", COLUMNS);
        verdict_row(out, c, r->tolerance);
        cell(out, c->model);
        bz_buf_printf(out, "<td class=n>%d of %d</td></tr>\n", c->layers, c->of);
    }
    bz_buf_puts(out, shown ? "</table>\n" : "");
}

static void put_layers(const bz_fleet_report *r, int rows, bz_buf *out)
{
    static const char *const COLUMNS[] = {"verdict", "kind",           "before",        "after", "ratio",
                                          "layer",   "fastest before", "fastest after", NULL};
    int all = 0;
    for (int i = 0; i < r->n_changes; i++) {
        const bz_change_row *c = &r->change[i];
        bool changed = bz_change_regressed(c, r->tolerance) || bz_change_improved(c, r->tolerance);
        if (c->model || !changed || all++ >= rows)
            continue;
        if (all == 1)
            head(out, "Layers", COLUMNS);
        verdict_row(out, c, r->tolerance);
        cell(out, c->what);
        cell(out, c->variant_before);
        cell(out, c->variant_after);
        bz_buf_puts(out, "</tr>\n");
    }
    bz_buf_puts(out, all ? "</table>\n" : "<p>No layer became faster or slower by more than the tolerance.</p>\n");
    if (all > rows)
        bz_buf_printf(out, "<p>And %d more: benanza fleet report --json has them.</p>\n", all - rows);
}

static void put_list(bz_buf *out, const char *title, int n)
{
    if (n)
        bz_buf_printf(out, "<h2>%s</h2>\n<ul>\n", title);
}

static void put_troubles(const bz_fleet_report *r, bz_buf *out)
{
    put_list(out, "Nodes that deviate from their peers", r->n_deviations);
    for (int i = 0; i < r->n_deviations; i++) {
        const bz_deviation *d = &r->deviation[i];
        bz_buf_puts(out, "<li>");
        put(out, d->kind);
        bz_buf_putc(out, ' ');
        put(out, d->node);
        bz_buf_puts(out, ": ");
        put(out, d->what);
        if (!d->throttled)
            bz_buf_printf(out, ", %.2f times as long", d->seconds / d->peers);
        bz_buf_puts(out, "</li>\n");
    }
    bz_buf_puts(out, r->n_deviations ? "</ul>\n" : "");
    put_list(out, "What failed", r->n_failures);
    for (int i = 0; i < r->n_failures; i++) {
        bz_buf_puts(out, "<li>");
        put(out, r->failure[i].kind);
        bz_buf_putc(out, ' ');
        put(out, r->failure[i].what);
        bz_buf_puts(out, ": ");
        put(out, r->failure[i].reason);
        bz_buf_puts(out, "</li>\n");
    }
    if (r->more_failures)
        bz_buf_printf(out, "<li>and %d more: benanza db show --failed</li>\n", r->more_failures);
    bz_buf_puts(out, r->n_failures ? "</ul>\n" : "");
    put_list(out, "To be looked at", r->warning.n);
    for (int i = 0; i < r->warning.n; i++) {
        bz_buf_puts(out, "<li>");
        put(out, r->warning.item[i]);
        bz_buf_puts(out, "</li>\n");
    }
    bz_buf_puts(out, r->warning.n ? "</ul>\n" : "");
}

void bz_fleet_report_html(const bz_fleet_report *r, int rows, bz_buf *out)
{
    bz_buf_puts(out, "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<title>benanza: night ");
    put(out, r->night->id);
    bz_buf_puts(out, "</title>\n<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
                     "td,th{padding:2px 10px;text-align:left;border-bottom:1px solid #ccc}.n{text-align:right}"
                     ".bad{background:#fdd}.good{background:#dfd}</style>\n<h1>Night ");
    put(out, r->night->id);
    bz_buf_printf(out, "</h1>\n<p>%d regressions beyond %.3g %%; %d families still missing.</p>\n", r->regressions,
                  100 * r->tolerance, r->left);
    put_systems(r, out);
    put_models(r, out);
    put_layers(r, rows, out);
    put_troubles(r, out);
    bz_buf_puts(out, "</html>\n");
}
