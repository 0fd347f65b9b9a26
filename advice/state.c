/* What the program of a profile does already: the states of state.txt, by the evidence that a recording has of them. */
#include "advice/constants.h"
#include "advice/rules.h"

#include <stdlib.h>
#include <string.h>

typedef struct looking {
    const bz_bound *b;
    const bz_alignment *align; /* NULL where nobody looked */
    const bz_trace *t;
    const bz_flow *flow;
    uint32_t typical;
    const char *framework; /* NULL: nothing tells */
    bz_arena *arena;
} looking;

/* How many parts of the recording show it, out of `all` that tell; all is 0 where none tells. */
typedef struct evidence {
    int does, all;
    const char *text;
} evidence;

/* Has the model a layer of this operator? */
static bool in_model(const looking *l, const char *op)
{
    for (int i = 0; i < l->b->n; i++) {
        const bz_node *node = l->b->layer[i].layer->node;
        if (node && node->op && !strcmp(node->op, op))
            return true;
    }
    return false;
}

/* " with _nchwc": the word of them that is in an operator's arguments. */
static const char *in_detail(const looking *l, const char *detail, const char *words)
{
    char word[64];
    while (bz_word_next(&words, word, sizeof word))
        if (bz_name_matches_any(word, detail))
            return bz_arena_printf(l->arena, " with %s", word);
    return "";
}

/* Each string once. Arguments of operators tell as their names do. */
static evidence names(const looking *l, bz_event_kind kind, const char *what, const char *words, bool made)
{
    const bz_events *e = &l->t->event[kind];
    bool *seen = BZ_NEW(l->arena, bool, bz_strings(l->t) + 1);
    for (size_t i = 0; i < e->n; i++) {
        const uint32_t text[] = {e->name[i], e->detail && !made ? e->detail[i] : 0};
        for (int k = 0; k < 2; k++) {
            const char *name = bz_string(l->t, text[k]);
            if (seen[text[k]] || !text[k])
                continue;
            seen[text[k]] = true;
            if (bz_name_matches_any(words, name) && !(made && in_model(l, name)))
                return (evidence){1, 1,
                                  bz_arena_printf(l->arena, "%s %.60s%s", what, bz_string(l->t, e->name[i]),
                                                  k ? in_detail(l, name, words) : "")};
        }
    }
    return (evidence){0};
}

static const struct {
    const char *name, *what;
    bz_event_kind kind;
} NAMES[] = {{"op", "operator", BZ_EVENT_OP},
             {"made", "operator, not in the model,", BZ_EVENT_OP},
             {"api", "call", BZ_EVENT_API},
             {"kernel", "kernel", BZ_EVENT_KERNEL},
             {"call", "call", BZ_EVENT_CALL}};

static bool is_typical(const looking *l, bz_event_kind kind, size_t i)
{
    return bz_event_iteration(l->t, kind, i) == l->typical && (kind != BZ_EVENT_CALL || bz_call_works(l->t, i));
}

static bool has_format(const char *const *list, int n, const char *format)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], format))
            return true;
    return false;
}

/* Weights that are brought into a layout in the iteration are brought there in every one. */
static evidence see_weights(const looking *l, const char *words)
{
    const bz_events *c = &l->t->event[BZ_EVENT_CALL];
    const char **format = BZ_NEW(l->arena, const char *, c->n + 1);
    int n = 0, all = 0, blocked = 0, brought = 0;
    (void)words;
    for (size_t i = 0; i < c->n; i++) {
        const bz_call_tensor *w = is_typical(l, BZ_EVENT_CALL, i) ? &bz_call_of(l->t, i)->w : NULL;
        if (!w || !w->format)
            continue;
        all++;
        blocked += w->blocked;
        if (w->blocked && !has_format(format, n, w->format))
            format[n++] = w->format;
    }
    for (size_t i = 0; i < c->n; i++) {
        const char *y = is_typical(l, BZ_EVENT_CALL, i) ? bz_call_of(l->t, i)->y.format : NULL;
        brought += y && !strcmp(bz_string(l->t, c->name[i]), "reorder") && has_format(format, n, y);
    }
    int ahead = blocked > brought ? blocked - brought : 0;
    return (evidence){
        ahead, all,
        bz_arena_printf(l->arena, "%d of %d calls have weights in a layout that was made before", ahead, all)};
}

/* The type of weights, or of inputs, where calls tell it. */
static evidence see_type(const looking *l, const char *words)
{
    const bz_events *c = &l->t->event[BZ_EVENT_CALL];
    char operand[64], type[64];
    const char *told = "";
    int all = 0, does = 0;
    bz_word_next(&words, operand, sizeof operand);
    bz_word_next(&words, type, sizeof type);
    for (size_t i = 0; i < c->n; i++) {
        const bz_call *call = is_typical(l, BZ_EVENT_CALL, i) ? bz_call_of(l->t, i) : NULL;
        const bz_call_tensor *v = !call ? NULL : !strcmp(operand, "weights") ? &call->w : &call->x;
        if (!v || !v->dtype)
            continue;
        all++;
        does += !strcmp(bz_dtype_name(v->dtype), type);
        told = v->type;
    }
    return (evidence){does, all, bz_arena_printf(l->arena, "%d of %d calls tell so by '%s'", does, all, told)};
}

static evidence see_streams(const looking *l, const char *words)
{
    const bz_events *k = &l->t->event[BZ_EVENT_KERNEL];
    bool *seen = BZ_NEW(l->arena, bool, l->t->n_lanes + 1);
    int n = 0;
    (void)words;
    for (size_t i = 0; i < k->n; i++)
        if (is_typical(l, BZ_EVENT_KERNEL, i) && k->lane[i] < l->t->n_lanes && !seen[k->lane[i]]) {
            seen[k->lane[i]] = true;
            n++;
        }
    return (evidence){n > 1, n > 0, bz_arena_printf(l->arena, "kernels on %d streams", n)};
}

static evidence see_threads(const looking *l, const char *words)
{
    for (uint32_t i = 0; i < l->t->n_facts; i++) {
        const char *value = bz_string(l->t, l->t->fact[i].value);
        if (!strcmp(bz_string(l->t, l->t->fact[i].key), "threads") && atoi(value) > 0)
            return (evidence){atoi(value) == atoi(words), 1,
                              bz_arena_printf(l->arena, "the recording tells %d", atoi(value))};
    }
    return (evidence){0};
}

/* The row of the alignment that has each layer of the main graph, or -1. */
static int *rows(const looking *l)
{
    int *row = BZ_NEW_NONE(l->arena, int, l->b->dag->n);
    for (int i = 0; i < l->align->n; i++)
        for (int k = 0; k < l->align->row[i].n_layers; k++)
            row[l->b->layer[l->align->row[i].layer[k]].node] = i;
    return row;
}

static bool is_own(const looking *l, int row)
{
    return row >= 0 && (l->align->row[row].kind == BZ_ALIGNED_SAME || l->align->row[row].kind == BZ_ALIGNED_CHANGED ||
                        l->align->row[row].kind == BZ_ALIGNED_SPLIT);
}

/* Did a call whose parameters are known do a layer before this one, and not this one with it? */
static bool behind_own(const looking *l, const int *row, int node)
{
    const bz_dag *dag = l->b->dag;
    for (int k = dag->first[node]; k < dag->first[node + 1]; k++)
        if (is_own(l, row[dag->pred[k]]) && l->align->row[row[dag->pred[k]]].problem)
            return true;
    return false;
}

static evidence see_layers(const looking *l, const char *words)
{
    int does = 0, all = 0, *row;
    if (!l->align)
        return (evidence){0};
    row = rows(l);
    for (int i = 0; i < l->b->n; i++) {
        int node = l->b->layer[i].node;
        if (!bz_has_word(words, l->b->layer[i].layer->kind))
            continue;
        if (row[node] >= 0 && l->align->row[row[node]].doubtful)
            continue; /* it tells neither */
        bool fused = row[node] >= 0 && l->align->row[row[node]].kind == BZ_ALIGNED_FUSED;
        does += fused;
        all += fused || is_own(l, row[node]) || behind_own(l, row, node);
    }
    return (evidence){
        does, all,
        bz_arena_printf(l->arena, "%d of %d layers of kind%s are done by the call of another", does, all, words)};
}

static evidence see_apart(const looking *l, const char *words)
{
    const bz_bound_fused *f = &l->b->fused;
    int n = 0, *row;
    if (!l->align || !f->n_places)
        return (evidence){0};
    row = rows(l);
    for (int g = 0; g < f->n_places; g++) {
        bool apart = bz_has_word(words, f->place[g].pattern);
        for (int k = 0; k < f->place[g].n; k++)
            apart &= is_own(l, row[f->place[g].layer[k]]);
        n += apart;
    }
    return (evidence){n, n, bz_arena_printf(l->arena, "layers apart in %d places of%s", n, words)};
}

static evidence see_cause(const looking *l, const char *words)
{
    for (int i = 0; l->align && i < l->align->n_causes; i++)
        if (l->align->cause[i].seconds > 0 && bz_name_matches_any(words, l->align->cause[i].id))
            return (evidence){1, 1, l->align->cause[i].name};
    return (evidence){0};
}

/* One of one: none of the typical iteration's work is a convolution, or is named so. */
static evidence see_lacks(const looking *l, const char *words)
{
    static const bz_event_kind WORK[] = {BZ_EVENT_OP, BZ_EVENT_CALL, BZ_EVENT_KERNEL};
    int all = 0;
    for (size_t k = 0; k < sizeof WORK / sizeof *WORK; k++)
        for (size_t i = 0; i < l->t->event[WORK[k]].n; i++) {
            if (!is_typical(l, WORK[k], i))
                continue;
            const bz_kernel *is = WORK[k] == BZ_EVENT_KERNEL ? bz_kernel_of(l->t, i) : NULL;
            const char *name = bz_string(l->t, l->t->event[WORK[k]].name[i]);
            if ((is && is->does >= BZ_KERNEL_CONV && is->does <= BZ_KERNEL_CONV_DEPTHWISE) ||
                bz_name_matches_any(words, name))
                return (evidence){0, 1, bz_arena_printf(l->arena, "%.60s", name)};
            all++;
        }
    return (evidence){all > 0, all > 0, bz_arena_printf(l->arena, "none of the %d parts of its work is one", all)};
}

/* By time, in thousandths. */
static evidence see_products(const looking *l, const char *words)
{
    const bz_events *k = &l->t->event[BZ_EVENT_KERNEL];
    char type[64] = "";
    double all = 0, does = 0;
    bz_word_next(&words, type, sizeof type);
    for (size_t i = 0; i < k->n; i++) {
        const bz_kernel *is = is_typical(l, BZ_EVENT_KERNEL, i) ? bz_kernel_of(l->t, i) : NULL;
        if (!is || !is->type || bz_kernel_limit_of(is->does) != BZ_LIMIT_COMPUTE)
            continue;
        const double time = (double)(k->end[i] - k->start[i]);
        all += time;
        does += strcmp(is->type, type) != 0 ? 0 : time;
    }
    if (!(all > 0))
        return (evidence){0};
    return (evidence){
        (int)(1000 * does / all), 1000,
        bz_arena_printf(l->arena, "%s of the time of kernels that multiply is in %s", BZ_SAY_SHARE(does / all), type)};
}

static evidence see_backward(const looking *l, const char *words)
{
    const char *back = bz_flow_trains(l->flow);
    (void)words;
    if (back)
        return (evidence){1, 1, bz_arena_printf(l->arena, "work of a backward pass: %.60s", back)};
    return (evidence){l->b->layers->phase != NULL, l->b->layers->phase != NULL,
                      "the model is an iteration of training"};
}

static const struct {
    const char *name;
    evidence (*see)(const looking *l, const char *words);
} EVIDENCE[] = {{"weights", see_weights},   {"layers", see_layers},   {"apart", see_apart}, {"type", see_type},
                {"streams", see_streams},   {"threads", see_threads}, {"cause", see_cause}, {"backward", see_backward},
                {"products", see_products}, {"lacks", see_lacks}};

static evidence see(const looking *l, const char *line)
{
    char name[64];
    bz_word_next(&line, name, sizeof name);
    for (size_t i = 0; i < sizeof EVIDENCE / sizeof *EVIDENCE; i++)
        if (!strcmp(EVIDENCE[i].name, name))
            return EVIDENCE[i].see(l, line);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(NAMES[i].name, name))
            return names(l, NAMES[i].kind, NAMES[i].what, line, !strcmp(name, "made"));
    return (evidence){0};
}

static bz_state look(const looking *l, const advice_rule *rule)
{
    bz_state state = {.id = rule->id, .what = advice_line(rule, "is", 0)};
    const char *of = advice_line(rule, "of", 0);
    bool other = of && l->framework && strcmp(of, l->framework) != 0;
    for (int i = 0; i < rule->n && !state.known && !other; i++) {
        bool tells = !strcmp(rule->key[i], "tells"), yes = !strcmp(rule->key[i], "yes");
        if (!tells && !yes && strcmp(rule->key[i], "no") != 0)
            continue;
        evidence e = see(l, rule->value[i]);
        state.known = e.all > 0 && (tells || e.does > 0);
        if (!state.known)
            continue;
        state.holds = yes || (tells && e.does >= STATE_MOST * e.all);
        state.evidence = e.text;
    }
    return state;
}

int advice_states(const bz_bound *bound, const bz_ladder *ladder, const bz_trace *trace, const bz_flow *flow,
                  bz_arena *arena, const bz_state **out)
{
    looking l = {.b = bound, .align = ladder->alignment, .t = trace, .flow = flow, .arena = arena};
    advice_table table;
    advice_read(bz_state_text, arena, &table);
    bz_state *state = BZ_NEW(arena, bz_state, table.n);
    l.framework = ladder->framework;
    l.typical = bz_typical_iteration(trace);
    for (int i = 0; i < table.n; i++)
        state[i] = look(&l, &table.rule[i]);
    *out = state;
    return table.n;
}

const bz_state *advice_moot(const bz_state *state, int n, const char *words, bool *open)
{
    char word[64];
    bool named = false, denied = false;
    while (words && bz_word_next(&words, word, sizeof word))
        for (int i = 0; i < n; i++) {
            if (strcmp(state[i].id, word) != 0)
                continue;
            if (state[i].known && state[i].holds)
                return &state[i];
            named = true;
            denied |= state[i].known;
        }
    *open = named && !denied;
    return NULL;
}
