/* What is said of the neighbours of all rows of the operators' tables: types, keys, costs, warnings, or why they are refused. modelproc_neighbours.txt has
 * how many models each operator takes of how many, and a hash of all that is said (seen.h). A row of a table says what is right, and
 * conformance_neighbours asks others; here is noticed that something changed where no row looks, as a rare form's cost or a limit. Then the same
 * of every operator that is known, with operands of one shape, of up to eleven dimensions, family by family. */
#include "modelproc/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_neighbours.h"
#include "modelproc_say.h"
#include "seen.h"

static void say(const op_case *c, void *user)
{
    seen *s = user;
    inferred i;
    s->tried++;
    bz_buf_printf(&s->text, "%s-%d(%s) {%s}", c->op, c->opset, c->in, c->attrs);
    if (!infer_case(&i, c, false)) {
        bz_buf_printf(&s->text, " refused: %s\n", i.err.text);
    } else {
        bz_spares spares;
        bz_buf_putc(&s->text, '\n');
        say_spares(i.layers, &spares, &s->text);
        for (int k = 0; k < i.layers->n; k++)
            say_layer(i.model, &i.layers->layer[k], &s->text);
        for (int k = 0; k < i.layers->n_warnings; k++)
            bz_buf_printf(&s->text, "  %s\n", i.layers->warnings[k]);
        s->taken++;
    }
    end_case(&i);
}

#define FAMILY(name)                                                                                                   \
    {                                                                                                                  \
#name, &ops_##name                                                                                             \
    }
static const struct {
    const char *name;
    const op_table *table;
} FAMILIES[] = {
    FAMILY(elementwise),
    FAMILY(shape),
    FAMILY(constant),
    FAMILY(index),
    FAMILY(reduce),
    FAMILY(matmul),
    FAMILY(conv),
    FAMILY(norm),
    FAMILY(rnn),
    FAMILY(quant),
    FAMILY(vision),
    FAMILY(signal),
    FAMILY(sequence),
    FAMILY(control),
    FAMILY(random),
    FAMILY(loss),
    FAMILY(text),
    FAMILY(ml),
    FAMILY(microsoft),
    FAMILY(microsoft_block),
    FAMILY(microsoft_cache),
    FAMILY(microsoft_nchwc),
    FAMILY(microsoft_ordered),
    FAMILY(state),
    FAMILY(training),
    FAMILY(gradient),
    FAMILY(removed),
};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };
#undef FAMILY

/* Operands: the first of one type, the second of the next, others of the last. */
static void say_operands(const op *o, const char *const type[3], const char *shape, const char *attrs, int most,
                         seen *s)
{
    bz_buf in = {0};
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", o->domain ? o->domain : "", o->domain ? "." : "", o->name);
    for (int n = 0; n < most; n++) {
        bz_buf_printf(&in, "%s%s:%s", n ? " " : "", type[n < 2 ? n : 2], shape);
        const char *out = n % 2 ? "f32:1 f32:1 f32:1" : "f32:1";
        say(&(op_case){name, o->domain ? 1 : 13, bz_buf_text(&in), attrs, out, -1}, s);
    }
    bz_buf_free(&in);
}

static void say_operator(const op *o, seen *s)
{
    static const char *const TYPES[][3] = {
        {"f32", "f32", "f32"}, {"f32", "i64", "f32"}, {"i64", "i64", "i64"}, {"u8", "f32", "u8"}};
    static const char *const SHAPES[] = {"", "4x4", "2x4x4x4"};
    static const int RANKS[] = {1, 3, 5, 6, 8, 9, 10, 11};
    for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++)
        for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++)
            say_operands(o, TYPES[t], SHAPES[k], "", 6, s);
    for (size_t k = 0; k < sizeof RANKS / sizeof *RANKS; k++) {
        char shape[] = "2x2x2x2x2x2x2x2x2x2x2";
        shape[2 * RANKS[k] - 1] = '\0';
        say_operands(o, TYPES[0], shape, "", 3, s);
    }
    for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++)
        for (size_t k = 0; k < 4; k++)
            say_operands(o, TYPES[t], k & 1 ? "4" : "4x4", k & 2 ? "axis=i:0" : "axis=i:-1", 3, s);
}

static void say_all(const char *name, seen *s)
{
    for (int f = 0; f < N_FAMILIES; f++)
        for (int i = 0; !strcmp(FAMILIES[f].name, name) && i < FAMILIES[f].table->n; i++)
            say_operator(&FAMILIES[f].table->rows[i], s);
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++)
            if (!strcmp(NEAR[t].c[i].op, name))
                visit_neighbours(&NEAR[t].c[i], say, s);
}

/* A line for each model that is taken, for others who infer types: what it is, the file in hexadecimal digits, the results' types (0 for what is no
 * tensor, -1 for a size that depends on data). */
static void put_model(const op_case *c, void *user)
{
    (void)user;
    inferred made;
    if (infer_case(&made, c, false)) {
        const bz_layer *last = last_layer(&made);
        printf("%s-%d(%s) {%s}\t", c->op, c->opset, c->in, c->attrs);
        for (size_t i = 0; i < made.bytes.len; i++)
            printf("%02x", (unsigned char)made.bytes.data[i]);
        for (int k = 0; k < last->n_out; k++) {
            const bz_type *t = &last->out[k];
            printf("%c%d:%s", k ? ' ' : '\t', t->kind == BZ_TYPE_TENSOR ? (int)t->dtype : 0, t->rank < 0 ? "?" : "");
            for (int i = 0; i < t->rank; i++)
                printf("%s%lld", i ? "x" : "", bz_is_symbol(t->dims[i]) ? -1LL : (long long)t->dims[i]);
        }
        putchar('\n');
    }
    end_case(&made);
}

int main(int argc, char **argv)
{
    const char *ops[MAX_OPERATORS];
    if (argc == 2 && !strcmp(argv[1], "models")) {
        for (int t = 0; t < N_NEAR; t++)
            for (size_t i = 0; i < NEAR[t].n; i++)
                if (!strchr(NEAR[t].c[i].op, '.'))
                    visit_neighbours(&NEAR[t].c[i], put_model, NULL);
        return 0;
    }
    int n = near_operators(ops);
    for (int f = 0; f < N_FAMILIES; f++)
        ops[n++] = FAMILIES[f].name;
    return seen_main(argc, argv, ops, n, say_all, BENANZA_SOURCE "/tests/unit/modelproc_neighbours.txt");
}
