/* Runs every kind of problem on the GPU and compares all results with the definition, or tests the clock.
 *
 *   check results|clock PROBLEMS [SECONDS [PLANS]]
 *
 * PROBLEMS is a list like problems.txt. A report goes to standard output. SECONDS bound it: what does not fit is said to be
 * left out. Results are compared by as many processes as there are processors, since most of the time goes into building
 * plans; the clock is tested by one, which runs the same calls many times and keeps their plans in the folder PLANS. Exit status: 0 all is well; 1 something is wrong, or there is no GPU; 3 the list is
 * bad; 4 all is well, but something was left out. */
#include "tests/gpu/check.h"

#include "base/progress.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ENTRIES = 400, MOST_LAYOUTS = 4, MOST_PROCESSES = 8 };

/* One problem in one math mode: a family for each layout. */
typedef struct entry {
    bz_problem problem;
    bz_family family[MOST_LAYOUTS];
    char backend[16], layout[MOST_LAYOUTS][16], math[16];
    int n, turn; /* turn: how many of its backend and kind come before it */
} entry;

typedef struct tally {
    int right, unchecked, wrong, failed, broken, unsupported;
} tally;

/* What the processes share. */
typedef struct shared {
    atomic_int next; /* entry */
    struct {
        tally kind[BZ_PROBLEM_N_KINDS];
        int left_out, silent, bad;
    } of[MOST_PROCESSES];
} shared;

typedef struct check {
    entry entry[MOST_ENTRIES];
    int n;
    bool listed[BZ_PROBLEM_N_KINDS], absent[BZ_PROBLEM_N_KINDS]; /* absent: of a backend that does not load */
    bz_error why;                                                /* it does not */
    clock_problems clock;
    double end;        /* by bz_now(); INFINITY: no limit */
    const char *plans; /* NULL: none are kept */
    shared *shared;
} check;

/* What one process is at. */
typedef struct work {
    tally *kind;
    const entry *entry;
    bool runs[MOST_LAYOUTS];
    char reason[MOST_LAYOUTS][640]; /* why nothing of the family ran */
} work;

static const char *const ROLES[N_ROLES] = {"long", "product", "half", "cached", "once", "twice"};

/* One write for each line: other processes write there, too. */
static void say(const bz_buf *line)
{
    fwrite(line->data, 1, line->len, stdout);
    fflush(stdout);
}

static void complain(const bz_outcome *r, const char *what)
{
    bz_buf text = {0}, line = {0};
    bz_problem_print(r->problem, &text);
    bz_buf_printf(&line, "  %s: %s %s %s: %s\n    again: benchmarks --check-only --backend %s --layout %s \"%s\"\n",
                  what, r->backend, r->layout, r->algorithm, r->reason, r->backend, r->layout, bz_buf_text(&text));
    say(&line);
    bz_buf_free(&line);
    bz_buf_free(&text);
}

static void count(void *context, const bz_outcome *r)
{
    work *w = context;
    tally *t = &w->kind[r->problem->kind];
    int layout = 0;
    while (layout + 1 < w->entry->n && strcmp(w->entry->layout[layout], r->layout) != 0)
        layout++;
    bool wrong = !strncmp(r->reason, "wrong result", 12);
    w->runs[layout] |= r->status == BZ_STATUS_OK || wrong;
    if (r->status == BZ_STATUS_OK) {
        *(strcmp(r->checked, "ok") ? &t->unchecked : &t->right) += 1;
    } else if (r->status == BZ_STATUS_UNSUPPORTED) {
        t->unsupported++;
        memcpy(w->reason[layout], r->reason, sizeof w->reason[layout]);
    } else if (wrong) {
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

static int count_silent(const work *w)
{
    int silent = 0;
    for (int i = 0; i < w->entry->n; i++) {
        bz_buf text = {0}, line = {0};
        if (w->runs[i])
            continue;
        bz_problem_print(&w->entry->problem, &text);
        bz_buf_printf(&line, "  nothing runs: %s %s, %s: %s\n", w->entry->backend, w->entry->layout[i],
                      bz_buf_text(&text), w->reason[i]);
        say(&line);
        bz_buf_free(&line);
        bz_buf_free(&text);
        silent++;
    }
    return silent;
}

/* One process: problems as they come, until there is none or the time is over. */
static _Noreturn void run_entries(const check *c, int process)
{
    bz_worker worker = {0};
    bz_error err = {0};
    bz_run_options options = {.setting = {.threads = 1, .engines = 2}, .check_only = true, .hang_limit = 60};
    for (int i; (i = atomic_fetch_add(&c->shared->next, 1)) < c->n;) {
        const entry *e = &c->entry[i];
        work w = {.kind = c->shared->of[process].kind, .entry = e};
        options.emit = count;
        options.context = &w;
        if (bz_now() >= c->end) {
            c->shared->of[process].left_out += e->n;
            continue;
        }
        if (bz_worker_run(&worker, e->family, e->n, &options, &err)) {
            fprintf(stderr, "gpu-check: %s\n", err.text);
            c->shared->of[process].bad++;
            break;
        }
        c->shared->of[process].silent += count_silent(&w);
    }
    bz_worker_close(&worker);
    _exit(0);
}

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

static int add_entry(check *c, const char *backend, const char *layouts, char *type, const char *problem, bz_error *err)
{
    char text[1200], names[64], *more, *math = strchr(type, '/');
    entry *e = &c->entry[c->n];
    if (c->n == MOST_ENTRIES)
        return bz_fail(err, BZ_BAD_INPUT, "more than %d problems", MOST_ENTRIES);
    if (math)
        *math++ = 0;
    snprintf(text, sizeof text, "%s dtype=%s", problem, type);
    if (bz_problem_parse(text, &e->problem, err))
        return bz_fail_in(err, "%s", text);
    if (!bz_backend_find(NULL, backend, &c->why)) {
        c->absent[e->problem.kind] = true;
        return 0;
    }
    snprintf(e->backend, sizeof e->backend, "%s", backend);
    snprintf(e->math, sizeof e->math, "%.15s", math ? math : "default");
    snprintf(names, sizeof names, "%s", layouts);
    for (char *name = strtok_r(names, ",", &more); name && e->n < MOST_LAYOUTS; name = strtok_r(NULL, ",", &more)) {
        snprintf(e->layout[e->n], sizeof e->layout[0], "%.15s", name);
        e->n++;
    }
    for (int i = 0; i < c->n; i++)
        e->turn += c->entry[i].problem.kind == e->problem.kind && !strcmp(c->entry[i].backend, backend);
    c->listed[e->problem.kind] = true;
    c->n++;
    return 0;
}

/* One line: each of its types in each of its layouts. */
static int take_line(check *c, const char *line, bz_error *err)
{
    char backend[16], layouts[64], types[64], *rest;
    int at = 0;
    if (*line == '@')
        return take_role(c, line, err);
    if (sscanf(line, "%15s %63s %63s %n", backend, layouts, types, &at) != 3 || !line[at])
        return bz_fail(err, BZ_BAD_INPUT, "%s: a line is BACKEND LAYOUTS TYPES PROBLEM", line);
    for (char *type = strtok_r(types, ",", &rest); type; type = strtok_r(NULL, ",", &rest))
        if (add_entry(c, backend, layouts, type, line + at, err))
            return -1;
    return 0;
}

/* First one of each kind and backend, then a second one: where the time is over, all kinds have been seen. */
static int by_turn(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->turn != y->turn ? x->turn - y->turn : x->n - y->n;
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
    qsort(c->entry, (size_t)c->n, sizeof *c->entry, by_turn);
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->entry[i].n; k++)
            c->entry[i].family[k] =
                (bz_family){&c->entry[i].problem, c->entry[i].backend, c->entry[i].layout[k], c->entry[i].math};
    return bad;
}

/* A kind of which nothing ran is as bad as a wrong result: nothing is known of it. */
static int print_kinds(const check *c, const tally *kinds, bool whole)
{
    int bad = 0;
    printf("\n%-12s %6s %9s %6s %7s %8s %12s\n", "kind", "right", "unchecked", "wrong", "failed", "crashed",
           "unsupported");
    for (int i = 0; i < BZ_PROBLEM_N_KINDS; i++) {
        const tally *t = &kinds[i];
        if (!c->listed[i])
            continue;
        bool none = whole && !(t->right + t->unchecked + t->wrong);
        printf("%-12s %6d %9d %6d %7d %8d %12d%s\n", bz_problem_kind_name((bz_problem_kind)i), t->right, t->unchecked,
               t->wrong, t->failed, t->broken, t->unsupported, none ? "  NOTHING RUNS" : "");
        bad += t->wrong + t->broken + none;
    }
    return bad;
}

/* A machine need not have every library: what cannot be run there is named, and is no defect. */
static void print_absent(const check *c)
{
    int n = 0;
    for (int i = 0; i < BZ_PROBLEM_N_KINDS; i++)
        if (c->absent[i] && !c->listed[i])
            printf("%s%s", n++ ? ", " : "not run: ", bz_problem_kind_name((bz_problem_kind)i));
    if (n)
        printf(": %s\n", c->why.text);
}

static void add(tally *sum, const tally *t)
{
    int *to = &sum->right;
    const int *from = &t->right;
    for (size_t i = 0; i < sizeof *t / sizeof *from; i++)
        to[i] += from[i];
}

static int report_results(const check *c, int processes, int *left_out)
{
    tally kind[BZ_PROBLEM_N_KINDS] = {{0}};
    int silent = 0, bad = 0;
    for (int p = 0; p < processes; p++) {
        for (int i = 0; i < BZ_PROBLEM_N_KINDS; i++)
            add(&kind[i], &c->shared->of[p].kind[i]);
        *left_out += c->shared->of[p].left_out;
        silent += c->shared->of[p].silent;
        bad += c->shared->of[p].bad;
    }
    bad += print_kinds(c, kind, !*left_out);
    print_absent(c);
    if (silent)
        printf("%d famil%s without a variant that runs\n", silent, silent == 1 ? "y" : "ies");
    if (*left_out)
        printf("%d famil%s left out: the time was over\n", *left_out, *left_out == 1 ? "y" : "ies");
    return bad;
}

static int run_results(check *c, int *left_out, bz_error *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int processes = processors < 1 ? 1 : processors > MOST_PROCESSES ? MOST_PROCESSES : (int)processors;
    pid_t child[MOST_PROCESSES];
    c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->shared == MAP_FAILED)
        return bz_fail(err, BZ_FAILED, "no memory to share: %s", strerror(errno));
    printf("Results, by %d process%s\n", processes, processes == 1 ? "" : "es");
    fflush(stdout);
    for (int p = 0; p < processes; p++)
        if (!(child[p] = fork()))
            run_entries(c, p);
    for (int p = 0; p < processes; p++)
        if (child[p] > 0)
            waitpid(child[p], NULL, 0);
    int bad = report_results(c, processes, left_out);
    munmap(c->shared, sizeof *c->shared);
    return bad;
}

/* By whichever backend can say it: what the other is asked for has the reason in its records. */
static int find_device(bz_device *d, bz_error *err)
{
    static const char *const NAMES[] = {"cudnn", "cublas"};
    for (int i = 0; i < 2; i++) {
        const bz_backend *backend = bz_backend_find(NULL, NAMES[i], err);
        if (backend && !bz_device_find(backend, d, err))
            return 0;
    }
    return -1;
}

static int run(check *c, bool clock, const char *path, int *left_out, bz_error *err)
{
    bz_device device;
    bz_buf text = {0};
    if (take_list(c, path, err) || find_device(&device, err))
        return -1;
    if (!clock)
        return run_results(c, left_out, err);
    bz_device_print(&device, &text);
    printf("%s\nClock\n", bz_buf_text(&text));
    bz_buf_free(&text);
    fflush(stdout);
    return clock_check(&c->clock, &device, c->plans, c->end, left_out);
}

/* The version of a cuDNN, on standard output. */
static int tell_version(const char *library)
{
    void *found = dlopen(library, RTLD_LAZY);
    size_t (*version)(void) = found ? (size_t(*)(void))dlsym(found, "cudnnGetVersion") : NULL;
    if (!version)
        return BZ_FAILED;
    printf("%zu\n", version());
    return BZ_OK;
}

int main(int argc, char **argv)
{
    static check c; /* children read it where it lies */
    bz_error err = {0};
    int left_out = 0;
    if (argc == 3 && !strcmp(argv[1], "version"))
        return tell_version(argv[2]);
    bool clock = argc > 1 && !strcmp(argv[1], "clock");
    if (argc < 3 || argc > 5 || (!clock && strcmp(argv[1], "results") != 0)) {
        fprintf(stderr, "usage: %s results|clock PROBLEMS [SECONDS [PLANS]]\n", argv[0]);
        return BZ_USAGE;
    }
    c.end = argc > 3 ? bz_now() + strtod(argv[3], NULL) : INFINITY;
    c.plans = argc > 4 ? argv[4] : NULL;
    int bad = run(&c, clock, argv[2], &left_out, &err);
    if (bad < 0) {
        fprintf(stderr, "gpu-check: %s\n", err.text);
        return (int)err.code;
    }
    return bad ? BZ_FAILED : left_out ? BZ_INCOMPLETE : BZ_OK;
}
