/* JSON token by token: the same tokens wherever the windows end, strings without escapes, and an error where it is none. */
#include "profile/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A key and its value at once where that can be, else the next token. */
static bz_token next(bz_tokens *k, bool members, bz_buf *out)
{
    bz_token what = members ? bz_tokens_member(k) : BZ_TOKEN_MORE;
    if (what == BZ_TOKEN_MORE)
        return bz_tokens_next(k);
    bz_buf_putc(out, 'k');
    bz_buf_put(out, k->key, k->key_n);
    return what;
}

/* The tokens of a text that comes in windows which grow by `step` bytes, one letter and its text each. */
static char *tokens_of(const char *text, size_t n, size_t step, bool members)
{
    static const char LETTERS[] = "?!.{[}]kSN=x";
    bz_tokens k = {0};
    bz_buf out = {0};
    size_t from = 0, to = 0; /* the window, a copy of its own: a read behind it is found by a sanitizer */
    char *window = NULL;
    for (bool more = true; more;) {
        to = to + step < n ? to + step : n;
        free(window);
        window = malloc(to - from + 1);
        memcpy(window, text + from, to - from);
        k.at = window;
        k.end = window + (to - from);
        bz_token what;
        while ((what = next(&k, members, &out)) > BZ_TOKEN_END) {
            bz_buf_putc(&out, LETTERS[what]);
            if (what == BZ_TOKEN_KEY || what >= BZ_TOKEN_STRING)
                bz_buf_put(&out, k.text, k.n);
        }
        from += (size_t)(k.at - window);
        more = what == BZ_TOKEN_MORE && to < n;
        if (!more)
            bz_buf_putc(&out, LETTERS[what]);
    }
    char *copy = strdup(bz_buf_text(&out));
    free(window);
    bz_buf_free(&out);
    bz_buf_free(&k.plain);
    return copy;
}

static const struct {
    const char *text, *tokens;
} CASES[] = {
    {"{}", "{}."},
    {" [ ] x", "[]."}, /* what follows is not looked at */
    {"{\"a\": [1, -2.5e+3, {}], \"b\" : null}", "{ka[N1N-2.5e+3{}]kb=null}."},
    {"[\"a b\", true,false]", "[Sa b=true=false]."},
    {"[\"\\\"\\\\\\/\\n\\u00e4\\ud83d\\ude00\\ud800!\"]", "[S\"\\/\n\xc3\xa4\xf0\x9f\x98\x80?!]."},
    {"[\"0123456789abcdef\\t0123456789abcdef\"]", "[S0123456789abcdef\t0123456789abcdef]."},
    {"[NaN, -Infinity, {\"d\":NaN}]", "[xNaNx-Infinity{kdxNaN}]."},
    {"[1,]", "[N1!"},
    {"[1 2]", "[N1!"},
    {"[01]", "[!"},
    {"[1.]", "[!"},
    {"[-]", "[!"},
    {"[1e]", "[!"},
    {"{\"a\" 1}", "{!"},
    {"{a:1}", "{!"},
    {"{\"a\":1,}", "{kaN1!"},
    {"[}", "[!"},
    {"{]", "{!"},
    {"[\"\x01\"]", "[!"},
    {"[\"\\x\"]", "[!"},
    {"[\"\\u12g4\"]", "[!"},
    {"[nul]", "[!"},
    {"[\"open", "[?"},
    {"[12", "[?"},
    {"{\"a\"", "{?"},
    {"", "?"},
};

static void windows_do_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t step = 1, n = strlen(CASES[i].text); step <= n + 1; step++) {
            for (int members = 0; members < 2; members++) {
                char *got = tokens_of(CASES[i].text, n, step, members);
                assert_string_equal(got, CASES[i].tokens);
                free(got);
            }
        }
}

/* Most of a trace is read so: if it were not, nothing but the time would tell. */
static void members_come_at_once(void **state)
{
    (void)state;
    static const char TEXT[] = "{\"name\" : \"a b\", \"ts\":-1234567890.5 }";
    bz_tokens k = {.at = TEXT, .end = TEXT + strlen(TEXT)};
    assert_int_equal(bz_tokens_member(&k), BZ_TOKEN_MORE);
    assert_int_equal(bz_tokens_next(&k), BZ_TOKEN_OPEN_MAP);
    assert_int_equal(bz_tokens_member(&k), BZ_TOKEN_STRING);
    assert_memory_equal(k.key, "name", k.key_n);
    assert_memory_equal(k.text, "a b", k.n);
    assert_int_equal(bz_tokens_member(&k), BZ_TOKEN_NUMBER);
    assert_int_equal(k.n, strlen("-1234567890.5"));
    assert_int_equal(bz_tokens_member(&k), BZ_TOKEN_MORE);
    assert_int_equal(bz_tokens_next(&k), BZ_TOKEN_CLOSE_MAP);
}

static void too_deep_is_no_crash(void **state)
{
    (void)state;
    char text[4 * BZ_TOKENS_DEEPEST];
    memset(text, '[', sizeof text);
    bz_tokens k = {.at = text, .end = text + sizeof text};
    int n = 0;
    while (bz_tokens_next(&k) == BZ_TOKEN_OPEN_ARRAY)
        n++;
    assert_int_equal(n, BZ_TOKENS_DEEPEST);
    assert_true(k.too_deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_do_not_matter),
        cmocka_unit_test(members_come_at_once),
        cmocka_unit_test(too_deep_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
