/* A stand-in for CUPTI's range profiler, for tests on machines without a device: NOT the real library. It is built into
 * the stand-in's libcupti.so.N. It counts nothing: counter number i of those that were added is i + 1 in each call, times 1, 2, 0.5
 * in the first, second and third round. Each call is told to the test with what it said; an order that CUPTI would not bear
 * ends the program.
 *
 * STANDIN_CUPTI_FAIL=FUNCTION:STATUS makes one function refuse; STANDIN_CHIP names the chip (GH100); STANDIN_RANGES is how many
 * ranges an image holds (1); STANDIN_ENDLESS: there is always one pass more;
 * STANDIN_DROPS: one range is lost. */
#include "tests/standin/cupti.h"

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 2, CONFIG = 16, DATA = 32, AVAILABILITY = 8 };

struct CUpti_Profiler_Host_Object {
    int n; /* counters added */
};

struct CUpti_RangeProfiler_Object {
    bool configured, started, pushed;
    int passes, rounds;
};

static void (*listener)(const char *line);
static bool initialized;
static struct CUpti_Profiler_Host_Object host;
static struct CUpti_RangeProfiler_Object profiler;
static CUpti_RangeProfiler_Object *enabled;

void standin_counters_listen(void (*tell)(const char *line))
{
    listener = tell;
    initialized = false;
    enabled = NULL;
    host.n = profiler.rounds = 0;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
    char line[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (listener)
        listener(line);
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "CUPTI stand-in: %s\n", what);
        _Exit(99);
    }
}

static CUptiResult result_of(const char *function)
{
    const char *fail = getenv("STANDIN_CUPTI_FAIL");
    size_t n = strlen(function);
    return fail && !strncmp(fail, function, n) && fail[n] == ':' ? (CUptiResult)strtol(fail + n + 1, NULL, 10)
                                                                 : CUPTI_SUCCESS;
}

/* Begins a function: the structure says how long it is, and whether the function is to refuse. */
#define BEGIN(type)                                                                                                    \
    expect(p->structSize == type##_STRUCT_SIZE && !p->pPriv, "a structure's size or pPriv is wrong");                  \
    if (result_of(__func__) != CUPTI_SUCCESS)                                                                          \
    return result_of(__func__)

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    BEGIN(CUpti_Profiler_Initialize_Params);
    tell("ProfilerInitialize");
    initialized = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
    BEGIN(CUpti_Profiler_DeInitialize_Params);
    expect(initialized && !enabled, "the profiler is ended before it is disabled");
    tell("ProfilerDeInitialize");
    initialized = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    const char *chip = getenv("STANDIN_CHIP");
    BEGIN(CUpti_Device_GetChipName_Params);
    expect(initialized, "the profiler is not initialized");
    p->pChipName = chip ? chip : "GH100";
    tell("DeviceGetChipName device=%zu", p->deviceIndex);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    BEGIN(CUpti_Profiler_GetCounterAvailability_Params);
    expect(p->ctx, "without a context");
    expect(!p->pCounterAvailabilityImage || p->counterAvailabilityImageSize == AVAILABILITY, "the image's size");
    tell("ProfilerGetCounterAvailability %s", p->pCounterAvailabilityImage ? "image" : "size");
    p->counterAvailabilityImageSize = AVAILABILITY;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    BEGIN(CUpti_Profiler_Host_Initialize_Params);
    expect(p->profilerType == CUPTI_PROFILER_TYPE_RANGE_PROFILER && p->pCounterAvailabilityImage, "another profiler");
    tell("HostInitialize chip=%s", p->pChipName);
    p->pHostObject = &host;
    host.n = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    BEGIN(CUpti_Profiler_Host_Deinitialize_Params);
    expect(p->pHostObject == &host, "another host object");
    tell("HostDeinitialize");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
    BEGIN(CUpti_Profiler_Host_GetMetricProperties_Params);
    expect(p->pHostObject == &host, "another host object");
    return strstr(p->pMetricName, "nonsense") ? CUPTI_ERROR_INVALID_METRIC_NAME : CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    char names[3072] = "";
    BEGIN(CUpti_Profiler_Host_ConfigAddMetrics_Params);
    expect(p->pHostObject == &host && p->numMetrics, "another host object, or no counter");
    for (size_t i = 0; i < p->numMetrics; i++) {
        strncat(names, " ", sizeof names - strlen(names) - 1);
        strncat(names, p->ppMetricNames[i], sizeof names - strlen(names) - 1);
    }
    tell("HostConfigAddMetrics%s", names);
    host.n += (int)p->numMetrics;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    BEGIN(CUpti_Profiler_Host_GetConfigImageSize_Params);
    expect(host.n, "no counter was added");
    p->configImageSize = CONFIG;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    BEGIN(CUpti_Profiler_Host_GetConfigImage_Params);
    expect(p->configImageSize == CONFIG && p->pConfigImage, "the image's size");
    memset(p->pConfigImage, 'c', CONFIG);
    tell("HostGetConfigImage");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    BEGIN(CUpti_Profiler_Host_GetNumOfPasses_Params);
    expect(p->configImageSize == CONFIG && p->pConfigImage[0] == 'c', "this is not the image");
    p->numOfPasses = PASSES;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    static const double ROUND[] = {1, 2, 0.5};
    BEGIN(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    expect(p->counterDataImageSize == DATA && p->pCounterDataImage[0] == 'd', "the image was not decoded");
    expect(!p->rangeIndex && (int)p->numMetrics == host.n, "other counters than those that were counted");
    for (size_t i = 0; i < p->numMetrics; i++)
        p->pMetricValues[i] = (double)(i + 1) * ROUND[profiler.rounds % 3];
    profiler.rounds++;
    tell("HostEvaluateToGpuValues range=0");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    BEGIN(CUpti_RangeProfiler_Enable_Params);
    expect(initialized && !enabled && p->ctx && !standin_cupti_traces(), "enabled twice, or while kernels are traced");
    profiler.configured = profiler.started = profiler.pushed = false;
    p->pRangeProfilerObject = enabled = &profiler;
    tell("RangeProfilerEnable");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    BEGIN(CUpti_RangeProfiler_Disable_Params);
    expect(enabled && p->pRangeProfilerObject == enabled, "what is disabled was not enabled");
    enabled = NULL;
    tell("RangeProfilerDisable");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    BEGIN(CUpti_RangeProfiler_GetCounterDataSize_Params);
    expect(enabled && p->maxNumRangeTreeNodes >= p->maxNumOfRanges, "not enabled, or too few nodes");
    expect((int)p->numMetrics == host.n, "other counters than those that were added");
    tell("RangeProfilerGetCounterDataSize ranges=%zu", p->maxNumOfRanges);
    p->counterDataSize = DATA;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    BEGIN(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    expect(enabled && p->counterDataSize == DATA, "the image's size");
    memset(p->pCounterData, 'i', DATA);
    tell("RangeProfilerCounterDataImageInitialize");
    return CUPTI_SUCCESS;
}

static uint8_t *data_image;

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    BEGIN(CUpti_RangeProfiler_SetConfig_Params);
    expect(enabled && p->configSize == CONFIG && p->pConfig[0] == 'c', "this is not the image");
    expect(p->counterDataImageSize == DATA && p->pCounterDataImage[0] == 'i', "the image for data was used before");
    data_image = p->pCounterDataImage;
    profiler.configured = true;
    profiler.passes = 0;
    tell("RangeProfilerSetConfig range=%s replay=%s ranges=%zu levels=%d from=%d target=%d pass=%zu",
         p->range == CUPTI_UserRange ? "user" : "auto", p->replayMode == CUPTI_UserReplay ? "user" : "other",
         p->maxRangesPerPass, p->numNestingLevels, p->minNestingLevel, p->targetNestingLevel, p->passIndex);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    BEGIN(CUpti_RangeProfiler_Start_Params);
    expect(enabled && profiler.configured && !profiler.started, "started before it is configured, or twice");
    profiler.started = true;
    tell("RangeProfilerStart");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p)
{
    BEGIN(CUpti_RangeProfiler_PushRange_Params);
    expect(profiler.started && !profiler.pushed, "not started");
    profiler.pushed = true;
    tell("RangeProfilerPushRange %s", p->pRangeName);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *p)
{
    BEGIN(CUpti_RangeProfiler_PopRange_Params);
    expect(profiler.pushed, "nothing was pushed");
    profiler.pushed = false;
    tell("RangeProfilerPopRange");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    BEGIN(CUpti_RangeProfiler_Stop_Params);
    expect(profiler.started && !profiler.pushed, "not started, or a range is still open");
    profiler.started = false;
    p->isAllPassSubmitted = ++profiler.passes >= PASSES && !getenv("STANDIN_ENDLESS");
    tell("RangeProfilerStop all=%d", p->isAllPassSubmitted);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    BEGIN(CUpti_RangeProfiler_DecodeData_Params);
    expect(enabled && !profiler.started && profiler.passes == PASSES, "decoded before all passes are there");
    memset(data_image, 'd', DATA);
    p->numOfRangeDropped = getenv("STANDIN_DROPS") ? 1 : 0;
    tell("RangeProfilerDecodeData");
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    const char *ranges = getenv("STANDIN_RANGES");
    BEGIN(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    p->numTotalRanges = ranges ? (size_t)strtol(ranges, NULL, 10) : 1;
    return CUPTI_SUCCESS;
}
