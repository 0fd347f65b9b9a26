#include "base/keeper.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    enum { KEEP, FORGET } what;
    pid_t program; /* 0: a path */
    char path[BZ_FOLDER_MAX];
} message;

typedef struct {
    message *list;
    size_t n, cap;
} belongings;

static int to_keeper = -1; /* one end of the line to it */
static pid_t owner;        /* who started it: after fork() a child has a line, but nothing of its own */

static void take(belongings *b, const message *m)
{
    if (m->what == KEEP) {
        if (b->n == b->cap)
            b->list = bz_realloc(b->list, b->cap = b->cap ? 2 * b->cap : 16, sizeof *b->list);
        b->list[b->n++] = *m;
        return;
    }
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].program == m->program && !strcmp(b->list[i].path, m->path)) {
            b->list[i] = b->list[--b->n];
            return;
        }
}

/* Sends a signal to all programs; returns whether any is there still. */
static bool tell(const belongings *b, int signal_number)
{
    bool any = false;
    for (size_t i = 0; i < b->n; i++)
        any |= b->list[i].program && !kill(b->list[i].program, signal_number);
    return any;
}

/* A program that dies, or one of its own, may still write there. */
static void remove_folder(const char *path)
{
    for (int i = 0; i < 500; i++) {
        bz_folder_remove(path);
        if (access(path, F_OK))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static void clean_up(const belongings *b)
{
    tell(b, SIGTERM);
    for (int i = 0; i < 100 && tell(b, 0); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tell(b, SIGKILL);
    for (size_t i = 0; i < b->n; i++)
        if (!b->list[i].program)
            remove_folder(b->list[i].path);
}

/* `of` is a handle of the process whose things they are, which can be read from when it is dead; -1 on kernels before 5.3. */
static _Noreturn void keep(int line, int of)
{
    belongings b = {0};
    message m;
    setsid(); /* a terminal's Ctrl-C is not meant for us */
    prctl(PR_SET_NAME, "benanza-keeper");
    line = fcntl(line, F_DUPFD, 5);
    of = of < 0 ? -1 : fcntl(of, F_DUPFD, 5);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    dup2(line, 3);
    of = of < 0 ? -1 : dup2(of, 4);
    close_range(of < 0 ? 4 : 5, ~0u, 0); /* nobody must wait for an end that we hold */
    (void)!chdir("/");
    /* The line ends with them, but a child of theirs may hold it open; where a kernel cannot tell of a process, it must do. */
    struct pollfd wait[] = {{.fd = 3, .events = POLLIN}, {.fd = of, .events = POLLIN}};
    for (ssize_t n = 1; n != 0;) {
        if (poll(wait, 2, -1) < 0)
            continue;
        n = recv(3, &m, sizeof m, MSG_DONTWAIT);
        if (n == (ssize_t)sizeof m)
            take(&b, &m);
        else if (n < 0 && errno == EAGAIN && wait[1].revents)
            break; /* all that was said is heard */
    }
    clean_up(&b);
    _exit(0);
}

/* A grandchild, so that nobody waits for it; nor is it to come back to us as to a subreaper. */
static void start(void)
{
    int line[2], reaper = 0;
    pid_t us = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line))
        return;
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    int of = (int)syscall(SYS_pidfd_open, us, 0);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            keep(line[0], of);
        _exit(0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    prctl(PR_SET_CHILD_SUBREAPER, reaper);
    close(line[0]);
    if (of >= 0)
        close(of);
    if (to_keeper >= 0)
        close(to_keeper);
    to_keeper = line[1];
    owner = us;
}

void bz_keeper_start(void)
{
    if (owner != getpid())
        start();
}

static void say(int what, pid_t program, const char *path)
{
    message m = {.what = what, .program = program};
    size_t n = strlen(path);
    if (n >= sizeof m.path)
        return;
    memcpy(m.path, path, n + 1);
    if (what == KEEP)
        bz_keeper_start();
    if (owner == getpid() && to_keeper >= 0)
        send(to_keeper, &m, sizeof m, MSG_NOSIGNAL);
}

/* The keeper stands elsewhere: it needs to know from the root, also of what is not there yet. */
static void say_path(int what, const char *path)
{
    BZ_SCOPED(bz_buf) from_root = {0};
    char here[BZ_FOLDER_MAX];
    if (*path != '/' && getcwd(here, sizeof here))
        bz_buf_printf(&from_root, "%s/", here);
    bz_buf_puts(&from_root, path);
    say(what, 0, bz_buf_text(&from_root));
}

void bz_keeper_path(const char *path)
{
    say_path(KEEP, path);
}

void bz_keeper_forget_path(const char *path)
{
    say_path(FORGET, path);
}

void bz_keeper_program(pid_t program)
{
    say(KEEP, program, "");
}

void bz_keeper_forget_program(pid_t program)
{
    say(FORGET, program, "");
}
