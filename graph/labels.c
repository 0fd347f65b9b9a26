/* In which label each step works, so that steps and conversions cost least together.
 *
 * One pass over the steps in their order. A state says of every value that somebody still wants in which labels it
 * is there by now; of the ways that lead to the same state only the cheapest goes on. On a chain one value is open at a time:
 * this is the shortest path. */
#include "base/sort.h"
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTSIDE };
enum { BITS = BZ_LABELS, PER_WORD = 64 / BITS, WORDS = 8, MOST_OPEN = PER_WORD * WORDS };

typedef struct state {
    uint64_t key[WORDS]; /* BITS for each place: the labels of the value that has it */
    double cost;
    int from, option; /* of the step before: state, and what was taken */
} state;

/* What is left of a state when the steps are done with it: how to go back. */
typedef struct step_back {
    int from, option;
} step_back;

/* What a value costs in a label, by the labels that it has. */
typedef double conversion[1 << BITS][BZ_LABELS];

typedef struct search {
    const bz_label_step *step;
    const bz_label_value *value;
    int n;
    int *last;  /* of a value: the last step that reads it; n: wanted outside; -1: nobody */
    int *place; /* of a value in the key; -1: it has none now, and then is there in label 0 */
    bool used[MOST_OPEN];
    size_t words; /* of the keys that places were ever in: the others are zero */
    state *open, *next;
    int *table; /* [table_size]: number + 1 of a state, by its key */
    int n_open, n_next, cap, table_size;
    bz_arena *arena;
} search;

static unsigned labels_at(const state *s, int place)
{
    return (unsigned)(s->key[place / PER_WORD] >> (place % PER_WORD * BITS)) & ((1U << BITS) - 1);
}

static void set_labels(state *s, int place, unsigned labels)
{
    int shift = place % PER_WORD * BITS;
    uint64_t mask = ((UINT64_C(1) << BITS) - 1) << shift;
    s->key[place / PER_WORD] = (s->key[place / PER_WORD] & ~mask) | (uint64_t)labels << shift;
}

/* From the cheapest of those that it has. */
static void price_conversions(const bz_label_value *t, conversion c)
{
    for (unsigned have = 0; have < 1U << BITS; have++)
        for (int to = 0; to < BZ_LABELS; to++) {
            double best = INFINITY;
            for (int from = 0; from < BZ_LABELS; from++)
                if (have & 1U << from)
                    best = fmin(best, t->convert[from][to]);
            c[have][to] = have & 1U << to || !isfinite(best) ? 0 : best;
        }
}

int bz_labels_read(const bz_label_step *step, int k, int label)
{
    return step->plain && step->plain[k] & 1U << label ? OUTSIDE : label;
}

/* Brings a value into the label. */
static double convert(const search *s, state *at, int value, conversion c, int to)
{
    int place = s->place[value];
    if (place < 0)
        return c[1U << OUTSIDE][to];
    unsigned have = labels_at(at, place);
    set_labels(at, place, have | 1U << to);
    return c[have][to];
}

BZ_SORTS(by_key, state, memcmp(p->key, q->key, sizeof p->key));

BZ_SORTS(by_cost, state, BZ_THEN(BZ_ORDER(p->cost, q->cost), by_key(p, q)));

static size_t hash(const search *s, const state *x)
{
    uint64_t h = 0;
    for (size_t i = 0; i < s->words; i++) {
        h = (h ^ x->key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return (size_t)h;
}

/* Among equal states the cheapest stays; among equally cheap ones the first. */
static void keep_cheapest(search *s)
{
    int kept = 0;
    size_t mask = (size_t)s->table_size - 1;
    memset(s->table, 0, (size_t)s->table_size * sizeof *s->table);
    for (int i = 0; i < s->n_next; i++) {
        const state *x = &s->next[i];
        size_t at = hash(s, x) & mask;
        while (s->table[at] && memcmp(s->next[s->table[at] - 1].key, x->key, s->words * sizeof *x->key) != 0)
            at = (at + 1) & mask;
        if (!s->table[at]) {
            s->next[kept] = *x;
            s->table[at] = ++kept;
        } else if (x->cost < s->next[s->table[at] - 1].cost) {
            s->next[s->table[at] - 1] = *x;
        }
    }
    s->n_next = kept;
}

/* Where there are too many states, the cheapest stay. Their order decides which of two equally cheap ways is taken. */
static bool thin_out(search *s)
{
    keep_cheapest(s);
    bool many = s->n_next > BZ_LABELS_WIDTH;
    qsort(s->next, (size_t)s->n_next, sizeof *s->next, many ? by_cost : by_key);
    if (many)
        s->n_next = BZ_LABELS_WIDTH;
    return many;
}

static int find_place(search *s)
{
    for (int i = 0; i < MOST_OPEN; i++)
        if (!s->used[i]) {
            s->used[i] = true;
            s->words = (size_t)(i / PER_WORD) + 1 > s->words ? (size_t)(i / PER_WORD) + 1 : s->words;
            return i;
        }
    return -1;
}

/* What no later step reads gives its place away. */
static void close_values(search *s, int step)
{
    const bz_label_step *t = &s->step[step];
    for (int k = -1; k < t->n_in; k++) {
        int value = k < 0 ? t->out : t->in[k];
        if (value < 0 || s->place[value] < 0 || s->last[value] > step)
            continue;
        for (int i = 0; i < s->n_next; i++)
            set_labels(&s->next[i], s->place[value], 0);
        s->used[s->place[value]] = false;
        s->place[value] = -1;
    }
}

static void make_room(search *s, int options)
{
    if (s->cap >= s->n_open * options)
        return;
    while (s->cap < s->n_open * options)
        s->cap = s->cap ? 2 * s->cap : 64;
    s->table_size = 2 * s->cap;
    s->open = bz_realloc(s->open, (size_t)s->cap, sizeof *s->open);
    s->next = bz_realloc(s->next, (size_t)s->cap, sizeof *s->next);
    s->table = bz_realloc(s->table, (size_t)s->table_size, sizeof *s->table);
}

static void take_step(search *s, int step)
{
    const bz_label_step *t = &s->step[step];
    s->n_next = 0;
    int options = t->n > 0 ? t->n : 1;
    make_room(s, options);
    conversion *in = bz_alloc((size_t)t->n_in + 1, sizeof *in), *out = in + t->n_in;
    for (int k = 0; k < t->n_in; k++)
        price_conversions(&s->value[t->in[k]], in[k]);
    if (t->out >= 0) {
        s->place[t->out] = find_place(s);
        price_conversions(&s->value[t->out], *out);
    }
    for (int i = 0; i < s->n_open; i++)
        for (int o = 0; o < options; o++) {
            state *y = &s->next[s->n_next++];
            int label = t->n ? t->label[o] : OUTSIDE;
            *y = s->open[i];
            y->from = i;
            y->option = o;
            for (int k = 0; k < t->n_in; k++)
                y->cost += convert(s, y, t->in[k], in[k], bz_labels_read(t, k, label));
            y->cost += t->n ? t->seconds[o] : 0;
            if (t->out < 0 || s->place[t->out] < 0)
                continue;
            set_labels(y, s->place[t->out], 1U << label);
            if (s->value[t->out].outside)
                y->cost += convert(s, y, t->out, *out, OUTSIDE);
        }
    free(in);
    close_values(s, step);
}

static void find_last(search *s, int n_values)
{
    for (int i = 0; i < n_values; i++)
        s->last[i] = s->place[i] = -1;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->step[i].n_in; k++)
            s->last[s->step[i].in[k]] = i;
}

double bz_labels_choose(const bz_label_step *step, int n, const bz_label_value *value, int n_values, int *taken,
                        int *states, bool *beam)
{
    BZ_SCOPED(bz_arena) arena = {0};
    search s = {.step = step, .value = value, .n = n, .arena = &arena};
    state begin = {.from = -1};
    bool dropped = false;
    int most = 1;
    s.last = BZ_NEW(&arena, int, (unsigned)n_values + 1);
    s.place = BZ_NEW(&arena, int, (unsigned)n_values + 1);
    step_back **history = BZ_NEW(&arena, step_back *, (unsigned)n + 1);
    find_last(&s, n_values);
    for (int i = 0; i < n_values; i++)
        if (value[i].outside && s.last[i] >= 0) { /* from outside, unless a step makes it: then that step sets it */
            bool made = false;
            for (int k = 0; k < n && !made; k++)
                made = step[k].out == i;
            if (!made && (s.place[i] = find_place(&s)) >= 0)
                set_labels(&begin, s.place[i], 1U << OUTSIDE);
        }
    s.n_open = 1;
    make_room(&s, 1);
    s.open[0] = begin;
    for (int i = 0; i < n; i++) {
        take_step(&s, i);
        dropped |= thin_out(&s);
        most = s.n_next > most ? s.n_next : most;
        history[i] = BZ_NEW(&arena, step_back, s.n_next);
        for (int k = 0; k < s.n_next; k++)
            history[i][k] = (step_back){s.next[k].from, s.next[k].option};
        state *old = s.open;
        s.open = s.next, s.next = old;
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
    free(s.open);
    free(s.next);
    free(s.table);
    return cost;
}
