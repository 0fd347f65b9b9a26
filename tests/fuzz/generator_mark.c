/* The list of files that generated ones are replaced by: whatever it says, a file that it does not tell the content of stays. */
#include "generator/generator.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#include "base/whole.h"

#include <string.h>
#include <unistd.h>

static void put(const char *name, const void *data, size_t n, char path[200])
{
    bz_buf text = {0};
    bz_error err;
    bz_buf_put(&text, data, n);
    snprintf(path, 200, "%s/%s", fuzz_folder(), name);
    if (bz_whole_write(path, &text, &err))
        abort();
    bz_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char mark[200], theirs[200], listed[200], hash[33];
    bz_error err = {0};
    put(".benanza", data, size, mark);
    put("theirs.c", "not ours", 8, theirs);
    put("listed.c", "ours", 4, listed);
    bz_hash_hex(bz_hash_bytes("not ours", 8), hash);
    bool told = memmem(data, size, hash, 32);
    if (bz_generate_folder(fuzz_folder(), &err))
        PROMISE(*err.text && !access(listed, F_OK) && !access(theirs, F_OK)); /* all or none */
    PROMISE(told || !access(theirs, F_OK));
    unlink(mark);
    unlink(theirs);
    unlink(listed);
    return 0;
}
