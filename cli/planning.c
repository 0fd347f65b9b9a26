#include "cli/planning.h"

#include "cli/db.h"
#include "runtime/gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int planning_setting(const planning *p, bz_setting *setting, bz_error *err)
{
    bool cold = p->cache && !strcmp(p->cache, "cold");
    if (p->threads > 4096)
        return bz_fail(err, BZ_USAGE, "--threads takes a number up to 4096, not %lld", (long long)p->threads);
    *setting =
        (bz_setting){p->threads ? (int)p->threads : 1, cold ? BZ_CACHE_COLD : BZ_CACHE_HOT, p->clock ? p->clock : ""};
    return 0;
}

int planning_clock(const char *name, const char *value, bz_error *err)
{
    size_t digits = strspn(value, "0123456789");
    bool whole = digits && digits < 6 && !value[digits] && *value != '0'; /* as text it tells records apart */
    return whole ? 0 : bz_fail(err, BZ_USAGE, "--%s takes a whole number of MHz such as 1410, not '%s'", name, value);
}

int planning_batches(const char *text, int64_t *out, int most, int *n, bz_error *err)
{
    for (const char *at = text; at && (*at || !*n);) {
        char *end;
        errno = 0;
        long long v = strtoll(at, &end, 10);
        if (errno || end == at || (*end && *end != ',') || v < 1 || *n == most)
            return bz_fail(err, BZ_USAGE, "--batch takes up to %d sizes such as 1,8,64, not '%s'", most, text);
        out[(*n)++] = v;
        at = *end ? end + 1 : end;
    }
    return 0;
}

int planning_choose_gpu(const char *name, const char *number, bz_error *err)
{
    (void)name;
    return bz_gpu_choose(number, err);
}

const char *planning_device(const planning *p)
{
    for (int i = 0; i < p->backends.n; i++)
        if (bz_backend_is_on(p->backends.item[i], true))
            return p->backends.item[i];
    return NULL;
}

bool planning_is_gpu(const bz_system *system)
{
    BZ_SCOPED(bz_arena) arena = {0};
    return bz_system_facts_read(system ? system->details : NULL, &arena)->gpu;
}

void planning_backends_of_gpus(bz_job *job, planning *p)
{
    for (const bz_backend_row *b = bz_backends; b->name; b++)
        if (b->device)
            bz_list_add(&job->arena, &p->backends, b->name);
}

int planning_backends(bz_job *job, planning *p, const bz_system *system, bz_error *err)
{
    if (!p->backends.n && planning_is_gpu(system))
        planning_backends_of_gpus(job, p);
    return planning_device(p) ? 0
                              : bz_job_reads_no(job,
                                                "the processor (a GPU is meant by --backend cudnn --backend cublas, or "
                                                "by its --system NAME)",
                                                "device math streams graph lock-clock", err);
}

bool planning_word(const char **list, char out[256])
{
    size_t n = strcspn(*list, ",");
    if (!n || n > 255)
        return false;
    memcpy(out, *list, n);
    out[n] = 0;
    *list += n + ((*list)[n] == ',');
    return true;
}

int planning_look(bz_job *job, const char *systems, bz_perfdb **db, bz_error *err)
{
    char word[256];
    bool sheets = true;
    for (const char *list = systems ? systems : ""; sheets && planning_word(&list, word);)
        sheets = bz_bench_sheet(word);
    return sheets ? bz_db_look(job, db, err) : bz_db_open(job, true, db, err);
}

int planning_system(bz_job *job, const planning *p, bool look, bz_perfdb **db, const bz_system **system, bz_error *err)
{
    if (look && !p->system ? bz_db_look(job, db, err) : bz_db_open(job, look, db, err))
        return -1;
    return bz_bench_system(*db, p->system, planning_device(p), system, err);
}

BZ_ENDS(end_patterns, bz_patterns_free)

int planning_options(bz_job *job, const planning *p, bz_plan_options *o, bz_error *err)
{
    bz_patterns *patterns = NULL;
    *o = (bz_plan_options){0};
    if (bz_plan_dtype(p->dtype, &o->dtype, err) ||
        bz_plan_option(o, BZ_PLAN_BACKENDS, p->backends.item, p->backends.n, err) ||
        bz_plan_option(o, BZ_PLAN_LAYOUTS, p->layouts.item, p->layouts.n, err) ||
        bz_plan_option(o, BZ_PLAN_MATHS, p->maths.item, p->maths.n, err) ||
        ((p->fuse || p->patterns) && bz_patterns_load(p->patterns, &patterns, err)))
        return -1;
    bz_arena_keep(&job->arena, patterns, end_patterns);
    o->patterns = patterns;
    return 0;
}

int planning_plan(bz_job *job, const planning *p, const bz_models *m, bz_plan **plan, bz_error *err)
{
    bz_plan_options o;
    if (planning_options(job, p, &o, err))
        return -1;
    *plan = bz_plan_keep(bz_plan_of(&o, m->layers, m->name, m->n), &job->arena);
    return 0;
}

void planning_lacks(const bz_command *command, int n, const char *whom, const char *measures, bool elsewhere)
{
    bz_warn(command, "the database lacks %d problem%s%s: '%s' %smeasures %s", n, n == 1 ? "" : "s", whom, measures,
            elsewhere ? "on that machine " : "", n == 1 ? "it" : "them");
}
