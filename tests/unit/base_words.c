/* Which name somebody meant, by the distance as it is defined; and sentences on narrow screens: a line takes the words that fit. */
#include "base/buf.h"
#include "base/choice.h"
#include "base/table.h"
#include "chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A letter is added, left out or another one, or two neighbours change places, which costs one each. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    if (!n || !m)
        return n + m;
    size_t d = least(distance(a, n - 1, b, m) + 1, distance(a, n, b, m - 1) + 1);
    d = least(d, distance(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]));
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1])
        d = least(d, distance(a, n - 2, b, m - 2) + 1);
    return d;
}

static void the_nearest_name_is_meant(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        char name[4][8], typed[8];
        const char *names[4], *best = NULL;
        random_text(typed, sizeof typed, "abc");
        size_t nearest = strlen(typed) / 3 + 2; /* a third of what was typed may be wrong, and one letter more */
        for (int i = 0; i < 4; i++) {
            names[i] = random_text(name[i], sizeof name[i], "abc");
            size_t d = distance(typed, strlen(typed), names[i], strlen(names[i]));
            if (d < nearest && d < strlen(names[i])) {
                nearest = d;
                best = names[i];
            }
        }
        const char *meant = bz_choice_meant(typed, names, 4);
        if (meant != best)
            fail_msg("'%s' of %s %s %s %s: %s, not %s", typed, names[0], names[1], names[2], names[3],
                     meant ? meant : "none", best ? best : "none");
    }
}

/* Words one after the other, a command in quotes as one of them; a line ends where the next one would not fit. */
static void put_wrapped(bz_buf *out, char word[][24], int n, int lead, int columns)
{
    int used = 0;
    for (int i = 0; i < n; i++) {
        int width = (int)strlen(word[i]), gap = i ? 1 : lead;
        if (i && used > lead + 2 && used + gap + width > columns) {
            bz_buf_printf(out, "\n%*s%s", lead + 2, "", word[i]);
            used = lead + 2 + width;
        } else {
            bz_buf_printf(out, "%*s%s", gap, "", word[i]);
            used += gap + width;
        }
    }
}

static void lines_take_the_words_that_fit(void **state)
{
    (void)state;
    for (int round = 0; round < 600; round++) {
        bz_buf text = {0}, want = {0}, got = {0};
        int columns = 20 + (int)chance(20);
        for (int line = 0, lines = 1 + (int)chance(3); line < lines; line++) {
            char word[12][24];
            int n = 1 + (int)chance(12), lead = (int)chance(4);
            bz_buf whole = {0};
            for (int i = 0; i < n; i++) {
                if (chance(8)) {
                    random_text(word[i] + 1, 11, "abcdefg");
                    word[i][0] = 'x';
                } else {
                    snprintf(word[i], sizeof word[i], "'%.*s b c'", 1 + (int)chance(6), "command");
                }
                bz_buf_printf(&whole, "%*s%s", i ? 1 : lead, "", word[i]);
            }
            bz_buf_printf(&text, "%s%s", line ? "\n" : "", bz_buf_text(&whole));
            bz_buf_puts(&want, line ? "\n" : "");
            if ((int)whole.len <= columns)
                bz_buf_puts(&want, bz_buf_text(&whole));
            else
                put_wrapped(&want, word, n, lead, columns);
            bz_buf_free(&whole);
        }
        bz_text_wrap(&got, bz_buf_text(&text), columns);
        assert_string_equal(bz_buf_text(&got), bz_buf_text(&want));
        bz_buf_free(&text);
        bz_buf_free(&want);
        bz_buf_free(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_nearest_name_is_meant),
                                       cmocka_unit_test(lines_take_the_words_that_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
