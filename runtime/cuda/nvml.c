/* NVML, which comes with the driver: loaded where it is there. The few declarations stand here, since its
 * header is in no package that this one needs. */
#include "runtime/cuda/cuda.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <string.h>

typedef void *nvml_device;

struct bz_nvml {
    void *library;
    nvml_device device;
    int (*reasons)(nvml_device device, unsigned long long *reasons);
    int (*clock)(nvml_device device, int type, unsigned *mhz);
    int (*max_clock)(nvml_device device, int type, unsigned *mhz);
    int (*driver)(char *text, unsigned size);
    int (*lock)(nvml_device device, unsigned least, unsigned most);
    int (*unlock)(nvml_device device);
};

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };

/* Reasons for a lower clock that are not of the program's own making: power cap, slow-downs by hardware,
 * temperature, power brake. */
#define SLOWED (0x04ULL | 0x08ULL | 0x20ULL | 0x40ULL | 0x80ULL)

static bool find(const bz_nvml *n, const char *name, void *function)
{
    void *symbol = dlsym(n->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

/* Beginning takes tens of milliseconds, with every problem of a process: it is begun once, and stays. */
static struct {
    bz_nvml *of;
    int device;
} kept;

bz_nvml *bz_nvml_open(int device)
{
    int (*init)(void) = NULL, (*shutdown)(void) = NULL;
    int (*by_bus)(const char *id, nvml_device *out) = NULL;
    char bus[32] = "";
    if (kept.of && kept.device == device)
        return kept.of;
    bz_nvml n = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!n.library)
        return NULL;
    bool whole = find(&n, "nvmlInit_v2", &init) && find(&n, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
                 find(&n, "nvmlShutdown", &shutdown);
    if (!find(&n, "nvmlDeviceGetCurrentClocksEventReasons",
              &n.reasons)) /* its name since driver 535; the old one goes */
        find(&n, "nvmlDeviceGetCurrentClocksThrottleReasons", &n.reasons);
    find(&n, "nvmlDeviceGetClockInfo", &n.clock);
    find(&n, "nvmlDeviceGetMaxClockInfo", &n.max_clock);
    find(&n, "nvmlSystemGetDriverVersion", &n.driver);
    find(&n, "nvmlDeviceSetGpuLockedClocks", &n.lock);
    find(&n, "nvmlDeviceResetGpuLockedClocks", &n.unlock);
    if (!whole || init()) {
        dlclose(n.library);
        return NULL;
    }
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess || by_bus(bus, &n.device)) {
        shutdown();
        dlclose(n.library);
        return NULL;
    }
    bz_nvml *out = bz_alloc(1, sizeof *out);
    *out = n;
    kept.of = out;
    kept.device = device;
    return out;
}

bool bz_nvml_throttled(const bz_nvml *n)
{
    unsigned long long reasons = 0;
    return n && n->reasons && !n->reasons(n->device, &reasons) && (reasons & SLOWED);
}

double bz_nvml_clock(const bz_nvml *n)
{
    unsigned mhz = 0;
    return n && n->clock && !n->clock(n->device, CLOCK_SM, &mhz) ? 1e6 * mhz : 0;
}

int bz_nvml_lock(const bz_nvml *n, double hz, bz_error *err)
{
    enum { INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4 };
    unsigned mhz = (unsigned)(hz / 1e6);
    if (!n || !n->lock || !n->unlock)
        return bz_fail(err, BZ_FAILED, "NVML, by which a clock is held, is not there, or older than Volta's drivers");
    int status = mhz ? n->lock(n->device, mhz, mhz) : n->unlock(n->device);
    return status == NO_PERMISSION   ? bz_fail(err, BZ_FAILED, "holding a GPU's clock takes root's rights")
           : status == INVALID       ? bz_fail(err, BZ_USAGE, "the GPU has no clock of %u MHz", mhz)
           : status == NOT_SUPPORTED ? bz_fail(err, BZ_FAILED, "this GPU's clock cannot be held")
           : status                  ? bz_fail(err, BZ_FAILED, "NVML could not hold the GPU's clock (error %d)", status)
                                     : 0;
}

void bz_nvml_describe(const bz_nvml *n, bz_device *out)
{
    unsigned mhz = 0;
    if (!n)
        return;
    if (n->max_clock && !n->max_clock(n->device, CLOCK_SM, &mhz))
        out->clock = 1e6 * mhz;
    if (n->max_clock && !n->max_clock(n->device, CLOCK_MEMORY, &mhz))
        out->memory_clock = 1e6 * mhz;
    if (n->driver)
        n->driver(out->driver, sizeof out->driver);
}
