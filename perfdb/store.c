/* Opening, transactions, and what can go wrong with them. */
#include "perfdb/store.h"
#include "base/sort.h"

#include "perfdb/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_READERS = 126, LOCK_FILE = 8 << 10 /* bytes, of so many readers */ };
static const size_t FIRST_MAP = sizeof(void *) > 4 ? (size_t)1 << 30 : (size_t)1 << 28;
static const char SCHEMA_KEY[] = "schema";

void bz_store_warn(const bz_perfdb *db, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (db->warn)
        db->warn(db->user, text);
}

void bz_store_warn_entry(const bz_perfdb *db, const char *what, const MDB_val *key, bz_entry_state state)
{
    char hex[2 * KEY_RECORD + 1] = "";
    const unsigned char *b = key->mv_data;
    for (size_t i = 0; i < key->mv_size && i < KEY_RECORD; i++)
        snprintf(hex + 2 * i, 3, "%02x", b[i]);
    bz_store_warn(db, "%s: a %s %s and counts as absent (%s)", db->dir, what,
                  state == ENTRY_NEWER ? "was written by a newer benanza" : "is damaged", hex);
}

static bool disk_is_full(const char *dir)
{
    struct statvfs fs;
    struct rlimit most;
    struct stat st;
    char path[4200];
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    bool limited = !getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY && !stat(path, &st) &&
                   (rlim_t)st.st_size + (1 << 20) > most.rlim_cur;
    return limited || (!statvfs(dir, &fs) && fs.f_bavail < 64);
}

/* A short write, which is how a full disk often looks, comes out of LMDB as EIO. */
int bz_store_fail(const bz_perfdb *db, const char *doing, int code, bz_error *err)
{
    const char *dir = db->dir;
    if (code == ENOSPC || code == EDQUOT || code == EFBIG || (code == EIO && disk_is_full(dir)))
        return bz_fail(err, BZ_FAILED,
                       "%s: %s: the disk, the quota or the file size limit is full: the database is as it was before; "
                       "make room and run again",
                       dir, doing);
    if (code == EROFS || code == EACCES || code == EPERM || code == ENOENT || code == ENOTDIR)
        return bz_fail(err, BZ_FAILED, "%s: %s: %s: name another folder with --db or BENANZA_DB", dir, doing,
                       strerror(code));
    if (code == MDB_READERS_FULL)
        return bz_fail(err, BZ_FAILED, "%s: %s: %d processes read the database already: wait for some to end", dir,
                       doing, MOST_READERS);
    if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID || code == MDB_BAD_TXN ||
        code == MDB_INCOMPATIBLE)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: %s: the file is damaged (%s): 'benanza db salvage' gets out what is intact", dir, doing,
                       mdb_strerror(code));
    if (code == MDB_VERSION_MISMATCH)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: %s: another LMDB version wrote the file: export it there, import it here", dir, doing);
    if (code == MDB_PANIC)
        return bz_fail(err, BZ_FAILED, "%s: %s: an earlier write failed half way: open the database anew", dir, doing);
    return bz_fail(err, BZ_FAILED, "%s: %s: %s", dir, doing, mdb_strerror(code));
}

/* Transactions */

static void drop_reader(bz_perfdb *db)
{
    if (db->cursor)
        mdb_cursor_close(db->cursor);
    if (db->reader)
        mdb_txn_abort(db->reader);
    db->cursor = NULL;
    db->reader = NULL;
}

/* Mends what can be mended before a transaction is tried again: another process has grown the map,
 * or dead readers hold all slots. */
static bool mended(bz_perfdb *db, int code)
{
    int dead = 0;
    if (code == MDB_MAP_RESIZED) {
        drop_reader(db);
        return !mdb_env_set_mapsize(db->env, 0);
    }
    return code == MDB_READERS_FULL && !mdb_reader_check(db->env, &dead) && dead > 0;
}

static int start_reader(bz_perfdb *db)
{
    int code;
    do {
        if (db->reader)
            code = mdb_txn_renew(db->reader);
        else
            code = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &db->reader);
    } while (code && mended(db, code));
    if (code || db->no_databases)
        return code;
    code =
        db->cursor ? mdb_cursor_renew(db->reader, db->cursor) : mdb_cursor_open(db->reader, db->records, &db->cursor);
    if (code)
        mdb_txn_reset(db->reader);
    return code;
}

BZ_SORTS(by_name, bz_system *const, bz_system_compare((*p)->name, (*q)->name));

/* Takes over one entry; what was handed out before stays valid. */
static void remember_system(bz_perfdb *db, const bz_system *s)
{
    for (size_t i = 0; i < db->n_systems; i++) {
        bz_system *known = db->system[i];
        if (strcmp(known->name, s->name) != 0)
            continue;
        known->id = s->id;
        known->date = s->date;
        if (strcmp(known->details, s->details) != 0)
            known->details = bz_arena_str(&db->names, s->details);
        return;
    }
    db->system = bz_realloc(db->system, db->n_systems + 1, sizeof(void *));
    bz_system *new = BZ_NEW(&db->names, bz_system, 1);
    *new = *s;
    new->name = bz_arena_str(&db->names, s->name);
    new->details = bz_arena_str(&db->names, s->details);
    db->system[db->n_systems++] = new;
}

static int load_systems(bz_perfdb *db)
{
    size_t now = mdb_txn_id(db->reader);
    if (db->no_databases || (db->systems_seen == now && now))
        return 0;
    MDB_cursor *c;
    MDB_val key, value;
    int code = mdb_cursor_open(db->reader, db->systems, &c);
    if (code)
        return code;
    while (!(code = mdb_cursor_get(c, &key, &value, MDB_NEXT))) {
        bz_system s;
        bz_entry_state state = bz_system_decode(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &s);
        if (state == ENTRY_GOOD)
            remember_system(db, &s);
        else
            bz_store_warn_entry(db, "system", &key, state);
    }
    mdb_cursor_close(c);
    if (code != MDB_NOTFOUND)
        return code;
    if (db->n_systems)
        qsort(db->system, db->n_systems, sizeof(void *), by_name);
    db->systems_seen = now;
    return 0;
}

int bz_store_read(bz_perfdb *db, bz_error *err)
{
    if (db->reading++ || !db->env)
        return 0;
    int code = start_reader(db);
    if (!code) {
        code = load_systems(db);
        if (code)
            mdb_txn_reset(db->reader);
    }
    if (code) {
        db->reading--;
        return bz_store_fail(db, "cannot read", code, err);
    }
    return 0;
}

void bz_store_read_end(bz_perfdb *db)
{
    if (--db->reading == 0 && db->env)
        mdb_txn_reset(db->reader);
}

static int grow_map(bz_perfdb *db)
{
    MDB_envinfo info;
    drop_reader(db);
    mdb_env_info(db->env, &info);
    if (info.me_mapsize > SIZE_MAX / 4)
        return ENOMEM;
    return mdb_env_set_mapsize(db->env, info.me_mapsize * 2);
}

int bz_store_write(bz_perfdb *db, int (*body)(bz_perfdb *db, MDB_txn *txn, void *arg), void *arg, const char *doing,
                   bz_error *err)
{
    if (db->read_only)
        return bz_fail(err, BZ_FAILED, "%s: %s: the database was opened for reading only", db->dir, doing);
    for (;;) {
        MDB_txn *txn;
        int code = mdb_txn_begin(db->env, NULL, 0, &txn);
        if (!code) {
            code = body(db, txn, arg);
            if (code)
                mdb_txn_abort(txn);
            else
                code = mdb_txn_commit(txn);
        }
        if (!code)
            return 0;
        if (code == MDB_MAP_FULL)
            code = grow_map(db);
        else if (mended(db, code))
            code = 0;
        if (code)
            return bz_store_fail(db, doing, code, err);
    }
}

/* Opening */

/* Only the last of them has to be new or ours: what is above may be there without our being
 * allowed to make it. */
/* The error is that of the first folder that cannot be made: those below it only say that it is not there. */
static int make_dirs(const char *dir)
{
    BZ_FREED char *path = bz_copy(dir);
    int first = 0;
    for (char *p = path + 1; path[0] && *p; p++)
        if (*p == '/') {
            *p = 0;
            first = mkdir(path, 0777) && errno != EEXIST && !first ? errno : first;
            *p = '/';
        }
    int failed = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
    return failed == ENOENT && first ? first : failed;
}

/* The first write of a new database. In an existing one, finds the tables. */
static int open_tables(bz_perfdb *db, MDB_txn *txn, void *arg)
{
    uint32_t *schema = arg;
    unsigned create = db->read_only ? 0 : MDB_CREATE;
    const struct {
        const char *name;
        MDB_dbi *dbi;
    } tables[N_DATABASES] = {
        {"info", &db->info}, {"systems", &db->systems}, {"problems", &db->problems}, {"records", &db->records}};
    int code = mdb_dbi_open(txn, tables[0].name, 0, tables[0].dbi);
    *schema = SCHEMA_VERSION;
    MDB_val key = {strlen(SCHEMA_KEY), (void *)SCHEMA_KEY}, value;
    if (!code && !mdb_get(txn, db->info, &key, &value)) {
        if (value.mv_size != sizeof *schema)
            return MDB_INVALID;
        memcpy(schema, value.mv_data, sizeof *schema);
        if (*schema != SCHEMA_VERSION)
            return MDB_VERSION_MISMATCH;
        create = 0;
    } else if (code != MDB_NOTFOUND) {
        return code ? code : MDB_INVALID;
    }
    for (int i = 0; i < N_DATABASES; i++)
        if ((code = mdb_dbi_open(txn, tables[i].name, create, tables[i].dbi)))
            return code;
    if (!create)
        return 0;
    value = (MDB_val){sizeof *schema, schema};
    return mdb_put(txn, db->info, &key, &value, 0);
}

/* Older schemas would be brought up to date here; there are none yet. */
static int schema_error(const bz_perfdb *db, uint32_t schema, bz_error *err)
{
    if (schema > SCHEMA_VERSION)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: written by a newer benanza (schema %u, this one knows %d): update this one, or 'benanza db "
                       "export' there and 'benanza db import' here",
                       db->dir, schema, SCHEMA_VERSION);
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s: schema %u is older than any that this benanza knows: 'benanza db export' with the one that "
                   "wrote it, and 'benanza db import' with this one into a new folder",
                   db->dir, schema);
}

/* Tables of any kind, as this transaction sees them: another process may be making ours right now. */
static bool has_tables(MDB_txn *txn)
{
    MDB_dbi unnamed;
    MDB_stat stat;
    return !mdb_dbi_open(txn, NULL, 0, &unnamed) && !mdb_stat(txn, unnamed, &stat) && stat.ms_entries;
}

int bz_store_find_tables(bz_perfdb *db, bz_error *err)
{
    uint32_t schema = SCHEMA_VERSION;
    MDB_txn *txn;
    bool foreign = false;
    int code;
    do
        code = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);
    while (code && mended(db, code));
    if (!code) {
        bool read_only = db->read_only;
        db->read_only = true; /* look only: a database that is there must not be written to be opened */
        code = open_tables(db, txn, &schema);
        db->read_only = read_only;
        foreign = code == MDB_NOTFOUND && has_tables(txn);
        if (code)
            mdb_txn_abort(txn);
        else
            code = mdb_txn_commit(txn);
    }
    if (foreign)
        return bz_fail(err, BZ_BAD_INPUT, "%s: the LMDB database there is another program's", db->dir);
    if (code == MDB_NOTFOUND && db->read_only) {
        db->no_databases = true;
        return 0;
    }
    if (code == MDB_NOTFOUND) {
        int rc = bz_store_write(db, open_tables, &schema, "cannot be set up", err);
        return rc && schema != SCHEMA_VERSION ? schema_error(db, schema, err) : rc;
    }
    if (schema != SCHEMA_VERSION)
        return schema_error(db, schema, err);
    return code ? bz_store_fail(db, "cannot be opened", code, err) : 0;
}

/* A zero into bytes that LMDB has no use for, one in every sector: the readers' slots are 64 bytes apart and 24 long. */
static int touch_sectors(int fd)
{
    for (off_t at = 511; at < LOCK_FILE; at += 512)
        if (pwrite(fd, "", 1, at) != 1)
            return errno;
    return 0;
}

/* LMDB makes its lock file of nothing but a hole: without room on the disk, the first write there is a SIGBUS. What else may
 * be wrong with that file is for LMDB to say. */
static int reserve_lock_file(const bz_perfdb *db)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/lock.mdb", db->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int code = fd >= 0 && fallocate(fd, 0, 0, LOCK_FILE) ? errno : 0;
    if (code == EOPNOTSUPP || code == ENOSYS) /* ext2 and ext3 */
        code = touch_sectors(fd);
    if (fd >= 0)
        close(fd);
    return code == ENOSPC || code == EDQUOT ? code : 0;
}

static int open_env(bz_perfdb *db, size_t map_size, bz_error *err)
{
    unsigned flags = MDB_NOTLS | (db->read_only ? MDB_RDONLY : 0u);
    for (;;) {
        int code = flags & MDB_NOLOCK ? 0 : reserve_lock_file(db);
        if (!code)
            code = mdb_env_create(&db->env);
        if (!code)
            code = mdb_env_set_maxdbs(db->env, N_DATABASES);
        if (!code)
            code = mdb_env_set_maxreaders(db->env, MOST_READERS);
        if (!code)
            code = mdb_env_set_mapsize(db->env, map_size);
        if (!code)
            code = mdb_env_open(db->env, db->dir, flags, 0666);
        if (!code)
            return 0;
        mdb_env_close(db->env);
        db->env = NULL;
        if (code == EINTR)
            continue; /* LMDB gives up a read that a signal interrupts */
        if (code == ENOMEM && map_size > (size_t)1 << 24) {
            map_size /= 4; /* an address space limit; LMDB raises what is less than the file holds */
        } else if (code == EACCES && db->read_only && !(flags & MDB_NOLOCK)) {
            flags |= MDB_NOLOCK;
            bz_store_warn(
                db,
                "%s: the lock file is not ours to write: reading without it, which is safe only while nobody writes",
                db->dir);
        } else {
            return bz_store_fail(db, "cannot be opened", code, err);
        }
    }
}

/* Looks at the pages of one moment. So far, LMDB has read nothing but the meta pages. */
static int guard_pages(bz_perfdb *db, const char *file, bz_error *err)
{
    for (int i = 0; i < 1000; i++) {
        MDB_txn *txn;
        int code;
        do
            code = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);
        while (code && mended(db, code));
        if (code)
            return bz_store_fail(db, "cannot be opened", code, err);
        int rc = bz_guard_file(file, mdb_txn_id(txn), true, err);
        mdb_txn_abort(txn);
        if (rc <= 0)
            return rc;
    }
    return bz_fail(err, BZ_FAILED, "%s: others write faster than it can be looked at: try again", db->dir);
}

int bz_store_lock_alone(const char *dir, const char *path, int *fd, bz_error *err)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be locked: %s", path, strerror(errno));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (!fcntl(*fd, F_SETLK, &lock))
        return 0;
    struct flock holder = lock;
    if (!fcntl(*fd, F_GETLK, &holder) && holder.l_type != F_UNLCK)
        return bz_fail(err, BZ_FAILED, "%s: process %ld has the database open: compact it when that is done", dir,
                       (long)holder.l_pid);
    return bz_fail(err, BZ_FAILED, "%s: another process has the database open: compact it when that is done", dir);
}

/* A disk that was full when LMDB made the file leaves an empty one. */
static bool is_nothing(const char *file)
{
    struct stat st;
    return stat(file, &st) ? errno == ENOENT || errno == ENOTDIR : (S_ISREG(st.st_mode) && st.st_size == 0);
}

/* A disk that filled up while LMDB made the file has left the first part of an empty database, which nobody can open. */
static void remove_unfinished(const bz_perfdb *db, const char *file)
{
    BZ_SCOPED(bz_buf) lock = {0};
    bz_error err;
    int fd = -1;
    if (!bz_guard_unfinished(file))
        return;
    bz_buf_printf(&lock, "%s/lock.mdb", db->dir);
    if (!bz_store_lock_alone(db->dir, lock.data, &fd, &err) && bz_guard_unfinished(file))
        unlink(file);
    if (fd >= 0)
        close(fd);
}

int bz_perfdb_open(bz_perfdb **out, const char *dir, const bz_perfdb_options *options, bz_error *err)
{
    *out = NULL;
    bz_perfdb *db = bz_alloc(1, sizeof *db);
    *db = (bz_perfdb){.read_only = options->read_only, .warn = options->warn, .user = options->user};
    db->dir = bz_copy(dir);
    char *file = bz_alloc(strlen(dir) + sizeof "/data.mdb", 1);
    sprintf(file, "%s/data.mdb", dir);

    int code = db->read_only ? 0 : make_dirs(dir);
    if (code) {
        bz_store_fail(db, "cannot be made", code, err);
        goto out;
    }
    if (!db->read_only)
        remove_unfinished(db, file);
    if (options->or_nothing && is_nothing(file)) {
        db->no_databases = true;
        free(file);
        *out = db;
        return 0;
    }
    if (db->read_only && is_nothing(file)) {
        bz_fail(err, BZ_FAILED,
                "%s: there is no database: 'benanza bound MODEL' or 'benanza db import FILE' makes one, --db or "
                "BENANZA_DB names "
                "another folder",
                dir);
        goto out;
    }
    if (bz_guard_file_system(dir, options->file_system, err) || bz_guard_file(file, 0, false, err) ||
        open_env(db, options->map_size ? options->map_size : FIRST_MAP, err) || guard_pages(db, file, err) ||
        bz_store_find_tables(db, err))
        goto out;
    free(file);
    *out = db;
    return 0;
out:
    if (!db->read_only)
        remove_unfinished(db, file);
    free(file);
    bz_perfdb_close(db);
    return -1;
}

void bz_perfdb_close(bz_perfdb *db)
{
    if (!db)
        return;
    drop_reader(db);
    if (db->env)
        mdb_env_close(db->env);
    bz_arena_free(&db->names);
    free(db->system);
    free(db->dir);
    free(db);
}

const char *bz_perfdb_dir(const bz_perfdb *db)
{
    return db->dir;
}

char *bz_perfdb_where(const char *option)
{
    const char *db = getenv("BENANZA_DB"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    const struct passwd *user = home && *home == '/' ? NULL : getpwuid(getuid());
    /* Debian has this place of users without a home, too: what is made there fails, and says so. */
    const char *own = user ? user->pw_dir : home && *home == '/' ? home : "/nonexistent";
    bz_buf b = {0};
    if (option || (db && *db))
        bz_buf_puts(&b, option ? option : db);
    else if (data && *data == '/') /* the XDG rules: a relative path there is to be ignored */
        bz_buf_printf(&b, "%s/benanza/perfdb", data);
    else
        bz_buf_printf(&b, "%s/.local/share/benanza/perfdb", own);
    return b.data;
}
