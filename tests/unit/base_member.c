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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type_comes_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
