/* What the events of a Chrome trace become. The JSON's reader (chrome.c) fills one event after the other. */
#ifndef BZ_PROFILE_CHROME_H
#define BZ_PROFILE_CHROME_H

#include "profile/names.h"
#include "profile/trace.h"

#include <string.h>

#define BZ_CHROME_ABSENT INT64_MIN

typedef struct {
    char phase;
    int category; /* for the functions below; -1 unknown */
    uint32_t name;
    int64_t process, thread;
    uint32_t thread_name; /* of a thread that has no number */
    uint64_t id;          /* of a span that may cross others; 0: none */
    int64_t start, duration;
    int64_t occupancy, correlation, external, device, context, stream, bytes, address, registers, shared, graph,
        waited_record, waited_stream, step; /* device, both streams, step: or BZ_CHROME_ABSENT */
    bz_launched launched;                   /* registers and shared memory stand above */
    uint32_t label, operator;               /* args.name, args.op_name */
    int threads;                            /* that ONNX Runtime had for the node; 0 unknown */
    bool has_start;
    bool timed;       /* how long it took stood behind its name */
    uint32_t unknown; /* the category that it names, where that is none that is known */
    bool echo;        /* the device's side of something else, no work of its own */
} bz_chrome_event;

/* An open "B" event, or "b", which has an id. */
typedef struct {
    uint32_t lane, name;
    int category;
    int64_t start;
    uint64_t id; /* 0: the next "E" of its lane ends it */
} bz_chrome_open;

/* What the events of a process are that name no category. */
typedef struct {
    int64_t process, device; /* device: its number, or BZ_CHROME_ABSENT */
    uint32_t name;
} bz_chrome_process;

typedef struct bz_chrome_events {
    bz_trace *t;
    uint32_t source;
    bz_chrome_event e; /* the one that is being read */
    bz_buf detail;     /* its "inputs=… types=…" */
    const char *format;
    bz_chrome_open *open;
    uint32_t n_open;
    int64_t skipped[128]; /* by phase */
    int64_t unnamed_time; /* complete events without ts */
    int64_t negative;     /* complete events that end before they begin */
    bz_chrome_process *process;
    uint32_t n_processes;
    int *line; /* [n_lines] by lane of the host: 1 + the row of what its events are; 0 not looked at yet */
    uint32_t n_lines;
    bz_chrome_event
        *waiting; /* of a category that is not known, with numbers of others: what they are is told when all is read */
    size_t n_waiting;
    int64_t unknown;  /* events of such a category that nothing tells of */
    uint32_t example; /* such a category */
    int threads;      /* the most of any event; 0 unknown */
    bz_names categories;
} bz_chrome_events;

void bz_chrome_events_begin(bz_chrome_events *r); /* `t`, `source` and `format` are set, all else is zero */

void bz_chrome_event_begin(bz_chrome_events *r);
void bz_chrome_event_end(bz_chrome_events *r); /* adds it to the trace */

/* The event's category, by its name, or by that of its process. */
void bz_chrome_categorize(bz_chrome_events *r, const char *s, size_t n);
void bz_chrome_categorize_process(bz_chrome_events *r, const char *s, size_t n);

/* "regs:32 … grid:8,1,1 block:128,1,1 …" and "kind_src:pinned … size:602112 …", as TensorFlow and JAX tell of kernels and copies. */
void bz_chrome_details(bz_chrome_event *e, const char *s, size_t n);

/* How much of a name is the name. */
size_t bz_chrome_name(bz_chrome_event *e, const char *s, size_t n);

/* The number of a process or thread that is written as text. */
int64_t bz_chrome_number(bz_chrome_events *r, const char *s, size_t n, uint32_t *name);

static inline bool bz_chrome_same(const char *name, const char *s, size_t n) /* name: NULL is no name */
{
    return name && n && *name == *s && strlen(name) == n && !memcmp(name, s, n);
}

/* An identifier, 0 where it is none. */
uint32_t bz_chrome_id(int64_t v);

/* Says what was left out, and frees. */
void bz_chrome_events_end(bz_chrome_events *r);

#endif
