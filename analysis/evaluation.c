/* Many analyses side by side: coverage, ratios, geometric means. */
#include "analysis/analysis.h"
#include "base/sort.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What well-known models are for, by how their file's name begins; the longer ones first. */
static const struct {
    const char *task, *names;
} TASKS[] = {
    {"segmentation", "deeplab fcn_ lraspp unet"},
    {"object detection", "fasterrcnn fcos retinanet ssd yolo"},
    {"instance segmentation", "maskrcnn"},
    {"key points", "keypointrcnn"},
    {"video classification", "r3d mvit"},
    {"optical flow", "raft"},
    {"language understanding", "bert roberta distilbert"},
    {"text generation", "gpt llama t5"},
    {"speech recognition", "whisper wav2vec"},
    {"image classification",
     "alexnet convnext densenet efficientnet googlenet inception maxvit mnasnet mobilenet regnet "
     "resnet resnext shufflenet squeezenet swin vgg vit_ wide_resnet"},
};

static const char *task_of(const char *path)
{
    const char *name = bz_file_name(path), *words;
    char word[32];
    for (size_t i = 0; i < sizeof TASKS / sizeof *TASKS; i++)
        for (words = TASKS[i].names; bz_word_next(&words, word, sizeof word);)
            if (!strncasecmp(name, word, strlen(word)))
                return TASKS[i].task;
    return NULL;
}

static bool counts(const bz_layer *layer)
{
    return layer->class != BZ_CONSTANT;
}

static int model_of(bz_evaluation *e, const bz_analysis *a, int number)
{
    const bz_bound *b = &a[number].bound;
    for (int i = 0; i < e->n_models; i++)
        if (!strcmp(e->model[i].path, b->model))
            return i;
    BZ_SCOPED(bz_unique) own = {0};
    bz_unique_add(&own, b->layers, 0, counts);
    e->model[e->n_models] = (bz_evaluation_model){.path = b->model,
                                                  .task = task_of(b->model),
                                                  .layers = (int)own.n_layers,
                                                  .unique = own.n,
                                                  .macs = b->coverage.macs,
                                                  .first = number};
    return e->n_models++;
}

/* A ratio of two times that make sense. */
static double ratio(double from, double to)
{
    return from > 0 && to > 0 && isfinite(from) && isfinite(to) ? from / to : NAN;
}

static double lowest_joint(const bz_waterfall *w)
{
    double least = NAN;
    for (int i = 1; i < 1 << BZ_WAYS; i++)
        if (w->joint[i] > 0 && !(w->joint[i] >= least))
            least = w->joint[i];
    return least;
}

static void fill_row(bz_evaluation_row *row, const bz_analysis *a)
{
    const bz_bound *b = &a->bound;
    const bz_ladder *l = NULL;
    bz_goal goal = bz_bound_goal(b), written = bz_bound_written(b);
    for (int i = 0; i < a->n_ladders && !l; i++)
        if (isfinite(a->ladder[i].latency))
            l = &a->ladder[i];
    const bz_units *units = l && l->units ? l->units : a->units;
    for (int i = 0; i < BZ_RATIOS; i++)
        row->ratio[i] = NAN;
    row->measured = l ? l->latency : NAN;
    row->goal = goal;
    if (!goal.enough)
        return;
    row->ratio[BZ_RATIO_PARALLEL] = ratio(goal.sequential, goal.parallel);
    if (b->fused.wanted && written.enough)
        row->ratio[BZ_RATIO_FUSION] = ratio(b->sequential, b->fused.sequential);
    for (int i = 0; units && i < units->n_ways; i++) { /* greatest gain first */
        const bz_unit_way *w = &units->way[i];
        if (!w->layout && !w->calibrated && isfinite(w->gain) && isnan(row->ratio[BZ_RATIO_UNITS]))
            row->ratio[BZ_RATIO_UNITS] = ratio(goal.sequential, goal.sequential - fmax(w->gain, 0));
    }
    if (!l || l->defect || !bz_ladder_compares(l)) /* a bound above what was measured is none, nor one of other work */
        return;
    row->ratio[BZ_RATIO_MEASURED] = ratio(row->measured, goal.sequential);
    if (l->regret && l->regret->known > 0)
        row->ratio[BZ_RATIO_ALGORITHMS] = ratio(l->latency, l->latency - l->regret->loss);
    if (l->waterfall)
        row->ratio[BZ_RATIO_JOINT] = ratio(l->latency, lowest_joint(l->waterfall));
}

static bool is_of(const bz_analysis *a, const bz_evaluation_group *g)
{
    return !strcmp(a->bound.system, g->system) && a->bound.layers->batch == g->batch;
}

/* Geometric mean over the analyses of a group, or of all (NULL). */
static double mean_ratio(const bz_evaluation *e, const bz_analysis *a, bz_ratio which, const bz_evaluation_group *g,
                         int *known)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < e->n; i++) {
        double r = e->row[i].ratio[which];
        if (!(r > 0) || (g && !is_of(&a[i], g)))
            continue;
        sum += log(r);
        n++;
    }
    *known = n;
    return n ? exp(sum / n) : NAN;
}

/* The analysis of the same model on that system with that batch, whole; or -1. */
static int find(const bz_evaluation *e, const bz_analysis *a, int model, const char *system, int64_t batch)
{
    for (int i = 0; i < e->n; i++)
        if (e->row[i].model == model && !strcmp(a[i].bound.system, system) && a[i].bound.layers->batch == batch &&
            e->row[i].goal.enough && e->row[i].goal.sequential > 0)
            return i;
    return -1;
}

/* Geometric mean of a group's bounds over those of another group, for the models that both have: *known of them. */
static double against(const bz_evaluation *e, const bz_analysis *a, const bz_evaluation_group *g, const char *system,
                      int64_t batch, bool per_item, int *known)
{
    double sum = 0;
    int n = 0;
    for (int m = 0; m < e->n_models; m++) {
        int own = find(e, a, m, g->system, g->batch), other = find(e, a, m, system, batch);
        if (own < 0 || other < 0)
            continue;
        double items = per_item && g->batch > 0 && batch > 0 ? (double)batch / (double)g->batch : 1;
        sum += log(e->row[own].goal.sequential / e->row[other].goal.sequential * items);
        n++;
    }
    *known = n;
    return n ? exp(sum / n) : NAN;
}

static void fill_group(const bz_evaluation *e, const bz_analysis *a, bz_evaluation_group *g)
{
    double sum = 0;
    for (int m = 0; m < e->n_models; m++) {
        int i = find(e, a, m, g->system, g->batch);
        if (i < 0)
            continue;
        sum += log(e->row[i].goal.sequential);
        g->models++;
    }
    for (int i = 0; i < e->n; i++)
        g->rows += is_of(&a[i], g);
    g->sequential = g->models ? exp(sum / g->models) : NAN;
    int64_t first = g->batch;
    for (int i = e->n - 1; i >= 0; i--) /* the first batch that this system has */
        if (!strcmp(a[i].bound.system, g->system))
            first = a[i].bound.layers->batch;
    g->by_batch = against(e, a, g, g->system, first, true, &g->by_batch_known);
    g->by_system = against(e, a, g, a[0].bound.system, g->batch, false, &g->by_system_known);
    for (int r = 0; r < BZ_RATIOS; r++)
        g->ratio[r] = mean_ratio(e, a, (bz_ratio)r, g, &g->known[r]);
}

static void make_groups(bz_evaluation *e, const bz_analysis *a)
{
    for (int i = 0; i < e->n; i++) {
        const bz_bound *b = &a[i].bound;
        int g = 0;
        while (g < e->n_groups && (strcmp(e->group[g].system, b->system) != 0 || e->group[g].batch != b->layers->batch))
            g++;
        if (g == e->n_groups)
            e->group[e->n_groups++] = (bz_evaluation_group){.system = b->system, .batch = b->layers->batch};
    }
    for (int g = 0; g < e->n_groups; g++)
        fill_group(e, a, &e->group[g]);
}

/* "onednn" of "onednn jit:avx2 nhwc": variants begin with their backend. */
static size_t library_length(const char *variant)
{
    size_t n = 0;
    while (isalnum((unsigned char)variant[n]))
        n++;
    return n;
}

static bz_evaluation_library *library(bz_evaluation *e, const char *name, size_t len, bz_arena *arena)
{
    enum { MOST = 64 };
    for (int i = 0; i < e->n_libraries; i++)
        if (strlen(e->library[i].name) == len && !memcmp(e->library[i].name, name, len))
            return &e->library[i];
    if (e->n_libraries == MOST)
        return &e->library[MOST - 1];
    if (!e->library)
        e->library = BZ_NEW(arena, bz_evaluation_library, MOST);
    e->library[e->n_libraries].name = bz_arena_strn(arena, name, len);
    return &e->library[e->n_libraries++];
}

BZ_SORTS(by_time, bz_evaluation_library, BZ_THEN(BZ_ORDER(q->seconds, p->seconds), strcmp(p->name, q->name)));

static void make_libraries(bz_evaluation *e, const bz_analysis *a, bz_arena *arena)
{
    for (int i = 0; i < e->n; i++)
        for (int k = 0; k < a[i].bound.n; k++) {
            const bz_bound_layer *l = &a[i].bound.layer[k];
            bool priced = l->price.alternative != NULL;
            const char *name = priced && l->variant ? l->variant : "unpriced";
            bz_evaluation_library *lib = library(e, name, library_length(name), arena);
            lib->layers++;
            lib->macs += (double)l->layer->macs * l->times;
            lib->seconds += priced ? l->price.seconds * l->times : 0;
        }
    BZ_QSORT(e->library, e->n_libraries, by_time);
}

void bz_evaluation_make(const bz_analysis *a, int n, bz_arena *arena, bz_evaluation *out)
{
    BZ_SCOPED(bz_unique) all = {0};
    *out = (bz_evaluation){.model = BZ_NEW(arena, bz_evaluation_model, n),
                           .row = BZ_NEW(arena, bz_evaluation_row, n),
                           .group = BZ_NEW(arena, bz_evaluation_group, n),
                           .n = n};
    for (int i = 0; i < n; i++) {
        out->row[i].model = model_of(out, a, i);
        fill_row(&out->row[i], &a[i]);
    }
    for (int m = 0; m < out->n_models; m++)
        bz_unique_add(&all, a[out->model[m].first].bound.layers, m, counts);
    out->layers = all.n_layers;
    out->unique = all.n;
    for (int r = 0; r < BZ_RATIOS; r++)
        out->mean[r] = mean_ratio(out, a, (bz_ratio)r, NULL, &out->known[r]);
    make_groups(out, a);
    make_libraries(out, a, arena);
}
