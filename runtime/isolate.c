/* Isolation: a child process per problem, or for many where opening a device takes long. What crashes, hangs or eats the
 * memory there costs one variant; the next child goes on behind it. */
#include "base/arena.h"
#include "base/progress.h"
#include "runtime/measure.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* More children than this for one problem, and something else is wrong. */
enum { MAX_CHILDREN = 64 };

/* What the child is told to do. Its pointers lead to what was there before the child was. */
typedef struct order {
    bz_run_options options;
    const bz_family *families;
    int n;
} order;

typedef struct watch {
    bz_run_options options;
    const bz_family *families;
    int n;
    bz_worker *worker;
    bz_outcome *finished;
    int n_finished;
} watch;

static double free_memory(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib > 0 ? (double)kib * 1024 : 4e9;
}

/* The sanitizers reserve more address space than any limit allows. */
static bool is_sanitized(void)
{
#if defined __SANITIZE_ADDRESS__
    return true;
#elif defined __has_feature
#if __has_feature(address_sanitizer)
    return true;
#endif
#endif
    return false;
}

static bz_run_options filled_in(const bz_run_options *given)
{
    bz_run_options o = *given;
    o.setting.threads = o.setting.threads > 0 ? o.setting.threads : 1;
    o.time_limit = o.time_limit > 0 ? o.time_limit : 0.1;
    o.precision = o.precision > 0 ? o.precision : 0.005;
    o.hang_limit = o.hang_limit > 0 ? o.hang_limit : 60;
    o.memory_limit = o.memory_limit > 0 ? o.memory_limit : 0.9 * free_memory();
    return o;
}

double bz_last_level_cache(void)
{
    const int names[] = {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE};
    for (int i = 0; i < 2; i++)
        if (sysconf(names[i]) > 0)
            return (double)sysconf(names[i]);
    return 32e6;
}

/* A device's driver reserves address space as large as all memory there is. */
static bool has_device(const watch *w)
{
    for (int i = 0; i < w->n; i++) {
        const bz_backend *b = bz_backend_find(w->options.backends, w->families[i].backend, NULL);
        if (b && b->device)
            return true;
    }
    return false;
}

static void do_order(const order *o, const watch *w, bz_blame *blame, int pipe)
{
    bz_measure_task task = {
        .families = o->families,
        .n = o->n,
        .options = &o->options,
        .finished = w ? w->finished : NULL,
        .n_finished = w ? w->n_finished : 0,
        .blame = blame,
        .pipe = pipe,
    };
    static const bz_outcome END = {.problem = NULL};
    bz_measure(&task);
    if (write(pipe, &END, sizeof END) != (ssize_t)sizeof END)
        _exit(1); /* the parent is gone */
}

void bz_child_begin(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what a library prints must not get between our lines */
}

static _Noreturn void run_child(const watch *w, int orders, int pipe, pid_t parent)
{
    bz_child_begin(parent);
    if (!is_sanitized() && !has_device(w)) {
        rlim_t limit = (rlim_t)w->options.memory_limit;
        setrlimit(RLIMIT_DATA, &(struct rlimit){limit, limit});
    }
    order o = {w->options, w->families, w->n};
    do_order(&o, w, w->worker->blame, pipe);
    while (read(orders, &o, sizeof o) == (ssize_t)sizeof o)
        do_order(&o, NULL, w->worker->blame, pipe);
    _exit(0); /* the libraries' own clean-up would take time and could crash */
}

static int start_child(watch *w, bz_error *err)
{
    bz_worker *k = w->worker;
    int ends[2], orders[2] = {-1, -1};
    if (pipe(ends))
        return bz_fail(err, BZ_FAILED, "no pipe for a benchmark process: %s", strerror(errno));
    pid_t parent = getpid();
    k->child = socketpair(AF_UNIX, SOCK_STREAM, 0, orders) ? -1 : fork();
    if (k->child < 0) {
        bz_fail(err, BZ_FAILED, "no benchmark process could be started: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        for (int i = 0; i < 2 && orders[i] >= 0; i++)
            close(orders[i]);
        k->child = 0;
        return -1;
    }
    if (!k->child) {
        close(ends[0]);
        close(orders[1]);
        run_child(w, orders[0], ends[1], parent);
    }
    close(ends[1]);
    close(orders[0]);
    k->records = ends[0];
    k->orders = orders[1];
    return 0;
}

/* Lets the child end, and waits for that. Returns its status. */
static int end_child(bz_worker *k)
{
    int status = 0;
    if (k->child) {
        close(k->orders);
        close(k->records);
        while (waitpid(k->child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    k->child = 0;
    return status;
}

/* Tells the child that there is, or a new one, what is to be done. */
static int give_order(watch *w, bz_error *err)
{
    bz_worker *k = w->worker;
    order o = {w->options, w->families, w->n};
    memset(k->blame, 0, sizeof *k->blame);
    k->blame->beat = bz_now();
    fflush(NULL);
    if (k->child && send(k->orders, &o, sizeof o, MSG_NOSIGNAL) == (ssize_t)sizeof o)
        return 0;
    if (k->child)
        end_child(k);
    return start_child(w, err);
}

static bool is_of(const bz_outcome *r, const char *backend, const char *algorithm, const char *layout, const char *math)
{
    return !strcmp(r->backend, backend) && !strcmp(r->algorithm, algorithm) && !strcmp(r->layout, layout) &&
           !strcmp(r->math, math);
}

/* A record of which more is to follow waits for that. */
static void take(watch *w, const bz_outcome *r)
{
    bz_outcome *own = NULL;
    for (int i = 0; i < w->n_finished && !own; i++)
        if (w->finished[i].more && is_of(&w->finished[i], r->backend, r->algorithm, r->layout, r->math))
            own = &w->finished[i];
    if (!own) {
        BZ_ROOM(w->finished, w->n_finished);
        own = &w->finished[w->n_finished++];
    }
    *own = *r;
    own->problem = w->families[0].problem;
    for (int i = 0; i < w->options.n_launch; i++)
        if (!strcmp(w->options.launch[i].what, r->backend))
            own->launch = w->options.launch[i].value;
    if (w->options.emit && !own->more)
        w->options.emit(w->options.context, own);
}

/* The child ended while it traced: what it had measured stands. */
static void take_untraced(watch *w, const char *how)
{
    for (int i = 0; i < w->n_finished; i++) {
        bz_outcome r = w->finished[i];
        if (!r.more)
            continue;
        r.more = false;
        r.trace.fatal = true;
        snprintf(r.trace.reason, sizeof r.trace.reason, "the process %s while the profiler looked at a call", how);
        take(w, &r);
    }
}

enum { DONE, ENDED, HUNG };

/* Takes records until the child says that it is done, or closes its end. Silence is counted in looks of ours, not by the clock:
 * who was stopped (Ctrl-Z) for minutes together with the child finds a late clock, but no child that hangs. */
static int listen_to_child(watch *w)
{
    enum { LOOK_MS = 50 };
    const bz_worker *k = w->worker;
    bz_outcome r;
    size_t got = 0;
    double beat = 0, silent = 0;
    for (;;) {
        struct pollfd p = {.fd = k->records, .events = POLLIN};
        int ready = poll(&p, 1, LOOK_MS);
        if (ready > 0) {
            ssize_t n = read(k->records, (char *)&r + got, sizeof r - got);
            if (n <= 0)
                return ENDED;
            got += (size_t)n;
            if (got < sizeof r)
                continue;
            if (!r.problem)
                return DONE;
            take(w, &r);
            got = 0;
        } else {
            silent = k->blame->beat > beat ? 0 : silent + LOOK_MS / 1e3;
            beat = k->blame->beat;
            if (silent > w->options.hang_limit) {
                kill(k->child, SIGKILL);
                return HUNG;
            }
        }
    }
}

static bool has_record(const watch *w, const bz_blame *b)
{
    for (int i = 0; i < w->n_finished; i++)
        if (is_of(&w->finished[i], b->backend, b->algorithm, b->layout, b->math))
            return true;
    return false;
}

/* Whom the child was busy with when it ended, as a record. A variant that has one already was being
 * released: that does not unmake its figures. */
static void blame_somebody(watch *w, int status, bool hung)
{
    const bz_blame *b = w->worker->blame;
    if (b->backend[0] && has_record(w, b))
        return;
    bz_outcome r = bz_outcome_of(w->families[0].problem, b->backend, b->algorithm, b->layout, b->math);
    const char *stage = b->stage[0] ? b->stage : "starting";
    r.variants = b->variants;
    r.status = hung ? BZ_STATUS_TIMEOUT : BZ_STATUS_CRASHED;
    if (hung)
        snprintf(r.reason, sizeof r.reason, "gave no sign of life for %g s while %s", w->options.hang_limit, stage);
    else if (WIFSIGNALED(status))
        snprintf(r.reason, sizeof r.reason, "SIG%s while %s", sigabbrev_np(WTERMSIG(status)), stage);
    else
        snprintf(r.reason, sizeof r.reason, "ended with exit status %d while %s", WEXITSTATUS(status), stage);
    if (b->backend[0]) {
        take(w, &r);
        return;
    }
    for (int i = 0; i < w->n; i++) { /* before any variant: nothing here can run */
        bz_outcome all =
            bz_outcome_of(r.problem, w->families[i].backend, "", w->families[i].layout, w->families[i].math);
        all.status = r.status;
        memcpy(all.reason, r.reason, sizeof all.reason);
        take(w, &all);
    }
}

int bz_worker_run(bz_worker *k, const bz_family *families, int n, const bz_run_options *options, bz_error *err)
{
    watch w = {.options = filled_in(options), .families = families, .n = n, .worker = k};
    int result = 0;
    if (!k->blame)
        k->blame = mmap(NULL, sizeof *k->blame, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->blame == MAP_FAILED) {
        k->blame = NULL;
        return bz_fail(err, BZ_FAILED, "no memory to share with a benchmark process: %s", strerror(errno));
    }
    for (int children = 0; children < MAX_CHILDREN; children++) {
        bool new = !k->child;
        if (give_order(&w, err)) {
            result = -1;
            break;
        }
        int before = w.n_finished, how = listen_to_child(&w);
        int status = how == DONE && has_device(&w) ? 0 : end_child(k);
        if (how == DONE)
            break;
        if (!new && !*k->blame->stage)
            continue; /* it had ended behind its last record */
        blame_somebody(&w, status, how == HUNG);
        take_untraced(&w, how == HUNG ? "hung" : "ended");
        if (!k->blame->backend[0] || w.n_finished == before)
            break; /* nothing will come of another child */
    }
    free(w.finished);
    return result;
}

void bz_worker_close(bz_worker *k)
{
    end_child(k);
    if (k->blame)
        munmap(k->blame, sizeof *k->blame);
    *k = (bz_worker){0};
}

int bz_run(const bz_family *families, int n, const bz_run_options *options, bz_error *err)
{
    bz_worker own = {0};
    int result = bz_worker_run(&own, families, n, options, err);
    bz_worker_close(&own);
    return result;
}

static void keep_median(void *context, const bz_outcome *r)
{
    double *best = context;
    if (r->status == BZ_STATUS_OK && !(r->stats.median > *best))
        *best = r->stats.median;
}

double bz_launch_cost(const char *backend, const bz_run_options *options)
{
    double best = NAN;
    bz_problem p;
    bz_run_options o = *options;
    const bz_backend *b = bz_backend_find(options->backends, backend, NULL);
    if (!b || !b->smallest || bz_problem_parse(b->smallest, &p, NULL))
        return NAN;
    bz_family family = {&p, backend, "plain", "default"};
    o.emit = keep_median;
    o.context = &best;
    o.setting.cold = false;
    o.time_limit = 0.02;
    o.check_only = false;
    o.wall = true;
    o.trace = false; /* kernels of an empty call tell nobody anything, and a profiler takes seconds to begin */
    o.counters = NULL;
    bz_run(&family, 1, &o, NULL);
    return best;
}
