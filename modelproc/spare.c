/* Layers that a compiler leaves out, and no result changes: what nothing reads, what another layer makes as well, and transposes
 * that the calls around them take along. */
#include "modelproc/op.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW = 64,       /* elements of constants that are compared by value: axes, sizes, scales */
    ALIKE = 64,     /* layers of one text that are compared */
    AXES = 8,       /* a transpose of more is none that a call takes along */
    ROUNDS = 4,     /* in which each region looks for a better order */
    CANDIDATES = 8, /* transposes around a region whose orders it tries */
};

const char *bz_spare_name(bz_spare s)
{
    static const char *const NAMES[] = {NULL, "unread", "repeated", "transpose"};
    return NAMES[s];
}

/* A set of values that lie in one order of their axes, since the layers between them keep it. */
typedef struct region {
    bool fixed;              /* as the model writes it */
    bool image;              /* so, or with the channels last */
    bool product;            /* a product reads or writes it: one of the last two axes lies in memory without gaps */
    signed char order[AXES]; /* axes from the outermost to the innermost */
    int first, n;            /* of `around` */
    int round;               /* in which it was looked at last */
} region;

/* A Transpose: a step from region to region. */
typedef struct turn {
    int layer, from, to, rank;
    int perm[AXES];
    const bz_type *x;
    double elements;
} turn;

typedef struct {
    bz_layers *l;
    bz_spare *why;     /* [l->n] */
    bz_value_id *same; /* [values]: the first value that holds the same */
    int *root;         /* [values]: union of values to regions */
    region *region;    /* [values]: of roots */
    turn *turn;
    int n_turns, *around; /* turns by region */
    bz_arena work;
} search;

/* ---- what nothing reads ------------------------------------------------------------------------------ */

static void find_unread(search *s)
{
    const bz_graph *g = s->l->model->graph;
    bool *read = BZ_NEW(&s->work, bool, s->l->model->n_values);
    bz_value_id v;
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] >= 0)
            read[g->outputs[k]] = true;
    for (int i = s->l->n; i-- > 0;) {
        const bz_layer *layer = &s->l->layer[i];
        bool wanted = !layer->n_out || bz_layer_has(layer, BZ_LAYER_UPDATE);
        for (int k = 0; k < layer->n_out; k++)
            wanted |= layer->node->out[k] >= 0 && read[layer->node->out[k]];
        s->why[i] = wanted ? BZ_RUNS : BZ_UNREAD;
        for (int k = 0; wanted && (v = bz_node_reads(layer->node, k)) != BZ_READS_END; k++)
            if (v >= 0)
                read[v] = true;
    }
}

/* ---- what another layer makes as well --------------------------------------------------------------------- */

/* Few elements, and the same ones. */
static bool same_tensor(const bz_model *model, const bz_tensor *t, const bz_tensor *u)
{
    double x[FEW], y[FEW];
    int64_t i[FEW], j[FEW];
    bz_error err;
    if (t == u)
        return true;
    if (t->dtype != u->dtype || t->n != u->n || t->n > FEW || t->rank != u->rank ||
        memcmp(t->dims, u->dims, (size_t)t->rank * sizeof *t->dims) != 0)
        return false;
    if (bz_dtype_is_float(t->dtype))
        return !bz_tensor_reals(model, t, x, &err) && !bz_tensor_reals(model, u, y, &err) &&
               !memcmp(x, y, (size_t)t->n * sizeof *x);
    return !bz_tensor_ints(model, t, i, &err) && !bz_tensor_ints(model, u, j, &err) &&
           !memcmp(i, j, (size_t)t->n * sizeof *i);
}

static bool same_attr(const bz_model *model, const bz_attr *a, const bz_attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case BZ_ATTR_FLOAT:
        return a->f == b->f;
    case BZ_ATTR_INT:
        return a->i == b->i;
    case BZ_ATTR_STRING:
        return a->s.len == b->s.len && !memcmp(a->s.data, b->s.data, a->s.len);
    case BZ_ATTR_FLOATS:
        return !a->n || !memcmp(a->floats, b->floats, (size_t)a->n * sizeof *a->floats);
    case BZ_ATTR_INTS:
        return !a->n || !memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints);
    case BZ_ATTR_TENSOR:
        return same_tensor(model, a->tensor, b->tensor);
    default: /* graphs, types: nobody writes them twice */
        return false;
    }
}

static bool same_attrs(const bz_model *model, const bz_node *a, const bz_node *b)
{
    if (a->n_attrs != b->n_attrs)
        return false;
    for (int i = 0; i < a->n_attrs; i++)
        if (!same_attr(model, &a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

/* Weights are the same where they are one value. A model without its weights has placeholders that all look alike. */
static bool same_constant(const search *s, bz_value_id a, bz_value_id b)
{
    const bz_value *values = s->l->model->values;
    if (a == b)
        return true;
    if (bz_type_elements(&s->l->types[a]) > FEW)
        return false;
    return s->same[a] == s->same[b] ||
           (values[a].init && values[b].init && same_tensor(s->l->model, values[a].init, values[b].init));
}

static bool same_operand(const search *s, const bz_layer *a, const bz_layer *b, int k)
{
    bz_value_id v = a->node->in[k], w = b->node->in[k];
    if (v < 0 || w < 0 || a->in_constant[k] != b->in_constant[k])
        return v == w;
    return a->in_constant[k] ? same_constant(s, v, w) : s->same[v] == s->same[w];
}

/* A tensor as it lies: the key has its shape, however that was computed. */
static bool is_view(const bz_layer *l)
{
    return l->class == BZ_VIEW && l->n_in && l->n_out && l->in[0].kind == BZ_TYPE_TENSOR &&
           l->out[0].kind == BZ_TYPE_TENSOR;
}

static bool same_layer(const search *s, const bz_layer *a, const bz_layer *b)
{
    if (is_view(a) && is_view(b) && !strcmp(a->node->op, b->node->op))
        return a->out[0].dtype == b->out[0].dtype && same_operand(s, a, b, 0);
    if (strcmp(a->node->op, b->node->op) != 0 || strcmp(a->node->domain, b->node->domain) != 0 || a->n_in != b->n_in ||
        a->n_out != b->n_out || !same_attrs(s->l->model, a->node, b->node))
        return false;
    for (int k = 0; k < a->n_in; k++)
        if (!same_operand(s, a, b, k))
            return false;
    for (int k = 0; k < a->n_out; k++)
        if ((a->node->out[k] < 0) != (b->node->out[k] < 0))
            return false;
    return true;
}

/* Its key, and what it reads. */
static void put_work(const search *s, const bz_layer *layer, bz_buf *text)
{
    bz_buf_clear(text);
    bz_buf_puts(text, layer->key);
    for (int k = 0; k < layer->n_in; k++)
        if (layer->node->in[k] >= 0 && !layer->in_constant[k])
            bz_buf_printf(text, " %d", s->same[layer->node->in[k]]);
}

/* Whether it is a step between regions; *out is then what it does. */
static bool is_turn(const bz_layer *layer, turn *out)
{
    const bz_param *perm = bz_layer_param(layer, "perm");
    bool good = layer->class == BZ_MEMORY && !strcmp(layer->kind, "transpose") && layer->priced && perm &&
                perm->n == layer->in[0].rank && perm->n <= AXES;
    if (!good)
        return false;
    *out = (turn){.layer = layer->index,
                  .rank = perm->n,
                  .x = &layer->in[0],
                  .elements = (double)bz_type_elements(&layer->in[0])};
    for (int k = 0; k < perm->n; k++)
        out->perm[k] = (int)perm->v[k];
    return true;
}

/* The operand of the transpose that makes what this one reads and turns back; BZ_NO_VALUE. */
static bz_value_id turned_back(const search *s, const int *maker, const bz_layer *layer)
{
    turn second, first;
    int by = layer->n_in ? layer->node->in[0] : -1;
    by = by >= 0 ? maker[s->same[by]] - 1 : -1;
    if (by < 0 || !is_turn(layer, &second) || !is_turn(&s->l->layer[by], &first) || first.rank != second.rank)
        return BZ_NO_VALUE;
    for (int k = 0; k < first.rank; k++)
        if (first.perm[second.perm[k]] != k)
            return BZ_NO_VALUE;
    return s->same[s->l->layer[by].node->in[0]];
}

/* Layers by their work. */
typedef struct {
    bz_map first; /* text of the work -> the layer that had it last */
    int *before;  /* [layers]: the one that had the same text before it, or -1 */
    bz_buf text;
} by_work;

/* The layer before it that does the same to the same; -1, and it is listed itself. */
static int find_twin(search *s, by_work *w, const bz_layer *layer)
{
    put_work(s, layer, &w->text);
    uint32_t found = bz_map_get(&w->first, w->text.data, w->text.len);
    int twin = w->before[layer->index] = found == BZ_MAP_NONE ? -1 : (int)found;
    for (int k = 0; twin >= 0 && !same_layer(s, layer, &s->l->layer[twin]); k++)
        twin = k < ALIKE ? w->before[twin] : -1;
    if (twin < 0)
        bz_map_set(&w->first, bz_arena_strn(&s->work, w->text.data, w->text.len), w->text.len, (uint32_t)layer->index);
    return twin;
}

/* Of constants only numbers that the file holds are compared. */
static bool may_repeat(const bz_layer *l)
{
    bool constant = l->class == BZ_CONSTANT;
    return !l->n_bodies && !l->opaque && !l->n_in == constant && !bz_layer_has(l, BZ_LAYER_UPDATE | BZ_LAYER_RANDOM);
}

static void find_repeated(search *s)
{
    by_work w = {.before = BZ_NEW(&s->work, int, s->l->n)};
    int *maker = BZ_NEW(&s->work, int, s->l->model->n_values); /* number + 1 of the layer that makes a value first */
    for (int v = 0; v < s->l->model->n_values; v++)
        s->same[v] = v;
    for (int i = 0; i < s->l->n; i++) {
        const bz_layer *layer = &s->l->layer[i];
        bz_value_id back = s->why[i] ? BZ_NO_VALUE : turned_back(s, maker, layer);
        int twin = s->why[i] || back >= 0 || !may_repeat(layer) ? -1 : find_twin(s, &w, layer);
        for (int k = 0; k < layer->n_out; k++) {
            bz_value_id v = layer->node->out[k];
            if (v < 0)
                continue;
            maker[v] = i + 1;
            s->same[v] = back >= 0 ? back : twin >= 0 ? s->same[s->l->layer[twin].node->out[k]] : v;
        }
        s->why[i] = back >= 0 ? BZ_TURNED : twin >= 0 ? BZ_REPEATED : s->why[i];
    }
    bz_map_free(&w.first);
    bz_buf_free(&w.text);
}

/* ---- regions ---------------------------------------------------------------------------------------------- */

static int find_root(search *s, int v)
{
    while (s->root[v] != v)
        v = s->root[v] = s->root[s->root[v]];
    return v;
}

static region *region_of(search *s, bz_value_id v)
{
    return &s->region[find_root(s, s->same[v])];
}

static void unite(search *s, bz_value_id v, bz_value_id w)
{
    int a = find_root(s, s->same[v]), b = find_root(s, s->same[w]);
    if (a == b)
        return;
    s->region[a].fixed |= s->region[b].fixed;
    s->region[a].image |= s->region[b].image;
    s->region[a].product |= s->region[b].product;
    s->root[b] = a;
}

/* How a layer stands to the order of axes in which its operands and results lie. */
typedef enum {
    ONE_ORDER, /* all in one, whichever */
    IMAGES,    /* each as written or with the channels last */
    PRODUCTS,  /* each in one that a product can read */
    LETTERS,   /* each in whichever: another order is another equation */
    AS_WRITTEN
} order_rule;

static order_rule rule_of(const bz_layer *layer)
{
    for (int i = 0; i < ops_elementwise.n && layer->class != BZ_VIEW; i++)
        if (ops_elementwise.rows[i].kind == layer->kind)
            return strcmp(layer->kind, "swiglu") != 0 ? ONE_ORDER : AS_WRITTEN;
    if (bz_has_word("identity dropout concat split slice pad softmax logsoftmax batchnorm", layer->kind))
        return ONE_ORDER;
    if (bz_layer_has(layer, BZ_LAYER_WINDOW))
        return IMAGES;
    if (!strcmp(layer->kind, "einsum"))
        return LETTERS;
    return bz_has_word("matmul gemm", layer->kind) ? PRODUCTS : AS_WRITTEN;
}

static void restrict_region(search *s, bz_value_id v, order_rule how)
{
    region *r = region_of(s, v);
    r->fixed |= how == AS_WRITTEN || s->l->types[v].kind != BZ_TYPE_TENSOR || s->l->types[v].rank < 2;
    r->image |= how == IMAGES;
    r->product |= how == PRODUCTS;
}

static void place_layer(search *s, const bz_layer *layer)
{
    order_rule how = rule_of(layer);
    bz_value_id y = layer->n_out ? layer->node->out[0] : BZ_NO_VALUE, v;
    for (int k = 0; (v = bz_node_reads(layer->node, k)) != BZ_READS_END; k++) {
        if (v < 0 || (k < layer->n_in && layer->in_constant[k]))
            continue;
        bool alike = k < layer->n_in && y >= 0 && s->l->types[v].rank == s->l->types[y].rank;
        restrict_region(s, v, how == ONE_ORDER && !alike ? AS_WRITTEN : how);
        if (how == ONE_ORDER && alike)
            unite(s, v, y);
    }
    for (int k = 0; k < layer->n_out; k++) {
        if ((v = layer->node->out[k]) < 0)
            continue;
        restrict_region(s, v, how);
        if (how == ONE_ORDER && s->l->types[v].rank == s->l->types[y].rank)
            unite(s, v, y);
    }
}

static void find_regions(search *s)
{
    const bz_graph *g = s->l->model->graph;
    int n = s->l->model->n_values;
    s->root = BZ_NEW(&s->work, int, n);
    s->region = BZ_NEW(&s->work, region, n);
    for (int v = 0; v < n; v++)
        s->root[v] = v;
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] >= 0)
            region_of(s, g->inputs[k])->fixed = true;
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] >= 0)
            region_of(s, g->outputs[k])->fixed = true;
    for (int i = 0; i < s->l->n; i++) {
        turn found;
        if (s->why[i] || s->l->layer[i].class == BZ_CONSTANT)
            continue;
        if (!is_turn(&s->l->layer[i], &found)) {
            place_layer(s, &s->l->layer[i]);
            continue;
        }
        BZ_ARENA_ROOM(&s->work, s->turn, s->n_turns);
        s->turn[s->n_turns++] = found;
    }
}

static void list_turns(search *s)
{
    int at = 0;
    for (int i = 0; i < s->n_turns; i++) {
        const bz_node *node = s->l->layer[s->turn[i].layer].node;
        s->turn[i].from = find_root(s, s->same[node->in[0]]);
        s->turn[i].to = find_root(s, s->same[node->out[0]]);
        s->region[s->turn[i].from].n++;
        s->region[s->turn[i].to].n += s->turn[i].to != s->turn[i].from;
    }
    s->around = BZ_NEW(&s->work, int, 2 * s->n_turns);
    for (int v = 0; v < s->l->model->n_values; v++) {
        s->region[v].first = at;
        at += s->region[v].n;
        s->region[v].n = 0;
        for (int k = 0; k < AXES; k++)
            s->region[v].order[k] = (signed char)k;
    }
    for (int i = 0; i < s->n_turns; i++) {
        region *from = &s->region[s->turn[i].from], *to = &s->region[s->turn[i].to];
        s->around[from->first + from->n++] = i;
        if (to != from)
            s->around[to->first + to->n++] = i;
    }
}

/* ---- orders ------------------------------------------------------------------------------------------- */

/* Whether the bytes stay where they are: y's axis k is x's axis perm[k]. Axes of length 1 lie anywhere. */
static bool stays(const turn *t, const signed char *x, const signed char *y)
{
    int at = 0;
    for (int k = 0; k < t->rank; k++) {
        if (t->x->dims[x[k]] == 1)
            continue;
        while (at < t->rank && t->x->dims[t->perm[y[at]]] == 1)
            at++;
        if (at == t->rank || t->perm[y[at++]] != x[k])
            return false;
    }
    return true;
}

/* The order on the one side of a transpose that leaves the bytes where they are, given the one on the other. */
static void fit(const turn *t, bool to, const signed char *given, signed char *order)
{
    int at[AXES] = {0}, rank = t->rank < AXES ? t->rank : AXES;
    for (int k = 0; k < rank; k++)
        at[t->perm[k]] = k;
    for (int k = 0; k < rank; k++)
        order[k] = (signed char)(to ? at[given[k]] : t->perm[given[k]]);
}

static bool is_written(const signed char *order, int rank)
{
    for (int k = 0; k < rank; k++)
        if (order[k] != k)
            return false;
    return true;
}

static bool is_channels_last(const signed char *order, int rank)
{
    bool last = rank > 2 && order[0] == 0 && order[rank - 1] == 1;
    for (int k = 1; k < rank - 1 && last; k++)
        last = order[k] == k + 1;
    return last;
}

static bool allowed(const region *r, const signed char *order, int rank)
{
    if (is_written(order, rank))
        return true;
    return !r->fixed && (!r->image || is_channels_last(order, rank)) && (!r->product || order[rank - 1] >= rank - 2);
}

static double cost_of(const search *s, int number, const signed char *order)
{
    const region *r = &s->region[number];
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        const turn *t = &s->turn[s->around[r->first + i]];
        const signed char *x = t->from == number ? order : s->region[t->from].order,
                          *y = t->to == number ? order : s->region[t->to].order;
        sum += stays(t, x, y) ? 0 : t->elements;
    }
    return sum;
}

/* Each region once in a round: a value that a thousand transposes read is one region. */
static bool improve(search *s, int number, int round)
{
    region *r = &s->region[number];
    if (r->fixed || r->round == round)
        return false;
    r->round = round;
    double least = cost_of(s, number, r->order);
    bool better = false;
    for (int i = 0; i < r->n && i < CANDIDATES && least > 0; i++) {
        const turn *t = &s->turn[s->around[r->first + i]];
        bool to = t->to == number;
        signed char order[AXES];
        memcpy(order, r->order, sizeof order);
        fit(t, to, s->region[to ? t->from : t->to].order, order);
        double cost = allowed(r, order, t->rank) ? cost_of(s, number, order) : least;
        if (cost < least) {
            memcpy(r->order, order, sizeof order);
            least = cost;
            better = true;
        }
    }
    return better;
}

static void find_turned(search *s)
{
    bool better = true;
    find_regions(s);
    list_turns(s);
    for (int round = 1; round <= ROUNDS && better; round++) {
        better = false;
        for (int i = 0; i < s->n_turns; i++) {
            better |= improve(s, s->turn[i].from, round);
            better |= improve(s, s->turn[i].to, round);
        }
    }
    for (int i = 0; i < s->n_turns; i++) {
        const turn *t = &s->turn[i];
        s->why[t->layer] = stays(t, s->region[t->from].order, s->region[t->to].order) ? BZ_TURNED : BZ_RUNS;
    }
}

/* ---- all ---------------------------------------------------------------------------------------------- */

int bz_spares_find(bz_layers *l, const bz_match **matches)
{
    search s = {.l = l, .why = NULL};
    bz_match *list = NULL;
    int n = 0;
    if (!l->model || !l->model->graph->n_outputs)
        return 0;
    s.why = BZ_NEW(&s.work, bz_spare, l->n);
    s.same = BZ_NEW(&s.work, bz_value_id, l->model->n_values);
    find_unread(&s);
    find_repeated(&s);
    find_turned(&s);
    for (int i = 0; i < l->n; i++) {
        bool runs = l->layer[i].n_bodies || l->layer[i].class == BZ_COMPUTE || l->layer[i].class == BZ_MEMORY;
        if (!s.why[i] || !runs)
            continue;
        BZ_ARENA_ROOM(&l->arena, list, n);
        list[n++] = (bz_match){.pattern = bz_spare_name(s.why[i]),
                               .layer = bz_arena_dup(&l->arena, &i, sizeof i),
                               .n = 1,
                               .spare = s.why[i]};
    }
    bz_arena_free(&s.work);
    *matches = list;
    return n;
}
