/* Published tables of times, through the whole import into a database in memory. The models' folder does not exist. */
#include "predict/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bz_perfdb *db;
static char folder[] = "/dev/shm/fuzz_predict.XXXXXX";

static void clean_up(void)
{
    char path[64];
    bz_perfdb_close(db);
    snprintf(path, sizeof path, "%s/data.mdb", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/lock.mdb", folder);
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err;
    bz_perfdb_import_report report = {0};
    if (!db) {
        if (!mkdtemp(folder) || bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err))
            abort();
        atexit(clean_up);
    }
    int fd = memfd_create("input", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    bz_published_is(path);
    bz_published_import(db, path, "/nonesuch", "box", &report, &err);
    if (report.bad > report.lines)
        abort();
    close(fd);
    return 0;
}
