/* Names of dimensions that say how they follow from others. */
#include "modelproc/dimension.h"
#include "onnx/onnx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* a = 7, past_sequence_length = 1024, s.1 = 3; nothing else is known. */
static bool known(void *context, const char *name, size_t length, int64_t *number)
{
    static const struct {
        const char *name;
        int64_t number;
    } KNOWN[] = {{"a", 7}, {"past_sequence_length", 1024}, {"s.1", 3}, {"big", BZ_MAX_DIM}};
    (void)context;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strlen(KNOWN[i].name) == length && !strncmp(KNOWN[i].name, name, length))
            return *number = KNOWN[i].number, true;
    return false;
}

static void expressions_are_computed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
    } CASES[] = {
        {"past_sequence_length + a", 1031},
        {"past_sequence_length+1", 1025},
        {" 2*a - 4 * (a - 6)", 10},
        {"a // 2", 3},
        {"(a + 1)/2", 4},
        {"a/2*2", 7},
        {"floor(a/2)", 3},
        {"ceiling(a/2)", 4},
        {"Max(1, a, s.1)", 7},
        {"Min(a, s.1)", 3},
        {"a % 4", 3},
        {"-a + 8", 1},
        {"-(2 - a) // 3", 1},
        {"(s.1 - a) // 3 + 2", 0},
        {"(s.1 - a) % 3", 2},
        {"((((a))))", 7},
        {"0", 0},
        {"a - 2 - 3", 2},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t n = -1;
        if (!dimension_compute(CASES[i].text, known, NULL, &n, NULL) || n != CASES[i].number)
            fail_msg("%s is %lld, not %lld", CASES[i].text, (long long)n, (long long)CASES[i].number);
    }
}

static void what_is_none_stays_open(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "",      "a/2",    "a - 8", "a +", "a a",     "(a",       "a)",      "a // 0",    "a / 0",
        "a % 0", "a ** 2", "2.5",   "?",   "sqrt(a)", "Max(a, )", "big + 1", "big * big", "9999999999999999999999",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t n;
        if (dimension_compute(CASES[i], known, NULL, &n, NULL))
            fail_msg("'%s' is %lld", CASES[i], (long long)n);
    }
    char deep[300];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    int64_t n;
    assert_false(dimension_compute(deep, known, NULL, &n, NULL));
    memset(deep, '-', sizeof deep - 1);
    assert_false(dimension_compute(deep, known, NULL, &n, NULL));
}

static void the_first_name_that_is_missing_is_told(void **state)
{
    (void)state;
    int64_t n;
    const char *missing, *text = "a * (b + c)";
    assert_false(dimension_compute(text, known, NULL, &n, &missing));
    assert_ptr_equal(missing, strchr(text, 'b'));
    assert_int_equal(dimension_name(missing), 1);
    assert_false(dimension_compute("a / 2", known, NULL, &n, &missing));
    assert_null(missing);
    assert_int_equal(dimension_name("s0.x_1+2"), 6);
    assert_int_equal(dimension_name("1a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_computed),
        cmocka_unit_test(what_is_none_stays_open),
        cmocka_unit_test(the_first_name_that_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
