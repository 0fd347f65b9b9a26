/* Machines to predict for, what predicts them, and models on them. */
#include "predict/predictor.h"
#include "runtime/gpus.h"
#include "transfer/transfer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int target_find(bz_perfdb *db, const bz_samples *s, const bz_setting *setting, const char *name, bz_arena *arena,
                       bz_target *out, bz_error *err)
{
    bz_gpu row;
    *out = (bz_target){.own = -1};
    if (bz_perfdb_system(db, name, &out->system, err))
        return -1;
    if (out->system) {
        if (bz_transfers_facts(db, out->system, arena, &out->facts, err))
            return -1;
        out->own = bz_samples_machine(s, out->system->name);
        return bz_machine_of(out->facts, out->system->name, setting, &out->machine, err);
    }
    if (bz_machine_named(name, arena, &out->machine, err))
        return -1;
    bz_system_facts *facts = BZ_NEW(arena, bz_system_facts, 1);
    *facts = bz_system_unknown;
    facts->gpu = out->machine.gpu;
    facts->device = facts->gpu ? "gpu" : "cpu";
    facts->name = "";
    if (bz_gpu_slug(out->machine.name, &row))
        facts->name = bz_arena_str(arena, row.name);
    out->facts = facts;
    return 0;
}

int bz_targets_find(bz_perfdb *db, const bz_samples *s, const bz_setting *setting, const char *const *name, int n,
                    bz_arena *arena, bz_target *t, bz_error *err)
{
    for (int i = 0; i < n; i++)
        if (target_find(db, s, setting, name[i], arena, &t[i], err))
            return -1;
    for (int i = 1; i < n; i++)
        if (t[i].machine.gpu != t->machine.gpu)
            return bz_fail(err, BZ_USAGE, "name either GPUs or processors: '%s' and '%s' run other libraries",
                           t->machine.name, t[i].machine.name);
    return 0;
}

static int add_line(void *user, size_t number, const char *text, size_t len)
{
    (void)number;
    bz_buf_put(user, text, len);
    bz_buf_putc(user, '\n');
    return 0;
}

static int predictor_load(const char *path, const bz_samples *s, bool gpu, bz_predictor **out, bz_error *err)
{
    if (path) {
        BZ_SCOPED(bz_buf) text = {0};
        return bz_text_lines(path, add_line, &text, err) ? -1 : bz_predictor_read(bz_buf_text(&text), path, out, err);
    }
    *out = bz_predictor_best(s, gpu);
    return *out ? 0
                : bz_fail(err, BZ_BAD_INPUT,
                          "processors are predicted from others: the database needs the records of at least one more "
                          "('benanza db import --reference' names some)");
}

int bz_predictor_check_file(const char *path, bz_error *err)
{
    char begins[sizeof BZ_TRAINED_MARK] = "";
    struct stat st;
    FILE *f = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    size_t n = f ? fread(begins, 1, sizeof begins - 1, f) : 0;
    if (f)
        fclose(f);
    return n && strcmp(begins, BZ_TRAINED_MARK) != 0
               ? bz_fail(err, BZ_USAGE, "%s: is no set of 'benanza predict --train': it would be overwritten", path)
               : 0;
}

int bz_predictor_train(const bz_samples *s, bz_buf *out, bz_error *err)
{
    bz_kinship kinship[BZ_GROUPS];
    if (!s->n)
        return bz_fail(err, BZ_BAD_INPUT,
                       "the database has no records of systems whose rates are known: nothing can be learned");
    bz_kinship_choose(s, NULL, NULL, kinship);
    bz_predictor *p = bz_predictor_new(s, NULL, NULL, kinship);
    bz_predictor_write(p, out);
    bz_predictor_free(p);
    return 0;
}

/* Records of other systems than those named (`names` 0: all) teach nothing; a target's own neither. */
static int targets_only(bz_predictor *p, bz_target *t, int n, const char *const *name, int names, bz_error *err)
{
    for (int i = 0; i < n && names; i++) {
        bool is = false;
        for (int k = 0; k < names; k++)
            is |= bz_machine_is(&t[i].machine, name[k]);
        if (!is)
            t[i].own = -1, t[i].system = NULL;
    }
    return names && n ? bz_predictor_only(p, t->machine.gpu, name, names, err) : 0;
}

BZ_ENDS(free_predictor, bz_predictor_free)

BZ_ENDS(free_aim, bz_aim_free)

int bz_targets_aim(bz_target *t, int n, const char *trained, const bz_samples *s, const char *const *from, int n_from,
                   bz_arena *arena, bz_error *err)
{
    bz_predictor *p;
    if (predictor_load(trained, s, t->machine.gpu, &p, err))
        return -1;
    bz_arena_keep(arena, p, free_predictor);
    if (targets_only(p, t, n, from, n_from, err))
        return -1;
    for (int i = 0; i < n; i++) {
        t[i].aim = bz_predictor_aim(p, &t[i].machine, s, t[i].own, NULL);
        bz_arena_keep(arena, t[i].aim, free_aim);
    }
    return 0;
}
