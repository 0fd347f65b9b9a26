/* The iterations of training that the rows of the operators' tables make, and some of their neighbours: each float operand is an input times a weight, so
 * that every derivative is asked for. Kept are a hash of the model that is derived, byte for byte, and the memory that it needs: training_neighbours.txt (seen.h). */
#include "training/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_neighbours.h"
#include "seen.h"

enum { MOST = 4096, EACH = 4, WORD = 200 }; /* EACH: of so many neighbours one */

/* How many elements "f32:2x3" has, where it can be a weight; else 0. */
static int64_t weight_elements(const char *word)
{
    int64_t n = 1;
    const char *at = word + strcspn(word, ":");
    if (*word != 'f' || *at != ':' || strpbrk(word, "=?>"))
        return 0;
    for (at++; *at && n > 0 && n <= MOST;) {
        char *end;
        n *= strtoll(at, &end, 10);
        at = *end == 'x' ? end + 1 : end;
    }
    return n > 0 && n <= MOST ? n : 0;
}

/* Appends the sizes of "f32:2x3" as a field. */
static void put_sizes(bz_buf *out, int field, const char *word)
{
    for (const char *at = word + strcspn(word, ":") + 1; *at;) {
        char *end;
        put_int(out, field, strtoll(at, &end, 10));
        at = *end == 'x' ? end + 1 : end;
    }
}

/* Operand k is x times w, which has zeros. */
static void put_weighted(bz_buf *node, bz_buf *graph, const char *word, int k)
{
    static const char ZEROS[8 * MOST];
    char x[32], w[32], y[32];
    const char *at = word;
    bz_buf mul = {0}, weight = {0}, input = {0};
    snprintf(x, sizeof x, "x%d", k);
    snprintf(w, sizeof w, "w%d", k);
    snprintf(y, sizeof y, "a%d", k);
    bz_dtype dtype = read_dtype(&at);
    put_text(&input, 1, x);
    put_type(&input, 2, word);
    put_part(graph, 11, &input);
    put_sizes(&weight, 1, word);
    put_int(&weight, 2, (int64_t)dtype);
    put_text(&weight, 8, w);
    put_bytes(&weight, 9, ZEROS, (size_t)weight_elements(word) * (dtype == BZ_F64 ? 8 : dtype == BZ_F32 ? 4 : 2));
    put_part(graph, 5, &weight);
    put_text(&mul, 1, x);
    put_text(&mul, 1, w);
    put_text(&mul, 2, y);
    put_text(&mul, 4, "Mul");
    put_part(graph, 1, &mul);
    put_text(node, 1, y);
}

static bz_buf write_weighted(const op_case *c)
{
    char domain[64], copy[512], prefix[32], *save = NULL;
    bz_buf model = {0}, graph = {0}, node = {0};
    int k = 0;
    put_int(&model, 1, 9);
    put_text(&graph, 2, "g");
    snprintf(copy, sizeof copy, "%s", c->in);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save), k++) {
        snprintf(prefix, sizeof prefix, "b%d_", k);
        if (weight_elements(word))
            put_weighted(&node, &graph, word, k);
        else
            put_operands(&node, &graph, word, prefix);
    }
    put_results(&node, &graph, "y", *c->out == '!' ? 1 : count_words(c->out), true);
    put_name(&node, c->op, domain, sizeof domain);
    put_attributes(&node, c->attrs);
    put_part(&graph, 1, &node);
    end_model(&model, &graph, domain, c->opset);
    return model;
}

static void say_iteration(const bz_layers *l, const bz_training_options *options, seen *s)
{
    bz_training *t;
    bz_error err;
    if (!bz_training_derive(l, options, &t, &err)) {
        bz_memory memory;
        char hex[33];
        bz_memory_predict(t, &memory);
        bz_hash_hex(bz_hash_bytes(bz_buf_text(t->file), t->file->len), hex);
        bz_buf_printf(&s->text, "  %s, %d layers", hex, t->layers->n);
        for (int i = 0; i < BZ_HELD_CLASSES; i++)
            bz_buf_printf(&s->text, ", %s %lld", bz_held_name((bz_held)i), (long long)memory.most[i]);
        for (int i = 0; i < BZ_TRAIN_PHASES; i++)
            bz_buf_printf(&s->text, " %lld", (long long)memory.phase_peak[i]);
        bz_buf_printf(&s->text, ", %lld at layer %d\n", (long long)memory.peak, memory.peak_layer);
        for (int i = 0; i < t->layers->n; i++)
            bz_buf_printf(&s->text, "    %s\n", t->layers->layer[i].key);
        s->taken++;
    } else {
        bz_buf_printf(&s->text, "  %s\n", err.text);
    }
    bz_training_free(t);
}

static void say_row(const op_case *c, int number, seen *s)
{
    const bz_training_options options = {.optimizer = (bz_optimizer)(number % BZ_OPTIMIZERS),
                                         .loss = number % 3 ? BZ_LOSS_SQUARES : BZ_LOSS_AUTO,
                                         .dtype = number % 5 == 1   ? BZ_BF16
                                                  : number % 5 == 2 ? BZ_F16
                                                                    : BZ_UNDEFINED,
                                         .fused = number % 7 == 1,
                                         .parts = number % 11 == 1 ? 2 : 0};
    inferred i = {.bytes = write_weighted(c)};
    s->tried++;
    bz_buf_printf(&s->text, "%s-%d(%s) {%s}\n", c->op, c->opset, c->in, c->attrs ? c->attrs : "");
    if (!bz_model_parse(i.bytes.data, i.bytes.len, c->op, &i.model, &i.err) &&
        !bz_layers_infer(i.model, &(bz_infer_options){.batch = 1}, &i.layers, &i.err))
        say_iteration(i.layers, &options, s);
    end_case(&i);
}

typedef struct {
    seen *s;
    int n;
} visit;

static void say(const op_case *c, void *user)
{
    visit *v = user;
    if (v->n++ % EACH == 0)
        say_row(c, v->n / EACH, v->s);
}

static void say_all(const char *op, seen *s)
{
    visit v = {.s = s};
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++)
            if (!strcmp(NEAR[t].c[i].op, op) && !strchr(NEAR[t].c[i].in, '>')) {
                v.n = 0; /* the row itself */
                visit_neighbours(&NEAR[t].c[i], say, &v);
            }
}

int main(int argc, char **argv)
{
    const char *ops[MAX_OPERATORS];
    return seen_main(argc, argv, ops, near_operators(ops), say_all,
                     BENANZA_SOURCE "/tests/unit/training_neighbours.txt");
}
