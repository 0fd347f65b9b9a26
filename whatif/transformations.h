/* The functions of the rows in transformations.c; private to the room. */
#ifndef BZ_WHATIF_TRANSFORMATIONS_H
#define BZ_WHATIF_TRANSFORMATIONS_H

#include "whatif/whatif.h"

/* Where a task copies between the host and a device, as CUPTI numbers directions. */
typedef enum { BZ_COPY_ELSEWHERE, BZ_COPY_TO_DEVICE, BZ_COPY_TO_HOST } bz_copy_way;
bz_copy_way bz_whatif_copied(const bz_whatif_asked *asked, const bz_task *task);

/* What a change does to pieces of the iteration: how many, and what they take before and after. */
typedef struct bz_tally {
    int n;
    int64_t before, after;
} bz_tally;
static inline void bz_tally_add(bz_tally *t, int64_t before, int64_t after)
{
    t->n++;
    t->before = bz_flow_sum(t->before, before);
    t->after = bz_flow_sum(t->after, after);
}
/* "%s become %s" */
#define BZ_SAY_TALLY(t) BZ_SAY_NS((t).before), BZ_SAY_NS((t).after)

typedef int bz_apply(bz_flow *flow, bz_whatif_asked *asked);

bz_apply bz_whatif_precision, bz_whatif_tf32, bz_whatif_device, bz_whatif_host, bz_whatif_link, bz_whatif_one_graph,
    bz_whatif_fused_optimizer, bz_whatif_prefetch, bz_whatif_copies, bz_whatif_norms, bz_whatif_data_parallel,
    bz_whatif_priorities, bz_whatif_blueconnect, bz_whatif_compression, bz_whatif_offload, bz_whatif_encoding,
    bz_whatif_checkpoints, bz_whatif_substitution, bz_whatif_best, bz_whatif_ideal, bz_whatif_prepack, bz_whatif_fusion,
    bz_whatif_library, bz_whatif_products, bz_whatif_joined, bz_whatif_framework, bz_whatif_threads, bz_whatif_streams,
    bz_whatif_batch, bz_whatif_system, bz_whatif_script;

/* Cuts the next line that says something off *rest: none that is empty or begins with "#". NULL: there is none. *number counts lines. */
char *bz_whatif_line(char **rest, int *number);

/* The recorded kernel that a task is; NULL: it is none. */
const bz_kernel *bz_whatif_kernel(const bz_whatif_asked *asked, const bz_task *task);

/* What a kernel does, by its recorded name; what is no kernel of the recording does BZ_KERNEL_OTHER. */
bz_kernel_does bz_whatif_does(const bz_whatif_asked *asked, const bz_task *task);

#endif
