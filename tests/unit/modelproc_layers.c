/* Binding of dimensions, keys, costs, classes, unique layers: what makes layers out of nodes. */
#include "modelproc/modelproc.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct {
    bz_buf bytes;
    bz_model *model;
    bz_layers *layers;
    bz_error err;
} subject;

/* Takes the graph over. */
static int infer(subject *s, bz_buf graph, const bz_infer_options *options)
{
    static const bz_infer_options PLAIN = {0};
    *s = (subject){.bytes = a_model(8, 17, graph)};
    if (bz_model_parse(s->bytes.data, s->bytes.len, "test", &s->model, &s->err))
        return -1;
    return bz_layers_infer(s->model, options ? options : &PLAIN, &s->layers, &s->err);
}

static void end(subject *s)
{
    bz_layers_free(s->layers);
    bz_model_free(s->model);
    bz_buf_free(&s->bytes);
}

static void put_ints(bz_buf *graph, const char *name, const char *dims, const int64_t *v, size_t n)
{
    put_message(graph, GRAPH_INIT, a_raw_tensor(name, BZ_I64, dims, v, n * sizeof *v));
}

static bz_buf relu_of(const char *dims)
{
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, dims));
    put_message(&g, GRAPH_NODE, a_node("Relu", "r", "x", "y"));
    return g;
}

static void expect_key(bz_buf graph, const bz_infer_options *options, const char *key)
{
    subject s;
    if (infer(&s, graph, options))
        fail_msg("%s", s.err.text);
    assert_string_equal(s.layers->layer[s.layers->n - 1].key, key);
    end(&s);
}

static void expect_error(bz_buf graph, const bz_infer_options *options, bz_code code, const char *text)
{
    subject s;
    assert_int_equal(infer(&s, graph, options), -1);
    assert_null(s.layers);
    assert_int_equal(s.err.code, code);
    assert_non_null(strstr(s.err.text, text));
    end(&s);
}

static void dimensions_are_bound(void **state)
{
    (void)state;
    bz_infer_options o = {.batch = 8};
    expect_key(relu_of("Nx3x4"), &o, "relu x=8x3x4");
    expect_key(relu_of("1x3x4"), &o, "relu x=8x3x4");
    expect_key(relu_of("x3x4"), &o, "relu x=8x3x4"); /* no name at all */
    expect_key(relu_of("NxNx4"), &o, "relu x=8x8x4");
    bz_bind name = {"N", "5"}, axis = {"x:1", "7"}, shape = {"x", "2x3x4"};
    o = (bz_infer_options){.binds = &name, .n_binds = 1};
    expect_key(relu_of("Nx3"), &o, "relu x=5x3");
    o.binds = &axis;
    expect_key(relu_of("2x3"), &o, "relu x=2x7");
    o.binds = &shape;
    expect_key(relu_of("NxMxK"), &o, "relu x=2x3x4");
}

/* Two inputs; the key of an Add of both, or the error. */
static bz_buf add_of(const char *a, const char *b)
{
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("a", BZ_F32, a));
    put_message(&g, GRAPH_INPUT, a_value("b", BZ_F32, b));
    put_message(&g, GRAPH_NODE, a_node("Add", "n", "a b", "y"));
    return g;
}

static void dimensions_are_tied_by_their_names(void **state)
{
    (void)state;
    bz_bind name[2] = {{"past_length", "5"}, {"s", "2"}}, shape = {"a", "4x3"}, either = {"p", "5"};
    bz_infer_options o = {.binds = name, .n_binds = 2};
    expect_key(add_of("past_lengthxs", "past_lengthxs"), &o, "add a=5x2 b=5x2");
    expect_key(add_of("past_length + sxs", "s"), &o, "add a=7x2 b=2");
    name[0].name = "past"; /* its beginning is enough where nothing else begins so */
    expect_key(add_of("past_lengthxs", "past_length - 4xs"), &o, "add a=5x2 b=1x2");
    o = (bz_infer_options){.binds = &shape, .n_binds = 1};
    expect_key(add_of("NxM", "M"), &o, "add a=4x3 b=3");
    o.binds = &either;
    expect_error(add_of("p_axp_b", "1"), &o, BZ_USAGE, "--dim p=5: neither");
    expect_error(add_of("Nxpast + s", "1xpast"), &(bz_infer_options){.batch = 1}, BZ_BAD_INPUT,
                 "first --dim past=SIZE");
    expect_error(add_of("Nxhead-size", "1"), &(bz_infer_options){.batch = 1}, BZ_BAD_INPUT,
                 "bind it with --dim head-size=");
    o = (bz_infer_options){.batch = 6};
    expect_key(add_of("Nx1", "2*N"), &o, "add a=6x1 b=12");
}

static void names_that_runtimes_use_are_taken_for_what_they_mean(void **state)
{
    (void)state;
    bz_bind name[3] = {{"past_sequence_length", "3"}, {"sequence_length", "2"}, {"total_sequence_length", "9"}};
    const char *a = "past_sequence_lengthxsequence_lengthx1", *b = "total_sequence_length";
    bz_infer_options o = {.binds = name, .n_binds = 2};
    expect_key(add_of(a, b), &o, "add a=3x2x1 b=5");
    o.n_binds = 3;
    expect_key(add_of(a, b), &o, "add a=3x2x1 b=9");
}

/* Names tell a batch that is not the first dimension, and a first dimension that is none. */
static void the_batch_is_where_its_name_is(void **state)
{
    (void)state;
    bz_bind seq[2] = {{"seq", "5"}, {"batch", "3"}}, n[2] = {{"N", "5"}};
    const bz_infer_options six = {.batch = 6}, steps = {.batch = 6, .binds = seq, .n_binds = 1},
                           both = {.batch = 6, .binds = seq, .n_binds = 2},
                           other = {.batch = 6, .binds = n, .n_binds = 1};
    expect_key(add_of("seqxbatchx4", "batchx4"), &steps, "add a=5x6x4 b=6x4");
    expect_key(add_of("seqxBx4", "4"), &steps, "add a=5x6x4 b=4");
    expect_key(add_of("image_batch_sizex4", "label_batch_sizex4"), &six, "add a=6x4 b=6x4");
    expect_key(add_of("4xNxbatch", "batch"), &other, "add a=4x5x6 b=6");
    expect_key(add_of("Nxseq", "seq"), &steps, "add a=6x5 b=5");
    expect_error(relu_of("seqxbatch"), &six, BZ_BAD_INPUT, "bind it with --dim seq=SIZE");
    expect_error(add_of("Nxseq", "seq"), &six, BZ_BAD_INPUT, "dimension 'seq'"); /* positions */
    expect_error(relu_of("seqxbatch"), &both, BZ_USAGE, "--dim batch=3 and --batch 6: dimension 'batch' of input 'x'");
    expect_error(relu_of("NxM"), &other, BZ_USAGE, "--dim N=5 and --batch 6");
    subject s;
    assert_int_equal(infer(&s, relu_of("seqxbatch"), NULL), -1);
    assert_null(strstr(s.err.text, "or with --batch")); /* that would not be the steps */
    end(&s);
    assert_int_equal(infer(&s, relu_of("batchxseq"), NULL), -1);
    assert_non_null(strstr(s.err.text, "or with --batch"));
    end(&s);
    seq[1].value = "6"; /* the same twice */
    expect_key(relu_of("seqxbatch"), &both, "relu x=5x6");
}

static bz_buf recurrent(const char *x, const char *state, const char *nodes)
{
    static const float ZERO[4 * 3 * 3] = {0};
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, x));
    put_message(&g, GRAPH_INPUT, a_value("h", BZ_F32, state));
    put_message(&g, GRAPH_INIT, a_raw_tensor("w", BZ_F32, "1x3x3", ZERO, 9 * sizeof *ZERO));
    put_plain_nodes(&g, nodes);
    return g;
}

/* ONNX's recurrent layers say which dimension is the batch: the second one, of their states too. */
static void recurrent_layers_have_their_batch_second(void **state)
{
    (void)state;
    const bz_infer_options six = {.batch = 6};
    const char *key = "rnn x=5x6x3 w=1x3x3 r=1x3x3 hidden=3 direction=forward layout=tbi activations=tanh";
    expect_key(recurrent("5x1x3", "1x1x3", "RNN x,w,w,_,_,h y"), &six, key);
    expect_key(recurrent("5xNx3", "1xNx3", "RNN x,w,w,_,_,h y"), &six, key);
    subject s;
    if (infer(&s, recurrent("5x1x3", "1x1x3", "RNN x,w,w,_,_,h y"), &six))
        fail_msg("%s", s.err.text);
    assert_int_equal(s.layers->batch, 6);
    assert_int_equal(s.layers->layer[0].in[5].dims[1], 6);
    assert_int_equal(s.layers->n_warnings, 0);
    end(&s);
    /* Behind another layer the input's first dimension is the batch until the recurrent one shows that it is not. */
    if (infer(&s, recurrent("5x1x3", "1x1x3", "Relu x a; RNN a,w,w,_,_,h y"), &six))
        fail_msg("%s", s.err.text);
    assert_int_equal(s.layers->n_warnings, 1);
    assert_non_null(strstr(s.layers->warnings[0], "--batch 6 sets the steps of the sequence in node"));
    end(&s);
}

static void unbound_dimensions_name_the_option(void **state)
{
    (void)state;
    expect_error(relu_of("Nx3"), NULL, BZ_BAD_INPUT, "--dim N=");
    expect_error(relu_of("2xM"), NULL, BZ_BAD_INPUT, "--dim M=");
    expect_error(relu_of("2xx3"), NULL, BZ_BAD_INPUT, "--dim x:1=");
    bz_bind unknown = {"K", "3"}, words = {"N", "many"}, rank = {"x", "1x2"};
    bz_infer_options o = {.binds = &unknown, .n_binds = 1};
    expect_error(relu_of("Nx3"), &o, BZ_USAGE, "--dim K=3");
    o.binds = &words;
    expect_error(relu_of("Nx3"), &o, BZ_USAGE, "--dim N=many");
    o.binds = &rank;
    expect_error(relu_of("NxMxK"), &o, BZ_USAGE, "3 dimensions");
    bz_bind huge = {"x", "0x281474976710656x281474976710656"};
    o.binds = &huge;
    expect_error(relu_of("NxMxK"), &o, BZ_BAD_INPUT, "input 'x': its shape has more elements");
}

static bz_buf reshaped(const char *input, const int64_t *to, size_t n)
{
    bz_buf g = {0};
    char rank[2] = {(char)('0' + n), 0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, input));
    put_ints(&g, "shape", rank, to, n);
    put_plain_nodes(&g, "Reshape x,shape a; Relu a y");
    put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, "Nx?"));
    return g;
}

/* A number in the graph that is its batch: shapes that clash, or a result that stays as it is. */
static void batches_that_cannot_be_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        int64_t to[3];
        size_t n;
        const char *failure, *warning; /* NULL: none */
    } CASES[] = {
        {"2x6", {2, 6}, 2, NULL, "contains its batch of 2 as a number, in a Reshape: --batch takes its place"},
        {"2x6", {2, -1}, 2, NULL, "contains its batch of 2 as a number, in a Reshape: --batch takes its place"},
        {"1x6", {1, -1, 3}, 3, NULL, "contains its batch of 1 as a number, in a Reshape: --batch takes its place"},
        {"1x6", {3, 2}, 2, NULL, "contains its batch of 1 as a number, in a Reshape: --batch takes its place"},
        {"2x6", {4, 3}, 2, NULL, "contains its batch of 2 as a number, in a Reshape: --batch takes its place"},
        {"2x6",
         {3, 4},
         2,
         "first dimension of an input became 4, where it was 2: that is no batch, or the graph contains it",
         NULL},
        {"2x6",
         {2, 5},
         2,
         "first dimension of an input became 4, where it was 2: that is no batch, or the graph contains it",
         NULL},
        {"3x4",
         {3, -1, 6},
         3,
         "first dimension of an input became 4, where it was 3: that is no batch, or the graph contains it",
         NULL},
        {"2x6", {0, -1}, 2, NULL, NULL},
        {"2x6", {-1, 6}, 2, NULL, NULL},
        {"2x6", {-1, 3}, 2, NULL, NULL},
        {"4x6", {4, 6}, 2, NULL, NULL}, /* it is that batch */
        {"Nx6", {-1, 6}, 2, NULL, NULL},
        {"1x6", {1, 4, 6}, 3, NULL, NULL}, /* the batch stands elsewhere in the result */
        {"", {1, 1}, 2, NULL, "--batch 4 changes nothing: no input has a first dimension"},
    };
    const bz_infer_options options = {.batch = 4};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = reshaped(CASES[i].input, CASES[i].to, CASES[i].n);
        if (CASES[i].failure) {
            expect_error(g, &options, BZ_BAD_INPUT, CASES[i].failure);
            continue;
        }
        subject s;
        if (infer(&s, g, &options))
            fail_msg("%s", s.err.text);
        assert_int_equal(s.layers->n_warnings, CASES[i].warning != NULL);
        if (CASES[i].warning)
            assert_non_null(strstr(s.layers->warnings[0], CASES[i].warning));
        end(&s);
    }
    subject s;
    bz_buf shuffled = reshaped("1x6", (int64_t[]){3, 2}, 2); /* four times that, not [3, 8] */
    assert_int_equal(infer(&s, shuffled, &options), 0);
    assert_int_equal(s.layers->layer[s.layers->n - 1].out[0].dims[0], 12);
    end(&s);
    bz_buf nameless = reshaped("2x6", (int64_t[]){2, -1}, 2); /* a result without a name is none */
    put_message(&nameless, GRAPH_OUTPUT, a_value("", BZ_F32, "2x6"));
    assert_int_equal(infer(&s, nameless, &options), 0);
    assert_int_equal(s.layers->n_warnings, 1);
    end(&s);
    bz_buf open = relu_of("2xH");
    assert_int_equal(infer(&s, open, &options), -1); /* that H is not bound is no fault of the batch */
    assert_null(strstr(s.err.text, "batch of"));
    end(&s);
}

/* A result that a number in the graph makes as long as the batch was is told, once; not where it has the new batch as well, or there is none. */
static void results_that_keep_a_batch_are_told(void **state)
{
    (void)state;
    static const struct {
        int64_t size[2], batch;
        const char *warning;
    } CASES[] = {
        {{2, 5},
         4,
         "result 'y' begins with 2 although --batch is 4: the graph itself seems to contain its batch as a number"},
        {{2, 4}, 4, NULL},
        {{3, 5}, 4, NULL},
        {{2, 5}, 2, NULL},
        {{2, 5}, 0, NULL}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2x6"));
        put_ints(&g, "s", "2", CASES[i].size, 2);
        put_message(&g, GRAPH_NODE, a_node("Relu", "r", "x", "z"));
        put_message(&g, GRAPH_NODE, a_node("ConstantOfShape", "c", "s", "y"));
        for (int k = 0; k < 2; k++) {
            bz_buf out = {0};
            put_text(&out, 1, k ? "y" : "z");
            put_message(&g, GRAPH_OUTPUT, out);
        }
        subject s;
        assert_int_equal(infer(&s, g, &(bz_infer_options){.batch = CASES[i].batch}), 0);
        assert_int_equal(s.layers->n_warnings, CASES[i].warning != NULL);
        if (CASES[i].warning)
            assert_string_equal(s.layers->warnings[0], CASES[i].warning);
        end(&s);
    }
}

static void open_inputs_stay_symbols(void **state)
{
    (void)state;
    bz_infer_options o = {.open_inputs = true};
    subject s;
    assert_int_equal(infer(&s, relu_of("Nx3"), &o), 0);
    assert_true(bz_is_symbol(s.layers->layer[0].out[0].dims[0]));
    assert_false(s.layers->layer[0].priced);
    end(&s);
}

static bz_buf conv_graph(const char *bias)
{
    bz_buf g = {0}, conv = a_node("Conv", "c", *bias ? "x w b" : "x w", "y");
    bz_buf strides = an_attr("strides", 7), pads = an_attr("pads", 7);
    put_int(&strides, ATTR_INTS, 2);
    put_int(&strides, ATTR_INTS, 2);
    for (int i = 0; i < 4; i++)
        put_int(&pads, ATTR_INTS, i < 2 ? 3 : 2);
    put_message(&conv, NODE_ATTR, strides);
    put_message(&conv, NODE_ATTR, pads);
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "1x3x224x224"));
    put_message(&g, GRAPH_INIT, a_tensor("w", BZ_F32, "64x3x7x7"));
    if (*bias)
        put_message(&g, GRAPH_INIT, a_tensor("b", BZ_F32, bias));
    put_message(&g, GRAPH_NODE, conv);
    return g;
}

static void convolution_is_keyed_and_priced(void **state)
{
    (void)state;
    subject s;
    assert_int_equal(infer(&s, conv_graph(""), NULL), 0);
    const bz_layer *l = &s.layers->layer[0];
    assert_string_equal(l->key, "conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x2x2 dilation=1x1 group=1");
    assert_int_equal(l->macs, 64LL * 112 * 112 * 3 * 7 * 7);
    assert_int_equal(l->flops, 2 * l->macs);
    assert_int_equal(l->params_count, 64 * 3 * 7 * 7);
    assert_int_equal(l->bytes, 4 * (3 * 224 * 224 + 64 * 3 * 7 * 7 + 64 * 112 * 112));
    assert_int_equal(bz_layer_param(l, "pad")->n, 4);
    assert_null(bz_layer_param(l, "padding"));
    end(&s);
    assert_int_equal(infer(&s, conv_graph("64"), NULL), 0);
    assert_non_null(strstr(s.layers->layer[0].key, " b=64 "));
    assert_int_equal(s.layers->layer[0].flops, 2 * s.layers->layer[0].macs + 64 * 112 * 112);
    end(&s);
}

/* The data type is no part of the key as long as it is a floating-point one. */
static void keys_tell_integers_apart(void **state)
{
    (void)state;
    static const struct {
        bz_dtype dtype;
        const char *key;
    } CASES[] = {
        {BZ_F32, "add a=2 b=2"}, {BZ_F16, "add a=2 b=2"}, {BZ_BF16, "add a=2 b=2"}, {BZ_I64, "add a=2 b=2 type=i64"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", CASES[i].dtype, "2"));
        put_message(&g, GRAPH_NODE, a_node("Add", "a", "x x", "y"));
        expect_key(g, NULL, CASES[i].key);
    }
}

static void type_clashes_are_errors(void **state)
{
    (void)state;
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2"));
    put_message(&g, GRAPH_INPUT, a_value("i", BZ_I64, "2"));
    put_message(&g, GRAPH_NODE, a_node("Add", "sum", "x i", "y"));
    expect_error(g, NULL, BZ_BAD_INPUT, "node 'sum' (Add)");
    g = relu_of("2");
    put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_I64, "2"));
    expect_error(g, NULL, BZ_BAD_INPUT, "declares i64");
}

/* y = Reshape(x, Concat(Gather(Shape(x), 0), [-1])): what exporters make of x.view(x.shape[0], -1). */
static void shapes_that_are_computed_are_followed(void **state)
{
    (void)state;
    static const int64_t ZERO = 0, REST = -1;
    bz_buf g = {0}, concat = a_node("Concat", "cat", "n rest", "shape");
    put_message(&concat, NODE_ATTR, an_int_attr("axis", 0));
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "Nx6x7"));
    put_ints(&g, "zero", "1", &ZERO, 1);
    put_ints(&g, "rest", "1", &REST, 1);
    put_message(&g, GRAPH_NODE, a_node("Shape", "shape", "x", "dims"));
    put_message(&g, GRAPH_NODE, a_node("Gather", "first", "dims zero", "n"));
    put_message(&g, GRAPH_NODE, concat);
    put_message(&g, GRAPH_NODE, a_node("Reshape", "view", "x shape", "y"));
    bz_infer_options o = {.batch = 4};
    subject s;
    assert_int_equal(infer(&s, g, &o), 0);
    assert_string_equal(s.layers->layer[3].key, "reshape x=4x6x7 y=4x42");
    for (int i = 0; i < 3; i++)
        assert_int_equal(s.layers->layer[i].class, BZ_CONSTANT);
    assert_int_equal(s.layers->layer[3].class, BZ_VIEW);
    assert_int_equal(s.layers->layer[3].bytes, 0);
    end(&s);
}

static void data_dependent_sizes_stay_open(void **state)
{
    (void)state;
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x5"));
    put_message(&g, GRAPH_NODE, a_node("NonZero", "nz", "x", "at"));
    put_message(&g, GRAPH_NODE, a_node("Relu", "r", "x", "y"));
    subject s;
    assert_int_equal(infer(&s, g, NULL), 0);
    const bz_type *t = &s.layers->layer[0].out[0];
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dims[0], 2);
    assert_true(bz_is_symbol(t->dims[1]));
    assert_false(s.layers->layer[0].priced);
    assert_true(s.layers->layer[1].priced);
    end(&s);
}

static void unknown_operators_are_not_free(void **state)
{
    (void)state;
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
    put_message(&g, GRAPH_NODE, a_node("FooBar", "f", "x", "y"));
    subject s;
    assert_int_equal(infer(&s, g, NULL), 0);
    assert_false(s.layers->layer[0].priced);
    assert_int_equal(s.layers->n_warnings, 1);
    assert_non_null(strstr(s.layers->warnings[0], "FooBar"));
    assert_string_equal(s.layers->layer[0].key, "unknown op=.FooBar x=4 y=?");
    end(&s);
}

/* Operators of one name are told apart by their domains, also where they take turns. */
static void domains_tell_operators_apart(void **state)
{
    (void)state;
    static const struct {
        const char *domain, *kind;
    } NODES[] = {{"", "relu"},         {"my.own", "unknown"}, {"", "relu"},
                 {"other", "unknown"}, {"my.own", "unknown"}, {"ai.onnx", "relu"}};
    enum { N = sizeof NODES / sizeof *NODES };
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
    for (int i = 0; i < N; i++) {
        char result[2] = {(char)('a' + i), 0};
        bz_buf node = a_node("Relu", result, "x", result);
        put_text(&node, NODE_DOMAIN, NODES[i].domain);
        put_message(&g, GRAPH_NODE, node);
    }
    subject s;
    assert_int_equal(infer(&s, g, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_string_equal(s.layers->layer[i].kind, NODES[i].kind);
    end(&s);
}

/* What the file declares fills gaps, unless the command line made it stale. */
static void declared_shapes_fill_gaps(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
        put_message(&g, GRAPH_NODE, a_node("FooBar", "f", "x", "y"));
        put_message(&g, GRAPH_VALUE, a_value("y", BZ_F32, "4x9"));
        bz_infer_options o = {.ignore_declared = round == 1, .batch = round == 2 ? 5 : 0};
        subject s;
        assert_int_equal(infer(&s, g, &o), 0);
        assert_int_equal(s.layers->layer[0].out[0].rank, round == 0 ? 2 : -1);
        end(&s);
    }
}

/* Where a file says another shape than its nodes make, theirs stands and a warning says so: each once, and not more than anybody reads. */
static void declared_shapes_that_are_wrong_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *declared, *warning; /* of the Relu of 2x3; NULL: none */
    } CASES[] = {{"2x3", NULL},
                 {"2x4", "'y': the file declares dimension 1 as 4, but it is 3"},
                 {"9x3", "'y': the file declares dimension 0 as 9, but it is 2"},
                 {"2x3x1", "'y': the file declares 3 dimensions, but it has 2"},
                 {"2", "'y': the file declares 1 dimensions, but it has 2"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2x3"));
        put_message(&g, GRAPH_NODE, a_node("Relu", "f", "x", "y"));
        put_message(&g, GRAPH_VALUE, a_value("y", BZ_F32, CASES[i].declared));
        subject s;
        assert_int_equal(infer(&s, g, NULL), 0);
        assert_int_equal(s.layers->n_warnings, CASES[i].warning != NULL);
        if (CASES[i].warning)
            assert_string_equal(s.layers->warnings[0], CASES[i].warning);
        const bz_type *y = &s.layers->layer[0].out[0];
        assert_true(y->rank == 2 && y->dims[0] == 2 && y->dims[1] == 3);
        end(&s);
    }
    for (int n = 1; n <= 60; n += n < 25 ? 1 : 35) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2x3"));
        for (int i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, "y%d", i);
            put_message(&g, GRAPH_NODE, a_node("Relu", name, "x", name));
            put_message(&g, GRAPH_VALUE, a_value(name, BZ_F32, "4x4"));
        }
        subject s;
        assert_int_equal(infer(&s, g, NULL), 0);
        assert_int_equal(s.layers->n_warnings, 2 * n <= 32 ? 2 * n : 33); /* of both dimensions */
        assert_int_equal(!strcmp(s.layers->warnings[s.layers->n_warnings - 1], "there are more warnings of this kind"),
                         2 * n > 32);
        end(&s);
    }
}

typedef enum { UNDECLARED, TENSOR, TENSOR_OF_I64, SEQUENCE, OPTIONAL } declared;

/* As ValueInfoProto "y". */
static bz_buf a_declared_value(declared kind)
{
    enum { TYPE_SEQUENCE = 4, TYPE_OPTIONAL = 9 };
    bz_buf value = {0}, type = {0}, of = {0};
    put_text(&value, 1, "y");
    if (kind == TENSOR || kind == TENSOR_OF_I64) {
        type = a_type(kind == TENSOR ? BZ_F32 : BZ_I64, "4x9");
    } else if (kind != UNDECLARED) {
        put_message(&of, 1, a_type(BZ_F32, "4x9"));
        put_message(&type, kind == SEQUENCE ? TYPE_SEQUENCE : TYPE_OPTIONAL, of);
    }
    if (type.len)
        put_message(&value, 2, type);
    return value;
}

/* A result of an operator that nobody knows is what the file declares, of whatever kind that is. What is known must be of the declared kind and type;
 * a tensor may stand for an optional one. */
static void declared_kinds_fill_gaps(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        declared kind;
        bool ignore;
        const char *error;
        bz_type_kind is;
        int rank;
        bz_dtype dtype;
    } CASES[] = {
        {"FooBar", UNDECLARED, false, NULL, BZ_TYPE_TENSOR, -1, BZ_UNDEFINED},
        {"FooBar", TENSOR, false, NULL, BZ_TYPE_TENSOR, 2, BZ_F32},
        {"FooBar", SEQUENCE, false, NULL, BZ_TYPE_SEQUENCE, 0, BZ_UNDEFINED},
        {"FooBar", OPTIONAL, false, NULL, BZ_TYPE_TENSOR, -1, BZ_UNDEFINED},
        {"FooBar", TENSOR, true, NULL, BZ_TYPE_TENSOR, -1, BZ_UNDEFINED},
        {"FooBar", SEQUENCE, true, NULL, BZ_TYPE_TENSOR, -1, BZ_UNDEFINED},
        {"FooBar", OPTIONAL, true, NULL, BZ_TYPE_TENSOR, -1, BZ_UNDEFINED},
        {"Relu", UNDECLARED, false, NULL, BZ_TYPE_TENSOR, 2, BZ_F32},
        {"Relu", TENSOR, false, NULL, BZ_TYPE_TENSOR, 2, BZ_F32},
        {"Relu", TENSOR, true, NULL, BZ_TYPE_TENSOR, 2, BZ_F32},
        {"Relu", OPTIONAL, false, NULL, BZ_TYPE_TENSOR, 2, BZ_F32},
        {"Relu", TENSOR_OF_I64, false, .error = "'y' as f32, but the file declares i64"},
        {"Relu", TENSOR_OF_I64, true, .error = "'y' as f32, but the file declares i64"},
        {"Relu", SEQUENCE, false, .error = "'y' as what it is, but the file declares another kind of value"},
        {"Relu", SEQUENCE, true, .error = "'y' as what it is, but the file declares another kind of value"},
        {"SequenceConstruct", SEQUENCE, false, NULL, BZ_TYPE_SEQUENCE, 0, BZ_UNDEFINED},
        {"SequenceConstruct", OPTIONAL, false,
         .error = "'y' as what it is, but the file declares another kind of value"},
        {"SequenceConstruct", TENSOR, false, .error = "'y' as what it is, but the file declares another kind of value"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x9"));
        put_message(&g, GRAPH_NODE, a_node(CASES[i].op, "f", "x", "y"));
        put_message(&g, GRAPH_VALUE, a_declared_value(CASES[i].kind));
        bz_infer_options o = {.ignore_declared = CASES[i].ignore};
        if (CASES[i].error) {
            expect_error(g, &o, BZ_BAD_INPUT, CASES[i].error);
            continue;
        }
        subject s;
        if (infer(&s, g, &o))
            fail_msg("case %zu: %s", i, s.err.text);
        const bz_type *t = &s.layers->layer[0].out[0];
        if (t->kind != CASES[i].is ||
            (t->kind == BZ_TYPE_TENSOR && (t->rank != CASES[i].rank || t->dtype != CASES[i].dtype)))
            fail_msg("case %zu: kind %d, rank %d", i, (int)t->kind, t->rank);
        end(&s);
    }
}

static bz_buf nested_optionals(int depth)
{
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("0", BZ_F32, "4"));
    for (int i = 0; i < depth; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, "%d", i);
        snprintf(out, sizeof out, "%d", i + 1);
        put_message(&g, GRAPH_NODE, a_node("Optional", "", in, out));
    }
    return g;
}

static void types_are_nested_so_deep(void **state)
{
    (void)state;
    subject s;
    assert_int_equal(infer(&s, nested_optionals(64), NULL), 0);
    end(&s);
    expect_error(nested_optionals(65), NULL, BZ_BAD_INPUT, "nested more than 64 deep");
}

static void unique_layers_are_counted(void **state)
{
    (void)state;
    subject s[2];
    for (int m = 0; m < 2; m++) {
        bz_buf g = {0};
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
        put_message(&g, GRAPH_NODE, a_node("Relu", "", "x", "a"));
        put_message(&g, GRAPH_NODE, a_node("Relu", "", "a", "b"));
        put_message(&g, GRAPH_NODE, a_node(m ? "Tanh" : "Sigmoid", "", "b", "y"));
        assert_int_equal(infer(&s[m], g, NULL), 0);
    }
    assert_string_equal(s[0].layers->layer[1].name, "Relu_1");
    bz_unique u = {0};
    bz_unique_add(&u, s[0].layers, 0, NULL);
    bz_unique_add(&u, s[1].layers, 1, NULL);
    assert_int_equal(u.n, 3);
    assert_int_equal(u.n_layers, 6);
    assert_string_equal(u.item[0].layer->key, "relu x=4");
    assert_int_equal(u.item[0].count, 4);
    assert_int_equal(u.item[0].uses.n, 2);
    assert_int_equal(u.item[0].uses.times[1], 2);
    assert_int_equal(u.item[2].uses.model[0], 1);
    bz_unique_free(&u);
    end(&s[0]);
    end(&s[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_are_bound),
        cmocka_unit_test(dimensions_are_tied_by_their_names),
        cmocka_unit_test(names_that_runtimes_use_are_taken_for_what_they_mean),
        cmocka_unit_test(the_batch_is_where_its_name_is),
        cmocka_unit_test(recurrent_layers_have_their_batch_second),
        cmocka_unit_test(unbound_dimensions_name_the_option),
        cmocka_unit_test(batches_that_cannot_be_are_told),
        cmocka_unit_test(results_that_keep_a_batch_are_told),
        cmocka_unit_test(open_inputs_stay_symbols),
        cmocka_unit_test(convolution_is_keyed_and_priced),
        cmocka_unit_test(keys_tell_integers_apart),
        cmocka_unit_test(type_clashes_are_errors),
        cmocka_unit_test(shapes_that_are_computed_are_followed),
        cmocka_unit_test(data_dependent_sizes_stay_open),
        cmocka_unit_test(unknown_operators_are_not_free),
        cmocka_unit_test(domains_tell_operators_apart),
        cmocka_unit_test(declared_shapes_fill_gaps),
        cmocka_unit_test(declared_shapes_that_are_wrong_are_told),
        cmocka_unit_test(declared_kinds_fill_gaps),
        cmocka_unit_test(types_are_nested_so_deep),
        cmocka_unit_test(unique_layers_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
