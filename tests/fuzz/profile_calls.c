/* The parameters of a call as a profile tells them: the first byte chooses the call. What becomes of them
 * must be a problem that prints, and reads back as the same. */
#include "profile/profile.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const CALLS[] = {"cudnnConvolutionForward",
                                        "cudnnConvolutionBiasActivationForward",
                                        "convolution",
                                        "inner_product",
                                        "cudnnPoolingForward",
                                        "cudnnActivationForward",
                                        "cudnnBatchNormalizationForwardInference",
                                        "cudnnSoftmaxForward",
                                        "cudnnLRNCrossChannelForward",
                                        "cudnnAddTensor",
                                        "cudnnOpTensor",
                                        "matmul",
                                        "pooling_v2",
                                        "batch_normalization",
                                        "layer_normalization",
                                        "eltwise",
                                        "binary",
                                        "sum",
                                        "softmax_v2",
                                        "concat",
                                        "sgemm",
                                        "cublasGemmEx",
                                        "cblas_sgemv"};
    bz_problem again;
    bz_error err;
    bz_buf second = {0};
    if (!size)
        return 0;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), lane = bz_trace_thread(t, source, 1, 1);
    size_t c =
        bz_trace_add(t, BZ_EVENT_CALL, 0, 1, bz_trace_text(t, CALLS[data[0] % (sizeof CALLS / sizeof *CALLS)]), lane);
    t->event[BZ_EVENT_CALL].detail[c] = bz_trace_intern(t, (const char *)data + 1, size - 1);
    const bz_call *call = bz_call_of(t, c);
    if (call->problem) {
        PROMISE(!bz_problem_parse(call->text, &again, &err));
        bz_problem_print(&again, &second);
        SAW(call->text, strlen(call->text));
        PROMISE(!strcmp(call->text, bz_buf_text(&second)));
    }
    bz_buf_free(&second);
    bz_trace_free(t);
    return 0;
}
