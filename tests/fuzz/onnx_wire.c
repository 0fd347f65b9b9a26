/* Any bytes through the wire pass, the loader, payload reading and stripping. Promised: an error has a
 * text; what strip makes of a model is a model, and stripping that again changes nothing. */
#include "onnx/wire.h"

#include "fuzz.h"
#include "onnx/onnx.h"

#include <string.h>

const size_t fuzz_header_size = 1;

enum { MAX_READ = 10000 };

static void read_payload(const bz_model *m, const bz_tensor *t)
{
    if (t->n > MAX_READ)
        return;
    bz_error err = {0};
    int64_t *ints = bz_alloc((size_t)t->n, sizeof *ints);
    double *reals = bz_alloc((size_t)t->n, sizeof *reals);
    if (bz_tensor_ints(m, t, ints, &err))
        PROMISE(err.code == BZ_BAD_INPUT && *err.text);
    if (bz_tensor_reals(m, t, reals, &err))
        PROMISE(err.code == BZ_BAD_INPUT && *err.text);
    free(ints);
    free(reals);
}

/* Every id in range, every node behind those it waits for. `ready` has room for all values. */
static void check_graph(const bz_model *m, const bz_graph *g, bool *ready)
{
    for (int i = 0; i < g->n_captures; i++)
        PROMISE(g->captures[i] >= 0 && g->captures[i] < m->n_values);
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_out; k++)
            if (g->nodes[i].out[k] != BZ_NO_VALUE)
                ready[g->nodes[i].out[k]] = false;
    for (int i = 0; i < g->n_nodes; i++) {
        const bz_node *node = &g->nodes[i];
        bz_value_id v;
        PROMISE(node->name && node->op && *node->op && node->domain);
        for (int k = 0; (v = bz_node_reads(node, k)) != BZ_READS_END; k++)
            PROMISE(v == BZ_NO_VALUE || (v >= 0 && v < m->n_values && ready[v]));
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] != BZ_NO_VALUE)
                ready[node->out[k]] = true;
        for (int k = 0; k < node->n_attrs; k++) {
            const bz_attr *a = &node->attrs[k];
            if (a->kind == BZ_ATTR_TENSOR)
                read_payload(m, a->tensor);
            if (a->kind == BZ_ATTR_GRAPH)
                check_graph(m, a->graph, ready);
            for (int b = 0; a->kind == BZ_ATTR_GRAPHS && b < a->n; b++)
                check_graph(m, a->graphs[b], ready);
        }
    }
}

static void check_model(bz_model *m)
{
    bool *ready = bz_alloc((size_t)m->n_values, sizeof *ready);
    memset(ready, true, (size_t)m->n_values * sizeof *ready);
    check_graph(m, m->graph, ready);
    free(ready);
    for (int v = 0; v < m->n_values; v++)
        if (m->values[v].init)
            read_payload(m, m->values[v].init);
    int n = m->graph->n_nodes < 20 ? m->graph->n_nodes : 20;
    for (int i = 0; i < n; i++) {
        bz_graph *body;
        bz_error err = {0};
        if (m->graph->nodes[i].function >= 0 && bz_model_inline(m, &m->graph->nodes[i], &body, &err))
            PROMISE(err.code == BZ_BAD_INPUT && *err.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < fuzz_header_size)
        return 0;
    uint64_t keep = data[0];
    data++;
    size--;
    bz_buf once = {0}, twice = {0};
    bz_model *m;
    bz_error err = {0};
    int64_t dropped, kept;
    int loads = !bz_model_parse(data, size, "fuzz", &m, &err);
    if (loads)
        check_model(m);
    else
        PROMISE(!m && err.code == BZ_BAD_INPUT && *err.text);
    bz_model_free(m);
    if (!wire_strip(data, size, keep, &once, &dropped, &kept, &err)) {
        const uint8_t *stripped = (const uint8_t *)bz_buf_text(&once);
        if (loads) {
            PROMISE(!bz_model_parse(stripped, once.len, "stripped", &m, &err));
            bz_model_free(m);
        }
        PROMISE(!wire_strip(stripped, once.len, keep, &twice, &dropped, &kept, &err));
        PROMISE(once.len == twice.len && !memcmp(bz_buf_text(&once), bz_buf_text(&twice), once.len));
        PROMISE(dropped == 0);
    }
    bz_buf_free(&once);
    bz_buf_free(&twice);
    return 0;
}
