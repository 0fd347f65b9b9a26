/* How many iterations a recording has, by the model that it is held against. Equal layers repeat as steps do: where nothing else tells a
 * transformer's steps from its layers, the model's own work does. If it does twelve times as much as what was taken for an
 * iteration, twelve of these are one. */
#include "analysis/constants.h"
#include "explain/align.h"

/* `work`: pieces of an iteration; `wanted`: of the model. Recordings of one library do not tell what others did: sorts that none of them
 * has are left out. `part`: the model has more of each sort. Two ResNet-50 are no ResNet-101, which ends in one product. */
static double likeness(const bz_align_work *all, const bz_trace *t, bz_arena *arena, int *work, int *wanted, bool *part)
{
    bz_align_work ran, model = *all;
    bz_align_work_take(t, arena, &ran);
    model.symbol = bz_arena_dup(arena, all->symbol, (size_t)all->n);
    model.again = bz_arena_dup(arena, all->again, (size_t)all->n * sizeof *all->again);
    bz_align_work_leave_out(&model, &ran);
    bz_align_work_fold(&model, &ran);
    double common = bz_align_work_common(&model, &ran);
    *part = true;
    for (int s = 0; s < BZ_WORK_SORTS; s++)
        *part &= !all->count[s] || ran.count[s] < all->count[s];
    *work = ran.n;
    *wanted = model.n;
    bz_align_work_free(&ran);
    return *wanted + *work ? 2 * common / (*wanted + *work) : 0;
}

/* Whether pieces with so many convolutions may be whole iterations, of which the recording tells a part. */
static bool may_be_part(const bz_trace *t, const bz_layers *layers, int all, bz_arena *arena)
{
    bz_align_work ran;
    int others = all;
    if (!bz_align_onednn_alone(t))
        return false;
    for (int i = 0; i < layers->n; i++)
        others -= bz_align_unlogged(&layers->layer[i]);
    bz_align_work_take(t, arena, &ran);
    int seen = ran.count[BZ_WORK_CONV];
    bz_align_work_free(&ran);
    return others > 0 && seen >= FITS * others && seen <= all;
}

/* Of an iteration of training, what a recording is held against by its sequence: its way back is told by another one. */
static bool is_forward(const bz_layers *layers, int i)
{
    return !layers->phase || layers->phase[i] == BZ_TRAIN_FORWARD;
}

/* Multiplications of an iteration over those of the model. A batch of products may be one layer and many calls, which their numbers do not
 * tell. 0: one of both does not tell them. */
static double multiplied(const bz_trace *t, const bz_layers *layers, bz_arena *arena)
{
    bz_rebuilt ran;
    double wanted = 0, seen = 0;
    bz_rebuild(t, arena, &ran);
    for (int i = 0; i < layers->n; i++)
        if (!layers->layer[i].n_bodies && (!ran.partial || is_forward(layers, i)))
            wanted += (double)layers->layer[i].macs;
    for (int i = 0; ran.layers && i < ran.layers->n; i++)
        seen += (double)ran.layers->layer[i].macs;
    return wanted > 0 ? seen / wanted : 0;
}

static bool is_one(double times)
{
    return times > FITS && times * FITS < 1;
}

typedef struct refit {
    bz_trace *t;
    const bz_layers *layers;
    const bz_align_work *model;
    bz_arena *arena;
    uint32_t before;
} refit;

/* So many iterations, or one less or more, where each then does the model's work: what was taken for one of many may be the one that has a model's
 * last product, too. */
static bool try_count(const refit *r, double wanted, bool by_products)
{
    int work, of_model;
    bool part;
    static const double OTHERS[] = {0, -1, 1};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS && wanted >= WHOLE; i++) {
        double count = wanted + OTHERS[i];
        if (!(count >= WHOLE && count < r->before * (double)MOST_TIMES) ||
            !bz_trace_recount(r->t, (uint32_t)(count + 0.5)))
            continue;
        if (by_products ? is_one(multiplied(r->t, r->layers, r->arena))
                        : likeness(r->model, r->t, r->arena, &work, &of_model, &part) >= FITS)
            return true;
        bz_trace_recount(r->t, r->before);
    }
    return false;
}

bool bz_recording_refit(bz_trace *t, const bz_layers *layers)
{
    BZ_SCOPED(bz_arena) arena = {0};
    BZ_SCOPED(bz_align_work) model = {0};
    refit r = {t, layers, &model, &arena, t->n_iterations};
    bool changed = false, part = false;
    int work = 0, of_model = 0;
    for (int i = 0; i < layers->n; i++)
        if (is_forward(layers, i))
            bz_align_work_add(&model, &layers->layer[i]);
    bool enough = model.n >= LEAST_RECOUNTED; /* multiplications tell of a short model, too */
    if (r.before && t->origin == BZ_ITERATION_DETECTED) {
        double alike = likeness(&model, t, &arena, &work, &of_model, &part),
               wanted = work && of_model ? (double)r.before * work / of_model : 0;
        bool fits = enough && ((alike >= FITS && work >= LEAST_RECOUNTED) ||
                               may_be_part(t, layers, model.count[BZ_WORK_CONV], &arena));
        double times = fits ? 1 : multiplied(t, layers, &arena); /* rebuilds what ran: only where nothing else tells */
        if (is_one(times))
            bz_trace_settle(t);
        else if (enough && alike < FITS)
            changed = ((part || times > 1) && try_count(&r, r.before * times, true)) ||
                      ((part || wanted > r.before) && try_count(&r, wanted, false));
    }
    if (changed)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "by what repeats there were %u iterations; the model does %.3g times the work of one of these, "
                       "so %u were taken",
                       r.before, (double)r.before / t->n_iterations, t->n_iterations);
    return changed;
}
