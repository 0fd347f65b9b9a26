/* A copy of another machine's /proc and /sys, in pieces: a byte that chooses a file, its content, and 0xff. Whatever the files hold,
 * each check finds something to say, and gives advice where it warns. */
#include "bench/bench.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const FILES[] = {
    "proc/stat",
    "proc/loadavg",
    "proc/pressure/cpu",
    "proc/71/stat",
    "proc/72/stat",
    "proc/cpuinfo",
    "proc/self/cgroup",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/params",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/a/cpu.max",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/bus/pci/devices/a/vendor",
    "sys/bus/pci/devices/a/class",
};
enum { N = sizeof FILES / sizeof *FILES };

static FILE *open_file(int i)
{
    char path[200];
    int above = snprintf(path, sizeof path, "%s/", fuzz_folder());
    snprintf(path + above, sizeof path - (size_t)above, "%s", FILES[i]);
    for (char *p = strchr(path + above, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdir(path, 0777);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    if (!f)
        abort();
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_doctor d;
    int sum = 0;
    setenv("PATH", "/nowhere", 1); /* which compilers are here is no input */
    setenv("BENANZA_BENCH", "/bin/false", 1);
    for (int i = 0; i < N; i++)
        fclose(open_file(i));
    for (size_t at = 0; at < size;) {
        FILE *f = open_file(data[at++] % N);
        const uint8_t *end = memchr(data + at, 0xff, size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        fwrite(data + at, 1, n, f);
        fclose(f);
        at += n + 1;
    }
    bz_doctor_look(fuzz_folder(), fuzz_folder(), &d);
    for (int i = 0; i < BZ_DOCTOR_CHECKS; i++) {
        const bz_finding *f = &d.finding[i];
        PROMISE(*f->check && *f->found && f->health < BZ_HEALTHS);
        PROMISE(f->health < BZ_HEALTH_WARNING || f->advice);
    }
    for (int i = 0; i < BZ_HEALTHS; i++)
        sum += d.count[i];
    PROMISE(sum == BZ_DOCTOR_CHECKS);
    return 0;
}
