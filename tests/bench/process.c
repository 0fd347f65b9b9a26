/* bench_process RUNS COMMAND [ARG...]: a whole command, RUNS times after one warm-up. Prints one JSON
 * line: median wall time in milliseconds, and the most memory that any run had resident, in megabytes.
 * What the command prints is thrown away.
 *
 * The kernel counts what the parent had resident before exec as the child's, so whoever measures
 * small programs must be small itself: that is why this is no script. */
#include "base/progress.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_once(char **command, double *seconds, long *kilobytes)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    double start = bz_now();
    int failed = posix_spawnp(&pid, command[0], &actions, NULL, command, environ) || wait4(pid, &status, 0, &usage) < 0;
    *seconds = bz_now() - start;
    posix_spawn_file_actions_destroy(&actions);
    if (failed || !WIFEXITED(status) || WEXITSTATUS(status))
        return -1;
    *kilobytes = usage.ru_maxrss > *kilobytes ? usage.ru_maxrss : *kilobytes;
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[1]) : 0;
    if (runs < 1)
        return 2;
    double *seconds = calloc((size_t)runs, sizeof *seconds), ignored;
    long kilobytes = 0;
    for (int r = -1; r < runs; r++)
        if (run_once(argv + 2, r < 0 ? &ignored : &seconds[r], &kilobytes)) {
            fprintf(stderr, "%s failed\n", argv[2]);
            return 1;
        }
    qsort(seconds, (size_t)runs, sizeof *seconds, by_value);
    printf("{\"ms\": %.3f, \"mb\": %.1f}\n", seconds[runs / 2] * 1e3, (double)kilobytes / 1e3);
    free(seconds);
    return 0;
}
