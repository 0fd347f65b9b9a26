/* The JSON of Chrome traces: {"traceEvents": […], …} or just […]; every event is {"ph": phase, "cat": category, "name",
 * "pid", "tid", "ts": µs, "dur": µs, "args": {…}}. What the events mean is in chrome_events.c. */
#include "profile/chrome.h"

#include "base/yajl_memory.h"
#include "profile/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

typedef enum { F_NONE, F_PH, F_CAT, F_NAME, F_PID, F_TID, F_TS, F_DUR, F_ARGS } field;
static const struct {
    const char *name;
    field field;
} FIELDS[] = {{"ph", F_PH},   {"cat", F_CAT}, {"name", F_NAME}, {"pid", F_PID},
              {"tid", F_TID}, {"ts", F_TS},   {"dur", F_DUR},   {"args", F_ARGS}};

typedef enum { A_NONE, A_NUMBER, A_GRID, A_BLOCK, A_NAME, A_OPERATOR, A_THREADS, A_DETAIL } argument;
static const struct {
    const char *name;
    argument argument;
    const char *detail; /* A_DETAIL: what to call it in bz_events.detail */
    size_t offset;      /* A_NUMBER: of an int64_t in event */
} ARGUMENTS[] = {
    {"correlation", A_NUMBER, NULL, offsetof(bz_chrome_event, correlation)},
    {"External id", A_NUMBER, NULL, offsetof(bz_chrome_event, external)},
    {"external id", A_NUMBER, NULL, offsetof(bz_chrome_event, external)},
    {"device", A_NUMBER, NULL, offsetof(bz_chrome_event, device)},
    {"context", A_NUMBER, NULL, offsetof(bz_chrome_event, context)},
    {"stream", A_NUMBER, NULL, offsetof(bz_chrome_event, stream)},
    {"bytes", A_NUMBER, NULL, offsetof(bz_chrome_event, bytes)},
    {"Bytes", A_NUMBER, NULL, offsetof(bz_chrome_event, bytes)},
    {"Addr", A_NUMBER, NULL, offsetof(bz_chrome_event, address)},
    {"est. achieved occupancy %", A_NUMBER, NULL, offsetof(bz_chrome_event, occupancy)},
    {"registers per thread", A_NUMBER, NULL, offsetof(bz_chrome_event, registers)},
    {"shared memory", A_NUMBER, NULL, offsetof(bz_chrome_event, shared)},
    {"graph id", A_NUMBER, NULL, offsetof(bz_chrome_event, graph)},
    {"wait_on_stream", A_NUMBER, NULL, offsetof(bz_chrome_event, waited_stream)},
    {"wait_on_cuda_event_record_corr_id", A_NUMBER, NULL, offsetof(bz_chrome_event, waited_record)},
    {"grid", A_GRID, NULL, 0},
    {"block", A_BLOCK, NULL, 0},
    {"name", A_NAME, NULL, 0},
    {"op_name", A_OPERATOR, NULL, 0},
    {"thread_scheduling_stats", A_THREADS, NULL, 0}, /* "" or {"main_thread": {…}, "sub_threads": {"140…": {…}, …}} */
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

enum { DEEPEST = 512 };

typedef struct {
    bz_chrome_events events;
    int depth, events_depth; /* events_depth: depth of the array of events; 0 unknown yet, -1 passed */
    bool key_is_events, key_is_devices, key_is_ranks, key_is_rank, key_is_workers;
    int devices_depth;
    field field;
    argument argument;
    size_t offset; /* of the number that `argument` names */
    int n_numbers; /* of grid, block */
    int capture;   /* depth above which values are copied into detail; 0 off */
    bool comma;
    bool too_deep;
    int64_t repaired; /* windows with numbers that are none */
} reader;

static void copy_text(reader *r, const char *s, size_t n)
{
    if (r->comma)
        bz_buf_putc(&r->events.detail, ',');
    r->comma = true;
    for (size_t i = 0; i < n; i++) /* a parameter ends at the next space */
        bz_buf_putc(&r->events.detail, s[i] == ' ' ? '_' : s[i]);
}

static bool same(const char *name, const unsigned char *s, size_t n)
{
    return n && *name == (char)*s && strlen(name) == n && !memcmp(name, s, n);
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
            bz_buf_putc(&r->events.detail, ',');
        bz_buf_putc(&r->events.detail, map ? '{' : '[');
        r->comma = false;
    } else if (!map && r->events_depth == 0 && (r->depth == 1 || (r->depth == 2 && r->key_is_events))) {
        r->events_depth = r->depth;
    } else if (!map && r->depth == 2 && r->key_is_devices) {
        r->devices_depth = 2;
    } else if (map && at_event(r)) {
        bz_chrome_event_begin(&r->events);
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
        bz_chrome_event_end(&r->events);
    else if (!map && r->depth == r->events_depth)
        r->events_depth = -1;
    else if (!map && r->depth == r->devices_depth)
        r->devices_depth = 0;
    r->depth--;
    if (r->capture) {
        bz_buf_putc(&r->events.detail, map ? '}' : ']');
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
        bz_buf_putc(&r->events.detail, ':');
        r->comma = false;
    } else if (at_event(r)) {
        r->field = F_NONE;
        for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
            if (same(FIELDS[i].name, s, n)) {
                r->field = FIELDS[i].field;
                break;
            }
    } else if (at_args(r)) {
        r->argument = A_NONE;
        for (size_t i = 0; i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++)
            if (same(ARGUMENTS[i].name, s, n)) {
                r->argument = ARGUMENTS[i].argument;
                r->offset = ARGUMENTS[i].offset;
                if (r->argument == A_DETAIL) {
                    bz_buf_printf(&r->events.detail, "%s%s=", r->events.detail.len ? " " : "", ARGUMENTS[i].detail);
                    r->capture = r->depth;
                    r->comma = false;
                }
                break;
            }
    } else if (r->argument == A_THREADS && r->events_depth > 0 && r->depth == r->events_depth + 3) {
        r->key_is_workers = same("sub_threads", s, n);
        r->events.e.threads = r->events.e.threads ? r->events.e.threads : 1;
    } else if (r->argument == A_THREADS && r->events_depth > 0 && r->depth == r->events_depth + 4) {
        r->events.e.threads += r->key_is_workers;
    } else if (r->depth == 1) {
        r->key_is_events = same("traceEvents", s, n);
        r->key_is_devices = same("deviceProperties", s, n);
        r->key_is_ranks = same("distributedInfo", s, n);
    } else if (r->depth == 2 && r->key_is_ranks) {
        r->key_is_rank = same("rank", s, n);
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
        *(int64_t *)(void *)((char *)&r->events.e + r->offset) = bz_text_int(s, n);
}

static int on_number(void *context, const char *s, size_t n)
{
    reader *r = context;
    if (r->capture)
        return captured(r, s, n);
    bz_chrome_event *e = &r->events.e;
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
            to[r->n_numbers++] = bz_chrome_id(bz_text_int(s, n));
    } else if (r->depth == 2 && r->key_is_ranks && r->key_is_rank) {
        char rank[24];
        snprintf(rank, sizeof rank, "%.*s", (int)(n < 20 ? n : 20), s);
        bz_trace_fact(r->events.t, "rank", rank);
        r->key_is_rank = false;
    }
    return 1;
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    reader *r = context;
    const char *s = (const char *)text;
    if (r->capture)
        return captured(r, s, n);
    bz_chrome_event *e = &r->events.e;
    uint32_t ignored;
    if (at_event(r)) {
        switch (r->field) {
        case F_PH:
            e->phase = n ? *s : 0;
            break;
        case F_CAT:
            e->category = bz_chrome_category(s, n);
            break;
        case F_NAME:
            e->name = bz_trace_intern(r->events.t, s, n);
            break;
        case F_PID:
            e->process = bz_chrome_number(&r->events, s, n, &ignored);
            if (e->category < 0)
                e->category = bz_chrome_category_of_process(s, n);
            break;
        case F_TID:
            e->thread = bz_chrome_number(&r->events, s, n, &e->thread_name);
            break;
        case F_TS:
        case F_DUR:
            return n ? on_number(context, s, n) : 1;
        default:
            break;
        }
    } else if (at_args(r)) {
        if (r->argument == A_NAME)
            e->label = bz_trace_intern(r->events.t, s, n);
        else if (r->argument == A_OPERATOR)
            e->operator= bz_trace_intern(r->events.t, s, n);
        else if (r->argument == A_THREADS)
            e->threads = n == 0; /* ONNX Runtime without a pool of threads */
        else
            argument_number(r, s, n);
    } else if (r->devices_depth && r->depth == r->devices_depth + 1 && r->field == F_NAME) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(n < 100 ? n : 100), s);
        bz_trace_fact(r->events.t, "gpu", name);
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

/* Some programs write what is no JSON: "dur": NaN. Such a value becomes an empty string, which stands for no number. Returns
 * the text with the same length: itself, or in `copy`. What lies across the ends of two windows stays, and ends the trace. */
static const char *without_nan(const char *text, size_t n, char **copy)
{
    static const char *const NAMES[] = {"NaN", "Infinity"};
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++) {
        size_t length = strlen(NAMES[k]);
        for (const char *p = text, *end = text + n; (p = memmem(p, (size_t)(end - p), NAMES[k], length)) != NULL; p++) {
            size_t at = (size_t)(p - text), from = at;
            from -= from && text[from - 1] == '-';
            size_t before = from;
            while (before && strchr(" \t\r\n", text[before - 1]))
                before--;
            bool value = before > 2 && text[before - 1] == ':' && text[before - 2] == '"' && text[before - 3] != '\\';
            if (!value || at + length >= n || !strchr(",} \t\r\n", text[at + length]))
                continue;
            if (!*copy) {
                *copy = bz_alloc(n, 1);
                memcpy(*copy, text, n);
            }
            memset(*copy + from, ' ', at + length - from);
            memcpy(*copy + from, "\"\"", 2);
        }
    }
    return *copy ? *copy : text;
}

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

static int chrome_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    static const yajl_callbacks CALLBACKS = {on_null,      on_bool,       NULL,          NULL,
                                             on_number,    on_string,     on_map_open,   on_key,
                                             on_map_close, on_array_open, on_array_close};
    reader r = {.events = {.t = t, .source = source, .format = "Chrome trace"}};
    yajl_handle parser = yajl_alloc(&CALLBACKS, &bz_yajl_memory, &r);
    yajl_config(parser, yajl_dont_validate_strings, 1);
    yajl_config(parser, yajl_allow_trailing_garbage, 1);
    yajl_status status = yajl_status_ok;
    int64_t bytes = 0;
    do {
        char *copy = NULL;
        if (in->len)
            status = yajl_parse(parser, (const unsigned char *)without_nan(in->data, in->len, &copy), in->len);
        r.repaired += copy != NULL;
        if (status != yajl_status_ok)
            bytes = in->passed + (int64_t)yajl_get_bytes_consumed(parser);
        free(copy);
        bz_stream_advance(in, in->len, 1);
    } while (in->len && status == yajl_status_ok && r.events_depth >= 0);
    if (status == yajl_status_ok && (r.events_depth > 0 || (!r.events_depth && r.depth))) {
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
    if (r.repaired)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                       "some numbers are NaN or infinite, which is no JSON: they count as not told");
    bz_chrome_events_end(&r.events);
    yajl_free(parser);
    (void)err;
    return 0;
}

const bz_reader bz_reader_chrome = {"Chrome trace", false, chrome_matches, chrome_read};
