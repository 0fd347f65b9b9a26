/* Graphs that are drawn: chains of convolutions, products, functions, constants by number, channel and column, transposes, padding and views, with a
 * branch here and there. What need not run in them, where patterns fit, and what layers and groups are lowered to is held against what it was
 * (seen.h): most rules of modelproc/spare_*.c and of groups look at several layers, which single operators do not show. */
#include "generator/generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chance.h"
#include "generator_say.h"
#include "modelproc_say.h"
#include "seen.h"

/* Operands, a letter each: v a value that is there; s a number, c one for each channel, l one for each column, t a whole tensor; w weights of 1x1, W of 3x3, m a
 * matrix, b a vector; p sizes of padding, 4 the shape of all values. */
static const struct {
    const char *op, *in, *attr;
    int n;
    int64_t v[4];
} ROWS[] = {
    {"Conv", "vw", NULL, 0, {0}},
    {"Conv", "vwb", NULL, 0, {0}},
    {"Conv", "vWb", "pads", 4, {1, 1, 1, 1}},
    {"ConvTranspose", "vw", NULL, 0, {0}},
    {"MatMul", "vm", NULL, 0, {0}},
    {"MatMul", "vv", NULL, 0, {0}},
    {"Add", "vs", NULL, 0, {0}},
    {"Add", "vc", NULL, 0, {0}},
    {"Add", "vl", NULL, 0, {0}},
    {"Add", "tv", NULL, 0, {0}},
    {"Add", "vv", NULL, 0, {0}},
    {"Add", "vv", NULL, 0, {0}},
    {"Sub", "vc", NULL, 0, {0}},
    {"Sub", "sv", NULL, 0, {0}},
    {"Mul", "vs", NULL, 0, {0}},
    {"Mul", "cv", NULL, 0, {0}},
    {"Mul", "vc", NULL, 0, {0}},
    {"Mul", "vl", NULL, 0, {0}},
    {"Mul", "vv", NULL, 0, {0}},
    {"Div", "vs", NULL, 0, {0}},
    {"Div", "vc", NULL, 0, {0}},
    {"Relu", "v", NULL, 0, {0}},
    {"Clip", "vss", NULL, 0, {0}},
    {"Max", "vs", NULL, 0, {0}},
    {"Sigmoid", "v", NULL, 0, {0}},
    {"HardSigmoid", "v", NULL, 0, {0}},
    {"Tanh", "v", NULL, 0, {0}},
    {"Erf", "v", NULL, 0, {0}},
    {"Pow", "vs", NULL, 0, {0}},
    {"Sqrt", "v", NULL, 0, {0}},
    {"Neg", "v", NULL, 0, {0}},
    {"Softmax", "v", NULL, 0, {0}},
    {"Identity", "v", NULL, 0, {0}},
    {"Transpose", "v", "perm", 4, {0, 2, 3, 1}},
    {"Transpose", "v", "perm", 4, {0, 3, 1, 2}},
    {"Transpose", "v", "perm", 4, {0, 1, 3, 2}},
    {"Pad", "vp", NULL, 0, {0}},
    {"MaxPool", "v", "kernel_shape", 2, {2, 2}},
    {"AveragePool", "v", "kernel_shape", 2, {1, 1}},
    {"BatchNormalization", "vbbbb", NULL, 0, {0}},
    {"LayerNormalization", "vll", NULL, 0, {0}},
    {"InstanceNormalization", "vbb", NULL, 0, {0}},
    {"Reshape", "v4", NULL, 0, {0}},
    {"Expand", "v4", NULL, 0, {0}},
    {"Concat", "v", "axis", -1, {1}},
    {"ReduceMean", "v", "axes", 1, {1}},
};

/* Functions as exporters write them out: 0 is the value before them, 1 what the first node makes. A ReduceMean is of the last axis, a Transpose of the
 * last two. */
static const char *const WRITTEN[] = {
    "Div 0r;Erf 1;Add 2o;Mul 03;Mul 4h",
    "Mul 0R;Erf 1;Add 2o;Mul 0h;Mul 43",
    "Pow 0n;Mul 1k;Add 02;Mul 3q;Tanh 4;Add 5o;Mul 0h;Mul 76",
    "Mul 00;Mul 10;Mul 2k;Add 03;Mul 4q;Tanh 5;Add 6o;Mul 07;Mul 8h",
    "Sigmoid 0;Mul 01",
    "HardSigmoid 0;Mul 01",
    "ReduceMean 0;Sub 01;Pow 2u;ReduceMean 3;Add 4e;Sqrt 5;Div 26;Mul 7l;Add 8l",
    "Mul 00;ReduceMean 1;Add 2e;Sqrt 3;Div 04;Mul 5l",
    "Pow 0u;ReduceMean 1;Add 2e;Sqrt 3;Reciprocal 4;Mul 05;Mul l6",
    "Transpose 0;MatMul 01;Mul 2s;Softmax 3;MatMul 40",
};

static const struct {
    char letter;
    float value;
} NUMBERS[] = {{'s', 1.5F}, {'r', 1.4142135F}, {'R', 0.70710677F}, {'o', 1}, {'h', 0.5F},
               {'n', 3},    {'k', 0.044715F},  {'q', 0.7978846F},  {'u', 2}, {'e', 1e-5F}};

enum { MOST_NODES = 14, MOST_VALUES = MOST_NODES + 11, GRAPHS = 300, SETS = 8 };

typedef struct {
    bz_draft draft;
    char name[MOST_VALUES][16]; /* of values: v0, the input, and what each node makes */
    int n;
    bz_buf *said;
} drawing;

static void put_constants(bz_draft *d)
{
    static const float FILL[144] = {1.5F};
    static const int64_t CHANNELS[] = {4, 1, 1}, WHOLE[] = {1, 4, 4, 4}, W[] = {4, 4, 1, 1}, W3[] = {4, 4, 3, 3},
                         PADDING[] = {0, 0, 1, 1, 0, 0, 1, 1};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        bz_draft_tensor(d, (const char[]){NUMBERS[i].letter, 0}, BZ_F32, 0, W, &NUMBERS[i].value, 4);
    bz_draft_tensor(d, "c", BZ_F32, 3, CHANNELS, FILL, 16);
    bz_draft_tensor(d, "l", BZ_F32, 1, CHANNELS, FILL, 16);
    bz_draft_tensor(d, "b", BZ_F32, 1, CHANNELS, FILL, 16);
    bz_draft_tensor(d, "m", BZ_F32, 2, W, FILL, 64);
    bz_draft_tensor(d, "t", BZ_F32, 4, WHOLE, FILL, 256);
    bz_draft_tensor(d, "w", BZ_F32, 4, W, FILL, 64);
    bz_draft_tensor(d, "W", BZ_F32, 4, W3, FILL, sizeof FILL);
    bz_draft_ints(d, "p", PADDING, 8);
    bz_draft_ints(d, "4", WHOLE, 4);
}

static void put_node(drawing *d, const char *op, const char *const *in, int n)
{
    const char *out = d->name[d->n];
    snprintf(d->name[d->n], sizeof *d->name, "v%d", d->n);
    d->n++;
    bz_draft_node(&d->draft, op, "", "", in, n, &out, 1);
    bz_buf_printf(d->said, "%s(", op);
    for (int k = 0; k < n; k++)
        bz_buf_printf(d->said, "%s%s", k ? " " : "", in[k]);
    bz_buf_puts(d->said, ") ");
}

static void put_row(drawing *d)
{
    size_t row = chance(sizeof ROWS / sizeof *ROWS);
    const char *in[5];
    char letter[5][2] = {{0}};
    int n = (int)strlen(ROWS[row].in), last = d->n - 1;
    for (int k = 0; k < n; k++) {
        letter[k][0] = ROWS[row].in[k];
        in[k] = letter[k][0] != 'v' ? letter[k] : d->name[!k || chance(4) ? last : (int)chance((unsigned)d->n)];
    }
    put_node(d, ROWS[row].op, in, n);
    if (ROWS[row].n < 0)
        bz_draft_attr_int(&d->draft, ROWS[row].attr, *ROWS[row].v);
    else if (ROWS[row].attr)
        bz_draft_attr_ints(&d->draft, ROWS[row].attr, ROWS[row].v, ROWS[row].n);
}

/* One number in eight is another one: then it is not that function. */
static void put_written(drawing *d)
{
    char copy[100], *save = NULL;
    int first = d->n - 1;
    snprintf(copy, sizeof copy, "%s", WRITTEN[chance(sizeof WRITTEN / sizeof *WRITTEN)]);
    for (char *node = strtok_r(copy, ";", &save); node; node = strtok_r(NULL, ";", &save)) {
        char *operands = strchr(node, ' '), letter[2][2] = {{0}};
        const char *in[2];
        int n = (int)strlen(++operands);
        operands[-1] = '\0';
        for (int k = 0; k < n; k++) {
            bool value = operands[k] >= '0' && operands[k] <= '9';
            letter[k][0] = operands[k] != 'l' && chance(8) == 0 ? 's' : operands[k];
            in[k] = value ? d->name[first + operands[k] - '0'] : letter[k];
        }
        put_node(d, node, in, n);
        if (!strcmp(node, "ReduceMean"))
            bz_draft_attr_ints(&d->draft, "axes", (const int64_t[]){-1}, 1);
        if (!strcmp(node, "Transpose"))
            bz_draft_attr_ints(&d->draft, "perm", (const int64_t[]){0, 1, 3, 2}, 4);
    }
}

static void draw_graph(bz_buf *file, bz_buf *said)
{
    static const int64_t X[] = {1, 4, 4, 4};
    drawing d = {.n = 1, .name = {"v0"}, .said = said};
    int nodes = 3 + (int)chance(MOST_NODES - 3);
    bz_draft_input(&d.draft, "v0", BZ_F32, 4, X);
    put_constants(&d.draft);
    while (d.n <= nodes)
        chance(8) ? put_row(&d) : put_written(&d);
    bz_draft_output(&d.draft, d.name[d.n - 1], BZ_F32, -1, NULL);
    if (chance(3) == 0)
        bz_draft_output(&d.draft, d.name[d.n / 2], BZ_F32, -1, NULL);
    bz_draft_opset(&d.draft, "", 17);
    bz_draft_end(&d.draft, 8, "drawn", file);
}

static void say_plan(bz_layers *l, bz_patterns *patterns, bz_buf *out)
{
    const bz_plan_layer *item;
    const bz_plan_place *place;
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.patterns = patterns});
    bz_plan_add(plan, l, "drawn");
    int n = bz_plan_layers(plan, &item), places = bz_plan_places(plan, 0, &place);
    for (int i = 0; i < places; i++) {
        bz_buf_printf(out, "place %d %d%d:", (int)place[i].spare, place[i].shared, place[i].past);
        for (int k = 0; k < place[i].n; k++)
            bz_buf_printf(out, " %d", place[i].layer[k]);
        say_taken(item, place, i, out);
        bz_buf_putc(out, '\n');
    }
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "%s %s", item[i].pattern ? item[i].pattern : "", item[i].key);
        for (int a = 0; a < item[i].lowering.n; a++)
            for (int k = 0; k < item[i].lowering.alternative[a].n; k++)
                bz_buf_printf(out, " %s %s", k ? "+" : "|", item[i].lowering.alternative[a].text[k]);
        bz_buf_putc(out, '\n');
    }
    bz_plan_free(plan);
}

static void say(const char *set, seen *s)
{
    bz_patterns *patterns = NULL;
    bz_error err = {0};
    assert_int_equal(bz_patterns_load(NULL, &patterns, &err), 0);
    chance_state = (uint64_t)*set;
    for (int i = 0; i < GRAPHS; i++, s->tried++) {
        bz_buf file = {0};
        bz_model *m = NULL;
        bz_layers *l = NULL;
        draw_graph(&file, &s->text);
        if (!bz_model_parse(file.data, file.len, "drawn", &m, &err) &&
            !bz_layers_infer(m, &(bz_infer_options){.ignore_declared = true}, &l, &err)) {
            bz_spares spares;
            bz_buf_putc(&s->text, '\n');
            for (int k = 0; k < l->n; k++)
                say_layer(m, &l->layer[k], &s->text);
            say_spares(l, &spares, &s->text);
            say_plan(l, patterns, &s->text);
            s->taken++;
        } else {
            bz_buf_puts(&s->text, "refused\n");
        }
        bz_layers_free(l);
        bz_model_free(m);
        bz_buf_free(&file);
    }
    bz_patterns_free(patterns);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[SETS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    return seen_main(argc, argv, NAMES, SETS, say, BENANZA_SOURCE "/tests/unit/generator_drawn.txt");
}
