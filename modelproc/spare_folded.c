/* Layers whose constants another layer takes along. A factor or a summand for each channel goes into the weights and the bias of the product
 * before it, or into the scale and the shift before it; a factor also into the product behind it, and a number into any product, as the factor that
 * libraries call alpha. Padding goes into the window behind it, a limit into the limit before it. ONNX Runtime does so in its fusions of convolutions
 * with Mul, Add and BatchNormalization, of products with scales, of padding, and of Relu with Clip; consecutive constants are plain
 * constant folding. */
#include "modelproc/spare.h"

#include <math.h>
#include <string.h>

/* Constants that go along, by the axis that they have a value for each place of, or one of these. */
enum { ANY_AXIS = -1, NUMBERS = -2, NO_CONSTANT = -3, NOT_YET = -4 };

/* What the layers that make a value take along, as long as nobody else reads it. */
typedef struct {
    bool scale, shift, limit;
    signed char axis; /* of scale and shift */
} before;

/* What all layers that read a value take along. */
typedef struct {
    signed char scale;  /* axis */
    bool zeros, lowest; /* as padding */
} behind;

typedef struct {
    spare_search *s;
    int *readers; /* [values] */
    before *before;
    behind *behind;
} search;

/* A factor, a summand, or both, that are constant. */
typedef struct {
    bool scales, shifts;
    int x, axis; /* operand that they are applied to */
} step;

static bool is_known(const bz_layer *l, int k)
{
    return k < l->n_in && l->in_constant[k];
}

static int axis_of(const bz_type *constant, const bz_type *y)
{
    int axis = NUMBERS;
    if (constant->kind != BZ_TYPE_TENSOR || constant->rank < 0 || constant->rank > y->rank)
        return NO_CONSTANT;
    for (int k = 0; k < constant->rank; k++) {
        int at = y->rank - constant->rank + k;
        if (constant->dims[k] == 1)
            continue;
        if (axis >= 0 || constant->dims[k] != y->dims[at])
            return NO_CONSTANT;
        axis = at;
    }
    return axis;
}

static bool is_step(const search *f, const bz_layer *l, step *out)
{
    const spare_kind *kind = spare_kind_of(f->s, l);
    const bz_type *y = &l->out[0];
    int other = is_known(l, 0) ? 0 : 1;
    *out = (step){kind->scales, kind->shifts, 1 - other, NUMBERS};
    if ((!kind->scales && !kind->shifts) || l->n_out != 1 || !bz_dtype_is_float(y->dtype) || y->rank < 0 ||
        y->rank > INT8_MAX)
        return false;
    if (kind->scales && kind->shifts) { /* a batch normalization */
        *out = (step){true, true, 0, 1};
        return l->n_in == 5 && is_known(l, 1) && is_known(l, 2) && is_known(l, 3) && is_known(l, 4) &&
               !bz_layer_int(l, "training", 0);
    }
    if (!strcmp(l->kind, "neg"))
        return true;
    if (l->n_in != 2 || !is_known(l, other) || is_known(l, 1 - other) || bz_layer_param(l, "axis") ||
        (!other && bz_has_word("sub div", l->kind)) || bz_type_elements(&l->in[1 - other]) != bz_type_elements(y))
        return false;
    out->axis = axis_of(&l->in[other], y);
    return out->axis != NO_CONSTANT;
}

/* One to whose result nothing else is done. */
static bool is_product(const search *f, const bz_layer *l)
{
    return spare_kind_of(f->s, l)->product && !*l->node->domain && bz_dtype_is_float(l->out[0].dtype) &&
           l->out[0].rank >= 0 && l->out[0].rank <= INT8_MAX;
}

/* The axis of operand k by whose places the weights can be scaled instead. */
static int scaled_axis(const bz_layer *l, int k)
{
    bool weights = !k && is_known(l, 1);
    if (!weights)
        return NUMBERS;
    if (!strcmp(l->kind, "gemm"))
        return bz_layer_int(l, "transa", 0) ? 0 : 1;
    return !strcmp(l->kind, "matmul") ? l->in[0].rank - 1 : 1;
}

static const bz_param *perm_of(const search *f, const bz_layer *l)
{
    return spare_kind_of(f->s, l)->turns ? bz_layer_param(l, "perm") : NULL;
}

/* Where an axis is on the other side of a transpose. */
static int turned(const bz_param *perm, int axis, bool to)
{
    for (int k = 0; axis >= 0 && k < perm->n; k++)
        if ((to ? perm->v[k] : k) == axis)
            return to ? k : (int)perm->v[k];
    return axis;
}

static before before_of(const search *f, bz_value_id v)
{
    return v >= 0 && f->readers[v] == 1 ? f->before[v] : (before){.axis = ANY_AXIS};
}

static bool goes(int constant, int axis)
{
    return constant == NUMBERS || axis == ANY_AXIS || constant == axis;
}

/* Both in one: a constant for each place of an axis stands for a number, too. */
static before join(before b, const step *t)
{
    if (!goes(t->axis, b.axis))
        b = (before){.axis = ANY_AXIS};
    b.axis = t->axis >= 0 ? (signed char)t->axis : b.axis;
    return (before){b.scale || t->scales, b.shift || t->shifts, false, b.axis};
}

static bool is_limit(const search *f, const bz_layer *l)
{
    return spare_kind_of(f->s, l)->limits && (l->n_in < 2 || l->node->in[1] < 0 || is_known(l, 1)) &&
           (l->n_in < 3 || l->node->in[2] < 0 || is_known(l, 2));
}

static before look_back(search *f, const bz_layer *l)
{
    step t;
    const bz_param *perm = perm_of(f, l);
    before b = before_of(f, spare_operand(f->s, l, 0));
    bool view = l->class == BZ_VIEW && l->n_out == 1;
    if (perm || view) {
        b.axis = (signed char)(perm ? turned(perm, b.axis, true) : NUMBERS);
        return b;
    }
    if (is_limit(f, l)) {
        f->s->why[l->index] = b.limit ? BZ_FOLDED : BZ_RUNS;
        return (before){.limit = true, .axis = ANY_AXIS};
    }
    if (is_product(f, l)) {
        int last = !strcmp(l->kind, "matmul") ? l->out[0].rank - 1 : 1;
        bool known = is_known(l, 1) && (strcmp(l->kind, "matmul") != 0 || l->in[1].rank == 2);
        return (before){true, known && is_known(l, 2), false, (signed char)(known ? last : NUMBERS)};
    }
    if (!is_step(f, l, &t))
        return (before){.axis = ANY_AXIS};
    b = before_of(f, spare_operand(f->s, l, t.x));
    if ((b.scale || !t.scales) && (b.shift || !t.shifts) && goes(t.axis, b.axis))
        f->s->why[l->index] = BZ_FOLDED;
    return join(b, &t);
}

/* What a Pad puts around an image: zeros, or what no maximum takes; false where it is something else. */
static bool is_padding(const search *f, const bz_layer *l, behind *out)
{
    if (!spare_kind_of(f->s, l)->pads)
        return false;
    const bz_param *pad = bz_layer_param(l, "pad"), *mode = bz_layer_param(l, "mode");
    double number = 0;
    if (!pad || !mode || !mode->text || strcmp(mode->text, "constant") != 0 || pad->n < 6)
        return false;
    for (int k = 0; k < pad->n; k++)
        if (pad->v[k] < 0 || (pad->v[k] && k % (pad->n / 2) < 2))
            return false;
    const bz_attr *a = bz_node_attr(l->node, "value");
    if (l->n_in > 2 && l->node->in[2] >= 0 ? !spare_number(f->s, l, 2, &number) : a && a->kind == BZ_ATTR_FLOAT)
        number = a && a->kind == BZ_ATTR_FLOAT ? (double)a->f : NAN;
    *out = (behind){NO_CONSTANT, number >= 0 && number <= 0, isinf(number) && number < 0};
    return out->zeros || out->lowest;
}

/* Whether an average is over the padding, too, or can be: the window has none yet. */
static bool counts_padding(const bz_layer *l)
{
    const bz_param *pad = bz_layer_param(l, "pad");
    bool none = pad;
    for (int k = 0; none && k < pad->n; k++)
        none = !pad->v[k];
    return none || bz_layer_int(l, "count_pad", 0);
}

/* What layer l, which reads a value as operand k, takes along. */
static behind taken_along(const search *f, const bz_layer *l, int k)
{
    static const behind NOTHING = {.scale = NO_CONSTANT};
    const bz_param *perm = perm_of(f, l);
    behind y = l->n_out == 1 && l->node->out[0] >= 0 ? f->behind[l->node->out[0]] : NOTHING, padding;
    step t;
    if (is_product(f, l) && k < 2)
        return (behind){(signed char)scaled_axis(l, k), !k && !strcmp(l->kind, "conv"), false};
    if (!k && !strcmp(l->kind, "maxpool") && l->n_out == 1) /* places would count the padding */
        return (behind){NO_CONSTANT, false, true};
    if (!k && !strcmp(l->kind, "avgpool"))
        return (behind){NO_CONSTANT, counts_padding(l), false};
    if (is_padding(f, l, &padding) && !k)
        return (behind){NO_CONSTANT, y.zeros && padding.zeros, y.lowest && padding.lowest};
    if (perm)
        return (behind){(signed char)turned(perm, y.scale, false), false, false};
    if (l->class == BZ_VIEW && !k)
        return (behind){(signed char)(y.scale >= 0 ? NUMBERS : y.scale), false, false};
    return f->s->why[l->index] == BZ_FOLDED && is_step(f, l, &t) && !t.shifts ? (behind){y.scale, false, false}
                                                                              : NOTHING;
}

static behind both(behind a, behind b)
{
    if (a.scale == NOT_YET)
        return b;
    bool none = a.scale == NO_CONSTANT || b.scale == NO_CONSTANT;
    signed char scale = a.scale == b.scale ? a.scale : none ? NO_CONSTANT : NUMBERS;
    return (behind){scale, a.zeros && b.zeros, a.lowest && b.lowest};
}

static void look_ahead(search *f, const bz_layer *l)
{
    behind y = l->n_out == 1 && l->node->out[0] >= 0 ? f->behind[l->node->out[0]] : (behind){NO_CONSTANT, false, false},
           p;
    step t;
    bz_value_id v;
    bool read = y.scale != NOT_YET, scaled = read && is_step(f, l, &t) && !t.shifts;
    if (scaled && (t.axis == NUMBERS ? y.scale >= NUMBERS : t.axis == y.scale))
        f->s->why[l->index] = BZ_FOLDED;
    if (read && is_padding(f, l, &p) && ((p.zeros && y.zeros) || (p.lowest && y.lowest)))
        f->s->why[l->index] = BZ_FOLDED;
    for (int k = 0; (v = bz_node_reads(l->node, k)) != BZ_READS_END; k++)
        if (v >= 0)
            f->behind[f->s->same[v]] = both(f->behind[f->s->same[v]], taken_along(f, l, k));
}

void spare_find_folded(spare_search *s)
{
    const bz_layers *layers = s->l;
    const bz_graph *g = layers->model->graph;
    int n = layers->model->n_values;
    search f = {s, BZ_NEW(&s->work, int, n), BZ_NEW(&s->work, before, n), BZ_NEW(&s->work, behind, n)};
    bz_value_id v;
    for (int i = 0; i < n; i++) {
        f.before[i].axis = ANY_AXIS;
        f.behind[i].scale = NOT_YET;
    }
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] >= 0) {
            f.readers[s->same[g->outputs[k]]]++;
            f.behind[s->same[g->outputs[k]]].scale = NO_CONSTANT;
        }
    for (int i = 0; i < layers->n; i++)
        for (int k = 0; !s->why[i] && (v = bz_node_reads(layers->layer[i].node, k)) != BZ_READS_END; k++)
            if (v >= 0)
                f.readers[s->same[v]]++;
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        if (!s->why[i] && l->class != BZ_CONSTANT && l->n_out == 1 && l->node->out[0] >= 0 && l->n_in)
            f.before[l->node->out[0]] = look_back(&f, l);
    }
    for (int i = layers->n; i-- > 0;)
        if ((!s->why[i] || s->why[i] == BZ_FOLDED) && layers->layer[i].class != BZ_CONSTANT)
            look_ahead(&f, &layers->layer[i]);
}
