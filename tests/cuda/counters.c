/* The table of counters against the real CUPTI, whose host side knows all chips without a device: every row exists on every
 * chip that it names, the chips of each group have something, a group can be scheduled as a whole, and no tensor core's
 * counter of a type that benchmarks have is left out. Prints what each chip has. */
#include "runtime/metrics.h"

#include <cupti_profiler_host.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static int bad;

static void complain(const char *chip, const char *name, const char *what)
{
    printf("%s: %s: %s\n", chip, name, what);
    bad++;
}

static CUpti_Profiler_Host_Object *open_chip(const char *chip)
{
    CUpti_Profiler_Host_Initialize_Params p = {.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
                                               .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
                                               .pChipName = chip};
    return cuptiProfilerHostInitialize(&p) == CUPTI_SUCCESS ? p.pHostObject : NULL;
}

static void close_chip(CUpti_Profiler_Host_Object *host)
{
    CUpti_Profiler_Host_Deinitialize_Params p = {.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE,
                                                 .pHostObject = host};
    cuptiProfilerHostDeinitialize(&p);
}

static bool exists(CUpti_Profiler_Host_Object *host, const char *name)
{
    CUpti_Profiler_Host_GetMetricProperties_Params p = {.structSize =
                                                            CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE,
                                                        .pHostObject = host,
                                                        .pMetricName = name};
    return cuptiProfilerHostGetMetricProperties(&p) == CUPTI_SUCCESS;
}

/* How often a call has to run for these; 0 where they cannot be scheduled. */
static size_t count_passes(CUpti_Profiler_Host_Object *host, const char **names, size_t n)
{
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {.structSize =
                                                           CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
                                                       .pHostObject = host,
                                                       .ppMetricNames = names,
                                                       .numMetrics = n};
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {
        .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE, .pHostObject = host};
    if (cuptiProfilerHostConfigAddMetrics(&add) != CUPTI_SUCCESS ||
        cuptiProfilerHostGetConfigImageSize(&size) != CUPTI_SUCCESS)
        return 0;
    uint8_t *image = calloc(1, size.configImageSize + 1);
    CUpti_Profiler_Host_GetConfigImage_Params get = {.structSize =
                                                         CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
                                                     .pHostObject = host,
                                                     .configImageSize = size.configImageSize,
                                                     .pConfigImage = image};
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {.structSize =
                                                            CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
                                                        .configImageSize = size.configImageSize,
                                                        .pConfigImage = image};
    bool good = image && cuptiProfilerHostGetConfigImage(&get) == CUPTI_SUCCESS &&
                cuptiProfilerHostGetNumOfPasses(&passes) == CUPTI_SUCCESS;
    free(image);
    return good ? passes.numOfPasses : 0;
}

/* One group on one chip; a host object of its own, which another group's counters would stay in. */
static void check_group(const char *chip, const char *group, bool wanted)
{
    const char *names[MOST];
    size_t n = 0, passes = 0;
    CUpti_Profiler_Host_Object *host = open_chip(chip);
    for (const bz_metric *m = bz_metrics; m->group; m++) {
        if (strcmp(m->group, group) != 0 || !bz_metric_is_on(m, chip))
            continue;
        if (!bz_metrics_name(m->name, strlen(m->name)))
            complain(chip, m->name, "could not be asked for by name");
        if (!exists(host, m->name))
            complain(chip, m->name, "CUPTI does not know it");
        else if (n < MOST)
            names[n++] = m->name;
    }
    if ((n > 0) != wanted)
        complain(chip, group, wanted ? "nothing of it is in the table" : "the table has what the chip has not");
    if (n && !(passes = count_passes(host, names, n)))
        complain(chip, group, "cannot be scheduled");
    printf("%-6s %-9s %2zu counters in %zu passes\n", chip, group, n, passes);
    close_chip(host);
}

/* sm__ops_path_tensor_src_…, without those of a single instruction or sparse operands; types that no benchmark has. */
static bool is_tensor_counter(const char *name)
{
    static const char BEGIN[] = "sm__ops_path_tensor_src_";
    static const char *const OTHERS[] = {"_sparsity_", "_realtime", "_int1", "_int4", "_fp4_dst_", "_fp4_fp6_dst_"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (strstr(name, OTHERS[i]))
            return false;
    return !strncmp(name, BEGIN, sizeof BEGIN - 1);
}

static bool is_in_table(const char *chip, const char *name)
{
    size_t n = strlen(name);
    for (const bz_metric *m = bz_metrics; m->group; m++)
        if (!strncmp(m->name, name, n) && m->name[n] == '.' && bz_metric_is_on(m, chip))
            return true;
    return false;
}

static void check_tensor_cores(const char *chip)
{
    CUpti_Profiler_Host_Object *host = open_chip(chip);
    CUpti_Profiler_Host_GetBaseMetrics_Params p = {.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE,
                                                   .pHostObject = host,
                                                   .metricType = CUPTI_METRIC_TYPE_COUNTER};
    if (cuptiProfilerHostGetBaseMetrics(&p) != CUPTI_SUCCESS || !p.numMetrics)
        complain(chip, "all", "CUPTI lists no counters");
    for (size_t i = 0; i < p.numMetrics; i++)
        if (is_tensor_counter(p.ppMetricNames[i]) && !is_in_table(chip, p.ppMetricNames[i]))
            complain(chip, p.ppMetricNames[i], "is not in the table");
    close_chip(host);
}

/* Chips that share the processor's memory. */
static bool has_dram(const char *chip)
{
    static const char *const WITHOUT[] = {"GV11B", "GA10B", "GB10B", "GB20B"};
    for (size_t i = 0; i < sizeof WITHOUT / sizeof *WITHOUT; i++)
        if (!strcmp(chip, WITHOUT[i]))
            return false;
    return true;
}

int main(void)
{
    static const char *const WANTED[] = {"GV100", "TU102", "TU104", "GA100", "GA102",
                                         "AD102", "GH100", "GB100", "GB202"};
    CUpti_Profiler_Host_GetSupportedChips_Params p = {.structSize =
                                                          CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE};
    if (cuptiProfilerHostGetSupportedChips(&p) != CUPTI_SUCCESS || !p.numChips) {
        printf("CUPTI names no chips\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++) {
        CUpti_Profiler_Host_Object *host = open_chip(WANTED[i]);
        if (!host)
            complain(WANTED[i], "host object", "CUPTI has none for it");
        else
            close_chip(host);
    }
    for (size_t i = 0; i < p.numChips; i++) {
        const char *chip = p.ppChipNames[i];
        CUpti_Profiler_Host_Object *host = open_chip(chip);
        if (!host) {
            printf("%-6s named, but CUPTI counts nothing on it\n", chip);
            continue;
        }
        close_chip(host);
        check_group(chip, "flops", true);
        check_group(chip, "dram", has_dram(chip));
        check_group(chip, "occupancy", true);
        check_tensor_cores(chip);
    }
    return bad > 0;
}
