/* Keys and costs: what remains of a node once shapes and parameters are known. */
#include "modelproc/infer.h"

#include <string.h>

const char *bz_train_phase_name(bz_train_phase p)
{
    static const char *const NAMES[] = {"forward", "loss", "backward", "update"};
    return NAMES[p];
}

const char *bz_class_name(bz_class c)
{
    static const char *const NAMES[] = {"compute", "memory", "view", "constant"};
    return NAMES[c];
}

const bz_param *bz_layer_param(const bz_layer *layer, const char *name)
{
    for (int i = 0; i < layer->n_params; i++)
        if (!strcmp(layer->params[i].name, name))
            return &layer->params[i];
    return NULL;
}

int64_t bz_layer_int(const bz_layer *layer, const char *name, int64_t otherwise)
{
    const bz_param *p = bz_layer_param(layer, name);
    return p && p->n == 1 ? p->v[0] : otherwise;
}

static const struct {
    const char *kinds;
    unsigned traits;
} KINDS[] = {
    {"conv deconv qconv causalconv deformconv", BZ_LAYER_CONVOLUTION},
    {"conv_data conv_weights", BZ_LAYER_CONVOLUTION_GRADIENT},
    {"sgd momentum adam adamw", BZ_LAYER_UPDATE},
    {"dropout bernoulli multinomial randomnormal randomuniform", BZ_LAYER_RANDOM},
    /* pool: of a recording's calls */
    {"pool maxpool avgpool lppool globalmaxpool globalavgpool globallppool", BZ_LAYER_POOL},
    {"batchnorm instancenorm groupnorm layernorm rmsnorm lpnorm skiplayernorm skiprmsnorm skipgroupnorm embedlayernorm",
     BZ_LAYER_NORMALIZATION},
};

bool bz_layer_has(const bz_layer *layer, unsigned traits)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (bz_has_word(KINDS[i].kinds, layer->kind))
            return KINDS[i].traits & traits;
    return false;
}

const char *bz_layer_step_kind(const bz_layer *layer)
{
    return !strcmp(layer->kind, "conv") && layer->n_in && layer->in[0].rank == 3 ? "conv1d" : layer->kind;
}

int64_t bz_type_elements(const bz_type *t)
{
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0)
        return -1;
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0) /* a symbol, or what no tensor has */
            return -1;
        if (__builtin_mul_overflow(n, t->dims[i], &n) || n > BZ_MAX_ELEMENTS)
            return -1;
    }
    return n;
}

int64_t bz_type_bytes(const bz_type *t)
{
    int64_t n = bz_type_elements(t);
    return n < 0 ? -1 : (n * bz_dtype_bits(t->dtype) + 7) / 8;
}

bool bz_type_is_static(const bz_type *t)
{
    if (t->kind == BZ_TYPE_NONE || t->kind == BZ_TYPE_MAP)
        return true;
    if (t->kind == BZ_TYPE_SEQUENCE || t->kind == BZ_TYPE_OPTIONAL)
        return t->elem && bz_type_is_static(t->elem);
    return bz_type_elements(t) >= 0;
}

static void put_dims(const bz_model *model, const bz_type *t, bz_buf *out)
{
    char name[64];
    if (t->rank < 0)
        bz_buf_putc(out, '?');
    else if (t->rank == 0)
        bz_buf_puts(out, "scalar");
    for (int i = 0; i < t->rank; i++) {
        if (i)
            bz_buf_putc(out, 'x');
        if (!bz_is_symbol(t->dims[i]))
            bz_buf_int(out, t->dims[i]);
        else
            bz_buf_clean(out, model ? bz_symbol_text(model, t->dims[i], name) : "?");
    }
}

void bz_type_text(const bz_model *model, const bz_type *t, bz_buf *out)
{
    static const char *const WRAPPED[] = {
        [BZ_TYPE_SEQUENCE] = "seq(", [BZ_TYPE_OPTIONAL] = "optional(", [BZ_TYPE_MAP] = "map("};
    switch (t->kind) {
    case BZ_TYPE_NONE:
        bz_buf_puts(out, "-");
        break;
    case BZ_TYPE_TENSOR:
    case BZ_TYPE_SPARSE:
        put_dims(model, t, out);
        break;
    default:
        bz_buf_puts(out, WRAPPED[t->kind]);
        if (t->elem)
            bz_type_text(model, t->elem, out);
        bz_buf_putc(out, ')');
    }
}

/* The labels of an operator's row, one after the other: "x w b". The last one serves all further
 * operands when it ends in "...", numbered then. */
typedef struct {
    const char *at;
    int repeats;
} labels;

/* Length of the next label, 0 where there is none or the operand is no data. *number is 0, or what
 * to put behind the label. */
static size_t next_label(labels *l, const char **label, int *number)
{
    while (*l->at == ' ')
        l->at++;
    size_t n = 0;
    while (l->at[n] && l->at[n] != ' ' && l->at[n] != '.')
        n++;
    *label = l->at;
    *number = 0;
    if (l->at[n] == '.')
        *number = l->repeats++ ? l->repeats : 0;
    else if (*l->at != '>')
        l->at += n;
    return *l->at == '>' || **label == '-' || **label == '>' ? 0 : n;
}

/* Returns how many of their elements are constants. setting[k] (may be NULL): the row says "-" of operand k. */
static int64_t put_operands(infer *inf, const bz_type *types, const bz_value_id *ids, int n, const char *spec,
                            bool *setting)
{
    labels l = {.at = spec};
    const char *label;
    int number;
    int64_t constants = 0;
    for (int k = 0; k < n; k++) {
        size_t length = next_label(&l, &label, &number);
        if (setting)
            setting[k] = !length && *label == '-';
        if (!length || types[k].kind == BZ_TYPE_NONE)
            continue;
        const bz_tensor *init = ids[k] >= 0 ? inf->model->values[inf->source[ids[k]]].init : NULL;
        int64_t elements = bz_type_elements(&types[k]); /* without filling, which a rule may have left out */
        bz_count_add(&constants, !init ? 0 : elements >= 0 ? elements : init->n);
        bz_buf_putc(&inf->key, ' ');
        bz_buf_put(&inf->key, label, length);
        if (number)
            bz_buf_int(&inf->key, number);
        bz_buf_putc(&inf->key, '=');
        bz_type_text(NULL, &types[k], &inf->key);
    }
    return constants;
}

/* The data type is not part of the key as long as it is a floating-point one: which of them to run
 * a layer in is the user's choice. Integers are another kind of work. */
static void put_type(infer *inf, const call *c)
{
    const bz_type *t = c->node->n_in ? &c->in[0] : c->node->n_out ? &c->out[0] : NULL;
    if (t && t->kind == BZ_TYPE_TENSOR && t->dtype && !bz_dtype_is_float(t->dtype)) {
        bz_buf_puts(&inf->key, " type=");
        bz_buf_puts(&inf->key, bz_dtype_name(t->dtype));
    }
}

/* Words in a key hold no blanks, so that it can be taken apart again. */
static void put_word(bz_buf *b, const char *word)
{
    for (; *word; word++)
        bz_buf_putc(b, *word > ' ' && *word < 127 ? *word : '_');
}

static void put_params(infer *inf, const call *c)
{
    for (int i = 0; i < c->n_params; i++) {
        const bz_param *p = &c->params[i];
        bz_buf_putc(&inf->key, ' ');
        bz_buf_puts(&inf->key, p->name);
        bz_buf_putc(&inf->key, '=');
        if (p->text)
            put_word(&inf->key, p->text);
        for (int k = 0; k < p->n; k++) {
            if (k)
                bz_buf_putc(&inf->key, 'x');
            if (bz_is_symbol(p->v[k]))
                bz_buf_putc(&inf->key, '?');
            else
                bz_buf_int(&inf->key, p->v[k]);
        }
    }
}

/* Operators without a row of their own, and functions, are told apart by name. */
static void put_custom(infer *inf, const call *c)
{
    if (*c->op->name)
        return;
    bz_buf_puts(&inf->key, " op=");
    put_word(&inf->key, c->node->domain);
    bz_buf_putc(&inf->key, '.');
    put_word(&inf->key, c->node->op);
}

/* Weights that are stored narrower than they are computed with: the work is the same, the bytes are not. */
static void put_stored(infer *inf, const call *c)
{
    int64_t sum = 0;
    for (int k = 0; k < c->node->n_in; k++)
        if (c->node->in[k] >= 0 && inf->stored[c->node->in[k]])
            bz_count_add(&sum, inf->stored[c->node->in[k]]);
    if (!sum)
        return;
    bz_buf_puts(&inf->key, " stored=");
    bz_buf_int(&inf->key, sum);
}

static void make_key(infer *inf, const call *c, bz_layer *layer)
{
    const char *spec = c->op->labels ? c->op->labels : "x...", *results = strchr(spec, '>');
    bz_buf_clear(&inf->key);
    bz_buf_puts(&inf->key, c->op->kind);
    put_custom(inf, c);
    layer->params_count = put_operands(inf, c->in, c->node->in, c->node->n_in, spec, (bool *)layer->in_setting);
    for (int b = 0; c->node->function >= 0 && b < c->n_bodies; b++) { /* inside of it is said what a weight is */
        layer->params_count = 0;
        for (int i = 0; i < c->bodies[b].n; i++)
            bz_count_add(&layer->params_count, c->bodies[b].layers[i].params_count);
    }
    if (results)
        put_operands(inf, c->out, c->node->out, c->node->n_out, results + 1, NULL);
    put_params(inf, c);
    put_type(inf, c);
    put_stored(inf, c);
    layer->key = bz_arena_strn(inf->arena, inf->key.data, inf->key.len);
    layer->hash = bz_hash_bytes(inf->key.data, inf->key.len);
}

static int64_t saturated_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Every operand and result once; -1 where a shape depends on data. *most: elements of the larger of first operand
 * and first result. */
static int64_t operand_bytes(const call *c, int64_t *most)
{
    const int64_t *stored = c->inf->stored;
    int64_t total = 0;
    *most = 0;
    for (int k = 0; k < c->node->n_in + c->node->n_out; k++) {
        const bz_type *t = &c->in[k]; /* results stand behind the operands */
        if (t->kind != BZ_TYPE_TENSOR) {
            if (!bz_type_is_static(t))
                return -1;
            continue;
        }
        int64_t n = bz_type_elements(t);
        if (n < 0)
            return -1;
        bz_value_id v = k < c->node->n_in ? c->node->in[k] : BZ_NO_VALUE;
        int64_t bytes = (n * bz_dtype_bits(t->dtype) + 7) / 8;
        bz_count_add(&total, v >= 0 && stored[v] && stored[v] < bytes ? stored[v] : bytes);
        if ((k == 0 || k == c->node->n_in) && n > *most)
            *most = n;
    }
    return total;
}

/* Costs of bodies: the cheaper branch of an If, trips × body of a loop. */
static void add_bodies(bz_layer *layer)
{
    int64_t least_macs = INT64_MAX, least_flops = INT64_MAX, least_bytes = INT64_MAX;
    bool branches = !strcmp(layer->kind, "if");
    for (int b = 0; b < layer->n_bodies; b++) {
        const bz_body *body = &layer->bodies[b];
        int64_t macs = 0, flops = 0, bytes = 0;
        for (int i = 0; i < body->n; i++) {
            bz_count_add(&macs, body->layers[i].macs);
            bz_count_add(&flops, body->layers[i].flops);
            bz_count_add(&bytes, body->layers[i].bytes);
            layer->priced &= body->layers[i].priced;
        }
        macs = saturated_product(macs, body->trips);
        flops = saturated_product(flops, body->trips);
        bytes = saturated_product(bytes, body->trips);
        if (branches && body->trips) {
            least_macs = macs < least_macs ? macs : least_macs;
            least_flops = flops < least_flops ? flops : least_flops;
            least_bytes = bytes < least_bytes ? bytes : least_bytes;
        } else {
            bz_count_add(&layer->macs, macs);
            bz_count_add(&layer->flops, flops);
            bz_count_add(&layer->bytes, bytes);
        }
    }
    if (branches && least_flops != INT64_MAX) {
        layer->macs = least_macs;
        layer->flops = least_flops;
        layer->bytes = least_bytes;
    }
}

/* Operands and results with 1 for each dimension that depends on data. */
static bz_type *with_ones(const call *c)
{
    const int n = c->node->n_in + c->node->n_out; /* results stand behind the operands */
    bz_type *ones = bz_arena_dup(c->arena, c->in, (size_t)n * sizeof *ones);
    for (int i = 0; i < n; i++) {
        if (ones[i].kind != BZ_TYPE_TENSOR || ones[i].rank < 1)
            continue;
        bz_dim *dims = bz_arena_dup(c->arena, ones[i].dims, (size_t)ones[i].rank * sizeof *dims);
        for (int d = 0; d < ones[i].rank; d++)
            dims[d] = bz_is_symbol(dims[d]) ? 1 : dims[d];
        ones[i].dims = dims;
    }
    return ones;
}

/* Does a layer multiply whose sizes depend on data? */
static bool multiplies(const call *c)
{
    call one = *c;
    if (!c->op->cost || c->out[0].kind != BZ_TYPE_TENSOR || c->out[0].rank < 0)
        return false;
    one.in = with_ones(c);
    one.out = one.in + c->node->n_in;
    one.macs = one.flops = 0;
    c->op->cost(&one);
    return one.macs > 0;
}

static void add_costs(call *c, bz_layer *layer)
{
    int64_t most, bytes = operand_bytes(c, &most);
    layer->opaque = (c->op->flags & OP_UNPRICED) != 0 && !c->n_bodies;
    layer->priced = bytes >= 0 && !c->skipped && !layer->opaque;
    if (layer->class == BZ_CONSTANT)
        return;
    if (layer->n_bodies) {
        add_bodies(layer);
        return;
    }
    layer->multiplies = bytes < 0 && !c->skipped && !layer->opaque && multiplies(c);
    if (!layer->priced || layer->class == BZ_VIEW)
        return;
    if (c->op->cost && c->out[0].kind != BZ_TYPE_NONE)
        c->op->cost(c);
    layer->macs = c->macs;
    layer->flops = c->flops;
    bz_count_add(&layer->flops, saturated_product(2, c->macs));
    bz_count_add(&layer->flops, saturated_product(c->op->flops, most));
    layer->bytes = c->bytes >= 0 ? c->bytes : bytes;
}

/* OP_INDEX. Whole models leave their nodes without names: printf would be a tenth of their time. */
static const char *made_name(infer *inf, const bz_layer *layer)
{
    bz_buf_clear(&inf->key);
    bz_buf_puts(&inf->key, layer->node->op);
    bz_buf_putc(&inf->key, '_');
    bz_buf_int(&inf->key, layer->index);
    return bz_arena_strn(inf->arena, inf->key.data, inf->key.len);
}

void layer_finish(infer *inf, call *c, bz_layer *layer)
{
    const bz_node *node = c->node;
    layer->name = *node->name ? node->name : made_name(inf, layer);
    layer->kind = c->op->kind;
    layer->n_in = node->n_in;
    layer->n_out = node->n_out;
    layer->in = c->in;
    layer->out = c->out;
    bool *constant = BZ_NEW(inf->arena, bool, 2 * node->n_in);
    for (int k = 0; k < node->n_in; k++)
        constant[k] = node->in[k] >= 0 && inf->constant[node->in[k]];
    layer->in_constant = constant;
    layer->in_setting = constant + node->n_in;
    layer->params = bz_arena_dup(inf->arena, c->params, (size_t)c->n_params * sizeof *c->params);
    layer->n_params = c->n_params;
    layer->bodies = c->bodies;
    layer->n_bodies = c->n_bodies;
    if (inf->options->without_keys)
        layer->key = "";
    else
        make_key(inf, c, layer);
    add_costs(c, layer);
}
