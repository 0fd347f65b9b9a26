/* Text from files on its way to a terminal: cleaning, and errors, which are cleaned and cut. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void clean_is(const char *in, const char *expected)
{
    bz_buf b = {0};
    bz_buf_clean(&b, in);
    assert_string_equal(bz_buf_text(&b), expected);
    bz_buf_free(&b);
}

static void plain_text_passes(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"",
                                        "conv1/weights:0 ~!@#\\\"'",
                                        "µs é ß",
                                        "日本語",
                                        "\xf0\x9f\x98\x80",
                                        "\xc2\xa0",
                                        "\xed\x9f\xbf",
                                        "\xef\xbf\xbd",
                                        "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        clean_is(TEXTS[i], TEXTS[i]);
}

static void control_characters_are_shown(void **state)
{
    (void)state;
    clean_is("\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m");
    clean_is("a\nb\tc\rd\a\b\x7f", "a\\x0ab\\x09c\\x0dd\\x07\\x08\\x7f");
    clean_is("\xc2\x9b"
             "2J", /* CSI as one C1 character */
             "\\xc2\\x9b2J");
    clean_is("\x9b", "\\x9b");
}

/* Characters that reorder, hide or break up what stands around them. */
static void invisible_characters_are_shown(void **state)
{
    (void)state;
    clean_is("a\xe2\x80\xae"
             "b",
             "a\\xe2\\x80\\xaeb"); /* right-to-left override */
    clean_is("\xe2\x80\xaa", "\\xe2\\x80\\xaa");
    clean_is("\xe2\x81\xa6", "\\xe2\\x81\\xa6"); /* isolate */
    clean_is("\xe2\x81\xa9", "\\xe2\\x81\\xa9");
    clean_is("\xe2\x80\x8e", "\\xe2\\x80\\x8e"); /* left-to-right mark */
    clean_is("\xe2\x80\x8f", "\\xe2\\x80\\x8f");
    clean_is("\xd8\x9c", "\\xd8\\x9c");          /* Arabic letter mark */
    clean_is("\xe2\x80\xa8", "\\xe2\\x80\\xa8"); /* line separator */
    clean_is("\xe2\x80\xa9", "\\xe2\\x80\\xa9");
    clean_is("\xe2\x80\xa6", "\xe2\x80\xa6"); /* the ellipsis lies between them and is harmless */
}

static void malformed_utf8_is_shown(void **state)
{
    (void)state;
    clean_is("\xff\xfe", "\\xff\\xfe");
    clean_is("\xc0\xaf", "\\xc0\\xaf");                            /* overlong */
    clean_is("\xe0\x80\xaf", "\\xe0\\x80\\xaf");                   /* overlong */
    clean_is("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf");          /* overlong */
    clean_is("\xed\xa0\x80", "\\xed\\xa0\\x80");                   /* surrogate */
    clean_is("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");          /* behind U+10FFFF */
    clean_is("\xe2\x82", "\\xe2\\x82");                            /* cut off */
    clean_is("\xf0\x9f\x98", "\\xf0\\x9f\\x98");                   /* cut off */
    clean_is("\xe2\x82z\xac", "\\xe2\\x82z\\xac");                 /* broken off */
    clean_is("\x80mid\xbf", "\\x80mid\\xbf");                      /* continuation without a start */
    clean_is("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"); /* five bytes were never legal */
}

/* Whatever goes in, what comes out is free of control bytes and passes again unchanged. */
static void cleaning_is_final(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 5000; round++) {
        char in[24] = {0};
        for (size_t i = 0; i < sizeof in - 1; i++) {
            seed = seed * 1664525 + 1013904223;
            in[i] = (char)(seed >> 24);
        }
        bz_buf once = {0}, twice = {0};
        bz_buf_clean(&once, in);
        bz_buf_clean(&twice, bz_buf_text(&once));
        assert_string_equal(bz_buf_text(&once), bz_buf_text(&twice));
        for (size_t i = 0; i < once.len; i++)
            assert_true((unsigned char)once.data[i] >= 0x20 && once.data[i] != 0x7f);
        bz_buf_free(&once);
        bz_buf_free(&twice);
    }
}

/* As printf for texts that need no cleaning, whatever stands around them; and the format's own line ends stay. */
static void sentences_have_cleaned_texts(void **state)
{
    static const long long BIG = -9007199254740993LL;
    char expected[200];
    bz_buf b = {0};
    (void)state;
    snprintf(expected, sizeof expected, "%s: %d of %u, %lld bytes\n\t%zu µs, %.1f %%, %+.3g × %-7d|%g", "conv µ", -3,
             4000000000U, BIG, (size_t)1 << 40, 12.345, 0.00012345, 42, 1e300);
    bz_buf_say(&b, "%s: %d of %u, %lld bytes\n\t%zu µs, %.1f %%, %+.3g × %-7d|%g", "conv µ", -3, 4000000000U, BIG,
               (size_t)1 << 40, 12.345, 0.00012345, 42, 1e300);
    assert_string_equal(bz_buf_text(&b), expected);
    bz_buf_clear(&b);
    bz_buf_say(&b, "%s\n%s%s", "a\033[31m\nb", "", "100 %d");
    assert_string_equal(bz_buf_text(&b), "a\\x1b[31m\\x0ab\n100 %d");
    bz_buf_free(&b);
}

static void errors_carry_code_and_text(void **state)
{
    (void)state;
    bz_error err;
    assert_int_equal(bz_fail(&err, BZ_BAD_INPUT, "node '%s' has %d inputs", "a\033b", 3), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    assert_string_equal(err.text, "node 'a\\x1bb' has 3 inputs");
    assert_int_equal(bz_fail_in(&err, "%s", "dir/m\n.onnx"), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    assert_string_equal(err.text, "dir/m\\x0a.onnx: node 'a\\x1bb' has 3 inputs");
    assert_int_equal(bz_fail(NULL, BZ_FAILED, "nobody listens"), -1);
    assert_int_equal(bz_fail_in(NULL, "nobody listens"), -1);
}

static void long_errors_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 8; lead++) {
        char name[4000];
        memset(name, 'a', lead);
        for (size_t i = lead; i + 3 < sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 4);
        bz_error err;
        bz_fail(&err, BZ_BAD_INPUT, "%s", name);
        size_t n = strlen(err.text);
        assert_true(n < sizeof err.text && n > sizeof err.text - 8);
        assert_string_equal(err.text + n - 3, "…");
        bz_buf again = {0}; /* still well-formed: nothing is escaped */
        bz_buf_clean(&again, err.text);
        assert_string_equal(bz_buf_text(&again), err.text);
        bz_buf_free(&again);
        bz_fail_in(&err, "%s", name); /* a prefix as long as that still ends in a cut */
        assert_true(strlen(err.text) < sizeof err.text);
        assert_string_equal(err.text + strlen(err.text) - 3, "…");
    }
}

/* "place: what", cut as every text of an error, also where there is no place to tell. */
static void places_stand_before_what_happened(void **state)
{
    (void)state;
    for (int n = 0; n<2500; n += n> 590 && n < 610 ? 1 : 1 + n / 4)
        for (int w = 0; w < 1100; w = 2 * w + 1) {
            char place[2500], what[1200];
            memset(place, 'p', sizeof place);
            memset(what, 'w', sizeof what);
            place[n] = what[w] = 0;
            bz_error err;
            bz_fail(&err, BZ_BAD_INPUT, "%s", what);
            bz_buf whole = {0};
            bz_buf_printf(&whole, "%s: %s", place, err.text);
            assert_int_equal(bz_fail_in(&err, "%s", place), -1);
            size_t room = sizeof err.text - 1;
            if (whole.len > room)
                strcpy(whole.data + room - strlen("…"), "…");
            assert_string_equal(err.text, whole.data);
            bz_buf_free(&whole);
        }
}

static void errors_that_just_fit_are_whole(void **state)
{
    (void)state;
    bz_error err;
    char name[sizeof err.text + 1];
    memset(name, 'n', sizeof name);
    name[sizeof err.text - 1] = 0;
    bz_fail(&err, BZ_FAILED, "%s", name);
    assert_string_equal(err.text, name);
    name[sizeof err.text - 1] = 'n';
    name[sizeof err.text] = 0;
    bz_fail(&err, BZ_FAILED, "%s", name);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + strlen(err.text) - 3, "…");
}

static void dot_strings_are_quoted(void **state)
{
    (void)state;
    bz_buf b = {0};
    bz_graphviz_quote(&b, "a\"b\\N\n\033");
    assert_string_equal(bz_buf_text(&b), "\"a\\\"b\\\\N\\n\\\\x1b\"");
    bz_buf_free(&b);
}

/* A string has 4000 bytes behind its quotes, or fewer where a character would end behind them, and then "…". */
static void dot_strings_have_4000_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *first, *unit; /* once, and then so many */
        size_t fits;
    } CASES[] = {{"", "x", 4000},  {"", "\xc3\xa4", 2000}, {"a", "\xc3\xa4", 1999}, {"ab", "\xe2\x82\xac", 1332},
                 {"", "\"", 2000}, {"", "\\", 2000}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t more = 0; more < 3; more++) {
            bz_buf text = {0}, dot = {0}, want = {0};
            bz_buf_puts(&text, CASES[i].first);
            bz_buf_printf(&want, "\"%s", CASES[i].first);
            for (size_t k = 0; k < CASES[i].fits + more; k++)
                bz_buf_puts(&text, CASES[i].unit);
            for (size_t k = 0; k < CASES[i].fits; k++)
                bz_buf_printf(&want, "%s%s", strchr("\"\\", *CASES[i].unit) ? "\\" : "", CASES[i].unit);
            bz_buf_puts(&want, more ? "…\"" : "\"");
            bz_graphviz_quote(&dot, bz_buf_text(&text));
            assert_string_equal(bz_buf_text(&dot), bz_buf_text(&want));
            bz_buf_free(&text);
            bz_buf_free(&dot);
            bz_buf_free(&want);
        }
}

/* A shell reads back what it is given as a word; words of letters stay as they are. */
static void words_are_what_a_shell_reads(void **state)
{
    (void)state;
    static const char *const PLAIN[] = {"a", "Zz_0-9./=,:@+", "--model=/a/b.onnx"};
    bz_buf all = {0}, command = {0}, got = {0};
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        bz_buf_clear(&command);
        bz_buf_word(&command, PLAIN[i]);
        assert_string_equal(bz_buf_text(&command), PLAIN[i]);
    }
    bz_buf_clear(&command);
    bz_buf_puts(&command, "printf '%s|' ");
    for (int c = 1; c < 128; c++) {
        char word[4] = {(char)c, c % 2 ? 'x' : '\'', 0};
        bz_buf_word(&command, word);
        bz_buf_putc(&command, ' ');
        bz_buf_printf(&all, "%s|", word);
    }
    bz_buf_word(&command, "");
    bz_buf_putc(&all, '|');
    FILE *shell = popen(bz_buf_text(&command), "r");
    assert_non_null(shell);
    for (int c; (c = fgetc(shell)) != EOF;)
        bz_buf_putc(&got, (char)c);
    assert_int_equal(pclose(shell), 0);
    assert_string_equal(bz_buf_text(&got), bz_buf_text(&all));
    bz_buf_free(&all);
    bz_buf_free(&command);
    bz_buf_free(&got);
}

static void lines_of_html_are_whole(void **state)
{
    (void)state;
    bz_buf b = {0};
    bz_buf_html_lines(&b, "a < b\n\nc\033d\n");
    assert_string_equal(bz_buf_text(&b), "a &lt; b\n\nc\\x1bd\n");
    bz_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_passes),
        cmocka_unit_test(lines_of_html_are_whole),
        cmocka_unit_test(control_characters_are_shown),
        cmocka_unit_test(invisible_characters_are_shown),
        cmocka_unit_test(malformed_utf8_is_shown),
        cmocka_unit_test(cleaning_is_final),
        cmocka_unit_test(sentences_have_cleaned_texts),
        cmocka_unit_test(errors_carry_code_and_text),
        cmocka_unit_test(long_errors_are_cut_between_characters),
        cmocka_unit_test(errors_that_just_fit_are_whole),
        cmocka_unit_test(places_stand_before_what_happened),
        cmocka_unit_test(dot_strings_are_quoted),
        cmocka_unit_test(dot_strings_have_4000_bytes),
        cmocka_unit_test(words_are_what_a_shell_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
