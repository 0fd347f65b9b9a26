/* The parts of a trace that only profile/ sees. */
#ifndef BZ_PROFILE_TRACE_H
#define BZ_PROFILE_TRACE_H

#include "profile/profile.h"

/* How long some device had worked before the next event of its kinds: one of these for each so many events. */
enum { BZ_BUSY_STEP = 64 };
typedef struct bz_busy {
    uint32_t at[3]; /* the next kernel, copy, memory set */
    int64_t start;  /* of the first of these */
    int64_t until,
        sum; /* the end of the last of those before, and how long they last, counted once where they overlap */
} bz_busy;

typedef enum { BZ_API_OTHER, BZ_API_LAUNCHES, BZ_API_WAITS } bz_api; /* what a call of the runtime does */

/* How many pages the system had handed to a process at that time. */
typedef struct bz_page_count {
    int64_t process, at, taken;
} bz_page_count;

struct bz_trace_private {
    const char **strings; /* [n_strings], in the arena */
    uint32_t n_strings, cap_strings;
    bz_map string_ids;

    bz_map lanes;
    uint32_t last_lane[2]; /* of the host, of devices: events of one lane come in a row, or in turns with a device's */
    int64_t last_key[2][7];

    uint32_t *frames; /* [n_frames] strings, innermost first */
    size_t n_frames;
    uint32_t *stacks; /* [n_stacks + 1] first frame of each */
    uint32_t n_stacks;
    bz_map stack_ids;

    uint32_t near;      /* the iteration that was found last: the next event mostly lies in it, too */
    int64_t lag, early; /* at most so long behind, before its launch did a device's work begin; early: clocks differ */
    int64_t marked_start, marked_end; /* of the only iteration, where it is the device's own step; else 0 */
    int64_t ahead;    /* how long before its work the host launched it, the median, where `ran_decides` */
    bool ran_decides; /* launches of much work are not on record, and the host ran far ahead with the others */
    bz_busy *busy;    /* [n_busy], of its own memory, ascending */
    size_t n_busy;
    const bz_launched **launched; /* [n_launched], each once, in the arena; the first: nothing is told */
    uint32_t n_launched, last_launched;
    bz_map launched_ids;
    uint32_t *short_name; /* [n_short] by the full name of a kernel, BZ_NONE: of none; of its own memory */
    uint32_t n_short;
    uint32_t *spare; /* [n_spare] a column of which nobody asks again */
    size_t n_spare;
    int64_t wall;         /* of the captured program, nanoseconds; 0 unknown */
    bz_page_count *taken; /* [n_taken], of its own memory, in the order of the files that a capture left */
    size_t n_taken;
    double page_cost; /* seconds for a page that is handed out anew, on the machine of the capture; 0: not measured */

    bz_map call_ids;     /* name and detail -> call */
    bz_call **calls;     /* in the order they were asked for */
    bz_map operator_ids; /* detail -> operator */
    bz_operator **operators;
    bz_kernel **kernels; /* [cap_kernels] by name */
    uint32_t cap_kernels;
    bz_name_answers apis;
    uint32_t last_api; /* the name that was asked for last, and the answer; zeroed: "" does something other */
    bz_api last_api_does;
    bz_arena read_arena; /* of these */

    uint32_t concluded, concluded_end; /* rows of the coverage that bz_trace_finish finds again in what was saved */
};

uint32_t bz_stacks(const bz_trace *t);
uint32_t bz_trace_known_thread(const bz_trace *t, uint32_t source, int64_t process,
                               int64_t thread); /* BZ_NONE: not seen */
/* As bz_trace_add, without the name, for n neighbouring rows of one lane; the first one's index. */
size_t bz_trace_add_rows(bz_trace *t, bz_event_kind kind, const int64_t *start, const int64_t *end, int n,
                         uint32_t lane);
/* Makes room for so many more rows at once; fewer may come. */
void bz_trace_expect(bz_trace *t, bz_event_kind kind, uint64_t rows);
void bz_trace_source_format(bz_trace *t, uint32_t source, const char *format);

/* Which library function a name means: rules.c. */
bool bz_call_executes(const char *function);
bool bz_call_multiplies(const char *function);
bz_api bz_api_named(const bz_trace *t, uint32_t name);
static inline bz_api bz_api_of(const bz_trace *t, size_t api)
{
    uint32_t name = t->event[BZ_EVENT_API].name[api];
    return name == t->private->last_api ? t->private->last_api_does : bz_api_named(t, name); /* launches come in rows */
}
bz_library bz_library_of(const char *function);
uint32_t bz_copy_named(const char *name); /* which direction, as `value` of a copy has it; 0: none is told */
uint32_t bz_wait_named(const char *name); /* what for, as `value` of a wait has it */

/* A name of which many patterns are asked, and which letters stand in a row in it. */
enum { BZ_NAME_PAIRS = 4096 };
typedef struct bz_paired_name {
    const char *name;
    uint64_t pairs[BZ_NAME_PAIRS / 64]; /* bits by hash */
} bz_paired_name;
bz_paired_name bz_name_paired(const char *name);
bool bz_paired_name_matches_any(const char *patterns, const bz_paired_name *name); /* as bz_name_matches_any */

/* Names of kernels, as strings: without parameters and templates, but with what tells kernels of one template apart; as a person
 * wrote it: kernel_name.c. */
uint32_t bz_trace_short_name(bz_trace *t, uint32_t name);
static inline uint32_t bz_kernel_shown(const bz_trace *t, uint32_t name)
{
    const struct bz_trace_private *p = t->private;
    return name < p->n_short && p->short_name[name] != BZ_NONE ? p->short_name[name] : name;
}
void bz_trace_name_kernels(bz_trace *t); /* gives all kernels their short names */
size_t bz_kernel_head(const char *name); /* bytes before the list of parameters */
uint32_t bz_trace_demangled(bz_trace *t, uint32_t name);

/* Adds a time, at least 0. The times of a file that lies may sum up to more than there is: they stay there. */
static inline void bz_time_add(int64_t *sum, int64_t time)
{
    if (__builtin_add_overflow(*sum, time, sum))
        *sum = INT64_MAX;
}

/* Logs count in ticks, some in seconds: calls of one tick stay in the order of the file, a nanosecond apart. A call of which the log
 * tells no time is behind the one before. */
static inline int64_t bz_time_behind(int64_t *last, int64_t time)
{
    if (time <= *last && (!time || *last - time < 2000000000))
        time = *last + (*last < INT64_MAX);
    return *last = time;
}

/* anew.c */
/* Seconds to take a page from the system, write to it and give it back: the median of some tries. 0: there is none to take. */
double bz_page_cost(void);
void bz_trace_taken(bz_trace *t, int64_t process, int64_t at, int64_t taken);
void bz_trace_tell_pages(bz_trace *t); /* as a fact, which bz_trace_anew reads */

/* Is it told with the iterations, and saved with them? */
static inline bool bz_tells_iterations(bz_lack lack)
{
    return lack == BZ_LACKS_ITERATIONS || lack == BZ_LACKS_ITERATIONS_OPEN || lack == BZ_LACKS_ITERATIONS_REST;
}

/* The passes of bz_trace_finish, in their order. */
void bz_trace_merge_logs(bz_trace *t); /* merge.c */
void bz_trace_link(bz_trace *t);       /* link.c */
/* Of the passes above: sets `cause` of what ran on devices; puts a log's calls onto the timeline of the same run, which
 * has launches but none of the library's calls. False where the two don't fit, and nothing is changed. */
void bz_trace_find_causes(bz_trace *t); /* link.c */
void bz_trace_find_order(bz_trace *t);  /* link.c: whether launches decide to which iteration work belongs */
bool bz_trace_tie_log(bz_trace *t, bz_library library); /* tie.c */
/* iterations.c; fails where those that were asked for are not there, which `coverage` has as well. */
int bz_trace_find_iterations(bz_trace *t, const char *range_name, bz_error *err);
void bz_trace_find_phases(bz_trace *t);   /* phases.c: prompts and tokens */
void bz_trace_end_with_work(bz_trace *t); /* stats.c: the only iteration, where a device is behind */
/* The calls that decide to which iteration work of a device belongs, rows of those of the runtime; NULL: when it ran does. */
static inline const uint32_t *bz_causes(const bz_trace *t, const bz_events *e)
{
    return t->private->ran_decides ? NULL : e->cause;
}
/* Where it stands when the host asked for events of a kind, for passes over all of them. */
typedef struct bz_asked {
    const uint32_t *cause;
    const int64_t *launched, *start;
} bz_asked;
static inline bz_asked bz_asked_of(const bz_trace *t, const bz_events *e)
{
    return (bz_asked){bz_causes(t, e), t->event[BZ_EVENT_API].start, e->start};
}
/* When the host asked for an event: work of a device when it was launched, where that is known. */
static inline int64_t bz_asked_when(const bz_asked *a, size_t i)
{
    return a->cause && a->cause[i] != BZ_NONE ? a->launched[a->cause[i]] : a->start[i];
}
static inline int64_t bz_asked_at(const bz_trace *t, const bz_events *e, size_t i)
{
    const bz_asked a = bz_asked_of(t, e);
    return bz_asked_when(&a, i);
}

/* For passes over all events: the iteration that was found last, and the times that are in it, too. Zeroed it knows none. */
typedef struct bz_cursor {
    int64_t from, to;
    uint32_t iteration; /* BZ_NONE: between iterations */
    bool steady;
} bz_cursor;
void bz_cursor_move(bz_cursor *c, const bz_trace *t, int64_t at);
static inline uint32_t bz_cursor_to(bz_cursor *c, const bz_trace *t, int64_t at)
{
    if (at < c->from || at >= c->to)
        bz_cursor_move(c, t, at);
    return c->iteration;
}
static inline uint32_t bz_cursor_at(bz_cursor *c, const bz_trace *t, const bz_events *e, size_t i)
{
    return bz_cursor_to(c, t, bz_asked_at(t, e, i));
}
void bz_trace_find_busy(bz_trace *t); /* stats.c: when devices worked */
/* stats.c: how far from its launch a device's work begins: late where it queued, early where the clocks differ. */
void bz_trace_find_lag(bz_trace *t);

/* The repeating part of a sequence of which nothing but symbols is known: choose.c. Iteration i of the result is
 * symbol[first[i]] … symbol[first[i + 1] - 1]. Returns how many there are, 0 where nothing repeats. `pause` (may be NULL): how long
 * nothing happened before each event. */
uint32_t bz_find_period(const uint64_t *symbol, size_t n, const int64_t *pause, uint32_t **first, bz_arena *arena);

#endif
