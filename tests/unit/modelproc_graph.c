/* Bodies, the graph of layers with its parallel modules, and fusion patterns. */
#include "chance.h"
#include "modelproc/modelproc.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct {
    bz_buf bytes;
    bz_model *model;
    bz_layers *layers;
} subject;

static subject infer(bz_buf graph, int64_t trips)
{
    subject s = {.bytes = a_model(8, 17, graph)};
    bz_error err = {0};
    bz_infer_options o = {.trips = trips};
    if (bz_model_parse(s.bytes.data, s.bytes.len, "test", &s.model, &err) ||
        bz_layers_infer(s.model, &o, &s.layers, &err))
        fail_msg("%s", err.text);
    return s;
}

static void end(subject *s)
{
    bz_layers_free(s->layers);
    bz_model_free(s->model);
    bz_buf_free(&s->bytes);
}

static void put_constant(bz_buf *g, const char *name, bz_dtype dtype, int64_t v)
{
    put_message(g, GRAPH_INIT, a_raw_tensor(name, dtype, "", &v, (size_t)bz_dtype_bits(dtype) / 8));
}

static bz_buf a_graph_attr(const char *name, bz_buf graph)
{
    bz_buf attr = an_attr(name, 5);
    put_message(&attr, ATTR_G, graph);
    return attr;
}

static void put_results(bz_buf *graph, const char *const *name)
{
    for (; *name; name++) {
        bz_buf out = {0};
        put_text(&out, 1, *name);
        put_message(graph, GRAPH_OUTPUT, out);
    }
}

static bz_buf a_branch(const char *nodes, const char *result)
{
    bz_buf g = {0};
    put_plain_nodes(&g, nodes);
    put_results(&g, (const char *[]){result, NULL});
    return g;
}

static bz_buf if_graph(bool constant, const char *x)
{
    bz_buf g = {0}, node = a_node("If", "choice", "cond", "y");
    put_message(&node, NODE_ATTR, a_graph_attr("then_branch", a_branch("MatMul x,x m; Relu m t", "t")));
    put_message(&node, NODE_ATTR, a_graph_attr("else_branch", a_branch("Tanh x e", "e")));
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, x));
    if (constant)
        put_constant(&g, "cond", BZ_BOOL, 1);
    else
        put_message(&g, GRAPH_INPUT, a_value("cond", BZ_BOOL, ""));
    put_message(&g, GRAPH_NODE, node);
    return g;
}

static void if_counts_its_cheaper_branch(void **state)
{
    (void)state;
    subject s = infer(if_graph(false, "4x4"), 0);
    assert_int_equal(s.layers->layer[0].n_bodies, 2);
    assert_int_equal(s.layers->layer[0].macs, 0);
    assert_int_equal(s.layers->layer[0].flops, 16);
    end(&s);
    s = infer(if_graph(true, "4x4"), 0); /* decided: the other one never runs */
    assert_int_equal(s.layers->layer[0].bodies[1].trips, 0);
    assert_int_equal(s.layers->layer[0].macs, 64);
    end(&s);
}

static void a_branch_that_cannot_be_run_is_not_taken(void **state)
{
    (void)state;
    subject s = infer(if_graph(false, "4x3"), 0);
    const bz_layer *l = &s.layers->layer[0];
    assert_int_equal(l->bodies[0].trips, 0);
    assert_int_equal(l->bodies[1].trips, 1);
    assert_true(l->bodies[1].trips_known);
    assert_int_equal(l->out[0].dims[1], 3);
    assert_int_equal(s.layers->n_warnings, 1);
    assert_non_null(strstr(s.layers->warnings[0], "its then_branch cannot be run with these sizes"));
    end(&s);
}

/* Of a decoder with and without a cache, merged, the branch runs that the inputs' sizes tell: the one that reads the cache where it is not empty. */
static void a_cache_tells_which_branch_runs(void **state)
{
    (void)state;
    static const struct {
        const char *size, *then_nodes, *else_nodes, *cond; /* of p, q, r and s; cond: the If's condition */
        int64_t n;                                         /* N */
        const char *said;                                  /* "": nothing tells */
        int branch;
    } CASES[] = {{"Nx4", "Add p,q t", "Tanh x e", "cond", 5, "cond is taken as true: p is not empty", 0},
                 {"Nx4", "Add p,q t", "Tanh x e", "cond", 0, "cond is taken as false: p is empty", 1},
                 {"Nx4", "Tanh x t", "Add q,r e", "cond", 5, "cond is taken as false: q is not empty", 1},
                 {"Nx4", "Tanh x t", "Add q,r e", "cond", 0, "cond is taken as true: q is empty", 0},
                 {"Nx4", "Sum p,q,r t", "Tanh s e", "cond", 1, "cond is taken as true: p is not empty", 0},
                 {"4xN", "Sum r,s t", "Tanh p e", "cond", 2, "cond is taken as true: r is not empty", 0},
                 {"Nx4", "Add p,p t", "Tanh x e", "cond", 5, "", 0},   /* one alone may be anything */
                 {"Nx4", "Add p,q t", "Add r,s e", "cond", 5, "", 0},  /* as many by each */
                 {"Nx4", "Add p,q t", "Add p,q e", "cond", 5, "", 0},  /* none alone */
                 {"5x4", "Add p,q t", "Tanh x e", "cond", 5, "", 0},   /* always there */
                 {"Nx4", "Add p,q t", "Tanh x e", "other", 5, "", 0},  /* the model decides */
                 {"Nx4", "Add p,q t", "Tanh x e", "cond", -1, "", 0}}; /* of open size */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf g = {0}, node = a_node("If", "choice", CASES[i].cond, "y");
        char size[24];
        snprintf(size, sizeof size, "%lld", (long long)CASES[i].n);
        put_message(&node, NODE_ATTR, a_graph_attr("then_branch", a_branch(CASES[i].then_nodes, "t")));
        put_message(&node, NODE_ATTR, a_graph_attr("else_branch", a_branch(CASES[i].else_nodes, "e")));
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x4"));
        for (const char *v = "p\0q\0r\0s\0"; *v; v += 2)
            put_message(&g, GRAPH_INPUT, a_value(v, BZ_F32, CASES[i].size));
        put_message(&g, GRAPH_INPUT, a_value("cond", BZ_BOOL, ""));
        put_plain_nodes(&g, "Not cond other");
        put_message(&g, GRAPH_NODE, node);
        subject s = {.bytes = a_model(8, 17, g)};
        bz_error err = {0};
        const bz_bind bind = {"N", size};
        bz_infer_options options = {
            .binds = &bind, .n_binds = CASES[i].n >= 0 && strchr(CASES[i].size, 'N'), .open_inputs = true};
        if (bz_model_parse(s.bytes.data, s.bytes.len, "test", &s.model, &err) ||
            bz_layers_infer(s.model, &options, &s.layers, &err))
            fail_msg("case %zu: %s", i, err.text);
        const char *said = "";
        for (int k = 0; k < s.layers->n_warnings; k++)
            said = strstr(s.layers->warnings[k], "is taken as") ? s.layers->warnings[k] : said;
        assert_string_equal(said, CASES[i].said);
        const bz_layer *l = &s.layers->layer[s.layers->n - 1];
        for (int b = 0; b < 2 && *said; b++)
            assert_true(l->bodies[b].trips == (b == CASES[i].branch) && l->bodies[b].trips_known);
        end(&s);
    }
}

/* A function is run as a body of its call, with the call's shapes, constants and known values; with more operands or results than it has, it is none. */
static void a_function_is_a_body(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *in, *out, *error; /* of F(a, b) -> r, and of its call */
        int layers;
        bz_dim dims[2];
    } CASES[] = {{"Add a,b t; Relu t r", "x w", "y", NULL, 2, {2, 6}},
                 {"Reshape a,b r", "x s", "y", NULL, 1, {3, 4}},
                 {"Relu a r", "x", "y", NULL, 1, {2, 6}},
                 {"Relu a r", "x w x", "y", "more operands or results than the function", 0, {0}},
                 {"Relu a r", "x", "y z", "more operands or results than the function", 0, {0}}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        static const int64_t SHAPE[] = {3, 4};
        static const float WEIGHTS[12] = {0};
        bz_buf g = {0}, f = {0}, call = a_node("F", "f", CASES[i].in, CASES[i].out);
        put_text(&call, NODE_DOMAIN, "local");
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "2x6"));
        put_message(&g, GRAPH_INIT, a_raw_tensor("w", BZ_F32, "2x6", WEIGHTS, sizeof WEIGHTS));
        put_message(&g, GRAPH_INIT, a_raw_tensor("s", BZ_I64, "2", SHAPE, sizeof SHAPE));
        put_message(&g, GRAPH_NODE, call);
        put_text(&f, FUNCTION_NAME, "F");
        put_text(&f, FUNCTION_DOMAIN, "local");
        put_names(&f, FUNCTION_INPUT, "a b");
        put_names(&f, FUNCTION_OUTPUT, "r");
        put_opset(&f, FUNCTION_OPSET, "", 17);
        char op[32], in[64], out[32];
        int used;
        for (const char *at = CASES[i].nodes; sscanf(at, " %31s %63s %31[^; ]%n", op, in, out, &used) == 3;
             at += used + (at[used] == ';')) {
            for (char *p = in; *p; p++)
                *p = *p == ',' ? ' ' : *p;
            put_message(&f, FUNCTION_NODE, a_node(op, out, in, out));
        }
        subject s = {.bytes = a_model(8, 17, g)};
        put_opset(&s.bytes, MODEL_OPSET, "local", 1);
        put_message(&s.bytes, MODEL_FUNCTION, f);
        bz_error err = {0};
        assert_int_equal(bz_model_parse(s.bytes.data, s.bytes.len, "test", &s.model, &err), 0);
        int rc = bz_layers_infer(s.model, &(bz_infer_options){0}, &s.layers, &err);
        assert_int_equal(rc, CASES[i].error ? -1 : 0);
        if (rc) {
            assert_non_null(strstr(err.text, CASES[i].error));
        } else {
            const bz_layer *l = &s.layers->layer[0];
            assert_true(l->n_bodies == 1 && l->bodies->trips == 1 && l->bodies->trips_known &&
                        l->bodies->n == CASES[i].layers);
            assert_string_equal(l->bodies->name, "F");
            assert_true(l->out[0].rank == 2 && !memcmp(l->out[0].dims, CASES[i].dims, sizeof CASES[i].dims));
            const bz_layer *first = &l->bodies->layers[0];
            assert_false(first->in_constant[0]);
            assert_true(first->n_in == 1 || first->in_constant[1]);
        }
        end(&s);
    }
}

/* Carries x, which Concat makes longer every trip; collects x's size before. */
static bz_buf loop_graph(int64_t trips, bool known)
{
    bz_buf g = {0}, body = {0}, node = a_node("Loop", "loop", "trips _ x", "last all");
    bz_buf concat = a_node("Concat", "longer", "v one", "w");
    put_message(&concat, NODE_ATTR, an_int_attr("axis", 0));
    put_message(&body, GRAPH_INPUT, a_value("i", BZ_I64, ""));
    put_message(&body, GRAPH_INPUT, a_value("go", BZ_BOOL, ""));
    put_message(&body, GRAPH_INPUT, a_value("v", BZ_F32, "L"));
    put_plain_nodes(&body, "Identity go go_on");
    put_message(&body, GRAPH_NODE, concat);
    put_plain_nodes(&body, "ReduceMax v size");
    put_results(&body, (const char *[]){"go_on", "w", "size", NULL});
    put_message(&node, NODE_ATTR, a_graph_attr("body", body));
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "3"));
    put_message(&g, GRAPH_INIT, a_tensor("one", BZ_F32, "1"));
    if (known)
        put_constant(&g, "trips", BZ_I64, trips);
    else
        put_message(&g, GRAPH_INPUT, a_value("trips", BZ_I64, ""));
    put_message(&g, GRAPH_NODE, node);
    return g;
}

static void short_loops_are_run_trip_by_trip(void **state)
{
    (void)state;
    subject s = infer(loop_graph(5, true), 0);
    const bz_layer *l = &s.layers->layer[0];
    assert_int_equal(l->out[0].dims[0], 8);
    assert_int_equal(l->out[1].dims[0], 5);
    int64_t trips = 0;
    for (int b = 0; b < l->n_bodies; b++)
        trips += l->bodies[b].trips;
    assert_int_equal(trips, 5);
    end(&s);
}

static void loops_without_a_count_are_open(void **state)
{
    (void)state;
    subject s = infer(loop_graph(0, false), 0);
    assert_int_equal(s.layers->layer[0].bodies[0].trips, 1);
    assert_false(s.layers->layer[0].bodies[0].trips_known);
    assert_true(bz_is_symbol(s.layers->layer[0].out[0].dims[0]));
    end(&s);
    s = infer(loop_graph(0, false), 7);
    assert_int_equal(s.layers->layer[0].bodies[0].trips, 7);
    end(&s);
}

/* However the body hands its condition on, unchanged it is true: all trips are run, also those that are too many to be run
 * one by one. One that the body computes may end the loop, and then nobody knows how often it runs. */
static void long_loops_know_their_condition(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *condition; /* of the body */
        bool known;
    } CASES[] = {
        {"Relu v w", "go", true},
        {"Relu v w; Identity go a", "a", true},
        {"Relu v w; Identity go a; Identity a b; Identity b c", "c", true},
        {"Relu v w; Not go a; Not a b; Identity b c", "c", true},
        {"Relu v w; And go,go a; Identity a b", "b", true},
        {"Relu v w; ReduceMax v a; Less a,limit b; Identity b c", "c", false},
        {"Relu v w; ReduceMax v a; Less a,limit b; And go,b c", "c", false},
    };
    static const int64_t TRIPS[] = {1, 64, 65, 66, 1000, INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t k = 0; k < sizeof TRIPS / sizeof *TRIPS; k++) {
            bz_buf g = {0}, body = {0}, node = a_node("Loop", "loop", "count start x", "last all");
            put_message(&body, GRAPH_INPUT, a_value("i", BZ_I64, ""));
            put_message(&body, GRAPH_INPUT, a_value("go", BZ_BOOL, ""));
            put_message(&body, GRAPH_INPUT, a_value("v", BZ_F32, "7"));
            put_plain_nodes(&body, CASES[i].nodes);
            put_results(&body, (const char *[]){CASES[i].condition, "w", "w", NULL});
            put_message(&node, NODE_ATTR, a_graph_attr("body", body));
            put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "7"));
            put_message(&g, GRAPH_INIT, a_tensor("limit", BZ_F32, ""));
            put_constant(&g, "trips", BZ_I64, TRIPS[k]);
            put_constant(&g, "yes", BZ_BOOL, 1);
            put_plain_nodes(&g, "Identity trips count; Identity yes start");
            put_message(&g, GRAPH_NODE, node);
            subject s = infer(g, 0);
            const bz_layer *l = &s.layers->layer[2];
            bool known = CASES[i].known;
            assert_int_equal(l->bodies[0].trips_known, known);
            assert_int_equal(bz_is_symbol(l->out[1].dims[0]), !known);
            if (known)
                assert_int_equal(l->out[1].dims[0], TRIPS[k]);
            if (i < 3)
                assert_int_equal(l->flops, 7 * TRIPS[k]);
            end(&s);
        }
}

/* The body compares a counter with a limit, as while loops of other frameworks do; the count is the largest number, or not there. */
static void counters_end_loops(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *condition;
        int64_t more; /* trips besides the limit; -1000: nobody knows */
    } CASES[] = {
        {"Relu v w; Add i,one a; Less a,limit c", "c", 0},
        {"Relu v w; Add i,one a; LessOrEqual a,limit b; Identity b c", "c", 1},
        {"Relu v w; Sub limit,i a; Greater a,one b; And go,b c", "c", 0},
        {"Relu v w; Greater limit,i b; Less i,limit d; And b,d c", "c", 1},
        {"Relu v w; GreaterOrEqual limit,i c", "c", 2},
        {"Relu v w; GreaterOrEqual i,limit c", "c", -1},
        {"Relu v w; ArgMax v a; Less a,limit c", "c", -1000},
        {"Relu v w; Mul i,i a; Less a,limit c", "c", -1000},
    };
    static const int64_t LIMITS[] = {2, 40, 100, 70000};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t k = 0; k < 2 * sizeof LIMITS / sizeof *LIMITS; k++) {
            bz_buf g = {0}, body = {0},
                   node = a_node("Loop", "loop", k % 2 ? "count start x" : "_ start x", "last all");
            int64_t limit = LIMITS[k / 2], trips = CASES[i].more == -1 ? 1 : limit + CASES[i].more;
            put_message(&body, GRAPH_INPUT, a_value("i", BZ_I64, ""));
            put_message(&body, GRAPH_INPUT, a_value("go", BZ_BOOL, ""));
            put_message(&body, GRAPH_INPUT, a_value("v", BZ_F32, "7"));
            put_plain_nodes(&body, CASES[i].nodes);
            put_results(&body, (const char *[]){CASES[i].condition, "w", "w", NULL});
            put_message(&node, NODE_ATTR, a_graph_attr("body", body));
            put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "7"));
            put_constant(&g, "limit", BZ_I64, limit);
            put_constant(&g, "one", BZ_I64, 1);
            put_constant(&g, "count", BZ_I64, INT64_MAX);
            put_constant(&g, "start", BZ_BOOL, 1);
            put_message(&g, GRAPH_NODE, node);
            subject s = infer(g, 0);
            const bz_layer *l = &s.layers->layer[0];
            bool known = CASES[i].more > -1000;
            assert_int_equal(l->bodies[0].trips_known, known);
            assert_int_equal(bz_is_symbol(l->out[1].dims[0]), !known);
            if (known)
                assert_int_equal(l->out[1].dims[0], trips);
            end(&s);
        }
}

/* A loop that is drawn: n begins at `start` and each trip makes m of it; the loop goes on while all `conditions` hold. Values are by letter: i the
 * trip, n, m, and constants a to d; others are made of these. */
typedef struct {
    bz_buf nodes;
    int64_t constant[4], start, count;
    int conditions;
    struct drawn_side {
        char first, second, sign; /* second 0: none */
    } side[2][2], update;
    int compare[2];
} drawn_loop;

static const char *const COMPARES[] = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"};

static int64_t value_of(const drawn_loop *l, char name, int64_t i, int64_t n);

static int64_t value_of_side(const drawn_loop *l, struct drawn_side s, int64_t i, int64_t n)
{
    int64_t a = value_of(l, s.first, i, n), b = s.second ? value_of(l, s.second, i, n) : 0;
    return s.sign == '-' ? a - b : a + b;
}

static int64_t value_of(const drawn_loop *l, char name, int64_t i, int64_t n)
{
    return name == 'i'   ? i
           : name == 'n' ? n
           : name == 'm' ? value_of_side(l, l->update, i, n)
                         : l->constant[name - 'a'];
}

static int64_t trips_of(const drawn_loop *l)
{
    int64_t n = l->start;
    for (int64_t i = 0; i < l->count; i++) {
        bool goes_on = true;
        for (int k = 0; k < l->conditions; k++) {
            int64_t d = value_of_side(l, l->side[k][0], i, n) - value_of_side(l, l->side[k][1], i, n);
            goes_on &= l->compare[k] == 0 ? d < 0 : l->compare[k] == 1 ? d <= 0 : l->compare[k] == 2 ? d > 0 : d >= 0;
        }
        if (!goes_on)
            return i + 1;
        n = value_of(l, 'm', i, n);
    }
    return l->count;
}

/* Writes a side as a node, at times with nodes around it that change nothing. */
static void put_side(bz_buf *nodes, struct drawn_side s, const char *name)
{
    bool through = chance(3) == 0;
    if (s.second)
        bz_buf_printf(nodes, "; %s %c,%c %s%s", s.sign == '-' ? "Sub" : "Add", s.first, s.second, name,
                      through ? "0" : "");
    else
        bz_buf_printf(nodes, "; Identity %c %s%s", s.first, name, through ? "0" : "");
    if (through)
        bz_buf_printf(nodes, "; Identity %s0 %s", name, name);
}

static drawn_loop draw_loop(void)
{
    static const int64_t COUNTS[] = {1, 3, 63, 64, 65, 66, 500, 3000};
    static const char VALUES[] = "inmabcd";
    drawn_loop l = {.start = (int64_t)chance(9) - 4, .count = COUNTS[chance(8)], .conditions = 1 + (int)chance(2)};
    for (int k = 0; k < 4; k++)
        l.constant[k] = (int64_t)chance(k < 2 ? 7 : 400) - (k < 2 ? 3 : 200);
    bool minus = chance(2), turned = !minus && chance(2);
    l.update = (struct drawn_side){turned ? 'a' : 'n', turned ? 'n' : 'a', minus ? '-' : '+'};
    bz_buf_puts(&l.nodes, "Relu v w");
    put_side(&l.nodes, l.update, "m");
    for (int k = 0; k < l.conditions; k++) {
        char left[24], right[24];
        for (int which = 0; which < 2; which++) {
            l.side[k][which] =
                (struct drawn_side){VALUES[chance(7)], chance(2) ? VALUES[chance(7)] : 0, chance(2) ? '-' : '+'};
            snprintf(which ? right : left, sizeof left, "s%d%d", k, which);
            put_side(&l.nodes, l.side[k][which], which ? right : left);
        }
        l.compare[k] = (int)chance(4);
        bz_buf_printf(&l.nodes, "; %s %s,%s k%d", COMPARES[l.compare[k]], left, right, k);
    }
    bz_buf_printf(&l.nodes, l.conditions == 2 ? "; And k0,k1 end"
                            : chance(2)       ? "; And go,k0 end"
                                              : "; Identity k0 end");
    return l;
}

static void drawn_loops_run_as_often_as_they_do(void **state)
{
    (void)state;
    for (int draw = 0; draw < 1500; draw++) {
        drawn_loop l = draw_loop();
        bz_buf g = {0}, body = {0}, node = a_node("Loop", "loop", "count start x begin", "last number all");
        put_message(&body, GRAPH_INPUT, a_value("i", BZ_I64, ""));
        put_message(&body, GRAPH_INPUT, a_value("go", BZ_BOOL, ""));
        put_message(&body, GRAPH_INPUT, a_value("v", BZ_F32, "7"));
        put_message(&body, GRAPH_INPUT, a_value("n", BZ_I64, ""));
        put_plain_nodes(&body, bz_buf_text(&l.nodes));
        put_results(&body, (const char *[]){"end", "w", "m", "w", NULL});
        put_message(&node, NODE_ATTR, a_graph_attr("body", body));
        put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "7"));
        for (int k = 0; k < 4; k++)
            put_constant(&g, (const char[]){(char)('a' + k), 0}, BZ_I64, l.constant[k]);
        put_constant(&g, "begin", BZ_I64, l.start);
        put_constant(&g, "count", BZ_I64, l.count);
        put_constant(&g, "start", BZ_BOOL, 1);
        put_message(&g, GRAPH_NODE, node);
        subject s = infer(g, 0);
        const bz_layer *layer = &s.layers->layer[0];
        if (layer->out[2].dims[0] != trips_of(&l))
            fail_msg("a=%lld b=%lld c=%lld d=%lld n=%lld, %lld times: %s\nends behind %lld trips, not %lld",
                     (long long)l.constant[0], (long long)l.constant[1], (long long)l.constant[2],
                     (long long)l.constant[3], (long long)l.start, (long long)l.count, bz_buf_text(&l.nodes),
                     (long long)trips_of(&l), (long long)layer->out[2].dims[0]);
        int64_t runs = 0;
        for (int k = 0; k < layer->n_bodies; k++)
            runs += layer->bodies[k].trips;
        assert_int_equal(runs, trips_of(&l));
        bz_buf_free(&l.nodes);
        end(&s);
    }
}

static void loops_that_never_run_cost_nothing(void **state)
{
    (void)state;
    subject s = infer(loop_graph(0, true), 0);
    assert_int_equal(s.layers->layer[0].bodies[0].trips, 0);
    assert_int_equal(s.layers->layer[0].flops, 0);
    end(&s);
}

static bz_buf plain_graph(const char *nodes)
{
    bz_buf g = {0};
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4x4"));
    put_message(&g, GRAPH_INIT, a_tensor("k", BZ_F32, "4x4"));
    put_plain_nodes(&g, nodes);
    return g;
}

static void a_chain_has_no_modules(void **state)
{
    (void)state;
    subject s = infer(plain_graph("Relu x a; Tanh a b; Add b,b c; Exp c d"), 0);
    const bz_dag *dag = bz_dag_build(s.layers);
    assert_int_equal(dag->n_modules, 0);
    assert_int_equal(dag->first[4], 3); /* one predecessor each, though Add reads b twice */
    end(&s);
}

static void branches_are_modules(void **state)
{
    (void)state;
    /* a forks into b, c-d and joins in e; f-g is a second module whose shortcut comes from e */
    subject s = infer(
        plain_graph("Relu x a; Tanh a b; Exp a c; Neg c d; Add b,d e; Relu e f; Tanh e g; Add f,g h; Exp h i"), 0);
    const bz_dag *dag = bz_dag_build(s.layers);
    assert_int_equal(dag->n_modules, 2);
    assert_int_equal(dag->modules[0].begin, 1);
    assert_int_equal(dag->modules[0].end, 4);
    assert_int_equal(dag->modules[0].width, 2);
    assert_int_equal(dag->modules[1].begin, 5);
    assert_int_equal(dag->modules[1].end, 7);
    end(&s);
}

/* A value that is used all along (an attention mask) does not hide the small modules on the way. */
static void side_inputs_do_not_hide_modules(void **state)
{
    (void)state;
    subject s =
        infer(plain_graph("Neg x mask; Relu x a; Tanh a q; Exp a p; Add q,p b; Add b,mask c; Tanh c r; Exp c t; "
                          "Add r,t d; Add d,mask e"),
              0);
    const bz_dag *dag = bz_dag_build(s.layers);
    int found = 0;
    for (int m = 0; m < dag->n_modules; m++)
        found += (dag->modules[m].begin == 2 && dag->modules[m].end == 4) ||
                 (dag->modules[m].begin == 6 && dag->modules[m].end == 8);
    assert_int_equal(found, 2);
    end(&s);
}

static void inputs_and_ends_fork_too(void **state)
{
    (void)state;
    subject s = infer(plain_graph("Relu x a; Tanh x b; Exp x c"), 0);
    const bz_dag *dag = bz_dag_build(s.layers);
    assert_int_equal(dag->n_modules, 1);
    assert_int_equal(dag->modules[0].width, 3);
    end(&s);
}

static void constants_keep_nobody_waiting(void **state)
{
    (void)state;
    subject s = infer(plain_graph("Relu k ck; Relu x a; Add a,ck b"), 0);
    assert_int_equal(s.layers->layer[0].class, BZ_CONSTANT);
    const bz_dag *dag = bz_dag_build(s.layers);
    assert_int_equal(dag->first[3], 1);
    assert_int_equal(dag->n_modules, 0);
    end(&s);
}

/* Places as "NAME: layers; …". */
static void expect_matches(const char *table, const char *nodes, const char *wanted)
{
    bz_error err = {0};
    bz_patterns *patterns = NULL;
    if (bz_patterns_parse(table, "table", &patterns, &err))
        fail_msg("%s", err.text);
    subject s = infer(plain_graph(nodes), 0);
    const bz_match *matches;
    int n = bz_patterns_find(patterns, s.layers, NULL, &matches);
    bz_buf text = {0};
    for (int i = 0; i < n; i++) {
        bz_buf_printf(&text, "%s%s:", i ? "; " : "", matches[i].pattern);
        for (int k = 0; k < matches[i].n; k++)
            bz_buf_printf(&text, " %d", matches[i].layer[k]);
    }
    assert_string_equal(bz_buf_text(&text), wanted);
    bz_buf_free(&text);
    end(&s);
    bz_patterns_free(patterns);
}

static void patterns_follow_data_flow(void **state)
{
    (void)state;
    static const char TABLE[] = "[pair]\na = Relu(x)\nb = Tanh(a)\n";
    expect_matches(TABLE, "Relu x a; Tanh a b", "pair: 0 1");
    expect_matches(TABLE, "Relu x a; Exp x c; Tanh a b", "pair: 0 2"); /* not the next one in the file */
    expect_matches(TABLE, "Relu x a; Tanh x b", "");                   /* neighbours, but no flow */
    expect_matches(TABLE, "Relu x a; Tanh a b; Exp a c", "");          /* another reader */
}

static void a_result_that_the_graph_returns_is_read(void **state)
{
    (void)state;
    bz_error err = {0};
    bz_patterns *patterns = NULL;
    assert_int_equal(bz_patterns_parse("[pair]\na = Relu(x)\nb = Tanh(a)\n", "table", &patterns, &err), 0);
    bz_buf g = plain_graph("Relu x a; Tanh a b");
    put_message(&g, GRAPH_OUTPUT, a_value("a", BZ_F32, "4x4"));
    subject s = infer(g, 0);
    const bz_match *matches;
    assert_int_equal(bz_patterns_find(patterns, s.layers, NULL, &matches), 0);
    end(&s);
    bz_patterns_free(patterns);
}

static void operands_match_in_either_order(void **state)
{
    (void)state;
    static const char TABLE[] = "[bias]\nm = matmul(a, b)\ny = Add(m, const)\n";
    expect_matches(TABLE, "MatMul x,x m; Add m,k y", "bias: 0 1");
    expect_matches(TABLE, "MatMul x,x m; Add k,m y", "bias: 0 1");
    expect_matches(TABLE, "MatMul x,x m; Add m,x y", ""); /* x is no constant */
    expect_matches("[minus]\nm = matmul(a, b)\ny = Sub(m, const)\n", "MatMul x,x m; Sub k,m y", "");
}

static void equal_names_are_equal_values(void **state)
{
    (void)state;
    static const char TABLE[] = "[square]\na = Sub(x, z)\nb = Mul(a, a)\n";
    expect_matches(TABLE, "Sub x,k a; Mul a,a b", "square: 0 1");
    expect_matches("[silu]\ns = Sigmoid(x)\ny = Mul(x, s)\n", "Sigmoid x s; Mul s,x y", "silu: 0 1");
    expect_matches("[silu]\ns = Sigmoid(x)\ny = Mul(x, s)\n", "Relu x r; Sigmoid x s; Mul s,r y", "");
}

static void patterns_use_sets_and_patterns(void **state)
{
    (void)state;
    static const char TABLE[] = "set act = Relu Tanh # two\n[silu(x)]\ns = Sigmoid(x)\ny = Mul(x, s)\n"
                                "[mm+act]\nm = matmul(a, b)\ny = @act(m)\n[mm+act]\nm = matmul(a, b)\ny = [silu](m)\n";
    expect_matches(TABLE, "MatMul x,x m; Tanh m y", "mm+act: 0 1");
    expect_matches(TABLE, "MatMul x,x m; Sigmoid m s; Mul m,s y", "silu: 1 2; mm+act: 0 1 2");
    expect_matches(TABLE, "MatMul x,x m; Exp m y", "");
}

static void tables_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *table, *why;
    } BAD[] = {
        {"a = Relu(x)\n", "line 1: a step stands outside"},
        {"[p]\na = Relu(x\nb = Tanh(a)\n", "line 2: ')' is missing"},
        {"[p]\na = @none(x)\n", "line 2: there is no set"},
        {"[p]\na = Relu(x)\nb = [other](a)\n", "line 3: there is no pattern"},
        {"[p]\na = Relu(x)\n", "two steps"},
        {"[p\na = Relu(x)\n", "line 1"},
        {"[p]\na = Relu(x)\na = Tanh(a)\n", "line 3: the name on the left is taken"},
        {"[q(x)]\ns = Relu(x)\nt = Exp(s)\n[p]\na = Relu(x)\nb = [q](a, x)\n", "number of parameters"},
        {"\n\n!\n", "line 3"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        bz_patterns *patterns = NULL;
        bz_error err = {0};
        assert_int_equal(bz_patterns_parse(BAD[i].table, "t", &patterns, &err), -1);
        assert_null(patterns);
        if (!strstr(err.text, BAD[i].why))
            fail_msg("'%s' should contain '%s'", err.text, BAD[i].why);
    }
}

static void the_table_that_we_ship_is_good(void **state)
{
    (void)state;
    bz_patterns *patterns = NULL;
    bz_error err = {0};
    if (bz_patterns_parse(bz_patterns_text, "patterns.txt", &patterns, &err))
        fail_msg("%s", err.text);
    bz_patterns_free(patterns);
    expect_matches(bz_patterns_text, "MatMul x,x m; Add m,k s; Relu s y",
                   "add+act: 1 2; matmul+bias: 0 1; matmul+bias+act: 0 1 2");
    expect_matches(bz_patterns_text, "MatMul x,x s; Div s,k d; Softmax d p; MatMul p,x y", "attention: 0 1 2 3");
}

static void pictures_name_every_layer(void **state)
{
    (void)state;
    subject s = infer(plain_graph("Relu x a; Tanh a b; Exp a c; Add b,c d"), 0);
    bz_buf dot = {0};
    bz_dot_layers(s.layers, bz_dag_build(s.layers), NULL, &dot);
    assert_non_null(strstr(dot.data, "subgraph cluster_0"));
    assert_non_null(strstr(dot.data, "n1 -> n3"));
    assert_non_null(strstr(dot.data, "n2 -> n3"));
    assert_null(strstr(dot.data, "n3 -> "));
    bz_buf_free(&dot);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(if_counts_its_cheaper_branch),
        cmocka_unit_test(a_branch_that_cannot_be_run_is_not_taken),
        cmocka_unit_test(a_cache_tells_which_branch_runs),
        cmocka_unit_test(a_function_is_a_body),
        cmocka_unit_test(short_loops_are_run_trip_by_trip),
        cmocka_unit_test(loops_without_a_count_are_open),
        cmocka_unit_test(long_loops_know_their_condition),
        cmocka_unit_test(counters_end_loops),
        cmocka_unit_test(drawn_loops_run_as_often_as_they_do),
        cmocka_unit_test(loops_that_never_run_cost_nothing),
        cmocka_unit_test(a_chain_has_no_modules),
        cmocka_unit_test(branches_are_modules),
        cmocka_unit_test(side_inputs_do_not_hide_modules),
        cmocka_unit_test(inputs_and_ends_fork_too),
        cmocka_unit_test(constants_keep_nobody_waiting),
        cmocka_unit_test(patterns_follow_data_flow),
        cmocka_unit_test(a_result_that_the_graph_returns_is_read),
        cmocka_unit_test(operands_match_in_either_order),
        cmocka_unit_test(equal_names_are_equal_values),
        cmocka_unit_test(patterns_use_sets_and_patterns),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(the_table_that_we_ship_is_good),
        cmocka_unit_test(pictures_name_every_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
