/* Layers of a model in the graph of a processor's recording, on a program made by hand: a convolution with a reorder on either side, a
 * normalization and an addition that no call did, and a product. */
#include "training/training.h"
#include "whatif/ways.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perfdb_test.h"
#include "whatif_ask.h"

enum { CONV, NORM, ADD, GEMM, LAYERS, CALLS = 4 };
enum { US = 1000, END = 10500 }; /* of an iteration, in µs */
static const double MS = 1e-3;

typedef struct program {
    bz_type type[2];
    bz_layer layer[LAYERS];
    bz_bound_layer of[LAYERS];
    bz_bound_place place;
    bz_layers layers;
    bz_dag dag;
    bz_peaks peaks;
    bz_aligned row[LAYERS];
    bz_alignment alignment;
    bz_regret_row call;
    bz_regret regret;
    bz_pick own[LAYERS], other[LAYERS], together;
    bz_picks picks[3];
    bz_bound bound;
    bz_whatif_model model;
    bz_trace *trace;
    bz_flow flow;
    bz_whatif whatif;
    bz_arena arena;
} program;

/* Four times: a reorder of 1 ms, 10 µs, the convolution of 4 ms, 20 µs, a reorder of 1 ms, 3020 µs, the product of 1 ms, 450 µs. */
static bz_trace *trace_of(const char *op) /* the operator that calls all but the product; NULL */
{
    static const char *const NAMES[] = {"reorder", "convolution", "reorder", "inner_product"};
    static const int64_t AT[] = {0, 1010, 5030, 9050}, TOOK[] = {1000, 4000, 1000, 1000};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 11000 * US;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + END * US, bz_trace_text(t, "benanza_iteration"), host);
        if (op)
            bz_trace_add(t, BZ_EVENT_OP, at, at + 6030 * US, bz_trace_text(t, op), host);
        for (int k = 0; k < CALLS; k++) {
            size_t e = bz_trace_add(t, BZ_EVENT_CALL, at + AT[k] * US, at + (AT[k] + TOOK[k]) * US,
                                    bz_trace_text(t, NAMES[k]), host);
            t->event[BZ_EVENT_CALL].flags[e] = BZ_CALL_EXECUTES;
        }
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* The same as PyTorch's profiler has it: operators, of which another one inside does the work. */
static bz_trace *operators_of(void)
{
    static const char *const NAMES[] = {"aten::conv2d", "aten::mkldnn_convolution", "aten::batch_norm", "aten::linear",
                                        "aten::addmm"};
    static const int64_t AT[] = {1000, 1005, 6000, 9050, 9055}, TOOK[] = {4010, 4000, 500, 1010, 1000};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 11000 * US;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + END * US, bz_trace_text(t, "benanza_iteration"), host);
        for (size_t k = 0; k < sizeof AT / sizeof *AT; k++)
            bz_trace_add(t, BZ_EVENT_OP, at + AT[k] * US, at + (AT[k] + TOOK[k]) * US, bz_trace_text(t, NAMES[k]),
                         host);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_pick pick(double ms)
{
    return (bz_pick){ms * MS, 0.9 * ms * MS, 1.1 * ms * MS, NAN, 1e6, 1e6, 1, "jit"};
}

static int make(void **state)
{
    static const char *const KINDS[] = {"conv", "batchnorm", "add", "gemm"};
    static const int NODES[] = {CONV, NORM, ADD, GEMM};
    static const int FIRST[] = {0, 0, 1, 2, 3}, PRED[] = {CONV, NORM, ADD};
    static const bool CONSTANT[2];
    static const bz_dim DIMS[] = {1, 64, 128, 128};
    static const double PRICE[] = {2, 0.5, 0.25, 0.7};
    program *p = calloc(1, sizeof *p);
    for (int i = 0; i < 2; i++)
        p->type[i] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = DIMS};
    p->trace = trace_of(NULL);
    if (bz_flow_make(p->trace, bz_typical_iteration(p->trace), &p->flow, &err) ||
        bz_whatif_begin(&p->flow, &p->arena, &p->whatif, &err))
        fail_msg("%s", err.text);
    size_t first = 0; /* call of the iteration that the flow is of */
    while (bz_event_iteration(p->trace, BZ_EVENT_CALL, first) != p->flow.iteration)
        first++;
    for (int i = 0; i < LAYERS; i++) {
        bool call = i == CONV || i == GEMM;
        p->layer[i] = (bz_layer){.index = i,
                                 .name = KINDS[i],
                                 .kind = KINDS[i],
                                 .n_in = i == ADD ? 2 : 1,
                                 .in = p->type,
                                 .n_out = 1,
                                 .out = p->type,
                                 .in_constant = CONSTANT,
                                 .bytes = i == ADD ? 12 << 20 : 8 << 20,
                                 .macs = call ? 1000 : 0};
        p->of[i] = (bz_bound_layer){.layer = &p->layer[i], .node = i, .times = 1};
        p->of[i].price.seconds = PRICE[i] * MS;
        p->of[i].price.alternative = (const void *)&p->of[i];
        p->row[i] = (bz_aligned){.kind = call ? BZ_ALIGNED_SAME : BZ_ALIGNED_MISSING,
                                 .layer = &NODES[i],
                                 .n_layers = 1,
                                 .at = i == CONV   ? first + 1
                                       : i == GEMM ? first + 3
                                                   : SIZE_MAX,
                                 .op = BZ_NONE};
        p->own[i] = pick(PRICE[i]);
        p->other[i] = pick(PRICE[i] / 2);
    }
    p->together = pick(1.5);
    p->picks[0] = (bz_picks){.free = p->own, .plain = p->own, .place = &p->together};
    p->picks[1] = (bz_picks){.dtype = BZ_BF16, .free = p->other, .plain = p->other};
    p->picks[2] = (bz_picks){.training = true, .free = p->own, .plain = p->own};
    p->place = (bz_bound_place){.pattern = "conv+batchnorm", .layer = NODES, .n = 2};
    p->layers = (bz_layers){.layer = p->layer, .n = LAYERS};
    p->dag = (bz_dag){.n = LAYERS, .first = FIRST, .pred = PRED};
    p->peaks.why = "nobody measured them";
    p->alignment = (bz_alignment){.timeline = true, .row = p->row, .n = LAYERS};
    p->bound = (bz_bound){.system = "testbox",
                          .layer = p->of,
                          .n = LAYERS,
                          .layers = &p->layers,
                          .dag = &p->dag,
                          .peaks = &p->peaks,
                          .fused = {.place = &p->place, .n_places = 1}};
    p->model = (bz_whatif_model){&p->bound, &p->alignment, NULL, p->picks, 3};
    p->whatif.model = &p->model;
    *state = p;
    return 0;
}

static int drop(void **state)
{
    program *p = *state;
    bz_flow_free(&p->flow);
    bz_trace_free(p->trace);
    bz_arena_free(&p->arena);
    free(p);
    return 0;
}

static const bz_prediction *predict(program *p, const char *change)
{
    bz_whatif_asked asked;
    if (bz_whatif_parse(change, &p->arena, &asked, &err) ||
        bz_whatif_predict(&asked, 1, &p->arena, &p->whatif, NULL, NULL, &err))
        fail_msg("%s", err.text);
    return &p->whatif.prediction[p->whatif.n - 1];
}

/* One process takes at least a hundredth more or less than the next. */
static const double LEAST = 0.99, MOST = 1.01;

static void is_us(int64_t ns, double us)
{
    if (fabs((double)ns / US - us) > 0.01)
        fail_msg("%g us, not %g", (double)ns / US, us);
}

/* The fused convolution, the addition and the product by their records, twice a call's own 10 µs between two operators; the end as it was. */
static void library(void **state)
{
    program *p = *state;
    const bz_prediction *q = predict(p, "library=conv+batchnorm");
    is_us(q->time, 1500 + 20 + 250 + 20 + 700 + 450);
    is_us(q->low, LEAST * (0.9 * (1500 + 250 + 700) + 10 + 10 + 450));
    is_us(q->high, MOST * (1.1 * (1500 + 250 + 700) + 20 + 20 + 450));
    assert_true(q->changed > 0 && q->n_assumed == 2);
    q = predict(p, "library"); /* the normalization is a call of its own */
    is_us(q->time, 2000 + 20 + 500 + 20 + 250 + 20 + 700 + 450);
    p->together.seconds = NAN; /* what nobody measured is no call */
    is_us(predict(p, "library=conv+batchnorm")->time, 2000 + 20 + 500 + 20 + 250 + 20 + 700 + 450);
    p->own[CONV].seconds = p->own[GEMM].seconds = NAN;
    q = predict(p, "library");
    assert_int_equal(q->changed, 0);
    assert_string_equal(q->because, "none of 2 products has a record");
}

/* Two products with 1 MB of weights each, which a loop over the 12 MB of an iteration reads in 16 us, as one over 16 MB does, and one over the 2 MB of the product
 * in 8: 2.2 times the difference, 4.3 times at the dear end. Weights that no cache holds come from memory; where the record's came from there, nothing is
 * added. Records with cold caches tell better; where nobody made any and it may be much, that is said. */
static void from_memory(void **state)
{
    static const bool CONSTANT[] = {true};
    program *p = *state;
    double whole = 1500 + 20 + 250 + 20 + 700 + 450, near = 1e6 / 128e3, far = 1e6 / 64e3;
    p->peaks = (bz_peaks){.n_bandwidth = 3, .bandwidth = {{4e6, 256e9, 128e9}, {16e6, 80e9, 64e9}, {64e6, 50e9, 32e9}}};
    const bz_prediction *q = predict(p, "library=conv+batchnorm");
    is_us(q->time, whole + 2 * 2.2 * (far - near));
    is_us(q->high, MOST * (1.1 * (1500 + 250 + 700) + 20 + 20 + 450 + 2 * 4.3 * (far - near)));
    assert_int_equal(q->n_assumed, 2);
    p->layer[CONV].in_constant = CONSTANT; /* 4 MB more */
    is_us(predict(p, "library=conv+batchnorm")->time, whole + 2 * 2.2 * (2 * far - near));
    p->own[GEMM].data = p->together.data = 1e8;
    is_us(predict(p, "library=conv+batchnorm")->time, whole);
    p->own[GEMM].data = p->together.data = 1e6;
    p->layer[CONV].in_constant = p->layer[NORM].in_constant;
    p->peaks.bandwidth[0].bytes = 11e6;
    p->peaks.bandwidth[1].read = 32e9;
    p->own[GEMM].weights = 1e7;
    q = predict(p, "library=conv+batchnorm");
    assert_non_null(strstr(q->assumed[1].what, "no record tells what 11.0 MB of weights take from memory"));
    p->own[GEMM].cold = p->together.cold = 3 * MS;
    assert_int_equal(predict(p, "library=conv+batchnorm")->n_assumed, 2);
}

static void record(program *p, bz_trace *t)
{
    bz_flow_free(&p->flow);
    bz_trace_free(p->trace);
    p->trace = t;
    p->whatif = (bz_whatif){0};
    if (bz_flow_make(t, bz_typical_iteration(t), &p->flow, &err) ||
        bz_whatif_begin(&p->flow, &p->arena, &p->whatif, &err))
        fail_msg("%s", err.text);
    p->whatif.model = &p->model;
}

/* A layer is the outermost operator that is known, its task the one inside that works. The batch normalization is the model's, or in its weights: then
 * *normalized is it. */
static void record_operators(program *p, uint32_t *normalized)
{
    int n = 0;
    record(p, operators_of());
    const bz_events *op = &p->trace->event[BZ_EVENT_OP];
    for (size_t i = 0; i < op->n; i++)
        if (bz_event_iteration(p->trace, BZ_EVENT_OP, i) == p->flow.iteration && op->op[i] >= op->n) {
            bz_aligned *row = n == 0 ? &p->row[CONV] : n == 2 ? &p->row[GEMM] : NULL;
            if (row) {
                row->op = (uint32_t)i;
                row->at = SIZE_MAX;
            } else {
                *normalized = (uint32_t)i;
            }
            n++;
        }
    assert_int_equal(n, 3);
}

static void operators(void **state)
{
    program *p = *state;
    uint32_t normalized;
    record_operators(p, &normalized);
    const bz_prediction *q = predict(p, "library=conv+batchnorm");
    assert_int_equal(q->changed, LAYERS); /* all become the library's, the two with an operator as well */
    int64_t with = q->time;
    p->alignment.normalized = &normalized;
    p->alignment.n_normalized = 1;
    int64_t without = predict(p, "library=conv+batchnorm")->time;
    is_us(with - without, 500 + 995);                    /* and the least time between two operators */
    assert_true(predict(p, "library=")->time > without); /* nothing is joined then */
}

/* What the convolution takes above its record, 2 of 4 ms, goes to the bytes that it writes: input, weights, and twice its result. A tensor that passes
 * between the library and the framework takes half as much for a byte, since memory may be handed out anew then or not; where the operator writes none of
 * these, as the machine was measured. */
static void hidden(void **state)
{
    program *p = *state;
    uint32_t normalized;
    double bytes = 4 * 64 * 128 * 128;
    record_operators(p, &normalized);
    const char *change = "library=conv+batchnorm only conv batchnorm gemm";
    int64_t with = predict(p, change)->time;
    p->own[CONV].variant = "x64:gemm:jit";
    is_us(with - predict(p, change)->time, 3 * 2000 * bytes / (1e6 + 1e6 + bytes) / 2);
}

/* Of the time, by pages of a tenth of it: what they put out of the caches, too. */
static const double ANEW = 0.1 * (1 + 0.4 * (1 - 0.1));

/* The same, where the program changed keeps its memory: the addition holds 12 MB at once, its operand, a copy of that, and the result, which is more than
 * twice the largest tensor; where a tensor has 6 MB or more it is not. Then a reorder takes what the machine was measured to take, and the addition none of
 * what pages take that it wrote, a quarter of all. */
static void kept(void **state)
{
    static const bz_dim LARGE[] = {1, 96, 128, 128};
    program *p = *state;
    uint32_t normalized;
    double bytes = 4 * 64 * 128 * 128, machine = bytes / 4 / 1e3;
    const char *change = "library=conv+batchnorm only conv batchnorm gemm";
    bz_type large = p->type[0];
    record_operators(p, &normalized);
    p->peaks.reorder[0] = (bz_peak_rate){BZ_F32, 1e9};
    p->peaks.n_reorder = 1;
    const bz_prediction *anew = predict(p, change);
    large.dims = LARGE;
    p->layer[GEMM].in = &large;
    const bz_prediction *q = predict(p, change);
    is_us(anew->time - q->time, 3 * (2000 * bytes / (1e6 + 1e6 + bytes) - machine) / 2);
    bz_trace_fact(p->trace, "fresh memory", "1000 pages in each second of the iterations, 100 us a page");
    is_us(q->time - predict(p, change)->time, ANEW * (double)p->flow.measured / US / 4);
    p->layer[GEMM].in = p->type;
    is_us(predict(p, change)->time, (double)anew->time / US);
}

static void store(bz_perfdb *db, const char *problem, double ms)
{
    bz_record r = bz_record_blank();
    r.system = "here@blas1";
    r.problem = problem;
    r.variant = (bz_variant){"cblas", "sgemm", "plain", "default"};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = ms * MS;
    r.n = r.iterations = 10;
    r.timing = BZ_TIMING_WALL;
    r.date = 1700000000;
    assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
}

/* The linear layer that the framework keeps gets its weights the other way round. Where no record of BLAS tells what it takes so, no number stands. */
static void turned(void **state)
{
    static const char BOTH[] = "gemm m=1 n=64 k=128 batch=1 transa=0 transb=1 dtype=f32",
                      OTHER[] = "gemm m=1 n=64 k=128 batch=1 transa=0 transb=0 dtype=f32",
                      CHANGE[] = "library=turned conv+batchnorm only conv batchnorm add";
    static const bool CONSTANT[] = {false, true};
    program *p = *state;
    uint32_t normalized;
    void *folder;
    bz_perfdb *db;
    bz_problem with_bias, plain;
    bz_alternative ways[] = {{.n = 1, .problem = &with_bias}, {.n = 1, .problem = &plain}};
    bz_lowering lowering = {.alternative = ways, .n = 2};
    bz_whatif_records r = {.name = "records of here", .setting = {1, BZ_CACHE_HOT, ""}};
    record_operators(p, &normalized);
    assert_int_equal(make_folder(&folder), 0);
    assert_ok(bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@blas1", "{\"device\":\"cpu\"}", 1700000000, &err));
    assert_ok(bz_perfdb_known(db, "here", &r.system, &err));
    assert_ok(bz_problem_parse(BOTH, &plain, &err));
    with_bias = plain;
    with_bias.post[0].fn = BZ_FN_BIAS;
    p->of[GEMM].lowering = &lowering;
    p->layer[GEMM].n_in = 2;
    p->layer[GEMM].in_constant = CONSTANT;
    r.db = db;
    p->whatif.records = &r;
    store(db, BOTH, 2);
    const bz_prediction *q = predict(p, CHANGE);
    assert_non_null(strstr(q->unsure, OTHER));
    assert_non_null(strstr(q->unsure, "a number stands once benanza gen -o DIR --problem 'gemm"));
    int64_t before = q->time;
    store(db, OTHER, 1);
    q = predict(p, CHANGE);
    assert_null(q->unsure);
    is_us(before - q->time, 1000 / 2);
    bz_perfdb_close(db);
    assert_int_equal(remove_folder(&folder), 0);
}

/* A convolution along one axis stays as it is where the step takes none, with the reorders that its operator calls; a normalization goes into its
 * weights all the same. */
static void one_axis(void **state)
{
    program *p = *state;
    bz_type line = p->type[0];
    line.rank = 3;
    p->layer[CONV].in = &line;
    const char *change = "library=conv+batchnorm only conv batchnorm gemm";
    is_us(predict(p, change)->time, 4000 + 10 + 1812 + 700 + 450 + 2 * 10);
    record(p, trace_of("aten::conv1d"));
    is_us(predict(p, change)->time, 1000 + 10 + 4000 + 10 + 1000 + 10 + 1812 + 700 + 450 + 2 * 10);
    is_us(predict(p, "library=conv+batchnorm only conv1d batchnorm gemm")->time, 1500 + 10 + 1812 + 700 + 450 + 3 * 10);
}

/* Calls that are twice their record now, of which the library may spare a part. */
static void slower(void **state)
{
    program *p = *state;
    p->call = (bz_regret_row){.calls = 1, .seen = 4 * MS, .used = 2 * MS, .problem = "conv", .variant = "jit"};
    p->regret = (bz_regret){.row = &p->call, .n = 1};
    p->model.regret = &p->regret;
    p->row[CONV].problem = "conv";
    p->row[CONV].variant = "jit";
    const bz_prediction *q = predict(p, "library=conv+batchnorm");
    is_us(q->time, 1.5 * (1500 + 250 + 700) + 20 + 20 + 450);
    is_us(q->low, LEAST * (0.9 * (1500 + 250 + 700) + 10 + 10 + 450));
    is_us(q->high, MOST * (2 * 1.1 * (1500 + 250 + 700) + 20 + 20 + 450));
}

/* An iteration that takes twice as long as another one: what records say takes twice as long in it, and a call that takes as much longer is not farther
 * from its operands. */
static void busy(void **state)
{
    program *p = *state;
    bz_iteration *other = &p->trace->iteration[p->flow.iteration == 3 ? 2 : 3];
    other->end = other->start + END * US / 2;
    is_us(predict(p, "library=conv+batchnorm")->time, 2 * (1500 + 250 + 700) + 20 + 20 + 450);
    p->call = (bz_regret_row){.calls = 1, .seen = 4 * MS, .used = 2 * MS, .problem = "conv", .variant = "jit"};
    p->regret = (bz_regret){.row = &p->call, .n = 1};
    p->model.regret = &p->regret;
    p->row[CONV].problem = "conv";
    p->row[CONV].variant = "jit";
    is_us(predict(p, "library=conv+batchnorm")->time, 2 * (1500 + 250 + 700) + 20 + 20 + 450);
}

/* The addition stays the framework's, with its 1,812 of 3,020 µs; its input is reordered, its result copied and reordered. */
static void left(void **state)
{
    program *p = *state;
    const bz_prediction *q = predict(p, "library=conv+batchnorm only conv batchnorm gemm");
    is_us(q->time, 1500 + 10 + 1812 + 700 + 450 + 3 * 10);
    q = predict(p, "library=conv+batchnorm leaves add");
    is_us(q->time, 1500 + 10 + 1812 + 700 + 450 + 3 * 10);
}

/* Groups of 8 channels fill a block, groups of 4 do not: what the addition makes of theirs is reordered for the product. An operand of another shape is
 * written out and reordered. */
static void blocks(void **state)
{
    program *p = *state;
    static const bz_dim EIGHT[] = {64, 8, 3, 3}, FOUR[] = {64, 4, 3, 3}, DIMS[] = {1, 64, 128, 128},
                        SMALL[] = {1, 64, 1, 1};
    bz_type conv[] = {p->type[0], p->type[0]}, add[] = {p->type[0], p->type[0]};
    double whole = 1500 + 20 + 250 + 20 + 700 + 450;
    p->layer[CONV].in = conv;
    p->layer[CONV].n_in = 2;
    p->layer[ADD].in = add;
    conv[0].dims = DIMS;
    conv[1].dims = EIGHT;
    is_us(predict(p, "library=conv+batchnorm")->time, whole);
    p->picks[2].free = p->other;
    assert_true(predict(p, "joined=blocked")->time < END * US);
    conv[1].dims = FOUR;
    assert_int_equal(predict(p, "joined=blocked")->changed, 0);
    is_us(predict(p, "library=conv+batchnorm")->time, whole + 10);
    conv[1].dims = EIGHT;
    add[1].dims = SMALL;
    is_us(predict(p, "library=conv+batchnorm")->time, whole + 2 * 10);
}

/* Records of the other type; reorders of half the bytes, between half of their time and all; other layers as they are. */
static void products(void **state)
{
    program *p = *state;
    const bz_prediction *q = predict(p, "products=bf16");
    is_us(q->time, 1000 + 350 + 2 * 750 + 10 + 20 + 3020 + 450);
    is_us(q->low, LEAST * (0.9 * (1000 + 350) + 2 * 500 + 10 + 20 + 3020 / 2. + 450));
}

/* The library's pick in a layout of its choice is for gradients of convolutions, too; a product that no call did stays the framework's. */
static void gradients(void **state)
{
    program *p = *state;
    bz_pick plain[LAYERS];
    memcpy(plain, p->other, sizeof plain);
    plain[CONV].seconds *= 3;
    p->picks[1].plain = plain;
    int64_t whole = predict(p, "products=bf16")->time;
    p->layer[CONV].kind = "conv_weights";
    is_us(predict(p, "products=bf16")->time, (double)whole / US);
    p->layer[CONV].kind =
        "matmul"; /* its data comes from far, of half the bytes: 2 of the 4 ms; its record is thrice as long */
    is_us(predict(p, "products=bf16")->time, (double)whole / US + 3000 - 1000);
    p->layer[CONV].kind = "conv";
    p->layer[ADD].macs = 1000;
    is_us(predict(p, "products=bf16")->time, (double)whole / US);
}

/* Two calls did the convolution: each takes its share of the record, by what it took; reorders come around the layer once. */
static void shares(void **state)
{
    program *p = *state;
    int64_t whole = predict(p, "products=bf16")->time;
    bz_aligned row[LAYERS + 1];
    memcpy(row, p->row, sizeof p->row);
    row[LAYERS] = row[GEMM];
    row[GEMM].layer = row[CONV].layer;
    row[CONV].kind = row[GEMM].kind = BZ_ALIGNED_SPLIT;
    p->alignment.row = row;
    p->alignment.n = GEMM + 1;
    is_us(predict(p, "products=bf16")->time, (double)whole / US - 350);
}

/* Weights of a program that trains are converted in each iteration, and their gradients back: an operator of 5 us each, of those that products read. */
static void weights(void **state)
{
    enum { W, B, TABLE, SCALE, TURNED, NONE, VALUES, ALL = LAYERS + 1 };
    program *p = *state;
    int64_t whole = predict(p, "products=bf16")->time;
    static const bz_value_id READS[ALL][2] = {{W, B}, {SCALE, SCALE}, {SCALE, TURNED}, {W, NONE}, {TABLE, TABLE}};
    bz_layer *layer = BZ_NEW(&p->arena, bz_layer, ALL);
    bz_node *node = BZ_NEW(&p->arena, bz_node, ALL);
    bz_weight *weight = BZ_NEW(&p->arena, bz_weight, VALUES);
    bz_model model = {.n_values = VALUES};
    bz_training training = {.weight = weight, .n_weights = VALUES};
    memcpy(layer, p->layer, sizeof p->layer);
    layer[LAYERS].kind = "gather";
    for (int i = 0; i < ALL; i++) {
        node[i] = (bz_node){.n_in = 2, .in = READS[i]};
        layer[i].node = &node[i];
    }
    for (int v = 0; v < VALUES; v++) /* vectors; no gradient reaches the last one */
        weight[v] = (bz_weight){.value = v,
                                .gradient = v == NONE ? BZ_NO_VALUE : v,
                                .type.rank = v == W || v == TABLE || v == TURNED ? 2 : 1};
    p->layers = (bz_layers){.model = &model, .layer = layer, .n = ALL, .training = &training};
    is_us(predict(p, "products=bf16")->time, (double)whole / US + 3 * 2 * 5);
}

/* A result that lies channels last is copied, a line of 64 bytes for each of its elements; the half of what moves bytes that goes is that of its traffic. */
static void copied(void **state)
{
    program *p = *state;
    double elements = 64 * 128 * 128, gap = 3020 - 10, bytes = 20 << 20;
    p->peaks = (bz_peaks){.n_bandwidth = 2, .bandwidth = {{4e6, 64e9, 128e9}, {64e6, 64e9, 64e9}}};
    const bz_prediction *q = predict(p, "products=bf16");
    double without = 1000 + 350 + 2 * 750 + 10 + 20 + 3020 + 450 - bytes / 64e3 / 2,
           cold = 2.2 * (1e6 / 64e3 - 1e6 / 128e3);
    is_us(q->time, without + cold); /* the product's weights come from memory */
    assert_true(bytes / 64e3 < gap);
    p->other[CONV].variant = "brgconv:avx512_core_amx_bf16";
    is_us(predict(p, "products=bf16")->time, without + cold + elements / 1e3);
}

/* What the framework does itself converts operands and results, a pool what each window holds, and x × sigmoid(x) twice as often as its two layers say. */
static void converted(void **state)
{
    static const int64_t THREE[] = {3, 3};
    static const bz_param WINDOW = {.name = "kernel", .n = 2, .v = THREE};
    static const int FIRST[] = {0, 0, 1, 3, 4}, PRED[] = {CONV, CONV, NORM, ADD};
    program *p = *state;
    double without = (double)predict(p, "products=bf16")->time / US, each = 64 * 128 * 128 / 1e3, nine = 9 * each;
    p->peaks.convert[0] = (bz_peak_rate){BZ_BF16, 1e9};
    p->peaks.n_convert = 1;
    is_us(predict(p, "products=bf16")->time, without + 5 * each);
    p->layer[NORM].kind = "maxpool";
    p->layer[NORM].params = &WINDOW;
    p->layer[NORM].n_params = 1;
    is_us(predict(p, "products=bf16")->time, without + 3 * each + nine);
    p->layer[NORM].kind = "sigmoid";
    p->layer[ADD].kind = "mul";
    p->dag.first = FIRST;
    p->dag.pred = PRED;
    is_us(predict(p, "products=bf16")->time, without + 10 * each);
}

/* Four layers write as much each. Two are the framework's, and lose the pages that they wrote; all four take half as many, and a convolution of one point, which
 * sums in f32, as many as in f32 more. With a tensor of more than half of what the program holds at once no page is taken. */
static void taken(void **state)
{
    static const bz_dim LARGE[] = {1, 384, 128, 128};
    program *p = *state;
    const double without = (double)predict(p, "products=bf16")->time / US, all = ANEW * (double)p->flow.measured / US;
    bz_trace_fact(p->trace, "fresh memory", "1000 pages in each second of the iterations, 100 us a page");
    is_us(predict(p, "products=bf16")->time, without - all * 2 / 4 + all * 4 / 4 / 2);
    p->other[CONV].variant = "jit_bf16_1x1:avx512_core_bf16";
    is_us(predict(p, "products=bf16")->time, without - all * 2 / 4 + all * 4 / 4 / 2 + all / 4);
    bz_type large = p->type[0];
    large.dims = LARGE;
    p->layer[GEMM].in = &large;
    is_us(predict(p, "products=bf16")->time, without - all * 2 / 4);
}

/* Reorders that an operator hides stay, of half the bytes. */
static void within_operators(void **state)
{
    program *p = *state;
    uint32_t normalized;
    record_operators(p, &normalized);
    int64_t with = predict(p, "products=bf16")->time;
    p->own[CONV].variant = "x64:gemm:jit";
    is_us(with - predict(p, "products=bf16")->time, 0.75 * 2000);
}

/* A normalization that reads nothing but results in 16 bits has no number; behind an operand in f32 it has. */
static void mixed(void **state)
{
    program *p = *state;
    static const bool CONSTANT[] = {false, true};
    p->layer[ADD].kind = "layernorm";
    assert_non_null(strstr(predict(p, "products=bf16")->unsure, "add would read bf16 with weights of f32"));
    p->layer[NORM].kind = "mul";
    p->layer[NORM].n_in = 2;
    p->layer[NORM].in_constant = CONSTANT;
    assert_null(predict(p, "products=bf16")->unsure);
}

/* The normalization lies behind the product alone, too, where a byte of it costs 440 / 8 and not 3020 / 20: so the addition takes more of the 3020. */
static void kinds(void **state)
{
    program *p = *state;
    static const int AGAIN[] = {NORM};
    bz_aligned row[LAYERS + 1];
    memcpy(row, p->row, sizeof p->row);
    row[LAYERS] = p->row[NORM];
    row[LAYERS].layer = AGAIN;
    p->alignment.row = row;
    p->alignment.n = LAYERS + 1;
    double add = 12 * 3020 / 20., norm = 8 * 440 / 8.;
    is_us(predict(p, "library=conv+batchnorm leaves add")->time,
          1500 + 10 + 3020 * add / (add + norm) + 700 + 10 + 3 * 10);
}

static void framework(void **state)
{
    program *p = *state;
    const bz_prediction *q = predict(p, "framework");
    assert_int_equal(q->changed, 1); /* the end; the other long time has layers in it */
    is_us(q->time, END - 440);
    is_us(q->high, MOST * (END));
    p->alignment.n = 0;
    assert_int_equal(predict(p, "framework")->changed, 0);
}

/* All layers at the bound's prices: with the framework's time, and without: that is the bound, to the nanosecond. */
static void ideal(void **state)
{
    program *p = *state;
    is_us(predict(p, "ideal:framework=0")->time, 2000 + 500 + 250 + 700);
    is_us(predict(p, "ideal")->time, 2000 + 500 + 250 + 700 + 10 + 10 + 10 + 450);
    bz_bound_group group = {.pattern = "conv+batchnorm", .layer = p->place.layer, .n = 2};
    group.price.seconds = 1.5 * MS;
    p->bound.fused.wanted = true;
    p->bound.fused.group = &group;
    p->bound.fused.n = 1;
    is_us(predict(p, "ideal:framework=0")->time, 1500 + 250 + 700);
    p->alignment
        .n--; /* the product was done by an operator that consists of others: less than the bound would be left */
    assert_int_equal(predict(p, "ideal:framework=0")->changed, 0);
}

/* Operators: groups are one, the second operand of an addition is left to be read. */
static void joined(void **state)
{
    program *p = *state;
    static const int ALL[] = {CONV, NORM, ADD};
    p->place = (bz_bound_place){.pattern = "conv+batchnorm+add", .layer = ALL, .n = 3};
    const bz_prediction *q = predict(p, "joined=conv+batchnorm+add");
    assert_int_equal(q->changed, 2);
    is_us(q->time, END - 3020 + 1812 / 3.);
    assert_int_equal(predict(p, "joined=conv+relu")->changed, 0);
}

static void words(void **state)
{
    program *p = *state;
    bz_whatif_asked asked;
    assert_int_equal(bz_whatif_parse("library=miracles", &p->arena, &asked, &err), 0);
    assert_int_equal(bz_whatif_predict(&asked, 1, &p->arena, &p->whatif, NULL, NULL, &err), -1);
    assert_non_null(strstr(err.text, "'miracles' is no word"));
    assert_int_equal(bz_whatif_parse("products=f8", &p->arena, &asked, &err), 0);
    assert_int_equal(bz_whatif_predict(&asked, 1, &p->arena, &p->whatif, NULL, NULL, &err), -1);
    p->whatif.model = NULL;
    const bz_prediction *q = predict(p, "library");
    assert_true(!q->changed && strstr(q->because, "needs the model"));
}

/* Of four times as many items tensors are four times as large, and may lie as far away as such tensors do now: the reorder of 4 MB takes
 * twice as long by the byte as that of 1 MB. */
static void farther(void **state)
{
    static const char *const DETAILS[] = {"src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 problem=1x16x128x128",
                                          "src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 problem=1x64x128x128"};
    program *p = *state;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 10000 * US;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 9000 * US, bz_trace_text(t, "benanza_iteration"), host);
        for (int k = 0; k < 2; k++) {
            size_t e = bz_trace_add(t, BZ_EVENT_CALL, at + 1000 * US * k, at + (k ? 9000 : 1000) * US,
                                    bz_trace_text(t, "reorder"), host);
            t->event[BZ_EVENT_CALL].flags[e] = BZ_CALL_EXECUTES;
            t->event[BZ_EVENT_CALL].detail[e] = bz_trace_text(t, DETAILS[k]);
        }
    }
    bz_flow flow;
    bz_whatif w;
    bz_whatif_asked asked;
    static const char *const CHANGES[] = {"batch:times=4,floor=0,caches=0", "batch:times=4,floor=0",
                                          "batch:times=0.25,floor=0"};
    if (bz_trace_finish(t, NULL, &err) || bz_flow_make(t, bz_typical_iteration(t), &flow, &err) ||
        bz_whatif_begin(&flow, &p->arena, &w, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++)
        if (bz_whatif_parse(CHANGES[i], &p->arena, &asked, &err) ||
            bz_whatif_predict(&asked, 1, &p->arena, &w, NULL, NULL, &err))
            fail_msg("%s", err.text);
    is_us(w.prediction[0].high, MOST * 4 * 9000);
    is_us(w.prediction[1].time, 4 * 9000);
    is_us(w.prediction[1].high, MOST * 4 * 10000); /* 1 MB at 2 ms, 4 MB at 8, of 9 together */
    is_us(w.prediction[2].low, LEAST * 9000 / 4. * 5 / 9);
    bz_flow_free(&flow);
    bz_trace_free(t);
}

/* Tensors of as many dimensions, each as long: of one, and of several. */
static void same_shapes(void **state)
{
    (void)state;
    static const bz_dim SHAPE[] = {3, 5, 7, 9};
    for (int rank = 1; rank <= 4; rank++)
        for (int other = 1; other <= 4; other++)
            for (int change = -1; change < other; change++) {
                bz_dim dims[] = {3, 5, 7, 9};
                if (change >= 0)
                    dims[change]++;
                bz_type a = {.kind = BZ_TYPE_TENSOR, .rank = rank, .dims = SHAPE},
                        b = {.kind = BZ_TYPE_TENSOR, .rank = other, .dims = dims};
                assert_int_equal(bz_way_same_shape(&a, &b), rank == other && change < 0);
            }
    bz_type unknown = {.kind = BZ_TYPE_TENSOR, .rank = -1};
    assert_false(bz_way_same_shape(&unknown, &unknown));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

/* An optimizer's step on a processor, as a recording without kinds of events has it: Python takes most of the range, the operators in it are the
 * update. Behind the way back, which they wait for. */
static void steps_of_optimizers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t from, to;
    } OPS[] = {{"autograd::engine::evaluate_function: MulBackward0", 0, 900},
               {"MulBackward0", 10, 890},
               {"Optimizer.step#Adam.step", 1000, 2000},
               {"aten::mul_", 1100, 1150},
               {"aten::add_", 1400, 1450},
               {"aten::addcdiv_", 1800, 1850}};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t at = 0; at < 4 * 3000 * US; at += 3000 * US) {
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 2500 * US, bz_trace_text(t, "benanza_iteration"), host);
        for (size_t k = 0; k < sizeof OPS / sizeof *OPS; k++)
            bz_trace_add(t, BZ_EVENT_OP, at + OPS[k].from * US, at + OPS[k].to * US, bz_trace_text(t, OPS[k].name),
                         host);
    }
    bz_flow f;
    if (bz_trace_finish(t, NULL, &err) || bz_flow_make(t, 1, &f, &err))
        fail_msg("%s", err.text);
    int updates = 0;
    for (uint32_t i = 0; i < f.n; i++)
        updates += f.task[i].phase == BZ_PHASE_UPDATE;
    assert_int_equal(updates, 3);
    bz_flow_free(&f);
    bz_whatif w;
    bz_arena arena = {0};
    assert_int_equal(whatif_ask(t, 1, "fused-optimizer", &arena, &w).changed, 3);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

/* Iterations that differ by more than the typical one takes tell next to nothing, but none takes less than no time. */
static void wide_apart(void **state)
{
    (void)state;
    static const int64_t MS_EACH[] = {1, 1, 2, 2, 9, 9, 9};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    int64_t at = 0;
    for (size_t i = 0; i < sizeof MS_EACH / sizeof *MS_EACH; at += (MS_EACH[i++] + 1) * 1000 * US) {
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + MS_EACH[i] * 1000 * US, bz_trace_text(t, "benanza_iteration"), host);
        bz_trace_add(t, BZ_EVENT_OP, at, at + MS_EACH[i] * 900 * US, bz_trace_text(t, "aten::mm"), host);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_whatif w;
    bz_arena arena = {0};
    bz_prediction p = whatif_ask(t, 2, "host:times=2", &arena, &w);
    assert_int_equal(p.low, 0);
    assert_true(p.time > 0 && p.high > p.time);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(library),
                                       TEST(operators),
                                       TEST(from_memory),
                                       TEST(hidden),
                                       TEST(kept),
                                       TEST(converted),
                                       TEST(taken),
                                       TEST(within_operators),
                                       TEST(turned),
                                       TEST(one_axis),
                                       TEST(slower),
                                       TEST(left),
                                       TEST(blocks),
                                       TEST(products),
                                       TEST(gradients),
                                       TEST(shares),
                                       TEST(weights),
                                       TEST(copied),
                                       TEST(mixed),
                                       TEST(kinds),
                                       TEST(framework),
                                       TEST(ideal),
                                       TEST(joined),
                                       TEST(words),
                                       TEST(farther),
                                       TEST(busy),
                                       cmocka_unit_test(same_shapes),
                                       cmocka_unit_test(steps_of_optimizers),
                                       cmocka_unit_test(wide_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
