/* Runs a backend over the stand-ins and compares what it calls with what is expected.
 *
 *   backend CASES EXPECTED [--update]
 *
 * A line of CASES is `NAME LAYOUT MATH CACHE ALGORITHM PROBLEM`; EXPECTED/NAME is the text. CACHE may be hot or cold; or hot, and
 * `stuck`: the queue cannot be held back; `full`: the device's memory is; `tight`: the workspace is limited to 1024 bytes;
 * `two`: there are two devices; `mute`: heuristics propose nothing; `ill`: what runs something fails; `all`: all engines are asked for; `kept`: what an
 * earlier process kept is there. Of the problem all variants are listed; the one named by ALGORITHM is prepared, run, measured twice and read. `-` is the one that the
 * library would choose. */
#include "runtime/backend.h"

#include "base/arena.h"
#include "base/folder.h"
#include "runtime/values.h"
#include "tests/standin/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const bz_backend bz_backend_module;

/* Of all variants the text of the calls up to the moment when the backend offered it. This is the function that
 * backends call for that; here it notes where the text ended. */
static struct {
    size_t from, to;
} told[256];
static int n_told;

bz_variant *bz_variant_add(bz_variant_list *list, const bz_backend *backend, void *session, const char *layout,
                           const char *math)
{
    BZ_ROOM(list->item, list->n);
    bz_variant *v = &list->item[list->n++];
    *v = (bz_variant){.backend = backend, .session = session};
    snprintf(v->layout, sizeof v->layout, "%s", layout);
    snprintf(v->math, sizeof v->math, "%s", math);
    told[n_told].from = n_told ? told[n_told - 1].to : 0;
    told[n_told++].to = standin_text.len;
    return v;
}

static bz_variant *find(bz_variant_list *list, const char *algorithm)
{
    for (int i = 0; i < list->n; i++)
        if (!strcmp(list->item[i].algorithm, algorithm) || (!strcmp(algorithm, "-") && list->item[i].chosen))
            return &list->item[i];
    return NULL;
}

/* All elements of a result that was computed. */
static void check(const bz_job *job, const bz_variant *v, int result, const float *values)
{
    const bz_operand *y = &job->operand[result];
    bz_reference r = bz_reference_of(job->problem, job->n_operands, job->operand, job->value);
    int wrong = 0;
    r.result = result;
    for (int64_t i = 0; i < y->count; i++) {
        bz_expected e = bz_reference_at(&r, i);
        wrong += !(bz_off(job->problem, e, (double)values[i], v->math) <= 1);
    }
    standin_record("-- %d elements of the result%s%s are wrong", wrong, y->role == BZ_ROLE_Y ? "" : " ",
                   y->role == BZ_ROLE_Y ? "" : bz_role_name(y->role));
    bz_reference_free(&r);
}

/* Results that stand before the last one. */
static void check_others(const bz_backend *b, bz_variant *v, const bz_job *job)
{
    for (int i = 0; i + 1 < job->n_operands; i++) {
        bz_error err = {0};
        if (!job->operand[i].result || job->operand[i].role == BZ_ROLE_KEPT)
            continue;
        float *values = malloc((size_t)job->operand[i].count * sizeof *values);
        if (b->read_operand(v, i, values, &err))
            standin_record("-- failed: %s", err.text);
        else if (standin_computed)
            check(job, v, i, values);
        free(values);
    }
}

static void run_variant(const bz_backend *b, bz_variant *v, const bz_job *job)
{
    const bz_operand *y = &job->operand[job->n_operands - 1];
    bz_error err = {0};
    double seconds = 0;
    standin_record("-- prepare %s", v->algorithm);
    if (b->prepare(v, &err)) {
        standin_record("-- code %d: %s", (int)err.code, err.text);
        return;
    }
    standin_record("-- workspace %g, timed by %s", v->workspace, v->timing);
    standin_record("-- poison, execute, wait, read");
    float *values = malloc((size_t)y->count * sizeof *values);
    if (b->poison(v) || b->execute(v, 0) || b->wait(v) || b->read(v, values, &err))
        standin_record("-- failed: %s", err.text);
    else if (standin_computed)
        check(job, v, job->n_operands - 1, values);
    free(values);
    check_others(b, v, job);
    standin_record("-- measure 2");
    if (b->measure(v, 2, 0, &seconds))
        standin_record("-- failed");
    if (v->timing && !strcmp(v->timing, "wall")) /* of this machine */
        standin_record("-- %s by wall", seconds > 0 ? "some time" : "no time");
    else
        standin_record("-- %g s by %s", seconds, v->timing);
    b->release(v);
}

static void run_problem(const bz_problem *p, const char *layout, const char *math, const char *cache, const char *plans,
                        const char *algorithm)
{
    const bz_backend *b = &bz_backend_module;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS] = {0};
    bz_run_setting setting = {.threads = 1,
                              .cold = !strcmp(cache, "cold"),
                              .engines = strcmp(cache, "all") ? 0 : -1,
                              .plans = plans,
                              .workspace = !strcmp(cache, "tight") ? 1024 : 0};
    bz_job job = {
        .problem = p,
        .setting = &setting,
        .n_operands = bz_problem_operands(p, operand),
        .operand = operand,
        .value = (const float *const *)value,
        .copies = 1,
    };
    bz_variant_list list = {0};
    bz_error err = {0};
    void *session = NULL;
    for (int i = 0; i < job.n_operands - 1; i++) {
        if (operand[i].result)
            continue;
        value[i] = malloc((size_t)operand[i].count * sizeof(float));
        bz_values_fill(p, &operand[i], i, value[i]);
    }
    standin_record("-- open");
    if (b->open(&job, &session, &err)) {
        standin_record("-- code %d: %s", (int)err.code, err.text);
    } else {
        standin_record("-- enumerate");
        bz_buf opened = standin_text, all = {0};
        standin_text = all;
        n_told = 0;
        bool bad = b->enumerate(session, layout, math, &list, &err);
        all = standin_text;
        standin_text = opened;
        if (bad)
            standin_record("-- code %d: %s", (int)err.code, err.text);
        for (int i = 0; i < list.n; i++)
            standin_record("-- variant %s%s", list.item[i].algorithm, list.item[i].chosen ? " (chosen)" : "");
        bz_variant *v = find(&list, algorithm);
        if (v) {
            standin_record("-- described by");
            bz_buf_put(&standin_text, bz_buf_text(&all) + told[v - list.item].from,
                       told[v - list.item].to - told[v - list.item].from);
        }
        bz_buf_free(&all);
        if (v)
            run_variant(b, v, &job);
        else if (!bad)
            standin_record("-- there is no variant %s", algorithm);
        standin_record("-- close");
        b->close(session);
    }
    for (int i = 0; i < job.n_operands; i++)
        free(value[i]);
    free(list.item);
}

static int compare(const char *folder, const char *name, bool update)
{
    char path[4096];
    bz_buf expected = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, update ? "w" : "r");
    if (!f) {
        printf("%s: cannot be opened\n", path);
        return 1;
    }
    int different = 0;
    if (update) {
        fwrite(standin_text.data, 1, standin_text.len, f);
    } else {
        char chunk[4096];
        for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
            bz_buf_put(&expected, chunk, n);
        different = expected.len != standin_text.len || memcmp(expected.data, standin_text.data, expected.len) != 0;
    }
    fclose(f);
    if (different)
        printf("%s: the calls differ from %s; they are\n%s", name, path, bz_buf_text(&standin_text));
    bz_buf_free(&expected);
    return different;
}

int main(int argc, char **argv)
{
    bool update = argc > 3 && !strcmp(argv[3], "--update");
    char plans[BZ_FOLDER_MAX], line[4096], name[64], layout[16], math[16], cache[16], algorithm[128];
    int n = 0, bad = 0, at = 0;
    FILE *cases = argc > 2 ? fopen(argv[1], "r") : NULL;
    if (!cases)
        return 2;
    while (fgets(line, sizeof line, cases)) {
        bz_problem p;
        bz_error err = {0};
        line[strcspn(line, "\n")] = 0;
        if (!line[0] || line[0] == '#')
            continue;
        if (sscanf(line, "%63s %15s %15s %15s %127s %n", name, layout, math, cache, algorithm, &at) != 5 ||
            bz_problem_parse(line + at, &p, &err)) {
            printf("%s: %s\n", line, err.text);
            bad++;
            continue;
        }
        bool spaced = strstr(algorithm, "_engine_") || !strncmp(algorithm, "lt_", 3) || strstr(algorithm, "_streams");
        for (char *c = algorithm; spaced && (c = strchr(c, '_'));)
            *c = ' ';
        standin_reset();
        standin_stuck = !strcmp(cache, "stuck");
        standin_full = !strcmp(cache, "full");
        standin_devices = strcmp(cache, "two") ? 1 : 2;
        standin_mute = !strcmp(cache, "mute");
        standin_ill = !strcmp(cache, "ill");
        standin_raw = !strcmp(cache, "raw");
        bool kept = !strcmp(cache, "kept");
        standin_slow_plans = kept;
        if (kept) {
            if (bz_folder_make(plans, &err))
                return 2;
            run_problem(&p, layout, math, cache, plans, algorithm);
            standin_reset();
        }
        standin_record("-- %s", line + at);
        run_problem(&p, layout, math, cache, kept ? plans : NULL, algorithm);
        if (kept)
            bz_folder_remove(plans);
        bad += compare(argv[2], name, update);
        n++;
    }
    fclose(cases);
    standin_reset();
    bz_buf_free(&standin_text);
    printf("%d cases, %d bad\n", n, bad);
    return bad || !n;
}
