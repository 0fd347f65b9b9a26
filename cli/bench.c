/* benanza bench: benchmarks of single problems. The program benanza-bench does it, which knows the libraries; this process
 * becomes it, so that its output, its exit status and signals are the caller's own. */
#include "bench/bench.h"
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int run_bench(int argc, char **argv)
{
    char path[3100];
    bz_error err;
    (void)argc;
    argv[0] = (char *)"benanza bench"; /* what its --help calls it */
    if (!bz_bench_find(path, sizeof path, &err)) {
        execv(path, argv);
        bz_fail(&err, BZ_FAILED, "%s: cannot be run: %s", path, strerror(errno));
    }
    return bz_report(&bz_command_bench, &err);
}

const bz_command bz_command_bench = {.name = "bench",
                                     .arguments = "[OPTIONS] PROBLEM...",
                                     .summary = "benchmark single problems, and print a JSON line for each variant",
                                     .run = run_bench};
