/* Layers that several steps did, and steps that did several layers. */
#include "explain/align_making.h"

#include <string.h>

/* The steps that nothing asks for, by their signature, as chains in their order. */
typedef struct chains {
    int *head, *next, *left; /* [words + 1]: the first, or -1; [steps.n]; [words + 1]: how many */
    uint32_t words;          /* that were known: no step has one that is new since */
    bool any;
} chains;

static chains extra_steps(const bz_align_making *m)
{
    chains c = {.words = m->words.n};
    c.head = BZ_NEW_NONE(m->arena, int, c.words + 1);
    c.left = BZ_NEW(m->arena, int, c.words + 1);
    c.next = BZ_NEW(m->arena, int, m->steps.n + 1);
    for (int i = m->steps.n - 1; i >= 0; i--) {
        const bz_align_step *step = &m->steps.step[i];
        uint32_t id = step->n == 1 && !bz_align_touched(m, step) ? m->steps.atom[step->first].id : 0;
        if (!id)
            continue;
        c.next[i] = c.head[id];
        c.head[id] = i;
        c.left[id]++;
        c.any = true;
    }
    return c;
}

/* The first step of a chain, which it leaves; -1: there is none. */
static int take_extra(chains *c, uint32_t id)
{
    int at = id && id <= c->words ? c->head[id] : -1;
    if (at >= 0) {
        c->head[id] = c->next[at];
        c->left[id]--;
    }
    return at;
}

/* The first steps of a chain did the layer; how many. */
static int64_t take_part(bz_align_making *m, const bz_align_ask *layer, chains *extra, uint32_t id, int64_t most)
{
    int64_t n = 0;
    for (int at; n < most && (at = take_extra(extra, id)) >= 0; n++) {
        int first = m->steps.step[at].first;
        m->to[first] = layer->first;
        m->from[layer->first] = m->from[layer->first] < 0 ? first : m->from[layer->first];
    }
    return n;
}

void bz_align_find_recurrent(bz_align_making *m)
{
    bz_align_part part[BZ_ALIGN_PARTS];
    chains extra = extra_steps(m);
    int *waiting = BZ_NEW(m->arena, int, extra.words + 1);
    for (int round = 0; round < 2 && extra.any; round++)
        for (int i = 0; i < m->n_asks; i++) {
            bz_align_ask *layer = &m->ask[i];
            int n = layer->steps ? 0 : bz_align_recurrent_parts(&m->words, &m->bound->layer[layer->layer], part);
            uint32_t states = n ? part[0].id : 0;
            if (!states || states > extra.words)
                continue;
            if (!round) {
                waiting[states]++;
                continue;
            }
            int64_t each = extra.left[states] / waiting[states]--, before = 0;
            if (extra.left[states] < part[0].least)
                continue;
            part[0].most = each < part[0].least ? part[0].least : each < part[0].most ? each : part[0].most;
            for (int k = 0; k < n; k++)
                before = part[k].instead && before ? 0 : take_part(m, layer, &extra, part[k].id, part[k].most);
            layer->by_parts = true;
        }
}

/* Kinds of which one step does several layers: a recurrent network's, and an optimizer's of all weights. */
static bool is_stacked(bz_align_making *m, uint32_t kind)
{
    static const char *const KINDS[] = {"update", "lstm", "gru", "rnn", "lstm_grad", "gru_grad", "rnn_grad"};
    bool is = false;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        is |= kind == bz_align_word(&m->words, KINDS[i]);
    return is;
}

/* The next ask of the same kind in a direction, if no step did it; -1. */
static int next_stacked(const bz_align_making *m, int from, int way)
{
    for (int i = from + way; i >= 0 && i < m->n_asks; i += way)
        if (m->atom[m->ask[i].first].kind == m->atom[m->ask[from].first].kind &&
            m->named[m->bound->layer[m->ask[i].layer].node] == i)
            return m->ask[i].steps ? -1 : i;
    return -1;
}

void bz_align_find_stacked(bz_align_making *m)
{
    for (int i = 0; i < m->steps.n; i++) {
        const bz_align_step *step = &m->steps.step[i];
        const bz_align_atom *atom = step->n == 1 ? &m->steps.atom[step->first] : NULL;
        int at = atom && !atom->id && is_stacked(m, atom->kind) ? m->to[step->first] : -1, *layer = NULL, n = 0;
        if (at < 0)
            continue;
        int by = m->atom[at].owner, begin = by;
        for (int k = by; (k = next_stacked(m, k, -1)) >= 0;)
            begin = k;
        m->ask[by].steps = 0; /* to be met between the others */
        for (int k = begin; k >= 0; k = next_stacked(m, k, 1))
            BZ_ARENA_ADD(m->arena, layer, n) = m->bound->layer[m->ask[k].layer].node;
        for (int k = 0; k < n; k++)
            m->ask[m->named[layer[k]]].steps++;
        if (n == 1)
            continue;
        bz_match match = {.layer = layer, .n = n};
        m->from[at] = -1;
        m->to[step->first] = -1;
        m->written[i] = bz_arena_dup(m->arena, &match, sizeof match);
    }
}

/* What a program writes out, operator by operator: what it needs for that, and how many of one sort. The gradient of a value in parts is these
 * side by side; where it is cut by slices, each is put into zeros, and these are added. */
static const struct {
    const char *layers, *parts, *sort;
    int least, of_sort;
} WRITTEN[] = {
    {"layernorm", "reduce sub pow mul add sqrt div bias", "reduce", 5, 2},
    {"rmsnorm", "reduce pow mul add sqrt div", "reduce", 4, 1},
    {"layernorm_grad", "reduce sub pow mul add sqrt div bias expand pool_grad neg activation_grad", "reduce", 3, 2},
    {"rmsnorm_grad", "reduce sub pow mul add sqrt div bias expand pool_grad neg activation_grad", "reduce", 3, 1},
    {"concat", "slice_grad add", "slice_grad", 2, 2},
};

static int written_row(const bz_align_making *m, const bz_align_ask *layer)
{
    const char *kind = m->bound->layer[layer->layer].layer->kind;
    int n = (int)(sizeof WRITTEN / sizeof *WRITTEN), row = 0;
    while (row < n && !bz_has_word(WRITTEN[row].layers, kind))
        row++;
    return layer->steps || row == n ? -1 : row;
}

static bool is_part(bz_align_making *m, const bz_align_step *step, int row)
{
    char word[32];
    uint32_t kind = step->n ? m->steps.atom[step->first].kind : 0;
    for (const char *rest = WRITTEN[row].parts; kind && bz_word_next(&rest, word, sizeof word);)
        if (kind == bz_align_word(&m->words, word))
            return true;
    return false;
}

/* The step of the nearest ask in a direction that was met by one, of another kind than the parts; -1 or steps.n. */
static int step_beside(bz_align_making *m, int ask, int way, int row)
{
    for (int i = ask + way; i >= 0 && i < m->n_asks; i += way) {
        int by = m->from[m->ask[i].first], step = by < 0 ? -1 : m->steps.atom[by].owner;
        if (step >= 0 && !m->moved[step] && !is_part(m, &m->steps.step[step], row))
            return step;
        if (written_row(m, &m->ask[i]) >= 0) /* which of the two a step belongs to is not told */
            break;
    }
    return way < 0 ? -1 : m->steps.n;
}

void bz_align_find_written(bz_align_making *m)
{
    for (int i = 0; i < m->n_asks; i++) {
        int row = written_row(m, &m->ask[i]), n = 0, of_sort = 0;
        int begin = row < 0 ? 0 : step_beside(m, i, -1, row) + 1, end = row < 0 ? 0 : step_beside(m, i, 1, row);
        for (int pass = 0; pass < 2; pass++)
            for (int k = begin; k < end; k++) {
                const bz_align_step *step = &m->steps.step[k];
                if (bz_align_touched(m, step) || !is_part(m, step, row))
                    continue;
                n += !pass;
                of_sort += !pass && m->steps.atom[step->first].kind == bz_align_word(&m->words, WRITTEN[row].sort);
                if (pass && n >= WRITTEN[row].least && of_sort >= WRITTEN[row].of_sort)
                    m->to[step->first] = m->ask[i].first;
            }
    }
}

static bool repeats(const bz_align_making *m, const bz_align_step *last, const bz_align_step *step)
{
    const bz_align_atom *a = &m->steps.atom[last->first], *b = &m->steps.atom[step->first];
    int to = m->to[last->first];
    if (to < 0 || a->id != b->id)
        return false;
    return b->id ? m->atom[to].id != b->id
                 : a->kind == b->kind && last->kind == BZ_ALIGN_KERNEL && step->kind == BZ_ALIGN_KERNEL;
}

void bz_align_find_repeated(bz_align_making *m, int begin, int end, int way)
{
    const bz_align_step *last = NULL;
    for (int i = begin; i != end; i += way) {
        const bz_align_step *step = &m->steps.step[i];
        if (!step->n)
            continue;
        if (bz_align_touched(m, step))
            last = step;
        else if (last && repeats(m, last, step))
            m->to[step->first] = m->to[last->first];
        else
            last = NULL;
    }
}
