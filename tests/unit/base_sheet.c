/* Sheets: what a description of columns means. */
#include "base/sheet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void columns_have_keys_titles_and_units(void **state)
{
    static const struct {
        const char *columns;
        bz_sheet_column is[3];
        int n;
    } CASES[] = {
        {"", {{0}}, 0},
        {"name", {{"name", "name", BZ_SHEET_TEXT}}, 1},
        {"name=the kernel: a|t:s|rate:B/s=so = fast",
         {{"name", "the kernel: a", BZ_SHEET_TEXT}, {"t", "t", BZ_SHEET_SECONDS}, {"rate", "so = fast", BZ_SHEET_RATE}},
         3},
        {"a:-|b:%=of all|c:M",
         {{"a", "a", BZ_SHEET_DETAIL}, {"b", "of all", BZ_SHEET_SHARE}, {"c", "c", BZ_SHEET_LARGE}},
         3},
        {"a:n|b:B", {{"a", "a", BZ_SHEET_COUNT}, {"b", "b", BZ_SHEET_BYTES}}, 2},
    };
    bz_arena arena = {0};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const bz_sheet_column *column;
        assert_int_equal(bz_sheet_columns(CASES[i].columns, &arena, &column), CASES[i].n);
        for (int k = 0; k < CASES[i].n; k++) {
            assert_string_equal(column[k].key, CASES[i].is[k].key);
            assert_string_equal(column[k].title, CASES[i].is[k].title);
            assert_int_equal(column[k].type, CASES[i].is[k].type);
        }
    }
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_have_keys_titles_and_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
