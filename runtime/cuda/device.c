/* A device made ready: stream, events, memory, errors. */
#include "runtime/cuda/cuda.h"

#include "runtime/gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After one of these every further call of the process fails with it. There are others, and new ones with each driver: what
 * fails twice in the same way, with nothing in between, is one as well. */
static bool is_fatal(cudaError_t status)
{
    static const cudaError_t FATAL[] = {
        cudaErrorIllegalAddress,      cudaErrorLaunchFailure,      cudaErrorLaunchTimeout,
        cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorAssert,
        cudaErrorECCUncorrectable,    cudaErrorContextIsDestroyed,
    };
    for (size_t i = 0; i < sizeof FATAL / sizeof *FATAL; i++)
        if (FATAL[i] == status)
            return true;
    return false;
}

static bool is_stuck(void)
{
    cudaError_t first = cudaDeviceSynchronize(), again = cudaDeviceSynchronize();
    bool captures = again == cudaErrorStreamCaptureUnsupported || again == cudaErrorStreamCaptureImplicit;
    return first != cudaSuccess && first == again && !captures;
}

int bz_cuda_failed(bz_error *err, const char *what, cudaError_t status)
{
    cudaGetLastError(); /* the next call must not report it again */
    if (is_fatal(status) || is_stuck()) {
        fprintf(stderr, "benanza: %s: %s\n", what, cudaGetErrorString(status));
        abort();
    }
    cudaGetLastError();
    return bz_fail(err, BZ_FAILED, "%s: %s", what, cudaGetErrorString(status));
}

void bz_cuda_settle(bz_cuda *c)
{
    cudaError_t status = cudaStreamSynchronize(c->stream);
    if (status != cudaSuccess)
        bz_cuda_failed(NULL, "a call that the library refused", status);
}

/* Why a device cannot be opened, and what to do. */
static const struct {
    cudaError_t status;
    const char *why;
} REFUSALS[] = {
    {cudaErrorMemoryAllocation, "its memory is full: end the programs that hold it (nvidia-smi lists them), or name "
                                "another GPU by --device"},
    {cudaErrorDevicesUnavailable, "another program has it alone (compute mode EXCLUSIVE_PROCESS): wait for its end, or "
                                  "name another GPU by --device"},
    {cudaErrorSystemNotReady, "its links to other GPUs are not set up: sudo systemctl start nvidia-fabricmanager"},
    {cudaErrorSystemDriverMismatch,
     "the kernel module is of another driver than libcuda.so.1: boot again, or load the module anew"},
    {cudaErrorCompatNotSupportedOnDevice, "libcuda.so.1 is that of cuda-compat, which this GPU does not support: take "
                                          "its folder off LD_LIBRARY_PATH"},
    {cudaErrorStubLibrary, "libcuda.so.1 is the toolkit's stub: take its folder off LD_LIBRARY_PATH"},
    {cudaErrorUnknown, "the driver does not answer: load the kernel module nvidia_uvm (sudo nvidia-modprobe -u), or "
                       "give the container the GPU (--gpus all)"},
};

/* Opening fails for reasons outside this process, and they stay: none of them is a crash. */
static int refuse(bz_error *err, cudaError_t status)
{
    const char *why = cudaGetErrorString(status);
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++)
        why = REFUSALS[i].status == status ? REFUSALS[i].why : why;
    cudaGetLastError();
    return bz_fail(err, BZ_FAILED, "no GPU can be used: %s", why);
}

static int find_device(bz_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int n = 0, driver = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    cudaDriverGetVersion(&driver);
    if (status == cudaErrorInsufficientDriver && driver)
        return bz_fail(
            err, BZ_FAILED,
            "no GPU can be used: the NVIDIA driver runs CUDA %d.%d, this is CUDA %d: install a newer driver, or "
            "build with an older CUDA",
            driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000);
    if (status == cudaErrorInsufficientDriver)
        return bz_fail(err, BZ_FAILED, "no GPU can be used: the NVIDIA driver is missing");
    bool none = status == cudaErrorNoDevice || (status == cudaSuccess && !n);
    if (none && bz_gpu_chosen())
        return bz_fail(err, BZ_FAILED,
                       "no GPU can be used: there is no GPU %s (--device); nvidia-smi -L lists those that are there",
                       bz_gpu_chosen());
    if (none && visible)
        return bz_fail(
            err, BZ_FAILED,
            "no GPU can be used: CUDA_VISIBLE_DEVICES is '%.60s', and names none that is there: unset it, or "
            "name one (nvidia-smi -L lists them)",
            visible);
    if (none)
        return bz_fail(err, BZ_FAILED, "this machine has no GPU that CUDA can use; run it where there is one");
    return status == cudaSuccess ? 0 : refuse(err, status);
}

/* Flushing writes twice the L2 cache: once would leave what a hashed set index happens to spare. */
static int open_memory(bz_cuda *c, const bz_run_setting *setting, bz_error *err)
{
    size_t free_bytes = 0, all = 0;
    int l2 = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &all);
    status = status ? status : cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, c->device);
    if (status != cudaSuccess)
        return refuse(err, status);
    c->memory = all;
    c->limited = setting->workspace > 0;
    c->workspace_limit = setting->workspace > 0 ? (size_t)setting->workspace : free_bytes / 10 * 9;
    c->flush_size = 2 * (size_t)(l2 > 0 ? l2 : 64 << 20);
    return c->cold ? bz_cuda_alloc(c->flush_size, &c->flush, err) : 0;
}

int bz_cuda_open(bz_cuda *c, const bz_run_setting *setting, bz_error *err)
{
    *c = (bz_cuda){.cold = setting->cold};
    if (find_device(err))
        return -1;
    cudaError_t status = cudaSetDevice(c->device);
    status = status ? status : cudaStreamCreateWithFlags(&c->stream, cudaStreamDefault);
    for (int i = 0; i < 16 && status == cudaSuccess; i++) {
        status = cudaEventCreate(&c->from[i]);
        status = status ? status : cudaEventCreate(&c->to[i]);
    }
    int result = status == cudaSuccess ? open_memory(c, setting, err) : refuse(err, status);
    if (result) {
        bz_cuda_close(c);
        return -1;
    }
    bz_cuda_clock_open(c);
    c->nvml = bz_nvml_open(c->device);
    return 0;
}

void bz_cuda_close(bz_cuda *c)
{
    if (c->borrowed) {
        cudaFreeHost(c->host);
        *c = (bz_cuda){0};
        return;
    }
    if (c->stream)
        cudaStreamSynchronize(c->stream);
    bz_cuda_clock_close(c);
    bz_cuda_free(c->flush);
    bz_cuda_free(c->workspace);
    for (int i = 0; i < 16; i++) {
        if (c->from[i])
            cudaEventDestroy(c->from[i]);
        if (c->to[i])
            cudaEventDestroy(c->to[i]);
    }
    if (c->stream)
        cudaStreamDestroy(c->stream);
    cudaFreeHost(c->host);
    *c = (bz_cuda){0};
}

int bz_cuda_alloc(size_t size, void **out, bz_error *err)
{
    cudaError_t status = cudaMalloc(out, size ? size : 1);
    if (status == cudaSuccess)
        return 0;
    *out = NULL;
    if (status != cudaErrorMemoryAllocation)
        return bz_cuda_failed(err, "allocating memory", status);
    cudaGetLastError();
    return bz_fail(err, BZ_FAILED, "out of device memory for %.3g GB", (double)size / 1e9);
}

void bz_cuda_free(void *memory)
{
    if (memory)
        cudaFree(memory);
}

int bz_cuda_put(void *to, const void *from, size_t size, const char *what, bz_error *err)
{
    cudaError_t status = cudaMemcpy(to, from, size, cudaMemcpyHostToDevice);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, what, status);
}

int bz_cuda_workspace(bz_cuda *c, size_t size, bz_error *err)
{
    if (size <= c->workspace_size)
        return 0;
    if (size > c->workspace_limit && !c->limited && size <= c->memory / 10 * 9)
        return bz_fail(err, BZ_FAILED,
                       "out of device memory: it wants %.3g GB of workspace, other programs left %.3g GB",
                       (double)size / 1e9, (double)c->workspace_limit / 1e9);
    if (size > c->workspace_limit)
        return bz_fail(err, BZ_INCOMPLETE, "it wants %.3g GB of workspace, the limit is %.3g GB", (double)size / 1e9,
                       (double)c->workspace_limit / 1e9);
    size_t before = c->workspace_size;
    cudaStreamSynchronize(c->stream);
    bz_cuda_free(c->workspace);
    c->workspace = NULL;
    c->workspace_size = 0;
    int result = bz_cuda_alloc(size, &c->workspace, err);
    if (result && before && !bz_cuda_alloc(before, &c->workspace, NULL)) /* others still count on it */
        c->workspace_size = before;
    else if (!result)
        c->workspace_size = size;
    return result;
}

int bz_cuda_wait(bz_cuda *c)
{
    cudaError_t status = cudaStreamSynchronize(c->stream);
    status = status ? status : cudaGetLastError();
    return status == cudaSuccess ? 0 : bz_cuda_failed(NULL, "running", status);
}

const char *bz_cuda_symbols(void *library, const bz_cuda_symbol *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return symbols[i].name;
        memcpy(symbols[i].to, &symbol, sizeof symbol); /* ISO C has no cast from one kind of pointer to the other */
    }
    return NULL;
}
