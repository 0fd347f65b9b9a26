/* The functions of the rows in transformations.c, one file each; private to the room. */
#ifndef BZ_WHATIF_TRANSFORMATIONS_H
#define BZ_WHATIF_TRANSFORMATIONS_H

#include "whatif/whatif.h"

typedef int bz_apply(bz_flow *flow, bz_whatif_asked *asked, bz_error *err);

bz_apply bz_whatif_precision;       /* precision.c */
bz_apply bz_whatif_scale;           /* scale.c: kernels, host, launches or copies by a factor */
bz_apply bz_whatif_device;          /* scale.c */
bz_apply bz_whatif_host;            /* scale.c */
bz_apply bz_whatif_link;            /* scale.c */
bz_apply bz_whatif_one_graph;       /* one_graph.c */
bz_apply bz_whatif_fused_optimizer; /* fused_optimizer.c */
bz_apply bz_whatif_prefetch;        /* prefetch.c */
bz_apply bz_whatif_copies;          /* copies.c */
bz_apply bz_whatif_norms;           /* memory.c */
bz_apply bz_whatif_data_parallel;   /* data_parallel.c */
bz_apply bz_whatif_priorities;      /* priorities.c */
bz_apply bz_whatif_blueconnect;     /* exchanges.c */
bz_apply bz_whatif_compression;     /* exchanges.c */
bz_apply bz_whatif_offload;         /* memory.c */
bz_apply bz_whatif_encoding;        /* memory.c */
bz_apply bz_whatif_checkpoints;     /* memory.c */
bz_apply bz_whatif_substitution;    /* substitution.c */
bz_apply bz_whatif_best;            /* records.c */
bz_apply bz_whatif_ideal;           /* ideal.c */
bz_apply bz_whatif_prepack;         /* records.c */
bz_apply bz_whatif_fusion;          /* fusion.c */
bz_apply bz_whatif_library;         /* library.c */
bz_apply bz_whatif_products;        /* products.c */
bz_apply bz_whatif_joined;          /* joined.c */
bz_apply bz_whatif_framework;       /* framework.c */
bz_apply bz_whatif_threads;         /* framework.c */
bz_apply bz_whatif_streams;         /* streams.c */
bz_apply bz_whatif_batch;           /* batch.c */
bz_apply bz_whatif_system;          /* system.c */
bz_apply bz_whatif_script;          /* script.c */

/* What a kernel does, by its recorded name; what is no kernel of the recording does BZ_KERNEL_OTHER. */
bz_kernel_does bz_whatif_does(const bz_whatif_asked *asked, const bz_task *task);

#endif
