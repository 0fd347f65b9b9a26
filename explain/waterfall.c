/* All ways to become faster together: what is left of the measured latency with each combination of them. */
#include "explain/explain.h"

#include <math.h>

enum { CORE = BZ_WAY_FUSION | BZ_WAY_PRECISION | BZ_WAY_PARALLEL, LAST = 1 << BZ_WAYS };

/* The model's bound with exactly these ways; NAN where nobody knows. */
static double alone(const bz_bound *b, const bz_units *u, int ways)
{
    double best = NAN;
    bool parallel = ways & BZ_WAY_PARALLEL;
    if (!(ways & BZ_WAY_PRECISION)) {
        if (!(ways & BZ_WAY_FUSION))
            return parallel ? b->path.seconds : b->sequential;
        return !b->fused.wanted ? NAN : parallel ? b->fused.parallel : b->fused.sequential;
    }
    for (int i = 0; u && i < u->n_ways; i++) {
        const bz_unit_way *w = &u->way[i];
        double s =
            ways & BZ_WAY_FUSION ? (parallel ? w->fused_parallel : w->fused) : (parallel ? w->parallel : w->sequential);
        if (!w->layout && !w->calibrated && isfinite(s) && !(best <= s))
            best = s;
    }
    return best;
}

/* A way that may be taken need not be. */
static void find_cores(const bz_bound *b, const bz_units *u, double core[LAST])
{
    for (int ways = 0; ways < LAST; ways++) {
        core[ways] = alone(b, u, ways & CORE);
        for (int fewer = 0; fewer < ways && isfinite(core[ways]); fewer++)
            if ((fewer & ways & CORE) == (fewer & CORE) && core[fewer] < core[ways])
                core[ways] = core[fewer];
    }
}

static void add_step(bz_waterfall *w, bz_rung_kind kind, const char *name, double seconds)
{
    if (isfinite(seconds) && seconds != 0)
        w->step[w->n++] = (bz_step){kind, name, seconds};
}

/* What is measured above the bound: what no layer asks for, between the calls and in them, calls that took longer than their best record,
 * and layers that the framework does itself. Together they are latency - bound, exactly. */
typedef struct above {
    double between, extra, algorithms, slower, outside;
    bool aligned;
} above;

static above split(const bz_bound *b, const bz_ladder *l)
{
    above a = {0};
    double loss = l->regret && l->regret->known > 0 ? bz_tick(l->regret->loss) : 0;
    a.algorithms = loss;
    if (!l->alignment || !l->alignment->timeline || !isfinite(l->alignment->asked)) {
        a.between = l->latency - b->sequential - loss;
        return a;
    }
    a.aligned = true;
    for (int i = 0; i < l->alignment->n_causes; i++) {
        const bz_cause *c = &l->alignment->cause[i];
        *(c->kind == BZ_CAUSE_LAYERS_OUTSIDE ? &a.outside : c->busy ? &a.extra : &a.between) += c->seconds;
    }
    a.outside = fmax(a.outside - bz_tick(bz_alignment_missing(l->alignment)), 0); /* the bound has them, too */
    a.slower = l->latency - a.between - a.extra - a.outside - b->sequential - loss;
    return a;
}

/* Calls that are faster than the layers' records did already what fusion would gain, as far as it goes. */
static double take_fused(double *slower, double fusion)
{
    double fused = fmin(fmax(-*slower, 0), fmax(fusion, 0));
    *slower += fused;
    return fused;
}

/* What calls with records of weights in the caches took longer as theirs came from far, as far as it goes. */
static double take_far(double *slower, double far)
{
    double taken = bz_tick(fmin(fmax(*slower, 0), far));
    *slower -= taken;
    return taken;
}

void bz_waterfall_make(const bz_bound *b, const bz_ladder *l, const bz_units *units, bz_waterfall *out)
{
    static const struct {
        int way;
        bz_rung_kind kind;
        const char *name;
    } CORES[] = {{BZ_WAY_FUSION, BZ_RUNG_FUSION, "fusion"},
                 {BZ_WAY_PRECISION, BZ_RUNG_PRECISION, "lower precision"},
                 {BZ_WAY_PARALLEL, BZ_RUNG_PARALLEL, "independent layers at the same time"}};
    double core[LAST];
    above a = split(b, l);
    int all = 0;
    bool enough = bz_bound_goal(b).enough && bz_ladder_compares(l);
    *out = (bz_waterfall){.from = l->latency, .to = enough ? b->sequential : NAN};
    find_cores(b, units, core);
    double framework = a.between + a.extra, algorithms = a.algorithms + a.slower + a.outside;
    for (int ways = 0; ways < LAST; ways++)
        out->joint[ways] = enough ? core[ways] + (ways & BZ_WAY_FRAMEWORK ? 0 : framework) +
                                        (ways & BZ_WAY_ALGORITHMS ? 0 : algorithms)
                                  : NAN;
    if (!isfinite(l->latency) || !enough)
        return;
    double far = take_far(&a.slower, a.aligned ? bz_bound_written(b).far : 0);
    double fused = b->fused.wanted ? take_fused(&a.slower, core[0] - core[BZ_WAY_FUSION]) : 0;
    add_step(out, BZ_RUNG_BETWEEN, a.aligned ? "time between calls" : "time between calls, other work, slow calls",
             a.between);
    add_step(out, BZ_RUNG_EXTRA, "work that belongs to no layer", a.extra);
    add_step(out, BZ_RUNG_ALGORITHMS, "faster algorithms", a.algorithms);
    add_step(out, BZ_RUNG_FAR, "weights that come from far (modelled)", far);
    add_step(out, BZ_RUNG_SLOWER,
             a.slower < 0 ? "calls that were faster than their records" : "calls that took longer than their records",
             a.slower);
    add_step(out, BZ_RUNG_OUTSIDE, "the framework's own layers", a.outside);
    for (int i = 0; i < 3; i++) {
        if (!isfinite(core[all | CORES[i].way]))
            continue;
        all |= CORES[i].way;
        add_step(out, CORES[i].kind, CORES[i].name, out->to - core[all] - (i ? 0 : fused));
        out->to = core[all];
    }
}
