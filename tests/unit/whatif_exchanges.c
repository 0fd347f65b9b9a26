/* Transformations of training on several machines, and those that trade time for memory: published vectors, and what must hold
 * whatever the network is. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

enum { LAUNCH = 5000, GAP = 3000 };

static void add(bz_flow *f, const char *name, uint32_t layer, bz_phase phase, int64_t time)
{
    uint32_t launch = bz_flow_add(f, BZ_TASK_HOST, "launch", 0, LAUNCH, GAP),
             kernel = bz_flow_add(f, BZ_TASK_KERNEL, name, 1, time, 0);
    bz_flow_depend(f, launch, kernel, BZ_DEPENDS_LAUNCH, LAUNCH);
    f->task[launch].phase = f->task[kernel].phase = (uint8_t)phase;
    f->task[launch].layer = f->task[kernel].layer = layer;
    f->task[launch].at = f->task[kernel].at = kernel;
}

/* A chain of layers: forward, backward, update where asked for. */
static void make_chain(bz_flow *f, uint32_t layers, bool update)
{
    static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    static const char *layer[12];
    *f = (bz_flow){.main = 0, .launch_cost = LAUNCH, .launch_gap = GAP, .launch_lag = LAUNCH};
    bz_flow_add_lane(f, "cpu", false, false);
    bz_flow_add_lane(f, "gpu", true, false);
    for (uint32_t i = 0; i < layers; i++)
        layer[i] = NAMES[i];
    f->layer = bz_alloc(layers, sizeof *f->layer);
    memcpy(f->layer, layer, layers * sizeof *f->layer);
    f->n_layers = layers;
    for (uint32_t i = 0; i < layers; i++)
        add(f, "fprop", i, BZ_PHASE_FORWARD, 10000 + draw(200000));
    for (uint32_t i = layers; i-- > 0;)
        add(f, "dgrad", i, BZ_PHASE_BACKWARD, 10000 + draw(400000));
    for (uint32_t i = 0; i < layers && update; i++)
        add(f, "elementwise", i, BZ_PHASE_UPDATE, 1000 + draw(20000));
    uint32_t sync = bz_flow_add(f, BZ_TASK_SYNC, "sync", 0, 1000, 0);
    bz_flow_depend(f, f->lane[1].last, sync, BZ_DEPENDS_SYNC, 0);
}

static bz_trace *trace;

static int apply(bz_flow *f, bz_arena *arena, const char *text)
{
    bz_whatif_asked asked;
    bz_error err;
    if (bz_whatif_parse(text, arena, &asked, &err))
        fail_msg("%s", err.text);
    asked.side = 1;
    asked.trace = trace;
    int n = (asked.err = &err, asked.row->apply(f, &asked));
    if (n < 0)
        fail_msg("%s", err.text);
    return n;
}

/* What the chain takes after a change; the chain stays. */
static int64_t time_of(const bz_flow *f, const char *first, const char *second)
{
    bz_arena arena = {0};
    bz_flow g = {0};
    bz_error err;
    int64_t time;
    bz_flow_copy(f, &g);
    if (first)
        apply(&g, &arena, first);
    if (second)
        assert_true(apply(&g, &arena, second) > 0);
    if (bz_flow_time(&g, &arena, NULL, &time, &err))
        fail_msg("%s", err.text);
    bz_flow_free(&g);
    bz_arena_free(&arena);
    return time;
}

#define TEXT(name, ...)                                                                                                \
    char name[256];                                                                                                    \
    snprintf(name, sizeof name, __VA_ARGS__)

/* Gradients of ResNet-50: milliseconds as published formulas have them. */
static void all_reduce(void **state)
{
    static const struct {
        int workers, gbps;
        int64_t ns;
    } VECTORS[] = {{2, 10, 81782502}, {2, 20, 40891251},   {2, 40, 20445626},  {4, 10, 122673754},
                   {4, 20, 61336877}, {4, 40, 30668438},   {8, 10, 143119379}, {8, 20, 71559690},
                   {8, 40, 35779845}, {16, 10, 153342192}, {16, 20, 76671096}, {16, 40, 38335548}};
    (void)state;
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++) {
        bz_arena arena = {0};
        bz_flow f;
        make_chain(&f, 1, true);
        TEXT(text, "data-parallel:workers=%d,gbps=%d,mb=102.228128,efficiency=1", VECTORS[i].workers, VECTORS[i].gbps);
        assert_int_equal(apply(&f, &arena, text), 1);
        assert_int_equal(f.task[f.n - 1].kind, BZ_TASK_COMMUNICATION);
        assert_int_equal(f.task[f.n - 1].duration, VECTORS[i].ns);
        bz_flow_free(&f);
        bz_arena_free(&arena);
    }
}

static void workers_and_links(void **state)
{
    static const char *const NAMES[] = {"data-parallel", "priority-exchange"};
    (void)state;
    for (seed = 1; seed < 200000000; seed += 1000003)
        for (int k = 0; k < 2; k++) {
            bz_flow f;
            int64_t before = 0;
            make_chain(&f, 1 + draw(12), k == 0 || draw(2));
            TEXT(endless, "%s:workers=16,gbps=1e9,mb=1", NAMES[k]);
            if (k == 0) /* one worker's time, where iterations do not overlap */
                assert_int_equal(time_of(&f, endless, NULL), time_of(&f, NULL, NULL));
            for (int workers = 2; workers <= 32; workers *= 2) {
                TEXT(more, "%s:workers=%d,gbps=3,mb=4,slice=0.5", NAMES[k], workers);
                if (k == 0)
                    snprintf(more, sizeof more, "%s:workers=%d,gbps=3,mb=4,bucket=1", NAMES[k], workers);
                int64_t now = time_of(&f, more, NULL);
                assert_true(now >= before);
                before = now;
            }
            before = INT64_MAX;
            for (double gbps = 0.5; gbps < 100; gbps *= 3) {
                TEXT(faster, "%s:workers=4,gbps=%g,mb=4", NAMES[k], gbps);
                int64_t now = time_of(&f, faster, NULL);
                assert_true(now <= before);
                before = now;
            }
            bz_flow_free(&f);
        }
}

/* What comes first is served last of all in the order of arrival, since the way back ends at the input: no order that keeps
 * the link busy lets the next iteration begin later. */
static void priorities(void **state)
{
    (void)state;
    for (seed = 7; seed < 400000000; seed += 1000003) {
        bz_flow f;
        make_chain(&f, 1 + draw(12), draw(2));
        double gbps = 0.2 + draw(100) / 10.0, slice = 0.05 + draw(20) / 10.0;
        uint32_t workers = 2 + draw(7);
        TEXT(by_priority, "priority-exchange:workers=%u,gbps=%g,mb=5,slice=%g", workers, gbps, slice);
        TEXT(in_order, "priority-exchange:workers=%u,gbps=%g,mb=5,slice=%g,priority=0", workers, gbps, slice);
        assert_true(time_of(&f, by_priority, NULL) <= time_of(&f, in_order, NULL));
        bz_flow_free(&f);
    }
}

/* Levels of equal links are as fast as one ring: the sum telescopes. And many buckets overlap their levels. */
static void levels(void **state)
{
    (void)state;
    for (seed = 3; seed < 100000000; seed += 1000003) {
        bz_flow f;
        uint32_t p = 2 + draw(7), q = 2 + draw(7);
        make_chain(&f, 1 + draw(12), true);
        TEXT(flat, "data-parallel:workers=%u,gbps=5,mb=20,first=1000,bucket=1000,efficiency=1", p * q);
        TEXT(level, "blueconnect:workers1=%u,gbps1=5,workers2=%u,gbps2=5", p, q);
        int64_t difference = time_of(&f, flat, level) - time_of(&f, flat, NULL);
        assert_true(difference >= -4 && difference <= 4); /* each stage is rounded */
        snprintf(flat, sizeof flat, "data-parallel:workers=%u,gbps=5,mb=20,first=2,bucket=2,efficiency=1", p * q);
        assert_true(time_of(&f, flat, level) <= time_of(&f, flat, NULL) + 100);
        bz_flow_free(&f);
    }
}

static void compression(void **state)
{
    (void)state;
    for (seed = 5; seed < 100000000; seed += 1000003) {
        bz_flow f;
        make_chain(&f, 2 + draw(11), true);
        TEXT(slow, "data-parallel:workers=4,gbps=1,mb=50");
        assert_true(time_of(&f, slow, "gradient-compression:ratio=0.01,gbs=500") < time_of(&f, slow, NULL));
        TEXT(fast, "data-parallel:workers=4,gbps=1e9,mb=1"); /* nothing to gain: packing costs */
        assert_true(time_of(&f, fast, "gradient-compression:ratio=0.01,gbs=10") >= time_of(&f, fast, NULL));
        bz_flow_free(&f);
    }
}

/* Memory is paid for with time. */
static void memory(void **state)
{
    static const char *const CHANGES[] = {"offload:all=1,mb_stored=20,gbs=1", "offload:all=1,mb_stored=0",
                                          "checkpoints", "checkpoints:segments=3"};
    (void)state;
    for (seed = 11; seed < 100000000; seed += 1000003) {
        bz_flow f;
        make_chain(&f, 4 + draw(8), draw(2));
        for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++)
            assert_true(time_of(&f, CHANGES[i], NULL) >= time_of(&f, NULL, NULL));
        assert_true(time_of(&f, CHANGES[0], NULL) >= time_of(&f, CHANGES[1], NULL));
        bz_flow_free(&f);
    }
}

static int with_file(bz_flow *f, const char *change, const char *text, bz_error *err)
{
    char path[] = "/tmp/benanza-whatif-XXXXXX", asked_text[128];
    bz_arena arena = {0};
    bz_whatif_asked asked;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    snprintf(asked_text, sizeof asked_text, "%s:file=%s", change, path);
    assert_int_equal(bz_whatif_parse(asked_text, &arena, &asked, err), 0);
    asked.side = 1;
    asked.trace = trace;
    int n = (asked.err = err, asked.row->apply(f, &asked));
    unlink(path);
    bz_arena_free(&arena);
    return n;
}

static void policies(void **state)
{
    static const char *const BAD[] = {"remove",     "scale a",  "scale a -1",    "scale a nan",
                                      "scale a 1x", "forget a", "remove nobody", "time a 1e99"};
    (void)state;
    bz_error err;
    bz_flow f, g = {0};
    seed = 1;
    make_chain(&f, 3, true);
    bz_flow_copy(&f, &g);
    int64_t a = f.task[1].duration;
    assert_int_equal(with_file(&g, "substitution", "# found by hand\nscale a 0.5\nremove b\ntime c 30\n", &err), 9);
    assert_int_equal(g.task[1].duration, (a + 1) / 2);
    assert_true(g.task[2].removed && g.task[3].removed); /* with its launch */
    int64_t sum = 0;
    for (uint32_t i = 0; i < g.n; i++)
        sum += g.task[i].layer == 2 && g.task[i].kind == BZ_TASK_KERNEL ? g.task[i].duration : 0;
    assert_in_range(sum, 29998, 30002);
    bz_flow_free(&g);
    bz_flow_copy(&f, &g);
    assert_int_equal(
        with_file(&g, "substitution", "remove-kernel elementwise\ntime-kernel fprop 7\nscale-call launch 2", &err), 12);
    assert_int_equal(g.task[1].duration, 7000);
    assert_int_equal(g.task[0].duration, 2 * LAUNCH);
    bz_flow_free(&g);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        bz_flow_copy(&f, &g);
        assert_int_equal(with_file(&g, "substitution", BAD[i], &err), -1);
        assert_non_null(strstr(err.text, ":1: "));
        bz_flow_free(&g);
    }
    bz_flow_free(&f);
}

/* Bytes by layer: the second line of a name is of the second layer with it; what the file does not name has none. */
static void gradients(void **state)
{
    (void)state;
    bz_error err;
    bz_flow f, g = {0};
    seed = 1;
    make_chain(&f, 3, true);
    bz_flow_copy(&f, &g);
    assert_int_equal(with_file(&g, "data-parallel", "a\t1000\nc\t5000000\n", &err), 2);
    assert_int_equal(g.task[g.n - 2].bytes, 5000000); /* the way back begins with c */
    assert_int_equal(g.task[g.n - 1].bytes, 1000);
    bz_flow_free(&g);
    assert_int_equal(with_file(&f, "data-parallel", "a 1000\n", &err), -1);
    assert_int_equal(with_file(&f, "data-parallel", "x\t1000\n", &err), -1);
    assert_non_null(strstr(err.text, "names none of the recording's layers, such as \"c\""));
    bz_flow_free(&f);
}

/* The kernels of the update become the first of them, whose time is a share of all of theirs. Several may begin at once, on streams of their own. */
static void fused_updates(void **state)
{
    (void)state;
    for (seed = 1; seed < 200; seed++) {
        bz_flow f;
        bz_arena arena = {0};
        make_chain(&f, 2 + draw(10), true);
        int64_t sum = 0;
        int updates = 0;
        uint32_t first = BZ_NONE, behind = f.n;
        for (uint32_t i = 0; i < f.n; i++) {
            bz_task *t = &f.task[i];
            if (t->kind != BZ_TASK_KERNEL || t->phase != BZ_PHASE_UPDATE)
                continue;
            t->at = behind + draw(5);
            first = first == BZ_NONE || t->at < f.task[first].at ? i : first;
            sum += t->duration;
            updates++;
        }
        assert_int_equal(apply(&f, &arena, "fused-optimizer:time=0.5"), updates);
        for (uint32_t i = 0; i < f.n; i++) {
            const bz_task *t = &f.task[i];
            if (t->kind == BZ_TASK_KERNEL && t->phase == BZ_PHASE_UPDATE)
                assert_int_equal(t->removed, i != first);
            else if (t->kind == BZ_TASK_HOST && t->phase == BZ_PHASE_UPDATE)
                assert_int_equal(t->removed, i + 1 != first); /* its launch */
            else
                assert_false(t->removed);
        }
        assert_int_equal(f.task[first].duration, sum / 2);
        bz_flow_free(&f);
        bz_arena_free(&arena);
    }
}

/* An iteration that sets its gradients to zero before the way back, as PyTorch's optimizers do: this waits for no gradient, and no fused
 * update takes it along. Without an update behind, the next iteration waits. */
static void zeroed(void **state)
{
    (void)state;
    for (int step = 0; step < 2; step++) {
        bz_flow f, g = {0};
        bz_arena arena = {0};
        seed = 1;
        make_chain(&f, 3, step);
        for (uint32_t i = 0; i < f.n; i++)
            f.task[i].phase = f.task[i].phase == BZ_PHASE_FORWARD ? BZ_PHASE_UPDATE : f.task[i].phase;
        int64_t before = time_of(&f, NULL, NULL), shared = time_of(&f, "data-parallel:workers=2,gbps=1000000", NULL);
        if (step)
            assert_in_range(shared, before, before + 1000000);
        bz_flow_copy(&f, &g);
        assert_int_equal(apply(&g, &arena, "fused-optimizer"), 3);
        for (uint32_t i = 0; i < g.n; i++) /* of both sorts one is left where it is the one behind the way back */
            assert_true(!step || g.task[i].at >= 6 || !g.task[i].removed);
        bz_flow_free(&g);
        bz_flow_free(&f);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce),    cmocka_unit_test(workers_and_links), cmocka_unit_test(priorities),
        cmocka_unit_test(levels),        cmocka_unit_test(compression),       cmocka_unit_test(memory),
        cmocka_unit_test(policies),      cmocka_unit_test(gradients),         cmocka_unit_test(zeroed),
        cmocka_unit_test(fused_updates),
    };
    trace = bz_trace_new();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_trace_free(trace);
    return failed;
}
