/* A list of what an hour of a system costs: what is taken are prices of systems with a name, each of which is found. */
#include "report/report.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_price_list list;
    bz_error err = {0};
    char path[64];
    int fd = memfd_create("prices", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (bz_price_list_read(path, &arena, &list, &err))
        PROMISE(*err.text);
    else
        for (int i = 0; i < list.n; i++)
            PROMISE(*list.price[i].machine && list.price[i].dollars >= 0 && list.price[i].dollars < 1e6);
    close(fd);
    bz_arena_free(&arena);
    return 0;
}
