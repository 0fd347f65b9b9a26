/* Records of machines that come with benanza: perfdb/reference/NAME.jsonl[.zst]. */
#include "base/folder.h"
#include "perfdb/perfdb.h"

#include <stdio.h>
#include <string.h>

/* The length of NAME in NAME.jsonl or NAME.jsonl.zst; 0 for other files. */
static size_t name_length(const char *file)
{
    static const char *const ENDINGS[] = {".jsonl", ".jsonl.zst"};
    size_t n = strlen(file);
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        size_t end = strlen(ENDINGS[i]);
        if (n > end && !strcmp(file + n - end, ENDINGS[i]))
            return n - end;
    }
    return 0;
}

static bool is_reference(const char *file)
{
    return name_length(file) > 0;
}

/* A name selects among the files that are there; it never becomes a path. */
int bz_perfdb_reference(const char *name, char *path, size_t size, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    BZ_SCOPED(bz_arena) arena = {0};
    const char **files;
    int n = bz_folder_bundled("perfdb/reference", folder) ? bz_folder_list(folder, is_reference, &arena, &files) : 0;
    bool found = false;
    BZ_SCOPED(bz_buf) known = {0};
    for (int i = 0; i < n; i++) {
        size_t length = name_length(files[i]);
        bz_buf_puts(&known, i ? ", " : "it comes with those of ");
        bz_buf_put(&known, files[i], length);
        if (!found && length == strlen(name) && !memcmp(files[i], name, length)) {
            snprintf(path, size, "%s/%s", folder, files[i]);
            found = true;
        }
    }
    if (!found)
        bz_fail(err, BZ_USAGE, "--reference: this benanza has no records of '%s': %s", name,
                n > 0 ? bz_buf_text(&known) : "it comes with none yet");
    return found ? 0 : -1;
}
