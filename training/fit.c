/* The largest batch that fits a memory, and what it costs to keep less. */
#include "training/training.h"

typedef struct fit {
    const char *path;
    bz_infer_options infer;
    bz_training_options options;
} fit;

static int predict(fit *f, int64_t batch, bz_memory_fit *out, bz_error *err)
{
    BZ_SCOPED(bz_models) m = {0};
    bz_training *t = NULL;
    bz_memory memory;
    bz_phase_cost cost[BZ_TRAIN_PHASES];
    f->infer.batch = batch;
    int rc = bz_models_load(&f->path, 1, &f->infer, &m, err) || bz_training_derive(m.layers[0], &f->options, &t, err);
    if (!rc) {
        bz_memory_predict(t, &memory);
        bz_training_costs(t, cost);
        out->peak = memory.peak;
        out->flops = out->bytes = 0;
        for (int p = 0; p < BZ_TRAIN_PHASES; p++) {
            bz_count_add(&out->flops, cost[p].flops);
            bz_count_add(&out->bytes, cost[p].bytes);
        }
    }
    bz_training_free(t);
    return rc ? -1 : 0;
}

/* Memory grows with the batch in a line, but for what does not depend on it: so a line through two points is mostly right, and what it
 * says is tried and moved until one batch fits and the next does not. */
static int find_batch(fit *f, int64_t memory, bz_memory_fit *out, bz_error *err)
{
    enum { MOST = 1 << 20 };
    bz_memory_fit one, two, at;
    int64_t low = 1, high = MOST + 1; /* the one fits, the other does not */
    if (predict(f, 1, &one, err) || predict(f, 2, &two, err))
        return -1;
    out->batch = 0;
    if (one.peak > memory)
        return 0;
    if (two.peak <= one.peak)
        return bz_fail(err, BZ_USAGE, "%s: the batch has no effect on its memory, so there is no largest one", f->path);
    int64_t guess = 1 + (memory - one.peak) / (two.peak - one.peak), step = 1;
    while (low + 1 < high) {
        guess = guess <= low ? low + 1 : guess >= high ? high - 1 : guess;
        if (predict(f, guess, &at, err))
            return -1;
        if (at.peak <= memory)
            low = guess, guess += step;
        else
            high = guess, guess -= step;
        step *= 2;
    }
    out->batch = low;
    return 0;
}

int bz_training_fit(const char *path, const bz_infer_options *infer, const bz_training_options *options, int64_t memory,
                    bz_memory_fit *out, int n, bz_error *err)
{
    bool many = true;
    for (int i = 0; i < n; i++) {
        fit f = {.path = path, .infer = *infer, .options = *options};
        bz_error own;
        f.options.parts = out[i].parts;
        if (predict(&f, infer->batch, &out[i], &own)) {
            *err = own;
            return -1;
        }
        many = many && !find_batch(&f, memory, &out[i], err);
        out[i].batch = many ? out[i].batch : -1;
    }
    return 0;
}
