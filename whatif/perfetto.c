/* A simulation as a Chrome trace, in the form of PyTorch's profiler: calls of the host, kernels, copies, with the correlation that
 * ties them. */
#include "whatif/whatif.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOST_PROCESS = 1, CHANNEL_PROCESS = 2, FLUSH_AT = 1 << 20 };

typedef struct {
    const bz_flow *flow;
    const bz_simulated *s;
    FILE *f;
    bz_buf text;
    bool first, bad;
} writer;

static void flush(writer *w, size_t at)
{
    if (w->text.len <= at)
        return;
    w->bad |= fwrite(w->text.data, 1, w->text.len, w->f) != w->text.len;
    bz_buf_clear(&w->text);
}

static void micro(writer *w, const char *key, int64_t ns)
{
    bz_buf_printf(&w->text, ",\"%s\":%lld.%03lld", key, (long long)(ns / 1000), (long long)(ns % 1000));
}

static void quoted(writer *w, const char *key, const char *value)
{
    bz_json j = bz_json_to(&w->text, false);
    bz_buf_printf(&w->text, "\"%s\":", key);
    bz_json_str(&j, value);
}

static const char *category(const bz_task *t)
{
    static const char *const NAMES[BZ_TASK_KINDS] = {"cuda_runtime", "cpu_op", "kernel", "gpu_memcpy",
                                                     "cuda_runtime", "kernel", "cpu_op", "user_annotation"};
    return NAMES[t->kind];
}

static void begin(writer *w, const char *name)
{
    bz_buf_puts(&w->text, w->first ? "\n{" : ",\n{");
    w->first = false;
    quoted(w, "name", name);
}

static void lane(writer *w, uint32_t i)
{
    const bz_flow_lane *l = &w->flow->lane[i];
    begin(w, "thread_name");
    bz_buf_printf(&w->text, ",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{",
                  l->device    ? 0
                  : l->channel ? CHANNEL_PROCESS
                               : HOST_PROCESS,
                  i + 1);
    quoted(w, "name", l->name);
    bz_buf_puts(&w->text, "}}");
}

static void task(writer *w, uint32_t i)
{
    const bz_task *t = &w->flow->task[i];
    const bz_flow_lane *l = &w->flow->lane[t->lane];
    uint32_t launch = bz_flow_launch_of(w->flow, i);
    begin(w, t->name);
    bz_buf_printf(&w->text, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u", category(t),
                  l->device    ? 0
                  : l->channel ? CHANNEL_PROCESS
                               : HOST_PROCESS,
                  t->lane + 1);
    micro(w, "ts", w->s->start[i]);
    micro(w, "dur", t->duration);
    bz_buf_puts(&w->text, ",\"args\":{");
    quoted(w, "phase", bz_phase_name((bz_phase)t->phase));
    if (t->layer < w->flow->n_layers) {
        bz_buf_putc(&w->text, ',');
        quoted(w, "layer", w->flow->layer[t->layer]);
    }
    if (l->device)
        bz_buf_printf(&w->text, ",\"device\":0,\"stream\":%u", t->lane + 1);
    if (launch != BZ_NONE || !l->device)
        bz_buf_printf(&w->text, ",\"correlation\":%u", (launch != BZ_NONE ? launch : i) + 1);
    if (t->bytes)
        bz_buf_printf(&w->text, ",\"bytes\":%lld", (long long)t->bytes);
    if (t->at < 0)
        bz_buf_puts(&w->text, ",\"inserted\":true");
    bz_buf_puts(&w->text, "}}");
    flush(w, FLUSH_AT);
}

/* A range by which readers know the iteration. */
static void iteration(writer *w)
{
    if (w->flow->main == BZ_NONE)
        return;
    begin(w, "ProfilerStep#0");
    bz_buf_printf(&w->text, ",\"cat\":\"user_annotation\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u", HOST_PROCESS,
                  w->flow->main + 1);
    micro(w, "ts", w->flow->offset);
    micro(w, "dur", w->s->total);
    bz_buf_puts(&w->text, ",\"args\":{}}");
}

int bz_flow_perfetto(const bz_flow *flow, const bz_simulated *s, const char *path, bz_error *err)
{
    writer w = {.flow = flow, .s = s, .f = fopen(path, "w"), .first = true};
    if (!w.f)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    bz_buf_puts(&w.text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        lane(&w, i);
    iteration(&w);
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed)
            task(&w, i);
    bz_buf_puts(&w.text, "\n]}\n");
    flush(&w, 0);
    bz_buf_free(&w.text);
    w.bad |= fclose(w.f) != 0;
    return w.bad ? bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}
