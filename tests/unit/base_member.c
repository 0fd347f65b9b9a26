/* Tables of members: each type as JSON, what is not known as null. */
#include "base/member.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct thing {
    const char *text;
    double number;
    int64_t count;
    int n, seen;
    bool truth;
} thing;

static const bz_member THING[] = {
    BZ_MEMBER(thing, text), BZ_MEMBER(thing, number),        BZ_MEMBER_AS(thing, count, "many"),
    BZ_MEMBER(thing, n),    BZ_MEMBER_IF_KNOWN(thing, seen), BZ_MEMBER(thing, truth),
};

static void every_type_comes_out(void **state)
{
    const thing row[] = {{"a\"b", 0.5, INT64_C(1) << 40, -3, 2, true}, {NULL, NAN, 0, 0, -1, false}};
    bz_buf out = {0};
    bz_json j = bz_json_to(&out, false);
    (void)state;
    bz_json_object(&j);
    bz_members_rows("rows", BZ_MEMBERS(THING), row, sizeof *row, 2, &j);
    bz_members_json(THING, 1, row, &j);
    bz_json_object_end(&j);
    assert_string_equal(bz_buf_text(&out),
                        "{\"rows\":[{\"text\":\"a\\\"b\",\"number\":0.5,\"many\":1099511627776,\"n\":-3,\"seen\":2,"
                        "\"truth\":true},{\"text\":null,\"number\":null,\"many\":0,\"n\":0,\"seen\":null,"
                        "\"truth\":false}],\"text\":\"a\\\"b\"}");
    bz_buf_free(&out);
}

typedef struct named {
    char name[8];
    int n;
    double number;
} named;

static void fields_come_out_by_their_names(void **state)
{
    const named it = {"a\"b", 3, 0.5};
    bz_buf out = {0};
    bz_json j = bz_json_to(&out, false);
    (void)state;
    bz_json_object(&j);
    BZ_PUT(&j, named, &it, name, number);
    BZ_PUT(&j, named, &it, n);
    bz_json_object_end(&j);
    assert_string_equal(bz_buf_text(&out), "{\"name\":\"a\\\"b\",\"number\":0.5,\"n\":3}");
    bz_buf_free(&out);
}

typedef struct whole {
    const char *name, **word;
    const thing *part;
    uint32_t big;
    size_t size;
    int n_parts, n_words;
    int64_t time;
    double from, to;
} whole;

static const char *loud(const void *of)
{
    return *((const whole *)of)->name == 'a' ? "A" : NULL;
}

static const bz_member SOME[] = {BZ_MEMBER(thing, n)};
static const bz_member SPAN[] = {BZ_MEMBER(whole, from), BZ_MEMBER(whole, to)};
static const bz_member WHOLE[] = {
    BZ_MEMBER(whole, name),
    BZ_MEMBER_MADE("loud", loud),
    BZ_MEMBER(whole, big),
    BZ_MEMBER(whole, size),
    BZ_MEMBER_SECONDS(whole, time, "seconds"),
    BZ_MEMBER_WHOLE("span", SPAN),
    BZ_MEMBER_LIST(whole, word, n_words, "words"),
    BZ_MEMBER_EACH(whole, part, n_parts, "parts", SOME),
};

static void members_have_members(void **state)
{
    const thing part[] = {{.n = 1}, {.n = 2}};
    const char *word[] = {"x", "y,z"};
    const whole all[] = {{"a", word, part, UINT32_MAX, SIZE_MAX / 2, 2, 2, 1500, 0.1 + 0.2, 3e6},
                         {.name = "=b", .from = NAN, .to = 1}};
    bz_buf out = {0};
    bz_json j = bz_json_to(&out, false);
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    (void)state;
    bz_json_object(&j);
    bz_members_json(BZ_MEMBERS(WHOLE), all, &j);
    bz_json_object_end(&j);
    assert_string_equal(
        bz_buf_text(&out),
        "{\"name\":\"a\",\"loud\":\"A\",\"big\":4294967295,\"size\":9223372036854775807,\"seconds\":1.5e-06,"
        "\"span\":{\"from\":0.30000000000000004,\"to\":3e+06},"
        "\"words\":[\"x\",\"y,z\"],\"parts\":[{\"n\":1},{\"n\":2}]}");
    bz_buf_clear(&out);
    bz_members_columns("loud|begin=span.from|end=span.to|seconds|name", t);
    for (int i = 0; i < 2; i++)
        bz_members_cells(BZ_MEMBERS(WHOLE), &all[i], "loud|begin=span.from|end=span.to|seconds|name", t);
    bz_table_csv(t, &out);
    assert_string_equal(bz_buf_text(&out), "loud,begin,end,seconds,name\nA,0.3,3000000,1.5e-06,a\n,,1,0,\"'=b\"\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

/* Nine digits, and all of a whole number that a double tells from its neighbours: 1e15 is the first that CSV writes as a power. */
static void cells_have_nine_digits(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *cell;
    } CASES[] = {{0, "0"},
                 {-1234567890123, "-1234567890123"},
                 {999999999999999, "999999999999999"},
                 {1e15, "1e+15"},
                 {-1e15, "-1e+15"},
                 {0.1234567894, "0.123456789"},
                 {1.5e-300, "1.5e-300"},
                 {INFINITY, ""},
                 {NAN, ""}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf out = {0}, want = {0};
        bz_arena arena = {0};
        bz_table *t = bz_table_new(&arena);
        const whole one = {.name = "n", .from = CASES[i].number};
        bz_members_columns("name|from=span.from", t);
        bz_members_cells(BZ_MEMBERS(WHOLE), &one, "name|from=span.from", t);
        bz_table_csv(t, &out);
        bz_buf_printf(&want, "name,from\nn,%s\n", CASES[i].cell);
        assert_string_equal(bz_buf_text(&out), bz_buf_text(&want));
        bz_buf_free(&out);
        bz_buf_free(&want);
        bz_arena_free(&arena);
    }
}

typedef struct outer {
    thing inner;
    const thing *other;
    const double *number;
    const int64_t *size;
    const int *place;
    int n;
} outer;

static bool has_some(const void *of)
{
    return ((const outer *)of)->n > 0;
}

static double twice(const void *of)
{
    return 2 * ((const outer *)of)->inner.number;
}

static void put_sum(const void *of, bz_json *j)
{
    bz_json_int(j, ((const outer *)of)->n + 40);
}

static const bz_member ARRAYS[] = {
    BZ_MEMBER_LIST(outer, number, n, "numbers"),
    BZ_MEMBER_LIST(outer, size, n, "sizes"),
    BZ_MEMBER_LIST(outer, place, n, "places"),
};
static const bz_member OUTER[] = {
    BZ_MEMBERS_OF(outer, inner, SOME),         BZ_MEMBER_PART(outer, inner, "inner", SOME),
    BZ_MEMBER_AT(outer, other, "other", SOME), BZ_MEMBER_HOLDS("some", has_some),
    BZ_MEMBER_NUMBER("twice", twice),          BZ_MEMBER_WRITTEN("sum", put_sum),
    BZ_MEMBERS_WHERE(has_some, ARRAYS),
};

/* Parts of other structs, by place and by pointer, with a name and without; what is not there is left out. */
static void members_of_other_structs(void **state)
{
    const thing other = {.n = 7};
    const outer all[] = {{{.n = 3, .number = 0.25}, &other, (double[]){0.5, NAN}, (int64_t[]){1, -2}, (int[]){3, 4}, 2},
                         {.inner = {.n = 1}}};
    bz_buf out = {0};
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    (void)state;
    bz_members_document("things", 2, BZ_MEMBERS(OUTER), &all[0], -1, &out);
    bz_members_document("things", 2, BZ_MEMBERS(OUTER), &all[1], -1, &out);
    assert_string_equal(
        bz_buf_text(&out),
        "{\"record\":\"things\",\"v\":2,\"n\":3,\"inner\":{\"n\":3},\"other\":{\"n\":7},\"some\":true,\"twice\":0.5,"
        "\"sum\":42,\"numbers\":[0.5,null],\"sizes\":[1,-2],\"places\":[3,4]}\n"
        "{\"record\":\"things\",\"v\":2,\"n\":1,\"inner\":{\"n\":1},\"some\":false,\"twice\":0,\"sum\":40}\n");
    bz_buf_clear(&out);
    bz_members_columns("n|within=inner.n|twice", t);
    bz_members_cells(BZ_MEMBERS(OUTER), &all[0], "n|within=inner.n|twice", t);
    bz_table_csv(t, &out);
    assert_string_equal(bz_buf_text(&out), "n,within,twice\n3,3,0.5\n");
    bz_buf_free(&out);
    bz_arena_free(&arena);
}

static void values_tell_their_types(void **state)
{
    const char *nothing = NULL, name[] = "x\"y";
    bz_buf out = {0};
    bz_json j = bz_json_to(&out, false);
    bool own = true;
    (void)state;
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("name", name), BZ_TELL("nothing", nothing), BZ_TELL("least", INT64_MIN), BZ_TELL("share", 0.25),
            BZ_TELL("unknown", NAN), BZ_TELL("own", own), BZ_TELL("other", (bool)(own == false)), BZ_TELL("n", 3u));
    bz_json_object_end(&j);
    assert_string_equal(bz_buf_text(&out), "{\"name\":\"x\\\"y\",\"nothing\":null,\"least\":-9223372036854775808,"
                                           "\"share\":0.25,\"unknown\":null,\"own\":true,\"other\":false,\"n\":3}");
    bz_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_out),     cmocka_unit_test(fields_come_out_by_their_names),
        cmocka_unit_test(members_have_members),     cmocka_unit_test(cells_have_nine_digits),
        cmocka_unit_test(members_of_other_structs), cmocka_unit_test(values_tell_their_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
