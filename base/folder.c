#include "base/folder.h"

#include "base/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What an installation keeps its data in, seen from the folder above its programs. A build whose place is another one says so. */
#ifndef BENANZA_DATADIR
#define BENANZA_DATADIR "share"
#endif

static int folder_of(char *path)
{
    return mkdtemp(path) ? 0 : -1;
}

static int file_of(char *path)
{
    return mkostemp(path, O_CLOEXEC);
}

/* Sets errno. */
static int make_kept(char *path, int (*made_by)(char *path))
{
    sigset_t all, before;
    bz_keeper_start();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* no signal ends us between the folder and the word to its keeper */
    int made = made_by(path), why = errno;
    if (made >= 0)
        bz_keeper_path(path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return made;
}

static int make(char path[BZ_FOLDER_MAX], int (*made_by)(char *path), bz_error *err)
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

const char *bz_folder_program(char path[BZ_FOLDER_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, BZ_FOLDER_MAX - 1);
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
