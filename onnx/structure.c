/* One walk along the file, which is read piece by piece to where its structure is to stand: payloads that
 * begin in a piece are taken out of it, and what of them lies behind it is never read. A mapping would be
 * simpler, but costs a page fault for nearly every tensor, which a virtual machine pays for dearly, and ends
 * the process (SIGBUS) when somebody cuts the file short. */
#include "onnx/structure.h"

#include <string.h>

enum {
    AHEAD = 8 << 10, /* read behind a jump; more and more while there is none */
    MOST_AHEAD = 64 << 10,
    LEAST_EXPECTED = 1 << 10, /* bounds of what is read where its length is guessed */
    MOST_EXPECTED = 16 << 10,
    SLACK = 1 << 10,
    PERIOD = 4, /* tensors with big payloads in a layer, at most */
    N_GAPS = PERIOD + 2,
    HEAD = 20,   /* a tag and a length, at their longest */
    INSTEAD = 6, /* bytes of left_out: a tag of two, and a number */
};

typedef struct {
    int fd;
    uint64_t size, keep;
    bz_buf read;           /* structure in its place, what was passed since, what was read ahead */
    size_t placed;         /* where the first of these ends */
    size_t at;             /* where the walk is, and the second ends */
    size_t gap;            /* how far behind its place the second stands: payloads were before it */
    uint64_t to;           /* how much of the file was read or jumped over */
    uint64_t ahead;        /* to be read next time */
    uint64_t gaps[N_GAPS]; /* how much stood between two big payloads, newest first */
    int n_gaps;
    uint64_t landed, expected; /* where in the file the last one ended, and where the next may begin, or 0 */
    uint64_t left_out;         /* bytes so far */
    wire_cut *cuts;
    size_t n_cuts;
    const ProtobufCFieldDescriptor *mark; /* TensorProto.left_out */
    wire_cut origin;                      /* what error messages need to tell a place: */
    wire_bytes window;
    bz_error *err;
} walker;

/* In the file. */
static uint64_t position(const walker *w)
{
    return w->to - (w->read.len - w->at);
}

static void set_window(walker *w)
{
    w->origin = (wire_cut){.from = w->to - w->read.len};
    w->window = (wire_bytes){.data = (const uint8_t *)w->read.data, .cuts = &w->origin, .n_cuts = 1};
}

/* Moves what was read, up to there, to its place. */
static void place(walker *w, size_t until)
{
    if (w->gap)
        memmove(w->read.data + (w->placed - w->gap), w->read.data + w->placed, until - w->placed);
    w->placed = until;
}

static void close_gap(walker *w)
{
    place(w, w->read.len);
    w->read.len = w->placed -= w->gap;
    w->at -= w->gap;
    w->gap = 0;
}

/* Has n bytes from here on, or all that there are. */
static int look(walker *w, uint64_t n)
{
    if (w->read.len - w->at >= n || w->to == w->size)
        return 0;
    close_gap(w);
    uint64_t wanted = w->ahead;
    if (w->expected > w->to) {
        wanted = w->expected - w->to;
        wanted = wanted < LEAST_EXPECTED ? LEAST_EXPECTED : wanted > MOST_EXPECTED ? MOST_EXPECTED : wanted;
    } else {
        w->ahead = w->ahead * 2 < MOST_AHEAD ? w->ahead * 2 : MOST_AHEAD;
    }
    wanted = w->size - w->to < wanted ? w->size - w->to : wanted;
    if (wire_read(w->fd, w->to, bz_buf_extend(&w->read, (size_t)wanted), (size_t)wanted, w->err))
        return -1;
    w->to += wanted;
    set_window(w);
    return 0;
}

static int pass(walker *w, uint64_t n)
{
    while (n > w->read.len - w->at) {
        n -= w->read.len - w->at;
        w->at = w->read.len;
        if (look(w, 1))
            return -1;
    }
    w->at += (size_t)n;
    return 0;
}

/* What stands between big payloads mostly repeats itself from layer to layer: the lag at which the last two gaps
 * did so tells the next one. What is read behind a jump is then neither copied in vain nor read in two pieces. */
static void expect(walker *w, uint64_t n)
{
    uint64_t here = position(w), least = UINT64_MAX, *g = w->gaps;
    if (w->landed) {
        memmove(g + 1, g, (N_GAPS - 1) * sizeof *g);
        g[0] = here - w->landed;
        w->n_gaps += w->n_gaps < N_GAPS;
    }
    w->landed = here + n;
    w->expected = 0;
    for (int lag = 1; lag + 2 <= w->n_gaps; lag++) {
        uint64_t off = (g[0] > g[lag] ? g[0] - g[lag] : g[lag] - g[0]) +
                       (g[1] > g[lag + 1] ? g[1] - g[lag + 1] : g[lag + 1] - g[1]);
        if (off < least) {
            least = off;
            w->expected = w->landed + g[lag - 1] + SLACK;
        }
    }
}

/* The payload of n bytes that begins here. */
static void leave_out(walker *w, uint32_t field, uint64_t n)
{
    place(w, w->at);
    size_t here = w->at - w->gap, had = w->read.len - w->at;
    uint32_t tag = w->mark->id << 3 | 5, number = (uint32_t)w->n_cuts;
    const uint8_t mark[INSTEAD] = {(uint8_t)(tag | 0x80),  (uint8_t)(tag >> 7),     (uint8_t)number,
                                   (uint8_t)(number >> 8), (uint8_t)(number >> 16), (uint8_t)(number >> 24)};
    wire_set_varint((uint8_t *)w->read.data + here, 0);
    BZ_ADD(w->cuts, w->n_cuts) =
        (wire_cut){.at = here, .instead = INSTEAD, .from = position(w), .size = n, .field = field};
    w->left_out += n - INSTEAD;
    if (n >= AHEAD)
        expect(w, n);
    if (n <= had) {
        memcpy(w->read.data + here, mark, INSTEAD);
        w->placed = w->at += (size_t)n;
        w->gap += (size_t)n - INSTEAD;
        return;
    }
    w->to += n - had;
    w->ahead = AHEAD;
    w->read.len = here;
    bz_buf_put(&w->read, mark, INSTEAD);
    w->at = w->read.len;
    w->gap = 0;
    set_window(w);
}

static int walk(walker *w, wire_message kind, uint64_t end, int depth);

/* A message of that many bytes. Its length was passed already. */
static int walk_child(walker *w, wire_message kind, uint64_t size, int depth)
{
    size_t length_end = w->at - w->gap;
    uint64_t before = w->left_out;
    if (walk(w, kind, position(w) + size, depth))
        return -1;
    if (w->left_out > before)
        wire_set_varint((uint8_t *)w->read.data + length_end, size - (w->left_out - before));
    return 0;
}

/* Passes what is small enough to be kept, as far as it was read and has a short head: nearly everything. */
static void pass_small(walker *w, uint64_t end)
{
    const uint8_t *at = w->window.data + w->at;
    uint64_t left = end - position(w), had = w->read.len - w->at;
    for (const uint8_t *stop = at + (left < had ? left : had); stop - at >= 3;) {
        if (at[0] < 8 || at[0] & 0x85 || (at[1] & at[2] & 0x80))
            break;
        const uint8_t *content = at + (at[1] < 0x80 ? 2 : 3);
        if (at[0] & 2) {
            size_t size = at[1] < 0x80 ? at[1] : (at[1] & 0x7fu) | (size_t)at[2] << 7;
            if (size > w->keep || size > (size_t)(stop - content))
                break;
            content += size;
        }
        at = content;
    }
    w->at = (size_t)(at - w->window.data);
}

static int walk(walker *w, wire_message kind, uint64_t end, int depth)
{
    for (pass_small(w, end); position(w) < end; pass_small(w, end)) {
        if (look(w, HEAD))
            return -1;
        wire_field f;
        const uint8_t *start = w->window.data + w->at;
        uint64_t left = end - position(w), had = w->read.len - w->at;
        wire_reader r = {&w->window, start, start + (left < had ? left : had)};
        if (wire_head(&r, &f, w->err))
            return -1;
        w->at += (size_t)(r.at - start);
        if (f.type == 0)
            continue;
        if (f.size > end - position(w))
            return wire_bad(&w->window, start, WIRE_TOO_LONG, w->err);
        const ProtobufCFieldDescriptor *field = wire_known(kind, f.number);
        if (field == w->mark)
            return wire_bad(&w->window, start, "a tensor has a field that is no file's", w->err);
        bool big = field && f.type == 2 && f.size > w->keep;
        wire_message child = big && depth < WIRE_MAX_DEPTH ? wire_child(kind, field) : NULL;
        if (big && kind == &onnx__tensor_proto__descriptor && wire_is_payload(field))
            leave_out(w, f.number, f.size);
        else if (child ? walk_child(w, child, f.size, depth + 1) : pass(w, f.size))
            return -1;
    }
    return 0;
}

int structure_read(int fd, uint64_t size, uint64_t keep, bz_buf *beginning, wire_bytes *out, bz_error *err)
{
    walker w = {.fd = fd, .size = size, .keep = keep > HEAD ? keep : HEAD, .read = *beginning, .err = err};
    w.mark = protobuf_c_message_descriptor_get_field_by_name(&onnx__tensor_proto__descriptor, "left_out");
    bz_buf_extend(&w.read, 0); /* never NULL */
    w.to = w.read.len;
    w.ahead = w.to > AHEAD ? w.to : AHEAD;
    set_window(&w);
    int failed = walk(&w, &onnx__model_proto__descriptor, size, 0);
    close_gap(&w);
    *out =
        (wire_bytes){.data = (uint8_t *)w.read.data, .size = w.read.len, .cuts = w.cuts, .n_cuts = w.n_cuts, .fd = fd};
    return failed;
}
