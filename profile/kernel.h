/* kernel: what the full name of a kernel tells. A part of profile.h. */
#ifndef BZ_PROFILE_KERNEL_H
#define BZ_PROFILE_KERNEL_H

/* kernels.c has the table. */
typedef enum {
    BZ_KERNEL_OTHER,
    BZ_KERNEL_CONV,
    BZ_KERNEL_CONV_BACKWARD,
    BZ_KERNEL_CONV_PART, /* what one convolution launches besides */
    BZ_KERNEL_CONV_DEPTHWISE,
    BZ_KERNEL_PRODUCT,
    BZ_KERNEL_PRODUCT_PART,
    BZ_KERNEL_VECTOR_PRODUCT,
    BZ_KERNEL_ATTENTION,
    BZ_KERNEL_RNN,
    BZ_KERNEL_NORM,
    BZ_KERNEL_SOFTMAX,
    BZ_KERNEL_POOL,
    BZ_KERNEL_ELEMENTWISE,
    BZ_KERNEL_REDUCE,
    BZ_KERNEL_LAYOUT,
    BZ_KERNEL_PAD,
    BZ_KERNEL_MOVE,
    BZ_KERNEL_GATHER,
    BZ_KERNEL_SORT,
    BZ_KERNEL_RANDOM,
    BZ_KERNEL_RESIZE,
    BZ_KERNEL_LOSS,
    BZ_KERNEL_OPTIMIZER,
    BZ_KERNEL_QUANTIZE,
    BZ_KERNEL_COMMUNICATION,
} bz_kernel_does;
enum { BZ_KERNEL_DOES = BZ_KERNEL_COMMUNICATION + 1 };
const char *bz_kernel_does_name(bz_kernel_does does); /* "matrix product" */

/* Where time goes that no layer asks for; explain/ has their names. */
typedef enum {
    BZ_CAUSE_NONE,
    BZ_CAUSE_WEIGHTS_REORDERED,
    BZ_CAUSE_ACTIVATIONS_REORDERED,
    BZ_CAUSE_LAYOUT_CHANGED,
    BZ_CAUSE_INPUT_PADDED,
    BZ_CAUSE_EDGES_REPEATED,
    BZ_CAUSE_NORMALIZED,
    BZ_CAUSE_CONSTANTS_COMPUTED,
    BZ_CAUSE_CONVERTED,
    BZ_CAUSE_FILLED,
    BZ_CAUSE_GRADIENTS_ADDED,
    BZ_CAUSE_RECOMPUTED,
    BZ_CAUSE_FAKE_QUANTIZED,
    BZ_CAUSE_COPIED,
    BZ_CAUSE_COPIED_TO_DEVICE,
    BZ_CAUSE_COPIED_FROM_DEVICE,
    BZ_CAUSE_COPIED_ON_DEVICE,
    BZ_CAUSE_CALLS_EXTRA,
    BZ_CAUSE_KERNELS_EXTRA,
    BZ_CAUSE_OPERATORS_EXTRA,
    BZ_CAUSE_QUEUED,
    BZ_CAUSE_WAITS,
    BZ_CAUSE_LAUNCHES,
    BZ_CAUSE_ALLOCATES,
    BZ_CAUSE_RUNTIME,
    BZ_CAUSE_LIBRARY,
    BZ_CAUSE_LAYERS_OUTSIDE,
    BZ_CAUSE_OTHER_ITERATION,
    BZ_CAUSE_START,
    BZ_CAUSE_END,
    BZ_CAUSE_GAPS,
    BZ_CAUSE_OPERATOR, /* what an operator of the framework does besides: its name says which */
    BZ_CAUSES
} bz_cause_kind;

/* Who launches a kernel: tells what lies within a library's call from what a framework launches by itself. */
typedef enum { BZ_KERNEL_OF_ANYONE, BZ_KERNEL_OF_LIBRARY, BZ_KERNEL_OF_FRAMEWORK } bz_kernel_owner;
/* What the product of one call may be: a kernel, and what sums its parts up. */
typedef enum { BZ_PRODUCT_NONE, BZ_PRODUCT, BZ_PRODUCT_REST } bz_product;
/* A convolution of several kernels may begin with the input unfolded for a product, or transformed for several. */
typedef enum { BZ_KERNEL_ALONE, BZ_KERNEL_UNFOLDS, BZ_KERNEL_TRANSFORMS } bz_kernel_part;

/* What the full name of a kernel tells. Where it does not tell, a text is NULL. */
typedef struct bz_kernel {
    bz_kernel_does does;
    bz_kernel_owner owner;
    bz_product product;
    bz_kernel_part begins;
    const char *maker;     /* "cuDNN", "Triton" */
    const char *unit;      /* the matrix unit that it runs on: "Tensor Cores" */
    bool tells_unit;       /* NULL says that it runs on none; else its name does not tell */
    const char *type;      /* in which it multiplies, or of what it moves: "f16" */
    const char *algorithm; /* of a convolution, in cuDNN's spelling: CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD */
    const char *layer;     /* the kind of layer that it does where no library call asked for it: "relu"; */
    bz_cause_kind cause;   /* or what it does that no layer asks for */
} bz_kernel;
void bz_kernel_read(const char *full, bz_kernel *out);

/* What kernels of a group are mostly limited by: arithmetic or the memory. A rule of thumb, not a measurement. */
typedef enum { BZ_LIMIT_UNKNOWN, BZ_LIMIT_COMPUTE, BZ_LIMIT_MEMORY, BZ_LIMIT_NETWORK } bz_kernel_limit;
bz_kernel_limit bz_kernel_limit_of(bz_kernel_does does);
const char *bz_kernel_limit_name(bz_kernel_limit limit);

#endif
