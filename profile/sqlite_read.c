/* Reads Nsight Systems' SQLite exports of all generations, and our own files, which follow them.
 * Tables and columns differ from version to version: what is there is asked for, what is missing is
 * told. The file is hostile: only plain tables are read, never views or virtual tables. */
#include "profile/columns.h"
#include "profile/reader.h"
#include "profile/tables.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS_MAX = 32, NAME_MAX_LENGTH = 1 << 16 };

typedef struct {
    bz_trace *t;
    uint32_t source;
    sqlite3 *db;
    int64_t *file_ids; /* StringIds: sorted; our number is in ids[] */
    uint32_t *ids;
    size_t n_ids;
    bool ids_dense;
    uint32_t *lane_of; /* BENANZA_LANES: our lane by the file's number */
    size_t n_lanes;
    uint32_t *stack_of; /* BENANZA_STACKS */
    size_t n_stacks;
    bool own;        /* written by bz_trace_save */
    int64_t orphans; /* names that StringIds does not have */
    int64_t endless;
} reader;

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        return NULL;
    return s;
}

static bool is_table(reader *r, const char *name)
{
    sqlite3_stmt *s = prepare(r->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0");
    if (!s)
        return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    bool found = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

/* Nsight may append a version to a table's name. Returns the name that is there, or NULL. */
static const char *find_table(reader *r, const char *base, char out[96])
{
    static const char *const VERSIONS[] = {"", "_V2", "_V3", "_V4"};
    for (size_t i = sizeof VERSIONS / sizeof *VERSIONS; i-- > 0;) {
        snprintf(out, 96, "%s%s", base, VERSIONS[i]);
        if (is_table(r, out))
            return out;
    }
    return NULL;
}

static bool has_column(reader *r, const char *table, const char *column)
{
    char sql[160];
    snprintf(sql, sizeof sql, "PRAGMA table_info(\"%s\")", table);
    sqlite3_stmt *s = prepare(r->db, sql);
    bool found = false;
    while (s && !found && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 1);
        found = name && !strcmp(name, column);
    }
    sqlite3_finalize(s);
    return found;
}

static uint32_t cell_text(reader *r, sqlite3_stmt *s, int column)
{
    const char *v = (const char *)sqlite3_column_text(s, column);
    int n = sqlite3_column_bytes(s, column);
    return v ? bz_trace_intern(r->t, v, strnlen(v, (size_t)(n < NAME_MAX_LENGTH ? n : NAME_MAX_LENGTH))) : 0;
}

static uint32_t clamp32(int64_t v)
{
    return v < 0 ? 0 : v >= BZ_NONE ? BZ_NONE - 1 : (uint32_t)v;
}

/* Says where reading a table stopped, if it did not reach its end. */
static void finalize(reader *r, sqlite3_stmt *s, int rc, const char *table)
{
    if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        r->t->source[r->source].truncated = true;
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "table %s is damaged (%s): rows behind the damage are missing", table, sqlite3_errmsg(r->db));
    }
    sqlite3_finalize(s);
}

/* ---- strings ---- */

static void read_strings(reader *r)
{
    size_t cap = 0;
    sqlite3_stmt *s = is_table(r, "StringIds") ? prepare(r->db, "SELECT id, value FROM StringIds ORDER BY id") : NULL;
    if (!s) {
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "table StringIds is missing: names of kernels and calls are unknown");
        return;
    }
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (r->n_ids == cap) {
            cap = cap ? cap * 2 : 256;
            r->file_ids = bz_realloc(r->file_ids, cap, sizeof *r->file_ids);
            r->ids = bz_realloc(r->ids, cap, sizeof *r->ids);
        }
        r->file_ids[r->n_ids] = sqlite3_column_int64(s, 0);
        r->ids[r->n_ids++] = cell_text(r, s, 1);
    }
    finalize(r, s, rc, "StringIds");
    r->ids_dense = r->n_ids && r->file_ids[r->n_ids - 1] - r->file_ids[0] == (int64_t)r->n_ids - 1;
}

static uint32_t string_of(reader *r, int64_t id)
{
    if (r->ids_dense) {
        if (id >= r->file_ids[0] && id <= r->file_ids[r->n_ids - 1])
            return r->ids[id - r->file_ids[0]];
    } else {
        size_t low = 0, high = r->n_ids;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (r->file_ids[mid] < id)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < r->n_ids && r->file_ids[low] == id)
            return r->ids[low];
    }
    r->orphans++;
    return 0;
}

/* ---- events ---- */

typedef struct {
    const bz_field *column[COLUMNS_MAX];
    int n;          /* they come first in the SELECT */
    int lane_first; /* where the columns that name the lane begin; -1 none */
    int own_lane;   /* where benanzaLane stands; -1 none */
    int event_type; /* NVTX: where eventType stands; -1 none */
    int text_id;    /* NVTX: where textId stands; -1 none */
} selection;

static void select_column(bz_buf *sql, const char *name, int *n)
{
    bz_buf_printf(sql, "%s\"%s\"", *n ? ", " : "SELECT ", name);
    ++*n;
}

/* Which columns the table has; NULL and a word in the coverage where a needed one is missing. */
static sqlite3_stmt *select_table(reader *r, const bz_mapping *map, const char *table, selection *sel)
{
    static const char *const DEVICE[] = {"deviceId", "contextId", "streamId", "globalPid"};
    bz_buf sql = {0};
    *sel = (selection){.lane_first = -1, .own_lane = -1, .event_type = -1, .text_id = -1};
    int n = 0;
    for (const bz_field *c = map->columns; c->name; c++) {
        const char *name = has_column(r, table, c->name)            ? c->name
                           : c->old && has_column(r, table, c->old) ? c->old
                                                                    : NULL;
        if (name) {
            sel->column[sel->n++] = c;
            select_column(&sql, name, &n);
        } else if (c->needed) {
            bz_trace_cover(r->t, r->source, BZ_COVERAGE_MISSING, "table %s has no column %s: it was left out", table,
                           c->name);
            bz_buf_free(&sql);
            return NULL;
        }
    }
    if (r->own && has_column(r, table, "benanzaLane")) {
        sel->own_lane = n;
        select_column(&sql, "benanzaLane", &n);
    } else if (map->device && has_column(r, table, "deviceId") && has_column(r, table, "contextId") &&
               has_column(r, table, "streamId") && has_column(r, table, "globalPid")) {
        sel->lane_first = n;
        for (int i = 0; i < 4; i++)
            select_column(&sql, DEVICE[i], &n);
    } else if (!map->device && has_column(r, table, "globalTid")) {
        sel->lane_first = n;
        select_column(&sql, "globalTid", &n);
    }
    if (map->kind == BZ_EVENT_RANGE && has_column(r, table, "eventType")) {
        sel->event_type = n;
        select_column(&sql, "eventType", &n);
    }
    if (map->kind == BZ_EVENT_RANGE && has_column(r, table, "textId")) {
        sel->text_id = n;
        select_column(&sql, "textId", &n);
    }
    bz_buf_printf(&sql, " FROM \"%s\"", table);
    sqlite3_stmt *s = prepare(r->db, bz_buf_text(&sql));
    if (!s)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN, "table %s cannot be read: %s", table,
                       sqlite3_errmsg(r->db));
    bz_buf_free(&sql);
    return s;
}

static uint32_t row_lane(reader *r, const bz_mapping *map, const selection *sel, sqlite3_stmt *s)
{
    if (sel->own_lane >= 0) {
        int64_t v = sqlite3_column_int64(s, sel->own_lane);
        if (v >= 0 && (uint64_t)v < r->n_lanes)
            return r->lane_of[v];
    } else if (sel->lane_first >= 0 && map->device) {
        int c = sel->lane_first;
        return bz_trace_stream(r->t, r->source, sqlite3_column_int64(s, c + 3) >> 24 & 0xffffff,
                               sqlite3_column_int64(s, c), sqlite3_column_int64(s, c + 1),
                               sqlite3_column_int64(s, c + 2));
    } else if (sel->lane_first >= 0) {
        int64_t id = sqlite3_column_int64(s, sel->lane_first);
        return bz_trace_thread(r->t, r->source, id >> 24 & 0xffffff, id & 0xffffff);
    }
    return map->device ? bz_trace_stream(r->t, r->source, 0, 0, 0, 0) : bz_trace_thread(r->t, r->source, 0, 0);
}

static void row_cell(reader *r, bz_events *e, size_t i, const bz_field *c, sqlite3_stmt *s, int column)
{
    char *to = *(char **)(void *)((char *)e + c->offset);
    size_t at = i * (size_t)c->width + (size_t)c->index;
    switch (c->cell) {
    case BZ_CELL_INT64:
        ((int64_t *)(void *)to)[at] = sqlite3_column_int64(s, column);
        break;
    case BZ_CELL_INT32:
        ((uint32_t *)(void *)to)[at] = clamp32(sqlite3_column_int64(s, column));
        break;
    case BZ_CELL_STRING_ID:
        if (sqlite3_column_type(s, column) == SQLITE_TEXT) /* some generations wrote the text itself */
            ((uint32_t *)(void *)to)[at] = cell_text(r, s, column);
        else
            ((uint32_t *)(void *)to)[at] = string_of(r, sqlite3_column_int64(s, column));
        break;
    case BZ_CELL_TEXT:
        ((uint32_t *)(void *)to)[at] = cell_text(r, s, column);
        break;
    }
}

/* NVTX: 34 a mark, 59 push/pop, 60 start/end; the rest declares categories and domains. */
static bool is_range(int64_t event_type)
{
    return event_type == 34 || event_type == 59 || event_type == 60 || event_type == 70 || event_type == 71;
}

static void read_table(reader *r, const bz_mapping *map)
{
    char name[96];
    const char *table = find_table(r, map->table, name);
    if (!table)
        return;
    selection sel;
    sqlite3_stmt *s = select_table(r, map, table, &sel);
    if (!s)
        return;
    bz_events *e = &r->t->event[map->kind];
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (sel.event_type >= 0 && !is_range(sqlite3_column_int64(s, sel.event_type)))
            continue;
        if (e->n >= BZ_NONE - 1)
            break;
        /* start and end are the first two columns; an end may be missing or NULL */
        int64_t start = sqlite3_column_int64(s, 0), end = start;
        bool has_end = sel.n > 1 && sel.column[1]->offset == offsetof(bz_events, end);
        if (has_end && sqlite3_column_type(s, 1) == SQLITE_NULL)
            r->endless++;
        else if (has_end)
            end = sqlite3_column_int64(s, 1);
        size_t i = bz_trace_add(r->t, map->kind, start, end, 0, row_lane(r, map, &sel, s));
        for (int c = 1 + has_end; c < sel.n; c++)
            row_cell(r, e, i, sel.column[c], s, c);
        if (sel.text_id >= 0 && !e->name[i] && sqlite3_column_type(s, sel.text_id) == SQLITE_INTEGER)
            e->name[i] = string_of(r, sqlite3_column_int64(s, sel.text_id));
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
    finalize(r, s, rc, table);
}

/* ---- what is around the events ---- */

static void read_facts(reader *r)
{
    static const struct {
        const char *table, *sql, *key;
    } FACTS[] = {
        {"TARGET_INFO_CUDA_GPU", "SELECT name FROM TARGET_INFO_CUDA_GPU LIMIT 64", "gpu"},
        {"TARGET_INFO_GPU", "SELECT name FROM TARGET_INFO_GPU LIMIT 64", "gpu"},
        {"META_DATA_EXPORT", "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION' LIMIT 1",
         "nsys schema"},
        {"META_DATA_EXPORT", "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_PRODUCT_VERSION' LIMIT 1",
         "nsys"},
        {"META_DATA_CAPTURE",
         "SELECT group_concat(value, ' ') FROM (SELECT value FROM META_DATA_CAPTURE WHERE name = 'PROCESS_0:COMMAND' "
         "OR name GLOB 'PROCESS_0:ARGUMENT_*' LIMIT 100)",
         "program"},
    };
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        sqlite3_stmt *s = is_table(r, FACTS[i].table) ? prepare(r->db, FACTS[i].sql) : NULL;
        while (s && sqlite3_step(s) == SQLITE_ROW) {
            const char *v = (const char *)sqlite3_column_text(s, 0);
            if (v && *v)
                bz_trace_fact(r->t, FACTS[i].key, v);
        }
        sqlite3_finalize(s);
    }
    sqlite3_stmt *s = is_table(r, "BENANZA_FACTS") ? prepare(r->db, "SELECT key, value FROM BENANZA_FACTS") : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(s, 0), *value = (const char *)sqlite3_column_text(s, 1);
        if (key && value)
            bz_trace_fact(r->t, key, value);
    }
    sqlite3_finalize(s);
}

static void read_own_lanes(reader *r)
{
    sqlite3_stmt *s = is_table(r, "BENANZA_LANES")
                          ? prepare(r->db, "SELECT id, device, processId, threadId, deviceId, contextId, streamId, "
                                           "name FROM BENANZA_LANES ORDER BY id")
                          : NULL;
    if (!s)
        return;
    r->own = true;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (sqlite3_column_int64(s, 0) != (int64_t)r->n_lanes)
            break;
        int64_t v[7];
        for (int i = 0; i < 7; i++)
            v[i] = sqlite3_column_int64(s, i);
        uint32_t lane = v[1] ? bz_trace_stream(r->t, r->source, v[2], v[4], v[5], v[6])
                             : bz_trace_thread(r->t, r->source, v[2], v[3]);
        r->t->lane[lane].name = cell_text(r, s, 7);
        r->lane_of = bz_realloc(r->lane_of, r->n_lanes + 1, sizeof *r->lane_of);
        r->lane_of[r->n_lanes++] = lane;
    }
    finalize(r, s, rc, "BENANZA_LANES");
}

static void read_own_stacks(reader *r)
{
    sqlite3_stmt *s = is_table(r, "BENANZA_STACKS")
                          ? prepare(r->db, "SELECT id, nameId FROM BENANZA_STACKS ORDER BY id, depth")
                          : NULL;
    enum { FRAMES_MAX = 256 };
    uint32_t frames[FRAMES_MAX];
    int n = 0, rc = SQLITE_DONE;
    int64_t current = 0;
    bool more = s != NULL;
    while (more) {
        more = (rc = sqlite3_step(s)) == SQLITE_ROW;
        int64_t id = more ? sqlite3_column_int64(s, 0) : -1;
        if (id != current) {
            if (current != (int64_t)r->n_stacks)
                break;
            r->stack_of = bz_realloc(r->stack_of, r->n_stacks + 1, sizeof *r->stack_of);
            r->stack_of[r->n_stacks++] = bz_trace_stack(r->t, frames, n);
            n = 0;
            current = id;
        }
        if (more && n < FRAMES_MAX && sqlite3_column_type(s, 1) == SQLITE_INTEGER)
            frames[n++] = string_of(r, sqlite3_column_int64(s, 1));
    }
    finalize(r, s, rc, "BENANZA_STACKS");
}

static void read_own_iterations(reader *r)
{
    sqlite3_stmt *s = is_table(r, "BENANZA_ITERATIONS")
                          ? prepare(r->db, "SELECT start, end, warmUp, origin FROM BENANZA_ITERATIONS ORDER BY start")
                          : NULL;
    bz_trace *t = r->t;
    while (s && sqlite3_step(s) == SQLITE_ROW && t->n_iterations < BZ_NONE - 1) {
        int64_t start = sqlite3_column_int64(s, 0), end = sqlite3_column_int64(s, 1);
        if (end < start)
            continue;
        if (!(t->n_iterations & (t->n_iterations - 1)))
            t->iteration = bz_realloc(t->iteration, t->n_iterations ? t->n_iterations * 2 : 1, sizeof *t->iteration);
        t->iteration[t->n_iterations++] = (bz_iteration){start, end, sqlite3_column_int(s, 2) != 0};
        int origin = sqlite3_column_int(s, 3);
        t->origin =
            origin >= 0 && origin <= BZ_ITERATION_DETECTED ? (bz_iteration_origin)origin : BZ_ITERATION_DETECTED;
    }
    sqlite3_finalize(s);
    /* device work may run behind by some iterations; windows that all lie over each other are a lie */
    double covered = 0, span = 1;
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        covered += (double)t->iteration[i].end - (double)t->iteration[i].start;
        span = (double)t->iteration[i].end - (double)t->iteration[0].start > span
                   ? (double)t->iteration[i].end - (double)t->iteration[0].start
                   : span;
    }
    if (covered > 64 * span) {
        t->n_iterations = 0;
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN,
                       "the iterations in the file lie over each other: they were left out");
    }
    s = is_table(r, "BENANZA_COVERAGE") ? prepare(r->db, "SELECT level, text FROM BENANZA_COVERAGE") : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 1);
        int level = sqlite3_column_int(s, 0);
        if (text && level >= 0 && level <= BZ_COVERAGE_BROKEN)
            bz_trace_cover(t, r->source, (bz_coverage_level)level, "%.900s", text);
    }
    sqlite3_finalize(s);
}

static void read_thread_names(reader *r)
{
    sqlite3_stmt *s =
        !r->own && is_table(r, "ThreadNames") ? prepare(r->db, "SELECT globalTid, nameId FROM ThreadNames") : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        uint32_t lane = bz_trace_known_thread(r->t, r->source, id >> 24 & 0xffffff, id & 0xffffff);
        if (lane != BZ_NONE)
            r->t->lane[lane].name = string_of(r, sqlite3_column_int64(s, 1));
    }
    sqlite3_finalize(s);
}

static void cover(reader *r, const size_t *before)
{
    bz_trace *t = r->t;
    char name[96];
    size_t kernels = t->event[BZ_EVENT_KERNEL].n - before[BZ_EVENT_KERNEL],
           apis = t->event[BZ_EVENT_API].n - before[BZ_EVENT_API];
    if (!r->own) {
        if (!kernels && apis)
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "no kernel was recorded: device-busy time, algorithms and kernel lists are unknown; library "
                           "and runtime calls, copies and "
                           "synchronizations can be analyzed. Did the program run on the GPU at all? Then profile "
                           "again with nsys --trace=cuda");
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
    if (r->orphans)
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN, "%lld names are not in StringIds and stay empty",
                       (long long)r->orphans);
    if (r->endless)
        bz_trace_cover(t, r->source, BZ_COVERAGE_NOTE, "%lld ranges have no end and count as marks",
                       (long long)r->endless);
    sqlite3_stmt *s = is_table(r, "DIAGNOSTIC_EVENT")
                          ? prepare(r->db, "SELECT text FROM DIAGNOSTIC_EVENT WHERE severity IN (2, 3) LIMIT 20")
                          : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        if (text)
            bz_trace_cover(t, r->source, BZ_COVERAGE_NOTE, "Nsight Systems said: %.700s", text);
    }
    sqlite3_finalize(s);
}

static void read_all(reader *r)
{
    size_t before[BZ_EVENT_KINDS];
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        before[k] = r->t->event[k].n;
    read_strings(r);
    read_own_lanes(r);
    read_own_stacks(r);
    for (int i = 0; i < BZ_N_TABLES; i++)
        if (!r->own || BZ_TABLES[i].kind != BZ_EVENT_CALL || !BZ_TABLES[i].library) /* ours are all in BENANZA_CALLS */
            read_table(r, &BZ_TABLES[i]);
    read_facts(r);
    read_thread_names(r);
    if (r->own)
        read_own_iterations(r);
    cover(r, before);
    bz_trace_source_format(r->t, r->source, r->own ? "benanza trace" : "Nsight Systems");
}

/* ---- the file ---- */

static bool sqlite_matches(const char *head, size_t n)
{
    return n >= 16 && !memcmp(head, "SQLite format 3", 16);
}

/* SQLite wants a file it can seek in: decompressed data goes to a temporary one. */
static int unpack(bz_stream *in, bz_buf *path, bz_error *err)
{
    const char *folder = getenv("TMPDIR");
    bz_buf_printf(path, "%s/benanza-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkostemp(path->data, O_CLOEXEC);
    bool bad = fd < 0;
    if (bad)
        bz_buf_clear(path);
    while (in->len && !bad) {
        for (size_t done = 0; done < in->len && !bad;) {
            ssize_t n = write(fd, in->data + done, in->len - done);
            bad = n <= 0;
            done += bad ? 0 : (size_t)n;
        }
        bz_stream_advance(in, in->len, 1);
    }
    if (fd >= 0)
        close(fd);
    return bad ? bz_fail(err, BZ_FAILED, "%s: no room to decompress it: set TMPDIR to a folder that has some", in->path)
               : 0;
}

static int sqlite_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    reader r = {.t = t, .source = source};
    int rc = -1;
    bz_buf uri = {0}, temporary = {0};
    if ((in->compressed || in->memory) && unpack(in, &temporary, err))
        goto out;
    bz_buf_puts(&uri, "file:");
    for (const char *p = temporary.len ? temporary.data : in->path; *p;
         p++) /* '?', '#' and '%' mean something in a URI */
        bz_buf_printf(&uri, strchr("?#%", *p) ? "%%%02x" : "%c", (unsigned char)*p);
    bz_buf_puts(&uri, "?immutable=1");
    if (sqlite3_open_v2(bz_buf_text(&uri), &r.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        bz_fail(err, BZ_BAD_INPUT, "%s: cannot be opened: %s", in->path, sqlite3_errmsg(r.db));
        goto out;
    }
    sqlite3_db_config(r.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(r.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(r.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(r.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_stmt *probe = prepare(r.db, "SELECT count(*) FROM sqlite_master");
    if (!probe || sqlite3_step(probe) != SQLITE_ROW) {
        bz_fail(err, BZ_BAD_INPUT, "%s: is damaged from the start: %s; export it again", in->path,
                sqlite3_errmsg(r.db));
        sqlite3_finalize(probe);
        goto out;
    }
    sqlite3_finalize(probe);
    read_all(&r);
    rc = 0;
out:
    sqlite3_close(r.db);
    if (temporary.len)
        unlink(temporary.data);
    bz_buf_free(&temporary);
    free(r.file_ids);
    free(r.ids);
    free(r.lane_of);
    free(r.stack_of);
    bz_buf_free(&uri);
    return rc;
}

const bz_reader bz_reader_sqlite = {"Nsight Systems", false, sqlite_matches, sqlite_read};
