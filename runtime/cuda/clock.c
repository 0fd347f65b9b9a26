/* Device time of calls. Launches cost the host several µs each: a device that is faster than that would
 * wait between them, and the waiting would be measured. So a kernel that waits for a flag in the host's
 * memory stands first in the queue until the whole batch is queued behind it. */
#include "base/sort.h"
#include "runtime/cuda/cuda.h"

#include <math.h>

/* PTX, so that the driver makes it for whatever device there is. It gives up after `patience` ns, and says
 * so in the second word: a library that waits for the device while the queue is held, or a queue that is
 * full, would otherwise wait for ever. */
static const char HOLD[] = ".version 6.0\n"
                           ".target sm_50\n"
                           ".address_size 64\n"
                           ".visible .entry bz_hold(.param .u64 words, .param .u64 patience)\n"
                           "{\n"
                           "  .reg .u64 %flag, %start, %now, %most;\n"
                           "  .reg .u32 %v;\n"
                           "  .reg .pred %p;\n"
                           "  ld.param.u64 %flag, [words];\n"
                           "  ld.param.u64 %most, [patience];\n"
                           "  mov.u64 %start, %globaltimer;\n"
                           "again:\n"
                           "  ld.volatile.global.u32 %v, [%flag];\n"
                           "  setp.ne.u32 %p, %v, 0;\n"
                           "  @%p bra done;\n"
                           "  mov.u64 %now, %globaltimer;\n"
                           "  sub.u64 %now, %now, %start;\n"
                           "  setp.lt.u64 %p, %now, %most;\n"
                           "  @%p bra again;\n"
                           "  mov.u32 %v, 1;\n"
                           "  st.volatile.global.u32 [%flag+4], %v;\n"
                           "done:\n"
                           "  ret;\n"
                           "}\n"
                           ".visible .entry bz_empty()\n"
                           "{\n"
                           "  ret;\n"
                           "}\n";

enum { MOST_CALLS = 64, MOST_COLD = 16 };
#define PATIENCE 100000000ULL /* ns */

static cudaError_t start(const bz_cuda *c, cudaKernel_t kernel, void **args)
{
    return cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, c->stream);
}

static cudaError_t start_hold(bz_cuda *c)
{
    unsigned long long patience = PATIENCE;
    return start(c, c->hold, (void *[]){&c->word_on_device, &patience});
}

/* The driver compiles the kernel when it is launched, and may lack the library for that; and what the host writes has to be seen
 * there: it runs once, let go beforehand. */
static bool can_hold(bz_cuda *c)
{
    c->word[0] = 1;
    c->word[1] = 0;
    return start_hold(c) == cudaSuccess && cudaStreamSynchronize(c->stream) == cudaSuccess && !c->word[1];
}

void bz_cuda_clock_open(bz_cuda *c)
{
    void *word = NULL;
    bool good = cudaHostAlloc(&word, 2 * sizeof(unsigned), cudaHostAllocMapped) == cudaSuccess &&
                cudaHostGetDevicePointer(&c->word_on_device, word, 0) == cudaSuccess &&
                cudaLibraryLoadData(&c->library, HOLD, NULL, NULL, 0, NULL, NULL, 0) == cudaSuccess &&
                cudaLibraryGetKernel(&c->hold, c->library, "bz_hold") == cudaSuccess &&
                cudaLibraryGetKernel(&c->empty, c->library, "bz_empty") == cudaSuccess;
    c->word = word;
    if (good && can_hold(c))
        return;
    c->hold = c->empty = NULL;
    cudaGetLastError();
}

void bz_cuda_clock_close(bz_cuda *c)
{
    if (c->library)
        cudaLibraryUnload(c->library);
    if (c->word)
        cudaFreeHost((void *)c->word);
    c->library = NULL;
    c->word = NULL;
}

cudaError_t bz_cuda_hold(bz_cuda *c)
{
    if (c->word)
        c->word[0] = c->word[1] = 0;
    return c->hold ? start_hold(c) : cudaSuccess;
}

void bz_cuda_let_go(bz_cuda *c)
{
    if (c->word)
        c->word[0] = 1;
}

bool bz_cuda_gave_up(const bz_cuda *c)
{
    return c->word && c->word[1];
}

/* Queues up a batch. Also after a failure the queue is let go. */
static int queue(bz_cuda *c, const bz_cuda_pace *pace, bz_cuda_call *call, void *context, int64_t n)
{
    cudaError_t status = pace->unheld ? cudaSuccess : bz_cuda_hold(c);
    int bad = 0;
    if (!c->cold && status == cudaSuccess)
        status = cudaEventRecord(c->from[0], c->stream);
    for (int64_t i = 0; i < n && status == cudaSuccess && !bad; i++) {
        if (c->cold) {
            status = cudaMemsetAsync(c->flush, (int)(i & 1), c->flush_size, c->stream);
            status = status ? status : cudaEventRecord(c->from[i], c->stream);
        }
        bad = call && call(context);
        if (c->cold && status == cudaSuccess)
            status = cudaEventRecord(c->to[i], c->stream);
    }
    if (!c->cold && status == cudaSuccess)
        status = cudaEventRecord(c->to[0], c->stream);
    bz_cuda_let_go(c);
    if (status != cudaSuccess)
        bz_cuda_failed(NULL, "queuing calls", status);
    return status == cudaSuccess && !bad ? 0 : -1;
}

/* Time of the n calls queued up last; 0 calls have a pair of events too. */
static int elapsed(bz_cuda *c, int64_t n, double *seconds)
{
    float ms = 0;
    *seconds = 0;
    for (int64_t i = 0; i < (c->cold && n ? n : 1); i++) {
        cudaError_t status = cudaEventElapsedTime(&ms, c->from[i], c->to[i]);
        if (status != cudaSuccess)
            return bz_cuda_failed(NULL, "reading the device's clock", status);
        *seconds += 1e-3 * (double)ms;
    }
    return 0;
}

/* One batch, from the queue to its time. 1 where the device gave up waiting before all calls were queued:
 * the time says nothing then. */
static int run_batch(bz_cuda *c, const bz_cuda_pace *pace, bz_cuda_call *call, void *context, int64_t n,
                     double *seconds)
{
    int bad = queue(c, pace, call, context, n);
    if (!bad && !c->watched) { /* once: a query takes as long as many a call; and now, while the device works */
        c->throttled = bz_nvml_throttled(c->nvml);
        c->sm_clock = bz_nvml_clock(c->nvml);
        c->watched = true;
    }
    if (bz_cuda_wait(c) || bad)
        return -1;
    if (!pace->unheld && bz_cuda_gave_up(c))
        return 1;
    return elapsed(c, n, seconds);
}

int bz_cuda_measure(bz_cuda *c, bz_cuda_pace *pace, bz_cuda_call *call, void *context, int64_t n, double *seconds)
{
    double total = 0, some;
    c->watched = false;
    if (!pace->batch)
        pace->batch = c->cold ? MOST_COLD : MOST_CALLS;
    while (n) {
        int64_t batch = n < pace->batch ? n : pace->batch;
        int result = run_batch(c, pace, call, context, batch, &some);
        if (result < 0)
            return -1;
        if (result && batch == 1)
            pace->unheld = true;
        else if (result)
            pace->batch = (batch + 1) / 2;
        if (result)
            continue;
        total += some;
        n -= batch;
    }
    *seconds = total;
    return 0;
}

const char *bz_cuda_timing(const bz_cuda *c, const bz_cuda_pace *pace)
{
    return c->cold || !c->hold || pace->unheld ? "event-pair" : "device";
}

bool bz_cuda_state(void *session, double *hz)
{
    const bz_cuda *c = session;
    if (c->sm_clock > 0)
        *hz = c->sm_clock;
    return c->throttled;
}

double bz_cuda_event_pair(bz_cuda *c)
{
    double sample[32];
    const bz_cuda_pace pace = {0};
    for (int i = 0; i < 32; i++)
        if (run_batch(c, &pace, NULL, NULL, 0, &sample[i]))
            return NAN;
    bz_sort_numbers(sample, 32);
    return sample[16];
}

/* Seconds of n calls: the least of a few, since nothing is faster by chance; the first one warms up. NaN where one fails. */
static double least_of(bz_cuda *c, bz_cuda_call *call, void *context, int64_t n)
{
    double least = INFINITY, seconds;
    bz_cuda_pace pace = {0};
    for (int i = 0; i < 8; i++) {
        if (bz_cuda_measure(c, &pace, call, context, n, &seconds))
            return NAN;
        least = i ? fmin(least, seconds) : least;
    }
    return least;
}

static int run_empty(void *context)
{
    const bz_cuda *c = context;
    return start(c, c->empty, NULL) == cudaSuccess ? 0 : -1;
}

/* The pair of events around the batch has its own price, which is not the kernels'. */
double bz_cuda_gap(bz_cuda *c)
{
    bz_trace seen;
    if (!c->empty)
        return NAN;
    double all = least_of(c, run_empty, c, MOST_CALLS) - bz_cuda_event_pair(c);
    bool bad = isnan(all) || bz_cuda_trace_call(c, run_empty, &seen, NULL);
    return bad ? NAN : fmax(all / MOST_CALLS - seen.seconds, 0);
}

typedef struct copy {
    bz_cuda *cuda;
    void *from, *to;
    size_t size;
} copy;

static int run_copy(void *context)
{
    const copy *p = context;
    return cudaMemcpyAsync(p->to, p->from, p->size, cudaMemcpyDeviceToDevice, p->cuda->stream) == cudaSuccess ? 0 : -1;
}

double bz_cuda_copy_bandwidth(bz_cuda *c)
{
    size_t free_bytes = 0, all = 0, most = (size_t)512 << 20;
    copy p = {.cuda = c};
    if (cudaMemGetInfo(&free_bytes, &all) != cudaSuccess)
        return NAN;
    p.size = free_bytes / 8 < most ? free_bytes / 8 : most;
    bool bad = p.size < 2 * c->flush_size || bz_cuda_alloc(p.size, &p.from, NULL) || bz_cuda_alloc(p.size, &p.to, NULL);
    bad = bad || cudaMemsetAsync(p.from, 0x5a, p.size, c->stream) != cudaSuccess;
    double least = bad ? NAN : least_of(c, run_copy, &p, 1);
    bz_cuda_free(p.from);
    bz_cuda_free(p.to);
    return least > 0 ? 2 * (double)p.size / least : NAN;
}
