/* Stands in front of oneDNN's C API: every primitive that is created and executed, described in the words of
 * oneDNN's own verbose log, so that a capture and a log read alike. Written for version 2, whose descriptors
 * are plain structs; of another version only kind and implementation are told. */
#include "profile/inject/record.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY_ONEDNN = 4 }; /* bz_library of profile.h, which is not for the captured process */
#define EXPORT __attribute__((visibility("default")))

/* oneDNN as the program has it; functions that only describe may be missing. */
static struct {
    bool looked, v2;
    dnnl_status_t (*create)(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
    dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    dnnl_status_t (*query)(const_dnnl_primitive_desc_t, dnnl_query_t, int, void *);
    const dnnl_memory_desc_t *(*query_md)(const_dnnl_primitive_desc_t, dnnl_query_t, int);
    dnnl_status_t (*get_attr)(const_dnnl_primitive_desc_t, const_dnnl_primitive_attr_t *);
    dnnl_status_t (*scratchpad)(const_dnnl_primitive_attr_t, dnnl_scratchpad_mode_t *);
    dnnl_status_t (*post_ops)(const_dnnl_primitive_attr_t, const_dnnl_post_ops_t *);
    int (*post_ops_len)(const_dnnl_post_ops_t);
    dnnl_primitive_kind_t (*post_op_kind)(const_dnnl_post_ops_t, int);
    dnnl_status_t (*post_op_eltwise)(const_dnnl_post_ops_t, int, float *, dnnl_alg_kind_t *, float *, float *);
    const char *(*kind_name)(dnnl_primitive_kind_t);
    const char *(*prop_name)(dnnl_prop_kind_t);
    const char *(*alg_name)(dnnl_alg_kind_t);
    const char *(*type_name)(dnnl_data_type_t);
    const dnnl_version_t *(*version)(void);
} dnn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void look(void)
{
    static const struct {
        const char *name;
        void **to;
    } SYMBOLS[] = {
        {"dnnl_primitive_create", (void **)(void *)&dnn.create},
        {"dnnl_primitive_execute", (void **)(void *)&dnn.execute},
        {"dnnl_primitive_desc_query", (void **)(void *)&dnn.query},
        {"dnnl_primitive_desc_query_md", (void **)(void *)&dnn.query_md},
        {"dnnl_primitive_desc_get_attr", (void **)(void *)&dnn.get_attr},
        {"dnnl_primitive_attr_get_scratchpad_mode", (void **)(void *)&dnn.scratchpad},
        {"dnnl_primitive_attr_get_post_ops", (void **)(void *)&dnn.post_ops},
        {"dnnl_post_ops_len", (void **)(void *)&dnn.post_ops_len},
        {"dnnl_post_ops_get_kind", (void **)(void *)&dnn.post_op_kind},
        {"dnnl_post_ops_get_params_eltwise", (void **)(void *)&dnn.post_op_eltwise},
        {"dnnl_prim_kind2str", (void **)(void *)&dnn.kind_name},
        {"dnnl_prop_kind2str", (void **)(void *)&dnn.prop_name},
        {"dnnl_alg_kind2str", (void **)(void *)&dnn.alg_name},
        {"dnnl_dt2str", (void **)(void *)&dnn.type_name},
        {"dnnl_version", (void **)(void *)&dnn.version},
    };
    pthread_mutex_lock(&lock);
    if (!__atomic_load_n(&dnn.looked, __ATOMIC_ACQUIRE)) {
        bool all = true;
        for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
            *SYMBOLS[i].to = bzi_resolve(SYMBOLS[i].name, "dnnl");
            all = all && *SYMBOLS[i].to;
        }
        const dnnl_version_t *v = dnn.version ? dnn.version() : NULL;
        dnn.v2 = all && v && v->major == 2;
        if (v) {
            char text[32];
            snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
            bzi_note_onednn(text);
        }
        __atomic_store_n(&dnn.looked, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- which description belongs to a primitive ---- */

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

/* ---- descriptions ---- */

typedef struct {
    char data[2048];
    size_t len;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->data + t->len, sizeof t->data - t->len, fmt, args);
    va_end(args);
    t->len += n < 0 ? 0 : (size_t)n < sizeof t->data - t->len ? (size_t)n : sizeof t->data - t->len - 1;
}

/* "abcd", "Acdb16a": dimensions from the outermost in, capital where a part of them is blocked inside. */
static void put_tag(text *t, const dnnl_memory_desc_t *md)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    dnnl_dims_t block;
    int order[DNNL_MAX_NDIMS];
    for (int d = 0; d < md->ndims; d++) {
        block[d] = 1;
        order[d] = d;
    }
    for (int i = 0; i < b->inner_nblks; i++)
        block[b->inner_idxs[i]] *= b->inner_blks[i];
    for (int i = 1; i < md->ndims; i++) /* by stride, then size, both falling; stable */
        for (int k = i; k > 0; k--) {
            int p = order[k - 1], q = order[k];
            if (b->strides[q] < b->strides[p] ||
                (b->strides[q] == b->strides[p] && md->padded_dims[q] / block[q] <= md->padded_dims[p] / block[p]))
                break;
            order[k - 1] = q;
            order[k] = p;
        }
    for (int i = 0; i < md->ndims; i++)
        put(t, "%c", (block[order[i]] == 1 ? 'a' : 'A') + order[i]);
    for (int i = 0; i < b->inner_nblks; i++)
        put(t, "%lld%c", (long long)b->inner_blks[i], 'a' + (int)b->inner_idxs[i]);
}

/* "src=f32::blocked:abcd:f0" */
static void put_memory(text *t, const char *name, const dnnl_memory_desc_t *md)
{
    if (!md || md->ndims <= 0 || md->ndims > DNNL_MAX_NDIMS)
        return;
    bool padded = false;
    for (int d = 0; d < md->ndims; d++)
        padded |= md->dims[d] != md->padded_dims[d];
    put(t, " %s=%s:%s%s:", name, dnn.type_name(md->data_type), padded ? "p" : "", md->offset0 ? "o" : "");
    if (md->format_kind == dnnl_blocked) {
        put(t, "blocked:");
        put_tag(t, md);
    } else {
        put(t, md->format_kind == dnnl_format_kind_any ? "any:any" : "opaque:");
    }
    put(t, ":f%llx", (unsigned long long)md->extra.flags);
}

static void put_dims(text *t, const dnnl_memory_desc_t *md)
{
    for (int d = 0; md && d < md->ndims && d < DNNL_MAX_NDIMS; d++)
        put(t, "%s%lld", d ? "x" : "", (long long)md->dims[d]);
}

/* One spatial dimension of a window operation, "ih224oh112kh7sh2dh0ph3". */
static void put_window(text *t, char c, long long i, long long o, long long k, long long s, long long d, long long p)
{
    put(t, "i%c%lldo%c%lldk%c%llds%c%lldd%c%lldp%c%lld", c, i, c, o, c, k, c, s, c, d, c, p);
}

static void put_convolution(text *t, const dnnl_convolution_desc_t *c, const dnnl_memory_desc_t *src,
                            const dnnl_memory_desc_t *wei, const dnnl_memory_desc_t *dst)
{
    int spatial = src->ndims - 2;
    bool groups = wei->ndims == src->ndims + 1;
    put(t, "mb%lld_", (long long)src->dims[0]);
    if (groups)
        put(t, "g%lld", (long long)wei->dims[0]);
    put(t, "ic%lldoc%lld", (long long)src->dims[1], (long long)dst->dims[1]);
    for (int i = 0; i < spatial; i++) {
        put(t, "_");
        put_window(t, "dhw"[3 - spatial + i], src -> dims[2 + i], dst -> dims[2 + i], wei -> dims[2 + groups + i],
                   c -> strides[i], c -> dilates[i], c -> padding[0][i]);
    }
}

static void put_pooling(text *t, const dnnl_pooling_v2_desc_t *p, bool dilated, const dnnl_memory_desc_t *src,
                        const dnnl_memory_desc_t *dst)
{
    int spatial = src->ndims - 2;
    put(t, "mb%lldic%lld", (long long)src->dims[0], (long long)src->dims[1]);
    for (int i = 0; i < spatial; i++) {
        put(t, "_");
        put_window(t, "dhw"[3 - spatial + i], src -> dims[2 + i], dst -> dims[2 + i], p -> kernel[i], p -> strides[i],
                   dilated ? p -> dilation[i] : 0, p -> padding[0][i]);
    }
}

/* What a description is made of, gathered once per primitive. */
typedef struct {
    dnnl_primitive_kind_t kind;
    dnnl_prop_kind_t prop;
    dnnl_alg_kind_t alg;
    const char *implementation;
    const void *op;
    const dnnl_memory_desc_t *src, *src1, *wei, *bia, *dst, *diff_src, *diff_wei, *diff_dst;
    const_dnnl_post_ops_t post_ops;
    dnnl_scratchpad_mode_t scratchpad;
} facts;

/* Kinds whose descriptor has its algorithm behind kind and propagation. */
static bool has_algorithm(dnnl_primitive_kind_t k)
{
    return k == dnnl_convolution || k == dnnl_deconvolution || k == dnnl_eltwise || k == dnnl_pooling ||
           k == dnnl_pooling_v2 || k == dnnl_lrn || k == dnnl_resampling || k == dnnl_softmax_v2;
}

static const dnnl_memory_desc_t *memory_of(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    const dnnl_memory_desc_t *md = dnn.query_md(pd, what, index);
    return md && md->ndims > 0 ? md : NULL;
}

static facts gather(const_dnnl_primitive_desc_t pd)
{
    facts f = {.implementation = "?"};
    dnn.query(pd, dnnl_query_primitive_kind, 0, &f.kind);
    dnn.query(pd, dnnl_query_impl_info_str, 0, &f.implementation);
    dnn.query(pd, dnnl_query_prop_kind, 0, &f.prop);
    if (f.kind != dnnl_reorder && f.kind != dnnl_concat && f.kind != dnnl_sum &&
        dnn.query(pd, dnnl_query_op_d, 0, &f.op) != dnnl_success)
        f.op = NULL;
    if (f.op && has_algorithm(f.kind))
        f.alg = ((const dnnl_eltwise_desc_t *)f.op)->alg_kind;
    else if (f.op && f.kind == dnnl_binary)
        f.alg = ((const dnnl_binary_desc_t *)f.op)->alg_kind;
    f.src = memory_of(pd, dnnl_query_src_md, 0);
    f.dst = memory_of(pd, dnnl_query_dst_md, 0);
    if (f.kind == dnnl_binary || f.kind == dnnl_concat || f.kind == dnnl_sum)
        f.src1 = memory_of(pd, dnnl_query_src_md, 1);
    if (f.kind != dnnl_reorder && f.kind != dnnl_eltwise) {
        f.wei = memory_of(pd, dnnl_query_weights_md, 0);
        f.bia = memory_of(pd, dnnl_query_weights_md, 1);
    }
    if (f.prop == dnnl_backward || f.prop == dnnl_backward_data || f.prop == dnnl_backward_weights ||
        f.prop == dnnl_backward_bias) {
        f.diff_src = memory_of(pd, dnnl_query_diff_src_md, 0);
        f.diff_wei = memory_of(pd, dnnl_query_diff_weights_md, 0);
        f.diff_dst = memory_of(pd, dnnl_query_diff_dst_md, 0);
    }
    const_dnnl_primitive_attr_t attr = NULL;
    if (dnn.get_attr(pd, &attr) == dnnl_success && attr) {
        dnn.post_ops(attr, &f.post_ops);
        dnn.scratchpad(attr, &f.scratchpad);
    }
    return f;
}

static uint64_t hash_memory(uint64_t h, const dnnl_memory_desc_t *md)
{
    if (!md)
        return h * 31;
    h = bzi_hash(h, md->dims, (size_t)md->ndims * sizeof md->dims[0]);
    h = bzi_hash(h, md->padded_dims, (size_t)md->ndims * sizeof md->dims[0]);
    uint64_t small[] = {(uint64_t)md->data_type, (uint64_t)md->format_kind, (uint64_t)md->offset0, md->extra.flags};
    h = bzi_hash(h, small, sizeof small);
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->format_kind != dnnl_blocked || b->inner_nblks < 0 || b->inner_nblks > DNNL_MAX_NDIMS)
        return h;
    h = bzi_hash(h, b->strides, (size_t)md->ndims * sizeof b->strides[0]);
    h = bzi_hash(h, b->inner_blks, (size_t)b->inner_nblks * sizeof b->inner_blks[0]);
    return bzi_hash(h, b->inner_idxs, (size_t)b->inner_nblks * sizeof b->inner_idxs[0]);
}

static uint64_t hash_facts(const facts *f)
{
    uint64_t small[] = {f->kind, f->prop, f->alg, f->scratchpad, (uint64_t)(uintptr_t)f->implementation};
    uint64_t h = bzi_hash(5, small, sizeof small);
    enum { N_ALL = 8 };
    const dnnl_memory_desc_t *all[N_ALL] = {f->src, f->src1,     f->wei,      f->bia,
                                            f->dst, f->diff_src, f->diff_wei, f->diff_dst};
    for (int i = 0; i < N_ALL; i++)
        h = hash_memory(h, all[i]);
    if (f->op && (f->kind == dnnl_convolution || f->kind == dnnl_deconvolution)) {
        const dnnl_convolution_desc_t *c = f->op;
        h = bzi_hash(h, c->strides, sizeof c->strides + sizeof c->dilates + sizeof c->padding);
    } else if (f->op && (f->kind == dnnl_pooling || f->kind == dnnl_pooling_v2)) {
        const dnnl_pooling_desc_t *p = f->op;
        h = bzi_hash(h, p->strides, sizeof p->strides + sizeof p->kernel + sizeof p->padding);
    }
    for (int i = 0, n = f->post_ops ? dnn.post_ops_len(f->post_ops) : 0; i < n; i++) {
        uint64_t op[2] = {dnn.post_op_kind(f->post_ops, i), 0};
        float scale, alpha, beta;
        dnnl_alg_kind_t alg = 0;
        if (op[0] == dnnl_eltwise && dnn.post_op_eltwise(f->post_ops, i, &scale, &alg, &alpha, &beta) == dnnl_success)
            op[1] = alg;
        h = bzi_hash(h, op, sizeof op);
    }
    return h;
}

static void put_problem(text *t, const facts *f)
{
    const dnnl_memory_desc_t *src = f->src ? f->src : f->diff_src, *wei = f->wei ? f->wei : f->diff_wei,
                             *dst = f->dst ? f->dst : f->diff_dst;
    put(t, " problem=");
    if (f->op && src && wei && dst && (f->kind == dnnl_convolution || f->kind == dnnl_deconvolution)) {
        put_convolution(t, f->op, src, wei, dst);
    } else if (f->op && src && dst && (f->kind == dnnl_pooling || f->kind == dnnl_pooling_v2)) {
        put_pooling(t, f->op, f->kind == dnnl_pooling_v2, src, dst);
    } else if (f->kind == dnnl_matmul && src && wei && dst) {
        put_dims(t, src);
        put(t, ":");
        put_dims(t, wei);
        put(t, ":");
        put_dims(t, dst);
    } else if (f->kind == dnnl_inner_product && src && dst) {
        put(t, "mb%lldic%lld", (long long)src->dims[0], (long long)src->dims[1]);
        for (int d = 2; d < src->ndims; d++)
            put(t, "i%c%lld", "dhw"[5 - src->ndims + d - 2], (long long)src -> dims[d]);
        put(t, "oc%lld", (long long)dst->dims[1]);
    } else if (f->kind == dnnl_batch_normalization && src) {
        put(t, "mb%lldic%lld", (long long)src->dims[0], src->ndims > 1 ? (long long)src->dims[1] : 1);
        for (int d = 2; d < src->ndims; d++)
            put(t, "i%c%lld", "dhw"[5 - src->ndims + d - 2], (long long)src -> dims[d]);
    } else {
        put_dims(t, src ? src : dst);
        if (f->src1) {
            put(t, ":");
            put_dims(t, f->src1);
        }
    }
}

static uint32_t detail_of(const facts *f, uint64_t hash)
{
    text t = {.len = 0};
    put(&t, "engine=cpu prop=%s", f->prop ? dnn.prop_name(f->prop) : "undef");
    put_memory(&t, "src", f->src);
    put_memory(&t, "src1", f->src1);
    put_memory(&t, "wei", f->wei);
    put_memory(&t, "bia", f->bia);
    put_memory(&t, "dst", f->dst);
    put_memory(&t, "diff_src", f->diff_src);
    put_memory(&t, "diff_wei", f->diff_wei);
    put_memory(&t, "diff_dst", f->diff_dst);
    int n = f->post_ops ? dnn.post_ops_len(f->post_ops) : 0;
    if (n || f->scratchpad == dnnl_scratchpad_mode_user) {
        put(&t, " attr=%s", f->scratchpad == dnnl_scratchpad_mode_user ? "attr-scratchpad:user" : "");
        for (int i = 0; i < n; i++) {
            dnnl_primitive_kind_t kind = dnn.post_op_kind(f->post_ops, i);
            float scale, alpha, beta;
            dnnl_alg_kind_t alg = 0;
            put(&t, "%s", i ? "+" : f->scratchpad == dnnl_scratchpad_mode_user ? ";attr-post-ops:" : "attr-post-ops:");
            if (kind == dnnl_eltwise &&
                dnn.post_op_eltwise(f->post_ops, i, &scale, &alg, &alpha, &beta) == dnnl_success)
                put(&t, "%s", dnn.alg_name(alg));
            else
                put(&t, "%s", dnn.kind_name(kind));
        }
    }
    if (f->alg)
        put(&t, " aux=alg:%s", dnn.alg_name(f->alg));
    put_problem(&t, f);
    return bzi_string(hash, t.data, t.len);
}

static uint32_t constant(uint64_t seed, const char *s)
{
    uint64_t hash = bzi_hash(seed, s, strlen(s));
    uint32_t id = bzi_known(hash);
    return id ? id : bzi_string(hash, s, strlen(s));
}

static known describe(const_dnnl_primitive_desc_t pd)
{
    known k = {0};
    if (!dnn.v2) {
        k.name = constant(1, "primitive");
        return k;
    }
    facts f = gather(pd);
    uint64_t hash = hash_facts(&f);
    k.detail = bzi_known(hash);
    if (!k.detail)
        k.detail = detail_of(&f, hash);
    k.name = constant(1, dnn.kind_name(f.kind));
    k.variant = constant(2, f.implementation);
    return k;
}

/* ---- the intercepted functions ---- */

EXPORT dnnl_status_t dnnl_primitive_create(dnnl_primitive_t *primitive, const_dnnl_primitive_desc_t primitive_desc)
{
    if (!__atomic_load_n(&dnn.looked, __ATOMIC_ACQUIRE))
        look();
    if (!dnn.create)
        return dnnl_runtime_error;
    if (!bzi_recording())
        return dnn.create(primitive, primitive_desc);
    bzi_call call = {.start = bzi_now(), .library = LIBRARY_ONEDNN, .flags = BZ_SPOOL_CREATES};
    dnnl_status_t status = dnn.create(primitive, primitive_desc);
    int64_t took = bzi_now() - call.start;
    if (status != dnnl_success)
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

EXPORT dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int nargs,
                                            const dnnl_exec_arg_t *args)
{
    if (!__atomic_load_n(&dnn.looked, __ATOMIC_ACQUIRE))
        look();
    if (!dnn.execute)
        return dnnl_runtime_error;
    if (!bzi_recording())
        return dnn.execute(primitive, stream, nargs, args);
    known k = recall(primitive);
    bzi_call call = {.library = LIBRARY_ONEDNN, .name = k.name, .detail = k.detail, .variant = k.variant};
    if (!k.primitive)
        call.name = constant(1, "primitive");
    call.start = bzi_now();
    dnnl_status_t status = dnn.execute(primitive, stream, nargs, args);
    call.flags = status == dnnl_success ? 0 : BZ_SPOOL_FAILED;
    bzi_call_end(&call);
    return status;
}
