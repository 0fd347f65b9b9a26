/* Arenas and buffers: alignment, zeroes, growth, numbers. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void arena_is_aligned_and_zeroed(void **state)
{
    (void)state;
    bz_arena a = {0};
    for (int round = 0; round < 2; round++) {
        for (size_t size = 1; size < 200000; size = size * 3 / 2 + 1) {
            unsigned char *p = bz_arena_alloc(&a, size);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xff, size); /* must not reach what is handed out later */
        }
        bz_arena_free(&a);
        assert_null(a.block);
        assert_int_equal(a.used, 0);
    }
}

/* Libraries that allocate through an arena take NULL for a failure. */
static void arena_never_returns_null(void **state)
{
    (void)state;
    bz_arena a = {0};
    assert_non_null(bz_arena_alloc(&a, 0));
    assert_non_null(bz_arena_array(&a, 0, 8));
    assert_non_null(bz_arena_dup(&a, NULL, 0));
    bz_arena_free(&a);
    bz_arena_free(&a);
}

static void arena_copies(void **state)
{
    (void)state;
    bz_arena a = {0};
    char text[] = "name";
    char *copy = bz_arena_str(&a, text), *part = bz_arena_strn(&a, text, 2), *empty = bz_arena_strn(&a, NULL, 0);
    char *printed = bz_arena_printf(&a, "%s_%05d", text, 42);
    memset(text, 'x', sizeof text);
    assert_string_equal(copy, "name");
    assert_string_equal(part, "na");
    assert_string_equal(empty, "");
    assert_string_equal(printed, "name_00042");
    int *old = BZ_NEW(&a, int, 3);
    for (int i = 0; i < 3; i++)
        old[i] = i + 1;
    int *grown = bz_arena_grow(&a, old, 3, 6, sizeof *old);
    for (int i = 0; i < 6; i++)
        assert_int_equal(grown[i], i < 3 ? i + 1 : 0);
    assert_int_equal(old[2], 3);
    bz_arena_free(&a);
}

static void buf_grows_and_is_terminated(void **state)
{
    (void)state;
    bz_buf b = {0};
    assert_string_equal(bz_buf_text(&b), "");
    for (int i = 0; i < 5000; i++) {
        bz_buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(b.len, i + 1);
        assert_int_equal(b.data[b.len], 0);
    }
    assert_int_equal(b.data[4999], 'a' + 4999 % 26);
    bz_buf_clear(&b);
    assert_string_equal(bz_buf_text(&b), "");
    bz_buf_printf(&b, "%d %s", 7, "sins");
    memcpy(bz_buf_extend(&b, 3), "abc", 3);
    bz_buf_put(&b, NULL, 0);
    assert_string_equal(bz_buf_text(&b), "7 sinsabc");
    bz_buf_free(&b);
    assert_string_equal(bz_buf_text(&b), "");
}

static void buf_formats_integers(void **state)
{
    (void)state;
    static const int64_t V[] = {0, 1, -1, 9, 10, -10, 1234567890123, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        bz_buf b = {0};
        char expected[32];
        snprintf(expected, sizeof expected, "%lld", (long long)V[i]);
        bz_buf_int(&b, V[i]);
        assert_string_equal(bz_buf_text(&b), expected);
        bz_buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_is_aligned_and_zeroed),
        cmocka_unit_test(arena_never_returns_null),
        cmocka_unit_test(arena_copies),
        cmocka_unit_test(buf_grows_and_is_terminated),
        cmocka_unit_test(buf_formats_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
