/* A system's details as they come out of a stranger's export. */
#include "bound/bound.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_peaks peaks;
    bool memory;
    bz_layer layer = {.kind = "relu", .flops = 1000, .bytes = 4096, .priced = true};
    static const char ONE[] = "{\"measured\":{\"threads\":1}}";
    const char *details = bz_arena_strn(&arena, (const char *)data, size);
    int threads[BZ_PEAKS_THREADS], joined[BZ_PEAKS_THREADS];
    bz_buf text = {0};
    bz_peaks_read(details, &(bz_setting){.threads = 1}, &arena, &peaks);
    double seconds = bz_peaks_roofline(&peaks, &layer, BZ_UNDEFINED, &memory);
    PROMISE(peaks.why || seconds >= 0);
    bz_peaks_print(details, &text);
    bz_buf_free(&text);

    /* Joined to one more, all are there, each once; what was measured now leads. */
    int n = bz_peaks_threads(details, threads);
    const char *both = bz_peaks_join(details, ONE, &arena);
    PROMISE(both || n == 0 || (n == 1 && threads[0] == 1));
    if (both) {
        int all = bz_peaks_threads(both, joined), expected = n + !bz_peaks_have(details, 1);
        PROMISE(all == (expected < BZ_PEAKS_THREADS ? expected : BZ_PEAKS_THREADS));
        PROMISE(joined[0] == 1);
        for (int i = 1; i < all; i++)
            PROMISE(joined[i - 1] < joined[i]);
    }
    bz_arena_free(&arena);
    return 0;
}
