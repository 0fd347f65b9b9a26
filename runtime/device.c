/* Devices that backends bring along. Whoever has looked at a device cannot fork any more, so a child looks. */
#include "runtime/backend.h"
#include "runtime/backends.h"
#include "runtime/constants.h"

#include "base/member.h"
#include "base/progress.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the child fills in, in memory that both have. */
typedef struct answer {
    bz_device device;
    bz_error err;
    int result;
    atomic_bool known, measured; /* what the device is; how fast it is */
} answer;

/* All backends of devices that there are, whichever was asked for: "cuda13.0+cudnn9.19.0+cublas13.1.0". One that knew its own
 * library alone would give the same device another name than the next does. */
static void add_versions(const bz_backend *asked, bz_device *d)
{
    BZ_SCOPED(bz_buf) stack = {0};
    bz_buf_puts(&stack, d->stack);
    for (const bz_backend_row *row = bz_backends; row->name; row++) {
        if (!row->device || !row->library) /* what has no library of its own is in the stack already */
            continue;
        bz_error err = {0};
        const bz_backend *b = strcmp(asked->name, row->name) ? bz_backend_find(NULL, row->name, &err) : asked;
        size_t n = strlen(d->absent);
        if (b && b->device)
            bz_buf_putc(&stack, '+');
        if (b && b->device)
            b->version(&stack);
        if (!b)
            snprintf(d->absent + n, sizeof d->absent - n, "%s%s", n ? "; " : "", err.text);
    }
    snprintf(d->stack, sizeof d->stack, "%.*s", (int)sizeof d->stack - 1, bz_buf_text(&stack));
}

const bz_backend *bz_device_backend(const char *name, bz_error *err)
{
    const bz_backend *b = bz_backend_find(NULL, name, err);
    bool on_device = bz_backend_is_on(name, true);
    for (const bz_backend_row *row = bz_backends; !b && on_device && row->name; row++)
        b = row->device ? bz_backend_find(NULL, row->name, NULL) : NULL;
    return b;
}

static answer *share(bz_error *err)
{
    answer *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a != MAP_FAILED)
        return a;
    bz_fail(err, BZ_FAILED, "no memory to share with a process: %s", strerror(errno));
    return NULL;
}

static _Noreturn void look(const bz_backend *backend, answer *a)
{
    dup2(STDERR_FILENO, STDOUT_FILENO);
    a->result = backend->device(&a->device, &a->err);
    if (!a->result)
        add_versions(backend, &a->device);
    a->known = true;
    if (!a->result && backend->rates)
        backend->rates(&a->device);
    a->measured = true;
    _exit(0);
}

/* A driver that hangs, or a profiler that does, must not take the whole program along: `patience` seconds to say what the device
 * is, a third of that to measure it. */
static const char *wait_for(pid_t child, const answer *a, double patience)
{
    double until = bz_now() + patience;
    bool known = false;
    int status = 0;
    pid_t ended;
    while (!(ended = waitpid(child, &status, WNOHANG)) || (ended < 0 && errno == EINTR)) {
        if (!known && a->known) {
            known = true;
            until = bz_now() + patience / 3;
        }
        if (bz_now() > until)
            kill(child, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return !WIFSIGNALED(status) ? "ended without an answer" : bz_now() > until ? "hung" : "crashed";
}

int bz_device_find_within(const bz_backend *backend, double patience, bz_device *out, bz_error *err)
{
    const char *how = "could not be started";
    int result = 0;
    if (!backend->device)
        return bz_fail(err, BZ_USAGE, "%s runs on the processor", backend->name);
    answer *a = share(err);
    if (!a)
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (!child)
        look(backend, a);
    if (child > 0)
        how = wait_for(child, a, patience);
    if (!a->known)
        result = bz_fail(err, BZ_FAILED, "%s: the process that looked at the device %s", backend->name, how);
    else if (a->result)
        result = bz_fail(err, BZ_FAILED, "%s: %s", backend->name, a->err.text);
    else if (!a->measured)
        fprintf(stderr, "benanza: the device's copies and pauses are not known: the process that measured them %s\n",
                how);
    *out = a->device;
    munmap(a, sizeof *a);
    return result;
}

/* Until the other end of the pipe is closed: by bz_device_hold_end, or by the end of all who have it, however that comes. */
static _Noreturn void hold_until(const bz_backend *backend, double hz, int pipe, answer *a)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP}; /* of a terminal all processes get them */
    char nothing;
    setsid(); /* who kills the program's group does not leave the clock held */
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        signal(SIGNALS[i], SIG_IGN);
    a->result = backend->lock(hz, &a->err);
    a->known = true;
    while (!a->result && read(pipe, &nothing, 1) < 0 && errno == EINTR)
        continue;
    if (!a->result)
        backend->lock(0, NULL);
    _exit(0);
}

int bz_device_hold_clock(double hz, bz_device_hold *out, bz_error *err)
{
    int ends[2], result = 0;
    double until = bz_now() + DEVICE_PATIENCE;
    const bz_backend *backend = bz_device_backend(bz_backend_of_device(), err);
    if (!backend)
        return -1;
    if (!backend->lock)
        return bz_fail(err, BZ_USAGE, "%s has no clock that can be held", backend->name);
    answer *a = share(err);
    if (!a)
        return -1;
    if (pipe2(ends, O_CLOEXEC)) {
        munmap(a, sizeof *a);
        return bz_fail(err, BZ_FAILED, "no pipe to the process that holds the clock: %s", strerror(errno));
    }
    *out = (bz_device_hold){fork(), ends[1]};
    if (!out->child) {
        close(ends[1]);
        hold_until(backend, hz, ends[0], a);
    }
    close(ends[0]);
    bool ended = out->child < 0;
    while (!ended && !a->known && bz_now() < until) {
        ended = waitpid(out->child, NULL, WNOHANG) == out->child;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (a->known && a->result)
        result = bz_fail(err, a->err.code, "%s", a->err.text);
    else if (!a->known)
        result = bz_fail(err, BZ_FAILED, "%s: the process that holds the clock %s", backend->name,
                         ended ? "ended without an answer" : "hung");
    if (!a->known && !ended)
        kill(out->child, SIGKILL);
    if (result)
        bz_device_hold_end(out);
    munmap(a, sizeof *a);
    return result;
}

void bz_device_hold_end(bz_device_hold *hold)
{
    if (hold->child)
        close(hold->pipe);
    while (hold->child > 0 && waitpid(hold->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    *hold = (bz_device_hold){0};
}

int bz_device_find(const bz_backend *backend, bz_device *out, bz_error *err)
{
    return bz_device_find_within(backend, DEVICE_PATIENCE, out, err);
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
    if (*d->absent)
        BZ_JSON(&j, BZ_TELL("absent", d->absent));
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
    if (*d->absent)
        bz_buf_printf(out, "%-14s%s\n", "absent", d->absent);
    if (d->kernel_gap > 0)
        bz_buf_printf(out, "%-14s%s\n", "kernel gap", bz_units_time(a, d->kernel_gap));
    if (d->event_pair == d->event_pair)
        bz_buf_printf(out, "%-14s%s\n", "event pair", bz_units_time(a, d->event_pair));
}
