/* Time for memory: activations that leave the device, are stored in fewer bytes, or are computed again. */
#include "whatif/gradients.h"

#include <math.h>

/* A layer's work forward, and the first task of it on the way back. */
typedef struct {
    uint32_t first, last, back; /* tasks */
    bool conv;
} stored;

/* Layers whose way back is known, nearest to the input first. */
static int find_stored(const bz_flow *flow, bz_whatif_asked *asked, stored **list)
{
    bz_gradient *g;
    int n = bz_gradients_layers(flow, asked, &g), k = 0;
    *list = BZ_NEW(asked->arena, stored, (size_t)n + 1);
    for (int i = n - 1; i >= 0; i--) {
        if (g[i].forward == BZ_NONE)
            continue;
        stored s = {g[i].forward, g[i].forward, g[i].first, false};
        uint32_t layer = flow->task[s.first].layer;
        for (uint32_t t = s.first; t != BZ_NONE; t = flow->task[t].next) {
            const bz_task *task = &flow->task[t];
            if (task->phase != BZ_PHASE_FORWARD || (t != s.first && (layer == BZ_NONE || task->layer != layer)))
                break;
            s.last = t;
            s.conv |= bz_whatif_does(asked, task) == BZ_KERNEL_CONV ||
                      bz_whatif_does(asked, task) == BZ_KERNEL_CONV_DEPTHWISE;
        }
        if (!k || s.first != (*list)[k - 1].first)
            (*list)[k++] = s;
    }
    return k;
}

int bz_whatif_offload(bz_flow *flow, bz_whatif_asked *asked)
{
    stored *list;
    int n = find_stored(flow, asked, &list), convs = 0, all = bz_whatif_number(asked, "all") > 0;
    if (!n)
        return 0;
    for (int i = 0; i < n; i++)
        convs += list[i].conv || all;
    if (!convs)
        return bz_whatif_because(asked, "no convolutions of a forward pass are known; all=1 takes all layers");
    double mb = bz_whatif_number(asked, "mb_stored") / convs, gbs = bz_whatif_number(asked, "gbs");
    int64_t time = bz_gradients_time(mb * 1e6, 8 * gbs);
    uint32_t out = bz_flow_add_lane(flow, "offload", true, false), in = bz_flow_add_lane(flow, "prefetch", true, false);
    for (int i = 0; i < n; i++) {
        if (!list[i].conv && !all)
            continue;
        uint32_t launch = bz_flow_launch_of(flow, list[i].last),
                 copy = bz_flow_add(flow, BZ_TASK_COPY, "offload", out, time, 0);
        bz_flow_depend(flow, list[i].last, copy, BZ_DEPENDS_STREAM, 0);
        bz_flow_launch(flow, "launch of an offload", launch, copy);
        if (i + 1 < n) /* the memory is free when both are done: the layer behind it waits */
            bz_flow_depend(flow, copy, list[i + 1].first, BZ_DEPENDS_STREAM, 0);
    }
    uint32_t trigger = BZ_NONE; /* the way back of the one offloaded before it, from the output */
    for (int i = n - 1; i >= 0; i--) {
        if (!list[i].conv && !all)
            continue;
        uint32_t copy = bz_flow_add(flow, BZ_TASK_COPY, "prefetch", in, time, 0),
                 from = trigger == BZ_NONE ? list[n - 1].back : trigger, launch = bz_flow_launch_of(flow, from);
        if (from != list[i].back && flow->task[from].prev != BZ_NONE)
            bz_flow_depend(flow, flow->task[from].prev, copy, BZ_DEPENDS_STREAM, 0);
        bz_flow_launch(flow, "launch of a prefetch", launch, copy);
        bz_flow_depend(flow, copy, list[i].back, BZ_DEPENDS_STREAM, 0);
        trigger = list[i].back;
    }
    bz_whatif_assume_parameter(asked, "mb_stored", "%.4g MB of %d layers go to the host and come back", mb * convs,
                               convs);
    bz_whatif_assume_parameter(asked, "gbs", "at %.4g GB/s each way, beside the kernels", gbs);
    return 2 * convs;
}

static bool is_relu(const bz_flow *flow, const bz_task *t)
{
    static const char NAMES[] = "relu Relu ReLU clamp_min threshold";
    const char *op = bz_task_op(flow, t);
    return bz_name_matches_any(NAMES, t->name) || (op && bz_name_matches_any(NAMES, op));
}

static const bz_task *kernel_behind(const bz_flow *flow, uint32_t task)
{
    uint32_t next = flow->task[task].next;
    return next == BZ_NONE ? NULL : &flow->task[next];
}

/* ReLU in front of a pooling needs a bit for each element, in front of a convolution what is not zero. */
static double encoding(const bz_flow *flow, const bz_whatif_asked *asked, uint32_t task, bool lossy)
{
    const bz_task *t = &flow->task[task], *next = kernel_behind(flow, task);
    bz_kernel_does does = next ? bz_whatif_does(asked, next) : BZ_KERNEL_OTHER;
    bool relu = is_relu(flow, t), pool = does == BZ_KERNEL_POOL,
         conv = does == BZ_KERNEL_CONV || does == BZ_KERNEL_CONV_DEPTHWISE;
    if (relu && pool)
        return bz_whatif_number(asked, "bits");
    if ((relu || bz_whatif_does(asked, t) == BZ_KERNEL_POOL) && conv)
        return bz_whatif_number(asked, "sparse");
    return lossy && !relu ? bz_whatif_number(asked, "reduce") : 0;
}

/* What an element-wise kernel of the recording takes: the median. */
static int64_t elementwise(const bz_flow *flow, const bz_whatif_asked *asked)
{
    double *times = BZ_NEW(asked->arena, double, flow->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && flow->task[i].phase == BZ_PHASE_FORWARD &&
            bz_whatif_does(asked, &flow->task[i]) == BZ_KERNEL_ELEMENTWISE)
            times[n++] = (double)flow->task[i].duration;
    return n ? (int64_t)bz_quantiles_of(times, n).p50 : 0;
}

int bz_whatif_encoding(bz_flow *flow, bz_whatif_asked *asked)
{
    bool lossy = bz_whatif_number(asked, "lossy") > 0;
    int64_t usual = elementwise(flow, asked);
    stored *list;
    int n = find_stored(flow, asked, &list), coded = 0;
    if (!n)
        return 0;
    if (!usual)
        return bz_whatif_because(asked, "no element-wise kernel tells what encoding takes");
    for (int i = 0; i < n; i++)
        for (uint32_t t = list[i].first, next; t != BZ_NONE; t = next) {
            next = t == list[i].last ? BZ_NONE : flow->task[t].next;
            double passes = flow->task[t].kind == BZ_TASK_KERNEL ? encoding(flow, asked, t, lossy) : 0;
            if (passes <= 0)
                continue;
            int64_t time = (int64_t)(passes * (double)(is_relu(flow, &flow->task[t]) ? flow->task[t].duration : usual));
            bz_flow_insert_launched(flow, BZ_TASK_KERNEL, "encode", t, time);
            uint32_t before = flow->task[list[i].back].prev;
            if (before != BZ_NONE)
                bz_flow_insert_launched(flow, BZ_TASK_KERNEL, "decode", before, time);
            else
                bz_flow_insert(flow, BZ_TASK_KERNEL, "decode", list[i].back, BZ_BEFORE, time, 0);
            coded++;
        }
    if (!coded)
        return bz_whatif_because(asked,
                                 "no ReLU in front of a pooling or a convolution is known; lossy=1 takes all layers");
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "element-wise kernels of the recording",
                     "%d results are encoded and decoded, each as long as its ReLU or %s, times its passes", coded,
                     BZ_SAY_NS(usual));
    return 2 * coded;
}

/* In front of the way back of a segment its layers are computed again, but for the last segment, which is there still. */
int bz_whatif_checkpoints(bz_flow *flow, bz_whatif_asked *asked)
{
    stored *list;
    bz_tally sum = {0};
    int n = find_stored(flow, asked, &list);
    if (!n)
        return 0;
    int segments = (int)bz_whatif_number(asked, "segments");
    segments = segments ? segments : (int)(sqrt(n) + 0.5);
    segments = segments > n ? n : segments;
    if (segments < 2)
        return bz_whatif_because(asked, "of one segment nothing is computed again");
    for (int s = 0; s + 1 < segments; s++) {
        int from = n * s / segments, to = n * (s + 1) / segments;
        uint32_t at = flow->task[list[to - 1].back].prev; /* the way back begins with the segment's last layer */
        for (int i = from; i < to && at != BZ_NONE; i++)
            for (uint32_t t = list[i].first, next; t != BZ_NONE; t = next) {
                next = t == list[i].last ? BZ_NONE : flow->task[t].next;
                if (flow->task[t].kind != BZ_TASK_KERNEL && flow->task[t].kind != BZ_TASK_CALL)
                    continue;
                int64_t time = flow->task[t].duration;
                const char *name = flow->task[t].name;
                bool kernel = flow->task[t].kind == BZ_TASK_KERNEL;
                uint32_t layer = flow->task[t].layer;
                at = kernel ? bz_flow_insert_launched(flow, BZ_TASK_KERNEL, name, at, time)
                            : bz_flow_insert(flow, BZ_TASK_CALL, name, at, BZ_BEHIND, time, flow->task[t].gap);
                flow->task[at].layer = layer;
                flow->task[at].phase = BZ_PHASE_BACKWARD;
                bz_tally_add(&sum, 0, time);
            }
    }
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d tasks of %d segments are computed again: %s",
                     sum.n, segments, BZ_SAY_NS(sum.after));
    return sum.n ? sum.n : bz_whatif_because(asked, "no way back begins behind other work");
}

static int names_norm(const char *name)
{
    return bz_name_matches_any("bn_fw bn_bw batch_norm batchnorm BatchNorm", name);
}

static bool is_norm(bz_name_answers *norm, const bz_flow *flow, const bz_task *t)
{
    const char *op = bz_task_op(flow, t);
    return bz_name_answer(norm, t->name) || (op && bz_name_answer(norm, op));
}

static bool joins(const bz_flow *flow, const bz_whatif_asked *asked, bz_name_answers *norm, uint32_t task)
{
    if (task == BZ_NONE)
        return false;
    const bz_task *t = &flow->task[task];
    return is_norm(norm, flow, t) || bz_whatif_does(asked, t) == BZ_KERNEL_CONV ||
           bz_whatif_does(asked, t) == BZ_KERNEL_CONV_BACKWARD;
}

/* The first half of each normalization goes into the convolution before it, the second into the ReLU and the convolution
 * behind it: the input is read half as often, and ReLU is no kernel of its own. */
int bz_whatif_norms(bz_flow *flow, bz_whatif_asked *asked)
{
    bool literal = bz_whatif_number(asked, "literal") > 0;
    double times = bz_whatif_number(asked, "times");
    bz_name_answers norm = {.ask = names_norm};
    int norms = 0, removed = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        norms += !flow->task[i].removed && flow->task[i].kind == BZ_TASK_KERNEL && is_norm(&norm, flow, &flow->task[i]);
    if (!norms)
        return bz_whatif_because(asked, "no kernel of batch normalization is known in this recording");
    if (!bz_flow_trains(flow))
        return bz_whatif_because(asked, "nothing in this recording is of a backward pass: where a network only infers, "
                                        "its normalizations can be folded into the convolutions before them");
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || t->kind != BZ_TASK_KERNEL)
            continue;
        if (is_norm(&norm, flow, t)) {
            bz_flow_scale(flow, i, 1 / times);
        } else if (is_relu(flow, t) &&
                   (literal || joins(flow, asked, &norm, t->prev) || joins(flow, asked, &norm, t->next))) {
            bz_flow_remove_launched(flow, i, false);
            removed++;
        }
    }
    bz_whatif_assume_parameter(asked, "times", "%d kernels of batch normalization: time divided by %.3g", norms, times);
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the published change",
                     "%d kernels of ReLU go into their neighbours, which take no longer", removed);
    return norms + removed;
}
