/* The graph with its critical path. */
#include "report/report.h"

void bz_report_dot(const bz_analysis *a, bz_buf *out)
{
    const bz_bound *b = &a->bound;
    BZ_SCOPED(bz_arena) arena = {0};
    const char **note = BZ_NEW(&arena, const char *, b->dag->n);
    for (int i = 0; i < b->n; i++)
        if (!b->layer[i].price.alternative)
            note[b->layer[i].node] = "unpriced";
    for (int i = 0; i < b->dag->n; i++)
        if (b->seconds[i] > 0)
            note[i] = bz_arena_printf(&arena, "%s%s", note[i] ? "≥ " : "", BZ_SAY_TIME(b->seconds[i]));
    bz_dot_layers(b->layers, b->dag, &(bz_dot_marks){.path = b->path.node, .n = b->path.n, .note = note}, out);
}
