/* Replays over the stand-ins: what they call, in which order, on which stream and with which memory, compared with what is
 * expected; and where all can be computed (products, and our loops) the result, compared with the processor's.
 *
 *   replay EXPECTED [--update]
 *   replay --OPTION...   a convolution that nobody has measured, by the program that replays are
 *
 * EXPECTED/NAME is the text. The modules are those in $BENANZA_MODULES, which are linked with the stand-ins. */
#include "runtime/replay_open.h"

#include "base/arena.h"
#include "tests/standin/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 8 };

typedef struct example {
    const char *name;
    bool computed; /* the stand-ins compute it */
    bool compared; /* the processor's libraries have the calls, too */
    const bz_replay_value *value;
    int n_values;
    const bz_replay_step *step;
    const char *problem[MOST_STEPS]; /* of the calls */
    int n_steps;
} example;

#define VALUE(name_, source_, ...)                                                                                     \
    {                                                                                                                  \
        .name = name_, .dtype = BZ_F32, .given = BZ_F32, .source = source_, .scale = 1, __VA_ARGS__                    \
    }
#define IN(...) .in = (const int[]){__VA_ARGS__}, .n_in = sizeof((const int[]){__VA_ARGS__}) / sizeof(int)
#define CALL(backend_, layout_, algorithm_)                                                                            \
    .kind = BZ_STEP_CALL, .backend = backend_, .layout = layout_, .algorithm = algorithm_, .math = "default"

/* Two products side by side, a third behind one of them, and sums by our loops; one of which has its parts made one by one. */
static const bz_replay_value SUMS[] = {
    VALUE("x", BZ_VALUE_INPUT, .rank = 2, .dim = {4, 8}),
    VALUE("w1", BZ_VALUE_SEEDED, .rank = 2, .dim = {8, 8}),
    VALUE("w2", BZ_VALUE_SEEDED, .rank = 2, .dim = {8, 8}),
    VALUE("bias", BZ_VALUE_SEEDED, .rank = 1, .dim = {8}),
    VALUE("a", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("b", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("c", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("d", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("y", BZ_VALUE_COMPUTED, .rank = 2, .dim = {8, 8}, .output = 1),
};
static const bz_replay_loop ADD = {
    .kind = BZ_LOOP_BINARY, .function = "add", .rank = 1, .dim = {32}, .stride = {{1}, {1}}};
static const bz_replay_loop UPPER = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {32}, .stride = {{1}, {1}}};
static const bz_replay_loop LOWER = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {32}, .stride = {{1}, {1}}, .to = 32};
static const bz_replay_step SUM_STEPS[] = {
    {.name = "left", CALL("cublas", "packed", "gemm_ex"), IN(0, 1), .out = 4},
    {.name = "right", CALL("cublas", "plain", ""), IN(0, 2, 3), .out = 5, .stream = 1},
    {.name = "deep", CALL("cublas", "plain", "gemm_ex"), IN(5, 2), .out = 6, .stream = 1},
    {.name = "sum", .kind = BZ_STEP_LOOP, .loop = &ADD, IN(4, 5), .out = 7},
    {.name = "upper", .kind = BZ_STEP_LOOP, .loop = &UPPER, IN(7), .out = 8},
    {.name = "lower", .kind = BZ_STEP_LOOP, .loop = &LOWER, IN(6), .out = 8},
};

/* A product whose batch follows no stride: pointers are made when it is known where operands lie. */
static const bz_replay_value BATCH[] = {
    VALUE("a", BZ_VALUE_INPUT, .rank = 4, .dim = {2, 1, 2, 4}),
    VALUE("b", BZ_VALUE_INPUT, .rank = 4, .dim = {1, 3, 4, 2}),
    VALUE("y", BZ_VALUE_COMPUTED, .rank = 4, .dim = {2, 3, 2, 2}, .output = 1),
};
static const bz_replay_step BATCH_STEPS[] = {
    {.name = "product", CALL("cublas", "plain", "gemm_batched_ex"), IN(0, 1), .out = 2},
};

/* Channels last, then as rows: a conversion, once for both readers, of which one is on another stream; and the epsilon of a
 * normalization. */
static const bz_replay_value IMAGE[] = {
    VALUE("x", BZ_VALUE_INPUT, .rank = 4, .dim = {1, 4, 6, 6}),
    VALUE("w", BZ_VALUE_SEEDED, .rank = 4, .dim = {4, 4, 3, 3}),
    VALUE("p", BZ_VALUE_SEEDED, .rank = 1, .dim = {4}),
    VALUE("a", BZ_VALUE_COMPUTED, .rank = 4, .dim = {1, 4, 6, 6}),
    VALUE("b", BZ_VALUE_COMPUTED, .rank = 4, .dim = {1, 4, 6, 6}),
    VALUE("c", BZ_VALUE_COMPUTED, .rank = 4, .dim = {1, 4, 6, 6}),
    VALUE("y", BZ_VALUE_COMPUTED, .rank = 4, .dim = {1, 4, 6, 6}, .output = 1),
};
static const bz_replay_step IMAGE_STEPS[] = {
    {.name = "conv", CALL("cudnn", "nhwc", "implicit_gemm"), IN(0, 1), .out = 3},
    {.name = "norm", CALL("cudnn", "plain", "batchnorm_spatial"), IN(3, 2, 2, 2, 2), .out = 4, .epsilon = 0.25f},
    {.name = "relu", CALL("cudnn", "plain", "activation"), IN(3), .out = 5, .stream = 1},
    {.name = "add", CALL("cudnn", "nhwc", "op_tensor"), IN(4, 5), .out = 6},
};

/* A border of zeros, whose memory the second product takes. */
static const bz_replay_value BORDER[] = {
    VALUE("x", BZ_VALUE_INPUT, .rank = 4, .dim = {1, 1, 3, 7}),
    VALUE("w", BZ_VALUE_SEEDED, .rank = 2, .dim = {8, 8}),
    VALUE("padded", BZ_VALUE_COMPUTED, .rank = 4, .dim = {1, 1, 4, 8}),
    VALUE("rows", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("a", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("b", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}),
    VALUE("y", BZ_VALUE_COMPUTED, .rank = 2, .dim = {4, 8}, .output = 1),
};
static const bz_replay_step BORDER_STEPS[] = {
    {.name = "border", CALL("cudnn", "plain", "memcpy3d"), IN(0), .out = 2},
    {.name = "flat", .kind = BZ_STEP_VIEW, IN(2), .out = 3},
    {.name = "first", CALL("cublas", "plain", "gemm_ex"), IN(3, 1), .out = 4, .stream = 1},
    {.name = "second", CALL("cublas", "plain", "gemm_ex"), IN(4, 1), .out = 5},
    {.name = "third", CALL("cublas", "plain", "gemm_ex"), IN(5, 1), .out = 6},
};

static const example EXAMPLES[] = {
    {"sums",
     true,
     true,
     SUMS,
     sizeof SUMS / sizeof *SUMS,
     SUM_STEPS,
     {"gemm m=4 n=8 k=8 dtype=f32", "gemm m=4 n=8 k=8 post=bias dtype=f32", "gemm m=4 n=8 k=8 dtype=f32"},
     sizeof SUM_STEPS / sizeof *SUM_STEPS},
    {"batch",
     true,
     true,
     BATCH,
     sizeof BATCH / sizeof *BATCH,
     BATCH_STEPS,
     {"matmul a=2x1x2x4 b=1x3x4x2 dtype=f32"},
     1},
    {"border",
     true,
     false,
     BORDER,
     sizeof BORDER / sizeof *BORDER,
     BORDER_STEPS,
     {"pad x=1x1x3x7 pad=1x0x0x1 dtype=f32", "gemm m=4 n=8 k=8 dtype=f32", "gemm m=4 n=8 k=8 dtype=f32",
      "gemm m=4 n=8 k=8 dtype=f32"},
     sizeof BORDER_STEPS / sizeof *BORDER_STEPS},
    {"image",
     false,
     false,
     IMAGE,
     sizeof IMAGE / sizeof *IMAGE,
     IMAGE_STEPS,
     {"conv x=1x4x6x6 w=4x4x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32", "batchnorm x=1x4x6x6 dtype=f32",
      "activation fn=relu x=1x4x6x6 dtype=f32", "binary fn=add a=1x4x6x6 b=1x4x6x6 dtype=f32"},
     sizeof IMAGE_STEPS / sizeof *IMAGE_STEPS},
};

static const example *current;

static int forward(bz_replay *r)
{
    int bad = 0;
    for (int i = 0; i <= current->n_steps; i++)
        bad |= bz_replay_step_run(r, i);
    return bad;
}

static void fail(const char *what, const bz_error *err)
{
    printf("%s: %s: %s\n", current->name, what, err->text);
    exit(1);
}

/* The example's steps on one stream or as many as it has; on the processor instead, by what backend there is. */
static void make_example(const example *e, bool streams, const char *processor, bz_replay_model *m,
                         bz_replay_step *step, bz_problem *problem)
{
    bz_error err = {0};
    for (int i = 0, calls = 0; i < e->n_steps; i++) {
        step[i] = e->step[i];
        step[i].stream = streams ? step[i].stream : 0;
        if (step[i].kind != BZ_STEP_CALL)
            continue;
        if (bz_problem_parse(e->problem[calls], &problem[i], &err))
            fail(e->problem[calls], &err);
        step[i].problem = &problem[i];
        calls++;
        if (processor)
            step[i].backend = processor, step[i].layout = "plain", step[i].algorithm = "";
    }
    *m = (bz_replay_model){e->name, "", e->value, e->n_values, step, e->n_steps, forward, 0};
}

static bz_replay *open_example(const example *e, bool streams, const char *processor, bz_replay_model *m,
                               bz_replay_step *step, bz_problem *problem)
{
    bz_error err = {0};
    bz_replay *r = NULL;
    const bz_run_setting setting = {.threads = 1, .workspace = 1 << 20};
    make_example(e, streams, processor, m, step, problem);
    if (bz_replay_open(m, "", &setting, &r, &err))
        fail("open", &err);
    return r;
}

static void record_memory(const bz_replay *r)
{
    for (int i = 0; i < r->n_slots; i++)
        standin_record("-- slot %d of %zu bytes at %s, actions %d to %d", i, r->slot[i].bytes,
                       standin_name(replay_at(r, i)), r->slot[i].first, r->slot[i].last);
    for (int i = 0; i < r->n_actions; i++)
        standin_record("-- action %d on stream %d: step %d", i, r->action[i].stream, r->action[i].step);
    for (int s = 0; s < r->n_streams; s++)
        standin_record("-- workspace of stream %d at %s", s, standin_name(r->stream[s].scratch));
}

static void compare_output(const example *e, bz_replay *r, const float *expected)
{
    float y[64];
    int value = e->n_values - 1, wrong = 0, n = (int)(bz_replay_size(r, value) / sizeof *y);
    standin_silent++;
    if (bz_replay_get(r, value, y))
        exit(1);
    standin_silent--;
    for (int i = 0; i < n; i++)
        wrong += !(y[i] - expected[i] < 1e-5f && expected[i] - y[i] < 1e-5f);
    standin_record("-- %d of %d elements are not the processor's", wrong, n);
}

/* Calls against their definition, operands read back from the device. */
static void check_calls(bz_replay *r)
{
    bz_error err = {0};
    int wrong = 0, checked = 0;
    bz_replay_check c;
    standin_silent++;
    if (bz_replay_forget(r))
        fail("forget", &err);
    for (int i = 0; i < r->n_actions; i++) {
        if (bz_replay_check_before(r, i, &err) || bz_replay_action_run(r, i) || bz_replay_wait(r))
            fail("check", &err);
        checked += bz_replay_check_after(r, i, &c);
        wrong += c.wrong;
    }
    standin_silent--;
    standin_record("-- %d calls checked, %d elements wrong", checked, wrong);
}

static void run_example(const example *e, bool streams)
{
    bz_replay_model m;
    bz_replay_step step[MOST_STEPS];
    bz_problem problem[MOST_STEPS];
    bz_error err = {0};
    double start[32], seconds[32];
    float expected[64] = {0};
    current = e;
    if (e->compared) { /* OpenBLAS multiplies matrices only, and knows no bias */
        bz_replay *own = open_example(e, false, "onednn", &m, step, problem);
        if (bz_replay_run(own) || bz_replay_get(own, e->n_values - 1, expected))
            exit(1);
        bz_replay_close(own);
    }
    standin_silent++;
    bz_replay *r = open_example(e, streams, NULL, &m, step, problem);
    standin_silent--;
    record_memory(r);
    standin_record("-- run");
    if (bz_replay_run(r) || bz_replay_wait(r))
        fail("run", &err);
    if (e->compared)
        compare_output(e, r, expected);
    if (e->computed)
        check_calls(r);
    standin_record("-- run again");
    if (bz_replay_run(r) || bz_replay_wait(r))
        fail("run", &err);
    standin_record("-- timed");
    int late = bz_replay_time(r, start, seconds);
    for (int i = 0; i < r->n_actions; i++)
        standin_record("-- action %d from %g for %g", i, start[i], seconds[i]);
    standin_stuck = true;
    standin_record("-- timed by a device that gives up waiting: %d, %d", late, bz_replay_time(r, start, seconds));
    standin_record("-- timed without holding it back: %d", bz_replay_time(r, start, seconds));
    standin_stuck = false;
    standin_record("-- capture");
    if (bz_replay_capture(r, &err))
        fail("capture", &err);
    standin_record("-- launch");
    if (bz_replay_launch(r) || bz_replay_wait(r))
        fail("launch", &err);
    if (e->compared)
        compare_output(e, r, expected);
    standin_record("-- close");
    bz_replay_close(r);
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
    char chunk[4096];
    if (update)
        fwrite(standin_text.data, 1, standin_text.len, f);
    for (size_t n; !update && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        bz_buf_put(&expected, chunk, n);
    fclose(f);
    bool different =
        !update && (expected.len != standin_text.len || memcmp(expected.data, standin_text.data, expected.len) != 0);
    if (different)
        printf("%s: the calls differ from %s; they are\n%s", name, path, bz_buf_text(&standin_text));
    bz_buf_free(&expected);
    return different;
}

/* A convolution that nobody has measured. */
static const bz_replay_step CONV_STEPS[] = {{.name = "conv", CALL("cudnn", "nhwc", ""), IN(0, 1), .out = 3}};
static const example CONV = {"conv",
                             false,
                             false,
                             IMAGE,
                             4,
                             CONV_STEPS,
                             {"conv x=1x4x6x6 w=4x4x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"},
                             1};

static int run_main(int argc, char **argv)
{
    bz_replay_model m;
    bz_replay_step step[MOST_STEPS];
    bz_problem problem[MOST_STEPS];
    current = &CONV;
    standin_silent++;
    make_example(&CONV, false, NULL, &m, step, problem);
    return bz_replay_main(argc, argv, &m);
}

/* Which variant it gets where so many plans fail. */
static int falls_back(int plans, const char *expected)
{
    bz_replay_model m;
    bz_replay_step step[MOST_STEPS];
    bz_problem problem[MOST_STEPS];
    const char *got = "none";
    current = &CONV;
    standin_no_plans = plans;
    bz_replay *r = open_example(&CONV, false, NULL, &m, step, problem);
    for (int i = 0; i < r->n_actions; i++)
        if (r->action[i].kind == BZ_ACTION_CALL)
            got = ((const replay_call *)r->action[i].state)->variant.algorithm;
    int bad = strcmp(got, expected) != 0;
    if (bad)
        printf("where %d plans fail, the convolution is %s, not %s\n", plans, got, expected);
    bz_replay_close(r);
    standin_reset();
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc > 1 && argv[1][0] == '-')
        return run_main(argc, argv);
    bad += falls_back(0, "graph engine 0 k2=0");
    bad += falls_back(1, "graph engine 2 k2=2"); /* the next best */
    bad += falls_back(9, "implicit_gemm");       /* then the calls that are no graphs */
    for (size_t i = 0; i < sizeof EXAMPLES / sizeof *EXAMPLES && argc > 1; i++)
        for (int streams = 0; streams < 2; streams++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", EXAMPLES[i].name, streams ? "-streams" : "");
            if (streams && EXAMPLES[i].n_steps == 1)
                continue;
            run_example(&EXAMPLES[i], streams);
            bad += compare(argv[1], name, argc > 2);
            standin_reset();
        }
    bz_buf_free(&standin_text);
    return bad || argc < 2;
}
