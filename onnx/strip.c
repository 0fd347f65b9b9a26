/* A model without its weights. */
#include "base/whole.h"
#include "onnx/file.h"
#include "onnx/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is no regular file (/dev/stdout) is left alone. */
static int write_whole(const char *path, const bz_buf *data, bz_error *err)
{
    struct stat st;
    bz_whole file;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return bz_fail(err, BZ_FAILED, "%s: is not a regular file: name a file to write the model to", path);
    if (bz_whole_open(&file, path, err))
        return -1;
    bool bad = false;
    for (size_t done = 0; !bad && done < data->len;) {
        ssize_t n = write(file.fd, data->data + done, data->len - done);
        bad = n < 0 && errno != EINTR;
        done += n > 0 ? (size_t)n : 0;
    }
    if (bad)
        bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    return bz_whole_close(&file, !bad, err);
}

int bz_model_strip(const char *in, const char *out, uint64_t keep, bz_strip_result *result, bz_error *err)
{
    /* What does not load would not be a model after stripping, either. */
    bz_model *model;
    if (bz_model_load(in, &model, err))
        return -1;
    bz_buf stripped = {0};
    *result = (bz_strip_result){.in_bytes = model->file->size};
    int failed = wire_strip(&model->file->bytes, keep, &stripped, &result->tensors, &result->kept, err);
    if (failed) {
        bz_fail_in(err, "%s", in);
    } else {
        result->out_bytes = stripped.len;
        failed = write_whole(out, &stripped, err);
    }
    bz_buf_free(&stripped);
    bz_model_free(model);
    return failed;
}
