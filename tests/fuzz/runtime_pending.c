/* Problems as lines, and a list of those to run with what is known of them: what a program was given by another. Each problem that
 * is taken reads as itself, and what a list keeps was there before. The first byte says how long the list is that follows it. */
#include "runtime/pending.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_pending p = {0}, again = {0};
    bz_error err;
    char path[64];
    if (size < 3)
        return 0;
    size_t listed = size - 1 < data[0] ? size - 1 : data[0];
    const uint8_t *list = data + 1, *texts = list + listed;
    size_t n = size - 1 - listed;
    FILE *f = n ? fmemopen((void *)(uintptr_t)texts, n, "r") : NULL;
    if (f && !bz_pending_read(&p, f, &err)) {
        int fd = memfd_create("list", 0), before = p.n, had = 0;
        for (int i = 0; i < p.n; i++) {
            PROMISE(!bz_pending_add_text(&again, p.item[i].text, &err) && p.item[i].n > 0);
            PROMISE(!strcmp(again.item[i].text, p.item[i].text) && again.item[i].n == p.item[i].n);
        }
        if (fd < 0 || write(fd, list, listed) != (ssize_t)listed)
            abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        PROMISE(!bz_pending_keep(&p, path, &err) && p.n <= before);
        for (int i = 0; i < p.n; i++) {
            while (had < before && strcmp(again.item[had].text, p.item[i].text) != 0)
                had++;
            PROMISE(had < before && p.item[i].wanted);
            for (int k = 0; k < p.item[i].n_known; k++)
                PROMISE(*p.item[i].known[k].backend && *p.item[i].known[k].layout && *p.item[i].known[k].math);
        }
        close(fd);
    }
    if (f)
        fclose(f);
    bz_pending_free(&p);
    bz_pending_free(&again);
    return 0;
}
