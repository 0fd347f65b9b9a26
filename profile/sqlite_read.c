/* Reads Nsight Systems' SQLite exports of all generations, and our own files, which follow them.
 * Tables and columns differ from version to version: what is there is asked for, what is missing is
 * told. The file is hostile: only plain tables are read, never views or virtual tables. */
#include "profile/sqlite_read.h"
#include "base/folder.h"
#include "profile/reader.h"
#include "profile/rocpd.h"
#include "profile/sqlite_facts.h"
#include "profile/sqlite_levels.h"
#include "profile/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_table(bz_sqlite_reader *r, const char *name)
{
    return bz_database_has(&r->db, name);
}

/* Nsight may append a version to a table's name. Returns the name that is there, or NULL. */
static const char *find_table(bz_sqlite_reader *r, const char *base, char out[96])
{
    static const char *const VERSIONS[] = {"", "_V2", "_V3", "_V4"};
    for (size_t i = sizeof VERSIONS / sizeof *VERSIONS; i-- > 0;) {
        snprintf(out, 96, "%s%s", base, VERSIONS[i]);
        if (is_table(r, out))
            return out;
    }
    return NULL;
}

static uint32_t text_of(bz_sqlite_reader *r, const char *v, int64_t n)
{
    return bz_string_ids_text(r->t, v, n);
}

uint32_t bz_sqlite_string(bz_sqlite_reader *r, int64_t id)
{
    return bz_string_ids_find(&r->strings, id);
}

uint32_t bz_sqlite_text(bz_sqlite_reader *r, sqlite3_stmt *s, int column)
{
    const char *v = (const char *)sqlite3_column_text(s, column);
    return text_of(r, v, sqlite3_column_bytes(s, column));
}

static uint32_t clamp32(int64_t v)
{
    return (uint64_t)v < BZ_NONE ? (uint32_t)v : v < 0 ? 0 : BZ_NONE - 1;
}

/* Which columns are read, and as what. */
typedef struct {
    const char *name[BZ_SCAN_COLUMNS];
    bz_want want[BZ_SCAN_COLUMNS];
    int n;
    const bz_field *field[BZ_SCAN_COLUMNS]; /* the first n_fields go into the trace's columns as they are */
    int n_fields;
    int launched[sizeof(bz_launched) / sizeof(uint32_t)], n_launched; /* those that tell how a kernel was launched */
    bool has_end;
    int lane_first; /* where the columns that name the lane begin; -1 none */
    int n_lane;
    int lane_part[4]; /* which of the names each of them is */
    int own_lane;     /* where benanzaLane stands; -1 none */
    int event_type;   /* NVTX: where eventType stands; -1 none */
    int text_id;      /* NVTX: where textId stands; -1 none */
} selection;

static int select_column(selection *sel, const char *name, bz_want want)
{
    sel->name[sel->n] = name;
    sel->want[sel->n] = want;
    return sel->n++;
}

bool bz_sqlite_has(bz_sqlite_reader *r, const char *table, const char *column)
{
    return bz_database_column(&r->db, table, column) >= 0;
}

/* The columns that tell the thread or stream. Of a stream the file may lack some: the others still tell it from the rest. */
static void select_lane(bz_sqlite_reader *r, const bz_mapping *map, const char *table, selection *sel)
{
    static const char *const DEVICE[] = {"deviceId", "contextId", "streamId", "globalPid"};
    if (r->own && bz_sqlite_has(r, table, "benanzaLane")) {
        sel->own_lane = sel->lane_first = select_column(sel, "benanzaLane", BZ_WANT_NUMBER);
    } else if (map->device) {
        int first = sel->n;
        for (int i = 0; i < 4; i++)
            if (bz_sqlite_has(r, table, DEVICE[i]))
                sel->lane_part[select_column(sel, DEVICE[i], BZ_WANT_NUMBER) - first] = i;
            else
                bz_trace_cover(r->t, r->source, BZ_COVERAGE_MISSING,
                               "table %s has no column %s: what only it tells apart counts as one", table, DEVICE[i]);
        sel->lane_first = sel->n > first ? first : -1;
    } else if (bz_sqlite_has(r, table, "globalTid")) {
        sel->lane_first = select_column(sel, "globalTid", BZ_WANT_NUMBER);
    }
}

/* False, and a word in the coverage, where a column that is needed is missing. */
static bool select_columns(bz_sqlite_reader *r, const bz_mapping *map, const char *table, selection *sel)
{
    static const bz_want WANT[] = {[BZ_CELL_INT64] = BZ_WANT_NUMBER,
                                   [BZ_CELL_INT32] = BZ_WANT_NUMBER,
                                   [BZ_CELL_STRING_ID] = BZ_WANT_EITHER,
                                   [BZ_CELL_TEXT] = BZ_WANT_TEXT,
                                   [BZ_CELL_LAUNCHED] = BZ_WANT_NUMBER};
    *sel = (selection){.lane_first = -1, .own_lane = -1, .event_type = -1, .text_id = -1};
    for (const bz_field *c = map->columns; c->name; c++) {
        if (c->detail && r->t->summary)
            continue;
        const char *name = bz_sqlite_has(r, table, c->name)            ? c->name
                           : c->old && bz_sqlite_has(r, table, c->old) ? c->old
                                                                       : NULL;
        if (name) {
            sel->field[sel->n_fields++] = c;
            int at = select_column(sel, name, WANT[c->cell]);
            if (c->cell == BZ_CELL_LAUNCHED)
                sel->launched[sel->n_launched++] = at;
            else
                sel->has_end |= c->offset == offsetof(bz_events, end);
        } else if (c->needed) {
            bz_trace_cover(r->t, r->source, BZ_COVERAGE_MISSING, "table %s has no column %s: it was left out", table,
                           c->name);
            return false;
        }
    }
    int before = sel->n;
    select_lane(r, map, table, sel);
    sel->n_lane = sel->n - before;
    if (map->kind == BZ_EVENT_RANGE && bz_sqlite_has(r, table, "eventType"))
        sel->event_type = select_column(sel, "eventType", BZ_WANT_NUMBER);
    if (map->kind == BZ_EVENT_RANGE && bz_sqlite_has(r, table, "textId"))
        sel->text_id = select_column(sel, "textId", BZ_WANT_NUMBER);
    return true;
}

static uint32_t find_lane(bz_sqlite_reader *r, const bz_mapping *map, const selection *sel, const bz_values *v, int row)
{
    int64_t id[4] = {0};
    for (int i = 0; i < sel->n_lane; i++)
        id[sel->lane_part[i]] = v[sel->lane_first + i].number[row];
    if (sel->own_lane >= 0 && id[0] >= 0 && (uint64_t)id[0] < r->n_lanes)
        return r->lane_of[id[0]];
    if (sel->own_lane >= 0)
        memset(id, 0, sizeof id);
    return map->device ? bz_trace_stream(r->t, r->source, id[3] >> 24 & 0xffffff, id[0], id[1], id[2])
                       : bz_trace_thread(r->t, r->source, id[0] >> 24 & 0xffffff, id[0] & 0xffffff);
}

static void store_same(uint32_t *to, uint32_t value, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = value;
}

/* What all of them have in one bit or another tells whether each of them fits: a pass that takes several at once. */
static void store_short(uint32_t *to, const int64_t *number, int n)
{
    uint64_t any = 0;
    for (int k = 0; k < n; k++)
        any |= (uint64_t)number[k];
    bool fits = any <= INT32_MAX;
    for (int k = 0; k < n; k++)
        to[k] = fits ? (uint32_t)number[k] : clamp32(number[k]);
}

/* Where a row differs from the one before. */
static void add_differences(uint64_t differ[BZ_SCAN_BATCH], const int64_t *number, int n)
{
    for (int k = 1; k < n; k++)
        differ[k] |= (uint64_t)(number[k] ^ number[k - 1]);
}

/* Neighbours are mostly launched as one another. */
static void store_launched(bz_sqlite_reader *r, const selection *sel, const bz_values *v, int row, int n, uint32_t *to)
{
    bz_launched launched = {0};
    uint64_t differ[BZ_SCAN_BATCH] = {1};
    bool same = true;
    for (int c = 0; c < sel->n_launched; c++)
        if (!v[sel->launched[c]].same) {
            add_differences(differ, v[sel->launched[c]].number + row, n);
            same = false;
        }
    for (int k = 0; k < (same ? 1 : n); k++) {
        for (int c = 0; c < sel->n_launched && differ[k]; c++) {
            uint32_t told = clamp32(v[sel->launched[c]].number[row + k]);
            memcpy((char *)&launched + sel->field[sel->launched[c]]->offset, &told, sizeof told);
        }
        to[k] = differ[k] ? bz_trace_launched(r->t, &launched) : to[k - 1];
    }
    if (same)
        store_same(to, to[0], n);
}

static void store_strings(bz_sqlite_reader *r, uint32_t *to, const int64_t *number, int n, bool same)
{
    const uint32_t *ours = r->strings.ours;
    const uint64_t span = r->strings.span, first = (uint64_t)r->strings.first;
    for (int k = 0; k < n; k++) {
        uint64_t at = (uint64_t)number[k] - first;
        uint32_t name = at < span ? ours[at] : BZ_NONE;
        to[k] = name != BZ_NONE ? name : bz_string_ids_search(&r->strings, number[k]);
        if (same && name != BZ_NONE) {
            store_same(to, name, n);
            return;
        }
    }
}

/* Puts a property of n rows where they have it; it is zero before. */
static void store(bz_sqlite_reader *r, bz_events *e, size_t i, int n, const bz_field *c, const bz_values *v, int row)
{
    void *column = *(void **)(void *)((char *)e + c->offset);
    int64_t *wide = (int64_t *)column + i;
    uint32_t *to = (uint32_t *)column + i;
    const int64_t *number = v->number + row;
    switch (c->cell) {
    case BZ_CELL_INT64:
        memcpy(wide, number, (v->zero ? 0 : (size_t)n) * sizeof *wide);
        break;
    case BZ_CELL_INT32:
        if (v->same && (uint64_t)number[0] < BZ_NONE) {
            if (number[0])
                store_same(to, (uint32_t)number[0], n);
        } else {
            store_short(to, number, n);
        }
        break;
    case BZ_CELL_STRING_ID: /* some generations wrote the text itself */
    case BZ_CELL_TEXT:
        if (c->cell == BZ_CELL_STRING_ID && v->type != BZ_VALUE_TEXT)
            store_strings(r, to, number, n, v->same);
        else
            for (int k = 0; k < n; k++)
                to[k] = text_of(r, v->text[row + k], number[k]);
        break;
    case BZ_CELL_LAUNCHED: /* all at once: store_launched */
        break;
    }
}

/* NVTX: 34 a mark, 59 push/pop, 60 start/end; the rest declares categories and domains. */
static bool is_range(int64_t event_type)
{
    return event_type == 34 || event_type == 59 || event_type == 60 || event_type == 70 || event_type == 71;
}

/* What the columns alone do not tell. */
static void complete(bz_sqlite_reader *r, const bz_mapping *map, const selection *sel, const bz_values *v, int row,
                     size_t i)
{
    bz_events *e = &r->t->event[map->kind];
    if (sel->text_id >= 0 && !e->name[i] && v[sel->text_id].type == BZ_VALUE_NUMBER)
        e->name[i] = bz_sqlite_string(r, v[sel->text_id].number[row]);
    if (map->library) {
        e->library[i] = map->library;
        e->flags[i] = bz_call_executes(bz_string(r->t, e->name[i])) ? BZ_CALL_EXECUTES : 0;
    }
    if (map->kind == BZ_EVENT_CALL && r->own)
        e->stack[i] = e->stack[i] < r->n_stacks ? r->stack_of[e->stack[i]] : 0;
    if (map->kind == BZ_EVENT_KERNEL && !e->name[i] && !map->columns[3].needed) { /* a whole graph */
        char text[40];
        snprintf(text, sizeof text, "CUDA graph %u", e->graph[i]);
        e->name[i] = e->short_name[i] = bz_trace_text(r->t, text);
    }
}

/* How many rows from this one on are of one lane and one type. */
static int run_of(const selection *sel, const bz_values *v, int row, int rows)
{
    int end = rows;
    for (int i = sel->lane_first < 0 ? sel->n_fields : sel->lane_first; i < sel->n; i++) {
        const int64_t *number = v[i].number;
        int64_t differ = 0;
        for (int k = row + 1; k < end && !v[i].same && i != sel->text_id; k++) /* mostly none does */
            differ |= number[k] ^ number[row];
        for (int k = row + 1; k < end && differ; k++)
            if (number[k] != number[row])
                end = k;
    }
    return end - row;
}

static void add_run(bz_sqlite_reader *r, const bz_mapping *map, const selection *sel, const bz_values *v, int row,
                    int n)
{
    bz_events *e = &r->t->event[map->kind];
    bool ends = sel->has_end && v[1].type != BZ_VALUE_NULL; /* start and end are the first two columns */
    if (v[0].type == BZ_VALUE_NULL) {                       /* SQLite keeps NaN as NULL */
        r->unnamed_time += n;
        return;
    }
    r->endless += sel->has_end && !ends ? n : 0;
    for (int k = row; k < row + n; k++)
        r->negative += v[ends].number[k] < v[0].number[k];
    size_t i =
        bz_trace_add_rows(r->t, map->kind, v[0].number + row, v[ends].number + row, n, find_lane(r, map, sel, v, row));
    for (int c = 1 + sel->has_end; c < sel->n_fields; c++)
        if (sel->field[c]->cell != BZ_CELL_LAUNCHED)
            store(r, e, i, n, sel->field[c], &v[c], row);
    if (sel->n_launched)
        store_launched(r, sel, v, row, n, e->launched + i);
    bool nameless = map->kind == BZ_EVENT_KERNEL && !map->columns[3].needed; /* graphs, by their number */
    for (int k = 0; k < n && (sel->text_id >= 0 || map->library || map->kind == BZ_EVENT_CALL || nameless); k++)
        complete(r, map, sel, v, row + k, i + (size_t)k);
}

static void read_table(bz_sqlite_reader *r, const bz_mapping *map)
{
    char name[96];
    selection sel;
    bz_scan s;
    const char *table = find_table(r, map->table, name);
    if (!table || !select_columns(r, map, table, &sel))
        return;
    if (!bz_scan_begin(&s, &r->db, table, sel.name, sel.want, sel.n)) {
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN, "table %s cannot be read: %s", table,
                       sqlite3_errmsg(r->db.sql));
        return;
    }
    bz_trace_expect(r->t, map->kind, s.rows);
    for (int rows; (rows = bz_scan_next(&s)) && r->t->event[map->kind].n + (size_t)rows < BZ_NONE;)
        for (int row = 0, n; row < rows; row += n) {
            n = run_of(&sel, s.value, row, rows);
            if (sel.event_type < 0 || is_range(s.value[sel.event_type].number[row]))
                add_run(r, map, &sel, s.value, row, n);
        }
    bz_table_damaged(r->t, r->source, table, bz_scan_end(&s));
}

static void read_thread_names(bz_sqlite_reader *r)
{
    sqlite3_stmt *s =
        r->own ? NULL : bz_database_query(&r->db, "ThreadNames", "SELECT globalTid, nameId FROM ThreadNames");
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        uint32_t lane = bz_trace_known_thread(r->t, r->source, id >> 24 & 0xffffff, id & 0xffffff);
        if (lane != BZ_NONE)
            r->t->lane[lane].name = bz_sqlite_string(r, sqlite3_column_int64(s, 1));
    }
    bz_table_end(r->t, r->source, "ThreadNames", s, rc);
}

static void cover(bz_sqlite_reader *r, const size_t *before)
{
    bz_trace *t = r->t;
    char name[96];
    size_t kernels = t->event[BZ_EVENT_KERNEL].n - before[BZ_EVENT_KERNEL],
           apis = t->event[BZ_EVENT_API].n - before[BZ_EVENT_API];
    if (!r->own) {
        if (!kernels && apis)
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "no kernel was recorded: device-busy time, algorithms and kernel lists are unknown; library "
                           "and runtime calls, copies and synchronizations can be analyzed. Did the program run on the "
                           "GPU at all? Then profile again with nsys --trace=cuda");
        if (!apis && kernels)
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "no runtime call was recorded: kernels cannot be tied to the calls that launched them");
        if (!find_table(r, "CUDNN_EVENTS", name) && kernels)
            bz_trace_cover(
                t, r->source, BZ_COVERAGE_MISSING,
                "no cuDNN call was recorded: profile with nsys --trace=cuda,cudnn,cublas, or add the cuDNN log");
        if (find_table(r, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", name))
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "CUDA graphs were recorded as one row each: the kernels inside are not told apart; profile "
                           "with nsys --cuda-graph-trace=node");
    }
    if (r->strings.orphans)
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN, "%lld names are not in StringIds and stay empty",
                       (long long)r->strings.orphans);
    bz_cover_times(t, r->source, r->unnamed_time, r->negative);
    if (r->endless)
        bz_trace_cover(t, r->source, BZ_COVERAGE_NOTE, "%lld ranges have no end and count as marks",
                       (long long)r->endless);
}

static void read_all(bz_sqlite_reader *r)
{
    size_t before[BZ_EVENT_KINDS];
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        before[k] = r->t->event[k].n;
    if (!is_table(r, "StringIds") && !is_table(r, "StringTable")) /* nvprof's */
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "table StringIds is missing: names of kernels and calls are unknown");
    else
        bz_table_damaged(r->t, r->source, "StringIds", bz_string_ids_read(&r->strings, r->t, &r->db));
    bz_sqlite_own_lanes(r);
    bz_sqlite_own_stacks(r);
    for (int i = 0; i < BZ_N_TABLES; i++)
        if (!r->own || BZ_TABLES[i].kind != BZ_EVENT_CALL || !BZ_TABLES[i].library) /* ours are all in BENANZA_CALLS */
            read_table(r, &BZ_TABLES[i]);
    bz_facts_read(r->t, r->source, &r->db);
    read_thread_names(r);
    if (r->own) {
        bz_sqlite_own_iterations(r);
        bz_levels_read(r->t, r->source, &r->db);
    }
    cover(r, before);
    bz_trace_source_format(r->t, r->source, r->own ? "benanza trace" : "Nsight Systems");
}

static bool sqlite_matches(const char *head, size_t n)
{
    return n >= 16 && !memcmp(head, "SQLite format 3", 16);
}

/* SQLite wants a file it can seek in, and of the size that it says: what is compressed or cut off is copied to a temporary
 * one, where empty pages stand for those that are missing. */
static int unpack(bz_stream *in, uint64_t claimed, bz_buf *path, bz_error *err)
{
    char name[BZ_FOLDER_MAX];
    int fd = bz_folder_file(name, err);
    if (fd < 0)
        return -1;
    bz_buf_puts(path, name);
    bool bad = false;
    while (in->len && !bad) {
        for (size_t done = 0; done < in->len && !bad;) {
            ssize_t n = write(fd, in->data + done, in->len - done);
            bad = n <= 0;
            done += bad ? 0 : (size_t)n;
        }
        bz_stream_advance(in, in->len, 1);
    }
    if (!bad && claimed > (uint64_t)in->passed)
        (void)ftruncate(fd, (off_t)claimed); /* where that fails, the file cannot be read, and SQLite says so */
    close(fd);
    if (bz_stream_check(in, err))
        return -1;
    return bad ? bz_fail(err, BZ_FAILED, "%s: no room to decompress it: set TMPDIR to a folder that has some", in->path)
               : 0;
}

static int64_t size_of(const char *path, const char *suffix)
{
    bz_buf name = {0};
    struct stat st;
    bz_buf_printf(&name, "%s%s", path, suffix);
    int64_t size = stat(bz_buf_text(&name), &st) ? 0 : (int64_t)st.st_size;
    bz_buf_free(&name);
    return size;
}

/* What is not in the file although it should be. */
static void cover_file(bz_sqlite_reader *r, const bz_stream *in, uint64_t claimed, int64_t size)
{
    if (claimed > (uint64_t)size) {
        r->t->source[r->source].truncated = true;
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "the file is cut off: %lld of %lld bytes are there; tables that lie in them are read",
                       (long long)size, (long long)claimed);
    }
    if (!in->memory && size_of(in->path, "-wal") > 0)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "a write-ahead log lies beside the file, and what is in it was not read: run PRAGMA "
                       "wal_checkpoint in sqlite3 first");
    if (!in->memory && size_of(in->path, "-journal") > 0) {
        r->t->source[r->source].truncated = true;
        bz_trace_cover(
            r->t, r->source, BZ_COVERAGE_BROKEN,
            "a journal lies beside the file: what wrote it was interrupted or still writes. Export it again");
    }
}

/* A whole database without a table that is read is of another tool. */
static int check_tables(bz_sqlite_reader *r, const char *path, bz_error *err)
{
    char name[96];
    bool any = is_table(r, "StringIds") || r->db.why || r->t->source[r->source].truncated;
    for (int i = 0; i < BZ_N_TABLES && !any; i++)
        any = find_table(r, BZ_TABLES[i].table, name);
    if (any)
        return 0;
    sqlite3_stmt *s = bz_database_prepare(&r->db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT "
                                                  "LIKE 'sqlite%' ORDER BY name NOT LIKE 'rocpd_op', 1 DESC");
    bool some = bz_database_step(&r->db, s);
    snprintf(name, sizeof name, "%s", some ? (const char *)sqlite3_column_text(s, 0) : "");
    sqlite3_finalize(s);
    if (!some)
        return bz_fail(
            err, BZ_BAD_INPUT,
            "%s: is a database without tables: was the export that should fill it interrupted? Export it again", path);
    if (!strcmp(name, "rocpd_op"))
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: is a database of rocmProfileData (RPD), which benanza does not read: give what its "
                       "rpd2tracing.py writes, or record with rocprofv3",
                       path);
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s: is a database of another program, with a table %s and none of Nsight Systems': give what nsys "
                   "export --type=sqlite writes",
                   path, name);
}

enum { HEADER = 100 }; /* bytes, which every database has */

static int unread(const bz_database *db, const char *path, bz_error *err)
{
    const char *why = bz_database_unread(db);
    return why ? bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", path, why) : 0;
}

static int sqlite_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    bz_sqlite_reader r = {.t = t, .source = source};
    int rc = -1;
    bz_buf temporary = {0};
    uint64_t claimed = bz_pages_claimed(in->data, in->len);
    bool file = !in->compressed && !in->memory;
    int64_t size = file ? size_of(in->path, "") : 0;
    if ((!file || claimed > (uint64_t)size) && unpack(in, claimed, &temporary, err))
        goto out;
    cover_file(&r, in, claimed, temporary.len ? in->passed : size);
    r.t->source[source].truncated |= in->passed + (int64_t)in->len < HEADER;
    if (!bz_database_open(&r.db, temporary.len ? bz_buf_text(&temporary) : in->path)) {
        if (!unread(&r.db, in->path, err))
            bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s%s; record or export it again", in->path,
                    r.t->source[source].truncated ? "the file is cut off before the list of its tables: " : "",
                    sqlite3_errmsg(r.db.sql));
        goto out;
    }
    if (!bz_rocpd_read(t, source, &r.db)) {
        if (check_tables(&r, in->path, err))
            goto out;
        read_all(&r);
    }
    if (unread(&r.db, in->path, err))
        goto out;
    if (r.db.why)
        bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s; record or export it again", in->path,
                sqlite3_errstr(r.db.why));
    else
        rc = 0;
out:
    bz_database_close(&r.db);
    if (temporary.len)
        bz_folder_remove(temporary.data);
    bz_buf_free(&temporary);
    bz_string_ids_free(&r.strings);
    free(r.lane_of);
    free(r.stack_of);
    return rc;
}

const bz_reader bz_reader_sqlite = {"Nsight Systems", false, sqlite_matches, sqlite_read};
