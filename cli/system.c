/* benanza system: what this machine is. The libraries that know live in the program benanza-bench, which is
 * run for it: benanza itself stays light. */
#include "cli/cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program: $BENANZA_BENCH, beside benanza (build tree), or in libexec (installed). */
static int find_bench(char *out, size_t size, bz_error *err)
{
    char folder[3000];
    const char *given = getenv("BENANZA_BENCH");
    if (given && *given) {
        snprintf(out, size, "%s", given);
    } else {
        ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
        folder[n > 0 ? n : 0] = 0;
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = 0;
        snprintf(out, size, "%s/benanza-bench", folder);
        if (access(out, X_OK))
            snprintf(out, size, "%s/../libexec/benanza/benanza-bench", folder);
    }
    if (!access(out, X_OK))
        return 0;
    return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s; install benanza's runtime, or set BENANZA_BENCH", out,
                   strerror(errno));
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

/* Runs the program and takes what it prints. */
static int run_bench(char *const *argv, bz_buf *out, bz_error *err)
{
    int ends[2], status = 0;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends))
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int why = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    bool bad = !why && read_all(ends[0], out);
    close(ends[0]);
    if (why)
        return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s", argv[0], strerror(why));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (bad || !WIFEXITED(status) || WEXITSTATUS(status))
        return bz_fail(err, BZ_FAILED, "%s did not say what the machine is", argv[0]);
    return 0;
}

static int run(int argc, char **argv)
{
    bool json = false, measure = false;
    int64_t threads = 1;
    const bz_option options[] = {
        {"json", BZ_OPTION_FLAG, &json, NULL, "one JSON line, as records of this system refer to it"},
        {"measure", BZ_OPTION_FLAG, &measure, NULL, "measure peak rates, bandwidths and the cost of an empty call too"},
        {"threads", BZ_OPTION_INT, &threads, "N", "threads to measure with (1)"},
        {0},
    };
    bz_error err = {0};
    bz_list arguments = {0};
    bz_buf out = {0};
    char path[3100], count[24];
    int result = bz_options_parse(&bz_command_system, options, argc, argv, &arguments, &err);
    if (!result && arguments.n)
        result = bz_fail(&err, BZ_USAGE, "takes no arguments, not '%s'", arguments.item[0]);
    if (!result)
        result = find_bench(path, sizeof path, &err);
    if (!result) {
        char *bench[8] = {path, "--system"};
        int n = 2;
        snprintf(count, sizeof count, "%lld", (long long)(threads ? threads : 1));
        bench[n++] = "--threads";
        bench[n++] = count;
        if (measure)
            bench[n++] = "--measure";
        if (!json)
            bench[n++] = "--text";
        result = run_bench(bench, &out, &err);
    }
    if (!result)
        result = bz_output(NULL, &out, &err);
    bz_list_free(&arguments);
    bz_buf_free(&out);
    return result < 0 ? bz_report(&bz_command_system, &err) : BZ_OK;
}

const bz_command bz_command_system = {
    .name = "system",
    .arguments = "[--json] [--measure]",
    .summary = "what this machine is",
    .run = run,
};
