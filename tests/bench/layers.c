/* bench_layers RUNS MODEL...: load + infer + key in this process, and load + infer alone, each model RUNS times,
 * interleaved. Prints one JSON line a model: the medians in milliseconds, nodes, bytes of memory that it took. */
#include "modelproc/modelproc.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_once(const char *path, bool without_keys, double *seconds, int *nodes, size_t *bytes)
{
    bz_error err;
    bz_model *m;
    bz_layers *l;
    bz_infer_options options = {.without_keys = without_keys};
    double start = bz_now();
    if (bz_model_load(path, &m, &err) || bz_layers_infer(m, &options, &l, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *seconds = bz_now() - start;
    *nodes = m->graph->n_nodes;
    *bytes = m->arena.used + l->arena.used;
    bz_layers_free(l);
    bz_model_free(m);
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[1]) : 0, n = argc - 2;
    if (runs < 1)
        return 2;
    bz_keep_memory(); /* as the program does; whole processes pay for page faults: bench_process */
    double *seconds = calloc(2 * (size_t)runs * (size_t)n, sizeof *seconds); /* [n][without keys, with][runs] */
    int *nodes = calloc((size_t)n, sizeof *nodes);
    size_t *bytes = calloc((size_t)n, sizeof *bytes);
    int failed = 0;
    for (int r = -1; r < runs && !failed; r++) { /* the first round warms up and is written over */
        for (int m = 0; m < 2 * n && !failed; m++)
            failed = run_once(argv[m / 2 + 2], m % 2 == 0, &seconds[m * runs + (r < 0 ? 0 : r)], &nodes[m / 2],
                              &bytes[m / 2]);
    }
    for (int m = 0; m < n && !failed; m++) {
        double *without = &seconds[2 * m * runs], *with = without + runs;
        qsort(without, (size_t)runs, sizeof *without, by_value);
        qsort(with, (size_t)runs, sizeof *with, by_value);
        printf("{\"ms\": %.4f, \"without_keys_ms\": %.4f, \"nodes\": %d, \"bytes\": %zu}\n", with[runs / 2] * 1e3,
               without[runs / 2] * 1e3, nodes[m], bytes[m]);
    }
    free(seconds);
    free(nodes);
    free(bytes);
    return failed ? 1 : 0;
}
