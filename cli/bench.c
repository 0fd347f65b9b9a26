/* Programs that measure: benanza-bench, which knows the machine, and generated folders, which are built and
 * run here. Both live outside of benanza, so that it stays light and a crash stays theirs. */
#include "cli/bench.h"

#include "base/keeper.h"
#include "cli/db.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The program: $BENANZA_BENCH, beside benanza (build tree), or in libexec (installed). */
int bz_bench_find(char *out, size_t size, bz_error *err)
{
    char folder[3000];
    const char *given = getenv("BENANZA_BENCH");
    if (given && *given) {
        snprintf(out, size, "%s", given);
    } else {
        ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
        folder[n > 0 ? n : 0] = 0;
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = 0;
        snprintf(out, size, "%s/benanza-bench", folder);
        if (access(out, X_OK))
            snprintf(out, size, "%s/../libexec/benanza/benanza-bench", folder);
    }
    if (!access(out, X_OK))
        return 0;
    return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s; install benanza's runtime, or set BENANZA_BENCH", out,
                   strerror(errno));
}

/* ---- being stopped -------------------------------------------------------------------------- */

static const int STOPPING[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_STOPPING = sizeof STOPPING / sizeof *STOPPING };
static struct sigaction released[N_STOPPING];
static bool held;
static volatile sig_atomic_t stopped; /* the signal that came, or 0 */
static volatile sig_atomic_t running; /* what it is passed on to: a process, a group where negative, or 0 */

static void stop(int signal_number)
{
    int why = errno;
    stopped = signal_number;
    if (running)
        kill(running, SIGTERM);
    errno = why;
}

void bz_bench_hold(void)
{
    struct sigaction action = {.sa_handler = stop};
    for (int i = 0; i < N_STOPPING; i++)
        if (!sigaction(STOPPING[i], NULL, &released[i]) && released[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(STOPPING[i], &action, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that wait_for can wait for all of a group */
    held = true;
}

bool bz_bench_stopped(void)
{
    return stopped;
}

void bz_bench_release(void)
{
    for (int i = 0; i < N_STOPPING; i++)
        sigaction(STOPPING[i], &released[i], NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    held = false;
    if (stopped)
        raise(stopped);
}

/* Starts a program; the end that we are asked for is its end first. Programs that start others (a build) get a
 * group, so that all of them go; a terminal's Ctrl-C then reaches them through us alone. */
static int spawn(pid_t *child, char *const *argv, bool group, const posix_spawn_file_actions_t *actions)
{
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (group && held)
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int why = stopped ? EINTR : posix_spawnp(child, argv[0], actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (why)
        return why;
    running = group && held ? -*child : *child;
    bz_keeper_program(running);
    if (stopped) /* before we knew whom to tell */
        kill(running, SIGTERM);
    return 0;
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    /* What it started has been told, too, in groups of its own where ninja built: for two seconds, that it writes no more. */
    for (int i = 0; stopped && running < 0 && i < 200; i++) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0 && errno == ECHILD)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    bz_keeper_forget_program(running);
    running = 0;
    return status;
}

/* ---- output ------------------------------------------------------------------------------------ */

static int read_all(int fd, bz_buf *out)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bz_buf_put(out, chunk, (size_t)n);
    }
    return 0;
}

int bz_bench_program(char *const *argv, bool complaints, bz_buf *out, bz_error *err)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends))
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (complaints)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int why = spawn(&child, argv, false, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    bool bad = !why && read_all(ends[0], out);
    close(ends[0]);
    if (why)
        return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s", argv[0], strerror(why));
    int status = wait_for(child);
    return bad || !WIFEXITED(status) || WEXITSTATUS(status);
}

int bz_bench_output(char *const *argv, bz_buf *out, bz_error *err)
{
    int result = bz_bench_program(argv, false, out, err);
    return result > 0 ? bz_fail(err, BZ_FAILED, "%s did not say what the machine is", argv[0]) : result;
}

/* The system line of a device. Where there is none the program's sentence becomes ours. */
static int device_output(char *const *argv, const char *advice, bz_buf *out, bz_error *err)
{
    int result = bz_bench_program(argv, true, out, err);
    if (result <= 0)
        return result;
    const char *text = out->len ? bz_buf_text(out) : "benanza: no device was found\n";
    text = !strncmp(text, "benanza: ", 9) ? text + 9 : text;
    return bz_fail(err, BZ_FAILED, "%.*s; %s", (int)strcspn(text, "\n"), text, advice);
}

int bz_bench_device(const char *backend, bz_error *err)
{
    char path[3100], *argv[] = {path, "--system", "--backend", (char *)backend, NULL};
    bz_buf text = {0};
    int rc = bz_bench_find(path, sizeof path, err) ||
             device_output(argv, "--no-run with --folder writes the program for another machine", &text, err);
    bz_buf_free(&text);
    return rc ? -1 : 0;
}

/* Runs benanza-bench for the line that says what the machine is. */
static int ask_line(const char *const *options, const char *backend, bz_arena *arena, bz_line *line, bz_error *err)
{
    char path[3100], *argv[8] = {path, "--system"};
    bz_buf text = {0};
    for (int i = 0; options[i]; i++)
        argv[2 + i] = (char *)options[i];
    int rc = bz_bench_find(path, sizeof path, err) ||
             (backend ? device_output(argv, "--system NAME looks up the records of another machine", &text, err)
                      : bz_bench_output(argv, &text, err));
    size_t n = text.len;
    while (n && text.data[n - 1] == '\n')
        n--;
    rc = rc || bz_line_parse(bz_buf_text(&text), n, arena, line, err);
    if (!rc && !line->is_system)
        rc = bz_fail(err, BZ_FAILED, "%s did not say what the machine is", path);
    bz_buf_free(&text);
    return rc ? -1 : 0;
}

/* Peaks belong to a thread count: those that were measured with others stay. The text is read as a line, so that it is
 * spelled as an import would. What was measured just now is the newest, whatever other clocks said. */
static int keep_peaks(const bz_system *known, bz_line *line, bz_arena *arena, bz_error *err)
{
    const char *joined = bz_peaks_join(known->details, line->details, arena);
    bz_line again;
    if (line->date <= known->date && known->date < INT64_MAX)
        line->date = known->date + 1;
    if (!joined)
        return 0;
    const char *text = bz_arena_printf(arena, "{\"v\":1,\"record\":\"system\",%s", joined + 1);
    if (bz_line_parse(text, strlen(text), arena, &again, err))
        return -1;
    line->details = again.details;
    return 0;
}

/* Stores what the machine is where `again`, or where the database knows nothing of the system. */
static int identify(bz_perfdb *db, const char *const *options, const char *backend, bool again,
                    const bz_system **system, bz_error *err)
{
    bz_arena arena = {0};
    bz_line line;
    int rc = ask_line(options, backend, &arena, &line, err) || bz_perfdb_system(db, line.system, system, err) ||
             (again && *system && keep_peaks(*system, &line, &arena, err));
    if (!rc && (again || !*system || !(*system)->details || !strcmp((*system)->details, "{}")))
        rc = bz_perfdb_put_system(db, line.system, line.details, line.date, err) ||
             bz_perfdb_system(db, line.system, system, err);
    bz_arena_free(&arena);
    return rc ? -1 : 0;
}

int bz_bench_system(bz_perfdb *db, const char *given, const char *backend, const bz_system **system, bz_error *err)
{
    const char *options[] = {backend ? "--backend" : NULL, backend, NULL};
    return given ? bz_db_system(db, given, system, err) : identify(db, options, backend, false, system, err);
}

int bz_bench_look(const char *backend, bz_arena *arena, bz_line *line, bz_error *err)
{
    const char *options[] = {backend ? "--backend" : NULL, backend, NULL};
    return ask_line(options, backend, arena, line, err);
}

int bz_bench_text(bz_buf *out, bz_error *err)
{
    char path[3100], *argv[] = {path, "--system", "--text", NULL};
    return bz_bench_find(path, sizeof path, err) || bz_bench_output(argv, out, err) ? -1 : 0;
}

int bz_bench_measure(bz_perfdb *db, int threads, const char *wait, const bz_system **system, bz_error *err)
{
    char count[24];
    const char *options[] = {"--measure", "--threads", count, wait ? "--wait" : NULL, wait, NULL};
    snprintf(count, sizeof count, "%d", threads ? threads : 1);
    bz_progress progress = bz_progress_start("measuring the peak rates of this machine", 0);
    int rc = identify(db, options, NULL, true, system, err);
    bz_progress_end(&progress);
    return rc;
}

int bz_bench_peaks(bz_perfdb *db, int threads, const char *wait, const bz_remeasure *again, const bz_system **system,
                   bz_error *err)
{
    bool busy, known = (*system)->details && bz_peaks_have((*system)->details, threads ? threads : 1);
    bz_peaks_yardstick((*system)->details, threads ? threads : 1, &busy);
    bool wanted = again && (again->all || (again->marked && busy) || (*system)->date < again->before);
    return known && !wanted ? 0 : bz_bench_measure(db, threads, wait, system, err);
}

/* ---- building ------------------------------------------------------------------------------- */

/* The folder with the runtime's package: in the build tree, installed beside the program, or where it
 * was when this was compiled. */
static void find_runtime(char *out, size_t size)
{
    static const char *const PLACES[] = {"benanza-runtime", "../" BENANZA_LIBDIR "/cmake/benanza-runtime"};
    char folder[3000], file[3200];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        snprintf(out, size, "%s/%s", folder, PLACES[i]);
        snprintf(file, sizeof file, "%s/benanza-runtime-config.cmake", out);
        if (!access(file, R_OK))
            return;
    }
    snprintf(out, size, "%s", BENANZA_RUNTIME_DIR);
}

/* Runs a program with its output in the log. Returns its status, -1 where it could not run. */
static int run_logged(char *const *argv, int log)
{
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    int why = spawn(&child, argv, true, &actions);
    posix_spawn_file_actions_destroy(&actions);
    if (why)
        return -1;
    int status = wait_for(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A folder that was copied with what had been built in it: CMake refuses to go on in another place, so it begins anew. */
static void forget_other_place(const char *folder, const char *build)
{
    static const char HOME[] = "CMAKE_HOME_DIRECTORY:INTERNAL=";
    char path[3400], here[PATH_MAX], *line = NULL;
    size_t cap = 0;
    bool same = true;
    snprintf(path, sizeof path, "%s/CMakeCache.txt", build);
    FILE *f = realpath(folder, here) ? fopen(path, "r") : NULL;
    while (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strncmp(line, HOME, sizeof HOME - 1))
            same = !strcmp(line + sizeof HOME - 1, here);
    }
    free(line);
    if (f)
        fclose(f);
    if (!same)
        unlink(path);
}

int bz_bench_build(const char *folder, bz_error *err)
{
    char build[3300], log_path[3400], runtime[3100], package[3200], file[3300];
    snprintf(file, sizeof file, "%s/manifest.json", folder);
    if (access(file, R_OK))
        return bz_fail(err, BZ_BAD_INPUT, "%s: is no folder of benchmarks; 'benanza gen MODEL -o %s' makes one", folder,
                       folder);
    snprintf(build, sizeof build, "%s/build", folder);
    snprintf(log_path, sizeof log_path, "%s/build.log", folder);
    find_runtime(runtime, sizeof runtime);
    snprintf(package, sizeof package, "-Dbenanza-runtime_DIR=%s", runtime);
    forget_other_place(folder, build);
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", log_path, strerror(errno));
    char *version[] = {"ninja", "--version", NULL};
    bool ninja = run_logged(version, log) == 0;
    char *configure[] = {"cmake", "-S",       (char *)folder,           "-B", build,
                         package, "-Wno-dev", ninja ? "-GNinja" : NULL, NULL};
    char *make[] = {"cmake", "--build", build, "--parallel", NULL};
    bz_progress progress = bz_progress_start("building the benchmarks", 0);
    int bad = run_logged(configure, log) || run_logged(make, log);
    bz_progress_end(&progress);
    close(log);
    return bad ? bz_fail(err, BZ_FAILED, "%s: the benchmarks cannot be built; %s says why", folder, log_path) : 0;
}

/* ---- running -------------------------------------------------------------------------------- */

int bz_bench_seconds(const char *option, const char *text, bool zero, bz_error *err)
{
    char *end;
    double v = text ? strtod(text, &end) : 1;
    return text && (end == text || *end || !(zero ? v >= 0 : v > 0) || v > 1e6)
               ? bz_fail(err, BZ_USAGE, "--%s takes seconds, a number %s, not '%s'", option,
                         zero ? "from 0 on" : "above 0", text)
               : 0;
}

/* One line of the program: what the machine is, or a record, stored before the next one is read. */
static int store(bench_run *run, const char *text, size_t n, bz_error *err)
{
    bz_arena arena = {0};
    bz_line line;
    int rc = 0;
    if (bz_line_parse(text, n, &arena, &line, err)) {
        run->bad++;
    } else if (line.is_system) {
        rc = bz_perfdb_put_system(run->db, line.system, line.details, line.date, err);
    } else if (!(rc = run->each ? run->each(run->user, &line.record, err) : 0)) {
        rc = bz_perfdb_put(run->db, &line.record, 1, NULL, err);
        run->records++;
        bz_record_status s = line.record.status;
        run->busy += line.record.busy;
        run->failed += s == BZ_RECORD_FAILED || s == BZ_RECORD_CRASHED || s == BZ_RECORD_TIMEOUT;
    }
    bz_arena_free(&arena);
    return rc < 0 ? -1 : 0;
}

/* Hands whole lines to `each` and keeps the rest. */
static int take_lines(bz_buf *buf, bench_run *run, bz_progress *progress, bool records, bz_error *err)
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

static int read_both(int fd[2], bench_run *run, pid_t child, bz_error *err)
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
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC))
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    if (pipe2(progress, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return bz_fail(err, BZ_FAILED, "no pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, progress[1], 9);
    int why = spawn(child, argv, false, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(progress[1]);
    return why ? bz_fail(err, BZ_FAILED, "%s: cannot be run: %s", argv[0], strerror(why)) : 0;
}

/* What is to be run, as the program's --only reads it: a line for each problem, and behind it, indented, what
 * is known of it already: families, and variants of families that an earlier run was killed in. */
typedef struct missing {
    bench_run *run;
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

/* Goes through the problems and families of the program. */
static int list_missing(bench_run *run, char *program, bz_buf *only, int *n, bz_error *err)
{
    bz_buf list = {0};
    missing m = {.run = run, .only = only};
    char *argv[] = {program, "--list", NULL}, *rest = NULL;
    int rc = bz_bench_output(argv, &list, err);
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
    bz_buf_free(&list);
    return rc;
}

int bz_bench_run(const char *folder, bench_run *run, bz_error *err)
{
    char program[3300], only_path[3300], threads[24], yardstick[32];
    bool busy;
    double known = bz_peaks_yardstick(run->system->details, run->setting.threads, &busy);
    bz_buf only = {0};
    int out[2], progress[2], n = 0;
    pid_t child;
    snprintf(program, sizeof program, "%s/build/benchmarks", folder);
    snprintf(only_path, sizeof only_path, "%s/build/only", folder);
    snprintf(threads, sizeof threads, "%d", run->setting.threads);
    int rc = list_missing(run, program, &only, &n, err);
    run->wanted = n;
    FILE *f = rc || !n ? NULL : fopen(only_path, "w");
    if (f) {
        fwrite(only.data, 1, only.len, f);
        fclose(f);
    } else if (!rc && n) {
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", only_path, strerror(errno));
    }
    bz_buf_free(&only);
    if (rc || !n)
        return rc;
    char *argv[] = {program,  "--progress", "9",
                    "--only", only_path,    "--threads",
                    threads,  "--cache",    run->setting.cache == BZ_CACHE_COLD ? "cold" : "hot",
                    NULL,     NULL,         NULL,
                    NULL,     NULL,         NULL,
                    NULL,     NULL,         NULL};
    char **more = argv + sizeof argv / sizeof *argv - 9;
    if (run->time_limit) {
        *more++ = "--time-limit";
        *more++ = (char *)run->time_limit;
    }
    if (run->wait) {
        *more++ = "--wait";
        *more++ = (char *)run->wait;
    }
    if (known > 0) {
        snprintf(yardstick, sizeof yardstick, "%.9g", known);
        *more++ = "--yardstick";
        *more++ = yardstick;
    }
    if (run->metrics) {
        *more++ = "--metrics";
        *more++ = (char *)run->metrics;
    }
    struct sigaction old[N_STOPPING], action = {.sa_handler = stop};
    for (int i = 0; i < N_STOPPING; i++)
        if (!sigaction(STOPPING[i], NULL, &old[i]) && old[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(STOPPING[i], &action, NULL);
    rc = spawn_program(argv, out, progress, &child, err);
    bool begun = !rc;
    int status = 0;
    if (begun) {
        rc = read_both((int[]){out[0], progress[0]}, run, child, err);
        close(out[0]);
        close(progress[0]);
        status = wait_for(child);
    }
    for (int i = 0; i < N_STOPPING; i++)
        sigaction(STOPPING[i], &old[i], NULL);
    if ((!rc || !begun) && stopped && (stopped == SIGINT || !held)) {
        bz_end_by(stopped);
        stopped = 0; /* and this is what we say of it */
        return bz_fail(err, BZ_FAILED, "stopped; %d records are stored, running again goes on behind them",
                       run->records);
    }
    if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
        rc = bz_fail(err, BZ_FAILED, "%s ended early; %d records are stored", program, run->records);
    return rc;
}
