/* The backend that moves bytes by the CUDA runtime: sessions, memory, timing. */
#include "runtime/cudart/cudart.h"

#include "base/arena.h"
#include "base/progress.h"
#include "runtime/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern __attribute__((visibility("default"))) const bz_backend bz_backend_module;

/* PTX, so that the driver makes it for whatever device there is. Each thread takes every so many pages, or 16 bytes. */
#define PTX_THREAD                                                                                                     \
    "  .reg .u32 %a, %b, %c, %d;\n"                                                                                    \
    "  .reg .u64 %i, %n, %step, %at, %to;\n"                                                                           \
    "  .reg .pred %p;\n"                                                                                               \
    "  mov.u32 %a, %ctaid.x;\n"                                                                                        \
    "  mov.u32 %b, %ntid.x;\n"                                                                                         \
    "  mov.u32 %c, %tid.x;\n"                                                                                          \
    "  mad.lo.u32 %d, %a, %b, %c;\n"                                                                                   \
    "  cvt.u64.u32 %i, %d;\n"                                                                                          \
    "  mov.u32 %a, %nctaid.x;\n"                                                                                       \
    "  mul.lo.u32 %d, %a, %b;\n"                                                                                       \
    "  cvt.u64.u32 %step, %d;\n"
static const char KERNELS[] = ".version 6.0\n"
                              ".target sm_50\n"
                              ".address_size 64\n"
                              ".visible .entry bz_touch(.param .u64 memory, .param .u64 count, .param .u64 apart)\n"
                              "{\n"
                              "  .reg .u64 %base, %apart;\n"
                              "  .reg .u32 %one;\n" PTX_THREAD "  ld.param.u64 %base, [memory];\n"
                              "  ld.param.u64 %n, [count];\n"
                              "  ld.param.u64 %apart, [apart];\n"
                              "  mov.u32 %one, 1;\n"
                              "again:\n"
                              "  setp.ge.u64 %p, %i, %n;\n"
                              "  @%p bra done;\n"
                              "  mad.lo.u64 %at, %i, %apart, %base;\n"
                              "  st.global.u8 [%at], %one;\n"
                              "  add.u64 %i, %i, %step;\n"
                              "  bra again;\n"
                              "done:\n"
                              "  ret;\n"
                              "}\n"
                              ".visible .entry bz_copy(.param .u64 out, .param .u64 in, .param .u64 count)\n"
                              "{\n"
                              "  .reg .u64 %from, %into, %off;\n"
                              "  .reg .u32 %v<4>;\n" PTX_THREAD "  ld.param.u64 %into, [out];\n"
                              "  ld.param.u64 %from, [in];\n"
                              "  ld.param.u64 %n, [count];\n"
                              "again:\n"
                              "  setp.ge.u64 %p, %i, %n;\n"
                              "  @%p bra done;\n"
                              "  shl.b64 %off, %i, 4;\n"
                              "  add.u64 %at, %from, %off;\n"
                              "  add.u64 %to, %into, %off;\n"
                              "  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%at];\n"
                              "  st.global.v4.u32 [%to], {%v0, %v1, %v2, %v3};\n"
                              "  add.u64 %i, %i, %step;\n"
                              "  bra again;\n"
                              "done:\n"
                              "  ret;\n"
                              "}\n";

typedef struct session {
    bz_cuda cuda; /* stands first, as bz_cuda_state wants it */
    const bz_job *job;
    cudaLibrary_t library;
    cudaKernel_t touch, copy;
} session;

static void version(bz_buf *out)
{
    bz_buf_printf(out, "cudart%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

static void close_session(void *of)
{
    session *s = of;
    if (s->library)
        cudaLibraryUnload(s->library);
    bz_cuda_close(&s->cuda);
    free(s);
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    if (job->problem->kind != BZ_PROBLEM_TRANSFER || job->problem->transfer.way < BZ_TRANSFER_TO_DEVICE)
        return bz_fail(err, BZ_INCOMPLETE, "cudart moves bytes between host and device, and computes nothing");
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.job = job};
    if (bz_cuda_open(&s->cuda, job->setting, err)) {
        free(s);
        return -1;
    }
    cudaError_t status = cudaLibraryLoadData(&s->library, KERNELS, NULL, NULL, 0, NULL, NULL, 0);
    status = status ? status : cudaLibraryGetKernel(&s->touch, s->library, "bz_touch");
    status = status ? status : cudaLibraryGetKernel(&s->copy, s->library, "bz_copy");
    if (status != cudaSuccess) {
        bz_cuda_failed(err, "loading kernels", status);
        close_session(s);
        return -1;
    }
    *of = s;
    return 0;
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    const session *s = of;
    int before = list->n;
    if (strcmp(layout, "plain") != 0 || strcmp(math, "default") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "bytes have no layout and no math mode");
    for (int i = 0; move_rows[i].name; i++) {
        if (move_rows[i].way != s->job->problem->transfer.way)
            continue;
        bz_variant *v = bz_variant_add(list, &bz_backend_module, of, "plain", "default");
        v->index = i;
        v->chosen = list->n == before + 1;
        snprintf(v->algorithm, sizeof v->algorithm, "%s", move_rows[i].name);
    }
    return 0;
}

int move_get(move_place place, size_t size, char **out, bz_error *err)
{
    void *at = NULL;
    cudaError_t status = cudaSuccess;
    *out = NULL;
    if (place == PLACE_HOST || place == PLACE_REGISTERED) {
        at = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
        if (at)
            memset(at, 0, size); /* its pages are there */
        status = !at                   ? cudaErrorMemoryAllocation
                 : place == PLACE_HOST ? cudaSuccess
                                       : cudaHostRegister(at, size, cudaHostRegisterMapped);
    } else if (place == PLACE_PINNED || place == PLACE_COMBINED)
        status =
            cudaHostAlloc(&at, size, cudaHostAllocMapped | (place == PLACE_COMBINED ? cudaHostAllocWriteCombined : 0U));
    else if (place == PLACE_DEVICE)
        status = cudaMalloc(&at, size);
    else if (place == PLACE_MANAGED)
        status = cudaMallocManaged(&at, size, cudaMemAttachGlobal);
    if (status != cudaSuccess) {
        if (place == PLACE_HOST || place == PLACE_REGISTERED)
            free(at);
        return bz_cuda_failed(err, "asking for memory", status);
    }
    *out = at;
    return 0;
}

void move_put(move_place place, char *memory)
{
    if (!memory)
        return;
    if (place == PLACE_REGISTERED)
        cudaHostUnregister(memory);
    if (place == PLACE_HOST || place == PLACE_REGISTERED)
        free(memory);
    else if (place == PLACE_PINNED || place == PLACE_COMBINED)
        cudaFreeHost(memory);
    else
        cudaFree(memory);
}

static int fill_x(move *m, bz_error *err)
{
    BZ_FREED char *plain = bz_alloc(m->size, 1);
    bz_values_encode(BZ_U8, m->job->value[0], plain, (int64_t)m->size);
    cudaError_t status = cudaMemcpy(m->x, plain, m->size, cudaMemcpyDefault);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "filling x", status);
}

static int run_call(void *context)
{
    move *m = context;
    return m->row->call(m) == cudaSuccess ? 0 : -1;
}

static void release(bz_variant *v)
{
    move *m = v->state;
    if (!m)
        return;
    cudaStreamSynchronize(m->run.cuda->stream);
    if (m->row->close)
        m->row->close(m);
    move_put(m->row->from, m->x);
    move_put(m->row->to, m->y);
    free(m);
    v->state = NULL;
}

static int begin(bz_variant *v, bz_error *err)
{
    session *s = v->session;
    const bz_operand *y = &s->job->operand[s->job->n_operands - 1];
    move *m = bz_alloc(1, sizeof *m);
    *m = (move){.run = {.cuda = &s->cuda, .call = run_call},
                .row = &move_rows[v->index],
                .job = s->job,
                .touch = s->touch,
                .copy = s->copy,
                .size = (size_t)s->job->problem->transfer.x[0],
                .y_size = (size_t)y->count};
    v->state = m;
    if (move_get(m->row->from, m->size, &m->x, err) ||
        move_get(m->row->to, m->row->to == PLACE_MANAGED ? m->size : m->y_size, &m->y, err) ||
        (m->x && fill_x(m, err)) || (m->row->open && m->row->open(m, err)))
        return -1;
    if (m->row->reset && m->row->reset(m) != cudaSuccess)
        return bz_fail(err, BZ_FAILED, "the first call could not be prepared");
    cudaError_t status = m->row->call(m);
    if (status != cudaSuccess)
        return bz_cuda_failed(err, "the first call", status);
    v->timing = m->row->timed == TIMED_BY_DEVICE ? bz_cuda_timing(&s->cuda, &m->run.pace) : "wall";
    return bz_cuda_wait(&s->cuda);
}

static int prepare(bz_variant *v, bz_error *err)
{
    int rc = begin(v, err);
    if (rc)
        release(v);
    return rc;
}

static int execute(bz_variant *v, int copy)
{
    move *m = v->state;
    (void)copy;
    return (m->row->reset && m->row->reset(m) != cudaSuccess) || run_call(m) ? -1 : 0;
}

static int wait_for(bz_variant *v)
{
    const move *m = v->state;
    return bz_cuda_wait(m->run.cuda);
}

/* So many calls fit into the queue: none of them waits for room. */
enum { QUEUED = 64 };

/* By the wall clock. */
static int measure_wall(move *m, int64_t n, double *seconds)
{
    *seconds = 0;
    while (n) {
        int64_t some = m->row->timed == TIMED_CALL && n > QUEUED ? QUEUED : m->row->timed == TIMED_CALL ? n : 1;
        if (m->row->reset && m->row->reset(m) != cudaSuccess)
            return -1;
        double from = bz_now();
        int bad = 0;
        for (int64_t i = 0; i < some && !bad; i++)
            bad = run_call(m);
        double until = bz_now();
        if (bad || bz_cuda_wait(m->run.cuda))
            return -1;
        *seconds += (m->row->timed == TIMED_CALL ? until : bz_now()) - from;
        n -= some;
    }
    return 0;
}

static int measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    move *m = v->state;
    (void)first_copy;
    if (m->row->timed != TIMED_BY_DEVICE)
        return measure_wall(m, n, seconds);
    int rc = bz_cuda_measure(m->run.cuda, &m->run.pace, run_call, m, n, seconds);
    v->timing = bz_cuda_timing(m->run.cuda, &m->run.pace);
    return rc;
}

static int poison(bz_variant *v)
{
    const move *m = v->state;
    bool host = m->row->to != PLACE_DEVICE;
    if (host)
        memset(m->y, 0xff, m->y_size);
    return host || cudaMemset(m->y, 0xff, m->y_size) == cudaSuccess ? 0 : -1;
}

static int read_result(bz_variant *v, float *values, bz_error *err)
{
    const move *m = v->state;
    BZ_FREED char *plain = bz_alloc(m->y_size, 1);
    cudaError_t status = cudaMemcpy(plain, m->y, m->y_size, cudaMemcpyDefault);
    bz_values_decode(BZ_U8, plain, values, (int64_t)m->y_size);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "reading the result", status);
}

const bz_backend bz_backend_module = {
    .name = "cudart",
    .timing = "device",
    .smallest = "transfer way=launch x=1 dtype=u8",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .wait = wait_for,
    .measure = measure,
    .clock = bz_cuda_state,
    .device = bz_cuda_identify,
    .rates = bz_cuda_rates,
    .lock = bz_cuda_lock,
    .poison = poison,
    .read = read_result,
    .release = release,
    .close = close_session,
};
