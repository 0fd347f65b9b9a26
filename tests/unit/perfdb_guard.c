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

/* The format by its offsets (mdb.c of LMDB 0.9), and what the guard demands of it, in the plainest words. */
typedef struct {
    const unsigned char *file;
    uint64_t pages, stored, txn;
    bool *used;
} reading;

static uint64_t at(const void *p, int bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    return v;
}

static bool take(reading *r, uint64_t page, uint64_t n, uint64_t below_)
{
    bool good = page >= 2 && n >= 1 && page < below_ && n <= below_ - page;
    for (uint64_t i = 0; i < n && good; i++) {
        good = !r->used[page + i];
        r->used[page + i] = true;
    }
    return good;
}

typedef struct {
    const unsigned char *text;
    uint64_t n;
} key_of;

/* -1, 0, 1; 2: they cannot be compared. No text: in order with all. */
static int order(key_of a, key_of b, char kind)
{
    if (!a.text || !b.text)
        return -1;
    if (kind == 'f') {
        uint64_t x, y;
        if (a.n != 8 || b.n != 8)
            return 2;
        x = at(a.text, 8), y = at(b.text, 8);
        return x < y ? -1 : x > y;
    }
    for (uint64_t i = 0; i < a.n && i < b.n; i++)
        if (a.text[i] != b.text[i])
            return a.text[i] < b.text[i] ? -1 : 1;
    return a.n < b.n ? -1 : a.n > b.n;
}

static bool good_tree(reading *r, const unsigned char *header, char kind);

static bool good_value(reading *r, key_of key, const unsigned char *value, uint64_t size, uint64_t room, uint64_t flags,
                       char kind)
{
    if (flags == 1) { /* on pages of its own */
        uint64_t first = room < 8 ? 0 : at(value, 8);
        if (!take(r, first, 1, r->stored))
            return false;
        const unsigned char *page = r->file + first * PAGE;
        uint64_t run = at(page + 12, 4);
        if (at(page, 8) != first || at(page + 10, 2) != 4 || run * PAGE < size + 16 ||
            (run > 1 && !take(r, first + 1, run - 1, r->stored)))
            return false;
        value = page + 16;
    } else if (size > room) {
        return false;
    }
    if (kind == 'm' && flags == 2 && size == 48)
        return good_tree(r, value, 'd');
    if (flags > 1)
        return false;
    if (kind != 'f')
        return true;
    if (key.n != 8 || size < 8 || at(key.text, 8) > r->txn || at(value, 8) > size / 8 - 1)
        return false;
    uint64_t last = r->pages;
    for (uint64_t i = 1; i <= at(value, 8); i++) {
        uint64_t page = at(value + 8 * i, 8);
        if (page >= last || !take(r, page, 1, r->pages))
            return false;
        last = page;
    }
    return true;
}

static bool good_page(reading *r, uint64_t number, uint64_t level, char kind, key_of low, key_of high,
                      uint64_t *entries)
{
    if (!take(r, number, 1, r->stored))
        return false;
    const unsigned char *page = r->file + number * PAGE;
    uint64_t lower = at(page + 12, 2), upper = at(page + 14, 2), n = (lower - 16) / 2;
    bool leaf = level == 1;
    if (at(page, 8) != number || at(page + 10, 2) != (leaf ? 2 : 1) || lower < 16 || lower > upper || upper > PAGE ||
        lower % 2 || n < (leaf ? 1 : 2))
        return false;
    key_of key[PAGE / 2];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t offset = at(page + 16 + 2 * i, 2);
        if (offset < upper || offset % 2 || offset + 8 > PAGE)
            return false;
        const unsigned char *node = page + offset;
        uint64_t size = at(node, 4), flags = at(node + 4, 2), n_key = at(node + 6, 2), room = PAGE - offset - 8;
        if (n_key > 511 || n_key > room || (!n_key && (leaf || i)))
            return false;
        key[i] = (key_of){node + 8, n_key};
        if (leaf && !good_value(r, key[i], node + 8 + n_key, size, room - n_key, flags, kind))
            return false;
        if (i > (leaf ? 0 : 1) && order(key[i - 1], key[i], kind) != -1)
            return false;
    }
    int first = order(low, key[leaf ? 0 : 1], kind);
    if (first > 0 || order(key[n - 1], high, kind) != -1)
        return false;
    for (uint64_t i = 0; i < n && !leaf; i++) {
        uint64_t child = at(page + at(page + 16 + 2 * i, 2), 6);
        if (!good_page(r, child, level - 1, kind, i ? key[i] : low, i + 1 < n ? key[i + 1] : high, entries))
            return false;
    }
    *entries += leaf ? n : 0;
    return true;
}

static bool good_tree(reading *r, const unsigned char *header, char kind)
{
    uint64_t flags = at(header + 4, 2), depth = at(header + 6, 2), said = at(header + 32, 8), root = at(header + 40, 8),
             n = 0;
    if (flags && (flags != 8 || kind != 'f'))
        return false;
    if (root == UINT64_MAX)
        return !depth && !said;
    return depth >= 1 && depth <= 32 && good_page(r, root, depth, kind, (key_of){0}, (key_of){0}, &n) && n == said;
}

static bool good_file(const unsigned char *file, uint64_t size)
{
    const unsigned char *meta[2] = {file, file + PAGE};
    for (uint64_t i = 0; i < 2; i++)
        if (size < (uint64_t)2 * PAGE || at(meta[i] + 16, 4) != 0xbeefc0de || at(meta[i] + 20, 4) != 1 ||
            at(meta[i], 8) != i || at(meta[i] + 10, 2) != 8 || at(meta[i] + 40, 4) != PAGE)
            return false;
    const unsigned char *m = meta[at(meta[1] + 144, 8) > at(meta[0] + 144, 8)];
    uint64_t last = at(m + 136, 8), whole = size / PAGE;
    if (last < 1 || last > ((uint64_t)1 << 46) || at(m + 32, 8) > (uint64_t)1 << 46)
        return false;
    for (int t = 0; t < 2; t++)
        if (at(m + 46 + 48 * t, 2) > 32 || (at(m + 80 + 48 * t, 8) != UINT64_MAX && at(m + 80 + 48 * t, 8) > last))
            return false;
    reading r = {file, last + 1, whole < last + 1 ? whole : last + 1, at(m + 144, 8), NULL};
    if (r.pages - r.stored > size / 8)
        return false;
    r.used = calloc(r.pages, sizeof *r.used);
    bool good = good_tree(&r, m + 40, 'f') && good_tree(&r, m + 88, 'm');
    free(r.used);
    return good;
}

/* A number of the format, one more, one less, at a border: both readings agree whether the file is good. */
static void test_second_reading(void **state)
{
    bz_buf file = {0};
    make_file(state, &file);
    static const int META[] = {0, 10, 16, 20, 32, 40, 44, 46, 72, 80, 92, 94, 120, 128, 136, 144},
                     HEADER[] = {0, 10, 12, 14};
    static const int64_t STEPS[] = {1, -1, 2, -2, 8, -8, 3, -3};
    int good = 0, bad = 0;
    size_t pages = file.len / PAGE;
    assert_true(good_file((unsigned char *)file.data, file.len));
    for (int i = 0; i < 12000; i++) {
        unsigned char saved[4][8], *where[4];
        int n = 1 + (int)(any_number() % 2);
        uint64_t size = file.len - (any_number() % 16 ? 0 : any_number() % 3 * (PAGE / 2));
        for (int k = 0; k < n; k++) {
            size_t page = any_number() % 5 ? any_number() % pages : any_number() % 2, offset;
            unsigned char *p = (unsigned char *)file.data + page * PAGE;
            uint64_t entries = (at(p + 12, 2) - 16) / 2;
            if (page < 2)
                offset = (size_t)META[any_number() % 16];
            else if (any_number() % 3 == 0 || !entries || entries > 200)
                offset = any_number() % 2 ? (size_t)HEADER[any_number() % 4] : 16 + 8 * (any_number() % 40);
            else { /* the place of a node, or its numbers, or the first letters of its key */
                size_t slot = 16 + 2 * (any_number() % (size_t)entries), node = (size_t)at(p + slot, 2);
                offset = any_number() % 4 == 0 || node > PAGE - 32 ? slot : node + 2 * (any_number() % 12);
            }
            where[k] = p + (offset < PAGE - 8 ? offset : PAGE - 8);
            memcpy(saved[k], where[k], 8);
            uint64_t v = at(where[k], 8);
            int bytes = any_number() % 2 ? 2 : 8;
            v = any_number() % 8 ? v + (uint64_t)STEPS[any_number() % 8]
                                 : (const uint64_t[]){0, 1, 2, 511, 512, PAGE, UINT64_MAX, pages}[any_number() % 8];
            memcpy(where[k], &v, (size_t)bytes);
        }
        bool expected = good_file((unsigned char *)file.data, size);
        const char *why = bz_guard_bytes(file.data, size, true);
        if (expected != !why)
            fail_msg("round %d: %s, but by a second reading %s", i, why ? why : "good", expected ? "good" : "not");
        *(expected ? &good : &bad) += 1;
        for (int k = n; k-- > 0;)
            memcpy(where[k], saved[k], 8);
    }
    print_message("%d good files, %d bad ones\n", good, bad);
    assert_true(good > 1000 && bad > 1000);
    bz_buf_free(&file);
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

/* Only what was written may be counted where all came out. */
static void test_salvaged_all(void **state)
{
    (void)state;
    bz_perfdb_salvage_report report = {.systems = 3, .records = 5};
    size_t *const lost[] = {&report.pages, &report.damaged, &report.newer, &report.nameless, &report.lost_systems};
    assert_true(bz_perfdb_salvaged_all(&report));
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        for (*lost[i] = 3; *lost[i]; --*lost[i])
            assert_false(bz_perfdb_salvaged_all(&report));
    report.old = true;
    assert_false(bz_perfdb_salvaged_all(&report));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_good_file), TEST(test_second_reading), TEST(test_damaged_files),
                                       TEST(test_salvage), TEST(test_salvaged_all)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
