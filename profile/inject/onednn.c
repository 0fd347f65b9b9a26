/* Stands in front of oneDNN's C API: every primitive that is created and executed, described in the words of
 * oneDNN's own verbose log, so that a capture and a log read alike. */
#include "profile/inject/onednn.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LIBRARY_ONEDNN = 4 }; /* bz_library of profile.h, which is not for the captured process */
#define EXPORT __attribute__((visibility("default")))

bzi_onednn bzi_dnn;
static bool looked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { ALWAYS = 1, IN_2 = 2, IN_3 = 4, MAYBE = 8 };
static const struct {
    const char *name;
    void **to;
    int wanted; /* by which version */
} SYMBOLS[] = {
#define TO(member) ((void **)(void *)&bzi_dnn.member)
    {"dnnl_primitive_create", TO(create), ALWAYS},
    {"dnnl_primitive_execute", TO(execute), ALWAYS},
    {"dnnl_memory_get_data_handle", TO(handle), MAYBE},
    {"dnnl_primitive_desc_query", TO(query), ALWAYS},
    {"dnnl_primitive_desc_query_md", TO(query_md), ALWAYS},
    {"dnnl_memory_desc_query", TO(md_query), IN_3},
    {"dnnl_primitive_desc_get_attr", TO(get_attr), ALWAYS},
    {"dnnl_primitive_attr_get_scratchpad_mode", TO(scratchpad), ALWAYS},
    {"dnnl_primitive_attr_get_fpmath_mode", TO(math), MAYBE},
    {"dnnl_primitive_attr_get_output_scales", TO(scales), MAYBE},
    {"dnnl_primitive_attr_get_post_ops", TO(post_ops), ALWAYS},
    {"dnnl_post_ops_len", TO(post_len), ALWAYS},
    {"dnnl_post_ops_get_kind", TO(post_kind), ALWAYS},
    {"dnnl_post_ops_get_params_eltwise", TO(post_eltwise2), IN_2},
    {"dnnl_post_ops_get_params_eltwise", TO(post_eltwise3), IN_3},
    {"dnnl_post_ops_get_params_sum_v3", TO(post_sum2), MAYBE},
    {"dnnl_post_ops_get_params_sum", TO(post_sum3), IN_3},
    {"dnnl_post_ops_get_params_binary", TO(post_binary), MAYBE},
    {"dnnl_post_ops_get_params_prelu", TO(post_prelu), MAYBE},
    {"dnnl_prim_kind2str", TO(kind_name), ALWAYS},
    {"dnnl_prop_kind2str", TO(prop_name), ALWAYS},
    {"dnnl_alg_kind2str", TO(alg_name), ALWAYS},
    {"dnnl_dt2str", TO(type_name), ALWAYS},
    {"dnnl_fpmath_mode2str", TO(math_name), MAYBE},
    {"dnnl_rnn_direction2str", TO(direction_name), MAYBE},
#undef TO
};

static void look(void)
{
    typedef struct {
        int major, minor, patch;
    } version;
    int have = 0;
    pthread_mutex_lock(&lock);
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        const version *(*ask)(void) = NULL;
        void *found = bzi_resolve("dnnl_version", "dnnl");
        memcpy(&ask, &found, sizeof ask); /* ISO C has no cast from one kind of pointer to the other */
        const version *v = ask ? ask() : NULL;
        int wanted = ALWAYS | (v && v->major == 2 ? IN_2 : IN_3);
        bool all = v && (v->major == 3 || (v->major == 2 && bzi_onednn2_known));
        for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
            *SYMBOLS[i].to = bzi_resolve(SYMBOLS[i].name, "dnnl");
            have += *SYMBOLS[i].to != NULL;
            all = all && (*SYMBOLS[i].to || !(SYMBOLS[i].wanted & wanted));
        }
        bzi_dnn.major = all ? v->major : 0;
        if (v) {
            char text[48];
            snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
            bzi_note_onednn(text);
        }
        if (!all && have)
            bzi_note(BZI_MISSING, "oneDNN's primitives are not described: this version's are not known here");
        __atomic_store_n(&looked, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

typedef struct {
    const void *primitive;
    uint32_t name, detail, variant;
} known;
enum { KNOWN = 1 << 14 };
static known table[KNOWN]; /* open addressing; addresses that come again are written over */
static int n_known;

static known *slot(const void *primitive)
{
    size_t i = ((uintptr_t)primitive >> 4) * 0x9e3779b97f4a7c15u >> 20;
    for (;; i++) {
        known *k = &table[i % KNOWN];
        if (!k->primitive || k->primitive == primitive)
            return k;
    }
}

static void remember(const void *primitive, uint32_t name, uint32_t detail, uint32_t variant)
{
    pthread_mutex_lock(&lock);
    known *k = slot(primitive);
    if (!k->primitive && n_known >= KNOWN / 2) { /* most are long gone: start anew */
        memset(table, 0, sizeof table);
        n_known = 0;
        k = slot(primitive);
    }
    n_known += !k->primitive;
    *k = (known){primitive, name, detail, variant};
    pthread_mutex_unlock(&lock);
}

static known recall(const void *primitive)
{
    pthread_mutex_lock(&lock);
    known k = *slot(primitive);
    pthread_mutex_unlock(&lock);
    return k;
}

static uint32_t constant(uint64_t seed, const char *s)
{
    uint64_t hash = bzi_hash(seed, s, strlen(s));
    uint32_t id = bzi_known(hash);
    return id ? id : bzi_string(hash, s, strlen(s));
}

static known describe(const void *pd)
{
    known k = {0};
    if (!bzi_dnn.major) {
        k.name = constant(1, "primitive");
        return k;
    }
    bzi_facts f;
    bzi_onednn_gather(pd, &f);
    uint64_t hash = bzi_onednn_hash(&f);
    k.detail = bzi_known(hash);
    if (!k.detail)
        k.detail = bzi_onednn_detail(&f, hash);
    k.name = constant(1, f.kind);
    k.variant = constant(2, f.implementation);
    return k;
}

typedef struct {
    int what;
    void *memory;
} argument; /* dnnl_exec_arg_t */

/* Input, weights and result; of a reorder, the input may be weights. */
static void find_places(int n, const argument *list, bzi_call *call)
{
    enum { SOURCE = 1, RESULT = 17, WEIGHTS = 33 };
    for (int i = 0; i < n && bzi_dnn.handle; i++) {
        const void **to = list[i].what == SOURCE    ? &call->read[0]
                          : list[i].what == WEIGHTS ? &call->read[1]
                          : list[i].what == RESULT  ? &call->written
                                                    : NULL;
        void *at = NULL;
        if (to && list[i].memory && !bzi_dnn.handle(list[i].memory, &at))
            *to = at;
    }
}

enum { RUNTIME_ERROR = 5 };
EXPORT int dnnl_primitive_create(void **primitive, const void *primitive_desc);
EXPORT int dnnl_primitive_execute(const void *primitive, void *stream, int nargs, const void *args);

int dnnl_primitive_create(void **primitive, const void *primitive_desc)
{
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE))
        look();
    if (!bzi_dnn.create)
        return RUNTIME_ERROR;
    if (!bzi_recording())
        return bzi_dnn.create(primitive, primitive_desc);
    bzi_call call = {.start = bzi_now(), .library = LIBRARY_ONEDNN, .flags = BZ_SPOOL_CREATES};
    int status = bzi_dnn.create(primitive, primitive_desc);
    int64_t took = bzi_now() - call.start;
    if (status)
        return status;
    known k = describe(primitive_desc);
    remember(*primitive, k.name, k.detail, k.variant);
    /* the cache answers in a microsecond or two; only what was really built is worth a record */
    if (took > 20000) {
        call.name = k.name;
        call.detail = k.detail;
        call.variant = k.variant;
        bzi_call_end(&call);
    }
    return status;
}

int dnnl_primitive_execute(const void *primitive, void *stream, int nargs, const void *args)
{
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE))
        look();
    if (!bzi_dnn.execute)
        return RUNTIME_ERROR;
    if (!bzi_recording())
        return bzi_dnn.execute(primitive, stream, nargs, args);
    known k = recall(primitive);
    bzi_call call = {.library = LIBRARY_ONEDNN, .name = k.name, .detail = k.detail, .variant = k.variant};
    if (!k.primitive)
        call.name = constant(1, "primitive");
    find_places(nargs, args, &call);
    call.start = bzi_now();
    int status = bzi_dnn.execute(primitive, stream, nargs, args);
    call.flags = status ? BZ_SPOOL_FAILED : 0;
    bzi_call_end(&call);
    return status;
}
