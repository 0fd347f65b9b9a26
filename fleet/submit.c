/* Shards as folders, and jobs for them. */
#include "fleet/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct choice {
    const bz_want *want;
    const bz_shards *shards;
    int shard;
} choice;

static bool chosen(void *user, int problem, int family)
{
    const choice *c = user;
    return c->shards->of[problem] == c->shard &&
           c->want->why[(size_t)problem * BZ_PLAN_FAMILIES + (size_t)family] != BZ_WANT_NOT;
}

static bool knows_peaks(const bz_fleet_job *j, int kind)
{
    const bz_system *system = j->want[kind].system;
    BZ_SCOPED(bz_arena) arena = {0};
    bool measured = bz_system_facts_read(system ? system->details : NULL, &arena)->n_measured;
    return !j->fleet.system[kind].peaks || bz_fleet_plan_of(j, kind)->device || measured;
}

/* Gives a shard the records of families that are known in part: its run goes on behind them, as after a kill. */
static int put_known(bz_fleet_job *j, int kind, const bz_shards *shards, int index, bz_buf *out, bz_error *err)
{
    const bz_want *want = &j->want[kind];
    const bz_setting setting = bz_fleet_setting(&j->fleet.system[kind]);
    const bz_plan_problem *problem;
    int n = bz_plan_problems(bz_fleet_plan_of(j, kind)->plan, &problem);
    for (int i = 0; i < n; i++)
        for (int f = 0; shards->of[i] == index && f < problem[i].n_families; f++) {
            const bz_plan_family *p = &problem[i].family[f];
            const bz_variant family = {p->backend, "", p->layout, p->math};
            bz_record *list;
            size_t known;
            if (want->why[(size_t)i * BZ_PLAN_FAMILIES + (size_t)f] != BZ_WANT_PART)
                continue;
            if (bz_perfdb_variants(j->db, want->system, problem[i].text, &j->arena, &list, &known, err))
                return -1;
            for (size_t k = 0; k < known; k++) {
                bz_json w = bz_json_to(out, false);
                if (!bz_record_in_family(&list[k], &family, &setting))
                    continue;
                bz_record_json(&w, &list[k]);
                bz_buf_putc(out, '\n');
            }
        }
    return 0;
}

static int write_shard(bz_fleet_job *j, int kind, const bz_shards *shards, int index, int round, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const bz_setting setting = bz_fleet_setting(s);
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, s->name);
    const char *device = bz_fleet_plan_of(j, kind)->device;
    const char *folder = bz_fleet_path(j, "%s/%s/%d-%03d", j->night.id, s->name, round, index);
    const bz_work work = {.threads = setting.threads,
                          .cold = setting.cache == BZ_CACHE_COLD,
                          .peaks = index == 0 && !knows_peaks(j, kind),
                          .time_limit = s->time_limit,
                          .device = device ? device : "",
                          .system = stack ? stack->system : ""};
    bz_plan *plan = bz_fleet_plan_of(j, kind)->plan;
    choice c = {&j->want[kind], shards, index};
    BZ_SCOPED(bz_buf) text = {0}, known = {0};
    bz_plan_choose(plan, chosen, &c);
    bz_work_print(&work, &text);
    return bz_generate(plan, folder, err) || put_known(j, kind, shards, index, &known, err) ||
                   bz_whole_write(bz_arena_printf(&j->arena, "%s/shard.json", folder), &text, err) ||
                   bz_whole_write(bz_arena_printf(&j->arena, "%s/known.jsonl", folder), &known, err) ||
                   bz_fleet_make_folder(bz_arena_printf(&j->arena, "%s/attempts", folder), err)
               ? -1
               : 0;
}

/* Minutes that a shard may take: three times what is estimated, and some to start with. */
static int limit_of(const bz_fleet_system *s, const bz_shards *shards)
{
    double longest = 0;
    for (int i = 0; i < shards->n; i++)
        longest = fmax(longest, shards->shard[i].seconds);
    return (int)(s->minutes > 0 ? s->minutes : ceil(3 * longest / 60) + 10);
}

static void add_shards(bz_fleet_job *j, bz_night_system *n, const bz_shards *shards, int round)
{
    n->shard = bz_arena_grow(&j->arena, n->shard, (size_t)n->n_shards, (size_t)n->n_shards + (size_t)shards->n,
                             sizeof *n->shard);
    for (int i = 0; i < shards->n; i++)
        n->shard[n->n_shards++] =
            (bz_night_shard){round, i, shards->shard[i].problems, shards->shard[i].families, shards->shard[i].seconds};
}

static int submit_kind(bz_fleet_job *j, int kind, int round, int64_t now, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    bz_night_system *n = &j->night.system[kind];
    const char *folder = bz_fleet_path(j, "%s/%s", j->night.id, s->name);
    const char *script = bz_fleet_path(j, "%s/%s/round-%d.sh", j->night.id, s->name, round);
    const bz_shards shards = bz_fleet_shards(j, kind, &j->arena);
    bz_buf text = {0};
    int64_t id;
    if (!shards.n)
        return 0;
    if (bz_fleet_make_folder(folder, err))
        return -1;
    for (int i = 0; i < shards.n; i++)
        if (write_shard(j, kind, &shards, i, round, err))
            return -1;
    bz_slurm_script(s, bz_fleet_program(j), folder, round, &text);
    const char *items[] = {bz_arena_printf(&j->arena, "--job-name=benanza-%s", s->name),
                           bz_arena_printf(&j->arena, "--array=0-%d", shards.n - 1),
                           bz_arena_printf(&j->arena, "--time=%d", limit_of(s, &shards)),
                           bz_arena_printf(&j->arena, "--output=%s/slurm-%%A_%%a.out", folder),
                           "--requeue",
                           "--open-mode=append"};
    if (bz_fleet_write_script(script, &text, err) ||
        bz_fleet_sbatch(j, s, &(bz_fleet_names){items, (int)(sizeof items / sizeof *items)}, script, &id, err))
        return -1;
    n->job = bz_arena_grow(&j->arena, n->job, (size_t)n->n_jobs, (size_t)n->n_jobs + 1, sizeof *n->job);
    n->job[n->n_jobs++] = (bz_night_job){round, id, now};
    add_shards(j, n, &shards, round);
    return 0;
}

/* The job that merges, behind all others of the round. */
static int submit_merge(bz_fleet_job *j, int round, bz_error *err)
{
    const char *script = bz_fleet_path(j, "%s/merge-%d.sh", j->night.id, round);
    bz_buf text = {0}, after = {0};
    for (int i = 0; i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            if (j->night.system[i].job[k].round == round)
                bz_buf_printf(&after, ":%lld", (long long)j->night.system[i].job[k].id);
    if (!j->fleet.merge.name || !after.len) {
        bz_buf_free(&after);
        return 0;
    }
    BZ_FREED char *db = realpath(bz_perfdb_dir(j->db), NULL);
    bz_slurm_merge(bz_fleet_program(j), j->config, db ? db : bz_perfdb_dir(j->db), j->night.id, &text);
    const char *items[] = {
        "--job-name=benanza-merge", bz_arena_printf(&j->arena, "--dependency=afterany%s", after.data),
        bz_arena_printf(&j->arena, "--output=%s/slurm-merge.out", bz_fleet_path(j, "%s", j->night.id)),
        "--open-mode=append", "--time=60"};
    bz_fleet_system how = j->fleet.merge;
    how.shared = true;
    bz_buf_free(&after);
    return bz_fleet_write_script(script, &text, err) ||
                   bz_fleet_sbatch(j, &how, &(bz_fleet_names){items, (int)(sizeof items / sizeof *items)}, script,
                                   &j->night.merge_job, err)
               ? -1
               : 0;
}

/* What the report will hold tonight's records against: where the software changed, the stack before; else this
 * stack as it was until now. */
static int compare_with(bz_fleet_job *j, int kind, bz_night_system *n, bz_error *err)
{
    const bz_want *want = &j->want[kind];
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, n->name);
    const bz_system **list;
    size_t count, slug = strcspn(n->system, "@");
    if (want->system && !want->count[BZ_WANT_STACK]) {
        n->before = want->system->name;
        n->until = j->night.begin - 1;
        return 0;
    }
    if (stack && *stack->before) {
        n->before = stack->before;
        return 0;
    }
    if (bz_perfdb_systems(j->db, &j->arena, &list, &count, err))
        return -1;
    for (size_t i = 0; i < count; i++) /* the newest of them is the last */
        if (slug && strcspn(list[i]->name, "@") == slug && !strncmp(list[i]->name, n->system, slug) &&
            strcmp(list[i]->name, n->system) != 0)
            n->before = list[i]->name;
    return 0;
}

static int new_night(bz_fleet_job *j, int64_t now, bz_error *err)
{
    char id[32];
    bz_night *n = &j->night;
    bz_night_id(now, id);
    *n = (bz_night){.id = bz_arena_str(&j->arena, id),
                    .fleet = j->config,
                    .program = BENANZA_VERSION,
                    .begin = now,
                    .models = j->model_paths,
                    .system = BZ_NEW(&j->arena, bz_night_system, j->fleet.n_systems),
                    .n_systems = j->fleet.n_systems};
    for (int i = 0; i < n->n_systems; i++) {
        const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, j->fleet.system[i].name);
        bz_night_system *s = &n->system[i];
        *s = (bz_night_system){.name = j->fleet.system[i].name,
                               .system = stack && *stack->system ? stack->system
                                         : j->want[i].system     ? j->want[i].system->name
                                                                 : "",
                               .before = "",
                               .note = j->note[i] ? j->note[i] : "",
                               .pace = stack && stack->pace > 0 ? stack->pace : 1};
        memcpy(s->families, j->want[i].count, sizeof s->families);
        if (compare_with(j, i, s, err))
            return -1;
    }
    const char *folder = bz_fleet_path(j, "%s", id);
    if (mkdir(folder, 0777))
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    return 0;
}

/* A kind that Slurm refuses (a partition that is gone) does not hold up the others. */
static int submit_kinds(bz_fleet_job *j, int round, int64_t now, bz_error *err)
{
    int tried = 0, refused = 0;
    for (int i = 0; i < j->fleet.n_systems; i++) {
        if (!j->want[i].problems)
            continue;
        tried++;
        if (submit_kind(j, i, round, now, err)) {
            refused++;
            bz_fleet_warn(j, "%s: not submitted: %s", j->fleet.system[i].name, err->text);
            j->night.system[i].note = bz_arena_str(&j->arena, err->text);
        }
    }
    return tried == refused ? -1 : 0;
}

/* Jobs that are not written down cannot be collected. */
static void cancel_round(bz_fleet_job *j, int round)
{
    for (int i = 0; i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            if (j->night.system[i].job[k].round == round)
                bz_fleet_cancel(&j->night.system[i].job[k].id, 1);
    if (j->night.merge_job)
        bz_fleet_cancel(&j->night.merge_job, 1);
}

int bz_fleet_submit(bz_fleet_job *j, int round, int64_t now, bz_error *err)
{
    int wanted = 0;
    bz_error why;
    for (int i = 0; i < j->fleet.n_systems; i++)
        wanted += j->want[i].problems;
    if (!wanted || (round == 1 && new_night(j, now, err)))
        return wanted ? -1 : 0;
    int rc = submit_kinds(j, round, now, err) || submit_merge(j, round, err);
    /* What was submitted before an error is written down, too: it runs. */
    if (bz_fleet_night_save(j, rc ? &why : err)) {
        cancel_round(j, round);
        return -1;
    }
    return rc ? -1 : 0;
}
