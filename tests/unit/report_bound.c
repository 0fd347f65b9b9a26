/* The rules of the bound, held against random records of a real graph. */
#include "report/report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char DETAILS[] = "{\"measured\":{\"threads\":1,\"flops\":{\"f32\":1e11},\"bandwidth\":[{\"bytes\":1e3,"
                              "\"read\":1e9,\"copy\":1e9}]}}";
static const char SYSTEM[] = "testbox@onednn2.6.3";

typedef struct world {
    char folder[64];
    bz_model *model;
    bz_layers *layers;
    bz_plan *plan;
    bz_perfdb *db;
    bz_setting setting;
    bool fused;
    int64_t date;
    uint64_t dice;
    bz_arena arena;
} world;

static uint32_t dice(world *w, uint32_t n)
{
    w->dice ^= w->dice << 13;
    w->dice ^= w->dice >> 7;
    w->dice ^= w->dice << 17;
    return (uint32_t)(w->dice >> 33) % n;
}

static void set_up(world *w, uint64_t seed)
{
    bz_error err = {0};
    bz_infer_options options = {.batch = 1};
    *w = (world){.folder = "/tmp/benanza-test-XXXXXX", .setting = {1, BZ_CACHE_HOT, ""}, .date = 1000, .dice = seed};
    assert_non_null(mkdtemp(w->folder));
    if (bz_model_load(BENANZA_SOURCE "/tests/cases/analyze/branches.onnx", &w->model, &err) ||
        bz_layers_infer(w->model, &options, &w->layers, &err))
        fail_msg("%s", err.text);
    w->plan = bz_plan_new(&(bz_plan_options){0});
    bz_plan_add(w->plan, w->layers, "branches");
    if (bz_perfdb_open(&w->db, w->folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_put_system(w->db, SYSTEM, DETAILS, 1, &err))
        fail_msg("%s", err.text);
}

static void tear_down(world *w)
{
    char command[128];
    bz_perfdb_close(w->db);
    bz_plan_free(w->plan);
    bz_layers_free(w->layers);
    bz_model_free(w->model);
    bz_arena_free(&w->arena);
    snprintf(command, sizeof command, "rm -rf %s", w->folder);
    assert_int_equal(system(command), 0);
}

static bz_record record_of(world *w, const char *problem, const char *algorithm, double seconds)
{
    bz_record r = bz_record_blank();
    r.system = SYSTEM;
    r.problem = problem;
    r.variant = (bz_variant){"onednn", algorithm, "plain", "default"};
    r.setting = w->setting;
    r.reason = "";
    r.median = seconds;
    r.launch = 1e-7;
    r.n = 3;
    r.iterations = 30;
    r.checked = "ok";
    r.date = w->date;
    return r;
}

static void put(world *w, const bz_record *r, size_t n)
{
    bz_error err = {0};
    if (bz_perfdb_put(w->db, r, n, NULL, &err))
        fail_msg("%s", err.text);
}

/* Two variants of every problem, none faster than 1 ms: above every roofline. */
static void fill(world *w)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(w->plan, &problem);
    for (int i = 0; i < n; i++)
        for (int v = 0; v < 2; v++) {
            bz_record r = record_of(w, problem[i].text, v ? "a" : "b", 1e-3 + 1e-9 * dice(w, 9000000));
            put(w, &r, 1);
        }
}

static bz_bound bound(world *w)
{
    bz_error err = {0};
    const bz_system *system;
    bz_prices *prices = NULL;
    bz_bound b;
    bz_peaks *peaks = BZ_NEW(&w->arena, bz_peaks, 1);
    if (bz_perfdb_system(w->db, SYSTEM, &system, &err) ||
        bz_prices_load(w->plan, w->db, system, &w->setting, &w->arena, &prices, &err))
        fail_msg("%s", err.text);
    bz_peaks_read(bz_system_facts_read(system->details, &w->arena), &w->setting, &w->arena, peaks);
    bz_bound_input in = {.model = "branches",
                         .system = SYSTEM,
                         .facts = bz_system_facts_read(system->details, &w->arena),
                         .setting = w->setting,
                         .layers = w->layers,
                         .plan = w->plan,
                         .fused = w->fused,
                         .prices = prices,
                         .peaks = peaks};
    bz_bound_make(&in, &w->arena, &b);
    return b;
}

static void check_rules(const bz_bound *b)
{
    const bz_coverage_sum *c = &b->coverage;
    double sum = 0;
    assert_int_equal(c->layers, b->layers->n);
    assert_int_equal(c->free + c->measured + c->imported + c->modelled + c->unpriced, c->layers);
    assert_true(c->macs == c->macs_measured + c->macs_imported + c->macs_modelled + c->macs_unpriced);
    for (int i = 0; i < b->streams.n; i++)
        assert_true(b->path.seconds <= b->streams.at[i].seconds && b->streams.at[i].seconds <= b->sequential);
    assert_true(b->streams.at[0].seconds == b->sequential);
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        sum += l->price.alternative ? l->price.seconds * l->times : 0;
        assert_true(l->price.alternative || l->price.why);
        assert_true(!isfinite(l->runner_up) || l->runner_up >= l->price.seconds);
        assert_true(isfinite(l->runner_up) == (l->runner_up_variant != NULL));
    }
    assert_true(sum == b->sequential);
    double gain = 0;
    for (int i = 0; i < b->n_modules; i++) {
        assert_true(b->module[i].cost.sequential > b->module[i].cost.parallel);
        if (b->module[i].within < 0)
            gain += b->module[i].cost.sequential - b->module[i].cost.parallel;
    }
    assert_true(gain == b->sequential - b->path.seconds); /* of this graph: all that is parallel is in one module */
}

static void test_rules(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        world w;
        set_up(&w, seed * 7919);
        bz_bound none = bound(&w);
        check_rules(&none);
        assert_true(none.sequential == 0 && none.coverage.unpriced == none.n && none.n == 10);
        fill(&w);
        bz_bound b = bound(&w);
        check_rules(&b);
        assert_int_equal(b.coverage.unpriced, 0);
        assert_true(b.hardware > 0 && b.hardware <= b.sequential && !b.above_roofline);
        assert_true(fabs(b.launch - 1e-7 * 10) < 1e-6);
        tear_down(&w);
    }
}

/* A better record of whatever problem makes nothing worse; a failed one changes nothing. */
static void test_monotone(void **state)
{
    world w;
    const bz_plan_problem *problem;
    (void)state;
    set_up(&w, 4711);
    fill(&w);
    int n = bz_plan_problems(w.plan, &problem);
    for (int i = 0; i < n; i++) {
        bz_bound before = bound(&w);
        bz_record failed = record_of(&w, problem[i].text, "c", 1e-9);
        failed.status = BZ_RECORD_FAILED;
        failed.reason = "the result was wrong";
        put(&w, &failed, 1);
        bz_bound same = bound(&w);
        assert_true(same.sequential == before.sequential && same.path.seconds == before.path.seconds);
        bz_record better = record_of(&w, problem[i].text, "d", 1e-6 * (1 + dice(&w, 3000)));
        put(&w, &better, 1);
        bz_bound after = bound(&w);
        check_rules(&after);
        assert_true(after.sequential <= before.sequential && after.path.seconds <= before.path.seconds);
    }
    tear_down(&w);
}

/* The same records in another order give the same bytes. */
static void test_order(void **state)
{
    bz_buf text[2] = {{0}};
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        world w;
        const bz_plan_problem *problem;
        set_up(&w, 815);
        int n = bz_plan_problems(w.plan, &problem);
        for (int k = 0; k < 2 * n; k++) {
            int i = turn ? 2 * n - 1 - k : k;
            bz_record r = record_of(&w, problem[i / 2].text, i % 2 ? "a" : "b", 1e-3 + 1e-6 * (i * 37 % 11));
            put(&w, &r, 1);
        }
        bz_analysis a = {.bound = bound(&w)};
        bz_report_json(&(bz_findings){.analysis = &a, .n = 1}, &text[turn]);
        bz_report_text(&a, &text[turn]);
        bz_report_csv(&a, 1, &text[turn]);
        bz_report_dot(&a, &text[turn]);
        tear_down(&w);
    }
    assert_string_equal(bz_buf_text(&text[0]), bz_buf_text(&text[1]));
    bz_buf_free(&text[0]);
    bz_buf_free(&text[1]);
}

/* Five iterations of 20 ms, in each two calls of 4 ms and an operator. */
static bz_trace *trace_of(const char *operator)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), lane = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 5; i++) {
        int64_t at = i * 30000000;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 20000000, bz_trace_text(t, "benanza_iteration"), lane);
        for (int64_t k = 0; k < 2; k++) {
            size_t c = bz_trace_add(t, BZ_EVENT_CALL, at + 1000000 + k * 5000000, at + 5000000 + k * 5000000,
                                    bz_trace_text(t, "convolution"), lane);
            t->event[BZ_EVENT_CALL].library[c] = BZ_LIBRARY_ONEDNN;
            t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
        }
        size_t o = bz_trace_add(t, BZ_EVENT_OP, at + 1000000, at + 2000000, bz_trace_text(t, "Conv"), lane);
        t->event[BZ_EVENT_OP].detail[o] = bz_trace_text(t, operator);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* A bound above what was measured is none: its rungs and speed-ups are not there. */
static void check_ladder(const bz_bound *b, const bz_ladder *l)
{
    if (b->sequential > l->latency) {
        assert_non_null(strstr(l->defect, "is above what it took in all"));
        assert_true(isnan(l->excess) && isnan(l->overlap) && isnan(l->ratio));
        assert_true(isnan(l->speedup) && isnan(l->speedup_parallel));
        return;
    }
    assert_null(l->defect);
    assert_true(l->idle + l->excess + l->overlap + b->path.seconds == l->latency);
    assert_true(l->ratio == b->sequential / l->latency && l->speedup == l->latency / b->sequential);
}

static void test_ladder(void **state)
{
    world w;
    bz_ladder l;
    int above = 0;
    (void)state;
    bz_trace *t = trace_of("");
    for (uint64_t seed = 1; seed <= 5; seed++) {
        set_up(&w, seed);
        fill(&w);
        bz_bound b = bound(&w);
        b.rebuilt = 1; /* so that nobody asks whether the calls are those of its layers */
        bz_ladder_make(&b, t, "made up", &w.arena, &l);
        assert_true(l.latency == bz_tick(0.02) && l.busy == bz_tick(0.008));
        check_ladder(&b, &l);
        above += l.defect != NULL;
        b.sequential = bz_tick(0.01), b.path.seconds = bz_tick(0.009); /* between busy and measured: a warning */
        bz_ladder_make(&b, t, "made up", &w.arena, &l);
        check_ladder(&b, &l);
        assert_null(l.defect);
        assert_int_equal(l.n_warnings, 1);
        assert_non_null(strstr(l.warning[0], "is above what its library calls took"));
        tear_down(&w);
    }
    assert_int_not_equal(above, 0);
    bz_trace_free(t);
}

#define CPU    "{\"cpu\":\"x\"}"
#define ON_GPU "ran on a GPU, the bound is for a processor"

/* A program on a device is not held against a processor's bound without a word, nor the other way round. */
static const char XEON[] = "{\"device\":\"cpu\",\"name\":\"Intel Xeon\"}";
static const char H200[] = "{\"device\":\"gpu\",\"name\":\"NVIDIA H200\"}";

static const char SHEET[] = "{\"device\":\"gpu\",\"name\":\"Tesla V100-SXM2\"}"; /* its data sheet's name */

static void test_ladder_of_machines(void **state)
{
    static const struct {
        const char *details;
        bz_library library;
        const char *operator;
        bool on_device;
        const char *warning; /* NULL: none */
        const char *machine; /* that the recording names */
    } CASES[] = {
        {"", BZ_LIBRARY_CUDNN, "", true, NULL, NULL},
        {CPU, BZ_LIBRARY_ONEDNN, "", false, NULL, NULL},
        {CPU, BZ_LIBRARY_OTHER, "provider=CPUExecutionProvider", false, NULL, NULL},
        {CPU, BZ_LIBRARY_OTHER, "provider=CUDAExecutionProvider node=3", true, ON_GPU, NULL},
        {CPU, BZ_LIBRARY_CUBLASLT, "", true, ON_GPU, NULL},
        {"{\"gpu\":\"V100\"}", BZ_LIBRARY_CUDNN, "", true, NULL, NULL},
        {"{\"gpu\":\"V100\"}", BZ_LIBRARY_OTHER, "", false, NULL, NULL},
        {"{\"device\":\"gpu\"}", BZ_LIBRARY_CUDNN, "", true, NULL, NULL},
        {"{\"device\":\"gpu\"}", BZ_LIBRARY_BLAS, "", false, "ran on a processor, the bound is for a GPU", NULL},
        {XEON, BZ_LIBRARY_ONEDNN, "", false, NULL, "Intel Xeon, 2 threads"},
        {XEON, BZ_LIBRARY_ONEDNN, "", false, "ran on AMD EPYC, the bound is for Intel Xeon", "AMD EPYC, 2 threads"},
        {CPU, BZ_LIBRARY_ONEDNN, "", false, NULL, "AMD EPYC, 2 threads"},
        {H200, BZ_LIBRARY_CUDNN, "", true, NULL, "NVIDIA H200"},
        {SHEET, BZ_LIBRARY_CUDNN, "", true, NULL, "Tesla V100-SXM2-32GB"},
        {SHEET, BZ_LIBRARY_CUDNN, "", true, "ran on Tesla V100-PCIE-16GB, the bound is for Tesla V100-SXM2",
         "Tesla V100-PCIE-16GB"},
        {H200, BZ_LIBRARY_CUDNN, "", true, "ran on NVIDIA A100, the bound is for NVIDIA H200", "NVIDIA A100"}};
    world w;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_ladder l;
        bz_trace *t = trace_of(CASES[i].operator);
        bz_events *calls = &t->event[BZ_EVENT_CALL];
        bool told = false;
        set_up(&w, 1);
        bz_bound b = bound(&w);
        b.facts = bz_system_facts_read(CASES[i].details, &w.arena);
        if (CASES[i].machine)
            bz_trace_fact(t, strstr(CASES[i].machine, "threads") ? "cpu" : "gpu", CASES[i].machine);
        for (size_t k = 0; k < calls->n; k++)
            calls->library[k] = CASES[i].library;
        bz_ladder_make(&b, t, "made up", &w.arena, &l);
        for (int k = 0; k < l.n_warnings; k++)
            told |= strstr(l.warning[k], "the bound is for") != NULL;
        assert_true(l.on_device == CASES[i].on_device && told == (CASES[i].warning != NULL));
        if (told)
            assert_non_null(strstr(l.warning[0], CASES[i].warning));
        assert_true((l.ran_on != NULL) == told);
        /* what one machine took over what another one could do says nothing: no ratio, no step, no gain of it */
        assert_true(!(told && (isfinite(l.speedup) || isfinite(l.ratio) || isfinite(l.excess))));
        bz_waterfall steps;
        bz_waterfall_make(&b, &l, NULL, &steps);
        assert_true(!told || (!steps.n && !isfinite(steps.to)));
        tear_down(&w);
        bz_trace_free(t);
    }
}

/* BLAS may have threads that nobody gave it: then products take less than one thread can. */
static void test_threads_of_blas(void **state)
{
    static const struct {
        const char *blas;
        int bound;
        bool told;
    } CASES[] = {{NULL, 1, false}, {"1", 1, false}, {"2", 1, true}, {"2", 2, false}, {"8", 2, true}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world w;
        bz_ladder l;
        bool told = false;
        char wanted[40];
        bz_trace *t = trace_of("");
        set_up(&w, 1);
        bz_bound b = bound(&w);
        b.setting.threads = CASES[i].bound;
        if (CASES[i].blas)
            bz_trace_fact(t, "blas threads", CASES[i].blas);
        bz_ladder_make(&b, t, "made up", &w.arena, &l);
        snprintf(wanted, sizeof wanted, "OPENBLAS_NUM_THREADS=%d", CASES[i].bound);
        for (int k = 0; k < l.n_warnings; k++)
            told |= strstr(l.warning[k], wanted) != NULL;
        assert_int_equal(told, CASES[i].told);
        tear_down(&w);
        bz_trace_free(t);
    }
}

/* Takes layers' prices away, dear ones first or last, until nothing is left: there are ratios as long as enough is priced. */
static void take_prices(bz_bound *b, const bz_trace *t, bool from_end)
{
    double macs = 0, time = 0, bytes = 0, all_macs = 0, all_time = 0, all_bytes = 0;
    bz_arena arena = {0};
    for (int i = 0; i < b->n; i++) {
        all_macs += (double)b->layer[i].layer->macs;
        all_time += isfinite(b->layer[i].hardware) ? b->layer[i].hardware : 0;
        all_bytes += bz_peaks_bytes(b->layer[i].layer, NULL, b->dtype);
    }
    for (int k = 0; k <= b->n; k++) {
        double lacking = all_time > 0 ? time / all_time : bytes / all_bytes;
        bool enough = macs <= 0.01 * all_macs && lacking <= 0.05;
        bz_goal goal = bz_bound_goal(b);
        bz_ladder l;
        bz_waterfall steps;
        bz_ladder_make(b, t, "made up", &arena, &l);
        l.waterfall = &steps;
        bz_waterfall_make(b, &l, NULL, &steps);
        bz_analysis a = {.bound = *b, .ladder = &l, .n_ladders = 1};
        bz_evaluation e;
        bz_evaluation_make(&a, 1, &arena, &e);
        assert_true(goal.enough == enough && goal.modelled == (all_time > 0));
        assert_true(fabs(goal.time - (1 - lacking)) < 1e-9 && fabs(goal.macs - (1 - macs / all_macs)) < 1e-9);
        assert_true(isfinite(l.speedup) == enough && isfinite(l.ratio) == enough && isfinite(l.excess) == enough);
        assert_true((steps.n > 0) == enough && isfinite(steps.to) == enough);
        assert_true(isfinite(e.mean[BZ_RATIO_MEASURED]) == enough && e.known[BZ_RATIO_PARALLEL] == enough);
        assert_true(e.group[0].models == enough && e.group[0].rows == 1);
        if (k == b->n)
            break;
        bz_bound_layer *next = &b->layer[from_end ? b->n - 1 - k : k];
        next->price.alternative = NULL;
        macs += (double)next->layer->macs;
        time += isfinite(next->hardware) ? next->hardware : 0;
        bytes += bz_peaks_bytes(next->layer, NULL, b->dtype);
    }
    bz_arena_free(&arena);
}

static void test_goal(void **state)
{
    (void)state;
    bz_trace *t = trace_of("");
    for (int turn = 0; turn < 4; turn++) {
        world w;
        set_up(&w, 11);
        fill(&w);
        bz_bound b = bound(&w);
        b.sequential = bz_tick(0.005), b.path.seconds = bz_tick(0.004);
        b.rebuilt = 1;
        for (int i = 0; i < b.n && turn & 2; i++)
            b.layer[i].hardware = NAN; /* without peaks the bytes stand for the time */
        take_prices(&b, t, turn & 1);
        tear_down(&w);
    }
    bz_trace_free(t);
}

/* Recorded in levels: measured is what the program alone took; the rest is of the iterations that were recorded. */
static void test_ladder_of_levels(void **state)
{
    (void)state;
    world w;
    bz_ladder l;
    bz_level_iteration alone[] = {{19000000, 0, false}, {18000000, 0, false}, {17500000, 0, false}};
    bz_trace *t = trace_of("");
    bz_level levels[] = {{bz_trace_text(t, "program alone"), 1, alone, 3},
                         {bz_trace_text(t, "with calls"), 2, NULL, 0}};
    t->level = levels;
    t->n_levels = 2;
    t->own_level = 1;
    set_up(&w, 1);
    fill(&w);
    bz_bound b = bound(&w);
    bz_ladder_make(&b, t, "made up", &w.arena, &l);
    assert_string_equal(l.run, "program alone");
    assert_true(l.latency == bz_tick(0.018) && l.recorded == bz_tick(0.02) && l.busy == bz_tick(0.008));
    check_ladder(&b, &l);
    int before = l.n_warnings;
    for (int i = 0; i < 3; i++)
        alone[i].latency = 7000000;
    bz_ladder_make(&b, t, "made up", &w.arena, &l);
    assert_true(l.n_warnings > before);
    assert_non_null(strstr(l.warning[0], "was in library calls for longer in the recorded run than"));
    tear_down(&w);
    bz_trace_free(t);
}

/* hardware <= fused <= as written, with groups cheap and dear. */
static void test_fused(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        world w;
        bz_error err = {0};
        bz_patterns *patterns = NULL;
        const bz_plan_problem *problem;
        set_up(&w, seed * 104729);
        assert_int_equal(bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err), 0);
        bz_plan_free(w.plan);
        w.plan = bz_plan_new(&(bz_plan_options){.patterns = patterns});
        bz_plan_add(w.plan, w.layers, "branches");
        bz_patterns_free(patterns);
        w.fused = true;
        bz_bound none = bound(&w);
        assert_true(none.fused.wanted && none.fused.n == 0 && none.fused.missing > 0 && none.fused.unpriced == 9);
        int n = bz_plan_problems(w.plan, &problem), covered = 0;
        for (int i = 0; i < n; i++) {
            bool group = strstr(problem[i].text, "post=") != NULL;
            bz_record r =
                record_of(&w, problem[i].text, "a", (group && seed % 2 ? 1e-4 : 1e-3) + 1e-9 * dice(&w, 900000));
            put(&w, &r, 1);
        }
        bz_bound b = bound(&w);
        check_rules(&b);
        const bz_bound_fused *f = &b.fused;
        assert_true(f->hardware > 0 && f->hardware <= b.hardware && f->hardware <= f->sequential);
        /* the relu behind the stem: 16 channels of 32 x 32 are neither written nor read */
        assert_true(b.hardware - f->hardware >= 2 * 16 * 32 * 32 * 4 / 1e9 - 1e-9);
        assert_true(f->parallel <= f->sequential && f->sequential <= b.sequential);
        double *seconds = bz_arena_dup(&w.arena, b.seconds, (size_t)b.dag->n * sizeof *seconds);
        for (int g = 0; g < f->n; g++)
            for (int i = 0; i < f->group[g].n; i++)
                seconds[f->group[g].layer[i]] = i < f->group[g].n - 1 ? 0 : f->group[g].price.seconds;
        for (int i = 0; i < b.dag->n; i++)
            seconds[i] = f->spare[i] ? 0 : seconds[i];
        bz_path path;
        bz_schedule_parallel(b.dag, seconds, &w.arena, &path);
        assert_true(path.seconds == f->parallel);
        double sum = b.sequential; /* what the groups replace is what they save, and layers that need not run */
        for (int g = 0; g < f->n; g++) {
            sum += f->group[g].price.seconds;
            for (int i = 0; i < f->group[g].n; i++)
                sum -= b.seconds[f->group[g].layer[i]];
            covered += f->group[g].n;
        }
        for (int i = 0; i < b.dag->n; i++)
            sum -= f->spare[i] ? b.seconds[i] : 0;
        assert_true(sum == f->sequential && covered == f->covered && f->unpriced == 0);
        assert_true(seed % 2 == 0 || f->n > 0); /* fused calls that cheap are taken */
        tear_down(&w);
    }
}

static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        bz_span a, b;
        bz_verdict verdict;
    } CASES[] = {
        {{1, 0.999, 1.001, false}, {1.01, 1.009, 1.011, false}, BZ_SAME},
        {{1, 0.999, 1.001, false}, {1.1, 1.09, 1.11, false}, BZ_SLOWER},
        {{1, 0.999, 1.001, false}, {0.9, 0.89, 0.91, false}, BZ_FASTER},
        {{1, 0.9, 1.1, false}, {1.05, 1.0, 1.2, false}, BZ_UNDECIDED},
        {{1, 0.9, 1.1, false}, {1, 0.9, 1.1, false}, BZ_UNDECIDED}, /* equal medians are no proof */
        {{1, 0.975, 1.025, true}, {1, 0.975, 1.025, true}, BZ_SAME},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(bz_verdict_of(&CASES[i].a, &CASES[i].b), CASES[i].verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_goal),
        cmocka_unit_test(test_ladder_of_machines),
        cmocka_unit_test(test_threads_of_blas),
        cmocka_unit_test(test_ladder_of_levels),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
