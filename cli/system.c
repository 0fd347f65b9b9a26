/* benanza system: what this machine is. The libraries that know live in the program benanza-bench, which is
 * run for it: benanza itself stays light. */
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        result = bz_bench_find(path, sizeof path, &err);
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
        result = bz_bench_output(bench, &out, &err);
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
