/* Operators that make tensors out of nothing but attributes and shapes. */
#include "modelproc/eval.h"
#include "modelproc/rule.h"

static int constant_tensor(call *c, const bz_tensor *t)
{
    set_type(c, 0, &(bz_type){.kind = BZ_TYPE_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims});
    c->out_data[0] = tensor_data(c, t);
    return 0;
}

static int shape_constant(call *c)
{
    const bz_attr *a = c->node->n_attrs ? &c->node->attrs[0] : NULL;
    bz_dim n = a ? a->n : 0;
    double real = a && a->kind == BZ_ATTR_FLOAT ? (double)a->f : 0;
    switch (a ? a->kind : BZ_ATTR_NONE) {
    case BZ_ATTR_TENSOR:
        return constant_tensor(c, a->tensor);
    case BZ_ATTR_INT:
        set_out(c, 0, BZ_I64, 0, NULL);
        set_ints(c, 0, &a->i, 1);
        return 0;
    case BZ_ATTR_INTS:
        set_out(c, 0, BZ_I64, 1, &n);
        set_ints(c, 0, a->ints, n);
        return 0;
    case BZ_ATTR_FLOAT:
        set_out(c, 0, BZ_F32, 0, NULL);
        set_reals(c, 0, &real, 1);
        return 0;
    case BZ_ATTR_FLOATS:
        set_out(c, 0, BZ_F32, 1, &n);
        return 0;
    case BZ_ATTR_STRING:
        set_out(c, 0, BZ_STRING, 0, NULL);
        return 0;
    case BZ_ATTR_STRINGS:
        set_out(c, 0, BZ_STRING, 1, &n);
        return 0;
    default:
        return call_fail(c, "it has no value");
    }
}

/* Dimensions listed by operand k; unknown ones become symbols. Returns the rank, -1 on failure, -2
 * when not even that is known. */
static int dims_operand(call *c, int k, bz_dim *dims)
{
    const bz_type *t = need(c, k, 1);
    int64_t n;
    const int64_t *v = in_ints(c, k, &n);
    if (!v)
        n = t->dims[0];
    if (bz_is_symbol(n))
        return -2;
    if (n > BZ_MAX_RANK)
        return call_fail(c, "it asks for %lld dimensions", (long long)n);
    for (int i = 0; i < n; i++) {
        dims[i] = v ? v[i] : new_symbol(c);
        if (!bz_is_symbol(dims[i]) && dims[i] < 0)
            return call_fail(c, "it asks for the negative dimension %lld", (long long)dims[i]);
    }
    return (int)n;
}

static int shape_constantofshape(call *c)
{
    bz_dim dims[BZ_MAX_RANK];
    int rank = dims_operand(c, 0, dims);
    const bz_attr *a = bz_node_attr(c->node, "value");
    bz_dtype t = a && a->kind == BZ_ATTR_TENSOR ? a->tensor->dtype : BZ_F32;
    if (rank == -1)
        return -1;
    if (rank == -2)
        set_unknown(c, 0, t);
    else
        set_out(c, 0, t, rank, dims);
    return 0;
}

/* ConstantFill, which ONNX took back: the shape is `shape`, or that of operand 0, or stands in it; extra_shape follows. */
static int shape_fill(call *c)
{
    int rank, extra;
    const int64_t *shape = attr_ints(c, "shape", &rank), *more = attr_ints(c, "extra_shape", &extra);
    bz_dim dims[BZ_MAX_RANK];
    bz_dtype t;
    if (attr_dtype(c, "dtype", BZ_F32, &t))
        return -1;
    if (c->node->n_in && attr_int(c, "input_as_shape", 0)) {
        rank = dims_operand(c, 0, dims);
        shape = dims;
        if (rank == -1)
            return -1;
        if (rank == -2)
            return set_unknown(c, 0, t);
    } else if (c->node->n_in) {
        const bz_type *x = need_any(c, 0);
        shape = x->dims;
        rank = x->rank;
    }
    if (rank + extra > BZ_MAX_RANK)
        return call_fail(c, "it asks for %d dimensions", rank + extra);
    for (int i = 0; i < rank + extra; i++) {
        dims[i] = i < rank ? shape[i] : more[i - rank];
        if (!bz_is_symbol(dims[i]) && dims[i] < 0)
            return call_fail(c, "it asks for the negative dimension %lld", (long long)dims[i]);
    }
    return set_out(c, 0, t, rank + extra, dims);
}

static int eval_constantofshape(call *c)
{
    const bz_attr *a = bz_node_attr(c->node, "value");
    const bz_tensor *t = a && a->kind == BZ_ATTR_TENSOR && a->tensor->n == 1 ? a->tensor : NULL;
    int64_t i = 0;
    double r = 0;
    values v;
    if (c->out[0].rank < 0 || (a && !t))
        return 0;
    bool real = bz_dtype_is_float(c->out[0].dtype);
    if (t && (real ? bz_tensor_reals(call_model(c), t, &r, NULL) : bz_tensor_ints(call_model(c), t, &i, NULL)))
        return 0;
    if (!eval_room(c, 0, real, bz_type_elements(&c->out[0]), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        if (real)
            v.r[k] = r;
        else
            v.i[k] = i;
    }
    return 0;
}

static int shape_range(call *c)
{
    const bz_type *start = need_any(c, 0);
    static const int64_t ONE = 1;
    static const double ONE_REAL = 1;
    const data *d[3] = {in_data(c, 0), in_data(c, 1), in_data(c, 2)};
    data one = {1, d[0] && d[0]->i ? &ONE : NULL, d[0] && d[0]->r ? &ONE_REAL : NULL};
    bz_dim n = 0;
    d[2] = in_type(c, 2) ? d[2] : &one; /* com.microsoft may leave it out */
    bool known = d[0] && d[1] && d[2] && d[0]->n == 1 && d[1]->n == 1 && d[2]->n == 1;
    for (int k = 0; k < 3 && known; k++)
        known = (d[k]->r != NULL) == (d[0]->r != NULL) && (d[k]->r || !bz_is_symbol(d[k]->i[0]));
    if (!known) {
        n = new_symbol(c);
    } else if (d[0]->r) {
        double span = d[2]->r[0] != 0 ? (d[1]->r[0] - d[0]->r[0]) / d[2]->r[0] : 0;
        if (span > 1e15)
            return call_fail(c, "it makes more elements than any memory could hold");
        n = span > 0 ? (int64_t)span + (span > (double)(int64_t)span) : 0;
    } else {
        int64_t step = d[2]->i[0], span;
        if (step == 0)
            return call_fail(c, "its step is 0");
        if (__builtin_sub_overflow(d[1]->i[0], d[0]->i[0], &span) || span == INT64_MIN)
            return call_fail(c, "it makes more elements than any memory could hold");
        n = (span > 0) == (step > 0) && span ? (span - (step > 0 ? 1 : -1)) / step + 1 : 0;
    }
    return set_out(c, 0, start->dtype, 1, &n);
}

static int eval_range(call *c)
{
    const data *start = in_data(c, 0), *step = in_data(c, 2);
    values v;
    if (!start || !step || !start->i || !step->i || bz_type_elements(&c->out[0]) < 0 ||
        !eval_room(c, 0, false, bz_type_elements(&c->out[0]), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++)
        v.i[k] = start->i[0] + k * step->i[0];
    return 0;
}

static int shape_eyelike(call *c)
{
    const bz_type *x = need(c, 0, 2);
    int64_t t = attr_int(c, "dtype", 0);
    param_int(c, "k", attr_int(c, "k", 0));
    return set_out(c, 0, t > 0 && t < BZ_N_DTYPES ? (bz_dtype)t : x->dtype, 2, x->dims);
}

static const op ROWS[] = {
    {"Constant", NULL, "constant", BZ_CONSTANT, shape_constant, .labels = "> y"},
    {"ConstantOfShape", NULL, "fill", BZ_MEMORY, shape_constantofshape, .eval = eval_constantofshape,
     .labels = "- > y"},
    {"ConstantFill", NULL, "fill", BZ_MEMORY, shape_fill, .labels = "- > y"},
    {"GivenTensorFill", NULL, "fill", BZ_MEMORY, shape_fill, .labels = "- > y"},
    {"Range", NULL, "range", BZ_MEMORY, shape_range, .eval = eval_range, .flags = OP_KEEPS, .labels = "- - - > y"},
    {"Range", .domain = "com.microsoft", .kind = "range", .class = BZ_MEMORY, .shape = shape_range, .flags = OP_KEEPS,
     .labels = "- - - > y"},
    {"EyeLike", NULL, "eye", BZ_MEMORY, shape_eyelike, .labels = "- > y"},
};

const op_table ops_constant = OP_TABLE(ROWS);
