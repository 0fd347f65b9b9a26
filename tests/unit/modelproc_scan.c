/* Scan, by its definition: operands are cut along an axis, the body runs once for each cut, and what it makes is put together along another axis. In
 * opset 8 all operands have a batch in front, for each element of which the body runs anew, and axes cannot be chosen. */
#include "chance.h"
#include "model_lines.h"

enum { STATES = 2, SCANS = 2, RANK = 2, BATCH = 3 };

typedef struct {
    int rank, dim[RANK + 2];
} sizes;

/* Another size at a place; negative ones count from behind, where the new one is counted, too. */
static sizes with(sizes s, int at, int size)
{
    int place = at < 0 ? at + s.rank + 1 : at;
    for (int i = s.rank++; i > place; i--)
        s.dim[i] = s.dim[i - 1];
    s.dim[place] = size;
    return s;
}

static sizes drawn_sizes(void)
{
    sizes s = {.rank = (int)chance(RANK + 1)};
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = 4 + (int)chance(5);
    return s;
}

static const char *text_of(sizes s, char *out)
{
    *out = 0;
    for (int i = 0; i < s.rank; i++)
        sprintf(out + strlen(out), "%s%d", i ? "x" : "", s.dim[i]);
    return out;
}

static void assert_sizes(const bz_type *t, sizes want)
{
    assert_int_equal(t->rank, want.rank);
    for (int i = 0; i < want.rank; i++)
        assert_int_equal(t->dims[i], want.dim[i]);
}

typedef struct {
    bool old;
    int states, scans, said, length[SCANS], in_axis[SCANS], out_axis[SCANS];
    sizes state[STATES], cut[SCANS];
} drawn_scan;

static drawn_scan draw(void)
{
    drawn_scan s = {.old = chance(3) == 0, .states = (int)chance(STATES + 1), .scans = 1 + (int)chance(SCANS)};
    s.said = s.scans;
    for (int k = 0; k < s.states; k++)
        s.state[k] = drawn_sizes();
    for (int k = 0, length = 2 + (int)chance(9); k < s.scans; k++) {
        s.cut[k] = drawn_sizes();
        s.length[k] = length;
        int places = s.cut[k].rank + 1;
        s.in_axis[k] = s.old ? 0 : (int)chance(2 * (unsigned)places) - places;
        s.out_axis[k] = s.old ? 0 : (int)chance(2 * (unsigned)places) - places;
    }
    return s;
}

/* As a model has it: a batch stands before everything in opset 8. */
static sizes outside(const drawn_scan *s, sizes inner)
{
    return s->old ? with(inner, 0, BATCH) : inner;
}

static bz_buf scan_model(const drawn_scan *s)
{
    bz_buf g = {0}, body = {0}, in_axes = an_attr("scan_input_axes", 7), out_axes = an_attr("scan_output_axes", 7);
    char in[80] = "", out[80] = "", made[80] = "", name[16], nodes[40], text[40];
    if (s->old)
        sprintf(in, "_ ");
    for (int k = 0; k < s->states + s->scans; k++) {
        bool scanned = k >= s->states;
        int at = scanned ? k - s->states : k;
        sizes inner = scanned ? s->cut[at] : s->state[at],
              outer = scanned ? with(inner, s->in_axis[at], s->length[at]) : inner;
        snprintf(name, sizeof name, "x%d", k);
        put_message(&g, GRAPH_INPUT, a_value(name, BZ_F32, text_of(outside(s, outer), text)));
        sprintf(in + strlen(in), "%s ", name);
        snprintf(name, sizeof name, "i%d", k);
        bz_buf input = {0};
        put_text(&input, 1, name);
        put_message(&body, GRAPH_INPUT, input);
        snprintf(nodes, sizeof nodes, "%s i%d o%d", scanned ? "Abs" : "Relu", k, k);
        put_plain_nodes(&body, nodes);
        sprintf(made + strlen(made), "o%d ", k);
        sprintf(out + strlen(out), "y%d ", k);
        if (scanned) {
            put_int(&in_axes, ATTR_INTS, s->in_axis[at]);
            put_int(&out_axes, ATTR_INTS, s->out_axis[at]);
        }
    }
    for (char *rest = NULL, *one = strtok_r(made, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        bz_buf result = {0};
        put_text(&result, 1, one);
        put_message(&body, GRAPH_OUTPUT, result);
    }
    bz_buf node = a_node("Scan", "scan", in, out), attr = an_attr("body", 5);
    put_message(&attr, ATTR_G, body);
    put_message(&node, NODE_ATTR, attr);
    put_message(&node, NODE_ATTR, an_int_attr("num_scan_inputs", s->said));
    if (!s->old) {
        put_message(&node, NODE_ATTR, in_axes);
        put_message(&node, NODE_ATTR, out_axes);
    } else {
        bz_buf_free(&in_axes);
        bz_buf_free(&out_axes);
    }
    put_message(&g, GRAPH_NODE, node);
    bz_buf result = {0};
    put_text(&result, 1, "y0");
    put_message(&g, GRAPH_OUTPUT, result);
    return a_model(8, s->old ? 8 : 16, g);
}

static void shapes_and_trips_are_those_of_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        drawn_scan s = draw();
        subject of = infer_file(scan_model(&s), "a scan");
        const bz_layer *l = &of.layers->layer[0];
        assert_int_equal(l->n_bodies, 1);
        assert_true(l->bodies[0].trips_known);
        assert_int_equal(l->bodies[0].trips, s.length[0] * (s.old ? BATCH : 1));
        assert_int_equal(l->bodies[0].n, s.states + s.scans);
        for (int k = 0; k < s.states + s.scans; k++) {
            bool scanned = k >= s.states;
            int at = scanned ? k - s.states : k;
            sizes inner = scanned ? s.cut[at] : s.state[at];
            assert_sizes(&l->bodies[0].layers[k].out[0], inner);
            assert_sizes(&l->out[k], outside(&s, scanned ? with(inner, s.out_axis[at], s.length[0]) : inner));
        }
        end(&of);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (int round = 0; round < 120; round++) {
        drawn_scan s = draw();
        const char *why = "num_scan_inputs";
        if (round % 3 == 0) {
            s.said = 0;
        } else if (round % 3 == 1) {
            s.said = s.states + s.scans + 1;
        } else if (s.scans == 2) {
            s.length[1]++;
            why = "scanned over";
        } else {
            continue;
        }
        bz_buf bytes = scan_model(&s);
        bz_model *model;
        bz_layers *layers = NULL;
        bz_error err = {0};
        assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &model, &err), 0);
        assert_int_equal(bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err), -1);
        assert_non_null(strstr(err.text, why));
        bz_model_free(model);
        bz_buf_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_trips_are_those_of_the_definition),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
