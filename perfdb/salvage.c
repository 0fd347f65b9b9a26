/* Salvage: what is intact of a file that LMDB must not see any more. The tree above may be broken: every page of the file
 * that is not free is looked at by itself, and an entry with a right checksum is taken wherever it lies. */
#include "perfdb/guard.h"
#include "perfdb/page.h"
#include "perfdb/store.h"
#include "perfdb/stream.h"

#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *file;
    size_t page_size, pages;
    unsigned char *free; /* by page number */
    bz_map problems;     /* hash -> index into `problem` */
    const char **problem;
    size_t n_problems;
    bz_system *system;
    size_t n_systems;
    bz_sink *sink;
    bz_buf line;
    bz_perfdb_salvage_report *report;
    bz_error *err;
    int rc;
} salvage;

/* The bytes of a long value: a run of pages whose first has a header. */
static const char *long_value(const salvage *s, const char *number, size_t size)
{
    size_t first, last;
    page_header h;
    memcpy(&first, number, sizeof first);
    if (first < 2 || first >= s->pages || __builtin_add_overflow(size, sizeof h - 1, &last))
        return NULL;
    memcpy(&h, s->file + first * s->page_size, sizeof h);
    bool inside = last / s->page_size < s->pages - first;
    return h.number == first && h.flags == PAGE_OVERFLOW && inside ? s->file + first * s->page_size + sizeof h : NULL;
}

static bool read_node(const salvage *s, const char *page, size_t offset, MDB_val *key, MDB_val *value)
{
    node_header n;
    if (offset < sizeof(page_header) || offset > s->page_size - sizeof n)
        return false;
    memcpy(&n, page + offset, sizeof n);
    size_t room = s->page_size - offset - sizeof n;
    if (n.key_size > room)
        return false;
    room -= n.key_size;
    *key = (MDB_val){n.key_size, (char *)page + offset + sizeof n};
    *value = (MDB_val){(size_t)n.low | (size_t)n.high << 16, (char *)key->mv_data + n.key_size};
    if (n.flags != NODE_BIG)
        return (n.flags == 0 || n.flags == NODE_TREE) && value->mv_size <= room;
    return room >= sizeof(size_t) && (value->mv_data = (char *)long_value(s, value->mv_data, value->mv_size));
}

/* Calls `each` for every node of a leaf page. Returns whether the page was whole. */
static bool each_node_of(salvage *s, const char *page, const page_header *h,
                         void (*each)(salvage *s, const MDB_val *key, const MDB_val *value))
{
    bool whole = h->lower >= sizeof *h && h->lower <= s->page_size && h->lower % 2 == 0;
    for (size_t at = sizeof *h; at + 2 <= s->page_size && at < h->lower && !s->rc; at += 2) {
        uint16_t offset;
        MDB_val key, value;
        memcpy(&offset, page + at, sizeof offset);
        if (read_node(s, page, offset, &key, &value))
            each(s, &key, &value);
        else
            whole = false;
    }
    return whole;
}

/* Returns how many pages are damaged, as far as a page tells. With `old`, looks at the free pages instead. */
static size_t each_node(salvage *s, bool old, void (*each)(salvage *s, const MDB_val *key, const MDB_val *value))
{
    size_t damaged = 0, run = 0;
    for (size_t p = 2; p < s->pages && !s->rc; p++) {
        page_header h;
        const char *page = s->file + p * s->page_size;
        memcpy(&h, page, sizeof h);
        if (run && run--) /* the rest of a long value has no headers */
            continue;
        if ((s->free && s->free[p]) != old)
            continue;
        if (h.number == p && h.flags == PAGE_OVERFLOW) {
            run = (size_t)h.lower | (size_t)h.upper << 16;
            run -= run > 0;
        } else if (h.number == p && h.flags == PAGE_LEAF) {
            damaged += !each_node_of(s, page, &h, each);
        } else {
            damaged += h.number != p || h.flags != PAGE_BRANCH;
        }
    }
    return damaged;
}

static void take_name(salvage *s, const MDB_val *key, const MDB_val *value)
{
    bz_system system;
    const char *problem;
    if (bz_system_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &system) == ENTRY_GOOD) {
        for (size_t i = 0; i < s->n_systems; i++)
            if (s->system[i].id == system.id)
                return;
        s->system = bz_realloc(s->system, s->n_systems + 1, sizeof *s->system);
        s->system[s->n_systems++] = system;
    } else if (key->mv_size == HASH_SIZE &&
               bz_problem_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &problem) == ENTRY_GOOD) {
        s->problem = bz_realloc(s->problem, s->n_problems + 1, sizeof *s->problem);
        s->problem[s->n_problems] = problem;
        bz_map_add(&s->problems, key->mv_data, key->mv_size, (uint32_t)s->n_problems++);
    }
}

/* A name that was lost gets a stand-in, so that its records stay together. */
static const char *system_name(const salvage *s, uint32_t id, char stand_in[32])
{
    for (size_t i = 0; i < s->n_systems; i++)
        if (s->system[i].id == id)
            return s->system[i].name;
    snprintf(stand_in, 32, "lost-%u", id);
    return stand_in;
}

static void write_line(salvage *s)
{
    s->rc = bz_sink_write(s->sink, s->line.data, s->line.len, s->err);
}

static void write_record(salvage *s, const MDB_val *key, const MDB_val *value)
{
    bz_record r = {0};
    char stand_in[32];
    if (key->mv_size != KEY_RECORD)
        return;
    bz_entry_state state = bz_record_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &r);
    if (state != ENTRY_GOOD || bz_record_check_content(&r, NULL)) {
        s->report->damaged += state != ENTRY_NEWER;
        s->report->newer += state == ENTRY_NEWER;
        return;
    }
    uint32_t at = bz_map_get(&s->problems, (char *)key->mv_data + KEY_TYPE, HASH_SIZE);
    r.system = system_name(s, bz_key_system_of(key->mv_data), stand_in);
    if (at == BZ_MAP_NONE) {
        s->report->nameless++;
        return;
    }
    r.problem = s->problem[at];
    if (bz_record_check(&r, NULL)) {
        s->report->damaged++;
        return;
    }
    s->report->records++;
    s->report->lost_systems += r.system == stand_in;
    bz_buf_clear(&s->line);
    bz_json j = bz_json_to(&s->line, false);
    bz_record_json(&j, &r);
    bz_buf_putc(&s->line, '\n');
    write_line(s);
}

static void write_all(salvage *s)
{
    /* what an id or a hash means never changes: where that is lost, an old page may still tell */
    each_node(s, false, take_name);
    each_node(s, true, take_name);
    for (size_t i = 0; i < s->n_systems && !s->rc; i++) {
        bz_buf_clear(&s->line);
        bz_system_line(&s->line, &s->system[i]);
        write_line(s);
    }
    s->report->systems = s->n_systems;
    s->report->pages = each_node(s, false, write_record);
}

static int open_file(const char *path, void **map, size_t *size, bz_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    if (fd < 0 || fstat(fd, &st))
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be opened: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode) || st.st_size < 2 * sysconf(_SC_PAGESIZE))
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: holds nothing to be salvaged", path);
    if (!rc) {
        *size = (size_t)st.st_size;
        *map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (*map == MAP_FAILED)
            rc = bz_fail(err, BZ_FAILED, "%s: cannot be read: %s", path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

int bz_perfdb_salvage(const char *dir, int fd, bool zstd, bz_perfdb_salvage_report *report, bz_error *err)
{
    BZ_SCOPED(bz_buf) path = {0};
    void *map = NULL;
    size_t size = 0, n = 0;
    *report = (bz_perfdb_salvage_report){0};
    bz_buf_printf(&path, "%s/data.mdb", dir);
    int rc = open_file(path.data, &map, &size, err);
    if (rc)
        return rc;
    salvage s = {.file = map, .page_size = (size_t)sysconf(_SC_PAGESIZE), .report = report, .err = err};
    s.pages = size / s.page_size;
    s.free = bz_guard_free_pages(map, size, &n);
    if (s.free && s.pages > n)
        s.pages = n;
    report->old = !s.free;
    s.sink = bz_sink_open(fd, zstd);
    write_all(&s);
    if (s.rc)
        bz_sink_drop(s.sink);
    else
        s.rc = bz_sink_close(s.sink, err);
    munmap(map, size);
    bz_map_free(&s.problems);
    bz_buf_free(&s.line);
    free(s.free);
    free(s.problem);
    free(s.system);
    return s.rc;
}

bool bz_perfdb_salvaged_all(const bz_perfdb_salvage_report *r)
{
    return !r->old && !(r->pages + r->damaged + r->newer + r->nameless + r->lost_systems);
}
