/* Any bytes through load, inference, keys, unique layers, graph, patterns and picture. The first byte
 * chooses options. Promised: an error has a text; layers have keys; costs are not negative; a layer
 * waits for earlier ones only; and the same model gives the same keys again. */
#include "modelproc/modelproc.h"

#include "fuzz.h"

#include <string.h>

const size_t fuzz_header_size = 1;

static void check_type(const bz_type *t)
{
    int64_t n = bz_type_elements(t);
    PROMISE(n >= -1);
    if (t->kind == BZ_TYPE_TENSOR && t->rank >= 0) {
        PROMISE(t->rank <= BZ_MAX_RANK);
        for (int i = 0; i < t->rank; i++)
            PROMISE(bz_is_symbol(t->dims[i]) || t->dims[i] >= 0);
    }
    if (bz_type_is_static(t) && t->kind == BZ_TYPE_TENSOR)
        PROMISE(n >= 0);
}

static void check_layers(const bz_model *m, const bz_layer *layer, int n, bz_buf *text)
{
    for (int i = 0; i < n; i++) {
        PROMISE(layer[i].key && *layer[i].key && layer[i].name && layer[i].kind && layer[i].index == i);
        PROMISE(layer[i].macs >= 0 && layer[i].flops >= 0 && layer[i].bytes >= 0 && layer[i].params_count >= 0);
        PROMISE(layer[i].n_out == layer[i].node->n_out && layer[i].n_in == layer[i].node->n_in);
        for (const char *p = layer[i].key; *p; p++) /* keys are printed and stored as they are */
            PROMISE((unsigned char)*p >= 0x20 && *p != 0x7f);
        bz_buf_printf(text, "%s %s %lld %lld %lld %lld\n", layer[i].key, bz_class_name(layer[i].class),
                      (long long)layer[i].macs, (long long)layer[i].flops, (long long)layer[i].bytes,
                      (long long)layer[i].params_count);
        for (int k = 0; k < layer[i].n_out; k++) {
            check_type(&layer[i].out[k]);
            bz_type_text(m, &layer[i].out[k], text);
        }
        for (int b = 0; b < layer[i].n_bodies; b++)
            check_layers(m, layer[i].bodies[b].layers, layer[i].bodies[b].n, text);
    }
}

/* What came of it, as text: keys and types, or the error. */
static void infer(bz_model *m, const bz_infer_options *options, bz_buf *text)
{
    bz_layers *l;
    bz_error err = {0};
    if (bz_layers_infer(m, options, &l, &err)) {
        PROMISE(!l && err.code != BZ_OK && *err.text);
        bz_buf_puts(text, err.text);
        SAW(&err.code, sizeof err.code);
        return;
    }
    check_layers(m, l->layer, l->n, text);
    const bz_dag *dag = bz_dag_build(l);
    PROMISE(dag->n == l->n);
    for (int i = 0; i < dag->n; i++)
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
            PROMISE(dag->pred[p] >= 0 && dag->pred[p] < i);
    for (int i = 0; i < dag->n_modules; i++)
        PROMISE(dag->modules[i].begin < dag->modules[i].end && dag->modules[i].end <= dag->n);
    static bz_patterns *patterns; /* parsed once */
    const bz_match *match;
    bz_spares spares;
    PROMISE(patterns || !bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err));
    bz_spares_find(l, &spares);
    int n = bz_patterns_find(patterns, l, &spares, &match);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < match[i].n; k++)
            PROMISE(match[i].layer[k] >= 0 && match[i].layer[k] < l->n &&
                    (k == 0 || match[i].layer[k - 1] < match[i].layer[k]));
    for (int i = 0; i < n; i++)
        bz_buf_printf(text, "%s %d\n", match[i].pattern, match[i].layer[match[i].n - 1]);
    for (int i = 0; i < spares.n; i++)
        bz_buf_printf(text, "%d %s\n", spares.match[i].layer[0], bz_spare_name(spares.match[i].spare));
    SAW(text->data, text->len);
    bz_dot_layers(l, dag, NULL, text);
    bz_unique u = {0};
    bz_unique_add(&u, l, 0, NULL);
    PROMISE(u.n <= u.n_layers);
    bz_unique_free(&u);
    bz_layers_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < fuzz_header_size)
        return 0;
    static const bz_bind BINDS[] = {{"N", "2"}, {"x", "1x3x8x8"}};
    uint8_t choice = data[0];
    bz_infer_options options = {.batch = choice & 1 ? 3 : 0,
                                .binds = BINDS,
                                .n_binds = choice >> 1 & 1,
                                .trips = choice & 4 ? 5 : 0,
                                .ignore_declared = choice & 8};
    bz_model *m;
    bz_error err = {0};
    if (bz_model_parse(data + 1, size - 1, "fuzz", &m, &err))
        return 0;
    bz_buf once = {0}, twice = {0};
    infer(m, &options, &once);
    if (choice & 16) { /* anew: bodies of functions would get other symbols the second time */
        bz_model_free(m);
        PROMISE(!bz_model_parse(data + 1, size - 1, "fuzz", &m, &err));
        infer(m, &options, &twice);
        PROMISE(once.len == twice.len && !memcmp(bz_buf_text(&once), bz_buf_text(&twice), once.len));
    }
    bz_buf_free(&once);
    bz_buf_free(&twice);
    bz_model_free(m);
    return 0;
}
