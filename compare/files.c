/* Sides of a comparison that are files: told apart by their content, and read. */
#include "base/open.h"
#include "base/whole.h"
#include "compare/compare.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 4096, LIMIT = 1 << 28 };

static void read_head(const char *path, char head[HEAD + 1])
{
    FILE *f = bz_open_input_file(path, NULL);
    head[f ? fread(head, 1, HEAD, f) : 0] = 0;
    if (f)
        fclose(f);
}

static const char *skip(const char *text, const char *word)
{
    text += strspn(text, " \t\r\n");
    return strncmp(text, word, strlen(word)) != 0 ? NULL : text + strlen(word);
}

/* What follows {"NAME":, with any space between; NULL where the text begins otherwise. */
static const char *behind_first(const char *head, const char *name)
{
    head = skip(head, "{");
    head = head ? skip(head, name) : NULL;
    return head ? skip(head, ":") : NULL;
}

bz_side_kind bz_side_kind_of(const char *name, bz_trace **trace, bz_error *why)
{
    char head[HEAD + 1];
    struct stat st;
    *trace = NULL;
    *why = (bz_error){0};
    if (stat(name, &st) || !S_ISREG(st.st_mode) || access(name, R_OK)) /* a pipe's beginning can be looked at once */
        return BZ_SIDE_RECORDS;
    read_head(name, head);
    const char *record = behind_first(head, "\"record\"");
    if (record && skip(record, "\"analysis\""))
        return BZ_SIDE_REPORT;
    if (record || behind_first(head, "\"v\"") || behind_first(head, "\"context\"")) /* an export; of Google Benchmark */
        return BZ_SIDE_RECORDS;
    *trace = bz_trace_new();
    if (!bz_profile_read(*trace, name, why))
        return BZ_SIDE_PROFILE;
    bz_trace_free(*trace);
    *trace = NULL;
    return BZ_SIDE_RECORDS;
}

/* A name with a point or a slash is that of a file, but for a system with its stack: v100@cudnn7.6.3. */
static bool is_missing_file(const char *name, bz_error *err)
{
    if (!strpbrk(name, "./") || strchr(name, '@') || !access(name, F_OK))
        return false;
    int file = bz_open_input(name, err);
    if (file >= 0)
        close(file);
    return file < 0;
}

int bz_sides_kind(const char *const name[2], bz_trace *trace[2], bz_side_kind *kind, bz_error *err)
{
    static const char *const KINDS[] = {"records", "a profile", "a report"};
    bz_side_kind is[2];
    bz_error why[2];
    for (int i = 0; i < 2; i++)
        is[i] = bz_side_kind_of(name[i], &trace[i], &why[i]);
    *kind = is[0];
    if (is[0] == is[1])
        return 0;
    for (int i = 0; i < 2; i++)
        if (*why[i].text)
            return bz_fail(err, BZ_BAD_INPUT, "%s", why[i].text);
    for (int i = 0; i < 2; i++)
        if (is_missing_file(name[i], err))
            return -1;
    return bz_fail(err, BZ_USAGE, "%s is %s and %s is %s: compare like with like", name[0], KINDS[is[0]], name[1],
                   KINDS[is[1]]);
}

int64_t bz_side_until(char *name)
{
    char *colon = strrchr(name, ':');
    struct tm tm = {0};
    char *end = colon ? strptime(colon + 1, "%Y-%m-%d", &tm) : NULL;
    if (!end || *end)
        return INT64_MAX;
    *colon = 0;
    return (int64_t)timegm(&tm) + 86399;
}

static int compare_profiles(bz_trace *const trace[2], const char *iterations, bz_arena *arena, bz_compare_set *out,
                            bz_error *err)
{
    for (int i = 0; i < 2; i++)
        if (bz_trace_finish(trace[i], &(bz_finish_options){.iterations = iterations}, err))
            return -1;
    return bz_compare_profiles(trace[0], trace[1], arena, out, err);
}

static int compare_reports(const char *const path[2], bz_arena *arena, bz_compare_set *out, bz_error *err)
{
    bz_report_file *file[2] = {NULL, NULL};
    int failed = 0;
    for (int i = 0; i < 2 && !failed; i++) {
        BZ_SCOPED(bz_buf) text = {0};
        failed = bz_whole_read(path[i], LIMIT, "is longer than 256 MB: no report", &text, err) ||
                 bz_report_read(bz_buf_text(&text), text.len, path[i], arena, &file[i], err);
    }
    return failed ? -1 : bz_compare_reports(file[0], file[1], arena, out, err);
}

int bz_compare_files(const char *const path[2], bz_trace *const trace[2], const char *iterations, bz_arena *arena,
                     bz_compare_set *out, bz_error *err)
{
    if (trace[0] ? compare_profiles(trace, iterations, arena, out, err) : compare_reports(path, arena, out, err))
        return -1;
    out->name_a = path[0];
    out->name_b = path[1];
    return 0;
}

int bz_side_import(const char *path, const bz_perfdb_options *options, bz_arena *arena, bz_perfdb **db,
                   const bz_system **system, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    bz_perfdb_import_report report;
    const bz_system **list;
    size_t n;
    if (bz_folder_make(folder, err))
        return bz_fail_in(err, "%s", path);
    int rc = bz_perfdb_open(db, folder, options, err);
    bz_folder_remove(folder);
    if (rc || bz_perfdb_import(*db, path, NULL, &report, err) || bz_perfdb_systems(*db, arena, &list, &n, err))
        return -1;
    if (!n)
        return bz_fail(err, BZ_BAD_INPUT, "%s: holds no record: did what should write it end early?", path);
    if (n != 1)
        return bz_fail(err, BZ_BAD_INPUT, "%s: holds records of %zu systems, where one is wanted", path, n);
    *system = list[0];
    return 0;
}
