/* One pass over the nodes in topological order: rule, then values, then the layer. */
#include "modelproc/infer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const data NO_DATA = {0};

/* Functions that are put in bring values of their own. */
static void cover_values(infer *inf)
{
    int n = inf->model->n_values;
    if (n <= inf->cap)
        return;
    int cap = inf->cap * 2 > n ? inf->cap * 2 : n;
    inf->types = bz_realloc(inf->types, (size_t)cap, sizeof *inf->types);
    inf->values = bz_realloc(inf->values, (size_t)cap, sizeof *inf->values);
    inf->constant = bz_realloc(inf->constant, (size_t)cap, sizeof *inf->constant);
    inf->source = bz_realloc(inf->source, (size_t)cap, sizeof *inf->source);
    inf->stored = bz_realloc(inf->stored, (size_t)cap, sizeof *inf->stored);
    for (int i = inf->cap; i < cap; i++) {
        inf->types[i] = (bz_type){.rank = -1};
        inf->values[i] = NULL;
        inf->constant[i] = false;
        inf->source[i] = i;
        inf->stored[i] = 0;
    }
    inf->cap = cap;
}

void infer_warn(infer *inf, const char *text)
{
    bz_layers *l = inf->layers;
    if (l->n_warnings > MAX_WARNINGS)
        return;
    for (int i = 0; i < l->n_warnings; i++)
        if (!strcmp(l->warnings[i], text))
            return;
    if (l->n_warnings == MAX_WARNINGS)
        text = "there are more warnings of this kind";
    l->warnings[l->n_warnings++] = bz_arena_str(inf->arena, text);
}

void infer_warn_sizes(infer *inf, const char *text)
{
    const char *in = inf->options->sizes_in;
    infer_warn(inf, in ? bz_arena_printf(inf->arena, "%s; %s", text, in) : text);
}

/* Initializers that the graph names; their types are plain. */
static void type_constants(infer *inf)
{
    cover_values(inf);
    for (int i = 0; i < inf->model->n_values; i++) {
        const bz_tensor *t = inf->model->values[i].init;
        if (!t)
            continue;
        inf->types[i] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
        inf->constant[i] = true;
    }
}

static const op UNKNOWN_OP = {
    "", NULL, "unknown", BZ_COMPUTE, rule_none, .flags = OP_RANKLESS | OP_UNPRICED, .labels = "x... > y..."};
static int call_function(call *c);
static const op FUNCTION_OP = {
    "", NULL, "function", BZ_COMPUTE, call_function, .flags = OP_RANKLESS, .labels = "x... > y..."};

static const op *find_op(infer *inf, const bz_node *node)
{
    const op *o = node->function >= 0 ? &FUNCTION_OP : op_find(&inf->ops, node->domain, node->op);
    return o ? o : &UNKNOWN_OP;
}

static void warn_of_opaque(infer *inf, const bz_node *node, bool known)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_buf_printf(&text, "%s %s%s%s %s", known ? "how much operator" : "operator", node->domain,
                  *node->domain ? "." : "", node->op,
                  known ? "computes is not known: it has no price"
                        : "is not known: its results are only what the file declares, and it has no price");
    infer_warn(inf, bz_buf_text(&text));
}

/* A local function runs as a body of its caller. */
static int call_function(call *c)
{
    bz_graph *g;
    if (bz_model_inline(c->inf->model, c->node, &g, c->err))
        return -1;
    cover_values(c->inf);
    if (c->node->n_in > g->n_inputs || c->node->n_out > g->n_outputs)
        return call_fail(c, "the call has more operands or results than the function");
    const data **values = BZ_NEW(c->arena, const data *, c->node->n_in);
    for (int k = 0; k < c->node->n_in; k++)
        values[k] = in_data(c, k);
    bz_body *body = BZ_NEW(c->arena, bz_body, 1);
    *body = (bz_body){.name = c->node->op, .trips = 1, .trips_known = true, .inputs = g->inputs, .outputs = g->outputs};
    c->bodies = body;
    c->n_bodies = 1;
    for (int k = 0; k < c->node->n_in; k++) { /* its weights are weights inside, too */
        bz_value_id outside = c->node->in[k], inside = g->inputs[k];
        if (outside < 0 || inside < 0)
            continue;
        c->inf->source[inside] = c->inf->source[outside];
        c->inf->stored[inside] = c->inf->stored[outside];
    }
    if (infer_body(c, g, c->in, values, c->node->n_in, body))
        return -1;
    for (int k = 0; k < c->node->n_out; k++) {
        if (g->outputs[k] == BZ_NO_VALUE)
            continue;
        set_type(c, k, value_type(c, g->outputs[k]));
        c->out_data[k] = value_data(c, g->outputs[k]);
    }
    return 0;
}

static bool operands_constant(const infer *inf, const bz_node *node)
{
    bz_value_id v;
    for (int k = 0; (v = bz_node_reads(node, k)) != BZ_READS_END; k++)
        if (v >= 0 && !inf->constant[v])
            return false;
    return true;
}

static bool fully_known(const data *d)
{
    if (!d || d == &NO_DATA)
        return false;
    for (int64_t k = 0; d->i && k < d->n; k++)
        if (bz_is_symbol(d->i[k]))
            return false;
    return true;
}

/* Operands whose rank nobody knows leave most rules helpless: then the results are unknown, too. */
static bool ranks_known(const call *c)
{
    for (int k = 0; k < c->node->n_in; k++)
        if (c->node->in[k] >= 0 && (c->in[k].kind != BZ_TYPE_TENSOR || c->in[k].rank < 0))
            return false;
    return true;
}

static int run_rules(call *c)
{
    if (!c->node->n_out || (!(c->op->flags & OP_RANKLESS) && !ranks_known(c))) {
        rule_none(c);
        c->skipped = true;
        for (int k = 0; k < c->node->n_out; k++)
            if (c->op->flags & OP_KEEPS_ALL || (c->op->flags & OP_KEEPS && !k))
                c->out[k].dtype = c->in[0].dtype;
        if (c->op->flags & OP_KEEPS_LAST && c->node->n_in && c->node->n_out)
            c->out[0].dtype = c->in[c->node->n_in - 1].dtype;
        return 0;
    }
    if (c->op->shape(c) || c->failed)
        return -1;
    return c->op->eval ? c->op->eval(c) : 0;
}

/* Dimensions no machine will ever see would only overflow in what computes with them; a type that is
 * nested without end would overflow the stack. */
static int check_type(call *c, const bz_type *t)
{
    for (int depth = 0; t; t = t->elem, depth++) {
        if (depth > MAX_NESTING)
            return call_fail(c, "types are nested more than %d deep", MAX_NESTING);
        if (bz_dims_check(t->dims, t->rank, c->err))
            return bz_fail_in(c->err, "node '%s' (%s)", c->node->name, c->node->op);
    }
    return 0;
}

/* *t also takes what the file declares. Values count only when there are as many as the type says: a
 * file may declare what it likes. What is known of a sequence's elements has a form of its own. */
static int keep_value(call *c, bz_value_id v, bz_type *t, const data *d)
{
    infer *inf = c->inf;
    if (declared_fill(inf, c->node, v, t) || check_type(c, t))
        return -1;
    bool fits = d && d != &NO_DATA && (t->kind == BZ_TYPE_SEQUENCE || bz_type_elements(t) == d->n);
    inf->types[v] = *t;
    inf->values[v] = fits ? d : NULL;
    return 0;
}

/* A runtime multiplies by weights as they are stored, whatever the file says to do with them before: bytes of the constant
 * that `v` is after a dequantization, and after that is turned or cast; 0: its own. */
static int64_t stored_bytes(const infer *inf, const call *c)
{
    int64_t sum = 0;
    if (!strcmp(c->op->kind, "dequantize")) {
        for (int k = 0; k < c->node->n_in; k++)
            bz_count_add(&sum, c->node->in[k] >= 0 ? bz_type_bytes(&c->in[k]) : 0);
        return sum;
    }
    if (!c->node->n_in || c->node->in[0] < 0 ||
        !bz_has_word("Transpose Reshape Cast Identity Unsqueeze Squeeze", c->node->op))
        return 0;
    return inf->stored[c->node->in[0]];
}

/* Types, values and constness of the results become those of their values. */
static int keep_results(infer *inf, call *c, bz_layer *layer)
{
    bool constant = !(c->op->flags & OP_RANDOM) && operands_constant(inf, c->node), all = true;
    for (int k = 0; k < c->node->n_out; k++) {
        bz_value_id v = c->node->out[k];
        if (v < 0) {
            c->out[k] = (bz_type){.rank = -1};
            continue;
        }
        if (keep_value(c, v, &c->out[k], c->out_data[k]))
            return -1;
        inf->constant[v] = constant || fully_known(inf->values[v]);
        all &= inf->constant[v];
    }
    if (constant && c->node->n_out == 1 && c->node->out[0] >= 0)
        inf->stored[c->node->out[0]] = stored_bytes(inf, c);
    layer->class = all && (c->node->n_out || constant) ? BZ_CONSTANT : c->view ? BZ_VIEW : c->op->class;
    return 0;
}

static int infer_node(infer *inf, const bz_node *node, bz_layer *layer)
{
    if (inf->budget-- <= 0)
        return bz_fail(inf->err, BZ_BAD_INPUT, "functions and bodies unfold to more nodes than any real model has");
    if (!node->opset && !*node->domain && node->function < 0)
        return bz_fail(inf->err, BZ_BAD_INPUT, "node '%s' (%s): the file does not import the default operator set",
                       node->name, node->op);
    call c;
    memset(&c, 0, offsetof(call, params));
    c.inf = inf;
    c.node = node;
    c.arena = inf->arena;
    c.err = inf->err;
    c.bytes = -1;
    c.op = find_op(inf, node);
    int n = node->n_in + node->n_out + 1; /* rules may look at a result that is not there */
    c.in = bz_arena_take(inf->arena, (size_t)n * sizeof *c.in);
    c.out = c.in + node->n_in;
    const data *few[8] = {0};
    c.out_data = node->n_out <= 8 ? few : BZ_NEW(inf->arena, const data *, node->n_out);
    for (int k = 0; k < node->n_in; k++)
        c.in[k] = node->in[k] >= 0 ? inf->types[node->in[k]] : (bz_type){.rank = -1};
    for (int k = 0; k <= node->n_out; k++)
        c.out[k] = (bz_type){.rank = -1};
    if (run_rules(&c) || keep_results(inf, &c, layer))
        return -1;
    layer->node = node;
    layer_finish(inf, &c, layer);
    if (layer->opaque)
        warn_of_opaque(inf, node, c.op != &UNKNOWN_OP);
    return 0;
}

static int infer_graph(infer *inf, const bz_graph *g, bz_layer **layers)
{
    *layers = BZ_NEW(inf->arena, bz_layer, g->n_nodes);
    for (int i = 0; i < g->n_nodes; i++) {
        (*layers)[i].index = i;
        if (infer_node(inf, &g->nodes[i], &(*layers)[i]))
            return -1;
    }
    return 0;
}

int infer_body(call *c, const bz_graph *g, const bz_type *in, const data *const *values, int n_in, bz_body *body)
{
    infer *inf = c->inf;
    if (inf->depth >= MAX_NESTING)
        return call_fail(c, "bodies and functions are nested more than %d deep", MAX_NESTING);
    for (int k = 0; k < g->n_inputs; k++) {
        bz_value_id v = g->inputs[k];
        bz_type t = k < n_in ? in[k] : (bz_type){.rank = -1};
        if (keep_value(c, v, &t, k < n_in && values ? values[k] : NULL))
            return -1;
        bz_value_id from = inf->source[v];
        inf->constant[v] = fully_known(inf->values[v]) || (from != v && inf->constant[from]);
    }
    bz_layer *layers;
    inf->depth++;
    int failed = infer_graph(inf, g, &layers);
    inf->depth--;
    body->layers = layers;
    body->n = g->n_nodes;
    return failed;
}

static int infer_model(infer *inf)
{
    type_constants(inf);
    bz_layers *l = inf->layers;
    if (bind_inputs(inf) || infer_graph(inf, inf->model->graph, &l->layer))
        return -1;
    l->n = inf->model->graph->n_nodes;
    return 0;
}

int bz_layers_infer(bz_model *model, const bz_infer_options *options, bz_layers **layers, bz_error *err)
{
    bz_layers *l = bz_alloc(1, sizeof *l);
    *l = (bz_layers){.model = model, .name = model->path};
    l->warnings = BZ_NEW(&l->arena, const char *, MAX_WARNINGS + 1);
    infer inf = {.layers = l,
                 .batch_input = BZ_NO_VALUE,
                 .model = model,
                 .arena = &l->arena,
                 .err = err,
                 .options = options,
                 .budget = 64 * (int64_t)model->n_values + 1000000};
    int failed = infer_model(&inf);
    if (!failed) {
        bind_find_batch(&inf);
        bind_check_batch(&inf);
    }
    l->types = inf.types;
    l->constant = inf.constant;
    l->source = inf.source;
    free(inf.stored);
    free(inf.values);
    bz_buf_free(&inf.key);
    if (failed && options->batch && inf.rebound && !bz_is_symbol(inf.written_batch)) {
        bz_fail(err, err->code,
                "%s. For --batch %lld %s of an input became %lld, where it was %lld: that is no batch, or the graph "
                "contains it as a number elsewhere, too",
                bz_arena_str(&l->arena, err->text), (long long)options->batch,
                inf.batch_axis ? bz_arena_printf(&l->arena, "dimension %d", inf.batch_axis) : "the first dimension",
                (long long)options->batch, (long long)inf.written_batch);
        inf.sizes_wrong = true;
    }
    if (failed) {
        bz_fail_in(err, "%s", model->path);
        if (inf.sizes_wrong && options->sizes_in)
            bz_fail(err, err->code, "%s; %s", bz_arena_str(&l->arena, err->text), options->sizes_in);
        bz_layers_free(l);
        l = NULL;
    }
    *layers = l;
    return failed ? -1 : 0;
}

bool bz_layers_opaque(const bz_layer *layer, int n)
{
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        found = layer[i].opaque;
        for (int b = 0; b < layer[i].n_bodies && !found; b++)
            found = bz_layers_opaque(layer[i].bodies[b].layers, layer[i].bodies[b].n);
    }
    return found;
}

void bz_layers_free(bz_layers *l)
{
    if (!l)
        return;
    free((void *)l->types);
    free((void *)l->constant);
    free((void *)l->source);
    bz_arena_free(&l->arena);
    free(l);
}
