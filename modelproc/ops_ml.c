/* Classical machine learning (ai.onnx.ml). */
#include "modelproc/rule.h"

#define ML "ai.onnx.ml"

static int extractor_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *index = need_any(c, 1);
    bz_dim n;
    if (dim_product(c, index->dims, 0, index->rank, &n))
        return -1;
    if (x->rank == 0)
        return call_fail(c, "a scalar has no features");
    bz_dim dims[BZ_MAX_RANK] = {1};
    int rank = x->rank == 1 ? 2 : x->rank;
    if (x->rank > 1)
        copy_dims(dims, x);
    dims[rank - 1] = n;
    return set_out(c, 0, x->dtype, rank, dims);
}

/* arg: the type of the result, or 0 for that of the operand. */
static int same_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    set_out(c, 0, c->op->arg ? (bz_dtype)c->op->arg : x->dtype, x->rank, x->dims);
    if (!strcmp(c->node->op, "Normalizer"))
        param_text(c, "norm", attr_text(c, "norm", "MAX"));
    return 0;
}

/* Strings become numbers, numbers strings. */
static int category_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    return set_out(c, 0, x->dtype == BZ_STRING ? BZ_I64 : x->dtype ? BZ_STRING : BZ_UNDEFINED, x->rank, x->dims);
}

/* From opset 2 on, the attribute that holds the values says what they are. */
static int label_encoder_shape(call *c)
{
    static const struct {
        const char *attr;
        bz_dtype dtype;
    } VALUES[] = {{"values_strings", BZ_STRING}, {"values_int64s", BZ_I64}, {"values_floats", BZ_F32}};
    if (c->node->opset < 2)
        return category_shape(c);
    const bz_type *x = need_any(c, 0);
    const bz_attr *tensor = bz_node_attr(c->node, "values_tensor");
    bz_dtype t = tensor && tensor->kind == BZ_ATTR_TENSOR ? tensor->tensor->dtype : BZ_UNDEFINED;
    for (int i = 0; i < 3 && !t; i++)
        t = attr_length(c, VALUES[i].attr) ? VALUES[i].dtype : t;
    if (!t)
        return call_fail(c, "it has no values");
    return set_out(c, 0, t, x->rank, x->dims);
}

static int one_hot_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int strings = attr_length(c, "cats_strings"), ints = attr_length(c, "cats_int64s");
    if (x->rank == BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, x);
    dims[x->rank] = strings > ints ? strings : ints;
    return set_out(c, 0, BZ_F32, x->rank + 1, dims);
}

/* What lies behind the first dimension are features, however many dimensions that has. */
static int vectorizer_shape(call *c)
{
    bz_dim batch = 1, width = 0, features;
    for (int k = 0; k < c->node->n_in; k++) {
        const bz_type *x = need_any(c, k);
        if (x->rank == 0 || dim_product(c, x->dims, x->rank > 1, x->rank, &features))
            return call_fail(c, "operand %d is a scalar, which has no features", k);
        bz_dim rows = x->rank > 1 ? x->dims[0] : 1;
        if (k && !dims_fit(rows, batch))
            return call_fail(c, "operands 0 and %d have different batches", k);
        batch = k ? dim_same(batch, rows) : rows;
        width = dim_add(c, width, features);
    }
    int n;
    const int64_t *sizes = attr_ints(c, "inputdimensions", &n);
    for (int i = 0; i < n; i++) {
        if (sizes[i] < 0)
            return call_fail(c, "inputdimensions holds %lld", (long long)sizes[i]);
        width = i ? dim_add(c, width, sizes[i]) : sizes[i];
    }
    return set_out(c, 0, BZ_F32, 2, (bz_dim[]){batch, width});
}

static int cast_map_shape(call *c)
{
    const char *to = attr_text(c, "cast_to", "TO_FLOAT");
    bz_dtype t = !strcmp(to, "TO_STRING") ? BZ_STRING : !strcmp(to, "TO_INT64") ? BZ_I64 : BZ_F32;
    bool sparse = !strcmp(attr_text(c, "map_form", "DENSE"), "SPARSE");
    int64_t most = attr_int(c, "max_map", 1);
    if (sparse && most < 0)
        return call_fail(c, "max_map is %lld", (long long)most);
    return set_out(c, 0, t, 2, (bz_dim[]){1, sparse ? most : new_symbol(c)});
}

static int dict_vectorizer_shape(call *c)
{
    const bz_type *map = in_type(c, 0);
    int strings = attr_length(c, "string_vocabulary"), ints = attr_length(c, "int64_vocabulary");
    bz_dtype t = map && map->kind == BZ_TYPE_MAP && map->elem ? map->elem->dtype : BZ_UNDEFINED;
    return set_out(c, 0, t, 2, (bz_dim[]){1, strings > ints ? strings : ints});
}

static int zip_map_shape(call *c)
{
    static const bz_type VALUE = {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32};
    bz_type *map = BZ_NEW(c->arena, bz_type, 1);
    *map = (bz_type){.kind = BZ_TYPE_MAP,
                     .dtype = attr_length(c, "classlabels_strings") ? BZ_STRING : BZ_I64,
                     .rank = -1,
                     .elem = &VALUE};
    return set_type(c, 0, &(bz_type){.kind = BZ_TYPE_SEQUENCE, .rank = -1, .elem = map});
}

static int samples(call *c, bz_dim *n)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank != 1 && x->rank != 2)
        return call_fail(c, "it wants [features] or [samples, features]");
    *n = x->rank == 2 ? x->dims[0] : 1;
    return 0;
}

static int class_count(const call *c)
{
    static const char *const LABELS[] = {"classlabels_strings", "classlabels_ints", "classlabels_int64s"};
    int most = 0;
    for (int i = 0; i < 3; i++) {
        int n = attr_length(c, LABELS[i]);
        most = n > most ? n : most;
    }
    return most;
}

/* A support vector classifier without probabilities votes over pairs of classes. */
static bz_dim score_count(call *c)
{
    bz_dim classes = class_count(c), intercepts = attr_length(c, "intercepts");
    if (!strcmp(c->node->op, "LinearClassifier"))
        return intercepts == 1 && classes == 2 ? 2 : intercepts ? intercepts : classes;
    if (attr_length(c, "vectors_per_class") && !attr_length(c, "prob_a"))
        return classes > 2 ? classes * (classes - 1) / 2 : 2;
    return classes;
}

static int classifier_shape(call *c)
{
    bz_dim n;
    if (samples(c, &n))
        return -1;
    set_out(c, 0, attr_length(c, "classlabels_strings") ? BZ_STRING : BZ_I64, 1, &n);
    return set_out(c, 1, BZ_F32, 2, (bz_dim[]){n, score_count(c)});
}

static int regressor_shape(call *c)
{
    bz_dim n = 0;
    int64_t targets = attr_int(c, !strcmp(c->node->op, "LinearRegressor") ? "targets" : "n_targets", 1);
    if (samples(c, &n))
        return -1;
    if (targets < 0 || bz_is_symbol(targets))
        return call_fail(c, "%lld targets", (long long)targets);
    return set_out(c, 0, c->op->arg ? BZ_F32 : c->in[0].dtype, 2, (bz_dim[]){n, targets});
}

/* Every sample meets every coefficient, which are a row for each target, or the support vectors. */
static void linear_cost(call *c)
{
    const bz_type *x = &c->in[0];
    int coefficients = attr_length(c, "coefficients"), support = attr_length(c, "support_vectors");
    c->macs = count_mul(x->rank == 2 ? x->dims[0] : 1, support > coefficients ? support : coefficients);
}

static void note_trees(call *c)
{
    int nodes = attr_length(c, "nodes_modes"), leaves = attr_length(c, "leaf_targetids");
    param_int(c, "nodes", nodes);
    if (leaves)
        param_int(c, "leaves", leaves);
}

static int tree_classifier_shape(call *c)
{
    note_trees(c);
    return classifier_shape(c);
}

static int tree_regressor_shape(call *c)
{
    note_trees(c);
    return regressor_shape(c);
}

static const op ROWS[] = {
    {"ArrayFeatureExtractor", ML, "featureextractor", BZ_MEMORY, extractor_shape, .labels = "x > y"},
    {"Binarizer", ML, "binarizer", BZ_COMPUTE, same_shape, .flops = 1, .labels = "x"},
    {"Imputer", ML, "imputer", BZ_COMPUTE, same_shape, .flops = 1, .labels = "x"},
    {"Normalizer", ML, "normalizer", BZ_COMPUTE, same_shape, .flops = 3, .labels = "x", .arg = BZ_F32},
    {"Scaler", ML, "scaler", BZ_COMPUTE, same_shape, .flops = 2, .labels = "x", .arg = BZ_F32},
    {"CategoryMapper", ML, "categorymapper", BZ_MEMORY, category_shape, .labels = "x"},
    {"LabelEncoder", ML, "labelencoder", BZ_MEMORY, label_encoder_shape, .labels = "x"},
    {"OneHotEncoder", ML, "onehotencoder", BZ_MEMORY, one_hot_shape, .labels = "x > y"},
    {"FeatureVectorizer", ML, "featurevectorizer", BZ_MEMORY, vectorizer_shape, .labels = "x..."},
    {"CastMap", ML, "castmap", BZ_MEMORY, cast_map_shape, .flags = OP_RANKLESS, .labels = "- > y"},
    {"DictVectorizer", ML, "dictvectorizer", BZ_MEMORY, dict_vectorizer_shape, .flags = OP_RANKLESS, .labels = "- > y"},
    {"ZipMap", ML, "zipmap", BZ_MEMORY, zip_map_shape, .flags = OP_RANKLESS, .labels = "x"},
    {"LinearClassifier", ML, "linearclassifier", BZ_COMPUTE, classifier_shape, .cost = linear_cost,
     .labels = "x > - scores"},
    {"LinearRegressor", ML, "linearregressor", BZ_COMPUTE, regressor_shape, .cost = linear_cost, .labels = "x > y",
     .arg = BZ_F32},
    {"SVMClassifier", ML, "svmclassifier", BZ_COMPUTE, classifier_shape, .cost = linear_cost, .labels = "x > - scores"},
    {"SVMRegressor", ML, "svmregressor", BZ_COMPUTE, regressor_shape, .cost = linear_cost, .labels = "x > y",
     .arg = BZ_F32},
    {"TreeEnsemble", ML, "trees", BZ_COMPUTE, tree_regressor_shape, .labels = "x > y"},
    {"TreeEnsembleClassifier", ML, "trees", BZ_COMPUTE, tree_classifier_shape, .labels = "x > - scores"},
    {"TreeEnsembleRegressor", ML, "trees", BZ_COMPUTE, tree_regressor_shape, .labels = "x > y", .arg = BZ_F32},
};
const op_table ops_ml = OP_TABLE(ROWS);
