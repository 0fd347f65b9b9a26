/* Plans and programs that replay the rows of the operators' tables and some of their neighbours, in f32, in bf16 and as a part of a model: as
 * modelproc_neighbours.c. */
#include "replay/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_neighbours.h"
#include "seen.h"

enum { EACH = 4 }; /* of so many neighbours one */

typedef struct {
    seen *s;
    int n;
} visit;

static bz_patterns *patterns;

static void say_plan(bz_layers *layers, bz_dtype dtype, bool part, seen *s)
{
    bz_replay_plan *p;
    bz_error err;
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.dtype = dtype, .patterns = patterns});
    bz_plan_add(plan, layers, "row");
    const bz_replay_input in = {.model = "row",
                                .layers = layers,
                                .plan = plan,
                                .fuse = part,
                                .dtype = dtype,
                                .setting = {.threads = 1},
                                .part = part};
    if (!bz_replay_make(&in, &p, &err)) {
        bz_replay_json(p, &s->text);
        bz_replay_program(p, &s->text);
        bz_replay_free(p);
        s->taken++;
    } else {
        bz_buf_printf(&s->text, "  %s\n", err.text);
    }
    bz_plan_free(plan);
}

static void say(const op_case *c, void *user)
{
    visit *v = user;
    inferred i;
    if (v->n++ % EACH)
        return;
    v->s->tried++;
    bz_buf_printf(&v->s->text, "%s-%d(%s) {%s}\n", c->op, c->opset, c->in, c->attrs ? c->attrs : "");
    if (infer_case(&i, c, false))
        say_plan(i.layers, v->n / EACH % 3 == 1 ? BZ_BF16 : BZ_UNDEFINED, v->n / EACH % 4 == 2, v->s);
    end_case(&i);
}

static void say_all(const char *op, seen *s)
{
    visit v = {.s = s};
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++)
            if (!strcmp(NEAR[t].c[i].op, op)) {
                v.n = 0; /* the row itself */
                visit_neighbours(&NEAR[t].c[i], say, &v);
            }
}

int main(int argc, char **argv)
{
    const char *ops[MAX_OPERATORS];
    bz_error err;
    if (bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int wrong =
        seen_main(argc, argv, ops, near_operators(ops), say_all, BENANZA_SOURCE "/tests/unit/replay_neighbours.txt");
    bz_patterns_free(patterns);
    return wrong;
}
