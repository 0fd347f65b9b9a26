/* What importers are fuzzed with: a database in memory that lives as long as the target, and an input as a file. */
#ifndef BZ_FUZZ_DATABASE_H
#define BZ_FUZZ_DATABASE_H

#include "perfdb/perfdb.h"
#include "tests/fuzz/folder.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static bz_perfdb *fuzz_db;

static void fuzz_db_end(void)
{
    bz_perfdb_close(fuzz_db);
}

static bz_perfdb *fuzz_database(void)
{
    bz_error err;
    if (!fuzz_db) {
        if (bz_perfdb_open(&fuzz_db, fuzz_folder(), &(bz_perfdb_options){0}, &err))
            abort();
        atexit(fuzz_db_end);
    }
    return fuzz_db;
}

/* Returns the descriptor, to be closed. */
static int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

#endif
