/* What the room's small functions promise, by its definition, over random inputs: the definitions are written here once more, slowly and
 * another way, or are somebody else's (wcwidth, the encoding of UTF-8, strtod). */
#include "base/choice.h"
#include "base/dtype.h"
#include "base/screen.h"
#include "base/table.h"
#include "tests/unit/chance.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static int encoded(uint32_t c, unsigned char out[5])
{
    static const struct {
        uint32_t below;
        unsigned first;
    } LENGTH[] = {{0x80, 0}, {0x800, 0xc0}, {0x10000, 0xe0}, {0x110000, 0xf0}};
    int n = 1;
    while (c >= LENGTH[n - 1].below)
        n++;
    for (int i = n - 1; i > 0; i--, c /= 64)
        out[i] = (unsigned char)(0x80 + c % 64);
    out[0] = (unsigned char)(LENGTH[n - 1].first + c);
    out[n] = 0;
    return n;
}

/* Line and paragraph separators, controls, and what turns the direction of writing (Unicode's Bidi_Control). */
static bool acts_on_a_terminal(uint32_t c)
{
    static const uint32_t ALONE[] = {0x61c, 0x200e, 0x200f, 0x2028, 0x2029};
    for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++)
        if (c == ALONE[i])
            return true;
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void every_character_is_clean_or_spelled(void **state)
{
    (void)state;
    bz_buf b = {0};
    for (uint32_t c = 1; c < 0x110000; c++) {
        unsigned char text[5];
        char spelled[17] = "";
        int n = encoded(c, text);
        bool surrogate = c >= 0xd800 && c < 0xe000;
        for (int i = 0; i < n; i++)
            snprintf(spelled + 4 * i, 5, "\\x%02x", text[i]);
        bz_buf_clear(&b);
        bz_buf_clean(&b, (const char *)text);
        assert_string_equal(bz_buf_text(&b), surrogate || acts_on_a_terminal(c) ? spelled : (const char *)text);
    }
    bz_buf_free(&b);
}

/* Three bytes are what a character is encoded as, or are spelled up to the next that is. */
static void all_else_is_spelled(void **state)
{
    (void)state;
    static const unsigned char BORDERS[] = {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                            0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff, 'a'};
    enum { N = sizeof BORDERS };
    bz_buf b = {0};
    for (unsigned i = 0; i < N * N * N * N; i++) {
        unsigned char in[5] = {BORDERS[i % N], BORDERS[i / N % N], BORDERS[i / N / N % N], BORDERS[i / N / N / N]};
        char expected[40] = "";
        for (const unsigned char *p = in; *p;) {
            int taken = 0;
            for (int n = 1; n <= 4 && !taken; n++) { /* whose encoding these n bytes are, if anyone's */
                uint32_t c = n == 1 ? p[0] : p[0] & (0x3fu >> (n - 1));
                bool whole = memchr(p, 0, (size_t)n) == NULL;
                for (int k = 1; k < n && whole; k++)
                    c = c * 64 + (p[k] & 63u);
                unsigned char again[5];
                if (whole && c < 0x110000 && encoded(c, again) == n && !memcmp(again, p, (size_t)n) &&
                    (c < 0xd800 || c >= 0xe000) && !acts_on_a_terminal(c))
                    taken = n;
            }
            uint32_t c = (p[0] & 31u) * 64 + (p[1] & 63u); /* of two bytes, those up to U+9F are whole, and unsafe */
            int spell = taken ? 0 : p[0] == 0xc2 && (p[1] & 0xc0) == 0x80 && acts_on_a_terminal(c) ? 2 : 1;
            if (taken)
                memcpy(expected + strlen(expected), p, (size_t)taken); /* zeroed behind it */
            for (int k = 0; k < spell; k++)
                sprintf(expected + strlen(expected), "\\x%02x", p[k]);
            p += taken ? taken : spell;
        }
        bz_buf_clear(&b);
        bz_buf_clean(&b, (const char *)in);
        assert_string_equal(bz_buf_text(&b), expected);
    }
    bz_buf_free(&b);
}

/* Where names are written in, the terminal's own function says the same. */
static void widths_are_those_of_the_terminal(void **state)
{
    (void)state;
    static const uint32_t BLOCKS[][2] = {{0x20, 0x7e},     {0xc0, 0x2ff},     {0x300, 0x36f},   {0x391, 0x3a1},
                                         {0x3041, 0x3096}, {0x4e00, 0x9ffc},  {0xac00, 0xd7a3}, {0x2500, 0x257f},
                                         {0x410, 0x44f},   {0x1f600, 0x1f64f}};
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (size_t i = 0; i < sizeof BLOCKS / sizeof *BLOCKS; i++)
        for (uint32_t c = BLOCKS[i][0]; c <= BLOCKS[i][1]; c++) {
            unsigned char text[5];
            encoded(c, text);
            assert_int_equal(bz_text_width((const char *)text), wcwidth((wchar_t)c));
        }
    setlocale(LC_CTYPE, "C");
}

static bool digits_around(const char *s, int at)
{
    return at > 0 && s[at - 1] >= '0' && s[at - 1] <= '9' && s[at] >= '0' && s[at] <= '9';
}

/* Half of the width for the head, or fewer, down to a quarter, where that keeps numbers whole; "…"; the end. */
static void cut_texts_keep_both_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char s[60], expected[80];
        bz_buf b = {0};
        random_text(s, 60, chance(2) ? "ab/_0123" : "abc");
        int width = 2 + (int)chance(40), all = (int)strlen(s), head = width / 2;
        while (head > width / 2 / 2 && (digits_around(s, head) || digits_around(s, all - (width - 1 - head))))
            head--;
        snprintf(expected, sizeof expected, "%.*s…%s", head, s, s + (all > width ? all - (width - 1 - head) : 0));
        bz_text_fit(&b, s, width);
        assert_string_equal(bz_buf_text(&b), all <= width ? s : expected);
        assert_true(bz_text_width(bz_buf_text(&b)) <= width);
        bz_buf_free(&b);
    }
}

/* Without the breaks it is the text; a line is longer than the screen only for one word; no word would have fitted the line before. */
static void wrapped_texts_fill_their_lines(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char s[200];
        bz_buf b = {0};
        int columns = 20 + (int)chance(30);
        size_t n = 0;
        for (int words = 1 + (int)chance(30); words && n < 170; words--) {
            n += strlen(random_text(s + n, 12, "abcdefgh"));
            s[n++] = 'x';
            s[n++] = ' ';
        }
        s[n - 1] = 0;
        bz_text_wrap(&b, s, columns);
        char joined[260] = "";
        const char *line = bz_buf_text(&b);
        for (int lines = 0; line; lines++) {
            size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
            const char *next = line[length] ? line + length + 1 : NULL;
            assert_int_equal(indent, lines ? 2 : 0);
            assert_true((int)length <= columns);
            sprintf(joined + strlen(joined), "%s%.*s", lines ? " " : "", (int)(length - indent), line + indent);
            if (next)
                assert_true((int)(length + 1 + strcspn(next + 2, " \n")) > columns);
            line = next;
        }
        assert_string_equal(joined, s);
        bz_buf_free(&b);
    }
}

/* What to do stands below what was found, on a narrow screen at its left. Lines to be copied stay as they are. */
static void second_lines_are_wrapped(void **state)
{
    (void)state;
    static const struct {
        int columns;
        const char *text, *wrapped;
    } CASES[] = {
        {40,
         "bad      load             5 other tasks want the processor\n                          wait until they end, "
         "or stop them\n",
         "bad      load             5 other tasks\n         want the processor\n         wait until they end, or stop\n"
         "         them\n"},
        {40,
         "\033[0mbad      load             5 other tasks want the processor\n", /* the colour of the line above ends here */
         "\033[0mbad      load             5 other tasks\n         want the processor\n"},
        {60, "bad      load             busy\n                          wait until they end, or stop them now\n",
         "bad      load             busy\n                          wait until they end, or stop them\n"
         "                            now\n"},
        {40, "bad      load             busy\n                          wait until they end, or stop them now\n",
         "bad      load             busy\n         wait until they end, or stop\n         them now\n"},
        {30,
         "   do:  model = torch.jit.optimize_for_inference(m)\n        x = x.to(memory_format=torch.channels_last)\n",
         "   do:  model = torch.jit.optimize_for_inference(m)\n        x = x.to(memory_format=torch.channels_last)\n"},
        {20, "éééé éééé éééé éééé éééé", "éééé éééé éééé éééé\n  éééé"}, /* columns, not bytes */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf b = {0};
        bz_text_wrap(&b, CASES[i].text, CASES[i].columns);
        assert_string_equal(bz_buf_text(&b), CASES[i].wrapped);
        bz_buf_free(&b);
    }
}

/* By its definition: the fewest letters changed, put in or left out. */
static int distance(const char *a, const char *b)
{
    if (!*a || !*b)
        return (int)(strlen(a) + strlen(b));
    if (*a == *b)
        return distance(a + 1, b + 1);
    int change = distance(a + 1, b + 1), less = distance(a + 1, b), more = distance(a, b + 1);
    int least = change < less ? change < more ? change : more : less < more ? less : more;
    int turned = a[1] && a[0] == b[1] && a[1] == b[0] ? distance(a + 2, b + 2) : least;
    return 1 + (turned < least ? turned : least);
}

static void typos_mean_the_nearest_name(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        char names[4][8], typed[8];
        const char *list[4], *expected = NULL;
        random_text(typed, 7, "abc");
        int least = (int)strlen(typed) / 3 + 1;
        for (int k = 0; k < 4; k++) {
            list[k] = random_text(names[k], 7, "abc");
            int d = distance(typed, names[k]);
            if (d < (int)strlen(names[k]) &&
                d <= least - (expected != NULL)) { /* the first of those that are as near */
                least = d;
                expected = names[k];
            }
        }
        assert_ptr_equal(bz_choice_meant(typed, list, 4), expected);
    }
    const char *const models[] = {"resnet101.onnx", "resnet50.onnx", "resnet18.onnx"}; /* neighbours change places */
    assert_ptr_equal(bz_choice_meant("resnet81.onnx", models, 3), models[2]);
    char name[40], typed[40]; /* of 32 characters each they are compared, longer ones are not */
    const char *const list[] = {name};
    for (size_t n = 30; n < 36; n++)
        for (size_t t = 30; t < 36; t++) {
            memset(name, 'x', n), memset(typed, 'x', t);
            name[n] = typed[t] = 0;
            assert_ptr_equal(bz_choice_meant(typed, list, 1), n > 32 || t > 32 ? NULL : name);
        }
}

static void lists_of_words_are_split_at_blanks(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[30], copy[30], word[6], out[4], *rest, wanted[4];
        const char *at = random_text(text, 30, "aab \n");
        bool among = false;
        random_text(wanted, 4, "ab");
        strcpy(copy, text);
        for (char *w = strtok_r(copy, " \n", &rest); w; w = strtok_r(NULL, " \n", &rest)) {
            assert_true(bz_word_next(&at, out, sizeof out));
            snprintf(word, sizeof word, "%.3s", w);
            assert_string_equal(out, word);
            among |= !strcmp(w, wanted);
        }
        assert_false(bz_word_next(&at, out, sizeof out));
        assert_int_equal(bz_has_word(text, wanted), among);
    }
}

/* A type's name says its bits and what it is: "bf16", "f8e4m3fnuz", "u4". */
static void names_of_types_say_their_bits(void **state)
{
    (void)state;
    for (int t = 1; t < BZ_N_DTYPES; t++) {
        const char *name = bz_dtype_name((bz_dtype)t);
        size_t letters = strcspn(name, "0123456789");
        int bits = !strcmp(name, "bool") ? 8 : atoi(name + letters);
        if (bz_dtype_bits((bz_dtype)t) != bits)
            fail_msg("%s: %d bits", name, bz_dtype_bits((bz_dtype)t));
        assert_int_equal(bz_dtype_is_float((bz_dtype)t), name[letters - 1] == 'f');
        assert_int_equal(bz_dtype_is_int((bz_dtype)t), letters == 1 && strchr("iu", *name) != NULL);
        for (int other = 1; other < t; other++)
            assert_string_not_equal(name, bz_dtype_name((bz_dtype)other));
    }
    assert_int_equal(bz_dtype_bits(BZ_N_DTYPES), 0);
    assert_string_equal(bz_dtype_name(BZ_N_DTYPES), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_types_say_their_bits),
        cmocka_unit_test(every_character_is_clean_or_spelled),
        cmocka_unit_test(all_else_is_spelled),
        cmocka_unit_test(widths_are_those_of_the_terminal),
        cmocka_unit_test(cut_texts_keep_both_ends),
        cmocka_unit_test(wrapped_texts_fill_their_lines),
        cmocka_unit_test(second_lines_are_wrapped),
        cmocka_unit_test(typos_mean_the_nearest_name),
        cmocka_unit_test(lists_of_words_are_split_at_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
