/* Any bytes as a model, made an iteration of training. The first byte chooses options. Promised: an error has a text; every layer has a phase; classes of
 * memory sum up to the peak; and a derived model can be read again. */
#include "training/training.h"

#include "fuzz.h"

#include <string.h>

const size_t fuzz_header_size = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err = {0};
    bz_model *m;
    bz_layers *l;
    bz_training *t;
    bz_memory memory;
    int64_t sum = 0;
    if (!size || bz_model_parse(data + 1, size - 1, "fuzz", &m, &err))
        return 0;
    const bz_training_options options = {.optimizer = (bz_optimizer)(data[0] % BZ_OPTIMIZERS),
                                         .loss = (bz_loss)(data[0] / 4 % 3),
                                         .dtype = data[0] & 128 ? BZ_BF16 : BZ_UNDEFINED,
                                         .fused = data[0] & 64};
    if (!bz_layers_infer(m, &(bz_infer_options){.batch = 1}, &l, &err)) {
        if (bz_training_derive(l, &options, &t, &err)) {
            PROMISE(!t && err.code != BZ_OK && *err.text);
        } else {
            for (int i = 0; i < t->layers->n; i++)
                PROMISE(t->layers->phase[i] >= 0 && t->layers->phase[i] < BZ_TRAIN_PHASES);
            for (int i = 0; i < t->layers->n; i++)
                SAW(t->layers->layer[i].key, strlen(t->layers->layer[i].key));
            bz_memory_predict(t, &memory);
            SAW(memory.at_peak, sizeof memory.at_peak);
            for (int c = 0; c < BZ_HELD_CLASSES; c++)
                sum += memory.at_peak[c];
            PROMISE(sum == memory.peak);
        }
        bz_training_free(t);
        bz_layers_free(l);
    }
    bz_model_free(m);
    return 0;
}
