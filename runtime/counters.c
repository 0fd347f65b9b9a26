/* perf_event, the throttle counters of the kernel, and a clock probe for machines without either. */
#include "runtime/counters.h"

#include "base/progress.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const bz_counter_names[BZ_N_COUNTERS] = {"cycles", "instructions", "cache_references", "cache_misses",
                                                     "branch_misses"};

static const uint64_t EVENTS[BZ_N_COUNTERS] = {
    PERF_COUNT_HW_CPU_CYCLES,   PERF_COUNT_HW_INSTRUCTIONS,  PERF_COUNT_HW_CACHE_REFERENCES,
    PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_MISSES,
};

/* User code only: that is what an unprivileged process may count. */
static int open_event(uint64_t event)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = event,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void bz_counters_open(bz_counters *c)
{
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        c->fd[i] = open_event(EVENTS[i]);
}

void bz_counters_start(bz_counters *c)
{
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        if (c->fd[i] >= 0) {
            ioctl(c->fd[i], PERF_EVENT_IOC_RESET, 0);
            ioctl(c->fd[i], PERF_EVENT_IOC_ENABLE, 0);
        }
}

void bz_counters_stop(bz_counters *c, double calls, double *value)
{
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        if (c->fd[i] >= 0)
            ioctl(c->fd[i], PERF_EVENT_IOC_DISABLE, 0);
    for (int i = 0; i < BZ_N_COUNTERS; i++) {
        uint64_t n;
        bool got = c->fd[i] >= 0 && read(c->fd[i], &n, sizeof n) == (ssize_t)sizeof n;
        value[i] = got ? (double)n / calls : NAN;
    }
}

void bz_counters_close(bz_counters *c)
{
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        if (c->fd[i] >= 0)
            close(c->fd[i]);
}

bool bz_counters_explain(char out[160])
{
    int fd = open_event(EVENTS[0]);
    bool forbidden = fd < 0 && (errno == EACCES || errno == EPERM);
    if (fd >= 0) {
        close(fd);
        snprintf(out, 160, "ok");
    } else if (forbidden) {
        snprintf(out, 160, "not permitted: lower /proc/sys/kernel/perf_event_paranoid to 2 or less");
    } else if (errno == ENOENT || errno == EOPNOTSUPP || errno == ENODEV) {
        snprintf(out, 160, "this machine shows no hardware counters (as most virtual machines)");
    } else {
        snprintf(out, 160, "perf_event_open: %s", strerror(errno));
    }
    return forbidden;
}

double bz_clock_probe(void)
{
    uint64_t x = 1;
    double start = bz_now();
    for (int i = 0; i < 16384; i++) {
        x = x * 3 + 1; /* each waits for the one before it */
        __asm__ volatile("" : "+r"(x));
    }
    return bz_now() - start;
}

int64_t bz_throttle_count(void)
{
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "r");
    long long n = -1;
    if (!f)
        return -1;
    if (fscanf(f, "%lld", &n) != 1)
        n = -1;
    fclose(f);
    return n;
}
