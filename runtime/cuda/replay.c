/* What a replay needs of a GPU: memory, streams and what orders and times them, and graphs. The backends on it share
 * the streams, and each library its handles on them. */
#include "runtime/cuda/cuda.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

typedef struct events {
    cudaEvent_t *item; /* NULL: not made yet */
    int n;
    unsigned flags;
} events;

typedef struct replay {
    bz_cuda_stream **stream;
    int n;
    events mark, reading;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
} replay;

static int good(bz_error *err, const char *what, cudaError_t status)
{
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, what, status);
}

static cudaStream_t stream_of(void *device, int stream)
{
    return ((replay *)device)->stream[stream]->cuda.stream;
}

void *bz_cuda_shared(const bz_cuda_stream *s, const void *library)
{
    for (int i = 0; i < s->n_shared; i++)
        if (s->shared[i].library == library)
            return s->shared[i].handle;
    return NULL;
}

void bz_cuda_share(bz_cuda_stream *s, const void *library, void *handle, void (*close)(void *handle))
{
    s->shared[s->n_shared].library = library;
    s->shared[s->n_shared].handle = handle;
    s->shared[s->n_shared++].close = close;
}

int bz_cuda_open_for(bz_cuda *c, const bz_job *job, bz_error *err)
{
    const bz_cuda_stream *s = job->stream;
    if (!s)
        return bz_cuda_open(c, job->setting, err);
    *c = s->cuda;
    c->borrowed = true;
    return 0;
}

static void close_events(events *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->item[i])
            cudaEventDestroy(e->item[i]);
    free(e->item);
}

static void close_replay(void *device)
{
    replay *r = device;
    if (r->exec)
        cudaGraphExecDestroy(r->exec);
    if (r->graph)
        cudaGraphDestroy(r->graph);
    close_events(&r->mark);
    close_events(&r->reading);
    for (int i = r->n; i--;) {
        bz_cuda_stream *s = r->stream[i];
        for (int k = 0; k < s->n_shared; k++)
            s->shared[k].close(s->shared[k].handle);
        bz_cuda_close(&s->cuda);
        free(s);
    }
    free(r->stream);
    free(r);
}

static int open_replay(const bz_run_setting *setting, int streams, void **device, bz_error *err)
{
    replay *r = bz_zeroed(1, sizeof *r);
    r->mark.flags = cudaEventDisableTiming;
    r->stream = bz_zeroed((size_t)streams, sizeof(bz_cuda_stream *));
    for (; r->n < streams; r->n++) {
        bz_cuda_stream *s = bz_zeroed(1, sizeof *s);
        if (bz_cuda_open(&s->cuda, setting, err)) {
            free(s);
            close_replay(r);
            return -1;
        }
        r->stream[r->n] = s;
    }
    *device = r;
    return 0;
}

static void *stream_for_jobs(void *device, int stream)
{
    return ((replay *)device)->stream[stream];
}

static void *allocate(void *device, size_t size, bool host)
{
    void *at = NULL;
    (void)device;
    if (host) {
        if (cudaHostAlloc(&at, size, cudaHostAllocDefault) != cudaSuccess) {
            cudaGetLastError();
            return NULL;
        }
        memset(at, 0, size);
        return at;
    }
    if (bz_cuda_alloc(size, &at, NULL))
        return NULL;
    if (!good(NULL, "overwriting memory", cudaMemset(at, 0, size)))
        return at;
    bz_cuda_free(at);
    return NULL;
}

static void give_back(void *device, void *at, bool host)
{
    (void)device;
    if (host)
        cudaFreeHost(at);
    else
        bz_cuda_free(at);
}

static int copy(void *device, int stream, void *to, const void *from, size_t size)
{
    return good(NULL, "copying", cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream_of(device, stream)));
}

static int host(void *device, int stream, void (*function)(void *), void *context)
{
    return good(NULL, "calling the processor", cudaLaunchHostFunc(stream_of(device, stream), function, context));
}

static cudaEvent_t *event_of(events *e, int number)
{
    if (number >= e->n) {
        int n = 2 * number + 16;
        e->item = bz_realloc(e->item, (size_t)n, sizeof *e->item);
        memset(e->item + e->n, 0, (size_t)(n - e->n) * sizeof *e->item);
        e->n = n;
    }
    if (!e->item[number] && good(NULL, "making an event", cudaEventCreateWithFlags(&e->item[number], e->flags)))
        return NULL;
    return &e->item[number];
}

static int record(void *device, events *e, int stream, int number)
{
    cudaEvent_t *event = event_of(e, number);
    return event ? good(NULL, "recording an event", cudaEventRecord(*event, stream_of(device, stream))) : -1;
}

static int mark(void *device, int stream, int number)
{
    return record(device, &((replay *)device)->mark, stream, number);
}

static int follow(void *device, int stream, int number)
{
    cudaEvent_t *event = event_of(&((replay *)device)->mark, number);
    return event ? good(NULL, "waiting for an event", cudaStreamWaitEvent(stream_of(device, stream), *event, 0)) : -1;
}

static int read_clock(void *device, int stream, int reading)
{
    return record(device, &((replay *)device)->reading, stream, reading);
}

static int seconds_between(void *device, int from, int to, double *out)
{
    const events *e = &((replay *)device)->reading;
    float ms = 0;
    if (good(NULL, "reading the device's clock", cudaEventElapsedTime(&ms, e->item[from], e->item[to])))
        return -1;
    *out = 1e-3 * (double)ms;
    return 0;
}

static int wait_for_all(void *device)
{
    replay *r = device;
    int bad = 0;
    for (int i = 0; i < r->n; i++)
        bad |= bz_cuda_wait(&r->stream[i]->cuda);
    return bad;
}

/* The other streams wait for the first, which comes to nothing before it is let go. */
static int hold(void *device)
{
    return good(NULL, "holding the queue back", bz_cuda_hold(&((replay *)device)->stream[0]->cuda));
}

static int release(void *device)
{
    bz_cuda *c = &((replay *)device)->stream[0]->cuda;
    bz_cuda_let_go(c);
    return wait_for_all(device) ? -1 : bz_cuda_gave_up(c);
}

/* Only what this thread does is captured: libraries have threads of their own. */
static int begin(void *device, bz_error *err)
{
    return good(err, "capturing a graph",
                cudaStreamBeginCapture(stream_of(device, 0), cudaStreamCaptureModeThreadLocal));
}

static int end(void *device, bz_error *err)
{
    replay *r = device;
    cudaError_t status = cudaStreamEndCapture(stream_of(device, 0), &r->graph);
    return good(err, "capturing a graph", status ? status : cudaGraphInstantiate(&r->exec, r->graph, 0));
}

static int launch(void *device)
{
    replay *r = device;
    return good(NULL, "launching the graph", cudaGraphLaunch(r->exec, stream_of(device, 0)));
}

static bool throttled(void *device)
{
    return bz_nvml_throttled(((replay *)device)->stream[0]->cuda.nvml);
}

const bz_device_ops bz_cuda_ops = {
    .name = "GPU",
    .align = 256,
    .open = open_replay,
    .close = close_replay,
    .stream = stream_for_jobs,
    .alloc = allocate,
    .free = give_back,
    .copy = copy,
    .host = host,
    .mark = mark,
    .follow = follow,
    .read = read_clock,
    .seconds = seconds_between,
    .wait = wait_for_all,
    .hold = hold,
    .release = release,
    .begin = begin,
    .end = end,
    .launch = launch,
    .throttled = throttled,
};
