/* A file that is read: out of the kernel's cache, not out of it, and mapped. It lies in $TMPDIR, else in /var/tmp, which is on a
 * disk where /tmp often is in memory, and has no name. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

typedef struct file {
    int at;
    size_t size;
} file;

static int fill(int at, const char *x, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(at, x + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return fsync(at);
}

static int open_nameless(const char *folder)
{
    char path[4096];
    int at = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (at >= 0)
        return at;
    snprintf(path, sizeof path, "%s/benanza.XXXXXX", folder);
    at = mkostemp(path, O_CLOEXEC);
    if (at >= 0)
        unlink(path);
    return at;
}

int transfer_file_open(transfer *t, bz_error *err)
{
    const char *given = getenv("TMPDIR"), *folder = given && *given ? given : "/var/tmp";
    file *f = bz_alloc(1, sizeof *f);
    *f = (file){.at = open_nameless(folder), .size = t->plain->size[0]};
    t->own = f;
    if (f->at < 0 || fill(f->at, bz_plain_at(t->plain, 0, 0), f->size))
        return bz_fail(err, BZ_INCOMPLETE, "no file of %.3g MB in %s: %s", (double)f->size / 1e6, folder,
                       strerror(errno));
    return 0;
}

int transfer_file_open_direct(transfer *t, bz_error *err)
{
    struct statfs of;
    if (transfer_file_open(t, err))
        return -1;
    const file *f = t->own;
    if (fstatfs(f->at, &of) || of.f_type == TMPFS_MAGIC || of.f_type == RAMFS_MAGIC)
        return bz_fail(err, BZ_INCOMPLETE,
                       "the folder for temporary files lies in memory: set TMPDIR to one on a disk");
    return 0;
}

static int read_all(const file *f, char *y)
{
    for (size_t done = 0; done < f->size;) {
        ssize_t n = pread(f->at, y + done, f->size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

int transfer_file(transfer *t, int copy)
{
    return read_all(t->own, bz_plain_at(t->plain, 1, copy));
}

/* The time has the dropping in it, which is small beside a disk. */
int transfer_file_dropped(transfer *t, int copy)
{
    const file *f = t->own;
    return posix_fadvise(f->at, 0, 0, POSIX_FADV_DONTNEED) || read_all(f, bz_plain_at(t->plain, 1, copy));
}

static int map(const transfer *t, int copy, int flags)
{
    const file *f = t->own;
    void *from = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE | flags, f->at, 0);
    if (from == MAP_FAILED)
        return -1;
    memcpy(bz_plain_at(t->plain, 1, copy), from, f->size);
    return munmap(from, f->size);
}

int transfer_mapped(transfer *t, int copy)
{
    return map(t, copy, 0);
}

int transfer_mapped_populate(transfer *t, int copy)
{
    return map(t, copy, MAP_POPULATE);
}

void transfer_file_close(transfer *t)
{
    file *f = t->own;
    if (f && f->at >= 0)
        close(f->at);
    free(f);
}
