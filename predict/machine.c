/* Systems as numbers: from what was measured on them, else from their data sheets. */
#include "predict/predict.h"
#include "runtime/gpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Half of the table's GPUs hold four fifths of their boost clock or more. */
static const double HELD = 0.8;

/* The clock under load, as a share of the boost clock. The base clock is the least that the maker vouches for, under the worst load; power
 * that falls short of what the architecture's others have for each operation tells what the clock is mostly, where power goes with its square. The
 * middle of the two: a T4 has 70 W for what takes 150 elsewhere, and a base of 585 of 1590 MHz. Each alone is further off where
 * GPUs are left out; docs/benchmarks.md has the figures. */
static double held_of(const bz_gpu *row)
{
    double base = row->base > 0 ? row->base / row->clock : HELD, power = sqrt(fmin(1, bz_gpu_power(row)));
    return sqrt(base * power);
}

static void from_row(const bz_gpu *row, bz_machine *out)
{
    *out = (bz_machine){.gpu = true,
                        .f32 = row->rate[1],
                        .f16 = row->rate[3],
                        .i8 = row->rate[5],
                        .held = held_of(row),
                        .clock = row->clock,
                        .base = row->base > 0 ? row->base : HELD * row->clock,
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

static int from_measured(const bz_measured *m, const char *name, bz_machine *out, bz_error *err)
{
    double memory = 0, largest = 0;
    for (int i = 0; i < m->n_buffers; i++)
        if (m->buffer[i].bytes > largest && m->buffer[i].read > 0)
            largest = m->buffer[i].bytes, memory = m->buffer[i].read;
    *out = (bz_machine){.f32 = rate_of(&m->flops, "f32"),
                        .f16 = rate_of(&m->flops, "bf16"),
                        .i8 = rate_of(&m->flops, "i8"),
                        .held = 1,
                        .clock = 1e9,
                        .multiprocessors = m->threads,
                        .bandwidth = memory,
                        .floor = NAN};
    return out->f32 > 0 && memory > 0
               ? 0
               : bz_fail(err, BZ_BAD_INPUT,
                         "the rates of '%s' were measured in part only: 'benanza system --measure' "
                         "on it completes them",
                         name);
}

int bz_machine_of(const bz_system_facts *facts, const char *name, int threads, bz_machine *out, bz_error *err)
{
    bz_gpu row;
    const bz_measured *measured = bz_system_measured(facts, threads);
    int rc = 0;
    if (facts->gpu && bz_gpu_find(facts->name, &row))
        from_row(&row, out);
    else if (measured)
        rc = from_measured(measured, name, out, err);
    else
        return bz_fail(err, BZ_BAD_INPUT, "nobody measured the rates of '%s', and no data sheet has it", name);
    out->gpu = facts->gpu;
    out->name = name;
    return rc;
}

bool bz_machine_is(const bz_machine *m, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(m->name, name, n) && (!m->name[n] || m->name[n] == '@');
}

/* ---- described by a person ------------------------------------------------------------------- */

static const struct {
    const char *word, *unit;
    double scale;
    size_t offset;
    bool needed;
} WORDS[] = {
    {"f32", "Tflop/s", 1e12, offsetof(bz_machine, f32), true},
    {"f16", "Tflop/s", 1e12, offsetof(bz_machine, f16), false},
    {"i8", "Top/s", 1e12, offsetof(bz_machine, i8), false},
    {"clock", "MHz", 1e6, offsetof(bz_machine, clock), true},
    {"held", "share of the clock under full load", 1, offsetof(bz_machine, held), false},
    {"multiprocessors", "", 1, offsetof(bz_machine, multiprocessors), true},
    {"bandwidth", "GB/s", 1e9, offsetof(bz_machine, bandwidth), true},
};

static double *member(bz_machine *m, size_t i)
{
    return (double *)(void *)((char *)m + WORDS[i].offset);
}

static int read_line(const char *path, int number, char *line, bz_machine *m, bz_error *err)
{
    char word[32], *end;
    int at = 0;
    line[strcspn(line, "#\r\n")] = 0;
    if (sscanf(line, "%31s %n", word, &at) != 1)
        return 0;
    double v = strtod(line + at, &end);
    bool whole = end != line + at && isfinite(v) && v > 0 && strspn(end, " \t") == strlen(end);
    if (!strcmp(word, "capability") && whole && v < 1000) {
        m->capability = (int)lround(10 * v);
        return 0;
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(word, WORDS[i].word) && whole) {
            *member(m, i) = v * WORDS[i].scale;
            return 0;
        }
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s:%d: '%s' is no line such as 'multiprocessors 80': the words are f32, f16 (Tflop/s), i8 (Top/s), "
                   "clock (MHz), held (0 to 1), multiprocessors, bandwidth (GB/s), capability (7.5)",
                   path, number, line);
}

static int read_description(FILE *f, const char *path, bz_machine *out, bz_error *err)
{
    char line[256];
    *out = (bz_machine){.gpu = true, .held = HELD, .floor = NAN, .capability = 90};
    for (int number = 1; fgets(line, sizeof line, f); number++)
        if (number > 100 || read_line(path, number, line, out, err))
            return number > 100 ? bz_fail(err, BZ_BAD_INPUT, "%s: no description of a machine has over 100 lines", path)
                                : -1;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (WORDS[i].needed && !(*member(out, i) > 0))
            return bz_fail(err, BZ_BAD_INPUT, "%s: lacks a line with '%s' (%s)", path, WORDS[i].word, WORDS[i].unit);
    if (out->held > 1)
        return bz_fail(err, BZ_BAD_INPUT, "%s: 'held' is a share of the clock, from 0 to 1", path);
    out->generation = generation_of(out->capability);
    return 0;
}

/* Names the GPUs that begin so: "a100" is four. */
static int unknown(const char *name, bz_error *err)
{
    bz_buf alike = {0};
    bz_gpu row;
    size_t len = strlen(name);
    for (int i = 0; len && bz_gpu_row(i, &row); i++)
        if (!strncasecmp(row.slug, name, len))
            bz_buf_printf(&alike, "%s%s", alike.len ? ", " : "", row.slug);
    if (alike.len)
        bz_fail(err, BZ_USAGE, "no system '%s' is known; these begin so: %s", name, bz_buf_text(&alike));
    else
        bz_fail(err, BZ_USAGE,
                "no system '%s' is known: name one of the database ('benanza db ls'), a GPU such as t4 or h100, or "
                "a file that describes one",
                name);
    bz_buf_free(&alike);
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
    FILE *f = strchr(name, '/') || strchr(name, '.') ? fopen(name, "re") : NULL;
    if (!f)
        return unknown(name, err);
    int rc = read_description(f, name, out, err);
    fclose(f);
    out->name = bz_arena_str(arena, name);
    return rc;
}
