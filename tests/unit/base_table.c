/* Numbers for people at the borders where the unit or the number of decimals changes, and tables. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef const char *format(bz_unit_text out, double v);

typedef struct {
    format *unit;
    double v;
    const char *text;
} unit_case;

static void units_at_borders(void **state)
{
    (void)state;
    static const unit_case CASES[] = {
        {bz_units_time, 0, "0 ns"},
        {bz_units_time, 1e-9, "1.00 ns"},
        {bz_units_time, 14.3e-6, "14.3 µs"},
        {bz_units_time, 999.4e-6, "999 µs"},
        {bz_units_time, 999.49e-6, "999 µs"},
        {bz_units_time, 999.6e-6, "1.00 ms"}, /* not 1000 µs */
        {bz_units_time, 1e-3, "1.00 ms"},
        {bz_units_time, 4.576e-3, "4.58 ms"},
        {bz_units_time, 9.994e-3, "9.99 ms"},
        {bz_units_time, 9.996e-3, "10.0 ms"}, /* not 10.00 */
        {bz_units_time, 99.94e-3, "99.9 ms"},
        {bz_units_time, 99.96e-3, "100 ms"},
        {bz_units_time, 0.9996, "1.00 s"},
        {bz_units_time, 3, "3 s"},
        {bz_units_time, 75.25, "75.2 s"},
        {bz_units_time, -14.3e-6, "-14.3 µs"},
        {bz_units_bytes, 0, "0 B"},
        {bz_units_bytes, 1, "1 B"},
        {bz_units_bytes, 999, "999 B"},
        {bz_units_bytes, 1000, "1.00 kB"},
        {bz_units_bytes, 3850240, "3.85 MB"},
        {bz_units_bytes, 999499, "999 kB"},
        {bz_units_bytes, 999600, "1.00 MB"},
        {bz_units_bytes, 2.5e12, "2.50 TB"},
        {bz_units_count, 0, "0"},
        {bz_units_count, 9999, "9999"},
        {bz_units_count, 10000, "10.0 k"},
        {bz_units_count, 118013952, "118 M"},
        {bz_units_count, 999.5e6, "1.00 G"},
        {bz_units_count, -12, "-12"},
        {bz_units_percent, 0.269, "26.9 %"},
        {bz_units_percent, 0, "0.0 %"},
        {bz_units_percent, 1, "100.0 %"},
        {bz_units_percent, 0.99949, "99.9 %"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_unit_text out;
        assert_string_equal(CASES[i].unit(out, CASES[i].v), CASES[i].text);
    }
}

/* Never more than three digits before the unit, never a number that grew into the next unit. */
static void units_keep_three_digits(void **state)
{
    (void)state;
    for (double v = 1e-9; v < 900; v *= 1.0007) {
        bz_unit_text out;
        const char *text = bz_units_time(out, v);
        size_t digits = 0;
        for (const char *p = text; *p && *p != ' '; p++)
            digits += *p != '.';
        assert_int_equal(digits, 3);
    }
}

static void enormous_numbers_fit(void **state)
{
    (void)state;
    bz_unit_text out;
    assert_true(strlen(bz_units_bytes(out, 1e300)) < sizeof out);
    assert_true(strlen(bz_units_time(out, -1e300)) < sizeof out);
    assert_true(strlen(bz_units_count(out, 1e300)) < sizeof out);
    assert_true(strlen(bz_units_percent(out, 1e300)) < sizeof out);
}

static void width_counts_columns(void **state)
{
    (void)state;
    assert_int_equal(bz_text_width(""), 0);
    assert_int_equal(bz_text_width("abc"), 3);
    assert_int_equal(bz_text_width("14.3 µs"), 7);
    assert_int_equal(bz_text_width("日本"), 4);
    assert_int_equal(bz_text_width("e\xcc\x81"), 1);
    /* marks on letters have none, the letters of East Asia and pictures two; each at its first and last character */
    static const struct {
        const char *first, *last, *before, *behind;
        int width;
    } RANGES[] = {{"\xcc\x80", "\xcd\xaf", "\xcb\xbf", "\xcd\xb0", 0},
                  {"\xe3\x80\x80", "\xed\x9f\xbf", "\xe2\xbf\xbf", "\xee\x80\x80", 2},
                  {"\xf0\x90\x80\x80", "\xf0\xbf\xbf\xbf", "\xef\xbf\xbd", "\xf1\x80\x80\x80", 2}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bz_text_width(RANGES[i].first), RANGES[i].width);
        assert_int_equal(bz_text_width(RANGES[i].last), RANGES[i].width);
        assert_int_equal(bz_text_width(RANGES[i].before), 1);
        assert_int_equal(bz_text_width(RANGES[i].behind), 1);
    }
}

static bz_table *example(bz_arena *arena)
{
    bz_table *t = bz_table_new(arena);
    bz_table_column(t, "name", BZ_LEFT);
    bz_table_column(t, "time", BZ_RIGHT);
    bz_table_column(t, "note", BZ_LEFT);
    bz_table_cell(t, "a,b", NULL);
    bz_table_cell(t, "14.3 µs", "1.43e-05");
    bz_table_cell(t, "say \"hi\"", NULL);
    bz_table_cell(t, "x\033[1m", NULL);
    bz_table_int(t, -5);
    bz_table_cell(t, "two\nlines", NULL);
    bz_table_cell(t, "日本", NULL);
    bz_table_count(t, 118013952);
    bz_table_cell(t, "", NULL);
    return t;
}

static void table_is_aligned(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_buf out = {0};
    bz_table *t = example(&arena);
    assert_int_equal(bz_table_rows(t), 3);
    bz_table_print(t, &out);
    assert_string_equal(bz_buf_text(&out), "name         time  note\n"
                                           "a,b       14.3 µs  say \"hi\"\n"
                                           "x\\x1b[1m       -5  two\\x0alines\n"
                                           "日本        118 M\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

static void long_texts_lose_their_middle(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int width;
        const char *fitted;
    } CASES[] = {
        {"short", 5, "short"},
        {"features.denseblock4.conv2", 12, "featur…conv2"},
        {"abcdef", 5, "ab…ef"},
        {"/encoder/layers/encoder_layer_10/mlp/mlp.0/MatMul", 37, "/encoder/layers/e…10/mlp/mlp.0/MatMul"},
        {"layer10_abcdefghijk", 13, "layer…efghijk"}, /* "layer1…fghijk" would be another layer */
        {"1234567890123", 7, "1…90123"},              /* a number alone has no other place */
        {"日本日本日本", 7, "日…本"},                 /* 2 + 1 + 2: another wide one would be too much */
        {"e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81",
         3, "e\xcc\x81…e\xcc\x81"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf out = {0};
        bz_text_fit(&out, CASES[i].text, CASES[i].width);
        assert_string_equal(bz_buf_text(&out), CASES[i].fitted);
        bz_buf_free(&out);
    }
}

/* Every width from narrow to wide: no line is wider, but where numbers alone are. */
static void table_fits_the_screen(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "layer", BZ_LEFT);
    bz_table_column(t, "time", BZ_RIGHT);
    bz_table_column(t, "key", BZ_LEFT);
    bz_table_cell(t, "features.denseblock4.denselayer16.conv2", NULL);
    bz_table_cell(t, "14.3 µs", NULL);
    bz_table_cell(t, "conv x=1x3x32x32 w=16x3x3x3 stride=1x1 日本 pad=1x1x1x1 dilation=1x1 group=1", NULL);
    for (int columns = 36; columns < 140; columns++) {
        bz_buf out = {0};
        bz_screen_set((bz_screen){.columns = columns});
        bz_table_print(t, &out);
        for (char *line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n"))
            assert_in_range(bz_text_width(line), 1, columns);
        bz_buf_free(&out);
    }
    bz_buf out = {0};
    bz_screen_set((bz_screen){0});
    bz_table_print(t, &out);
    assert_non_null(
        strstr(bz_buf_text(&out), "denselayer16.conv2  14.3 µs  conv x=1x3x32x32 w=16x3x3x3 stride=1x1 日本"));
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

/* Twelve columns of a text are left on the narrowest screen: fewer tell nothing. */
static void a_text_keeps_twelve_columns(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "layer", BZ_LEFT);
    bz_table_cell(t, "features.denseblock4.denselayer16.conv2", NULL);
    for (int columns = 1; columns < 39; columns++) {
        bz_buf out = {0};
        bz_screen_set((bz_screen){.columns = columns});
        bz_table_print(t, &out);
        bz_screen_set((bz_screen){0});
        strtok(out.data, "\n");
        assert_int_equal(bz_text_width(strtok(NULL, "\n")), columns < 12 ? 12 : columns);
        bz_buf_free(&out);
    }
    bz_arena_free(&arena);
}

/* 80 columns do not hold all of this table: the name keeps what tells it from others, and the line below names what is gone. */
static void columns_that_would_say_nothing_are_left_out(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "layer", BZ_LEFT);
    bz_table_column(t, "time", BZ_RIGHT);
    bz_table_column(t, "variant", BZ_LEFT);
    bz_table_column(t, "next best", BZ_RIGHT);
    bz_table_column(t, "key", BZ_LEFT);
    bz_table_cell(t, "/layers/layers.8/layers.8.0/Conv", NULL);
    bz_table_cell(t, "14.3 µs", NULL);
    bz_table_cell(t, "onednn brgconv_1x1:avx512_core nhwc", NULL);
    bz_table_cell(t, "+147 ns", NULL);
    bz_table_cell(t, "conv x=1x3x32x32 w=16x3x3x3 stride=1x1", NULL);
    static const struct {
        int columns;
        const char *text;
    } CASES[] = {
        {65, "layer                     time  variant                 next best\n"
             "/layers/la…s.8.0/Conv  14.3 µs  onednn brgc…_core nhwc    +147 ns\n"
             "(--wide shows more columns: key)\n"},
        {45, "layer                         time  next best\n"
             "/layers/laye…ers.8.0/Conv  14.3 µs    +147 ns\n"
             "(--wide shows more columns: variant, key)\n"},
        {34, "layer                         time\n"
             "/layers/laye…ers.8.0/Conv  14.3 µs\n"
             "(--wide shows mor… next best, key)\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf out = {0};
        bz_screen_set((bz_screen){.columns = CASES[i].columns});
        bz_table_print(t, &out);
        bz_screen_set((bz_screen){0});
        assert_string_equal(bz_buf_text(&out), CASES[i].text);
        bz_buf_free(&out);
    }
    bz_arena_free(&arena);
}

/* One model on three systems: without the systems' names nobody could tell the rows. */
static void what_tells_rows_apart_stays(void **state)
{
    (void)state;
    static const char *const SYSTEMS[] = {"v100", "h100", "t4"};
    bz_arena arena = {0};
    bz_buf out = {0};
    bz_table *t = bz_table_of(&arena, "model|system|note|>sequential|>parallel|>fused");
    for (int i = 0; i < 3; i++) {
        bz_table_cell(t, "lstm.onnx", NULL);
        bz_table_cell(t, SYSTEMS[i], NULL);
        bz_table_cell(t, "predicted", NULL);
        for (int k = 0; k < 3; k++)
            bz_table_cell(t, "1.14 ms", NULL);
    }
    bz_screen_set((bz_screen){.columns = 40});
    bz_table_print(t, &out);
    bz_screen_set((bz_screen){0});
    assert_string_equal(bz_buf_text(&out), "model      system  sequential  parallel\n"
                                           "lstm.onnx  v100       1.14 ms   1.14 ms\n"
                                           "lstm.onnx  h100       1.14 ms   1.14 ms\n"
                                           "lstm.onnx  t4         1.14 ms   1.14 ms\n"
                                           "(--wide shows more columns: note, fused)\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

static void colours_stand_around_what_has_them(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_buf out = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "verdict", BZ_LEFT);
    bz_table_column(t, "n", BZ_RIGHT);
    bz_table_cell(t, "SLOWER", NULL);
    bz_table_style(t, BZ_STYLE_BAD);
    bz_table_int(t, 1);
    bz_screen_set((bz_screen){.colour = true});
    bz_table_print(t, &out);
    bz_screen_set((bz_screen){0});
    assert_string_equal(bz_buf_text(&out), "\033[1mverdict\033[0m  \033[1mn\033[0m\n\033[31mSLOWER\033[0m   1\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

static void table_as_html(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_buf out = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "a<b", BZ_LEFT);
    bz_table_column(t, "n", BZ_RIGHT);
    static const bz_style STYLES[] = {BZ_STYLE_NONE, BZ_STYLE_GOOD, BZ_STYLE_BAD};
    for (int i = 0; i < 3; i++) {
        bz_table_cell(t, "x & y", NULL);
        bz_table_style(t, STYLES[i]);
        bz_table_int(t, i);
    }
    bz_table_html(t, &out);
    assert_string_equal(bz_buf_text(&out), "<table><tr><th>a&lt;b</th><th>n</th></tr>\n"
                                           "<tr><td>x &amp; y</td><td class=n>0</td></tr>\n"
                                           "<tr class=good><td>x &amp; y</td><td class=n>1</td></tr>\n"
                                           "<tr class=bad><td>x &amp; y</td><td class=n>2</td></tr>\n</table>\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

/* Names from files that a spreadsheet would run become text; numbers stay numbers. */
static void no_formulas_in_csv(void **state)
{
    (void)state;
    static const char *const CELLS[][2] = {
        {"=1+1", "\"'=1+1\""},
        {"+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""},
        {"-2+3", "\"'-2+3\""},
        {"@SUM(A1)", "\"'@SUM(A1)\""},
        {"\t=1", "\\x09=1"},
        {"\r=1", "\\x0d=1"},
        {"=\"a\"", "\"'=\"\"a\"\"\""},
        {"-1.5e-7", "-1.5e-7"},
        {"+3", "+3"},
        {"-", "-"},
        {"-inf", "-inf"},
        {"a=b", "a=b"},
        {"-\t", "\"\'-\\x09\""},
    };
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS; i++) {
        bz_arena arena = {0};
        bz_buf out = {0}, expected = {0};
        bz_table *t = bz_table_new(&arena);
        bz_table_column(t, "n", BZ_LEFT);
        bz_table_cell(t, "shown", CELLS[i][0]);
        bz_table_csv(t, &out);
        bz_buf_printf(&expected, "n\n%s\n", CELLS[i][1]);
        assert_string_equal(bz_buf_text(&out), bz_buf_text(&expected));
        bz_buf_free(&out);
        bz_buf_free(&expected);
        bz_arena_free(&arena);
    }
}

static void table_as_csv(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_buf out = {0};
    bz_table_csv(example(&arena), &out);
    assert_string_equal(bz_buf_text(&out), "name,time,note\n"
                                           "\"a,b\",1.43e-05,\"say \"\"hi\"\"\"\n"
                                           "x\\x1b[1m,-5,two\\x0alines\n"
                                           "日本,118013952,\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

static void big_table_keeps_its_cells(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_buf out = {0}, expected = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, "i", BZ_RIGHT);
    bz_table_column(t, "zero", BZ_RIGHT);
    bz_buf_puts(&expected, "i,zero\n");
    for (int i = 0; i < 1000; i++) {
        bz_table_int(t, i);
        bz_table_count(t, 0);
        bz_buf_printf(&expected, "%d,0\n", i);
    }
    assert_int_equal(bz_table_rows(t), 1000);
    bz_table_csv(t, &out);
    assert_string_equal(bz_buf_text(&out), bz_buf_text(&expected));
    bz_buf_clear(&out);
    bz_table_print(t, &out);
    assert_non_null(strstr(bz_buf_text(&out), "\n  7     -\n"));
    bz_buf_free(&out);
    bz_buf_free(&expected);
    bz_arena_free(&arena);
}

/* Other cells keep their count, however large, and have nothing to do with digits. */
static void numbers_of_so_many_digits(void **state)
{
    (void)state;
    BZ_SCOPED(bz_arena) arena = {0};
    BZ_SCOPED(bz_buf) text = {0}, csv = {0};
    bz_table *t = bz_table_of(&arena, ">fixed|>digits|>none|>count");
    BZ_ROW(t, BZ_SHOW_FIXED(2, 1.0 / 3), BZ_SHOW_DIGITS(4, 12345.678), BZ_SHOW_FIXED(0, NAN),
           BZ_SHOW_COUNT(INT64_C(2000000000)));
    BZ_ROW(t, BZ_SHOW_FIXED(0, 7), BZ_SHOW_DIGITS(6, 1000), BZ_SHOW_DIGITS(4, INFINITY), BZ_SHOW_INT(3));
    bz_table_print(t, &text);
    bz_table_csv(t, &csv);
    assert_non_null(strstr(bz_buf_text(&text), "0.33"));
    assert_non_null(strstr(bz_buf_text(&text), "1.235e+04"));
    assert_string_equal(bz_buf_text(&csv), "fixed,digits,none,count\n0.333333333,12345.678,,2000000000\n7,1000,,3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_so_many_digits),
        cmocka_unit_test(units_at_borders),
        cmocka_unit_test(units_keep_three_digits),
        cmocka_unit_test(columns_that_would_say_nothing_are_left_out),
        cmocka_unit_test(what_tells_rows_apart_stays),
        cmocka_unit_test(enormous_numbers_fit),
        cmocka_unit_test(width_counts_columns),
        cmocka_unit_test(table_is_aligned),
        cmocka_unit_test(long_texts_lose_their_middle),
        cmocka_unit_test(table_fits_the_screen),
        cmocka_unit_test(a_text_keeps_twelve_columns),
        cmocka_unit_test(colours_stand_around_what_has_them),
        cmocka_unit_test(table_as_html),
        cmocka_unit_test(no_formulas_in_csv),
        cmocka_unit_test(table_as_csv),
        cmocka_unit_test(big_table_keeps_its_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
