/* Runs a built folder of benchmarks, and stores what it finds as it comes. */
#include "base/whole.h"
#include "bench/bench.h"
#include "bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One line of the program: what the machine is, or a record, stored before the next one is read. */
static int store(bz_bench *run, const char *text, size_t n, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_line line;
    int rc = 0;
    if (bz_line_parse(text, n, &arena, &line, err)) {
        run->bad++;
    } else if (line.is_system) {
        rc = bz_perfdb_put_system(run->db, line.system, line.details, line.date, err);
    } else if (!(rc = run->each ? run->each(run->user, &line.record, err) : 0)) {
        rc = bz_perfdb_put(run->db, &line.record, 1, NULL, err);
        run->records += !rc;
        run->busy += !rc && line.record.busy;
        run->failed += !rc && bz_record_failed(&line.record);
    }
    return rc < 0 ? -1 : 0;
}

/* Hands whole lines to `each` and keeps the rest. */
static int take_lines(bz_buf *buf, bz_bench *run, bz_progress *progress, bool records, bz_error *err)
{
    size_t at = 0;
    int rc = 0;
    for (char *end; !rc && at < buf->len && (end = memchr(buf->data + at, '\n', buf->len - at));) {
        *end = 0;
        char *line = buf->data + at, *rest = NULL;
        if (records) {
            rc = store(run, line, (size_t)(end - line), err);
        } else {
            long done = strtol(line, &rest, 10);
            progress->total = strtol(rest, &rest, 10);
            bz_progress_at(progress, done, *rest == ' ' ? rest + 1 : rest);
            run->problems = (int)done;
        }
        at = (size_t)(end - buf->data) + 1;
    }
    memmove(buf->data, buf->data + at, buf->len - at);
    buf->len -= at;
    return rc;
}

static int read_both(int fd[2], bz_bench *run, pid_t child, bz_error *err)
{
    bz_buf buf[2] = {{0}, {0}};
    struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
    bz_progress progress = bz_progress_start("running benchmarks", 0);
    int rc = 0;
    while (!rc && (p[0].fd >= 0 || p[1].fd >= 0)) {
        if (poll(p, 2, -1) < 0)
            continue;
        for (int i = 0; i < 2 && !rc; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            char chunk[16384];
            ssize_t n = read(p[i].fd, chunk, sizeof chunk);
            if (n > 0) {
                bz_buf_put(&buf[i], chunk, (size_t)n);
                rc = take_lines(&buf[i], run, &progress, !i, err);
            } else if (!n || errno != EINTR) {
                p[i].fd = -1;
            }
        }
    }
    if (rc)
        kill(child, SIGTERM);
    bz_progress_end(&progress);
    bz_buf_free(&buf[0]);
    bz_buf_free(&buf[1]);
    return rc;
}

static int spawn_program(char *const *argv, int out[2], int progress[2], pid_t *child, bz_error *err)
{
    if (pipe2(out, O_CLOEXEC))
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    if (pipe2(progress, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    }
    const bz_child_file to[] = {{out[1], STDOUT_FILENO}, {progress[1], 9}};
    int failed = bz_child_start(child, argv, false, to, 2, err);
    close(out[1]);
    close(progress[1]);
    return failed;
}

/* What is to be run, as the program's --only reads it: a line for each problem, and behind it, indented, what
 * is known of it already: families, and variants of families that an earlier run was killed in. */
typedef struct missing {
    bz_bench *run;
    bz_arena arena;
    bz_record *records; /* of the problem at hand */
    size_t n_records;
    const char *problem; /* NULL: it does not pass the filter */
    bool written;        /* the problem has its line */
    bz_buf known, *only;
    int n;
} missing;

static int next_problem(missing *m, const char *text, bz_error *err)
{
    m->written = false;
    m->n_records = 0;
    bz_buf_clear(&m->known);
    m->problem = !m->run->filter || strstr(text, m->run->filter) ? text : NULL;
    m->run->listed += m->problem != NULL;
    if (!m->problem || m->run->all)
        return 0;
    if (bz_perfdb_variants(m->run->db, m->run->system, text, &m->arena, &m->records, &m->n_records, err))
        return -1;
    m->n_records = bz_records_keep(m->records, m->n_records, m->run->again);
    return 0;
}

static void add_family(missing *m, const bz_variant *family)
{
    const bz_setting *setting = &m->run->setting;
    bz_buf *out = m->written ? m->only : &m->known;
    if (bz_records_complete(m->records, m->n_records, family, setting)) {
        bz_buf_printf(out, "    %s %s %s\n", family->backend, family->layout, family->math);
        return;
    }
    if (!m->written) { /* the first that is wanted: what was known before it comes behind the problem */
        bz_buf_printf(m->only, "%s\n", m->problem);
        bz_buf_put(m->only, bz_buf_text(&m->known), m->known.len);
        m->written = true;
        m->n++;
    }
    for (size_t i = 0; i < m->n_records; i++)
        if (bz_record_in_family(&m->records[i], family, setting))
            bz_buf_printf(m->only, "    %s %s %s %s\n", family->backend, family->layout, family->math,
                          m->records[i].variant.algorithm);
}

/* The program and its arguments, and more of these. */
static char **with(char *const *program, char *const *more, bz_arena *arena)
{
    int n = 0, all = 0;
    while (program[n])
        n++;
    while (more[all])
        all++;
    char **argv = BZ_NEW(arena, char *, n + all + 1);
    memcpy(argv, program, (size_t)n * sizeof *argv);
    memcpy(argv + n, more, (size_t)all * sizeof *argv);
    return argv;
}

/* Goes through the problems and families of the program. */
static int list_missing(bz_bench *run, char *const *program, bz_buf *only, int *n, bz_error *err)
{
    BZ_SCOPED(bz_buf) list = {0};
    missing m = {.run = run, .only = only};
    bz_arena arena = {0};
    char *rest = NULL;
    int rc = bz_bench_output(with(program, (char *[]){"--list", NULL}, &arena), &list, err);
    bz_arena_free(&arena);
    for (char *line = rc || !list.len ? NULL : strtok_r(list.data, "\n", &rest); line && !rc;
         line = strtok_r(NULL, "\n", &rest)) {
        char backend[64], layout[64], math[64];
        if (*line != ' ')
            rc = next_problem(&m, line, err);
        else if (m.problem && sscanf(line, " %63s %63s %63s", backend, layout, math) == 3)
            add_family(&m, &(bz_variant){backend, "", layout, math});
    }
    *n = m.n;
    bz_arena_free(&m.arena);
    bz_buf_free(&m.known);
    return rc;
}

/* Whoever stops a measurement is told what it leaves; the process then ends by the same signal. */
static int tell_stop(bz_bench *run, bz_error *err)
{
    run->stopped_by = bz_child_stopped();
    return bz_fail(err, BZ_FAILED, "stopped; %d record%s stored, running again goes on behind %s", run->records,
                   run->records == 1 ? " is" : "s are", run->records == 1 ? "it" : "them");
}

/* Starts the program and takes what it says until it ends. */
static int supervise(bz_bench *run, char *const *argv, bz_error *err)
{
    struct sigaction old[BZ_CHILD_SIGNALS];
    int out[2], progress[2], status = 0;
    pid_t child;
    bz_child_catch(old);
    int rc = spawn_program(argv, out, progress, &child, err);
    bool begun = !rc;
    if (begun) {
        rc = read_both((int[]){out[0], progress[0]}, run, child, err);
        close(out[0]);
        close(progress[0]);
        status = bz_child_wait(child);
    }
    bz_child_uncatch(old);
    if ((!rc || !begun) && bz_bench_stopped())
        return tell_stop(run, err);
    if (rc && begun && run->records) /* a full disk */
        return bz_fail_in(err, "%d record%s stored, the next one is not", run->records,
                          run->records == 1 ? " is" : "s are");
    if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
        rc = bz_fail(err, BZ_FAILED, "%s ended early; %d records are stored", argv[0], run->records);
    return rc;
}

/* `only_path` is a file to be written. */
static int run_program(char *const *program, const char *only_path, bz_bench *run, bz_error *err)
{
    char plans[BZ_FOLDER_MAX + 8], threads[24], yardstick[32];
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_system_facts *facts = bz_system_facts_read(run->system->details, &arena);
    double known = facts->yardstick;
    bz_buf only = {0};
    snprintf(plans, sizeof plans, "%s/plans", bz_perfdb_dir(run->db));
    snprintf(threads, sizeof threads, "%d", run->setting.threads);
    snprintf(yardstick, sizeof yardstick, "%.9g", known);
    int rc = list_missing(run, program, &only, &run->wanted, err);
    if (!rc && run->wanted)
        rc = bz_whole_write(only_path, &only, err);
    bz_buf_free(&only);
    const struct {
        const char *name, *value;
    } options[] = {{"--progress", "9"},
                   {"--only", only_path},
                   {"--threads", threads},
                   {"--cache", bz_record_cache_name(run->setting.cache)},
                   {"--time-limit", run->time_limit},
                   {"--wait", run->wait},
                   {"--yardstick", known > 0 ? yardstick : NULL},
                   {"--plans", plans},
                   {"--lock-clock", bz_setting_clock(&run->setting)},
                   {"--engines", run->engines},
                   {"--metrics", run->metrics}};
    enum { N_OPTIONS = sizeof options / sizeof *options };
    char *more[2 * N_OPTIONS + 1] = {NULL}, **at = more;
    for (int i = 0; i < N_OPTIONS; i++)
        if (options[i].value) {
            *at++ = (char *)options[i].name;
            *at++ = (char *)options[i].value;
        }
    if (!rc && run->wanted)
        rc = supervise(run, with(program, more, &arena), err);
    return rc ? -1 : 0;
}

int bz_bench_run(const char *folder, bz_bench *run, bz_error *err)
{
    char program[3300], only_path[3300];
    snprintf(program, sizeof program, "%s/build/benchmarks", folder);
    snprintf(only_path, sizeof only_path, "%s/build/only", folder);
    return run_program((char *[]){program, NULL}, only_path, run, err);
}

int bz_bench_texts(const char *const *text, int n, const char *backend, bz_bench *run, bz_error *err)
{
    char path[3100], folder[BZ_FOLDER_MAX];
    BZ_SCOPED(bz_arena) arena = {0};
    char *options[] = {path, "--layout", "plain", "--backend", (char *)backend, NULL};
    if (bz_bench_find(path, sizeof path, err))
        return -1;
    char **problems = BZ_NEW(&arena, char *, n + 1);
    for (int i = 0; i < n; i++)
        problems[i] = (char *)text[i];
    bz_bench_hold();
    int rc = bz_folder_make(folder, err);
    if (!rc) {
        rc = run_program(with(options, problems, &arena), bz_arena_printf(&arena, "%s/only", folder), run, err);
        bz_folder_remove(folder);
    }
    if (rc && bz_bench_stopped())
        rc = tell_stop(run, err);
    bz_bench_release();
    return rc;
}

int bz_bench_plan(const bz_plan *plan, bz_bench *run, bool peaks, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    bz_bench_hold();
    if (bz_folder_make(folder, err)) {
        bz_bench_release();
        return -1;
    }
    int rc = bz_generate(plan, folder, err);
    bool unbuilt = !rc && bz_bench_build(folder, err);
    rc = rc || unbuilt ||
         (peaks && bz_bench_peaks(run->db, run->setting.threads, run->wait, run->again, &run->system, err)) ||
         bz_bench_run(folder, run, err);
    if (!unbuilt || bz_bench_stopped() || run->stopped_by)
        bz_folder_remove(folder);
    if (bz_bench_stopped())
        rc = tell_stop(run, err);
    bz_bench_release();
    return rc ? -1 : 0;
}

int bz_bench_folder(const char *folder, bz_bench *run, bz_error *err)
{
    bz_bench_hold();
    int rc = bz_bench_build(folder, err) ||
             bz_bench_system(run->db, NULL, bz_bench_folder_device(folder), &run->system, err) ||
             bz_bench_run(folder, run, err);
    if (bz_bench_stopped())
        rc = tell_stop(run, err);
    bz_bench_release();
    return rc ? -1 : 0;
}
