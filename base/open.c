#include "base/open.h"

#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds until a pipe must have a writer: a shell opens it before it starts the program. */
enum { PATIENCE = 5000 };

/* Whether somebody has the other end of a pipe, who may still be busy with what he is going to write. Nothing is taken out. */
static bool has_writer(int fd)
{
    int other[2];
    if (pipe2(other, O_CLOEXEC))
        return true;
    ssize_t n = tee(fd, other[1], 1, SPLICE_F_NONBLOCK);
    close(other[0]);
    close(other[1]);
    return n != 0;
}

/* What keeps it from being read to its end; NULL: nothing. */
static const char *obstacle(int fd, const struct stat *st)
{
    bool device = S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode), null = device && st->st_rdev == makedev(1, 3);
    if (device && !null && !isatty(fd))
        return "is a device: give a file";
    if (S_ISFIFO(st->st_mode) && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, PATIENCE) == 0 &&
        !has_writer(fd))
        return "is a pipe that nobody writes to";
    return NULL;
}

int bz_open_input(const char *path, bz_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        bz_path_fail(path, "cannot be opened", errno, err);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    const char *odd = obstacle(fd, &st);
    if (odd) {
        close(fd);
        return bz_fail(err, BZ_BAD_INPUT, "%s: %s", path, odd);
    }
    if (!S_ISREG(st.st_mode)) /* from here on it waits for what comes */
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int bz_open_output(const char *path, int flags, bz_error *err)
{
    enum { LOOKS = 250, PAUSE = PATIENCE / LOOKS * 1000000 };
    struct stat st;
    bool pipe = !stat(path, &st) && S_ISFIFO(st.st_mode);
    int fd, more = O_WRONLY | O_CLOEXEC | O_NOCTTY | (pipe ? O_NONBLOCK : 0);
    for (int i = 0; (fd = open(path, flags | more, 0666)) < 0 && pipe && errno == ENXIO && i < LOOKS; i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    if (fd < 0 && pipe && errno == ENXIO)
        return bz_fail(err, BZ_FAILED, "%s: is a pipe that nobody reads", path);
    if (fd < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    if (pipe)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

FILE *bz_open_input_file(const char *path, bz_error *err)
{
    int fd = bz_open_input(path, err);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) {
        bz_path_fail(path, "cannot be opened", errno, err);
        close(fd);
    }
    return f;
}
