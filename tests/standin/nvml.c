/* A stand-in for NVML, built as libnvidia-ml.so.1: one device, whose clock is 1410 of at most 1980 MHz. It has the names of today's
 * driver alone. $STANDIN_NVML: the reasons that it gives for a lower clock.
 * Held, it has the clock that was asked for; $STANDIN_NVML_LOCK is the error that comes of asking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out);
int nvmlDeviceGetCurrentClocksEventReasons(void *of, unsigned long long *reasons);
int nvmlDeviceGetClockInfo(void *of, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *of, int type, unsigned *mhz);
int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlDeviceSetGpuLockedClocks(void *of, unsigned least, unsigned most);
int nvmlDeviceResetGpuLockedClocks(void *of);
int standin_nvml_begun(void);

enum { DONE, INVALID = 2, NOT_FOUND = 6, SM = 1 };
static int begun, device;
static unsigned sm_clock = 1410;

int nvmlInit_v2(void)
{
    begun++;
    return DONE;
}

int nvmlShutdown(void)
{
    return DONE;
}

int standin_nvml_begun(void)
{
    return begun;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out)
{
    *out = &device;
    return strcmp(id, "0000:01:00.0") ? NOT_FOUND : DONE;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *of, unsigned long long *reasons)
{
    const char *given = getenv("STANDIN_NVML");
    *reasons = given ? strtoull(given, NULL, 0) : 0;
    return of == &device ? DONE : INVALID;
}

int nvmlDeviceGetClockInfo(void *of, int type, unsigned *mhz)
{
    *mhz = type == SM ? sm_clock : 2619;
    return of == &device ? DONE : INVALID;
}

int nvmlDeviceGetMaxClockInfo(void *of, int type, unsigned *mhz)
{
    *mhz = type == SM ? 1980 : 2619;
    return of == &device ? DONE : INVALID;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.159.04");
    return DONE;
}

int nvmlDeviceSetGpuLockedClocks(void *of, unsigned least, unsigned most)
{
    const char *error = getenv("STANDIN_NVML_LOCK");
    if (of != &device || least != most || error)
        return error ? atoi(error) : INVALID;
    sm_clock = most;
    return DONE;
}

int nvmlDeviceResetGpuLockedClocks(void *of)
{
    sm_clock = 1410;
    return of == &device ? DONE : INVALID;
}
