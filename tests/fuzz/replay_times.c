/* times.tsv in a folder of sequences, which anybody may have written: whatever stands in it, a good line at its end is read, and no
 * sequence gets a time that is none. */
#include "replay/replay.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#include "base/whole.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static void nobody(void *user, const char *text)
{
    (void)user, (void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[80], id[33];
    const char *why[2] = {NULL}, *model = "/nowhere/model.onnx";
    bz_arena arena = {0};
    bz_buf file = {0};
    bz_error err;
    bz_brick brick[2] = {{.hash = {1, 2}, .seconds = NAN}, {.hash = {3, 4}, .seconds = NAN}};
    bz_brick_model whole = {.measured = NAN};
    bz_bricks b = {.brick = brick, .n = 2, .model = &whole, .n_models = 1};
    bz_brick_files f = {.folder = fuzz_folder(), .command = "exit 1", .why = why}; /* what is not known stays so */
    snprintf(path, sizeof path, "%s/times.tsv", fuzz_folder());
    bz_buf_put(&file, data, size);
    bz_hash_hex(brick[0].hash, id);
    bz_buf_printf(&file, "\n0.5\t%s\texit 1\n", id);
    bz_hash_hex(brick[1].hash, id);
    bz_buf_printf(&file, "0.25\t%s\texit 1\n0.75\t%s\texit 1\n", id, model);
    if (bz_whole_write(path, &file, &err))
        abort();
    bz_bricks_time(&f, &b, &model, 1, &arena, nobody, NULL);
    if (memchr(data, 0, size)) /* there the file ends */
        for (int i = 0; i < 2; i++)
            PROMISE(isnan(brick[i].seconds) ? why[i] != NULL : brick[i].seconds > 0 && isfinite(brick[i].seconds));
    else
        PROMISE(brick[0].seconds == 0.5 && brick[1].seconds == 0.25 && whole.measured == 0.75);
    unlink(path);
    bz_buf_free(&file);
    bz_arena_free(&arena);
    return 0;
}
