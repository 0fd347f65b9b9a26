/* Records in and out again: history, systems, conflicts, and files that are not as they should be. */
#include "tests/unit/chance.h"
#include "tests/unit/perfdb_test.h"

#include "perfdb/entry.h"

#include <fcntl.h>
#include <lmdb.h>
#include <pwd.h>
#include <sys/stat.h>

static void test_round_trip(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record r = sample_record();
    put(db, r);
    bz_perfdb_close(db);
    db = open_with(below(state, "db"), (bz_perfdb_options){.read_only = true});
    bz_record *got = find(db, r, &arena);
    assert_non_null(got);
    assert_true(bz_record_same_identity(got, &r));
    assert_int_equal(bz_record_prefer(got, &r), 0); /* equal to the last byte */
    assert_string_equal(got->meta, r.meta);
    assert_true(isnan(got->launch));
    assert_true(got->chosen && got->chosen_training && !got->noisy && !got->throttled);
    assert_fails(bz_perfdb_put(db, &r, 1, NULL, &err), BZ_FAILED, "reading only");
    assert_int_equal(warnings.len, 0);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* What makes an identity, and what does not. */
static void test_identity(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record base = sample_record(), r[] = {base, base, base, base, base, base, base, base, base};
    r[1].variant.backend = "cblas";
    r[2].variant.algorithm = "brgconv:avx512_core";
    r[3].variant.layout = "nhwc";
    r[4].variant.math = "tf32";
    r[5].setting.threads = 2;
    r[6].setting.cache = BZ_CACHE_COLD;
    r[7].setting.clock = "locked";
    r[8].problem = "relu x=1x64x56x56 dtype=f32";
    bz_perfdb_count count = {0};
    assert_ok(bz_perfdb_put(db, r, 9, &count, &err));
    assert_int_equal(count.added, 9);
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 9; k++)
            assert_int_equal(bz_record_same_identity(&r[i], &r[k]), i == k);
    const bz_system *system;
    bz_record *list;
    size_t n;
    assert_ok(bz_perfdb_system(db, "xeon-8481c", &system, &err));
    assert_ok(bz_perfdb_variants(db, system, PROBLEM, &arena, &list, &n, &err));
    assert_int_equal(n, 8);
    assert_ok(bz_perfdb_variants(db, system, r[8].problem, &arena, &list, &n, &err));
    assert_int_equal(n, 1);
    assert_ok(bz_perfdb_variants(db, system, "relu x=1 dtype=f32", &arena, &list, &n, &err));
    assert_int_equal(n, 0);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

static void test_history(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    const int64_t dates[] = {300, 100, 500, 200, 400};
    bz_record r = sample_record();
    for (int i = 0; i < 5; i++) {
        r.date = dates[i];
        r.median = (double)dates[i];
        put(db, r);
    }
    assert_true(find(db, r, &arena)->median == 500);
    const bz_system *system;
    bz_record *list;
    size_t n;
    assert_ok(bz_perfdb_system(db, r.system, &system, &err));
    assert_ok(bz_perfdb_history(db, system, r.problem, &r.variant, &r.setting, &arena, &list, &n, &err));
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].date, 500 - 100 * (int64_t)i);
    assert_ok(bz_perfdb_variants(db, system, r.problem, &arena, &list, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(list[0].date, 500);

    size_t deleted, newest = 0;
    assert_fails(bz_perfdb_gc(db, 0, &deleted, &err), BZ_USAGE, "at least one");
    assert_ok(bz_perfdb_gc(db, 2, &deleted, &err));
    assert_int_equal(deleted, 3);
    assert_ok(bz_perfdb_history(db, system, r.problem, &r.variant, &r.setting, &arena, &list, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(list[1].date, 400);
    assert_ok(bz_perfdb_scan(db, &(bz_perfdb_filter){0}, count_one, &newest, &err));
    assert_int_equal(newest, 1);
    assert_clean(db);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

static void test_newest_stack(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    static const char *const NAMES[] = {"v100@cudnn7.6.3", "v100@cudnn7.10.1", "v100@cudnn7.9", "v1@cudnn9.0",
                                        "v100-x"};
    for (int i = 0; i < 5; i++)
        assert_ok(bz_perfdb_put_system(db, NAMES[i], "{}", 0, &err));
    const struct {
        const char *asked, *got;
    } cases[] = {
        {"v100", "v100@cudnn7.10.1"},
        {"v100@cudnn7.9", "v100@cudnn7.9"},
        {"v1", "v1@cudnn9.0"},
        {"v100-x", "v100-x"},
        {"v100@cudnn7", NULL},
        {"v10", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bz_system *s;
        assert_ok(bz_perfdb_system(db, cases[i].asked, &s, &err));
        if (cases[i].got)
            assert_string_equal(s->name, cases[i].got);
        else
            assert_null(s);
    }
    const bz_system **list;
    size_t n;
    assert_ok(bz_perfdb_systems(db, &arena, &list, &n, &err));
    assert_int_equal(n, 5);
    assert_string_equal(list[0]->name, "v1@cudnn9.0");
    assert_string_equal(list[1]->name, "v100@cudnn7.6.3");
    assert_string_equal(list[3]->name, "v100@cudnn7.10.1");
    assert_string_equal(list[4]->name, "v100-x");
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Names go to the terminal and may become file names. */
static void test_system_names(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    static const char *const BAD[] = {"", "@x", "a@", "A", "a b", "../a", ".a", "a/b", "-a", "a@b@c", "a\n", "a@.b"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_fails(bz_perfdb_put_system(db, BAD[i], "{}", 0, &err), BZ_BAD_INPUT, "no name for a system");
    assert_fails(bz_perfdb_put_system(db, "a", "[]", 0, &err), BZ_BAD_INPUT, "no JSON object");
    assert_ok(bz_perfdb_put_system(db, "a", "{\"cores\":2}", 10, &err));
    assert_ok(bz_perfdb_put_system(db, "a", "{\"cores\":9}", 5, &err)); /* older: stays out */
    const bz_system *s;
    assert_ok(bz_perfdb_system(db, "a", &s, &err));
    assert_string_equal(s->details, "{\"cores\":2}");

    /* what a record brought is a name alone: details win over it, whatever their date and the order of arrival */
    assert_ok(bz_perfdb_put_system(db, "b", "{}", 0, &err));
    assert_ok(bz_perfdb_put_system(db, "b", "{\"cores\":4}", 0, &err));
    assert_ok(bz_perfdb_put_system(db, "b", "{}", 20, &err));
    assert_ok(bz_perfdb_system(db, "b", &s, &err));
    assert_string_equal(s->details, "{\"cores\":4}");
    assert_ok(bz_perfdb_put_system(db, "b", "{\"cores\":5}", 0, &err)); /* the greater text */
    assert_ok(bz_perfdb_put_system(db, "b", "{\"cores\":4}", 0, &err));
    assert_ok(bz_perfdb_system(db, "b", &s, &err));
    assert_string_equal(s->details, "{\"cores\":5}");
    bz_perfdb_close(db);
}

static void test_bad_records(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_record good = sample_record(), r;
#define REFUSED(change, words)                                                                                         \
    r = good;                                                                                                          \
    change;                                                                                                            \
    assert_fails(bz_perfdb_put(db, (bz_record[]){good, r}, 2, NULL, &err), BZ_BAD_INPUT, words)
    REFUSED(r.problem = "", "no problem");
    REFUSED(r.problem = "conv\x1b[2J", "problem");
    REFUSED(r.problem = "conv \xff", "problem");
    REFUSED(r.problem = "conv \xc2\x85", "problem");
    REFUSED(r.problem = "conv \xe2\x82", "problem");
    REFUSED(r.problem = "conv \xe0\x81\x81", "problem");
    REFUSED(r.problem = "conv \xed\xa0\x80", "problem");
    REFUSED(r.problem = "conv \xf4\x90\x80\x80", "problem");
    REFUSED(r.variant.algorithm = "a\nb", "algorithm");
    REFUSED(r.variant.algorithm = "", "algorithm");
    REFUSED(r.variant.backend = NULL, "backend");
    REFUSED(r.median = NAN, "median");
    REFUSED(r.median = 0, "median");
    REFUSED(r.max = -1, "negative");
    REFUSED(r.bytes = INFINITY, "infinite");
    REFUSED(r.n = -1, "negative");
    REFUSED(r.date = -1, "before 1970");
    REFUSED(r.setting.threads = -3, "threads");
    REFUSED(r.status = BZ_RECORD_CRASHED, "needs a reason");
    REFUSED(r.meta = "x", "meta");
    REFUSED(r.system = "../x", "name");
#undef REFUSED
    assert_int_equal(count_records(db), 0); /* all or nothing */
    r = good;
    r.status = BZ_RECORD_CRASHED;
    r.reason = "signal 11";
    r.median = NAN;
    put(db, r);
    bz_perfdb_close(db);
}

/* One identity, one second: which telling stays must not depend on the order. */
static void test_conflicts(void **state)
{
    bz_record base = sample_record(), r[7] = {base, base, base, base, base, base, base};
    r[0].provenance = BZ_PROVENANCE_MODELLED;
    r[1].provenance = BZ_PROVENANCE_IMPORTED;
    r[2].status = BZ_RECORD_FAILED;
    r[2].reason = "out of memory";
    r[3].n = 3;
    r[4].high = 9;
    r[6].workspace += 255;      /* the same in all that counts: bytes decide */
    for (int i = 0; i < 7; i++) /* from the least to the one that stays */
        for (int k = 0; k < 7; k++) {
            int order = bz_record_prefer(&r[i], &r[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    bz_arena arena = {0};
    bz_perfdb *up = open_new(state, "up"), *down = open_new(state, "down");
    for (int i = 0; i < 7; i++) {
        put(up, r[i]);
        put(down, r[6 - i]);
    }
    assert_int_equal(count_records(up), 1);
    assert_int_equal(find(up, base, &arena)->workspace, 4096 + 255);
    assert_int_equal(find(down, base, &arena)->workspace, 4096 + 255);
    bz_perfdb_count count = {0};
    assert_ok(bz_perfdb_put(up, r, 7, &count, &err));
    assert_int_equal(count.kept, 7);
    assert_int_equal(count.added + count.replaced, 0);
    bz_perfdb_close(up);
    bz_perfdb_close(down);
    bz_arena_free(&arena);
}

/* Scans by system and data type; an order that does not depend on the order of writing. */
static int gather(void *user, const bz_record *r)
{
    bz_buf_printf(user, "%s %s %s\n", r->system, r->problem, r->variant.algorithm);
    return 0;
}

static void test_scan(void **state)
{
    bz_perfdb *a = open_new(state, "a"), *b = open_new(state, "b");
    bz_record r[40];
    bz_arena arena = {0};
    for (int i = 0; i < 40; i++) {
        r[i] = sample_record();
        r[i].system = i % 4 ? "k80@cudnn7.6.3" : "t4@cudnn7.6.3";
        r[i].problem = bz_arena_printf(&arena, "relu x=%d dtype=%s", i / 8, i % 2 ? "f32" : "f16");
        r[i].variant.algorithm = bz_arena_printf(&arena, "a%d", i);
    }
    for (int i = 0; i < 40; i++) {
        put(a, r[i]);
        put(b, r[(i * 7 + 3) % 40]);
    }
    bz_buf text_a = {0}, text_b = {0};
    assert_ok(bz_perfdb_scan(a, &(bz_perfdb_filter){0}, gather, &text_a, &err));
    assert_ok(bz_perfdb_scan(b, &(bz_perfdb_filter){0}, gather, &text_b, &err));
    assert_string_equal(bz_buf_text(&text_a), bz_buf_text(&text_b));
    size_t n = 0;
    assert_ok(bz_perfdb_scan(a, &(bz_perfdb_filter){.dtype = "f16"}, count_one, &n, &err));
    assert_int_equal(n, 20);
    const bz_system *t4;
    assert_ok(bz_perfdb_system(a, "t4", &t4, &err));
    n = 0;
    assert_ok(bz_perfdb_scan(a, &(bz_perfdb_filter){.system = t4, .dtype = "f16"}, count_one, &n, &err));
    assert_int_equal(n, 10);
    n = 0;
    assert_ok(bz_perfdb_scan(a, &(bz_perfdb_filter){.system = t4, .dtype = "f32"}, count_one, &n, &err));
    assert_int_equal(n, 0);
    bz_buf_free(&text_a);
    bz_buf_free(&text_b);
    bz_perfdb_close(a);
    bz_perfdb_close(b);
    bz_arena_free(&arena);
}

/* Changes values in the file behind the database's back. */
static void edit(const char *dir, const char *table, void (*change)(MDB_val *key, MDB_val *value, bz_buf *new))
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *c;
    MDB_val key, value;
    bz_buf new = {0};
    assert_int_equal(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 4);
    assert_int_equal(mdb_env_open(env, dir, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, table, 0, &dbi), 0);
    assert_int_equal(mdb_cursor_open(txn, dbi, &c), 0);
    assert_int_equal(mdb_cursor_get(c, &key, &value, MDB_FIRST), 0);
    bz_buf_put(&new, value.mv_data, value.mv_size);
    change(&key, &value, &new);
    value = (MDB_val){new.len, new.data};
    assert_int_equal(mdb_cursor_put(c, &key, &value, MDB_CURRENT), 0);
    mdb_cursor_close(c);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    bz_buf_free(&new);
}

static void flip_a_bit(MDB_val *key, MDB_val *value, bz_buf *new)
{
    (void)key;
    new->data[value->mv_size / 2] ^= 4;
}

/* An unreadable entry is a miss: the older measurement steps in. */
static void test_damaged_entry(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record r = sample_record();
    put(db, r);
    r.date++;
    r.median *= 2;
    put(db, r);
    bz_perfdb_close(db);
    edit(dir, "records", flip_a_bit); /* the first is the newest */
    db = open_with(dir, (bz_perfdb_options){0});
    assert_true(find(db, r, &arena)->median == sample_record().median);
    assert_int_equal(warnings_with("a record is damaged"), 1);
    bz_perfdb_check_report report;
    assert_ok(bz_perfdb_check(db, &report, &err));
    assert_int_equal(report.damaged, 1);
    assert_int_equal(report.records, 2);
    bz_perfdb_count count = {0};
    assert_ok(bz_perfdb_put(db, &r, 1, &count, &err)); /* measured again: the damage is gone */
    assert_int_equal(count.replaced, 1);
    assert_true(find(db, r, &arena)->median == r.median);
    assert_clean(db);
    bz_perfdb_close(db);

    edit(dir, "problems", flip_a_bit);
    db = open_with(dir, (bz_perfdb_options){0});
    assert_int_equal(count_records(db), 0);
    assert_int_equal(warnings_with("a problem is damaged"), 1);
    assert_ok(bz_perfdb_check(db, &report, &err));
    assert_true(report.damaged == 1 && report.orphans == 2);
    put(db, r); /* brings the text back */
    assert_int_equal(count_records(db), 2);
    bz_perfdb_close(db);

    edit(dir, "systems", flip_a_bit);
    db = open_with(dir, (bz_perfdb_options){0});
    assert_int_equal(count_records(db), 0);
    assert_int_equal(warnings_with("a system is damaged"), 1);
    put(db, r); /* the system comes back under a new number */
    assert_int_equal(count_records(db), 1);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Seals a payload again under another version or with a shorter fixed part. */
static void reseal(MDB_val *key, bz_buf *new, uint16_t version, size_t drop)
{
    uint16_t fixed;
    memcpy(&fixed, new->data + 2, sizeof fixed);
    bz_buf payload = {0};
    bz_buf_put(&payload, new->data + ENTRY_HEADER, fixed - drop);
    bz_buf_put(&payload, new->data + ENTRY_HEADER + fixed, new->len - ENTRY_HEADER - fixed);
    bz_entry_seal(new, key->mv_data, key->mv_size, version, payload.data, payload.len, fixed - drop);
    bz_buf_free(&payload);
}

static void make_newer(MDB_val *key, MDB_val *value, bz_buf *new)
{
    (void)value;
    reseal(key, new, ENTRY_VERSION + 1, 0);
}

static void make_older(MDB_val *key, MDB_val *value, bz_buf *new)
{
    (void)value;
    reseal(key, new, ENTRY_VERSION, 8); /* before there were flags */
}

static void test_entry_versions(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record r = sample_record();
    put(db, r);
    bz_perfdb_close(db);

    edit(dir, "records", make_older);
    db = open_with(dir, (bz_perfdb_options){0});
    bz_record *old = find(db, r, &arena);
    assert_true(old->median == r.median);
    assert_false(old->chosen);
    assert_string_equal(old->meta, r.meta);
    assert_int_equal(warnings.len, 0);
    bz_perfdb_close(db);

    edit(dir, "records", make_newer);
    db = open_with(dir, (bz_perfdb_options){0});
    assert_null(find(db, r, &arena));
    assert_int_equal(warnings_with("newer benanza"), 1);
    bz_perfdb_count count = {0};
    assert_ok(bz_perfdb_put(db, &r, 1, &count, &err));
    assert_int_equal(count.kept, 1); /* not ours to replace */
    bz_perfdb_check_report report;
    assert_ok(bz_perfdb_check(db, &report, &err));
    assert_true(report.newer == 1 && report.damaged == 0);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

static void schema_2(MDB_val *key, MDB_val *value, bz_buf *new)
{
    (void)key;
    (void)value;
    memcpy(new->data, &(uint32_t){2}, 4);
}

static void schema_0(MDB_val *key, MDB_val *value, bz_buf *new)
{
    (void)key;
    (void)value;
    memcpy(new->data, &(uint32_t){0}, 4);
}

static void test_schemas(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_new(state, "db");
    put(db, sample_record());
    bz_perfdb_close(db);
    edit(dir, "info", schema_2);
    for (int read_only = 0; read_only < 2; read_only++)
        assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = read_only}, &err), BZ_BAD_INPUT,
                     "newer benanza (schema 2");
    uint64_t before, after;
    assert_fails(bz_perfdb_compact(dir, &(bz_perfdb_options){0}, &before, &after, &err), BZ_BAD_INPUT,
                 "newer benanza (schema 2");
    edit(dir, "info", schema_0);
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err), BZ_BAD_INPUT, "schema 0 is older");
    assert_null(db);
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void test_not_a_database(void **state)
{
    bz_perfdb *db;
    const char *dir = below(state, "db"), *file = below(state, "db/data.mdb");
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err), BZ_FAILED, "no database");
    db = open_new(state, "db");
    put(db, sample_record());
    bz_perfdb_close(db);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(truncate(file, st.st_size - 4096), 0);
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err), BZ_BAD_INPUT, "shorter than it should be");
    assert_int_equal(truncate(file, 100), 0);
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err), BZ_BAD_INPUT, "shorter than two pages");
    char zeros[16384] = {0};
    write_file(file, zeros, sizeof zeros);
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err), BZ_BAD_INPUT, "no LMDB database");
    write_file(file, "", 0); /* a writer that died at the very first moment */
    db = open_with(dir, (bz_perfdb_options){0});
    put(db, sample_record());
    bz_perfdb_close(db);

    /* somebody else's LMDB environment */
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {1, "k"}, value = {1, "v"};
    const char *other = below(state, "other");
    mkdir(other, 0777);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, other, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    assert_fails(bz_perfdb_open(&db, other, &(bz_perfdb_options){0}, &err), BZ_BAD_INPUT, "another program's");
}

static int64_t nfs(const char *path)
{
    (void)path;
    return 0x6969;
}

static int64_t ext4(const char *path)
{
    (void)path;
    return 0xef53;
}

static void test_network_file_system(void **state)
{
    bz_perfdb *db;
    const char *dir = below(state, "db");
    assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.file_system = nfs}, &err), BZ_FAILED,
                 "network file system (NFS)");
    assert_non_null(strstr(err.text, "benanza db export"));
    assert_ok(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.file_system = ext4}, &err));
    bz_perfdb_close(db);
}

static void test_read_only_folder(void **state)
{
    if (geteuid() == 0) {
        print_message("root may write everywhere: the part about permissions is not tested\n");
    } else {
        const char *dir = below(state, "db");
        bz_perfdb *db = open_new(state, "db");
        put(db, sample_record());
        bz_perfdb_close(db);
        chmod(below(state, "db/lock.mdb"), 0444);
        chmod(below(state, "db/data.mdb"), 0444);
        chmod(dir, 0555);
        db = open_with(dir, (bz_perfdb_options){.read_only = true});
        assert_int_equal(count_records(db), 1);
        bz_perfdb_close(db);
        assert_fails(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err), BZ_FAILED, "--db");
        chmod(dir, 0755);
    }
    /* an empty database, opened before anything was stored */
    const char *empty = below(state, "empty");
    mkdir(empty, 0777);
    write_file(below(state, "empty/data.mdb"), "", 0);
    bz_perfdb *db = NULL;
    assert_fails(bz_perfdb_open(&db, below(state, "nowhere"), &(bz_perfdb_options){.read_only = true}, &err), BZ_FAILED,
                 "benanza db import");
}

/* A map of 64 KiB must grow many times; a reader with the old size must follow. */
static void test_map_growth(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_with(dir, (bz_perfdb_options){.map_size = 65536});
    bz_arena arena = {0};
    enum { N = 3000 };
    bz_record *r = BZ_NEW(&arena, bz_record, N);
    for (int i = 0; i < N; i++) {
        r[i] = sample_record();
        r[i].problem = bz_arena_printf(&arena, "relu x=%d dtype=f32", i);
    }
    for (int i = 0; i < 100; i++)
        put(db, r[i]);
    bz_perfdb_count count = {0};
    assert_ok(bz_perfdb_put(db, r, N, &count, &err));
    assert_int_equal(count.added, N - 100);
    assert_int_equal(count.kept, 100);
    assert_int_equal(count_records(db), N);
    assert_clean(db);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

static void test_where(void **state)
{
    (void)state;
    unsetenv("BENANZA_DB");
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("HOME", "/home/me", 1);
    const char *expected[] = {"/opt", "/env", "/data/benanza/perfdb", "/home/me/.local/share/benanza/perfdb"};
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            setenv("BENANZA_DB", "/env", 1);
        if (i == 2)
            setenv("BENANZA_DB", "", 1);
        if (i == 3)
            setenv("XDG_DATA_HOME", "relative", 1);
        char *where = bz_perfdb_where(i == 0 ? "/opt" : NULL);
        assert_string_equal(where, expected[i]);
        free(where);
    }
    const char *homes[] = {NULL, "", "relative"}; /* never the folder that the program happens to run in */
    for (int i = 0; i < 3; i++) {
        char own[4096];
        snprintf(own, sizeof own, "%s/.local/share/benanza/perfdb", getpwuid(getuid())->pw_dir);
        (homes[i] ? setenv("HOME", homes[i], 1) : unsetenv("HOME"));
        char *where = bz_perfdb_where(NULL);
        assert_string_equal(where, own);
        free(where);
    }
}

/* A file that cannot be looked at is not one that is not there: here a link to itself, else one in a closed folder of another user. */
static void test_hidden(void **state)
{
    bz_perfdb *db = NULL;
    assert_int_equal(mkdir(below(state, "hidden"), 0777), 0);
    assert_int_equal(symlink("data.mdb", below(state, "hidden/data.mdb")), 0);
    assert_fails(bz_perfdb_open(&db, below(state, "hidden"), &(bz_perfdb_options){.read_only = true}, &err), BZ_FAILED,
                 "cannot be opened");
}

static void test_compact(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record r = sample_record();
    for (int i = 0; i < 500; i++) {
        r.date = 1000 + i;
        put(db, r);
    }
    r.problem = "relu x=1 dtype=f32";
    put(db, r);
    uint64_t before, after;
    size_t deleted;
    assert_ok(bz_perfdb_gc(db, 1, &deleted, &err));
    assert_int_equal(deleted, 499);
    bz_perfdb_close(db);
    assert_ok(bz_perfdb_compact(dir, &(bz_perfdb_options){0}, &before, &after, &err));
    assert_true(after < before);
    assert_int_not_equal(access(below(state, "db/compact.mdb"), F_OK), 0);
    db = open_with(dir, (bz_perfdb_options){0});
    assert_int_equal(count_records(db), 2);
    put(db, sample_record());
    assert_int_equal(count_records(db), 3);
    assert_clean(db);
    bz_perfdb_close(db);
    assert_fails(bz_perfdb_compact(below(state, "no"), &(bz_perfdb_options){0}, &before, &after, &err), BZ_FAILED,
                 "no database");
    bz_arena_free(&arena);
}

/* A database merges into another; from itself and from a folder without one nothing is taken, and from a file what it holds. */
static void test_take(void **state)
{
    bz_perfdb *from = open_new(state, "from"), *db = open_new(state, "db");
    bz_perfdb_import_report report;
    bz_record r = sample_record();
    size_t n;
    put(from, r);
    r.date++;
    r.setting.threads = 2;
    put(from, r);
    put(db, sample_record());
    bz_error e = {0};
    assert_ok(bz_perfdb_export_file(from, &(bz_perfdb_filter){0}, below(state, "text.zst"), &n, &err));
    bz_perfdb_close(from);
    for (int again = 0; again < 2; again++) {
        memset(&report, 9, sizeof report);
        assert_ok(bz_perfdb_take(db, below(state, "from"), &report, &err));
        assert_true(report.records == 2 && report.lines == 2 && report.count.added == (again ? 0 : 1) &&
                    report.count.kept == (again ? 2 : 1));
        assert_true(!report.systems && !report.bad && !report.unknown && !report.newer && !report.counted &&
                    !report.uncounted && !report.count.replaced);
    }
    memset(&report, 9, sizeof report);
    assert_int_equal(bz_perfdb_take(db, below(state, "."), &report, &e), -1);
    assert_true(e.code == BZ_BAD_INPUT && strstr(e.text, "holds no database"));
    assert_int_equal(bz_perfdb_take(db, below(state, "./db"), &report, &e), -1);
    assert_true(e.code == BZ_USAGE && strstr(e.text, "is the database that is merged into"));
    assert_true(!report.records && !report.lines && !report.count.kept);
    assert_ok(bz_perfdb_take(db, below(state, "text.zst"), &report, &err));
    assert_true(report.records == 2 && report.lines == 3 && report.systems == 1 && report.count.kept == 2);
    assert_int_equal(count_records(db), 2);
    bz_perfdb_close(db);
}

/* Who may read a new database is what the umask says. */
static void test_modes(void **state)
{
    static const mode_t MASKS[] = {022, 002, 077};
    static const char *const FILES[] = {"data.mdb", "lock.mdb"};
    bz_arena arena = {0};
    for (size_t i = 0; i < sizeof MASKS / sizeof *MASKS; i++) {
        const char *name = bz_arena_printf(&arena, "db%zu", i);
        mode_t before = umask(MASKS[i]);
        bz_perfdb_close(open_new(state, name));
        umask(before);
        for (int k = 0; k < 2; k++) {
            struct stat st;
            assert_int_equal(stat(below(state, bz_arena_printf(&arena, "%s/%s", name, FILES[k])), &st), 0);
            assert_int_equal(st.st_mode & 0777, 0666 & ~MASKS[i]);
        }
    }
    bz_arena_free(&arena);
}

/* Each mark of a record comes back, and brings no other one with it. */
static void test_marks(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    for (int marks = 0; marks < 32; marks++) {
        bz_record r = sample_record();
        bool *const mark[] = {&r.chosen, &r.chosen_training, &r.noisy, &r.throttled, &r.busy};
        r.setting.threads = marks + 1;
        for (int i = 0; i < 5; i++)
            *mark[i] = marks >> i & 1;
        put(db, r);
        const bz_record *f = find(db, r, &arena);
        assert_non_null(f);
        assert_int_equal(f->chosen | f->chosen_training << 1 | f->noisy << 2 | f->throttled << 3 | f->busy << 4, marks);
    }
    bz_arena_free(&arena);
    bz_perfdb_close(db);
}

/* Slugs as bytes, versions behind them with their digits as numbers; zeros before those tell apart what is equal else. */
static void test_order_of_systems(void **state)
{
    (void)state;
    static const char *const ORDER[] = {"a",       "a@",       "a@007",  "a@07",       "a@7",   "a@7.6.3", "a@7.6.3x",
                                        "a@7.6.4", "a@7.6.10", "a@7.10", "a@10",       "a@10-", "a@B1",    "a@b",
                                        "a@b1.02", "a@b1.2",   "a@b2",   "a@\xc3\xa4", "a-b@1", "ab@0",    "b"};
    int n = sizeof ORDER / sizeof *ORDER;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            int order = bz_system_compare(ORDER[i], ORDER[k]);
            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("%s and %s: %d", ORDER[i], ORDER[k], order);
        }
}

/* What is picked is what the choice says, each once; by problem, then system, those that worked before others and the fastest first, then by name and the newest first. */
static void test_picks(void **state)
{
    static const char *const PROBLEM_OF[] = {"relu x=1 dtype=f32", "relu x=2 dtype=f32", "copy x=1 dtype=f32"},
                             *const SYSTEM_OF[] = {"a@1.9", "a@1.10", "b@1"}, *const WORD[] = {"relu", "x=1"};
    enum { N = 200 };
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_record all[N];
    for (int i = 0; i < N; i++) {
        bz_record *r = &all[i];
        *r = sample_record();
        r->problem = PROBLEM_OF[chance(3)];
        r->system = SYSTEM_OF[chance(3)];
        r->variant.algorithm = chance(2) ? "x" : "y";
        r->variant.backend = chance(2) ? "onednn" : "loops";
        r->setting.threads = (int)chance(3) + 1;
        r->median = r->q25 = r->q75 = r->min = r->max = r->low = r->high = 1e-3 * (1 + chance(3));
        r->status = chance(4) ? BZ_RECORD_OK : BZ_RECORD_DROPPED;
        r->reason = r->status == BZ_RECORD_OK ? "" : "slow";
        r->date += i;
        put(db, *r);
    }
    for (int which = 0; which < 24; which++) {
        const bz_perfdb_choice choice = {.filter = {.history = true},
                                         .backend = which & 1 ? "loops" : NULL,
                                         .word = WORD,
                                         .n_words = which / 4 % 3,
                                         .failed = which & 2};
        size_t n, wanted = 0;
        bz_record *found;
        assert_ok(bz_perfdb_pick(db, &choice, &arena, &found, &n, &err));
        for (int i = 0; i < N; i++) {
            bool is = (choice.failed || all[i].status == BZ_RECORD_OK) &&
                      (!choice.backend || !strcmp(all[i].variant.backend, "loops"));
            for (int w = 0; w < choice.n_words; w++)
                is &= strstr(all[i].problem, WORD[w]) != NULL;
            wanted += is;
        }
        assert_int_equal(n, wanted);
        for (size_t i = 1; i < n; i++) {
            const bz_record *a = &found[i - 1], *b = &found[i];
            bool bad_a = a->status != BZ_RECORD_OK, bad_b = b->status != BZ_RECORD_OK;
            double time_a = bad_a ? 0 : a->median, time_b = bad_b ? 0 : b->median;
            const double order[] = {strcmp(a->problem, b->problem),
                                    bz_system_compare(a->system, b->system),
                                    bad_a - bad_b,
                                    time_a - time_b,
                                    strcmp(a->variant.algorithm, b->variant.algorithm),
                                    (double)(b->date - a->date)};
            int k = 0;
            while (k < 5 && order[k] == 0)
                k++;
            assert_true(order[k] < 0);
        }
    }
    bz_arena_free(&arena);
    bz_perfdb_close(db);
}

/* What a system has, by threads: sixteen counts at most, fewest first; and a setting in words. */
static void test_stocks(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_stock *stock;
    size_t n;
    for (int i = 1; i <= 20; i++) {
        bz_record r = sample_record();
        r.setting.threads = 1 + i * 7 % 23;
        r.status = i % 4 ? BZ_RECORD_OK : BZ_RECORD_DROPPED;
        r.reason = i % 4 ? "" : "slow";
        r.problem = i % 5 ? PROBLEM : "relu x=1 dtype=f32";
        r.date += 100 - i;
        put(db, r);
        r.date -= 1000;
        r.provenance = BZ_PROVENANCE_MODELLED; /* was before */
        put(db, r);
        assert_ok(bz_perfdb_stocks(db, &arena, &stock, &n, &err));
        assert_int_equal(n, 1);
        assert_true(stock->records == 2U * (unsigned)i && stock->variants == (size_t)i &&
                    stock->ok == (size_t)(i - i / 4) && stock->problems == (i < 5 ? 1 : 2));
        assert_true(stock->newest == 1790000099 && stock->from[BZ_PROVENANCE_MEASURED] &&
                    !stock->from[BZ_PROVENANCE_MODELLED]);
        assert_int_equal(stock->n_threads, i < BZ_STOCK_THREADS ? i : BZ_STOCK_THREADS);
        for (int k = 0; k < stock->n_threads; k++) {
            bool stored = false;
            for (int j = 1; j <= i; j++)
                stored |= stock->threads[k] == 1 + j * 7 % 23;
            assert_true(stored && (!k || stock->threads[k - 1] < stock->threads[k]));
        }
    }
    static const struct {
        bz_setting setting;
        const char *text;
    } CASES[] = {{{1, BZ_CACHE_HOT, NULL}, "threads=1 cache=hot"},
                 {{8, BZ_CACHE_COLD, "locked at 2 GHz"}, "threads=8 cache=cold clock=locked at 2 GHz"}};
    for (int i = 0; i < 2; i++) {
        bz_buf text = {0};
        bz_setting_print(&CASES[i].setting, &text);
        assert_string_equal(bz_buf_text(&text), CASES[i].text);
        bz_buf_free(&text);
        for (int k = 0; k < 2; k++)
            assert_int_equal(bz_setting_same(&CASES[i].setting, &CASES[k].setting), i == k);
    }
    bz_arena_free(&arena);
    bz_perfdb_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_identity),
        TEST(test_history),
        TEST(test_newest_stack),
        TEST(test_system_names),
        TEST(test_bad_records),
        TEST(test_conflicts),
        TEST(test_scan),
        TEST(test_damaged_entry),
        TEST(test_entry_versions),
        TEST(test_schemas),
        TEST(test_not_a_database),
        TEST(test_network_file_system),
        TEST(test_read_only_folder),
        TEST(test_map_growth),
        TEST(test_where),
        TEST(test_hidden),
        TEST(test_compact),
        TEST(test_take),
        TEST(test_marks),
        TEST(test_modes),
        TEST(test_order_of_systems),
        TEST(test_stocks),
        TEST(test_picks),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
