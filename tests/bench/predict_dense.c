/* predict_dense DB: how far off the network of dense layers is as its publication asks it: all GPUs are known, and a fifth of the problems is not, each
 * with all its batches; five times. Beside it: the rule, from the other records of the same GPU and all of the others. Mean error by kind. */
#include "predict/dense.h"
#include "predict/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOLDS = 5 };

typedef struct sums {
    double dense[BZ_SHAPE_KINDS], rule[BZ_SHAPE_KINDS];
    int n[BZ_SHAPE_KINDS];
} sums;

static void judge(const bz_samples *s, const bool *use, const bool *known, sums *out)
{
    bz_kinship kinship[BZ_GROUPS];
    bz_kinship_choose(s, use, known, kinship);
    bz_dense *dense = bz_dense_new(s, use, known, kinship[0].margin);
    bz_predictor *p = bz_predictor_new(s, use, known, kinship);
    for (int m = 0; m < s->machines; m++) {
        bz_aim *a = bz_predictor_aim(p, &s->machine[m], s, m, known);
        for (int i = 0; i < s->n; i++) {
            const bz_shape *shape = &s->shape[i];
            double is = bz_samples_log(s, i, m);
            if (known[i] || isnan(is))
                continue;
            out->n[shape->kind]++;
            out->rule[shape->kind] += fabs(bz_predict(a, s->text[i], shape).seconds / exp(is) - 1);
            out->dense[shape->kind] +=
                fabs(exp(bz_dense_log(dense, shape, &s->machine[m], s->machine[m].floor) - is) - 1);
        }
        bz_aim_free(a);
    }
    bz_predictor_free(p);
    bz_dense_free(dense);
}

int main(int argc, char **argv)
{
    bz_error err = {0};
    bz_perfdb *db = NULL;
    bz_samples s = {0};
    bz_setting setting = {1, BZ_CACHE_HOT, ""};
    sums sum = {0};
    bool use[BZ_NEIGHBOURS];
    int rc = argc != 2 || bz_perfdb_open(&db, argv[1], &(bz_perfdb_options){.read_only = true}, &err) ||
             bz_samples_load(db, &setting, NULL, &s, &err);
    bool *known = calloc((size_t)s.n + 1, sizeof *known);
    for (int m = 0; m < s.machines; m++)
        use[m] = true;
    for (int fold = 0; fold < FOLDS && !rc && known; fold++) {
        for (int i = 0; i < s.n; i++)
            known[i] = (s.family[i] >= 0 ? s.family[i] : i) % FOLDS != fold;
        judge(&s, use, known, &sum);
    }
    for (int k = 0; k < BZ_SHAPE_KINDS; k++)
        if (sum.n[k])
            printf("%-20s%s %6d  dense %6.1f %%  rule %6.1f %%\n", bz_shape_kind_name(k),
                   k >= BZ_SHAPE_FUSED ? "+" : " ", sum.n[k], 100 * sum.dense[k] / sum.n[k],
                   100 * sum.rule[k] / sum.n[k]);
    if (rc)
        fprintf(stderr, "%s\n", argc != 2 ? "predict_dense DB" : err.text);
    free(known);
    bz_samples_free(&s);
    bz_perfdb_close(db);
    return rc ? 1 : 0;
}
