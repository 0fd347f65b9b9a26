/* Records the ranges and marks that the program names with NVTX. NVTX loads us at the program's first mark, with or
 * without a device. A domain tells ranges with equal names apart for people; here it only says which range a pop ends. */
#include "profile/inject/record.h"

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <string.h>
#include <wchar.h>

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

enum { LONGEST = 1024 };

static const char *utf8(const wchar_t *s, char out[LONGEST])
{
    size_t n = 0;
    for (; s && *s && n + 4 < LONGEST; s++) {
        uint32_t c = (uint32_t)*s;
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const uint8_t FIRST[] = {0, 0xc0, 0xe0, 0xf0};
        out[n++] = (char)(FIRST[more] | c >> 6 * more);
        while (more-- > 0)
            out[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    out[n] = 0;
    return out;
}

static uint32_t text_of_wide(const wchar_t *s)
{
    char out[LONGEST];
    return bzi_text(utf8(s, out));
}

static uint32_t text_of(const nvtxEventAttributes_t *a)
{
    if (!a)
        return 0;
    switch (a->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return bzi_text(a->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
        return text_of_wide(a->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
        return bzi_text((const char *)(const void *)a->message.registered);
    default:
        return 0;
    }
}

enum { DEEPEST = 64, OPEN = 1024 };

typedef struct {
    int64_t start;
    uint32_t name;
    const void *domain;
} range;

static __thread range pushed[DEEPEST]; /* of this thread, all domains */
static __thread int depth;             /* may be more than DEEPEST: those are lost */

/* Ranges that may end in another thread. */
static range opened[OPEN];
static nvtxRangeId_t next_id = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(const range *v, int64_t end)
{
    bz_spool_range *r = bzi_marking() ? bzi_claim(sizeof *r) : NULL;
    if (!r)
        return;
    r->start = v->start;
    r->end = end;
    r->thread = bzi_thread();
    r->name = v->name;
    bzi_commit(r, BZ_SPOOL_RANGE, 0, sizeof *r);
}

static void mark(uint32_t name)
{
    range v = {bzi_now(), name, NULL};
    put(&v, v.start);
}

static int push_in(const void *domain, uint32_t name)
{
    if (depth < DEEPEST)
        pushed[depth] = (range){bzi_now(), name, domain};
    return depth++;
}

static int push(uint32_t name)
{
    return push_in(NULL, name);
}

/* NVTX pops per domain; ranges of others that lie above stay open. */
static int pop(const void *domain)
{
    int64_t end = bzi_now();
    int top = depth < DEEPEST ? depth : DEEPEST;
    if (depth > DEEPEST)
        return --depth;
    for (int i = top - 1; i >= 0; i--)
        if (pushed[i].domain == domain) {
            put(&pushed[i], end);
            memmove(&pushed[i], &pushed[i + 1], (size_t)(top - 1 - i) * sizeof *pushed);
            return --depth;
        }
    return -1;
}

static nvtxRangeId_t start(uint32_t name)
{
    pthread_mutex_lock(&lock);
    nvtxRangeId_t id = next_id++;
    opened[id % OPEN] = (range){bzi_now(), name, NULL};
    pthread_mutex_unlock(&lock);
    return id;
}

static void end(nvtxRangeId_t id)
{
    int64_t now = bzi_now();
    pthread_mutex_lock(&lock);
    range v = id && id < next_id && id + OPEN >= next_id ? opened[id % OPEN] : (range){0};
    opened[id % OPEN].start = 0;
    pthread_mutex_unlock(&lock);
    if (v.start)
        put(&v, now);
}

static void mark_ex(const nvtxEventAttributes_t *a)
{
    mark(text_of(a));
}

static void mark_a(const char *s)
{
    mark(bzi_text(s));
}

static void mark_w(const wchar_t *s)
{
    mark(text_of_wide(s));
}

/* What opens a range, by each way to name it. */
#define BY_NAME(verb, type)                                                                                            \
    static type verb##_ex(const nvtxEventAttributes_t *a)                                                              \
    {                                                                                                                  \
        return verb(text_of(a));                                                                                       \
    }                                                                                                                  \
    static type verb##_a(const char *s)                                                                                \
    {                                                                                                                  \
        return verb(bzi_text(s));                                                                                      \
    }                                                                                                                  \
    static type verb##_w(const wchar_t *s)                                                                             \
    {                                                                                                                  \
        return verb(text_of_wide(s));                                                                                  \
    }
BY_NAME(start, nvtxRangeId_t)
BY_NAME(push, int)

static int pop_any(void)
{
    return pop(NULL);
}

static void domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    (void)domain;
    mark(text_of(a));
}

static nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    (void)domain;
    return start(text_of(a));
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    end(id);
}

static int domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    return push_in(domain, text_of(a));
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    return pop(domain);
}

/* Handles are copies of the text, which live as long as the program. */
static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char *s)
{
    (void)domain;
    return (nvtxStringHandle_t)(void *)(s ? strdup(s) : NULL);
}

static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t *s)
{
    char out[LONGEST];
    return register_a(domain, utf8(s, out));
}

static nvtxDomainHandle_t create_a(const char *s)
{
    return (nvtxDomainHandle_t)(void *)(s ? strdup(s) : NULL);
}

static nvtxDomainHandle_t create_w(const wchar_t *s)
{
    char out[LONGEST];
    return create_a(utf8(s, out));
}

/* Names of a forked child have other numbers. */
static void forget(void)
{
    depth = 0;
    memset(opened, 0, sizeof opened);
    pthread_mutex_init(&lock, NULL);
}

#define FUNCTION(f) ((NvtxFunctionPointer)(f))

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    static const struct {
        NvtxCallbackModule module;
        unsigned id;
        NvtxFunctionPointer function;
    } HANDLERS[] = {
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, FUNCTION(mark_ex)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, FUNCTION(mark_a)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkW, FUNCTION(mark_w)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, FUNCTION(start_ex)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, FUNCTION(start_a)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, FUNCTION(start_w)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, FUNCTION(end)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, FUNCTION(push_ex)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, FUNCTION(push_a)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, FUNCTION(push_w)},
        {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, FUNCTION(pop_any)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, FUNCTION(domain_mark_ex)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, FUNCTION(domain_start_ex)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, FUNCTION(domain_end)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, FUNCTION(domain_push_ex)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, FUNCTION(domain_pop)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, FUNCTION(register_a)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW, FUNCTION(register_w)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, FUNCTION(create_a)},
        {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, FUNCTION(create_w)},
    };
    const NvtxExportTableCallbacks *callbacks = get_table ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || !bzi_marking())
        return 0;
    for (size_t i = 0; i < sizeof HANDLERS / sizeof *HANDLERS; i++) {
        NvtxFunctionTable table = NULL;
        unsigned n = 0;
        if (callbacks->GetModuleFunctionTable(HANDLERS[i].module, &table, &n) && HANDLERS[i].id < n &&
            table[HANDLERS[i].id])
            *table[HANDLERS[i].id] = HANDLERS[i].function;
    }
    pthread_atfork(NULL, NULL, forget);
    return 1;
}
