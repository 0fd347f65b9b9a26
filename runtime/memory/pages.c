/* Loads that wait for each other, and memory asked for anew: what ordinary and huge pages make of both. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sattolo's shuffle: a permutation that is one ring. The order is the same in every run. */
void transfer_ring(void *memory, size_t size)
{
    char *at = memory;
    size_t n = size / TRANSFER_LINE;
    uint64_t random = 88172645463325252U;
    for (size_t i = 0; i < n; i++)
        memcpy(at + i * TRANSFER_LINE, &i, sizeof i);
    for (size_t i = n; i-- > 1;) {
        size_t other, a, b;
        random ^= random << 13; /* xorshift */
        random ^= random >> 7;
        random ^= random << 17;
        other = (size_t)(random % i);
        memcpy(&a, at + i * TRANSFER_LINE, sizeof a);
        memcpy(&b, at + other * TRANSFER_LINE, sizeof b);
        memcpy(at + i * TRANSFER_LINE, &b, sizeof b);
        memcpy(at + other * TRANSFER_LINE, &a, sizeof a);
    }
    for (size_t i = 0; i < n; i++) {
        size_t next;
        memcpy(&next, at + i * TRANSFER_LINE, sizeof next);
        void *to = at + next * TRANSFER_LINE;
        memcpy(at + i * TRANSFER_LINE, &to, sizeof to);
    }
}

void **transfer_follow(void **at, int64_t hops)
{
    for (; hops; hops--)
        at = *at;
    return at;
}

typedef struct ring {
    char *memory;
    size_t size;
    void **at; /* calls go round a large ring in pieces */
} ring;

int transfer_chase_open(transfer *t, bz_error *err)
{
    bool huge = t->row->way == BZ_TRANSFER_CHASE_HUGE;
    ring *r = bz_alloc(1, sizeof *r);
    *r = (ring){.size = (size_t)t->plain->job->problem->transfer.x[0]};
    t->own = r;
    r->memory = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->memory == MAP_FAILED)
        return bz_fail(err, BZ_FAILED, "out of memory: %.3g GB for a ring", (double)r->size / 1e9);
    madvise(r->memory, r->size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    transfer_ring(r->memory, r->size);
    r->at = (void **)(void *)r->memory;
    return 0;
}

int transfer_chase(transfer *t, int copy)
{
    ring *r = t->own;
    r->at =
        transfer_follow(r->at, bz_problem_hops(t->plain->job->problem)); /* kept, so that no compiler leaves them out */
    *(unsigned char *)bz_plain_at(t->plain, 0, copy) = 1;
    return 0;
}

void transfer_chase_close(transfer *t)
{
    ring *r = t->own;
    if (r && r->memory != MAP_FAILED)
        munmap(r->memory, r->size);
    free(r);
}

static int touch(const transfer *t, int copy, int flags, int advice)
{
    size_t size = (size_t)t->plain->job->problem->transfer.x[0], page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if ((void *)memory == MAP_FAILED)
        return -1;
    if (advice >= 0)
        madvise((void *)memory, size, advice);
    for (size_t i = 0; i < size; i += page)
        memory[i] = 1;
    *(unsigned char *)bz_plain_at(t->plain, 0, copy) = (unsigned char)memory[size - 1 - (size - 1) % page];
    return munmap((void *)memory, size);
}

int transfer_touch(transfer *t, int copy)
{
    return touch(t, copy, 0, MADV_NOHUGEPAGE);
}

int transfer_touch_huge(transfer *t, int copy)
{
    return touch(t, copy, 0, MADV_HUGEPAGE);
}

int transfer_touch_populate(transfer *t, int copy)
{
    return touch(t, copy, MAP_POPULATE, -1);
}
