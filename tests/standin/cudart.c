/* A stand-in for the CUDA runtime: one device of 1 GiB, calls recorded, nothing run. */
#include "tests/standin/record.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int launches, launched[2]; /* kernels; until the last two events */

static const char *kind_name(enum cudaMemcpyKind kind)
{
    static const char *const NAMES[] = {"host-host", "host-device", "device-host", "device-device", "default"};
    return NAMES[kind];
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = standin_devices;
    return standin_driver < 0 ? cudaSuccess : cudaErrorInsufficientDriver;
}

cudaError_t cudaSetDevice(int device)
{
    standin_record("cudaSetDevice %d", device);
    return (cudaError_t)standin_refuses;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = standin_new("stream");
    standin_record("cudaStreamCreateWithFlags %s flags=%u", standin_name(*stream), flags);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    standin_record("cudaStreamDestroy %s", standin_name(stream));
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    standin_record("cudaDeviceSynchronize");
    return (cudaError_t)standin_sticky;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    standin_record("cudaStreamSynchronize %s", standin_name(stream));
    return (cudaError_t)standin_sticky;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = standin_new("event");
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = standin_new("event");
    standin_record("cudaEventCreateWithFlags %s flags=%u", standin_name(*event), flags);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    launched[0] = launched[1];
    launched[1] = launches;
    standin_record("cudaEventRecord %s %s", standin_name(event), standin_name(stream));
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    standin_record("cudaEventElapsedTime %s %s", standin_name(from), standin_name(to));
    *ms = 1 + standin_launch_ms * (float)(launched[1] - launched[0]);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    standin_record("cudaStreamWaitEvent %s %s flags=%u", standin_name(stream), standin_name(event), flags);
    return cudaSuccess;
}

/* What is captured runs at once, too: a launch would compute the same again. */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    standin_record("cudaStreamBeginCapture %s mode=%d", standin_name(stream), (int)mode);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = standin_new("graph");
    standin_record("cudaStreamEndCapture %s %s", standin_name(stream), standin_name(*graph));
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    *graph = standin_new("cudagraph");
    standin_record("cudaGraphCreate %s flags=%u", standin_name(*graph), flags);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    *exec = standin_new("exec");
    standin_record("cudaGraphInstantiate %s %s flags=%llu", standin_name(*exec), standin_name(graph), flags);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    standin_record("cudaGraphLaunch %s %s", standin_name(exec), standin_name(stream));
    standin_computed = false;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    standin_record("cudaGraphExecDestroy %s", standin_name(exec));
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    standin_record("cudaGraphDestroy %s", standin_name(graph));
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *context)
{
    standin_record("cudaLaunchHostFunc %s", standin_name(stream));
    function(context);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    *free_bytes = *all = (size_t)1 << 30;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    *value = attribute == cudaDevAttrL2CacheSize               ? 1 << 20
             : attribute == cudaDevAttrComputeCapabilityMajor  ? 9
             : attribute == cudaDevAttrConcurrentManagedAccess ? 1
                                                               : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t size)
{
    if (size > (standin_full ? 2000 : (size_t)1 << 30))
        return cudaErrorMemoryAllocation;
    *out = standin_memory(size);
    standin_record("cudaMalloc %s bytes=%zu", standin_name(*out), size);
    return cudaSuccess;
}

cudaError_t cudaFree(void *data)
{
    standin_record("cudaFree %s", standin_name(data));
    standin_memory_free(data);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    *out = calloc(1, size);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *data, size_t size, unsigned flags)
{
    (void)data;
    standin_record("cudaHostRegister bytes=%zu flags=%u", size, flags);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *data)
{
    (void)data;
    standin_record("cudaHostUnregister");
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
    *out = standin_memory(size);
    standin_record("cudaMallocAsync %s bytes=%zu %s", standin_name(*out), size, standin_name(stream));
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *data, cudaStream_t stream)
{
    standin_record("cudaFreeAsync %s %s", standin_name(data), standin_name(stream));
    standin_memory_free(data);
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **out, size_t size, unsigned flags)
{
    *out = standin_memory(size);
    standin_record("cudaMallocManaged %s bytes=%zu flags=%u", standin_name(*out), size, flags);
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void *data, size_t size, enum cudaMemoryAdvise advice, struct cudaMemLocation at)
{
    standin_record("cudaMemAdvise %s bytes=%zu advice=%d at=%d,%d", standin_name(data), size, (int)advice, (int)at.type,
                   at.id);
    return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *data, size_t size, struct cudaMemLocation at, unsigned flags,
                                 cudaStream_t stream)
{
    standin_record("cudaMemPrefetchAsync %s bytes=%zu at=%d,%d flags=%u %s", standin_name(data), size, (int)at.type,
                   at.id, flags, standin_name(stream));
    return cudaSuccess;
}
#endif

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    standin_record("cudaDeviceCanAccessPeer %d %d", device, peer);
    *can = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    standin_record("cudaDeviceEnablePeerAccess %d flags=%u", peer, flags);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    standin_record("cudaDeviceDisablePeerAccess %d", peer);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t n,
                                cudaStream_t stream)
{
    standin_record("cudaMemcpyPeerAsync %s of %d <- %s of %d bytes=%zu %s", standin_name(to), to_device,
                   standin_name(from), from_device, n, standin_name(stream));
    memcpy(to, from, n);
    standin_computed = true;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *data)
{
    free(data);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags)
{
    (void)flags;
    *out = host;
    return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit, void **jit_values,
                                unsigned n_jit, enum cudaLibraryOption *options, void **values, unsigned n)
{
    (void)code, (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    *library = standin_new("library");
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    (void)library;
    *kernel = standin_new(name);
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    (void)library;
    return cudaSuccess;
}

/* Kernels of our own are few: what they do is done. */
static void run_own(const void *kernel, void **args)
{
    const char *name = standin_name(kernel);
    if (!strncmp(name, "bz_touch", 8)) {
        unsigned long long n = *(unsigned long long *)args[1], apart = *(unsigned long long *)args[2];
        for (unsigned long long i = 0; i < n; i++)
            (*(char **)args[0])[i * apart] = 1;
        standin_computed = true;
    } else if (!strncmp(name, "bz_copy", 7)) {
        memcpy(*(char **)args[0], *(char **)args[1], 16 * *(unsigned long long *)args[2]);
        standin_computed = true;
    }
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    (void)shared;
    if (standin_raw) /* no driver's library compiles what was loaded as text */
        return cudaErrorJitCompilerNotFound;
    if (standin_stuck &&
        !**(unsigned **)args[0]) /* what the kernel that holds the queue says after its patience is over */
        (*(unsigned **)args[0])[1] = 1;
    launches++;
    run_own(kernel, args);
    if (standin_launched)
        standin_launched();
    standin_record("cudaLaunchKernel %s grid=%u,%u,%u block=%u,%u,%u %s", standin_name(kernel), grid.x, grid.y, grid.z,
                   block.x, block.y, block.z, standin_name(stream));
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    standin_record("cudaMemcpy %s <- %s bytes=%zu %s", standin_name(to), standin_name(from), n, kind_name(kind));
    memcpy(to, from, n);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    standin_record("cudaMemcpyAsync %s <- %s bytes=%zu %s %s", standin_name(to), standin_name(from), n, kind_name(kind),
                   standin_name(stream));
    memcpy(to, from, n);
    standin_computed |= kind == cudaMemcpyDefault;
    return cudaSuccess;
}

/* What really is done: the result can be checked. */
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    standin_record("cudaMemcpy3DAsync %s pitch=%zu height=%zu <- %s pitch=%zu height=%zu extent=%zu,%zu,%zu %s %s",
                   standin_name(p->dstPtr.ptr), p->dstPtr.pitch, p->dstPtr.ysize, standin_name(p->srcPtr.ptr),
                   p->srcPtr.pitch, p->srcPtr.ysize, p->extent.width, p->extent.height, p->extent.depth,
                   kind_name(p->kind), standin_name(stream));
    for (size_t z = 0; z < p->extent.depth; z++)
        for (size_t y = 0; y < p->extent.height; y++)
            memcpy((char *)p->dstPtr.ptr + (z * p->dstPtr.ysize + y) * p->dstPtr.pitch,
                   (const char *)p->srcPtr.ptr + (z * p->srcPtr.ysize + y) * p->srcPtr.pitch, p->extent.width);
    standin_computed = true;
    return cudaSuccess;
}

cudaError_t cudaMemset(void *data, int value, size_t n)
{
    standin_record("cudaMemset %s value=%d bytes=%zu", standin_name(data), value, n);
    memset(data, value, n);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *data, int value, size_t n, cudaStream_t stream)
{
    standin_record("cudaMemsetAsync %s value=%d bytes=%zu %s", standin_name(data), value, n, standin_name(stream));
    memset(data, value, n);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stand-in";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    (void)device;
    memset(p, 0, sizeof *p);
    memcpy(p->name, "stand-in", sizeof "stand-in");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = standin_driver < 0 ? CUDART_VERSION : standin_driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static int current_context(void **context)
{
    static int one;
    *context = &one;
    return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    int (*function)(void **) = current_context;
    (void)version, (void)flags;
    *found = strcmp(name, "cuCtxGetCurrent") ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
    memcpy(out, &function, sizeof *out);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int n, int device)
{
    (void)device;
    snprintf(id, (size_t)n, "0000:01:00.0");
    return cudaSuccess;
}
