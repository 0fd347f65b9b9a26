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
 *   throttled  whether the device lowered its clock while the session measured; NULL: nobody knows
 *   device     what it runs on, where that is not the processor; the one function that is called in a
 *              process of its own, so that the parent can still fork
 *   poison     results are filled with what no correct variant leaves behind
 *   read       the result in plain layout as float
 *   release, close
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
    const float *const *value; /* [n_operands]; NULL for the result */
    int copies;                /* of each operand; 1 when hot. A variant's call i uses copy i % copies */
    bool placed;               /* operands without values lie where `bind` says; else only the result has none */
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
    bool chosen;        /* the library's own first pick for this problem and layout */
    bool reference;     /* the library's reference implementation: skipped while there is another */
    double workspace;   /* bytes; known after prepare */
    const char *timing; /* where `measure` had to time in another way than the backend says; else NULL */
    void *state;        /* the backend's, of prepare */
} bz_variant;

typedef struct bz_variant_list {
    bz_variant *item;
    int n, cap;
} bz_variant_list;

/* Adds a variant of the session with names filled in; the pointer holds until the next call. */
bz_variant *bz_variant_add(bz_variant_list *list, const bz_backend *backend, void *session, const char *layout,
                           const char *math);

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
    bool (*throttled)(void *session);
    int (*device)(bz_device *out, bz_error *err);
    int (*poison)(bz_variant *v);
    int (*read)(bz_variant *v, float *values, bz_error *err);
    void (*release)(bz_variant *v);
    void (*close)(void *session);
    /* For jobs that are `placed`; NULL: the backend replays nothing. Formats are compared by `same`; a converter
     * brings a tensor from one to the other, either of which may be NULL. `residual` is the operand that the
     * result's memory must hold before the call, -1 for none. */
    int (*wants)(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
    int (*bind)(bz_variant *v, int operand, void *at);
    int (*residual)(const bz_variant *v);
    bool (*same)(const void *format, const void *other);
    int (*converter)(const void *from, const void *to, bz_converter **out, bz_error *err);
    int (*convert)(bz_converter *c, void *from, void *to);
    void (*converter_free)(bz_converter *c);
};

/* A library may offer two implementations under one name: from `first` on the second is called #2. */
void bz_variant_tell_apart(bz_variant_list *list, int first);

/* Memory for the operand number `index` of a benchmark, page-aligned, on huge pages where there are any: so that it
 * lies in the caches in the same way in every run. NULL where there is none. */
void *bz_place(size_t size, int index);
void bz_unplace(void *at); /* NULL is fine */

/* The backends built in, ends with NULL. */
extern const bz_backend *const bz_builtin_backends[];
extern const bz_backend bz_backend_onednn, bz_backend_cblas, bz_backend_memory;

/* The instruction sets that oneDNN will use, and those of the processor that matter to it. */
void bz_onednn_isa(char *out, size_t size);

/* Fills in cores, caches, memory and instruction sets. */
void bz_processor_look(bz_machine *s);
void bz_processor_versions(bz_buf *out); /* appends what looks at them: " hwloc2.9.0" */

/* Finds a backend among those given; failing that, and only for built-in ones, a module
 * benanza-NAME.so beside the program or in the folder $BENANZA_MODULES, whose symbol `bz_backend_module`
 * is the struct. NULL with err filled where there is none. */
const bz_backend *bz_backend_find(const bz_backend *const *backends, const char *name, bz_error *err);

#endif
