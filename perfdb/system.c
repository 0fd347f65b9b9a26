/* Systems: names to ids and back. */
#include "base/choice.h"
#include "perfdb/store.h"

#include <string.h>

int bz_perfdb_systems(bz_perfdb *db, bz_arena *arena, const bz_system ***list, size_t *n, bz_error *err)
{
    if (bz_store_read(db, err))
        return -1;
    *n = db->n_systems;
    *list = bz_arena_dup(arena, db->system, db->n_systems * sizeof(void *));
    bz_store_read_end(db);
    return 0;
}

/* They are sorted, so the last that fits a bare slug is the newest. */
int bz_perfdb_system(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err)
{
    *system = NULL;
    if (bz_store_read(db, err))
        return -1;
    size_t len = strlen(name);
    bool bare = !strchr(name, '@');
    for (size_t i = 0; i < db->n_systems; i++) {
        const char *known = db->system[i]->name;
        if (!strncmp(known, name, len) && (!known[len] || (bare && known[len] == '@')))
            *system = db->system[i];
    }
    bz_store_read_end(db);
    return 0;
}

/* Both ways in which a system may be named: "v100@cudnn7.6.3" and "v100". */
static const char *meant(const bz_perfdb *db, const char *name, bz_arena *arena)
{
    const char **names = BZ_NEW(arena, const char *, 2 * db->n_systems);
    int n = 0;
    for (size_t i = 0; i < db->n_systems; i++) {
        const char *full = db->system[i]->name;
        names[n++] = full;
        names[n++] = bz_arena_strn(arena, full, strcspn(full, "@"));
    }
    return bz_choice_meant(name, names, n);
}

int bz_perfdb_known(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    *system = NULL;
    if (!name || bz_perfdb_system(db, name, system, err))
        return name ? -1 : 0;
    if (*system)
        return 0;
    const char *other = meant(db, name, &arena);
    bz_fail(err, BZ_BAD_INPUT, "%s: knows no system '%s': %s%s%s'benanza db ls' lists those it knows",
            bz_perfdb_dir(db), name, other ? "did you mean " : "", other ? other : "", other ? "? " : "");
    return -1;
}

const bz_system *bz_store_system_by_id(const bz_perfdb *db, uint32_t id)
{
    for (size_t i = 0; i < db->n_systems; i++)
        if (db->system[i]->id == id)
            return db->system[i];
    return NULL;
}

/* The entry of a name, if it can be read; else the first id that nobody has. */
static int find_system(bz_perfdb *db, MDB_txn *txn, const char *name, bz_system *found, bool *exists)
{
    MDB_cursor *c;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, db->systems, &c);
    uint32_t next = 1;
    *exists = false;
    if (code)
        return code;
    while (!(code = mdb_cursor_get(c, &key, &value, MDB_NEXT))) {
        bz_system s;
        if (bz_system_decode(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &s) != ENTRY_GOOD)
            continue;
        next = s.id >= next ? s.id + 1 : next;
        if (!strcmp(s.name, name)) {
            *found = s;
            *exists = true;
        }
    }
    mdb_cursor_close(c);
    if (code != MDB_NOTFOUND)
        return code;
    if (*exists)
        return 0;
    /* records of a system whose entry is damaged keep their ids to themselves */
    code = mdb_cursor_open(txn, db->records, &c);
    if (code)
        return code;
    if (!mdb_cursor_get(c, &key, &value, MDB_LAST) && key.mv_size == KEY_RECORD &&
        bz_key_system_of(key.mv_data) >= next)
        next = bz_key_system_of(key.mv_data) + 1;
    mdb_cursor_close(c);
    if (next >= LAST_SYSTEM)
        return MDB_CORRUPTED;
    *found = (bz_system){.id = next, .name = name, .details = "{}"};
    return 0;
}

static int store_system(bz_perfdb *db, MDB_txn *txn, const bz_system *s)
{
    BZ_SCOPED(bz_buf) entry = {0};
    bz_system_encode(s->name, s->id, s->details, s->date, &entry);
    MDB_val key = {strlen(s->name), (void *)s->name}, value = {entry.len, entry.data};
    return mdb_put(txn, db->systems, &key, &value, 0);
}

int bz_store_system_id(bz_perfdb *db, MDB_txn *txn, const char *name, uint32_t *id)
{
    bz_system s;
    bool exists;
    int code = find_system(db, txn, name, &s, &exists);
    if (code)
        return code;
    *id = s.id;
    return exists ? 0 : store_system(db, txn, &s);
}

/* Details win over none, then the newer ones; of the same date, the greater text: no order of arrival decides. */
static bool is_better(const bz_system *new, const bz_system *old)
{
    bool told = strcmp(new->details, "{}") != 0, known = strcmp(old->details, "{}") != 0;
    if (told != known)
        return told;
    return new->date != old->date ? new->date > old->date : strcmp(new->details, old->details) > 0;
}

static int put_system(bz_perfdb *db, MDB_txn *txn, void *arg)
{
    const bz_system *new = arg;
    bz_system old;
    bool exists;
    int code = find_system(db, txn, new->name, &old, &exists);
    if (code)
        return code;
    if (exists && !is_better(new, &old))
        return 0;
    bz_system merged = *new;
    merged.id = old.id;
    return store_system(db, txn, &merged);
}

const bz_system *bz_perfdb_guest(bz_perfdb *db, const char *name, const char *details, int64_t date)
{
    bz_system *guest = BZ_NEW(&db->names, bz_system, 1);
    *guest = (bz_system){.id = LAST_SYSTEM,
                         .name = bz_arena_str(&db->names, name),
                         .details = bz_arena_str(&db->names, details),
                         .date = date};
    return guest;
}

bool bz_perfdb_can_write(const bz_perfdb *db)
{
    return !db->read_only;
}

int bz_perfdb_put_system(bz_perfdb *db, const char *name, const char *details, int64_t date, bz_error *err)
{
    if (bz_system_check(name, err))
        return -1;
    if (*details != '{' || !bz_text_is_plain(details, 1 << 20))
        return bz_fail(err, BZ_BAD_INPUT, "the details of system %s are no JSON object on one line", name);
    bz_system s = {.name = name, .details = details, .date = date};
    return bz_store_write(db, put_system, &s, "cannot store a system", err);
}
