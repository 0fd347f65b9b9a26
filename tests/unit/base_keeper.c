/* What is left when a process is killed: nothing that it gave to the keeper, and everything that it took back. */
#include "base/base.h"
#include "base/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char gone[BZ_FOLDER_MAX], stays[BZ_FOLDER_MAX];
    pid_t program, group, other;
} told;

static pid_t sleeper(bool own_group)
{
    pid_t child = fork();
    if (child == 0) {
        if (own_group)
            setpgid(0, 0);
        pause();
        _exit(0);
    }
    if (own_group)
        setpgid(child, child);
    return child;
}

static void own_and_wait(int out, bool subreaper)
{
    told t;
    bz_error err;
    prctl(PR_SET_CHILD_SUBREAPER, subreaper);
    if (bz_folder_make(t.gone, &err) || bz_folder_make(t.stays, &err))
        _exit(1);
    int still = -1;
    if (prctl(PR_GET_CHILD_SUBREAPER, &still) || still != subreaper) /* as it was before a keeper was started */
        _exit(1);
    bz_keeper_forget_path(t.stays);
    t.program = sleeper(false);
    t.group = sleeper(true);
    t.other = sleeper(false);
    bz_keeper_program(t.program);
    bz_keeper_program(-t.group);
    bz_keeper_program(t.other);
    bz_keeper_forget_program(t.other);
    char file[BZ_FOLDER_MAX + 8];
    snprintf(file, sizeof file, "%s/file", t.gone);
    FILE *f = fopen(file, "w");
    if (!f || fclose(f) || write(out, &t, sizeof t) != sizeof t)
        _exit(1);
    pause();
}

/* Whatever ended them buries them: here it is us. */
static bool ends(pid_t program)
{
    for (int i = 0; i < 500; i++) {
        if (waitpid(program, NULL, WNOHANG) == program)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static bool disappears(const char *path)
{
    struct stat st;
    for (int i = 0; i < 500; i++) {
        if (stat(path, &st))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static void nothing_is_left(void **state)
{
    (void)state;
    static const int BY[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < sizeof BY / sizeof *BY; i++) {
        int line[2], status;
        told t;
        assert_int_equal(pipe(line), 0);
        pid_t child = fork();
        if (child == 0) {
            signal(BY[i], SIG_DFL); /* under nohup, or behind a shell's &, it would be ignored */
            own_and_wait(line[1], i % 2);
        }
        close(line[1]);
        assert_int_equal(read(line[0], &t, sizeof t), sizeof t);
        close(line[0]);
        kill(child, BY[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == BY[i]);
        assert_true(ends(t.program));
        assert_true(ends(t.group));
        assert_true(disappears(t.gone));
        assert_int_equal(kill(t.other, 0), 0);
        struct stat st;
        assert_int_equal(stat(t.stays, &st), 0);
        bz_folder_remove(t.stays);
        kill(t.other, SIGKILL);
        assert_true(ends(t.other));
    }
}

static bool is_fatal; /* to make a folder is the last thing that a process does */

int mkdir(const char *path, mode_t mode)
{
    int made = mkdirat(AT_FDCWD, path, mode);
    if (is_fatal)
        raise(SIGKILL);
    return made;
}

/* kill -9 may come when the folder is there and nobody has said so yet; its name may be one from where we are. */
static void a_kill_meets_no_moment_between(void **state)
{
    (void)state;
    char base[] = "/tmp/benanza-test-XXXXXX", here[64];
    assert_non_null(mkdtemp(base)); /* by nobody who has a keeper */
    for (int relative = 0; relative < 2; relative++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            snprintf(here, sizeof here, "%s/of-XXXXXX", relative ? "." : base);
            is_fatal = true;
            _exit(relative && chdir(base) ? 2 : bz_folder_make_at(here));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        for (int i = 0; i < 500 && rmdir(base); i++) /* it goes when nothing is in it */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        assert_int_equal(mkdir(base, 0700), 0);
    }
    assert_int_equal(rmdir(base), 0);
}

/* The keeper of this process: it runs the same program under a name of its own. */
static pid_t our_keeper(void)
{
    char path[300], own[300] = "", exe[300], name[64];
    assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
    struct dirent *e;
    pid_t found = 0;
    DIR *all = opendir("/proc");
    while (!found && (e = readdir(all))) {
        snprintf(path, sizeof path, "/proc/%.20s/exe", e->d_name);
        ssize_t n = readlink(path, exe, sizeof exe - 1);
        snprintf(path, sizeof path, "/proc/%.20s/comm", e->d_name);
        FILE *f = n > 0 && n == (ssize_t)strlen(own) && !memcmp(exe, own, strlen(own)) ? fopen(path, "r") : NULL;
        if (f && fgets(name, sizeof name, f) && !strcmp(name, "benanza-keeper\n"))
            found = atoi(e->d_name);
        if (f)
            fclose(f);
    }
    closedir(all);
    return found;
}

/* A keeper keeps nothing busy: no folder, no terminal, no file or pipe of its process; one is enough; it ends with its process. */
static void a_keeper_holds_nothing(void **state)
{
    (void)state;
    int line[2], ask[2];
    char answer[2] = "";
    assert_int_equal(pipe(line), 0);
    assert_int_equal(pipe(ask), 0);
    pid_t child = fork();
    if (child == 0) {
        if (chdir("/proc")) /* from where the keeper goes away */
            _exit(1);
        bz_keeper_path("/nowhere/at/all");
        bz_keeper_start();
        bz_keeper_forget_path("/nowhere/at/all");
        _exit(write(line[1], "x", 1) != 1 || read(ask[0], answer, 1) != 1);
    }
    close(line[1]);
    assert_int_equal(read(line[0], answer, 1), 1);
    pid_t keeper = 0;
    for (int i = 0; i < 500 && !(keeper = our_keeper()); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(keeper > 0);
    char path[300], at[300], text[300];
    bool away = false;
    for (int i = 0; i < 500 && !away; i++) { /* it goes there behind its name */
        snprintf(path, sizeof path, "/proc/%d/cwd", keeper);
        away = readlink(path, at, sizeof at) == 1 && *at == '/';
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_true(away);
    assert_int_equal(getsid(keeper), keeper);
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", keeper, fd);
        ssize_t n = readlink(path, at, sizeof at - 1);
        snprintf(text, sizeof text, "%.*s", (int)(n > 0 ? n : 0), at);
        if (fd < 3)
            assert_string_equal(text, "/dev/null");
        else
            assert_true(fd == 3 ? !strncmp(text, "socket:", 7) : fd == 4 || n < 0);
    }
    close(line[0]);
    assert_int_equal(write(ask[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < 500 && our_keeper(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(our_keeper(), 0);
    close(ask[0]);
    close(ask[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left),
                                       cmocka_unit_test(a_kill_meets_no_moment_between),
                                       cmocka_unit_test(a_keeper_holds_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
