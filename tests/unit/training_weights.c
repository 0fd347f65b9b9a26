/* What an iteration of training trains, and how: weights that are turned before their product, and shapes that nobody knows before. */
#include "tests/unit/perfdb_test.h"
#include "tests/unit/writer.h"
#include "training/training.h"

typedef struct {
    bz_model *model;
    bz_layers *layers;
    bz_training *training;
} iteration;

static bz_buf started(void)
{
    bz_buf g = {0};
    put_text(&g, GRAPH_NAME, "g");
    return g;
}

static void put_weight(bz_buf *g, const char *name, const char *dims, int n)
{
    float v[64] = {0};
    for (int i = 0; i < n; i++)
        v[i] = (float)(i + 1) / 8;
    put_message(g, GRAPH_INIT, a_raw_tensor(name, BZ_F32, dims, v, (size_t)n * sizeof *v));
}

static void put_along(bz_buf *g, const char *op, const char *in, const char *out, const char *name, const char *axes)
{
    bz_buf node = a_node(op, out, in, out), attr = an_attr(name, 7);
    put_dims(&attr, ATTR_INTS, axes);
    put_message(&node, NODE_ATTR, attr);
    put_message(g, GRAPH_NODE, node);
}

static int derive(iteration *t, bz_buf graph)
{
    bz_buf bytes = a_model(8, 17, graph);
    *t = (iteration){0};
    assert_ok(bz_model_parse(bytes.data, bytes.len, "m", &t->model, &err));
    bz_buf_free(&bytes);
    assert_ok(bz_layers_infer(t->model, &(bz_infer_options){.as_written = true}, &t->layers, &err));
    return bz_training_derive(t->layers, &(bz_training_options){0}, &t->training, &err);
}

static void end(iteration *t)
{
    if (t->training)
        bz_training_free(t->training);
    bz_layers_free(t->layers);
    bz_model_free(t->model);
}

/* Layers of the iteration with this operator, that read the value where one is named, as operand k where one is told. */
static int count_layers(const iteration *t, const char *op, const char *reads, int operand)
{
    const bz_layers *l = t->training->layers;
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const bz_node *node = l->layer[i].node;
        bool found = !reads;
        for (int k = 0; k < node->n_in && reads; k++)
            found |= node->in[k] >= 0 && (operand < 0 || operand == k) &&
                     !strcmp(t->training->model->values[node->in[k]].name, reads);
        n += found && !strcmp(node->op, op);
    }
    return n;
}

static const bz_weight *weight_of(const iteration *t, const char *name)
{
    for (int i = 0; i < t->training->n_weights; i++)
        if (!strcmp(t->training->weight[i].name, name))
            return &t->training->weight[i];
    return NULL;
}

/* y = x · W turned, as exporters write dense layers. Where only products read what is turned, the weights lie as they are: none is turned,
 * forward or backward, and their gradient has their shape. What somebody else reads as well is turned as it is written. */
static void test_turned_weights(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *output, *dims;
        bool turned;
    } CASES[] = {
        {"MatMul x,t y", "y", "4x3", true},
        {"MatMul x,t a; MatMul z,t b; Add a,b y", "y", "4x3", true},
        {"MatMul x,t a; Relu t b; ReduceSum b c; Add a,c y", "y", "4x3", false},
        {"MatMul t,u y", "y", "5x2", false},
        {"MatMul x,t y", "t", "5x3", false},
        {"Gemm x,t y", "y", "4x3", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        iteration t;
        bz_buf g = started();
        put_weight(&g, "w", "3x5", 15);
        put_weight(&g, "u", "3x2", 6);
        put_along(&g, "Transpose", "w", "t", "perm", "1x0");
        put_plain_nodes(&g, CASES[i].nodes);
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x5"));
        put_message(&g, GRAPH_INPUT, a_value("z", BZ_F32, "4x5"));
        if (strcmp(CASES[i].output, "t") == 0)
            put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, "4x3"));
        put_message(&g, GRAPH_OUTPUT, a_value(CASES[i].output, BZ_F32, CASES[i].dims));
        if (derive(&t, g))
            fail_msg("case %zu: %s", i, err.text);
        const bz_weight *w = weight_of(&t, "w");
        assert_non_null(w);
        assert_true(w->elements == 15 && w->gradient >= 0 && w->updated >= 0);
        const bz_type *gradient = &t.training->layers->types[w->gradient];
        assert_true(gradient->rank == 2 && gradient->dims[0] == 3 && gradient->dims[1] == 5);
        if ((count_layers(&t, "Transpose", "w", 0) == 0) != CASES[i].turned)
            fail_msg("case %zu: %s", i, CASES[i].turned ? "turned" : "not turned");
        if (CASES[i].turned) /* one product says that they lie the other way round */
            assert_int_equal(count_layers(&t, "FusedMatMul", "w", 1), 1 + (i == 1));
        end(&t);
    }
}

/* A layer between a weight and the loss has no derivative where data tell the shape of what it reads or makes, and there is no loss of such a
 * result. */
static void test_shapes_of_data(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *dims, *why;
    } CASES[] = {{"MatMul x,w a; Relu a y", "4x5", NULL},
                 {"MatMul x,w a; Slice a,from,to b; ReduceSum b c; Add c,x y", "4x5",
                  "its shapes depend on data: there is no derivative for that"},
                 {"MatMul x,w a; Reshape a,from b; ReduceSum b c; Add c,x y", "4x5",
                  "its shapes depend on data: there is no derivative for that"},
                 {"MatMul x,w a; Slice a,from,to y", "nxm", "the shape of the result to be trained depends on data"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        iteration t;
        bz_buf g = started();
        put_weight(&g, "w", "5x5", 25);
        put_plain_nodes(&g, CASES[i].nodes);
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x5"));
        put_message(&g, GRAPH_INPUT, a_value("from", BZ_I64, "2"));
        put_message(&g, GRAPH_INPUT, a_value("to", BZ_I64, "2"));
        put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, CASES[i].dims));
        int rc = derive(&t, g);
        if (CASES[i].why)
            assert_fails(rc, BZ_INCOMPLETE, CASES[i].why);
        else
            assert_int_equal(rc, 0);
        end(&t);
    }
}

/* A layer normalization that is written out runs as one layer in training, and so does its derivative. What only looks like one does not: a cube, a
 * scale that lies along another axis, a mean over another one. A difference that somebody else reads is divided by its root mean square, which is one
 * layer, too. */
static void test_written_norm(void **state)
{
    (void)state;
    static const struct {
        const char *axes, *power, *scale, *behind;
        bool norm, rms;
    } CASES[] = {{"1", "two", "s", "Identity h y", true, false},
                 {"1", "three", "s", "Identity h y", false, false},
                 {"1", "two", "r", "Identity h y", false, false},
                 {"0", "two", "s", "Identity h y", false, false},
                 {"1", "two", "s", "Add h,d y", false, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        iteration t;
        bz_buf g = started();
        char text[200];
        put_weight(&g, "w", "4x4", 16);
        put_weight(&g, "s", "4", 4);
        put_weight(&g, "r", "4x1", 4);
        put_weight(&g, "b", "4", 4);
        put_message(&g, GRAPH_INIT, a_raw_tensor("two", BZ_F32, "", &(float){2}, sizeof(float)));
        put_message(&g, GRAPH_INIT, a_raw_tensor("three", BZ_F32, "", &(float){3}, sizeof(float)));
        put_message(&g, GRAPH_INIT, a_raw_tensor("e", BZ_F32, "", &(float){1e-3F}, sizeof(float)));
        put_plain_nodes(&g, "MatMul x,w a");
        put_along(&g, "ReduceMean", "a", "m", "axes", CASES[i].axes);
        snprintf(text, sizeof text, "Sub a,m d; Pow d,%s q", CASES[i].power);
        put_plain_nodes(&g, text);
        put_along(&g, "ReduceMean", "q", "v", "axes", CASES[i].axes);
        snprintf(text, sizeof text, "Add v,e f; Sqrt f k; Div d,k n; Mul %s,n o; Add o,b h; %s", CASES[i].scale,
                 CASES[i].behind);
        put_plain_nodes(&g, text);
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x4"));
        put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, "4x4"));
        if (derive(&t, g))
            fail_msg("case %zu: %s", i, err.text);
        int norm = CASES[i].norm, rms = CASES[i].rms;
        if (count_layers(&t, "LayerNormalization", "a", 0) != norm ||
            count_layers(&t, "LayerNormalizationGrad", "a", 1) != norm ||
            count_layers(&t, "SimplifiedLayerNormalization", "d", 0) != rms ||
            count_layers(&t, "SimplifiedLayerNormalizationGrad", "d", 1) != rms ||
            count_layers(&t, "Sqrt", NULL, -1) != !(norm || rms))
            fail_msg("case %zu: %s", i, norm || rms ? "written out" : "one layer");
        const char *const weights[] = {"w", CASES[i].scale, "b"};
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
            assert_true(weight_of(&t, weights[k]) && weight_of(&t, weights[k])->gradient >= 0);
        end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turned_weights), cmocka_unit_test(test_shapes_of_data),
                                       cmocka_unit_test(test_written_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
