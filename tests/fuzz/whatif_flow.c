/* Any recording either makes no graph, with a reason, or one in which nothing starts before what it waits for, and that all
 * transformations can be tried on. */
#include "profile/reader.h"
#include "tests/fuzz/fuzz.h"
#include "whatif/whatif.h"

#include <string.h>

static void say(const bz_whatif *w)
{
    for (int i = 0; i < w->n; i++) {
        SAW(w->prediction[i].name, strlen(w->prediction[i].name));
        SAW(&w->prediction[i].time, 3 * sizeof w->prediction[i].time); /* and low, and high */
    }
}

static void check(const bz_trace *t, uint32_t iteration)
{
    bz_flow flow;
    bz_error err = {0};
    bz_arena arena = {0};
    bz_whatif w;
    if (!bz_flow_make(t, iteration, &flow, &err)) {
        PROMISE(flow.measured > 0);
        if (!bz_whatif_begin(&flow, &arena, &w, &err)) {
            SAW(&w.simulated, sizeof w.simulated);
            SAW(&w.split, sizeof w.split);
            PROMISE(w.split.host + w.split.device + w.split.both + w.split.neither == w.split.total);
            if (bz_whatif_try_all(&arena, &w, &err))
                PROMISE(err.code && err.text[0]);
            else
                say(&w);
        } else {
            PROMISE(strstr(err.text, "circle"));
        }
        bz_flow_free(&flow);
    } else {
        PROMISE(err.code == BZ_BAD_INPUT && err.text[0]);
    }
    bz_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    bz_stream *in = bz_stream_memory((const char *)data, size);
    if (!bz_profile_read_stream(t, in, &bz_reader_chrome, &err) && !bz_trace_finish(t, NULL, &err)) {
        check(t, BZ_NONE);
        for (uint32_t i = 0; i < t->n_iterations && i < 3; i++)
            check(t, i);
    }
    bz_stream_close(in);
    bz_trace_free(t);
    return 0;
}
