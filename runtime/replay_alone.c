/* What each action costs by itself, in the place where the replay runs it: again and again, so that all it needs is in the
 * caches; and with the caches full of something else. In sequence it is somewhere between. */
#include "runtime/measure.h"
#include "runtime/replay_open.h"

#include "base/arena.h"
#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_HOT = 5, MOST_HOT = 200, MOST_COLD = 5 };

typedef struct caches {
    char *other;
    size_t size;
} caches;

/* By all threads: each core has a cache of its own. */
static void evict(const caches *c, int threads)
{
    size_t lines = c->size / 64;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#else
    (void)threads;
#endif
    for (size_t i = 0; i < lines; i++)
        c->other[i * 64]++;
}

static int run_once(bz_replay *r, int action, double *seconds)
{
    double begin = bz_now();
    int rc = bz_replay_action_run(r, action);
    *seconds = bz_now() - begin;
    return rc;
}

/* The first run brings everything into the caches, and is not counted. */
static int run_hot(bz_replay *r, int action, double limit, double *out)
{
    double seconds[MOST_HOT], begin = bz_now();
    int n = 0, rc = run_once(r, action, &seconds[0]);
    while (!rc && n < MOST_HOT && (n < FEWEST_HOT || bz_now() - begin < limit))
        rc = run_once(r, action, &seconds[n++]);
    *out = rc ? (double)NAN : bz_stats_of(seconds, n).median;
    return rc;
}

static int run_cold(bz_replay *r, int action, const caches *c, double limit, double *out)
{
    double seconds[MOST_COLD], begin = bz_now();
    int n = 0, rc = 0;
    while (!rc && n < MOST_COLD && (!n || bz_now() - begin < limit)) {
        evict(c, r->setting.threads);
        rc = run_once(r, action, &seconds[n++]);
    }
    *out = rc ? (double)NAN : bz_stats_of(seconds, n).median;
    return rc;
}

/* A call that adds to its result adds again each time it runs: what it has to begin with is put back. */
static int run_alone(bz_replay *r, int i, const caches *c, double limit, bz_replay_alone *out)
{
    const replay_call *call = r->action[i].kind == BZ_ACTION_CALL ? r->action[i].state : NULL;
    int slot = call && call->residual >= 0 ? call->slot[call->n - 1] : -1;
    char *kept = slot >= 0 ? bz_alloc(r->slot[slot].bytes, 1) : NULL;
    if (kept)
        memcpy(kept, replay_at(r, slot), r->slot[slot].bytes);
    int rc = run_hot(r, i, limit / 2, &out->hot) || (c->other && run_cold(r, i, c, limit / 2, &out->cold)) ? -1 : 0;
    if (kept && !rc) {
        memcpy(replay_at(r, slot), kept, r->slot[slot].bytes);
        rc = bz_replay_action_run(r, i);
    }
    free(kept);
    return rc;
}

/* NULL where emptying the caches before each action takes longer than there is time: of a cache of 480 MB, 0.3 s. */
static char *other_than(const caches *c, int threads, double seconds)
{
    caches full = {.other = bz_zeroed(c->size, 1), .size = c->size};
    double begin = bz_now();
    evict(&full, threads);
    if (bz_now() - begin <= seconds)
        return full.other;
    free(full.other);
    return NULL;
}

int bz_replay_run_alone(bz_replay *r, double seconds, bool cold, bz_replay_alone *out)
{
    for (int i = 0; i < r->n_actions; i++)
        out[i] = (bz_replay_alone){(double)NAN, (double)NAN};
    if (r->ops != &replay_processor) /* what a clock on the host sees of a device's call by itself is its launch */
        return 0;
    caches c = {.size = (size_t)(2 * bz_last_level_cache())};
    int rc = 0;
    if (cold)
        c.other = other_than(&c, r->setting.threads, seconds / r->n_actions);
    for (int i = 0; i < r->n_actions && !rc; i++)
        rc = run_alone(r, i, &c, seconds / r->n_actions, &out[i]);
    free(c.other);
    return rc;
}
