/* What is wrong with this machine for measuring, and what to do. A check is a function and a row of CHECKS; it looks below
 * `root`, so that tests, and people with a copy of another machine's /proc and /sys, can ask about that. */
#include "base/load.h"
#include "bench/bench.h"
#include "runtime/backends.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

typedef struct doctor {
    const char *root, *dir;
    bz_arena arena;
    bz_load load;
    const char *no_counters; /* why this machine has none; NULL: it has some, or nobody looked */
} doctor;

static void say(bz_finding *f, bz_health health, const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void say(bz_finding *f, bz_health health, const char *advice, const char *fmt, ...)
{
    va_list args;
    f->health = health;
    f->advice = advice;
    va_start(args, fmt);
    vsnprintf(f->found, sizeof f->found, fmt, args);
    va_end(args);
}

/* The first line of root/path; "" where there is none. */
static const char *first_line(const doctor *d, const char *path, char *out, size_t size)
{
    bz_load_text(d->root, path, out, size);
    out[strcspn(out, "\n")] = 0;
    return out;
}

/* The first line that `program --version` prints; NULL where it does not run. */
static const char *version_of(doctor *d, const char *program)
{
    char *argv[] = {(char *)program, "--version", NULL};
    BZ_SCOPED(bz_buf) out = {0};
    bz_error err;
    const char *version = NULL;
    if (!bz_bench_program(argv, true, &out, &err)) {
        char *text = bz_arena_strn(&d->arena, bz_buf_text(&out), out.len);
        text[strcspn(text, "\n")] = 0;
        version = text;
    }
    return version;
}

static void check_compiler(doctor *d, bz_finding *f)
{
    const char *own = getenv("CC"), *names[] = {own && *own ? own : "cc", "gcc", "clang"};
    for (int i = 0; i < 3; i++) {
        const char *version = version_of(d, names[i]);
        if (version) {
            say(f, BZ_HEALTH_GOOD, NULL, "%s: %s", names[i], version);
            return;
        }
        if (own && *own) {
            say(f, BZ_HEALTH_BAD, "CC names a compiler that does not run: unset it, or set it to one that does", "%s",
                own);
            return;
        }
    }
    say(f, BZ_HEALTH_BAD,
        "benchmarks are C files, so none can be built: install a C compiler (Debian: apt install gcc libc6-dev)",
        "there is no cc, gcc or clang");
}

static void check_build(doctor *d, bz_finding *f)
{
    const char *cmake = version_of(d, "cmake"), *ninja = version_of(d, "ninja");
    if (!cmake)
        say(f, BZ_HEALTH_BAD,
            "benchmarks are built with CMake, so none can be built: install it (Debian: apt install cmake)",
            "there is no cmake");
    else if (strncmp(cmake, "cmake ", 6) != 0)
        say(f, BZ_HEALTH_BAD, "benchmarks are built with CMake: set PATH so that it finds itself, or install it anew",
            "%s", cmake);
    else if (!ninja && !version_of(d, "make"))
        say(f, BZ_HEALTH_BAD, "CMake needs one of them to build benchmarks (Debian: apt install ninja-build)",
            "%s, but neither ninja nor make", cmake);
    else if (!ninja)
        say(f, BZ_HEALTH_WARNING, "make builds benchmarks more slowly (Debian: apt install ninja-build)",
            "%s, make, no ninja", cmake);
    else
        say(f, BZ_HEALTH_GOOD, NULL, "%s, ninja %s", cmake, ninja);
}

/* The libraries that measure, as the program that links them names them. */
static void check_libraries(doctor *d, bz_finding *f)
{
    bz_line line;
    bz_error err = {0};
    if (bz_bench_look(NULL, &d->arena, &line, &err)) {
        say(f, BZ_HEALTH_BAD,
            "the program benanza-bench does not run, so nothing can be measured: install benanza anew", "%s", err.text);
        return;
    }
    const bz_system_facts *facts = bz_system_facts_read(line.details, &d->arena);
    say(f, BZ_HEALTH_GOOD, NULL, "%s", *facts->versions ? facts->versions : line.system);
    if (*facts->counters && strcmp(facts->counters, "ok") != 0 && !*d->root)
        d->no_counters = facts->counters;
}

/* Names of programs whose tasks run or want to run, each once: ": cc1, python3". At most eight. */
static void name_runners(const doctor *d, char *out, size_t size)
{
    char path[600], text[1024], name[8][32];
    int n = 0, own = *d->root ? 0 : (int)getpid();
    snprintf(path, sizeof path, "%.500s/proc", d->root);
    DIR *proc = opendir(path);
    out[0] = 0;
    for (struct dirent *e; proc && n < 8 && (e = readdir(proc));) {
        char *end;
        long pid = strtol(e->d_name, &end, 10);
        if (*end || pid <= 0 || pid == own)
            continue;
        snprintf(path, sizeof path, "proc/%ld/stat", pid);
        if (bz_load_text(d->root, path, text, sizeof text))
            continue;
        char *open = strchr(text, '('), *close = strrchr(text, ')'); /* a name may hold both */
        if (!open || !close || close < open || strncmp(close, ") R", 3) != 0)
            continue;
        snprintf(name[n], sizeof name[n], "%.*s", (int)(close - open - 1), open + 1);
        int same = 0;
        while (strcmp(name[same], name[n]) != 0)
            same++;
        n += same == n;
    }
    for (int i = 0; i < n; i++) {
        size_t at = strlen(out);
        snprintf(out + at, size - at, "%s%s", i ? ", " : ": ", name[i]);
    }
    if (proc)
        closedir(proc);
}

/* On this machine it looks for a third of a second, and takes the quietest moment: others start and end all the time. */
static double look_at_load(doctor *d)
{
    bz_load before;
    bz_load_read(d->root, &before);
    d->load = before;
    if (*d->root)
        return before.total > 0 ? before.steal / before.total : 0;
    for (int i = 0; i < 3; i++) {
        int least = d->load.runnable;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        bz_load_read(d->root, &d->load);
        if (least < d->load.runnable)
            d->load.runnable = least;
    }
    return bz_load_stolen(&before, &d->load);
}

static void check_load(doctor *d, bz_finding *f)
{
    double stolen = look_at_load(d);
    const bz_load *l = &d->load;
    char who[300], more[120] = "";
    if (l->runnable < 0) {
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel does not tell what runs");
        return;
    }
    name_runners(d, who, sizeof who);
    if (l->pressure >= 0.005)
        snprintf(more, sizeof more, "; some task waited for a processor in %.0f %% of the last 10 s",
                 100 * l->pressure);
    if (!bz_load_has_room(l, 1))
        say(f, BZ_HEALTH_BAD,
            "what is measured now comes out too slow, and is marked busy: wait until they end, or stop them",
            "%d other task%s want%s the %d processor%s%s%s", l->runnable, l->runnable == 1 ? "" : "s",
            l->runnable == 1 ? "s" : "", l->processors, l->processors == 1 ? "" : "s", who, more);
    else if (stolen > 0.02)
        say(f, BZ_HEALTH_BAD,
            "the hypervisor gives this machine's time to others: measure on a machine or at a time without neighbours",
            "%.0f %% of the time is stolen", 100 * stolen);
    else if (l->runnable > 0 || l->pressure >= 0.1)
        say(f, BZ_HEALTH_WARNING,
            "they leave a processor free, but use the same memory and caches: stop them for exact figures",
            "%d other task%s run%s on %d processors%s%s", l->runnable, l->runnable == 1 ? "" : "s",
            l->runnable == 1 ? "s" : "", l->processors, who, more);
    else
        say(f, BZ_HEALTH_GOOD, NULL, "nothing else runs on %d processor%s%s", l->processors,
            l->processors == 1 ? "" : "s", more);
}

static void check_governor(doctor *d, bz_finding *f)
{
    char path[120], governor[64], other[64] = "", driver[64];
    int n = 0, slow = 0;
    for (int i = 0; i < 4096; i++) {
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i);
        if (!*first_line(d, path, governor, sizeof governor))
            break;
        n++;
        if (strcmp(governor, "performance") != 0) {
            slow++;
            snprintf(other, sizeof other, "%s", governor);
        }
    }
    first_line(d, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver, sizeof driver);
    bool own = strstr(driver, "pstate") != NULL; /* these raise the clock in powersave too, only later */
    if (!n)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel shows no clock governor, as in most virtual machines");
    else if (slow)
        say(f, !own && !strcmp(other, "powersave") ? BZ_HEALTH_BAD : BZ_HEALTH_WARNING,
            "the clock is low, or rises late, so that the same call takes longer: sudo cpupower frequency-set -g "
            "performance",
            "%s on %d of %d processors (%s)", other, slow, n, *driver ? driver : "no driver named");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "performance on all %d processors", n);
}

static void check_turbo(doctor *d, bz_finding *f)
{
    char off[16], boost[16];
    first_line(d, "sys/devices/system/cpu/intel_pstate/no_turbo", off, sizeof off);
    first_line(d, "sys/devices/system/cpu/cpufreq/boost", boost, sizeof boost);
    if (!*off && !*boost)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel does not tell whether the clock may rise above its base");
    else if (!strcmp(off, "1") || !strcmp(boost, "0"))
        say(f, BZ_HEALTH_WARNING,
            "measurements repeat well, but are slower than programs on a machine with turbo: leave it as programs will "
            "have it",
            "off");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "on");
}

static void check_smt(doctor *d, bz_finding *f)
{
    char active[16];
    first_line(d, "sys/devices/system/cpu/smt/active", active, sizeof active);
    if (!*active)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel does not tell whether processors share cores");
    else if (!strcmp(active, "1"))
        say(f, BZ_HEALTH_GOOD, "use at most as many threads as there are cores: --threads",
            "on: two processors share a core");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "off: each processor is a core");
}

/* The least quota of the processes' group and those above it, in processors; INFINITY for none. */
static double quota(const doctor *d)
{
    char group[512], path[640], text[64];
    double least = INFINITY, used, period;
    first_line(d, "proc/self/cgroup", group, sizeof group);
    if (strncmp(group, "0::/", 4) != 0)
        return least;
    for (char *end = group + strlen(group); end > group + 2; *end = 0) {
        snprintf(path, sizeof path, "sys/fs/cgroup%s/cpu.max", group + 3);
        if (!bz_load_text(d->root, path, text, sizeof text) && sscanf(text, "%lf %lf", &used, &period) == 2 &&
            period > 0)
            least = fmin(least, used / period);
        end = strrchr(group + 3, '/');
        if (!end)
            break;
    }
    return least;
}

static void check_processors(doctor *d, bz_finding *f)
{
    cpu_set_t set;
    int online = d->load.processors, own = online;
    double limit = quota(d);
    if (!*d->root && !sched_getaffinity(0, sizeof set, &set))
        own = CPU_COUNT(&set);
    if (limit < 1)
        say(f, BZ_HEALTH_BAD, "even one thread is stopped again and again: raise cpu.max of the control group",
            "the control group may use %.2g processors", limit);
    else if (limit < own)
        say(f, BZ_HEALTH_WARNING,
            "more threads than that are stopped again and again: use --threads within it, or raise cpu.max",
            "%d online, the control group may use %.3g", online, limit);
    else if (own < online)
        say(f, BZ_HEALTH_WARNING,
            "that is fine when they are ours alone (taskset, a batch system): use no more threads than that",
            "%d online, this process may use %d", online, own);
    else
        say(f, BZ_HEALTH_GOOD, NULL, "%d online, no limits", online);
}

/* Whether the processor's list has one of these words. */
static bool has_any(const char *list, const char *const *word)
{
    for (; *word; word++)
        for (const char *at = list; (at = strstr(at, *word)); at++)
            if (at[-1] == ' ' && strchr(" \n", at[strlen(*word)]))
                return true;
    return false;
}

/* What the processor multiplies by an instruction of its own. Linux names the instructions of x86 in "flags", of ARM in "Features". */
static void check_types(doctor *d, bz_finding *f)
{
    static const char *const BF16[] = {"avx512_bf16", "amx_bf16", "bf16", NULL}, *const BYTES[] = {
                                                                                     "avx512_vnni", "avx_vnni",
                                                                                     "amx_int8",    "asimddp",
                                                                                     "i8mm",        NULL};
    char text[16384];
    const char *list = NULL;
    if (!bz_load_text(d->root, "proc/cpuinfo", text, sizeof text)) {
        list = strstr(text, "\nflags");
        list = list ? list : strstr(text, "\nFeatures");
        text[list ? (size_t)(list - text) + 1 + strcspn(list + 1, "\n") + 1 : 0] = 0;
    }
    bool bf16 = list && has_any(list, BF16), bytes = list && has_any(list, BYTES);
    if (!list)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel does not tell which data types the processor multiplies");
    else
        say(f, BZ_HEALTH_GOOD,
            bytes ? NULL
                  : "oneDNN halves signed weights of 8 bits here, so that sums fit in 16 bits: odd weights lose a bit",
            "f32%s%s%s%s", bf16 ? ", bf16" : "", bytes ? ", i8" : "",
            bf16 && bytes ? "" : "; no instruction for products in ",
            bf16    ? bytes ? "" : "i8"
            : bytes ? "bf16"
                    : "bf16 and i8");
}

static void check_pages(doctor *d, bz_finding *f)
{
    char text[120], chosen[32] = "";
    first_line(d, "sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    sscanf(text, "%*[^[][%31[^]]", chosen);
    if (text[0] == '[')
        sscanf(text, "[%31[^]]", chosen);
    if (!*chosen)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel does not tell");
    else if (!strcmp(chosen, "never"))
        say(f, BZ_HEALTH_WARNING,
            "the same call differs by several percent from run to run: echo madvise | sudo tee "
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "never");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "%s", chosen);
}

static void check_clock(doctor *d, bz_finding *f)
{
    static const char *const SLOW[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
    char source[64];
    first_line(d, "sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
    say(f, *source ? BZ_HEALTH_GOOD : BZ_HEALTH_UNKNOWN, NULL, "%s", *source ? source : "the kernel does not tell");
    for (size_t i = 0; i < sizeof SLOW / sizeof *SLOW; i++)
        if (!strcmp(source, SLOW[i]))
            say(f, BZ_HEALTH_WARNING,
                "reading it takes microseconds, so short calls are measured badly: boot with clocksource=tsc", "%s",
                source);
}

static void check_counters(doctor *d, bz_finding *f)
{
    char text[32], *end;
    first_line(d, "proc/sys/kernel/perf_event_paranoid", text, sizeof text);
    long level = strtol(text, &end, 10);
    if (end == text)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "the kernel has no perf_event");
    else if (level > 2 && (*d->root || geteuid()))
        say(f, BZ_HEALTH_WARNING,
            "records have no cycles, instructions or cache misses: sudo sysctl kernel.perf_event_paranoid=2",
            "perf_event_paranoid is %ld", level);
    else if (d->no_counters)
        say(f, BZ_HEALTH_UNKNOWN, NULL, "%s", d->no_counters);
    else
        say(f, BZ_HEALTH_GOOD, NULL, "perf_event_paranoid is %ld", level);
}

/* Whether a card by NVIDIA sits in the machine, with a driver or without. */
static bool has_card(const doctor *d)
{
    char path[700], vendor[32], class[32];
    bool any = false;
    snprintf(path, sizeof path, "%.500s/sys/bus/pci/devices", d->root);
    DIR *devices = opendir(path);
    for (struct dirent *e; devices && !any && (e = readdir(devices));) {
        snprintf(path, sizeof path, "sys/bus/pci/devices/%s/vendor", e->d_name);
        first_line(d, path, vendor, sizeof vendor);
        snprintf(path, sizeof path, "sys/bus/pci/devices/%s/class", e->d_name);
        first_line(d, path, class, sizeof class);
        any = !strcmp(vendor, "0x10de") && !strncmp(class, "0x03", 4);
    }
    if (devices)
        closedir(devices);
    return any;
}

static void check_gpu(doctor *d, bz_finding *f)
{
    char version[300];
    bz_line line = {0};
    bz_error err = {0};
    first_line(d, "proc/driver/nvidia/version", version, sizeof version);
    const char *number = strstr(version, "Module");
    bool there = !*d->root && !bz_bench_look(bz_backend_of_device(), &d->arena, &line, &err);
    const bz_system_facts *facts = bz_system_facts_read(there ? line.details : NULL, &d->arena);
    if (there && *facts->absent)
        say(f, BZ_HEALTH_WARNING,
            "calls of a library that is missing are not measured: layers that only it computes stay without a price",
            "%s, %s; %s", facts->name, line.system, facts->absent);
    else if (there)
        say(f, BZ_HEALTH_GOOD, NULL, "%s, %s", facts->name, line.system);
    else if (*version && !*d->root)
        say(f, BZ_HEALTH_WARNING, "the processor can be measured all the same", "%s", err.text);
    else if (*version)
        say(f, BZ_HEALTH_GOOD, NULL, "NVIDIA driver %s",
            number ? number + strlen("Module") + strspn(number + strlen("Module"), " ") : version);
    else if (has_card(d))
        say(f, BZ_HEALTH_BAD,
            "no driver is loaded for it, so nothing can be measured on it: install NVIDIA's driver, then sudo modprobe "
            "nvidia",
            "there is an NVIDIA GPU");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "there is none by NVIDIA");
}

static void check_cupti(doctor *d, bz_finding *f)
{
    char text[4096];
    bz_load_text(d->root, "proc/driver/nvidia/params", text, sizeof text);
    const char *only = strstr(text, "RmProfilingAdminOnly:");
    if (!*text)
        say(f, BZ_HEALTH_GOOD, NULL, "not needed without a GPU");
    else if (only && strtol(only + strlen("RmProfilingAdminOnly:"), NULL, 10) && (*d->root || geteuid()))
        say(f, BZ_HEALTH_WARNING,
            "--metrics cannot count: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into "
            "/etc/modprobe.d/nvidia-profiling.conf and boot again, or run as root",
            "only root may read the GPU's counters");
    else
        say(f, BZ_HEALTH_GOOD, NULL, "the GPU's counters may be read");
}

/* Free bytes where the folder is, or will be: in the nearest folder above it that is there. `closed`: nothing can be written there, and why. */
static double free_bytes(const char *dir, const char **closed)
{
    char path[4200];
    struct statvfs fs;
    snprintf(path, sizeof path, "%s", dir);
    while (statvfs(path, &fs)) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || !strcmp(path, "."))
            return NAN;
        if (!slash) {
            strcpy(path, ".");
            continue;
        }
        slash[slash == path] = 0;
        if (slash == path && statvfs(path, &fs))
            return NAN;
    }
    *closed = access(path, W_OK) ? strerror(errno) : NULL;
    return (double)fs.f_bavail * (double)fs.f_frsize;
}

static void check_database(doctor *d, bz_finding *f)
{
    BZ_FREED char *where = bz_perfdb_where(d->dir);
    const char *file = bz_arena_printf(&d->arena, "%s/data.mdb", where);
    const char *closed = NULL;
    double left = free_bytes(where, &closed);
    bz_unit_text text;
    bz_error err = {0};
    bz_perfdb *db = NULL;
    if (!access(file, F_OK) && bz_perfdb_open(&db, where, &(bz_perfdb_options){.read_only = true}, &err))
        say(f, BZ_HEALTH_BAD, "nothing can be looked up or stored", "%s", err.text);
    else if (closed)
        say(f, BZ_HEALTH_BAD, "records cannot be stored there: name another folder (--db, $BENANZA_DB)", "%s: %s",
            where, closed);
    else if (left < 1e8)
        say(f, BZ_HEALTH_BAD, "records cannot be stored: make room, or name another folder (--db, $BENANZA_DB)",
            "%s: %s free", where, bz_units_bytes(text, left));
    else if (left < 1e9)
        say(f, BZ_HEALTH_WARNING, "a database of all models takes some hundred MB: make room", "%s: %s free", where,
            bz_units_bytes(text, left));
    else
        say(f, BZ_HEALTH_GOOD, NULL, "%s%s%s", where, access(file, F_OK) ? " (made by the first bound)" : "",
            isnan(left) ? "" : ", room enough");
    bz_perfdb_close(db);
}

/* Benchmarks are built in the folder for temporary files, and run there. */
static void check_temporary(doctor *d, bz_finding *f)
{
    char file[BZ_FOLDER_MAX];
    bz_error err = {0};
    int fd = bz_folder_file(file, &err);
    if (fd < 0) {
        say(f, BZ_HEALTH_BAD, "benchmarks are built there: set TMPDIR to a folder that can be written", "%s", err.text);
        return;
    }
    bool runs = !fchmod(fd, 0700) && !access(file, X_OK);
    close(fd);
    bz_folder_remove(file);
    const char *where = bz_arena_strn(&d->arena, file, (size_t)(strrchr(file, '/') - file));
    const char *closed = NULL; /* a file was made there */
    double left = free_bytes(where, &closed);
    bz_unit_text text;
    if (!runs)
        say(f, BZ_HEALTH_BAD, "benchmarks are built and run there: set TMPDIR to a folder on another file system",
            "no program can be run in %s: its file system is mounted noexec", where);
    else if (left < 2e8)
        say(f, BZ_HEALTH_BAD, "benchmarks are built there: make room, or set TMPDIR to another folder", "%s: %s free",
            where, bz_units_bytes(text, left));
    else
        say(f, BZ_HEALTH_GOOD, NULL, "%s%s", where, isnan(left) ? "" : ", room enough");
}

static const struct {
    const char *name;
    void (*look)(doctor *d, bz_finding *f);
} CHECKS[] = {
    {"compiler", check_compiler},
    {"build", check_build},
    {"libraries", check_libraries},
    {"load", check_load},
    {"governor", check_governor},
    {"turbo", check_turbo},
    {"hyper-threads", check_smt},
    {"processors", check_processors},
    {"data types", check_types},
    {"huge pages", check_pages},
    {"clock", check_clock},
    {"counters", check_counters},
    {"GPU", check_gpu},
    {"CUPTI", check_cupti},
    {"database", check_database},
    {"temporary files", check_temporary},
};
_Static_assert(sizeof CHECKS / sizeof *CHECKS == BZ_DOCTOR_CHECKS, "a finding for each check");

void bz_doctor_look(const char *root, const char *db, bz_doctor *out)
{
    doctor d = {.root = root, .dir = db};
    *out = (bz_doctor){0};
    for (int i = 0; i < BZ_DOCTOR_CHECKS; i++) {
        out->finding[i].check = CHECKS[i].name;
        CHECKS[i].look(&d, &out->finding[i]);
        out->count[out->finding[i].health]++;
    }
    bz_arena_free(&d.arena);
}
