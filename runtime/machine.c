/* What machine this is. */
#include "runtime/backend.h"
#include "runtime/counters.h"

#include "base/load.h"
#include "base/member.h"
#include "base/units.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Generations, for processors that do not tell their product: a virtual machine often shows no more, and those of ARM tell
 * who made them ("arm41": ARM itself) and a number (the model here). */
static const struct {
    const char *vendor, *slug;
    int family, model_from, model_to;
} GENERATIONS[] = {
    {"AuthenticAMD", "epyc-7xx1", 23, 0x01, 0x01},
    {"AuthenticAMD", "epyc-7xx2", 23, 0x31, 0x31},
    {"AuthenticAMD", "epyc-7xx3", 25, 0x00, 0x01},
    {"AuthenticAMD", "epyc-9xx4", 25, 0x10, 0x1f},
    {"AuthenticAMD", "epyc-97x4", 25, 0xa0, 0xaf},
    {"AuthenticAMD", "epyc-9xx5", 26, 0x00, 0x1f},
    {"GenuineIntel", "xeon-haswell", 6, 63, 63},
    {"GenuineIntel", "xeon-broadwell", 6, 79, 79},
    {"GenuineIntel", "xeon-skylake", 6, 85, 85},
    {"GenuineIntel", "xeon-icelake", 6, 106, 108},
    {"GenuineIntel", "xeon-sapphirerapids", 6, 143, 143},
    {"GenuineIntel", "xeon-emeraldrapids", 6, 207, 207},
    {"GenuineIntel", "xeon-graniterapids", 6, 173, 174},
    {"arm41", "cortex-a72", 0, 0xd08, 0xd08},
    {"arm41", "neoverse-n1", 0, 0xd0c, 0xd0c},
    {"arm41", "neoverse-v1", 0, 0xd40, 0xd40},
    {"arm41", "neoverse-n2", 0, 0xd49, 0xd49},
    {"arm41", "neoverse-v2", 0, 0xd4f, 0xd4f},
    {"arm41", "neoverse-v3", 0, 0xd84, 0xd84},
    {"arm41", "neoverse-n3", 0, 0xd8e, 0xd8e},
    {"arm46", "a64fx", 0, 0x001, 0x001},
    {"arm48", "kunpeng-920", 0, 0xd01, 0xd01},
    {"armc0", "ampere-1", 0, 0xac3, 0xac4},
};

/* Words of a brand string that say nothing about the product. */
static bool is_filler(const char *word, size_t n)
{
    static const char *const FILLERS[] = {"Intel(R)", "AMD",      "CPU",  "Processor", "with",   "Radeon", "Graphics",
                                          "Gen",      "Platinum", "Gold", "Silver",    "Bronze", "PRO"};
    for (size_t i = 0; i < sizeof FILLERS / sizeof *FILLERS; i++)
        if (strlen(FILLERS[i]) == n && !strncmp(word, FILLERS[i], n))
            return true;
    bool ordinal = isdigit((unsigned char)word[0]) && n > 2 && !strncmp(word + n - 2, "th", 2);
    return ordinal || (n > 5 && !strncmp(word + n - 5, "-Core", 5)); /* "13th", "96-Core" */
}

/* "Xeon(R)" → "xeon", "E5-2690" → "e5-2690". Returns the length. */
static size_t add_word(const char *word, size_t n, char *out, size_t at, size_t size)
{
    if (at && at + 1 < size)
        out[at++] = '-';
    for (size_t i = 0; i < n && at + 1 < size; i++) {
        if (word[i] == '(') {
            while (i < n && word[i] != ')')
                i++;
            continue;
        }
        if (isalnum((unsigned char)word[i]) || word[i] == '-' || word[i] == '.')
            out[at++] = (char)tolower((unsigned char)word[i]);
    }
    out[at] = 0;
    return at;
}

void bz_machine_slug(const char *vendor, const char *brand, int family, int model, int stepping, char out[64])
{
    size_t at = 0;
    bool product = false;
    out[0] = 0;
    for (const char *p = brand; *p && *p != '@';) {
        size_t n = strcspn(p, " @");
        if (n && !is_filler(p, n)) {
            at = add_word(p, n, out, at, 48);
            for (size_t i = 0; i < n; i++)
                product |= isdigit((unsigned char)p[i]) != 0;
        }
        p += n;
        p += strspn(p, " ");
    }
    if (product && strchr(out, '-'))
        return;
    for (size_t i = 0; i < sizeof GENERATIONS / sizeof *GENERATIONS; i++)
        if (!strcmp(GENERATIONS[i].vendor, vendor) && GENERATIONS[i].family == family &&
            model >= GENERATIONS[i].model_from && model <= GENERATIONS[i].model_to) {
            snprintf(out, 64, "%s", GENERATIONS[i].slug);
            return;
        }
    char name[32] = "cpu";
    add_word(vendor, strlen(vendor), name, 0, 20);
    snprintf(out, 64, "%s-%d-%d-%d", name[0] ? name : "cpu", family, model, stepping);
}

#ifdef __x86_64__
static void identify_processor(bz_machine *s)
{
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    memcpy(s->vendor, &b, 4);
    memcpy(s->vendor + 4, &d, 4);
    memcpy(s->vendor + 8, &c, 4);
    __cpuid(1, a, b, c, d);
    s->family = (int)(a >> 8 & 15);
    s->model = (int)(a >> 4 & 15);
    s->stepping = (int)(a & 15);
    if (s->family == 6 || s->family == 15)
        s->model |= (int)(a >> 16 & 15) << 4;
    if (s->family == 15)
        s->family += (int)(a >> 20 & 255);
    s->virtual_machine = c >> 31;
    if (s->virtual_machine) {
        __cpuid(0x40000000, a, b, c, d);
        memcpy(s->hypervisor, &b, 4);
        memcpy(s->hypervisor + 4, &c, 4);
        memcpy(s->hypervisor + 8, &d, 4);
    }
}
#else
static void identify_processor(bz_machine *s)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    unsigned v;
    snprintf(s->vendor, sizeof s->vendor, "cpu");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "CPU implementer : %x", &v) == 1)
            snprintf(s->vendor, sizeof s->vendor, "arm%02x", v);
        else if (sscanf(line, "CPU part : %x", &v) == 1)
            s->model = (int)v;
        else if (sscanf(line, "CPU variant : %x", &v) == 1)
            s->stepping = (int)v;
    }
    if (f)
        fclose(f);
}
#endif

static void identify_software(bz_machine *s)
{
    struct utsname u;
    BZ_SCOPED(bz_buf) stack = {0};
    if (!uname(&u))
        snprintf(s->kernel, sizeof s->kernel, "%.20s %.40s %.20s", u.sysname, u.release, u.machine);
    for (const bz_backend *const *b = bz_builtin_backends; *b; b++) {
        BZ_SCOPED(bz_buf) one = {0};
        (*b)->version(&one);
        if (one.len && stack.len)
            bz_buf_putc(&stack, '+');
        bz_buf_puts(&stack, bz_buf_text(&one));
    }
    snprintf(s->stack, sizeof s->stack, "%s", bz_buf_text(&stack));
    bz_processor_versions(&stack);
    snprintf(s->versions, sizeof s->versions, "%s benanza%s", bz_buf_text(&stack), BENANZA_VERSION);
    bz_counters_explain(s->counters);
}

void bz_machine_identify(bz_machine *s)
{
    *s = (bz_machine){0};
    identify_processor(s);
    bz_processor_name("", s->model_name, sizeof s->model_name);
    bz_processor_look(s);
    identify_software(s);
    bz_machine_slug(s->vendor, s->model_name, s->family, s->model, s->stepping, s->slug);
}

typedef struct best_sample {
    double seconds;
    bool busy; /* others used the machine while its variant was measured */
} best_sample;

/* Peaks are what nothing may exceed: the best sample counts, not the median. */
static void keep_best(void *context, const bz_outcome *r)
{
    best_sample *best = context;
    if (r->status == BZ_STATUS_OK && !(r->stats.min > best->seconds))
        *best = (best_sample){r->stats.min, r->busy};
}

/* Seconds to spend on each variant; how often what a slow phase may have lengthened is measured again, in all. Chosen, not measured:
 * a busy machine takes half as long again, and what is left then is marked. */
static const double PEAK_TIME = 0.1;
enum { PEAKS_AGAIN = 12 };

typedef struct peak_run {
    bz_machine *machine;
    bz_run_options options;
    int again; /* tries that are left */
} peak_run;

/* Seconds of the fastest variant of a problem in any of the layouts; NaN where none runs. */
static double fastest(const char *text, const char *backend, peak_run *run, bz_error *err)
{
    best_sample best = {NAN, false};
    bz_problem p;
    bz_run_options own = run->options;
    own.emit = keep_best;
    own.context = &best;
    if (bz_problem_parse(text, &p, err))
        return -1;
    bz_family families[] = {{&p, backend, "plain", "default"}, {&p, backend, "packed", "default"}};
    do {
        best.busy = false;
        if (bz_run(families, 2, &own, err))
            return -1;
    } while (best.busy && run->again-- > 0);
    run->machine->busy |= best.busy;
    return best.seconds;
}

static void add_rate(bz_rate *list, int *n, const char *what, double rate)
{
    if (isnan(rate))
        return; /* not on this machine */
    snprintf(list[*n].what, sizeof list->what, "%s", what);
    list[(*n)++].value = rate;
}

/* A product large enough to be limited by arithmetic, small enough to stay in the caches. */
static int measure_flops(bz_machine *s, peak_run *run, bz_error *err)
{
    enum { EDGE = 512 };
    static const struct {
        const char *name, *backend, *dtype;
    } TYPES[] = {
        {"f32", "onednn", "f32"},      {"bf16", "onednn", "bf16"}, {"f16", "onednn", "f16"},
        {"i8", "onednn", "u8:i8:i32"}, {"f64", "cblas", "f64"},
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        char text[100];
        snprintf(text, sizeof text, "gemm m=%d n=%d k=%d transb=1 dtype=%s", EDGE, EDGE, EDGE, TYPES[i].dtype);
        double seconds = fastest(text, TYPES[i].backend, run, err);
        if (seconds < 0)
            return -1;
        add_rate(s->flops, &s->n_flops, TYPES[i].name, 2.0 * EDGE * EDGE * EDGE / seconds);
    }
    return 0;
}

/* Seconds for a tensor that stays in the caches. */
enum { MOVED = 256 * 16 * 16 };
static double move(const char *to, const char *from_type, const char *to_type, peak_run *run, bz_error *err)
{
    char text[100];
    snprintf(text, sizeof text, "reorder x=1x256x16x16 from=plain to=%s dtype=%s:%s:%s", to, from_type, from_type,
             to_type);
    return fastest(text, "onednn", run, err);
}

/* What the library's code for a type takes: it is not as good for each. */
static int measure_moves(bz_machine *s, peak_run *run, bz_error *err)
{
    static const char *const TYPES[] = {"f32", "bf16", "f16"};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        double blocks = move("blocked", TYPES[i], TYPES[i], run, err);
        double there = i ? move("plain", "f32", TYPES[i], run, err) : NAN;
        double back = i ? move("plain", TYPES[i], "f32", run, err) : NAN;
        if (blocks < 0 || there < 0 || back < 0)
            return -1;
        add_rate(s->reorder, &s->n_reorder, TYPES[i], MOVED / blocks);
        add_rate(s->convert, &s->n_convert, TYPES[i], 2 * MOVED / (there + back));
    }
    return 0;
}

/* A problem of the kind transfer, whose record goes where the options say. */
static int measure_transfer(const char *way, int64_t x, bz_run_options *options, bz_error *err)
{
    char text[64];
    bz_problem p;
    snprintf(text, sizeof text, "transfer way=%s x=%lld dtype=f64", way, (long long)x);
    return bz_problem_parse(text, &p, err) || bz_run(&(bz_family){&p, "memory", "plain", "default"}, 1, options, err)
               ? -1
               : 0;
}

int bz_machine_transfers(const bz_machine *s, bz_run_options *options, bz_error *err)
{
    enum { SMALLEST = 8 << 10, LARGEST = 1 << 30, STEP = 4 };
    const bz_run_options was = *options;
    int64_t largest = s->n_caches ? s->cache[s->n_caches - 1].bytes : 0;
    int rc = 0;
    options->time_limit = PEAK_TIME;
    for (int64_t bytes = SMALLEST; bytes <= LARGEST && bytes <= STEP * largest && !rc; bytes *= STEP) {
        rc = measure_transfer("read", bytes / 8, options, err) || measure_transfer("copy", bytes / 16, options, err);
        options->setting.cold = true;
        rc = rc ||
             (bytes <= largest && measure_transfer("copy", bytes / 16, options, err)); /* what no cache holds is cold */
        options->setting.cold = was.setting.cold;
    }
    *options = was;
    return rc ? -1 : 0;
}

int bz_machine_measure(bz_machine *s, const bz_run_options *options, bz_error *err)
{
    int threads = options->setting.threads;
    peak_run run = {
        s, {.setting.threads = threads, .time_limit = PEAK_TIME, .yardstick = options->yardstick}, PEAKS_AGAIN};
    for (const bz_backend *const *b = bz_builtin_backends; *b && s->n_launch < BZ_MAX_RATES; b++) {
        snprintf(s->launch[s->n_launch].what, sizeof s->launch->what, "%s", (*b)->name);
        s->launch[s->n_launch++].value = bz_launch_cost((*b)->name, &run.options);
    }
    s->measured_threads = threads;
    return measure_flops(s, &run, err) || measure_moves(s, &run, err) ? -1 : 0;
}

static void put_rates(bz_json *j, const char *key, const bz_rate *rate, int n)
{
    BZ_JSON_NAMED(j, key, num, i, n, rate[i].what, rate[i].value);
}

static void put_measured(bz_json *j, const bz_machine *s)
{
    bz_json_key_object(j, "measured");
    bz_json_key_int(j, "threads", s->measured_threads);
    BZ_PUT(j, bz_machine, s, busy, yardstick);
    put_rates(j, "flops", s->flops, s->n_flops);
    put_rates(j, "launch", s->launch, s->n_launch);
    put_rates(j, "reorder", s->reorder, s->n_reorder);
    put_rates(j, "convert", s->convert, s->n_convert);
    bz_json_object_end(j);
}

void bz_machine_json(const bz_machine *s, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("v", 1), BZ_TELL("record", "system"));
    BZ_PUT(&j, bz_machine, s, slug, stack);
    BZ_JSON(&j, BZ_TELL("device", "cpu"), BZ_TELL("name", s->model_name));
    BZ_PUT(&j, bz_machine, s, vendor, family, model, stepping);
    bz_json_key_bool(&j, "virtual", s->virtual_machine);
    BZ_PUT(&j, bz_machine, s, hypervisor, packages, cores, threads, numa_nodes);
    BZ_JSON_EACH (&j, "caches", i, s->n_caches) {
        BZ_JSON(&j, BZ_TELL("level", s->cache[i].level), BZ_TELL("count", s->cache[i].count),
                BZ_TELL("bytes", s->cache[i].bytes));
    }
    BZ_PUT(&j, bz_machine, s, isa, memory, kernel, versions, counters);
    if (s->measured_threads) {
        put_measured(&j, s);
        bz_json_key_int(&j, "date", (int64_t)time(NULL)); /* a later measurement replaces an earlier one */
    }
    bz_json_document_end(&j);
}

static void line(bz_buf *out, const char *what)
{
    bz_buf_printf(out, "%-14s", what);
}

/* Without a unit these are seconds. */
static void print_rates(const bz_rate *rate, int n, const char *title, const char *unit, bz_buf *out)
{
    bz_unit_text text;
    line(out, title);
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, "%s%s %s%s", i ? ", " : "", rate[i].what,
                      unit ? bz_units_count(text, rate[i].value) : bz_units_time(text, rate[i].value),
                      unit ? unit : "");
}

static void print_measured(const bz_machine *s, bz_buf *out)
{
    print_rates(s->flops, s->n_flops, "peak", "flop/s", out);
    bz_buf_printf(out, " (%d thread%s%s)\n", s->measured_threads, s->measured_threads > 1 ? "s" : "",
                  s->busy ? "; the machine was busy" : "");
    print_rates(s->launch, s->n_launch, "empty call", NULL, out);
    bz_buf_putc(out, '\n');
    print_rates(s->reorder, s->n_reorder, "reordered", "element/s", out);
    bz_buf_putc(out, '\n');
    print_rates(s->convert, s->n_convert, "converted", "element/s", out);
    bz_buf_putc(out, '\n');
}

void bz_machine_print(const bz_machine *s, bz_buf *out)
{
    bz_unit_text text;
    line(out, "system");
    bz_buf_printf(out, "%s@%s\n", s->slug, s->stack);
    line(out, "processor");
    bz_buf_printf(out, "%s, %s family %d model %d stepping %d\n", s->model_name, s->vendor, s->family, s->model,
                  s->stepping);
    line(out, "cores");
    bz_buf_printf(out, "%d cores, %d threads, %d package%s, %d NUMA node%s\n", s->cores, s->threads, s->packages,
                  s->packages == 1 ? "" : "s", s->numa_nodes, s->numa_nodes == 1 ? "" : "s");
    line(out, "caches");
    for (int i = 0; i < s->n_caches; i++)
        bz_buf_printf(out, "%sL%d %d x %lld KiB", i ? ", " : "", s->cache[i].level, s->cache[i].count,
                      (long long)s->cache[i].bytes / 1024);
    bz_buf_putc(out, '\n');
    line(out, "instructions");
    bz_buf_printf(out, "%s\n", s->isa);
    line(out, "memory");
    bz_buf_printf(out, "%s\n", bz_units_bytes(text, (double)s->memory));
    line(out, "machine");
    bz_buf_printf(out, "%s%s\n", s->virtual_machine ? "virtual, under " : "not virtual", s->hypervisor);
    line(out, "kernel");
    bz_buf_printf(out, "%s\n", s->kernel);
    line(out, "versions");
    bz_buf_printf(out, "%s\n", s->versions);
    line(out, "counters");
    bz_buf_printf(out, "%s\n", s->counters);
    if (s->measured_threads)
        print_measured(s, out);
}
