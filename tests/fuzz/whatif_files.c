/* Files that transformations read: a policy of substitutions, bytes of gradients. Whatever they say, what comes out can be
 * simulated, and no task takes a negative time. The first byte says which of the two it is. */
#include "whatif/whatif.h"

#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void make(bz_flow *f)
{
    static const char *const NAMES[] = {"conv1", "layer 2", "a"};
    *f = (bz_flow){.main = 0, .launch_cost = 5, .launch_gap = 3, .launch_lag = 5};
    bz_flow_add_lane(f, "cpu", false, false);
    bz_flow_add_lane(f, "gpu", true, false);
    f->layer = bz_alloc(3, sizeof *f->layer);
    memcpy(f->layer, NAMES, sizeof NAMES);
    f->n_layers = 3;
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t launch = bz_flow_add(f, BZ_TASK_HOST, "launch", 0, 5, 3),
                 kernel = bz_flow_add(f, BZ_TASK_KERNEL, "kernel", 1, 1000 + i, 0);
        bz_flow_depend(f, launch, kernel, BZ_DEPENDS_LAUNCH, 5);
        f->task[kernel].phase = (uint8_t)(BZ_PHASE_FORWARD + i / 3);
        f->task[kernel].layer = i / 3 == 1 ? 2 - i % 3 : i % 3;
        f->task[kernel].at = kernel;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_whatif_asked asked;
    bz_error err;
    bz_flow f;
    char text[64];
    int fd = memfd_create("input", 0);
    if (!size || fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1)) {
        close(fd);
        return 0;
    }
    make(&f);
    snprintf(text, sizeof text, "%s:file=/proc/self/fd/%d", data[0] & 1 ? "substitution" : "data-parallel", fd);
    if (bz_whatif_parse(text, &arena, &asked, &err))
        abort();
    asked.side = 1;
    asked.trace = bz_trace_new();
    if ((asked.err = &err, asked.row->apply(&f, &asked)) >= 0) {
        bz_simulated s;
        if (bz_flow_simulate(&f, &arena, &s, &err) || s.total < 0)
            abort();
        SAW(&s.total, sizeof s.total);
        for (uint32_t i = 0; i < f.n; i++)
            if (!f.task[i].removed && f.task[i].duration < 0)
                abort();
    } else if (!*err.text) {
        abort();
    }
    bz_trace_free((bz_trace *)asked.trace);
    bz_flow_free(&f);
    bz_arena_free(&arena);
    close(fd);
    return 0;
}
