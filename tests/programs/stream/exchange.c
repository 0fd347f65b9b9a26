#include "exchange.h"
#include "device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct region {
    float *data;
    size_t n;
    int priority, ready, done;
    int64_t ready_ticket, done_ticket;
    int64_t since; /* when it was found ready, in order; 0: it is not started, or not ready */
    atomic_bool started;
    bool checked;
} region;

static struct {
    int workers, self, next, before; /* sockets to the next worker and from the one before */
    pid_t child[EXCHANGE_WORKERS];
    double rate;
    int64_t due; /* when the token bucket allows the next piece */
    int core;
    region region[EXCHANGE_REGIONS];
    float *incoming;
    int n, open; /* regions under way */
    int64_t turn;
    bool ends;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} ring = {.workers = 1};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void connect_two(int *from, int *to)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    *from = socket(AF_INET, SOCK_STREAM, 0);
    if (door < 0 || *from < 0 || bind(door, (struct sockaddr *)&at, size) || listen(door, 1) ||
        getsockname(door, (struct sockaddr *)&at, &size) || connect(*from, (struct sockaddr *)&at, size) ||
        (*to = accept(door, NULL, NULL)) < 0)
        fail("loopback");
    close(door);
    setsockopt(*from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(*from, F_SETFL, O_NONBLOCK);
    fcntl(*to, F_SETFL, O_NONBLOCK);
}

int exchange_fork(int workers)
{
    int from[EXCHANGE_WORKERS], to[EXCHANGE_WORKERS];
    if (workers < 1 || workers > EXCHANGE_WORKERS)
        exit(2);
    ring.workers = workers;
    for (int i = 0; i < workers && workers > 1; i++)
        connect_two(&from[i], &to[(i + 1) % workers]);
    for (int i = 1; i < workers; i++) {
        ring.child[i] = fork();
        if (ring.child[i] < 0)
            fail("fork");
        if (!ring.child[i]) {
            ring.self = i;
            break;
        }
    }
    if (workers > 1) {
        ring.next = from[ring.self];
        ring.before = to[ring.self];
    }
    return ring.self;
}

/* Sends and receives at the same time; the link takes a piece when its tokens are there. */
static void transfer(const void *out, size_t n_out, void *in, size_t n_in)
{
    enum { PIECE = 1 << 14 };
    const char *from = out;
    char *to = in;
    while (n_out || n_in) {
        int64_t at = now(), wait = n_out ? ring.due - at : 1000000;
        if (n_out && wait <= 0) {
            ssize_t k = send(ring.next, from, n_out < PIECE ? n_out : PIECE, MSG_NOSIGNAL);
            if (k < 0 && errno != EAGAIN)
                fail("send");
            if (k > 0) {
                int64_t begin = at - ring.due > 1000000 ? at : ring.due; /* tokens of at most a millisecond are kept */
                ring.due = begin + (int64_t)((double)k / ring.rate * 1e9);
                from += k;
                n_out -= (size_t)k;
            }
        }
        ssize_t k = n_in ? recv(ring.before, to, n_in, 0) : 0;
        if (k < 0 && errno != EAGAIN)
            fail("receive");
        if (n_in && !k) { /* the worker before has ended */
            fprintf(stderr, "stream: a worker ended early\n");
            exit(1);
        }
        if (k > 0) {
            to += k;
            n_in -= (size_t)k;
            continue;
        }
        wait = n_out ? ring.due - now() : 1000000;
        if ((n_out || n_in) && (wait > 20000 || !n_out)) {
            struct pollfd p = {ring.before, POLLIN, 0};
            struct timespec t = {0, wait < 1000000 && wait > 0 ? wait : 1000000};
            ppoll(&p, n_in ? 1 : 0, &t, NULL);
        }
    }
}

/* Each worker sends the part that it has finished, and gets the next one: first sums, then results. */
static void all_reduce(region *r)
{
    size_t n = (size_t)ring.workers, self = (size_t)ring.self, part = (r->n + n - 1) / n;
    for (size_t step = 0; step < 2 * (n - 1); step++) {
        bool sums = step < n - 1;
        size_t hop = sums ? step : step - (n - 1);
        size_t out = (self + 2 * n - hop + (sums ? 0 : 1)) % n, in = (out + n - 1) % n;
        size_t from = out * part < r->n ? out * part : r->n, n_out = part < r->n - from ? part : r->n - from;
        size_t to = in * part < r->n ? in * part : r->n, n_in = part < r->n - to ? part : r->n - to;
        transfer(r->data + from, n_out * sizeof(float), sums ? ring.incoming : r->data + to, n_in * sizeof(float));
        for (size_t i = 0; sums && i < n_in; i++)
            r->data[to + i] += ring.incoming[i];
    }
}

/* The first time each worker gives its number plus 1: all must have the sum. Then what is exchanged are zeros. */
static void check_first(region *r)
{
    float sum = (float)(ring.workers * (ring.workers + 1) / 2);
    for (size_t i = 0; i < r->n; i++)
        if (r->data[i] < sum || r->data[i] > sum) {
            fprintf(stderr, "stream: worker %d has %g at %zu of %zu, not the sum %g\n", ring.self, (double)r->data[i],
                    i, r->n, (double)sum);
            exit(1);
        }
    memset(r->data, 0, r->n * sizeof *r->data);
    r->checked = true;
}

/* Of the regions that are ready: the greatest priority, then the one that waits longest. -1: none is. */
static int choose(void)
{
    int best = -1;
    for (int i = 0; i < ring.n; i++) {
        region *r = &ring.region[i];
        if (!r->started || !(r->since || device_is_done(r->ready, r->ready_ticket)))
            continue;
        r->since = r->since ? r->since : ++ring.turn;
        const region *b = best < 0 ? NULL : &ring.region[best];
        if (!b || r->priority > b->priority || (r->priority == b->priority && r->since < b->since))
            best = i;
    }
    return best;
}

/* -1: there is nothing more to do. */
static int next_region(void)
{
    int chosen = -1;
    if (!ring.self) {
        pthread_mutex_lock(&ring.mutex);
        while (!ring.open && !ring.ends)
            pthread_cond_wait(&ring.changed, &ring.mutex);
        bool end = !ring.open;
        pthread_mutex_unlock(&ring.mutex);
        while (!end && (chosen = choose()) < 0) {
            struct timespec t = {0, 30000}; /* a gradient is waited for by looking now and then */
            nanosleep(&t, NULL);
        }
    }
    if (ring.self)
        transfer(NULL, 0, &chosen, sizeof chosen);
    if (ring.self + 1 < ring.workers)
        transfer(&chosen, sizeof chosen, NULL, 0);
    return chosen;
}

static void *exchange_main(void *unused)
{
    struct sched_param priority = {30}; /* above the other threads where they have real-time priority */
    int policy = sched_getscheduler(0);
    pin(ring.core);
    if (policy == SCHED_FIFO)
        sched_setscheduler(0, policy, &priority);
    for (int i; (i = next_region()) >= 0;) {
        region *r = &ring.region[i];
        while (!r->started || !device_is_done(r->ready, r->ready_ticket)) {
            struct timespec t = {0, 30000};
            nanosleep(&t, NULL);
        }
        int64_t start = now();
        all_reduce(r);
        range_add("all_reduce", 100, start, now());
        if (!r->checked)
            check_first(r);
        pthread_mutex_lock(&ring.mutex);
        int64_t ticket = r->done_ticket;
        r->started = false;
        r->since = 0;
        ring.open--;
        pthread_cond_broadcast(&ring.changed);
        pthread_mutex_unlock(&ring.mutex);
        device_done(r->done, ticket);
    }
    return unused;
}

void exchange_open(double bytes_per_second, int core)
{
    ring.rate = bytes_per_second;
    ring.core = core;
    size_t most = 1;
    for (int i = 0; i < ring.n; i++)
        most = ring.region[i].n > most ? ring.region[i].n : most;
    ring.incoming = calloc(most, sizeof(float));
    pthread_mutex_init(&ring.mutex, NULL);
    pthread_cond_init(&ring.changed, NULL);
    if (!ring.incoming || pthread_create(&ring.thread, NULL, exchange_main, NULL))
        abort();
}

int exchange_add(size_t floats, int priority, int ready, int done)
{
    if (ring.n == EXCHANGE_REGIONS)
        abort();
    region *r = &ring.region[ring.n];
    *r = (region){
        .data = calloc(floats + 1, sizeof(float)), .n = floats, .priority = priority, .ready = ready, .done = done};
    if (!r->data)
        abort();
    for (size_t i = 0; i < floats; i++)
        r->data[i] = (float)(ring.self + 1);
    return ring.n++;
}

void exchange_start(int number)
{
    region *r = &ring.region[number];
    pthread_mutex_lock(&ring.mutex);
    while (r->started) /* of the step before */
        pthread_cond_wait(&ring.changed, &ring.mutex);
    r->ready_ticket = device_asked(r->ready);
    r->done_ticket = device_expect(r->done);
    r->started = true;
    ring.open++;
    pthread_cond_broadcast(&ring.changed);
    pthread_mutex_unlock(&ring.mutex);
}

void exchange_drain(void)
{
    pthread_mutex_lock(&ring.mutex);
    while (ring.open)
        pthread_cond_wait(&ring.changed, &ring.mutex);
    pthread_mutex_unlock(&ring.mutex);
}

int exchange_close(void)
{
    int worst = 0;
    pthread_mutex_lock(&ring.mutex);
    ring.ends = true;
    pthread_cond_broadcast(&ring.changed);
    pthread_mutex_unlock(&ring.mutex);
    pthread_join(ring.thread, NULL);
    for (int i = 1; i < ring.workers && !ring.self; i++) {
        int status;
        if (waitpid(ring.child[i], &status, 0) < 0 || status)
            worst = 1;
    }
    return worst;
}
