/* What a fuzz target consists of: LLVMFuzzerTestOneInput, called by libFuzzer or by replay.c, and
 * how many bytes of its input stand before the model. Broken promises abort. */
#ifndef BZ_FUZZ_H
#define BZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const size_t fuzz_header_size;

/* Tells what came of an input: results, not how a sentence is worded. replay.c compares it with what came of it before; a fuzzer does not ask. */
extern __attribute__((weak)) void fuzz_saw(const void *what, size_t n);
#define SAW(what, n) (fuzz_saw ? fuzz_saw(what, n) : (void)0)

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
