/* A recording stand-in for CUPTI, for tests on machines without a device: NOT the real library. It is built as
 * libcupti.so.13, checks the order of the calls that benanza makes, and delivers records of the real header's structs, of
 * work that never happened, through the callbacks that were registered. The program under test asks for such work with
 * stand_in_work. STAND_IN=refuse makes it refuse kernels, as CUPTI does where the user may not profile; STAND_IN=convolve
 * gives a kernel a name of cuDNN's. */
#include <cupti.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void stand_in_work(uint32_t thread, uint32_t iteration);
EXPORT void stand_in_flushed(void);
EXPORT void stand_in_crash(uint32_t thread);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t flushed = PTHREAD_COND_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc now;
static uint64_t enabled; /* bit per kind */
static uint8_t *buffer;
static size_t size, used, dropped, flushes;
static CUpti_ActivityThreadIdType ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;

static const struct {
    CUpti_ActivityKind kind;
    size_t size;
} SIZES[] = {
    {CUPTI_ACTIVITY_KIND_DEVICE, sizeof(CUpti_ActivityDevice5)},
    {CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CUpti_ActivityContext3)},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4)},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3)},
};

static size_t size_of(CUpti_ActivityKind kind)
{
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (SIZES[i].kind == kind)
            return SIZES[i].size;
    return 0;
}

/* A mistake in the order of calls ends the program: the test sees it by its status. */
static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "CUPTI stand-in: %s\n", what);
        _Exit(99);
    }
}

static void hand_over(void)
{
    if (!buffer)
        return;
    uint8_t *full = buffer;
    size_t valid = used;
    buffer = NULL;
    used = 0;
    complete(NULL, 0, full, size, valid);
}

static void put(const void *record)
{
    CUpti_ActivityKind kind = ((const CUpti_Activity *)record)->kind;
    size_t n = size_of(kind);
    if (!(enabled & UINT64_C(1) << kind))
        return;
    if (buffer && used + n > size)
        hand_over();
    if (!buffer) {
        size_t most = 1;
        request(&buffer, &size, &most);
        expect(buffer && !((uintptr_t)buffer % 8) && size >= 1024 && most == 0, "the buffer is not as CUPTI wants it");
    }
    memcpy(buffer + used, record, n);
    used += n;
}

static void put_api(CUpti_ActivityKind kind, uint32_t cbid, uint64_t at, uint32_t thread, uint32_t correlation)
{
    CUpti_ActivityAPI a = {
        .kind = kind, .cbid = cbid, .start = at, .end = at + 400, .processId = 1, .threadId = thread};
    a.correlationId = correlation;
    put(&a);
}

static void put_kernel(const char *name, uint64_t at, uint64_t took, uint32_t stream, uint32_t correlation)
{
    CUpti_ActivityKernel10 k = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                .registersPerThread = 40,
                                .start = at,
                                .end = at + took,
                                .deviceId = 1,
                                .contextId = 3,
                                .streamId = stream,
                                .gridX = 7,
                                .gridY = 8,
                                .gridZ = 9,
                                .blockX = 32,
                                .blockY = 4,
                                .blockZ = 2,
                                .staticSharedMemory = 512,
                                .dynamicSharedMemory = 2048,
                                .correlationId = correlation,
                                .name = name,
                                .isDeviceLaunched = 0};
    put(&k);
}

static void work(uint32_t thread, uint32_t iteration)
{
    expect(now && request && ids == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, "work before everything was registered");
    uint32_t c = 100 + iteration * 10;
    uint64_t t = now();
    if (iteration == 0) {
        CUpti_ActivityDevice5 d = {.kind = CUPTI_ACTIVITY_KIND_DEVICE, .id = 1, .numMultiprocessors = 132};
        d.name = "Stand-in GPU";
        d.globalMemorySize = UINT64_C(141) << 30;
        d.computeCapabilityMajor = 9;
        put(&d);
        CUpti_ActivityContext3 x = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT, .contextId = 3, .deviceId = 1};
        put(&x);
    }
    put_api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, t, thread, c);
    CUpti_ActivityMemset4 s = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = 4096, .start = t + 500, .end = t + 700};
    s.deviceId = 1, s.contextId = 3, s.streamId = 7, s.correlationId = c;
    put(&s);
    put_api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, t + 500, thread, c + 1);
    CUpti_ActivityMemcpy6 m = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD};
    m.bytes = 602112, m.start = t + 1000, m.end = t + 3000, m.copyCount = 1;
    m.deviceId = 1, m.contextId = 3, m.streamId = 7, m.correlationId = c + 1;
    put(&m);
    put_api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, t + 1000, thread, c + 2);
    const char *mode = getenv("STAND_IN");
    bool convolve = mode && !strcmp(mode, "convolve");
    put_kernel(convolve ? "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nchw" : "_Z3addIfEvPT_S1_i",
               t + 3000, 2000, 7, c + 2);
    put_api(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, t + 1500, thread, c + 3);
    put_kernel("plain_c_kernel", t + 4000, 2000, 13, c + 3);
    CUpti_ActivityMemcpyPtoP4 p = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2, .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP};
    put_api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000, t + 1900, thread, c + 4);
    p.bytes = 128, p.start = t + 6000, p.end = t + 6100;
    p.deviceId = 1, p.contextId = 3, p.streamId = 7, p.correlationId = c + 4;
    put(&p);
    put_api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, t + 2400, thread, c + 5);
    CUpti_ActivitySynchronization2 w = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .start = t + 2500, .end = t + 6200};
    w.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    w.correlationId = c + 5, w.contextId = 3, w.streamId = 7;
    put(&w);
    CUpti_ActivityOverhead3 o = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD, .start = t + 7000, .end = t + 7100};
    o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    o.objectId.pt.threadId = thread;
    put(&o);
    dropped += iteration == 0 ? 3 : 0;
}

void stand_in_work(uint32_t thread, uint32_t iteration)
{
    pthread_mutex_lock(&lock);
    work(thread, iteration);
    pthread_mutex_unlock(&lock);
}

/* Waits until all that was done so far has been handed over. */
void stand_in_flushed(void)
{
    pthread_mutex_lock(&lock);
    size_t before = flushes;
    while (flushes == before)
        pthread_cond_wait(&flushed, &lock);
    pthread_mutex_unlock(&lock);
}

/* A crash behind work that nobody hands over any more: the lock is never given back. */
void stand_in_crash(uint32_t thread)
{
    pthread_mutex_lock(&lock);
    work(thread, 1000);
    raise(SIGKILL);
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f)
{
    expect(f && !enabled, "the clock comes after the first kind was enabled");
    now = f;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    enabled &= ~(UINT64_C(1) << kind);
    return CUPTI_SUCCESS;
}

/* The real one gives buffers of the old callbacks to the new ones. */
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                                  CUpti_BuffersCallbackCompleteFunc c)
{
    expect(!buffer && !enabled, "callbacks change while somebody's buffer is in use, or kinds are recorded");
    request = r;
    complete = c;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    ids = type;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    const char *mode = getenv("STAND_IN");
    expect(request && complete, "a kind is enabled before the callbacks are there");
    if (mode && !strcmp(mode, "refuse") && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    enabled |= UINT64_C(1) << kind;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    pthread_mutex_lock(&lock);
    hand_over();
    flushes++;
    pthread_cond_broadcast(&flushed);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : data;
    if (next >= data + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *n)
{
    (void)context;
    (void)stream;
    *n = dropped;
    dropped = 0;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    static const struct {
        CUpti_CallbackDomain domain;
        uint32_t id;
        const char *name;
    } NAMES[] = {
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, "cudaMemsetAsync_v3020"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
         "cudaStreamSynchronize_v3020"},
        {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].domain == domain && NAMES[i].id == id) {
            *name = NAMES[i].name;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "?";
    return CUPTI_SUCCESS;
}
