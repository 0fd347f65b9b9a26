/* The emulated device: streams as threads, and the calls that feed them. */
#include "device.h"
#include "record.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum { WORK_KERNEL, WORK_PRETEND, WORK_COPY, WORK_FILL, WORK_MARK, WORK_FOLLOW, WORK_END } work_kind;

typedef struct work {
    work_kind kind;
    device_direction direction;
    const char *name;
    device_kernel *run;
    void *argument, *to;
    const void *from;
    size_t bytes;
    int64_t pretended, asked; /* ns; when it was queued */
    int event;
    int64_t ticket;
    uint32_t correlation;
} work;

/* Work in the order of its launches: the host writes at `in`, the stream's thread reads at `out`. */
typedef struct stream {
    pthread_t thread;
    int number, core;
    bool sleeps;
    int64_t until; /* pretended work ends then, maybe later than now */
    work queue[DEVICE_QUEUE];
    atomic_long in, out;
} stream;

enum { TICKETS = 1024 };

typedef struct event {
    int64_t asked;        /* by the host */
    atomic_llong reached; /* tickets up to this one are done */
    int64_t at[TICKETS];  /* when those were, of the latest tickets: pretended work ends by its own clock */
} event;

static struct {
    device_options options;
    stream stream[DEVICE_STREAMS];
    int n_streams;
    event event[DEVICE_EVENTS];
    uint32_t correlation;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_int asleep; /* threads that wait for `changed` */
    work *captured;    /* between graph_begin and graph_end */
    int n_captured;
    struct {
        work *work;
        int n;
    } graph[16];
    int n_graphs;
} device;

int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

void busy_until(int64_t end)
{
    while (now() < end)
        relax();
}

void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void sleep_until(int64_t end)
{
    struct timespec t = {end / 1000000000, end % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Waits until `done` holds: first without sleeping, as a device polls its queue, then asleep. */
static void wait_for(bool (*done)(const void *context), const void *context)
{
    for (int64_t end = now() + device.options.spin; !done(context) && now() < end;)
        relax();
    if (done(context))
        return;
    pthread_mutex_lock(&device.mutex);
    atomic_fetch_add(&device.asleep, 1);
    while (!done(context))
        pthread_cond_wait(&device.changed, &device.mutex);
    atomic_fetch_sub(&device.asleep, 1);
    pthread_mutex_unlock(&device.mutex);
}

static void tell(void)
{
    if (!atomic_load(&device.asleep))
        return;
    pthread_mutex_lock(&device.mutex);
    pthread_cond_broadcast(&device.changed);
    pthread_mutex_unlock(&device.mutex);
}

static bool has_work(const void *context)
{
    const stream *s = context;
    return atomic_load(&s->in) > atomic_load(&s->out);
}

static bool has_room(const void *context)
{
    const stream *s = context;
    return atomic_load(&s->in) - atomic_load(&s->out) < DEVICE_QUEUE;
}

static bool is_empty(const void *context)
{
    return !has_work(context);
}

typedef struct {
    const event *event;
    int64_t ticket;
} awaited;

static bool is_reached(const void *context)
{
    const awaited *a = context;
    return atomic_load(&a->event->reached) >= a->ticket;
}

static void await(int number, int64_t ticket)
{
    awaited a = {&device.event[number], ticket};
    wait_for(is_reached, &a);
}

static void reach(int number, int64_t ticket, int64_t at)
{
    device.event[number].at[ticket % TICKETS] = at;
    atomic_store(&device.event[number].reached, ticket);
    tell();
}

void device_done(int number, int64_t ticket)
{
    reach(number, ticket, now());
}

int64_t device_expect(int number)
{
    return ++device.event[number].asked;
}

int64_t device_asked(int number)
{
    return device.event[number].asked;
}

bool device_is_done(int number, int64_t ticket)
{
    return atomic_load(&device.event[number].reached) >= ticket;
}

/* The link carries so many bytes per second, whoever copies. */
static void copy(const stream *s, const work *w, int64_t start)
{
    memcpy(w->to, w->from, w->bytes);
    int64_t end = start + (int64_t)((double)w->bytes / device.options.link * 1e9);
    enum { WAKING = 60000 }; /* ns: a sleeper comes late by less */
    if (s->sleeps && end - now() > WAKING)
        sleep_until(end - WAKING);
    busy_until(end);
}

/* Sleeping is exact to some ten µs: less than that is made up for by what comes next. */
static void catch_up(const stream *s)
{
    enum { EXACT = 100000 };
    if (s->until - now() > EXACT)
        sleep_until(s->until);
}

/* It begins when it was asked for and what was before it is over, however late the thread is. */
static void pretend(stream *s, const work *w)
{
    int64_t start = s->until > w->asked ? s->until : w->asked;
    s->until = start + w->pretended;
    catch_up(s);
    record_add(RECORD_KERNEL, s->number, w->name, start, s->until, w->correlation, 0);
}

static void work_run(stream *s, const work *w)
{
    if (w->kind != WORK_PRETEND && s->until > now())
        sleep_until(s->until);
    int64_t start = now();
    switch (w->kind) {
    case WORK_PRETEND:
        pretend(s, w);
        return;
    case WORK_KERNEL:
        w->run(w->argument);
        break;
    case WORK_COPY:
        copy(s, w, start);
        break;
    case WORK_FILL:
        memset(w->to, 0, w->bytes);
        break;
    case WORK_FOLLOW:
        await(w->event, w->ticket);
        if (s->until < device.event[w->event].at[w->ticket % TICKETS])
            s->until = device.event[w->event].at[w->ticket % TICKETS];
        return;
    case WORK_MARK:
        reach(w->event, w->ticket, s->until);
        return;
    case WORK_END:
        return;
    }
    static const record_kind RECORDS[] = {
        [WORK_KERNEL] = RECORD_KERNEL, [WORK_COPY] = RECORD_COPY, [WORK_FILL] = RECORD_FILL};
    const char *name = w->kind == WORK_KERNEL           ? w->name
                       : w->kind == WORK_FILL           ? "Memset (Device)"
                       : w->direction == COPY_TO_DEVICE ? "Memcpy HtoD (Pageable -> Device)"
                                                        : "Memcpy DtoH (Device -> Pageable)";
    s->until = now();
    record_add(RECORDS[w->kind], s->number, name, start, s->until, w->correlation, (int64_t)w->bytes);
}

static void *stream_main(void *argument)
{
    stream *s = argument;
    pin(s->core);
    for (bool end = false; !end;) {
        wait_for(has_work, s);
        const work *w = &s->queue[atomic_load(&s->out) % DEVICE_QUEUE];
        end = w->kind == WORK_END;
        work_run(s, w);
        long before = atomic_fetch_add(&s->out, 1), queued = atomic_load(&s->in) - before;
        if (queued == 1 || queued == DEVICE_QUEUE) /* somebody may wait for an empty queue, or for room in a full one */
            tell();
    }
    return NULL;
}

static void push(stream *s, const work *w)
{
    if (device.captured) {
        if (device.n_captured == DEVICE_CALLS)
            abort();
        device.captured[device.n_captured++] = *w;
        return;
    }
    wait_for(has_room, s);
    work *to = &s->queue[atomic_load(&s->in) % DEVICE_QUEUE];
    *to = *w;
    to->asked = now();
    atomic_fetch_add(&s->in, 1);
    tell();
}

void device_open(const device_options *options)
{
    device.options = *options;
    pthread_mutex_init(&device.mutex, NULL);
    pthread_cond_init(&device.changed, NULL);
    record_open();
}

int device_stream(int core, bool sleeps)
{
    if (device.n_streams == DEVICE_STREAMS)
        abort();
    stream *s = &device.stream[device.n_streams];
    s->number = device.n_streams;
    s->core = core;
    s->sleeps = sleeps;
    if (pthread_create(&s->thread, NULL, stream_main, s))
        abort();
    return device.n_streams++;
}

void device_close(void)
{
    for (int i = 0; i < device.n_streams; i++) {
        push(&device.stream[i], &(work){.kind = WORK_END});
        pthread_join(device.stream[i].thread, NULL);
    }
    for (int i = 0; i < device.n_graphs; i++)
        free(device.graph[i].work);
}

/* An event costs less than a launch: there are no arguments to pack. */
static const int64_t EVENT_SHARE = 4;

/* A call of the runtime: the host is busy for its cost, then the work is there. While a graph is captured there is neither
 * cost nor record. */
static void call(int number, const char *name, int64_t cost, work *w)
{
    int64_t start = now();
    w->correlation = ++device.correlation;
    if (!device.captured)
        busy_until(start + cost);
    push(&device.stream[number], w);
    if (!device.captured)
        record_add(RECORD_API, 0, name, start, now(), w->correlation, 0);
}

void device_launch(int number, const char *name, device_kernel *run, void *argument)
{
    call(number, "cudaLaunchKernel", device.options.launch,
         &(work){.kind = WORK_KERNEL, .name = name, .run = run, .argument = argument});
}

void device_pretend(int number, const char *name, int64_t ns)
{
    call(number, "cudaLaunchKernel", device.options.launch,
         &(work){.kind = WORK_PRETEND, .name = name, .pretended = ns});
}

void device_fill(int number, void *at, size_t bytes)
{
    call(number, "cudaMemsetAsync", device.options.launch, &(work){.kind = WORK_FILL, .to = at, .bytes = bytes});
}

void device_copy(int number, device_direction direction, void *to, const void *from, size_t bytes)
{
    call(number, "cudaMemcpyAsync", device.options.launch,
         &(work){.kind = WORK_COPY, .direction = direction, .to = to, .from = from, .bytes = bytes});
}

void device_copy_and_wait(int number, device_direction direction, void *to, const void *from, size_t bytes)
{
    int64_t start = now();
    uint32_t correlation = ++device.correlation;
    busy_until(start + device.options.launch);
    push(&device.stream[number], &(work){.kind = WORK_COPY,
                                         .direction = direction,
                                         .to = to,
                                         .from = from,
                                         .bytes = bytes,
                                         .correlation = correlation});
    wait_for(is_empty, &device.stream[number]);
    record_add(RECORD_API, 0, "cudaMemcpy", start, now(), correlation, 0);
}

void device_mark(int number, int mark)
{
    call(number, "cudaEventRecord", device.options.launch / EVENT_SHARE,
         &(work){.kind = WORK_MARK, .event = mark, .ticket = device_expect(mark)});
}

void device_follow(int number, int mark)
{
    call(number, "cudaStreamWaitEvent", device.options.launch / EVENT_SHARE,
         &(work){.kind = WORK_FOLLOW, .event = mark, .ticket = device.event[mark].asked});
}

void graph_begin(void)
{
    device.captured = calloc(DEVICE_CALLS, sizeof *device.captured);
    device.n_captured = 0;
    if (!device.captured)
        abort();
}

int graph_end(void)
{
    int g = device.n_graphs++;
    if (g == sizeof device.graph / sizeof *device.graph)
        abort();
    device.graph[g].work = device.captured;
    device.graph[g].n = device.n_captured;
    device.captured = NULL;
    return g;
}

void graph_launch(int number, int g)
{
    int64_t start = now();
    uint32_t correlation = ++device.correlation;
    busy_until(start + device.options.launch);
    for (int i = 0; i < device.graph[g].n; i++) {
        device.graph[g].work[i].correlation = correlation;
        push(&device.stream[number], &device.graph[g].work[i]);
    }
    record_add(RECORD_API, 0, "cudaGraphLaunch", start, now(), correlation, 0);
}

void device_wait(int number)
{
    int64_t start = now();
    wait_for(is_empty, &device.stream[number]);
    record_add(RECORD_API, 0, "cudaStreamSynchronize", start, now(), ++device.correlation, 0);
}

void device_synchronize(void)
{
    int64_t start = now();
    for (int i = 0; i < device.n_streams; i++)
        wait_for(is_empty, &device.stream[i]);
    record_add(RECORD_API, 0, "cudaDeviceSynchronize", start, now(), ++device.correlation, 0);
}
