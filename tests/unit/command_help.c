/* The list of commands: each summary begins in the same column, wherever in the list the longest name stands. */
#include "command/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void summaries_stand_in_one_column(void **state)
{
    (void)state;
    static const bz_command A = {.name = "db a", .summary = "first"}, B = {.name = "db bcd", .summary = "second"},
                            LONG = {.name = "db longest", .summary = "third"};
    static const bz_command *const ORDERS[][3] = {{&LONG, &A, &B}, {&A, &LONG, &B}, {&A, &B, &LONG}};
    for (int i = 0; i < 3; i++) {
        bz_buf out = {0};
        bz_help_commands("db", "what it is about", ORDERS[i], 3, false, &out);
        const char *text = bz_buf_text(&out);
        assert_ptr_equal(strstr(text, "usage: benanza db COMMAND"), text);
        assert_non_null(strstr(text, "\n  a        first\n"));
        assert_non_null(strstr(text, "\n  bcd      second\n"));
        assert_non_null(strstr(text, "\n  longest  third\n"));
        bz_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(summaries_stand_in_one_column)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
