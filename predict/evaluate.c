/* Predictions held against what was left out. */
#include "base/sort.h"
#include "predict/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const bz_rule_names[BZ_RULES] = {"predicted", "peak",  "bandwidth", "multiprocessors",
                                             "roofline",  "waves", "dense"};

enum { THIRDS = 3 };
enum { FEW_RECORDS = 20 }; /* a system with fewer is not left out: there is too little to be held against */

typedef struct evaluating {
    const bz_samples *s;
    const bz_workload *work;
    int n;
    const bz_without *without; /* [machines] */
    bz_arena *arena;
    bz_judgement *out;
    int planes, *plane; /* predictions of a problem that several folds make; [n]: whose fold a workload is judged in */
    double *told, *spread, *alone; /* [planes * problems * machines]: logarithm; NAN: not predicted */
    double *score;                 /* [n * machines]: a total's error in units of its spread; NAN: none */
    bool *judged;                  /* [n * machines] */
} evaluating;

static size_t cell(const evaluating *e, int row, int machine)
{
    return (size_t)row * (size_t)e->s->machines + (size_t)machine;
}

static size_t cells(const evaluating *e)
{
    return cell(e, e->s->n, 0);
}

static double quantile(double *v, int n, double q)
{
    bz_sort_numbers(v, (size_t)n);
    return n ? bz_quantile(v, (size_t)n, q) : (double)NAN;
}

/* Of a machine what was recorded, of problems for which which[i] holds (NULL: all), by a predictor alone or with those of its records
 * for which measured[i] does (NULL: none). */
static void predict(evaluating *e, const bz_predictor *p, int machine, const bool *measured, const bool *which,
                    int plane)
{
    const bz_samples *s = e->s;
    bz_aim *a = bz_predictor_aim(p, &s->machine[machine], measured ? s : NULL, measured ? machine : -1, measured);
    for (int i = 0; i < s->n; i++)
        if ((!which || which[i]) && !isnan(bz_samples_log(s, i, machine))) {
            bz_predicted_time is = bz_predict(a, s->text[i], &s->shape[i]);
            size_t at = (size_t)plane * cells(e) + cell(e, i, machine);
            e->told[at] = log(is.seconds);
            e->spread[at] = is.spread;
            e->alone[at] = is.alone;
        }
    bz_aim_free(a);
}

/* Machines of the same sort, without this one. Returns how many. */
static int others_of(const bz_samples *s, int machine, bool *use)
{
    int n = 0;
    for (int m = 0; m < s->machines; m++) {
        use[m] = m != machine && s->machine[m].gpu == s->machine[machine].gpu;
        n += use[m];
    }
    return n;
}

/* `trained`: by what was learned alone, as a set of --train is used without the records behind it. */
static void leave_systems(evaluating *e, bool trained)
{
    const bz_samples *s = e->s;
    bool use[BZ_NEIGHBOURS], few = e->out->few.share > 0 || e->out->few.seconds > 0;
    double spent = 0;
    int left = 0;
    for (int d = 0; d < s->machines; d++) {
        if (!others_of(s, d, use) || bz_samples_of(s, d) < FEW_RECORDS)
            continue;
        bz_predictor *own = trained ? bz_predictor_new(s, use, NULL, e->without[d].kinship) : NULL,
                     *p = trained ? own : e->without[d].predictor;
        if (trained)
            bz_predictor_forget(own);
        double took = 0;
        BZ_FREED bool *measured = NULL;
        if (few) {
            bz_aim *a = bz_predictor_aim(p, &s->machine[d], NULL, -1, NULL);
            measured = bz_first_measured(s, e->work, e->n, e->out->few, a, d, use, &took);
            bz_aim_free(a);
        }
        predict(e, p, d, measured, NULL, 0);
        spent += took;
        left++;
        bz_predictor_free(own);
    }
    e->out->spent = few && left ? spent / left : NAN;
}

static bool same_fold(const bz_workload *a, const bz_workload *b, bz_leave leave)
{
    return leave == BZ_LEAVE_BATCH ? a->batch == b->batch : !strcmp(a->name, b->name);
}

/* Networks, or batches, in the order in which they come: number[w] of each workload. Returns how many there are. */
static int number_folds(const bz_workload *work, int n, bz_leave leave, int *number)
{
    int folds = 0;
    for (int w = 0; w < n; w++) {
        number[w] = folds;
        for (int v = 0; v < w && number[w] == folds; v++)
            number[w] = same_fold(&work[v], &work[w], leave) ? number[v] : folds;
        folds += number[w] == folds;
    }
    return folds;
}

/* Whether one of them can be left out with another of its sort to predict it. */
static bool can_leave_system(const bz_samples *s)
{
    for (int d = 0; d < s->machines; d++)
        for (int m = 0; m < s->machines && bz_samples_of(s, d) >= FEW_RECORDS; m++)
            if (m != d && s->machine[m].gpu == s->machine[d].gpu && bz_samples_of(s, m))
                return true;
    return false;
}

const char *bz_judge_missing(const bz_samples *s, const bz_workload *work, int n, bz_leave leave)
{
    BZ_FREED int *number = bz_alloc((size_t)n + 1, sizeof *number);
    int folds = number_folds(work, n, leave, number);
    if (leave != BZ_LEAVE_NETWORK && leave != BZ_LEAVE_BATCH && !can_leave_system(s))
        return "it takes two GPUs or two processors, and 20 records of the one that is left out";
    if (leave == BZ_LEAVE_BOTH && folds < THIRDS)
        return "it takes three networks that have records";
    if (leave == BZ_LEAVE_NETWORK && folds < 2)
        return "no more than one network has records";
    return leave == BZ_LEAVE_BATCH && folds < 2 ? "no more than one batch has records" : NULL;
}

/* Problems of workloads outside of a fold are known, those of the fold alone are not. in[i]: it has the problem. */
static void split(const evaluating *e, const int *number, int folds, int fold, bool *known, bool *in)
{
    memset(known, 0, (size_t)e->s->n * sizeof *known);
    memset(in, 0, (size_t)e->s->n * sizeof *in);
    for (int w = 0; w < e->n; w++)
        for (int k = 0; k < e->work[w].n; k++)
            *(number[w] % folds == fold ? &in[e->work[w].problem[k]] : &known[e->work[w].problem[k]]) = true;
}

/* Problems of no other network, or batch, are not known on any machine; those machines' other records are. */
static void leave_work(evaluating *e, const int *number, int folds, bool *known, bool *lost)
{
    const bz_samples *s = e->s;
    for (int fold = 0; fold < folds; fold++) {
        bz_kinship kinship[BZ_GROUPS];
        split(e, number, folds, fold, known, lost);
        for (int i = 0; i < s->n; i++)
            lost[i] &= !known[i];
        bz_kinship_choose(s, NULL, known, kinship);
        bz_predictor *p = bz_predictor_new(s, NULL, known, kinship);
        for (int d = 0; d < s->machines; d++)
            predict(e, p, d, known, lost, 0);
        bz_predictor_free(p);
    }
}

/* A machine and networks together: nothing was chosen or learned by either. */
static void leave_both(evaluating *e, const int *number, bool *known, bool *in)
{
    const bz_samples *s = e->s;
    bool use[BZ_NEIGHBOURS];
    for (int w = 0; w < e->n; w++)
        e->plane[w] = number[w] % THIRDS;
    for (int third = 0; third < THIRDS; third++) {
        split(e, number, THIRDS, third, known, in);
        for (int d = 0; d < s->machines; d++) {
            bz_kinship kinship[BZ_GROUPS];
            if (!others_of(s, d, use) || bz_samples_of(s, d) < FEW_RECORDS)
                continue;
            bz_kinship_choose(s, use, known, kinship);
            bz_predictor *p = bz_predictor_new(s, use, known, kinship);
            predict(e, p, d, NULL, in, third);
            bz_predictor_free(p);
        }
    }
}

static void leave_out(evaluating *e, bz_leave leave)
{
    BZ_FREED bool *known = bz_alloc((size_t)e->s->n + 1, sizeof *known),
                  *in = bz_alloc((size_t)e->s->n + 1, sizeof *in);
    BZ_FREED int *number = bz_alloc((size_t)e->n + 1, sizeof *number);
    int folds = number_folds(e->work, e->n, leave, number);
    if (leave == BZ_LEAVE_SYSTEM || leave == BZ_LEAVE_TRAINED)
        leave_systems(e, leave == BZ_LEAVE_TRAINED);
    else if (leave == BZ_LEAVE_BOTH)
        leave_both(e, number, known, in);
    else
        leave_work(e, number, folds, known, in);
}

typedef struct total {
    double is, told, spread; /* seconds; spread of the logarithm */
} total;

/* Predictions of the fold in which this workload is judged. */
static const double *told_of(const evaluating *e, const bz_workload *w)
{
    return e->told + (size_t)e->plane[w - e->work] * cells(e);
}

static total total_of(const evaluating *e, const bz_workload *w, int d)
{
    total t = {0};
    const double *predicted = told_of(e, w), *spread = e->spread + (predicted - e->told),
                 *alone = e->alone + (predicted - e->told);
    double squares = 0;
    for (int k = 0; k < w->n; k++) {
        size_t at = cell(e, w->problem[k], d);
        double is = exp(e->s->log[at]) * w->times[k], told = exp(predicted[at]) * w->times[k];
        if (isnan(e->s->log[at]))
            continue;
        if (isnan(predicted[at])) /* it was not left out */
            told = is;
        else
            t.spread += told * spread[at], squares += told * alone[at] * told * alone[at];
        t.is += is;
        t.told += told;
    }
    t.spread = t.told > 0 ? sqrt(t.spread * t.spread + squares) / t.told : 0;
    return t;
}

/* Whether a machine's records are of the whole network, or nearly. A classifier alone is none: some graphs hold their batch as a number, and then the
 * same classifier is part of all batches. */
static bool covers(const evaluating *e, const bz_workload *w, int d)
{
    double flops = 0, bytes = 0;
    for (int k = 0; k < w->n; k++) {
        const bz_shape *s = &e->s->shape[w->problem[k]];
        if (isnan(bz_samples_log(e->s, w->problem[k], d)))
            continue;
        flops += s->product ? w->times[k] * s->flops : 0;
        bytes += w->times[k] * s->bytes;
    }
    return bz_goal_enough(w->flops > 0 ? flops / w->flops : 1, bytes / w->bytes);
}

static void add_total(bz_error_sum *sum, const total *t, const double *other)
{
    sum->n++;
    sum->total[0] += fabs(t->told / t->is - 1);
    sum->bias += t->told / t->is - 1;
    sum->scaled += !isnan(other[1]);
    for (int i = 1; i < BZ_RULES && !isnan(other[1]); i++)
        sum->total[i] += other[i];
}

static void finish(bz_error_sum *sum)
{
    sum->total[0] /= sum->n ? sum->n : 1;
    for (int i = 1; i < BZ_RULES; i++)
        sum->total[i] = sum->scaled ? sum->total[i] / sum->scaled : NAN;
    sum->bias /= sum->n ? sum->n : 1;
}

/* Of each rule but ours, the mean over the machines that one may start from; NAN: there is none. */
static void others(const evaluating *e, const bz_workload *w, int d, double *out)
{
    double sum[BZ_RULES] = {0}, by[BZ_RULES];
    int n = 0;
    for (int m = 0; m < e->s->machines; m++) {
        double is = bz_work_scaled(e->s, w, &e->without[d], m, d, by);
        for (int i = 1; i < BZ_RULES && is > 0; i++)
            sum[i] += fabs(by[i] / is - 1);
        n += is > 0;
    }
    for (int i = 1; i < BZ_RULES; i++)
        out[i] = n ? sum[i] / n : NAN;
}

static bz_error_sum *row_named(bz_error_sum *list, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    list[*n] = (bz_error_sum){.name = name};
    return &list[(*n)++];
}

/* Of a machine; NULL: it has no total. */
static bz_error_sum *row_of(const evaluating *e, int machine)
{
    for (int i = 0; i < e->out->machines; i++)
        if (!strcmp(e->out->machine[i].name, e->s->machine[machine].name))
            return &e->out->machine[i];
    return NULL;
}

static void rank(const evaluating *e)
{
    int pairs = 0, right = 0;
    for (int w = 0; w < e->n; w++)
        for (int a = 0; a < e->s->machines; a++)
            for (int b = 0; b < a; b++) {
                if (!e->judged[w * e->s->machines + a] || !e->judged[w * e->s->machines + b])
                    continue;
                total x = total_of(e, &e->work[w], a), y = total_of(e, &e->work[w], b);
                pairs++;
                right += (x.is < y.is) == (x.told < y.told);
            }
    e->out->ranked = pairs ? (double)right / pairs : NAN;
}

static double median_of(const evaluating *e, int machine, int kind, double *room, int *count)
{
    *count = 0;
    for (int i = 0; i < e->s->n * e->planes; i++)
        for (int m = 0; m < e->s->machines; m++) {
            int row = i % e->s->n;
            double told = e->told[cell(e, i, m)];
            if (!isnan(told) && (machine < 0 || m == machine) && (kind < 0 || e->s->shape[row].kind == kind))
                room[(*count)++] = fabs(exp(told - e->s->log[cell(e, row, m)]) - 1);
        }
    return quantile(room, *count, 0.5);
}

/* What a call counts: its seconds, but each machine the same, though a slow one has more of them. */
static double weight_of(const evaluating *e, int row, int machine)
{
    const bz_machine *m = &e->s->machine[machine];
    return exp(e->s->log[cell(e, row, machine)]) * (m->gpu ? m->f32 : 1);
}

/* Adds how far off each scaling from machine `from` is. false: it has no record. */
static bool scale(const evaluating *e, int row, int from, int to, double *off)
{
    const bz_machine *a = &e->s->machine[from], *b = &e->s->machine[to];
    double here = bz_samples_log(e->s, row, from), there = bz_samples_log(e->s, row, to);
    if (from == to || a->gpu != b->gpu || isnan(here))
        return false;
    for (int i = 1; i < BZ_RULES; i++)
        off[i] += fabs(exp(here - there) * bz_rule_scale(e->s, &e->without[to], i, row, from, to) - 1);
    return true;
}

/* Calls of one kind, or all, on one machine, or all. scaled[BZ_RULES], NULL for nobody asked: by the same weights how far off each scaling is, mean
 * of the systems that one may start from. */
static double layers_of(const evaluating *e, int machine, int kind, double *scaled)
{
    double off = 0, all = 0, with = 0;
    for (int w = 0; w < e->n; w++)
        for (int k = 0; k < e->work[w].n; k++)
            for (int m = 0; m < e->s->machines; m++) {
                int row = e->work[w].problem[k], n = 0;
                double told = told_of(e, &e->work[w])[cell(e, row, m)], is = e->s->log[cell(e, row, m)];
                if (isnan(told) || (machine >= 0 && m != machine) || (kind >= 0 && e->s->shape[row].kind != kind))
                    continue;
                double share = e->work[w].times[k] * weight_of(e, row, m), by[BZ_RULES] = {0};
                off += share * fabs(exp(told - is) - 1);
                all += share;
                for (int o = 0; scaled && o < e->s->machines; o++)
                    n += scale(e, row, o, m, by);
                for (int i = 1; i < BZ_RULES && n; i++)
                    scaled[i] += share * by[i] / n;
                with += n ? share : 0;
            }
    for (int i = 1; scaled && i < BZ_RULES; i++)
        scaled[i] = with > 0 ? scaled[i] / with : (double)NAN;
    return all > 0 ? off / all : NAN;
}

static void widen(const bz_judgement *out, int machine, double spreads)
{
    for (int i = 0; i < out->points; i++) {
        bz_judged *p = &out->point[i];
        if (p->machine == machine) {
            p->low = p->predicted * exp(-spreads * p->spread);
            p->high = p->predicted * exp(spreads * p->spread);
        }
    }
}

/* Intervals of a machine are as wide as nine of ten errors of the others were: it is not asked itself. */
static void intervals(const evaluating *e)
{
    int machines = e->s->machines;
    BZ_FREED double *v = bz_alloc((size_t)e->n * (size_t)machines + 1, sizeof *v);
    int inside = 0, all = 0, n = 0, printed = 0;
    for (int d = 0; d < machines; d++) {
        int own = 0, hit = 0;
        n = 0;
        for (int w = 0; w < e->n; w++)
            for (int m = 0; m < machines; m++)
                if (m != d && e->judged[w * machines + m])
                    v[n++] = e->score[w * machines + m];
        double q = quantile(v, n, 0.9);
        for (int w = 0; w < e->n; w++)
            if (e->judged[w * machines + d])
                own++, hit += e->score[w * machines + d] <= q;
        all += own, inside += hit;
        bz_error_sum *row = row_of(e, d);
        if (!row)
            continue;
        row->inside = own ? (double)hit / own : NAN;
        widen(e->out, (int)(row - e->out->machine), q);
    }
    n = 0;
    for (int i = 0; i < e->n * machines; i++)
        if (e->judged[i]) {
            v[n++] = e->score[i];
            printed += e->score[i] <= BZ_NINE_OF_TEN;
        }
    e->out->printed = n ? (double)printed / n : NAN;
    e->out->quantile = quantile(v, n, 0.9);
    e->out->all.inside = all ? (double)inside / all : NAN;
}

static const char *kind_name(int kind, bz_arena *arena)
{
    const char *name = bz_shape_kind_name(kind);
    return kind < BZ_SHAPE_FUSED ? name : bz_arena_printf(arena, "%s, fused", name);
}

/* A total of work w on machine d: for its rows, and as a point. */
static void add_point(const evaluating *e, int w, int d, const total *t, const double *by)
{
    bz_judgement *out = e->out;
    bz_error_sum *machine = row_named(out->machine, &out->machines, e->s->machine[d].name);
    bz_error_sum *network = row_named(out->network, &out->networks, e->work[w].name);
    add_total(&out->all, t, by);
    add_total(machine, t, by);
    add_total(network, t, by);
    out->point[out->points++] = (bz_judged){.measured = t->is,
                                            .predicted = t->told,
                                            .spread = t->spread,
                                            .low = NAN,
                                            .high = NAN,
                                            .machine = (int)(machine - out->machine),
                                            .network = (int)(network - out->network),
                                            .batch = e->work[w].batch};
}

static void sum_up(evaluating *e, bool scalings)
{
    bz_judgement *out = e->out;
    int machines = e->s->machines;
    out->machine = BZ_NEW(e->arena, bz_error_sum, machines);
    out->network = BZ_NEW(e->arena, bz_error_sum, e->n);
    out->kind = BZ_NEW(e->arena, bz_error_sum, BZ_SHAPE_KINDS);
    out->point = BZ_NEW(e->arena, bz_judged, (size_t)e->n * (size_t)machines);
    out->all.name = "all";
    for (int d = 0; d < machines; d++)
        for (int w = 0; w < e->n; w++) {
            double by[BZ_RULES] = {0, NAN};
            total t = total_of(e, &e->work[w], d);
            bool any = false;
            for (int k = 0; k < e->work[w].n; k++)
                any |= !isnan(told_of(e, &e->work[w])[cell(e, e->work[w].problem[k], d)]);
            if (!(t.is > 0) || !any || !covers(e, &e->work[w], d))
                continue;
            if (scalings)
                others(e, &e->work[w], d, by);
            add_point(e, w, d, &t, by);
            e->judged[w * machines + d] = true;
            e->score[w * machines + d] = t.spread > 0 ? fabs(log(t.told / t.is)) / t.spread : 0;
        }
    BZ_FREED double *room = bz_alloc((size_t)e->planes * cells(e) + 1, sizeof *room);
    int count;
    for (int d = 0; d < machines; d++) {
        bz_error_sum *row = row_of(e, d);
        if (!row)
            continue;
        row->layers = layers_of(e, d, -1, NULL);
        row->median = median_of(e, d, -1, room, &count);
        out->all.layers += row->layers / out->machines;
        finish(row);
    }
    for (int k = 0; k < BZ_SHAPE_KINDS; k++) {
        double median = median_of(e, -1, k, room, &count);
        if (!count)
            continue;
        bz_error_sum *row = &out->kind[out->kinds++];
        *row = (bz_error_sum){.name = kind_name(k, e->arena), .n = count, .median = median};
        row->layers = row->total[0] = layers_of(e, -1, k, scalings ? row->total : NULL);
    }
    out->all.median = median_of(e, -1, -1, room, &count);
    for (int i = 0; i < out->networks; i++)
        finish(&out->network[i]);
    finish(&out->all);
}

static const char *const LEFT[BZ_LEAVE_N] = {"system", "network", "batch", "system and a third of the networks",
                                             "system and all records but what --train keeps"};

/* Where all calls of what was left out are among those that stayed, nothing was predicted. */
static bool any_told(const evaluating *e)
{
    for (size_t i = 0; i < (size_t)e->planes * cells(e); i++)
        if (!isnan(e->told[i]))
            return true;
    return false;
}

void bz_judge(const bz_samples *s, const bz_workload *work, int n, bz_leave leave, bz_few few,
              const bz_without *without, bz_arena *arena, bz_judgement *out)
{
    int planes = leave == BZ_LEAVE_BOTH ? THIRDS : 1;
    size_t room = (size_t)planes * (size_t)s->n * (size_t)s->machines + 1, totals = (size_t)n * (size_t)s->machines + 1;
    *out = (bz_judgement){.leave = leave,
                          .left_out = LEFT[leave],
                          .samples = s,
                          .few = few,
                          .spent = NAN,
                          .missing = bz_judge_missing(s, work, n, leave)};
    if (out->missing)
        return;
    evaluating e = {s,
                    work,
                    n,
                    without,
                    arena,
                    out,
                    planes,
                    bz_zeroed((size_t)n, sizeof(int)),
                    bz_alloc(room, sizeof(double)),
                    bz_alloc(room, sizeof(double)),
                    bz_alloc(room, sizeof(double)),
                    bz_zeroed(totals, sizeof(double)),
                    bz_zeroed(totals, sizeof(bool))};
    for (size_t i = 0; i < room; i++)
        e.told[i] = NAN;
    leave_out(&e, leave);
    if (any_told(&e)) {
        sum_up(&e, leave != BZ_LEAVE_NETWORK && leave != BZ_LEAVE_BATCH);
        rank(&e);
        intervals(&e);
        if (!out->points)
            out->missing = "no network has records of nearly all of its layers on one system";
    } else {
        out->missing = "every call of each is one of another, too";
    }
    free(e.plane), free(e.told), free(e.spread), free(e.alone), free(e.score), free(e.judged);
}
