/* A random recording of two devices and its rows as they were made, for tests that compute once more what the product says of it. */
#ifndef RANDOM_RECORDING_H
#define RANDOM_RECORDING_H

#include "chance.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* All times are whole ticks: limits of 30, 50 and 100 µs are met exactly. */
enum { TICK = 10000, WORKS = 150, OPS = 80, LAUNCHES = 200, STREAMS = 4, STEPS = 5, END = 4096 };

typedef struct span {
    int64_t start, end; /* ticks */
    const char *name;
    int parent;       /* op: the op around it; launch: the op that it is in; -1: none */
    const char *call; /* launch: the library call around it; NULL: none */
} span;

typedef struct work_item {
    span at;
    bz_event_kind kind;
    int stream, launch; /* -1: its launch is not on record */
    int64_t bytes;
    unsigned direction;
    int occupancy; /* percent; -1: not told */
} work_item;

static struct {
    work_item work[WORKS];
    span op[OPS], launch[LAUNCHES], step[STEPS];
    int64_t allocated[OPS]; /* in the op, by a mark at its start */
    int works, ops, launches;
    bz_trace *trace;
    int64_t from, to; /* ticks: only what was asked for between these counts, all at first */
} r;

static const struct {
    const char *name, *group;
    char class; /* 'p' computes, 'c' communicates, 'm' moves */
} KERNELS[] = {{"volta_sgemm_128x64_nn", "matrix product", 'p'},
               {"ncclKernel_AllReduce_RING", "communication", 'c'},
               {"Memcpy2D_own", "copy, concat, fill", 'm'},
               {"my_kernel", "other", 'p'}};
static const char *const OP_NAMES[] = {"aten::mm", "aten::add", "aten::relu", "Block"};
static const char *const LAUNCH_NAMES[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch",
                                           "cudaStreamSynchronize"};
static const char *const CALL_NAMES[] = {NULL, "cudnnConvolutionForward", "cublasSgemm_v2"};
static const struct {
    int64_t device;
    int stream;
    const char *row;
} STREAM[STREAMS] = {{0, 7, "0|7"}, {0, 13, "0|13"}, {1, 7, "1|7"}, {1, 20, "1|20"}};

/* Of the products, aten::mm, in turns. */
static const char *const SHAPES[] = {"inputs=[[8,16],[16,4]] types=[float,float]",
                                     "inputs=[[1024,1024],[1024,1024]] types=[float,float]"};

/* Operators and launches within, one behind the other; returns when they end. */
static inline int64_t make_op(int64_t at, int parent, int depth)
{
    int me = r.ops++;
    r.op[me] = (span){at, 0, OP_NAMES[chance(depth ? 3 : 4)], parent, NULL};
    r.allocated[me] = chance(3) ? 0 : 512 * (1 + (int64_t)chance(9));
    at += 1 + chance(2);
    for (unsigned n = chance(4); n--;)
        if (depth < 3 && chance(2) && r.ops < OPS - STEPS * 4) {
            at = make_op(at, me, depth + 1) + 1 + chance(2);
        } else if (r.launches < LAUNCHES) {
            int64_t end = at + chance(8);
            unsigned sort = chance(8);
            r.launch[r.launches++] =
                (span){at, end, LAUNCH_NAMES[sort > 1 ? sort % 2 : 2 + sort], me, CALL_NAMES[end > at ? chance(3) : 0]};
            at = end + 1;
        }
    r.op[me].end = at + 1 + chance(3);
    return r.op[me].end;
}

/* Work on streams, in the order of its launches. */
static inline void make_work(void)
{
    int64_t free_at[STREAMS] = {0};
    for (int i = 0; i < r.launches && r.works < WORKS; i++) {
        if (r.launch[i].name == LAUNCH_NAMES[3]) /* waits, and launches nothing */
            continue;
        work_item *w = &r.work[r.works++];
        *w = (work_item){.stream = (int)chance(STREAMS), .launch = chance(9) ? i : -1, .occupancy = -1};
        int64_t *at = &free_at[w->stream], asked = r.launch[i].start + 1 + chance(20);
        *at = asked > *at ? asked : *at + chance(5);
        w->at.start = *at;
        w->at.end = *at + 1 + chance(chance(3) ? 6 : 40);
        *at = w->at.end - (chance(12) == 0); /* streams of graphs may overlap */
        unsigned kind = chance(8), name = chance(4);
        w->kind = kind < 5 ? BZ_EVENT_KERNEL : kind < 7 ? BZ_EVENT_COPY : BZ_EVENT_MEMSET;
        w->bytes = w->kind == BZ_EVENT_KERNEL || !chance(6) ? 0 : 1000 * (1 + (int64_t)chance(50));
        w->direction = 1 + chance(2);
        w->at.name = w->kind == BZ_EVENT_KERNEL   ? KERNELS[name].name
                     : w->kind == BZ_EVENT_MEMSET ? "Memset (Device)"
                     : w->direction == 1          ? "Memcpy HtoD (Pageable -> Device)"
                                                  : "Memcpy DtoH (Device -> Pageable)";
        w->occupancy = w->kind == BZ_EVENT_KERNEL && strcmp(w->at.name, "my_kernel") != 0 ? (int)chance(101) : -1;
    }
}

static inline const char *direction_of(const work_item *w)
{
    return w->kind == BZ_EVENT_MEMSET ? "fill" : w->direction == 1 ? "host to device" : "device to host";
}

static inline void make_trace(void)
{
    bz_error err;
    bz_trace *t = r.trace = bz_trace_new();
    bz_trace_fact(t, "gpu", "Tesla V100-SXM2-16GB");
    uint32_t source = bz_trace_source(t, "made-up.json", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int i = 0; i < STEPS; i++)
        bz_trace_add(t, BZ_EVENT_RANGE, r.step[i].start * TICK, r.step[i].end * TICK, bz_trace_text(t, "step"), host);
    for (int i = 0; i < r.ops; i++) {
        size_t e = bz_trace_add(t, BZ_EVENT_OP, r.op[i].start * TICK, r.op[i].end * TICK,
                                bz_trace_text(t, r.op[i].name), host);
        if (!strcmp(r.op[i].name, "aten::mm"))
            t->event[BZ_EVENT_OP].detail[e] = bz_trace_text(t, SHAPES[i % 2]);
        if (r.allocated[i])
            bz_trace_memory(t, r.op[i].start * TICK, r.allocated[i], 0, host);
    }
    for (int i = 0; i < r.launches; i++) {
        size_t e = bz_trace_add(t, BZ_EVENT_API, r.launch[i].start * TICK, r.launch[i].end * TICK,
                                bz_trace_text(t, r.launch[i].name), host);
        t->event[BZ_EVENT_API].correlation[e] = (uint32_t)i + 1;
        if (!r.launch[i].call)
            continue;
        e = bz_trace_add(t, BZ_EVENT_CALL, r.launch[i].start * TICK, r.launch[i].end * TICK,
                         bz_trace_text(t, r.launch[i].call), host);
        t->event[BZ_EVENT_CALL].flags[e] = i % 5 ? BZ_CALL_EXECUTES : BZ_CALL_EXECUTES | BZ_CALL_UNTIMED;
    }
    for (int i = 0; i < r.works; i++) {
        const work_item *w = &r.work[i];
        uint32_t lane = bz_trace_stream(t, source, 1, STREAM[w->stream].device, 1, STREAM[w->stream].stream);
        bz_events *e = &t->event[w->kind];
        size_t at = bz_trace_add(t, w->kind, w->at.start * TICK, w->at.end * TICK, bz_trace_text(t, w->at.name), lane);
        e->correlation[at] = w->launch < 0 ? 0 : (uint32_t)w->launch + 1;
        if (w->kind == BZ_EVENT_KERNEL) {
            e->occupancy[at] = (uint32_t)(w->occupancy + 1);
            continue;
        }
        e->bytes[at] = w->bytes;
        if (w->kind == BZ_EVENT_COPY)
            e->value[at] = w->direction;
    }
    assert_int_equal(bz_trace_finish(t, &(bz_finish_options){.iterations = "step"}, &err), 0);
    assert_in_range(t->n_iterations, STEPS - 1, STEPS); /* the last one may be cut off */
}

static inline void make_recording(void)
{
    int64_t at = 5;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < STEPS; i++) {
        r.step[i] = (span){.start = at, .parent = -1};
        for (int n = 0; n < 3; n++)
            at = make_op(at + 1 + chance(3), -1, 0);
        r.step[i].end = at + 1 + chance(9);
        at = r.step[i].end + 3;
    }
    make_work();
    make_trace();
    r.from = INT64_MIN;
    r.to = INT64_MAX;
}

static inline int64_t asked(const work_item *w)
{
    return w->launch < 0 ? w->at.start : r.launch[w->launch].start;
}

static inline bool within(int64_t asked_at)
{
    return asked_at >= r.from && asked_at <= r.to;
}

/* By start; of those that start at one moment kernels first, copies next, and of one kind the longest. */
static inline int by_start(const void *a, const void *b)
{
    const work_item *p = &r.work[*(const int *)a], *q = &r.work[*(const int *)b];
    int64_t order = p->at.start != q->at.start ? p->at.start - q->at.start
                    : p->kind != q->kind       ? (int64_t)p->kind - (int64_t)q->kind
                    : p->at.end != q->at.end   ? q->at.end - p->at.end
                                               : p - q;
    return order < 0 ? -1 : order > 0;
}

/* Work that the tables see, of that stream (-1: of all), in its order. */
static inline int works_of(int stream, int *list)
{
    int n = 0;
    for (int i = 0; i < r.works; i++)
        if (within(asked(&r.work[i])) && (stream < 0 || r.work[i].stream == stream))
            list[n++] = i;
    qsort(list, (size_t)n, sizeof *list, by_start);
    return n;
}

static inline char class_of(const work_item *w)
{
    for (size_t k = 0; w->kind == BZ_EVENT_KERNEL && k < 4; k++)
        if (!strcmp(KERNELS[k].name, w->at.name))
            return KERNELS[k].class;
    return 'm';
}

static inline double seconds(int64_t ticks)
{
    return (double)ticks * TICK / 1e9;
}

static inline bool lies_in(int op, int around)
{
    while (op >= 0 && op != around)
        op = r.op[op].parent;
    return op >= 0;
}

/* The operator that asked for work; -1: none on record. */
static inline int op_of(const work_item *w)
{
    return w->launch < 0 ? -1 : r.launch[w->launch].parent;
}

static inline bool in_iteration(int64_t at, uint32_t i)
{
    return at * TICK >= r.trace->iteration[i].start && at * TICK < r.trace->iteration[i].end;
}

static inline void put_event(FILE *f, const char *category, const char *name, const char *lane, int64_t start,
                             int64_t end)
{
    fprintf(f, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",%s,\"ts\":%lld,\"dur\":%lld,\"args\":{", category, name,
            lane, (long long)start * TICK / 1000, (long long)(end - start) * TICK / 1000);
}

/* As PyTorch's profiler writes it, which knows no library calls: they are left out of the recording. */
static inline void read_as_pytorch(const char *path)
{
    static const char *const HOST = "\"pid\":1,\"tid\":1";
    char lane[64];
    bz_error err;
    FILE *f = fopen(path, "w");
    fprintf(
        f,
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"Tesla V100-SXM2-16GB\"}],\"traceEvents\":[{}");
    for (int i = 0; i < STEPS; i++) {
        put_event(f, "user_annotation", "step", HOST, r.step[i].start, r.step[i].end);
        fprintf(f, "}}");
    }
    for (int i = 0; i < r.ops; i++) {
        put_event(f, "cpu_op", r.op[i].name, HOST, r.op[i].start, r.op[i].end);
        if (!strcmp(r.op[i].name, "aten::mm"))
            fprintf(f, "\"Input Dims\":%s,\"Input type\":[\"float\",\"float\"]",
                    i % 2 ? "[[1024,1024],[1024,1024]]" : "[[8,16],[16,4]]");
        fprintf(f, "}}");
        if (r.allocated[i])
            fprintf(f,
                    ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",%s,\"ts\":%lld,"
                    "\"args\":{\"Bytes\":%lld}}",
                    HOST, (long long)r.op[i].start * TICK / 1000, (long long)r.allocated[i]);
    }
    for (int i = 0; i < r.launches; i++) {
        put_event(f, "cuda_runtime", r.launch[i].name, HOST, r.launch[i].start, r.launch[i].end);
        fprintf(f, "\"correlation\":%d}}", i + 1);
        r.launch[i].call = NULL;
    }
    for (int i = 0; i < r.works; i++) {
        const work_item *w = &r.work[i];
        snprintf(lane, sizeof lane, "\"pid\":%lld,\"tid\":%d", (long long)STREAM[w->stream].device,
                 STREAM[w->stream].stream);
        put_event(f,
                  w->kind == BZ_EVENT_KERNEL ? "kernel"
                  : w->kind == BZ_EVENT_COPY ? "gpu_memcpy"
                                             : "gpu_memset",
                  w->at.name, lane, w->at.start, w->at.end);
        fprintf(f, "\"device\":%lld,\"context\":1,\"stream\":%d", (long long)STREAM[w->stream].device,
                STREAM[w->stream].stream);
        if (w->launch >= 0)
            fprintf(f, ",\"correlation\":%d", w->launch + 1);
        if (w->kind != BZ_EVENT_KERNEL)
            fprintf(f, ",\"bytes\":%lld", (long long)w->bytes);
        if (w->occupancy >= 0)
            fprintf(f, ",\"est. achieved occupancy %%\":%d", w->occupancy);
        fprintf(f, "}}");
    }
    fprintf(f, "]}");
    assert_int_equal(fclose(f), 0);
    bz_trace_free(r.trace);
    r.trace = bz_trace_new();
    assert_int_equal(bz_profile_read(r.trace, path, &err), 0);
    assert_int_equal(bz_trace_finish(r.trace, &(bz_finish_options){.iterations = "step"}, &err), 0);
}

#endif
