/* What an iteration did, step by step: its library calls, the kernels that none of them asked for, and where neither
 * was recorded, its operators. */
#include "base/sort.h"
#include "explain/align.h"
#include "explain/constants.h"

#include <stdlib.h>
#include <string.h>

bool bz_align_in(const bz_align_steps *s, bz_event_kind kind, size_t event)
{
    return s->iteration == BZ_NONE || bz_event_iteration(s->trace, kind, event) == s->iteration;
}

static bz_align_step *add_step(bz_align_steps *s, bz_align_step_kind kind, size_t at, int64_t start)
{
    BZ_ROOM(s->step, s->n);
    s->step[s->n] = (bz_align_step){.kind = kind, .at = at, .start = start, .node = {-1, false}};
    return &s->step[s->n++];
}

static void take_calls(bz_align_steps *s)
{
    const bz_events *c = &s->trace->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < c->n; i++)
        if (bz_call_works(s->trace, i) && bz_call_outermost(s->trace, i) == i && bz_align_in(s, BZ_EVENT_CALL, i)) {
            bz_align_step *step = add_step(s, BZ_ALIGN_CALL, i, c->start[i]);
            step->name = bz_string(s->trace, c->name[i]);
            step->stack = c->stack[i];
            step->problem = bz_call_of(s->trace, i)->problem;
            step->text = bz_call_of(s->trace, i)->text;
        }
}

/* PyTorch asks for dropout in inference, too, where nothing comes of it: no operator lies in that one. */
static bool does_nothing(const bz_trace *t, size_t op)
{
    const bz_events *o = &t->event[BZ_EVENT_OP];
    return bz_name_matches_any("^aten::dropout ^aten::feature_dropout", bz_string(t, o->name[op])) &&
           !(op + 1 < o->n && o->op[op + 1] == op);
}

static bool known_operator(const bz_trace *t, size_t op)
{
    bz_align_rule rule = bz_align_operator_rule(bz_string(t, t->event[BZ_EVENT_OP].name[op]));
    return (rule.kind || rule.cause) && !does_nothing(t, op);
}

/* The outermost operator around this one, itself counted, that the rules know, or that is part of a gradient; BZ_NONE. */
static uint32_t operator_around(const bz_align_steps *s, uint32_t op)
{
    const bz_events *o = &s->trace->event[BZ_EVENT_OP];
    uint32_t found = BZ_NONE;
    for (size_t steps = 0; op < o->n && steps < o->n; op = o->op[op], steps++)
        if (s->whole && s->whole[op] != BZ_NONE)
            found = s->whole[op];
        else if (known_operator(s->trace, op))
            found = op;
    return found;
}

static void take_operator(bz_align_steps *s, uint32_t op, bz_arena *arena)
{
    const bz_events *o = &s->trace->event[BZ_EVENT_OP];
    bz_align_step *step = add_step(s, BZ_ALIGN_OPERATOR, op, o->start[op]);
    step->name = bz_string(s->trace, o->name[op]);
    if (s->whole && s->whole[op] == op)
        step->name = bz_arena_printf(arena, "%s.backward", bz_string(s->trace, o->name[s->gradient[op]]));
    step->node = bz_align_name_of(s->names, bz_string(s->trace, o->detail[op]));
}

/* Kernels and calls are both in the host's order: a kernel counts from when it was launched. What an operator that is known
 * launched is one step. */
static void take_kernels(bz_align_steps *s, bz_arena *arena)
{
    const bz_events *k = &s->trace->event[BZ_EVENT_KERNEL], *api = &s->trace->event[BZ_EVENT_API];
    const bz_events *c = &s->trace->event[BZ_EVENT_CALL];
    s->of_op = BZ_NEW(arena, uint32_t, s->trace->event[BZ_EVENT_OP].n);
    for (size_t i = 0; i < k->n; i++) {
        if (k->call[i] < c->n || !bz_align_in(s, BZ_EVENT_KERNEL, i))
            continue;
        uint32_t by = k->cause[i], op = operator_around(s, k->op[i]);
        if (op != BZ_NONE) {
            if (!s->of_op[op]++)
                take_operator(s, op, arena);
            continue;
        }
        bz_align_step *step = add_step(s, BZ_ALIGN_KERNEL, i, by < api->n ? api->start[by] : k->start[i]);
        step->name = bz_string(s->trace, k->short_name[i] ? k->short_name[i] : k->name[i]);
        step->stack = by < api->n ? api->stack[by] : 0;
    }
}

static const bz_layer *layer_of(const bz_align_steps *s, const bz_align_name *name)
{
    return name->exact && name->layer >= 0 ? s->names->layer[name->layer] : NULL;
}

/* By its node an operator is known as well, where that is more than a view. */
static bool known_node(const bz_align_steps *s, size_t op)
{
    bz_align_name name = bz_align_name_of(s->names, bz_string(s->trace, s->trace->event[BZ_EVENT_OP].detail[op]));
    const bz_layer *l = layer_of(s, &name);
    return l && l->class != BZ_VIEW && !l->n_bodies;
}

static void take_operators(bz_align_steps *s, bz_arena *arena)
{
    const bz_events *o = &s->trace->event[BZ_EVENT_OP];
    for (uint32_t i = 0; i < o->n; i++) {
        if (!bz_align_in(s, BZ_EVENT_OP, i))
            continue;
        uint32_t known = operator_around(s, i);
        if (known == i || (known == BZ_NONE && known_node(s, i)))
            take_operator(s, i, arena);
    }
}

BZ_SORTS(by_start, bz_align_step,
         BZ_THEN(BZ_ORDER(p->start, q->start), BZ_THEN(BZ_ORDER(p->kind, q->kind), BZ_ORDER(p->at, q->at))));

static int64_t weights_of(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    for (int i = 0; i < n; i++)
        if (list[i].role == BZ_ROLE_W || (list[i].role == BZ_ROLE_B && list[i].constant))
            return list[i].count;
    return -1;
}

/* A reorder in front of a call that takes weights in its format and of its size made those weights. */
static bool makes_weights(const bz_align_steps *s, int at)
{
    const bz_call *reorder = bz_call_of(s->trace, s->step[at].at);
    if (reorder->elements < 0 || !reorder->y.format)
        return false;
    for (int i = at + 1; i < s->n && i <= at + CALLS_TO_WEIGHTS; i++) {
        const bz_align_step *next = &s->step[i];
        if (next->kind != BZ_ALIGN_CALL || !next->problem)
            continue;
        const char *wanted = bz_call_of(s->trace, next->at)->w.format;
        return wanted && !strcmp(reorder->y.format, wanted) && reorder->elements == weights_of(next->problem);
    }
    return false;
}

static bz_align_rule rule_of(const bz_align_steps *s, const bz_align_step *step)
{
    if (step->kind != BZ_ALIGN_KERNEL)
        return step->kind == BZ_ALIGN_CALL ? bz_align_call_rule(step->name) : bz_align_operator_rule(step->name);
    const bz_kernel *k = bz_kernel_of(s->trace, step->at);
    return (bz_align_rule){k->layer, k->cause};
}

/* One name stands for several kinds of layers: of these it is the one that the model has, whose words are known by now. PyTorch's ReLU is a clamp,
 * and its mean a pooling of all there is; a convolution's gradient of its data is a transposed one; cuDNN has one call for recurrent layers. Images
 * normalized one by one go back as a batch does. */
static const char *kind_in_model(const bz_align_words *w, const char *kind)
{
    static const char *const ALSO[][2] = {{"clip", "relu"},
                                          {"conv_data", "deconv"},
                                          {"gelu_erf", "gelu_tanh"},
                                          {"reduce", "avgpool"},
                                          {"lstm", "gru"},
                                          {"lstm", "rnn"},
                                          {"batchnorm_grad", "groupnorm_grad"},
                                          {"gather", "gathernd"},
                                          {"scatterelements", "scatternd"},
                                          {"logsoftmax", "softmax_loss"}};
    for (size_t i = 0; kind && i < sizeof ALSO / sizeof *ALSO; i++)
        if (!strcmp(kind, ALSO[i][0]) && !bz_align_knows(w, kind) && bz_align_knows(w, ALSO[i][1]))
            return ALSO[i][1];
    return kind;
}

/* What a program does by itself elsewhere, and the model has as a layer: the rule's kind is that of the layer then. What lies in no operator of PyTorch's
 * and has none in it is asked for, and not done. */
static bool is_layer_in_model(const bz_align_steps *s, const bz_align_step *step, const bz_align_words *w,
                              bz_align_rule *rule)
{
    const bz_events *o = &s->trace->event[BZ_EVENT_OP];
    const char *kind = rule->cause == BZ_CAUSE_CONVERTED ? "cast" : rule->cause == BZ_CAUSE_INPUT_PADDED ? "pad" : NULL;
    if (!kind || step->kind != BZ_ALIGN_OPERATOR || !bz_align_knows(w, kind) || step->at + 1 >= o->n ||
        o->op[step->at + 1] != step->at)
        return false;
    rule->kind = kind;
    return true;
}

/* The innermost node of autograd around an operator; BZ_NONE. */
static uint32_t node_around(const bz_align_steps *s, const bz_align_step *step)
{
    const bz_events *o = &s->trace->event[BZ_EVENT_OP];
    uint32_t op = step->kind == BZ_ALIGN_OPERATOR ? (uint32_t)step->at : BZ_NONE;
    for (size_t steps = 0; op < o->n && steps < o->n; op = o->op[op], steps++)
        if (strstr(bz_string(s->trace, o->name[op]), "Backward"))
            return op;
    return BZ_NONE;
}

/* Steps from `at` on that are named as those from `first` on, before `end`. */
static int alike(const bz_align_steps *s, const uint32_t *node, int first, int at, int end, int *work)
{
    int n = 0;
    for (; *work > 0 && at + n < end && node[first + n] == BZ_NONE; n++, --*work)
        if (strcmp(s->step[first + n].name, s->step[at + n].name) != 0)
            break;
    return n;
}

/* PyTorch numbers its own nodes, "TanhBackward0"; of a program's own functions the gradient may be anything. */
static bool is_builtin(const char *name)
{
    size_t n = strlen(name);
    return n && name[n - 1] >= '0' && name[n - 1] <= '9';
}

/* PyTorch's checkpoints keep no activations. With reentrance their node of autograd computes the layers again, and then has a way back of its own within;
 * what its engine adds up around the node is none of that. Without, the first node that asks for an activation computes them before its own gradient: then
 * it begins as a stretch of the way there does, with a layer in it that no formula of a gradient has. */
static bool *find_recomputed(const bz_align_steps *s, bz_arena *arena)
{
    static const char LAYERS[] =
        "^aten::linear$ ^aten::conv1d ^aten::conv2d ^aten::conv3d ^aten::conv_transpose ^aten::batch_norm "
        "^aten::layer_norm ^aten::group_norm ^aten::instance_norm ^aten::dropout ^aten::embedding$ ^aten::relu "
        "^aten::gelu$ "
        "^aten::silu ^aten::softmax ^aten::scaled_dot_product_attention ^aten::max_pool ^aten::avg_pool "
        "^aten::adaptive_";
    bool *again = BZ_NEW(arena, bool, s->n);
    uint32_t *node = BZ_NEW(arena, uint32_t, s->n + 1);
    int work = MOST_RECOMPUTED;
    for (int i = 0; i < s->n; i++)
        node[i] = node_around(s, &s->step[i]);
    for (int i = 0, end; i < s->n; i = end) {
        int layer = 0, longest = 0;
        const char *name = node[i] == BZ_NONE ? "" : bz_string(s->trace, s->trace->event[BZ_EVENT_OP].name[node[i]]);
        bool whole = !strcmp(name, "CheckpointFunctionBackward");
        for (end = i + 1; end < s->n && node[end] == node[i]; end++)
            ;
        for (int k = i; k < end && is_builtin(name) && !layer; k++)
            layer = bz_name_matches_any(LAYERS, s->step[k].name) ? k - i + 1 : 0;
        longest = whole ? end - i : 0;
        for (int k = 0; k < i && layer; k++) {
            int n = alike(s, node, k, i, end, &work);
            longest = n > longest ? n : longest;
        }
        for (int k = i; k < i + longest && longest >= layer; k++)
            again[k] = true;
    }
    return again;
}

/* Layers of a model whose training computes some again have names that end in this. */
static bool model_recomputes(const bz_align_steps *s)
{
    static const char END[] = "/again";
    const bz_bound *b = s->names ? s->names->bound : NULL;
    for (int i = 0; b && i < b->n; i++) {
        const char *name = b->layer[i].layer->name;
        size_t n = strlen(name), m = sizeof END - 1;
        if (n > m && !strcmp(name + n - m, END))
            return true;
    }
    return false;
}

static void take_atoms(bz_align_steps *s, bz_align_words *w, bz_arena *arena)
{
    const bool *again = model_recomputes(s) ? NULL : find_recomputed(s, arena);
    for (int i = 0; i < s->n; i++) {
        bz_align_step *step = &s->step[i];
        bz_align_rule rule = rule_of(s, step);
        rule.kind = kind_in_model(w, rule.kind);
        if (is_layer_in_model(s, step, w, &rule)) {
            step->otherwise = rule.cause;
            rule.cause = BZ_CAUSE_NONE;
        }
        bz_align_atom atom[BZ_ALIGN_ATOMS];
        int n = 0;
        const bz_layer *node = layer_of(s, &step->node);
        step->first = s->n_atoms;
        if (again && again[i])
            step->cause = BZ_CAUSE_RECOMPUTED;
        else if (node && node->class == BZ_CONSTANT)
            step->cause = BZ_CAUSE_CONSTANTS_COMPUTED;
        else if (rule.cause)
            step->cause =
                rule.cause == BZ_CAUSE_ACTIVATIONS_REORDERED && step->kind == BZ_ALIGN_CALL && makes_weights(s, i)
                    ? BZ_CAUSE_WEIGHTS_REORDERED
                    : rule.cause;
        else if (step->problem)
            n = bz_align_problem_atoms(w, step->problem, atom);
        else if (rule.kind && step->kind == BZ_ALIGN_OPERATOR)
            n = bz_align_operator_atoms(w, rule.kind,
                                        bz_string(s->trace, s->trace->event[BZ_EVENT_OP].detail[step->at]), atom);
        else if (rule.kind || step->kind == BZ_ALIGN_CALL || node)
            atom[n++] = bz_align_named_atom(w, rule.kind ? rule.kind : node ? node->kind : step->name);
        if (step->kind == BZ_ALIGN_OPERATOR && step->cause != BZ_CAUSE_RECOMPUTED)
            n = bz_align_name_atoms(s->names, w, step->node, rule.kind ? rule.kind : "", atom, n);
        for (int k = 0; k < n; k++) {
            atom[k].owner = i;
            BZ_ADD(s->atom, s->n_atoms) = atom[k];
        }
        step->n = n;
        if (!n && !step->cause)
            step->cause = BZ_CAUSE_KERNELS_EXTRA;
    }
}

static void number_events(bz_align_steps *s, bz_arena *arena)
{
    const bz_events *c = &s->trace->event[BZ_EVENT_CALL];
    s->of_call = BZ_NEW(arena, uint32_t, c->n);
    s->of_kernel = BZ_NEW(arena, uint32_t, s->trace->event[BZ_EVENT_KERNEL].n);
    for (int i = 0; i < s->n; i++) {
        if (s->step[i].kind == BZ_ALIGN_CALL)
            s->of_call[s->step[i].at] = (uint32_t)i + 1;
        else if (s->step[i].kind == BZ_ALIGN_KERNEL)
            s->of_kernel[s->step[i].at] = (uint32_t)i + 1;
        else
            s->of_op[s->step[i].at] = (uint32_t)i + 1;
    }
    const bz_events *k = &s->trace->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; i < k->n; i++) {
        uint32_t op = s->of_kernel[i] || k->call[i] < c->n ? BZ_NONE : operator_around(s, k->op[i]);
        if (op != BZ_NONE)
            s->of_kernel[i] = s->of_op[op];
    }
    for (size_t i = 0; i < c->n; i++)
        if (!s->of_call[i])
            s->of_call[i] = s->of_call[bz_call_outermost(s->trace, i)];
}

void bz_align_steps_take(bz_align_steps *s, const bz_trace *trace, bz_align_names *names, bz_align_words *w,
                         bz_arena *arena)
{
    uint32_t iteration = bz_typical_iteration(trace);
    *s = (bz_align_steps){.trace = trace, .names = names, .iteration = iteration};
    if (iteration != BZ_NONE) {
        s->begin = bz_iteration_begin(trace, iteration);
        s->end = trace->iteration[iteration].end;
    }
    take_calls(s);
    bz_align_find_back(s, arena);
    take_kernels(s, arena);
    s->device |= trace->event[BZ_EVENT_KERNEL].n > 0;
    s->operators = !s->n;
    if (s->operators)
        take_operators(s, arena);
    BZ_QSORT(s->step, s->n, by_start);
    take_atoms(s, w, arena);
    number_events(s, arena);
}

void bz_align_steps_free(bz_align_steps *s)
{
    free(s->step);
    free(s->atom);
}
