/* Searches of ONNX Runtime: a decoder that runs once for the prompt and once for each token. What its operands are, by the definition of
 * com.microsoft's operators: ids [rows, tokens], places, a mask over all tokens, caches [2, rows, heads, tokens, size]. */
#include "modelproc/modelproc.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* "ids=?x? mask=?x?": inputs, of which a model tells the rank alone. Each is read by a layer of its own. */
static bz_buf a_decoder(const char *inputs, const char *nodes, const char *results)
{
    bz_buf g = {0};
    char name[16], dims[32];
    int used;
    for (; sscanf(inputs, " %15[^=]=%31s%n", name, dims, &used) == 2; inputs += used)
        put_message(&g, GRAPH_INPUT, a_value(name, BZ_F32, dims));
    put_plain_nodes(&g, nodes);
    for (; sscanf(results, " %15s%n", name, &used) == 1; results += used) {
        bz_buf out = {0};
        put_text(&out, 1, name);
        put_message(&g, GRAPH_OUTPUT, out);
    }
    return g;
}

static void put_graph(bz_buf *node, const char *name, bz_buf graph)
{
    bz_buf attr = an_attr(name, 5);
    put_message(&attr, ATTR_G, graph);
    put_message(node, NODE_ATTR, attr);
}

static void put_number(bz_buf *g, const char *name, int64_t n)
{
    int32_t v = (int32_t)n;
    if (n >= 0)
        put_message(g, GRAPH_INIT, a_raw_tensor(name, BZ_I32, "1", &v, sizeof v));
    else
        put_message(g, GRAPH_INPUT, a_value(name, BZ_I32, "1"));
}

#define IDS   "ids=NxN places=NxN mask=NxN "
#define PAST  "past0=2xNx4xNx8 past1=2xNx4xNx8"
#define READS "Relu ids logits; Tanh places p; Exp mask m; Neg past0 now0; Abs past1 now1"
#define GROWN "logits now0 now1"

static const struct {
    const char *op, *x;
    int64_t longest, beams, results, trips;
    const char *inputs, *nodes, *made, *init; /* init: an init_decoder of other layers, or NULL */
    const char *layers; /* "prompt 1: relu 3x7, …; token 12?: …": "?" where the model does not tell how many */
    const char *result;
} CASES[] = {
    /* 20 tokens, of which 7 are the prompt and one more is made with it: 12 runs, with caches of 7 to 18 tokens */
    {"GreedySearch", "3x7", 20, 1, 1, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 12: relu 3x1, tanh 3x1, exp 3x13, neg 2x3x4x12x8, abs 2x3x4x12x8",
     "3x20"},
    {"Sampling", "3x7", 20, 1, 1, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 12: relu 3x1, tanh 3x1, exp 3x13, neg 2x3x4x12x8, abs 2x3x4x12x8",
     "3x20"},
    /* the last token is made by the prompt */
    {"GreedySearch", "3x7", 8, 1, 1, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8", "3x8"},
    {"GreedySearch", "3x7", 9, 1, 1, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 1: relu 3x1, tanh 3x1, exp 3x8, neg 2x3x4x7x8, abs 2x3x4x7x8",
     "3x9"},
    /* no room behind the prompt: how long is not told */
    {"GreedySearch", "3x7", 7, 1, 1, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 1?: relu 3x1, tanh 3x1, exp 3x8, neg 2x3x4x7x8, abs 2x3x4x7x8",
     "3x7"},
    /* --trips tells */
    {"GreedySearch", "3x7", -1, 1, 1, 5, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 3x7, tanh 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 5?: relu 3x1, tanh 3x1, exp 3x10, neg 2x3x4x9x8, abs 2x3x4x9x8",
     "3x?"},
    /* beams of each prompt, also for the prompt; results are of the last ones */
    {"BeamSearch", "3x7", 20, 4, 2, 0, IDS PAST, READS, GROWN, NULL,
     "prompt 1: relu 12x7, tanh 12x7, exp 12x7, neg 2x12x4x0x8, abs 2x12x4x0x8; "
     "token 12: relu 12x1, tanh 12x1, exp 12x13, neg 2x12x4x12x8, abs 2x12x4x12x8",
     "3x2x20"},
    /* another graph for the prompt */
    {"GreedySearch", "3x7", 20, 1, 1, 0, IDS PAST, READS, GROWN,
     "Sin ids logits; Cos places p; Exp mask m; Neg past0 now0; Abs past1 now1",
     "prompt 1: sin 3x7, cos 3x7, exp 3x7, neg 2x3x4x0x8, abs 2x3x4x0x8; "
     "token 12: relu 3x1, tanh 3x1, exp 3x13, neg 2x3x4x12x8, abs 2x3x4x12x8",
     "3x20"},
    /* graphs of no search: no cache, nothing but caches, too few results */
    {"GreedySearch", "3x7", 20, 1, 1, 0, IDS, "Relu ids logits; Tanh places p; Exp mask m", "logits", NULL, "", "3x20"},
    {"GreedySearch", "3x7", 20, 1, 1, 0, PAST, "Neg past0 now0; Abs past1 now1", "now0 now0 now1", NULL, "", "3x20"},
    {"GreedySearch", "3x7", 20, 1, 1, 0, IDS PAST, READS, "now0 now1", NULL, "", "3x20"},
    {"GreedySearch", "Nx7", 20, 1, 1, 0, IDS PAST, READS, GROWN, NULL, "", "?x20"},
    {"GreedySearch", "3xN", 20, 1, 1, 0, IDS PAST, READS, GROWN, NULL, "", "3x20"},
};

static void say_layers(const bz_layer *l, bz_buf *out)
{
    for (int b = 0; b < l->n_bodies; b++) {
        const bz_body *body = &l->bodies[b];
        bz_buf_printf(out, "%s%s %lld%s:", b ? "; " : "", body->name, (long long)body->trips,
                      body->trips_known ? "" : "?");
        for (int k = 0; k < body->n; k++) {
            bz_buf_printf(out, "%s %s ", k ? "," : "", body->layers[k].kind);
            bz_type_text(NULL, &body->layers[k].in[0], out);
        }
    }
}

static void check_search(size_t i)
{
    bz_buf g = {0}, out = {0}, found = {0}, result = {0};
    bool beams = strstr(CASES[i].op, "Beam") != NULL;
    bz_buf node = a_node(CASES[i].op, "search", beams ? "x longest least beams results" : "x longest least", "y");
    put_text(&node, NODE_DOMAIN, "com.microsoft");
    put_graph(&node, "decoder", a_decoder(CASES[i].inputs, CASES[i].nodes, CASES[i].made));
    if (CASES[i].init)
        put_graph(&node, "init_decoder", a_decoder(CASES[i].inputs, CASES[i].init, CASES[i].made));
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_I32, CASES[i].x));
    put_number(&g, "longest", CASES[i].longest);
    put_number(&g, "least", 1);
    put_number(&g, "beams", CASES[i].beams);
    put_number(&g, "results", CASES[i].results);
    put_message(&g, GRAPH_NODE, node);
    put_text(&out, 1, "y");
    put_message(&g, GRAPH_OUTPUT, out);
    bz_buf bytes = a_model(9, 20, g);
    put_opset(&bytes, MODEL_OPSET, "com.microsoft", 1);
    bz_model *model = NULL;
    bz_layers *layers = NULL;
    bz_error err = {0};
    if (bz_model_parse(bytes.data, bytes.len, "test", &model, &err) ||
        bz_layers_infer(model, &(bz_infer_options){.open_inputs = true, .trips = CASES[i].trips}, &layers, &err))
        fail_msg("case %zu: %s", i, err.text);
    const bz_layer *l = &layers->layer[layers->n - 1];
    say_layers(l, &found);
    bz_type_text(NULL, &l->out[0], &result);
    if (strcmp(bz_buf_text(&found), CASES[i].layers) != 0 || strcmp(bz_buf_text(&result), CASES[i].result) != 0)
        fail_msg("case %zu:\n%s -> %s, not\n%s -> %s", i, bz_buf_text(&found), bz_buf_text(&result), CASES[i].layers,
                 CASES[i].result);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_buf_free(&bytes);
    bz_buf_free(&found);
    bz_buf_free(&result);
}

static void decoders_run_for_the_prompt_and_for_each_token(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        check_search(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decoders_run_for_the_prompt_and_for_each_token)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
