/* predict_ways DB MODEL...: predictions of every recorded problem by each way there is, for tests/bench/predict_ways.py.
 *
 * Lines of words: `machine NUMBER NAME`; `problem NUMBER KIND` and its times on all machines, as logarithms; `work NETWORK BATCH` and problem:times…; and
 * `told TO OUT PROBLEM` with a logarithm for each way, where neither TO nor OUT (both may be the same) was learned from. */
#include "predict/dense.h"
#include "predict/evaluate.h"
#include "predict/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Without records of the very problem, and by those of single machines. */
static void other_ways(const bz_predictor *p, const bz_dense *dense, const bz_samples *s, int to, int row, int from,
                       double floor)
{
    double roofline = bz_predictor_roofline(p, &s->shape[row], &s->machine[to], floor), mean = 0;
    int count = 0;
    double is = from < 0 ? NAN : bz_samples_log(s, row, from);
    for (int m = 0; m < s->machines; m++)
        if (p->use[m] && !isnan(bz_samples_log(s, row, m))) {
            const bz_machine *o = &s->machine[m];
            mean += bz_samples_log(s, row, m) - bz_predictor_roofline(p, &s->shape[row], o, o->floor), count++;
        }
    printf(" %.6g %.6g", roofline, roofline + (count ? mean / count : NAN));
    const bz_machine *o = from < 0 ? NULL : &s->machine[from];
    printf(" %.6g", o ? is + roofline - bz_predictor_roofline(p, &s->shape[row], o, o->floor) : NAN);
    static const bz_scaling SCALINGS[] = {BZ_SCALING_WAVES, BZ_SCALING_PEAK, BZ_SCALING_BANDWIDTH};
    for (int i = 0; i < 3; i++)
        printf(" %.6g", o ? is + log(bz_scaling_of(SCALINGS[i], &s->shape[row], bz_samples_intensity(s, row, from), o,
                                                   &s->machine[to]))
                          : NAN);
    double direct = bz_dense_log(dense, &s->shape[row], &s->machine[to], floor);
    printf(" %.6g %.6g\n", direct, o ? is + direct - bz_dense_log(dense, &s->shape[row], o, o->floor) : NAN);
}

static void tell(bz_predictor *p, const bz_dense *dense, const bz_samples *s, int to, int out)
{
    double floor = bz_floor_told(s->machine, p->use, s->machines, &s->machine[to], NULL);
    double *rule = calloc((size_t)s->n + 1, sizeof *rule);
    int *from = calloc((size_t)s->n + 1, sizeof *from);
    bz_aim *a = bz_predictor_aim(p, &s->machine[to], NULL, -1, NULL);
    for (int i = 0; i < s->n && rule && from; i++) {
        rule[i] = bz_predict(a, s->text[i], &s->shape[i]).seconds;
        from[i] = bz_aim_most_alike(a, i);
    }
    bz_aim_free(a);
    p->samples = NULL; /* what was learned alone */
    a = bz_predictor_aim(p, &s->machine[to], NULL, -1, NULL);
    for (int i = 0; i < s->n && rule && from; i++)
        if (!isnan(bz_samples_log(s, i, to))) {
            printf("told %d %d %d %.6g %.6g", to, out, i, log(rule[i]), log(bz_predict(a, NULL, &s->shape[i]).seconds));
            other_ways(p, dense, s, to, i, from[i], floor);
        }
    bz_aim_free(a);
    p->samples = s;
    free(rule);
    free(from);
}

static int put_work(const bz_samples *s, const char *path, bz_error *err)
{
    static const int BATCH[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    bz_arena arena = {0};
    int rc = 0;
    for (size_t b = 0; b < sizeof BATCH / sizeof *BATCH && !rc; b++) {
        bz_workload w = {0};
        rc = bz_workload_make(s, path, BATCH[b], &arena, &w, err);
        printf("work %s %d", w.name, BATCH[b]);
        for (int k = 0; k < w.n; k++)
            printf(" %d:%d", w.problem[k], w.times[k]);
        putchar('\n');
    }
    bz_arena_free(&arena);
    return rc;
}

static void put_samples(const bz_samples *s)
{
    for (int m = 0; m < s->machines; m++)
        printf("machine %d %s\n", m, s->machine[m].name);
    for (int i = 0; i < s->n; i++) {
        printf("problem %d %s%s", i, bz_shape_kind_name(s->shape[i].kind),
               s->shape[i].kind >= BZ_SHAPE_FUSED ? "+" : "");
        for (int m = 0; m < s->machines; m++)
            printf(" %.7g", bz_samples_log(s, i, m));
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    bz_error err = {0};
    bz_perfdb *db = NULL;
    bz_samples s = {0};
    bz_setting setting = {1, BZ_CACHE_HOT, ""};
    int rc = argc < 3 || bz_perfdb_open(&db, argv[1], &(bz_perfdb_options){.read_only = true}, &err) ||
             bz_samples_load(db, &setting, NULL, &s, &err);
    if (!rc)
        put_samples(&s);
    for (int i = 2; i < argc && !rc; i++)
        rc = put_work(&s, argv[i], &err);
    for (int d = 0; d < s.machines && !rc; d++)
        for (int e = d; e < s.machines; e++) {
            bool use[BZ_NEIGHBOURS];
            bz_kinship kinship[BZ_GROUPS];
            for (int m = 0; m < s.machines; m++)
                use[m] = m != d && m != e;
            bz_kinship_choose(&s, use, NULL, kinship);
            bz_predictor *p = bz_predictor_new(&s, use, NULL, kinship);
            bz_dense *dense = bz_dense_new(&s, use, NULL, kinship[0].margin);
            tell(p, dense, &s, d, e);
            if (e != d)
                tell(p, dense, &s, e, d);
            bz_dense_free(dense);
            bz_predictor_free(p);
        }
    if (rc)
        fprintf(stderr, "%s\n", argc < 3 ? "predict_ways DB MODEL..." : err.text);
    bz_samples_free(&s);
    bz_perfdb_close(db);
    return rc ? 1 : 0;
}
