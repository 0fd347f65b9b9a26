/* Models cut into sequences: every layer once, none too long, the same whatever models are called, and what is written is the model again. */
#include "bricks/bricks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const MODELS[] = {"resnet18",
                                     "mobilenet_v3_large",
                                     "inception_v3",
                                     "bert_base",
                                     "lstm",
                                     "swin_t",
                                     "densenet121",
                                     "../tests/cases/bound-text/m", /* Loop, If */
                                     "../tests/cases/layers-bodies/m"};
enum { N = sizeof MODELS / sizeof *MODELS };
static bz_error err;
static bz_models models;

static int load(void **state)
{
    char path[N][300];
    const char *list[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(path[i], sizeof path[i], "%s/models/%s.onnx", BENANZA_SOURCE, MODELS[i]);
        list[i] = path[i];
    }
    return bz_models_load(list, N, &(bz_infer_options){0}, &models, &err);
}

static int unload(void **state)
{
    (void)state;
    bz_models_free(&models);
    return 0;
}

static bz_bricks cut(int most, int from, int to)
{
    bz_bricks b = {.most = most};
    for (int i = from; i < to; i++)
        bz_bricks_add(&b, models.layers[i], MODELS[i]);
    return b;
}

static int64_t macs_of(const bz_brick *k)
{
    int64_t sum = 0;
    for (int i = 0; i < k->n; i++)
        bz_count_add(&sum, k->layers->layer[k->layer[i]].macs);
    return sum;
}

/* Layers and multiplications of the sequences are those of the model. */
static void test_coverage(void **unused)
{
    (void)unused;
    for (int most = 1; most < 400; most = most * 2 + 1) {
        bz_bricks b = cut(most, 0, N);
        for (int m = 0; m < N; m++) {
            int64_t macs = 0, wanted = 0;
            int layers = 0, all = 0;
            for (int i = 0; i < models.layers[m]->n; i++)
                if (models.layers[m]->layer[i].class != BZ_CONSTANT) {
                    all++;
                    wanted += models.layers[m]->layer[i].macs;
                }
            for (int i = 0; i < b.model[m].n; i++) {
                const bz_brick *k = &b.brick[b.model[m].brick[i]];
                assert_in_range(k->n, 1, most);
                layers += k->n;
                macs += macs_of(k);
            }
            assert_int_equal(layers, all);
            assert_int_equal(b.model[m].covered, all);
            assert_int_equal(macs, wanted);
        }
        bz_bricks_free(&b);
    }
}

/* Whether a layer goes on with the n layers before it: it reads what one of them makes and, but for constants, nothing else. */
static bool goes_on(const bz_layers *l, const int *layer, int n)
{
    const bz_layer *next = &l->layer[layer[n]];
    bool reads = false;
    if (next->n_bodies || next->node->function >= 0 || l->layer[layer[0]].n_bodies ||
        l->layer[layer[0]].node->function >= 0)
        return false;
    for (int k = 0; k < next->node->n_in; k++) {
        bz_value_id v = next->node->in[k];
        bool inside = false;
        if (v == BZ_NO_VALUE || l->constant[v])
            continue;
        for (int i = 0; i < n && !inside; i++)
            for (int out = 0; out < l->layer[layer[i]].node->n_out; out++)
                inside = inside || l->layer[layer[i]].node->out[out] == v;
        if (!inside)
            return false;
        reads = true;
    }
    return reads;
}

/* The next one of the model's sequences. */
static void check_next(const bz_bricks *b, int *i, const int *layer, int begin, int n)
{
    const bz_brick_model *m = &b->model[0];
    if (*i >= m->n)
        fail_msg("%d sequences, and no %d + %d", m->n, begin, n);
    const bz_brick *k = &b->brick[m->brick[*i]];
    assert_int_equal(m->at[*i], begin);
    assert_int_equal(k->n, n);
    for (int l = b->overlap ? n - 1 : 0; l < n; l++) /* of those that overlap, the one before had the others */
        assert_string_equal(m->layers->layer[layer[begin + l]].key, k->layers->layer[k->layer[l]].key);
    ++*i;
}

/* Which layers read which: all pairs are tried. */
static void check_reads(const bz_brick_model *m, const int *layer)
{
    int next = 0;
    for (int i = 0; i < m->covered; i++) {
        const bz_node *node = m->layers->layer[layer[i]].node;
        assert_int_equal(m->first[i], next);
        for (int k = 0; k < node->n_in; k++)
            for (int from = 0; from < m->covered; from++) {
                const bz_node *made = m->layers->layer[layer[from]].node;
                for (int out = 0; out < made->n_out; out++)
                    if (node->in[k] != BZ_NO_VALUE && node->in[k] == made->out[out])
                        assert_int_equal(m->read[next++], from);
            }
    }
    assert_int_equal(m->first[m->covered], next);
}

/* The layers that are cut: all but constants. To be freed. */
static int *layers_to_cut(const bz_layers *l, int *n)
{
    int *layer = calloc((size_t)l->n, sizeof *layer);
    *n = 0;
    for (int i = 0; i < l->n; i++)
        if (l->layer[i].class != BZ_CONSTANT)
            layer[(*n)++] = i;
    return layer;
}

/* Sequences are those that the header defines: all of up to so many layers, or, one after the other, as many layers as that where they go
 * on with each other, else one. Of the last layers of a model there are fewer. */
static void test_definition(void **unused)
{
    static const int MOST[] = {1, 2, 3, 5, 8, 100};
    (void)unused;
    for (int m = 0; m < N; m++) {
        const bz_layers *l = models.layers[m];
        int n, *layer = layers_to_cut(l, &n);
        for (size_t k = 0; k < sizeof MOST / sizeof *MOST; k++)
            for (int overlap = 0; overlap < 2; overlap++) {
                bz_bricks b = {.most = MOST[k], .overlap = overlap};
                int met = 0;
                bz_bricks_add(&b, l, MODELS[m]);
                for (int begin = 0; begin < n;) {
                    int longest = 1, wanted = MOST[k] < n - begin ? MOST[k] : n - begin;
                    while (longest < wanted && goes_on(l, &layer[begin], longest))
                        longest++;
                    for (int i = 1; i <= longest && overlap; i++)
                        check_next(&b, &met, layer, begin, i);
                    if (!overlap) {
                        longest = longest == wanted ? wanted : 1;
                        check_next(&b, &met, layer, begin, longest);
                    }
                    begin += overlap ? 1 : longest;
                }
                assert_int_equal(met, b.model[0].n);
                if (!k && !overlap)
                    check_reads(&b.model[0], layer);
                bz_bricks_free(&b);
            }
        free(layer);
    }
}

static int compare(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* What a model is cut into does not depend on the models beside it, nor on their order. */
static void test_decoys(void **unused)
{
    (void)unused;
    bz_bricks all = cut(3, 0, N), some = cut(3, 2, 4);
    for (int m = 2; m < 4; m++) {
        assert_int_equal(all.model[m].n, some.model[m - 2].n);
        for (int i = 0; i < all.model[m].n; i++)
            assert_string_equal(all.brick[all.model[m].brick[i]].key, some.brick[some.model[m - 2].brick[i]].key);
    }
    const char **keys = calloc((size_t)all.n, sizeof *keys);
    for (int i = 0; i < all.n; i++)
        keys[i] = all.brick[i].key;
    qsort(keys, (size_t)all.n, sizeof *keys, compare);
    for (int i = 1; i < all.n; i++)
        assert_string_not_equal(keys[i - 1], keys[i]);
    free(keys);
    bz_bricks_free(&all);
    bz_bricks_free(&some);
}

static void test_sums(void **unused)
{
    (void)unused;
    bz_bricks b = cut(2, 0, 2);
    double sum = 0, cost = 0;
    assert_true(isnan(bz_bricks_build(&b, 0, NULL)) && isnan(bz_bricks_cost(&b)));
    for (int i = 0; i < b.n; i++)
        cost += b.brick[i].seconds = 1 + i;
    for (int i = 0; i < b.model[0].n; i++)
        sum += 1 + b.model[0].brick[i];
    assert_true(bz_bricks_build(&b, 0, NULL) == sum && bz_bricks_cost(&b) == cost);
    assert_true(bz_bricks_alike(&b, 0, 0) == 1);
    int both = 0, either = b.n;
    for (int i = 0; i < b.n; i++)
        both += b.brick[i].models == 2;
    assert_true(bz_bricks_alike(&b, 0, 1) == (double)both / either);
    bz_bricks_free(&b);
}

/* Sequences that overlap: the cheapest of all covers, found by trying each; the longest path is no longer than the sum, and the sum where
 * there are no branches; rules count. */
static double cheapest(const bz_bricks *b, const bz_brick_model *m, int from)
{
    double best = from == m->covered ? 0 : INFINITY;
    for (int i = 0; i < m->n; i++)
        if (m->at[i] == from) {
            const bz_brick *k = &b->brick[m->brick[i]];
            best = fmin(best, k->seconds + cheapest(b, m, from + k->n));
        }
    return best;
}

static void test_covers(void **unused)
{
    (void)unused;
    uint32_t random = 1;
    for (int m = 0; m < N; m++) {
        bz_bricks one = cut(3, m, m + 1), all = {.most = 3, .overlap = true};
        bz_bricks_add(&all, models.layers[m], MODELS[m]);
        for (int i = 0; i < all.n; i++)
            all.brick[i].seconds = (double)((random = random * 1664525 + 1013904223) >> 16);
        for (int i = 0; i < one.n; i++)
            for (int k = 0; k < all.n; k++)
                if (!strcmp(one.brick[i].key, all.brick[k].key))
                    one.brick[i].seconds = all.brick[k].seconds;
        double sum = bz_bricks_build(&one, 0, NULL), least = bz_bricks_build(&all, 0, NULL);
        assert_true(least > 0 && least <= sum);
        if (all.model[0].covered < 24)
            assert_true(least == cheapest(&all, &all.model[0], 0));
        double path = bz_bricks_path(&one, 0, NULL);
        assert_true(path > 0 && path <= sum);
        assert_true(bz_bricks_path(&all, 0, NULL) <= least);
        const bz_brick_rules rules = {.each = 2, .kind = {{"conv", 0}}, .n_kinds = 1};
        double ruled = 0;
        for (int i = 0; i < one.model[0].n; i++) {
            const bz_brick *k = &one.brick[one.model[0].brick[i]];
            ruled += 2 + (strcmp(k->layers->layer[k->layer[0]].kind, "conv") != 0 ? k->seconds : 0);
        }
        assert_true(bz_bricks_build(&one, 0, &rules) == ruled);
        one.brick[one.model[0].brick[0]].seconds = NAN;
        assert_true(isnan(bz_bricks_build(&one, 0, NULL)) && isnan(bz_bricks_path(&one, 0, NULL)));
        bz_bricks_free(&one);
        bz_bricks_free(&all);
    }
}

/* A file holds the layers of its sequence, with the same keys, and writing it twice gives the same bytes. */
static void test_files(void **unused)
{
    (void)unused;
    bz_bricks b = cut(3, 0, N);
    int written = 0;
    for (int i = 0; i < b.n; i++) {
        bz_buf file = {0}, again = {0};
        const bz_brick *k = &b.brick[i];
        if (bz_bricks_save(&b, i, &file, &err)) {
            assert_int_equal(err.code, BZ_INCOMPLETE);
            assert_true(strlen(err.text) > 10);
            continue;
        }
        bz_model *model;
        bz_layers *layers = NULL;
        int met = 0;
        assert_int_equal(bz_bricks_save(&b, i, &again, &err), 0);
        assert_int_equal(file.len, again.len);
        assert_memory_equal(file.data, again.data, file.len);
        if (bz_model_parse(file.data, file.len, "sequence", &model, &err) ||
            bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err))
            fail_msg("%s: %s", k->key, err.text);
        for (int l = 0; l < layers->n; l++)
            if (layers->layer[l].class != BZ_CONSTANT) {
                assert_true(met < k->n);
                assert_string_equal(layers->layer[l].key, k->layers->layer[k->layer[met++]].key);
            }
        assert_int_equal(met, k->n);
        written++;
        bz_layers_free(layers);
        bz_model_free(model);
        bz_buf_free(&file);
        bz_buf_free(&again);
    }
    if (written < b.n * 9 / 10)
        fail_msg("%d of %d sequences are files", written, b.n);
    bz_bricks_free(&b);
}

/* The sequence of the model that has a layer. */
static const bz_brick *that_has(const bz_bricks *b, const bz_brick_model *m, int place)
{
    for (int i = 0; i < m->n; i++)
        if (place >= m->at[i] && place < m->at[i] + b->brick[m->brick[i]].n)
            return &b->brick[m->brick[i]];
    return NULL;
}

static bool convolves(const bz_brick *k)
{
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->layers->layer[k->layer[i]].kind, "conv"))
            return true;
    return false;
}

/* Bytes that the layer at a place reads of others, half of them for a side without a convolution; NAN where it reads none. */
static double bytes_before(const bz_bricks *b, const bz_brick_model *m, const int *layer, int place)
{
    const bz_layers *l = m->layers;
    const bz_node *node = l->layer[layer[place]].node;
    double bytes = NAN;
    for (int k = 0; k < node->n_in; k++)
        for (int from = 0; from < m->covered; from++) {
            const bz_node *made = l->layer[layer[from]].node;
            for (int out = 0; out < made->n_out; out++)
                if (node->in[k] != BZ_NO_VALUE && node->in[k] == made->out[out]) {
                    int sides = convolves(that_has(b, m, from)) + convolves(that_has(b, m, place));
                    bytes = (isnan(bytes) ? 0 : bytes) + 0.5 * sides * (double)bz_type_bytes(&l->types[node->in[k]]);
                }
        }
    return bytes;
}

/* Sequences behind products: only their first layer multiplies, and they end where the next one does, or is none that goes on. */
static void test_fusions(void **unused)
{
    (void)unused;
    for (int m = 0; m < N; m++) {
        const bz_layers *l = models.layers[m];
        int n, *layer = layers_to_cut(l, &n);
        bz_bricks b = {.most = 7, .fusions = true};
        bz_bricks_add(&b, l, MODELS[m]);
        const bz_brick_model *parts = &b.model[0];
        for (int i = 0, place = 0; i < parts->n; place += b.brick[parts->brick[i++]].n) {
            int length = 1;
            while (length < 7 && place + length < n && !l->layer[layer[place + length]].macs &&
                   goes_on(l, &layer[place], length))
                length++;
            assert_int_equal(parts->at[i], place);
            assert_int_equal(b.brick[parts->brick[i]].n, length);
            double found = parts->cut[i], wanted = n < 1000 ? bytes_before(&b, parts, layer, place) : found;
            assert_true(wanted == found || (isnan(wanted) && isnan(found)));
        }
        free(layer);
        bz_bricks_free(&b);
    }
}

/* Joints are two sequences that follow each other, and both as one; the line through what they take less as one is taken off for each cut. */
static void test_cuts(void **unused)
{
    (void)unused;
    static const double EACH = 0.125, BYTE = 1e-7;
    bz_bricks b = {.most = 7, .fusions = true};
    for (int m = 0; m < 2; m++)
        bz_bricks_add(&b, models.layers[m], MODELS[m]);
    int unique = b.n;
    double sum = 0, off = 0, path = 0;
    bz_brick_rules rules = {0};
    bz_bricks_join(&b, 8);
    assert_in_range(b.n_joints, 4, 8);
    for (int i = 0; i < b.n; i++)
        b.brick[i].seconds = i < unique ? 1.0 + i % 3 : (double)NAN;
    bz_bricks_price_cuts(&b, &rules.cuts);
    assert_int_equal(rules.cuts.n, 0);
    for (int i = 0; i < b.n_joints; i++) {
        const bz_brick_joint *j = &b.joint[i];
        const bz_brick *first = &b.brick[j->first], *second = &b.brick[j->second], *both = &b.brick[j->both];
        assert_true(convolves(first) && convolves(second));
        assert_true(first->count > 0 && second->count > 0 && both->count == 0);
        assert_int_equal(both->n, first->n + second->n);
        for (int k = 0; k < both->n; k++)
            assert_string_equal(both->layers->layer[both->layer[k]].key,
                                k < first->n ? first->layers->layer[first->layer[k]].key
                                             : second->layers->layer[second->layer[k - first->n]].key);
        assert_true(i == 0 || j->bytes >= j[-1].bytes);
        b.brick[j->both].seconds = first->seconds + second->seconds - EACH - BYTE * j->bytes;
    }
    bz_bricks_price_cuts(&b, &rules.cuts);
    assert_int_equal(rules.cuts.n, b.n_joints);
    assert_true(fabs(rules.cuts.each - EACH) < 1e-9 && fabs(rules.cuts.byte - BYTE) < 1e-15);
    assert_true(rules.cuts.spread < 1e-9);
    for (int i = 0; i < b.model[0].n; i++) {
        double taken_off = isnan(b.model[0].cut[i]) ? 0 : EACH + BYTE * b.model[0].cut[i];
        sum += b.brick[b.model[0].brick[i]].seconds;
        off += fmin(taken_off, b.brick[b.model[0].brick[i]].seconds);
    }
    assert_true(fabs(bz_bricks_build(&b, 0, &rules) - (sum - off)) < 1e-9 && off > 1);
    path = bz_bricks_path(&b, 0, &rules);
    assert_true(path > 0 && path < bz_bricks_path(&b, 0, NULL));
    bz_bricks_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_coverage), cmocka_unit_test(test_definition),
                                       cmocka_unit_test(test_decoys),   cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_covers),   cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_fusions),  cmocka_unit_test(test_cuts)};
    return cmocka_run_group_tests(tests, load, unload);
}
