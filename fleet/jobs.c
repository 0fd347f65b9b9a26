/* Slurm's programs, which are run for jobs, and the question what a machine is. */
#include "bench/bench.h"
#include "fleet/steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The program that jobs run. */
const char *bz_fleet_program(bz_fleet_job *j)
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

int bz_fleet_queue(bz_fleet_job *j, const bz_queued **list, int *n, bz_error *err)
{
    const char *const argv[] = {"squeue", "-h", "-r", "--me", "-o", "%F %K %t %N", NULL};
    BZ_SCOPED(bz_buf) out = {0};
    int rc = slurm(argv, &out, err);
    *n = rc ? 0 : bz_slurm_queue(bz_buf_text(&out), &j->arena, list);
    return rc;
}

/* Submits a script that was written to `path`. `more` are options that differ. */
int bz_fleet_sbatch(bz_fleet_job *j, const bz_fleet_system *s, const bz_fleet_names *more, const char *path,
                    int64_t *id, bz_error *err)
{
    bz_fleet_names argv = {BZ_NEW(&j->arena, const char *, more->n + s->options.n + 24), 0};
    BZ_SCOPED(bz_buf) out = {0};
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
    return rc ? bz_fail_in(err, "system %s", s->name) : 0;
}

int bz_fleet_write_script(const char *path, bz_buf *text, bz_error *err)
{
    int rc = bz_whole_write(path, text, err);
    bz_buf_free(text);
    if (!rc && chmod(path, 0755))
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be made a program: %s", path, strerror(errno));
    return rc;
}

void bz_fleet_cancel(const int64_t *id, int n)
{
    char text[24];
    bz_error ignored;
    for (int i = 0; i < n; i++) {
        BZ_SCOPED(bz_buf) out = {0};
        snprintf(text, sizeof text, "%lld", (long long)id[i]);
        slurm((const char *const[]){"scancel", text, NULL}, &out, &ignored);
    }
}

int bz_fleet_wait_for(bz_fleet_job *j, const int64_t *id, int n, double deadline)
{
    bz_error ignored;
    for (;;) {
        const bz_queued *list;
        int queued, left = 0;
        if (bz_fleet_queue(j, &list, &queued, &ignored))
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

/* Longest time that a machine is given to say what it is: it may be busy. */
enum { PROBE_SECONDS = 900 };

static int send_probe(bz_fleet_job *j, int kind, int64_t *id, bz_error *err)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    const char *file = bz_fleet_path(j, "probes/%s.json", s->name), *script = bz_fleet_path(j, "probes/%s.sh", s->name);
    const char *items[] = {bz_arena_printf(&j->arena, "--job-name=benanza-probe-%s", s->name), "--time=10",
                           bz_arena_printf(&j->arena, "--output=%s", bz_fleet_path(j, "probes/%s.out", s->name))};
    bz_buf text = {0};
    if (unlink(file) && errno != ENOENT)
        return bz_fail(err, BZ_FAILED, "%s: cannot be removed: %s", file, strerror(errno));
    bz_slurm_probe(s, bz_fleet_program(j), bz_fleet_plan_of(j, kind)->device, file, &text);
    return bz_fleet_write_script(script, &text, err) ||
                   bz_fleet_sbatch(j, s, &(bz_fleet_names){items, 3}, script, id, err)
               ? -1
               : 0;
}

static bool read_answer(bz_fleet_job *j, const bz_fleet_system *s, bz_line *line)
{
    const char *file = bz_fleet_path(j, "probes/%s.json", s->name);
    BZ_SCOPED(bz_buf) text = {0};
    bz_error ignored;
    bool good = !bz_whole_read(file, 1 << 20, BZ_FLEET_TOO_LONG, &text, &ignored);
    size_t n = text.len;
    while (n && text.data[n - 1] == '\n')
        n--;
    return good && !bz_line_parse(bz_buf_text(&text), n, &j->arena, line, &ignored) && line->is_system;
}

static void take_answer(bz_fleet_job *j, int kind)
{
    const bz_fleet_system *s = &j->fleet.system[kind];
    bz_line line;
    if (!read_answer(j, s, &line)) {
        bz_fleet_warn(j, "%s: no machine said what it is (see %s); planned for what was last seen", s->name,
                      bz_fleet_path(j, "probes/%s.out", s->name));
        return;
    }
    bz_fleet_stack *stack = bz_fleet_stacks_add(&j->stacks, s->name, &j->arena);
    if (*stack->system && strcmp(stack->system, line.system) != 0)
        stack->before = stack->system;
    stack->system = line.system;
    stack->seen = (int64_t)time(NULL);
}

int bz_fleet_probe(bz_fleet_job *j, bz_error *err)
{
    int n = j->fleet.n_systems, sent = 0;
    int64_t *id = BZ_NEW(&j->arena, int64_t, n);
    if (bz_fleet_make_folder(bz_fleet_path(j, "probes"), err))
        return -1;
    for (int i = 0; i < n; i++) {
        bz_error why;
        if (send_probe(j, i, &id[sent], &why))
            bz_fleet_warn(j, "%s", why.text);
        else
            sent++;
    }
    if (n && !sent)
        return bz_fail(err, BZ_FAILED, "no kind of machine can be asked what it is: is Slurm up? 'sinfo' tells");
    if (bz_fleet_wait_for(j, id, sent, bz_now() + fmin(PROBE_SECONDS, j->fleet.hours * 900)))
        bz_fleet_cancel(id, sent);
    for (int i = 0; i < n; i++)
        take_answer(j, i);
    return bz_fleet_stacks_save(j, err);
}
