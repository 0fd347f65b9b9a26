/* An edition's file: what is taken has names that can be files, batches, and commands that can be run. */
#include "suite/suite.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_suite suite;
    bz_error err;
    bz_arena arena = {0};
    char *text = bz_arena_strn(&arena, (const char *)data, size);
    if (!bz_suite_parse(text, "folder/mine.txt", &arena, &suite, &err)) {
        PROMISE(suite.n > 0 && !strcmp(suite.edition, "mine"));
        for (int i = 0; i < suite.n; i++) {
            const bz_suite_entry *e = &suite.entry[i];
            PROMISE(bz_suite_find(&suite, e->name) == e && !strchr(e->name, '/') && !strchr(e->name, '.') &&
                    e->name[0] != '-');
            PROMISE(e->n_words > 0 && e->word[0][0]);
            SAW(e->name, strlen(e->name));
            for (int k = 0; k < e->n_words; k++)
                SAW(e->word[k], strlen(e->word[k]));
            for (int s = 0; s < BZ_SUITE_SIZES; s++) {
                PROMISE(e->n_batches[s] > 0 && e->n_batches[s] <= BZ_SUITE_BATCHES);
                SAW(e->batch[s], (size_t)e->n_batches[s] * sizeof *e->batch[s]);
                for (int k = 0; k < e->n_batches[s]; k++)
                    PROMISE(e->batch[s][k] > 0);
            }
        }
        PROMISE(bz_suite_list(&suite, BZ_SUITE_FULL, &arena)->n == suite.n);
    }
    bz_arena_free(&arena);
    return 0;
}
