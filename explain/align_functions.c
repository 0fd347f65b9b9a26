/* Functions that the model writes out in several layers, as gelu by erf, and that a program may compute by one call. */
#include "base/sort.h"
#include "explain/align_making.h"

#include <stdlib.h>

/* Of the group's kind is none of its layers: a product behind a transpose is its own. A normalization may stand in the middle of another one. */
static bool is_function(const bz_align_making *m, const bz_match *match, const bz_align_atom *atom, bool norm)
{
    bool new = match->n > 0 && match->n <= BZ_ALIGN_ATOMS;
    for (int i = 0; i < match->n && new; i++) {
        const bz_align_atom *own = &m->atom[m->ask[m->named[match->layer[i]]].first];
        new = own->kind != atom->kind || (norm && own->id != atom->id);
    }
    return new;
}

/* Views ask for nothing: the group without them. */
static const bz_match *asking(const bz_align_making *m, const bz_match *match)
{
    bz_match *out = bz_arena_dup(m->arena, match, sizeof *match);
    int *layer = BZ_NEW(m->arena, int, match->n);
    out->n = 0;
    for (int i = 0; i < match->n; i++)
        if (m->named[match->layer[i]] >= 0)
            layer[out->n++] = match->layer[i];
    out->layer = layer;
    return out;
}

BZ_SORTS(most_layers, bz_align_function,
         BZ_THEN(BZ_ORDER(q->match->n, p->match->n), BZ_ORDER(p->match->layer[0], q->match->layer[0])));

void bz_align_functions_list(bz_align_making *m)
{
    bz_layers *layers = m->bound->layers;
    const bz_match *match;
    bz_patterns *patterns = NULL;
    bz_error err;
    m->named = bz_align_asks_by_layer(m);
    bool graph = layers && layers->model && layers->model->graph; /* what a recording's calls stand for has none */
    if (!graph || bz_patterns_load(NULL, &patterns, &err))
        return;
    bz_lowered *lowered = bz_lowered_new(layers, m->bound->dtype, m->arena);
    int n = bz_patterns_find(patterns, layers, NULL, &match);
    for (int i = 0; i < n; i++) {
        bz_lowering low;
        bz_align_atom atom;
        bz_lower_group(lowered, &match[i], m->arena, &low);
        const bz_match *asks = asking(m, &match[i]);
        if (!bz_align_group_atom(&m->words, &low, &atom) ||
            !is_function(m, asks, &atom, bz_problem_has(low.alternative[0].problem, BZ_TRAIT_NORMALIZATION)))
            continue;
        BZ_ARENA_ADD(m->arena, m->function, m->n_functions) = (bz_align_function){asks, atom};
    }
    BZ_QSORT(m->function, m->n_functions, most_layers);
    bz_patterns_free(patterns);
}

/* No layer of the group belongs to another function, or to a step by its name. */
static bool is_free(const bz_align_making *m, const bz_match *match)
{
    bool free = true;
    for (int i = 0; i < match->n && free; i++) {
        const bz_align_ask *layer = &m->ask[m->named[match->layer[i]]];
        free = !layer->function && !m->atom[layer->first].node;
    }
    return free;
}

void bz_align_functions_fold(bz_align_making *m)
{
    int *steps = BZ_NEW(m->arena, int, m->words.n + 1);
    for (int i = 0; i < m->steps.n_atoms; i++)
        steps[m->steps.atom[i].kind]++;
    for (int i = 0; i < m->n_functions; i++) {
        const bz_match *match = m->function[i].match;
        if (!steps[m->function[i].atom.kind] || !is_free(m, match))
            continue;
        for (int k = 0; k < match->n; k++) {
            int by = m->named[match->layer[k]], first = m->ask[by].first;
            m->ask[by].function = match;
            for (int a = first; a < first + m->ask[by].n; a++)
                m->atom[a] = (bz_align_atom){.owner = by};
            if (k == match->n - 1)
                m->atom[first] = m->function[i].atom;
            m->atom[first].owner = by;
        }
    }
}

void bz_align_functions_find(bz_align_making *m)
{
    for (int i = 0; i < m->steps.n; i++)
        for (int k = m->steps.step[i].first; k < m->steps.step[i].first + m->steps.step[i].n; k++) {
            const bz_match *match = m->to[k] < 0 ? NULL : m->ask[m->atom[m->to[k]].owner].function;
            if (!match)
                continue;
            m->from[m->to[k]] = -1;
            m->to[k] = -1;
            m->written[i] = match;
        }
}
