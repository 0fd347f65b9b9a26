/* The hash table against a table that is searched from front to back. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 600, STEPS = 20000 };

static void agrees_with_a_naive_table(void **state)
{
    (void)state;
    /* short keys, zeros among them, and keys that are the beginning of others */
    char key[KEYS][8];
    size_t len[KEYS];
    uint32_t value[KEYS], n = 0, seed = 7;
    for (int i = 0; i < KEYS; i++) {
        len[i] = (size_t)(i < 8 ? i : 8);
        memset(key[i], 0, sizeof key[i]);
        if (i >= 8)
            memcpy(key[i], &i, sizeof i);
        value[i] = BZ_MAP_NONE;
    }
    bz_map m = {0};
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t i = (seed >> 8) % KEYS, v = seed >> 16, what = (seed >> 4) % 3;
        if (what == 0) {
            assert_int_equal(bz_map_get(&m, key[i], len[i]), value[i]);
            continue;
        }
        n += value[i] == BZ_MAP_NONE;
        if (what == 1) {
            if (value[i] == BZ_MAP_NONE)
                value[i] = v;
            assert_int_equal(bz_map_add(&m, key[i], len[i], v), value[i]);
        } else {
            bz_map_set(&m, key[i], len[i], v);
            value[i] = v;
        }
        assert_int_equal(m.n, n);
    }
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(bz_map_get(&m, key[i], len[i]), value[i]);
    bz_map_free(&m);
    assert_int_equal(bz_map_get(&m, "a", 1), BZ_MAP_NONE);
}

static void empty_key_is_a_key(void **state)
{
    (void)state;
    bz_map m = {0};
    assert_int_equal(bz_map_get(&m, "", 0), BZ_MAP_NONE);
    assert_int_equal(bz_map_add(&m, "", 0, 5), 5);
    assert_int_equal(bz_map_get(&m, "x", 0), 5);
    assert_int_equal(bz_map_add(&m, "x", 1, 6), 6);
    assert_int_equal(bz_map_get(&m, NULL, 0), 5);
    assert_int_equal(m.n, 2);
    bz_map_free(&m);
}

/* Keys are numbered as they come, and copied: what they lay in may change. */
static void keys_are_numbered(void **state)
{
    (void)state;
    bz_map m = {0};
    bz_arena arena = {0};
    char text[] = "a";
    assert_int_equal(bz_map_number(&m, &arena, text, 1), 0);
    *text = 'b';
    assert_int_equal(bz_map_number(&m, &arena, text, 1), 1);
    *text = 'a';
    assert_int_equal(bz_map_number(&m, &arena, text, 1), 0);
    assert_int_equal(bz_map_number(&m, &arena, "", 0), 2);
    assert_int_equal(bz_map_number(&m, &arena, "b", 1), 1);
    assert_int_equal(m.n, 3);
    bz_map_free(&m);
    bz_arena_free(&arena);
}

/* Test vectors of XXH3-128 with seed 0: the hash names files that must not change their names. */
static void hash_is_xxh3(void **state)
{
    (void)state;
    char hex[33];
    bz_hash_hex(bz_hash_bytes("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    bz_hash_hex((bz_hash){1, 0xab}, hex);
    assert_string_equal(hex, "000000000000000100000000000000ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_naive_table),
        cmocka_unit_test(empty_key_is_a_key),
        cmocka_unit_test(keys_are_numbered),
        cmocka_unit_test(hash_is_xxh3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
