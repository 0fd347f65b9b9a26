/* The page: its template with style, scripts, data and pictures put in. */
#include "report/html.h"
#include "report/parts.h"

#include <string.h>

/* Embedded when built: report.html, report.css, report*.js, and Chart.js from Debian's libjs-chart.js. */
extern const char bz_page_html[], bz_page_css[], bz_page_js[], bz_page_charts_js[], bz_page_timeline_js[],
    bz_page_evaluation_js[], bz_page_recording_js[], bz_page_whatif_js[], bz_page_predict_js[], bz_page_transfer_js[],
    bz_page_chart_library[];

enum { NODES = 3000 }; /* that are drawn at most, over all analyses */

/* JSON that cannot end the element it stands in, nor open a comment: these characters occur in strings only. */
static void put_json(const char *text, size_t n, bz_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr("<>&", text[i]))
            bz_buf_printf(out, "\\u%04x", (unsigned)text[i]);
        else
            bz_buf_putc(out, text[i]);
    }
}

static void put_title(const bz_findings *r, bz_buf *out)
{
    if (r->n + r->n_recordings != 1)
        bz_buf_printf(out, "%d analyses", r->n + r->n_recordings);
    else
        bz_buf_html(out, bz_file_name(r->n ? r->analysis->bound.model : r->recording->profile));
}

/* For those who read without scripts: what the terminal would show. */
static void put_plain(const bz_findings *r, bz_buf *out)
{
    enum { MOST = 4 };
    BZ_SCOPED(bz_buf) text = {0};
    for (int i = 0; i < r->n_recordings && r->n_recordings <= MOST; i++) {
        bz_report_recording_text(&r->recording[i], &text);
        bz_buf_putc(&text, '\n');
    }
    if (r->n)
        bz_report_sweep(r->analysis, r->n, &text);
    for (int i = 0; i < r->n && r->n <= MOST; i++) {
        bz_buf_putc(&text, '\n');
        bz_report_text(&r->analysis[i], &text);
    }
    bz_buf_html_lines(out, bz_buf_text(&text));
}

static void put_graphs(const bz_analysis *a, int n, bz_buf *out)
{
    int budget = NODES;
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "<template id=\"graph-%d\">", i);
        bz_report_graph(&a[i], i, &budget, out);
        bz_buf_puts(out, "</template>\n");
    }
}

/* What a page is of. */
typedef struct page {
    bz_buf title, plain, graphs; /* HTML */
    bz_buf data;                 /* the report as JSON, and behind its first n_report bytes what is drawn */
    size_t n_report;
    char nonce[33]; /* a script that is not ours would have to know the hash of the data it is in */
} page;

static void put_part(const char *name, size_t len, const page *p, bz_buf *out)
{
    const struct {
        const char *name, *text; /* NULL: data */
    } PARTS[] = {{"css", bz_page_css},
                 {"chart-library", bz_page_chart_library},
                 {"js", bz_page_js},
                 {"charts-js", bz_page_charts_js},
                 {"timeline-js", bz_page_timeline_js},
                 {"evaluation-js", bz_page_evaluation_js},
                 {"recording-js", bz_page_recording_js},
                 {"whatif-js", bz_page_whatif_js},
                 {"predict-js", bz_page_predict_js},
                 {"transfer-js", bz_page_transfer_js},
                 {"nonce", p->nonce},
                 {"title", bz_buf_text(&p->title)},
                 {"plain", bz_buf_text(&p->plain)},
                 {"graphs", bz_buf_text(&p->graphs)},
                 {"data", NULL},
                 {"drawing", NULL}};
    const char *data = bz_buf_text(&p->data);
    size_t i = 0;
    while (strlen(PARTS[i].name) != len || memcmp(PARTS[i].name, name, len) != 0)
        if (++i == sizeof PARTS / sizeof *PARTS)
            return;
    if (PARTS[i].text)
        bz_buf_puts(out, PARTS[i].text);
    else if (!strcmp(PARTS[i].name, "data"))
        put_json(data, p->n_report, out);
    else
        put_json(data + p->n_report, p->data.len - p->n_report, out);
}

/* Frees the parts. */
static void put_page(page *p, bz_buf *out)
{
    bz_hash_hex(bz_hash_bytes(bz_buf_text(&p->data), p->data.len), p->nonce);
    for (const char *at = bz_page_html; *at;) {
        const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close) {
            bz_buf_puts(out, at);
            break;
        }
        bz_buf_put(out, at, (size_t)(open - at));
        put_part(open + 2, (size_t)(close - open - 2), p, out);
        at = close + 2;
    }
    bz_buf_free(&p->title);
    bz_buf_free(&p->plain);
    bz_buf_free(&p->graphs);
    bz_buf_free(&p->data);
}

void bz_report_html(const bz_findings *r, bz_buf *out)
{
    page p = {0};
    put_title(r, &p.title);
    put_plain(r, &p.plain);
    put_graphs(r->analysis, r->n, &p.graphs);
    report_document(r, false, &p.data);
    p.n_report = p.data.len;
    bz_html_drawing(r, &p.data);
    put_page(&p, out);
}

/* A page of any document: `plain` is what the terminal would show. */
static page begin_page(const char *title, const char *json, const char *plain)
{
    page p = {0};
    bz_buf_html(&p.title, title);
    bz_buf_html_lines(&p.plain, plain);
    bz_buf_puts(&p.data, json);
    p.n_report = p.data.len;
    return p;
}

void bz_report_document_page(const char *title, const char *json, const char *text, bz_buf *out)
{
    page p = begin_page(title, json, text);
    bz_html_drawing(NULL, &p.data);
    put_page(&p, out);
}

void bz_report_whatif_page(const bz_whatif_shown *shown, const char *recording, bool all, bz_buf *out)
{
    BZ_SCOPED(bz_buf) json = {0}, text = {0}, title = {0};
    bz_buf_printf(&title, "What if: %s", recording);
    bz_report_whatif_json(&shown->whatif, &json);
    bz_report_whatif_text(&shown->whatif, all, &text);
    page p = begin_page(bz_buf_text(&title), bz_buf_text(&json), bz_buf_text(&text));
    bz_html_drawing_whatif(shown, all, &p.data);
    put_page(&p, out);
}
