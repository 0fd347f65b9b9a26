/* Schedules of a graph of tasks: one after the other, all at once, on lanes of different resources. */
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>

double bz_schedule_sequential(const double *seconds, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    return sum;
}

/* Nodes are topologically ordered, so one pass suffices. finish[i] is when layer i ends at the
 * earliest; wait[i] is the predecessor that made it wait, or -1. Returns the last node, -1 for none. */
static int longest_path(const bz_dag *dag, const double *seconds, double *finish, int *wait)
{
    int last = -1;
    for (int i = 0; i < dag->n; i++) {
        double start = 0;
        wait[i] = -1;
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++) {
            int from = dag->pred[p];
            if (finish[from] > start || (finish[from] == start && (wait[i] < 0 || from < wait[i]))) {
                start = finish[from];
                wait[i] = from;
            }
        }
        finish[i] = start + seconds[i];
        if (last < 0 || finish[i] > finish[last])
            last = i;
    }
    return last;
}

void bz_schedule_parallel(const bz_dag *dag, const double *seconds, bz_arena *arena, bz_path *out)
{
    BZ_FREED double *finish = bz_alloc((size_t)dag->n, sizeof *finish);
    int *wait = bz_alloc((size_t)dag->n, sizeof *wait), n = 0;
    int last = longest_path(dag, seconds, finish, wait);
    for (int i = last; i >= 0; i = wait[i])
        n++;
    int *node = BZ_NEW(arena, int, n);
    *out = (bz_path){.seconds = last >= 0 ? finish[last] : 0, .node = node, .n = n};
    for (int i = last; i >= 0; i = wait[i])
        node[--n] = i;
    free(wait);
}

/* A heap of tasks, greatest key first; of equal keys the smaller number. */
typedef struct heap {
    const double *key;
    int *item, n;
} heap;

static bool before(const double *key, int a, int b)
{
    return key[a] > key[b] || (key[a] == key[b] && a < b);
}

static void push(heap *h, int x)
{
    int at = h->n++;
    for (int up; at && before(h->key, x, h->item[up = (at - 1) / 2]); at = up)
        h->item[at] = h->item[up];
    h->item[at] = x;
}

static int pop(heap *h)
{
    int top = h->item[0], x = h->item[--h->n], at = 0;
    for (int child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && before(h->key, h->item[child + 1], h->item[child]))
            child++;
        if (!before(h->key, h->item[child], x))
            break;
        h->item[at] = h->item[child];
    }
    h->item[at] = x;
    return top;
}

/* A resource while tasks run on it. */
typedef struct pool {
    int lanes, idle;
    heap any;    /* ready tasks that take any lane */
    heap *bound; /* [lanes]: that wait for this one; NULL where no task is bound */
    int n_bound; /* in all of these */
    int *busy;   /* [lanes]: the task that a lane runs, or ran last; -1 none. NULL: nobody asked for lanes */
} pool;

typedef struct machine {
    const bz_tasks *t;
    bz_edges next;
    int *after;    /* [n]: the task behind this one on a lane in order; -1 none */
    int *waits;    /* [n]: what has not ended, of that it waits for */
    double *rank;  /* [n]: longest way from the start of a task to the end */
    double *key;   /* [n]: by which tasks go first */
    double *end;   /* [n]: when it ends, negated: the heap's first is the next to end */
    double *start; /* [n], or NULL */
    int *lane;     /* [n], or NULL */
    int *stack;
    pool *pool;
    heap running;
    bz_arena arena;
} machine;

static int resource_of(const machine *m, int i)
{
    return m->t->resource ? m->t->resource[i] : 0;
}

/* The lane that a task is bound to, or -1. */
static int bound_to(const machine *m, int i)
{
    int lane = m->t->lane ? m->t->lane[i] : -1;
    return lane < 0 && m->t->resources[resource_of(m, i)].in_order ? 0 : lane;
}

/* The free lane for a task: rather where the predecessor ran that ended last. Behind a free one nothing runs. */
static int choose_lane(const machine *m, const pool *p, int i, double now)
{
    const bz_dag *dag = m->t->dag;
    double latest = -1;
    int best = -1;
    for (int s = p->lanes - 1; s >= 0; s--) {
        int last = p->busy[s];
        double end = last < 0 ? 0 : -m->end[last];
        if (end > now)
            continue;
        bool follows = false;
        for (int k = dag->first[i]; k < dag->first[i + 1] && last >= 0; k++)
            follows |= dag->pred[k] == last;
        if (best < 0 || (follows ? end : -1) >= latest)
            best = s, latest = follows ? end : -1;
    }
    return best;
}

/* The heap of the ready task that goes first on an idle lane; NULL: none can go. */
static heap *choose_task(const machine *m, pool *p, double now)
{
    heap *best = p->any.n ? &p->any : NULL;
    for (int s = 0; s < p->lanes && p->n_bound; s++) {
        bool idle = p->busy[s] < 0 || -m->end[p->busy[s]] <= now;
        if (idle && p->bound[s].n && (!best || before(m->key, p->bound[s].item[0], best->item[0])))
            best = &p->bound[s];
    }
    return best;
}

static void begin_task(machine *m, int i, double now)
{
    m->end[i] = -(now + m->t->seconds[i]);
    if (m->start)
        m->start[i] = now;
    push(&m->running, i);
}

static void fill_lanes(machine *m, pool *p, double now)
{
    for (heap *h; p->idle && (h = choose_task(m, p, now)); p->idle--) {
        int i = pop(h);
        if (p->busy) {
            int lane = h == &p->any ? choose_lane(m, p, i, now) : (int)(h - p->bound);
            p->n_bound -= h != &p->any;
            p->busy[lane] = i;
            if (m->lane)
                m->lane[i] = lane;
        }
        begin_task(m, i, now);
    }
}

static void queue(machine *m, int i, double now)
{
    int r = resource_of(m, i);
    if (m->t->policy == BZ_READY_FIRST)
        m->key[i] = -now;
    if (r < 0) {
        begin_task(m, i, now);
        return;
    }
    int lane = bound_to(m, i);
    m->pool[r].n_bound += lane >= 0;
    push(lane >= 0 ? &m->pool[r].bound[lane] : &m->pool[r].any, i);
}

/* One task less to wait for; m->stack takes those that wait for none any more. */
static int release(machine *m, int i, int n)
{
    for (int e = m->next.first[i]; e < m->next.first[i + 1]; e++)
        if (!--m->waits[m->next.to[e]])
            m->stack[n++] = m->next.to[e];
    if (m->after && m->after[i] >= 0 && !--m->waits[m->after[i]])
        m->stack[n++] = m->after[i];
    return n;
}

/* The n tasks on the stack wait for nothing. What costs nothing has ended at once and needs no lane. */
static void make_ready(machine *m, int n, double now)
{
    while (n) {
        int i = m->stack[--n];
        if (m->t->seconds[i] > 0) {
            queue(m, i, now);
            continue;
        }
        if (m->start)
            m->start[i] = now;
        n = release(m, i, n);
    }
}

static void count_waits(machine *m)
{
    const bz_dag *dag = m->t->dag;
    for (int i = 0; i < dag->n; i++)
        m->waits[i] = dag->first[i + 1] - dag->first[i];
    for (int i = 0; i < dag->n && m->after; i++)
        if (m->after[i] >= 0)
            m->waits[m->after[i]]++;
}

static double run_tasks(machine *m)
{
    const bz_dag *dag = m->t->dag;
    double now = 0;
    int n = 0;
    count_waits(m);
    for (int i = dag->n - 1; i >= 0; i--)
        if (!m->waits[i])
            m->stack[n++] = i;
    make_ready(m, n, 0);
    for (;;) {
        for (int r = 0; r < m->t->n_resources; r++)
            fill_lanes(m, &m->pool[r], now);
        if (!m->running.n)
            return now;
        now = -m->end[m->running.item[0]];
        while (m->running.n && -m->end[m->running.item[0]] == now) {
            int i = pop(&m->running), r = resource_of(m, i);
            if (r >= 0)
                m->pool[r].idle++;
            make_ready(m, release(m, i, 0), now);
        }
    }
}

/* Room for the tasks of every heap: each waits in one of them. */
static void make_pools(machine *m, bool lanes)
{
    const bz_tasks *t = m->t;
    m->pool = BZ_NEW(&m->arena, pool, t->n_resources);
    for (int r = 0; r < t->n_resources; r++) {
        pool *p = &m->pool[r];
        *p = (pool){.lanes = t->resources[r].lanes, .idle = t->resources[r].lanes, .any.key = m->key};
        if (!lanes)
            continue;
        p->busy = BZ_NEW(&m->arena, int, p->lanes);
        p->bound = BZ_NEW(&m->arena, heap, p->lanes);
        for (int s = 0; s < p->lanes; s++)
            p->busy[s] = -1, p->bound[s].key = m->key;
    }
    for (int i = 0; i < t->dag->n; i++) {
        int r = resource_of(m, i), lane = r < 0 ? -1 : bound_to(m, i);
        if (r >= 0)
            ++*(lane < 0 ? &m->pool[r].any.n : &m->pool[r].bound[lane].n);
    }
    for (int r = 0; r < t->n_resources; r++)
        for (int s = -1; s < (lanes ? m->pool[r].lanes : 0); s++) {
            heap *h = s < 0 ? &m->pool[r].any : &m->pool[r].bound[s];
            h->item = BZ_NEW(&m->arena, int, h->n);
            h->n = 0;
        }
}

/* On a lane in order each task waits for the one before it. */
static void chain_lanes(machine *m)
{
    const bz_tasks *t = m->t;
    m->after = BZ_NEW(&m->arena, int, t->dag->n);
    for (int i = t->dag->n - 1; i >= 0; i--) {
        int r = resource_of(m, i), lane = r >= 0 && t->resources[r].in_order ? bound_to(m, i) : -1;
        m->after[i] = -1;
        if (lane < 0)
            continue;
        m->after[i] = m->pool[r].busy[lane];
        m->pool[r].busy[lane] = i;
    }
    for (int r = 0; r < t->n_resources; r++)
        for (int s = 0; s < m->pool[r].lanes; s++)
            m->pool[r].busy[s] = -1;
}

static void find_ranks(machine *m)
{
    for (int i = m->t->dag->n - 1; i >= 0; i--) {
        double longest = m->after && m->after[i] >= 0 ? m->rank[m->after[i]] : 0;
        for (int e = m->next.first[i]; e < m->next.first[i + 1]; e++)
            longest = fmax(longest, m->rank[m->next.to[e]]);
        m->rank[i] = longest + m->t->seconds[i];
    }
}

static machine open_machine(const bz_tasks *t, bool lanes)
{
    machine m = {.t = t};
    int n = t->dag->n;
    bool in_order = false;
    for (int r = 0; r < t->n_resources; r++)
        in_order |= t->resources[r].in_order;
    m.next = bz_dag_successors(t->dag, &m.arena);
    m.waits = BZ_NEW(&m.arena, int, n);
    m.stack = BZ_NEW(&m.arena, int, n);
    m.rank = BZ_NEW(&m.arena, double, n);
    m.end = BZ_NEW(&m.arena, double, n);
    m.key = t->policy == BZ_LONGEST_FIRST ? m.rank : BZ_NEW(&m.arena, double, n);
    for (int i = 0; i < n && t->policy == BZ_GIVEN_FIRST; i++)
        m.key[i] = t->priority[i];
    m.running = (heap){m.end, BZ_NEW(&m.arena, int, n), 0};
    make_pools(&m, lanes || in_order || t->lane);
    if (in_order)
        chain_lanes(&m);
    find_ranks(&m);
    return m;
}

double bz_schedule_list(const bz_tasks *tasks, double *starts, int *lane)
{
    machine m = open_machine(tasks, lane != NULL);
    m.start = starts, m.lane = lane;
    for (int i = 0; i < tasks->dag->n && lane; i++)
        lane[i] = -1;
    double latency = run_tasks(&m);
    bz_arena_free(&m.arena);
    return latency;
}

void bz_schedule_streams(const bz_dag *dag, const double *seconds, bz_streams *out)
{
    bz_tasks tasks = {.dag = dag, .seconds = seconds, .resources = &(bz_resource){.lanes = 1}, .n_resources = 1};
    machine m = open_machine(&tasks, false);
    double best = INFINITY, least = 0;
    for (int i = 0; i < dag->n; i++)
        least = fmax(least, m.rank[i]);
    *out = (bz_streams){0};
    for (int k = 1; out->n < BZ_STREAMS && best > least; k *= 2) {
        m.pool[0].idle = k;
        best = fmin(best, k == 1 ? bz_schedule_sequential(seconds, dag->n) : run_tasks(&m));
        out->at[out->n].k = k;
        out->at[out->n++].seconds = best;
    }
    bz_arena_free(&m.arena);
}

/* The fork is node begin - 1; where there is none, all that waits for nothing stands behind it. */
bz_module_cost bz_schedule_module(const bz_dag *dag, const double *seconds, const bz_module *module)
{
    int begin = module->begin, n = module->end - begin;
    bz_module_cost c = {0};
    BZ_FREED double *finish = bz_alloc((size_t)n, sizeof *finish);
    for (int i = 0; i < n; i++) {
        const int *p = &dag->pred[dag->first[begin + i]], *end = &dag->pred[dag->first[begin + i + 1]];
        bool behind = !begin && p == end;
        double start = 0;
        for (; p < end; p++) {
            if (*p == begin - 1)
                behind = true;
            if (*p < begin || finish[*p - begin] < 0)
                continue;
            behind = true;
            start = fmax(start, finish[*p - begin]);
        }
        finish[i] = behind ? start + seconds[begin + i] : -1;
        if (!behind)
            continue;
        c.nodes++;
        c.sequential += seconds[begin + i];
        c.parallel = fmax(c.parallel, finish[i]);
    }
    return c;
}
