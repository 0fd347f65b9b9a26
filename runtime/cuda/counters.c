/* What a call makes the device's counters count: operations, bytes, warps.
 *
 * CUPTI's range profiler counts between two marks. A device has fewer counters than one may ask for, so the same call
 * runs several times (passes), and each time others are looked at. Marks are around a whole call with all its
 * kernels; what the passes bring is decoded into an image, of which the host API makes the values. */
#include "runtime/cuda/cuda.h"

#include "base/arena.h"
#include "runtime/metrics.h"

#if __has_include(<cupti_range_profiler.h>)

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 3, ROUNDS = 3, MOST_NAMES = 64 };

/* CUPTI wants the size in each of its structures. */
#define PARAMS(type, name, ...) type name = {.structSize = type##_STRUCT_SIZE, __VA_ARGS__}

typedef struct image {
    uint8_t *data;
    size_t size;
} image;

typedef struct counting {
    bz_cuda *cuda;
    bz_variant *variant;
    const char *list; /* what is asked for */
    char chip[32];
    bool begun; /* the profiler is initialized */
    CUcontext context;
    CUpti_Profiler_Host_Object *host;
    CUpti_RangeProfiler_Object *profiler;
    image availability, config, data;
    size_t passes;
    char name[MOST_NAMES][96]; /* of the counters, each once */
    const char *names[MOST_NAMES];
    double value[MOST_NAMES][ROUNDS];
    int n;
} counting;

#define FUNCTIONS(F)                                                                                                   \
    F(cuptiProfilerInitialize)                                                                                         \
    F(cuptiProfilerDeInitialize)                                                                                       \
    F(cuptiDeviceGetChipName)                                                                                          \
    F(cuptiProfilerGetCounterAvailability)                                                                             \
    F(cuptiProfilerHostInitialize)                                                                                     \
    F(cuptiProfilerHostDeinitialize)                                                                                   \
    F(cuptiProfilerHostGetMetricProperties)                                                                            \
    F(cuptiProfilerHostConfigAddMetrics)                                                                               \
    F(cuptiProfilerHostGetConfigImageSize)                                                                             \
    F(cuptiProfilerHostGetConfigImage)                                                                                 \
    F(cuptiProfilerHostGetNumOfPasses)                                                                                 \
    F(cuptiProfilerHostEvaluateToGpuValues)                                                                            \
    F(cuptiRangeProfilerEnable)                                                                                        \
    F(cuptiRangeProfilerDisable)                                                                                       \
    F(cuptiRangeProfilerGetCounterDataSize)                                                                            \
    F(cuptiRangeProfilerCounterDataImageInitialize)                                                                    \
    F(cuptiRangeProfilerSetConfig)                                                                                     \
    F(cuptiRangeProfilerStart)                                                                                         \
    F(cuptiRangeProfilerPushRange)                                                                                     \
    F(cuptiRangeProfilerPopRange)                                                                                      \
    F(cuptiRangeProfilerStop)                                                                                          \
    F(cuptiRangeProfilerDecodeData)                                                                                    \
    F(cuptiRangeProfilerGetCounterDataInfo)

#define MEMBER(f) __typeof__ (&(f))(f);
static struct {
    FUNCTIONS(MEMBER)
} cupti;

#define SYMBOL(f) {#f, &cupti.f},
static const bz_cuda_symbol SYMBOLS[] = {FUNCTIONS(SYMBOL)};

/* Calls a function of CUPTI's; what it refuses ends the counting with a sentence. */
#define CALL(f, params) (call_failed(#f, cupti.f(params), err))

static int call_failed(const char *function, CUptiResult status, bz_error *err)
{
    char what[96];
    if (status == CUPTI_SUCCESS)
        return 0;
    snprintf(what, sizeof what, "CUPTI does not count (%s)", function);
    return bz_cupti_failed(err, what, (int)status);
}

static void image_make(image *i, size_t size)
{
    i->data = bz_alloc(size + 1, 1);
    i->size = size;
}

static int add_name(counting *c, const char *name, size_t n, bz_error *err)
{
    for (int i = 0; i < c->n; i++)
        if (strlen(c->name[i]) == n && !strncmp(c->name[i], name, n))
            return 0;
    if (c->n == MOST_NAMES)
        return bz_fail(err, BZ_FAILED, "more than %d counters at once: ask for fewer", MOST_NAMES);
    snprintf(c->name[c->n], sizeof c->name[0], "%.*s", (int)n, name);
    c->names[c->n] = c->name[c->n];
    c->n++;
    return 0;
}

/* The rows of one group that this chip has. */
static int add_group(counting *c, const char *word, size_t n, bz_error *err)
{
    int bad = 0, before = c->n;
    for (const bz_metric *m = bz_metrics; m->group && !bad; m++)
        if (strlen(m->group) == n && !strncmp(m->group, word, n) && bz_metric_is_on(m, c->chip))
            bad = add_name(c, m->name, strlen(m->name), err);
    if (!bad && c->n == before)
        return bz_fail(err, BZ_FAILED, "no counters of the chip %s are known for '%.*s': name counters themselves",
                       c->chip, (int)n, word);
    return bad;
}

/* A name that CUPTI does not know spoils its host object: they are asked for one by one first. */
static int choose(counting *c, bz_error *err)
{
    const char *list = c->list, *word;
    for (size_t n; (n = bz_metrics_word(&list, &word));) {
        bool kernels = n == 7 && !strncmp(word, "kernels", n);
        if (!kernels && (bz_metrics_group(word, n) ? add_group(c, word, n, err) : add_name(c, word, n, err)))
            return -1;
    }
    for (int i = 0; i < c->n; i++) {
        PARAMS(CUpti_Profiler_Host_GetMetricProperties_Params, p, .pHostObject = c->host, .pMetricName = c->name[i]);
        CUptiResult status = cupti.cuptiProfilerHostGetMetricProperties(&p);
        if (status == CUPTI_ERROR_INVALID_METRIC_NAME)
            return bz_fail(err, BZ_FAILED, "the chip %s has no counter '%s'", c->chip, c->name[i]);
        if (call_failed("cuptiProfilerHostGetMetricProperties", status, err))
            return -1;
    }
    return 0;
}

/* The driver is not linked to: the runtime hands out its functions. */
static int find_context(counting *c, bz_error *err)
{
    CUresult (*current)(CUcontext *) = NULL;
    void *symbol = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t status = cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &symbol, 4000, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || !symbol)
        return bz_fail(err, BZ_FAILED, "the driver has no cuCtxGetCurrent");
    memcpy(&current, &symbol, sizeof symbol);
    if (current(&c->context) != CUDA_SUCCESS || !c->context)
        return bz_fail(err, BZ_FAILED, "the driver has no context to count in");
    return 0;
}

/* Which chip it is, and what of it may be counted: the first that fails without permission. */
static int look_at_chip(counting *c, bz_error *err)
{
    PARAMS(CUpti_Profiler_Initialize_Params, init, 0);
    PARAMS(CUpti_Device_GetChipName_Params, chip, .deviceIndex = (size_t)c->cuda->device);
    PARAMS(CUpti_Profiler_GetCounterAvailability_Params, counters, .ctx = c->context);
    if (CALL(cuptiProfilerInitialize, &init))
        return -1;
    c->begun = true;
    if (CALL(cuptiDeviceGetChipName, &chip))
        return -1;
    snprintf(c->chip, sizeof c->chip, "%.31s", chip.pChipName ? chip.pChipName : "?");
    if (CALL(cuptiProfilerGetCounterAvailability, &counters))
        return -1;
    image_make(&c->availability, counters.counterAvailabilityImageSize);
    counters.pCounterAvailabilityImage = c->availability.data;
    return CALL(cuptiProfilerGetCounterAvailability, &counters);
}

/* The host object for the chip, and of the counters the image that says what each pass looks at. */
static int schedule(counting *c, bz_error *err)
{
    PARAMS(CUpti_Profiler_Host_Initialize_Params, init, .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
           .pChipName = c->chip, .pCounterAvailabilityImage = c->availability.data);
    if (CALL(cuptiProfilerHostInitialize, &init))
        return -1;
    c->host = init.pHostObject;
    if (choose(c, err))
        return -1;
    PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add, .pHostObject = c->host, .ppMetricNames = c->names,
           .numMetrics = (size_t)c->n);
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size, .pHostObject = c->host);
    if (CALL(cuptiProfilerHostConfigAddMetrics, &add) || CALL(cuptiProfilerHostGetConfigImageSize, &size))
        return -1;
    image_make(&c->config, size.configImageSize);
    PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, get, .pHostObject = c->host, .configImageSize = c->config.size,
           .pConfigImage = c->config.data);
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes, .configImageSize = c->config.size,
           .pConfigImage = c->config.data);
    if (CALL(cuptiProfilerHostGetConfigImage, &get) || CALL(cuptiProfilerHostGetNumOfPasses, &passes))
        return -1;
    c->passes = passes.numOfPasses;
    return 0;
}

/* Cold calls are counted cold: the flush is before the mark. */
static int run_call(counting *c, bz_error *err)
{
    bz_cuda *d = c->cuda;
    if (d->cold && (cudaMemsetAsync(d->flush, 0, d->flush_size, d->stream) != cudaSuccess || bz_cuda_wait(d)))
        return bz_fail(err, BZ_FAILED, "the cache was not flushed");
    PARAMS(CUpti_RangeProfiler_Start_Params, start, .pRangeProfilerObject = c->profiler);
    PARAMS(CUpti_RangeProfiler_PushRange_Params, push, .pRangeProfilerObject = c->profiler, .pRangeName = "call");
    PARAMS(CUpti_RangeProfiler_PopRange_Params, pop, .pRangeProfilerObject = c->profiler);
    if (CALL(cuptiRangeProfilerStart, &start) || CALL(cuptiRangeProfilerPushRange, &push))
        return -1;
    int bad = c->variant->backend->execute(c->variant, 0);
    bad |= c->variant->backend->wait ? c->variant->backend->wait(c->variant) : 0;
    if (CALL(cuptiRangeProfilerPopRange, &pop))
        return -1;
    return bad ? bz_fail(err, BZ_FAILED, "the library failed while it was counted") : 0;
}

/* One round: an empty image for the values, then a call for each pass. */
static int run_passes(counting *c, bz_error *err)
{
    PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size, .pRangeProfilerObject = c->profiler,
           .pMetricNames = c->names, .numMetrics = (size_t)c->n, .maxNumOfRanges = 1, .maxNumRangeTreeNodes = 1);
    if (CALL(cuptiRangeProfilerGetCounterDataSize, &size))
        return -1;
    free(c->data.data);
    image_make(&c->data, size.counterDataSize);
    PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, empty, .pRangeProfilerObject = c->profiler,
           .counterDataSize = c->data.size, .pCounterData = c->data.data);
    PARAMS(CUpti_RangeProfiler_SetConfig_Params, config, .pRangeProfilerObject = c->profiler,
           .configSize = c->config.size, .pConfig = c->config.data, .counterDataImageSize = c->data.size,
           .pCounterDataImage = c->data.data, .range = CUPTI_UserRange, .replayMode = CUPTI_UserReplay,
           .maxRangesPerPass = 1, .numNestingLevels = 1, .minNestingLevel = 1, .targetNestingLevel = 1);
    if (CALL(cuptiRangeProfilerCounterDataImageInitialize, &empty) || CALL(cuptiRangeProfilerSetConfig, &config))
        return -1;
    PARAMS(CUpti_RangeProfiler_Stop_Params, stop, .pRangeProfilerObject = c->profiler);
    for (size_t pass = 0; !stop.isAllPassSubmitted; pass++) {
        if (pass > 2 * c->passes)
            return bz_fail(err, BZ_FAILED, "CUPTI wants more than the %zu passes that it announced", c->passes);
        if (run_call(c, err) || CALL(cuptiRangeProfilerStop, &stop))
            return -1;
    }
    PARAMS(CUpti_RangeProfiler_DecodeData_Params, decode, .pRangeProfilerObject = c->profiler);
    if (CALL(cuptiRangeProfilerDecodeData, &decode))
        return -1;
    if (decode.numOfRangeDropped)
        return bz_fail(err, BZ_FAILED, "CUPTI dropped %zu of the ranges that it counted", decode.numOfRangeDropped);
    return 0;
}

/* The values of the round, out of the image. */
static int evaluate(counting *c, int round, bz_error *err)
{
    double value[MOST_NAMES];
    PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info, .pCounterDataImage = c->data.data,
           .counterDataImageSize = c->data.size);
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, values, .pHostObject = c->host,
           .pCounterDataImage = c->data.data, .counterDataImageSize = c->data.size, .ppMetricNames = c->names,
           .numMetrics = (size_t)c->n, .pMetricValues = value);
    if (CALL(cuptiRangeProfilerGetCounterDataInfo, &info))
        return -1;
    if (info.numTotalRanges != 1)
        return bz_fail(err, BZ_FAILED, "CUPTI counted %zu ranges instead of one", info.numTotalRanges);
    if (CALL(cuptiProfilerHostEvaluateToGpuValues, &values))
        return -1;
    for (int i = 0; i < c->n; i++)
        c->value[i][round] = value[i];
    return 0;
}

static int run_round(counting *c, int round, bz_error *err)
{
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable, .ctx = c->context);
    if (CALL(cuptiRangeProfilerEnable, &enable))
        return -1;
    c->profiler = enable.pRangeProfilerObject;
    int bad = run_passes(c, err) || evaluate(c, round, err);
    PARAMS(CUpti_RangeProfiler_Disable_Params, disable, .pRangeProfilerObject = c->profiler);
    cupti.cuptiRangeProfilerDisable(&disable); /* others are measured after this */
    return bad ? -1 : 0;
}

static int run_rounds(counting *c, bz_error *err)
{
    int bad = 0;
    for (int i = 0; i < WARM && !bad; i++)
        bad = c->variant->backend->execute(c->variant, 0);
    if (bad || (c->variant->backend->wait && c->variant->backend->wait(c->variant)))
        return bz_fail(err, BZ_FAILED, "the library failed before it was counted");
    for (int i = 0; i < ROUNDS; i++)
        if (run_round(c, i, err))
            return -1;
    return 0;
}

static double median(const double v[ROUNDS])
{
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

static double value_of(const counting *c, const char *name, size_t n)
{
    for (int i = 0; i < c->n; i++)
        if (strlen(c->name[i]) == n && !strncmp(c->name[i], name, n))
            return median(c->value[i]);
    return NAN;
}

static void add_value(bz_counted *out, const char *what, size_t n, double value)
{
    int i = 0;
    while (i < out->n && (strlen(out->item[i].what) != n || strncmp(out->item[i].what, what, n) != 0))
        i++;
    if (i == BZ_MAX_COUNTED)
        return;
    if (i == out->n) {
        snprintf(out->item[i].what, sizeof out->item[i].what, "%.*s", (int)n, what);
        out->item[out->n++].value = 0;
    }
    out->item[i].value += value;
}

static void sum_up(const counting *c, bz_counted *out)
{
    const char *list = c->list, *word;
    out->calls = ROUNDS;
    out->passes = (int)c->passes;
    for (size_t n; (n = bz_metrics_word(&list, &word));) {
        if (bz_metrics_name(word, n))
            add_value(out, word, n, value_of(c, word, n));
        for (const bz_metric *m = bz_metrics; m->group; m++) {
            if (strlen(m->group) != n || strncmp(m->group, word, n) != 0 || !bz_metric_is_on(m, c->chip))
                continue;
            double value = m->weight * value_of(c, m->name, strlen(m->name));
            add_value(out, m->result, strlen(m->result), value);
            if (m->also)
                add_value(out, m->also, strlen(m->also), value);
        }
    }
}

int bz_cuda_count(bz_cuda *cuda, bz_variant *v, const char *list, bz_counted *out, bz_error *err)
{
    BZ_FREED counting *c = bz_alloc(1, sizeof *c);
    *c = (counting){.cuda = cuda, .variant = v, .list = list};
    *out = (bz_counted){0};
    int bad = bz_cupti_find(SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, err);
    if (!bad) {
        bad = find_context(c, err) || look_at_chip(c, err) || schedule(c, err) || run_rounds(c, err);
        PARAMS(CUpti_Profiler_Host_Deinitialize_Params, host, .pHostObject = c->host);
        PARAMS(CUpti_Profiler_DeInitialize_Params, end, 0);
        if (c->host)
            cupti.cuptiProfilerHostDeinitialize(&host);
        if (c->begun)
            cupti.cuptiProfilerDeInitialize(&end);
    }
    if (!bad)
        sum_up(c, out);
    free(c->availability.data);
    free(c->config.data);
    free(c->data.data);
    return bad ? -1 : 0;
}

#else

int bz_cuda_count(bz_cuda *cuda, bz_variant *v, const char *list, bz_counted *out, bz_error *err)
{
    (void)cuda, (void)v, (void)list;
    *out = (bz_counted){0};
    return bz_fail(err, BZ_FAILED,
                   "built without the range profiler: install CUPTI of CUDA 12.6 or later and build again");
}

#endif
