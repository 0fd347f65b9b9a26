/* The graph interface: what a graph is made of. Private to this folder. */
#ifndef BZ_CUDNN_GRAPH_H
#define BZ_CUDNN_GRAPH_H

#include "runtime/cudnn/cudnn.h"

enum { GRAPH_TENSORS = 52, GRAPH_OPS = 36, GRAPH_CONFIGS = 128 };

/* An edge of the graph. Its number is its identity in the library's eyes. */
typedef struct graph_tensor {
    cudnnBackendDescriptor_t desc;
    tensor memory; /* operand -1: it passes from one operation to the next, or is a number */
    bool number;   /* passed by value */
    bool cell;     /* in the device's memory, of the call's own: one number, or what follows */
    union {
        float real;
        int32_t whole;
    } value;
    size_t scales;   /* how many: each is one byte, `value.whole`, which is 1 */
    int32_t *whole;  /* or whole numbers, */
    size_t wholes;   /* so many */
    int ragged;      /* 1 + the tensor that tells where each part of its first dimension begins; 0: none does */
    size_t room, at; /* so many bytes of the workspace behind the plan's, from there; 0: none */
} graph_tensor;

/* An engine configuration that the library proposed. */
typedef struct graph_config {
    cudnnBackendDescriptor_t
        desc; /* NULL where an earlier process was proposed it: made where its plan has to be built */
    char name[140];
    bool native;                   /* the engine can make a CUDA graph of itself */
    cudnnBackendDescriptor_t plan; /* kept for its second variant, which is launched as a CUDA graph */
} graph_config;

struct graph_call {
    graph_tensor tensor[GRAPH_TENSORS];
    cudnnBackendDescriptor_t op[GRAPH_OPS], part[GRAPH_OPS]; /* part: what operations have in themselves */
    int n_tensors, n_ops, n_parts;
    cudnnStatus_t status; /* while it is being built: the first refusal, after which the library is asked no more */
    int y;                /* the tensor that is the result */
    int epsilon;          /* that which is a normalization's; 0: none */
    cudnnBackendDescriptor_t graph;
    graph_config config[GRAPH_CONFIGS]; /* of the first call of a row; the others refer to it */
    int n_configs;
    bool asked;
    int chosen; /* the first that mode A proposes and that is allowed here; -1 where there is none */
    cudnnBackendDescriptor_t plan, pack; /* plan: the configuration's where that keeps it */
    bool native;                         /* the engine makes a CUDA graph of itself, which is launched */
    cudaGraph_t cuda_graph;              /* and that graph */
    cudaGraphExec_t exec;
};

/* ---- plan.c --------------------------------------------------------------------------------- */

/* A configuration by its name, "engine 5 k2=18"; without knobs they are as the engine likes. */
cudnnStatus_t cudnn_config_named(const call *c, const char *name, cudnnBackendDescriptor_t *out);

/* The configurations that an earlier process was proposed for this graph, with the one that the library chose; false where
 * the library has to be asked. */
bool cudnn_configs_take(call *c);
void cudnn_configs_keep(const call *c);

/* The plan of a configuration: kept by an earlier process, or built now. */
cudnnStatus_t cudnn_plan_get(const call *c, const graph_config *config, cudnnBackendDescriptor_t *out);

/* cuDNN's description of a device that is there. */
cudnnStatus_t cudnn_device_find(int number, cudnnBackendDescriptor_t *out);

/* Asks and builds all that a family of the job's problem needs of graphs, for a device that is described. */
void cudnn_build_for(const bz_job *job, const char *layout, const char *math, cudnnBackendDescriptor_t device);

/* ---- graph_op.c ----------------------------------------------------------------------------- */

void graph_forget(cudnnBackendDescriptor_t *d); /* destroys it; NULL is fine */
cudnnStatus_t graph_set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        int64_t n, const void *v);
cudnnStatus_t graph_set_desc(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t v);

/* A type in the library's terms; where it has none, the graph is refused. */
cudnnDataType_t graph_type(call *c, bz_dtype t);

/* Each adds a tensor and returns its number: an operand; one between operations; a number in f32, or a whole one, by value; and a number
 * that lies in the device's memory, where operations read or write it. */
int graph_tensor_add(call *c, int operand, const bz_cuda_layout *layout, int rank, const int64_t *dim,
                     const int64_t *stride);
/* An operand whose first dimension's parts begin where another tensor says, in elements; -1: it has none. */
int graph_ragged_add(call *c, int operand, const bz_cuda_layout *layout, int rank, const int64_t *dim,
                     const int64_t *stride, int from);
int graph_between_add(call *c, cudnnDataType_t type, int rank, const int64_t *dim, const int64_t *stride);
int graph_number_add(call *c, float value, int rank);
int graph_count_add(call *c, int32_t value, int rank);
int graph_cell_add(call *c, float value, int rank);
/* Whole numbers in the device's memory, which the graph keeps; in this shape, row by row. */
int graph_wholes_add(call *c, int32_t *numbers, int rank, const int64_t *dim);
/* A tensor of f32 in the workspace: between operations, where an engine sums up what several of its blocks made. */
int graph_room_add(call *c, int rank, const int64_t *dim, const int64_t *stride);
/* Scales of blocks of such numbers, in the device's memory, in the order that engines want. */
int graph_scales_add(call *c, bz_dtype of, int rank, const int64_t *dim, const int64_t *stride);

/* Each adds an operation into the tensor y, and those that have one result return its number. First: x times the scales of its blocks, `block`
 * numbers along its innermost dimension each. */
int graph_dequantize_add(call *c, int x, int scales, int32_t block, int y);
/* A function of one tensor or of two (b -1: of one). Refused where the library has none. */
int graph_function_add(call *c, bz_fn fn, float alpha, float beta, int x, int b, int y);
/* dx = fn'(x) dy. */
void graph_slope_add(call *c, bz_fn fn, float alpha, float beta, int x, int dy, int dx);
/* The problem's convolution. */
void graph_conv_add(call *c, int first, int second, int result);
/* Sums of x, and of its squares, to their shape. */
void graph_sums_add(call *c, int x, int sums, int squares);
/* `index`: which element of its window each result is; -1. */
void graph_pool_add(call *c, int x, int index, int y);
void graph_pool_grad_add(call *c, int dy, int index, int dx);
int graph_matmul_add(call *c, int a, int b, int y);
/* The same of so many rows, columns and depth as tensors of whole numbers say for each matrix; -1: of all. */
int graph_matmul_part_add(call *c, int a, int b, int rows, int columns, int depth, int y);

/* Of a normalization, or of its gradient, where `y` is that of x and `shift` that of the shift; -1: there is none. With `root`,
 * 1 / √(variance + epsilon), it is a normalization of training. */
typedef struct graph_norm {
    int x, dy, mean, root, scale, shift, epsilon, dscale, y;
} graph_norm;
void graph_norm_add(call *c, cudnnBackendNormMode_t mode, const graph_norm *tensors);
void graph_norm_grad_add(call *c, cudnnBackendNormMode_t mode, const graph_norm *tensors);

/* For each element of x: its coordinate along the axis. For each element: how a compares to b; x where `where` holds, else `otherwise`. */
int graph_index_add(call *c, int64_t axis, int x, int y);
int graph_compare_add(call *c, cudnnPointwiseMode_t how, int a, int b, int y);
/* a and b, which are whole numbers, as y is. */
int graph_whole_add(call *c, cudnnPointwiseMode_t how, int a, int b, int y);
int graph_select_add(call *c, int x, int otherwise, int where, int y);
/* To the shape of y. */
int graph_reduction_add(call *c, cudnnReduceTensorOp_t what, int x, int y);
/* Keys and values in pages: tables of their numbers, and lengths of queries and keys; -1: they are not. */
typedef struct graph_sdpa {
    int q, k, v, scale, y, table_k, table_v, length_q, length_k;
} graph_sdpa;
void graph_sdpa_add(call *c, const graph_sdpa *tensors);
/* The same elements in the dimensions and strides of y. */
int graph_reshape_add(call *c, int x, int y);

/* ---- graph_kind.c --------------------------------------------------------------------------- */

/* What becomes of an operand that has fewer dimensions than the library wants: ones stand behind it, or in front of
 * it (products); or, where elements are by themselves, the last dimension becomes the channels, and what lies row by
 * row lies channels last: engines for that know no other order. ONE_BATCH: all dimensions of a product's batch are
 * one, since hardly an engine knows two: a=1x12x384x64 has none, a=12x384x64 has three. */
typedef enum { ONES_BEHIND, ONES_IN_FRONT, ROWS, ONE_BATCH } graph_place;
int graph_operand_add(call *c, int operand, int least, graph_place at);
/* A product's operand, its last two dimensions exchanged where it is turned. */
int graph_factor_add(call *c, int operand, bool turned, graph_place at);
bool graph_is_f8(bz_dtype t);

/* -1 where no graph is built of such types. */
int graph_check_types(const call *c, bz_error *why);

#endif
