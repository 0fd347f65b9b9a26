/* Every transformation on every recording at hand, those of the tree's cases and published ones: no answer contradicts itself. What only removes
 * work makes nothing longer, what only adds work makes nothing shorter, and neither gains more than what it changes took. */
#include "whatif/whatif.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

/* What a change can be told by beforehand. Of records and exchanges it cannot: they may say that a call becomes slower. */
typedef enum { ANYTHING, LESS_DEVICE, LESS_HOST, LESS, MORE } sense_of;
static const struct {
    const char *asked;
    sense_of sense;
} ASKED[] = {
    {"half-precision", LESS_DEVICE},
    {"tf32:compute=4", LESS_DEVICE},
    {"device:times=3", LESS_DEVICE},
    {"device:times=1", LESS_DEVICE},
    {"restructured-norm", LESS},
    {"host:times=5", LESS_HOST},
    {"link:times=4", LESS_DEVICE},
    {"cuda-graph", LESS},
    {"cuda-graph:recorder=0", LESS},
    {"fused-optimizer", LESS},
    {"prefetch", LESS},
    {"copies-overlapped", LESS},
    {"prepacked-weights", LESS},
    {"ideal", LESS},
    {"batch:times=2", MORE},
    {"data-parallel:workers=4", MORE},
    {"data-parallel:workers=2,gbps=1e9,latency=0,efficiency=1", MORE},
    {"offload", MORE},
    {"encoded-activations", MORE},
    {"checkpoints", MORE},
    {"priority-exchange", ANYTHING},
    {"blueconnect", ANYTHING},
    {"gradient-compression", ANYTHING},
    {"streams", ANYTHING},
    {"best-algorithms", ANYTHING},
    {"fusion", ANYTHING},
};
enum { N_ASKED = sizeof ASKED / sizeof *ASKED };

static int recordings, answers, applied, wrong;
static const char *where;

#define HOLDS(CONDITION, ...)                                                                                          \
    do {                                                                                                               \
        if (!(CONDITION)) {                                                                                            \
            wrong++;                                                                                                   \
            print_message("%s: ", where);                                                                              \
            print_message(__VA_ARGS__);                                                                                \
            print_message(": not %s\n", #CONDITION);                                                                   \
        }                                                                                                              \
    } while (0)

static void check_parts(const char *name, const bz_flow_split *split, const bz_critical *critical, bool one)
{
    int64_t rows = 0, kinds = critical->between;
    HOLDS(split->host >= 0 && split->device >= 0 && split->both >= 0 && split->neither >= 0, "%s: parts below 0", name);
    HOLDS(split->host + split->device + split->both + split->neither == split->total, "%s: parts of %lld ns", name,
          (long long)split->total);
    for (uint32_t i = 0; i < critical->n; i++) {
        rows += critical->row[i].time;
        HOLDS(critical->row[i].time >= 0 && critical->row[i].time <= split->total, "%s: a row of %lld ns of %lld", name,
              (long long)critical->row[i].time, (long long)split->total);
    }
    for (int k = 0; k < BZ_TASK_KINDS; k++)
        kinds += critical->of[k];
    HOLDS(rows == critical->time && kinds == rows, "%s: rows of %lld ns, kinds of %lld, all %lld", name,
          (long long)rows, (long long)kinds, (long long)critical->time);
    if (one)
        HOLDS(rows == split->total, "%s: a critical path of %lld ns in %lld", name, (long long)rows,
              (long long)split->total);
}

static void check_sense(const bz_whatif *w, const char *name, const bz_prediction *p, sense_of sense, int64_t slack)
{
    int64_t before = w->simulated, gain = before - p->time;
    int64_t device = w->split.device + w->split.both, host = w->split.host + w->split.both;
    if (sense == MORE)
        HOLDS(gain <= slack, "%s: adds work and gains %lld ns of %lld", name, (long long)gain, (long long)before);
    if (sense == LESS || sense == LESS_DEVICE || sense == LESS_HOST)
        HOLDS(gain >= -slack, "%s: removes work and loses %lld ns of %lld", name, (long long)-gain, (long long)before);
    if (w->flow->overlaps) /* the parts are those of one iteration, the time is a step's */
        return;
    if (sense == LESS_DEVICE)
        HOLDS(gain <= device, "%s: gains %lld ns, devices work for %lld", name, (long long)gain, (long long)device);
    if (sense == LESS_HOST)
        HOLDS(gain <= host, "%s: gains %lld ns, the host works for %lld", name, (long long)gain, (long long)host);
}

static void check_prediction(const bz_whatif *w, const char *name, const bz_prediction *p, sense_of sense)
{
    answers++;
    HOLDS(p->changed || p->because, "%s: changes nothing and does not say why", name);
    if (!p->changed)
        HOLDS(p->time == w->simulated, "%s: changes nothing and takes %lld ns for %lld", name, (long long)p->time,
              (long long)w->simulated);
    applied += p->changed > 0;
    HOLDS(p->time >= 0 && p->low <= p->time && p->time <= p->high, "%s: %lld ns between %lld and %lld", name,
          (long long)p->time, (long long)p->low, (long long)p->high);
    check_parts(name, &p->split, &p->critical, !w->flow->overlaps);
    check_sense(w, name, p, sense, w->simulated / 1000000);
}

static void check_asked(bz_whatif *w, bz_arena *arena)
{
    for (int i = 0; i < N_ASKED; i++) {
        bz_whatif_asked asked;
        bz_error err = {0};
        bz_flow after = {0};
        bz_simulated simulated; /* asked for, so that what changes nothing is simulated, too */
        w->n = 0;
        if (bz_whatif_parse(ASKED[i].asked, arena, &asked, &err) ||
            bz_whatif_predict(&asked, 1, arena, w, &after, &simulated, &err))
            HOLDS(strlen(err.text) > 20, "%s: fails without a sentence", ASKED[i].asked);
        else
            check_prediction(w, ASKED[i].asked, &w->prediction[0], ASKED[i].sense);
        bz_flow_free(&after);
    }
}

/* Each step of what is tried together is no slower than the one before. */
static void check_together(const bz_flow *flow, bz_arena *arena)
{
    bz_whatif w;
    bz_error err = {0};
    if (bz_whatif_begin(flow, arena, &w, &err) || bz_whatif_try_all(arena, &w, &err)) {
        HOLDS(strlen(err.text) > 20, "all: fails without a sentence");
        return;
    }
    int64_t now = w.simulated;
    for (int i = 0; i < w.n_greedy; i++) {
        HOLDS(w.greedy[i].time <= now, "%s: %lld ns behind %lld", w.greedy[i].name, (long long)w.greedy[i].time,
              (long long)now);
        now = w.greedy[i].time;
        check_prediction(&w, w.greedy[i].name, &w.greedy[i], ANYTHING);
    }
}

static void check_trace(const bz_trace *t)
{
    bz_flow flow;
    bz_whatif w;
    bz_arena arena = {0};
    bz_error err = {0};
    if (bz_flow_make(t, bz_typical_iteration(t), &flow, &err)) {
        HOLDS(strlen(err.text) > 20, "no graph, and no sentence");
        return;
    }
    recordings++;
    if (!bz_whatif_begin(&flow, &arena, &w, &err)) {
        check_parts("before", &w.split, &w.critical, !flow.overlaps);
        check_asked(&w, &arena);
        check_together(&flow, &arena);
    } else {
        HOLDS(strstr(err.text, "circle"), "%s", err.text);
    }
    bz_flow_free(&flow);
    bz_arena_free(&arena);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    bz_error err;
    if (type != FTW_F || st->st_size < 200 || strstr(path, "/expected") || strstr(path, ".onnx"))
        return 0;
    where = path + at->base;
    bz_trace *t = bz_trace_new();
    if (!bz_trace_read(t, &path, 1, NULL, &err))
        check_trace(t);
    bz_trace_free(t);
    return 0;
}

static void visit_all(const char *folder)
{
    recordings = answers = applied = wrong = 0;
    nftw(folder, visit, 16, FTW_PHYS);
    print_message("%s: %d recordings, %d answers, %d of them of changes that apply\n", folder, recordings, answers,
                  applied);
    assert_int_equal(wrong, 0);
}

static void cases(void **state)
{
    (void)state;
    visit_all(BENANZA_SOURCE "/tests/cases");
    assert_true(recordings > 20 && applied > recordings);
}

static void published(void **state)
{
    static const char *const FOLDERS[] = {"kineto", "nsys", "v100"};
    (void)state;
    const char *root = getenv("BENANZA_SHARED");
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", root && *root ? root : BENANZA_SOURCE "/../shared/data", FOLDERS[i]);
        if (access(folder, R_OK)) {
            print_message("skipped: %s is not here\n", folder);
            skip();
        }
        visit_all(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases), cmocka_unit_test(published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
