/* CUPTI's activity records, one row per kind. CUPTI hands out the newest struct that it knows, which grows from
 * release to release: fields are read by the structs of CUDA 11.6, whose beginning all newer ones share. */
#include "profile/cuda/cuda.h"
#include "profile/inject/record.h"

#include <cupti_activity_deprecated.h>
#include <stddef.h>
#include <stdio.h>

typedef CUpti_ActivityKernel7 kernel;
typedef CUpti_ActivityMemcpy5 copy;
typedef CUpti_ActivityMemcpyPtoP3 peer_copy;
typedef CUpti_ActivityMemset3 set;
typedef CUpti_ActivitySynchronization sync;
typedef CUpti_ActivityOverhead overhead;
typedef CUpti_ActivityDevice4 device;

#define STAYS(old, new, field) _Static_assert(offsetof(old, field) == offsetof(new, field), #new " moved " #field)
STAYS(kernel, CUpti_ActivityKernel10, name);
STAYS(kernel, CUpti_ActivityKernel10, correlationId);
STAYS(kernel, CUpti_ActivityKernel10, graphId);
STAYS(copy, CUpti_ActivityMemcpy6, correlationId);
STAYS(copy, CUpti_ActivityMemcpy6, graphId);
STAYS(peer_copy, CUpti_ActivityMemcpyPtoP4, correlationId);
STAYS(peer_copy, CUpti_ActivityMemcpyPtoP4, graphId);
STAYS(set, CUpti_ActivityMemset4, correlationId);
STAYS(set, CUpti_ActivityMemset4, graphId);
STAYS(sync, CUpti_ActivitySynchronization2, streamId);
STAYS(overhead, CUpti_ActivityOverhead3, end);
STAYS(device, CUpti_ActivityDevice5, name);

/* Device of a context. Numbers of contexts are small and come in order; those beyond the table are of device 0. */
enum { CONTEXTS = 256 };
static uint32_t device_of[CONTEXTS];

static const bzc_cupti *cupti; /* that the records are of */

static void put_api(const CUpti_Activity *record)
{
    const CUpti_ActivityAPI *a = (const void *)record;
    bz_spool_api *r = NULL;
    const char *name = NULL;
    CUpti_CallbackDomain domain =
        a->kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    if (cupti->callback_name(domain, a->cbid, &name) != CUPTI_SUCCESS)
        name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? "driver call" : "runtime call";
    uint32_t id = bzi_text(name);
    if (!(r = bzi_claim(sizeof *r)))
        return;
    r->start = (int64_t)a->start;
    r->end = (int64_t)a->end;
    r->thread = a->threadId;
    r->correlation = a->correlationId;
    r->name = id;
    r->value = a->returnValue;
    bzi_commit(r, BZ_SPOOL_API, 0, sizeof *r);
}

static void put_kernel(const CUpti_Activity *record)
{
    const kernel *a = (const void *)record;
    uint32_t name = bzi_text(a->name);
    bz_spool_kernel *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->start = (int64_t)a->start;
    r->end = (int64_t)a->end;
    r->correlation = a->correlationId;
    r->device = a->deviceId;
    r->context = a->contextId;
    r->stream = a->streamId;
    r->graph = a->graphId;
    r->name = name;
    const int32_t grid[] = {a->gridX, a->gridY, a->gridZ}, block[] = {a->blockX, a->blockY, a->blockZ};
    for (int i = 0; i < 3; i++) {
        r->grid[i] = (uint32_t)grid[i];
        r->block[i] = (uint32_t)block[i];
    }
    r->registers = a->registersPerThread;
    r->shared_static = (uint32_t)a->staticSharedMemory;
    r->shared_dynamic = (uint32_t)a->dynamicSharedMemory;
    bzi_commit(r, BZ_SPOOL_KERNEL, 0, sizeof *r);
}

/* Copies of all kinds and memsets have the same fields, not at the same places. */
#define PUT_COPY(type, record, what)                                                                                   \
    do {                                                                                                               \
        const type *a = (const void *)(record);                                                                        \
        bz_spool_copy *r = bzi_claim(sizeof *r);                                                                       \
        if (!r)                                                                                                        \
            return;                                                                                                    \
        r->start = (int64_t)a->start;                                                                                  \
        r->end = (int64_t)a->end;                                                                                      \
        r->bytes = (int64_t)a->bytes;                                                                                  \
        r->correlation = a->correlationId;                                                                             \
        r->device = a->deviceId;                                                                                       \
        r->context = a->contextId;                                                                                     \
        r->stream = a->streamId;                                                                                       \
        r->graph = a->graphId;                                                                                         \
        r->kind = (what);                                                                                              \
        bzi_commit(r, a->kind == CUPTI_ACTIVITY_KIND_MEMSET ? BZ_SPOOL_MEMSET : BZ_SPOOL_COPY, 0, sizeof *r);          \
    } while (0)

static void put_copy(const CUpti_Activity *record)
{
    PUT_COPY(copy, record, a->copyKind);
}

static void put_peer_copy(const CUpti_Activity *record)
{
    PUT_COPY(peer_copy, record, a->copyKind);
}

static void put_set(const CUpti_Activity *record)
{
    PUT_COPY(set, record, 0);
}

static void put_sync(const CUpti_Activity *record)
{
    const sync *a = (const void *)record;
    bz_spool_sync *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->start = (int64_t)a->start;
    r->end = (int64_t)a->end;
    r->correlation = a->correlationId;
    r->device = __atomic_load_n(&device_of[a->contextId % CONTEXTS], __ATOMIC_RELAXED);
    r->context = a->contextId;
    r->stream = a->streamId;
    r->kind = a->type;
    bzi_commit(r, BZ_SPOOL_SYNC, 0, sizeof *r);
}

static void put_overhead(const CUpti_Activity *record)
{
    static const struct {
        CUpti_ActivityOverheadKind kind;
        const char *name;
    } NAMES[] = {
        {CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, "driver compiler"},
        {CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, "CUPTI buffer flush"},
        {CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, "CUPTI instrumentation"},
        {CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, "CUPTI resource"},
        {CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING, "module loading"},
        {CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, "lazy function loading"},
        {CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, "command buffer full"},
        {CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, "CUPTI buffer request"},
        {CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, "CUPTI unified memory start"},
    };
    const overhead *a = (const void *)record;
    const char *name = "unknown";
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].kind == a->overheadKind)
            name = NAMES[i].name;
    uint32_t id = bzi_text(name);
    bz_spool_overhead *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->start = (int64_t)a->start;
    r->end = (int64_t)a->end;
    r->thread = a->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? a->objectId.pt.threadId : 0;
    r->name = id;
    r->kind = a->overheadKind;
    bzi_commit(r, BZ_SPOOL_OVERHEAD, 0, sizeof *r);
}

static void put_device(const CUpti_Activity *record)
{
    const device *a = (const void *)record;
    char text[256];
    snprintf(text, sizeof text, "%.120s", a->name ? a->name : "?");
    bzi_fact("gpu", text);
    snprintf(text, sizeof text, "%u: compute capability %u.%u, %u multiprocessors, %llu MiB", a->id,
             a->computeCapabilityMajor, a->computeCapabilityMinor, a->numMultiprocessors,
             (unsigned long long)a->globalMemorySize >> 20);
    bzi_fact("device", text);
}

static void put_context(const CUpti_Activity *record)
{
    const CUpti_ActivityContext3 *a = (const void *)record;
    if (a->contextId < CONTEXTS)
        __atomic_store_n(&device_of[a->contextId], a->deviceId, __ATOMIC_RELAXED);
}

/* `needed`: a trace without this kind is told to lack it. */
static const struct {
    CUpti_ActivityKind kind;
    bool needed;
    const char *name;
    void (*put)(const CUpti_Activity *record);
} ACTIVITIES[] = {
    {CUPTI_ACTIVITY_KIND_DEVICE, false, "devices", put_device},
    {CUPTI_ACTIVITY_KIND_CONTEXT, false, "contexts", put_context},
    {CUPTI_ACTIVITY_KIND_RUNTIME, true, "runtime calls", put_api},
    {CUPTI_ACTIVITY_KIND_DRIVER, true, "driver calls", put_api},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true, "kernels", put_kernel},
    {CUPTI_ACTIVITY_KIND_MEMCPY, true, "copies", put_copy},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, true, "copies between devices", put_peer_copy},
    {CUPTI_ACTIVITY_KIND_MEMSET, true, "memsets", put_set},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, true, "synchronizations", put_sync},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, false, "overhead", put_overhead},
};
enum { N_ACTIVITIES = sizeof ACTIVITIES / sizeof *ACTIVITIES };

void bzc_activities_enable(const bzc_cupti *of)
{
    cupti = of;
    for (size_t i = 0; i < N_ACTIVITIES; i++) {
        CUptiResult rc = cupti->enable(ACTIVITIES[i].kind);
        if (rc == CUPTI_SUCCESS || !ACTIVITIES[i].needed)
            continue;
        char text[256];
        const char *why = NULL;
        cupti->result_text(rc, &why);
        snprintf(text, sizeof text, "CUPTI does not record %s here: %.120s", ACTIVITIES[i].name, why ? why : "?");
        bzi_note(BZI_MISSING, text);
    }
}

void bzc_activities_disable(void)
{
    for (size_t i = 0; i < N_ACTIVITIES; i++)
        cupti->disable(ACTIVITIES[i].kind);
}

void bzc_activity(const CUpti_Activity *record)
{
    for (size_t i = 0; i < N_ACTIVITIES; i++)
        if (ACTIVITIES[i].kind == record->kind) {
            ACTIVITIES[i].put(record);
            return;
        }
}
