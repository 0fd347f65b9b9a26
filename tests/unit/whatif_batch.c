/* The same problem for more items: what grows, what stays, and what nobody knows. */
#include "predict/predict.h"
#include "whatif/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static const struct {
    const char *from;
    double times;
    const char *to; /* NULL: it is not known */
} CASES[] = {
    {"conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f32", 16,
     "conv x=16x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f32"},
    {"conv x=16x3x8x8 w=4x3x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 post=bias,add,relu dtype=f16", 0.25,
     "conv x=4x3x8x8 w=4x3x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 post=bias,add,relu dtype=f16"},
    {"conv x=3x3x8x8 w=4x3x3x3 dtype=f32", 0.5, NULL},
    {"gemm m=8 n=1000 k=512 transb=1 dtype=f32", 4, "gemm m=32 n=1000 k=512 transb=1 dtype=f32"},
    {"gemm m=128 n=128 k=64 batch=12 dtype=f32", 2, "gemm m=128 n=128 k=64 batch=24 dtype=f32"},
    {"gemv m=1000 k=512 dtype=f32", 8, "gemm m=8 n=1000 k=512 transb=1 dtype=f32"},
    {"gemv m=1000 k=512 dtype=f32", 0.5, NULL},
    {"binary fn=add a=2x64x8x8 b=2x64x8x8 dtype=f32", 3, "binary fn=add a=6x64x8x8 b=6x64x8x8 dtype=f32"},
    {"binary fn=mul a=2x64x8x8 b=1x64x1x1 dtype=f32", 3, "binary fn=mul a=6x64x8x8 b=1x64x1x1 dtype=f32"},
    {"matmul a=8x128x64 b=8x64x128 dtype=f32", 2, "matmul a=16x128x64 b=16x64x128 dtype=f32"},
    {"attention q=2x12x128x64 k=2x12x128x64 v=2x12x128x64 dtype=f32", 2,
     "attention q=4x12x128x64 k=4x12x128x64 v=4x12x128x64 dtype=f32"},
    {"lstm seq=10 batch=4 input=32 hidden=64 dtype=f32", 2, "lstm seq=10 batch=8 input=32 hidden=64 dtype=f32"},
    {"softmax x=2x10 axis=1 dtype=f32", 1e9, NULL},
};

static void grown(void **state)
{
    (void)state;
    bz_error err;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_problem p, q, wanted;
        bz_buf text = {0}, want = {0};
        if (bz_problem_parse(CASES[i].from, &p, &err))
            fail_msg("%s: %s", CASES[i].from, err.text);
        bool known = bz_problem_batched(&p, CASES[i].times, &q);
        if (known != (CASES[i].to != NULL))
            fail_msg("%s: %s", CASES[i].from, known ? "known" : "not known");
        if (!known)
            continue;
        if (bz_problem_parse(CASES[i].to, &wanted, &err))
            fail_msg("%s: %s", CASES[i].to, err.text);
        bz_problem_print(&q, &text);
        bz_problem_print(&wanted, &want);
        assert_string_equal(text.data, want.data);
        bz_buf_free(&text);
        bz_buf_free(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
