/* Runs every kind of problem on the GPU, compares all results with the definition, and tests the clock.
 *
 *   check PROBLEMS [SECONDS]
 *
 * PROBLEMS is a list like problems.txt. A report goes to standard output. SECONDS bound the comparing of results: what does not fit is
 * said to be left out. Exit status: 0 all is well; 1 something is wrong, or there is no GPU; 3 the list is bad; 4 all
 * is well, but something was left out. */
#include "tests/gpu/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct tally {
    int right, unchecked, wrong, failed, broken, unsupported;
} tally;

typedef struct check {
    tally kind[BZ_PROBLEM_N_KINDS];
    bool listed[BZ_PROBLEM_N_KINDS];
    char reason[640]; /* why nothing of the family at hand ran */
    clock_problems clock;
    time_t end; /* 0: no limit */
    int left_out, silent;
} check;

static const char *const ROLES[N_ROLES] = {"long", "product", "half", "cached", "once", "twice"};

/* ---- results -------------------------------------------------------------------------------- */

static void complain(const bz_outcome *r, const char *what)
{
    bz_buf text = {0};
    bz_problem_print(r->problem, &text);
    printf("  %s: %s %s %s: %s\n    again: benchmarks --check-only --backend %s --layout %s \"%s\"\n", what, r->backend,
           r->layout, r->algorithm, r->reason, r->backend, r->layout, bz_buf_text(&text));
    bz_buf_free(&text);
}

static void count(void *context, const bz_outcome *r)
{
    check *c = context;
    tally *t = &c->kind[r->problem->kind];
    if (r->status == BZ_STATUS_OK && !strcmp(r->checked, "ok")) {
        t->right++;
    } else if (r->status == BZ_STATUS_OK) {
        t->unchecked++;
    } else if (r->status == BZ_STATUS_UNSUPPORTED) {
        t->unsupported++;
        memcpy(c->reason, r->reason, sizeof c->reason);
    } else if (!strncmp(r->reason, "wrong result", 12)) {
        t->wrong++;
        complain(r, "WRONG");
    } else if (r->status == BZ_STATUS_FAILED) {
        t->failed++;
        complain(r, "failed");
    } else {
        t->broken++;
        complain(r, r->status == BZ_STATUS_TIMEOUT ? "HANGS" : "CRASHED");
    }
}

static int runs(const tally *t)
{
    return t->right + t->unchecked + t->wrong;
}

static int check_family(check *c, const bz_problem *p, const char *backend, const char *layout, const char *math,
                        bz_error *err)
{
    bz_family family = {p, backend, layout, math};
    bz_run_options options = {.check_only = true, .emit = count, .context = c};
    if (c->end && time(NULL) >= c->end) {
        c->left_out++;
        return 0;
    }
    int before = runs(&c->kind[p->kind]);
    c->reason[0] = 0;
    if (bz_run(&family, 1, &options, err))
        return -1;
    if (runs(&c->kind[p->kind]) == before) {
        bz_buf text = {0};
        bz_problem_print(p, &text);
        printf("  nothing runs: %s %s, %s: %s\n", backend, layout, bz_buf_text(&text), c->reason);
        bz_buf_free(&text);
        c->silent++;
    }
    return 0;
}

/* ---- the list ------------------------------------------------------------------------------- */

static int take_role(check *c, const char *line, bz_error *err)
{
    for (int i = 0; i < N_ROLES; i++) {
        size_t n = strlen(ROLES[i]);
        if (strncmp(line + 1, ROLES[i], n) != 0 || line[1 + n] != ' ')
            continue;
        c->clock.given[i] = true;
        return bz_problem_parse(line + 1 + n + strspn(line + 1 + n, " "), &c->clock.problem[i], err);
    }
    return bz_fail(err, BZ_BAD_INPUT, "%s: there is no such role", line);
}

/* One line: each of its types in each of its layouts. */
static int take_line(check *c, const char *line, bz_error *err)
{
    char backend[16], layouts[64], types[64], text[1200], *rest, *more;
    int at = 0;
    if (*line == '@')
        return take_role(c, line, err);
    if (sscanf(line, "%15s %63s %63s %n", backend, layouts, types, &at) != 3 || !line[at])
        return bz_fail(err, BZ_BAD_INPUT, "%s: a line is BACKEND LAYOUTS TYPES PROBLEM", line);
    for (char *type = strtok_r(types, ",", &rest); type; type = strtok_r(NULL, ",", &rest)) {
        char names[64], *math = strchr(type, '/');
        bz_problem p;
        if (math)
            *math++ = 0;
        snprintf(text, sizeof text, "%s dtype=%s", line + at, type);
        if (bz_problem_parse(text, &p, err))
            return bz_fail_in(err, "%s", text);
        c->listed[p.kind] = true;
        memcpy(names, layouts, sizeof names);
        for (char *layout = strtok_r(names, ",", &more); layout; layout = strtok_r(NULL, ",", &more))
            if (check_family(c, &p, backend, layout, math ? math : "default", err))
                return -1;
    }
    return 0;
}

static int take_list(check *c, const char *path, bz_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    int bad = 0;
    FILE *f = fopen(path, "r");
    if (!f)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read", path);
    while (!bad && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] && line[0] != '#')
            bad = take_line(c, line, err);
    }
    free(line);
    fclose(f);
    return bad;
}

/* ---- the report ----------------------------------------------------------------------------- */

/* A kind of which nothing ran is as bad as a wrong result: nothing is known of it. */
static int print_kinds(const check *c)
{
    int bad = 0;
    printf("\n%-12s %6s %9s %6s %7s %8s %12s\n", "kind", "right", "unchecked", "wrong", "failed", "crashed",
           "unsupported");
    for (int i = 0; i < BZ_PROBLEM_N_KINDS; i++) {
        const tally *t = &c->kind[i];
        if (!c->listed[i])
            continue;
        bool none = !runs(t) && !c->left_out;
        printf("%-12s %6d %9d %6d %7d %8d %12d%s\n", bz_problem_kind_name((bz_problem_kind)i), t->right, t->unchecked,
               t->wrong, t->failed, t->broken, t->unsupported, none ? "  NOTHING RUNS" : "");
        bad += t->wrong + t->broken + none;
    }
    return bad;
}

static int find_device(const char *name, bz_device *d, bz_error *err)
{
    const bz_backend *backend = bz_backend_find(NULL, name, err);
    return backend ? bz_device_find(backend, d, err) : -1;
}

static int run(check *c, const char *path, bz_error *err)
{
    bz_device device;
    bz_buf text = {0};
    if (find_device("cudnn", &device, err) || find_device("cublas", &device, err))
        return -1;
    bz_device_print(&device, &text);
    printf("%s\nResults\n", bz_buf_text(&text));
    bz_buf_free(&text);
    fflush(stdout);
    if (take_list(c, path, err))
        return -1;
    int bad = print_kinds(c);
    if (c->silent)
        printf("%d famil%s without a variant that runs\n", c->silent, c->silent == 1 ? "y" : "ies");
    if (c->left_out)
        printf("%d famil%s left out: the time was over\n", c->left_out, c->left_out == 1 ? "y" : "ies");
    printf("\nClock\n");
    fflush(stdout);
    bad += clock_check(&c->clock, &device);
    return bad;
}

int main(int argc, char **argv)
{
    check c = {0};
    bz_error err = {0};
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s PROBLEMS [SECONDS]\n", argv[0]);
        return BZ_USAGE;
    }
    c.end = argc > 2 ? time(NULL) + strtol(argv[2], NULL, 10) : 0;
    int bad = run(&c, argv[1], &err);
    if (bad < 0) {
        fprintf(stderr, "gpu-check: %s\n", err.text);
        return (int)err.code;
    }
    return bad ? BZ_FAILED : c.left_out ? BZ_INCOMPLETE : BZ_OK;
}
