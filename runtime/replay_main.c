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
    double time_limit, precision, alone_limit, behind;
    char *other; /* [behind]: what stands in the caches before each run; NULL: what the run before left */
    const char *weights, *inputs, *outputs;
    bool check, graph, captured, hot, help;
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
    "      --behind BYTES     before each run other memory of so many bytes is written, then that of all values (0)\n"
    "      --inputs FILE      inputs, one behind the other as they lie in memory (seeded)\n"
    "      --outputs FILE     write the outputs there\n"
    "      --graph            on a GPU: capture the model once as a graph, and launch that\n"
    "      --check            compare each call with the definition in double precision\n"
    "      --help             print this\n";

/* ---- files ---------------------------------------------------------------------------------- */

static bool is_end(const bz_replay_value *v, bool inputs)
{
    return inputs ? v->source == BZ_VALUE_INPUT : v->output;
}

/* Reads all inputs, or writes all outputs. */
static int pass_file(const program *p, const char *path, bool inputs, bz_error *err)
{
    FILE *f = fopen(path, inputs ? "rb" : "wb");
    bool good = f != NULL;
    for (int i = 0; i < p->model->n_values && good; i++) {
        if (!is_end(&p->model->value[i], inputs))
            continue;
        size_t size = bz_replay_size(p->replay, i);
        char *bytes = bz_alloc(size + 1, 1);
        if (inputs)
            good = fread(bytes, 1, size, f) == size && !bz_replay_set(p->replay, i, bytes);
        else
            good = !bz_replay_get(p->replay, i, bytes) && fwrite(bytes, 1, size, f) == size;
        free(bytes);
    }
    if (f && fclose(f) && !inputs)
        good = false;
    if (good)
        return 0;
    return bz_fail(err, inputs ? BZ_BAD_INPUT : BZ_FAILED, "%s: the %s", path,
                   inputs ? "inputs are not all there" : "outputs cannot be written");
}

/* ---- running -------------------------------------------------------------------------------- */

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

/* As behind other layers of a larger model: their weights are in the caches instead of ours; the memory of values was theirs, too. */
static void come_behind(program *p)
{
    for (size_t i = 0; i < (size_t)p->behind; i += 64)
        p->other[i]++;
    bz_replay_touch(p->replay);
}

static int run_whole(program *p, int runs, double *seconds, bz_error *err)
{
    *seconds = 0;
    for (int i = 0; i < runs; i += p->other ? 1 : runs) {
        if (p->other)
            come_behind(p);
        double begin = bz_now();
        for (int k = 0; k < (p->other ? 1 : runs); k++)
            if (run_once(p))
                return bz_fail(err, BZ_FAILED, "a library refused to run its call");
        *seconds += (bz_now() - begin) / runs;
    }
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

/* Runs of the whole and runs with a clock between the steps take turns, so that drift hits both alike. */
static int measure(program *p, bz_error *err)
{
    double once = 0, *sorted = bz_alloc(MAX_SAMPLES, sizeof *sorted);
    int rc = 0;
    for (int i = 0; i < WARM_UPS && !rc; i++)
        rc = run_whole(p, 1, &once, err);
    rc = rc || capture(p, &once, err) ? -1 : 0;
    p->runs = !p->other && once > 0 && once < SAMPLE_TIME ? (int)(SAMPLE_TIME / once) + 1 : 1;
    double begin = bz_now();
    while (!rc && p->n_samples < MAX_SAMPLES) {
        rc = run_whole(p, p->runs, &p->latency[p->n_samples], err) || run_timed(p, err) ? -1 : 0;
        p->n_samples++;
        p->throttled |= bz_replay_throttled(p->replay);
        if (p->n_samples < FEWEST_SAMPLES)
            continue;
        memcpy(sorted, p->latency, (size_t)p->n_samples * sizeof *sorted);
        bz_stats s = bz_stats_of(sorted, p->n_samples);
        if (bz_stats_uncertainty(&s) <= p->precision || bz_now() - begin > p->time_limit)
            break;
    }
    free(sorted);
    return rc;
}

static int measure_alone(program *p, bz_error *err)
{
    p->alone = bz_zeroed((size_t)p->n_actions + 1, sizeof *p->alone);
    return bz_replay_run_alone(p->replay, p->alone_limit > 0 ? p->alone_limit : p->time_limit, !p->hot, p->alone)
               ? bz_fail(err, BZ_FAILED, "a library refused to run its call again")
               : 0;
}

/* ---- the result ----------------------------------------------------------------------------- */

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

static void put_result(const program *p, double opened, bz_buf *out)
{
    bz_replay_memory m = bz_replay_memory_of(p->replay);
    bz_json j = bz_json_document_to(out, -1, "replay", 1);
    BZ_JSON(&j, BZ_TELL("model", p->model->name), BZ_TELL("threads", p->setting.threads),
            BZ_TELL("device", bz_replay_device(p->replay)), BZ_TELL("streams", bz_replay_streams(p->replay)),
            BZ_TELL("graph", p->captured), BZ_TELL("opened", opened), BZ_TELL("peak", (double)m.peak),
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

/* ---- options -------------------------------------------------------------------------------- */

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
    {"threads", BZ_TAKES_OWN, .set = set_threads},       {"time-limit", BZ_TAKES_AMOUNT, .at = AT(time_limit)},
    {"precision", BZ_TAKES_AMOUNT, .at = AT(precision)}, {"alone", BZ_TAKES_AMOUNT, .at = AT(alone_limit)},
    {"behind", BZ_TAKES_AMOUNT, .at = AT(behind)},       {"steps", BZ_TAKES_OWN, .set = set_steps},
    {"weights", BZ_TAKES_TEXT, .at = AT(weights)},       {"inputs", BZ_TAKES_TEXT, .at = AT(inputs)},
    {"outputs", BZ_TAKES_TEXT, .at = AT(outputs)},       {"graph", BZ_TAKES_NOTHING, .at = AT(graph)},
    {"check", BZ_TAKES_NOTHING, .at = AT(check)},        {"hot", BZ_TAKES_NOTHING, .at = AT(hot)},
    {"help", BZ_TAKES_NOTHING, .at = AT(help)},          {0},
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

static int run(program *p, bz_error *err)
{
    char weights[3300];
    bz_buf out = {0};
    double begin = bz_now();
    find_weights(p, weights, sizeof weights);
    if (bz_replay_open(p->model, weights, &p->setting, &p->replay, err))
        return -1;
    double opened = bz_now() - begin;
    p->other = p->behind >= 1 ? bz_zeroed((size_t)p->behind, 1) : NULL;
    p->n_actions = bz_replay_actions(p->replay, &p->action);
    p->latency = bz_alloc(MAX_SAMPLES, sizeof *p->latency);
    p->seconds = bz_zeroed((size_t)p->n_actions * MAX_SAMPLES + 1, sizeof *p->seconds);
    p->start = bz_zeroed((size_t)PASSES * (size_t)p->n_actions + 1, sizeof *p->start);
    p->took = bz_zeroed((size_t)p->n_actions + 1, sizeof *p->took);
    int64_t throttles = bz_throttle_count();
    if ((p->inputs && pass_file(p, p->inputs, true, err)) || train(p, err) || (p->check && check_all(p, err)) ||
        (p->time_limit > 0 ? measure(p, err)
                           : (!p->check && !p->steps && run_whole(p, 1, &begin, err)) || capture(p, &begin, err)) ||
        write_outputs(p, err))
        return -1;
    p->throttled |= bz_throttle_count() > throttles;
    if (p->time_limit > 0 && p->alone_limit != 0 && measure_alone(p, err))
        return -1;
    put_result(p, opened, &out);
    bool bad = fwrite(bz_buf_text(&out), 1, out.len, stdout) != out.len || fflush(stdout);
    bz_buf_free(&out);
    return bad ? bz_fail(err, BZ_FAILED, "standard output cannot be written") : 0;
}

int bz_replay_main(int argc, char **argv, const bz_replay_model *model)
{
    program p = {.model = model, .setting.threads = 1, .time_limit = 5, .precision = 0.005, .alone_limit = -1};
    bz_error err = {0};
    bz_end_with_parent();
    int result = bz_options_read(OPTIONS, argc, argv, &p, &err) < 0;
    if (p.help && !result) {
        printf(USAGE, argv[0]);
        return BZ_OK;
    }
    if (!result) {
        bz_fix_addresses(argv);
        result = run(&p, &err);
    }
    if (result)
        fprintf(stderr, "benanza: %s\n", err.text);
    bz_replay_close(p.replay);
    free(p.latency);
    free(p.seconds);
    free(p.start);
    free(p.took);
    free(p.checked);
    free(p.alone);
    free(p.other);
    free(p.loss);
    return result ? (int)err.code : BZ_OK;
}
