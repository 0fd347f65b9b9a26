/* Which layers of the way back have gradients, and how large they are. */
#include "whatif/gradients.h"

#include "base/whole.h"
#include "transfer/transfer.h"

#include <errno.h>
#include <stdlib.h>

int bz_gradients_link(bz_whatif_asked *asked, double bytes, bz_gradient_link *out)
{
    static const char *const WAYS[][2] = {{"peer", "from GPU to GPU"}, {"tcp", "by TCP to the machine itself"}};
    const bz_whatif_records *r = asked->records;
    *out = (bz_gradient_link){bz_whatif_number(asked, "gbps"), bz_whatif_number(asked, "latency")};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS && r && !bz_whatif_given(asked, "gbps"); i++) {
        bz_transfer_cost cost;
        if (bz_transfer_cost_of(r->db, r->system, WAYS[i][0], bytes, asked->arena, &cost, asked->err))
            return -1;
        if (!(cost.rate > 0))
            continue;
        out->gbps = 8e-9 * cost.rate;
        out->latency = bz_whatif_given(asked, "latency") || !(cost.start > 0) ? out->latency : 1e6 * cost.start;
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, r->name,
                         "%.3g MB %s: %.3g Gbit/s, and %.3g µs a message; a network between machines may be slower",
                         bytes / 1e6, WAYS[i][1], out->gbps, out->latency);
        break;
    }
    return 0;
}

int64_t bz_gradients_time(double bytes, double gbps)
{
    double ns = 8 * bytes / gbps;
    return ns < (double)BZ_FLOW_LONGEST ? (int64_t)(ns + 0.5) : BZ_FLOW_LONGEST;
}

static bool works(const bz_task *t, bz_phase phase)
{
    return !t->removed && t->phase == phase && (t->kind == BZ_TASK_KERNEL || t->kind == BZ_TASK_CALL);
}

void bz_gradients_back(const bz_flow *flow, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = INT64_MIN;
    for (uint32_t i = 0; i < flow->n; i++)
        if (works(&flow->task[i], BZ_PHASE_BACKWARD)) {
            int64_t at = flow->task[i].at;
            *begin = at < *begin ? at : *begin;
            *end = at > *end ? at : *end;
        }
}

uint32_t bz_gradients_update(const bz_flow *flow)
{
    uint32_t best = BZ_NONE;
    int64_t begin, end;
    bz_gradients_back(flow, &begin, &end);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i], *b = best == BZ_NONE ? NULL : &flow->task[best];
        bool device = bz_task_on_device((bz_task_kind)t->kind);
        if (t->removed || t->phase != BZ_PHASE_UPDATE || t->at <= end || (!device && t->kind != BZ_TASK_CALL))
            continue;
        bool better = !b || (device && b->kind == BZ_TASK_CALL);
        if (better || (t->at < b->at && device == bz_task_on_device((bz_task_kind)b->kind)))
            best = i;
    }
    return best;
}

static const char *name_of(const bz_flow *flow, const bz_task *t)
{
    return t->layer < flow->n_layers ? flow->layer[t->layer] : t->name;
}

/* Work of a phase in the order of the recording: device before host, where a recording has both. */
static uint32_t *work_of(const bz_flow *flow, bz_phase phase, uint32_t *n)
{
    uint32_t *list = bz_alloc((size_t)flow->n + 1, sizeof *list), kernels = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        kernels += works(&flow->task[i], phase) && flow->task[i].kind == BZ_TASK_KERNEL;
    *n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (works(&flow->task[i], phase) && (!kernels || flow->task[i].kind == BZ_TASK_KERNEL))
            list[(*n)++] = i;
    return list;
}

typedef struct {
    uint32_t *first, *last; /* tasks */
    uint32_t n;
} layers;

/* Layers of a phase as they begin; tasks of no layer are one each. */
static layers find_layers(const bz_flow *flow, bz_phase phase)
{
    uint32_t n, *work = work_of(flow, phase, &n), *known = bz_none((size_t)flow->n_layers + 1, sizeof *known);
    layers l = {bz_alloc((size_t)n + 1, sizeof *l.first), bz_alloc((size_t)n + 1, sizeof *l.last), 0};
    bz_flow_in_time(flow, work, n);
    for (uint32_t i = 0; i < n; i++) {
        const bz_task *t = &flow->task[work[i]];
        uint32_t *at = t->layer < flow->n_layers ? &known[t->layer] : NULL;
        if (at && *at != BZ_NONE) {
            l.last[*at] = work[i];
            continue;
        }
        if (at)
            *at = l.n;
        l.first[l.n] = l.last[l.n] = work[i];
        l.n++;
    }
    free(known);
    free(work);
    return l;
}

static void free_layers(layers *l)
{
    free(l->first);
    free(l->last);
}

/* The layer on the way forward with the same name, counted from the other end, since the way back turns the order; else the
 * one that lies as far from the output. */
static void find_forward(const bz_flow *flow, const layers *forward, const layers *back, uint32_t i, bz_gradient *g)
{
    uint32_t same = 0, of = forward->n;
    for (uint32_t k = 0; k < i; k++)
        same += !strcmp(name_of(flow, &flow->task[back->first[k]]), g->name);
    for (uint32_t k = forward->n; k-- > 0 && of == forward->n;)
        if (!strcmp(name_of(flow, &flow->task[forward->first[k]]), g->name) && !same--)
            of = k;
    if (of == forward->n && forward->n)
        of = (uint32_t)((uint64_t)(back->n - 1 - i) * forward->n / back->n);
    g->rank = forward->n ? of : back->n - 1 - i;
    g->forward = forward->n ? forward->first[of] : BZ_NONE;
}

enum { FILE_MOST = 1 << 22 };

/* Gives the line to the first layer of its name that has none. -1: the line is no such line. */
static int give(bz_gradient *list, int n, char *line, int *given)
{
    char *tab = strrchr(line, '\t'), *end;
    if (!tab)
        return -1;
    errno = 0;
    long long bytes = strtoll(tab + 1, &end, 10);
    if (end == tab + 1 || *end || errno || bytes < 0 || bytes > (1LL << 50))
        return -1;
    *tab = 0;
    for (int i = 0; i < n; i++)
        if (list[i].bytes < 0 && !strcmp(list[i].name, line)) {
            list[i].bytes = bytes;
            ++*given;
            break;
        }
    return 0;
}

static int read_bytes(bz_whatif_asked *asked, bz_gradient *list, int n)
{
    bz_error *err = asked->err;
    BZ_SCOPED(bz_buf) text = {0};
    int number = 0, given = 0;
    if (bz_whole_read(asked->text, FILE_MOST, "is no list of layers: it is longer than 4 MB", &text, err))
        return -1;
    for (int i = 0; i < n; i++)
        list[i].bytes = -1;
    for (char *line, *rest = text.data; (line = bz_whatif_line(&rest, &number));)
        if (give(list, n, line, &given))
            return bz_fail(err, BZ_BAD_INPUT, "%s:%d: wants a layer's name, a tab, and bytes", asked->text, number);
    for (int i = 0; i < n; i++)
        list[i].bytes = list[i].bytes < 0 ? 0 : list[i].bytes;
    if (!given)
        return bz_fail(err, BZ_BAD_INPUT, "%s: names none of the recording's layers, such as \"%s\"", asked->text,
                       list[0].name);
    bz_whatif_assume(asked, BZ_ASSUMED_GIVEN, asked->text, "gradients of %d layers", given);
    return 0;
}

int bz_gradients_layers(const bz_flow *flow, bz_whatif_asked *asked, bz_gradient **list)
{
    layers back = find_layers(flow, BZ_PHASE_BACKWARD), forward = find_layers(flow, BZ_PHASE_FORWARD);
    *list = BZ_NEW(asked->arena, bz_gradient, back.n + 1);
    for (uint32_t i = 0; i < back.n; i++) {
        bz_gradient *g = *list + i;
        *g = (bz_gradient){
            .name = name_of(flow, &flow->task[back.first[i]]), .first = back.first[i], .last = back.last[i]};
        find_forward(flow, &forward, &back, i, g);
    }
    free_layers(&forward);
    free_layers(&back);
    return back.n ? (int)back.n : bz_whatif_because(asked, "no task of a backward pass is known in this recording");
}

int bz_gradients_find(const bz_flow *flow, bz_whatif_asked *asked, bz_gradient **list)
{
    int n = bz_gradients_layers(flow, asked, list);
    if (n && asked->text)
        return read_bytes(asked, *list, n) ? -1 : n;
    double all = bz_whatif_number(asked, "mb") * 1e6;
    for (int i = 0; i < n; i++)
        (*list)[i].bytes = (int64_t)(all * (i + 1) / n) - (int64_t)(all * i / n);
    if (n)
        bz_whatif_assume_parameter(asked, "mb", "%.4g MB of gradients, spread evenly over %d layers", all / 1e6, n);
    return n;
}
