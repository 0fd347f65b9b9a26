/* stream NETWORK [OPTION…]: trains a network on a device made of a processor core (device.h), as it is or changed.
 *
 *     --iterations N     measured steps; three more warm up (10)
 *     --record FILE      the recording, as PyTorch's profiler writes it
 *     --launch US        what a launch costs the host (6)
 *     --framework US     what the host does besides before each launch (4)
 *     --link MBS         megabytes per second between host and device (200)
 *     --load US          what the host does to make the next batch (500)
 *     --items N          so many times as many images as usual (1)
 *     --one-core CORE    host and device share this core: for several workers on few cores
 *   changes:
 *     --bf16             all tensors
 *     --fuse             convolution, bias and ReLU as one call
 *     --fuse-norm        batch normalization and ReLU as one call
 *     --fused-optimizer  the update of all parameters as one call
 *     --graph            forward, backward and update as one launch
 *     --prefetch         the next batch is copied while this one is computed
 *     --streams          gradients of weights on a stream of their own, beside those of data
 *     --timed FILE       kernels take as long as FILE says, a line of nanoseconds for each call, without keeping a core busy
 *     --workers N        so many processes train together, --timed: they exchange gradients over a ring
 *     --gbps B           gigabits per second of the link from each to the next (1)
 *     --bucket MB        layers are exchanged together up to so many megabytes (25)
 *     --compress RATIO   they send so much of the bytes; packing and unpacking are kernels that pass all of them, 3 times and once, at 4 GB/s
 *     --slice MB         there is no update; layers are exchanged by themselves, in pieces, and awaited by the next forward pass
 *     --priority         with --slice: what the forward pass needs first goes first
 *   instead of training:
 *     --time             each kernel alone: name, calls in a step, seconds of one
 *     --gradients        each layer: name, bytes of its gradients
 *     --list             the networks
 *
 * Each measured step is a line on stderr: milliseconds. */
#include "exchange.h"
#include "net.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WARM_UP = 3,
    HOST = 0,
    DEVICE = 1,
    INPUT = 0,
    READY = 1,
    DONE = READY + EXCHANGE_REGIONS,
    FORK = DONE + EXCHANGE_REGIONS,
    JOIN
};

typedef struct program {
    const char *network, *record, *timed;
    int iterations, core; /* core: -1, or the one for all */
    int workers, priority, self, items;
    double gbps, bucket, slice, compress; /* megabytes; slice 0: none; a share of the bytes */
    int64_t framework, load;
    int graph, prefetch, time, gradients, list, bf16, fuse, fuse_norm, fused_optimizer, streams;
    device_options device;
    /* while it runs */
    net *net;
    int stream, link, beside, captured;
    int64_t *takes;                        /* of each call, where pretended */
    size_t region_bytes[EXCHANGE_REGIONS]; /* before they are compressed */
    int region_layer[EXCHANGE_REGIONS], region_last[EXCHANGE_REGIONS],
        n_regions;           /* its lowest layer; the call behind which it is ready */
    int started;             /* steps */
    void *batch, *buffer[2]; /* of the host; of the device: the input of this step and of the next */
} program;

static const char *const PHASES[] = {"forward", "backward", "optimizer"};

/* The stream of a call. What goes to the other one waits for all that was launched before it; the update waits for that one. */
static int stream_for(const program *p, const call *c)
{
    const call *before = c == p->net->call ? c : c - 1;
    bool beside = strstr(c->name, "_wgrad ");
    if (p->streams && beside && !strstr(before->name, "_wgrad ")) {
        device_mark(p->stream, FORK);
        device_follow(p->beside, FORK);
    }
    if (p->streams && c->phase == UPDATE && before->phase != UPDATE) {
        device_mark(p->beside, JOIN);
        device_follow(p->stream, JOIN);
    }
    return p->streams && beside ? p->beside : p->stream;
}

static void work(program *p, const call *c)
{
    if (p->framework && !p->graph)
        busy_until(now() + p->framework);
    int stream = stream_for(p, c);
    if (p->takes)
        device_pretend(stream, c->name, p->takes[c - p->net->call]);
    else if (c->run)
        device_launch(stream, c->name, c->run, c->argument);
    else
        device_fill(stream, c->argument, c->bytes);
}

static void pass_region(const program *p, int r, const char *name, int times)
{
    const double gbs = 4;
    if (p->compress < 1)
        device_pretend(p->stream, name, (int64_t)(times * (double)p->region_bytes[r] / gbs));
}

static void follow_regions(const program *p, int layer)
{
    for (int r = 0; r < p->n_regions; r++)
        if (layer < 0 || p->region_layer[r] == layer) {
            device_follow(p->stream, DONE + r);
            pass_region(p, r, "decompress", 1);
        }
}

/* Before call i: what it needs of other workers. Behind it: what they need. */
static void exchange_before(program *p, int i)
{
    const call *c = &p->net->call[i], *before = i ? c - 1 : NULL;
    bool turn = !before || before->phase != c->phase;
    if (p->slice > 0 && c->phase == FORWARD && p->started && (turn || before->layer != c->layer))
        follow_regions(p, c->layer);
    else if (!(p->slice > 0) && c->phase == UPDATE && turn)
        follow_regions(p, -1);
}

static void exchange_behind(program *p, int i)
{
    for (int r = 0; r < p->n_regions; r++)
        if (p->region_last[r] == i) {
            pass_region(p, r, "compress", 3);
            device_mark(p->stream, READY + r);
            exchange_start(r);
        }
}

static void add_region(program *p, size_t floats, int layer, int last)
{
    size_t sent = (size_t)(p->compress * (double)floats);
    int r =
        exchange_add(sent ? sent : 1, p->priority ? NET_LAYERS - layer : 0, READY + p->n_regions, DONE + p->n_regions);
    p->region_bytes[r] = floats * sizeof(float);
    p->region_layer[r] = layer;
    p->region_last[r] = last;
    p->n_regions++;
}

static size_t layer_floats(const net *n, int layer)
{
    size_t floats = 0;
    for (int k = 0; k < n->n_parameters; k++)
        floats += n->parameter[k].layer == layer ? net_elements(n->parameter[k].grad) : 0;
    return floats;
}

static void plan_exchange(program *p)
{
    const net *n = p->net;
    size_t waiting = 0, most = (size_t)((p->slice > 0 ? p->slice : p->bucket) * 1e6 / sizeof(float));
    for (int layer = n->n_layers; layer-- > 0;) { /* as the way back goes */
        size_t floats = layer_floats(n, layer);
        int last = 0;
        for (int i = 0; i < n->n; i++)
            last = n->call[i].phase == BACKWARD && n->call[i].layer == layer ? i : last;
        for (; p->slice > 0 && floats; floats -= floats < most ? floats : most)
            add_region(p, floats < most ? floats : most, layer, last);
        waiting += floats;
        if (waiting && (waiting >= most || !layer)) {
            add_region(p, waiting, layer, last);
            waiting = 0;
        }
    }
}

/* All calls, in ranges for phases and layers. */
static void launch_all(program *p)
{
    const net *n = p->net;
    for (int i = 0; i < n->n; i++) {
        const call *c = &n->call[i], *before = i ? c - 1 : NULL;
        bool turn = !before || before->phase != c->phase, layer = turn || before->layer != c->layer;
        if (before && layer)
            range_end();
        if (before && turn)
            range_end();
        if (turn)
            range_begin(PHASES[c->phase]);
        if (layer)
            layer_begin(n->layer[c->layer]);
        exchange_before(p, i);
        work(p, c);
        exchange_behind(p, i);
    }
    range_end();
    range_end();
    p->started++;
}

static void load_batch(const program *p)
{
    range_begin("load");
    busy_until(now() + p->load);
    range_end();
}

static void input_is(const program *p, void *at)
{
    check(dnnl_memory_set_data_handle(p->net->input->memory, at), "an input");
}

/* One step. With prefetching the batch of this one is there, and the next one comes meanwhile. */
static void step(program *p, int i)
{
    size_t bytes = net_bytes(p->net->input);
    if (p->prefetch) {
        input_is(p, p->buffer[i % 2]);
        device_follow(p->stream, INPUT);
        load_batch(p);
        device_copy(p->link, COPY_TO_DEVICE, p->buffer[(i + 1) % 2], p->batch, bytes);
        device_mark(p->link, INPUT);
    } else {
        load_batch(p);
        device_copy_and_wait(p->stream, COPY_TO_DEVICE, p->net->input->data, p->batch, bytes);
    }
    if (p->graph)
        graph_launch(p->stream, p->captured);
    else
        launch_all(p);
    float value;
    device_copy_and_wait(p->stream, COPY_TO_HOST, &value, p->net->loss, sizeof value);
}

static void train(program *p)
{
    size_t bytes = net_bytes(p->net->input);
    p->batch = calloc(1, bytes);
    p->buffer[0] = p->net->input->data;
    p->buffer[1] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!p->batch || !p->buffer[1])
        abort();
    memcpy(p->batch, p->net->input->data, bytes);
    memcpy(p->buffer[1], p->batch, bytes);
    if (p->graph) {
        graph_begin();
        for (int i = 0; i < p->net->n; i++)
            work(p, &p->net->call[i]);
        p->captured = graph_end();
    }
    for (int i = 0; i < WARM_UP + p->iterations; i++) {
        if (i == WARM_UP) {
            device_synchronize();
            device_record(p->record != NULL);
        }
        char *name = NULL;
        if (asprintf(&name, "ProfilerStep#%d", i) < 0)
            abort();
        int64_t start = now();
        range_begin(name);
        step(p, i);
        range_end();
        int64_t end = now();
        if (i >= WARM_UP && !p->self)
            fprintf(stderr, "%.6f\n", (double)(end - start) / 1e6);
    }
    if (p->n_regions)
        exchange_drain();
    device_synchronize();
    device_record(false);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct {
    const call *call;
    int64_t median;
} timed;

/* On the device's thread: alone, again and again, each time with other things in the nearest caches, as within a step. */
static void time_kernel(void *argument)
{
    enum { TIMES = 15, NEAREST = 4 << 20 };
    static char others[NEAREST];
    timed *t = argument;
    int64_t times[TIMES];
    for (int i = -2; i < TIMES; i++) {
        memset(others, i, sizeof others);
        int64_t start = now();
        t->call->run(t->call->argument);
        if (i >= 0)
            times[i] = now() - start;
    }
    qsort(times, TIMES, sizeof *times, compare);
    t->median = times[TIMES / 2];
}

static void time_all(program *p)
{
    const net *n = p->net;
    for (int i = 0; i < n->n; i++) {
        int calls = 0, first = i;
        for (int k = 0; k < n->n; k++)
            if (!strcmp(n->call[k].name, n->call[i].name)) {
                first = k < first ? k : first;
                calls++;
            }
        if (first < i || !n->call[i].run)
            continue;
        timed t = {&n->call[i], 0};
        device_launch(p->stream, "time", time_kernel, &t);
        device_synchronize();
        printf("%s\t%d\t%.9f\n", n->call[i].name, calls, (double)t.median / 1e9);
    }
}

static void print_gradients(const net *n)
{
    for (int i = 0; i < n->n_layers; i++) {
        size_t bytes = 0;
        for (int k = 0; k < n->n_parameters; k++)
            bytes += n->parameter[k].layer == i ? net_bytes(n->parameter[k].grad) : 0;
        if (bytes)
            printf("%s\t%zu\n", n->layer[i], bytes);
    }
}

static void read_times(program *p)
{
    FILE *f = fopen(p->timed, "r");
    p->takes = calloc((size_t)p->net->n, sizeof *p->takes);
    if (!f || !p->takes) {
        perror(p->timed);
        exit(1);
    }
    for (int i = 0; i < p->net->n; i++) {
        long long ns;
        if (fscanf(f, "%lld", &ns) != 1) {
            fprintf(stderr, "%s: has less than %d lines\n", p->timed, p->net->n);
            exit(1);
        }
        p->takes[i] = ns;
    }
    fclose(f);
}

static program p = {.iterations = 10,
                    .core = -1,
                    .workers = 1,
                    .items = 1,
                    .gbps = 1,
                    .compress = 1,
                    .bucket = 25,
                    .framework = 4000,
                    .load = 500000,
                    .device = {.launch = 6000, .spin = 200000, .link = 200e6}};

static void read_options(int argc, char **argv)
{
    enum {
        NETWORK = 1,
        ITERATIONS,
        RECORD,
        LAUNCH,
        FRAMEWORK,
        LINK,
        LOAD,
        CORE,
        TIMED,
        WORKERS,
        GBPS,
        BUCKET,
        SLICE,
        COMPRESS,
        ITEMS,
        FLAG
    };
    static const struct option OPTIONS[] = {{"iterations", 1, NULL, ITERATIONS},
                                            {"record", 1, NULL, RECORD},
                                            {"launch", 1, NULL, LAUNCH},
                                            {"framework", 1, NULL, FRAMEWORK},
                                            {"link", 1, NULL, LINK},
                                            {"load", 1, NULL, LOAD},
                                            {"one-core", 1, NULL, CORE},
                                            {"timed", 1, NULL, TIMED},
                                            {"workers", 1, NULL, WORKERS},
                                            {"gbps", 1, NULL, GBPS},
                                            {"bucket", 1, NULL, BUCKET},
                                            {"slice", 1, NULL, SLICE},
                                            {"compress", 1, NULL, COMPRESS},
                                            {"items", 1, NULL, ITEMS},
                                            {"priority", 0, &p.priority, 1},
                                            {"bf16", 0, &p.bf16, 1},
                                            {"fuse", 0, &p.fuse, 1},
                                            {"fuse-norm", 0, &p.fuse_norm, 1},
                                            {"fused-optimizer", 0, &p.fused_optimizer, 1},
                                            {"streams", 0, &p.streams, 1},
                                            {"graph", 0, &p.graph, 1},
                                            {"prefetch", 0, &p.prefetch, 1},
                                            {"time", 0, &p.time, 1},
                                            {"gradients", 0, &p.gradients, 1},
                                            {"list", 0, &p.list, 1},
                                            {0}};
    for (int c; (c = getopt_long(argc, argv, "-", OPTIONS, NULL)) >= 0;)
        switch (c) {
        case ITERATIONS:
            p.iterations = atoi(optarg);
            break;
        case RECORD:
            p.record = optarg;
            break;
        case LAUNCH:
            p.device.launch = (int64_t)(atof(optarg) * 1e3);
            break;
        case FRAMEWORK:
            p.framework = (int64_t)(atof(optarg) * 1e3);
            break;
        case LINK:
            p.device.link = atof(optarg) * 1e6;
            break;
        case LOAD:
            p.load = (int64_t)(atof(optarg) * 1e3);
            break;
        case CORE:
            p.core = atoi(optarg);
            break;
        case TIMED:
            p.timed = optarg;
            break;
        case WORKERS:
            p.workers = atoi(optarg);
            break;
        case GBPS:
            p.gbps = atof(optarg);
            break;
        case BUCKET:
            p.bucket = atof(optarg);
            break;
        case SLICE:
            p.slice = atof(optarg);
            break;
        case COMPRESS:
            p.compress = atof(optarg);
            break;
        case ITEMS:
            p.items = atoi(optarg) > 1 ? atoi(optarg) : 1;
            break;
        case NETWORK:
            p.network = optarg;
            break;
        case '?':
            exit(2);
        default:
            break;
        }
}

int main(int argc, char **argv)
{
    if (!getenv("OMP_NUM_THREADS")) { /* the library's threads are made before main */
        setenv("OMP_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
    }
    read_options(argc, argv);
    if (p.list) {
        zoo_list();
        return 0;
    }
    if (p.workers > 1 && !p.timed) {
        fprintf(stderr, "stream: --workers needs --timed: there is no core for the device of each\n");
        return 2;
    }
    p.self = exchange_fork(p.workers);
    p.net = net_new(&(net_options){.type = p.bf16 ? dnnl_bf16 : dnnl_f32,
                                   .items = p.items,
                                   .fuse = p.fuse,
                                   .fuse_norm = p.fuse_norm,
                                   .fuse_optimizer = p.fused_optimizer});
    if (!p.network || !zoo_build(p.net, p.network)) {
        fprintf(stderr, "stream: name a network: --list has them\n");
        return 2;
    }
    net_backward(p.net);
    if (!(p.slice > 0))
        net_update(p.net);
    if (p.timed)
        read_times(&p);
    if (p.workers > 1) {
        plan_exchange(&p);
        p.core = p.self % 2;
    }
    if (p.core >= 0)
        p.device.spin = 0;
    pin(p.core >= 0 ? p.core : HOST);
    device_open(&p.device);
    p.stream = device_stream(p.core >= 0 ? p.core : DEVICE, p.core >= 0);
    p.link = p.prefetch ? device_stream(p.core >= 0 ? p.core : HOST, true) : p.stream;
    p.beside = p.streams ? device_stream(p.core >= 0 ? p.core : HOST, p.core >= 0) : p.stream;
    if (p.workers > 1)
        exchange_open(p.gbps * 1e9 / 8, p.core);
    if (p.gradients)
        print_gradients(p.net);
    else if (p.time)
        time_all(&p);
    else
        train(&p);
    int bad = p.workers > 1 ? exchange_close() : 0;
    device_close();
    if (p.record && !p.self && device_save(p.record)) {
        perror(p.record);
        return 1;
    }
    return bad;
}
