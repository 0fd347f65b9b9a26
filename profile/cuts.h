/* Where a sequence of work can be cut into iterations, and which of these cuts is meant. Private to profile/.
 *
 * A sequence repeats at several levels at once: heads within layers, layers within steps, steps within epochs. Each level is a
 * cut. Symbols alone cannot tell which of them a person calls an iteration, so cuts are weighed with what the host did between
 * the events: a step copies its input, waits or fetches its result, runs the optimizer once, is launched as one graph; layers do
 * none of these. */
#ifndef BZ_PROFILE_CUTS_H
#define BZ_PROFILE_CUTS_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bits of bz_work.between and bz_work.does */
enum {
    BZ_BETWEEN_RESULT = 1, /* a copy to the host was asked for between the event before and this one */
    BZ_BETWEEN_WAIT = 2,   /* the host waited there */
    BZ_BETWEEN_NONE = 4,   /* one launch did both (a graph): no iteration begins here */
    BZ_DOES_OPTIMIZE = 1,  /* it updates weights */
    BZ_DOES_LOOK_UP = 2,   /* an embedding: the first layer of language models */
    BZ_DOES_CLOSE = 4,     /* product, norm, softmax, sort, loss: what stands behind the layers of a network */
    BZ_DOES_LOSS = 8,      /* no layer has one */
};

enum { BZ_PLACES = 2 }; /* addresses that an event reads */

/* A pause of more than four seconds. */
typedef struct bz_long_pause {
    uint32_t at; /* the event behind it */
    int64_t time;
} bz_long_pause;

/* The sequence, in the order of the host. Symbols are dense numbers from 0. There may be millions of events and a few hundred symbols:
 * what a symbol tells lies in tables by symbol. */
typedef struct bz_work {
    size_t n;
    const uint32_t *exact;       /* [n] name and shape */
    const uint32_t *name, *sort; /* [n_exact] name; sort of work: each tells less */
    uint32_t n_exact, n_name, n_sort;
    const uint32_t *place[BZ_PLACES]; /* [n] name, and from where it reads what no call writes; NULL: not told */
    uint32_t n_place[BZ_PLACES], no_place[BZ_PLACES]; /* no_place: the number of those that tell none */
    /* [n] the operator with the shape of its weights, at its first event; 0: none. NULL: no such shapes are on record */
    const uint32_t *weight;
    uint32_t n_weight;
    const uint16_t
        *inputs; /* [n + 1] copies to the device that were asked for just before the event; n: behind the last */
    const uint8_t *between; /* [n + 1] BZ_BETWEEN_… */
    bool fed;               /* are there any inputs? */
    uint8_t anywhere;       /* bits that `between` has somewhere: what is nowhere is not looked for */
    const uint8_t *does;    /* [n_exact] BZ_DOES_… */
    uint32_t
        *pause; /* [n] how long the host asked for nothing before the event, UINT32_MAX: in the list; NULL: not known */
    bz_long_pause *long_pause; /* [n_long], ascending */
    size_t n_long;
    bool grows; /* sizes grow from step to step, as the cache of a language model does */
} bz_work;

static inline uint32_t bz_work_name(const bz_work *w, size_t i)
{
    return w->name[w->exact[i]];
}

static inline uint32_t bz_work_sort(const bz_work *w, size_t i)
{
    return w->sort[w->exact[i]];
}

static inline uint8_t bz_work_does(const bz_work *w, size_t i)
{
    return w->does[w->exact[i]];
}

int64_t bz_work_long_pause(const bz_work *w, size_t i);
/* Where pauses are known. */
static inline int64_t bz_work_pause(const bz_work *w, size_t i)
{
    return w->pause[i] != UINT32_MAX ? w->pause[i] : bz_work_long_pause(w, i);
}
/* Is there work that does one of these? */
static inline bool bz_work_any(const bz_work *w, int bits)
{
    uint32_t id = 0;
    while (id < w->n_exact && !(w->does[id] & bits))
        id++;
    return id < w->n_exact;
}
void bz_work_add_long_pause(bz_work *w, size_t i, int64_t time, bz_arena *arena);
/* Of the next event; `pause` [n] is there already. */
static inline void bz_work_add_pause(bz_work *w, size_t i, int64_t time, bz_arena *arena)
{
    if (time >= 0 && time < UINT32_MAX)
        w->pause[i] = (uint32_t)time;
    else
        bz_work_add_long_pause(w, i, time, arena);
}

/* What may mark where a piece begins: the first four are counted. Between the launches of two graphs, or of a graph and a kernel, one
 * may begin. */
typedef enum {
    BZ_DO_INPUT,
    BZ_DO_RESULT,
    BZ_DO_WAIT,
    BZ_DO_UPDATE,
    BZ_DO_COUNTED,
    BZ_DO_GRAPH = BZ_DO_COUNTED
} bz_doing;
/* How much of it comes before event i, or in it. */
static inline uint32_t bz_work_does_at(const bz_work *w, bz_doing what, size_t i)
{
    const uint8_t *between = w->between;
    switch (what) {
    case BZ_DO_INPUT:
        return w->inputs[i];
    case BZ_DO_RESULT:
        return (between[i] & BZ_BETWEEN_RESULT) != 0;
    case BZ_DO_WAIT:
        return (between[i] & BZ_BETWEEN_WAIT) != 0;
    case BZ_DO_UPDATE: /* the first of a run */
        return i < w->n && bz_work_does(w, i) & BZ_DOES_OPTIMIZE &&
               (!i || !(bz_work_does(w, i - 1) & BZ_DOES_OPTIMIZE));
    default:
        return i + 1 < w->n && !(between[i] & BZ_BETWEEN_NONE) && between[i + 1] & BZ_BETWEEN_NONE;
    }
}

/* [n + 2] each: how many inputs, results, waits, runs of the optimizer come before each event; those that are nowhere stay as they are. */
void bz_work_count(const bz_work *w, const uint32_t *count[BZ_DO_COUNTED], bz_arena *scratch);

typedef enum {
    BZ_CUT_SYMBOLS,
    BZ_CUT_RESTS, /* pauses of the host that come in turns */
    BZ_CUT_WAITS,
    BZ_CUT_GRAPHS,
    BZ_CUT_INPUTS
} bz_cut_origin; /* the later, the better it begins */

typedef struct bz_cut {
    uint32_t *first; /* [n + 1] iteration i is first[i] … first[i + 1] - 1 but for the last, which ends at `end` */
    uint32_t n;
    uint32_t alike; /* how many of them are like the one before or the one behind */
    uint32_t warm;  /* how many before the first of these do the same and more, or are a prompt */
    uint32_t odd;   /* how many are like none, and do other work than the typical one */
    uint32_t typical;
    uint32_t end;
    uint32_t length; /* events of the typical one */
    size_t covered,
        mismatches; /* events of pieces that do what the typical one does; that differ from the piece before */
    double inputs, results, waits, optimizes; /* the share of iterations that have such */
    double rests;                             /* likewise; 1 where pauses tell where they begin */
    uint32_t inputs_each, waits_each;         /* of the typical one */
    bz_cut_origin origin;
} bz_cut;

/* All levels at which the sequence repeats, coarse ones first. Returns how many. */
int bz_find_cuts(const bz_work *w, bz_cut **cuts, bz_arena *arena);

/* The level that is the iterations: its index, or -1. `sure` is false where another one may be meant as well: then that one is
 * `other`, or -1 where equal layers of fewer iterations would look the same. A cut into a single iteration may be added to the list:
 * layers that ran once. */
int bz_choose_cut(const bz_work *w, bz_cut **cuts, int *n, bool *sure, int *other, bz_arena *arena);

/* The share of pieces that have the weights of the one behind them; NaN: not on record. weights.c */
double bz_cut_same_weights(const bz_work *w, const bz_cut *c);
/* Are its pieces layers of one pass: of a cut whose pieces have weights of other shapes, which do not come again? weights.c */
bool bz_cut_is_of_layers(const bz_work *w, const bz_cut *c);

/* Does the work around its pieces have more weights of other shapes than a piece has? The stage of a network does. weights.c */
bool bz_cut_lacks_weights(const bz_work *w, const bz_cut *c);
/* How often the places are read that come in turns, as weights do: in so many iterations. 1: each once. 0: nothing tells. places.c */
uint32_t bz_turns_of_places(const bz_work *w);

/* The host rests longer before each `turn`-th piece, from piece `*from` on, than before the others: the turn that is least likely by
 * chance. 0: none. `pause` [n]: before pieces 1 … n; `within`: what is usual in a piece. rests.c */
size_t bz_turn_of_rests(const int64_t *pause, size_t n, int64_t within, size_t *from);

/* Two pieces: events that both have, by a table of symbols; n events that are the same; and whether both are steps whose work varies. `balance`: a place
 * for each symbol, all zero between comparisons. pieces.c */
size_t bz_pieces_common(const bz_work *w, int32_t *balance, const uint32_t *symbol, size_t a, size_t a_n, size_t b,
                        size_t b_n);
bool bz_pieces_same(const bz_work *w, const uint32_t *symbol, size_t a, size_t b, size_t n);
bool bz_pieces_vary(const bz_work *w, int32_t *balance, size_t a, size_t a_n, size_t b, size_t b_n);

/* Moves the pieces of a cut to where the host rests longest, if that stands out: there an iteration begins. Cuts at inputs, waits and
 * graphs stay. */
void bz_cut_begins(const bz_work *w, bz_cut *c, bz_arena *arena);
/* As far as what stands before the first piece is like the ends of pieces, pieces begin so much earlier; whole ones are pieces. begins.c */
void bz_cut_move_back(const bz_work *w, bz_cut *c, bz_arena *arena);

/* Where sizes grow, nothing may mark both a prompt and the tokens behind it: pieces begin where the first token does, and what stands
 * before is a piece as well, if it is work of the same sorts in about the same amount. */
void bz_cut_prompt(const bz_work *w, bz_cut *c, bz_arena *arena);

/* Dense numbers for symbols, in order of appearance. Zeroed it knows none. */
typedef struct bz_numbers {
    uint64_t *known; /* [n] symbols by number */
    uint32_t *slot;
    size_t cap;
    uint32_t n;
} bz_numbers;
uint32_t bz_numbers_add(bz_numbers *x, uint64_t symbol); /* the symbol's number */
void bz_numbers_free(bz_numbers *x);

/* Those of an array at once; returns how many there are. */
uint32_t bz_number_symbols(const uint64_t *symbol, size_t n, uint32_t *dense);
/* From the numbers of the runs of `width` symbols, those of four such runs in a row; the last ones are shorter. `finest` [n]: symbols that tell
 * at least as much as those which the runs are of, so that where they repeat, numbers do. */
uint32_t bz_widen_symbols(uint32_t *gram, const uint32_t *finest, size_t n, size_t width);

#endif
