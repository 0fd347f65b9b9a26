/* Shapes that come from outside: inputs bound on the command line, and what the file declares. */
#include "modelproc/dimension.h"
#include "modelproc/infer.h"

#include <stdlib.h>
#include <string.h>

/* "8" -> 8; -1 for anything else. */
static int64_t parse_number(const char *s, const char **end)
{
    char *stop;
    if (*s < '0' || *s > '9')
        return -1;
    long long v = strtoll(s, &stop, 10);
    *end = stop;
    return v > BZ_MAX_DIM ? -1 : v;
}

static int bad_value(infer *inf, const bz_bind *b)
{
    return bz_fail(inf->err, BZ_USAGE, "--dim %s=%s: the value is a number, or a shape like 1x3x224x224", b->name,
                   b->value);
}

/* The name of a dimension, or NULL where it has none. */
static const char *name_of(const infer *inf, bz_dim d)
{
    int64_t k = bz_is_symbol(d) ? d - INT64_MIN : INT64_MAX;
    return k < inf->model->n_symbols ? inf->model->symbols[k] : NULL;
}

/* The same name in another place is the same number. Where two were given the first one stays. */
static void tie(infer *inf, bz_dim symbol, bz_dim d)
{
    int64_t k = bz_is_symbol(symbol) ? symbol - INT64_MIN : INT64_MAX;
    if (k < inf->n_tied && bz_is_symbol(inf->tied[k]))
        inf->tied[k] = d;
}

/* --dim x=1x3x224x224 */
static int bind_shape(infer *inf, const bz_bind *b, bz_type *t)
{
    bz_dim dims[BZ_MAX_RANK];
    int rank = 0;
    const char *p = b->value;
    do {
        if (rank == BZ_MAX_RANK || (dims[rank++] = parse_number(p, &p)) < 0)
            return bad_value(inf, b);
    } while (*p++ == 'x');
    if (p[-1])
        return bad_value(inf, b);
    if (t->rank >= 0 && t->rank != rank)
        return bz_fail(inf->err, BZ_USAGE, "--dim %s=%s: the input has %d dimensions", b->name, b->value, t->rank);
    for (int d = 0; d < t->rank; d++)
        tie(inf, t->dims[d], dims[d]);
    t->rank = rank;
    t->dims = bz_arena_dup(inf->arena, dims, (size_t)rank * sizeof *dims);
    return 0;
}

/* Sets one dimension of an input, in a copy: declared types are shared. */
static void set_dim(infer *inf, bz_type *t, int axis, bz_dim d)
{
    bz_dim *dims = bz_arena_dup(inf->arena, t->dims, (size_t)t->rank * sizeof *dims);
    tie(inf, dims[axis], d);
    dims[axis] = d;
    t->dims = dims;
}

/* Whether "INPUT:AXIS" names a dimension of this input. */
static bool names_axis(const char *bind, const char *input, int rank, int *axis)
{
    size_t n = strlen(input);
    if (strncmp(bind, input, n) != 0 || bind[n] != ':')
        return false;
    const char *end;
    int64_t k = parse_number(bind + n + 1, &end);
    *axis = (int)k;
    return k >= 0 && !*end && k < rank;
}

/* Every dimension of that name; false where there is none. */
static bool bind_name(infer *inf, const char *name, bz_dim n)
{
    bool used = false;
    for (int k = 0; k < inf->model->graph->n_inputs; k++) {
        bz_type *t = &inf->types[inf->model->graph->inputs[k]];
        for (int d = 0; d < t->rank; d++) {
            const char *has = name_of(inf, t->dims[d]);
            if (!has || strcmp(has, name) != 0)
                continue;
            set_dim(inf, t, d, n);
            used = true;
        }
    }
    return used;
}

/* "past" for "past_sequence_length": the one name that goes on behind a mark. NULL where there is none, or several. */
static const char *whole_name(const infer *inf, const char *beginning)
{
    size_t n = strlen(beginning);
    const char *found = NULL;
    for (int k = 0; k < inf->model->graph->n_inputs; k++) {
        const bz_type *t = &inf->types[inf->model->graph->inputs[k]];
        for (int d = 0; d < t->rank; d++) {
            const char *has = name_of(inf, t->dims[d]);
            if (!has || strncmp(has, beginning, n) != 0 || !strchr("_.-", has[n]) || has[dimension_name(has)] ||
                (found && !strcmp(found, has)))
                continue;
            if (found)
                return NULL;
            found = has;
        }
    }
    return found;
}

/* Whether the name of a dimension is computed from this one: "n" in "2*n". */
static bool is_part(const infer *inf, const char *name)
{
    for (int k = 0; k < inf->n_tied; k++) {
        const char *at = inf->model->symbols[k];
        for (size_t n; at && *at; at += n ? n : 1)
            if ((n = dimension_name(at)) == strlen(name) && !strncmp(at, name, n))
                return true;
    }
    return false;
}

static int apply_bind(infer *inf, const bz_bind *b)
{
    const bz_graph *g = inf->model->graph;
    bool used = false;
    const char *end = "";
    int64_t n = parse_number(b->value, &end);
    for (int k = 0; k < g->n_inputs; k++) {
        bz_type *t = &inf->types[g->inputs[k]];
        int axis;
        if (!strcmp(b->name, inf->model->values[g->inputs[k]].name)) {
            if (t->kind != BZ_TYPE_TENSOR || bind_shape(inf, b, t))
                return t->kind != BZ_TYPE_TENSOR ? bad_value(inf, b) : -1;
            inf->rebound = used = true;
        } else if (names_axis(b->name, inf->model->values[g->inputs[k]].name, t->rank, &axis)) {
            if (n < 0 || *end)
                return bad_value(inf, b);
            set_dim(inf, t, axis, n);
            inf->rebound = used = true;
        }
    }
    bool number = n >= 0 && !*end;
    const char *whole = used ? NULL : whole_name(inf, b->name);
    if (!bind_name(inf, b->name, n) && !(whole && bind_name(inf, whole, n)) && !is_part(inf, b->name))
        return used ? 0
                    : bz_fail(inf->err, BZ_USAGE, "--dim %s=%s: neither a dimension nor an input has that name",
                              b->name, b->value);
    return number ? 0 : bad_value(inf, b);
}

static bool tied_name(void *context, const char *name, size_t length, int64_t *number)
{
    const infer *inf = context;
    for (int k = 0; k < inf->n_tied; k++) {
        const char *has = inf->model->symbols[k];
        if (!has || bz_is_symbol(inf->tied[k]) || strncmp(has, name, length) != 0 || has[length])
            continue;
        *number = inf->tied[k];
        return true;
    }
    for (int i = 0; i < inf->options->n_binds; i++) { /* a name that is nowhere by itself */
        const bz_bind *b = &inf->options->binds[i];
        const char *end = "";
        if (!strncmp(b->name, name, length) && !b->name[length] && (*number = parse_number(b->value, &end)) >= 0 &&
            !*end)
            return true;
    }
    return false;
}

/* What runtimes mean by names that the file does not explain. */
static const struct {
    const char *name, *means;
} USUAL[] = {
    {"total_sequence_length", "past_sequence_length + sequence_length"},
};

/* A number for a dimension that was given one, or follows from others by its name; else as it is. */
static bz_dim resolve(infer *inf, bz_dim d)
{
    const char *name = name_of(inf, d);
    int64_t number;
    if (!name) /* a size, or a symbol without one */
        return d;
    int64_t k = d - INT64_MIN;
    if (k < inf->n_tied && !bz_is_symbol(inf->tied[k]))
        return inf->tied[k];
    if (dimension_compute(name, tied_name, inf, &number, NULL))
        return tie(inf, d, number), number;
    for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++)
        if (!strcmp(name, USUAL[i].name) && dimension_compute(USUAL[i].means, tied_name, inf, &number, NULL)) {
            tie(inf, d, number);
            infer_warn_sizes(inf, bz_arena_printf(inf->arena, "%s is taken as %s, %lld: --dim %s=SIZE says otherwise",
                                                  name, USUAL[i].means, (long long)number, name));
            return number;
        }
    return d;
}

/* One size by --batch and another one by --dim: none is better than the other. */
static int check_batch(infer *inf, int64_t batch)
{
    const char *name = batch_name(inf), *end = "";
    for (int i = 0; name && i < inf->options->n_binds; i++) {
        const bz_bind *b = &inf->options->binds[i];
        if (strcmp(b->name, name) != 0 || parse_number(b->value, &end) == batch)
            continue;
        inf->sizes_wrong = true;
        return bz_fail(inf->err, BZ_USAGE, "--dim %s=%s and --batch %lld: dimension '%s' of input '%s' is the batch",
                       b->name, b->value, (long long)batch, name, inf->model->values[inf->batch_input].name);
    }
    return 0;
}

/* --batch: the batch of every input that shares it, whether the file left it open or wrote a number. */
static int apply_batch(infer *inf, int64_t batch)
{
    const bz_graph *g = inf->model->graph;
    if (check_batch(inf, batch))
        return -1;
    for (int k = 0; k < g->n_inputs; k++) {
        bz_type *t = &inf->types[g->inputs[k]];
        for (int d = 0; t->kind == BZ_TYPE_TENSOR && d < t->rank; d++) {
            if (!batch_is_at(inf, g->inputs[k], d))
                continue;
            if (!bz_is_symbol(t->dims[d]) && t->dims[d] != batch)
                inf->rebound = true;
            bz_dim follows = resolve(inf, t->dims[d]); /* "2*N" */
            set_dim(inf, t, d, bz_is_symbol(follows) || !bz_is_symbol(t->dims[d]) ? batch : follows);
        }
    }
    return 0;
}

static void resolve_all(infer *inf, bz_type *t)
{
    for (int d = 0; d < t->rank; d++) {
        bz_dim is = resolve(inf, t->dims[d]);
        if (is != t->dims[d])
            set_dim(inf, t, d, is);
    }
}

/* Whether the file has a dimension of that name; "batch-size" is no difference where there is no "batch". */
static bool is_dimension(const infer *inf, const char *name, size_t length)
{
    for (int k = 0; k < inf->n_tied; k++) {
        const char *has = inf->model->symbols[k];
        if (has && !strncmp(has, name, length) && !has[length])
            return true;
    }
    return false;
}

/* The name that is to be bound for a dimension: of "past + sequence", which is bound by its parts, the first that is not. */
static const char *to_bind(infer *inf, const char *name)
{
    const char *missing = NULL, *means = name;
    int64_t number;
    for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++)
        means = strcmp(name, USUAL[i].name) ? means : USUAL[i].means;
    dimension_compute(means, tied_name, inf, &number, &missing);
    size_t n = missing ? dimension_name(missing) : 0;
    return n && n < strlen(means) && is_dimension(inf, missing, n) ? bz_arena_strn(inf->arena, missing, n) : name;
}

/* What --dim calls an open dimension: by its name, or the part of it that is to be bound first; one without a name by its place. */
static const char *open_name(infer *inf, const char *input, const bz_type *t, int d)
{
    const char *name = name_of(inf, t->dims[d]);
    return name ? to_bind(inf, name) : bz_arena_printf(inf->arena, "%s:%d", input, d);
}

/* Whoever binds one dimension wants to know at once which others are to follow: adds their names to the error. */
static void name_others(infer *inf)
{
    enum { MOST = 8 };
    const bz_graph *g = inf->model->graph;
    const char *named[MOST + 1];
    int n = 0;
    for (int k = 0; k < g->n_inputs && n <= MOST; k++) {
        const bz_type *t = &inf->types[g->inputs[k]];
        for (int d = 0; d < t->rank && t->kind == BZ_TYPE_TENSOR && n <= MOST; d++) {
            if (!bz_is_symbol(t->dims[d]))
                continue;
            named[n] = open_name(inf, inf->model->values[g->inputs[k]].name, t, d);
            int same = 0;
            while (strcmp(named[same], named[n]) != 0)
                same++;
            n += same == n;
        }
    }
    BZ_SCOPED(bz_buf) others = {0};
    for (int i = 1; i < n && i < MOST; i++) /* the error has the first */
        bz_buf_printf(&others, "%s%s", i > 1 ? ", " : "", named[i]);
    if (others.len)
        bz_fail(inf->err, BZ_BAD_INPUT, "%s; likewise %s%s", bz_arena_str(inf->arena, inf->err->text),
                bz_buf_text(&others), n > MOST ? ", …" : "");
}

static int unbound(infer *inf, bz_value_id v, const bz_type *t, int d)
{
    const char *input = inf->model->values[v].name;
    const char *name = name_of(inf, t->dims[d]), *open = open_name(inf, input, t, d);
    if (name && open != name)
        bz_fail(inf->err, BZ_BAD_INPUT,
                "dimension '%s' of input '%s' is dynamic: bind what it is made of, first --dim %s=SIZE", name, input,
                open);
    else
        bz_fail(inf->err, BZ_BAD_INPUT, "dimension %s of input '%s' is dynamic: bind it with --dim %s=SIZE%s",
                name ? bz_arena_printf(inf->arena, "'%s'", name) : bz_arena_printf(inf->arena, "%d", d), input, open,
                batch_is_at(inf, v, d) ? ", or with --batch SIZE" : "");
    name_others(inf);
    inf->sizes_wrong = true;
    return -1;
}

static int check_bound(infer *inf, bz_value_id v)
{
    const bz_type *t = &inf->types[v];
    const char *input = inf->model->values[v].name;
    if (bz_dims_check(t->dims, t->rank, inf->err))
        return bz_fail_in(inf->err, "input '%s'", input);
    if (inf->options->open_inputs)
        return 0;
    if (t->kind == BZ_TYPE_TENSOR && t->rank < 0) {
        inf->sizes_wrong = true;
        return bz_fail(inf->err, BZ_BAD_INPUT,
                       "the shape of input '%s' is not known: give it with --dim %s=1x3x224x224", input, input);
    }
    for (int d = 0; d < t->rank && t->kind == BZ_TYPE_TENSOR; d++) {
        if (bz_is_symbol(t->dims[d]))
            return unbound(inf, v, t, d);
    }
    return 0;
}

int bind_inputs(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    for (int k = 0; k < g->n_inputs; k++) {
        const bz_type *declared = inf->model->values[g->inputs[k]].declared;
        inf->types[g->inputs[k]] = declared ? *declared : (bz_type){.kind = BZ_TYPE_TENSOR, .rank = -1};
    }
    inf->n_tied = inf->model->n_symbols;
    inf->tied = bz_arena_take(inf->arena, (size_t)inf->n_tied * sizeof *inf->tied);
    for (int i = 0; i < inf->n_tied; i++)
        inf->tied[i] = INT64_MIN;
    for (int i = 0; i < inf->options->n_binds; i++)
        if (apply_bind(inf, &inf->options->binds[i])) {
            inf->sizes_wrong = true;
            inf->rebound = false; /* what is wrong is not the batch */
            return -1;
        }
    batch_find(inf);
    if (inf->options->batch && apply_batch(inf, inf->options->batch)) {
        inf->rebound = false;
        return -1;
    }
    for (int k = 0; k < g->n_inputs; k++)
        resolve_all(inf, &inf->types[g->inputs[k]]);
    for (int k = 0; k < g->n_inputs; k++)
        if (check_bound(inf, g->inputs[k])) {
            inf->rebound = false;
            return -1;
        }
    return 0;
}

static bool has_dim(const bz_type *t, bz_dim d)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == d)
            return true;
    return false;
}

/* Does a result have the batch still: as a dimension, in one with others, in its sum, as a loss is, or maybe? */
static bool keeps_batch(const bz_type *t, bz_dim batch)
{
    return t->kind != BZ_TYPE_TENSOR || t->rank < 1 || bz_is_symbol(t->dims[0]) || has_dim(t, batch) ||
           t->dims[0] % batch == 0;
}

void bind_find_batch(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    bz_dim batch = inf->batch_input == BZ_NO_VALUE ? 0 : inf->types[inf->batch_input].dims[inf->batch_axis];
    bool kept = inf->options->batch || batch < 2 || !g->n_outputs;
    for (int k = 0; k < g->n_outputs && !kept; k++)
        kept = g->outputs[k] == BZ_NO_VALUE || keeps_batch(&inf->types[g->outputs[k]], batch);
    inf->layers->batch = kept ? batch : 0;
}

void bind_check_batch(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    const int64_t batch = inf->options->batch;
    if (batch && inf->batch_input == BZ_NO_VALUE)
        infer_warn_sizes(inf,
                         bz_arena_printf(inf->arena, "--batch %lld changes nothing: no input has a first dimension",
                                         (long long)batch));
    for (int k = 0; k < g->n_outputs && batch && inf->rebound && inf->written_batch != batch; k++) {
        if (g->outputs[k] == BZ_NO_VALUE)
            continue;
        const bz_type *t = &inf->types[g->outputs[k]];
        if (t->kind != BZ_TYPE_TENSOR || t->rank < 2 || t->dims[0] != inf->written_batch || inf->batch_axis > 0 ||
            has_dim(t, batch))
            continue;
        infer_warn_sizes(
            inf,
            bz_arena_printf(inf->arena,
                            "result '%s' begins with %lld although --batch is %lld: the graph itself seems "
                            "to contain its batch as a number",
                            inf->model->values[g->outputs[k]].name, (long long)inf->written_batch, (long long)batch));
        return;
    }
}

static int clash(infer *inf, const bz_node *node, bz_value_id v, const char *declared, const char *found)
{
    return bz_fail(inf->err, BZ_BAD_INPUT, "node '%s' (%s) makes '%s' as %s, but the file declares %s", node->name,
                   node->op, inf->model->values[v].name, found, declared);
}

/* Dimensions that we could not find out are filled in; where both are known and differ, ours
 * stand: exporters leave stale shapes behind when they rewrite a graph. */
static void fill_dims(infer *inf, bz_value_id v, const bz_type *declared, bz_type *t)
{
    bz_dim *dims = NULL;
    for (int d = 0; d < t->rank; d++) {
        bz_dim says = resolve(inf, declared->dims[d]);
        if (bz_is_symbol(says))
            continue;
        if (bz_is_symbol(t->dims[d])) {
            if (!dims)
                t->dims = dims = bz_arena_dup(inf->arena, t->dims, (size_t)t->rank * sizeof *dims);
            dims[d] = says;
        } else if (!bz_is_symbol(declared->dims[d]) && t->dims[d] != says) {
            BZ_SCOPED(bz_buf) text = {0};
            bz_buf_printf(&text, "'%s': the file declares dimension %d as %lld, but it is %lld",
                          inf->model->values[v].name, d, (long long)declared->dims[d], (long long)t->dims[d]);
            infer_warn(inf, bz_buf_text(&text));
        }
    }
}

int declared_fill(infer *inf, const bz_node *node, bz_value_id v, bz_type *t)
{
    const bz_type *declared = inf->model->values[v].declared;
    if (!declared || declared->kind == BZ_TYPE_NONE)
        return 0;
    bool unknown = t->kind == BZ_TYPE_NONE || (t->kind == BZ_TYPE_TENSOR && t->rank < 0 && !t->dtype);
    if (unknown && inf->options->ignore_declared)
        return 0;
    if (declared->kind == BZ_TYPE_OPTIONAL && declared->elem && declared->elem->kind == t->kind)
        return 0; /* a value that is there may stand for one that might be */
    if (t->kind != BZ_TYPE_NONE && t->kind != declared->kind)
        return unknown ? (*t = *declared, 0) : clash(inf, node, v, "another kind of value", "what it is");
    if (t->kind == BZ_TYPE_NONE) {
        *t = *declared;
        return 0;
    }
    if (t->kind != BZ_TYPE_TENSOR)
        return 0;
    if (!t->dtype)
        t->dtype = declared->dtype;
    if (declared->dtype && t->dtype != declared->dtype)
        return clash(inf, node, v, bz_dtype_name(declared->dtype), bz_dtype_name(t->dtype));
    if (inf->options->ignore_declared || inf->rebound || declared->rank < 0)
        return 0;
    if (t->rank < 0) {
        t->rank = declared->rank;
        t->dims = declared->dims;
    } else if (t->rank != declared->rank) {
        BZ_SCOPED(bz_buf) text = {0};
        bz_buf_printf(&text, "'%s': the file declares %d dimensions, but it has %d", inf->model->values[v].name,
                      declared->rank, t->rank);
        infer_warn(inf, bz_buf_text(&text));
    } else {
        fill_dims(inf, v, declared, t);
    }
    return 0;
}
