/* What of the runtime needs the processor's libraries, besides the backends themselves: which of these are built
 * in, and hwloc's picture of the machine. A program that has a GPU to look at alone does without this file. */
#include "runtime/backend.h"

#include <hwloc.h>
#include <unistd.h>

/* BZ_BUILT_IN: BUILT_IN(NAME) for each, from runtime/CMakeLists.txt. */
#define BUILT_IN(name) extern const bz_backend bz_backend_##name;
BZ_BUILT_IN
#undef BUILT_IN
#define BUILT_IN(name) &bz_backend_##name,
const bz_backend *const bz_builtin_backends[] = {BZ_BUILT_IN NULL};

/* Where /sys is not mounted, as in some containers, hwloc counts none: then what is known already stands. */
static int count_of(hwloc_topology_t t, hwloc_obj_type_t type, int known)
{
    int n = hwloc_get_nbobjs_by_type(t, type);
    return n > 0 ? n : known;
}

static void look_at_topology(bz_machine *s)
{
    static const hwloc_obj_type_t CACHES[BZ_MAX_CACHES] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                                           HWLOC_OBJ_L4CACHE};
    hwloc_topology_t t;
    s->cores = s->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    s->memory =
        (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); /* nodes do not tell what was plugged in later */
    if (hwloc_topology_init(&t))
        return;
    if (!hwloc_topology_load(t)) {
        s->packages = count_of(t, HWLOC_OBJ_PACKAGE, s->packages);
        s->cores = count_of(t, HWLOC_OBJ_CORE, s->cores);
        s->threads = count_of(t, HWLOC_OBJ_PU, s->threads);
        s->numa_nodes = count_of(t, HWLOC_OBJ_NUMANODE, s->numa_nodes);
        for (int i = 0; i < BZ_MAX_CACHES; i++) {
            int n = hwloc_get_nbobjs_by_type(t, CACHES[i]);
            hwloc_obj_t o = n > 0 ? hwloc_get_obj_by_type(t, CACHES[i], 0) : NULL;
            if (!o)
                continue;
            s->cache[s->n_caches].level = i + 1;
            s->cache[s->n_caches].count = n;
            s->cache[s->n_caches++].bytes = (int64_t)o->attr->cache.size;
        }
    }
    hwloc_topology_destroy(t);
}

void bz_processor_look(bz_machine *s)
{
    look_at_topology(s);
    bz_onednn_isa(s->isa, sizeof s->isa);
}

void bz_processor_versions(bz_buf *out)
{
    unsigned v = hwloc_get_api_version();
    bz_buf_printf(out, " hwloc%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
}
