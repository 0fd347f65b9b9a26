/* One walk along the file through a window. A mapping would be simpler, but costs a page fault for nearly
 * every tensor, which a virtual machine pays for dearly, and ends the process (SIGBUS) when somebody cuts
 * the file short. */
#include "onnx/structure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW = 64 << 10,
    AHEAD = 8 << 10, /* read behind a jump; more and more while there is none */
    HEAD = 20,       /* a tag and a length, at their longest */
};

typedef struct {
    int fd;
    uint64_t size, keep;
    uint64_t at;       /* where the walk is, in the file */
    uint64_t taken;    /* what lies before is in `out`, or left out */
    uint64_t from, to; /* what the window holds */
    uint64_t ahead;    /* to be read next time */
    uint64_t left_out; /* bytes so far */
    uint8_t *window;
    bz_buf out;
    wire_cut *cuts;
    size_t n_cuts, cap;
    bz_error *err;
} walker;

/* What was passed becomes structure. */
static void take(walker *w)
{
    bz_buf_put(&w->out, w->window + (w->taken - w->from), (size_t)(w->at - w->taken));
    w->taken = w->at;
}

/* Has n bytes in the window from here on, or all that there are. */
static int look(walker *w, uint64_t n)
{
    if (w->to - w->at >= n || w->to == w->size)
        return 0;
    take(w);
    uint64_t wanted = w->size - w->at < w->ahead ? w->size - w->at : w->ahead;
    wire_bytes file = {.fd = w->fd};
    if (wire_read_cut(&file, &(wire_cut){0, w->at, wanted}, w->window, (size_t)wanted, w->err))
        return -1;
    w->from = w->at;
    w->to = w->at + wanted;
    w->ahead = w->ahead * 2 < WINDOW ? w->ahead * 2 : WINDOW;
    return 0;
}

static int pass(walker *w, uint64_t n)
{
    while (n > w->to - w->at) {
        n -= w->to - w->at;
        w->at = w->to;
        if (look(w, 1))
            return -1;
    }
    w->at += n;
    return 0;
}

/* The payload of n bytes that begins here. */
static void leave_out(walker *w, uint64_t n)
{
    take(w);
    wire_set_varint((uint8_t *)w->out.data + w->out.len, 0);
    if (w->n_cuts == w->cap) {
        w->cap = w->cap * 2 + 64;
        w->cuts = bz_realloc(w->cuts, w->cap, sizeof *w->cuts);
    }
    w->cuts[w->n_cuts++] = (wire_cut){w->out.len, w->at, n};
    w->left_out += n;
    w->taken = w->at += n;
    if (w->at > w->to) {
        w->from = w->to = w->at;
        w->ahead = AHEAD;
    }
}

static int walk(walker *w, wire_message kind, uint64_t end, int depth);

/* A message of that many bytes. Its length was passed already. */
static int walk_child(walker *w, wire_message kind, uint64_t size, int depth)
{
    size_t length_end = w->out.len + (size_t)(w->at - w->taken);
    uint64_t before = w->left_out;
    if (walk(w, kind, w->at + size, depth))
        return -1;
    if (w->left_out > before)
        wire_set_varint((uint8_t *)w->out.data + length_end, size - (w->left_out - before));
    return 0;
}

static int walk(walker *w, wire_message kind, uint64_t end, int depth)
{
    while (w->at < end) {
        if (look(w, HEAD))
            return -1;
        wire_field f;
        wire_bytes window = {.data = w->window, .cuts = &(wire_cut){.from = w->from}, .n_cuts = 1};
        wire_reader r = {&window, w->window + (w->at - w->from), w->window + ((end < w->to ? end : w->to) - w->from)};
        if (wire_head(&r, &f, w->err))
            return -1;
        w->at += (uint64_t)(r.at - f.start);
        if (f.type == 0)
            continue;
        if (f.size > end - w->at)
            return wire_bad(&window, f.start, WIRE_TOO_LONG, w->err);
        wire_message child = f.size > w->keep && depth < WIRE_MAX_DEPTH ? wire_child(kind, &f) : WIRE_LEAF;
        if (kind == WIRE_TENSOR && f.type == 2 && f.size > w->keep && wire_is_payload(f.number))
            leave_out(w, f.size);
        else if (child ? walk_child(w, child, f.size, depth + 1) : pass(w, f.size))
            return -1;
    }
    return 0;
}

int structure_read(int fd, uint64_t size, uint64_t keep, wire_bytes *out, bz_error *err)
{
    walker w = {.fd = fd, .size = size, .keep = keep, .ahead = AHEAD, .window = bz_alloc(WINDOW, 1), .err = err};
    bz_buf_extend(&w.out, 0); /* never NULL */
    int failed = walk(&w, WIRE_MODEL, size, 0);
    if (!failed)
        take(&w);
    free(w.window);
    *out = (wire_bytes){.data = (uint8_t *)w.out.data, .size = w.out.len, .cuts = w.cuts, .n_cuts = w.n_cuts, .fd = fd};
    return failed;
}
