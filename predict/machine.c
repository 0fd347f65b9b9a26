/* Systems as numbers: from what was measured on them, else from their data sheets. */
#include "base/choice.h"
#include "base/open.h"
#include "predict/constants.h"
#include "predict/predict.h"
#include "runtime/gpus.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Chips in the order in which they came. Two numbers are as far apart as the ways are in which libraries write kernels for them:
 * Kepler has kernels of its own; those of Maxwell run on Pascal; Volta's on Turing. */
static const struct {
    int capability;
    double generation;
} GENERATIONS[] = {{30, 0},   {35, 0}, {37, 0},   {50, 1},   {52, 1},   {60, 1.2}, {61, 1.2},  {70, 2},    {72, 2},
                   {75, 2.2}, {80, 3}, {86, 3.2}, {87, 3.2}, {89, 3.6}, {90, 3.8}, {100, 4.6}, {103, 4.6}, {120, 4.8}};

static double generation_of(int capability)
{
    double found = 0;
    for (size_t i = 0; i < sizeof GENERATIONS / sizeof *GENERATIONS; i++)
        if (capability >= GENERATIONS[i].capability)
            found = GENERATIONS[i].generation;
    return capability > 120 ? found + (capability - 120) / 40.0 : found;
}

/* What error correction leaves of the bandwidth, where its bits go over the same wires: about a fifth is lost in GDDR5 (Tesla
 * board specifications), an eighth in GDDR6 (a T4 reaches 239 of 320 GB/s, a 2080 Ti without it 524 of 616). */
static double left_of(const char *ram)
{
    const char *plus = strchr(ram, '+');
    return !plus ? 1 : !strncmp(ram, "gddr5", 5) ? 0.78 : 0.88;
}

static void from_row(const bz_gpu *row, bz_machine *out)
{
    *out = (bz_machine){.gpu = true,
                        .f32 = bz_gpu_rate(row, "f32"),
                        .f64 = bz_gpu_rate(row, "f64"),
                        .f16 = bz_gpu_rate(row, "f16"),
                        .bf16 = bz_gpu_rate(row, "bf16"),
                        .i8 = bz_gpu_rate(row, "i8"),
                        .memory = row->memory,
                        .kept = row->l2 > 0 ? row->l2 : KEPT,
                        .vouched = row->base > 0 ? row->base / row->clock : BASE,
                        .clock = row->clock,
                        .multiprocessors = row->multiprocessors,
                        .bandwidth = row->bandwidth * left_of(row->ram),
                        .capability = row->major * 10 + row->minor,
                        .generation = generation_of(row->major * 10 + row->minor),
                        .floor = NAN};
}

static double rate_of(const bz_rates *rates, const char *name)
{
    for (int i = 0; i < rates->n; i++)
        if (!strcmp(rates->at[i].name, name))
            return rates->at[i].rate;
    return 0;
}

/* Instruction sets of processors in the order in which libraries got kernels for them; the last word that is met counts. Those behind AVX-512
 * compute in fewer bits: f32 goes as before. */
static const struct {
    const char *word;
    double generation;
} SETS[] = {{"SSE4.1", 0},
            {"AVX", 0.6},
            {"AVX2", 1},
            {"AVX512_CORE", 2},
            {"AVX512_CORE_VNNI", 2.1},
            {"AVX512_CORE_BF16", 2.2},
            {"AVX512_CORE_AMX", 2.4}};

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && !strncasecmp(at, word, n))
            return true;
    return false;
}

static double generation_of_set(const char *isa)
{
    double found = 0;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++)
        if (has_word(isa, SETS[i].word))
            found = SETS[i].generation;
    return found;
}

bool bz_machine_transforms(const bz_machine *m)
{
    return m->gpu || m->generation >= generation_of_set("AVX512_CORE");
}

static int from_measured(const bz_system_facts *facts, const bz_setting *setting, const bz_measured *m,
                         const char *name, bz_machine *out, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_peaks peaks;
    bz_peaks_read(facts, setting, &arena, &peaks);
    *out = (bz_machine){.f32 = rate_of(&m->flops, "f32"),
                        .f64 = rate_of(&m->flops, "f64"),
                        .f16 = rate_of(&m->flops, "bf16"),
                        .bf16 = rate_of(&m->flops, "bf16"),
                        .i8 = rate_of(&m->flops, "i8"),
                        .vouched = 1,
                        .clock = 1e9,
                        .multiprocessors = m->threads,
                        .launch = facts->gpu ? 0 : rate_of(&m->launch, "onednn"),
                        .generation = facts->gpu ? 0 : generation_of_set(facts->isa),
                        .floor = NAN};
    for (int i = 0; i < peaks.n_bandwidth; i++) {
        out->bandwidth = peaks.bandwidth[i].rate;
        if (!facts->gpu)
            out->cache[out->caches++] = (struct bz_cache_rate){peaks.bandwidth[i].bytes, peaks.bandwidth[i].rate};
    }
    return out->f32 > 0 && out->bandwidth > 0
               ? 0
               : bz_fail(
                     err, BZ_BAD_INPUT,
                     "the rates of '%s' were measured in part only: 'benanza system --measure' on it completes them",
                     name);
}

int bz_machine_of(const bz_system_facts *facts, const char *name, const bz_setting *setting, bz_machine *out,
                  bz_error *err)
{
    bz_gpu row;
    const bz_measured *measured = bz_system_measured(facts, setting->threads);
    int rc = 0;
    if (facts->gpu && bz_gpu_find(facts->name, &row))
        from_row(&row, out);
    else if (measured)
        rc = from_measured(facts, setting, measured, name, out, err);
    else
        return bz_fail(err, BZ_BAD_INPUT, "nobody measured the rates of '%s', and no data sheet has it", name);
    out->gpu = facts->gpu;
    out->name = name;
    return rc;
}

/* Between two buffers that were measured the logarithm of the rate follows that of the size. */
double bz_machine_bandwidth(const bz_machine *m, double bytes)
{
    if (!m->caches || bytes >= m->cache[m->caches - 1].bytes)
        return m->bandwidth;
    int at = 0;
    while (at < m->caches && m->cache[at].bytes < bytes)
        at++;
    if (!at)
        return m->cache[0].rate;
    const struct bz_cache_rate *low = &m->cache[at - 1], *high = &m->cache[at];
    double along = log(bytes / low->bytes) / log(high->bytes / low->bytes);
    return low->rate * pow(high->rate / low->rate, along);
}

bool bz_machine_is(const bz_machine *m, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(m->name, name, n) && (!m->name[n] || m->name[n] == '@');
}

/* A file that names threads describes a processor, one that names multiprocessors a GPU. */
typedef struct description {
    bz_machine m;
    double base;                   /* Hz, of a GPU */
    double threads, vector, units; /* of a processor: bits, fused multiply-adds at once, Hz */
    const char *path;
} description;

enum { GPU = 1, PROCESSOR = 2 };

static const struct {
    const char *word, *unit;
    double scale;
    size_t offset;
    int of, needed; /* GPU, PROCESSOR */
} WORDS[] = {
    {"f32", "Tflop/s", 1e12, offsetof(description, m.f32), GPU | PROCESSOR, GPU | PROCESSOR},
    {"f64", "Tflop/s", 1e12, offsetof(description, m.f64), GPU | PROCESSOR, 0},
    {"f16", "Tflop/s", 1e12, offsetof(description, m.f16), GPU | PROCESSOR, 0},
    {"bf16", "Tflop/s", 1e12, offsetof(description, m.bf16), GPU | PROCESSOR, 0},
    {"i8", "Top/s", 1e12, offsetof(description, m.i8), GPU | PROCESSOR, 0},
    {"clock", "MHz", 1e6, offsetof(description, m.clock), GPU | PROCESSOR, GPU},
    {"base", "MHz", 1e6, offsetof(description, base), GPU, 0},
    {"multiprocessors", "", 1, offsetof(description, m.multiprocessors), GPU, GPU},
    {"bandwidth", "GB/s", 1e9, offsetof(description, m.bandwidth), GPU | PROCESSOR, GPU | PROCESSOR},
    {"threads", "", 1, offsetof(description, threads), PROCESSOR, 0},
    {"vector", "bits", 1, offsetof(description, vector), PROCESSOR, 0},
    {"units", "", 1, offsetof(description, units), PROCESSOR, 0},
    {"memory", "GB", 1e9, offsetof(description, m.memory), GPU | PROCESSOR, 0},
    {"launch", "µs", 1e-6, offsetof(description, m.launch), GPU | PROCESSOR, 0},
};
enum { N_WORDS = sizeof WORDS / sizeof *WORDS };

static double *member(description *d, size_t i)
{
    return (double *)(void *)((char *)d + WORDS[i].offset);
}

/* Beyond them no machine is, and products of some of them would be no numbers. */
static const double LEAST_VALUE = 1e-6, MOST_VALUE = 1e12;

/* "cache 2048 90": kibibytes and GB/s, the smallest first. */
static bool add_cache(bz_machine *m, double kib, double rate)
{
    double bytes = kib * 1024;
    bool good = m->caches + 1 < BZ_CACHE_RATES && kib > LEAST_VALUE && kib < 1e9 && rate > LEAST_VALUE && rate < 1e6 &&
                (!m->caches || bytes > m->cache[m->caches - 1].bytes);
    if (good)
        m->cache[m->caches++] = (struct bz_cache_rate){bytes, rate * 1e9};
    return good;
}

static bool take_word(description *d, const char *word, const char *rest)
{
    char *end;
    double v = strtod(rest, &end), rate = end != rest ? strtod(end, &end) : 0;
    if (!strcmp(word, "cache"))
        return strspn(end, " \t") == strlen(end) && add_cache(&d->m, v, rate);
    if (!strcmp(word, "isa")) {
        d->m.generation = generation_of_set(rest);
        return *rest;
    }
    v = strtod(rest, &end);
    if (end == rest || !(v > LEAST_VALUE && v < MOST_VALUE) || strspn(end, " \t") != strlen(end))
        return false;
    if (!strcmp(word, "capability") && v < 1000) {
        d->m.capability = (int)lround(10 * v);
        return true;
    }
    for (size_t i = 0; i < N_WORDS; i++)
        if (!strcmp(word, WORDS[i].word)) {
            *member(d, i) = v * WORDS[i].scale;
            return true;
        }
    return false;
}

static int read_line(int number, char *line, description *d, bz_error *err)
{
    char word[32];
    int at = 0;
    line[strcspn(line, "#\r\n")] = 0;
    if (sscanf(line, "%31s %n", word, &at) != 1 || take_word(d, word, line + at))
        return 0;
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s:%d: '%s' is no line such as 'multiprocessors 80' or 'cache 2048 90': benanza-predict(1) has the "
                   "words of GPUs and of processors",
                   d->path, number, line);
}

/* What follows from the rest, and what has to be there. */
static int complete(description *d, bz_error *err)
{
    bz_machine *m = &d->m;
    m->gpu = !(d->threads > 0);
    int is = m->gpu ? GPU : PROCESSOR;
    if (!m->gpu && !(m->f32 > 0)) /* each unit multiplies and adds a vector of 32-bit numbers in a clock */
        m->f32 = d->threads * m->clock * d->vector / 32 * 2 * d->units;
    for (size_t i = 0; i < N_WORDS; i++) {
        if (WORDS[i].needed & is && !(*member(d, i) > 0))
            return bz_fail(err, BZ_BAD_INPUT, "%s: lacks a line with '%s' (%s)%s", d->path, WORDS[i].word,
                           WORDS[i].unit, !m->gpu && !i ? ", or with 'clock', 'vector' and 'units'" : "");
        if (!(WORDS[i].of & is) && *member(d, i) > 0)
            return bz_fail(err, BZ_BAD_INPUT, "%s: '%s' describes a %s, 'threads' a processor", d->path, WORDS[i].word,
                           m->gpu ? "processor" : "GPU");
    }
    if (!(m->bf16 > 0) && (!m->gpu || m->capability >= 80)) /* Ampere was the first with units for it */
        m->bf16 = m->f16;
    if (d->base > m->clock)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: 'base' is the lower clock, under the worst load; 'clock' is the boost clock", d->path);
    if (m->gpu) {
        m->vouched = d->base > 0 ? d->base / m->clock : BASE;
        m->generation = generation_of(m->capability);
        m->caches = 0;
        return 0;
    }
    if (isnan(m->generation))
        m->generation = generation_of_set(d->vector >= 512 ? "AVX512_CORE" : d->vector == 128 ? "SSE4.1" : "AVX2");
    m->vouched = 1, m->clock = 1e9, m->capability = 0, m->multiprocessors = d->threads;
    if (m->caches) { /* four times its last cache is memory for the most part */
        double last = m->cache[m->caches - 1].bytes;
        m->cache[m->caches++] = (struct bz_cache_rate){4 * last, m->bandwidth};
    }
    return 0;
}

int bz_machine_described(FILE *f, const char *path, bz_machine *out, bz_error *err)
{
    char line[256];
    description d = {.m = {.floor = NAN, .generation = NAN, .capability = 90, .kept = KEPT}, .path = path};
    for (int number = 1; fgets(line, sizeof line, f); number++)
        if (number > 100 || read_line(number, line, &d, err))
            return number > 100 ? bz_fail(err, BZ_BAD_INPUT, "%s: no description of a machine has over 100 lines", path)
                                : -1;
    if (complete(&d, err))
        return -1;
    *out = d.m;
    return 0;
}

/* Letters and digits alone, so that "RTX 4090" is "rtx-4090". */
static const char *bare(const char *name, char out[64])
{
    size_t n = 0;
    for (; *name && n < 63; name++)
        if (isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = 0;
    return out;
}

/* Names the GPUs that have it in their names: "4090" is in rtx-4090. Where there is none, the one that a typo meant. */
static int unknown(const char *name, bz_error *err)
{
    enum { MOST = 256 };
    BZ_SCOPED(bz_buf) alike = {0};
    bz_gpu row;
    char typed[64], slug[64], slugs[MOST][sizeof row.slug];
    const char *names[MOST];
    int n = 0;
    bare(name, typed);
    for (int i = 0; *typed && bz_gpu_row(i, &row); i++) {
        if (strstr(bare(row.slug, slug), typed))
            bz_buf_printf(&alike, "%s%s", alike.len ? ", " : "", row.slug);
        if (n < MOST)
            names[n] = memcpy(slugs[n], row.slug, sizeof row.slug), n++;
    }
    const char *meant = alike.len ? NULL : bz_choice_meant(name, names, n);
    if (meant)
        bz_fail(err, BZ_USAGE, "no system '%s' is known: did you mean %s?", name, meant);
    else if (alike.len)
        bz_fail(err, BZ_USAGE, "no system '%s' is known; these are like it: %s", name, bz_buf_text(&alike));
    else
        bz_fail(err, BZ_USAGE,
                "no system '%s' is known: name one of the database ('benanza db ls'), a GPU such as t4 or h100, or a "
                "file that describes one",
                name);
    return -1;
}

int bz_machine_named(const char *name, bz_arena *arena, bz_machine *out, bz_error *err)
{
    bz_gpu row;
    if (bz_gpu_slug(name, &row) || bz_gpu_find(name, &row)) {
        from_row(&row, out);
        out->name = bz_arena_str(arena, row.slug);
        return 0;
    }
    bool path = !access(name, F_OK) && (strchr(name, '/') || strchr(name, '.'));
    FILE *f = path ? bz_open_input_file(name, err) : NULL;
    if (!f)
        return path ? -1 : unknown(name, err);
    int rc = bz_machine_described(f, name, out, err);
    fclose(f);
    out->name = bz_arena_str(arena, name);
    return rc;
}
