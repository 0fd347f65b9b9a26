/* The functions of the rows in transformations.c; private to the room. */
#ifndef BZ_WHATIF_TRANSFORMATIONS_H
#define BZ_WHATIF_TRANSFORMATIONS_H

#include "whatif/whatif.h"

/* Where a task copies between the host and a device, as CUPTI numbers directions. */
typedef enum { BZ_COPY_ELSEWHERE, BZ_COPY_TO_DEVICE, BZ_COPY_TO_HOST } bz_copy_way;
bz_copy_way bz_whatif_copied(const bz_whatif_asked *asked, const bz_task *task);

typedef int bz_apply(bz_flow *flow, bz_whatif_asked *asked, bz_error *err);

bz_apply bz_whatif_precision, bz_whatif_tf32, bz_whatif_device, bz_whatif_host, bz_whatif_link, bz_whatif_one_graph,
    bz_whatif_fused_optimizer, bz_whatif_prefetch, bz_whatif_copies, bz_whatif_norms, bz_whatif_data_parallel,
    bz_whatif_priorities, bz_whatif_blueconnect, bz_whatif_compression, bz_whatif_offload, bz_whatif_encoding,
    bz_whatif_checkpoints, bz_whatif_substitution, bz_whatif_best, bz_whatif_ideal, bz_whatif_prepack, bz_whatif_fusion,
    bz_whatif_library, bz_whatif_products, bz_whatif_joined, bz_whatif_framework, bz_whatif_threads, bz_whatif_streams,
    bz_whatif_batch, bz_whatif_system, bz_whatif_script;

/* The recorded kernel that a task is; NULL: it is none. */
const bz_kernel *bz_whatif_kernel(const bz_whatif_asked *asked, const bz_task *task);

/* What a kernel does, by its recorded name; what is no kernel of the recording does BZ_KERNEL_OTHER. */
bz_kernel_does bz_whatif_does(const bz_whatif_asked *asked, const bz_task *task);

#endif
