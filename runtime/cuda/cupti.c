/* Which kernels a call runs, and for how long, as CUPTI's activity records say it.
 *
 * CUPTI is loaded when it is asked for: it comes with the toolkit, not with the driver. Its callbacks have no context
 * argument, so what they collect is this file's; a benchmark's process traces one variant at a time. */
#include "runtime/cuda/cuda.h"

#include "base/arena.h"
#include "base/sort.h"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUPTI_API_VERSION >= 130000 /* the records are those of the headers' version: only that library is loaded */
typedef CUpti_ActivityKernel10 record;
#else
typedef CUpti_ActivityKernel9 record;
#endif
typedef CUpti_ActivityMemset4 memset_record;
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityMemcpy6 memcpy_record;
#else
typedef CUpti_ActivityMemcpy5 memcpy_record;
#endif

enum { BUFFER = 1 << 20, WARM = 3, CALLS = 10 };

typedef struct seen {
    uint64_t start, end;
    bz_kernel kernel;
} seen;

static struct {
    pthread_mutex_t lock; /* CUPTI has a thread of its own */
    seen *item;
    size_t n, untimed; /* untimed: of the n */
    bool failed;
} collected = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*disable)(CUpti_ActivityKind);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
} cupti;

static const bz_cuda_symbol SYMBOLS[] = {
    {"cuptiActivityRegisterCallbacks", &cupti.callbacks},
    {"cuptiActivityEnable", &cupti.enable},
    {"cuptiActivityDisable", &cupti.disable},
    {"cuptiActivityFlushAll", &cupti.flush},
    {"cuptiActivityGetNextRecord", &cupti.next},
};

/* The folder of a file that is loaded, with the slash; "" where nobody knows. */
static void folder_of(const void *address, char *out, size_t size)
{
    Dl_info at;
    const char *end = dladdr(address, &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : NULL;
    snprintf(out, size, "%.*s", end ? (int)(end + 1 - at.dli_fname) : 0, end ? at.dli_fname : "");
}

/* Counters are scheduled by libraries that lie beside libcupti, and that it looks for on the loader's path alone: once they
 * are open, that finds them. */
static void open_companions(void *library)
{
    static const char *const NAMES[] = {"libnvperf_host.so", "libnvperf_target.so"};
    char folder[400], path[512];
    folder_of(dlsym(library, "cuptiActivityEnable"), folder, sizeof folder);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && *folder; i++) {
        snprintf(path, sizeof path, "%s%s", folder, NAMES[i]);
        dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
}

bool bz_cupti_place(size_t i, const char *runtime, const char *home, char *out, size_t size)
{
    static const struct {
        enum { ANYWHERE, RUNTIME, HOME } from;
        const char *folder;
    } PLACES[] = {
        {ANYWHERE, ""},
        {RUNTIME, ""},
        {RUNTIME, "../extras/CUPTI/lib64/"},
        {RUNTIME, "../../../extras/CUPTI/lib64/"}, /* from targets/x86_64-linux/lib */
        {RUNTIME, "../../cuda_cupti/lib/"},        /* nvidia/cuda_runtime/lib of a wheel */
        {HOME, "/extras/CUPTI/lib64/"},
        {HOME, "/lib64/"},
        {ANYWHERE, "/usr/local/cuda/extras/CUPTI/lib64/"},
        {ANYWHERE, "/usr/local/cuda/lib64/"},
    };
    if (i >= sizeof PLACES / sizeof *PLACES)
        return false;
    const char *base = PLACES[i].from == RUNTIME ? runtime : PLACES[i].from == HOME ? home : "";
    *out = 0;
    if (base && (PLACES[i].from == ANYWHERE || *base))
        snprintf(out, size, "%.400s%slibcupti.so.%d", base, PLACES[i].folder, CUDART_VERSION / 1000);
    return true;
}

static void *open_library(void)
{
    char runtime[400], path[512];
    void *library = NULL, *count = NULL;
    cudaError_t (*function)(int *) = cudaGetDeviceCount;
    memcpy(&count, &function, sizeof count); /* ISO C has no cast from a function's address to that of data */
    folder_of(count, runtime, sizeof runtime);
    for (size_t i = 0; !library && bz_cupti_place(i, runtime, getenv("CUDA_HOME"), path, sizeof path); i++)
        library = *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library)
        open_companions(library);
    return library;
}

int bz_cupti_find(const bz_cuda_symbol *symbols, size_t n, bz_error *err)
{
    static void *library; /* once in a process: CUPTI cannot be unloaded */
    if (!library)
        library = open_library();
    if (!library)
        return bz_fail(
            err, BZ_FAILED,
            "libcupti.so.%d was not found: put its folder into LD_LIBRARY_PATH, or say where CUDA is with CUDA_HOME",
            CUDART_VERSION / 1000);
    const char *missing = bz_cuda_symbols(library, symbols, n);
    return missing ? bz_fail(err, BZ_FAILED, "the libcupti that was found has no %s", missing) : 0;
}

/* Refusals that a person can do something about. */
static const struct {
    CUptiResult status;
    const char *advice;
} REFUSALS[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "the driver lets only root look at kernels: run as root, or load the kernel "
                                          "module nvidia with NVreg_RestrictProfilingToAdminUsers=0"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the hypervisor lets nobody look at kernels of this virtual GPU: its administrator can allow profiling"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler is at work in this process: run without it"},
    {CUPTI_ERROR_HARDWARE_BUSY,
     "another program uses the device's counters: end it, or pause it (DCGM: dcgmi profile --pause)"},
};

int bz_cupti_failed(bz_error *err, const char *what, int status)
{
    CUptiResult (*text_of)(CUptiResult, const char **) = NULL;
    const bz_cuda_symbol symbol = {"cuptiGetResultString", &text_of};
    const char *text = "?";
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++)
        if ((int)REFUSALS[i].status == status)
            return bz_fail(err, BZ_FAILED, "%s", REFUSALS[i].advice);
    if (!bz_cupti_find(&symbol, 1, NULL))
        text_of((CUptiResult)status, &text);
    return bz_fail(err, BZ_FAILED, "%s: %s", what, text);
}

static void give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0; /* as many records as fit */
}

static void keep(seen s)
{
    BZ_ADD(collected.item, collected.n) = s;
    collected.untimed += !s.start || s.end < s.start; /* CUPTI writes 0 where it could not take the time */
}

static seen of_kernel(const record *r)
{
    seen s = {r->start, r->end, {.registers = r->registersPerThread}};
    snprintf(s.kernel.name, sizeof s.kernel.name, "%.*s", (int)sizeof s.kernel.name - 1, r->name ? r->name : "?");
    memcpy(s.kernel.grid, (int32_t[]){r->gridX, r->gridY, r->gridZ}, sizeof s.kernel.grid);
    memcpy(s.kernel.block, (int32_t[]){r->blockX, r->blockY, r->blockZ}, sizeof s.kernel.block);
    s.kernel.shared = r->staticSharedMemory + r->dynamicSharedMemory;
    return s;
}

/* Calls also set and copy memory: the device is busy with it as with a kernel. */
static seen of_memory(uint64_t start, uint64_t end, const char *what)
{
    seen s = {.start = start, .end = end};
    snprintf(s.kernel.name, sizeof s.kernel.name, "%s", what);
    return s;
}

static const CUpti_ActivityKind KINDS[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET,
                                           CUPTI_ACTIVITY_KIND_MEMCPY};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *a = NULL;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&collected.lock);
    collected.failed |= !buffer;
    while (buffer && valid && cupti.next(buffer, valid, &a) == CUPTI_SUCCESS)
        if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            keep(of_kernel((const record *)a));
        else if (a->kind == CUPTI_ACTIVITY_KIND_MEMSET)
            keep(of_memory(((const memset_record *)a)->start, ((const memset_record *)a)->end, "memset"));
        else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            keep(of_memory(((const memcpy_record *)a)->start, ((const memcpy_record *)a)->end, "memcpy"));
    pthread_mutex_unlock(&collected.lock);
    free(buffer);
}

/* What is traced: calls of a variant, or of a function. */
typedef struct traced {
    bz_variant *variant;
    bz_cuda *cuda;
    bz_cuda_call *call;
} traced;

/* Kernels of n calls. Everything that came before is forgotten first. */
static int run_traced(const traced *t, int n)
{
    bz_variant *v = t->variant;
    int bad = 0;
    collected.n = collected.untimed = 0;
    for (int i = 0; i < n && !bad; i++)
        bad = v ? v->backend->execute(v, 0) : t->call(t->cuda);
    bad |= !v ? bz_cuda_wait(t->cuda) : v->backend->wait ? v->backend->wait(v) : 0;
    bad |= cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != CUPTI_SUCCESS;
    return bad ? -1 : 0;
}

BZ_SORTS(by_start, seen, BZ_ORDER(p->start, q->start));

static double median(double *values, int n)
{
    bz_sort_numbers(values, (size_t)n);
    return bz_quantile(values, (size_t)n, 0.5);
}

static double length(uint64_t start, uint64_t end)
{
    return end > start ? 1e-9 * (double)(end - start) : 0;
}

/* Seconds for which at least one of them runs; they are in the order of their starts. Branches of a CUDA graph run at the same
 * time, and a kernel may begin before its predecessor has ended: their sum would be more than a program is busy with. */
static double busy_with(const seen *s, int n)
{
    double sum = 0;
    uint64_t until = 0;
    for (int i = 0; i < n; i++) {
        sum += length(s[i].start > until ? s[i].start : until, s[i].end);
        until = s[i].end > until ? s[i].end : until;
    }
    return sum;
}

/* Medians over all calls: of each kernel, and of how long a call kept the device busy. */
static void sum_up(bz_trace *out)
{
    double time[CALLS], busy[CALLS] = {0};
    int each = (int)(collected.n / CALLS);
    qsort(collected.item, collected.n, sizeof *collected.item, by_start);
    out->calls = CALLS;
    out->n_kernels = each;
    for (int i = 0; i < CALLS; i++)
        busy[i] = busy_with(collected.item + i * each, each);
    for (int k = 0; k < each && k < BZ_MAX_KERNELS; k++) {
        for (int i = 0; i < CALLS; i++)
            time[i] = length(collected.item[i * each + k].start, collected.item[i * each + k].end);
        out->kernel[k] = collected.item[k].kernel;
        out->kernel[k].seconds = median(time, CALLS);
    }
    out->seconds = median(busy, CALLS);
}

static void disable_all(void)
{
    for (int i = 0; i < N_KINDS; i++)
        cupti.disable(KINDS[i]);
}

static int trace(const traced *t, bz_trace *out, bz_error *err)
{
    *out = (bz_trace){0};
    if (bz_cupti_find(SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, err))
        return -1;
    collected.failed = false; /* what an earlier trace lost is not lost to this one */
    CUptiResult status = cupti.callbacks(give_buffer, take_buffer);
    for (int i = 0; i < N_KINDS && status == CUPTI_SUCCESS; i++)
        status = cupti.enable(KINDS[i]);
    if (status != CUPTI_SUCCESS) {
        disable_all();
        return bz_cupti_failed(err, "CUPTI does not trace", (int)status);
    }
    int bad = run_traced(t, WARM) || run_traced(t, CALLS);
    disable_all(); /* others are measured after this */
    if (bad || collected.failed)
        bad = bz_fail(err, BZ_FAILED, "the library failed while it was traced");
    else if (!collected.n || collected.untimed)
        bad = bz_fail(err, BZ_FAILED, "CUPTI saw %zu kernels in %d calls, %zu of them without a time", collected.n,
                      CALLS, collected.untimed);
    else if (collected.n % CALLS)
        bad = bz_fail(err, BZ_FAILED, "%d calls ran %zu kernels: not the same ones each time", CALLS, collected.n);
    else
        sum_up(out);
    free(collected.item);
    collected.item = NULL;
    collected.n = 0;
    return bad;
}

int bz_cuda_trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    return trace(&(traced){.variant = v}, out, err);
}

int bz_cuda_trace_call(bz_cuda *c, bz_cuda_call *call, bz_trace *out, bz_error *err)
{
    return trace(&(traced){.cuda = c, .call = call}, out, err);
}

#else

int bz_cuda_trace_call(bz_cuda *c, bz_cuda_call *call, bz_trace *out, bz_error *err)
{
    (void)c, (void)call;
    return bz_cuda_trace(NULL, out, err);
}

int bz_cuda_trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    (void)v;
    *out = (bz_trace){0};
    return bz_fail(err, BZ_FAILED, "built without CUPTI: install it with the CUDA toolkit and build again");
}

#endif
