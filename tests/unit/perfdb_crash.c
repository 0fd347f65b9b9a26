/* Processes that write at once, die at any moment, or find the disk full. BENANZA_KILLS sets how
 * many writers are killed (40). */
#include "tests/unit/perfdb_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Runs `work` in a child, which must end with status 0. LMDB forbids a handle across fork(): the
 * child opens its own. */
static pid_t start(void (*work)(const char *dir, int who, int pipe), const char *dir, int who, int *out)
{
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(fd[0]);
        work(dir, who, fd[1]);
        _exit(0);
    }
    close(fd[1]);
    if (out)
        *out = fd[0];
    else
        close(fd[0]);
    return child;
}

static void child_need(int rc)
{
    if (rc) {
        fprintf(stderr, "child: %s\n", err.text);
        _exit(1);
    }
}

static bz_record numbered(bz_arena *arena, int who, int i)
{
    bz_record r = sample_record();
    r.problem = bz_arena_printf(arena, "relu x=%d dtype=f32", i);
    r.variant.algorithm = bz_arena_printf(arena, "writer%d", who);
    return r;
}

enum { EACH = 300 };

static void write_all(const char *dir, int who, int pipe)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    (void)pipe;
    child_need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.map_size = 65536}, &err));
    for (int i = 0; i < EACH; i++) {
        bz_record r = numbered(&arena, who, i);
        child_need(bz_perfdb_put(db, &r, 1, NULL, &err));
    }
    bz_perfdb_close(db);
}

/* Both grow the map, so each must follow the other; and a reader in between must follow both. */
static void test_two_writers(void **state)
{
    const char *dir = below(state, "db");
    pid_t a = start(write_all, dir, 0, NULL), b = start(write_all, dir, 1, NULL);
    bz_perfdb *db = open_with(dir, (bz_perfdb_options){.map_size = 65536});
    size_t n = 0;
    for (int status, left = 2; left; n = count_records(db)) {
        assert_true(count_records(db) >= n);
        pid_t done = waitpid(-1, &status, WNOHANG);
        if (done == a || done == b) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            left--;
        }
    }
    assert_int_equal(count_records(db), 2 * EACH);
    assert_clean(db);
    bz_perfdb_close(db);
}

/* Tells through the pipe after each record that it is stored. */
static void write_forever(const char *dir, int who, int pipe)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    child_need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.map_size = 65536}, &err));
    for (int i = 0;; i++) {
        bz_record r = numbered(&arena, who, i);
        child_need(bz_perfdb_put(db, &r, 1, NULL, &err));
        if (write(pipe, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static void test_killed_writers(void **state)
{
    const char *dir = below(state, "db"), *wanted = getenv("BENANZA_KILLS");
    int kills = wanted ? atoi(wanted) : 40, total = 0;
    unsigned random = 12345;
    bz_arena arena = {0};
    for (int who = 0; who < kills; who++) {
        int out, last = -1;
        pid_t child = start(write_forever, dir, who, &out);
        random = random * 1103515245u + 12345u;
        nanosleep(&(struct timespec){.tv_nsec = (long)(random >> 8) % 40000000}, NULL);
        kill(child, SIGKILL);
        for (int i; read(out, &i, sizeof i) == sizeof i;)
            last = i;
        close(out);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        total += last + 1;
        bz_perfdb *db = open_with(dir, (bz_perfdb_options){0});
        assert_clean(db);
        assert_true(count_records(db) >= (size_t)total); /* one more where it died before it could tell */
        for (int i = 0; i <= last; i++)
            assert_non_null(find(db, numbered(&arena, who, i), &arena));
        total = (int)count_records(db);
        bz_perfdb_close(db);
        assert_int_equal(warnings.len, 0);
    }
    print_message("%d writers killed, %d records, none lost\n", kills, total);
    bz_arena_free(&arena);
}

/* A file size limit stands in for a full disk where no small disk can be mounted. In the middle of a page it is a short write, which LMDB
 * calls an input/output error. */
static void hit_the_limit(const char *dir, int behind_a_page, int pipe)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    rlim_t most = 256 * 1024 + (rlim_t)behind_a_page;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
    child_need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err));
    int stored = 0, rc = 0;
    for (; !rc && stored < 100000; stored += !rc) {
        bz_record r = numbered(&arena, 0, stored);
        rc = bz_perfdb_put(db, &r, 1, NULL, &err);
    }
    if (!rc || !strstr(err.text, "full") || write(pipe, &stored, sizeof stored) != sizeof stored)
        _exit(1);
    bz_perfdb_close(db);
}

static void test_file_size_limit(void **state)
{
    static const int BEHIND[] = {0, 1, 100, 4095};
    for (size_t i = 0; i < sizeof BEHIND / sizeof *BEHIND; i++) {
        const char *dir = below(state, (const char *[]){"a", "b", "c", "d"}[i]);
        int out, stored = 0, status;
        pid_t child = start(hit_the_limit, dir, BEHIND[i], &out);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(read(out, &stored, sizeof stored), sizeof stored);
        close(out);
        assert_true(stored > 100);
        bz_perfdb *db = open_with(dir, (bz_perfdb_options){0});
        assert_int_equal(count_records(db), stored);
        assert_clean(db);
        put(db, sample_record()); /* without the limit it goes on */
        bz_perfdb_close(db);
    }
}

static void test_full_disk(void **state)
{
    const char *disk = below(state, "disk"), *dir = below(state, "disk/db");
    mkdir(disk, 0777);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=512k")) {
        print_message("test_full_disk skipped: no small disk can be mounted (%s)\n", strerror(errno));
        skip();
    }
    bz_arena arena = {0};
    bz_perfdb *db = open_with(dir, (bz_perfdb_options){0});
    int stored = 0, rc = 0;
    for (; !rc && stored < 100000; stored += !rc) {
        bz_record r = numbered(&arena, 0, stored);
        rc = bz_perfdb_put(db, &r, 1, NULL, &err);
    }
    bool said = rc && strstr(err.text, "full");
    size_t left = count_records(db);
    bz_perfdb_check_report report;
    bool clean = !bz_perfdb_check(db, &report, &err) && report.damaged + report.orphans == 0;
    bz_perfdb_close(db);
    umount2(disk, MNT_DETACH); /* before anything can fail */
    assert_true(said);
    assert_true(clean);
    assert_int_equal(left, stored);
    assert_true(stored > 100);
    bz_arena_free(&arena);
}

static void put_ten(const char *dir, int who, int pipe)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    (void)pipe;
    if (bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err))
        _exit(strstr(err.text, "full") ? 0 : 1);
    for (int i = 0; i < 10; i++) {
        bz_record r = numbered(&arena, who, i);
        if (bz_perfdb_put(db, &r, 1, NULL, &err))
            _exit(strstr(err.text, "full") ? 0 : 1);
    }
}

/* A disk with `pages` free, and nothing else. */
static void fill(const char *disk, int pages)
{
    char command[9000];
    snprintf(command, sizeof command,
             "exec 2>/dev/null; cd '%s' && rm -rf db fill && dd if=/dev/zero of=spare bs=4k count=%d && sync . && "
             "mkdir db fill && touch "
             "db/.x && for i in 1 2 3; do dd if=/dev/zero of=fill/$i bs=1k; sync .; done; rm spare && sync .",
             disk, pages);
    assert_int_equal(system(command), 0);
}

/* However little room there is when a database is made: an error that says so, no signal, and with room it goes on. */
static void try_every_size(const char *disk, const char *dir)
{
    for (int pages = 0; pages < 8; pages++) {
        int status;
        fill(disk, pages);
        assert_int_equal(waitpid(start(put_ten, dir, 0, NULL), &status, 0) > 0, 1);
        assert_int_equal(status, 0);
        char command[4200];
        snprintf(command, sizeof command, "rm -r '%s/fill'", disk);
        assert_int_equal(system(command), 0);
        bz_perfdb *db;
        /* who only reads finds a database, or none */
        if (!bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err))
            bz_perfdb_close(db);
        else
            assert_non_null(strstr(err.text, "there is no database"));
        db = open_with(dir, (bz_perfdb_options){0});
        put(db, sample_record());
        assert_clean(db);
        bz_perfdb_close(db);
    }
}

/* ext2 cannot reserve blocks: LMDB's lock file would be a hole. */
static void test_disks_of_every_size(void **state)
{
    const char *disk = below(state, "disk"), *dir = below(state, "disk/db");
    mkdir(disk, 0777);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=512k")) {
        print_message("test_disks_of_every_size skipped: no small disk can be mounted (%s)\n", strerror(errno));
        skip();
    }
    try_every_size(disk, dir);
    umount2(disk, MNT_DETACH);
    const char *image = below(state, "image");
    char command[9000];
    snprintf(command, sizeof command,
             "{ truncate -s 2M '%s' && mkfs.ext2 -q -m 0 -b 4096 '%s' && mount -o loop '%s' '%s'; } 2>/dev/null", image,
             image, image, disk);
    if (system(command)) {
        print_message("the part on ext2 skipped: it cannot be made or mounted\n");
        return;
    }
    try_every_size(disk, dir);
    umount2(disk, MNT_DETACH);
}

static void test_read_only_media(void **state)
{
    const char *disk = below(state, "disk"), *dir = below(state, "disk/db");
    mkdir(disk, 0777);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=1m")) {
        print_message("test_read_only_media skipped: no small disk can be mounted (%s)\n", strerror(errno));
        skip();
    }
    bz_perfdb *db = open_with(dir, (bz_perfdb_options){0}), *none = NULL;
    put(db, sample_record());
    bz_perfdb_close(db);
    int mounted = mount("tmpfs", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), rc = 0;
    size_t n = 0;
    if (!mounted && !(rc = bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err))) {
        n = count_records(db);
        bz_perfdb_close(db);
    }
    int writable = bz_perfdb_open(&none, dir, &(bz_perfdb_options){0}, &err);
    umount2(disk, MNT_DETACH); /* before anything can fail */
    assert_int_equal(mounted, 0);
    assert_int_equal(rc, 0);
    assert_int_equal(n, 1);
    assert_fails(writable, BZ_FAILED, "Read-only file system");
    assert_non_null(strstr(err.text, "--db"));
}

static void hold_open(const char *dir, int who, int pipe)
{
    bz_perfdb *db;
    (void)who;
    child_need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err));
    if (write(pipe, "x", 1) != 1)
        _exit(1);
    pause();
}

/* Compaction needs the database for itself: a process that has it open would go on writing into
 * the old file. */
static void test_compact_in_use(void **state)
{
    const char *dir = below(state, "db");
    bz_perfdb *db = open_new(state, "db");
    put(db, sample_record());
    bz_perfdb_close(db);
    int out, status;
    char ready;
    uint64_t before, after;
    pid_t child = start(hold_open, dir, 0, &out);
    assert_int_equal(read(out, &ready, 1), 1);
    assert_fails(bz_perfdb_compact(dir, &(bz_perfdb_options){0}, &before, &after, &err), BZ_FAILED, "open");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(out);
    assert_ok(bz_perfdb_compact(dir, &(bz_perfdb_options){0}, &before, &after, &err));
    db = open_with(dir, (bz_perfdb_options){0});
    assert_int_equal(count_records(db), 1);
    bz_perfdb_close(db);
}

static void read_and_die(const char *dir, int who, int pipe)
{
    bz_perfdb *db;
    size_t n = 0;
    (void)who;
    (void)pipe;
    child_need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err));
    child_need(bz_perfdb_scan(db, &(bz_perfdb_filter){0}, count_one, &n, &err));
    kill(getpid(), SIGKILL);
}

/* More dead readers than there are slots: the living clear them away. The handle that stays open
 * keeps LMDB from making the table anew. */
static void test_stale_readers(void **state)
{
    bz_perfdb *db = open_new(state, "db");
    put(db, sample_record());
    for (int i = 0; i < 140; i++) {
        int status;
        pid_t child = start(read_and_die, below(state, "db"), 0, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    bz_perfdb_check_report report;
    assert_ok(bz_perfdb_check(db, &report, &err));
    assert_true(report.stale_readers > 0);
    assert_int_equal(count_records(db), 1);
    bz_perfdb_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_writers),   TEST(test_killed_writers),      TEST(test_file_size_limit),
        TEST(test_full_disk),     TEST(test_compact_in_use),      TEST(test_read_only_media),
        TEST(test_stale_readers), TEST(test_disks_of_every_size),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
