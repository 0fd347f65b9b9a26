/* Published tables of times, through the whole import into a database in memory. The models' folder does not exist. */
#include "predict/published.h"

#include "tests/fuzz/database.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err;
    bz_perfdb_import_report report = {0};
    char path[64];
    bz_perfdb *db = fuzz_database();
    int fd = fuzz_file(data, size, path);
    bz_published_is(path);
    bz_published_import(db, path, "/nonesuch", "box", &report, &err);
    if (report.bad > report.lines)
        abort();
    close(fd);
    return 0;
}
