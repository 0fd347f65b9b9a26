/* The backends: a row each. Order is that of families in generated files. */
#include "runtime/backends.h"

#include <string.h>

/* clang-format off */
const bz_backend_row bz_backends[] = {
    {"onednn", .library = "onednn", .family = {
        {"conv deconv", "plain packed nhwc any", ""},
        {"gemm gemv", "plain packed", ""},
        {"matmul", "plain packed any", ""},
        {"pool batchnorm softmax logsoftmax lrn activation prelu binary reduce resample concat", "plain nhwc any", ""},
        {"layernorm transpose reorder", "plain", ""},
        {"groupnorm", "plain nhwc", ""},
        {"lstm gru rnn", "plain packed", ""},
        {"lstm_grad gru_grad rnn_grad", "packed", ""},
        {"conv_data conv_weights", "plain packed nhwc any", ""},
        {"pool_grad batchnorm_grad activation_grad softmax_grad logsoftmax_grad", "plain nhwc any", ""},
        {"layernorm_grad", "plain", ""}}},
    {"cblas", .library = "blas", .family = {
        {"gemm gemv matmul", "plain", ""}}},
    {"memory", .bytes = true, .family = {
        {"copy concat transfer", "plain", ""}}},
    {"loops", .family = {
        {"activation prelu binary where reduce softmax logsoftmax batchnorm layernorm rmsnorm lpnorm groupnorm", "plain", ""},
        {"transpose concat pad slice expand gather reorder", "plain", ""},
        {"activation_grad dropout dropout_grad batchnorm_grad layernorm_grad rmsnorm_grad groupnorm_grad softmax_grad", "plain", ""},
        {"logsoftmax_grad softmax_loss softmax_loss_grad scatter_add update sample sample_grad", "plain", ""}}},
    {"cudnn", .library = "cudnn", .device = true, .keeps = true, .family = {
        {"conv", "plain nhwc any", "tf32 f16"},
        {"deconv conv_data conv_weights", "plain nhwc", "tf32 f16"},
        {"pool batchnorm softmax logsoftmax lrn activation binary reduce concat pad", "plain nhwc", ""},
        {"gemm matmul lstm gru rnn lstm_grad gru_grad rnn_grad", "plain", "tf32 f16"},
        {"rmsnorm transpose reorder copy layernorm attention dropout", "plain", ""},
        {"pool_grad batchnorm_grad activation_grad softmax_grad logsoftmax_grad", "plain nhwc", ""},
        {"layernorm_grad rmsnorm_grad", "plain", ""},
        {"conv_norm", "plain nhwc", "tf32 f16"},
        {"attention_grad", "plain", ""}}},
    {"cublas", .library = "cublas", .device = true, .keeps = true, .family = {
        {"gemm matmul gemv", "plain packed", "tf32 f16"},
        {"grouped", "plain", "tf32"}}},
    {"cudart", .device = true, .family = {
        {"transfer", "plain", ""}}},
    {0},
};
/* clang-format on */

const bz_backend_row *bz_backend_named(const char *name)
{
    const bz_backend_row *b = bz_backends;
    while (b->name && strcmp(b->name, name) != 0)
        b++;
    return b->name ? b : NULL;
}

bool bz_backend_is_on(const char *name, bool device)
{
    const bz_backend_row *b = bz_backend_named(name);
    return b && b->device == device;
}

const char *const bz_layouts[BZ_N_LAYOUTS] = {"plain", "packed", "nhwc", "any"};

const char *bz_layout_named(const char *name)
{
    int i = 0;
    while (i < BZ_N_LAYOUTS && strcmp(bz_layouts[i], name) != 0)
        i++;
    return i < BZ_N_LAYOUTS ? bz_layouts[i] : NULL;
}

const char *bz_backend_of_device(void)
{
    const bz_backend_row *b = bz_backends;
    while (b->name && !b->device)
        b++;
    return b->name;
}
