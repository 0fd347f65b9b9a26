/* The original tool's files, through the whole import into a database in memory. */
#include "tests/fuzz/database.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    return 0;
}
