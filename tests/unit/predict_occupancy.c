/* Our occupancies against NVIDIA's calculator: a header of the CUDA Toolkit in plain C, which needs no GPU. Skipped without it. */
#include "predict/predict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int theirs(const bz_occupancy_limits *l, const bz_launch *k)
{
    cudaOccDeviceProp device = {.computeMajor = l->capability / 10,
                                .computeMinor = l->capability % 10,
                                .maxThreadsPerBlock = 1024,
                                .maxThreadsPerMultiprocessor = l->threads,
                                .regsPerBlock = l->block_registers,
                                .regsPerMultiprocessor = l->registers,
                                .warpSize = 32,
                                .sharedMemPerBlock = 49152,
                                .sharedMemPerMultiprocessor = (size_t)l->shared,
                                .numSms = 1,
                                .sharedMemPerBlockOptin = 49152,
                                .reservedSharedMemPerBlock = l->capability >= 80 ? 1024 : 0};
    cudaOccFuncAttributes function = {.maxThreadsPerBlock = 1024,
                                      .numRegs = k->registers,
                                      .sharedSizeBytes = (size_t)k->shared_static,
                                      .partitionedGCConfig = PARTITIONED_GC_OFF,
                                      .shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT,
                                      .maxDynamicSharedSizeBytes = 49152,
                                      .numBlockBarriers = 1};
    cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult found;
    cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&found, &device, &function, &state, k->threads,
                                                                 (size_t)k->shared_dynamic);
    assert_int_equal(error, CUDA_OCC_SUCCESS);
    return found.activeBlocksPerMultiprocessor;
}

static void as_the_toolkit_counts(void **state)
{
    (void)state;
    static const int CHIP[] = {60, 61, 70, 75, 80, 86, 89, 90, 100, 120};
    uint64_t seed = 1;
    int compared = 0;
    for (int i = 0; i < 400000; i++) {
        bz_occupancy_limits l;
        bz_launch k = {.threads = (int)(1 + next(&seed) % 1024),
                       .registers = (int)(next(&seed) % 256),
                       .shared_static = (int)(next(&seed) % 4 ? next(&seed) % 49153 : 0)};
        int capability = CHIP[next(&seed) % (sizeof CHIP / sizeof *CHIP)];
        assert_true(bz_occupancy_limits_of(capability, &l));
        int ours = bz_occupancy(&l, &k), is = theirs(&l, &k);
        if (ours != is)
            fail_msg("%d threads, %d registers, %d B on %d: %d blocks, the toolkit says %d", k.threads, k.registers,
                     k.shared_static, capability, ours, is);
        compared++;
    }
    assert_int_equal(compared, 400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_toolkit_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77;
}
#endif
