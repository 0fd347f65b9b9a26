/* The whole rule: residuals over problems and over machines. */
#include "predict/predictor.h"

#include "predict/constants.h"
#include "predict/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const bz_predicted_names[BZ_PREDICTED_N] = {"record", "neighbours", "batches",
                                                        "scaled", "learned",    "roofline"};

double bz_predictor_roofline(const bz_predictor *p, const bz_shape *s, const bz_machine *m, double floor)
{
    return log(bz_shape_roofline(s, m, isnan(floor) ? 0 : floor, p->kinship[0].margin));
}

typedef struct kind_rows {
    const bz_shape **shape;
    double *y;
    int n;
} kind_rows;

/* The rows of one kind of which `column` columns have a value. y: NAN where none. */
static void learn_kinds(const bz_samples *s, const bool *known, int columns,
                        double (*value)(void *, int row, int column), void *user, const double *mean, double constant,
                        double noise, bz_arena *arena, bz_learned *out)
{
    kind_rows rows = {bz_alloc((size_t)s->n + 1, sizeof *rows.shape),
                      bz_alloc(((size_t)s->n + 1) * (size_t)(columns ? columns : 1), sizeof *rows.y), 0};
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++) {
        rows.n = 0;
        for (int i = 0; i < s->n; i++) {
            bool any = false;
            if (s->shape[i].kind != kind || (known && !known[i]))
                continue;
            for (int c = 0; c < columns; c++) {
                double v = rows.y[rows.n * columns + c] = value(user, i, c);
                any |= !isnan(v);
            }
            rows.shape[rows.n] = &s->shape[i];
            rows.n += any;
        }
        bz_learned_fit(rows.shape, rows.y, rows.n, columns, mean, constant, noise, arena, &out[kind]);
    }
    free(rows.shape);
    free(rows.y);
}

static double residual(void *user, int row, int column)
{
    const bz_predictor *p = user;
    const bz_machine *m = &p->machine[column];
    double is = p->use[column] ? bz_predictor_log(p, row, column) : NAN;
    return isnan(is) ? NAN : is - bz_predictor_roofline(p, &p->samples->shape[row], m, m->floor);
}

double bz_predictor_log(const bz_predictor *p, int row, int machine)
{
    const bz_samples *s = p->samples;
    if (p->is_direct)
        return s->direct[(size_t)row * (size_t)s->machines + (size_t)machine];
    bool other = p->transformed && p->samples->shape[row].transformable && !bz_machine_transforms(&p->machine[machine]);
    return other ? NAN : bz_samples_log(s, row, machine);
}

/* Whether some machine is fastest at some problem by transforming. */
static bool any_transformed(const bz_predictor *p)
{
    const bz_samples *s = p->samples;
    for (int i = 0; i < s->n && s->direct; i++)
        for (int m = 0; m < s->machines && (!p->known || p->known[i]); m++) {
            size_t at = (size_t)i * (size_t)s->machines + (size_t)m;
            if (p->use[m] && !s->machine[m].gpu && !isnan(s->log[at]) && !(s->direct[at] <= s->log[at]))
                return true;
        }
    return false;
}

static bz_predictor *make(const bz_samples *s, const bool *use, const bool *known, const bz_kinship *kinship,
                          bool direct)
{
    bz_predictor *p = bz_zeroed(1, sizeof *p);
    p->told = bz_zeroed(1, sizeof *p->told);
    p->samples = s;
    p->known = known;
    p->machine = s->machine;
    p->machines = s->machines;
    p->use = BZ_NEW(&p->arena, bool, s->machines);
    memcpy(p->kinship, kinship ? kinship : bz_kinships, sizeof p->kinship);
    for (int m = 0; m < s->machines; m++)
        p->use[m] = (!use || use[m]) && !isnan(s->machine[m].floor);
    p->is_direct = direct;
    p->transformed = !direct && any_transformed(p);
    learn_kinds(s, known, s->machines, residual, p, NULL, 0, NOISE, &p->arena, p->learned);
    return p;
}

bz_predictor *bz_predictor_new(const bz_samples *s, const bool *use, const bool *known, const bz_kinship *kinship)
{
    bz_predictor *p = make(s, use, known, kinship, false);
    bz_ways_choose(p);
    if (p->transformed) {
        p->direct = make(s, use, known, kinship, true);
        bz_ways_choose(p->direct);
    }
    return p;
}

void bz_predictor_forget(bz_predictor *p)
{
    p->samples = NULL;
    if (p->direct)
        p->direct->samples = NULL;
}

void bz_predictor_free(bz_predictor *p)
{
    if (p)
        bz_predictor_free(p->direct);
    if (p && p->told) {
        bz_map_free(&p->told->map);
        bz_map_free(&p->told->texts);
        free(p->told->at);
        free(p->told->family);
        bz_arena_free(&p->told->arena);
        free(p->told);
    }
    if (p)
        bz_arena_free(&p->arena);
    free(p);
}

int bz_predictor_only(bz_predictor *p, bool gpu, const char *const *name, int n, bz_error *err)
{
    bool wanted[BZ_NEIGHBOURS] = {0};
    if (p->direct && bz_predictor_only(p->direct, gpu, name, n, err))
        return -1;
    for (int i = 0; i < n; i++) {
        int found = 0, other = 0;
        for (int m = 0; m < p->machines; m++)
            if (p->use[m] && bz_machine_is(&p->machine[m], name[i])) {
                wanted[m] = p->machine[m].gpu == gpu;
                found += wanted[m], other += !wanted[m];
            }
        if (!found && other)
            return bz_fail(err, BZ_USAGE, "--from %s: a %s tells nothing of %s, which run other libraries", name[i],
                           gpu ? "processor" : "GPU", gpu ? "GPUs" : "processors");
        if (!found)
            return bz_fail(err, BZ_USAGE, "--from %s: nothing was learned of such a system", name[i]);
    }
    for (int m = 0; m < p->machines; m++)
        p->use[m] = wanted[m];
    bz_ways_choose(p);
    return 0;
}

/* The same with so few items that something as large is known: what is larger keeps the device as busy, and takes longer by its items alone. */
static bz_shape as_large(const bz_learned *l, const bz_shape *s)
{
    bz_shape out = *s;
    double most = -INFINITY;
    for (int i = 0; i < l->n; i++)
        most = fmax(most, l->point[i]->x[s->size]);
    double beyond = s->items > 1 ? fmin(s->x[s->size] - most, log(s->items)) : 0;
    for (int i = 0; i < s->n && beyond > 0; i++)
        out.x[i] -= beyond * s->grows[i];
    return out;
}

/* The residuals of a shape on all machines, as one kind tells them; behind them how near its nearest point is. They are worked out once:
 * fifty systems ask for the same. */
static const double *told(const bz_predictor *p, const bz_learned *l, const bz_shape *s)
{
    struct bz_told *t = p->told;
    double key[BZ_SHAPE + 1] = {(double)(l - p->learned)};
    memcpy(key + 1, s->x, (size_t)s->n * sizeof *key);
    uint32_t at = bz_map_get(&t->map, key, sizeof key);
    if (at != BZ_MAP_NONE)
        return t->at[at];
    at = t->map.n;
    BZ_ROOM(t->at, at);
    double *values = BZ_NEW(&t->arena, double, l->machines + 1);
    bz_shape known = as_large(l, s);
    bz_learned_at(l, &known, values);
    values[l->machines] = bz_learned_nearest(l, s);
    t->at[at] = values;
    bz_map_add(&t->map, bz_arena_dup(&t->arena, key, sizeof key), sizeof key, at);
    return values;
}

static bool is_learned(const bz_predictor *p, int kind, int machine)
{
    return p->learned[kind].n && p->learned[kind].trained[machine] >= FEWEST;
}

/* What was learned of the kind; where it was never met, of the same with or without post-operations; of convolutions or
 * functions of one value, unless it has to be of the kind. NULL: of none. */
static const bz_learned *kind_of(const bz_predictor *p, const bz_shape *s, int machine, bool of_kind)
{
    int kind = s->kind % BZ_SHAPE_FUSED, stand_in = s->product ? BZ_PROBLEM_CONV : BZ_PROBLEM_ACTIVATION;
    const int kinds[] = {s->kind, kind, kind + BZ_SHAPE_FUSED, stand_in};
    for (int i = 0; i < (of_kind ? 3 : 4); i++)
        if (is_learned(p, kinds[i], machine))
            return &p->learned[kinds[i]];
    return NULL;
}

bool bz_predictor_met(const bz_predictor *p, const bz_shape *s)
{
    for (int m = 0; m < p->machines; m++)
        if (is_learned(p, s->kind, m))
            return true;
    return false;
}

/* The last member of a shape tells the type. */
bool bz_predictor_met_type(const bz_predictor *p, bz_dtype dtype)
{
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++)
        for (int i = 0; i < p->learned[kind].n; i++) {
            const bz_shape *point = p->learned[kind].point[i];
            if ((point->x[point->n - 1] > 0) == (dtype != BZ_F32))
                return true;
        }
    return false;
}

struct bz_aim {
    const bz_predictor *p;
    bz_machine machine;
    double floor, floor_unsure; /* variance of its logarithm */
    const bz_samples *records;
    int own; /* its number in them; -1: none */
    const bool *measured;
    bool *use;
    bool met[2]; /* problems in f32, in other types */
    struct mixture {
        uint64_t exact, batch; /* machines with a record of the problem; of the same with other items */
        double weight[BZ_NEIGHBOURS], variance;
        bool ready;
    } mixture[BZ_GROUPS];   /* the last one that was asked for */
    bz_learned *correction; /* by kind; NULL: no records of its own */
    int corrected;          /* records that it rests on */
    double alone;           /* what they are off by, each without itself */
    bz_arena arena;
};

/* The family of a problem by its text, which is parsed once: fifty systems ask for the same. */
static int family_of(const bz_predictor *p, const char *text, double *items)
{
    struct bz_told *t = p->told;
    uint32_t known = t->texts.n;
    *items = 0;
    if (!text || !*text)
        return -1;
    uint32_t at = bz_map_number(&t->texts, &t->arena, text, strlen(text));
    if (at == known) {
        BZ_ROOM(t->family, at);
        t->family[at].first = bz_samples_family(p->samples, text, &t->family[at].items);
    }
    *items = t->family[at].items;
    return t->family[at].first;
}

static int problem_of(const bz_predictor *p, const char *text)
{
    const bz_samples *s = p->samples;
    uint32_t at = s && text ? bz_map_get(&s->map, text, strlen(text)) : BZ_MAP_NONE;
    return at == BZ_MAP_NONE || (p->known && !p->known[at]) ? -1 : (int)at;
}

/* What is learned over problems is off by itself; times of the very problem are not, and those of the same with other items little. */
static const struct mixture *mix(bz_aim *a, int group, uint64_t exact, uint64_t batch)
{
    struct mixture *x = &a->mixture[group];
    double unsure[BZ_NEIGHBOURS], least = exact ? 0 : batch ? BATCH_UNSURE : LEARNED_UNSURE;
    if (x->ready && x->exact == exact && x->batch == batch)
        return x;
    for (int m = 0; m < a->p->machines; m++)
        unsure[m] = (exact >> m & 1 ? 0 : batch >> m & 1 ? BATCH_UNSURE : LEARNED_UNSURE) - least;
    x->ready = true;
    x->exact = exact;
    x->batch = batch;
    x->variance =
        bz_neighbours(a->p->machine, a->use, a->p->machines, &a->machine, &a->p->kinship[group], unsure, x->weight);
    return x;
}

/* What neighbours tell of a problem. */
typedef struct told_by {
    double exact, batch; /* shares of it that rest on records of this very problem, and of the same with other items */
    double variance;
    bool scaled; /* from one of them */
} told_by;

/* Residuals of a problem on the machines that have a record of it, or of the same with other items; NAN on the others. */
static void residuals_of(const bz_aim *a, int problem, const char *text, const bz_shape *s, double *out,
                         uint64_t *exact, uint64_t *batch)
{
    const bz_predictor *p = a->p;
    double items = 0;
    int family = -2; /* nobody asked yet */
    *exact = *batch = 0;
    for (int m = 0; m < p->machines; m++) {
        out[m] = NAN;
        if (!a->use[m] || !p->samples)
            continue;
        double is = problem >= 0 ? bz_predictor_log(p, problem, m) : NAN;
        if (!isnan(is)) {
            out[m] = is - bz_predictor_roofline(p, s, &p->machine[m], p->machine[m].floor);
            *exact |= (uint64_t)1 << m;
            continue;
        }
        if (family == -2)
            family = family_of(p, text, &items);
        out[m] = family >= 0 ? bz_predictor_batches(p, a->use, family, items, problem, m) : NAN;
        *batch |= (uint64_t)!isnan(out[m]) << m;
    }
}

/* The residual that the neighbours tell. NAN: none tells. */
static double neighbours(bz_aim *a, int problem, const char *text, const bz_shape *s, told_by *by)
{
    const bz_predictor *p = a->p;
    double sum = 0, all = 0, mean = 0, residual_on[BZ_NEIGHBOURS];
    const bz_learned *of = NULL;
    const double *values = NULL; /* that `of` tells of all machines */
    int n = 0;
    uint64_t exact, batch;
    residuals_of(a, problem, text, s, residual_on, &exact, &batch);
    const struct mixture *x = mix(a, bz_shape_group(s), exact, batch);
    *by = (told_by){.variance = x->variance};
    bool of_kind = exact || batch; /* some machine tells of the kind: no other kind stands in on the rest */
    for (int m = 0; m < p->machines && !of_kind; m++)
        of_kind = a->use[m] && kind_of(p, s, m, true);
    for (int m = 0; m < p->machines; m++) {
        double r = residual_on[m];
        if (x->weight[m] == 0)
            continue;
        if (isnan(r)) {
            const bz_learned *l = kind_of(p, s, m, of_kind);
            if (!l)
                continue;
            if (l != of)
                values = told(p, of = l, s);
            r = values[m];
        }
        by->exact += exact >> m & 1 ? fabs(x->weight[m]) : 0;
        by->batch += batch >> m & 1 ? fabs(x->weight[m]) : 0;
        sum += x->weight[m] * r;
        all += x->weight[m];
        mean += r, n++;
    }
    /* those that tell may be far from this machine, and their weights next to nothing or below: then each counts the same */
    return all > 0.2 ? sum / all : n ? mean / n : NAN;
}

static double base(bz_aim *a, int problem, const char *text, const bz_shape *s, told_by *by)
{
    double r = neighbours(a, problem, text, s, by);
    return bz_predictor_roofline(a->p, s, &a->machine, a->floor) + (isnan(r) ? 0 : r);
}

int bz_aim_most_alike(const bz_aim *a, int problem)
{
    const bz_machine *to = &a->machine;
    int best = -1;
    double least = INFINITY;
    for (int m = 0; m < a->p->machines && problem >= 0; m++) {
        const bz_machine *from = &a->p->machine[m];
        double apart = fabs(from->generation - to->generation) + 0.1 * fabs(log(from->f32 / to->f32));
        if (a->use[m] && from->gpu == to->gpu && apart < least && !isnan(bz_predictor_log(a->p, problem, m)))
            least = apart, best = m;
    }
    return best;
}

static double told_as(bz_aim *a, int way, int problem, const char *text, const bz_shape *s, told_by *by)
{
    if (way == BZ_WAY_RULE)
        return base(a, problem, text, s, by);
    if (way == BZ_WAY_LEARNED)
        return base(a, -1, NULL, s, by);
    int from = bz_aim_most_alike(a, problem);
    if (from < 0)
        return NAN;
    by->scaled = true;
    return bz_predictor_log(a->p, problem, from) +
           log(bz_scaling_of((bz_scaling)(way - BZ_WAY_SCALED), s, bz_samples_intensity(a->p->samples, problem, from),
                             &a->p->machine[from], &a->machine));
}

double bz_aim_told(bz_aim *a, int way, int problem, const char *text, const bz_shape *s)
{
    told_by by;
    return told_as(a, way, problem, text, s, &by);
}

/* By the way that was chosen for its kind, else by the rule. */
static double best(bz_aim *a, int problem, const char *text, const bz_shape *s, told_by *by)
{
    int way = a->p->choice[a->machine.gpu][s->kind].way;
    double rule = base(a, problem, text, s, by), chosen = way ? told_as(a, way, problem, text, s, by) : rule;
    return isnan(chosen) ? rule : chosen;
}

static double own_residual(void *user, int row, int column)
{
    bz_aim *a = user;
    const bz_samples *s = a->records;
    told_by by;
    double is = a->measured && !a->measured[row] ? NAN : bz_samples_log(s, row, a->own);
    (void)column;
    return isnan(is) ? NAN : is - best(a, problem_of(a->p, s->text[row]), s->text[row], &s->shape[row], &by);
}

static void correct(bz_aim *a)
{
    const bz_samples *s = a->records;
    const bool *known = s == a->p->samples ? a->p->known : NULL;
    double sum = 0, mean;
    for (int i = 0; i < s->n; i++) {
        double r = known && !known[i] ? NAN : own_residual(a, i, 0);
        if (!isnan(r))
            sum += r, a->corrected++;
    }
    if (!a->corrected)
        return;
    mean = sum / (a->corrected + AGAINST);
    a->correction = BZ_NEW(&a->arena, bz_learned, BZ_SHAPE_KINDS);
    learn_kinds(s, known, 1, own_residual, a, &mean, OWN_CONSTANT, OWN_NOISE, &a->arena, a->correction);
    double squares = 0;
    int judged = 0;
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++)
        squares += a->correction[kind].squares, judged += a->correction[kind].judged;
    a->alone = judged ? sqrt(squares / judged) : 0;
}

/* `without`: this machine tells nothing; -1: all do. */
static bz_aim *aim(const bz_predictor *p, const bz_machine *machine, int without)
{
    bz_aim *a = bz_zeroed(1, sizeof *a);
    *a = (bz_aim){.p = p, .machine = *machine, .own = -1};
    a->use = BZ_NEW(&a->arena, bool, p->machines);
    for (int m = 0; m < p->machines; m++)
        a->use[m] = p->use[m] && m != without;
    a->met[0] = bz_predictor_met_type(p, BZ_F32);
    a->met[1] = bz_predictor_met_type(p, BZ_F16);
    a->floor = bz_floor_told(p->machine, a->use, p->machines, machine, &a->floor_unsure);
    return a;
}

bz_aim *bz_aim_without(const bz_predictor *p, int machine)
{
    return aim(p, &p->machine[machine], machine);
}

bz_aim *bz_predictor_aim(const bz_predictor *p, const bz_machine *machine, const bz_samples *records, int own,
                         const bool *measured)
{
    p = p->direct && !bz_machine_transforms(machine) ? p->direct : p;
    bz_aim *a = aim(p, machine, records == p->samples ? own : -1);
    a->records = records;
    a->own = own;
    a->measured = measured;
    if (own >= 0)
        correct(a);
    return a;
}

void bz_aim_free(bz_aim *a)
{
    if (a)
        bz_arena_free(&a->arena);
    free(a);
}

const bz_predictor *bz_aim_predictor(const bz_aim *a)
{
    return a->p;
}

bool bz_aim_met_type(const bz_aim *a, bz_dtype dtype)
{
    return a->met[dtype != BZ_F32];
}

int bz_aim_beyond(const bz_aim *a)
{
    double first = INFINITY, last = -INFINITY, is = a->machine.generation;
    for (int m = 0; m < a->p->machines; m++)
        if (a->use[m] && a->p->machine[m].gpu == a->machine.gpu) {
            first = fmin(first, a->p->machine[m].generation);
            last = fmax(last, a->p->machine[m].generation);
        }
    return a->corrected ? 0 : is > last ? 1 : is < first ? -1 : 0;
}

/* The logarithm of its own record; NAN: none. */
static double own_record(const bz_aim *a, const char *text)
{
    uint32_t at = a->own >= 0 && text ? bz_map_get(&a->records->map, text, strlen(text)) : BZ_MAP_NONE;
    bool counts = at != BZ_MAP_NONE && (!a->measured || a->measured[at]) &&
                  (a->records != a->p->samples || !a->p->known || a->p->known[at]);
    return counts ? bz_samples_log(a->records, (int)at, a->own) : NAN;
}

/* Nine of ten draws are within 1.64 standard deviations. */
static const double DRAWS = 1.64 / BZ_NINE_OF_TEN;

/* How unsure a prediction is: by machines, of which records of one's own leave the less the nearer one is, but by the floor as far as that is what
 * the call takes; and by shapes, where no machine has the very problem. Of a type that was met nowhere no shape tells: three GPUs did ResNet-50 in
 * f16 in 1.5 to 1.7 times what f32 told. */
static double spread_of(const bz_aim *a, const bz_shape *s, double seconds, double variance, double exact)
{
    double least = fmin(a->floor / seconds, 1);
    variance = (1 - least) * (1 - least) * fmin(variance, 2) + least * least * DRAWS * DRAWS * a->floor_unsure;
    double own = a->correction ? bz_learned_nearest(&a->correction[s->kind], s) : 0, near = exact;
    for (int m = 0; m < a->p->machines && near <= exact && exact < 1 && a->met[s->dtype != BZ_F32]; m++) {
        const bz_learned *l = a->use[m] ? kind_of(a->p, s, m, true) : NULL;
        if (l)
            near = fmax(exact, told(a->p, l, s)[l->machines]);
    }
    return sqrt(variance * (1 - own * own) + SHAPES * (1 - near * near) * (1 - fmin(exact, 1)) + LEAST);
}

/* Of a kind with few records of one's own those of all kinds tell. */
static double alone_of(const bz_aim *a, const bz_shape *s)
{
    const bz_learned *l = a->correction ? &a->correction[s->kind] : NULL;
    double off = l && l->judged >= FEWEST ? sqrt(l->squares / l->judged) : a->alone;
    return DRAWS * off;
}

bz_predicted_time bz_predict(bz_aim *a, const char *text, const bz_shape *s)
{
    int problem = problem_of(a->p, text);
    told_by by;
    double is = best(a, problem, text, s, &by), own = own_record(a, text);
    bz_predicted_time out = {.by = by.scaled                   ? BZ_PREDICTED_SCALED
                                   : by.exact > 0.5            ? BZ_PREDICTED_NEIGHBOURS
                                   : by.exact + by.batch > 0.5 ? BZ_PREDICTED_BATCHES
                                                               : BZ_PREDICTED_LEARNED};
    if (!isfinite(by.variance))
        out.by = BZ_PREDICTED_ROOFLINE;
    if (!isnan(own))
        return (bz_predicted_time){.seconds = exp(own), .by = BZ_PREDICTED_RECORD};
    if (a->correction) {
        const bz_learned *l = &a->correction[s->kind];
        double off = l->mean[0];
        if (l->n && l->trained[0])
            bz_learned_at(l, s, &off);
        is += off;
    }
    out.seconds = fmax(exp(is), bz_shape_least(s, &a->machine));
    out.spread = spread_of(a, s, out.seconds, by.variance, by.exact);
    out.alone = alone_of(a, s);
    return out;
}
