/* All benchmarks of this folder, in the order in which they run. */
#include "runtime/runtime.h"

extern const bz_benchmark conv_53ae1f0b, gemm_0d1c77e2;

const bz_benchmark *const bz_benchmarks[] = {
    &conv_53ae1f0b,
    &gemm_0d1c77e2,
    NULL,
};
