/* A stand-in for CUPTI, for tests on machines without a device: NOT the real library. It is built as libcupti.so.N, and
 * delivers the header's records of kernels that tests ask for, newest first, through the callbacks that were
 * registered; a wrong order of calls ends the program. STANDIN_CUPTI=refuse: it does not trace, as CUPTI does where the
 * user may not; STANDIN_CUPTI=broken: for a reason of its own. */
#include "tests/standin/cupti.h"

#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 record;
#else
typedef CUpti_ActivityKernel9 record;
#endif

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static int traces, room, lost;
static uint8_t *buffer;
static size_t size, used;
static uint64_t now = 1000000, pause = 100;
static record pending[256];
static int n_pending;
static bool no_times, swaps_times;

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "CUPTI stand-in: %s\n", what);
        _Exit(99);
    }
}

static void hand_over(void)
{
    uint8_t *full = buffer;
    buffer = NULL;
    if (full)
        complete(NULL, 0, full, size, used);
    for (; lost; lost--)
        complete(NULL, 0, NULL, 0, 0);
    used = 0;
}

static void deliver(const record *r)
{
    size_t most = 1;
    if (buffer && (used + sizeof *r > size || (room && used >= (size_t)room * sizeof *r)))
        hand_over();
    if (!buffer) {
        request(&buffer, &size, &most);
        expect(buffer && !((uintptr_t)buffer % 8) && size >= sizeof *r && !most, "the buffer is not as CUPTI wants it");
    }
    memcpy(buffer + used, r, sizeof *r);
    used += sizeof *r;
}

void standin_cupti_room(int records)
{
    room = records;
}

void standin_cupti_untimed(bool untimed, bool backwards)
{
    no_times = untimed && !backwards;
    swaps_times = untimed && backwards;
}

void standin_cupti_lose(void)
{
    lost = 1;
}

int standin_cupti_traces(void)
{
    return traces;
}

void standin_kernel(const char *name, uint64_t ns, int32_t grid, int32_t block)
{
    record *r = &pending[n_pending];
    if (traces) {
        expect(n_pending < 256, "too many kernels");
        memset(r, 0, sizeof *r);
        r->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        r->name = name;
        r->start = now;
        r->end = now + ns;
        if (swaps_times || no_times) {
            r->start = swaps_times ? r->end : 0;
            r->end = swaps_times ? now : 0;
        }
        r->gridX = grid;
        r->gridY = 2;
        r->gridZ = 3;
        r->blockX = block;
        r->blockY = r->blockZ = 1;
        r->registersPerThread = 40;
        r->staticSharedMemory = 512;
        r->dynamicSharedMemory = 2048;
        n_pending++;
    }
    now += ns + pause;
}

void standin_cupti_pause(int64_t ns)
{
    pause = (uint64_t)ns;
}

void standin_set(uint64_t ns)
{
    CUpti_ActivityMemset4 m = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .start = now, .end = now + ns};
    expect(sizeof m <= sizeof *pending && n_pending < 256, "there is no room for a record of memory");
    if (traces & 1 << CUPTI_ACTIVITY_KIND_MEMSET)
        memcpy(&pending[n_pending++], &m, sizeof m);
    now += ns + pause;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c)
{
    request = r;
    complete = c;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    const char *mode = getenv("STANDIN_CUPTI");
    expect(request && complete, "a kind is enabled before the callbacks are there");
    expect(kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMSET ||
               kind == CUPTI_ACTIVITY_KIND_MEMCPY,
           "kernels and what is done to memory are to be traced, nothing else");
    if (mode)
        return strcmp(mode, "refuse") ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    traces |= 1 << kind;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    traces &= ~(1 << kind);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    expect(flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, "without force the last buffer stays");
    while (n_pending)
        deliver(&pending[--n_pending]);
    hand_over();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **r)
{
    uint8_t *next = *r ? (uint8_t *)*r + sizeof(record) : data;
    if (next >= data + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *r = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "?";
    return CUPTI_SUCCESS;
}
