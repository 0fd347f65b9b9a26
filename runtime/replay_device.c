/* The processor as a replay's device: what is asked for has happened when the function returns. */
#include "runtime/replay_open.h"

#include "base/arena.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

typedef struct processor {
    double *reading;
    int cap, n_places;
} processor;

static int open_device(const bz_run_setting *setting, int streams, void **device, bz_error *err)
{
    (void)setting;
    if (streams > 1)
        return bz_fail(err, BZ_USAGE, "the processor has no streams: calls run in threads of their own");
    *device = bz_zeroed(1, sizeof(processor));
    return 0;
}

static void close_device(void *device)
{
    processor *p = device;
    free(p->reading);
    free(p);
}

static void *place(void *device, size_t size, bool host)
{
    processor *p = device;
    (void)host;
    void *at = bz_place(size, p->n_places++);
    if (at)
        memset(at, 0, size);
    return at;
}

static void unplace(void *device, void *at, bool host)
{
    (void)device, (void)host;
    bz_unplace(at);
}

static int copy(void *device, int stream, void *to, const void *from, size_t size)
{
    (void)device, (void)stream;
    memcpy(to, from, size);
    return 0;
}

static int host(void *device, int stream, void (*function)(void *), void *context)
{
    (void)device, (void)stream;
    function(context);
    return 0;
}

static int read_clock(void *device, int stream, int reading)
{
    processor *p = device;
    (void)stream;
    if (reading >= p->cap) {
        p->cap = 2 * reading + 64;
        p->reading = bz_realloc(p->reading, (size_t)p->cap, sizeof *p->reading);
    }
    p->reading[reading] = bz_now();
    return 0;
}

static int seconds_between(void *device, int from, int to, double *out)
{
    const processor *p = device;
    *out = p->reading[to] - p->reading[from];
    return 0;
}

static int wait_for_all(void *device)
{
    (void)device;
    return 0;
}

const bz_device_ops replay_processor = {
    .name = "processor",
    .align = 64,
    .open = open_device,
    .close = close_device,
    .alloc = place,
    .free = unplace,
    .copy = copy,
    .host = host,
    .read = read_clock,
    .seconds = seconds_between,
    .wait = wait_for_all,
};
