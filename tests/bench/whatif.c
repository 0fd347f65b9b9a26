/* bench_whatif TASKS [FILE]: a recording of one iteration of so many tasks, half of them launches and half kernels, as PyTorch's profiler
 * writes it. Prints the seconds of the processor that it takes to read it, to make the graph, to simulate it, and to predict one change and all changes that
 * apply; behind each the memory that the process had taken by then, at the most. FILE keeps the recording. */
#include "whatif/whatif.h"
#include "base/base.h"
#include "profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void write_recording(FILE *out, long n)
{
    static const struct {
        const char *name;
        int time;
    } KERNELS[] = {{"volta_scudnn_128x64_relu_interior_nn_v1", 9},
                   {"volta_sgemm_128x64_nn", 12},
                   {"void at::native::vectorized_elementwise_kernel<4>", 5},
                   {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", 8}};
    long end = 0;
    fprintf(out,
            "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"Tesla V100-SXM2-16GB\"}],"
            "\"traceEvents\":[\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,"
            "\"tid\":1,\"ts\":0,\"dur\":%ld}",
            10 * n + 100);
    for (long i = 0; i < n; i++) {
        long launch = 10 * (i + 1), start = launch + 6 > end + 1 ? launch + 6 : end + 1;
        end = start + KERNELS[i % 4].time;
        fprintf(out,
                ",\n{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"
                "\"ts\":%ld,\"dur\":5,\"args\":{\"correlation\":%ld}},\n{\"ph\":\"X\",\"cat\":\"kernel\","
                "\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%ld,\"dur\":%d,"
                "\"args\":{\"device\":0,\"stream\":7,\"correlation\":%ld}}",
                launch, i + 1, KERNELS[i % 4].name, start, KERNELS[i % 4].time, i + 1);
    }
    fprintf(out, "\n]}\n");
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void tell(const char *what, double *since)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double now = seconds(used.ru_utime) + seconds(used.ru_stime);
    if (what)
        printf("%-12s %6.3f s %4ld MB\n", what, now - *since, used.ru_maxrss / 1000);
    *since = now;
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/bench-whatif-XXXXXX.json";
    const char *file = argc > 2 ? argv[2] : path;
    long tasks = argc > 1 ? atol(argv[1]) : 0;
    FILE *out = tasks < 2 ? NULL : argc > 2 ? fopen(file, "w") : fdopen(mkstemps(path, 5), "w");
    if (!out)
        return 2;
    write_recording(out, tasks / 2);
    if (fclose(out))
        return 1;
    bz_keep_memory(); /* as the program does */
    bz_arena arena = {0};
    bz_error err;
    bz_trace *trace = bz_trace_new();
    bz_flow flow = {0};
    bz_whatif w;
    bz_whatif_asked asked;
    double since;
    tell(NULL, &since);
    int failed = bz_trace_read(trace, &file, 1, NULL, &err);
    tell("read", &since);
    failed = failed || bz_flow_make(trace, bz_typical_iteration(trace), &flow, &err);
    tell("graph", &since);
    failed = failed || bz_whatif_begin(&flow, &arena, &w, &err);
    tell("simulated", &since);
    failed = failed || bz_whatif_parse("device", &arena, &asked, &err) ||
             bz_whatif_predict(&asked, 1, &arena, &w, NULL, NULL, &err);
    tell("one change", &since);
    failed = failed || bz_whatif_try_all(&arena, &w, &err);
    tell("all changes", &since);
    if (failed)
        fprintf(stderr, "%s\n", err.text);
    bz_flow_free(&flow);
    bz_trace_free(trace);
    bz_arena_free(&arena);
    if (argc <= 2)
        unlink(file);
    return failed ? 1 : 0;
}
