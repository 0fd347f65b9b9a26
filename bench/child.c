/* Programs that run for us: started, told to end, waited for. */
#include "bench/child.h"

#include "base/keeper.h"
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int STOPPING[BZ_CHILD_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction released[BZ_CHILD_SIGNALS];
static bool held;
static volatile sig_atomic_t stopped; /* the signal that came, or 0 */
static volatile sig_atomic_t running; /* what it is passed on to: a process, a group where negative, or 0 */

static void stop(int signal_number)
{
    int why = errno;
    stopped = signal_number;
    if (running)
        kill(running, SIGTERM);
    errno = why;
}

void bz_child_catch(struct sigaction old[BZ_CHILD_SIGNALS])
{
    struct sigaction action = {.sa_handler = stop};
    for (int i = 0; i < BZ_CHILD_SIGNALS; i++)
        if (!sigaction(STOPPING[i], NULL, &old[i]) && old[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(STOPPING[i], &action, NULL);
}

void bz_child_uncatch(const struct sigaction old[BZ_CHILD_SIGNALS])
{
    for (int i = 0; i < BZ_CHILD_SIGNALS; i++)
        sigaction(STOPPING[i], &old[i], NULL);
}

void bz_bench_hold(void)
{
    bz_child_catch(released);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that bz_child_wait can wait for all of a group */
    held = true;
}

bool bz_bench_stopped(void)
{
    return stopped;
}

void bz_bench_release(void)
{
    bz_child_uncatch(released);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    held = false;
    if (stopped)
        raise(stopped);
}

int bz_child_stopped(void)
{
    int by = stopped;
    stopped = 0;
    return by;
}

/* Our environment with BENANZA_PARENT: our benchmarks end with us, even where a kill -9 comes before the keeper knows of them. */
static char **environment(char parent[40])
{
    int n = 0;
    while (environ[n])
        n++;
    char **all = bz_alloc((size_t)n + 2, sizeof *all);
    snprintf(parent, 40, "BENANZA_PARENT=%ld", (long)getpid());
    all[0] = parent;
    memcpy(all + 1, environ, ((size_t)n + 1) * sizeof *all);
    return all;
}

int bz_child_start(pid_t *child, char *const *argv, bool group, const bz_child_file *file, int n_files, bz_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int why = stopped ? EINTR : 0;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < n_files && !why; i++)
        why = posix_spawn_file_actions_adddup2(&actions, file[i].ours, file[i].its);
    posix_spawnattr_init(&attributes);
    if (group && held)
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    char parent[40], **env = environment(parent);
    bz_keeper_start();
    if (!why)
        why = posix_spawnp(child, argv[0], &actions, &attributes, argv, env);
    free(env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (why)
        return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s%s", argv[0], strerror(why),
                       why == EACCES ? ": is its file system mounted noexec? Then set TMPDIR to a folder on another"
                                     : "");
    running = group && held ? -*child : *child;
    bz_keeper_program(running);
    if (stopped) /* before we knew whom to tell */
        kill(running, SIGTERM);
    return 0;
}

int bz_child_wait(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    /* What it started has been told, too, in groups of its own where ninja built: for two seconds, that it writes no more. */
    for (int i = 0; stopped && running < 0 && i < 200; i++) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0 && errno == ECHILD)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    bz_keeper_forget_program(running);
    running = 0;
    return status;
}

static int read_all(int fd, bz_buf *out)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bz_buf_put(out, chunk, (size_t)n);
    }
    return 0;
}

int bz_bench_program(char *const *argv, bool complaints, bz_buf *out, bz_error *err)
{
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC))
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    const bz_child_file to[] = {{ends[1], STDOUT_FILENO}, {ends[1], STDERR_FILENO}};
    int failed = bz_child_start(&child, argv, true, to, complaints ? 2 : 1, err);
    close(ends[1]);
    bool bad = !failed && read_all(ends[0], out);
    close(ends[0]);
    if (failed)
        return -1;
    int status = bz_child_wait(child);
    return bad || !WIFEXITED(status) || WEXITSTATUS(status);
}

int bz_bench_output(char *const *argv, bz_buf *out, bz_error *err)
{
    int result = bz_bench_program(argv, false, out, err);
    return result > 0 ? bz_fail(err, BZ_FAILED, "%s did not say what the machine is", argv[0]) : result;
}
