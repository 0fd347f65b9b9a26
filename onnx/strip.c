/* A model without its weights. */
#include "onnx/file.h"
#include "onnx/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written under another name and then renamed, so that nobody ever sees half a file. What stands
 * behind a link is replaced, not the link; what is no regular file (/dev/stdout) is left alone. */
static int write_whole(const char *path, const bz_buf *data, bz_error *err)
{
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return bz_fail(err, BZ_FAILED, "%s: is not a regular file: name a file to write the model to", path);
    char *behind_links = realpath(path, NULL);
    const char *target = behind_links ? behind_links : path;
    bz_buf temporary = {0};
    bz_buf_printf(&temporary, "%s.XXXXXX", target);
    int fd = mkstemp(temporary.data);
    bool bad = fd < 0;
    for (size_t done = 0; !bad && done < data->len;) {
        ssize_t n = write(fd, data->data + done, data->len - done);
        bad = n < 0 && errno != EINTR;
        done += n > 0 ? (size_t)n : 0;
    }
    int why = errno;
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0) {
        bool unsafe = !bad && (fchmod(fd, 0666 & ~mask) || fsync(fd) || rename(temporary.data, target));
        why = unsafe ? errno : why;
        bad |= unsafe;
        close(fd);
        if (bad)
            unlink(temporary.data);
    }
    bz_buf_free(&temporary);
    free(behind_links);
    return bad ? bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(why)) : 0;
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
