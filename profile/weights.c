/* What the weights of operators tell, where their shapes were recorded: a step has the weights of the one before, and the layers of a single pass, as the
 * stages of a ResNet, have shapes of their own, which never come again. */
#include "profile/cuts.h"
#include "profile/sequence.h"

#include <math.h>
#include <string.h>

enum {
    CLASSES = 256, /* of pieces with other weights: so many layers are no steps, either */
    DEEPEST = 64   /* operators within operators */
};

/* PyTorch's operators with weights, and which of their arguments these are. */
static const struct {
    const char *operators;
    int argument;
} WEIGHTS[] = {
    {"^aten::conv1d$ ^aten::conv2d$ ^aten::conv3d$ ^aten::conv_transpose ^aten::convolution$ ^aten::linear$ "
     "^aten::batch_norm$",
     1},
    {"^aten::addmm$ ^aten::layer_norm$ ^aten::group_norm$", 2},
};

static int weights_of(const char *operator)
{
    for (size_t i = 0; i < sizeof WEIGHTS / sizeof *WEIGHTS; i++)
        if (bz_name_matches_any(WEIGHTS[i].operators, operator))
            return WEIGHTS[i].argument;
    return -1;
}

/* The operator with weights that is `op`, or that it was called by: the outermost. BZ_NONE: there is none. */
static uint32_t weighted(const bz_trace *t, bz_name_answers *answers, uint32_t op)
{
    const bz_events *e = &t->event[BZ_EVENT_OP];
    uint32_t found = BZ_NONE;
    for (int i = 0; op != BZ_NONE && i < DEEPEST; i++, op = e->op[op])
        if (bz_name_answer(answers, bz_string(t, e->name[op])) >= 0)
            found = op;
    return found;
}

/* A symbol for the operator with the shape of its weights; 0: none is on record. */
static uint64_t symbol_of(const bz_trace *t, int argument, uint32_t op)
{
    const bz_operator *o = bz_operator_of(t, op);
    for (int i = 0; i < o->n_in; i++)
        if (o->in[i].argument == argument && o->in[i].rank > 0)
            return bz_hash_bytes(o->in[i].dim, (size_t)o->in[i].rank * sizeof *o->in[i].dim).low ^
                   t->event[BZ_EVENT_OP].name[op];
    return 0;
}

/* A symbol for the node of a graph that an operator or a kernel is of, where runtimes name them: it runs once in a step, as its weights do, but in loops.
 * 0: it is none. */
static uint64_t node_of(const bz_trace *t, const bz_events *e, uint32_t row)
{
    const char *detail = e->detail ? bz_string(t, e->detail[row]) : "", *name = strstr(detail, "name=");
    while (name && name > detail && name[-1] != ' ')
        name = strstr(name + 1, "name=");
    return name ? bz_hash_bytes(name, strcspn(name, " ")).low : 0;
}

void bz_sequence_weights(const bz_trace *t, const bz_sequence *s, bz_work *w, bz_arena *arena)
{
    if (s->kind == BZ_EVENT_CALL)
        return;
    uint32_t *weight = BZ_NEW(arena, uint32_t, s->n + 1), last = BZ_NONE;
    uint64_t before = 0;
    bz_name_answers answers = {.ask = weights_of};
    BZ_SCOPED(bz_numbers) numbers = {0};
    bz_numbers_add(&numbers, 0);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t node = node_of(t, s->event, s->row[i]);
        if (node && node != before) /* several kernels of one node */
            weight[i] = bz_numbers_add(&numbers, node);
        before = node;
        if (node || !s->event->op)
            continue;
        uint32_t row = s->row[i], op = weighted(t, &answers, s->kind == BZ_EVENT_OP ? row : s->event->op[row]);
        if (op == BZ_NONE || op == last) /* several kernels of one operator */
            continue;
        last = op;
        int argument = bz_name_answer(&answers, bz_string(t, t->event[BZ_EVENT_OP].name[op]));
        weight[i] = bz_numbers_add(&numbers, symbol_of(t, argument, op));
    }
    w->n_weight = numbers.n;
    w->weight = numbers.n > 1 ? weight : NULL;
}

static uint32_t end_of(const bz_cut *c, uint32_t piece)
{
    return piece + 1 < c->n ? c->first[piece + 1] : c->end;
}

static uint32_t weights_in(const bz_work *w, const bz_cut *c, uint32_t piece)
{
    uint32_t n = 0;
    for (uint32_t i = c->first[piece]; i < end_of(c, piece); i++)
        n += w->weight[i] > 0;
    return n;
}

/* Three of four weights of the piece that has fewer are those of the other one. `has`: zeros, [n_weight]. */
static bool same_weights(const bz_work *w, const bz_cut *c, uint32_t a, uint32_t b, uint32_t *has)
{
    uint32_t both = 0, of_a = weights_in(w, c, a), of_b = weights_in(w, c, b);
    for (uint32_t i = c->first[a]; i < end_of(c, a); i++)
        has[w->weight[i]]++;
    for (uint32_t i = c->first[b]; i < end_of(c, b); i++)
        if (w->weight[i] && has[w->weight[i]]) {
            has[w->weight[i]]--;
            both++;
        }
    for (uint32_t i = c->first[a]; i < end_of(c, a); i++)
        has[w->weight[i]] = 0;
    return 4 * both >= 3 * (of_a < of_b ? of_a : of_b);
}

double bz_cut_same_weights(const bz_work *w, const bz_cut *c)
{
    uint32_t same = 0, pairs = 0;
    if (!w->weight)
        return NAN;
    BZ_FREED uint32_t *has = bz_zeroed(w->n_weight, sizeof *has);
    for (uint32_t i = 0; i + 1 < c->n; i++)
        if (weights_in(w, c, i)) {
            pairs++;
            same += same_weights(w, c, i, i + 1, has);
        }
    return pairs ? (double)same / pairs : NAN;
}

/* The first piece with these weights; the piece itself, where no earlier one has them. UINT32_MAX: too many are different. */
static uint32_t class_of(const bz_work *w, const bz_cut *c, uint32_t piece, uint32_t *representative, uint32_t *n,
                         uint32_t *has)
{
    for (uint32_t k = *n; k-- > 0;) /* layers are like the one before, where they are like any */
        if (same_weights(w, c, representative[k], piece, has))
            return representative[k];
    if (*n == CLASSES)
        return UINT32_MAX;
    return representative[(*n)++] = piece;
}

/* Weights of an iteration come again in the next ones, to the end: where networks take turns, too. Those of a layer come in a stretch of
 * the pass, as the stage of a ResNet, and none of them after it; or in no other piece, as where a DenseNet grows. */
bool bz_cut_is_of_layers(const bz_work *w, const bz_cut *c)
{
    uint32_t representative[CLASSES], n = 0, pieces = 0, stretches = 0, single = 0, reach = 0;
    if (!w->weight || c->n < 2)
        return false;
    BZ_FREED uint32_t *has = bz_zeroed(w->n_weight, sizeof *has);
    BZ_FREED uint32_t *class = bz_alloc(c->n, sizeof *class), *last = bz_alloc(c->n, sizeof *last);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!weights_in(w, c, i)) /* nothing tells of it */
            continue;
        if ((class[pieces] = class_of(w, c, i, representative, &n, has)) == UINT32_MAX)
            return true;
        last[class[pieces]] = pieces;
        pieces++;
    }
    for (uint32_t i = 0, begin = 0; i < pieces; i++) {
        reach = last[class[i]] > reach ? last[class[i]] : reach;
        if (reach > i)
            continue;
        stretches++;
        single += begin == i;
        begin = i + 1;
    }
    return stretches > 2 || (stretches == 2 && single == 2) || (n > 2 && 2 * n > pieces);
}

/* Weights outside of the pieces which none of them has: are they more than the typical piece has? */
bool bz_cut_lacks_weights(const bz_work *w, const bz_cut *c)
{
    uint32_t outside = 0;
    if (!w->weight)
        return false;
    BZ_FREED bool *inside = bz_zeroed(w->n_weight, sizeof *inside);
    for (uint32_t i = c->first[0]; i < c->end; i++)
        inside[w->weight[i]] = true;
    for (uint32_t i = 0; i < w->n; i++)
        outside += w->weight[i] && !inside[w->weight[i]];
    return outside > weights_in(w, c, c->typical);
}
