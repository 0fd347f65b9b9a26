/* What the layers ask for beside what a typical iteration did. */
#include "explain/align_making.h"
#include "explain/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer_atoms {
    bz_align_atom atom[BZ_ALIGN_ATOMS];
    int n;
} layer_atoms;

bool bz_align_is_of_graph(const bz_align_making *m, const bz_bound_layer *l)
{
    return m->bound->layers && l->layer == &m->bound->layers->layer[l->node];
}

/* A convolution of the way back. */
static bool leads_back(const bz_align_making *m, const bz_bound_layer *l)
{
    return bz_align_is_of_graph(m, l) && !strcmp(l->layer->kind, "conv") && m->bound->layers->phase &&
           m->bound->layers->phase[l->node] == BZ_TRAIN_BACKWARD;
}

static void add_ask(bz_align_making *m, int layer, const layer_atoms *of)
{
    BZ_ROOM(m->ask, m->n_asks);
    m->ask[m->n_asks] = (bz_align_ask){.layer = layer, .first = m->n_atoms, .n = of->n, .next = -1};
    for (int i = 0; i < of->n; i++) {
        BZ_ROOM(m->atom, m->n_atoms);
        m->atom[m->n_atoms] = of->atom[i];
        m->atom[m->n_atoms++].owner = m->n_asks;
    }
    const bz_bound_layer *l = &m->bound->layer[layer];
    /* Of a transposed convolution: frameworks have one operator for the gradients of both sorts. */
    if (leads_back(m, l))
        m->atom[m->ask[m->n_asks].first].own = bz_align_word(&m->words, "conv_data");
    if (!strcmp(l->layer->kind, "dropout_grad")) /* a product with what dropout kept */
        m->atom[m->ask[m->n_asks].first].own = bz_align_word(&m->words, "mul");
    m->out->expected += l->price.alternative ? l->price.alternative->n : 1;
    m->n_asks++;
}

/* Layers of one plan item have the same atoms. */
static void ask_for(bz_align_making *m)
{
    const bz_bound *b = m->bound;
    BZ_SCOPED(bz_map) known = {0};
    BZ_FREED layer_atoms *of = NULL;
    uint32_t n = 0, *number = BZ_NEW(m->arena, uint32_t, b->n);
    for (int i = 0; i < b->n; i++) {
        const bz_lowering *const *key = &b->layer[i].lowering;
        uint32_t at = bz_map_get(&known, key, sizeof *key);
        if (at == BZ_MAP_NONE) {
            BZ_ROOM(of, n);
            of[n].n = bz_align_layer_atoms(&m->words, &b->layer[i], of[n].atom);
            at = bz_map_add(&known, key, sizeof *key, n++);
        }
        number[i] = at;
    }
    for (int i = 0, end; i < b->n; i = end) {
        for (end = i + 1; end < b->n && b->layer[end].node == b->layer[i].node; end++)
            ;
        for (int run = 0; run < b->layer[i].times && m->n_atoms < MOST_EXPECTED; run++)
            for (int k = i; k < end; k++)
                if (b->layer[k].times > run)
                    add_ask(m, k, &of[number[k]]);
    }
}

int *bz_align_asks_by_layer(const bz_align_making *m)
{
    int main = m->bound->layers->n, n = m->names.read ? m->names.n : main, *of = BZ_NEW_NONE(m->arena, int, n);
    BZ_SCOPED(bz_map) at = {0};
    for (int i = main; i < n; i++)
        bz_map_add(&at, &m->names.layer[i], sizeof m->names.layer[i], (uint32_t)i);
    for (int i = 0; i < m->n_asks; i++) {
        const bz_bound_layer *l = &m->bound->layer[m->ask[i].layer];
        bool own = bz_align_is_of_graph(m, l);
        uint32_t layer = own ? (uint32_t)l->node : bz_map_get(&at, &l->layer, sizeof l->layer);
        if (layer != BZ_MAP_NONE && l->times == 1)
            of[layer] = i;
    }
    return of;
}

/* Where a recording names the node that an atom is, the two have a signature that nothing else has. */
static void sign_named(bz_align_making *m)
{
    BZ_SCOPED(bz_buf) text = {0};
    m->named = bz_align_asks_by_layer(m); /* by then, names are read where the recording has some */
    for (int i = 0; i < m->steps.n_atoms; i++) {
        bz_align_atom *found = &m->steps.atom[i];
        int layer = found->node - 1, by = layer < 0 ? -1 : m->named[layer];
        bz_align_atom *asked = by < 0 ? NULL : &m->atom[m->ask[by].first];
        if (!asked || asked->node) { /* nobody asks for it, or another step was it already */
            found->node = 0;
            continue;
        }
        bz_buf_clear(&text);
        bz_buf_printf(&text, "node %d", layer);
        found->id = asked->id = bz_align_word(&m->words, bz_buf_text(&text));
        asked->node = found->node;
    }
}

bool bz_align_touched(const bz_align_making *m, const bz_align_step *step)
{
    if (m->written[step - m->steps.step])
        return true;
    for (int k = step->first; k < step->first + step->n; k++)
        if (m->to[k] >= 0)
            return true;
    return false;
}

static void count_steps(bz_align_making *m)
{
    for (int i = 0; i < m->n_asks; i++)
        m->ask[i].steps = 0;
    for (int i = 0; i < m->steps.n; i++) {
        const bz_align_step *step = &m->steps.step[i];
        int last = -1;
        for (int k = step->first; k < step->first + step->n; k++)
            if (m->to[k] >= 0 && m->atom[m->to[k]].owner != last) {
                last = m->atom[m->to[k]].owner;
                m->ask[last].steps++;
            }
        for (int k = 0; m->written[i] && k < m->written[i]->n; k++)
            m->ask[m->named[m->written[i]->layer[k]]].steps++;
    }
}

/* A pair of one kind whose parameters are known to differ. */
static bool differs(const bz_align_atom *a, const bz_align_atom *b)
{
    return a->id && b->id && a->kind == b->kind && !bz_align_same(a, b);
}

static void pair(bz_align_making *m, int step, int layer)
{
    int b = m->steps.step[step].first, a = m->ask[layer].first;
    if (m->from[a] >= 0)
        m->to[m->from[a]] = -1;
    if (m->to[b] >= 0)
        m->from[m->to[b]] = -1;
    m->to[b] = a;
    m->from[a] = b;
    m->moved[step] = true;
    for (int k = b + 1; k < b + m->steps.step[step].n; k++) { /* what it did besides moves along */
        int node = m->steps.atom[k].node - 1, with = node >= 0 ? m->ask[m->named[node]].first : -1;
        if (with < 0 || m->to[k] >= 0 || m->from[with] >= 0)
            continue;
        m->to[k] = with;
        m->from[with] = k;
    }
}

/* What is missing in one place and extra in another was moved. Those of one signature in their order; a call that stands
 * for a layer with other parameters is free to stand for one with its own. */
static void find_moved(bz_align_making *m)
{
    enum { HEAD, TAIL };
    BZ_FREED int(*list)[2] = bz_none((size_t)m->words.n + 1, sizeof *list);
    for (int i = 0; i < m->n_asks; i++) {
        const bz_align_atom *mine = &m->atom[m->ask[i].first];
        int by = m->from[m->ask[i].first];
        if (!mine->id || (by >= 0 && !differs(mine, &m->steps.atom[by])))
            continue;
        if (list[mine->id][HEAD] < 0)
            list[mine->id][HEAD] = i;
        else
            m->ask[list[mine->id][TAIL]].next = i;
        list[mine->id][TAIL] = i;
    }
    for (int i = 0; i < m->steps.n; i++) {
        const bz_align_step *step = &m->steps.step[i];
        const bz_align_atom *mine = step->n ? &m->steps.atom[step->first] : NULL;
        if (!mine || !mine->id || list[mine->id][HEAD] < 0)
            continue;
        int to = m->to[step->first];
        if (to >= 0 ? !differs(&m->atom[to], mine) : !mine->node && bz_align_touched(m, step))
            continue;
        int at = list[mine->id][HEAD];
        list[mine->id][HEAD] = m->ask[at].next;
        pair(m, i, at);
    }
}

/* Of a step's atoms those that are layers of their own: an operator does both gradients of a convolution. */
static bool is_layer(const bz_align_atom *atom)
{
    return !atom->post && !atom->optional;
}

/* What is left on both sides then, once more. */
static void pair_leftovers(bz_align_making *m)
{
    BZ_FREED bz_align_atom *a = bz_alloc((size_t)m->n_asks + 1, sizeof *a),
                           *b = bz_alloc((size_t)m->steps.n_atoms + 1, sizeof *b);
    BZ_FREED int *to = bz_alloc((size_t)m->steps.n_atoms + 1, sizeof *to),
                 *atom = bz_alloc((size_t)m->steps.n_atoms + 1, sizeof *atom);
    int n = 0, k = 0;
    for (int i = 0; i < m->n_asks; i++)
        if (!m->ask[i].steps)
            a[n++] = m->atom[m->ask[i].first];
    for (int i = 0; i < m->steps.n_atoms; i++) {
        const bz_align_step *step = &m->steps.step[m->steps.atom[i].owner];
        if (bz_align_touched(m, step) ? m->to[i] < 0 && is_layer(&m->steps.atom[i]) : i == step->first) {
            atom[k] = i;
            b[k++] = m->steps.atom[i];
        }
    }
    bz_align_sequences(&m->words, a, n, b, k, BZ_ALIGN_CELLS, to);
    for (int i = 0; i < k; i++) {
        int with = to[i] < 0 ? -1 : m->ask[a[to[i]].owner].first;
        if (with >= 0 && !bz_align_touched(m, &m->steps.step[b[i].owner])) {
            pair(m, b[i].owner, a[to[i]].owner);
        } else if (with >= 0) {
            m->to[atom[i]] = with;
            m->from[with] = atom[i];
        }
    }
}

/* A batch normalization that is the bias of the layer's product in the model is work that the model does not ask for. */
static void find_normalized(bz_align_making *m)
{
    for (int i = 0; i < m->steps.n_atoms; i++) {
        int to = m->to[i];
        if (to < 0 || m->steps.atom[i].kind != m->words.batchnorm || m->atom[to].kind != m->words.bias)
            continue;
        m->steps.step[m->steps.atom[i].owner].cause = BZ_CAUSE_NORMALIZED;
        m->from[to] = -1;
        m->to[i] = -1;
    }
}

/* How many layers in a row can be the call of each signature, of the kinds that were recorded. */
static int *longest_runs(const bz_align_making *m)
{
    size_t n = (size_t)m->words.n + 1;
    bool *recorded = BZ_NEW(m->arena, bool, n);
    int *longest = BZ_NEW(m->arena, int, n), *run = BZ_NEW(m->arena, int, n), *last = BZ_NEW(m->arena, int, n), at = 0;
    for (int i = 0; i < m->steps.n_atoms; i++)
        recorded[m->steps.atom[i].kind] = true;
    for (int i = 0; i < m->n_atoms; i++) {
        const bz_align_atom *atom = &m->atom[i];
        if (!recorded[atom->kind])
            continue;
        at++;
        for (int k = -1; k < BZ_ALIGN_ALSO && (k < 0 || atom->also[k]); k++) {
            uint32_t id = k < 0 ? atom->id : atom->also[k];
            run[id] = last[id] == at - 1 ? run[id] + 1 : 1;
            last[id] = at;
            longest[id] = run[id] > longest[id] ? run[id] : longest[id];
        }
    }
    return longest;
}

/* The atoms of steps, but for what is more of a run of equal calls than there are layers in a row that can be such a call: an attention of windows is
 * thousands of equal products, and few layers. How many; `at` says which. */
static int without_runs(const bz_align_making *m, bz_align_atom *atom, int *at)
{
    const int *longest = longest_runs(m);
    int n = 0, run = 0;
    for (int i = 0; i < m->steps.n_atoms; i++) {
        const bz_align_atom *mine = &m->steps.atom[i];
        bool again =
            i && mine->id && !mine->node && mine->id == m->steps.atom[i - 1].id && m->steps.step[mine->owner].n == 1;
        run = again ? run + 1 : 1;
        if (longest[mine->id] && run > longest[mine->id])
            continue;
        at[n] = i;
        atom[n++] = *mine;
    }
    return n;
}

/* Conversions and paddings that no layer of the model is are the program's own. */
static void leave_causes(bz_align_making *m)
{
    for (int i = 0; i < m->steps.n; i++) {
        bz_align_step *step = &m->steps.step[i];
        if (!step->otherwise || bz_align_touched(m, step))
            continue;
        step->cause = step->otherwise;
        step->n = 0;
    }
}

/* Layers that stand for operators of this recording: each was done by the step that its operator is, or lies in. */
static void pair_made(bz_align_making *m)
{
    const bz_events *o = &m->trace->event[BZ_EVENT_OP];
    int *count = BZ_NEW(m->arena, int, m->steps.n + 1), *by = BZ_NEW(m->arena, int, m->n_asks + 1);
    for (int i = 0; i < m->n_asks; i++) {
        uint32_t op = m->bound->made_by[m->bound->layer[m->ask[i].layer].node];
        for (size_t up = 0; op < o->n && !m->steps.of_op[op] && up < o->n; up++)
            op = o->op[op];
        by[i] = op < o->n ? (int)m->steps.of_op[op] - 1 : -1;
        if (by[i] >= 0)
            count[by[i]]++;
    }
    for (int i = 0; i < m->n_asks; i++) {
        const bz_align_step *step = by[i] < 0 ? NULL : &m->steps.step[by[i]];
        if (!step || !step->n)
            continue;
        if (count[by[i]] == 1) {
            m->to[step->first] = m->ask[i].first;
            m->from[m->ask[i].first] = step->first;
            continue;
        }
        bz_match *match = (bz_match *)m->written[by[i]];
        if (!match) {
            match = BZ_NEW(m->arena, bz_match, 1);
            match->layer = BZ_NEW(m->arena, int, count[by[i]]);
            m->written[by[i]] = match;
        }
        ((int *)match->layer)[match->n++] = m->bound->layer[m->ask[i].layer].node;
    }
    count_steps(m);
}

static void align(bz_align_making *m)
{
    int n = m->steps.n_atoms;
    m->to = BZ_NEW_NONE(m->arena, int, n);
    m->from = BZ_NEW_NONE(m->arena, int, m->n_atoms);
    m->moved = BZ_NEW(m->arena, bool, m->steps.n);
    m->written = BZ_NEW(m->arena, const bz_match *, m->steps.n);
    if (m->bound->made_by && m->steps.operators) {
        pair_made(m);
        return;
    }
    BZ_FREED bz_align_atom *atom = bz_alloc((size_t)n + 1, sizeof *atom);
    BZ_FREED int *at = bz_alloc((size_t)n + 1, sizeof *at), *to = bz_alloc((size_t)n + 1, sizeof *to);
    int kept = without_runs(m, atom, at);
    bz_align_sequences(&m->words, m->atom, m->n_atoms, atom, kept, BZ_ALIGN_CELLS, to);
    for (int i = 0; i < kept; i++)
        m->to[at[i]] = to[i];
    for (int i = 0; i < n; i++)
        if (m->to[i] >= 0)
            m->from[m->to[i]] = i;
    bz_align_find_repeated(m, 0, m->steps.n, 1);
    bz_align_find_repeated(m, m->steps.n - 1, -1, -1);
    find_moved(m);
    count_steps(m);
    bz_align_find_recurrent(m);
    count_steps(m);
    pair_leftovers(m);
    bz_align_functions_find(m);
    find_normalized(m);
    count_steps(m);
    bz_align_find_written(m);
    count_steps(m);
    bz_align_find_stacked(m);
    count_steps(m);
}

static const uint32_t *list_operators(const bz_align_making *m, bz_cause_kind cause, int *n)
{
    uint32_t *list = BZ_NEW(m->arena, uint32_t, m->steps.n);
    for (int i = 0; i < m->steps.n; i++)
        if (m->steps.step[i].kind == BZ_ALIGN_OPERATOR && m->steps.step[i].cause == cause)
            list[(*n)++] = (uint32_t)m->steps.step[i].at;
    return list;
}

void bz_align_make(const bz_bound *bound, const bz_trace *trace, bz_arena *arena, bz_alignment *out)
{
    bz_align_making m = {.bound = bound, .trace = trace, .arena = arena, .out = out, .names = {.bound = bound}};
    *out = (bz_alignment){0};
    bz_align_words_begin(&m.words, arena);
    ask_for(&m);
    bz_align_functions_list(&m);
    bz_align_steps_take(&m.steps, trace, &m.names, &m.words, arena);
    sign_named(&m);
    bz_align_functions_fold(&m);
    out->timeline = m.steps.timeline = m.steps.end > m.steps.begin && bz_trace_has_lengths(trace);
    bool *between = BZ_NEW(arena, bool, m.steps.n + 1);
    align(&m);
    leave_causes(&m);
    bz_align_find_spared(&m);
    bz_align_put_rows(&m, between);
    bz_align_time(&m.steps, between, bz_align_missing_kinds(&m), arena, out);
    bz_align_finish_rows(&m);
    out->constant = list_operators(&m, BZ_CAUSE_CONSTANTS_COMPUTED, &out->n_constants);
    out->normalized = list_operators(&m, BZ_CAUSE_NORMALIZED, &out->n_normalized);
    bz_align_faster(bound, arena, out);
    if (!out->timeline)
        out->asked = NAN;
    bz_align_steps_free(&m.steps);
    bz_align_names_end(&m.names);
    bz_align_words_end(&m.words);
    free(m.ask);
    free(m.atom);
}
