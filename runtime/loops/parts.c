/* Opens, runs and closes a problem that is worked off in parts. */
#include "runtime/loops/parts.h"

#include "base/arena.h"

#include <stdlib.h>

/* NULL where the loops take the operands' types; else a sentence. */
static const char *refuse_types(const bz_parts *t, part_types types, const char *otherwise)
{
    bool bad = types == PART_DATA && t->problem->kind == BZ_PROBLEM_SOFTMAX_LOSS && t->problem->dtype_y != BZ_F32;
    for (int i = 0; i < t->job->n_operands && types != PART_BYTES; i++) {
        const bz_operand *o = &t->job->operand[i];
        bool data = o->role != BZ_ROLE_INDEX && o->role != BZ_ROLE_STEP && o->role != BZ_ROLE_MASK;
        bad |= data && (!bz_kernels_take(o->dtype) || (types != PART_CASTS && !bz_dtype_is_float(o->dtype)));
    }
    return !bad                 ? NULL
           : types == PART_DATA ? "our loops of training take floating-point numbers of 16 and 32 bits"
                                : otherwise;
}

static void make_room(bz_parts *t, part_types types)
{
    size_t threads = (size_t)t->job->setting->threads;
    bool narrow = false;
    for (int i = 0; i < t->job->n_operands; i++)
        narrow |= t->job->operand[i].dtype != BZ_F32;
    if (narrow && types != PART_BYTES)
        t->room = bz_alloc(threads * ROOMS * (size_t)t->length, sizeof *t->room);
    if (t->n_sums)
        t->sums = bz_alloc(threads * 2 * (size_t)t->n_sums, sizeof *t->sums);
}

bz_parts *bz_parts_open(const bz_job *job, const char **why)
{
    static const bz_part_kind *const TABLES[] = {bz_part_rows, bz_part_training, bz_part_losses, bz_part_samples};
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES && bz_posts_known(job->problem); i++)
        for (const bz_part_kind *k = TABLES[i]; k->kind; k++) {
            if (k->kind != job->problem->kind)
                continue;
            bz_parts t = {.job = job,
                          .problem = job->problem,
                          .kernels = bz_kernels_best(),
                          .own = bz_kernels_best()->training,
                          .one = k->one,
                          .begin = k->begin,
                          .end = k->end,
                          .y = job->n_operands - 1,
                          .epsilon = job->epsilon > 0 ? job->epsilon : 1e-5f};
            k->open(&t);
            const char *refused = t.one ? refuse_types(&t, k->types, *why) : NULL;
            if (!t.one)
                continue;
            if (refused) {
                *why = refused;
                return NULL;
            }
            make_room(&t, k->types);
            return memcpy(bz_alloc(1, sizeof t), &t, sizeof t);
        }
    return NULL;
}

static void run_parts(void *of, int64_t first, int64_t end, int thread)
{
    bz_parts *t = of;
    for (int64_t i = first; i < end; i++)
        t->one(t, i, thread);
}

void bz_parts_run(bz_parts *t, const bz_plain *plain, int copy)
{
    t->plain = plain, t->copy = copy;
    if (t->begin)
        t->begin(t);
    bz_share_out(run_parts, t, t->parts, t->job->operand[0].count, t->job->setting->threads);
    if (t->end)
        t->end(t);
}

void bz_parts_close(bz_parts *t)
{
    if (t) {
        free(t->room);
        free(t->sums);
    }
    free(t);
}
