/* A stand-in for NCCL: calls of a group are recorded, and done when it ends. */
#include "tests/standin/record.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <string.h>

enum { MOST = 32 };

typedef enum { REDUCE, GATHER, BROADCAST, SEND, RECEIVE } what;

static struct {
    what what;
    const void *from;
    void *to;
    size_t n;
    int peer;
} call[MOST];
static int n_calls;

const char *ncclGetErrorString(ncclResult_t status)
{
    return status == ncclSuccess ? "no error" : "an error of the stand-in";
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int n, const int *device)
{
    for (int i = 0; i < n; i++) {
        comm[i] = standin_new("comm");
        standin_record("ncclCommInitAll %s device %d", standin_name(comm[i]), device[i]);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    standin_record("ncclCommDestroy %s", standin_name(comm));
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    standin_record("ncclGroupStart");
    n_calls = 0;
    return ncclSuccess;
}

static ncclResult_t add(what w, const char *name, const void *from, void *to, size_t n, int peer, ncclComm_t comm,
                        cudaStream_t stream)
{
    standin_record("%s %s <- %s n=%zu peer=%d %s %s", name, standin_name(to), standin_name(from), n, peer,
                   standin_name(comm), standin_name(stream));
    call[n_calls].what = w;
    call[n_calls].from = from;
    call[n_calls].to = to;
    call[n_calls].n = n;
    call[n_calls++].peer = peer;
    return n_calls == MOST ? ncclInvalidUsage : ncclSuccess;
}

/* All devices hold the same x: the largest of its elements are its elements. */
ncclResult_t ncclGroupEnd(void)
{
    standin_record("ncclGroupEnd");
    for (int i = 0; i < n_calls; i++)
        for (int k = 0; k < n_calls; k++) {
            char *to = call[i].to;
            if (call[i].what == GATHER)
                memcpy(to + (size_t)k * call[k].n, call[k].from, call[k].n);
            else if ((call[i].what == REDUCE && i == k) || (call[i].what == BROADCAST && k == call[i].peer) ||
                     (call[i].what == RECEIVE && call[k].what == SEND))
                memcpy(to, call[k].from, call[i].n);
        }
    standin_computed = true;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return type == ncclUint8 && op == ncclMax ? add(REDUCE, "ncclAllReduce", from, to, n, -1, comm, stream)
                                              : ncclInvalidArgument;
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return type == ncclUint8 ? add(GATHER, "ncclAllGather", from, to, n, -1, comm, stream) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return type == ncclUint8 ? add(BROADCAST, "ncclBroadcast", from, to, n, root, comm, stream) : ncclInvalidArgument;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? add(SEND, "ncclSend", from, NULL, n, peer, comm, stream) : ncclInvalidArgument;
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? add(RECEIVE, "ncclRecv", NULL, to, n, peer, comm, stream) : ncclInvalidArgument;
}
