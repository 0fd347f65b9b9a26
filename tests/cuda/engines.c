/* Which engines the real cuDNN proposes for our graphs. It takes the description of a device in place of one, so its
 * heuristics can be asked where there is none.
 *
 *   engines CASES | plans THREADS
 *
 * `plans`: how long it takes that many threads to build the plans of four convolutions of ResNet-50 for an H200. Those that are
 * compiled are, and fail then, because no driver loads them.
 *
 * A line of CASES is `ENGINES LAYOUT MATH PROBLEM`. Of the engines that are proposed on any of the devices below all,
 * some or none use tensor cores; `-`: there are no engines. Where there are, mode A has chosen one of them (a `?`
 * behind: perhaps not). `all@900`: older devices have none. The library needs the driver's library to be there; the toolkit's stub is enough. */
#include "base/progress.h"
#include "runtime/cudnn/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What cuDNN knows of a device, as its own JSON has it. */
static const struct {
    const char *name;
    int version, processors, shared;
} DEVICES[] = {
    {"NVIDIA A100-SXM4-80GB", 800, 108, 166912},
    {"NVIDIA H200", 900, 132, 232448},
    {"NVIDIA B200", 1000, 148, 232448},
};
enum { N_DEVICES = sizeof DEVICES / sizeof *DEVICES };

static cudnnBackendDescriptor_t describe_device(int i)
{
    cudnnBackendDescriptor_t device = NULL;
    bz_buf json = {0};
    bz_buf_printf(
        &json,
        "{\"deviceName\":\"%s\",\"deviceVer\":%d,\"driverVer\":13000,\"cudaDeviceId\":0,\"pciDeviceId\":0,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxGridSize\":[2147483647,65535,65535],"
        "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":80000000000,\"smClockRateKHz\":1700000,"
        "\"memClockRateKHz\":2600000,\"l2CacheSize\":52428800}",
        DEVICES[i].name, DEVICES[i].version, DEVICES[i].processors, DEVICES[i].shared);
    if (graph_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) != CUDNN_STATUS_SUCCESS ||
        graph_set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)json.len, json.data) !=
            CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(device) != CUDNN_STATUS_SUCCESS) {
        printf("%s cannot be described\n", DEVICES[i].name);
        device = NULL;
    }
    bz_buf_free(&json);
    return device;
}

typedef struct found {
    int engines, tensor, graphs, chosen;
} found;

/* Engines of all the graphs that the problem is. */
static found ask(const bz_problem *p, const char *layout, const char *math, cudnnBackendDescriptor_t device)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand);
    bz_error why = {0};
    char name[200];
    found f = {0};
    for (const cudnn_kind *kind = bz_cudnn_kinds; kind->kind; kind++) {
        if (kind->kind != p->kind || kind->release != cudnn_release_graph)
            continue;
        call *c = bz_cudnn_describe(kind, p, operand, n, layout, math, &why);
        if (!c)
            continue;
        c->device = device;
        int chosen = cudnn_graph_choice(c), i = 0;
        for (; cudnn_graph_algorithm(c, i, name, sizeof name); i++)
            f.tensor += strstr(name, "+tensor") != NULL;
        f.engines += i;
        f.graphs += i > 0;
        f.chosen += chosen >= 0;
        bz_cudnn_free(c);
    }
    return f;
}

/* Of one convolution: a walk finds engines that no heuristic proposes, and few are asked for where few are wanted. */
static int check_walk(cudnnBackendDescriptor_t device)
{
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error err = {0};
    char name[200];
    int n[3] = {0}, wanted[3] = {2, 0, -1};
    if (bz_problem_parse("conv x=1x64x28x28 w=64x64x3x3 pad=1x1x1x1 dtype=f16", &p, &err))
        return 1;
    for (int i = 0; i < 3; i++) {
        const cudnn_kind *kind = bz_cudnn_kinds;
        while (kind->kind != p.kind || kind->release != cudnn_release_graph)
            kind++;
        call *c = bz_cudnn_describe(kind, &p, operand, bz_problem_operands(&p, operand), "nhwc", "default", &err);
        if (!c)
            return 1;
        c->device = device;
        c->engines = wanted[i];
        while (cudnn_graph_algorithm(c, n[i], name, sizeof name))
            n[i]++;
        bz_cudnn_free(c);
    }
    printf("engine configurations of a convolution: %d where few are wanted, %d, %d where all are\n", n[0], n[1], n[2]);
    return !(n[0] <= 6 && n[0] < n[1] && n[1] <= 30 && n[1] < n[2]);
}

static bool is_as(const char *wanted, found f, int version)
{
    char word[16];
    const char *since = strchr(wanted, '@');
    if (since && version < strtol(since + 1, NULL, 10))
        return !f.engines;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(wanted, "?@"), wanted);
    if (f.engines && f.chosen != f.graphs && !strchr(wanted, '?'))
        return false;
    return !strcmp(word, "-")      ? !f.engines
           : !strcmp(word, "none") ? f.engines && !f.tensor
           : !strcmp(word, "all")  ? f.engines && f.tensor == f.engines
                                   : !strcmp(word, "some") && f.tensor && f.tensor < f.engines;
}

static int check_line(const char *line, const cudnnBackendDescriptor_t *device)
{
    char wanted[16], layout[16], math[16];
    int at = 0, bad = 0;
    bz_problem p;
    bz_error err = {0};
    if (sscanf(line, "%15s %15s %15s %n", wanted, layout, math, &at) != 3 || bz_problem_parse(line + at, &p, &err)) {
        printf("%s: %s\n", line, err.text);
        return 1;
    }
    for (int i = 0; i < N_DEVICES; i++) {
        found f = ask(&p, layout, math, device[i]);
        if (is_as(wanted, f, DEVICES[i].version))
            continue;
        printf("%s: %d engines of %d graphs on %s, %d with tensor cores, %d chosen\n", line, f.engines, f.graphs,
               DEVICES[i].name, f.tensor, f.chosen);
        bad++;
    }
    return bad;
}

/* ---- how long plans take -------------------------------------------------------------------- */

enum { MOST_PLANS = 400 };

typedef struct plans {
    struct {
        const call *c;
        int config;
        double seconds;
    } item[MOST_PLANS];
    int n;
    atomic_int next;
} plans;

static void *build_plans(void *context)
{
    plans *p = context;
    for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
        const call *c = p->item[i].c;
        cudnnBackendDescriptor_t plan = NULL;
        double from = bz_now();
        if (graph_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) == CUDNN_STATUS_SUCCESS &&
            graph_set_desc(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, c->device) == CUDNN_STATUS_SUCCESS &&
            graph_set_desc(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, c->graph->config[p->item[i].config].desc) ==
                CUDNN_STATUS_SUCCESS)
            cudnnBackendFinalize(plan);
        p->item[i].seconds = bz_now() - from;
        cudnnBackendDestroyDescriptor(plan);
    }
    return NULL;
}

static int time_plans(int threads, cudnnBackendDescriptor_t device)
{
    static const char *const TEXTS[] = {"conv x=1x64x56x56 w=64x64x3x3 pad=1x1x1x1 dtype=f16",
                                        "conv x=1x128x28x28 w=128x128x3x3 pad=1x1x1x1 dtype=f16",
                                        "conv x=1x256x56x56 w=64x256x1x1 dtype=f16 post=bias,relu",
                                        "conv x=1x512x28x28 w=128x512x1x1 dtype=f16 post=bias,relu"};
    enum { N = sizeof TEXTS / sizeof *TEXTS };
    static bz_problem problem[N];
    static bz_operand operand[N][BZ_PROBLEM_OPERANDS];
    static plans p;
    pthread_t thread[16];
    call *c[N];
    for (int i = 0; i < N; i++) {
        bz_error err;
        char name[200];
        const cudnn_kind *kind = bz_cudnn_kinds;
        if (bz_problem_parse(TEXTS[i], &problem[i], &err))
            return 1;
        while (kind->kind != problem[i].kind || kind->release != cudnn_release_graph)
            kind++;
        c[i] = bz_cudnn_describe(kind, &problem[i], operand[i], bz_problem_operands(&problem[i], operand[i]), "nhwc",
                                 "default", &err);
        if (!c[i])
            return 1;
        c[i]->device = device;
        for (int k = 0; p.n < MOST_PLANS && cudnn_graph_algorithm(c[i], k, name, sizeof name); k++) {
            p.item[p.n].c = c[i];
            p.item[p.n++].config = k;
        }
    }
    threads = threads < 1 ? 1 : threads > 16 ? 16 : threads;
    double from = bz_now(), fast = 0, slow = 0;
    int n_slow = 0;
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, build_plans, &p);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    double all = bz_now() - from;
    for (int i = 0; i < p.n; i++) {
        n_slow += p.item[i].seconds > 0.05;
        *(p.item[i].seconds > 0.05 ? &slow : &fast) += p.item[i].seconds;
    }
    printf("%d plans by %d threads: %.2f s; %d that are compiled %.2f s each, the others %.0f µs each\n", p.n, threads,
           all, n_slow, n_slow ? slow / n_slow : 0, 1e6 * fast / (p.n - n_slow));
    for (int i = 0; i < N; i++)
        bz_cudnn_free(c[i]);
    return 0;
}

int main(int argc, char **argv)
{
    cudnnBackendDescriptor_t device[N_DEVICES];
    char line[1024];
    int n = 0, bad = 0;
    FILE *cases = argc == 2 ? fopen(argv[1], "r") : NULL;
    for (int i = 0; i < N_DEVICES; i++)
        if (!(device[i] = describe_device(i)))
            return 1;
    if (argc == 3 && !strcmp(argv[1], "plans"))
        return time_plans((int)strtol(argv[2], NULL, 10), device[1]);
    while (cases && fgets(line, sizeof line, cases)) {
        line[strcspn(line, "\n")] = 0;
        if (!line[0] || line[0] == '#')
            continue;
        bad += check_line(line, device);
        n++;
    }
    if (cases)
        fclose(cases);
    bad += check_walk(device[1]);
    for (int i = 0; i < N_DEVICES; i++)
        cudnnBackendDestroyDescriptor(device[i]);
    printf("%d graphs on %d devices that are not there, %d bad\n", n, N_DEVICES, bad);
    return bad || !n;
}
