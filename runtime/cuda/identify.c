/* What the device is. */
#include "runtime/cuda/cuda.h"

#include "runtime/gpus.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where the table of known devices has none of the name: "NVIDIA Quadro RTX 4000" → "quadro-rtx-4000". */
static void name_slug(const char *name, char *out, size_t size)
{
    size_t n = 0;
    if (!strncmp(name, "NVIDIA ", 7))
        name += 7;
    for (; *name && n + 1 < size; name++) {
        if (isalnum((unsigned char)*name) || *name == '.')
            out[n++] = (char)tolower((unsigned char)*name);
        else if (n && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n && out[n - 1] == '-')
        n--;
    out[n] = 0;
    if (!n)
        snprintf(out, size, "gpu");
}

/* Clocks come from the driver's attributes (kHz), and from NVML where there is one. */
static void describe(bz_device *d, int device)
{
    int v = 0;
    if (cudaDeviceGetAttribute(&v, cudaDevAttrClockRate, device) == cudaSuccess)
        d->clock = 1e3 * v;
    if (cudaDeviceGetAttribute(&v, cudaDevAttrMemoryClockRate, device) == cudaSuccess)
        d->memory_clock = 1e3 * v;
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess)
        snprintf(d->driver, sizeof d->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    bz_nvml *nvml = bz_nvml_open(device);
    bz_nvml_describe(nvml, d);
    bz_gpu known;
    if (bz_gpu_find(d->name, &known)) {
        snprintf(d->slug, sizeof d->slug, "%s", known.slug);
        d->bandwidth = known.bandwidth;
    } else {
        name_slug(d->name, d->slug, sizeof d->slug);
        d->bandwidth = 2 * d->memory_clock * d->bus / 8; /* double data rate */
    }
}

int bz_cuda_identify(bz_device *out, bz_error *err)
{
    bz_cuda c;
    bz_run_setting setting = {0};
    struct cudaDeviceProp p;
    int version = 0;
    if (bz_cuda_open(&c, &setting, err))
        return -1;
    cudaError_t status = cudaGetDeviceProperties(&p, c.device);
    if (status != cudaSuccess) {
        bz_cuda_close(&c);
        return bz_cuda_failed(err, "asking what the device is", status);
    }
    *out = (bz_device){
        .major = p.major,
        .minor = p.minor,
        .multiprocessors = p.multiProcessorCount,
        .memory = (int64_t)p.totalGlobalMem,
        .l2 = p.l2CacheSize,
        .bus = p.memoryBusWidth,
        .event_pair = NAN,
    };
    snprintf(out->name, sizeof out->name, "%.63s", p.name);
    cudaRuntimeGetVersion(&version);
    snprintf(out->stack, sizeof out->stack, "cuda%d.%d", version / 1000, version % 1000 / 10);
    describe(out, c.device);
    bz_cuda_close(&c);
    return 0;
}

int bz_cuda_lock(double hz, bz_error *err)
{
    return bz_nvml_lock(bz_nvml_open(0), hz, err);
}

void bz_cuda_rates(bz_device *out)
{
    bz_cuda c;
    if (bz_cuda_open(&c, &(bz_run_setting){0}, NULL))
        return;
    out->copied = bz_cuda_copy_bandwidth(&c);
    out->event_pair = c.hold ? bz_cuda_event_pair(&c) : NAN;
    out->kernel_gap = c.hold ? bz_cuda_gap(&c) : NAN; /* the profiler is the one that may fail */
    bz_cuda_close(&c);
}
