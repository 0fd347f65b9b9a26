/* What an iteration of training needs and does, by formulas over the sizes of dense networks; and the largest batch that fits, by trying. */
#include "chance.h"
#include "model_lines.h"
#include "training/training.h"

enum { ROUNDS = 40, LAYERS = 4 };

typedef struct dense {
    int batch, layers, n[LAYERS + 1];
    bz_optimizer optimizer;
    bz_dtype dtype; /* BZ_UNDEFINED: f32 */
    bool fused;
} dense;

static dense draw_dense(void)
{
    dense d = {.batch = 2 + (int)chance(6),
               .layers = 2 + (int)chance(LAYERS - 1),
               .optimizer = (bz_optimizer)chance(BZ_OPTIMIZERS),
               .fused = chance(2)};
    for (int i = 0; i <= d.layers; i++)
        d.n[i] = 3 + (int)chance(30);
    return d;
}

/* Dense layers with a ReLU between two of them, and classes behind the last. */
static bz_training *derive(const dense *d, subject *s)
{
    char values[256], nodes[512] = "", from[16] = "X";
    bz_error err;
    bz_training *t = NULL;
    bz_buf g = {0};
    size_t at = 0;
    int n = snprintf(values, sizeof values, "X=%dx%d", d->batch, d->n[0]);
    for (int i = 0; i < d->layers; i++) {
        bool last = i == d->layers - 1;
        n += snprintf(values + n, sizeof values - (size_t)n, " w%d=%dx%d b%d=%d", i, d->n[i], d->n[i + 1], i,
                      d->n[i + 1]);
        at += (size_t)snprintf(nodes + at, sizeof nodes - at, "Gemm %s,w%d,b%d %s", from, i, i, last ? "y" : "");
        if (!last)
            at += (size_t)snprintf(nodes + at, sizeof nodes - at, "a%d; Relu a%d r%d; ", i, i, i);
        snprintf(from, sizeof from, "r%d", i);
    }
    char out[32];
    snprintf(out, sizeof out, "%dx%d", d->batch, d->n[d->layers]);
    put_values(&g, values);
    put_nodes(&g, nodes);
    put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, out));
    *s = (subject){.bytes = a_model(9, 20, g)};
    if (bz_model_parse(s->bytes.data, s->bytes.len, "test", &s->model, &err) ||
        bz_layers_infer(s->model, &(bz_infer_options){.as_written = true}, &s->layers, &err) ||
        bz_training_derive(s->layers, &(bz_training_options){.optimizer = d->optimizer, .fused = d->fused}, &t, &err))
        fail_msg("%s: %s", nodes, err.text);
    return t;
}

static void by_sizes(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        dense d = draw_dense();
        subject s;
        bz_training *t = derive(&d, &s);
        bz_memory m;
        bz_phase_cost cost[BZ_TRAIN_PHASES];
        int64_t weights = 0, products = 0, kept = 0, sum = 0;
        for (int i = 0; i < d.layers; i++) {
            weights += 4 * (d.n[i] + 1) * d.n[i + 1];
            products += (int64_t)d.batch * d.n[i] * d.n[i + 1];
            kept += i < d.layers - 1 ? 4 * d.batch * d.n[i + 1] : 0;
        }
        bz_memory_predict(t, &m);
        bz_training_costs(t, cost);
        assert_int_equal(m.most[BZ_HELD_WEIGHT], weights);
        assert_int_equal(m.most[BZ_HELD_GRADIENT], weights);
        assert_int_equal(m.most[BZ_HELD_STATE], bz_optimizer_states(d.optimizer) * weights);
        assert_int_equal(m.most[BZ_HELD_INPUT], 4 * d.batch * d.n[0] + 8 * d.batch + 12); /* targets; rate and step */
        assert_int_equal(m.kept, kept);
        for (int c = 0; c < BZ_HELD_CLASSES; c++) {
            sum += m.at_peak[c];
            assert_true(m.at_peak[c] <= m.most[c]);
        }
        assert_int_equal(sum, m.peak);
        int64_t most = 0;
        for (int p = 0; p < BZ_TRAIN_PHASES; p++)
            most = m.phase_peak[p] > most ? m.phase_peak[p] : most;
        assert_int_equal(most, m.peak);
        assert_int_equal(t->n_weights, 2 * d.layers);

        /* going back each product is two, but for the gradient of the data, which nobody wants */
        assert_int_equal(cost[BZ_TRAIN_FORWARD].macs, products);
        assert_int_equal(cost[BZ_TRAIN_BACKWARD].macs, 2 * products - (int64_t)d.batch * d.n[0] * d.n[1]);
        assert_int_equal(cost[BZ_TRAIN_UPDATE].macs, 0);
        assert_int_equal(cost[BZ_TRAIN_FORWARD].layers, 2 * d.layers - 1);
        assert_int_equal(cost[BZ_TRAIN_UPDATE].layers, d.fused ? 1 : 2 * d.layers);
        /* reads weight, gradient, states; writes weight and states; and rate and step, for each call */
        assert_int_equal(cost[BZ_TRAIN_UPDATE].bytes,
                         weights * (3 + 2 * bz_optimizer_states(d.optimizer)) + 12 * cost[BZ_TRAIN_UPDATE].layers);
        bz_training_free(t);
        end(&s);
    }
}

static int64_t peak_of(const char *path, int64_t batch, int parts)
{
    bz_memory_fit fit = {.parts = parts};
    bz_error err;
    assert_int_equal(
        bz_training_fit(path, &(bz_infer_options){.batch = batch}, &(bz_training_options){0}, 1 << 20, &fit, 1, &err),
        0);
    return fit.peak;
}

/* So many fit, and one more does not. */
static void by_trying(void **state)
{
    (void)state;
    const char *path = BENANZA_SOURCE "/tests/cases/layers-train-memory/dynamic.onnx";
    for (int parts = 1; parts < 4; parts += 2)
        for (int64_t batch = 1; batch < 12; batch += 5) {
            bz_memory_fit fit = {.parts = parts};
            bz_error err;
            int64_t memory = peak_of(path, batch, parts) + chance(64);
            assert_int_equal(bz_training_fit(path, &(bz_infer_options){.batch = 2}, &(bz_training_options){0}, memory,
                                             &fit, 1, &err),
                             0);
            assert_true(fit.batch >= batch && peak_of(path, fit.batch, parts) <= memory &&
                        peak_of(path, fit.batch + 1, parts) > memory);
            assert_int_equal(fit.peak, peak_of(path, 2, parts));
        }
    bz_memory_fit none = {.parts = 1};
    bz_error err;
    assert_int_equal(bz_training_fit(path, &(bz_infer_options){.batch = 2}, &(bz_training_options){0},
                                     peak_of(path, 1, 1) - 1, &none, 1, &err),
                     0);
    assert_int_equal(none.batch, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_sizes), cmocka_unit_test(by_trying)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
