/* Where patterns fit: from a layer that could make the result, back along its operands. */
#include "base/sort.h"
#include "modelproc/pattern.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT = INT_MAX }; /* a use of a value: a result of the graph */

/* Layers of the same operator and kind could be the same steps: there are few such sorts. */
typedef struct {
    int *of;                /* [layers]: sort of a layer */
    const bz_layer **first; /* [n] */
    bool *commutes;         /* [n]: of two operands either may be the first */
    int n;
} layer_sorts;

typedef struct {
    const bz_layers *layers;
    const int *producer; /* layer that makes a value, or -1 */
    const pattern *pattern;
    const uint8_t *fits; /* fits[step * sorts->n + sort]: whether such layers could be it */
    const layer_sorts *sorts;
    bool turned;           /* operands of a sum are tried the other way round first */
    bool *turns;           /* there was a sum */
    const bz_spares *past; /* NULL: every layer counts */
    const int *first,
        *use; /* use[first[v]] … use[first[v + 1] - 1]: layers that read v and run, and for ~w values w that stand for v */
} matcher;

/* What is known so far; small, so that trying the other order is a copy away. */
typedef struct {
    int layer[MAX_STEPS];         /* of each step, or -1 */
    bz_value_id value[MAX_NAMES]; /* of each free name, or BZ_NO_VALUE */
    bool past;                    /* a step is behind layers that need not run */
} state;

/* Relu, relu; `batchnorm.training` wants that number of the layer's key to be other than 0: `key` says whether that counts. */
static bool name_fits(const char *name, const bz_layer *l, bool key)
{
    const char *dot = strchr(name, '.');
    if (!dot)
        return !strcmp(name, l->node->op) || !strcmp(name, l->kind);
    size_t n = (size_t)(dot - name);
    return strlen(l->kind) == n && !memcmp(name, l->kind, n) && (!key || bz_layer_int(l, dot + 1, 0));
}

/* Layers of one operator and kind; of SOME each layer's key says whether it does. */
enum { NONE_FIT, SOME_FIT, ALL_FIT };

static uint8_t fit_of(const step *s, const bz_layer *l)
{
    uint8_t fit = NONE_FIT;
    for (int i = 0; i < s->n_ops && fit < ALL_FIT; i++)
        if (name_fits(s->ops[i], l, false))
            fit = strchr(s->ops[i], '.') ? SOME_FIT : ALL_FIT;
    return fit;
}

static bool op_fits(const matcher *m, int s, int layer)
{
    const step *want = &m->pattern->steps[s];
    uint8_t fit = m->fits[s * m->sorts->n + m->sorts->of[layer]];
    for (int i = 0; i < want->n_ops && fit == SOME_FIT; i++)
        if (name_fits(want->ops[i], &m->layers->layer[layer], true))
            return true;
    return fit == ALL_FIT;
}

static bool match_step(const matcher *m, int s, int layer, state *st);

/* The step that makes the operand. */
static bool match_maker(const matcher *m, int s, bz_value_id v, state *st)
{
    int by = m->producer[v];
    return by >= 0 && m->layers->layer[by].node->out[0] == v && match_step(m, s, by, st);
}

/* Likewise, or the one behind layers that need not run. */
static bool match_made(const matcher *m, int s, bz_value_id v, state *st)
{
    for (int i = 1; i < BZ_STANDS && m->past && m->past->stands[v] != v; i++) {
        state before = *st;
        if (match_maker(m, s, v, st))
            return true;
        *st = before;
        st->past = true;
        v = m->past->stands[v];
    }
    return match_maker(m, s, v, st);
}

/* A value for each element of the result's rows, which is not constant: a bias that training changes. */
static bool is_vector(const bz_layer *l, int k)
{
    const bz_type *t = &l->in[k], *y = &l->out[0];
    return !l->in_constant[k] && t->kind == BZ_TYPE_TENSOR && t->rank == 1 && y->kind == BZ_TYPE_TENSOR &&
           y->rank > 1 && t->dims[0] > 1 && t->dims[0] == y->dims[y->rank - 1];
}

static bool match_operand(const matcher *m, const operand *o, const bz_layer *l, int k, state *st)
{
    bz_value_id v = k < l->n_in ? l->node->in[k] : BZ_NO_VALUE;
    switch (o->kind) {
    case OPERAND_ANY:
        return true;
    case OPERAND_NONE:
        return v == BZ_NO_VALUE;
    case OPERAND_CONST:
        return v != BZ_NO_VALUE && l->in_constant[k];
    case OPERAND_VECTOR:
        return v != BZ_NO_VALUE && is_vector(l, k);
    case OPERAND_VALUE:
        if (v == BZ_NO_VALUE || (st->value[o->index] != BZ_NO_VALUE && st->value[o->index] != v))
            return false;
        st->value[o->index] = v;
        return true;
    case OPERAND_STEP:
        return v != BZ_NO_VALUE && match_made(m, o->index, v, st);
    }
    return false;
}

static bool match_operands(const matcher *m, const step *s, const bz_layer *l, bool swapped, state *st)
{
    for (int k = 0; k < s->n_operands; k++)
        if (!match_operand(m, &s->operands[k], l, swapped ? 1 - k : k, st))
            return false;
    return true;
}

static bool match_step(const matcher *m, int s, int layer, state *st)
{
    const step *want = &m->pattern->steps[s];
    const bz_layer *l = &m->layers->layer[layer];
    if (st->layer[s] >= 0)
        return st->layer[s] == layer;
    if (l->class == BZ_CONSTANT || !op_fits(m, s, layer))
        return false;
    st->layer[s] = layer;
    if (want->n_operands != 2 || l->n_in != 2 || !m->sorts->commutes[m->sorts->of[layer]])
        return match_operands(m, want, l, false, st);
    state before = *st;
    *m->turns = true;
    if (match_operands(m, want, l, m->turned, st))
        return true;
    *st = before;
    return match_operands(m, want, l, !m->turned, st);
}

static bool reads(const bz_layer *l, const bz_layer *from)
{
    for (int k = 0; k < from->n_out; k++)
        for (int i = 0; i < l->n_in; i++)
            if (from->node->out[k] >= 0 && l->node->in[i] == from->node->out[k])
                return true;
    return false;
}

static bool is_inside(const matcher *m, const state *st, int layer)
{
    for (int s = 0; s < m->pattern->n_steps; s++)
        if (st->layer[s] == layer)
            return true;
    return false;
}

/* Whether all others that read what a step makes come behind the match: none of them can be waited for by it. */
static bool is_read_later(const matcher *m, const state *st, int s)
{
    int root = st->layer[m->pattern->n_steps - 1];
    for (int i = st->layer[s] + 1; i < root; i++)
        if (!is_inside(m, st, i) && reads(&m->layers->layer[i], &m->layers->layer[st->layer[s]]))
            return false;
    return true;
}

/* Whether all that read a value that is made inside are inside, too, past layers that need not run. */
static bool stays_inside(const matcher *m, const state *st, bz_value_id v, int depth)
{
    for (int i = m->first[v]; i < m->first[v + 1]; i++) {
        int use = m->use[i];
        bool inside = use >= 0 ? is_inside(m, st, use)
                               : is_inside(m, st, m->producer[~use]) ||
                                     (depth < BZ_STANDS && stays_inside(m, st, ~use, depth + 1));
        if (!inside)
            return false;
    }
    return true;
}

/* Layers outside of the match may read its result, and nothing else that is made inside but what is shared. What is kept they do read:
 * else nobody needs it. */
static bool is_closed(const matcher *m, const state *st)
{
    int n = m->pattern->n_steps, root = st->layer[n - 1];
    for (int s = 0; s < n; s++) {
        const bz_layer *l = &m->layers->layer[st->layer[s]];
        if (m->pattern->steps[s].shared && !is_read_later(m, st, s))
            return false;
        if (m->pattern->steps[s].kept && stays_inside(m, st, l->node->out[0], 0))
            return false;
        if (st->layer[s] == root || m->pattern->steps[s].shared)
            continue;
        for (int k = 0; k < l->n_out; k++) {
            bz_value_id v = l->node->out[k];
            if (v >= 0 && !stays_inside(m, st, v, 0))
                return false;
        }
    }
    return true;
}

BZ_SORTS(by_number, int, BZ_ORDER(*p, *q));

static bool match_at(const matcher *m, int root, state *st)
{
    for (int s = 0; s < MAX_STEPS; s++)
        st->layer[s] = -1;
    for (int v = 0; v < MAX_NAMES; v++)
        st->value[v] = BZ_NO_VALUE;
    st->past = false;
    if (!match_step(m, m->pattern->n_steps - 1, root, st))
        return false;
    for (int s = 0; s < m->pattern->n_steps; s++) /* two steps must not be one layer, none may be left over */
        for (int t = 0; t <= s; t++)
            if (st->layer[s] < 0 || (t < s && st->layer[t] == st->layer[s]))
                return false;
    return is_closed(m, st);
}

static void count_use(int *first, int *use, bz_value_id v, int by)
{
    if (v >= 0 && use)
        use[first[v]++] = by;
    else if (v >= 0)
        first[v]++;
}

/* Counts uses of values, and lists them where `use` is not NULL. */
static void walk_uses(const bz_layers *l, const bz_spares *past, int *first, int *use)
{
    const bz_graph *g = l->model->graph;
    bz_value_id v;
    for (int i = 0; i < l->n; i++)
        for (int k = 0; !(past && past->why[i]) && (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++)
            count_use(first, use, v, i);
    for (v = 0; past && v < l->model->n_values; v++)
        if (past->stands[v] != v)
            count_use(first, use, past->stands[v], ~v);
    for (int k = 0; k < g->n_outputs; k++)
        count_use(first, use, g->outputs[k], OUTPUT);
}

static void index_values(bz_layers *l, matcher *m)
{
    int n = l->model->n_values, at = 0;
    int *producer = BZ_NEW_NONE(&l->arena, int, n), *first = BZ_NEW(&l->arena, int, n + 1), *use;
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->layer[i].n_out; k++)
            if (l->layer[i].node->out[k] >= 0)
                producer[l->layer[i].node->out[k]] = i;
    walk_uses(l, m->past, first, NULL);
    for (int v = 0; v <= n; v++) {
        int uses = first[v];
        first[v] = at;
        at += uses;
    }
    use = BZ_NEW(&l->arena, int, at + 1);
    walk_uses(l, m->past, first, use);
    memmove(first + 1, first, (size_t)n * sizeof *first);
    first[0] = 0;
    m->producer = producer, m->first = first, m->use = use;
}

static void sort_layers(bz_layers *l, layer_sorts *s)
{
    BZ_SCOPED(bz_map) map = {0};
    BZ_SCOPED(bz_buf) key = {0};
    *s = (layer_sorts){BZ_NEW(&l->arena, int, l->n), BZ_NEW(&l->arena, const bz_layer *, l->n),
                       BZ_NEW(&l->arena, bool, l->n), 0};
    for (int i = 0; i < l->n; i++) {
        bz_buf_clear(&key);
        bz_buf_puts(&key, l->layer[i].node->op);
        bz_buf_putc(&key, ' ');
        bz_buf_puts(&key, l->layer[i].kind);
        uint32_t k = bz_map_number(&map, &l->arena, key.data, key.len);
        if (k == (uint32_t)s->n) {
            s->first[k] = &l->layer[i];
            s->commutes[k] = bz_has_word("Add Mul Max Min And Or Equal", l->layer[i].node->op);
            s->n++;
        }
        s->of[i] = (int)k;
    }
}

/* fits[pattern][step][sort] */
static const uint8_t *find_fits(const bz_patterns *patterns, const layer_sorts *s, bz_arena *arena)
{
    uint8_t *fits = BZ_NEW(arena, uint8_t, (size_t)patterns->n * MAX_STEPS * (size_t)s->n), *to = fits;
    for (int p = 0; p < patterns->n; p++)
        for (int i = 0; i < MAX_STEPS; i++)
            for (int k = 0; k < s->n; k++)
                *to++ = i < patterns->item[p].n_steps ? fit_of(&patterns->item[p].steps[i], s->first[k]) : NONE_FIT;
    return fits;
}

typedef struct {
    bz_match *item;
    int n;
} match_list;

/* Patterns of one name that end in the same layer are one place: the largest counts. */
static void add_match(bz_layers *l, match_list *list, int first, const matcher *m, const state *st)
{
    const pattern *t = m->pattern;
    bz_match match = {
        .pattern = bz_arena_str(&l->arena, t->name), .n = t->n_steps, .stands = st->past ? m->past->stands : NULL};
    for (int s = 0; s < t->n_steps; s++)
        match.shared |= t->steps[s].shared;
    int *layers = bz_arena_dup(&l->arena, st->layer, (size_t)t->n_steps * sizeof *layers);
    qsort(layers, (size_t)t->n_steps, sizeof *layers, by_number);
    match.layer = layers;
    for (int i = first; i < list->n; i++) {
        if (list->item[i].layer[list->item[i].n - 1] != layers[match.n - 1])
            continue;
        if (list->item[i].n < match.n)
            list->item[i] = match;
        return;
    }
    BZ_ARENA_ADD(&l->arena, list->item, list->n) = match;
}

/* Where a pattern ends in a layer. */
static bool match_either_way(matcher *m, int root, state *st)
{
    bool turns = false;
    m->turns = &turns, m->turned = false;
    if (match_at(m, root, st))
        return true;
    m->turned = true; /* x + conv(x): of two convolutions, only one may be read by nobody else */
    return turns && match_at(m, root, st);
}

/* By pattern as the table names them first, then by the layer that makes the result. */
int bz_patterns_find(const bz_patterns *patterns, bz_layers *l, const bz_spares *past, const bz_match **matches)
{
    layer_sorts sorts;
    sort_layers(l, &sorts);
    matcher m = {.layers = l, .past = past && past->why ? past : NULL, .sorts = &sorts};
    index_values(l, &m);
    const uint8_t *fits = find_fits(patterns, &sorts, &l->arena);
    match_list list = {0};
    int *of_name = BZ_NEW(&l->arena, int, patterns->n);
    for (int p = 0; p < patterns->n; p++) {
        int n = 0;
        for (int q = 0; q < patterns->n; q++)
            if (!strcmp(patterns->item[q].name, patterns->item[p].name))
                of_name[n++] = q;
        if (of_name[0] != p)
            continue; /* its name came before */
        for (int root = 0; root < l->n; root++) {
            int first_at_root = list.n;
            for (int i = 0; i < n; i++) {
                state st;
                m.pattern = &patterns->item[of_name[i]];
                m.fits = fits + (size_t)of_name[i] * MAX_STEPS * (size_t)sorts.n;
                if (op_fits(&m, m.pattern->n_steps - 1, root) && match_either_way(&m, root, &st))
                    add_match(l, &list, first_at_root, &m, &st);
            }
        }
    }
    *matches = list.item;
    return list.n;
}
