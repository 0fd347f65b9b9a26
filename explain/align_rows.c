/* The rows of an alignment: what was found of each step and of each layer, and what is told of those that nothing did. */
#include "explain/align_making.h"

#include <math.h>
#include <string.h>

static bz_aligned *add_row(bz_align_making *m, bz_aligned_kind kind)
{
    bz_alignment *out = m->out;
    BZ_ARENA_ROOM(m->arena, out->row, out->n);
    bz_aligned *row = &out->row[out->n++];
    *row = (bz_aligned){.kind = kind, .at = SIZE_MAX, .op = BZ_NONE, .seconds = NAN, .bound = NAN};
    return row;
}

static void set_layers(bz_align_making *m, bz_aligned *row, const int *asks, int n)
{
    int *layer = BZ_NEW(m->arena, int, n);
    row->bound = n ? 0 : NAN;
    for (int i = 0; i < n; i++) {
        layer[i] = m->ask[asks[i]].layer;
        row->bound += m->bound->layer[layer[i]].price.seconds;
    }
    row->layer = layer;
    row->n_layers = n;
}

static void set_call(bz_align_making *m, bz_aligned *row, const bz_align_step *step)
{
    const bz_events *c = &m->trace->event[BZ_EVENT_CALL];
    row->call = step->name;
    if (step->kind == BZ_ALIGN_CALL) {
        row->at = step->at;
        row->variant = c->variant[step->at] ? bz_string(m->trace, c->variant[step->at]) : NULL;
    }
    if (step->kind == BZ_ALIGN_OPERATOR)
        row->op = (uint32_t)step->at;
    row->problem = step->text;
    uint32_t caller = step->stack ? bz_stack_caller(m->trace, step->stack) : 0;
    row->where = caller ? bz_string(m->trace, caller) : NULL;
    row->seconds = m->steps.timeline ? bz_tick(1e-9 * (double)step->time) : NAN;
}

/* Does the call's own work differ from that of the layer beside it? One of several calls that did a layer differs anyway. */
static void set_changes(bz_align_making *m, bz_aligned *row, const bz_align_step *step)
{
    const bz_align_atom *found = &m->steps.atom[step->first];
    int to = m->to[step->first];
    if (to < 0 || !found->id || !m->atom[to].id || row->kind == BZ_ALIGNED_SPLIT ||
        (m->atom[to].kind == found->kind && bz_align_same(&m->atom[to], found)))
        return;
    if (step->problem && m->atom[to].kind != m->words.batchnorm)
        row->n_changes =
            bz_align_changes(&m->bound->layer[m->ask[m->atom[to].owner].layer], step->problem, m->arena, &row->change);
    if (row->n_changes)
        row->kind = BZ_ALIGNED_CHANGED;
}

/* A normalization that was folded into a convolution leaves a bias behind. Where the convolution has one of its own, a call with a bias and
 * nothing behind it is both: the folded one, and the convolution alone whose normalization the framework computes unseen. */
static bool is_doubtful(const bz_align_making *m, const bz_aligned *row)
{
    const bz_layer *first = row->n_layers ? m->bound->layer[row->layer[0]].layer : NULL;
    return row->kind == BZ_ALIGNED_FUSED && row->n_layers == 2 && first->n_in > 2 && first->in[2].rank == 1 &&
           !strcmp(m->bound->layer[row->layer[1]].layer->kind, "batchnorm");
}

static void put_step(bz_align_making *m, int i)
{
    bz_align_step *step = &m->steps.step[i];
    int n = 0;
    if (!step->n)
        return;
    int *asks = BZ_NEW(m->arena, int, step->n + (m->written[i] ? m->written[i]->n : 0));
    for (int k = step->first; k < step->first + step->n; k++) {
        int owner = m->to[k] >= 0 ? m->atom[m->to[k]].owner : -1;
        if (owner >= 0 && (!n || asks[n - 1] != owner))
            asks[n++] = owner;
    }
    for (int k = 0; m->written[i] && k < m->written[i]->n; k++)
        asks[n++] = m->named[m->written[i]->layer[k]];
    bz_aligned *row = add_row(m, !n                          ? BZ_ALIGNED_EXTRA
                                 : n > 1                     ? BZ_ALIGNED_FUSED
                                 : m->ask[asks[0]].steps > 1 ? BZ_ALIGNED_SPLIT
                                                             : BZ_ALIGNED_SAME);
    step->asked = n > 0;
    row->moved = m->moved[i];
    set_layers(m, row, asks, n);
    row->doubtful = is_doubtful(m, row);
    set_changes(m, row, step);
}

/* Why layers of the main graph need not run; NULL: nobody can tell. Where operators were recorded none did what is missing; what a library's log lacks the
 * framework may have done, and only a bound without such layers tells. */
static const bz_spare *spares_of(const bz_align_making *m)
{
    bz_layers *layers = m->bound->layers;
    bz_spares found = {0};
    bool graph = layers && layers->model && layers->model->graph && m->trace->event[BZ_EVENT_OP].n;
    if (!m->bound->fused.spare && graph)
        bz_spares_find(layers, &found);
    return m->bound->fused.spare ? m->bound->fused.spare : found.why;
}

/* Views that a layer is, where a program looks at the same memory in another way: a part, or another order of axes. 0: it is more than that. */
static int views_of(const bz_layer *l)
{
    if (!strcmp(l->kind, "gather"))
        return l->n_in == 2 && l->in_constant[1] && bz_type_elements(&l->in[1]) == 1;
    return !strcmp(l->kind, "split") ? l->n_out : bz_has_word("transpose slice expand", l->kind);
}

/* Operators of the iteration that make a view, but for those around another one, as a split is around its slices; by row of the rules. */
static void count_views(const bz_align_making *m, int *count)
{
    const bz_events *o = &m->trace->event[BZ_EVENT_OP];
    bool *around = BZ_NEW(m->arena, bool, o->n);
    for (size_t i = o->n; i-- > 0;) {
        int row = bz_align_in(&m->steps, BZ_EVENT_OP, i) ? bz_align_view_row(bz_string(m->trace, o->name[i])) : -1;
        if (row < 0)
            continue;
        count[row] += !around[i];
        if (o->op[i] < o->n && bz_align_view_row(bz_string(m->trace, o->name[o->op[i]])) == row)
            around[o->op[i]] = true;
    }
}

/* What no step did, and need not run; what an equal layer, which need not run, was done in place of; or what the program has as a view. */
void bz_align_find_spared(bz_align_making *m)
{
    int *missing = BZ_NEW(m->arena, int, m->n_asks), n = 0, views[BZ_ALIGN_VIEWS] = {0};
    const bz_spare *why = spares_of(m);
    m->spared = BZ_NEW(m->arena, bool, m->n_asks);
    count_views(m, views);
    for (int i = 0; i < m->n_asks; i++) {
        const bz_bound_layer *l = &m->bound->layer[m->ask[i].layer];
        int needs = views_of(l->layer), row = needs ? bz_align_view_of(l->layer->kind) : -1;
        if (m->ask[i].steps)
            continue;
        m->spared[i] = why && bz_align_is_of_graph(m, l) && why[l->node];
        if (!m->spared[i] && row >= 0 && views[row] >= needs) {
            views[row] -= needs;
            m->spared[i] = true;
        }
        if (!m->spared[i])
            missing[n++] = i;
    }
    for (int i = 0; i < m->n_asks && n; i++) {
        const bz_bound_layer *l = &m->bound->layer[m->ask[i].layer];
        bool stands_for = m->ask[i].steps && why && bz_align_is_of_graph(m, l) && why[l->node] == BZ_REPEATED;
        for (int k = 0; stands_for && k < n; k++)
            if (!strcmp(m->bound->layer[m->ask[missing[k]].layer].layer->key, l->layer->key)) {
                m->spared[missing[k]] = true;
                missing[k] = missing[--n];
                break;
            }
    }
}

/* Whether one of them is really missing, and not spared. */
static bool put_missing(bz_align_making *m, int *next, int until)
{
    bool missing = false;
    for (; *next < until; ++*next)
        if (!m->ask[*next].steps) {
            set_layers(m, add_row(m, m->spared[*next] ? BZ_ALIGNED_SPARED : BZ_ALIGNED_MISSING), next, 1);
            missing |= !m->spared[*next];
        }
    return missing;
}

static bool in_recurrent(const bz_align_making *m, int step)
{
    const bz_align_step *s = &m->steps.step[step];
    return s->n && m->to[s->first] >= 0 && m->ask[m->atom[m->to[s->first]].owner].by_parts;
}

/* The calls in their order; what is missing comes before the next call of a layer behind it. */
void bz_align_put_rows(bz_align_making *m, bool *between)
{
    int next = 0, from = 0;
    for (int i = 0; i < m->steps.n; i++) {
        const bz_align_step *step = &m->steps.step[i];
        int first = -1;
        for (int k = step->first; k < step->first + step->n && first < 0 && !m->moved[i]; k++)
            first = m->to[k] >= 0 ? m->atom[m->to[k]].owner : -1;
        if (m->written[i])
            first = m->named[m->written[i]->layer[0]];
        if (first >= 0) {
            bool missing = put_missing(m, &next, first);
            for (int at = from; at <= i && missing; at++)
                between[at] = true;
            from = i + 1;
        }
        between[i] |= in_recurrent(m, i) && i && in_recurrent(m, i - 1);
        put_step(m, i);
    }
    bool missing = put_missing(m, &next, m->n_asks);
    for (int at = from; at <= m->steps.n && missing; at++)
        between[at] = true;
}

/* "53 batchnorm, 49 relu": what is missing, by kind in the order of the model; and what recurrent layers have besides products. */
const char *bz_align_missing_kinds(const bz_align_making *m)
{
    enum { KINDS = 6 };
    const char *kind[KINDS];
    int count[KINDS], n = 0, recurrent = 0;
    bool more = false;
    bz_buf text = {0};
    for (int i = 0; i < m->n_asks; i++) {
        recurrent += m->ask[i].by_parts;
        const char *mine = m->bound->layer[m->ask[i].layer].layer->kind;
        int k = 0;
        if (m->ask[i].steps || m->spared[i])
            continue;
        while (k < n && strcmp(kind[k], mine) != 0)
            k++;
        more |= k == KINDS;
        if (k == n && n < KINDS)
            kind[n] = mine, count[n++] = 0;
        if (k < KINDS)
            count[k]++;
    }
    for (int k = 0; k < n; k++)
        bz_buf_printf(&text, "%s%d %s", k ? ", " : "", count[k], kind[k]);
    bz_buf_puts(&text, more ? ", …" : "");
    if (recurrent)
        bz_buf_printf(&text, "%sgates of %d recurrent layers", n ? ", and " : "", recurrent);
    return bz_buf_keep(&text, m->arena);
}

const char *bz_aligned_name(bz_aligned_kind kind)
{
    static const char *const NAMES[] = {"same", "changed", "fused", "split", "missing", "spared", "extra"};
    return NAMES[kind];
}

void bz_align_finish_rows(bz_align_making *m)
{
    int row = 0;
    for (int i = 0; i < m->steps.n; i++) {
        if (!m->steps.step[i].n)
            continue;
        while (m->out->row[row].kind == BZ_ALIGNED_MISSING || m->out->row[row].kind == BZ_ALIGNED_SPARED)
            row++;
        set_call(m, &m->out->row[row++], &m->steps.step[i]);
        m->out->made++;
    }
    for (int i = 0; i < m->out->n; i++) {
        m->out->count[m->out->row[i].kind]++;
        m->out->moved += m->out->row[i].moved;
    }
}
