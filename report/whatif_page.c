/* What an iteration would take after a change, as a page: the answer, what was assumed, and both time lines at one scale. It needs no
 * script and nothing from elsewhere. */
#include "report/html.h"

enum { WIDTH = 1060, ROW = 22, LABEL = 150, MOST = 20000 };

static const char STYLE[] =
    "body{font:15px/1.5 sans-serif;max-width:1400px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em;text-align:left;border-bottom:1px solid #ccc}"
    "td.n,th.n{text-align:right}.line{overflow-x:auto;padding-bottom:.5em}svg{display:block;overflow:visible}text{font:"
    "12px sans-serif;fill:currentColor}"
    ".host{fill:#7a869a}.call{fill:#3b76c4}.kernel{fill:#2f8f5b}.copy{fill:#c98a1b}.sync{fill:#b9504a}.communication{"
    "fill:#8552b5}"
    ".load{fill:#a0708a}.axis{stroke:#999;fill:none}.key{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 "
    "1em}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}}";

static const char *time_of(bz_unit_text out, int64_t ns)
{
    return bz_units_time(out, 1e-9 * (double)ns);
}

static void cell(bz_buf *out, const char *text, bool number)
{
    bz_buf_puts(out, number ? "<td class=\"n\">" : "<td>");
    bz_html_text(text, out);
    bz_buf_puts(out, "</td>");
}

/* ---- time lines ----------------------------------------------------------------------------- */

typedef struct {
    const bz_flow *flow;
    const bz_simulated *s;
    double scale; /* pixels per ns */
    int rows, drawn;
    int *row; /* [lanes]; -1: nothing on it */
} drawing;

static void draw_task(drawing *d, uint32_t i, double *until, bz_buf *out)
{
    const bz_task *t = &d->flow->task[i];
    double x = (double)(d->s->start[i] - d->flow->offset) * d->scale, width = (double)t->duration * d->scale;
    if (x < 0) {
        width += x;
        x = 0;
    }
    if (x + width < until[t->lane] + 0.3 || width <= 0 || d->drawn >= MOST) /* what nobody could see */
        return;
    bz_unit_text text;
    d->drawn++;
    until[t->lane] = x + width;
    bz_buf_printf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                  bz_task_kind_name((bz_task_kind)t->kind), LABEL + x, d->row[t->lane] * ROW + 2,
                  width < 0.3 ? 0.3 : width, ROW - 6);
    bz_html_text(t->name, out);
    bz_buf_printf(out, ": %s%s</title></rect>\n", time_of(text, t->duration), t->at < 0 ? ", inserted" : "");
}

static void draw(const char *title, const bz_flow *flow, const bz_simulated *s, int64_t longest, bz_buf *out)
{
    drawing d = {.flow = flow, .s = s, .scale = longest > 0 ? (double)WIDTH / (double)longest : 0};
    bz_arena arena = {0};
    bz_unit_text text;
    double *until = BZ_NEW(&arena, double, flow->n_lanes + 1);
    d.row = BZ_NEW(&arena, int, flow->n_lanes + 1);
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        d.row[l] = -1;
    for (uint32_t i = 0; i < flow->n; i++) {
        uint32_t lane = flow->task[i].lane;
        if (!flow->task[i].removed && flow->task[i].duration && d.row[lane] < 0)
            d.row[lane] = d.rows++;
    }
    bz_buf_printf(out, "<h2>%s: %s</h2>\n<div class=\"line\"><svg width=\"%d\" height=\"%d\">\n", title,
                  time_of(text, s->total), LABEL + WIDTH, d.rows * ROW + 20);
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        if (d.row[l] >= 0) {
            bz_buf_printf(out, "<text x=\"0\" y=\"%d\">", d.row[l] * ROW + 15);
            bz_html_text(flow->lane[l].name, out);
            bz_buf_puts(out, "</text>\n");
        }
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed)
            draw_task(&d, i, until, out);
    bz_buf_printf(out,
                  "<path class=\"axis\" d=\"M%d %dh%d\"/><text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" "
                  "text-anchor=\"end\">%s</text>\n</svg></div>\n",
                  LABEL, d.rows * ROW + 1, WIDTH, LABEL, d.rows * ROW + 15, LABEL + WIDTH, d.rows * ROW + 15,
                  time_of(text, longest));
    bz_arena_free(&arena);
}

static void legend(bz_buf *out)
{
    bz_buf_puts(out, "<p>");
    for (int k = 0; k < BZ_TASK_END; k++)
        bz_buf_printf(out, "<svg class=\"key\"><rect class=\"%s\" width=\"14\" height=\"14\"/></svg>%s",
                      bz_task_kind_name((bz_task_kind)k), bz_task_kind_name((bz_task_kind)k));
    bz_buf_puts(out, "</p>\n");
}

/* ---- tables --------------------------------------------------------------------------------- */

static void put_predictions(const bz_whatif *w, const bz_prediction *p, int n, const char *title, bz_buf *out)
{
    bz_buf_printf(out,
                  "<table><tr><th>%s</th><th class=\"n\">after</th><th class=\"n\">from</th><th class=\"n\">to</th><th "
                  "class=\"n\">gain</th><th>guessed</th></tr>\n",
                  title);
    for (int i = 0; i < n; i++) {
        bz_unit_text text;
        bz_buf_puts(out, "<tr>");
        cell(out, p[i].name, false);
        if (!p[i].changed) {
            bz_buf_puts(out, "<td colspan=\"5\">does not apply: ");
            bz_html_text(p[i].because ? p[i].because : "it changes nothing", out);
            bz_buf_puts(out, "</td></tr>\n");
            continue;
        }
        cell(out, time_of(text, p[i].time), true);
        cell(out, time_of(text, p[i].low), true);
        cell(out, time_of(text, p[i].high), true);
        cell(out, bz_units_percent(text, (double)(w->simulated - p[i].time) / (double)w->simulated), true);
        cell(out, bz_prediction_guesses(&p[i]) ? "in part" : "nothing", false);
        bz_buf_puts(out, "</tr>\n");
    }
    bz_buf_puts(out, "</table>\n");
}

static void put_assumed(const bz_prediction *p, bz_buf *out)
{
    bz_buf_puts(out, "<table><tr><th>from</th><th>assumed</th><th>where</th></tr>\n");
    for (int k = 0; k < p->n_assumed; k++) {
        bz_buf_puts(out, "<tr>");
        cell(out, bz_assumed_name(p->assumed[k].how), false);
        cell(out, p->assumed[k].what, false);
        cell(out, p->assumed[k].from, false);
        bz_buf_puts(out, "</tr>\n");
    }
    bz_buf_puts(out, "</table>\n");
}

static void put_critical(const char *title, const bz_critical *c, bz_buf *out)
{
    enum { ROWS = 12 };
    bz_buf_printf(out, "<table><tr><th>%s</th><th>kind</th><th class=\"n\">time</th><th class=\"n\">share</th></tr>\n",
                  title);
    for (uint32_t i = 0; i < c->n && i < ROWS; i++) {
        bz_unit_text text;
        bz_buf_puts(out, "<tr>");
        cell(out, c->row[i].name, false);
        cell(out, c->row[i].kind, false);
        cell(out, time_of(text, c->row[i].time), true);
        cell(out, bz_units_percent(text, c->time ? (double)c->row[i].time / (double)c->time : 0), true);
        bz_buf_puts(out, "</tr>\n");
    }
    bz_buf_puts(out, "</table>\n");
}

void bz_report_whatif_page(const bz_whatif *w, const bz_simulated *before, const bz_flow *after,
                           const bz_simulated *then, bz_buf *out)
{
    bz_unit_text a, b, c;
    bz_buf answer = {0};
    int64_t longest = then && then->total > before->total ? then->total : before->total;
    bz_buf_printf(out,
                  "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>benanza "
                  "whatif</title><style>%s</style>\n<h1>What if</h1>\n",
                  STYLE);
    bz_buf_printf(out, "<p>%s %s; simulated %s, off by %s.</p>\n",
                  w->flow->overlaps ? "A step of the typical iteration takes" : "The typical iteration takes",
                  time_of(a, w->measured), time_of(b, w->simulated), bz_units_percent(c, w->error));
    bz_report_whatif_answer(w, !then, &answer);
    bz_buf_puts(out, "<p><b>");
    bz_html_text(bz_buf_text(&answer), out);
    bz_buf_puts(out, "</b></p>\n");
    bz_buf_free(&answer);
    if (w->n)
        put_predictions(w, w->prediction, w->n, w->n_greedy ? "alone" : "after", out);
    if (w->n_greedy)
        put_predictions(w, w->greedy, w->n_greedy, "together", out);
    if (then && w->n)
        put_assumed(&w->prediction[w->n - 1], out);
    legend(out);
    draw("Before", w->flow, before, longest, out);
    if (then)
        draw("After", after, then, longest, out);
    put_critical("critical path before", &w->critical, out);
    if (then && w->n)
        put_critical("critical path after", &w->prediction[w->n - 1].critical, out);
    bz_buf_puts(out, "</html>\n");
}
