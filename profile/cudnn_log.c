/* cuDNN's API log, versions 7 to 9. A call is a block of lines:
 *
 *     I! CuDNN (v7603) function cudnnConvolutionForward() called:
 *     i!     xDesc: type=cudnnTensorDescriptor_t:
 *     i!         dimA: type=int; val=[1,3,230,230];
 *     i!     xData: location=dev; addr=0x7f753ec00000;
 *     i! Time: 2019-09-29T01:25:41.125542 (0d+0h+0m+16s since start)
 *     i! Process=24402; Thread=24489; GPU=0; Handle=0x7f74d07e8900; StreamId=0x7f74f40024d0.
 *
 * which becomes one call with detail "xDesc.dimA=[1,3,230,230]" and operands "xData=0x7f753ec00000".
 * Traps: setters log a second call from inside; from version 8 on some functions log a second block on
 * return that holds their status; W! and E! blocks are messages, not calls. */
#include "profile/reader.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 8, LONGEST_PATH = 256 };

/* What a second block on return consists of, besides nothing else. */
static const char *const RETURNED[] = {"status", "compute_capability_major", "compute_capability_minor"};

typedef struct {
    bz_trace *t;
    uint32_t source;
    bool open, message;
    uint32_t function;
    int parameters, returned; /* how many lines; how many of them only a return has */
    bz_buf detail, operands;
    char path[LONGEST_PATH];  /* "convDesc." while inside of a descriptor */
    size_t path_end[DEEPEST]; /* length of path per depth */
    uint32_t variant;
    bool failed;
    int64_t time, last;
    int64_t calls, executions, messages, cut, no_thread;
} reader;

static void block_begin(reader *r, bool message, const char *name, size_t n)
{
    if (r->open)
        r->cut++;
    r->open = true;
    r->message = message;
    r->function = bz_trace_intern(r->t, name, n);
    r->parameters = r->returned = 0;
    r->variant = 0;
    r->failed = false;
    r->time = 0;
    r->path_end[0] = 0;
    bz_buf_clear(&r->detail);
    bz_buf_clear(&r->operands);
}

static void block_end(reader *r, const char *line, size_t n)
{
    r->open = false;
    if (r->message) {
        r->messages++;
        return;
    }
    const char *process = memmem(line, n, "Process=", 8), *thread = memmem(line, n, "Thread=", 7), *end = line + n;
    if (!process || !thread) {
        r->no_thread++;
        return;
    }
    bz_trace *t = r->t;
    bz_events *call = &t->event[BZ_EVENT_CALL];
    uint32_t lane = bz_trace_thread(t, r->source, bz_text_int(process + 8, (size_t)(end - process) - 8),
                                    bz_text_int(thread + 7, (size_t)(end - thread) - 7));
    if (r->parameters && r->parameters == r->returned) {
        /* the return of a call that was logged when it began */
        size_t low = call->n > 64 ? call->n - 64 : 0;
        for (size_t i = call->n; r->failed && i-- > low;)
            if (call->name[i] == r->function && call->lane[i] == lane) {
                call->flags[i] |= BZ_CALL_FAILED;
                break;
            }
        return;
    }
    int64_t time = bz_time_behind(&r->last, r->time);
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, time, time, r->function, lane);
    const char *function = bz_string(t, r->function);
    bool executes = bz_call_executes(function);
    call->library[i] = BZ_LIBRARY_CUDNN;
    call->flags[i] =
        BZ_CALL_LOGGED | BZ_CALL_UNTIMED | (executes ? BZ_CALL_EXECUTES : 0u) | (r->failed ? BZ_CALL_FAILED : 0u);
    call->detail[i] = bz_trace_intern(t, bz_buf_text(&r->detail), r->detail.len);
    call->operands[i] = bz_trace_intern(t, bz_buf_text(&r->operands), r->operands.len);
    call->variant[i] = r->variant;
    r->calls++;
    r->executions += executes;
}

static void put(bz_buf *b, const char *path, size_t path_n, const char *name, size_t name_n, const char *value,
                size_t n)
{
    char *p = bz_buf_extend(b, (b->len > 0) + path_n + name_n + 1 + n);
    if (p != b->data)
        *p++ = ' ';
    memcpy(p, path, path_n);
    p += path_n;
    memcpy(p, name, name_n);
    p += name_n;
    *p++ = '=';
    for (size_t i = 0; i < n; i++) /* a parameter ends at the next space */
        p[i] = value[i] == ' ' ? '_' : value[i];
}

/* "    name: type=T; val=V;", "    name: location=dev; addr=A;" or "    name: type=T:" with deeper lines to
 * follow. `line` starts behind "i!". */
static void parameter(reader *r, const char *line, size_t n)
{
    size_t indent = 0;
    while (indent < n && line[indent] == ' ')
        indent++;
    const char *name = line + indent, *end = line + n;
    const char *colon = memchr(name, ':', n - indent);
    if (!colon || indent < 5)
        return;
    size_t depth = (indent - 5) / 4, name_n = (size_t)(colon - name);
    if (depth >= DEEPEST)
        return;
    while (end > colon && (end[-1] == ';' || end[-1] == ' '))
        end--;
    size_t path_n = r->path_end[depth];
    r->parameters++;
    if (end[-1] == ':') {
        if (depth + 1 < DEEPEST && path_n + name_n + 1 < LONGEST_PATH) {
            memcpy(r->path + path_n, name, name_n);
            r->path[path_n + name_n] = '.';
            r->path_end[depth + 1] = path_n + name_n + 1;
        }
        if (end - colon > 7 && !memcmp(colon, ": type=CUDNN_BACKEND_", 21 < end - colon ? 21 : 7))
            put(&r->detail, r->path, path_n, name, name_n, colon + 7, (size_t)(end - colon) - 8);
        return;
    }
    if (depth + 1 < DEEPEST)
        r->path_end[depth + 1] = path_n;
    const char *value = memmem(colon, (size_t)(end - colon), "val=", 4), *address = NULL;
    if (value) {
        value += value + 4 <= end ? 4 : end - value;
        /* "CUDNN_DATA_FLOAT (0)": the name tells it all */
        if (value < end && end[-1] == ')' && *value >= 'A') {
            const char *space = memchr(value, ' ', (size_t)(end - value));
            end = space ? space : end;
        }
        put(&r->detail, r->path, path_n, name, name_n, value, (size_t)(end - value));
        if (name_n == 4 && !memcmp(name, "algo", 4) && !path_n)
            r->variant = bz_trace_intern(r->t, value, (size_t)(end - value));
        if (!depth)
            for (size_t i = 0; i < sizeof RETURNED / sizeof *RETURNED; i++)
                if (strlen(RETURNED[i]) == name_n && !memcmp(name, RETURNED[i], name_n)) {
                    r->returned++;
                    r->failed |= i == 0 && !memmem(value, (size_t)(end - value), "SUCCESS", 7);
                }
    } else if ((address = memmem(colon, (size_t)(end - colon), "addr=", 5)) ||
               (address = memmem(colon, (size_t)(end - colon), "streamId=", 9))) {
        address = memchr(address, '=', (size_t)(end - address));
        put(&r->operands, r->path, path_n, name, name_n, address + 1, (size_t)(end - address) - 1);
    }
}

static void version(reader *r, const char *line, size_t n)
{
    const char *open = memchr(line, '(', n), *close = open ? memchr(open, ')', n - (size_t)(open - line)) : NULL;
    char text[32];
    if (!close || close - open < 3 || close - open > 20)
        return;
    long long v = bz_text_int(open + 2, (size_t)(close - open) - 2);
    if (v >= 90000) /* 91900: from version 9 on with two more digits */
        snprintf(text, sizeof text, "%lld.%lld.%lld", v / 10000, v / 100 % 100, v % 100);
    else
        snprintf(text, sizeof text, "%lld.%lld.%lld", v / 1000, v / 100 % 10, v % 100);
    bz_trace_fact(r->t, "cudnn", text);
}

static void line_read(reader *r, const char *line, size_t n)
{
    if (n < 4 || line[1] != '!')
        return;
    char c = line[0];
    if (c == 'I' || c == 'W' || c == 'E') {
        const char *f = memmem(line, n, "function ", 9);
        if (!f)
            return;
        f += 9;
        const char *end = memchr(f, '(', n - (size_t)(f - line));
        if (!end)
            return;
        if (!r->calls && !r->messages)
            version(r, line, n);
        block_begin(r, c != 'I', f, (size_t)(end - f));
    } else if ((c == 'i' || c == 'w' || c == 'e') && r->open) {
        if (n > 9 && !memcmp(line + 2, " Time: ", 7))
            r->time = bz_text_date(line + 9, n - 9);
        else if (n > 11 && !memcmp(line + 2, " Process=", 9))
            block_end(r, line, n);
        else if (!r->message)
            parameter(r, line + 2, n - 2);
    }
}

static bool cudnn_matches(const char *head, size_t n)
{
    return bz_text_has(head, n, "! CuDNN (v") && bz_text_has(head, n, ") function cudnn");
}

static int cudnn_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    reader r = {.t = t, .source = source};
    const char *line;
    size_t n;
    while (bz_log_line(in, &line, &n))
        line_read(&r, line, n);
    if (r.open) {
        t->source[source].truncated = true;
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                       "the log ends in the middle of %s: it was cut off; the %lld calls before were read",
                       bz_string(t, r.function), (long long)r.calls);
    }
    if (r.cut || r.no_thread)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%lld blocks are damaged and were left out",
                       (long long)r.cut + (long long)r.no_thread);
    if (r.messages)
        bz_trace_cover(t, source, BZ_COVERAGE_NOTE, "cuDNN printed %lld warnings or errors among its calls",
                       (long long)r.messages);
    bz_buf_free(&r.detail);
    bz_buf_free(&r.operands);
    (void)err;
    return 0;
}

const bz_reader bz_reader_cudnn = {"cuDNN log", true, cudnn_matches, cudnn_read};
