/* cuBLAS's API log (and cuBLASLt's, of the same form):
 *
 *     I! cuBLAS (v10.1) function cublasStatus_t cublasSgemm_v2(cublasContext*, cublasOperation_t, …) called:
 *     i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)
 *     i!  A: type=float; val=POINTER (IN HEX:0x0x7ffed8000000)
 *     i! Time: 2019-09-29T02:38:51 elapsed from start 0.216667 minutes or 13.000000 seconds
 *     i!Process=8655; Thread=139715869128448; GPU=0; Handle=POINTER (IN HEX:0x(nil))
 *     i! COMPILED WITH: GNU GCC/G++ / 4.1.2 20080704 (Red Hat 4.1.2-48)
 *
 * The trap: threads write line by line, so blocks of several threads are mixed, and only the last
 * lines name the thread. Each block knows from its head how many parameters come and of what type, and
 * lines of one block stay in order; so a line goes to the oldest open block whose next parameter it
 * can be. cuBLASLt's newer log has one line per message: "[time][cublasLt][pid][Api][cublasLtMatmul] A=…". */
#include "profile/reader.h"

#include <stdio.h>
#include <string.h>

enum { OPEN_MAX = 64, TYPES_MAX = 40 };

typedef struct {
    uint32_t function;
    int wanted, got;
    uint32_t type[TYPES_MAX]; /* strings, without const and asterisk */
    bool timed;
    int64_t time;
    char handle[40];
    bz_buf detail, operands;
} block;

typedef struct {
    bz_trace *t;
    uint32_t source;
    block open[OPEN_MAX]; /* oldest first */
    int n_open;
    bool in_kernel;    /* inside of the lines about a kernel, which end like a call */
    size_t first_call; /* rows before it are not of this file */
    int64_t calls, mixed, lost, last;
} reader;

/* "const float*" -> "float": the lines leave the rest out. */
static uint32_t plain_type(bz_trace *t, const char *s, size_t n)
{
    while (n && *s == ' ') {
        s++;
        n--;
    }
    if (n > 6 && !memcmp(s, "const ", 6)) {
        s += 6;
        n -= 6;
    }
    while (n && (s[n - 1] == '*' || s[n - 1] == ' '))
        n--;
    return bz_trace_intern(t, s, n);
}

/* "I! Kernel: NAME was called", then its grid, Time and Process: what the call before, of the same thread, launched. */
static void kernel(reader *r, const char *line, size_t n)
{
    bz_events *call = &r->t->event[BZ_EVENT_CALL];
    const char *end = memchr(line, ' ', n);
    r->in_kernel = true;
    size_t low = call->n > 64 ? call->n - 64 : 0;
    low = low > r->first_call ? low : r->first_call;
    for (size_t i = call->n; i-- > low;)
        if (call->flags[i] & BZ_CALL_EXECUTES) {
            call->variant[i] = bz_trace_intern(r->t, line, end ? (size_t)(end - line) : n);
            return;
        }
}

static void head(reader *r, const char *line, size_t n)
{
    static const char KERNEL[] = "I! Kernel: ";
    r->in_kernel = false;
    if (n > sizeof KERNEL && !memcmp(line, KERNEL, sizeof KERNEL - 1)) {
        kernel(r, line + sizeof KERNEL - 1, n - sizeof KERNEL + 1);
        return;
    }
    const char *open = memmem(line, n, "function ", 9);
    if (!open || r->n_open == OPEN_MAX) {
        r->lost++;
        return;
    }
    open += 9;
    const char *end = line + n, *paren = memchr(open, '(', (size_t)(end - open));
    if (!paren)
        return;
    const char *name = paren;
    while (name > open && name[-1] != ' ')
        name--;
    if (!r->calls) {
        const char *v = memmem(line, n, "(v", 2), *c = v ? memchr(v, ')', (size_t)(end - v)) : NULL;
        char text[32];
        if (c && c - v < 30) {
            snprintf(text, sizeof text, "%.*s", (int)(c - v - 2), v + 2);
            bz_trace_fact(r->t, "cublas", text);
        }
    }
    block *b = &r->open[r->n_open++];
    bz_buf detail = b->detail, operands = b->operands;
    *b = (block){
        .function = bz_trace_intern(r->t, name, (size_t)(paren - name)), .detail = detail, .operands = operands};
    bz_buf_clear(&b->detail);
    bz_buf_clear(&b->operands);
    const char *p = paren + 1;
    while (p < end && *p != ')') {
        size_t len = 0, left = (size_t)(end - p);
        while (len < left && p[len] != ',' && p[len] != ')')
            len++;
        if (b->wanted < TYPES_MAX)
            b->type[b->wanted++] = plain_type(r->t, p, len);
        p += len;
        if (p < end && *p == ',')
            p++;
    }
    if (r->n_open > 1)
        r->mixed++;
}

/* Could this line be the next parameter of the block? The logger names some types only vaguely. */
static bool fits(const reader *r, const block *b, const char *name, size_t name_n, const char *type, size_t type_n)
{
    if (b->got >= b->wanted)
        return false;
    if (!b->got != (name_n == 6 && !memcmp(name, "handle", 6)))
        return false;
    const char *want = bz_string(r->t, b->type[b->got]);
    size_t n = strlen(want);
    return (type_n == n && !memcmp(type, want, n)) || (type_n == 9 && !memcmp(type, "SOME TYPE", 9)) || !b->got;
}

static void put(bz_buf *b, const char *name, size_t name_n, const char *value, size_t n)
{
    if (b->len)
        bz_buf_putc(b, ' ');
    bz_buf_put(b, name, name_n);
    bz_buf_putc(b, '=');
    for (size_t i = 0; i < n; i++)
        bz_buf_putc(b, value[i] == ' ' ? '_' : value[i]);
}

static void parameter(reader *r, const char *line, size_t n)
{
    const char *end = line + n, *name = line;
    while (name < end && *name == ' ')
        name++;
    const char *colon = memmem(name, (size_t)(end - name), ": type=", 7);
    const char *semicolon = colon ? memmem(colon, (size_t)(end - colon), "; val=", 6) : NULL;
    if (!semicolon)
        return;
    const char *type = colon + 7, *value = semicolon + 6;
    size_t name_n = (size_t)(colon - name), type_n = (size_t)(semicolon - type);
    block *b = NULL;
    for (int i = 0; i < r->n_open && !b; i++)
        if (fits(r, &r->open[i], name, name_n, type, type_n))
            b = &r->open[i];
    for (int i = 0; i < r->n_open && !b; i++)
        if (r->open[i].got < r->open[i].wanted)
            b = &r->open[i];
    if (!b) {
        r->lost++;
        return;
    }
    b->got++;
    static const char POINTER[] = "POINTER (IN HEX:0x";
    if ((size_t)(end - value) > sizeof POINTER && !memcmp(value, POINTER, sizeof POINTER - 1)) {
        value += sizeof POINTER - 1;
        end -= end[-1] == ')';
        if (name_n == 6 && !memcmp(name, "handle", 6))
            snprintf(b->handle, sizeof b->handle, "%.*s", (int)(end - value), value);
        put(&b->operands, name, name_n, value, (size_t)(end - value));
        return;
    }
    /* "CUBLAS_OP_N(0)": the name tells it all */
    const char *paren = value < end && *value >= 'A' ? memchr(value, '(', (size_t)(end - value)) : NULL;
    put(&b->detail, name, name_n, value, (size_t)((paren ? paren : end) - value));
}

static void timed(reader *r, const char *line, size_t n)
{
    block *b = NULL;
    if (r->in_kernel)
        return;
    for (int i = 0; i < r->n_open && !b; i++)
        if (!r->open[i].timed && r->open[i].got >= r->open[i].wanted)
            b = &r->open[i];
    for (int i = 0; i < r->n_open && !b; i++)
        if (!r->open[i].timed)
            b = &r->open[i];
    if (!b)
        return;
    b->timed = true;
    const char *seconds = memmem(line, n, "minutes or ", 11);
    b->time = bz_text_date(line, n);
    (void)seconds; /* as coarse as the date */
}

static void add(reader *r, const block *b, int64_t process, int64_t thread, const char *math)
{
    bz_trace *t = r->t;
    const char *function = bz_string(t, b->function);
    int64_t time = bz_time_behind(&r->last, b->time);
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, time, time, b->function, bz_trace_thread(t, r->source, process, thread));
    bz_events *call = &t->event[BZ_EVENT_CALL];
    call->library[i] = bz_library_of(function);
    call->flags[i] = BZ_CALL_LOGGED | BZ_CALL_UNTIMED | (bz_call_executes(function) ? BZ_CALL_EXECUTES : 0u);
    call->detail[i] = bz_trace_intern(t, bz_buf_text(&b->detail), b->detail.len);
    call->operands[i] = bz_trace_intern(t, bz_buf_text(&b->operands), b->operands.len);
    call->variant[i] = bz_trace_text(t, math);
    r->calls++;
}

static void finish(reader *r, const char *line, size_t n)
{
    if (r->in_kernel) {
        r->in_kernel = false;
        return;
    }
    const char *end = line + n, *process = memmem(line, n, "Process=", 8), *thread = memmem(line, n, "Thread=", 7);
    if (!process || !thread)
        return;
    /* the handle tells blocks of different threads apart; without one, the oldest that has its time */
    const char *handle = memmem(line, n, "Handle=POINTER (IN HEX:0x", 25);
    int at = -1, oldest = -1;
    for (int i = r->n_open; i-- > 0;) {
        const block *b = &r->open[i];
        size_t h = strlen(b->handle);
        if (b->timed)
            oldest = i;
        if (b->got >= b->wanted && handle && h && (size_t)(end - handle) > 25 + h && !memcmp(handle + 25, b->handle, h))
            at = i;
    }
    at = at < 0 ? oldest : at;
    if (at < 0) {
        r->lost++;
        return;
    }
    if (!r->open[at].timed && oldest >= 0) { /* its time went to another one */
        r->open[at].time = r->open[oldest].time;
        r->open[oldest].timed = false;
    }
    char math[48] = "";
    const char *m = memmem(line, n, "MathMode=", 9);
    if (m) {
        size_t length = 0, left = (size_t)(end - m) - 9;
        while (length < left && length < sizeof math - 1 && m[9 + length] != ';' && m[9 + length] != ' ')
            length++;
        snprintf(math, sizeof math, "%.*s", (int)length, m + 9);
    }
    block b = r->open[at];
    add(r, &b, bz_text_int(process + 8, (size_t)(end - process) - 8),
        bz_text_int(thread + 7, (size_t)(end - thread) - 7), math);
    memmove(r->open + at, r->open + at + 1, (size_t)(r->n_open - at - 1) * sizeof b);
    r->open[--r->n_open] = b; /* keeps its buffers for the next block */
}

/* "[2024-05-01 10:00:00][cublasLt][4711][Api][cublasLtMatmul] A=0X7F…, Adesc=[type=R_16F rows=64 …] …": one message, whole. */
static void one_line(reader *r, const char *line, size_t n)
{
    const char *end = line + n, *fields[5] = {0};
    size_t lengths[5] = {0};
    const char *p = line;
    for (int i = 0; i < 5; i++) {
        const char *close = p < end && *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
        if (!close)
            return;
        fields[i] = p + 1;
        lengths[i] = (size_t)(close - p) - 1;
        p = close + 1;
    }
    if (lengths[3] != 3 || memcmp(fields[3], "Api", 3) != 0)
        return;
    block b = {.function = bz_trace_intern(r->t, fields[4], lengths[4])};
    char date[32];
    snprintf(date, sizeof date, "%.*s", (int)(lengths[0] < 30 ? lengths[0] : 30), fields[0]);
    b.time = bz_text_date(date, strlen(date));
    while (p < end) { /* NAME=VALUE, where a value may be a list in brackets */
        while (p < end && (*p == ' ' || *p == ','))
            p++;
        const char *equals = memchr(p, '=', (size_t)(end - p));
        if (!equals)
            break;
        const char *q = equals + 1;
        for (int depth = 0; q < end && (depth || *q != ' '); q++)
            depth += *q == '[' ? 1 : *q == ']' ? -1 : 0;
        bool address = q - equals > 3 && equals[1] == '0' && (equals[2] == 'x' || equals[2] == 'X');
        put(address ? &b.operands : &b.detail, p, (size_t)(equals - p), equals + 1, (size_t)(q - equals) - 1);
        p = q;
    }
    int64_t process = bz_text_int(fields[2], lengths[2]);
    add(r, &b, process, process, "");
    bz_buf_free(&b.detail);
    bz_buf_free(&b.operands);
}

static bool cublas_matches(const char *text, size_t n)
{
    return bz_text_has(text, n, "I! cuBLAS") || bz_text_has(text, n, "I! cublasLt") ||
           bz_text_has(text, n, "][cublasLt][");
}

static int cublas_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    BZ_FREED reader *r = bz_alloc(1, sizeof *r);
    *r = (reader){.t = t, .source = source, .first_call = t->event[BZ_EVENT_CALL].n};
    const char *line;
    size_t n;
    while (bz_log_line(in, &line, &n)) {
        if (n > 2 && !memcmp(line, "I!", 2))
            head(r, line, n);
        else if (n > 9 && !memcmp(line, "i! Time: ", 9))
            timed(r, line + 9, n - 9);
        else if (n > 10 && !memcmp(line, "i!Process=", 10))
            finish(r, line, n);
        else if (n > 3 && !memcmp(line, "i!  ", 4))
            parameter(r, line + 3, n - 3);
        else if (n > 3 && line[0] == '[')
            one_line(r, line, n);
    }
    if (r->n_open) {
        t->source[source].truncated = true;
        bz_trace_cover(
            t, source, BZ_COVERAGE_BROKEN,
            "%d calls at the end of the log are not complete: it was cut off; the %lld calls before were read",
            r->n_open, (long long)r->calls);
    }
    if (r->mixed)
        bz_trace_cover(
            t, source, BZ_COVERAGE_NOTE,
            "lines of several threads are mixed in %lld calls; they were sorted by parameter order and handle",
            (long long)r->mixed);
    if (r->lost)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%lld lines belong to no call and were left out",
                       (long long)r->lost);
    for (int i = 0; i < OPEN_MAX; i++) {
        bz_buf_free(&r->open[i].detail);
        bz_buf_free(&r->open[i].operands);
    }
    (void)err;
    return 0;
}

const bz_reader bz_reader_cublas = {"cuBLAS log", true, cublas_matches, cublas_read};
