/* Records of machines that come with benanza: perfdb/reference/NAME.jsonl[.zst]. */
#include "base/folder.h"
#include "perfdb/perfdb.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
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

static int is_reference(const struct dirent *e)
{
    return name_length(e->d_name) > 0;
}

/* Returns how many there are. */
static int list_references(char folder[BZ_FOLDER_MAX], struct dirent ***files)
{
    *files = NULL;
    int found = bz_folder_bundled("perfdb/reference", folder) ? scandir(folder, files, is_reference, alphasort) : 0;
    return found > 0 ? found : 0;
}

/* A name selects among the files that are there; it never becomes a path. */
int bz_perfdb_reference(const char *name, char *path, size_t size, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    struct dirent **files;
    int n = list_references(folder, &files);
    bool found = false;
    BZ_SCOPED(bz_buf) known = {0};
    for (int i = 0; i < n; i++) {
        size_t length = name_length(files[i]->d_name);
        bz_buf_puts(&known, i ? ", " : "it comes with those of ");
        bz_buf_put(&known, files[i]->d_name, length);
        if (!found && length == strlen(name) && !memcmp(files[i]->d_name, name, length)) {
            snprintf(path, size, "%s/%s", folder, files[i]->d_name);
            found = true;
        }
        free(files[i]);
    }
    free(files);
    if (!found)
        bz_fail(err, BZ_USAGE, "--reference: this benanza has no records of '%s': %s", name,
                n ? bz_buf_text(&known) : "it comes with none yet");
    return found ? 0 : -1;
}
