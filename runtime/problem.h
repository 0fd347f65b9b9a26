/* Problems: what a benchmark can run. A bz_problem describes one library call completely: kind,
 * shapes, parameters, fused post-operations, data types. Its text is the problem's name in the
 * database; all variants of all backends with the same text compute the same thing.
 *
 *   conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 post=bias,relu dtype=f32
 *
 * The text is printed from the descriptor, and the descriptor can be read back from the text: both
 * follow the kind's row (runtime/kind.h), so a text never says anything else than what ran.
 *
 * This header and its .c files know no library: the generator uses them too. */
#ifndef BZ_PROBLEM_H
#define BZ_PROBLEM_H

#include "base/buf.h"
#include "base/dtype.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BZ_PROBLEM_RANK = 8,      /* dimensions of a tensor */
    BZ_PROBLEM_SPATIAL = 3,   /* of them height, width … */
    BZ_PROBLEM_POST = 8,      /* post-operations */
    BZ_PROBLEM_PARTS = 64,    /* inputs of a concat */
    BZ_PROBLEM_OPERANDS = 80, /* tensors that a problem touches */
};

/* A shape ends with its first 0; there is always one. */
typedef int64_t bz_extent[BZ_PROBLEM_RANK + 1];

/* Kinds: enumerator (BZ_PROBLEM_CONV), and what the text calls it. Spatial dimensions are those from the third on; `pad`
 * has all begins, then all ends. Everything else about a kind stands in its row: runtime/kind.h. */
#define BZ_KINDS(KIND)                                                                                                 \
    KIND(CONV, conv)       /* convolution in one to three dimensions, grouped, depthwise, dilated */                   \
    KIND(DECONV, deconv)   /* transposed convolution; w=CxM/GxKxK as ONNX has it */                                    \
    KIND(GEMM, gemm)       /* Y[m,n] = op(A)[m,k] op(B)[k,n]; B is constant and may be packed ahead */                 \
    KIND(MATMUL, matmul)   /* over the last two dimensions, the others broadcast */                                    \
    KIND(GEMV, gemv)       /* y[m] = op(A)[m,k] x[k]; A is constant */                                                 \
    KIND(GROUPED, grouped) /* rows of A in groups, each with a B of its own, as experts have them */                   \
    KIND(POOL, pool)                                                                                                   \
    KIND(BATCHNORM, batchnorm) /* inference, by channel */                                                             \
    KIND(LAYERNORM, layernorm) /* over the dimensions from `axis` on, with scale and shift */                          \
    KIND(RMSNORM, rmsnorm)     /* as layernorm, by the root of the mean square, with scale alone */                    \
    KIND(LPNORM,                                                                                                       \
         lpnorm) /* divided by the sum of the last dimension's magnitudes (p=1), or the root of their squares */       \
    KIND(GROUPNORM, groupnorm) /* group=C is instance normalization */                                                 \
    KIND(SOFTMAX, softmax)                                                                                             \
    KIND(LOGSOFTMAX, logsoftmax)                                                                                       \
    KIND(LRN, lrn)               /* across channels */                                                                 \
    KIND(ACTIVATION, activation) /* each function is a problem of its own */                                           \
    KIND(PRELU, prelu)           /* slope by channel */                                                                \
    KIND(DROPOUT, dropout)       /* each element becomes 0 or itself / (1 - ratio), by chance */                       \
    KIND(BINARY, binary)         /* b is broadcast to a, or both to each other */                                      \
    KIND(REDUCE, reduce)         /* to the shape y, whose reduced dimensions are 1 */                                  \
    KIND(RESAMPLE, resample)                                                                                           \
    KIND(CONCAT, concat)       /* y is the result, sizes are the inputs' extents along the axis */                     \
    KIND(TRANSPOSE, transpose) /* dimension i of the result is dimension perm[i] of x */                               \
    KIND(PAD, pad)             /* x in a border of zeros, for libraries that pad both ends of a dimension alike */     \
    KIND(SLICE, slice)         /* element i of each dimension of y is element start + i · step of x */                \
    KIND(EXPAND, expand)       /* x broadcast to the shape y */                                                        \
    KIND(GATHER, gather)       /* n elements of dimension `axis`, where indices of the type of w say */                \
    KIND(WHERE, where)         /* c ? a : b, all three broadcast to each other */                                      \
    KIND(REORDER, reorder)     /* same values in another layout or data type; scale for quantization */                \
    KIND(COPY, copy)           /* so many bytes read, so many written; prices what only moves data */                  \
    KIND(TRANSFER, transfer) /* bytes brought from one place to another in a way that is named; belongs to no layer */ \
    KIND(ATTENTION, attention) /* softmax(q kᵀ / √size + mask) v; `causal` hides keys behind their query */        \
    KIND(LSTM, lstm)           /* lstm, gru, rnn: one layer over a sequence */                                         \
    KIND(GRU, gru)                                                                                                     \
    KIND(RNN, rnn)                                                                                                     \
    /* of x, weights, bias and first states, from all that, what the forward pass gave and kept, and dy */             \
    KIND(LSTM_GRAD, lstm_grad)                                                                                         \
    KIND(GRU_GRAD, gru_grad)                                                                                           \
    KIND(RNN_GRAD, rnn_grad)                                                                                           \
    /* what a training iteration computes besides: gradients are those of a loss */                                    \
    KIND(CONV_DATA, conv_data)       /* of a convolution's x, from dy and w; x is its shape */                         \
    KIND(CONV_WEIGHTS, conv_weights) /* of a convolution's w, from x and dy */                                         \
    /* a convolution between normalizations, as training may fuse them; before=1: */                                   \
    /* of relu(x · scale + shift) by channel; behind=1: sums of the result by     */                                  \
    /* channel, and sums of its squares, are results, too                          */                                  \
    KIND(CONV_NORM, conv_norm)                                                                                         \
    /* of keys, values and queries, from those, dy, o, which the attention gave,   */                                  \
    /* and the logarithms of its rows' sums                                        */                                  \
    KIND(ATTENTION_GRAD, attention_grad)                                                                               \
    KIND(POOL_GRAD, pool_grad)           /* of a pooling's x, from dy; max: and which element of each window it was */ \
    KIND(BATCHNORM_GRAD, batchnorm_grad) /* of normalizations: of x, scale and shift, from x, dy and the statistics */ \
    KIND(LAYERNORM_GRAD, layernorm_grad)                                                                               \
    KIND(RMSNORM_GRAD, rmsnorm_grad)                                                                                   \
    KIND(GROUPNORM_GRAD, groupnorm_grad)                                                                               \
    KIND(ACTIVATION_GRAD, activation_grad) /* fn'(x) dy; of_y=1: x is what the function gave */                        \
    KIND(SOFTMAX_GRAD, softmax_grad)       /* from what the softmax gave, and dy */                                    \
    KIND(LOGSOFTMAX_GRAD, logsoftmax_grad)                                                                             \
    KIND(SOFTMAX_LOSS, softmax_loss) /* logarithms of the softmax along dimension 1, and minus the mean of   \
                                                  those that labels tell (reduction=sum: their sum; none: each) */         \
    KIND(SOFTMAX_LOSS_GRAD, softmax_loss_grad) /* of x, from those logarithms, the labels and the loss's gradient */   \
    KIND(DROPOUT_GRAD, dropout_grad)           /* dy where the mask kept an element, larger by what was dropped */     \
    KIND(SCATTER_ADD, scatter_add) /* of a gather's x: zeros, to which rows of dy are added where indices say */       \
    KIND(UPDATE, update)           /* an optimizer's step over all elements of tensors: weights and state in place */  \
    /* between the pixels of x, at places that lie in a tensor: grids, regions, deformed convolutions */               \
    KIND(SAMPLE, sample)                                                                                               \
    KIND(SAMPLE_GRAD, sample_grad) /* of x, places and what samples are multiplied by, from dy and those */

#define BZ_PROBLEM_ENUMERATOR(NAME, name) BZ_PROBLEM_##NAME,
typedef enum { BZ_PROBLEM_NONE, BZ_KINDS(BZ_PROBLEM_ENUMERATOR) BZ_PROBLEM_N_KINDS } bz_problem_kind;
#undef BZ_PROBLEM_ENUMERATOR

/* What kinds have in common: who wants to know asks for these, so that the next kind need not be named there. */
typedef enum {
    BZ_TRAIT_PRODUCT = 1,           /* sums of products: conv, deconv, gemm, matmul, gemv */
    BZ_TRAIT_WINDOW = 2,            /* go over x window by window: conv, deconv, pool */
    BZ_TRAIT_CONVOLUTION = 4,       /* conv, deconv: channels are dimension 1, and a bias goes along them */
    BZ_TRAIT_NORMALIZATION = 8,     /* batchnorm, layernorm, rmsnorm, groupnorm */
    BZ_TRAIT_RECURRENT = 16,        /* lstm, gru, rnn, and their gradients: members are those of `rnn` */
    BZ_TRAIT_MOVE = 32,             /* values are put elsewhere unchanged: pad, slice, expand, gather, where */
    BZ_TRAIT_PARTIAL = 64,          /* what is not taken of x is not read: slice, gather */
    BZ_TRAIT_BYTES = 128,           /* copy: no tensors, but bytes, which have no type and no layout */
    BZ_TRAIT_POST = 256,            /* takes post-operations */
    BZ_TRAIT_ROUNDED_BETWEEN = 512, /* some libraries compute it in two calls, and round between them */
    BZ_TRAIT_GRADIENT = 1024,       /* of a backward pass */
} bz_trait;

/* Functions of one or two values. Which of them may stand where is in the table in function.c. */
typedef enum {
    BZ_FN_NONE,
    BZ_FN_BIAS, /* post only, and first: adds a value by channel */
    BZ_FN_ADD,  /* post: adds a tensor of the result's shape (a residual); binary */
    BZ_FN_KEEP, /* post only: what the function behind it takes is a result, too, as its gradient wants it */
    BZ_FN_SUB,
    BZ_FN_MUL,
    BZ_FN_DIV,
    BZ_FN_MAX,
    BZ_FN_MIN,
    BZ_FN_EQ, /* binary only, up to le: 1 where it holds, else 0 */
    BZ_FN_NE,
    BZ_FN_GT,
    BZ_FN_GE,
    BZ_FN_LT,
    BZ_FN_LE,
    BZ_FN_RELU,
    BZ_FN_LEAKY, /* alpha: slope below 0 */
    BZ_FN_ELU,   /* alpha */
    BZ_FN_CLIP,  /* alpha, beta: bounds; clip:0:6 is ReLU6 */
    BZ_FN_SIGMOID,
    BZ_FN_TANH,
    BZ_FN_GELU_ERF,
    BZ_FN_GELU_TANH,
    BZ_FN_SWISH, /* alpha: x · sigmoid(alpha x) */
    BZ_FN_HARDSWISH,
    BZ_FN_HARDSIGMOID, /* alpha, beta: clip(alpha x + beta, 0, 1) */
    BZ_FN_MISH,
    BZ_FN_SOFTPLUS,
    BZ_FN_EXP,
    BZ_FN_LOG,
    BZ_FN_SQRT,
    BZ_FN_ABS,
    BZ_FN_SQUARE,
    BZ_FN_ROUND,
    BZ_FN_FLOOR,
    BZ_FN_CEIL,
    BZ_FN_SIGN,
    BZ_FN_ERF,
    BZ_FN_SOFTSIGN,
    BZ_FN_SIN,
    BZ_FN_COS,
    BZ_FN_LINEAR, /* alpha, beta: alpha x + beta */
    BZ_FN_POW,    /* alpha, beta: alpha x^beta */
    BZ_FN_SUM,    /* reduce only, from here on */
    BZ_FN_MEAN,
    BZ_FN_PROD,
    BZ_FN_L1,
    BZ_FN_L2,
    BZ_FN_SUMSQUARE,
    BZ_FN_N,
} bz_fn;

typedef struct bz_post {
    bz_fn fn;
    float alpha, beta; /* both 0: the function's usual parameters */
} bz_post;

/* sgd: w -= rate (g + decay w). momentum: v = alpha v + g + decay w, w -= rate v. adam, adamw: averages of the gradient by
 * alpha and of its square by beta, brought to their size by the number of steps; adamw takes the decay from w itself. */
typedef enum { BZ_RULE_SGD, BZ_RULE_MOMENTUM, BZ_RULE_ADAM, BZ_RULE_ADAMW } bz_rule;
typedef enum { BZ_LOSS_MEAN, BZ_LOSS_SUM, BZ_LOSS_NONE } bz_loss_reduction;
enum { BZ_SAMPLE_MEAN = 256 };                                           /* points that one mean has at most */
enum { BZ_NO_CLASS = 1 << 24 };                                          /* losses have fewer classes */
typedef enum { BZ_POOL_MAX, BZ_POOL_AVG, BZ_POOL_AVG_PAD } bz_pool_mode; /* avg_pad counts the padding */
typedef enum { BZ_RESAMPLE_NEAREST, BZ_RESAMPLE_LINEAR } bz_resample_mode;
typedef enum { BZ_COORD_HALF_PIXEL, BZ_COORD_ASYMMETRIC, BZ_COORD_ALIGN_CORNERS } bz_coord;
typedef enum { BZ_OUTSIDE_ZEROS, BZ_OUTSIDE_EDGE } bz_outside; /* of an image: zeros, or the nearest pixel */
typedef enum { BZ_LAYOUT_PLAIN, BZ_LAYOUT_NHWC, BZ_LAYOUT_BLOCKED } bz_layout;
typedef enum { BZ_FORWARD, BZ_REVERSE, BZ_BIDIRECTIONAL } bz_direction;

typedef enum {
    BZ_TRANSFER_READ,
    BZ_TRANSFER_WRITE,
    BZ_TRANSFER_COPY,
    BZ_TRANSFER_SCALE,
    BZ_TRANSFER_ADD,
    BZ_TRANSFER_TRIAD,
    BZ_TRANSFER_STRIDED,
    BZ_TRANSFER_SCATTERED,
    BZ_TRANSFER_CHASE,
    BZ_TRANSFER_CHASE_HUGE,
    BZ_TRANSFER_TOUCH,
    BZ_TRANSFER_TOUCH_HUGE,
    BZ_TRANSFER_SHARED,
    BZ_TRANSFER_WAKE,
    BZ_TRANSFER_PIPE,
    BZ_TRANSFER_SOCKET,
    BZ_TRANSFER_TCP,
    BZ_TRANSFER_FILE,
    BZ_TRANSFER_FILE_COLD,
    BZ_TRANSFER_MAPPED,
    BZ_TRANSFER_ZLIB,
    BZ_TRANSFER_UNZLIB,
    BZ_TRANSFER_ZSTD,
    BZ_TRANSFER_UNZSTD,
    BZ_TRANSFER_LZ4,
    BZ_TRANSFER_UNLZ4,
    BZ_TRANSFER_FAR,
    BZ_TRANSFER_FAR_CHASE,
    BZ_TRANSFER_TO_DEVICE, /* from here on a GPU's */
    BZ_TRANSFER_TO_DEVICE_PINNED,
    BZ_TRANSFER_TO_HOST,
    BZ_TRANSFER_TO_HOST_PINNED,
    BZ_TRANSFER_BOTH_WAYS,
    BZ_TRANSFER_STREAMS,
    BZ_TRANSFER_OVER_LINK,
    BZ_TRANSFER_WITHIN,
    BZ_TRANSFER_SET,
    BZ_TRANSFER_PEER,
    BZ_TRANSFER_PEER_STAGED,
    BZ_TRANSFER_MANAGED_TOUCH,
    BZ_TRANSFER_MANAGED_PREFETCH,
    BZ_TRANSFER_MANAGED_ADVISED,
    BZ_TRANSFER_ALLOCATE,
    BZ_TRANSFER_PIN,
    BZ_TRANSFER_LAUNCH,
    BZ_TRANSFER_LAUNCH_WAIT,
    BZ_TRANSFER_GRAPH,
    BZ_TRANSFER_GRAPH_LAUNCH,
    BZ_TRANSFER_EVENT,
    BZ_TRANSFER_SYNCHRONIZE,
    BZ_TRANSFER_ALL_REDUCE,
    BZ_TRANSFER_ALL_GATHER,
    BZ_TRANSFER_BROADCAST,
    BZ_TRANSFER_SEND,
    BZ_TRANSFERS
} bz_transfer_way;             /* what each does: runtime/kind_transfer.c */
#define BZ_SCATTER 2654435761U /* odd, so that its multiples modulo a power of two meet every element once */

typedef struct bz_problem {
    bz_problem_kind kind;
    union {
        struct {
            bz_extent x, w;
            int64_t stride[BZ_PROBLEM_SPATIAL], pad[2 * BZ_PROBLEM_SPATIAL], dilation[BZ_PROBLEM_SPATIAL], group;
            int64_t outpad[BZ_PROBLEM_SPATIAL]; /* deconv only */
            bool before, behind;                /* conv_norm only */
        } conv, deconv;
        struct {
            int64_t m, n, k, batch;
            bool transa, transb;
            bool sparse; /* of each four numbers of B along the depth two are zeros */
        } gemm;
        struct {
            bz_extent a, b;      /* as the product sees them: [.., m, k] and [.., k, n] */
            bool constant;       /* b is constant and may be packed ahead */
            bool transa, transb; /* they lie with the last two dimensions the other way round */
        } matmul;
        struct {
            int64_t n, k;
            bool transb;
            int64_t sizes[BZ_PROBLEM_PARTS + 1]; /* rows of each group; ends with its first 0 */
        } grouped;
        struct {
            int64_t m, k;
            bool trans;
        } gemv;
        struct {
            bz_pool_mode mode;
            bz_extent x;
            int64_t kernel[BZ_PROBLEM_SPATIAL], stride[BZ_PROBLEM_SPATIAL], pad[2 * BZ_PROBLEM_SPATIAL],
                dilation[BZ_PROBLEM_SPATIAL];
            bool
                training; /* max: which element of its window each result was, counted in the window, is a result, too */
        } pool;
        struct {
            bz_extent x;
            bool training; /* of normalizations: by the statistics of x, which are results, too */
        } batchnorm;
        struct {
            bz_extent x;
            int64_t axis;
            bool training; /* not of softmax */
        } layernorm, rmsnorm, softmax, logsoftmax;
        struct {
            bz_extent x;
            int64_t p; /* 1 or 2 */
        } lpnorm;
        struct {
            bz_extent x;
            int64_t group;
            bool training;
        } groupnorm;
        struct {
            bz_extent x;
            int64_t size;
            float alpha, beta, bias;
        } lrn;
        struct {
            bz_fn fn;
            bz_extent x;
            float alpha, beta; /* both 0: the function's usual parameters */
            bool of_y;         /* of a gradient */
        } activation;
        struct {
            bz_extent x;
        } prelu;
        struct {
            bz_extent x;
            float ratio;   /* that is dropped */
            bool training; /* which elements were kept is a result, too */
        } dropout;
        struct {
            bz_extent x;
            bz_loss_reduction reduction;
            int64_t ignore; /* labels of this class count neither in the sum nor in its mean; BZ_NO_CLASS: all do */
        } softmax_loss;
        struct {
            bz_rule rule;
            bz_extent x;
            float alpha, beta, decay;
            bool nesterov;
        } update;
        struct {
            bz_fn fn;
            bz_extent a, b;
        } binary;
        struct {
            bz_fn fn;
            bz_extent x, y;
        } reduce;
        struct {
            bz_resample_mode mode;
            bz_coord coord;
            bz_extent x, y;
        } resample;
        struct {
            bz_resample_mode mode;
            bz_outside outside;
            bz_extent x, at;    /* images [N, C, H, W]; places in pixels [rows, groups of channels, points, 2] */
            int64_t mean;       /* points whose mean is an element of the result [rows, C, points / mean] */
            bool masked, fixed; /* each sample is multiplied by a number; nobody wants the gradient of places */
        } sample;
        struct {
            bz_extent y;
            int64_t axis;
            int64_t sizes[BZ_PROBLEM_PARTS + 1]; /* ends with its first 0 */
        } concat;
        struct {
            bz_extent x;
            int64_t perm[BZ_PROBLEM_RANK];
        } transpose;
        struct {
            bz_extent x;
            int64_t pad[2 * BZ_PROBLEM_SPATIAL];
        } pad;
        struct {
            bz_extent x, y;
            int64_t start[BZ_PROBLEM_RANK], step[BZ_PROBLEM_RANK];
        } slice;
        struct {
            bz_extent x, y;
        } expand;
        struct {
            bz_extent x;
            int64_t n, axis;
        } gather;
        struct {
            bz_extent c, a, b;
        } where;
        struct {
            bz_extent x;
            bz_layout from, to;
            float scale; /* the result is x · scale; 0 stands for 1 */
        } reorder;
        struct {
            int64_t read, write;
        } copy;
        struct {
            bz_transfer_way way;
            bz_extent x; /* elements; of a chase and of a touch bytes */
        } transfer;
        struct {
            /* [batch, heads, rows, size], [batch, kv heads, keys, size], [batch, kv heads, keys, values]; heads
             * that share keys lie one behind the other. The mask is added, and broadcast to
             * [batch, heads, rows, keys]; without dimensions there is none. */
            bz_extent q, k, v, mask;
            bool causal;    /* queries stand at the end of the keys, and none sees what comes behind it */
            float softcap;  /* scores become softcap · tanh(score / softcap) before a mask is added; 0: they stay */
            int64_t window; /* causal: each query sees the last so many keys alone; 0: all of those */
            int64_t page;   /* keys and values lie in pages of so many, in an order that a table tells; 0: row by row */
            bool sink;      /* of each head a score that takes weight and has no value */
            int64_t lengths[BZ_PROBLEM_PARTS + 1]; /* the tokens are sequences so long, one behind the other, which see
                                                      themselves alone; ends with its first 0 */
        } attention, attention_grad;
        struct {
            int64_t seq, batch, input, hidden;
            bz_direction dir;
            bool lbr;      /* gru: linear before reset */
            bool peephole; /* lstm: gates see the cell */
            bz_fn fn;      /* rnn: tanh, relu or sigmoid; 0 stands for tanh */
            bool training; /* the last states, and what the backward pass needs, are results, too */
        } rnn;             /* of the kinds lstm, gru, rnn and their gradients */
    };
    bz_post post[BZ_PROBLEM_POST + 1]; /* ends with the first BZ_FN_NONE */
    bz_dtype dtype;                    /* of the inputs, and of all where the next two are left out */
    bz_dtype dtype_w, dtype_y;         /* of weights and result */
} bz_problem;

/* ---- text ----------------------------------------------------------------------------------- */

/* Appends the canonical text. The problem must be a valid one. */
void bz_problem_print(const bz_problem *p, bz_buf *out);
const char *bz_problem_text(const bz_problem *p, bz_arena *arena); /* the same */

/* Reads a text. Members may come in any order and what has a usual value may be left out, so a text
 * is not always the canonical one of its problem; printing the result gives that. The result is
 * normalized and valid. */
int bz_problem_parse(const char *text, bz_problem *p, bz_error *err);

/* Checks a descriptor that somebody wrote, and fills in what was left at 0 and has a usual value
 * (strides, groups, function parameters, data types of weights and result). */
int bz_problem_normalize(bz_problem *p, bz_error *err);

/* Appends the descriptor as C: the designated initializer that a generated source holds, without
 * the outer braces, each line indented by `indent` spaces. */
void bz_problem_print_c(const bz_problem *p, int indent, bz_buf *out);

const char *bz_problem_kind_name(bz_problem_kind kind);
bool bz_problem_has(const bz_problem *p, unsigned traits); /* one of these bz_trait */
bool bz_problem_is_matrix(const bz_problem *p);            /* a product without windows: gemm, matmul, gemv */
const char *bz_fn_name(bz_fn fn);
bz_fn bz_fn_find(const char *name, size_t n); /* BZ_FN_NONE where there is no such function */
int bz_fn_parameters(bz_fn fn);               /* 0 to 2 */
bool bz_fn_is_post(bz_fn fn);
bool bz_fn_is_activation(bz_fn fn);
bool bz_fn_is_binary(bz_fn fn);
bool bz_fn_is_reduction(bz_fn fn);
bool bz_fn_is_comparison(bz_fn fn);

/* Sets both parameters to the usual ones where both are 0, and those to 0 that the function does not have. */
void bz_fn_normalize(bz_fn fn, float *alpha, float *beta);

/* The function's value for x, in double precision. */
double bz_fn_value(bz_fn fn, double x, double alpha, double beta);
double bz_fn_binary(bz_fn fn, double a, double b);
/* Its derivative at x; and from the value y that it had there, for functions of which bz_fn_inverts holds. */
double bz_fn_slope(bz_fn fn, double x, double alpha, double beta);
double bz_fn_slope_of_y(bz_fn fn, double y, double alpha, double beta);
bool bz_fn_has_slope(bz_fn fn);
bool bz_fn_inverts(bz_fn fn);

/* Whether an algorithm is an implementation by the definition, written for testing: "ref:any", "lnorm_ref:any", and what
 * has one of them among its parts. Such a record is no bound while anything else can run. `problem` is its text, or its kind: a recurrent layer
 * that oneDNN names "ref" multiplies by the library's own gemm and has compiled code for its gates. */
bool bz_algorithm_is_reference(const char *problem, const char *algorithm);

/* ---- tensors -------------------------------------------------------------------------------- */

typedef enum {
    BZ_ROLE_X,        /* input; concat has several, in order; gemm's and matmul's A */
    BZ_ROLE_B,        /* second input: binary's, matmul's and gemm's B; gemv's vector is X, its matrix W */
    BZ_ROLE_W,        /* weights; for rnn [directions, input, gates, hidden] */
    BZ_ROLE_R,        /* rnn: recurrent weights [directions, hidden, gates, hidden] */
    BZ_ROLE_PEEPHOLE, /* lstm: what gates make of the cell [directions, 3, hidden]: input, forget, output */
    BZ_ROLE_BIAS, /* by channel; attention: the sinks by head; for rnn [directions, gates, hidden], gru with lbr has one gate more */
    BZ_ROLE_SCALE,
    BZ_ROLE_SHIFT,
    BZ_ROLE_MEAN,
    BZ_ROLE_VARIANCE,
    BZ_ROLE_SLOPE,
    BZ_ROLE_H,      /* rnn: first hidden state [directions, batch, hidden] */
    BZ_ROLE_C,      /* lstm: first cell state */
    BZ_ROLE_V,      /* attention: values; queries are X, keys B */
    BZ_ROLE_MASK,   /* attention: what is added to the scores; where: which of the two it is */
    BZ_ROLE_INDEX,  /* gather: which elements; pool: which of a window; loss: labels */
    BZ_ROLE_DY,     /* gradient of what the forward pass gave; of an update: of the weights X */
    BZ_ROLE_M,      /* update: the gradients' average, or momentum; conv_norm: sums of the result */
    BZ_ROLE_N,      /* and the average of their squares, or the sums of these */
    BZ_ROLE_LAST,   /* rnn: last hidden state, shaped as the first */
    BZ_ROLE_LAST_C, /* lstm: last cell state */
    BZ_ROLE_KEPT, /* rnn: what the forward pass keeps for the backward one, as the library likes it: nobody can check it */
    BZ_ROLE_DH,     /* rnn: gradients of the last hidden state */
    BZ_ROLE_DC,     /* lstm: of the last cell state */
    BZ_ROLE_O,      /* attention_grad, lstm_grad …: what the forward pass gave */
    BZ_ROLE_LOGSUM, /* and of each row the logarithm of its weights' sum */
    BZ_ROLE_RATE,   /* learning rate */
    BZ_ROLE_STEP,   /* number of the step, from 1 */
    BZ_ROLE_BEFORE, /* of a post keep */
    BZ_ROLE_OTHER,  /* of a post add, sub, mul …: the other tensor, of the result's shape */
    BZ_ROLE_Y,
} bz_role;

/* A tensor that a problem reads or writes. Dimensions are those of the problem's text, elements lie
 * in row-major order ("plain"); backends bring them into the layout they want. The result is
 * always the last one; further results stand before it. Gates of lstm are input, forget, cell, output; of gru update, reset, new. */
typedef struct bz_operand {
    bz_role role;
    bz_dtype dtype;
    int rank;
    int alias; /* of a result: the operand in whose memory it is made, -1 for none */
    bz_extent dim;
    int64_t count; /* elements */
    int post;      /* BZ_ROLE_OTHER: of which post-operation */
    bool constant; /* weights: may be brought into the best layout ahead of time */
    bool result;   /* the last one always is; training has kinds with several, which stand before it */
} bz_operand;

const char *bz_role_name(bz_role role); /* "mean"; "" where nobody asks for it by name */

/* Fills `list` (room for BZ_PROBLEM_OPERANDS); returns how many. */
int bz_problem_operands(const bz_problem *p, bz_operand *list);

int bz_extent_rank(const int64_t *extent);
int64_t bz_extent_count(const int64_t *extent);

/* The dimension of a result of this rank that a bias goes along. */
int bz_problem_bias_axis(const bz_problem *p, int rank);

/* Whether a convolution's or pooling's windows lie as they should where both ends of each dimension are padded as its begin
 * is: then the padding can be given as one number for both. */
bool bz_problem_pads_evenly(const bz_problem *p);

/* Floating-point operations: two for each multiply-add, and element-wise work on top. */
double bz_problem_flops(const bz_problem *p);
/* Bytes that must be moved at the least: every operand once. */
double bz_problem_bytes(const bz_problem *p);
/* Loads that a call of a transfer by `chase` does: once to each line, up to 32,768. */
int64_t bz_problem_hops(const bz_problem *p);

/* Integer results are the exact sum times this power of two, rounded, so that they use their range
 * without saturating; 1 where the result is wide enough. */
double bz_problem_scale(const bz_problem *p);

/* Recurrent networks in integers: an element of the data stands for (v - shift) / data, one of the weights
 * for v / weights. States are brought back to that after each step. 1, 0 and 1 for floating-point ones. */
typedef struct bz_rnn_scale {
    double data, shift, weights;
} bz_rnn_scale;
bz_rnn_scale bz_problem_rnn_scale(const bz_problem *p);
int bz_rnn_gates(bz_problem_kind kind); /* of an lstm, gru or rnn, and of their gradients */
static inline bool bz_problem_is_lstm(const bz_problem *p)
{
    return bz_rnn_gates(p->kind) == 4;
}
static inline bool bz_problem_is_gru(const bz_problem *p)
{
    return bz_rnn_gates(p->kind) == 3;
}

/* Which matrix of a broadcast operand belongs to matrix i of the result, of n dimensions before the matrices' own. */
static inline int64_t bz_broadcast_index(int64_t i, const int64_t *y, const int64_t *operand, int n)
{
    int64_t index = 0, step = 1;
    for (int d = n; d--; i /= y[d]) {
        index += operand[d] == 1 ? 0 : i % y[d] * step;
        step *= operand[d];
    }
    return index;
}

#endif
