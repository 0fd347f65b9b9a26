/* Devices that backends bring along. Whoever has looked at a device cannot fork any more, so a child looks. */
#include "runtime/backend.h"
#include "runtime/backends.h"

#include "base/member.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct answer {
    bz_device device;
    bz_error err;
    int result;
} answer;

static int read_whole(int fd, void *data, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = read(fd, (char *)data + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        got += (size_t)n;
    }
    return 0;
}

/* All backends of devices that there are, whichever was asked for: "cuda13.0+cudnn9.19.0+cublas13.1.0". One that knew its own
 * library alone would give the same device another name than the next does. */
static void add_versions(const bz_backend *asked, bz_device *d)
{
    bz_buf stack = {0};
    bz_buf_puts(&stack, d->stack);
    for (const bz_backend_row *row = bz_backends; row->name; row++) {
        if (!row->device || !row->library) /* what has no library of its own is in the stack already */
            continue;
        const bz_backend *b = strcmp(asked->name, row->name) ? bz_backend_find(NULL, row->name, NULL) : asked;
        if (b && b->device)
            bz_buf_putc(&stack, '+');
        if (b && b->device)
            b->version(&stack);
    }
    snprintf(d->stack, sizeof d->stack, "%.*s", (int)sizeof d->stack - 1, bz_buf_text(&stack));
    bz_buf_free(&stack);
}

static _Noreturn void look(const bz_backend *backend, int fd)
{
    answer a = {.device = {.copied = NAN, .kernel_gap = NAN, .event_pair = NAN}};
    dup2(STDERR_FILENO, STDOUT_FILENO);
    a.result = backend->device(&a.device, &a.err);
    if (!a.result)
        add_versions(backend, &a.device);
    ssize_t n = write(fd, &a, sizeof a); /* less than a pipe takes at once */
    _exit(n != (ssize_t)sizeof a);
}

int bz_device_find(const bz_backend *backend, bz_device *out, bz_error *err)
{
    int ends[2];
    answer a;
    if (!backend->device)
        return bz_fail(err, BZ_USAGE, "%s runs on the processor", backend->name);
    if (pipe(ends))
        return bz_fail(err, BZ_FAILED, "no pipe for a process that looks at the device: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        look(backend, ends[1]);
    }
    close(ends[1]);
    bool bad = child < 0 || read_whole(ends[0], &a, sizeof a);
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (bad)
        return bz_fail(err, BZ_FAILED, "%s: the process that looked at the device ended without an answer",
                       backend->name);
    if (a.result)
        return bz_fail(err, BZ_FAILED, "%s: %s", backend->name, a.err.text);
    *out = a.device;
    return 0;
}

void bz_device_json(const bz_device *d, bz_buf *out)
{
    char capability[32];
    snprintf(capability, sizeof capability, "%d.%d", d->major, d->minor);
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("v", 1), BZ_TELL("record", "system"), BZ_TELL("slug", d->slug), BZ_TELL("stack", d->stack),
            BZ_TELL("device", "gpu"), BZ_TELL("name", d->name), BZ_TELL("capability", capability));
    BZ_PUT(&j, bz_device, d, multiprocessors, memory, l2, clock, memory_clock, bus, bandwidth);
    bz_json_key_num(&j, "copy_bandwidth", d->copied > 0 ? d->copied : NAN);
    if (d->kernel_gap > 0) /* older ones have none */
        bz_json_key_num(&j, "kernel_gap", d->kernel_gap);
    BZ_JSON(&j, BZ_TELL("event_pair", d->event_pair), BZ_TELL("driver", d->driver));
    bz_json_document_end(&j);
}

void bz_device_print(const bz_device *d, bz_buf *out)
{
    bz_unit_text a, b;
    bz_buf_printf(out, "%-14s%s@%s\n", "device", d->slug, d->stack);
    bz_buf_printf(out, "%-14s%s, compute capability %d.%d, %d multiprocessors", "gpu", d->name, d->major, d->minor,
                  d->multiprocessors);
    if (d->clock > 0)
        bz_buf_printf(out, ", up to %.0f MHz", d->clock / 1e6);
    bz_buf_printf(out, "\n%-14s%s, L2 cache %s", "memory", bz_units_bytes(a, (double)d->memory),
                  bz_units_bytes(b, (double)d->l2));
    if (d->bandwidth > 0)
        bz_buf_printf(out, ", %s/s by its data sheet", bz_units_bytes(a, d->bandwidth));
    if (d->copied > 0)
        bz_buf_printf(out, ", %s/s by a copy", bz_units_bytes(a, d->copied));
    bz_buf_printf(out, "\n%-14s%s\n", "driver", d->driver);
    if (d->kernel_gap > 0)
        bz_buf_printf(out, "%-14s%s\n", "kernel gap", bz_units_time(a, d->kernel_gap));
    if (d->event_pair == d->event_pair)
        bz_buf_printf(out, "%-14s%s\n", "event pair", bz_units_time(a, d->event_pair));
}
