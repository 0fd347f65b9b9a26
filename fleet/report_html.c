/* A night as a page that can be mailed: one file, no scripts, nothing loaded from elsewhere. */
#include "fleet/steps.h"

static void put_table(const char *title, const bz_table *t, bz_buf *out)
{
    if (!bz_table_rows(t))
        return;
    bz_buf_printf(out, "<h2>%s</h2>\n", title);
    bz_table_html(t, out);
}

static void add_change(bz_table *t, const bz_change_row *c, double tolerance, bz_arena *arena)
{
    BZ_ROW(t, BZ_SHOW(bz_verdict_name(c->verdict)));
    bz_table_style(t, bz_change_regressed(c, tolerance)  ? BZ_STYLE_BAD
                      : bz_change_improved(c, tolerance) ? BZ_STYLE_GOOD
                                                         : BZ_STYLE_NONE);
    BZ_ROW(t, BZ_SHOW(c->kind), BZ_SHOW_TIME(c->before.seconds), BZ_SHOW_TIME(c->after.seconds),
           BZ_SHOW(bz_arena_printf(arena, "%.3f", c->after.seconds / c->before.seconds)));
}

/* All models, since that nothing changed is news, too; layers that changed. */
static void put_changes(const bz_fleet_report *r, int rows, bz_arena *arena, bz_buf *out)
{
    bz_table *models = bz_table_of(arena, "verdict|kind|>before|>after|>ratio|bound of|>layers");
    bz_table *layers = bz_table_of(arena, "verdict|kind|>before|>after|>ratio|layer|fastest before|fastest after");
    int changed = 0;
    for (int i = 0; i < r->n_changes; i++) {
        const bz_change_row *c = &r->change[i];
        if (c->model) {
            add_change(models, c, r->tolerance, arena);
            BZ_ROW(models, BZ_SHOW(c->model), BZ_SHOW(bz_arena_printf(arena, "%d of %d", c->layers, c->of)));
        } else if ((bz_change_regressed(c, r->tolerance) || bz_change_improved(c, r->tolerance)) && changed++ < rows) {
            add_change(layers, c, r->tolerance, arena);
            BZ_ROW(layers, BZ_SHOW(c->what), BZ_SHOW(c->variant_before), BZ_SHOW(c->variant_after));
        }
    }
    put_table("Models", models, out);
    put_table("Layers", layers, out);
    if (!changed)
        bz_buf_puts(out, "<p>No layer became faster or slower by more than the tolerance.</p>\n");
    if (changed > rows)
        bz_buf_printf(out, "<p>And %d more: benanza fleet report --json has them.</p>\n", changed - rows);
}

void bz_fleet_report_html(const bz_fleet_report *r, int rows, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    BZ_SCOPED(bz_buf) troubles = {0};
    bz_buf_puts(out, "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<title>benanza: night ");
    bz_buf_html(out, r->night->id);
    bz_buf_puts(
        out, "</title>\n<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:2px "
             "10px;text-align:left;border-bottom:1px solid "
             "#ccc}.n{text-align:right}.bad{background:#fdd}.good{background:#dfd}pre{white-space:pre-wrap}</"
             "style>\n<h1>Night ");
    bz_buf_html(out, r->night->id);
    bz_buf_printf(out, "</h1>\n<p>%d regressions beyond %.3g %%; %d families still missing.</p>\n", r->regressions,
                  100 * r->tolerance, r->left);
    put_table("Systems", fleet_systems_table(r, &arena), out);
    put_changes(r, rows, &arena, out);
    fleet_troubles_text(r, &troubles);
    bz_buf_puts(out, "<pre>");
    bz_buf_html_lines(out, bz_buf_text(&troubles));
    bz_buf_puts(out, "</pre>\n</html>\n");
}
