/* Operators, layers and phases of tasks: by what lies around them on the host, and by correlation for what a device did. No
 * time of a device is held against one of the host. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

#include <stdlib.h>

/* What frameworks call their phases, in operators and in ranges that a person named. The first that fits. */
static const struct {
    const char *name;
    bz_phase phase;
} PHASES[] = {
    {"Optimizer.step", BZ_PHASE_UPDATE},     {"Optimizer.zero_grad", BZ_PHASE_UPDATE}, {"^optimizer", BZ_PHASE_UPDATE},
    {"weight update", BZ_PHASE_UPDATE},      {"weight_update", BZ_PHASE_UPDATE},       {"^update$", BZ_PHASE_UPDATE},
    {"autograd::engine", BZ_PHASE_BACKWARD}, {"backward", BZ_PHASE_BACKWARD},          {"Backward", BZ_PHASE_BACKWARD},
    {"^forward", BZ_PHASE_FORWARD},          {"^Forward", BZ_PHASE_FORWARD},
};

/* Ranges around what Python does, which some recordings have among the operators: what is in them works, they do not. */
int bz_build_range(const char *name)
{
    return bz_name_matches("ProfilerStep#", name) || bz_name_matches("Optimizer.", name) ||
           bz_name_matches("nn.Module: ", name) || bz_name_matches("enumerate(DataLoader)", name) ||
           bz_name_matches("## ", name);
}

static int phase_of(const char *name)
{
    for (size_t i = 0; i < sizeof PHASES / sizeof *PHASES; i++)
        if (bz_name_matches(PHASES[i].name, name))
            return (int)PHASES[i].phase;
    return BZ_PHASE_NONE;
}

/* Operators that only hold others: no layers. */
static int wraps(const char *name)
{
    return bz_build_range(name) || bz_name_matches("autograd::engine", name) ||
           bz_name_matches("Torch-Compiled Region", name);
}

typedef struct {
    bz_build *b;
    uint8_t *op_phase;               /* by row */
    uint32_t *layer_op;              /* by row of an operator: the outermost one around it that is a layer; BZ_NONE */
    uint32_t *op_layer, *call_layer; /* by row: numbers of layers; BZ_NONE: none yet */
} mapping;

/* [op rows]: is it around most operators of an iteration? That is a range of the program's own, such as record_function("step"), and no layer: a
 * recording without kinds of events has it among the operators. */
static bool *find_programs(const bz_trace *t)
{
    const bz_events *op = &t->event[BZ_EVENT_OP];
    size_t of_iteration = op->n / (t->n_iterations ? t->n_iterations : 1);
    BZ_FREED size_t *inside = bz_zeroed(op->n + 1, sizeof *inside);
    bool *program = bz_zeroed(op->n + 1, sizeof *program);
    for (size_t i = op->n; i-- > 0;) {
        program[i] = inside[i] >= PROGRAM_LEAST && 2 * inside[i] > of_iteration;
        if (op->op[i] < i)
            inside[op->op[i]] += inside[i] + 1;
    }
    return program;
}

/* Operators around others have smaller rows or the same start: one pass from the outside in. */
static void find_op_phases(mapping *m)
{
    const bz_trace *t = m->b->trace;
    const bz_events *op = &t->event[BZ_EVENT_OP];
    bz_name_answers phases = {.ask = phase_of}, wrappers = {.ask = wraps};
    BZ_FREED bool *program = find_programs(t);
    for (size_t i = 0; i < op->n; i++) {
        uint32_t around = op->op[i] < i ? op->op[i] : BZ_NONE;
        const char *name = bz_string(t, op->name[i]);
        int own = bz_name_answer(&phases, name);
        uint8_t outer = around == BZ_NONE ? BZ_PHASE_NONE : m->op_phase[around];
        m->op_phase[i] = outer == BZ_PHASE_NONE || own == BZ_PHASE_UPDATE ? (uint8_t)own : outer;
        uint32_t above = around == BZ_NONE ? BZ_NONE : m->layer_op[around];
        bool wrapper = program[i] || bz_name_answer(&wrappers, name);
        m->layer_op[i] = above != BZ_NONE ? above : wrapper ? BZ_NONE : (uint32_t)i;
    }
}

static uint32_t layer_of(mapping *m, uint32_t call, uint32_t op)
{
    const bz_trace *t = m->b->trace;
    uint32_t outer = op < t->event[BZ_EVENT_OP].n ? m->layer_op[op] : BZ_NONE;
    uint32_t *known = outer != BZ_NONE                   ? &m->op_layer[outer]
                      : call < t->event[BZ_EVENT_CALL].n ? &m->call_layer[call]
                                                         : NULL;
    if (!known)
        return BZ_NONE;
    if (*known == BZ_NONE)
        *known = bz_flow_add_layer(m->b->flow, bz_string(t, outer != BZ_NONE ? t->event[BZ_EVENT_OP].name[outer]
                                                                             : t->event[BZ_EVENT_CALL].name[call]));
    return *known;
}

/* Phases that ranges tell, for host tasks in the order of time of each lane. */
static uint8_t *host_range_phases(mapping *m)
{
    const bz_trace *t = m->b->trace;
    const bz_events *range = &t->event[BZ_EVENT_RANGE];
    const bz_flow *f = m->b->flow;
    uint8_t *phase = bz_zeroed((size_t)f->n + 1, 1);
    size_t left = ((size_t)f->n + 1) * RANGES_DEEPEST; /* ranges of a file that lies may all lie around everything */
    for (size_t i = 0; i < range->n; i++) {
        uint8_t own = (uint8_t)phase_of(bz_string(t, range->name[i]));
        uint32_t lane = m->b->lane_of[range->lane[i]];
        if (own == BZ_PHASE_NONE || lane == BZ_NONE || f->lane[lane].device || f->lane[lane].first == BZ_NONE)
            continue;
        int64_t from = range->start[i] - m->b->span.start, to = range->end[i] - m->b->span.start;
        uint32_t low = f->lane[lane].first, end = f->lane[lane].last + 1, high = end;
        BZ_FIND_FIRST(low, high, middle, m->b->arrived[middle] < from);
        for (; low < end && m->b->arrived[low] < to && left; low++, left--)
            phase[low] = own;
    }
    return phase;
}

static uint32_t op_of(const bz_trace *t, const bz_task *task)
{
    const bz_events *e = &t->event[task->event_kind];
    if (task->event == BZ_NONE)
        return BZ_NONE;
    if (task->event_kind == BZ_EVENT_OP)
        return task->event;
    return e->op ? e->op[task->event] : BZ_NONE;
}

const char *bz_task_op(const bz_flow *flow, const bz_task *task)
{
    uint32_t op = flow->trace ? op_of(flow->trace, task) : BZ_NONE;
    return op == BZ_NONE || op >= flow->trace->event[BZ_EVENT_OP].n
               ? NULL
               : bz_string(flow->trace, flow->trace->event[BZ_EVENT_OP].name[op]);
}

/* Where some task is of the backward pass, what is of no phase is of the forward pass, kernels' names willing. */
static void complete(bz_flow *f, const bz_trace *t)
{
    bool training = false;
    for (uint32_t i = 0; i < f->n; i++) {
        bz_task *k = &f->task[i];
        if (k->kind == BZ_TASK_KERNEL && k->event != BZ_NONE) {
            bz_kernel_does does = bz_kernel_of(t, k->event)->does;
            if (k->phase == BZ_PHASE_NONE && does == BZ_KERNEL_CONV_BACKWARD)
                k->phase = BZ_PHASE_BACKWARD;
            else if (k->phase == BZ_PHASE_NONE && does == BZ_KERNEL_OPTIMIZER)
                k->phase = BZ_PHASE_UPDATE;
        }
        training |= k->phase == BZ_PHASE_BACKWARD;
    }
    for (uint32_t i = 0; i < f->n; i++)
        if (training && f->task[i].phase == BZ_PHASE_NONE && f->task[i].kind != BZ_TASK_LOAD &&
            f->task[i].kind != BZ_TASK_END)
            f->task[i].phase = BZ_PHASE_FORWARD;
}

static int names_way_back(const char *name)
{
    return bz_name_matches_any("bn_bw batch_norm_backward backward_weights", name);
}

typedef struct product {
    int64_t m, n, k;
} product;

BZ_SORTS(by_sizes, product, BZ_THEN(BZ_ORDER(p->m, q->m), BZ_THEN(BZ_ORDER(p->n, q->n), BZ_ORDER(p->k, q->k))));

/* Of the call that a task is; NULL: it is none, or none of a known problem. */
static const bz_problem *problem_of(const bz_flow *flow, const bz_task *task)
{
    bool call = task->event_kind == BZ_EVENT_CALL && task->event != BZ_NONE;
    return call ? bz_call_of(flow->trace, task->event)->problem : NULL;
}

static const bz_problem *gemm_of(const bz_flow *flow, const bz_task *task)
{
    const bz_problem *p = problem_of(flow, task);
    return p && p->kind == BZ_PROBLEM_GEMM ? p : NULL;
}

/* Calls of BLAS have no word for it, but shapes: where y[b,o] = x[b,i] w[o,i]ᵀ was computed, y'ᵀ x [o,i] of y's gradient y'[b,o] is the weights' gradient.
 * What else sums over b is rare, and of other sizes, but for the Gram matrix of a square layer. */
static const char *multiplies_back(const bz_flow *flow)
{
    BZ_FREED product *forward = bz_alloc((size_t)flow->n + 1, sizeof *forward);
    const char *name = NULL;
    double all = 0, back = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_problem *p = gemm_of(flow, &flow->task[i]);
        if (p && !p->gemm.transa && p->gemm.transb)
            forward[n++] = (product){p->gemm.m, p->gemm.n, p->gemm.k};
        all += p ? bz_problem_flops(p) : 0;
    }
    qsort(forward, n, sizeof *forward, by_sizes);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_problem *p = gemm_of(flow, &flow->task[i]);
        if (!p || !p->gemm.transa || p->gemm.transb)
            continue;
        const product of = {p->gemm.k, p->gemm.m, p->gemm.n};
        if (!bsearch(&of, forward, n, sizeof of, by_sizes))
            continue;
        name = flow->task[i].name;
        back += bz_problem_flops(p);
    }
    return back > TRAINS_LEAST * all ? name : NULL;
}

const char *bz_flow_trains(const bz_flow *flow)
{
    bz_name_answers back = {.ask = names_way_back};
    const char *first = NULL; /* of those that say nothing by their name, as a division */
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *k = &flow->task[i];
        const bz_problem *problem = problem_of(flow, k);
        const char *op = bz_task_op(flow, k);
        if (k->phase == BZ_PHASE_BACKWARD || bz_name_answer(&back, k->name) ||
            (problem && bz_problem_has(problem, BZ_TRAIT_GRADIENT))) {
            const char *name = op ? op : k->name;
            if (bz_name_matches("ackward", name))
                return name;
            first = first ? first : name;
        }
    }
    return first ? first : multiplies_back(flow);
}

void bz_build_phases(bz_build *b)
{
    const bz_trace *t = b->trace;
    bz_flow *f = b->flow;
    size_t ops = t->event[BZ_EVENT_OP].n, calls = t->event[BZ_EVENT_CALL].n;
    mapping m = {.b = b};
    m.op_phase = bz_zeroed(ops + 1, 1);
    m.layer_op = bz_alloc(ops + 1, sizeof *m.layer_op);
    m.op_layer = bz_none(ops + 1, sizeof *m.op_layer);
    m.call_layer = bz_none(calls + 1, sizeof *m.call_layer);
    find_op_phases(&m);
    BZ_FREED uint8_t *phase = host_range_phases(&m);
    for (uint32_t i = 0; i < f->n; i++) {
        bz_task *k = &f->task[i];
        uint32_t op = op_of(t, k), launch = bz_flow_launch_of(f, i);
        if (op < ops)
            k->phase = m.op_phase[op];
        if (k->phase == BZ_PHASE_NONE)
            k->phase = launch == BZ_NONE ? phase[i] : phase[launch];
        k->layer = layer_of(&m, k->call, op);
    }
    complete(f, t);
    free(m.call_layer);
    free(m.op_layer);
    free(m.layer_op);
    free(m.op_phase);
}
