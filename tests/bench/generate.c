/* bench_generate RUNS FOLDER MODEL...: lowering and generating alone, RUNS times over all models. Prints one JSON
 * line: medians in milliseconds per thousand layers, in memory (lower, write sources) and with the files
 * written into FOLDER. Reading the models and their shapes is not counted: bench_layers does that. */
#include "generator/generator.h"
#include "modelproc/modelproc.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return seconds[n / 2];
}

/* Layers of the main graphs, and how many of them are unique. */
typedef struct work {
    bz_layers **layers;
    int n;
    int64_t n_layers, n_unique;
} work;

static int run_once(work *w, const char *folder, double *memory, double *files, bz_error *err)
{
    bz_buf text = {0};
    const bz_plan_layer *layer;
    double start = bz_now();
    bz_plan *plan = bz_plan_new(&(bz_plan_options){0});
    for (int i = 0; i < w->n; i++)
        bz_plan_add(plan, w->layers[i], "model");
    int n = bz_plan_layers(plan, &layer);
    for (int i = 0; i < n; i++) {
        bz_buf_clear(&text);
        bz_generate_source(plan, &layer[i], &text);
    }
    *memory = bz_now() - start;
    w->n_unique = n;
    start = bz_now();
    int rc = bz_generate(plan, folder, err);
    *files = bz_now() - start;
    bz_plan_free(plan);
    bz_buf_free(&text);
    return rc;
}

int main(int argc, char **argv)
{
    int runs = argc > 3 ? atoi(argv[1]) : 0;
    bz_error err = {0};
    if (runs < 1)
        return 2;
    work w = {.n = argc - 3, .layers = calloc((size_t)argc, sizeof(bz_layers *))};
    double *memory = calloc((size_t)runs, sizeof *memory), *files = calloc((size_t)runs, sizeof *files), unused;
    bz_model **model = calloc((size_t)argc, sizeof *model);
    int rc = 0;
    for (int i = 0; i < w.n && !rc; i++) {
        rc = bz_model_load(argv[i + 3], &model[i], &err) ||
             bz_layers_infer(model[i], &(bz_infer_options){0}, &w.layers[i], &err);
        w.n_layers += rc ? 0 : w.layers[i]->n;
    }
    rc = rc || run_once(&w, argv[2], &unused, &unused, &err); /* warms up */
    for (int r = 0; r < runs && !rc; r++)
        rc = run_once(&w, argv[2], &memory[r], &files[r], &err);
    if (rc) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double thousand = (double)w.n_layers / 1000;
    printf("{\"layers\": %lld, \"unique\": %lld, \"ms_per_thousand\": %.3f, \"files_ms_per_thousand\": %.3f}\n",
           (long long)w.n_layers, (long long)w.n_unique, median(memory, runs) * 1e3 / thousand,
           median(files, runs) * 1e3 / thousand);
    for (int i = 0; i < w.n; i++) {
        bz_layers_free(w.layers[i]);
        bz_model_free(model[i]);
    }
    free(w.layers);
    free(model);
    free(memory);
    free(files);
    return 0;
}
