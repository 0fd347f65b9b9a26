/* A system's details as they come out of a stranger's export. */
#include "analyzer/analyzer.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_peaks peaks;
    bool memory;
    bz_layer layer = {.kind = "relu", .flops = 1000, .bytes = 4096, .priced = true};
    bz_peaks_read(bz_arena_strn(&arena, (const char *)data, size), &(bz_setting){.threads = 1}, &arena, &peaks);
    double seconds = bz_peaks_roofline(&peaks, &layer, BZ_UNDEFINED, &memory);
    PROMISE(peaks.why || seconds >= 0);
    bz_arena_free(&arena);
    return 0;
}
