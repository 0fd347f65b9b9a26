/* gemm m=8 n=64 k=128 batch=1 transa=0 transb=1
 *
 * sample.onnx: 1 layer (fc) */
#include "runtime/runtime.h"

static const bz_problem alone = {
    .kind = BZ_PROBLEM_GEMM,
    .gemm = {.m = 8, .n = 64, .k = 128, .transb = true},
    .dtype = BZ_F32,
};

static const bz_family families[] = {
    {&alone, "onednn", "plain", "default"},
    {&alone, "onednn", "packed", "default"},
    {&alone, "cblas", "plain", "default"},
};

const bz_benchmark gemm_0d1c77e2 = {"gemm_0d1c77e2", families, sizeof families / sizeof *families};
