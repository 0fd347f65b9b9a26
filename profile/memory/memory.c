/* Inside of the captured program: who takes aligned memory, how much, and when it is given back. Frameworks and libraries take tensors and
 * scratchpads aligned; what a program takes from malloc is small beside them. Loaded for `benanza profile --memory` only: every call
 * of free() is looked at. */
#include "profile/inject/record.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that are taken: open addressing, linear. What does not fit is not recorded. */
enum { SLOTS = 1 << 20 };
static struct {
    void *block;
    size_t bytes;
} slot[SLOTS];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;

static size_t home_of(const void *block)
{
    return ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 44 & (SLOTS - 1);
}

static void put(int64_t at, const void *block, int64_t bytes)
{
    bz_spool_memory *r = bzi_claim(sizeof *r);
    if (!r)
        return;
    r->at = at;
    r->bytes = bytes;
    r->address = (uint64_t)(uintptr_t)block;
    r->thread = bzi_thread();
    r->unused = 0;
    bzi_commit(r, BZ_SPOOL_MEMORY, 0, sizeof *r);
}

/* Whether it is known from now on. */
static bool add_slot(void *block, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool fits = used < SLOTS / 2;
    size_t i = home_of(block);
    while (fits && slot[i].block)
        i = (i + 1) % SLOTS;
    if (fits) {
        used++;
        slot[i].block = block;
        slot[i].bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

static void taken(void *block, size_t bytes)
{
    if (!block || !bytes || inside || !bzi_marking())
        return;
    inside = true;
    if (add_slot(block, bytes))
        put(bzi_now(), block, (int64_t)bytes);
    inside = false;
}

/* Closes the gap: whatever lies behind it and does not lie at home moves up. */
static void remove_slot(size_t gap)
{
    for (size_t i = (gap + 1) % SLOTS; slot[i].block; i = (i + 1) % SLOTS) {
        size_t home = home_of(slot[i].block);
        if ((i - home) % SLOTS >= (i - gap) % SLOTS) {
            slot[gap] = slot[i];
            gap = i;
        }
    }
    slot[gap].block = NULL;
    used--;
}

/* Forgets a block before it is given back: then nobody else has its address. How large it was; 0: not known. */
static size_t forget(const void *block)
{
    size_t bytes = 0;
    if (!block || inside || !used)
        return 0;
    pthread_mutex_lock(&lock);
    size_t i = home_of(block);
    while (slot[i].block && slot[i].block != block)
        i = (i + 1) % SLOTS;
    if (slot[i].block) {
        bytes = slot[i].bytes;
        remove_slot(i);
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

static void returned(int64_t at, const void *block, size_t bytes)
{
    if (!bytes || !bzi_marking())
        return;
    inside = true;
    put(at, block, -(int64_t)bytes);
    inside = false;
}

/* ISO C has no cast from one kind of pointer to the other. */
#define NEXT(function, result, ...)                                                                                    \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (!real) {                                                                                                       \
        void *symbol = dlsym(RTLD_NEXT, function);                                                                     \
        memcpy(&real, &symbol, sizeof real);                                                                           \
    }

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's headers name them for nobody. */
BZI_SHARED int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    NEXT("posix_memalign", int, void **, size_t, size_t)
    int rc = real(block, alignment, bytes);
    if (!rc)
        taken(*block, bytes);
    return rc;
}

BZI_SHARED void *aligned_alloc(size_t alignment, size_t bytes)
{
    NEXT("aligned_alloc", void *, size_t, size_t)
    void *block = real(alignment, bytes);
    taken(block, bytes);
    return block;
}

BZI_SHARED void *memalign(size_t alignment, size_t bytes)
{
    NEXT("memalign", void *, size_t, size_t)
    void *block = real(alignment, bytes);
    taken(block, bytes);
    return block;
}

BZI_SHARED void free(void *block)
{
    NEXT("free", void, void *)
    size_t had = forget(block);
    if (had)
        returned(bzi_now(), block, had);
    if (real)
        real(block);
}

BZI_SHARED void *realloc(void *block, size_t bytes)
{
    NEXT("realloc", void *, void *, size_t)
    size_t had = forget(block);
    int64_t at = had ? bzi_now() : 0;
    void *moved = real(block, bytes);
    if (!moved && bytes && had) /* it failed: the block stays */
        add_slot(block, had);
    else
        returned(at, block, had);
    return moved;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void behind_fork(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(before_fork, behind_fork, behind_fork);
}
