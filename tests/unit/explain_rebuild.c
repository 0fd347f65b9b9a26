/* Layers from a framework's operators: what each becomes, and which of them count. */
#include "explain/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct made_up {
    bz_trace *t;
    uint32_t lane;
    int64_t now;
} made_up;

static made_up begin(void)
{
    made_up m = {.t = bz_trace_new()};
    m.lane = bz_trace_thread(m.t, bz_trace_source(m.t, "made up", "test"), 1, 1);
    return m;
}

/* An operator of `length`; the next one begins behind it, or in it. */
static size_t add(made_up *m, const char *name, const char *detail, int64_t length, bool inside)
{
    size_t op = bz_trace_add(m->t, BZ_EVENT_OP, m->now, m->now + length, bz_trace_text(m->t, name), m->lane);
    m->t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(m->t, detail);
    m->now += inside ? 1 : length;
    return op;
}

static void rebuild(made_up *m, bz_arena *arena, bz_rebuilt *out)
{
    bz_error err;
    assert_int_equal(bz_trace_finish(m->t, NULL, &err), 0);
    bz_rebuild(m->t, arena, out);
}

/* The keys, with " + " between them, and in front of each its type where that is not f32; "" for none. */
static const char *keys_of(const bz_rebuilt *r, bz_arena *arena)
{
    const char *keys = "";
    for (int i = 0; r->layers && i < r->layers->n; i++)
        if (r->layers->layer[i].class != BZ_VIEW) {
            const bz_layer *l = &r->layers->layer[i];
            bool usual = l->in[0].dtype == BZ_F32;
            keys = bz_arena_printf(arena, "%s%s%s%s%s", keys, *keys ? " + " : "",
                                   usual ? "" : bz_dtype_name(l->in[0].dtype), usual ? "" : " ", l->key);
        }
    return keys;
}

#define X8 "[1,8,16,16]"

static void operators(void **state)
{
    static const struct {
        const char *name, *detail, *next, *keys; /* next: what an operator behind it reads; NULL: there is none */
    } CASES[] = {
        /* the result tells strides and padding */
        {"aten::conv2d", "inputs=[[1,3,224,224],[64,3,7,7],[],[],[],[],[]]", "[1,64,112,112]",
         "conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1"},
        {"aten::conv2d", "inputs=[" X8 ",[8,1,3,3],[8]]", "[1,8,8,8]",
         "conv x=1x8x16x16 w=8x1x3x3 b=8 stride=2x2 pad=1x1x1x1 dilation=1x1 group=8"},
        {"aten::conv2d", "inputs=[[1,3,224,224],[96,3,4,4],[96]]", "[1,96,56,56]",
         "conv x=1x3x224x224 w=96x3x4x4 b=96 stride=4x4 pad=0x0x0x0 dilation=1x1 group=1"},
        {"aten::conv2d", "inputs=[[1,3,299,299],[32,3,3,3]]", "[1,32,149,149]",
         "conv x=1x3x299x299 w=32x3x3x3 stride=2x2 pad=0x0x0x0 dilation=1x1 group=1"},
        {"aten::conv1d", "inputs=[[2,8,16],[4,8,3]]", "[2,4,16]",
         "conv x=2x8x16 w=4x8x3 stride=1 pad=1x1 dilation=1 group=1"},
        /* so does the recording, of newer versions */
        {"aten::conv2d",
         "inputs=[" X8
         ",[8,8,3,3],[],[],[],[],[]] types=[c10::Half,c10::Half,,ScalarList,ScalarList,ScalarList,Scalar] "
         "values=[,,,[2,_2],[2,_2],[2,_2],1]",
         NULL, "f16 conv x=1x8x16x16 w=8x8x3x3 stride=2x2 pad=2x2x2x2 dilation=2x2 group=1"},
        /* nobody reads it: as large as the input */
        {"aten::conv2d", "inputs=[" X8 ",[4,8,3,3]]", NULL,
         "conv x=1x8x16x16 w=4x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1"},
        {"aten::conv2d", "inputs=[[1,9,16,16],[4,8,3,3]]", NULL, ""},
        {"aten::conv2d", "inputs=[[1,8,16,16]]", NULL, ""},
        {"aten::convolution",
         "inputs=[" X8 ",[8,4,2,2],[],[],[],[],[],[],[]] values=[,,,[2,_2],[0,_0],[1,_1],True,[0,_0],1]", NULL, ""},
        /* transposed, where nothing tells what it makes; its result, and its groups by the bias; as newer versions tell it */
        {"aten::conv_transpose2d", "inputs=[" X8 ",[8,4,3,3],[4],[],[],[],[],[]]", NULL,
         "deconv x=1x8x16x16 w=8x4x3x3 b=4 stride=1x1 pad=1x1x1x1 dilation=1x1 extra=0x0 group=1"},
        {"aten::conv_transpose2d", "inputs=[" X8 ",[8,4,3,3],[8]]", "[1,8,32,32]",
         "deconv x=1x8x16x16 w=8x4x3x3 b=8 stride=2x2 pad=1x1x1x1 dilation=1x1 extra=1x1 group=2"},
        {"aten::conv_transpose1d", "inputs=[[2,8,16],[8,4,2],[4]]", "[2,4,32]",
         "deconv x=2x8x16 w=8x4x2 b=4 stride=2 pad=0x0 dilation=1 extra=0 group=1"},
        {"aten::conv_transpose2d",
         "inputs=[" X8 ",[8,4,3,3],[],[],[],[],[],[]] values=[,,,[2,_2],[1,_1],[1,_1],2,[2,_2]]", NULL,
         "deconv x=1x8x16x16 w=8x4x3x3 stride=2x2 pad=1x1x1x1 dilation=2x2 extra=1x1 group=2"},
        {"aten::conv_transpose2d", "inputs=[" X8 ",[4,8,3,3]]", NULL, ""},
        {"aten::linear", "inputs=[[4,48],[10,48],[10]]", NULL, "gemm a=4x48 b=10x48 c=10 transa=0 transb=1"},
        {"aten::linear", "inputs=[[1,5,48],[10,48],[10]]", NULL, "matmul a=1x5x48 b=48x10 + add a=1x5x10 b=10"},
        {"aten::linear", "inputs=[[4,47],[10,48],[10]]", NULL, ""},
        {"aten::addmm", "inputs=[[10],[4,48],[48,10],[],[]]", NULL, "gemm a=4x48 b=48x10 c=10 transa=0 transb=0"},
        {"aten::bmm", "inputs=[[12,5,64],[12,64,5]]", NULL, "matmul a=12x5x64 b=12x64x5"},
        {"aten::bmm", "inputs=[[12,5,64],[12,63,5]]", NULL, ""},
        {"aten::scaled_dot_product_attention", "inputs=[[1,2,5,8],[1,2,7,8],[1,2,7,4]]", NULL,
         "matmul a=1x2x5x8 b=1x2x8x7 + softmax x=1x2x5x7 axis=3 + matmul a=1x2x5x7 b=1x2x7x4"},
        {"aten::relu_", "inputs=[" X8 "]", NULL, "relu x=1x8x16x16"},
        {"aten::add", "inputs=[" X8 ",[8,1,1],[]]", NULL, "add a=1x8x16x16 b=8x1x1"},
        {"aten::add", "inputs=[" X8 ",[7,1,1],[]]", NULL, ""},
        {"aten::batch_norm", "inputs=[" X8 ",[8],[8],[8],[8]]", NULL, "batchnorm x=1x8x16x16 scale=8 b=8 mean=8 var=8"},
        {"aten::layer_norm", "inputs=[[1,5,48],[],[48],[48],[],[]]", NULL, "layernorm x=1x5x48 scale=48 b=48 axis=2"},
        {"aten::softmax", "inputs=[[2,5,7],[],[]] values=[,1,]", NULL, "softmax x=2x5x7 axis=1"},
        {"aten::adaptive_avg_pool2d", "inputs=[" X8 ",[]]", "[1,8,1,1]", "globalavgpool x=1x8x16x16"},
        {"aten::max_pool2d", "inputs=[" X8 ",[],[],[],[],[]] values=[,[3,_3],[2,_2],[1,_1],[1,_1],False]", NULL,
         "maxpool x=1x8x16x16 y=1x8x8x8 kernel=3x3 stride=2x2 pad=1x1x1x1 dilation=1x1"},
        {"aten::cat", "inputs=[[[1,8,4,4],[1,4,4,4]],[]]", NULL, "concat x=1x8x4x4 x2=1x4x4x4 axis=1"},
        {"aten::copy_", "inputs=[[2,3],[2,3],[]] types=[c10::Half,float,Scalar]", NULL, "cast x=2x3 from=f32 to=f16"},
        {"aten::view", "inputs=[" X8 ",[]]", NULL, ""},
        {"aten::relu", "inputs=[[1,99999999999999],[0]]", NULL, ""},
        {"aten::relu", "inputs=[[[[[", NULL, ""},
        /* ONNX Runtime tells results, and no attributes */
        {"Conv", "inputs=[{float:[1,3,8,8]},{float:[4,3,3,3]}] outputs=[{float:[1,4,4,4]}]", NULL,
         "conv x=1x3x8x8 w=4x3x3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1"},
        {"Conv", "inputs=[{float:[1,1,704]},{float:[258,1,256]}] outputs=[{float:[1,258,8]}]", NULL,
         "conv x=1x1x704 w=258x1x256 stride=64 pad=0x0 dilation=1 group=1"},
        {"Conv", "inputs=[{float:[1,1,16000]},{float:[257,1,512]}] outputs=[{float:[1,257,97]}]", NULL,
         "conv x=1x1x16000 w=257x1x512 stride=160 pad=0x0 dilation=1 group=1"},
        {"Gemm", "inputs=[{float:[4,48]},{float:[10,48]},{float:[10]}] outputs=[{float:[4,10]}]", NULL,
         "gemm a=4x48 b=10x48 c=10 transa=0 transb=1"},
        {"MatMul", "inputs=[{float16:[1,5,48]},{float16:[48,10]}] outputs=[{float16:[1,5,10]}]", NULL,
         "f16 matmul a=1x5x48 b=48x10"},
    };
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_arena arena = {0};
        bz_rebuilt r;
        made_up m = begin();
        add(&m, CASES[i].name, CASES[i].detail, 10, false);
        if (CASES[i].next)
            add(&m, "aten::flatten", bz_arena_printf(&arena, "inputs=[%s,[],[]]", CASES[i].next), 5, false);
        rebuild(&m, &arena, &r);
        const char *keys = keys_of(&r, &arena);
        if (strcmp(keys, CASES[i].keys) != 0) {
            print_error("%s %s: '%s' is not '%s'\n", CASES[i].name, CASES[i].detail, keys, CASES[i].keys);
            wrong++;
        }
        bz_arena_free(&arena);
        bz_trace_free(m.t);
    }
    assert_int_equal(wrong, 0);
}

/* "1x2x3" of a number of base 4: its digits are sizes, 0 begins the shape. Returns whether it is one. */
static bool shape_of(int number, char text[16], char list[16], int dim[3])
{
    int rank = 0, used = 0, digit[3] = {number / 16, number / 4 % 4, number % 4};
    strcpy(list, "[");
    for (int k = 0; k < 3; k++) {
        if (!digit[k] && rank)
            return false;
        dim[k] = digit[k] ? digit[k] : 1;
        if (!digit[k])
            continue;
        snprintf(list + strlen(list), 4, rank ? ",%d" : "%d", digit[k]);
        used += snprintf(text + used, 4, rank ? "x%d" : "%d", digit[k]);
        rank++;
    }
    strcat(list, "]");
    return rank > 0;
}

/* Operators of two tensors are layers where each dimension, from the last one on, is the same in both or 1 in one of them. Where they
 * do not fit, the operators around them stay. */
static void broadcasts(void **state)
{
    (void)state;
    static const char *const NAMES[][2] = {
        {"aten::add", "add"}, {"aten::sub", "sub"}, {"aten::mul", "mul"}, {"aten::div", "div"}};
    for (int a = 1; a < 64; a++)
        for (int b = 1; b < 64; b++) {
            char text[2][16], list[2][16], expected[64] = "relu x=5x7";
            int dim[2][3];
            if (!shape_of(a, text[0], list[0], dim[0]) || !shape_of(b, text[1], list[1], dim[1]))
                continue;
            bool fits = true;
            for (int k = 0; k < 3; k++)
                fits &= dim[0][k] == dim[1][k] || dim[0][k] == 1 || dim[1][k] == 1;
            const char *const *name = NAMES[(a + b) % 4];
            if (fits)
                snprintf(expected, sizeof expected, "relu x=5x7 + %s a=%s b=%s", name[1], text[0], text[1]);
            bz_arena arena = {0};
            bz_rebuilt r;
            made_up m = begin();
            add(&m, "aten::relu", "inputs=[[5,7]]", 10, false);
            add(&m, name[0], bz_arena_printf(&arena, "inputs=[%s,%s,[]]", list[0], list[1]), 10, false);
            rebuild(&m, &arena, &r);
            assert_string_equal(keys_of(&r, &arena), expected);
            bz_arena_free(&arena);
            bz_trace_free(m.t);
        }
}

/* Of operators within each other one counts: the outermost that is known. */
static void nested(void **state)
{
    bz_arena arena = {0};
    bz_rebuilt r;
    made_up m = begin();
    (void)state;
    add(&m, "aten::something", "inputs=[[4,48]]", 50, true);
    add(&m, "aten::linear", "inputs=[[4,48],[10,48],[10]]", 20, true);
    add(&m, "aten::addmm", "inputs=[[10],[4,48],[48,10],[],[]]", 10, false);
    m.now = 60;
    add(&m, "aten::unheard_of", "inputs=[[4,10]]", 10, false);
    rebuild(&m, &arena, &r);
    assert_string_equal(keys_of(&r, &arena), "gemm a=4x48 b=10x48 c=10 transa=0 transb=1");
    assert_string_equal(r.left_out, "1 aten::unheard_of");
    assert_string_equal(r.of, "operators");
    assert_int_equal(r.made_by[0], 1);
    assert_false(r.partial);
    bz_arena_free(&arena);
    bz_trace_free(m.t);
}

/* The way back of training is no layer, and the rest is then no whole. */
static void training(void **state)
{
    bz_arena arena = {0};
    bz_rebuilt r;
    made_up m = begin();
    (void)state;
    add(&m, "aten::relu", "inputs=[[4,48]]", 10, false);
    add(&m, "ReluBackward0", "inputs=[[4,48]]", 20, true);
    add(&m, "aten::mul", "inputs=[[4,48],[4,48]]", 10, false);
    m.now = 100;
    bz_trace_add(m.t, BZ_EVENT_RANGE, 100, 150, bz_trace_text(m.t, "Optimizer.step#SGD.step"), m.lane);
    add(&m, "aten::add_", "inputs=[[48],[48],[]]", 10, false);
    rebuild(&m, &arena, &r);
    assert_string_equal(keys_of(&r, &arena), "relu x=4x48");
    assert_true(r.partial);
    assert_string_equal(r.left_out, "2 of the way back of training");
    bz_arena_free(&arena);
    bz_trace_free(m.t);
}

/* Where a device was recorded, what launched nothing is no layer. */
static void device(void **state)
{
    bz_arena arena = {0};
    bz_rebuilt r;
    made_up m = begin();
    (void)state;
    add(&m, "aten::div", "inputs=[[3,8,8],[]]", 10, false);
    uint32_t stream = bz_trace_stream(m.t, 0, 1, 0, 0, 7);
    size_t api = bz_trace_add(m.t, BZ_EVENT_API, m.now + 2, m.now + 4, bz_trace_text(m.t, "cudaLaunchKernel"), m.lane);
    size_t k = bz_trace_add(m.t, BZ_EVENT_KERNEL, m.now + 5, m.now + 9, bz_trace_text(m.t, "relu"), stream);
    m.t->event[BZ_EVENT_API].correlation[api] = m.t->event[BZ_EVENT_KERNEL].correlation[k] = 5;
    add(&m, "aten::relu", "inputs=[[4,48]]", 10, false);
    rebuild(&m, &arena, &r);
    assert_string_equal(keys_of(&r, &arena), "relu x=4x48");
    bz_arena_free(&arena);
    bz_trace_free(m.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators), cmocka_unit_test(broadcasts),
                                       cmocka_unit_test(nested), cmocka_unit_test(training), cmocka_unit_test(device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
