/* Sorting by several ways: each gives what qsort gives, for lists in all sorts of order. */
#include "base/base.h"
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3000, GROUPS = 7 };

typedef struct {
    int64_t key;
    uint32_t group, place; /* place: where it stood; tells whether equal ones kept their order */
} item;

static int by_key_and_place(const void *a, const void *b)
{
    const item *p = a, *q = b;
    return BZ_THEN(BZ_ORDER(p->key, q->key), BZ_ORDER(p->place, q->place));
}

static int by_group_and_place(const void *a, const void *b)
{
    const item *p = a, *q = b;
    return BZ_THEN(BZ_ORDER(p->group, q->group), BZ_ORDER(p->place, q->place));
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20;
}

/* How the lists come: each gives the key of place i of n. */
static int64_t by_chance(size_t i, size_t n, uint64_t *seed)
{
    (void)i, (void)n;
    return (int64_t)next(seed) - ((int64_t)1 << 42);
}
static int64_t in_order(size_t i, size_t n, uint64_t *seed)
{
    (void)n, (void)seed;
    return (int64_t)i - 100;
}
static int64_t backwards(size_t i, size_t n, uint64_t *seed)
{
    (void)seed;
    return (int64_t)(n - i);
}
static int64_t in_pieces(size_t i, size_t n, uint64_t *seed) /* five sorted ones behind one another, with equal keys */
{
    (void)seed;
    return (int64_t)(i % (n / 5 + 1)) / 3;
}
static int64_t all_alike(size_t i, size_t n, uint64_t *seed)
{
    (void)i, (void)n, (void)seed;
    return -7;
}
static int64_t at_the_ends(size_t i, size_t n, uint64_t *seed)
{
    (void)i, (void)n;
    uint64_t v = next(seed);
    return v % 3 ? (v % 3 == 1 ? INT64_MIN : INT64_MAX) : (int64_t)(v % 5) - 2;
}

static int64_t (*const ORDERS[])(size_t, size_t, uint64_t *) = {by_chance, in_order,  backwards,
                                                                in_pieces, all_alike, at_the_ends};
static const size_t SIZES[] = {0, 1, 2, 3, 65, 255, 257, 1000, MOST};

static void each_way_sorts(void **state)
{
    (void)state;
    static item list[MOST], expected[MOST];
    static int64_t times[MOST];
    uint64_t seed = 3;
    for (size_t o = 0; o < sizeof ORDERS / sizeof *ORDERS; o++)
        for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
            size_t n = SIZES[s];
            for (size_t i = 0; i < n; i++) {
                list[i] = (item){ORDERS[o](i, n, &seed), (uint32_t)(next(&seed) % GROUPS), (uint32_t)i};
                times[i] = list[i].key;
            }
            memcpy(expected, list, sizeof list);
            bz_sort_groups(list, n, sizeof *list, offsetof(item, group), GROUPS);
            qsort(expected, n, sizeof *expected, by_group_and_place);
            assert_memory_equal(list, expected, n * sizeof *list);
            qsort(list, n, sizeof *list, by_key_and_place);
            for (size_t i = 0; i < n; i++)
                expected[i] = list[i];
            for (size_t i = 0; i < n; i++)
                list[expected[i].place] = expected[i]; /* as they came */
            bz_sort(list, n, sizeof *list, by_key_and_place);
            assert_memory_equal(list, expected, n * sizeof *list);
            bz_sort_times(times, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(times[i], expected[i].key);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_way_sorts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
