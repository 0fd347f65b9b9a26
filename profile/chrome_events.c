/* Events of Chrome traces by category: PyTorch's profiler (Kineto, old and new dialect), ONNX Runtime's, MXNet's and Paddle's have theirs. TensorFlow,
 * JAX and rocprof tell by names of processes and threads what their events are. What others record becomes ranges. */
#include "profile/chrome.h"

#include "profile/reader.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a category means. Kineto's old dialect capitalizes; Node and Session are ONNX Runtime's. */
static const struct {
    const char *name;
    bz_event_kind kind;
    const char *format;
    const char *process; /* PyTorch without Kineto has no categories, but processes of these names */
} CATEGORIES[] = {
    {"cpu_op", BZ_EVENT_OP, "PyTorch trace", "CPU functions"},
    {"cuda_runtime", BZ_EVENT_API, "PyTorch trace", NULL},
    {"cuda_driver", BZ_EVENT_API, "PyTorch trace", NULL},
    {"kernel", BZ_EVENT_KERNEL, "PyTorch trace", "CUDA functions"},
    {"gpu_memcpy", BZ_EVENT_COPY, "PyTorch trace", NULL},
    {"gpu_memset", BZ_EVENT_MEMSET, "PyTorch trace", NULL},
    {"mtia_ccp_events", BZ_EVENT_KERNEL, "PyTorch trace", NULL}, /* work of Meta's accelerator, its copies among it */
    {"cuda_sync", BZ_EVENT_SYNC, "PyTorch trace", NULL},
    {"user_annotation", BZ_EVENT_RANGE, "PyTorch trace", NULL},
    {"gpu_user_annotation", BZ_EVENT_RANGE, "PyTorch trace", NULL}, /* when the device worked for one */
    {"overhead", BZ_EVENT_OVERHEAD, "PyTorch trace", NULL},
    {"Operator", BZ_EVENT_OP, "PyTorch trace", NULL},
    {"Runtime", BZ_EVENT_API, NULL, NULL},
    {"Kernel", BZ_EVENT_KERNEL, NULL, NULL},
    {"Memcpy", BZ_EVENT_COPY, NULL, NULL},
    {"Memset", BZ_EVENT_MEMSET, NULL, NULL},
    {"Node", BZ_EVENT_OP, "ONNX Runtime profile", NULL},
    {"Session", BZ_EVENT_RANGE, NULL, NULL},
    {"operator", BZ_EVENT_OP, "MXNet profile", NULL},
    {"kernel_dispatch", BZ_EVENT_KERNEL, "rocprof trace", NULL}, /* rocprofv3, by Perfetto */
    {"memory_copy", BZ_EVENT_COPY, "rocprof trace", NULL},
    {"hip_api", BZ_EVENT_API, "rocprof trace", NULL},
    {"hip_runtime_api", BZ_EVENT_API, "rocprof trace", NULL},
    {"enqueue", BZ_EVENT_RANGE, NULL, NULL}, /* Ascend's, to its own thread */
    {"dequeue", BZ_EVENT_RANGE, NULL, NULL},
    {"CudaRuntime", BZ_EVENT_API, NULL, NULL}, /* from here on Paddle's */
    {"OperatorInner", BZ_EVENT_OP, NULL, NULL},
    {"ProfileStep", BZ_EVENT_RANGE, NULL, NULL},
    {"Forward", BZ_EVENT_RANGE, NULL, NULL},
    {"Backward", BZ_EVENT_RANGE, NULL, NULL},
    {"Optimization", BZ_EVENT_RANGE, NULL, NULL},
    {"Dataloader", BZ_EVENT_RANGE, NULL, NULL},
    {"Communication", BZ_EVENT_RANGE, NULL, NULL},
    {"UserDefined", BZ_EVENT_RANGE, NULL, NULL},
    {"PythonOp", BZ_EVENT_RANGE, NULL, NULL},
    {"PythonUserDefined", BZ_EVENT_RANGE, NULL, NULL},
};
enum { N_CATEGORIES = sizeof CATEGORIES / sizeof *CATEGORIES, RUNTIME = 1 };

enum { OPEN_MAX = 1 << 12 };

/* AS_ECHO: on the device, of what stands elsewhere, too. */
typedef enum { AS_HOST, AS_DEVICE, AS_API, AS_COPY, AS_OP, AS_ECHO } meaning;

/* What events without a category are, by names of process and thread; the first that fits counts. */
static const struct {
    const char *process, *thread, *format;
    meaning meaning;
} LINES[] = {
    {"/device:TPU:*", "XLA Ops", "TensorFlow or JAX trace", AS_DEVICE},
    {"/device:*:*", "Stream #*", "TensorFlow or JAX trace", AS_DEVICE},
    {"/device:*/stream:all Compute", "*", "TensorFlow timeline", AS_DEVICE},
    {"/gpu:*/stream:all Compute", "*", "TensorFlow timeline", AS_DEVICE},
    {"*/stream:*", "*", NULL, AS_ECHO},
    {"*/device:?PU:* Tensors", "*", NULL, AS_ECHO},
    {"Allocators", "*", NULL, AS_ECHO},
    {"*/device:?PU:* Compute", "*", "TensorFlow timeline", AS_OP},
    {"/device:*", "*", NULL, AS_ECHO},
    {"/host:*", "*", "TensorFlow or JAX trace", AS_HOST},
    {"*CPU HIP API", "*", "rocprof trace", AS_API},
    {"*CPU HSA API", "*", NULL, AS_ECHO}, /* what HIP calls */
    {"*COPY", "*", "rocprof trace", AS_COPY},
    {"[0-9]* GPU[0-9]*", "*", "rocprof trace", AS_DEVICE},
    {"GPU[0-9]*", "*", "rocmProfileData trace", AS_DEVICE}, /* what its rpd2tracing.py writes */
    {"Ascend Hardware", "Stream *", NULL, AS_DEVICE},       /* of Huawei's NPU, by torch_npu, MindSpore and msprof */
    {"CANN", "Thread *", NULL, AS_API},
    {"Overlap Analysis", "*", NULL, AS_ECHO},
    {"Communication", "*", NULL, AS_ECHO},
    {"HCCL", "*", NULL, AS_ECHO},
    {"Process * (CPU)", "*", "Paddle trace", AS_HOST},
    {"De*ce [0-9]* (GPU)", "*", "Paddle trace", AS_DEVICE}, /* it writes "Deivce" */
};
enum { N_LINES = sizeof LINES / sizeof *LINES };

/* Calls of other devices' runtimes: "mtia_runtime", "xpu_driver". */
static bool of_a_runtime(const char *s, size_t n)
{
    return (n > 8 && !memcmp(s + n - 8, "_runtime", 8)) || (n > 7 && !memcmp(s + n - 7, "_driver", 7));
}

void bz_chrome_categorize(bz_chrome_events *r, const char *s, size_t n)
{
    uint8_t row = bz_names_row(&r->categories, s, n);
    r->e.category = row ? row - 1 : of_a_runtime(s, n) ? RUNTIME : -1;
    bool told = r->e.category >= 0 || bz_chrome_same("Trace", s, n) || bz_chrome_same("python_function", s, n);
    r->e.unknown = told ? 0 : bz_trace_intern(r->t, s, n);
}

void bz_chrome_categorize_process(bz_chrome_events *r, const char *s, size_t n)
{
    for (int i = 0; i < N_CATEGORIES && r->e.category < 0; i++)
        if (bz_chrome_same(CATEGORIES[i].process, s, n))
            r->e.category = i;
}

_Static_assert((int)N_CATEGORIES <= (int)BZ_NAMES_ROWS, "bz_names holds so many");

void bz_chrome_events_begin(bz_chrome_events *r)
{
    for (size_t i = 0; i < N_CATEGORIES; i++)
        bz_names_add(&r->categories, CATEGORIES[i].name, i);
}

void bz_chrome_event_begin(bz_chrome_events *r)
{
    memset(&r->e, 0, sizeof r->e);
    r->e.category = -1;
    r->e.device = r->e.stream = r->e.waited_stream = r->e.occupancy = r->e.step = BZ_CHROME_ABSENT;
    bz_buf_clear(&r->detail);
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t k = strlen(end);
    return n > k && !memcmp(s + n - k, end, k);
}

/* Paddle writes how long an event took behind its name, "conv2d[0.123 ms]": hardly two kernels had the same name. */
size_t bz_chrome_name(bz_chrome_event *e, const char *s, size_t n)
{
    static const char UNIT[] = " ms]";
    size_t i = ends_with(s, n, UNIT) ? n - strlen(UNIT) : 0;
    const size_t digits = i;
    while (i && ((s[i - 1] >= '0' && s[i - 1] <= '9') || s[i - 1] == '.'))
        i--;
    e->timed = i > 1 && i < digits && s[i - 1] == '[';
    return e->timed ? i - 1 : n;
}

/* "1890023232", "stream 7", "78(Python)", or a name that is no number at all: those get a number of their own. */
int64_t bz_chrome_number(bz_chrome_events *r, const char *s, size_t n, uint32_t *name)
{
    static const char *const SIDES[] = {"(Python)", "(C++)"}; /* of one thread, which Paddle shows apart */
    for (size_t i = 0; i < sizeof SIDES / sizeof *SIDES; i++)
        n -= ends_with(s, n, SIDES[i]) ? strlen(SIDES[i]) : 0;
    if (n > 7 && !memcmp(s, "stream ", 7)) {
        s += 7;
        n -= 7;
    }
    bool digits = n > 0 && n < 19;
    for (size_t i = 0; i < n; i++)
        digits = digits && ((s[i] >= '0' && s[i] <= '9') || (i == 0 && s[i] == '-' && n > 1));
    if (digits)
        return bz_text_int(s, n);
    *name = bz_trace_intern(r->t, s, n);
    return -1 - (int64_t)*name;
}

static uint32_t lane_of(bz_chrome_events *r, bz_event_kind kind)
{
    const bz_chrome_event *e = &r->e;
    bool copied = e->category >= 0 && !strcmp(CATEGORIES[e->category].name, "gpu_user_annotation");
    if (bz_event_on_device(kind) || kind == BZ_EVENT_SYNC || copied || e->echo) {
        int64_t device = e->device != BZ_CHROME_ABSENT ? e->device : e->process,
                stream = e->stream != BZ_CHROME_ABSENT ? e->stream : e->thread;
        return bz_trace_stream(r->t, r->source, 0, device, e->context, stream);
    }
    uint32_t lane = bz_trace_thread(r->t, r->source, e->process, e->thread);
    if (e->thread_name)
        r->t->lane[lane].name = e->thread_name;
    return lane;
}

uint32_t bz_chrome_id(int64_t v)
{
    return v > 0 && v < BZ_NONE ? (uint32_t)v : 0;
}

static void add_complete(bz_chrome_events *r, bz_event_kind kind, uint32_t name, int64_t start, int64_t end)
{
    bz_trace *t = r->t;
    bz_chrome_event *e = &r->e;
    size_t i = bz_trace_add(t, kind, start, end, name, lane_of(r, kind));
    bz_events *ev = &t->event[kind];
    switch (kind) {
    case BZ_EVENT_OP:
        ev->correlation[i] = bz_chrome_id(e->external);
        ev->detail[i] = bz_trace_intern(t, bz_buf_text(&r->detail), r->detail.len);
        break;
    case BZ_EVENT_KERNEL:
        if (e->occupancy >= 0 && e->occupancy <= 100) /* columns that nobody touches take no memory */
            ev->occupancy[i] = (uint32_t)e->occupancy + 1;
        e->launched.registers = bz_chrome_id(e->registers);
        e->launched.shared_dynamic = bz_chrome_id(e->shared);
        ev->launched[i] = bz_trace_launched(t, &e->launched);
        if (r->detail.len)
            ev->detail[i] = bz_trace_intern(t, bz_buf_text(&r->detail), r->detail.len);
        break;
    case BZ_EVENT_COPY:
        ev->value[i] = bz_copy_named(bz_string(t, name));
        ev->bytes[i] = e->bytes;
        break;
    case BZ_EVENT_MEMSET:
        ev->bytes[i] = e->bytes;
        break;
    case BZ_EVENT_SYNC:
        ev->value[i] = bz_wait_named(bz_string(t, name));
        ev->waited_record[i] = bz_chrome_id(e->waited_record);
        ev->waited_stream[i] =
            e->waited_stream >= 0 && e->waited_stream < BZ_NONE ? bz_chrome_id(e->waited_stream + 1) : 0;
        break;
    default:
        break;
    }
    if (ev->correlation && kind != BZ_EVENT_OP)
        ev->correlation[i] = bz_chrome_id(e->correlation);
    if (ev->graph && bz_chrome_id(e->graph))
        ev->graph[i] = bz_chrome_id(e->graph);
}

static bz_chrome_process *process_of(const bz_chrome_events *r, int64_t process)
{
    uint32_t i = r->n_processes;
    while (i && r->process[i - 1].process != process)
        i--;
    return i ? &r->process[i - 1] : NULL;
}

/* The row of LINES for a thread of the host, -1: none fits. Each thread is looked at once. */
static int line_of(bz_chrome_events *r, uint32_t lane, const bz_chrome_process *of)
{
    while (r->n_lines <= lane)
        BZ_ADD(r->line, r->n_lines) = 0;
    for (int i = 0; i < N_LINES && !r->line[lane]; i++)
        if (!fnmatch(LINES[i].process, bz_string(r->t, of->name), 0) &&
            !fnmatch(LINES[i].thread, bz_string(r->t, r->t->lane[lane].name), 0))
            r->line[lane] = i + 1;
    r->line[lane] = r->line[lane] ? r->line[lane] : -1;
    return r->line[lane] < 0 ? -1 : r->line[lane] - 1;
}

/* Meta's accelerator copies by "dma_request". */
static bool is_dma(const char *name)
{
    return !strncmp(name, "dma_", 4);
}

/* What work of a device is where no category tells: there are kernels with the name of a copy. */
static bz_event_kind work_by_name(const char *name)
{
    return !strncasecmp(name, "memcpy", 6) || !strncmp(name, "CopyHost", 8) || !strncmp(name, "CopyDevice", 10) ||
                   is_dma(name)
               ? BZ_EVENT_COPY
           : !strncasecmp(name, "memset", 6) ? BZ_EVENT_MEMSET
                                             : BZ_EVENT_KERNEL;
}

/* What an event without a category is. */
static bz_event_kind kind_by_line(bz_chrome_events *r)
{
    bz_chrome_event *e = &r->e;
    const bz_chrome_process *of = process_of(r, e->process);
    int line = of ? line_of(r, bz_trace_thread(r->t, r->source, e->process, e->thread), of) : -1;
    const char *name = bz_string(r->t, e->name);
    if (line < 0) /* rocmProfileData names no process of the host */
        return !of && !strncmp(name, "hip", 3) && isupper((unsigned char)name[3]) ? BZ_EVENT_API : BZ_EVENT_RANGE;
    r->format = LINES[line].format ? LINES[line].format : r->format;
    e->echo = LINES[line].meaning == AS_ECHO;
    if (e->device == BZ_CHROME_ABSENT)
        e->device = of->device;
    switch (LINES[line].meaning) {
    case AS_DEVICE:
        return work_by_name(name);
    case AS_COPY:
        return BZ_EVENT_COPY;
    case AS_API:
        return BZ_EVENT_API;
    case AS_OP:
        return BZ_EVENT_OP;
    default:
        return LINES[line].meaning == AS_HOST && e->correlation ? BZ_EVENT_API : BZ_EVENT_RANGE;
    }
}

static void add_process(bz_chrome_events *r)
{
    enum { MOST = 1000 }; /* each event looks for its own among them; a run on many devices has some dozens */
    const char *name = bz_string(r->t, r->e.label), *end = name + strlen(name), *digits;
    bool known = false;
    for (int i = 0; i < N_LINES && !known; i++)
        known = !fnmatch(LINES[i].process, name, 0);
    if (!known)
        bz_trace_fact(r->t, "program", name);
    if (!known || r->n_processes == MOST)
        return;
    if ((digits = strstr(name, "PU:")))
        digits += 3;
    else
        for (digits = end; digits > name && digits[-1] >= '0' && digits[-1] <= '9';)
            digits--;
    BZ_ADD(r->process, r->n_processes) = (bz_chrome_process){
        r->e.process, *digits ? bz_text_int(digits, (size_t)(end - digits)) : BZ_CHROME_ABSENT, r->e.label};
    if (r->n_lines)
        memset(r->line, 0, r->n_lines * sizeof *r->line);
}

/* "x,y,z" */
static void read_sizes(const char *s, size_t n, const char *name, uint32_t out[3])
{
    const char *p = memmem(s, n, name, strlen(name)), *end = s + n;
    for (int i = 0; i < 3 && p; i++) {
        p += i ? 1 : strlen(name);
        out[i] = bz_chrome_id(bz_text_int(p, (size_t)(end - p)));
        p = memchr(p, ',', (size_t)(end - p));
    }
}

void bz_chrome_details(bz_chrome_event *e, const char *s, size_t n)
{
    const char *size = memmem(s, n, "size:", 5);
    if (size)
        e->bytes = bz_text_int(size + 5, n - (size_t)(size + 5 - s));
    read_sizes(s, n, "grid:", e->launched.grid);
    read_sizes(s, n, "block:", e->launched.block);
}

/* ONNX Runtime brackets every node by two fences; the name carries which of the three it is. */
static bool is_fence(const char *name)
{
    size_t n = strlen(name);
    return (n > 13 && !strcmp(name + n - 13, "_fence_before")) || (n > 12 && !strcmp(name + n - 12, "_fence_after"));
}

/* What PyTorch's optimizers do: some versions write it among the operators, others among what people annotate. */
static bool of_optimizer(const bz_chrome_events *r)
{
    int c = r->e.category;
    return c >= 0 && !strcmp(CATEGORIES[c].name, "user_annotation") &&
           !strncmp(bz_string(r->t, r->e.name), "Optimizer.", strlen("Optimizer."));
}

static void count_unknown(bz_chrome_events *r, const bz_chrome_event *e)
{
    if (e->unknown && !r->unknown++)
        r->example = e->unknown;
}

static void event_complete(bz_chrome_events *r)
{
    bz_chrome_event *e = &r->e;
    r->threads = e->threads > r->threads ? e->threads : r->threads;
    if (!e->has_start) {
        r->unnamed_time++;
        return;
    }
    bz_event_kind kind = e->category < 0 ? kind_by_line(r) : CATEGORIES[e->category].kind;
    if (kind == BZ_EVENT_KERNEL && is_dma(bz_string(r->t, e->name)))
        kind = BZ_EVENT_COPY;
    kind = of_optimizer(r) ? BZ_EVENT_OP : kind;
    if (e->category >= 0 && CATEGORIES[e->category].format)
        r->format = CATEGORIES[e->category].format;
    if (e->timed)
        r->format = "Paddle trace";
    uint32_t name = e->name;
    if (e->category >= 0 && !strcmp(CATEGORIES[e->category].name, "Node")) {
        if (is_fence(bz_string(r->t, name)))
            return;
        bz_buf_printf(&r->detail, "%sname=%s", r->detail.len ? " " : "", bz_string(r->t, name));
        name = e->operator? e->operator: name;
    } else if (e->category < 0 && (kind == BZ_EVENT_OP || kind == BZ_EVENT_KERNEL) &&
               e->label) { /* TensorFlow's, of a node of its graph */
        bz_buf_printf(&r->detail, "%sname=", r->detail.len ? " " : "");
        for (const char *p = bz_string(r->t, e->label); *p; p++)
            bz_buf_putc(&r->detail, *p == ' ' ? '_' : *p);
    }
    int64_t end;
    r->negative += e->duration < 0;
    if (__builtin_add_overflow(e->start, e->duration > 0 ? e->duration : 0, &end))
        end = e->start;
    if (kind == BZ_EVENT_RANGE && e->step != BZ_CHROME_ABSENT) {
        char step[128];
        snprintf(step, sizeof step, "%.80s step %lld", bz_string(r->t, name), (long long)e->step);
        name = bz_trace_text(r->t, step);
    }
    if (kind == BZ_EVENT_RANGE && e->unknown && (bz_chrome_id(e->correlation) || bz_chrome_id(e->external))) {
        e->duration = end - e->start;
        BZ_ADD(r->waiting, r->n_waiting) = *e;
        return;
    }
    count_unknown(r, e);
    add_complete(r, kind, name, e->start, end);
}

/* The numbers by which calls, or operators, are tied to what a device did for them; they lie in the column. */
static bz_map correlations(const bz_events *e)
{
    bz_map known = {0};
    for (size_t i = 0; i < e->n; i++)
        if (e->correlation[i])
            bz_map_add(&known, &e->correlation[i], sizeof e->correlation[i], 0);
    return known;
}

static bool is_among(const bz_map *known, int64_t number)
{
    uint32_t id = bz_chrome_id(number);
    return id && bz_map_get(known, &id, sizeof id) != BZ_MAP_NONE;
}

/* PyTorch's profiler has a category for each sort of device that it learns of. Work of a device is what a call or an operator asked for, and does not
 * lie on a thread of the host. */
static void add_waiting(bz_chrome_events *r)
{
    bool pytorch = !strcmp(r->format, "PyTorch trace"),
         *host = pytorch ? bz_trace_lanes(r->t, BZ_EVENT_OP, BZ_EVENT_API) : NULL; /* of operators and calls */
    uint32_t lanes = r->t->n_lanes;
    bz_map call = pytorch ? correlations(&r->t->event[BZ_EVENT_API]) : (bz_map){0},
           op = pytorch ? correlations(&r->t->event[BZ_EVENT_OP]) : (bz_map){0};
    for (size_t i = 0; i < r->n_waiting; i++) {
        const bz_chrome_event *e = &r->waiting[i];
        uint32_t lane = bz_trace_known_thread(r->t, r->source, e->process, e->thread);
        bool on_host = pytorch && lane < lanes && host[lane],
             work = !on_host && (is_among(&call, e->correlation) || is_among(&op, e->external));
        if (!on_host && !work)
            count_unknown(r, e);
        r->e = *e;
        add_complete(r, work ? work_by_name(bz_string(r->t, e->name)) : BZ_EVENT_RANGE, e->name, e->start,
                     e->start + e->duration);
    }
    bz_map_free(&call);
    bz_map_free(&op);
    free(host);
}

static void event_opens(bz_chrome_events *r, uint64_t id)
{
    if (r->n_open == OPEN_MAX)
        return;
    BZ_ADD(r->open, r->n_open) = (bz_chrome_open){lane_of(r, BZ_EVENT_RANGE), r->e.name, r->e.category, r->e.start, id};
}

/* Of one lane, or, where it has an id, of any: such a span may end on another thread, and belongs to the one where it began. */
static bool closes(const bz_chrome_open *o, uint32_t lane, uint32_t name, uint64_t id)
{
    return id ? o->id == id && (!name || o->name == name) : !o->id && o->lane == lane;
}

static void event_closes(bz_chrome_events *r, uint64_t id)
{
    uint32_t lane = lane_of(r, BZ_EVENT_RANGE);
    for (uint32_t i = r->n_open; i-- > 0;)
        if (closes(&r->open[i], lane, r->e.name, id)) {
            bz_chrome_open *o = &r->open[i];
            r->e.category = o->category;
            r->e.process = r->t->lane[o->lane].process;
            r->e.thread = r->t->lane[o->lane].thread;
            add_complete(r, o->category < 0 ? BZ_EVENT_RANGE : CATEGORIES[o->category].kind, o->name, o->start,
                         r->e.start);
            if (o->category >= 0 && CATEGORIES[o->category].format)
                r->format = CATEGORIES[o->category].format;
            memmove(r->open + i, r->open + i + 1, (--r->n_open - i) * sizeof *r->open);
            return;
        }
}

static void event_names(bz_chrome_events *r)
{
    const char *what = bz_string(r->t, r->e.name);
    if (!strcmp(what, "thread_name") && r->e.label) {
        uint32_t lane = bz_trace_thread(r->t, r->source, r->e.process, r->e.thread);
        r->t->lane[lane].name = r->e.label;
        if (lane < r->n_lines)
            r->line[lane] = 0;
    } else if (!strcmp(what, "process_name") && r->e.label) {
        add_process(r);
    }
}

void bz_chrome_event_end(bz_chrome_events *r)
{
    switch (r->e.phase) {
    case 'X':
        event_complete(r);
        break;
    case 'B':
        event_opens(r, 0);
        break;
    case 'E':
        event_closes(r, 0);
        break;
    case 'b':
        event_opens(r, r->e.id);
        break;
    case 'e':
        event_closes(r, r->e.id);
        break;
    case 'i':
    case 'I':
    case 'n':
        if (r->e.has_start) {
            size_t mark =
                bz_trace_add(r->t, BZ_EVENT_RANGE, r->e.start, r->e.start, r->e.name, lane_of(r, BZ_EVENT_RANGE));
            r->t->event[BZ_EVENT_RANGE].bytes[mark] = r->e.bytes;
            r->t->event[BZ_EVENT_RANGE].address[mark] = r->e.address;
        }
        break;
    case 'M':
        event_names(r);
        break;
    default:
        r->skipped[(unsigned char)r->e.phase & 127]++;
    }
}

void bz_chrome_events_end(bz_chrome_events *r)
{
    char threads[16];
    if (r->n_waiting)
        add_waiting(r);
    snprintf(threads, sizeof threads, "%d", r->threads);
    if (r->threads)
        bz_trace_fact(r->t, "threads", threads);
    for (int c = 33; c < 127; c++)
        if (r->skipped[c] && c != 's' && c != 'f' && c != 't')
            bz_trace_cover(
                r->t, r->source, BZ_COVERAGE_NOTE,
                "%lld events of phase '%c' were left out: only complete events, begin/end pairs and marks are read",
                (long long)r->skipped[c], c);
    bz_cover_times(r->t, r->source, r->unnamed_time, r->negative);
    if (r->n_open)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_NOTE, "%u ranges begin and never end; they were left out",
                       r->n_open);
    if (r->unknown && !strcmp(r->format, "PyTorch trace"))
        bz_trace_cover(
            r->t, r->source, BZ_COVERAGE_MISSING,
            "%lld events are of categories that are not known, such as %s: they count as ranges, not as work "
            "of a device, so that a device may be busy where none is shown",
            (long long)r->unknown, bz_string(r->t, r->example));
    bz_trace_source_format(r->t, r->source, r->format);
    free(r->waiting);
    free(r->process);
    free(r->line);
    bz_buf_free(&r->detail);
    free(r->open);
}
