/* Looking at every entry, and rewriting the file. */
#include "perfdb/guard.h"
#include "perfdb/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    bz_perfdb *db;
    bz_perfdb_check_report *report;
    bz_buf used; /* hashes of the problems that records use */
} check;

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, HASH_SIZE);
}

static void count_state(check *c, const char *what, const MDB_val *key, bz_entry_state state)
{
    c->report->damaged += state == ENTRY_DAMAGED;
    c->report->newer += state == ENTRY_NEWER;
    if (state != ENTRY_GOOD)
        bz_store_warn_entry(c->db, what, key, state);
}

static void check_system(check *c, const MDB_val *key, const MDB_val *value)
{
    bz_system s;
    c->report->systems++;
    count_state(c, "system", key, bz_system_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &s));
}

/* The key must be the one that the record's content makes. */
static void check_record(check *c, const MDB_val *key, const MDB_val *value)
{
    bz_record r = {0};
    c->report->records++;
    bz_entry_state state = bz_record_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &r);
    if (state == ENTRY_GOOD) {
        const char *hash = (const char *)key->mv_data + KEY_TYPE;
        const bz_system *system = bz_store_system_by_id(c->db, bz_key_system_of(key->mv_data));
        if (!c->used.len || memcmp(c->used.data + c->used.len - HASH_SIZE, hash, HASH_SIZE) != 0)
            bz_buf_put(&c->used, hash, HASH_SIZE);
        r.problem = bz_store_problem(c->db, key->mv_data);
        if (!system || !r.problem) {
            c->report->orphans++;
            if (!system)
                bz_store_warn(c->db, "%s: a record's system is missing: it counts as absent", c->db->dir);
            return;
        }
        r.system = system->name;
        bz_record_key expected;
        bz_key_problem(&expected, system->id, r.problem);
        bz_key_identity(&expected, &r.variant, &r.setting);
        bz_key_date(&expected, r.date);
        if (memcmp(expected.byte, key->mv_data, KEY_RECORD) != 0 || bz_record_check(&r, NULL))
            state = ENTRY_DAMAGED;
    }
    count_state(c, "record", key, state);
}

static void check_problem(check *c, const MDB_val *key, const MDB_val *value)
{
    const char *text;
    unsigned char hash[HASH_SIZE] = {0};
    c->report->problems++;
    bz_entry_state state = bz_problem_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &text);
    if (state == ENTRY_GOOD) {
        bz_key_hash(text, hash);
        if (key->mv_size != HASH_SIZE || memcmp(hash, key->mv_data, HASH_SIZE) != 0)
            state = ENTRY_DAMAGED;
    }
    count_state(c, "problem", key, state);
    if (state == ENTRY_GOOD &&
        (!c->used.len || !bsearch(hash, c->used.data, c->used.len / HASH_SIZE, HASH_SIZE, by_hash)))
        c->report->unused++;
}

static int each_entry(check *c, MDB_dbi dbi, void (*look)(check *c, const MDB_val *key, const MDB_val *value))
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(c->db->reader, dbi, &cursor);
    if (code)
        return code;
    while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
        look(c, &key, &value);
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

int bz_perfdb_check(bz_perfdb *db, bz_perfdb_check_report *report, bz_error *err)
{
    *report = (bz_perfdb_check_report){0};
    check c = {.db = db, .report = report};
    mdb_reader_check(db->env, &report->stale_readers);
    mdb_filehandle_t fd;
    struct stat st;
    if (!mdb_env_get_fd(db->env, &fd) && !fstat(fd, &st))
        report->bytes = (uint64_t)st.st_size;
    if (bz_store_read(db, err))
        return -1;
    int code = 0;
    if (!db->no_databases) {
        code = each_entry(&c, db->systems, check_system);
        if (!code)
            code = each_entry(&c, db->records, check_record);
        if (c.used.len)
            qsort(c.used.data, c.used.len / HASH_SIZE, HASH_SIZE, by_hash);
        if (!code)
            code = each_entry(&c, db->problems, check_problem);
    }
    bz_store_read_end(db);
    bz_buf_free(&c.used);
    return code ? bz_store_fail(db, "cannot read", code, err) : 0;
}

/* Compaction */

static int copy_compact(const char *dir, const char *to, bz_error *err)
{
    bz_perfdb db = {.dir = (char *)dir, .read_only = true};
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = 0;
    int code = fd < 0 ? errno : mdb_env_create(&db.env);
    if (!code)
        code = mdb_env_set_maxdbs(db.env, N_DATABASES);
    if (!code)
        code = mdb_env_open(db.env, dir, MDB_RDONLY | MDB_NOLOCK, 0666);
    if (!code)
        rc = bz_store_find_tables(&db, err); /* what a newer benanza or another program wrote is not ours to rewrite */
    if (!code && !rc)
        code = mdb_env_copyfd2(db.env, fd, MDB_CP_COMPACT);
    if (!code && !rc && fsync(fd))
        code = errno;
    mdb_env_close(db.env);
    if (fd >= 0)
        close(fd);
    return code ? bz_store_fail(&db, "cannot be compacted", code, err) : rc;
}

static uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

int bz_perfdb_compact(const char *dir, const bz_perfdb_options *options, uint64_t *before, uint64_t *after,
                      bz_error *err)
{
    bz_buf data = {0}, lock = {0}, new = {0};
    bz_buf_printf(&data, "%s/data.mdb", dir);
    bz_buf_printf(&lock, "%s/lock.mdb", dir);
    bz_buf_printf(&new, "%s/compact.mdb", dir);
    int fd = -1, folder = -1, rc = -1;
    bool made = false;
    if (access(data.data, F_OK)) {
        bz_fail(err, BZ_FAILED, "%s: there is no database", dir);
        goto out;
    }
    if (bz_guard_file_system(dir, options->file_system, err) || bz_store_lock_alone(dir, lock.data, &fd, err) ||
        bz_guard_file(data.data, 0, true, err))
        goto out;
    *before = file_size(data.data);
    made = true;
    if (copy_compact(dir, new.data, err))
        goto out;
    *after = file_size(new.data);
    if (rename(new.data, data.data)) {
        bz_fail(err, BZ_FAILED, "%s: cannot be replaced: %s", data.data, strerror(errno));
        goto out;
    }
    made = false;
    folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        fsync(folder); /* without it a crash may bring the old file back, which is as good */
    rc = 0;
out:
    if (made)
        unlink(new.data);
    if (folder >= 0)
        close(folder);
    if (fd >= 0)
        close(fd);
    bz_buf_free(&data);
    bz_buf_free(&lock);
    bz_buf_free(&new);
    return rc;
}
