/* What a recording tells by itself: no model, no records, no parameters of calls are needed. */
#include "analysis/recording.h"
#include "analysis/constants.h"
#include "analysis/steps.h"
#include "base/sort.h"
#include "explain/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sentence of its facts, of its warnings. */
#define FACT(m, ...)                                                                                                   \
    (BZ_ARENA_ADD((m)->arena, (m)->out->fact, (m)->out->n_facts) = bz_arena_printf((m)->arena, __VA_ARGS__))

#define WARN(m, ...)                                                                                                   \
    (BZ_ARENA_ADD((m)->arena, (m)->out->warning, (m)->out->n_warnings) = bz_arena_printf((m)->arena, __VA_ARGS__))

static bool multiplies(bz_kernel_does does)
{
    return bz_kernel_limit_of(does) == BZ_LIMIT_COMPUTE;
}

bz_kernel_limit recording_limit(const recording_making *m, bz_kernel_does does)
{
    return m->few_rows && multiplies(does) ? BZ_LIMIT_MEMORY : bz_kernel_limit_of(does);
}

static void sum_kernels(recording_making *m)
{
    bz_phases phases;
    m->few_rows = bz_trace_phases(m->trace, &phases) && phases.steps && phases.batch <= SEQUENCES_BY_MEMORY;
    const bz_events *k = &m->trace->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; i < k->n; i++) {
        const bz_kernel *n = bz_kernel_of(m->trace, i);
        if (!bz_event_counts(m->trace, BZ_EVENT_KERNEL, i) || k->end[i] <= k->start[i])
            continue;
        double seconds = 1e-9 * (double)(k->end[i] - k->start[i]) / m->steady;
        m->kernel_time += seconds;
        m->limit_time[recording_limit(m, n->does)] += seconds;
        m->unit_time += n->unit ? seconds : 0;
        m->product_time += n->unit || multiplies(n->does) ? seconds : 0;
        m->silent_time += !n->tells_unit && multiplies(n->does) ? seconds : 0;
        m->unit = n->unit ? n->unit : m->unit;
    }
}

static double share_of(double part, double all)
{
    return all > 0 ? part / all : 0;
}

/* "By the sorts of kernels, 61.2 % of their time is limited by arithmetic …" */
static void tell_kernels(recording_making *m)
{
    if (!(m->kernel_time > 0))
        return;
    const double *time = m->limit_time, all = m->kernel_time;
    const char *others = "";
    if (time[BZ_LIMIT_NETWORK] > 0)
        others =
            bz_arena_printf(m->arena, ", %s by communication", BZ_SAY_SHARE(share_of(time[BZ_LIMIT_NETWORK], all)));
    if (time[BZ_LIMIT_UNKNOWN] > 0)
        others = bz_arena_printf(m->arena, "%s; %s is of kernels whose names tell nothing", others,
                                 BZ_SAY_SHARE(share_of(time[BZ_LIMIT_UNKNOWN], all)));
    FACT(m, "by the names of its kernels%s, %s of their time is limited by arithmetic, %s by memory%s",
         m->few_rows ? ", products of steps with few sequences counted to memory, which gives the weights" : "",
         BZ_SAY_SHARE(share_of(time[BZ_LIMIT_COMPUTE], all)), BZ_SAY_SHARE(share_of(time[BZ_LIMIT_MEMORY], all)),
         others);
    if (!(m->product_time > 0))
        return;
    const char *silent = m->silent_time > 0 ? bz_arena_printf(m->arena, "; %s is of kernels whose names do not tell",
                                                              BZ_SAY_SHARE(share_of(m->silent_time, m->product_time)))
                                            : "";
    if (m->unit)
        FACT(m, "by their names, %s of the time of convolutions, products and attention ran on %s%s",
             BZ_SAY_SHARE(share_of(m->unit_time, m->product_time)), m->unit, silent);
    else if (m->silent_time < m->product_time)
        FACT(m,
             "by their names, no convolution, product or attention ran on a matrix unit "
             "(Tensor Cores)%s",
             silent);
}

/* "most of it waiting for the host" */
static const char *main_reason(const recording_making *m)
{
    static const struct {
        bz_idle_reason reason[2];
        const char *text;
    } REASONS[] = {
        {{BZ_IDLE_HOST, BZ_IDLE_LAUNCH}, "waiting for the host"},
        {{BZ_IDLE_SUBMITTED, BZ_IDLE_SUBMITTED}, "launched work on its way to the device"},
        {{BZ_IDLE_QUEUED, BZ_IDLE_QUEUED}, "between kernels that were queued"},
        {{BZ_IDLE_END, BZ_IDLE_END}, "behind the last work of the device"},
        {{BZ_IDLE_UNKNOWN, BZ_IDLE_UNKNOWN},
         "before work of which the recording lacks the launch, or what it waited for"},
    };
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        bz_idle_reason a = REASONS[i].reason[0], b = REASONS[i].reason[1];
        int64_t time = m->idle.of[a].time + (a == b ? 0 : m->idle.of[b].time);
        if (time > m->idle.idle / 2)
            return REASONS[i].text;
    }
    return NULL;
}

/* Work of a model that is known is no part of an iteration, whatever else does not tell it. */
static const char *one_of(const recording_making *m)
{
    bool open = bz_trace_lacks(m->trace, BZ_LACKS_ITERATIONS_OPEN) && !m->out->n_fits;
    return !m->out->found ? "The whole recording, in which no iteration was found,"
           : open         ? "What repeats, an iteration or a part of one,"
                          : "One iteration";
}

static void answer_device(recording_making *m)
{
    bz_recording *r = m->out;
    const char *reason = r->idle > 0 ? main_reason(m) : NULL;
    r->answer =
        bz_arena_printf(m->arena, "%s took %s; the device was busy %s (%s)%s%s%s%s.", one_of(m), BZ_SAY_TIME(r->span),
                        BZ_SAY_TIME(r->busy), BZ_SAY_SHARE(share_of(r->busy, r->span)), r->idle > 0 ? "; " : "",
                        r->idle > 0 ? BZ_SAY_TIME(r->idle) : "", r->idle > 0 ? " is gaps" : "",
                        reason ? bz_arena_printf(m->arena, ", most of it %s", reason) : "");
}

static void answer_host(recording_making *m, const char *what)
{
    bz_recording *r = m->out;
    r->answer = bz_arena_printf(m->arena, "%s took %s; %s took %s of it (%s); %s lies between them.", one_of(m),
                                BZ_SAY_TIME(r->span), what, BZ_SAY_TIME(r->busy),
                                BZ_SAY_SHARE(share_of(r->busy, r->span)), BZ_SAY_TIME(r->idle));
}

/* A log: what was called, not how long it took. "One iteration made 53 × cudnnConvolutionForward, …" */
static void answer_untimed(recording_making *m)
{
    enum { NAMES = 4 };
    bz_top *top;
    bz_event_kind kind = m->trace->event[BZ_EVENT_CALL].n ? BZ_EVENT_CALL : BZ_EVENT_OP;
    size_t n = bz_trace_top(m->trace, m->arena, kind, &top), names = 0;
    BZ_SCOPED(bz_buf) text = {0};
    for (size_t i = 0; i < n; i++) { /* of one name there may be several variants */
        for (size_t k = i + 1; top[i].count && k < n; k++)
            if (top[k].name == top[i].name) {
                top[i].count += top[k].count;
                top[k].count = 0;
            }
        if (top[i].count && names++ < NAMES)
            bz_buf_printf(&text, "%s%.4g × %s", names > 1 ? ", " : "", (double)top[i].count / m->steady,
                          bz_string(m->trace, top[i].name));
    }
    if (names > NAMES)
        bz_buf_printf(&text, " and calls of %zu more names", names - NAMES);
    m->out->answer = n ? bz_arena_printf(m->arena, "%s made %s; how long it took is not recorded.",
                                         m->out->found ? "One iteration" : "The program", bz_buf_text(&text))
                       : "The recording holds no work: no kernel, no library call that executes and no operator.";
}

/* Without a device the work is that of library calls, else that of operators. */
static void answer(recording_making *m)
{
    bz_recording *r = m->out;
    bz_iteration_stats s = {0};
    uint32_t typical = bz_typical_iteration(m->trace);
    r->span = r->busy = r->idle = NAN;
    if (typical != BZ_NONE)
        bz_iteration_measure(m->trace, typical, &s);
    if (!m->one || !bz_trace_has_lengths(m->trace)) {
        answer_untimed(m);
        return;
    }
    r->span = 1e-9 * (double)(m->one->end - m->one->start);
    if (r->device) {
        r->busy = 1e-9 * (double)m->idle.busy;
        r->idle = 1e-9 * (double)m->idle.idle;
        answer_device(m);
        return;
    }
    r->busy = 1e-9 * (double)(s.latency - s.gap);
    r->idle = 1e-9 * (double)s.gap;
    if (bz_align_onednn_alone(m->trace) && bz_trace_lacks(m->trace, BZ_LACKS_STAMPS)) {
        r->idle = NAN;
        r->answer = bz_arena_printf(m->arena, "%s took %s in library calls; the log tells no time between them.",
                                    one_of(m), BZ_SAY_TIME(r->span));
    } else if (r->busy > 0) {
        answer_host(m, s.calls ? "library calls" : "operators");
    } else {
        r->answer =
            bz_arena_printf(m->arena, "%s took %s; what it did is not recorded.", one_of(m), BZ_SAY_TIME(r->span));
    }
}

/* Several devices are one in what was said before. */
static void tell_devices(recording_making *m)
{
    bz_summary s;
    bz_summary_make(m->trace, m->arena, &s);
    if (bz_trace_ahead(m->trace))
        FACT(m,
             "the host runs %s ahead (median), and launches of much of the device's work are "
             "not on record: iterations are the device's own steps, by when it worked",
             BZ_SAY_TIME(1e-9 * (double)bz_trace_ahead(m->trace)));
    if (s.behind && s.device_step.n && m->out->found)
        FACT(m,
             "the device works behind the host, which does not wait for it: the device's own "
             "step takes %s (median, from the end of one iteration's work to the next)",
             BZ_SAY_TIME(1e-9 * s.device_step.p50));
    if (m->idle.before)
        FACT(m,
             "the iteration waited %s for work that was launched before the recording began: in the middle of a run, "
             "where the device does that meanwhile, a step takes so much less",
             BZ_SAY_NS(m->idle.before));
    if (m->idle.late)
        FACT(m,
             "the device's clock is %s late: no work began sooner behind its launch; why it idled is "
             "told with launches as much later",
             BZ_SAY_NS(m->idle.late));
    int n = bz_trace_devices(m->trace);
    if (n > 1)
        FACT(m, "%d devices worked: busy is the time in which any of them did; the table of streams tells them apart",
             n);
}

static void tell_iterations(recording_making *m, const bz_trace *t)
{
    static const char *const HOW[] = {"marked by the program", "marked by a range", "detected by what repeats"};
    bz_recording *r = m->out;
    if (!r->found) {
        FACT(m, "no iteration was found: figures are of all that was recorded, set-up and warm-up included. Mark "
                "iterations, or name a range with --iterations");
        return;
    }
    FACT(m, "%d iteration%s, %s, %d of them warm-up%s", r->iterations, BZ_PLURAL(r->iterations), HOW[t->origin],
         r->warm_up,
         m->one && isfinite(r->span)
             ? "; times are measured, of the iteration of median latency; tables are means over the steady ones"
             : "");
    bz_phases phases;
    BZ_SCOPED(bz_buf) text = {0};
    if (bz_trace_phases(t, &phases)) {
        bz_phases_print(&phases, &text);
        FACT(m, "a language model: %s", bz_buf_text(&text));
    }
}

static void tell_place(recording_making *m, const bz_trace *t)
{
    static const char *const KEYS[] = {"gpu", "cpu", "nsys", "cudnn", "cublas", "onednn", "threads", "program"};
    BZ_SCOPED(bz_buf) text = {0};
    for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++)
        for (uint32_t i = 0; i < t->n_facts; i++)
            if (!strcmp(bz_string(t, t->fact[i].key), KEYS[k]))
                bz_buf_printf(&text, "%s%s %s", text.len ? ", " : "", KEYS[k], bz_string(t, t->fact[i].value));
    for (uint32_t i = 0; i < t->n_sources; i++)
        bz_buf_printf(&text, "%s%s, %lld events", text.len ? "; " : "", bz_string(t, t->source[i].format),
                      (long long)t->source[i].events);
    FACT(m, "recorded: %s", bz_buf_text(&text));
}

static void tell_fits(recording_making *m)
{
    bz_recording *r = m->out;
    int equal = 0;
    BZ_SCOPED(bz_buf) names = {0};
    if (!r->candidates)
        return;
    for (int i = 0; i < r->n_fits && r->fit[i].equal; i++, equal++)
        bz_buf_printf(&names, "%s%s (%s)", i ? ", " : "", r->fit[i].candidate->name, r->fit[i].candidate->from);
    if (!equal)
        FACT(m, "none of the models that are known fits the sequence of its work: --candidate names others");
    else
        FACT(m, "a guess, by the sequence of its work%s: %s%s: %s",
             r->fit[0].sized ? "" : ", without sizes, so that networks of other widths fit as well",
             equal > 1 ? "one of these, which fit equally: " : "the model may be ", bz_buf_text(&names),
             r->fit[0].evidence);
}

static void recognize(recording_making *m, const bz_recording_input *in, const bz_rebuilt *layers)
{
    bz_fit *fit = BZ_NEW(m->arena, bz_fit, in->n_candidates);
    m->out->candidates = in->n_candidates;
    m->out->n_fits = recording_recognize(m->trace, layers, in->candidate, in->n_candidates, m->arena, fit);
    m->out->fit = fit;
}

/* Advice wants an analysis: one of no layers. What needs a model finds nothing there. */
static void advise(recording_making *m, const char *profile, unsigned timeline)
{
    bz_analysis *a = BZ_NEW(m->arena, bz_analysis, 1);
    bz_layers *layers = BZ_NEW(m->arena, bz_layers, 1);
    bz_dag *dag = BZ_NEW(m->arena, bz_dag, 1);
    bz_peaks *peaks = BZ_NEW(m->arena, bz_peaks, 1);
    bz_ladder *ladder = BZ_NEW(m->arena, bz_ladder, 1);
    peaks->why = "no system was asked for";
    a->bound = (bz_bound){.model = profile,
                          .system = "",
                          .facts = &bz_system_unknown,
                          .left_out = "",
                          .layers = layers,
                          .dag = dag,
                          .peaks = peaks,
                          .hardware = NAN};
    a->ladder = ladder;
    a->n_ladders = 1;
    m->out->analysis = a;
    analyze_work work = {
        .arena = m->arena, .made = BZ_PART_BOUND, .profile = &(bz_recorded){profile, m->trace}, .item = a, .n = 1};
    /* gains are per iteration, and of what is known of it */
    bool known = m->out->found && m->out->busy > 0;
    analyze_make(&work, BZ_PART_ALIGNMENT | (known ? BZ_PART_ADVICE : 0) | timeline, NULL);
    ladder->n_warnings = 0; /* they are about a bound */
    if (m->out->found && ladder->slowed)
        WARN(m, "was %s", ladder->slowed);
    m->alignment = ladder->alignment;
}

/* The first launch of a kernel loads its code: a recording that has such an iteration alone tells of no other one, and what would save its launches
 * saves next to nothing behind it. */
static void tell_loading(recording_making *m)
{
    const bz_trace *t = m->trace;
    const bz_events *kernel = &t->event[BZ_EVENT_KERNEL], *api = &t->event[BZ_EVENT_API];
    const uint32_t typical = bz_typical_iteration(t);
    BZ_FREED int64_t *took = bz_alloc(kernel->n + 1, sizeof *took);
    BZ_FREED uint32_t *row = bz_alloc(kernel->n + 1, sizeof *row);
    int64_t longest = 0;
    double loading = 0;
    size_t n = 0;
    for (size_t i = 0; i < kernel->n && m->one; i++) {
        uint32_t cause = kernel->cause ? kernel->cause[i] : BZ_NONE;
        if (cause >= api->n || bz_event_iteration(t, BZ_EVENT_KERNEL, i) != typical)
            continue;
        row[n] = (uint32_t)i;
        took[n++] = api->end[cause] - api->start[cause];
    }
    bz_sort_times(took, n);
    const int64_t usual = n ? took[n / 2] : 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t cause = kernel->cause[row[i]];
        int64_t call = api->end[cause] - api->start[cause], queued = kernel->start[row[i]] - api->end[cause];
        if (!bz_launch_loads(call, usual, queued))
            continue;
        longest = call > longest ? call : longest;
        loading += 1e-9 * (double)call;
    }
    if (loading > 0 && loading >= LOADING * m->out->span)
        WARN(m,
             "launches took up to %s, where half of them take %s or less: the first one of a kernel loads its code. %s "
             "of the iteration are such, which the next one does not have: record behind some iterations of warm-up",
             BZ_SAY_NS(longest), BZ_SAY_NS(usual), BZ_SAY_TIME(loading));
}

static void tell_coverage(recording_making *m, const bz_trace *t)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (t->coverage[i].level != BZ_COVERAGE_NOTE)
            WARN(m, "%s", bz_string(t, t->coverage[i].text));
}

void bz_recording_make(const bz_recording_input *in, bz_arena *arena, bz_recording *out)
{
    static const char *const FOUND[] = {"marked", "range", "detected"};
    const bz_trace *t = in->trace;
    bz_trace *whole = BZ_NEW(arena, bz_trace, 1);
    bz_iteration *span = BZ_NEW(arena, bz_iteration, 1), *one = BZ_NEW(arena, bz_iteration, 1);
    bz_rebuilt *layers = BZ_NEW(arena, bz_rebuilt, 1);
    recording_making m = {
        .trace = t, .arena = arena, .steady = 1, .rank = in->rank, .n_ranks = in->n_ranks, .out = out};
    *out = (bz_recording){.profile = in->profile,
                          .iterations = (int)t->n_iterations,
                          .found = t->n_iterations ? FOUND[t->origin] : NULL,
                          .truncated = bz_trace_is_truncated(t),
                          .device = t->event[BZ_EVENT_KERNEL].n > 0};
    out->warm_up = out->iterations - (int)bz_steady_iterations(t);
    if (out->iterations > out->warm_up)
        m.steady = out->iterations - out->warm_up;
    if (!t->n_iterations && bz_trace_whole(t, span, whole))
        m.trace = whole;
    uint32_t typical = bz_typical_iteration(m.trace);
    if (typical != BZ_NONE && bz_iteration_latency(m.trace, typical) > 0) {
        *one = (bz_iteration){.start = bz_iteration_begin(m.trace, typical), .end = m.trace->iteration[typical].end};
        m.one = one;
        bz_trace_idle(m.trace, m.one, &m.idle);
    }
    sum_kernels(&m);
    bz_rebuild(t, arena, layers);
    recognize(&m, in, layers);
    answer(&m);
    if (out->truncated)
        out->answer = bz_arena_printf(arena, "%s The recording is cut off: more may have happened.", out->answer);
    tell_place(&m, t);
    tell_iterations(&m, t);
    tell_devices(&m);
    tell_kernels(&m);
    tell_fits(&m);
    advise(&m, in->profile, in->timeline ? BZ_PART_TIMELINE : 0);
    tell_loading(&m);
    tell_coverage(&m, t);
    recording_sheets(&m);
    out->layers = layers->layers ? layers : NULL;
    if (in->timeline)
        out->tables = bz_tables_new(t, NULL, NULL, arena, &(bz_error){0});
}
