/* A run of training as its recording tells it: the sample that counts, and what its kernels compute. Private to tables/. */
#ifndef BZ_TABLES_TRAINING_H
#define BZ_TABLES_TRAINING_H

#include "base/map.h"
#include "tables/parts.h"

/* Work of a device; where no device was recorded, library calls of the processor. */
typedef struct training_unit {
    uint32_t device; /* BZ_NONE: the processor */
    uint32_t name;   /* string; of a call, index of its label */
    int64_t start, end;
    double flops, at_peak; /* NAN: not told; seconds that they take at the peak in their type */
    bz_kernel_does does;
} training_unit;

typedef struct training_run {
    bz_tables *m;
    int64_t from, to;           /* of the sample; it has `iterations`, from number `first` on */
    uint32_t first, iterations; /* iterations 0: none were found, and the sample is all of the recording */
    double step, variation;     /* seconds: their median; their deviation over their mean. NAN */
    double rate;        /* iterations a second; of the run without anything recorded, where there was one. NAN */
    double batch;       /* NAN: not told */
    uint32_t *row;      /* kernels or calls in the sample, by start: for training_unit_of */
    uint32_t *label_of; /* [n] of calls; NULL: they are kernels */
    double *flops;      /* [n]; NULL: no operator tells */
    double *at_peak;    /* [n], with `flops` */
    size_t n;
    const char **label; /* of calls */
    uint32_t n_labels;
    bz_map labels;
} training_run;

/* memory.c: a row for each class of memory, and one of all; none where no allocations were recorded. */
void training_add_memory(const training_run *sample, const char *which, bz_sheet *s);

/* training_work.c: operations of each kernel of the trace, [kernels]; NAN where no operator around it tells, NULL where there
 * is no operator; and the seconds that they take at the GPU's peak in the type that a kernel multiplies in. The caller frees both. `batch` is the first
 * extent of most convolutions' operands. */
double *training_flops(const bz_tables *m, double **at_peak, double *batch);

#endif
