/* The bound against a profile: what the device did, what the user waited for, and what does not fit. */
#include "base/sort.h"
#include "explain/align.h"
#include "explain/constants.h"
#include "runtime/gpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    const bz_bound *bound;
    const bz_trace *trace;
    bz_arena *arena;
    bz_ladder *l;
} making;

/* A sentence of its warnings. */
#define WARN(m, ...)                                                                                                   \
    (BZ_ARENA_ADD((m)->arena, (m)->l->warning, (m)->l->n_warnings) = bz_arena_printf((m)->arena, __VA_ARGS__))

/* The latency in a run in which less was recorded than in the trace's own run; NAN where there was no such run. */
static double undisturbed(making *m)
{
    const bz_trace *t = m->trace;
    uint32_t run = bz_trace_level(t, BZ_FIGURE_LATENCY);
    double *v;
    if (run == BZ_NONE || run == t->own_level)
        return NAN;
    m->l->run = bz_arena_str(m->arena, bz_string(t, t->level[run].name));
    size_t n = bz_trace_figures(t, BZ_FIGURE_LATENCY, m->arena, &v);
    bz_quantiles_of(v, n); /* sorts */
    return v[(n - 1) / 2] / 1e9;
}

/* Calls of a library that works on a device; or of one that does not. */
static bool has_calls(const bz_trace *t, bool on_device)
{
    const bz_events *calls = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < calls->n; i++)
        if (calls->library[i] != BZ_LIBRARY_OTHER && bz_library_on_device(calls->library[i]) == on_device)
            return true;
    return false;
}

/* ONNX Runtime tells of each operator who did it. */
static bool has_device_operators(const bz_trace *t)
{
    static const char *const PROVIDERS[] = {"provider=CUDA", "provider=Tensorrt", "provider=NvTensorRT",
                                            "provider=ROCM", "provider=MIGraphX", "provider=Dml"};
    const bz_events *ops = &t->event[BZ_EVENT_OP];
    for (size_t i = 0; i < ops->n; i++)
        for (size_t k = 0; k < sizeof PROVIDERS / sizeof *PROVIDERS; k++)
            if (strstr(bz_string(t, ops->detail[i]), PROVIDERS[k]))
                return true;
    return false;
}

static int in_iteration(const bz_trace *t, bz_event_kind kind, uint32_t iteration)
{
    int n = 0;
    for (size_t i = 0; i < t->event[kind].n; i++)
        n += bz_event_iteration(t, kind, i) == iteration;
    return n;
}

bool bz_recorder_is_pytorch(const bz_trace *t)
{
    bool is = false;
    for (uint32_t i = 0; i < t->n_sources; i++)
        is |= !strcmp(bz_string(t, t->source[i].format), "PyTorch trace");
    return is;
}

bz_recorder_cost bz_recorder_adds(const bz_trace *t, uint32_t iteration)
{
    bz_recorder_cost cost = {.least = TORCH_ADDS[0], .most = TORCH_ADDS[1]};
    if (!bz_recorder_is_pytorch(t) || iteration == BZ_NONE || !t->event[BZ_EVENT_KERNEL].n)
        return cost;
    cost.operators = in_iteration(t, BZ_EVENT_OP, iteration);
    cost.calls = in_iteration(t, BZ_EVENT_API, iteration);
    const double all = 1e3 * cost.most * (cost.operators + cost.calls);
    cost.matters = cost.operators && all >= SLOWED_LEAST * (double)bz_iteration_latency(t, iteration);
    return cost;
}

const char *bz_recorder_slows(const bz_trace *t, uint32_t iteration, const bz_iteration_stats *s, bz_arena *arena)
{
    const bz_recorder_cost cost = bz_recorder_adds(t, iteration);
    const double latency = 1e-9 * (double)s->latency, idle = latency - 1e-9 * (double)s->device_busy,
                 most = 1e-6 * cost.most * (cost.operators + cost.calls);
    if (!cost.matters || idle < SLOWED_LEAST * latency)
        return NULL;
    return bz_arena_printf(
        arena,
        "recorded by PyTorch's profiler, which takes some %g to %g µs for each of the %d operators and "
        "%d calls of an iteration: alone the program takes up to %s less, and gains on the host are "
        "smaller",
        cost.least, cost.most, cost.operators, cost.calls, BZ_SAY_TIME(fmin(idle, most)));
}

/* All of one iteration, so that what is said about it adds up; but for the latency, if another run tells it better. */
static void measure(making *m)
{
    const bz_trace *t = m->trace;
    bz_iteration_stats s = {0};
    uint32_t typical = bz_typical_iteration(t);
    m->l->device = t->event[BZ_EVENT_KERNEL].n > 0;
    m->l->on_device = m->l->device || has_calls(t, true) || has_device_operators(t);
    m->l->iterations = (int)bz_steady_iterations(t);
    if (typical != BZ_NONE)
        bz_iteration_measure(t, typical, &s);
    double alone = undisturbed(m);
    m->l->recorded = bz_tick(1e-9 * (double)s.latency);
    m->l->latency = isfinite(alone) ? bz_tick(alone) : m->l->recorded;
    m->l->busy = bz_tick(1e-9 * (double)(m->l->device ? s.device_busy : s.library));
    if (!(m->l->busy > 0))
        m->l->busy = NAN;
    if (!(m->l->latency > 0)) {
        m->l->latency = NAN;
        WARN(m, "%s",
             t->n_iterations ? "has no timeline: a log tells what was called, not how long it took"
                             : "no iterations were found in it: mark them, or name the range with --iterations");
    } else if (!bz_trace_has_lengths(t)) {
        WARN(m, "tells when calls began, not how long they took: all that lies between is one");
    }
    if (m->l->run && m->l->busy > m->l->latency)
        WARN(m, "%s in the recorded run than an iteration of the run '%s': record again on a quiet machine",
             m->l->device ? "kept the device busy for longer" : "was in library calls for longer", m->l->run);
    m->l->idle = m->l->latency - m->l->busy;
    const char *rest = m->bound->n && !m->bound->rebuilt ? bz_trace_lacks(t, BZ_LACKS_ITERATIONS_REST) : NULL;
    if (rest)
        WARN(m, "%s", rest);
    static const bz_lack OTHERS[] = {BZ_LACKS_QUIET, BZ_LACKS_UNDISTURBED};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (bz_trace_lacks(t, OTHERS[i]))
            WARN(m, "was %s", bz_trace_lacks(t, OTHERS[i]));
    m->l->slowed = isfinite(alone) ? NULL : bz_recorder_slows(t, typical, &s, m->arena);
    if (m->l->slowed)
        WARN(m, "was %s", m->l->slowed);
    const char *cut = bz_trace_lacks(t, BZ_LACKS_END);
    if ((m->l->truncated = cut != NULL))
        WARN(m, "%s", cut);
    m->l->open = bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN) != NULL;
    m->l->calls_alone = bz_align_onednn_alone(t) && bz_trace_lacks(t, BZ_LACKS_STAMPS);
}

bool bz_ladder_compares(const bz_ladder *l)
{
    return !l->foreign && !l->ran_on;
}

bool bz_ladder_holds(const bz_ladder *l)
{
    return l->goal.enough && !l->defect && bz_ladder_compares(l);
}

static void climb(bz_ladder *l)
{
    double bound = l->goal.sequential;
    bool holds = bz_ladder_holds(l);
    l->excess = holds ? l->busy - bound : NAN;
    l->overlap = holds ? bound - l->goal.parallel : NAN;
    l->ratio = holds ? bound / l->latency : NAN;
    l->speedup = holds && bound > 0 ? l->latency / bound : NAN;
    l->speedup_parallel = holds && bound > 0 ? l->latency / l->goal.parallel : NAN;
}

static bz_dtype model_dtype(const bz_bound *b)
{
    if (b->dtype)
        return b->dtype;
    for (int i = 0; i < b->n; i++)
        if (b->layer[i].layer->macs && b->layer[i].layer->n_in)
            return b->layer[i].layer->in[0].dtype;
    return BZ_UNDEFINED;
}

/* The first steady call that tells. */
static void check_calls(making *m)
{
    const bz_events *c = &m->trace->event[BZ_EVENT_CALL];
    bz_dtype dtype = BZ_UNDEFINED, own = model_dtype(m->bound);
    long batch = 0;
    for (size_t i = 0; i < c->n && (!dtype || !batch); i++) {
        if (!(c->flags[i] & BZ_CALL_EXECUTES) || !bz_event_counts(m->trace, BZ_EVENT_CALL, i))
            continue;
        const bz_call *call = bz_call_of(m->trace, i);
        dtype = dtype ? dtype : call->dtype;
        batch = batch ? batch : (long)call->batch;
    }
    if (batch && m->bound->layers->batch && batch != m->bound->layers->batch)
        WARN(m, "ran batch %ld, the bound is for %lld: --batch %ld", batch, (long long)m->bound->layers->batch, batch);
    if (dtype && own && dtype != own)
        WARN(m, "computed in %s, the bound is for %s: --dtype %s", bz_dtype_name(dtype), bz_dtype_name(own),
             bz_dtype_name(dtype));
}

#define UNTOLD ", so that no speed-up and no gain by records is told; --system names another"

/* What another machine did is no measure of this bound's. */
static void check_machine(making *m, const char *ran, size_t n)
{
    const char *name = m->bound->facts->name;
    bz_gpu row;
    if (!n || !*name || (strlen(name) >= n && !strncmp(name, ran, n)))
        return;
    const char *machine = bz_arena_strn(m->arena, ran, n);
    if (bz_gpu_find(machine, &row) && !strcmp(row.name, name)) /* a data sheet names no sizes of memory */
        return;
    m->l->ran_on = machine;
    WARN(m, "ran on %s, the bound is for %s" UNTOLD, machine, name);
}

/* An implementation whose instructions the bound's processor lacks: virtual machines hide which processor they have. */
static void check_instructions(making *m)
{
    static const struct {
        const char *variant, *isa, *name;
    } SETS[] = {{"amx", "AMX", "AMX"}, {"avx512", "AVX512", "AVX-512"}, {"avx2", "AVX2", "AVX2"}};
    const bz_events *c = &m->trace->event[BZ_EVENT_CALL];
    const char *has = m->bound->facts->isa;
    for (size_t k = 0; has && *has && !m->l->ran_on && k < sizeof SETS / sizeof *SETS; k++) {
        if (strstr(has, SETS[k].isa))
            continue;
        for (size_t i = 0; i < c->n && !m->l->ran_on; i++) {
            const char *variant = bz_string(m->trace, c->variant[i]);
            if (c->library[i] != BZ_LIBRARY_ONEDNN || !strstr(variant, SETS[k].variant))
                continue;
            m->l->ran_on = bz_arena_printf(m->arena, "another processor, with %s", SETS[k].name);
            WARN(m, "ran on %s, as %s shows; the bound is for %s, which lacks it" UNTOLD, m->l->ran_on, variant,
                 m->bound->system);
        }
    }
}

static void check_system(making *m)
{
    const char *gpu = bz_trace_told(m->trace, "gpu"), *threads = bz_trace_told(m->trace, "threads");
    const bz_system_facts *facts = m->bound->facts;
    if (*facts->text && facts->gpu != m->l->on_device && (m->l->on_device || has_calls(m->trace, false))) {
        m->l->ran_on = facts->gpu ? "a processor" : "a GPU";
        WARN(m, "ran on %s, the bound is for %s" UNTOLD, m->l->ran_on, facts->gpu ? "a GPU" : "a processor");
    }
    const char *cpu = bz_trace_told(m->trace, "cpu"); /* "AMD EPYC, 2 threads" */
    if (facts->gpu && gpu)
        check_machine(m, gpu, strlen(gpu));
    else if (!facts->gpu && !m->l->on_device && cpu)
        check_machine(m, cpu, strlen(cpu) - (strrchr(cpu, ',') ? strlen(strrchr(cpu, ',')) : 0));
    if (!facts->gpu && !m->l->on_device)
        check_instructions(m);
    if (threads && atoi(threads) > 0 && atoi(threads) != m->bound->setting.threads)
        WARN(m, "ran with %d threads, the bound is for %d: --threads %d", atoi(threads), m->bound->setting.threads,
             atoi(threads));
    const char *blas = bz_trace_told(m->trace, "blas threads");
    if (blas && !m->l->on_device && atoi(blas) > m->bound->setting.threads)
        WARN(m,
             "its BLAS had %d threads, the bound is for %d: record with OPENBLAS_NUM_THREADS=%d (or OMP_NUM_THREADS), "
             "or take --threads %d",
             atoi(blas), m->bound->setting.threads, m->bound->setting.threads, atoi(blas));
    static const char *const LIBRARIES[] = {"cudnn", "onednn"};
    for (int i = 0; i < 2; i++) {
        const char *version = bz_trace_told(m->trace, LIBRARIES[i]);
        const char *at = version ? strstr(m->bound->system, LIBRARIES[i]) : NULL;
        size_t n = at ? strcspn(at += strlen(LIBRARIES[i]), "+@") : 0;
        if (at && n && (strlen(version) != n || strncmp(at, version, n) != 0))
            WARN(m, "ran %s %s, the bound rests on %.*s", LIBRARIES[i], version, (int)n, at);
    }
}

/* The layers to suspect: those with a floor, which weighs most where little is done; all where none has. */
static int suspect(const void *a, const void *b)
{
    const bz_bound_layer *const *x = a, *const *y = b;
    double s = ((*x)->price.seconds - fmax((*x)->hardware, 0)) * (*x)->times;
    double t = ((*y)->price.seconds - fmax((*y)->hardware, 0)) * (*y)->times;
    if ((*x)->floor != (*y)->floor)
        return (*x)->floor ? -1 : 1;
    return s > t ? -1 : s < t ? 1 : *x < *y ? -1 : 1;
}

static const char *name_suspects(making *m)
{
    const bz_bound *b = m->bound;
    const bz_bound_layer **list = BZ_NEW(m->arena, const bz_bound_layer *, b->n);
    bz_buf text = {0};
    int n = 0;
    for (int i = 0; i < b->n; i++)
        if (b->layer[i].price.alternative)
            list[n++] = &b->layer[i];
    BZ_QSORT(list, n, suspect);
    for (int i = 0; i < n && i < 5; i++)
        bz_buf_printf(&text, "%s%s (%s)", i ? ", " : "", list[i]->layer->name,
                      BZ_SAY_TIME(list[i]->price.seconds * list[i]->times));
    return bz_buf_keep(&text, m->arena);
}

/* A program that fuses is held against the fused bound, where there is one. Another machine's bound may be above what this one took. */
static void check_rungs(making *m)
{
    const bz_bound *b = m->bound;
    const bz_goal *goal = &m->l->goal;
    if (m->l->ran_on)
        return;
    if (m->l->calls_alone && goal->sequential > m->l->latency && !m->l->foreign) {
        m->l->foreign =
            bz_arena_printf(m->arena, "tells less work than the model has: its calls took %s, the %s bound is %s",
                            BZ_SAY_TIME(m->l->latency), goal->name, BZ_SAY_TIME(goal->sequential));
        return;
    }
    const struct {
        const char *name;
        double seconds;
    } rungs[] = {{"it took in all", m->l->latency},
                 {m->l->device ? "the device was busy" : "its library calls took", m->l->busy}};
    for (int i = 0; i < 2; i++) {
        if (!(goal->sequential > rungs[i].seconds))
            continue;
        const char *why = "it fuses layers, ran other work, or ran on more than the records did: look at ";
        if (b->coverage.floor)
            why = bz_arena_printf(
                m->arena, "%d of its layers rest on times between events, which carry a floor: ", b->coverage.floor);
        const char *text = bz_arena_printf(m->arena, "the %s bound, %s, is above what %s, %s; %s%s",
                                           b->fused.wanted ? "fused" : "sequential", BZ_SAY_TIME(goal->sequential),
                                           rungs[i].name, BZ_SAY_TIME(rungs[i].seconds), why, name_suspects(m));
        if (i == 0)
            m->l->defect = text;
        else
            WARN(m, "%s", text);
        return;
    }
}

static int is_compiled(const char *name)
{
    return bz_name_matches("Torch-Compiled Region", name);
}

/* On a device kernels show what generated code computes; on a processor nothing does. */
static void check_generated(making *m)
{
    const bz_events *op = &m->trace->event[BZ_EVENT_OP];
    bz_name_answers compiled = {.ask = is_compiled};
    size_t i = 0;
    if (m->l->device || !m->bound->n)
        return;
    while (i < op->n && !bz_name_answer(&compiled, bz_string(m->trace, op->name[i])))
        i++;
    if (i < op->n)
        WARN(m, "was compiled: the code that its compiler generated shows no operators on a processor, %s",
             m->bound->rebuilt ? "so the layers in it are not among those of this bound"
                               : "and layers that are missing here may be computed in it");
}

void bz_ladder_make(const bz_bound *bound, const bz_trace *trace, const char *profile, bz_arena *arena, bz_ladder *out)
{
    making m = {bound, trace, arena, out};
    *out = (bz_ladder){.profile = profile, .goal = bz_bound_goal(bound), .with_framework = NAN, .without = NAN};
    measure(&m);
    bool batch_open = false;
    if (bound->n && !bound->rebuilt && m.l->iterations)
        out->foreign = bz_align_foreign(bound, trace, arena, &batch_open);
    if (bound->n && !bound->rebuilt && out->open && !out->foreign)
        out->foreign =
            "repeats in pieces that may be iterations or parts of iterations, as equal layers are: --iterations "
            "names them, or their number, and marks in the program tell it surely";
    if (batch_open)
        WARN(&m,
             "nothing in the recording tells its batch; the model is taken with %lld: if it ran another, --batch takes "
             "that",
             (long long)bound->layers->batch);
    check_system(&m);
    check_calls(&m);
    check_generated(&m);
    check_rungs(&m);
    climb(out);
}

/* Operators tell all layers; library calls tell those that a library did. */
void bz_ladder_hide(const bz_bound *bound, bz_ladder *ladder)
{
    const bz_alignment *a = ladder->alignment;
    double hidden = 0;
    for (int i = 0; i < a->n_causes; i++)
        if (a->cause[i].kind == BZ_CAUSE_GAPS || a->cause[i].kind == BZ_CAUSE_KERNELS_EXTRA ||
            a->cause[i].kind == BZ_CAUSE_OPERATORS_EXTRA || a->cause[i].kind == BZ_CAUSE_OPERATOR)
            hidden += a->cause[i].seconds;
    bool calls = bound->rebuilt && !bound->layers->model && a->timeline;
    ladder->hidden = calls && hidden > HIDDEN_MOST * ladder->latency ? hidden : 0;
}
