/* What a model has in all: parameters wherever they are kept, layers and the unique ones among them; and what is known of results
 * whose rank nobody knows, and of equations that only call their letters otherwise. */
#include "modelproc/modelproc.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct {
    bz_buf bytes;
    bz_model *model;
    bz_layers *layers;
} subject;

static subject infer(bz_buf graph)
{
    subject s = {.bytes = a_model(10, 21, graph)};
    bz_error err = {0};
    if (bz_model_parse(s.bytes.data, s.bytes.len, "test", &s.model, &err) ||
        bz_layers_infer(s.model, &(bz_infer_options){0}, &s.layers, &err))
        fail_msg("%s", err.text);
    return s;
}

static void end(subject *s)
{
    bz_layers_free(s->layers);
    bz_model_free(s->model);
    bz_buf_free(&s->bytes);
}

static const uint8_t ZEROS[1024];

static void put_weight(bz_buf *graph, const char *name, bz_dtype dtype, const char *dims, int64_t elements, bool node)
{
    size_t bytes = (size_t)(elements * bz_dtype_bits(dtype) + 7) / 8;
    assert_true(bytes <= sizeof ZEROS);
    bz_buf tensor = a_raw_tensor(name, dtype, dims, ZEROS, bytes);
    if (!node) {
        put_message(graph, GRAPH_INIT, tensor);
        return;
    }
    bz_buf constant = a_node("Constant", "", "", name), attr = an_attr("value", 4);
    put_message(&attr, ATTR_T, tensor);
    put_message(&constant, NODE_ATTR, attr);
    put_message(graph, GRAPH_NODE, constant);
}

/* Each model has the weights that its line names, once as initializers and once as Constant nodes. */
static void weights_count_wherever_they_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *about;
        struct {
            const char *name;
            bz_dtype dtype;
            const char *dims;
            int64_t elements;
        } weight[5];
        bz_dtype input;
        const char *nodes;
        int64_t parameters;
    } CASES[] = {
        {"a product", {{"w", BZ_F32, "4x5", 20}}, BZ_F32, "MatMul x,w y", 20},
        {"shared", {{"w", BZ_F32, "4x4", 16}}, BZ_F32, "MatMul x,w a; MatMul a,w y", 16},
        {"behind what is folded", {{"w", BZ_F32, "5x4", 20}}, BZ_F32, "Identity w v; Transpose v t; MatMul x,t y", 20},
        {"integers", {{"w", BZ_U8, "4x5", 20}}, BZ_U8, "MatMulInteger x,w y", 20},
        {"quantized",
         {{"w", BZ_I8, "4x5", 20}, {"s", BZ_F32, "", 1}, {"z", BZ_I8, "", 1}},
         BZ_F32,
         "DequantizeLinear w,s,z d; MatMul x,d y",
         20},
        {"quantized by column",
         {{"w", BZ_I8, "5x4", 20}, {"s", BZ_F32, "4", 4}, {"z", BZ_I8, "4", 4}},
         BZ_F32,
         "DequantizeLinear w,s,z d; Transpose d t; MatMul x,t y",
         20},
        {"of 4 bits",
         {{"w", BZ_I4, "4x5", 20}, {"s", BZ_F32, "", 1}},
         BZ_F32,
         "DequantizeLinear w,s d; MatMul x,d y",
         20},
        {"of 16 bits",
         {{"w", BZ_U16, "4x5", 20}, {"s", BZ_F32, "", 1}},
         BZ_F32,
         "DequantizeLinear w,s d; MatMul x,d y",
         20},
        {"a bias of 32 bits",
         {{"w", BZ_I8, "4x5", 20}, {"s", BZ_F32, "", 1}, {"b", BZ_I32, "5", 5}},
         BZ_F32,
         "DequantizeLinear w,s d; DequantizeLinear b,s c; Gemm x,d,c y",
         25},
        {"no settings", {{"shape", BZ_I64, "2", 2}}, BZ_F32, "Reshape x,shape y", 0},
        {"no single numbers", {{"two", BZ_F32, "", 1}}, BZ_F32, "Mul x,two y", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int node = 0; node < 2; node++) {
            bz_buf g = {0};
            put_message(&g, GRAPH_INPUT, a_value("x", CASES[i].input, "4x4"));
            for (size_t k = 0; k < 5 && CASES[i].weight[k].name; k++)
                put_weight(&g, CASES[i].weight[k].name, CASES[i].weight[k].dtype, CASES[i].weight[k].dims,
                           CASES[i].weight[k].elements, node);
            put_plain_nodes(&g, CASES[i].nodes);
            subject s = infer(g);
            for (int fold = 0; fold < 2; fold++) {
                bz_totals t;
                bz_totals_make(s.layers, fold, &t);
                if (t.params != CASES[i].parameters)
                    fail_msg("%s, as %s: %lld parameters, not %lld", CASES[i].about, node ? "nodes" : "initializers",
                             (long long)t.params, (long long)CASES[i].parameters);
            }
            end(&s);
        }
}

/* A branch has more layers of other kinds than the graph around it: of those that are counted each is counted once. */
static void unique_ones_are_among_the_layers(void **state)
{
    (void)state;
    bz_buf g = {0}, node = a_node("If", "choice", "cond", "y");
    for (int b = 0; b < 2; b++) {
        bz_buf branch = {0}, out = {0}, attr = an_attr(b ? "else_branch" : "then_branch", 5);
        put_plain_nodes(&branch, b ? "Tanh x a; Sin a b; Identity k c; Neg c d; Mul b,d r"
                                   : "Cos x a; Exp a b; Abs b c; Cos c r");
        put_text(&out, 1, "r");
        put_message(&branch, GRAPH_OUTPUT, out);
        put_message(&attr, ATTR_G, branch);
        put_message(&node, NODE_ATTR, attr);
    }
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
    put_message(&g, GRAPH_INPUT, a_value("cond", BZ_BOOL, ""));
    put_weight(&g, "k", BZ_F32, "4", 4, false);
    put_message(&g, GRAPH_NODE, node);
    subject s = infer(g);
    for (int fold = 0; fold < 2; fold++) {
        bz_totals t;
        bz_unique u = {0};
        bz_totals_make(s.layers, fold, &t);
        bz_unique_add(&u, s.layers, 0, fold ? bz_layer_is_not_constant : NULL);
        assert_int_equal(t.layers, fold ? 8 : 10);
        assert_int_equal(t.inside, t.layers - 1);
        assert_int_equal(u.n_layers, t.layers);
        assert_int_equal(u.n, t.unique);
        assert_int_equal(t.unique, t.layers - 1); /* Cos twice */
        bz_unique_free(&u);
    }
    end(&s);
}

/* u has half floats and as many dimensions as the data say. */
static void types_stay_where_ranks_are_lost(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        bz_dtype dtype;
    } CASES[] = {
        {"Split u o", BZ_F16},        {"CastLike x,u o", BZ_F16},     {"CastLike u,x o", BZ_F32},
        {"Relu u o", BZ_F16},         {"Concat u,u o", BZ_F16},       {"Max u,u o", BZ_F16},
        {"Min u,u o", BZ_F16},        {"Sum u,u o", BZ_F16},          {"Mean u,u o", BZ_F16},
        {"ReduceMean u,n o", BZ_F16}, {"ReduceMax u o", BZ_F16},      {"MatMul u,u o", BZ_F16},
        {"ReduceL2 u o", BZ_F16},     {"ReduceProd u,n o", BZ_F16},   {"Add u,u o", BZ_F16},
        {"Where c,u,u o", BZ_F16},    {"OneHot n,depth,u o", BZ_F16}, {"Transpose u o", BZ_F16},
        {"Softmax u o", BZ_F16},      {"Expand u,n o", BZ_F16},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        static const int64_t ALL = -1, EIGHT = 8;
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("h", BZ_F16, "2x3"));
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2x3"));
        put_message(&g, GRAPH_INPUT, a_value("c", BZ_BOOL, "4"));
        put_message(&g, GRAPH_INIT, a_raw_tensor("all", BZ_I64, "1", &ALL, sizeof ALL));
        put_message(&g, GRAPH_INIT, a_raw_tensor("depth", BZ_I64, "", &EIGHT, sizeof EIGHT));
        put_plain_nodes(&g, "NonZero c where; Reshape where,all n; Reshape h,n u");
        put_plain_nodes(&g, CASES[i].node);
        subject s = infer(g);
        const bz_layer *l = &s.layers->layer[3];
        assert_int_equal(s.layers->layer[2].out[0].rank, -1);
        if (l->out[0].dtype != CASES[i].dtype)
            fail_msg("%s: %s, not %s", CASES[i].node, bz_dtype_name(l->out[0].dtype), bz_dtype_name(CASES[i].dtype));
        end(&s);
    }
}

static char *key_of_einsum(const char *equation)
{
    bz_buf g = {0}, node = a_node("Einsum", "e", "x z", "y"), attr = an_attr("equation", 3);
    put_text(&attr, ATTR_S, equation);
    put_message(&node, NODE_ATTR, attr);
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "6x6x6"));
    put_message(&g, GRAPH_INPUT, a_value("z", BZ_F32, "6x6x6"));
    put_message(&g, GRAPH_NODE, node);
    subject s = infer(g);
    char *key = strdup(s.layers->layer[0].key);
    end(&s);
    return key;
}

/* Equations of the letters "abcde", each by many other letters: one key, and another one for another equation. */
static void equal_equations_have_one_key(void **state)
{
    (void)state;
    static const char *const EQUATIONS[] = {
        "abc,acd->abd",       "abc,acd->adb", "abc,adc->abd", "abc,cde->abde", "a...,a...->a...",
        "...ab,...bc->...ac", "aab,bcc->ac",  "abc,abc->",    "abc,bca->abc",
    };
    enum { N = sizeof EQUATIONS / sizeof *EQUATIONS, NAMES = 40 };
    static const char LETTERS[] = "zyxwvutsrqponmlkjihgfedcbaABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *keys[N];
    for (int i = 0; i < N; i++) {
        keys[i] = key_of_einsum(EQUATIONS[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(keys[i], keys[k]);
        for (int name = 0; name < NAMES; name++) {
            bz_buf other = {0};
            for (const char *p = EQUATIONS[i]; *p; p++) {
                bool letter = *p >= 'a' && *p <= 'e';
                if (!letter && name % 3 == 0 && *p != '.' && *p != '>')
                    bz_buf_putc(&other, ' ');
                bz_buf_putc(&other, letter ? LETTERS[(name + 11 * (*p - 'a')) % 52] : *p);
            }
            char *key = key_of_einsum(bz_buf_text(&other));
            if (strcmp(key, keys[i]) != 0)
                fail_msg("%s: %s\n%s: %s", EQUATIONS[i], keys[i], bz_buf_text(&other), key);
            free(key);
            bz_buf_free(&other);
        }
    }
    /* a result that is not written has the letters that stand once, by the alphabet: "ba" is turned, "ab" is not */
    char *plain = key_of_einsum("acc,bdd"), *turned = key_of_einsum("bcc,add"), *written = key_of_einsum("xzz,yww->xy");
    assert_string_equal(plain, written);
    assert_string_not_equal(plain, turned);
    free(plain), free(turned), free(written);
    for (int i = 0; i < N; i++)
        free(keys[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_count_wherever_they_are_kept),
        cmocka_unit_test(unique_ones_are_among_the_layers),
        cmocka_unit_test(types_stay_where_ranks_are_lost),
        cmocka_unit_test(equal_equations_have_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
