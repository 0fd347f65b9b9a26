/* The list of commands: each summary begins in the same column, wherever in the list the longest name stands. Texts of options fill their lines. */
#include "command/command.h"
#include "tests/unit/chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Words behind each other as often as they fit: no line is wider than the screen, and each would be with the next line's first word. Every word
 * stands there, in its order. */
static void texts_fill_their_lines(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"a", "of", "µs", "layers", "übergänge", "benchmarks", "--recordings", "…"};
    int screen = bz_screen_columns(STDOUT_FILENO), all = screen && screen < 100 ? (screen > 60 ? screen : 60) : 100;
    int broken = 0, exact = 0;
    for (int round = 0; round < 500; round++) {
        bz_buf text = {0}, told = {0}, out = {0};
        int n = 1 + (int)chance(60);
        for (int i = 0; i < n; i++) {
            const char *word = WORDS[chance(8)];
            bz_buf_printf(&text, "%s%s", i ? (chance(3) ? " " : "\n   ") : "", word);
            bz_buf_printf(&told, "%s%s", i ? " " : "", word);
        }
        const bz_option options[] = {{.name = "some", .kind = BZ_OPTION_FLAG, .help = bz_buf_text(&text)}, {0}};
        const bz_command command = {.name = "c", .arguments = "", .summary = "s", .options = options};
        bz_help_options(&command, false, &out);
        char *from = strstr(out.data, "      --some"), *next = NULL;
        assert_non_null(from);
        int indent = (int)strspn(from, " ");
        indent += (int)strcspn(from + indent, " ");
        indent += (int)strspn(from + indent, " ");
        const char *p = bz_buf_text(&told);
        for (char *line = from; line; line = next) {
            char *end = strchr(line, '\n');
            *end = 0;
            assert_true(bz_text_width(line) <= all);
            exact += bz_text_width(line) == all;
            size_t length = strlen(line + indent); /* what stands before a text is plain letters */
            assert_true(line[indent] != ' ' && length && line[indent + (int)length - 1] != ' ');
            assert_memory_equal(line + indent, p, length);
            p += length;
            next = *p ? end + 1 : NULL;
            if (!next)
                break;
            assert_int_equal(strspn(next, " "), indent);
            assert_int_equal(*p++, ' ');
            char first[32];
            snprintf(first, sizeof first, "%.*s", (int)strcspn(p, " "), p);
            assert_true(bz_text_width(line) + 1 + bz_text_width(first) > all);
            broken++;
        }
        bz_buf_free(&text);
        bz_buf_free(&told);
        bz_buf_free(&out);
    }
    assert_true(broken > 500 && exact > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(summaries_stand_in_one_column),
                                       cmocka_unit_test(texts_fill_their_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
