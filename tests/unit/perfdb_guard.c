/* Files from strangers: what the guard lets pass, LMDB must survive. BENANZA_MUTATIONS sets how
 * many damaged files are tried (300). */
#include "tests/unit/perfdb_test.h"

#include "perfdb/guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

/* A database with branch pages, long values on pages of their own, and a list of free pages. */
static void make_file(void **state, bz_buf *file)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record *r = BZ_NEW(&arena, bz_record, 400);
    char *reason = bz_arena_alloc(&arena, 4000);
    memset(reason, 'x', 3999);
    for (int i = 0; i < 400; i++) {
        r[i] = sample_record();
        r[i].problem = bz_arena_printf(&arena, "relu x=%d dtype=f32", i / 4);
        r[i].variant.algorithm = bz_arena_printf(&arena, "a%d", i % 4);
        r[i].reason = i % 50 ? "" : reason;
    }
    assert_ok(bz_perfdb_put(db, r, 400, NULL, &err));
    for (int i = 0; i < 20; i++) {
        r[i].date++;
        put(db, r[i]);
    }
    size_t deleted;
    assert_ok(bz_perfdb_gc(db, 1, &deleted, &err));
    bz_perfdb_close(db);
    FILE *f = fopen(below(state, "db/data.mdb"), "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        bz_buf_putc(file, (char)c);
    fclose(f);
    bz_arena_free(&arena);
}

static void test_good_file(void **state)
{
    bz_buf file = {0};
    make_file(state, &file);
    assert_null(bz_guard_bytes(file.data, file.len, true));
    assert_non_null(bz_guard_bytes(file.data, file.len - PAGE, true));
    for (size_t n = 0; n < 2 * PAGE; n += 64)
        assert_non_null(bz_guard_bytes(file.data, n, true));
    bz_buf_free(&file);
}

static uint32_t seed = 2463534242u;

static uint32_t any_number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

static size_t salvage_to(const char *dir, const char *path, bz_perfdb_salvage_report *report)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_ok(bz_perfdb_salvage(dir, fd, false, report, &err));
    close(fd);
    return report->records;
}

/* Everything that a command does with a database. */
static void use(const char *dir)
{
    bz_perfdb_salvage_report salvaged;
    salvage_to(dir, "/dev/null", &salvaged);
    bz_perfdb *db;
    bz_perfdb_check_report report;
    size_t n = 0, deleted;
    bz_record r = sample_record();
    if (bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err))
        _exit(1);
    bool failed = bz_perfdb_check(db, &report, &err) ||
                  bz_perfdb_scan(db, &(bz_perfdb_filter){.history = true}, count_one, &n, &err) ||
                  bz_perfdb_put(db, &r, 1, NULL, &err) || bz_perfdb_gc(db, 1, &deleted, &err);
    bz_perfdb_close(db);
    _exit(failed ? 2 : 0);
}

/* Bytes in the places where LMDB's own numbers are are hit more often than the rest. */
static void mutate(char *file, size_t size)
{
    size_t page = any_number() % (size / PAGE), offset = any_number() % (any_number() % 2 ? 64 : PAGE);
    static const unsigned char VALUES[] = {0, 1, 2, 4, 16, 0x7f, 0x80, 0xff};
    for (unsigned n = any_number() % 3 + 1; n; n--, offset = (offset + 1) % PAGE)
        file[page * PAGE + offset] =
            (char)(any_number() % 2 ? VALUES[any_number() % sizeof VALUES] : (unsigned char)any_number());
}

static void test_damaged_files(void **state)
{
    bz_buf file = {0};
    make_file(state, &file);
    const char *path = below(state, "db/data.mdb"), *wanted = getenv("BENANZA_MUTATIONS");
    int tries = wanted ? atoi(wanted) : 300, passed = 0, refused = 0, failed = 0;
    char *bad = bz_alloc(file.len, 1);
    for (int i = 0; i < tries; i++) {
        memcpy(bad, file.data, file.len);
        for (unsigned n = any_number() % 4 + 1; n; n--)
            mutate(bad, file.len);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(bad, 1, file.len, f), file.len);
        fclose(f);
        pid_t child = fork();
        if (child == 0)
            use(below(state, "db"));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status))
            fail_msg("file %d: LMDB died of signal %d", i, WTERMSIG(status));
        passed += WEXITSTATUS(status) == 0;
        refused += WEXITSTATUS(status) == 1;
        failed += WEXITSTATUS(status) == 2;
    }
    print_message("%d files: %d refused, %d used, %d failed in use\n", tries, refused, passed, failed);
    assert_true(refused > 0);
    assert_true(passed > 0);
    free(bad);
    bz_buf_free(&file);
}

/* Every page in turn is lost: all that was on the others comes out. */
static void test_salvage(void **state)
{
    bz_buf file = {0};
    make_file(state, &file);
    bz_perfdb_salvage_report report;
    const char *dir = below(state, "db"), *path = below(state, "db/data.mdb"), *text = below(state, "out.jsonl");
    assert_int_equal(salvage_to(dir, text, &report), 400);
    assert_int_equal(report.pages + report.damaged + report.nameless + report.lost_systems + report.old, 0);
    size_t worst = 400, told = 0, pages = file.len / PAGE;
    for (size_t p = 0; p < pages; p++) {
        bz_buf bad = {0};
        bz_buf_put(&bad, file.data, file.len);
        for (size_t i = 0; i < PAGE; i++)
            bad.data[p * PAGE + i] = (char)any_number();
        FILE *f = fopen(path, "w");
        assert_int_equal(fwrite(bad.data, 1, bad.len, f), bad.len);
        fclose(f);
        size_t n = salvage_to(dir, text, &report);
        worst = n < worst ? n : worst;
        told += report.pages || report.damaged || report.nameless || report.lost_systems || report.old;
        assert_true(n >= 400 || 400 - n <= PAGE / 200 + report.nameless); /* no record takes less than 200 bytes */
        assert_true(n == 400 || report.pages || report.damaged || report.nameless || report.old);
        /* what comes out goes in again, and nothing else does */
        bz_perfdb *db = open_with(below(state, "new"), (bz_perfdb_options){0});
        bz_perfdb_import_report r;
        assert_ok(bz_perfdb_import(db, text, NULL, &r, &err));
        assert_int_equal(r.bad, 0);
        assert_int_equal(r.records, n);
        bz_perfdb_close(db);
        bz_buf_free(&bad);
    }
    print_message("%zu pages lost one by one: at least %zu of 400 records come out\n", pages, worst);
    assert_true(told > pages / 2);
    bz_buf_free(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_good_file), TEST(test_damaged_files), TEST(test_salvage)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
