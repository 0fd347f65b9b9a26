/* store: the handle and its transactions. Private to perfdb. */
#ifndef BZ_PERFDB_STORE_H
#define BZ_PERFDB_STORE_H

#include "perfdb/entry.h"

#include <lmdb.h>

#ifndef BENANZA_SCHEMA /* tests build a program of another one */
#define BENANZA_SCHEMA 1
#endif
enum { SCHEMA_VERSION = BENANZA_SCHEMA, N_DATABASES = 4 };

struct bz_perfdb {
    MDB_env *env;
    MDB_dbi info, systems, problems, records;
    char *dir;
    bool read_only, no_databases; /* no_databases: opened read-only before anything was ever stored */
    void (*warn)(void *user, const char *text);
    void *user;

    MDB_txn *reader; /* kept between reads, reset while idle */
    MDB_cursor *cursor;
    int reading; /* depth */

    /* All systems, sorted; read again when somebody has written. */
    bz_arena names;
    bz_system **system;
    size_t n_systems;
    size_t systems_seen; /* transaction id */
};

/* All reads between these two see one moment. They nest. */
int bz_store_read(bz_perfdb *db, bz_error *err);
void bz_store_read_end(bz_perfdb *db);

/* Runs `body` in a write transaction and commits it. `body` returns an LMDB code; when the map is
 * full, it grows and `body` starts again from the beginning. `doing` is for the error's text. */
int bz_store_write(bz_perfdb *db, int (*body)(bz_perfdb *db, MDB_txn *txn, void *arg), void *arg, const char *doing,
                   bz_error *err);

/* An LMDB code as an error; returns -1. */
int bz_store_fail(const bz_perfdb *db, const char *doing, int code, bz_error *err);

void bz_store_warn(const bz_perfdb *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Warns that an entry of `what` cannot be read. */
void bz_store_warn_entry(const bz_perfdb *db, const char *what, const MDB_val *key, bz_entry_state state);

/* Opens the tables. Refuses another schema, and another program's database. */
int bz_store_find_tables(bz_perfdb *db, bz_error *err);

/* LMDB's users hold a shared lock on the first byte of lock.mdb as long as they have the environment open, and take it before
 * they look at the data file. Whoever gets the exclusive lock is alone, and stays so until *fd is closed. */
int bz_store_lock_alone(const char *dir, const char *path, int *fd, bz_error *err);

const bz_system *bz_store_system_by_id(const bz_perfdb *db, uint32_t id); /* NULL where unknown */

/* The id of a system inside a write transaction; adds the system where it is new. */
int bz_store_system_id(bz_perfdb *db, MDB_txn *txn, const char *name, uint32_t *id);

/* The text of the problem that a record's key names, or NULL with a warning. Valid while reading. */
const char *bz_store_problem(bz_perfdb *db, const void *record_key);

#endif
