/* Which operators of the way back of training are the gradient of a recurrent one. Such an operator is hundreds of small ones, and autograd has a node
 * for each. It goes back in the reverse of the order in which it went there, and a node has its operator's name: "MulBackward0" is of "aten::mul". */
#include "explain/align.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const bz_align_steps *s, size_t op)
{
    return bz_string(s->trace, s->trace->event[BZ_EVENT_OP].name[op]);
}

static bool is_recurrent(const bz_align_steps *s, size_t op)
{
    const char *kind = bz_align_operator_rule(name_of(s, op)).kind;
    return kind && bz_has_word(" lstm gru rnn ", kind);
}

/* "mul" of "aten::mul_", and of "autograd::engine::evaluate_function: MulBackward0". */
static const char *word_of(const char *name, char out[64])
{
    const char *last = strrchr(name, ':'), *end = strstr(name, "Backward");
    int n = 0;
    for (const char *p = last ? last + 1 : name; *p && p != end && n < 63; p++)
        if (isalnum((unsigned char)*p))
            out[n++] = (char)tolower((unsigned char)*p);
    out[n] = 0;
    return out;
}

/* The outermost one of a node; what keeps gradients is none. */
static bool is_node(const bz_align_steps *s, size_t op)
{
    uint32_t around = s->trace->event[BZ_EVENT_OP].op[op];
    return strstr(name_of(s, op), "Backward") && (around >= op || !strstr(name_of(s, around), "Backward"));
}

typedef struct walk {
    const bz_align_steps *s;
    bz_align_words *words; /* of nodes */
    bz_align_atom *atom;
    int n;
} walk;

static void add(walk *w, uint32_t op)
{
    char word[64];
    uint32_t id = bz_align_word(w->words, word_of(name_of(w->s, op), word));
    BZ_ADD(w->atom, w->n) = (bz_align_atom){.kind = id, .id = id, .owner = (int)op};
}

/* The nodes of the way back, in their order. */
static void take_nodes(walk *w)
{
    for (uint32_t i = 0; i < w->s->trace->event[BZ_EVENT_OP].n && i < INT32_MAX; i++)
        if (bz_align_in(w->s, BZ_EVENT_OP, i) && is_node(w->s, i))
            add(w, i);
}

/* What may have such a node, the last one first. `*recurrent_of`: the operator around each that is recurrent, or BZ_NONE. False: there is none. */
static bool take_forward(walk *w, uint32_t **recurrent_of)
{
    const bz_events *o = &w->s->trace->event[BZ_EVENT_OP];
    char word[64];
    bool any = false, *back = BZ_NEW(w->words->arena, bool, o->n);
    uint32_t *recurrent = *recurrent_of = BZ_NEW(w->words->arena, uint32_t, o->n);
    for (size_t i = 0; i < o->n; i++) {
        uint32_t around = o->op[i];
        recurrent[i] = around < i ? recurrent[around] : BZ_NONE;
        back[i] = strstr(name_of(w->s, i), "Backward") || (around < i && back[around]);
        if (back[i] || !bz_align_in(w->s, BZ_EVENT_OP, i))
            continue;
        if (recurrent[i] == BZ_NONE && is_recurrent(w->s, i))
            recurrent[i] = (uint32_t)i;
        any |= recurrent[i] != BZ_NONE;
    }
    for (size_t i = o->n; any && i-- > 0;)
        if (!back[i] && bz_align_in(w->s, BZ_EVENT_OP, i) && bz_align_knows(w->words, word_of(name_of(w->s, i), word)))
            add(w, (uint32_t)i);
    return any;
}

/* Between two nodes of one operator there is none of another. */
static void mark_parts(const walk *back, const uint32_t *of, uint32_t *whole, uint32_t *gradient)
{
    for (int first = 0, last; first < back->n; first = last + 1) {
        last = first;
        if (of[first] == BZ_NONE)
            continue;
        for (int i = first + 1; i < back->n && (of[i] == BZ_NONE || of[i] == of[first]); i++)
            last = of[i] == of[first] ? i : last;
        for (int i = first; i <= last; i++)
            whole[back->atom[i].owner] = (uint32_t)back->atom[first].owner;
        gradient[back->atom[first].owner] = of[first];
    }
}

void bz_align_find_back(bz_align_steps *s, bz_arena *arena)
{
    size_t n = s->trace->event[BZ_EVENT_OP].n;
    uint32_t *recurrent;
    bz_align_words words;
    walk back = {.s = s, .words = &words}, forward = back;
    bz_align_words_begin(&words, arena);
    take_nodes(&back);
    if (back.n && take_forward(&forward, &recurrent)) {
        int *to = BZ_NEW(arena, int, back.n);
        uint32_t *of = BZ_NEW(arena, uint32_t, back.n);
        s->whole = BZ_NEW_NONE(arena, uint32_t, n);
        s->gradient = BZ_NEW(arena, uint32_t, n);
        bz_align_sequences(&words, forward.atom, forward.n, back.atom, back.n, BZ_ALIGN_CELLS, to);
        for (int i = 0; i < back.n; i++)
            of[i] = to[i] < 0 ? BZ_NONE : recurrent[forward.atom[to[i]].owner];
        mark_parts(&back, of, s->whole, s->gradient);
    }
    bz_align_words_end(&words);
    free(back.atom);
    free(forward.atom);
}
