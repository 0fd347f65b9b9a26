/* Whole databases as text, and back; one database into another. */
#include "base/member.h"
#include "perfdb/gbench.h"
#include "perfdb/import.h"
#include "perfdb/store.h"
#include "perfdb/stream.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 65536, /* records of one transaction: bounded memory, few waits for the disk */
    BATCH_BYTES = 64 << 20,
    LONGEST_LINE = 1 << 20,
    BAD_NAMED = 20,
};

/* Import */

/* Says what was wrong with the lines before the first good one. */
static void tell_waiting(bz_import *in)
{
    for (size_t at = 0; at < in->waiting.len; at += strlen(in->waiting.data + at) + 1)
        bz_store_warn(in->db, "%s", in->waiting.data + at);
    bz_buf_free(&in->waiting);
    in->waits = false;
}

void bz_import_bad(bz_import *in, size_t number, const char *why)
{
    in->report->bad++;
    if (++in->named > BAD_NAMED)
        return;
    if (in->waits) {
        bz_buf_printf(&in->waiting, "%s:%zu: left out: %s", in->path, number, why);
        bz_buf_putc(&in->waiting, 0);
        return;
    }
    bz_store_warn(in->db, "%s:%zu: left out: %s", in->path, number, why);
}

int bz_import_flush(bz_import *in, bz_error *err)
{
    int rc = bz_perfdb_put(in->db, in->records, in->n, &in->report->count, err);
    in->n = 0;
    bz_arena_free(&in->arena);
    return rc;
}

static int flush_full(bz_import *in, bz_error *err)
{
    return in->n == BATCH || in->arena.used > BATCH_BYTES ? bz_import_flush(in, err) : 0;
}

int bz_import_record(bz_import *in, size_t number, bz_record *r, bz_error *err)
{
    bz_error why;
    if (!bz_text_or_empty(r->system)[0])
        r->system = in->system;
    if (bz_record_check(r, &why)) {
        bz_import_bad(in, number, why.text);
        return 0;
    }
    if (r->date > in->latest) {
        bz_import_bad(in, number, "dated in the future: the clock of the machine it was measured on is ahead");
        return 0;
    }
    BZ_ADD(in->records, in->n) = *r;
    in->report->records++;
    return flush_full(in, err);
}

/* A file of which no line is JSON is another file: one sentence instead of one for each line. */
static int end_lines(const bz_import *in, bz_error *err)
{
    if (in->report->lines && in->not_json == in->report->lines)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: holds no records: they are JSON lines, or Google Benchmark's JSON; plain, zstd or gzip",
                       in->path);
    return 0;
}

static int import_line(bz_import *in, size_t number, const char *text, size_t len, bz_error *err)
{
    bz_line line;
    bz_error why;
    if (bz_line_parse(text, len, &in->arena, &line, &why) ||
        (line.is_system && bz_system_check(bz_text_or_empty(line.system), &why))) {
        in->report->newer += line.newer;
        in->not_json += line.not_json;
        bz_import_bad(in, number, why.text);
        return 0;
    }
    if (in->waits)
        tell_waiting(in);
    in->report->unknown += line.unknown;
    if (!line.is_system)
        return bz_import_record(in, number, &line.record, err);
    in->report->systems++;
    return bz_perfdb_put_system(in->db, line.system, line.details, line.date, err);
}

static int import_lines(bz_import *in, bz_stream *source, bz_error *err)
{
    const char *text;
    size_t len;
    bool too_long;
    in->waits = true;
    in->not_json = 0;
    for (size_t number = 1;; number++) {
        if (bz_source_line(source, LONGEST_LINE, &text, &len, &too_long, err))
            return -1;
        if (!text)
            return end_lines(in, err);
        if (!too_long && strspn(text, " \t\r") >= len)
            continue;
        in->report->lines++;
        if (too_long) {
            in->not_json++;
            bz_import_bad(in, number, "longer than 1 MiB");
        } else if (import_line(in, number, text, len, err)) {
            return -1;
        }
    }
}

/* What waits in `in` at the end is stored by the caller. */
static int import_file(bz_import *in, bz_error *err)
{
    bz_stream *source = bz_source_open(in->path, err);
    size_t named = in->named;
    *in->report = (bz_perfdb_import_report){0};
    in->named = 0;
    if (!source)
        return -1;
    int rc = bz_source_peek(source, 4096, err);
    if (!rc)
        rc =
            bz_gbench_is(source->data, source->len) ? bz_gbench_import(in, source, err) : import_lines(in, source, err);
    rc ? bz_buf_free(&in->waiting) : tell_waiting(in);
    if (!rc && in->named > BAD_NAMED)
        bz_store_warn(in->db, "%s: %zu more lines were left out", in->path, in->named - BAD_NAMED);
    in->named = named;
    bz_stream_close(source);
    return rc;
}

static void drop(bz_import *in)
{
    bz_arena_free(&in->arena);
    free(in->records);
}

int bz_perfdb_import(bz_perfdb *db, const char *path, const char *system, bz_perfdb_import_report *report,
                     bz_error *err)
{
    bz_import in = {.db = db, .path = path, .system = system, .latest = INT64_MAX, .report = report};
    *report = (bz_perfdb_import_report){0};
    if (system && bz_system_check(system, err))
        return -1;
    int rc = import_file(&in, err) || bz_import_flush(&in, err);
    drop(&in);
    return rc ? -1 : 0;
}

struct bz_perfdb_bulk {
    bz_import in;
};

bz_perfdb_bulk *bz_perfdb_bulk_new(bz_perfdb *db, int64_t latest)
{
    bz_perfdb_bulk *bulk = bz_alloc(1, sizeof *bulk);
    *bulk = (bz_perfdb_bulk){.in = {.db = db, .latest = latest}};
    return bulk;
}

int bz_perfdb_bulk_import(bz_perfdb_bulk *bulk, const char *path, bz_perfdb_import_report *report, bz_error *err)
{
    bulk->in.path = path;
    bulk->in.report = report;
    return import_file(&bulk->in, err);
}

int bz_perfdb_bulk_end(bz_perfdb_bulk *bulk, bz_perfdb_count *count, bz_error *err)
{
    bz_perfdb_import_report rest = {0};
    bulk->in.report = &rest;
    int rc = bz_import_flush(&bulk->in, err);
    count->added += rest.count.added;
    count->replaced += rest.count.replaced;
    count->kept += rest.count.kept;
    drop(&bulk->in);
    free(bulk);
    return rc;
}

/* Export */

typedef struct {
    bz_sink *sink;
    bz_buf line;
    size_t records;
    bz_error *err;
    int rc;
} export;

void bz_system_line(bz_buf *out, const bz_system *s)
{
    bz_json j = bz_json_to(out, false);
    const char *at = strchr(s->name, '@');
    char slug[128];
    size_t len = at ? (size_t)(at - s->name) : strlen(s->name);
    memcpy(slug, s->name, len);
    slug[len] = 0;
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("v", 1), BZ_TELL("record", "system"), BZ_TELL("slug", slug), BZ_TELL("stack", at ? at + 1 : ""),
            BZ_TELL("date", s->date));
    bz_json_object_end(&j);
    if (strlen(s->details) > 2) { /* the members of one object behind those of the other */
        out->data[out->len - 1] = ',';
        bz_buf_puts(out, s->details + 1);
    }
    bz_buf_putc(out, '\n');
}

static int export_record(void *user, const bz_record *r)
{
    export *e = user;
    bz_buf_clear(&e->line);
    bz_json j = bz_json_to(&e->line, false);
    bz_record_json(&j, r);
    bz_buf_putc(&e->line, '\n');
    e->records++;
    e->rc = bz_sink_write(e->sink, e->line.data, e->line.len, e->err);
    return e->rc;
}

int bz_perfdb_export(bz_perfdb *db, const bz_perfdb_filter *filter, int fd, bool zstd, size_t *records, bz_error *err)
{
    if (bz_store_read(db, err))
        return -1;
    export e = {.sink = bz_sink_open(fd, zstd), .err = err};
    for (size_t i = 0; i < db->n_systems && !e.rc; i++) {
        if (filter->system && filter->system != db->system[i])
            continue;
        bz_buf_clear(&e.line);
        bz_system_line(&e.line, db->system[i]);
        e.rc = bz_sink_write(e.sink, e.line.data, e.line.len, err);
    }
    if (!e.rc && bz_perfdb_scan(db, filter, export_record, &e, err))
        e.rc = -1;
    bz_store_read_end(db);
    if (e.rc)
        bz_sink_drop(e.sink);
    else
        e.rc = bz_sink_close(e.sink, err);
    bz_buf_free(&e.line);
    if (records)
        *records = e.records;
    return e.rc;
}

/* Merge */

typedef struct {
    bz_import in;
    bz_error *err;
    int rc;
} merge;

/* The record's strings lie in the other map: they are copied for the batch. */
static int merge_record(void *user, const bz_record *r)
{
    merge *m = user;
    BZ_ADD(m->in.records, m->in.n) = bz_record_copy(r, &m->in.arena);
    return m->rc = flush_full(&m->in, m->err);
}

int bz_perfdb_merge(bz_perfdb *db, bz_perfdb *from, bz_perfdb_count *count, bz_error *err)
{
    bz_perfdb_import_report report = {.count = count ? *count : (bz_perfdb_count){0}};
    merge m = {.in = {.db = db, .report = &report}, .err = err};
    if (bz_store_read(from, err))
        return -1;
    for (size_t i = 0; i < from->n_systems && !m.rc; i++) {
        const bz_system *s = from->system[i];
        m.rc = bz_perfdb_put_system(db, s->name, s->details, s->date, err);
    }
    if (!m.rc && bz_perfdb_scan(from, &(bz_perfdb_filter){.history = true}, merge_record, &m, err))
        m.rc = -1;
    bz_store_read_end(from);
    if (!m.rc)
        m.rc = bz_import_flush(&m.in, err);
    drop(&m.in);
    if (count)
        *count = report.count;
    return m.rc;
}
