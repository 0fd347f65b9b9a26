/* oneDNN's verbose log: comma separated lines whose fields a template line names, because they differ
 * from version to version:
 *
 *     onednn_verbose,info,prim_template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time
 *     onednn_verbose,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 …,,alg:convolution_direct,mb1_ic3oc64…,0.123
 *
 * Lines of MKL that stand between these are calls as well: PyTorch multiplies by that.
 *
 * Dialects: mkldnn_verbose (0.x without an engine, 1.0), dnnl_verbose (1.x, 2.0; without attributes to 1.1), onednn_verbose,
 * onednn_verbose,v1,primitive,exec,… (3.3 and later), each with or without a time stamp in ms. What other programs print in between,
 * or in front of a line, is left out: tags of mpirun, dates of containers, progress bars. */
#include "profile/mkl_log.h"
#include "profile/reader.h"

#include <stdio.h>
#include <string.h>

typedef enum {
    C_TIMESTAMP,
    C_OPERATION,
    C_ENGINE,
    C_PRIMITIVE,
    C_IMPLEMENTATION,
    C_PROP,
    C_MEMORY,
    C_ATTRIBUTES,
    C_AUXILIARY,
    C_PROBLEM,
    C_TIME,
    C_OTHER
} column;
static const struct {
    const char *name;
    column column;
} COLUMNS[] = {
    {"timestamp", C_TIMESTAMP},
    {"operation", C_OPERATION},
    {"engine", C_ENGINE},
    {"primitive", C_PRIMITIVE},
    {"implementation", C_IMPLEMENTATION},
    {"prop_kind", C_PROP},
    {"memory_descriptors", C_MEMORY},
    {"attributes", C_ATTRIBUTES},
    {"auxiliary", C_AUXILIARY},
    {"problem_desc", C_PROBLEM},
    {"exec_time", C_TIME},
    {"perf_time", C_TIME},
    {"time", C_TIME},
};
enum { FIELDS_MAX = 24 };

typedef struct {
    const char *s;
    size_t n;
} text;

typedef struct {
    bz_trace *t;
    uint32_t source;
    column order[FIELDS_MAX]; /* by the template */
    int n_columns;
    bool templated, stamped;
    int64_t clock; /* where the next call starts, while there are no time stamps */
    int64_t executions, bad, on_gpu;
    int64_t products;                    /* of MKL, and its other calls */
    int64_t partitions, partitions_took; /* of oneDNN Graph */
} reader;

static const char STAMPED_TEMPLATE[] = "timestamp,operation,engine,primitive,implementation,prop_kind,"
                                       "memory_descriptors,attributes,auxiliary,problem_desc,exec_time";
static const char *const DEFAULT_TEMPLATE = STAMPED_TEMPLATE + sizeof "timestamp";

static int split(const char *s, size_t n, text *field)
{
    int k = 0;
    while (k < FIELDS_MAX) {
        const char *comma = k == FIELDS_MAX - 1 ? NULL : memchr(s, ',', n);
        field[k].s = s;
        field[k++].n = comma ? (size_t)(comma - s) : n;
        if (!comma)
            break;
        n -= (size_t)(comma - s) + 1;
        s = comma + 1;
    }
    return k;
}

static bool is(text f, const char *name)
{
    return f.n == strlen(name) && !memcmp(f.s, name, f.n);
}

static bool starts(text f, const char *name)
{
    return f.n >= strlen(name) && !memcmp(f.s, name, strlen(name));
}

static void read_template(reader *r, const char *s, size_t n)
{
    text field[FIELDS_MAX];
    int k = split(s, n, field);
    r->n_columns = 0;
    r->stamped = false;
    for (int i = 0; i < k; i++) {
        column c = C_OTHER;
        for (size_t j = 0; j < sizeof COLUMNS / sizeof *COLUMNS; j++)
            if (is(field[i], COLUMNS[j].name))
                c = COLUMNS[j].column;
        r->stamped |= c == C_TIMESTAMP;
        r->order[r->n_columns++] = c;
    }
}

/* "info,…": template and versions. */
static void info(reader *r, const char *line, size_t n)
{
    const char *end = line + n, *template = memmem(line, n, "template:", 9);
    if (template) {
        if (!memmem(line, n, "graph", 5) || memmem(line, n, "prim", 4))
            read_template(r, template + 9, (size_t)(end - template) - 9);
        r->templated |= r->n_columns > 0;
        return;
    }
    static const struct {
        const char *mark, *fact;
    } FACTS[] = {
        {"oneDNN v", "onednn"}, {"DNNL v", "onednn"}, {"MKL-DNN v", "onednn"}, {"isa:", "isa"}, {"nthr:", "threads"}};
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        const char *p = memmem(line, n, FACTS[i].mark, strlen(FACTS[i].mark));
        if (!p)
            continue;
        p += strlen(FACTS[i].mark);
        char value[96];
        size_t length = (size_t)(end - p), room = sizeof value - 1;
        const char *stop = i < 3 ? memchr(p, ' ', length) : memchr(p, ',', length);
        length = stop ? (size_t)(stop - p) : length;
        snprintf(value, sizeof value, "%.*s", (int)(length < room ? length : room), p);
        bz_trace_fact(r->t, FACTS[i].fact, value);
    }
}

/* "diff_src_f32::blocked…", from 3.6 on "diff_src:f32::blocked…": how long the name is. What stands behind the first
 * colon tells: marks of layouts, or the type. */
static size_t name_of(const char *s, size_t n)
{
    size_t colon = 0, bar = n;
    while (colon < n && s[colon] != ':')
        colon++;
    if (colon + 1 < n && !strchr(":apo0", s[colon + 1]))
        return colon;
    for (size_t i = 0; i < colon; i++) /* "f8_e5m2" is one type */
        if (s[i] == '_' && !(i + 2 < colon && s[i + 1] == 'e' && s[i + 2] >= '0' && s[i + 2] <= '9'))
            bar = i;
    return bar < colon ? bar : colon;
}

/* detail: the parameters as name=value, where oneDNN's own spelling is kept. */
static uint32_t detail_of(bz_trace *t, const text *by)
{
    static const struct {
        column column;
        const char *name;
    } PARTS[] = {{C_ENGINE, "engine"},   {C_PROP, "prop"},     {C_MEMORY, NULL},
                 {C_ATTRIBUTES, "attr"}, {C_AUXILIARY, "aux"}, {C_PROBLEM, "problem"}};
    BZ_SCOPED(bz_buf) b = {0};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        text f = by[PARTS[i].column];
        while (f.n && f.s[f.n - 1] == ' ')
            f.n--;
        if (!f.n)
            continue;
        if (PARTS[i].name) {
            bz_buf_printf(&b, "%s%s=", b.len ? " " : "", PARTS[i].name);
            for (size_t k = 0; k < f.n; k++)
                bz_buf_putc(&b, f.s[k] == ' ' ? ';' : f.s[k]);
            continue;
        }
        /* "src_f32::blocked:abcd:f0 wei_…": every descriptor becomes a parameter, src=f32::blocked:abcd:f0 */
        for (size_t k = 0; k < f.n;) {
            size_t m = 0;
            while (k + m < f.n && f.s[k + m] != ' ')
                m++;
            size_t name = name_of(f.s + k, m);
            if (m) {
                bz_buf_printf(&b, "%s%.*s=", b.len ? " " : "", (int)name, f.s + k);
                bz_buf_put(&b, f.s + k + name + (name < m), m - name - (name < m));
            }
            k += m + 1;
        }
    }
    return bz_trace_intern(t, bz_buf_text(&b), b.len);
}

/* Fields by their columns. Where no template came, the engine or the attributes may be missing: then the line is that much shorter. */
static void sort_fields(const reader *r, const text *field, int k, text by[C_OTHER + 1])
{
    const text *behind = &field[1 + r->stamped];
    bool engine = k > 1 + r->stamped && (starts(*behind, "cpu") || starts(*behind, "gpu") || is(*behind, "any"));
    for (int i = 0, c = 0; i < k && c < r->n_columns; c++)
        if (r->templated ||
            !((r->order[c] == C_ENGINE && !engine) || (r->order[c] == C_ATTRIBUTES && k < r->n_columns - !engine)))
            by[r->order[c]] = field[i++];
}

static bool is_number(text f)
{
    while (f.n && (f.s[f.n - 1] == ' ' || f.s[f.n - 1] == '\r'))
        f.n--;
    for (size_t i = 0; i < f.n; i++)
        if (!strchr("0123456789.e-+", f.s[i]) || !f.s[i])
            return false;
    return f.n && f.s[0] >= '0' && f.s[0] <= '9';
}

static void record(reader *r, const text *field, int k)
{
    text by[C_OTHER + 1] = {0};
    sort_fields(r, field, k, by);
    /* "create:cache_hit" takes time; "create:dispatch", "create:check" and the like say why something does not */
    bool creates = is(by[C_OPERATION], "create") ||
                   (starts(by[C_OPERATION], "create:") && memmem(by[C_OPERATION].s, by[C_OPERATION].n, "cache", 5));
    bool executes = is(by[C_OPERATION], "exec");
    if (!executes && !creates)
        return;
    if (!is_number(by[C_TIME]) || !by[C_PRIMITIVE].n) {
        r->bad++;
        return;
    }
    int64_t took = bz_text_nanoseconds(by[C_TIME].s, by[C_TIME].n, 1000000);
    /* the stamp is taken when the call begins */
    int64_t start = r->stamped ? bz_text_nanoseconds(by[C_TIMESTAMP].s, by[C_TIMESTAMP].n, 1000000) : r->clock;
    int64_t end;
    if (__builtin_add_overflow(start, took, &end)) {
        r->bad++;
        return;
    }
    r->clock = end;
    char name[80];
    snprintf(name, sizeof name, "%s%.*s", creates ? "create " : "",
             (int)(by[C_PRIMITIVE].n < 64 ? by[C_PRIMITIVE].n : 64), by[C_PRIMITIVE].s);
    bz_trace *t = r->t;
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, start, end, bz_trace_text(t, name), bz_trace_thread(t, r->source, 0, 0));
    bz_events *call = &t->event[BZ_EVENT_CALL];
    call->library[i] = BZ_LIBRARY_ONEDNN;
    call->flags[i] = BZ_CALL_LOGGED | (executes ? BZ_CALL_EXECUTES : 0u);
    call->variant[i] = bz_trace_intern(t, by[C_IMPLEMENTATION].s ? by[C_IMPLEMENTATION].s : "", by[C_IMPLEMENTATION].n);
    call->detail[i] = detail_of(t, by);
    r->executions += executes;
    r->on_gpu += executes && starts(by[C_ENGINE], "gpu");
}

/* Behind "onednn_verbose," */
static void read_fields(reader *r, const char *line, size_t n)
{
    text field[FIELDS_MAX], stamp = {0};
    int k = split(line, n, field), at = 0;
    if (k > 1 && is(field[0], "v1"))
        at = 1;
    /* the template has the time stamp in front of the operation, the lines in front of what stands before it */
    if (k > at + 2 && is_number(field[at]))
        stamp = field[at++];
    if (stamp.n && !r->templated && !r->stamped) /* the front of the log is missing */
        read_template(r, STAMPED_TEMPLATE, sizeof STAMPED_TEMPLATE - 1);
    if (k > at + 1 && (is(field[at], "graph") || is(field[at], "common") || is(field[at], "ukernel"))) {
        if (is(field[at + 1], "info"))
            info(r, line, n);
        if (is(field[at], "graph") && is(field[at + 1], "exec") && is_number(field[k - 1])) {
            r->partitions++;
            r->partitions_took += bz_text_nanoseconds(field[k - 1].s, field[k - 1].n, 1000000) / 1000;
        }
        return;
    }
    at += k > at + 1 && is(field[at], "primitive");
    if (k > at && is(field[at], "info")) {
        info(r, line, n);
    } else if (k > at) {
        if (stamp.n && r->stamped)
            field[--at] = stamp;
        record(r, field + at, k - at);
    }
}

static const char MARK[] = "_verbose,";
enum { MARK_LENGTH = sizeof MARK - 1 };

/* What stands behind the next mark; NULL: there is none. */
static const char *behind_mark(const char *s, const char *end)
{
    for (const char *from = s; (s = memmem(s, (size_t)(end - s), MARK, MARK_LENGTH)); s += MARK_LENGTH)
        if (s - from >= 4 && (!memcmp(s - 3, "dnn", 3) || !memcmp(s - 4, "dnnl", 4)))
            return s + MARK_LENGTH;
    return NULL;
}

/* Threads and processes that write at once may break into each other's lines: what stands before another mark has lost its end. */
static void line_read(reader *r, const char *line, size_t n)
{
    const char *end = line + n, *at = behind_mark(line, end), *next = NULL;
    for (; at && (next = behind_mark(at, end)); at = next)
        r->bad++;
    if (at)
        read_fields(r, at, (size_t)(end - at));
    else
        r->products += bz_mkl_read(r->t, r->source, &r->clock, line, n);
}

static bool onednn_matches(const char *head, size_t n)
{
    return behind_mark(head, head + n) != NULL || bz_mkl_has(head, n);
}

static int onednn_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    reader r = {.t = t, .source = source};
    read_template(&r, DEFAULT_TEMPLATE, strlen(DEFAULT_TEMPLATE));
    const char *line;
    size_t n;
    while (bz_stream_line(in, &line, &n))
        line_read(&r, line, n);
    if (r.products && !r.executions)
        bz_trace_source_format(t, source, "MKL log");
    if (r.products)
        bz_trace_lack(t, source, BZ_COVERAGE_MISSING, BZ_LACKS_STAMPS,
                      "MKL's lines have no time stamps: its calls stand back to back, gaps are unknown");
    if (!r.stamped && r.executions)
        bz_trace_lack(t, source, BZ_COVERAGE_MISSING, BZ_LACKS_STAMPS,
                      "the log has no time stamps: calls stand back to back, gaps are unknown; set "
                      "ONEDNN_VERBOSE_TIMESTAMP=1 for them");
    if (r.on_gpu)
        bz_trace_cover(
            t, source, BZ_COVERAGE_NOTE,
            "%lld calls ran on a GPU: they are no layers that are priced, as the library's calls are measured "
            "on processors",
            (long long)r.on_gpu);
    if (r.partitions)
        bz_trace_cover(
            t, source, BZ_COVERAGE_MISSING,
            "%lld executions of oneDNN Graph's partitions (%.3f ms) are no calls of primitives and were left "
            "out: those that they make are logged by themselves",
            (long long)r.partitions, (double)r.partitions_took / 1e3);
    bz_trace_cover(t, source, BZ_COVERAGE_NOTE, "threads are not logged: all calls appear on one");
    if (r.bad)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%lld line%s cut off, or broken into by others, and left out",
                       (long long)r.bad, r.bad == 1 ? " was" : "s were");
    (void)err;
    return 0;
}

const bz_reader bz_reader_onednn = {"oneDNN log", true, onednn_matches, onednn_read};
