/* A user's table of fusion patterns: one that is refused says why, alone and behind the built-in ones. */
#include "modelproc/modelproc.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_patterns *alone = NULL, *behind = NULL;
    bz_error err = {0};
    bz_arena arena = {0};
    const char *text = bz_arena_strn(&arena, (const char *)data, size);
    PROMISE(!bz_patterns_parse(bz_patterns_text, "built in", &behind, &err));
    if (bz_patterns_parse(text, "fuzz", &behind, &err))
        PROMISE(!behind && *err.text);
    err = (bz_error){0};
    if (bz_patterns_parse(text, "fuzz", &alone, &err))
        PROMISE(!alone && *err.text);
    SAW(&err.code, sizeof err.code);
    bz_patterns_free(alone);
    bz_patterns_free(behind);
    bz_arena_free(&arena);
    return 0;
}
