#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(bz_whole *w, bz_error *err)
{
    return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", w->path, strerror(errno));
}

static int open_part(bz_whole *w, bz_error *err)
{
    bz_buf part = {0};
    char *behind_links = realpath(w->path, NULL);
    w->target = behind_links ? behind_links : strdup(w->path);
    bz_buf_printf(&part, "%s.XXXXXX", w->target);
    w->fd = mkostemp(part.data, O_CLOEXEC);
    if (w->fd >= 0) {
        w->part = part.data;
        return 0;
    }
    fail(w, err);
    bz_buf_free(&part);
    free(w->target);
    return -1;
}

int bz_whole_open(bz_whole *w, const char *path, bz_error *err)
{
    struct stat st;
    *w = (bz_whole){.path = path, .fd = -1};
    if (stat(path, &st) || S_ISREG(st.st_mode))
        return open_part(w, err);
    w->fd = open(path, O_WRONLY | O_CLOEXEC);
    return w->fd < 0 ? fail(w, err) : 0;
}

int bz_whole_close(bz_whole *w, bool good, bz_error *err)
{
    mode_t mask = umask(0);
    umask(mask);
    int rc = good ? 0 : -1;
    if (!rc && w->part && (fchmod(w->fd, 0666 & ~mask) || fsync(w->fd)))
        rc = fail(w, err);
    if (close(w->fd) && !rc)
        rc = fail(w, err);
    if (!rc && w->part && rename(w->part, w->target))
        rc = fail(w, err);
    if (rc && w->part)
        unlink(w->part);
    free(w->part);
    free(w->target);
    return rc;
}

int bz_whole_write(const char *path, const bz_buf *text, bz_error *err)
{
    bz_whole w;
    if (bz_whole_open(&w, path, err))
        return -1;
    const char *data = bz_buf_text(text);
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(w.fd, data + done, text->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            fail(&w, err);
            return bz_whole_close(&w, false, err);
        }
        done += (size_t)n;
    }
    return bz_whole_close(&w, true, err);
}

int bz_whole_read(const char *path, size_t limit, const char *too_long, bz_buf *out, bz_error *err)
{
    FILE *f = fopen(path, "re");
    char block[16384];
    size_t n, before = out->len;
    if (!f)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    while (out->len - before <= limit && (n = fread(block, 1, sizeof block, f)) > 0)
        bz_buf_put(out, block, n);
    bool bad = ferror(f) != 0;
    int why = errno;
    fclose(f);
    if (bad)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", path, strerror(why));
    return out->len - before > limit ? bz_fail(err, BZ_BAD_INPUT, "%s: %s", path, too_long) : 0;
}
