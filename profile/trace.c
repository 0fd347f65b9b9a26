/* The trace itself: rows, strings, lanes, sources, coverage. */
#include "profile/trace.h"
#include "profile/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What identifies a lane; packed without holes, because it is hashed as bytes. */
typedef struct {
    int64_t source, device, process, thread, device_id, context, stream;
} lane_key;

bz_trace *bz_trace_new(void)
{
    bz_trace *t = bz_alloc(1, sizeof *t);
    *t = (bz_trace){0};
    t->private = BZ_NEW(&t->arena, struct bz_trace_private, 1);
    t->private->cap_strings = 1024;
    t->private->last_lane[0] = t->private->last_lane[1] = BZ_NONE;
    t->private->strings = bz_alloc(1024, sizeof *t->private->strings);
    bz_trace_intern(t, "", 0);
    bz_trace_stack(t, NULL, 0);
    bz_trace_launched(t, &(bz_launched){0});
    return t;
}

void bz_trace_free(bz_trace *t)
{
    if (!t)
        return;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        bz_events_free(&t->event[k]);
    free(t->lane);
    free(t->source);
    free(t->iteration);
    free(t->coverage);
    free(t->fact);
    free(t->private->strings);
    free(t->private->busy);
    free(t->private->taken);
    free(t->private->launched);
    free(t->private->short_name);
    bz_map_free(&t->private->launched_ids);
    free(t->private->frames);
    free(t->private->stacks);
    bz_map_free(&t->private->string_ids);
    bz_map_free(&t->private->lanes);
    bz_map_free(&t->private->stack_ids);
    bz_map_free(&t->private->call_ids);
    bz_map_free(&t->private->operator_ids);
    bz_arena_free(&t->private->read_arena);
    bz_arena_free(&t->arena);
    free(t);
}

uint32_t bz_trace_intern(bz_trace *t, const char *s, size_t n)
{
    struct bz_trace_private *p = t->private;
    uint32_t id = bz_map_get(&p->string_ids, s, n);
    if (id != BZ_MAP_NONE)
        return id;
    if (p->n_strings == p->cap_strings) {
        p->cap_strings *= 2;
        p->strings = bz_realloc(p->strings, p->cap_strings, sizeof *p->strings);
    }
    id = p->n_strings++;
    p->strings[id] = bz_arena_strn(&t->arena, s, n);
    return bz_map_add(&p->string_ids, p->strings[id], n, id);
}

uint32_t bz_trace_text(bz_trace *t, const char *s)
{
    return s ? bz_trace_intern(t, s, strlen(s)) : 0;
}

const char *bz_string(const bz_trace *t, uint32_t id)
{
    return id < t->private->n_strings ? t->private->strings[id] : "";
}

uint32_t bz_strings(const bz_trace *t)
{
    return t->private->n_strings;
}

void bz_trace_expect(bz_trace *t, bz_event_kind kind, uint64_t rows)
{
    if (rows && rows < BZ_NONE - t->event[kind].n)
        bz_events_reserve(&t->event[kind], kind, t->event[kind].n + (size_t)rows);
}

/* Are they times as they are to be: none negative or later than 2^61, each end behind its start? False where only some are not. */
static bool are_plain(const int64_t *start, const int64_t *end, int n)
{
    uint64_t any = 0, lengths = 0;
    for (int k = 0; k < n; k++) {
        any |= (uint64_t)start[k] | (uint64_t)end[k];
        lengths |= (uint64_t)end[k] - (uint64_t)start[k];
    }
    return !(any >> 61 | lengths >> 63);
}

size_t bz_trace_add_rows(bz_trace *t, bz_event_kind kind, const int64_t *start, const int64_t *end, int n,
                         uint32_t lane)
{
    /* neither a difference of times may overflow, nor a time and a difference: 2 * LATEST - EARLIEST < 2^63 */
    const int64_t LATEST = (INT64_C(7) << 59) - 1, EARLIEST = -(INT64_C(1) << 60);
    bz_events *e = &t->event[kind];
    bz_events_reserve(e, kind, e->n + (size_t)n);
    size_t first = e->n;
    bool plain = n > 1 && are_plain(start, end, n);
    if (plain) {
        memcpy(e->start + first, start, (size_t)n * sizeof *start);
        memcpy(e->end + first, end, (size_t)n * sizeof *end);
    }
    for (int k = 0; k < n && !plain; k++) {
        int64_t from = start[k] > LATEST     ? LATEST
                       : start[k] < EARLIEST ? EARLIEST
                                             : start[k],
                to = end[k] > LATEST ? LATEST : end[k];
        e->start[first + (size_t)k] = from;
        e->end[first + (size_t)k] = to < from ? from : to;
    }
    if (lane < t->n_lanes)
        t->lane[lane].kinds |= (uint16_t)(1u << kind);
    for (int k = 0; k < n && lane; k++) /* it is 0 before */
        e->lane[first + (size_t)k] = lane;
    e->n += (size_t)n;
    return first;
}

void bz_trace_memory(bz_trace *t, int64_t at, int64_t bytes, int64_t address, uint32_t lane)
{
    size_t i = bz_trace_add(t, BZ_EVENT_RANGE, at, at, bz_trace_text(t, "[memory]"), lane);
    t->event[BZ_EVENT_RANGE].bytes[i] = bytes;
    t->event[BZ_EVENT_RANGE].address[i] = address;
}

size_t bz_trace_add(bz_trace *t, bz_event_kind kind, int64_t start, int64_t end, uint32_t name, uint32_t lane)
{
    size_t i = bz_trace_add_rows(t, kind, &start, &end, 1, lane);
    t->event[kind].name[i] = name;
    return i;
}

uint32_t bz_trace_launched(bz_trace *t, const bz_launched *launched)
{
    struct bz_trace_private *p = t->private;
    if (p->n_launched && !memcmp(p->launched[p->last_launched], launched, sizeof *launched))
        return p->last_launched;
    uint32_t id = bz_map_get(&p->launched_ids, launched, sizeof *launched);
    if (id == BZ_MAP_NONE) {
        BZ_ROOM(p->launched, p->n_launched);
        id = p->n_launched++;
        p->launched[id] = bz_arena_dup(&t->arena, launched, sizeof *launched);
        bz_map_add(&p->launched_ids, p->launched[id], sizeof *launched, id);
    }
    return p->last_launched = id;
}

const bz_launched *bz_kernel_launched(const bz_trace *t, size_t kernel)
{
    return t->private->launched[t->event[BZ_EVENT_KERNEL].launched[kernel]];
}

uint32_t bz_event_shown(const bz_trace *t, bz_event_kind kind, size_t i)
{
    uint32_t name = t->event[kind].name[i];
    return kind == BZ_EVENT_KERNEL ? bz_kernel_shown(t, name) : name;
}

static uint32_t find_lane(bz_trace *t, const lane_key *key)
{
    struct bz_trace_private *p = t->private;
    int device = key->device != 0;
    if (p->last_lane[device] < t->n_lanes && !memcmp(p->last_key[device], key, sizeof *key))
        return p->last_lane[device];
    uint32_t id = bz_map_get(&p->lanes, key, sizeof *key);
    if (id == BZ_MAP_NONE) {
        BZ_ROOM(t->lane, t->n_lanes);
        id = t->n_lanes++;
        t->lane[id] = (bz_lane){.device = key->device != 0,
                                .source = (uint32_t)key->source,
                                .process = key->process,
                                .thread = key->thread,
                                .device_id = key->device_id,
                                .context = key->context,
                                .stream = key->stream};
        bz_map_add(&p->lanes, bz_arena_dup(&t->arena, key, sizeof *key), sizeof *key, id);
    }
    p->last_lane[device] = id;
    memcpy(p->last_key[device], key, sizeof *key);
    return id;
}

_Static_assert(sizeof(lane_key) == sizeof(((struct bz_trace_private *)0)->last_key[0]), "last_key holds a lane_key");

const char *bz_stream_name(const bz_lane *l, bz_stream_text out)
{
    if (l->stream == UINT32_MAX)
        return "all streams";
    snprintf(out, sizeof(bz_stream_text), "stream %lld", (long long)l->stream);
    return out;
}

uint32_t bz_trace_thread(bz_trace *t, uint32_t source, int64_t process, int64_t thread)
{
    return find_lane(t, &(lane_key){.source = source, .process = process, .thread = thread});
}

uint32_t bz_trace_known_thread(const bz_trace *t, uint32_t source, int64_t process, int64_t thread)
{
    lane_key key = {.source = source, .process = process, .thread = thread};
    return bz_map_get(&t->private->lanes, &key, sizeof key);
}

uint32_t bz_trace_stream(bz_trace *t, uint32_t source, int64_t process, int64_t device, int64_t context, int64_t stream)
{
    return find_lane(t, &(lane_key){.source = source,
                                    .device = 1,
                                    .process = process,
                                    .device_id = device,
                                    .context = context,
                                    .stream = stream});
}

uint32_t bz_trace_source(bz_trace *t, const char *path, const char *format)
{
    t->source = bz_realloc(t->source, t->n_sources + 1, sizeof *t->source);
    t->source[t->n_sources] = (bz_source){.path = bz_trace_text(t, path), .format = bz_trace_text(t, format)};
    return t->n_sources++;
}

void bz_trace_source_format(bz_trace *t, uint32_t source, const char *format)
{
    t->source[source].format = bz_trace_text(t, format);
}

void bz_trace_fact(bz_trace *t, const char *key, const char *value)
{
    bz_fact f = {bz_trace_text(t, key), bz_trace_text(t, value)};
    for (uint32_t i = 0; i < t->n_facts; i++)
        if (t->fact[i].key == f.key && t->fact[i].value == f.value)
            return;
    t->fact = bz_realloc(t->fact, t->n_facts + 1, sizeof *t->fact);
    t->fact[t->n_facts++] = f;
}

const char *bz_trace_told(const bz_trace *t, const char *key)
{
    for (uint32_t i = 0; i < t->n_facts; i++)
        if (!strcmp(bz_string(t, t->fact[i].key), key))
            return bz_string(t, t->fact[i].value);
    return NULL;
}

static const char *const LEVELS[] = {"note", "missing", "broken"};
static const char *const LACKS[BZ_LACKS] = {[BZ_LACKS_ITERATIONS_REST] = "iterations_rest",
                                            [BZ_LACKS_ITERATIONS_OPEN] = "iterations_open",
                                            [BZ_LACKS_ITERATIONS] = "iterations",
                                            [BZ_LACKS_QUIET] = "quiet",
                                            [BZ_LACKS_UNDISTURBED] = "undisturbed",
                                            [BZ_LACKS_STAMPS] = "stamps",
                                            [BZ_LACKS_END] = "end"};

const char *bz_coverage_level_name(bz_coverage_level level)
{
    return LEVELS[level];
}

const char *bz_lack_name(bz_lack lack)
{
    return LACKS[lack];
}

bz_lack bz_lack_of(const char *name)
{
    for (int i = BZ_LACKS_OTHER + 1; name && i < BZ_LACKS; i++)
        if (!strcmp(name, LACKS[i]))
            return (bz_lack)i;
    return BZ_LACKS_OTHER;
}

static void cover(bz_trace *t, bz_coverage c, const char *fmt, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, fmt, args);
    c.text = bz_trace_text(t, text);
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (t->coverage[i].text == c.text && (t->coverage[i].source == c.source || c.source == BZ_NONE))
            return;
    t->coverage = bz_realloc(t->coverage, t->n_coverage + 1, sizeof *t->coverage);
    t->coverage[t->n_coverage++] = c;
}

void bz_trace_cover(bz_trace *t, uint32_t source, bz_coverage_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cover(t, (bz_coverage){.level = level, .source = source}, fmt, args);
    va_end(args);
}

void bz_trace_lack(bz_trace *t, uint32_t source, bz_coverage_level level, bz_lack lack, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cover(t, (bz_coverage){.level = level, .lack = lack, .source = source}, fmt, args);
    va_end(args);
}

const char *bz_trace_lacks(const bz_trace *t, bz_lack lack)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (t->coverage[i].lack == lack)
            return bz_string(t, t->coverage[i].text);
    return NULL;
}

uint32_t bz_trace_stack(bz_trace *t, const uint32_t *frames, int n)
{
    struct bz_trace_private *p = t->private;
    size_t size = (size_t)n * sizeof *frames;
    uint32_t id = bz_map_get(&p->stack_ids, frames, size);
    if (id != BZ_MAP_NONE)
        return id;
    p->frames = bz_realloc(p->frames, p->n_frames + (size_t)n + 1, sizeof *p->frames);
    p->stacks = bz_realloc(p->stacks, p->n_stacks + 2, sizeof *p->stacks);
    if (n)
        memcpy(p->frames + p->n_frames, frames, size);
    id = p->n_stacks++;
    p->stacks[id] = (uint32_t)p->n_frames;
    p->n_frames += (size_t)n;
    p->stacks[id + 1] = (uint32_t)p->n_frames;
    return bz_map_add(&p->stack_ids, bz_arena_dup(&t->arena, frames, size), size, id);
}

int bz_stack(const bz_trace *t, uint32_t stack, const uint32_t **frames)
{
    const struct bz_trace_private *p = t->private;
    if (stack >= p->n_stacks)
        return 0;
    *frames = p->frames + p->stacks[stack];
    return (int)(p->stacks[stack + 1] - p->stacks[stack]);
}

uint32_t bz_stacks(const bz_trace *t)
{
    return t->private->n_stacks;
}

static const char *const KIND_NAMES[] = {"range", "op", "call", "api", "kernel", "copy", "memset", "sync", "overhead"};
static const char *const LIBRARY_NAMES[] = {"other", "cudnn", "cublas", "cublaslt", "onednn", "blas"};

const char *bz_event_kind_name(bz_event_kind kind)
{
    return (unsigned)kind < BZ_EVENT_KINDS ? KIND_NAMES[kind] : "?";
}

bool bz_event_on_device(bz_event_kind kind)
{
    return kind == BZ_EVENT_KERNEL || kind == BZ_EVENT_COPY || kind == BZ_EVENT_MEMSET;
}

bool bz_trace_has_lengths(const bz_trace *t)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_KERNEL, BZ_EVENT_CALL, BZ_EVENT_OP};
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        const bz_events *e = &t->event[KINDS[k]];
        for (size_t i = 0; i < e->n; i++)
            if (e->end[i] > e->start[i])
                return true;
    }
    return false;
}

const char *bz_library_name(bz_library library)
{
    return (unsigned)library < BZ_LIBRARIES ? LIBRARY_NAMES[library] : "other";
}

bool bz_library_on_device(bz_library library)
{
    return library == BZ_LIBRARY_CUDNN || library == BZ_LIBRARY_CUBLAS || library == BZ_LIBRARY_CUBLASLT;
}

bool bz_call_parameter(const bz_trace *t, size_t call, const char *name, char *out, size_t size)
{
    const char *p = bz_string(t, t->event[BZ_EVENT_CALL].detail[call]);
    size_t n = strlen(name);
    while (*p) {
        const char *end = strchr(p, ' ');
        if (!end)
            end = p + strlen(p);
        if ((size_t)(end - p) > n && !memcmp(p, name, n) && p[n] == '=') {
            snprintf(out, size, "%.*s", (int)(end - p - (ptrdiff_t)n - 1), p + n + 1);
            return true;
        }
        p = *end ? end + 1 : end;
    }
    return false;
}

bool *bz_trace_lanes(const bz_trace *t, bz_event_kind first, bz_event_kind last)
{
    bool *has = bz_zeroed((size_t)t->n_lanes + 1, sizeof *has);
    for (bz_event_kind k = first; k <= last; k++)
        for (size_t i = 0; i < t->event[k].n; i++)
            has[t->event[k].lane[i]] = true;
    return has;
}

int bz_trace_devices(const bz_trace *t)
{
    enum { MOST = 64 };
    int64_t id[MOST];
    int n = 0;
    /* other streams hold ranges alone, as an analysis that a profiler wrote down */
    BZ_FREED bool *works = bz_trace_lanes(t, BZ_EVENT_KERNEL, BZ_EVENT_MEMSET);
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        int k = 0;
        while (k < n && id[k] != t->lane[i].device_id)
            k++;
        if (works[i] && k == n && n < MOST)
            id[n++] = t->lane[i].device_id;
    }
    return n;
}
