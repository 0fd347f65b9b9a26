/* com.microsoft's searches: a decoder that runs once for the prompt and then once for each token, with what it knows of the tokens
 * before in caches. Models of one graph have prompts of tokens; others have an encoder, which also makes the first token. */
#include "modelproc/microsoft.h"

typedef struct search {
    const bz_graph *first, *step; /* for the prompt, and for a token */
    bool encoded;                 /* the first one is an encoder */
    bz_dim batch, rows, prompt;   /* rows: beams of all prompts */
    int64_t tokens, past;         /* runs of `step`, and how many tokens its caches hold on the way */
    bool known;                   /* the model tells how many tokens */
    int caches;                   /* operands of `step`, and results of `first`, at their ends */
} search;

static const bz_graph *graph_of(const call *c, const char *name)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    return a && a->kind == BZ_ATTR_GRAPH ? a->graph : NULL;
}

static bz_dim length_of(call *c, int k)
{
    int64_t n;
    return in_number(c, k, &n) && n > 0 && n <= BZ_MAX_DIM ? n : new_symbol(c);
}

static const bz_type *declared(call *c, const bz_graph *g, int k)
{
    return call_model(c)->values[g->inputs[k]].declared;
}

/* Operand k of a graph with its declared type and these dimensions; of unknown rank where it declares another one. */
static void give(call *c, const bz_graph *g, int k, int rank, const bz_dim *dims, bz_type *in)
{
    const bz_type *t = declared(c, g, k);
    if (t && t->rank == rank)
        in[k] = (bz_type){.kind = BZ_TYPE_TENSOR,
                          .dtype = t->dtype,
                          .rank = rank,
                          .dims = bz_arena_dup(c->arena, dims, (size_t)rank * sizeof *dims)};
}

/* A cache […, rows, heads, tokens, size], as its type is, with so many tokens. */
static void give_cache(call *c, const bz_graph *g, int k, const bz_type *like, const search *s, bz_dim tokens,
                       bz_type *in)
{
    bz_dim dims[BZ_MAX_RANK];
    if (!like || like->kind != BZ_TYPE_TENSOR || like->rank < 4)
        return;
    copy_dims(dims, like);
    dims[like->rank - 4] = s->rows;
    dims[like->rank - 2] = tokens;
    give(c, g, k, like->rank, dims, in);
}

/* Ids, places and a mask of `now` tokens behind `before` ones. */
static void give_tokens(call *c, const bz_graph *g, const search *s, bz_dim now, bz_dim before, bz_type *in)
{
    for (int k = 0; k < g->n_inputs - s->caches; k++)
        give(c, g, k, 2, (bz_dim[]){s->rows, k == 2 ? dim_add(c, before, now) : now}, in);
}

static void give_first(call *c, const search *s, bz_type *in)
{
    int n = s->first->n_inputs;
    if (!s->encoded) {
        give_tokens(c, s->first, s, s->prompt, 0, in);
        for (int k = n - s->caches; k < n; k++)
            give_cache(c, s->first, k, declared(c, s->first, k), s, 0, in);
        return;
    }
    for (int k = 1; k < n; k++)
        give(c, s->first, k, 2, (bz_dim[]){s->batch, k == n - 1 ? 1 : s->prompt}, in);
    in[0] = c->in[0];
}

static void give_step(call *c, const search *s, bz_type *in)
{
    const bz_graph *g = s->step;
    int own = g->n_inputs - s->caches;
    const bz_type *states = value_type(c, s->first->outputs[1]);
    give_tokens(c, g, s, 1, s->past, in);
    for (int k = 1; k < own && s->encoded; k++) { /* the encoder's mask, and its result */
        give(c, g, k, 2, (bz_dim[]){s->rows, s->prompt}, in);
        if (states->rank == 3)
            give(c, g, k, 3, (bz_dim[]){s->rows, states->dims[1], states->dims[2]}, in);
    }
    for (int k = 0; k < s->caches; k++) {
        const bz_type *made = value_type(c, s->first->outputs[s->first->n_outputs - s->caches + k]);
        bool grows = !s->encoded || k < s->caches / 2; /* of the decoder's own tokens; the rest of the encoder's */
        bz_dim tokens = grows ? s->past : made->rank < 4 ? new_symbol(c) : made->dims[made->rank - 2];
        give_cache(c, g, own + k, made, s, tokens, in);
    }
}

/* False where the graphs are not those of a search, or sizes are open. */
static bool read_search(call *c, search *s)
{
    const bz_type *x = in_type(c, 0);
    const bz_graph *encoder = graph_of(c, "encoder"), *prompt = graph_of(c, "init_decoder");
    *s = (search){.step = graph_of(c, "decoder"), .encoded = encoder != NULL};
    s->first = encoder ? encoder : prompt ? prompt : s->step;
    if (!s->step || !x || x->rank < 2 || bz_is_symbol(x->dims[0]) || bz_is_symbol(x->dims[x->rank - 1]))
        return false;
    bz_dim longest = length_of(c, 1), beams = c->op->arg ? length_of(c, 3) : 1;
    s->batch = x->dims[0];
    s->rows = count_mul(s->batch, bz_is_symbol(beams) ? 1 : beams);
    s->prompt = x->dims[1];
    int64_t start = s->encoded ? 1 : s->prompt;
    s->known = !bz_is_symbol(longest) && longest > start;
    s->tokens = s->known ? longest - start - 1 : call_trips(c) ? call_trips(c) : 1;
    s->past = start + (s->tokens > 0 ? s->tokens - 1 : 0) / 2;
    for (int k = 0; k < s->step->n_inputs; k++) {
        const bz_type *t = declared(c, s->step, k);
        s->caches += t && t->rank >= 4;
    }
    return s->caches > 0 && s->caches < s->step->n_inputs && s->first->n_inputs > 0 &&
           s->first->n_outputs > s->caches && (s->encoded || s->first->n_inputs >= s->caches);
}

static int run_graph(call *c, const bz_graph *g, bool first, const search *s, bz_body *body)
{
    bz_type *in = BZ_NEW(c->arena, bz_type, g->n_inputs);
    for (int k = 0; k < g->n_inputs; k++)
        in[k] = (bz_type){.rank = -1};
    if (first)
        give_first(c, s, in);
    else
        give_step(c, s, in);
    *body =
        (bz_body){.name = first ? "prompt" : "token", .trips = first ? 1 : s->tokens, .trips_known = first || s->known};
    return infer_body(c, g, in, NULL, g->n_inputs, body);
}

/* An end mark may stop it before the longest text is written: that is counted. Where nobody says how long, --trips does.
 * arg: 1 where beams are searched. */
int ms_search_shape(call *c)
{
    const bz_type *ids = need_any(c, 0);
    bz_dim longest = length_of(c, 1), each = c->op->arg ? length_of(c, 4) : 0;
    bz_dim batch = ids->rank > 0 ? ids->dims[0] : new_symbol(c);
    search s;
    for (int k = 1; k < c->node->n_out; k++)
        set_unknown(c, k, BZ_F32);
    if (c->op->arg) {
        set_out(c, 0, BZ_I32, 3, (bz_dim[]){batch, each, longest});
        set_out(c, 1, BZ_F32, 2, (bz_dim[]){batch, each});
    } else {
        set_out(c, 0, BZ_I32, 2, (bz_dim[]){batch, longest});
    }
    if (c->failed || !read_search(c, &s))
        return 0;
    c->bodies = BZ_NEW(c->arena, bz_body, 2);
    if (run_graph(c, s.first, true, &s, &c->bodies[0]) || run_graph(c, s.step, false, &s, &c->bodies[1]))
        return -1;
    c->n_bodies = s.tokens > 0 ? 2 : 1;
    return 0;
}
