/* The guard against LMDB itself: whatever LMDB leaves behind after random puts, deletes, compactions, full disks and deaths
 * in the middle of a write, it can read again, and so must the guard say. BENANZA_ROUNDS sets how many transactions are
 * tried (2500), BENANZA_SEED the first file's seed (1). */
#include "tests/unit/perfdb_test.h"

#include "perfdb/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGE = 4096, TABLES = 3, LONGEST = 60000, ROUNDS_EACH = 50 };

typedef struct {
    void **state;
    uint64_t seed;
    MDB_env *env;
    MDB_dbi dbi[TABLES];
    MDB_txn *reader; /* keeps pages of an old moment from being used again */
    bool emptied, written;
    size_t files, deaths, full, copies, unwritten, entries;
} oracle;

static uint64_t any(oracle *o, uint64_t n)
{
    o->seed = o->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (o->seed >> 33) % n;
}

static void need(const oracle *o, int code, const char *what)
{
    if (code)
        fail_msg("seed %llu: %s: %s", (unsigned long long)o->seed, what, mdb_strerror(code));
}

static void open_file(oracle *o, const char *name)
{
    MDB_txn *txn;
    mkdir(below(o->state, name), 0777);
    need(o, mdb_env_create(&o->env), "create");
    need(o, mdb_env_set_maxdbs(o->env, TABLES), "maxdbs");
    need(o, mdb_env_set_mapsize(o->env, (size_t)1 << 28), "mapsize");
    need(o, mdb_env_open(o->env, below(o->state, name), MDB_NOSYNC | MDB_NOTLS, 0666), "open");
    need(o, mdb_txn_begin(o->env, NULL, 0, &txn), "begin");
    for (int i = 0; i < TABLES; i++)
        need(o, mdb_dbi_open(txn, (char[]){(char)('a' + i), 0}, MDB_CREATE, &o->dbi[i]), "table");
    need(o, mdb_txn_commit(txn), "commit");
}

static void drop_reader(oracle *o)
{
    if (o->reader)
        mdb_txn_abort(o->reader);
    o->reader = NULL;
}

static void close_file(oracle *o)
{
    drop_reader(o);
    mdb_env_close(o->env);
}

/* Short values, values of about a page, and long ones on pages of their own. */
static size_t any_size(oracle *o)
{
    uint64_t kind = any(o, 10);
    return (size_t)any(o, kind < 6 ? 200 : kind < 8 ? 5000 : kind < 9 ? 20000 : LONGEST);
}

static MDB_val any_key(oracle *o, char *room)
{
    size_t n = any(o, 20) ? 48 : 1 + (size_t)any(o, 511);
    memset(room, (int)any(o, 4) + 1, n);
    uint64_t which = any(o, 300);
    memcpy(room + (n > 8 ? n - 8 : 0), &which, n < 8 ? n : 8);
    return (MDB_val){n, room};
}

static int put_some(oracle *o, MDB_txn *txn, MDB_dbi dbi)
{
    static char value[LONGEST];
    char room[512];
    int code = 0;
    for (uint64_t n = any(o, 40); n && !code; n--) {
        MDB_val key = any_key(o, room);
        /* now and then the same key again, as a record that is told twice in one import */
        for (uint64_t again = any(o, 4) ? 1 : 3; again && !code; again--) {
            MDB_val v = {any_size(o), value};
            code = mdb_put(txn, dbi, &key, &v, 0);
        }
    }
    return code;
}

/* Throws away every entry, or one in some, as gc does. */
static int delete_some(oracle *o, MDB_txn *txn, MDB_dbi dbi)
{
    MDB_cursor *c;
    MDB_val key, value;
    uint64_t of = 1 + any(o, 4);
    int code = mdb_cursor_open(txn, dbi, &c);
    if (code)
        return code;
    while (!(code = mdb_cursor_get(c, &key, &value, MDB_NEXT)))
        if (any(o, of) == 0 && (code = mdb_cursor_del(c, 0)))
            break;
    mdb_cursor_close(c);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int transact(oracle *o)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(o->env, NULL, 0, &txn);
    if (code)
        return code;
    for (uint64_t steps = 1 + any(o, 3); steps && !code; steps--) {
        MDB_dbi dbi = o->dbi[any(o, TABLES)];
        code = any(o, 3) ? put_some(o, txn, dbi) : delete_some(o, txn, dbi);
    }
    if (!code && any(o, 10))
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}

/* What LMDB says: it reads every entry. Returns how many there are. */
static size_t read_with_lmdb(const oracle *o, MDB_env *env)
{
    MDB_txn *txn;
    size_t n = 0;
    need(o, mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "read");
    for (int i = 0; i < TABLES; i++) {
        MDB_dbi dbi;
        MDB_cursor *c;
        MDB_val key, value;
        need(o, mdb_dbi_open(txn, (char[]){(char)('a' + i), 0}, 0, &dbi), "table");
        need(o, mdb_cursor_open(txn, dbi, &c), "cursor");
        int code;
        volatile char last = 0;
        while (!(code = mdb_cursor_get(c, &key, &value, MDB_NEXT))) {
            if (value.mv_size)
                last = ((const char *)value.mv_data)[value.mv_size - 1];
            n++;
        }
        (void)last;
        mdb_cursor_close(c);
        need(o, code == MDB_NOTFOUND ? 0 : code, "walk");
    }
    mdb_txn_abort(txn);
    return n;
}

/* What the guard says of the same file. */
static void guard_agrees(oracle *o, const char *path)
{
    MDB_envinfo info;
    struct stat st;
    mdb_env_info(o->env, &info);
    assert_int_equal(stat(path, &st), 0);
    o->unwritten += (uint64_t)st.st_size < (info.me_last_pgno + 1) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (bz_guard_file(path, 0, true, &err))
        fail_msg("seed %llu: LMDB reads it, the guard says: %s", (unsigned long long)o->seed, err.text);
}

/* A child writes until the file is longer than it may get: it dies in the middle of a commit, or is told that the disk is
 * full and goes on. Handles must not cross fork(): it opens its own. */
static void write_to_the_limit(oracle *o, bool dies)
{
    struct stat st;
    int status;
    close_file(o);
    assert_int_equal(stat(below(o->state, "raw/data.mdb"), &st), 0);
    /* up to a page's end: past a part of a page there is a short write first, and no signal */
    rlim_t most = (rlim_t)(st.st_size / PAGE + (off_t)any(o, 30)) * PAGE + (dies ? 0 : any(o, PAGE));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, dies ? SIG_DFL : SIG_IGN);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        open_file(o, "raw");
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
        for (int i = 0; i < 60; i++)
            transact(o);
        mdb_env_close(o->env);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGXFSZ);
    else
        assert_int_equal(status, 0);
    o->deaths += WIFSIGNALED(status);
    o->full += !dies;
    open_file(o, "raw");
}

static void copy_compact(oracle *o)
{
    const char *to = below(o->state, "raw/compact.mdb");
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    need(o, mdb_env_copyfd2(o->env, fd, MDB_CP_COMPACT), "compact");
    close(fd);
    close_file(o);
    assert_int_equal(rename(to, below(o->state, "raw/data.mdb")), 0);
    open_file(o, "raw");
    o->copies++;
}

static size_t wanted(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_raw_files(void **state)
{
    oracle o = {.state = state};
    size_t rounds = wanted("BENANZA_ROUNDS", 2500), seed = wanted("BENANZA_SEED", 1);
    const char *path = below(state, "raw/data.mdb");
    for (size_t i = 0; i < rounds; i++) {
        if (i % ROUNDS_EACH == 0) {
            o.seed = seed + i / ROUNDS_EACH;
            unlink(path);
            unlink(below(state, "raw/lock.mdb"));
            open_file(&o, "raw");
            o.files++;
        }
        uint64_t kind = any(&o, 100);
        if (kind < 2)
            write_to_the_limit(&o, kind == 0);
        else if (kind < 4)
            copy_compact(&o);
        else if (kind < 12 && !o.reader)
            need(&o, mdb_txn_begin(o.env, NULL, MDB_RDONLY, &o.reader), "reader");
        else if (kind < 20)
            drop_reader(&o);
        need(&o, transact(&o), "transaction");
        o.entries += read_with_lmdb(&o, o.env);
        guard_agrees(&o, path);
        if (i % ROUNDS_EACH == ROUNDS_EACH - 1 || i == rounds - 1)
            close_file(&o);
    }
    print_message("%zu rounds, %zu files, %zu deaths, %zu full disks, %zu copies, %zu ends without their last pages, "
                  "%zu entries read\n",
                  rounds, o.files, o.deaths, o.full, o.copies, o.unwritten, o.entries);
    assert_true(o.deaths && o.full && o.copies && o.unwritten && o.entries);
}

/* The same through our own calls: imports that tell a record twice, once with long details, gc, and compaction. */
static void put_random(oracle *o, bz_perfdb *db, bz_arena *arena)
{
    static char details[25000] = "{\"x\":\"";
    memset(details + 6, 'y', sizeof details - 7);
    size_t n = 1 + (size_t)any(o, 300);
    bz_record *r = BZ_NEW(arena, bz_record, n);
    for (size_t i = 0; i < n; i++) {
        r[i] = sample_record();
        r[i].problem = bz_arena_printf(arena, "relu x=%d dtype=f32", (int)any(o, 40));
        r[i].variant.algorithm = bz_arena_printf(arena, "a%d", (int)any(o, 3));
        r[i].date += (int64_t)any(o, 20);
        r[i].n = 1 + (int64_t)any(o, 50); /* more samples replace fewer */
        if (any(o, 6) == 0)
            r[i].reason = bz_arena_printf(arena, "%.*s", (int)any(o, 3900), details + 6);
        if (any(o, 6) == 0)
            r[i].meta = bz_arena_printf(arena, "%.*s\"}", (int)any(o, 20000) + 6, details);
    }
    assert_ok(bz_perfdb_put(db, r, n, NULL, &err));
    assert_ok(bz_perfdb_put_system(db, "v100", bz_arena_printf(arena, "%.*s\"}", (int)any(o, 20000) + 6, details),
                                   (int64_t)any(o, 1000), &err));
}

/* LMDB's own programs, where they are installed. */
static bool tools_agree(const char *dir, const char *copy)
{
    char command[3 * 4096];
    snprintf(command, sizeof command,
             "command -v mdb_stat >/dev/null && command -v mdb_copy >/dev/null || exit 77\n"
             "mdb_stat -ef -a '%s' >/dev/null && rm -rf '%s' && mkdir '%s' && mdb_copy -c '%s' '%s'",
             dir, copy, copy, dir, copy);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    return WEXITSTATUS(status) == 0;
}

static void test_database(void **state)
{
    oracle o = {.state = state, .seed = wanted("BENANZA_SEED", 1)};
    size_t rounds = wanted("BENANZA_ROUNDS", 2500) / 25, asked = 0, gcs = 0;
    const char *dir = below(state, "db");
    for (size_t i = 0; i < rounds; i++) {
        bz_arena arena = {0};
        uint64_t before, after;
        size_t deleted;
        bz_perfdb *db = open_with(dir, (bz_perfdb_options){0});
        if (any(&o, 4))
            put_random(&o, db, &arena);
        if (any(&o, 2) && ++gcs)
            assert_ok(bz_perfdb_gc(db, 1 + (size_t)any(&o, 2), &deleted, &err));
        bz_perfdb_close(db);
        if (any(&o, 8) == 0)
            assert_ok(bz_perfdb_compact(dir, &(bz_perfdb_options){0}, &before, &after, &err));
        db = open_with(dir, (bz_perfdb_options){.read_only = true});
        assert_clean(db);
        bz_perfdb_close(db);
        assert_int_equal(warnings.len, 0);
        if (i % 10 == 0)
            asked += tools_agree(dir, below(state, "copy"));
        bz_arena_free(&arena);
    }
    print_message("%zu rounds, %zu gcs, LMDB's tools agreed %zu times%s\n", rounds, gcs, asked,
                  asked ? "" : " (they are not installed: lmdb-utils)");
    assert_true(rounds > 0);
}

static void commit_and_commit(const char *dir)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    if (bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err))
        _exit(1);
    for (int i = 0;; i++) {
        bz_record r = sample_record();
        r.problem = bz_arena_printf(&arena, "relu x=%d dtype=f32", i);
        if (bz_perfdb_put(db, &r, 1, NULL, &err))
            _exit(1);
    }
}

/* Whoever opens the file while it grows sees a whole database, and all of its pages. */
static void test_opened_while_written(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb_close(open_new(state, "db"));
    pid_t child = fork();
    if (child == 0)
        commit_and_commit(dir);
    size_t last = 0;
    for (size_t i = 0; i < 500 || last < 50; i++) {
        bz_perfdb *db;
        if (bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err)) {
            kill(child, SIGKILL);
            fail_msg("open %zu: %s", i, err.text);
        }
        size_t n = count_records(db);
        bz_perfdb_close(db);
        assert_true(n >= last);
        last = n;
    }
    int status;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0); /* it writes still */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_raw_files), TEST(test_database), TEST(test_opened_while_written)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
