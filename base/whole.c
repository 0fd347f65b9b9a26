#include "base/whole.h"

#include "base/arena.h"
#include "base/folder.h"
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(bz_whole *w, bz_error *err)
{
    return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", w->path, strerror(errno));
}

/* A file without a name is gone with us, whatever ends us; it gets one at the end. Some file systems have no such files. */
static int open_nameless(const char *target)
{
    bz_buf folder = {0};
    const char *slash = strrchr(target, '/');
    bz_buf_put(&folder, slash ? target : ".", slash ? (size_t)(slash - target) + 1 : 1);
    int fd = open(bz_buf_text(&folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bz_buf_free(&folder);
    return fd;
}

/* A file that is there gets its name at once, where nobody has it: then no moment leaves another. Else as mkostemp does, a name that nobody has. */
static bool name_part(bz_whole *w)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
    if (!linkat(AT_FDCWD, self, AT_FDCWD, w->target, AT_SYMLINK_FOLLOW)) {
        memcpy(w->part, w->target, strlen(w->target) + 1);
        return true;
    }
    for (int i = 0; i < 100 && bz_name_by_chance(w->part); i++) {
        if (!linkat(AT_FDCWD, self, AT_FDCWD, w->part, AT_SYMLINK_FOLLOW))
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static int open_part(bz_whole *w, bool named, bz_error *err)
{
    bz_buf part = {0};
    char behind_links[PATH_MAX];
    w->target = bz_copy(realpath(w->path, behind_links) ? behind_links : w->path);
    bz_buf_printf(&part, "%s.XXXXXX", w->target);
    w->fd = named ? -1 : open_nameless(w->target);
    w->nameless = w->fd >= 0;
    if (w->fd < 0)
        w->fd = mkostemp(part.data, O_CLOEXEC);
    if (w->fd >= 0) {
        w->part = part.data;
        return 0;
    }
    fail(w, err);
    bz_buf_free(&part);
    free(w->target);
    return -1;
}

/* Which of our own outputs goes into that file (/dev/stdout names such a one); -1. */
static int output_into(const struct stat *file)
{
    struct stat st;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (!fstat(fd, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino)
            return fd;
    return -1;
}

static int open_as(bz_whole *w, const char *path, bool named, bz_error *err)
{
    struct stat st;
    *w = (bz_whole){.path = path, .fd = -1};
    bool there = !stat(path, &st);
    int output = there ? output_into(&st) : -1;
    if (!there || (S_ISREG(st.st_mode) && output < 0))
        return open_part(w, named, err);
    if (output < 0)
        return (w->fd = bz_open_output(path, 0, err)) < 0 ? -1 : 0;
    w->fd = fcntl(output, F_DUPFD_CLOEXEC, 0);
    return w->fd < 0 ? fail(w, err) : 0;
}

int bz_whole_open(bz_whole *w, const char *path, bz_error *err)
{
    return open_as(w, path, false, err);
}

int bz_whole_open_named(bz_whole *w, const char *path, bz_error *err)
{
    return open_as(w, path, true, err);
}

int bz_whole_close(bz_whole *w, bool good, bz_error *err)
{
    mode_t mask = umask(0);
    umask(mask);
    int rc = good ? 0 : -1;
    if (!rc && w->part && (fchmod(w->fd, 0666 & ~mask) || fsync(w->fd)))
        rc = fail(w, err);
    if (!rc && w->nameless && !name_part(w))
        rc = fail(w, err);
    bool named = w->part && !(rc && w->nameless);
    if (close(w->fd) && !rc)
        rc = fail(w, err);
    if (!rc && w->part && rename(w->part, w->target))
        rc = fail(w, err);
    if (rc && named)
        unlink(w->part);
    free(w->part);
    free(w->target);
    return rc;
}

bool bz_write_all(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t some = write(fd, (const char *)data + done, n - done);
        if (some < 0 && errno != EINTR)
            return false;
        done += some > 0 ? (size_t)some : 0;
    }
    return true;
}

int bz_whole_write(const char *path, const bz_buf *text, bz_error *err)
{
    bz_whole w;
    if (bz_whole_open(&w, path, err))
        return -1;
    bool good = bz_write_all(w.fd, bz_buf_text(text), text->len);
    if (!good)
        fail(&w, err);
    return bz_whole_close(&w, good, err);
}

int bz_whole_read(const char *path, size_t limit, const char *too_long, bz_buf *out, bz_error *err)
{
    FILE *f = bz_open_input_file(path, err);
    char block[16384];
    size_t n, before = out->len;
    if (!f)
        return -1;
    while (out->len - before <= limit && (n = fread(block, 1, sizeof block, f)) > 0)
        bz_buf_put(out, block, n);
    bool bad = ferror(f) != 0;
    int why = errno;
    fclose(f);
    if (bad)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", path, strerror(why));
    return out->len - before > limit ? bz_fail(err, BZ_BAD_INPUT, "%s: %s", path, too_long) : 0;
}

bool bz_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool bz_unpacks_to_bomb(int64_t unpacked, int64_t packed, const char *path, bz_error *err)
{
    enum { FREE = 64 << 20, MOST_TIMES = 500 };
    return unpacked > FREE && unpacked / MOST_TIMES > packed &&
           bz_fail(err, BZ_BAD_INPUT,
                   "%s: unpacks to more than %d times its size, as no recording does: if you trust it, unpack it first",
                   path, MOST_TIMES);
}
