/* A system's details as they come out of a stranger's export. */
#include "bound/bound.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_peaks peaks;
    bool memory = false;
    bz_layer layer = {.kind = "relu", .flops = 1000, .bytes = 4096, .priced = true};
    static const char ONE[] = "{\"measured\":{\"threads\":1}}";
    const char *details = bz_arena_strn(&arena, (const char *)data, size);
    bz_buf text = {0};
    const bz_system_facts *facts = bz_system_facts_read(details, &arena);
    bz_peaks_read(facts, &(bz_setting){.threads = 1}, &arena, &peaks);
    double seconds = bz_peaks_roofline(&peaks, &layer, BZ_UNDEFINED, &memory);
    PROMISE(peaks.why || seconds >= 0);
    for (int i = 0; i < facts->n_measured; i++)
        bz_measured_print(&facts->measured[i], &text);
    if (!peaks.why)
        bz_buf_printf(&text, "%.9g %d", seconds, memory);
    SAW(text.data, text.len);
    bz_buf_free(&text);

    /* Joined to one more, all are there, each once; what was measured now leads. */
    int n = facts->n_measured;
    const char *both = bz_system_join(details, ONE, &arena);
    PROMISE(both || n == 0 || (n == 1 && facts->measured[0].threads == 1));
    if (both) {
        const bz_system_facts *all = bz_system_facts_read(both, &arena);
        int expected = n + !bz_system_measured(facts, 1);
        PROMISE(all->n_measured == (expected < BZ_MEASURED ? expected : BZ_MEASURED));
        PROMISE(all->measured[0].threads == 1);
        for (int i = 1; i < all->n_measured; i++)
            PROMISE(all->measured[i - 1].threads < all->measured[i].threads);
    }
    bz_arena_free(&arena);
    return 0;
}
