/* cuda N MODE: what a CUDA program looks like to the library that CUDA loads into it, on a machine without a device. Loads
 * CUDA_INJECTION64_PATH as the driver does in cuInit, lets the stand-in for CUPTI (tests/standin/cupti_activity.c) pretend N
 * iterations, each inside of an NVTX range, and ends as MODE says: "ok", "crash", "exit" from inside of a range. With "client" it
 * takes CUPTI for itself after two iterations, as a program does that is linked to it, with "first" before CUDA begins. With
 * "cudnn" the real cuDNN is called before each iteration, which logs the call and fails; 77 where it is not installed. NVTX is
 * the real one. */
#include <cupti.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void load_injection(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL,
         *symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    int (*initialize)(void);
    if (!symbol)
        return;
    memcpy(&initialize, &symbol, sizeof initialize);
    if (initialize() != 1)
        exit(3);
}

static void other_ranges(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &a);
    nvtxRangeId_t id = nvtxRangeStartW(L"w\u00efde");
    nvtxMarkA("mark");
    nvtxDomainRangePop(domain);
    nvtxRangeEnd(id);
    nvtxRangeEnd(id); /* twice is the program's mistake */
}

static uint64_t own_clock(void)
{
    return 7;
}

/* The program's own client of CUPTI: what it gets are records of kernels, which it counts, in the program's own buffers. */
static char buffers[16][65536] __attribute__((aligned(8)));
static int n_buffers, n_back;

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = n_buffers < 16 ? (uint8_t *)buffers[n_buffers++] : NULL;
    *size = sizeof buffers[0];
    *most = 0;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    if (!valid || buffer < (uint8_t *)buffers || buffer >= (uint8_t *)(buffers + 16)) /* not one of ours */
        _Exit(98);
    n_back++;
}

/* A function of CUPTI's as the loader finds it for a program that is linked to it: in the global scope first. */
static void *cupti_function(const char *name)
{
    void *global = dlsym(RTLD_DEFAULT, name), *library = dlopen("libcupti.so.13", RTLD_NOW);
    return global ? global : library ? dlsym(library, name) : NULL;
}

static void become_client(void)
{
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) = NULL;
    CUptiResult (*enable)(CUpti_ActivityKind) = NULL;
    CUptiResult (*clock)(CUpti_TimestampCallbackFunc) = NULL;
    CUptiResult (*ids)(CUpti_ActivityThreadIdType) = NULL;
    memcpy(&callbacks, &(void *){cupti_function("cuptiActivityRegisterCallbacks")}, sizeof callbacks);
    memcpy(&enable, &(void *){cupti_function("cuptiActivityEnable")}, sizeof enable);
    memcpy(&ids, &(void *){cupti_function("cuptiSetThreadIdType")}, sizeof ids);
    memcpy(&clock, &(void *){cupti_function("cuptiActivityRegisterTimestampCallback")}, sizeof clock);
    if (!callbacks || !enable || callbacks(request, complete) != CUPTI_SUCCESS)
        _Exit(97);
    ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    clock(own_clock);
    enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

/* Its records are handed over by the flush that it asks for itself. */
static void end_client(void)
{
    CUptiResult (*flush)(uint32_t) = NULL;
    memcpy(&flush, &(void *){cupti_function("cuptiActivityFlushAll")}, sizeof flush);
    flush(1);
    if (!n_back)
        _Exit(96);
}

static void *cudnn;

static void open_cudnn(void)
{
    static const char *const NAMES[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9", "libcudnn.so.8"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !cudnn; i++)
        cudnn = dlopen(NAMES[i], RTLD_NOW);
    if (!cudnn)
        exit(77);
}

/* Calls a function of cuDNN's, whose headers need not be here. */
#define CUDNN(function, types, ...)                                                                                    \
    do {                                                                                                               \
        int(*f) types = NULL;                                                                                          \
        void *address = dlsym(cudnn, #function);                                                                       \
        memcpy(&f, &address, sizeof f);                                                                                \
        if (f)                                                                                                         \
            f(__VA_ARGS__);                                                                                            \
    } while (0)

/* A convolution whose input has `width`; 6 is Winograd. */
static void log_convolution(int width)
{
    void *x = NULL, *w = NULL, *conv = NULL;
    CUDNN(cudnnCreateTensorDescriptor, (void **), &x);
    CUDNN(cudnnCreateFilterDescriptor, (void **), &w);
    CUDNN(cudnnCreateConvolutionDescriptor, (void **), &conv);
    CUDNN(cudnnSetTensor4dDescriptor, (void *, int, int, int, int, int, int), x, 0, 0, 1, 3, 224, width);
    CUDNN(cudnnConvolutionForward,
          (void *, const void *, void *, const void *, void *, const void *, void *, int, void *, size_t, const void *,
           void *, void *),
          NULL, NULL, x, NULL, w, NULL, conv, 6, NULL, 0, NULL, x, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bool first = !strcmp(argv[2], "first"), client = !strcmp(argv[2], "client");
    if (first)
        become_client();
    load_injection();
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    void (*work)(uint32_t, uint32_t) = NULL, (*crash)(uint32_t) = NULL, (*flushed)(void) = NULL;
    memcpy(&work, &(void *){cupti ? dlsym(cupti, "stand_in_work") : NULL}, sizeof work);
    memcpy(&crash, &(void *){cupti ? dlsym(cupti, "stand_in_crash") : NULL}, sizeof crash);
    memcpy(&flushed, &(void *){cupti ? dlsym(cupti, "stand_in_flushed") : NULL}, sizeof flushed);
    other_ranges();
    if (!strcmp(argv[2], "cudnn"))
        open_cudnn();
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (client && i == 2)
            become_client();
        nvtxRangePushA("benanza_iteration");
        if (cudnn)
            log_convolution(100 + i);
        if (work)
            work((uint32_t)syscall(SYS_gettid), (uint32_t)i);
        usleep(1000);
        nvtxRangePop();
    }
    if (first || client)
        end_client();
    if (!strcmp(argv[2], "crash") && crash) {
        flushed(); /* what was flushed must be there */
        crash((uint32_t)syscall(SYS_gettid));
    }
    if (!strcmp(argv[2], "exit")) {
        nvtxRangePushA("never ends");
        exit(5);
    }
    return 0;
}
