/* Shapes that come from outside: inputs bound on the command line, and what the file declares. */
#include "modelproc/infer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the command line ----------------------------------------------------------------------- */

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
    t->rank = rank;
    t->dims = bz_arena_dup(inf->arena, dims, (size_t)rank * sizeof *dims);
    return 0;
}

/* Sets one dimension of an input, in a copy: declared types are shared. */
static void set_dim(infer *inf, bz_type *t, int axis, bz_dim d)
{
    bz_dim *dims = bz_arena_dup(inf->arena, t->dims, (size_t)t->rank * sizeof *dims);
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

static int apply_bind(infer *inf, const bz_bind *b)
{
    const bz_graph *g = inf->model->graph;
    bool used = false;
    const char *end = "";
    int64_t n = parse_number(b->value, &end);
    char name[64];
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
        for (int d = 0; d < t->rank; d++) {
            if (!bz_is_symbol(t->dims[d]) || strcmp(bz_symbol_text(inf->model, t->dims[d], name), b->name) != 0)
                continue;
            if (n < 0 || *end)
                return bad_value(inf, b);
            set_dim(inf, t, d, n);
            used = true;
        }
    }
    if (!used)
        return bz_fail(inf->err, BZ_USAGE, "--dim %s=%s: neither a dimension nor an input has that name", b->name,
                       b->value);
    return 0;
}

/* --batch: the leading dimension of every input that shares the first input's, whether the file
 * left it open or wrote a number. */
static void apply_batch(infer *inf, int64_t batch)
{
    const bz_graph *g = inf->model->graph;
    bz_dim leading = 0;
    bool found = false;
    for (int k = 0; k < g->n_inputs; k++) {
        bz_type *t = &inf->types[g->inputs[k]];
        if (t->kind != BZ_TYPE_TENSOR || t->rank < 1)
            continue;
        if (!found)
            leading = inf->written_batch = t->dims[0];
        found = true;
        if (t->dims[0] != leading && !bz_is_symbol(t->dims[0]))
            continue;
        if (!bz_is_symbol(t->dims[0]) && t->dims[0] != batch)
            inf->rebound = true;
        set_dim(inf, t, 0, batch);
    }
    /* the same name in another place is the same number */
    for (int k = 0; found && bz_is_symbol(leading) && k < g->n_inputs; k++) {
        bz_type *t = &inf->types[g->inputs[k]];
        for (int d = 0; d < t->rank; d++)
            if (t->dims[d] == leading)
                set_dim(inf, t, d, batch);
    }
}

static int check_bound(infer *inf, bz_value_id v)
{
    const bz_type *t = &inf->types[v];
    const char *input = inf->model->values[v].name;
    char text[64];
    if (bz_dims_check(t->dims, t->rank, inf->err))
        return bz_fail_in(inf->err, "input '%s'", input);
    if (inf->options->open_inputs)
        return 0;
    if (t->kind == BZ_TYPE_TENSOR && t->rank < 0)
        return bz_fail(inf->err, BZ_BAD_INPUT,
                       "the shape of input '%s' is not known: give it with --dim %s=1x3x224x224", input, input);
    for (int d = 0; d < t->rank && t->kind == BZ_TYPE_TENSOR; d++) {
        if (!bz_is_symbol(t->dims[d]))
            continue;
        const char *name = bz_symbol_text(inf->model, t->dims[d], text);
        if (*name == '?')
            return bz_fail(inf->err, BZ_BAD_INPUT,
                           "dimension %d of input '%s' is dynamic: bind it with --dim %s:%d=SIZE%s", d, input, input, d,
                           d ? "" : ", or with --batch SIZE");
        return bz_fail(inf->err, BZ_BAD_INPUT, "dimension '%s' of input '%s' is dynamic: bind it with --dim %s=SIZE%s",
                       name, input, name, d ? "" : ", or with --batch SIZE");
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
    for (int i = 0; i < inf->options->n_binds; i++)
        if (apply_bind(inf, &inf->options->binds[i]))
            return -1;
    if (inf->options->batch)
        apply_batch(inf, inf->options->batch);
    for (int k = 0; k < g->n_inputs; k++)
        if (check_bound(inf, g->inputs[k]))
            return -1;
    const bz_type *first = g->n_inputs ? &inf->types[g->inputs[0]] : NULL;
    inf->layers->batch = first && first->kind == BZ_TYPE_TENSOR && first->rank > 0 ? first->dims[0] : 0;
    return 0;
}

/* ---- what the file declares ----------------------------------------------------------------- */

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
        if (bz_is_symbol(declared->dims[d]))
            continue;
        if (bz_is_symbol(t->dims[d])) {
            if (!dims)
                t->dims = dims = bz_arena_dup(inf->arena, t->dims, (size_t)t->rank * sizeof *dims);
            dims[d] = declared->dims[d];
        } else if (t->dims[d] != declared->dims[d]) {
            bz_buf text = {0};
            bz_buf_printf(&text, "'%s': the file declares dimension %d as %lld, but it is %lld",
                          inf->model->values[v].name, d, (long long)declared->dims[d], (long long)t->dims[d]);
            infer_warn(inf, bz_buf_text(&text));
            bz_buf_free(&text);
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
        bz_buf text = {0};
        bz_buf_printf(&text, "'%s': the file declares %d dimensions, but it has %d", inf->model->values[v].name,
                      declared->rank, t->rank);
        infer_warn(inf, bz_buf_text(&text));
        bz_buf_free(&text);
    } else {
        fill_dims(inf, v, declared, t);
    }
    return 0;
}
