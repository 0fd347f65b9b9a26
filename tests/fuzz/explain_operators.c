/* What a recording tells of operators: the first byte of each line chooses the operator, the rest is its arguments. Whatever they
 * say, the layers that are made of them have costs that are no less than nothing. */
#include "explain/explain.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const NAMES[] = {"aten::conv2d",
                                        "aten::convolution",
                                        "aten::linear",
                                        "aten::addmm",
                                        "aten::bmm",
                                        "aten::add_",
                                        "aten::batch_norm",
                                        "aten::layer_norm",
                                        "aten::mean",
                                        "aten::max_pool2d",
                                        "aten::cat",
                                        "aten::embedding",
                                        "aten::copy_",
                                        "aten::softmax",
                                        "aten::group_norm",
                                        "aten::adaptive_avg_pool2d",
                                        "Conv",
                                        "Gemm",
                                        "Concat",
                                        "aten::scaled_dot_product_attention",
                                        "aten::conv_transpose2d"};
    bz_arena arena = {0};
    bz_rebuilt r;
    bz_error err;
    int64_t now = 0;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    for (size_t at = 0; at < size && now < 640;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        if (n) {
            const char *name = NAMES[data[at] % (sizeof NAMES / sizeof *NAMES)];
            size_t op = bz_trace_add(t, BZ_EVENT_OP, now, now + 10, bz_trace_text(t, name), lane);
            t->event[BZ_EVENT_OP].detail[op] = bz_trace_intern(t, (const char *)data + at + 1, n - 1);
            now += 10;
        }
        at += n + 1;
    }
    if (!bz_trace_finish(t, NULL, &err)) {
        bz_rebuild(t, &arena, &r);
        for (int i = 0; r.layers && i < r.layers->n; i++) {
            const bz_layer *l = &r.layers->layer[i];
            PROMISE(l->macs >= 0 && l->bytes >= 0);
            SAW(l->key, strlen(l->key));
            SAW(&l->macs, sizeof l->macs);
            SAW(&l->bytes, sizeof l->bytes);
        }
    }
    bz_arena_free(&arena);
    bz_trace_free(t);
    return 0;
}
