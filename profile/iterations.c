/* Iterations: marked by the program, named by a range, or found in the work that repeats. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/cuts.h"
#include "profile/sequence.h"

#include <stdlib.h>
#include <string.h>

static uint64_t symbol_of(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu ^ c * 0x165667b19e3779f9u;
    return h ^ h >> 31;
}

bool bz_of_log(const bz_trace *t, uint32_t lane)
{
    return t->source[t->lane[lane].source].log;
}

bool bz_has_timeline(const bz_trace *t)
{
    for (uint32_t i = 0; i < t->n_sources; i++)
        if (!t->source[i].log && t->source[i].events)
            return true;
    return false;
}

void bz_trace_add_iteration(bz_trace *t, int64_t start, int64_t end)
{
    BZ_ROOM(t->iteration, t->n_iterations);
    t->iteration[t->n_iterations++] = (bz_iteration){.start = start, .end = end};
}

/* Kernels of a vector and of a matrix do the same for one token and for many. */
static uint64_t sort_of(bz_kernel_does does)
{
    return does == BZ_KERNEL_VECTOR_PRODUCT || does == BZ_KERNEL_PRODUCT_PART ? BZ_KERNEL_PRODUCT : does;
}

static uint8_t does_of(bz_kernel_does does)
{
    switch (does) {
    case BZ_KERNEL_OPTIMIZER:
        return BZ_DOES_OPTIMIZE;
    case BZ_KERNEL_GATHER:
        return BZ_DOES_LOOK_UP;
    case BZ_KERNEL_PRODUCT:
    case BZ_KERNEL_VECTOR_PRODUCT:
    case BZ_KERNEL_NORM:
    case BZ_KERNEL_SOFTMAX:
    case BZ_KERNEL_SORT:
    case BZ_KERNEL_REDUCE:
        return BZ_DOES_CLOSE;
    case BZ_KERNEL_LOSS:
        return BZ_DOES_CLOSE | BZ_DOES_LOSS;
    default:
        return 0;
    }
}

/* What operators do whose recording has no kernels; PyTorch, ONNX Runtime, TensorFlow. Normalization is none that closes: layers of
 * networks of convolutions have one each. */
static const struct {
    const char *operators;
    int does;
} OPERATORS[] = {
    {"^aten::embedding$ ^aten::embedding_bag$ ^EmbedLayerNormalization$", BZ_DOES_LOOK_UP},
    {"^aten::cross_entropy ^aten::nll_loss ^aten::mse_loss$ ^aten::l1_loss$ ^aten::smooth_l1_loss$ ^aten::huber_loss$ "
     "^aten::binary_cross_entropy ^aten::kl_div$ ^aten::ctc_loss$ ^SoftmaxCrossEntropyLoss",
     BZ_DOES_CLOSE | BZ_DOES_LOSS},
    {"^aten::linear$ ^aten::addmm$ ^aten::mm$ ^aten::matmul$ ^aten::softmax$ ^aten::log_softmax$ ^aten::topk$ "
     "^aten::sort$ ^aten::argmax$ ^Gemm$ ^MatMul$ ^FusedGemm$ ^Softmax$ ^LogSoftmax$ ^TopK$ ^ArgMax$",
     BZ_DOES_CLOSE},
};

static uint8_t operator_does(const char *name)
{
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        if (bz_name_matches_any(OPERATORS[i].operators, name))
            return (uint8_t)OPERATORS[i].does;
    return 0;
}

/* Where sizes grow, steps have the same calls by name and by what does not grow; a prompt has those of the same names. Calls for each
 * head of attention, of one size in a row, are one, or a layer would have too many of them. */
static void read_growing(const bz_trace *t, bz_sequence *s, bz_work *w, uint32_t *exact, bz_arena *arena)
{
    uint32_t *merged = bz_alloc(s->n, sizeof *merged), *sort = BZ_NEW(arena, uint32_t, w->n_exact);
    bool grows = bz_sequence_merge_growing(t, s, w->exact, w->n_exact, merged);
    bz_numbers ids = {0}, names = {0};
    size_t kept = 0;
    uint32_t last = 0;
    for (size_t k = 0; k < s->n && grows; k++) {
        if (k && merged[k] == last)
            continue;
        last = merged[k];
        s->row[kept] = s->row[k];
        exact[kept] = bz_numbers_add(&ids, last);
        sort[exact[kept]] = bz_numbers_add(&names, s->event->name[s->row[kept]]);
        kept++;
    }
    if (grows) {
        s->n = w->n = kept;
        w->n_exact = w->n_name = ids.n;
        w->n_sort = names.n;
        w->sort = sort;
        w->grows = true;
    }
    bz_numbers_free(&ids);
    bz_numbers_free(&names);
    free(merged);
}

/* What symbols of kernels tell: their names, what they do, of what sort that is. `of` [n_exact]: an event of each symbol. */
static void read_kernels(const bz_trace *t, const bz_sequence *s, bz_work *w, const uint32_t *of, bz_arena *arena)
{
    uint32_t *name = BZ_NEW(arena, uint32_t, w->n_exact), *sort = BZ_NEW(arena, uint32_t, w->n_exact);
    uint8_t *does = BZ_NEW(arena, uint8_t, w->n_exact);
    bz_numbers names = {0}, sorts = {0};
    for (uint32_t id = 0; id < w->n_exact; id++) {
        bz_kernel_does what = bz_kernel_of(t, of[id])->does;
        name[id] = bz_numbers_add(&names, s->event->name[of[id]]);
        sort[id] = bz_numbers_add(&sorts, sort_of(what));
        does[id] = does_of(what);
    }
    w->name = name;
    w->sort = sort;
    w->does = does;
    w->n_name = names.n;
    w->n_sort = sorts.n;
    bz_numbers_free(&names);
    bz_numbers_free(&sorts);
}

/* Of operators with shapes: their names alone. name[n_exact] */
static void read_names(const bz_sequence *s, bz_work *w, const uint32_t *of, uint32_t *name)
{
    bz_numbers names = {0};
    for (uint32_t id = 0; id < w->n_exact; id++)
        name[id] = bz_numbers_add(&names, s->event->name[of[id]]);
    w->n_name = w->n_sort = names.n;
    bz_numbers_free(&names);
}

/* Three readings of each event: name and shape, name, sort of work. */
static void read_symbols(const bz_trace *t, bz_sequence *s, bz_work *w, bz_arena *arena)
{
    const bz_events *e = s->event;
    bool kernels = s->kind == BZ_EVENT_KERNEL;
    uint32_t *exact = bz_arena_take(arena, s->n * sizeof *exact), *of = NULL, *same;
    bz_numbers ids = {0};
    /* parameters tell calls apart, and shapes operators, but only where every one has them */
    bool op = s->kind == BZ_EVENT_OP, detailed = e->detail != NULL && (op || s->kind == BZ_EVENT_CALL);
    for (size_t k = 0; k < s->n && detailed; k++)
        detailed = e->detail[s->row[k]] != 0;
    uint32_t *last = bz_alloc(bz_strings(t), sizeof *last); /* of each name: most events are what that one was */
    memset(last, 0xff, bz_strings(t) * sizeof *last);
    for (size_t k = 0; k < s->n; k++) {
        size_t i = s->row[k];
        uint32_t before = last[e->name[i]], detail = detailed ? e->detail[i] : 0;
        last[e->name[i]] = (uint32_t)k;
        if (before != BZ_NONE && (!detailed || e->detail[s->row[before]] == detail) &&
            (!kernels || e->launched[s->row[before]] == e->launched[i])) {
            exact[k] = exact[before];
            continue;
        }
        const uint32_t *shape = kernels ? bz_kernel_launched(t, i)->grid : NULL;
        uint64_t grid = kernels ? symbol_of(shape[0], shape[1], shape[2]) : 0;
        exact[k] = bz_numbers_add(&ids, symbol_of(e->name[i], detail, grid));
        if (ids.n == w->n_exact)
            continue;
        BZ_ROOM(of, w->n_exact);
        of[w->n_exact++] = (uint32_t)i;
    }
    bz_numbers_free(&ids);
    free(last);
    w->exact = exact;
    if (kernels) {
        read_kernels(t, s, w, of, arena);
    } else {
        same = BZ_NEW(arena, uint32_t, w->n_exact);
        for (uint32_t id = 0; id < w->n_exact; id++)
            same[id] = id;
        w->name = w->sort = same;
        w->n_name = w->n_sort = w->n_exact;
        uint8_t *does = BZ_NEW(arena, uint8_t, w->n_exact);
        for (uint32_t id = 0; id < w->n_exact && op; id++)
            does[id] = operator_does(bz_string(t, e->name[of[id]]));
        w->does = does;
        if (op && detailed)
            read_names(s, w, of, same);
        else if (detailed)
            read_growing(t, s, w, exact, arena);
    }
    free(of);
}

/* The first event of the sequence that the host asked for at `time` or later. */
static size_t event_from(const bz_sequence *s, int64_t time)
{
    size_t low = 0, high = s->n;
    BZ_FIND_FIRST(low, high, middle, bz_sequence_start(s, middle) < time);
    return low;
}

/* The threads of the host that asked for the work: what others do meanwhile, such as loading data, cuts nothing. [n_lanes] */
static const bool *asking_threads(const bz_trace *t, const bz_sequence *s, bz_arena *arena)
{
    size_t *count = BZ_NEW(arena, size_t, t->n_lanes), most = 0, run = 0; /* of one thread in a row */
    bool *asks = BZ_NEW(arena, bool, t->n_lanes);
    uint32_t before = 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t cause = s->cause ? s->cause[s->row[i]] : BZ_NONE,
                 lane = cause != BZ_NONE ? s->api->lane[cause] : s->event->lane[s->row[i]];
        if (lane != before) {
            count[before] += run;
            run = 0;
            before = lane;
        }
        run++;
    }
    count[before] += run;
    for (uint32_t i = 0; i < t->n_lanes; i++)
        most = count[i] > most ? count[i] : most;
    for (uint32_t i = 0; i < t->n_lanes; i++)
        asks[i] = count[i] && count[i] >= most / LAUNCHES_OF_A_THREAD;
    return asks;
}

enum { TO_DEVICE = 1, TO_HOST = 2 }; /* directions of copies, as CUPTI numbers them */

static void set_between(bz_work *w, uint8_t *between, uint8_t bit)
{
    *between |= bit;
    w->anywhere |= bit;
}

static void read_copies(const bz_trace *t, const bz_sequence *s, bz_work *w, const bool *asks, uint16_t *inputs,
                        uint8_t *between)
{
    const bz_events *e = &t->event[BZ_EVENT_COPY];
    const uint32_t *causes = bz_causes(t, e);
    int64_t device = t->lane[s->event->lane[s->row[0]]].device_id;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t cause = causes ? causes[i] : BZ_NONE;
        if (cause != BZ_NONE ? !asks[s->api->lane[cause]] : t->lane[e->lane[i]].device_id != device)
            continue;
        size_t at = event_from(s, bz_asked_at(t, e, i));
        if (e->value[i] == TO_HOST)
            set_between(w, &between[at], BZ_BETWEEN_RESULT);
        else if (e->value[i] == TO_DEVICE && inputs[at] < UINT16_MAX)
            w->fed = ++inputs[at];
    }
}

/* Zeroed, as long as the arena: what nobody writes to takes no memory. */
static void *untouched(bz_arena *arena, size_t n, size_t size)
{
    void *p = bz_zeroed(n, size);
    bz_arena_keep(arena, p, free);
    return p;
}

/* What the host did between the events of a device's sequence. */
static void read_host(const bz_trace *t, const bz_sequence *s, bz_work *w, bz_arena *arena)
{
    uint16_t *inputs = untouched(arena, s->n + 1, sizeof *inputs);
    uint8_t *between = untouched(arena, s->n + 1, sizeof *between);
    int64_t end = bz_sequence_end(s, 0);
    w->pause = untouched(arena, s->n + 1, sizeof *w->pause);
    const bz_events *e = s->event, *api = s->api;
    const uint32_t *causes = e->cause;
    uint32_t before = causes ? causes[s->row[0]] : BZ_NONE;
    for (size_t i = 1; i < s->n; i++) {
        int64_t start = bz_sequence_start(s, i), stop = bz_sequence_end(s, i);
        uint32_t cause = causes ? causes[s->row[i]] : BZ_NONE;
        bz_work_add_pause(w, i, start > end ? start - end : 0, arena);
        end = stop > end ? stop : end;
        if (cause != BZ_NONE && cause == before)
            set_between(w, &between[i], BZ_BETWEEN_NONE);
        before = cause;
    }
    w->inputs = inputs;
    w->between = between;
    if (!e->cause)
        return;
    const bool *asks = asking_threads(t, s, arena);
    read_copies(t, s, w, asks, inputs, between);
    for (size_t i = 0; i < api->n; i++)
        if (bz_api_of(t, i) == BZ_API_WAITS && asks[api->lane[i]])
            set_between(w, &between[event_from(s, api->start[i])], BZ_BETWEEN_WAIT);
}

/* `other`: NULL where nothing but the number of layers in an iteration is open. */
static void tell_other(bz_trace *t, const bz_cut *chosen, const bz_cut *other)
{
    if (other)
        bz_trace_lack(t, BZ_NONE, BZ_COVERAGE_NOTE, BZ_LACKS_ITERATIONS_OPEN,
                      "more than one number of iterations fits the recording: %u iterations of %u events were taken, "
                      "%u of %u may be meant. --iterations %u takes those; marks in the program tell it surely",
                      chosen->n, chosen->length, other->n, other->length, other->n);
    else
        bz_trace_lack(
            t, BZ_NONE,
            chosen->length > 1 ? BZ_COVERAGE_NOTE : BZ_COVERAGE_MISSING, /* one call after the other tells nothing */
            BZ_LACKS_ITERATIONS_OPEN,
            "more than one number of iterations fits the recording: %u iterations of %u events were taken, which may "
            "be equal layers of fewer, even of a single one: no "
            "result is fetched between them. --iterations 1 takes them as one; marks in the program tell it surely",
            chosen->n, chosen->length);
}

/* The level of so many pieces; where none covers the work, the one of more pieces that covers most, of which as many as are needed make
 * one. -1: there is neither. */
static int level_of(const bz_cut *cut, int n, uint32_t count, uint32_t *each)
{
    int best = -1, exact = -1;
    for (int i = 0; i < n; i++) {
        if (cut[i].n == count)
            exact = i;
        else if (cut[i].n >= 2 * (uint64_t)count && (best < 0 || cut[i].covered > cut[best].covered))
            best = i;
    }
    if (best < 0 || (exact >= 0 && 10 * cut[exact].covered >= 8 * cut[best].covered))
        best = exact;
    *each = best < 0 ? 1 : cut[best].n / count;
    return best;
}

/* `each` pieces become one; what is left at the end is none, which is told. */
static void group(bz_trace *t, bz_cut *c, uint32_t each)
{
    uint32_t rest = c->n % each, end = rest ? c->first[c->n / each * each] : c->end;
    if (rest)
        bz_trace_lack(
            t, BZ_NONE, BZ_COVERAGE_MISSING, BZ_LACKS_ITERATIONS_REST,
            "so many iterations leave a rest: the work repeats %u times, %u of them make one of %u iterations, and a "
            "rest of %u belongs to none",
            c->n, each, c->n / each, rest);
    for (uint32_t i = 0; i < c->n / each; i++)
        c->first[i] = c->first[i * each];
    c->n /= each;
    c->end = end;
}

/* `count`: how many iterations are wanted; 0: what fits best. */
static bool detect(bz_trace *t, bz_event_kind kind, uint32_t count)
{
    bz_arena arena = {0};
    bz_sequence s = bz_sequence_collect(t, kind, &arena);
    bz_work w = {.n = s.n};
    bz_cut *cut = NULL;
    int at = -1, other = -1, n = 0;
    uint32_t each = 1;
    bool sure = true;
    if (s.n >= 4) {
        read_symbols(t, &s, &w, &arena);
        read_host(t, &s, &w, &arena);
        bz_sequence_places(t, &s, &w, &arena);
        if (!count)
            bz_sequence_weights(t, &s, &w, &arena);
        n = bz_find_cuts(&w, &cut, &arena);
        at = bz_choose_cut(&w, &cut, &n, &sure, &other, &arena);
    }
    if (count)
        at = level_of(cut, n, count, &each);
    if (at >= 0) {
        if (each > 1)
            group(t, &cut[at], each);
        else
            bz_cut_begins(&w, &cut[at], &arena);
        if (!count && w.grows)
            bz_cut_prompt(&w, &cut[at], &arena);
        cut[at].first[cut[at].n] = cut[at].end;
        bz_sequence_windows(t, &s, cut[at].first, cut[at].n, &arena);
        if (s.beside)
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                           "iterations are those of one of %u threads that %s at the same time: %s of the others are "
                           "counted in them, too",
                           s.beside + 1, kind == BZ_EVENT_CALL ? "call libraries" : "launch on one device",
                           kind == BZ_EVENT_CALL ? "calls" : "kernels");
        if (!sure && !count)
            tell_other(t, &cut[at], other >= 0 ? &cut[other] : NULL);
    }
    bz_arena_free(&arena);
    return at >= 0;
}

/* Any bit of a number changes about half of those of its spread: sums of these tell multisets apart (SplitMix64). */
static uint64_t spread(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

/* Which calls that compute, and which kernels, an iteration consists of, in any order: a log's calls of no length begin together with the next. */
static uint64_t *compositions(const bz_trace *t)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_CALL, BZ_EVENT_KERNEL};
    uint64_t *hash = bz_zeroed(t->n_iterations, sizeof *hash);
    bz_cursor cursor = {0};
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        const bz_events *e = &t->event[KINDS[k]];
        const bz_asked asked = bz_asked_of(t, e);
        for (size_t i = 0; i < e->n; i++) {
            uint32_t iteration = bz_cursor_to(&cursor, t, bz_asked_when(&asked, i));
            if (iteration < t->n_iterations && (k || bz_call_works(t, i)))
                hash[iteration] += spread(KINDS[k] + (uint64_t)BZ_EVENT_KINDS * e->name[i]);
        }
    }
    return hash;
}

/* A program that traces or compiles its model first does other calls then, and never again: where at least half of all iterations,
 * the last ones, are alike, and none before is, those before are another program. The very last may be cut. A single one is a first
 * step, which its time judges. Returns how many. */
static uint32_t other_program(const bz_trace *t)
{
    uint32_t n = t->n_iterations, first = n - 1;
    uint64_t *made_of = compositions(t), last = made_of[n - 2];
    while (first && made_of[first - 1] == last)
        first--;
    bool again = !last || 2 * (n - first) < n;
    for (uint32_t i = 0; i < first && !again; i++)
        again = made_of[i] == last || made_of[i] == made_of[n - 1];
    free(made_of);
    return again || first < 2 ? 0 : first;
}

/* What another program did is warm-up. Of this one a first iteration that took longer than the typical one is, and those after it
 * that took longer still; where nothing has a duration (a log), the first is. */
static void tell_warm_up(bz_trace *t)
{
    uint32_t n = t->n_iterations;
    if (n < 2)
        return;
    uint32_t before = n > 2 ? other_program(t) : 0;
    for (uint32_t i = 0; i < before; i++)
        t->iteration[i].warm_up = true;
    int64_t *latency = bz_alloc(n, sizeof *latency);
    for (uint32_t i = before; i < n; i++)
        latency[i - before] = bz_iteration_latency(t, i);
    int64_t typical = n - before > 1 ? bz_median(latency + 1, n - before - 1) : 0;
    free(latency);
    for (uint32_t i = before; i + 1 < n; i++) {
        int64_t took = bz_iteration_latency(t, i);
        bool longer =
            typical > 0 && (double)took >= (double)typical * (i > before ? NEXT_IS_WARM_UP : FIRST_IS_WARM_UP);
        if (!longer && (i || bz_has_timeline(t)))
            break;
        t->iteration[i].warm_up = true;
    }
}

/* Other iterations than those which the runs of bz_profile_levels were measured by. */
static void forget_levels(bz_trace *t)
{
    for (uint32_t k = 0; k < t->n_levels; k++)
        t->level[k].n_iterations = 0;
    if (t->n_levels)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                       "the runs of the program were recorded with other iterations: latency is that of the run %s. "
                       "Name the range when recording: benanza profile --levels --iterations NAME",
                       bz_string(t, t->level[t->own_level].name));
}

static bool detect_any(bz_trace *t, uint32_t count)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_CALL, BZ_EVENT_KERNEL, BZ_EVENT_OP};
    t->origin = BZ_ITERATION_DETECTED;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (detect(t, KINDS[i], count))
            return true;
    return false;
}

int bz_iterations_check(const char *wanted, bz_error *err)
{
    char *end = NULL;
    double number = wanted ? strtod(wanted, &end) : 1;
    if (!wanted || *end || !strpbrk(wanted, "0123456789") ||
        (number >= 1 && strspn(wanted, "0123456789") == strlen(wanted)))
        return 0;
    return bz_fail(err, BZ_USAGE, "--iterations takes the name of ranges, or a whole number from 1 on, not '%.200s'",
                   wanted);
}

/* What a person asked for: ranges of a name, or so many iterations. */
static int find_wanted(bz_trace *t, const char *wanted, bz_error *err)
{
    char *end;
    unsigned long count = strtoul(wanted, &end, 10);
    forget_levels(t);
    t->origin = BZ_ITERATION_RANGE;
    if (bz_iterations_named(t, wanted))
        return 0;
    if (*wanted < '0' || *wanted > '9' || *end)
        return bz_fail(
            err, BZ_BAD_INPUT,
            "no range and no operator is named %.200s: no iteration is known. benanza profile tables --table "
            "ranges lists the names",
            wanted);
    if (count && count <= UINT32_MAX && detect_any(t, (uint32_t)count))
        return 0;
    bz_iteration span;
    if (count == 1 && bz_trace_span(t, &span)) {
        t->origin = BZ_ITERATION_RANGE;
        bz_trace_add_iteration(t, span.start, span.end);
        return 0;
    }
    return bz_fail(err, BZ_BAD_INPUT, "the recording does not repeat %.20s times: no iteration is known", wanted);
}

/* What was said is about iterations that are none. */
void bz_trace_settle(bz_trace *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (!bz_tells_iterations(t->coverage[i].lack))
            t->coverage[n++] = t->coverage[i];
    t->n_coverage = n;
}

bool bz_trace_recount(bz_trace *t, uint32_t count)
{
    if (!count || t->origin != BZ_ITERATION_DETECTED || t->by_updates || t->n_levels || count == t->n_iterations)
        return false;
    uint32_t before = t->n_iterations;
    bz_iteration *kept = bz_alloc((size_t)before + 1, sizeof *kept);
    memcpy(kept, t->iteration, before * sizeof *kept);
    t->n_iterations = 0;
    bool found = detect_any(t, count);
    if (found) {
        bz_trace_settle(t);
        tell_warm_up(t);
        bz_trace_find_phases(t);
        bz_trace_find_lag(t);
    } else {
        memcpy(t->iteration, kept, before * sizeof *kept);
        t->n_iterations = before;
    }
    free(kept);
    return found;
}

static void tell_ahead(bz_trace *t)
{
    bz_unit_text ahead;
    if (bz_trace_ahead(t))
        bz_trace_cover(
            t, BZ_NONE, BZ_COVERAGE_NOTE,
            "the host runs ahead of the device by %s (median), and the launches of much of its work are not on "
            "record: iterations are "
            "the device's own steps, by when it worked, and what the host does meanwhile is for later ones",
            bz_units_time(ahead, 1e-9 * (double)bz_trace_ahead(t)));
}

int bz_trace_find_iterations(bz_trace *t, const char *range_name, bz_error *err)
{
    int rc = 0;
    bz_trace_find_order(t);
    if (t->n_iterations && !range_name) { /* a file of ours brought them along, and what was told of them */
        t->iteration[t->n_iterations - 1].warm_up = false; /* warm-up of what? */
        return 0;
    }
    bz_trace_settle(t);
    t->n_iterations = 0;
    t->by_updates = false;
    uint32_t told = t->n_coverage;
    if (range_name) {
        rc = find_wanted(t, range_name, err);
        if (rc)
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING, "%s", err->text);
    } else if (!bz_iterations_marked(t)) {
        bool found = detect_any(t, 0);
        if (found && t->n_iterations > 1 && bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN) && bz_iterations_single(t))
            bz_trace_settle(t);
        if (!bz_iterations_by_updates(t) && !found)
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                           "no iteration was found: mark them with benanza_iteration_begin and "
                           "benanza_iteration_end, or "
                           "name a range with --iterations; --iterations 1 takes the whole recording as one");
    }
    if (t->origin == BZ_ITERATION_RANGE)
        bz_iterations_leave_rest(t);
    tell_warm_up(t);
    tell_ahead(t);
    for (uint32_t i = told; i < t->n_coverage; i++)
        if (t->coverage[i].lack == BZ_LACKS_OTHER)
            t->coverage[i].lack = BZ_LACKS_ITERATIONS;
    return rc;
}
