/* Layers that move whole numbers or make them floating-point numbers, as our loops: random layers become plans, whose steps are done here, one element after the other and inside their
 * tensors, and give what ONNX says. */
#include "replay/replay.h"
#include "tests/unit/chance.h"
#include "tests/unit/perfdb_test.h"
#include "tests/unit/writer.h"

enum { MOST = 4, INPUTS = 3, ROOM = 20000 };

typedef struct {
    int rank;
    int64_t dim[MOST + 1];
} shape;

/* A layer of inputs "0", "1", "2" and a result "y", [elements]. */
typedef struct {
    bz_buf graph;
    shape in[INPUTS], out;
    bz_dtype made; /* BZ_UNDEFINED: i64 */
    int n_in;
    double want[ROOM];
} task;

static int64_t count(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

/* Coordinates of element i, and back. */
static void coordinates(const shape *s, int64_t i, int64_t *at)
{
    for (int d = s->rank; d--; i /= s->dim[d])
        at[d] = i % s->dim[d];
}

static int64_t element(const shape *s, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < s->rank; d++)
        i = i * s->dim[d] + at[d];
    return i;
}

static double given(int input, int64_t i)
{
    return 1000 * (input + 1) + (double)i;
}

static shape draw_shape(int least)
{
    shape s = {.rank = least + (int)chance((unsigned)(MOST + 1 - least))};
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = 1 + chance(4);
    return s;
}

static const char *dims_text(const shape *s)
{
    static char text[4][64];
    static int turn;
    char *p = text[turn++ % 4], *end = p + sizeof *text;
    *p = 0;
    for (int i = 0; i < s->rank; i++)
        p += snprintf(p, (size_t)(end - p), "%s%d", i ? "x" : "", (int)s->dim[i]);
    return text[(turn + 3) % 4];
}

static void put_input(task *t, bz_dtype dtype, shape s)
{
    char name[] = {(char)('0' + t->n_in), 0};
    t->in[t->n_in++] = s;
    put_message(&t->graph, GRAPH_INPUT, a_value(name, dtype, dims_text(&s)));
}

static void put_constant(task *t, const char *name, const int64_t *v, int n)
{
    char dims[16];
    snprintf(dims, sizeof dims, "%d", n);
    put_message(&t->graph, GRAPH_INIT,
                a_raw_tensor(name, BZ_I64, n == 1 && !strcmp(name, "value") ? "" : dims, v, (size_t)n * sizeof *v));
}

static void put_layer(task *t, const char *op, const char *in, const char *out, const char *attribute, const int64_t *v,
                      int n)
{
    bz_buf node = a_node(op, "layer", in, out);
    if (n == 1) {
        put_message(&node, NODE_ATTR, an_int_attr(attribute, *v));
    } else if (n) {
        bz_buf attr = an_attr(attribute, 7);
        for (int i = 0; i < n; i++)
            put_int(&attr, ATTR_INTS, v[i]);
        put_message(&node, NODE_ATTR, attr);
    }
    put_message(&t->graph, GRAPH_NODE, node);
}

static void draw_transpose(task *t)
{
    shape x = draw_shape(2);
    int64_t perm[MOST], to[MOST], from[MOST];
    for (int i = 0; i < x.rank; i++) {
        int k = (int)chance((unsigned)i + 1);
        perm[i] = perm[k], perm[k] = i;
    }
    put_input(t, BZ_I64, x);
    put_layer(t, "Transpose", "0", "y", "perm", perm, x.rank);
    t->out.rank = x.rank;
    for (int i = 0; i < x.rank; i++)
        t->out.dim[i] = x.dim[perm[i]];
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, to);
        for (int d = 0; d < x.rank; d++)
            from[perm[d]] = to[d];
        t->want[i] = given(0, element(&x, from));
    }
}

/* Every step from the start on, up to the end and without it; both count from the back where they are negative. */
static void draw_slice(task *t)
{
    shape x = draw_shape(1);
    int64_t start[MOST], end[MOST], axis[MOST], step[MOST], first[MOST], to[MOST];
    t->out = x;
    for (int d = 0; d < x.rank; d++) {
        int64_t n = x.dim[d], a = chance((unsigned)n), b = chance((unsigned)n);
        step[d] = (chance(2) ? 1 : -1) * (1 + (int64_t)chance(3));
        axis[d] = chance(2) ? d : d - x.rank;
        first[d] = step[d] > 0 ? (a < b ? a : b) : (a < b ? b : a);
        int64_t last = a + b - first[d], behind = last + (step[d] > 0 ? 1 : -1);
        start[d] = chance(2) ? first[d] : first[d] - n;
        end[d] = behind < 0 ? -1000 : behind < n && chance(2) ? behind - n : behind;
        t->out.dim[d] = (last - first[d]) / step[d] + 1;
    }
    put_input(t, BZ_I64, x);
    put_constant(t, "starts", start, x.rank), put_constant(t, "ends", end, x.rank);
    put_constant(t, "axes", axis, x.rank), put_constant(t, "steps", step, x.rank);
    put_layer(t, "Slice", "0 starts ends axes steps", "y", "", NULL, 0);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, to);
        for (int d = 0; d < x.rank; d++)
            to[d] = first[d] + to[d] * step[d];
        t->want[i] = given(0, element(&x, to));
    }
}

static void draw_concat(task *t)
{
    shape x = draw_shape(1);
    int64_t axis = chance((unsigned)x.rank), begin = 0, at[MOST];
    t->out = x, t->out.dim[axis] = 0;
    for (int k = 0; k < INPUTS; k++) {
        x.dim[axis] = 1 + chance(4);
        t->out.dim[axis] += x.dim[axis];
        put_input(t, BZ_I64, x);
    }
    put_layer(t, "Concat", "0 1 2", "y", "axis", &axis, 1);
    for (int k = 0; k < INPUTS; begin += t->in[k++].dim[axis])
        for (int64_t i = 0; i < count(&t->in[k]); i++) {
            coordinates(&t->in[k], i, at);
            at[axis] += begin;
            t->want[element(&t->out, at)] = given(k, i);
        }
}

/* The middle one of three parts. */
static void draw_split(task *t)
{
    shape x = draw_shape(1);
    int64_t axis = chance((unsigned)x.rank), parts[3], at[MOST];
    for (int k = 0; k < 3; k++)
        parts[k] = 1 + chance(3);
    x.dim[axis] = parts[0] + parts[1] + parts[2];
    t->out = x, t->out.dim[axis] = parts[1];
    put_input(t, BZ_I64, x);
    put_constant(t, "parts", parts, 3);
    put_layer(t, "Split", "0 parts", "before y behind", "axis", &axis, 1);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, at);
        at[axis] += parts[0];
        t->want[i] = given(0, element(&x, at));
    }
}

/* Negative numbers cut. */
static void draw_pad(task *t)
{
    shape x = draw_shape(1);
    int64_t pads[2 * MOST], value = 7, at[MOST];
    bool valued = chance(2);
    t->out = x;
    for (int d = 0; d < x.rank; d++) {
        pads[d] = (int64_t)chance(4) - 1, pads[x.rank + d] = (int64_t)chance(4) - 1;
        if (x.dim[d] + pads[d] + pads[x.rank + d] < 1)
            pads[d] = pads[x.rank + d] = 1;
        t->out.dim[d] += pads[d] + pads[x.rank + d];
    }
    put_input(t, BZ_I64, x);
    put_constant(t, "pads", pads, 2 * x.rank);
    if (valued)
        put_constant(t, "value", &value, 1);
    put_layer(t, "Pad", valued ? "0 pads value" : "0 pads", "y", "", NULL, 0);
    for (int64_t i = 0; i < count(&t->out); i++) {
        bool inside = true;
        coordinates(&t->out, i, at);
        for (int d = 0; d < x.rank; d++) {
            at[d] -= pads[d];
            inside &= at[d] >= 0 && at[d] < x.dim[d];
        }
        t->want[i] = inside ? given(0, element(&x, at)) : valued ? 7 : 0;
    }
}

/* A tensor's element for coordinates of a wider one: shapes are the same from the back, and what has one element repeats it. */
static int64_t spread(const shape *x, const shape *y, const int64_t *at)
{
    int64_t own[MOST] = {0};
    for (int d = 0; d < x->rank; d++)
        own[d] = x->dim[d] == 1 ? 0 : at[y->rank - x->rank + d];
    return element(x, own);
}

static shape draw_part(const shape *y)
{
    shape x = {.rank = (int)chance((unsigned)y->rank) + 1};
    for (int d = 0; d < x.rank; d++)
        x.dim[d] = chance(3) ? y->dim[y->rank - x.rank + d] : 1;
    return x;
}

static void draw_expand(task *t)
{
    int64_t at[MOST];
    t->out = draw_shape(1);
    shape x = draw_part(&t->out);
    put_input(t, BZ_I64, x);
    put_constant(t, "shape", t->out.dim, t->out.rank);
    put_layer(t, "Expand", "0 shape", "y", "", NULL, 0);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, at);
        t->want[i] = given(0, spread(&x, &t->out, at));
    }
}

/* Inputs of conditions are true where their element's number is even. */
static void draw_where(task *t)
{
    int64_t at[MOST];
    t->out = draw_shape(1);
    put_input(t, BZ_BOOL, t->out);
    for (int k = 1; k < INPUTS; k++)
        put_input(t, BZ_I64, draw_part(&t->out));
    put_layer(t, "Where", "0 1 2", "y", "", NULL, 0);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, at);
        int k = i % 2 ? 2 : 1;
        t->want[i] = given(k, spread(&t->in[k], &t->out, at));
    }
}

static void draw_gather(task *t)
{
    shape x = draw_shape(1);
    int64_t axis = chance((unsigned)x.rank), index[5], at[MOST];
    int n = 2 + (int)chance(4);
    put_input(t, BZ_I64, x);
    t->out = x, t->out.dim[axis] = n;
    for (int i = 0; i < n; i++)
        index[i] = chance((unsigned)x.dim[axis]);
    put_constant(t, "index", index, n);
    put_layer(t, "Gather", "0 index", "y", "axis", &axis, 1);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, at);
        at[axis] = index[at[axis]];
        t->want[i] = given(0, element(&x, at));
    }
}

/* Indices of the operand's rank: along the axis they say where, in the other dimensions they are where they lie. */
static void draw_along(task *t, bool scatters)
{
    shape x = draw_shape(1), part = x;
    int64_t axis = chance((unsigned)x.rank), index[256], at[MOST];
    for (int d = 0; d < x.rank; d++)
        part.dim[d] = 1 + chance((unsigned)x.dim[d]);
    put_input(t, BZ_I64, x);
    for (int64_t i = 0; i < count(&part); i++) { /* of a scatter no two are the same */
        coordinates(&part, i, at);
        index[i] = scatters ? x.dim[axis] - 1 - at[axis] : (int64_t)chance((unsigned)x.dim[axis]);
    }
    bz_buf tensor = a_raw_tensor("index", BZ_I64, dims_text(&part), index, (size_t)count(&part) * sizeof *index);
    put_message(&t->graph, GRAPH_INIT, tensor);
    if (scatters)
        put_input(t, BZ_I64, part);
    put_layer(t, scatters ? "ScatterElements" : "GatherElements", scatters ? "0 index 1" : "0 index", "y", "axis",
              &axis, 1);
    t->out = scatters ? x : part;
    for (int64_t i = 0; i < count(&x) && scatters; i++)
        t->want[i] = given(0, i);
    for (int64_t i = 0; i < count(&part); i++) {
        coordinates(&part, i, at);
        at[axis] = index[i];
        t->want[scatters ? element(&x, at) : i] = scatters ? given(1, i) : given(0, element(&x, at));
    }
}

static void draw_gather_elements(task *t)
{
    draw_along(t, false);
}

static void draw_scatter_elements(task *t)
{
    draw_along(t, true);
}

static void draw_tile(task *t)
{
    shape x = draw_shape(1);
    int64_t times[MOST], at[MOST];
    t->out = x;
    for (int d = 0; d < x.rank; d++)
        times[d] = 1 + chance(2), t->out.dim[d] *= times[d];
    put_input(t, BZ_I64, x);
    put_constant(t, "times", times, x.rank);
    put_layer(t, "Tile", "0 times", "y", "", NULL, 0);
    for (int64_t i = 0; i < count(&t->out); i++) {
        coordinates(&t->out, i, at);
        for (int d = 0; d < x.rank; d++)
            at[d] %= x.dim[d];
        t->want[i] = given(0, element(&x, at));
    }
}

/* What lies on the diagonal number k and above it, or below it, of the last two dimensions; else 0. */
static void draw_trilu(task *t)
{
    shape x = draw_shape(2);
    int64_t upper = chance(2), k = (int64_t)chance(5) - 2, at[MOST];
    bool moved = chance(2);
    put_input(t, BZ_I64, x);
    if (moved)
        put_constant(t, "value", &k, 1);
    put_layer(t, "Trilu", moved ? "0 value" : "0", "y", "upper", &upper, 1);
    t->out = x;
    for (int64_t i = 0; i < count(&x); i++) {
        coordinates(&x, i, at);
        int64_t off = at[x.rank - 1] - at[x.rank - 2] - (moved ? k : 0);
        t->want[i] = (upper ? off >= 0 : off <= 0) ? given(0, i) : 0;
    }
}

/* One scale and one zero point, or one for each index of an axis; zero points may lack. */
static void draw_dequantize(task *t)
{
    shape x = draw_shape(1), spread_over = {0};
    int64_t axis = chance((unsigned)x.rank), at[MOST];
    bool zero = chance(2), each = chance(2);
    if (each)
        spread_over.rank = 1, spread_over.dim[0] = x.dim[axis];
    put_input(t, BZ_U16, x); /* no library takes this type */
    put_input(t, BZ_F32, spread_over);
    if (zero)
        put_input(t, BZ_U16, spread_over);
    put_layer(t, "DequantizeLinear", zero ? "0 1 2" : "0 1", "y", "axis", &axis, 1);
    t->out = x, t->made = BZ_F32;
    for (int64_t i = 0; i < count(&x); i++) {
        coordinates(&x, i, at);
        int64_t k = each ? at[axis] : 0;
        t->want[i] = (given(0, i) - (zero ? given(2, k) : 0)) * given(1, k);
    }
}

typedef struct {
    double v[ROOM];
    int64_t n;
} tensor;

static double *within(tensor *t, int64_t i)
{
    assert_in_range(i, 0, t->n - 1);
    return &t->v[i];
}

static double two(const char *function, double a, double b)
{
    return !strcmp(function, "mul") ? a * b : !strcmp(function, "sub") ? a - b : (double)NAN;
}

/* Where the tuple at an element of the indices leads. */
static int64_t place_of(const bz_replay_loop *l, tensor *index, int64_t at)
{
    int64_t place = 0;
    for (int j = 0; j < l->length; j++)
        place += (int64_t)*within(index, at + j) * l->step[j];
    return place;
}

/* Lanes of one element, whose number is that of a diagonal. */
static void do_triangle(const bz_replay_loop *l, double k, tensor *y)
{
    for (int64_t i = 0; i < l->dim[3]; i++) {
        double off = (double)(i % l->extent[0] - i / l->extent[0]) - k;
        *within(y, i) = l->alpha > 0 ? off >= 0 : off <= 0;
    }
}

static void do_loop(const bz_replay_step *s, tensor *t, tensor *y)
{
    const bz_replay_loop *l = s->loop;
    int64_t n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= l->dim[d];
    if (l->kind == BZ_LOOP_FILL)
        for (int64_t i = 0; i < y->n; i++)
            y->v[i] = s->n_in ? *within(&t[s->in[0]], 0) : l->value;
    else if (l->kind == BZ_LOOP_COPY || l->kind == BZ_LOOP_SELECT || l->kind == BZ_LOOP_BINARY ||
             l->kind == BZ_LOOP_GATHER || l->kind == BZ_LOOP_SCATTER)
        for (int64_t i = 0; i < n; i++) {
            int64_t at[3] = {l->from, l->to, 0}, rest = i;
            for (int d = l->rank; d--; rest /= l->dim[d])
                for (int k = 0; k < 3; k++)
                    at[k] += rest % l->dim[d] * l->stride[k][d];
            if (l->kind == BZ_LOOP_COPY)
                *within(y, at[1]) = *within(&t[s->in[0]], at[0]);
            else if (l->kind == BZ_LOOP_GATHER)
                *within(y, i) = *within(&t[s->in[0]], at[0] + place_of(l, &t[s->in[1]], at[1]));
            else if (l->kind == BZ_LOOP_SCATTER)
                *within(y, at[2] + place_of(l, &t[s->in[0]], at[0])) = *within(&t[s->in[1]], at[1]);
            else if (l->kind == BZ_LOOP_BINARY)
                *within(y, i) = two(l->function, *within(&t[s->in[0]], at[0]), *within(&t[s->in[1]], at[1]));
            else
                *within(y, i) =
                    *within(&t[s->in[0]], at[0]) > 0 ? *within(&t[s->in[1]], at[1]) : *within(&t[s->in[2]], at[2]);
        }
    else if (l->kind == BZ_LOOP_LANES && !strcmp(l->function, "triangle"))
        do_triangle(l, *within(&t[s->in[0]], 0), y);
    else
        fail_msg("loop %d", l->kind);
}

static void do_steps(const bz_replay_plan *p, tensor *t)
{
    for (int k = 0; k < p->n_values; k++) {
        const bz_replay_value *v = &p->value[k];
        int64_t whole[ROOM / 100];
        t[k].n = bz_extent_count(v->dim);
        bool stored = v->source == BZ_VALUE_STORED, known = stored && p->source[k].number;
        assert_true(t[k].n <= (stored ? ROOM / 100 : ROOM));
        if (stored && !known)
            assert_ok(bz_tensor_ints(p->layers->model, p->source[k].tensor, whole, &err));
        for (int64_t i = 0; i < t[k].n; i++)
            t[k].v[i] = known                         ? p->source[k].number[i]
                        : stored                      ? (double)whole[i]
                        : v->source != BZ_VALUE_INPUT ? (double)NAN
                        : v->dtype == BZ_BOOL         ? !(i % 2)
                                                      : given(v->name[0] - '0', i);
    }
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        if (s->kind == BZ_STEP_LOOP)
            do_loop(s, t, &t[s->out]);
        else if (s->kind == BZ_STEP_VIEW)
            memcpy(t[s->out].v, t[s->in[0]].v, (size_t)t[s->out].n * sizeof *t->v);
        else
            fail_msg("'%s' is a call", s->name);
    }
}

static void test_moves(void **state)
{
    (void)state;
    static void (*const DRAW[])(task *
                                t) = {draw_transpose, draw_slice,      draw_concat,          draw_split,
                                      draw_pad,       draw_expand,     draw_where,           draw_gather,
                                      draw_trilu,     draw_dequantize, draw_gather_elements, draw_scatter_elements,
                                      draw_tile};
    enum { KINDS = sizeof DRAW / sizeof *DRAW };
    static task t;
    static tensor done[30];
    const char *name = "m";
    for (int round = 0; round < KINDS * 100; round++) {
        bz_model *model;
        bz_layers *layers;
        bz_replay_plan *p;
        int y = -1;
        t = (task){0};
        put_text(&t.graph, GRAPH_NAME, "g");
        DRAW[round % KINDS](&t);
        put_message(&t.graph, GRAPH_OUTPUT, a_value("y", t.made ? t.made : BZ_I64, dims_text(&t.out)));
        bz_buf bytes = a_model(8, 17, t.graph);
        assert_ok(bz_model_parse(bytes.data, bytes.len, "m", &model, &err));
        assert_ok(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err));
        bz_plan *plan = bz_plan_of(&(bz_plan_options){0}, &layers, &name, 1);
        assert_ok(bz_replay_make(
            &(bz_replay_input){.model = name, .layers = layers, .plan = plan, .setting = {1, BZ_CACHE_HOT, ""}}, &p,
            &err));
        assert_true(p->n_values <= 30);
        do_steps(p, done);
        for (int k = 0; k < p->n_values; k++)
            if (p->value[k].output)
                y = k;
        assert_true(y >= 0 && done[y].n == count(&t.out));
        for (int64_t i = 0; i < done[y].n; i++)
            if (done[y].v[i] != t.want[i]) /* NAN: nobody made it */
                fail_msg("%s, round %d: element %d is %g, not %g", layers->layer[0].kind, round, (int)i, done[y].v[i],
                         t.want[i]);
        bz_replay_free(p);
        bz_plan_free(plan);
        bz_layers_free(layers);
        bz_model_free(model);
        bz_buf_free(&bytes);
    }
}

/* Inputs and outputs pass in the model's order, whichever is made first. */
static void test_order(void **state)
{
    (void)state;
    bz_buf graph = {0};
    bz_model *model;
    bz_layers *layers;
    bz_replay_plan *p;
    const char *name = "m", *const WANT[] = {"last", "first", "middle"};
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
    put_message(&graph, GRAPH_NODE, a_node("Neg", "a", "x", "first"));
    put_message(&graph, GRAPH_NODE, a_node("Sign", "b", "first", "middle"));
    put_message(&graph, GRAPH_NODE, a_node("Cos", "c", "middle", "last"));
    for (int i = 0; i < 3; i++)
        put_message(&graph, GRAPH_OUTPUT, a_value(WANT[i], BZ_F32, "4"));
    bz_buf bytes = a_model(8, 17, graph);
    assert_ok(bz_model_parse(bytes.data, bytes.len, "m", &model, &err));
    assert_ok(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err));
    bz_plan *plan = bz_plan_of(&(bz_plan_options){0}, &layers, &name, 1);
    assert_ok(bz_replay_make(
        &(bz_replay_input){.model = name, .layers = layers, .plan = plan, .setting = {1, BZ_CACHE_HOT, ""}}, &p, &err));
    int at = -1;
    for (int i = 0; i < 3; i++) {
        at = bz_replay_next_end(p->value, p->n_values, false, at);
        assert_true(at >= 0);
        assert_string_equal(p->value[at].name, WANT[i]);
    }
    assert_int_equal(bz_replay_next_end(p->value, p->n_values, false, at), -1);
    at = bz_replay_next_end(p->value, p->n_values, true, -1);
    assert_string_equal(p->value[at].name, "x");
    assert_int_equal(bz_replay_next_end(p->value, p->n_values, true, at), -1);
    bz_replay_free(p);
    bz_plan_free(plan);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
