/* operands [time]
 *
 * What is brought to the device; and what is looked at of a result, against the result read whole: of all types, in all layouts,
 * with a NaN somewhere. */
#include "base/progress.h"
#include "runtime/cuda/cuda.h"
#include "runtime/values.h"
#include "tests/standin/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <math.h>

/* What lies in memory. */
typedef struct result {
    bz_operand o;
    bz_cuda_layout layout;
    unsigned char *data;
    size_t size;
} result;

static bz_operand operand_of(const char *text)
{
    bz_problem p;
    bz_operand o[BZ_PROBLEM_OPERANDS];
    bz_error err;
    if (bz_problem_parse(text, &p, &err))
        fail_msg("%s", err.text);
    return o[bz_problem_operands(&p, o) - 1];
}

static unsigned dice(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

/* Bits by chance, each of them a number: what is none is halved until it is. */
static result make(const char *text, bool channels_last)
{
    result r = {.o = operand_of(text)};
    r.layout = channels_last ? bz_cuda_channels_last(&r.o) : bz_cuda_plain(&r.o);
    r.size = (size_t)bz_dtype_bits(r.o.dtype) / 8;
    r.data = malloc((size_t)r.o.count * r.size);
    for (int64_t i = 0; i < r.o.count; i++)
        do
            for (size_t k = 0; k < r.size; k++)
                r.data[(size_t)i * r.size + k] = (unsigned char)dice();
        while (!bz_values_are_numbers(r.o.dtype, r.data + (size_t)i * r.size, 1));
    return r;
}

static const char *const TYPES[] = {"f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "i8", "u8", "i32"};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

static void same_as_read(void **state)
{
    (void)state;
    bz_cuda c = {0};
    for (int i = 0; i < 2 * N_TYPES; i++) {
        char text[200];
        snprintf(text, sizeof text, "activation fn=relu x=3x37x%dx7 dtype=%s", 2 + i, TYPES[i / 2]);
        result r = make(text, i % 2);
        int n = (int)r.o.count;
        float *all = malloc((size_t)n * sizeof *all), *some = malloc((size_t)n * sizeof *some);
        int64_t *element = malloc((size_t)n * sizeof *element);
        for (int k = 0; k < n; k++)
            element[k] = (int64_t)k * 11 % n;
        assert_int_equal(bz_cuda_operand_read(&c, &r.o, &r.layout, r.data, all, NULL), 0);
        assert_int_equal(bz_cuda_operand_probe(&c, &r.o, &r.layout, r.data, element, n, some, NULL), 0);
        for (int k = 0; k < n; k++)
            assert_true(all[element[k]] == some[k]);
        free(all);
        free(some);
        free(element);
        free(r.data);
    }
    bz_cuda_close(&(bz_cuda){.borrowed = true, .host = c.host});
}

/* Whatever one element is and wherever it lies: a NaN is one by its decoded value, and by its bits. */
static void sees_what_is_no_number(void **state)
{
    (void)state;
    bz_cuda c = {0};
    for (int type = 0; type < 6; type++) { /* the floats */
        char text[200];
        snprintf(text, sizeof text, "activation fn=relu x=1x3x50x61 dtype=%s", TYPES[type]);
        result r = make(text, false);
        for (int i = 0; i < 300; i++) {
            int64_t where = i < 2 ? i * (r.o.count - 1) : dice() % r.o.count, element = 0;
            unsigned char *at = r.data + (size_t)where * r.size, before[8];
            float value;
            memcpy(before, at, r.size);
            for (size_t k = 0; k < r.size; k++)
                at[k] = (unsigned char)(i < 3 ? 0xff : dice() | (k + 2 >= r.size ? 0x7c : 0)); /* often one */
            bz_values_decode(r.o.dtype, at, &value, 1);
            assert_int_equal(bz_cuda_operand_probe(&c, &r.o, &r.layout, r.data, &element, 1, &value, NULL),
                             (bz_values_decode(r.o.dtype, at, &value, 1), isnan(value)));
            memcpy(at, before, r.size);
        }
        free(r.data);
    }
    bz_cuda_close(&(bz_cuda){.borrowed = true, .host = c.host});
}

/* What nobody writes lies around it: it is read. */
static void leaves_borders_alone(void **state)
{
    (void)state;
    bz_cuda c = {0};
    result r = make("activation fn=relu x=1x2x3x4 dtype=f32", false);
    int64_t element = 0;
    float value;
    r.layout.elements += 8;
    assert_int_equal(bz_cuda_operand_probe(&c, &r.o, &r.layout, r.data, &element, 1, &value, NULL), 1);
    free(r.data);
}

/* A dimension in parts, the last one first, as pages of keys lie: what is read is what is at its place. */
static void reads_parts(void **state)
{
    enum { N = 2 * 3 * 8 * 5, PAGE = 4, WHOLE = 3 * PAGE * 5 };
    (void)state;
    bz_cuda c = {0};
    result r = make("activation fn=relu x=2x3x8x5 dtype=f32", false);
    float plain[N], probed;
    int64_t element = 7;
    r.layout.stride[0] = -2 * WHOLE;
    r.layout.stride[1] = PAGE * 5;
    r.layout.stride[2] = -WHOLE;
    r.layout.offset = 3 * WHOLE;
    r.layout.split = 2;
    r.layout.split_size = PAGE;
    r.layout.split_stride = 5;
    assert_int_equal(bz_cuda_operand_read(&c, &r.o, &r.layout, r.data, plain, NULL), 0);
    for (int i = 0; i < N; i++) {
        int b = i / 120, h = i / 40 % 3, s = i / 5 % 8, d = i % 5, page = 3 - (2 * b + s / PAGE);
        assert_true(plain[i] == ((float *)(void *)r.data)[page * WHOLE + h * PAGE * 5 + s % PAGE * 5 + d]);
    }
    assert_int_equal(bz_cuda_operand_probe(&c, &r.o, &r.layout, r.data, &element, 1, &probed, NULL), 1); /* read it */
    free(r.data);
    bz_cuda_close(&(bz_cuda){.borrowed = true, .host = c.host});
}

/* What is brought to the device is there, of all types, however it lies; a border around it is what fills it, and a result is 0. */
static void brings_operands(void **state)
{
    (void)state;
    bz_cuda c = {0};
    for (int i = 0; i < 3 * N_TYPES; i++) {
        char text[200];
        bz_problem p;
        bz_operand o[BZ_PROBLEM_OPERANDS];
        bz_error err;
        snprintf(text, sizeof text, "activation fn=relu x=2x19x4x5 dtype=%s", TYPES[i / 3]);
        assert_int_equal(bz_problem_parse(text, &p, &err), 0);
        assert_int_equal(bz_problem_operands(&p, o), 2);
        float value[2 * 19 * 4 * 5], back[2 * 19 * 4 * 5];
        bz_values_fill(&p, &o[0], 0, value);
        bz_cuda_operands set = {
            .job =
                &(bz_job){.problem = &p, .n_operands = 2, .operand = o, .value = (const float *const[]){value, NULL}}};
        bz_cuda_layout l = i % 3 == 1 ? bz_cuda_channels_last(&o[0]) : bz_cuda_plain(&o[0]), wide = l;
        void *data, *made;
        if (i % 3 == 2)
            wide.elements += 8, wide.offset = 4, wide.fill = 1;
        assert_int_equal(bz_cuda_operand_get(&set, 0, &wide, &data, NULL), 0);
        assert_int_equal(bz_cuda_operand_read(&c, &o[0], &wide, data, back, NULL), 0);
        assert_memory_equal(back, value, sizeof back);
        bz_values_decode(wide.dtype, data, back, 1);
        assert_true(i % 3 < 2 || back[0] == 1);
        assert_int_equal(bz_cuda_operand_get(&set, 1, &l, &made, NULL), 0);
        assert_int_equal(bz_cuda_operand_read(&c, &o[1], &l, made, back, NULL), 0);
        for (int k = 0; k < o[1].count; k++)
            assert_true(back[k] == 0);
        bz_cuda_operands_free(&set);
    }
    bz_cuda_close(&(bz_cuda){.borrowed = true, .host = c.host});
}

/* `operands time`: what bringing an operand costs, and looking at a result, besides their ways to and from the device. */
static int time_both(void)
{
    static const char *const TEXTS[] = {"activation fn=relu x=32x64x112x112 dtype=f16",
                                        "activation fn=relu x=32x256x56x56 dtype=f32"};
    bz_cuda c = {0};
    for (int i = 0; i < 4; i++) {
        result r = {.o = operand_of(TEXTS[i / 2])};
        r.layout = i % 2 ? bz_cuda_channels_last(&r.o) : bz_cuda_plain(&r.o);
        r.data = calloc((size_t)r.o.count, 4);
        float *all = calloc((size_t)r.o.count, sizeof *all);
        int64_t element[512];
        for (int k = 0; k < 512; k++)
            element[k] = k * (r.o.count / 512);
        double seconds[2] = {INFINITY, INFINITY};
        for (int k = 0; k < 6; k++) {
            double from = bz_now();
            if (k % 2 ? bz_cuda_operand_probe(&c, &r.o, &r.layout, r.data, element, 512, all, NULL)
                      : bz_cuda_operand_read(&c, &r.o, &r.layout, r.data, all, NULL))
                return 1;
            seconds[k % 2] = fmin(seconds[k % 2], bz_now() - from);
        }
        bz_cuda_operands set = {.job = &(bz_job){.operand = &r.o, .value = (const float *const[]){all}}};
        void *data;
        clock_t from = clock(); /* the processor's time: another program may have it meanwhile */
        if (bz_cuda_operand_get(&set, 0, &r.layout, &data, NULL))
            return 1;
        printf("%s, %s: brought %.1f ms, read %.1f ms, probe %.1f ms\n", TEXTS[i / 2],
               i % 2 ? "channels last" : "plain", 1e3 * (double)(clock() - from) / CLOCKS_PER_SEC, 1e3 * seconds[0],
               1e3 * seconds[1]);
        bz_cuda_operands_free(&set);
        free(all);
        free(r.data);
    }
    bz_cuda_close(&(bz_cuda){.borrowed = true, .host = c.host});
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "time"))
        return time_both();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_read),         cmocka_unit_test(sees_what_is_no_number),
        cmocka_unit_test(leaves_borders_alone), cmocka_unit_test(reads_parts),
        cmocka_unit_test(brings_operands),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    standin_reset();
    bz_buf_free(&standin_text);
    return bad;
}
