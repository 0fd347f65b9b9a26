/* Reads what the capture library wrote. The program may have crashed, or been killed while it wrote. */
#include "profile/spool.h"

#include "profile/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    bz_trace *t;
    uint32_t source;
    bz_spool_header h;
    size_t size;      /* of the record that is read */
    uint32_t *string; /* by the file's number */
    uint32_t *kernel; /* the same as the name of a kernel, or of a frame; 0: not worked out yet */
    size_t n_strings;
    uint32_t *stack;
    size_t n_stacks;
    int64_t shift; /* from the process's clock to wall time */
    int64_t calls, damaged, pending, unmarked;
    bool device;   /* there is work of a device */
    bool replaced; /* exec: what the process is from then on has a file of its own */
    /* begin of the open iteration, per thread; few threads mark iterations */
    struct {
        uint32_t thread;
        int64_t at;
        bool open;
    } mark[64];
    int n_marks;
} reader;

static uint32_t string_of(const reader *r, uint32_t id)
{
    return id < r->n_strings ? r->string[id] : 0;
}

static void add_string(reader *r, uint32_t string)
{
    BZ_ROOM(r->string, r->n_strings);
    BZ_ROOM(r->kernel, r->n_strings);
    r->kernel[r->n_strings] = 0;
    r->string[r->n_strings++] = string;
}

static void read_string(reader *r, const void *record)
{
    const bz_spool_string *s = record;
    if (s->id != r->n_strings || s->length > r->size - sizeof *s) {
        r->damaged++;
        return;
    }
    add_string(r, bz_trace_intern(r->t, (const char *)(s + 1), strnlen((const char *)(s + 1), s->length)));
}

/* "_ZN2at6conv2dE… (libtorch_cpu.so)", as a person wrote the function. The recorder's own frames have no text. */
static uint32_t frame_of(reader *r, uint32_t id)
{
    uint32_t text = string_of(r, id);
    const char *s = bz_string(r->t, text), *file = strrchr(s, ' ');
    if (strncmp(s, "_Z", 2) != 0 || !file)
        return text;
    if (r->kernel[id]) /* a kernel's name has no file behind it: no string is both */
        return r->kernel[id];
    uint32_t name = bz_trace_demangled(r->t, bz_trace_intern(r->t, s, (size_t)(file - s)));
    BZ_SCOPED(bz_buf) b = {0};
    bz_buf_printf(&b, "%s%s", bz_string(r->t, name), bz_string(r->t, text) + (file - s));
    r->kernel[id] = bz_trace_intern(r->t, b.data, b.len);
    return r->kernel[id];
}

static void add_stack(reader *r, uint32_t stack)
{
    BZ_ADD(r->stack, r->n_stacks) = stack;
}

static void read_stack(reader *r, const void *record)
{
    const bz_spool_stack *s = record;
    enum { FRAMES_MAX = 256 };
    uint32_t frames[FRAMES_MAX];
    if (s->id != r->n_stacks || s->n > FRAMES_MAX || s->n * sizeof *frames > r->size - sizeof *s) {
        r->damaged++;
        return;
    }
    memcpy(frames, s + 1, s->n * sizeof *frames);
    int n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t text = frame_of(r, frames[i]);
        if (text)
            frames[n++] = text;
    }
    add_stack(r, bz_trace_stack(r->t, frames, n));
}

static int64_t wall(const reader *r, int64_t at)
{
    int64_t v;
    return __builtin_add_overflow(at, r->shift, &v) ? 0 : v;
}

/* "a=0x7f2a40 b=0x7f2b80 c=0x7f2c00" */
static uint32_t operands_of(bz_trace *t, const bz_spool_call *c)
{
    static const char *const NAMES[2][3] = {{"src", "wei", "dst"}, {"a", "b", "c"}};
    const uint64_t at[3] = {c->read[0], c->read[1], c->written};
    char text[96];
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (at[i])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s=0x%llx", n ? " " : "",
                          NAMES[c->library == BZ_LIBRARY_BLAS][i], (unsigned long long)at[i]);
    return bz_trace_intern(t, text, (size_t)n);
}

static void read_call(reader *r, const void *record)
{
    const bz_spool_call *c = record;
    bz_trace *t = r->t;
    uint32_t name = string_of(r, c->name), lane = bz_trace_thread(t, r->source, r->h.process, c->thread);
    bool creates = c->head.flags & BZ_SPOOL_CREATES;
    if (creates) {
        BZ_SCOPED(bz_buf) b = {0};
        bz_buf_printf(&b, "create %s", bz_string(t, name));
        name = bz_trace_intern(t, b.data, b.len);
    }
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, wall(r, c->start), wall(r, c->end), name, lane);
    bz_events *e = &t->event[BZ_EVENT_CALL];
    e->library[i] = c->library < BZ_LIBRARIES ? c->library : BZ_LIBRARY_OTHER;
    e->flags[i] = (creates ? 0u : BZ_CALL_EXECUTES) | (c->head.flags & BZ_SPOOL_FAILED ? BZ_CALL_FAILED : 0u);
    e->detail[i] = string_of(r, c->detail);
    e->variant[i] = string_of(r, c->variant);
    e->operands[i] = r->size >= sizeof *c ? operands_of(t, c) : 0;
    e->stack[i] = c->stack < r->n_stacks ? r->stack[c->stack] : 0;
    r->calls++;
}

static void read_mark(reader *r, const void *record)
{
    const bz_spool_mark *m = record;
    int k = 0;
    while (k < r->n_marks && r->mark[k].thread != m->thread)
        k++;
    if (k == r->n_marks) {
        if (k == sizeof r->mark / sizeof *r->mark) {
            r->unmarked++;
            return;
        }
        r->n_marks++;
        r->mark[k].thread = m->thread;
    }
    if (m->end && r->mark[k].open)
        bz_trace_add(r->t, BZ_EVENT_RANGE, r->mark[k].at, wall(r, m->at), bz_trace_text(r->t, "benanza_iteration"),
                     bz_trace_thread(r->t, r->source, r->h.process, m->thread));
    r->mark[k].open = !m->end;
    r->mark[k].at = wall(r, m->at);
}

static void read_range(reader *r, const void *record)
{
    const bz_spool_range *v = record;
    bz_trace_add(r->t, BZ_EVENT_RANGE, wall(r, v->start), wall(r, v->end), string_of(r, v->name),
                 bz_trace_thread(r->t, r->source, r->h.process, v->thread));
}

static void read_memory(reader *r, const void *record)
{
    const bz_spool_memory *v = record;
    bz_trace_memory(r->t, wall(r, v->at), v->bytes, (int64_t)v->address,
                    bz_trace_thread(r->t, r->source, r->h.process, v->thread));
}

static void read_pages(reader *r, const void *record)
{
    const bz_spool_pages *v = record;
    bz_trace_taken(r->t, r->h.process, wall(r, v->at), v->taken);
}

static uint32_t stream_of(reader *r, uint32_t device, uint32_t context, uint32_t stream)
{
    r->device = true;
    return bz_trace_stream(r->t, r->source, r->h.process, device, context, stream);
}

static void read_api(reader *r, const void *record)
{
    const bz_spool_api *v = record;
    r->device = true;
    size_t i = bz_trace_add(r->t, BZ_EVENT_API, wall(r, v->start), wall(r, v->end), string_of(r, v->name),
                            bz_trace_thread(r->t, r->source, r->h.process, v->thread));
    r->t->event[BZ_EVENT_API].correlation[i] = v->correlation;
    r->t->event[BZ_EVENT_API].value[i] = v->value;
}

static void read_kernel(reader *r, const void *record)
{
    const bz_spool_kernel *v = record;
    uint32_t name = 0;
    if (v->name < r->n_strings && !(name = r->kernel[v->name]))
        name = r->kernel[v->name] = bz_trace_demangled(r->t, r->string[v->name]);
    size_t i = bz_trace_add(r->t, BZ_EVENT_KERNEL, wall(r, v->start), wall(r, v->end), name,
                            stream_of(r, v->device, v->context, v->stream));
    bz_events *e = &r->t->event[BZ_EVENT_KERNEL];
    e->correlation[i] = v->correlation;
    e->graph[i] = v->graph;
    bz_launched launched = {{0}, {0}, v->registers, v->shared_static, v->shared_dynamic};
    memcpy(launched.grid, v->grid, sizeof v->grid);
    memcpy(launched.block, v->block, sizeof v->block);
    e->launched[i] = bz_trace_launched(r->t, &launched);
}

static void read_copy(reader *r, const void *record)
{
    const bz_spool_copy *v = record;
    bz_event_kind kind = v->head.type == BZ_SPOOL_MEMSET ? BZ_EVENT_MEMSET : BZ_EVENT_COPY;
    size_t i =
        bz_trace_add(r->t, kind, wall(r, v->start), wall(r, v->end), 0, stream_of(r, v->device, v->context, v->stream));
    bz_events *e = &r->t->event[kind];
    e->correlation[i] = v->correlation;
    e->graph[i] = v->graph;
    e->bytes[i] = v->bytes;
    if (kind == BZ_EVENT_COPY)
        e->value[i] = v->kind;
}

static void read_sync(reader *r, const void *record)
{
    const bz_spool_sync *v = record;
    size_t i = bz_trace_add(r->t, BZ_EVENT_SYNC, wall(r, v->start), wall(r, v->end), 0,
                            stream_of(r, v->device, v->context, v->stream));
    r->t->event[BZ_EVENT_SYNC].correlation[i] = v->correlation;
    r->t->event[BZ_EVENT_SYNC].value[i] = v->kind;
}

static void read_overhead(reader *r, const void *record)
{
    const bz_spool_overhead *v = record;
    size_t i = bz_trace_add(r->t, BZ_EVENT_OVERHEAD, wall(r, v->start), wall(r, v->end), string_of(r, v->name),
                            bz_trace_thread(r->t, r->source, r->h.process, v->thread));
    r->t->event[BZ_EVENT_OVERHEAD].value[i] = v->kind;
}

static void read_note(reader *r, const void *record)
{
    const bz_spool_text *v = record;
    bz_coverage_level level = v->head.flags <= BZ_COVERAGE_BROKEN ? v->head.flags : BZ_COVERAGE_BROKEN;
    bz_trace_cover(r->t, r->source, level, "%s", bz_string(r->t, string_of(r, v->text)));
}

static void read_fact(reader *r, const void *record)
{
    const bz_spool_text *v = record;
    if (v->key && v->text)
        bz_trace_fact(r->t, bz_string(r->t, string_of(r, v->key)), bz_string(r->t, string_of(r, v->text)));
}

/* A record of at least `least` bytes; `read` may rely on them, and on alignment. */
static const struct {
    size_t least;
    void (*read)(reader *r, const void *record);
} RECORDS[BZ_SPOOL_TYPES] = {
    [BZ_SPOOL_STRING] = {sizeof(bz_spool_string), read_string},
    [BZ_SPOOL_CALL] = {offsetof(bz_spool_call, read), read_call},
    [BZ_SPOOL_MARK] = {sizeof(bz_spool_mark), read_mark},
    [BZ_SPOOL_STACK] = {sizeof(bz_spool_stack), read_stack},
    [BZ_SPOOL_RANGE] = {sizeof(bz_spool_range), read_range},
    [BZ_SPOOL_API] = {sizeof(bz_spool_api), read_api},
    [BZ_SPOOL_KERNEL] = {sizeof(bz_spool_kernel), read_kernel},
    [BZ_SPOOL_COPY] = {sizeof(bz_spool_copy), read_copy},
    [BZ_SPOOL_MEMSET] = {sizeof(bz_spool_copy), read_copy},
    [BZ_SPOOL_SYNC] = {sizeof(bz_spool_sync), read_sync},
    [BZ_SPOOL_OVERHEAD] = {sizeof(bz_spool_overhead), read_overhead},
    [BZ_SPOOL_NOTE] = {sizeof(bz_spool_text), read_note},
    [BZ_SPOOL_FACT] = {sizeof(bz_spool_text), read_fact},
    [BZ_SPOOL_MEMORY] = {sizeof(bz_spool_memory), read_memory},
    [BZ_SPOOL_PAGES] = {sizeof(bz_spool_pages), read_pages},
};

static void read_record(reader *r, const bz_spool_record *head, size_t size)
{
    r->size = size;
    if (head->type >= BZ_SPOOL_TYPES || !RECORDS[head->type].read || size < RECORDS[head->type].least)
        r->damaged++;
    else
        RECORDS[head->type].read(r, head);
}

static void cover(const reader *r)
{
    bz_trace *t = r->t;
    if (!r->h.finished && !r->replaced)
        bz_trace_cover(
            t, r->source, BZ_COVERAGE_BROKEN,
            "process %lld ended without finishing: it crashed, was killed, or started a program in its place "
            "(exec) that cannot be recorded; its %lld calls until then are here",
            (long long)r->h.process, (long long)r->calls);
    if (r->h.finished <= 0 && r->device)
        bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                       "the device's work of the last moments of process %lld is missing: CUPTI had not yet told it",
                       (long long)r->h.process);
    if (r->h.device_dropped)
        bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING, "CUPTI dropped %llu records: it had no room for them",
                       (unsigned long long)r->h.device_dropped);
    if (r->h.dropped)
        bz_trace_cover(
            t, r->source, BZ_COVERAGE_MISSING,
            "%llu records did not fit into the limit, or onto the disk, and were dropped: see --limit and TMPDIR",
            (unsigned long long)r->h.dropped);
    if (r->h.nameless)
        bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                       "%llu records lack their name, parameters or back-trace: too many different ones",
                       (unsigned long long)r->h.nameless);
    if (r->unmarked)
        bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                       "%lld marks of iterations are left out: more than %zu threads set such", (long long)r->unmarked,
                       sizeof r->mark / sizeof *r->mark);
    if (r->damaged || r->pending)
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN, "%lld records are damaged or were never finished",
                       (long long)r->damaged + (long long)r->pending);
}

static bool spool_matches(const char *head, size_t n)
{
    return n >= 8 && !memcmp(head, BZ_SPOOL_MAGIC, 8);
}

static void facts(reader *r)
{
    char text[64];
    r->h.program[sizeof r->h.program - 1] = 0;
    r->h.onednn[sizeof r->h.onednn - 1] = 0;
    bz_trace_fact(r->t, "program", r->h.program);
    if (r->h.onednn[0])
        bz_trace_fact(r->t, "onednn", r->h.onednn);
    snprintf(text, sizeof text, "%lld ns per call", (long long)r->h.overhead);
    bz_trace_fact(r->t, "capture overhead", text);
}

/* PROCESS.0.spool goes on in PROCESS.1.spool where the process called exec: a shell does so for its last command. */
static bool is_replaced(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char next[4096];
    long process;
    int number, length = 0;
    if (sscanf(file, "%ld.%d.spool%n", &process, &number, &length) != 2 || !length || file[length])
        return false;
    snprintf(next, sizeof next, "%.*s%ld.%d.spool", (int)(file - path), path, process, number + 1);
    return !access(next, F_OK);
}

static bool holds_anything(const bz_stream *in)
{
    bz_spool_record first = {0};
    if (in->len >= sizeof first)
        memcpy(&first, in->data, sizeof first);
    return first.size != 0;
}

static int spool_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    enum { LARGEST = 1 << 20 };
    reader r = {.t = t, .source = source, .replaced = is_replaced(in->path)};
    if (in->len < sizeof r.h)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is cut off within its first %zu bytes", in->path, sizeof r.h);
    memcpy(&r.h, in->data, sizeof r.h);
    if (__builtin_sub_overflow(r.h.started_wall, r.h.started, &r.shift))
        r.shift = 0;
    add_string(&r, 0);
    add_stack(&r, 0);
    bz_stream_advance(in, (sizeof r.h + 7) & ~(size_t)7, 8);
    if (holds_anything(in)) /* a shell that starts the program, and all that it runs before, is not what was recorded */
        facts(&r);
    BZ_FREED char *aligned = bz_alloc(LARGEST, 1);
    while (r.h.overhead && in->len >= sizeof(bz_spool_record)) { /* a program may be killed before it begins */
        bz_spool_record head;
        memcpy(&head, in->data, sizeof head);
        size_t size = head.size & ~BZ_SPOOL_PENDING;
        if (!head.size)
            break;
        if (size < sizeof head || size % 8 || size > LARGEST) {
            r.damaged++;
            break;
        }
        if (in->len < size)
            bz_stream_advance(in, 0, size);
        if (in->len < size) {
            r.damaged++;
            break;
        }
        memcpy(aligned, in->data, size);
        if (head.size & BZ_SPOOL_PENDING)
            r.pending++;
        else
            read_record(&r, (const bz_spool_record *)(const void *)aligned, size);
        bz_stream_advance(in, size, sizeof head);
    }
    cover(&r);
    free(r.string);
    free(r.kernel);
    free(r.stack);
    return 0;
}

const bz_reader bz_reader_spool = {"capture", false, spool_matches, spool_read};
