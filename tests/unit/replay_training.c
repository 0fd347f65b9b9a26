/* The plan of an iteration of training: what makes each value, what calls of recurrent layers make, and what is kept for the next
 * iteration, of several models and all optimizers. */
#include "replay/replay.h"
#include "tests/unit/perfdb_test.h"
#include "tests/unit/writer.h"
#include "training/training.h"

static const struct {
    const char *path;
    int64_t batch;
} MODELS[] = {
    {BENANZA_SOURCE "/models/lstm.onnx", 2},
    {BENANZA_SOURCE "/tests/cases/layers-train-inside/steps.onnx", 2},
    {BENANZA_SOURCE "/tests/cases/layers-train/small.onnx", 2},
    {BENANZA_SOURCE "/tests/cases/replay-train/trained.onnx", 3},
};

typedef struct {
    bz_models models;
    bz_plan *plan;
    bz_replay_plan *replay;
    const bz_training *training;
} iteration;

static void make(iteration *t, const char *path, int64_t batch, bz_optimizer optimizer, bool fused)
{
    const char *name = "m";
    *t = (iteration){0};
    if (bz_models_load(&path, 1, &(bz_infer_options){.batch = batch, .as_written = true}, &t->models, &err) ||
        bz_training_replace(&t->models, 0, &(bz_training_options){.optimizer = optimizer, .fused = fused}, &err))
        fail_msg("%s", err.text);
    t->training = t->models.layers[0]->training;
    t->plan = bz_plan_of(&(bz_plan_options){0}, t->models.layers, &name, 1);
    bz_replay_input in = {
        .model = name, .layers = t->models.layers[0], .plan = t->plan, .rate = 0.125, .setting = {1, BZ_CACHE_HOT, ""}};
    if (bz_replay_make(&in, &t->replay, &err))
        fail_msg("%s: %s", path, err.text);
}

static void end(iteration *t)
{
    bz_replay_free(t->replay);
    bz_plan_free(t->plan);
    bz_models_free(&t->models);
}

/* The plan's number of a value of the model; -1: the plan has none of this name. */
static int number_of(const bz_replay_plan *p, const char *name)
{
    for (int k = 0; *name && k < p->n_values; k++)
        if (!strcmp(p->value[k].name, name))
            return k;
    return -1;
}

static const char *name_of(const iteration *t, bz_value_id v)
{
    return v < 0 ? "" : t->training->model->values[v].name;
}

/* A value is there before a step reads it, in this order: it comes from outside, or an earlier step makes it. */
static void values_are_made_before_they_are_read(bz_replay_plan *p, int streams)
{
    bool *made = bz_zeroed((size_t)p->n_values + 1, sizeof *made);
    bz_replay_schedule(p, streams);
    for (int v = 0; v < p->n_values; v++)
        made[v] = p->value[v].source != BZ_VALUE_COMPUTED;
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[p->order[i]];
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k] >= 0 && !made[s->in[k]])
                fail_msg("on %d streams step %d '%s' reads %d '%s', which nothing makes", streams, i, s->name, s->in[k],
                         p->value[s->in[k]].name);
        made[s->out] = true;
        for (int k = 0; k < s->n_more; k++)
            made[s->more[k]] = true;
    }
    free(made);
}

/* The iteration's number becomes itself and 1. */
static void counts_on(const bz_replay_plan *p, int from, int to)
{
    int found = 0;
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        if (s->out != to)
            continue;
        found++;
        assert_int_equal(s->kind, BZ_STEP_LOOP);
        assert_int_equal(s->n_in, 1);
        assert_int_equal(s->in[0], from);
        assert_int_equal(s->loop->kind, BZ_LOOP_UNARY);
        assert_string_equal(s->loop->function, "linear");
        assert_true(s->loop->alpha == 1 && s->loop->beta == 1);
    }
    assert_int_equal(found, 1);
}

/* Kept values are the model's inputs that have another value in the next iteration; rate and number begin as asked for. */
static void kept_values_go_on(const iteration *t)
{
    const bz_training *m = t->training;
    const bz_replay_plan *p = t->replay;
    int weights = 0;
    for (int v = 0; v < m->model->n_values; v++) {
        int k = number_of(p, name_of(t, v));
        if (k < 0)
            continue;
        const bz_replay_value *value = &p->value[k];
        if (m->next[v] >= 0 || v == m->step || v == m->rate)
            assert_int_equal(value->source, BZ_VALUE_KEPT);
        if (v == m->step) {
            assert_true(value->offset == 1 && value->next > 0);
            counts_on(p, k, value->next - 1);
        } else if (v == m->rate) {
            assert_true(value->offset == 0.125f && value->next == 0);
        } else if (m->next[v] >= 0 && number_of(p, name_of(t, m->next[v])) >= 0) {
            int next = value->next - 1;
            assert_in_range(next, 0, p->n_values - 1);
            assert_string_equal(p->value[next].name, name_of(t, m->next[v]));
            assert_int_equal(bz_extent_count(p->value[next].dim), bz_extent_count(value->dim));
            assert_int_equal(p->value[next].dtype, value->dtype);
        } else {
            assert_int_equal(value->next, 0);
        }
    }
    for (int i = 0; i < m->n_weights; i++)
        if (m->weight[i].updated >= 0) {
            int k = number_of(p, m->weight[i].name);
            assert_true(k >= 0 && p->value[k].next > 0);
            assert_string_equal(p->value[p->value[k].next - 1].name, name_of(t, m->weight[i].updated));
            weights++;
        }
    assert_true(weights > 0);
    assert_true(m->loss < 0 ? p->loss == 0 : !strcmp(p->value[p->loss - 1].name, name_of(t, m->loss)));
}

static void test_iterations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        for (int o = 0; o < BZ_OPTIMIZERS; o++) {
            iteration t;
            make(&t, MODELS[i].path, MODELS[i].batch, (bz_optimizer)o, o % 2);
            for (int streams = 4; streams > 0; streams--)
                values_are_made_before_they_are_read(t.replay, streams);
            kept_values_go_on(&t);
            end(&t);
        }
}

enum { SEQ = 3, BATCH = 2, INPUT = 4, HIDDEN = 5 };

static void put_attr_text(bz_buf *node, const char *name, const char *text)
{
    bz_buf attr = an_attr(name, 3);
    put_text(&attr, ATTR_S, text);
    put_message(node, NODE_ATTR, attr);
}

static void put_recurrent(bz_buf *g, const char *op, const char *name, const char *in, const char *out, bool both,
                          bool lbr)
{
    bz_buf node = a_node(op, name, in, out);
    put_message(&node, NODE_ATTR, an_int_attr("hidden_size", HIDDEN));
    if (both)
        put_attr_text(&node, "direction", "bidirectional");
    if (lbr)
        put_message(&node, NODE_ATTR, an_int_attr("linear_before_reset", 1));
    put_message(g, GRAPH_NODE, node);
}

static void put_weight(bz_buf *g, const char *name, int a, int b, int c)
{
    char dims[64];
    size_t n = (size_t)a * (size_t)b * (size_t)(c ? c : 1) * sizeof(float);
    float *v = bz_zeroed(n, 1);
    for (size_t i = 0; i < n / sizeof *v; i++)
        v[i] = (float)i / 16;
    snprintf(dims, sizeof dims, c ? "%dx%dx%d" : "%dx%d", a, b, c);
    put_message(g, GRAPH_INIT, a_raw_tensor(name, BZ_F32, dims, v, n));
    free(v);
}

/* An encoder, whose last states a decoder begins with: so both layers have gradients of all that they take. */
static void write_recurrent(const char *path, const char *op, int gates, bool both, bool lbr)
{
    bool lstm = gates == 4;
    int dirs = both ? 2 : 1;
    bz_buf g = {0};
    put_text(&g, GRAPH_NAME, "g");
    put_recurrent(&g, op, "encoder", "x w1 r1 b1", lstm ? "y1 h1 c1" : "y1 h1", both, lbr);
    put_recurrent(&g, op, "decoder", lstm ? "z w2 r2 b2 _ h1 c1" : "z w2 r2 b2 _ h1", "y2", both, lbr);
    for (int i = 0; i < 2; i++) {
        char w[] = {'w', (char)('1' + i), 0}, r[] = {'r', w[1], 0}, b[] = {'b', w[1], 0};
        put_weight(&g, w, dirs, gates * HIDDEN, INPUT);
        put_weight(&g, r, dirs, gates * HIDDEN, HIDDEN);
        put_weight(&g, b, dirs, 2 * gates * HIDDEN, 0);
    }
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "3x2x4"));
    put_message(&g, GRAPH_INPUT, a_value("z", BZ_F32, "3x2x4"));
    put_message(&g, GRAPH_OUTPUT, a_value("y2", BZ_F32, both ? "3x2x2x5" : "3x1x2x5"));
    bz_buf bytes = a_model(8, 17, g);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(bytes.data, 1, bytes.len, f) == bytes.len && !fclose(f));
    bz_buf_free(&bytes);
}

/* Where an element of a value comes from: the value and the element that the last copy into it brought. */
static void copied_from(const bz_replay_plan *p, int value, int64_t element, int *from, int64_t *at)
{
    *from = -1;
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        const bz_replay_loop *l = s->loop;
        if (s->out != value || s->kind != BZ_STEP_LOOP || l->kind != BZ_LOOP_COPY)
            continue;
        int64_t k[BZ_PROBLEM_RANK] = {0}, n = 1;
        for (int d = 0; d < l->rank; d++)
            n *= l->dim[d];
        for (int64_t e = 0; e < n; e++) {
            int64_t x = l->from, y = l->to;
            for (int d = 0; d < l->rank; d++)
                x += k[d] * l->stride[0][d], y += k[d] * l->stride[1][d];
            if (y == element)
                *from = s->in[0], *at = x;
            for (int d = l->rank; d-- && ++k[d] == l->dim[d];)
                k[d] = 0;
        }
    }
}

/* ONNX's gates are i o f c of an LSTM and z r h of a GRU; a call's are i f c o and z r h, and a bias behind the last of a GRU whose
 * reset stands behind the product. */
static int64_t gate_in_onnx(int gates, int64_t gate)
{
    return gates == 4 ? (int64_t) "\0\2\3\1"[gate] : gate;
}

/* A call's weights [direction, k, gate, hidden] and ONNX's [direction, gate · hidden, k] hold the same, one made of the other. */
static void same_weights(const bz_replay_plan *p, int own, int onnx, bool back, int dirs, int gates, int64_t inner)
{
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t g = 0; g < gates; g++)
                for (int64_t j = 0; j < HIDDEN; j++) {
                    int64_t mine = ((d * inner + k) * gates + g) * HIDDEN + j, at = -1,
                            theirs = ((d * gates + gate_in_onnx(gates, g)) * HIDDEN + j) * inner + k;
                    int from;
                    copied_from(p, back ? onnx : own, back ? theirs : mine, &from, &at);
                    assert_int_equal(from, back ? own : onnx);
                    assert_int_equal(at, back ? mine : theirs);
                }
}

/* Both of ONNX's biases have the gradient of the call's one; where a GRU's reset stands between them the last gate has two. */
static void same_biases(const bz_replay_plan *p, int own, int onnx, int dirs, int gates, bool lbr)
{
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t half = 0; half < 2; half++)
            for (int64_t g = 0; g < gates; g++)
                for (int64_t j = 0; j < HIDDEN; j++) {
                    int64_t mine = lbr && half && g == 2 ? 3 : g, at = -1;
                    int from;
                    copied_from(p, onnx, ((d * 2 + half) * gates + gate_in_onnx(gates, g)) * HIDDEN + j, &from, &at);
                    assert_int_equal(from, own);
                    assert_int_equal(at, (d * (gates + lbr) + mine) * HIDDEN + j);
                }
}

/* A step that makes the value, of this kind of loop; NULL: there is none. */
static const bz_replay_step *loop_of(const bz_replay_plan *p, int value, bz_loop_kind kind)
{
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].out == value && p->step[i].kind == BZ_STEP_LOOP && p->step[i].loop->kind == kind)
            return &p->step[i];
    return NULL;
}

/* A call's bias is the sum of ONNX's two. Of a GRU whose reset stands between them the last gate has each by itself, beside zeros. */
static void summed_biases(const bz_replay_plan *p, int own, int onnx, int dirs, int gates, bool lbr)
{
    const bz_replay_step *sum = loop_of(p, own, BZ_LOOP_BINARY);
    assert_non_null(sum);
    assert_string_equal(sum->loop->function, "add");
    for (int half = 0; half < 2; half++)
        for (int64_t d = 0; d < dirs; d++)
            for (int64_t g = 0; g < gates + lbr; g++)
                for (int64_t j = 0; j < HIDDEN; j++) {
                    bool none = lbr && g == (half ? 2 : 3);
                    int64_t gate = gate_in_onnx(gates, g == 3 && lbr ? 2 : g), at = -1;
                    int from;
                    copied_from(p, sum->in[half], (d * (gates + lbr) + g) * HIDDEN + j, &from, &at);
                    assert_int_equal(from, none ? -1 : onnx);
                    if (!none)
                        assert_int_equal(at, ((d * 2 + half) * gates + gate) * HIDDEN + j);
                    else
                        assert_non_null(loop_of(p, sum->in[half], BZ_LOOP_FILL));
                }
}

/* A call's states [step, batch, direction · hidden] and ONNX's [step, direction, batch, hidden]. In one direction they are the same. */
static void same_states(const bz_replay_plan *p, int own, int onnx, bool back, int dirs)
{
    if (dirs == 1) {
        assert_int_equal(own, onnx);
        return;
    }
    for (int64_t t = 0; t < SEQ; t++)
        for (int64_t n = 0; n < BATCH; n++)
            for (int64_t d = 0; d < dirs; d++)
                for (int64_t j = 0; j < HIDDEN; j++) {
                    int64_t mine = ((t * BATCH + n) * dirs + d) * HIDDEN + j, at = -1,
                            theirs = ((t * dirs + d) * BATCH + n) * HIDDEN + j;
                    int from;
                    copied_from(p, back ? onnx : own, back ? theirs : mine, &from, &at);
                    assert_int_equal(from, back ? own : onnx);
                    assert_int_equal(at, back ? mine : theirs);
                }
}

/* The call's operand or result in this role; results are `more` and at last `out`. */
static int in_role(const bz_replay_step *s, bz_role role, bool of_result)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(s->problem, list), results = 0;
    for (int i = 0; i < n; i++) {
        if (list[i].role == role && list[i].result == of_result)
            return !of_result ? s->in[i] : results < s->n_more ? s->more[results] : s->out;
        results += list[i].result;
    }
    fail_msg("no operand %s", bz_role_name(role));
    return -1;
}

static const bz_layer *layer_of(const iteration *t, const bz_replay_step *s)
{
    return &t->models.layers[0]->layer[s->layer];
}

/* A layer's operand or result in the plan. */
static int in_layer(const iteration *t, bz_value_id v)
{
    int k = number_of(t->replay, name_of(t, v));
    if (k < 0)
        fail_msg("'%s' is not in the plan", name_of(t, v));
    return k;
}

static void test_recurrent(void **state)
{
    static const struct {
        const char *op;
        int gates;
        bool lbr;
    } KINDS[] = {{"LSTM", 4, false}, {"GRU", 3, false}, {"GRU", 3, true}, {"RNN", 1, false}};
    const char *path = below(state, "m.onnx");
    for (int i = 0; i < 8; i++) {
        int gates = KINDS[i / 2].gates, dirs = 1 + i % 2, seen = 0;
        iteration t;
        write_recurrent(path, KINDS[i / 2].op, gates, i % 2, KINDS[i / 2].lbr);
        make(&t, path, 0, BZ_SGD, true);
        const bz_replay_plan *p = t.replay;
        values_are_made_before_they_are_read(t.replay, 1);
        kept_values_go_on(&t);
        for (int k = 0; k < p->n_steps; k++) {
            const bz_replay_step *s = &p->step[k];
            if (s->kind != BZ_STEP_CALL || !bz_problem_has(s->problem, BZ_TRAIT_RECURRENT))
                continue;
            const bz_layer *l = layer_of(&t, s);
            const bz_node *node = l->node;
            seen++;
            if (!bz_problem_has(s->problem, BZ_TRAIT_GRADIENT)) {
                same_weights(p, in_role(s, BZ_ROLE_W, false), in_layer(&t, node->in[1]), false, dirs, gates, INPUT);
                same_weights(p, in_role(s, BZ_ROLE_R, false), in_layer(&t, node->in[2]), false, dirs, gates, HIDDEN);
                summed_biases(p, in_role(s, BZ_ROLE_BIAS, false), in_layer(&t, node->in[3]), dirs, gates,
                              KINDS[i / 2].lbr);
                assert_int_equal(in_role(s, BZ_ROLE_X, false), in_layer(&t, node->in[0]));
                if (node->out[0] >= 0 && number_of(p, name_of(&t, node->out[0])) >= 0)
                    same_states(p, s->out, in_layer(&t, node->out[0]), true, dirs);
                continue;
            }
            same_weights(p, in_role(s, BZ_ROLE_W, true), in_layer(&t, node->out[1]), true, dirs, gates, INPUT);
            same_weights(p, in_role(s, BZ_ROLE_R, true), in_layer(&t, node->out[2]), true, dirs, gates, HIDDEN);
            same_biases(p, in_role(s, BZ_ROLE_BIAS, true), in_layer(&t, node->out[3]), dirs, gates, KINDS[i / 2].lbr);
            if (node->n_out > 4 && node->out[4] >= 0)
                assert_int_equal(in_role(s, BZ_ROLE_H, true), in_layer(&t, node->out[4]));
            if (node->n_out > 5 && node->out[5] >= 0)
                assert_int_equal(in_role(s, BZ_ROLE_C, true), in_layer(&t, node->out[5]));
            int first = gates == 4 ? 9 : 8; /* gradients of all states, of the last one, of the last cell */
            if (first < node->n_in && node->in[first] >= 0)
                same_states(p, in_role(s, BZ_ROLE_DY, false), in_layer(&t, node->in[first]), false, dirs);
            if (first + 1 < node->n_in && node->in[first + 1] >= 0)
                assert_int_equal(in_role(s, BZ_ROLE_DH, false), in_layer(&t, node->in[first + 1]));
            if (gates == 4 && first + 2 < node->n_in && node->in[first + 2] >= 0)
                assert_int_equal(in_role(s, BZ_ROLE_DC, false), in_layer(&t, node->in[first + 2]));
        }
        assert_int_equal(seen, 4);
        end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_iterations),
                                       cmocka_unit_test_setup_teardown(test_recurrent, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
