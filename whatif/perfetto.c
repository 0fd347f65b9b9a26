/* A simulation as a Chrome trace, in the form of PyTorch's profiler: calls of the host, kernels, copies, with the correlation that
 * ties them. */
#include "whatif/whatif.h"

#include "base/perfetto.h"

enum { HOST_PROCESS = 1, CHANNEL_PROCESS = 2 };

typedef struct {
    bz_perfetto out;
    const bz_flow *flow;
    const bz_simulated *s;
} writer;

static const char *category(const bz_task *t)
{
    static const char *const NAMES[BZ_TASK_KINDS] = {"cuda_runtime", "cpu_op", "kernel", "gpu_memcpy",
                                                     "cuda_runtime", "kernel", "cpu_op", "user_annotation"};
    return NAMES[t->kind];
}

static int process_of(const bz_flow_lane *l)
{
    return l->device ? 0 : l->channel ? CHANNEL_PROCESS : HOST_PROCESS;
}

static void task(writer *w, uint32_t i)
{
    const bz_task *t = &w->flow->task[i];
    const bz_flow_lane *l = &w->flow->lane[t->lane];
    uint32_t launch = bz_flow_launch_of(w->flow, i);
    bz_perfetto_slice(&w->out, t->name, category(t), process_of(l), t->lane + 1, w->s->start[i], t->duration);
    bz_perfetto_args(&w->out);
    bz_perfetto_str(&w->out, "phase", bz_phase_name((bz_phase)t->phase));
    if (t->layer < w->flow->n_layers)
        bz_perfetto_str(&w->out, "layer", w->flow->layer[t->layer]);
    if (l->device) {
        bz_perfetto_int(&w->out, "device", 0);
        bz_perfetto_int(&w->out, "stream", t->lane + 1);
    }
    if (launch != BZ_NONE || !l->device)
        bz_perfetto_int(&w->out, "correlation", (launch != BZ_NONE ? launch : i) + 1);
    if (t->bytes)
        bz_perfetto_int(&w->out, "bytes", t->bytes);
    if (t->at < 0)
        bz_buf_puts(&w->out.text, ",\"inserted\":true");
    bz_perfetto_end(&w->out);
}

/* A range by which readers know the iteration. */
static void iteration(writer *w)
{
    if (w->flow->main == BZ_NONE)
        return;
    bz_perfetto_slice(&w->out, "ProfilerStep#0", "user_annotation", HOST_PROCESS, w->flow->main + 1, w->flow->offset,
                      w->s->total);
    bz_perfetto_args(&w->out);
    bz_perfetto_end(&w->out);
}

int bz_flow_perfetto(const bz_flow *flow, const bz_simulated *s, const char *path, bz_error *err)
{
    writer w = {.flow = flow, .s = s};
    if (bz_perfetto_open(&w.out, path, err))
        return -1;
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        bz_perfetto_name(&w.out, "thread_name", process_of(&flow->lane[i]), i + 1, flow->lane[i].name);
    iteration(&w);
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed)
            task(&w, i);
    return bz_perfetto_close(&w.out, err);
}
