/* Which of the levels at which a recording repeats are its iterations. */
#include "profile/constants.h"
#include "profile/cuts.h"

#include <stdlib.h>
#include <string.h>

static const double NEARLY_ALL = 0.9;
static const size_t ANY = SIZE_MAX; /* no share is asked for */

/* What a piece of a coarser level has besides the pieces of a finer one in it. */
typedef struct {
    size_t n;        /* events */
    uint32_t pieces; /* of the finer level */
    bool special;    /* some of them look up embeddings or update weights */
    bool pass;       /* they are a whole piece more, of other kernels that do the same: a prompt before its tokens */
} frame;

/* Are these events work of the same sorts as a piece of the level, in about the same amount, but by other kernels or of other
 * shapes? */
static bool is_pass(const bz_work *w, const uint32_t *event, size_t n, const bz_cut *level)
{
    size_t length = level->length, longer = n > length ? n : length, sorts = 0, known = 0;
    const uint32_t from = level->first[level->typical];
    if (longer < (w->grows ? SHORTEST_PASS / 2 : SHORTEST_PASS) || 2 * n < length || n > 2 * length)
        return false;
    BZ_FREED uint32_t *left = bz_alloc((size_t)w->n_sort + 1, sizeof *left);
    BZ_FREED bool *has = bz_alloc((size_t)w->n_exact + 1, sizeof *has);
    memset(left, 0, ((size_t)w->n_sort + 1) * sizeof *left);
    memset(has, 0, ((size_t)w->n_exact + 1) * sizeof *has);
    for (size_t i = from; i < from + length; i++) {
        left[bz_work_sort(w, i)]++;
        has[w->exact[i]] = true;
    }
    for (size_t i = 0; i < n; i++) {
        known += has[w->exact[event[i]]];
        if (left[bz_work_sort(w, event[i])]) {
            left[bz_work_sort(w, event[i])]--;
            sorts++;
        }
    }
    return 10 * sorts >= 6 * longer && 2 * known < n;
}

/* Pieces that begin in [a, b), but for those that are much shorter than a layer: these are what a step has besides. */
static uint32_t pieces_within(const bz_cut *fine, uint32_t a, uint32_t b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fine->n; i++) {
        uint32_t length = (i + 1 < fine->n ? fine->first[i + 1] : fine->end) - fine->first[i];
        n += fine->first[i] >= a && fine->first[i] < b && 2 * (uint64_t)length > fine->length;
    }
    return n;
}

/* Of the typical piece, or of the one around a typical piece of the finer level, where that one has none: batches of other lengths have other
 * kernels. */
static frame frame_of(const bz_work *w, const bz_cut *coarse, const bz_cut *fine)
{
    uint32_t k = coarse->typical, inside = fine->first[fine->typical];
    if (pieces_within(fine, coarse->first[k], coarse->first[k + 1]) < 2)
        for (uint32_t i = 0; i + 1 < coarse->n; i++)
            k = coarse->first[i] <= inside && inside < coarse->first[i + 1] ? i : k;
    uint32_t a = coarse->first[k], b = coarse->first[k + 1];
    const uint32_t t = fine->first[fine->typical];
    BZ_FREED int32_t *left = bz_alloc((size_t)w->n_name + 1, sizeof *left);
    BZ_FREED uint32_t *rest = bz_alloc((size_t)(b - a) + 1, sizeof *rest);
    frame f = {0};
    memset(left, 0, ((size_t)w->n_name + 1) * sizeof *left);
    f.pieces = pieces_within(fine, a, b);
    for (uint32_t i = 0; i < fine->length; i++)
        left[bz_work_name(w, t + i)] += (int32_t)f.pieces;
    for (uint32_t i = a; i < b; i++)
        if (left[bz_work_name(w, i)]-- <= 0) {
            rest[f.n++] = i;
            f.special |= (bz_work_does(w, i) & (BZ_DOES_LOOK_UP | BZ_DOES_OPTIMIZE)) != 0;
        }
    f.pass = is_pass(w, rest, f.n, fine);
    /* or few of its pieces are: not more than one for each coarser piece are not like the others */
    bool one_each = fine->n - fine->alike <= coarse->n + 1;
    uint32_t passes = 0;
    for (uint32_t i = 0; i + 1 < fine->n && !f.pass && one_each; i++)
        if (fine->first[i] >= a && fine->first[i] < b) {
            uint32_t n = fine->first[i + 1] - fine->first[i];
            if (n > (size_t)(b - a))
                continue;
            for (uint32_t j = 0; j < n; j++)
                rest[j] = fine->first[i] + j;
            passes += is_pass(w, rest, n, fine);
        }
    f.pass |= passes && 2 * passes < f.pieces;
    return f;
}

static bool typical_does(const bz_work *w, const bz_cut *c, int bits)
{
    const uint32_t from = c->first[c->typical];
    uint32_t i = 0;
    while (i < c->length && !(bz_work_does(w, from + i) & bits))
        i++;
    return i < c->length;
}

/* Does the coarser level do something once for several pieces of the finer one that is no noise? Layers have an embedding
 * before and a head behind them; a metric of two kernels behind a hundred steps is nothing, and kernels of other sizes behind pieces that
 * have embeddings of their own are nothing either. */
static bool frames(const bz_work *w, const bz_cut *coarse, const bz_cut *fine)
{
    size_t behind = w->n - coarse->end, rest = behind < coarse->length ? behind : coarse->length; /* cut off */
    if (w->grows && coarse->first[0] > fine->first[0]) /* or its mark stands late in the first of them */
        rest += coarse->first[0] - fine->first[0] < coarse->length ? coarse->first[0] - fine->first[0] : coarse->length;
    if ((coarse->covered + rest) * 10 < fine->covered * 9 || coarse->alike * 10 < (coarse->n - coarse->warm) * 8)
        return false;
    frame f = frame_of(w, coarse, fine);
    bool layers = !typical_does(w, fine, BZ_DOES_LOOK_UP);
    return f.pieces > 1 && f.n && !f.pass && (f.special || (layers && f.n * FRAME_OF_LAYERS >= fine->length));
}

/* The same of what the host does: layers whose weights are copied when they are needed have inputs, too, but the step has one more than all
 * of them. */
static bool feeds_more(const bz_cut *coarse, const bz_cut *fine)
{
    uint32_t k = coarse->typical;
    return coarse->inputs_each > pieces_within(fine, coarse->first[k], coarse->first[k + 1]) * fine->inputs_each;
}

/* Of two cuts at about the same level, into as many pieces or a few more: that which begins earlier has the warm-up or the prompt, too,
 * and that which ends later has a last step that is shorter than the one before. */
static bool fits_better(const bz_cut *more, const bz_cut *few)
{
    if (more->odd != few->odd)
        return more->odd < few->odd;
    if (more->alike >= few->alike &&
        (more->first[0] < few->first[0] || (more->first[0] == few->first[0] && more->end > few->end)))
        return true;
    if (more->origin != few->origin)
        return more->origin > few->origin;
    return (uint64_t)more->alike * few->n >= (uint64_t)few->alike * more->n;
}

/* Nearly each piece, or all but one: what the first or the last one needs may be behind the ends of the recording. */
static bool nearly_all(const bz_cut *c, double share)
{
    return share >= NEARLY_ALL || (c->n >= 4 && share * c->n >= c->n - 1.01);
}

/* The level of which nearly each piece has a share: the finest; of levels with nearly as many pieces, the
 * one whose pieces are most alike. Pieces of which most are like none, below a level at which all are alike, are layers of different
 * sorts. -1: none. */
static int finest(const bz_cut *c, int n, size_t share, double cover)
{
    size_t most = 0;
    int best = -1;
    for (int i = 0; i < n; i++)
        most = c[i].covered > most ? c[i].covered : most;
    for (int i = 0; i < n; i++) {
        if (share == ANY && best >= 0 && 2 * c[i].alike < c[i].n && c[best].alike == c[best].n)
            continue;
        if ((share != ANY && !nearly_all(&c[i], *(const double *)(const void *)((const char *)&c[i] + share))) ||
            (double)c[i].covered < cover * (double)most)
            continue;
        if (best < 0 || 4 * c[best].n < 3 * c[i].n || fits_better(&c[i], &c[best]))
            best = i;
    }
    return best;
}

/* Do all pieces look something up, or but for those that do more? */
static bool all_look_up(const bz_work *w, const bz_cut *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = c->first[i], end = i + 1 < c->n ? c->first[i + 1] : c->end;
        while (k < end && !(bz_work_does(w, k) & BZ_DOES_LOOK_UP))
            k++;
        n += k < end;
    }
    return n >= NEARLY_ALL * c->n;
}

/* An input for each prompt, and none for the tokens behind it: steps are those of the tokens, and the prompt is one. Tokens are looked up
 * as prompts are, each of them, or else all but those beside a prompt are alike; nothing is updated behind them; most pieces are single
 * tokens, and those that are not are the same network. */
static int passes(const bz_work *w, const bz_cut *c, int n, int at)
{
    int best = -1;
    bool looks_up = at >= 0 && typical_does(w, &c[at], BZ_DOES_LOOK_UP);
    for (int i = at + 1; i < n && at >= 0 && c[at].optimizes < NEARLY_ALL; i++)
        if ((best < 0 || (4 * c[best].n >= 3 * c[i].n && fits_better(&c[i], &c[best]))) &&
            c[i].n >= DECODES_PER_PROMPT * (uint64_t)c[at].n && c[i].covered * 10 >= c[at].covered * 7 &&
            10 * (uint64_t)c[i].n * c[i].length >= 8 * c[i].covered && 2 * c[i].odd < c[at].n &&
            (looks_up ? all_look_up(w, &c[i]) : c[i].n - c[i].alike <= c[at].n + 1) && frame_of(w, &c[at], &c[i]).pass)
            best = i;
    return best < 0 ? at : best;
}

/* The level of so many pieces, but for one that was cut off. */
static int of_count(const bz_cut *c, int n, uint32_t count)
{
    int best = -1;
    for (int i = 0; i < n && count > 1; i++) {
        uint32_t off = c[i].n > count ? c[i].n - count : count - c[i].n;
        if (off <= 1 && (best < 0 || (c[i].n == count) > (c[best].n == count)))
            best = i;
    }
    return best;
}

/* By what the host does: -1 where it does nothing that recurs. `turns`: how often it reads what it reads again; 0: not known. */
static int by_host(const bz_work *w, const bz_cut *c, int n, uint32_t turns)
{
    int at = of_count(c, n, turns);
    at = at >= 0 ? at : finest(c, n, offsetof(bz_cut, inputs), 0.6);
    for (int i = at - 1; i >= 0 && at >= 0 && c[at].optimizes < NEARLY_ALL; i--)
        if (frames(w, &c[i], &c[at]) && feeds_more(&c[i], &c[at]))
            at = i;
    int steps = finest(c, n, offsetof(bz_cut, optimizes), 0.6);
    if (steps >= 0 && (at < 0 || c[at].optimizes < NEARLY_ALL))
        at = steps;
    if (at < 0)
        at = finest(c, n, offsetof(bz_cut, results), 0.6);
    if (at < 0)
        at = finest(c, n, offsetof(bz_cut, waits), 0.8);
    if (at >= 0 && c[at].waits >= NEARLY_ALL && c[at].inputs < NEARLY_ALL && c[at].results < NEARLY_ALL &&
        c[at].length < EVENTS_PER_WAIT * c[at].waits_each)
        at = -1; /* a program that waits for each kernel */
    return passes(w, c, n, at);
}

static bool by_itself(const bz_cut *c)
{
    return c->inputs < 0.5 && c->results < 0.5 && c->waits < 0.5 && c->optimizes < 0.5;
}

static bool rests_before(const bz_work *w, size_t i, int64_t rest)
{
    return w->inputs[i] || w->between[i] & (BZ_BETWEEN_WAIT | BZ_BETWEEN_RESULT) ||
           (w->pause && i < w->n && bz_work_pause(w, i) > rest);
}

/* Does a piece hold what no layer does? Layers have neither embeddings nor losses nor updates, and a few different kernels. */
static bool is_step(const bz_work *w, const bz_cut *c)
{
    uint32_t from = c->first[c->typical], different = 0;
    if (typical_does(w, c, BZ_DOES_LOOK_UP | BZ_DOES_OPTIMIZE | BZ_DOES_LOSS))
        return true;
    BZ_FREED bool *seen = bz_zeroed((size_t)w->n_exact + 1, sizeof *seen);
    for (uint32_t i = from; i < from + c->length; i++) {
        different += !seen[w->exact[i]];
        seen[w->exact[i]] = true;
    }
    return different >= DIFFERENT_IN_A_LAYER;
}

/* Pieces with the same events of the same sizes as the typical one. */
static uint32_t of_its_sizes(const bz_work *w, const bz_cut *c)
{
    const uint32_t *typical = w->exact + c->first[c->typical];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t length = (i + 1 < c->n ? c->first[i + 1] : c->end) - c->first[i];
        n += length == c->length && !memcmp(w->exact + c->first[i], typical, length * sizeof *typical);
    }
    return n;
}

/* No event of the typical piece has the name of another one: so a layer is, and no network of several. */
static bool may_be_one_layer(const bz_work *w, const bz_cut *c)
{
    const uint32_t from = c->first[c->typical];
    bool once = c->length < DIFFERENT_IN_A_LAYER;
    for (uint32_t i = 0; i < c->length && once; i++)
        for (uint32_t k = 0; k < i && once; k++)
            once = bz_work_name(w, from + i) != bz_work_name(w, from + k);
    return once;
}

/* Layers of other sizes come in the same order in each pass: the coarser pieces are of the same sizes, and in each of them some finer one is not. */
static bool passes_of_sizes(const bz_work *w, const bz_cut *coarse, const bz_cut *fine)
{
    return coarse->n > 2 && 10 * coarse->covered >= 9 * fine->covered && may_be_one_layer(w, fine) &&
           of_its_sizes(w, coarse) >= NEARLY_ALL * coarse->n &&
           fine->n - of_its_sizes(w, fine) >= NEARLY_ALL * coarse->n;
}

/* Levels by what stands between their pieces alone: from the finest one on, to each one that frames it. */
static int by_frames(const bz_work *w, const bz_cut *c, int n)
{
    int at = finest(c, n, ANY, 0.8);
    for (int i = at - 1; i >= 0; i--)
        if (frames(w, &c[i], &c[at]) || passes_of_sizes(w, &c[i], &c[at]))
            at = i;
    for (int i = at + 1; i < n && 4 * c[at].n >= 3 * c[i].n; i++)
        if (fits_better(&c[i], &c[at]) && c[i].first[0] < c[at].first[0])
            at = i;
    return at;
}

/* Layers may look something up, too, as positions. But an embedding before the first piece and a head behind the last one, and nothing of
 * these between the pieces, are those of a single step. */
static bool framed_once(const bz_work *w, const bz_cut *c)
{
    size_t from = c->first[0], most = c->length, behind = w->n - c->end;
    bool embedding = false, head = false;
    while (from > 0 && !embedding && c->first[0] - from < most) {
        embedding = (bz_work_does(w, --from) & BZ_DOES_LOOK_UP) != 0;
        if (w->between[from + 1] & (BZ_BETWEEN_RESULT | BZ_BETWEEN_WAIT))
            return false;
    }
    for (size_t i = c->end; i < w->n; i++)
        head |= (bz_work_does(w, i) & BZ_DOES_CLOSE) != 0;
    if (behind <= most && behind && bz_work_name(w, c->end) == bz_work_name(w, c->first[c->typical]))
        return false; /* one that was cut off */
    return embedding && head && behind < 2 * most;
}

/* What the host copies before each piece may be the weights of a layer that lie in its memory: nothing comes back, and a single input for
 * what is surely a step would be none of these. */
static bool may_be_layers(const bz_work *w, const bz_cut *c)
{
    return c->results < 0.5 && c->waits < 0.5 && c->optimizes < 0.5 &&
           (c->inputs_each > 1 || !is_step(w, c) || framed_once(w, c));
}

/* Another level that covers as much, in fewer pieces, else in more, than one that was cut off makes a difference. -1: none. */
static int next_level(const bz_cut *c, int n, int at)
{
    int best = -1;
    for (int i = n - 1; i >= 0; i--)
        if ((4 * c[i].n < 3 * c[at].n || (3 * c[i].n > 4 * c[at].n && best < 0)) &&
            10 * c[i].covered >= 9 * c[at].covered && !(best >= 0 && best < at))
            best = i;
    return best;
}

/* The one of pauses `from` … `to` - 1 that half of them are before, by its digits of 16 bits from the highest on. */
static int64_t median_pause(const bz_work *w, uint32_t from, uint32_t to)
{
    enum { DIGIT = 16 };
    const uint64_t sign = UINT64_C(1) << 63; /* so that negative ones are smaller */
    uint64_t found = 0, known = 0;
    size_t left = (to - from) / 2, *count = bz_alloc(1 << DIGIT, sizeof *count);
    if (!w->n_long) { /* none is negative or has more than 32 bits */
        found = sign;
        known = UINT64_MAX << 2 * DIGIT;
    }
    for (int shift = w->n_long ? 64 - DIGIT : DIGIT; shift >= 0; shift -= DIGIT) {
        uint64_t digit = 0;
        memset(count, 0, (1 << DIGIT) * sizeof *count);
        for (uint32_t i = from; i < to; i++) {
            uint64_t v = (uint64_t)bz_work_pause(w, i) ^ sign;
            if ((v & known) == found)
                count[v >> shift & 0xffff]++;
        }
        while (left >= count[digit])
            left -= count[digit++];
        found |= digit << shift;
        known |= UINT64_C(0xffff) << shift;
    }
    free(count);
    return (int64_t)(found ^ sign);
}

/* A pause of the host that is no pause between two layers. */
static int64_t long_rest(const bz_work *w, const bz_cut *c)
{
    if (!w->pause || c->end - c->first[0] < 2)
        return INT64_MAX;
    int64_t usual = median_pause(w, c->first[0], c->end);
    return usual < INT64_MAX / PAUSES_OF_A_REST ? usual * PAUSES_OF_A_REST + SHORTEST_REST : INT64_MAX;
}

/* Do events outside of the pieces, from `from` to `to`, follow each other as they do in them? Those of passes that are cut within do. */
static bool goes_on(const bz_work *w, const bz_cut *c, size_t from, size_t to)
{
    BZ_SCOPED(bz_numbers) pairs = {0};
    uint32_t within = 0;
    for (int outside = 0; outside < 2; outside++) {
        for (size_t i = from; i + 1 < to; i++)
            if ((i >= c->first[0] && i + 1 < c->end) == !outside)
                bz_numbers_add(&pairs, (uint64_t)bz_work_name(w, i) << 32 | bz_work_name(w, i + 1));
        within = outside ? within : pairs.n;
    }
    return pairs.n == within;
}

/* Layers that ran once: the host did nothing between them, and before or behind them stands what no loop of whole networks has: an
 * embedding, or, without a wait, the head of a network. What is behind them and begins like one of them, is the rest of a
 * recording that was cut off. */
static bool one_pass(const bz_work *w, const bz_cut *c, uint32_t span[2])
{
    size_t from = c->first[0], to = c->end, same = 0;
    bool head = false, embedding = false, looks_up = bz_work_any(w, BZ_DOES_LOOK_UP);
    if (!by_itself(c))
        return false;
    for (size_t i = from; i < to && looks_up; i++)
        if (bz_work_does(w, i) & BZ_DOES_LOOK_UP)
            return false; /* pieces have embeddings of their own: each begins a pass */
    int64_t rest = from > 0 || to < w->n ? long_rest(w, c) : 0;
    while (from > 0 && !rests_before(w, from, rest))
        embedding |= (bz_work_does(w, --from) & BZ_DOES_LOOK_UP) != 0;
    while (to < w->n && !rests_before(w, to, rest))
        head |= (bz_work_does(w, to++) & BZ_DOES_CLOSE) != 0;
    const uint32_t piece = c->first[c->typical];
    while (c->end + same < to && same < c->length && bz_work_name(w, c->end + same) == bz_work_name(w, piece + same))
        same++;
    if (!embedding && (!head || c->end + same == to || goes_on(w, c, from, to)))
        return false;
    if (!embedding) /* set-up that runs into it is not told apart */
        from = c->first[0] - from <= c->length ? from : c->first[0];
    span[0] = (uint32_t)from;
    span[1] = (uint32_t)to;
    return true;
}

/* Levels by pauses that come in turns: those of halves of a layer do, and of layers; steps have the longest. -1: none. */
static int by_rests(const bz_cut *c, int n)
{
    size_t most = 0;
    int best = -1;
    for (int i = 0; i < n; i++)
        most = c[i].covered > most ? c[i].covered : most;
    for (int i = 0; i < n; i++)
        if (c[i].rests > 0 && 10 * c[i].covered >= 8 * most &&
            (best < 0 || (4 * c[best].n >= 3 * c[i].n && c[i].covered > c[best].covered)))
            best = i;
    return best;
}

static int add_single(bz_cut **cuts, int *n, const uint32_t span[2], bz_arena *arena)
{
    BZ_ARENA_ROOM(arena, *cuts, *n);
    (*cuts)[*n] = (bz_cut){.first = bz_arena_dup(arena, span, 2 * sizeof *span),
                           .n = 1,
                           .end = span[1],
                           .length = span[1] - span[0],
                           .covered = span[1] - span[0]};
    return (*n)++;
}

/* Is there an embedding that is looked up once for each of these pieces? Layers may look up other things, as which tokens an expert takes. */
static bool looked_up_once(const bz_work *w, const bz_cut *c)
{
    BZ_FREED uint32_t *count = bz_zeroed((size_t)w->n_name + 1, sizeof *count);
    bool once = false;
    for (uint32_t i = c->first[0]; i < c->end; i++)
        count[bz_work_name(w, i)] += (bz_work_does(w, i) & BZ_DOES_LOOK_UP) != 0;
    for (uint32_t id = 0; id < w->n_name; id++)
        once |= c->n > 2 && count[id] == c->n;
    return once;
}

/* What the host feeds piece by piece may be parts of something larger: a level that has more than its pieces, or passes of another
 * network between them, or a single one, with the embedding before them that they lack, or with the only result behind them. -1: none. */
static int around(const bz_work *w, bz_cut **cuts, int *n, int at, bz_arena *arena)
{
    const bz_cut *c = *cuts;
    for (int i = at - 1; i >= 0; i--)
        if (c[i].alike == c[i].n && 10 * c[i].covered >= 9 * c[at].covered && 2 * c[i].n <= c[at].n &&
            (frames(w, &c[i], &c[at]) || frame_of(w, &c[i], &c[at]).pass || looked_up_once(w, &c[i])))
            return i;
    uint32_t span[2] = {c[at].first[c[at].warm < c[at].n ? c[at].warm : 0], (uint32_t)w->n};
    if (typical_does(w, &c[at], BZ_DOES_LOOK_UP) || c[at].optimizes > 0)
        return -1;
    bool one_result =
        c[at].inputs < 0.5 && c[at].results <= 0 && c[at].end < w->n && w->between[w->n] & BZ_BETWEEN_RESULT;
    while (span[0] > 0 && !one_result && !(bz_work_does(w, span[0]) & BZ_DOES_LOOK_UP))
        span[0]--;
    return one_result || bz_work_does(w, span[0]) & BZ_DOES_LOOK_UP ? add_single(cuts, n, span, arena) : -1;
}

/* The host waits, or fetches what came out, behind several steps: a program that looks at its results now and then, or a recording of which
 * each part ends with a wait. The finest level of whole steps without anything between them; -1: none. */
static int steps_within(const bz_work *w, const bz_cut *c, int n, int at)
{
    for (int i = n - 1; i > at; i--)
        if (c[i].alike == c[i].n && 10 * c[i].covered >= 9 * c[at].covered && is_step(w, &c[i]) &&
            !frames(w, &c[at], &c[i]))
            return i;
    return -1;
}

/* A stage of a network, of which the others stand around it; what the host feeds, what is fetched from it, or looks something up, is none. */
static bool is_stage(const bz_work *w, const bz_cut *c)
{
    return by_itself(c) && !is_step(w, c) && bz_cut_lacks_weights(w, c);
}

/* Leaves out levels whose pieces are layers, by their weights: of a single pass, or of steps that another level has. Is any level left? */
static bool leave_layers(const bz_work *w, bz_cut *c, int *n, bz_arena *arena)
{
    int kept = 0;
    bool steps = false;
    double *same = BZ_NEW(arena, double, *n);
    for (int i = 0; i < *n; i++)
        steps |= (same[i] = bz_cut_same_weights(w, &c[i])) >= NEARLY_ALL;
    for (int i = 0; i < *n; i++)
        if (!bz_cut_is_of_layers(w, &c[i]) && !is_stage(w, &c[i]) && !(steps && same[i] < 0.5))
            c[kept++] = c[i];
    *n = kept;
    return kept > 0;
}

int bz_choose_cut(const bz_work *w, bz_cut **cuts, int *n, bool *sure, int *other, bz_arena *arena)
{
    uint32_t span[2] = {0, (uint32_t)w->n};
    *other = -1;
    *sure = true;
    if (!*n)
        return -1;
    if (!leave_layers(w, *cuts, n, arena))
        return add_single(cuts, n, span, arena);
    uint32_t turns = bz_turns_of_places(w);
    int at = turns == 1 ? -1 : by_host(w, *cuts, *n, turns);
    if (at >= 0) {
        *other = around(w, cuts, n, at, arena);
        if (*other < 0 && (*cuts)[at].inputs < NEARLY_ALL && (*cuts)[at].optimizes < NEARLY_ALL)
            *other = steps_within(w, *cuts, *n, at);
        *sure = *other < 0 && !may_be_layers(w, &(*cuts)[at]);
        return at;
    }
    int rests = by_rests(*cuts, *n);
    at = rests >= 0 ? rests : by_frames(w, *cuts, *n);
    if (turns == 1 || (rests < 0 && one_pass(w, &(*cuts)[at], span))) {
        *other = at;
        *sure = false;
        return add_single(cuts, n, span, arena);
    }
    *other = next_level(*cuts, *n, at);
    *sure = *other < 0 && is_step(w, &(*cuts)[at]);
    return at;
}

void bz_cut_prompt(const bz_work *w, bz_cut *c, bz_arena *arena)
{
    if (c->n < DECODES_PER_PROMPT)
        return;
    bz_cut_move_back(w, c, arena);
    uint32_t *event = BZ_NEW(arena, uint32_t, c->first[0]), *first = BZ_NEW(arena, uint32_t, (size_t)c->n + 2);
    for (uint32_t i = 0; i < c->first[0]; i++)
        event[i] = i;
    if (!c->first[0] || !is_pass(w, event, c->first[0], c))
        return;
    memcpy(first + 1, c->first, c->n * sizeof *first);
    c->first = first;
    c->n++;
    c->typical++;
}

uint32_t bz_find_period(const uint64_t *symbol, size_t n, const int64_t *pause, uint32_t **first, bz_arena *arena)
{
    if (n < 4 || n >= UINT32_MAX)
        return 0;
    uint32_t *dense = BZ_NEW(arena, uint32_t, n), count = bz_number_symbols(symbol, n, dense);
    uint32_t *same = BZ_NEW(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        same[i] = i;
    bz_work w = {.n = n,
                 .exact = dense,
                 .name = same,
                 .sort = same,
                 .n_exact = count,
                 .n_name = count,
                 .n_sort = count,
                 .inputs = BZ_NEW(arena, uint16_t, n + 1),
                 .between = BZ_NEW(arena, uint8_t, n + 1),
                 .does = BZ_NEW(arena, uint8_t, count),
                 .pause = pause ? BZ_NEW(arena, uint32_t, n) : NULL};
    for (size_t i = 0; pause && i < n; i++)
        bz_work_add_pause(&w, i, pause[i], arena);
    bz_cut *cut;
    int found = bz_find_cuts(&w, &cut, arena), other;
    bool sure;
    int at = bz_choose_cut(&w, &cut, &found, &sure, &other, arena);
    if (at < 0 || cut[at].n < 2)
        return 0;
    bz_cut_begins(&w, &cut[at], arena);
    *first = cut[at].first;
    return cut[at].n;
}
