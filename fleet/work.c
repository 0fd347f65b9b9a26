/* One shard, on the node that was given to it. */
#include "bench/bench.h"
#include "fleet/constants.h"
#include "fleet/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct work_job {
    const char *shard; /* folder that all machines see */
    char scratch[3000], stem[3300];
    int hold;  /* the lock on the scratch folder */
    int lines; /* the result file */
    bz_work work;
    bz_attempt attempt;
    bz_perfdb *db;
    bz_perfdb_options options;
    int stopped_by;
    const bz_system *system;
    bz_arena arena;
    bz_buf text;
    double started;
    bz_buf meta;
} work_job;

static int write_attempt(work_job *w, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    w->attempt.seconds = bz_now() - w->started;
    bz_attempt_print(&w->attempt, &text);
    return bz_whole_write(bz_arena_printf(&w->arena, "%s.json", w->stem), &text, err);
}

/* Letters that can stand in a file's name. */
static void put_plain(bz_buf *out, const char *text)
{
    for (const char *p = text; *p && out->len < 120; p++)
        bz_buf_putc(out, (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ? *p : '-');
}

static const char *from_environment(const char *name, const char *otherwise)
{
    const char *v = getenv(name);
    return v && *v ? v : otherwise;
}

/* Every attempt has a name of its own, so that two never write to one file. */
static int begin_attempt(work_job *w, bz_error *err)
{
    char host[256] = "node";
    bz_buf id = {0};
    gethostname(host, sizeof host - 1);
    w->attempt = (bz_attempt){.node = bz_arena_str(&w->arena, from_environment("SLURMD_NODENAME", host)),
                              .system = "",
                              .program = BENANZA_VERSION,
                              .reason = "",
                              .job = bz_slurm_job(from_environment("SLURM_JOB_ID", "0")),
                              .begin = (int64_t)time(NULL)};
    for (int i = 0; i < BZ_YARDSTICKS; i++)
        w->attempt.yardstick[i] = NAN;
    bz_buf_printf(&id, "%lld-", (long long)w->attempt.begin);
    put_plain(&id, from_environment("SLURM_JOB_ID", "0"));
    bz_buf_putc(&id, '-');
    put_plain(&id, from_environment("SLURM_RESTART_COUNT", "0"));
    bz_buf_putc(&id, '-');
    put_plain(&id, w->attempt.node);
    bz_buf_printf(&id, "-%ld", (long)getpid());
    w->attempt.id = bz_buf_keep(&id, &w->arena);
    snprintf(w->stem, sizeof w->stem, "%s/attempts/%s", w->shard, w->attempt.id);
    const char *path = bz_arena_printf(&w->arena, "%s.jsonl", w->stem);
    w->lines = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (w->lines < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    /* The file server dates the file; our clock may say something else. */
    struct stat st;
    if (!fstat(w->lines, &st))
        w->attempt.skew = (int64_t)time(NULL) - (int64_t)st.st_mtime;
    w->attempt.skew = llabs(w->attempt.skew) > CLOSE_CLOCKS ? w->attempt.skew : 0;
    return write_attempt(w, err);
}

/* A line is there whole or not at all. */
static int append(work_job *w, const char *data, size_t n, bz_error *err)
{
    off_t before = lseek(w->lines, 0, SEEK_END);
    if (bz_write_all(w->lines, data, n) && !fdatasync(w->lines))
        return 0;
    const char *why = strerror(errno);
    if (before < 0 || ftruncate(w->lines, before))
        why = bz_arena_printf(&w->arena, "%s; its last line is cut off", why);
    return bz_fail(err, BZ_FAILED, "%s.jsonl: cannot be written: %s", w->stem, why);
}

/* A record on its way into the database of this node: it gets the node's name and the file server's time, and goes
 * to where all see it. What a signal from outside ended was not measured. */
static int see_record(void *user, bz_record *r, bz_error *err)
{
    work_job *w = user;
    if (r->status == BZ_RECORD_CRASHED && bz_record_cause_of(r) == BZ_CAUSE_STOPPED)
        return 1;
    bz_buf_clear(&w->meta);
    bz_json j = bz_json_to(&w->meta, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "node", w->attempt.node);
    bz_json_object_end(&j);
    if (r->meta && strlen(r->meta) > 2) { /* the members of one object behind that of the other */
        w->meta.data[w->meta.len - 1] = ',';
        bz_buf_puts(&w->meta, r->meta + 1);
    }
    r->meta = bz_buf_text(&w->meta);
    r->date -= w->attempt.skew;
    bz_buf_clear(&w->text);
    j = bz_json_to(&w->text, false);
    bz_record_json(&j, r);
    bz_buf_putc(&w->text, '\n');
    w->attempt.records++;
    w->attempt.failed += bz_record_failed(r);
    w->attempt.noisy += r->noisy;
    w->attempt.throttled += r->throttled;
    return append(w, w->text.data, w->text.len, err);
}

static void clear_scratch(work_job *w)
{
    if (w->scratch[0])
        bz_folder_remove(w->scratch);
    if (w->hold >= 0)
        close(w->hold);
}

/* Locked for as long as the process lives, so that others can tell what a killed one left behind. */
static int hold(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_scratch(const char *name)
{
    return !strncmp(name, "benanza-work-", 13);
}

/* Removes what attempts left behind that were killed on this node with all that belonged to them, as a batch system does. */
static void sweep(work_job *w, const char *base)
{
    const char **list;
    struct stat st;
    int n = bz_folder_list(base, is_scratch, &w->arena, &list);
    for (int i = 0; i < n; i++) {
        const char *path = bz_arena_printf(&w->arena, "%s/%s", base, list[i]);
        int fd = lstat(path, &st) || st.st_uid != geteuid() ? -1 : hold(path);
        if (fd >= 0) {
            bz_folder_remove(path);
            close(fd);
        }
    }
}

/* sbatch hands on the variables of the head node: what $TMPDIR names there may not exist here. */
static const char *scratch_of_node(void)
{
    static const char *const NAMES[] = {"SLURM_TMPDIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *folder = from_environment(NAMES[i], "");
        if (*folder && !access(folder, W_OK | X_OK))
            return folder;
    }
    return "/tmp";
}

static int make_scratch(work_job *w, const char *given, bz_error *err)
{
    const char *base = given ? given : scratch_of_node();
    struct stat st;
    sweep(w, base);
    for (;;) {
        snprintf(w->scratch, sizeof w->scratch, "%s/benanza-work-XXXXXX", base);
        if (bz_folder_make_at(w->scratch)) {
            int why = errno;
            w->scratch[0] = 0;
            return bz_fail(err, BZ_FAILED, "%s: no folder can be made there: %s", base, strerror(why));
        }
        errno = 0;
        w->hold = hold(w->scratch);
        if (w->hold >= 0 && !fstat(w->hold, &st) && st.st_nlink)
            return 0;
        if (w->hold >= 0)
            close(w->hold); /* somebody else's sweep came before our hold, and took it away */
        else if (errno != EWOULDBLOCK && errno != ENOENT)
            return 0; /* a file system that cannot hold: nobody's sweep can, either */
    }
}

static int copy_file(const char *from, const char *to, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    return bz_whole_read(from, 256 << 20, BZ_FLEET_TOO_LONG, &text, err) || bz_whole_write(to, &text, err) ? -1 : 0;
}

static bool is_source(const char *name)
{
    return name[0] != '.' && !bz_has_word("attempts shard.json known.jsonl", name);
}

static int copy_sources(work_job *w, const char *folder, bz_error *err)
{
    const char **list;
    int n = bz_folder_list(w->shard, is_source, &w->arena, &list), rc = 0;
    if (n < 0)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be opened: %s", w->shard, strerror(errno));
    if (mkdir(folder, 0700))
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    for (int i = 0; i < n && !rc; i++)
        rc = copy_file(bz_arena_printf(&w->arena, "%s/%s", w->shard, list[i]),
                       bz_arena_printf(&w->arena, "%s/%s", folder, list[i]), err);
    return rc ? -1 : 0;
}

static int take(work_job *w, const char *path, bz_error *err)
{
    bz_perfdb_import_report r;
    return bz_perfdb_import(w->db, path, NULL, &r, err) && err->code != BZ_BAD_INPUT ? -1 : 0;
}

/* What they measured, or an earlier night did, is not measured again. What cannot be read of it is. */
static int take_earlier(work_job *w, bz_error *err)
{
    const char **list;
    int n = bz_folder_list(bz_arena_printf(&w->arena, "%s/attempts", w->shard), bz_fleet_is_lines, &w->arena, &list);
    int rc = take(w, bz_arena_printf(&w->arena, "%s/known.jsonl", w->shard), err);
    for (int i = 0; i < n && !rc; i++)
        rc = take(w, bz_arena_printf(&w->arena, "%s/attempts/%s", w->shard, list[i]), err);
    return rc ? -1 : 0;
}

/* Compares nodes; where one cannot be run, that is no reason not to measure. */
static void run_yardstick(work_job *w, int i)
{
    const bz_yardstick *y = &bz_yardsticks[i];
    char path[3100];
    BZ_SCOPED(bz_buf) out = {0};
    bz_error ignored;
    bz_line line;
    if (y->device != (*w->work.device != 0) || bz_bench_find(path, sizeof path, &ignored))
        return;
    char *argv[] = {path,           "--backend", (char *)y->backend, "--layout", "plain",
                    "--time-limit", "0.2",       (char *)y->problem, NULL};
    if (bz_bench_program(argv, true, &out, &ignored) == 0)
        for (const char *p = bz_buf_text(&out); *p;) {
            size_t n = strcspn(p, "\n");
            if (!bz_line_parse(p, n, &w->arena, &line, &ignored) && !line.is_system &&
                line.record.status == BZ_RECORD_OK && !(w->attempt.yardstick[i] < line.record.min))
                w->attempt.yardstick[i] = line.record.min;
            p += n + (p[n] != 0);
        }
}

static int read_work(work_job *w, bz_error *err)
{
    const char *path = bz_arena_printf(&w->arena, "%s/shard.json", w->shard);
    BZ_SCOPED(bz_buf) text = {0};
    return bz_whole_read(path, 1 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
                   bz_work_parse(bz_buf_text(&text), path, &w->arena, &w->work, err)
               ? -1
               : 0;
}

static int measure(work_job *w, const char *folder, bz_error *err)
{
    char limit[40];
    snprintf(limit, sizeof limit, "%.9g", w->work.time_limit);
    bz_bench run = {.db = w->db,
                    .system = w->system,
                    .setting = {w->work.threads, w->work.cold ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""},
                    .time_limit = w->work.time_limit > 0 ? limit : NULL,
                    .each = see_record,
                    .user = w};
    int rc = bz_bench_run(folder, &run, err);
    w->stopped_by = run.stopped_by;
    w->attempt.bad = run.bad;
    return rc;
}

static int work(work_job *w, const char *scratch, bz_error *err)
{
    if (make_scratch(w, scratch, err))
        return -1;
    const char *folder = bz_arena_printf(&w->arena, "%s/shard", w->scratch);
    const char *db = bz_arena_printf(&w->arena, "%s/db", w->scratch), *device = *w->work.device ? w->work.device : NULL;
    if (copy_sources(w, folder, err) || bz_bench_build(folder, err) || bz_perfdb_open(&w->db, db, &w->options, err) ||
        bz_bench_system(w->db, NULL, device, &w->system, err) ||
        (w->work.peaks && bz_bench_peaks(w->db, w->work.threads, NULL, NULL, &w->system, err)))
        return -1;
    w->attempt.system = bz_arena_str(&w->arena, w->system->name);
    /* The database is new: what it exports is what this machine is, and no more. */
    if (bz_perfdb_export(w->db, &(bz_perfdb_filter){.system = w->system}, w->lines, false, NULL, err) ||
        write_attempt(w, err) || take_earlier(w, err))
        return -1;
    for (int i = 0; i < BZ_YARDSTICKS; i++)
        run_yardstick(w, i);
    return write_attempt(w, err) || measure(w, folder, err) ? -1 : 0;
}

int bz_fleet_work(const char *folder, const char *scratch, void (*warn)(void *user, const char *text), void *user,
                  int *stopped_by, bz_error *err)
{
    work_job w = {
        .shard = folder, .lines = -1, .hold = -1, .started = bz_now(), .options = {.warn = warn, .user = user}};
    bz_error why;
    int rc = read_work(&w, err) || begin_attempt(&w, err);
    if (!rc) {
        rc = work(&w, scratch, err);
        w.attempt.state = rc ? BZ_ATTEMPT_FAILED : BZ_ATTEMPT_DONE;
        w.attempt.reason = rc ? err->text : "";
        w.attempt.end = (int64_t)time(NULL);
        if (write_attempt(&w, rc ? &why : err))
            rc = -1;
        bz_perfdb_close(w.db);
        clear_scratch(&w);
    }
    *stopped_by = w.stopped_by;
    if (w.lines >= 0)
        close(w.lines);
    bz_buf_free(&w.text);
    bz_buf_free(&w.meta);
    bz_arena_free(&w.arena);
    return rc ? -1 : 0;
}

int bz_fleet_tell(const char *file, const char *backend, bz_error *err)
{
    char path[3100];
    char *argv[] = {path, "--system", backend ? "--backend" : NULL, (char *)backend, NULL};
    BZ_SCOPED(bz_buf) out = {0};
    int rc =
        bz_bench_find(path, sizeof path, err) || bz_bench_output(argv, &out, err) || bz_whole_write(file, &out, err);
    return rc ? -1 : 0;
}
