/* Cover: overlapping groups form components, which do not touch each other. Each is solved by a dynamic
 * programme over its nodes in order: what matters of the past is only which later nodes are covered
 * already, and groups being local, few such sets are open at once. */
#include "base/sort.h"
#include "graph/graph.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One way to get here. `covered` has a bit for each node of the component that is not yet passed and that a group may reach which
 * begins before: bits go round as nodes are passed, so that a tangle of any length takes no more. */
typedef struct way {
    double seconds;
    uint64_t *covered;
    int before, group; /* the way that this one continues; the group that was added, or -1 */
    int number;        /* in the record of all ways */
} way;

typedef struct cover {
    const double *seconds;
    const bz_cover_group *group;
    bool *taken;
    bz_arena *arena;        /* for one component */
    int *node, n_nodes;     /* of the component, ascending */
    int *place;             /* [all nodes]: number in the component */
    int *member, n_members; /* groups of the component, by first node */
    size_t words;
    way *open, *next; /* ways up to the current node, and past it */
    int n_open, n_next, cap_open, cap_next;
    struct {
        int before, group;
    } * record; /* of every way that was followed */
    int n_record;
} cover;

static double cost(const double *seconds, int node)
{
    return isnan(seconds[node]) ? 0 : seconds[node];
}

static double gain(const double *seconds, const bz_cover_group *g)
{
    double sum = 0;
    for (int i = 0; i < g->n; i++)
        sum += cost(seconds, g->node[i]);
    return sum - g->seconds;
}

static int root(int *parent, int g)
{
    while (parent[g] != g)
        g = parent[g] = parent[parent[g]];
    return g;
}

/* The smallest group number stands for the component; -1 for groups that gain nothing. */
static int *components(int n_nodes, const double *seconds, int n_groups, const bz_cover_group *group, bz_arena *arena)
{
    int *parent = BZ_NEW(arena, int, n_groups), *owner = BZ_NEW_NONE(arena, int, n_nodes);
    for (int g = 0; g < n_groups; g++) {
        parent[g] = g;
        if (!(gain(seconds, &group[g]) > 0))
            continue;
        for (int i = 0; i < group[g].n; i++) {
            int *o = &owner[group[g].node[i]];
            int a = root(parent, g), b = *o < 0 ? a : root(parent, *o);
            parent[a > b ? a : b] = a < b ? a : b;
            *o = g;
        }
    }
    for (int g = 0; g < n_groups; g++)
        parent[g] = gain(seconds, &group[g]) > 0 ? root(parent, g) : -1;
    return parent;
}

BZ_SORTS(by_number, int, BZ_ORDER(*p, *q));

static int by_first_node(const void *a, const void *b, void *context)
{
    const bz_cover_group *group = context;
    int x = *(const int *)a, y = *(const int *)b;
    int d = group[x].node[0] - group[y].node[0];
    return d ? d : x - y;
}

static void collect_nodes(cover *c)
{
    int n = 0, kept = 0;
    for (int m = 0; m < c->n_members; m++)
        n += c->group[c->member[m]].n;
    c->node = BZ_NEW(c->arena, int, n);
    n = 0;
    for (int m = 0; m < c->n_members; m++)
        for (int i = 0; i < c->group[c->member[m]].n; i++)
            c->node[n++] = c->group[c->member[m]].node[i];
    qsort(c->node, (size_t)n, sizeof *c->node, by_number);
    for (int i = 0; i < n; i++)
        if (!i || c->node[i] != c->node[i - 1])
            c->node[kept++] = c->node[i];
    for (int i = 0; i < kept; i++)
        c->place[c->node[i]] = i;
    c->n_nodes = kept;
    c->words = 1;
    for (int m = 0; m < c->n_members; m++) {
        const bz_cover_group *g = &c->group[c->member[m]];
        size_t reach = (size_t)(c->place[g->node[g->n - 1]] - c->place[g->node[0]]) / 64 + 1;
        c->words = reach > c->words ? reach : c->words;
    }
}

static uint64_t *word_of(const cover *c, uint64_t *set, int place)
{
    return &set[(size_t)place / 64 % c->words];
}

static uint64_t bit_of(int place)
{
    return (uint64_t)1 << place % 64;
}

static bool clashes(const cover *c, uint64_t *covered, const bz_cover_group *g)
{
    for (int i = 0; i < g->n; i++)
        if (*word_of(c, covered, c->place[g->node[i]]) & bit_of(c->place[g->node[i]]))
            return true;
    return false;
}

/* The way continues past node `at`, by itself or as the first of a group. */
static void go_on(cover *c, const way *from, int at, int group)
{
    if (c->n_next == c->cap_next) {
        int cap = c->cap_next ? 2 * c->cap_next : 64;
        c->next = bz_arena_grow(c->arena, c->next, (size_t)c->n_next, (size_t)cap, sizeof *c->next);
        c->cap_next = cap;
    }
    way *w = &c->next[c->n_next++];
    *w = (way){.seconds = from->seconds, .before = from->number, .group = group};
    w->covered = bz_arena_dup(c->arena, from->covered, c->words * sizeof *w->covered);
    if (group >= 0) {
        const bz_cover_group *g = &c->group[group];
        w->seconds += g->seconds;
        for (int i = 0; i < g->n; i++)
            *word_of(c, w->covered, c->place[g->node[i]]) |= bit_of(c->place[g->node[i]]);
    } else if (!(*word_of(c, w->covered, at) & bit_of(at))) {
        w->seconds += cost(c->seconds, c->node[at]);
    }
    *word_of(c, w->covered, at) &= ~bit_of(at);
}

static int by_set(const void *a, const void *b, void *context)
{
    const way *x = a, *y = b;
    const cover *c = context;
    int d = memcmp(x->covered, y->covered, c->words * sizeof *x->covered);
    if (d)
        return d;
    return x->seconds != y->seconds ? (x->seconds < y->seconds ? -1 : 1)
           : x->before != y->before ? x->before - y->before
                                    : x->group - y->group;
}

static int by_seconds(const void *a, const void *b, void *context)
{
    const way *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds ? -1 : 1) : by_set(a, b, context);
}

/* Among ways that cover the same layers only the cheapest stays. Where too many are left, the cheapest stay. */
static void thin_out(cover *c)
{
    int kept = 0;
    qsort_r(c->next, (size_t)c->n_next, sizeof *c->next, by_set, c);
    for (int i = 0; i < c->n_next; i++)
        if (!i || memcmp(c->next[i].covered, c->next[kept - 1].covered, c->words * sizeof(uint64_t)) != 0)
            c->next[kept++] = c->next[i];
    if (kept > BZ_COVER_WIDTH) {
        qsort_r(c->next, (size_t)kept, sizeof *c->next, by_seconds, c);
        kept = BZ_COVER_WIDTH;
    }
    for (int i = 0; i < kept; i++) {
        BZ_ARENA_ROOM(c->arena, c->record, c->n_record);
        c->record[c->n_record].before = c->next[i].before;
        c->record[c->n_record].group = c->next[i].group;
        c->next[i].number = c->n_record++;
    }
    way *swap = c->open;
    int cap = c->cap_open;
    c->open = c->next, c->n_open = kept, c->cap_open = c->cap_next;
    c->next = swap, c->n_next = 0, c->cap_next = cap;
}

static void solve(cover *c)
{
    way *start = BZ_NEW(c->arena, way, 1);
    *start = (way){.covered = BZ_NEW(c->arena, uint64_t, c->words), .before = -1, .group = -1, .number = -1};
    double alone = 0;
    c->open = start, c->n_open = 1, c->cap_open = 1;
    c->next = NULL, c->n_next = c->cap_next = 0;
    c->record = NULL, c->n_record = 0;
    for (int at = 0, m = 0; at < c->n_nodes; at++) {
        int end = m;
        while (end < c->n_members && c->group[c->member[end]].node[0] == c->node[at])
            end++;
        for (int w = 0; w < c->n_open; w++) {
            way from = c->open[w];
            go_on(c, &from, at, -1);
            for (int k = m; k < end; k++)
                if (!clashes(c, from.covered, &c->group[c->member[k]]))
                    go_on(c, &from, at, c->member[k]);
        }
        thin_out(c);
        m = end;
        alone += cost(c->seconds, c->node[at]);
    }
    int best = 0;
    for (int w = 1; w < c->n_open; w++)
        if (c->open[w].seconds < c->open[best].seconds)
            best = w;
    if (c->open[best].seconds < alone)
        for (int w = c->open[best].number; w >= 0; w = c->record[w].before)
            if (c->record[w].group >= 0)
                c->taken[c->record[w].group] = true;
}

/* Summed anew in the order of nodes and groups, so that rounding does not depend on the components. */
static double sum(int n_nodes, const double *seconds, int n_groups, const bz_cover_group *group, const bool *taken,
                  bz_arena *arena)
{
    bool *covered = BZ_NEW(arena, bool, n_nodes);
    double total = 0;
    for (int g = 0; g < n_groups; g++)
        for (int i = 0; taken[g] && i < group[g].n; i++)
            covered[group[g].node[i]] = true;
    for (int i = 0; i < n_nodes; i++)
        total += covered[i] ? 0 : cost(seconds, i);
    for (int g = 0; g < n_groups; g++)
        total += taken[g] ? group[g].seconds : 0;
    return total;
}

double bz_cover(int n_nodes, const double *seconds, int n_groups, const bz_cover_group *group, bool *taken,
                bz_arena *arena)
{
    bz_arena work = {0};
    cover c = {.seconds = seconds, .group = group, .taken = taken, .arena = &work};
    memset(taken, 0, (size_t)n_groups * sizeof *taken);
    int *component = components(n_nodes, seconds, n_groups, group, arena);
    c.place = BZ_NEW(arena, int, n_nodes);
    c.member = BZ_NEW(arena, int, n_groups);
    /* groups of a component side by side, without looking at all pairs */
    int *first = BZ_NEW_NONE(arena, int, n_groups), *next = BZ_NEW(arena, int, n_groups);
    for (int g = n_groups; g--;)
        if (component[g] >= 0) {
            next[g] = first[component[g]];
            first[component[g]] = g;
        }
    for (int k = 0; k < n_groups; k++) {
        if (component[k] != k)
            continue;
        c.n_members = 0;
        for (int g = first[k]; g >= 0; g = next[g])
            c.member[c.n_members++] = g;
        qsort_r(c.member, (size_t)c.n_members, sizeof *c.member, by_first_node, (void *)group);
        collect_nodes(&c);
        solve(&c);
        bz_arena_free(&work);
    }
    double total = sum(n_nodes, seconds, n_groups, group, taken, arena), alone = 0;
    for (int i = 0; i < n_nodes; i++)
        alone += cost(seconds, i);
    if (total > alone) { /* a gain so small that it was lost in rounding */
        memset(taken, 0, (size_t)n_groups * sizeof *taken);
        total = alone;
    }
    return total;
}
