/* Streams, events and graphs of the stand-in for a device. What is queued runs only when somebody waits, and then in the worst
 * order that the events allow: the last stream first, as far as it comes. A replay that forgets to wait for an operand, or
 * that shares memory too early, then has another result. */
#include "tests/standin/device_replay.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 8, MOST_MARKS = 4096 };

typedef enum { TASK_RUN, TASK_MARK, TASK_FOLLOW, TASK_READ } task_kind;

typedef struct task {
    task_kind kind;
    standin_task *run;
    void *context, *to, *from;
    size_t size;
    double seconds;
    int number;  /* of a mark or a reading */
    int version; /* of the mark: how often it was set before */
} task;

typedef struct device device;

struct standin_stream {
    device *device;
    task *item;
    int n, cap, next;
    double now;
};

typedef struct captured {
    int stream;
    task task;
} captured;

struct device {
    standin_stream stream[MOST_STREAMS];
    int n;
    int set[MOST_MARKS], passed[MOST_MARKS]; /* versions: queued up last; come by */
    double marked[MOST_MARKS], reading[MOST_MARKS];
    bool capturing;
    captured *graph;
    int n_graph, graph_cap;
};

bool standin_lies(const char *how)
{
    const char *told = getenv("BENANZA_STANDIN");
    return told && !strcmp(told, how);
}

static void queue(device *d, int stream, task t)
{
    standin_stream *s = &d->stream[stream];
    if (d->capturing) {
        if (d->n_graph == d->graph_cap)
            d->graph = bz_realloc(d->graph, (size_t)(d->graph_cap = 2 * d->graph_cap + 64), sizeof *d->graph);
        d->graph[d->n_graph++] = (captured){stream, t};
        return;
    }
    if (t.kind == TASK_MARK)
        t.version = ++d->set[t.number];
    if (t.kind == TASK_FOLLOW)
        t.version = d->set[t.number];
    if (s->n == s->cap)
        s->item = bz_realloc(s->item, (size_t)(s->cap = 2 * s->cap + 64), sizeof *s->item);
    s->item[s->n++] = t;
}

void standin_queue(standin_stream *s, standin_task *run, void *context, void *to, void *from, size_t size,
                   double seconds)
{
    const task t = {
        .kind = TASK_RUN, .run = run, .context = context, .to = to, .from = from, .size = size, .seconds = seconds};
    queue(s->device, (int)(s - s->device->stream), t);
}

/* False where the stream has to wait. */
static bool run_task(device *d, standin_stream *s, const task *t)
{
    if (t->kind == TASK_FOLLOW) {
        if (d->passed[t->number] < t->version && !standin_lies("order"))
            return false;
        s->now = d->marked[t->number] > s->now ? d->marked[t->number] : s->now;
    } else if (t->kind == TASK_MARK) {
        d->passed[t->number] = t->version;
        d->marked[t->number] = s->now;
    } else if (t->kind == TASK_READ) {
        d->reading[t->number] = s->now;
    } else {
        t->run(t->context, t->to, t->from, t->size);
        s->now += t->seconds;
    }
    return true;
}

/* -1 where all streams wait for each other. */
static int wait_for_all(void *of)
{
    device *d = of;
    double last = 0;
    for (bool more = true; more;) {
        bool moved = false;
        more = false;
        for (int i = d->n; i--;) {
            standin_stream *s = &d->stream[i];
            for (; s->next < s->n && run_task(d, s, &s->item[s->next]); s->next++)
                moved = true;
            more |= s->next < s->n;
        }
        if (more && !moved)
            return -1;
    }
    for (int i = 0; i < d->n; i++) {
        d->stream[i].n = d->stream[i].next = 0;
        last = d->stream[i].now > last ? d->stream[i].now : last;
    }
    for (int i = 0; i < d->n; i++)
        d->stream[i].now = last;
    return 0;
}

static int open_device(const bz_run_setting *setting, int streams, void **out, bz_error *err)
{
    (void)setting;
    if (standin_lies("none"))
        return bz_fail(err, BZ_FAILED, "no GPU can be used: this is a stand-in that has none");
    device *d = bz_zeroed(1, sizeof *d);
    d->n = streams;
    for (int i = 0; i < streams; i++)
        d->stream[i].device = d;
    *out = d;
    return 0;
}

static void close_device(void *of)
{
    device *d = of;
    for (int i = 0; i < d->n; i++)
        free(d->stream[i].item);
    free(d->graph);
    free(d);
}

static void *stream_of(void *of, int stream)
{
    return &((device *)of)->stream[stream];
}

static void *allocate(void *of, size_t size, bool host)
{
    (void)of, (void)host;
    return bz_zeroed(size + 1, 1);
}

static void give_back(void *of, void *at, bool host)
{
    (void)of, (void)host;
    free(at);
}

static void copy_now(void *context, void *to, void *from, size_t size)
{
    (void)context;
    memcpy(to, from, size);
}

static int copy(void *of, int stream, void *to, const void *from, size_t size)
{
    void *read;
    memcpy(&read, &from, sizeof read);
    standin_queue(stream_of(of, stream), copy_now, NULL, to, read, size, 1e-9 * (double)size);
    return 0;
}

static void host_now(void *context, void *to, void *from, size_t size)
{
    void (*function)(void *);
    (void)to, (void)size;
    memcpy(&function, &from, sizeof function);
    function(context);
}

static int host(void *of, int stream, void (*function)(void *), void *context)
{
    void *passed;
    memcpy(&passed, &function, sizeof passed);
    standin_queue(stream_of(of, stream), host_now, context, NULL, passed, 0, 1e-5);
    return 0;
}

static int number(void *of, int stream, task_kind kind, int which)
{
    if (which >= MOST_MARKS)
        return -1;
    queue(of, stream, (task){.kind = kind, .number = which});
    return 0;
}

static int mark(void *of, int stream, int which)
{
    return number(of, stream, TASK_MARK, which);
}

static int follow(void *of, int stream, int which)
{
    return number(of, stream, TASK_FOLLOW, which);
}

static int read_clock(void *of, int stream, int which)
{
    return number(of, stream, TASK_READ, which);
}

static int seconds_between(void *of, int from, int to, double *out)
{
    const device *d = of;
    *out = d->reading[to] - d->reading[from];
    return 0;
}

static int begin(void *of, bz_error *err)
{
    device *d = of;
    (void)err;
    d->capturing = true;
    return 0;
}

static int end(void *of, bz_error *err)
{
    device *d = of;
    (void)err;
    d->capturing = false;
    return 0;
}

static int launch(void *of)
{
    device *d = of;
    int last = d->n_graph;
    while (standin_lies("graph") && last-- > 0 && d->graph[last].task.kind != TASK_RUN)
        ;
    for (int i = 0; i < d->n_graph; i++)
        if (i != last)
            queue(d, d->graph[i].stream, d->graph[i].task);
    return 0;
}

const bz_device_ops standin_ops = {
    .name = "stand-in",
    .align = 256,
    .open = open_device,
    .close = close_device,
    .stream = stream_of,
    .alloc = allocate,
    .free = give_back,
    .copy = copy,
    .host = host,
    .mark = mark,
    .follow = follow,
    .read = read_clock,
    .seconds = seconds_between,
    .wait = wait_for_all,
    .begin = begin,
    .end = end,
    .launch = launch,
};
