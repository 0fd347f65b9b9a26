#include "runtime/ahead.h"

#include "base/progress.h"
#include "runtime/measure.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of each family: FREE, MEASURED, BUILT, or the number of the builder that is at it. */
enum { FREE = -1, MEASURED = -2, BUILT = -3 };

struct bz_ahead_shared {
    atomic_int owner[1]; /* as many as there are families */
};

static size_t shared_size(int n)
{
    return sizeof(struct bz_ahead_shared) + (size_t)n * sizeof(atomic_int);
}

static void build(const bz_family *f, const bz_run_options *options)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    const bz_backend *b = bz_backend_find(options->backends, f->backend, NULL);
    bz_job job = {
        .problem = f->problem,
        .setting = &options->setting,
        .n_operands = bz_problem_operands(f->problem, operand),
        .operand = operand,
        .copies = 1,
    };
    if (b && b->ahead)
        b->ahead(&job, f->layout, f->math);
}

/* A crash ends this builder, and nothing else: whoever measures builds for itself then, and the blame falls on the variant. */
static _Noreturn void run_builder(bz_ahead *a, int number, const bz_run_options *options, pid_t parent)
{
    int at = a->pending->item[0].n;
    bz_child_begin(parent);
    if (nice(5) < 0)
        errno = 0;
    for (int i = 1; i < a->pending->n; i++)
        for (int k = 0; k < a->pending->item[i].n; k++, at++) {
            int owner = FREE;
            if (!atomic_compare_exchange_strong(&a->shared->owner[at], &owner, number))
                continue;
            build(&a->pending->item[i].families[k], options);
            atomic_store(&a->shared->owner[at], BUILT);
        }
    _exit(0); /* the libraries' own clean-up would take time and could crash */
}

static bool has_work(const bz_pending *pending, const bz_run_options *options)
{
    for (int i = 1; i < pending->n; i++)
        for (int k = 0; k < pending->item[i].n; k++) {
            const bz_backend *b = bz_backend_find(options->backends, pending->item[i].families[k].backend, NULL);
            if (b && b->ahead)
                return true;
        }
    return false;
}

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

void bz_ahead_begin(bz_ahead *a, const bz_pending *pending, const bz_run_options *options)
{
    int threads = options->setting.threads > 0 ? options->setting.threads : 1, n = processors() - threads;
    n = n > BZ_AHEAD_MOST ? BZ_AHEAD_MOST : n;
    if (n <= 0 || !options->setting.plans || !has_work(pending, options))
        return;
    for (int i = 0; i < pending->n; i++)
        a->n_families += pending->item[i].n;
    void *shared = mmap(NULL, shared_size(a->n_families), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    a->shared = shared;
    a->pending = pending;
    a->limit = options->hang_limit > 0 ? options->hang_limit : 60;
    for (int i = 0; i < a->n_families; i++)
        atomic_init(&a->shared->owner[i], FREE);
    fflush(NULL);
    pid_t parent = getpid();
    for (; a->n < n; a->n++) {
        pid_t child = fork();
        if (!child)
            run_builder(a, a->n, options, parent);
        if (child < 0)
            break;
        a->builder[a->n] = child;
    }
}

static bool is_alive(bz_ahead *a, int number)
{
    pid_t *child = &a->builder[number];
    if (*child && waitpid(*child, NULL, WNOHANG) == *child)
        *child = 0;
    return *child;
}

static void take_family(bz_ahead *a, int at, double until)
{
    int owner = FREE;
    if (atomic_compare_exchange_strong(&a->shared->owner[at], &owner, MEASURED))
        return;
    while (owner >= 0 && is_alive(a, owner) && bz_now() < until) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        owner = atomic_load(&a->shared->owner[at]);
    }
}

void bz_ahead_take(bz_ahead *a, int item)
{
    double until = bz_now() + a->limit;
    int at = 0;
    if (!a->shared)
        return;
    for (int i = 0; i < item; i++)
        at += a->pending->item[i].n;
    for (int k = 0; k < a->pending->item[item].n; k++)
        take_family(a, at + k, until);
}

void bz_ahead_end(bz_ahead *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->builder[i]) {
            kill(a->builder[i], SIGKILL);
            while (waitpid(a->builder[i], NULL, 0) < 0 && errno == EINTR)
                ;
        }
    if (a->shared)
        munmap(a->shared, shared_size(a->n_families));
    *a = (bz_ahead){0};
}
