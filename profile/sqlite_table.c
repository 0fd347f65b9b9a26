/* The events of one table of a SQLite file: which of its columns are read, as what, and where in the trace they go. */
#include "profile/sqlite_table.h"
#include "base/beside.h"
#include "profile/columns.h"
#include "profile/sqlite_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bz_sqlite_table_named(bz_sqlite_reader *r, const char *base, char out[96])
{
    static const char *const VERSIONS[] = {"", "_V2", "_V3", "_V4"};
    for (size_t i = sizeof VERSIONS / sizeof *VERSIONS; i-- > 0;) {
        snprintf(out, 96, "%s%s", base, VERSIONS[i]);
        if (bz_database_has(&r->db, out))
            return out;
    }
    return NULL;
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
                to[k] = bz_string_ids_text(r->t, v->text[row + k], number[k]);
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

/* A table that is being read. */
typedef struct {
    const bz_mapping *map;
    const char *name;
    char versioned[96];
    selection selected;
    bz_scan scan;
} reading;

/* False: the file has no such table, or it cannot be read, which is told. */
static bool begin(bz_sqlite_reader *r, const bz_mapping *map, reading *table)
{
    table->map = map;
    table->name = bz_sqlite_table_named(r, map->table, table->versioned);
    selection *sel = &table->selected;
    if (!table->name || !select_columns(r, map, table->name, sel))
        return false;
    bool can = bz_scan_begin(&table->scan, &r->db, table->name, sel->name, sel->want, sel->n);
    if (!can)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN, "table %s cannot be read: %s", table->name,
                       sqlite3_errmsg(r->db.sql));
    return can;
}

static void add_rows(bz_sqlite_reader *r, reading *table)
{
    const bz_mapping *map = table->map;
    const selection *sel = &table->selected;
    const bz_values *v = table->scan.value;
    bz_trace_expect(r->t, map->kind, table->scan.rows);
    for (int rows; (rows = bz_scan_next(&table->scan)) && r->t->event[map->kind].n + (size_t)rows < BZ_NONE;)
        for (int row = 0, n; row < rows; row += n) {
            n = run_of(sel, v, row, rows);
            if (sel->event_type < 0 || is_range(v[sel->event_type].number[row]))
                add_run(r, map, sel, v, row, n);
        }
}

void bz_sqlite_table_read(bz_sqlite_reader *r, const bz_mapping *map)
{
    reading table;
    if (!begin(r, map, &table))
        return;
    add_rows(r, &table);
    bz_table_damaged(r->t, r->source, table.name, bz_scan_end(&table.scan));
}

/* Calls of the runtime are mostly as many as kernels. The thread that reads them has a trace of its own, of which rows and lanes are taken over;
 * strings do not change meanwhile, and pages are read by their place in the file. What that does not suffice for is read again. */
struct bz_sqlite_beside {
    bz_sqlite_reader r;
    reading table;
    bz_beside thread;
};

static void *read_beside(void *with)
{
    bz_sqlite_beside *b = with;
    add_rows(&b->r, &b->table);
    return NULL;
}

static void drop(bz_sqlite_beside *b)
{
    bz_trace_free(b->r.t);
    free(b);
}

bz_sqlite_beside *bz_sqlite_beside_start(const bz_sqlite_reader *r)
{
    const bz_mapping *map = BZ_TABLES;
    while (map->kind != BZ_EVENT_API)
        map++;
    if (r->own || r->t->event[map->kind].n)
        return NULL;
    bz_sqlite_beside *b = bz_alloc(1, sizeof *b);
    b->r = (bz_sqlite_reader){.t = bz_trace_new(), .source = r->source, .db = r->db, .strings = r->strings};
    b->r.t->summary = r->t->summary;
    b->r.strings.orphans = 0;
    bz_trace_stream(b->r.t, r->source, 0, 0, 0,
                    0); /* mostly there is one: threads then have the numbers that they get */
    if (!begin(&b->r, map, &b->table)) {
        drop(b);
        return NULL;
    }
    b->table.scan.alone = true;
    b->thread = bz_beside_start(b->table.scan.rows, read_beside, b);
    return b;
}

static void take_over(bz_sqlite_reader *r, const bz_sqlite_beside *b)
{
    bz_trace *from = b->r.t;
    bz_events *e = &r->t->event[b->table.map->kind];
    BZ_FREED uint32_t *lane = bz_zeroed(from->n_lanes, sizeof *lane);
    bool same = true;
    for (uint32_t i = 1; i < from->n_lanes; i++) {
        lane[i] = bz_trace_thread(r->t, r->source, from->lane[i].process, from->lane[i].thread);
        r->t->lane[lane[i]].kinds |= from->lane[i].kinds;
        same = same && lane[i] == i;
    }
    bz_events_free(e);
    *e = from->event[b->table.map->kind];
    from->event[b->table.map->kind] = (bz_events){0};
    for (size_t i = 0; i < e->n && !same; i++)
        e->lane[i] = lane[e->lane[i]];
    r->strings.orphans += b->r.strings.orphans;
    r->endless += b->r.endless;
    r->negative += b->r.negative;
    r->unnamed_time += b->r.unnamed_time;
}

bool bz_sqlite_beside_end(bz_sqlite_beside **beside, bz_sqlite_reader *r, const bz_mapping *map)
{
    bz_sqlite_beside *b = *beside;
    if (!b || b->table.map != map)
        return false;
    bz_beside_end(&b->thread);
    bool whole = !bz_scan_end(&b->table.scan) && !b->r.t->n_coverage && bz_strings(b->r.t) == 1;
    if (whole)
        take_over(r, b);
    drop(b);
    *beside = NULL;
    return whole;
}
