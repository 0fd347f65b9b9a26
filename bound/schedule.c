/* Schedules of a graph of layers: one after the other, on k streams, all at once. */
#include "bound/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double bz_tick(double seconds)
{
    return isfinite(seconds) ? ldexp(nearbyint(ldexp(seconds, 44)), -44) : seconds;
}

double bz_schedule_sequential(const double *seconds, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    return sum;
}

/* Layers are topologically ordered, so one pass suffices. finish[i] is when layer i ends at the
 * earliest; wait[i] is the predecessor that made it wait, or -1. Returns the last layer, -1 for none. */
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
    double *finish = bz_alloc((size_t)dag->n, sizeof *finish);
    int *wait = bz_alloc((size_t)dag->n, sizeof *wait), n = 0;
    int last = longest_path(dag, seconds, finish, wait);
    for (int i = last; i >= 0; i = wait[i])
        n++;
    int *layer = BZ_NEW(arena, int, n);
    *out = (bz_path){.seconds = last >= 0 ? finish[last] : 0, .layer = layer, .n = n};
    for (int i = last; i >= 0; i = wait[i])
        layer[--n] = i;
    free(finish);
    free(wait);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* A heap of layers, greatest key first; of equal keys the smaller number. */
typedef struct heap {
    const double *key;
    int *item, n;
} heap;

static bool before(const heap *h, int a, int b)
{
    return h->key[a] > h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void push(heap *h, int x)
{
    int at = h->n++;
    for (int up; at && before(h, x, h->item[up = (at - 1) / 2]); at = up)
        h->item[at] = h->item[up];
    h->item[at] = x;
}

static int pop(heap *h)
{
    int top = h->item[0], x = h->item[--h->n], at = 0;
    for (int child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && before(h, h->item[child + 1], h->item[child]))
            child++;
        if (!before(h, h->item[child], x))
            break;
        h->item[at] = h->item[child];
    }
    h->item[at] = x;
    return top;
}

typedef struct machine {
    const bz_dag *dag;
    const double *seconds;
    int *first, *next; /* successors of i: next[first[i]] … next[first[i + 1] - 1] */
    int *waits;        /* [n] predecessors that have not ended */
    double *rank;      /* [n] longest way from the start of a layer to the end */
    double *end;       /* [n] when it ends, negated: the heap's first is the next to end */
    heap ready, running;
    int *stack;
    double *start; /* [n] NULL: not asked for */
    int *stream;   /* [n] */
    int *busy;     /* [k] the layer that a stream runs, or ran last; -1 none */
} machine;

static void find_successors(machine *m)
{
    const bz_dag *dag = m->dag;
    for (int e = 0; e < dag->first[dag->n]; e++)
        m->first[dag->pred[e] + 2]++;
    for (int i = 1; i <= dag->n; i++)
        m->first[i + 1] += m->first[i];
    for (int i = 0; i < dag->n; i++)
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
            m->next[m->first[dag->pred[p] + 1]++] = i;
    for (int i = dag->n - 1; i >= 0; i--) {
        double longest = 0;
        for (int e = m->first[i]; e < m->first[i + 1]; e++)
            longest = fmax(longest, m->rank[m->next[e]]);
        m->rank[i] = longest + m->seconds[i];
    }
}

/* The free stream for a layer: rather where the predecessor ran that ended last. Behind a free one nothing runs. */
static int choose_stream(const machine *m, int i, int k, double now)
{
    const bz_dag *dag = m->dag;
    double latest = -1;
    int best = -1;
    for (int s = k - 1; s >= 0; s--) {
        int last = m->busy[s];
        double end = last < 0 ? 0 : m->start[last] + m->seconds[last];
        if (end > now)
            continue;
        bool follows = false;
        for (int p = dag->first[i]; p < dag->first[i + 1] && last >= 0; p++)
            follows |= dag->pred[p] == last;
        if (best < 0 || (follows ? end : -1) >= latest)
            best = s, latest = follows ? end : -1;
    }
    return best;
}

static void place(machine *m, int i, int k, double now)
{
    if (!m->start)
        return;
    m->start[i] = now;
    m->stream[i] = choose_stream(m, i, k, now);
    m->busy[m->stream[i]] = i;
}

/* Nothing that it waits for is left. What costs nothing has ended at once and needs no stream. */
static void make_ready(machine *m, int i, double now)
{
    int n = 0;
    m->stack[n++] = i;
    while (n) {
        i = m->stack[--n];
        if (m->start)
            m->start[i] = now;
        if (m->seconds[i] > 0) {
            push(&m->ready, i);
            continue;
        }
        for (int e = m->first[i]; e < m->first[i + 1]; e++)
            if (!--m->waits[m->next[e]])
                m->stack[n++] = m->next[e];
    }
}

static double run_on(machine *m, int k)
{
    const bz_dag *dag = m->dag;
    double now = 0;
    for (int i = 0; i < dag->n; i++)
        m->waits[i] = dag->first[i + 1] - dag->first[i];
    for (int i = 0; i < dag->n; i++)
        if (dag->first[i + 1] == dag->first[i])
            make_ready(m, i, 0);
    for (;;) {
        while (m->ready.n && m->running.n < k) {
            int i = pop(&m->ready);
            m->end[i] = -(now + m->seconds[i]);
            place(m, i, k, now);
            push(&m->running, i);
        }
        if (!m->running.n)
            return now;
        now = -m->end[m->running.item[0]];
        while (m->running.n && -m->end[m->running.item[0]] == now) {
            int i = pop(&m->running);
            for (int e = m->first[i]; e < m->first[i + 1]; e++)
                if (!--m->waits[m->next[e]])
                    make_ready(m, m->next[e], now);
        }
    }
}

static double longest(const machine *m)
{
    double most = 0;
    for (int i = 0; i < m->dag->n; i++)
        most = fmax(most, m->rank[i]);
    return most;
}

/* All of its arrays are two: first and rank. */
static machine open_machine(const bz_dag *dag, const double *seconds)
{
    size_t n = (size_t)dag->n + 2, edges = (size_t)dag->first[dag->n];
    int *numbers = bz_alloc(5 * n + edges, sizeof *numbers);
    double *times = bz_alloc(2 * n, sizeof *times);
    memset(numbers, 0, n * sizeof *numbers);
    machine m = {.dag = dag,
                 .seconds = seconds,
                 .first = numbers,
                 .waits = numbers + n,
                 .stack = numbers + 4 * n,
                 .next = numbers + 5 * n,
                 .rank = times,
                 .end = times + n};
    m.ready = (heap){m.rank, numbers + 2 * n, 0};
    m.running = (heap){m.end, numbers + 3 * n, 0};
    find_successors(&m);
    return m;
}

static void close_machine(machine *m)
{
    free(m->first);
    free(m->rank);
}

double bz_schedule_list(const bz_dag *dag, const double *seconds, int k, double *start, int *stream)
{
    machine m = open_machine(dag, seconds);
    int *busy = bz_alloc((size_t)k, sizeof *busy);
    m.start = start, m.stream = stream, m.busy = busy;
    for (int s = 0; s < k; s++)
        busy[s] = -1;
    for (int i = 0; i < dag->n; i++)
        stream[i] = -1;
    double latency = run_on(&m, k);
    free(busy);
    close_machine(&m);
    return latency;
}

void bz_schedule_streams(const bz_dag *dag, const double *seconds, bz_streams *out)
{
    machine m = open_machine(dag, seconds);
    double best = INFINITY, least = longest(&m);
    *out = (bz_streams){0};
    for (int k = 1; out->n < BZ_STREAMS && best > least; k *= 2) {
        best = fmin(best, k == 1 ? bz_schedule_sequential(seconds, dag->n) : run_on(&m, k));
        out->at[out->n].k = k;
        out->at[out->n++].seconds = best;
    }
    close_machine(&m);
}

/* ---- modules -------------------------------------------------------------------------------- */

/* The fork is layer begin - 1; where there is none, all that waits for nothing stands behind it. */
bz_module_cost bz_schedule_module(const bz_dag *dag, const double *seconds, const bz_module *module)
{
    int begin = module->begin, n = module->end - begin;
    bz_module_cost c = {0};
    double *finish = bz_alloc((size_t)n, sizeof *finish);
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
        c.layers++;
        c.sequential += seconds[begin + i];
        c.parallel = fmax(c.parallel, finish[i]);
    }
    free(finish);
    return c;
}
