/* NCCL's primitives, one process for all devices: each call is a group of one for each device. The library is loaded where it is;
 * without its header this is built without them. */
#include "runtime/cudart/cudart.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nccl.h>)
#include <nccl.h>

enum { MOST_DEVICES = 16 };

typedef struct nccl {
    void *library;
    ncclResult_t (*init)(ncclComm_t *comms, int n, const int *devices);
    ncclResult_t (*destroy)(ncclComm_t comm);
    const char *(*says)(ncclResult_t status);
    ncclResult_t (*begin)(void), (*end)(void);
    ncclResult_t (*reduce)(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);
    ncclResult_t (*gather)(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
    ncclResult_t (*broadcast)(const void *from, void *to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                              cudaStream_t stream);
    ncclResult_t (*send)(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                         cudaStream_t stream);
    ncclResult_t (*receive)(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
    int n; /* devices */
    ncclComm_t comm[MOST_DEVICES];
    cudaStream_t stream[MOST_DEVICES];
    cudaEvent_t ended[MOST_DEVICES];
    char *x[MOST_DEVICES], *y[MOST_DEVICES]; /* the first device's are the variant's */
} nccl;

static int load(nccl *c, bz_error *err)
{
    const bz_cuda_symbol SYMBOLS[] = {
        {"ncclCommInitAll", &c->init}, {"ncclCommDestroy", &c->destroy}, {"ncclGetErrorString", &c->says},
        {"ncclGroupStart", &c->begin}, {"ncclGroupEnd", &c->end},        {"ncclAllReduce", &c->reduce},
        {"ncclAllGather", &c->gather}, {"ncclBroadcast", &c->broadcast}, {"ncclSend", &c->send},
        {"ncclRecv", &c->receive},
    };
    c->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return bz_fail(err, BZ_INCOMPLETE, "NCCL is not installed: %s", dlerror());
    const char *missing = bz_cuda_symbols(c->library, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS);
    return missing ? bz_fail(err, BZ_INCOMPLETE, "this NCCL has no %s", missing) : 0;
}

/* Streams and memory of the other devices, with the same x. */
static int open_others(move *m, nccl *c, bz_error *err)
{
    int first = m->run.cuda->device, rc = 0;
    cudaError_t status = cudaSuccess;
    c->stream[0] = m->run.cuda->stream;
    c->x[0] = m->x;
    c->y[0] = m->y;
    for (int i = 1; i < c->n && status == cudaSuccess && !rc; i++) {
        status = cudaSetDevice(first + i);
        status = status ? status : cudaStreamCreateWithFlags(&c->stream[i], cudaStreamNonBlocking);
        status = status ? status : cudaEventCreateWithFlags(&c->ended[i], cudaEventDisableTiming);
        rc = status != cudaSuccess || move_get(PLACE_DEVICE, m->size, &c->x[i], err) ||
             move_get(PLACE_DEVICE, m->y_size, &c->y[i], err);
        if (!rc)
            status = cudaMemcpy(c->x[i], m->x, m->size, cudaMemcpyDefault);
    }
    cudaSetDevice(first);
    return status != cudaSuccess ? bz_cuda_failed(err, "preparing the other devices", status) : rc ? -1 : 0;
}

int move_open_collective(move *m, bz_error *err)
{
    int devices = 0, list[MOST_DEVICES];
    nccl *c = bz_alloc(1, sizeof *c);
    *c = (nccl){0};
    m->own = c;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2)
        return bz_fail(err, BZ_INCOMPLETE, "there is one device, which has nobody to exchange with");
    int n = devices < MOST_DEVICES ? devices : MOST_DEVICES;
    if (m->job->problem->transfer.way == BZ_TRANSFER_ALL_GATHER && m->size % (size_t)n)
        return bz_fail(err, BZ_INCOMPLETE, "%zu bytes are not the same for each of %d devices", m->size, n);
    for (int i = 0; i < n; i++)
        list[i] = m->run.cuda->device + i;
    if (load(c, err))
        return -1;
    ncclResult_t status = c->init(c->comm, n, list);
    if (status != ncclSuccess)
        return bz_fail(err, BZ_FAILED, "ncclCommInitAll: %s", c->says(status));
    c->n = n;
    return open_others(m, c, err);
}

void move_close_collective(move *m)
{
    nccl *c = m->own;
    if (!c)
        return;
    for (int i = 0; i < c->n; i++) {
        c->destroy(c->comm[i]);
        if (!i)
            continue;
        move_put(PLACE_DEVICE, c->x[i]);
        move_put(PLACE_DEVICE, c->y[i]);
        if (c->ended[i])
            cudaEventDestroy(c->ended[i]);
        if (c->stream[i])
            cudaStreamDestroy(c->stream[i]);
    }
    if (c->library)
        dlclose(c->library);
    free(c);
}

static ncclResult_t one_call(const move *m, const nccl *c, int i)
{
    size_t part = m->size / (size_t)c->n;
    switch (m->job->problem->transfer.way) {
    case BZ_TRANSFER_ALL_REDUCE:
        return c->reduce(c->x[i], c->y[i], m->size, ncclUint8, ncclMax, c->comm[i], c->stream[i]);
    case BZ_TRANSFER_ALL_GATHER:
        return c->gather(c->x[i] + part * (size_t)i, c->y[i], part, ncclUint8, c->comm[i], c->stream[i]);
    case BZ_TRANSFER_BROADCAST:
        return c->broadcast(c->x[i], c->y[i], m->size, ncclUint8, 0, c->comm[i], c->stream[i]);
    default: /* from the second device to the first, whose result is looked at */
        return i == 0   ? c->receive(c->y[0], m->size, ncclUint8, 1, c->comm[0], c->stream[0])
               : i == 1 ? c->send(c->x[1], m->size, ncclUint8, 0, c->comm[1], c->stream[1])
                        : ncclSuccess;
    }
}

/* The first device's stream goes on when all are done. */
cudaError_t move_collective(move *m)
{
    const nccl *c = m->own;
    cudaError_t status = cudaSuccess;
    ncclResult_t said = c->begin();
    for (int i = 0; i < c->n && said == ncclSuccess; i++)
        said = one_call(m, c, i);
    ncclResult_t ended = c->end();
    if (said != ncclSuccess || ended != ncclSuccess)
        return cudaErrorUnknown;
    for (int i = 1; i < c->n && status == cudaSuccess; i++) {
        status = cudaEventRecord(c->ended[i], c->stream[i]);
        status = status ? status : cudaStreamWaitEvent(c->stream[0], c->ended[i], 0);
    }
    return status;
}
#else
int move_open_collective(move *m, bz_error *err)
{
    (void)m;
    return bz_fail(err, BZ_INCOMPLETE, "built without NCCL");
}

void move_close_collective(move *m)
{
    (void)m;
}

cudaError_t move_collective(move *m)
{
    (void)m;
    return cudaErrorNotSupported;
}
#endif
