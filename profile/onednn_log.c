/* oneDNN's verbose log: comma separated lines whose fields a template line names, because they differ
 * from version to version:
 *
 *     onednn_verbose,info,prim_template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time
 *     onednn_verbose,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 …,,alg:convolution_direct,mb1_ic3oc64…,0.123
 *
 * Dialects: dnnl_verbose (1.x, 2.0), onednn_verbose, onednn_verbose,v1,primitive,exec,… (3.3 and later), each
 * with or without a time stamp in ms. Other programs' lines in between are left out. */
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
    bool stamped;
    int64_t clock; /* where the next call starts, while there are no time stamps */
    int64_t executions, bad;
} reader;

static const char DEFAULT_TEMPLATE[] = "operation,engine,primitive,implementation,prop_kind,memory_descriptors,"
                                       "attributes,auxiliary,problem_desc,exec_time";

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
        return;
    }
    static const struct {
        const char *mark, *fact;
    } FACTS[] = {{"oneDNN v", "onednn"}, {"DNNL v", "onednn"}, {"isa:", "isa"}, {"nthr:", "threads"}};
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        const char *p = memmem(line, n, FACTS[i].mark, strlen(FACTS[i].mark));
        if (!p)
            continue;
        p += strlen(FACTS[i].mark);
        char value[96];
        size_t length = (size_t)(end - p), room = sizeof value - 1;
        const char *stop = i < 2 ? memchr(p, ' ', length) : memchr(p, ',', length);
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
    bz_buf b = {0};
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
    uint32_t id = bz_trace_intern(t, bz_buf_text(&b), b.len);
    bz_buf_free(&b);
    return id;
}

static void record(reader *r, const text *field, int k)
{
    text by[C_OTHER + 1] = {0};
    for (int i = 0; i < k && i < r->n_columns; i++)
        by[r->order[i]] = field[i];
    /* "create:cache_hit" takes time; "create:dispatch", "create:check" and the like say why something does not */
    bool creates = is(by[C_OPERATION], "create") ||
                   (starts(by[C_OPERATION], "create:") && memmem(by[C_OPERATION].s, by[C_OPERATION].n, "cache", 5));
    bool executes = is(by[C_OPERATION], "exec");
    if (!executes && !creates)
        return;
    if (k < r->n_columns || !by[C_TIME].n || !by[C_PRIMITIVE].n) {
        r->bad++;
        return;
    }
    int64_t took = bz_text_nanoseconds(by[C_TIME].s, by[C_TIME].n, 1000000);
    if (took < 0)
        took = 0;
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
}

static void line_read(reader *r, const char *line, size_t n)
{
    size_t prefix = n > 15 && !memcmp(line, "onednn_verbose,", 15) ? 15
                    : n > 13 && !memcmp(line, "dnnl_verbose,", 13) ? 13
                                                                   : 0;
    if (!prefix && n > 14 && !memcmp(line, "mkldnn_verbose", 14))
        prefix = 15;
    if (!prefix || prefix > n)
        return;
    line += prefix;
    n -= prefix;
    text field[FIELDS_MAX], stamp = {0};
    int k = split(line, n, field), at = 0;
    if (k > 1 && is(field[0], "v1"))
        at = 1;
    /* the template has the time stamp in front of the operation, the lines in front of what stands before it */
    if (k > at + 2 && field[at].n && field[at].s[0] >= '0' && field[at].s[0] <= '9')
        stamp = field[at++];
    if (k > at + 1 && (is(field[at], "graph") || is(field[at], "common") || is(field[at], "ukernel"))) {
        if (is(field[at + 1], "info"))
            info(r, line, n);
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

static bool onednn_matches(const char *head, size_t n)
{
    return bz_text_has(head, n, "onednn_verbose,") || bz_text_has(head, n, "dnnl_verbose,");
}

static int onednn_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    reader r = {.t = t, .source = source};
    read_template(&r, DEFAULT_TEMPLATE, sizeof DEFAULT_TEMPLATE - 1);
    const char *line;
    size_t n;
    while (bz_stream_line(in, &line, &n))
        line_read(&r, line, n);
    if (!r.stamped && r.executions)
        bz_trace_lack(t, source, BZ_COVERAGE_MISSING, BZ_LACKS_STAMPS,
                      "the log has no time stamps: calls stand back to back, gaps are unknown; set "
                      "ONEDNN_VERBOSE_TIMESTAMP=1 for them");
    bz_trace_cover(t, source, BZ_COVERAGE_NOTE, "threads are not logged: all calls appear on one");
    if (r.bad)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%lld lines are cut off or have too few fields and were left out",
                       (long long)r.bad);
    (void)err;
    return 0;
}

const bz_reader bz_reader_onednn = {"oneDNN log", true, onednn_matches, onednn_read};
