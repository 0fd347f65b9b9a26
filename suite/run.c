/* One training run of an edition in one batch. */
#include "suite/suite.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bz_suite_path(const bz_suite *suite, const bz_suite_entry *e, const bz_suite_options *o, int batch,
                          bz_arena *arena)
{
    return bz_arena_printf(arena, "%s/%s-%s-%s-b%d.sqlite", o->folder, suite->edition, e->name,
                           bz_suite_size_name(o->size), batch);
}

static char **command_of(const bz_suite_entry *e, const bz_suite_options *o, int batch, bz_arena *arena)
{
    enum { ADDED = 8 };
    const char *const MORE[ADDED] = {"--batch",      bz_arena_printf(arena, "%d", batch),
                                     "--size",       bz_suite_size_name(o->size),
                                     "--iterations", bz_arena_printf(arena, "%d", o->iterations),
                                     "--threads",    bz_arena_printf(arena, "%d", o->threads)};
    char **argv = BZ_NEW(arena, char *, e->n_words + ADDED + 1);
    for (int i = 0; i < e->n_words; i++)
        argv[i] = bz_arena_str(arena, o->python && !strcmp(e->word[i], "python3") ? o->python : e->word[i]);
    for (int i = 0; i < ADDED; i++)
        argv[e->n_words + i] = bz_arena_str(arena, MORE[i]);
    return argv;
}

/* Libraries have threads of their own, whatever the framework is told: each has a variable. */
static void limit_threads(int n)
{
    static const char *const NAMES[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
    char text[32];
    snprintf(text, sizeof text, "%d", n);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        setenv(NAMES[i], text, 1);
}

/* What its recording cannot see. A batch that the program says by itself stays. */
static void tell(bz_trace *t, const bz_suite *suite, const bz_suite_entry *e, const bz_suite_options *o, int batch)
{
    char text[32];
    const struct {
        const char *key, *value;
    } FACTS[] = {
        {"edition", suite->edition}, {"run", e->name},  {"size", bz_suite_size_name(o->size)}, {"model", e->model},
        {"dominant", e->dominant},   {"unit", e->unit}, {"application", e->application}};
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++)
        bz_trace_fact(t, FACTS[i].key, FACTS[i].value);
    snprintf(text, sizeof text, "%d", batch);
    if (!bz_trace_told(t, "batch"))
        bz_trace_fact(t, "batch", text);
    snprintf(text, sizeof text, "%.9g", o->peak);
    if (isfinite(o->peak))
        bz_trace_fact(t, "peak operations per second", text);
}

int bz_suite_run(const bz_suite *suite, const bz_suite_entry *e, const bz_suite_options *o, int batch, int *stopped,
                 bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_trace *t = bz_trace_new();
    int status = 0;
    limit_threads(o->threads);
    int rc = bz_profile_levels(t, command_of(e, o, batch, &arena),
                               &(bz_capture_options){.memory = true, .limit = INT64_C(256) << 20}, &status, err);
    if (!rc && status)
        rc = bz_fail(err, BZ_FAILED, "the program ended with status %d: it says above why", status);
    if (!rc && !t->n_iterations)
        rc = bz_fail(err, BZ_FAILED, "the program marked no iteration");
    if (!rc) {
        tell(t, suite, e, o, batch);
        rc = bz_trace_save(t, bz_suite_path(suite, e, o, batch, &arena), err);
    }
    bool told_to = status == 128 + SIGINT || status == 128 + SIGTERM || status == 128 + SIGHUP;
    *stopped = told_to ? status - 128 : 0;
    bz_trace_free(t);
    return rc ? -1 : 0;
}
