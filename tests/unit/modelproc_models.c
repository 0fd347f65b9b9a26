/* What is said of the bundled models, with other batches and sizes, too: layers, those that need not run, places of patterns, modules, totals, unique
 * layers and the picture. modelproc_models.txt has a hash of it (seen.h). */
#include "modelproc/modelproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "modelproc_say.h"
#include "seen.h"

static const bz_infer_options OPTIONS[] = {
    {0},
    {.batch = 3},
    {.batch = 2, .as_written = true},
    {.open_inputs = true},
    {.ignore_declared = true},
    {.batch = 1, .without_keys = true},
};

static void say_graph(bz_layers *l, bz_patterns *patterns, bz_buf *out)
{
    const bz_dag *dag = bz_dag_build(l);
    const bz_match *match;
    bz_spares spares;
    say_spares(l, &spares, out);
    int n = bz_patterns_find(patterns, l, &spares, &match);
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "%s %d", match[i].pattern, match[i].shared);
        for (int k = 0; k < match[i].n; k++)
            bz_buf_printf(out, " %d", match[i].layer[k]);
        bz_buf_putc(out, '\n');
    }
    bz_dot_layers(l, dag, NULL, out);
}

static void say_totals(const bz_layers *l, bz_buf *out)
{
    bz_totals t;
    bz_token_step step = {0};
    bz_unique u = {0};
    for (int fold = 0; fold < 2; fold++) {
        bz_totals_make(l, fold, &t);
        bz_buf_printf(out, "%d %d %d, %d %d %d %d, %d, %lld %lld %lld %lld\n", t.layers, t.inside, t.unique,
                      t.per_class[0], t.per_class[1], t.per_class[2], t.per_class[3], t.open, (long long)t.macs,
                      (long long)t.flops, (long long)t.bytes, (long long)t.params);
    }
    bool is_step = bz_layers_step(l, &step);
    bz_buf_printf(out, "%d: %lld %lld %lld\n", is_step, (long long)step.sequences, (long long)step.tokens,
                  (long long)step.past);
    bz_unique_add(&u, l, 0, bz_layer_is_not_constant);
    for (int i = 0; i < u.n; i++)
        bz_buf_printf(out, "%lld of %s\n", (long long)u.item[i].count, u.item[i].layer->key);
    bz_unique_free(&u);
}

/* Three nodes in a row as a model of their own, again and again. */
static void say_slices(bz_layers *l, bz_buf *out)
{
    for (int i = 0; i + 3 <= l->n; i += 7) {
        const int node[] = {i, i + 1, i + 2};
        bz_error err = {0};
        bz_buf file = {0};
        char hex[33] = "";
        bz_slice slice = {.node = node, .n = 3, .types = l->types, .constant = l->constant, .keep = 64};
        if (!bz_model_slice(l->model, &slice, &file, &err))
            bz_hash_hex(bz_hash_bytes(file.data, file.len), hex);
        bz_buf_printf(out, "%d: %d %zu %s\n", i, (int)err.code, file.len, hex);
        bz_buf_free(&file);
    }
}

static void say(const char *name, seen *s)
{
    bz_patterns *patterns = NULL;
    bz_error err = {0};
    char path[500];
    assert_int_equal(chdir(BENANZA_SOURCE), 0); /* the picture has the path */
    snprintf(path, sizeof path, "models/%s.onnx", name);
    assert_int_equal(bz_patterns_load(NULL, &patterns, &err), 0);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++, s->tried++) {
        bz_models m = {0};
        const char *one = path;
        if (bz_models_load(&one, 1, &OPTIONS[i], &m, &err)) {
            bz_buf_printf(&s->text, "error %d\n", (int)err.code);
        } else {
            for (int k = 0; k < m.layers[0]->n; k++)
                say_layer(m.model[0], &m.layers[0]->layer[k], &s->text);
            bz_buf_printf(&s->text, "%d warnings, batch %lld\n", m.layers[0]->n_warnings,
                          (long long)m.layers[0]->batch);
            say_graph(m.layers[0], patterns, &s->text);
            say_totals(m.layers[0], &s->text);
            if (!i)
                say_slices(m.layers[0], &s->text);
            s->taken++;
        }
        bz_models_free(&m);
    }
    bz_patterns_free(patterns);
}

int main(int argc, char **argv)
{
    static const char *const MODELS[] = {"bert_base", "efficientnet_b0",    "googlenet", "gpt2",
                                         "lstm",      "mobilenet_v3_large", "swin_t"};
    return seen_main(argc, argv, MODELS, sizeof MODELS / sizeof *MODELS, say,
                     BENANZA_SOURCE "/tests/unit/modelproc_models.txt");
}
