/* What a generated replay does: options, the measured runs, one JSON object. */
#include "runtime/counters.h"
#include "runtime/measure.h"
#include "runtime/option.h"
#include "runtime/replay_open.h"

#include "base/arena.h"
#include "base/member.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SAMPLES = 2000, FEWEST_SAMPLES = 10, WARM_UPS = 3, PASSES = 5, MOST_STEPS = 1000000 };
#define SAMPLE_TIME 0.002 /* seconds: of shorter models several runs make a sample */

typedef struct program {
    const bz_replay_model *model;
    bz_run_setting setting;
    double lock;                                       /* MHz at which the device's clock is held; 0: as it likes */
    double time_limit, precision, alone_limit, opened; /* opened: seconds of making ready */
    const char *weights, *inputs, *outputs;
    bool check, graph, captured, hot, whole, help;
    bz_replay *replay;
    const bz_action *action;
    int n_actions, n_samples, runs; /* runs: in a sample */
    int steps;                      /* of training, before anything is measured */
    double *loss;                   /* [steps] */
    double *latency, *seconds;      /* [MAX_SAMPLES]; [n_actions][MAX_SAMPLES] */
    double *start, *took;           /* [PASSES][n_actions]: the last passes; and of the one that runs, [n_actions] */
    bz_replay_check *checked;       /* [n_actions] */
    bz_replay_alone *alone;         /* [n_actions]; NULL: not measured */
    bool throttled;
} program;

static const char USAGE[] =
    "usage: %s [OPTIONS]\n"
    "Runs the model again and again and prints how long it and each of its steps took, as JSON.\n\n"
    "      --threads N        threads (1)\n"
    "      --time-limit S     seconds of measuring (5)\n"
    "      --alone S          seconds of measuring each step by itself, hot and cold (as many; 0: not)\n"
    "      --hot              by themselves only with their operands in the caches\n"
    "      --precision SHARE  wanted half-width of the median's interval (0.005)\n"
    "      --weights FILE     the weights (beside the sources)\n"
    "      --steps N          first, N iterations of training; the loss of each is printed (0)\n"
    "      --inputs FILE      inputs, one behind the other as they lie in memory (seeded)\n"
    "      --outputs FILE     write the outputs there\n"
    "      --whole            of models that run in turns, the last one runs behind itself and not behind the others\n"
    "      --device N         on a machine with several GPUs: number N as nvidia-smi -L lists them, from 0 on (0)\n"
    "      --lock-clock MHZ   on a GPU: hold its clock there meanwhile, which takes root's rights\n"
    "      --graph            on a GPU: capture the model once as a graph, and launch that\n"
    "      --plans DIR        on a GPU: plans that take long to build are kept in this folder, with those of "
    "benchmarks\n"
    "      --check            compare each call with the definition in double precision\n"
    "      --help             print this\n";

/* Reads all inputs, or writes all outputs. */
static int pass_file(const program *p, const char *path, bool inputs, bz_error *err)
{
    FILE *f = fopen(path, inputs ? "rb" : "wb");
    bool good = f != NULL;
    for (int i = -1; good && (i = bz_replay_next_end(p->model->value, p->model->n_values, inputs, i)) >= 0;) {
        size_t size = bz_replay_size(p->replay, i);
        BZ_FREED char *bytes = bz_alloc(size + 1, 1);
        if (inputs)
            good = fread(bytes, 1, size, f) == size && !bz_replay_set(p->replay, i, bytes);
        else
            good = !bz_replay_get(p->replay, i, bytes) && fwrite(bytes, 1, size, f) == size;
    }
    if (f && fclose(f) && !inputs)
        good = false;
    if (good)
        return 0;
    return bz_fail(err, inputs ? BZ_BAD_INPUT : BZ_FAILED, "%s: the %s", path,
                   inputs ? "inputs are not all there" : "outputs cannot be written");
}

static int refused(const program *p, int action, bz_error *err)
{
    int step = p->action[action].step;
    return bz_fail(err, BZ_FAILED, "%s: the library refused to run it",
                   step < p->model->n_steps ? p->model->step[step].name : "an output");
}

static int check_all(program *p, bz_error *err)
{
    p->checked = bz_zeroed((size_t)p->n_actions + 1, sizeof *p->checked);
    for (int i = 0; i < p->n_actions; i++) {
        if (bz_replay_check_before(p->replay, i, err))
            return -1;
        if (bz_replay_action_run(p->replay, i) || bz_replay_wait(p->replay))
            return refused(p, i, err);
        bz_replay_check_after(p->replay, i, &p->checked[i]);
    }
    return 0;
}

/* Every action by itself, one clock reading between two. */
static int run_timed(program *p, bz_error *err)
{
    double *start = p->start + (size_t)(p->n_samples % PASSES) * (size_t)p->n_actions;
    int rc = bz_replay_time(p->replay, start, p->took);
    if (rc > 0)
        rc = bz_replay_time(p->replay, start, p->took);
    for (int i = 0; i < p->n_actions && !rc; i++)
        p->seconds[(size_t)i * MAX_SAMPLES + (size_t)p->n_samples] = p->took[i];
    return rc ? bz_fail(err, BZ_FAILED, "a library refused to run its call") : 0;
}

/* Latency is from the first call to the last result: runs do not overlap. */
static int run_once(program *p)
{
    int bad = p->captured ? bz_replay_launch(p->replay) : bz_replay_run(p->replay);
    return bad || bz_replay_wait(p->replay) ? -1 : 0;
}

static int run_whole(program *p, int runs, double *seconds, bz_error *err)
{
    double begin = bz_now();
    for (int i = 0; i < runs; i++)
        if (run_once(p))
            return bz_fail(err, BZ_FAILED, "a library refused to run its call");
    *seconds = (bz_now() - begin) / runs;
    return 0;
}

/* Outputs are those of one run of the whole, as it was measured: what earlier ones left behind is gone. */
static int write_outputs(program *p, bz_error *err)
{
    if (!p->outputs || p->steps)
        return 0;
    if (bz_replay_forget(p->replay) || run_once(p))
        return bz_fail(err, BZ_FAILED, "a library refused to run its call");
    return pass_file(p, p->outputs, false, err);
}

/* Iterations, each with the weights that the one before it left. Outputs are those of the last one. */
static int train(program *p, bz_error *err)
{
    p->loss = bz_zeroed((size_t)p->steps + 1, sizeof *p->loss);
    if (p->steps && !p->model->loss)
        return bz_fail(err, BZ_USAGE, "--steps is for iterations of training, which this model is not");
    if (p->steps && bz_replay_forget(p->replay))
        return bz_fail(err, BZ_FAILED, "the memory cannot be written");
    for (int i = 0; i < p->steps; i++) {
        float loss;
        if (run_once(p) || bz_replay_size(p->replay, p->model->loss - 1) != sizeof loss ||
            bz_replay_get(p->replay, p->model->loss - 1, &loss))
            return bz_fail(err, BZ_FAILED, "a library refused to run its call, or the loss is no f32");
        p->loss[i] = (double)loss;
    }
    return p->steps && p->outputs ? pass_file(p, p->outputs, false, err) : 0;
}

/* From here on a run is a launch of the graph. It has run before: what libraries do first cannot be captured. */
static int capture(program *p, double *once, bz_error *err)
{
    if (!p->graph)
        return 0;
    if (bz_replay_capture(p->replay, err))
        return -1;
    p->captured = true;
    return run_whole(p, 1, once, err);
}

static bool is_enough(const program *p, double seconds)
{
    double sorted[MAX_SAMPLES];
    if (p->n_samples < FEWEST_SAMPLES)
        return false;
    if (p->n_samples == MAX_SAMPLES || seconds > p->time_limit)
        return true;
    memcpy(sorted, p->latency, (size_t)p->n_samples * sizeof *sorted);
    bz_stats s = bz_stats_of(sorted, p->n_samples);
    return bz_stats_uncertainty(&s) <= p->precision;
}

/* Runs of the whole and runs with a clock between the steps take turns, so that drift hits both alike. */
static int measure(program *p, bz_error *err)
{
    double once = 0;
    int rc = 0;
    for (int i = 0; i < WARM_UPS && !rc; i++)
        rc = run_whole(p, 1, &once, err);
    rc = rc || capture(p, &once, err) ? -1 : 0;
    p->runs = once > 0 && once < SAMPLE_TIME ? (int)(SAMPLE_TIME / once) + 1 : 1;
    for (double begin = bz_now(); !rc && !is_enough(p, bz_now() - begin);) {
        rc = run_whole(p, p->runs, &p->latency[p->n_samples], err) || run_timed(p, err) ? -1 : 0;
        p->n_samples++;
        p->throttled |= bz_replay_throttled(p->replay);
    }
    return rc;
}

/* Each model once, behind the others, as in a larger model that has them all: code, what libraries note of a call, tables of pages and weights are
 * as far away as there. Only what it reads and writes is near, as the layer before it left that. A whole model runs behind itself. */
static int take_turns(program *all, int n, bz_error *err)
{
    for (int i = 0; i < n; i++) {
        program *p = &all[i];
        double *latency = &p->latency[p->n_samples];
        alarm(BZ_REPLAY_PATIENCE);
        bz_replay_touch(p->replay);
        if (run_timed(p, err))
            return -1;
        *latency = 1e-9; /* a view takes no time, but a time is above 0 */
        for (int k = 0; k < p->n_actions; k++)
            *latency += p->took[k];
        if (p->whole && i == n - 1 && run_whole(p, 1, latency, err))
            return -1;
        p->n_samples++;
        p->throttled |= bz_replay_throttled(p->replay);
    }
    return 0;
}

static int measure_in_turns(program *all, int n, bz_error *err)
{
    for (int turn = 0; turn < WARM_UPS; turn++) {
        if (take_turns(all, n, err))
            return -1;
        for (int i = 0; i < n; i++)
            all[i].n_samples = 0;
    }
    bool enough = false;
    for (double begin = bz_now(); !enough;) {
        if (take_turns(all, n, err))
            return -1;
        double each = (bz_now() - begin) / n;
        enough = true;
        for (int i = 0; i < n && enough; i++)
            enough = is_enough(&all[i], each);
    }
    return 0;
}

static int measure_alone(program *p, bz_error *err)
{
    p->alone = bz_zeroed((size_t)p->n_actions + 1, sizeof *p->alone);
    return bz_replay_run_alone(p->replay, p->alone_limit > 0 ? p->alone_limit : p->time_limit, !p->hot, p->alone)
               ? bz_fail(err, BZ_FAILED, "a library refused to run its call again")
               : 0;
}

static void put_stats(bz_json *j, const double *samples, int n)
{
    double sorted[MAX_SAMPLES];
    memcpy(sorted, samples, (size_t)n * sizeof *sorted);
    bz_stats s = bz_stats_of(sorted, n);
    BZ_PUT(j, bz_stats, &s, median, low, high, q25, q75, min);
}

static void put_check(bz_json *j, const bz_replay_check *c)
{
    bz_json_key_object(j, "check");
    BZ_PUT(j, bz_replay_check, c, elements, wrong, worst);
    if (c->wrong) {
        BZ_PUT(j, bz_replay_check, c, at, value, expected);
    }
    bz_json_object_end(j);
}

static void put_action(const program *p, int i, bz_json *j)
{
    static const char *const KINDS[] = {"call", "loop", "convert", "copy"};
    const bz_action *a = &p->action[i];
    bool end = a->step == p->model->n_steps;
    BZ_JSON(j, BZ_TELL("step", end ? -1 : a->step), BZ_TELL("stream", a->stream),
            BZ_TELL("layer", end ? -1 : p->model->step[a->step].layer), BZ_TELL("kind", KINDS[a->kind]),
            BZ_TELL("value", p->model->value[a->value].name), BZ_TELL("bytes", a->bytes));
    if (p->n_samples)
        put_stats(j, p->seconds + (size_t)i * MAX_SAMPLES, p->n_samples);
    if (p->alone) {
        BZ_JSON(j, BZ_TELL("hot", p->alone[i].hot), BZ_TELL("cold", p->alone[i].cold));
    }
    if (p->checked && p->checked[i].elements)
        put_check(j, &p->checked[i]);
}

/* For each of the last passes: how long each action took, or when it began. */
static void put_passes(const program *p, const char *key, bool starts, bz_json *j)
{
    bz_json_key_array(j, key);
    for (int k = p->n_samples < PASSES ? 0 : p->n_samples - PASSES; k < p->n_samples; k++) {
        bz_json_array(j);
        for (int i = 0; i < p->n_actions; i++)
            bz_json_num(j, starts ? p->start[(size_t)(k % PASSES) * (size_t)p->n_actions + (size_t)i]
                                  : p->seconds[(size_t)i * MAX_SAMPLES + (size_t)k]);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
}

static void put_result(const program *p, bz_buf *out)
{
    bz_replay_memory m = bz_replay_memory_of(p->replay);
    bz_json j = bz_json_document_to(out, -1, "replay", 1);
    BZ_JSON(&j, BZ_TELL("model", p->model->name), BZ_TELL("threads", p->setting.threads),
            BZ_TELL("device", bz_replay_device(p->replay)), BZ_TELL("streams", bz_replay_streams(p->replay)),
            BZ_TELL("graph", p->captured), BZ_TELL("opened", p->opened), BZ_TELL("peak", (double)m.peak),
            BZ_TELL("least", (double)m.least));
    BZ_JSON(&j, BZ_TELL("ends", (double)m.ends), BZ_TELL("weights", (double)m.weights),
            BZ_TELL("scratch", (double)m.scratch));
    if (p->steps) {
        BZ_JSON_LIST(&j, "losses", num, i, p->steps, p->loss[i]);
    }
    if (p->n_samples) {
        bz_json_key_object(&j, "latency");
        put_stats(&j, p->latency, p->n_samples);
        BZ_JSON(&j, BZ_TELL("samples", p->n_samples), BZ_TELL("runs", p->runs), BZ_TELL("throttled", p->throttled));
        bz_json_object_end(&j);
    }
    BZ_JSON_EACH (&j, "actions", i, p->n_actions)
        put_action(p, i, &j);
    put_passes(p, "passes", false, &j);
    if (bz_replay_streams(p->replay) > 1)
        put_passes(p, "starts", true, &j);
    bz_json_document_end(&j);
}

static int set_threads(void *of, const char *text, bz_error *err)
{
    program *p = of;
    double v;
    if (bz_option_number("threads", BZ_TAKES_AMOUNT, text, &v, err))
        return -1;
    p->setting.threads = v > 4096 ? 4096 : (int)v;
    return v < 1 ? bz_fail(err, BZ_USAGE, "--threads takes a number, not '%s'", text) : 0;
}

static int set_steps(void *of, const char *text, bz_error *err)
{
    program *p = of;
    double v;
    if (bz_option_number("steps", BZ_TAKES_AMOUNT, text, &v, err))
        return -1;
    p->steps = v > MOST_STEPS ? MOST_STEPS : (int)v;
    return 0;
}

#define AT(field) offsetof(program, field)
static const bz_run_option OPTIONS[] = {
    {"threads", BZ_TAKES_OWN, .set = set_threads},
    {"time-limit", BZ_TAKES_AMOUNT, .at = AT(time_limit)},
    {"precision", BZ_TAKES_AMOUNT, .at = AT(precision)},
    {"alone", BZ_TAKES_AMOUNT, .at = AT(alone_limit)},
    {"whole", BZ_TAKES_NOTHING, .at = AT(whole)},
    {"steps", BZ_TAKES_OWN, .set = set_steps},
    {"weights", BZ_TAKES_TEXT, .at = AT(weights)},
    {"inputs", BZ_TAKES_TEXT, .at = AT(inputs)},
    {"outputs", BZ_TAKES_TEXT, .at = AT(outputs)},
    {"graph", BZ_TAKES_NOTHING, .at = AT(graph)},
    {"check", BZ_TAKES_NOTHING, .at = AT(check)},
    {"hot", BZ_TAKES_NOTHING, .at = AT(hot)},
    {"plans", BZ_TAKES_TEXT, .at = AT(setting.plans)},
    {"device", BZ_TAKES_OWN, .set = bz_option_device},
    {"lock-clock", BZ_TAKES_NUMBER, .at = AT(lock)},
    {"help", BZ_TAKES_NOTHING, .at = AT(help)},
    {0},
};

/* Sources lie above the folder of the program. */
static void find_weights(const program *p, char *out, size_t size)
{
    char folder[3000];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    if (p->weights)
        snprintf(out, size, "%s", p->weights);
    else
        snprintf(out, size, "%s/../%s", folder, p->model->weights);
}

static int open_program(program *p, bz_error *err)
{
    char weights[3300];
    double begin = bz_now();
    find_weights(p, weights, sizeof weights);
    if (bz_replay_open(p->model, weights, &p->setting, &p->replay, err))
        return -1;
    p->opened = bz_now() - begin;
    p->n_actions = bz_replay_actions(p->replay, &p->action);
    p->latency = bz_alloc(MAX_SAMPLES, sizeof *p->latency);
    p->seconds = bz_zeroed((size_t)p->n_actions * MAX_SAMPLES + 1, sizeof *p->seconds);
    p->start = bz_zeroed((size_t)PASSES * (size_t)p->n_actions + 1, sizeof *p->start);
    p->took = bz_zeroed((size_t)p->n_actions + 1, sizeof *p->took);
    return 0;
}

static void close_program(program *p)
{
    bz_replay_close(p->replay);
    free(p->latency);
    free(p->seconds);
    free(p->start);
    free(p->took);
    free(p->checked);
    free(p->alone);
    free(p->loss);
}

static int print_result(program *p, bz_error *err)
{
    BZ_SCOPED(bz_buf) out = {0};
    if (p->time_limit > 0 && p->alone_limit != 0 && measure_alone(p, err))
        return -1;
    put_result(p, &out);
    bool bad = fwrite(bz_buf_text(&out), 1, out.len, stdout) != out.len || fflush(stdout);
    return bad ? bz_fail(err, BZ_FAILED, "standard output cannot be written") : 0;
}

static int run(program *p, bz_error *err)
{
    double once;
    if (open_program(p, err))
        return -1;
    int64_t throttles = bz_throttle_count();
    if ((p->inputs && pass_file(p, p->inputs, true, err)) || train(p, err) || (p->check && check_all(p, err)) ||
        (p->time_limit > 0 ? measure(p, err)
                           : (!p->check && !p->steps && run_whole(p, 1, &once, err)) || capture(p, &once, err)) ||
        write_outputs(p, err))
        return -1;
    p->throttled |= bz_throttle_count() > throttles;
    return print_result(p, err);
}

/* A report for each, in their order. */
static int run_in_turns(const program *how, const bz_replay_model *const *models, int n, bz_error *err)
{
    BZ_FREED program *all = bz_zeroed((size_t)n, sizeof *all);
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        all[i] = *how;
        all[i].model = models[i];
        all[i].runs = 1;
        rc = open_program(&all[i], err);
    }
    int64_t throttles = bz_throttle_count();
    rc = rc || measure_in_turns(all, n, err) ? -1 : 0;
    for (int i = 0; i < n && !rc; i++) {
        all[i].throttled |= bz_throttle_count() > throttles;
        alarm(BZ_REPLAY_PATIENCE);
        rc = print_result(&all[i], err);
    }
    for (int i = 0; i < n; i++)
        close_program(&all[i]);
    return rc;
}

/* `argv` starts this program again; its options are those of `argc` and `own`. */
static int run_models(int argc, char **own, char **argv, const bz_replay_model *const *models, int n)
{
    program p = {.model = models[0], .setting.threads = 1, .time_limit = 5, .precision = 0.005, .alone_limit = -1};
    bz_device_hold hold = {0};
    bz_error err = {0};
    bz_end_with_parent();
    int result = bz_options_read(OPTIONS, argc, own, &p, &err) < 0;
    if (p.help && !result) {
        printf(USAGE, argv[0]);
        return BZ_OK;
    }
    if (!result) {
        bz_fix_addresses(argv);
        result = p.lock > 0 && bz_device_hold_clock(1e6 * p.lock, &hold, &err);
    }
    if (!result)
        result = n > 1 ? run_in_turns(&p, models, n, &err) : run(&p, &err);
    bz_device_hold_end(&hold);
    if (result)
        fprintf(stderr, "benanza: %s\n", err.text);
    close_program(&p);
    return result ? (int)err.code : BZ_OK;
}

int bz_replay_main(int argc, char **argv, const bz_replay_model *model)
{
    return run_models(argc, argv, argv, &model, 1);
}

int bz_replay_main_of(int argc, char **argv, const bz_replay_model *const *models, int n)
{
    char *end = argc > 1 ? argv[1] : NULL;
    long first = end ? strtol(end, &end, 10) : -1, last = end && *end == '-' ? strtol(end + 1, &end, 10) : first;
    if (!end || *end || first < 0 || last < first || last >= n) {
        fprintf(stderr, "usage: %s NUMBER|FIRST-LAST [OPTIONS], numbers below %d\n", argv[0], n);
        return BZ_USAGE;
    }
    alarm(BZ_REPLAY_PATIENCE); /* a library that hangs takes nobody else's time */
    return run_models(argc - 1, argv + 1, argv, models + first, (int)(last - first) + 1);
}
