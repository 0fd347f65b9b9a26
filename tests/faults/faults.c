/* Loaded into a program (LD_PRELOAD), makes one call fail: BENANZA_FAULT=CLASS:N is the N-th call of that class after main()
 * begins, in that process alone; of the clock in each process that it starts, too. CLASS is
 *
 *   alloc  malloc, calloc, realloc and their like: no memory
 *   open   open, fopen, mmap of a file: EIO, ENOMEM
 *   read   read, pread, fread, fgets, getline: EIO
 *   write  write, pwrite, writev, fwrite, fputs, fflush, fclose, ftruncate, fsync, rename: ENOSPC (standard error is left alone)
 *   short  read and write by the system's calls: one byte of many
 *   again  the same, interrupted by a signal: EINTR
 *   clock  from that look at it on, the clock of the day is a day ahead
 *   back   and here an hour behind
 *   cut    a file below $TMPDIR that is opened or mapped to be read loses its second half then
 *
 * "CLASS+:N": that call and all behind it. With N = 0 nothing fails; BENANZA_FAULT_COUNT=FILE takes how many calls there were, in
 * the order above. Calls that the C library makes within itself are not seen. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef enum { ALLOC, OPEN, READ, WRITE, SHORT, AGAIN, CLOCK, BACK, CUT, N_CLASSES } fault;

static struct {
    fault class;
    long n, count[N_CLASSES];
    bool on, all;
    pid_t pid;
    const char *report;
} state;

/* Whether the call that is made now is the one. Children have their own fate, but the clock is the same for all. */
static bool strikes(fault class)
{
    if (!state.on || (class != ALLOC && class != CLOCK && class != BACK && getpid() != state.pid))
        return false;
    long now = __atomic_add_fetch(&state.count[class], 1, __ATOMIC_RELAXED);
    if (class != state.class || !state.n || now < state.n || (now > state.n && !state.all))
        return false;
    return class != ALLOC || getpid() == state.pid;
}

static void report(void)
{
    FILE *f = state.report && getpid() == state.pid ? fopen(state.report, "w") : NULL;
    state.on = false;
    for (int i = 0; f && i < N_CLASSES; i++)
        fprintf(f, "%ld\n", state.count[i]);
    if (f)
        fclose(f);
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const NAMES[N_CLASSES] = {"alloc", "open",  "read", "write", "short",
                                                 "again", "clock", "back", "cut"};
    const char *asked = getenv("BENANZA_FAULT");
    if (!asked)
        return;
    size_t length = strcspn(asked, "+:");
    for (int i = 0; i < N_CLASSES; i++)
        if (strlen(NAMES[i]) == length && !strncmp(asked, NAMES[i], length))
            state.class = (fault)i;
    state.all = asked[length] == '+';
    state.n = atol(asked + length + state.all + 1);
    state.report = getenv("BENANZA_FAULT_COUNT");
    state.pid = getpid();
    char self[16];
    snprintf(self, sizeof self, "%d", (int)state.pid);
    setenv("BENANZA_FAULT_PROCESS", self,
           0); /* another program in the same process begins to count anew; a child finds its parent here */
    state.on = state.class == CLOCK || state.class == BACK || !strcmp(getenv("BENANZA_FAULT_PROCESS"), self);
    if (state.report && state.on)
        atexit(report);
}

#define REAL(name) ((__typeof__(&name))(intptr_t)real(#name))
static void *real(const char *name)
{
    bool on = state.on;
    state.on = false; /* the loader may need memory to look */
    void *f = dlsym(RTLD_NEXT, name);
    state.on = on;
    return f;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static bool no_memory(void)
{
    if (!strikes(ALLOC))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return no_memory() ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t to, size_t size)
{
    return no_memory() ? NULL : __libc_memalign(to, size);
}

void *aligned_alloc(size_t to, size_t size)
{
    return memalign(to, size);
}

int posix_memalign(void **out, size_t to, size_t size)
{
    if (no_memory())
        return ENOMEM;
    *out = __libc_memalign(to, size);
    return *out ? 0 : ENOMEM;
}

static bool fails(fault class, int code)
{
    if (!strikes(class))
        return false;
    errno = code;
    return true;
}

/* Returns what it is given: a file descriptor. */
static int cuts(int fd, int flags)
{
    char link[40], path[PATH_MAX];
    const char *below = getenv("TMPDIR");
    struct stat st;
    if (fd < 0 || (flags & O_ACCMODE) != O_RDONLY || !below)
        return fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    if (!strncmp(path, below, strlen(below)) && path[strlen(below)] == '/' && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
        strikes(CUT) && truncate(path, st.st_size / 2))
        fprintf(stderr, "%s: cannot be cut\n", path);
    return fd;
}

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;                                              \
        va_end(args);                                                                                                  \
        return fails(OPEN, EIO) ? -1 : cuts(REAL(name)(path, flags, mode), flags);                                     \
    }
OPENS(open)
OPENS(open64)

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return fails(OPEN, EIO) ? -1 : cuts(REAL(openat)(at, path, flags, mode), flags);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(OPEN, EIO) ? NULL : REAL(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fails(OPEN, EIO) ? NULL : REAL(fopen64)(path, mode);
}

#define MAPS(name, offset_type)                                                                                        \
    void *name(void *at, size_t size, int protection, int flags, int fd, offset_type offset)                           \
    {                                                                                                                  \
        void *map = fd >= 0 && fails(OPEN, ENOMEM) ? MAP_FAILED : REAL(name)(at, size, protection, flags, fd, offset); \
        cuts(fd, protection &PROT_WRITE ? O_RDWR : O_RDONLY);                                                          \
        return map;                                                                                                    \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

/* How much of `size` a call may move; -1: it fails. */
static ssize_t allowed(fault class, int fd, size_t size, int code)
{
    if (fd == STDERR_FILENO)
        return (ssize_t)size;
    if (fails(class, code) || fails(AGAIN, EINTR))
        return -1;
    return size > 1 && strikes(SHORT) ? 1 : (ssize_t)size;
}

#define MOVES(name, class, pointer, code)                                                                              \
    ssize_t name(int fd, pointer buffer, size_t size)                                                                  \
    {                                                                                                                  \
        ssize_t n = allowed(class, fd, size, code);                                                                    \
        return n < 0 ? -1 : REAL(name)(fd, buffer, (size_t)n);                                                         \
    }
#define MOVES_AT(name, class, pointer, offset, code)                                                                   \
    ssize_t name(int fd, pointer buffer, size_t size, offset at)                                                       \
    {                                                                                                                  \
        ssize_t n = allowed(class, fd, size, code);                                                                    \
        return n < 0 ? -1 : REAL(name)(fd, buffer, (size_t)n, at);                                                     \
    }
MOVES(read, READ, void *, EIO)
MOVES(write, WRITE, const void *, ENOSPC)
MOVES_AT(pread, READ, void *, off_t, EIO)
MOVES_AT(pread64, READ, void *, off64_t, EIO)
MOVES_AT(pwrite, WRITE, const void *, off_t, ENOSPC)
MOVES_AT(pwrite64, WRITE, const void *, off64_t, ENOSPC)

ssize_t writev(int fd, const struct iovec *list, int n)
{
    return fails(WRITE, ENOSPC) ? -1 : REAL(writev)(fd, list, n);
}

ssize_t pwritev(int fd, const struct iovec *list, int n, off_t at)
{
    return fails(WRITE, ENOSPC) ? -1 : REAL(pwritev)(fd, list, n, at);
}

#define SETTLES(name, parameters, arguments)                                                                           \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return fails(WRITE, ENOSPC) ? -1 : REAL(name) arguments;                                                       \
    }
SETTLES(fsync, (int fd), (fd))
SETTLES(fdatasync, (int fd), (fd))
SETTLES(ftruncate, (int fd, off_t size), (fd, size))
SETTLES(ftruncate64, (int fd, off64_t size), (fd, size))
SETTLES(rename, (const char *from, const char *to), (from, to))
SETTLES(mkdir, (const char *path, mode_t mode), (path, mode))

/* As gnulib's fseterr does it. */
static bool stream_fails(fault class, FILE *f, int code)
{
    if (f == stderr || !fails(class, code))
        return false;
    f->_flags |= 0x20;
    return true;
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    return stream_fails(WRITE, f, ENOSPC) ? 0 : REAL(fwrite)(data, size, n, f);
}

int fputs(const char *text, FILE *f)
{
    return stream_fails(WRITE, f, ENOSPC) ? EOF : REAL(fputs)(text, f);
}

int fflush(FILE *f)
{
    return f && stream_fails(WRITE, f, ENOSPC) ? EOF : REAL(fflush)(f);
}

int fclose(FILE *f)
{
    bool failed = f != stderr && fails(WRITE, ENOSPC);
    int closed = REAL(fclose)(f);
    errno = failed ? ENOSPC : errno;
    return failed ? EOF : closed;
}

size_t fread(void *data, size_t size, size_t n, FILE *f)
{
    return stream_fails(READ, f, EIO) ? 0 : REAL(fread)(data, size, n, f);
}

char *fgets(char *out, int size, FILE *f)
{
    return stream_fails(READ, f, EIO) ? NULL : REAL(fgets)(out, size, f);
}

ssize_t getline(char **line, size_t *room, FILE *f)
{
    return stream_fails(READ, f, EIO) ? -1 : REAL(getline)(line, room, f);
}

ssize_t getdelim(char **line, size_t *room, int end, FILE *f)
{
    return stream_fails(READ, f, EIO) ? -1 : REAL(getdelim)(line, room, end, f);
}

/* Seconds by which the clock of the day is off by now. */
static time_t jump(void)
{
    static bool ahead, behind;
    ahead |= strikes(CLOCK);
    behind |= strikes(BACK);
    return ahead ? 86400 : behind ? -3600 : 0;
}

int clock_gettime(clockid_t which, struct timespec *t)
{
    int rc = REAL(clock_gettime)(which, t);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)
        t->tv_sec += jump();
    return rc;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
