/* Passes and layers of operators, told apart by the shapes of their weights. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct {
    bz_trace *t;
    uint32_t lane;
    int64_t now;
    bool named; /* operators are recorded without shapes */
} program;

static void operator_runs(program *p, const char *name, const char *inputs)
{
    char detail[120];
    snprintf(detail, sizeof detail, "inputs=[%s]", inputs);
    size_t i = bz_trace_add(p->t, BZ_EVENT_OP, p->now, p->now + 50000, bz_trace_text(p->t, name), p->lane);
    if (!p->named)
        p->t->event[BZ_EVENT_OP].detail[i] = bz_trace_text(p->t, detail);
    p->now += 51000;
}

static void convolution(program *p, int in, int out, int size, int kernel)
{
    char text[100];
    snprintf(text, sizeof text, "[5,%d,%d,%d],[%d,%d,%d,%d],[]", in, size, size, out, in, kernel, kernel);
    operator_runs(p, "aten::conv2d", text);
    snprintf(text, sizeof text, "[5,%d,%d,%d],[%d],[%d]", out, size, size, out, out);
    operator_runs(p, "aten::batch_norm", text);
}

/* Two blocks of a ResNet-18. */
static void stage(program *p, int in, int out, int size)
{
    for (int block = 0; block < 2; block++, in = out) {
        convolution(p, in, out, size, 3);
        operator_runs(p, "aten::relu_", "[5,64,56,56]");
        convolution(p, out, out, size, 3);
        if (in != out)
            convolution(p, in, out, size, 1);
        operator_runs(p, "aten::add_", "[5,64,56,56],[5,64,56,56],[]");
        operator_runs(p, "aten::relu_", "[5,64,56,56]");
    }
}

static void network(program *p, int width, int size)
{
    convolution(p, 3, width, 4 * size, 7);
    operator_runs(p, "aten::max_pool2d", "[5,64,112,112]");
    stage(p, width, width, size);
    for (int i = 1; i < 4; i++)
        stage(p, width << (i - 1), width << i, size >> i);
    operator_runs(p, "aten::linear", width == 64 ? "[5,512],[1000,512],[1000]" : "[5,256],[1000,256],[1000]");
}

/* Three convolutions, with the channels narrowed between: the weights of a block are those of the next one, of two blocks before none. */
static void bottlenecks(program *p, int in, int width, int blocks, int size)
{
    for (int block = 0; block < blocks; block++, in = 4 * width) {
        convolution(p, in, width, size, 1);
        operator_runs(p, "aten::relu_", "[5,64,56,56]");
        convolution(p, width, width, size, 3);
        operator_runs(p, "aten::relu_", "[5,64,56,56]");
        convolution(p, width, 4 * width, size, 1);
        if (!block)
            convolution(p, in, 4 * width, size, 1);
        operator_runs(p, "aten::add_", "[5,64,56,56],[5,64,56,56],[]");
        operator_runs(p, "aten::relu_", "[5,64,56,56]");
    }
}

/* Of a ResNet-50, of which the third stage is six equal blocks. */
static void network_of_bottlenecks(program *p)
{
    static const int BLOCKS[] = {3, 4, 6, 3};
    convolution(p, 3, 64, 224, 7);
    operator_runs(p, "aten::max_pool2d", "[5,64,112,112]");
    for (int i = 0, in = 64; i < 4; in = 256 << i, i++)
        bottlenecks(p, in, 64 << i, BLOCKS[i], 56 >> i);
    operator_runs(p, "aten::linear", "[5,2048],[1000,2048],[1000]");
}

/* Each layer reads what all before it made: every second convolution has weights like no other, and those between are all alike. */
static void network_that_grows(program *p)
{
    convolution(p, 3, 64, 224, 7);
    for (int layer = 0; layer < 16; layer++) {
        convolution(p, 64 + 32 * layer, 128, 56, 1);
        operator_runs(p, "aten::relu_", "[5,128,56,56]");
        convolution(p, 128, 32, 56, 3);
        operator_runs(p, "aten::cat", "[[5,64,56,56],[5,32,56,56]]");
    }
    operator_runs(p, "aten::linear", "[5,576],[1000,576],[1000]");
}

static uint32_t found_of(int passes, void (*pass)(program *p), bool named)
{
    bz_error err;
    program p = {.t = bz_trace_new(), .now = 1000000, .named = named};
    uint32_t source = bz_trace_source(p.t, "a", "PyTorch trace");
    p.t->source[source].events = 1;
    p.lane = bz_trace_thread(p.t, source, 1, 1);
    for (int i = 0; i < passes; i++)
        pass(&p);
    assert_int_equal(bz_trace_finish(p.t, NULL, &err), 0);
    uint32_t n = p.t->n_iterations;
    bz_trace_free(p.t);
    return n;
}

/* How many iterations are found in so many passes of one network, or of two in turns, on images of one size or of several. */
static uint32_t found(int passes, int networks, bool sizes)
{
    bz_error err;
    program p = {.t = bz_trace_new(), .now = 1000000};
    uint32_t source = bz_trace_source(p.t, "a", "PyTorch trace");
    p.t->source[source].events = 1;
    p.lane = bz_trace_thread(p.t, source, 1, 1);
    for (int i = 0; i < passes; i++)
        for (int k = 0; k < networks; k++)
            network(&p, k ? 32 : 64, sizes ? 56 + 8 * (i % 3) : 56);
    assert_int_equal(bz_trace_finish(p.t, NULL, &err), 0);
    uint32_t n = p.t->n_iterations;
    bz_trace_free(p.t);
    return n;
}

static void stages_of_one_pass_are_no_steps(void **state)
{
    (void)state;
    assert_int_equal(found(1, 1, false), 1);
    assert_int_equal(found(7, 1, false), 7);
    assert_int_equal(found(7, 1, true), 7);
}

static void blocks_of_one_pass_are_no_steps(void **state)
{
    (void)state;
    assert_int_equal(found_of(1, network_of_bottlenecks, false), 1);
    assert_int_equal(found_of(5, network_of_bottlenecks, false), 5);
    assert_int_equal(found_of(1, network_that_grows, false), 1);
    assert_int_equal(found_of(5, network_that_grows, false), 5);
}

/* Behind the layers of a single pass stands a product, which no layer has; of several, each has it. */
static void a_head_ends_one_pass(void **state)
{
    (void)state;
    assert_int_equal(found_of(1, network_of_bottlenecks, true), 1);
    assert_int_equal(found_of(5, network_of_bottlenecks, true), 5);
    assert_int_equal(found_of(1, network_that_grows, true), 1);
    assert_int_equal(found_of(5, network_that_grows, true), 5);
}

/* A graph of twelve equal layers, whose nodes the runtime names. */
static void nodes(program *p, bz_event_kind kind, uint32_t lane)
{
    static const char *const OPERATORS[] = {"Conv3D", "BiasAdd", "Relu"};
    for (int layer = 0; layer < 12; layer++)
        for (int k = 0; k < 3; k++) {
            char detail[60];
            snprintf(detail, sizeof detail, "name=layer_%d/%s", layer, OPERATORS[k]);
            size_t i = bz_trace_add(p->t, kind, p->now, p->now + 50000, bz_trace_text(p->t, OPERATORS[k]), lane);
            p->t->event[kind].detail[i] = bz_trace_text(p->t, detail);
            p->now += 51000;
        }
}

static void named_nodes(program *p)
{
    nodes(p, BZ_EVENT_OP, p->lane);
}

static void nodes_on_a_device(program *p)
{
    nodes(p, BZ_EVENT_KERNEL, bz_trace_stream(p->t, 0, 1, 0, 0, 7));
}

static void a_node_runs_once_in_a_step(void **state)
{
    (void)state;
    assert_int_equal(found_of(1, named_nodes, false), 1);
    assert_int_equal(found_of(4, named_nodes, false), 4);
    assert_int_equal(found_of(1, nodes_on_a_device, false), 1);
}

static void networks_in_turns_make_one_step(void **state)
{
    (void)state;
    assert_int_equal(found(6, 2, false), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_of_one_pass_are_no_steps), cmocka_unit_test(blocks_of_one_pass_are_no_steps),
        cmocka_unit_test(a_head_ends_one_pass), cmocka_unit_test(a_node_runs_once_in_a_step),
        cmocka_unit_test(networks_in_turns_make_one_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
