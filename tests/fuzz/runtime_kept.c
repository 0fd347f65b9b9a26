/* An entry of a folder that others may have written to: what is taken from it is inside of it, and what was put comes back. */
#include "runtime/kept.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_buf text = {0};
    const char *kept;
    size_t n;
    bz_buf_put(&text, data, size);
    if (bz_kept_read(&text, "key", &kept, &n))
        PROMISE(kept >= text.data && n <= text.len && kept + n == text.data + text.len);
    bz_buf_free(&text);
    return 0;
}
