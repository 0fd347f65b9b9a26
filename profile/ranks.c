/* Several devices and several ranks: each by itself, and what they wait for each other. Ranks of one program were recorded on
 * clocks of their own, so times of two are never compared. What is compared is how long the same communication took: it ends for all of
 * them at once, so that a rank for which it took longer than for the fastest one came earlier and waited. */
#include "base/sort.h"
#include "profile/profile.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one device of one recording did; on a processor, one process. */
typedef struct {
    const bz_trace *trace;
    const char *profile;
    int64_t device; /* -1: a processor */
    int64_t process;
    uint32_t source;
    int64_t *list; /* how long each communication took, of the steady iterations, in their order */
    size_t n;
    int64_t span, busy, communicates, computes, waits;
    uint32_t steps;
} rank;

typedef struct {
    rank *rank;
    int n;
    bz_arena *arena;
} ranks;

static const double NS = 1e-9;

/* Communication on a host, by the prefix that PyTorch, gloo and MPI give it. c10d:: calls only ask for it. */
static bool communicates(const char *name)
{
    static const char *const PATTERNS[] = {"^gloo:", "^nccl:", "^mpi:", "^ucc:", "^MPI_"};
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++)
        if (bz_name_matches(PATTERNS[i], name))
            return true;
    return false;
}

static rank *find_rank(ranks *r, const bz_trace *t, const char *profile, const bz_lane *l)
{
    bool device = l->device;
    for (int i = r->n; i-- > 0;) {
        rank *k = &r->rank[i];
        if (k->trace == t && k->source == l->source && k->device == (device ? l->device_id : -1) &&
            (k->process == l->process || !l->process))
            return k;
    }
    enum { MOST = 4096 };
    if (r->n == MOST)
        return NULL;
    BZ_ARENA_ROOM(r->arena, r->rank, r->n);
    r->rank[r->n] = (rank){.trace = t,
                           .profile = profile,
                           .device = device ? l->device_id : -1,
                           .process = l->process,
                           .source = l->source};
    return &r->rank[r->n++];
}

typedef struct {
    int64_t start, end;
} interval;

BZ_SORTS(by_start, interval, BZ_THEN(BZ_ORDER(p->start, q->start), BZ_ORDER(p->end, q->end)));

static int64_t union_of(interval *v, size_t n)
{
    int64_t sum = 0, end = INT64_MIN;
    BZ_QSORT(v, n, by_start);
    for (size_t i = 0; i < n; i++) {
        if (v[i].end <= end)
            continue;
        sum += v[i].end - (v[i].start > end ? v[i].start : end);
        end = v[i].end;
    }
    return sum;
}

typedef struct {
    interval *v;
    size_t n;
} intervals;

static void add_interval(intervals *list, int64_t start, int64_t end)
{
    BZ_ADD(list->v, list->n) = (interval){start, end};
}

/* The parts of [start, end) that lie in steady iterations. Those do not overlap and ascend. */
static void add_steady(const bz_trace *t, intervals *list, int64_t start, int64_t end)
{
    uint32_t low = 0, high = t->n_iterations;
    /* the first iteration that ends behind the start */
    BZ_FIND_FIRST(low, high, middle, t->iteration[middle].end <= start);
    for (; low < t->n_iterations && bz_iteration_begin(t, low) < end; low++) {
        int64_t from = bz_iteration_begin(t, low), to = t->iteration[low].end;
        if (bz_iteration_is_steady(t, low) && start < to && from < end)
            add_interval(list, start > from ? start : from, end < to ? end : to);
    }
}

static bool is_of(const rank *k, const bz_trace *t, uint32_t lane)
{
    const bz_lane *l = &t->lane[lane];
    return l->source == k->source && (k->device < 0 ? !l->device : l->device && l->device_id == k->device) &&
           (l->process == k->process || !l->process);
}

static void gather(rank *k, bz_event_kind kind, intervals *compute, intervals *communication, bz_arena *arena)
{
    const bz_trace *t = k->trace;
    const bz_events *e = &t->event[kind];
    for (size_t i = 0; i < e->n; i++) {
        if (!is_of(k, t, e->lane[i]) || e->end[i] <= e->start[i])
            continue;
        bool talks = kind == BZ_EVENT_KERNEL ? bz_kernel_of(t, i)->does == BZ_KERNEL_COMMUNICATION
                                             : k->device < 0 && communicates(bz_string(t, e->name[i]));
        if (kind == BZ_EVENT_RANGE && !talks)
            continue;
        add_steady(t, talks ? communication : compute, e->start[i], e->end[i]);
        if (talks && bz_event_is_steady(t, kind, i))
            BZ_ARENA_ADD(arena, k->list, k->n) = e->end[i] - e->start[i];
    }
}

static void measure(rank *k, bz_arena *arena)
{
    static const bz_event_kind DEVICE[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY, BZ_EVENT_MEMSET},
                               HOST[] = {BZ_EVENT_CALL, BZ_EVENT_OP, BZ_EVENT_RANGE};
    const bz_trace *t = k->trace;
    intervals compute = {0}, communication = {0}, all = {0};
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i)) {
            k->span += bz_iteration_latency(t, i);
            k->steps++;
        }
    for (int i = 0; i < 3; i++)
        gather(k, (k->device < 0 ? HOST : DEVICE)[i], &compute, &communication, arena);
    for (size_t i = 0; i < compute.n; i++)
        add_interval(&all, compute.v[i].start, compute.v[i].end);
    for (size_t i = 0; i < communication.n; i++)
        add_interval(&all, communication.v[i].start, communication.v[i].end);
    k->computes = union_of(compute.v, compute.n);
    k->communicates = union_of(communication.v, communication.n);
    k->busy = union_of(all.v, all.n);
    free(compute.v);
    free(communication.v);
    free(all.v);
}

static void find_all(ranks *r, const bz_trace *t, const char *profile)
{
    static const bz_event_kind HOST[] = {BZ_EVENT_CALL, BZ_EVENT_OP};
    int first = r->n;
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    if (k->n) {
        for (size_t i = 0; i < k->n; i++)
            find_rank(r, t, profile, &t->lane[k->lane[i]]);
    } else {
        for (int kind = 0; kind < 2; kind++)
            for (size_t i = 0; i < t->event[HOST[kind]].n; i++) {
                const bz_lane *l = &t->lane[t->event[HOST[kind]].lane[i]];
                if (!t->source[l->source].log)
                    find_rank(r, t, profile, l);
            }
    }
    for (int i = first; i < r->n; i++)
        measure(&r->rank[i], r->arena);
}

/* The same communications in the same order, in the same number of steps? */
static bool comparable(const ranks *r)
{
    for (int i = 0; i < r->n; i++)
        if (!r->rank[i].n || r->rank[i].n != r->rank[0].n)
            return false;
    return r->n > 1;
}

static void find_waits(ranks *r)
{
    for (size_t c = 0; c < r->rank[0].n; c++) {
        int64_t least = INT64_MAX;
        for (int i = 0; i < r->n; i++)
            least = r->rank[i].list[c] < least ? r->rank[i].list[c] : least;
        for (int i = 0; i < r->n; i++)
            r->rank[i].waits += r->rank[i].list[c] - least;
    }
}

/* "rank 3": what the recording or the name of its file says; else the file. */
static const char *name_of(const rank *k, bz_arena *arena)
{
    const char *told = bz_trace_told(k->trace, "rank"), *at = strstr(k->profile, "rank");
    if (told)
        return bz_arena_printf(arena, "rank %s", told);
    for (; at; at = strstr(at + 1, "rank")) {
        const char *digits = at + 4 + (at[4] == '-' || at[4] == '_' || at[4] == ' ');
        if (isdigit((unsigned char)*digits))
            return bz_arena_printf(arena, "rank %ld", strtol(digits, NULL, 10));
    }
    return k->profile;
}

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : NAN;
}

/* "rank 2 is what others wait for …" */
static const char *tell(const ranks *r, bool waits, bz_arena *arena)
{
    const rank *slowest = NULL, *patient = NULL;
    double sum = 0;
    bz_unit_text a, b, c, d;
    for (int i = 0; i < r->n; i++) {
        const rank *k = &r->rank[i];
        double each = k->steps ? (double)k->computes / k->steps : 0;
        sum += each;
        if (!slowest || each > (double)slowest->computes / (slowest->steps ? slowest->steps : 1))
            slowest = k;
        if (!patient || k->waits > patient->waits)
            patient = k;
    }
    double mean = sum / r->n, most = slowest->steps ? (double)slowest->computes / slowest->steps : 0;
    const char *place = slowest->device >= 0 ? bz_arena_printf(arena, ", device %lld", (long long)slowest->device) : "";
    const char *text = bz_arena_printf(arena, "%s%s computes most: %s in each step, %s more than the mean of all %d.",
                                       name_of(slowest, arena), place, bz_units_time(a, most * NS),
                                       bz_units_percent(b, mean > 0 ? most / mean - 1 : 0), r->n);
    bool talks = false;
    for (int i = 0; i < r->n; i++)
        talks |= r->rank[i].communicates > 0;
    if (!talks)
        return text;
    if (!waits)
        return bz_arena_printf(
            arena, "%s Waits for communication are not known: the recordings do not hold the same communications.",
            text);
    if (!patient->waits)
        return bz_arena_printf(arena, "%s In communication none waits for another.", text);
    const rank *least = &r->rank[0];
    for (int i = 1; i < r->n; i++)
        least = r->rank[i].waits < least->waits ? &r->rank[i] : least;
    return bz_arena_printf(
        arena,
        "%s In communication %s waits longest, %s in each step, and %s least, %s: others wait for that one. A wait is "
        "by how much longer a communication took than for the rank for which it was shortest.",
        text, name_of(patient, arena),
        bz_units_time(c, patient->steps ? (double)patient->waits / patient->steps * NS : 0), name_of(least, arena),
        bz_units_time(d, least->steps ? (double)least->waits / least->steps * NS : 0));
}

bool bz_are_ranks(const bz_rank_profile *profile, int n)
{
    for (int i = 0; i < n; i++) {
        const bz_trace *t = profile[i].trace;
        const bz_events *k = &t->event[BZ_EVENT_KERNEL], *range = &t->event[BZ_EVENT_RANGE];
        bool talks = bz_trace_told(t, "rank") != NULL;
        for (size_t j = 0; j < k->n && !talks; j++)
            talks = bz_kernel_of(t, j)->does == BZ_KERNEL_COMMUNICATION;
        for (size_t j = 0; j < range->n && !talks; j++)
            talks = communicates(bz_string(t, range->name[j]));
        if (!talks)
            return false;
    }
    return n > 1;
}

bz_sheet *bz_ranks_sheet(const bz_rank_profile *profile, int n, bz_arena *arena)
{
    static const char COLUMNS[] =
        "rank|profile:-=recording|process:-|device:n|steps:n|step:s=step (mean)|busy:s|busy_share:%=of the step"
        "|idle:s|compute:s|communication:s|overlap:%=overlapped|wait:s=of it waits";
    bz_sheet *sheet =
        bz_sheet_new(arena, "ranks", "Ranks and devices, each by itself: means over its steady steps", COLUMNS);
    ranks r = {.arena = arena};
    for (int i = 0; i < n; i++) {
        bz_trace *whole = BZ_NEW(arena, bz_trace, 1);
        bz_iteration *span = BZ_NEW(arena, bz_iteration, 1);
        if (profile[i].trace->n_iterations)
            find_all(&r, profile[i].trace, profile[i].name);
        else if (bz_trace_whole(profile[i].trace, span, whole))
            find_all(&r, whole, profile[i].name);
    }
    if (r.n < 2)
        return sheet;
    bool waits = comparable(&r);
    if (waits)
        find_waits(&r);
    for (int i = 0; i < r.n; i++) {
        const rank *k = &r.rank[i];
        double each = k->steps ? NS / k->steps : NAN;
        int64_t both = k->computes + k->communicates - k->busy;
        const bz_sheet_cell row[] = {BZ_TEXT(name_of(k, arena)),
                                     BZ_TEXT(k->profile),
                                     BZ_TEXT(bz_arena_printf(arena, "%lld", (long long)k->process)),
                                     BZ_NUMBER(k->device >= 0 ? (double)k->device : NAN),
                                     BZ_NUMBER(k->steps),
                                     BZ_NUMBER((double)k->span * each),
                                     BZ_NUMBER((double)k->busy * each),
                                     BZ_NUMBER(share(k->busy, k->span)),
                                     BZ_NUMBER((double)(k->span - k->busy) * each),
                                     BZ_NUMBER((double)k->computes * each),
                                     BZ_NUMBER((double)k->communicates * each),
                                     BZ_NUMBER(share(both, k->communicates)),
                                     BZ_NUMBER(waits ? (double)k->waits * each : NAN)};
        bz_sheet_add(sheet, row, sizeof row / sizeof *row);
    }
    sheet->note = tell(&r, waits, arena);
    return sheet;
}
