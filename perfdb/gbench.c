/* The original tool's results: Google Benchmark JSON, one benchmark per library call. The name says
 * what was asked for (gbench_name.c), the counters what came of it. What surprises:
 *
 * - Versions and the GPU's name are stored as keys ("cudnn_version:7.6.3": hash), and only in
 *   benchmarks that worked. Host names are left behind.
 * - Times are those of an event pair around each call: no call is faster than some 8 µs. They are
 *   the mean over all iterations; repetitions of one benchmark are the only samples there are.
 * - With CUPTI on, a call of 9 µs takes 2 ms: the times of those benchmarks are left out, and what was counted goes to the record of the
 *   same problem and variant. It is counted for each kernel in each of some calls, with both in the name of the member. */
#include "perfdb/gbench.h"

#include "base/sort.h"
#include "base/yajl_memory.h"

#include "perfdb/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yajl/yajl_parse.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* Systems */

static const struct {
    const char *gpu, *slug;
} GPUS[] = {
    {"Tesla K80", "k80"},
    {"Tesla M60", "m60"},
    {"TITAN Xp", "titan-xp"},
    {"TITAN V", "titan-v"},
    {"Tesla T4", "t4"},
    {"Tesla P4", "p4"},
    {"Quadro RTX 6000", "rtx6000"},
    {"Tesla V100-SXM2-16GB", "v100"},
    {"Tesla P100-PCIE-16GB", "p100"},
};

/* A GPU that is not in the table keeps its name, made fit for a slug. */
static char *gpu_slug(bz_arena *arena, const char *gpu)
{
    for (int i = 0; i < COUNT(GPUS); i++)
        if (!strcmp(GPUS[i].gpu, gpu))
            return bz_arena_str(arena, GPUS[i].slug);
    char *slug = bz_arena_str(arena, gpu);
    for (char *p = slug; *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
        else if (!(*p >= 'a' && *p <= 'z') && !(*p >= '0' && *p <= '9'))
            *p = '-';
    }
    return slug;
}

/* The file: rows gathered first, as only those that worked name the system */

enum { KEY_GPU, KEY_CUDNN, KEY_CAPABILITY, KEY_CUBLAS, KEY_DRIVER, KEY_RUNTIME, N_NAMED };
static const struct {
    const char *prefix, *detail;
} NAMED[N_NAMED] = {
    [KEY_GPU] = {"gpu_name:", "gpu"},
    [KEY_CUDNN] = {"cudnn_version:", "cudnn"},
    [KEY_CAPABILITY] = {"compute_capability:", "compute_capability"},
    [KEY_CUBLAS] = {"cublas_version:", "cublas"},
    [KEY_DRIVER] = {"cuda_driver_version:", "cuda_driver"},
    [KEY_RUNTIME] = {"cuda_runtime_version:", "cuda_runtime"},
};

/* Counters as CUPTI called them then, and as records do; the others keep their names. */
static const struct {
    const char *cupti, *ours;
} COUNTERS[] = {
    {"flop_count_sp", "flops"},       {"flop_count_hp", "flops"},         {"flop_count_dp", "flops"},
    {"dram_read_bytes", "dram_read"}, {"dram_write_bytes", "dram_write"},
};

enum { MOST_COUNTERS = 64 }; /* of a row: CUPTI counts a few at a time */

typedef struct {
    const char *name;
    double sum; /* over all kernels of all calls */
} counter;

typedef struct {
    const char *name, *message, *unit;
    double time, iterations, workspace, algorithm, advised;
    double counted_calls;
    counter *counter;
    size_t n_counters;
    bool error, aggregate, cupti, foreign;
    size_t number;
} row;

static const struct {
    const char *key;
    size_t offset;
} NUMBERS[] = {
    {"real_time", offsetof(row, time)},
    {"iterations", offsetof(row, iterations)},
    {"workspace_bytes", offsetof(row, workspace)},
    {"convolution_algorithm", offsetof(row, algorithm)},
    {"advised_convolution_algorithm", offsetof(row, advised)},
    {"cupti_num_iters", offsetof(row, counted_calls)},
};

typedef enum { PART_NONE, PART_CONTEXT, PART_ROWS } part;

typedef struct {
    bz_arena *arena;
    part part;
    int depth;
    char key[128];
    const char *metric; /* that the member at hand counts; NULL: none */
    row now, *rows;
    size_t n;
    const char *date, *named[N_NAMED];
} file;

static bool key_is(const file *f, const char *key)
{
    return !strcmp(f->key, key);
}

static bool in_row(const file *f)
{
    return f->part == PART_ROWS && f->depth == 3;
}

static void add_count(file *f, double v)
{
    row *w = &f->now;
    size_t i = 0;
    while (i < w->n_counters && strcmp(w->counter[i].name, f->metric) != 0)
        i++;
    if (i == w->n_counters && i == MOST_COUNTERS)
        return;
    if (i == w->n_counters)
        BZ_ARENA_ADD(f->arena, w->counter, w->n_counters) = (counter){f->metric, 0};
    w->counter[i].sum += v;
}

static int on_number(void *ctx, const char *text, size_t len)
{
    file *f = ctx;
    char digits[64];
    if (!in_row(f) || len >= sizeof digits)
        return 1;
    memcpy(digits, text, len);
    digits[len] = 0;
    double v = strtod(digits, NULL);
    for (int i = 0; i < COUNT(NUMBERS); i++)
        if (key_is(f, NUMBERS[i].key))
            *(double *)(void *)((char *)&f->now + NUMBERS[i].offset) = v;
    if (key_is(f, "cupti_enabled"))
        f->now.cupti = v > 0;
    if (f->metric)
        add_count(f, v);
    return 1;
}

static int on_bool(void *ctx, int truth)
{
    file *f = ctx;
    if (in_row(f) && key_is(f, "error_occurred"))
        f->now.error = truth != 0;
    return 1;
}

static int on_string(void *ctx, const unsigned char *bytes, size_t len)
{
    file *f = ctx;
    const char **to = in_row(f) && key_is(f, "name")                                  ? &f->now.name
                      : in_row(f) && key_is(f, "error_message")                       ? &f->now.message
                      : in_row(f) && key_is(f, "time_unit")                           ? &f->now.unit
                      : f->part == PART_CONTEXT && f->depth == 2 && key_is(f, "date") ? &f->date
                                                                                      : NULL;
    if (to)
        *to = bz_arena_strn(f->arena, (const char *)bytes, len);
    if (in_row(f) && key_is(f, "run_type"))
        f->now.aggregate = len == 9 && !memcmp(bytes, "aggregate", 9);
    return 1;
}

/* kernel_metric:void f<4>(float*)/current_iter:0/metric:flops_sp_add; NULL: counts nothing */
static const char *metric_of(file *f, const char *text, size_t len)
{
    static const char BEGIN[] = "kernel_metric:", END[] = "/metric:";
    size_t from = len;
    if (!in_row(f) || len < strlen(BEGIN) || memcmp(text, BEGIN, strlen(BEGIN)) != 0)
        return NULL;
    while (from > 0 && text[from - 1] != ':')
        from--;
    if (from < strlen(END) || memcmp(text + from - strlen(END), END, strlen(END)) != 0 || from == len)
        return NULL;
    for (int i = 0; i < COUNT(COUNTERS); i++)
        if (strlen(COUNTERS[i].cupti) == len - from && !memcmp(COUNTERS[i].cupti, text + from, len - from))
            return COUNTERS[i].ours;
    return bz_arena_strn(f->arena, text + from, len - from);
}

/* Keys that are values: the first of each is the file's, a row with another is from elsewhere. */
static int on_key(void *ctx, const unsigned char *bytes, size_t len)
{
    file *f = ctx;
    const char *text = (const char *)bytes;
    size_t n = len < sizeof f->key ? len : sizeof f->key - 1;
    memcpy(f->key, text, n);
    f->key[n] = 0;
    f->metric = metric_of(f, text, len);
    if (f->depth == 1)
        f->part = key_is(f, "context") ? PART_CONTEXT : key_is(f, "benchmarks") ? PART_ROWS : PART_NONE;
    for (int i = 0; in_row(f) && i < N_NAMED; i++) {
        size_t skip = strlen(NAMED[i].prefix);
        if (len < skip || memcmp(text, NAMED[i].prefix, skip) != 0)
            continue;
        const char *value = bz_arena_strn(f->arena, text + skip, len - skip);
        if (!f->named[i])
            f->named[i] = value;
        else if (strcmp(f->named[i], value) != 0)
            f->now.foreign = true;
    }
    return 1;
}

static int on_open(void *ctx)
{
    file *f = ctx;
    if (++f->depth == 3 && f->part == PART_ROWS)
        f->now = (row){.time = NAN, .workspace = 0, .algorithm = -1, .advised = -2, .number = f->n + 1};
    return 1;
}

static int on_close(void *ctx)
{
    file *f = ctx;
    if (in_row(f))
        BZ_ADD(f->rows, f->n) = f->now;
    f->depth--;
    return 1;
}

static const yajl_callbacks CALLBACKS = {
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close,
    .yajl_start_array = on_open,
    .yajl_end_array = on_close,
};

static int read_rows(file *f, const char *path, bz_stream *source, bz_error *err)
{
    yajl_handle h = yajl_alloc(&CALLBACKS, &bz_yajl_memory, f);
    yajl_status status = yajl_status_ok;
    int rc = 0;
    for (bool more = true; more && !rc && status == yajl_status_ok; bz_stream_advance(source, source->len, 0)) {
        rc = bz_source_peek(source, 1, err);
        more = source->len;
        if (!rc)
            status = more ? yajl_parse(h, (const unsigned char *)source->data, source->len) : yajl_complete_parse(h);
    }
    if (!rc && status != yajl_status_ok) {
        unsigned char *why = yajl_get_error(h, 0, NULL, 0);
        why[strcspn((char *)why, "\n")] = 0;
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: not JSON behind benchmark %zu: %s", path, f->n, (char *)why);
        yajl_free_error(h, why);
    }
    yajl_free(h);
    return rc;
}

/* Records */

static int64_t unix_date(const char *text)
{
    struct tm t = {0};
    if (!text || !strptime(text, "%Y-%m-%d %H:%M:%S", &t))
        return 0;
    time_t seconds = timegm(&t); /* its time zone was not recorded */
    return seconds > 0 ? seconds : 0;
}

static double unit_seconds(const char *unit)
{
    return !unit || !strcmp(unit, "ns") ? 1e-9 : !strcmp(unit, "us") ? 1e-6 : !strcmp(unit, "ms") ? 1e-3 : 1;
}

/* A benchmark and its repetitions */
typedef struct {
    bz_record record;
    double *sample;
    size_t n, number;
} group;

static void add_sample(group *g, const row *w, double seconds, bz_arena *arena)
{
    BZ_ARENA_ADD(arena, g->sample, g->n) = seconds;
    g->record.iterations += (int64_t)fmin(fmax(w->iterations, 0), 1e15);
    g->record.workspace = (int64_t)fmin(fmax(w->workspace, 0), 1e15);
    g->record.chosen = w->algorithm == w->advised;
}

static void finish_group(group *g)
{
    bz_record *r = &g->record;
    if (g->n == 0)
        return;
    bz_sort_numbers(g->sample, g->n);
    r->status = BZ_RECORD_OK;
    r->reason = "";
    r->n = (int64_t)g->n;
    r->median = bz_quantile(g->sample, g->n, 0.5);
    if (g->n == 1) /* a mean over iterations: how they spread is not known */
        return;
    r->min = g->sample[0];
    r->max = g->sample[g->n - 1];
    r->q25 = bz_quantile(g->sample, g->n, 0.25);
    r->q75 = bz_quantile(g->sample, g->n, 0.75);
    r->noisy = r->max - r->min > 0.025 * r->median;
}

static const char *benchmark_meta(bz_arena *arena, const char *name)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_json j = bz_json_to(&text, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "benchmark", bz_arena_strn(arena, name, strcspn(name, "/")));
    bz_json_object_end(&j);
    return bz_arena_strn(arena, text.data, text.len);
}

/* What a row alone says; -1 where nothing can be made of it. */
static int row_record(const row *w, bz_arena *arena, bz_record *r, bz_error *err)
{
    *r = bz_record_blank();
    r->checked = "skipped";
    r->timing = BZ_TIMING_EVENT_PAIR;
    r->provenance = BZ_PROVENANCE_IMPORTED;
    r->setting.threads = 1;
    r->status = BZ_RECORD_FAILED;
    if (!w->name)
        return bz_fail(err, BZ_BAD_INPUT, "a benchmark without a name");
    if (bz_gbench_name(w->name, arena, r, err))
        return -1;
    if (w->foreign)
        return bz_fail(err, BZ_BAD_INPUT, "from another system than the benchmarks before it");
    if (!w->error && !(w->time > 0))
        return bz_fail(err, BZ_BAD_INPUT, "has neither a time nor an error");
    r->reason = w->message && *w->message ? w->message : "failed without a message";
    if (strstr(r->reason, "NOT_SUPPORTED"))
        r->status = BZ_RECORD_UNSUPPORTED;
    r->meta = benchmark_meta(arena, w->name);
    return 0;
}

/* Rows with the same problem and variant become one group, in the order of the file. */
static group *group_rows(bz_import *in, const file *f, size_t *n)
{
    group *groups = BZ_NEW(f->arena, group, f->n);
    BZ_SCOPED(bz_map) map = {0};
    *n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const row *w = &f->rows[i];
        bz_record r;
        bz_error why;
        if (w->aggregate || w->cupti)
            continue;
        in->report->lines++;
        if (row_record(w, f->arena, &r, &why)) {
            bz_import_bad(in, w->number, why.text);
            continue;
        }
        const char *key = bz_arena_printf(f->arena, "%s\n%s\n%s", r.problem, r.variant.algorithm, r.variant.math);
        uint32_t at = bz_map_add(&map, key, strlen(key), (uint32_t)*n);
        if (at == *n)
            groups[(*n)++] = (group){.record = r, .number = w->number};
        if (!w->error)
            add_sample(&groups[at], w, w->time * unit_seconds(w->unit), f->arena);
    }
    return groups;
}

/* NULL: no benchmark worked, and the user names none. */
static const char *system_name(const bz_import *in, const file *f)
{
    const char *cudnn = f->named[KEY_CUDNN];
    if (in->system || !f->named[KEY_GPU])
        return in->system;
    return bz_arena_printf(f->arena, "%s%s%s", gpu_slug(f->arena, f->named[KEY_GPU]), cudnn ? "@cudnn" : "",
                           cudnn ? cudnn : "");
}

static int put_system(bz_import *in, const file *f, int64_t date, const char *name, bz_error *err)
{
    if (!name)
        return bz_fail(
            err, BZ_BAD_INPUT,
            "%s: no benchmark in it worked, so it does not say on which system it ran: name that with --system",
            in->path);
    BZ_SCOPED(bz_buf) details = {0};
    bz_json j = bz_json_to(&details, false);
    bz_json_object(&j);
    for (int i = 0; i < N_NAMED; i++)
        if (f->named[i])
            bz_json_key_str(&j, NAMED[i].detail, f->named[i]);
    bz_json_object_end(&j);
    int rc = bz_perfdb_put_system(in->db, name, details.data, date, err);
    in->report->systems++;
    return rc ? bz_fail_in(err, "%s", in->path) : 0;
}

/* The record's meta with what was counted in one call, the sum over its kernels. */
static const char *counted_meta(bz_arena *arena, const char *meta, const row *w)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_json j = bz_json_to(&text, false);
    bz_json_object(&j);
    bz_json_key_object(&j, "counted");
    for (size_t i = 0; i < w->n_counters; i++)
        bz_json_key_num(&j, w->counter[i].name, w->counter[i].sum / fmax(w->counted_calls, 1));
    bz_json_object_end(&j);
    bz_json_object_end(&j);
    const char *own = bz_arena_strn(arena, text.data, text.len);
    size_t n = strlen(meta);
    return n > 2 ? bz_arena_printf(arena, "%.*s,%s", (int)n - 1, meta, own + 1) : own;
}

/* What a row counted, put to the newest record of the same call, which has a time. */
static int put_counters(bz_import *in, const row *w, const bz_system *system, bz_arena *arena, bz_error *err)
{
    bz_record r, *known = NULL;
    bz_error why;
    in->report->lines++;
    if (row_record(w, arena, &r, &why)) {
        bz_import_bad(in, w->number, why.text);
        return 0;
    }
    if (system && w->n_counters &&
        bz_perfdb_find(in->db, system, r.problem, &r.variant, &r.setting, arena, &known, err))
        return -1;
    if (!known || known->status != BZ_RECORD_OK) {
        in->report->bad++;
        in->report->uncounted++;
        return 0;
    }
    in->report->counted++;
    r = *known;
    if (!bz_record_counts(known, &(bz_counts){0}))
        r.meta = counted_meta(arena, bz_text_or_empty(known->meta), w);
    return bz_import_record(in, w->number, &r, err);
}

static int put_all_counters(bz_import *in, const file *f, const char *name, bz_error *err)
{
    const bz_system *system = NULL;
    int rc = name ? bz_perfdb_system(in->db, name, &system, err) : 0;
    for (size_t i = 0; i < f->n && !rc; i++)
        if (f->rows[i].cupti && !f->rows[i].aggregate)
            rc = put_counters(in, &f->rows[i], system, f->arena, err);
    return rc ? rc : bz_import_flush(in, err);
}

int bz_gbench_import(bz_import *in, bz_stream *source, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    file f = {.arena = &arena};
    size_t n = 0;
    int rc = read_rows(&f, in->path, source, err);
    group *groups = rc ? NULL : group_rows(in, &f, &n);
    const char *system = system_name(in, &f);
    int64_t date = unix_date(f.date);
    if (!rc && n)
        rc = put_system(in, &f, date, system, err);
    for (size_t i = 0; i < n && !rc; i++) {
        finish_group(&groups[i]);
        groups[i].record.system = system;
        groups[i].record.date = date;
        rc = bz_import_record(in, groups[i].number, &groups[i].record, err);
    }
    if (!rc)
        rc = bz_import_flush(in, err); /* counters look for their records */
    if (!rc)
        rc = put_all_counters(in, &f, system, err);
    free(f.rows);
    return rc;
}

/* The first member of the file's object tells: no line of ours begins with it. */
bool bz_gbench_is(const char *head, size_t n)
{
    static const char KEY[] = "\"context\"";
    const char *p = head, *end = head + n;
    for (int braces = 0; p < end; p++) {
        if (*p == '{' && braces++ == 0)
            continue;
        if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
            break;
    }
    return (size_t)(end - p) >= strlen(KEY) && !memcmp(p, KEY, strlen(KEY));
}
