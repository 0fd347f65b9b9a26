/* Reading: one identity, one problem, or everything. All are walks over a prefix of the key. */
#include "perfdb/store.h"

#include <string.h>

const char *bz_store_problem(bz_perfdb *db, const void *record_key)
{
    MDB_val key = {HASH_SIZE, (char *)record_key + KEY_TYPE}, value;
    const char *problem;
    int code = mdb_get(db->reader, db->problems, &key, &value);
    if (code) {
        bz_store_warn(db, "%s: a record's problem is missing: it counts as absent", db->dir);
        return NULL;
    }
    bz_entry_state state = bz_problem_decode(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &problem);
    if (state == ENTRY_GOOD && bz_text_is_plain(problem, value.mv_size))
        return problem;
    bz_store_warn_entry(db, "problem", &key, state == ENTRY_GOOD ? ENTRY_DAMAGED : state);
    return NULL;
}

/* Decodes in place; false with a warning where that fails. A right checksum is no proof: a
 * stranger may have written it. */
static bool read_entry(const bz_perfdb *db, const MDB_val *key, const MDB_val *value, bz_record *r)
{
    bz_entry_state state = bz_record_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, r);
    if (state != ENTRY_GOOD) {
        bz_store_warn_entry(db, "record", key, state);
        return false;
    }
    bz_error err;
    if (!bz_record_check_content(r, &err))
        return true;
    bz_store_warn(db, "%s: a record counts as absent: %s", db->dir, err.text);
    return false;
}

/* A walk over all entries whose keys begin with `prefix`. With `newest`, only the first readable
 * one of each identity comes out. */
typedef struct {
    bz_perfdb *db;
    MDB_cursor *cursor;
    unsigned char prefix[KEY_RECORD];
    size_t prefix_len;
    bool newest, started;
    unsigned char last[KEY_IDENTITY];
    bool have_last;
} range;

static int range_next(range *g, MDB_val *key, MDB_val *value)
{
    for (;;) {
        int code;
        if (!g->started) {
            *key = (MDB_val){g->prefix_len, g->prefix};
            code = mdb_cursor_get(g->cursor, key, value, g->prefix_len ? MDB_SET_RANGE : MDB_FIRST);
        } else {
            code = mdb_cursor_get(g->cursor, key, value, MDB_NEXT);
        }
        g->started = true;
        if (code)
            return code;
        if (key->mv_size < g->prefix_len || memcmp(key->mv_data, g->prefix, g->prefix_len) != 0)
            return MDB_NOTFOUND;
        if (!g->newest || !g->have_last || key->mv_size != KEY_RECORD ||
            memcmp(key->mv_data, g->last, KEY_IDENTITY) != 0)
            return 0;
    }
}

/* The entry was good: older ones of the same identity are not wanted. */
static void range_taken(range *g, const MDB_val *key)
{
    memcpy(g->last, key->mv_data, KEY_IDENTITY);
    g->have_last = true;
}

typedef struct {
    bz_record **list;
    size_t *n, limit;
    bz_arena *arena;
} collection;

/* One copy of the value, then the strings of the record point into it. */
static bool collect(collection *c, const bz_perfdb *db, const MDB_val *key, const MDB_val *value,
                    const bz_record *names)
{
    BZ_ARENA_ROOM(c->arena, *c->list, *c->n);
    MDB_val copy = {value->mv_size, bz_arena_dup(c->arena, value->mv_data, value->mv_size)};
    bz_record *r = &(*c->list)[*c->n];
    r->system = names->system;
    r->problem = names->problem;
    if (!read_entry(db, key, &copy, r))
        return false;
    ++*c->n;
    return true;
}

/* All records of the problem, of one variant where that is given, up to the collection's limit. */
static int collect_range(bz_perfdb *db, const bz_system *system, const char *problem, const bz_variant *variant,
                         const bz_setting *setting, bool newest, collection *c, bz_error *err)
{
    const bz_record names = {.system = system->name, .problem = problem};
    bz_record_key key;
    size_t prefix_len = variant ? KEY_IDENTITY : KEY_PROBLEM;
    bz_key_problem(&key, system->id, problem);
    if (variant)
        bz_key_identity(&key, variant, setting);
    *c->n = 0;
    *c->list = NULL;
    if (bz_store_read(db, err))
        return -1;
    range g = {.db = db, .cursor = db->cursor, .prefix_len = prefix_len, .newest = newest};
    memcpy(g.prefix, key.byte, prefix_len);
    MDB_val k, v;
    int code = db->no_databases ? MDB_NOTFOUND : 0;
    while (!code && *c->n < c->limit && !(code = range_next(&g, &k, &v)))
        if (collect(c, db, &k, &v, &names))
            range_taken(&g, &k);
    bz_store_read_end(db);
    return code && code != MDB_NOTFOUND ? bz_store_fail(db, "cannot read", code, err) : 0;
}

int bz_perfdb_find(bz_perfdb *db, const bz_system *system, const char *problem, const bz_variant *variant,
                   const bz_setting *setting, bz_arena *arena, bz_record **record, bz_error *err)
{
    size_t n;
    collection c = {.list = record, .n = &n, .limit = 1, .arena = arena};
    int rc = collect_range(db, system, problem, variant, setting, true, &c, err);
    if (n == 0)
        *record = NULL;
    return rc;
}

int bz_perfdb_variants(bz_perfdb *db, const bz_system *system, const char *problem, bz_arena *arena,
                       bz_record **records, size_t *n, bz_error *err)
{
    collection c = {.list = records, .n = n, .limit = SIZE_MAX, .arena = arena};
    return collect_range(db, system, problem, NULL, NULL, true, &c, err);
}

int bz_perfdb_history(bz_perfdb *db, const bz_system *system, const char *problem, const bz_variant *variant,
                      const bz_setting *setting, bz_arena *arena, bz_record **records, size_t *n, bz_error *err)
{
    collection c = {.list = records, .n = n, .limit = SIZE_MAX, .arena = arena};
    return collect_range(db, system, problem, variant, setting, false, &c, err);
}

/* All records of one system; `more` turns false when `each` has had enough. */
static int scan_system(bz_perfdb *db, MDB_cursor *cursor, const bz_system *system, const bz_perfdb_filter *f,
                       int (*each)(void *user, const bz_record *record), void *user, bool *more)
{
    bz_record_key key;
    range g = {.db = db, .cursor = cursor, .newest = !f->history};
    bz_key_type(&key, system->id, f->dtype ? f->dtype : "");
    g.prefix_len = f->dtype ? KEY_TYPE : KEY_SYSTEM;
    memcpy(g.prefix, key.byte, g.prefix_len);
    unsigned char problem_key[KEY_PROBLEM] = {0};
    const char *problem = NULL;
    MDB_val k, v;
    int code;
    while (*more && !(code = range_next(&g, &k, &v))) {
        if (k.mv_size != KEY_RECORD) {
            bz_store_warn_entry(db, "record", &k, ENTRY_DAMAGED);
            continue;
        }
        if (memcmp(k.mv_data, problem_key, KEY_PROBLEM) != 0) {
            memcpy(problem_key, k.mv_data, KEY_PROBLEM);
            problem = bz_store_problem(db, k.mv_data);
        }
        bz_record r = {.system = system->name, .problem = problem};
        if (!problem || !read_entry(db, &k, &v, &r))
            continue;
        range_taken(&g, &k);
        *more = each(user, &r) == 0;
    }
    return *more && code != MDB_NOTFOUND ? code : 0;
}

int bz_perfdb_scan(bz_perfdb *db, const bz_perfdb_filter *filter, int (*each)(void *user, const bz_record *record),
                   void *user, bz_error *err)
{
    MDB_cursor *cursor;
    if (bz_store_read(db, err))
        return -1;
    int code = 0;
    if (!db->no_databases && !(code = mdb_cursor_open(db->reader, db->records, &cursor))) {
        bool more = true;
        for (size_t i = 0; i < db->n_systems && more && !code; i++)
            if (!filter->system || db->system[i] == filter->system)
                code = scan_system(db, cursor, db->system[i], filter, each, user, &more);
        mdb_cursor_close(cursor);
    }
    bz_store_read_end(db);
    return code ? bz_store_fail(db, "cannot read", code, err) : 0;
}
