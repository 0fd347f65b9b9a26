/* Reads databases of rocprofv3. Each process that was recorded has tables of its own, whose names end alike ("rocpd_region_0198…"); the views
 * that join them are not used, since the file is hostile. An event has a row in rocpd_event, whose stack_id is the same for a call and the work
 * that it asked for. */
#include "profile/rocpd.h"
#include "base/sort.h"
#include "profile/reader.h"
#include "profile/sqlite_facts.h"
#include "profile/string_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDING = 80, PROCESSES = 64 };

/* A row that others name by its id. */
typedef struct {
    int64_t id, number, other;
    uint32_t text; /* a string */
} entry;

typedef struct {
    entry *at; /* [n] by id */
    size_t n;
} list;

typedef struct {
    bz_trace *t;
    uint32_t source;
    bz_database *db;
    const char *ending; /* of the tables' names */
    list string, process, thread, agent, symbol, event;
    int64_t negative;
} reader;

BZ_SORTS(by_id, entry, BZ_ORDER(p->id, q->id));

static entry find(const list *l, int64_t id)
{
    size_t low = 0, high = l->n;
    BZ_FIND_FIRST(low, high, middle, l->at[middle].id < id);
    return low < l->n && l->at[low].id == id ? l->at[low] : (entry){.id = id, .number = id};
}

/* SELECT `columns` FROM one of the process' tables; NULL: there is no such table, or none with these columns. */
static sqlite3_stmt *query(const reader *r, const char *table, const char *columns, char name[ENDING + 64])
{
    char sql[512];
    snprintf(name, ENDING + 64, "%.40s%.*s", table, ENDING, r->ending);
    snprintf(sql, sizeof sql, "SELECT %.300s FROM \"%s\"", columns, name);
    return bz_database_query(r->db, name, sql);
}

static uint32_t text_at(const reader *r, sqlite3_stmt *s, int column)
{
    const char *v = (const char *)sqlite3_column_text(s, column);
    return bz_string_ids_text(r->t, v, sqlite3_column_bytes(s, column));
}

/* Columns: the id, a number, a text, another number; of fewer the others are none. */
static list read_list(const reader *r, const char *table, const char *columns)
{
    char name[ENDING + 64];
    list l = {0};
    sqlite3_stmt *s = query(r, table, columns, name);
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        BZ_ROOM(l.at, l.n);
        l.at[l.n++] = (entry){.id = sqlite3_column_int64(s, 0),
                              .number = sqlite3_column_int64(s, 1),
                              .text = sqlite3_column_count(s) > 2 ? text_at(r, s, 2) : 0,
                              .other = sqlite3_column_count(s) > 3 ? sqlite3_column_int64(s, 3) : 0};
    }
    bz_table_end(r->t, r->source, name, s, rc);
    BZ_QSORT(l.at, l.n, by_id);
    return l;
}

/* {"message": "step 3"}: what a program says with roctx. 0: nothing. */
static uint32_t message_of(bz_trace *t, const char *json)
{
    char text[256];
    size_t n = 0;
    const char *p = strstr(json, "\"message\"");
    p = p ? strchr(p + 9, '"') : NULL;
    if (!p)
        return 0;
    for (p++; *p && *p != '"' && n + 1 < sizeof text; p++) {
        p += *p == '\\' && p[1];
        text[n++] = *p;
    }
    return bz_trace_intern(t, text, n);
}

static size_t add(reader *r, bz_event_kind kind, int64_t start, int64_t end, uint32_t name, uint32_t lane)
{
    r->negative += end < start;
    return bz_trace_add(r->t, kind, start, end < start ? start : end, name, lane);
}

static void correlate(const reader *r, bz_event_kind kind, size_t i, const entry *event)
{
    if (event->number > 0 && event->number < BZ_NONE)
        r->t->event[kind].correlation[i] = (uint32_t)event->number;
}

/* What the host did: calls of HIP and HSA by their category, and ranges of the program. */
static void read_regions(reader *r)
{
    char name[ENDING + 64];
    sqlite3_stmt *s = query(r, "rocpd_region", "start, \"end\", name_id, event_id, pid, tid", name);
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const entry event = find(&r->event, sqlite3_column_int64(s, 3));
        const char *category = bz_string(r->t, find(&r->string, event.other).text);
        bz_event_kind kind =
            !strncmp(category, "HIP_", 4) || !strncmp(category, "HSA_", 4) ? BZ_EVENT_API : BZ_EVENT_RANGE;
        uint32_t lane = bz_trace_thread(r->t, r->source, find(&r->process, sqlite3_column_int64(s, 4)).number,
                                        find(&r->thread, sqlite3_column_int64(s, 5)).number),
                 message = kind == BZ_EVENT_RANGE ? message_of(r->t, bz_string(r->t, event.text)) : 0;
        size_t i = add(r, kind, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                       message ? message : find(&r->string, sqlite3_column_int64(s, 2)).text, lane);
        if (kind == BZ_EVENT_API)
            correlate(r, kind, i, &event);
    }
    bz_table_end(r->t, r->source, name, s, rc);
}

static uint32_t stream_at(const reader *r, sqlite3_stmt *s, int pid)
{
    enum { AGENT = 1, QUEUE, STREAM }; /* columns behind the process */
    return bz_trace_stream(r->t, r->source, find(&r->process, sqlite3_column_int64(s, pid)).number,
                           find(&r->agent, sqlite3_column_int64(s, pid + AGENT)).number,
                           sqlite3_column_int64(s, pid + QUEUE), sqlite3_column_int64(s, pid + STREAM));
}

static uint32_t size_at(sqlite3_stmt *s, int column)
{
    int64_t v = sqlite3_column_int64(s, column);
    return v > 0 && v < BZ_NONE ? (uint32_t)v : 0;
}

/* rocprofv3 counts a grid in threads, and CUDA in blocks. */
static void read_kernels(reader *r)
{
    enum { START, END, SYMBOL, EVENT, PROCESS, BLOCK = PROCESS + 4, GRID = BLOCK + 3, SHARED = GRID + 3 };
    char name[ENDING + 64];
    sqlite3_stmt *s =
        query(r, "rocpd_kernel_dispatch",
              "start, \"end\", kernel_id, event_id, pid, agent_id, queue_id, stream_id, workgroup_size_x, "
              "workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, "
              "group_segment_size",
              name);
    int rc = SQLITE_DONE;
    uint32_t told = 0;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const entry event = find(&r->event, sqlite3_column_int64(s, EVENT)),
                    agent = find(&r->agent, sqlite3_column_int64(s, PROCESS + 1));
        bz_launched launched = {.shared_dynamic = size_at(s, SHARED)};
        for (int k = 0; k < 3; k++) {
            launched.block[k] = size_at(s, BLOCK + k);
            launched.grid[k] = size_at(s, GRID + k) / (launched.block[k] ? launched.block[k] : 1);
        }
        size_t i = add(r, BZ_EVENT_KERNEL, sqlite3_column_int64(s, START), sqlite3_column_int64(s, END),
                       find(&r->symbol, sqlite3_column_int64(s, SYMBOL)).text, stream_at(r, s, PROCESS));
        r->t->event[BZ_EVENT_KERNEL].launched[i] = bz_trace_launched(r->t, &launched);
        correlate(r, BZ_EVENT_KERNEL, i, &event);
        if (agent.text && agent.text != told) /* most kernels are of the device of the one before */
            bz_trace_fact(r->t, "gpu", bz_string(r->t, told = agent.text));
    }
    bz_table_end(r->t, r->source, name, s, rc);
}

static void read_copies(reader *r)
{
    enum { START, END, NAME, EVENT, BYTES, PROCESS };
    char name[ENDING + 64];
    sqlite3_stmt *s = query(r, "rocpd_memory_copy",
                            "start, \"end\", name_id, event_id, size, pid, dst_agent_id, queue_id, stream_id", name);
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const entry event = find(&r->event, sqlite3_column_int64(s, EVENT));
        uint32_t text = find(&r->string, sqlite3_column_int64(s, NAME)).text;
        size_t i = add(r, BZ_EVENT_COPY, sqlite3_column_int64(s, START), sqlite3_column_int64(s, END), text,
                       stream_at(r, s, PROCESS));
        r->t->event[BZ_EVENT_COPY].bytes[i] = sqlite3_column_int64(s, BYTES);
        r->t->event[BZ_EVENT_COPY].value[i] = bz_copy_named(bz_string(r->t, text));
        correlate(r, BZ_EVENT_COPY, i, &event);
    }
    bz_table_end(r->t, r->source, name, s, rc);
}

static void read_process(reader *r)
{
    r->string = read_list(r, "rocpd_string", "id, 0, string");
    r->process = read_list(r, "rocpd_info_process", "id, pid, command");
    r->thread = read_list(r, "rocpd_info_thread", "id, tid");
    r->agent = read_list(r, "rocpd_info_agent", "id, type_index, coalesce(nullif(product_name, ''), name)");
    r->symbol = read_list(r, "rocpd_info_kernel_symbol", "id, 0, coalesce(display_name, kernel_name)");
    r->event = read_list(r, "rocpd_event",
                         "id, stack_id, CASE WHEN extdata LIKE '%\"message\"%' THEN extdata END, category_id");
    for (size_t i = 0; i < r->process.n; i++)
        if (r->process.at[i].text)
            bz_trace_fact(r->t, "program", bz_string(r->t, r->process.at[i].text));
    read_regions(r);
    read_kernels(r);
    read_copies(r);
    list *const lists[] = {&r->string, &r->process, &r->thread, &r->agent, &r->symbol, &r->event};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->at);
}

/* Ends of the names of tables, of letters, digits and lines alone. */
static int find_endings(bz_database *db, char ending[PROCESSES][ENDING])
{
    static const char OF_A_NAME[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const size_t front = strlen("rocpd_kernel_dispatch");
    sqlite3_stmt *s = bz_database_prepare(
        db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_kernel_dispatch*' ORDER BY name");
    int n = 0;
    while (n < PROCESSES && bz_database_step(db, s)) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        size_t length = name ? strlen(name) : 0;
        if (length >= front && length - front < ENDING && strspn(name, OF_A_NAME) == length)
            snprintf(ending[n++], ENDING, "%s", name + front);
    }
    sqlite3_finalize(s);
    return n;
}

bool bz_rocpd_read(bz_trace *t, uint32_t source, bz_database *db)
{
    char ending[PROCESSES][ENDING];
    int n = find_endings(db, ending);
    int64_t negative = 0;
    for (int i = 0; i < n; i++) {
        reader r = {.t = t, .source = source, .db = db, .ending = ending[i]};
        read_process(&r);
        negative += r.negative;
    }
    if (!n)
        return false;
    bz_trace_source_format(t, source, "rocprofv3");
    bz_cover_times(t, source, 0, negative);
    if (!t->event[BZ_EVENT_API].n && t->event[BZ_EVENT_KERNEL].n)
        bz_trace_cover(t, source, BZ_COVERAGE_MISSING,
                       "no runtime call was recorded: kernels cannot be tied to the calls that launched them; record "
                       "with rocprofv3 --sys-trace, or --hip-trace --kernel-trace --memory-copy-trace --marker-trace");
    return true;
}
