/* What a side is, by what its file begins with; an export as a database that leaves nothing behind; reports as files. */
#include "tests/unit/programs.h"

#include "compare/compare.h"

#include <dirent.h>

#define EXPORT "{\"v\":1,\"record\":\"system\",\"slug\":\"box\",\"stack\":\"x1\",\"date\":5}\n"
#define REPORT                                                                                                         \
    "{\"record\":\"analysis\",\"v\":1,\"models\":[{\"model\":\"m\",\"system\":\"s\",\"batch\":1,\"sequential\":%d,"    \
    "\"layers\":[]}]}"
#define TRACE                                                                                                          \
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":" \
    "5}]}"

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        bz_side_kind kind;
        bool why; /* it is told why it is no profile */
    } FILES[] = {{EXPORT, BZ_SIDE_RECORDS, false},
                 {" {\n \"v\" : 1", BZ_SIDE_RECORDS, false},
                 {"{\"context\":{}}", BZ_SIDE_RECORDS, false},
                 {"{\"record\":\"comparison\"}", BZ_SIDE_RECORDS, false},
                 {"{\"record\":\"analysis\"}", BZ_SIDE_REPORT, false},
                 {"\t{ \r\n\"record\"\n: \"analysis\" }", BZ_SIDE_REPORT, false},
                 {"{\"record\":\"analysist\"}", BZ_SIDE_RECORDS, false},
                 {"{\"records\":\"analysis\"}", BZ_SIDE_RECORDS, true},
                 {"\"record\":\"analysis\"}", BZ_SIDE_RECORDS, true},
                 {"{\"record\",\"analysis\"}", BZ_SIDE_RECORDS, true},
                 {"what is this", BZ_SIDE_RECORDS, true},
                 {"", BZ_SIDE_RECORDS, true},
                 {TRACE, BZ_SIDE_PROFILE, false}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        bz_trace *trace = NULL;
        bz_error why;
        write_file(state, "file", FILES[i].text, false);
        bz_side_kind kind = bz_side_kind_of(below(state, "file"), &trace, &why);
        if (kind != FILES[i].kind || (*why.text != 0) != FILES[i].why)
            fail_msg("%s: %d, %s", FILES[i].text, kind, why.text);
        assert_int_equal(trace != NULL, kind == BZ_SIDE_PROFILE);
        bz_trace_free(trace);
    }
    bz_trace *none;
    bz_error why;
    assert_int_equal(bz_side_kind_of("box@x1", &none, &why), BZ_SIDE_RECORDS); /* the name of a system */
    assert_true(!none && !*why.text);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void test_exports(void **state)
{
    char *before = getenv("TMPDIR") ? bz_arena_str(&texts, getenv("TMPDIR")) : NULL;
    bz_arena arena = {0};
    struct dirent **entry;
    assert_ok(mkdir(below(state, "tmp"), 0777));
    setenv("TMPDIR", below(state, "tmp"), 1);
    for (int n = 0; n < 4; n++) { /* systems */
        bz_perfdb *db = NULL;
        const bz_system *system = NULL;
        bz_buf text = {0};
        for (int k = 0; k < n; k++) {
            bz_record r = sample_record();
            bz_json j = bz_json_to(&text, false);
            r.system = bz_arena_printf(&arena, "box%d@x1", k);
            bz_record_json(&j, &r);
            bz_buf_putc(&text, '\n');
        }
        write_file(state, "file", n ? bz_buf_text(&text) : "{\"v\":9}\n", false);
        int rc = bz_side_import(below(state, "file"), &(bz_perfdb_options){0}, &arena, &db, &system, &err);
        assert_int_equal(scandir(below(state, "tmp"), &entry, visible, alphasort), 0); /* it is open, and has no name */
        free(entry);
        assert_int_equal(rc, n == 1 ? 0 : -1);
        if (n == 1)
            assert_string_equal(system->name, "box0@x1");
        else
            assert_non_null(
                strstr(err.text, n ? bz_arena_printf(&arena, "holds records of %d systems", n) : "holds no record"));
        if (n == 1)
            assert_int_equal(count_records(db), 1);
        bz_perfdb_close(db);
        bz_buf_free(&text);
    }
    bz_perfdb *db = NULL;
    const bz_system *system;
    setenv("TMPDIR", below(state, "nowhere"), 1);
    assert_fails(bz_side_import(below(state, "file"), &(bz_perfdb_options){0}, &arena, &db, &system, &err), BZ_FAILED,
                 below(state, "file"));
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    bz_arena_free(&arena);
}

static void test_reports(void **state)
{
    const char *path[] = {below(state, "first"), below(state, "second")};
    bz_arena arena = {0};
    bz_compare_set set;
    for (int i = 0; i < 2; i++)
        write_file(state, i ? "second" : "first", bz_arena_printf(&arena, REPORT, 1 + i), false);
    assert_ok(bz_compare_files(path, (bz_trace *[2]){NULL, NULL}, NULL, &arena, &set, &err));
    assert_string_equal(set.name_a, path[0]);
    assert_string_equal(set.name_b, path[1]);
    const bz_compare_row *answer = bz_compare_answer(&set);
    assert_true(answer && answer->a.seconds == 1 && answer->b.seconds == 2);
    for (int i = 0; i < 2; i++) { /* either of them is no report */
        write_file(state, i ? "second" : "first", "{", false);
        assert_fails(bz_compare_files(path, (bz_trace *[2]){NULL, NULL}, NULL, &arena, &set, &err), BZ_BAD_INPUT,
                     path[i]);
        write_file(state, "first", bz_arena_printf(&arena, REPORT, 1), false);
    }
    bz_arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_kinds), TEST(test_exports), TEST(test_reports)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_arena_free(&texts);
    return failed;
}
