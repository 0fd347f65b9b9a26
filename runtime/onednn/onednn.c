/* The oneDNN backend: sessions, operands in the layout that an implementation wants, execution. */
#include "runtime/onednn/onednn.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

extern const bz_backend bz_backend_onednn;

static int library_failed(bz_error *err, const char *what, dnnl_status_t status)
{
    return bz_fail(err, status == dnnl_unimplemented ? BZ_INCOMPLETE : BZ_FAILED, "%s: %s", what,
                   dnnl_status2str(status));
}

static void version(bz_buf *out)
{
    const dnnl_version_t *v = dnnl_version();
    bz_buf_printf(out, "onednn%d.%d.%d", v->major, v->minor, v->patch);
}

/* oneDNN has names for those of x86 alone; on ARM its number says something else. */
void bz_onednn_isa(char *out, size_t size)
{
#ifdef __aarch64__
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
#else
    const int have = (int)dnnl_get_effective_cpu_isa();
#define HAVE(set) ((have & dnnl_cpu_isa_##set) == dnnl_cpu_isa_##set)
#endif
    const struct {
        bool there;
        const char *name;
    } SETS[] = {
#ifdef __aarch64__
        {first & HWCAP_ASIMD, "ASIMD"},
        {first & HWCAP_ASIMDHP, "FP16"},
        {first & HWCAP_ASIMDDP, "DOTPROD"},
        {first & HWCAP_SVE, "SVE"},
        {second & HWCAP2_SVE2, "SVE2"},
        {second & HWCAP2_I8MM, "I8MM"},
        {second & HWCAP2_BF16, "BF16"},
#else
        {HAVE(sse41), "SSE4.1"},
        {HAVE(avx), "AVX"},
        {HAVE(avx2), "AVX2"},
        {HAVE(avx2_vnni), "AVX2_VNNI"},
        {HAVE(avx512_core), "AVX512_CORE"},
        {HAVE(avx512_core_vnni), "AVX512_CORE_VNNI"},
        {HAVE(avx512_core_bf16), "AVX512_CORE_BF16"},
#if DNNL_VERSION_MAJOR >= 3
        {HAVE(avx512_core_fp16), "AVX512_CORE_FP16"},
#endif
        {HAVE(avx512_core_amx), "AVX512_CORE_AMX"},
#endif
    };
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++)
        if (SETS[i].there && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", SETS[i].name);
}

/* oneDNN runs on OpenMP here; the symbol is there exactly when it does. */
static void set_threads(int n)
{
    void (*set)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    memcpy(&set, &symbol, sizeof set);
    if (set)
        set(n);
}

static void close_session(void *of);

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.job = job};
    set_threads(job->setting->threads);
    /* Where dimensions are 1, the library's cache takes a channels-last tensor for a plain one and hands out
     * the other's primitive: wrong results, with versions up to 2.6 at least. */
    dnnl_set_primitive_cache_capacity(0);
    dnnl_status_t status = dnnl_engine_create(&s->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
        close_session(s);
        return library_failed(err, "oneDNN does not start", status);
    }
    *of = s;
    return 0;
}

static void free_buffer(buffer *b)
{
    for (int i = 0; i < b->copies; i++)
        if (b->memory[i])
            dnnl_memory_destroy(b->memory[i]);
    free(b->memory);
    bz_unplace(b->data);
}

/* All but the first n. */
static void drop_alternatives(session *s, int n)
{
    while (s->n_alternatives > n) {
        alternative *a = s->alternatives[--s->n_alternatives];
        for (int k = 0; k <= MAX_STAGES; k++) {
            dnn_impls *impls = k < MAX_STAGES ? &a->stages[k].impls : &a->first.impls;
            dnn_impls_free(impls);
            if (impls->attr)
                dnnl_primitive_attr_destroy(impls->attr);
        }
        free(a);
    }
}

static void close_session(void *of)
{
    session *s = of;
    for (int i = 0; i < s->n_buffers; i++)
        free_buffer(&s->buffers[i]);
    free(s->buffers);
    drop_alternatives(s, 0);
    free(s->alternatives);
    dnn_heap_free(&s->heap);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    free(s);
}

enum { INDEX_STEP = 64 }; /* index: alternative · 64 + implementation */

static void add_variant(session *s, int alternative_index, int impl, const char *layout, const char *math,
                        bz_variant_list *list)
{
    const alternative *a = s->alternatives[alternative_index];
    bz_variant *v = bz_variant_add(list, &bz_backend_onednn, s, layout, math);
    v->index = alternative_index * INDEX_STEP + impl;
    size_t n = 0;
    for (int k = 0; k < a->n_stages && n < sizeof v->algorithm; k++) {
        const char *name = bz_onednn_impl_name(a->stages[k].impls.pd[impl]);
        n += (size_t)snprintf(v->algorithm + n, sizeof v->algorithm - n, "%s%s%s", k ? " + " : a->prefix, name,
                              k == a->n_stages - 1 ? a->suffix : "");
    }
    /* a reorder that is no vector code either, for all pairs of types */
    v->reference = bz_algorithm_is_reference(bz_problem_kind_name(s->job->problem->kind), v->algorithm) ||
                   strstr(v->algorithm, "simple:any");
}

static bool is_complete(const alternative *a)
{
    for (int k = 0; k < a->n_stages; k++)
        if (!a->stages[k].impls.n)
            return false;
    return a->n_stages > 0;
}

/* What the library would take by itself: by its heuristic where it has one, else the first. */
static void mark_chosen(const session *s, int alternative_index, bz_variant_list *list, int first)
{
    const char *favourite = s->n_alternatives > alternative_index ? s->alternatives[alternative_index]->favourite : "";
    for (int i = first; favourite[0] && i < list->n; i++)
        if (!strcmp(list->item[i].algorithm, favourite)) {
            list->item[i].chosen = true;
            return;
        }
    if (list->n > first)
        list->item[first].chosen = true;
}

static int add_variants(session *s, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    int first_alternative = s->n_alternatives, first = list->n;
    if (bz_onednn_lower(s, layout, math, why))
        return -1;
    for (int i = first_alternative; i < s->n_alternatives; i++) {
        const alternative *a = s->alternatives[i];
        if (!is_complete(a))
            continue;
        int n = a->n_stages == 1 ? a->stages[0].impls.n : 1;
        for (int k = 0; k < n; k++)
            add_variant(s, i, k, layout, math, list);
    }
    mark_chosen(s, first_alternative, list, first);
    return 0;
}

/* A program that only infers may ask as training does all the same, and be given another implementation. */
static void mark_chosen_training(session *s, const char *layout, const char *math, bz_variant_list *list, int first)
{
    int alternatives = s->n_alternatives;
    bz_variant_list asked = {0};
    bz_error err;
    s->training = true;
    add_variants(s, layout, math, &asked, &err);
    s->training = false;
    for (int i = 0; i < asked.n; i++)
        for (int k = first; asked.item[i].chosen && k < list->n; k++)
            if (!strcmp(list->item[k].algorithm, asked.item[i].algorithm)) {
                list->item[k].chosen_training = true;
                break;
            }
    free(asked.item);
    drop_alternatives(s, alternatives);
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    int first = list->n;
    if (add_variants(of, layout, math, list, why))
        return -1;
    mark_chosen_training(of, layout, math, list, first);
    return 0;
}

/* Moves values between the plain order of an operand and a buffer's layout, by the library's reorder. */
static dnnl_status_t move(session *s, const argument *a, float *plain, const buffer *b, bool into)
{
    dnn_md plain_md;
    dnn_impls impls = {.engine = s->engine};
    dnnl_memory_t outside = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_status_t status = dnn_md_strided(&s->heap, a->rank, a->dims, dnnl_f32, a->strides, &plain_md);
    if (status == dnnl_success)
        status = dnnl_memory_create(&outside, plain_md, s->engine, plain);
    if (status == dnnl_success)
        status = dnn_reorder(&impls, into ? plain_md : b->md, into ? b->md : plain_md);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&primitive, impls.pd[0]);
    if (status == dnnl_success) {
        dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, into ? outside : b->memory[0]},
                                  {DNNL_ARG_TO, into ? b->memory[0] : outside}};
        status = dnnl_primitive_execute(primitive, s->stream, 2, args);
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(s->stream);
    if (primitive)
        dnnl_primitive_destroy(primitive);
    dnn_impls_free(&impls);
    if (outside)
        dnnl_memory_destroy(outside);
    return status;
}

/* Fills copy 0 of a buffer with the operand's values. */
static dnnl_status_t fill(session *s, const argument *a, buffer *b)
{
    if (a->operand == SCALE) {
        float scale = s->job->problem->kind == BZ_PROBLEM_REORDER ? s->job->problem->reorder.scale
                                                                  : (float)bz_problem_scale(s->job->problem);
        memcpy(b->data, &scale, sizeof scale);
        return dnnl_success;
    }
    const bz_operand *o = &s->job->operand[a->operand];
    const float *values = s->job->value[a->operand];
    if (o->role == BZ_ROLE_KEPT) /* by the forward pass */
        return dnnl_success;
    BZ_FREED float *scaled = NULL;
    if (o->role == BZ_ROLE_BIAS && dnn_bias_is_unscaled() && bz_problem_scale(s->job->problem) != 1) {
        scaled = bz_alloc((size_t)o->count, sizeof *scaled);
        for (int64_t i = 0; i < o->count; i++)
            scaled[i] = values[i] * (float)bz_problem_scale(s->job->problem);
    }
    float *given; /* the library only reads; that its memory objects know no const is a matter of C */
    memcpy(&given, scaled ? (void *)&scaled : (void *)&values, sizeof given);
    return move(s, a, given, b, true);
}

static bool is_result(const session *s, int operand)
{
    return operand >= 0 && s->job->operand[operand].result;
}

static dnnl_status_t make_buffer(session *s, const argument *a, dnn_md md, buffer *b)
{
    int copies = a->operand == SCRATCHPAD || a->operand == SCALE ? 1 : s->job->copies;
    size_t size = dnnl_memory_desc_get_size(md);
    *b = (buffer){.seen = *a, .md = md, .size = size, .step = (size + 127) / 64 * 64};
    b->memory = bz_alloc((size_t)copies, sizeof(dnnl_memory_t));
    memset(b->memory, 0, (size_t)copies * sizeof(dnnl_memory_t));
    if (s->job->placed && (a->operand == SCRATCHPAD || (a->operand >= 0 && !s->job->value[a->operand]))) {
        b->copies = 1;
        return dnnl_memory_create(b->memory, md, s->engine, DNNL_MEMORY_NONE);
    }
    b->data = bz_place(b->step * (size_t)copies, s->n_buffers);
    if (!b->data)
        return dnnl_out_of_memory;
    /* every page is touched now, and not while somebody measures */
    memset(b->data, 0, b->step * (size_t)copies);
    for (; b->copies < copies; b->copies++) {
        char *at = b->data + b->step * (size_t)b->copies;
        dnnl_status_t status = dnnl_memory_create(&b->memory[b->copies], md, s->engine, at);
        if (status != dnnl_success)
            return status;
    }
    if (a->operand == TEMPORARY || a->operand == SCRATCHPAD || is_result(s, a->operand))
        return dnnl_success;
    dnnl_status_t status = fill(s, a, b);
    for (int i = 1; i < copies && status == dnnl_success; i++)
        memcpy(b->data + b->step * (size_t)i, b->data, size);
    return status;
}

/* Whether two arguments are the same tensor seen in the same way. The strides matter: a square matrix and
 * its transpose have equal dimensions. */
static bool is_same(const argument *a, const argument *b)
{
    size_t n = (size_t)a->rank * sizeof *a->dims;
    return a->operand == b->operand && a->rank == b->rank && !memcmp(a->dims, b->dims, n) &&
           !memcmp(a->strides, b->strides, n);
}

/* The buffer for an argument in this layout: an old one or a new one. */
static dnnl_status_t find_buffer(session *s, const argument *a, dnn_md md, int *out)
{
    for (int i = 0; i < s->n_buffers; i++)
        if (is_same(&s->buffers[i].seen, a) && dnnl_memory_desc_equal(s->buffers[i].md, md)) {
            *out = i;
            return dnnl_success;
        }
    buffer made;
    dnnl_status_t status = make_buffer(s, a, md, &made);
    if (status != dnnl_success) {
        free_buffer(&made);
        return status;
    }
    s->buffers = bz_realloc(s->buffers, (size_t)s->n_buffers + 1, sizeof *s->buffers);
    s->buffers[s->n_buffers] = made;
    *out = s->n_buffers++;
    return dnnl_success;
}

/* A temporary that a later stage sees in other dimensions: other memory objects over the bytes of the
 * first. */
static dnnl_status_t view_buffer(session *s, const argument *a, dnn_md md, int *out)
{
    int first = 0;
    dnnl_status_t status = find_buffer(s, a, md, out);
    if (a->operand != TEMPORARY)
        return status;
    while (first < s->n_buffers && s->buffers[first].seen.operand != TEMPORARY)
        first++;
    for (int c = 0; status == dnnl_success && first < *out && c < s->buffers[*out].copies; c++)
        status = dnnl_memory_set_data_handle(s->buffers[*out].memory[c],
                                             s->buffers[first].data + s->buffers[first].step * (size_t)c);
    return status;
}

/* A later stage may write the same result again: then that counts. */
static void keep_result(prepared *p, const argument *a, int at)
{
    int i = 0;
    while (i < p->n_results && p->result[i].seen->operand != a->operand)
        i++;
    p->n_results += i == p->n_results && i < MAX_RESULTS;
    if (i < MAX_RESULTS)
        p->result[i].seen = a, p->result[i].buffer = at;
}

/* A primitive with its arguments, [copies][n]. */
static dnnl_status_t prepare_primitive(bz_variant *v, prepared *p, const stage *st, const_dnnl_primitive_desc_t pd,
                                       dnnl_primitive_t *primitive, dnnl_exec_arg_t **out, int *n_out)
{
    session *s = v->session;
    dnnl_exec_arg_t *args = bz_alloc((size_t)s->job->copies, (MAX_ARGS + 1) * sizeof *args);
    *out = args;
    dnnl_status_t status = dnnl_primitive_create(primitive, pd);
    dnn_md scratch = dnn_md_of(&s->heap, pd, DNNL_ARG_SCRATCHPAD);
    int n = st->n_args + (scratch != NULL);
    const argument scratchpad = {.arg = DNNL_ARG_SCRATCHPAD, .operand = SCRATCHPAD};
    for (int i = 0; i < n && status == dnnl_success; i++) {
        const argument *a = i < st->n_args ? &st->args[i] : &scratchpad;
        dnn_md md = i < st->n_args ? dnn_md_of(&s->heap, pd, a->arg) : scratch;
        int at = 0;
        if (a->operand == SCALE)
            status = dnn_md_strided(&s->heap, 1, a->dims, dnnl_f32, NULL, &md);
        if (status == dnnl_success && !md)
            status = dnnl_unimplemented; /* the implementation does not know an argument that it was given */
        if (status == dnnl_success)
            status = view_buffer(s, a, md, &at);
        if (status != dnnl_success)
            return status;
        for (int c = 0; c < s->job->copies; c++)
            args[c * n + i] = (dnnl_exec_arg_t){a->arg, s->buffers[at].memory[c % s->buffers[at].copies]};
        if (is_result(s, a->operand))
            keep_result(p, a, at);
        if (a->operand == SCRATCHPAD)
            v->workspace += (double)s->buffers[at].size;
    }
    *n_out = n;
    return status;
}

static dnnl_status_t prepare_stage(bz_variant *v, prepared *p, int k)
{
    const alternative *a = p->alternative;
    return prepare_primitive(v, p, &a->stages[k], a->stages[k].impls.pd[a->n_stages == 1 ? v->index % INDEX_STEP : 0],
                             &p->primitive[k], &p->args[k], &p->n_args[k]);
}

/* Runs what comes before the stages, for each copy. In a replay a call of its own has done so. */
static dnnl_status_t run_first(bz_variant *v, prepared *p)
{
    session *s = v->session;
    const stage *first = &p->alternative->first;
    dnnl_primitive_t primitive = NULL;
    BZ_FREED dnnl_exec_arg_t *args = NULL;
    double workspace = v->workspace;
    int n = 0;
    if (!first->n_args || s->job->placed)
        return dnnl_success;
    dnnl_status_t status = prepare_primitive(v, p, first, dnn_hint(&first->impls), &primitive, &args, &n);
    for (int c = 0; c < s->job->copies && status == dnnl_success; c++)
        status = dnnl_primitive_execute(primitive, s->stream, n, args + c * n);
    if (status == dnnl_success)
        status = dnnl_stream_wait(s->stream);
    if (primitive)
        dnnl_primitive_destroy(primitive);
    v->workspace = workspace;
    return status;
}

static void release(bz_variant *v)
{
    prepared *p = v->state;
    for (int k = 0; p && k < MAX_STAGES; k++) {
        if (p->primitive[k])
            dnnl_primitive_destroy(p->primitive[k]);
        free(p->args[k]);
    }
    free(p);
    v->state = NULL;
}

static int prepare(bz_variant *v, bz_error *err)
{
    session *s = v->session;
    prepared *p = bz_alloc(1, sizeof *p);
    memset(p, 0, sizeof *p);
    p->alternative = s->alternatives[v->index / INDEX_STEP];
    v->state = p;
    v->workspace = 0;
    for (int k = 0; k <= p->alternative->n_stages; k++) {
        dnnl_status_t status = k < p->alternative->n_stages ? prepare_stage(v, p, k) : run_first(v, p);
        if (status != dnnl_success) {
            release(v);
            return library_failed(err, v->algorithm, status);
        }
    }
    return 0;
}

/* What the library adds gradients to. */
static int clear_sums(const session *s, const prepared *p, int copy)
{
    for (int i = 0; i < p->n_results; i++) {
        const buffer *b = &s->buffers[p->result[i].buffer];
        bz_role role = s->job->operand[p->result[i].seen->operand].role;
        void *at = NULL;
        if (role != BZ_ROLE_W && role != BZ_ROLE_R && role != BZ_ROLE_BIAS)
            continue;
        if (dnnl_memory_get_data_handle(b->memory[copy % b->copies], &at) != dnnl_success)
            return -1;
        memset(at, 0, b->size);
    }
    return 0;
}

static int execute(bz_variant *v, int copy)
{
    session *s = v->session;
    prepared *p = v->state;
    if (p->alternative->adds && clear_sums(s, p, copy))
        return -1;
    for (int k = 0; k < p->alternative->n_stages; k++)
        if (dnnl_primitive_execute(p->primitive[k], s->stream, p->n_args[k], p->args[k] + copy * p->n_args[k]) !=
            dnnl_success)
            return -1;
    return 0;
}

static int wait(bz_variant *v)
{
    session *s = v->session;
    return dnnl_stream_wait(s->stream) == dnnl_success ? 0 : -1;
}

/* Where the residual is added in place, the result's memory must hold it before. */
static int poison(bz_variant *v)
{
    session *s = v->session;
    prepared *p = v->state;
    for (int i = 0; i < p->n_results; i++) {
        buffer *y = &s->buffers[p->result[i].buffer];
        if (!p->alternative->in_place) {
            memset(y->data, 0xff, y->size); /* not a number, in every floating-point type */
            continue;
        }
        argument residual = *p->result[i].seen;
        residual.operand = bz_onednn_residual(v);
        if (fill(s, &residual, y) != dnnl_success)
            return -1;
    }
    return 0;
}

static int read_operand(bz_variant *v, int operand, float *values, bz_error *err)
{
    session *s = v->session;
    prepared *p = v->state;
    for (int i = 0; i < p->n_results; i++)
        if (p->result[i].seen->operand == operand) {
            dnnl_status_t status = move(s, p->result[i].seen, values, &s->buffers[p->result[i].buffer], false);
            return status == dnnl_success ? 0 : library_failed(err, "reorder", status);
        }
    return bz_fail(err, BZ_FAILED, "oneDNN does not give this result");
}

static int read_result(bz_variant *v, float *values, bz_error *err)
{
    const session *s = v->session;
    return read_operand(v, s->job->n_operands - 1, values, err);
}

const bz_backend bz_backend_onednn = {
    .name = "onednn",
    .timing = "wall",
    .smallest = "activation fn=relu x=1x1 dtype=f32",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .wait = wait,
    .poison = poison,
    .read = read_result,
    .read_operand = read_operand,
    .release = release,
    .close = close_session,
    .wants = bz_onednn_wants,
    .bind = bz_onednn_bind,
    .residual = bz_onednn_residual,
    .same = bz_onednn_same,
    .converter = bz_onednn_converter,
    .convert = bz_onednn_convert,
    .converter_free = bz_onednn_converter_free,
};
