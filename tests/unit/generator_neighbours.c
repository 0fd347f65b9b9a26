/* Which calls the neighbours of all rows of the operators' tables are lowered to, with and without constant weights, and the rows themselves in
 * other types: as modelproc_neighbours.c. */
#include "generator/generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_neighbours.h"
#include "seen.h"

enum { MAX_OPERANDS = 100 };

static void say_lowering(const bz_layer *l, bz_dtype dtype, seen *s)
{
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(l, dtype, &arena, &low);
    bz_buf_printf(&s->text, "  %s%s", bz_dtype_name(dtype), low.free ? " free" : low.n ? "" : " none");
    for (int a = 0; a < low.n; a++)
        for (int i = 0; i < low.alternative[a].n; i++)
            bz_buf_printf(&s->text, "%s%s%s%s", i ? " + " : " | ", low.alternative[a].modelled ? "copy: " : "",
                          low.alternative[a].fallback ? "else: " : "", low.alternative[a].text[i]);
    bz_buf_printf(&s->text, " %s\n", low.why ? low.why : "");
    s->tried++;
    s->taken += low.n > 0 && !low.alternative[0].modelled;
    bz_arena_free(&arena);
}

/* The last layer in types `from` to `to`; first as it is where that is the one that the model has. */
static void say_types(const op_case *c, bz_dtype from, bz_dtype to, seen *s)
{
    inferred i;
    if (infer_case(&i, c, false)) {
        bz_buf_printf(&s->text, "%s-%d(%s) {%s}\n", c->op, c->opset, c->in, c->attrs ? c->attrs : "");
        bool constant[MAX_OPERANDS];
        bz_layer layer = *last_layer(&i);
        if (from == BZ_UNDEFINED)
            say_lowering(&layer, from, s);
        for (int k = 0; k < MAX_OPERANDS; k++)
            constant[k] = k > 0;
        layer.in_constant = constant;
        for (bz_dtype t = from; t <= to; t++)
            say_lowering(&layer, t, s);
    }
    end_case(&i);
}

static void say(const op_case *c, void *user)
{
    say_types(c, BZ_UNDEFINED, BZ_UNDEFINED, user);
}

static void say_all(const char *op, seen *s)
{
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++)
            if (!strcmp(NEAR[t].c[i].op, op)) {
                visit_neighbours(&NEAR[t].c[i], say, s);
                say_types(&NEAR[t].c[i], BZ_F32, BZ_N_DTYPES - 1, s);
            }
}

int main(int argc, char **argv)
{
    const char *ops[MAX_OPERATORS];
    return seen_main(argc, argv, ops, near_operators(ops), say_all,
                     BENANZA_SOURCE "/tests/unit/generator_neighbours.txt");
}
