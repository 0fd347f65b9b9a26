/* Any text is an expression of dimensions or none: what is computed lies in the range that a dimension has, blanks and a pair of
 * parentheses around it change nothing, what is missing is a name of the text, and one that is not known is never computed with. */
#include "modelproc/dimension.h"

#include "onnx/onnx.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Names that begin with a small letter are known, by it: 0, 1, 2 and so on to the largest. `context` NULL: none is. */
static bool known(void *context, const char *name, size_t length, int64_t *number)
{
    static const int64_t NUMBERS[] = {0, 1, 2, 3, 7, 1024, INT32_MAX, BZ_MAX_DIM - 1, BZ_MAX_DIM, INT64_MAX};
    PROMISE(length > 0 && dimension_name(name) >= length);
    if (!context || *name < 'a' || *name > 'z')
        return false;
    *number = NUMBERS[(size_t)(*name - 'a') % (sizeof NUMBERS / sizeof *NUMBERS)];
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool yes = true;
    int64_t number = -1, again = -1;
    const char *missing = "";
    char *text = malloc(size + 1), *inside = malloc(size + 5);
    if (!text || !inside)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    size_t n = strlen(text);
    bool done = dimension_compute(text, known, &yes, &number, &missing);
    PROMISE(!done || (number >= 0 && number <= BZ_MAX_DIM && !missing));
    SAW(&number, sizeof number);
    PROMISE(done || !missing || (missing >= text && missing < text + n && dimension_name(missing) > 0));
    inside[0] = ' ', inside[1] = '(';
    memcpy(inside + 2, text, n);
    memcpy(inside + 2 + n, ")\t", 3);
    bool wrapped = dimension_compute(inside, known, &yes, &again, NULL);
    PROMISE(!wrapped || !done || again == number);              /* "1) - (1" is none before it is inside of another */
    if (dimension_compute(text, known, NULL, &again, &missing)) /* without names: a number either way */
        PROMISE(done && again == number);
    free(inside);
    free(text);
    return 0;
}
