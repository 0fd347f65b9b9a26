/* The graph on the page. A big graph is drawn in parts: parallel modules are one node each and open to a
 * picture of their own, and where that is still too much, neighbours in the model's order are put together. */
#include "base/sort.h"
#include "report/report.h"

#include <string.h>

enum { WHOLE = 40, PARTS = 32, CROWDED = 64 }; /* nodes: of a graph drawn whole; when put together; when too many */

typedef struct graph {
    const bz_bound *bound;
    bz_dot_marks marks;
    bz_arena arena;
    int number, drawn; /* of the analysis; pictures of it so far */
    int *place, *budget;
    bz_buf *out;
} graph;

typedef struct part {
    int begin, end;
    const char *id; /* of the picture that it opens to */
} part;

/* Graphviz's document without its head, comments and titles ("n12->n13"), which would be tool tips. */
static void put_svg(const char *svg, const char *label, bz_buf *out)
{
    const char *p = strstr(svg, "<svg");
    if (!p)
        return;
    bz_buf_puts(out, "<svg role=\"group\" aria-label=\"");
    bz_buf_html(out, label);
    bz_buf_putc(out, '"');
    p += strlen("<svg");
    while (*p) {
        const char *end = NULL;
        if (!strncmp(p, "<!--", 4) && (end = strstr(p, "-->")))
            p = end + 3;
        else if (!strncmp(p, "<title>", 7) && (end = strstr(p, "</title>")))
            p = end + 8;
        else if (*p == '\n')
            p++, bz_buf_putc(out, ' ');
        else
            bz_buf_putc(out, *p++);
    }
}

static bool put_picture(graph *g, const bz_buf *dot, const char *label)
{
    BZ_SCOPED(bz_buf) svg = {0};
    bz_error err = {0};
    bool failed = bz_graphviz_svg(bz_buf_text(dot), &svg, &err) != 0;
    if (failed) {
        bz_buf_puts(g->out, "<p class=\"note\">");
        bz_buf_html(g->out, err.text);
        bz_buf_puts(g->out, "</p>");
    } else {
        bz_buf_puts(g->out, "<div class=\"picture\" tabindex=\"0\" role=\"region\" aria-label=\"");
        bz_buf_html(g->out, label);
        bz_buf_puts(g->out, "\">");
        put_svg(bz_buf_text(&svg), label, g->out);
        bz_buf_puts(g->out, "</div>");
    }
    return !failed;
}

/* The outermost module that begins at `at` and lies within the range without being it. */
static int module_end(const bz_bound *b, int at, int begin, int end)
{
    int best = at + 1, low = 0, high = b->dag->n_modules;
    const bz_module *m = b->dag->modules;
    BZ_FIND_FIRST(low, high, mid, m[mid].begin < at);
    for (; low < b->dag->n_modules && m[low].begin == at; low++)
        if (m[low].end <= end && m[low].end > best && !(at == begin && m[low].end == end))
            best = m[low].end;
    return best;
}

/* Parts that only one result passes between: neighbours are put together until that holds, which keeps
 * residual blocks whole. Each layer of the range that is used behind it is open until then. */
static int close_necks(graph *g, int begin, int end, part *list, int n)
{
    const bz_bound *b = g->bound;
    int *change = BZ_NEW(&g->arena, int, end - begin + 2), *last = BZ_NEW(&g->arena, int, end - begin), open = 0;
    int merged = 0, at = begin;
    for (int i = begin; i < end; i++)
        for (int p = b->dag->first[i]; p < b->dag->first[i + 1]; p++)
            if (b->dag->pred[p] >= begin && b->layers->layer[b->dag->pred[p]].class != BZ_CONSTANT)
                last[b->dag->pred[p] - begin] = i;
    for (int i = begin; i < end; i++)
        if (last[i - begin]) {
            change[i + 1 - begin]++;
            change[last[i - begin] + 1 - begin]--;
        }
    for (int k = 0, from = 0; k < n; k++) {
        for (; at < list[k].end; at++)
            open += change[at + 1 - begin];
        if (open > 1 && k + 1 < n)
            continue;
        list[merged++] = (part){.begin = list[from].begin, .end = list[k].end};
        from = k + 1;
    }
    return merged;
}

static int split(graph *g, int begin, int end, part *list)
{
    int n = 0, merged = 0;
    for (int i = begin; i < end; i = list[n++].end)
        list[n] = (part){.begin = i, .end = module_end(g->bound, i, begin, end)};
    if (n > WHOLE) {
        part *necks = bz_arena_dup(&g->arena, list, (size_t)n * sizeof *list);
        merged = close_necks(g, begin, end, necks, n);
        if (merged > 1)
            memcpy(list, necks, (size_t)(n = merged) * sizeof *list);
    }
    if (n <= CROWDED)
        return n;
    merged = 0;
    for (int k = 0; k < PARTS; k++) {
        int from = (int)((long long)n * k / PARTS), to = (int)((long long)n * (k + 1) / PARTS);
        list[merged++] = (part){.begin = list[from].begin, .end = list[to - 1].end};
    }
    return merged;
}

static const char UNPRICED[] = "unpriced";

static double cost(const bz_bound *b, int begin, int end)
{
    double sum = 0;
    for (int i = begin; i < end; i++)
        sum += b->seconds[i];
    return sum;
}

/* What lacks a price is no time of 0: the sum is a lower end then, and where nothing has a price there is none. */
static const char *describe(graph *g, const part *p, const char *separator)
{
    const bz_bound *b = g->bound;
    double seconds = cost(b, p->begin, p->end);
    bool lacks = false;
    for (int i = p->begin; i < p->end; i++)
        lacks |= g->marks.note[i] == UNPRICED;
    return bz_arena_printf(&g->arena, "%s%s… %s%s%d layers, %s%s", b->layers->layer[p->begin].name, separator,
                           b->layers->layer[p->end - 1].name, separator, p->end - p->begin,
                           lacks && seconds > 0 ? "≥ " : "", lacks && !(seconds > 0) ? UNPRICED : BZ_SAY_TIME(seconds));
}

static void draw(graph *g, int begin, int end, const char *id, const char *label)
{
    part *list = BZ_NEW(&g->arena, part, end - begin + 1);
    bool whole = end - begin <= WHOLE; /* few enough: all of them, modules too */
    int n = whole ? end - begin : split(g, begin, end, list);
    for (int k = 0; k < n && whole; k++)
        list[k] = (part){.begin = begin + k, .end = begin + k + 1};
    bz_dot_piece *piece = BZ_NEW(&g->arena, bz_dot_piece, n);
    BZ_SCOPED(bz_buf) dot = {0};
    if (n > *g->budget) {
        bz_buf_puts(g->out, "<p class=\"note\">Not drawn: the page would become too big. --svg draws it.</p>");
        return;
    }
    *g->budget -= n;
    for (int k = 0; k < n; k++) {
        piece[k] = (bz_dot_piece){.begin = list[k].begin, .end = list[k].end};
        if (list[k].end - list[k].begin < 2)
            continue;
        list[k].id = bz_arena_printf(&g->arena, "g%dp%d", g->number, ++g->drawn);
        piece[k].label = describe(g, &list[k], "\n");
        piece[k].url = bz_arena_printf(&g->arena, "#%s", list[k].id);
    }
    bz_dot_pieces(g->bound->layers, g->bound->dag, &g->marks, piece, n, bz_arena_printf(&g->arena, "%ss", id), g->place,
                  &dot);
    bool drawn = put_picture(g, &dot, label);
    for (int k = 0; k < n && drawn; k++) {
        if (!list[k].id)
            continue;
        const char *text = describe(g, &list[k], " ");
        bz_buf_printf(g->out, "<details id=\"%s\"><summary>", list[k].id);
        bz_buf_html(g->out, text);
        bz_buf_puts(g->out, "</summary>");
        draw(g, list[k].begin, list[k].end, list[k].id, text);
        bz_buf_puts(g->out, "</details>");
    }
}

void bz_report_graph(const bz_analysis *a, int number, int *budget, bz_buf *out)
{
    const bz_bound *b = &a->bound;
    graph g = {.bound = b, .number = number, .budget = budget, .out = out};
    const char **note = BZ_NEW(&g.arena, const char *, b->dag->n);
    for (int i = 0; i < b->dag->n; i++)
        if (b->seconds[i] > 0)
            note[i] = bz_arena_printf(&g.arena, "%s", BZ_SAY_TIME(b->seconds[i]));
    for (int i = 0; i < b->n; i++)
        if (!b->layer[i].price.alternative)
            note[b->layer[i].node] = UNPRICED;
    g.marks = (bz_dot_marks){.path = b->path.node, .n = b->path.n, .note = note};
    g.place = BZ_NEW(&g.arena, int, b->dag->n);
    if (b->dag->n)
        draw(&g, 0, b->dag->n, bz_arena_printf(&g.arena, "g%dp0", number), "The model's graph");
    bz_arena_free(&g.arena);
}
