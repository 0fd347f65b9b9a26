/* onednn: layers become primitives. Private to this folder.
 *
 *   dnn.h      the library's interface, the same over its versions
 *   lower.c    a problem becomes alternatives of stages: which primitives, which arguments
 *   onednn.c   operands in the layout that an implementation wants, execution
 *   lower_gradient.c  those of a backward pass
 *   lower_rnn.c  recurrent layers, forward and backward
 *   place.c    operands in memory of the caller's, and what brings them from one format to another
 */
#ifndef BZ_ONEDNN_H
#define BZ_ONEDNN_H

#include "runtime/backend.h"
#include "runtime/onednn/dnn.h"

enum { MAX_STAGES = 3, MAX_ARGS = 72, MAX_RESULTS = 8, TEMPORARY = -1, SCRATCHPAD = -2, SCALE = -3 };

/* An argument of a primitive: which operand it is, and how the operand's values, which lie in
 * row-major order, are to be read in the primitive's dimensions. */
typedef struct argument {
    int arg;     /* DNNL_ARG_… */
    int operand; /* index in the job; or TEMPORARY: passes from one stage to the next; or SCALE */
    int rank;
    int64_t dims[DNN_MAX_RANK], strides[DNN_MAX_RANK];
} argument;

typedef struct stage {
    dnn_impls impls;
    argument args[MAX_ARGS];
    int n_args;
} stage;

/* One way to run a problem. With one stage each of its implementations is a variant, with several the
 * library's first picks together are one. */
typedef struct alternative {
    const char *prefix, *suffix; /* around the implementation's name */
    stage stages[MAX_STAGES];
    int n_stages;
    char favourite[64]; /* the implementation that the library's heuristic takes; "" where it has none */
    bool in_place;      /* a residual is added to what the result's memory holds */
    bool adds;          /* gradients of weights and bias are, so that these are set to 0 in each call */
    stage first; /* where it has arguments: fills once, before anything is measured, what is kept for the stages */
} alternative;

typedef struct session {
    const bz_job *job;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnn_heap heap;
    alternative **alternatives;
    int n_alternatives;
    bool training; /* alternatives are now asked for as training is */
    struct buffer *buffers;
    int n_buffers;
} session;

/* The copies of one operand in one layout. Variants that want the same share it. */
typedef struct buffer {
    argument seen; /* which operand, and how it is seen */
    dnn_md md;
    size_t size, step; /* of a copy; from one to the next */
    char *data;
    dnnl_memory_t *memory; /* [copies] */
    int copies;
} buffer;

/* A variant made ready. */
typedef struct prepared {
    const alternative *alternative;
    dnnl_primitive_t primitive[MAX_STAGES];
    dnnl_exec_arg_t *args[MAX_STAGES]; /* [copies][n_args] */
    int n_args[MAX_STAGES];
    struct {
        const argument *seen; /* how a result is bound, and where it lies */
        int buffer;
    } result[MAX_RESULTS];
    int n_results;
} prepared;

int bz_onednn_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
int bz_onednn_bind(bz_variant *v, int operand, void *at);
int bz_onednn_residual(const bz_variant *v);
bool bz_onednn_same(const void *format, const void *other);
int bz_onednn_converter(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err);
int bz_onednn_convert(bz_converter *c, void *from, void *to);
void bz_onednn_converter_free(bz_converter *c);

/* Finds the alternatives of the problem in this layout and math mode and adds them to the session.
 * -1 with the reason where there are none. */
int bz_onednn_lower(session *s, const char *layout, const char *math, bz_error *why);

/* The library's name for the implementation. */
const char *bz_onednn_impl_name(const_dnnl_primitive_desc_t pd);

#endif
