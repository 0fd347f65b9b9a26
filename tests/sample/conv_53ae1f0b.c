/* conv x=1x16x28x28 w=16x16x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1
 *
 * sample.onnx: 4 layers (first conv1)
 *
 * By itself, and with the bias, the shortcut and the ReLU behind it in one call. */
#include "runtime/runtime.h"

static const bz_problem alone = {
    .kind = BZ_PROBLEM_CONV,
    .conv = {
        .x = {1, 16, 28, 28},   /* batch, channels, height, width */
        .w = {16, 16, 3, 3},    /* outputs, inputs of a group, height, width */
        .stride = {1, 1},
        .pad = {1, 1, 1, 1},    /* top, left, bottom, right */
        .dilation = {1, 1},
        .group = 1,
    },
    .dtype = BZ_F32,
};

static const bz_problem fused = {
    .kind = BZ_PROBLEM_CONV,
    .conv = {
        .x = {1, 16, 28, 28},
        .w = {16, 16, 3, 3},
        .stride = {1, 1},
        .pad = {1, 1, 1, 1},
        .dilation = {1, 1},
        .group = 1,
    },
    .post = {{.fn = BZ_FN_BIAS}, {.fn = BZ_FN_ADD}, {.fn = BZ_FN_RELU}},
    .dtype = BZ_F32,
};

static const bz_family families[] = {
    {&alone, "onednn", "plain", "default"},
    {&alone, "onednn", "nhwc", "default"},
    {&alone, "onednn", "any", "default"},
    {&fused, "onednn", "nhwc", "default"},
    {&fused, "onednn", "any", "default"},
};

const bz_benchmark conv_53ae1f0b = {"conv_53ae1f0b", families, sizeof families / sizeof *families};
