/* Recordings of programs that chance wrote: steps of layers, for a processor or a device, in training or not, some with tokens, turns, pauses, copies,
 * waits, and with what differs now and then. */
#ifndef BZ_GENERATED_PROGRAM_H
#define BZ_GENERATED_PROGRAM_H

#include "base/base.h"

#include <stdio.h>

#include "chance.h"

enum { MOST_LAYERS = 12, BODY = 8 };

typedef struct program {
    bz_buf text;
    int64_t now, busy; /* of the host and the device, µs */
    int correlation;
    bool device, shapes, spread; /* spread: durations differ */
} program;

static const char *const PROGRAM_OPS[] = {"aten::conv2d",  "aten::batch_norm", "aten::relu_",   "aten::addmm",
                                          "aten::linear",  "aten::layer_norm", "aten::softmax", "aten::add",
                                          "aten::mul",     "aten::max_pool2d", "aten::matmul",  "aten::gelu",
                                          "aten::dropout", "aten::view_as",    "my::own"};
static const char *const PROGRAM_KERNELS[] = {"volta_scudnn_128x64_relu_interior_nn_v1",
                                              "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float>",
                                              "void at::native::vectorized_elementwise_kernel<4, relu>",
                                              "volta_sgemm_128x64_nn",
                                              "ampere_fp16_s16816gemm_fp16_128x64",
                                              "void layer_norm_kernel<float>",
                                              "void softmax_warp_forward<float, float>",
                                              "void at::native::elementwise_kernel<add>"};
enum { N_OPS = sizeof PROGRAM_OPS / sizeof *PROGRAM_OPS, N_KERNELS = sizeof PROGRAM_KERNELS / sizeof *PROGRAM_KERNELS };

static inline void put_event(program *p, const char *cat, const char *name, int64_t at, int64_t for_, int lane,
                             const char *args)
{
    bz_buf_printf(
        &p->text,
        ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%lld,\"dur\":%lld,\"args\":{%s}}",
        cat, name, lane < 7 ? 100 : 0, lane, (long long)at, (long long)for_, args);
}

static inline int64_t lasts(program *p, int64_t usual)
{
    return usual + (p->spread ? (int64_t)chance(3) : 0);
}

static inline void put_launch(program *p, const char *api, const char *cat, const char *name, int64_t usual,
                              const char *more)
{
    char args[200];
    snprintf(args, sizeof args, "\"correlation\":%d", ++p->correlation);
    put_event(p, "cuda_runtime", api, p->now, 2, 1, args);
    p->busy = p->busy > p->now + 4 ? p->busy + (int64_t)chance(2) : p->now + 4;
    snprintf(args, sizeof args, "\"stream\":7,\"device\":0,\"correlation\":%d%s", p->correlation, more);
    int64_t duration = lasts(p, usual);
    put_event(p, cat, name, p->busy, duration, 7, args);
    p->busy += duration;
    p->now += 3;
}

/* An operator; by its number it always looks alike. */
static inline void put_op(program *p, int which, int size)
{
    char args[200] = "";
    if (p->shapes)
        snprintf(args, sizeof args, "\"Input Dims\":[[%d,%d],[%d,%d]],\"Input type\":[\"float\",\"float\"]", size,
                 8 + which, 8 + which, 16);
    int64_t from = p->now++;
    bz_buf inner = p->text;
    p->text = (bz_buf){0};
    if (p->device)
        put_launch(p, "cudaLaunchKernel", "kernel", PROGRAM_KERNELS[which % N_KERNELS], 5 + which,
                   ",\"grid\":[2,1,1],\"block\":[64,1,1]");
    else
        p->now += lasts(p, 6 + which);
    bz_buf within = p->text;
    p->text = inner;
    put_event(p, "cpu_op", PROGRAM_OPS[which % N_OPS], from, p->now - from, 1, args);
    bz_buf_put(&p->text, bz_buf_text(&within), within.len);
    bz_buf_free(&within);
    p->now += 1;
}

static inline void put_named(program *p, const char *cat, const char *name, int64_t duration)
{
    put_event(p, cat, name, p->now, duration, 1, "");
    p->now += duration + 1;
}

static inline void put_copy(program *p, bool back)
{
    if (p->device)
        put_launch(p, "cudaMemcpyAsync", "gpu_memcpy",
                   back ? "Memcpy DtoH (Device -> Pageable)" : "Memcpy HtoD (Pageable -> Device)", 3,
                   ",\"bytes\":4096");
    else
        put_named(p, "cpu_op", back ? "aten::item" : "aten::copy_", 2);
}

/* What a program is made of. */
typedef struct plan {
    int body[BODY], n_body, layers, steps, parts; /* parts: pieces of a step, as tokens of an answer */
    bool trains, copies, waits, marks, embeds, odd, turns;
    int64_t pause;
} plan;

static inline void put_step(program *p, const plan *l, int step)
{
    int64_t from = p->now;
    if (l->copies)
        put_copy(p, false);
    for (int part = 0; part < l->parts; part++) {
        int size = l->parts > 1 && part == 0 ? 32 : 4;
        if (l->embeds)
            put_named(p, "cpu_op", "aten::embedding", 4);
        for (int layer = 0; layer < l->layers; layer++)
            for (int i = 0; i < l->n_body; i++)
                if (!(l->odd && step == 2 && layer == 1 && i == 0) && !(l->turns && layer % 3 == 2 && i == 1))
                    put_op(p, l->body[i], size);
        put_op(p, 3, size);
        if (l->waits && p->device)
            put_event(p, "cuda_runtime", "cudaStreamSynchronize", p->now, p->busy > p->now ? p->busy - p->now : 1, 1,
                      "");
        p->now = l->waits && p->device && p->busy > p->now ? p->busy + 1 : p->now + 1;
        if (l->parts > 1)
            put_copy(p, true);
    }
    if (l->trains) {
        put_named(p, "cpu_op", "aten::cross_entropy_loss", 3);
        for (int layer = 0; layer < l->layers; layer++)
            for (int i = l->n_body; i--;) {
                put_named(p, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 1);
                put_op(p, l->body[i] + 1, 4);
            }
        int64_t update = p->now;
        for (int i = 0; i < 3; i++)
            put_op(p, 7, 4);
        put_event(p, "user_annotation", "Optimizer.step#SGD.step", update, p->now - update, 1, "");
        p->now += 2;
    }
    if (l->copies && !l->trains)
        put_copy(p, true);
    if (l->marks) {
        char name[40];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        put_event(p, "user_annotation", name, from, p->now - from, 1, "");
    }
    p->now += 1 + l->pause * (1 + step % 2);
}

/* A Chrome trace, always the same of a number. */
static inline void write_program(unsigned number, bz_buf *out)
{
    program p = {0};
    chance_state = number + 1;
    plan l = {.parts = 1};
    p.device = chance(2); /* one after the other: initializers have no order */
    p.shapes = chance(2);
    p.spread = chance(2);
    l.n_body = 2 + (int)chance(BODY - 1);
    l.layers = 1 + (int)chance(MOST_LAYERS);
    l.steps = 1 + (int)chance(7);
    if (chance(3) == 0)
        l.parts = 2 + (int)chance(5);
    l.trains = chance(3) == 0;
    l.copies = chance(2);
    l.waits = chance(2);
    l.marks = chance(4) == 0;
    l.embeds = chance(3) == 0;
    l.odd = chance(3) == 0;
    l.turns = chance(4) == 0;
    if (chance(2))
        l.pause = (int64_t)chance(200);
    for (int i = 0; i < l.n_body; i++)
        l.body[i] = (int)chance(N_OPS);
    bz_buf_puts(&p.text, "{\"schemaVersion\":1,\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,"
                         "\"args\":{\"name\":\"python\"}}");
    for (int i = (int)chance(6); i-- > 0;)
        put_op(&p, (int)chance(N_OPS), 4); /* what stands in front of the first */
    for (int step = 0; step < l.steps; step++)
        put_step(&p, &l, step);
    for (int i = (int)chance(4); i-- > 0;)
        put_op(&p, l.body[i % l.n_body], 4); /* one that was cut off */
    bz_buf_puts(&p.text, "\n]}\n");
    *out = p.text;
}

#endif
