/* Finds the levels at which a sequence repeats: every way to cut it at a mark so that the pieces resemble their neighbours.
 * Marks are symbols, runs of symbols, copies of inputs, waits, and launches of graphs. Which level is meant: choose.c. */
#include "profile/cuts.h"
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/sequence.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const bz_work *w;
    int32_t *balance; /* all zero between comparisons */
    uint32_t *at;     /* [n + 1] the marks at hand */
    size_t k, end;    /* the last mark's piece ends there at the latest */
    bool *good;       /* [n + 1] pieces that are like a neighbour */
    size_t tolerance; /* one event in so many may differ between pieces */
    bool vary;        /* pieces need not be alike: their marks mean something */
    bool closed;      /* a mark stands at `end`, too */
    const uint32_t *count
        [BZ_DO_COUNTED]; /* [n + 2] inputs, results, waits, runs of the optimizer before each event; NULL: there are none */
    bz_cut *cuts;
    int n_cuts;
    bz_arena *arena;
} search;

static bool alike(search *s, size_t a, size_t a_n, size_t b, size_t b_n, size_t *by)
{
    size_t longer = a_n > b_n ? a_n : b_n, shorter = a_n > b_n ? b_n : a_n;
    *by = longer;
    if (s->vary)
        return bz_pieces_vary(s->w, s->balance, a, a_n, b, b_n);
    if (!shorter || longer - shorter > longer / s->tolerance)
        return false;
    *by = a_n + b_n - 2 * bz_pieces_common(s->w, s->balance, s->w->name, a, a_n, b, b_n);
    return *by <= longer / s->tolerance;
}

static size_t length_of(const search *s, size_t i)
{
    return s->at[i + 1] - s->at[i];
}

/* Does piece i do what the typical one does, and perhaps more (a warm-up)? */
static bool does_it(search *s, size_t i, size_t typical)
{
    size_t usual = length_of(s, typical);
    if (s->vary)
        return bz_pieces_vary(s->w, s->balance, s->at[typical], usual, s->at[i], length_of(s, i));
    return 4 * bz_pieces_common(s->w, s->balance, s->w->name, s->at[typical], usual, s->at[i], length_of(s, i)) >=
           3 * usual;
}

/* The same, or work of the same sorts in about the same amount (a prompt before its tokens)? */
static bool similar(search *s, size_t i, size_t typical)
{
    const bz_work *w = s->w;
    size_t n = length_of(s, i), usual = length_of(s, typical);
    if (does_it(s, i, typical))
        return true;
    return n <= 2 * usual && usual <= 2 * n &&
           10 * bz_pieces_common(s->w, s->balance, w->sort, s->at[typical], usual, s->at[i], n) >=
               6 * (n > usual ? n : usual);
}

/* Is a piece beside those from `first` to `end` one of them: similar, or what one of those that are like no other is, too? */
static bool belongs(search *s, size_t i, size_t first, size_t end, size_t typical)
{
    enum { LOOKED_AT = 1000 };
    if (similar(s, i, typical))
        return true;
    for (size_t k = first; k < end && k - first < LOOKED_AT; k++)
        if (!s->good[k] && length_of(s, k) == length_of(s, i) &&
            bz_pieces_same(s->w, s->w->name, s->at[k], s->at[i], length_of(s, i)))
            return true;
    return false;
}

BZ_SORTS(by_length, size_t, BZ_THEN(BZ_ORDER(p[0], q[0]), BZ_ORDER(p[1], q[1])));

/* The good piece of median length. */
static size_t typical_piece(const search *s, size_t from, size_t to)
{
    size_t(*list)[2] = bz_alloc(to - from, sizeof *list), n = 0;
    for (size_t i = from; i < to; i++)
        if (s->good[i]) {
            list[n][0] = length_of(s, i);
            list[n++][1] = i;
        }
    bz_sort(list, n, sizeof *list, by_length); /* mostly all are of one length */
    size_t typical = list[(n - 1) / 2][1];
    free(list);
    return typical;
}

/* The share of pieces between which, or in which, something happens. What the host does behind the last event of a piece is
 * counted before the first of the next. */
static double share_of(const search *s, bz_doing what, size_t from, size_t to)
{
    const uint32_t *count = s->count[what];
    if (!count)
        return 0;
    size_t n = 0, behind = what == BZ_DO_RESULT || what == BZ_DO_WAIT;
    for (size_t i = from; i < to; i++)
        n += count[s->at[i + 1] + behind] > count[s->at[i] + behind];
    return (double)n / (double)(to - from);
}

/* Of two cuts into as many pieces: is `a` the better one? */
static bool better(const bz_cut *a, const bz_cut *b)
{
    if (a->origin != b->origin)
        return a->origin > b->origin;
    return a->mismatches != b->mismatches ? a->mismatches < b->mismatches : a->first[0] < b->first[0];
}

/* Pieces that vary are taken where more of them, or of the recording, are alike. */
static bool more_alike(const bz_cut *a, const bz_cut *b)
{
    return a->alike != b->alike ? a->alike > b->alike : a->covered > b->covered;
}

/* One cut for each number of pieces: the best. */
static void keep(search *s, size_t from, size_t to, size_t typical, bz_cut cut)
{
    int i = 0;
    cut.n = (uint32_t)(to - from);
    cut.first = s->at + from;
    while (i < s->n_cuts && s->cuts[i].n != cut.n)
        i++;
    if (i < s->n_cuts && (s->vary ? !more_alike(&cut, &s->cuts[i]) : !better(&cut, &s->cuts[i])))
        return;
    cut.end = s->at[to];
    cut.typical = (uint32_t)(typical - from);
    cut.length = (uint32_t)length_of(s, typical);
    cut.inputs = share_of(s, BZ_DO_INPUT, from, to);
    cut.results = share_of(s, BZ_DO_RESULT, from, to);
    cut.waits = share_of(s, BZ_DO_WAIT, from, to);
    cut.optimizes = share_of(s, BZ_DO_UPDATE, from, to);
    cut.rests = cut.origin == BZ_CUT_RESTS;
    if (s->count[BZ_DO_WAIT])
        cut.waits_each = s->count[BZ_DO_WAIT][s->at[typical + 1] + 1] - s->count[BZ_DO_WAIT][s->at[typical] + 1];
    if (s->count[BZ_DO_INPUT]) { /* the first piece may have what is copied at the start */
        size_t fed = typical == from && from + 1 < to ? from + 1 : typical;
        cut.inputs_each = s->count[BZ_DO_INPUT][s->at[fed + 1]] - s->count[BZ_DO_INPUT][s->at[fed]];
    }
    if (i < s->n_cuts) {
        uint32_t *first = s->cuts[i].first; /* as many as before: the same memory */
        cut.first = memcpy(first, cut.first, (cut.n + 1) * sizeof *first);
    } else {
        cut.first = bz_arena_dup(s->arena, cut.first, (cut.n + 1) * sizeof *cut.first);
        BZ_ARENA_ROOM(s->arena, s->cuts, i);
        s->n_cuts++;
    }
    s->cuts[i] = cut;
}

/* Is what stands behind the last mark a piece to its end, though it is shorter than the one before? It is what an earlier one was, or ends
 * with the same event, and has as many of its name: a step that was cut off ends anywhere. */
static bool ends_whole(const search *s, size_t last, size_t left)
{
    const bz_work *w = s->w;
    const size_t before = s->at[s->k - 2], behind = s->at[s->k - 1];
    uint32_t end = bz_work_name(w, before + last - 1);
    size_t balance = left;
    for (size_t i = 0; i + 2 < s->k; i++)
        if (length_of(s, i) == left && bz_pieces_same(w, w->name, s->at[i], behind, left))
            return true;
    if (2 * left < last || bz_work_name(w, behind + left - 1) != end)
        return false;
    for (size_t i = 0; i < last; i++)
        balance += bz_work_name(w, before + i) == end;
    for (size_t i = 0; i < left; i++)
        balance -= bz_work_name(w, behind + i) == end;
    return balance == left;
}

/* Does the recording end with a step? Where a result is fetched between nearly all pieces, one behind the last event ends the last one. */
static bool ends_answered(const search *s)
{
    const uint8_t *between = s->w->between;
    size_t answered = 0;
    if (s->end != s->w->n || !(between[s->end] & BZ_BETWEEN_RESULT))
        return false;
    for (size_t i = 1; i < s->k; i++)
        answered += (between[s->at[i]] & BZ_BETWEEN_RESULT) != 0;
    return 10 * answered >= 9 * (s->k - 1);
}

/* Which pieces are as one beside them is; the first of them, and where the last one ends. True where from there to there each has the events of
 * the next one, and with that of all. */
static bool compare_neighbours(search *s, size_t pieces, bz_cut *cut, size_t *first, size_t *end)
{
    size_t alike_next = 0;
    memset(s->good, 0, s->k * sizeof *s->good);
    for (size_t i = 0; i + 1 < pieces; i++) {
        size_t by;
        if (!alike(s, s->at[i], length_of(s, i), s->at[i + 1], length_of(s, i + 1), &by))
            continue;
        s->good[i] = s->good[i + 1] = true;
        *first = *first < i ? *first : i;
        *end = i + 2;
        cut->mismatches += by;
        alike_next++;
    }
    for (size_t i = 0; i < pieces; i++)
        if (s->good[i]) {
            cut->alike++;
            cut->covered += length_of(s, i);
        }
    return !cut->mismatches && alike_next && *first + alike_next + 1 == *end;
}

/* What comes before the first step may run into it: the first piece begins where the work does with which the others begin. */
static void leave_set_up(search *s)
{
    const bz_work *w = s->w;
    uint32_t like = s->at[1];
    size_t next = s->k > 2 ? s->at[2] : s->end, i = next > like + 1 ? s->at[0] : like;
    while (i + 1 < s->at[1] &&
           (bz_work_name(w, i) != bz_work_name(w, like) || bz_work_name(w, i + 1) != bz_work_name(w, like + 1)))
        i++;
    s->at[0] = i + 1 < s->at[1] ? (uint32_t)i : s->at[0];
}

/* Pieces beside those that are alike, that do the same: a warm-up, a prompt, a last step. */
static void extend(search *s, size_t *first, size_t *end, size_t pieces, size_t typical, bz_cut *cut)
{
    while (*first > 0 && belongs(s, *first - 1, *first, *end, typical)) {
        --*first;
        cut->warm++;
        cut->covered += does_it(s, *first, typical) ? length_of(s, *first) : 0;
    }
    while (*end < pieces && belongs(s, *end, *first, *end, typical)) {
        cut->covered += does_it(s, *end, typical) ? length_of(s, *end) : 0;
        ++*end;
    }
}

/* The marks at hand as a cut, where enough pieces resemble their neighbours. Behind the last mark the piece has no end: it is as
 * long as the one before. */
static void try_cut(search *s, bz_cut_origin origin)
{
    const bz_work *w = s->w;
    size_t k = s->k, inside = 0;
    if (k < 2)
        return;
    for (size_t i = 0; i < k; i++)
        inside += w->between[s->at[i]] & BZ_BETWEEN_NONE;
    if (10 * inside > k * BZ_BETWEEN_NONE)
        return;
    if (s->vary)
        leave_set_up(s);
    size_t last = length_of(s, k - 2), left = s->end - s->at[k - 1];
    bool whole = left >= last - last / 10 || ends_whole(s, last, left);
    s->at[k] = (uint32_t)(s->at[k - 1] + (left < last ? left : last));
    bool closed = s->closed || ends_answered(s);
    if (s->vary || closed) { /* to the end of the recording, if that is the end of a step */
        whole = closed || bz_pieces_vary(s->w, s->balance, s->at[k - 2], last, s->at[k - 1], left);
        s->at[k] = whole ? (uint32_t)s->end : s->at[k];
    }
    size_t pieces = whole ? k : k - 1, first = pieces, end = 0;
    bz_cut cut = {.origin = origin};
    bool all = compare_neighbours(s, pieces, &cut, &first, &end);
    if (!cut.alike || cut.covered * LEAST_COVERED < w->n)
        return;
    size_t typical = typical_piece(s, first, end), same = 0;
    if (origin == BZ_CUT_SYMBOLS && length_of(s, typical) == 1 && cut.covered * 10 < w->n * 9)
        return; /* a call that is made several times in a row */
    cut.covered = 0;
    for (size_t i = first; i < end; i++) {
        bool does = all || does_it(s, i, typical);
        same += s->good[i] && does;
        bool like = does || s->good[i] || similar(s, i, typical);
        cut.covered += does || s->good[i] || (like && w->grows) ? length_of(s, i) : 0; /* sizes may meet by chance */
        cut.odd += !like;
    }
    if (2 * same < cut.alike)
        return;
    extend(s, &first, &end, pieces, typical, &cut);
    if (end == pieces && whole && !s->good[end - 1] && left > last && !s->vary &&
        !closed) /* the last one is as long as most are */
        s->at[k] = s->at[k - 1] + (uint32_t)(left < length_of(s, typical) ? left : length_of(s, typical));
    keep(s, first, end, typical, cut);
}

static void cut_where(search *s, bz_cut_origin origin, bz_doing what)
{
    s->k = 0;
    if (what == BZ_DO_GRAPH ? !(s->w->anywhere & BZ_BETWEEN_NONE) : !s->count[what])
        return; /* there is none */
    for (size_t i = 0; i < s->w->n; i++)
        if (bz_work_does_at(s->w, what, i))
            s->at[s->k++] = (uint32_t)i;
    if (s->k && s->at[0] && origin == BZ_CUT_WAITS) { /* nothing waits before the first */
        memmove(s->at + 1, s->at, s->k++ * sizeof *s->at);
        s->at[0] = 0;
    }
    try_cut(s, origin);
}

/* An iteration of training begins behind the update of the weights; what follows the last one is none. */
static void cut_behind_updates(search *s)
{
    const bz_work *w = s->w;
    if (!bz_work_any(w, BZ_DOES_OPTIMIZE))
        return;
    s->k = 1;
    s->at[0] = 0;
    for (size_t i = 1; i < s->w->n; i++)
        if (bz_work_does(w, i - 1) & BZ_DOES_OPTIMIZE && !(bz_work_does(w, i) & BZ_DOES_OPTIMIZE))
            s->at[s->k++] = (uint32_t)i;
    if (s->k > 1) { /* set-up that runs into the first one belongs to none */
        size_t second = (s->k > 2 ? s->at[2] : s->w->n) - s->at[1], by;
        if (second < s->at[1] && alike(s, s->at[1] - second, second, s->at[1], second, &by))
            s->at[0] = s->at[1] - (uint32_t)second;
    }
    size_t behind = s->at[s->k - 1];
    while (behind < s->w->n && !(bz_work_does(w, behind) & BZ_DOES_OPTIMIZE))
        behind++;
    if (behind == s->w->n)
        s->end = s->at[--s->k];
    s->closed = s->end && bz_work_does(w, s->end - 1) & BZ_DOES_OPTIMIZE;
    try_cut(s, BZ_CUT_WAITS);
    s->closed = false;
    s->end = s->w->n;
}

/* A symbol may stand anywhere in an iteration. Where the piece behind the last mark is incomplete, and what is before the first
 * mark completes it, the marks move back to where the repetition begins. */
static void rotate(search *s)
{
    const bz_work *w = s->w;
    if (s->k < 2)
        return;
    size_t length = length_of(s, s->k - 2), left = s->w->n - s->at[s->k - 1], back = 0, from = s->at[0],
           like = s->at[1];
    while (back < from && back < length && bz_work_name(w, from - 1 - back) == bz_work_name(w, like - 1 - back))
        back++;
    if (left >= length - length / 10 || left + back < length - length / 10)
        return;
    for (size_t i = 0; i < s->k; i++)
        s->at[i] -= (uint32_t)back;
}

/* A mark of several events has no room in the last pieces: where nothing but such as the one before is left to the end, they are pieces, too. */
static void add_behind(search *s)
{
    const bz_work *w = s->w;
    size_t length = s->k > 1 ? length_of(s, s->k - 2) : w->n, from = s->at[s->k - 1], more = (w->n - from) / length;
    if ((w->n - from) % length || more < 2 || !bz_pieces_same(w, w->name, from, from + length, w->n - from - length))
        return;
    for (size_t i = 1; i < more; i++)
        s->at[s->k++] = (uint32_t)(from + i * length);
}

/* Symbols of events: `symbol` [n], which `table` may turn into others. */
typedef struct {
    const uint32_t *symbol, *table;
    uint32_t n_symbols;
} marks;

static uint32_t mark_of(const marks *m, size_t i)
{
    return m->table ? m->table[m->symbol[i]] : m->symbol[i];
}

/* Marks that occur equally often mostly cut alike, so only two of each count are tried: those that come first. `number`
 * [n_symbols]: 1 + which of those that are tried a symbol is, else 0; `place` [MARKS_TRIED + 1]: where the places of each
 * begin. Returns how many are tried. */
static uint32_t choose_marks(const search *s, const marks *m, uint32_t *number, uint32_t *place)
{
    uint32_t *count = bz_zeroed((size_t)m->n_symbols + 1, sizeof *count), tried[MARKS_TRIED], n_tried = 0;
    for (size_t i = 0; i < s->w->n; i++)
        count[mark_of(m, i)]++;
    place[0] = 0;
    for (uint32_t id = 0; id < m->n_symbols && n_tried < MARKS_TRIED; id++) {
        int equals = 0;
        for (uint32_t i = 0; i < n_tried; i++)
            equals += tried[i] == count[id];
        if (count[id] < 2 || equals >= 2)
            continue;
        place[n_tried + 1] = place[n_tried] + count[id];
        tried[n_tried++] = count[id];
        number[id] = n_tried;
    }
    free(count);
    return n_tried;
}

static void cut_at_symbols(search *s, const uint32_t *symbol, const uint32_t *table, uint32_t n_symbols)
{
    const marks m = {symbol, table, n_symbols};
    uint32_t *number = bz_zeroed((size_t)n_symbols + 1, sizeof *number), place[MARKS_TRIED + 1] = {0},
             next[MARKS_TRIED + 1], n_tried = choose_marks(s, &m, number, place);
    BZ_FREED uint32_t *position = bz_alloc((size_t)place[n_tried] + 1, sizeof *position);
    memcpy(next, place, sizeof next);
    for (size_t i = 0; i < s->w->n; i++) {
        uint32_t which = number[mark_of(&m, i)];
        if (which)
            position[next[which - 1]++] = (uint32_t)i;
    }
    for (uint32_t k = 0; k < n_tried; k++) {
        s->k = place[k + 1] - place[k];
        memcpy(s->at, position + place[k], s->k * sizeof *s->at);
        rotate(s);
        add_behind(s);
        try_cut(s, BZ_CUT_SYMBOLS);
    }
    free(number);
}

/* The usual pause within the typical piece. */
static int64_t usual_pause(const bz_work *w, const bz_cut *c)
{
    const uint32_t from = c->first[c->typical] + 1, n = c->length - 1;
    BZ_FREED int64_t *pause = bz_alloc((size_t)n + 1, sizeof *pause);
    for (uint32_t i = 0; i < n; i++)
        pause[i] = bz_work_pause(w, from + i);
    return n ? bz_median(pause, n) : 0;
}

/* Steps of equal layers, by the pauses between them. */
static void cut_at_rests(search *s)
{
    BZ_FREED int64_t *pause = bz_alloc(s->w->n, sizeof *pause); /* one place for each piece is used */
    for (int c = 0; s->w->pause && c < s->n_cuts; c++) {        /* what is found is looked at as well */
        bz_cut cut = s->cuts[c];
        size_t n = cut.n - 1, from = 0, turn;
        if (cut.origin > BZ_CUT_RESTS || n < 3 || cut.alike < cut.n)
            continue;
        for (size_t i = 0; i < n; i++)
            pause[i] = bz_work_pause(s->w, cut.first[i + 1]);
        if (!(turn = bz_turn_of_rests(pause, n, usual_pause(s->w, &cut), &from)))
            continue;
        s->k = 0;
        for (size_t i = from; i < cut.n; i += turn)
            s->at[s->k++] = cut.first[i];
        try_cut(s, BZ_CUT_RESTS);
    }
}

BZ_SORTS(by_count, bz_cut, BZ_ORDER(p->n, q->n));

/* Does something happen once in each piece? */
static bool is_even(const search *s, const bz_cut *c, bz_doing what, double share)
{
    const uint32_t *count = s->count[what];
    size_t behind = what == BZ_DO_RESULT || what == BZ_DO_WAIT;
    if (share < 0.9)
        return false;
    uint64_t all = count[c->end + behind] - count[c->first[0] + behind];
    uint32_t from = c->first[c->typical];
    uint64_t each = count[from + c->length + behind] - count[from + behind];
    return each == 1 && 10 * all <= 11 * (uint64_t)c->n;
}

/* Is there a level that the host's doing tells? Then no longer marks are needed. */
static bool is_told(const search *s)
{
    for (int i = 0; i < s->n_cuts; i++) {
        const bz_cut *c = &s->cuts[i];
        if (c->covered * 10 >= s->w->n * 9 &&
            (is_even(s, c, BZ_DO_INPUT, c->inputs) || is_even(s, c, BZ_DO_RESULT, c->results) ||
             is_even(s, c, BZ_DO_UPDATE, c->optimizes)))
            return true;
    }
    return false;
}

static void cut_at_runs(search *s)
{
    const bz_work *w = s->w;
    BZ_FREED uint32_t *gram = bz_alloc(w->n, sizeof *gram);
    for (size_t i = 0; i < w->n; i++)
        gram[i] = bz_work_name(w, i);
    for (size_t width = 4; width <= LONGEST_MARK && width <= w->n / 2; width *= 4)
        cut_at_symbols(s, gram, NULL, bz_widen_symbols(gram, w->exact, w->n, width / 4));
}

/* Embeddings are the first layer of a step, each of those that it has. */
static void cut_at_lookups(search *s)
{
    enum { MOST = 8 };
    const bz_work *w = s->w;
    uint32_t tried[MOST];
    int n = 0;
    for (size_t i = 0; i < w->n && n < MOST && bz_work_any(w, BZ_DOES_LOOK_UP); i++) {
        bool known = !(bz_work_does(w, i) & BZ_DOES_LOOK_UP);
        for (int k = 0; k < n && !known; k++)
            known = tried[k] == bz_work_name(w, i);
        if (known)
            continue;
        tried[n++] = bz_work_name(w, i);
        s->k = 0;
        for (size_t k = i; k < w->n; k++)
            if (bz_work_name(w, k) == bz_work_name(w, i) && (k == i || bz_work_name(w, k - 1) != bz_work_name(w, i)))
                s->at[s->k++] = (uint32_t)k;
        try_cut(s, BZ_CUT_SYMBOLS);
    }
}

/* Marks that mean something cut steps that vary: inputs and updates alone where a level is told already, which may lack steps: the last
 * update of an epoch sums up fewer batches. */
static void cut_varied(search *s, bool told)
{
    s->vary = true;
    cut_where(s, BZ_CUT_INPUTS, BZ_DO_INPUT);
    cut_behind_updates(s);
    if (!told) {
        cut_where(s, BZ_CUT_WAITS, BZ_DO_RESULT);
        cut_at_lookups(s);
    }
    s->vary = false;
}

int bz_find_cuts(const bz_work *w, bz_cut **cuts, bz_arena *arena)
{
    BZ_SCOPED(bz_arena) scratch = {0};
    search s = {.w = w, .end = w->n, .arena = arena, .tolerance = EVENTS_PER_DIFFERENCE};
    uint32_t most = w->n_exact > w->n_name ? w->n_exact : w->n_name;
    *cuts = NULL;
    if (w->n < 4 || w->n >= UINT32_MAX)
        return 0;
    s.balance = BZ_NEW(&scratch, int32_t, (most > w->n_sort ? most : w->n_sort) + 1);
    s.at = bz_zeroed(w->n + 2, sizeof *s.at); /* mostly a few are used: what nobody touches takes no memory */
    s.good = bz_zeroed(w->n + 2, sizeof *s.good);
    bz_work_count(w, s.count, &scratch);
    for (int again = 0; again < 2 && !s.n_cuts; again++) {
        cut_where(&s, BZ_CUT_INPUTS, BZ_DO_INPUT);
        cut_where(&s, BZ_CUT_GRAPHS, BZ_DO_GRAPH);
        cut_where(&s, BZ_CUT_WAITS, BZ_DO_RESULT);
        cut_where(&s, BZ_CUT_WAITS, BZ_DO_WAIT);
        cut_behind_updates(&s);
        cut_at_symbols(&s, w->exact, NULL, w->n_exact);
        if (w->n_name != w->n_exact)
            cut_at_symbols(&s, w->exact, w->name, w->n_name);
        for (int k = 0; k < BZ_PLACES; k++)
            if (w->place[k])
                cut_at_symbols(&s, w->place[k], NULL, w->n_place[k]);
        if (!is_told(&s))
            cut_at_runs(&s);
        s.tolerance = EVENTS_PER_DIFFERENCE_AGAIN;
    }
    cut_varied(&s, is_told(&s));
    cut_at_rests(&s);
    BZ_QSORT(s.cuts, s.n_cuts, by_count);
    *cuts = s.cuts;
    free(s.at);
    free(s.good);
    return s.n_cuts;
}
