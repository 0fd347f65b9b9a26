/* The original tool's files, through the whole import into a database in memory. */
#include "tests/fuzz/database.h"
#include "tests/fuzz/fuzz.h"

/* All that the database holds by now. */
static void say_content(bz_perfdb *db)
{
    bz_error err;
    size_t records;
    char part[4096];
    int fd = memfd_create("export", MFD_CLOEXEC);
    if (fd < 0 || bz_perfdb_export(db, &(bz_perfdb_filter){0}, fd, false, &records, &err) || lseek(fd, 0, SEEK_SET))
        abort();
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
        SAW(part, (size_t)n);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err;
    bz_perfdb_import_report report;
    char path[64];
    bz_perfdb *db = fuzz_database();
    int fd = fuzz_file(data, size, path);
    if (!bz_perfdb_import(db, path, NULL, &report, &err) && report.bad > report.lines)
        abort();
    close(fd);
    if (fuzz_saw)
        say_content(db);
    return 0;
}
