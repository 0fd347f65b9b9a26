/* The rows: every implementation of every way, and what their calls are. */
#include "runtime/cudart/cudart.h"

static cudaError_t copy(move *m)
{
    return cudaMemcpyAsync(m->y, m->x, m->size, cudaMemcpyDefault, m->run.cuda->stream);
}

static cudaError_t start(const move *m, cudaKernel_t kernel, size_t threads, void **args)
{
    enum { THREADS = 256, MOST_BLOCKS = 2048 };
    size_t blocks = (threads + THREADS - 1) / THREADS;
    return cudaLaunchKernel((const void *)kernel, (dim3){(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1},
                            (dim3){threads < THREADS ? (unsigned)threads : THREADS, 1, 1}, args, 0,
                            m->run.cuda->stream);
}

static int whole_pieces(move *m, bz_error *err)
{
    return m->size % 16 ? bz_fail(err, BZ_INCOMPLETE, "the kernel copies 16 bytes at once") : 0;
}

static cudaError_t copy_by_kernel(move *m)
{
    unsigned long long n = m->size / 16;
    void *args[] = {&m->y, &m->x, &n};
    return start(m, m->copy, m->size / 16, args);
}

static cudaError_t set(move *m)
{
    return cudaMemsetAsync(m->y, 1, m->y_size, m->run.cuda->stream);
}

static void close_streams(move *m)
{
    for (int i = 0; i < MOVE_STREAMS; i++) {
        if (m->stream[i])
            cudaStreamDestroy(m->stream[i]);
        if (m->ended[i])
            cudaEventDestroy(m->ended[i]);
    }
    if (m->begun)
        cudaEventDestroy(m->begun);
    move_put(PLACE_PINNED, m->back[0]);
    move_put(PLACE_DEVICE, m->back[1]);
}

static int open_streams(move *m, bz_error *err)
{
    cudaError_t status = cudaEventCreateWithFlags(&m->begun, cudaEventDisableTiming);
    for (int i = 0; i < MOVE_STREAMS && status == cudaSuccess; i++) {
        status = cudaStreamCreateWithFlags(&m->stream[i], cudaStreamNonBlocking);
        status = status ? status : cudaEventCreateWithFlags(&m->ended[i], cudaEventDisableTiming);
    }
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "making streams", status);
}

static int open_both(move *m, bz_error *err)
{
    return open_streams(m, err) || move_get(PLACE_PINNED, m->size, &m->back[0], err) ||
                   move_get(PLACE_DEVICE, m->size, &m->back[1], err)
               ? -1
               : 0;
}

/* Part i of n of x begins on its own stream when the first stream comes to it, which waits for all parts. */
static cudaError_t on_streams(move *m, int n)
{
    bool both = m->row->way == BZ_TRANSFER_BOTH_WAYS;
    cudaStream_t first = m->run.cuda->stream;
    cudaError_t status = cudaEventRecord(m->begun, first);
    for (int i = 0; i < n && status == cudaSuccess; i++) {
        size_t from = both ? 0 : m->size * (size_t)i / (size_t)n,
               to = both ? m->size : m->size * (size_t)(i + 1) / (size_t)n;
        status = cudaStreamWaitEvent(m->stream[i], m->begun, 0);
        if (status == cudaSuccess && both && i)
            status = cudaMemcpyAsync(m->back[0], m->back[1], m->size, cudaMemcpyDefault, m->stream[i]);
        else if (status == cudaSuccess && to > from)
            status = cudaMemcpyAsync(m->y + from, m->x + from, to - from, cudaMemcpyDefault, m->stream[i]);
        status = status ? status : cudaEventRecord(m->ended[i], m->stream[i]);
        status = status ? status : cudaStreamWaitEvent(first, m->ended[i], 0);
    }
    return status;
}

static cudaError_t two_streams(move *m)
{
    return on_streams(m, 2);
}

static cudaError_t four_streams(move *m)
{
    return on_streams(m, MOVE_STREAMS);
}

/* y moves to the second device. */
static int open_second(move *m, bz_error *err)
{
    int devices = 0, first = m->run.cuda->device;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2)
        return bz_fail(err, BZ_INCOMPLETE, "there is one device, which has nobody to exchange with");
    move_put(PLACE_DEVICE, m->y);
    m->y = NULL;
    int rc = cudaSetDevice(first + 1) == cudaSuccess ? move_get(PLACE_DEVICE, m->y_size, &m->y, err)
                                                     : bz_fail(err, BZ_FAILED, "the second device cannot be used");
    cudaSetDevice(first);
    return rc;
}

static int open_peer(move *m, bz_error *err)
{
    int can = 0, first = m->run.cuda->device;
    if (open_second(m, err))
        return -1;
    if (cudaDeviceCanAccessPeer(&can, first, first + 1) != cudaSuccess || !can)
        return bz_fail(err, BZ_INCOMPLETE, "the first device cannot reach the second one's memory");
    cudaError_t status = cudaDeviceEnablePeerAccess(first + 1, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled)
        status = cudaGetLastError() == status ? cudaSuccess : status;
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "letting the devices reach each other", status);
}

static void close_peer(move *m)
{
    if (cudaDeviceDisablePeerAccess(m->run.cuda->device + 1) != cudaSuccess)
        cudaGetLastError(); /* it was not enabled */
}

static cudaError_t to_peer(move *m)
{
    int first = m->run.cuda->device;
    return cudaMemcpyPeerAsync(m->y, first + 1, m->x, first, m->size, m->run.cuda->stream);
}

static cudaError_t touch(move *m)
{
    unsigned long long n = (m->size + PAGE - 1) / PAGE, apart = PAGE;
    void *args[] = {&m->y, &n, &apart};
    return start(m, m->touch, (size_t)n, args);
}

/* The host writes each page, which brings it back: anything but 1, so that the kernel's work is seen. */
static cudaError_t host_writes(move *m)
{
    for (size_t i = 0; i < m->size; i += PAGE)
        ((volatile char *)m->y)[i] = 2;
    return cudaSuccess;
}

static cudaError_t advise(const move *m, enum cudaMemoryAdvise advice, int device)
{
#if CUDART_VERSION >= 13000
    struct cudaMemLocation at = {.type = device < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                 .id = device < 0 ? 0 : device};
    return cudaMemAdvise(m->y, m->size, advice, at);
#else
    return cudaMemAdvise(m->y, m->size, advice, device < 0 ? cudaCpuDeviceId : device);
#endif
}

static cudaError_t prefetch(move *m)
{
    int device = m->run.cuda->device;
#if CUDART_VERSION >= 13000
    struct cudaMemLocation at = {.type = cudaMemLocationTypeDevice, .id = device};
    cudaError_t status = cudaMemPrefetchAsync(m->y, m->size, at, 0, m->run.cuda->stream);
#else
    cudaError_t status = cudaMemPrefetchAsync(m->y, m->size, device, m->run.cuda->stream);
#endif
    return status == cudaSuccess ? touch(m) : status;
}

static int open_managed(move *m, bz_error *err)
{
    int can = 0;
    if (cudaDeviceGetAttribute(&can, cudaDevAttrConcurrentManagedAccess, m->run.cuda->device) != cudaSuccess || !can)
        return bz_fail(err, BZ_INCOMPLETE, "this device and the host cannot both use unified memory at any time");
    return 0;
}

static int open_advised(move *m, bz_error *err)
{
    if (open_managed(m, err))
        return -1;
    cudaError_t status = advise(m, cudaMemAdviseSetPreferredLocation, -1);
    status = status ? status : advise(m, cudaMemAdviseSetAccessedBy, m->run.cuda->device);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "advising", status);
}

static cudaError_t allocate(move *m)
{
    void *at = NULL;
    cudaError_t status = cudaMalloc(&at, m->size);
    status = status ? status : cudaFree(at);
    *m->y = (char)(status == cudaSuccess && at);
    return status;
}

static cudaError_t allocate_from_pool(move *m)
{
    void *at = NULL;
    cudaError_t status = cudaMallocAsync(&at, m->size, m->run.cuda->stream);
    status = status ? status : cudaFreeAsync(at, m->run.cuda->stream);
    *m->y = (char)(status == cudaSuccess && at);
    return status;
}

static cudaError_t pin(move *m)
{
    void *at = NULL;
    cudaError_t status = cudaHostAlloc(&at, m->size, cudaHostAllocDefault);
    if (status == cudaSuccess)
        *m->y = *(char *)at = 1;
    return status == cudaSuccess ? cudaFreeHost(at) : status;
}

static int open_host(move *m, bz_error *err)
{
    return move_get(PLACE_HOST, m->size, &m->back[0], err);
}

static void close_host(move *m)
{
    move_put(PLACE_HOST, m->back[0]);
}

static cudaError_t pin_later(move *m)
{
    cudaError_t status = cudaHostRegister(m->back[0], m->size, cudaHostRegisterDefault);
    if (status == cudaSuccess)
        *m->y = 1;
    return status == cudaSuccess ? cudaHostUnregister(m->back[0]) : status;
}

static cudaError_t launch(move *m)
{
    unsigned long long n = 1, apart = 1;
    void *args[] = {&m->y, &n, &apart};
    return start(m, m->touch, 1, args);
}

static int open_graph(move *m, bz_error *err)
{
    cudaStream_t stream = m->run.cuda->stream;
    cudaError_t status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (status == cudaSuccess) {
        for (size_t i = 0; i < m->size && status == cudaSuccess; i++)
            status = launch(m);
        cudaError_t ended = cudaStreamEndCapture(stream, &m->graph);
        status = status == cudaSuccess ? ended : status;
    }
    status = status ? status : cudaGraphInstantiate(&m->exec, m->graph, 0);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "making a graph", status);
}

static void close_graph(move *m)
{
    if (m->exec)
        cudaGraphExecDestroy(m->exec);
    if (m->graph)
        cudaGraphDestroy(m->graph);
}

static cudaError_t launch_graph(move *m)
{
    return cudaGraphLaunch(m->exec, m->run.cuda->stream);
}

static int open_event(move *m, bz_error *err)
{
    cudaError_t status = cudaEventCreateWithFlags(&m->begun, cudaEventDisableTiming);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "making an event", status);
}

static cudaError_t record_event(move *m)
{
    cudaError_t status = cudaEventRecord(m->begun, m->run.cuda->stream);
    *m->y = status == cudaSuccess;
    return status;
}

static cudaError_t synchronize(move *m)
{
    cudaError_t status = cudaStreamSynchronize(m->run.cuda->stream);
    *m->y = status == cudaSuccess;
    return status;
}

static cudaError_t synchronize_device(move *m)
{
    cudaError_t status = cudaDeviceSynchronize();
    *m->y = status == cudaSuccess;
    return status;
}

#define NONE       PLACE_NONE
#define HOST       PLACE_HOST
#define DEVICE     PLACE_DEVICE
#define BY_DEVICE  TIMED_BY_DEVICE
#define WHOLE      TIMED_WHOLE
#define CALL       TIMED_CALL
#define COLLECTIVE DEVICE, DEVICE, WHOLE, move_open_collective, move_collective, NULL, move_close_collective

/* clang-format off */
const move_row move_rows[] = {
    {BZ_TRANSFER_TO_DEVICE, "memcpy", HOST, DEVICE, WHOLE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_DEVICE_PINNED, "pinned", PLACE_PINNED, DEVICE, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_DEVICE_PINNED, "write-combined", PLACE_COMBINED, DEVICE, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_DEVICE_PINNED, "registered", PLACE_REGISTERED, DEVICE, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_HOST, "memcpy", DEVICE, HOST, WHOLE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_HOST_PINNED, "pinned", DEVICE, PLACE_PINNED, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_TO_HOST_PINNED, "registered", DEVICE, PLACE_REGISTERED, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_BOTH_WAYS, "two streams", PLACE_PINNED, DEVICE, BY_DEVICE, open_both, two_streams, NULL, close_streams},
    {BZ_TRANSFER_STREAMS, "two streams", PLACE_PINNED, DEVICE, BY_DEVICE, open_streams, two_streams, NULL, close_streams},
    {BZ_TRANSFER_STREAMS, "four streams", PLACE_PINNED, DEVICE, BY_DEVICE, open_streams, four_streams, NULL, close_streams},
    {BZ_TRANSFER_OVER_LINK, "kernel", PLACE_PINNED, DEVICE, BY_DEVICE, whole_pieces, copy_by_kernel, NULL, NULL},
    {BZ_TRANSFER_WITHIN, "memcpy", DEVICE, DEVICE, BY_DEVICE, NULL, copy, NULL, NULL},
    {BZ_TRANSFER_WITHIN, "kernel", DEVICE, DEVICE, BY_DEVICE, whole_pieces, copy_by_kernel, NULL, NULL},
    {BZ_TRANSFER_SET, "memset", NONE, DEVICE, BY_DEVICE, NULL, set, NULL, NULL},
    {BZ_TRANSFER_PEER, "direct", DEVICE, DEVICE, BY_DEVICE, open_peer, to_peer, NULL, close_peer},
    {BZ_TRANSFER_PEER_STAGED, "staged", DEVICE, DEVICE, BY_DEVICE, open_second, to_peer, NULL, NULL},
    {BZ_TRANSFER_MANAGED_TOUCH, "fault", NONE, PLACE_MANAGED, WHOLE, open_managed, touch, host_writes, NULL},
    {BZ_TRANSFER_MANAGED_PREFETCH, "prefetch", NONE, PLACE_MANAGED, WHOLE, open_managed, prefetch, host_writes, NULL},
    {BZ_TRANSFER_MANAGED_ADVISED, "stays", NONE, PLACE_MANAGED, WHOLE, open_advised, touch, host_writes, NULL},
    {BZ_TRANSFER_ALLOCATE, "malloc", NONE, HOST, WHOLE, NULL, allocate, NULL, NULL},
    {BZ_TRANSFER_ALLOCATE, "pool", NONE, HOST, WHOLE, NULL, allocate_from_pool, NULL, NULL},
    {BZ_TRANSFER_PIN, "alloc", NONE, HOST, WHOLE, NULL, pin, NULL, NULL},
    {BZ_TRANSFER_PIN, "register", NONE, HOST, WHOLE, open_host, pin_later, NULL, close_host},
    {BZ_TRANSFER_LAUNCH, "kernel", NONE, DEVICE, CALL, NULL, launch, NULL, NULL},
    {BZ_TRANSFER_LAUNCH_WAIT, "kernel", NONE, DEVICE, WHOLE, NULL, launch, NULL, NULL},
    {BZ_TRANSFER_GRAPH, "graph", NONE, DEVICE, WHOLE, open_graph, launch_graph, NULL, close_graph},
    {BZ_TRANSFER_GRAPH_LAUNCH, "graph", NONE, DEVICE, CALL, open_graph, launch_graph, NULL, close_graph},
    {BZ_TRANSFER_EVENT, "record", NONE, HOST, CALL, open_event, record_event, NULL, close_streams},
    {BZ_TRANSFER_SYNCHRONIZE, "stream", NONE, HOST, CALL, NULL, synchronize, NULL, NULL},
    {BZ_TRANSFER_SYNCHRONIZE, "device", NONE, HOST, CALL, NULL, synchronize_device, NULL, NULL},
    {BZ_TRANSFER_ALL_REDUCE, "nccl", COLLECTIVE},
    {BZ_TRANSFER_ALL_GATHER, "nccl", COLLECTIVE},
    {BZ_TRANSFER_BROADCAST, "nccl", COLLECTIVE},
    {BZ_TRANSFER_SEND, "nccl", COLLECTIVE},
    {0},
};
/* clang-format on */
