/* What files that bz_trace_save wrote have besides an export's tables: lanes, stacks and iterations. The file is hostile. */
#include "profile/sqlite_facts.h"
#include "profile/sqlite_read.h"

void bz_sqlite_own_lanes(bz_sqlite_reader *r)
{
    sqlite3_stmt *s = bz_database_query(
        &r->db, "BENANZA_LANES",
        "SELECT id, device, processId, threadId, deviceId, contextId, streamId, name FROM BENANZA_LANES ORDER BY id");
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
        r->t->lane[lane].name = bz_sqlite_text(r, s, 7);
        r->lane_of = bz_realloc(r->lane_of, r->n_lanes + 1, sizeof *r->lane_of);
        r->lane_of[r->n_lanes++] = lane;
    }
    bz_table_end(r->t, r->source, "BENANZA_LANES", s, rc);
}

void bz_sqlite_own_stacks(bz_sqlite_reader *r)
{
    sqlite3_stmt *s =
        bz_database_query(&r->db, "BENANZA_STACKS", "SELECT id, nameId FROM BENANZA_STACKS ORDER BY id, depth");
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
            frames[n++] = bz_sqlite_string(r, sqlite3_column_int64(s, 1));
    }
    bz_table_end(r->t, r->source, "BENANZA_STACKS", s, rc);
}

void bz_sqlite_own_iterations(bz_sqlite_reader *r)
{
    sqlite3_stmt *s = bz_database_query(&r->db, "BENANZA_ITERATIONS",
                                        "SELECT start, end, warmUp, origin FROM BENANZA_ITERATIONS ORDER BY start");
    bz_trace *t = r->t;
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW && t->n_iterations < BZ_NONE - 1) {
        int64_t start = sqlite3_column_int64(s, 0), end = sqlite3_column_int64(s, 1);
        if (end < start)
            continue;
        BZ_ROOM(t->iteration, t->n_iterations);
        t->iteration[t->n_iterations++] =
            (bz_iteration){.start = start, .end = end, .warm_up = sqlite3_column_int(s, 2) != 0};
        int origin = sqlite3_column_int(s, 3);
        t->origin =
            origin >= 0 && origin <= BZ_ITERATION_DETECTED ? (bz_iteration_origin)origin : BZ_ITERATION_DETECTED;
    }
    bz_table_end(r->t, r->source, "BENANZA_ITERATIONS", s, rc);
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
    s = bz_database_query(&r->db, "BENANZA_COVERAGE",
                          bz_sqlite_has(r, "BENANZA_COVERAGE", "lack")
                              ? "SELECT level, text, lack FROM BENANZA_COVERAGE"
                              : "SELECT level, text, NULL FROM BENANZA_COVERAGE");
    rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 1);
        int level = sqlite3_column_int(s, 0);
        if (text && level >= 0 && level <= BZ_COVERAGE_BROKEN)
            bz_trace_lack(t, r->source, (bz_coverage_level)level, bz_lack_of((const char *)sqlite3_column_text(s, 2)),
                          "%.900s", text);
    }
    bz_table_end(r->t, r->source, "BENANZA_COVERAGE", s, rc);
}
