/* A database into a file, and from whatever holds one. */
#include "perfdb/store.h"

#include "base/whole.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_packed(const char *path)
{
    size_t n = strlen(path);
    return n >= 4 && !strcmp(path + n - 4, ".zst");
}

int bz_perfdb_export_file(bz_perfdb *db, const bz_perfdb_filter *filter, const char *path, size_t *records,
                          bz_error *err)
{
    bz_whole file;
    if (bz_whole_open(&file, path, err))
        return -1;
    int rc = bz_perfdb_export(db, filter, file.fd, is_packed(path), records, err);
    if (rc)
        bz_fail_in(err, "%s", path);
    return bz_whole_close(&file, !rc, err);
}

int bz_perfdb_salvage_file(const char *dir, const char *path, bz_perfdb_salvage_report *report, bz_error *err)
{
    bz_whole file;
    if (bz_whole_open(&file, path, err))
        return -1;
    int rc = bz_perfdb_salvage(dir, file.fd, is_packed(path), report, err);
    return bz_whole_close(&file, !rc, err);
}

int bz_perfdb_take(bz_perfdb *db, const char *path, bz_perfdb_import_report *report, bz_error *err)
{
    const bz_perfdb_options options = {.read_only = true, .warn = db->warn, .user = db->user};
    bz_perfdb *from;
    BZ_SCOPED(bz_buf) file = {0};
    struct stat st;
    *report = (bz_perfdb_import_report){0};
    if (!strcmp(path, "-") || stat(path, &st) || !S_ISDIR(st.st_mode))
        return bz_perfdb_import(db, path, NULL, report, err);
    if (bz_same_file(path, db->dir))
        return bz_fail(err, BZ_USAGE, "%s: is the database that is merged into", path);
    bz_buf_printf(&file, "%s/data.mdb", path);
    bool none = access(bz_buf_text(&file), F_OK) != 0;
    if (none)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is a folder that holds no database: name the files in it instead", path);
    if (bz_perfdb_open(&from, path, &options, err))
        return -1;
    int rc = bz_perfdb_merge(db, from, &report->count, err);
    report->records = report->lines = report->count.added + report->count.replaced + report->count.kept;
    bz_perfdb_close(from);
    return rc;
}
