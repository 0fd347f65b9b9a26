/* What the room's small functions promise, by its definition, over random inputs: the definitions are written here once more, slowly and
 * another way, or are somebody else's (wcwidth, the encoding of UTF-8, strtod). */
#include "base/arena.h"
#include "base/choice.h"
#include "base/load.h"
#include "base/screen.h"
#include "base/sheet.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/units.h"
#include "base/whole.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

static uint64_t chance_state = 7;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static const char *random_text(char *out, size_t most, const char *letters)
{
    size_t n = chance((unsigned)most);
    for (size_t i = 0; i < n; i++)
        out[i] = letters[chance((unsigned)strlen(letters))];
    out[n] = 0;
    return out;
}

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
        {60, "bad      load             busy\n                          wait until they end, or stop them now\n",
         "bad      load             busy\n                          wait until they end, or stop them\n"
         "                            now\n"},
        {40, "bad      load             busy\n                          wait until they end, or stop them now\n",
         "bad      load             busy\n         wait until they end, or stop\n         them now\n"},
        {30,
         "   do:  model = torch.jit.optimize_for_inference(m)\n        x = x.to(memory_format=torch.channels_last)\n",
         "   do:  model = torch.jit.optimize_for_inference(m)\n        x = x.to(memory_format=torch.channels_last)\n"},
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

/* Read back, a number is at most half of its last digit away, has three digits or is whole, and no smaller number before its unit. */
static void units_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *(*put)(bz_unit_text out, double v);
        const char *units[6];
        double factor[5], largest;
    } KINDS[] = {{bz_units_time, {" ns", " µs", " ms", " s"}, {1e-9, 1e-6, 1e-3, 1}, 1},
                 {bz_units_bytes, {" B", " kB", " MB", " GB", " TB"}, {1, 1e3, 1e6, 1e9, 1e12}, 1e12},
                 {bz_units_count, {"", " k", " M", " G", " T"}, {1, 1e3, 1e6, 1e9, 1e12}, 1e12}};
    for (int i = 0; i < 60000; i++) {
        int kind = (int)chance(3), unit = 0;
        double v = pow(10, chance(24000) / 1000.0 - (kind ? 1 : 10)) * (chance(2) ? 1 : -1);
        bz_unit_text text;
        char *end;
        KINDS[kind].put(text, v);
        double shown = strtod(text, &end), factor;
        while (strcmp(KINDS[kind].units[unit], end) != 0)
            assert_true(++unit < 5);
        factor = KINDS[kind].factor[unit];
        int decimals = strchr(text, '.') ? (int)(end - strchr(text, '.')) - 1 : 0;
        assert_true(fabs(shown * factor - v) <= factor * pow(10, -decimals) * 0.5000001);
        size_t digits = strspn(text + (v < 0), "0123456789.") - (decimals > 0);
        assert_true(digits == 3 || (digits > 3 && factor == KINDS[kind].largest) || decimals == 2 || v == floor(v) ||
                    (kind == 2 && factor == 1 && fabs(v) < 10000));
        assert_true(fabs(shown) < 1000 || factor == KINDS[kind].largest || (kind == 2 && v == floor(v)));
        assert_true(fabs(v) >= factor * 0.99949 || !unit);
        double back;
        if (kind == 1) {
            assert_int_equal(bz_units_parse_bytes(text, &back), 0);
            assert_true(fabs(back - v) <= factor * pow(10, -decimals) * 0.5000001);
        }
    }
}

static void sizes_have_the_units_of_other_programs(void **state)
{
    static const struct {
        const char *text;
        double bytes;
    } CASES[] = {{"16GB", 16e9},  {"16 GB", 16e9},   {"16G", 16e9},       {"16g", 16e9}, {"1.5T", 1.5e12},
                 {"512k", 512e3}, {"16GiB", 0x1p34}, {"0.5 mib", 0x1p19}, {"7", 7},      {"7B", 7},
                 {"16GG", -1},    {"16Gi", -1},      {"G", -1},           {"16 q", -1}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double bytes = -1;
        assert_int_equal(bz_units_parse_bytes(CASES[i].text, &bytes), CASES[i].bytes < 0 ? -1 : 0);
        assert_true(bytes == CASES[i].bytes);
    }
}

static void times_have_units_and_an_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds; /* 0: none */
    } TIMES[] = {{"60s", 60}, {"5min", 300}, {"1h", 3600}, {"60", 60}, {"0.5", 0.5},       {"0", 0},       {"-1", 0},
                 {"", 0},     {"s", 0},      {"1m", 0},    {"1 h", 0}, {"999999", 999999}, {"1000000", 0}, {"nan", 0}};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        double s = 0;
        assert_int_equal(bz_units_parse_time(TIMES[i].text, &s), TIMES[i].seconds > 0 ? 0 : -1);
        assert_true(s == TIMES[i].seconds);
    }
}

/* As many are smaller, and as many larger, as the quantile says; between two of them it lies on their line. */
static void quantiles_are_on_the_line(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        double v[20], sum = 0, after = 0;
        int64_t t[20];
        size_t n = 1 + chance(19);
        for (size_t k = 0; k < n; k++)
            sum += v[k] = (double)(t[k] = (int64_t)chance(50) - 25);
        bz_sort_numbers(v, n);
        bz_sort_times(t, n);
        for (size_t k = 0; k < n; k++) {
            assert_true(v[k] == (double)t[k] && (!k || v[k - 1] <= v[k]));
            after += v[k];
            assert_true(n == 1 || fabs(bz_quantile(v, n, (double)k / (double)(n - 1)) - v[k]) < 1e-9);
            if (k + 1 < n)
                assert_true(fabs(bz_quantile(v, n, ((double)k + 0.25) / (double)(n - 1)) -
                                 (0.75 * v[k] + 0.25 * v[k + 1])) < 1e-9);
        }
        assert_true(sum == after);
        assert_true(bz_quantile(v, n, 1) == v[n - 1] && bz_quantile(v, n, 0) == v[0]);
    }
}

static int by_size(const void *a, const void *b)
{
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

/* Many numbers: by chance, few different ones, rising, falling, up and down. */
static void many_numbers_are_sorted(void **state)
{
    (void)state;
    enum { MOST = 20000, SHAPES = 5 };
    double *v = bz_alloc(MOST, sizeof *v), *w = bz_alloc(MOST, sizeof *w);
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t n = 1; n <= MOST; n = 3 * n + chance(3)) {
            for (size_t i = 0; i < n; i++)
                v[i] = shape == 0   ? (double)chance(1000000)
                       : shape == 1 ? (double)chance(3)
                       : shape == 2 ? (double)i
                       : shape == 3 ? -(double)i
                                    : (double)(i < n / 2 ? i : n - i);
            memcpy(w, v, n * sizeof *v);
            bz_sort_numbers(v, n);
            qsort(w, n, sizeof *w, by_size);
            assert_memory_equal(v, w, n * sizeof *v);
        }
    free(v);
    free(w);
}

static bool before(const bz_sheet_cell *a, const bz_sheet_cell *b, int column)
{
    return column ? (isnan(b->number) && !isnan(a->number)) || a->number > b->number
                  : strcmp(a->text ? a->text : "", b->text ? b->text : "") < 0;
}

/* By exchanging neighbours: equal rows stay as they came. */
static void sheets_are_sorted_stably(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {NULL, "a", "b", "c"};
    for (int i = 0; i < 300; i++) {
        bz_arena arena = {0};
        bz_sheet *s = bz_sheet_new(&arena, "id", "Title", "name|count:n|row:n");
        int n = (int)chance(40), column = (int)chance(2);
        bz_sheet_cell naive[40][3], swap[3];
        for (int k = 0; k < n; k++) {
            double count = chance(4) ? (double)chance(5) : (double)NAN;
            naive[k][0].text = TEXTS[chance(4)], naive[k][1].number = count, naive[k][2].number = k;
            bz_sheet_add(s, naive[k], 3);
        }
        for (int pass = 0; pass < n; pass++)
            for (int k = 1; k < n; k++)
                if (before(&naive[k][column], &naive[k - 1][column], column)) {
                    memcpy(swap, naive[k], sizeof swap);
                    memcpy(naive[k], naive[k - 1], sizeof swap);
                    memcpy(naive[k - 1], swap, sizeof swap);
                }
        bz_sheet_sort(s, column);
        for (int k = 0; k < n; k++)
            assert_true(s->cell[3 * k + 2].number == naive[k][2].number);
        bz_buf text = {0}, more = {0};
        bz_sheet_text(s, 10, &text);
        bz_buf_printf(&more, "… and %d more\n", n - 10);
        assert_int_equal(strstr(bz_buf_text(&text), bz_buf_text(&more)) != NULL, n > 10);
        int lines = 0;
        for (const char *p = bz_buf_text(&text); (p = strchr(p, '\n')); p++)
            lines++;
        assert_int_equal(lines, n > 10 ? 12 : n + 1);
        bz_buf_free(&text);
        bz_buf_free(&more);
        bz_arena_free(&arena);
    }
}

/* One cell of CSV as RFC 4180 has it. Returns what follows. */
static const char *read_cell(const char *p, char *out)
{
    if (*p != '"')
        for (; *p != ',' && *p != '\n'; p++)
            *out++ = *p;
    else
        for (p++; *p != '"' || *++p == '"'; p++)
            *out++ = *p;
    *out = 0;
    assert_true(*p == ',' || *p == '\n');
    return p + 1;
}

/* Random cells: CSV reads back; text is aligned; on a narrow screen no line is wider, numbers are whole, and the note names what is left out. */
static void tables_hold_what_was_put(void **state)
{
    (void)state;
    for (int i = 0; i < 1500; i++) {
        bz_arena arena = {0};
        int n_columns = 1 + (int)chance(8), rows = (int)chance(6), columns = chance(2) ? 0 : 40 + (int)chance(60);
        static char cell[6][8][60];
        char title[8][4] = {{0}}, got[80];
        bool right[8];
        bz_table *t = bz_table_new(&arena);
        for (int c = 0; c < n_columns; c++) {
            snprintf(title[c], sizeof title[c], "T%c", 'a' + c);
            right[c] = c && chance(2);
            bz_table_column(t, title[c], right[c] ? BZ_RIGHT : BZ_LEFT);
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < n_columns; c++) {
                random_text(cell[r][c], right[c] ? 8 : 60, right[c] ? "0123456789." : "abcdefg,\";:=+-");
                if (!right[c] && chance(4) == 0)
                    strcpy(cell[r][c], chance(2) ? "-" : "");
                bz_table_cell(t, cell[r][c], NULL);
            }
        assert_int_equal(bz_table_rows(t), rows);
        bz_buf csv = {0}, text = {0};
        bz_table_csv(t, &csv);
        const char *p = bz_buf_text(&csv);
        for (int r = -1; r < rows; r++)
            for (int c = 0; c < n_columns; c++) {
                const char *put = r < 0 ? title[c] : cell[r][c];
                char *end;
                strtod(put, &end);
                bool formula = *put && strchr("=+-@", *put) && put[1] && *end;
                p = read_cell(p, got);
                assert_int_equal(p[-1] == '\n', c + 1 == n_columns);
                assert_string_equal(got + formula, put);
                assert_true(!formula || *got == '\'');
            }
        assert_int_equal(*p, 0);
        bz_screen_set((bz_screen){columns, false});
        bz_table_print(t, &text);
        bz_screen_set((bz_screen){0, false});
        const char *note = strstr(bz_buf_text(&text), "(--wide"), *head = bz_buf_text(&text);
        int starts[9] = {0}, shown = 0, lines = 0;
        for (int c = 0; c < n_columns; c++) {
            const char *at = strstr(head, title[c]);
            bool here = at && at < head + strcspn(head, "\n");
            assert_true(c || here);
            assert_true(here || (note && strstr(note, title[c])) || (note && strstr(note, "…")));
            assert_false(here && note && strstr(note, title[c]));
            if (here)
                starts[shown++] = c;
        }
        assert_true(columns || shown == n_columns);
        assert_int_equal(note != NULL, shown < n_columns);
        for (const char *line = head; line < (note ? note : head + text.len);
             line += strcspn(line, "\n") + 1, lines++) {
            char one[1000];
            size_t length = strcspn(line, "\n");
            snprintf(one, sizeof one, "%.*s", (int)length, line);
            assert_true(!columns || bz_text_width(one) <= columns);
            assert_true(!length || line[length - 1] != ' ');
            for (int k = 0; k < shown && lines; k++)
                assert_true(!right[starts[k]] || strstr(one, cell[lines - 1][starts[k]]));
        }
        assert_int_equal(lines, rows + 1);
        bz_buf_free(&csv);
        bz_buf_free(&text);
        bz_arena_free(&arena);
    }
}

/* No two pieces overlap, all are aligned and zero, and `used` is what was handed out. */
static void arenas_give_each_its_own(void **state)
{
    (void)state;
    bz_arena arena = {0};
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    for (int i = 0; i < N; i++) {
        size[i] = chance(20) ? chance(200) : chance(100000);
        size_t before = arena.used;
        piece[i] = bz_arena_alloc(&arena, size[i]);
        assert_true(arena.used - before >= size[i] && arena.used - before < size[i] + 16);
        assert_true(!size[i] || (uintptr_t)piece[i] % 16 == 0);
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], 0);
        memset(piece[i], i % 255 + 1, size[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], i % 255 + 1);
    bz_arena_free(&arena);
    assert_null(arena.block);
    int *list = NULL;
    for (int n = 0; n < 1000; n++) {
        BZ_ARENA_ROOM(&arena, list, n);
        list[n] = n;
    }
    for (int n = 0; n < 1000; n++)
        assert_int_equal(list[n], n);
    bz_arena_free(&arena);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bz_buf b = {0};
    bz_buf_puts(&b, text);
    assert_int_equal(bz_whole_write(path, &b, NULL), 0);
    bz_buf_free(&b);
}

/* proc(5): what a machine's load is, from files whose content is chosen here. */
static void load_is_what_the_kernel_says(void **state)
{
    (void)state;
    char root[] = "/tmp/benanza-load-XXXXXX", path[300], text[1000];
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    bz_load l, now;
    assert_non_null(mkdtemp(root));
    bz_load_read(root, &l);
    assert_true(l.processors == 1 && l.runnable == -1 && isnan(l.average) && isnan(l.pressure) && isnan(l.total) &&
                isnan(l.steal));
    assert_true(bz_load_has_room(&l, 9));
    for (int i = 0; i < 3; i++) {
        static const char *const FOLDERS[] = {"proc", "proc/pressure"};
        for (int k = 0; k < 2 && !i; k++) {
            snprintf(path, sizeof path, "%s/%s", root, FOLDERS[k]);
            assert_int_equal(mkdir(path, 0700), 0);
        }
        snprintf(text, sizeof text,
                 "cpu  1 2 4 8 16 32 64 %d 256 512\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 0 0\ncpu2 0 0\nintr 5\n", 100 * i);
        put_file(root, "proc/stat", text);
        snprintf(text, sizeof text, "%d.25 2.5 3.5 %d/700 12345\n", i, i + 1);
        put_file(root, "proc/loadavg", text);
        put_file(root, "proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=7.00\n");
        bz_load_read(root, &now);
        assert_int_equal(now.processors, 3);
        assert_int_equal(now.runnable, i);
        assert_true(now.average == i + 0.25 && now.pressure == 0.125);
        assert_true(fabs(now.total - (127 + 100 * i) * tick) < 1e-9 && fabs(now.steal - 100 * i * tick) < 1e-9);
        for (int threads = 1; threads < 6; threads++)
            assert_int_equal(bz_load_has_room(&now, threads), !i || i + threads <= 3);
        if (i)
            assert_true(fabs(bz_load_stolen(&l, &now) - 1) < 1e-9); /* all that passed was stolen */
        l = now;
    }
    assert_true(bz_load_stolen(&l, &now) == 0);
    now.total += 100, now.steal += 0.014;
    assert_true(bz_load_stolen(&l, &now) == 0); /* one tick is chance */
    now.steal += 0.002;
    assert_true(fabs(bz_load_stolen(&l, &now) - 0.016 / 100) < 1e-9);
    snprintf(text, sizeof text, "rm -r %s", root);
    assert_int_equal(system(text), 0);
}

/* A new file or the old one, never half; the mode is umask's; nothing lies beside it; a limit holds to the byte. */
static void files_are_whole_or_not_there(void **state)
{
    (void)state;
    char folder[] = "/tmp/benanza-whole-XXXXXX", path[300], text[400];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    for (int i = 0; i < 40; i++) {
        bz_buf put = {0}, got = {0};
        bz_error err = {0};
        struct stat st;
        bz_whole w;
        for (unsigned n = chance(2) ? chance(50000) : chance(20); put.len < n;)
            bz_buf_putc(&put, (char)chance(256));
        mode_t mask = chance(2) ? 022 : 077, old = umask(mask);
        assert_int_equal((chance(2) ? bz_whole_open : bz_whole_open_named)(&w, path, &err), 0);
        assert_true(bz_write_all(w.fd, bz_buf_text(&put), put.len));
        bool good = !i || chance(3);
        assert_int_equal(bz_whole_close(&w, good, &err), good ? 0 : -1);
        umask(old);
        if (good) {
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
            assert_int_equal(bz_whole_read(path, put.len, "is too long", &got, &err), 0);
            assert_int_equal(got.len, put.len);
            assert_memory_equal(bz_buf_text(&got), bz_buf_text(&put), put.len);
            if (put.len)
                assert_int_equal(bz_whole_read(path, put.len - 1, "is too long", &got, &err), -1);
        }
        snprintf(text, sizeof text, "test \"$(ls -A %s)\" = f", folder);
        assert_int_equal(system(text), 0);
        bz_buf_free(&put);
        bz_buf_free(&got);
    }
    snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_clean_or_spelled),
        cmocka_unit_test(all_else_is_spelled),
        cmocka_unit_test(widths_are_those_of_the_terminal),
        cmocka_unit_test(cut_texts_keep_both_ends),
        cmocka_unit_test(wrapped_texts_fill_their_lines),
        cmocka_unit_test(second_lines_are_wrapped),
        cmocka_unit_test(typos_mean_the_nearest_name),
        cmocka_unit_test(lists_of_words_are_split_at_blanks),
        cmocka_unit_test(units_read_back),
        cmocka_unit_test(sizes_have_the_units_of_other_programs),
        cmocka_unit_test(times_have_units_and_an_end),
        cmocka_unit_test(quantiles_are_on_the_line),
        cmocka_unit_test(many_numbers_are_sorted),
        cmocka_unit_test(sheets_are_sorted_stably),
        cmocka_unit_test(tables_hold_what_was_put),
        cmocka_unit_test(arenas_give_each_its_own),
        cmocka_unit_test(load_is_what_the_kernel_says),
        cmocka_unit_test(files_are_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
