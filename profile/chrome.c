/* The JSON of Chrome traces: {"traceEvents": […], …} or just […]; every event is {"ph": phase, "cat": category, "name",
 * "pid", "tid", "ts": µs, "dur": µs, "args": {…}}. What the events mean is in chrome_events.c. */
#include "profile/chrome.h"

#include "profile/names.h"
#include "profile/reader.h"
#include "profile/tokens.h"

#include <stdio.h>
#include <string.h>

typedef enum { F_NONE, F_PH, F_CAT, F_NAME, F_ID, F_PID, F_TID, F_TS, F_DUR, F_ARGS } field;
static const struct {
    const char *name;
    field field;
} FIELDS[] = {{"ph", F_PH},   {"cat", F_CAT}, {"name", F_NAME}, {"id", F_ID},   {"id2", F_ID},
              {"pid", F_PID}, {"tid", F_TID}, {"ts", F_TS},     {"dur", F_DUR}, {"args", F_ARGS}};

typedef enum { A_NONE, A_NUMBER, A_GRID, A_BLOCK, A_NAME, A_OPERATOR, A_THREADS, A_DETAIL, A_TOLD } argument;
static const struct {
    const char *name;
    argument argument;
    const char *detail; /* A_DETAIL: what to call it in bz_events.detail */
    size_t offset;      /* A_NUMBER: of an int64_t in event */
} ARGUMENTS[] = {
    {"correlation", A_NUMBER, NULL, offsetof(bz_chrome_event, correlation)},
    {"correlation_id", A_NUMBER, NULL, offsetof(bz_chrome_event, correlation)}, /* TensorFlow, JAX */
    {"connection_id", A_NUMBER, NULL, offsetof(bz_chrome_event, correlation)},  /* Ascend */
    {"correlation id", A_NUMBER, NULL, offsetof(bz_chrome_event, correlation)}, /* Paddle */
    {"step_num", A_NUMBER, NULL, offsetof(bz_chrome_event, step)},
    {"kernel_details", A_TOLD, NULL, 0},
    {"memcpy_details", A_TOLD, NULL, 0},
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
_Static_assert(sizeof ARGUMENTS / sizeof *ARGUMENTS <= BZ_NAMES_ROWS, "names holds so many");

typedef struct {
    bz_chrome_events events;
    int depth, events_depth; /* events_depth: depth of the array of events; 0 unknown yet, -1 passed */
    bool key_is_events, key_is_devices, key_is_ranks, key_is_rank, key_is_workers;
    int devices_depth;
    enum { ELSEWHERE, IN_EVENT, IN_ARGS } where;
    field field;
    argument argument;
    size_t offset; /* of the number that `argument` names */
    int n_numbers; /* of grid, block */
    int capture;   /* depth above which values are copied into detail; 0 off */
    bool comma;
    bool repaired; /* some numbers are none */
    bool phased;   /* some event has a phase */
    int outside;   /* depth between events: 1 in a file of one event a line, as if an array were around them; else 0 */
    bool too_long; /* a single text is longer than LONGEST */
    bz_names fields, arguments;
} reader;

static void copy_text(reader *r, const char *s, size_t n)
{
    if (r->comma)
        bz_buf_putc(&r->events.detail, ',');
    r->comma = true;
    for (size_t i = 0; i < n; i++) /* a parameter ends at the next space */
        bz_buf_putc(&r->events.detail, s[i] == ' ' ? '_' : s[i]);
}

/* Numbers and texts alike; a flow of a launch has one, too, so they are not kept. */
static void add_id(bz_chrome_event *e, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        e->id = (e->id ^ (unsigned char)s[i]) * 0x100000001b3u;
    e->id |= 1;
}

/* Where the next key or value lies, which only an opening or a closing changes. */
static void look_where(reader *r)
{
    r->where = r->events_depth <= 0                                    ? ELSEWHERE
               : r->depth == r->events_depth + 1                       ? IN_EVENT
               : r->depth == r->events_depth + 2 && r->field == F_ARGS ? IN_ARGS
                                                                       : ELSEWHERE;
}

static void on_open(reader *r, bool map)
{
    r->depth++;
    r->n_numbers = map ? r->n_numbers : 0;
    if (r->capture) {
        if (r->comma)
            bz_buf_putc(&r->events.detail, ',');
        bz_buf_putc(&r->events.detail, map ? '{' : '[');
        r->comma = false;
    } else if (!map && r->events_depth == 0 && (r->depth == 1 || (r->depth == 2 && r->key_is_events))) {
        r->events_depth = r->depth;
    } else if (!map && r->depth == 2 && r->key_is_devices) {
        r->devices_depth = 2;
    } else if (map && r->events_depth > 0 && r->depth == r->events_depth + 1) {
        bz_chrome_event_begin(&r->events);
        r->field = F_NONE;
        r->argument = A_NONE;
    }
    look_where(r);
}

static void on_close(reader *r, bool map)
{
    if (map && r->where == IN_EVENT)
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
    look_where(r);
}

static void on_key(reader *r, const char *s, size_t n)
{
    if (r->capture) {
        copy_text(r, s, n);
        bz_buf_putc(&r->events.detail, ':');
        r->comma = false;
    } else if (r->where == IN_EVENT) {
        uint8_t row = bz_names_row(&r->fields, s, n);
        r->field = row ? FIELDS[row - 1].field : F_NONE;
    } else if (r->where == IN_ARGS) {
        uint8_t row = bz_names_row(&r->arguments, s, n);
        r->argument = row ? ARGUMENTS[row - 1].argument : A_NONE;
        r->offset = row ? ARGUMENTS[row - 1].offset : 0;
        if (r->argument == A_DETAIL) {
            bz_buf_printf(&r->events.detail, "%s%s=", r->events.detail.len ? " " : "", ARGUMENTS[row - 1].detail);
            r->capture = r->depth;
            r->comma = false;
        }
    } else if (r->argument == A_THREADS && r->events_depth > 0 && r->depth == r->events_depth + 3) {
        r->key_is_workers = bz_chrome_same("sub_threads", s, n);
        r->events.e.threads = r->events.e.threads ? r->events.e.threads : 1;
    } else if (r->argument == A_THREADS && r->events_depth > 0 && r->depth == r->events_depth + 4) {
        r->events.e.threads += r->key_is_workers;
    } else if (r->depth == 1) {
        r->key_is_events = bz_chrome_same("traceEvents", s, n);
        r->key_is_devices = bz_chrome_same("deviceProperties", s, n);
        r->key_is_ranks = bz_chrome_same("distributedInfo", s, n);
    } else if (r->depth == 2 && r->key_is_ranks) {
        r->key_is_rank = bz_chrome_same("rank", s, n);
    } else if (r->devices_depth && r->depth == r->devices_depth + 1) {
        r->field = bz_chrome_same("name", s, n) ? F_NAME : F_NONE;
    }
}

/* A captured scalar that is the whole value ends the capture. */
static void captured(reader *r, const char *s, size_t n)
{
    copy_text(r, s, n);
    if (r->depth == r->capture)
        r->capture = 0;
}

static void argument_number(reader *r, const char *s, size_t n)
{
    if (r->argument == A_NUMBER)
        *(int64_t *)(void *)((char *)&r->events.e + r->offset) = bz_text_int(s, n);
}

static void on_number(reader *r, const char *s, size_t n)
{
    bz_chrome_event *e = &r->events.e;
    if (r->where == IN_EVENT) {
        if (r->field == F_TS) {
            e->start = bz_text_nanoseconds(s, n, 1000);
            e->has_start = true;
        } else if (r->field == F_DUR) {
            e->duration = bz_text_nanoseconds(s, n, 1000);
        } else if (r->field == F_PID) {
            e->process = bz_text_int(s, n);
        } else if (r->field == F_TID) {
            e->thread = bz_text_int(s, n);
        } else if (r->field == F_ID) {
            add_id(e, s, n);
        }
    } else if (r->where == IN_ARGS) {
        argument_number(r, s, n);
    } else if (r->events_depth > 0 && r->depth == r->events_depth + 3 && r->n_numbers < 3) {
        uint32_t *to = r->argument == A_GRID ? e->launched.grid : r->argument == A_BLOCK ? e->launched.block : NULL;
        if (to)
            to[r->n_numbers++] = bz_chrome_id(bz_text_int(s, n));
    } else if (r->depth == 2 && r->key_is_ranks && r->key_is_rank) {
        char rank[24];
        snprintf(rank, sizeof rank, "%.*s", (int)(n < 20 ? n : 20), s);
        bz_trace_fact(r->events.t, "rank", rank);
        r->key_is_rank = false;
    }
}

static void on_string(reader *r, const char *s, size_t n)
{
    bz_chrome_event *e = &r->events.e;
    uint32_t ignored;
    if (r->where == IN_EVENT) {
        switch (r->field) {
        case F_PH:
            e->phase = n ? *s : 0;
            r->phased = true;
            break;
        case F_CAT:
            bz_chrome_categorize(&r->events, s, n);
            break;
        case F_NAME:
            e->name = bz_trace_intern(r->events.t, s, bz_chrome_name(e, s, n));
            break;
        case F_PID:
            e->process = bz_chrome_number(&r->events, s, n, &ignored);
            bz_chrome_categorize_process(&r->events, s, n);
            break;
        case F_TID:
            e->thread = bz_chrome_number(&r->events, s, n, &e->thread_name);
            break;
        case F_ID:
            add_id(e, s, n);
            break;
        case F_TS:
        case F_DUR:
            if (n)
                on_number(r, s, n);
            break;
        default:
            break;
        }
    } else if (r->where == IN_ARGS) {
        if (r->argument == A_NAME)
            e->label = bz_trace_intern(r->events.t, s, n);
        else if (r->argument == A_OPERATOR)
            e->operator= bz_trace_intern(r->events.t, s, n);
        else if (r->argument == A_THREADS)
            e->threads = n == 0; /* ONNX Runtime without a pool of threads */
        else if (r->argument == A_TOLD)
            bz_chrome_details(e, s, n);
        else
            argument_number(r, s, n);
    } else if (r->field == F_ID && r->events_depth > 0 && r->depth == r->events_depth + 2) { /* {"local": "0x1"} */
        add_id(e, s, n);
    } else if (r->devices_depth && r->depth == r->devices_depth + 1 && r->field == F_NAME && n) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(n < 100 ? n : 100), s);
        bz_trace_fact(r->events.t, "gpu", name);
    }
}

static void on_value(reader *r, bz_token what, const char *s, size_t n)
{
    r->repaired |= what == BZ_TOKEN_NAN;
    n = what == BZ_TOKEN_NAN ? 0 : n; /* an empty string stands for no number */
    if (r->capture)
        captured(r, s, n);
    else if (what == BZ_TOKEN_NUMBER)
        on_number(r, s, n);
    else if (what != BZ_TOKEN_WORD)
        on_string(r, s, n);
}

static void on_token(reader *r, bz_token what, const char *s, size_t n)
{
    switch (what) {
    case BZ_TOKEN_KEY:
        on_key(r, s, n);
        return;
    case BZ_TOKEN_OPEN_MAP:
    case BZ_TOKEN_OPEN_ARRAY:
        on_open(r, what == BZ_TOKEN_OPEN_MAP);
        return;
    case BZ_TOKEN_CLOSE_MAP:
    case BZ_TOKEN_CLOSE_ARRAY:
        on_close(r, what == BZ_TOKEN_CLOSE_MAP);
        return;
    default:
        on_value(r, what, s, n);
    }
}

/* Bytes of a single text, which lies in memory as a whole: far more than a name or a list of shapes, and not less than what a file may unpack
 * to without a question. */
enum { LONGEST = 1 << 26 };

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

/* Is each line an event, without an array around them? The first one then has a phase, and no list of events. */
static bool is_lines(const bz_stream *in)
{
    const char *end = memchr(in->data, '\n', in->len);
    size_t n = end ? (size_t)(end - in->data) : 0;
    return n && *in->data == '{' && bz_text_has(in->data, n, "\"ph\"") && !bz_text_has(in->data, n, "\"traceEvents\"");
}

/* All tokens; the last one is BZ_TOKEN_END, BZ_TOKEN_BAD, or, at the end of the file, BZ_TOKEN_MORE. */
static bz_token read_tokens(reader *r, bz_tokens *k, bz_stream *in)
{
    k->at = in->data;
    k->end = in->data + in->len;
    for (;;) {
        bz_token what = bz_tokens_member(k);
        if (what != BZ_TOKEN_MORE) {
            on_key(r, k->key, k->key_n);
            on_value(r, what, k->text, k->n);
            continue;
        }
        what = bz_tokens_next(k);
        if (what == BZ_TOKEN_MORE && !in->end) {
            size_t used = (size_t)(k->at - in->data), left = in->len - used;
            r->too_long = left > LONGEST;
            if (r->too_long)
                return BZ_TOKEN_BAD;
            bz_stream_advance(in, used, 2 * left < LONGEST ? 2 * left + 1 : LONGEST + 1);
            k->at = in->data;
            k->end = in->data + in->len;
        } else if (what == BZ_TOKEN_END && r->outside && !(in->end && k->at == k->end)) {
            bz_tokens_again(k);
        } else if (what <= BZ_TOKEN_END) {
            return what;
        } else {
            on_token(r, what, k->text, k->n);
        }
    }
}

static int chrome_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    reader r = {.events = {.t = t, .source = source, .format = "Chrome trace"}};
    bz_chrome_events_begin(&r.events);
    bz_tokens k = {0};
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        bz_names_add(&r.fields, FIELDS[i].name, i);
    for (size_t i = 0; i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++)
        bz_names_add(&r.arguments, ARGUMENTS[i].name, i);
    if (is_lines(in))
        r.depth = r.events_depth = r.outside = 1;
    bz_token last = read_tokens(&r, &k, in);
    bool cut = last == BZ_TOKEN_MORE && r.depth > r.outside;
    if (cut || last == BZ_TOKEN_BAD) {
        t->source[source].truncated = true;
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%s at byte %lld; all events before it were read",
                       k.too_deep   ? "the JSON is nested too deeply"
                       : r.too_long ? "a single text of more than 64 MB begins"
                       : !cut       ? "the JSON is damaged"
                       : r.events_depth < 0
                           ? "the file ends behind its events, without the end of the JSON: it was cut off"
                           : "the file ends in the middle: it was cut off, or the program did not finish writing",
                       (long long)in->passed + (cut ? (long long)in->len : (long long)(k.at - in->data)));
    }
    if (r.repaired)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                       "some numbers are NaN or infinite, which is no JSON: they count as not told");
    bz_chrome_events_end(&r.events);
    bz_buf_free(&k.plain);
    if (!r.phased && !t->source[source].truncated && !in->broken) /* words of a trace alone, as a tokenizer's "ph" */
        return bz_foreign_fail(in->path, "[]", r.events_depth && !r.outside ? 2 : 0, err);
    return 0;
}

const bz_reader bz_reader_chrome = {"Chrome trace", false, chrome_matches, chrome_read};
