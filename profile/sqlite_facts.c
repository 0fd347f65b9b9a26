#include "profile/sqlite_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void bz_table_damaged(bz_trace *t, uint32_t source, const char *table, const char *why)
{
    if (!why)
        return;
    t->source[source].truncated = true;
    bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "table %s is damaged (%s): rows behind the damage are missing", table,
                   why);
}

void bz_table_end(bz_trace *t, uint32_t source, const char *table, sqlite3_stmt *s, int rc)
{
    bz_table_damaged(t, source, table, rc != SQLITE_DONE && rc != SQLITE_ROW ? sqlite3_errstr(rc) : NULL);
    sqlite3_finalize(s);
}

/* What the host was called, or "". */
static void host_of(bz_database *db, char out[256])
{
    static const char *const QUERIES[][2] = {
        {"TARGET_INFO_SYSTEM_ENV", "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname' LIMIT 1"},
        {"META_DATA_CAPTURE", "SELECT value FROM META_DATA_CAPTURE WHERE name = 'DEVICE_DISPLAY_NAME' LIMIT 1"},
    };
    *out = 0;
    for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES && !*out; i++) {
        sqlite3_stmt *s = bz_database_query(db, QUERIES[i][0], QUERIES[i][1]);
        const char *v = bz_database_step(db, s) ? (const char *)sqlite3_column_text(s, 0) : NULL;
        snprintf(out, 256, "%s", v ? v : "");
        sqlite3_finalize(s);
    }
}

static bool of_a_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* The text with HOST for every word that is the host's name. */
static void leave_host_out(const char *text, const char *host, bz_buf *out)
{
    size_t n = strlen(host);
    const char *at = text;
    bz_buf_clear(out);
    for (const char *found; n && (found = strstr(at, host)); at = found + n) {
        bool word = (found == text || !of_a_word(found[-1])) && !of_a_word(found[n]);
        bz_buf_printf(out, "%.*s%s", (int)(found - at), at, word ? "HOST" : host);
    }
    bz_buf_puts(out, at);
}

/* Recordings of before had the host's name here, in front of the system's. */
static void add_own_fact(bz_trace *t, const char *key, const char *value)
{
    const char *comma = strstr(value, ", ");
    if (strcmp(key, "host") != 0)
        bz_trace_fact(t, key, value);
    else if (comma)
        bz_trace_fact(t, "operating system", comma + 2);
}

void bz_facts_read(bz_trace *t, uint32_t source, bz_database *db)
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
        {"DIAGNOSTIC_EVENT",
         "SELECT replace(replace(text, ' ' || char(10), ' '), char(10), ' ') FROM DIAGNOSTIC_EVENT "
         "WHERE severity IN (2, 3) LIMIT 20",
         NULL},
    };
    char host[256];
    bz_buf text = {0};
    host_of(db, host);
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        sqlite3_stmt *s = bz_database_query(db, FACTS[i].table, FACTS[i].sql);
        int rc = SQLITE_DONE;
        while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
            const char *v = (const char *)sqlite3_column_text(s, 0);
            if (!v || !*v)
                continue;
            leave_host_out(v, host, &text);
            if (FACTS[i].key)
                bz_trace_fact(t, FACTS[i].key, bz_buf_text(&text));
            else
                bz_trace_cover(t, source, BZ_COVERAGE_NOTE, "Nsight Systems said: %.700s", bz_buf_text(&text));
        }
        bz_table_end(t, source, FACTS[i].table, s, rc);
    }
    sqlite3_stmt *s = bz_database_query(db, "BENANZA_FACTS", "SELECT key, value FROM BENANZA_FACTS");
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(s, 0), *value = (const char *)sqlite3_column_text(s, 1);
        if (key && value)
            add_own_fact(t, key, value);
    }
    bz_table_end(t, source, "BENANZA_FACTS", s, rc);
    bz_buf_free(&text);
}
