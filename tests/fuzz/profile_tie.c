/* A timeline of launches beside logs of calls, made up from the input: four bytes per event. Whatever comes, no call may
 * be lost, and a kernel's call must be of its thread and around its launch. */
#include "profile/profile.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static const char *const KERNELS[] = {"void cudnn::detail::pooling_fw_4d_kernel<float>(int)",
                                      "volta_sgemm_32x32_sliced1x4_nn",
                                      "void splitKreduce_kernel<float>(int)",
                                      "void at::native::elementwise(int)",
                                      "my_own_kernel",
                                      "volta_scudnn_128x64_relu_interior_nn_v1"};
static const char *const CUDNN[] = {"cudnnConvolutionForward", "cudnnPoolingForward", "cudnnSetTensor4dDescriptor"};
static const char *const CUBLAS[] = {"cublasSgemm_v2", "cublasSetStream_v2"};

static void add_call(bz_trace *t, bz_library library, int64_t at, const char *name, uint32_t lane, bool executes)
{
    bz_events *call = &t->event[BZ_EVENT_CALL];
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, at, at, bz_trace_text(t, name), lane);
    call->library[i] = library;
    call->flags[i] = BZ_CALL_LOGGED | BZ_CALL_UNTIMED | (executes ? BZ_CALL_EXECUTES : 0u);
}

static void add_launch(bz_trace *t, int64_t at, const char *name, uint32_t thread, uint32_t stream, uint32_t number)
{
    size_t i = bz_trace_add(t, BZ_EVENT_API, at, at + 900, bz_trace_text(t, "cudaLaunchKernel"), thread);
    t->event[BZ_EVENT_API].correlation[i] = number;
    i = bz_trace_add(t, BZ_EVENT_KERNEL, at + 1000, at + 2000, bz_trace_text(t, name), stream);
    t->event[BZ_EVENT_KERNEL].correlation[i] = number;
}

static void check(const bz_trace *t, size_t calls)
{
    const bz_events *call = &t->event[BZ_EVENT_CALL], *api = &t->event[BZ_EVENT_API], *k = &t->event[BZ_EVENT_KERNEL];
    if (call->n != calls)
        abort();
    for (size_t i = 0; i < k->n; i++) {
        uint32_t c = k->call[i], a = k->cause[i];
        SAW(&c, sizeof c);
        if (c == BZ_NONE)
            continue;
        if (a == BZ_NONE || call->lane[c] != api->lane[a] || call->start[c] > api->start[a] ||
            call->end[c] + 1000 < api->end[a])
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 14 };
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t timeline = bz_trace_source(t, "a", "capture"), cudnn = bz_trace_source(t, "b", "cuDNN log"),
             cublas = bz_trace_source(t, "c", "cuBLAS log"), number = 0;
    t->source[cudnn].log = t->source[cublas].log = true;
    int64_t at = INT64_C(1700000000) * 1000000000, zone = size ? (data[0] % 113 - 56) * INT64_C(900000000000) : 0;
    size_t calls = 0;
    for (size_t i = 1; i + 4 <= size && i < MOST; i += 4) {
        int64_t thread = data[i + 1] % 4;
        unsigned name = data[i + 3];
        at += (int64_t)data[i + 2] * (data[i] & 0x80 ? 10000000 : 100);
        if (data[i] % 3 == 0) {
            add_call(t, BZ_LIBRARY_CUDNN, (at + zone) / 1000 * 1000, CUDNN[name % 3],
                     bz_trace_thread(t, cudnn, 70, thread), name % 3 < 2);
            calls++;
        } else if (data[i] % 3 == 1) {
            add_call(t, data[i] & 0x40 ? BZ_LIBRARY_CUBLASLT : BZ_LIBRARY_CUBLAS, (at + zone) / 1000000000 * 1000000000,
                     CUBLAS[name % 2], bz_trace_thread(t, cublas, 70, 1000 + thread), name % 2 == 0);
            calls++;
        } else {
            add_launch(t, at, KERNELS[name % 6], bz_trace_thread(t, timeline, 70, thread),
                       bz_trace_stream(t, timeline, 70, 0, 1, thread), ++number);
        }
    }
    if (!bz_trace_finish(t, NULL, &err))
        check(t, calls);
    bz_trace_free(t);
    return 0;
}
