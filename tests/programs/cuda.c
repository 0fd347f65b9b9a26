/* cuda N MODE: what a CUDA program looks like to the library that CUDA loads into it, on a machine without a device. Loads
 * CUDA_INJECTION64_PATH as the driver does in cuInit, lets the stand-in for CUPTI (tests/stand-in/cupti.c) pretend N
 * iterations, each inside of an NVTX range, and ends as MODE says: "ok", "crash", "exit" from inside of a range. NVTX is the
 * real one. */
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
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

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    load_injection();
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD),
         *symbol = cupti ? dlsym(cupti, "stand_in_work") : NULL;
    void (*work)(uint32_t, uint32_t) = NULL;
    memcpy(&work, &symbol, sizeof work);
    other_ranges();
    for (int i = 0; i < atoi(argv[1]); i++) {
        nvtxRangePushA("benanza_iteration");
        if (work)
            work((uint32_t)syscall(SYS_gettid), (uint32_t)i);
        usleep(1000);
        nvtxRangePop();
    }
    if (!strcmp(argv[2], "crash")) {
        usleep(400000); /* what is older than the flusher's period must be there */
        if (work)
            work((uint32_t)syscall(SYS_gettid), 1000);
        raise(SIGKILL);
    }
    if (!strcmp(argv[2], "exit")) {
        nvtxRangePushA("never ends");
        exit(5);
    }
    return 0;
}
