/* Sequences and optionals. The type of a sequence knows one element type for all: dimensions that
 * differ among them become symbols; an empty one has an element of kind NONE. So that a sequence that was just built or split gives back its
 * elements exactly, their shapes are also kept as the sequence's "value":
 *
 *     marker  count  { rank  dims[rank] }[count]
 *
 * The marker is a symbol, so that the value never passes for a constant. */
#include "modelproc/rule.h"

enum { LIST_INTS = 1024, LIST_HEAD = 2 };
#define LIST_MARKER BZ_SYMBOL_LAST

typedef struct {
    bool exact; /* else v means nothing */
    int64_t used;
    int64_t v[LIST_INTS];
} list;

static const bz_type ANY = {.kind = BZ_TYPE_TENSOR, .rank = -1};

static void list_begin(list *l)
{
    l->exact = true;
    l->used = LIST_HEAD;
    l->v[0] = LIST_MARKER;
    l->v[1] = 0;
}

static void list_add(list *l, int64_t rank, const bz_dim *dims)
{
    if (rank < 0 || l->used + 1 + rank > LIST_INTS)
        l->exact = false;
    if (!l->exact)
        return;
    l->v[l->used] = rank;
    for (int i = 0; i < rank; i++)
        l->v[l->used + 1 + i] = dims[i];
    l->used += 1 + rank;
    l->v[1]++;
}

/* What is known of operand k's elements: behind the head. NULL: nothing. */
static const int64_t *list_of(call *c, int k, int64_t *count)
{
    int64_t n;
    const int64_t *v = in_ints(c, k, &n);
    *count = -1;
    if (!v || n < LIST_HEAD || v[0] != LIST_MARKER)
        return NULL;
    *count = v[1];
    return v + LIST_HEAD;
}

static bz_type *new_type(call *c, bz_type t)
{
    bz_type *copy = BZ_NEW(c->arena, bz_type, 1);
    *copy = t;
    return copy;
}

static int merge(call *c, const bz_type *a, const bz_type *b, bz_type *merged)
{
    if (a->kind != BZ_TYPE_NONE && b->kind != BZ_TYPE_NONE && a->kind != b->kind)
        return call_fail(c, "the elements of a sequence are of different kinds");
    same_dtype(c, a, b);
    *merged = type_join(c, a, b);
    return 0;
}

/* The one type for all elements on a list; `elem` where there is none. */
static int merge_list(call *c, const int64_t *v, int64_t count, const bz_type *elem, bz_type *merged)
{
    *merged = *elem;
    for (int64_t i = 0; i < count; i++, v += 1 + v[0]) {
        bz_type t = {.kind = BZ_TYPE_TENSOR, .dtype = elem->dtype, .rank = (int)v[0], .dims = v + 1}, so_far = *merged;
        if (i == 0)
            *merged = t;
        else if (merge(c, &so_far, &t, merged))
            return -1;
    }
    if (merged->rank > 0)
        merged->dims = bz_arena_dup(c->arena, merged->dims, (size_t)merged->rank * sizeof *merged->dims);
    return 0;
}

static void set_sequence(call *c, int k, bz_type elem)
{
    set_type(c, k, &(bz_type){.kind = BZ_TYPE_SEQUENCE, .rank = -1, .elem = new_type(c, elem)});
}

/* Result 0 is the sequence on the list, or else one of elements like `elem`. */
static int set_list(call *c, const list *l, const bz_type *elem)
{
    bz_type merged = *elem;
    if (l->exact) {
        if (merge_list(c, l->v + LIST_HEAD, l->v[1], elem, &merged))
            return -1;
        set_ints(c, 0, l->v, l->used);
    }
    set_sequence(c, 0, merged);
    return 0;
}

/* Operand k's element type; unknown for an operand of which nothing is known. */
static int need_sequence(call *c, int k, const bz_type **elem)
{
    const bz_type *t = in_type(c, k);
    *elem = &ANY;
    if (t && t->kind == BZ_TYPE_SEQUENCE) {
        *elem = t->elem ? t->elem : &ANY;
        return 0;
    }
    if (k >= c->node->n_in || c->node->in[k] == BZ_NO_VALUE || (t && (t->kind != BZ_TYPE_TENSOR || t->rank >= 0)))
        return call_fail(c, "operand %d must be a sequence", k);
    return 0;
}

/* Position from operand k among `count`, from the end when it is left out. False: not known. */
static int position(call *c, int k, int64_t count, int64_t otherwise, int64_t most, int64_t *at)
{
    *at = -1;
    if (count < 0)
        return 0;
    int64_t v = otherwise;
    if (in_type(c, k) && !in_number(c, k, &v))
        return 0;
    v += v < 0 ? count : 0;
    if (v < 0 || v > most)
        return call_fail(c, "position %lld is outside of a sequence of %lld", (long long)v, (long long)count);
    *at = v;
    return 0;
}

static int construct_shape(call *c)
{
    list l;
    bz_type merged = ANY;
    list_begin(&l);
    for (int k = 0; k < c->node->n_in; k++) {
        const bz_type *t = in_type(c, k) ? in_type(c, k) : &ANY;
        bz_type so_far = merged;
        if (k == 0)
            merged = *t;
        else if (merge(c, &so_far, t, &merged))
            return -1;
        list_add(&l, t->kind == BZ_TYPE_TENSOR ? t->rank : -1, t->dims);
    }
    return set_list(c, &l, &merged);
}

static int empty_shape(call *c)
{
    list l;
    bz_type elem = {.rank = -1};
    if (attr_dtype(c, "dtype", BZ_F32, &elem.dtype))
        return -1;
    list_begin(&l);
    return set_list(c, &l, &elem);
}

static int insert_shape(call *c)
{
    const bz_type *elem, *t = in_type(c, 1);
    int64_t count, at;
    if (need_sequence(c, 0, &elem))
        return -1;
    t = t ? t : &ANY;
    const int64_t *v = list_of(c, 0, &count);
    bz_type merged;
    list l;
    list_begin(&l);
    if (same_dtype(c, elem, t) || position(c, 2, count, count, count, &at) || merge(c, elem, t, &merged))
        return -1;
    l.exact = v && at >= 0;
    for (int64_t i = 0; l.exact && i <= count; i++) {
        if (i == at)
            list_add(&l, t->rank, t->dims);
        if (i == count)
            break;
        list_add(&l, v[0], v + 1);
        v += 1 + v[0];
    }
    return set_list(c, &l, &merged);
}

/* The sequence's elements, and which of them operand 1 names. */
static int need_place(call *c, const bz_type **elem, const int64_t **v, int64_t *count, int64_t *at)
{
    if (need_sequence(c, 0, elem))
        return -1;
    *v = list_of(c, 0, count);
    return position(c, 1, *count, -1, *count - 1, at);
}

static int erase_shape(call *c)
{
    const bz_type *elem;
    const int64_t *v;
    int64_t count, at;
    if (need_place(c, &elem, &v, &count, &at))
        return -1;
    list l;
    list_begin(&l);
    l.exact = v && at >= 0;
    for (int64_t i = 0; l.exact && i < count; i++, v += 1 + v[0])
        if (i != at)
            list_add(&l, v[0], v + 1);
    return set_list(c, &l, elem);
}

/* Without the list, a symbol in the element type may be another number in every element. */
static bz_type fresh(call *c, const bz_type *t)
{
    bz_type copy = *t;
    if (t->kind != BZ_TYPE_TENSOR || t->rank <= 0)
        return copy;
    bz_dim *dims = new_dims(c, t->rank);
    for (int i = 0; i < t->rank; i++)
        dims[i] = bz_is_symbol(t->dims[i]) ? new_symbol(c) : t->dims[i];
    copy.dims = dims;
    return copy;
}

static int at_shape(call *c)
{
    const bz_type *elem;
    const int64_t *v;
    int64_t count, at;
    if (need_place(c, &elem, &v, &count, &at))
        return -1;
    if (v && at >= 0) {
        while (at-- > 0)
            v += 1 + v[0];
        return set_out(c, 0, elem->dtype, (int)v[0], v + 1);
    }
    bz_type t;
    if (v && merge_list(c, v, count, elem, &t))
        return -1;
    if (!v)
        t = fresh(c, elem);
    t.kind = t.kind == BZ_TYPE_NONE ? BZ_TYPE_TENSOR : t.kind;
    return set_type(c, 0, &t);
}

static int length_shape(call *c)
{
    const bz_type *elem;
    int64_t count;
    if (need_sequence(c, 0, &elem))
        return -1;
    set_out(c, 0, BZ_I64, 0, NULL);
    if (list_of(c, 0, &count))
        set_ints(c, 0, &count, 1);
    return 0;
}

/* Fills the list as far as sizes are known; `piece` becomes what is common to all pieces. */
static int split_sizes(call *c, const bz_type *split, bz_type *piece, int axis, bz_dim *dims, list *l)
{
    int64_t n, total = 0;
    const int64_t *v = in_ints(c, 1, &n);
    bz_dim whole = dims[axis], chunk = split ? (v && n == 1 && split->rank == 0 ? v[0] : 0) : 1;
    if (split && split->rank == 0 && v && (chunk <= 0 && !bz_is_symbol(chunk)))
        return call_fail(c, "pieces of %lld", (long long)chunk);
    dims[axis] = new_symbol(c);
    l->exact = false;
    if (chunk && !bz_is_symbol(chunk)) {
        bool even = !bz_is_symbol(whole) && whole % chunk == 0;
        dims[axis] = even || chunk == 1 ? chunk : dims[axis];
        l->exact = !bz_is_symbol(whole);
        bz_dim *part = bz_arena_dup(c->arena, dims, (size_t)piece->rank * sizeof *dims);
        for (int64_t at = 0; l->exact && at < whole; at += part[axis]) {
            part[axis] = whole - at < chunk ? whole - at : chunk;
            list_add(l, piece->rank, part);
        }
    } else if (split && split->rank == 1 && v) {
        bz_dim *part = bz_arena_dup(c->arena, dims, (size_t)piece->rank * sizeof *dims);
        l->exact = true;
        for (int64_t i = 0; i < n; i++) {
            if (v[i] < 0 && !bz_is_symbol(v[i]))
                return call_fail(c, "piece %lld has %lld elements", (long long)i, (long long)v[i]);
            total = dim_add(c, total, v[i]);
            part[axis] = v[i];
            list_add(l, piece->rank, part);
        }
        if (!dims_fit(total, whole))
            return call_fail(c, "its pieces add up to %lld, not %lld", (long long)total, (long long)whole);
    }
    return 0;
}

static int split_shape(call *c)
{
    const bz_type *x = in_type(c, 0), *split = in_type(c, 1);
    int axis;
    if (!x || x->kind != BZ_TYPE_TENSOR || x->rank < 0) {
        set_sequence(c, 0, (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = x ? x->dtype : BZ_UNDEFINED, .rank = -1});
        return 0;
    }
    if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    list l;
    list_begin(&l);
    bz_dim *dims = bz_arena_dup(c->arena, x->dims, (size_t)x->rank * sizeof *dims);
    bz_type piece = {.kind = BZ_TYPE_TENSOR, .dtype = x->dtype, .rank = x->rank, .dims = dims};
    param_int(c, "axis", axis);
    if (split || attr_int(c, "keepdims", 1))
        return split_sizes(c, split, &piece, axis, dims, &l) ? -1 : set_list(c, &l, &piece);
    memmove(dims + axis, dims + axis + 1, (size_t)(x->rank - axis - 1) * sizeof *dims);
    piece.rank--;
    l.exact = !bz_is_symbol(x->dims[axis]);
    for (int64_t i = 0; l.exact && i < x->dims[axis]; i++)
        list_add(&l, piece.rank, dims);
    return set_list(c, &l, &piece);
}

static int concat_shape(call *c)
{
    const bz_type *elem;
    int64_t count;
    int axis;
    if (need_sequence(c, 0, &elem))
        return -1;
    const int64_t *v = list_of(c, 0, &count);
    if (elem->rank < 0)
        return set_unknown(c, 0, elem->dtype);
    bool stack = attr_int(c, "new_axis", 0) != 0;
    int rank = elem->rank + stack;
    if (rank > BZ_MAX_RANK || fix_axis(c, attr_int(c, "axis", 0), rank, &axis))
        return rank > BZ_MAX_RANK ? call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK) : -1;
    bz_dim dims[BZ_MAX_RANK], same[BZ_MAX_RANK], total = v ? 0 : new_symbol(c);
    bz_type any = fresh(c, elem);
    for (int d = 0; d < elem->rank; d++)
        same[d] = any.dims[d];
    for (int64_t i = 0; v && i < count; i++, v += 1 + v[0]) {
        total = dim_add(c, total, stack ? 1 : v[1 + axis]);
        for (int d = 0; d < elem->rank; d++) {
            if (i && (stack || d != axis) && !dims_fit(same[d], v[1 + d]))
                return call_fail(c, "elements 0 and %lld differ in dimension %d", (long long)i, d);
            same[d] = i ? dim_same(same[d], v[1 + d]) : v[1 + d];
        }
    }
    for (int d = 0, from = 0; d < rank; d++) {
        dims[d] = d == axis ? total : same[from];
        from += d != axis || !stack;
    }
    param_int(c, "axis", axis);
    param_int(c, "new_axis", stack);
    return set_out(c, 0, elem->dtype, rank, dims);
}

static void concat_cost(call *c)
{
    int64_t bytes = bz_type_bytes(&c->out[0]);
    c->bytes = count_mul(2, bytes);
}

static void split_cost(call *c)
{
    int64_t bytes = bz_type_bytes(&c->in[0]);
    c->bytes = count_mul(2, bytes);
}

/* Result k has so many elements of one size, where that size is known in numbers. */
static void set_equal(call *c, int k, const bz_type *t, int64_t count)
{
    list l;
    list_begin(&l);
    if (count < 0 || t->kind != BZ_TYPE_TENSOR || t->rank < 0)
        return;
    for (int i = 0; i < t->rank; i++)
        if (bz_is_symbol(t->dims[i]))
            return;
    for (int64_t i = 0; i < count && l.exact; i++)
        list_add(&l, t->rank, t->dims);
    if (l.exact)
        set_ints(c, k, l.v, l.used);
}

static int map_shape(call *c)
{
    const bz_attr *a = bz_node_attr(c->node, "body");
    if (!a || a->kind != BZ_ATTR_GRAPH)
        return call_fail(c, "it has no body");
    const bz_graph *g = a->graph;
    if (g->n_inputs < c->node->n_in || g->n_outputs < c->node->n_out)
        return call_fail(c, "its body has fewer inputs or outputs than the node");
    bz_type *in = BZ_NEW(c->arena, bz_type, c->node->n_in);
    const bz_type *elem;
    int64_t count;
    for (int k = 0; k < c->node->n_in; k++) {
        const bz_type *t = in_type(c, k);
        if (k == 0 && need_sequence(c, 0, &elem))
            return -1;
        in[k] = k == 0 ? fresh(c, elem) : !t ? ANY : t->kind == BZ_TYPE_SEQUENCE && t->elem ? fresh(c, t->elem) : *t;
    }
    list_of(c, 0, &count);
    bz_body *body = BZ_NEW(c->arena, bz_body, 1);
    *body = (bz_body){.name = "body", .trips = count, .trips_known = count >= 0};
    if (count < 0)
        body->trips = call_trips(c) > 0 ? call_trips(c) : 1;
    c->bodies = body;
    c->n_bodies = 1;
    if (infer_body(c, g, in, NULL, c->node->n_in, body))
        return -1;
    for (int k = 0; k < c->node->n_out; k++) {
        const bz_type *t = value_type(c, g->outputs[k]);
        set_sequence(c, k, *t);
        set_equal(c, k, t, count);
    }
    return 0;
}

static int optional_shape(call *c)
{
    const bz_type *t = in_type(c, 0);
    const bz_attr *a = bz_node_attr(c->node, "type");
    if (!t && (!a || a->kind != BZ_ATTR_TYPE))
        return call_fail(c, "it has neither an element nor a type");
    /* a rank of 0 says that there is an element */
    set_type(c, 0, &(bz_type){.kind = BZ_TYPE_OPTIONAL, .rank = t ? 0 : -1, .elem = new_type(c, t ? *t : *a->type)});
    if (t && t->kind == BZ_TYPE_SEQUENCE)
        c->out_data[0] = in_data(c, 0);
    return 0;
}

static int get_element_shape(call *c)
{
    const bz_type *t = in_type(c, 0);
    if (c->node->n_in < 1 || c->node->in[0] == BZ_NO_VALUE)
        return call_fail(c, "operand 0 is missing");
    if (t && t->kind != BZ_TYPE_OPTIONAL)
        set_type(c, 0, t); /* from opset 18 on */
    else if (t && t->elem)
        set_type(c, 0, t->elem);
    else
        set_unknown(c, 0, BZ_UNDEFINED);
    c->out_data[0] = in_data(c, 0);
    return 0;
}

static int has_element_shape(call *c)
{
    const bz_type *t = in_type(c, 0);
    set_out(c, 0, BZ_BOOL, 0, NULL);
    bool left_out = c->node->n_in == 0 || c->node->in[0] == BZ_NO_VALUE;
    if (left_out || (t && (t->kind == BZ_TYPE_SEQUENCE || t->rank >= 0)))
        set_ints(c, 0, &(int64_t){!left_out}, 1);
    return 0;
}

static const op ROWS[] = {
    {"SequenceConstruct", NULL, "sequence", BZ_VIEW, construct_shape, .flags = OP_RANKLESS, .labels = "x..."},
    {"SequenceEmpty", NULL, "sequenceempty", BZ_VIEW, empty_shape, .flags = OP_RANKLESS},
    {"SequenceInsert", NULL, "sequenceinsert", BZ_VIEW, insert_shape, .flags = OP_RANKLESS, .labels = "s x"},
    {"SequenceErase", NULL, "sequenceerase", BZ_VIEW, erase_shape, .flags = OP_RANKLESS, .labels = "s"},
    {"SequenceAt", NULL, "sequenceat", BZ_VIEW, at_shape, .flags = OP_RANKLESS, .labels = "s > y"},
    {"SequenceLength", NULL, "sequencelength", BZ_VIEW, length_shape, .flags = OP_RANKLESS, .labels = "s"},
    {"SequenceMap", NULL, "sequencemap", BZ_COMPUTE, map_shape, .flags = OP_RANKLESS, .labels = "s..."},
    {"SplitToSequence", NULL, "splittosequence", BZ_MEMORY, split_shape, .cost = split_cost, .flags = OP_RANKLESS,
     .labels = "x > y"},
    {"ConcatFromSequence", NULL, "concatfromsequence", BZ_MEMORY, concat_shape, .cost = concat_cost,
     .flags = OP_RANKLESS, .labels = "s > y"},
    {"Optional", NULL, "optional", BZ_VIEW, optional_shape, .flags = OP_RANKLESS, .labels = "x"},
    {"OptionalGetElement", NULL, "optionalgetelement", BZ_VIEW, get_element_shape, .flags = OP_RANKLESS, .labels = "x"},
    {"OptionalHasElement", NULL, "optionalhaselement", BZ_VIEW, has_element_shape, .flags = OP_RANKLESS, .labels = "x"},
};
const op_table ops_sequence = OP_TABLE(ROWS);
