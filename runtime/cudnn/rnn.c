/* Recurrent networks: one layer over a sequence, by cudnnRNNForward; its gradients by cudnnRNNBackwardData_v8, then
 * cudnnRNNBackwardWeights_v8, which adds to what is there. What the forward pass keeps in the reserve space is the library's own, and
 * the backward pass changes it: a benchmark of that runs the forward pass before the first call, and before each result that is
 * checked. */
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
    tensor last, last_c, states;         /* what the forward pass gives */
    tensor dy, dh, dc, first_h, first_c; /* gradients: of that, and of the first states */
    int32_t *lengths;                    /* on the device */
    void *weights, *gradients;           /* gradients: of the weights, laid as they are */
    size_t weights_size;
    void *reserve; /* what training keeps */
    size_t reserve_size;
};

static bool is_grad(const bz_problem *p)
{
    return bz_problem_has(p, BZ_TRAIT_GRADIENT);
}

static int directions_of(const bz_problem *p)
{
    return p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
}

static cudnnForwardMode_t forward_mode(const bz_problem *p)
{
    return is_grad(p) || p->rnn.training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
}

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
    return bz_problem_is_lstm(p)     ? CUDNN_LSTM
           : bz_problem_is_gru(p)    ? CUDNN_GRU
           : p->rnn.fn == BZ_FN_RELU ? CUDNN_RNN_RELU
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
                                    bz_problem_is_gru(p) ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_SINGLE_INP_BIAS,
                                    p->rnn.dir == BZ_BIDIRECTIONAL ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                                    CUDNN_LINEAR_INPUT, type, cudnn_compute(c), c->math, (int32_t)p->rnn.input,
                                    (int32_t)p->rnn.hidden, (int32_t)p->rnn.hidden, 1, r->dropout,
                                    CUDNN_RNN_PADDED_IO_DISABLED);
}

static cudnnStatus_t set_data(const call *c, cudnnRNNDataDescriptor_t *out, int64_t width)
{
    const bz_problem *p = c->problem;
    cudnnDataType_t type;
    BZ_FREED int *length = bz_alloc((size_t)p->rnn.batch, sizeof *length);
    for (int64_t i = 0; i < p->rnn.batch; i++)
        length[i] = (int)p->rnn.seq;
    cudnn_dtype(p->dtype, &type);
    cudnnStatus_t status = cudnnCreateRNNDataDescriptor(out);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetRNNDataDescriptor(*out, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, (int)p->rnn.seq,
                                           (int)p->rnn.batch, (int)width, length, NULL);
    return status;
}

/* What lies in three dimensions: states are [directions, batch, hidden]. Among the results, or among the others. */
static cudnnStatus_t set_state(const call *c, tensor *t, bz_role role, bool result)
{
    cudnnDataType_t type;
    int dim[3], stride[3], i = 0;
    while (i < c->n_operands && (c->operand[i].role != role || c->operand[i].result != result))
        i++;
    *t = (tensor){.operand = i < c->n_operands ? i : -1};
    if (t->operand < 0)
        return CUDNN_STATUS_SUCCESS;
    const bz_operand *o = &c->operand[t->operand];
    t->layout = bz_cuda_plain(o);
    t->layout.dtype = c->problem->dtype;
    for (int d = 0; d < 3; d++) {
        dim[d] = (int)o->dim[d];
        stride[d] = (int)t->layout.stride[d];
    }
    cudnn_dtype(c->problem->dtype, &type);
    TRY(cudnnCreateTensorDescriptor(&t->desc));
    return cudnnSetTensorNdDescriptor(t->desc, type, 3, dim, stride);
}

/* All tensors beside x and the last result. */
enum { STATES = 10 };

static int states_of(struct rnn_call *r, tensor *out[STATES])
{
    tensor *const own[STATES] = {&r->h,  &r->c,  &r->last, &r->last_c,  &r->states,
                                 &r->dy, &r->dh, &r->dc,   &r->first_h, &r->first_c};
    memcpy(out, own, sizeof own);
    return STATES;
}

static cudnnStatus_t set_states(const call *c, struct rnn_call *r)
{
    const struct {
        tensor *t;
        bz_role role;
        bool result;
    } ROWS[STATES] = {{&r->h, BZ_ROLE_H, false},      {&r->c, BZ_ROLE_C, false},
                      {&r->last, BZ_ROLE_LAST, true}, {&r->last_c, BZ_ROLE_LAST_C, true},
                      {&r->states, BZ_ROLE_O, false}, {&r->dy, BZ_ROLE_DY, false},
                      {&r->dh, BZ_ROLE_DH, false},    {&r->dc, BZ_ROLE_DC, false},
                      {&r->first_h, BZ_ROLE_H, true}, {&r->first_c, BZ_ROLE_C, true}};
    for (int i = 0; i < STATES; i++)
        TRY(set_state(c, ROWS[i].t, ROWS[i].role, ROWS[i].result));
    return CUDNN_STATUS_SUCCESS;
}

int cudnn_describe_rnn(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "sequences have no channels (layout plain)");
    if (p->rnn.dir == BZ_REVERSE)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN runs sequences forwards or both ways");
    if (bz_problem_is_gru(p) && !p->rnn.lbr)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's GRU resets behind the product (lbr=1)");
    if (p->rnn.peephole)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's LSTM has no peepholes: its gates do not see the cell");
    if (!bz_problem_is_lstm(p) && !bz_problem_is_gru(p) && p->rnn.fn && p->rnn.fn != BZ_FN_TANH &&
        p->rnn.fn != BZ_FN_RELU)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's plain RNN has tanh and relu, not %s", bz_fn_name(p->rnn.fn));
    if (p->dtype_w != p->dtype || p->dtype_y != p->dtype || !bz_dtype_is_float(p->dtype))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN wants one floating-point type for data and weights");
    c->x = cudnn_tensor(c, 0);
    c->y = cudnn_tensor(c, c->n_operands - 1);
    struct rnn_call *r = c->rnn = bz_alloc(1, sizeof *r);
    *r = (struct rnn_call){0};
    cudnnStatus_t status = set_data(c, &r->x, p->rnn.input);
    status = status ? status : set_data(c, &r->y, directions_of(p) * p->rnn.hidden);
    status = status ? status : set_states(c, r);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the sequence", status);
}

/* Numbers of cuDNN's matrices by our gates. Theirs of the LSTM are input, forget, new, output like ours; of
 * the GRU reset, update, new, and we have update first. The recurrent ones follow behind. */
static int matrix_of(const bz_problem *p, int gate, bool recurrent)
{
    static const int GRU[] = {1, 0, 2};
    return (bz_problem_is_gru(p) ? GRU[gate] : gate) + (recurrent ? bz_rnn_gates(p->kind) : 0);
}

/* Values in the type of the data; NULL stands for zeros. */
static int put(const call *c, void *to, const float *from, int64_t n, bz_error *err)
{
    bz_dtype t = c->problem->dtype;
    size_t size = (size_t)bz_dtype_bits(t) / 8;
    BZ_FREED char *encoded = bz_zeroed((size_t)n, size);
    if (from)
        bz_values_encode(t, from, encoded, n);
    return bz_cuda_put(to, encoded, (size_t)n * size, "bringing the weights to the device", err);
}
/* The matrix of one gate. Ours are [inputs, gates, hidden], theirs [hidden, inputs]. */
static int put_matrix(const call *c, void *to, const float *w, int64_t inputs, int gate, int gates, bz_error *err)
{
    int64_t h = c->problem->rnn.hidden;
    BZ_FREED float *turned = bz_alloc((size_t)(h * inputs), sizeof *turned);
    for (int64_t j = 0; j < h; j++)
        for (int64_t i = 0; i < inputs; i++)
            turned[j * inputs + i] = w[(i * gates + gate) * h + j];
    return put(c, to, turned, h * inputs, err);
}

/* Where the matrix and the bias of one gate in one direction lie in a space of weights; NULL: there is none. Descriptors
 * of them are asked for, too, and not needed. */
static int find_gate(const call *c, void *space, int direction, int gate, bool recurrent, void **matrix, void **bias,
                     const char *what, bz_error *err)
{
    cudnnTensorDescriptor_t m = NULL, b = NULL;
    cudnnStatus_t status = cudnnCreateTensorDescriptor(&m);
    status = status ? status : cudnnCreateTensorDescriptor(&b);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnGetRNNWeightParams(c->handle, c->rnn->rnn, direction, c->rnn->weights_size, space,
                                         matrix_of(c->problem, gate, recurrent), m, matrix, b, bias);
    int bad = status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, what, status);
    if (m)
        cudnnDestroyTensorDescriptor(m);
    if (b)
        cudnnDestroyTensorDescriptor(b);
    return bad;
}

/* Matrix and bias of one gate in one direction. The second bias of the GRU is that of the new state, behind the
 * product; the other gates, and the other kinds, have none there. */
static int put_gate(const call *c, const session *s, int direction, int gate, bool recurrent, bz_error *err)
{
    const bz_problem *p = c->problem;
    bool gru = bz_problem_is_gru(p);
    int gates = bz_rnn_gates(p->kind);
    int64_t h = p->rnn.hidden, n = recurrent ? h : p->rnn.input;
    void *matrix = NULL, *bias = NULL;
    const float *w = s->job->value[cudnn_find(c, recurrent ? BZ_ROLE_R : BZ_ROLE_W)] + direction * n * gates * h;
    const float *b = s->job->value[cudnn_find(c, BZ_ROLE_BIAS)] + direction * (gates + gru) * h;
    if (find_gate(c, c->rnn->weights, direction, gate, recurrent, &matrix, &bias, "asking where the weights go", err) ||
        (matrix && put_matrix(c, matrix, w, n, gate, gates, err)))
        return -1;
    return bias ? put(c, bias, !recurrent ? b + gate * h : gru && gate == 2 ? b + 3 * h : NULL, h, err) : 0;
}
static int put_weights(const call *c, const session *s, bz_error *err)
{
    const bz_problem *p = c->problem;
    for (int d = 0; d < directions_of(p); d++)
        for (int g = 0; g < bz_rnn_gates(p->kind); g++)
            if (put_gate(c, s, d, g, false, err) || put_gate(c, s, d, g, true, err))
                return -1;
    return 0;
}

static int put_lengths(const call *c, bz_error *err)
{
    const bz_problem *p = c->problem;
    size_t size = (size_t)p->rnn.batch * sizeof(int32_t);
    BZ_FREED int32_t *length = bz_alloc((size_t)p->rnn.batch, sizeof *length);
    for (int64_t i = 0; i < p->rnn.batch; i++)
        length[i] = (int32_t)p->rnn.seq;
    return bz_cuda_alloc(size, (void **)&c->rnn->lengths, err) ||
                   bz_cuda_put(c->rnn->lengths, length, size, "bringing the lengths to the device", err)
               ? -1
               : 0;
}

static cudnnStatus_t run_forward(call *c, void *y, void *last, void *last_c)
{
    struct rnn_call *r = c->rnn;
    cudnnTensorDescriptor_t cell = r->c.desc ? r->c.desc : r->h.desc;
    return cudnnRNNForward(c->handle, r->rnn, forward_mode(c->problem), r->lengths, r->x, c->x.data, r->y, y, r->h.desc,
                           r->h.data, last, cell, r->c.data, last_c, r->weights_size, r->weights, c->workspace,
                           c->cuda->workspace, r->reserve_size, r->reserve);
}

cudnnStatus_t cudnn_run_rnn(call *c)
{
    return run_forward(c, c->y.data, c->rnn->last.data, c->rnn->last_c.data);
}

/* Of x and the first states, then of the weights. */
cudnnStatus_t cudnn_run_rnn_grad(call *c)
{
    struct rnn_call *r = c->rnn;
    cudnnTensorDescriptor_t cell = r->c.desc ? r->c.desc : r->h.desc;
    TRY(cudnnRNNBackwardData_v8(c->handle, r->rnn, r->lengths, r->y, r->states.data, r->dy.data, r->x, c->y.data,
                                r->h.desc, r->h.data, r->dh.data, r->first_h.data, cell, r->c.data, r->dc.data,
                                r->first_c.data, r->weights_size, r->weights, c->workspace, c->cuda->workspace,
                                r->reserve_size, r->reserve));
    if (cudaMemsetAsync(r->gradients, 0, r->weights_size, c->cuda->stream) != cudaSuccess)
        return CUDNN_STATUS_EXECUTION_FAILED;
    return cudnnRNNBackwardWeights_v8(c->handle, r->rnn, CUDNN_WGRAD_MODE_ADD, r->lengths, r->x, c->x.data, r->h.desc,
                                      r->h.data, r->y, r->states.data, r->weights_size, r->gradients, c->workspace,
                                      c->cuda->workspace, r->reserve_size, r->reserve);
}

/* Results are no numbers before a call that is checked, and the reserve space is as the forward pass leaves it. */
static int poison_grad(call *c)
{
    struct rnn_call *r = c->rnn;
    tensor *const results[] = {&c->y, &r->first_h, &r->first_c};
    for (int i = 0; i < 3; i++)
        if (results[i]->operand >= 0 && bz_cuda_operand_poison(c->cuda, &results[i]->layout, results[i]->data))
            return -1;
    cudaError_t status = cudaMemsetAsync(r->gradients, 0xff, r->weights_size, c->cuda->stream);
    return status == cudaSuccess && run_forward(c, r->states.data, NULL, NULL) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static int prepare_training(call *c, session *s, bz_error *err)
{
    struct rnn_call *r = c->rnn;
    if (s->job->placed)
        return bz_fail(err, BZ_INCOMPLETE,
                       "cuDNN's weights lie in a space of its own, which a replay that changes them cannot fill");
    if (bz_cuda_alloc(r->reserve_size, &r->reserve, err))
        return -1;
    if (!is_grad(c->problem))
        return 0;
    if (bz_cuda_alloc(r->weights_size, &r->gradients, err) || bz_cuda_workspace(&s->cuda, c->workspace, err))
        return -1;
    c->poison = poison_grad;
    cudnnStatus_t status = run_forward(c, r->states.data, NULL, NULL);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "the forward pass", status);
}

int cudnn_prepare_rnn(call *c, session *s, bz_error *err)
{
    struct rnn_call *r = c->rnn;
    tensor *state[STATES];
    bool training = forward_mode(c->problem) == CUDNN_FWD_MODE_TRAINING;
    cudnnStatus_t status = set_rnn(c, r);
    if (status == CUDNN_STATUS_SUCCESS && c->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        status = cudnnBuildRNNDynamic(c->handle, r->rnn, (int)c->problem->rnn.batch);
    status = status ? status : cudnnGetRNNWeightSpaceSize(c->handle, r->rnn, &r->weights_size);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnGetRNNTempSpaceSizes(c->handle, r->rnn, forward_mode(c->problem), r->x, &c->workspace,
                                           &r->reserve_size);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "describing the network", status);
    if (bz_cuda_alloc(r->weights_size, &r->weights, err) || put_weights(c, s, err) || put_lengths(c, err))
        return -1;
    for (int i = 0; i < states_of(r, state); i++)
        if (bz_cudnn_upload(s, state[i], err))
            return -1;
    r->reserve_size = training ? r->reserve_size : 0;
    return training ? prepare_training(c, s, err) : 0;
}

int cudnn_rnn_states(call *c, tensor **out)
{
    int n = 0;
    tensor *own[STATES];
    for (int i = 0; c->rnn && i < states_of(c->rnn, own); i++)
        if (own[i]->operand >= 0)
            out[n++] = own[i];
    return n;
}

bool cudnn_is_rnn_weight(const call *c, int operand)
{
    bz_role role = c->operand[operand].role;
    return c->rnn && c->rnn->gradients && (role == BZ_ROLE_W || role == BZ_ROLE_R || role == BZ_ROLE_BIAS);
}

/* So many numbers from the device. */
static int take(const call *c, const void *from, float *to, int64_t n, bz_error *err)
{
    bz_dtype t = c->problem->dtype;
    size_t size = (size_t)n * (size_t)bz_dtype_bits(t) / 8;
    BZ_FREED void *encoded = bz_alloc((size_t)n, sizeof(double));
    cudaError_t status = cudaMemcpy(encoded, from, size, cudaMemcpyDeviceToHost);
    bz_values_decode(t, encoded, to, n);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "reading gradients of weights", status);
}

/* One gate in one direction, of the operand's role, into our order; `recurrent` bias: the one that a GRU's reset gate multiplies. */
static int read_gate(const call *c, const bz_operand *o, int d, int gate, bool recurrent, float *values, bz_error *err)
{
    const bz_problem *p = c->problem;
    int gates = bz_rnn_gates(p->kind);
    int64_t h = p->rnn.hidden, n = o->role == BZ_ROLE_BIAS ? 1 : o->dim[1];
    void *matrix = NULL, *bias = NULL;
    const char *what = "asking where gradients lie";
    if (find_gate(c, c->rnn->gradients, d, gate, recurrent, &matrix, &bias, what, err))
        return -1;
    const void *from = o->role == BZ_ROLE_BIAS ? bias : matrix;
    BZ_FREED float *turned = bz_alloc((size_t)(h * n), sizeof *turned);
    int rc = from ? take(c, from, turned, h * n, err) : bz_cudnn_failed(err, what, CUDNN_STATUS_SUCCESS);
    for (int64_t j = 0; !rc && j < h; j++)
        for (int64_t i = 0; i < n; i++)
            if (o->role == BZ_ROLE_BIAS)
                values[(d * o->dim[1] + (recurrent ? gates : gate)) * h + j] = turned[j];
            else
                values[((d * n + i) * gates + gate) * h + j] = turned[j * n + i];
    return rc;
}

int cudnn_read_rnn_weight(const call *c, int operand, float *values, bz_error *err)
{
    const bz_operand *o = &c->operand[operand];
    int gates = bz_rnn_gates(c->problem->kind);
    cudaError_t settled = cudaStreamSynchronize(c->cuda->stream);
    if (settled != cudaSuccess)
        return bz_cuda_failed(err, "waiting for gradients", settled);
    for (int d = 0; d < directions_of(c->problem); d++) {
        for (int gate = 0; gate < gates; gate++)
            if (read_gate(c, o, d, gate, o->role == BZ_ROLE_R, values, err))
                return -1;
        if (o->role == BZ_ROLE_BIAS && o->dim[1] > gates && read_gate(c, o, d, 2, true, values, err))
            return -1;
    }
    return 0;
}

void cudnn_release_rnn(call *c)
{
    struct rnn_call *r = c->rnn;
    if (!r)
        return;
    tensor *own[STATES];
    for (int i = 0; i < states_of(r, own); i++)
        if (own[i]->desc)
            cudnnDestroyTensorDescriptor(own[i]->desc);
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
    bz_cuda_free(r->gradients);
    bz_cuda_free(r->reserve);
    free(r);
    c->rnn = NULL;
}
