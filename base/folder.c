#include "base/folder.h"

#include "base/choice.h"
#include "base/keeper.h"
#include "base/sort.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What an installation keeps its data in, seen from the folder above its programs. A build whose place is another one says so. */
#ifndef BENANZA_DATADIR
#define BENANZA_DATADIR "share"
#endif

static int folder_of(const char *path)
{
    return mkdir(path, 0700);
}

static int file_of(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

bool bz_name_by_chance(char *name)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint8_t chance[6];
    char *end = name + strlen(name) - sizeof chance;
    if (getrandom(chance, sizeof chance, 0) != sizeof chance)
        return false;
    for (size_t i = 0; i < sizeof chance; i++)
        end[i] = LETTERS[chance[i] % (sizeof LETTERS - 1)];
    return true;
}

/* Another name for each that is taken, as mkdtemp(3) finds one; but its keeper knows of the name before the folder is there, for a kill -9 may
 * end us between the two. Nothing is there under that name when it is said, or its keeper would remove what is another's. Sets errno. */
static int make_kept(char *path, int (*made_by)(const char *path))
{
    struct stat st;
    for (int tries = 0; tries < 100 && bz_name_by_chance(path); tries++) {
        errno = EEXIST;
        if (!lstat(path, &st))
            continue;
        bz_keeper_path(path);
        int made = made_by(path), why = errno;
        if (made >= 0)
            return made;
        bz_keeper_forget_path(path);
        errno = why;
        if (why != EEXIST)
            break;
    }
    return -1;
}

static int make(char path[BZ_FOLDER_MAX], int (*made_by)(const char *path), bz_error *err)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, BZ_FOLDER_MAX, "%s/benanza-XXXXXX", base && *base ? base : "/tmp");
    int made = n < BZ_FOLDER_MAX ? make_kept(path, made_by) : -1, why = n < BZ_FOLDER_MAX ? errno : ENAMETOOLONG;
    return made >= 0
               ? made
               : bz_fail(err, BZ_FAILED, "%s: cannot be made: %s (TMPDIR names another place)", path, strerror(why));
}

int bz_folder_make_at(char *path)
{
    return make_kept(path, folder_of);
}

int bz_folder_make(char path[BZ_FOLDER_MAX], bz_error *err)
{
    return make(path, folder_of, err);
}

int bz_folder_file(char path[BZ_FOLDER_MAX], bz_error *err)
{
    return make(path, file_of, err);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void bz_folder_remove(const char *path)
{
    /* What is left, because there was no memory to walk, the keeper removes behind us. */
    if (!nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) || errno == ENOENT)
        bz_keeper_forget_path(path);
}

const char *bz_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int bz_folder_list(const char *folder, bool (*is)(const char *name), bz_arena *arena, const char ***names)
{
    const char **list = NULL;
    int n = 0;
    DIR *d = opendir(folder);
    *names = NULL;
    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir(d));)
        if (is ? is(e->d_name) : e->d_name[0] != '.')
            BZ_ARENA_ADD(arena, list, n) = bz_arena_str(arena, e->d_name);
    closedir(d);
    BZ_QSORT(list, n, by_name);
    *names = list;
    return n;
}

/* The entry of a folder that a typo most likely meant; false where there is none. */
static bool entry_meant(const char *folder, const char *typed, char out[BZ_FOLDER_MAX])
{
    enum { MOST = 10000 };
    BZ_FREED char **name = NULL;
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && n < MOST && (e = readdir(d));)
        if (e->d_name[0] != '.')
            BZ_ADD(name, n) = bz_copy(e->d_name);
    if (d)
        closedir(d);
    BZ_QSORT(name, n, by_name); /* of two that are as near the same one each time */
    const char *meant = bz_choice_meant(typed, (const char *const *)name, n);
    bool found = meant && snprintf(out, BZ_FOLDER_MAX, "%s", meant) < BZ_FOLDER_MAX;
    for (int i = 0; i < n; i++)
        free(name[i]);
    return found;
}

/* Another name in the path's folder, or the same name in a folder beside it: one mistake, not two. */
static bool path_meant(const char *path, char out[BZ_FOLDER_MAX])
{
    char folder[BZ_FOLDER_MAX], other[BZ_FOLDER_MAX];
    const char *file = bz_file_name(path);
    int n = (int)(file - path);
    if (!*file || n >= BZ_FOLDER_MAX)
        return false;
    snprintf(folder, sizeof folder, "%.*s", n, path);
    if (entry_meant(n ? folder : ".", file, other))
        return snprintf(out, BZ_FOLDER_MAX, "%s%s", folder, other) < BZ_FOLDER_MAX;
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    const char *last = bz_file_name(folder);
    int above = (int)(last - folder);
    char parent[BZ_FOLDER_MAX];
    snprintf(parent, sizeof parent, "%.*s", above, folder);
    return n > 1 && access(folder, F_OK) && entry_meant(above ? parent : ".", last, other) &&
           snprintf(out, BZ_FOLDER_MAX, "%s%s/%s", parent, other, file) < BZ_FOLDER_MAX && !access(out, F_OK);
}

int bz_path_fail(const char *path, const char *cannot, int why, bz_error *err)
{
    char meant[BZ_FOLDER_MAX];
    if (why == ENOENT && path_meant(path, meant))
        return bz_fail(err, BZ_BAD_INPUT, "%s: %s: %s: did you mean '%s'?", path, cannot, strerror(why), meant);
    return bz_fail(err, BZ_BAD_INPUT, "%s: %s: %s", path, cannot, strerror(why));
}

/* Where /proc is not mounted, the name that we were called by: a path, or a name that a shell found in $PATH. */
static ssize_t find_self(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *whole = n < 0 && strchr(program_invocation_name, '/') ? realpath(program_invocation_name, NULL) : NULL;
    if (whole && strlen(whole) < size) {
        n = (ssize_t)strlen(whole);
        memcpy(path, whole, (size_t)n);
    }
    free(whole);
    return n;
}

const char *bz_folder_program(char path[BZ_FOLDER_MAX])
{
    ssize_t n = find_self(path, BZ_FOLDER_MAX);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return path;
}

bool bz_folder_bundled(const char *name, char path[BZ_FOLDER_MAX])
{
    char self[BZ_FOLDER_MAX];
    const struct {
        const char *place, *name;
    } PLACES[] = {{"../" BENANZA_DATADIR "/benanza", bz_file_name(name)}, {"..", name}, {"../..", name}};
    bz_folder_program(self);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        if (snprintf(path, BZ_FOLDER_MAX, "%s/%s/%s", self, PLACES[i].place, PLACES[i].name) < BZ_FOLDER_MAX &&
            !access(path, X_OK))
            return true;
    return false;
}
