/* cudnn: problems as calls of cuDNN. Private to this folder.
 *
 *   cudnn.c       sessions, variants, execution
 *   place.c       operands in memory of the caller's, and what brings them from one layout to another
 *   describe.c    tensors and types, shared by all kinds
 *   conv.c        convolutions, fused or in steps, transposed
 *   layer.c       pooling, normalization, softmax, LRN, activations, dropout
 *   move.c        element-wise operations, reductions, transposition, concatenation, padding, copies
 *   rnn.c         recurrent networks
 *   graph.c       the graph interface: engine configurations, execution
 *   graph_op.c    tensors and operations of a graph
 *   graph_kind.c  which graph a problem is: convolutions, products, functions
 *   graph_attention.c  attention and its gradients
 *   graph_grad.c  poolings, normalizations, gradients
 *   plan.c        engine configurations and plans, kept for the next process
 *
 * A new kind of problem is one row in the table in cudnn.c: how its variants are called, what describes them,
 * what runs them. Describing needs no device: the descriptors can be looked at everywhere. */
#ifndef BZ_CUDNN_H
#define BZ_CUDNN_H

#include "runtime/backend.h"
#include "runtime/cuda/cuda.h"

#include <cudnn.h>

enum { CUDNN_MAX_RANK = 8, CUDNN_X32 = 32, MAX_CALLS = 512 };

/* An operand and how it lies in memory. */
typedef struct tensor {
    int operand; /* -1: not there */
    bz_cuda_layout layout;
    cudnnTensorDescriptor_t desc; /* NULL where a filter describes it */
    void *data;
} tensor;

/* How an operand of a replay lies. */
typedef struct format {
    const bz_operand *operand;
    bz_cuda_layout layout;
} format;

/* Where alpha and beta point to: cuDNN wants doubles for f64 data and floats for all else. */
typedef struct scalar {
    float f;
    double d;
} scalar;

/* Where plans are kept; without a folder none is. */
typedef struct cudnn_shelf {
    const char *folder;
    bz_buf about; /* what all keys begin with: library, module and device */
} cudnn_shelf;

struct cudnn_kind;
struct rnn_call;
struct graph_call;

/* One variant: descriptors, and what to call with them. */
typedef struct call {
    bz_cuda_run run;
    const struct cudnn_kind *kind;
    const bz_problem *problem;
    const bz_operand *operand;
    int n_operands;
    cudnnHandle_t handle; /* of the session; NULL while it is only described */
    bz_cuda *cuda;
    bool nhwc;
    bool x32; /* bytes in blocks of 32 channels */
    cudnnMathType_t math;
    bool half_sums; /* of f16, in f16 */
    int algorithm;
    bool fused; /* post-operations in the one call, not in calls of their own */
    tensor x, b, w, bias, other, y, part[BZ_PROBLEM_PARTS];
    int n_parts;
    tensor scale, shift, mean, variance;
    tensor more[2]; /* results beside y, in the order of their operands */
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnActivationDescriptor_t activation[BZ_PROBLEM_POST + 1];
    cudnnPoolingDescriptor_t pooling;
    cudnnLRNDescriptor_t lrn;
    cudnnOpTensorDescriptor_t op;
    cudnnReduceTensorDescriptor_t reduce;
    cudnnDropoutDescriptor_t dropout;
    void *reordered;        /* x32: the filter as tensor cores read it */
    void *states, *reserve; /* of the dropout: its random numbers, and what it dropped */
    size_t reserve_size;
    struct rnn_call *rnn;
    struct graph_call *graph;
    int engines;              /* graph: as bz_run_setting has it */
    void *device;             /* graph: a descriptor of a device that need not be there, instead of the handle */
    const cudnn_shelf *shelf; /* graph; NULL: nothing is kept */
    struct call *first;       /* of the variants of one row: it has what was found out for all */
    void *packed_for;         /* graph: the workspace that the last call was packed with */
    scalar one, zero, minus, factor;
    double epsilon;
    size_t workspace;
    int (*poison)(struct call *c); /* where not all of the result is written; NULL: all of it is */
} call;

typedef struct session {
    bz_cuda cuda; /* stands first, as bz_cuda_state wants it */
    const bz_job *job;
    bz_cuda_operands operands;
    cudnnHandle_t handle;
    cudnn_shelf shelf;
    call *calls[MAX_CALLS];
    int n_calls;
    format format[BZ_PROBLEM_OPERANDS]; /* of a replay's operands */
} session;

/* A way to run a kind of problem. A kind may have several rows. */
typedef struct cudnn_kind {
    bz_problem_kind kind;
    const char *name; /* of the variant where it has no algorithms; of a graph's, before those of its engines */
    int (*describe)(call *c, bz_error *why);
    /* Algorithms: the name of number i, NULL behind the last, "" to leave a number out; and which the library
     * would take (-1: it does not say). */
    const char *(*algorithm)(const call *c, int i, char *out, size_t size);
    int (*choice)(call *c);
    int (*prepare)(call *c, session *s, bz_error *err); /* data besides the tensors'; the size of the workspace */
    cudnnStatus_t (*execute)(call *c);
    void (*release)(call *c);
    int (*check)(call *c, bz_error *why); /* of a graph: NULL: nothing is refused */
    void (*build)(call *c);
} cudnn_kind;

extern const cudnn_kind bz_cudnn_kinds[]; /* ends with BZ_PROBLEM_NONE */

/* ---- cudnn.c -------------------------------------------------------------------------------- */

/* A call described, not prepared; NULL with the reason where cuDNN cannot express it. */
call *bz_cudnn_describe(const cudnn_kind *kind, const bz_problem *p, const bz_operand *operand, int n_operands,
                        const char *layout, const char *math, bz_error *why);
void bz_cudnn_free(call *c);

/* Brings a tensor's operand to the device; NULL data is no error where it is not there. In a replay what has no values is
 * left to `bind`. */
int bz_cudnn_upload(session *s, tensor *t, bz_error *err);
int bz_cudnn_failed(bz_error *err, const char *what, cudnnStatus_t status);

/* The library on a stream: that of a replay (NULL: none), which all share, or the session's own. */
int bz_cudnn_handle(bz_cuda_stream *shared, const bz_cuda *cuda, cudnnHandle_t *out, bz_error *err);

/* ---- plan.c --------------------------------------------------------------------------------- */

/* Opens a shelf for a device that cuDNN describes; false where it does not say what the device is. */
bool cudnn_shelf_open(cudnn_shelf *s, const char *folder, void *device);
void cudnn_shelf_close(cudnn_shelf *s);
/* The backend's `ahead`. */
void cudnn_ahead(const bz_job *job, const char *layout, const char *math);

/* ---- place.c -------------------------------------------------------------------------------- */

/* All that may be an operand of the call: how many; and those of them that are no recurrent layer's or graph's. */
enum { CUDNN_MOST_TENSORS = 144 };
int cudnn_tensors_of(call *c, tensor **out);
int cudnn_own_tensors(call *c, tensor **out);

int cudnn_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
int cudnn_bind(bz_variant *v, int operand, void *at);

bool cudnn_same(const void *format, const void *other);
int cudnn_converter(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err);
int cudnn_convert(bz_converter *c, void *from, void *to);
void cudnn_converter_free(bz_converter *c);

/* ---- describe.c ----------------------------------------------------------------------------- */

#define TRY(call_)                                                                                                     \
    do {                                                                                                               \
        cudnnStatus_t status_ = (call_);                                                                               \
        if (status_ != CUDNN_STATUS_SUCCESS)                                                                           \
            return status_;                                                                                            \
    } while (0)

bool cudnn_dtype(bz_dtype t, cudnnDataType_t *out);
cudnnDataType_t cudnn_compute(const call *c); /* f64 in f64, integers in i32, all else in f32, or as is allowed */
int cudnn_find(const call *c, bz_role role);  /* the operand; -1 */

/* Names an operand as it lies in the layout of the call. Biases and the like: bz_cuda_plain. */
tensor cudnn_tensor(const call *c, int operand);
/* Describes a tensor in these dimensions and strides, filled up with ones to the four that cuDNN wants at least. */
cudnnStatus_t cudnn_set(tensor *t, int rank, const int64_t *dim, const int64_t *stride);
/* In the operand's own dimensions. */
cudnnStatus_t cudnn_set_whole(const call *c, tensor *t);
/* n values along dimension 1 of something with this rank. */
cudnnStatus_t cudnn_set_channels(tensor *t, int rank, int64_t n);
const void *cudnn_scalar(const call *c, const scalar *v);

cudnnStatus_t cudnn_make_activation(cudnnActivationDescriptor_t *out, bz_fn fn, float alpha, float beta);

/* Post-operations in calls of their own: descriptors, and the calls on y. -1 where cuDNN has no such call. */
int cudnn_describe_posts(call *c, bz_error *why);
cudnnStatus_t cudnn_run_posts(call *c);

/* ---- kinds ---------------------------------------------------------------------------------- */

/* What is convolved: x with w; dy with w, for dx, which is a transposed convolution, too; x with dy, for dw. */
typedef enum { CUDNN_CONV_FORWARD, CUDNN_CONV_DATA, CUDNN_CONV_WEIGHTS } cudnn_conv;
cudnn_conv cudnn_conv_of(const call *c);

typedef int describes(call *c, bz_error *why);
describes cudnn_describe_both; /* x, dy where there is one, and y, as they are */
describes cudnn_describe_conv, cudnn_describe_conv_fused, cudnn_describe_pool, cudnn_describe_batchnorm,
    cudnn_describe_softmax, cudnn_describe_lrn, cudnn_describe_activation, cudnn_describe_activation_grad,
    cudnn_describe_dropout, cudnn_describe_scale, cudnn_describe_binary, cudnn_describe_reduce,
    cudnn_describe_bias_grad, cudnn_describe_transpose, cudnn_describe_reorder, cudnn_describe_concat,
    cudnn_describe_pad, cudnn_describe_pad_copy, cudnn_describe_copy, cudnn_describe_rnn;
/* Graphs: what they are not built for, and the graph. */
describes cudnn_describe_graph, cudnn_check_pool, cudnn_check_slope, cudnn_check_product, cudnn_check_blocks,
    cudnn_check_norm, cudnn_check_sdpa, cudnn_check_attention_grad, cudnn_check_attention;
typedef void builds(call *c);
builds cudnn_build_conv, cudnn_build_weights, cudnn_build_pool, cudnn_build_slope, cudnn_build_product,
    cudnn_build_blocks, cudnn_build_norm, cudnn_build_elementwise, cudnn_build_sdpa, cudnn_build_attention,
    cudnn_build_attention_grad;
typedef const char *names_algorithm(const call *c, int i, char *out, size_t size);
names_algorithm cudnn_conv_algorithm, cudnn_batchnorm_algorithm, cudnn_rnn_algorithm, cudnn_graph_algorithm;
typedef int chooses(call *c);
chooses cudnn_conv_choice, cudnn_deconv_choice, cudnn_weights_choice, cudnn_batchnorm_choice, cudnn_graph_choice;
typedef int prepares(call *c, session *s, bz_error *err);
prepares cudnn_prepare_conv, cudnn_prepare_dropout, cudnn_prepare_reduce, cudnn_prepare_rnn, cudnn_prepare_graph;

typedef cudnnStatus_t runs(call *c);
runs cudnn_run_conv, cudnn_run_deconv, cudnn_run_weights, cudnn_run_pool, cudnn_run_batchnorm, cudnn_run_softmax,
    cudnn_run_lrn, cudnn_run_activation, cudnn_run_pool_grad, cudnn_run_softmax_grad, cudnn_run_activation_grad,
    cudnn_run_dropout, cudnn_run_binary, cudnn_run_reduce, cudnn_run_bias_grad, cudnn_run_transform, cudnn_run_concat,
    cudnn_run_pad, cudnn_run_pad_copy, cudnn_run_copy, cudnn_run_rnn, cudnn_run_rnn_grad, cudnn_run_graph;
typedef void releases(call *c);
releases cudnn_release_dropout, cudnn_release_rnn, cudnn_release_graph;
int cudnn_rnn_states(call *c, tensor **out); /* those that it has: how many */
/* Whether the operand is a gradient of a recurrent layer's weights or bias, which lie as cuDNN likes them; and reads it. */
bool cudnn_is_rnn_weight(const call *c, int operand);
int cudnn_read_rnn_weight(const call *c, int operand, float *values, bz_error *err);

#endif
