/* The table of known GPUs (gpus.txt, built in); and which of a machine's GPUs a process takes. */
#ifndef BZ_GPUS_H
#define BZ_GPUS_H

#include "base/error.h"

#include <stdbool.h>

enum { BZ_GPU_RATES = 7 };

typedef struct bz_gpu {
    char slug[32], name[48], source[8];
    int major, minor, multiprocessors;
    double clock;              /* Hz, the boost clock of its data sheet */
    double base;               /* Hz, the clock for full load; 0 where nobody looked */
    double watts;              /* that it may draw; 0 where its sheet does not tell */
    double memory, bandwidth;  /* bytes, bytes per second */
    char ram[8];               /* sort of memory: "hbm", "gddr6"; a + behind it: correcting errors costs bandwidth */
    double l2;                 /* bytes of its last cache; 0 where nobody looked */
    double rate[BZ_GPU_RATES]; /* operations per second in f64, f32, tf32, f16, bf16, i8, f8; 0: none */
} bz_gpu;

/* Of its rates the one of that name. */
double bz_gpu_rate(const bz_gpu *gpu, const char *name);

/* The device of that name, as the driver gives it; of several rows that fit the one with the longest name.
 * false where the table has none. */
bool bz_gpu_find(const char *name, bz_gpu *out);

/* The row of that slug; else the first whose slug goes on behind it: "a100" is a100-40, as "v100" is the one with SXM2. */
bool bz_gpu_slug(const char *slug, bz_gpu *out);

/* Row i of the table; false behind the last. */
bool bz_gpu_row(int i, bz_gpu *out);

/* This process and its children take GPU `number` ("0" is the first), as nvidia-smi -L counts; where CUDA_VISIBLE_DEVICES is set, the
 * one of that number in its list. It becomes the first that CUDA sees; the others stay behind it, for copies between two.
 * To be called before CUDA is. */
int bz_gpu_choose(const char *number, bz_error *err);
/* The number that was chosen; NULL: none was. */
const char *bz_gpu_chosen(void);

#endif
