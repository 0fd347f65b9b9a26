/* models.txt beside a database: whatever stands in it, a model that was analysed is in it afterwards, once, among at most as many
 * absolute paths as are remembered. */
#include "analysis/analysis.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#include "base/whole.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[80];
    const char *model = "/proc/self/exe";
    char real[PATH_MAX];
    bz_buf file = {0}, after = {0};
    bz_error err;
    snprintf(path, sizeof path, "%s/models.txt", fuzz_folder());
    bz_buf_put(&file, data, size);
    if (!realpath(model, real) || bz_whole_write(path, &file, &err))
        abort();
    for (int i = 0; i < 2; i++) { /* the second time it is known */
        bz_candidates_remember(&model, 1, fuzz_folder());
        bz_buf_free(&after);
        if (bz_whole_read(path, 1 << 24, "is long", &after, &err))
            abort();
    }
    int lines = 0, found = 0;
    char *text = (char *)(uintptr_t)bz_buf_text(&after), *line;
    PROMISE(strlen(text) == after.len || memchr(data, 0, size));
    while ((line = strsep(&text, "\n")))
        if (text) { /* the last line has its end */
            lines += *line == '/';
            found += !strcmp(line, real);
        }
    PROMISE(found == 1 && lines <= 200);
    unlink(path);
    bz_buf_free(&file);
    bz_buf_free(&after);
    return 0;
}
