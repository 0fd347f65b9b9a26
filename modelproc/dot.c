/* The graph as a picture, in the DOT language. */
#include "modelproc/modelproc.h"

#include <stdlib.h>

static const char *fill_color(bz_class c)
{
    static const char *const COLORS[] = {"#cfe3f7", "#f7e6c4", "#eeeeee", "#ffffff"};
    return COLORS[c];
}

/* `turn` is how far the path has been walked: its layers come in the order of their numbers. */
static bool on_path(const bz_dot_marks *marks, int i, int *turn)
{
    while (marks && *turn < marks->n && marks->path[*turn] < i)
        ++*turn;
    return marks && *turn < marks->n && marks->path[*turn] == i;
}

static void put_node(const bz_layers *l, int i, const char *note, bool red, bz_buf *out)
{
    const bz_layer *layer = &l->layer[i];
    BZ_SCOPED(bz_buf) label = {0};
    bz_buf_printf(&label, "%s\n%s", layer->name, layer->kind);
    if (layer->n_out) {
        bz_buf_puts(&label, " ");
        bz_type_text(l->model, &layer->out[0], &label);
    }
    if (layer->macs) {
        bz_unit_text macs;
        bz_buf_printf(&label, "\n%s MACs", bz_units_count(macs, (double)layer->macs));
    }
    if (note)
        bz_buf_printf(&label, "\n%s", note);
    bz_buf_printf(out, "  n%d [fillcolor=\"%s\"%s label=", i, fill_color(layer->class),
                  red ? " color=\"#d62728\" penwidth=2" : "");
    bz_graphviz_quote(out, bz_buf_text(&label));
    bz_buf_puts(out, "]\n");
}

void bz_dot_layers(const bz_layers *l, const bz_dag *dag, const bz_dot_marks *marks, bz_buf *out)
{
    bz_buf_puts(out, "digraph ");
    bz_graphviz_quote(out, l->model->path);
    bz_buf_puts(out, " {\n  node [shape=box style=\"filled,rounded\" fontname=\"Helvetica\" fontsize=10]\n"
                     "  edge [color=\"#555555\"]\n");
    int open_end = -1, m = 0, turn = 0; /* modules within modules are not framed again, nor is nearly everything */
    for (int i = 0; i < l->n; i++) {
        while (m < dag->n_modules && dag->modules[m].begin < i)
            m++;
        if (i == open_end)
            bz_buf_puts(out, "  }\n");
        if (i >= open_end && m < dag->n_modules && dag->modules[m].begin == i && dag->modules[m].end - i <= l->n / 2) {
            open_end = dag->modules[m].end;
            bz_buf_printf(out, "  subgraph cluster_%d {\n  label=\"%d in parallel\" fontsize=9 color=\"#999999\"\n", m,
                          dag->modules[m].width);
        }
        if (l->layer[i].class != BZ_CONSTANT)
            put_node(l, i, marks && marks->note ? marks->note[i] : NULL, on_path(marks, i, &turn), out);
    }
    if (open_end == l->n)
        bz_buf_puts(out, "  }\n");
    turn = 0;
    for (int i = 0; i < l->n; i++) {
        bool red = on_path(marks, i, &turn) && turn;
        for (int p = dag->first[i]; p < dag->first[i + 1] && l->layer[i].class != BZ_CONSTANT; p++)
            bz_buf_printf(out, "  n%d -> n%d%s\n", dag->pred[p], i,
                          red && marks->path[turn - 1] == dag->pred[p] ? " [color=\"#d62728\" penwidth=2]" : "");
    }
    bz_buf_puts(out, "}\n");
}

static void put_piece(const bz_layers *l, const bz_dot_piece *p, const char *note, bool red, bz_buf *out)
{
    if (p->end - p->begin == 1) {
        put_node(l, p->begin, note, red, out);
        return;
    }
    bz_buf_printf(out, "  n%d [peripheries=2 fillcolor=\"#e8e4f3\"%s label=", p->begin,
                  red ? " color=\"#d62728\" penwidth=2" : "");
    bz_graphviz_quote(out, p->label);
    if (p->url) {
        bz_buf_puts(out, " URL=");
        bz_graphviz_quote(out, p->url);
    }
    bz_buf_puts(out, "]\n");
}

static bool on_path_within(const bz_dot_marks *marks, const bz_dot_piece *p, int *turn)
{
    while (marks && *turn < marks->n && marks->path[*turn] < p->begin)
        ++*turn;
    return marks && *turn < marks->n && marks->path[*turn] < p->end;
}

/* One edge for each pair of pieces. `red`: the piece that the path comes from, or -1. */
static void put_edges(const bz_layers *l, const bz_dag *dag, const bz_dot_piece *piece, int k, int red,
                      const int *place, int *last, bz_buf *out)
{
    for (int i = piece[k].begin; i < piece[k].end; i++)
        for (int p = dag->first[i]; p < dag->first[i + 1] && l->layer[i].class != BZ_CONSTANT; p++) {
            int from = dag->pred[p];
            if (from < piece[0].begin || place[from] == k || last[place[from]] == k)
                continue;
            last[place[from]] = k;
            bz_buf_printf(out, "  n%d -> n%d%s\n", piece[place[from]].begin, piece[k].begin,
                          place[from] == red ? " [color=\"#d62728\" penwidth=2]" : "");
        }
}

void bz_dot_pieces(const bz_layers *l, const bz_dag *dag, const bz_dot_marks *marks, const bz_dot_piece *piece, int n,
                   const char *id, int *place, bz_buf *out)
{
    int *last = bz_zeroed((size_t)n, sizeof *last), turn = 0, red = -1;
    bz_buf_printf(out, "digraph %s {\n  id=%s\n", id, id);
    bz_buf_puts(out, "  node [shape=box style=\"filled,rounded\" fontname=\"Helvetica\" fontsize=10]\n"
                     "  edge [color=\"#555555\"]\n");
    for (int k = 0; k < n; k++) {
        last[k] = -1;
        for (int i = piece[k].begin; i < piece[k].end; i++)
            place[i] = k;
    }
    for (int k = 0; k < n; k++) {
        bool path = on_path_within(marks, &piece[k], &turn);
        int begin = piece[k].begin;
        if (piece[k].end - begin == 1 && l->layer[begin].class == BZ_CONSTANT)
            continue;
        put_piece(l, &piece[k], marks && marks->note ? marks->note[begin] : NULL, path, out);
        put_edges(l, dag, piece, k, path ? red : -1, place, last, out);
        red = path ? k : red;
    }
    bz_buf_puts(out, "}\n");
    free(last);
}
