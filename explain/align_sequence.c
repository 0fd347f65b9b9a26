/* Two sequences beside each other at the least cost: Needleman and Wunsch's algorithm, cut into pieces where
 * the sequences are long. */
#include "base/sort.h"
#include "explain/align.h"
#include "explain/constants.h"

#include <stdlib.h>
#include <string.h>

/* Only layers have other ways. */
bool bz_align_same(const bz_align_atom *a, const bz_align_atom *b)
{
    if (!a->id || !b->id)
        return false;
    if (a->id == b->id)
        return true;
    for (int i = 0; i < BZ_ALIGN_ALSO && a->also[i]; i++)
        if (a->also[i] == b->id)
            return true;
    return false;
}

/* A layer may be computed as another kind than it is in the model: an addition of a bias, a power as a square. */
static bool same_kind(const bz_align_atom *a, const bz_align_atom *b)
{
    return a->kind == b->kind || (a->own && !b->id && a->own == b->kind);
}

int bz_align_pair_cost(const bz_align_words *w, const bz_align_atom *a, const bz_align_atom *b)
{
    /* the bias that a call adds is its own layer's where that has one: a layer of its own that adds as many numbers may come later */
    if (b->post && !a->post && a->kind == w->bias && b->kind == w->bias)
        return PAIR_FOREIGN_BIAS;
    if (a->id && a->id == b->id)
        return PAIR_SAME;
    if ((a->node && b->node) || (a->sort && b->sort && a->sort != b->sort))
        return -1;
    if (same_kind(a, b) && (!a->id || !b->id))
        return a->near && b->near && a->near != b->near ? PAIR_CHANGED : PAIR_UNKNOWN;
    if (bz_align_same(a, b))
        return PAIR_SAME;
    if (a->kind == b->kind)
        return a->near && a->near == b->near ? PAIR_NEAR : PAIR_CHANGED;
    /* batch normalization that was folded leaves a bias behind: the program's, or the model's in its product */
    bool folded = (a->kind == w->batchnorm && b->kind == w->bias) ||
                  (a->kind == w->bias && a->post && b->kind == w->batchnorm && !b->post);
    return folded ? PAIR_FOLDED : -1;
}

int bz_align_gap_cost(const bz_align_atom *a)
{
    return a->optional ? GAP_OPTIONAL : GAP;
}

typedef struct piece {
    const bz_align_words *w;
    const bz_align_atom *a, *b;
    int cells;
    int *cost;          /* [m + 1]: a row */
    unsigned char *way; /* [n + 1][m + 1] */
} piece;

enum { PAIR, SKIP_A, SKIP_B };

/* A way through the table from its beginning; `to` is written along it. *i and *j come in as where to cut it
 * at the latest, and go out as where that is: what lies behind in `to` is not certain yet. */
static void walk(const piece *p, int a0, int b0, int n, int m, int *cut_a, int *cut_b, int *to)
{
    int half_a = *cut_a, half_b = *cut_b;
    for (int i = n, j = m; i || j;) {
        unsigned char choice = p->way[(size_t)i * (size_t)(m + 1) + (size_t)j];
        if (i >= half_a || j >= half_b) {
            *cut_a = i;
            *cut_b = j;
        }
        i -= choice != SKIP_B;
        j -= choice != SKIP_A;
        if (choice != SKIP_A)
            to[b0 + j] = choice == PAIR ? a0 + i : -1;
    }
}

static void table(piece *p, int a0, int n, int b0, int m)
{
    p->cost[0] = 0;
    for (int j = 1; j <= m; j++) {
        p->cost[j] = p->cost[j - 1] + bz_align_gap_cost(&p->b[b0 + j - 1]);
        p->way[j] = SKIP_B;
    }
    for (int i = 1; i <= n; i++) {
        const bz_align_atom *x = &p->a[a0 + i - 1];
        int diagonal = p->cost[0], gap = bz_align_gap_cost(x);
        unsigned char *row = p->way + (size_t)i * (size_t)(m + 1);
        p->cost[0] += gap;
        row[0] = SKIP_A;
        for (int j = 1; j <= m; j++) {
            const bz_align_atom *y = &p->b[b0 + j - 1];
            int left = p->cost[j - 1] + bz_align_gap_cost(y), up = p->cost[j] + gap;
            int pair = bz_align_pair_cost(p->w, x, y), best = left;
            unsigned char choice = SKIP_B; /* of calls that are as good the first one */
            if (pair >= 0 && diagonal + pair < best)
                best = diagonal + pair, choice = PAIR;
            if (up < best || (up == best && y->post)) /* of layers the first one behind what the call is */
                best = up, choice = SKIP_A;
            diagonal = p->cost[j];
            p->cost[j] = best;
            row[j] = choice;
        }
    }
}

static bool small(const piece *p, int n, int m)
{
    return ((int64_t)n + 1) * ((int64_t)m + 1) <= p->cells;
}

/* What lies in the first half of a window does not depend on what is behind the window, but in rare cases. */
static void align_piece(piece *p, int a0, int a1, int b0, int b1, int *to)
{
    int window = 1;
    while ((int64_t)(2 * window + 1) * (2 * window + 1) <= p->cells && window < LARGEST_WINDOW)
        window *= 2;
    while (b0 < b1) {
        bool all = small(p, a1 - a0, b1 - b0);
        int n = all || a1 - a0 < window ? a1 - a0 : window, m = all || b1 - b0 < window ? b1 - b0 : window;
        int cut_a = a0 + n < a1 ? (n + 1) / 2 : n + 1, cut_b = b0 + m < b1 ? (m + 1) / 2 : m + 1;
        table(p, a0, n, b0, m);
        walk(p, a0, b0, n, m, &cut_a, &cut_b, to);
        if (a0 + n == a1 && b0 + m == b1)
            return;
        a0 += cut_a;
        b0 += cut_b;
    }
}

typedef struct seen {
    int a, b, n_a, n_b; /* where, and how often */
} seen;

/* Signatures that occur once on either side, in ascending order on both: the longest such chain. */
static int find_anchors(const piece *p, int n, int m, int (*anchor)[2])
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++)
        most = p->a[i].id > most ? p->a[i].id : most;
    for (int j = 0; j < m; j++)
        most = p->b[j].id > most ? p->b[j].id : most;
    BZ_FREED seen *at = bz_zeroed((size_t)most + 1, sizeof *at);
    for (int i = 0; i < n; i++)
        at[p->a[i].id].a = i, at[p->a[i].id].n_a++;
    for (int j = 0; j < m; j++)
        at[p->b[j].id].b = j, at[p->b[j].id].n_b++;
    BZ_FREED int *tail = bz_alloc((size_t)n + 1, sizeof *tail), *before = bz_alloc((size_t)n, sizeof *before);
    int length = 0;
    for (int i = 0; i < n; i++) { /* patience: piles of ascending b */
        const seen *s = &at[p->a[i].id];
        if (!p->a[i].id || s->n_a != 1 || s->n_b != 1)
            continue;
        int low = 0, high = length;
        BZ_FIND_FIRST(low, high, mid, at[p->a[tail[mid]].id].b < s->b);
        before[i] = low ? tail[low - 1] : -1;
        tail[low] = i;
        length += low == length;
    }
    for (int k = length, i = length ? tail[length - 1] : -1; k--; i = before[i]) {
        anchor[k][0] = i;
        anchor[k][1] = at[p->a[i].id].b;
    }
    return length;
}

void bz_align_sequences(const bz_align_words *w, const bz_align_atom *a, int n, const bz_align_atom *b, int m,
                        int cells, int *to)
{
    piece p = {.w = w, .a = a, .b = b, .cells = cells < 9 ? 9 : cells};
    for (int j = 0; j < m; j++)
        to[j] = -1;
    if (!n || !m)
        return;
    int begin = 0, end = 0, length = 0, (*anchor)[2] = NULL;
    p.cost = bz_alloc((size_t)m + 1, sizeof *p.cost);
    size_t room = ((size_t)n + 1) * ((size_t)m + 1);
    p.way = bz_alloc(room < (size_t)p.cells ? room : (size_t)p.cells, 1);
    if (!small(&p, n, m)) {
        anchor = bz_alloc((size_t)n, sizeof *anchor);
        length = find_anchors(&p, n, m, anchor);
    }
    for (int k = 0; k <= length; k++) {
        int a_end = k < length ? anchor[k][0] : n, b_end = k < length ? anchor[k][1] : m;
        align_piece(&p, begin, a_end, end, b_end, to);
        if (k < length)
            to[b_end] = a_end;
        begin = a_end + 1;
        end = b_end + 1;
    }
    free(anchor);
    free(p.cost);
    free(p.way);
}
