/* The doctor looks at made-up machines; what it must find is written here once more, check by check. */
#include "tests/unit/perfdb_test.h"

#include "base/whole.h"
#include "bench/bench.h"

#include <sys/stat.h>

static uint64_t chance_state = 3;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static char root[4096];

/* Writes root/path with the folders above it; NULL removes it. */
static void machine(const char *path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void machine(const char *path, const char *fmt, ...)
{
    char full[5000];
    snprintf(full, sizeof full, "%s/%s", root, path);
    if (!fmt) {
        unlink(full);
        return;
    }
    for (char *p = strchr(full + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    bz_buf b = {0};
    va_list args;
    va_start(args, fmt);
    char text[1000];
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    bz_buf_puts(&b, text);
    assert_ok(bz_whole_write(full, &b, &err));
    bz_buf_free(&b);
}

static const char *pick(const char *const *of, unsigned n)
{
    return of[chance(n)];
}
#define PICK(...)                                                                                                      \
    pick((const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))

static bz_doctor found;

static void finds(const char *check, bz_health health, const char *words)
{
    for (int i = 0; i < BZ_DOCTOR_CHECKS; i++) {
        const bz_finding *f = &found.finding[i];
        if (strcmp(f->check, check) != 0)
            continue;
        if (f->health != health || !strstr(f->found, words) || (health >= BZ_HEALTH_WARNING && !f->advice))
            fail_msg("%s: %d '%s', not %d '%s'", check, (int)f->health, f->found, (int)health, words);
        return;
    }
    fail();
}

/* Tasks that run beside us, and time that others take away; returns how many processors there are. */
static int load(char text[400], bz_health *health)
{
    int processors = 1 + (int)chance(3), others = chance(2) ? (int)chance(5) : 0, stolen = (int)chance(5),
        pressure = chance(2) ? (int)chance(20) : 10; /* 10: the border */
    bool told = chance(8);
    const char *names[] = {"cc1", "a) R b", "cc1", "py"};
    machine("proc/loadavg", told ? "0.5 0.5 0.5 %d/70 99\n" : NULL, others + 1);
    machine("proc/stat", "cpu  0 0 0 %d 0 0 0 %d 0 0\n%s%s%sintr 1\n", 100 - stolen, stolen, "cpu0 1\n",
            processors > 1 ? "cpu1 1\n" : "", processors > 2 ? "cpu2 1\n" : "");
    machine("proc/pressure/cpu", "some avg10=%d.00 avg60=0 avg300=0 total=1\n", pressure);
    for (int i = 0; i < 4; i++)
        machine(((const char *const[]){"proc/71/stat", "proc/72/stat", "proc/73/stat", "proc/74/stat"})[i],
                i < others ? "%d (%s) R 1\n" : "%d (%s) S 1\n", 71 + i, names[i]);
    bool bad = others && others + 1 > processors, warns = others || (pressure >= 10 && stolen <= 2);
    const char *plural = others == 1 ? "" : "s";
    *health = !told               ? BZ_HEALTH_UNKNOWN
              : bad || stolen > 2 ? BZ_HEALTH_BAD
              : warns             ? BZ_HEALTH_WARNING
                                  : BZ_HEALTH_GOOD;
    if (!told)
        strcpy(text, "does not tell");
    else if (bad)
        snprintf(text, 400, "%d other task%s want%s the %d processor%s: ", others, plural, others == 1 ? "s" : "",
                 processors, processors == 1 ? "" : "s");
    else if (stolen > 2)
        snprintf(text, 400, "%d %% of the time is stolen", stolen);
    else if (warns)
        snprintf(text, 400, "%d other task%s run%s on %d processors%s", others, plural, others == 1 ? "s" : "",
                 processors, others ? ": " : "; some task waited");
    else
        snprintf(text, 400, "nothing else runs on %d processor%s%s", processors, processors == 1 ? "" : "s",
                 pressure ? "; some task waited" : "");
    return processors;
}

static void test_made_up_machines(void **state)
{
    snprintf(root, sizeof root, "%s", (char *)*state);
    for (int i = 0; i < 50; i++) {
        char busy[400], text[400];
        setenv("TMPDIR", i % 2 ? "/nowhere" : root, 1);
        bz_health health;
        int processors = load(busy, &health);
        const char *governor = PICK("performance", "powersave", "schedutil", NULL),
                   *driver = PICK("acpi-cpufreq", "intel_pstate", NULL);
        int slow = (int)chance(3); /* of two */
        for (int k = 0; k < 2; k++)
            machine(k ? "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
                      : "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                    governor ? "%s\n" : NULL, k < slow ? governor : "performance");
        machine("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver ? "%s\n" : NULL, driver);
        const char *no_turbo = PICK("0", "1", NULL), *boost = PICK("0", "1", NULL), *smt = PICK("0", "1", NULL);
        machine("sys/devices/system/cpu/intel_pstate/no_turbo", no_turbo ? "%s\n" : NULL, no_turbo);
        machine("sys/devices/system/cpu/cpufreq/boost", boost ? "%s\n" : NULL, boost);
        machine("sys/devices/system/cpu/smt/active", smt ? "%s\n" : NULL, smt);
        double own = 0.5 * chance(8), above = 0.5 * chance(8), limit = INFINITY; /* quotas; 0: none */
        bool grouped = chance(4);
        machine("proc/self/cgroup", grouped ? "0::/a/b\n" : "1:cpu:/a/b\n");
        machine("sys/fs/cgroup/a/b/cpu.max", own > 0 ? "%.0f 100000\n" : "max 100000\n", own * 1e5);
        machine("sys/fs/cgroup/a/cpu.max", above > 0 ? "%.0f 100000\n" : NULL, above * 1e5);
        for (int k = 0; k < 2 && grouped; k++)
            limit = k ? above > 0 ? fmin(limit, above) : limit : own > 0 ? own : limit;
        const char *word =
                       PICK("avx512_bf16", "avx_vnni", "amx_bf16 amx_int8", "i8mm bf16", "fma bf16x", "xi8mm", NULL),
                   *kind = PICK("flags", "Features");
        machine("proc/cpuinfo", word ? "processor : 0\n%s\t\t: fpu %s\nbugs : bf16 i8mm\n" : NULL, kind, word);
        const char *pages = PICK("[always] madvise never", "always [madvise] never", "always madvise [never]", NULL);
        machine("sys/kernel/mm/transparent_hugepage/enabled", pages ? "%s\n" : NULL, pages);
        const char *clock = PICK("tsc", "hpet", "acpi_pm", "kvm-clock", NULL);
        machine("sys/devices/system/clocksource/clocksource0/current_clocksource", clock ? "%s\n" : NULL, clock);
        int paranoid = (int)chance(6) - 1; /* 4: the kernel has none */
        machine("proc/sys/kernel/perf_event_paranoid", paranoid < 4 ? "%d\n" : NULL, paranoid);
        const char *module = PICK(" Module  550.54.15  Tue", NULL), *vendor = PICK("0x10de", "0x1002", NULL),
                   *class = PICK("0x030000", "0x040300"), *only = PICK("0", "1", NULL);
        machine("proc/driver/nvidia/version", module ? "NVRM version: NVIDIA UNIX x86_64 Kernel%s\n" : NULL, module);
        machine("sys/bus/pci/devices/0000:01/vendor", vendor ? "%s\n" : NULL, vendor);
        machine("sys/bus/pci/devices/0000:01/class", "%s\n", class);
        machine("proc/driver/nvidia/params", module ? "A: 1\n%s%s\n" : NULL, only ? "RmProfilingAdminOnly: " : "B: 1",
                only ? only : "");

        /* the file system of a folder that is not there is that of the nearest one above it */
        const char *db = PICK("/nowhere/at/all", "/nowhere", "nowhere/at/all", "nowhere", below(state, "db"));
        bz_doctor_look(root, db, &found);
        for (int k = 0; k < BZ_DOCTOR_CHECKS; k++)
            if (!strcmp(found.finding[k].check, "database"))
                assert_true(!strncmp(found.finding[k].found, db, strlen(db)) &&
                            (strstr(found.finding[k].found, "room enough") || strstr(found.finding[k].found, " free")));
        finds("load", health, busy);
        bool low = governor && slow && strcmp(governor, "performance") != 0;
        snprintf(text, sizeof text,
                 low        ? "%s on %d of 2 processors (%s)"
                 : governor ? "performance on all 2"
                            : "no clock governor",
                 governor ? governor : "", slow, driver ? driver : "no driver named");
        finds("governor",
              !governor                                                               ? BZ_HEALTH_UNKNOWN
              : !low                                                                  ? BZ_HEALTH_GOOD
              : strcmp(governor, "powersave") || (driver && strstr(driver, "pstate")) ? BZ_HEALTH_WARNING
                                                                                      : BZ_HEALTH_BAD,
              text);
        bool off = (no_turbo && *no_turbo == '1') || (boost && *boost == '0');
        finds("turbo",
              !no_turbo && !boost ? BZ_HEALTH_UNKNOWN
              : off               ? BZ_HEALTH_WARNING
                                  : BZ_HEALTH_GOOD,
              off                 ? "off"
              : no_turbo || boost ? "on"
                                  : "");
        finds("hyper-threads", smt ? BZ_HEALTH_GOOD : BZ_HEALTH_UNKNOWN, !smt ? "" : *smt == '1' ? "on:" : "off:");
        snprintf(text, sizeof text,
                 limit < 1            ? "may use %.2g"
                 : limit < processors ? "may use %.3g"
                                      : "no limits",
                 limit);
        finds("processors", limit < 1 ? BZ_HEALTH_BAD : limit < processors ? BZ_HEALTH_WARNING : BZ_HEALTH_GOOD, text);
        bool bf16 = word && (strstr(word, "_bf16") || strstr(word, " bf16\0")) && !strstr(word, "bf16x"),
             bytes = word && (strstr(word, "vnni") || strstr(word, "int8") || !strncmp(word, "i8mm", 4));
        finds("data types", word ? BZ_HEALTH_GOOD : BZ_HEALTH_UNKNOWN,
              !word           ? ""
              : bf16 && bytes ? "f32, bf16, i8"
              : bf16          ? "f32, bf16; no instruction for products in i8"
              : bytes         ? "f32, i8; no instruction for products in bf16"
                              : "f32; no instruction for products in bf16 and i8");
        bool never = pages && strstr(pages, "[never]");
        finds("huge pages",
              !pages  ? BZ_HEALTH_UNKNOWN
              : never ? BZ_HEALTH_WARNING
                      : BZ_HEALTH_GOOD,
              !pages          ? ""
              : never         ? "never"
              : *pages == '[' ? "always"
                              : "madvise");
        bool late = clock && (*clock == 'h' || *clock == 'a');
        finds("clock", !clock ? BZ_HEALTH_UNKNOWN : late ? BZ_HEALTH_WARNING : BZ_HEALTH_GOOD, clock ? clock : "");
        snprintf(text, sizeof text, "perf_event_paranoid is %d", paranoid);
        finds("counters",
              paranoid > 3   ? BZ_HEALTH_UNKNOWN
              : paranoid > 2 ? BZ_HEALTH_WARNING
                             : BZ_HEALTH_GOOD,
              paranoid > 3 ? "" : text);
        bool card = vendor && !strcmp(vendor, "0x10de") && !strcmp(class, "0x030000");
        finds("GPU", !module && card ? BZ_HEALTH_BAD : BZ_HEALTH_GOOD,
              module ? "NVIDIA driver 550.54.15  Tue"
              : card ? "there is an"
                     : "there is none");
        finds("CUPTI", module && only && *only == '1' ? BZ_HEALTH_WARNING : BZ_HEALTH_GOOD,
              !module                ? "not needed"
              : only && *only == '1' ? "only root"
                                     : "may be read");
        finds("compiler", BZ_HEALTH_BAD, "there is no cc, gcc or clang");
        finds("build", BZ_HEALTH_BAD, "there is no cmake");
        finds("libraries", BZ_HEALTH_BAD, "/nowhere");
        finds("temporary files", i % 2 ? BZ_HEALTH_BAD : BZ_HEALTH_GOOD, i % 2 ? "/nowhere" : root);
        int count[BZ_HEALTHS] = {0};
        for (int k = 0; k < BZ_DOCTOR_CHECKS; k++)
            count[found.finding[k].health]++;
        assert_memory_equal(count, found.count, sizeof count);
    }
}

int main(void)
{
    setenv("PATH", "/nowhere", 1);
    setenv("BENANZA_BENCH", "/nowhere/benanza-bench", 1);
    unsetenv("CC");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made_up_machines, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
