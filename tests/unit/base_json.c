/* What the JSON writer writes, cJSON must read back the same. */
#include "base/base.h"
#include "base/perfetto.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static char *string_back(const char *s, bz_buf *text)
{
    bz_json j = bz_json_to(text, false);
    bz_json_str(&j, s);
    cJSON *doc = cJSON_ParseWithOpts(bz_buf_text(text), NULL, true);
    assert_non_null(doc);
    assert_true(cJSON_IsString(doc));
    char *copy = strdup(doc->valuestring);
    cJSON_Delete(doc);
    return copy;
}

static void strings_come_back(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"",
                                        "plain",
                                        "\"quoted\\\"",
                                        "a\nb\tc\r\b\f\001\037\177",
                                        "\033[31m",
                                        "</script><!--",
                                        "日本語 µ",
                                        "\xf0\x9f\x98\x80",
                                        "\xe2\x80\xa8",
                                        "/"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_buf text = {0};
        char *back = string_back(TEXTS[i], &text);
        assert_string_equal(back, TEXTS[i]);
        for (size_t k = 0; k < text.len; k++) /* may stand in a terminal and in HTML */
            assert_true((unsigned char)text.data[k] >= 0x20 && !strchr("<>\177", text.data[k]));
        free(back);
        bz_buf_free(&text);
    }
}

/* A terminal acts on C1 control characters, and these marks turn the text around. */
static void dangerous_characters_are_escaped(void **state)
{
    (void)state;
    bz_buf text = {0};
    char *back = string_back("\xc2\x9b"
                             "2J\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c",
                             &text);
    assert_string_equal(bz_buf_text(&text), "\"\\u009b2J\\u202e\\u2066\\u2028\\u061c\"");
    assert_string_equal(back, "\xc2\x9b"
                              "2J\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c");
    free(back);
    bz_buf_free(&text);
}

static void what_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {{"a\xff"
                                            "b",
                                            "a�b"},
                                           {"\xc0\xaf", "��"},
                                           {"\xed\xa0\x80", "���"},
                                           {"\xf4\x90\x80\x80", "����"},
                                           {"\xe2\x82", "��"},
                                           {"\xc3(", "�("}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        bz_buf text = {0};
        char *back = string_back(PAIRS[i][0], &text);
        assert_string_equal(back, PAIRS[i][1]);
        free(back);
        bz_buf_free(&text);
    }
}

static void numbers_come_back(void **state)
{
    (void)state;
    static const double V[] = {0,
                               1,
                               -1,
                               0.1,
                               1.0 / 3,
                               1e6,
                               123456789,
                               2.5e-9,
                               1e300,
                               5e-324,
                               1.7976931348623157e308,
                               4.576,
                               0.30000000000000004,
                               9007199254740993.0,
                               1e21};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        bz_buf text = {0};
        bz_json j = bz_json_to(&text, false);
        bz_json_num(&j, V[i]);
        char *end;
        assert_true(strtod(bz_buf_text(&text), &end) == V[i] && !*end);
        cJSON *doc = cJSON_ParseWithOpts(bz_buf_text(&text), NULL, true);
        assert_true(cJSON_IsNumber(doc) && doc->valuedouble == V[i]);
        cJSON_Delete(doc);
        bz_buf_free(&text);
    }
}

static void number_text_is_short(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } CASES[] = {
        {0.1, "0.1"},      {4.576, "4.576"},      {0.1 + 0.2, "0.30000000000000004"}, {12.3456789, "12.3456789"},
        {1e300, "1e+300"}, {(double)NAN, "null"}, {(double)INFINITY, "null"},         {-(double)INFINITY, "null"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf text = {0};
        bz_json j = bz_json_to(&text, false);
        bz_json_num(&j, CASES[i].v);
        assert_string_equal(bz_buf_text(&text), CASES[i].text);
        bz_buf_free(&text);
    }
}

/* Numbers of nanoseconds have a way of their own: the text is that of the shortest of %.6g, %.15g, %.16g and %.17g that reads back. */
static void numbers_are_as_printf_writes_them(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 300000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t n = (int64_t)(seed >> 14 >> (i % 50)) * (i % 7 ? 1 : -1), round = 1;
        for (int k = i % 11; k > 0; k--)
            round *= 10;
        double v = (double)(i % 3 ? n : n / round * round) / (i % 5 ? 1e9 : 1e8 + i);
        char expected[32];
        for (int digits = 6; digits <= 17; digits += digits < 15 ? 9 : 1) {
            snprintf(expected, sizeof expected, "%.*g", digits, v);
            if (strtod(expected, NULL) == v)
                break;
        }
        bz_buf text = {0};
        bz_json j = bz_json_to(&text, false);
        bz_json_num(&j, v);
        assert_string_equal(bz_buf_text(&text), expected);
        bz_buf_free(&text);
    }
}

static void write_document(bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", "x\"y");
    bz_json_key_int(j, "least", INT64_MIN);
    bz_json_key_num(j, "share", 0.25);
    bz_json_key_bool(j, "yes", true);
    bz_json_key_bool(j, "no", false);
    bz_json_key_str(j, "nothing", NULL);
    bz_json_key(j, "empty list");
    bz_json_array(j);
    bz_json_array_end(j);
    bz_json_key(j, "empty object");
    bz_json_object(j);
    bz_json_object_end(j);
    bz_json_key(j, "rows");
    bz_json_array(j);
    for (int i = 0; i < 2; i++) {
        bz_json_object(j);
        bz_json_key_int(j, "i", i);
        bz_json_key(j, "shape");
        bz_json_array(j);
        bz_json_int(j, 1);
        bz_json_null(j);
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void one_line_form(void **state)
{
    (void)state;
    bz_buf text = {0};
    bz_json j = bz_json_to(&text, false);
    write_document(&j);
    assert_string_equal(bz_buf_text(&text),
                        "{\"name\":\"x\\\"y\",\"least\":-9223372036854775808,\"share\":0.25,\"yes\":true,\"no\":false,"
                        "\"nothing\":null,\"empty list\":[],\"empty object\":{},\"rows\":[{\"i\":0,\"shape\":[1,null]},"
                        "{\"i\":1,\"shape\":[1,null]}]}");
    bz_buf_free(&text);
}

static void indented_form(void **state)
{
    (void)state;
    bz_buf text = {0};
    bz_json j = bz_json_to(&text, true);
    bz_json_object(&j);
    bz_json_key_int(&j, "a", 1);
    bz_json_key(&j, "b");
    bz_json_array(&j);
    bz_json_str(&j, "x");
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    assert_string_equal(bz_buf_text(&text), "{\n  \"a\": 1,\n  \"b\": [\n    \"x\"\n  ]\n}");
    bz_buf_free(&text);
}

/* flat = 2: what stands at depth 2 and deeper shares one line. */
static void flat_form(void **state)
{
    (void)state;
    bz_buf text = {0};
    bz_json j = bz_json_to(&text, true);
    j.flat = 2;
    bz_json_array(&j);
    for (int i = 0; i < 2; i++) {
        bz_json_object(&j);
        bz_json_key_int(&j, "i", i);
        bz_json_key(&j, "shape");
        bz_json_array(&j);
        bz_json_int(&j, 3);
        bz_json_int(&j, 4);
        bz_json_array_end(&j);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    assert_string_equal(bz_buf_text(&text), "[\n  {\"i\": 0, \"shape\": [3, 4]},\n  {\"i\": 1, \"shape\": [3, 4]}\n]");
    bz_buf_free(&text);
}

/* Every form of the same document says the same. */
static void forms_agree(void **state)
{
    (void)state;
    cJSON *first = NULL;
    for (int form = -1; form < 6; form++) {
        bz_buf text = {0};
        bz_json j = bz_json_to(&text, form >= 0);
        j.flat = form > 0 ? form : 0;
        write_document(&j);
        cJSON *doc = cJSON_ParseWithOpts(bz_buf_text(&text), NULL, true);
        assert_non_null(doc);
        if (!first)
            first = doc;
        assert_true(cJSON_Compare(first, doc, true));
        if (doc != first)
            cJSON_Delete(doc);
        bz_buf_free(&text);
    }
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(first, "rows")), 2);
    cJSON_Delete(first);
}

/* Member by member what a Chrome trace is, also where it is written in several pieces. */
static void arrays_of_what_there_is(void **state)
{
    (void)state;
    BZ_SCOPED(bz_buf) text = {0};
    bz_json j = bz_json_to(&text, false);
    int nothing = 0;
    bz_json_object(&j);
    BZ_JSON_EACH_VALUE (&j, "odd", i, 5)
        if (i % 2)
            bz_json_int(&j, i);
    BZ_JSON_EACH_VALUE (&j, "twice", i, 3) {
        if (i == 1)
            continue;
        bz_json_int(&j, i);
        bz_json_int(&j, i);
    }
    BZ_JSON_EACH_VALUE (&j, "none", i, nothing)
        bz_json_int(&j, i);
    bz_json_object_end(&j);
    assert_string_equal(bz_buf_text(&text), "{\"odd\":[1,3],\"twice\":[0,0,2,2],\"none\":[]}");
}

static void traces_are_chromes(void **state)
{
    (void)state;
    static const char HEAD[] =
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":7,\"tid\":3,\"args\":{\"name\":\"a \\\"b\\\"\"}}",
                      EVENT[] = ",\n{\"name\":\"sgemm\",\"cat\":\"kernel\",\"ph\":\"X\",\"pid\":0,\"tid\":4294967295,"
                                "\"ts\":-1.002,\"dur\":1234.500,"
                                "\"args\":{\"bytes\":4096,\"of\":\"x\",\"less\":-1}}",
                      BARE[] = ",\n{\"name\":\"bare\"}", TAIL[] = "\n]}\n";
    char path[BZ_FOLDER_MAX];
    int file = bz_folder_file(path, NULL);
    assert_true(file >= 0);
    close(file);
    for (int n = 0; n < 20000; n = 3 * n + 1) {
        bz_perfetto p;
        bz_error err;
        bz_buf got = {0}, want = {0};
        assert_int_equal(bz_perfetto_open(&p, path, &err), 0);
        bz_perfetto_name(&p, "process_name", 7, 3, "a \"b\"");
        bz_buf_puts(&want, HEAD);
        for (int i = 0; i < n; i++) {
            bz_perfetto_slice(&p, "sgemm", "kernel", 0, UINT32_MAX, -1002, 1234500);
            bz_perfetto_args(&p);
            bz_perfetto_int(&p, "bytes", 4096);
            bz_perfetto_str(&p, "of", "x");
            bz_perfetto_int(&p, "less", -1);
            bz_perfetto_end(&p);
            bz_buf_puts(&want, EVENT);
        }
        bz_perfetto_begin(&p, "bare");
        bz_perfetto_end(&p);
        bz_buf_puts(&want, BARE);
        assert_int_equal(bz_perfetto_close(&p, &err), 0);
        bz_buf_puts(&want, TAIL);
        assert_int_equal(bz_whole_read(path, want.len, "is too long", &got, &err), 0);
        assert_string_equal(bz_buf_text(&got), bz_buf_text(&want));
        bz_buf_free(&got);
        bz_buf_free(&want);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_what_there_is),
        cmocka_unit_test(traces_are_chromes),
        cmocka_unit_test(strings_come_back),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(dangerous_characters_are_escaped),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(number_text_is_short),
        cmocka_unit_test(numbers_are_as_printf_writes_them),
        cmocka_unit_test(one_line_form),
        cmocka_unit_test(indented_form),
        cmocka_unit_test(flat_form),
        cmocka_unit_test(forms_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
