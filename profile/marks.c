/* Iterations that somebody named: marks of frameworks, and ranges whose names say that they are steps. */
#include "profile/sequence.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Ranges that are known to mark iterations, best first. A '#' at the end: a number follows. */
static const struct {
    const char *name;
    bz_iteration_origin origin;
} MARKS[] = {
    {"benanza_iteration", BZ_ITERATION_MARKED},
    {"ProfilerStep#", BZ_ITERATION_RANGE},                   /* PyTorch's schedule */
    {"ProfileStep#", BZ_ITERATION_RANGE},                    /* Paddle's */
    {"[pl][profile]run_training_batch", BZ_ITERATION_RANGE}, /* PyTorch Lightning */
    {"model_run", BZ_ITERATION_RANGE},                       /* ONNX Runtime */
    {"ExecutionContext::e*", BZ_ITERATION_RANGE},            /* TensorRT: enqueue, enqueueV3, execute */
    {"execute_*context_*_generation_*",
     BZ_ITERATION_RANGE},                  /* vLLM: sequences, and their tokens, of prompts and of answers */
    {"step[[]*bs=*]", BZ_ITERATION_RANGE}, /* SGLang */
};

/* What words in the name of a numbered range mean, in small letters; the first that fits counts. 0: a part of an iteration, or
 * many iterations. Else the greater, the more surely one iteration. */
static const struct {
    const char *words;
    int rank;
} WORDS[] = {
    {"layer block blk stage head attn attention mlp expert module encoder decoder optim epoch micro chunk shard rank "
     "stream worker thread device gpu bucket param conv linear norm backward load fetch copy warm phase fold",
     0},
    {"step iter batch token", 3},
    {"frame infer predict forward pass loop round tick", 2},
    {"rep request query sample prompt image run generat", 1},
};

static int rank_of(const char *template)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (bz_name_matches_any(WORDS[i].words, template))
            return WORDS[i].rank;
    return 0;
}

static bool named(const char *range, const char *mark)
{
    size_t n = strlen(mark);
    if (strchr(mark, '*'))
        return !fnmatch(mark, range, 0);
    return n && mark[n - 1] == '#' ? !strncmp(range, mark, n) : !strcmp(range, mark);
}

bool bz_is_mark(const char *name)
{
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        if (named(name, MARKS[i].name))
            return true;
    return false;
}

/* Copies of ranges to the device's side are times of the device, no iterations. */
static bool on_host(const bz_trace *t, const bz_events *e, size_t i)
{
    return !t->lane[e->lane[i]].device && e->end[i] > e->start[i];
}

/* Which names match: each is looked at once. */
static bool *matching(const bz_trace *t, const bz_events *e, const char *mark)
{
    enum { UNKNOWN, NO, YES };
    uint32_t n = bz_strings(t);
    BZ_FREED unsigned char *known = bz_alloc(n, 1);
    bool *match = bz_alloc(n, sizeof *match);
    memset(known, UNKNOWN, n);
    memset(match, 0, n * sizeof *match);
    for (size_t i = 0; i < e->n; i++)
        if (known[e->name[i]] == UNKNOWN) {
            match[e->name[i]] = named(bz_string(t, e->name[i]), mark);
            known[e->name[i]] = NO;
        }
    return match;
}

/* Threads that each mark their own steps at the same time would cut each other's: then the one with most of them counts. BZ_NONE:
 * they do not overlap. */
static uint32_t only_lane(const bz_trace *t, const bz_events *e, const bool *match)
{
    BZ_FREED size_t *count = bz_alloc(t->n_lanes + 1, sizeof *count);
    int64_t end = INT64_MIN;
    uint32_t last = BZ_NONE, most = BZ_NONE;
    bool overlap = false;
    memset(count, 0, (t->n_lanes + 1) * sizeof *count);
    for (size_t i = 0; i < e->n; i++) {
        if (!match[e->name[i]] || !on_host(t, e, i))
            continue;
        overlap |= e->start[i] < end && e->lane[i] != last;
        if (e->end[i] > end) {
            end = e->end[i];
            last = e->lane[i];
        }
        count[e->lane[i]]++;
    }
    for (uint32_t k = 0; k < t->n_lanes; k++)
        if (count[k] && (most == BZ_NONE || count[k] > count[most]))
            most = k;
    return overlap ? most : BZ_NONE;
}

static bool from_matching(bz_trace *t, const bz_events *e, const bool *match)
{
    uint32_t lane = only_lane(t, e, match);
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < e->n; i++)
        if (match[e->name[i]] && on_host(t, e, i) && e->start[i] >= last && (lane == BZ_NONE || e->lane[i] == lane)) {
            bz_trace_add_iteration(t, e->start[i], e->end[i]);
            last = e->end[i];
        }
    return t->n_iterations > 0;
}

static bool from_events(bz_trace *t, bz_event_kind kind, const char *mark)
{
    bool *match = matching(t, &t->event[kind], mark), found = from_matching(t, &t->event[kind], match);
    free(match);
    return found;
}

/* Old PyTorch tells what a person named as it tells its operators, its schedule's steps among them. */
bool bz_iterations_named(bz_trace *t, const char *pattern)
{
    return from_events(t, BZ_EVENT_RANGE, pattern) || from_events(t, BZ_EVENT_OP, pattern);
}

/* "Step 12 (train)" is "step # (train)". False where there is no number. */
static bool template_of(const char *name, char *out, size_t size)
{
    size_t n = 0;
    bool digits = false, any = false;
    for (; *name && n + 1 < size; name++) {
        bool digit = isdigit((unsigned char)*name);
        if (!digit || !digits)
            out[n++] = digit ? '#' : (char)tolower((unsigned char)*name);
        any |= digit;
        digits = digit;
    }
    out[n] = 0;
    return any;
}

/* Python's functions and modules, as PyTorch names them: "torch/utils/_pytree.py(1302): tree_iter", "<built-in function iter>",
 * "nn.Module: TokenEmbedding_0". Their numbers are lines, addresses and instances, and nobody marked a step by them. */
static bool is_code(const char *name)
{
    const char *line = strstr(name, ".py(");
    return (line && isdigit((unsigned char)line[4]) && strstr(line, "): ")) || !strncmp(name, "<built-in ", 10) ||
           !strncmp(name, "nn.Module: ", 11);
}

/* Ranges whose names differ in numbers alone. */
typedef struct {
    uint32_t name;   /* one of them */
    int rank;        /* of its words */
    size_t n, holds; /* how many; how much work was asked for in them */
} family;

typedef struct {
    uint32_t *of; /* [strings] family of a name, or BZ_NONE */
    family *family;
    uint32_t n;
} families;

static families find_families(const bz_trace *t, bz_arena *arena)
{
    enum { LONGEST = 200 };
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    families f = {.of = BZ_NEW(arena, uint32_t, bz_strings(t))};
    bool *known = BZ_NEW(arena, bool, bz_strings(t));
    BZ_SCOPED(bz_map) ids = {0};
    memset(f.of, 0xff, bz_strings(t) * sizeof *f.of);
    for (size_t i = 0; i < e->n; i++) {
        char template[LONGEST];
        uint32_t name = e->name[i];
        if (!on_host(t, e, i))
            continue;
        if (!known[name] && !is_code(bz_string(t, name)) &&
            template_of(bz_string(t, name), template, sizeof template)) {
            size_t length = strlen(template);
            f.of[name] = bz_map_get(&ids, template, length);
            if (f.of[name] == BZ_MAP_NONE) {
                f.of[name] = bz_map_add(&ids, bz_arena_dup(arena, template, length + 1), length, f.n);
                BZ_ARENA_ADD(arena, f.family, f.n) = (family){.name = name, .rank = rank_of(template)};
            }
        }
        known[name] = true;
        if (f.of[name] != BZ_NONE)
            f.family[f.of[name]].n++;
    }
    return f;
}

static bool *members(const bz_trace *t, const families *f, uint32_t wanted)
{
    bool *match = bz_alloc(bz_strings(t), sizeof *match);
    for (uint32_t i = 0; i < bz_strings(t); i++)
        match[i] = f->of[i] == wanted;
    return match;
}

/* Work, by what tells most surely. */
static const bz_event_kind WORK[] = {BZ_EVENT_KERNEL, BZ_EVENT_CALL, BZ_EVENT_OP};
enum { N_WORK = sizeof WORK / sizeof *WORK };

/* The share of the work between the first and the last iteration that was asked for in one; 0 where all work is elsewhere. */
static double held(const bz_trace *t)
{
    size_t all = 0, in = 0, events = 0;
    int64_t from = t->iteration[0].start, to = t->iteration[t->n_iterations - 1].end;
    for (size_t k = 0; k < N_WORK && !all; k++)
        for (size_t i = 0; i < t->event[WORK[k]].n; i++) {
            int64_t at = bz_asked_at(t, &t->event[WORK[k]], i);
            events++;
            if (at < from || at >= to)
                continue;
            all++;
            in += bz_event_iteration(t, WORK[k], i) != BZ_NONE;
        }
    return all ? (double)in / (double)all : !events;
}

/* A profiler's schedule opens the mark of the next step when the last one ends, and the recording ends in it. What a program marks
 * by itself it ends by itself. Where another one holds as little, iterations are of several sorts, as an evaluation behind trainings. */
void bz_iterations_leave_rest(bz_trace *t)
{
    enum { LEAST = 4 }; /* so much less than others: a mark makes an operator or two of its own */
    uint32_t n = t->n_iterations;
    int64_t *holds = bz_zeroed((size_t)n + 1, sizeof *holds), typical = 0;
    for (size_t k = 0; k < N_WORK && !typical && n > 1; k++) {
        memset(holds, 0, n * sizeof *holds);
        for (size_t i = 0; i < t->event[WORK[k]].n; i++) {
            uint32_t in = bz_event_iteration(t, WORK[k], i);
            holds[in < n ? in : n]++;
        }
        int64_t last = holds[n - 1];
        bool alone = true;
        for (uint32_t i = 0; i + 1 < n; i++)
            alone &= !holds[i] || holds[i] > 2 * last;
        typical = bz_median(holds, n - 1);
        if (LEAST * last >= typical || !alone)
            continue;
        t->n_iterations--;
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "the last mark of an iteration holds %lld of the %lld events that the others do: the recording "
                       "ended in it, and it counts as none",
                       (long long)last, (long long)typical);
    }
    free(holds);
}

/* Of the families whose words say that they are steps, the one that says so most surely and holds the work. */
static bool by_number(bz_trace *t)
{
    BZ_SCOPED(bz_arena) arena = {0};
    families f = find_families(t, &arena);
    uint32_t best = BZ_NONE;
    double best_held = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        const family *k = &f.family[i], *b = best == BZ_NONE ? NULL : &f.family[best];
        if (!k->rank || k->n < 2 || (b && k->rank < b->rank))
            continue;
        BZ_FREED bool *match = members(t, &f, i);
        t->n_iterations = 0;
        double share = from_matching(t, &t->event[BZ_EVENT_RANGE], match) ? held(t) : 0;
        if (t->n_iterations >= 2 && share >= 0.7 && (!b || k->rank > b->rank || share > best_held)) {
            best = i;
            best_held = share;
        }
    }
    t->n_iterations = 0;
    if (best != BZ_NONE) {
        BZ_FREED bool *match = members(t, &f, best);
        from_matching(t, &t->event[BZ_EVENT_RANGE], match);
    }
    return best != BZ_NONE;
}

/* The share of all work that was asked for in an iteration. */
static double held_of_all(const bz_trace *t)
{
    size_t all = 0, in = 0;
    for (int kind = BZ_EVENT_OP; kind <= BZ_EVENT_KERNEL; kind++)
        for (size_t i = 0; kind != BZ_EVENT_API && i < t->event[kind].n; i++) {
            all++;
            in += bz_event_iteration(t, (bz_event_kind)kind, i) != BZ_NONE;
        }
    return all ? (double)in / (double)all : 0;
}

/* Names without a number that say as surely that they are steps: how often each is there. The others have 0, and so have all where there are
 * more than a person would give: each is looked at in all events. [strings] */
static size_t *count_plain(const bz_trace *t)
{
    enum { LONGEST = 200, SURELY = 2, MOST = 100 };
    size_t names = 0;
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    size_t *count = bz_zeroed(bz_strings(t), sizeof *count);
    for (size_t i = 0; i < e->n; i++)
        count[e->name[i]] += on_host(t, e, i);
    for (uint32_t name = 0; name < bz_strings(t); name++) {
        char text[LONGEST]; /* in small letters */
        if (!count[name])
            continue;
        if (is_code(bz_string(t, name)) || template_of(bz_string(t, name), text, sizeof text) || rank_of(text) < SURELY)
            count[name] = 0;
        names += count[name] > 0;
    }
    if (names > MOST)
        memset(count, 0, bz_strings(t) * sizeof *count);
    return count;
}

/* "train_step", again and again, which nothing numbers: it holds nearly all work between its first and its last one, and most of all. */
static bool by_name(bz_trace *t)
{
    BZ_FREED size_t *count = count_plain(t);
    BZ_FREED bool *match = bz_zeroed(bz_strings(t), sizeof *match);
    for (uint32_t name = 0; name < bz_strings(t); name++) {
        if (count[name] < 2)
            continue;
        match[name] = true;
        if (from_matching(t, &t->event[BZ_EVENT_RANGE], match) && t->n_iterations >= 2 && held(t) >= 0.9 &&
            held_of_all(t) >= 0.5)
            return true;
        match[name] = false;
        t->n_iterations = 0;
    }
    return false;
}

/* A range around a loop is no pass. */
static bool is_pass(const char *name)
{
    char text[200];
    template_of(name, text, sizeof text);
    return bz_name_matches_any("infer predict forward step", text) && !bz_name_matches_any("loop steps", text);
}

bool bz_iterations_single(bz_trace *t)
{
    BZ_FREED size_t *count = count_plain(t);
    BZ_FREED bool *match = bz_zeroed(bz_strings(t), sizeof *match);
    bz_iteration *kept = t->iteration; /* a list that begins anew has room for few */
    uint32_t before = t->n_iterations;
    t->iteration = NULL;
    for (uint32_t name = 0; name < bz_strings(t); name++) {
        if (count[name] != 1 || !is_pass(bz_string(t, name)))
            continue;
        match[name] = true;
        t->n_iterations = 0;
        if (from_matching(t, &t->event[BZ_EVENT_RANGE], match) && held_of_all(t) >= 0.9) {
            t->origin = BZ_ITERATION_RANGE;
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                           "the range %.100s holds the work, and counts as an iteration; what repeats in it, %u times, "
                           "may be layers: --iterations %u takes those",
                           bz_string(t, name), before, before);
            free(kept);
            return true;
        }
        match[name] = false;
    }
    free(t->iteration);
    t->iteration = kept;
    t->n_iterations = before;
    return false;
}

/* Calls of modules by a thread that no other module made: rows of ranges. */
static size_t outer_modules(const bz_trace *t, const bool *module, uint32_t *row)
{
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    uint32_t lane = only_lane(t, e, module);
    int64_t end = INT64_MIN;
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!module[e->name[i]] || !on_host(t, e, i) || e->start[i] < end || (lane != BZ_NONE && e->lane[i] != lane))
            continue;
        end = e->end[i];
        row[n++] = (uint32_t)i;
    }
    return n;
}

/* PyTorch tells each call of a module by its class and its number in it. What no other module calls is a network; or its layers, where a
 * program calls them by itself: each is called once in an iteration, or some number of times. */
static bool by_modules(bz_trace *t)
{
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    BZ_FREED bool *module = matching(t, e, "nn.Module: *");
    BZ_FREED uint32_t *row = bz_alloc(e->n + 1, sizeof *row), *count = bz_zeroed(bz_strings(t), sizeof *count);
    size_t n = outer_modules(t, module, row);
    bool even = n > 0;
    for (size_t i = 0; i < n; i++)
        count[e->name[row[i]]]++;
    for (size_t i = 0; i < n; i++) /* what is called first is called in each */
        even &= count[e->name[row[i]]] % count[e->name[row[0]]] == 0;
    for (size_t i = 0; i < n && even;) {
        size_t from = i++;
        while (i < n && e->name[row[i]] != e->name[row[0]])
            i++;
        bz_trace_add_iteration(t, e->start[row[from]], e->end[row[i - 1]]);
    }
    if (even && (t->n_iterations > 1 ? held(t) >= 0.7 : held_of_all(t) >= 0.5))
        return true;
    t->n_iterations = 0; /* a training: most of it is behind them */
    return false;
}

bool bz_iterations_marked(bz_trace *t)
{
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        if (bz_iterations_named(t, MARKS[i].name)) {
            t->origin = MARKS[i].origin;
            return true;
        }
    t->origin = BZ_ITERATION_RANGE;
    return by_number(t) || by_modules(t) || by_name(t);
}
