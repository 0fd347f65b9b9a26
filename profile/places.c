/* Where calls read from. A layer's weights lie where they lie, so each step reads the same places as the one before, and one layer reads
 * others than the next: that tells steps from layers where nothing else does. Captures and logs of cuDNN and cuBLAS have addresses. */
#include "base/sort.h"
#include "profile/cuts.h"
#include "profile/sequence.h"

#include <stdlib.h>
#include <string.h>

enum { READ_1, READ_2, WRITTEN, ADDRESSES };
enum { READS = 1, READS_ONCE = 2 }; /* bits of an event: it reads a place; another one each time */

/* What the addresses of a call are called. Those of handles, streams and work spaces are not looked at. */
static const struct {
    const char *name;
    int which;
} NAMES[] = {
    {"wei", READ_2},   {"src", READ_1},   {"dst", WRITTEN}, /* oneDNN */
    {"a", READ_1},     {"b", READ_2},     {"c", WRITTEN},   /* BLAS */
    {"wData", READ_2}, {"xData", READ_1}, {"yData", WRITTEN}, {"x", READ_1},  {"w", READ_2},
    {"y", WRITTEN},    {"A", READ_1},     {"B", READ_2},      {"C", WRITTEN}, {"Adesc", READ_1},
};

static void read_addresses(const char *operands, uint64_t at[ADDRESSES])
{
    memset(at, 0, ADDRESSES * sizeof *at);
    for (const char *p = operands; *p;) {
        size_t n = strcspn(p, "= "), all = strcspn(p, " ");
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
            if (strlen(NAMES[i].name) == n && !memcmp(p, NAMES[i].name, n) && p[n] == '=')
                at[NAMES[i].which] = strtoull(p + n + 1, NULL, 16);
        p += all + (p[all] == ' ');
    }
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ b * 0x9e3779b97f4a7c15u) * 0xc2b2ae3d27d4eb4fu;
    return h ^ h >> 29;
}

typedef struct {
    uint64_t from, to;
} stretch;

static uint64_t parameter(const bz_trace *t, size_t call, const char *name)
{
    char text[32];
    uint64_t v = bz_call_parameter(t, call, name, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
    return v < UINT32_MAX ? v : 0;
}

/* Bytes of the result of a product; of other calls its first one. */
static uint64_t bytes_of(const bz_trace *t, size_t call)
{
    char text[8];
    bool rows = bz_call_parameter(t, call, "order", text, sizeof text);
    uint64_t n = parameter(t, call, "ldc") * parameter(t, call, rows ? "m" : "n");
    return n && n < UINT64_MAX / 64 ? 4 * n : 1;
}

BZ_SORTS(by_start, stretch, BZ_ORDER(p->from, q->from));

/* Makes stretches disjoint; returns how many are left. */
static size_t join(stretch *s, size_t n)
{
    size_t k = 0;
    qsort(s, n, sizeof *s, by_start);
    for (size_t i = 1; i < n; i++)
        if (s[i].from <= s[k].to)
            s[k].to = s[i].to > s[k].to ? s[i].to : s[k].to;
        else
            s[++k] = s[i];
    return n ? k + 1 : 0;
}

static bool is_within(const stretch *s, size_t n, uint64_t at)
{
    size_t low = 0, high = n;
    BZ_FIND_FIRST(low, high, middle, s[middle].from <= at);
    return low && at < s[low - 1].to;
}

void bz_sequence_places(const bz_trace *t, const bz_sequence *s, bz_work *w, bz_arena *arena)
{
    const uint32_t *operands = s->event->operands;
    size_t told = 0, n = 0;
    if (!operands || s->kind != BZ_EVENT_CALL)
        return;
    for (size_t i = 0; i < s->n; i++)
        told += operands[s->row[i]] != 0;
    if (2 * told < s->n || !told)
        return;
    uint64_t(*at)[ADDRESSES] = bz_alloc(s->n, sizeof *at), *symbol = bz_alloc(s->n, sizeof *symbol);
    BZ_FREED stretch *written = bz_alloc(s->n, sizeof *written);
    for (size_t i = 0; i < s->n; i++) {
        read_addresses(bz_string(t, operands[s->row[i]]), at[i]);
        if (at[i][WRITTEN])
            written[n++] = (stretch){at[i][WRITTEN], at[i][WRITTEN] + bytes_of(t, s->row[i])};
    }
    n = join(written, n);
    for (int k = 0; k < BZ_PLACES; k++) {
        for (size_t i = 0; i < s->n; i++) {
            bool known = at[i][k] && !is_within(written, n, at[i][k]);
            symbol[i] = known ? mix(at[i][k], bz_work_name(w, i)) | 1 : 0;
        }
        uint32_t *place = BZ_NEW(arena, uint32_t, s->n), zero = BZ_NONE;
        w->n_place[k] = bz_number_symbols(symbol, s->n, place);
        for (size_t i = 0; i < s->n && zero == BZ_NONE; i++)
            zero = symbol[i] ? BZ_NONE : place[i];
        w->place[k] = place;
        w->no_place[k] = zero;
    }
    free(symbol);
    free(at);
}

/* The places of events of one name, by one of their addresses, that nothing writes. Weights come in turns without an exception: as many events after a place as
 * there are places, it comes again. Activations do so at most once the allocator has settled, and then every few events. */
typedef struct {
    uint32_t events, distinct, first_gap;
    bool regular;
} group;

static void count_groups(const bz_work *w, int k, group *g)
{
    const uint32_t *place = w->place[k];
    BZ_FREED uint32_t *last = bz_zeroed((size_t)w->n_place[k] + 1, sizeof *last); /* events of its name up to it */
    memset(g, 0, w->n_name * sizeof *g);
    for (uint32_t i = 0; i < w->n_name; i++)
        g[i].regular = true;
    for (size_t i = 0; i < w->n; i++) {
        if (place[i] == w->no_place[k])
            continue;
        group *of = &g[bz_work_name(w, i)];
        uint32_t *seen = &last[place[i]], gap = ++of->events - *seen;
        if (!*seen)
            of->regular &= !of->first_gap; /* a new one behind the first turn */
        else if (!of->first_gap)
            of->first_gap = gap;
        else
            of->regular &= gap == of->first_gap;
        of->distinct += !*seen;
        *seen = of->events;
    }
}

BZ_SORTS(by_number, uint32_t, BZ_ORDER(*p, *q));

/* Marks the events whose call reads a place on this side, and those of calls that read another place each time. */
static void mark_once(const bz_work *w, int k, const group *g, uint8_t *mark)
{
    enum { LEAST_ONCE = 3 };
    for (size_t i = 0; i < w->n; i++)
        if (w->place[k][i] != w->no_place[k]) {
            const group *of = &g[bz_work_name(w, i)];
            mark[i] |= READS | (!of->first_gap && of->events >= LEAST_ONCE ? READS_ONCE : 0);
        }
}

/* Is each place read once by most of the calls that read any? A few calls whose inputs the allocator put elsewhere each time are a chance:
 * other calls of the same program then read their weights again. */
static bool are_read_once(const uint8_t *mark, size_t n)
{
    size_t reads = 0, once = 0;
    for (size_t i = 0; i < n; i++) {
        reads += (mark[i] & READS) != 0;
        once += (mark[i] & READS_ONCE) != 0;
    }
    return once && 2 * once >= reads;
}

uint32_t bz_turns_of_places(const bz_work *w)
{
    enum { LEAST_PLACES = 2, VOICES = 4 };
    if (!w->place[0] && !w->place[1])
        return 0;
    BZ_FREED group *g = bz_alloc((size_t)w->n_name + 1, sizeof *g);
    BZ_FREED uint8_t *mark = bz_zeroed(w->n + 1, sizeof *mark);
    uint32_t *turns = bz_alloc((size_t)BZ_PLACES * w->n_name + 1, sizeof *turns), n = 0, found = 0;
    for (int k = 0; k < BZ_PLACES; k++) {
        if (!w->place[k])
            continue;
        count_groups(w, k, g);
        mark_once(w, k, g, mark);
        for (uint32_t id = 0; id < w->n_name; id++)
            if (g[id].regular && g[id].first_gap == g[id].distinct && g[id].distinct >= LEAST_PLACES)
                turns[n++] = (g[id].events + g[id].distinct / 2) / g[id].distinct;
    }
    found = are_read_once(mark, w->n);
    qsort(turns, n, sizeof *turns, by_number);
    for (uint32_t i = 0, same = 0; i < n;
         i++) { /* the fewest that enough calls tell: what is in them repeats more often */
        same = i && turns[i] == turns[i - 1] ? same + 1 : 1;
        if (VOICES * same >= n) {
            found = turns[i];
            break;
        }
    }
    free(turns);
    return found;
}
