/* benanza fleet submit and nightly: jobs for what is wanted. */
#include "cli/fleet.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The program that jobs run. */
static const char *program_of(fleet_job *j)
{
    char path[3000];
    if (j->fleet.benanza)
        return j->fleet.benanza;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return bz_arena_str(&j->arena, path);
}

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- Slurm ---------------------------------------------------------------------------------- */

/* Runs one of Slurm's programs; its own sentence is the error. */
static int slurm(const char *const *argv, bz_buf *out, bz_error *err)
{
    int rc = bz_bench_program((char *const *)argv, true, out, err);
    if (rc > 0) {
        const char *text = bz_buf_text(out);
        return bz_fail(err, BZ_FAILED, "%s would not: %.*s", argv[0], (int)strcspn(text, "\n"), text);
    }
    return rc;
}

int fleet_queue(fleet_job *j, const bz_queued **list, int *n, bz_error *err)
{
    const char *const argv[] = {"squeue", "-h", "-r", "--me", "-o", "%F %K %t %N", NULL};
    bz_buf out = {0};
    int rc = slurm(argv, &out, err);
    *n = rc ? 0 : bz_slurm_queue(bz_buf_text(&out), &j->arena, list);
    bz_buf_free(&out);
    return rc;
}

/* Submits a script that was written to `path`. `more` are options that differ. */
static int submit(fleet_job *j, const bz_fleet_system *s, const bz_fleet_names *more, const char *path, int64_t *id,
                  bz_error *err)
{
    bz_fleet_names argv = {BZ_NEW(&j->arena, const char *, more->n + 24), 0};
    bz_buf out = {0};
    argv.item[argv.n++] = "sbatch";
    argv.item[argv.n++] = "--parsable";
    argv.item[argv.n++] = "--chdir=/";
    for (int i = 0; i < more->n; i++)
        argv.item[argv.n++] = more->item[i];
    bz_slurm_options(s, &j->arena, &argv);
    argv.item[argv.n++] = path;
    int rc = slurm(argv.item, &out, err);
    /* sbatch may have something to say first: the number is on the last line */
    while (!rc && out.len && out.data[out.len - 1] == '\n')
        out.data[--out.len] = 0;
    const char *last = rc ? NULL : strrchr(bz_buf_text(&out), '\n');
    *id = rc ? 0 : bz_slurm_job(last ? last + 1 : bz_buf_text(&out));
    if (!rc && !*id)
        rc = bz_fail(err, BZ_FAILED, "sbatch did not tell the job's number but: %s", bz_buf_text(&out));
    bz_buf_free(&out);
    return rc ? bz_fail_in(err, "system %s", s->name) : 0;
}

static int write_script(const char *path, bz_buf *text, bz_error *err)
{
    int rc = bz_fleet_write(path, text, err);
    bz_buf_free(text);
    if (!rc && chmod(path, 0755))
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be made a program: %s", path, strerror(errno));
    return rc;
}

static void cancel(const int64_t *id, int n)
{
    char text[24];
    bz_error ignored;
    for (int i = 0; i < n; i++) {
        bz_buf out = {0};
        snprintf(text, sizeof text, "%lld", (long long)id[i]);
        slurm((const char *const[]){"scancel", text, NULL}, &out, &ignored);
        bz_buf_free(&out);
    }
}

/* Until none of the jobs is queued. A controller that does not answer is asked again. -1: too late. */
static int wait_for(fleet_job *j, const int64_t *id, int n, double deadline)
{
    bz_error ignored;
    for (;;) {
        const bz_queued *list;
        int queued, left = 0;
        if (fleet_queue(j, &list, &queued, &ignored))
            left = 1;
        else
            for (int i = 0; i < queued; i++)
                for (int k = 0; k < n; k++)
                    left += list[i].job == id[k];
        if (!left)
            return 0;
        if (bz_now() > deadline)
            return -1;
        nap(j->fleet.poll);
    }
}

/* ---- probes --------------------------------------------------------------------------------- */

/* Longest time that a machine is given to say what it is: it may be busy. */
enum { PROBE_SECONDS = 900 };

static int send_probe(fleet_job *j, int kind, int64_t *id, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const char *file = fleet_path(j, "probes/%s.json", s->name), *script = fleet_path(j, "probes/%s.sh", s->name);
    const char *items[] = {bz_arena_printf(&j->arena, "--job-name=benanza-probe-%s", s->name), "--time=10",
                           bz_arena_printf(&j->arena, "--output=%s", fleet_path(j, "probes/%s.out", s->name))};
    bz_buf text = {0};
    if (unlink(file) && errno != ENOENT)
        return bz_fail(err, BZ_FAILED, "%s: cannot be removed: %s", file, strerror(errno));
    bz_slurm_probe(s, program_of(j), fleet_device(j, kind), file, &text);
    return write_script(script, &text, err) || submit(j, s, &(bz_fleet_names){items, 3}, script, id, err) ? -1 : 0;
}

static bool read_answer(fleet_job *j, const bz_fleet_system *s, bz_line *line)
{
    const char *file = fleet_path(j, "probes/%s.json", s->name);
    bz_buf text = {0};
    bz_error ignored;
    bool good = !bz_fleet_slurp(file, 1 << 20, &text, &ignored);
    size_t n = text.len;
    while (n && text.data[n - 1] == '\n')
        n--;
    good = good && !bz_line_parse(bz_buf_text(&text), n, &j->arena, line, &ignored) && line->is_system;
    bz_buf_free(&text);
    return good;
}

static void take_answer(fleet_job *j, int kind)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    bz_line line;
    if (!read_answer(j, s, &line)) {
        bz_warn(j->command, "%s: no machine said what it is (see %s); planned for what was last seen", s->name,
                fleet_path(j, "probes/%s.out", s->name));
        return;
    }
    bz_fleet_stack *stack = bz_fleet_stacks_add(&j->stacks, s->name, &j->arena);
    if (*stack->system && strcmp(stack->system, line.system) != 0)
        stack->before = stack->system;
    stack->system = line.system;
    stack->seen = (int64_t)time(NULL);
}

int fleet_probe(fleet_job *j, bz_error *err)
{
    int n = j->fleet.n_systems, sent = 0;
    int64_t *id = BZ_NEW(&j->arena, int64_t, n);
    if (fleet_make_folder(fleet_path(j, "probes"), err))
        return -1;
    for (int i = 0; i < n; i++) {
        bz_error why;
        if (send_probe(j, i, &id[sent], &why))
            bz_warn(j->command, "%s", why.text);
        else
            sent++;
    }
    if (n && !sent)
        return bz_fail(err, BZ_FAILED, "no kind of machine can be asked what it is: is Slurm up? 'sinfo' tells");
    if (wait_for(j, id, sent, bz_now() + fmin(PROBE_SECONDS, j->fleet.hours * 900)))
        cancel(id, sent);
    for (int i = 0; i < n; i++)
        take_answer(j, i);
    return fleet_stacks_save(j, err);
}

/* ---- submitting ----------------------------------------------------------------------------- */

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

static bool knows_peaks(const fleet_job *j, int kind)
{
    const bz_system *system = j->want[kind].system;
    return !j->fleet.system[kind].peaks || fleet_device(j, kind) ||
           (system && system->details && strstr(system->details, "\"measured\":"));
}

/* Families of which a part is known go on behind it, as in a shard that was killed. */
static int put_known(fleet_job *j, int kind, const bz_shards *shards, int index, bz_buf *out, bz_error *err)
{
    const bz_want *want = &j->want[kind];
    const bz_setting setting = fleet_setting(&j->fleet.system[kind]);
    const bz_plan_problem *problem;
    int n = bz_plan_problems(j->plan[j->plan_of[kind]].plan, &problem);
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

static int write_shard(fleet_job *j, int kind, const bz_shards *shards, int index, int round, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const bz_setting setting = fleet_setting(s);
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, s->name);
    const char *device = fleet_device(j, kind);
    const char *folder = fleet_path(j, "%s/%s/%d-%03d", j->night.id, s->name, round, index);
    const bz_work work = {.threads = setting.threads,
                          .cold = setting.cache == BZ_CACHE_COLD,
                          .peaks = index == 0 && !knows_peaks(j, kind),
                          .time_limit = s->time_limit,
                          .device = device ? device : "",
                          .system = stack ? stack->system : ""};
    bz_plan *plan = j->plan[j->plan_of[kind]].plan;
    choice c = {&j->want[kind], shards, index};
    bz_buf text = {0}, known = {0};
    bz_plan_choose(plan, chosen, &c);
    bz_work_print(&work, &text);
    int rc = bz_generate(plan, folder, err) || put_known(j, kind, shards, index, &known, err) ||
             bz_fleet_write(bz_arena_printf(&j->arena, "%s/shard.json", folder), &text, err) ||
             bz_fleet_write(bz_arena_printf(&j->arena, "%s/known.jsonl", folder), &known, err) ||
             fleet_make_folder(bz_arena_printf(&j->arena, "%s/attempts", folder), err);
    bz_buf_free(&text);
    bz_buf_free(&known);
    return rc ? -1 : 0;
}

/* Minutes that a shard may take: three times what is estimated, and some to start with. */
static int limit_of(const bz_fleet_system *s, const bz_shards *shards)
{
    double longest = 0;
    for (int i = 0; i < shards->n; i++)
        longest = fmax(longest, shards->shard[i].seconds);
    return (int)(s->minutes > 0 ? s->minutes : ceil(3 * longest / 60) + 10);
}

static void add_shards(fleet_job *j, bz_night_system *n, const bz_shards *shards, int round)
{
    n->shard = bz_arena_grow(&j->arena, n->shard, (size_t)n->n_shards, (size_t)n->n_shards + (size_t)shards->n,
                             sizeof *n->shard);
    for (int i = 0; i < shards->n; i++)
        n->shard[n->n_shards++] =
            (bz_night_shard){round, i, shards->shard[i].problems, shards->shard[i].families, shards->shard[i].seconds};
}

static int submit_kind(fleet_job *j, int kind, int round, int64_t now, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    bz_night_system *n = &j->night.system[kind];
    const char *folder = fleet_path(j, "%s/%s", j->night.id, s->name);
    const char *script = fleet_path(j, "%s/%s/round-%d.sh", j->night.id, s->name, round);
    bz_shards shards;
    bz_buf text = {0};
    int64_t id;
    bz_shards_make(j->plan[j->plan_of[kind]].plan, &j->want[kind], 60 * j->fleet.shard_minutes, (int)s->shards,
                   &j->arena, &shards);
    if (!shards.n)
        return 0;
    if (fleet_make_folder(folder, err))
        return -1;
    for (int i = 0; i < shards.n; i++)
        if (write_shard(j, kind, &shards, i, round, err))
            return -1;
    bz_slurm_script(s, program_of(j), folder, round, &text);
    const char *items[] = {bz_arena_printf(&j->arena, "--job-name=benanza-%s", s->name),
                           bz_arena_printf(&j->arena, "--array=0-%d", shards.n - 1),
                           bz_arena_printf(&j->arena, "--time=%d", limit_of(s, &shards)),
                           bz_arena_printf(&j->arena, "--output=%s/slurm-%%A_%%a.out", folder),
                           "--requeue",
                           "--open-mode=append"};
    if (write_script(script, &text, err) ||
        submit(j, s, &(bz_fleet_names){items, (int)(sizeof items / sizeof *items)}, script, &id, err))
        return -1;
    n->job = bz_arena_grow(&j->arena, n->job, (size_t)n->n_jobs, (size_t)n->n_jobs + 1, sizeof *n->job);
    n->job[n->n_jobs++] = (bz_night_job){round, id, now};
    add_shards(j, n, &shards, round);
    return 0;
}

/* The job that merges, behind all others of the round. */
static int submit_merge(fleet_job *j, int round, bz_error *err)
{
    const char *script = fleet_path(j, "%s/merge-%d.sh", j->night.id, round);
    bz_buf text = {0}, after = {0};
    for (int i = 0; i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            if (j->night.system[i].job[k].round == round)
                bz_buf_printf(&after, ":%lld", (long long)j->night.system[i].job[k].id);
    if (!j->fleet.merge.name || !after.len) {
        bz_buf_free(&after);
        return 0;
    }
    char *db = realpath(bz_perfdb_dir(j->db), NULL);
    bz_slurm_merge(program_of(j), j->config, db ? db : bz_perfdb_dir(j->db), j->night.id, &text);
    free(db);
    const char *items[] = {"--job-name=benanza-merge",
                           bz_arena_printf(&j->arena, "--dependency=afterany%s", after.data),
                           bz_arena_printf(&j->arena, "--output=%s/slurm-merge.out", fleet_path(j, "%s", j->night.id)),
                           "--open-mode=append", "--time=60"};
    bz_fleet_system how = j->fleet.merge;
    how.shared = true;
    bz_buf_free(&after);
    return write_script(script, &text, err) ||
                   submit(j, &how, &(bz_fleet_names){items, (int)(sizeof items / sizeof *items)}, script,
                          &j->night.merge_job, err)
               ? -1
               : 0;
}

/* What the report will hold tonight's records against: where the software changed, the stack before; else this
 * stack as it was until now. */
static int compare_with(fleet_job *j, int kind, bz_night_system *n, bz_error *err)
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

static int new_night(fleet_job *j, int64_t now, bz_error *err)
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
    const char *folder = fleet_path(j, "%s", id);
    if (mkdir(folder, 0777))
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    return 0;
}

/* A kind that Slurm refuses (a partition that is gone) does not hold up the others. */
static int submit_kinds(fleet_job *j, int round, int64_t now, bz_error *err)
{
    int tried = 0, refused = 0;
    for (int i = 0; i < j->fleet.n_systems; i++) {
        if (!j->want[i].problems)
            continue;
        tried++;
        if (submit_kind(j, i, round, now, err)) {
            refused++;
            bz_warn(j->command, "%s: not submitted: %s", j->fleet.system[i].name, err->text);
            j->night.system[i].note = bz_arena_str(&j->arena, err->text);
        }
    }
    return tried == refused ? -1 : 0;
}

int fleet_submit(fleet_job *j, int round, int64_t now, bz_error *err)
{
    int wanted = 0;
    bz_error ignored;
    for (int i = 0; i < j->fleet.n_systems; i++)
        wanted += j->want[i].problems;
    if (!wanted || (round == 1 && new_night(j, now, err)))
        return wanted ? -1 : 0;
    int rc = submit_kinds(j, round, now, err) || submit_merge(j, round, err);
    /* What was submitted before an error is written down: it runs. */
    return fleet_night_save(j, rc ? &ignored : err) || rc ? -1 : 0;
}

/* ---- nights --------------------------------------------------------------------------------- */

static int later(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static int is_night(const struct dirent *e)
{
    return bz_night_is_id(e->d_name);
}

int fleet_night_load(fleet_job *j, bz_error *err)
{
    struct dirent **list;
    bz_buf text = {0};
    const char *id = j->night_name;
    if (id && !bz_night_is_id(id))
        return bz_fail(err, BZ_USAGE, "'%s' is no night: 20261121T020000Z is", id);
    if (!id) {
        int n = scandir(j->fleet.folder, &list, is_night, later);
        for (int i = 0; i < n; i++) {
            if (!id && !access(fleet_path(j, "%s/night.json", list[i]->d_name), F_OK))
                id = bz_arena_str(&j->arena, list[i]->d_name);
            free(list[i]);
        }
        if (n >= 0)
            free(list);
    }
    if (!id)
        return bz_fail(err, BZ_BAD_INPUT, "%s: there was no night yet: 'benanza fleet nightly' makes one",
                       j->fleet.folder);
    const char *path = fleet_path(j, "%s/night.json", id);
    int rc = bz_fleet_slurp(path, 64 << 20, &text, err) ||
             bz_night_parse(bz_buf_text(&text), path, &j->arena, &j->night, err);
    if (!rc && strcmp(j->night.id, id) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: is of another night: %s", path, j->night.id);
    bz_buf_free(&text);
    return rc ? -1 : 0;
}

int fleet_night_save(fleet_job *j, bz_error *err)
{
    bz_buf text = {0};
    bz_night_print(&j->night, &text);
    int rc = bz_fleet_write(fleet_path(j, "%s/night.json", j->night.id), &text, err);
    bz_buf_free(&text);
    return rc;
}

static int jobs_of(fleet_job *j, int64_t **id)
{
    int n = 0, most = 1;
    for (int i = 0; i < j->night.n_systems; i++)
        most += j->night.system[i].n_jobs;
    *id = BZ_NEW(&j->arena, int64_t, most);
    for (int i = 0; i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            (*id)[n++] = j->night.system[i].job[k].id;
    if (j->night.merge_job)
        (*id)[n++] = j->night.merge_job;
    return n;
}

int fleet_wait(fleet_job *j, double deadline, bz_error *err)
{
    int64_t *id;
    int n = jobs_of(j, &id);
    (void)err;
    if (wait_for(j, id, n, deadline)) {
        bz_warn(j->command, "the night's %g hours are over: what still waits or runs is cancelled", j->fleet.hours);
        cancel(id, n);
        wait_for(j, id, n, bz_now() + 60);
    }
    return 0;
}

/* A night that still runs would be planned for twice. */
static int none_running(fleet_job *j, bz_error *err)
{
    const bz_queued *list;
    int64_t *id;
    int n, queued;
    bz_error ignored;
    if (fleet_night_load(j, &ignored))
        return 0;
    n = jobs_of(j, &id);
    if (fleet_queue(j, &list, &queued, err))
        return -1;
    for (int i = 0; i < queued; i++)
        for (int k = 0; k < n; k++)
            if (list[i].job == id[k])
                return bz_fail(err, BZ_FAILED, "night %s is still under way (job %lld): 'benanza fleet status' tells",
                               j->night.id, (long long)id[k]);
    j->night = (bz_night){0};
    return 0;
}

static int prepare(fleet_job *j, bool probe, bz_error *err)
{
    const bz_fleet_names given = {j->arguments.item, j->arguments.n};
    if (fleet_open(j, false, err) || fleet_lock(j, err) || fleet_make_folder(j->fleet.folder, err) ||
        none_running(j, err) || fleet_load(j, &given, err) || (probe && fleet_probe(j, err)))
        return -1;
    return fleet_want(j, false, err);
}

static bool probe_option;

static int submit_night(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    (void)status;
    if (prepare(j, probe_option, err))
        return -1;
    fleet_plan_print(j, out);
    if (fleet_submit(j, 1, (int64_t)time(NULL), err))
        return -1;
    for (int i = 0; !j->json && i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            bz_buf_printf(out, "%s: job %lld, %d shards\n", j->night.system[i].name,
                          (long long)j->night.system[i].job[k].id, j->night.system[i].n_shards);
    return 0;
}

static int run_submit(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_submit, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"max-age", BZ_OPTION_INT, &j.max_age, "DAYS", "what is older is measured again (0: never; as the file says)"},
        {"probe", BZ_OPTION_FLAG, &probe_option, NULL, "first ask a machine of each kind what it is"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, submit_night);
}

const bz_command bz_command_fleet_submit = {"fleet submit", "[MODEL...] [OPTIONS]",
                                            "one job array per kind of machine, and one that merges", run_submit};

/* ---- nightly -------------------------------------------------------------------------------- */

static int write_reports(fleet_job *j, const bz_fleet_report *report, bz_error *err)
{
    static const char *const NAMES[] = {"report.txt", "report.json", "report.html"};
    int rc = 0;
    for (int i = 0; i < 3 && !rc; i++) {
        bz_buf text = {0};
        if (i == 0)
            bz_fleet_report_text(report, 50, &text);
        else if (i == 1)
            bz_fleet_report_json(report, &text);
        else
            bz_fleet_report_html(report, 1000, &text);
        rc = bz_fleet_write(fleet_path(j, "%s/%s", j->night.id, NAMES[i]), &text, err);
        bz_buf_free(&text);
    }
    return rc;
}

static int nightly(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    double deadline;
    bz_fleet_report report;
    if (prepare(j, true, err))
        return -1;
    deadline = bz_now() + 3600 * j->fleet.hours;
    for (int round = 1; round <= (int)j->fleet.rounds && bz_now() < deadline; round++) {
        int before = 0;
        for (int i = 0; i < j->night.n_systems; i++)
            before += j->night.system[i].n_jobs;
        if (fleet_submit(j, round, (int64_t)time(NULL), err))
            return -1;
        int after = 0;
        for (int i = 0; i < j->night.n_systems; i++)
            after += j->night.system[i].n_jobs;
        if (after == before)
            break;
        if (fleet_wait(j, deadline, err) || fleet_collect(j, err) || fleet_want(j, true, err))
            return -1;
    }
    if (!j->night.id) {
        fleet_plan_print(j, out);
        return 0;
    }
    if (fleet_report_make(j, j->fleet.tolerance, &report, err) || write_reports(j, &report, err))
        return -1;
    if (j->json)
        bz_fleet_report_json(&report, out);
    else
        bz_fleet_report_text(&report, 12, out);
    *status = report.regressions || report.left ? BZ_INCOMPLETE : BZ_OK;
    return 0;
}

static int run_nightly(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_nightly, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"max-age", BZ_OPTION_INT, &j.max_age, "DAYS", "what is older is measured again (0: never; as the file says)"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, nightly);
}

const bz_command bz_command_fleet_nightly = {"fleet nightly", "[MODEL...] [OPTIONS]",
                                             "probe, plan, submit, wait, merge and report: for a timer", run_nightly};
