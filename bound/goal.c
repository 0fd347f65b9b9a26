/* Which bound a program is held against, and whether enough of it is priced for a ratio. */
#include "bound/bound.h"

#include "bound/constants.h"

#include <math.h>

/* What layers do, in all that counts. */
typedef struct work {
    double macs, time, bytes;
    int untold; /* layers of which nothing tells how much they compute: products of sizes that depend on data, ensembles of trees */
} work;

static void add(work *sum, const bz_bound_layer *l, bz_dtype dtype)
{
    double bytes = bz_peaks_bytes(l->layer, NULL, dtype);
    sum->macs += l->times * (double)l->layer->macs;
    sum->time += isfinite(l->hardware) ? l->times * l->hardware : 0;
    sum->bytes += bytes > 0 ? l->times * bytes : 0;
    sum->untold += l->layer->multiplies ||
                   (l->layer->class == BZ_COMPUTE && l->layer->priced && !l->layer->macs && !l->layer->flops);
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 1;
}

/* Nodes that a group stands for. */
static bool *find_covered(const bz_bound *b, bool fused)
{
    bool *covered = bz_zeroed((size_t)b->layers->n, sizeof *covered);
    for (int g = 0; fused && g < b->fused.n; g++)
        for (int i = 0; i < b->fused.group[g].n; i++)
            covered[b->fused.group[g].layer[i]] = true;
    return covered;
}

/* An unpriced layer counts as priced where a group with a price stands for it, and one that need not run counts for nothing. */
static void sum_work(const bz_bound *b, bool fused, const bool *covered, work *all, work *priced)
{
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        if (fused && bz_bound_spared(b, l))
            continue;
        add(all, l, b->dtype);
        if (l->price.alternative || covered[l->node])
            add(priced, l, b->dtype);
    }
}

/* A look-up reads a few rows of its table. */
static double weights_of(const bz_bound *b, const bz_layer *layer)
{
    double sum = 0;
    for (int k = 0; k < layer->n_in && layer->in_constant; k++)
        sum += layer->in_constant[k] ? bz_peaks_bytes(layer, &layer->in[k], b->dtype) : 0;
    return fmin(sum, bz_peaks_bytes(layer, NULL, b->dtype));
}

/* Weights are used once in an iteration, or where a loop uses them again, they may have stayed since its first trip. */
static double from_far(const bz_bound *b, bool fused, const bool *covered, double *weights)
{
    BZ_FREED double *own = bz_zeroed((size_t)b->n, sizeof *own); /* bytes of each layer */
    BZ_FREED double *bytes = bz_zeroed((size_t)b->layers->n, sizeof *bytes);
    double more = 0;
    for (int i = 0; i < b->n; i++) {
        own[i] = weights_of(b, b->layer[i].layer);
        bytes[b->layer[i].node] += own[i];
        *weights += own[i];
    }
    for (int g = 0; fused && g < b->fused.n; g++) {
        const bz_bound_group *group = &b->fused.group[g];
        double all = 0;
        for (int i = 0; i < group->n; i++)
            all += bytes[group->layer[i]];
        more += fmax(0, bz_peaks_again(b->peaks, all, *weights) - group->price.seconds);
    }
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        if (l->price.alternative && !covered[l->node] && !(fused && bz_bound_spared(b, l)))
            more += fmax(0, bz_peaks_again(b->peaks, own[i], *weights) - l->times * l->price.seconds);
    }
    return more;
}

bool bz_goal_enough(double macs, double time)
{
    return macs >= LEAST_MACS && time >= LEAST_TIME;
}

static bz_goal judge(const bz_bound *b, bool fused, bz_goal goal)
{
    work all = {0}, priced = {0};
    if (b->n) {
        BZ_FREED bool *covered = find_covered(b, fused);
        sum_work(b, fused, covered, &all, &priced);
        if (b->setting.cache == BZ_CACHE_HOT)
            goal.far = from_far(b, fused, covered, &goal.weights);
    }
    goal.layers = b->coverage.layers;
    goal.modelled = all.time > 0;
    goal.macs = share(priced.macs, all.macs);
    goal.time = goal.modelled ? share(priced.time, all.time) : share(priced.bytes, all.bytes);
    goal.products = bz_goal_enough(goal.macs, 1);
    goal.untold = all.untold - priced.untold;
    goal.enough = bz_goal_enough(goal.macs, goal.time) && !b->partial && !goal.untold;
    if (!(goal.far > FAR_TOLD * goal.sequential))
        goal.far = goal.weights = 0;
    return goal;
}

bz_goal bz_bound_written(const bz_bound *b)
{
    return judge(b, false,
                 (bz_goal){.name = "as written",
                           .sequential = b->sequential,
                           .parallel = b->path.seconds,
                           .hardware = b->hardware,
                           .unpriced = b->coverage.unpriced});
}

bz_goal bz_bound_goal(const bz_bound *b)
{
    const bz_bound_fused *f = &b->fused;
    if (!f->wanted)
        return bz_bound_written(b);
    return judge(b, true,
                 (bz_goal){.name = "fused",
                           .sequential = f->sequential,
                           .parallel = f->parallel,
                           .hardware = f->hardware,
                           .unpriced = f->unpriced});
}

void bz_goal_print(const bz_goal *goal, bz_buf *out)
{
    bz_buf_printf(out, "%d of %d layers are priced, %.1f %% of the MACs and %.1f %% of the %s",
                  goal->layers - goal->unpriced, goal->layers, 100 * goal->macs, 100 * goal->time,
                  goal->modelled ? "modelled time" : "bytes");
    if (goal->untold)
        bz_buf_printf(out, ", and nothing tells how much %d of the others compute%s", goal->untold,
                      goal->untold == 1 ? "s" : "");
}
