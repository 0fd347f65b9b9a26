/* What a generated program does: options, then benchmark after benchmark, a line for each record. */
#include "runtime/backend.h"
#include "runtime/backends.h"

#include "base/arena.h"
#include "base/choice.h"
#include "base/open.h"
#include "runtime/ahead.h"
#include "runtime/counters.h"
#include "runtime/gbench.h"
#include "runtime/measure.h"
#include "runtime/metrics.h"
#include "runtime/option.h"
#include "runtime/pending.h"
#include "runtime/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct program {
    bz_run_options options;
    char system[176];
    int out; /* descriptor of the result file */
    int progress;
    const char *filter, *only;
    bool list, table, untraced, uncounted, system_only, measure, help;
    int broken; /* errno of the write that failed */
    bz_pending pending;
    bz_rate launch[BZ_MAX_RATES];
    struct {
        char backend[16], system[176];
    } device[BZ_MAX_RATES]; /* of backends that do not run on the processor */
    int n_devices;
    bz_buf systems; /* lines that say what these devices are */
    double lock;    /* MHz at which the device's clock is held; 0: as it likes */
    double wait;    /* seconds for which to wait for a quiet machine; below 0: the default */
    bz_quiet quiet;
    int n_done, n_busy; /* problems that were run; of them while the machine was busy */
    char busy_why[160]; /* what was seen then */
} program;

static const char USAGE[] =
    "usage: %s [OPTIONS] [PROBLEM...]\n"
    "Runs benchmarks, each problem in a process of its own, and prints a JSON line that says what this machine is,\n"
    "then one per finished variant.\n\n"
    "  -o, --output FILE       append the lines to FILE instead\n"
    "      --progress FD       a line `DONE TOTAL PROBLEM` on this descriptor before each problem and at the end\n"
    "      --list              print the problems and families, run nothing\n"
    "      --filter TEXT       only problems whose text holds TEXT\n"
    "      --only FILE         only problems whose text is a line of FILE; lines `    BACKEND LAYOUT MATH\n"
    "                          [ALGORITHM]` behind it name what is not to be run again\n"
    "      --backend NAME      of a problem given here: a backend (may be repeated; default: all built in)\n"
    "      --layout NAME       of a problem given here: a layout (may be repeated; default: all)\n"
    "      --threads N         threads (1)\n"
    "      --cache hot|cold    whether operands are in the caches (hot)\n"
    "      --clock TEXT        how the clock is set, to be put into the records\n"
    "      --lock-clock MHZ    on a GPU: hold its clock there meanwhile, which takes root's rights\n"
    "      --time-limit S      seconds of measuring per variant at most (0.1)\n"
    "      --sample-time S     seconds per sample (0.001; on a device 0.002)\n"
    "      --precision SHARE   wanted half-width of the median's interval (0.005)\n"
    "      --wait S            seconds to wait for a quiet machine before each problem, and at most twice as long in "
    "all\n"
    "                          (30; else what $BENANZA_WAIT says); what is measured without is marked busy\n"
    "      --yardstick S       the shortest time that this system is known to take for the piece of work that tells\n"
    "                          whether it is slow now\n"
    "      --hang-limit S      seconds after which a silent variant is killed (60)\n"
    "      --memory-limit GB   memory of a benchmark process (nine tenths of what is free)\n"
    "      --check-only        run and check each variant once, measure nothing\n"
    "      --device N          on a machine with several GPUs: number N as nvidia-smi -L or CUDA_VISIBLE_DEVICES "
    "lists\n"
    "                          them, from 0 on (0)\n"
    "      --engines WHICH     on a GPU: heuristic, the ten best that a library's heuristics propose, each way they "
    "are\n"
    "                          asked; all: all of those, and every engine that there is (heuristic)\n"
    "      --plans DIR         on a GPU: plans that take long to build are kept in this folder, and built for the "
    "next\n"
    "                          problems by the processors that measuring leaves free\n"
    "      --metrics LIST      on a GPU: what its profiler says of each variant. Kernels, with their times, are "
    "always\n"
    "                          asked for; besides: flops, dram, occupancy, or counters by their names; none: nothing\n"
    "      --workspace GB      memory that a variant may have besides its operands (what the device has free)\n"
    "      --system            print what this machine is, as one JSON line; --text for people; with --backend\n"
    "                          the device that the backend runs on\n"
    "      --measure           measure the processor's peak rates too, for the line that says what it is, and reading "
    "and\n"
    "                          copying of memory, a record each\n"
    "      --help              print this\n\n"
    "A problem is a text as in a record; `-` reads them from standard input, a line each.\n";

static void write_all(program *p, const char *data, size_t n)
{
    while (n && !p->broken) {
        ssize_t done = write(p->out, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            p->broken = done < 0 ? errno : EIO;
            return;
        }
        data += done;
        n -= (size_t)done;
    }
}

/* A line per record, at once: whoever kills us loses the running variant only. */
static void emit(void *context, const bz_outcome *r)
{
    program *p = context;
    BZ_SCOPED(bz_buf) line = {0};
    const char *system = p->system;
    for (int i = 0; i < p->n_devices; i++)
        if (!strcmp(p->device[i].backend, r->backend))
            system = p->device[i].system;
    if (r->trace.reason[0] && !p->untraced) /* once: it will be the same for the others */
        fprintf(stderr, "benanza: no kernels: %s\n", r->trace.reason);
    if (r->counted.reason[0] && !p->uncounted)
        fprintf(stderr, "benanza: no counters: %s\n", r->counted.reason);
    if (r->yardstick[0] > 0)
        p->quiet.yardstick = fmin(p->quiet.yardstick, fmin(r->yardstick[0], r->yardstick[1]));
    if (r->trace.fatal) {
        p->options.trace = false;
        p->options.counters = NULL;
    }
    p->untraced |= r->trace.reason[0];
    p->uncounted |= r->counted.reason[0];
    bz_outcome_json(r, &p->options.setting, system, &line);
    write_all(p, bz_buf_text(&line), line.len);
}

static void report_progress(const program *p, int done, const char *text)
{
    if (p->progress >= 0)
        dprintf(p->progress, "%d %d %s\n", done, p->pending.n, text);
}

/* Looks at the device of a backend. One that is not there is no reason for a record in each problem: nothing
 * of it can run, so nothing does. */
static int find_device(program *p, const char *name, bz_error *err)
{
    const bz_backend *backend = bz_device_backend(name, NULL); /* without it there are records that say so */
    bz_device d;
    for (int i = 0; i < p->n_devices; i++)
        if (!strcmp(p->device[i].backend, name))
            return 0;
    if (!backend || !backend->device || p->n_devices == BZ_MAX_RATES)
        return 0;
    if (bz_device_find(backend, &d, err))
        return -1;
    int new = p->n_devices++, same = 0;
    snprintf(p->device[new].backend, sizeof p->device->backend, "%s", name);
    snprintf(p->device[new].system, sizeof p->device->system, "%s@%s", d.slug, d.stack);
    while (strcmp(p->device[same].system, p->device[new].system) != 0)
        same++;
    if (same == new) /* backends may share a device */
        bz_device_json(&d, &p->systems);
    return 0;
}

static int find_devices(program *p, bz_error *err)
{
    for (int i = 0; i < p->pending.n; i++)
        for (int k = 0; k < p->pending.item[i].n; k++)
            if (find_device(p, p->pending.item[i].families[k].backend, err))
                return -1;
    return 0;
}

static bool runs_on_processor(const program *p)
{
    for (int i = 0; i < p->pending.n; i++)
        for (int k = 0; k < p->pending.item[i].n; k++) {
            int d = 0;
            while (d < p->n_devices && strcmp(p->device[d].backend, p->pending.item[i].families[k].backend) != 0)
                d++;
            if (d == p->n_devices)
                return true;
        }
    return false;
}

/* Who watches the progress shows it there; else it is said once. */
static void say_waiting(void *context, const char *why)
{
    program *p = context;
    if (p->progress >= 0)
        dprintf(p->progress, "%d %d waiting for a quiet machine: %s\n", p->n_done, p->pending.n, why);
    else if (!(p->quiet.waited > 0))
        fprintf(stderr, "benanza: the machine is busy: %s; waiting for at most %g s (--wait)\n", why, p->quiet.limit);
}

static void wait_until_quiet(program *p)
{
    p->options.busy = bz_quiet_wait(&p->quiet, p->busy_why);
    p->options.yardstick = p->quiet.yardstick;
}

static void begin_quiet(program *p)
{
    bz_quiet_begin(&p->quiet, p->wait, p->options.yardstick, p->options.setting.threads);
    p->quiet.tell = say_waiting;
    p->quiet.context = p;
}

/* Peaks that were measured on a busy machine are no peaks: it waits for longer than for one problem. */
static int measure_machine(program *p, bz_machine *s, bz_error *err)
{
    wait_until_quiet(p);
    s->busy = p->options.busy;
    if (bz_machine_measure(s, &p->options, err))
        return -1;
    s->busy |= bz_quiet_look(&p->quiet, p->busy_why);
    s->yardstick = p->quiet.yardstick;
    return 0;
}

/* The result begins with what its records were measured on: where it is read, nobody may know that machine. */
static int write_systems(program *p, bz_machine *s, bz_error *err)
{
    BZ_SCOPED(bz_buf) lines = {0};
    bool processor = runs_on_processor(p);
    if (processor && p->measure && measure_machine(p, s, err))
        return -1;
    if (processor)
        bz_machine_json(s, &lines);
    bz_buf_put(&lines, bz_buf_text(&p->systems), p->systems.len);
    write_all(p, bz_buf_text(&lines), lines.len);
    return processor && p->measure ? bz_machine_transfers(s, &p->options, err) : 0;
}

/* What an empty call costs, once for each backend in use. */
static void measure_launch(program *p)
{
    for (int i = 0; i < p->pending.n; i++)
        for (int k = 0; k < p->pending.item[i].n; k++) {
            const char *name = p->pending.item[i].families[k].backend;
            int known = 0;
            while (known < p->options.n_launch && strcmp(p->launch[known].what, name) != 0)
                known++;
            if (known < p->options.n_launch || known == BZ_MAX_RATES)
                continue;
            bz_rate *rate = &p->launch[known];
            snprintf(rate->what, sizeof rate->what, "%s", name);
            rate->value = bz_launch_cost(name, &p->options);
            p->options.n_launch++;
            p->options.launch = p->launch;
        }
}

static double idle(void *context, int64_t n)
{
    (void)context;
    return 1e-9 * (double)n;
}

static int lock_clock(const program *p, bz_device_hold *hold, bz_error *err)
{
    if (p->lock > 0 && runs_on_processor(p))
        return bz_fail(err, BZ_USAGE, "--lock-clock holds the clock of a GPU, and not all of this runs on one");
    return p->lock > 0 ? bz_device_hold_clock(1e6 * p->lock, hold, err) : 0;
}

static int run_all(program *p, bz_machine *s, bz_error *err)
{
    bz_worker worker = {0};
    bz_ahead ahead = {0};
    int bad = 0;
    char why[160];
    int64_t once = 1;
    bz_device_hold hold = {0};
    if (find_devices(p, err))
        return -1;
    bool waits = !p->options.check_only && runs_on_processor(p); /* devices do not mind: others build their plans */
    if (bz_counters_explain(why)) /* who has none cannot help it: the line of the system says so */
        fprintf(stderr, "benanza: records have no hardware counters: %s\n", why);
    bz_gbench_sample(idle, NULL, 1e-9, &once); /* the library looks at the machine once, before the first fork */
    begin_quiet(p);
    if (write_systems(p, s, err) || lock_clock(p, &hold, err))
        return -1;
    if (!p->options.check_only)
        measure_launch(p);
    bz_ahead_begin(&ahead, &p->pending, &p->options);
    for (int i = 0; i < p->pending.n && !p->broken && !bad; i++) {
        p->n_done = i;
        bz_ahead_take(&ahead, i);
        if (waits)
            wait_until_quiet(p);
        p->n_busy += p->options.busy;
        report_progress(p, i, p->pending.item[i].text);
        p->options.known = p->pending.item[i].known;
        p->options.n_known = p->pending.item[i].n_known;
        if (bz_worker_run(&worker, p->pending.item[i].families, p->pending.item[i].n, &p->options, err))
            bad = -1;
    }
    bz_ahead_end(&ahead);
    bz_worker_close(&worker);
    bz_device_hold_end(&hold);
    if (bad)
        return -1;
    report_progress(p, p->pending.n, "");
    if (p->n_busy && p->progress < 0)
        fprintf(stderr, "benanza: %d of %d problems were measured while the machine was busy, and are marked so: %s\n",
                p->n_busy, p->pending.n, p->busy_why);
    return p->broken ? bz_fail(err, BZ_FAILED, "the result file cannot be written: %s", strerror(p->broken)) : 0;
}

static int add_device(const char *name, bool table, bz_buf *out, bz_error *err)
{
    bz_device d;
    const bz_backend *backend = bz_device_backend(name, err);
    if (!backend || bz_device_find(backend, &d, err))
        return -1;
    if (table)
        bz_device_print(&d, out);
    else
        bz_device_json(&d, out);
    return 0;
}

/* What a closed pipe or a full disk did not take is an error, however small it was. */
static int flush(bz_error *err)
{
    return fflush(stdout) || ferror(stdout) ? bz_fail(err, BZ_FAILED, "standard output cannot be written") : 0;
}

static int run_system(program *p, bz_error *err)
{
    bz_machine s;
    BZ_SCOPED(bz_buf) out = {0};
    if (p->pending.n_backends) { /* the device of that backend is asked for */
        int result = add_device(p->pending.backend[0], p->table, &out, err);
        fputs(bz_buf_text(&out), stdout);
        return result;
    }
    bz_machine_identify(&s);
    if (p->measure)
        begin_quiet(p);
    if (p->measure && measure_machine(p, &s, err))
        return -1;
    if (p->table) {
        bz_machine_print(&s, &out);
        add_device(bz_backend_of_device(), true, &out, err); /* if there is one */
    } else {
        bz_machine_json(&s, &out);
    }
    fputs(bz_buf_text(&out), stdout);
    if (!p->measure || p->table)
        return 0;
    snprintf(p->system, sizeof p->system, "%s@%s", s.slug, s.stack);
    return flush(err) ? -1 : bz_machine_transfers(&s, &p->options, err);
}

static int set_cache(void *of, const char *text, bz_error *err)
{
    program *p = of;
    static const char *const CACHES[] = {"hot", "cold"};
    p->options.setting.cold = !strcmp(text, "cold");
    return p->options.setting.cold || !strcmp(text, "hot") ? 0 : bz_choice_fail(err, "--cache", text, CACHES, 2);
}

static int set_lock(void *of, const char *text, bz_error *err)
{
    program *p = of;
    p->options.setting.clock = text;
    return bz_option_number("lock-clock", BZ_TAKES_NUMBER, text, &p->lock, err);
}

static int set_engines(void *of, const char *text, bz_error *err)
{
    program *p = of;
    static const char *const ENGINES_OF[] = {"heuristic", "all"};
    p->options.setting.engines = strcmp(text, "all") ? 0 : -1;
    return p->options.setting.engines || !strcmp(text, "heuristic")
               ? 0
               : bz_choice_fail(err, "--engines", text, ENGINES_OF, 2);
}

static int set_metrics(void *of, const char *text, bz_error *err)
{
    program *p = of;
    bool counters = false;
    p->options.trace = strcmp(text, "none") != 0;
    if (p->options.trace && bz_metrics_check(text, &counters, err))
        return -1;
    p->options.counters = counters ? text : NULL;
    return 0;
}

static int open_output(void *of, const char *path, bz_error *err)
{
    program *p = of;
    p->out = bz_open_output(path, O_CREAT | O_APPEND, err);
    return p->out < 0 ? -1 : 0;
}

/* Who watches the progress stores the records: nothing is worth doing alone. */
static int set_progress(void *of, const char *text, bz_error *err)
{
    program *p = of;
    double v;
    if (bz_option_number("progress", BZ_TAKES_NUMBER, text, &v, err))
        return -1;
    p->progress = (int)v;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return 0;
}

static int add_backend(void *of, const char *text, bz_error *err)
{
    program *p = of;
    if (p->pending.n_backends == 8)
        return bz_fail(err, BZ_USAGE, "--backend: at most eight");
    p->pending.backend[p->pending.n_backends++] = text;
    return bz_backend_check(text, err);
}

static int add_layout(void *of, const char *text, bz_error *err)
{
    program *p = of;
    if (p->pending.n_layouts == 8)
        return bz_fail(err, BZ_USAGE, "--layout: at most eight");
    p->pending.layout[p->pending.n_layouts++] = text;
    return bz_layout_named(text) ? 0 : bz_choice_fail(err, "--layout", text, bz_layouts, BZ_N_LAYOUTS);
}

static int set_threads(void *of, const char *text, bz_error *err)
{
    program *p = of;
    double v;
    if (bz_option_number("threads", BZ_TAKES_NUMBER, text, &v, err))
        return -1;
    if (v > 4096 || v != floor(v))
        return bz_fail(err, BZ_USAGE, "--threads takes a whole number from 1 to 4096, not '%s'", text);
    p->options.setting.threads = (int)v;
    return 0;
}

static int set_wait(void *of, const char *text, bz_error *err)
{
    program *p = of;
    p->wait = 0;
    return strcmp(text, "0") ? bz_option_number("wait", BZ_TAKES_NUMBER, text, &p->wait, err) : 0;
}

#define AT(field) offsetof(program, field)
static const bz_run_option OPTIONS[] = {
    {"output", BZ_TAKES_OWN, .set = open_output, .letter = 'o'},
    {"progress", BZ_TAKES_OWN, .set = set_progress},
    {"list", BZ_TAKES_NOTHING, .at = AT(list)},
    {"filter", BZ_TAKES_TEXT, .at = AT(filter)},
    {"only", BZ_TAKES_TEXT, .at = AT(only)},
    {"backend", BZ_TAKES_OWN, .set = add_backend},
    {"layout", BZ_TAKES_OWN, .set = add_layout},
    {"threads", BZ_TAKES_OWN, .set = set_threads},
    {"cache", BZ_TAKES_OWN, .set = set_cache},
    {"clock", BZ_TAKES_TEXT, .at = AT(options.setting.clock)},
    {"lock-clock", BZ_TAKES_OWN, .set = set_lock},
    {"time-limit", BZ_TAKES_NUMBER, .at = AT(options.time_limit)},
    {"sample-time", BZ_TAKES_NUMBER, .at = AT(options.sample_time)},
    {"precision", BZ_TAKES_NUMBER, .at = AT(options.precision)},
    {"hang-limit", BZ_TAKES_NUMBER, .at = AT(options.hang_limit)},
    {"memory-limit", BZ_TAKES_NUMBER, .at = AT(options.memory_limit), .unit = 1e9},
    {"wait", BZ_TAKES_OWN, .set = set_wait},
    {"device", BZ_TAKES_OWN, .set = bz_option_device},
    {"yardstick", BZ_TAKES_NUMBER, .at = AT(options.yardstick)},
    {"workspace", BZ_TAKES_NUMBER, .at = AT(options.setting.workspace), .unit = 1e9},
    {"plans", BZ_TAKES_TEXT, .at = AT(options.setting.plans)},
    {"engines", BZ_TAKES_OWN, .set = set_engines},
    {"metrics", BZ_TAKES_OWN, .set = set_metrics},
    {"check-only", BZ_TAKES_NOTHING, .at = AT(options.check_only)},
    {"system", BZ_TAKES_NOTHING, .at = AT(system_only)},
    {"measure", BZ_TAKES_NOTHING, .at = AT(measure)},
    {"text", BZ_TAKES_NOTHING, .at = AT(table)},
    {"help", BZ_TAKES_NOTHING, .at = AT(help), .letter = 'h'},
    {0},
};

static int collect(program *p, int argc, char **argv, const bz_benchmark *const *benchmarks, bz_error *err)
{
    for (; *benchmarks; benchmarks++)
        if (bz_pending_add(&p->pending, *benchmarks, err))
            return -1;
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "-") ? bz_pending_read(&p->pending, stdin, err)
                                  : bz_pending_add_text(&p->pending, argv[i], err))
            return -1;
    if (p->filter)
        bz_pending_filter(&p->pending, p->filter);
    return p->only ? bz_pending_keep(&p->pending, p->only, err) : 0;
}

static int run_program(program *p, int argc, char **argv, const bz_benchmark *const *benchmarks, bz_error *err)
{
    bz_machine s;
    p->options.trace &= !p->options.check_only;
    if (p->system_only)
        return run_system(p, err);
    if (collect(p, argc, argv, benchmarks, err))
        return -1;
    if (p->list) {
        bz_pending_print(&p->pending);
        return 0;
    }
    if (!p->pending.n)
        return bz_fail(err, BZ_USAGE, "there is nothing to run: name a problem, or see --help");
    bz_machine_identify(&s);
    snprintf(p->system, sizeof p->system, "%s@%s", s.slug, s.stack);
    return run_all(p, &s, err);
}

int bz_runtime_main(int argc, char **argv, const bz_benchmark *const *benchmarks)
{
    program p = {.out = STDOUT_FILENO,
                 .progress = -1,
                 .wait = -1,
                 .options = {.setting.threads = 1, .emit = emit, .trace = true}};
    bz_error err = {0};
    bz_end_with_parent();
    p.options.context = &p;
    int first = bz_options_read(OPTIONS, argc, argv, &p, &err), result = first < 0;
    if (p.help && !result)
        printf(USAGE, argv[0]);
    else if (!result && !p.list && (!p.system_only || p.measure))
        bz_fix_addresses(argv);
    if (!result)
        result = (!p.help && run_program(&p, argc - first, argv + first, benchmarks, &err)) || flush(&err);
    if (result)
        fprintf(stderr, "benanza: %s\n", err.text);
    bz_buf_free(&p.systems);
    bz_pending_free(&p.pending);
    return result ? (int)err.code : BZ_OK;
}
