/* Any text either is refused with its line, or is a script after which the iteration can be simulated, or waits in a circle. */
#include "tests/fuzz/fuzz.h"
#include "whatif/whatif.h"

/* A thread of launches, two streams, a channel. */
static void make(bz_flow *f)
{
    *f = (bz_flow){.main = 0, .launch_cost = 5000, .launch_gap = 2000, .launch_lag = 7000};
    uint32_t host = bz_flow_add_lane(f, "thread 1", false, false), stream[2];
    stream[0] = bz_flow_add_lane(f, "stream 7", true, false);
    stream[1] = bz_flow_add_lane(f, "stream 8", true, false);
    bz_flow_add_lane(f, "wire", false, true);
    for (uint32_t i = 0; i < 24; i++) {
        uint32_t launch = bz_flow_add(f, BZ_TASK_HOST, "cudaLaunchKernel", host, 5000, 2000),
                 kernel = bz_flow_add(f, i % 5 ? BZ_TASK_KERNEL : BZ_TASK_COPY, i % 3 ? "sgemm" : "relu kernel",
                                      stream[i % 4 == 0], 1000 * (i + 1), 500);
        f->task[launch].at = f->task[kernel].at = 10000 * (int64_t)i;
        f->task[kernel].phase = (uint8_t)(i / 8 + 1);
        bz_flow_depend(f, launch, kernel, BZ_DEPENDS_LAUNCH, 7000);
    }
    uint32_t sync = bz_flow_add(f, BZ_TASK_SYNC, "cudaDeviceSynchronize", host, 1000, 0);
    bz_flow_depend(f, f->lane[stream[0]].last, sync, BZ_DEPENDS_SYNC, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_flow flow;
    bz_error err = {0};
    bz_arena arena = {0};
    bz_simulated s;
    int64_t step;
    make(&flow);
    int changed = bz_whatif_run_script(&flow, (const char *)data, size, &err);
    if (changed < 0) {
        PROMISE(err.code == BZ_USAGE && !strncmp(err.text, "line ", 5));
    } else if (!bz_flow_simulate(&flow, &arena, &s, &err)) {
        bz_flow_split split;
        bz_critical critical;
        bz_flow_split_make(&flow, &s, &split);
        bz_flow_critical(&flow, &s, &arena, &critical);
        SAW(s.start, flow.n * sizeof *s.start);
        SAW(&split, sizeof split);
        PROMISE(split.host + split.device + split.both + split.neither == s.total && critical.time == s.total);
        for (uint32_t i = 0; i < flow.n; i++)
            PROMISE(flow.task[i].removed || s.start[i] >= 0);
        (void)bz_flow_steady(&flow, &step, &err);
    } else {
        PROMISE(err.code == BZ_BAD_INPUT && strstr(err.text, "circle"));
    }
    bz_arena_free(&arena);
    bz_flow_free(&flow);
    return 0;
}
