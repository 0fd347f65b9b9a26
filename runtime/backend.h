/* backend: what a library must offer to be benchmarked. A folder here (onednn/, cblas/, memory/) or
 * a loadable module implements this struct of functions; everything else (data, checking, timing,
 * records) is common. All functions run in the child process.
 *
 *   open       one problem: look at it, keep what all its variants share
 *   enumerate  which variants are there of this layout and math mode
 *   prepare    operands brought into the variant's layout, weights packed, kernels made
 *   execute    one call, asynchronous where the device is; wait ends all that were begun
 *   measure    n calls by the device's own clock; NULL: the wall clock around execute and wait
 *   trace      which kernels a call runs; NULL: it has none, or nobody can tell
 *   count      what a call makes the device's counters count; NULL: it has none
 *   clock      whether the device had lowered its clock when the session measured last, and which clock it had (Hz; left
 *              as it is where nobody knows); NULL: nobody knows either
 *   device     what it runs on, where that is not the processor; called in a process of its own, so that the parent
 *              can still fork
 *   rates      behind it, there: measures what bz_device has of copies and pauses; NULL: `device` has told it
 *   lock       holds the device's clock at so many Hz, and with 0 lets it go; in a process of its own; NULL: nobody can
 *   poison     results are filled with what no correct variant leaves behind
 *   read       the result in plain layout as float
 *   probe      some elements of it, by their numbers in plain layout, where all of it are numbers (0); 1 where not, or where
 *              that cannot be told: then it is read; NULL: it is read
 *   read_operand  one of several results; NULL: the backend runs no problem with several
 *   release, close
 *   ahead      makes what a family will need and is kept in setting->plans (compiled plans), before it is measured; called in
 *              processes that measure nothing, beside the one that does; NULL: nothing takes long enough
 *
 * Functions return 0 or -1 and fill err with the library's own reason. */
#ifndef BZ_BACKEND_H
#define BZ_BACKEND_H

#include "runtime/runtime.h"

typedef struct bz_backend bz_backend;
typedef struct bz_converter bz_converter;

/* One problem as backends see it. Values are float in plain layout whatever the data type: they
 * are rounded to the data type already, so converting them loses nothing. */
typedef struct bz_job {
    const bz_problem *problem;
    const bz_run_setting *setting;
    int n_operands;
    const bz_operand *operand; /* [n_operands], the result last */
    const float *const *value; /* [n_operands]; NULL for results */
    int copies;                /* of each operand; 1 when hot. A variant's call i uses copy i % copies */
    bool placed;               /* operands without values lie where `bind` says; else only the result has none */
    void *stream;              /* of a replay's device (bz_device_ops); NULL: the session has its own */
    float epsilon;             /* of normalizations; 0: the usual 1e-5 */
} bz_job;

/* How a backend wants an operand to lie. */
typedef struct bz_place_wanted {
    size_t bytes;       /* 0: the variant does not touch it */
    const void *format; /* the backend's own, valid while the session is open; NULL: row-major */
} bz_place_wanted;

enum { BZ_OPERAND_SCRATCH = -2 }; /* what `bind` calls the variant's workspace */

typedef struct bz_variant {
    const bz_backend *backend;
    void *session; /* of open */
    int index;     /* the backend's own number for it */
    char algorithm[160], layout[16], math[16];
    bool chosen;          /* the library's own first pick for this problem and layout */
    bool chosen_training; /* what it picks where it is asked as for training */
    bool reference;       /* an implementation by the definition: skipped while there is another */
    bool waits;           /* its calls wait for another thread or a disk: time without a processor is theirs */
    double workspace;     /* bytes; known after prepare */
    const char *timing;   /* where `measure` had to time in another way than the backend says; else NULL */
    void *state;          /* the backend's, of prepare */
} bz_variant;

typedef struct bz_variant_list {
    bz_variant *item;
    int n;
} bz_variant_list;

/* Adds a variant of the session with names filled in; the pointer holds until the next call. */
bz_variant *bz_variant_add(bz_variant_list *list, const bz_backend *backend, void *session, const char *layout,
                           const char *math);

/* What a replay needs of the device that its calls run on: memory, and streams in which work is queued up, each behind
 * what the stream has already. Backends whose device has the same name share it. The processor is one, too
 * (runtime/replay_device.c): it has one stream, and what is queued has run when the function returns; what it does not
 * need is NULL. Functions return 0, or -1 where the device fails. */
typedef struct bz_device_ops {
    const char *name;
    size_t align; /* of what lies in memory, bytes */
    int (*open)(const bz_run_setting *setting, int streams, void **device, bz_error *err);
    void (*close)(void *device);
    void *(*stream)(void *device, int stream); /* what a job takes */
    /* Zeroed memory of the device, or of the host where the device copies from and to; NULL: there is not enough. */
    void *(*alloc)(void *device, size_t size, bool host);
    void (*free)(void *device, void *at, bool host);
    int (*copy)(void *device, int stream, void *to, const void *from, size_t size); /* on and between both sides */
    int (*host)(void *device, int stream, void (*function)(void *context), void *context); /* run by the processor */
    /* Order between streams: what is queued behind `follow` waits for what stood before `mark` when it was set last. */
    int (*mark)(void *device, int stream, int mark);
    int (*follow)(void *device, int stream, int mark);
    /* Time: a reading when the stream comes to it; seconds between two that were passed. */
    int (*read)(void *device, int stream, int reading);
    int (*seconds)(void *device, int from, int to, double *out);
    int (*wait)(void *device); /* until all streams are empty */
    /* From hold on nothing runs that is queued; release lets it, and waits. 1: the device gave up waiting before, so that
     * its times say nothing. */
    int (*hold)(void *device);
    int (*release)(void *device);
    /* Between begin and end what is queued, from stream 0 on, is captured as a graph instead; launch queues that up. */
    int (*begin)(void *device, bz_error *err);
    int (*end)(void *device, bz_error *err);
    int (*launch)(void *device);
    bool (*throttled)(void *device); /* now */
} bz_device_ops;

struct bz_backend {
    const char *name;
    const char *timing;           /* what `measure` times by: "wall", "event-pair", "device" */
    const char *smallest;         /* the text of a problem that is as good as none: prices an empty call */
    void (*version)(bz_buf *out); /* "onednn2.6.3" */
    int (*open)(const bz_job *job, void **session, bz_error *err);
    int (*enumerate)(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why);
    int (*prepare)(bz_variant *v, bz_error *err);
    int (*execute)(bz_variant *v, int copy);
    int (*wait)(bz_variant *v); /* NULL: execute has finished when it returns */
    int (*measure)(bz_variant *v, int64_t n, int first_copy, double *seconds);
    int (*trace)(bz_variant *v, bz_trace *out, bz_error *err);
    int (*count)(bz_variant *v, const char *list, bz_counted *out, bz_error *err);
    bool (*clock)(void *session, double *hz);
    int (*device)(bz_device *out, bz_error *err);
    void (*rates)(bz_device *out);
    int (*lock)(double hz, bz_error *err);
    int (*poison)(bz_variant *v);
    int (*read)(bz_variant *v, float *values, bz_error *err);
    int (*probe)(bz_variant *v, const int64_t *element, int n, float *values, bz_error *err);
    int (*read_operand)(bz_variant *v, int operand, float *values, bz_error *err);
    void (*release)(bz_variant *v);
    void (*close)(void *session);
    /* For jobs that are `placed`; NULL: the backend replays nothing. Formats are compared by `same`; a converter
     * brings a tensor from one to the other, either of which may be NULL, on a stream of the replay's device. `residual` is
     * the operand that the result's memory must hold before the call, -1 for none; NULL: never one. */
    int (*wants)(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
    int (*bind)(bz_variant *v, int operand, void *at);
    int (*residual)(const bz_variant *v);
    bool (*same)(const void *format, const void *other);
    int (*converter)(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err);
    int (*convert)(bz_converter *c, void *from, void *to);
    void (*converter_free)(bz_converter *c);
    const bz_device_ops *ops; /* of the device that a replay's calls run on; NULL: the processor */
    void (*ahead)(const bz_job *job, const char *layout, const char *math);
};

/* A library may offer two implementations under one name: from `first` on the second is called #2. */
void bz_variant_tell_apart(bz_variant_list *list, int first);

/* Memory for the operand number `index` of a benchmark, page-aligned, on huge pages where there are any: so that it
 * lies in the caches in the same way in every run. NULL where there is none. */
void *bz_place(size_t size, int index);
/* To be freed. What is large lies on huge pages: a page fault for each 2 MiB instead of each 4 KiB. NULL: there is not enough. */
void *bz_large(size_t size);
void bz_unplace(void *at); /* NULL is fine */
/* Takes all that is placed out of the caches. false: the processor has nothing for that. */
bool bz_place_flush(void);

/* The backends built in, ends with NULL. */
extern const bz_backend *const bz_builtin_backends[];

/* The instruction sets that oneDNN will use, and those of the processor that matter to it. */
void bz_onednn_isa(char *out, size_t size);

/* Fills in cores, caches, memory and instruction sets. */
void bz_processor_look(bz_machine *s);
void bz_processor_versions(bz_buf *out); /* appends what looks at them: " hwloc2.9.0" */

/* Whether a name that a person gave is one of a backend, or of a module that is there; else says which there are. */
int bz_backend_check(const char *name, bz_error *err);

/* Finds a backend among those given; failing that, and only for built-in ones, a module
 * benanza-NAME.so beside the program or in the folder $BENANZA_MODULES, whose symbol `bz_backend_module`
 * is the struct. NULL with err filled where there is none. */
const bz_backend *bz_backend_find(const bz_backend *const *backends, const char *name, bz_error *err);

#endif
