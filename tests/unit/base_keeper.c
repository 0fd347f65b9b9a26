/* What is left when a process is killed: nothing that it gave to the keeper, and everything that it took back. */
#include "base/base.h"
#include "base/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
