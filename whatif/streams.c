/* Parallel modules on streams of their own: the ways between a fork and its join of a model's graph run beside each other. The
 * model's file says which these are; library calls of the recording are found in it by what they compute, and what runs behind a call goes with
 * it. Kernels at once share the device: together they take at least what they fill of it. */
#include "whatif/constants.h"
#include "whatif/records.h"
#include "whatif/room.h"

#include "generator/generator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LAYER = -1, MOST_CALLS = 4096, STREAMS = 16 };

typedef struct {
    bz_flow *flow;
    bz_whatif_asked *asked;
    bz_whatif_room room;
    bz_model *model;
    bz_layers *layers;
    const bz_dag *dag;
    uint32_t lane, beside[STREAMS];        /* of the kernels; of the other streams, BZ_NONE: not made yet */
    int *layer;                            /* [tasks]: of the model; NO_LAYER */
    int *way;                              /* [layers]: number of the way within its module; NO_LAYER: none */
    int matched, products, modules, moved; /* of the model's products, how many were found */
    bool rough;                            /* some kernel does not tell how much of the device it fills */
} streams;

/* What is computed, without type and what is taken along; NULL for what is too common to find a place by. */
static const char *plain(const bz_problem *p, bz_arena *arena)
{
    bz_problem bare = *p;
    if (!bz_problem_has(p, BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW))
        return NULL;
    memset(bare.post, 0, sizeof bare.post);
    bare.dtype = bare.dtype_w = bare.dtype_y = BZ_F32;
    return bz_problem_text(&bare, arena);
}

typedef struct {
    const char *text, *inside; /* inside: with the padding that the program did itself; NULL */
    uint32_t at;               /* first task, or layer */
    bool product;
} place;

static int layer_places(const streams *s, place **out)
{
    bz_arena *arena = s->asked->arena;
    int n = 0;
    *out = BZ_NEW(arena, place, (size_t)s->layers->n + 1);
    for (int i = 0; i < s->layers->n && n < MOST_CALLS; i++) {
        bz_lowering low;
        bz_lower(&s->layers->layer[i], BZ_UNDEFINED, arena, &low);
        for (int a = 0; a < low.n; a++) {
            const bz_alternative *way = &low.alternative[a];
            const char *text = way->n == 1 && !way->modelled ? plain(way->problem, arena) : NULL;
            if (!text)
                continue;
            (*out)[n++] = (place){text, NULL, (uint32_t)i, bz_problem_has(way->problem, BZ_TRAIT_PRODUCT)};
            break;
        }
    }
    return n;
}

static int call_places(const streams *s, place **out)
{
    const bz_trace *t = s->asked->trace;
    bz_arena *arena = s->asked->arena;
    uint32_t before = BZ_NONE;
    int n = 0;
    *out = BZ_NEW(arena, place, MOST_CALLS);
    for (uint32_t i = s->flow->lane[s->lane].first; i != BZ_NONE && n < MOST_CALLS; i = s->flow->task[i].next) {
        uint32_t call = s->flow->task[i].call;
        if (call == before || call >= t->event[BZ_EVENT_CALL].n)
            continue;
        before = call;
        const bz_call *c = bz_call_of(t, call);
        const char *text = c->problem ? plain(c->problem, arena) : NULL;
        bz_problem inside;
        if (text)
            (*out)[n++] = (place){text, bz_call_unpad(c->problem, &inside) ? plain(&inside, arena) : NULL, i, false};
    }
    return n;
}

static bool alike(const place *call, const place *layer)
{
    return !strcmp(call->text, layer->text) || (call->inside && !strcmp(call->inside, layer->text));
}

/* The longest sequence that both have in this order. */
static void match(streams *s)
{
    place *call, *layer;
    int n = call_places(s, &call), m = layer_places(s, &layer);
    BZ_FREED uint16_t *best = bz_zeroed(((size_t)n + 1) * ((size_t)m + 1), sizeof *best);
    size_t row = (size_t)m + 1;
    for (int i = n - 1; i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            uint16_t skip = best[(size_t)(i + 1) * row + (size_t)k], over = best[(size_t)i * row + (size_t)k + 1];
            uint16_t both = (uint16_t)(best[(size_t)(i + 1) * row + (size_t)k + 1] + 1);
            skip = skip > over ? skip : over;
            best[(size_t)i * row + (size_t)k] = alike(&call[i], &layer[k]) && both > skip ? both : skip;
        }
    for (int k = 0; k < m; k++)
        s->products += layer[k].product;
    for (int i = 0, k = 0; i < n && k < m;) {
        uint16_t now = best[(size_t)i * row + (size_t)k];
        if (alike(&call[i], &layer[k]) && now == best[(size_t)(i + 1) * row + (size_t)k + 1] + 1) {
            s->matched += layer[k].product;
            s->layer[call[i++].at] = (int)layer[k++].at;
        } else if (now == best[(size_t)(i + 1) * row + (size_t)k]) {
            i++;
        } else {
            k++;
        }
    }
}

/* What runs behind a call belongs to it, up to what joins the ways again. */
static void spread(streams *s)
{
    int now = NO_LAYER;
    for (uint32_t i = s->flow->lane[s->lane].first; i != BZ_NONE; i = s->flow->task[i].next) {
        const bz_task *task = &s->flow->task[i];
        const bz_kernel *k = task->kind == BZ_TASK_KERNEL ? bz_whatif_kernel(s->asked, task) : NULL;
        const char *does = k ? k->layer : NULL;
        if (s->layer[i] != NO_LAYER)
            now = s->layer[i];
        else if (does && (!strcmp(does, "concat") || !strcmp(does, "add")))
            now = NO_LAYER;
        s->layer[i] = now;
    }
}

static int root(const int *way, int i)
{
    while (way[i] != i)
        i = way[i];
    return i;
}

/* Numbers the ways of a module: layers of one way lead to each other. */
static void find_ways(streams *s, const bz_module *m)
{
    for (int i = m->begin; i < m->end; i++)
        s->way[i] = i;
    for (int i = m->begin; i < m->end; i++)
        for (int p = s->dag->first[i]; p < s->dag->first[i + 1]; p++)
            if (s->dag->pred[p] >= m->begin)
                s->way[root(s->way, i)] = root(s->way, s->dag->pred[p]);
    for (int i = m->begin; i < m->end; i++)
        s->way[i] = root(s->way, i);
}

static bool within(const streams *s, uint32_t task, const bz_module *m)
{
    return task != BZ_NONE && s->layer[task] >= m->begin && s->layer[task] < m->end;
}

/* What a kernel fills of the device, at most all. */
static double fills(streams *s, uint32_t task)
{
    double filled = bz_whatif_filled(&s->room, s->asked->trace, &s->flow->task[task]);
    s->rough |= !isfinite(filled);
    return filled < 1 ? filled : 1; /* NAN, too, is all */
}

typedef struct {
    int way[STREAMS * 4], n; /* in the order in which they begin */
    double alone[STREAMS], work;
} shares;

static int stream_of(const streams *s, const shares *h, uint32_t task)
{
    int most = (int)bz_whatif_number(s->asked, "streams");
    for (int k = 0; k < h->n; k++)
        if (h->way[k] == s->way[s->layer[task]])
            return k % most;
    return 0;
}

/* Which ways have work, and how long each stream would take by itself. */
static uint32_t look(streams *s, uint32_t first, const bz_module *m, shares *h)
{
    uint32_t i = first;
    *h = (shares){0};
    for (; within(s, i, m); i = s->flow->task[i].next) {
        int way = s->way[s->layer[i]], k = 0;
        while (k < h->n && h->way[k] != way)
            k++;
        if (k == h->n && h->n < STREAMS * 4)
            h->way[h->n++] = way;
        double time = (double)s->flow->task[i].duration;
        h->alone[stream_of(s, h, i)] += time;
        h->work += time * fills(s, i);
    }
    return i;
}

/* The host's part: an event is recorded on one stream, and another one waits for it. */
static void tell_host(streams *s, uint32_t before)
{
    uint32_t launch = bz_flow_launch_of(s->flow, before);
    if (launch != BZ_NONE)
        bz_flow_insert(s->flow, BZ_TASK_HOST, "event", launch, BZ_BEFORE,
                       (int64_t)(2000 * bz_whatif_number(s->asked, "event")), 0);
}

static void part(streams *s, uint32_t first, uint32_t join, const bz_module *m, const shares *h)
{
    uint32_t fork = s->flow->task[first].prev, last[STREAMS];
    double longest = 0, sum = 0, overlap = bz_whatif_number(s->asked, "overlap");
    memset(last, 0xff, sizeof last);
    for (int k = 0; k < STREAMS; k++) {
        longest = h->alone[k] > longest ? h->alone[k] : longest;
        sum += h->alone[k];
    }
    double best = h->work > longest ? h->work : longest; /* all of `sum` where nothing runs beside anything */
    double stretch = longest > 0 ? (overlap * best + (1 - overlap) * sum) / longest : 1;
    for (uint32_t i = first, next; i != join && within(s, i, m); i = next) {
        int to = stream_of(s, h, i);
        next = s->flow->task[i].next;
        bz_flow_scale(s->flow, i, stretch);
        if (!to)
            continue;
        if (s->beside[to] == BZ_NONE) {
            char name[32];
            snprintf(name, sizeof name, "stream beside %d", to);
            s->beside[to] = bz_flow_add_lane(s->flow, name, true, false);
        }
        bz_flow_move_to(s->flow, i, s->beside[to]);
        if (last[to] == BZ_NONE) {
            if (fork != BZ_NONE)
                bz_flow_depend(s->flow, fork, i, BZ_DEPENDS_STREAM, 0);
            tell_host(s, i);
        }
        last[to] = i;
        s->moved++;
    }
    for (int k = 1; k < STREAMS; k++)
        if (last[k] != BZ_NONE) {
            bz_flow_depend(s->flow, last[k], join, BZ_DEPENDS_STREAM, 0);
            tell_host(s, join);
        }
    s->modules++;
}

static void part_modules(streams *s)
{
    int end = 0;
    for (int k = 0; k < s->dag->n_modules; k++) { /* the outermost ones */
        const bz_module *m = &s->dag->modules[k];
        shares h;
        if (m->begin < end)
            continue;
        uint32_t first = s->flow->lane[s->lane].first;
        while (first != BZ_NONE && !within(s, first, m))
            first = s->flow->task[first].next;
        if (first == BZ_NONE)
            continue;
        find_ways(s, m);
        uint32_t join = look(s, first, m, &h);
        if (h.n < 2 || join == BZ_NONE)
            continue;
        end = m->end;
        part(s, first, join, m, &h);
    }
}

static uint32_t busiest(const bz_flow *f)
{
    uint32_t best = BZ_NONE;
    int64_t most = 0;
    for (uint32_t l = 0; l < f->n_lanes; l++) {
        int64_t busy = 0;
        for (uint32_t i = f->lane[l].first; f->lane[l].device && i != BZ_NONE; i = f->task[i].next)
            busy = bz_flow_sum(busy, f->task[i].duration);
        if (busy > most) {
            most = busy;
            best = l;
        }
    }
    return best;
}

static int load(streams *s)
{
    bz_error *err = s->asked->err;
    bz_infer_options options = {.batch = (int64_t)bz_whatif_number(s->asked, "batch")};
    if (bz_model_load(s->asked->text, &s->model, err) || bz_layers_infer(s->model, &options, &s->layers, err))
        return -1;
    s->dag = bz_dag_build(s->layers);
    s->way = bz_zeroed((size_t)s->layers->n + 1, sizeof *s->way);
    s->layer = bz_none((size_t)s->flow->n + 1, sizeof *s->layer); /* NO_LAYER */
    return 0;
}

static bool fits(const streams *s)
{
    return s->matched && s->matched >= MATCHED_LEAST * s->products;
}

static int answer(streams *s)
{
    bz_whatif_asked *asked = s->asked;
    if (!fits(s))
        return bz_whatif_because(asked,
                                 "of %d products of %s the recording has %d in this order: it is of another model, or "
                                 "without parameters of its calls",
                                 s->products, asked->text, s->matched);
    if (!s->moved)
        return bz_whatif_because(asked, "no two ways of %s can run beside each other", asked->text);
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, asked->text,
                     "%d parallel modules, found by %d products: %d kernels run on other streams", s->modules,
                     s->matched, s->moved);
    bz_whatif_assume_parameter(asked, "overlap",
                               "%.3g of what kernels beside each other could save: at most until the longest way is "
                               "done, or the blocks of all fill the device%s",
                               bz_whatif_number(asked, "overlap"),
                               s->rough ? "; kernels that do not tell fill it all" : "");
    bz_whatif_assume_parameter(asked, "event", "the host needs %.3g µs to record an event, and as much to wait for it",
                               bz_whatif_number(asked, "event"));
    return s->moved;
}

int bz_whatif_streams(bz_flow *flow, bz_whatif_asked *asked)
{
    streams s = {.flow = flow, .asked = asked, .lane = busiest(flow)};
    int changed;
    if (!asked->text)
        return bz_whatif_because(asked, "it needs the model: %s:file=MODEL.onnx", asked->row->name);
    if (s.lane == BZ_NONE)
        return bz_whatif_because(asked, "no work of a device is on record");
    memset(s.beside, 0xff, sizeof s.beside);
    bz_whatif_room_make(asked->trace, asked->arena, &s.room);
    changed = load(&s);
    if (!changed) {
        match(&s);
        spread(&s);
        if (fits(&s))
            part_modules(&s);
        changed = answer(&s);
    }
    free(s.way);
    free(s.layer);
    bz_layers_free(s.layers);
    bz_model_free(s.model);
    return changed;
}
