/* Memory of another NUMA node than the thread's: of that which is farthest by the machine's own table of distances. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct far {
    hwloc_topology_t topology;
    hwloc_cpuset_t was; /* where the thread might run before */
    void *memory;
    size_t size;
    void **at; /* of a ring */
    uint64_t sum;
} far;

/* The node's number in the table of distances is its number among nodes where the table has all of them. */
static double distance(const struct hwloc_distances_s *d, unsigned from, unsigned to)
{
    return d && from < d->nbobjs && to < d->nbobjs ? (double)d->values[from * d->nbobjs + to] : 0;
}

/* Of the nodes that are not the thread's the farthest; NULL: there is none. *own: the thread's. */
static hwloc_obj_t farthest(hwloc_topology_t t, hwloc_obj_t *own)
{
    hwloc_cpuset_t here = hwloc_bitmap_alloc();
    struct hwloc_distances_s *d = NULL;
    unsigned one = 1;
    int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
    hwloc_obj_t best = NULL;
    *own = NULL;
    if (!here || hwloc_get_last_cpu_location(t, here, HWLOC_CPUBIND_THREAD))
        n = 0;
    for (int i = 0; i < n && !*own; i++) {
        hwloc_obj_t o = hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, (unsigned)i);
        *own = hwloc_bitmap_intersects(o->cpuset, here) ? o : NULL;
    }
    if (n && hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &one, &d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0))
        one = 0;
    for (int i = 0; i < n && *own; i++) {
        hwloc_obj_t o = hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, (unsigned)i);
        const struct hwloc_distances_s *known = one ? d : NULL;
        unsigned from = (*own)->logical_index;
        if (o != *own && (!best || distance(known, from, (unsigned)i) > distance(known, from, best->logical_index)))
            best = o;
    }
    if (one && d)
        hwloc_distances_release(t, d);
    hwloc_bitmap_free(here);
    return best;
}

int transfer_far_open(transfer *t, bz_error *err)
{
    far *f = bz_zeroed(1, sizeof *f);
    hwloc_obj_t own, node;
    t->own = f;
    f->size = (size_t)t->plain->job->problem->transfer.x[0];
    if (hwloc_topology_init(&f->topology) || hwloc_topology_load(f->topology))
        return bz_fail(err, BZ_INCOMPLETE, "hwloc knows nothing of this machine");
    node = farthest(f->topology, &own);
    if (!node)
        return bz_fail(err, BZ_INCOMPLETE, "this machine has one NUMA node: no memory is far");
    f->was = hwloc_bitmap_alloc();
    hwloc_get_cpubind(f->topology, f->was, HWLOC_CPUBIND_THREAD);
    f->memory = hwloc_alloc_membind(f->topology, f->size, node->nodeset, HWLOC_MEMBIND_BIND,
                                    HWLOC_MEMBIND_STRICT | HWLOC_MEMBIND_BYNODESET);
    if (!f->memory || hwloc_set_cpubind(f->topology, own->cpuset, HWLOC_CPUBIND_THREAD))
        return bz_fail(err, BZ_INCOMPLETE, "no %.3g GB on NUMA node %u: %s", (double)f->size / 1e9, node->os_index,
                       strerror(errno));
    madvise(f->memory, f->size, MADV_HUGEPAGE);
    memset(f->memory, 0, f->size);
    return 0;
}

int transfer_far_open_ring(transfer *t, bz_error *err)
{
    if (transfer_far_open(t, err))
        return -1;
    far *f = t->own;
    transfer_ring(f->memory, f->size);
    f->at = f->memory;
    return 0;
}

static int done(const transfer *t, int copy)
{
    *(unsigned char *)bz_plain_at(t->plain, 0, copy) = 1;
    return 0;
}

int transfer_far(transfer *t, int copy)
{
    far *f = t->own;
    f->sum = memory_read(f->memory, f->size); /* kept, so that no compiler leaves it out */
    return done(t, copy);
}

int transfer_far_chase(transfer *t, int copy)
{
    far *f = t->own;
    f->at = transfer_follow(f->at, bz_problem_hops(t->plain->job->problem));
    return done(t, copy);
}

void transfer_far_close(transfer *t)
{
    far *f = t->own;
    if (!f)
        return;
    if (f->memory)
        hwloc_free(f->topology, f->memory, f->size);
    if (f->was) {
        hwloc_set_cpubind(f->topology, f->was, HWLOC_CPUBIND_THREAD);
        hwloc_bitmap_free(f->was);
    }
    if (f->topology)
        hwloc_topology_destroy(f->topology);
    free(f);
}
