/* Element-wise operations on two tensors, reductions, and what only moves data. */
#include "runtime/cudnn/cudnn.h"

/* cudnnOpTensor broadcasts its second tensor only; where the first has to be, they change places, if the
 * function does not mind. */
int cudnn_describe_binary(call *c, bz_error *why)
{
    static const struct {
        bz_fn fn;
        cudnnOpTensorOp_t op;
    } OPS[] = {
        {BZ_FN_ADD, CUDNN_OP_TENSOR_ADD}, {BZ_FN_SUB, CUDNN_OP_TENSOR_ADD}, {BZ_FN_MUL, CUDNN_OP_TENSOR_MUL},
        {BZ_FN_MAX, CUDNN_OP_TENSOR_MAX}, {BZ_FN_MIN, CUDNN_OP_TENSOR_MIN},
    };
    const bz_problem *p = c->problem;
    const bz_operand *y = &c->operand[c->n_operands - 1];
    size_t i = 0;
    while (i < sizeof OPS / sizeof *OPS && OPS[i].fn != p->binary.fn)
        i++;
    if (i == sizeof OPS / sizeof *OPS)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no operation %s on two tensors", bz_fn_name(p->binary.fn));
    if (p->dtype_w != p->dtype)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN wants both tensors in one type");
    if (y->rank > 5)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's operations on two tensors have at most five dimensions");
    bool whole_a = c->operand[0].count == y->count, whole_b = c->operand[1].count == y->count;
    bool swap = !whole_a && p->binary.fn != BZ_FN_SUB;
    if ((!whole_a && !swap) || (!whole_a && !whole_b))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN broadcasts the second tensor only");
    c->x = cudnn_tensor(c, swap);
    c->b = cudnn_tensor(c, !swap);
    c->y = cudnn_tensor(c, c->n_operands - 1);
    c->minus = p->binary.fn == BZ_FN_SUB ? (scalar){-1, -1} : (scalar){1, 1};
    cudnnStatus_t status = cudnnCreateOpTensorDescriptor(&c->op);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetOpTensorDescriptor(c->op, OPS[i].op, p->dtype == BZ_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                                            CUDNN_NOT_PROPAGATE_NAN);
    tensor *const all[] = {&c->x, &c->b, &c->y};
    for (int k = 0; k < 3 && status == CUDNN_STATUS_SUCCESS; k++)
        status = cudnn_set_whole(c, all[k]);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(why, "describing the operation", status);
    return cudnn_describe_posts(c, why);
}

cudnnStatus_t cudnn_run_binary(call *c)
{
    TRY(cudnnOpTensor(c->handle, c->op, cudnn_scalar(c, &c->one), c->x.desc, c->x.data, cudnn_scalar(c, &c->minus),
                      c->b.desc, c->b.data, cudnn_scalar(c, &c->zero), c->y.desc, c->y.data));
    return cudnn_run_posts(c);
}

int cudnn_describe_reduce(call *c, bz_error *why)
{
    static const struct {
        bz_fn fn;
        cudnnReduceTensorOp_t op;
    } OPS[] = {
        {BZ_FN_SUM, CUDNN_REDUCE_TENSOR_ADD},  {BZ_FN_MEAN, CUDNN_REDUCE_TENSOR_AVG},
        {BZ_FN_PROD, CUDNN_REDUCE_TENSOR_MUL}, {BZ_FN_MAX, CUDNN_REDUCE_TENSOR_MAX},
        {BZ_FN_MIN, CUDNN_REDUCE_TENSOR_MIN},  {BZ_FN_L1, CUDNN_REDUCE_TENSOR_NORM1},
        {BZ_FN_L2, CUDNN_REDUCE_TENSOR_NORM2},
    };
    const bz_problem *p = c->problem;
    size_t i = 0;
    while (i < sizeof OPS / sizeof *OPS && OPS[i].fn != p->reduce.fn)
        i++;
    if (i == sizeof OPS / sizeof *OPS)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no reduction %s", bz_fn_name(p->reduce.fn));
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, 1);
    cudnnStatus_t status = cudnnCreateReduceTensorDescriptor(&c->reduce);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetReduceTensorDescriptor(
            c->reduce, OPS[i].op, p->dtype == BZ_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
            CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
    status = status ? status : cudnn_set_whole(c, &c->x);
    status = status ? status : cudnn_set_whole(c, &c->y);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the reduction", status);
}

int cudnn_prepare_reduce(call *c, session *s, bz_error *err)
{
    (void)s;
    cudnnStatus_t status = cudnnGetReductionWorkspaceSize(c->handle, c->reduce, c->x.desc, c->y.desc, &c->workspace);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "asking for the workspace", status);
}

/* The gradient of a bias: the sum of all but the channels. */
int cudnn_describe_bias_grad(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    int rank = bz_extent_rank(p->reduce.x);
    bool channels = p->reduce.fn == BZ_FN_SUM && rank >= 3 && p->reduce.y[1] == p->reduce.x[1] && !p->post[0].fn;
    if (!channels || bz_extent_count(p->reduce.y) != p->reduce.y[1])
        return bz_fail(why, BZ_INCOMPLETE, "the gradient of a bias is a sum by channel");
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, 1);
    cudnnStatus_t status = cudnn_set_whole(c, &c->x);
    status = status ? status : cudnn_set_channels(&c->y, rank, p->reduce.y[1]);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the bias", status);
}

cudnnStatus_t cudnn_run_bias_grad(call *c)
{
    return cudnnConvolutionBackwardBias(c->handle, cudnn_scalar(c, &c->one), c->x.desc, c->x.data,
                                        cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

cudnnStatus_t cudnn_run_reduce(call *c)
{
    return cudnnReduceTensor(c->handle, c->reduce, NULL, 0, c->cuda->workspace, c->workspace, cudnn_scalar(c, &c->one),
                             c->x.desc, c->x.data, cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* The same dimensions with other strides: x is seen in the order of the result. */
int cudnn_describe_transpose(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    const bz_operand *y = &c->operand[1];
    int64_t stride[BZ_PROBLEM_RANK];
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "a transposition has its layouts in itself (layout plain)");
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, 1);
    c->factor = c->one;
    for (int i = 0; i < y->rank; i++)
        stride[i] = c->x.layout.stride[p->transpose.perm[i]];
    cudnnStatus_t status = cudnn_set(&c->x, y->rank, y->dim, stride);
    status = status ? status : cudnn_set_whole(c, &c->y);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the transposition", status);
}

int cudnn_describe_reorder(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (p->reorder.from == BZ_LAYOUT_BLOCKED || p->reorder.to == BZ_LAYOUT_BLOCKED)
        return bz_fail(why, BZ_INCOMPLETE, "blocked layouts are oneDNN's");
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "a reorder has its layouts in itself (layout plain)");
    c->nhwc = p->reorder.from == BZ_LAYOUT_NHWC;
    c->x = cudnn_tensor(c, 0);
    c->nhwc = p->reorder.to == BZ_LAYOUT_NHWC;
    c->y = cudnn_tensor(c, 1);
    c->nhwc = false;
    c->factor = (scalar){p->reorder.scale, (double)p->reorder.scale};
    cudnnStatus_t status = cudnn_set_whole(c, &c->x);
    status = status ? status : cudnn_set_whole(c, &c->y);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the reorder", status);
}

/* alpha x. cudnnScaleTensor computes it in place, which a layer does not. */
int cudnn_describe_scale(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (p->activation.fn != BZ_FN_LINEAR || p->activation.beta != 0)
        return bz_fail(why, BZ_INCOMPLETE, "transforming a tensor multiplies it by a number at most");
    c->factor = (scalar){p->activation.alpha, (double)p->activation.alpha};
    return cudnn_describe_both(c, why);
}

cudnnStatus_t cudnn_run_transform(call *c)
{
    return cudnnTransformTensor(c->handle, cudnn_scalar(c, &c->factor), c->x.desc, c->x.data, cudnn_scalar(c, &c->zero),
                                c->y.desc, c->y.data);
}

/* A call for each part: into the result, whose strides the part has. y stands for the part's place. */
int cudnn_describe_concat(call *c, bz_error *why)
{
    c->y = cudnn_tensor(c, c->n_operands - 1);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < c->n_operands - 1 && status == CUDNN_STATUS_SUCCESS; i++) {
        const bz_operand *o = &c->operand[i];
        tensor *from = &c->part[2 * c->n_parts], *to = from + 1;
        if (2 * c->n_parts + 2 > BZ_PROBLEM_PARTS)
            return bz_fail(why, BZ_INCOMPLETE, "more than %d parts", BZ_PROBLEM_PARTS / 2);
        *from = cudnn_tensor(c, i);
        *to = (tensor){.operand = -1, .layout = c->y.layout};
        c->n_parts++;
        status = cudnn_set_whole(c, from);
        status = status ? status : cudnn_set(to, o->rank, o->dim, c->y.layout.stride);
    }
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the parts", status);
}

cudnnStatus_t cudnn_run_concat(call *c)
{
    const bz_problem *p = c->problem;
    int64_t at = 0, step = c->y.layout.stride[p->concat.axis] * bz_dtype_bits(p->dtype) / 8;
    for (int i = 0; i < c->n_parts; at += p->concat.sizes[i++])
        TRY(cudnnTransformTensor(c->handle, cudnn_scalar(c, &c->one), c->part[2 * i].desc, c->part[2 * i].data,
                                 cudnn_scalar(c, &c->zero), c->part[2 * i + 1].desc, (char *)c->y.data + at * step));
    return CUDNN_STATUS_SUCCESS;
}

/* x into the middle of the result. The border of zeros around it is there before the first call, and no call writes it: what
 * keeps its buffers needs no more. In a replay other tensors lie there in between, so that it is written each time. y is
 * described as the middle. */
static void *middle_of(const call *c)
{
    const bz_problem *p = c->problem;
    int64_t at = 0;
    for (int i = 0; i < c->operand[0].rank - 2; i++)
        at += p->pad.pad[i] * c->y.layout.stride[2 + i];
    return (char *)c->y.data + at * bz_dtype_bits(p->dtype) / 8;
}

static int poison_middle(call *c)
{
    bz_cuda_layout middle = c->y.layout;
    for (int i = 0; i < c->operand[0].rank - 2; i++)
        middle.offset += c->problem->pad.pad[i] * middle.stride[2 + i];
    return bz_cuda_operand_poison_part(&c->operand[0], &middle, c->y.data);
}

int cudnn_describe_pad(call *c, bz_error *why)
{
    if (c->problem->dtype_y != c->problem->dtype)
        return bz_fail(why, BZ_INCOMPLETE, "a border changes no data type");
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, 1);
    c->poison = poison_middle;
    cudnnStatus_t status = cudnn_set_whole(c, &c->x);
    status = status ? status : cudnn_set(&c->y, c->operand[0].rank, c->operand[0].dim, c->y.layout.stride);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing x and its place", status);
}

static cudnnStatus_t clear_border(const call *c)
{
    size_t bytes = (size_t)c->y.layout.elements * (size_t)bz_dtype_bits(c->problem->dtype) / 8;
    return c->cuda->borrowed && cudaMemsetAsync(c->y.data, 0, bytes, c->cuda->stream) != cudaSuccess
               ? CUDNN_STATUS_EXECUTION_FAILED
               : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_run_pad(call *c)
{
    TRY(clear_border(c));
    return cudnnTransformTensor(c->handle, cudnn_scalar(c, &c->one), c->x.desc, c->x.data, cudnn_scalar(c, &c->zero),
                                c->y.desc, middle_of(c));
}

int cudnn_describe_pad_copy(call *c, bz_error *why)
{
    if (c->operand[0].rank > 4)
        return bz_fail(why, BZ_INCOMPLETE, "no single copy puts three dimensions into a border");
    return cudnn_describe_pad(c, why);
}

/* Rows of bytes, height, and all else as depth. */
cudnnStatus_t cudnn_run_pad_copy(call *c)
{
    const bz_operand *x = &c->operand[0];
    const int64_t *stride = c->y.layout.stride;
    size_t size = (size_t)bz_dtype_bits(c->problem->dtype) / 8;
    bool flat = x->rank == 3; /* one spatial dimension: rows without a height */
    size_t channels = c->nhwc ? (size_t)x->dim[1] : 1, planes = (size_t)(c->nhwc ? x->dim[0] : x->dim[0] * x->dim[1]);
    size_t width = (size_t)x->dim[x->rank - 1] * channels * size, height = flat ? 1 : (size_t)x->dim[2];
    size_t plane = (size_t)stride[c->nhwc ? 0 : 1] * size, row = flat ? plane : (size_t)stride[2] * size;
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {c->x.data, width, width, height},
        .dstPtr = {middle_of(c), row, width, plane / row},
        .extent = {width, height, planes},
        .kind = cudaMemcpyDeviceToDevice,
    };
    TRY(clear_border(c));
    return cudaMemcpy3DAsync(&copy, c->cuda->stream) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                    : CUDNN_STATUS_EXECUTION_FAILED;
}

/* As many bytes as are read and written in all, in equal parts: memory has one bandwidth for both. */
int cudnn_describe_copy(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    int64_t half = (p->copy.read + p->copy.write + 1) / 2;
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "bytes have no layout (layout plain)");
    c->x = (tensor){.operand = 0, .layout = {.dtype = BZ_U8, .elements = half > p->copy.read ? half : p->copy.read}};
    c->x.layout.stride[0] = 1;
    c->y = (tensor){.operand = 1, .layout = {.dtype = BZ_U8, .elements = half > p->copy.write ? half : p->copy.write}};
    c->y.layout.stride[0] = 1;
    return 0;
}

cudnnStatus_t cudnn_run_copy(call *c)
{
    size_t half = (size_t)(c->problem->copy.read + c->problem->copy.write + 1) / 2;
    return cudaMemcpyAsync(c->y.data, c->x.data, half, cudaMemcpyDeviceToDevice, c->cuda->stream) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}
