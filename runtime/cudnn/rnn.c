/* Recurrent networks: one layer over a sequence, by cudnnRNNForward. */
#include "runtime/cudnn/cudnn.h"

#include "base/arena.h"
#include "runtime/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rnn_call {
    cudnnRNNDescriptor_t rnn;
    cudnnRNNDataDescriptor_t x, y;
    cudnnDropoutDescriptor_t dropout; /* of nothing; the library wants one */
    tensor h, c;
    int32_t *lengths; /* on the device */
    void *weights;
    size_t weights_size;
};

static const char *const ALGORITHMS[] = {"rnn_standard", "rnn_persist_static", "rnn_persist_dynamic",
                                         "rnn_persist_static_small_h"};

const char *cudnn_rnn_algorithm(const call *c, int i, char *out, size_t size)
{
    (void)c;
    if (i >= (int)CUDNN_RNN_ALGO_COUNT)
        return NULL;
    snprintf(out, size, "%s", ALGORITHMS[i]);
    return out;
}

static cudnnRNNMode_t mode_of(const bz_problem *p)
{
    return p->kind == BZ_PROBLEM_LSTM  ? CUDNN_LSTM
           : p->kind == BZ_PROBLEM_GRU ? CUDNN_GRU
           : p->rnn.fn == BZ_FN_RELU   ? CUDNN_RNN_RELU
                                       : CUDNN_RNN_TANH;
}

/* A GRU with the reset behind the product has a second bias there; all others have one. */
static cudnnStatus_t set_rnn(const call *c, struct rnn_call *r)
{
    const bz_problem *p = c->problem;
    cudnnDataType_t type;
    if (!cudnn_dtype(p->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(cudnnCreateDropoutDescriptor(&r->dropout));
    TRY(cudnnSetDropoutDescriptor(r->dropout, c->handle, 0, NULL, 0, 0));
    TRY(cudnnCreateRNNDescriptor(&r->rnn));
    return cudnnSetRNNDescriptor_v8(r->rnn, (cudnnRNNAlgo_t)c->algorithm, mode_of(p),
                                    p->kind == BZ_PROBLEM_GRU ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_SINGLE_INP_BIAS,
                                    p->rnn.dir == BZ_BIDIRECTIONAL ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                                    CUDNN_LINEAR_INPUT, type, cudnn_compute(c), c->math, (int32_t)p->rnn.input,
                                    (int32_t)p->rnn.hidden, (int32_t)p->rnn.hidden, 1, r->dropout,
                                    CUDNN_RNN_PADDED_IO_DISABLED);
}

static cudnnStatus_t set_data(const call *c, cudnnRNNDataDescriptor_t *out, int64_t width)
{
    const bz_problem *p = c->problem;
    cudnnDataType_t type;
    int *length = bz_alloc((size_t)p->rnn.batch, sizeof *length);
    for (int64_t i = 0; i < p->rnn.batch; i++)
        length[i] = (int)p->rnn.seq;
    cudnn_dtype(p->dtype, &type);
    cudnnStatus_t status = cudnnCreateRNNDataDescriptor(out);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetRNNDataDescriptor(*out, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, (int)p->rnn.seq,
                                           (int)p->rnn.batch, (int)width, length, NULL);
    free(length);
    return status;
}

/* States have three dimensions: [directions, batch, hidden]. */
static cudnnStatus_t set_state(const call *c, tensor *t, bz_role role)
{
    cudnnDataType_t type;
    int dim[3], stride[3];
    *t = (tensor){.operand = cudnn_find(c, role)};
    if (t->operand < 0)
        return CUDNN_STATUS_SUCCESS;
    const bz_operand *o = &c->operand[t->operand];
    t->layout = bz_cuda_plain(o);
    t->layout.dtype = c->problem->dtype;
    for (int i = 0; i < 3; i++) {
        dim[i] = (int)o->dim[i];
        stride[i] = (int)t->layout.stride[i];
    }
    cudnn_dtype(c->problem->dtype, &type);
    TRY(cudnnCreateTensorDescriptor(&t->desc));
    return cudnnSetTensorNdDescriptor(t->desc, type, 3, dim, stride);
}

int cudnn_describe_rnn(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "sequences have no channels (layout plain)");
    if (p->rnn.dir == BZ_REVERSE)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN runs sequences forwards or both ways");
    if (p->kind == BZ_PROBLEM_GRU && !p->rnn.lbr)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's GRU resets behind the product (lbr=1)");
    if (p->rnn.peephole)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's LSTM has no peepholes: its gates do not see the cell");
    if (p->kind == BZ_PROBLEM_RNN && p->rnn.fn && p->rnn.fn != BZ_FN_TANH && p->rnn.fn != BZ_FN_RELU)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's plain RNN has tanh and relu, not %s", bz_fn_name(p->rnn.fn));
    if (p->dtype_w != p->dtype || p->dtype_y != p->dtype || !bz_dtype_is_float(p->dtype))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN wants one floating-point type for data and weights");
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, c->n_operands - 1);
    struct rnn_call *r = c->rnn = bz_alloc(1, sizeof *r);
    *r = (struct rnn_call){0};
    cudnnStatus_t status = set_data(c, &r->x, p->rnn.input);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set_data(c, &r->y, c->operand[c->n_operands - 1].dim[2]);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set_state(c, &r->h, BZ_ROLE_H);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set_state(c, &r->c, BZ_ROLE_C);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the sequence", status);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Numbers of cuDNN's matrices by our gates. Theirs of the LSTM are input, forget, new, output like ours; of
 * the GRU reset, update, new, and we have update first. The recurrent ones follow behind. */
static int matrix_of(const bz_problem *p, int gate, int gates, bool recurrent)
{
    static const int GRU[] = {1, 0, 2};
    return (p->kind == BZ_PROBLEM_GRU ? GRU[gate] : gate) + (recurrent ? gates : 0);
}

/* Values in the type of the data; NULL stands for zeros. */
static cudaError_t put(const call *c, void *to, const float *from, int64_t n)
{
    bz_dtype t = c->problem->dtype;
    size_t size = (size_t)bz_dtype_bits(t) / 8;
    char *encoded = bz_alloc((size_t)n, size);
    memset(encoded, 0, (size_t)n * size);
    if (from)
        bz_values_encode(t, from, encoded, n);
    cudaError_t status = cudaMemcpy(to, encoded, (size_t)n * size, cudaMemcpyHostToDevice);
    free(encoded);
    return status;
}

/* The matrix of one gate. Ours are [inputs, gates, hidden], theirs [hidden, inputs]. */
static cudaError_t put_matrix(const call *c, void *to, const float *w, int64_t inputs, int gate, int gates)
{
    int64_t h = c->problem->rnn.hidden;
    float *turned = bz_alloc((size_t)(h * inputs), sizeof *turned);
    for (int64_t j = 0; j < h; j++)
        for (int64_t i = 0; i < inputs; i++)
            turned[j * inputs + i] = w[(i * gates + gate) * h + j];
    cudaError_t status = put(c, to, turned, h * inputs);
    free(turned);
    return status;
}

/* Matrix and bias of one gate in one direction. The second bias of the GRU is that of the new state, behind the
 * product; the other gates, and the other kinds, have none there. */
static int put_gate(const call *c, const session *s, int direction, int gate, int gates, bool recurrent,
                    cudnnTensorDescriptor_t m_desc, cudnnTensorDescriptor_t b_desc, bz_error *err)
{
    const bz_problem *p = c->problem;
    bool gru = p->kind == BZ_PROBLEM_GRU;
    int64_t h = p->rnn.hidden, n = recurrent ? h : p->rnn.input;
    void *matrix = NULL, *bias = NULL;
    const float *w = s->job->value[cudnn_find(c, recurrent ? BZ_ROLE_R : BZ_ROLE_W)] + direction * n * gates * h;
    const float *b = s->job->value[cudnn_find(c, BZ_ROLE_BIAS)] + direction * (gates + gru) * h;
    cudnnStatus_t status =
        cudnnGetRNNWeightParams(c->handle, c->rnn->rnn, direction, c->rnn->weights_size, c->rnn->weights,
                                matrix_of(p, gate, gates, recurrent), m_desc, &matrix, b_desc, &bias);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "asking where the weights go", status);
    cudaError_t copied = matrix ? put_matrix(c, matrix, w, n, gate, gates) : cudaSuccess;
    if (bias && copied == cudaSuccess)
        copied = put(c, bias, !recurrent ? b + gate * h : gru && gate == 2 ? b + 3 * h : NULL, h);
    return copied == cudaSuccess ? 0 : bz_cuda_failed(err, "bringing the weights to the device", copied);
}

static int put_weights(const call *c, const session *s, bz_error *err)
{
    const bz_problem *p = c->problem;
    int gates = p->kind == BZ_PROBLEM_LSTM ? 4 : p->kind == BZ_PROBLEM_GRU ? 3 : 1, result = 0;
    cudnnTensorDescriptor_t m = NULL, b = NULL;
    if (cudnnCreateTensorDescriptor(&m) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateTensorDescriptor(&b) != CUDNN_STATUS_SUCCESS)
        result = bz_fail(err, BZ_FAILED, "no descriptor for the weights");
    for (int d = 0; d < (p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1); d++)
        for (int g = 0; g < gates; g++)
            for (int recurrent = 0; recurrent < 2 && !result; recurrent++)
                result = put_gate(c, s, d, g, gates, recurrent, m, b, err);
    if (m)
        cudnnDestroyTensorDescriptor(m);
    if (b)
        cudnnDestroyTensorDescriptor(b);
    return result;
}

static int put_lengths(const call *c, bz_error *err)
{
    const bz_problem *p = c->problem;
    size_t size = (size_t)p->rnn.batch * sizeof(int32_t);
    int32_t *length = bz_alloc((size_t)p->rnn.batch, sizeof *length);
    void *data = NULL;
    for (int64_t i = 0; i < p->rnn.batch; i++)
        length[i] = (int32_t)p->rnn.seq;
    int result = bz_cuda_alloc(size, &data, err);
    cudaError_t status = result ? cudaSuccess : cudaMemcpy(data, length, size, cudaMemcpyHostToDevice);
    free(length);
    c->rnn->lengths = data;
    return result ? -1 : status == cudaSuccess ? 0 : bz_cuda_failed(err, "bringing the lengths to the device", status);
}

int cudnn_prepare_rnn(call *c, session *s, bz_error *err)
{
    struct rnn_call *r = c->rnn;
    size_t reserve = 0;
    cudnnStatus_t status = set_rnn(c, r);
    if (status == CUDNN_STATUS_SUCCESS && c->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        status = cudnnBuildRNNDynamic(c->handle, r->rnn, (int)c->problem->rnn.batch);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnGetRNNWeightSpaceSize(c->handle, r->rnn, &r->weights_size);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnGetRNNTempSpaceSizes(c->handle, r->rnn, CUDNN_FWD_MODE_INFERENCE, r->x, &c->workspace, &reserve);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "describing the network", status);
    if (bz_cuda_alloc(r->weights_size, &r->weights, err) || put_weights(c, s, err) || put_lengths(c, err))
        return -1;
    return bz_cudnn_upload(s, &r->h, err) || bz_cudnn_upload(s, &r->c, err) ? -1 : 0;
}

cudnnStatus_t cudnn_run_rnn(call *c)
{
    struct rnn_call *r = c->rnn;
    cudnnTensorDescriptor_t cell = r->c.desc ? r->c.desc : r->h.desc;
    return cudnnRNNForward(c->handle, r->rnn, CUDNN_FWD_MODE_INFERENCE, r->lengths, r->x, c->x.data, r->y, c->y.data,
                           r->h.desc, r->h.data, NULL, cell, r->c.data, NULL, r->weights_size, r->weights, c->workspace,
                           c->cuda->workspace, 0, NULL);
}

int cudnn_rnn_states(call *c, tensor **out)
{
    int n = 0;
    if (c->rnn && c->rnn->h.operand >= 0)
        out[n++] = &c->rnn->h;
    if (c->rnn && c->rnn->c.operand >= 0)
        out[n++] = &c->rnn->c;
    return n;
}

void cudnn_release_rnn(call *c)
{
    struct rnn_call *r = c->rnn;
    if (!r)
        return;
    if (r->h.desc)
        cudnnDestroyTensorDescriptor(r->h.desc);
    if (r->c.desc)
        cudnnDestroyTensorDescriptor(r->c.desc);
    if (r->x)
        cudnnDestroyRNNDataDescriptor(r->x);
    if (r->y)
        cudnnDestroyRNNDataDescriptor(r->y);
    if (r->rnn)
        cudnnDestroyRNNDescriptor(r->rnn);
    if (r->dropout)
        cudnnDestroyDropoutDescriptor(r->dropout);
    bz_cuda_free(r->lengths);
    bz_cuda_free(r->weights);
    free(r);
    c->rnn = NULL;
}
