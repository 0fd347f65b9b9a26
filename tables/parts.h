/* What the tables share. Private to tables/. */
#ifndef BZ_TABLES_PARTS_H
#define BZ_TABLES_PARTS_H

#include "tables/tables.h"

/* What work of a device is for. HTA tells it by names ("ncclKernel", "Memcpy", "Memset"); the table of kernels' names knows
 * more libraries that communicate. */
typedef enum { WORK_COMPUTE, WORK_COMMUNICATION, WORK_MEMORY } work_class;
enum { WORK_CLASSES = WORK_MEMORY + 1 };

struct bz_tables {
    const bz_trace *t, *against;
    bz_arena *arena;
    int64_t from, to;                /* only what was asked for in [from, to] */
    uint32_t *device;                /* [lanes] number of its device; BZ_NONE: a thread of the host */
    uint32_t n_devices, *first_lane; /* [devices] a lane of each */
    uint8_t *class;                  /* [strings] 1 + work_class of a kernel of that name; 0: not asked yet */
    uint32_t *short_name;            /* [strings] of a kernel's full name; NULL: nobody asked yet */
    bz_name_answers launches;        /* calls that launch */
};

/* ---- events: window.c ---- */

/* When the host asked for an event: work of a device when it was launched, where that is known. */
int64_t tables_asked(const bz_tables *m, bz_event_kind kind, size_t i);
bool tables_in(const bz_tables *m, bz_event_kind kind, size_t i);
/* The runtime call that launched work of a device: its index, or BZ_NONE. */
uint32_t tables_cause(const bz_tables *m, bz_event_kind kind, size_t i);

/* The innermost operator around an event: its index, or BZ_NONE. */
static inline uint32_t tables_op(const bz_tables *m, bz_event_kind kind, size_t i)
{
    const uint32_t *op = m->t->event[kind].op;
    return op ? op[i] : BZ_NONE; /* a summary without operators has no column of them */
}

/* Of n kinds of events, of which next[k] are passed, that with the one which starts first; -1: all are passed. */
int tables_earliest(const bz_trace *t, const bz_event_kind *kind, int n, const size_t *next);

/* All work of devices, by start: `for (work w = {0}; tables_next(m, &w);)`. */
typedef struct work {
    bz_event_kind kind;
    size_t i; /* the event */
    int64_t start, end;
    uint32_t lane;
    size_t next[3]; /* of each kind */
} work;
bool tables_next(const bz_tables *m, work *w);
work_class tables_class(bz_tables *m, const work *w);
const char *tables_class_name(work_class class);

/* "2", or, where several files were read, "2 of rank1.json" */
const char *tables_device(const bz_tables *m, uint32_t device);
const char *tables_stream(const bz_tables *m, uint32_t lane);

/* The name of an event, short where it is a kernel's. */
const char *tables_shown(bz_tables *m, bz_event_kind kind, uint32_t name);

/* "ProfilerStep#3": of one iteration alone, and around all of its layers. */
bool tables_is_numbered(const char *name);

/* The call by which the host handed a device this one piece of work, which then waited in a queue: its index, or BZ_NONE. */
uint32_t tables_launch(bz_tables *m, const work *w);

static inline double tables_seconds(int64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}
static inline double tables_share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

/* ---- directions of copies and fills: bandwidth.c ---- */

enum { FILL = 11, DIRECTIONS = 12 }; /* behind CUPTI's directions of copies, of which 0 is not known */
uint32_t tables_direction(const bz_tables *m, bz_event_kind kind, size_t i);
const char *tables_direction_name(uint32_t direction);

/* ---- figures: figures.c ---- */

/* Of the values of one group. The deviation is that of a sample (divided by n - 1; 0 of one value), quartiles lie between
 * values, both as HTA and nsys have them. */
typedef struct figures {
    uint64_t key;
    int64_t count;
    double sum, mean, deviation, min, quarter, median, three_quarters, max;
} figures;
figures figures_of(double *values, size_t n); /* sorts them */
/* The same of whole numbers, of which many are equal: count[i] times `least` + i. */
figures figures_of_counts(const uint64_t *count, size_t n, int64_t least);

/* Values by key, then figures of each key, the greatest sum first. */
typedef struct groups {
    bz_map map; /* key -> its number */
    uint64_t *key;
    uint32_t n;
    uint32_t *of; /* [values] number of its group */
    double *value;
    size_t n_values, cap_values;
    bz_arena *arena;
} groups;
void groups_begin(groups *g, bz_arena *arena);
void groups_add(groups *g, uint64_t key, double value);
figures *groups_end(groups *g, uint32_t *n); /* in the arena; frees the rest */

/* ---- what fills the tables ---- */

typedef void fills(bz_tables *m, bz_sheet *s);
fills fill_temporal, fill_overlap, fill_types, fill_idle, fill_kernels, fill_api, fill_calls, fill_copies, fill_sizes,
    fill_bandwidth, fill_bandwidth_series, fill_queue, fill_queue_series, fill_launches, fill_operators, fill_ranges,
    fill_range_tree, fill_sequences, fill_followers, fill_difference, fill_model, fill_layers, fill_layer_types,
    fill_stages, fill_layer_kernels, fill_kernel_list, fill_kernel_names, fill_critical, fill_critical_events,
    fill_critical_steps, fill_training, fill_training_kernels, fill_training_memory, fill_training_checks;

#endif
