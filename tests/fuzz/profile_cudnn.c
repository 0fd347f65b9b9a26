#include "tests/fuzz/profile_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&bz_reader_cudnn, data, size);
}
