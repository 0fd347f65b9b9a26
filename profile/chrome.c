/* Chrome traces: PyTorch's profiler (Kineto, old and new dialect), ONNX Runtime's profiler, and any
 * other program's, whose events become ranges. A document is {"traceEvents": […], …} or just […];
 * every event is {"ph": phase, "cat": category, "name", "pid", "tid", "ts": µs, "dur": µs, "args": {…}}. */
#include "profile/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

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
    {"cuda_sync", BZ_EVENT_SYNC, "PyTorch trace", NULL},
    {"user_annotation", BZ_EVENT_RANGE, "PyTorch trace", NULL},
    {"overhead", BZ_EVENT_OVERHEAD, "PyTorch trace", NULL},
    {"Operator", BZ_EVENT_OP, "PyTorch trace", NULL},
    {"Runtime", BZ_EVENT_API, NULL, NULL},
    {"Kernel", BZ_EVENT_KERNEL, NULL, NULL},
    {"Memcpy", BZ_EVENT_COPY, NULL, NULL},
    {"Memset", BZ_EVENT_MEMSET, NULL, NULL},
    {"Node", BZ_EVENT_OP, "ONNX Runtime profile", NULL},
    {"Session", BZ_EVENT_RANGE, NULL, NULL},
};
enum { N_CATEGORIES = sizeof CATEGORIES / sizeof *CATEGORIES };

typedef enum { F_NONE, F_PH, F_CAT, F_NAME, F_PID, F_TID, F_TS, F_DUR, F_ARGS } field;
static const struct {
    const char *name;
    field field;
} FIELDS[] = {{"ph", F_PH},   {"cat", F_CAT}, {"name", F_NAME}, {"pid", F_PID},
              {"tid", F_TID}, {"ts", F_TS},   {"dur", F_DUR},   {"args", F_ARGS}};

#define ABSENT INT64_MIN

typedef struct {
    char phase;
    int category; /* row of CATEGORIES, -1 unknown */
    uint32_t name, cat;
    int64_t process, thread;
    uint32_t thread_name; /* of a thread that has no number */
    int64_t start, duration;
    int64_t correlation, external, device, context, stream, bytes, registers, shared,
        graph; /* device, stream: or ABSENT */
    uint32_t grid[3], block[3];
    uint32_t label, operator; /* args.name, args.op_name */
    bool has_start;
} event;

typedef enum { A_NONE, A_NUMBER, A_GRID, A_BLOCK, A_NAME, A_OPERATOR, A_DETAIL } argument;
static const struct {
    const char *name;
    argument argument;
    const char *detail; /* A_DETAIL: what to call it in bz_events.detail */
    size_t offset;      /* A_NUMBER: of an int64_t in event */
} ARGUMENTS[] = {
    {"correlation", A_NUMBER, NULL, offsetof(event, correlation)},
    {"External id", A_NUMBER, NULL, offsetof(event, external)},
    {"external id", A_NUMBER, NULL, offsetof(event, external)},
    {"device", A_NUMBER, NULL, offsetof(event, device)},
    {"context", A_NUMBER, NULL, offsetof(event, context)},
    {"stream", A_NUMBER, NULL, offsetof(event, stream)},
    {"bytes", A_NUMBER, NULL, offsetof(event, bytes)},
    {"registers per thread", A_NUMBER, NULL, offsetof(event, registers)},
    {"shared memory", A_NUMBER, NULL, offsetof(event, shared)},
    {"graph id", A_NUMBER, NULL, offsetof(event, graph)},
    {"grid", A_GRID, NULL, 0},
    {"block", A_BLOCK, NULL, 0},
    {"name", A_NAME, NULL, 0},
    {"op_name", A_OPERATOR, NULL, 0},
    {"Input Dims", A_DETAIL, "inputs", 0},
    {"Input dims", A_DETAIL, "inputs", 0},
    {"Input type", A_DETAIL, "types", 0},
    {"Concrete Inputs", A_DETAIL, "values", 0},
    {"provider", A_DETAIL, "provider", 0},
    {"node_index", A_DETAIL, "node", 0},
    {"input_type_shape", A_DETAIL, "inputs", 0},
    {"output_type_shape", A_DETAIL, "outputs", 0},
    {"parameter_size", A_DETAIL, "parameter_bytes", 0},
};

enum { DEEPEST = 512, OPEN_MAX = 1 << 12 };

/* An open "B" event. */
typedef struct {
    uint32_t lane, name;
    int64_t start;
} open_range;

typedef struct {
    bz_trace *t;
    uint32_t source;
    int depth, events_depth; /* events_depth: depth of the array of events; 0 unknown yet, -1 passed */
    bool key_is_events, key_is_devices;
    int devices_depth;
    field field;
    argument argument;
    size_t offset; /* of the number that `argument` names */
    int n_numbers; /* of grid, block */
    bz_buf detail; /* "inputs=… types=…" */
    int capture;   /* depth above which values are copied into detail; 0 off */
    bool comma;
    event e;
    const char *format;
    open_range *open;
    uint32_t n_open;
    int64_t skipped[128]; /* by phase */
    int64_t unnamed_time; /* complete events without ts */
    int64_t fences;
    bool too_deep;
} reader;

static void copy_text(reader *r, const char *s, size_t n)
{
    if (r->comma)
        bz_buf_putc(&r->detail, ',');
    r->comma = true;
    for (size_t i = 0; i < n; i++) /* a parameter ends at the next space */
        bz_buf_putc(&r->detail, s[i] == ' ' ? '_' : s[i]);
}

static bool same(const char *name, const unsigned char *s, size_t n)
{
    return strlen(name) == n && !memcmp(name, s, n);
}

static void event_begin(reader *r)
{
    memset(&r->e, 0, sizeof r->e);
    r->e.category = -1;
    r->e.device = r->e.stream = ABSENT;
    bz_buf_clear(&r->detail);
}

/* "1890023232", "stream 7", or a name that is no number at all: those get a number of their own. */
static int64_t number_of(reader *r, const char *s, size_t n, uint32_t *name)
{
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

static uint32_t lane_of(reader *r, bz_event_kind kind)
{
    const event *e = &r->e;
    if (bz_event_on_device(kind) || kind == BZ_EVENT_SYNC) {
        int64_t device = e->device != ABSENT ? e->device : e->process,
                stream = e->stream != ABSENT ? e->stream : e->thread;
        return bz_trace_stream(r->t, r->source, 0, device, e->context, stream);
    }
    uint32_t lane = bz_trace_thread(r->t, r->source, e->process, e->thread);
    if (e->thread_name)
        r->t->lane[lane].name = e->thread_name;
    return lane;
}

/* Directions as CUPTI numbers them, from names such as "Memcpy HtoD (Pageable -> Device)". */
static uint32_t copy_kind(const char *name)
{
    static const struct {
        const char *text;
        uint32_t kind;
    } KINDS[] = {{"HtoD", 1}, {"DtoH", 2}, {"DtoD", 8}, {"HtoH", 9}, {"PtoP", 10}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strstr(name, KINDS[i].text))
            return KINDS[i].kind;
    return 0;
}

static uint32_t sync_kind(const char *name)
{
    return strstr(name, "Wait")      ? 2
           : strstr(name, "Event")   ? 1
           : strstr(name, "Stream")  ? 3
           : strstr(name, "Context") ? 4
                                     : 0;
}

static uint32_t id32(int64_t v)
{
    return v > 0 && v < BZ_NONE ? (uint32_t)v : 0;
}

static void add_complete(reader *r, bz_event_kind kind, uint32_t name, int64_t start, int64_t end)
{
    bz_trace *t = r->t;
    event *e = &r->e;
    size_t i = bz_trace_add(t, kind, start, end, name, lane_of(r, kind));
    bz_events *ev = &t->event[kind];
    switch (kind) {
    case BZ_EVENT_OP:
        ev->correlation[i] = id32(e->external);
        ev->detail[i] = bz_trace_intern(t, bz_buf_text(&r->detail), r->detail.len);
        break;
    case BZ_EVENT_KERNEL:
        ev->short_name[i] = bz_trace_short_name(t, name);
        memcpy(ev->grid + 3 * i, e->grid, sizeof e->grid);
        memcpy(ev->block + 3 * i, e->block, sizeof e->block);
        ev->registers[i] = id32(e->registers);
        ev->shared_dynamic[i] = id32(e->shared);
        break;
    case BZ_EVENT_COPY:
        ev->value[i] = copy_kind(bz_string(t, name));
        ev->bytes[i] = e->bytes;
        break;
    case BZ_EVENT_MEMSET:
        ev->bytes[i] = e->bytes;
        break;
    case BZ_EVENT_SYNC:
        ev->value[i] = sync_kind(bz_string(t, name));
        break;
    default:
        break;
    }
    if (ev->correlation && kind != BZ_EVENT_OP)
        ev->correlation[i] = id32(e->correlation);
    if (ev->graph)
        ev->graph[i] = id32(e->graph);
}

/* ONNX Runtime brackets every node by two fences; the name carries which of the three it is. */
static bool is_fence(const char *name)
{
    size_t n = strlen(name);
    return (n > 13 && !strcmp(name + n - 13, "_fence_before")) || (n > 12 && !strcmp(name + n - 12, "_fence_after"));
}

static void event_complete(reader *r)
{
    event *e = &r->e;
    bz_event_kind kind = e->category < 0 ? BZ_EVENT_RANGE : CATEGORIES[e->category].kind;
    if (!e->has_start) {
        r->unnamed_time++;
        return;
    }
    if (e->category >= 0 && CATEGORIES[e->category].format)
        r->format = CATEGORIES[e->category].format;
    uint32_t name = e->name;
    if (e->category >= 0 && !strcmp(CATEGORIES[e->category].name, "Node")) {
        if (is_fence(bz_string(r->t, name))) {
            r->fences++;
            return;
        }
        bz_buf_printf(&r->detail, "%sname=%s", r->detail.len ? " " : "", bz_string(r->t, name));
        name = e->operator? e->operator: name;
    }
    int64_t end;
    if (__builtin_add_overflow(e->start, e->duration > 0 ? e->duration : 0, &end))
        end = e->start;
    add_complete(r, kind, name, e->start, end);
}

static void event_opens(reader *r)
{
    if (r->n_open == OPEN_MAX)
        return;
    if (!(r->n_open & (r->n_open - 1)))
        r->open = bz_realloc(r->open, r->n_open ? r->n_open * 2 : 1, sizeof *r->open);
    r->open[r->n_open++] = (open_range){lane_of(r, BZ_EVENT_RANGE), r->e.name, r->e.start};
}

static void event_closes(reader *r)
{
    uint32_t lane = lane_of(r, BZ_EVENT_RANGE);
    for (uint32_t i = r->n_open; i-- > 0;)
        if (r->open[i].lane == lane) {
            bz_trace_add(r->t, BZ_EVENT_RANGE, r->open[i].start, r->e.start, r->open[i].name, lane);
            memmove(r->open + i, r->open + i + 1, (--r->n_open - i) * sizeof *r->open);
            return;
        }
}

static void event_names(reader *r)
{
    const char *what = bz_string(r->t, r->e.name);
    if (!strcmp(what, "thread_name") && r->e.label) {
        uint32_t lane = bz_trace_thread(r->t, r->source, r->e.process, r->e.thread);
        r->t->lane[lane].name = r->e.label;
    } else if (!strcmp(what, "process_name") && r->e.label) {
        bz_trace_fact(r->t, "program", bz_string(r->t, r->e.label));
    }
}

static void event_end(reader *r)
{
    switch (r->e.phase) {
    case 'X':
        event_complete(r);
        break;
    case 'B':
        event_opens(r);
        break;
    case 'E':
        event_closes(r);
        break;
    case 'i':
    case 'I':
        if (r->e.has_start)
            bz_trace_add(r->t, BZ_EVENT_RANGE, r->e.start, r->e.start, r->e.name, lane_of(r, BZ_EVENT_RANGE));
        break;
    case 'M':
        event_names(r);
        break;
    default:
        r->skipped[(unsigned char)r->e.phase & 127]++;
    }
}

/* ---- callbacks of the JSON parser. Event objects lie at depth events_depth + 1, args one deeper. ---- */

static bool at_event(const reader *r)
{
    return r->events_depth > 0 && r->depth == r->events_depth + 1;
}

static bool at_args(const reader *r)
{
    return r->events_depth > 0 && r->depth == r->events_depth + 2 && r->field == F_ARGS;
}

static int on_open(reader *r, bool map)
{
    r->depth++;
    if (r->depth > DEEPEST) {
        r->too_deep = true;
        return 0;
    }
    if (r->capture) {
        if (r->comma)
            bz_buf_putc(&r->detail, ',');
        bz_buf_putc(&r->detail, map ? '{' : '[');
        r->comma = false;
    } else if (!map && r->events_depth == 0 && (r->depth == 1 || (r->depth == 2 && r->key_is_events))) {
        r->events_depth = r->depth;
    } else if (!map && r->depth == 2 && r->key_is_devices) {
        r->devices_depth = 2;
    } else if (map && at_event(r)) {
        event_begin(r);
        r->field = F_NONE;
        r->argument = A_NONE;
    }
    return 1;
}

static int on_map_open(void *context)
{
    return on_open(context, true);
}

static int on_array_open(void *context)
{
    reader *r = context;
    r->n_numbers = 0;
    return on_open(r, false);
}

static int on_close(reader *r, bool map)
{
    if (map && at_event(r))
        event_end(r);
    else if (!map && r->depth == r->events_depth)
        r->events_depth = -1;
    else if (!map && r->depth == r->devices_depth)
        r->devices_depth = 0;
    r->depth--;
    if (r->capture) {
        bz_buf_putc(&r->detail, map ? '}' : ']');
        r->comma = true;
        if (r->depth == r->capture)
            r->capture = 0;
    }
    return 1;
}

static int on_map_close(void *context)
{
    return on_close(context, true);
}

static int on_array_close(void *context)
{
    return on_close(context, false);
}

static int on_key(void *context, const unsigned char *s, size_t n)
{
    reader *r = context;
    if (r->capture) {
        copy_text(r, (const char *)s, n);
        bz_buf_putc(&r->detail, ':');
        r->comma = false;
    } else if (at_event(r)) {
        r->field = F_NONE;
        for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
            if (same(FIELDS[i].name, s, n))
                r->field = FIELDS[i].field;
    } else if (at_args(r)) {
        r->argument = A_NONE;
        for (size_t i = 0; i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++)
            if (same(ARGUMENTS[i].name, s, n)) {
                r->argument = ARGUMENTS[i].argument;
                r->offset = ARGUMENTS[i].offset;
                if (r->argument == A_DETAIL) {
                    bz_buf_printf(&r->detail, "%s%s=", r->detail.len ? " " : "", ARGUMENTS[i].detail);
                    r->capture = r->depth;
                    r->comma = false;
                }
                break;
            }
    } else if (r->depth == 1) {
        r->key_is_events = same("traceEvents", s, n);
        r->key_is_devices = same("deviceProperties", s, n);
    } else if (r->devices_depth && r->depth == r->devices_depth + 1) {
        r->field = same("name", s, n) ? F_NAME : F_NONE;
    }
    return 1;
}

/* A captured scalar that is the whole value ends the capture. */
static int captured(reader *r, const char *s, size_t n)
{
    copy_text(r, s, n);
    if (r->depth == r->capture)
        r->capture = 0;
    return 1;
}

static void argument_number(reader *r, const char *s, size_t n)
{
    if (r->argument == A_NUMBER)
        *(int64_t *)(void *)((char *)&r->e + r->offset) = bz_text_int(s, n);
}

static int on_number(void *context, const char *s, size_t n)
{
    reader *r = context;
    if (r->capture)
        return captured(r, s, n);
    event *e = &r->e;
    if (at_event(r)) {
        if (r->field == F_TS) {
            e->start = bz_text_nanoseconds(s, n, 1000);
            e->has_start = true;
        } else if (r->field == F_DUR) {
            e->duration = bz_text_nanoseconds(s, n, 1000);
        } else if (r->field == F_PID) {
            e->process = bz_text_int(s, n);
        } else if (r->field == F_TID) {
            e->thread = bz_text_int(s, n);
        }
    } else if (at_args(r)) {
        argument_number(r, s, n);
    } else if (r->events_depth > 0 && r->depth == r->events_depth + 3 && r->n_numbers < 3) {
        uint32_t *to = r->argument == A_GRID ? e->grid : r->argument == A_BLOCK ? e->block : NULL;
        if (to)
            to[r->n_numbers++] = id32(bz_text_int(s, n));
    }
    return 1;
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    reader *r = context;
    const char *s = (const char *)text;
    if (r->capture)
        return captured(r, s, n);
    event *e = &r->e;
    uint32_t ignored;
    if (at_event(r)) {
        switch (r->field) {
        case F_PH:
            e->phase = n ? *s : 0;
            break;
        case F_CAT:
            for (int i = 0; i < N_CATEGORIES; i++)
                if (same(CATEGORIES[i].name, text, n))
                    e->category = i;
            break;
        case F_NAME:
            e->name = bz_trace_intern(r->t, s, n);
            break;
        case F_PID:
            e->process = number_of(r, s, n, &ignored);
            for (int i = 0; i < N_CATEGORIES && e->category < 0; i++)
                if (CATEGORIES[i].process && same(CATEGORIES[i].process, text, n))
                    e->category = i;
            break;
        case F_TID:
            e->thread = number_of(r, s, n, &e->thread_name);
            break;
        case F_TS:
        case F_DUR:
            return on_number(context, s, n);
        default:
            break;
        }
    } else if (at_args(r)) {
        if (r->argument == A_NAME)
            e->label = bz_trace_intern(r->t, s, n);
        else if (r->argument == A_OPERATOR)
            e->operator= bz_trace_intern(r->t, s, n);
        else
            argument_number(r, s, n);
    } else if (r->devices_depth && r->depth == r->devices_depth + 1 && r->field == F_NAME) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(n < 100 ? n : 100), s);
        bz_trace_fact(r->t, "gpu", name);
    }
    return 1;
}

static int on_null(void *context)
{
    reader *r = context;
    return r->capture ? captured(r, "null", 4) : 1;
}

static int on_bool(void *context, int v)
{
    reader *r = context;
    return r->capture ? captured(r, v ? "true" : "false", v ? 4 : 5) : 1;
}

/* ---- the file ---- */

static bool chrome_matches(const char *head, size_t n)
{
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    if (i == n)
        return false;
    if (head[i] == '[')
        return bz_text_has(head, n, "\"ph\"");
    return head[i] == '{' &&
           (bz_text_has(head, n, "\"traceEvents\"") || bz_text_has(head, n, "\"ph\"") ||
            bz_text_has(head, n, "\"deviceProperties\"") || bz_text_has(head, n, "\"schemaVersion\""));
}

static void cover(reader *r)
{
    for (int c = 33; c < 127; c++)
        if (r->skipped[c] && c != 's' && c != 'f' && c != 't')
            bz_trace_cover(
                r->t, r->source, BZ_COVERAGE_NOTE,
                "%lld events of phase '%c' were left out: only complete events, begin/end pairs and marks are read",
                (long long)r->skipped[c], c);
    if (r->unnamed_time)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN, "%lld events carry no time and were left out",
                       (long long)r->unnamed_time);
    if (r->n_open)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_NOTE, "%u ranges begin and never end; they were left out",
                       r->n_open);
}

static int chrome_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    static const yajl_callbacks CALLBACKS = {on_null,      on_bool,       NULL,          NULL,
                                             on_number,    on_string,     on_map_open,   on_key,
                                             on_map_close, on_array_open, on_array_close};
    reader r = {.t = t, .source = source, .format = "Chrome trace"};
    yajl_handle parser = yajl_alloc(&CALLBACKS, NULL, &r);
    yajl_config(parser, yajl_dont_validate_strings, 1);
    yajl_config(parser, yajl_allow_trailing_garbage, 1);
    yajl_status status = yajl_status_ok;
    int64_t bytes = 0;
    do {
        if (in->len)
            status = yajl_parse(parser, (const unsigned char *)in->data, in->len);
        if (status != yajl_status_ok)
            bytes = in->passed + (int64_t)yajl_get_bytes_consumed(parser);
        bz_stream_advance(in, in->len, 1);
    } while (in->len && status == yajl_status_ok && r.events_depth >= 0);
    if (status == yajl_status_ok && r.events_depth > 0) {
        bytes = in->passed;
        status = yajl_status_error;
    }
    if (status != yajl_status_ok) {
        t->source[source].truncated = true;
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%s at byte %lld; all events before it were read",
                       r.too_deep ? "the JSON is nested too deeply"
                       : in->len  ? "the JSON is damaged"
                                 : "the file ends in the middle: it was cut off, or the program did not finish writing",
                       (long long)bytes);
    }
    cover(&r);
    bz_trace_source_format(t, source, r.format);
    yajl_free(parser);
    bz_buf_free(&r.detail);
    free(r.open);
    (void)err;
    return 0;
}

const bz_reader bz_reader_chrome = {"Chrome trace", false, chrome_matches, chrome_read};
