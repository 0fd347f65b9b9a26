/* Which layout each step works in, so that steps and conversions cost least together.
 *
 * One pass over the steps in their order. A state says of every tensor that somebody still wants in which layouts it
 * lies by now; of the ways that lead to the same state only the cheapest goes on. On a chain one tensor is open at a time:
 * this is the shortest path. */
#include "replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = BZ_LAID_N, PER_WORD = 64 / BITS, WORDS = 8, MOST_OPEN = PER_WORD * WORDS };

typedef struct state {
    uint64_t key[WORDS]; /* BITS for each place: the layouts of the tensor that has it */
    double cost;
    int from, option; /* of the step before: state, and what was taken */
} state;

typedef struct search {
    const bz_layout_step *step;
    const bz_layout_tensor *tensor;
    int n;
    int *last;  /* of a tensor: the last step that reads it; n: wanted outside; -1: nobody */
    int *place; /* of a tensor in the key; -1: it has none now, and then is taken to be row-major */
    bool used[MOST_OPEN];
    state *open, *next;
    int n_open, n_next, next_cap;
    bz_arena *arena;
} search;

static unsigned layouts_at(const state *s, int place)
{
    return (unsigned)(s->key[place / PER_WORD] >> (place % PER_WORD * BITS)) & ((1U << BITS) - 1);
}

static void set_layouts(state *s, int place, unsigned layouts)
{
    int shift = place % PER_WORD * BITS;
    uint64_t mask = ((UINT64_C(1) << BITS) - 1) << shift;
    s->key[place / PER_WORD] = (s->key[place / PER_WORD] & ~mask) | (uint64_t)layouts << shift;
}

/* Brings a tensor into the layout; from the cheapest of those that it has. */
static double convert(const search *s, state *at, int tensor, bz_laid to)
{
    double best = INFINITY;
    int place = s->place[tensor];
    unsigned have = place < 0 ? 1U << BZ_LAID_PLAIN : layouts_at(at, place);
    if (have & 1U << to)
        return 0;
    for (int from = 0; from < BZ_LAID_N; from++)
        if (have & 1U << from)
            best = fmin(best, s->tensor[tensor].convert[from][to]);
    if (place >= 0)
        set_layouts(at, place, have | 1U << to);
    return isfinite(best) ? best : 0;
}

static int by_key(const void *a, const void *b)
{
    const state *x = a, *y = b;
    int order = memcmp(x->key, y->key, sizeof x->key);
    if (order)
        return order;
    return x->cost != y->cost   ? (x->cost > y->cost) - (x->cost < y->cost)
           : x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                                : x->option - y->option;
}

static int by_cost(const void *a, const void *b)
{
    const state *x = a, *y = b;
    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost) : by_key(a, b);
}

/* Of equal states the cheapest stays, of too many the cheapest. */
static bool thin_out(search *s)
{
    int kept = 0;
    qsort(s->next, (size_t)s->n_next, sizeof *s->next, by_key);
    for (int i = 0; i < s->n_next; i++)
        if (!kept || memcmp(s->next[kept - 1].key, s->next[i].key, sizeof s->next->key) != 0)
            s->next[kept++] = s->next[i];
    s->n_next = kept;
    if (kept <= BZ_REPLAY_WIDTH)
        return false;
    qsort(s->next, (size_t)kept, sizeof *s->next, by_cost);
    s->n_next = BZ_REPLAY_WIDTH;
    return true;
}

static int find_place(search *s)
{
    for (int i = 0; i < MOST_OPEN; i++)
        if (!s->used[i]) {
            s->used[i] = true;
            return i;
        }
    return -1;
}

/* What no later step reads gives its place away. */
static void close_tensors(search *s, int step)
{
    const bz_layout_step *t = &s->step[step];
    for (int k = -1; k < t->n_in; k++) {
        int tensor = k < 0 ? t->out : t->in[k];
        if (tensor < 0 || s->place[tensor] < 0 || s->last[tensor] > step)
            continue;
        for (int i = 0; i < s->n_next; i++)
            set_layouts(&s->next[i], s->place[tensor], 0);
        s->used[s->place[tensor]] = false;
        s->place[tensor] = -1;
    }
}

static void take_step(search *s, int step)
{
    const bz_layout_step *t = &s->step[step];
    s->n_next = 0;
    int options = t->n > 0 ? t->n : 1;
    while (s->next_cap < s->n_open * options)
        s->next_cap = s->next_cap ? 2 * s->next_cap : 64;
    s->next = bz_realloc(s->next, (size_t)s->next_cap, sizeof *s->next);
    if (t->out >= 0)
        s->place[t->out] = find_place(s);
    for (int i = 0; i < s->n_open; i++)
        for (int o = 0; o < options; o++) {
            state *y = &s->next[s->n_next++];
            bz_laid laid = t->n ? t->laid[o] : BZ_LAID_PLAIN;
            *y = s->open[i];
            y->from = i;
            y->option = o;
            for (int k = 0; k < t->n_in; k++)
                y->cost += convert(s, y, t->in[k], laid);
            y->cost += t->n ? t->seconds[o] : 0;
            if (t->out >= 0 && s->place[t->out] >= 0)
                set_layouts(y, s->place[t->out], 1U << laid);
            if (t->out >= 0 && s->tensor[t->out].row_major)
                y->cost += s->place[t->out] >= 0 ? convert(s, y, t->out, BZ_LAID_PLAIN) : 0;
        }
    close_tensors(s, step);
}

static void find_last(search *s, int n_tensors)
{
    for (int i = 0; i < n_tensors; i++)
        s->last[i] = s->place[i] = -1;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->step[i].n_in; k++)
            s->last[s->step[i].in[k]] = i;
}

double bz_layouts_choose(const bz_layout_step *step, int n, const bz_layout_tensor *tensor, int n_tensors, int *taken,
                         int *states, bool *beam)
{
    bz_arena arena = {0};
    search s = {.step = step, .tensor = tensor, .n = n, .arena = &arena};
    state begin = {.from = -1};
    bool dropped = false;
    int most = 1;
    s.last = BZ_NEW(&arena, int, (unsigned)n_tensors + 1);
    s.place = BZ_NEW(&arena, int, (unsigned)n_tensors + 1);
    state **history = BZ_NEW(&arena, state *, (unsigned)n + 1);
    find_last(&s, n_tensors);
    for (int i = 0; i < n_tensors; i++)
        if (tensor[i].row_major && s.last[i] >= 0) { /* from outside, unless a step makes it: then that step sets it */
            bool made = false;
            for (int k = 0; k < n && !made; k++)
                made = step[k].out == i;
            if (!made && (s.place[i] = find_place(&s)) >= 0)
                set_layouts(&begin, s.place[i], 1U << BZ_LAID_PLAIN);
        }
    s.open = bz_arena_dup(&arena, &begin, sizeof begin);
    s.n_open = 1;
    for (int i = 0; i < n; i++) {
        take_step(&s, i);
        dropped |= thin_out(&s);
        most = s.n_next > most ? s.n_next : most;
        s.open = history[i] = bz_arena_dup(&arena, s.next, (size_t)s.n_next * sizeof *s.next);
        s.n_open = s.n_next;
    }
    int at = 0;
    for (int i = 1; i < s.n_open; i++)
        if (by_cost(&s.open[i], &s.open[at]) < 0)
            at = i;
    double cost = s.open[at].cost;
    for (int i = n; i-- > 0; at = history[i][at].from)
        taken[i] = history[i][at].option;
    if (states)
        *states = most;
    if (beam)
        *beam = dropped;
    free(s.next);
    bz_arena_free(&arena);
    return cost;
}
