/* Payloads of every data type in every form a file may hold them. */
#include "writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Loads a model whose only initializer is `t` (field: dense or sparse); takes `t` over. */
static int load_tensor(bz_buf t, uint32_t field, bz_buf *bytes, bz_model **model, bz_error *err)
{
    bz_buf graph = {0};
    put_message(&graph, field, t);
    *bytes = a_model(8, 17, graph);
    return bz_model_parse(bytes->data, bytes->len, "test", model, err);
}

static const bz_tensor *only_tensor(const bz_model *m)
{
    assert_int_equal(m->n_values, 1);
    assert_non_null(m->values[0].init);
    return m->values[0].init;
}

static void ints_are(bz_buf t, uint32_t field, const int64_t *expected, int64_t n)
{
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    if (load_tensor(t, field, &bytes, &m, &err))
        fail_msg("%s", err.text);
    const bz_tensor *read = only_tensor(m);
    assert_int_equal(read->n, n);
    int64_t *v = bz_alloc((size_t)n, sizeof *v);
    if (bz_tensor_ints(m, read, v, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(v[i], expected[i]);
    free(v);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void reals_are(bz_buf t, uint32_t field, const double *expected, int64_t n)
{
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    if (load_tensor(t, field, &bytes, &m, &err))
        fail_msg("%s", err.text);
    const bz_tensor *read = only_tensor(m);
    assert_int_equal(read->n, n);
    double *v = bz_alloc((size_t)n, sizeof *v);
    if (bz_tensor_reals(m, read, v, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < n; i++)
        assert_true(v[i] == expected[i] || (isnan(v[i]) && isnan(expected[i])));
    free(v);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

/* The payload cannot be read, and the sentence says why. */
static void read_fails(bz_buf t, uint32_t field, const char *why)
{
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    if (load_tensor(t, field, &bytes, &m, &err))
        fail_msg("%s", err.text);
    const bz_tensor *read = only_tensor(m);
    int64_t ints[64];
    double reals[64];
    assert_in_range(read->n, 0, 64);
    assert_int_equal(bz_dtype_is_float(read->dtype) ? bz_tensor_reals(m, read, reals, &err)
                                                    : bz_tensor_ints(m, read, ints, &err),
                     -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void load_fails(bz_buf t, uint32_t field, const char *why)
{
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(load_tensor(t, field, &bytes, &m, &err), -1);
    assert_null(m);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_buf_free(&bytes);
}

typedef struct {
    bz_dtype dtype;
    uint32_t typed; /* the field for it */
    int bytes;
    int64_t v[4];
} int_case;

static const int_case INTS[] = {
    {BZ_I8, TENSOR_INT32S, 1, {0, 127, -128, -1}},
    {BZ_U8, TENSOR_INT32S, 1, {0, 127, 128, 255}},
    {BZ_I16, TENSOR_INT32S, 2, {0, 32767, -32768, -1}},
    {BZ_U16, TENSOR_INT32S, 2, {0, 1, 32768, 65535}},
    {BZ_I32, TENSOR_INT32S, 4, {0, INT32_MAX, INT32_MIN, -1}},
    {BZ_U32, TENSOR_UINT64S, 4, {0, 1, 2147483648, 4294967295}},
    {BZ_I64, TENSOR_INT64S, 8, {0, INT64_MAX, INT64_MIN, -1}},
    {BZ_U64, TENSOR_UINT64S, 8, {0, 1, INT64_MAX, 77}},
    {BZ_BOOL, TENSOR_INT32S, 1, {0, 1, 1, 0}},
};
enum { N_INTS = sizeof INTS / sizeof *INTS };

static void integers_raw(void **state)
{
    (void)state;
    for (int i = 0; i < N_INTS; i++) {
        uint8_t raw[32];
        for (int k = 0; k < 4 * INTS[i].bytes; k++)
            raw[k] = (uint8_t)((uint64_t)INTS[i].v[k / INTS[i].bytes] >> 8 * (k % INTS[i].bytes));
        ints_are(a_raw_tensor("t", INTS[i].dtype, "2x2", raw, (size_t)(4 * INTS[i].bytes)), GRAPH_INIT, INTS[i].v, 4);
    }
}

static void integers_packed(void **state)
{
    (void)state;
    for (int i = 0; i < N_INTS; i++) {
        bz_buf t = a_tensor("t", INTS[i].dtype, "4"), packed = {0};
        for (int k = 0; k < 4; k++)
            put_varint(&packed, (uint64_t)INTS[i].v[k]);
        put_message(&t, INTS[i].typed, packed);
        ints_are(t, GRAPH_INIT, INTS[i].v, 4);
    }
}

static void integers_one_by_one(void **state)
{
    (void)state;
    for (int i = 0; i < N_INTS; i++) {
        bz_buf t = a_tensor("t", INTS[i].dtype, "1x4x1");
        for (int k = 0; k < 4; k++)
            put_int(&t, INTS[i].typed, INTS[i].v[k]);
        ints_are(t, GRAPH_INIT, INTS[i].v, 4);
    }
}

/* A repeated field may come in several pieces, packed and not. */
static void integers_in_pieces(void **state)
{
    (void)state;
    static const int64_t V[] = {5, -6, 7, 8, 9};
    bz_buf t = {0}, first = {0}, second = {0};
    put_varint(&first, 5);
    put_varint(&first, (uint64_t)-6);
    put_varint(&second, 8);
    put_varint(&second, 9);
    put_message(&t, TENSOR_INT64S, first);
    put_int(&t, TENSOR_INT64S, 7);
    put_message(&t, TENSOR_INT64S, second);
    put_bytes(&t, TENSOR_DIMS, "\005", 1); /* dims packed, behind the payload */
    put_int(&t, TENSOR_DTYPE, BZ_I64);
    put_text(&t, TENSOR_NAME, "t");
    ints_are(t, GRAPH_INIT, V, 5);
}

/* Writers that sign-extend what has no sign must not make a negative size of it. */
static void unsigned_numbers_stay_unsigned(void **state)
{
    (void)state;
    static const struct {
        bz_dtype dtype;
        int64_t v;
    } CASES[] = {{BZ_U8, 255}, {BZ_U16, 65535}, {BZ_U32, 4294967295}};
    for (int i = 0; i < 3; i++) {
        bz_buf t = a_tensor("t", CASES[i].dtype, "1");
        put_int(&t, TENSOR_INT32S, -1);
        ints_are(t, GRAPH_INIT, &CASES[i].v, 1);
    }
}

static void empty_and_scalar(void **state)
{
    (void)state;
    static const int64_t SEVEN[] = {7};
    ints_are(a_tensor("t", BZ_I64, "0"), GRAPH_INIT, NULL, 0);
    ints_are(a_tensor("t", BZ_I64, "3x0x2"), GRAPH_INIT, NULL, 0);
    bz_buf bytes;
    bz_model *m;
    assert_int_equal(load_tensor(a_tensor("t", BZ_I64, ""), GRAPH_INIT, &bytes, &m, NULL), 0);
    assert_non_null(only_tensor(m)->dims); /* so that it can be copied like any other */
    bz_model_free(m);
    bz_buf_free(&bytes);
    ints_are(a_raw_tensor("t", BZ_I64, "", "\007\0\0\0\0\0\0", 8), GRAPH_INIT, SEVEN, 1);
}

static void halves(void **state)
{
    (void)state;
    static const uint16_t BITS[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3555, 0x7bff,
                                    0x0400, 0x0001, 0x7c00, 0xfc00, 0x7e00};
    static const double V[] = {
        0, -0.0, 1, -1, 0.333251953125, 65504, 0x1p-14, 0x1p-24, (double)INFINITY, -(double)INFINITY, (double)NAN};
    uint8_t raw[22];
    bz_buf typed = a_tensor("t", BZ_F16, "11"), packed = {0};
    for (int i = 0; i < 11; i++) {
        raw[2 * i] = (uint8_t)BITS[i];
        raw[2 * i + 1] = (uint8_t)(BITS[i] >> 8);
        put_varint(&packed, BITS[i]);
    }
    reals_are(a_raw_tensor("t", BZ_F16, "11", raw, sizeof raw), GRAPH_INIT, V, 11);
    put_message(&typed, TENSOR_INT32S, packed);
    reals_are(typed, GRAPH_INIT, V, 11);
}

static void brain_floats(void **state)
{
    (void)state;
    static const double V[] = {1, -2.5, (double)INFINITY};
    reals_are(a_raw_tensor("t", BZ_BF16, "3", "\x80\x3f\x20\xc0\x80\x7f", 6), GRAPH_INIT, V, 3);
    bz_buf typed = a_tensor("t", BZ_BF16, "3");
    put_int(&typed, TENSOR_INT32S, 0x3f80);
    put_int(&typed, TENSOR_INT32S, 0xc020);
    put_int(&typed, TENSOR_INT32S, 0x7f80);
    reals_are(typed, GRAPH_INIT, V, 3);
}

static void floats_and_doubles(void **state)
{
    (void)state;
    static const float F[] = {1.5f, -0.1f, 3e38f, 1e-45f};
    static const double D[] = {1.5, -0.1, 1e308, 5e-324};
    double wide[4];
    for (int i = 0; i < 4; i++)
        wide[i] = (double)F[i];
    /* the host is little-endian like the format */
    reals_are(a_raw_tensor("t", BZ_F32, "4", F, sizeof F), GRAPH_INIT, wide, 4);
    reals_are(a_raw_tensor("t", BZ_F64, "4", D, sizeof D), GRAPH_INIT, D, 4);
    bz_buf packed_f = a_tensor("t", BZ_F32, "4"), packed_d = a_tensor("t", BZ_F64, "4"), single_f = {0}, single_d = {0};
    put_bytes(&packed_f, TENSOR_FLOATS, F, sizeof F);
    put_bytes(&packed_d, TENSOR_DOUBLES, D, sizeof D);
    reals_are(packed_f, GRAPH_INIT, wide, 4);
    reals_are(packed_d, GRAPH_INIT, D, 4);
    single_f = a_tensor("t", BZ_F32, "4");
    single_d = a_tensor("t", BZ_F64, "4");
    for (int i = 0; i < 4; i++) {
        put_varint(&single_f, TENSOR_FLOATS * 8 + 5);
        bz_buf_put(&single_f, &F[i], 4);
        put_varint(&single_d, TENSOR_DOUBLES * 8 + 1);
        bz_buf_put(&single_d, &D[i], 8);
    }
    reals_are(single_f, GRAPH_INIT, wide, 4);
    reals_are(single_d, GRAPH_INIT, D, 4);
}

static void wrong_lengths(void **state)
{
    (void)state;
    static const uint8_t RAW[40];
    for (size_t n = 0; n <= 40; n++) {
        bz_buf t = a_raw_tensor("t", BZ_I64, "3", RAW, n);
        static const int64_t ZEROES[3];
        if (n == 24)
            ints_are(t, GRAPH_INIT, ZEROES, 3);
        else
            read_fails(t, GRAPH_INIT, n < 24 ? "shorter" : "longer");
    }
    read_fails(a_tensor("t", BZ_I64, "3"), GRAPH_INIT, "shorter");
    read_fails(a_tensor("t", BZ_F32, ""), GRAPH_INIT, "shorter");
    bz_buf broken = a_tensor("t", BZ_I64, "2");
    put_bytes(&broken, TENSOR_INT64S, "\001\x80", 2); /* the second number has no end */
    load_fails(broken, GRAPH_INIT, "a field is not of its type");
}

static void wrong_types(void **state)
{
    (void)state;
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    static const uint8_t RAW[16];
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_STRING, BZ_C64, BZ_C128, BZ_F8E4M3, BZ_U4, BZ_I4, BZ_N_DTYPES};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        int64_t ints[1];
        double reals[1];
        assert_int_equal(load_tensor(a_raw_tensor("t", TYPES[i], "1", RAW, 16), GRAPH_INIT, &bytes, &m, &err), 0);
        assert_int_equal(bz_tensor_ints(m, only_tensor(m), ints, &err), -1);
        assert_int_equal(bz_tensor_reals(m, only_tensor(m), reals, &err), -1);
        bz_model_free(m);
        bz_buf_free(&bytes);
    }
    int64_t one[1];
    double real[1];
    assert_int_equal(load_tensor(a_raw_tensor("t", BZ_F32, "1", RAW, 4), GRAPH_INIT, &bytes, &m, &err), 0);
    assert_int_equal(bz_tensor_ints(m, only_tensor(m), one, &err), -1);
    assert_non_null(strstr(err.text, "'t' should hold integers, but its type is f32"));
    bz_model_free(m);
    bz_buf_free(&bytes);
    assert_int_equal(load_tensor(a_raw_tensor("t", BZ_I32, "1", RAW, 4), GRAPH_INIT, &bytes, &m, &err), 0);
    assert_int_equal(bz_tensor_reals(m, only_tensor(m), real, &err), -1);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void impossible_dimensions(void **state)
{
    (void)state;
    load_fails(a_tensor("t", BZ_F32, "-1"), GRAPH_INIT, "'t' has a negative dimension (-1)");
    load_fails(a_tensor("t", BZ_F32, "-9223372036854775808"), GRAPH_INIT, "negative dimension");
    load_fails(a_tensor("t", BZ_F32, "9223372036854775807"), GRAPH_INIT, "'t': a dimension is impossibly large");
    load_fails(a_tensor("t", BZ_F32, "0x9223372036854775807"), GRAPH_INIT, "'t': a dimension is impossibly large");
    load_fails(a_tensor("t", BZ_F32, "0x281474976710656x281474976710656"), GRAPH_INIT, "more elements than any memory");
    load_fails(a_tensor("t", BZ_F32, "4294967296x4294967296"), GRAPH_INIT, "more elements than any memory");
    load_fails(a_tensor("t", BZ_F32, "3037000500x3037000500x2"), GRAPH_INIT, "more elements than any memory");
    bz_buf many = {0};
    for (int i = 0; i <= BZ_MAX_RANK; i++)
        put_int(&many, TENSOR_DIMS, 1);
    put_text(&many, TENSOR_NAME, "t");
    load_fails(many, GRAPH_INIT, "65 dimensions");
}

/* Sizes that could be, but are not in the file: shape is known, data is not, nothing is allocated. */
static void huge_tensor_without_data(void **state)
{
    (void)state;
    bz_buf bytes;
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(load_tensor(a_tensor("t", BZ_F32, "1048576x1048576x1024"), GRAPH_INIT, &bytes, &m, &err), 0);
    assert_int_equal(only_tensor(m)->n, (int64_t)1 << 50);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static bz_buf a_sparse(const char *dims, const char *nnz, const int64_t *values, const char *index_dims,
                       const int64_t *indices, size_t n_values, size_t n_indices)
{
    bz_buf s = {0};
    put_message(&s, 1, a_raw_tensor("t", BZ_I64, nnz, values, n_values * 8));
    if (index_dims)
        put_message(&s, 2, a_raw_tensor("", BZ_I64, index_dims, indices, n_indices * 8));
    put_dims(&s, 3, dims);
    return s;
}

static void sparse_values_land_at_their_places(void **state)
{
    (void)state;
    static const int64_t V[] = {7, -8}, FLAT[] = {1, 5}, PAIRS[] = {0, 1, 1, 2}, DENSE[] = {0, 7, 0, 0, 0, -8};
    static const int64_t ZEROES[6];
    ints_are(a_sparse("2x3", "2", V, "2", FLAT, 2, 2), GRAPH_SPARSE, DENSE, 6);
    ints_are(a_sparse("2x3", "2", V, "2x2", PAIRS, 2, 4), GRAPH_SPARSE, DENSE, 6);
    ints_are(a_sparse("6", "2", V, "2x1", FLAT, 2, 2), GRAPH_SPARSE, DENSE, 6);
    ints_are(a_sparse("2x3", "0", V, NULL, NULL, 0, 0), GRAPH_SPARSE, ZEROES, 6);
    ints_are(a_sparse("2x3", "0", V, "0", FLAT, 0, 0), GRAPH_SPARSE, ZEROES, 6);
}

static void sparse_that_does_not_fit(void **state)
{
    (void)state;
    static const int64_t V[] = {7, -8, 1, 1, 1, 1, 1}, OUTSIDE[] = {1, 6}, BEFORE[] = {-1, 0}, ROW[] = {0, 1, 2, 0};
    read_fails(a_sparse("2x3", "2", V, "2", OUTSIDE, 2, 2), GRAPH_SPARSE, "index out of range");
    read_fails(a_sparse("2x3", "2", V, "2", BEFORE, 2, 2), GRAPH_SPARSE, "index out of range");
    read_fails(a_sparse("2x3", "2", V, "2x2", ROW, 2, 4), GRAPH_SPARSE, "index out of range");
    read_fails(a_sparse("2x3", "2", V, NULL, NULL, 2, 0), GRAPH_SPARSE, "indices that do not fit");
    read_fails(a_sparse("2x3", "2", V, "3x2", ROW, 2, 4), GRAPH_SPARSE, "indices that do not fit");
    read_fails(a_sparse("6", "7", V, "7", V, 7, 7), GRAPH_SPARSE, "indices that do not fit");
    read_fails(a_sparse("2x3", "2", V, "2", OUTSIDE, 2, 1), GRAPH_SPARSE, "shorter");
    read_fails(a_sparse("2x3", "2", V, "2", ROW, 1, 2), GRAPH_SPARSE, "shorter");
    bz_buf real_index = {0};
    put_message(&real_index, 1, a_raw_tensor("t", BZ_I64, "1", V, 8));
    put_message(&real_index, 2, a_raw_tensor("", BZ_F64, "1", V, 8));
    put_int(&real_index, 3, 4);
    read_fails(real_index, GRAPH_SPARSE, "indices that do not fit");
    bz_buf nameless = {0};
    put_int(&nameless, 3, 4);
    load_fails(nameless, GRAPH_SPARSE, "an initializer has no name");
    load_fails(a_sparse("-2x3", "0", V, NULL, NULL, 0, 0), GRAPH_SPARSE, "negative dimension");
}

static void sparse_reals(void **state)
{
    (void)state;
    static const float V[] = {2.5f};
    static const int64_t AT[] = {2};
    static const double DENSE[] = {0, 0, 2.5};
    bz_buf s = {0};
    put_message(&s, 1, a_raw_tensor("t", BZ_F32, "1", V, sizeof V));
    put_message(&s, 2, a_raw_tensor("", BZ_I64, "1", AT, sizeof AT));
    put_int(&s, 3, 3);
    reals_are(s, GRAPH_SPARSE, DENSE, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_raw),
        cmocka_unit_test(integers_packed),
        cmocka_unit_test(integers_one_by_one),
        cmocka_unit_test(integers_in_pieces),
        cmocka_unit_test(unsigned_numbers_stay_unsigned),
        cmocka_unit_test(empty_and_scalar),
        cmocka_unit_test(halves),
        cmocka_unit_test(brain_floats),
        cmocka_unit_test(floats_and_doubles),
        cmocka_unit_test(wrong_lengths),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(impossible_dimensions),
        cmocka_unit_test(huge_tensor_without_data),
        cmocka_unit_test(sparse_values_land_at_their_places),
        cmocka_unit_test(sparse_that_does_not_fit),
        cmocka_unit_test(sparse_reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
