/* A folder in memory that lives as long as the target. */
#ifndef BZ_FUZZ_FOLDER_H
#define BZ_FUZZ_FOLDER_H

#include "base/folder.h"

#include <stdlib.h>

static char fuzz_path[] = "/dev/shm/fuzz.XXXXXX";

static void fuzz_folder_end(void)
{
    bz_folder_remove(fuzz_path);
}

static const char *fuzz_folder(void)
{
    static bool made;
    if (!made) {
        if (!mkdtemp(fuzz_path))
            abort();
        atexit(fuzz_folder_end);
        made = true;
    }
    return fuzz_path;
}

#endif
