/* Writing: records in one transaction, and throwing old ones away. */
#include "base/sort.h"
#include "perfdb/store.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    bz_record_key key;
    const bz_record *record;
} keyed;

typedef struct {
    keyed *list;
    size_t n;
    bz_perfdb_count count;
    bz_buf entry;
} put_job;

/* System numbers are only known inside the transaction: the first part of the key comes there. */
static int by_system_and_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    int order = x->record->system == y->record->system ? 0 : strcmp(x->record->system, y->record->system);
    return order ? order : memcmp(x->key.byte, y->key.byte, KEY_RECORD);
}

static int put_problem(bz_perfdb *db, MDB_txn *txn, const keyed *k, bz_buf *entry)
{
    MDB_val key = {HASH_SIZE, (unsigned char *)k->key.byte + KEY_TYPE}, value;
    const char *text;
    int code = mdb_get(txn, db->problems, &key, &value);
    if (!code && bz_problem_decode(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &text) == ENTRY_GOOD)
        return 0;
    if (code && code != MDB_NOTFOUND)
        return code;
    bz_problem_encode(k->record->problem, entry);
    value = (MDB_val){entry->len, entry->data};
    return mdb_put(txn, db->problems, &key, &value, 0);
}

/* What is there under this key stays if it is readable and preferred. */
static int put_record(bz_perfdb *db, MDB_txn *txn, put_job *job, const keyed *k)
{
    bz_record_encode(&k->key, k->record, &job->entry);
    MDB_val key = {KEY_RECORD, (unsigned char *)k->key.byte}, value = {job->entry.len, job->entry.data};
    int code = mdb_put(txn, db->records, &key, &value, MDB_NOOVERWRITE);
    if (code != MDB_KEYEXIST) {
        job->count.added += !code;
        return code;
    }
    bz_record old = {0};
    bz_entry_state state = bz_record_decode(k->key.byte, KEY_RECORD, value.mv_data, value.mv_size, &old);
    if (state == ENTRY_NEWER || (state == ENTRY_GOOD && bz_record_prefer(&old, k->record) >= 0)) {
        job->count.kept++;
        return 0;
    }
    value = (MDB_val){job->entry.len, job->entry.data};
    job->count.replaced++;
    return mdb_put(txn, db->records, &key, &value, 0);
}

static int put_all(bz_perfdb *db, MDB_txn *txn, void *arg)
{
    put_job *job = arg;
    const char *system = NULL;
    uint32_t id = 0;
    job->count = (bz_perfdb_count){0};
    for (size_t i = 0; i < job->n; i++) {
        keyed *k = &job->list[i];
        int code = 0;
        if (!system || (system != k->record->system && strcmp(system, k->record->system) != 0))
            code = bz_store_system_id(db, txn, system = k->record->system, &id);
        for (int b = 0; b < KEY_SYSTEM; b++)
            k->key.byte[b] = (unsigned char)(id >> 8 * (KEY_SYSTEM - 1 - b));
        if (!code && (i == 0 || memcmp(k->key.byte, k[-1].key.byte, KEY_PROBLEM) != 0))
            code = put_problem(db, txn, k, &job->entry);
        if (!code)
            code = put_record(db, txn, job, k);
        if (code)
            return code;
    }
    return 0;
}

int bz_perfdb_put(bz_perfdb *db, const bz_record *records, size_t n, bz_perfdb_count *count, bz_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (bz_record_check(&records[i], err))
            return -1;
    put_job job = {.list = bz_alloc(n, sizeof *job.list), .n = n};
    for (size_t i = 0; i < n; i++) {
        keyed *k = &job.list[i];
        k->record = &records[i];
        bz_key_problem(&k->key, 0, records[i].problem);
        bz_key_identity(&k->key, &records[i].variant, &records[i].setting);
        bz_key_date(&k->key, records[i].date);
    }
    /* in the order of the keys, LMDB fills page after page */
    BZ_QSORT(job.list, n, by_system_and_key);
    int rc = n ? bz_store_write(db, put_all, &job, "cannot store records", err) : 0;
    if (!rc && count) {
        count->added += job.count.added;
        count->replaced += job.count.replaced;
        count->kept += job.count.kept;
    }
    bz_buf_free(&job.entry);
    free(job.list);
    return rc;
}

/* Garbage */

typedef struct {
    size_t keep, deleted;
} gc_job;

static int delete_old(bz_perfdb *db, MDB_txn *txn, gc_job *job)
{
    MDB_cursor *c;
    MDB_val key, value;
    unsigned char last[KEY_IDENTITY] = {0};
    size_t seen = 0;
    int code = mdb_cursor_open(txn, db->records, &c);
    if (code)
        return code;
    for (code = mdb_cursor_get(c, &key, &value, MDB_FIRST); !code; code = mdb_cursor_get(c, &key, &value, MDB_NEXT)) {
        if (key.mv_size != KEY_RECORD)
            continue;
        if (memcmp(key.mv_data, last, KEY_IDENTITY) != 0) {
            memcpy(last, key.mv_data, KEY_IDENTITY);
            seen = 0;
        }
        bz_record r = {0};
        bz_entry_state state = bz_record_decode(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &r);
        /* an unreadable entry takes no place among those kept; a newer benanza's is not ours to delete */
        if (state == ENTRY_NEWER || (state == ENTRY_GOOD && seen++ < job->keep))
            continue;
        if ((code = mdb_cursor_del(c, 0)))
            break;
        job->deleted++;
    }
    mdb_cursor_close(c);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, HASH_SIZE);
}

/* The problem hashes of all records, sorted. */
static int used_problems(bz_perfdb *db, MDB_txn *txn, bz_buf *used)
{
    MDB_cursor *c;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, db->records, &c);
    if (code)
        return code;
    while (!(code = mdb_cursor_get(c, &key, &value, MDB_NEXT))) {
        const char *hash = (const char *)key.mv_data + KEY_TYPE;
        if (key.mv_size == KEY_RECORD &&
            (!used->len || memcmp(used->data + used->len - HASH_SIZE, hash, HASH_SIZE) != 0))
            bz_buf_put(used, hash, HASH_SIZE);
    }
    mdb_cursor_close(c);
    if (used->len)
        qsort(used->data, used->len / HASH_SIZE, HASH_SIZE, by_hash);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int delete_unused_problems(bz_perfdb *db, MDB_txn *txn)
{
    MDB_cursor *c = NULL;
    MDB_val key, value;
    BZ_SCOPED(bz_buf) used = {0};
    int code = used_problems(db, txn, &used);
    if (!code)
        code = mdb_cursor_open(txn, db->problems, &c);
    if (!code)
        code = mdb_cursor_get(c, &key, &value, MDB_FIRST);
    for (; !code; code = mdb_cursor_get(c, &key, &value, MDB_NEXT)) {
        bool wanted = used.len && key.mv_size == HASH_SIZE &&
                      bsearch(key.mv_data, used.data, used.len / HASH_SIZE, HASH_SIZE, by_hash);
        if (!wanted && (code = mdb_cursor_del(c, 0)))
            break;
    }
    if (c)
        mdb_cursor_close(c);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int gc(bz_perfdb *db, MDB_txn *txn, void *arg)
{
    gc_job *job = arg;
    job->deleted = 0;
    int code = delete_old(db, txn, job);
    return code ? code : delete_unused_problems(db, txn);
}

int bz_perfdb_gc(bz_perfdb *db, size_t keep, size_t *deleted, bz_error *err)
{
    gc_job job = {.keep = keep};
    if (keep == 0)
        return bz_fail(err, BZ_USAGE, "at least one measurement of each identity must be kept");
    int rc = bz_store_write(db, gc, &job, "cannot delete", err);
    if (!rc && deleted)
        *deleted = job.deleted;
    return rc;
}
