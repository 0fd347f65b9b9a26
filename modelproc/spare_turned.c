/* Transposes that the calls around them take along: values lie in regions of one order, and a transpose between two regions whose orders
 * make up for it moves nothing. */
#include "modelproc/spare.h"

#include <string.h>

enum {
    AXES = 8,       /* a transpose of more is none that a call takes along */
    ROUNDS = 4,     /* in which each region looks for a better order */
    CANDIDATES = 8, /* transposes around a region whose orders it tries */
};

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
    const spare_search *all;
    bz_layers *l;
    int *root;      /* [values]: union of values to regions */
    region *region; /* [values]: of roots */
    turn *turn;
    int n_turns, *around; /* turns by region */
    bz_arena *work;
} search;

static int find_root(search *s, int v)
{
    while (s->root[v] != v)
        v = s->root[v] = s->root[s->root[v]];
    return v;
}

static region *region_of(search *s, bz_value_id v)
{
    return &s->region[find_root(s, s->all->same[v])];
}

static void unite(search *s, bz_value_id v, bz_value_id w)
{
    int a = find_root(s, s->all->same[v]), b = find_root(s, s->all->same[w]);
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
    BY_ELEMENT,
    AS_WRITTEN
} order_rule;

int spare_order_of(const bz_layer *l)
{
    for (int i = 0; i < ops_elementwise.n; i++)
        if (ops_elementwise.rows[i].kind == l->kind)
            return strcmp(l->kind, "swiglu") != 0 ? BY_ELEMENT : AS_WRITTEN;
    if (bz_has_word("identity dropout concat split slice pad softmax logsoftmax batchnorm", l->kind))
        return ONE_ORDER;
    if (bz_layer_has(l, BZ_LAYER_WINDOW))
        return IMAGES;
    if (!strcmp(l->kind, "einsum"))
        return LETTERS;
    return bz_has_word("matmul gemm", l->kind) ? PRODUCTS : AS_WRITTEN;
}

/* What works by element and is a view changes the shape. */
static order_rule rule_of(const search *s, const bz_layer *l)
{
    int order = spare_kind_of(s->all, l)->order;
    return order != BY_ELEMENT ? (order_rule)order : l->class == BZ_VIEW ? AS_WRITTEN : ONE_ORDER;
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
    order_rule how = rule_of(s, layer);
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

static void find_regions(search *s)
{
    const bz_graph *g = s->l->model->graph;
    int n = s->l->model->n_values;
    s->root = BZ_NEW(s->work, int, n);
    s->region = BZ_NEW(s->work, region, n);
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
        bool runs = !s->all->why[i] || s->all->why[i] == BZ_FOLDED; /* the axes stay where they are */
        if (!runs || s->l->layer[i].class == BZ_CONSTANT)
            continue;
        if (!is_turn(&s->l->layer[i], &found)) {
            place_layer(s, &s->l->layer[i]);
            continue;
        }
        BZ_ARENA_ROOM(s->work, s->turn, s->n_turns);
        s->turn[s->n_turns++] = found;
    }
}

static void list_turns(search *s)
{
    int at = 0;
    for (int i = 0; i < s->n_turns; i++) {
        const bz_node *node = s->l->layer[s->turn[i].layer].node;
        s->turn[i].from = find_root(s, s->all->same[node->in[0]]);
        s->turn[i].to = find_root(s, s->all->same[node->out[0]]);
        s->region[s->turn[i].from].n++;
        s->region[s->turn[i].to].n += s->turn[i].to != s->turn[i].from;
    }
    s->around = BZ_NEW(s->work, int, 2 * s->n_turns);
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
static void improve(search *s, int number, int round)
{
    region *r = &s->region[number];
    if (r->fixed || r->round == round)
        return;
    r->round = round;
    double least = cost_of(s, number, r->order);
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
        }
    }
}

void spare_find_turned(spare_search *all)
{
    search found = {.all = all, .l = all->l, .work = &all->work}, *s = &found;
    find_regions(s);
    list_turns(s);
    for (int round = 1; round <= ROUNDS; round++)
        for (int i = 0; i < s->n_turns; i++) {
            improve(s, s->turn[i].from, round);
            improve(s, s->turn[i].to, round);
        }
    for (int i = 0; i < s->n_turns; i++) {
        const turn *t = &s->turn[i];
        s->all->why[t->layer] = stays(t, s->region[t->from].order, s->region[t->to].order) ? BZ_TURNED : BZ_RUNS;
    }
}
