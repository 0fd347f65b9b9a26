/* Any bytes through the wire pass, the loader, payload reading and stripping. Promised: an error has a
 * text; what strip makes of a model is a model, and stripping that again changes nothing; the structure of
 * a file gives the same model as the whole, the same payloads, and the same without weights. */
#include "onnx/file.h"
#include "onnx/structure.h"

#include "fuzz.h"
#include "onnx/onnx.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const size_t fuzz_header_size = 1;

enum { MAX_READ = 10000 };

/* What can be read of it, or what is said of it, goes into `seen`. */
static void read_payload(const bz_model *m, const bz_tensor *t, bz_buf *seen)
{
    if (t->n > MAX_READ)
        return;
    bz_error err = {0};
    size_t n = (size_t)t->n;
    int64_t *ints = bz_alloc(n, sizeof *ints);
    double *reals = bz_alloc(n, sizeof *reals);
    bool bad_ints = bz_tensor_ints(m, t, ints, &err), bad_reals = bz_tensor_reals(m, t, reals, &err);
    PROMISE(!(bad_ints || bad_reals) || (err.code == BZ_BAD_INPUT && *err.text));
    bz_buf_puts(seen, t->name);
    if (!bad_ints)
        bz_buf_put(seen, ints, n * sizeof *ints);
    if (!bad_reals)
        bz_buf_put(seen, reals, n * sizeof *reals);
    free(ints);
    free(reals);
}

static void say_attribute(const bz_attr *a, bz_buf *seen)
{
    bz_buf_printf(seen, " %s:%d:%d", a->name, (int)a->kind, a->n);
    if (a->kind == BZ_ATTR_INT || a->kind == BZ_ATTR_FLOAT)
        bz_buf_printf(seen, "=%lld",
                      a->kind == BZ_ATTR_INT ? (long long)a->i : (long long)(a->f > -1e9 && a->f < 1e9 ? a->f : 0));
    if (a->kind == BZ_ATTR_STRING)
        bz_buf_put(seen, a->s.data, a->s.len);
    for (int i = 0; a->kind == BZ_ATTR_INTS && i < a->n; i++)
        bz_buf_printf(seen, ",%lld", (long long)a->ints[i]);
    for (int i = 0; a->kind == BZ_ATTR_STRINGS && i < a->n; i++)
        bz_buf_put(seen, a->strings[i].data, a->strings[i].len);
}

/* Every id in range, every node behind those it waits for. `ready` has room for all values. */
static void check_graph(const bz_model *m, const bz_graph *g, bool *ready, bz_buf *seen)
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
        bz_buf_printf(seen, "%s %s %s-%d", node->name, node->op, node->domain, node->opset);
        for (int k = 0; (v = bz_node_reads(node, k)) != BZ_READS_END; k++)
            PROMISE(v == BZ_NO_VALUE || (v >= 0 && v < m->n_values && ready[v]));
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] != BZ_NO_VALUE)
                ready[node->out[k]] = true;
        for (int k = 0; k < node->n_attrs; k++) {
            const bz_attr *a = &node->attrs[k];
            say_attribute(a, seen);
            if (a->kind == BZ_ATTR_TENSOR)
                read_payload(m, a->tensor, seen);
            if (a->kind == BZ_ATTR_GRAPH)
                check_graph(m, a->graph, ready, seen);
            for (int b = 0; a->kind == BZ_ATTR_GRAPHS && b < a->n; b++)
                check_graph(m, a->graphs[b], ready, seen);
        }
    }
}

static void check_model(bz_model *m, bz_buf *seen)
{
    bool *ready = bz_alloc((size_t)m->n_values, sizeof *ready);
    memset(ready, true, (size_t)m->n_values * sizeof *ready);
    check_graph(m, m->graph, ready, seen);
    free(ready);
    for (int v = 0; v < m->n_values; v++)
        if (m->values[v].init)
            read_payload(m, m->values[v].init, seen);
    int n = m->graph->n_nodes < 20 ? m->graph->n_nodes : 20;
    for (int i = 0; i < n; i++) {
        bz_graph *body;
        bz_error err = {0};
        if (m->graph->nodes[i].function >= 0 && bz_model_inline(m, &m->graph->nodes[i], &body, &err))
            PROMISE(err.code == BZ_BAD_INPUT && *err.text);
    }
}

/* Strips a model that loaded. Returns 0 when that did, too. */
static int strip(bz_model *m, uint64_t keep, bz_buf *out, bz_strip_result *r)
{
    bz_error err = {0};
    int failed = strip_model(m, keep, out, r, &err);
    PROMISE(!failed || (err.code == BZ_BAD_INPUT && *err.text));
    bz_model_free(m);
    return failed;
}

/* The same bytes as a file. `seen` is what check_model saw of the whole, NULL where that does not load; `stripped`
 * what became of it without weights, likewise. */
static void check_structure(const uint8_t *data, size_t size, uint64_t keep, const bz_buf *seen, const bz_buf *stripped)
{
    wire_bytes part;
    bz_error err = {0};
    int fd = memfd_create("fuzz", 0);
    PROMISE(write(fd, data, size) == (ssize_t)size);
    if (structure_read(fd, size, keep % 64, &(bz_buf){0}, &part, &err)) {
        PROMISE(err.code == BZ_BAD_INPUT && *err.text); /* it looks into more than a loader needs */
    } else {
        bz_buf again = {0}, out = {0};
        bz_strip_result r;
        bz_model *m;
        PROMISE(part.size <= size);
        bool loads = !structure_model(&part, "fuzz", &m, &err);
        PROMISE(loads == (seen != NULL) || part.n_cuts); /* bounds on memory count what is left */
        if (m && seen) {
            check_model(m, &again);
            bool same = again.len == seen->len && !memcmp(bz_buf_text(&again), bz_buf_text(seen), seen->len);
            PROMISE(same || part.n_cuts > 1); /* a payload in pieces is not read */
        }
        if (m && !strip(m, keep, &out, &r) && stripped) {
            bool same = out.len == stripped->len && !memcmp(bz_buf_text(&out), bz_buf_text(stripped), out.len);
            PROMISE(same || part.n_cuts > 1); /* raw data twice: both count, not the last alone */
        }
        bz_buf_free(&again);
        bz_buf_free(&out);
    }
    free((void *)part.data);
    free((void *)part.cuts);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < fuzz_header_size)
        return 0;
    uint64_t keep = data[0];
    bz_buf once = {0}, twice = {0}, seen = {0};
    bz_model *m;
    bz_error err = {0};
    bz_strip_result r;
    bool strips = false, loads = !bz_model_parse(data + 1, size - 1, "fuzz", &m, &err);
    if (loads) {
        check_model(m, &seen);
        strips = !strip(m, keep, &once, &r);
    } else {
        PROMISE(!m && err.code == BZ_BAD_INPUT && *err.text);
    }
    if (strips) {
        PROMISE(!bz_model_parse(bz_buf_text(&once), once.len, "stripped", &m, &err));
        PROMISE(!strip(m, keep, &twice, &r));
        PROMISE(once.len == twice.len && !memcmp(bz_buf_text(&once), bz_buf_text(&twice), once.len));
        PROMISE(r.tensors == 0);
    }
    SAW(seen.data, seen.len);
    SAW(once.data, once.len);
    check_structure(data + 1, size - 1, keep, loads ? &seen : NULL, strips ? &once : NULL);
    bz_buf_free(&once);
    bz_buf_free(&twice);
    bz_buf_free(&seen);
    return 0;
}
