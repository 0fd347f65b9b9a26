/* Reads what the capture library wrote. The program may have crashed, or been killed while it wrote. */
#include "profile/spool.h"

#include "profile/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bz_trace *t;
    uint32_t source;
    bz_spool_header h;
    uint32_t *string; /* by the file's number */
    size_t n_strings, cap_strings;
    uint32_t *stack;
    size_t n_stacks, cap_stacks;
    int64_t shift; /* from the process's clock to wall time */
    int64_t calls, damaged, pending;
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

static void read_string(reader *r, const bz_spool_string *s, size_t size)
{
    if (s->id != r->n_strings || s->length > size - sizeof *s) {
        r->damaged++;
        return;
    }
    if (r->n_strings == r->cap_strings) {
        r->cap_strings *= 2;
        r->string = bz_realloc(r->string, r->cap_strings, sizeof *r->string);
    }
    r->string[r->n_strings++] = bz_trace_intern(r->t, (const char *)(s + 1), strnlen((const char *)(s + 1), s->length));
}

static void read_stack(reader *r, const bz_spool_stack *s, size_t size)
{
    enum { FRAMES_MAX = 256 };
    uint32_t frames[FRAMES_MAX];
    if (s->id != r->n_stacks || s->n > FRAMES_MAX || s->n * sizeof *frames > size - sizeof *s) {
        r->damaged++;
        return;
    }
    memcpy(frames, s + 1, s->n * sizeof *frames);
    for (uint32_t i = 0; i < s->n; i++)
        frames[i] = string_of(r, frames[i]);
    if (r->n_stacks == r->cap_stacks) {
        r->cap_stacks *= 2;
        r->stack = bz_realloc(r->stack, r->cap_stacks, sizeof *r->stack);
    }
    r->stack[r->n_stacks++] = bz_trace_stack(r->t, frames, (int)s->n);
}

static int64_t wall(const reader *r, int64_t at)
{
    int64_t v;
    return __builtin_add_overflow(at, r->shift, &v) ? 0 : v;
}

static void read_call(reader *r, const bz_spool_call *c)
{
    bz_trace *t = r->t;
    uint32_t name = string_of(r, c->name), lane = bz_trace_thread(t, r->source, r->h.process, c->thread);
    bool creates = c->head.flags & BZ_SPOOL_CREATES;
    if (creates) {
        bz_buf b = {0};
        bz_buf_printf(&b, "create %s", bz_string(t, name));
        name = bz_trace_intern(t, b.data, b.len);
        bz_buf_free(&b);
    }
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, wall(r, c->start), wall(r, c->end), name, lane);
    bz_events *e = &t->event[BZ_EVENT_CALL];
    e->library[i] = c->library < BZ_LIBRARIES ? c->library : BZ_LIBRARY_OTHER;
    e->flags[i] = (creates ? 0u : BZ_CALL_EXECUTES) | (c->head.flags & BZ_SPOOL_FAILED ? BZ_CALL_FAILED : 0u);
    e->detail[i] = string_of(r, c->detail);
    e->variant[i] = string_of(r, c->variant);
    e->stack[i] = c->stack < r->n_stacks ? r->stack[c->stack] : 0;
    r->calls++;
}

static void read_mark(reader *r, const bz_spool_mark *m)
{
    int k = 0;
    while (k < r->n_marks && r->mark[k].thread != m->thread)
        k++;
    if (k == r->n_marks) {
        if (k == sizeof r->mark / sizeof *r->mark)
            return;
        r->n_marks++;
        r->mark[k].thread = m->thread;
    }
    if (m->end && r->mark[k].open)
        bz_trace_add(r->t, BZ_EVENT_RANGE, r->mark[k].at, wall(r, m->at), bz_trace_text(r->t, "benanza_iteration"),
                     bz_trace_thread(r->t, r->source, r->h.process, m->thread));
    r->mark[k].open = !m->end;
    r->mark[k].at = wall(r, m->at);
}

/* One record of `size` bytes, aligned. Larger than its fixed part, by construction of the caller. */
static void read_record(reader *r, const bz_spool_record *head, size_t size)
{
    static const size_t LEAST[] = {
        [BZ_SPOOL_STRING] = sizeof(bz_spool_string),
        [BZ_SPOOL_CALL] = sizeof(bz_spool_call),
        [BZ_SPOOL_MARK] = sizeof(bz_spool_mark),
        [BZ_SPOOL_STACK] = sizeof(bz_spool_stack),
    };
    if (head->type == 0 || head->type >= sizeof LEAST / sizeof *LEAST || size < LEAST[head->type]) {
        r->damaged++;
        return;
    }
    switch (head->type) {
    case BZ_SPOOL_STRING:
        read_string(r, (const bz_spool_string *)(const void *)head, size);
        break;
    case BZ_SPOOL_CALL:
        read_call(r, (const bz_spool_call *)(const void *)head);
        break;
    case BZ_SPOOL_MARK:
        read_mark(r, (const bz_spool_mark *)(const void *)head);
        break;
    case BZ_SPOOL_STACK:
        read_stack(r, (const bz_spool_stack *)(const void *)head, size);
        break;
    }
}

static void cover(const reader *r)
{
    bz_trace *t = r->t;
    if (!r->h.finished)
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN,
                       "process %lld ended without finishing: it crashed, was killed, or left by _exit; the %lld calls "
                       "until then are here",
                       (long long)r->h.process, (long long)r->calls);
    if (r->h.dropped)
        bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                       "%llu records did not fit into the limit and were dropped: raise it with --limit",
                       (unsigned long long)r->h.dropped);
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

static int spool_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    enum { LARGEST = 1 << 20 };
    reader r = {.t = t, .source = source, .n_strings = 1, .cap_strings = 256, .n_stacks = 1, .cap_stacks = 64};
    if (in->len < sizeof r.h)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is cut off within its first %zu bytes", in->path, sizeof r.h);
    memcpy(&r.h, in->data, sizeof r.h);
    facts(&r);
    if (__builtin_sub_overflow(r.h.started_wall, r.h.started, &r.shift))
        r.shift = 0;
    r.string = bz_alloc(r.cap_strings, sizeof *r.string);
    r.stack = bz_alloc(r.cap_stacks, sizeof *r.stack);
    r.string[0] = r.stack[0] = 0;
    bz_stream_advance(in, (sizeof r.h + 7) & ~(size_t)7, 8);
    char *aligned = bz_alloc(LARGEST, 1);
    while (in->len >= sizeof(bz_spool_record)) {
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
    free(aligned);
    free(r.string);
    free(r.stack);
    return 0;
}

const bz_reader bz_reader_spool = {"capture", false, spool_matches, spool_read};
